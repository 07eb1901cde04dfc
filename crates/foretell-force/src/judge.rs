//! What a forced run says about its prediction.
//!
//! | outcome | when |
//! |---|---|
//! | confirmed | the violation happened; the effect says what came of it |
//! | benign | it happened and nothing came of it |
//! | refuted | the program took all steps that lead to it, and did not do it |
//! | not forced | the program left the schedule, or something outside stood in the way: an operation that cannot be controlled, a limit |
//!
//! A run that leaves its schedule refutes nothing: the prediction is about another run. A bad end that
//! was not predicted ([`Verdict::ended_otherwise`]) confirms no prediction; it is a finding of its own.
//!
//! A torn block that we guessed, or a use before a definition, is a bug only if somebody can see
//! it: an effect `path` or `none` is folded away, as is a data race in a binary, also one that could not be forced. A data race in source code, a use after free, a misuse of a lock
//! and a torn block that the user marked are bugs whatever came of them.

use foretell_record::{RunEnd, endless};
use foretell_trace::schedule::Schedule;

use crate::effect::{Difference, Effect, compare, fatal};
use crate::forced::{NotFollowed, Violation, followed};
use crate::run::Run;

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It happened, and this came of it.
    Confirmed(Effect),
    /// It happened, and nothing came of it.
    Benign,
    /// The program does not do it; why.
    Refuted(String),
    /// It could not be tried; why.
    NotForced(String),
}

/// An outcome and the run that it comes from.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What came out.
    pub outcome: Outcome,
    /// How the forced run differs from the recorded one.
    pub difference: Difference,
    /// It wrote what no run without interruptions does, on another path: it may be lawful.
    pub is_unclear: bool,
}

impl Verdict {
    /// An outcome that nothing is unclear about.
    pub fn new(outcome: Outcome, difference: Difference) -> Self {
        Self { outcome, difference, is_unclear: false }
    }

    /// What came of the violation, if it happened.
    pub fn effect(&self) -> Option<Effect> {
        match self.outcome {
            Outcome::Confirmed(effect) => Some(effect),
            Outcome::Benign => Some(Effect::None),
            Outcome::Refuted(_) | Outcome::NotForced(_) => None,
        }
    }

    /// The prediction did not come true, and the run ended badly all the same.
    pub fn ended_otherwise(&self) -> bool {
        self.effect().is_none() && self.difference.effect.is_fatal()
    }

    /// It could not be tried.
    pub fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::NotForced(_))
    }

    /// The program does not do it.
    pub fn is_refuted(&self) -> bool {
        matches!(self.outcome, Outcome::Refuted(_))
    }

    /// Is it a bug that the user has to hear about (exit code 10)?
    pub fn counts(&self, violation: Violation) -> bool {
        self.effect().is_some_and(|effect| {
            effect.is_visible()
                || matches!(
                    violation,
                    Violation::Race
                        | Violation::UseAfterFree
                        | Violation::Overrun
                        | Violation::MarkedBlock
                        | Violation::Misuse
                )
        })
    }
}

/// Judges a forced run.
pub fn judge(schedule: &Schedule, violation: Violation, recorded: &Run, forced: &Run) -> Verdict {
    let difference = compare(recorded, forced);
    let outcome = outcome(schedule, violation, forced, &difference);
    Verdict::new(outcome, difference)
}

