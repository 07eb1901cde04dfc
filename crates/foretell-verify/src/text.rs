//! The guarded-command form of programs.
//!
//! ```text
//! # Fig. 1 of 001, with the lock that repairs it
//! shared balance = 100, x = 100, w = *, d = *, done[2] = 0;
//! mutex m;
//! initially w > 0 && d > 0;
//!
//! thread withdraw {
//!   local t = 0;
//!   lock(m);
//!   t := balance;
//!   balance := t - w;
//!   unlock(m);
//!   done[0] := 1;
//! }
//! thread check {
//!   when (done[0] == 1 && done[1] == 1) skip;
//!   assert(balance == x + d - w);
//! }
//! ```
//!
//! Each statement is one step, however many shared variables it has, so a step is a guarded command:
//! `when (guard) x, y := e, f;`. `*` is any value, `if (*)` any choice. `atomic { … }` is one step.
//! `thread a, b { … }` makes two threads with the same text, in which `self` is 0 and 1. Arrays have
//! constant size; an index outside violates a property. Integers are mathematical.

mod expressions;
mod tokens;

use std::collections::HashMap;
use std::fmt;

use foretell_trace::{Term, TermId, VariableId};

use crate::limits::DEEPEST_COMMANDS;
use crate::program::{Builder, Location, Place, Program};
use tokens::{Token, tokens};

/// Why a text is not a program that can be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file.
    pub file: Box<str>,
    /// The line, from 1.
    pub line: u32,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for InputError {}

/// Reads a program.
pub fn parse(file: &str, text: &str) -> Result<Program, InputError> {
    let tokens = tokens(file, text)?;
    let mut parser = Parser {
        file,
        tokens,
        at: 0,
        builder: Builder::new(file),
        names: HashMap::new(),
        thread: 0,
        own: 0,
        depth: 0,
        outside: Vec::new(),
    };
    parser.program()?;
    Ok(parser.builder.finish())
}

#[derive(Clone)]
enum Meaning {
    Scalar(TermId),
    Array(Vec<TermId>),
    Mutex(TermId),
}

/// An assignment as it is written: a scalar, or a cell of an array.
struct Target {
    cells: Vec<TermId>,
    index: Option<TermId>,
}

struct Parser<'a> {
    file: &'a str,
    tokens: Vec<(Token, u32)>,
    at: usize,
    builder: Builder,
    names: HashMap<String, Meaning>,
    thread: usize,
    own: i128,
    depth: usize,
    /// Conditions under which an index of the statement lies outside.
    outside: Vec<TermId>,
}

