//! Fiber mode does what futex mode does, event for event.

mod common;

use common::{build, options, recorded, steps};
use foretell_record::{Policy, RunEnd, Switching};
use foretell_trace::{Op, Trace};

/// The events without what comes from outside.
fn order(trace: &Trace) -> Vec<(u32, u32, &'static str)> {
    let events = trace.events.iter().filter(|event| !matches!(event.op, Op::Input { .. }));
    events.map(|event| (event.thread.0, event.index, event.op.keyword())).collect()
}

#[test]
fn both_modes_make_the_same_run() {
    let policies = [
        Policy::RoundRobin { quantum: 1 },
        Policy::RoundRobin { quantum: 7 },
        Policy::Random { seed: 5, mean: 2 },
    ];
    for (name, words) in [
        ("counter", &[][..]),
        ("every_primitive", &[]),
        ("handover", &[]),
        ("files", &[]),
        ("timed", &[]),
        ("cancelled", &[]),
        ("forks", &[]),
        ("leaves", &[]),
        ("tries", &[]),
        ("stale", &[]),
        ("freed", &[]),
        ("ends", &["fork"]),
    ] {
        let Some(program) = build(name) else { return };
        let mut options = options(&program, words);
        for policy in &policies {
            options.policy = policy.clone();
            options.switching = Switching::Futex;
            let (futex, expected) = recorded(&options);
            options.switching = Switching::Fiber;
            let (fiber, found) = recorded(&options);
            assert_eq!(fiber.end, futex.end, "{name}, {policy}");
            // When a child process ends is not for the scheduler to say.
            if !["forks", "ends"].contains(&name) {
                assert!(order(&found) == order(&expected), "{name}, {policy}");
            }
        }
    }
}

#[test]
fn fatal_signals_and_deadlocks_are_seen() {
    for (name, way) in [
        ("ends", "abort"),
        ("ends", "assert"),
        ("ends", "segv"),
        ("ends", "raise"),
        ("ends", "handler"),
        ("ends", "_exit"),
        ("deadlock", ""),
    ] {
        let Some(program) = build(name) else { return };
        let mut options = options(&program, &[way]);
        let (futex, _) = recorded(&options);
        options.switching = Switching::Fiber;
        let (fiber, _) = recorded(&options);
        match (&fiber.end, &futex.end) {
            (RunEnd::Deadlock(_), RunEnd::Deadlock(_)) => {}
            (fiber, futex) => assert_eq!(fiber, futex, "{name} {way}"),
        }
        let signal = |crash: Option<foretell_record::Crash>| crash.map(|crash| crash.signal);
        assert_eq!(signal(fiber.crash), signal(futex.crash), "{name} {way}");
    }
}

#[test]
fn signal_handlers_end_the_mode() {
    let Some(program) = build("signals") else { return };
    let mut options = options(&program, &[]);
    options.switching = Switching::Fiber;
    for policy in [Policy::AFTER, Policy::Os] {
        options.policy = policy;
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "{}", options.policy);
    }
}

#[test]
fn a_schedule_is_obeyed_in_either_mode() {
    let Some(program) = build("every_primitive") else { return };
    let mut options = options(&program, &[]);
    options.switching = Switching::Fiber;
    options.policy = Policy::Random { seed: 11, mean: 3 };
    let (_, trace) = recorded(&options);
    options.steps = steps(&trace);
    options.policy = Policy::AFTER;
    for switching in [Switching::Futex, Switching::Fiber] {
        options.switching = switching;
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0));
    }
}
