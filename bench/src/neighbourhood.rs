//! Happens-before formulas: TARA's own benchmarks beside TARA's CPU time, and loops of growing
//! length (paper 001, Table 1).
//!
//! The benchmarks are read from the shared folder (`FORETELL_SHARED`, or `../shared` of the
//! project); the loops are generated here.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use foretell_neighbourhood::{Explanation, Options, explain};
use foretell_trace::format::ctrc;
use serde_json::Value;

use crate::measure::cpu_seconds;

/// The families of loops: two threads, each iteration should be atomic with respect to the other's.
#[derive(Clone, Copy, PartialEq)]
enum Family {
    /// Write, read, check that nobody wrote in between.
    Own,
    /// The same, where fixed orders let only iterations of the same number meet (the paper's loop-x).
    Lock,
}

/// A loop of `count` iterations as CTRC text.
fn loop_text(family: Family, count: usize) -> String {
    let mut text = String::from("global: x\npre: (= x 0)\n");
    for (thread, base) in [("a", 0), ("b", 1000)] {
        writeln!(text, "thread t{thread} {{ l i }}:").expect("text");
        for n in 1..=count {
            writeln!(
                text,
                "{thread}w{n}: (= x. {})\n{thread}r{n}: (= l. x)\n{thread}i{n}: (= i. (+ i 1))\n\
                 {thread}c{n}: assert(= x l)",
                base + n
            )
            .expect("text");
        }
    }
    if family == Family::Lock {
        text.push_str("order:");
        for n in 1..count {
            write!(text, " bc{n} < aw{} ac{n} < bw{}", n + 1, n + 1).expect("text");
        }
        text.push('\n');
    }
    text
}

fn measured(text: &str, synthesis: bool) -> Result<(Explanation, f64), String> {
    let start = cpu_seconds()?;
    let mut rounds = 0;
    loop {
        let trace = ctrc::read(text).map_err(|error| error.to_string())?;
        let options = Options { synthesis, ..Options::default() };
        let explanation = explain(&trace, &options).map_err(|error| error.to_string())?;
        rounds += 1;
        // the clock ticks in milliseconds: short ones are repeated and averaged
        let seconds = cpu_seconds()? - start;
        if seconds > 0.1 || rounds == 20 {
            return Ok((explanation, seconds / f64::from(rounds)));
        }
    }
}

/// The table of TARA's benchmarks, and the loops.
pub fn run() -> Result<(), String> {
    files()?;
    println!();
    for (name, family, counts) in [
        ("lock (the paper's loop-x)", Family::Lock, [8, 16, 32]),
        ("own", Family::Own, [8, 16, 32]),
    ] {
        println!("loop family {name}");
        let mut last: Option<f64> = None;
        for count in counts {
            let (explanation, seconds) = measured(&loop_text(family, count), false)?;
            let growth = last.map_or(String::new(), |last| format!("{:.1}x", seconds / last));
            println!(
                "  {count:>3} iterations {:>5} disjuncts {:>3} patterns {seconds:>8.3} s CPU {growth:>6}  {:?}",
                explanation.bad.clauses().len(),
                explanation.by_line.len(),
                explanation.verdict,
            );
            last = Some(seconds);
        }
    }
    Ok(())
}

fn shared() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = match std::env::var_os("FORETELL_SHARED") {
        Some(path) => vec![PathBuf::from(path)],
        None => vec![manifest.join("../../shared"), manifest.join("../../../shared")],
    };
    places
        .into_iter()
        .find(|path| path.join("data/expected.json").is_file())
        .ok_or("no shared folder with data/expected.json: set FORETELL_SHARED".to_owned())
}

fn files() -> Result<(), String> {
    let shared = shared()?;
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let expected: Value = serde_json::from_str(&read(shared.join("data/expected.json"))?)
        .map_err(|error| format!("expected.json: {error}"))?;
    let files = expected["files"].as_object().ok_or("expected.json has no files")?;
    println!(
        "{:<16} {:>9} {:>5} {:>9} {:>8} {:>6}   wall ms: build, formulas, summary, synthesis; CPU with synthesis",
        "file", "iter.", "size", "CPU s", "TARA s", "ratio"
    );
    let (mut ours, mut theirs, mut whole) = (0.0, 0.0, 0.0);
    for (file, answer) in files {
        let text = read(shared.join(format!("data/ctrc/{file}.ctrc")))?;
        let (explanation, seconds) = measured(&text, false)?;
        let (full, all) = measured(&text, true)?;
        let tara = answer["cpu_s"].as_f64().ok_or("no cpu_s")?;
        (ours, theirs, whole) = (ours + seconds, theirs + tara, whole + all);
        let phases = full.statistics.phases;
        let milliseconds = |phase: std::time::Duration| phase.as_secs_f64() * 1e3;
        println!(
            "{file:<16} {:>4}/{:<4} {:>2}/{:<2} {seconds:>9.4} {tara:>8.2} {:>5.0}x   {:.1} {:.1} {:.1} {:.1}; {all:.4}",
            explanation.statistics.work.iterations,
            answer["iterations"],
            explanation.bad.clauses().len(),
            answer["phi_B"].as_array().map_or(0, Vec::len),
            tara / seconds,
            milliseconds(phases.build),
            milliseconds(phases.neighbourhood),
            milliseconds(phases.summary),
            milliseconds(phases.synthesis),
        );
    }
    println!(
        "{:<32} {ours:>9.4} {theirs:>8.2} {:>5.0}x   with synthesis {whole:.4} s, {:.0}x",
        "all files",
        theirs / ours,
        theirs / whole
    );
    Ok(())
}
