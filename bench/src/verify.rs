//! The programs of `examples/verify`. C programs are explored: verdict, states, time. Guarded commands
//! are the table of 001's Table 4: iterations and time of both refinements; beside them what a user
//! would do otherwise, plain bounded checking and an outside model checker (Spin).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use foretell_verify::bounded::{self, Bounded};
use foretell_verify::certificate::{Certificate, Property};
use foretell_verify::checker::{self, Answer};
use foretell_verify::explore::search;
use foretell_verify::ir::clang;
use foretell_verify::{Options, Program, Refinement, Verdict, text, verify};

use crate::measure::{children_seconds, cpu_seconds};
use crate::{families, scratch, spin};

/// Steps of bounded checking.
const BOUND: usize = 12;

/// Each refinement runs so often on each program; the median counts.
const RUNS: usize = 3;

/// No verdict may take longer.
const SECONDS: f64 = 60.0;

/// What a refinement cost on one program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Searches of the abstract program.
    pub iterations: usize,
    /// To the solver.
    pub questions: u64,
    samples: usize,
    /// CPU, the solver's included.
    pub cpu: f64,
    /// Wall clock.
    wall: f64,
}

/// Prints the table; an error if it does not show what it is to show.
pub fn table() -> Result<(), String> {
    c_programs()?;
    families::table()?;
    guarded_commands()
}

/// States of one program.
const STATES: usize = 100_000;

/// The C programs, explored: what they say of themselves beside what is found, what the independent
/// checker says of the proofs, and what Spin says of the same program where it was written in Promela
/// by hand (`bench/programs/verify/*.pml`: the same shared variables and steps).
fn c_programs() -> Result<(), String> {
    let mut files = Vec::new();
    for folder in ["../examples/verify", "programs/verify"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "c"));
    files.sort();
    let spins = spin::installed();
    println!(
        "{:<24} {:<10} {:<9} {:>8} {:>8} {:>7} {:>7} | {:<9} {:>7} | {:<9} {:>7}",
        "program",
        "expected",
        "found",
        "states",
        "steps",
        "clang s",
        "all s",
        "checker",
        "s",
        "spin",
        "s"
    );
    let mut counts = [0; 3];
    let mut wrong = Vec::new();
    let mut undecided: BTreeMap<String, usize> = BTreeMap::new();
    let mut both = [0.0; 2];
    for file in &files {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let source = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        let header = source.split("*/").next().unwrap_or_default();
        let deadlocks = header.contains("Deadlock.") || header.contains("No deadlock.");
        let expected = match header.contains("Deadlock.") || header.contains("Unsafe") {
            true => "violated",
            false => "proved",
        };
        let started = Instant::now();
        // without the place
        let mut undecided_for = |why: &str| {
            let reason = why.rsplit(": ").next().unwrap_or(why).to_owned();
            *undecided.entry(reason).or_default() += 1;
        };
        let module = match clang::compile(file, clang::Options::default()) {
            Ok(module) => module,
            Err(why) => {
                println!("{name:<24} {expected:<10} refused");
                counts[2] += 1;
                undecided_for(&why.to_string());
                continue;
            }
        };
        let compiled = started.elapsed();
        let options = search::Options { deadlocks, states: STATES, ..search::Options::default() };
        let report = search::explore(&module, &options);
        let explored = started.elapsed();
        let (found, count) = match &report.verdict {
            search::Verdict::Proved(_) => ("proved", 0),
            search::Verdict::Violated(_) => ("violated", 1),
            search::Verdict::Unknown(_) => ("unknown", 2),
        };
        counts[count] += 1;
        if let search::Verdict::Unknown(why) = &report.verdict {
            undecided_for(why);
        }
        let started = Instant::now();
        let checked = match &report.verdict {
            search::Verdict::Proved(summary) => {
                let mut properties = BTreeSet::from([Property::Assertion]);
                properties.extend(deadlocks.then_some(Property::Deadlock));
                let assumed = report.assumptions.clone();
                let proof = Certificate::new(&module, properties.clone(), assumed, summary.print());
                match checker::check(&module, &proof, &properties) {
                    Answer::Holds(_) => "holds",
                    Answer::Rejected(_) => "rejected",
                    Answer::NotChecked(_) => "cannot",
                }
            }
            _ => "-",
        };
        let checker_time = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let model = file.with_extension("pml");
        let spin = match std::fs::read_to_string(&model) {
            Ok(model) if spins => {
                let answer = spin::check_model(&name, &model, false, &scratch()?.join("spin"))?;
                both[0] += explored.as_secs_f64();
                both[1] += started.elapsed().as_secs_f64();
                answer.shown()
            }
            _ => "-".into(),
        };
        println!(
            "{name:<24} {expected:<10} {found:<9} {:>8} {:>8} {:>7.2} {:>7.2} | {checked:<9} \
             {checker_time:>7.2} | {spin:<9} {:>7.2}",
            report.states,
            report.steps,
            compiled.as_secs_f64(),
            explored.as_secs_f64(),
            started.elapsed().as_secs_f64()
        );
        let disagrees = match spin.as_str() {
            "violated" => found == "proved",
            "none" => found == "violated",
            _ => false,
        };
        if count < 2 && found != expected || disagrees || checked == "rejected" {
            wrong
                .push(format!("{name}: {found}, not {expected}; spin: {spin}, checker: {checked}"));
        }
    }
    let [proved, violated, unknown] = counts;
    println!(
        "{} C programs: {proved} proved, {violated} violated, {unknown} unknown or refused",
        files.len()
    );
    for (reason, count) in undecided {
        println!("  {count} not decided: {reason}");
    }
    println!(
        "programs that are there in Promela, too: {:.1} s with clang, {:.1} s for spin, gcc and the \
         check\n",
        both[0], both[1]
    );
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("; ")),
    }
}

