//! Building and recording small C programs.
#![allow(dead_code)] // not every test uses everything

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use foretell_record::{RecordOptions, RecordOutcome, record};
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, Trace};

/// The C compiler, if there is one.
pub fn compiler() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let works = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
        let found = ["gcc", "clang-22", "clang", "cc"].iter().find(works).copied();
        if found.is_none() {
            eprintln!("SKIPPED: no C compiler on this machine");
        }
        found
    })
}

pub fn library() -> PathBuf {
    foretell_record::runtime_library().expect("cargo builds the library before its tests")
}

pub fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// Builds a program of `tests/programs`; `None` when there is no compiler.
pub fn build(name: &str) -> Option<PathBuf> {
    build_with(compiler()?, name, &["-O1", "-fsanitize=thread"])
}

/// Builds a program of `tests/programs` (C unless the name says otherwise) with this compiler and
/// these options.
pub fn build_with(compiler: &str, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let file = if name.contains('.') { name.to_owned() } else { format!("{name}.c") };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(file);
    let unique = format!("{name}-{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let (object, program) = (scratch(&format!("{unique}.o")), scratch(&unique));
    run(Command::new(compiler).args(flags).args(["-g", "-c", "-o"]).args([&object, &source]));
    let directory = library().parent().unwrap().to_owned();
    run(Command::new(compiler)
        .arg("-o")
        .args([&program, &object])
        .arg(format!("-L{}", directory.display()))
        .arg(format!("-Wl,-rpath,{}", directory.display()))
        .args(["-lforetell_runtime", "-pthread"]));
    Some(program)
}

/// clang 22 and our pass; `None` (and a word) where there is no such compiler.
pub fn pass_flags(level: &str) -> Option<[String; 2]> {
    if Command::new("clang-22").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no clang-22 on this machine");
        return None;
    }
    let plugin = library().with_file_name("libforetell_instrument.so");
    assert!(plugin.is_file(), "cargo builds the plugin before these tests: {}", plugin.display());
    Some([level.into(), format!("-fpass-plugin={}", plugin.display())])
}

pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// For programs that should not hang: no machine is so busy that nothing happens for so long.
pub const PATIENCE: Duration = Duration::from_secs(300);

pub fn options(program: &Path, words: &[&str]) -> RecordOptions {
    let unique = format!("{:?}.ftrace", std::thread::current().id()).replace(['(', ')'], "");
    let mut options = RecordOptions::new(program, scratch(&unique));
    options.arguments = words.iter().map(Into::into).collect();
    options.hang_limit = Some(PATIENCE);
    options
}

/// Records and reads the trace back.
pub fn recorded(options: &RecordOptions) -> (RecordOutcome, Trace) {
    let outcome = record(options).unwrap_or_else(|error| panic!("{error}"));
    let trace = foretell_trace::format::read_path(&options.output)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trace.events.len() as u64, outcome.events);
    check(&trace);
    (outcome, trace)
}

/// What every recorded trace must satisfy whatever the program: reads see the last write of their
/// location, locks exclude, threads begin after their fork and are joined after their end.
pub fn check(trace: &Trace) {
    let problems = foretell_trace::validate::validate(trace);
    assert!(problems.is_empty(), "{problems:?}");
}

/// The run as a schedule.
pub fn steps(trace: &Trace) -> Vec<Step> {
    Schedule::of_trace(trace, (0..trace.events.len()).map(|at| EventId(at as u32)), []).steps
}
