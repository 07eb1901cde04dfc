//! Which writes of a thread depend on one of its earlier reads: the value was computed from it, or a
//! branch that was taken on it led to the write.
//!
//! A value may go through memory that the thread itself wrote before. A branch counts for everything that
//! follows it: where its two ways meet again is not recorded.

use std::collections::{HashMap, HashSet};

use foretell_trace::{Event, EventId, Op, Term, TermId, Trace, VariableId};

/// How values flow through one thread.
#[derive(Clone, Debug)]
pub(crate) struct Flow<'a> {
    trace: &'a Trace,
    /// What the thread itself last stored, where that is an expression over its reads.
    stored: HashMap<VariableId, TermId>,
    /// By index of a read: what the thread itself had stored there.
    origin: HashMap<u32, TermId>,
    /// Conditions of the branches, with the event's index.
    branches: Vec<(u32, TermId)>,
}

impl<'a> Flow<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        Self { trace, stored: HashMap::new(), origin: HashMap::new(), branches: Vec::new() }
    }

    /// The thread's next event.
    pub(crate) fn step(&mut self, event: &Event) {
        if !self.trace.metadata.symbolic {
            return;
        }
        match &event.op {
            Op::Read(access) => {
                if let Some(&stored) = self.stored.get(&access.variable) {
                    self.origin.insert(event.index, stored);
                }
            }
            Op::Write(access) => match access.term {
                Some(term) => drop(self.stored.insert(access.variable, term)),
                None => drop(self.stored.remove(&access.variable)),
            },
            Op::Branch(condition) => {
                self.branches.extend(condition.term.map(|term| (event.index, term)));
            }
            _ => {}
        }
    }

    /// Whether the write depends on the read. Without terms that is not known, and taken for granted.
    pub(crate) fn depends(&self, read: EventId, write: EventId) -> bool {
        if !self.trace.metadata.symbolic {
            return true;
        }
        let (read, write) = (self.trace.event(read).index, self.trace.event(write));
        let written = match &write.op {
            Op::Write(access) => access.term,
            Op::ReadModifyWrite(step) => step.term,
            _ => return true,
        };
        let between = self.branches.partition_point(|&(index, _)| index < read);
        let branches = self.branches[between..].iter().map(|&(_, term)| term);
        let mut seen = HashSet::new();
        written.into_iter().chain(branches).any(|term| self.comes_from(term, read, &mut seen))
    }

    fn comes_from(&self, term: TermId, read: u32, seen: &mut HashSet<TermId>) -> bool {
        let mut open = vec![term];
        while let Some(term) = open.pop() {
            if !seen.insert(term) {
                continue;
            }
            for leaf in self.trace.terms.leaves(term) {
                if let Term::ReadValue(_, index) = *self.trace.terms.term(leaf) {
                    if index == read {
                        return true;
                    }
                    open.extend(self.origin.get(&index));
                }
            }
        }
        false
    }
}
