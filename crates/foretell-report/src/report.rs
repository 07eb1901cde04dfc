//! The result of foretell as data: these types *are* the JSON contract, version 1 (schema:
//! `schema/result-1.schema.json`).
//!
//! Everything that a person is shown stands in a [`Report`], source lines included, so every
//! renderer takes a `&Report` and nothing else, and `foretell report RESULT.json` shows on another
//! machine what was found on this one. Kinds and states are closed lists; members may be added
//! within version 1, and every member that version 1 did not have from the start has a default.

mod finding;
mod statistics;
mod timeline;

use std::collections::BTreeMap;

pub use foretell_explore::Doubt;
pub use foretell_force::effect::Effect;
pub use foretell_force::run::{BlockedThread, EndKind};
pub use foretell_predict::FindingKind;
use serde::{Deserialize, Serialize};

pub use finding::{
    Access, Edge, EventName, Explanation, Finding, Fix, ForcedRun, Formula, Interleaving, Place,
    StackFrame,
};
pub use statistics::{Divergence, Exploration, OpenQuestions, Part, Statistics, TestStatistics};
pub use timeline::{Event, Frame, ReadsFrom, Timeline};

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

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &usize) -> bool {
    *number == 0
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
