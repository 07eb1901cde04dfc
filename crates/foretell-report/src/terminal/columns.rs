//! Steps in columns, one for each thread.

use std::io::{self, Write};

use super::{Look, NARROWEST_COLUMN, WIDEST_COLUMN, shown};
use crate::report::{Access, Finding, Report};
use crate::story::{self};

/// A step that matters.
pub(super) struct Step {
    /// Absent where the finding has no order.
    pub(super) event: Option<u32>,
    thread: String,
    text: String,
    place: String,
    taking_part: bool,
}

/// The steps that matter, in the order that breaks the program.
pub(super) fn steps(report: &Report, finding: &Finding) -> Vec<Step> {
    let place = |file: Option<&str>, line: Option<u32>| {
        let short = file.map(|file| file.rsplit('/').next().unwrap_or(file));
        story::place(short, line).map(|place| format!("  {place}")).unwrap_or_default()
    };
    let of_access = |access: &Access, before: &str| {
        let variable = access.variable.as_deref().unwrap_or_default();
        Step {
            event: access.event,
            thread: shown(&access.thread),
            text: shown(format!("{before}{} {variable}", access.op).trim_end()),
            place: shown(&place(access.file.as_deref(), access.line)),
            taking_part: true,
        }
    };
    let Some(timeline) = &finding.timeline else {
        return finding.accesses.iter().map(|access| of_access(access, "")).collect();
    };
    let events = timeline.steps.iter().filter_map(|&id| report.event(id));
    let mut steps: Vec<Step> = events
        .map(|event| Step {
            event: Some(event.id),
            thread: shown(&report.thread_name(event.thread)),
            text: shown(&story::step_text(report, finding, event.id)),
            place: shown(&place(event.file.as_deref(), event.line)),
            taking_part: finding.accesses.iter().any(|access| access.event == Some(event.id)),
        })
        .collect();
    // What should have been first and is not there yet.
    for access in &finding.accesses {
        let is_there = |id: u32| {
            timeline.steps.contains(&id)
                || timeline.predicted.contains(&id)
                || timeline.next.contains(&id)
        };
        if access.event.is_some_and(|id| !is_there(id)) {
            steps.push(of_access(access, "still to come: "));
        }
    }
    steps
}

/// The steps, a column for each thread.
pub(super) fn columns(
    out: &mut impl Write,
    look: Look,
    finding: &Finding,
    steps: &[Step],
) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let mut threads: Vec<&str> = Vec::new();
    for step in steps {
        if !threads.contains(&step.thread.as_str()) {
            threads.push(&step.thread);
        }
    }
    let title = match &finding.timeline {
        Some(_) => "in this order it goes wrong:",
        None => "in question:",
    };
    writeln!(out, "  {}", look.paint("36;1", title))?;
    let room = look.width.saturating_sub(6) / threads.len();
    let wide = steps.iter().map(|step| length(&step.text) + length(&step.place)).max().unwrap_or(0);
    let wide = threads.iter().map(|name| length(name)).max().unwrap_or(0).max(wide) + 2;
    let paint = |step: &Step, text: &str| match step.taking_part {
        true => look.bold(text),
        false => text.to_owned(),
    };
    if room < NARROWEST_COLUMN {
        for (number, step) in steps.iter().enumerate() {
            let text = format!("{}: {}{}", step.thread, step.text, step.place);
            writeln!(out, "  {:>3} {}", number + 1, paint(step, &text))?;
        }
        return Ok(());
    }
    let width = room.min(WIDEST_COLUMN).min(wide).max(NARROWEST_COLUMN.min(room));
    let heads: String = threads.iter().map(|name| fit(name, width)).collect();
    writeln!(out, "      {}", look.bold(heads.trim_end()))?;
    for (number, step) in steps.iter().enumerate() {
        let column = threads.iter().position(|&thread| thread == step.thread).unwrap_or(0);
        // The last column may be as wide as the line; what does not fit loses its place first.
        let free = match column + 1 == threads.len() {
            true => look.width.saturating_sub(6 + column * width),
            false => width - 1,
        };
        let whole = format!("{}{}", step.text, step.place);
        let text = if length(&whole) <= free { whole } else { squeezed(&step.text, free) };
        let indent = column * width;
        writeln!(out, "  {:>3} {:indent$}{}", number + 1, "", paint(step, text.trim_end()))?;
    }
    Ok(())
}

pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// Exactly so many characters; what is cut off ends with `…`.
fn fit(text: &str, width: usize) -> String {
    if length(text) <= width {
        return format!("{text:<width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    format!("{:<width$}", kept + "…")
}

/// At most so many characters; what is cut out is the middle of a name, not its value.
pub(super) fn squeezed(text: &str, width: usize) -> String {
    let (name, value) = text.split_at(text.rfind(" = ").unwrap_or(text.len()));
    match width.checked_sub(length(value)) {
        Some(room) if length(text) > width && room > 8 => {
            fit(name, room).trim_end().to_owned() + value
        }
        _ => fit(text, width),
    }
}
