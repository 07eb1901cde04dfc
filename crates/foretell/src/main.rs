//! The command line of foretell: reads what was typed, calls a command, returns an exit code.

mod cli;
mod commands;
mod config;
mod exit;
mod output;
mod progress;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use cli::{Cli, Command, ConfigCommand};
use config::Config;
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
    let (cli, config) = match parse() {
        Ok(parsed) => parsed,
        Err(message) => {
            eprintln!("foretell: {message}");
            return ExitCode::from(Exit::BadInput.code());
        }
    };
    let mut output = Output::new(cli.format);
    let result = run(&cli.command, &config, &mut output)
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

/// What was typed, and what the configuration adds to it. Exits with 2 on a usage error, as the
/// contract says.
fn parse() -> Result<(Cli, Config), String> {
    let commands = Cli::command();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let typed = commands.clone().get_matches_from(&words);
    let cli = Cli::from_arg_matches(&typed).unwrap_or_else(|error| error.exit());
    let folder = std::env::current_dir().unwrap_or_default();
    let config = Config::find(cli.config.as_deref(), &folder, cli.profile.as_deref(), &commands)?;
    let Some((name, matches)) = typed.subcommand() else { return Ok((cli, config)) };
    let additions = config.additions(&commands, name, matches);
    let place = words.iter().skip(1).position(|word| word == name);
    match place {
        Some(place) if !additions.is_empty() => {
            words.splice(place + 2..place + 2, additions);
            let cli = Cli::try_parse_from(&words).map_err(|error| {
                let file = config.path.as_ref().map(|path| path.display().to_string());
                format!("with the options of {}: {error}", file.unwrap_or_default())
            })?;
            Ok((cli, config))
        }
        _ => Ok((cli, config)),
    }
}

fn run(command: &Command, config: &Config, output: &mut Output) -> Result<Exit, Failure> {
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
        Command::Fix(arguments) => commands::fix::run(arguments, output),
        Command::Verify(arguments) => commands::verify::run(arguments, output),
        Command::Report(arguments) => commands::report::run(arguments, output),
        Command::Config { command: ConfigCommand::Show } => commands::config::show(config, output),
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
