//! Forcing a schedule: which steps the scheduler in the program has to take, and whether the
//! violation happened there (the rescheduling phase of 003, the witness replay of 000).
//!
//! A step is named by its thread's creation path and its index, so it means the same in every run.
//! A run *followed* the schedule when every step happened as the kind of event and at the place that
//! the schedule says, in the schedule's order.

pub use foretell_predict::Violation;
use foretell_record::RunEnd;
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{Event, Op, Trace, VariableId};

use crate::run::Run;

/// The steps that are forced: those of the schedule, and where the violation is in what the threads
/// stand before, that too.
pub fn forced_steps(schedule: &Schedule, violation: Violation) -> Vec<Step> {
    let next = if violation.forces_next() { &*schedule.next } else { &[] };
    schedule.steps.iter().chain(next).cloned().collect()
}

/// Why a run does not show what its schedule leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFollowed {
    /// It did not take all steps; which one differed.
    LeftSchedule(String),
    /// It took all of them, and the violation is not there.
    Elsewhere(String),
}

/// Did the run take every step, and did the violation happen there? (That every step was the right
/// kind of event at the right place in the right order is the recorder's to see.)
pub fn followed(schedule: &Schedule, violation: Violation, run: &Run) -> Result<(), NotFollowed> {
    if let RunEnd::LeftSchedule(divergence) = &run.end {
        let what = run.said(&divergence.sentence());
        return Err(NotFollowed::LeftSchedule(format!("the program left the schedule: {what}")));
    }
    // An access that faults leaves no event behind.
    let wanted = match violation {
        Violation::Fault => schedule.steps.len(),
        _ => forced_steps(schedule, violation).len(),
    };
    if run.steps_taken < wanted {
        let (taken, ended) = (run.steps_taken, run.ended());
        let why = format!("the run ended after {taken} of {wanted} steps ({ended})");
        return Err(NotFollowed::LeftSchedule(why));
    }
    match (violation, &*schedule.next) {
        (Violation::Race | Violation::MachineRace, [one, other, ..])
            if !same_location(&run.trace, one, other) =>
        {
            Err(NotFollowed::Elsewhere("the two accesses were of different locations".into()))
        }
        _ => Ok(()),
    }
}

fn same_location(trace: &Trace, one: &Step, other: &Step) -> bool {
    let variable = |step: &Step| {
        let is_it = |event: &&Event| {
            event.index == step.index && trace.threads[event.thread.index()].path == step.thread.0
        };
        match &trace.events.iter().find(is_it)?.op {
            Op::Read(access) | Op::Write(access) => Some(access.variable),
            Op::ReadModifyWrite(step) => Some(step.variable),
            _ => None,
        }
    };
    let (Some(one), Some(other)) = (variable(one), variable(other)) else { return false };
    let memory = |variable: VariableId| trace.variables[variable.index()].memory;
    match (memory(one), memory(other)) {
        (Some(a), Some(b)) => {
            a.address < b.address + u64::from(b.size) && b.address < a.address + u64::from(a.size)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Written;
    use foretell_record::ExecutionPath;
    use foretell_trace::EventId;
    use foretell_trace::format::text;
    use std::time::Duration;

    fn trace(variables: &str, events: &str) -> Trace {
        let text =
            format!("foretell-trace 1\nobserved\nthread main, worker\n{variables}\n{events}");
        text::read(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn run(trace: Trace, steps_taken: usize) -> Run {
        let written = Written::default();
        let (end, path) = (RunEnd::Exit(0), ExecutionPath::default());
        Run {
            end,
            is_test: false,
            crash: None,
            outside: Vec::new(),
            cuts: Vec::new(),
            steps_taken,
            trace,
            path,
            written,
            time: Duration::ZERO,
            times: Default::default(),
            before: 0,
        }
    }

    const RECORDED: &str = "main read x @ a.c:1\nmain write x @ a.c:2\nworker write x @ b.c:5";

    /// After the first read, both threads stand before a write.
    fn race() -> Schedule {
        Schedule::of_trace(&trace("var x", RECORDED), [EventId(0)], [EventId(1), EventId(2)])
    }

    #[test]
    fn accesses_that_race_are_forced_and_locks_that_are_waited_for_are_not() {
        assert_eq!(forced_steps(&race(), Violation::Race).len(), 3);
        assert_eq!(forced_steps(&race(), Violation::Deadlock).len(), 1);
    }

    #[test]
    fn every_step_must_be_taken() {
        let of = |taken| run(trace("var x", RECORDED), taken);
        assert_eq!(followed(&race(), Violation::Race, &of(3)), Ok(()));
        assert!(followed(&race(), Violation::Race, &of(2)).is_err());
        assert_eq!(followed(&race(), Violation::Fault, &of(1)), Ok(()), "the access faults");
    }

    #[test]
    fn accesses_of_two_locations_do_not_race() {
        let elsewhere = "main read x @ a.c:1\nmain write x @ a.c:2\nworker write y @ b.c:5";
        let run = run(trace("var x\nvar y", elsewhere), 3);
        assert!(followed(&race(), Violation::Race, &run).is_err());
    }
}
