//! The explanation of a finding as a report has it.

use foretell_neighbourhood::text::Names;
use foretell_neighbourhood::{
    FindingExplanation, Primitive, Verification, explain_finding, finding_options,
};
use foretell_patch::PatchedFile;
use foretell_predict::Finding;
use foretell_report::report::{Edge, EventName, Explanation, Fix, Formula};
use foretell_trace::{EventId, Trace};

/// Why a finding goes wrong, and what repairs it.
#[derive(Default)]
pub struct Explained {
    /// As the report has it.
    pub explanation: Option<Explanation>,
    /// What must not be, without what to do about it.
    pub reasons: Vec<String>,
    /// What repairs it, if that is known.
    pub repair: Option<Repair>,
}

/// What repairs a finding, and the files that it changes.
pub struct Repair {
    /// What is added.
    pub primitives: Vec<Primitive>,
    /// As the report has it.
    pub fix: Fix,
    /// Empty where there is no patch.
    pub files: Vec<PatchedFile>,
}

/// Explains a finding; nothing where no explanation is known.
pub fn explained(trace: &Trace, finding: &Finding) -> Explained {
    let Ok(found) = explain_finding(trace, finding, &finding_options()) else {
        return Explained::default();
    };
    let names = Names::new(trace, &found.explanation);
    let name = |event: EventId| {
        let site = trace.event(event).site.map(|site| &trace.sites[site.index()]);
        EventName {
            name: names.event(event),
            thread: names.thread(event).to_owned(),
            event: Some(event.0),
            file: site.map(|site| site.file.to_string()).filter(|file| !file.is_empty()),
            line: site.map(|site| site.line).filter(|&line| line > 0),
        }
    };
    let bad = &found.explanation.bad;
    let clauses: Vec<Vec<Edge>> = bad
        .clauses()
        .iter()
        .map(|clause| {
            let edge = |atom: &foretell_neighbourhood::Atom| Edge {
                before: name(atom.before),
                after: name(atom.after),
            };
            clause.iter().map(edge).collect()
        })
        .collect();
    let edge = match &*clauses {
        [clause] if clause.len() == 1 => clause.first().cloned(),
        _ => None,
    };
    let formula = (!clauses.is_empty())
        .then(|| Formula { text: bad.to_text(|event| names.event(event)), clauses });
    let explanation = Explanation { text: found.sentence(), formula, edge };
    let repair = repair(trace, &found, &names);
    Explained { explanation: Some(explanation), reasons: found.reasons, repair }
}

fn repair(trace: &Trace, found: &FindingExplanation, names: &Names<'_>) -> Option<Repair> {
    let synthesis = found.explanation.synthesis.as_ref()?;
    let steps: Vec<String> =
        synthesis.primitives.iter().map(|primitive| names.primitive(primitive)).collect();
    let (on_trace, mut reason) = match &synthesis.verification {
        Verification::Verified => (true, None),
        Verification::Unverified(why) => (false, Some(why.clone())),
    };
    let (mut diff, mut files) = (None, Vec::new());
    if on_trace {
        // only a patch that does all of it
        let patch = foretell_patch::patch(trace, &synthesis.primitives, &Default::default());
        match patch.refused.first() {
            Some((_, why)) => reason = Some(format!("no diff: {why}")),
            None if patch.files.is_empty() => {}
            None => {
                diff = Some(patch.files.iter().map(|file| file.diff()).collect());
                files = patch.files;
            }
        }
    }
    let fix = Fix { text: steps.join("; "), diff, verified: false, on_trace, reason };
    let primitives = synthesis.primitives.clone();
    (!steps.is_empty()).then_some(Repair { primitives, fix, files })
}
