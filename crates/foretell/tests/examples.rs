//! The programs in `examples/`: built with `foretell cc`, recorded, predicted from and tested, each
//! against what `examples/expected.json` says about it.
//!
//! Places are named by marks in the sources (`BUG: first` in a comment), so that an edited example
//! does not need new line numbers. Every program `NAME/NAME.c` has its entry and every entry its
//! program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

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

    /// The whole thing: what was predicted is forced.
    fn test(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let wanted = &self.expected["test"];
        let code = wanted["exit"].as_i64().ok_or("`test` has an exit code")?;
        let schedules = self.path("forced");
        let mut test = vec!["--format", "json", "test", "--schedules", &schedules];
        test.extend(["--jobs", "1", program]);
        test.extend(arguments);
        let output = self.ends_with(code, &test)?;
        self.compare(wanted, &output)
    }

    fn check(&self) -> Result<(), String> {
        let program = self.build()?;
        let arguments: Vec<&str> = self.expected["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        self.predict(&program, &arguments)?;
        self.test(&program, &arguments)
    }
}

#[test]
fn every_example_has_its_expectation() {
    let folders: BTreeSet<String> = std::fs::read_dir(examples())
        .expect("examples/")
        .map(|entry| entry.expect("entry"))
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .filter(|name| {
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
    let waiting = Mutex::new(expected.iter());
    let faults = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(entry) = waiting.lock().expect("no panic").next() else { return };
            let name = text(entry, "name");
            let folder = scratch.join(name);
            std::fs::create_dir_all(&folder).expect("scratch folder");
            let source = examples().join(name).join(text(entry, "source"));
            let example = Example { expected: entry, source, folder };
            if let Err(fault) = example.check() {
                faults.lock().expect("no panic").push(format!("{name}: {fault}"));
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(expected.len());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{} examples fail:\n{}", faults.len(), faults.join("\n"));
    let _ = std::fs::remove_dir_all(&scratch);
}
