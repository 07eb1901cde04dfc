//! Verification of C files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use foretell_guard::{Keep, Replacement, say};
use foretell_predict::progress::{Phase, Progress};
use foretell_report::shell_word;
use foretell_verify::certificate::{Assumption, Certificate, Property};
use foretell_verify::checker::{self, Answer};
use foretell_verify::compiled::{self, Forced, NotForced};
use foretell_verify::counterexample::Counterexample;
use foretell_verify::explore::search::{self, Report, Verdict, explore};
use foretell_verify::ir::{Module, clang};
use foretell_verify::witness;
use serde_json::json;

use crate::cli::{PropertyName, VerifyArguments};
use crate::commands::program::temporary;
use crate::commands::schedules;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Verifies a C file and prints.
pub fn run(arguments: &VerifyArguments, output: &mut Output) -> Result<Exit, Failure> {
    let compile = clang::Options { overflow: !arguments.no_overflow };
    let module = clang::compile(&arguments.program, compile)
        .map_err(|refusal| Failure::Input(refusal.to_string()))?;
    if !module.function("main").is_some_and(|id| module.functions[id as usize].is_defined()) {
        return Err(Failure::Input(format!(
            "{}: there is no function main; give a whole program in one file",
            arguments.program.display()
        )));
    }
    if let Some(path) = &arguments.check {
        return check(arguments, path, &module, output);
    }
    let report = search(arguments, &module);
    let forced = match &report.verdict {
        Verdict::Violated(found) => Some(force(arguments, found, compile)?),
        _ => None,
    };
    let exit = match (&report.verdict, &forced) {
        (Verdict::Proved(_), _) => Exit::NothingFound,
        (Verdict::Violated(_), Some(Ok(_))) => Exit::Confirmed,
        (Verdict::Violated(_), _) => Exit::Predicted,
        (Verdict::Unknown(_), _) => Exit::Incomplete,
    };
    if let (Some(path), Verdict::Proved(summary)) = (&arguments.proof, &report.verdict) {
        let (asked, assumed) = (properties(arguments), report.assumptions.clone());
        super::write(path, &Certificate::new(&module, asked, assumed, summary.print()).print())?;
    }
    if let Some(path) = &arguments.witness {
        write_witness(arguments, path, &report)?;
    }
    match output.json() {
        true => output.object(to_json(arguments, &report, forced.as_ref()))?,
        false => {
            write!(output, "{}", render(arguments, &report))?;
            match &forced {
                Some(Ok(kept)) => write!(output, "{}", kept.render())?,
                Some(Err(why)) => writeln!(output, "predicted, not confirmed: {why}")?,
                None => {}
            }
        }
    }
    Ok(exit)
}

fn search(arguments: &VerifyArguments, module: &Module) -> Report {
    let asked = |property| arguments.property.contains(&property);
    let options = search::Options {
        assertions: asked(PropertyName::Assertion),
        deadlocks: asked(PropertyName::Deadlock),
        states: arguments.states.unwrap_or(search::Options::default().states),
        ..search::Options::default()
    };
    let progress = Progress::default();
    progress.begin(Phase::Verifying, 0);
    let line = Line::show(&progress);
    let report = explore(module, &options);
    drop(line);
    report
}

/// Writes a witness for other tools; there is none of what is not known.
fn write_witness(arguments: &VerifyArguments, path: &Path, report: &Report) -> Result<(), Failure> {
    let shown = arguments.program.display().to_string();
    let source = std::fs::read(&arguments.program)
        .map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
    match &report.verdict {
        Verdict::Proved(summary) => {
            let text = witness::correctness(summary, &properties(arguments), &shown, &source);
            super::write(path, &text)
        }
        Verdict::Violated(found) => super::write(path, &witness::violation(found, &source)),
        Verdict::Unknown(_) => Ok(()),
    }
}

