//! `foretell doctor`: what this machine has and lacks.

use std::io::Write;
use std::process::Command;

use foretell_guard::process;

use crate::exit::{Exit, Failure};
use crate::output::Output;

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
