//! Which reads can return something else in another interleaving, as far as that can be decided without
//! a solver: those that another thread can write to before or after, and those of memory to which a
//! thread wrote what it had computed from such a read.
//!
//! Guaranteed: a read that is not among them returns what it did as long as all threads stay on their
//! paths. One pass over the trace.

use std::collections::{HashMap, HashSet};

use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, Op, Term, TermId, ThreadId, Trace};

use crate::access::{Accesses, Cell};
use crate::question::Instance;

/// The writes of one cell by one thread, in program order.
type Writes = HashMap<Cell, HashMap<ThreadId, Vec<EventId>>>;

/// Reads that may return something else.
pub fn influenced_reads(
    trace: &Trace,
    chains: &[Vec<EventId>],
    order: &MustOrder,
) -> HashSet<EventId> {
    let mut accesses = Accesses::new(trace);
    let mut here = Vec::new();
    let mut writes: Writes = HashMap::new();
    for event in (0..trace.events.len()).map(EventId::from) {
        accesses.of(event, &mut here);
        for access in here.iter().filter(|access| access.writes) {
            let of_cell = writes.entry(access.cell).or_default();
            of_cell.entry(trace.event(event).thread).or_default().push(event);
        }
    }
    let mut influenced: HashSet<EventId> = HashSet::new();
    // What was written last to each cell, and whether its value may be another one.
    let mut last: HashMap<Cell, bool> = HashMap::new();
    for event in (0..trace.events.len()).map(EventId::from) {
        accesses.of(event, &mut here);
        let op = &trace.event(event).op;
        let reads = here.iter().filter(|access| !access.writes);
        let varies = reads.into_iter().any(|access| {
            last.get(&access.cell).copied().unwrap_or(false)
                || writes.get(&access.cell).is_some_and(|writes| is_open(order, event, writes))
        });
        if varies {
            influenced.insert(event);
        }
        let depends = |term: Option<TermId>| {
            term.is_some_and(|term| mentions(trace, chains, term, &influenced))
        };
        let written = match op {
            Op::Write(access) => depends(access.term),
            // What it leaves behind depends on what it found, and on what it was given.
            Op::ReadModifyWrite(step) => varies || depends(step.term),
            _ => true,
        };
        for access in here.iter().filter(|access| access.writes) {
            last.insert(access.cell, written);
        }
    }
    influenced
}

/// What is the same in all interleavings.
pub struct Fixed<'a> {
    pub(crate) trace: &'a Trace,
    chains: &'a [Vec<EventId>],
    influenced: HashSet<EventId>,
}

impl<'a> Fixed<'a> {
    /// Looks at the trace.
    pub fn new(trace: &'a Trace, chains: &'a [Vec<EventId>], order: &MustOrder) -> Self {
        Self { trace, chains, influenced: influenced_reads(trace, chains, order) }
    }

    /// Does the assertion hold, or the access not fault, in all interleavings because it did so in the run and
    /// depends on nothing that varies? Of anything else this says nothing.
    pub fn is_well(&self, instance: &Instance) -> bool {
        instance.shape.is_well(self, instance.events[0])
    }

    /// Has the term the same value in all interleavings?
    pub fn is_fixed(&self, term: TermId) -> bool {
        !mentions(self.trace, self.chains, term, &self.influenced)
    }
}

/// Does the order of the run leave open which of the writes the event sees?
fn is_open(order: &MustOrder, event: EventId, writes: &HashMap<ThreadId, Vec<EventId>>) -> bool {
    let mut before: Vec<EventId> = Vec::new();
    for events in writes.values() {
        let done = events.partition_point(|&write| order.before(write, event));
        // What comes before the first of the others comes before all of them.
        let other = events[done..].iter().find(|&&write| write != event);
        if other.is_some_and(|&write| !order.before(event, write)) {
            return true;
        }
        before.extend(done.checked_sub(1).map(|last| events[last]));
    }
    // The last of each thread; one of them has to come after the others.
    let latest = before.iter().max().copied();
    latest.is_some_and(|latest| {
        before.iter().any(|&write| write != latest && !order.before(write, latest))
    })
}

/// Is the value computed from one of these reads?
pub fn mentions(
    trace: &Trace,
    chains: &[Vec<EventId>],
    term: TermId,
    reads: &HashSet<EventId>,
) -> bool {
    trace.terms.leaves(term).into_iter().any(|leaf| match *trace.terms.term(leaf) {
        Term::ReadValue(thread, index) => {
            chains[thread.index()].get(index as usize).is_none_or(|event| reads.contains(event))
        }
        Term::Constant(_) => false,
        _ => true,
    })
}
