//! Verification of guarded commands. Nothing is compiled: the interpreter's word counts.

use std::io::Write;

use foretell_predict::progress::{Phase, Progress};
use foretell_verify::proof::Proof;
use foretell_verify::{
    Budget, Options, Program, Refinement, Report, Trouble, Verdict, text, verify,
};
use serde_json::json;

use crate::cli::{AbstractionName, PropertyName, RefinementName, VerifyArguments};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Verifies and prints.
pub fn run(arguments: &VerifyArguments, output: &mut Output) -> Result<Exit, Failure> {
    if arguments.property != [PropertyName::Assertion] {
        return Err(Failure::Input("guarded commands have the property assertion only".into()));
    }
    let program = read(arguments)?;
    if let Some(path) = &arguments.check {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))?;
        let in_file = |error| Failure::Input(format!("{}: {error}", path.display()));
        let proof = Proof::parse(&text).map_err(in_file)?;
        proof.check(&program).map_err(in_file)?;
        writeln!(output, "the proof holds: {} states", proof.states.len())?;
        return Ok(Exit::NothingFound);
    }
    let options = Options {
        refinement: match arguments.refine {
            RefinementName::Trace => Refinement::Trace,
            RefinementName::Neighbourhood => Refinement::Neighbourhood,
        },
        boolean: arguments.abstraction == AbstractionName::Boolean,
        reduction: !arguments.no_reduction,
        budget: Budget {
            iterations: arguments.iterations,
            states: arguments.states.unwrap_or(Budget::default().states),
            questions: arguments.questions,
        },
    };
    let progress = Progress::default();
    progress.begin(Phase::Verifying, 0);
    let line = Line::show(&progress);
    let report = verify(&program, &options).map_err(trouble)?;
    drop(line);
    let mut exit = match &report.verdict {
        Verdict::Proved(_) => Exit::NothingFound,
        // run by the interpreter: there is nothing else that could run guarded commands
        Verdict::Violated(_) => Exit::Confirmed,
        Verdict::Unknown(_) => Exit::Incomplete,
    };
    let mut checked = None;
    if let Verdict::Proved(proof) = &report.verdict {
        // what is checked is the text that could be written, not our memory of it
        let result = Proof::parse(&proof.print()).and_then(|proof| proof.check(&program));
        if result.is_err() {
            exit = Exit::Incomplete;
        }
        if let (Some(path), Ok(())) = (&arguments.proof, &result) {
            super::write(path, &proof.print())?;
        }
        checked = Some(result);
    }
    let refused = checked.and_then(Result::err).map(|error| error.to_string());
    match output.json() {
        true => output.object(to_json(&program, &report, refused.as_deref()))?,
        false => write!(output, "{}", render(&program, &report, refused.as_deref()))?,
    }
    Ok(exit)
}

fn trouble(trouble: Trouble) -> Failure {
    Failure::Input(trouble.to_string())
}

fn read(arguments: &VerifyArguments) -> Result<Program, Failure> {
    let path = &arguments.program;
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
    text::parse(&shown, &text).map_err(|error| Failure::Input(error.to_string()))
}

fn render(program: &Program, report: &Report, refused: Option<&str>) -> String {
    let mut text = match (&report.verdict, refused) {
        (Verdict::Proved(proof), None) => format!(
            "proved: no execution violates a property; deadlocks were not looked for\nthe proof was \
             checked again: {} predicates, {} states\n",
            proof.predicates.len(),
            proof.states.len()
        ),
        (Verdict::Proved(_), Some(why)) => {
            format!("unknown: the proof was refused by its check: {why}\n")
        }
        (Verdict::Violated(execution), _) => {
            format!(
                "violated: this execution was run by the interpreter\n{}",
                execution.render(program)
            )
        }
        (Verdict::Unknown(why), _) => format!("unknown: {why}\n"),
    };
    if matches!(report.verdict, Verdict::Unknown(_)) && !report.predicates.is_empty() {
        text.push_str("what was learned: the abstraction by these predicates is not enough\n");
    }
    for predicate in &report.predicates {
        text.push_str(&format!("  predicate {predicate}\n"));
    }
    let cost = &report.statistics;
    text.push_str(&format!(
        "{} iterations, {} traces sampled, {} questions to the solver, {:.2} s\n",
        cost.iterations,
        cost.samples,
        cost.questions,
        (cost.search + cost.refinement).as_secs_f64()
    ));
    text
}

fn to_json(program: &Program, report: &Report, refused: Option<&str>) -> serde_json::Value {
    let (verdict, reason) = match (&report.verdict, refused) {
        (Verdict::Proved(_), None) => ("proved", None),
        (Verdict::Proved(_), Some(why)) => ("unknown", Some(why.to_string())),
        (Verdict::Violated(_), _) => ("violated", None),
        (Verdict::Unknown(why), _) => ("unknown", Some(why.clone())),
    };
    let execution = match &report.verdict {
        Verdict::Violated(execution) => {
            let steps = execution.steps.iter().map(|step| {
                let edge = &program.edges[step.edge];
                json!({
                    "thread": program.threads[edge.thread].name,
                    "line": edge.place.line,
                    "text": edge.text,
                })
            });
            Some(steps.collect::<Vec<_>>())
        }
        _ => None,
    };
    json!({
        "version": 1,
        "program": {"command": [program.file]},
        "verification": {
            "verdict": verdict,
            "reason": reason,
            "engine": "predicates",
            "properties": ["assertion"],
            "assumptions": [],
            "predicates": report.predicates,
            "iterations": report.statistics.iterations,
            "states": report.statistics.states,
            "questions": report.statistics.questions,
            "execution": execution,
            "forced": null,
        },
    })
}
