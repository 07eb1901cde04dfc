//! Small C programs, built with the TSan ABI and recorded: the trace is right, and the program does
//! not notice.

mod common;

use std::process::{Command, Output};
use std::time::Duration;

use common::{PATIENCE, build, check, library, options, recorded, run, scratch, steps};
use foretell_record::{
    Awaited, Cause, InSchedules, Policy, RecordError, RecordOptions, RunEnd, endless, record,
    record_sync_only, standstill,
};
use foretell_trace::schedule::{CreationPath, Step};
use foretell_trace::{Op, SyncOp, Trace};
use foretell_wire::is_local;

#[test]
fn a_racy_counter_is_recorded_as_it_ran() {
    let Some(program) = build("counter") else { return };
    let (outcome, trace) = recorded(&options(&program, &[]));
    assert_eq!(outcome.end, RunEnd::Exit(0));
    assert!(outcome.instrumented && !outcome.symbolic && outcome.gaps.is_empty(), "{outcome:?}");
    assert_eq!(trace.threads.len(), 3);
    assert_eq!(trace.threads[2].path, [1]);
    let counter = trace.variables.iter().position(|variable| &*variable.name == "counter");
    let counter = counter.expect("the symbol table names it");
    let written: Vec<u64> = trace
        .events
        .iter()
        .filter_map(|event| match &event.op {
            Op::Write(access) if access.variable.index() == counter => access.value,
            _ => None,
        })
        .collect();
    assert_eq!(written.last(), Some(&6));
    let fork = trace.events.iter().find(|event| matches!(event.op, Op::Fork(_))).unwrap();
    let site = &trace.sites[fork.site.expect("a site").index()];
    assert!(site.file.ends_with("counter.c") && site.line > 0 && &*site.function == "main");
}

#[test]
fn random_schedules_differ_by_seed_and_a_recorded_one_can_be_forced_again() {
    let Some(program) = build("counter") else { return };
    let mut options = options(&program, &[]);
    let mut lost = None;
    let mut statuses = std::collections::BTreeSet::new();
    for seed in 0..20 {
        options.policy = Policy::Random { seed, mean: 3 };
        let (outcome, trace) = recorded(&options);
        statuses.insert(format!("{:?}", outcome.end));
        if outcome.end == RunEnd::Exit(3) {
            lost = Some(trace);
        }
    }
    assert!(statuses.len() > 1, "no seed loses an update: {statuses:?}");
    let lost = lost.expect("a seed that loses an update");
    options.steps = steps(&lost);
    options.policy = Policy::AFTER;
    for _ in 0..5 {
        let (outcome, again) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(3));
        assert_eq!(outcome.steps_taken, lost.events.len());
        let order = |trace: &Trace| -> Vec<(u32, u32)> {
            let seen = trace.events.iter().filter(|event| !is_local(event.op.keyword()));
            seen.map(|event| (event.thread.0, event.index)).collect()
        };
        assert_eq!(order(&again), order(&lost));
    }
}

/// A step of which only the thread and the index matter.
fn any_step(thread: &[u32], index: u32, operation: &str) -> Step {
    let thread = CreationPath(thread.to_vec());
    Step { thread, index, operation: operation.into(), site: None }
}

#[test]
fn a_step_of_a_thread_that_is_not_there_is_a_divergence() {
    let Some(program) = build("counter") else { return };
    let mut options = options(&program, &[]);
    let (_, trace) = recorded(&options);
    options.steps = steps(&trace)[..3].to_vec();
    options.steps.push(any_step(&[7], 1, "write"));
    let (outcome, _) = recorded(&options);
    let RunEnd::LeftSchedule(found) = outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!((found.step, &found.found), (Some(4), &None));
    assert!(found.to_string().contains("thread 0.7 should run"), "{found}");
    assert!(found.reason.to_string().contains("has not been created"), "{found}");
}

#[test]
fn another_event_than_expected_is_a_divergence_with_its_line() {
    let Some(program) = build("counter") else { return };
    let mut options = options(&program, &[]);
    options.policy = Policy::AFTER;
    let (_, trace) = recorded(&options);
    let whole = steps(&trace);
    let at = whole.iter().position(|step| &*step.operation == "read").expect("reads the counter");

    // Another kind of step: the runtime itself ends the run there.
    options.steps = whole.clone();
    options.steps[at].operation = "release".into();
    let (outcome, short) = recorded(&options);
    let RunEnd::LeftSchedule(found) = outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!(found.step, Some(at + 1));
    let event = found.found.as_ref().expect("a read");
    assert_eq!(&*event.operation, "read");
    assert!(event.site.as_ref().is_some_and(|site| site.line > 0), "{found}");
    assert!(found.to_string().contains("should be release"), "{found}");
    assert_eq!(short.events.len(), at + 1, "ended at once");

    // Another line.
    options.steps = whole;
    options.steps[at].site.as_mut().expect("a site").line += 1000;
    let (outcome, _) = recorded(&options);
    let RunEnd::LeftSchedule(found) = outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!(found.step, Some(at + 1));
    assert_eq!(outcome.steps_taken, at);
}

