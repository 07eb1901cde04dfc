//! What every renderer shows in the same way: which findings are one, their order and their headlines.

use std::collections::BTreeSet;

use crate::report::{
    Access, Effect, Event, Exploration, Finding, FindingKind, Fix, ForcedRun, Report, StackFrame,
    Status, Timeline,
};

/// Findings at the same code locations, or whose forced runs end badly in the same place: shown as one.
#[derive(Clone, Debug)]
pub struct Entry<'r> {
    /// The one that is shown: the surest and worst.
    pub finding: &'r Finding,
    /// The others.
    pub others: Vec<&'r Finding>,
}

impl Entry<'_> {
    /// What else was seen that is the same bug: headlines, each once, without those of the finding's own
    /// group.
    pub fn also(&self) -> Vec<String> {
        let own = headline(self.finding);
        let mut names: Vec<String> = Vec::new();
        for other in self.others.iter().filter(|other| other.group != self.finding.group) {
            let other = headline(other);
            if other != own && !names.contains(&other) {
                names.push(other);
            }
        }
        names
    }
}

/// The findings that count, those that are one bug together, the surest and worst first.
pub fn entries(report: &Report) -> Vec<Entry<'_>> {
    let mut findings: Vec<&Finding> = report.active().collect();
    findings.sort_by_key(|finding| rank(finding));
    let mut entries: Vec<(BTreeSet<(&str, u32)>, Entry)> = Vec::new();
    for finding in findings {
        let places = places(finding);
        let same = entries.iter_mut().find(|(known, entry)| {
            entry.finding.group == finding.group
                || !places.is_empty() && *known == places
                || is_same_failure(entry.finding, finding)
        });
        match same {
            Some((_, entry)) => entry.others.push(finding),
            None => entries.push((places, Entry { finding, others: Vec::new() })),
        }
    }
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Notes in the findings which of them are one bug.
pub fn fold(report: &mut Report) {
    let mut same: Vec<(String, String)> = Vec::new();
    for entry in entries(report) {
        let others = entry.others.iter().map(|other| (other.id.clone(), entry.finding.id.clone()));
        same.extend(others.filter(|(other, shown)| other != shown));
    }
    for finding in &mut report.findings {
        let shown = same.iter().find(|(other, _)| *other == finding.id);
        finding.same_as = shown.map(|(_, shown)| shown.clone());
    }
}

/// Do the forced runs of both end badly in the same place, for the same reason?
fn is_same_failure(one: &Finding, other: &Finding) -> bool {
    let end = |finding: &Finding| -> Option<(Effect, String)> {
        let confirmed = finding.status == Status::Confirmed;
        let effect = finding.effect.filter(|effect| confirmed && effect.is_fatal())?;
        Some((effect, finding.forced.as_ref()?.ended.clone()))
    };
    end(one).is_some() && end(one) == end(other)
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
    (finding.status, finding.effect.unwrap_or(Effect::None), finding.kind.rank())
}

/// `file:line`, or nothing.
pub fn place(file: Option<&str>, line: Option<u32>) -> Option<String> {
    match (file, line) {
        (Some(file), Some(line)) => Some(format!("{file}:{line}")),
        (Some(file), None) => Some(file.to_owned()),
        _ => None,
    }
}

/// An event as an access: how its thread came there and what it holds.
pub fn access(report: &Report, event: &Event) -> Access {
    let mut stack: Vec<StackFrame> = Vec::new();
    let mut at = event.frame;
    while let Some(frame) = at.and_then(|number| report.frames.get(number as usize)) {
        stack.push(match stack.is_empty() {
            true => StackFrame {
                function: frame.function.clone(),
                file: event.file.clone(),
                line: event.line,
            },
            false => StackFrame {
                function: frame.function.clone(),
                file: frame.file.clone(),
                line: frame.line,
            },
        });
        // A caller stands before what it called, so this ends whatever the file says.
        at = frame.caller.filter(|&caller| Some(caller) < at);
    }
    Access {
        thread: report.thread_name(event.thread),
        op: event.op.clone(),
        event: Some(event.id),
        file: event.file.clone(),
        line: event.line,
        column: column(report, event),
        function: event.function.clone(),
        variable: event.object.clone(),
        value: event.value.clone(),
        stack,
        locks: event.locks.clone(),
    }
}

/// Where the name of what it accesses stands in its line, from 1; events carry no columns.
fn column(report: &Report, event: &Event) -> Option<u32> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let line = report.source_line(event.file.as_deref()?, event.line?)?;
    let name = event.object.as_deref()?.split(|c| !is_word(c)).next().filter(|s| !s.is_empty())?;
    let whole = |&(at, _): &(usize, &str)| {
        !line[..at].ends_with(is_word) && !line[at + name.len()..].starts_with(is_word)
    };
    let mut found = line.match_indices(name).filter(whole);
    // What is written stands on the left.
    let (at, _) = if event.op == "write" { found.next() } else { found.last() }?;
    u32::try_from(at + 1).ok()
}

/// Why it goes wrong, without the repair, which is shown as such.
pub fn why(finding: &Finding) -> &str {
    let text = finding.explanation.as_ref().map_or("", |explanation| &explanation.text);
    let repair = finding.fix.as_ref().map(|fix| format!("; {}", fix.text));
    match repair.and_then(|repair| text.find(&repair)) {
        Some(at) => &text[..at],
        None => text,
    }
}

