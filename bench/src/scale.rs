//! Long traces: violations whose halves are far apart, in traces of up to ten million events. Each row is a
//! process of its own, for its peak memory; what is missed ends the bench with an error.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Instant;

use foretell_predict::{FindingKind, Options, Status, predict};
use foretell_testing::families::{self, Counters};

use crate::measure::peak_mebibytes;

const EVENTS: [usize; 2] = [1_000_000, 10_000_000];
const APART: [usize; 4] = [10, 1_000, 100_000, 1_000_000];
const VIOLATIONS: u32 = 5;

/// Prints the table.
pub fn table() -> Result<(), String> {
    println!(
        "{:>10} {:>9} {:>6} {:>8} {:>9} {:>9} {:>11}",
        "events", "apart", "found", "open", "seconds", "M ev./s", "peak MiB"
    );
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    for events in EVENTS {
        // The halves of the last violation lie in the trace.
        for apart in APART.into_iter().filter(|apart| apart * 2 < events) {
            let words = ["scale".to_owned(), events.to_string(), apart.to_string()];
            let row = Command::new(&own).args(words).status().map_err(|error| error.to_string())?;
            if !row.success() {
                return Err(format!("{events} events, {apart} apart: {row}"));
            }
        }
    }
    Ok(())
}

/// One row.
pub fn row(events: &str, apart: &str) -> Result<(), String> {
    let number = |text: &str| text.parse().map_err(|_| format!("{text} is not a number of events"));
    let (events, apart) = (number(events)?, number(apart)?);
    let wanted =
        Counters { threads: 8, counters: 64, events, violations: VIOLATIONS, apart, seed: 2026 };
    let trace = families::counters(wanted);
    let started = Instant::now();
    let options = Options { properties: vec![FindingKind::Atomicity], ..Options::default() };
    let prediction = predict(&trace, &options).map_err(|error| error.to_string())?;
    let seconds = started.elapsed().as_secs_f64();
    let is_found = |status: &Status| *status == Status::Predicted;
    let (found, open): (Vec<_>, Vec<_>) =
        prediction.findings.iter().partition(|finding| is_found(&finding.status));
    let found: BTreeSet<&str> = found.iter().map(|finding| finding.group.as_str()).collect();
    println!(
        "{:>10} {apart:>9} {:>6} {:>8} {seconds:>9.1} {:>9.2} {:>11.0}",
        trace.events.len(),
        found.len(),
        open.len(),
        trace.events.len() as f64 / seconds / 1e6,
        peak_mebibytes()?
    );
    match found.len() == VIOLATIONS as usize && open.is_empty() {
        true => Ok(()),
        false => Err("not all violations are found".into()),
    }
}
