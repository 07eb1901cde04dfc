//! What an exploration came to, and why questions are open.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a question is open (closed list, the JSON contract's `kind` of a reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// The time, or the number of runs, was over.
    Limit,
    /// The forced run did not come to an end within its limits.
    NoEnd,
    /// The run has more events than are asked about.
    LongRun,
    /// The solver did not decide it.
    Undecided,
    /// The forced run did not do what was forced.
    LeftTheSchedule,
    /// The forced run belongs to a class that was known.
    NothingNew,
    /// A thread whose run was cut off could not be followed further.
    CutOff,
    /// A call may time out, or fail rather than wait: that it comes out differently is not asked.
    HeldOutcome,
    /// Another part of the exploration covers the rest.
    OtherPart,
    /// Other paths were not to be taken.
    Declined,
    /// The trace does not say what was computed from what.
    NoTerms,
    /// The trace is of a binary, of which not everything is seen.
    MachineCode,
    /// The run could not be made, or its trace not be modelled.
    NoRun,
    /// The solver's answer was refused by the validator: a fault of ours.
    Refused,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Limit => "the time limit or the number of runs was reached",
            Doubt::NoEnd => "the forced run did not end within its limits (--run-limit)",
            Doubt::LongRun => "the run is too long",
            Doubt::Undecided => "the solver did not decide",
            Doubt::LeftTheSchedule => "the forced run left its schedule",
            Doubt::NothingNew => "the forced run took a path that was known already",
            Doubt::CutOff => {
                "a thread blocked for ever, or its run failed, and no run shows what it would do next"
            },
            Doubt::HeldOutcome => "how a call comes out (a look, a time limit, a signal, a cancellation) or what a clock shows was not varied",
            Doubt::OtherPart => "left to the other parts of the exploration",
            Doubt::Declined => "only the recorded path was asked for",
            Doubt::MachineCode => {
                "what a binary's C library reads and writes by itself is not seen"
            }
            Doubt::NoTerms => "the recording does not say what was computed from what",
            Doubt::NoRun => "the program could not be run, or its trace could not be read",
            Doubt::Refused => "the validator refused the solver's answer",
        })
    }
}

/// What an exploration came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exploration {
    /// Classes that were found.
    pub classes: usize,
    /// How many interleavings they stand for, if they cover everything and that could be counted.
    pub interleavings: Option<f64>,
    /// Questions that were asked.
    pub asked: usize,
    /// Runs that were random walks.
    pub walks: usize,
    /// How many questions are open, and why.
    pub open: BTreeMap<Doubt, usize>,
    /// The classes as numbers that are the same in every process, in the order in which they were found.
    pub digests: Vec<u64>,
}

impl Exploration {
    /// Do the classes cover every behaviour of the program with this input?
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn doubt(&mut self, doubt: Doubt, questions: usize) {
        if questions > 0 {
            *self.open.entry(doubt).or_default() += questions;
        }
    }
}
