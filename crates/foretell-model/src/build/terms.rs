//! Terms of the trace as terms of the model.

use std::collections::{HashMap, HashSet};

use foretell_trace::{EventId, Sort, Term, TermId, TermStore, ThreadId};

use super::Translator;
use super::error::BuildError;

impl<'t> Translator<'t> {
    pub(super) fn import_sorted(
        &mut self,
        term: TermId,
        origin: EventId,
        expected: Sort,
    ) -> Result<TermId, BuildError> {
        let found = self.trace.terms.sort(term);
        if found != expected {
            return Err(BuildError::Sort { event: origin, expected, found });
        }
        self.import(term, origin, Some(self.trace.event(origin).thread))
    }

    /// A term of the trace over the CTP's variables. `thread` may use its own locals only.
    pub(super) fn import(
        &mut self,
        term: TermId,
        origin: EventId,
        thread: Option<ThreadId>,
    ) -> Result<TermId, BuildError> {
        // One cache for each thread: what a thread may use is checked when a leaf is first met.
        let slot = thread.map_or(self.trace.threads.len(), ThreadId::index);
        let mut cache = std::mem::take(&mut self.caches[slot]);
        let copied = self.import_leaves(term, origin, thread, &mut cache).map(|()| {
            let leaf = &mut |_: &mut TermStore, _| unreachable!("leaves are in the cache");
            self.terms.import(&self.trace.terms, term, &mut cache, leaf)
        });
        self.caches[slot] = cache;
        copied
    }

    fn import_leaves(
        &mut self,
        term: TermId,
        origin: EventId,
        thread: Option<ThreadId>,
        cache: &mut HashMap<TermId, TermId>,
    ) -> Result<(), BuildError> {
        let from = &self.trace.terms;
        let mut stack = vec![term];
        let mut seen = HashSet::new();
        while let Some(top) = stack.pop() {
            if cache.contains_key(&top) || !seen.insert(top) {
                continue;
            }
            let replacement = match *from.term(top) {
                Term::Constant(_) => continue,
                Term::Apply(_, ref arguments) => {
                    stack.extend(arguments.iter().copied());
                    continue;
                }
                Term::Variable(variable) => {
                    if thread.is_some() {
                        self.check_scope(origin, variable)?;
                    }
                    self.place(variable, false)
                }
                Term::Primed(variable) if thread.is_some() => {
                    self.check_scope(origin, variable)?;
                    self.place(variable, true)
                }
                Term::ReadValue(reader, index) if thread == Some(reader) => {
                    self.read_value(origin, reader, index)?
                }
                Term::ReadValue(thread, index) => {
                    return Err(BuildError::UnknownRead { event: origin, thread, index });
                }
                _ => return Err(BuildError::Leaf { event: origin }),
            };
            let (expected, found) = (from.sort(top), self.terms.sort(replacement));
            if found != expected {
                return Err(BuildError::Sort { event: origin, expected, found });
            }
            cache.insert(top, replacement);
        }
        Ok(())
    }

    fn read_value(
        &mut self,
        origin: EventId,
        reader: ThreadId,
        index: u32,
    ) -> Result<TermId, BuildError> {
        let unknown = BuildError::UnknownRead { event: origin, thread: reader, index };
        if let Some(&variable) = self.read_values.get(&(reader, index)) {
            return Ok(self.variable(variable));
        }
        if index >= self.replay.next_index()[reader.index()] {
            return Err(unknown);
        }
        match self.replay.read_value(reader, index) {
            Some(value) => Ok(self.terms.constant(value)),
            None => Err(unknown),
        }
    }
}
