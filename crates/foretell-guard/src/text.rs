//! The one place where text from outside (names, messages, source lines, output of the program
//! under test) becomes text for a terminal.
//!
//! A terminal takes orders from the text that it shows: escape sequences change colours, titles and
//! the clipboard, hide what follows, or make the terminal type something. Here every character that
//! could do so is replaced by a visible spelling, `\u{1b}` for the escape character. Newlines and
//! tabs stay.

use std::borrow::Cow;
use std::fmt::Write;

/// The text without anything that a terminal would obey.
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    match text.find(is_dangerous) {
        None => Cow::Borrowed(text),
        Some(first) => {
            let mut safe = String::with_capacity(text.len() + 16);
            safe.push_str(&text[..first]);
            for character in text[first..].chars() {
                match is_dangerous(character) {
                    // Writing to a string cannot fail.
                    true => drop(write!(safe, "\\u{{{:x}}}", u32::from(character))),
                    false => safe.push(character),
                }
            }
            Cow::Owned(safe)
        }
    }
}

/// The same for bytes that should be UTF-8.
pub fn bytes_for_terminal(bytes: &[u8]) -> String {
    for_terminal(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Control characters (C0, DEL and C1), and those that change the direction of text or cannot be
/// seen, with which a line can be made to read as something else.
pub fn is_dangerous(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2066}'..='\u{2069}' | '\u{feff}' => true,
        _ => character.is_control(),
    }
}

/// The same for text that stands in a line: newlines and tabs are replaced, too.
pub fn in_a_line(text: &str) -> String {
    let safe = for_terminal(text);
    safe.replace('\n', "\\u{a}").replace('\t', "\\u{9}")
}

/// The text as the inside of a JSON document: what is dangerous is escaped as JSON does, so that a
/// document can be looked at on a terminal and still says the same.
pub fn json_for_terminal(json: &str) -> Cow<'_, str> {
    // Below U+0020 a JSON writer has escaped everything inside texts already.
    let dangerous = |character: char| character >= '\u{7f}' && is_dangerous(character);
    match json.contains(dangerous) {
        false => Cow::Borrowed(json),
        true => {
            let mut safe = String::with_capacity(json.len() + 16);
            for character in json.chars() {
                match dangerous(character) {
                    true => drop(write!(safe, "\\u{:04x}", u32::from(character))),
                    false => safe.push(character),
                }
            }
            Cow::Owned(safe)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(for_terminal("plain\ttext\n"), "plain\ttext\n");
        assert!(matches!(for_terminal("plain"), Cow::Borrowed(_)));
        assert_eq!(for_terminal("\u{1b}]0;title\u{7}"), "\\u{1b}]0;title\\u{7}");
        assert_eq!(for_terminal("a\rb\u{8}c\u{7f}\u{9b}31m"), "a\\u{d}b\\u{8}c\\u{7f}\\u{9b}31m");
        assert_eq!(for_terminal("if (\u{202e}x)"), "if (\\u{202e}x)");
        assert_eq!(for_terminal("Grüße, 漢字"), "Grüße, 漢字");
        assert_eq!(bytes_for_terminal(b"\xff\x1b[2J"), "\u{fffd}\\u{1b}[2J");
    }

    #[test]
    fn a_json_document_stays_the_same_document() {
        assert_eq!(
            json_for_terminal("{\"a\":\"\u{9b}2J\u{202e}\"}"),
            "{\"a\":\"\\u009b2J\\u202e\"}"
        );
        assert_eq!(json_for_terminal("{\n\t\"a\": 1\n}"), "{\n\t\"a\": 1\n}");
    }
}
