//! `foretell merge`: the parts of an exploration as one result.
//!
//! That the parts together cover what one whole exploration covers is argued in `foretell-explore`
//! (`part.rs`); what that takes is checked here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use foretell_explore::Doubt;
use foretell_report::report::{Exploration, OpenQuestions, Part, Status};
use foretell_report::{Report, story};

use crate::cli::MergeArguments;
use crate::commands::report::{print, saved, suppress, write_files};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use foretell_report::session::class_digest;

/// Joins and prints.
pub fn run(arguments: &MergeArguments, output: &mut Output) -> Result<Exit, Failure> {
    let mut parts = Vec::new();
    for path in &arguments.parts {
        let report = saved(path)?;
        let name = path.display().to_string();
        let part = report.exploration.as_ref().and_then(|explored| explored.part.clone());
        let part = part.ok_or_else(|| {
            let how = "save one with `foretell test --partition M/N --json PART PROGRAM`";
            Failure::Input(format!("{name}: not a part of an exploration; {how}"))
        })?;
        parts.push((name, part, report));
    }
    check(&parts).map_err(Failure::Input)?;
    parts.sort_by_key(|(_, part, _)| part.number);
    let mut report = merged(parts);
    suppress(&mut report, &arguments.outputs)?;
    story::fold(&mut report);
    print(&report, output)?;
    write_files(&report, &arguments.outputs)?;
    Ok(report.conclusion().into())
}

/// Are these all parts of one exploration, each once?
fn check(parts: &[(String, Part, Report)]) -> Result<(), String> {
    let [(first_name, first, _), rest @ ..] = parts else { return Err("there is no part".into()) };
    for (name, part, _) in rest {
        if part.of != first.of {
            return Err(format!(
                "{first_name} is a part of {}, and {name} is a part of {}",
                first.of, part.of
            ));
        }
        let names: BTreeSet<&String> = first.subject.keys().chain(part.subject.keys()).collect();
        for about in names {
            let (here, there) = (first.subject.get(about), part.subject.get(about));
            if here != there {
                let shown = |value: Option<&String>| match value.map_or("", String::as_str) {
                    "" => "not given".to_owned(),
                    value => format!("`{value}`"),
                };
                return Err(format!(
                    "{name} is part of another exploration than {first_name}: {about} is {} there \
                     and {} here",
                    shown(there),
                    shown(here)
                ));
            }
        }
    }
    let mut names: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, part, _) in parts {
        if let Some(other) = names.insert(part.number, name) {
            return Err(format!("{other} and {name} are both part {} of {}", part.number, part.of));
        }
    }
    let missing: Vec<String> = (1..=first.of)
        .filter(|number| !names.contains_key(number))
        .map(|number| number.to_string())
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "of {} parts these are missing: {}; make them with `foretell test --partition M/{} \
             --json PART PROGRAM`",
            first.of,
            missing.join(", "),
            first.of
        )),
    }
}

/// One result of all parts, the first of which comes first.
fn merged(parts: Vec<(String, Part, Report)>) -> Report {
    // Otherwise they did not mean the same regions.
    let alike = parts.iter().all(|(_, part, _)| part.classes.first() == parts[0].1.classes.first());
    let classes: BTreeSet<&String> = parts.iter().flat_map(|(_, part, _)| &part.classes).collect();
    let (count, digest) = (classes.len(), class_digest(classes.into_iter().cloned()));
    let mut reports = parts.into_iter().map(|(_, _, report)| report);
    let mut whole = reports.next().expect("there is a part");
    let mut known: HashSet<String> =
        whole.findings.iter().map(|finding| finding.fingerprint.clone()).collect();
    let mut explored = vec![whole.exploration.take().unwrap_or_default()];
    let mut counted = whole.statistics.test.take().unwrap_or_default();
    for mut report in reports {
        if let Some(counted_there) = &report.statistics.test {
            counted.add_runs(counted_there);
        }
        explored.push(report.exploration.take().unwrap_or_default());
        for sentence in std::mem::take(&mut report.unseen) {
            if !whole.unseen.contains(&sentence) {
                whole.unseen.push(sentence);
            }
        }
        report.findings.retain(|finding| known.insert(finding.fingerprint.clone()));
        whole.absorb(report);
    }
    counted.paths = count;
    counted.confirmed =
        whole.findings.iter().filter(|finding| finding.status == Status::Confirmed).count();
    let untried = counted.untried;
    whole.statistics.test = Some(counted);
    let mut open: BTreeMap<(Option<Doubt>, String), usize> = BTreeMap::new();
    for OpenQuestions { kind, reason, questions } in explored.iter().flat_map(|part| &part.reasons)
    {
        if *kind != Some(Doubt::OtherPart) {
            *open.entry((*kind, reason.clone())).or_default() += questions;
        }
    }
    if !alike {
        open.insert((None, "the parts did not begin with the same run".into()), 1);
    }
    // That a part is not covered has a reason, or a sentence about what was not seen, or an open finding.
    let covered = open.is_empty()
        && explored.iter().all(|part| part.covered || only_left(part))
        && !whole.findings.iter().any(|finding| finding.status == Status::Unknown)
        && untried == 0
        && whole.not_seen().is_empty();
    whole.exploration = Some(Exploration {
        covered,
        classes: count,
        interleavings: None,
        questions: explored.iter().map(|part| part.questions).sum(),
        open: open.values().sum(),
        walks: explored.iter().map(|part| part.walks).sum(),
        reasons: open
            .into_iter()
            .map(|((kind, reason), questions)| OpenQuestions { kind, reason, questions })
            .collect(),
        digest: Some(digest),
        go_on: None,
        part: None,
    });
    whole
}

/// Is nothing open but what is left to others?
fn only_left(part: &Exploration) -> bool {
    !part.reasons.is_empty() && part.reasons.iter().all(|open| open.kind == Some(Doubt::OtherPart))
}
