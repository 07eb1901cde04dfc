//! Text for people. For each finding: one headline (what breaks, where, how sure), the source with
//! the accesses of both sides marked, call stacks and held locks, a column for each thread with the
//! steps that matter in the order that breaks the program, why, the fix as a diff, and the command
//! that makes it happen again.

use std::collections::BTreeMap;
use std::io::{self, Write};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::report::{Access, Finding, Report, Status};
use crate::story::{self, Entry};

/// How the text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Colours are allowed.
    pub colour: bool,
    /// Characters of a line.
    pub width: usize,
}

impl Default for Look {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

/// Narrower columns say nothing; then steps are listed one below the other.
const NARROWEST_COLUMN: usize = 20;

/// Wider columns are hard to follow with the eye.
const WIDEST_COLUMN: usize = 44;

/// Lines between two accesses of a file beyond which they are shown apart.
const FURTHEST_LINES: u32 = 2_000;

impl Look {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// Prints a report.
pub fn render(out: &mut impl Write, look: Look, report: &Report) -> io::Result<()> {
    let entries = story::entries(report);
    for entry in &entries {
        self::entry(out, look, report, entry)?;
        writeln!(out)?;
    }
    for finding in report.findings.iter().filter(|finding| finding.suppressed.is_some()) {
        let reason = finding.suppressed.as_ref().map_or("", |suppressed| &suppressed.reason);
        let told = format!("{} [{}]: {}", story::headline(finding), finding.fingerprint, reason);
        writeln!(out, "{} {}", look.paint("2", "suppressed:"), shown(&told))?;
    }
    for sentence in &report.stale_suppressions {
        writeln!(out, "{} {}", look.paint("33", "stale suppression:"), shown(sentence))?;
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
        let (kind, asked) = (property.kind.name(), property.questions);
        writeln!(out, "{kind:<10} {asked:>5} places looked at: {verdict}")?;
    }
    filtered(out, report)?;
    divergences(out, report)?;
    for sentence in report.not_seen() {
        writeln!(out, "{} {}", look.paint("33", "not seen:"), shown(sentence))?;
    }
    for sentence in &report.trace.restrictions {
        writeln!(out, "not varied: {}", shown(sentence))?;
    }
    let suppressed = report.findings.len() - report.active().count();
    let hidden = match suppressed {
        0 => String::new(),
        count => format!("; {count} suppressed"),
    };
    let program = match report.program.command.first() {
        Some(program) => format!("{}: ", shown(program)),
        None => String::new(),
    };
    writeln!(out, "{}", look.bold(&format!("{program}{}{hidden}", story::count(&entries))))
}

/// What the user's filters left out.
fn filtered(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let statistics = &report.statistics;
    let parts = [
        (statistics.filtered_loops, "loops"),
        (statistics.filtered_distant, "too far apart"),
        (statistics.filtered_known_good, "in a known-good run"),
    ];
    let total: usize = parts.iter().map(|(count, _)| count).sum();
    if total == 0 {
        return Ok(());
    }
    let told: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    writeln!(out, "{:<10} {total:>5} patterns left out: {}", "filtered", told.join(", "))
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

/// One finding.
pub(crate) fn entry(
    out: &mut impl Write,
    look: Look,
    report: &Report,
    entry: &Entry,
) -> io::Result<()> {
    let finding = entry.finding;
    let colour = match finding.status {
        Status::Confirmed | Status::Predicted => "31;1",
        Status::Unknown => "33;1",
        Status::Refuted => "32;1",
    };
    let head = look.paint(colour, &format!("{}[{}]", finding.status.name(), finding.kind.name()));
    writeln!(out, "{head}: {}", look.bold(&shown(&story::headline(finding))))?;
    let label = |text: &str| look.paint("36;1", text);
    wrapped(out, look, "", &finding.detail)?;
    wrapped(out, look, "", &story::certainty(finding))?;
    source(out, look, report, finding)?;
    sides(out, look, finding)?;
    columns(out, look, report, finding)?;
    if let Some(forced) = &finding.forced {
        let run = if finding.reason.is_some() { "the run:" } else { "forced run:" };
        wrapped(out, look, run, &format!("ended with {}", forced.ended))?;
        if let Some(branch) = &forced.first_differing_branch {
            let place = story::place(branch.file.as_deref(), branch.line).unwrap_or_default();
            let text = branch.text.as_deref().unwrap_or_default();
            let text = if text.is_empty() { String::new() } else { format!(": {text}") };
            wrapped(out, look, "", &format!("first other branch at {place}{text}"))?;
        }
        for text in forced.output_difference.iter().chain(&forced.stderr) {
            diff(out, look, text)?;
        }
    }
    if let Some(explanation) = &finding.explanation {
        wrapped(out, look, "why:", &explanation.text)?;
        if let Some(edge) = &explanation.edge {
            let event = |name: &crate::report::EventName| {
                let place = story::place(name.file.as_deref(), name.line);
                let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
                shown(&format!("{}{place}", name.name))
            };
            let (before, after) = (event(&edge.before), event(&edge.after));
            wrapped(out, look, "", &format!("it goes wrong when {before} comes before {after}"))?;
        }
    }
    if let Some(fix) = &finding.fix {
        let sure = match (fix.verified, &fix.reason) {
            (true, _) => "verified: no bad interleaving is left".to_owned(),
            (false, Some(reason)) => format!("not verified: {}", shown(reason)),
            (false, None) => "not verified".to_owned(),
        };
        wrapped(out, look, "fix:", &format!("{} ({sure})", fix.text.trim_end()))?;
        if let Some(text) = &fix.diff {
            diff(out, look, text)?;
        }
    }
    match (&finding.replay, &finding.schedule) {
        (Some(command), _) => writeln!(out, "  {} {}", label("replay:"), shown(command))?,
        (None, Some(file)) => writeln!(out, "  {} {}", label("schedule:"), shown(file))?,
        (None, None) => {}
    }
    let threads = entry.others.iter().filter(|other| other.group == finding.group).count();
    if threads > 0 {
        writeln!(out, "  {} {threads} more at the same places with other threads", label("also:"))?;
    }
    let also = entry.also();
    if !also.is_empty() {
        writeln!(out, "  {} {} at the same places", label("also:"), also.join(", "))?;
    }
    writeln!(out, "  {} {}", label("fingerprint:"), shown(&finding.fingerprint))
}

/// A sentence in lines of the allowed width, after a label.
fn wrapped(out: &mut impl Write, look: Look, label: &str, text: &str) -> io::Result<()> {
    let mut used = 2 + length(label);
    write!(out, "  {}", look.paint("36;1", label))?;
    let mut first = label.is_empty();
    for word in shown(text).split_whitespace() {
        if used + 1 + length(word) > look.width && used > 4 {
            write!(out, "\n    ")?;
            used = 4;
            first = true;
        }
        write!(out, "{}{word}", if first { "" } else { " " })?;
        used += usize::from(!first) + length(word);
        first = false;
    }
    writeln!(out)
}

/// The source with the accesses of both sides marked.
fn source(out: &mut impl Write, look: Look, report: &Report, finding: &Finding) -> io::Result<()> {
    let mut marks: BTreeMap<(&str, u32, u32), Vec<String>> = BTreeMap::new();
    for (number, access) in finding.accesses.iter().enumerate() {
        let (Some(file), Some(line)) = (access.file.as_deref(), access.line) else { continue };
        if report.source_line(file, line).is_none() {
            continue;
        }
        let number =
            if finding.accesses.len() > 1 { format!("{}. ", number + 1) } else { "".into() };
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

fn shown_line(line: &str) -> String {
    shown(&line.replace('\t', "    "))
}

/// Each side: what it does, the locks it holds, and how it came there.
fn sides(out: &mut impl Write, look: Look, finding: &Finding) -> io::Result<()> {
    let mut sides: Vec<(&Access, Vec<&Access>)> = Vec::new();
    for access in &finding.accesses {
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
        for access in accesses {
            let Some((top, callers)) = access.stack.split_first() else { continue };
            let place = story::place(top.file.as_deref(), top.line).unwrap_or_default();
            write!(out, "    {} in {}", shown(&access.op), shown(&top.function))?;
            if !place.is_empty() {
                write!(out, " at {}", shown(&place))?;
            }
            for frame in callers {
                write!(out, ", called by {}", shown(&frame.function))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The steps that matter in the order that breaks the program, a column for each thread.
fn columns(out: &mut impl Write, look: Look, report: &Report, finding: &Finding) -> io::Result<()> {
    struct Step {
        thread: String,
        text: String,
        place: String,
        taking_part: bool,
    }
    let place = |file: Option<&str>, line: Option<u32>| {
        let short = file.map(|file| file.rsplit('/').next().unwrap_or(file));
        story::place(short, line).map(|place| format!("  {place}")).unwrap_or_default()
    };
    let mut steps: Vec<Step> = Vec::new();
    match &finding.timeline {
        Some(timeline) => {
            for &id in &timeline.steps {
                let Some(event) = report.event(id) else { continue };
                steps.push(Step {
                    thread: shown(&report.thread_name(event.thread)),
                    text: shown(&story::step_text(report, finding, id)),
                    place: shown(&place(event.file.as_deref(), event.line)),
                    taking_part: finding.accesses.iter().any(|access| access.event == Some(id)),
                });
            }
        }
        None => {
            for access in &finding.accesses {
                let variable = access.variable.as_deref().unwrap_or_default();
                steps.push(Step {
                    thread: shown(&access.thread),
                    text: shown(format!("{} {variable}", access.op).trim_end()),
                    place: shown(&place(access.file.as_deref(), access.line)),
                    taking_part: true,
                });
            }
        }
    }
    if steps.is_empty() {
        return Ok(());
    }
    let mut threads: Vec<&str> = Vec::new();
    for step in &steps {
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
        let text = if length(&whole) <= free { whole } else { fit(&step.text, free) };
        let indent = column * width;
        writeln!(out, "  {:>3} {:indent$}{}", number + 1, "", paint(step, text.trim_end()))?;
    }
    Ok(())
}

fn length(text: &str) -> usize {
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

fn diff(out: &mut impl Write, look: Look, text: &str) -> io::Result<()> {
    for line in text.lines() {
        let colour = match line.as_bytes().first() {
            Some(b'+') => "32",
            Some(b'-') => "31",
            Some(b'@') => "36",
            _ => "0",
        };
        writeln!(out, "    {}", look.paint(colour, &shown_line(line)))?;
    }
    Ok(())
}

/// The text with everything that could fool a terminal or a reader (control characters, marks that
/// change the writing direction) written out.
pub fn shown(text: &str) -> String {
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
