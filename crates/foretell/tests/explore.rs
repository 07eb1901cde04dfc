//! Exploration against an enumerator: the classes that are found stand for exactly the executions that
//! the program has.
//!
//! `foretell-truth` makes random programs and runs each of them under all schedules. What can happen in
//! the classes of a complete exploration, each enumerated with its choices held fixed, must be what can
//! happen at all: the same outputs, the same failing assertions, the same deadlocks.
//! `FORETELL_TRUTH_PROGRAMS` and `FORETELL_TRUTH_SEED` as in the truth test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foretell_explore::{
    Doubt, Executed, Exploration, Limits, Part, Probe, Program as Explored, explore,
};
use foretell_force::program::Program;
use foretell_force::run::{self, Run, Runner};
use foretell_force::session::UNINTERRUPTED;
use foretell_record::RunEnd;
use foretell_trace::schedule::Step;
use foretell_trace::{AwaitMark, Op, SyncOp, Trace};
use foretell_truth::machine::{Choice, Constraint, Machine, Truth};
use foretell_truth::program::{Program as Random, Shape};
use foretell_truth::source::Emitted;

/// Into so many parts explorations are divided.
const PARTS: u32 = 3;

struct Runs<'r> {
    runner: Runner<'r>,
    failed: BTreeSet<u32>,
    deadlock: bool,
    classes: Vec<Trace>,
}

impl Runs<'_> {
    fn run(&mut self, steps: Vec<Step>) -> Option<Executed> {
        let limits = run::Limits { time: Duration::from_secs(600), points: 100_000 };
        let wanted = steps.len();
        let run = self.runner.run(steps, UNINTERRUPTED, limits).ok()?;
        self.note(&run);
        Some(Executed {
            cuts: run.cuts,
            followed: run.steps_taken == wanted && !matches!(run.end, RunEnd::LeftSchedule(_)),
            ended: matches!(run.end, RunEnd::Exit(_)),
            held: 0,
            fault: None,
            trace: run.trace,
        })
    }

    fn note(&mut self, run: &Run) {
        if let Some(Some(site)) = run.failed_assertion() {
            self.failed.insert(site.line);
        }
        self.deadlock |= matches!(run.end, RunEnd::Deadlock(_));
    }
}

impl Explored for Runs<'_> {
    fn execute(&mut self, _: &Trace, probes: Vec<Probe>) -> Vec<Result<Executed, Doubt>> {
        probes.into_iter().map(|probe| self.run(probe.steps).ok_or(Doubt::NoRun)).collect()
    }

    fn found(&mut self, _: usize, class: &Trace, _: bool) -> Vec<Executed> {
        self.classes.push(class.clone());
        Vec::new()
    }
}

/// What each thread did where it had a choice.
fn choices(trace: &Trace, threads: usize) -> Vec<Vec<Choice>> {
    let mut choices = vec![Vec::new(); threads];
    let chains = trace.events_by_thread();
    for event in &trace.events {
        // The machine has one step for a loop that waits.
        let next = chains[event.thread.index()].get(event.index as usize + 1);
        let mark =
            |&next| matches!(trace.event(next).op, Op::Await(AwaitMark::Test | AwaitMark::Failed));
        if next.is_some_and(mark) {
            continue;
        }
        let path = &trace.threads[event.thread.index()].path;
        let thread = path.last().map_or(0, |last| *last as usize + 1);
        let element = |variable: foretell_trace::VariableId| {
            let name = &trace.variables[variable.index()].name;
            name.strip_prefix("arr[")?.strip_suffix(']')?.parse::<i32>().ok()
        };
        let outcome = match &event.op {
            Op::Branch(condition) => Some(i32::from(condition.outcome)),
            Op::Sync(_, SyncOp::AcquireFailed(_)) => Some(0),
            Op::Sync(lock, SyncOp::Acquire(step)) if step.by_try => Some(1),
            Op::Sync(_, SyncOp::SemaphoreWaitFailed) => Some(0),
            Op::Sync(_, SyncOp::SemaphoreWait { by_try: true, .. }) => Some(1),
            Op::Sync(_, SyncOp::WaitEnd { timed: true, timed_out, .. }) => {
                Some(i32::from(*timed_out))
            }
            Op::Read(access) | Op::Write(access) => element(access.variable),
            _ => None,
        };
        if let (Some(outcome), Some(site)) = (outcome, event.site) {
            let line = trace.sites[site.index()].line;
            choices[thread].push(Choice { line, outcome });
        }
    }
    choices
}

