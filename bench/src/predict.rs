//! Prediction on the papers' families, on a million events, and solver against solver.

use std::collections::BTreeSet;
use std::time::Instant;

use foretell_predict::{Backend, FindingKind, Options, Prediction, Status, predict};
use foretell_testing::families::{self, BankVersion, Counters};
use foretell_trace::{Op, Trace};

use crate::measure::{cpu_seconds, peak_mebibytes};

/// A generated trace and what is known about it.
struct Case {
    name: String,
    trace: Trace,
    kind: FindingKind,
    /// Violations that there are.
    expected: usize,
}

impl Case {
    fn atomicity(name: String, trace: Trace, expected: usize) -> Self {
        Self { name, trace, kind: FindingKind::Atomicity, expected }
    }

    fn assertion(name: String, trace: Trace, fails: bool) -> Self {
        Self { name, trace, kind: FindingKind::Assertion, expected: usize::from(fails) }
    }
}

fn atoms() -> Vec<Case> {
    vec![
        Case::atomicity("atom001".into(), families::atom001(false), 1),
        Case::atomicity("atom001a".into(), families::atom001(true), 0),
        Case::atomicity("atom002".into(), families::atom002(false), 33),
        Case::atomicity("atom002a".into(), families::atom002(true), 0),
    ]
}

fn banks(sizes: &[u32]) -> Vec<Case> {
    let mut cases = Vec::new();
    for version in [BankVersion::Violated, BankVersion::SomeViolated, BankVersion::NoneViolated] {
        for &threads in sizes {
            let expected = version.violations_per_thread() * threads as usize;
            let name = format!("{}-{threads}", version.name());
            cases.push(Case::atomicity(name, families::bank(version, threads), expected));
        }
    }
    cases
}

fn bankings(sizes: &[u32]) -> Vec<Case> {
    let case = |&threads: &u32| {
        let trace = |erroneous| families::banking(threads, erroneous);
        [
            Case::assertion(format!("banking-{threads}"), trace(false), false),
            Case::assertion(format!("banking-{threads}a"), trace(true), true),
        ]
    };
    sizes.iter().flat_map(case).collect()
}

fn indexers(sizes: &[u32]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &threads in sizes {
        // The recorded steps have fixed entries, so one that a single thread comes to never fails.
        let entry = lonely_entry(&families::indexer(threads, u64::MAX));
        let passed = families::indexer(threads, entry);
        cases.push(Case::assertion(format!("indexer-{threads}"), passed, false));
        if let Some(entry) = families::first_collision(threads) {
            let trace = families::indexer(threads, entry);
            cases.push(Case::assertion(format!("indexer-{threads}a"), trace, true));
        }
    }
    cases
}

/// An entry of the hash table that exactly one thread comes to.
fn lonely_entry(trace: &Trace) -> u64 {
    let mut visitors = vec![BTreeSet::new(); trace.variables.len()];
    for event in &trace.events {
        if let Op::ReadModifyWrite(step) = &event.op {
            visitors[step.variable.index()].insert(event.thread);
        }
    }
    visitors.iter().position(|threads| threads.len() == 1).unwrap_or(0) as u64
}

fn loops(sizes: &[u32]) -> Vec<Case> {
    let case = |&n: &u32| Case::assertion(format!("loop-{n}"), families::lost_update(n), true);
    sizes.iter().map(case).collect()
}

