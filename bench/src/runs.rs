//! How many forced runs there are a second: `examples/bank` through the runner, with two jobs, by fork
//! server and by `execve`, beside plain runs of the program by fork and exec, and what the parts of one
//! run take.
//!
//! *start*: until the process is there; *run*: until it has ended; *convert*: its records to a trace in
//! memory; *ask*: what the exploration takes for each run that it has made, besides the run. What is
//! forced is a run in which the threads take turns after every second event.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foretell_explore::{Doubt, Executed, Probe, explore};
use foretell_force::program::Program;
use foretell_force::run::{Limits, Run, Runner};
use foretell_force::session::UNINTERRUPTED;
use foretell_record::{Policy, RunEnd};
use foretell_trace::schedule::{CreationPath, Step};
use foretell_trace::{Event, Trace};

use crate::record::build_source;

/// Two cores, two jobs.
const JOBS: usize = 2;
/// So many runs of each kind.
const RUNS: usize = 2000;
const LIMITS: Limits = Limits { time: Duration::from_secs(60), points: 1_000_000 };

/// Prints the table.
pub fn table() -> Result<(), String> {
    // As the command does: what runs leave behind is looked for after every run.
    foretell_guard::descendants::adopt().map_err(|error| error.to_string())?;
    let builds = build_source("../examples/bank/bank.c", "bank", &crate::scratch()?)?;
    let symbolic = builds.symbolic.ok_or("the plugin is missing: make build")?;
    let program = Program::new(&symbolic, Vec::new());
    let runner = Runner::new(&program).map_err(|error| error.to_string())?;
    let (steps, ask) = (schedule(&runner)?, asked(&runner)?);

    let plain = |program: &Path| at_once(RUNS, || exec(program));
    let by_exec = Runner::new(&program).map_err(|error| error.to_string())?;
    by_exec.server.refuse("it is measured without");
    let forced = |runner: &Runner<'_>| run(runner, steps.clone()).map(|_| ());
    let rates = [
        ("plain program, fork and exec", plain(&builds.plain)?),
        ("instrumented program, fork and exec", plain(&symbolic)?),
        ("forced runs, by execve", at_once(RUNS / 4, || forced(&by_exec))?),
        ("forced runs, by fork server", at_once(RUNS, || forced(&runner))?),
    ];
    if let Some(why) = runner.server.refusal() {
        return Err(format!("there is no fork server: {why}"));
    }
    println!("  {:<38} {:>10} {:>10}", format!("examples/bank, {JOBS} jobs"), "runs/s", "of plain");
    for (what, rate) in rates {
        println!("  {what:<38} {rate:>10.0} {:>10.2}", rate / rates[0].1);
    }
    println!(
        "  {:<38} {:>8} {:>8} {:>8} {:>8}",
        "one run, one job, us", "start", "run", "convert", "ask"
    );
    for (what, runner) in [("by execve", &by_exec), ("by fork server", &runner)] {
        let mut parts = [Duration::ZERO; 3];
        for _ in 0..RUNS / 4 {
            let times = run(runner, steps.clone())?.times;
            for (sum, part) in parts.iter_mut().zip([times.start, times.run, times.convert]) {
                *sum += part;
            }
        }
        let [start, run, convert] = parts.map(|sum| micro(sum) / (RUNS / 4) as f64);
        println!("  {what:<38} {start:>8.0} {run:>8.0} {convert:>8.0} {:>8.0}", micro(ask));
    }
    Ok(())
}

fn micro(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn run(runner: &Runner<'_>, steps: Vec<Step>) -> Result<Run, String> {
    runner.run(steps, UNINTERRUPTED, LIMITS).map_err(|error| error.to_string())
}

/// Runs of the program as anybody starts it.
fn exec(program: &Path) -> Result<(), String> {
    let nothing = Stdio::null;
    let run = Command::new(program).stdin(nothing()).stdout(nothing()).stderr(nothing()).status();
    run.map(|_| ()).map_err(|error| format!("{}: {error}", program.display()))
}

/// How many a second, with two jobs.
fn at_once(count: usize, one: impl Fn() -> Result<(), String> + Sync) -> Result<f64, String> {
    one()?; // what is only done once
    let begun = AtomicUsize::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let job = || {
            scope.spawn(|| -> Result<(), String> {
                while begun.fetch_add(1, Ordering::Relaxed) < count {
                    one()?;
                }
                Ok(())
            })
        };
        let jobs: Vec<_> = (0..JOBS).map(|_| job()).collect();
        jobs.into_iter().try_for_each(|job| job.join().map_err(|_| "a job failed".to_owned())?)
    })?;
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

/// What an exploration takes for each run, besides the run.
fn asked(runner: &Runner<'_>) -> Result<Duration, String> {
    let (mut asking, mut runs) = (Duration::ZERO, 0);
    for _ in 0..10 {
        let first = executed(run(runner, Vec::new())?, 0);
        let mut bank = Bank { runner, runs: 1, running: Duration::ZERO };
        let begin = Instant::now();
        explore(first, &mut bank, &foretell_explore::Limits::default());
        asking += begin.elapsed().saturating_sub(bank.running);
        runs += bank.runs;
    }
    Ok(asking / runs)
}

/// A run in which the threads take turns, as a schedule.
fn schedule(runner: &Runner<'_>) -> Result<Vec<Step>, String> {
    let policy = Policy::RoundRobin { quantum: 2 };
    let run = runner.run(Vec::new(), policy, LIMITS).map_err(|error| error.to_string())?;
    let trace = &run.trace;
    let step = |event: &Event| Step {
        thread: CreationPath(trace.threads[event.thread.index()].path.clone()),
        index: event.index,
        operation: event.op.keyword().into(),
        site: event.site.map(|site| trace.sites[site.index()].clone()),
    };
    Ok(trace.events.iter().map(step).collect())
}

struct Bank<'r> {
    runner: &'r Runner<'r>,
    runs: u32,
    running: Duration,
}

fn executed(run: Run, wanted: usize) -> Executed {
    Executed {
        followed: run.steps_taken == wanted && !matches!(run.end, RunEnd::LeftSchedule(_)),
        ended: matches!(run.end, RunEnd::Exit(_)),
        held: 0,
        cuts: run.cuts,
        fault: run.crash.as_ref().map(|crash| crash.address),
        trace: run.trace,
    }
}

impl foretell_explore::Program for Bank<'_> {
    fn execute(&mut self, _: &Trace, probes: Vec<Probe>) -> Vec<Result<Executed, Doubt>> {
        let begin = Instant::now();
        let made = probes
            .into_iter()
            .map(|probe| {
                self.runs += 1;
                let wanted = probe.steps.len();
                let run = run(self.runner, probe.steps).map_err(|_| Doubt::NoRun)?;
                Ok(executed(run, wanted))
            })
            .collect();
        self.running += begin.elapsed();
        made
    }

    fn found(&mut self, _: usize, _: &Trace, _: bool) -> Vec<Executed> {
        Vec::new()
    }
}
