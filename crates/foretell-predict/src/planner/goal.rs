//! Temporally extended goals: linear temporal logic over finite runs, compiled to an automaton
//! that runs beside the search (003 section 4.1 names the idea; the paper compiles one pattern by
//! hand).
//!
//! ```text
//! formula := or ('->' formula)?          or   := and ('|' and)*      and := bind ('&' bind)*
//! bind    := unary (('U' | 'S') bind)?   unary := ('!' | X | F | G | Y | O | H) unary | primary
//! primary := '(' formula ')' | true | false | next(EVENT) | EVENT | PATTERN '(' EVENT, ... ')'
//! ```
//! `EVENT` holds at the step in which the event takes place; `next(EVENT)` holds where it is the
//! next event of its thread. `X`, `F`, `G`, `U` look ahead (and `X` demands that there is a next
//! step), `Y`, `O`, `H`, `S` look back; nothing may look ahead inside an operator that looks back.
//! An event whose name is an operator or has special characters is quoted: `'F'`.
//!
//! The patterns are abbreviations (a, b of one thread, c, d of another):
//!
//! | pattern | means |
//! |---|---|
//! | `three(a, c, b)` | c between a and b: `F(a & X F(c & !O b))` |
//! | `twovars(a, c, d, b)` | c, then d (two variables) between a and b |
//! | `cross(a, c, b, d)` | a, c, b, d in this order: each thread is torn by the other |
//! | `order(use, define)` | use without define before it |
//! | `deadlock(a, c)` | both are the next events of their threads at once |

mod automaton;
mod parse;

pub use automaton::{Atom, Automaton, GoalState, Letter};
use parse::{Parser, tokens};

/// A formula as written, with events by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Always or never.
    Constant(bool),
    /// The event takes place in this step.
    Event(String),
    /// The event is the next one of its thread after this step.
    Next(String),
    /// Not.
    Not(Box<Formula>),
    /// All of them.
    And(Vec<Formula>),
    /// One of them.
    Or(Vec<Formula>),
    /// An operator with one operand.
    Unary(Unary, Box<Formula>),
    /// The second holds some time, the first until then.
    Until(Box<Formula>, Box<Formula>),
    /// The second held some time, the first since then.
    Since(Box<Formula>, Box<Formula>),
}

/// Temporal operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// There is a next step, and it holds there.
    Next,
    /// Now or later.
    Finally,
    /// Now and ever after.
    Globally,
    /// There was a step before, and it held there.
    Yesterday,
    /// Now or before.
    Once,
    /// Now and ever before.
    Historically,
}

/// Why a goal cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    /// Column from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for GoalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "goal, column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for GoalError {}

