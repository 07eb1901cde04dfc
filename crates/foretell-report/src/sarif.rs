//! SARIF 2.1.0, for code scanning services and editors.
//!
//! One result for each finding that is shown, and one for each suppressed one. Its code flow has the
//! merged order of all threads first, because many viewers show the first thread flow only, then one
//! flow for each thread. The schema that the tests validate against is the published one.

use std::io::{self, Write};

use serde_json::{Value, json};

use foretell_predict::property::Text;

use crate::report::{Finding, FindingKind, Report, Status};
use crate::story;

/// Writes one run with all findings.
pub fn render(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let shown = story::entries(report).into_iter().map(|entry| entry.finding);
    let suppressed = report.findings.iter().filter(|finding| finding.suppressed.is_some());
    let results: Vec<Value> =
        shown.chain(suppressed).map(|finding| result(report, finding)).collect();
    let note = |level: &str, text: String| json!({"level": level, "message": {"text": text}});
    let stale = report.stale_suppressions.iter();
    let stale = stale.map(|text| note("warning", format!("stale suppression: {text}")));
    let limits = story::limits(report).into_iter().map(|text| note("note", text));
    let notes: Vec<Value> = limits.chain(stale).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "foretell",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": FindingKind::ALL.iter().copied().map(rule).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notes,
            }],
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn rule_id(kind: FindingKind) -> String {
    format!("foretell/{}", kind.name())
}

fn rule(kind: FindingKind) -> Value {
    let Text { rule: name, description: text, .. } = kind.text();
    json!({
        "id": rule_id(kind),
        "name": name,
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["concurrency", "correctness"]},
    })
}

fn result(report: &Report, finding: &Finding) -> Value {
    let (kind, level) = match finding.status {
        Status::Confirmed => ("fail", "error"),
        Status::Predicted => ("fail", "warning"),
        // By section 3.27.10, what is no failure has no level.
        Status::Unknown => ("open", "none"),
        Status::Refuted => ("pass", "none"),
    };
    let text =
        format!("{}. {}. {}.", story::headline(finding), finding.detail, story::certainty(finding));
    let places: Vec<Value> = finding
        .accesses
        .iter()
        .enumerate()
        .map(|(number, access)| {
            let about = access.variable.as_deref().unwrap_or_default();
            let text = format!("{}: {} {about}", access.thread, access.op);
            let mut place = location(
                access.file.as_deref(),
                access.line,
                access.column,
                access.function.as_deref(),
                text.trim_end(),
            );
            place["id"] = json!(number);
            place
        })
        .collect();
    let mut result = json!({
        "ruleId": rule_id(finding.kind),
        "ruleIndex": FindingKind::ALL.iter().position(|&kind| kind == finding.kind),
        "kind": kind,
        "level": level,
        "message": {"text": text},
        "locations": places.first().into_iter().collect::<Vec<_>>(),
        "relatedLocations": places.iter().skip(1).collect::<Vec<_>>(),
        // The second name is the one by which GitHub tells alerts apart; without it, findings of one
        // kind on one line would be one alert.
        "partialFingerprints": {
            "foretell/v1": finding.fingerprint,
            "primaryLocationLineHash": finding.fingerprint,
        },
        "properties": {
            "id": finding.id,
            "status": finding.status.name(),
            "effect": finding.effect.map(crate::report::Effect::name),
            "pattern": finding.pattern,
            "replay": finding.replay,
        },
    });
    if let Some(flow) = code_flow(report, finding) {
        result["codeFlows"] = json!([flow]);
    }
    let changes = fix(finding);
    if !changes.is_empty() {
        let text = finding.fix.as_ref().map_or("", |fix| &fix.text);
        result["fixes"] = json!([{"description": {"text": text}, "artifactChanges": changes}]);
    }
    if let Some(suppressed) = &finding.suppressed {
        result["suppressions"] =
            json!([{"kind": "external", "status": "accepted", "justification": suppressed.reason}]);
    }
    result
}

/// A path as a URI: below the source root where it is relative.
fn artifact(file: &str) -> Value {
    let mut uri = String::new();
    for byte in file.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    match file.starts_with('/') {
        true => json!({"uri": format!("file://{uri}")}),
        false => json!({"uri": uri, "uriBaseId": "%SRCROOT%"}),
    }
}