/// Checks a written proof; the explorer takes no part in it.
fn check(
    arguments: &VerifyArguments,
    path: &Path,
    module: &Module,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Input(format!("cannot read {}: {error}", path.display())))?;
    let wrong = |why: &str| Failure::Input(format!("{}: {why}", path.display()));
    let proof = Certificate::parse(&text).map_err(|why| wrong(&why))?;
    let (states, reason) = match checker::check(module, &proof, &properties(arguments)) {
        Answer::Holds(states) => (Some(states), None),
        Answer::Rejected(why) => return Err(wrong(&why)),
        Answer::NotChecked(why) => (None, Some(why)),
    };
    let named: Vec<&str> = proof.properties.iter().map(|property| property.name()).collect();
    let assumed: Vec<String> = proof.assumptions.iter().map(ToString::to_string).collect();
    if output.json() {
        output.object(json!({
            "version": 1,
            "program": {"command": [arguments.program.display().to_string()]},
            "verification": {
                "verdict": if states.is_some() { "proved" } else { "unknown" },
                "reason": reason,
                "engine": "checker",
                "properties": named,
                "assumptions": assumed,
                "predicates": [],
                "iterations": 0,
                "states": states.unwrap_or(0),
                "questions": 0,
                "execution": null,
                "forced": null,
            },
        }))?;
    } else {
        match (states, reason) {
            (Some(states), _) => {
                writeln!(output, "the proof holds: {states} states of an independent interpreter")?;
            }
            (_, reason) => writeln!(output, "not checked: {}", reason.unwrap_or_default())?,
        }
        write!(
            output,
            "  program: {}, compiled by {} for {}, SHA-256 of its IR {}\n{}",
            proof.program,
            proof.compiler,
            proof.target,
            proof.hash,
            conditions(&proof.properties, &proof.assumptions, proof.overflow)
        )?;
    }
    Ok(if states.is_some() { Exit::NothingFound } else { Exit::Incomplete })
}

/// Racing pairs of lines that are printed; a proof has all.
const RACES_SHOWN: usize = 3;

/// What was looked for, what was not, and what is assumed.
fn conditions(
    properties: &BTreeSet<Property>,
    assumptions: &BTreeSet<Assumption>,
    overflow: bool,
) -> String {
    let mut text = String::new();
    for property in [Property::Assertion, Property::Deadlock] {
        let line = match properties.contains(&property) {
            true => format!("  {}: {}\n", property.name(), property.definition(overflow)),
            false => format!("  not looked for: {}\n", property.name()),
        };
        text.push_str(&line);
    }
    let is_race =
        |assumption: &&Assumption| matches!(assumption, Assumption::SequentialConsistency(..));
    let races = assumptions.iter().filter(is_race);
    let more = races.clone().count().saturating_sub(RACES_SHOWN);
    for assumption in
        assumptions.iter().filter(|other| !is_race(other)).chain(races.take(RACES_SHOWN))
    {
        text.push_str(&format!("  assumed: {assumption}\n"));
    }
    if more > 0 {
        text.push_str(&format!("  assumed: the same of {more} more pairs of lines that race\n"));
    }
    text
}

/// A counterexample that happened, and where its files are.
struct Kept {
    forced: Forced,
    /// Schedule and program, unless they could not be written.
    files: Option<(PathBuf, PathBuf)>,
}

impl Kept {
    fn replay(&self) -> Option<String> {
        let word = |path: &Path| shell_word(&path.display().to_string());
        let (schedule, program) = self.files.as_ref()?;
        Some(format!("foretell replay {} -- {}", word(schedule), word(program)))
    }

    fn render(&self) -> String {
        let Forced { ended, runs, woken, .. } = &self.forced;
        let woken = match woken {
            true => " (a wait ended without a signal, as POSIX allows)",
            false => "",
        };
        let again = self.replay().map(|replay| format!("; again: {replay}"));
        format!(
            "confirmed: the compiled program does it, too{woken}: {ended}\n  forced in {runs} runs{}\n",
            again.unwrap_or_default()
        )
    }
}

