//! Text for people. For each finding: one headline (what breaks, where, how sure), the source with
//! the accesses of both sides marked, call stacks and held locks, a column for each thread with the
//! steps that matter in the order that breaks the program, why, the fix as a diff, and the command
//! that makes it happen again.

mod columns;
mod marked;

use std::io::{self, Write};

use crate::report::{EndKind, Finding, Property, Report, Status};
use crate::story::{self, Entry};
use columns::{columns, length, steps};
use marked::{marked, shown_line, sides, source};

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

/// Further headlines of one bug that are shown.
const ALSO_SHOWN: usize = 5;

/// Prints a report.
pub fn render(out: &mut impl Write, look: Look, report: &Report) -> io::Result<()> {
    let entries = story::entries(report);
    let mut diffs: Vec<&str> = Vec::new();
    let counted = counted(&entries);
    let is_counted = |entry: &&Entry<'_>| {
        entry.finding.status == Status::Unknown
            && counted.iter().any(|(first, _)| first.kind == entry.finding.kind)
    };
    for entry in entries.iter().filter(|entry| !is_counted(entry)) {
        let own = entry.finding.fix.as_ref().and_then(|fix| fix.diff.as_deref());
        let known = own.is_some_and(|diff| diffs.contains(&diff));
        self::entry(out, look, report, entry, known)?;
        diffs.extend(own);
        writeln!(out)?;
    }
    for (first, count) in &counted {
        let head = look.paint("33;1", &format!("{}[{}]:", first.status.name(), first.kind.name()));
        let text = shown(&story::headline(first));
        let why = first.reason.as_deref().map(|why| format!(" ({})", shown(why)));
        let why = why.unwrap_or_default();
        writeln!(out, "{head} {count} questions, such as {text}{why}; --json lists all")?;
    }
    for finding in report.findings.iter().filter(|finding| finding.suppressed.is_some()) {
        let reason = finding.suppressed.as_ref().map_or("", |suppressed| &suppressed.reason);
        let text = format!("{} [{}]: {}", story::headline(finding), finding.fingerprint, reason);
        writeln!(out, "{} {}", look.paint("2", "suppressed:"), shown(&text))?;
    }
    for sentence in &report.stale_suppressions {
        writeln!(out, "{} {}", look.paint("33", "stale suppression:"), shown(sentence))?;
    }
    let (looked, not): (Vec<&Property>, Vec<&Property>) =
        report.properties.iter().partition(|property| property.questions > 0);
    for property in looked {
        let verdict = match (property.predicted, property.unknown) {
            (0, 0) if report.active().any(|finding| finding.kind == property.kind) => {
                "holds in all interleavings of the recorded events; fails on another path"
                    .to_owned()
            }
            (0, 0) if property.holds_in_all_interleavings => {
                "holds in all interleavings of these events".to_owned()
            }
            (0, 0) => "nothing found".to_owned(),
            (predicted, 0) => format!("{predicted} predicted"),
            (predicted, unknown) => format!("{predicted} predicted, {unknown} undecided"),
        };
        let (kind, asked) = (property.kind.name(), property.questions);
        writeln!(out, "{kind:<10} {asked:>5} checked: {verdict}")?;
    }
    if !not.is_empty() {
        let kinds: Vec<&str> = not.iter().map(|property| property.kind.name()).collect();
        writeln!(out, "not applicable: {}", kinds.join(", "))?;
    }
    filtered(out, report)?;
    divergences(out, look, report)?;
    forced(out, look, report)?;
    for sentence in report.not_seen() {
        writeln!(out, "{} {}", look.paint("33", "not seen:"), shown(sentence))?;
    }
    for sentence in &report.trace.restrictions {
        writeln!(out, "not varied: {}", shown(sentence))?;
    }
    for file in &report.config.files {
        writeln!(out, "options from: {}", shown(file))?;
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
    let covered = report.exploration.as_ref().map(|found| format!("; {}", story::coverage(found)));
    let covered = covered.unwrap_or_default();
    writeln!(
        out,
        "{}",
        look.bold(&format!("{program}{}{hidden}{covered}", story::count(&entries)))
    )?;
    match report.exploration.as_ref().and_then(|explored| explored.go_on.as_ref()) {
        Some(command) => writeln!(out, "to go on: {}", shown(command)),
        None => Ok(()),
    }
}

