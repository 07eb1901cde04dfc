//! What a solver says.
//!
//! Not [`foretell_trace::sexpr`]: a reply comes from a process in pieces and ends where its last
//! parenthesis closes, so it is read byte by byte, with limits of its own; and its words are SMT-LIB's
//! (`;` begins a comment, a backslash is no escape), not those of trace files.

use std::io::BufRead;

use foretell_trace::term::{ArrayValue, Rational, ScalarSort};
use foretell_trace::{Sort, Value};

/// More text than this in one reply is not an answer.
const LONGEST_REPLY: usize = 1 << 26;

/// One with more parts than this is not one either: each takes more memory than its text.
const MOST_PARTS: usize = 1 << 22;

/// Nor one that is nested more deeply: lists are dropped and printed recursively.
const DEEPEST: usize = 1000;

/// What a solver prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sexpr {
    /// A word, number or string (without its quotes).
    Atom(String),
    /// A list.
    List(Vec<Sexpr>),
}

impl Sexpr {
    /// The word, unless it is a list.
    pub fn atom(&self) -> Option<&str> {
        match self {
            Sexpr::Atom(text) => Some(text),
            Sexpr::List(_) => None,
        }
    }

    /// The parts, unless it is a word.
    pub fn list(&self) -> Option<&[Sexpr]> {
        match self {
            Sexpr::Atom(_) => None,
            Sexpr::List(parts) => Some(parts),
        }
    }
}

impl std::fmt::Display for Sexpr {
    /// At most a few hundred characters: it is for messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{self:?}");
        match text.char_indices().nth(300) {
            Some((end, _)) => write!(f, "{}...", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

/// The replies in what a solver printed; what is wrong with it, if anything is.
pub fn parse_replies(mut text: &[u8]) -> Result<Vec<Sexpr>, String> {
    let mut replies = Vec::new();
    while let Some(reply) = read_sexpr(&mut text)? {
        replies.push(reply);
    }
    Ok(replies)
}

/// The next expression, `None` at the end. Nesting is kept on a stack of its own.
pub(crate) fn read_sexpr(input: &mut impl BufRead) -> Result<Option<Sexpr>, String> {
    let mut open: Vec<Vec<Sexpr>> = Vec::new();
    let (mut length, mut parts) = (0, 0);
    loop {
        parts += 1;
        if parts > MOST_PARTS {
            return Err(String::from("a reply with too many parts"));
        }
        let done = match token(input, &mut length)? {
            None if open.is_empty() => return Ok(None),
            None => return Err(String::from("a reply that does not end")),
            Some(Token::Open) if open.len() >= DEEPEST => {
                return Err(String::from("a reply that is nested too deeply"));
            }
            Some(Token::Open) => {
                open.push(Vec::new());
                continue;
            }
            Some(Token::Close) => match open.pop() {
                Some(parts) => Sexpr::List(parts),
                None => return Err(String::from("`)` without `(`")),
            },
            Some(Token::Word(word)) => Sexpr::Atom(word),
        };
        match open.last_mut() {
            Some(parts) => parts.push(done),
            None => return Ok(Some(done)),
        }
    }
}

enum Token {
    Open,
    Close,
    Word(String),
}

fn token(input: &mut impl BufRead, length: &mut usize) -> Result<Option<Token>, String> {
    let mut peek = |input: &mut dyn BufRead| -> Result<Option<u8>, String> {
        *length += 1;
        if *length > LONGEST_REPLY {
            return Err(String::from("a reply without end"));
        }
        let buffer = input.fill_buf().map_err(|error| error.to_string())?;
        Ok(buffer.first().copied())
    };
    loop {
        let Some(first) = peek(input)? else { return Ok(None) };
        match first {
            b'(' | b')' => {
                input.consume(1);
                return Ok(Some(if first == b'(' { Token::Open } else { Token::Close }));
            }
            byte if byte.is_ascii_whitespace() => input.consume(1),
            b';' => {
                while !matches!(peek(input)?, None | Some(b'\n')) {
                    input.consume(1);
                }
            }
            _ => break,
        }
    }
    let mut word = Vec::new();
    let quote = match peek(input)? {
        Some(quote @ (b'"' | b'|')) => {
            input.consume(1);
            Some(quote)
        }
        _ => None,
    };
    loop {
        match (peek(input)?, quote) {
            (None, None) => break,
            (None, Some(_)) => return Err(String::from("a quoted reply that does not end")),
            (Some(byte), Some(quote)) => {
                input.consume(1);
                if byte == quote {
                    break;
                }
                word.push(byte);
            }
            (Some(byte), None) => {
                if byte.is_ascii_whitespace() || matches!(byte, b'(' | b')' | b';' | b'"' | b'|') {
                    break;
                }
                input.consume(1);
                word.push(byte);
            }
        }
    }
    Ok(Some(Token::Word(String::from_utf8_lossy(&word).into_owned())))
}

/// A value as a solver prints it.
pub fn parse_value(sort: Sort, reply: &Sexpr) -> Option<Value> {
    match sort {
        Sort::Scalar(scalar) => parse_scalar(scalar, reply),
        Sort::Array { index, element } => {
            let [head, rest @ ..] = reply.list()? else { return None };
            match (head, rest) {
                (Sexpr::List(_), [default]) => {
                    let default = parse_scalar(element, default)?;
                    let array = ArrayValue::constant(index, default);
                    Some(Value::Array(Box::new(array)))
                }
                (Sexpr::Atom(store), [array, at, value]) if store == "store" => {
                    let Value::Array(array) = parse_value(sort, array)? else { return None };
                    let (at, value) = (parse_scalar(index, at)?, parse_scalar(element, value)?);
                    Some(Value::Array(Box::new(array.store(at, value))))
                }
                _ => None,
            }
        }
    }
}

fn parse_scalar(sort: ScalarSort, reply: &Sexpr) -> Option<Value> {
    match sort {
        ScalarSort::Bool => reply.atom()?.parse().ok().map(Value::Bool),
        ScalarSort::Int => {
            let value = parse_rational(reply)?;
            (value.denominator() == 1).then(|| Value::Int(value.numerator()))
        }
        ScalarSort::Real => parse_rational(reply).map(Value::Real),
        ScalarSort::BitVec(width) => {
            let bits = match reply {
                Sexpr::Atom(text) => match text.split_at_checked(2)? {
                    ("#b", digits) => u64::from_str_radix(digits, 2).ok()?,
                    ("#x", digits) => u64::from_str_radix(digits, 16).ok()?,
                    _ => return None,
                },
                _ => match reply.list()? {
                    [_, digits, _] => digits.atom()?.strip_prefix("bv")?.parse().ok()?,
                    _ => return None,
                },
            };
            Some(Value::bit_vec(width, bits))
        }
    }
}

fn parse_rational(reply: &Sexpr) -> Option<Rational> {
    match reply {
        Sexpr::Atom(text) => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let fraction = fraction.trim_end_matches('0');
            let denominator = 10i128.checked_pow(fraction.len() as u32)?;
            Rational::new(format!("{whole}{fraction}").parse().ok()?, denominator)
        }
        Sexpr::List(parts) => match parts.as_slice() {
            [minus, value] if minus.atom() == Some("-") => parse_rational(value)?.checked_neg(),
            [over, a, b] if over.atom() == Some("/") => {
                parse_rational(a)?.checked_div(parse_rational(b)?)
            }
            _ => None,
        },
    }
}
