//! Static binaries without symbols whose C library is none that is here: locks are their atomic accesses and
//! futexes.

use std::path::PathBuf;

use crate::{PLATFORMS, Platform, Workshop, is_there, platforms, source_of};

const SAID: &str = "the functions of the program's C library are not recognised";

/// A program linked with musl, if this machine has that.
fn with_musl(workshop: &Workshop, example: &str) -> Option<PathBuf> {
    let platform = Platform { compiler: "musl-gcc", ..PLATFORMS[0] };
    if !is_there(platform.compiler) || !is_there(platform.emulator) {
        println!("SKIPPED: binaries with musl: there is no musl-gcc or no {}", platform.emulator);
        return None;
    }
    Some(workshop.build(platform, &source_of(example), &["-s", "-static"]))
}

#[test]
fn bugs_are_found_without_knowing_the_library() {
    for (example, effects) in
        [("bank", ["assertion", "crash"]), ("abba_deadlock", ["hang", "deadlock"])]
    {
        let workshop = Workshop::new();
        let Some(program) = with_musl(&workshop, example) else { return };
        let (exit, report) = workshop.test(&program, &[]);
        assert_eq!(exit, Some(10), "{example}: {report}");
        assert!(report.to_string().contains(SAID), "{example}: {report}");
        let findings = report["findings"].as_array().expect("a list");
        let finding = findings.iter().find(|finding| {
            let effect = finding["effect"].as_str().unwrap_or_default();
            finding["status"] == "confirmed" && effects.contains(&effect)
        });
        let finding = finding.unwrap_or_else(|| panic!("{example}: {report}"));
        let schedule = finding["schedule"].as_str().expect("a schedule");
        let replayed = workshop.foretell(&["replay", schedule], &[&program.display().to_string()]);
        assert_eq!(replayed.status.code(), Some(10), "{example}: {replayed:?}");
    }
}

#[test]
fn correct_programs_stay_quiet_without_knowing_the_library() {
    for example in ["ok_bank", "ok_barrier"] {
        let workshop = Workshop::new();
        let Some(program) = with_musl(&workshop, example) else { return };
        for schedule in ["round-robin:1", "random:5:3", "random:6:20"] {
            let words = ["record", "--binary", "--schedule", schedule, "-o", "run.ftrace"];
            let recorded = workshop.foretell(&words, &[&program.display().to_string()]);
            assert_eq!(recorded.status.code(), Some(0), "{example} {schedule}: {recorded:?}");
            let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
            assert_eq!(valid, Some(0), "{example} {schedule}: {said}");
        }
        let (exit, report) = workshop.test(&program, &[]);
        assert_eq!(exit, Some(12), "{example}: {report}");
        let confirmed = report["findings"].as_array().expect("a list").iter();
        assert_eq!(
            confirmed.filter(|finding| finding["status"] == "confirmed").count(),
            0,
            "{report}"
        );
    }
}

#[test]
fn a_program_without_any_library_is_recorded() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let source = workshop.source("alone.c", "void _start(void) { for (;;) {} }\n");
        let program = workshop.build(platform, &source, &["-s", "-static", "-nostdlib"]);
        let words = ["record", "--binary", "--time-limit", "2"];
        let recorded = workshop.foretell(&words, &[&program.display().to_string()]);
        assert_eq!(recorded.status.code(), Some(12), "{}: {recorded:?}", platform.name);
        let said = String::from_utf8_lossy(&recorded.stderr);
        assert!(said.contains(SAID), "{}: {said}", platform.name);
    }
}
