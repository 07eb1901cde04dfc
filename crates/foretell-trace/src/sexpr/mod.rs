//! S-expressions and SMT-LIB terms: the one place where they are read and printed.
//!
//! Reading has two steps. [`Tree`] turns text into nodes with positions (`tree`); [`TermReader`] turns
//! a node into a term of a [`TermStore`](crate::TermStore), asking a [`Scope`] what names stand for
//! (`read`, literals and sorts in `literal`). `print` is the way back.
//! Both steps work with explicit stacks, so nesting is bounded by memory only. A budget bounds what
//! terms take beyond what is written (flattening conjunctions of conjunctions can square a hostile
//! file's size).
//!
//! The language is that of SMT-LIB 2.6 for the core, integers, reals, bit-vectors and arrays:
//! `let`, chained `=` and `<`, `distinct`, indexed operators, `((as const (Array Int Int)) 0)`.
//! Beyond SMT-LIB, as TARA's files and people's habits need it: an integer is taken for a real or
//! (when it is a literal) for a bit-vector where the other arguments ask for it, `-5` is a
//! numeral, and `(x)` is `x`. Quantifiers are refused.

mod literal;
mod print;
mod read;
#[cfg(test)]
mod tests;
mod tree;

use crate::format::{Position, ReadError};

pub use self::literal::{coerce, coerce_value, literal};
pub use self::print::{print_sort, print_term, print_value, quoted};
pub use self::read::{Refusal, Scope, TermReader};
pub use self::tree::{Atom, Comments, NodeId, Quote, Tree, skip_blank};

/// What is wrong in a text, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset in the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl SyntaxError {
    /// An error at a byte of the text.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same error with line and column.
    pub fn locate(self, text: &str) -> ReadError {
        let error = ReadError::new(Position::in_text(text, self.at), self.message);
        match self.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}
