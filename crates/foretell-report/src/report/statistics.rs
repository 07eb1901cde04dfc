//! What was done and how much is left open.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::{Access, Interleaving};
use super::{Doubt, EndKind, is_zero};

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
    /// How the recorded run ended, as [`ForcedRun::ended`](super::ForcedRun::ended).
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
