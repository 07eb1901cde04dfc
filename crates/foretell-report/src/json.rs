//! The JSON contract, version 1; the schema stands in `schema/result-1.schema.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use foretell_predict::divergence::shown;
use foretell_predict::finding::access_info;
use foretell_predict::{
    AccessInfo, Divergence, Feeds, Finding, Prediction, Status, WitnessSchedule,
};
use foretell_trace::Trace;
use serde_json::{Value, json};

/// The object that `foretell predict` prints. `schedules` are the files that were written, by the
/// finding's id.
pub fn prediction(
    trace: &Trace,
    file: &str,
    prediction: &Prediction,
    schedules: &BTreeMap<String, PathBuf>,
) -> Value {
    let findings: Vec<Value> =
        prediction.findings.iter().map(|found| finding(trace, found, schedules)).collect();
    let statistics = &prediction.statistics;
    let properties: Vec<Value> = prediction
        .properties
        .iter()
        .map(|property| {
            json!({
                "kind": property.kind.name(),
                "questions": property.questions,
                "predicted": property.predicted,
                "impossible": property.impossible,
                "unknown": property.unknown,
                "holds_in_all_interleavings": property.holds_in_all_interleavings,
            })
        })
        .collect();
    let found = &prediction.divergences.found;
    let divergences: Vec<Value> =
        found.iter().map(|found| divergence(trace, found, schedules)).collect();
    json!({
        "version": 1,
        "program": {"command": trace.metadata.command, "build_id": trace.metadata.build_id},
        "trace": {
            "file": file,
            "threads": trace.threads.len(),
            "events": trace.events.len(),
            "symbolic": trace.metadata.symbolic,
            "gaps": trace.metadata.gaps,
        },
        "findings": findings,
        "properties": properties,
        "divergences": divergences,
        "unseen": prediction.unseen,
        "statistics": {
            "shared_variables": statistics.shared_variables,
            "events_after_slicing": statistics.events_after_slicing,
            "regions": statistics.regions,
            "original_patterns": statistics.original_patterns,
            "after_must_order": statistics.after_must_order,
            "after_locksets": statistics.after_locksets,
            "atomicity_violations": statistics.atomicity_violations,
            "divergence_questions": prediction.divergences.asked,
            "divergences_impossible": prediction.divergences.impossible,
            "divergences_undecided": prediction.divergences.undecided,
            "candidate_seconds": statistics.candidate_time.as_secs_f64(),
            "solve_seconds": statistics.solve_time.as_secs_f64(),
            "solver_checks": statistics.solver.checks,
            "solver_conflicts": statistics.solver.conflicts,
        },
    })
}

fn finding(trace: &Trace, finding: &Finding, schedules: &BTreeMap<String, PathBuf>) -> Value {
    let (status, reason) = match &finding.status {
        Status::Predicted => ("predicted", None),
        Status::Unknown(reason) => ("unknown", Some(reason)),
    };
    let accesses: Vec<Value> =
        finding.accesses.iter().map(|access| access_json(trace, access)).collect();
    let mut object = json!({
        "id": finding.id,
        "group": finding.group,
        "kind": finding.kind.name(),
        "pattern": finding.pattern.map(|pattern| pattern.name()),
        "status": status,
        "effect": null,
        "detail": finding.detail,
        "accesses": accesses,
        "schedule": schedules.get(&finding.id).map(|path| path.display().to_string()),
    });
    if let Some(reason) = reason {
        object["reason"] = json!(reason);
    }
    if let Some(schedule) = &finding.schedule {
        object["context_switches"] = json!(schedule.context_switches);
        object["interleaving"] = interleaving(schedule);
    }
    object
}

fn interleaving(schedule: &WitnessSchedule) -> Value {
    json!({
        "recorded": schedule.recorded,
        "order": schedule.order.iter().map(|event| event.0).collect::<Vec<_>>(),
        "next": schedule.next.iter().map(|event| event.0).collect::<Vec<_>>(),
    })
}

fn divergence(trace: &Trace, found: &Divergence, schedules: &BTreeMap<String, PathBuf>) -> Value {
    let access = |event| access_json(trace, &access_info(trace, event));
    let fed = match found.feeds {
        Feeds::Branch(event) | Feeds::Address(event) => Some(access(event)),
        Feeds::Itself | Feeds::Path | Feeds::Unrecorded => None,
    };
    let (recorded, seen) = match &found.values {
        Some((recorded, seen)) => (Some(shown(recorded)), Some(shown(seen))),
        None => (None, None),
    };
    json!({
        "id": found.id,
        "access": access(found.event),
        "feeds": found.feeds_kind(),
        "fed": fed,
        "recorded": recorded,
        "seen": seen,
        "source": found.source.map(access),
        "overlapping": found.overlapping,
        "detail": found.detail,
        "schedule": schedules.get(&found.id).map(|path| path.display().to_string()),
        "context_switches": found.schedule.context_switches,
        "interleaving": interleaving(&found.schedule),
    })
}

fn access_json(trace: &Trace, access: &AccessInfo) -> Value {
    let site = access.site.map(|site| &trace.sites[site.index()]);
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "thread": trace.threads[access.thread.index()].name,
        "op": access.op,
        "event": access.event.0,
        "file": site.and_then(|site| known(&site.file)),
        "line": site.map(|site| site.line).filter(|&line| line > 0),
        "function": site.and_then(|site| known(&site.function)),
        "variable": access.variable,
    })
}
