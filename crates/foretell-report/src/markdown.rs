//! Markdown, for the description of a merge request or the summary of a CI job: what was found as a table, and a section
//! for each finding with its steps, how to see it again and how to repair it.

use std::io::{self, Write};

use crate::report::{Access, Report};
use crate::story::{self, Entry};
use crate::terminal::shown;

/// Writes the report.
pub fn render(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let entries = story::entries(report);
    let name = report.program.command.first().map_or("foretell", String::as_str);
    writeln!(out, "# foretell: {}: {}", escaped(name), story::count(&entries))?;
    if !entries.is_empty() {
        writeln!(out, "\n| finding | how sure |\n|---|---|")?;
    }
    for entry in &entries {
        let (headline, certainty) =
            (story::headline(entry.finding), story::certainty(entry.finding));
        writeln!(out, "| {} | {} |", escaped(&headline), escaped(&certainty))?;
    }
    for entry in &entries {
        section(out, report, entry)?;
    }
    let limits = story::limits(report);
    if !limits.is_empty() {
        writeln!(out, "\n## What limits the result\n")?;
    }
    for limit in limits {
        writeln!(out, "- {}", escaped(&limit))?;
    }
    if let Some(explored) = &report.exploration {
        writeln!(out, "\n{}", escaped(&story::coverage(explored)))?;
    }
    Ok(())
}

fn section(out: &mut impl Write, report: &Report, entry: &Entry<'_>) -> io::Result<()> {
    let finding = entry.finding;
    writeln!(out, "\n## {}\n", escaped(&story::headline(finding)))?;
    writeln!(
        out,
        "{}. Fingerprint `{}`.",
        escaped(&story::certainty(finding)),
        finding.fingerprint
    )?;
    if !story::why(finding).is_empty() {
        writeln!(out, "\n{}", escaped(story::why(finding)))?;
    }
    if let Some(timeline) = &finding.timeline {
        writeln!(out, "\n| thread | step | at |\n|---|---|---|")?;
        for &id in &timeline.steps {
            let Some(event) = report.events.iter().find(|event| event.id == id) else { continue };
            row(out, &story::access(report, event), &story::step_text(report, finding, id))?;
        }
    } else if !finding.accesses.is_empty() {
        writeln!(out, "\n| thread | step | at |\n|---|---|---|")?;
        for access in &finding.accesses {
            let variable = access.variable.as_deref().unwrap_or_default();
            row(out, access, &format!("{} {variable}", access.op))?;
        }
    }
    let blocked = finding.forced.iter().flat_map(|forced| &forced.blocked);
    for blocked in blocked.filter(|blocked| blocked.waits_for != "nothing") {
        let holder = blocked.held_by.as_ref().map(|thread| format!(", held by {thread}"));
        let name = blocked.name.as_deref().unwrap_or_default();
        let text = format!("{} waits for {} {name}", blocked.thread, blocked.waits_for);
        writeln!(
            out,
            "\n- {}",
            escaped(&format!("{}{}", text.trim_end(), holder.unwrap_or_default()))
        )?;
    }
    if let Some(replay) = &finding.replay {
        writeln!(out, "\nTo see it again:")?;
        fenced(out, "sh", replay)?;
    }
    if let Some(fix) = &finding.fix {
        writeln!(out, "\nRepair: {} ({}).", escaped(&fix.text), escaped(&story::trust_in(fix)))?;
        if let Some(diff) = &fix.diff {
            fenced(out, "diff", diff)?;
        }
    }
    let also = entry.also();
    if !also.is_empty() {
        writeln!(out, "\nThe same bug:\n")?;
    }
    for headline in also {
        writeln!(out, "- {}", escaped(&headline))?;
    }
    Ok(())
}

fn row(out: &mut impl Write, access: &Access, step: &str) -> io::Result<()> {
    let place = story::place(access.file.as_deref(), access.line).unwrap_or_default();
    writeln!(
        out,
        "| {} | {} | {} |",
        escaped(&access.thread),
        escaped(step.trim_end()),
        escaped(&place)
    )
}

/// A block of code; its fence is longer than any row of backticks in it.
fn fenced(out: &mut impl Write, language: &str, text: &str) -> io::Result<()> {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    writeln!(out, "\n{fence}{language}")?;
    for line in text.lines() {
        writeln!(out, "{}", foretell_guard::text::in_a_line(line))?;
    }
    writeln!(out, "{fence}")
}

/// The text on one line, in which nothing is Markdown or HTML. Code that a sentence names stays code.
fn escaped(text: &str) -> String {
    let text = shown(text);
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::new();
    for (number, part) in parts.iter().enumerate() {
        // Every second part is between two backticks, if there is one behind it.
        let in_code = number % 2 == 1 && number + 1 < parts.len();
        match number {
            0 => {}
            _ if in_code || number % 2 == 0 => out.push('`'),
            _ => out.push_str("\\`"),
        }
        for letter in part.chars() {
            match letter {
                // Tables end their cells at it even in code.
                '|' => out.push_str("\\|"),
                '&' if !in_code => out.push_str("&amp;"),
                '<' if !in_code => out.push_str("&lt;"),
                '*' | '_' | '[' | ']' | '#' | '\\' | '~' if !in_code => out.extend(['\\', letter]),
                letter => out.push(letter),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{escaped, fenced};

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("a_b * <c> | d"), "a\\_b \\* &lt;c> \\| d");
        assert_eq!(escaped("race on `a_b<c>` in f"), "race on `a_b<c>` in f");
        assert_eq!(escaped("one ` alone_"), "one \\` alone\\_");
        assert_eq!(escaped("`a_` and ` alone"), "`a_` and \\` alone");
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let mut out = Vec::new();
        fenced(&mut out, "diff", "+a ```` b").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\n`````diff\n+a ```` b\n`````\n");
    }
}
