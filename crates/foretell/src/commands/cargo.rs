//! `foretell cargo`, also as `cargo foretell`: Rust packages.
//!
//! Cargo builds as ever, into a folder of its own below the target folder, with the flags that make
//! `rustc` instrument. Building for a named platform keeps them away from build scripts and procedural
//! macros. Each `#[test]` is then a program of its own for `foretell test`: recorded, explored, reported.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use foretell_guard::{process, stop};
use foretell_report::junit;
use serde_json::{Value, json};

use crate::cli::{CargoCommand, CargoTestArguments};
use crate::commands::program::rust_host;
use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// How long a test executable may take to list its tests, and how much it may print.
const LISTING: (Duration, usize) = (Duration::from_secs(30), 16 << 20);
/// How much a result may be.
const RESULT_BYTES: usize = 1 << 30;

/// Does what was typed.
pub fn run(command: &CargoCommand, output: &mut Output) -> Result<Exit, Failure> {
    let cargo = Cargo::find()?;
    match command {
        CargoCommand::Build { arguments } => {
            let mut built = cargo.command("build", arguments);
            let status = process::status(&mut built).map_err(not_started)?;
            match status.success() {
                true => Ok(Exit::NothingFound),
                false => Err(Failure::Input(format!("cargo did not build it ({status})"))),
            }
        }
        CargoCommand::Run { arguments, program } => {
            let built = cargo.built("build", arguments)?;
            let programs: Vec<&Executable> = built.iter().filter(|e| e.kind == "bin").collect();
            let [one] = programs.as_slice() else {
                let names: Vec<&str> = programs.iter().map(|program| &*program.name).collect();
                let what = "there must be one program to run; choose it with `--bin NAME`";
                return Err(Failure::Input(format!("{what} (built: {})", names.join(", "))));
            };
            let mut tested = ourselves("test", output.json());
            tested.arg(&one.path).args(program);
            let status = process::status(&mut tested).map_err(not_started)?;
            Ok(code_of(status.code()))
        }
        CargoCommand::Test(arguments) => test(&cargo, arguments, output),
    }
}

/// Cargo as it is called here.
struct Cargo {
    flags: OsString,
    host: String,
    target: PathBuf,
}

/// What cargo built.
struct Executable {
    name: String,
    /// `bin`, `lib`, `test` and so on.
    kind: String,
    is_test: bool,
    path: PathBuf,
    /// The package's folder, in which cargo runs tests.
    folder: PathBuf,
}

impl Cargo {
    /// Looks up what must be known before cargo is called.
    fn find() -> Result<Self, Failure> {
        let host = rust_host(None)?;
        let ours = foretell_build::rust::flags();
        let ours = ours.map_err(|error| Failure::Input(error.to_string()))?;
        let mut flags = users_flags();
        for flag in ours {
            if !flags.is_empty() {
                flags.push("\x1f");
            }
            flags.push(flag);
        }
        let mut asked = Command::new(cargo());
        asked.args(["metadata", "--format-version=1", "--no-deps"]);
        let asked = process::output(&mut asked).map_err(not_started)?;
        if !asked.status.success() {
            let said = String::from_utf8_lossy(&asked.stderr);
            return Err(Failure::Input(format!("cargo: {}", said.trim())));
        }
        let metadata: Value = serde_json::from_slice(&asked.stdout)
            .map_err(|error| Failure::Input(format!("cargo metadata: {error}")))?;
        let target = metadata["target_directory"].as_str().unwrap_or("target");
        Ok(Self { flags, host, target: Path::new(target).join("foretell") })
    }

    /// A command of cargo's with the user's arguments.
    fn command(&self, name: &str, arguments: &[OsString]) -> Command {
        let mut command = Command::new(cargo());
        let (bootstrap, on) = foretell_build::rust::BOOTSTRAP;
        command.arg(name).args(arguments).arg("--target").arg(&self.host);
        command
            .env(bootstrap, on)
            .env("CARGO_ENCODED_RUSTFLAGS", &self.flags)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "0");
        // Without optimisation traces are three times as long, and nothing more is seen.
        for profile in ["DEV", "TEST"] {
            let variable = format!("CARGO_PROFILE_{profile}_OPT_LEVEL");
            if std::env::var_os(&variable).is_none() {
                command.env(variable, "1");
            }
        }
        command
    }

    /// Builds; gives the executables. What the compiler has to say goes to standard error.
    fn built(&self, name: &str, arguments: &[OsString]) -> Result<Vec<Executable>, Failure> {
        let mut command = self.command(name, arguments);
        command.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        let built = process::run(&mut command, None, RESULT_BYTES).map_err(not_started)?;
        if !built.status.success() {
            return Err(Failure::Input(format!("cargo did not build it ({})", built.status)));
        }
        let text = String::from_utf8_lossy(&built.output);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(messages.filter_map(|message| executable(&message)).collect())
    }
}