/// Guarded commands by both refinements, bounded checking and Spin.
fn guarded_commands() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/verify");
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "cmd"));
    files.sort();
    let spins = spin::installed();
    if !spins {
        println!("spin: not installed (apt install spin gcc)\n");
    }
    println!(
        "{:<22} {:<7} | {:>5} {:>6} {:>6} | {:>5} {:>6} {:>6} {:>7} | {:>10} {:>6} | {:<16} {:>6}",
        "program",
        "verdict",
        "trace",
        "quest.",
        "cpu s",
        "hood",
        "quest.",
        "cpu s",
        "samples",
        format!("bound {BOUND}"),
        "cpu s",
        "spin",
        "cpu s"
    );
    let mut totals = [Cost::default(); 2];
    let mut best: Option<(f64, String)> = None;
    let mut wrong = Vec::new();
    let started = Instant::now();
    for file in &files {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let program = read(file)?;
        let (verdict, [trace, hood]) = both(&program)?;
        for (total, cost) in totals.iter_mut().zip([trace, hood]) {
            total.iterations += cost.iterations;
            total.questions += cost.questions;
            total.cpu += cost.cpu;
            total.wall += cost.wall;
        }
        let (bounded, bounded_cpu) = timed(|| {
            Ok(match bounded::check(&program, BOUND) {
                Ok(Bounded::Violated) => "violated",
                Ok(Bounded::NoneWithin(_)) => "none seen",
                Err(_) => "gave up",
            })
        })?;
        let (spin, spin_cpu) = match spins {
            true => {
                let folder = scratch()?.join("spin");
                let (answer, cpu) = timed(|| spin::check(&program, &folder))?;
                (Some(answer), format!("{cpu:.2}"))
            }
            false => (None, "-".into()),
        };
        let shown = spin.as_ref().map_or("not installed".into(), spin::Answer::shown);
        println!(
            "{name:<22} {verdict:<7} | {:>5} {:>6} {:>6.2} | {:>5} {:>6} {:>6.2} {:>7} | \
             {bounded:>10} {bounded_cpu:>6.2} | {shown:<16} {spin_cpu:>6}",
            trace.iterations,
            trace.questions,
            trace.cpu,
            hood.iterations,
            hood.questions,
            hood.cpu,
            hood.samples
        );
        let ratio = trace.cpu / hood.cpu.max(0.01);
        if best.as_ref().is_none_or(|(most, _)| ratio > *most) {
            best = Some((ratio, name.to_string()));
        }
        if hood.iterations > trace.iterations {
            wrong.push(format!("{name}: the neighbourhood needs more iterations"));
        }
        if hood.wall.max(trace.wall) > SECONDS {
            wrong.push(format!("{name}: more than {SECONDS} s"));
        }
        let disagrees = match &spin {
            Some(spin::Answer::Violated) => verdict == "safe",
            Some(spin::Answer::None { bounded: false }) => verdict == "unsafe",
            _ => false,
        };
        if disagrees || bounded == "violated" && verdict == "safe" {
            wrong.push(format!("{name}: the verdicts disagree"));
        }
    }
    let [trace, hood] = totals;
    println!(
        "{} programs, medians of {RUNS} runs\n\
         by the trace:         {:>4} iterations, {:>6} questions, {:>6.2} s of CPU, {:>6.2} s\n\
         by the neighbourhood: {:>4} iterations, {:>6} questions, {:>6.2} s of CPU, {:>6.2} s\n\
         {:.0} % fewer iterations; {:.0} s in all\n\
         bound {BOUND}: nothing is said of longer executions. spin: the joined program in Promela, with \
         spin's own reduction;\n\
         its seconds are those of spin, gcc and the check. \"none for A..B\" holds for inputs of these \
         values only.",
        files.len(),
        trace.iterations,
        trace.questions,
        trace.cpu,
        trace.wall,
        hood.iterations,
        hood.questions,
        hood.cpu,
        hood.wall,
        100.0 * (1.0 - hood.iterations as f64 / trace.iterations as f64),
        started.elapsed().as_secs_f64()
    );
    let (ratio, program) = best.unwrap_or_default();
    println!(
        "the neighbourhood needs 1/{:.2} of the CPU time in all, and 1/{ratio:.2} for {program}",
        trace.cpu / hood.cpu.max(0.01)
    );
    if ratio < 1.5 {
        wrong.push("the neighbourhood is nowhere clearly faster".into());
    }
    if hood.iterations * 4 > trace.iterations * 3 {
        wrong.push("the neighbourhood does not save a quarter of the iterations".into());
    }
    if hood.cpu > trace.cpu {
        wrong.push("the neighbourhood is slower in total".into());
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("; ")),
    }
}

