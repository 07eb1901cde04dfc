//! CTRC, the format of TARA (POPL 2015): abstract traces, one path a thread, as constraints over
//! the values before (`x`) and after (`x.`) each instruction.
//!
//! ```text
//! file     := 'global' ':' variable*  pre?  thread+  (atomic | order)*
//! variable := NAME | NAME ':' NAME | NAME ':' sexpr
//! pre      := ('pre' | 'precondition') ':' sexpr
//! thread   := 'thread' NAME ('{' variable* '}')? ':' instr*
//! instr    := (loc ':')? ('havok' '(' NAME,* ')')? ('assert' | 'assume')? sexpr
//! loc      := NAME ('[' NAME ']')?
//! atomic   := 'atomic' ':' ('[' loc loc ']')*
//! order    := 'order' ':' (loc '<' loc)*
//! ```
//! `#` starts a comment, also inside a formula. Instructions become events so:
//!
//! | CTRC | event |
//! |---|---|
//! | `assume(e)`, or a formula without dots | [`Guarded`](crate::event::Guarded) without assignments |
//! | conjuncts `(= x. e)`, each dotted variable once, the others without dots | [`Guarded`](crate::event::Guarded) |
//! | anything else with dots, or with `havok` | [`Transition`](crate::event::Transition) |
//! | `assert(e)` | [`Assert`](crate::event::Op::Assert) |
//!
//! Where TARA crashes or is silent we handle the file or refuse it with line and column. Handled:
//! locals without a value (arbitrary), threads without instructions, a local that shadows a global,
//! any label (also `start`), bracketed labels in `order`, `let`, `ite`, `distinct`, chains,
//! integers where reals are meant, and the one quantifier that says that an array is constant.
//! Refused: other quantifiers, undeclared names, unknown types, an atomic section across threads, a
//! label given twice, dots in a precondition, an assume without `havok` or an assert.
//!
//! The format cannot say in which order events happened, what values they saw, where locals start,
//! or what locks are: [`write()`] refuses a trace with such things by naming the first. Creation
//! paths of threads are not kept; an event without a label gets the name TARA gives it.

mod read;
mod write;

pub use read::read;
pub use write::write;

/// Words that are not names.
const KEYWORDS: [&str; 9] =
    ["global", "pre", "precondition", "thread", "assert", "assume", "havok", "atomic", "order"];

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '\'' | '.')
}

#[cfg(test)]
mod tests;
