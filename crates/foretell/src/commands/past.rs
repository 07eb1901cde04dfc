//! A finding past the recorded path, told by the run that went wrong: no prediction is about it, but
//! the run has its own events, a turn that was decisive, and mostly a block that it tore apart.

use foretell_force::session::Past;
use foretell_force::torn::torn_block;
use foretell_neighbourhood::Primitive;
use foretell_predict::finding::access_info;
use foretell_report::report::Explanation;
use foretell_report::source::Sources;
use foretell_trace::{EventId, Trace};

use crate::commands::explained::{Explained, Repair, explained};

/// Which turn was decisive and which block is torn, and what repairs that.
pub fn explained_by_its_run(past: &Past) -> Explained {
    let trace = &past.trace;
    let mut sentences = Vec::new();
    if let Some((first, second)) = past.switch {
        sentences.push(format!(
            "{} came before {}; in a run that was forced up to the turn before, it was the other \
             way round and nothing went wrong",
            told(trace, first),
            told(trace, second)
        ));
    }
    let torn = past.accesses.first().and_then(|&look| torn_block(trace, look));
    let block = torn.as_ref().map(|torn| explained(trace, torn)).unwrap_or_default();
    // With any repair this path cannot be taken any more, so that nothing can be shown in its trace;
    // and what makes one thread wait for the other repairs this run only.
    let locks = |repair: &Repair| repair.primitives.iter().all(Primitive::is_lock);
    let mut repair = block.repair.filter(locks);
    if let Some(Repair { fix, .. }) = &mut repair
        && fix.reason.is_some()
    {
        fix.reason = Some("it makes this path impossible; test again with it".to_owned());
    }
    let formula = block.explanation.and_then(|explanation| explanation.formula);
    sentences.push(match (formula, block.reasons.first()) {
        (Some(_), Some(reason)) => reason.clone(),
        _ if torn.is_some() => "what was seen was no longer true when it was acted on".to_owned(),
        _ => "which block has to be atomic is not to be seen: the run does not show a thread that \
              looks and acts with another's change in between"
            .to_owned(),
    });
    sentences.extend(match (&torn, &repair) {
        (_, Some(_)) => None,
        (Some(_), None) => {
            Some("make the look and the act one atomic step, in every thread".into())
        }
        (None, None) => Some("a fix is not suggested".to_owned()),
    });
    let explanation = Explanation { text: sentences.join("; "), formula: None, edge: None };
    Explained { explanation: Some(explanation), reasons: sentences, repair }
}

/// `write by worker#1 of `pending` at queue.c:39`.
fn told(trace: &Trace, event: EventId) -> String {
    let info = access_info(trace, event);
    let thread = &trace.threads[info.thread.index()].name;
    let object = info.variable.map(|name| format!(" of `{name}`")).unwrap_or_default();
    let site = info.site.map(|site| &trace.sites[site.index()]).filter(|site| site.line > 0);
    let sources = Sources::new();
    let place = site.map(|site| format!(" at {}:{}", sources.spelling(&site.file), site.line));
    let place = place.unwrap_or_default();
    format!("{} by {thread}{object}{place}", info.op)
}