/// More undecided questions of a kind than these are counted, not shown.
const UNDECIDED_SHOWN: usize = 3;

/// Of each kind with more undecided questions than anybody reads, the first, and how many there are.
fn counted<'r>(entries: &[Entry<'r>]) -> Vec<(&'r Finding, usize)> {
    let mut kinds: Vec<(&Finding, usize)> = Vec::new();
    for finding in entries.iter().map(|entry| entry.finding) {
        if finding.status != Status::Unknown {
            continue;
        }
        match kinds.iter_mut().find(|(first, _)| first.kind == finding.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((finding, 1)),
        }
    }
    kinds.retain(|(_, count)| *count > UNDECIDED_SHOWN);
    kinds
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
    let text: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    writeln!(out, "{:<10} {total:>5} patterns left out: {}", "filtered", text.join(", "))
}

/// How a run ended, as the end of a sentence.
fn how(ended: &str, end: Option<EndKind>) -> String {
    match end {
        Some(EndKind::TimeLimit | EndKind::Stopped) => format!("was {ended}"),
        Some(EndKind::LeftSchedule) => ended.to_owned(),
        Some(EndKind::NotRun) => format!("could not be made: {ended}"),
        _ => format!("ended with {ended}"),
    }
}

/// What was forced, of a result of `foretell test`.
fn forced(out: &mut impl Write, look: Look, report: &Report) -> io::Result<()> {
    let Some(test) = &report.statistics.test else { return Ok(()) };
    match test.recorded_end_kind {
        Some(EndKind::Success) => {}
        None if test.recorded_end.is_empty() => {}
        end => {
            let how = how(&test.recorded_end, end);
            writeln!(out, "recorded   the recorded run {}", shown(&how))?;
        }
    }
    writeln!(
        out,
        "forced     {:>5} runs, {} behaviours: {} confirmed, {} refuted, {} not tried",
        test.runs, test.behaviours, test.confirmed, test.refuted, test.open,
    )?;
    match test.folded {
        0 => {}
        folded => writeln!(out, "benign     {folded:>5} happened without a visible effect")?,
    }
    let Some(explored) = &report.exploration else { return Ok(()) };
    let walks = match explored.walks {
        0 => String::new(),
        1 => ", 1 random walk".into(),
        walks => format!(", {walks} random walks"),
    };
    writeln!(
        out,
        "explored   {:>5} {} of paths, {} questions asked, {} open{walks}",
        explored.classes,
        if explored.classes == 1 { "class" } else { "classes" },
        explored.questions,
        explored.open
    )?;
    for open in &explored.reasons {
        let questions = if open.questions == 1 { "question" } else { "questions" };
        let text = format!("{} {questions}: {}", open.questions, open.reason);
        wrapped(out, look, "open:", &text)?;
    }
    Ok(())
}

/// One line: what to try on the program. Each place is in the JSON, and has its schedule.
fn divergences(out: &mut impl Write, look: Look, report: &Report) -> io::Result<()> {
    let statistics = &report.statistics;
    if statistics.divergence_questions == 0 {
        return Ok(());
    }
    let undecided = match statistics.divergences_undecided {
        0 => String::new(),
        undecided => format!(", {undecided} undecided"),
    };
    writeln!(
        out,
        "{:<10} {:>5} checked: {} can leave the recorded path{undecided}",
        "beyond",
        statistics.divergence_questions,
        report.divergences.len(),
    )?;
    match report.divergences.first() {
        Some(found) => wrapped(out, look, "e.g.", &brief(report, &found.detail)),
        None => Ok(()),
    }
}

