//! The binary format on a million events of the STD shape, with values as a run would have them:
//! bytes an event on disk, events a CPU second encoded, streamed and read.

use foretell_trace::format::{binary, rapid};
use foretell_trace::info::TraceInfo;
use foretell_trace::{Event, Op, Trace};

use crate::{generate, measure, scratch};

/// Writes, streams and reads the file; prints a table.
pub fn run() -> Result<(), String> {
    let std_file = scratch()?.join("trace-1M.std");
    generate::std_file(&std_file, 1_000_000, generate::Mode::Clean)
        .map_err(|error| format!("cannot write {}: {error}", std_file.display()))?;
    let std_bytes = std::fs::read(&std_file).map_err(|error| error.to_string())?;
    let plain = rapid::read(std_bytes.as_slice()).map_err(|error| error.to_string())?;
    println!("{} events, {} bytes as STD", plain.events.len(), std_bytes.len());
    println!(
        "values    bytes/event   write events/CPU s   stream events/CPU s   read events/CPU s"
    );
    table_row("none", &plain)?;
    table_row("counters", &with_values(&plain, |value| value.wrapping_add(1)))?;
    let mut random = foretell_testing::Random::new(1);
    table_row("random", &with_values(&plain, |_| random.bits()))?;
    Ok(())
}

/// Gives every write the next value of its variable, and every read the last one written.
fn with_values(trace: &Trace, mut next: impl FnMut(u64) -> u64) -> Trace {
    let mut values = vec![0; trace.variables.len()];
    let mut trace = trace.clone();
    for Event { op, .. } in &mut trace.events {
        match op {
            Op::Read(access) => access.value = Some(values[access.variable.index()]),
            Op::Write(access) => {
                let value = &mut values[access.variable.index()];
                *value = next(*value);
                access.value = Some(*value);
            }
            _ => {}
        }
    }
    trace
}

fn table_row(name: &str, trace: &Trace) -> Result<(), String> {
    let events = trace.events.len() as f64;
    let mut file = Vec::with_capacity(trace.events.len() * 16);
    let write_rate = rate(events, || {
        file.clear();
        binary::write(trace, &mut file).map_err(|error| error.to_string())
    })?;
    let stream_rate =
        rate(events, || TraceInfo::of_binary(&file).map(drop).map_err(|error| error.to_string()))?;
    let read_rate = rate(events, || {
        let read = binary::read(&file).map_err(|error| error.to_string())?;
        if read == *trace { Ok(()) } else { Err("the file does not round-trip".to_owned()) }
    })?;
    println!(
        "{name:<9} {:>11.2} {write_rate:>20.0} {stream_rate:>21.0} {read_rate:>19.0}",
        file.len() as f64 / events
    );
    Ok(())
}

/// Events a CPU second, the fastest of three runs.
fn rate(events: f64, mut run: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let before = measure::cpu_seconds()?;
        run()?;
        best = best.min(measure::cpu_seconds()? - before);
    }
    Ok(events / best)
}