impl Parser<'_> {
    fn line(&self) -> u32 {
        self.tokens[self.at].1
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, InputError> {
        Err(InputError { file: self.file.into(), line: self.line(), message: message.into() })
    }

    fn is(&self, sign: &str) -> bool {
        match &self.tokens[self.at].0 {
            Token::Sign(other) => *other == sign,
            Token::Word(other) => other == sign,
            _ => false,
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), InputError> {
        if self.take(sign) {
            return Ok(());
        }
        let found = match &self.tokens[self.at].0 {
            Token::Word(word) => format!("`{word}`"),
            Token::Number(number) => number.to_string(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end of the file".into(),
        };
        self.error(format!("expected `{sign}`, found {found}"))
    }

    fn word(&mut self) -> Result<String, InputError> {
        match self.tokens[self.at].0.clone() {
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.error("expected a name"),
        }
    }

    fn program(&mut self) -> Result<(), InputError> {
        loop {
            if self.take("shared") {
                self.declaration(None)?;
            } else if self.take("mutex") {
                loop {
                    let name = self.word()?;
                    let variable = self.variable(&name, None, Some(0))?;
                    self.define(name, Meaning::Mutex(variable))?;
                    if !self.take(",") {
                        break;
                    }
                }
                self.expect(";")?;
            } else if self.take("initially") {
                let condition = self.condition()?;
                self.expect(";")?;
                let before = self.builder.program.initially;
                self.builder.program.initially = self.builder.terms().and(&[before, condition]);
            } else if self.take("thread") {
                self.threads()?;
            } else if self.tokens[self.at].0 == Token::End {
                if self.builder.program.threads.is_empty() {
                    return self.error("a program needs a `thread`");
                }
                return Ok(());
            } else {
                return self.error("expected `shared`, `mutex`, `initially` or `thread`");
            }
        }
    }

    fn define(&mut self, name: String, meaning: Meaning) -> Result<(), InputError> {
        if self.names.contains_key(&name) || name == "self" {
            return self.error(format!("`{name}` is already declared; choose another name"));
        }
        self.names.insert(name, meaning);
        Ok(())
    }

    fn variable(
        &mut self,
        name: &str,
        local_of: Option<usize>,
        initial: Option<i128>,
    ) -> Result<TermId, InputError> {
        match self.builder.variable(name, local_of, initial) {
            Some(variable) => Ok(variable),
            None => self.error(format!(
                "more than {} variables (every cell of an array is one)",
                crate::program::VARIABLES
            )),
        }
    }

    /// `x = 0, y = *, a[3] = 0;`
    fn declaration(&mut self, local_of: Option<usize>) -> Result<(), InputError> {
        loop {
            let name = self.word()?;
            let mut size = None;
            if self.take("[") {
                let cells = self.number()?;
                if !(1..=64).contains(&cells) {
                    return self.error("an array has 1 to 64 cells");
                }
                size = Some(cells);
                self.expect("]")?;
            }
            self.expect("=")?;
            let initial = if self.take("*") { None } else { Some(self.number()?) };
            let prefix = match local_of {
                Some(thread) => format!("{}.", self.builder.program.threads[thread].name),
                None => String::new(),
            };
            let meaning = match size {
                None => {
                    Meaning::Scalar(self.variable(&format!("{prefix}{name}"), local_of, initial)?)
                }
                Some(size) => {
                    let mut cells = Vec::new();
                    for cell in 0..size {
                        let name = format!("{prefix}{name}[{cell}]");
                        cells.push(self.variable(&name, local_of, initial)?);
                    }
                    Meaning::Array(cells)
                }
            };
            self.define(name, meaning)?;
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn threads(&mut self) -> Result<(), InputError> {
        let mut names = vec![self.word()?];
        while self.take(",") {
            names.push(self.word()?);
        }
        let body = self.at;
        for (own, name) in names.iter().enumerate() {
            self.at = body;
            self.own = own as i128;
            self.thread = self.builder.thread(name.as_str(), true);
            let outer = self.names.clone();
            let entry = self.builder.program.threads[self.thread].entry;
            let end = self.block(entry)?;
            let exit = self.builder.program.threads[self.thread].exit;
            let place = self.place();
            self.builder.edge(self.thread, end, exit, place);
            self.names = outer;
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place { line: self.line(), column: 0 }
    }

    /// `{ … }` from a location; returns where it ends.
    fn block(&mut self, from: Location) -> Result<Location, InputError> {
        self.expect("{")?;
        self.depth += 1;
        if self.depth > DEEPEST_COMMANDS {
            return self.error("nested too deeply");
        }
        let mut at = from;
        while !self.take("}") {
            at = self.statement(at)?;
        }
        self.depth -= 1;
        Ok(at)
    }

    /// The statement's text, for people.
    fn said(&self, from: usize, to: usize) -> Box<str> {
        let mut text = String::new();
        for (token, _) in &self.tokens[from..to] {
            let word = match token {
                Token::Word(word) => word.clone(),
                Token::Number(number) => number.to_string(),
                Token::Sign(sign) => (*sign).to_string(),
                Token::End => String::new(),
            };
            let tight = matches!(word.as_str(), ")" | "]" | "," | ";" | "[")
                || text.ends_with(['(', '[', '!'])
                || text.is_empty()
                || (word == "(" && text.ends_with(|c: char| c.is_alphanumeric()));
            if !tight {
                text.push(' ');
            }
            text.push_str(&word);
        }
        text.into()
    }

    fn statement(&mut self, from: Location) -> Result<Location, InputError> {
        let (thread, place, first) = (self.thread, self.place(), self.at);
        if self.take("local") {
            self.declaration(Some(thread))?;
            return Ok(from);
        }
        if self.take("if") || self.take("while") {
            let looping = matches!(&self.tokens[first].0, Token::Word(word) if word == "while");
            self.expect("(")?;
            let condition = if self.take("*") { None } else { Some(self.condition()?) };
            self.expect(")")?;
            let said = self.said(first, self.at);
            let head = match looping {
                true => self.builder.location(thread),
                false => from,
            };
            if looping {
                self.builder.edge(thread, from, head, place);
                self.builder.loop_head(thread, head);
            }
            let always = self.builder.terms().bool(true);
            let inside = self.inside(head, always, place, &said);
            let (yes, no) = (self.builder.location(thread), self.builder.location(thread));
            for (to, value) in [(yes, true), (no, false)] {
                let guard = match condition {
                    None => self.builder.terms().bool(true),
                    Some(condition) if value => condition,
                    Some(condition) => self.builder.terms().not(condition),
                };
                let guard = self.builder.terms().and(&[guard, inside]);
                let edge = self.builder.edge(thread, head, to, place);
                edge.guard = guard;
                edge.text = format!("{said} is {value}").into();
            }
            let end = self.block(yes)?;
            if looping {
                self.builder.edge(thread, end, head, place);
                return Ok(no);
            }
            let otherwise = if self.take("else") { self.block(no)? } else { no };
            let joined = self.builder.location(thread);
            self.builder.edge(thread, end, joined, place);
            self.builder.edge(thread, otherwise, joined, place);
            return Ok(joined);
        }
        if self.take("atomic") {
            self.builder.begin_atomic();
            let end = self.block(from)?;
            self.builder.end_atomic();
            // the last step of the section leaves it
            let out = self.builder.location(thread);
            self.builder.edge(thread, end, out, place);
            return Ok(out);
        }
        if self.take("assert") {
            self.expect("(")?;
            let condition = self.condition()?;
            self.expect(")")?;
            self.expect(";")?;
            let said = self.said(first, self.at - 1);
            let always = self.builder.terms().bool(true);
            let inside = self.inside(from, always, place, &said);
            let condition = self.builder.terms().and(&[inside, condition]);
            let to = self.builder.location(thread);
            let error = self.builder.program.threads[thread].error;
            let fails = self.builder.terms().not(condition);
            for (to, guard, text) in
                [(to, condition, said.to_string()), (error, fails, format!("{said} fails"))]
            {
                let edge = self.builder.edge(thread, from, to, place);
                edge.guard = guard;
                edge.text = text.into();
            }
            return Ok(to);
        }
        for (word, locks) in [("lock", true), ("unlock", false)] {
            if self.take(word) {
                self.expect("(")?;
                let name = self.word()?;
                let Some(&Meaning::Mutex(mutex)) = self.names.get(&name) else {
                    return self.error(format!("`{name}` is not a mutex"));
                };
                self.expect(")")?;
                self.expect(";")?;
                let said = self.said(first, self.at - 1);
                let to = self.builder.location(thread);
                let terms = self.builder.terms();
                let (free, mine) = (terms.int(0), terms.int(thread as i128 + 1));
                let guard = if locks { terms.eq(mutex, free) } else { terms.bool(true) };
                let value = if locks { mine } else { free };
                let variable = variable_id(&self.builder.program, mutex);
                let edge = self.builder.edge(thread, from, to, place);
                edge.guard = guard;
                edge.assignments = vec![(variable, value)];
                edge.text = said;
                return Ok(to);
            }
        }
        let mut guard = self.builder.terms().bool(true);
        if self.take("assume") {
            self.expect("(")?;
            guard = self.condition()?;
            self.expect(")")?;
            return self.command(from, first, place, guard, Vec::new(), Vec::new());
        }
        if self.take("when") {
            self.expect("(")?;
            guard = self.condition()?;
            self.expect(")")?;
        }
        if self.take("skip") {
            return self.command(from, first, place, guard, Vec::new(), Vec::new());
        }
        let mut targets = vec![self.target()?];
        while self.take(",") {
            targets.push(self.target()?);
        }
        self.expect(":=")?;
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        if targets.len() != values.len() {
            return self.error("`:=` needs as many values as variables");
        }
        self.command(from, first, place, guard, targets, values)
    }

    fn command(
        &mut self,
        from: Location,
        first: usize,
        place: Place,
        guard: TermId,
        targets: Vec<Target>,
        values: Vec<TermId>,
    ) -> Result<Location, InputError> {
        self.expect(";")?;
        let said = self.said(first, self.at - 1);
        let mut assignments: Vec<(VariableId, TermId)> = Vec::new();
        for (target, value) in targets.into_iter().zip(values) {
            for (place, &cell) in target.cells.iter().enumerate() {
                let variable = variable_id(&self.builder.program, cell);
                if assignments.iter().any(|(other, _)| *other == variable) {
                    return self.error("a variable is assigned twice in one step");
                }
                let new = match target.index {
                    None => value,
                    Some(index) => {
                        let terms = self.builder.terms();
                        let here = terms.int(place as i128);
                        let here = terms.eq(index, here);
                        terms.ite(here, value, cell)
                    }
                };
                if new != cell {
                    assignments.push((variable, new));
                }
            }
        }
        let inside = self.inside(from, guard, place, &said);
        let guard = self.builder.terms().and(&[guard, inside]);
        let to = self.builder.location(self.thread);
        let edge = self.builder.edge(self.thread, from, to, place);
        edge.guard = guard;
        edge.assignments = assignments;
        edge.text = said;
        Ok(to)
    }

    fn target(&mut self) -> Result<Target, InputError> {
        let name = self.word()?;
        match self.names.get(&name).cloned() {
            Some(Meaning::Scalar(variable)) => Ok(Target { cells: vec![variable], index: None }),
            Some(Meaning::Array(cells)) => {
                self.expect("[")?;
                let index = self.value()?;
                self.expect("]")?;
                self.check_index(index, cells.len());
                Ok(Target { cells, index: Some(index) })
            }
            Some(_) => self.error(format!("`{name}` cannot be assigned")),
            None => self.error(format!("`{name}` is not declared; declare it `shared` or `local`")),
        }
    }
}

fn variable_id(program: &Program, term: TermId) -> VariableId {
    match program.terms.term(term) {
        Term::Variable(variable) => *variable,
        other => unreachable!("declared names are variables, not {other:?}"),
    }
}
