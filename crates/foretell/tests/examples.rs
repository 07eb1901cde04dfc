//! The programs in `examples/`: built with `foretell cc`, recorded, predicted from and tested, each
//! against what `examples/expected.json` says about it. What was confirmed is replayed a hundred times
//! (`FORETELL_REPLAYS` for another number), with more runs at once than there are cores.
//!
//! Places are named by marks in the sources (`BUG: first` in a comment), so that an edited example
//! does not need new line numbers. Every program `NAME/NAME.c` has its entry and every entry its
//! program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::Duration;

use foretell_force::program::Program;
use foretell_force::replay::{replay, rerun};
use foretell_force::run::{Limits, Run, Runner};
use foretell_force::session::UNINTERRUPTED;
use foretell_record::Policy;
use foretell_trace::schedule::{CreationPath, Schedule, Step};
use foretell_trace::{Event, Trace, format};
use serde_json::Value;

/// `examples/`.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// What is expected, one entry for each folder.
fn expected() -> Vec<Value> {
    let text = std::fs::read_to_string(examples().join("expected.json")).expect("expected.json");
    serde_json::from_str(&text).expect("expected.json is a list")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("`{field}` of {value} is a string"))
}

/// A finding in one line.
fn shown(finding: &Value) -> String {
    let accesses = finding["accesses"].as_array().into_iter().flatten();
    let places: Vec<String> =
        accesses.map(|access| format!("{}:{}", access["op"], access["line"])).collect();
    let [kind, pattern, status, effect] =
        ["kind", "pattern", "status", "effect"].map(|field| &finding[field]);
    format!("  {kind} {pattern} {status} {effect} {}", places.join(" "))
}

/// One example, built.
struct Example<'a> {
    expected: &'a Value,
    source: PathBuf,
    /// Where its files go.
    folder: PathBuf,
}

