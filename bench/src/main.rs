//! Measures foretell. Every figure that the documents quote can be had again with one command:
//!
//! ```text
//! cargo run --release -p foretell-bench -- trace-info       # counting a 10-million-event STD file
//! cargo run --release -p foretell-bench -- trace-binary     # size and speed of the binary format
//! cargo run --release -p foretell-bench -- predict-families # the tables of 000 and 004
//! cargo run --release -p foretell-bench -- predict-million  # a million events
//! cargo run --release -p foretell-bench -- scale            # violations with halves far apart
//! cargo run --release -p foretell-bench -- solvers          # the embedded solver against Z3
//! cargo run --release -p foretell-bench -- record           # what recording costs, beside TSan
//! cargo run --release -p foretell-bench -- binary           # the same for binaries, beside helgrind
//! cargo run --release -p foretell-bench -- schedule         # scheduling points a second
//! cargo run --release -p foretell-bench -- runs             # forced runs a second, and what one takes
//! cargo run --release -p foretell-bench -- order [quick] [NAME] # the embedded solver against Z3
//! cargo run --release -p foretell-bench -- planner          # Table 1 of 003, beside Fast Downward
//! cargo run --release -p foretell-bench -- neighbourhood    # formulas beside TARA, and loops
//! cargo run --release -p foretell-bench -- thesis           # tables 4, 5 and 6 of 002
//! cargo run --release -p foretell-bench -- verify [families] # Table 4 of 001: both refinements
//! cargo run --release -p foretell-bench -- explore          # classes beside traces and random runs
//! cargo run --release -p foretell-bench -- first-finding    # runs until the first failure
//! cargo run --release -p foretell-bench -- generate-std N FILE [clean|racy]
//! ```

mod binary;
mod explore;
mod families;
mod generate;
mod measure;
mod neighbourhood;
mod order;
mod order_problems;
mod planner;
mod predict;
mod record;
mod runs;
mod scale;
mod schedule;
mod spin;
mod thesis;
mod trace_binary;
mod trace_info;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["trace-info"] => trace_info::run(),
        ["trace-binary"] => trace_binary::run(),
        ["predict-families"] => predict::families(),
        ["predict-million"] => predict::million(),
        ["explore"] => explore::families(None),
        ["explore", family] => explore::families(Some(family)),
        ["first-finding"] => explore::first_finding(),
        ["verify"] => verify::table(),
        ["verify", "families"] => families::table(),
        ["neighbourhood"] => neighbourhood::run(),
        ["thesis"] => thesis::tables(thesis::Built::Instrumented),
        ["thesis", "binary"] => thesis::tables(thesis::Built::Binary),
        ["solvers"] => predict::solvers(),
        ["record"] => record::table(),
        ["binary"] => binary::table().and_then(|()| binary::paths()),
        ["binary", "paths"] => binary::paths(),
        ["schedule"] => schedule::table(),
        ["runs"] => runs::table(),
        ["scale"] => scale::table(),
        ["scale", events, apart] => scale::row(events, apart),
        ["planner"] => planner::table(None),
        ["planner", events] => planner::table(Some(events)),
        ["order"] => order::run(false, ""),
        ["order", "quick"] => order::run(true, ""),
        ["order", name] => order::run(false, name),
        ["order", "quick", name] => order::run(true, name),
        ["generate-std", events, file] => generate_std(events, file, "clean"),
        ["generate-std", events, file, mode] => generate_std(events, file, mode),
        // What `trace-info` runs in processes of their own, for their peak memory.
        ["count", parser, file] => trace_info::count(parser, Path::new(file)),
        _ => Err("usage: foretell-bench trace-info | trace-binary | predict-families | \
                  predict-million | scale | solvers | record | binary [paths] | schedule | runs | order [quick] [NAME] | \
                  planner [EVENTS] | neighbourhood | thesis [binary] | verify [families] | explore [FAMILY] | first-finding | \
                  generate-std EVENTS FILE [clean|racy]"
            .to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("foretell-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn generate_std(events: &str, file: &str, mode: &str) -> Result<(), String> {
    let events = events.parse().map_err(|_| format!("{events} is not a number of events"))?;
    let mode = match mode {
        "clean" => generate::Mode::Clean,
        "racy" => generate::Mode::Racy,
        other => return Err(format!("{other} is neither clean nor racy")),
    };
    let written = generate::std_file(Path::new(file), events, mode)
        .map_err(|error| format!("cannot write {file}: {error}"))?;
    println!("{file}: {written} events");
    Ok(())
}

/// Where generated files go.
fn scratch() -> Result<PathBuf, String> {
    let directory = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
    }
    .join("bench");
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    Ok(directory)
}
