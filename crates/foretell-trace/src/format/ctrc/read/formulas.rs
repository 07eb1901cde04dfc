//! Formulas of CTRC as terms, and what they say of a step: guards and assignments.

use std::collections::{BTreeSet, HashMap};

use super::Result1;
use crate::event::{Guarded, Op, Transition};
use crate::id::{TermId, VariableId};
use crate::sexpr::{Atom, NodeId, Refusal, Scope as TermScope, Tree};
use crate::term::{Operator, Term, TermStore, Value};
use crate::trace::Variable;

pub(super) fn undeclared(name: &str) -> Refusal {
    Refusal {
        message: format!("`{name}` is not declared"),
        help: "add it under `global:` or to the thread's `{ ... }`".into(),
    }
}

/// Names as an instruction sees them.
pub(super) struct Names<'n, 'a> {
    pub(super) globals: &'n HashMap<&'a str, VariableId>,
    pub(super) locals: Option<&'n HashMap<&'a str, VariableId>>,
    pub(super) variables: &'n [Variable],
    /// Why dots are not allowed here, where they are not.
    pub(super) no_dots: Option<&'static str>,
    /// The variables with a dot, also those that simplification removes.
    pub(super) primed: BTreeSet<VariableId>,
}

impl TermScope for Names<'_, '_> {
    fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal> {
        let name = atom.name.as_ref();
        if !atom.suffix.is_empty() {
            return Err(Refusal {
                message: format!("`{}` follows a closing bar", atom.suffix),
                help: "the dot goes inside the bars: `|f::x.|`".into(),
            });
        }
        if let Some(variable) = self.variable(name) {
            return Ok(terms.variable(variable, self.variables[variable.index()].sort));
        }
        let primed = name.strip_suffix('.').and_then(|name| self.variable(name));
        let variable = primed.ok_or_else(|| undeclared(name))?;
        if let Some(reason) = self.no_dots {
            return Err(Refusal {
                message: format!("`{name}` has a dot here"),
                help: reason.into(),
            });
        }
        self.primed.insert(variable);
        Ok(terms.primed(variable, self.variables[variable.index()].sort))
    }

    fn form(
        &mut self,
        terms: &mut TermStore,
        tree: &Tree<'_>,
        list: NodeId,
        head: &str,
    ) -> Result1<Option<TermId>> {
        match head {
            "forall" => self.constant_array(terms, tree, list),
            _ => Ok(None),
        }
    }
}

/// The parts of a conjunction.
pub(super) fn conjuncts(terms: &TermStore, term: TermId) -> Vec<TermId> {
    match terms.term(term) {
        Term::Apply(Operator::And, parts) => parts.to_vec(),
        Term::Constant(Value::Bool(true)) => Vec::new(),
        _ => vec![term],
    }
}

/// The leaf and what it is equal to, when the conjunct says so: `(= x e)`, or `x` or `(not x)` for
/// a Boolean.
pub(super) fn equation(
    terms: &mut TermStore,
    conjunct: TermId,
    leaf: impl Fn(&Term) -> Option<VariableId>,
) -> Option<(VariableId, TermId)> {
    if let Some(variable) = leaf(terms.term(conjunct)) {
        return Some((variable, terms.bool(true)));
    }
    match terms.term(conjunct) {
        Term::Apply(Operator::Not, parts) => {
            let variable = leaf(terms.term(parts[0]))?;
            Some((variable, terms.bool(false)))
        }
        Term::Apply(Operator::Eq, parts) => {
            let (left, right) = (parts[0], parts[1]);
            let by = |this: TermId, other: TermId| Some((leaf(terms.term(this))?, other));
            by(left, right).or_else(|| by(right, left))
        }
        _ => None,
    }
}

/// The event for a predicate without `havok`: a guarded assignment if each primed variable is
/// equated once with an expression of unprimed ones and stands nowhere else.
pub(in crate::format::ctrc) fn step_of_predicate(
    terms: &mut TermStore,
    predicate: TermId,
    primed: &BTreeSet<VariableId>,
) -> Op {
    let mut cache = HashMap::new();
    let mut guard = Vec::new();
    let mut assignments: Vec<(VariableId, TermId)> = Vec::new();
    let mut plain = true;
    for conjunct in conjuncts(terms, predicate) {
        if !mentions_primed(terms, conjunct, &mut cache) {
            guard.push(conjunct);
            continue;
        }
        let equation = equation(terms, conjunct, |term| match term {
            Term::Primed(variable) => Some(*variable),
            _ => None,
        });
        match equation {
            Some((variable, value)) if !mentions_primed(terms, value, &mut cache) => {
                assignments.push((variable, value));
            }
            _ => plain = false,
        }
    }
    assignments.sort_unstable();
    if plain && assignments.iter().map(|(variable, _)| variable).eq(primed) {
        let guard = terms.and(&guard);
        Op::Guarded(Box::new(Guarded { guard, assignments }))
    } else {
        let changed = primed.iter().copied().collect();
        Op::Transition(Box::new(Transition { predicate, changed }))
    }
}

/// Is a primed variable below the term? `cache` keeps the answers, so that what conjuncts share is
/// looked at once.
fn mentions_primed(terms: &TermStore, root: TermId, cache: &mut HashMap<TermId, bool>) -> bool {
    let mut stack = vec![root];
    while let Some(&top) = stack.last() {
        let answer = match terms.term(top) {
            Term::Primed(_) => true,
            Term::Apply(_, parts) => {
                let before = stack.len();
                stack.extend(parts.iter().filter(|part| !cache.contains_key(part)));
                if stack.len() > before {
                    continue;
                }
                parts.iter().any(|part| cache[part])
            }
            _ => false,
        };
        cache.insert(top, answer);
        stack.pop();
    }
    cache[&root]
}
