//! An explanation as JSON: the `explanation` and `fix` fields of a finding.

use foretell_trace::{EventId, Trace};
use serde_json::{Value, json};

use crate::explain::{Explanation, Verdict};
use crate::formula::HbFormula;
use crate::synthesis::{Primitive, Region, Verification};
use crate::text::{Names, kind_name};

fn event(trace: &Trace, id: EventId) -> Value {
    let this = trace.event(id);
    let site = this.site.map(|site| &trace.sites[site.index()]);
    json!({
        "name": trace.event_name(id),
        "thread": trace.threads[this.thread.index()].name,
        "index": this.index,
        "file": site.map(|site| site.file.as_ref()).filter(|file| !file.is_empty()),
        "line": site.map(|site| site.line).filter(|&line| line > 0),
    })
}

fn formula(trace: &Trace, formula: &HbFormula) -> Value {
    let clauses: Vec<Vec<[String; 2]>> = formula
        .clauses()
        .iter()
        .map(|clause| {
            clause
                .iter()
                .map(|atom| [trace.event_name(atom.before), trace.event_name(atom.after)])
                .collect()
        })
        .collect();
    json!(clauses)
}

fn regions(trace: &Trace, regions: &[Region]) -> Value {
    regions
        .iter()
        .map(|region| json!({"first": event(trace, region.first), "last": event(trace, region.last)}))
        .collect()
}

fn primitive(trace: &Trace, names: &Names, primitive: &Primitive) -> Value {
    let text = names.primitive(primitive);
    match primitive {
        Primitive::Lock { regions: all } => {
            json!({"kind": "lock", "regions": regions(trace, all), "text": text})
        }
        Primitive::WaitNotify { waiter, notifier } => json!({
            "kind": "wait-notify", "waiter": event(trace, *waiter),
            "notifier": event(trace, *notifier), "text": text,
        }),
        Primitive::Barrier { events } => json!({
            "kind": "barrier", "text": text,
            "events": events.iter().map(|&id| event(trace, id)).collect::<Vec<_>>(),
        }),
        Primitive::SharedExclusiveLock { shared, exclusive } => json!({
            "kind": "shared-exclusive-lock", "shared": regions(trace, shared),
            "exclusive": regions(trace, exclusive), "text": text,
        }),
    }
}

/// The verdict as one word.
pub fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::AllGood => "all-good",
        Verdict::AllBad => "all-bad",
        Verdict::Depends => "depends",
        Verdict::Deadlock => "deadlock",
        Verdict::Infeasible => "infeasible",
        Verdict::Unknown(_) => "unknown",
    }
}

/// The whole explanation.
pub fn to_json(trace: &Trace, explanation: &Explanation) -> Value {
    let names = Names::new(trace, explanation);
    let reason = match &explanation.verdict {
        Verdict::Unknown(reason) => Some(reason.as_str()),
        _ => None,
    };
    let summaries: Vec<Value> = explanation
        .summaries
        .iter()
        .map(|summary| {
            let events = |ids: &[EventId]| -> Vec<Value> {
                ids.iter().map(|&id| event(trace, id)).collect()
            };
            json!({
                "kind": kind_name(summary.kind), "first": events(&summary.first),
                "second": events(&summary.second), "count": summary.count,
                "text": names.summary(summary),
            })
        })
        .collect();
    let fix = explanation.synthesis.as_ref().map(|synthesis| {
        let (verified, reason) = match &synthesis.verification {
            Verification::Verified => (true, None),
            Verification::Unverified(reason) => (false, Some(reason)),
        };
        let primitives: Vec<Value> =
            synthesis.primitives.iter().map(|one| primitive(trace, &names, one)).collect();
        json!({
            "verified": verified, "reason": reason, "primitives": primitives,
            "plans_tried": synthesis.plans_tried,
        })
    });
    let statistics = &explanation.statistics;
    let phases = &statistics.phases;
    json!({
        "verdict": verdict_name(&explanation.verdict),
        "reason": reason,
        "exact": explanation.exact,
        "bad": formula(trace, &explanation.bad),
        "good": formula(trace, &explanation.good),
        "patterns": explanation.by_line.len(),
        "summaries": summaries,
        "fix": fix,
        "witness": explanation.witness.as_ref().map(|witness| json!({
            "events": witness.events.iter().map(|&id| trace.event_name(id)).collect::<Vec<_>>(),
            "failing": event(trace, witness.failing),
            "region": witness.region,
        })),
        "deadlock": explanation.deadlock.as_ref().map(|events| {
            events.iter().map(|&id| event(trace, id)).collect::<Vec<_>>()
        }),
        "statistics": {
            "threads": statistics.threads, "events": statistics.events,
            "pi_functions": statistics.pi_functions, "pi_choices": statistics.pi_choices,
            "iterations": statistics.work.iterations, "questions": statistics.work.questions,
            "states": statistics.work.visited, "solver_calls": statistics.work.solver_calls,
            "seconds": {
                "build": phases.build.as_secs_f64(),
                "neighbourhood": phases.neighbourhood.as_secs_f64(),
                "summary": phases.summary.as_secs_f64(),
                "synthesis": phases.synthesis.as_secs_f64(),
            },
        },
    })
}
