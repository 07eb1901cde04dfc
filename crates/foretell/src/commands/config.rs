//! `foretell config`: which options hold here, and why.

use std::io::Write;

use clap::CommandFactory;
use foretell_limits::Limit;
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

/// The limits that no option sets, by the part of foretell that they are about.
const LIMITS: [(&str, &[Limit]); 8] = [
    ("program", foretell_record::PROGRAM_LIMITS),
    ("record", foretell_record::limits::TABLE),
    ("predict", foretell_predict::limits::TABLE),
    ("test", foretell_force::limits::TABLE),
    ("explore", foretell_explore::limits::TABLE),
    ("verify", foretell_verify::limits::TABLE),
    ("explain", foretell_neighbourhood::limits::TABLE),
    ("report", foretell_report::limits::TABLE),
];

/// Prints the limits, with what they cost and what is lost at them.
pub fn limits(output: &mut Output) -> Result<Exit, Failure> {
    if output.json() {
        let limits: Vec<_> = LIMITS
            .iter()
            .flat_map(|(part, table)| table.iter().map(move |limit| (part, limit)))
            .map(|(part, limit)| {
                json!({"part": part, "name": limit.name, "value": limit.value,
                    "what": limit.what.trim(), "costs": limit.costs, "lost": limit.lost})
            })
            .collect();
        output.object(json!({"version": 1, "limits": limits}))?;
        return Ok(Exit::NothingFound);
    }
    for (part, table) in LIMITS {
        writeln!(output, "[{part}]")?;
        for limit in table {
            writeln!(output, "{:<26} {:>11}  {}", limit.name, limit.value, limit.what.trim())?;
            writeln!(output, "{:<39} a larger one costs: {}", "", limit.costs)?;
            writeln!(output, "{:<39} lost at it: {}", "", limit.lost)?;
        }
        writeln!(output)?;
    }
    Ok(Exit::NothingFound)
}
