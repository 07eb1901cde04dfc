//! `foretell config`: which options hold here, and why.

use std::io::Write;

use clap::CommandFactory;
use serde_json::json;

use crate::cli::Cli;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Prints every option with its value and where that comes from.
pub fn show(config: &Config, output: &mut Output) -> Result<Exit, Failure> {
    let settings = config.settings(&Cli::command());
    let path = config.project().map(|path| path.display().to_string());
    if output.json() {
        let settings: Vec<_> = settings
            .iter()
            .map(|one| {
                json!({"command": one.command, "key": one.key, "value": one.value,
                    "source": one.source})
            })
            .collect();
        output.object(json!({"version": 1, "config":
            {"file": path, "files": config.files(), "settings": settings}}))?;
        return Ok(Exit::NothingFound);
    }
    if path.is_none() {
        writeln!(output, "# no {} here or above", crate::config::FILE)?;
    }
    for file in config.files() {
        writeln!(output, "# {file}")?;
    }
    let mut command = String::new();
    for one in settings {
        if one.command != command {
            writeln!(output, "\n[{}]", one.command)?;
            command.clone_from(&one.command);
        }
        let value = one.value.as_deref().unwrap_or("-");
        writeln!(output, "{:<18} {value:<24} # {}", one.key, one.source)?;
    }
    Ok(Exit::NothingFound)
}
