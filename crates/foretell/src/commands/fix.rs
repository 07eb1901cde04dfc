//! `foretell fix`: a patch that adds the synchronisation.

use foretell_guard::{Keep, replace_file, say};
use foretell_neighbourhood::{
    Options, Primitive, Verification, explain_finding, finding_options, text::Names,
};
use foretell_patch::{Patch, Sources, patch, patched_since};
use foretell_predict::progress::Phase;
use foretell_predict::{Status, predict};
use foretell_trace::validate::validate;
use serde_json::json;

use crate::cli::FixArguments;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Finds, explains, patches.
pub fn run(arguments: &FixArguments, output: &mut Output) -> Result<Exit, Failure> {
    let mut trace = foretell_record::read(&arguments.trace)?;
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    if let Some(fault) = validate(&trace).first() {
        return Err(Failure::Input(in_file(fault)));
    }
    trace.name_threads_by_function();
    let asked = foretell_predict::Options::default();
    let line = Line::show(&asked.progress);
    let prediction = predict(&trace, &asked).map_err(|error| Failure::Input(in_file(&error)))?;
    asked.progress.begin(Phase::Explaining, prediction.findings.len());
    let options = Options { synthesis: true, ..finding_options() };
    let mut primitives: Vec<Primitive> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut found = false;
    for finding in &prediction.findings {
        asked.progress.advance();
        let wanted = arguments.finding.as_ref().is_none_or(|id| finding.id.starts_with(id));
        if finding.status != Status::Predicted || !wanted {
            continue;
        }
        found = true;
        let explained = explain_finding(&trace, finding, &options)
            .map_err(|error| Failure::Input(in_file(&error)))?;
        let explanation = &explained.explanation;
        match &explanation.synthesis {
            Some(synthesis) if synthesis.verification == Verification::Verified => {
                let names = Names::new(&trace, explanation);
                for primitive in &synthesis.primitives {
                    if !primitives.contains(primitive) {
                        told.push(names.primitive(primitive));
                        primitives.push(primitive.clone());
                    }
                }
            }
            _ => words.push(explained.sentence.clone()),
        }
    }
    drop(line);
    let sources = Sources { directories: arguments.source.clone() };
    let patched = patched_since(&trace, &sources);
    let patch = match patched.is_empty() {
        true => patch(&trace, &primitives, &sources),
        false => Patch::default(),
    };
    let again: Vec<String> = patched
        .iter()
        .map(|file| {
            format!(
                "the patch is already applied to {}; build and record again to see what is left",
                file.display()
            )
        })
        .collect();
    if !again.is_empty() {
        words.clear();
    }
    words.extend(
        patch
            .refused
            .iter()
            .map(|(number, reason)| format!("{} (not in the patch: {reason})", told[*number])),
    );
    words.dedup();
    if arguments.apply {
        for file in &patch.files {
            replace_file(&file.path, file.new.as_bytes(), Keep::ModeAndOwner).map_err(|error| {
                Failure::Input(format!("cannot write {}: {error}", file.path.display()))
            })?;
            say!("foretell: patched {}", file.path.display());
        }
    }
    let diff: String = patch.files.iter().map(|file| file.diff()).collect();
    if output.json() {
        output.object(json!({
            "version": 1,
            "trace": {
                "file": arguments.trace.display().to_string(),
                "threads": trace.threads.len(),
                "events": trace.events.len(),
            },
            "fix": {"diff": diff, "by_hand": words, "primitives": told, "applied": again},
        }))?;
    } else {
        output.document(&diff);
        for sentence in &again {
            say!("foretell: {sentence}");
        }
        for sentence in &words {
            say!("foretell: by hand: {sentence}");
        }
        if !found {
            say!("foretell: nothing is predicted, so there is nothing to fix");
        }
    }
    Ok(match (found, trace.metadata.gaps.is_empty()) {
        (true, _) => Exit::Predicted,
        (false, true) => Exit::NothingFound,
        (false, false) => Exit::Incomplete,
    })
}
