//! `foretell verify`: a proof for all executions, or a counterexample.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use foretell_guard::{Keep, Replacement};
use foretell_predict::progress::{Phase, Progress};
use foretell_report::shell_word;
use foretell_trace::format;
use foretell_verify::compiled::{self, Forced, NotForced};
use foretell_verify::proof::Proof;
use foretell_verify::run::Execution;
use foretell_verify::{
    Budget, Options, Program, Refinement, Report, Trouble, Verdict, c, text, verify,
};
use serde_json::json;

use crate::cli::{AbstractionName, RefinementName, VerifyArguments};
use crate::commands::program::temporary;
use crate::commands::schedules;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Verifies and prints.
pub fn run(arguments: &VerifyArguments, output: &mut Output) -> Result<Exit, Failure> {
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
            states: arguments.states,
            questions: arguments.questions,
        },
    };
    let progress = Progress::default();
    progress.begin(Phase::Verifying, 0);
    let line = Line::show(&progress);
    let report = verify(&program, &options).map_err(trouble)?;
    drop(line);
    let compiled = match &report.verdict {
        Verdict::Violated(execution) if is_c(arguments) => {
            Some(force(arguments, &program, execution)?)
        }
        _ => None,
    };
    let mut exit = match (&report.verdict, &compiled) {
        (Verdict::Proved(_), _) => Exit::NothingFound,
        // guarded commands are run by the interpreter: there is nothing else that could run them
        (Verdict::Violated(_), None | Some(Ok(_))) => Exit::Confirmed,
        (Verdict::Violated(_), Some(Err(_))) => Exit::Predicted,
        (Verdict::Unknown(_), _) => Exit::Incomplete,
    };
    let mut checked = None;
    if let Verdict::Proved(proof) = &report.verdict {
        // what is checked is the text that could be written, not our memory of it
        let result = Proof::parse(&proof.print()).and_then(|proof| proof.check(&program));
        if result.is_err() {
            exit = Exit::Incomplete;
        }
        if let (Some(path), Ok(())) = (&arguments.proof, &result) {
            format::write_whole(path, |file| {
                file.write_all(proof.print().as_bytes())
                    .map_err(|error| format::WriteError::Io { path: path.clone(), error })
            })
            .map_err(|error| Failure::Input(error.to_string()))?;
        }
        checked = Some(result);
    }
    let refused = checked.and_then(Result::err).map(|error| error.to_string());
    match output.json() {
        true => output.object(to_json(&program, &report, refused.as_deref(), compiled.as_ref()))?,
        false => {
            write!(output, "{}", render(&program, &report, refused.as_deref()))?;
            match &compiled {
                Some(Ok(kept)) => write!(output, "{}", kept.render())?,
                Some(Err(why)) => writeln!(output, "predicted, not confirmed: {why}")?,
                None => {}
            }
        }
    }
    Ok(exit)
}

/// A counterexample that happened, and where its files are.
struct Kept {
    forced: Forced,
    schedule: PathBuf,
    program: PathBuf,
}

impl Kept {
    fn replay(&self) -> String {
        let word = |path: &Path| shell_word(&path.display().to_string());
        format!("foretell replay {} -- {}", word(&self.schedule), word(&self.program))
    }

    fn render(&self) -> String {
        let Forced { ended, runs, woken, .. } = &self.forced;
        let woken = match woken {
            true => " (a wait ended without a signal, as POSIX allows)",
            false => "",
        };
        format!(
            "confirmed: the compiled program did it, too{woken}: {ended}\n  forced in {runs} runs; \
             again: {}\n",
            self.replay()
        )
    }
}

/// Forces a counterexample on the compiled program and keeps what is needed to see it again.
fn force(
    arguments: &VerifyArguments,
    program: &Program,
    execution: &Execution,
) -> Result<Result<Kept, NotForced>, Failure> {
    let folder = temporary()?;
    let source = &arguments.program;
    let stem = source.file_stem().unwrap_or(source.as_os_str());
    let kept = arguments.schedules.join(stem);
    let forced = match compiled::force(program, execution, source, folder.path(), &kept) {
        Ok(forced) => forced,
        Err(why) => return Ok(Err(why)),
    };
    let mut paths = BTreeMap::new();
    let id = stem.to_string_lossy();
    schedules::write(&arguments.schedules, [(&*id, forced.schedule.clone())], &mut paths)?;
    for file in [&forced.program, &forced.companion] {
        install(file, &arguments.schedules)?;
    }
    let schedule = paths.remove(&*id).unwrap_or_default();
    Ok(Ok(Kept { forced, schedule, program: kept }))
}

/// Copies a file into a folder; it is there as a whole or not at all.
fn install(file: &Path, folder: &Path) -> Result<(), Failure> {
    let name = file.file_name().unwrap_or_default();
    let place = folder.join(name);
    let copy = || {
        let replacement = Replacement::new(&place, Keep::Mode)?;
        io::copy(&mut File::open(file)?, &mut replacement.file())?;
        replacement.file().set_permissions(file.metadata()?.permissions())?;
        replacement.complete()
    };
    copy().map_err(|error: io::Error| Failure::Input(format!("{}: {error}", place.display())))
}

fn trouble(trouble: Trouble) -> Failure {
    Failure::Input(trouble.to_string())
}

fn read(arguments: &VerifyArguments) -> Result<Program, Failure> {
    let path = &arguments.program;
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
    let options = c::Options { overflow: !arguments.no_overflow };
    let program = match is_c(arguments) {
        true => c::parse(&shown, &text, options),
        false => text::parse(&shown, &text),
    };
    program.map_err(|error| Failure::Input(error.to_string()))
}

fn is_c(arguments: &VerifyArguments) -> bool {
    arguments.program.extension().is_some_and(|ending| ending == "c")
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

fn to_json(
    program: &Program,
    report: &Report,
    refused: Option<&str>,
    compiled: Option<&Result<Kept, NotForced>>,
) -> serde_json::Value {
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
    let forced = compiled.map(|compiled| match compiled {
        Ok(kept) => json!({
            "status": "confirmed",
            "reason": null,
            "ended": kept.forced.ended,
            "runs": kept.forced.runs,
            "schedule": kept.schedule.display().to_string(),
            "replay": kept.replay(),
        }),
        Err(why) => json!({"status": "predicted", "reason": why.to_string()}),
    });
    json!({
        "version": 1,
        "program": {"command": [program.file]},
        "verification": {
            "verdict": verdict,
            "reason": reason,
            "predicates": report.predicates,
            "iterations": report.statistics.iterations,
            "states": report.statistics.states,
            "questions": report.statistics.questions,
            "execution": execution,
            "forced": forced,
        },
    })
}