impl Example<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn foretell(&self, arguments: &[&str]) -> Output {
        // Cargo leaves the plugin and the runtime beside the test.
        let test = std::env::current_exe().expect("path of the test");
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(arguments)
            .env("FORETELL_LIB_DIR", test.parent().expect("directory"))
            .output()
            .expect("foretell runs")
    }

    /// The command with the given exit code.
    fn ends_with(&self, code: i64, arguments: &[&str]) -> Result<Output, String> {
        let output = self.foretell(arguments);
        match output.status.code() {
            Some(found) if i64::from(found) == code => Ok(output),
            found => Err(format!(
                "`foretell {}` ends with {found:?}, not {code}\n{}{}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    /// The lines that the source marks with the name.
    fn marked(&self, mark: &str) -> Result<BTreeSet<u64>, String> {
        let source = std::fs::read_to_string(&self.source).map_err(|error| error.to_string())?;
        let is_marked = |line: &str| {
            let marks = line.split_once("BUG: ").map_or("", |(_, marks)| marks);
            marks.trim_end_matches("*/").split(',').any(|one| one.trim() == mark)
        };
        let lines: BTreeSet<u64> =
            (1..).zip(source.lines()).filter(|(_, line)| is_marked(line)).map(|(n, _)| n).collect();
        match lines.is_empty() {
            true => Err(format!("no line of {} is marked `{mark}`", self.source.display())),
            false => Ok(lines),
        }
    }

    /// Whether a finding is the expected one: every field that is expected, and an access at each of
    /// the marks in `at`.
    fn fits(&self, wanted: &Value, finding: &Value) -> Result<bool, String> {
        for (field, value) in wanted.as_object().ok_or("a finding is an object")? {
            if field != "at" && finding[field] != *value {
                return Ok(false);
            }
        }
        let lines: BTreeSet<u64> = finding["accesses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|access| access["line"].as_u64())
            .collect();
        for mark in wanted["at"].as_array().ok_or("a finding has marks")? {
            if self.marked(mark.as_str().ok_or("a mark is a string")?)?.is_disjoint(&lines) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares a report with what is expected of it.
    fn compare(&self, wanted: &Value, output: &Output) -> Result<(), String> {
        let report: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("no JSON: {error}"))?;
        let findings = report["findings"].as_array().ok_or("the report has findings")?;
        for one in wanted["findings"].as_array().ok_or("a list of findings")? {
            let mut fits = false;
            for finding in findings {
                fits |= self.fits(one, finding)?;
            }
            if !fits {
                let found: Vec<String> = findings.iter().map(shown).collect();
                return Err(format!("no finding is {one} among\n{}", found.join("\n")));
            }
        }
        Ok(())
    }

    fn build(&self) -> Result<String, String> {
        let program = self.path("program");
        let source = self.source.display().to_string();
        let compiler = if self.source.extension().is_some_and(|e| e == "c") { "cc" } else { "c++" };
        let options = ["-O1", "-g", "-Wall", "-Werror", "-pthread", "-lm"];
        let mut command = vec![compiler, source.as_str(), "-o", program.as_str()];
        command.extend(options);
        self.ends_with(0, &command)?;
        Ok(program)
    }

    /// Records a run that goes well and predicts from it.
    fn predict(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let trace = self.path("run.ftrace");
        let mut record = vec!["record", "--schedule", "round-robin", "-o", &trace, "--", program];
        record.extend(arguments);
        self.ends_with(0, &record)?;
        self.ends_with(0, &["trace", "validate", &trace])?;
        let wanted = &self.expected["predict"];
        let code = wanted["exit"].as_i64().ok_or("`predict` has an exit code")?;
        let schedules = self.path("predicted");
        let predict = ["--format", "json", "predict", &trace, "--schedules", &schedules];
        let output = self.ends_with(code, &predict)?;
        self.compare(wanted, &output)
    }

    /// The whole thing: what was predicted is forced. Gives what was confirmed.
    fn test(&self, program: &str, arguments: &[&str]) -> Result<Vec<Confirmed>, String> {
        let wanted = &self.expected["test"];
        let code = wanted["exit"].as_i64().ok_or("`test` has an exit code")?;
        let schedules = self.path("forced");
        let mut test = vec!["--format", "json", "test", "--schedules", &schedules];
        // What is found may not depend on how busy the machine is.
        test.extend(["--run-limit", "900", "--time-limit", "3600"]);
        // Where there is more to explore than a test has time for, the runs are limited.
        let options = self.expected["options"].as_array().into_iter().flatten();
        test.extend(options.filter_map(Value::as_str));
        test.extend(["--jobs", "1", program]);
        test.extend(arguments);
        let output = self.ends_with(code, &test)?;
        self.compare(wanted, &output)?;
        let report: Value = serde_json::from_slice(&output.stdout).expect("compared");
        let findings = report["findings"].as_array().into_iter().flatten();
        findings
            .filter(|finding| finding["status"] == "confirmed")
            .map(|finding| {
                Ok(Confirmed {
                    name: format!("{} {}", text(self.expected, "name"), text(finding, "id")),
                    program: Program::new(program, arguments.iter().map(Into::into).collect()),
                    schedule: PathBuf::from(text(finding, "schedule")),
                    effect: text(finding, "effect").to_owned(),
                })
            })
            .collect()
    }

    fn check(&self) -> Result<Vec<Confirmed>, String> {
        let program = self.build()?;
        let arguments: Vec<&str> = self.expected["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        self.forks_as_it_starts(&program, &arguments)?;
        self.predict(&program, &arguments)?;
        self.test(&program, &arguments)
    }

    /// A run that the fork server makes is the run that is started by `execve`: the same events at the
    /// same addresses with the same values, the same branches, output and end.
    fn forks_as_it_starts(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let program = Program::new(program, arguments.iter().map(Into::into).collect());
        let runner = || Runner::new(&program).map_err(|error| error.to_string());
        let (started, forked) = (runner()?, runner()?);
        started.server.refuse("the test compares with it");
        let limits = Limits { time: Duration::from_secs(900), points: 10_000_000 };
        let run = |runner: &Runner<'_>, policy: &Policy, steps: &[Step]| {
            let run = runner.run(steps.to_vec(), policy.clone(), limits);
            run.map_err(|error| error.to_string())
        };
        run(&forked, &UNINTERRUPTED, &[])?; // the first is never forked
        let random = |seed| Policy::Random { seed, mean: 3 };
        let policies =
            [UNINTERRUPTED, Policy::RoundRobin { quantum: 2 }, random(1), random(2), random(3)];
        let mut steps = Vec::new();
        for policy in policies {
            let (one, other) = (run(&started, &policy, &steps)?, run(&forked, &policy, &steps)?);
            let in_text = |run: &Run| {
                let mut text = Vec::new();
                format::text::write(&run.trace, &mut text).expect("a vector takes everything");
                String::from_utf8_lossy(&text).into_owned()
            };
            // With all addresses.
            let in_binary = |run: &Run| {
                let mut bytes = Vec::new();
                format::binary::write(&run.trace, &mut bytes).expect("a vector takes everything");
                bytes
            };
            let (told, again) = (in_text(&one), in_text(&other));
            if let Some((was, is)) = told.lines().zip(again.lines()).find(|(was, is)| was != is) {
                return Err(format!("{policy}: started it does `{was}`, forked `{is}`"));
            }
            if (in_binary(&one), one.ended(), &one.written)
                != (in_binary(&other), other.ended(), &other.written)
                || !one.path.differences(&other.path).is_empty()
            {
                return Err(format!("{policy}: {} is not {}", other.ended(), one.ended()));
            }
            // The next run begins with the first half of this one.
            let half = one.trace.events.len() / 2;
            steps = one.trace.events[..half].iter().map(|event| step(&one.trace, event)).collect();
        }
        match (forked.server.forked(), forked.server.refusal()) {
            (5, None) => Ok(()),
            (count, why) => Err(format!("{count} of 5 runs were forked: {why:?}")),
        }
    }
}

/// The event as a step of a schedule.
fn step(trace: &Trace, event: &Event) -> Step {
    Step {
        thread: CreationPath(trace.threads[event.thread.index()].path.clone()),
        index: event.index,
        operation: event.op.keyword().into(),
        site: event.site.map(|site| trace.sites[site.index()].clone()),
    }
}

/// A confirmed finding of an example.
struct Confirmed {
    name: String,
    program: Program,
    schedule: PathBuf,
    effect: String,
}

impl Confirmed {
    /// The same outcome in every replay: effect, end and output.
    fn replay(&self, times: usize) -> Result<(), String> {
        let text = std::fs::read_to_string(&self.schedule).map_err(|error| error.to_string())?;
        let schedule = Schedule::parse(&text).map_err(|error| error.to_string())?;
        let limit = Duration::from_secs(900);
        let outcome =
            |run: &Run| (run.ended(), run.written.stdout.clone(), run.written.stderr.clone());
        let replayed = replay(&schedule, &self.program, &UNINTERRUPTED, limit)
            .map_err(|error| format!("replay 1: {error}"))?;
        let effect = replayed.verdict.effect().map(|effect| effect.name());
        if effect != Some(&self.effect) {
            let outcome = &replayed.verdict.outcome;
            return Err(format!("replay 1 gives {outcome:?}, not {}", self.effect));
        }
        let first = outcome(&replayed.run);
        for round in 2..=times {
            let run = rerun(&schedule, &self.program, &UNINTERRUPTED, limit)
                .map_err(|error| format!("replay {round}: {error}"))?;
            let again = outcome(&run);
            if again != first {
                return Err(format!("replay {round}: {again:?}, not {first:?}"));
            }
        }
        Ok(())
    }
}

/// Does the work for every item, so many at a time, and gives what went wrong.
fn for_each<T: Sync>(
    items: &[T],
    at_once: usize,
    work: impl Fn(&T) -> Result<(), String> + Sync,
) -> Vec<String> {
    let waiting = Mutex::new(items.iter());
    let faults = Mutex::new(Vec::new());
    let one_by_one = || {
        loop {
            let Some(item) = waiting.lock().expect("no panic").next() else { return };
            if let Err(fault) = work(item) {
                faults.lock().expect("no panic").push(fault);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(one_by_one);
        }
    });
    faults.into_inner().expect("no panic")
}

#[test]
fn every_example_has_its_expectation() {
    let folders: BTreeSet<String> = std::fs::read_dir(examples())
        .expect("examples/")
        .map(|entry| entry.expect("entry"))
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .filter(|name| {
            // Needs clients: `tests/servers.rs`.
            if name == "server" {
                return false;
            }
            let source = examples().join(name).join(name);
            ["c", "cc"].iter().any(|language| source.with_extension(language).exists())
        })
        .collect();
    let entries: BTreeSet<String> =
        expected().iter().map(|entry| text(entry, "name").to_owned()).collect();
    assert_eq!(folders, entries);
    let correct = entries.iter().filter(|name| name.starts_with("ok_")).count();
    assert!(correct >= 6 && entries.len() - correct >= 15, "{entries:?}");
}

#[test]
fn buggy_examples_are_confirmed_and_correct_ones_pass() {
    let expected = expected();
    let scratch =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("examples-{}", std::process::id()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let confirmed = Mutex::new(Vec::new());
    let faults = for_each(&expected, cores, |entry| {
        let name = text(entry, "name");
        let folder = scratch.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let source = examples().join(name).join(text(entry, "source"));
        let found = Example { expected: entry, source, folder }
            .check()
            .map_err(|fault| format!("{name}: {fault}"))?;
        confirmed.lock().expect("no panic").extend(found);
        Ok(())
    });
    assert!(faults.is_empty(), "{} examples fail:\n{}", faults.len(), faults.join("\n"));

    let confirmed = confirmed.into_inner().expect("no panic");
    assert!(confirmed.len() >= 15, "only {} findings to replay", confirmed.len());
    let times = std::env::var("FORETELL_REPLAYS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let faults = for_each(&confirmed, 2 * cores, |finding| {
        finding.replay(times).map_err(|fault| format!("{}: {fault}", finding.name))
    });
    assert!(faults.is_empty(), "{} findings do not replay:\n{}", faults.len(), faults.join("\n"));
    let _ = std::fs::remove_dir_all(&scratch);
}
