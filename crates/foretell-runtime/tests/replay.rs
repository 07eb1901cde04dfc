//! The two steps of 002: the order of an unmodified program's synchronisation is logged, then the
//! instrumented build follows it under the recorder.

mod common;

use common::{build, build_with, compiler, options, recorded, scratch};
use foretell_record::{Policy, RecordError, RecordOptions, RunEnd, record, record_sync_only};
use foretell_trace::{Op, Trace};

/// What a program wrote into the file that its argument names.
fn result_of(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_instrumented_build_follows_the_order_of_the_plain_one() {
    let Some(compiler) = compiler() else { return };
    let plain = build_with(compiler, "ordered", &["-O1"]).expect("built");
    let instrumented = build("ordered").expect("built");
    let file = scratch("ordered.result");
    let words = [file.to_str().unwrap()];
    for round in 0..10 {
        let mut log = RecordOptions::new(&plain, scratch("ordered.log"));
        log.arguments = words.iter().map(Into::into).collect();
        let outcome = record_sync_only(&log).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.end, RunEnd::Exit(0));
        assert_eq!(outcome.threads, 5);
        assert!(outcome.entries > 400, "{outcome:?}");
        let expected = result_of(&file);
        assert!(!expected.is_empty());

        let mut options = options(&instrumented, &words);
        options.replay = Some(log.output.clone());
        options.policy = Policy::Random { seed: round, mean: 7 };
        let (outcome, trace) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "round {round}");
        assert_eq!(result_of(&file), expected, "round {round}");
        let accesses = |trace: &Trace| {
            trace.events.iter().filter(|event| matches!(event.op, Op::Write(_))).count()
        };
        assert!(accesses(&trace) > 100);
    }
}

#[test]
fn a_log_of_many_blocks_is_followed_to_its_end() {
    let Some(compiler) = compiler() else { return };
    let rounds = "-DROUNDS=2000"; // each thread fills a block
    let plain = build_with(compiler, "ordered", &["-O1", rounds]).expect("built");
    let log = scratch("blocks.log");
    let file = scratch("blocks.result");
    let words = [file.to_str().unwrap()];
    let mut first = RecordOptions::new(&plain, &log);
    first.arguments = words.iter().map(Into::into).collect();
    let outcome = record_sync_only(&first).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.end, RunEnd::Exit(0));
    assert!(outcome.entries > 4 * 5 * 2000, "{outcome:?}");
    let expected = result_of(&file);

    let flags = ["-O1", "-fsanitize=thread", rounds];
    let instrumented = build_with(compiler, "ordered", &flags).expect("built");
    let mut options = options(&instrumented, &words);
    options.replay = Some(log);
    let (outcome, _) = recorded(&options);
    assert_eq!(outcome.end, RunEnd::Exit(0));
    assert_eq!(result_of(&file), expected);
}

#[test]
fn what_an_initialisation_does_is_followed_too() {
    let Some(compiler) = compiler() else { return };
    let plain = build_with(compiler, "once_inside", &["-O1"]).expect("built");
    let instrumented = build("once_inside").expect("built");
    let file = scratch("once.result");
    let words = [file.to_str().unwrap()];
    for round in 0..5 {
        let mut log = RecordOptions::new(&plain, scratch("once.log"));
        log.arguments = words.iter().map(Into::into).collect();
        let outcome = record_sync_only(&log).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.end, RunEnd::Exit(0));
        let expected = result_of(&file);
        let mut options = options(&instrumented, &words);
        options.replay = Some(log.output.clone());
        options.policy = Policy::Random { seed: round, mean: 3 };
        let (outcome, _) = recorded(&options);
        assert_eq!(outcome.end, RunEnd::Exit(0), "round {round}");
        assert_eq!(result_of(&file), expected, "round {round}");
    }
}

#[test]
fn what_a_killed_program_logged_is_kept() {
    let Some(program) = build("ends") else { return };
    let mut options = RecordOptions::new(&program, scratch("killed.log"));
    options.arguments = vec!["kill".into()];
    let outcome = record_sync_only(&options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.end, RunEnd::Signal(libc::SIGKILL));
    assert_eq!((outcome.threads, outcome.entries), (2, 2), "a lock and the process id");
}

#[test]
fn a_log_of_another_program_is_a_divergence_and_no_log_is_an_error() {
    let Some(program) = build("ends") else { return };
    let other = build("every_primitive").expect("built");
    let log = RecordOptions::new(&other, scratch("other.log"));
    record_sync_only(&log).unwrap_or_else(|error| panic!("{error}"));
    let mut options = options(&program, &[]);
    options.replay = Some(log.output.clone());
    let (outcome, _) = recorded(&options);
    assert!(matches!(outcome.end, RunEnd::LeftSchedule(_)), "{:?}", outcome.end);

    options.replay = Some(program.clone());
    let error = record(&options).expect_err("an executable is no log");
    assert!(matches!(error, RecordError::BadLog(..)), "{error}");
}
