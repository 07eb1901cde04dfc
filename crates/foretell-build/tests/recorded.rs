//! Programs built with the driver and recorded with the real runtime: they do what they do without,
//! and their traces make sense, each expression against the value that was recorded beside it.

use foretell_record::{Policy, RecordOptions, RecordOutcome, RunEnd, record};
use foretell_trace::{Op, Trace};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CC: &str = env!("CARGO_BIN_EXE_foretell-cc");
const CXX: &str = env!("CARGO_BIN_EXE_foretell-cxx");

fn temporary(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("recorded-{}-{number}-{name}", std::process::id()))
}

/// Builds with plugin and runtime, which Cargo leaves beside the test.
fn build(source: &Path, options: &[&str]) -> PathBuf {
    let program = temporary("program");
    let libraries = std::env::current_exe().expect("path of the test");
    let compiler = if source.extension().is_some_and(|e| e == "cc") { CXX } else { CC };
    let mut command = Command::new(compiler);
    command.args(options).args(["-w", "-pthread"]).arg(source).arg("-o").arg(&program);
    command.env("FORETELL_LIB_DIR", libraries.parent().expect("directory"));
    let output = command.output().expect("driver");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    program
}

/// A program of the plugin's tests.
fn program(name: &str) -> PathBuf {
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/../foretell-instrument/tests/programs");
    Path::new(programs).join(name)
}

fn source(name: &str, code: &str) -> PathBuf {
    let path = temporary(name);
    std::fs::write(&path, code).expect("source");
    path
}

fn recorded(program: &Path, policy: Policy) -> (RecordOutcome, Trace) {
    let mut options = RecordOptions::new(program, temporary("trace"));
    options.policy = policy;
    options.hang_limit = Some(Duration::from_secs(300));
    let outcome = record(&options).unwrap_or_else(|error| panic!("{error}"));
    let trace = foretell_trace::format::read_path(&options.output)
        .unwrap_or_else(|error| panic!("{error}"));
    let faults = foretell_trace::validate::validate(&trace);
    assert!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
    (outcome, trace)
}

#[test]
fn a_racy_withdrawal_is_recorded_with_its_condition() {
    let code = "#include <pthread.h>
int balance = 10;
static void *withdraw(void *unused) {
  int seen = balance;
  if (seen >= 5) balance = seen - 5;
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, withdraw, 0);
  pthread_create(&b, 0, withdraw, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return balance;
}
";
    let source = source("bank.c", code);
    for level in ["-O0", "-O2"] {
        let (outcome, trace) =
            recorded(&build(&source, &[level]), Policy::RoundRobin { quantum: 50 });
        assert_eq!(outcome.end, RunEnd::Exit(0), "{level}");
        assert!(outcome.symbolic && outcome.instrumented, "{level}: {outcome:?}");
        let balance = trace.variables.iter().position(|v| &*v.name == "balance").expect("balance");
        let mut symbolic_writes = 0;
        let mut branches = 0;
        for event in &trace.events {
            match &event.op {
                Op::Write(access) if access.variable.index() == balance => {
                    symbolic_writes += usize::from(access.term.is_some());
                    let site = &trace.sites[event.site.expect("site").index()];
                    assert!(site.file.ends_with("bank.c"), "{}", site.file);
                    assert_eq!((&*site.function, site.line), ("withdraw", 5), "{level}");
                }
                // Pins of what is given to pthread_join are branches, too.
                Op::Branch(condition) if condition.term.is_some() => {
                    let site = &trace.sites[event.site.expect("site").index()];
                    branches += usize::from(&*site.function == "withdraw");
                }
                _ => {}
            }
        }
        assert_eq!((symbolic_writes, branches), (2, 2), "{level}");
    }
}

#[test]
fn every_kind_of_operation_gives_a_trace_that_makes_sense() {
    for options in [&["-O0"][..], &["-O1"], &["-O2"], &["-O1", "-fforetell=concrete"]] {
        let (outcome, trace) = recorded(&build(&program("operations.c"), options), Policy::Os);
        assert_eq!(outcome.end, RunEnd::Exit(49), "{options:?}");
        assert!(trace.events.len() > 300, "{options:?}: {} events", trace.events.len());
    }
}

#[test]
fn threads_and_exceptions_give_a_trace_that_makes_sense() {
    for level in ["-O0", "-O2"] {
        let program = build(&program("threads.cc"), &[level]);
        for policy in [Policy::RoundRobin { quantum: 7 }, Policy::Random { seed: 3, mean: 20 }] {
            let (outcome, trace) = recorded(&program, policy);
            assert_eq!(outcome.end, RunEnd::Exit(0), "{level}");
            assert_eq!(trace.threads.len(), 6, "{level}");
        }
    }
}

#[test]
fn the_nodes_of_trees_and_lists_are_seen() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/containers.cc");
    let output = Command::new(build(&own, &["-O1"])).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "as the library does\n");

    let code = "#include <list>
#include <map>
int main() {
  std::map<int, int> map;
  std::list<int> list;
  for (int i = 0; i < 20; i++) { map[i * 7 % 20] = i; list.push_back(i); }
  for (int i = 0; i < 20; i += 3) { map.erase(i); list.pop_front(); }
  int sum = 0;
  for (auto &entry : map) sum += entry.second;
  for (int item : list) sum += item;
  return sum == 0;
}
";
    let (outcome, _) = recorded(&build(&source("seen.cc", code), &["-O1"]), Policy::AFTER);
    assert_eq!(outcome.end, RunEnd::Exit(0));
    let unseen = |gap: &&String| gap.contains("unseen");
    assert_eq!(outcome.gaps.iter().find(unseen), None);
}
