//! Bounds on context switches (004 section 5).
//!
//! The paper lets the execution time grow only where the thread changes and bounds the time of the
//! last event. Here `b` separators cut the order of all events into `b + 1` stretches, and each
//! stretch belongs to one thread, which is the same bound in terms of `Before`. As in the paper it
//! counts the switches of the whole linearization; with prefixes (000 section 5) what comes after
//! the end is part of it, without any demand on values.
//!
//! The bound is an assumption: when a proof does not use it, the property holds in all
//! interleavings ([`crate::engine::Verdict`]).

use foretell_solve::problem::OrderProblem;
use foretell_trace::{EventId, Sort, TermId};

/// The terms that switch the bound on.
#[derive(Clone, Debug)]
pub struct ContextBound {
    /// Every stretch belongs to one thread.
    active: TermId,
    /// By number of switches: no event comes after that many separators.
    within: Vec<TermId>,
}

impl ContextBound {
    /// Adds the separators for up to `most` switches. `threads` are the chains whose switches
    /// count, and `next_event` is a number that no event has yet.
    pub fn add(
        problem: &mut OrderProblem,
        threads: &[Vec<EventId>],
        next_event: EventId,
        most: u32,
    ) -> Self {
        let separators: Vec<EventId> =
            (0..=most).map(|number| EventId(next_event.0 + number)).collect();
        problem.chains.push(separators.clone());
        if !problem.names.is_empty() {
            problem.names.resize(next_event.index(), String::new());
            problem.names.extend((0..=most).map(|number| format!("switch{number}")));
        }
        let terms = &mut problem.terms;
        let active = terms.fresh_symbol("bounded", Sort::BOOL);
        let inactive = terms.not(active);
        for stretch in 0..=most as usize {
            let owners: Vec<TermId> = (0..threads.len())
                .map(|thread| terms.fresh_symbol(format!("stretch{stretch}.t{thread}"), Sort::BOOL))
                .collect();
            for (number, &one) in owners.iter().enumerate() {
                let not_one = terms.not(one);
                for &other in &owners[number + 1..] {
                    let not_other = terms.not(other);
                    problem.asserted.push(terms.or(&[inactive, not_one, not_other]));
                }
            }
            for (chain, &owner) in threads.iter().zip(&owners) {
                for &event in chain {
                    let mut ways = vec![inactive, owner];
                    if let Some(before) = stretch.checked_sub(1) {
                        ways.push(terms.before(event, separators[before]));
                    }
                    ways.push(terms.before(separators[stretch], event));
                    problem.asserted.push(terms.or(&ways));
                }
            }
        }
        let last: Vec<EventId> = threads.iter().filter_map(|chain| chain.last().copied()).collect();
        let within = separators
            .iter()
            .map(|&separator| {
                let parts: Vec<TermId> =
                    last.iter().map(|&event| terms.before(event, separator)).collect();
                terms.and(&parts)
            })
            .collect();
        Self { active, within }
    }

    /// The assumptions that allow at most so many switches.
    pub fn at_most(&self, switches: u32) -> [TermId; 2] {
        [self.active, self.within[switches as usize]]
    }

    /// Did a proof need the bound?
    pub fn is_in(&self, core: &[TermId]) -> bool {
        core.iter().any(|term| *term == self.active || self.within.contains(term))
    }
}
