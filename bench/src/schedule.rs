//! How fast the scheduler is: scheduling points a second of a program that does nothing else, where
//! no thread is switched and where one is at every point, by futex and in fiber mode. Recording is
//! part of it, as it always is; processor time is the program's, wall time that of the whole.

use std::ffi::OsString;
use std::time::Instant;

use foretell_record::{Policy, RecordOptions, RunEnd, Switching, record};

use crate::record::{build, measure};

/// The ways, each with the points that take about a second.
const WAYS: [(&str, Policy, Switching, u64); 4] = [
    ("no switch, futex", Policy::RoundRobin { quantum: 1 << 15 }, Switching::Futex, 4_000_000),
    ("no switch, fiber", Policy::RoundRobin { quantum: 1 << 15 }, Switching::Fiber, 4_000_000),
    ("every point, futex", Policy::RoundRobin { quantum: 1 }, Switching::Futex, 200_000),
    ("every point, fiber", Policy::RoundRobin { quantum: 1 }, Switching::Fiber, 4_000_000),
];

/// Prints the table.
pub fn table() -> Result<(), String> {
    let scratch = crate::scratch()?;
    let program = build("points", &scratch)?.concrete;
    println!("  {:<20} {:>10} {:>14} {:>16}", "switches", "points", "points/s", "program ns/point");
    for (way, policy, switching, points) in WAYS {
        let mut options = RecordOptions::new(&program, scratch.join("schedule.ftrace"));
        options.arguments = vec![OsString::from((points / 2).to_string())];
        options.policy = policy;
        options.switching = switching;
        let mut least = f64::INFINITY;
        let (time, _, outcome) = measure(|| {
            let begin = Instant::now();
            let outcome = record(&options).map_err(|error| error.to_string())?;
            least = least.min(begin.elapsed().as_secs_f64());
            Ok(outcome)
        })?;
        if outcome.end != RunEnd::Exit(0) || outcome.events < points {
            return Err(format!("{way}: {:?} after {} events", outcome.end, outcome.events));
        }
        let points = points as f64;
        println!("  {way:<20} {points:>10} {:>14.0} {:>16.1}", points / least, time / points * 1e9);
    }
    Ok(())
}