/// The executable that a message of cargo's tells about.
fn executable(message: &Value) -> Option<Executable> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    Some(Executable {
        name: message["target"]["name"].as_str()?.to_owned(),
        kind: message["target"]["kind"][0].as_str().unwrap_or_default().to_owned(),
        is_test: message["profile"]["test"] == true,
        path,
        folder: manifest.parent()?.to_owned(),
    })
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").filter(|name| !name.is_empty()).unwrap_or_else(|| "cargo".into())
}

/// The flags that the user has in the environment, in cargo's own encoding.
fn users_flags() -> OsString {
    match (std::env::var_os("CARGO_ENCODED_RUSTFLAGS"), std::env::var("RUSTFLAGS")) {
        (Some(flags), _) => flags,
        (None, Ok(flags)) => flags.split_whitespace().collect::<Vec<_>>().join("\x1f").into(),
        (None, Err(_)) => OsString::new(),
    }
}

fn not_started(error: std::io::Error) -> Failure {
    Failure::Input(format!("cannot start cargo: {error}; install Rust 1.95 with rustup"))
}

/// A command of foretell's own.
fn ourselves(name: &str, json: bool) -> Command {
    let own = std::env::current_exe().unwrap_or_else(|_| "foretell".into());
    let mut command = Command::new(own);
    if json {
        command.args(["--format", "json"]);
    }
    command.arg(name);
    command
}

fn code_of(code: Option<i32>) -> Exit {
    let code = code.and_then(|code| u8::try_from(code).ok());
    code.and_then(Exit::of_code).unwrap_or(Exit::OurFailure)
}

/// One test and what came of it.
struct Tested {
    executable: String,
    name: String,
    exit: Exit,
    /// The headlines of what was found.
    findings: Vec<String>,
    summary: String,
    result: Option<PathBuf>,
    time: Duration,
}

/// Tests each `#[test]` as a program of its own.
fn test(
    cargo: &Cargo,
    arguments: &CargoTestArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut cargo_arguments = vec![OsString::from("--no-run")];
    cargo_arguments.extend(arguments.arguments.iter().cloned());
    let built = cargo.built("test", &cargo_arguments)?;
    let mut chosen = Vec::new();
    for executable in built.iter().filter(|executable| executable.is_test) {
        let names = listed(executable)?;
        let wanted = |name: &&String| {
            arguments.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
        };
        chosen.extend(names.iter().filter(wanted).map(|name| (executable, name.clone())));
    }
    // Cargo tells of what it has built in an order that depends on what was there before.
    chosen.sort_by(|(one, first), (other, second)| (&one.name, first).cmp(&(&other.name, second)));
    if let Some((part, of)) = arguments.partition {
        let mine = |position: usize| position as u32 % of == part;
        chosen =
            chosen.into_iter().enumerate().filter(|(at, _)| mine(*at)).map(|(_, t)| t).collect();
    }
    if arguments.list {
        match output.json() {
            true => {
                let names: Vec<Value> = chosen
                    .iter()
                    .map(|(executable, name)| json!({"target": executable.name, "name": name}))
                    .collect();
                output.object(json!({"version": 1, "tests": names})).map_err(unwritten)?;
            }
            false => chosen.iter().for_each(|(executable, name)| {
                line(output, &format!("{}: {name}", executable.name));
            }),
        }
        return Ok(Exit::NothingFound);
    }
    if chosen.is_empty() {
        return Err(Failure::Input(match &arguments.filter {
            Some(filter) => format!("no test has `{filter}` in its name; --list shows them"),
            None => "there is no test".into(),
        }));
    }
    let results = cargo.target.join("results");
    fs::create_dir_all(&results)
        .map_err(|error| Failure::Input(format!("{}: {error}", results.display())))?;
    let mut tested = Vec::new();
    for (executable, name) in chosen {
        if stop::is_over() {
            break;
        }
        let one = test_one(executable, &name, arguments, &results)?;
        if !output.json() {
            show(&one, output);
        }
        tested.push(one);
    }
    let exit = worst(tested.iter().map(|test| test.exit));
    if let Some(file) = &arguments.junit {
        let cases: Vec<junit::Case<'_>> = tested.iter().map(case).collect();
        report::write_file(file, |mut out| junit::render_cases(&mut out, "foretell", &cases))?;
    }
    match output.json() {
        true => output.object(as_json(&tested)).map_err(unwritten)?,
        false => line(output, &summary(&tested)),
    }
    Ok(exit)
}

