//! `foretell replay --gdb` on binaries: QEMU's own debugger stops at the last step of the schedule.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Platform, Workshop, is_there, platforms, source_of};

/// What gdb and the program say if gdb is given these commands when it has stopped.
fn debugged(workshop: &Workshop, schedule: &str, program: &Path, commands: &str) -> String {
    let file = workshop.source("commands", commands);
    let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
    command.current_dir(workshop.0.path()).args(["replay", "--gdb", schedule, "--"]).arg(program);
    command.stdin(Stdio::from(std::fs::File::open(file).expect("commands")));
    let output = command.output().expect("foretell runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn debugger(platform: Platform) -> &'static str {
    if platform.name == "x86-64" { "gdb" } else { "gdb-multiarch" }
}

#[test]
fn gdb_stops_at_the_last_step() {
    for platform in platforms() {
        let gdb = debugger(platform);
        if !is_there(gdb) {
            println!("SKIPPED: debugging binaries for {}: there is no {gdb}", platform.name);
            continue;
        }
        for fixed in [false, true] {
            let workshop = Workshop::new();
            let options = ["-g", "-static"];
            let options = if fixed { &options[..] } else { &options[..1] };
            let program = workshop.build(platform, &source_of("bank"), options);
            let (_, report) = workshop.test(&program, &[]);
            let findings = report["findings"].as_array().expect("a list");
            let finding = findings.iter().find(|finding| finding["effect"] == "assertion");
            let finding = finding.unwrap_or_else(|| panic!("a bug: {report}"));
            let schedule = finding["schedule"].as_str().expect("a schedule");
            // The balance has lost an update, which main is about to notice; then it goes on to its end.
            let commands =
                "echo stopped\\n\nbacktrace\nprint balance\ninfo threads\ncontinue\nquit\n";
            let said = debugged(&workshop, schedule, &program, commands);
            let at = format!("{} {fixed}: {said}", platform.name);
            let after = said.split("stopped").nth(1).unwrap_or_else(|| panic!("{at}"));
            assert!(after.contains("bank.c:"), "it stops in the program: {at}");
            assert!(after.contains("$1 = 110") || after.contains("$1 = 120"), "{at}");
            assert!(said.contains("SIGABRT"), "the assertion fails: {at}");
        }
    }
}

#[test]
fn a_debugger_that_is_not_there_is_said_before_anything_runs() {
    let Some(&platform) = platforms().last() else { return };
    let workshop = Workshop::new();
    let program = workshop.build(platform, &source_of("bank"), &["-g"]);
    let (_, report) = workshop.test(&program, &[]);
    let findings = report["findings"].as_array().expect("a list");
    let schedule = findings.iter().find_map(|finding| finding["schedule"].as_str());
    let only = workshop.0.path().join("only");
    std::fs::create_dir(&only).expect("a folder");
    let output = Command::new("sh")
        .args(["-c", &format!("command -v {}", platform.emulator)])
        .output()
        .expect("a shell");
    let emulator = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    std::os::unix::fs::symlink(&emulator, only.join(platform.emulator)).expect("a link");
    let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
    command.current_dir(workshop.0.path()).env("PATH", &only).args(["replay", "--gdb"]);
    let output = command.arg(schedule.expect("a bug")).arg("--").arg(&program).output();
    let output = output.expect("foretell runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(debugger(platform)) && said.contains("package"), "{said}");
}
