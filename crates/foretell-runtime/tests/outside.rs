//! What the scheduler must not be confused by: system calls that block, time, signals, forks,
//! cancellation, tries. Each is handled, the same in every run, or refused with a word.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{build, options, recorded, steps};
use foretell_record::{Cause, Policy, RunEnd};

/// Policies that make the same run each time.
const POLICIES: [Policy; 4] = [
    Policy::AFTER,
    Policy::RoundRobin { quantum: 1 },
    Policy::Random { seed: 1, mean: 2 },
    Policy::Random { seed: 2, mean: 9 },
];

#[test]
fn what_other_threads_put_into_a_pipe_is_there_at_the_same_point_each_time() {
    let Some(program) = build("files") else { return };
    let mut options = options(&program, &[]);
    for policy in POLICIES {
        options.policy = policy;
        let (outcome, first) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
        let (_, second) = recorded(&options);
        let order = |trace: &foretell_trace::Trace| -> Vec<(u32, u32, &'static str)> {
            let events = trace.events.iter();
            events.map(|event| (event.thread.0, event.index, event.op.keyword())).collect()
        };
        assert!(order(&first) == order(&second), "{}", options.policy);
        // And a schedule of it can be obeyed.
        options.steps = steps(&first);
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
        assert_eq!(outcome.steps_taken, options.steps.len());
        options.steps.clear();
    }
}

#[test]
fn time_passes_only_when_nothing_else_can_happen() {
    let Some(program) = build("timed") else { return };
    let mut options = options(&program, &[]);
    for policy in POLICIES.into_iter().chain([Policy::Os]) {
        options.policy = policy;
        // Hours of virtual time: real ones would be ended as a hang.
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
    }
}

#[test]
fn threads_are_cancelled_wherever_they_wait() {
    let Some(program) = build("cancelled") else { return };
    let mut options = options(&program, &[]);
    for policy in POLICIES.into_iter().chain([Policy::Os]) {
        options.policy = policy;
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
    }
}

#[test]
fn a_thread_that_may_be_cancelled_anywhere_is_cancelled_at_a_call() {
    let Some(program) = build("cancelled") else { return };
    let (outcome, _) = recorded(&options(&program, &["asynchronous"]));
    assert_eq!(outcome.end, RunEnd::Exit(0));
}

#[test]
fn a_signal_handler_cuts_a_wait_short() {
    let Some(program) = build("signals") else { return };
    let mut options = options(&program, &[]);
    for policy in [Policy::AFTER, Policy::Os] {
        options.policy = policy;
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
    }
}

#[test]
fn a_forked_child_goes_on_unrecorded() {
    let Some(program) = build("forks") else { return };
    let mut options = options(&program, &[]);
    for policy in POLICIES {
        options.policy = policy;
        let (outcome, trace) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
        assert_eq!(trace.threads.len(), 2, "the child's thread is none of ours");
        let said = outcome.outside.iter().any(|outside| outside.cause == Cause::Process);
        assert!(said, "{:?}", outcome.outside);
    }
}

#[test]
fn the_main_thread_may_leave_first() {
    let Some(program) = build("leaves") else { return };
    let mut options = options(&program, &[]);
    for policy in POLICIES {
        options.policy = policy;
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(5), "{}", options.policy);
    }
}

#[test]
fn memory_can_be_used_right_after_it_was_freed() {
    let Some(program) = build("stale") else { return };
    let mut options = options(&program, &[]);
    options.policy = Policy::RoundRobin { quantum: 1000 };
    let (_, trace) = recorded(&options);
    let all = steps(&trace);
    let (main, worker): (Vec<_>, Vec<_>) = all.into_iter().partition(|s| s.thread.0.is_empty());
    let free = main.iter().rposition(|step| &*step.operation == "free").expect("frees");
    let read = worker.iter().position(|step| &*step.operation == "read").expect("reads");
    options.steps = main[..=free].iter().chain(&worker[..=read]).cloned().collect();
    let (outcome, forced) = recorded(&options);
    assert_eq!(outcome.steps_taken, options.steps.len(), "{:?}", outcome.end);
    let order: Vec<&str> = forced.events.iter().map(|event| event.op.keyword()).collect();
    let freed = order.iter().rposition(|&word| word == "free").expect("freed");
    let next = order[freed + 1..].iter().find(|word| !foretell_wire::is_local(word));
    assert_eq!(next, Some(&"read"), "the worker's, not the main thread's next access");
}

#[test]
fn every_run_sees_the_same_time() {
    let Some(program) = build("stale") else { return };
    let mut options = options(&program, &[]);
    options.policy = Policy::AFTER;
    let (_, first) = recorded(&options);
    std::thread::sleep(Duration::from_millis(1100));
    let (_, second) = recorded(&options);
    let times = |trace: &foretell_trace::Trace| -> Vec<u64> {
        let of = |event: &foretell_trace::Event| match &event.op {
            foretell_trace::Op::Input { source, value } if &**source == "time" => Some(*value),
            _ => None,
        };
        trace.events.iter().filter_map(of).collect()
    };
    assert_eq!(times(&first).len(), 1);
    assert_eq!(times(&first), times(&second));
}

#[test]
fn what_a_try_finds_can_be_forced() {
    let Some(program) = build("tries") else { return };
    let mut options = options(&program, &[]);
    let mut seen = BTreeMap::new();
    for seed in 0..60 {
        options.policy = Policy::Random { seed, mean: 2 };
        let (outcome, trace) = recorded(&options);
        let RunEnd::Exit(status) = outcome.end else { panic!("{:?}", outcome.end) };
        seen.insert(status, steps(&trace));
    }
    assert!(seen.len() >= 3, "tries fail and succeed: {:?}", seen.keys());
    for (status, steps) in seen {
        options.policy = Policy::AFTER;
        options.steps = steps;
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(status));
    }
}
