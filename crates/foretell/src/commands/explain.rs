//! `foretell explain`: why, and what to add.

use std::io::Write;

use foretell_neighbourhood::{Options, Verdict, explain, json, picture, text};
use foretell_trace::format;
use foretell_trace::validate::validate;
use serde_json::json;

use crate::cli::ExplainArguments;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Explains and prints.
pub fn run(arguments: &ExplainArguments, output: &mut Output) -> Result<Exit, Failure> {
    let trace = format::read_path(&arguments.trace)?;
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    if let Some(fault) = validate(&trace).first() {
        return Err(Failure::Input(in_file(fault)));
    }
    let options =
        Options { exact: arguments.exact, synthesis: !arguments.no_fix, ..Options::default() };
    let explanation = explain(&trace, &options).map_err(|error| Failure::Input(in_file(&error)))?;
    if let Some(path) = &arguments.svg {
        format::write_whole(path, |file| {
            file.write_all(picture::svg(&trace, &explanation).as_bytes())
                .map_err(|error| format::WriteError::Io { path: path.clone(), error })
        })
        .map_err(|error| Failure::Input(error.to_string()))?;
    }
    if output.json() {
        output.object(json!({
            "version": 1,
            "program": {"command": trace.metadata.command, "build_id": trace.metadata.build_id},
            "trace": {
                "file": arguments.trace.display().to_string(),
                "threads": trace.threads.len(),
                "events": trace.events.len(),
            },
            "explanation": json::to_json(&trace, &explanation),
        }))?;
    } else {
        write!(output, "{}", text::render(&trace, &explanation))?;
    }
    Ok(match explanation.verdict {
        Verdict::AllGood | Verdict::Infeasible if trace.metadata.gaps.is_empty() => {
            Exit::NothingFound
        }
        Verdict::AllGood | Verdict::Infeasible => Exit::Incomplete,
        Verdict::AllBad | Verdict::Depends | Verdict::Deadlock => Exit::Predicted,
        Verdict::Unknown(_) => Exit::Incomplete,
    })
}