fn unwritten(error: std::io::Error) -> Failure {
    Failure::Internal(format!("the result is no JSON: {error}"))
}

/// The names of an executable's tests without those that are to be ignored. One that has no harness is a
/// test by itself, with an empty name.
fn listed(executable: &Executable) -> Result<Vec<String>, Failure> {
    let list = |ignored: bool| -> Result<Option<Vec<String>>, Failure> {
        let mut command = Command::new(&executable.path);
        command.args(["--list", "--format=terse"]).current_dir(&executable.folder);
        if ignored {
            command.arg("--ignored");
        }
        command.stderr(Stdio::null());
        let (time, most) = LISTING;
        let listed = process::run(&mut command, Some(time), most)
            .map_err(|error| Failure::Input(format!("{}: {error}", executable.path.display())))?;
        let text = String::from_utf8_lossy(&listed.output).into_owned();
        let is_listing = |line: &str| line.ends_with(": test") || line.ends_with(": benchmark");
        let fits = listed.status.success() && text.lines().all(is_listing);
        let name = |line: &str| line.strip_suffix(": test").map(str::to_owned);
        Ok(fits.then(|| text.lines().filter_map(name).collect()))
    };
    let Some(names) = list(false)? else { return Ok(vec![String::new()]) };
    let ignored = list(true)?.unwrap_or_default();
    Ok(names.into_iter().filter(|name| !ignored.contains(name)).collect())
}

/// Runs `foretell test` on one test.
fn test_one(
    executable: &Executable,
    name: &str,
    arguments: &CargoTestArguments,
    results: &Path,
) -> Result<Tested, Failure> {
    let file: String = format!("{}-{name}", executable.name)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let saved = results.join(format!("{file}.json"));
    let mut command = ourselves("test", true);
    command.arg("--time-limit").arg(arguments.time_limit.to_string());
    command.arg("--schedules").arg(results.join("schedules")).arg("--json").arg(&saved);
    if let Some(jobs) = arguments.jobs {
        command.arg("--jobs").arg(jobs.to_string());
    }
    command.arg(&executable.path).current_dir(&executable.folder);
    if !name.is_empty() {
        command.args(["--exact", name, "--test-threads=1", "--nocapture"]);
    }
    let begin = Instant::now();
    let finished = process::output(&mut command).map_err(not_started)?;
    let report: Value = serde_json::from_slice(&finished.stdout).unwrap_or_default();
    let findings = report["findings"].as_array().into_iter().flatten();
    let counts = |finding: &&Value| {
        let status = finding["status"].as_str().unwrap_or_default();
        matches!(status, "confirmed" | "predicted") && finding["same_as"].is_null()
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
        executable: executable.name.clone(),
        name: name.to_owned(),
        exit: code_of(finished.status.code()),
        findings: findings.filter(counts).map(headline).collect(),
        summary,
        result: saved.is_file().then_some(saved),
        time: begin.elapsed(),
    })
}

/// Prints a line, at once: tests take long.
fn line(output: &mut Output, text: &str) {
    // What cannot be written is said when the output is closed.
    _ = writeln!(output, "{text}").and_then(|()| output.flush());
}

/// One line for a test, and one for each thing that was found.
fn show(test: &Tested, output: &mut Output) {
    let name = match test.name.as_str() {
        "" => format!("{} (no harness: the whole program)", test.executable),
        name => format!("{}: {name}", test.executable),
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
    let name = if test.name.is_empty() { &test.executable } else { &test.name };
    junit::Case { class: &test.executable, name, outcome, seconds: test.time.as_secs_f64() }
}

fn summary(tested: &[Tested]) -> String {
    let of = |exit: Exit| tested.iter().filter(|test| test.exit == exit).count();
    let others = tested.len()
        - [Exit::NothingFound, Exit::Confirmed, Exit::Predicted, Exit::Incomplete]
            .map(of)
            .iter()
            .sum::<usize>();
    format!(
        "{} tests: {} with a confirmed bug, {} predicted, {} incomplete, {} clear, {others} not tested",
        tested.len(),
        of(Exit::Confirmed),
        of(Exit::Predicted),
        of(Exit::Incomplete),
        of(Exit::NothingFound)
    )
}

fn as_json(tested: &[Tested]) -> Value {
    let tests: Vec<Value> = tested
        .iter()
        .map(|test| {
            json!({
                "target": test.executable,
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
}
