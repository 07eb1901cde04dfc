//! Text for people: one headline for each finding, then a column for each thread with the steps
//! that matter, in the order that breaks the program.

use std::io::{self, Write};

use crate::report::{Access, Finding, Report, Status};

/// How the text may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Colours are allowed.
    pub colour: bool,
}

impl Look {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Prints a report.
pub fn render(out: &mut impl Write, look: Look, report: &Report) -> io::Result<()> {
    let mut shown_groups: Vec<&str> = Vec::new();
    for found in &report.findings {
        if shown_groups.contains(&found.group.as_str()) {
            continue;
        }
        shown_groups.push(&found.group);
        let same = report.findings.iter().filter(|other| other.group == found.group).count();
        finding(out, look, found)?;
        if same > 1 {
            writeln!(out, "  and {} more at the same places with other threads", same - 1)?;
        }
        writeln!(out)?;
    }
    for property in &report.properties {
        let verdict = match (property.predicted, property.unknown) {
            (0, 0) if property.questions == 0 => "nothing to look at".to_owned(),
            (0, 0) if property.holds_in_all_interleavings => {
                "holds in all interleavings of these events".to_owned()
            }
            (0, 0) => "nothing found".to_owned(),
            (predicted, 0) => format!("{predicted} predicted"),
            (predicted, unknown) => format!("{predicted} predicted, {unknown} undecided"),
        };
        writeln!(
            out,
            "{:<10} {:>5} places looked at: {verdict}",
            property.kind.name(),
            property.questions
        )?;
    }
    divergences(out, report)?;
    for sentence in report.not_seen() {
        writeln!(out, "{} {}", look.paint("33", "not seen:"), shown(sentence))?;
    }
    for sentence in &report.trace.restrictions {
        writeln!(out, "not varied: {}", shown(sentence))?;
    }
    Ok(())
}

/// One line: what to try on the program. Each place is in the JSON, and has its schedule.
fn divergences(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let statistics = &report.statistics;
    if statistics.divergence_questions == 0 {
        return Ok(());
    }
    let first = report.divergences.first().map(|found| format!(", e.g. {}", shown(&found.detail)));
    let undecided = match statistics.divergences_undecided {
        0 => String::new(),
        undecided => format!(", {undecided} undecided"),
    };
    writeln!(
        out,
        "{:<10} {:>5} places looked at: {} can leave the recorded path{undecided}{}",
        "beyond",
        statistics.divergence_questions,
        report.divergences.len(),
        first.unwrap_or_default()
    )
}

fn finding(out: &mut impl Write, look: Look, finding: &Finding) -> io::Result<()> {
    let colour = if finding.status == Status::Unknown { "33;1" } else { "31;1" };
    let status = match &finding.reason {
        Some(reason) => format!("{} ({})", finding.status.name(), shown(reason)),
        None => finding.status.name().to_owned(),
    };
    let head = look.paint(colour, finding.kind.name());
    writeln!(out, "{head}: {}", shown(&finding.detail))?;
    columns(out, finding)?;
    write!(out, "  {status}")?;
    if let Some(switches) = finding.context_switches {
        write!(out, "; {switches} context switches")?;
    }
    if let Some(schedule) = &finding.schedule {
        write!(out, "; schedule {schedule}")?;
    }
    writeln!(out)
}

/// The accesses of a finding in the order that breaks the program, a column for each thread.
fn columns(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    const WIDTH: usize = 38;
    let mut steps: Vec<&Access> = finding.accesses.iter().collect();
    if let Some(timeline) = &finding.timeline {
        let at =
            |access: &Access| timeline.steps.iter().position(|&step| Some(step) == access.event);
        steps.sort_by_key(|access| at(access));
    }
    let mut threads: Vec<&str> = Vec::new();
    for step in &steps {
        if !threads.contains(&step.thread.as_str()) {
            threads.push(&step.thread);
        }
    }
    let heads: String = threads.iter().map(|name| format!("{:<WIDTH$}", shown(name))).collect();
    writeln!(out, "    {}", heads.trim_end())?;
    for step in steps {
        let column = threads.iter().position(|&thread| thread == step.thread).unwrap_or(0);
        let mut line = step.op.clone();
        if let Some(variable) = &step.variable {
            line += &format!(" {}", shown(variable));
        }
        if let (Some(file), Some(number)) = (&step.file, step.line) {
            line += &format!("  {}:{number}", shown(file));
        }
        writeln!(out, "    {:indent$}{line}", "", indent = column * WIDTH)?;
    }
    Ok(())
}

/// The text with everything that could fool a terminal or a reader (control characters, marks that
/// change the writing direction) written out.
fn shown(text: &str) -> String {
    let deceptive = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        if deceptive(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn nothing_in_a_name_reaches_the_terminal_as_a_command() {
        assert_eq!(shown("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(shown("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(shown("größe"), "größe");
    }
}
