//! Execution paths of programs compiled with our pass (002, tables 5 and 6): few mispredictions, and
//! the first branch that differs between two runs.

mod common;

use std::path::PathBuf;

use common::{build_with, options, pass_flags, recorded, steps};
use foretell_record::{ExecutionPath, Policy, RecordOptions, RunEnd};
use foretell_trace::schedule::Step;

fn compiled(name: &str, level: &str) -> Option<PathBuf> {
    let [level, plugin] = pass_flags(level)?;
    build_with("clang-22", name, &[&level, &plugin])
}

fn path_of(options: &RecordOptions) -> ExecutionPath {
    let (outcome, _) = recorded(options);
    assert_eq!(outcome.end, RunEnd::Exit(0));
    assert!(outcome.path.is_complete());
    outcome.path
}

#[test]
fn few_branches_of_loops_are_mispredicted() {
    for name in ["lu", "pack"] {
        let Some(program) = compiled(name, "-O1") else { return };
        let mut options = options(&program, &[]);
        options.path = true;
        options.policy = Policy::AFTER;
        let path = path_of(&options);
        let (branches, missed) = (path.branches(), path.mispredictions());
        eprintln!("{name}: {branches} branches, {missed} mispredictions");
        assert!(branches > 15 * missed, "{name}: {missed} of {branches}");
        assert_eq!(path.differences(&path_of(&options)), [], "{name}: a second run");
    }
}

#[test]
fn without_a_wish_there_is_no_path() {
    let Some(program) = compiled("parted", "-O0") else { return };
    let (outcome, _) = recorded(&options(&program, &[]));
    assert_eq!(outcome.path.branches(), 0);
}

#[test]
fn the_first_branch_that_differs_is_shown_with_its_line() {
    let Some(program) = compiled("parted", "-O0") else { return };
    let mut options = options(&program, &[]);
    options.path = true;
    options.policy = Policy::RoundRobin { quantum: 1000 };
    let (_, trace) = recorded(&options);
    let all = steps(&trace);
    let of = |path: &[u32]| -> Vec<Step> {
        all.iter().filter(|step| step.thread.0 == path).cloned().collect()
    };
    let (main, worker) = (of(&[]), of(&[0]));
    let fork = main.iter().position(|step| &*step.operation == "fork").expect("starts the worker");
    let set =
        fork + main[fork..].iter().position(|step| &*step.operation == "write").expect("sets");
    let read = worker.iter().position(|step| &*step.operation == "read").expect("reads the flag");
    // The worker looks before the flag is set, and after.
    options.steps = main[..set].iter().chain(&worker[..=read]).cloned().collect();
    let before = path_of(&options);
    options.steps = main[..=set].iter().chain(&worker[..=read]).cloned().collect();
    let after = path_of(&options);
    let [difference] = &before.differences(&after)[..] else { panic!("one thread differs") };
    assert_eq!(difference.thread.0, [0]);
    let source = include_str!("programs/parted.c");
    let line = source.lines().position(|line| line.contains("that differs")).expect("marked") + 1;
    let (first, second) = (difference.first.as_ref(), difference.second.as_ref());
    assert_eq!(first.map(|branch| branch.site.line as usize), Some(line), "{difference}");
    assert_eq!(second.map(|branch| branch.site.line as usize), Some(line), "{difference}");
    assert_ne!(first.map(|branch| branch.outcome), second.map(|branch| branch.outcome));
}
