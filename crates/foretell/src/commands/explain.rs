//! `foretell explain`: why, and what to add.
//!
//! A file that says what has to hold (CTRC, assertions of the text format without a recorded order)
//! is explained as a whole. For a recorded run everything that the predictor finds is explained.

use std::io::Write;

use foretell_neighbourhood::{
    Explanation, FindingExplanation, Options, Verdict, explain, explain_finding, finding_options,
    json, picture, text,
};
use foretell_predict::progress::Phase;
use foretell_predict::{Finding, Status, predict};
use foretell_trace::validate::validate;
use foretell_trace::{Trace, format};
use serde_json::json;

use crate::cli::ExplainArguments;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Explains and prints.
pub fn run(arguments: &ExplainArguments, output: &mut Output) -> Result<Exit, Failure> {
    let mut trace = foretell_record::read(&arguments.trace)?;
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    if let Some(fault) = validate(&trace).first() {
        return Err(Failure::Input(in_file(fault)));
    }
    trace.name_threads_by_function();
    if trace.metadata.observed_order {
        return findings(arguments, &trace, output);
    }
    let options =
        Options { exact: arguments.exact, synthesis: !arguments.no_fix, ..Options::default() };
    let explanation = explain(&trace, &options).map_err(|error| Failure::Input(in_file(&error)))?;
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
    trace: &Trace,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    let asked = foretell_predict::Options::default();
    let line = Line::show(&asked.progress);
    let prediction = predict(trace, &asked).map_err(|error| Failure::Input(in_file(&error)))?;
    asked.progress.begin(Phase::Explaining, prediction.findings.len());
    let options =
        Options { exact: arguments.exact, synthesis: !arguments.no_fix, ..finding_options() };
    let mut explained: Vec<(&Finding, FindingExplanation)> = Vec::new();
    for finding in &prediction.findings {
        asked.progress.advance();
        let wanted = arguments.finding.as_ref().is_none_or(|id| finding.id.starts_with(id));
        let told = explained.iter().any(|(other, _)| other.group == finding.group);
        if finding.status == Status::Predicted && wanted && !told {
            let found = explain_finding(trace, finding, &options)
                .map_err(|error| Failure::Input(in_file(&error)))?;
            explained.push((finding, found));
        }
    }
    drop(line);
    if let (Some(id), true) = (&arguments.finding, explained.is_empty()) {
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
        output.object(object)?;
    } else {
        if explained.is_empty() {
            writeln!(output, "nothing is predicted, so there is nothing to explain")?;
        }
        for (number, (finding, found)) in explained.iter().enumerate() {
            if number > 0 {
                writeln!(output)?;
            }
            writeln!(output, "{} {}: {}", finding.kind, finding.id, found.sentence)?;
            for line in text::render(trace, &found.explanation).lines() {
                writeln!(output, "  {line}")?;
            }
        }
    }
    let undecided = prediction.findings.iter().any(|found| found.status != Status::Predicted);
    Ok(match (explained.is_empty(), undecided) {
        (false, _) => Exit::Predicted,
        (true, true) => Exit::Incomplete,
        (true, false) => nothing_bad(trace),
    })
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