/// The verdict and what both refinements cost, in turn, so that a busy machine is unfair to both.
pub fn both(program: &Program) -> Result<(&'static str, [Cost; 2]), String> {
    let mut runs: [Vec<Cost>; 2] = Default::default();
    let mut verdict = "";
    for _ in 0..RUNS {
        let refinements = [Refinement::Trace, Refinement::Neighbourhood];
        for (refinement, runs) in refinements.into_iter().zip(&mut runs) {
            let options = Options { refinement, ..Options::default() };
            let started = Instant::now();
            let (report, cpu) =
                timed(|| verify(program, &options).map_err(|trouble| trouble.to_string()))?;
            verdict = match report.verdict {
                // what one of them does not decide cannot be compared
                _ if verdict == "unknown" => verdict,
                Verdict::Proved(_) => "safe",
                Verdict::Violated(_) => "unsafe",
                Verdict::Unknown(_) => "unknown",
            };
            let cost = report.statistics;
            runs.push(Cost {
                iterations: cost.iterations,
                questions: cost.questions,
                samples: cost.samples,
                cpu,
                wall: started.elapsed().as_secs_f64(),
            });
        }
    }
    let median = |runs: &mut Vec<Cost>| {
        runs.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
        runs[RUNS / 2]
    };
    let [trace, hood] = &mut runs;
    Ok((verdict, [median(trace), median(hood)]))
}

/// What something gives, and the CPU time of this process and the ones it waited for.
fn timed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<(T, f64), String> {
    let before = cpu_seconds()? + children_seconds()?;
    let result = work()?;
    Ok((result, cpu_seconds()? + children_seconds()? - before))
}

fn read(file: &Path) -> Result<Program, String> {
    let shown = file.display().to_string();
    let source =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    text::parse(&shown, &source).map_err(|error| error.to_string())
}
