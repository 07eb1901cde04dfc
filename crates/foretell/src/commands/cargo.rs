//! `foretell cargo`, also as `cargo foretell`: Rust packages.
//!
//! Cargo builds as ever, into a folder of its own below the target folder, with the flags that make
//! `rustc` instrument. Building for a named platform keeps them away from build scripts and procedural
//! macros. Each `#[test]` is then a program of its own for `foretell test`: recorded, explored, reported.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretell_guard::process;
use serde_json::Value;

use crate::cli::{CargoCommand, CargoTestArguments};
use crate::commands::cases::{self, Case, code_of, ourselves};
use crate::commands::frameworks::LISTING;
use crate::commands::program::rust_host;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// How much cargo may print.
const MESSAGE_BYTES: usize = 1 << 30;

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
        let built = process::run(&mut command, None, MESSAGE_BYTES).map_err(not_started)?;
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

/// Tests each `#[test]` as a program of its own.
fn test(
    cargo: &Cargo,
    arguments: &CargoTestArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut cargo_arguments = vec![OsString::from("--no-run")];
    cargo_arguments.extend(arguments.arguments.iter().cloned());
    let built = cargo.built("test", &cargo_arguments)?;
    let mut cases = Vec::new();
    for executable in built.iter().filter(|executable| executable.is_test) {
        let names = listed(executable)?;
        cases.extend(names.into_iter().map(|name| case(executable, name)));
    }
    let results = cargo.target.join("results");
    let plan = arguments.cases.plan(results.clone(), results.join("schedules"));
    cases::run(cases, &plan, output)
}

/// One test of an executable; without a name it is the whole program.
fn case(executable: &Executable, name: String) -> Case {
    let words: &[&str] = match name.as_str() {
        "" => &[],
        name => &["--exact", name, "--test-threads=1", "--nocapture"],
    };
    Case {
        target: executable.name.clone(),
        program: executable.path.clone(),
        arguments: words.iter().map(OsString::from).collect(),
        folder: Some(executable.folder.clone()),
        name,
        ..Case::default()
    }
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
