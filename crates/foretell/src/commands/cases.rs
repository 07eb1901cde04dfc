//! Tests that are programs of their own: each case of a test program, each `#[test]` of a Rust package, each
//! test of CTest is given to `foretell test` by itself, and a table says what came of all of them.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use foretell_guard::{process, stop};
use foretell_report::{junit, sha256};
use serde_json::{Value, json};

use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// One test: a program with arguments.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// What it belongs to: the test program, or cargo's target.
    pub target: String,
    /// Empty where the program as a whole is the test.
    pub name: String,
    /// What is run.
    pub program: PathBuf,
    /// With these arguments.
    pub arguments: Vec<OsString>,
    /// In this folder; in the current one when absent.
    pub folder: Option<PathBuf>,
    /// With these variables of the environment.
    pub environment: Vec<(String, String)>,
    /// Options of `foretell test` for this one alone.
    pub options: Vec<OsString>,
}

/// Which cases, and what is done with them.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// Only those with this in their name.
    pub filter: Option<&'a str>,
    /// Only print their names.
    pub list: bool,
    /// Only this part of so many.
    pub partition: Option<(u32, u32)>,
    /// Where JUnit's XML goes.
    pub junit: Option<&'a Path>,
    /// Where the table goes as JSON.
    pub json: Option<&'a Path>,
    /// Where the result of each case goes.
    pub results: PathBuf,
    /// Where schedules go.
    pub schedules: PathBuf,
    /// Options of `foretell test` for all of them.
    pub options: Vec<OsString>,
}

/// A case and what came of it.
struct Tested {
    target: String,
    name: String,
    exit: Exit,
    /// The headlines of what was found.
    findings: Vec<String>,
    summary: String,
    result: Option<PathBuf>,
    time: Duration,
}

/// Tests the cases, one after the other; the exit code is the worst of theirs.
pub fn run(cases: Vec<Case>, plan: &Plan<'_>, output: &mut Output) -> Result<Exit, Failure> {
    let cases = chosen(cases, plan);
    if plan.list {
        return list(&cases, output);
    }
    if cases.is_empty() {
        return Err(Failure::Input(match plan.filter {
            Some(filter) => format!("no test has `{filter}` in its name; --list shows them"),
            None => "there is no test".into(),
        }));
    }
    fs::create_dir_all(&plan.results)
        .map_err(|error| Failure::Input(format!("{}: {error}", plan.results.display())))?;
    // A case may run in a folder of its own.
    let whole = |path: &Path| {
        std::path::absolute(path)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
    };
    let (results, schedules) = (whole(&plan.results)?, whole(&plan.schedules)?);
    let mut tested = Vec::new();
    for case in &cases {
        if stop::is_over() {
            break;
        }
        let mut command = ourselves("test", true);
        command.args(&plan.options).arg("--schedules").arg(&schedules);
        let one = test_one(case, command, &results)?;
        if !output.json() {
            show(&one, output);
        }
        tested.push(one);
    }
    let mut exit = worst(tested.iter().map(|test| test.exit));
    if tested.len() < cases.len() && exit == Exit::NothingFound {
        exit = Exit::Incomplete;
    }
    let left = cases.len() - tested.len();
    if let Some(file) = plan.junit {
        let cases: Vec<junit::Case<'_>> = tested.iter().map(case).collect();
        report::write_file(file, |mut out| junit::render_cases(&mut out, "foretell", &cases))?;
    }
    if let Some(file) = plan.json {
        report::write_file(file, |out| writeln!(out, "{:#}", as_json(&tested)))?;
    }
    match output.json() {
        true => output.object(as_json(&tested)).map_err(unwritten)?,
        false => line(output, &summary(&tested, left)),
    }
    Ok(exit)
}