fn foretell(folder: &Path, words: &[&str]) -> bool {
    let test = std::env::current_exe().expect("path of the test");
    let output = Command::new(env!("CARGO_BIN_EXE_foretell"))
        .args(words)
        .current_dir(folder)
        // Cargo leaves the plugin and the runtime beside the test.
        .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
        .output()
        .expect("foretell runs");
    output.status.success()
}

#[derive(Default)]
struct Tally {
    complete: usize,
    open: usize,
    classes: usize,
    asked: usize,
    runs: usize,
}

/// The program, built in the folder.
fn built(folder: &Path, emitted: &Emitted) -> Result<Program, String> {
    std::fs::write(folder.join("p.c"), &emitted.c).map_err(|error| error.to_string())?;
    match foretell(folder, &["cc", "-O0", "-g", "-pthread", "p.c", "-o", "p"]) {
        true => Ok(Program::new(folder.join("p"), Vec::new())),
        false => Err("not built".into()),
    }
}

/// An exploration of the program from a run of its own.
fn explored<'p>(program: &'p Program, limits: &Limits) -> Result<(Exploration, Runs<'p>), String> {
    let runner = Runner::new(program).map_err(|error| error.to_string())?;
    let mut runs = Runs { runner, failed: BTreeSet::new(), deadlock: false, classes: Vec::new() };
    let first = runs.run(Vec::new()).ok_or("no run")?;
    Ok((explore(first, &mut runs, limits), runs))
}

/// Everything that the program can do, with its choices held fixed where that is asked for.
fn all(emitted: &Emitted, constraint: &Constraint) -> Truth {
    Machine::new(&emitted.code).explore(constraint, usize::MAX).expect("no limit")
}

/// What can happen in any of the classes.
fn union_of<'t>(emitted: &Emitted, classes: impl Iterator<Item = &'t Trace>) -> Truth {
    let mut union = Truth::default();
    for trace in classes {
        let choices = Some(choices(trace, emitted.code.threads.len()));
        let of_class = all(emitted, &Constraint { choices, without_preemption: false });
        union.outputs.extend(of_class.outputs);
        union.failures.extend(of_class.failures);
        union.deadlock |= of_class.deadlock;
    }
    union
}

/// Parts of an exploration, which know nothing of each other, against the whole.
fn check_parts(folder: &Path, emitted: &Emitted, tally: &Mutex<Tally>) -> Result<(), String> {
    let program = built(folder, emitted)?;
    let (whole, _) = explored(&program, &Limits::default())?;
    let mut parts = Vec::new();
    for number in 0..PARTS {
        let part = Some(Part { number, of: PARTS });
        parts.push(explored(&program, &Limits { part, ..Limits::default() })?);
    }
    let left = |part: &Exploration| part.open.keys().all(|doubt| *doubt == Doubt::OtherPart);
    let complete = parts.iter().all(|(part, _)| left(part));
    {
        let mut tally = tally.lock().expect("no panic");
        tally.classes += whole.classes;
        tally.runs += parts.iter().map(|(_, runs)| runs.runner.runs()).sum::<usize>();
        match complete {
            true => tally.complete += 1,
            false => tally.open += 1,
        }
    }
    if !complete {
        return Ok(());
    }
    let truth = all(emitted, &Constraint::default());
    let union = union_of(emitted, parts.iter().flat_map(|(_, runs)| &runs.classes));
    if (&union.outputs, &union.failures, union.deadlock)
        != (&truth.outputs, &truth.failures, truth.deadlock)
    {
        return Err(format!("the parts have {union:?}, not {truth:?}"));
    }
    // Where runs are cut off, the same executions can be covered by other classes.
    let set = |explored: &Exploration| explored.digests.iter().copied().collect::<BTreeSet<u64>>();
    let together: BTreeSet<u64> = parts.iter().flat_map(|(part, _)| set(part)).collect();
    let ends_well = truth.failures.is_empty() && !truth.deadlock;
    match ends_well && whole.is_complete() && together != set(&whole) {
        true => Err(format!("the parts have {} classes, not {}", together.len(), whole.classes)),
        false => Ok(()),
    }
}

