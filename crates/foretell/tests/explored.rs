//! Hand-written programs against all their schedules.
//!
//! Each program of `explored/` says at its end, by `END_STATE`, what came out. The enumerator of
//! `foretell-truth` runs the program itself under every schedule and so knows all end states and failures.
//! For foretell the states are assertions: one for each state but that of the recorded run says that it is
//! not reached, and a last one that no other is. What foretell confirms must be among the ends that the
//! enumerator found; where it says that all behaviours were covered it must have confirmed every one of
//! them. Where it does not say so, the program is counted as open and printed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use foretell_truth::schedules::{Behaviours, Enumerator, Schedules};
use serde_json::Value;

/// Correct programs: `foretell test` must end with 0 and all behaviours covered.
const CORRECT: [&str; 8] = [
    "condition_flag.c",
    "counter_locked.c",
    "cpp_condition.cc",
    "heap_reference_count.c",
    "once_routine.c",
    "philosophers.c",
    "queue_locked.c",
    "rwlock_cache.c",
];

/// No program here has more executions.
const MOST: u64 = 100_000;

/// The line of `explored.h` with the first assertion.
const FIRST_LINE: usize = 10;

/// One program in a folder of its own.
struct Case<'e> {
    enumerator: &'e Enumerator,
    source: PathBuf,
    folder: PathBuf,
}

/// What came of it.
struct Row {
    name: String,
    truth: Behaviours,
    covered: bool,
    classes: u64,
    why: String,
}

