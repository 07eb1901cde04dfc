//! Runs end at an assertion that fails.
//!
//! An [`Action::Assert`] is always possible, so that one can ask whether it fails. A question about
//! anything else must not be answered with a run that had already ended at an assertion. Both ways to
//! exclude such runs are changes of the CTP itself, so that encoder, validator and brute force obey
//! them alike.

use foretell_trace::{Scope, Term, TermId};

use crate::ctp::{Action, ConcurrentTraceProgram};

/// What assertions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertions {
    /// Every assertion that takes place holds.
    Hold,
    /// An assertion may fail; then nothing else of its thread takes place. (What other threads do
    /// after it cannot depend on it and can be left out.) A condition over shared variables, which
    /// only traces written by hand have, may fail anywhere.
    EndTheirThread,
}

impl ConcurrentTraceProgram {
    /// The CTP with assertions that do this.
    pub fn with_assertions(mut self, assertions: Assertions) -> Self {
        for thread in 0..self.threads.len() {
            let mut held: Vec<TermId> = Vec::new();
            for event in self.threads[thread].clone() {
                let action = &mut self.events[event.index()].action;
                let before = self.terms.and(&held);
                match action {
                    Action::Assert { condition } => {
                        let condition = *condition;
                        match assertions {
                            Assertions::Hold => {
                                let assignments = Vec::new();
                                *action = Action::Guarded { guard: condition, assignments };
                            }
                            Assertions::EndTheirThread => {
                                // It takes place only after those before have held.
                                let fails = self.terms.implies(before, condition);
                                *action = Action::Assert { condition: fails };
                                if self.is_of_one_thread(condition) {
                                    held.push(condition);
                                }
                            }
                        }
                    }
                    Action::Guarded { guard, .. } => {
                        *guard = self.terms.and(&[*guard, before]);
                        held.clear();
                    }
                    Action::Transition { predicate, .. } => {
                        *predicate = self.terms.and(&[*predicate, before]);
                        held.clear();
                    }
                }
            }
        }
        self
    }

    /// No other thread can change the value.
    fn is_of_one_thread(&self, term: TermId) -> bool {
        self.terms.leaves(term).iter().all(|&leaf| match *self.terms.term(leaf) {
            Term::Variable(variable) => self.variables[variable.index()].scope != Scope::Shared,
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;

    use foretell_trace::EventId;

    use super::*;
    use crate::brute::Interleavings;
    use crate::validate::{Witness, validate};
    use foretell_testing::machine::random_trace;

    /// All feasible orders; `None` where there are too many, or inputs that cannot all be tried.
    fn prefixes(ctp: &ConcurrentTraceProgram) -> Option<Vec<Witness>> {
        const MOST: usize = 20_000;
        let mut found = Vec::new();
        let visited = Interleavings::new(ctp).visit(&mut |prefix| {
            found.push(prefix.witness.clone());
            match found.len() {
                MOST.. => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        visited.ok().filter(|()| found.len() < MOST)?;
        Some(found)
    }

    #[test]
    fn prefixes_are_those_without_a_failed_assertion() {
        let (mut compared, mut failing) = (0, 0);
        for seed in 0..400 {
            let trace = random_trace(seed);
            let Ok(ctp) = ConcurrentTraceProgram::build(&trace) else { continue };
            let Some(all) = prefixes(&ctp) else { continue };
            let orders = |witnesses: Vec<Witness>| -> BTreeSet<Vec<EventId>> {
                witnesses.into_iter().map(|witness| witness.order).collect()
            };
            let holding = |witness: &Witness| {
                validate(&ctp, witness).expect("it was enumerated").violated.is_empty()
            };
            let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(holding);
            failing += bad.len();
            compared += 1;
            let held = ctp.clone().with_assertions(Assertions::Hold);
            let Some(held) = prefixes(&held) else { continue };
            assert_eq!(orders(held), orders(good), "seed {seed}");
        }
        assert!(compared > 100 && failing > 100, "{compared} compared, {failing} failing");
    }
}
