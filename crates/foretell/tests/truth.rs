//! The truth test of `foretell test`: random programs of which everything is known.
//!
//! `foretell-truth` makes a program, writes it as C and enumerates all its executions itself. foretell
//! must not confirm what no execution does, must not end with 0 where an execution fails or has a race,
//! and where it says that all behaviours were covered it has to have confirmed every assertion that can
//! fail, and a deadlock if there is one. Programs without races are also compiled with optimisation:
//! there the compiler may not change what they can do, nor may foretell see accesses that the source does
//! not make. Compiled `--as-written` the same holds for programs with races. Some programs do not assert but
//! say with their exit status what went wrong. `FORETELL_TRUTH_PROGRAMS` sets how many programs are tried (`ci/nightly.sh`: 1,000), and
//! `FORETELL_TRUTH_SEED` the first of them, to repeat one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use foretell_truth::machine::{Constraint, Machine, Truth};
use foretell_truth::program::{Program, Shape};
use foretell_truth::source::Emitted;
use serde_json::Value;

/// The generator has made sure that this is enough.
const ENOUGH: usize = usize::MAX;

/// One program in a folder of its own.
struct Case {
    seed: u64,
    /// How it is compiled.
    options: Vec<&'static str>,
    /// What the first global variable has to be at the end for the exit status to be 0.
    wanted: Option<String>,
    folder: PathBuf,
    emitted: Emitted,
}

/// What came of one program.
#[derive(Default)]
struct Tally {
    /// Confirmed as reachable.
    found: usize,
    /// Nothing can go wrong, and foretell says so.
    clear: usize,
    /// Neither: a limit, code not seen, or a prediction that was not confirmed.
    open: usize,
    /// All behaviours were covered.
    covered: usize,
}

/// How the programs are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiled {
    /// Without optimisation.
    Plainly,
    /// With it, and so without races.
    Optimised,
    /// With it, but with each access of the source.
    AsWritten,
    /// Without it; the exit status says whether a variable has the value of runs without preemption.
    WithStatus,
}

