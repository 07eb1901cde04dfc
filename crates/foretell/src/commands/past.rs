//! A finding past the recorded path, told by the run that went wrong: no prediction is about it, but
//! the run has its own events, a turn that was decisive, and mostly a block that it tore apart.

use foretell_force::session::{Past, Tested};
use foretell_force::torn::torn_block;
use foretell_neighbourhood::Primitive;
use foretell_predict::finding::access_info;
use foretell_predict::{Finding, WitnessSchedule};
use foretell_report::report::Explanation;
use foretell_report::source::Sources;
use foretell_trace::{EventId, Op, Trace};

use crate::commands::explained::{Explained, Repair, explained};

/// The finding with the events of its own run in the order in which they happened; `None` where the
/// run did not take the steps that the finding is about.
pub fn in_its_own_run(tested: &Tested) -> Option<(&Trace, Finding)> {
    let past = tested.past.as_ref()?;
    if past.accesses.len() != tested.finding.accesses.len() {
        return None;
    }
    let trace = &past.trace;
    let mut events = past.accesses.clone();
    let failed = |event: &&EventId| matches!(trace.event(**event).op, Op::Assert(condition) if !condition.outcome);
    let all: Vec<EventId> = (0..trace.events.len()).map(EventId::from).collect();
    let (first, second) = past.switch.unzip();
    for event in first.into_iter().chain(second).chain(all.iter().rev().find(failed).copied()) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let thread = |event: EventId| trace.event(event).thread;
    let switches = all.windows(2).filter(|pair| thread(pair[0]) != thread(pair[1])).count();
    let finding = Finding {
        accesses: events.into_iter().map(|event| access_info(trace, event)).collect(),
        schedule: Some(WitnessSchedule {
            recorded: 0,
            order: all,
            next: Vec::new(),
            context_switches: switches,
        }),
        ..tested.finding.clone()
    };
    Some((trace, finding))
}

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