fn location(
    file: Option<&str>,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&str>,
    text: &str,
) -> Value {
    let mut location = json!({"message": {"text": text}});
    if let Some(file) = file {
        location["physicalLocation"] = json!({"artifactLocation": artifact(file)});
        if let Some(line) = line {
            let region = &mut location["physicalLocation"]["region"];
            region["startLine"] = json!(line);
            if let Some(column) = column {
                region["startColumn"] = json!(column);
            }
        }
    }
    if let Some(function) = function {
        location["logicalLocations"] =
            json!([{"fullyQualifiedName": function, "kind": "function"}]);
    }
    location
}

fn code_flow(report: &Report, finding: &Finding) -> Option<Value> {
    let timeline = finding.timeline.as_ref()?;
    let mut merged: Vec<Value> = Vec::new();
    let mut threads: Vec<(u32, Vec<Value>)> = Vec::new();
    for (order, &id) in timeline.steps.iter().enumerate() {
        let Some(event) = report.event(id) else { continue };
        let thread = report.thread_name(event.thread);
        let text = format!("{thread}: {}", story::step_text(report, finding, id));
        let essential = finding.accesses.iter().any(|access| access.event == Some(id));
        let step = json!({
            "location": location(
                event.file.as_deref(), event.line, None, event.function.as_deref(), &text,
            ),
            "executionOrder": order + 1,
            "importance": if essential { "essential" } else { "important" },
        });
        merged.push(step.clone());
        match threads.iter_mut().find(|(known, _)| *known == event.thread) {
            Some((_, steps)) => steps.push(step),
            None => threads.push((event.thread, vec![step])),
        }
    }
    if merged.is_empty() {
        return None;
    }
    let mut flows = vec![json!({
        "id": "all threads",
        "message": {"text": "all threads, in the order in which it goes wrong"},
        "locations": merged,
    })];
    flows.extend(threads.into_iter().map(|(thread, steps)| {
        json!({"id": format!("{thread}: {}", report.thread_name(thread)), "locations": steps})
    }));
    Some(json!({"message": {"text": "the interleaving"}, "threadFlows": flows}))
}

/// The fix's diff as replacements, file by file.
fn fix(finding: &Finding) -> Vec<Value> {
    let Some(diff) = finding.fix.as_ref().and_then(|fix| fix.diff.as_deref()) else {
        return Vec::new();
    };
    let mut files: Vec<(String, Vec<Value>)> = Vec::new();
    let mut old_line = 0;
    let mut deleted = 0;
    let mut inserted = String::new();
    let mut changing = false;
    let flush = |files: &mut Vec<(String, Vec<Value>)>,
                 line: u32,
                 deleted: &mut u32,
                 inserted: &mut String| {
        if *deleted == 0 && inserted.is_empty() {
            return;
        }
        let first = line - *deleted;
        let mut replacement = json!({
            "deletedRegion":
                {"startLine": first, "startColumn": 1, "endLine": line, "endColumn": 1},
        });
        if !inserted.is_empty() {
            replacement["insertedContent"] = json!({"text": inserted});
        }
        if let Some((_, replacements)) = files.last_mut() {
            replacements.push(replacement);
        }
        *deleted = 0;
        inserted.clear();
    };
    for line in diff.lines() {
        if !changing && (line.starts_with("--- ") || line.starts_with("+++ ")) || is_header(line) {
            flush(&mut files, old_line, &mut deleted, &mut inserted);
            if let Some(name) = line.strip_prefix("+++ ") {
                let name = name.split('\t').next().unwrap_or(name);
                let name = name.strip_prefix("b/").unwrap_or(name);
                files.push((name.to_owned(), Vec::new()));
            }
            changing = false;
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            flush(&mut files, old_line, &mut deleted, &mut inserted);
            let number: String = hunk.chars().take_while(char::is_ascii_digit).collect();
            old_line = number.parse::<u32>().unwrap_or(1).max(1);
            changing = true;
        } else if changing {
            match line.as_bytes().first() {
                Some(b'-') => {
                    deleted += 1;
                    old_line += 1;
                }
                Some(b'+') => inserted += &format!("{}\n", &line[1..]),
                _ => {
                    flush(&mut files, old_line, &mut deleted, &mut inserted);
                    old_line += 1;
                }
            }
        }
    }
    flush(&mut files, old_line, &mut deleted, &mut inserted);
    files
        .into_iter()
        .filter(|(_, replacements)| !replacements.is_empty())
        .map(|(file, replacements)| {
            json!({"artifactLocation": artifact(&file), "replacements": replacements})
        })
        .collect()
}

/// The header of the next file, inside a hunk told from code by what follows the dashes.
fn is_header(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("+++ b/") || line.starts_with("--- a/")
}
