//! `foretell doctor`: what this machine has and lacks, and what of a program is not seen.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use foretell_force::run::{Limits, Runner};
use foretell_force::session::UNINTERRUPTED;
use foretell_guard::process;
use foretell_record::Cause;
use serde_json::{Value, json};

use crate::cli::RunArguments;
use crate::commands::program::prepare;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// The run is ended after so long, or so many scheduling points.
const LIMITS: Limits = Limits { time: Duration::from_secs(60), points: 50_000_000 };

/// Runs the program once, and says what of it is not seen.
pub fn look_at(program: &[OsString], output: &mut Output) -> Result<Exit, Failure> {
    let run = RunArguments {
        symbolic: false,
        binary: false,
        is_test: false,
        after: None,
        run_limit: LIMITS.time.as_secs(),
        input: Vec::new(),
        writes: Vec::new(),
        traffic: None,
    };
    let prepared = prepare(program, &run)?;
    let failed = |error: foretell_force::run::RunError| Failure::Input(error.to_string());
    let runner = Runner::new(&prepared.program).map_err(failed)?;
    let run = runner.run(Vec::new(), UNINTERRUPTED, LIMITS).map_err(failed)?;
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for outside in run.outside.iter().filter(|outside| outside.cause == Cause::Foreign) {
        *functions.entry(&outside.subject).or_default() += outside.times;
    }
    // Functions are listed one by one.
    let listed = foretell_record::not_instrumented(&run.outside);
    let gaps = run.trace.metadata.gaps.iter().map(|gap| &**gap);
    let gaps: Vec<&str> = gaps.filter(|gap| !listed.iter().any(|other| other == gap)).collect();
    let mut by_calls: Vec<(&str, u64)> = functions.into_iter().collect();
    by_calls.sort_by_key(|&(name, calls)| (std::cmp::Reverse(calls), name));
    if output.json() {
        let functions: Vec<Value> = by_calls
            .iter()
            .map(|(name, calls)| json!({"function": name, "calls": calls}))
            .collect();
        output.object(json!({"version": 1, "functions": functions, "unseen": gaps}))?;
    } else {
        writeln!(output, "{} events, {}", run.trace.events.len(), run.ended())?;
        for (name, calls) in &by_calls {
            writeln!(output, "{calls:>9} calls of {name}: not instrumented")?;
        }
        for gap in &gaps {
            writeln!(output, "          {gap}")?;
        }
        if by_calls.is_empty() && gaps.is_empty() {
            writeln!(output, "everything that this run did is seen")?;
        }
    }
    let complete = by_calls.is_empty() && gaps.is_empty();
    Ok(if complete { Exit::NothingFound } else { Exit::Incomplete })
}

/// One thing that foretell can use.
struct Need {
    name: &'static str,
    program: &'static str,
    package: &'static str,
    used_for: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        name: "Z3",
        program: "z3",
        package: "z3",
        used_for: "second solver: full arithmetic, cross-checks",
    },
    Need {
        name: "clang 22",
        program: "clang-22",
        package: "clang-22",
        used_for: "`foretell cc` and `foretell c++`",
    },
    Need {
        name: "LLVM 22",
        program: "llvm-config-22",
        package: "llvm-22-dev",
        used_for: "building the instrumentation pass",
    },
    Need { name: "gdb", program: "gdb", package: "gdb", used_for: "looking at a replayed run" },
];

/// Prints a line for each need; the exit code says whether anything is missing.
pub fn run(output: &mut Output) -> Result<Exit, Failure> {
    let found: Vec<(&Need, Option<String>)> =
        NEEDS.iter().map(|need| (need, version_of(need.program))).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = total_memory_mib();
    if output.json() {
        let tools: Vec<serde_json::Value> = found
            .iter()
            .map(|(need, version)| {
                serde_json::json!({
                    "name": need.name,
                    "version": version,
                    "package": need.package,
                    "used_for": need.used_for,
                })
            })
            .collect();
        output.object(serde_json::json!({
            "version": 1,
            "machine": {"cores": cores, "memory_mib": memory, "tools": tools},
        }))?;
    } else {
        writeln!(output, "foretell {} on {cores} cores", env!("CARGO_PKG_VERSION"))?;
        if let Some(memory) = memory {
            writeln!(output, "  memory    {memory} MiB")?;
        }
        for (need, version) in &found {
            match version {
                Some(version) => writeln!(output, "  has       {}: {version}", need.name)?,
                None => writeln!(
                    output,
                    "  lacks     {}, for {}: apt-get install {}",
                    need.name, need.used_for, need.package
                )?,
            }
        }
    }
    let complete = found.iter().all(|(_, version)| version.is_some());
    Ok(if complete { Exit::NothingFound } else { Exit::Incomplete })
}

/// The first line of `program --version`, or `None` when it cannot be run.
fn version_of(program: &str) -> Option<String> {
    let ran = process::output(Command::new(program).arg("--version")).ok()?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    ran.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}

/// The memory of the machine.
pub fn total_memory_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}
