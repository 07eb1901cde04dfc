//! The explanation of a finding as a report has it.

use foretell_neighbourhood::text::Names;
use foretell_neighbourhood::{FindingExplanation, Verification, explain_finding, finding_options};
use foretell_patch::PatchedFile;
use foretell_predict::Finding;
use foretell_report::report::{Edge, EventName, Explanation, Fix, Formula};
use foretell_trace::{EventId, Trace};

/// What repairs a finding, and the files that it changes.
pub struct Repair {
    /// As the report has it.
    pub fix: Fix,
    /// Empty where there is no patch.
    pub files: Vec<PatchedFile>,
}

/// Why the finding goes wrong, and what repairs it; nothing where that is not known.
pub fn explained(trace: &Trace, finding: &Finding) -> (Option<Explanation>, Option<Repair>) {
    let Ok(found) = explain_finding(trace, finding, &finding_options()) else {
        return (None, None);
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
    let explanation = Explanation { text: found.sentence.clone(), formula, edge };
    (Some(explanation), fix(trace, &found, &names))
}

fn fix(trace: &Trace, found: &FindingExplanation, names: &Names<'_>) -> Option<Repair> {
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
    (!steps.is_empty()).then_some(Repair { fix, files })
}