#[test]
fn a_step_that_waits_for_another_thread_is_a_divergence() {
    let Some(program) = build("handover") else { return };
    let mut options = options(&program, &[]);
    options.policy = Policy::AFTER;
    let (outcome, trace) = recorded(&options);
    assert_eq!(outcome.end, RunEnd::Exit(0));
    // The worker's step after its wait for the semaphore, before the main thread posts it.
    let worker: Vec<Step> = steps(&trace).into_iter().filter(|step| step.thread.0 == [0]).collect();
    let main: Vec<Step> =
        steps(&trace).into_iter().filter(|step| step.thread.0.is_empty()).collect();
    let fork = main.iter().position(|step| &*step.operation == "fork").expect("creates a thread");
    let wait = worker.iter().position(|step| &*step.operation == "sem-wait").expect("waits");
    options.steps = main[..=fork].iter().chain(&worker[..=wait]).cloned().collect();
    let (outcome, _) = recorded(&options);
    let RunEnd::LeftSchedule(found) = outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!(&*found.expected.as_ref().expect("the wait").operation, "sem-wait");
    assert!(found.reason.to_string().contains("semaphore ready"), "{found}");
}

#[test]
fn a_program_that_ends_before_its_schedule_diverged() {
    let Some(program) = build("counter") else { return };
    let mut options = options(&program, &[]);
    let (_, trace) = recorded(&options);
    options.steps = steps(&trace);
    let count = options.steps.len();
    options.steps.push(any_step(&[], u32::MAX - 1, "write"));
    let (outcome, _) = recorded(&options);
    let RunEnd::LeftSchedule(found) = outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!((found.step, outcome.steps_taken), (Some(count + 1), count));
    assert!(found.reason.to_string().contains("ended before"), "{found}");
}

#[test]
fn what_comes_after_a_schedule_is_the_same_each_time() {
    let Some(program) = build("counter") else { return };
    let mut options = options(&program, &[]);
    let (_, trace) = recorded(&options);
    options.steps = steps(&trace)[..trace.events.len() / 3].to_vec();
    for policy in ["round-robin", "random:7", "random:8:2"] {
        options.policy = policy.parse().expect("a policy");
        let (first, before) = recorded(&options);
        for _ in 0..3 {
            let (again, after) = recorded(&options);
            assert_eq!((&again.end, &after.events), (&first.end, &before.events), "{policy}");
        }
    }
    for wrong in ["", "free:1", "round-robin:0", "random:x", "random:1:0", "random:1:2:3"] {
        assert!(wrong.parse::<Policy>().is_err(), "{wrong}");
    }
}

#[test]
fn a_livelock_is_ended_by_its_budget() {
    let Some(program) = build("livelock") else { return };
    let mut options = options(&program, &[]);
    options.policy = Policy::RoundRobin { quantum: 3 };
    options.point_limit = Some(20_000);
    let (outcome, _) = recorded(&options);
    let RunEnd::Livelock(threads) = outcome.end else { panic!("{:?}", outcome.end) };
    assert!(threads.iter().any(|blocked| blocked.thread.0 == [0] && blocked.event > 0));
    let message = InSchedules(&endless(&threads)).to_string();
    assert!(message.contains("thread 0.0 is at event"), "{message}");
    assert!(outcome.events < 30_000);
}

#[test]
fn every_primitive_a_hundred_times_without_a_hang() {
    let Some(program) = build("every_primitive") else { return };
    let expected = run(&mut Command::new(&program)).stdout;
    let mut options = options(&program, &[]);
    for seed in 0..100 {
        options.policy = match seed % 4 {
            0 => Policy::Os,
            1 => Policy::RoundRobin { quantum: 1 + seed },
            _ => Policy::Random { seed: seed.into(), mean: 1 + seed },
        };
        let (outcome, trace) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "policy {}", options.policy);
        assert_eq!(trace.threads.len(), 13);
    }
    let output = foretell_command(&options);
    assert_eq!(output.stdout, expected);
}