/// Forces a counterexample on the compiled program and keeps what is needed to see it again.
fn force(
    arguments: &VerifyArguments,
    found: &Counterexample,
    options: clang::Options,
) -> Result<Result<Kept, NotForced>, Failure> {
    let folder = temporary()?;
    let source = &arguments.program;
    let stem = source.file_stem().unwrap_or(source.as_os_str());
    let kept = arguments.schedules.join(stem);
    let limit = Duration::from_secs(arguments.run_limit);
    let forced = match compiled::force(found, source, folder.path(), &kept, options, limit) {
        Ok(forced) => forced,
        Err(why) => return Ok(Err(why)),
    };
    let mut paths = BTreeMap::new();
    let id = stem.to_string_lossy();
    schedules::write(&arguments.schedules, [(&*id, forced.schedule.clone())], &mut paths);
    let files = [&forced.program, &forced.companion];
    let installed = files.into_iter().try_for_each(|file| install(file, &arguments.schedules));
    if let (Err(Failure::Input(why)), false) = (&installed, paths.is_empty()) {
        say!("foretell: the program of the counterexample cannot be kept: {why}");
    }
    // It has happened, whether it can be kept or not.
    let schedule = paths.remove(&*id).filter(|_| installed.is_ok());
    Ok(Ok(Kept { forced, files: schedule.map(|schedule| (schedule, kept)) }))
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

fn properties(arguments: &VerifyArguments) -> BTreeSet<Property> {
    let property = |name: &PropertyName| match name {
        PropertyName::Assertion => Property::Assertion,
        PropertyName::Deadlock => Property::Deadlock,
    };
    arguments.property.iter().map(property).collect()
}

fn property_names(arguments: &VerifyArguments) -> Vec<&'static str> {
    properties(arguments).into_iter().map(Property::name).collect()
}

fn render(arguments: &VerifyArguments, report: &Report) -> String {
    let mut text = match &report.verdict {
        Verdict::Proved(summary) => {
            let names = property_names(arguments).join(", ");
            let states = summary.states;
            let conditions =
                conditions(&properties(arguments), &report.assumptions, !arguments.no_overflow);
            format!(
                "proved: no execution violates a property ({names}); all {states} states were looked \
                 at\n{conditions}"
            )
        }
        Verdict::Violated(found) => format!("violated:\n{}", found.render()),
        Verdict::Unknown(why) => format!("unknown: {why}\n"),
    };
    text.push_str(&format!("{} states, {} steps\n", report.states, report.steps));
    text
}

fn to_json(
    arguments: &VerifyArguments,
    report: &Report,
    forced: Option<&Result<Kept, NotForced>>,
) -> serde_json::Value {
    let (verdict, reason) = match &report.verdict {
        Verdict::Proved(_) => ("proved", None),
        Verdict::Violated(_) => ("violated", None),
        Verdict::Unknown(why) => ("unknown", Some(why)),
    };
    let execution = match &report.verdict {
        Verdict::Violated(found) => {
            let steps = found
                .events
                .iter()
                .map(|event| json!({"thread": event.name, "line": event.line, "text": event.text}));
            let last = json!({"thread": found.name, "line": found.line, "text": found.violation});
            Some(steps.chain([last]).collect::<Vec<_>>())
        }
        _ => None,
    };
    let forced = forced.map(|forced| match forced {
        Ok(kept) => {
            let mut object = json!({
                "status": "confirmed",
                "reason": null,
                "ended": kept.forced.ended,
                "runs": kept.forced.runs,
            });
            if let (Some((schedule, _)), Some(replay)) = (&kept.files, kept.replay()) {
                object["schedule"] = schedule.display().to_string().into();
                object["replay"] = replay.into();
            }
            object
        }
        Err(why) => json!({"status": "predicted", "reason": why.to_string()}),
    });
    json!({
        "version": 1,
        "program": {"command": [arguments.program.display().to_string()]},
        "verification": {
            "verdict": verdict,
            "reason": reason,
            "engine": "states",
            "properties": property_names(arguments),
            "assumptions": report.assumptions.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "predicates": [],
            "iterations": 0,
            "states": report.states,
            "questions": 0,
            "execution": execution,
            "forced": forced,
        },
    })
}
