//! Runs that a fork server makes are those that are started, and traces in memory those in files.

mod common;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use common::{build, compiler, library, options, recorded, run, scratch, steps};
use foretell_record::{Capture, ForkServer, Policy, RecordOptions, RecordOutcome, RunEnd};
use foretell_record::{mended, record_in_memory};
use foretell_trace::Trace;
use foretell_trace::format::binary;

fn bytes(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    binary::write(trace, &mut bytes).expect("a vector takes everything");
    bytes
}

/// A server that makes no runs.
fn by_exec() -> ForkServer {
    let server = ForkServer::default();
    server.refuse("the test compares with it");
    server
}

fn in_memory(options: &RecordOptions, server: &ForkServer) -> (RecordOutcome, Trace, String) {
    let path = scratch(&format!("{:?}.written", std::thread::current().id()));
    let written = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let written = Arc::new(written.expect("a file"));
    let mut options = options.clone();
    let nothing = PathBuf::from("/dev/null");
    let stdin = options.capture.map_or(nothing, |capture| capture.stdin);
    let (stdout, stderr) = (Arc::clone(&written), Arc::clone(&written));
    options.capture = Some(Capture { stdin, stdout, stderr });
    let (outcome, trace) =
        record_in_memory(&options, server).unwrap_or_else(|error| panic!("{error}"));
    let mut text = String::new();
    let mut written: &File = &written;
    written.rewind().expect("a file");
    written.read_to_string(&mut text).expect("text");
    (outcome, trace, text)
}

#[test]
fn a_trace_in_memory_is_the_one_in_the_file_whoever_makes_the_run() {
    for name in ["bank", "every_primitive", "handover", "lu", "timed", "tries", "deadlock"] {
        let Some(program) = build(name) else { return };
        let (started, forked) = (by_exec(), ForkServer::default());
        let mut forcing = Vec::new();
        for policy in ["round-robin:3", "random:1:4", "random:2:4"] {
            let mut options = options(&program, &[]);
            options.policy = policy.parse::<Policy>().expect("a policy");
            options.steps = forcing;
            let (in_file, trace) = recorded(&options);
            let trace = mended(trace);
            for server in [&started, &forked] {
                let (outcome, again, _) = in_memory(&options, server);
                assert_eq!(outcome.end, in_file.end, "{name} {policy}");
                assert_eq!(outcome.gaps, in_file.gaps, "{name} {policy}");
                assert!(bytes(&again) == bytes(&trace), "{name} {policy}");
            }
            // The next run begins as this one did.
            forcing = steps(&trace);
            forcing.truncate(forcing.len() / 2);
        }
        assert_eq!((forked.forked(), forked.refusal()), (2, None), "{name}");
    }
}

#[test]
fn a_forked_run_finds_around_itself_what_a_started_one_finds() {
    let Some(program) = build("surroundings") else { return };
    let input = scratch("surroundings.in");
    std::fs::write(&input, "one\ntwo\n").expect("a file");
    let mut options = options(&program, &["word", "two words"]);
    let nothing = Arc::new(File::open("/dev/null").expect("/dev/null"));
    options.capture = Some(Capture { stdin: input, stdout: Arc::clone(&nothing), stderr: nothing });
    let (started, forked) = (by_exec(), ForkServer::default());
    let (_, _, first) = in_memory(&options, &started);
    assert!(first.ends_with("read one\nread two\n"), "{first}");
    for round in 0..4 {
        let (outcome, _, text) = in_memory(&options, &forked);
        assert_eq!(outcome.end, RunEnd::Exit(3));
        assert_eq!(outcome.forked, round > 0);
        assert_eq!(text, first, "round {round}");
    }
}

#[test]
fn what_a_library_did_before_is_in_every_run() {
    let Some(compiler) = compiler() else { return };
    for (define, why) in [("-DTHREAD", "starts threads"), ("-DFILE", "opens files")] {
        let library = early_library(compiler, define);
        let program = build_early(compiler, define, &library);
        let server = ForkServer::default();
        for _ in 0..3 {
            let (outcome, _, text) = in_memory(&options(&program, &[]), &server);
            assert_eq!(outcome.end, RunEnd::Exit(3), "{text}");
            assert!(!outcome.forked);
        }
        let refusal = server.refusal().unwrap_or_default();
        assert!(refusal.contains(why), "{refusal}");
    }
}

fn early_library(compiler: &str, define: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/early.c");
    let library = scratch(&format!("libearly{define}.so"));
    run(Command::new(compiler)
        .args(["-shared", "-fPIC", define, "-o"])
        .args([&library, &source])
        .arg("-pthread"));
    library
}

fn build_early(compiler: &str, define: &str, early: &Path) -> PathBuf {
    let object = scratch(&format!("early{define}.o"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/surroundings.c");
    run(Command::new(compiler).args(["-DEARLY", "-c", "-o"]).args([&object, &source]));
    let program = scratch(&format!("early{define}"));
    let directory = library().parent().expect("a folder").to_owned();
    run(Command::new(compiler)
        .arg("-o")
        .args([&program, &object])
        .arg(format!("-L{}", directory.display()))
        .arg(format!("-Wl,-rpath,{}", directory.display()))
        .args(["-lforetell_runtime", "-pthread"])
        .arg(early));
    program
}
