//! The result of foretell as data: these types *are* the JSON contract, version 1 (schema:
//! `schema/result-1.schema.json`).
//!
//! Everything that a person is shown stands in a [`Report`], source lines included, so every
//! renderer takes a `&Report` and nothing else, and `foretell report RESULT.json` shows on another
//! machine what was found on this one. Kinds and states are closed lists; members may be added
//! within version 1, and every member that version 1 did not have from the start has a default.

use std::collections::BTreeMap;

pub use foretell_explore::Doubt;
pub use foretell_force::effect::Effect;
pub use foretell_force::run::{BlockedThread, EndKind};
pub use foretell_predict::FindingKind;
use serde::{Deserialize, Serialize};

/// The version of the contract.
pub const VERSION: u32 = 1;

/// What one run of `foretell predict` or `foretell test` found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`VERSION`].
    pub version: u32,
    /// The program that was looked at.
    #[serde(default)]
    pub program: Program,
    /// The run that was recorded.
    #[serde(default)]
    pub trace: TraceSummary,
    /// What can go wrong, and what was not decided. Findings of one [`Finding::group`] differ in
    /// their threads only.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What came out for each kind.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// What was not looked at or not seen, one sentence each.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// Faults of foretell, one sentence each. What was found in spite of them is as good as ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The columns of the papers' tables, and what others add.
    #[serde(default)]
    pub statistics: Statistics,
    /// How much of the program's behaviour was covered, where the program was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration: Option<Exploration>,
    /// Where threads may leave the recorded path.
    #[serde(default)]
    pub divergences: Vec<Divergence>,
    /// Entries of suppression files that no longer match anything, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_suppressions: Vec<String>,
    /// Where options came from, besides the command line.
    #[serde(default, skip_serializing_if = "Config::is_empty")]
    pub config: Config,
    /// The events that the timelines refer to, in recorded order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// The call frames that the events refer to; a frame's caller stands before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// The source lines around the places that are named, by file and line, as they were when the
    /// report was made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, BTreeMap<u32, String>>,
}

/// Where options came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The configuration files that were used.
    #[serde(default)]
    pub files: Vec<String>,
}

impl Config {
    fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// How much of a program's behaviour with one input was covered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exploration {
    /// Every behaviour was covered: the threads can take no other path under any schedule, and every
    /// property was decided on each.
    pub covered: bool,
    /// Classes of paths that were found. A class stands for all interleavings in which each thread takes
    /// the same choices.
    pub classes: usize,
    /// How many interleavings they stand for: orders of the events that several threads can tell apart.
    /// Absent if not everything was covered, or if they are too many to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleavings: Option<f64>,
    /// Questions that were asked whether a thread can take another path.
    pub questions: usize,
    /// Questions that are open.
    pub open: usize,
    /// Runs that were random walks, where there were too many questions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub walks: usize,
    /// Why they are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<OpenQuestions>,
    /// A digest of the set of classes, the same for the same classes of one build of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The command with which an exploration that was ended goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_on: Option<String>,
    /// Which part of an exploration this is, where it was divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// A part of an exploration, and what joining it with the others takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 1.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
    /// What was tested and how: the same for all parts.
    pub subject: BTreeMap<String, String>,
    /// Digests of the classes that were found, that of the recorded run first.
    pub classes: Vec<String>,
}

/// Questions that are open for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestions {
    /// Why, as data (closed list).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Doubt>,
    /// Why, for people.
    pub reason: String,
    /// How many.
    pub questions: usize,
}

/// The program that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Its build id in hexadecimal.
    #[serde(default)]
    pub build_id: Option<String>,
}

/// The recorded run in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// The trace file.
    #[serde(default)]
    pub file: String,
    /// How many threads.
    pub threads: usize,
    /// How many events.
    pub events: usize,
    /// Does the trace carry expressions?
    #[serde(default)]
    pub symbolic: bool,
    /// What the recorder did not see, one sentence each.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// What was held at its recorded value, one sentence each.
    #[serde(default)]
    pub restrictions: Vec<String>,
    /// What the run depended on that is not controlled; each is also a sentence in `gaps`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Outside>,
    /// The threads' names, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_names: Vec<String>,
}

/// Something that a run depended on and that is not controlled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// What it is: `blocked-call`, `spinning`, `passed-call`, `signal`, `handler`, `alarm`, `timer`,
    /// `aio`, `process`, `shared-object`, `task`, `exec`, `asynchronous-cancellation`, `library`,
    /// `still-in-call`, `size-limit`, `busy`, `varying-input`, `assembler`, `interruption`.
    pub cause: String,
    /// The thread: `main`, else its creation path, `0.1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread: String,
    /// The function or system call, the signal, the process, or what else the cause is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// Where in the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// As `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// No thread could run, and this could still have woken one when the run was ended.
    #[serde(default)]
    pub awaited: bool,
    /// How often.
    #[serde(default)]
    pub times: u64,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The program was made to do it.
    Confirmed,
    /// There is a validated schedule that nobody has forced, or that could not be forced.
    Predicted,
    /// Not decided; [`Finding::reason`] says why.
    #[default]
    Unknown,
    /// It was forced, and nothing bad can come of it.
    Refuted,
}

