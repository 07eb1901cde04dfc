//! The explanation of a finding as a report has it.

use foretell_neighbourhood::text::Names;
use foretell_neighbourhood::{FindingExplanation, Verification, explain_finding, finding_options};
use foretell_predict::Finding;
use foretell_report::report::{Edge, EventName, Explanation, Fix, Formula};
use foretell_trace::{EventId, Trace};

/// Why the finding goes wrong, and what repairs it; nothing where that is not known.
pub fn explained(trace: &Trace, finding: &Finding) -> (Option<Explanation>, Option<Fix>) {
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

fn fix(trace: &Trace, found: &FindingExplanation, names: &Names<'_>) -> Option<Fix> {
    let synthesis = found.explanation.synthesis.as_ref()?;
    let steps: Vec<String> =
        synthesis.primitives.iter().map(|primitive| names.primitive(primitive)).collect();
    let (verified, mut reason) = match &synthesis.verification {
        Verification::Verified => (true, None),
        Verification::Unverified(why) => (false, Some(why.clone())),
    };
    let mut diff = None;
    if verified {
        // only a patch that does all of it
        let patch = foretell_patch::patch(trace, &synthesis.primitives, &Default::default());
        match patch.refused.first() {
            Some((_, why)) => reason = Some(format!("no diff: {why}")),
            None if patch.files.is_empty() => {}
            None => diff = Some(patch.files.iter().map(|file| file.diff()).collect()),
        }
    }
    (!steps.is_empty()).then(|| Fix { text: steps.join("; "), diff, verified, reason })
}