/// What the difference to the recorded run means for the prediction.
pub fn outcome(
    schedule: &Schedule,
    violation: Violation,
    forced: &Run,
    difference: &Difference,
) -> Outcome {
    match &forced.end {
        RunEnd::Refused(why) => return Outcome::NotForced(why.clone()),
        RunEnd::Hang => return Outcome::NotForced("the run was ended by the time limit".into()),
        // It may be a livelock, or only long.
        RunEnd::Livelock(threads) => {
            return Outcome::NotForced(forced.said(&endless(threads)));
        }
        RunEnd::Stopped => {
            return Outcome::NotForced("the run was ended because foretell had to end".into());
        }
        _ => {}
    }
    let effect = difference.effect;
    if let Err(left) = followed(schedule, violation, forced) {
        return match left {
            // On the way to nothing in particular every bad end counts.
            _ if violation == Violation::OtherPath && effect.is_fatal() => {
                Outcome::Confirmed(effect)
            }
            NotFollowed::LeftSchedule(why) => Outcome::NotForced(why),
            NotFollowed::Elsewhere(why) => Outcome::Refuted(why),
        };
    }
    // Also when the recorded run ended the same way.
    match (violation, fatal(forced).map(|(effect, _)| effect)) {
        (Violation::Assertion, Some(effect @ Effect::Assertion))
            if fails_last(schedule, forced) =>
        {
            return Outcome::Confirmed(effect);
        }
        // The program calls `abort` by itself, where no assertion is seen to fail.
        (Violation::Assertion, Some(effect @ Effect::Crash)) if aborts_last(schedule, forced) => {
            return Outcome::Confirmed(effect);
        }
        (Violation::Fault, Some(effect @ Effect::Crash))
        | (Violation::Deadlock, Some(effect @ Effect::Hang)) => return Outcome::Confirmed(effect),
        _ => {}
    }
    match violation {
        Violation::Assertion => Outcome::Refuted("the assertion held".into()),
        Violation::Fault => Outcome::Refuted("the access did not fault".into()),
        Violation::Deadlock => Outcome::Refuted("the threads went on".into()),
        _ if effect == Effect::None => Outcome::Benign,
        _ => Outcome::Confirmed(effect),
    }
}

/// Is the assertion that ended the run the one that the schedule leads to: its last assertion, or, where the
/// schedule ends before it, one of the thread that took the last step? Another one that failed says nothing.
fn fails_last(schedule: &Schedule, forced: &Run) -> bool {
    let Some(failed) = forced.failed() else { return false };
    let event = forced.trace.event(failed);
    let path = &forced.trace.threads[event.thread.index()].path;
    let asserts = schedule.steps.iter().rfind(|step| &*step.operation == "assert");
    let is_it = asserts.is_some_and(|step| step.thread.0 == *path && step.index == event.index);
    let follows = schedule.steps.last().is_none_or(|step| {
        &*step.operation != "assert" && step.thread.0 == *path && event.index > step.index
    });
    is_it || follows
}

