//! A line of LLVM IR as tokens, read one after the other.

use foretell_guard::sha256;

use crate::ir::lex::Token;
use crate::ir::{Constant, Module, Type};

/// Which program it is: by its IR without the lines that name folders.
pub(super) fn identify(module: &mut Module, text: &str) {
    let names_folder = |line: &&str| {
        line.starts_with("; ModuleID")
            || line.starts_with("source_filename")
            || line.contains("!DIFile(")
    };
    let kept: Vec<&str> = text.lines().filter(|line| !names_folder(line)).collect();
    module.hash = sha256::hex(kept.join("\n").as_bytes());
    let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let begins = |start: &str| text.lines().find(|line| line.starts_with(start));
    module.target = begins("target triple = ").map(quoted).unwrap_or_default();
    let ident = begins("!llvm.ident = !{").and_then(|line| {
        let number = line.strip_prefix("!llvm.ident = !{")?.trim_end_matches('}');
        begins(&format!("{number} = "))
    });
    module.compiler = ident.map(quoted).unwrap_or_default();
}

/// Lines without comments; the cases of a `switch` are joined to its line.
pub(super) fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match lines.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push(line.to_owned()),
        }
        let last = lines.last().map_or("", |line| line.trim());
        open = last.starts_with("switch ") && !last.contains(']');
    }
    lines
}

/// What stands behind an instruction.
#[derive(Default)]
pub(super) struct Ending {
    pub(super) align: u64,
    /// Kinds and numbers.
    pub(super) metadata: Vec<(String, String)>,
}

/// Why something is not read.
pub(super) type Because<T> = Result<T, String>;

/// A cursor over the words of a line.
pub(super) struct Line<'a> {
    pub(super) words: &'a [Token],
    pub(super) at: usize,
}

impl Line<'_> {
    pub(super) fn peek(&self) -> Option<&Token> {
        self.words.get(self.at)
    }

    pub(super) fn next(&mut self) -> Because<Token> {
        let token = self.words.get(self.at).cloned();
        self.at += 1;
        token.ok_or_else(|| "the line ends early".into())
    }

    /// Takes the word if it comes next.
    pub(super) fn takes(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn takes_mark(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn mark(&mut self, mark: char) -> Because<()> {
        match self.takes_mark(mark) {
            true => Ok(()),
            false => Err(format!("`{mark}` is missing before {}", self.rest())),
        }
    }

    pub(super) fn word(&mut self) -> Because<String> {
        match self.next()? {
            Token::Word(word) => Ok(word),
            other => Err(format!("`{other}` is not expected")),
        }
    }

    fn rest(&self) -> String {
        match self.peek() {
            Some(token) => format!("`{token}`"),
            None => "the end of the line".into(),
        }
    }

    pub(super) fn number(&mut self) -> Because<u64> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("`{word}` is not a number"))
    }

    /// What may stand at the end of an instruction: alignment, metadata, attribute groups.
    pub(super) fn end(&mut self) -> Because<Ending> {
        let mut ending = Ending::default();
        loop {
            match self.peek() {
                None => return Ok(ending),
                Some(Token::Attributes(_)) => self.at += 1,
                Some(Token::Mark(',')) => {
                    self.at += 1;
                    match self.next()? {
                        Token::Word(word) if word == "align" => ending.align = self.number()?,
                        Token::Metadata(kind) => match self.next()? {
                            Token::Metadata(number) => ending.metadata.push((kind, number)),
                            other => return Err(format!("`{other}` is not expected")),
                        },
                        other => return Err(format!("`{other}` is not expected")),
                    }
                }
                Some(other) => return Err(format!("`{other}` is not expected")),
            }
        }
    }
}

/// A field or element: how many bytes further, and its type.
pub(super) fn step_into(kind: &Type, index: i128) -> Because<(i128, Type)> {
    match kind {
        Type::Struct(fields) => {
            let at =
                usize::try_from(index).map_err(|_| "a field that does not exist".to_owned())?;
            let offset = fields.offset(at).ok_or("a field that does not exist")?;
            Ok((offset.into(), fields.fields[at].clone()))
        }
        Type::Array(_, element) => {
            let stride = element.size().ok_or_else(|| format!("{} has no size", element.show()))?;
            let step = index
                .checked_mul(stride.into())
                .ok_or("an address that is too far outside its object")?;
            Ok((step, (**element).clone()))
        }
        other => Err(format!("an index into {}", other.show())),
    }
}

/// How far behind null, if it is such an address.
pub(super) fn behind_null(constant: &Constant) -> Option<i64> {
    match constant {
        Constant::Zero => Some(0),
        Constant::Behind(base, offset) => behind_null(base)?.checked_add(*offset),
        _ => None,
    }
}

pub(super) fn skip_parentheses(line: &mut Line<'_>) -> Because<()> {
    line.mark('(')?;
    let mut depth = 1;
    while depth > 0 {
        match line.next()? {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}