impl Case<'_> {
    fn name(&self) -> String {
        self.source.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn foretell(&self, words: &[&str], recorded: Option<i64>) -> Output {
        let test = std::env::current_exe().expect("path of the test");
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        if let Some(state) = recorded {
            command.env("EXPLORED_RECORDED", state.to_string());
        }
        command
            .args(words)
            .current_dir(&self.folder)
            // Cargo leaves the plugin and the runtime beside the test.
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .stdin(Stdio::null())
            .output()
            .expect("foretell runs")
    }

    /// Everything that the program can do.
    fn truth(&self) -> Result<Behaviours, String> {
        let program = self.folder.join("enumerated");
        self.enumerator.build(&self.source, &program, &[])?;
        let run = |schedules| self.enumerator.run(&program, &[], schedules, MOST);
        let truth = run(Schedules::UpToIndependence)?;
        if !truth.complete {
            return Err(format!("more than {MOST} executions: {truth:?}"));
        }
        let all = run(Schedules::All)?;
        match all.complete && !all.same_ends(&truth) {
            true => Err(format!("the enumerator contradicts itself: {all:?}, not {truth:?}")),
            false => Ok(truth),
        }
    }

    /// Builds the program; where it ends in another state than it is told, an assertion fails: one for
    /// each of these states, from line [`FIRST_LINE`] on, and one for all others.
    fn build(&self, states: &[i64]) -> Result<(), String> {
        let mut header = String::from(
            "#pragma once\n#include <assert.h>\n#include <stdlib.h>\n\
             static long explored_recorded;\n\
             __attribute__((constructor)) static void explored_begin(void) {\n\
             const char *text = getenv(\"EXPLORED_RECORDED\");\n\
             explored_recorded = text ? atol(text) : -1;\n}\n\
             static inline void explored_state(long state) {\n",
        );
        for state in states {
            _ = writeln!(header, "  assert((state != {state}) | (explored_recorded == {state}));");
        }
        // Without branches, which would be choices.
        let known: Vec<String> = states.iter().map(|state| format!("(state == {state})")).collect();
        let known = if known.is_empty() { "0".to_owned() } else { known.join(" | ") };
        _ = writeln!(
            header,
            "  assert({known});\n}}\n#define END_STATE(value) explored_state(value)\n\
             #define ROUNDS(most)\n#define NEXT_ROUND()"
        );
        std::fs::write(self.folder.join("explored.h"), header)
            .map_err(|error| error.to_string())?;
        let source = self.source.display().to_string();
        let compiler = if source.ends_with(".c") { "cc" } else { "c++" };
        let words = [compiler, "-O0", "-g", "-pthread", "-I.", &source, "-o", "p"];
        let built = self.foretell(&words, None);
        match built.status.success() {
            true => Ok(()),
            false => Err(text(&built.stderr)),
        }
    }

    /// The end state of the run that `foretell test` records; `None` where it fails or hangs.
    fn recorded(&self, states: &[i64]) -> Option<i64> {
        let policy = foretell_force::session::UNINTERRUPTED.to_string();
        let words = ["record", "--schedule", &policy, "-o", "p.ftrace", "--", "./p"];
        let said = text(&self.foretell(&words, None).stderr);
        let place = said.split("explored.h:").nth(1)?;
        let line: usize = place.split(':').next()?.parse().ok()?;
        states.get(line.checked_sub(FIRST_LINE)?).copied()
    }

    fn check(&self) -> Result<Row, String> {
        let truth = self.truth()?;
        let states: Vec<i64> = truth.states.iter().copied().collect();
        self.build(&states)?;
        let recorded = self.recorded(&states);
        let mut words = vec!["--format", "json", "test", "--jobs", "1"];
        // What is not covered by then is open.
        words.extend(["--runs", "300", "--time-limit", "30", "./p"]);
        let tested = self.foretell(&words, recorded);
        let said = || format!("{}\n{}", text(&tested.stdout), text(&tested.stderr));
        let report: Value = serde_json::from_slice(&tested.stdout).map_err(|_| said())?;

        let mut found = Behaviours::default();
        for finding in report["findings"].as_array().into_iter().flatten() {
            if finding["status"] != "confirmed" {
                continue;
            }
            let ended = finding["forced"]["ended"].as_str().unwrap_or_default();
            let line = ended.rsplit(':').next().and_then(|line| line.parse().ok());
            let mut failed: Option<(bool, u32)> = None;
            match finding["effect"].as_str() {
                Some("assertion") => {
                    failed = line.map(|line| (ended.contains("explored.h:"), line));
                }
                Some("hang") => found.hangs = true,
                Some("crash") => found.crashes = true,
                _ => {}
            }
            // What is said to have failed is what ended the run.
            let accesses = finding["accesses"].as_array().into_iter().flatten();
            let own = accesses.filter(|access| access["op"] == "assert").find_map(|access| {
                let file = access["file"].as_str()?;
                Some((file.ends_with("explored.h"), access["line"].as_u64()? as u32))
            });
            if finding["kind"] == "assertion" && own.is_some() && failed != own {
                return Err(format!("another assertion than the finding's: {finding:#}"));
            }
            if let Some((is_state, line)) = failed {
                if is_state {
                    let state = states.get(line as usize - FIRST_LINE);
                    let state = state.ok_or_else(|| format!("no such end state: {finding:#}"))?;
                    found.states.insert(*state);
                } else {
                    found.assertions.insert(line);
                }
            }
        }
        let exploration = &report["exploration"];
        let covered = exploration["covered"] == true;
        let faults = [
            (!found.assertions.is_subset(&truth.assertions), "an assertion that cannot fail"),
            (found.hangs && !truth.hangs, "a hang that cannot be"),
            (found.crashes && !truth.crashes, "a crash that cannot be"),
            (
                covered && found.states.len() + usize::from(recorded.is_some()) < states.len(),
                "covered without an end state",
            ),
            (covered && found.assertions != truth.assertions, "covered without an assertion"),
            (covered && found.hangs != truth.hangs, "covered without a hang"),
            (covered && found.crashes != truth.crashes, "covered without a crash"),
        ];
        if let Some((_, fault)) = faults.iter().find(|(is_so, _)| *is_so) {
            return Err(format!("{fault}: found {found:?}, the truth is {truth:?}"));
        }
        let fails = truth.ends() > 1 || truth.states.is_empty();
        match tested.status.code() {
            Some(10 | 11) if fails => {}
            Some(0) if !fails && covered => {}
            // Races may be found where nothing comes of them.
            Some(10 | 11) | Some(12) => {}
            code => return Err(format!("ends with {code:?}, {truth:?}\n{}", said())),
        }
        let is_correct = CORRECT.contains(&self.name().as_str());
        if is_correct && !(covered && tested.status.code() == Some(0)) {
            return Err(format!("a correct program is not covered\n{}", said()));
        }
        let classes = exploration["classes"].as_u64().unwrap_or_default();
        let why = match covered {
            true => String::new(),
            false => format!("{exploration} {}", report["unseen"]),
        };
        Ok(Row { name: self.name(), truth, covered, classes, why })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_end_of_every_program_is_found() {
    let only = std::env::var("FORETELL_EXPLORED").unwrap_or_default();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explored");
    let entries = std::fs::read_dir(programs).expect("the programs");
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    sources.retain(|path| path.to_string_lossy().contains(&only));
    sources.sort();
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explored-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("harness")).expect("a folder");
    let enumerator = Enumerator::new(&folder.join("harness")).expect("the harness");
    let (rows, faults) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = source.file_name().unwrap_or_default();
            let case =
                Case { enumerator: &enumerator, source: source.clone(), folder: folder.join(name) };
            std::fs::create_dir_all(&case.folder).expect("a folder");
            match case.check() {
                Ok(row) => {
                    _ = std::fs::remove_dir_all(&case.folder);
                    rows.lock().expect("no panic").push(row);
                }
                Err(fault) => {
                    let fault = format!("{}, in {}: {fault}", case.name(), case.folder.display());
                    faults.lock().expect("no panic").push(fault);
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| _ = scope.spawn(work)));
    let mut rows = rows.into_inner().expect("no panic");
    rows.sort_by(|one, two| one.name.cmp(&two.name));
    println!("program                      ends  traces  reads-from  paths  classes");
    for Row { name, truth, covered, classes, why } in &rows {
        let Behaviours { executions, reads_from, paths, .. } = truth;
        let open = if *covered { "" } else { " open: " };
        let ends = truth.ends();
        println!(
            "{name:<28} {ends:>4} {executions:>7} {reads_from:>11} {paths:>6} {classes:>8}{open}{why}"
        );
    }
    let open: BTreeSet<&str> =
        rows.iter().filter(|row| !row.covered).map(|row| &*row.name).collect();
    println!("{} programs, {} open: {open:?}", rows.len(), open.len());
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{} wrong:\n{}", faults.len(), faults.join("\n\n"));
    assert!(!only.is_empty() || rows.len() >= 40, "only {} programs", rows.len());
    _ = std::fs::remove_dir_all(&folder);
}