/// Those that are wanted, in an order that does not depend on who listed them.
fn chosen(mut cases: Vec<Case>, plan: &Plan<'_>) -> Vec<Case> {
    cases.retain(|case| {
        let called = if case.name.is_empty() { &case.target } else { &case.name };
        plan.filter.is_none_or(|filter| called.contains(filter))
    });
    cases.sort_by(|one, other| (&one.target, &one.name).cmp(&(&other.target, &other.name)));
    if let Some((part, of)) = plan.partition {
        let numbered = cases.into_iter().enumerate();
        return numbered.filter(|(at, _)| *at as u32 % of == part).map(|(_, case)| case).collect();
    }
    cases
}

fn list(cases: &[Case], output: &mut Output) -> Result<Exit, Failure> {
    if output.json() {
        let named = |case: &Case| json!({"target": case.target, "name": case.name});
        let names: Vec<Value> = cases.iter().map(named).collect();
        output.object(json!({"version": 1, "tests": names})).map_err(unwritten)?;
    } else {
        cases.iter().for_each(|case| line(output, &format!("{}: {}", case.target, case.name)));
    }
    Ok(Exit::NothingFound)
}

fn unwritten(error: std::io::Error) -> Failure {
    Failure::Internal(format!("the result is no JSON: {error}"))
}

/// A command of foretell's own.
pub fn ourselves(name: &str, json: bool) -> Command {
    let own = std::env::current_exe().unwrap_or_else(|_| "foretell".into());
    let mut command = Command::new(own);
    if json {
        command.args(["--format", "json"]);
    }
    command.arg(name);
    command
}

/// The exit that a process of ours ended with.
pub fn code_of(code: Option<i32>) -> Exit {
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.and_then(Exit::of_code).unwrap_or(Exit::OurFailure)
}

/// Runs `foretell test`, as far as the command has it, on one case.
fn test_one(case: &Case, mut command: Command, results: &Path) -> Result<Tested, Failure> {
    let file: String = format!("{}-{}", case.target, case.name)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .take(LONGEST_NAME)
        .collect();
    // Names that differ only in other characters must not share a file.
    let digest = sha256::hex(format!("{}\0{}", case.target, case.name).as_bytes());
    let saved = results.join(format!("{file}-{}.json", &digest[..8]));
    _ = fs::remove_file(&saved);
    command.args(&case.options).arg("--json").arg(&saved);
    command.arg(&case.program).args(&case.arguments);
    command.envs(case.environment.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &case.folder {
        command.current_dir(folder);
    }
    let begin = Instant::now();
    let finished = process::output(&mut command).map_err(|error| {
        let folder = case.folder.as_deref().unwrap_or(Path::new("."));
        Failure::Input(format!("cannot run a test in {}: {error}", folder.display()))
    })?;
    let report: Value = serde_json::from_slice(&finished.stdout).unwrap_or_default();
    let findings = report["findings"].as_array().into_iter().flatten();
    let counts = |finding: &&Value| {
        let status = finding["status"].as_str().unwrap_or_default();
        matches!(status, "confirmed" | "predicted")
            && finding["same_as"].is_null()
            && finding["suppressed"].is_null()
    };
    let headline = |finding: &Value| {
        let word = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        format!("{}[{}]: {}", word("status"), word("kind"), word("detail"))
    };
    let explored = &report["exploration"];
    let summary = match (explored["classes"].as_u64(), explored["covered"].as_bool()) {
        (Some(classes), Some(true)) => format!("all behaviours covered, {classes} classes"),
        (Some(classes), _) => format!("not all behaviours covered, {classes} classes"),
        // What foretell said last is why.
        _ => {
            let said = String::from_utf8_lossy(&finished.stderr).into_owned();
            format!("no result: {}", said.lines().last().unwrap_or("nothing was said"))
        }
    };
    Ok(Tested {
        target: case.target.clone(),
        name: case.name.clone(),
        exit: code_of(finished.status.code()),
        findings: findings.filter(counts).map(headline).collect(),
        summary,
        result: saved.is_file().then_some(saved),
        time: begin.elapsed(),
    })
}

/// So much of a name goes into that of a file.
const LONGEST_NAME: usize = 100;

/// Prints a line, at once: tests take long.
fn line(output: &mut Output, text: &str) {
    // What cannot be written is said when the output is closed.
    _ = writeln!(output, "{text}").and_then(|()| output.flush());
}

/// One line for a test, and one for each thing that was found.
fn show(test: &Tested, output: &mut Output) {
    let name = match test.name.as_str() {
        "" => format!("{} (the whole program)", test.target),
        name => format!("{}: {name}", test.target),
    };
    line(output, &format!("{:>3}  {name}  {}", test.exit.code(), test.summary));
    for finding in &test.findings {
        line(output, &format!("       {finding}"));
    }
    if let (Some(result), false) = (&test.result, test.findings.is_empty()) {
        line(output, &format!("       foretell report {}", result.display()));
    }
}

/// The test as one of JUnit's.
fn case(test: &Tested) -> junit::Case<'_> {
    let outcome = match test.exit {
        Exit::NothingFound => junit::Outcome::Passed,
        Exit::Confirmed | Exit::Predicted => junit::Outcome::Failed(&test.findings),
        Exit::Incomplete => junit::Outcome::Skipped(&test.summary),
        Exit::BadInput | Exit::OurFailure | Exit::OfProgram(_) => {
            junit::Outcome::Error(&test.summary)
        }
    };
    let name = if test.name.is_empty() { &test.target } else { &test.name };
    junit::Case { class: &test.target, name, outcome, seconds: test.time.as_secs_f64() }
}

