//! Words of a line of IR.

use std::fmt;

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword, a type name or a number.
    Word(String),
    /// `%name`
    Local(String),
    /// `@name`
    Global(String),
    /// `!name`, `!12`
    Metadata(String),
    /// `#12`
    Attributes(String),
    /// `c"..."`
    Bytes(Vec<u8>),
    /// `"..."`
    Text(String),
    /// `...`
    Dots,
    /// Anything else, one character.
    Mark(char),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => f.write_str(word),
            Token::Local(name) => write!(f, "%{name}"),
            Token::Global(name) => write!(f, "@{name}"),
            Token::Metadata(name) => write!(f, "!{name}"),
            Token::Attributes(name) => write!(f, "#{name}"),
            Token::Bytes(_) => f.write_str("a string"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Dots => f.write_str("..."),
            Token::Mark(mark) => write!(f, "{mark}"),
        }
    }
}

/// The words of a line; `None` if a quote does not end.
pub(super) fn words(line: &str) -> Option<Vec<Token>> {
    let bytes = line.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b';' => break,
            sigil @ (b'%' | b'@' | b'!') => {
                let (name, next) = match bytes.get(at + 1) {
                    Some(b'"') => {
                        let (text, next) = quoted(bytes, at + 1)?;
                        (String::from_utf8_lossy(&text).into_owned(), next)
                    }
                    _ => plain(line, at + 1),
                };
                at = next;
                tokens.push(match sigil {
                    b'%' => Token::Local(name),
                    b'@' => Token::Global(name),
                    _ => Token::Metadata(name),
                });
            }
            b'#' => {
                let (name, next) = plain(line, at + 1);
                at = next;
                tokens.push(Token::Attributes(name));
            }
            b'c' if bytes.get(at + 1) == Some(&b'"') => {
                let (text, next) = quoted(bytes, at + 1)?;
                at = next;
                tokens.push(Token::Bytes(text));
            }
            b'"' => {
                let (text, next) = quoted(bytes, at)?;
                at = next;
                tokens.push(Token::Text(String::from_utf8_lossy(&text).into_owned()));
            }
            b'.' if line[at..].starts_with("...") => {
                at += 3;
                tokens.push(Token::Dots);
            }
            byte if is_plain(byte) => {
                let (word, next) = plain(line, at);
                at = next;
                tokens.push(Token::Word(word));
            }
            byte if byte.is_ascii() => {
                at += 1;
                tokens.push(Token::Mark(byte as char));
            }
            _ => return None,
        }
    }
    Some(tokens)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'-' | b'+')
}

fn plain(line: &str, from: usize) -> (String, usize) {
    let length = line.as_bytes()[from..].iter().take_while(|byte| is_plain(**byte)).count();
    (line[from..from + length].to_owned(), from + length)
}

/// The bytes between quotes, `\xx` resolved, and where the rest begins.
fn quoted(bytes: &[u8], from: usize) -> Option<(Vec<u8>, usize)> {
    let mut text = Vec::new();
    let mut at = from + 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((text, at + 1)),
            b'\\' if bytes.get(at + 1) == Some(&b'\\') => {
                text.push(b'\\');
                at += 2;
            }
            b'\\' => {
                let digits = std::str::from_utf8(bytes.get(at + 1..at + 3)?).ok()?;
                text.push(u8::from_str_radix(digits, 16).ok()?);
                at += 3;
            }
            byte => {
                text.push(byte);
                at += 1;
            }
        }
    }
}