impl Case {
    fn new(seed: u64, compiled: Compiled) -> Self {
        let level = ["-O1", "-O2", "-O3"][seed as usize % 3];
        let options = match compiled {
            Compiled::Plainly | Compiled::WithStatus => vec!["-O0"],
            Compiled::Optimised => vec![level],
            Compiled::AsWritten => vec!["--as-written", level],
        };
        let shape = Shape {
            branches: seed % 2 == 1,
            waiting: seed % 4 >= 2,
            indices: seed % 8 >= 4,
            spins: seed % 5 == 4,
            pointers: seed % 7 == 3,
            limits: false,
            race_free: compiled == Compiled::Optimised,
        };
        let (_, mut emitted) = Program::random(seed, shape);
        let mut wanted = None;
        if compiled == Compiled::WithStatus {
            let serial = Constraint { choices: None, without_preemption: true };
            let serial = Machine::new(&emitted.code).explore(&serial, ENOUGH).expect("no limit");
            let mut values = serial.outputs.iter().map(|output| first_number(output).to_owned());
            wanted = values.next().filter(|first| values.all(|other| other == *first));
        }
        if let Some(wanted) = &wanted {
            let (before, after) = emitted.c.rsplit_once("return 0;").expect("the end of main");
            emitted.c = format!("{before}return g0 != {wanted};{after}");
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("truth-{compiled:?}-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("p.c"), &emitted.c).expect("a file");
        Self { seed, options, wanted, folder, emitted }
    }

    fn foretell(&self, words: &[&str]) -> Output {
        let test = std::env::current_exe().expect("path of the test");
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(words)
            .current_dir(&self.folder)
            // Cargo leaves the plugin and the runtime beside the test.
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .stdin(Stdio::null())
            .output()
            .expect("foretell runs")
    }

    /// Compares what foretell says with the truth.
    fn check(&self, tally: &Mutex<Tally>) -> Result<(), String> {
        let mut words = vec!["cc", "-g", "-pthread", "p.c", "-o", "p"];
        words.extend(&self.options);
        let built = self.foretell(&words);
        if !built.status.success() {
            return Err(text(&built.stderr));
        }
        let all = |constraint: &Constraint| -> Truth {
            Machine::new(&self.emitted.code).explore(constraint, ENOUGH).expect("no limit")
        };
        let truth = all(&Constraint::default());
        let serial = all(&Constraint { choices: None, without_preemption: true });

        let tested = self.foretell(&["--format", "json", "test", "--jobs", "1", "./p"]);
        let code = tested.status.code();
        let said = || format!("{}\n{}", text(&tested.stdout), text(&tested.stderr));
        let report: Value = serde_json::from_slice(&tested.stdout).map_err(|_| said())?;
        let mut found = false;
        let mut missing = truth.failures.clone();
        let mut deadlock = false;
        for finding in report["findings"].as_array().into_iter().flatten() {
            if finding["status"] == "confirmed" {
                found = true;
                let ended = finding["forced"]["ended"].as_str().unwrap_or_default();
                match finding["effect"].as_str() {
                    Some("assertion") => {
                        let line = ended.rsplit(':').next().and_then(|line| line.parse().ok());
                        _ = line.is_some_and(|line: u32| missing.remove(&line));
                    }
                    Some("hang") => deadlock = true,
                    _ => {}
                }
                self.is_real(finding, &truth, &serial)
                    .map_err(|why| format!("{why}: {finding:#}"))?;
            }
        }
        let covered = report["exploration"]["covered"] == true;
        if covered && (!missing.is_empty() || (truth.deadlock && !deadlock)) {
            return Err(format!("covered without {missing:?}, deadlock {}: {truth:?}", !deadlock));
        }
        let fails_by_status = self.wanted.as_ref().is_some_and(|wanted| {
            truth.outputs.iter().any(|output| first_number(output) != wanted)
        });
        let fails = !truth.failures.is_empty()
            || truth.deadlock
            || !truth.races.is_empty()
            || fails_by_status;
        let mut tally = tally.lock().expect("no panic");
        tally.covered += usize::from(covered);
        match code {
            Some(10) if found => tally.found += 1,
            Some(0) if fails || !covered => return Err(format!("ends with 0, but {truth:?}")),
            Some(0) => tally.clear += 1,
            Some(11 | 12) => tally.open += 1,
            _ => return Err(format!("ends with {code:?}\n{}", said())),
        }
        Ok(())
    }

    /// Can the program do what was confirmed?
    fn is_real(&self, finding: &Value, truth: &Truth, serial: &Truth) -> Result<(), String> {
        let lines = |op: &[&str]| -> Vec<u32> {
            let accesses = finding["accesses"].as_array().into_iter().flatten();
            accesses
                .filter(|access| op.iter().any(|op| access["op"] == *op))
                .filter_map(|access| access["line"].as_u64())
                .map(|line| line as u32)
                .collect()
        };
        let ended = finding["forced"]["ended"].as_str().unwrap_or_default();
        let known = |holds: bool, what: &str| match holds {
            true => Ok(()),
            false => Err(format!("{what} ({truth:?})")),
        };
        if finding["kind"] == "race" {
            let accesses = lines(&["read", "write"]);
            let [one, other] = accesses[..] else { return Err("a race of two".into()) };
            known(
                truth.races.contains(&(one.min(other), one.max(other))),
                &format!("no race of lines {one} and {other}"),
            )?;
        }
        match finding["effect"].as_str() {
            Some("assertion") => {
                let line = ended.rsplit(':').next().and_then(|line| line.parse().ok());
                let line = line.ok_or_else(|| format!("where does it fail: `{ended}`"))?;
                known(truth.failures.contains(&line), &format!("line {line} cannot fail"))
            }
            Some("hang") => known(truth.deadlock, "no deadlock is possible"),
            Some("output") => {
                let schedule = finding["schedule"].as_str().ok_or("a schedule")?;
                let replayed = self.foretell(&["replay", schedule, "--", "./p"]);
                // The program prints one line; what foretell says follows.
                let printed = text(&replayed.stdout);
                let printed = printed.split_inclusive('\n').next().unwrap_or_default();
                let reachable = truth.outputs.contains(printed);
                known(reachable, &format!("`{printed}` is never printed"))?;
                let lawful = serial.outputs.contains(printed);
                known(
                    finding["kind"] != "atomicity" || !lawful,
                    &format!("`{printed}` is printed without preemption too"),
                )
            }
            Some("crash") => Err("no program here crashes".into()),
            _ => Ok(()),
        }
    }
}

/// The first global variable at the end of a run.
fn first_number(output: &str) -> &str {
    output.split(' ').next().unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn check_programs(compiled: Compiled, programs: u64) {
    let first = number("FORETELL_TRUTH_SEED", 0);
    let last = first + number("FORETELL_TRUTH_PROGRAMS", programs);
    let next = AtomicU64::new(first);
    let faults = Mutex::new(Vec::new());
    let tally = Mutex::new(Tally::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return;
            }
            let case = Case::new(seed, compiled);
            match case.check(&tally) {
                Ok(()) => _ = std::fs::remove_dir_all(&case.folder),
                Err(fault) => {
                    let place = case.folder.display();
                    let fault = format!("seed {}, in {place}: {fault}", case.seed);
                    faults.lock().expect("no panic").push(fault);
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| _ = scope.spawn(work)));
    let Tally { found, clear, open, covered } = tally.into_inner().expect("no panic");
    println!("{found} confirmed, {clear} clear, {open} open; {covered} covered");
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{} wrong answers:\n{}", faults.len(), faults.join("\n\n"));
    assert!(covered > open, "few explorations are complete");
}

#[test]
fn nothing_is_confirmed_that_cannot_be_and_no_failure_is_missed() {
    check_programs(Compiled::Plainly, 150);
}

#[test]
fn an_optimised_program_does_what_its_source_says() {
    check_programs(Compiled::Optimised, 60);
}

#[test]
fn a_program_as_written_does_what_its_source_says() {
    check_programs(Compiled::AsWritten, 60);
}

#[test]
fn an_exit_status_that_another_interleaving_has_is_not_missed() {
    check_programs(Compiled::WithStatus, 60);
}
