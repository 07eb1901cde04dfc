//! One step from one state: what it does, whether it can be taken, where it leads.
//!
//! What a step does depends on the values that it reads and on nothing else, so it is computed once
//! for each of them.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use foretell_trace::{EventId, Operator, Term, TermId};

use super::program::Program;
use super::{State, StepId, System};
use crate::engine::inputs::Satisfiable;
use crate::engine::symbolic;

#[derive(Debug)]
pub(super) enum Check {
    Assume(TermId),
    Assert(EventId, TermId),
}

/// What a step does when it reads certain values.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(super) checks: Vec<Check>,
    pub(crate) writes: Vec<(usize, TermId)>,
}

/// What happened when a step was tried. Neither: the step is blocked.
pub(crate) struct Taken {
    /// The state after the step, where all its guards and assertions hold.
    pub(crate) next: Option<State>,
    /// An assertion can fail, and when.
    pub(crate) failure: Option<Failure>,
}

/// An assertion that can fail.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) event: EventId,
}

impl System {
    pub(super) fn outcome(&mut self, state: &State, step: StepId) -> Rc<Outcome> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend(self.steps[step].reads.iter().map(|&variable| state.value(variable)));
        let outcome = self.outcome_for(step, &key);
        self.key = key;
        outcome
    }

    /// What the step writes when it reads these values, in the order of [`Step::reads`]; `None`
    /// when a guard or an assertion certainly does not hold.
    pub(crate) fn passing_writes(&mut self, step: StepId, reads: &[TermId]) -> Option<Rc<Outcome>> {
        let outcome = self.outcome_for(step, reads);
        let fails = outcome.checks.iter().any(|check| match *check {
            Check::Assume(condition) | Check::Assert(_, condition) => {
                self.terms.is_false(condition)
            }
        });
        (!fails).then_some(outcome)
    }

    fn outcome_for(&mut self, step: StepId, key: &[TermId]) -> Rc<Outcome> {
        if let Some(outcome) = self.cache[step].get(key) {
            return Rc::clone(outcome);
        }
        let mut values: HashMap<usize, TermId> =
            self.steps[step].reads.iter().copied().zip(key.iter().copied()).collect();
        let mut outcome = Outcome { checks: Vec::new(), writes: Vec::new() };
        let mut changed = BTreeSet::new();
        for event in self.steps[step].events.clone() {
            let program = self.programs[event.index()].clone();
            let choices = &self.choices;
            let mut read = |leaf: &Term| match leaf {
                Term::Variable(variable) => values.get(&variable.index()).copied(),
                Term::Primed(variable) => choices
                    .get(&(event, variable.index()))
                    .or_else(|| values.get(&variable.index()))
                    .copied(),
                _ => None,
            };
            match program {
                Program::Assert { condition } => {
                    let holds = symbolic::evaluate(&mut self.terms, condition, &mut read);
                    if !self.terms.is_true(holds) {
                        outcome.checks.push(Check::Assert(event, holds));
                    }
                }
                Program::Guarded { guard, assignments, chosen } => {
                    let new: Vec<(usize, TermId)> = assignments
                        .iter()
                        .map(|&(variable, value)| {
                            (variable, symbolic::evaluate(&mut self.terms, value, &mut read))
                        })
                        .collect();
                    let holds = {
                        let mut read_guard = |leaf: &Term| match leaf {
                            Term::Primed(variable) => new
                                .iter()
                                .find(|(assigned, _)| *assigned == variable.index())
                                .map(|&(_, value)| value)
                                .or_else(|| read(leaf)),
                            _ => read(leaf),
                        };
                        symbolic::evaluate(&mut self.terms, guard, &mut read_guard)
                    };
                    if !self.terms.is_true(holds) {
                        outcome.checks.push(Check::Assume(holds));
                    }
                    for (variable, value) in new {
                        values.insert(variable, value);
                        changed.insert(variable);
                    }
                    for variable in chosen {
                        values.insert(variable, self.choices[&(event, variable)]);
                        changed.insert(variable);
                    }
                    if self.terms.is_false(holds) {
                        break;
                    }
                }
            }
        }
        outcome.writes =
            changed.into_iter().map(|variable| (variable, values[&variable])).collect();
        let outcome = Rc::new(outcome);
        self.cache[step].insert(key.into(), Rc::clone(&outcome));
        outcome
    }

    /// Tries the next step of its thread.
    pub(crate) fn take(&mut self, state: &State, step: StepId) -> Taken {
        let outcome = self.outcome(state, step);
        let mut path = state.condition();
        let mut failure = None;
        let mut learnt = Vec::new();
        for check in &outcome.checks {
            let (condition, assertion) = match *check {
                Check::Assume(condition) => (condition, None),
                Check::Assert(event, condition) => (condition, Some(event)),
            };
            if let Some(event) = assertion {
                let negated = self.terms.not(condition);
                let fails = self.terms.and(&[path, negated]);
                if failure.is_none()
                    && let Satisfiable::Yes = self.inputs.check(&self.terms, fails)
                {
                    failure = Some(Failure { event });
                }
            }
            path = self.terms.and(&[path, condition]);
            if let Satisfiable::No = self.inputs.check(&self.terms, path) {
                return Taken { next: None, failure };
            }
            learnt.push(condition);
        }
        let mut next = state.clone();
        next.advance(self.steps[step].thread);
        for &(variable, value) in &outcome.writes {
            next.set_value(variable, value);
        }
        next.set_condition(path);
        next.forget(&self.live);
        if !learnt.is_empty() {
            self.use_equalities(&mut next, &learnt);
        }
        Taken { next: Some(next), failure }
    }

    /// Does a guard of the step certainly not hold? (Before any of its assertions fails.)
    pub(crate) fn is_blocked(&mut self, state: &State, step: StepId) -> Option<bool> {
        let outcome = self.outcome(state, step);
        match outcome.checks.first() {
            None => Some(false),
            Some(Check::Assume(condition)) if self.terms.is_false(*condition) => Some(true),
            Some(Check::Assert(_, condition)) if self.terms.is_false(*condition) => Some(false),
            Some(_) => None,
        }
    }

    /// Like [`System::take`], but a thread whose guard does not hold gives up: the step and all
    /// later ones of the thread pass without effect.
    pub(crate) fn take_or_skip(&mut self, state: &State, step: StepId) -> Taken {
        let thread = self.steps[step].thread;
        let taken = match state.has_given_up(thread) {
            false => self.take(state, step),
            true => Taken { next: None, failure: None },
        };
        if taken.next.is_some() || taken.failure.is_some() {
            return taken;
        }
        let mut next = state.clone();
        next.advance(thread);
        next.give_up(thread);
        next.forget(&self.live);
        Taken { next: Some(next), failure: None }
    }

    /// An assumed `input = constant` replaces the input wherever the state has it.
    fn use_equalities(&mut self, state: &mut State, learnt: &[TermId]) {
        let mut queue = learnt.to_vec();
        while let Some(condition) = queue.pop() {
            let binding = match self.terms.term(condition).clone() {
                Term::Apply(Operator::And, parts) => {
                    queue.extend(parts.iter().copied());
                    None
                }
                Term::Symbol(symbol) => Some((symbol, self.terms.bool(true))),
                Term::Apply(Operator::Not, parts) => match *self.terms.term(parts[0]) {
                    Term::Symbol(symbol) => Some((symbol, self.terms.bool(false))),
                    _ => None,
                },
                Term::Apply(Operator::Eq, sides) => {
                    let pick = |a: TermId, b: TermId| match *self.terms.term(a) {
                        Term::Symbol(symbol) if self.terms.constant_value(b).is_some() => {
                            Some((symbol, b))
                        }
                        _ => None,
                    };
                    pick(sides[0], sides[1]).or_else(|| pick(sides[1], sides[0]))
                }
                _ => None,
            };
            let Some((symbol, value)) = binding else { continue };
            let terms = &mut self.terms;
            state.replace_terms(|term| match terms.constant_value(term) {
                Some(_) => term,
                None => symbolic::evaluate(terms, term, &mut |leaf| match leaf {
                    Term::Symbol(id) if *id == symbol => Some(value),
                    _ => None,
                }),
            });
        }
    }
}
