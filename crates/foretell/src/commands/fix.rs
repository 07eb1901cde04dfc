//! `foretell fix`: a patch that adds the synchronisation.

use foretell_guard::{Keep, replace_file, say};
use foretell_neighbourhood::text::Names;
use foretell_neighbourhood::{Options, Primitive, Verification, finding_options};
use foretell_patch::{Patch, Sources, patch, patched_since};
use foretell_predict::Status;
use serde_json::json;

use crate::cli::FixArguments;
use crate::commands::explaining::{self, Explained, explain_each};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Finds, explains, patches.
pub fn run(arguments: &FixArguments, output: &mut Output) -> Result<Exit, Failure> {
    explaining::come_to_a_close(arguments.time_limit);
    let trace = explaining::read(&arguments.trace)?;
    let wanted = |id: &str| arguments.finding.as_ref().is_none_or(|wanted| id.starts_with(wanted));
    let options = Options { synthesis: true, ..finding_options() };
    let work = explain_each(&arguments.trace, &trace, options, |finding, _| wanted(&finding.id))?;
    let Explained { prediction, findings, unseen } = work;
    let found = prediction
        .findings
        .iter()
        .any(|finding| finding.status == Status::Predicted && wanted(&finding.id));
    let mut primitives: Vec<Primitive> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for (_, explained) in &findings {
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
            _ => words.push(explained.sentence()),
        }
    }
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
    if arguments.apply && !unseen.is_empty() {
        say!("foretell: no file was changed, because the patch may not be complete");
    } else if arguments.apply {
        for file in &patch.files {
            replace_file(&file.path, file.new.as_bytes(), Keep::ModeAndOwner).map_err(|error| {
                Failure::Input(format!("cannot write {}: {error}", file.path.display()))
            })?;
            say!("foretell: patched {}", file.path.display());
        }
    }
    let diff: String = patch.files.iter().map(|file| file.diff()).collect();
    if output.json() {
        let mut object = json!({
            "version": 1,
            "trace": {
                "file": arguments.trace.display().to_string(),
                "threads": trace.threads.len(),
                "events": trace.events.len(),
            },
            "fix": {"diff": diff, "by_hand": words, "primitives": told, "applied": again},
        });
        if !unseen.is_empty() {
            object["unseen"] = unseen.clone().into();
        }
        output.object(object)?;
    } else {
        output.document(&diff);
        for sentence in &again {
            say!("foretell: {sentence}");
        }
        for sentence in &words {
            say!("foretell: by hand: {sentence}");
        }
        for sentence in &unseen {
            say!("foretell: not done: {sentence}");
        }
        if !found && unseen.is_empty() {
            say!("foretell: nothing is predicted, so there is nothing to fix");
        }
    }
    Ok(match (found, trace.metadata.gaps.is_empty() && unseen.is_empty()) {
        (true, _) => Exit::Predicted,
        (false, true) => Exit::NothingFound,
        (false, false) => Exit::Incomplete,
    })
}