impl Formula {
    /// Reads a goal.
    pub fn parse(text: &str) -> Result<Formula, GoalError> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, at: 0, end: text.chars().count() + 1, depth: 0 };
        let formula = parser.formula()?;
        match parser.tokens.get(parser.at) {
            Some((column, token)) => Err(GoalError {
                column: *column,
                message: format!("`{token}` is not expected here; join parts with & or |"),
            }),
            None => Ok(formula),
        }
    }

    /// A three-access atomicity violation.
    pub fn three_accesses(first: &str, remote: &str, second: &str) -> Formula {
        sequence(&[first, remote], &[second])
    }

    /// The names of the events it speaks of, in order of appearance.
    pub fn events(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.visit(&mut |formula| {
            if let Formula::Event(name) | Formula::Next(name) = formula
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        });
        names
    }

    /// The steps of a sequence `F(s1 & X F(s2 & ... & !O z))` and the events that must not come
    /// before its end.
    pub fn as_sequence(&self) -> Option<(Vec<&str>, Vec<&str>)> {
        let Formula::Unary(Unary::Finally, body) = self else { return None };
        let parts = match &**body {
            Formula::And(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let (Formula::Event(step), rest) = parts.split_first()? else { return None };
        if let [Formula::Unary(Unary::Next, inner)] = rest {
            let (mut steps, forbidden) = inner.as_sequence()?;
            steps.insert(0, step);
            return Some((steps, forbidden));
        }
        let forbidden: Option<Vec<&str>> = rest.iter().map(Formula::never_before).collect();
        Some((vec![step], forbidden?))
    }

    /// The event of `!O event`.
    fn never_before(&self) -> Option<&str> {
        let Formula::Not(inner) = self else { return None };
        let Formula::Unary(Unary::Once, event) = &**inner else { return None };
        let Formula::Event(name) = &**event else { return None };
        Some(name)
    }

    fn visit<'a>(&'a self, visitor: &mut impl FnMut(&'a Formula)) {
        visitor(self);
        match self {
            Formula::Constant(_) | Formula::Event(_) | Formula::Next(_) => {}
            Formula::Not(inner) | Formula::Unary(_, inner) => inner.visit(visitor),
            Formula::And(parts) | Formula::Or(parts) => {
                parts.iter().for_each(|part| part.visit(visitor));
            }
            Formula::Until(left, right) | Formula::Since(left, right) => {
                left.visit(visitor);
                right.visit(visitor);
            }
        }
    }
}

/// `F(s1 & X F(s2 & ... X F(sn & !O forbidden)))`
fn sequence(steps: &[&str], forbidden: &[&str]) -> Formula {
    let (first, rest) = steps.split_first().expect("a sequence has a step");
    let mut parts = vec![Formula::Event((*first).into())];
    if rest.is_empty() {
        parts.extend(forbidden.iter().map(|name| {
            let once = Formula::Unary(Unary::Once, Box::new(Formula::Event((*name).into())));
            Formula::Not(Box::new(once))
        }));
    } else {
        parts.push(Formula::Unary(Unary::Next, Box::new(sequence(rest, forbidden))));
    }
    Formula::Unary(Unary::Finally, Box::new(Formula::And(parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the automaton over event names and says whether it accepts.
    fn accepts(goal: &str, run: &[&str]) -> bool {
        let mut automaton = Automaton::new(&Formula::parse(goal).unwrap()).unwrap();
        let mut state = automaton.initial();
        for event in run {
            let letter = automaton.atoms().iter().enumerate().fold(0, |letter, (bit, atom)| {
                letter | u64::from(*atom == Atom::Event((*event).into())) << bit
            });
            state = automaton.step(state, letter);
        }
        automaton.accepts(state)
    }

    #[test]
    fn the_three_access_pattern_wants_the_remote_event_in_between() {
        for goal in ["F(e1 & X F(f & !O e2))", "three(e1, f, e2)"] {
            assert!(accepts(goal, &["e1", "f"]));
            assert!(accepts(goal, &["z", "e1", "z", "f", "e2"]));
            assert!(!accepts(goal, &["f", "e1", "e2"]));
            assert!(!accepts(goal, &["e1", "e2", "f"]));
            assert!(!accepts(goal, &["e1"]));
            assert!(!accepts(goal, &[]));
        }
    }

    #[test]
    fn operators_have_their_meaning_on_finite_runs() {
        assert!(accepts("X b", &["a", "b"]));
        assert!(!accepts("X true", &["a"]));
        assert!(accepts("!X true", &["a"]));
        assert!(accepts("a U b", &["a", "a", "b", "c"]));
        assert!(!accepts("a U b", &["a", "c", "b"]));
        assert!(accepts("G !b", &["a", "c"]));
        assert!(!accepts("G !b", &["a", "b"]));
        assert!(accepts("F(c & Y b)", &["b", "c"]));
        assert!(!accepts("F(c & Y b)", &["b", "a", "c"]));
        assert!(!accepts("Y true", &["a"]));
        assert!(accepts("F(c & (!a S b))", &["a", "b", "d", "c"]));
        assert!(!accepts("F(c & (!a S b))", &["b", "a", "c"]));
        assert!(accepts("F(c & H !a)", &["b", "c", "a"]));
        assert!(!accepts("F(c & H !a)", &["a", "c"]));
        assert!(accepts("F a -> F b", &["a", "b"]));
        assert!(!accepts("F a -> F b", &["a"]));
        assert!(accepts("F(d & Y Y b)", &["b", "c", "d"]));
    }

    #[test]
    fn errors_name_the_column_and_what_to_do() {
        let error = |goal: &str| Formula::parse(goal).unwrap_err().to_string();
        assert_eq!(error("F(a"), "goal, column 4: `)` is missing");
        assert_eq!(error(""), "goal, column 1: the goal ends too early");
        assert_eq!(
            error("a b"),
            "goal, column 3: `b` is not expected here; join parts with & or |"
        );
        assert_eq!(error("'a"), "goal, column 1: the quoted name does not end; add a '");
        assert!(
            error("three(a, b)").starts_with("goal, column 1: there is no pattern `three` of 2")
        );
        assert!(error(&"!".repeat(100_000)).contains("nested too deeply"));
        assert!(error(&"(".repeat(100_000)).contains("nested too deeply"));
        let ahead = Automaton::new(&Formula::parse("F(a & O F b)").unwrap()).unwrap_err();
        assert!(ahead.message.contains("cannot stand inside"));
    }
}