/// One finding.
///
/// `known_diff`: its fix was shown with an earlier finding.
pub(crate) fn entry(
    out: &mut impl Write,
    look: Look,
    report: &Report,
    entry: &Entry,
    known_diff: bool,
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
    let brief = |text: &str| brief(report, text);
    wrapped(out, look, "", &story::certainty(finding))?;
    wrapped(out, look, "", &brief(&finding.detail))?;
    let steps = steps(report, finding);
    let marked = marked(report, finding, &steps);
    source(out, look, report, &marked)?;
    sides(out, look, report, &marked)?;
    columns(out, look, finding, &steps)?;
    if let Some(forced) = &finding.forced {
        let run = if finding.reason.is_some() { "the run:" } else { "forced run:" };
        let before = match forced.runs_before {
            None | Some(0) => String::new(),
            Some(1) => " (after 1 run)".into(),
            Some(runs) => format!(" (after {runs} runs)"),
        };
        wrapped(out, look, run, &brief(&(how(&forced.ended, forced.end) + &before)))?;
        if let Some(branch) = story::other_branch(forced) {
            wrapped(out, look, "", &brief(&format!("first other branch at {branch}")))?;
        }
        if let Some(text) = &forced.output_difference {
            wrapped(out, look, "output:", "recorded (-) and forced (+)")?;
            diff(out, look, text)?;
        }
        if let Some(text) = &forced.stderr {
            wrapped(out, look, "its standard error:", "")?;
            diff(out, look, text)?;
        }
    }
    if let Some(explanation) = &finding.explanation {
        wrapped(out, look, "why:", &brief(story::why(finding)))?;
        if let Some(edge) = &explanation.edge {
            let event = |name: &crate::report::EventName| match story::place(
                name.file.as_deref(),
                name.line,
            ) {
                Some(place) => brief(&format!("{place} of `{}`", name.thread)),
                None => name.name.clone(),
            };
            let (before, after) = (event(&edge.before), event(&edge.after));
            wrapped(out, look, "", &format!("it goes wrong when {before} comes before {after}"))?;
        }
    }
    if let Some(fix) = &finding.fix {
        let sure = story::trust_in(fix);
        wrapped(out, look, "fix:", &brief(&format!("{} ({})", fix.text.trim_end(), shown(&sure))))?;
        match &fix.diff {
            Some(_) if known_diff => writeln!(out, "    (the same diff as above)")?,
            Some(text) => diff(out, look, text)?,
            None => {}
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
    for other in also.iter().take(ALSO_SHOWN) {
        wrapped(out, look, "also seen as:", &brief(other))?;
    }
    if also.len() > ALSO_SHOWN {
        wrapped(out, look, "", &format!("and {} more", also.len() - ALSO_SHOWN))?;
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

/// A sentence with files named without their folders, where that is clear.
fn brief(report: &Report, text: &str) -> String {
    let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let mut short = text.to_owned();
    // The longest first: one path can be the end of another.
    let mut files: Vec<&String> = report.sources.keys().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.len()));
    for file in files {
        let is_clear = report.sources.keys().filter(|other| name(other) == name(file)).count() == 1;
        if is_clear {
            short = without_folder(&short, file, &name(file));
        }
    }
    // Nobody looks for a header of the library by its folder.
    let words = short.split(' ').map(|word| match word.starts_with("/usr/") {
        true => name(word),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The text with a path replaced where it is not the end of a longer one.
fn without_folder(text: &str, path: &str, name: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let (before, found) = rest.split_at(at);
        result += before;
        let inside = result.ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c));
        result += if inside { path } else { name };
        rest = &found[path.len()..];
    }
    result + rest
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
    foretell_guard::text::in_a_line(text)
}

#[cfg(test)]
mod tests {
    use super::columns::squeezed;
    use super::{shown, without_folder};

    #[test]
    fn a_long_name_is_cut_before_its_value() {
        assert_eq!(squeezed("read a_very_long_name = 7 (was 9)", 26), "read a_very_… = 7 (was 9)");
        assert_eq!(squeezed("write x = 7", 26).trim_end(), "write x = 7");
        assert_eq!(squeezed("acquire a_very_long_name", 12), "acquire a_…");
    }

    #[test]
    fn a_folder_is_left_out_only_before_the_whole_path() {
        let short = |text| without_folder(text, "src/a.c", "a.c");
        assert_eq!(short("at src/a.c:3, (src/a.c)"), "at a.c:3, (a.c)");
        assert_eq!(short("/tmp/src/a.c:3"), "/tmp/src/a.c:3");
    }

    #[test]
    fn nothing_in_a_name_reaches_the_terminal_as_a_command() {
        assert_eq!(shown("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(shown("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(shown("größe"), "größe");
    }
}