/// Runs the recorder as a process of its own, to see what the program prints.
fn foretell_command(options: &RecordOptions) -> Output {
    let recorder = std::env::current_exe().unwrap();
    Command::new(recorder)
        .args(["--exact", "as_a_process", "--nocapture", "--test-threads=1"])
        .env("RECORD_PROGRAM", &options.program)
        .env("RECORD_ARGUMENTS", options.arguments.join(std::ffi::OsStr::new(" ")))
        .env("RECORD_OUTPUT", &options.output)
        .output()
        .map(|mut output| {
            // What the test harness itself says comes before and after.
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = text.lines().filter(|line| {
                let harness = ["running ", "test ", "ok"];
                !line.is_empty() && !harness.iter().any(|words| line.starts_with(words))
            });
            output.stdout = lines.fold(String::new(), |all, line| all + line + "\n").into_bytes();
            output
        })
        .unwrap()
}

/// Not a test of its own: the other end of [`foretell_command`].
#[test]
fn as_a_process() {
    let Some(program) = std::env::var_os("RECORD_PROGRAM") else { return };
    let output = std::env::var_os("RECORD_OUTPUT").expect("both are set");
    let mut options = RecordOptions::new(program, output);
    let words = std::env::var("RECORD_ARGUMENTS").unwrap_or_default();
    options.arguments = words.split_whitespace().map(Into::into).collect();
    options.hang_limit = Some(PATIENCE);
    println!();
    record(&options).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_deadlock_is_seen_at_once_and_explained() {
    let Some(program) = build("deadlock") else { return };
    let (outcome, trace) = recorded(&options(&program, &[]));
    let RunEnd::Deadlock(threads) = outcome.end else { panic!("{:?}", outcome.end) };
    let main = threads.iter().find(|blocked| blocked.thread.0.is_empty()).expect("it waits");
    assert_eq!(
        (main.on, main.holder.as_ref().map(|holder| &*holder.0)),
        (Awaited::Mutex, Some(&[0][..]))
    );
    let message = InSchedules(&standstill(&threads)).to_string();
    assert!(message.contains("thread 0 waits for mutex"), "{message}");
    assert!(message.contains("held by thread 0.0"), "{message}");
    assert!(trace.events.iter().any(|event| matches!(event.op, Op::Sync(_, SyncOp::Acquire(_)))));
}

#[test]
fn whatever_ends_the_program_costs_no_event() {
    let Some(program) = build("ends") else { return };
    for (way, end) in [
        ("", RunEnd::Exit(6)),
        ("_exit", RunEnd::Exit(7)),
        ("abort", RunEnd::Signal(libc::SIGABRT)),
        ("assert", RunEnd::Signal(libc::SIGABRT)),
        ("segv", RunEnd::Signal(libc::SIGSEGV)),
        ("raise", RunEnd::Signal(libc::SIGSEGV)),
        ("kill", RunEnd::Signal(libc::SIGKILL)),
        ("exec", RunEnd::Exit(9)),
        ("fork", RunEnd::Exit(6)),
        ("handler", RunEnd::Exit(6)),
    ] {
        let (outcome, trace) = recorded(&options(&program, &[way]));
        assert_eq!(outcome.end, end, "{way}");
        let ends = trace.events.iter().filter(|event| matches!(event.op, Op::ThreadEnd)).count();
        assert_eq!(ends, 1, "{way}: the worker's end");
        assert!(trace.events.iter().any(|event| matches!(event.op, Op::Join(_))), "{way}");
        match way {
            "segv" => {
                let crash = outcome.crash.expect("seen by the runtime");
                assert_eq!((crash.signal, crash.address), (libc::SIGSEGV, 0));
                assert_eq!(&*crash.site.function, "main");
            }
            "assert" => {
                let Some(Op::Assert(condition)) =
                    trace.events.iter().rev().map(|e| &e.op).find(|op| matches!(op, Op::Assert(_)))
                else {
                    panic!("no assertion")
                };
                assert!(!condition.outcome);
            }
            "fork" => {
                let causes: Vec<Cause> = outcome.outside.iter().map(|one| one.cause).collect();
                assert_eq!(causes, [Cause::Process]);
            }
            _ => {}
        }
    }
}

#[test]
fn what_the_program_prints_is_unchanged() {
    let Some(program) = build("ends") else { return };
    for way in ["fork", "exec", "abort"] {
        let plain = Command::new(&program).arg(way).output().unwrap();
        let under = foretell_command(&options(&program, &[way]));
        assert_eq!(
            String::from_utf8_lossy(&under.stdout),
            String::from_utf8_lossy(&plain.stdout),
            "{way}"
        );
    }
}

#[test]
fn a_hanging_program_is_ended_and_its_events_are_kept() {
    let Some(program) = build("ends") else { return };
    let mut options = options(&program, &["spin"]);
    // A busy machine may need longer than we wait to bring the program to its loop: then we wait
    // longer.
    let in_its_loop = [1, 10, 100].into_iter().any(|seconds| {
        options.hang_limit = Some(Duration::from_secs(seconds));
        let outcome = match record(&options) {
            Err(RecordError::NotAttached { end: RunEnd::Hang, .. }) => return false,
            outcome => outcome.unwrap_or_else(|error| panic!("{error}")),
        };
        assert_eq!(outcome.end, RunEnd::Hang);
        assert_eq!(outcome.gaps, ["the run was ended by its time limit"]);
        let trace = foretell_trace::format::read_path(&options.output)
            .unwrap_or_else(|error| panic!("{error}"));
        check(&trace);
        trace.events.iter().any(|event| matches!(event.op, Op::Join(_)))
    });
    assert!(in_its_loop, "what came before the loop is in the trace");
}

#[test]
fn freed_and_reused_memory_is_another_location() {
    let Some(program) = build("freed") else { return };
    let (_, trace) = recorded(&options(&program, &[]));
    let generations: Vec<u32> = trace
        .events
        .iter()
        .filter_map(|event| match &event.op {
            Op::Write(access) => trace.variables[access.variable.index()].memory,
            _ => None,
        })
        .map(|memory| memory.generation)
        .collect();
    assert!(generations.windows(2).any(|pair| pair[0] < pair[1]), "{generations:?}");
}

#[test]
fn a_blocking_read_lets_the_others_run() {
    let Some(program) = build("pipe") else { return };
    for seed in 0..5 {
        let mut options = options(&program, &[]);
        options.policy = Policy::Random { seed, mean: 5 };
        let (outcome, trace) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0));
        let inputs = trace.events.iter().filter(|event| matches!(event.op, Op::Input { .. }));
        assert!(inputs.count() >= 7, "six letters and the end");
    }
}

