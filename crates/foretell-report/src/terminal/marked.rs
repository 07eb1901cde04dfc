//! Source lines with the accesses of both sides marked.

use std::collections::BTreeMap;
use std::io::{self, Write};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::columns::Step;
use super::{FURTHEST_LINES, Look, brief, shown, wrapped};
use crate::report::{Access, Finding, Report};
use crate::story::{self};

/// An access that the source shows, with the number of its step.
pub(super) struct Marked {
    number: Option<usize>,
    access: Access,
}

/// What the source marks: the accesses of the finding. One that goes wrong alone, an assertion say,
/// does so because of what others did before: their steps are marked, too.
pub(super) fn marked(report: &Report, finding: &Finding, steps: &[Step]) -> Vec<Marked> {
    /// More would hide the source.
    const MOST: usize = 8;
    let number = |event: Option<u32>| {
        let at = steps.iter().position(|step| step.event.is_some() && step.event == event);
        at.map(|at| at + 1)
    };
    let mut marked: Vec<Marked> = finding
        .accesses
        .iter()
        .enumerate()
        .map(|(at, access)| Marked {
            // Without an order, the steps are the accesses.
            number: if finding.timeline.is_some() { number(access.event) } else { Some(at + 1) },
            access: access.clone(),
        })
        .collect();
    if let [one] = &*marked {
        let place = |access: &Access| (access.thread.clone(), access.file.clone(), access.line);
        let own = place(&one.access);
        let events = steps.iter().filter_map(|step| report.event(step.event?));
        let others = events.map(|event| Marked {
            number: number(Some(event.id)),
            access: story::access(report, event),
        });
        let mut known = vec![own];
        let mut others: Vec<Marked> = others
            .filter(|other| {
                let place = place(&other.access);
                let is_new = !known.contains(&place);
                known.push(place);
                is_new
            })
            .collect();
        // How it begins and how it ends says most.
        if others.len() > MOST {
            others.drain(MOST / 2..others.len() - MOST / 2);
        }
        marked.splice(0..0, others);
    }
    marked
}

/// The source with the accesses of both sides marked.
pub(super) fn source(
    out: &mut impl Write,
    look: Look,
    report: &Report,
    marked: &[Marked],
) -> io::Result<()> {
    let mut marks: BTreeMap<(&str, u32, u32), Vec<String>> = BTreeMap::new();
    for Marked { number, access } in marked {
        let (Some(file), Some(line)) = (access.file.as_deref(), access.line) else { continue };
        if report.source_line(file, line).is_none() {
            continue;
        }
        let number = match number {
            Some(number) if marked.len() > 1 => format!("{number}. "),
            _ => String::new(),
        };
        let label = format!("{number}{} by {}", access.op, shown(&access.thread));
        marks.entry((file, line, access.column.unwrap_or(0))).or_default().push(label);
    }
    // Places that are far apart in a file, or in two files, are shown one after the other.
    let mut parts: Vec<Vec<(&str, u32, u32)>> = Vec::new();
    for &mark in marks.keys() {
        match parts.last_mut() {
            Some(part)
                if part.iter().all(|known| {
                    known.0 == mark.0 && mark.1.abs_diff(known.1) < FURTHEST_LINES
                }) =>
            {
                part.push(mark);
            }
            _ => parts.push(vec![mark]),
        }
    }
    for part in parts {
        let (file, first, _) = part[0];
        let last = part[part.len() - 1].1;
        let (first, last) = (first.saturating_sub(1).max(1), last.saturating_add(1));
        let mut text = String::new();
        let mut spans = Vec::new();
        for line in first..=last {
            let known = report.source_line(file, line);
            for mark in part.iter().filter(|mark| mark.1 == line) {
                let (from, to) = span(known.unwrap_or_default(), mark.2);
                for (count, label) in marks[mark].iter().enumerate() {
                    spans.push((text.len() + from..text.len() + to, label, count == 0));
                }
            }
            text += &shown_line(known.unwrap_or_default());
            if line < last {
                text.push('\n');
            }
        }
        let path = shown(file);
        let mut snippet = Snippet::source(text).line_start(first as usize).path(path).fold(true);
        for (range, label, _) in spans {
            snippet = snippet.annotation(AnnotationKind::Primary.span(range).label(label.as_str()));
        }
        let renderer = if look.colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(look.width);
        let group = [Group::with_level(Level::ERROR).element(snippet)];
        for line in renderer.render(&group).lines() {
            writeln!(out, "  {}", line.trim_end())?;
        }
    }
    Ok(())
}

/// Where the word at a column stands in the line as it is shown; without a column, the whole line.
fn span(line: &str, column: u32) -> (usize, usize) {
    let trimmed = line.trim_start();
    let from = match column {
        0 => line.len() - trimmed.len(),
        column => (column as usize - 1).min(line.len()),
    };
    let from = (0..=from).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let rest = &line[from..];
    let length = match column {
        0 => rest.trim_end().len(),
        _ => match rest.find(|c| !word(c)).unwrap_or(rest.len()) {
            0 => rest.chars().next().map_or(0, char::len_utf8),
            length => length,
        },
    };
    let start = shown_line(&line[..from]).len();
    let end = shown_line(&line[..from + length]).len();
    (start, end.max(start + usize::from(start < shown_line(line).len())))
}

pub(super) fn shown_line(line: &str) -> String {
    shown(&line.replace('\t', "    "))
}

/// Each side: what it does, the locks it holds, and how it came there.
pub(super) fn sides(
    out: &mut impl Write,
    look: Look,
    report: &Report,
    marked: &[Marked],
) -> io::Result<()> {
    let mut sides: Vec<(&Access, Vec<&Access>)> = Vec::new();
    for Marked { access, .. } in marked {
        let same = sides
            .iter_mut()
            .find(|(first, _)| first.thread == access.thread && first.locks == access.locks);
        match same {
            Some((_, accesses)) => accesses.push(access),
            None => sides.push((access, vec![access])),
        }
    }
    for (first, accesses) in sides {
        let locks = match first.locks.as_slice() {
            [] => "holds no lock".to_owned(),
            locks => {
                let locks: Vec<String> = locks.iter().map(|lock| format!("`{lock}`")).collect();
                format!("holds {}", locks.join(", "))
            }
        };
        writeln!(out, "  {} {}", look.bold(&shown(&first.thread)), shown(&locks))?;
        let mut last = None;
        for access in accesses {
            let Some((top, callers)) = access.stack.split_first() else { continue };
            let place = story::place(top.file.as_deref(), top.line).unwrap_or_default();
            let mut line = format!("  {} in {}", access.op, top.function);
            if !place.is_empty() {
                line += &format!(" at {place}");
            }
            // How the library starts a thread is of no interest.
            for frame in callers.iter().filter(|frame| !frame.function.starts_with("std::")) {
                line += &format!(", called by {}", frame.function);
            }
            if last.as_ref() != Some(&line) {
                wrapped(out, look, " ", &brief(report, line.trim_start()))?;
            }
            last = Some(line);
        }
    }
    Ok(())
}
