//! What the program leaves free: initial values and choices as inputs, and what its precondition
//! says of them.

use std::collections::{BTreeSet, HashMap};

use fixedbitset::FixedBitSet;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::{EventId, Operator, SymbolId, Term, TermId, TermStore};

use super::program::Program;
use super::{State, System};
use crate::engine::inputs::Satisfiable;
use crate::engine::symbolic;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The initial value of a variable.
    Initial(usize),
    /// What a transition predicate chose.
    Choice(EventId, usize),
}

impl System {
    /// Gives initial values and choices their terms; what the precondition says of single
    /// variables is put in place, the rest stays a condition.
    pub(super) fn name_inputs(&mut self, ctp: &ConcurrentTraceProgram) {
        let mut bindings: HashMap<usize, TermId> = HashMap::new();
        for (number, variable) in ctp.variables.iter().enumerate() {
            let term = match &variable.initial {
                Some(value) => self.terms.constant(value.clone()),
                None => {
                    let symbol = self.terms.fresh_symbol(variable.name.clone(), variable.sort);
                    if let Term::Symbol(id) = *self.terms.term(symbol) {
                        self.input_names.push((id, Input::Initial(number)));
                    }
                    symbol
                }
            };
            bindings.insert(number, term);
        }
        self.initial = (0..ctp.variables.len()).map(|number| bindings[&number]).collect();
        self.condition = self.terms.bool(true);
        if let Some(precondition) = ctp.precondition {
            let initial = self.initial.clone();
            let condition =
                symbolic::evaluate(&mut self.terms, precondition, &mut |leaf| match leaf {
                    Term::Variable(variable) => Some(initial[variable.index()]),
                    _ => None,
                });
            self.condition = condition;
            self.absorb_condition();
        }
        for event in 0..self.programs.len() {
            if let Program::Guarded { chosen, .. } = self.programs[event].clone() {
                for variable in chosen {
                    let name = format!("{}@{event}", ctp.variables[variable].name);
                    let symbol = self.terms.fresh_symbol(name, ctp.variables[variable].sort);
                    let event = EventId::from(event);
                    self.choices.insert((event, variable), symbol);
                    if let Term::Symbol(id) = *self.terms.term(symbol) {
                        self.input_names.push((id, Input::Choice(event, variable)));
                    }
                }
            }
        }
        // an input that no state contains is none
        let mut used = BTreeSet::new();
        let mut live = FixedBitSet::with_capacity(self.variable_count);
        self.live.iter().for_each(|rows| live.union_with(&rows[0]));
        let kept = self.initial.iter().enumerate().filter(|(v, _)| live.contains(*v));
        for term in
            kept.map(|(_, &t)| t).chain([self.condition]).chain(self.choices.values().copied())
        {
            used.extend(self.terms.leaves(term));
        }
        let terms = &self.terms;
        self.input_names.retain(|(symbol, _)| {
            used.iter().any(|&leaf| *terms.term(leaf) == Term::Symbol(*symbol))
        });
    }

    /// Equalities of the precondition become values.
    fn absorb_condition(&mut self) {
        loop {
            let conjuncts: Vec<TermId> = match self.terms.term(self.condition) {
                Term::Apply(Operator::And, parts) => parts.to_vec(),
                _ => vec![self.condition],
            };
            let Some((symbol, value, used)) =
                conjuncts.iter().find_map(|&part| self.as_binding(part))
            else {
                return;
            };
            let rest: Vec<TermId> =
                conjuncts.iter().copied().filter(|&part| part != used).collect();
            let rest = self.terms.and(&rest);
            let replace = |terms: &mut TermStore, term: TermId| {
                symbolic::evaluate(terms, term, &mut |leaf| match leaf {
                    Term::Symbol(id) if *id == symbol => Some(value),
                    _ => None,
                })
            };
            self.condition = replace(&mut self.terms, rest);
            for at in 0..self.initial.len() {
                self.initial[at] = replace(&mut self.terms, self.initial[at]);
            }
        }
    }