#[test]
fn an_output_that_cannot_be_made_is_an_error() {
    let Some(program) = build("counter") else { return };
    let mut options = options(&program, &[]);
    options.output = "/dev/null/trace.ftrace".into();
    let error = record(&options).expect_err("nothing can be written there");
    assert!(matches!(error, RecordError::Write(..)), "{error}");
    assert!(error.to_string().contains("/dev/null"), "{error}");
}

#[test]
fn bad_requests_are_refused_with_a_word() {
    let missing = RecordOptions::new("/no/such/program", scratch("x.ftrace"));
    assert!(record(&missing).expect_err("missing").to_string().contains("no program"));
    let script = scratch("script.sh");
    // Written by another process: a child that a test beside us is just starting would still have
    // our own file open, and what is open for writing cannot be run.
    run(Command::new("sh")
        .args(["-c", "printf '#!/bin/sh\\nexit 3\\n' >\"$0\" && chmod +x \"$0\""])
        .arg(&script));
    let error = record(&RecordOptions::new(&script, scratch("y.ftrace"))).expect_err("a script");
    assert!(error.to_string().contains("script"), "{error}");
    assert!(!scratch("y.ftrace").exists());
}

#[test]
fn a_library_of_another_build_is_refused_before_the_program_starts() {
    let Some(program) = build("counter") else { return };
    let mut content = std::fs::read(library()).unwrap();
    let mark = foretell_wire::CONTRACT.to_le_bytes();
    let places: Vec<usize> =
        (0..content.len() - 8).filter(|&at| content[at..at + 8] == mark).collect();
    assert!(!places.is_empty(), "the library shows its contract");
    for at in places {
        content[at] ^= 1;
    }
    let other = scratch("other-build.so");
    std::fs::write(&other, content).unwrap();
    let mut options = options(&program, &[]);
    options.library = Some(other.clone());
    let refused = record(&options).unwrap_err();
    assert!(matches!(refused, RecordError::OtherBuild(ref path) if *path == other), "{refused}");
    assert!(refused.to_string().contains("another build"), "{refused}");
    let refused = record_sync_only(&options).unwrap_err();
    assert!(matches!(refused, RecordError::OtherBuild(_)), "{refused}");
    let _ = std::fs::remove_file(other);
}
