//! The command line of foretell: reads what was typed, calls a command, returns an exit code.

mod cli;
mod commands;
mod exit;
mod output;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use exit::{Exit, Failure};
use foretell_build::Language;
use output::Output;

fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    // A compiler's arguments are not ours to understand: `--version`, `-h` and all others are
    // clang's.
    match typed.first().and_then(|first| first.to_str()) {
        Some("cc") => return foretell_build::compile(Language::C, typed.into_iter().skip(1)),
        Some("c++") => return foretell_build::compile(Language::Cxx, typed.into_iter().skip(1)),
        _ => {}
    }
    let cli = Cli::parse(); // exits with 2 on a usage error, as the contract says
    let mut output = Output::new(cli.format);
    let result = run(&cli.command, &mut output)
        .and_then(|exit| output.flush().map(|()| exit).map_err(Failure::from));
    let exit = match result {
        Ok(exit) => exit,
        Err(Failure::OutputClosed) => Exit::NothingFound,
        Err(Failure::Input(message)) => {
            eprintln!("foretell: {message}");
            Exit::BadInput
        }
        Err(Failure::Internal(message)) => {
            eprintln!("foretell: internal error: {message}; please report it with the input");
            Exit::OurFailure
        }
    };
    ExitCode::from(exit.code())
}

fn run(command: &Command, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        Command::Trace { command } => commands::trace::run(command, output),
        Command::Cc(_) | Command::Cxx(_) => {
            Err(Failure::Input("`cc` and `c++` come first: foretell cc ARGUMENTS".into()))
        }
        Command::Record(arguments) => commands::record::run(arguments, output),
        Command::Predict(arguments) => commands::predict::run(arguments, output),
        Command::Test(arguments) => commands::test::run(arguments, output),
        Command::Replay(arguments) => commands::replay::run(arguments, output),
        Command::Explain(arguments) => commands::explain::run(arguments, output),
        Command::Verify(arguments) => commands::verify::run(arguments, output),
        Command::Doctor => commands::doctor::run(output),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "foretell", &mut script);
            output.write_all(&script)?;
            Ok(Exit::NothingFound)
        }
        Command::Schema => {
            output.write_all(foretell_report::SCHEMA.as_bytes())?;
            Ok(Exit::NothingFound)
        }
    }
}
