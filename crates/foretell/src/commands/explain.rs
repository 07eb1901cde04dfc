//! `foretell explain`: why, and what to add.
//!
//! A file that says what has to hold (CTRC, assertions of the text format without a recorded order)
//! is explained as a whole. For a recorded run everything that the predictor finds is explained.

use std::io::Write;
use std::sync::Arc;

use foretell_force::bounded::{Lost, bounded};
use foretell_guard::stop;
use foretell_neighbourhood::{
    Explanation, Options, Verdict, explain, finding_options, json, picture, text,
};
use foretell_predict::Status;
use foretell_trace::{Trace, format};
use serde_json::json;

use crate::cli::ExplainArguments;
use crate::commands::explaining::{self, Explained, UNLIMITED, explain_each};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Explains and prints.
pub fn run(arguments: &ExplainArguments, output: &mut Output) -> Result<Exit, Failure> {
    explaining::come_to_a_close(arguments.time_limit);
    let trace = explaining::read(&arguments.trace)?;
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    if trace.metadata.observed_order {
        return findings(arguments, &trace, output);
    }
    let options =
        Options { exact: arguments.exact, synthesis: !arguments.no_fix, ..Options::default() };
    let explained = Arc::clone(&trace);
    let explanation = match bounded(UNLIMITED, move || explain(&explained, &options)) {
        Ok(explanation) => explanation.map_err(|error| Failure::Input(in_file(&error)))?,
        Err(Lost::Late) => return nothing_explained(arguments, &trace, output),
        Err(Lost::Panicked(why)) => return Err(Failure::Internal(in_file(&why))),
    };
    draw(arguments, &trace, &explanation)?;
    if output.json() {
        let mut object = header(arguments, &trace);
        object["explanation"] = json::to_json(&trace, &explanation);
        output.object(object)?;
    } else {
        write!(output, "{}", text::render(&trace, &explanation))?;
    }
    Ok(match explanation.verdict {
        Verdict::AllGood | Verdict::Infeasible => nothing_bad(&trace),
        Verdict::AllBad | Verdict::Depends | Verdict::Deadlock => Exit::Predicted,
        Verdict::Unknown(_) => Exit::Incomplete,
    })
}

/// Explains what the predictor finds, once for each place in the source.
fn findings(
    arguments: &ExplainArguments,
    trace: &Arc<Trace>,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    let options =
        Options { exact: arguments.exact, synthesis: !arguments.no_fix, ..finding_options() };
    let work = explain_each(&arguments.trace, trace, options, |finding, explained| {
        let wanted = arguments.finding.as_ref().is_none_or(|id| finding.id.starts_with(id));
        wanted && !explained.iter().any(|(other, _)| other.group == finding.group)
    })?;
    let Explained { prediction, findings: explained, unseen } = work;
    if let (Some(id), true, true) = (&arguments.finding, explained.is_empty(), unseen.is_empty()) {
        return Err(Failure::Input(in_file(&format!(
            "no finding `{id}`; `foretell predict` lists them"
        ))));
    }
    if let Some((_, first)) = explained.first() {
        draw(arguments, trace, &first.explanation)?;
    }
    if output.json() {
        let mut object = header(arguments, trace);
        object["explanations"] = explained
            .iter()
            .map(|(finding, found)| {
                json!({
                    "id": finding.id, "kind": finding.kind.name(),
                    "explanation": found.to_json(trace),
                })
            })
            .collect();
        if !unseen.is_empty() {
            object["unseen"] = unseen.clone().into();
        }
        output.object(object)?;
    } else {
        if explained.is_empty() && unseen.is_empty() {
            writeln!(output, "nothing is predicted, so there is nothing to explain")?;
        }
        for (number, (finding, found)) in explained.iter().enumerate() {
            if number > 0 {
                writeln!(output)?;
            }
            writeln!(output, "{} {}: {}", finding.kind, finding.id, found.sentence())?;
            for line in text::render(trace, &found.explanation).lines() {
                writeln!(output, "  {line}")?;
            }
        }
        for sentence in &unseen {
            writeln!(output, "not done: {sentence}")?;
        }
    }
    let is_predicted = |status: &Status| *status == Status::Predicted;
    let mut statuses = prediction.findings.iter().map(|finding| &finding.status);
    let undecided = !unseen.is_empty() || !statuses.clone().all(is_predicted);
    let predicted = !explained.is_empty() || !unseen.is_empty() && statuses.any(is_predicted);
    Ok(match (predicted, undecided) {
        (true, _) => Exit::Predicted,
        (false, true) => Exit::Incomplete,
        (false, false) => nothing_bad(trace),
    })
}

/// The time was over, or a signal came, before there was an explanation.
fn nothing_explained(
    arguments: &ExplainArguments,
    trace: &Trace,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let sentence = format!("the explanation: {}", stop::why().unwrap_or_default());
    if output.json() {
        let mut object = header(arguments, trace);
        object["unseen"] = json!([sentence]);
        output.object(object)?;
    } else {
        writeln!(output, "not done: {sentence}")?;
    }
    Ok(Exit::Incomplete)
}

fn nothing_bad(trace: &Trace) -> Exit {
    if trace.metadata.gaps.is_empty() { Exit::NothingFound } else { Exit::Incomplete }
}

fn header(arguments: &ExplainArguments, trace: &Trace) -> serde_json::Value {
    json!({
        "version": 1,
        "program": {"command": trace.metadata.command, "build_id": trace.metadata.build_id},
        "trace": {
            "file": arguments.trace.display().to_string(),
            "threads": trace.threads.len(),
            "events": trace.events.len(),
        },
    })
}

fn draw(
    arguments: &ExplainArguments,
    trace: &Trace,
    explanation: &Explanation,
) -> Result<(), Failure> {
    let Some(path) = &arguments.svg else { return Ok(()) };
    format::write_whole(path, |file| {
        file.write_all(picture::svg(trace, explanation).as_bytes())
            .map_err(|error| format::WriteError::Io { path: path.clone(), error })
    })
    .map_err(|error| Failure::Input(error.to_string()))
}
