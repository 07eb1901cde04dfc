//! A forced run under gdb stops at the last step of its schedule, in the program's own frame.

mod common;

use std::process::Command;

use common::{build, options, recorded, scratch, steps};
use foretell_record::{Debugger, Policy, RecordError, record};

/// Whether there is a gdb that can run programs here (in some containers it may not).
fn gdb_works() -> bool {
    let run = ["-batch", "-ex", "run", "--args", "/bin/true"];
    let works = Command::new("gdb")
        .args(run)
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("exited normally"));
    if !works {
        eprintln!("SKIPPED: no gdb that can run a program");
    }
    works
}

#[test]
fn the_last_step_is_where_gdb_stops() {
    let Some(program) = build("handover") else { return };
    if !gdb_works() {
        return;
    }
    let mut options = options(&program, &[]);
    options.policy = Policy::AFTER;
    let (_, trace) = recorded(&options);
    let all = steps(&trace);
    let last = all
        .iter()
        .rposition(|step| step.thread.0 == [0] && &*step.operation == "write")
        .expect("the worker writes");
    options.steps = all[..=last].to_vec();
    let log = scratch("gdb.log");
    let log_words = |words: &str| format!("{words} {}", log.display());
    options.debugger = Some(Debugger {
        batch: true,
        commands: vec![
            log_words("set logging file"),
            "set logging enabled on".into(),
            "bt".into(),
            "info threads".into(),
        ],
        ..Debugger::default()
    });
    let (outcome, _) = recorded(&options);
    assert_eq!(outcome.steps_taken, last + 1);
    let shown = std::fs::read_to_string(&log).expect("gdb writes its log");
    assert!(shown.contains("foretell_violation_here"), "{shown}");
    assert!(shown.contains("worker (") && shown.contains("handover.c:"), "{shown}");
}

#[test]
fn a_debugger_that_is_not_there_is_an_error_with_its_name() {
    let Some(program) = build("handover") else { return };
    let mut options = options(&program, &[]);
    options.debugger = Some(Debugger { program: "/no/such/gdb".into(), ..Debugger::default() });
    let error = record(&options).expect_err("no gdb");
    assert!(matches!(error, RecordError::Start(..)), "{error}");
    assert!(error.to_string().contains("/no/such/gdb"), "{error}");
}
