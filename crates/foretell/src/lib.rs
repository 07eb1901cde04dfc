//! The command line of foretell: reads what was typed, calls a command, returns an exit code.
//!
//! A library only so that its parsers can be tested and fuzzed; the binary calls [`main`].

mod cli;
mod commands;
mod config;
mod crash;
mod exit;
mod input;
mod late;
mod output;
mod progress;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use cli::{Cli, Command, ConfigCommand};
use config::Config;
use exit::{Exit, Failure};
use foretell_build::Language;
use foretell_guard::{say, stop};
use output::Output;

/// The whole command line: reads what was typed and gives the exit code.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    // A compiler's arguments are not ours to understand: `--version`, `-h` and all others are
    // clang's.
    match typed.first().and_then(|first| first.to_str()) {
        Some("cc") => return foretell_build::compile(Language::C, typed.into_iter().skip(1)),
        Some("c++") => return foretell_build::compile(Language::Cxx, typed.into_iter().skip(1)),
        _ => {}
    }
    if let Err(error) = stop::take_over() {
        say!("foretell: temporary files may stay when a signal ends foretell: {error}");
    }
    if let Err(error) = foretell_guard::descendants::adopt() {
        say!("foretell: processes that a program leaves behind may stay: {error}");
    }
    let exit = on_a_large_stack(|| crash::guarded(typed_command));
    foretell_guard::end();
    ExitCode::from(exit.code())
}

/// The stack that a command has, whatever `ulimit -s` says.
const STACK: usize = 64 << 20;

/// Does the work in a thread with a stack of known size: that of the first thread is the user's to limit.
fn on_a_large_stack(work: fn() -> Exit) -> Exit {
    match std::thread::Builder::new().name("command".into()).stack_size(STACK).spawn(work) {
        // A panic is a result already.
        Ok(thread) => thread.join().unwrap_or(Exit::OurFailure),
        // No memory for it: what there is may be enough.
        Err(_) => work(),
    }
}

/// Checks the text of a `foretell.toml`, as a run would; says what is wrong with it.
pub fn check_configuration(text: &str) -> Result<(), String> {
    config::check_text(text, &Cli::command())
}

/// Runs what was typed.
fn typed_command() -> Exit {
    let (cli, config) = match parse() {
        Ok(parsed) => parsed,
        Err(message) => {
            say!("foretell: {message}");
            return Exit::BadInput;
        }
    };
    let half = || commands::doctor::total_memory_mib().map(|mib| mib / 2);
    if let Some(mib) = cli.max_memory.or_else(half) {
        foretell_trace::format::limits::set_memory(mib.saturating_mul(1 << 20));
    }
    let mut output = Output::new(cli.format, config.files());
    let result = run(&cli.command, &config, &mut output);
    let unwritten = output.close();
    let exit = match result {
        Ok(exit) => exit,
        // What could not be done because there was no time for it is nobody's mistake.
        Err(Failure::Input(message)) if stop::is_over() => {
            say!("foretell: {}: {message}", stop::why().unwrap_or_default());
            Exit::Incomplete
        }
        Err(Failure::Input(message)) => {
            say!("foretell: {message}");
            Exit::BadInput
        }
        Err(Failure::Internal(message)) => {
            say!("foretell: internal error: {message}; {}", crash::WHERE_TO_REPORT);
            Exit::OurFailure
        }
    };
    match unwritten {
        // Whoever read the output has gone away (`foretell ... | head`): they have what they wanted.
        Some(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say!("foretell: cannot write the output: {error}");
            // A verdict stays what it is; of the others the output is all there is.
            if exit == Exit::NothingFound && !cli.command.has_verdict() {
                return Exit::BadInput;
            }
            exit
        }
        _ => exit,
    }
}

/// What was typed, and what the configuration adds to it. Exits with 2 on a usage error, as the
/// contract says.
fn parse() -> Result<(Cli, Config), String> {
    let commands = Cli::command();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let typed = commands.clone().get_matches_from(&words);
    let cli = Cli::from_arg_matches(&typed).unwrap_or_else(|error| error.exit());
    let folder = std::env::current_dir().unwrap_or_default();
    let config = match cli.no_config {
        true => Config::default(),
        false => {
            let (given, profile) = (cli.config.as_deref(), cli.profile.as_deref());
            Config::find(given, &folder, config::own_file().as_deref(), profile, &commands)?
        }
    };
    let Some((name, matches)) = typed.subcommand() else { return Ok((cli, config)) };
    let additions = config.additions(&commands, name, matches);
    let place = words.iter().skip(1).position(|word| word == name);
    match place {
        Some(place) if !additions.is_empty() => {
            words.splice(place + 2..place + 2, additions);
            let cli = Cli::try_parse_from(&words).map_err(|error| {
                format!("with the options of {}: {error}", config.files().join(" and "))
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
        Command::Cargo { command } => commands::cargo::run(command, output),
        Command::Ctest(arguments) => commands::cmake::test(arguments, output),
        Command::CmakeToolchain => commands::cmake::toolchain(output),
        Command::Record(arguments) => commands::record::run(arguments, output),
        Command::Predict(arguments) => commands::predict::run(arguments, output),
        Command::Test(arguments) => commands::test::run(arguments, output),
        Command::Replay(arguments) => commands::replay::run(arguments, output),
        Command::Explain(arguments) => commands::explain::run(arguments, output),
        Command::Fix(arguments) => commands::fix::run(arguments, output),
        Command::Verify(arguments) => commands::verify::run(arguments, output),
        Command::Merge(arguments) => commands::merge::run(arguments, output),
        Command::Report(arguments) => commands::report::run(arguments, output),
        Command::Config { command: ConfigCommand::Show { limits: true } } => {
            commands::config::limits(output)
        }
        Command::Config { command: ConfigCommand::Show { limits: false } } => {
            commands::config::show(config, output)
        }
        Command::Doctor { program } => match program.as_slice() {
            [] => commands::doctor::run(output),
            program => commands::doctor::look_at(program, output),
        },
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "foretell", &mut script);
            output.raw(&script);
            Ok(Exit::NothingFound)
        }
        Command::Schema => {
            output.raw(foretell_report::SCHEMA.as_bytes());
            Ok(Exit::NothingFound)
        }
    }
}
