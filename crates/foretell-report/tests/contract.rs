//! The JSON contract: what is written fits the published schema, is read back as it was, and
//! results of earlier programs can still be read.

mod common;

use foretell_report::report::{Effect, Finding, FindingKind, Status};
use foretell_report::{Report, SCHEMA};
use serde_json::{Value, json};

fn faults(value: &Value) -> Vec<String> {
    common::schema::faults(&serde_json::from_str(SCHEMA).unwrap(), value)
}

#[test]
fn a_report_fits_the_schema_and_is_read_back_as_it_was() {
    for report in [common::predicted(common::BANK), common::tested(common::BANK)] {
        let value = report.to_json();
        assert_eq!(faults(&value), Vec::<String>::new());
        let text = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(Report::from_json(&text).unwrap(), report);
    }
}

#[test]
fn every_kind_status_and_effect_is_a_word_of_the_schema() {
    let effects = [
        Effect::Assertion,
        Effect::Crash,
        Effect::Hang,
        Effect::Output,
        Effect::Path,
        Effect::None,
    ];
    let statuses = [Status::Confirmed, Status::Predicted, Status::Unknown, Status::Refuted];
    for &kind in FindingKind::ALL {
        for status in statuses {
            for effect in effects {
                let mut finding = Finding::new("a", kind, status);
                finding.effect = Some(effect);
                let value = serde_json::to_value(&finding).unwrap();
                assert_eq!(value["kind"], kind.name());
                assert_eq!(value["status"], status.name());
                assert_eq!(value["effect"], effect.name());
                assert_eq!(faults(&json!({"version": 1, "findings": [value]})).len(), 0);
            }
        }
    }
}

#[test]
fn the_schema_refuses_what_the_contract_forbids() {
    let good = common::tested(common::BANK).to_json();
    for (pointer, wrong) in [
        ("/version", json!(2)),
        ("/findings/0/kind", json!("oops")),
        ("/findings/0/status", json!("maybe")),
        ("/findings/0/pattern", json!("RRR")),
        ("/findings/0/accesses/0/line", json!(0)),
        ("/findings/0/forced/ended", json!(7)),
        ("/findings/0/timeline/predicted", json!(["a"])),
        ("/events/0/thread", json!("alice")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect(pointer) = wrong;
        assert!(!faults(&bad).is_empty(), "{pointer}");
    }
}

#[test]
fn a_result_of_the_first_version_1_program_is_still_read() {
    let old = r#"{"version": 1, "program": {"command": ["./bank"], "build_id": null},
        "trace": {"file": "t", "threads": 2, "events": 9, "symbolic": true, "gaps": []},
        "findings": [{"id": "1f", "group": "2e", "kind": "race", "pattern": null,
            "status": "predicted", "effect": null, "detail": "data race", "schedule": null,
            "accesses": [{"thread": "A", "op": "read", "event": 3, "file": null, "line": null,
                "function": null, "variable": "x"}]}],
        "properties": [], "unseen": [], "statistics": {"regions": 1, "solver_checks": 4}}"#;
    let report = Report::from_json(old).unwrap();
    assert_eq!(report.findings[0].kind, FindingKind::Race);
    assert_eq!(report.findings[0].accesses[0].variable.as_deref(), Some("x"));
    assert_eq!(report.statistics.solver_checks, 4);
}

#[test]
fn what_is_no_result_is_told_apart() {
    let message = |text: &str| Report::from_json(text).unwrap_err().to_string();
    assert!(message("{").starts_with("not a result of foretell: EOF"));
    assert!(message("[]").starts_with("not a result of foretell"));
    assert!(message(r#"{"version": 2, "findings": []}"#).contains("version 2 is not known"));
    assert!(message(r#"{"version": 1, "machine": {}}"#).contains("no findings"));
    assert!(message(r#"{"version": 1, "findings": [{"id": 3}]}"#).contains("line 1 column"));
}

#[test]
fn both_orders_values_and_sources_of_the_bank_are_as_the_paper_has_them() {
    let report = common::predicted(common::BANK);
    let finding = report
        .findings
        .iter()
        .find(|finding| finding.kind == FindingKind::Assertion)
        .expect("the assertion can fail");
    let timeline = finding.timeline.as_ref().unwrap();
    assert!(timeline.recorded.is_sorted());
    let story: Vec<String> = timeline
        .steps
        .iter()
        .map(|&id| {
            let event = report.event(id).unwrap();
            let value = timeline.values.get(&id).or(event.value.as_ref());
            let thread = report.thread_name(event.thread);
            format!("{thread} {} {}", event.op, value.map_or("", String::as_str))
        })
        .collect();
    // One deposit is lost: both read 100, and the sum is wrong in the end.
    assert_eq!(story.iter().filter(|step| step.ends_with("read 100")).count(), 2, "{story:?}");
    assert!(["main read 110", "main read 120"].contains(&story[story.len() - 2].as_str()));
    assert_eq!(story.last().unwrap(), "main assert false");
    // The read that now returns another write's value says so in both orders.
    assert!(timeline.reads_from.iter().any(|read| read.recorded != read.predicted));
    assert!(!timeline.moved.is_empty());
    // Held locks are those of the access.
    let torn =
        report.findings.iter().find(|finding| finding.kind == FindingKind::Atomicity).unwrap();
    assert!(torn.accesses.iter().all(|access| access.locks == ["m"]), "{torn:?}");
}
