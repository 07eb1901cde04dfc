//! SARIF, JUnit, Markdown and Perfetto: valid by other people's definitions, and saying what was found.

mod common;

use std::path::Path;
use std::process::Command;

use foretell_report::report::{Status, Suppressed};
use foretell_report::{Report, junit, markdown, perfetto, sarif, story};
use serde_json::Value;

const SARIF_SCHEMA: &str = include_str!("../schema/sarif-2.1.0.schema.json");

/// Findings of every status, one of them suppressed.
fn report() -> Report {
    let mut report = common::tested(common::BANK);
    report.unseen.push("libfoo.so is not instrumented".into());
    let mut unknown = report.findings[0].clone();
    unknown.id = "unknown".into();
    unknown.group = "unknown".into();
    unknown.status = Status::Unknown;
    unknown.reason = Some("budget spent".into());
    unknown.accesses[0].line = Some(99);
    unknown.timeline = None;
    let mut suppressed = report.findings[0].clone();
    suppressed.group = "suppressed".into();
    suppressed.suppressed =
        Some(Suppressed { reason: "<known> & \"old\"".into(), ..Suppressed::default() });
    report.findings.extend([unknown, suppressed]);
    report
}

fn rendered(
    render: impl Fn(&mut Vec<u8>, &Report) -> std::io::Result<()>,
    report: &Report,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    render(&mut bytes, report).unwrap();
    bytes
}

fn sarif_of(report: &Report) -> Value {
    serde_json::from_slice(&rendered(sarif::render, report)).unwrap()
}

#[test]
fn sarif_fits_the_published_schema() {
    let schema: Value = serde_json::from_str(SARIF_SCHEMA).unwrap();
    for report in [report(), common::predicted(common::BANK), Report::default()] {
        let log = sarif_of(&report);
        assert_eq!(common::schema::faults(&schema, &log), Vec::<String>::new());
    }
    let mut wrong = sarif_of(&report());
    wrong["runs"][0]["results"][0]["level"] = "terrible".into();
    wrong["runs"][0]["results"][0]["oops"] = 1.into();
    assert_eq!(common::schema::faults(&schema, &wrong).len(), 2, "the validator finds faults");
}

#[test]
fn sarif_has_the_merged_flow_first_then_one_for_each_thread() {
    let report = report();
    let log = sarif_of(&report);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let flows = results[0]["codeFlows"][0]["threadFlows"].as_array().unwrap();
    let steps = |flow: &Value| -> Vec<u64> {
        let steps = flow["locations"].as_array().unwrap();
        steps.iter().map(|step| step["executionOrder"].as_u64().unwrap()).collect()
    };
    let merged = steps(&flows[0]);
    assert!(merged.is_sorted() && merged.len() >= 4, "{merged:?}");
    let mut single: Vec<u64> = flows[1..].iter().flat_map(steps).collect();
    single.sort_unstable();
    assert_eq!(merged, single, "the threads' flows are the merged one, taken apart");
    let fingerprint = &results[0]["partialFingerprints"]["foretell/v1"];
    assert_eq!(fingerprint, &Value::from(story::entries(&report)[0].finding.fingerprint.clone()));
    let unknown = results.iter().find(|result| result["properties"]["id"] == "unknown").unwrap();
    assert_eq!((&unknown["kind"], &unknown["level"]), (&"open".into(), &"none".into()));
    let justified = results.iter().any(|result| !result["suppressions"].is_null());
    assert!(justified, "what is suppressed is there, with its reason");
}

#[test]
fn the_fix_of_sarif_applied_to_the_source_is_the_fix_of_the_diff() {
    let log = sarif_of(&report());
    let change = &log["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "bank.c");
    // Lines 13 to 15 go: unlock, blank, lock.
    let region = &change["replacements"][0]["deletedRegion"];
    assert_eq!((&region["startLine"], &region["endLine"]), (&13.into(), &16.into()));
    assert!(change["replacements"][0].get("insertedContent").is_none());
}

#[test]
fn junit_counts_what_it_says() {
    let report = report();
    let text = String::from_utf8(rendered(junit::render, &report)).unwrap();
    let count = |what: &str| text.matches(what).count();
    let stated = |name: &str| -> usize {
        let rest = text.split(&format!(" {name}=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    assert_eq!(count("<testcase "), stated("tests"));
    assert_eq!(count("<failure "), stated("failures"));
    assert_eq!(count("<skipped "), stated("skipped"));
    assert!(count("<failure ") >= 1 && count("<skipped ") == 2, "{text}");
    assert!(text.contains("suppressed: &lt;known&gt; &amp; &quot;old&quot;"), "{text}");
}

#[test]
fn markdown_has_a_row_and_a_section_for_each_finding() {
    let report = report();
    let text = String::from_utf8(rendered(markdown::render, &report)).unwrap();
    let entries = story::entries(&report);
    assert_eq!(text.lines().filter(|line| line.starts_with("## ")).count(), entries.len() + 1);
    let rows = text.split("\n\n").nth(1).unwrap().lines().count();
    assert_eq!(rows, entries.len() + 2, "{text}");
    assert!(text.contains("```diff\n") && text.contains("## What limits the result"), "{text}");
    assert!(text.contains("- alice waits for mutex m, held by bob"), "{text}");
}

#[test]
fn an_absent_or_hostile_name_breaks_no_format() {
    let mut report = report();
    for finding in &mut report.findings {
        for access in &mut finding.accesses {
            access.file = Some("a b/<&>\"'\u{202e}\u{0}]]>%.c".into());
            access.function = Some("operator<<\u{1b}[2J".into());
            access.variable = None;
        }
    }
    let schema: Value = serde_json::from_str(SARIF_SCHEMA).unwrap();
    assert_eq!(common::schema::faults(&schema, &sarif_of(&report)), Vec::<String>::new());
    let text = String::from_utf8(rendered(junit::render, &report)).unwrap();
    let control = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.contains(control) && !text.contains("<&>"), "{text}");
    let text = String::from_utf8(rendered(markdown::render, &report)).unwrap();
    assert!(!text.contains(control) && !text.contains("<&>"), "{text}");
}

/// `scripts/report-check.sh` installs jsonschema, xmlschema and perfetto from PyPI before the tests
/// run.
#[test]
fn other_peoples_validators_accept_the_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/report-check/bin/python");
    if !python.exists() {
        eprintln!("SKIPPED: other validators: run scripts/report-check.sh");
        return;
    }
    let folder = std::env::temp_dir().join(format!("foretell-formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let report = report();
    std::fs::write(folder.join("result.json"), report.to_json().to_string()).unwrap();
    let files: [(&str, Vec<u8>); 3] = [
        ("report.sarif", rendered(sarif::render, &report)),
        ("junit.xml", rendered(junit::render, &report)),
        ("report.perfetto-trace", rendered(perfetto::render, &report)),
    ];
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python)
        .arg(crate_folder.join("tests/validators/check.py"))
        .args([&folder, &crate_folder.join("schema")])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{told}");
    let _ = std::fs::remove_dir_all(&folder);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.lines().filter(|line| line.starts_with("ok:")).count(), 4, "{told}");
}
