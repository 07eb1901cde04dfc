//! A trace with only some of its events.

use std::collections::HashMap;

use crate::id::EventId;
use crate::term::{Term, TermStore};
use crate::trace::Trace;

/// Stands for an event that is left out.
const GONE: u32 = u32::MAX;

impl Trace {
    /// The trace with these events only, and for each of them which one it was. Events that stay must not refer
    /// to values that others read (or this panics). For traces that were recorded: symbols and terms about the order are not
    /// in those.
    pub fn keeping(&self, stays: impl Fn(EventId) -> bool) -> (Trace, Vec<EventId>) {
        let mut origin = Vec::new();
        let mut events = Vec::new();
        let mut numbers = vec![GONE; self.events.len()];
        // The new index of each event of a thread.
        let mut indices: Vec<Vec<u32>> = vec![Vec::new(); self.threads.len()];
        let mut counts = vec![0; self.threads.len()];
        for (position, event) in self.events.iter().enumerate() {
            let thread = event.thread.index();
            if !stays(EventId::from(position)) {
                indices[thread].push(GONE);
                continue;
            }
            numbers[position] = events.len() as u32;
            origin.push(EventId::from(position));
            let mut event = event.clone();
            event.index = counts[thread];
            indices[thread].push(counts[thread]);
            counts[thread] += 1;
            events.push(event);
        }
        let (mut terms, mut copies) = (TermStore::default(), HashMap::new());
        let mut moved = |terms: &mut TermStore, leaf| match *self.terms.term(leaf) {
            Term::ReadValue(thread, index) => {
                let new = indices[thread.index()][index as usize];
                assert_ne!(new, GONE, "an event that stays refers to a read that does not");
                terms.read_value(thread, new, self.terms.sort(leaf))
            }
            Term::Variable(variable) => terms.variable(variable, self.terms.sort(leaf)),
            Term::Primed(variable) => terms.primed(variable, self.terms.sort(leaf)),
            ref other => unreachable!("{other:?} in a recorded trace"),
        };
        let mut precondition = self.precondition;
        let roots = events.iter_mut().flat_map(|event| event.op.terms_mut());
        for root in roots.chain(&mut precondition) {
            *root = terms.import(&self.terms, *root, &mut copies, &mut moved);
        }
        let number = |event: EventId| match numbers[event.index()] {
            GONE => None,
            number => Some(EventId(number)),
        };
        let pair = |&(one, two): &(EventId, EventId)| Some((number(one)?, number(two)?));
        let labels = self.labels.iter();
        let trace = Trace {
            metadata: self.metadata.clone(),
            threads: self.threads.clone(),
            variables: self.variables.clone(),
            objects: self.objects.clone(),
            sites: self.sites.clone(),
            orders: self.orders.iter().filter_map(pair).collect(),
            atomic_sections: self.atomic_sections.iter().filter_map(pair).collect(),
            labels: labels
                .filter_map(|(&event, name)| Some((number(event)?, name.clone())))
                .collect(),
            terms,
            events,
            precondition,
        };
        (trace, origin)
    }
}