impl Status {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Confirmed => "confirmed",
            Status::Predicted => "predicted",
            Status::Unknown => "unknown",
            Status::Refuted => "refuted",
        }
    }
}

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

/// Recorded and predicted order of the events that matter. The numbers are those of
/// [`Event::id`], which is the recorded order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Events before the first one here, which both orders share and which are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// As they took place.
    pub recorded: Vec<u32>,
    /// As they take place in the prediction.
    pub predicted: Vec<u32>,
    /// What the threads stand before when the predicted order is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<u32>,
    /// Events of the predicted order that overtook another thread's event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<u32>,
    /// The few steps that tell the story.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<u32>,
    /// Values in the predicted order that differ from the recorded ones; `?` where they are not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<u32, String>,
    /// Who wrote what a read returns, in both orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads_from: Vec<ReadsFrom>,
}

impl Timeline {
    /// Its events have greater numbers, by `first`.
    pub(crate) fn renumber(&mut self, first: u32) {
        let lists = [
            &mut self.recorded,
            &mut self.predicted,
            &mut self.next,
            &mut self.moved,
            &mut self.steps,
        ];
        lists.into_iter().flatten().for_each(|id| *id += first);
        let values = std::mem::take(&mut self.values);
        self.values = values.into_iter().map(|(id, value)| (id + first, value)).collect();
        for read in &mut self.reads_from {
            read.read += first;
            read.recorded = read.recorded.map(|write| write + first);
            read.predicted = read.predicted.map(|write| write + first);
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Who wrote what a read returns; absent for the initial value and for writes that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadsFrom {
    /// The read.
    pub read: u32,
    /// The write, as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u32>,
    /// The write, as predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u32>,
}

/// An event of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its place in the recorded order.
    pub id: u32,
    /// The thread's number, see [`TraceSummary::thread_names`].
    pub thread: u32,
    /// A word of the text format: `read`, `acquire`, ...
    pub op: String,
    /// The variable, lock, thread or block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The recorded value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The call that it is in, by its number in [`Report::frames`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
    /// The locks that its thread holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<String>,
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The call it was made in, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<u32>,
    /// The function that was called.
    pub function: String,
    /// Where it was called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it was called from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Somebody decided that a finding need not be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    /// Why.
    pub reason: String,
    /// The file that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Until when, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// What came out for one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Which kind.
    pub kind: FindingKind,
    /// So many code locations were asked about.
    pub questions: usize,
    /// So many can go wrong.
    pub predicted: usize,
    /// So many cannot.
    pub impossible: usize,
    /// So many are not decided.
    pub unknown: usize,
    /// Nothing can go wrong in any interleaving of the trace's events.
    pub holds_in_all_interleavings: bool,
}

/// A feasible prefix whose last step sees something else than in the run; what the thread does then
/// is unknown until somebody tries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// Stays the same as long as the code locations and the threads do.
    pub id: String,
    /// The last step.
    pub access: Access,
    /// What it decides: `branch`, `address`, `outcome`, `path` or `unrecorded`.
    pub feeds: String,
    /// The branch or access that it decides.
    #[serde(default)]
    pub fed: Option<Access>,
    /// What it saw in the run.
    #[serde(default)]
    pub recorded: Option<String>,
    /// What it sees now.
    #[serde(default)]
    pub seen: Option<String>,
    /// Who wrote that.
    #[serde(default)]
    pub source: Option<Access>,
    /// Another write overlaps in part.
    #[serde(default)]
    pub overlapping: bool,
    /// One sentence for people.
    pub detail: String,
    /// The schedule file.
    #[serde(default)]
    pub schedule: Option<String>,
    /// How often the thread changes in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<usize>,
    /// The schedule as events of the trace.
    pub interleaving: Interleaving,
}

/// The columns of the papers' tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Variables that more than one thread accesses.
    pub shared_variables: usize,
    /// Events of the largest part that was encoded.
    pub events_after_slicing: usize,
    /// Blocks that should be atomic.
    pub regions: usize,
    /// Three-access patterns.
    pub original_patterns: usize,
    /// Left by must-happens-before.
    pub after_must_order: usize,
    /// Left by locksets and acquisition histories.
    pub after_locksets: usize,
    /// Patterns left out because both accesses of the thread are the same instruction.
    pub filtered_loops: usize,
    /// Patterns left out because too much lies between the two accesses of the thread.
    pub filtered_distant: usize,
    /// Patterns left out because they took place in a run that is called correct.
    pub filtered_known_good: usize,
    /// Atomicity violations.
    pub atomicity_violations: usize,
    /// Places that were asked whether a thread can leave its path there.
    pub divergence_questions: usize,
    /// So many of them where it cannot.
    pub divergences_impossible: usize,
    /// So many of them where that is not decided.
    pub divergences_undecided: usize,
    /// Seconds for filters and candidates.
    pub candidate_seconds: f64,
    /// Seconds for encoding and solving.
    pub solve_seconds: f64,
    /// Questions to the solver.
    pub solver_checks: u64,
    /// Conflicts of the solver.
    pub solver_conflicts: u64,
    /// Of a test.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestStatistics>,
}

