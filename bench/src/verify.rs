//! The table of 001's Table 4 on `examples/verify`: iterations and time of both refinements, and
//! plain bounded checking beside them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use foretell_verify::bounded::{self, Bounded};
use foretell_verify::{Options, Program, Refinement, Verdict, c, text, verify};

use crate::measure::{children_seconds, cpu_seconds};

/// Steps of bounded checking.
const BOUND: usize = 12;

/// Prints the table; an error if the neighbourhood does not keep what the table is to show.
pub fn table() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/verify");
    let entries = std::fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    println!(
        "{:<24} {:<9} {:>5} {:>8} {:>6} {:>5} {:>8} {:>6} {:>7} {:>14} {:>7}",
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
        "cpu s"
    );
    let mut totals = [(0, 0, 0.0), (0, 0, 0.0)];
    let mut worse = Vec::new();
    let started = Instant::now();
    for file in &files {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let program = read(file)?;
        let mut cells = Vec::new();
        let mut verdict = "";
        for (refinement, total) in
            [Refinement::Trace, Refinement::Neighbourhood].into_iter().zip(&mut totals)
        {
            let before = cpu_seconds()? + children_seconds()?;
            let options = Options { refinement, ..Options::default() };
            let report = verify(&program, &options).map_err(|trouble| trouble.to_string())?;
            let spent = cpu_seconds()? + children_seconds()? - before;
            verdict = match report.verdict {
                Verdict::Proved(_) => "safe",
                Verdict::Violated(_) => "unsafe",
                Verdict::Unknown(_) => "unknown",
            };
            let cost = report.statistics;
            total.0 += cost.iterations;
            total.1 += cost.questions;
            total.2 += spent;
            cells.push((cost.iterations, cost.questions, spent, cost.samples));
        }
        let before = cpu_seconds()? + children_seconds()?;
        let bounded = match bounded::check(&program, BOUND) {
            Ok(Bounded::Violated) => "violated",
            Ok(Bounded::NoneWithin(_)) => "none seen",
            Err(_) => "gave up",
        };
        let spent = cpu_seconds()? + children_seconds()? - before;
        let (trace, hood) = (cells[0], cells[1]);
        println!(
            "{name:<24} {verdict:<9} {:>5} {:>8} {:>6.2} {:>5} {:>8} {:>6.2} {:>7} {bounded:>14} \
             {spent:>7.2}",
            trace.0, trace.1, trace.2, hood.0, hood.1, hood.2, hood.3
        );
        if hood.0 > trace.0 {
            worse.push(name.to_string());
        }
    }
    let [trace, hood] = totals;
    println!(
        "{} programs: {} iterations, {} questions, {:.1} s of CPU by the trace; {} iterations, {} \
         questions, {:.1} s by the neighbourhood: {:.0} % fewer iterations ({:.0} s in all)",
        files.len(),
        trace.0,
        trace.1,
        trace.2,
        hood.0,
        hood.1,
        hood.2,
        100.0 * (1.0 - hood.0 as f64 / trace.0 as f64),
        started.elapsed().as_secs_f64()
    );
    match worse.is_empty() {
        true => Ok(()),
        false => Err(format!("the neighbourhood needs more iterations for {}", worse.join(", "))),
    }
}

fn read(file: &Path) -> Result<Program, String> {
    let shown = file.display().to_string();
    let source =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let program = match shown.ends_with(".c") {
        true => c::parse(&shown, &source, c::Options::default()),
        false => text::parse(&shown, &source),
    };
    program.map_err(|error| error.to_string())
}
