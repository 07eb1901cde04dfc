//! What every renderer tells alike: which findings are one, in which order they come, and their
//! headlines.

use std::collections::BTreeSet;

use crate::report::{Access, Effect, Event, Finding, Kind, Report, Status, Timeline};

/// Findings at the same code locations, shown as one.
#[derive(Clone, Debug)]
pub struct Entry<'r> {
    /// The one that is shown: the surest and worst.
    pub finding: &'r Finding,
    /// The others.
    pub others: Vec<&'r Finding>,
}

impl Entry<'_> {
    /// What else the same places are, e.g. `data race, atomicity violation RWR`.
    pub fn also(&self) -> Vec<String> {
        let own = name(self.finding);
        let mut names: Vec<String> = Vec::new();
        for other in self.others.iter().map(|other| name(other)) {
            if other != own && !names.contains(&other) {
                names.push(other);
            }
        }
        names
    }
}

fn name(finding: &Finding) -> String {
    match &finding.pattern {
        Some(pattern) => format!("{} {pattern}", finding.kind.headline()),
        None => finding.kind.headline().to_owned(),
    }
}

/// The findings that count, those at the same places together, the surest and worst first.
pub fn entries(report: &Report) -> Vec<Entry<'_>> {
    let mut findings: Vec<&Finding> = report.active().collect();
    findings.sort_by_key(|finding| rank(finding));
    let mut entries: Vec<(BTreeSet<(&str, u32)>, Entry)> = Vec::new();
    for finding in findings {
        let places = places(finding);
        let same = entries.iter_mut().find(|(known, entry)| {
            entry.finding.group == finding.group || !places.is_empty() && *known == places
        });
        match same {
            Some((_, entry)) => entry.others.push(finding),
            None => entries.push((places, Entry { finding, others: Vec::new() })),
        }
    }
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn places(finding: &Finding) -> BTreeSet<(&str, u32)> {
    let place = |access: &'_ Access| Some((access.file.clone()?, access.line?));
    if finding.accesses.iter().any(|access| place(access).is_none()) {
        return BTreeSet::new();
    }
    finding
        .accesses
        .iter()
        .filter_map(|access| Some((access.file.as_deref()?, access.line?)))
        .collect()
}

/// What was seen to do harm comes first; what goes wrong by itself before what may lead to it.
fn rank(finding: &Finding) -> (Status, Effect, u8) {
    let kind = match finding.kind {
        Kind::Crash => 0,
        Kind::Assertion => 1,
        Kind::Deadlock => 2,
        Kind::Order => 3,
        Kind::Atomicity => 4,
        Kind::Race => 5,
    };
    (finding.status, finding.effect.unwrap_or(Effect::None), kind)
}

/// `file:line`, or nothing.
pub fn place(file: Option<&str>, line: Option<u32>) -> Option<String> {
    match (file, line) {
        (Some(file), Some(line)) => Some(format!("{file}:{line}")),
        (Some(file), None) => Some(file.to_owned()),
        _ => None,
    }
}

/// What breaks and where, e.g. ``atomicity violation on `balance` in deposit at bank.c:12``.
pub fn headline(finding: &Finding) -> String {
    let mut text = finding.kind.headline().to_owned();
    let Some(access) = finding.accesses.first() else { return text };
    let about = match finding.kind {
        Kind::Deadlock => {
            let mut locks: Vec<&str> =
                finding.accesses.iter().filter_map(|access| access.variable.as_deref()).collect();
            locks.dedup();
            locks.iter().map(|lock| format!("`{lock}`")).collect::<Vec<_>>().join(" and ")
        }
        _ => access.variable.as_deref().map(|name| format!("`{name}`")).unwrap_or_default(),
    };
    if !about.is_empty() {
        text += &format!(" on {about}");
    }
    if let Some(function) = &access.function {
        text += &format!(" in {function}");
    }
    if let Some(place) = place(access.file.as_deref(), access.line) {
        text += &format!(" at {place}");
    }
    text
}

/// How sure it is and how that is known, e.g. `confirmed: the assertion failed in a forced run`.
pub fn certainty(finding: &Finding) -> String {
    let reason = finding.reason.as_deref();
    match (finding.status, finding.effect) {
        (Status::Confirmed, Some(effect)) => {
            format!("confirmed: {} {}", effect.told(), reason.unwrap_or("in a forced run"))
        }
        (Status::Confirmed, None) => "confirmed: it happened in a forced run".into(),
        (Status::Predicted, _) => match reason {
            Some(reason) => format!("predicted, not confirmed: {reason}"),
            None => "predicted: the schedule was checked, not yet forced on the program".into(),
        },
        (Status::Unknown, _) => format!("undecided: {}", reason.unwrap_or("no reason was given")),
        (Status::Refuted, _) => {
            format!("refuted: {}", reason.unwrap_or("it was forced and nothing bad came of it"))
        }
    }
}

/// `1 confirmed, 2 predicted`, of what is shown; `nothing found` for none.
pub fn count(entries: &[Entry]) -> String {
    let of = |status| entries.iter().filter(|entry| entry.finding.status == status).count();
    let counts = [
        (of(Status::Confirmed), "confirmed"),
        (of(Status::Predicted), "predicted"),
        (of(Status::Unknown), "undecided"),
        (of(Status::Refuted), "refuted"),
    ];
    let told: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if told.is_empty() { "nothing found".into() } else { told.join(", ") }
}

/// What a step of a finding does, in the predicted order.
pub fn step_text(report: &Report, finding: &Finding, id: u32) -> String {
    match report.event(id) {
        Some(event) => event_text(event, finding.timeline.as_ref()),
        None => format!("event {id}"),
    }
}

/// What an event does and to what, with its value: `read balance = 100`. Values of the predicted
/// order that differ from the recorded ones show both: `read balance = 100 (was 110)`.
pub fn event_text(event: &Event, predicted: Option<&Timeline>) -> String {
    let mut text = event.op.clone();
    if let Some(object) = &event.object {
        text += &format!(" {object}");
    }
    if predicted.is_some_and(|timeline| timeline.next.contains(&event.id)) {
        return match event.op.as_str() {
            "acquire" | "sem-wait" | "join" | "barrier-leave" | "wait-end" => {
                format!("waits: {text}")
            }
            _ => format!("next: {text}"),
        };
    }
    let is = if event.op == "assert" { "" } else { " =" };
    match (predicted.and_then(|timeline| timeline.values.get(&event.id)), &event.value) {
        (Some(now), Some(was)) => text += &format!("{is} {now} (was {was})"),
        (Some(value), None) | (None, Some(value)) => text += &format!("{is} {value}"),
        (None, None) => {}
    }
    text
}
