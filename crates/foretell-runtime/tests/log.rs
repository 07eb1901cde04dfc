//! Recordings as logs: read back, they are the traces that are written when records are converted at
//! once; and what is wrong with a log is found.

mod common;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{build, build_with, check, options, pass_flags, recorded};
use foretell_record::{Form, Policy, RecordOptions, RecordOutcome, RunEnd, record};
use foretell_trace::Trace;
use foretell_trace::format::{self, text};

fn as_text(trace: &Trace) -> String {
    let mut bytes = Vec::new();
    text::write(trace, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("text is UTF-8")
}

/// The same run every time, recorded as a log.
fn log_options(program: &Path, words: &[&str]) -> RecordOptions {
    let mut options = options(program, words);
    options.policy = Policy::RoundRobin { quantum: 7 };
    options.form = Form::Log;
    options
}

fn logged(options: &RecordOptions) -> (RecordOutcome, Trace) {
    let outcome = record(options).unwrap_or_else(|error| panic!("{error}"));
    let trace = foretell_record::read(&options.output).unwrap_or_else(|error| panic!("{error}"));
    (outcome, trace)
}

/// One test at a time: the number of a file that the program inherits is in its environment, and
/// how long that is decides where the stack lies.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records a run in both forms, which say the same; gives the log's outcome and trace.
fn in_both_forms(program: &Path, words: &[&str]) -> (RecordOutcome, Trace) {
    let mut options = log_options(program, words);
    let (outcome, trace) = logged(&options);
    check(&trace);
    options.form = Form::Trace;
    let (converted, expected) = recorded(&options);
    let (text, expected_text) = (as_text(&trace), as_text(&expected));
    if let Some((line, other)) = text.lines().zip(expected_text.lines()).find(|(a, b)| a != b) {
        panic!("{}: {line}\nconverted at once: {other}", program.display());
    }
    assert_eq!(text.len(), expected_text.len());
    assert_eq!(trace.sites, expected.sites);
    assert_eq!(trace.variables, expected.variables);
    assert_eq!(trace.metadata, expected.metadata);
    assert_eq!(outcome.end, converted.end);
    // The address of a crash by `abort` has the process in it.
    let died = |outcome: &RecordOutcome| {
        outcome.crash.as_ref().map(|crash| (crash.signal, crash.site.clone()))
    };
    assert_eq!(died(&outcome), died(&converted));
    assert_eq!(
        (outcome.events, outcome.threads, outcome.symbolic, outcome.instrumented),
        (converted.events, converted.threads, converted.symbolic, converted.instrumented)
    );
    assert_eq!(outcome.restrictions, converted.restrictions);
    let only_converted = |gap: &&String| gap.contains("written by code that is not instrumented");
    let gaps: Vec<String> =
        converted.gaps.iter().filter(|gap| !only_converted(gap)).cloned().collect();
    assert_eq!(outcome.gaps, gaps);
    (outcome, trace)
}

#[test]
fn a_log_of_a_program_with_hooks_is_the_trace() {
    let _alone = alone();
    for (name, words) in [
        ("counter", &[][..]),
        ("every_primitive", &[]),
        ("freed", &[]),
        ("handover", &[]),
        ("deadlock", &[]),
    ] {
        let Some(program) = build(name) else { return };
        let (_, trace) = in_both_forms(&program, words);
        assert!(trace.sites.iter().any(|site| site.file.ends_with(&format!("{name}.c"))));
    }
}

#[test]
fn a_log_of_a_symbolic_program_is_the_trace() {
    let _alone = alone();
    let Some(flags) = pass_flags("-O1") else { return };
    let flags = flags.each_ref().map(String::as_str);
    for name in ["bank", "parted"] {
        let program = build_with("clang-22", name, &flags).expect("built");
        let (outcome, trace) = in_both_forms(&program, &[]);
        assert!(outcome.symbolic && !trace.terms.is_empty());
    }
}

#[test]
fn a_log_knows_where_the_program_died() {
    let _alone = alone();
    let Some(program) = build("ends") else { return };
    for (way, signal) in [("segv", 11), ("abort", 6)] {
        let (outcome, trace) = in_both_forms(&program, &[way]);
        assert_eq!(outcome.end, RunEnd::Signal(signal));
        assert_eq!(outcome.crash.expect("the runtime saw it").signal, signal);
        assert!(trace.metadata.gaps.iter().any(|gap| gap.contains(&format!("signal {signal}"))));
    }
    let (killed, trace) = logged(&log_options(&program, &["kill"]));
    assert_eq!(killed.end, RunEnd::Signal(9));
    assert_eq!(trace.events.len() as u64, killed.events, "a kill costs no event");
}

#[test]
fn a_log_needs_no_program_to_be_read() {
    let _alone = alone();
    let Some(program) = build("counter") else { return };
    let options = log_options(&program, &[]);
    let (_, with) = logged(&options);
    std::fs::remove_file(&program).expect("it was built");
    let without = foretell_record::read(&options.output).expect("readable");
    assert_eq!(as_text(&without), as_text(&with));
    assert!(without.variables.iter().any(|variable| &*variable.name == "counter"));
    assert!(without.sites.iter().any(|site| site.line > 0 && &*site.function == "main"));
}

#[test]
fn what_a_log_lacks_is_said_and_what_is_damaged_is_refused() {
    let _alone = alone();
    let Some(program) = build("every_primitive") else { return };
    let options = log_options(&program, &[]);
    let (outcome, whole) = logged(&options);
    let bytes = std::fs::read(&options.output).expect("it was written");
    let text = as_text(&whole);
    for length in (0..bytes.len()).step_by(1000) {
        match foretell_record::read_log(&bytes[..length]) {
            Ok(trace) => {
                let gaps = &trace.metadata.gaps;
                assert!(gaps.iter().any(|gap| gap.contains("no end mark")), "{length}: {gaps:?}");
                assert!(trace.events.len() as u64 <= outcome.events);
                assert!(foretell_trace::validate::validate(&trace).is_empty());
            }
            Err(error) => assert!(length < 16, "{length}: {error}"),
        }
        let mut damaged = bytes.clone();
        damaged[length] ^= 0x10;
        let error = foretell_record::read_log(&damaged).err();
        assert!(error.is_some(), "byte {length} of {} is another one", bytes.len());
    }
    assert_eq!(as_text(&foretell_record::read_log(&bytes).expect("whole")), text);
}

#[test]
fn other_readers_say_how_to_get_a_trace() {
    let _alone = alone();
    let Some(program) = build("counter") else { return };
    let options = log_options(&program, &[]);
    let (_, trace) = logged(&options);
    let error = format::read_path(&options.output).expect_err("a log").to_string();
    assert!(error.contains("foretell trace convert"), "{error}");
    let output = options.output.with_extension("converted.ftrace");
    let opened = format::Opened::new(&options.output).expect("there");
    foretell_record::convert(opened, &options.output, &output).expect("converted");
    assert_eq!(as_text(&format::read_path(&output).expect("a trace")), as_text(&trace));
}