/// How far a repair can be trusted. Only a patched program that was tested is called verified.
pub fn trust_in(fix: &Fix) -> String {
    const ON_TRACE: &str = "advice: no bad interleaving of the recorded run is left";
    match (fix.verified, fix.on_trace, &fix.reason) {
        (true, ..) => "verified: the patched program was built and tested, the bug is gone".into(),
        (false, true, None) => format!("{ON_TRACE}; test the patched program"),
        (false, true, Some(reason)) => format!("{ON_TRACE}; {reason}"),
        (false, false, Some(reason)) => format!("advice, not verified: {reason}"),
        (false, false, None) => "advice, not verified".into(),
    }
}

/// The first branch that went another way, if one did: that the program ended before is shown by how
/// it ended.
pub fn other_branch(forced: &ForcedRun) -> Option<String> {
    let branch = forced.first_differing_branch.as_ref()?;
    let text = branch.text.as_deref().unwrap_or_default();
    if forced.ended_before_branch {
        return None;
    }
    let place = place(branch.file.as_deref(), branch.line);
    let place = place.or_else(|| branch.function.clone()).unwrap_or_default();
    Some(if text.is_empty() { place } else { format!("{place}: {text}") })
}

/// What limits the result, each with what it is: not seen, not varied, not tried.
pub fn limits(report: &Report) -> Vec<String> {
    let mut limits: Vec<String> = Vec::new();
    limits.extend(report.not_seen().iter().map(|sentence| format!("not seen: {sentence}")));
    let held = report.trace.restrictions.iter();
    limits.extend(held.map(|sentence| format!("not varied: {sentence}")));
    let undecided = report.statistics.divergences_undecided;
    if undecided > 0 {
        limits.push(format!(
            "undecided: whether a thread can leave the recorded path, at {undecided} places"
        ));
    }
    let reasons = report.exploration.iter().flat_map(|explored| &explored.reasons);
    limits.extend(reasons.map(|open| {
        format!("not explored: {} questions about other paths: {}", open.questions, open.reason)
    }));
    limits
}

/// A number that may be very large: `1,204`, `about 3.1e27`.
fn many(count: f64) -> String {
    // Above, a float has not all digits.
    if count >= 1e15 {
        return format!("about {count:.1e}");
    }
    let digits = format!("{count:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Whether everything that the program can do with its input was covered, as the end of a sentence.
pub fn coverage(explored: &Exploration) -> String {
    match (explored.covered, explored.classes, explored.open) {
        (true, classes, _) => {
            let classes = match classes {
                1 => "1 class of paths".to_owned(),
                classes => format!("{classes} classes of paths"),
            };
            let interleavings = match explored.interleavings {
                Some(1.0) => ", 1 interleaving".to_owned(),
                Some(count) => format!(", {} interleavings", many(count)),
                None => String::new(),
            };
            format!("all behaviours of this input were covered ({classes}{interleavings})")
        }
        (false, _, 0) => "not all behaviours of this input were covered".into(),
        (false, _, open) => {
            let questions = if open == 1 { "question is" } else { "questions are" };
            format!("not all behaviours of this input were covered: {open} {questions} open")
        }
    }
}

/// What breaks and where, e.g. ``atomicity violation on `balance` in deposit at bank.c:12``.
pub fn headline(finding: &Finding) -> String {
    let has_failed = finding.kind == FindingKind::Assertion && finding.status == Status::Confirmed;
    let mut text = if has_failed { "assertion fails" } else { finding.kind.headline() }.to_owned();
    let Some(access) = finding.accesses.first() else { return text };
    // Else it is another thread's, later; this is the access that leads to it.
    let leads_to_it = finding.kind == FindingKind::Assertion && access.op != "assert";
    if leads_to_it {
        text += &format!(" after the {}", access.op);
    }
    let about = match finding.kind {
        FindingKind::Deadlock | FindingKind::Livelock => {
            let mut locks: Vec<&str> =
                finding.accesses.iter().filter_map(|access| access.variable.as_deref()).collect();
            locks.dedup();
            locks.iter().map(|lock| format!("`{lock}`")).collect::<Vec<_>>().join(" and ")
        }
        _ => access.variable.as_deref().map(|name| format!("`{name}`")).unwrap_or_default(),
    };
    if !about.is_empty() {
        let of = if leads_to_it { "of" } else { "on" };
        text += &format!(" {of} {about}");
    }
    // Inside a library, the place that the reader knows is where it was called from.
    let is_known = |file: &Option<String>| file.as_ref().is_some_and(|f| !f.starts_with("/usr/"));
    let own = access.stack.iter().find(|frame| is_known(&frame.file));
    let function = match (own, &access.function) {
        (Some(frame), _) if !is_known(&access.file) => Some(&frame.function),
        (_, function) => function.as_ref(),
    };
    if let Some(function) = function {
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
        (Status::Confirmed, Some(Effect::None)) if finding.kind == FindingKind::Race => {
            "confirmed: a forced run stood before both at once; nothing else changed".into()
        }
        (Status::Confirmed, Some(effect)) => {
            format!("confirmed: {} {}", what_happened(effect), reason.unwrap_or("in a forced run"))
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
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if parts.is_empty() { "nothing found".into() } else { parts.join(", ") }
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

/// What the program did, as the end of a sentence.
fn what_happened(effect: Effect) -> &'static str {
    match effect {
        Effect::Assertion => "the assertion failed",
        Effect::Crash => "the program crashed",
        Effect::Hang => "the program hung",
        Effect::Output => "the output differs",
        Effect::Path => "another path was taken",
        Effect::None => "nothing else changed",
    }
}