/// The last line; `left`: so many were not begun.
fn summary(tested: &[Tested], left: usize) -> String {
    let of = |exit: Exit| tested.iter().filter(|test| test.exit == exit).count();
    let judged: usize = [Exit::NothingFound, Exit::Confirmed, Exit::Predicted, Exit::Incomplete]
        .map(of)
        .iter()
        .sum();
    format!(
        "{} tests: {} with a confirmed bug, {} predicted, {} incomplete, {} clear, {} not tested",
        tested.len() + left,
        of(Exit::Confirmed),
        of(Exit::Predicted),
        of(Exit::Incomplete),
        of(Exit::NothingFound),
        tested.len() - judged + left
    )
}

fn as_json(tested: &[Tested]) -> Value {
    let tests: Vec<Value> = tested
        .iter()
        .map(|test| {
            json!({
                "target": test.target,
                "name": test.name,
                "exit": test.exit.code(),
                "findings": test.findings,
                "summary": test.summary,
                "result": test.result,
            })
        })
        .collect();
    json!({"version": 1, "tests": tests})
}

/// The exit code of several tests: a bug first, then what is our fault, then what is left open.
fn worst(exits: impl Iterator<Item = Exit>) -> Exit {
    let rank = |exit: &Exit| match exit {
        Exit::Confirmed => 5,
        Exit::OurFailure => 4,
        Exit::Predicted => 3,
        Exit::BadInput | Exit::OfProgram(_) => 2,
        Exit::Incomplete => 1,
        Exit::NothingFound => 0,
    };
    exits.max_by_key(rank).unwrap_or(Exit::NothingFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bug_outweighs_everything() {
        let exits = [Exit::NothingFound, Exit::OurFailure, Exit::Confirmed, Exit::Incomplete];
        assert_eq!(worst(exits.into_iter()), Exit::Confirmed);
        assert_eq!(worst([Exit::Incomplete, Exit::NothingFound].into_iter()), Exit::Incomplete);
    }

    #[test]
    fn parts_are_everything_and_share_nothing() {
        let case = |name: &str| Case { name: name.into(), ..Case::default() };
        let all: Vec<Case> = ["d", "a", "c", "b", "e"].map(case).to_vec();
        let names = |plan: &Plan<'_>| {
            chosen(all.clone(), plan).into_iter().map(|case| case.name).collect::<Vec<_>>()
        };
        let part = |number| names(&Plan { partition: Some((number, 2)), ..Plan::default() });
        assert_eq!(
            (part(0), part(1)),
            (["a", "c", "e"].map(String::from).to_vec(), ["b", "d"].map(String::from).to_vec())
        );
        assert_eq!(names(&Plan { filter: Some("c"), ..Plan::default() }), ["c"]);
    }
}
