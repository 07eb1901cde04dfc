//! Edits of a text as a unified diff.

use std::ops::Range;

/// Replaces some bytes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go.
    pub range: Range<usize>,
    /// What comes instead.
    pub text: String,
}

/// The text with all edits; they do not overlap.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for edit in sorted {
        new.push_str(&text[at..edit.range.start]);
        new.push_str(&edit.text);
        at = edit.range.end;
    }
    new.push_str(&text[at..]);
    new
}

/// How many unchanged lines stand around a change.
const CONTEXT: usize = 3;

/// The unified diff between two texts that differ in few places.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let changes = changes(&a, &b);
    let mut text = format!("--- a/{path}\n+++ b/{path}\n");
    let mut at = 0;
    while at < changes.len() {
        let mut end = at + 1;
        while end < changes.len() && changes[end].0.start <= changes[end - 1].0.end + 2 * CONTEXT {
            end += 1;
        }
        let hunk = &changes[at..end];
        let (first, last) = (&hunk[0], &hunk[hunk.len() - 1]);
        let before = first.0.start.min(CONTEXT);
        let after = (a.len() - last.0.end).min(CONTEXT);
        let from = (first.0.start - before, first.1.start - before);
        let to = (last.0.end + after, last.1.end + after);
        let counted = |from: usize, to: usize| {
            let start = if from == to { from } else { from + 1 };
            format!("{start},{}", to - from)
        };
        text.push_str(&format!("@@ -{} +{} @@\n", counted(from.0, to.0), counted(from.1, to.1)));
        let mut line = |mark: char, content: &str| {
            text.push(mark);
            text.push_str(content);
            if !content.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        };
        let mut next = from.0;
        for (gone, come) in hunk {
            a[next..gone.start].iter().for_each(|content| line(' ', content));
            a[gone.clone()].iter().for_each(|content| line('-', content));
            b[come.clone()].iter().for_each(|content| line('+', content));
            next = gone.end;
        }
        a[next..to.0].iter().for_each(|content| line(' ', content));
        at = end;
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Ranges of lines that differ: the next pair of equal lines, nearest first, ends a change.
fn changes(a: &[&str], b: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let rest = (a.len() - i) + (b.len() - j);
        let again = (1..=rest).find_map(|distance| {
            (0..=distance).find_map(|skip| {
                let (x, y) = (i + skip, j + distance - skip);
                let inside = x <= a.len() && y <= b.len();
                let both_end = x == a.len() && y == b.len();
                (inside && (both_end || x < a.len() && y < b.len() && a[x] == b[y]))
                    .then_some((x, y))
            })
        });
        let (x, y) = again.unwrap_or((a.len(), b.len()));
        found.push((i..x, j..y));
        (i, j) = (x, y);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_three_lines_of_context_and_joins_near_changes() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("5\n6\n", "5\nfive and a half\n6\n").replace("\n9\n", "\n");
        let expected = "--- a/f.c\n+++ b/f.c\n@@ -3,10 +3,10 @@\n 3\n 4\n 5\n+five and a half\n 6\n 7\n 8\n-9\n 10\n 11\n 12\n";
        assert_eq!(unified("f.c", &old, &new), expected);
    }

    #[test]
    fn edits_are_applied_from_left_to_right() {
        let edits =
            [Edit { range: 4..5, text: "E".into() }, Edit { range: 0..0, text: ">".into() }];
        assert_eq!(apply("abcde", &edits), ">abcdE");
    }
}
