//! Random valid traces, for property tests.
//!
//! [`recorded`] simulates a run: threads are forked and joined, locks are held by one, reads return
//! what was written, terms evaluate to the values beside them. [`abstracted`] makes traces like
//! CTRC's: guarded assignments and transition predicates over variables of every sort. Both are
//! functions of a seed, so a failing test is repeated by its seed.

mod recorded;
mod terms;

use foretell_trace::event::{Event, Guarded, MemoryOrder, Op, Transition};
use foretell_trace::id::{EventId, TermId, ThreadId, VariableId};
use foretell_trace::term::{ScalarSort, Sort};
use foretell_trace::trace::{Scope, Trace, Variable};

use crate::random::Random;
pub use recorded::recorded;
pub use terms::{random_term, random_value};

impl Random {
    /// Mostly small, sometimes any.
    fn value(&mut self) -> u64 {
        match self.below(4) {
            0 => self.bits(),
            1 => self.bits() % 1000,
            _ => self.bits() % 4,
        }
    }

    fn order(&mut self) -> MemoryOrder {
        [
            MemoryOrder::Relaxed,
            MemoryOrder::Acquire,
            MemoryOrder::Release,
            MemoryOrder::AcquireRelease,
            MemoryOrder::SequentiallyConsistent,
        ][self.below(5)]
    }

    /// A name that no other number gets; some are hard to write down.
    fn name(&mut self, prefix: &str, number: usize) -> String {
        let suffix = ["", "", "", "", ".next", " with space", "\"", "\\", "ü→\t", "(*)", "::<T>"]
            [self.below(11)];
        format!("{prefix}{number}{suffix}")
    }
}

/// A trace as the seed decides: recorded or abstracted, with about `size` events.
pub fn trace(seed: u64, size: usize) -> Trace {
    if seed.is_multiple_of(3) { abstracted(seed, size) } else { recorded(seed, size) }
}

/// A trace of guarded assignments and transitions with about `size` events, thread after thread,
/// with a precondition, orders, sections and labels.
pub fn abstracted(seed: u64, size: usize) -> Trace {
    let mut random = Random::new(seed);
    let mut trace = Trace::new();
    trace.metadata.symbolic = true;
    for number in 0..1 + random.below(3) {
        let name = random.name("t", number);
        trace.add_thread(&name, vec![number as u32]);
    }
    let scalars = [
        ScalarSort::Int,
        ScalarSort::Int,
        ScalarSort::Bool,
        ScalarSort::Real,
        ScalarSort::BitVec(32),
    ];
    for number in 0..1 + random.below(6) {
        let sort = if random.percent(15) {
            Sort::Array { index: scalars[random.below(5)], element: scalars[random.below(5)] }
        } else {
            Sort::Scalar(scalars[random.below(5)])
        };
        let scope = if random.percent(30) {
            Scope::Local(ThreadId::from(random.below(trace.threads.len())))
        } else {
            Scope::Shared
        };
        let initial = random.percent(50).then(|| random_value(&mut random, sort));
        let name = random.name("v", number).into();
        trace.add_variable(Variable { name, sort, scope, memory: None, initial });
    }
    let sorts: Vec<Sort> = trace.variables.iter().map(|variable| variable.sort).collect();
    let unprimed: Vec<TermId> = sorts
        .iter()
        .enumerate()
        .map(|(id, &sort)| trace.terms.variable(VariableId::from(id), sort))
        .collect();
    if random.percent(60) {
        let term = random_term(&mut random, &mut trace.terms, Sort::BOOL, &unprimed, 3);
        trace.precondition = Some(term);
    }
    for thread in 0..trace.threads.len() {
        let thread = ThreadId::from(thread);
        let sees = |variable: &VariableId| {
            let scope = trace.variables[variable.index()].scope;
            scope == Scope::Shared || scope == Scope::Local(thread)
        };
        let visible: Vec<VariableId> =
            (0..sorts.len()).map(VariableId::from).filter(sees).collect();
        let before: Vec<TermId> = visible.iter().map(|id| unprimed[id.index()]).collect();
        let count = size / trace.threads.len();
        let first = trace.events.len();
        for index in 0..count as u32 {
            let mut targets = visible.clone();
            targets.retain(|_| random.percent(40));
            let terms = &mut trace.terms;
            let op = if random.percent(75) {
                let guard = random_term(&mut random, terms, Sort::BOOL, &before, 2);
                let assignments = targets
                    .iter()
                    .map(|&target| {
                        let sort = sorts[target.index()];
                        (target, random_term(&mut random, terms, sort, &before, 2))
                    })
                    .collect();
                Op::Guarded(Box::new(Guarded { guard, assignments }))
            } else {
                let mut leaves = before.clone();
                leaves.extend(targets.iter().map(|&id| terms.primed(id, sorts[id.index()])));
                let predicate = random_term(&mut random, terms, Sort::BOOL, &leaves, 3);
                Op::Transition(Box::new(Transition { predicate, changed: targets }))
            };
            let event = trace.push(Event { thread, index, site: None, op });
            if random.percent(30) {
                trace.labels.insert(event, random.name("e", event.index()).into());
            }
        }
        if count >= 2 && random.percent(50) {
            let begin = first + random.below(count - 1);
            let end = begin + 1 + random.below(first + count - begin - 1);
            trace.atomic_sections.push((EventId::from(begin), EventId::from(end)));
        }
    }
    for _ in 0..random.below(4) {
        if trace.events.len() >= 2 {
            let first = random.below(trace.events.len() - 1);
            let second = first + 1 + random.below(trace.events.len() - first - 1);
            trace.orders.push((EventId::from(first), EventId::from(second)));
        }
    }
    trace
}