/// Did the thread of the schedule's last step call `abort`? Who ended the process did so in its turn, after
/// the last event.
fn aborts_last(schedule: &Schedule, forced: &Run) -> bool {
    let by =
        forced.trace.events.last().map(|event| &forced.trace.threads[event.thread.index()].path);
    let last = schedule.steps.last().map(|step| &step.thread.0);
    forced.end == RunEnd::Signal(libc::SIGABRT) && by.is_some() && by == last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Written;
    use foretell_record::ExecutionPath;
    use foretell_trace::format::text;
    use std::time::Duration;

    fn run(end: RunEnd, stdout: &str, events: &str) -> Run {
        let text = format!("foretell-trace 1\nobserved\nthread main\n{events}");
        Run {
            end,
            is_test: false,
            crash: None,
            outside: Vec::new(),
            cuts: Vec::new(),
            steps_taken: 0,
            trace: text::read(&text).unwrap_or_else(|error| panic!("{error}")),
            path: ExecutionPath::default(),
            written: Written { stdout: stdout.into(), ..Written::default() },
            time: Duration::ZERO,
            times: Default::default(),
            before: 0,
        }
    }

    /// What comes of the violation when the forced run is this one, and whether it counts.
    fn judged(violation: Violation, forced: &Run) -> (Outcome, bool) {
        let recorded = run(RunEnd::Exit(0), "fine\n", "main begin");
        let verdict = judge(&Schedule::default(), violation, &recorded, forced);
        let counts = verdict.counts(violation);
        (verdict.outcome, counts)
    }

    #[test]
    fn what_nobody_can_see_counts_for_races_and_marked_blocks_only() {
        let same = run(RunEnd::Exit(0), "fine\n", "main begin");
        for (violation, counts) in [
            (Violation::Race, true),
            (Violation::UseAfterFree, true),
            (Violation::MarkedBlock, true),
            (Violation::InferredBlock, false),
            (Violation::Order, false),
            (Violation::OtherPath, false),
        ] {
            assert_eq!(judged(violation, &same), (Outcome::Benign, counts), "{violation:?}");
        }
    }

    #[test]
    fn what_everybody_can_see_counts_always() {
        let other = run(RunEnd::Exit(0), "wrong\n", "main begin");
        for violation in [Violation::InferredBlock, Violation::Order, Violation::OtherPath] {
            assert_eq!(judged(violation, &other), (Outcome::Confirmed(Effect::Output), true));
        }
    }

    #[test]
    fn an_assertion_that_holds_a_fault_that_does_not_come_and_threads_that_go_on_are_refuted() {
        let same = run(RunEnd::Exit(0), "fine\n", "main begin");
        for violation in [Violation::Assertion, Violation::Fault, Violation::Deadlock] {
            let (outcome, counts) = judged(violation, &same);
            assert!(
                matches!(outcome, Outcome::Refuted(_)) && !counts,
                "{violation:?}: {outcome:?}"
            );
        }
    }

    #[test]
    fn a_run_that_leaves_its_schedule_refutes_nothing() {
        let recorded = run(RunEnd::Exit(0), "fine\n", "main begin\nmain end");
        let schedule = Schedule::of_trace(&recorded.trace, [foretell_trace::EventId(0)], []);
        let short = run(RunEnd::Exit(0), "fine\n", "main begin");
        for violation in [Violation::Race, Violation::Assertion, Violation::InferredBlock] {
            let verdict = judge(&schedule, violation, &recorded, &short);
            assert!(verdict.is_open(), "{violation:?}: {:?}", verdict.outcome);
        }
    }

    #[test]
    fn another_assertion_that_fails_confirms_nothing_and_is_not_forgotten() {
        let recorded = run(
            RunEnd::Exit(0),
            "fine\n",
            "main begin\nmain assert true @ a.c:1\nmain assert true @ a.c:2\nmain end",
        );
        let steps = (0..2).map(foretell_trace::EventId::from);
        let schedule = Schedule::of_trace(&recorded.trace, steps, []);
        let aborted =
            |events: &str| Run { steps_taken: 2, ..run(RunEnd::Signal(libc::SIGABRT), "", events) };
        let other = aborted("main begin\nmain assert true @ a.c:1\nmain assert false @ a.c:2");
        let verdict = judge(&schedule, Violation::Assertion, &recorded, &other);
        assert!(verdict.is_refuted() && verdict.ended_otherwise(), "{:?}", verdict.outcome);
        let own = aborted("main begin\nmain assert false @ a.c:1");
        let verdict = judge(&schedule, Violation::Assertion, &recorded, &own);
        assert_eq!(verdict.outcome, Outcome::Confirmed(Effect::Assertion));
        let short = Run { steps_taken: 1, ..other };
        let verdict = judge(&schedule, Violation::Race, &recorded, &short);
        assert!(verdict.is_open() && verdict.ended_otherwise(), "{:?}", verdict.outcome);
    }

    #[test]
    fn other_output_is_no_failed_assertion() {
        let other = run(RunEnd::Exit(0), "wrong\n", "main begin");
        for violation in [Violation::Assertion, Violation::Fault, Violation::Deadlock] {
            assert!(matches!(judged(violation, &other).0, Outcome::Refuted(_)), "{violation:?}");
        }
    }

    #[test]
    fn a_limit_decides_nothing() {
        let limits = [
            RunEnd::Hang,
            RunEnd::Stopped,
            RunEnd::Livelock(Vec::new()),
            RunEnd::Refused("a device".into()),
        ];
        for end in limits {
            let (outcome, counts) = judged(Violation::Race, &run(end, "", "main begin"));
            assert!(matches!(outcome, Outcome::NotForced(_)) && !counts, "{outcome:?}");
        }
    }

    #[test]
    fn a_prediction_that_the_recorded_run_did_already_is_confirmed() {
        let failed = run(RunEnd::Signal(libc::SIGABRT), "", "main assert false @ a.c:1");
        let verdict = judge(&Schedule::default(), Violation::Assertion, &failed, &failed);
        assert_eq!(verdict.outcome, Outcome::Confirmed(Effect::Assertion));
    }
}
