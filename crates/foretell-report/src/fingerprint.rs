//! What a finding is known by from version to version: its kind, the functions, the variables and the
//! code of its accesses, but no line numbers. Moving code, adding a header or changing white space
//! keeps a fingerprint; changing one of the lines does not, for then somebody should look again.
//!
//! A failing assertion is known by the assertion alone: many schedules make it fail, and which of them is
//! found first is a matter of chance.

use std::collections::HashMap;

use foretell_predict::finding::fnv;

use crate::report::{Access, Finding, FindingKind, Report};

/// Gives every finding its fingerprint; the source lines must be in the report.
///
/// Findings of one group share it, and so do those of one assertion. Others that would be alike (the same
/// statement twice in one function) are numbered by where they stand.
pub fn assign(report: &mut Report) {
    let mut texts: Vec<String> =
        report.findings.iter().map(|finding| describe(report, finding)).collect();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_cached_key(|&at| places(&report.findings[at]));
    let mut seen: HashMap<String, Vec<String>> = HashMap::new();
    for at in order {
        let groups = seen.entry(texts[at].clone()).or_default();
        let finding = &report.findings[at];
        let group = match assertion(finding) {
            Some(access) => format!("{:?}", place(access)),
            None => finding.group.clone(),
        };
        let number = groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        });
        if number > 0 {
            texts[at] += &format!("|{number}");
        }
    }
    for (finding, text) in report.findings.iter_mut().zip(texts) {
        finding.fingerprint = format!("{:016x}", fnv(&text));
    }
}

fn describe(report: &Report, finding: &Finding) -> String {
    let mut text = finding.kind.name().to_owned();
    text += finding.pattern.as_deref().unwrap_or_default();
    let accesses = match assertion(finding) {
        Some(access) => std::slice::from_ref(access),
        None => &finding.accesses,
    };
    for access in accesses {
        let code = match (&access.file, access.line) {
            (Some(file), Some(line)) => report.source_line(file, line),
            _ => None,
        };
        let code: String = code.unwrap_or_default().split_whitespace().collect();
        let variable = lasting(access.variable.as_deref().unwrap_or_default());
        let function = access.function.as_deref().unwrap_or_default();
        text += &format!("|{}|{function}|{variable}|{code}", access.op);
    }
    text
}

/// The part of a variable's name that stays: a heap block is named by the line that made it, other
/// memory by its address.
fn lasting(variable: &str) -> String {
    if variable.starts_with("0x") {
        return "memory".into();
    }
    match (variable.starts_with("heap@"), variable.split_once(':'), variable.rsplit_once('+')) {
        (true, Some((file, _)), Some((_, offset))) => format!("{file}+{offset}"),
        _ => variable.to_owned(),
    }
}

/// The assertion that fails, if that is what the finding is about.
fn assertion(finding: &Finding) -> Option<&Access> {
    let mut accesses = finding.accesses.iter().filter(|_| finding.kind == FindingKind::Assertion);
    accesses.rfind(|access| access.op == "assert")
}

type Place = (Option<String>, Option<u32>, Option<u32>);

fn place(access: &Access) -> Place {
    (access.file.clone(), access.line, access.column)
}

fn places(finding: &Finding) -> Vec<Place> {
    match assertion(finding) {
        Some(access) => vec![place(access)],
        None => finding.accesses.iter().map(place).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Status;

    fn finding(group: &str, line: u32) -> Finding {
        Finding {
            accesses: vec![Access {
                op: "read".into(),
                file: Some("a.c".into()),
                line: Some(line),
                function: Some("f".into()),
                variable: Some("heap@a.c:9+8".into()),
                ..Access::default()
            }],
            ..Finding::new(group, FindingKind::Race, Status::Predicted)
        }
    }

    fn report(lines: &[(u32, &str)], findings: Vec<Finding>) -> Report {
        let mut report = Report { findings, ..Report::default() };
        let lines = lines.iter().map(|&(line, text)| (line, text.to_owned())).collect();
        report.sources.insert("a.c".into(), lines);
        assign(&mut report);
        report
    }

    #[test]
    fn moving_and_reformatting_code_keeps_the_fingerprint_and_changing_it_does_not() {
        let old = report(&[(10, "  x = p->n;")], vec![finding("g", 10)]);
        let moved = report(&[(37, "x  =  p->n;")], vec![finding("h", 37)]);
        let changed = report(&[(10, "  x = p->n + 1;")], vec![finding("g", 10)]);
        assert_eq!(old.findings[0].fingerprint, moved.findings[0].fingerprint);
        assert_ne!(old.findings[0].fingerprint, changed.findings[0].fingerprint);
    }

    #[test]
    fn the_same_statement_twice_is_two_fingerprints_in_the_order_of_the_lines() {
        let lines = [(10, "x++;"), (20, "x++;")];
        let both = report(&lines, vec![finding("second", 20), finding("first", 10)]);
        let first = report(&lines, vec![finding("first", 10)]);
        assert_ne!(both.findings[0].fingerprint, both.findings[1].fingerprint);
        assert_eq!(both.findings[1].fingerprint, first.findings[0].fingerprint);
        let other_threads = report(&lines, vec![finding("first", 10), finding("first", 10)]);
        assert_eq!(other_threads.findings[0].fingerprint, other_threads.findings[1].fingerprint);
    }

    #[test]
    fn an_assertion_is_known_by_itself_whatever_made_it_fail() {
        let failing = |group: &str, line: u32, others: &[u32]| {
            let mut failing = finding(group, line);
            failing.kind = FindingKind::Assertion;
            failing.accesses[0].op = "assert".into();
            let before = others.iter().flat_map(|&line| finding(group, line).accesses);
            failing.accesses.splice(0..0, before);
            failing
        };
        let lines = [(3, "assert(x);"), (5, "x = 1;"), (7, "assert(x);")];
        let findings = vec![failing("a", 3, &[]), failing("b", 3, &[5]), failing("c", 7, &[5])];
        let report = report(&lines, findings);
        let prints: Vec<&str> =
            report.findings.iter().map(|finding| finding.fingerprint.as_str()).collect();
        assert_eq!(prints[0], prints[1]);
        assert_ne!(prints[0], prints[2], "the same statement at another place");
    }
}