/// What `foretell test` counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestStatistics {
    /// How the recorded run ended, as [`ForcedRun::ended`].
    #[serde(default)]
    pub recorded_end: String,
    /// The same as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_end_kind: Option<EndKind>,
    /// Runs of the program, the recorded one included.
    pub runs: usize,
    /// Those of them that were made in this session; the others are from a store.
    #[serde(default)]
    pub runs_made: usize,
    /// Runs with a different partial order of their events.
    #[serde(default)]
    pub behaviours: usize,
    /// Classes of paths.
    #[serde(default)]
    pub paths: usize,
    /// Predictions that were forced.
    #[serde(default)]
    pub forced: usize,
    /// Findings that were confirmed.
    #[serde(default)]
    pub confirmed: usize,
    /// Predictions that a forced run refuted.
    #[serde(default)]
    pub refuted: usize,
    /// Predictions without an answer.
    #[serde(default)]
    pub open: usize,
    /// Predictions that came true without a visible effect.
    #[serde(default)]
    pub folded: usize,
    /// Predictions that the budget left untried.
    #[serde(default)]
    pub untried: usize,
    /// Branches of the recorded run.
    #[serde(default)]
    pub branches: u64,
    /// Those of them that the predictor missed, and which were therefore stored.
    #[serde(default)]
    pub branches_stored: u64,
}

impl TestStatistics {
    /// Adds what another part of the same test counted. Findings and classes are not summed: parts
    /// share them.
    pub fn add_runs(&mut self, other: &Self) {
        self.runs += other.runs;
        self.runs_made += other.runs_made;
        self.behaviours += other.behaviours;
        self.forced += other.forced;
        self.refuted += other.refuted;
        self.open += other.open;
        self.folded += other.folded;
        self.untried += other.untried;
    }
}

/// What a result comes to; the exit code follows from it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// A bug happened.
    Confirmed,
    /// A bug was predicted and not forced.
    Predicted,
    /// Nothing was found, and foretell itself failed somewhere.
    Failed,
    /// Nothing was found, and something was not decided or not seen.
    Incomplete,
    /// Nothing was found.
    NothingFound,
}

/// Why a text is not a result.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not JSON, or not of this shape.
    #[error("not a result of foretell: {0}")]
    Malformed(serde_json::Error),
    /// Of another version.
    #[error("result version {0} is not known; this program reads version 1")]
    UnknownVersion(u64),
    /// JSON of another command, without findings.
    #[error(
        "there are no findings in this JSON; save a result with `foretell --format json predict \
         TRACE > result.json`"
    )]
    NoFindings,
}

impl Report {
    /// Reads a result that was printed with `--format json`.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(ReportError::Malformed)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(VERSION) => {
                return Err(ReportError::UnknownVersion(version));
            }
            Some(_) if value.get("findings").is_none() => return Err(ReportError::NoFindings),
            _ => {}
        }
        // From the text again, so that an error names line and column.
        let report: Report = serde_json::from_str(text).map_err(ReportError::Malformed)?;
        Ok(report)
    }

    /// The result as `--format json` prints it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("all keys are strings or numbers")
    }

    /// The event with this number, if it is in the report.
    pub fn event(&self, id: u32) -> Option<&Event> {
        self.events.binary_search_by_key(&id, |event| event.id).ok().map(|at| &self.events[at])
    }

    /// The name of a thread.
    pub fn thread_name(&self, thread: u32) -> String {
        match self.trace.thread_names.get(thread as usize) {
            Some(name) => name.clone(),
            None => format!("thread {thread}"),
        }
    }

    /// A source line, if the report has it.
    pub fn source_line(&self, file: &str, line: u32) -> Option<&str> {
        self.sources.get(file)?.get(&line).map(String::as_str)
    }

    /// The findings that count: those that nobody suppressed.
    pub fn active(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.suppressed.is_none())
    }

    /// What the result comes to: something confirmed, else something predicted, else a fault of foretell, else
    /// something undecided or unseen. What is suppressed says nothing.
    pub fn conclusion(&self) -> Conclusion {
        let any = |status| self.active().any(|finding| finding.status == status);
        if any(Status::Confirmed) {
            Conclusion::Confirmed
        } else if any(Status::Predicted) {
            Conclusion::Predicted
        } else if !self.errors.is_empty() {
            Conclusion::Failed
        } else if any(Status::Unknown)
            || !self.not_seen().is_empty()
            || self.exploration.as_ref().is_some_and(|explored| !explored.covered)
        {
            Conclusion::Incomplete
        } else {
            Conclusion::NothingFound
        }
    }

    /// Everything that was not seen, from the recorder and the predictor, each sentence once.
    pub fn not_seen(&self) -> Vec<&str> {
        let mut said: Vec<&str> = Vec::new();
        for sentence in self.trace.gaps.iter().chain(&self.unseen) {
            if !said.contains(&sentence.as_str()) {
                said.push(sentence);
            }
        }
        said
    }
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