fn check(folder: &Path, emitted: &Emitted, tally: &Mutex<Tally>) -> Result<(), String> {
    let program = built(folder, emitted)?;
    let (found, runs) = explored(&program, &Limits::default())?;
    let truth = all(emitted, &Constraint::default());
    let union = union_of(emitted, runs.classes.iter());
    {
        let mut tally = tally.lock().expect("no panic");
        tally.runs += runs.runner.runs();
        tally.classes += found.classes;
        tally.asked += found.asked;
        match found.is_complete() {
            true => tally.complete += 1,
            false => tally.open += 1,
        }
    }
    let reached = |what: &str, holds: bool| match holds {
        true => Ok(()),
        false => Err(format!("{what}: {union:?}, not {truth:?}")),
    };
    reached("a failure that cannot be", runs.failed.is_subset(&truth.failures))?;
    reached("a deadlock that cannot be", !runs.deadlock || truth.deadlock)?;
    if found.is_complete() {
        reached("outputs are missing", union.outputs == truth.outputs)?;
        reached("failures are missing", union.failures == truth.failures)?;
        reached("a deadlock is missing", union.deadlock == truth.deadlock)?;
    }
    Ok(())
}

type Check = fn(&Path, &Emitted, &Mutex<Tally>) -> Result<(), String>;

/// Checks one random program in so many; says how much was found.
fn check_programs(name: &str, one_in: u64, check: Check) -> Tally {
    let number = |variable: &str, otherwise: u64| {
        std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let first = number("FORETELL_TRUTH_SEED", 0);
    let last = first + number("FORETELL_TRUTH_PROGRAMS", 200);
    let next = AtomicU64::new(first);
    let faults = Mutex::new(Vec::new());
    let tally = Mutex::new(Tally::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return;
            }
            if !seed.is_multiple_of(one_in) {
                continue;
            }
            let shape = Shape {
                branches: true,
                waiting: seed % 4 >= 2,
                indices: seed % 8 >= 4,
                spins: seed % 3 == 2,
                pointers: seed % 5 == 1,
                limits: seed % 5 >= 3,
                race_free: false,
            };
            let (_, emitted) = Random::random(1_000_000 + seed, shape);
            let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("{name}-{}-{seed}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            match check(&folder, &emitted, &tally) {
                Ok(()) => _ = std::fs::remove_dir_all(&folder),
                Err(fault) => {
                    let fault = format!("seed {seed}, in {}: {fault}", folder.display());
                    faults.lock().expect("no panic").push(fault);
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| _ = scope.spawn(work)));
    let tally = tally.into_inner().expect("no panic");
    let Tally { complete, open, classes, asked, runs } = &tally;
    println!("{complete} complete, {open} open; {classes} classes, {asked} questions, {runs} runs");
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{} wrong:\n{}", faults.len(), faults.join("\n\n"));
    assert!(complete > open, "few explorations are complete");
    tally
}

#[test]
fn a_complete_exploration_has_every_behaviour() {
    check_programs("explore", 1, check);
}

#[test]
fn parts_have_together_what_the_whole_has() {
    let tally = check_programs("parts", 6, check_parts);
    assert!(tally.classes > tally.complete, "the programs have one class each");
}
