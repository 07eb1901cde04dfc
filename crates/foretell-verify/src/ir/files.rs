//! `__FILE__`: its text depends on how the compiler is called, so nothing else may depend on it.
//!
//! The preprocessor is told to put [`FILE_TEXT`] in its place. Where that is an argument of a function
//! of the program, of `assert` or of an output function, it is a string whose bytes are unknown.
//! Everywhere else, clang could compute with it before there is IR (`sizeof __FILE__`,
//! `strcmp(__FILE__, "a.c")`), and the program is refused.

use std::collections::HashSet;

/// What stands for the name of the file.
pub const FILE_TEXT: &str = "<__FILE__>";

/// Functions of the C library that may be given it.
const LIBRARY: [&str; 6] = ["__assert_fail", "printf", "fprintf", "puts", "fputs", "perror"];

/// Functions whose results clang knows, if a program defines its own.
const FOLDED: [&str; 5] = ["str", "mem", "wcs", "wmem", "bcmp"];

/// A token, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a number.
    Word(String),
    /// A string or a character, with its quotes.
    Literal(String),
    /// A character.
    Mark(char),
}

/// File and line where the name of the file is used otherwise; `lines` are preprocessed.
pub(super) fn misused<'t>(
    lines: &[(&'t str, u32, &'t str)],
    defined: &HashSet<&str>,
) -> Option<(&'t str, u32)> {
    let is_known = |name: &str| {
        LIBRARY.contains(&name)
            || defined.contains(name) && !FOLDED.iter().any(|start| name.starts_with(start))
    };
    // brackets that are open, with the name in front of each
    let mut open: Vec<Option<String>> = Vec::new();
    let mut before = Token::Mark(';');
    // the text was an argument so far
    let mut pending = None;
    for &(file, line, text) in lines {
        for token in tokens(text) {
            if let Some(place) = pending.take()
                && !matches!(token, Token::Mark(',' | ')'))
            {
                return Some(place);
            }
            match &token {
                Token::Mark('(' | '[' | '{') => open.push(match &before {
                    Token::Word(name) if token == Token::Mark('(') => Some(name.clone()),
                    _ => None,
                }),
                Token::Mark(')' | ']' | '}') => {
                    open.pop();
                }
                Token::Literal(literal) if literal.contains(FILE_TEXT) => {
                    let is_whole = literal.trim_matches('"') == FILE_TEXT;
                    let is_argument = matches!(before, Token::Mark('(' | ','))
                        && open.last().is_some_and(|name| name.as_deref().is_some_and(is_known));
                    if !is_whole || !is_argument {
                        return Some((file, line));
                    }
                    pending = Some((file, line));
                }
                _ => {}
            }
            before = token;
        }
    }
    pending
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '"' | '\'' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|&(_, c)| {
                    let ends = c == first && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |(at, _)| at + 1)
            }
            _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(match first {
            '"' | '\'' => Token::Literal(token.to_owned()),
            _ if is_name(first) => Token::Word(token.to_owned()),
            _ => Token::Mark(first),
        });
        rest = behind.trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_is_an_argument_or_refused() {
        let defined = HashSet::from(["fail", "strange"]);
        let is_misused = |text: &str| {
            let text = text.replace("FILE", FILE_TEXT);
            misused(&[("a.c", 7, text.as_str())], &defined).is_some()
        };
        for fine in [
            "fail(\"FILE\", 3);",
            "fail(1, \"FILE\");",
            "if (x) ; else __assert_fail (\"x\", \"FILE\", 2, __PRETTY_FUNCTION__);",
            "printf(\"%c%s\", '\"', \"FILE\");",
            "int x = 1;",
        ] {
            assert!(!is_misused(fine), "{fine}");
        }
        for wrong in [
            "sizeof(\"FILE\")",
            "sizeof \"FILE\"",
            "strcmp(\"FILE\", \"a.c\")",
            "strange(\"FILE\")",
            "fail(\"FILE\"[0])",
            "fail(\"FILE\" \"x\")",
            "fail((\"FILE\"))",
            "char a[] = \"FILE\";",
            "char *a[] = { \"FILE\", 0 };",
            "unknown(\"FILE\")",
            "fail(\"\\\"FILE\\\"\")",
        ] {
            assert!(is_misused(wrong), "{wrong}");
        }
    }
}
