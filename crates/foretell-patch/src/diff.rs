//! Edits of a text as a unified diff.

use std::ops::Range;

use similar::TextDiff;

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

/// The unified diff between two texts; empty where they are equal.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    // a line ends with a line feed, as for `patch`; a carriage return belongs to its line
    let (a, b): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&a, &b)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
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
    fn a_text_without_a_last_line_end_and_one_with_carriage_returns_are_kept() {
        let diff = unified("f.c", "a\r\nb", "a\r\nc");
        let without = "\\ No newline at end of file\n";
        assert_eq!(
            diff,
            format!("--- a/f.c\n+++ b/f.c\n@@ -1,2 +1,2 @@\n a\r\n-b\n{without}+c\n{without}")
        );
        assert_eq!(unified("f.c", "a\n", "a\n"), "");
    }

    #[test]
    fn edits_are_applied_from_left_to_right() {
        let edits =
            [Edit { range: 4..5, text: "E".into() }, Edit { range: 0..0, text: ">".into() }];
        assert_eq!(apply("abcde", &edits), ">abcdE");
    }
}