    /// `symbol = value` from a conjunct: `s`, `¬s`, `s = t`, or `select(s, c) = t` as the array
    /// `store(fresh, c, t)`.
    fn as_binding(&mut self, conjunct: TermId) -> Option<(SymbolId, TermId, TermId)> {
        match self.terms.term(conjunct).clone() {
            Term::Symbol(symbol) => Some((symbol, self.terms.bool(true), conjunct)),
            Term::Apply(Operator::Not, parts) => match *self.terms.term(parts[0]) {
                Term::Symbol(symbol) => Some((symbol, self.terms.bool(false), conjunct)),
                _ => None,
            },
            Term::Apply(Operator::Eq, sides) => {
                for (left, right) in [(sides[0], sides[1]), (sides[1], sides[0])] {
                    let occurs = |store: &TermStore, symbol| {
                        store
                            .leaves(right)
                            .iter()
                            .any(|&leaf| *store.term(leaf) == Term::Symbol(symbol))
                    };
                    match self.terms.term(left).clone() {
                        Term::Symbol(symbol) if !occurs(&self.terms, symbol) => {
                            return Some((symbol, right, conjunct));
                        }
                        Term::Apply(Operator::Select, parts)
                            if self.terms.constant_value(parts[1]).is_some() =>
                        {
                            let Term::Symbol(symbol) = *self.terms.term(parts[0]) else { continue };
                            if occurs(&self.terms, symbol) {
                                continue;
                            }
                            let old = self.terms.symbol(symbol).clone();
                            let fresh = self.terms.fresh_symbol(old.name, old.sort);
                            if let Term::Symbol(id) = *self.terms.term(fresh)
                                && let Some((_, input)) =
                                    self.input_names.iter().find(|(name, _)| *name == symbol)
                            {
                                let input = *input;
                                self.input_names.push((id, input));
                            }
                            let array = symbolic::apply(
                                &mut self.terms,
                                Operator::Store,
                                &[fresh, parts[1], right],
                            );
                            return Some((symbol, array, conjunct));
                        }
                        _ => {}
                    }
                }
                self.linear_binding(conjunct, &sides)
            }
            _ => None,
        }
    }

    /// `s + rest = c` over integers or reals as `s = c - rest`.
    fn linear_binding(
        &mut self,
        conjunct: TermId,
        sides: &[TermId],
    ) -> Option<(SymbolId, TermId, TermId)> {
        for (sum, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let Term::Apply(Operator::Add, parts) = self.terms.term(sum).clone() else { continue };
            for (at, &part) in parts.iter().enumerate() {
                let Term::Symbol(symbol) = *self.terms.term(part) else { continue };
                let rest: Vec<TermId> =
                    parts.iter().enumerate().filter(|&(i, _)| i != at).map(|(_, &p)| p).collect();
                let mentions = rest.iter().chain([&other]).any(|&term| {
                    let leaves = self.terms.leaves(term);
                    leaves.iter().any(|&leaf| *self.terms.term(leaf) == Term::Symbol(symbol))
                });
                if mentions {
                    continue;
                }
                let mut arguments = vec![other];
                arguments.extend(rest);
                let value = symbolic::apply(&mut self.terms, Operator::Sub, &arguments);
                return Some((symbol, value, conjunct));
            }
        }
        None
    }

    /// The first state; `None` when no input satisfies the precondition.
    pub(crate) fn initial_state(&mut self) -> Option<State> {
        if let Satisfiable::No = self.inputs.check(&self.terms, self.condition) {
            return None;
        }
        let mut state = State::new(self.threads.len(), &self.initial, self.condition);
        state.forget(&self.live);
        Some(state)
    }

    /// The initial value of a variable.
    pub(crate) fn initial_value(&self, variable: usize) -> TermId {
        self.initial[variable]
    }
}
