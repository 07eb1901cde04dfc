//! A finding: what breaks, where, how sure that is, why, and how to fix it.

use serde::{Deserialize, Serialize};

use super::timeline::Timeline;
use super::{BlockedThread, Effect, EndKind, FindingKind, Status, Suppressed, is_false};

/// Something that can go wrong, or may.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stays the same as long as the code locations, the variable and the threads do.
    pub id: String,
    /// The same for findings that differ in their threads only.
    #[serde(default)]
    pub group: String,
    /// Stays the same when lines move: made of the kind, the functions, the variables and the code
    /// of the accesses. Suppressions go by it.
    #[serde(default)]
    pub fingerprint: String,
    /// What kind.
    pub kind: FindingKind,
    /// For atomicity: `RWR`, `RWW`, `WWR`, `WRW` or `WWW`.
    #[serde(default)]
    pub pattern: Option<String>,
    /// How sure.
    pub status: Status,
    /// Why it is not decided, or why a prediction could not be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the forced run did; absent when there was none.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// One sentence for people.
    #[serde(default)]
    pub detail: String,
    /// The events that take part; for a pattern first, remote, second.
    pub accesses: Vec<Access>,
    /// The schedule file that makes it happen.
    #[serde(default)]
    pub schedule: Option<String>,
    /// The command that makes it happen again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// How often the thread changes in the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<usize>,
    /// The schedule as events of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaving: Option<Interleaving>,
    /// The forced run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<ForcedRun>,
    /// Why it goes wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
    /// What repairs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Recorded and predicted order of the events that matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Somebody decided that it need not be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<Suppressed>,
    /// The finding, by its id, that shows the same bug more clearly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

/// One event of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The thread's name.
    pub thread: String,
    /// What it does: `read`, `write`, `acquire`, ...
    pub op: String,
    /// Its place in the recorded order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u32>,
    /// The source file as the compiler had it.
    #[serde(default)]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The function.
    #[serde(default)]
    pub function: Option<String>,
    /// The variable or synchronisation object.
    #[serde(default)]
    pub variable: Option<String>,
    /// The value it read or wrote when it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The call stack, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<StackFrame>,
    /// The locks that the thread holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
}

/// A function on a call stack and where in it the thread is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// The function.
    pub function: String,
    /// The source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the access or of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A schedule as events of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interleaving {
    /// So many events take place as recorded.
    pub recorded: usize,
    /// Then these, in this order.
    pub order: Vec<u32>,
    /// Then the threads stand before these.
    pub next: Vec<u32>,
}

/// What a forced run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedRun {
    /// How it ended, for people: `exit 0`, `signal 6 (SIGABRT)`, `deadlock: ...`.
    pub ended: String,
    /// How it ended, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndKind>,
    /// The threads that could not go on then, or did not come to an end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedThread>,
    /// How often the schedule was forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// How many runs of the program came before it in a test, the recorded one included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_before: Option<usize>,
    /// Where it first took another branch than the recorded run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_differing_branch: Option<Place>,
    /// There it took no branch at all, because it had ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ended_before_branch: bool,
    /// Recorded and forced output as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_difference: Option<String>,
    /// The last of what it wrote to standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    #[serde(default)]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What is there to say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Why a finding goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// In words.
    #[serde(default)]
    pub text: String,
    /// Which interleavings are bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<Formula>,
    /// The one order that makes the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Edge>,
}

/// A happens-before formula in disjunctive normal form (001 section 2.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formula {
    /// As text.
    pub text: String,
    /// An interleaving is bad when it keeps all edges of one of these clauses.
    pub clauses: Vec<Vec<Edge>>,
}

/// `before` happens before `after`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The earlier event.
    pub before: EventName,
    /// The later event.
    pub after: EventName,
}

/// An event as a formula names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventName {
    /// Its label, or `thread#index`.
    pub name: String,
    /// The thread's name.
    pub thread: String,
    /// Its place in the recorded order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u32>,
    /// The source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What repairs a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// In words.
    #[serde(default)]
    pub text: String,
    /// As a unified diff of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The patched program was built and tested, and the bug is gone.
    #[serde(default)]
    pub verified: bool,
    /// No bad interleaving of the recorded events is left with it, and no deadlock is added.
    #[serde(default)]
    pub on_trace: bool,
    /// Why it is not verified, or has no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Finding {
    /// A finding that says nothing yet.
    pub fn new(id: &str, kind: FindingKind, status: Status) -> Self {
        Self {
            id: id.to_owned(),
            group: id.to_owned(),
            fingerprint: String::new(),
            kind,
            pattern: None,
            status,
            reason: None,
            effect: None,
            detail: String::new(),
            accesses: Vec::new(),
            schedule: None,
            replay: None,
            context_switches: None,
            interleaving: None,
            forced: None,
            explanation: None,
            fix: None,
            timeline: None,
            suppressed: None,
            same_as: None,
        }
    }
}
