//! `foretell replay`: the schedule on the program once more, and whether the same happened.
//!
//! A schedule belongs to a build and an input; with any other, what it says about steps means
//! nothing, and it is refused. What the forced run did is seen from the run itself where it ended
//! badly; else it is compared with a run that nobody forces.

use std::fmt;
use std::time::Duration;

use foretell_record::{Policy, RunEnd, find_program};
use foretell_trace::schedule::{Mismatch, Schedule};

use crate::control::{Cause, Controls};
use crate::effect::{Difference, compare, fatal};
use crate::forced::{Violation, forced_steps};
use crate::judge::{Verdict, outcome};
use crate::limits::MOST_POINTS;
use crate::program::{InputDigest, Program};
use crate::run::{Limits, Run, RunError, Runner};
use crate::session::{UNINTERRUPTED, forced_run};

/// Why a schedule cannot be replayed.
#[derive(Debug)]
pub enum ReplayError {
    /// It was made for another build.
    Build(Mismatch),
    /// The program has no build id to compare.
    NoBuildId,
    /// It was made with another input; what differs.
    Input(&'static str),
    /// The input cannot be read.
    Unreadable(std::io::Error),
    /// A line of it makes no sense here.
    Schedule(String),
    /// It has no steps.
    Empty,
    /// The program could not be run.
    Run(RunError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Build(mismatch) => mismatch.fmt(f),
            ReplayError::NoBuildId => f.write_str(
                "the program has no build id to hold against the schedule's; link it with \
                 -Wl,--build-id, record and predict again",
            ),
            ReplayError::Input(what) => write!(
                f,
                "not the same as when the schedule was made: {what}; give the same input, or record \
                 and predict again"
            ),
            ReplayError::Unreadable(error) => {
                write!(f, "cannot read the program's input: {error}")
            }
            ReplayError::Schedule(why) => f.write_str(why),
            ReplayError::Empty => f.write_str("the schedule has no steps"),
            ReplayError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}

/// What a replay did.
#[derive(Debug)]
pub struct Replayed {
    /// What the schedule is to show.
    pub violation: Violation,
    /// What came out.
    pub verdict: Verdict,
    /// The forced run.
    pub run: Run,
}

impl Replayed {
    /// Is it a bug, and did it happen again?
    pub fn counts(&self) -> bool {
        self.verdict.counts(self.violation)
    }
}

/// Is the schedule for this program, build and input? What it is to show.
pub fn check(schedule: &Schedule, program: &Program) -> Result<Violation, ReplayError> {
    if schedule.steps.is_empty() {
        return Err(ReplayError::Empty);
    }
    if schedule.build_id.is_some() {
        let id = find_program(&program.path).and_then(|path| foretell_record::build_id(&path));
        if id.is_none() && find_program(&program.path).is_some() {
            return Err(ReplayError::NoBuildId);
        }
        schedule.check(id.as_deref(), None).map_err(ReplayError::Build)?;
    }
    if let Some(input) = &schedule.input {
        let expected: InputDigest = input.parse().map_err(|_| {
            ReplayError::Schedule(format!("`{input}` in the schedule is no input digest"))
        })?;
        let found = program.digest().map_err(ReplayError::Unreadable)?;
        if let Some(what) = found.difference(&expected) {
            return Err(ReplayError::Input(what));
        }
    }
    match &schedule.violation {
        Some(word) => word.parse().map_err(ReplayError::Schedule),
        // Written by an older foretell, or by hand.
        None => Ok(Violation::InferredBlock),
    }
}

/// Replays in gdb, for the user to look around at the violating event. Says how the run ended.
pub fn debug(
    schedule: &Schedule,
    program: &Program,
    after: &Policy,
) -> Result<RunEnd, ReplayError> {
    let violation = check(schedule, program)?;
    let runner = Runner::new(program).map_err(ReplayError::Run)?;
    runner.debug(forced_steps(schedule, violation), after.clone()).map_err(ReplayError::Run)
}

/// Replays.
pub fn replay(
    schedule: &Schedule,
    program: &Program,
    after: &Policy,
    run_time: Duration,
) -> Result<Replayed, ReplayError> {
    let violation = check(schedule, program)?;
    let runner = Runner::new(program).map_err(ReplayError::Run)?;
    let limits = limits(schedule, run_time);
    let run = forced_run(&runner, schedule, violation, after, limits).map_err(ReplayError::Run)?;
    let (difference, plain) = match fatal(&run) {
        Some((effect, change)) => (Difference::new(effect, change, &run), None),
        None => {
            let plain = runner.run(Vec::new(), UNINTERRUPTED, limits).map_err(ReplayError::Run)?;
            (compare(&plain, &run), Some(plain))
        }
    };
    let outcome = outcome(schedule, violation, &run, &difference);
    let mut verdict = Verdict::new(outcome, difference);
    if let Some(plain) = &plain {
        // What was unclear when it was found has no schedule.
        let controls = Controls::new(&runner, plain, &UNINTERRUPTED, limits);
        controls.apply(&mut verdict, &run, Cause::LostUpdate);
    }
    Ok(Replayed { violation, verdict, run })
}

/// Forces the schedule once more and gives the run, without judging it: that takes other runs.
pub fn rerun(
    schedule: &Schedule,
    program: &Program,
    after: &Policy,
    run_time: Duration,
) -> Result<Run, ReplayError> {
    let violation = check(schedule, program)?;
    let runner = Runner::new(program).map_err(ReplayError::Run)?;
    forced_run(&runner, schedule, violation, after, limits(schedule, run_time))
        .map_err(ReplayError::Run)
}

fn limits(schedule: &Schedule, time: Duration) -> Limits {
    let points = (100 * schedule.steps.len() as u64 + 500_000).min(MOST_POINTS);
    Limits { time, points }
}
