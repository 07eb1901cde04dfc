//! Text for people: one headline for each finding, then a column for each thread with the steps
//! that matter, in the order that breaks the program.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use foretell_predict::{AccessInfo, Divergences, Finding, Prediction, Status};
use foretell_trace::Trace;

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

/// Prints what `foretell predict` found.
pub fn prediction(
    out: &mut impl Write,
    look: Look,
    trace: &Trace,
    prediction: &Prediction,
    schedules: &BTreeMap<String, PathBuf>,
) -> io::Result<()> {
    let mut shown_groups: Vec<&str> = Vec::new();
    for found in &prediction.findings {
        if shown_groups.contains(&found.group.as_str()) {
            continue;
        }
        shown_groups.push(&found.group);
        let same = prediction.findings.iter().filter(|other| other.group == found.group).count();
        finding(out, look, trace, found, schedules.get(&found.id))?;
        if same > 1 {
            writeln!(out, "  and {} more at the same places with other threads", same - 1)?;
        }
        writeln!(out)?;
    }
    for property in &prediction.properties {
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
    divergences(out, &prediction.divergences)?;
    let gaps = trace.metadata.gaps.iter().map(AsRef::as_ref);
    let mut said: Vec<&str> = Vec::new();
    for sentence in gaps.chain(prediction.unseen.iter().map(String::as_str)) {
        if !said.contains(&sentence) {
            said.push(sentence);
            writeln!(out, "{} {}", look.paint("33", "not seen:"), shown(sentence))?;
        }
    }
    Ok(())
}

/// One line: what to try on the program. Each place is in the JSON, and has its schedule.
fn divergences(out: &mut impl Write, divergences: &Divergences) -> io::Result<()> {
    if divergences.asked == 0 && divergences.unseen.is_empty() {
        return Ok(());
    }
    let first = divergences.found.first().map(|found| format!(", e.g. {}", shown(&found.detail)));
    let undecided = match divergences.undecided {
        0 => String::new(),
        undecided => format!(", {undecided} undecided"),
    };
    writeln!(
        out,
        "{:<10} {:>5} places looked at: {} can leave the recorded path{undecided}{}",
        "beyond",
        divergences.asked,
        divergences.found.len(),
        first.unwrap_or_default()
    )
}

fn finding(
    out: &mut impl Write,
    look: Look,
    trace: &Trace,
    finding: &Finding,
    schedule: Option<&PathBuf>,
) -> io::Result<()> {
    let (colour, status) = match &finding.status {
        Status::Predicted => ("31;1", "predicted".to_owned()),
        Status::Unknown(reason) => ("33;1", format!("undecided ({reason})")),
    };
    let head = look.paint(colour, finding.kind.name());
    writeln!(out, "{head}: {}", shown(&finding.detail))?;
    columns(out, trace, finding)?;
    match (&finding.schedule, schedule) {
        (Some(witness), Some(path)) => writeln!(
            out,
            "  {status}; {} context switches; schedule {}",
            witness.context_switches,
            path.display()
        )?,
        (Some(witness), None) => {
            writeln!(out, "  {status}; {} context switches", witness.context_switches)?;
        }
        (None, _) => writeln!(out, "  {status}")?,
    }
    Ok(())
}

/// The accesses of a finding in the order that breaks the program, a column for each thread.
fn columns(out: &mut impl Write, trace: &Trace, finding: &Finding) -> io::Result<()> {
    const WIDTH: usize = 38;
    let mut steps: Vec<&AccessInfo> = finding.accesses.iter().collect();
    if let Some(schedule) = &finding.schedule {
        let place = |access: &AccessInfo| {
            let at = schedule.order.iter().position(|&event| event == access.event);
            let recorded = access.event.index() < schedule.recorded;
            if recorded {
                access.event.index()
            } else {
                schedule.recorded + at.unwrap_or(usize::MAX / 2)
            }
        };
        steps.sort_by_key(|access| place(access));
    }
    let mut threads = Vec::new();
    for step in &steps {
        if !threads.contains(&step.thread) {
            threads.push(step.thread);
        }
    }
    let name = |thread: &foretell_trace::ThreadId| shown(&trace.threads[thread.index()].name);
    let heads: String = threads.iter().map(|thread| format!("{:<WIDTH$}", name(thread))).collect();
    writeln!(out, "    {}", heads.trim_end())?;
    for step in steps {
        let column = threads.iter().position(|&thread| thread == step.thread).unwrap_or(0);
        let mut line = step.op.to_owned();
        if let Some(variable) = &step.variable {
            line += &format!(" {}", shown(variable));
        }
        if let Some(site) = step.site {
            let site = &trace.sites[site.index()];
            line += &format!("  {}:{}", shown(&site.file), site.line);
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