/// Seconds by the wall clock, the fastest of many times: what takes less than a tick of the CPU clock.
fn fastest(case: &Case) -> Result<f64, String> {
    let mut seconds = f64::INFINITY;
    for _ in 0..20 {
        let begin = Instant::now();
        analyse(case, Backend::default())?;
        seconds = seconds.min(begin.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn analyse(case: &Case, backend: Backend) -> Result<(Prediction, f64), String> {
    let options = Options { properties: vec![case.kind], backend, ..Options::default() };
    let started = cpu_seconds()?;
    let prediction =
        predict(&case.trace, &options).map_err(|error| format!("{}: {error}", case.name))?;
    if let Some(error) = prediction.internal_errors.first() {
        return Err(format!("{}: {error}", case.name));
    }
    Ok((prediction, cpu_seconds()? - started))
}

fn predicted(prediction: &Prediction) -> usize {
    let sure = |status: &Status| *status == Status::Predicted;
    prediction.findings.iter().filter(|finding| sure(&finding.status)).count()
}

/// The tables of both papers.
pub fn families() -> Result<(), String> {
    let sizes = [2, 4, 6, 8, 16, 32];
    let cases: Vec<Case> = [
        atoms(),
        banks(&sizes),
        bankings(&[2, 5, 10, 20]),
        indexers(&[10, 15, 20, 25, 30, 40, 50]),
        loops(&[4, 8, 16, 32]),
    ]
    .into_iter()
    .flatten()
    .collect();
    println!(
        "{:<12} {:>5} {:>5} {:>11} {:>7} {:>9} {:>7} {:>5} {:>7} {:>8}",
        "name",
        "thrds",
        "svars",
        "slice/orig",
        "regions",
        "orig-pavs",
        "hb-pavs",
        "pavs",
        "sym-avs",
        "CPU (s)"
    );
    let mut wrong = Vec::new();
    let mut navs = Vec::new();
    for case in &cases {
        let (prediction, seconds) = analyse(case, Backend::default())?;
        let statistics = prediction.statistics;
        let found = predicted(&prediction);
        println!(
            "{:<12} {:>5} {:>5} {:>11} {:>7} {:>9} {:>7} {:>5} {:>7} {:>8.3}",
            case.name,
            statistics.threads,
            statistics.shared_variables,
            format!("{}/{}", statistics.events_after_slicing, statistics.events),
            statistics.regions,
            statistics.original_patterns,
            statistics.after_must_order,
            statistics.after_locksets,
            found,
            seconds
        );
        if found != case.expected || prediction.findings.len() != found {
            wrong.push(format!(
                "{}: {found} of {} violations, {} undecided",
                case.name,
                case.expected,
                prediction.findings.len() - found
            ));
        }
        if let Some(threads) = case.name.strip_prefix("bank-nav-") {
            let threads = threads.parse::<f64>().map_err(|error| error.to_string())?;
            navs.push((threads, fastest(case)?));
        }
    }
    if let [.., (few, fast), _, (many, slow)] = navs[..] {
        let exponent = (slow / fast).ln() / (many / few).ln();
        println!(
            "bank-nav grows with the power {exponent:.2} of the threads: {:.2} ms with {few}, {:.2} ms \
             with {many}",
            fast * 1e3,
            slow * 1e3
        );
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// A million events: lock-protected counters with a handful of violations.
pub fn million() -> Result<(), String> {
    let wanted = Counters {
        threads: 8,
        counters: 64,
        events: 1_000_000,
        violations: 5,
        apart: 0,
        seed: 2026,
    };
    let trace = families::counters(wanted);
    let generated = cpu_seconds()?;
    let started = Instant::now();
    let prediction = predict(&trace, &Options::default()).map_err(|error| error.to_string())?;
    let statistics = prediction.statistics;
    println!(
        "{} events, {} threads: {:.1} s ({:.1} s CPU), peak {:.0} MiB",
        statistics.events,
        statistics.threads,
        started.elapsed().as_secs_f64(),
        cpu_seconds()? - generated,
        peak_mebibytes()?
    );
    println!(
        "patterns {}, after must-happens-before {}, after locksets {}; candidates {:.1} s, solving {:.1} s, largest window {} events",
        statistics.original_patterns,
        statistics.after_must_order,
        statistics.after_locksets,
        statistics.candidate_time.as_secs_f64(),
        statistics.solve_time.as_secs_f64(),
        statistics.events_after_slicing
    );
    for finding in &prediction.findings {
        println!("{:?} {}", finding.status, finding.detail);
    }
    for unseen in &prediction.unseen {
        println!("unseen: {unseen}");
    }
    let groups: BTreeSet<&str> = prediction
        .findings
        .iter()
        .filter(|finding| {
            finding.status == Status::Predicted && finding.kind == FindingKind::Atomicity
        })
        .map(|finding| finding.group.as_str())
        .collect();
    match groups.len() == wanted.violations as usize {
        true => Ok(()),
        false => Err(format!("{} of {} violations found", groups.len(), wanted.violations)),
    }
}

/// The embedded solver against Z3 on the same questions, in one run.
pub fn solvers() -> Result<(), String> {
    let cases: Vec<Case> =
        [atoms(), banks(&[2, 3, 4]), bankings(&[2, 5]), indexers(&[10, 15, 20]), loops(&[4, 6])]
            .into_iter()
            .flatten()
            .collect();
    println!("{:<12} {:>12} {:>10} {:>8}", "name", "embedded (s)", "z3 (s)", "ratio");
    let mut logarithms = Vec::new();
    for case in &cases {
        let mut seconds = [0.0; 2];
        let mut answers = [0; 2];
        for (place, backend) in [Backend::Embedded, Backend::Z3].into_iter().enumerate() {
            let (prediction, _) = analyse(case, backend)?;
            seconds[place] = prediction.statistics.solve_time.as_secs_f64();
            answers[place] = predicted(&prediction);
        }
        if answers[0] != answers[1] {
            return Err(format!("{}: {} against {} findings", case.name, answers[0], answers[1]));
        }
        let ratio = seconds[1] / seconds[0];
        logarithms.push(ratio.ln());
        println!("{:<12} {:>12.4} {:>10.3} {:>8.1}", case.name, seconds[0], seconds[1], ratio);
    }
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    println!("geometric mean: {mean:.1} times faster");
    Ok(())
}
