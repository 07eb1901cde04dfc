//! Metadata: places in the source, and ranges of values.

use std::collections::HashMap;

use super::line::Because;
use super::{Reader, field};
use crate::ir::Place;
use crate::ir::alias::parts;
use crate::ir::lex;
use crate::ir::lex::Token;

/// Kinds of metadata that are understood, or say nothing about what an instruction does.
pub(super) const METADATA: [&str; 9] =
    ["dbg", "tbaa", "tbaa.struct", "range", "noundef", "llvm.loop", "srcloc", "nosanitize", "prof"];

impl<'a> Reader<'a> {
    // ---- places ----

    /// The places that metadata stands for.
    pub(super) fn places(&mut self, lines: &[String]) {
        let mut files: HashMap<&str, u32> = HashMap::new();
        let mut scopes: HashMap<&str, &str> = HashMap::new();
        let entries = || {
            lines.iter().filter_map(|line| {
                let (number, content) = line.strip_prefix('!')?.split_once(" = ")?;
                Some((number, content.strip_prefix("distinct ").unwrap_or(content)))
            })
        };
        for (number, content) in entries() {
            if let Some(rest) = content.strip_prefix("!DIFile(filename: \"") {
                let name = rest.split('"').next().unwrap_or_default();
                let file = match self.source.ends_with(name) || name.ends_with(self.source) {
                    true => 0,
                    false => {
                        self.module.files.push(name.into());
                        self.module.files.len() as u32 - 1
                    }
                };
                files.insert(number, file);
            } else if content.starts_with("!DISubprogram") || content.starts_with("!DILexicalBlock")
            {
                scopes.insert(number, content);
            }
        }
        for (number, content) in entries() {
            if !content.starts_with("!DILocation(") && !content.starts_with("!DISubprogram(") {
                continue;
            }
            let line = field(content, "line: ").and_then(|n| n.parse().ok()).unwrap_or(0);
            let column = field(content, "column: ").and_then(|n| n.parse().ok()).unwrap_or(0);
            let scope = field(content, "scope: !").and_then(|scope| scopes.get(scope).copied());
            let file = scope.or(Some(content)).and_then(|scope| field(scope, "file: !"));
            let file = file.and_then(|file| files.get(file).copied()).unwrap_or(0);
            self.places.insert(number.to_owned(), Place { file, line, column });
        }
    }

    /// The place that the words of a line name.
    pub(super) fn place(&self, words: &[Token]) -> Place {
        let named = words.windows(2).find_map(|pair| match pair {
            [Token::Metadata(kind), Token::Metadata(number)] if kind == "dbg" => Some(number),
            _ => None,
        });
        named.and_then(|number| self.places.get(number).copied()).unwrap_or_default()
    }

    /// Where the first of these symbols is defined as a function, or else used first.
    pub(super) fn place_of_first(&self, lines: &[String], words: &[Token]) -> Place {
        let named = words.iter().find_map(|word| match word {
            Token::Global(name) => Some(format!("@{name}")),
            _ => None,
        });
        let Some(name) = named else { return Place::default() };
        let is_named = |line: &&String| {
            line.match_indices(&name).any(|(at, _)| {
                let behind = line[at + name.len()..].chars().next();
                behind.is_none_or(|c| !(c.is_alphanumeric() || "_.$".contains(c)))
            })
        };
        let define =
            |line: &&String| line.starts_with("define ") && line.contains(&format!("{name}("));
        let defined = lines.iter().find(define);
        let used = || lines.iter().filter(|line| line.starts_with(' ')).find(is_named);
        let found = defined.or_else(used).and_then(|line| lex::words(line));
        found.map(|words| self.place(&words)).unwrap_or_default()
    }

    /// `!{i8 0, i8 2}`: from zero to below this.
    pub(super) fn range(&self, number: &str) -> Because<u128> {
        let content = self.metadata.get(number).map(|content| parts(content)).unwrap_or_default();
        let value = |part: &str| part.split(' ').nth(1)?.parse::<u128>().ok();
        match content[..] {
            [low, high] if value(low) == Some(0) => value(high),
            _ => None,
        }
        .ok_or_else(|| "values of a range that does not begin with zero".to_owned())
    }
}
