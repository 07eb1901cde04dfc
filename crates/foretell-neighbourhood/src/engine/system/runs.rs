//! Questions about a whole run: what it demands of the inputs, and what was chosen in it.

use std::collections::BTreeSet;

use fixedbitset::FixedBitSet;
use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_trace::{EventId, Operator, SymbolId, Term, TermId, TermStore, Value, VariableId};

use super::program::Accesses;
use super::transition::Check;
use super::{State, StepId, System};

impl System {
    /// All conditions that a run demands of the inputs, without replacing any of them.
    pub(crate) fn run_condition(&mut self, run: &[StepId], failure: Option<EventId>) -> TermId {
        let mut state = State::new(self.threads.len(), &self.initial, self.condition);
        let mut path = self.condition;
        for &step in run {
            let outcome = self.outcome(&state, step);
            for check in &outcome.checks {
                match *check {
                    Check::Assert(event, condition) if Some(event) == failure => {
                        let negated = self.terms.not(condition);
                        return self.terms.and(&[path, negated]);
                    }
                    Check::Assert(_, condition) | Check::Assume(condition) => {
                        path = self.terms.and(&[path, condition]);
                    }
                }
            }
            state.advance(self.steps[step].thread);
            for &(variable, value) in &outcome.writes {
                state.set_value(variable, value);
            }
        }
        path
    }

    /// The inputs that the failing assertion of a run depends on, if they have no say in any guard
    /// (nor in what the precondition asks of other inputs): then an interleaving that some inputs
    /// complete is also completed with these inputs changed.
    pub(crate) fn inputs_of_assertion_only(
        &mut self,
        run: &[StepId],
        failing: EventId,
    ) -> Option<BTreeSet<SymbolId>> {
        let all = self.run_condition(run, Some(failing));
        let path = self.run_condition(&run[..run.len() - 1], None);
        let conjuncts = |terms: &TermStore, term: TermId| match terms.term(term) {
            Term::Apply(Operator::And, parts) => parts.to_vec(),
            _ => vec![term],
        };
        let symbols = |terms: &TermStore, term: TermId| -> BTreeSet<SymbolId> {
            let leaves = terms.leaves(term);
            let symbol = |&leaf: &TermId| match *terms.term(leaf) {
                Term::Symbol(symbol) => Some(symbol),
                _ => None,
            };
            leaves.iter().filter_map(symbol).collect()
        };
        let before = conjuncts(&self.terms, path);
        let mut inputs = BTreeSet::new();
        for part in conjuncts(&self.terms, all) {
            if !before.contains(&part) {
                inputs.extend(symbols(&self.terms, part));
            }
        }
        for part in conjuncts(&self.terms, self.condition) {
            let mentioned = symbols(&self.terms, part);
            if !mentioned.is_disjoint(&inputs) && !mentioned.is_subset(&inputs) {
                return None;
            }
        }
        // variables that the inputs flow into
        let mut tainted = FixedBitSet::with_capacity(self.variable_count);
        for (variable, &term) in self.initial.iter().enumerate() {
            if !symbols(&self.terms, term).is_disjoint(&inputs) {
                tainted.insert(variable);
            }
        }
        for (&(_, variable), &term) in &self.choices {
            if !symbols(&self.terms, term).is_disjoint(&inputs) {
                tainted.insert(variable);
            }
        }
        loop {
            let before = tainted.clone();
            for accesses in &self.accesses {
                if accesses.reads.iter().any(|&variable| tainted.contains(variable)) {
                    accesses.writes.iter().for_each(|&variable| tainted.insert(variable));
                }
            }
            if tainted == before {
                break;
            }
        }
        let decides =
            |accesses: &Accesses| accesses.guard.iter().any(|&variable| tainted.contains(variable));
        (!inputs.is_empty() && !self.accesses.iter().any(decides)).then_some(inputs)
    }

    /// What transition predicates chose in a run of a closed system.
    pub(crate) fn chosen_values(
        &mut self,
        run: &[StepId],
        ctp: &ConcurrentTraceProgram,
    ) -> Vec<(EventId, VariableId, Value)> {
        let mut chosen = Vec::new();
        let Some(mut state) = self.initial_state() else { return chosen };
        for &step in run {
            let outcome = self.outcome(&state, step);
            for &event in &self.steps[step].events {
                let Action::Transition { changed, .. } = &ctp.event(event).action else { continue };
                for &variable in changed {
                    let written = outcome.writes.iter().find(|(v, _)| *v == variable.index());
                    let value = written.and_then(|&(_, term)| self.terms.constant_value(term));
                    let zero = || Value::zero(ctp.variables[variable.index()].sort);
                    chosen.push((event, variable, value.cloned().unwrap_or_else(zero)));
                }
            }
            match self.take(&state, step).next {
                Some(next) => state = next,
                None => break,
            }
        }
        chosen
    }
}
