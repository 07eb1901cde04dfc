//! Which variables an event reads and writes, and where in the program it stands.

use std::collections::HashMap;

use foretell_trace::{EventId, Op, Scope, Site, Term, TermId, Trace, VariableId};

/// The code location of an event. Events without a site stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// A source position, by its number among the different ones.
    Source(u32),
    /// No source is known.
    Event(EventId),
}

/// An access of a shared variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// The variable; of several that overlap in memory, the first.
    pub variable: VariableId,
    /// It may change the variable.
    pub writes: bool,
}

/// Answers for the events of one trace.
#[derive(Debug)]
pub struct Accesses<'t> {
    trace: &'t Trace,
    /// Canonical number of each site.
    sites: Vec<u32>,
    /// Representative of each variable.
    representative: Vec<VariableId>,
    /// Shared variables in a term.
    in_term: HashMap<TermId, Box<[VariableId]>>,
}

impl<'t> Accesses<'t> {
    /// Prepares the tables.
    pub fn new(trace: &'t Trace) -> Self {
        let mut numbers: HashMap<&Site, u32> = HashMap::new();
        let sites = trace
            .sites
            .iter()
            .map(|site| {
                let next = numbers.len() as u32;
                *numbers.entry(site).or_insert(next)
            })
            .collect();
        Self { trace, sites, representative: representatives(trace), in_term: HashMap::new() }
    }

    /// Where the event stands in the program.
    pub fn location(&self, event: EventId) -> Location {
        match self.trace.event(event).site {
            Some(site) => Location::Source(self.sites[site.index()]),
            None => Location::Event(event),
        }
    }

    /// The shared variables that the event accesses; one that it reads and writes comes twice.
    pub fn of(&mut self, event: EventId, out: &mut Vec<SharedAccess>) {
        out.clear();
        let trace = self.trace;
        match &trace.event(event).op {
            Op::Read(access) => self.add(out, access.variable, false),
            Op::Write(access) => self.add(out, access.variable, true),
            Op::ReadModifyWrite(step) => {
                self.add(out, step.variable, false);
                self.add(out, step.variable, true);
            }
            Op::Branch(condition) | Op::Assert(condition) => {
                if let Some(term) = condition.term {
                    self.add_term(out, term);
                }
            }
            Op::Guarded(guarded) => {
                self.add_term(out, guarded.guard);
                for &(variable, term) in &guarded.assignments {
                    self.add_term(out, term);
                    self.add(out, variable, true);
                }
            }
            Op::Transition(transition) => {
                self.add_term(out, transition.predicate);
                for &variable in &transition.changed {
                    self.add(out, variable, true);
                }
            }
            _ => {}
        }
    }

    fn add(&self, out: &mut Vec<SharedAccess>, variable: VariableId, writes: bool) {
        let access = SharedAccess { variable: self.representative[variable.index()], writes };
        if self.trace.variables[variable.index()].scope == Scope::Shared && !out.contains(&access) {
            out.push(access);
        }
    }

    fn add_term(&mut self, out: &mut Vec<SharedAccess>, term: TermId) {
        let terms = &self.trace.terms;
        let variables = self.in_term.entry(term).or_insert_with(|| {
            let leaves = terms.leaves(term);
            let variable = |leaf: TermId| match terms.term(leaf) {
                Term::Variable(variable) => Some(*variable),
                _ => None,
            };
            leaves.into_iter().filter_map(variable).collect()
        });
        for variable in variables.clone() {
            self.add(out, variable, false);
        }
    }
}

/// Variables whose memory overlaps share one representative.
fn representatives(trace: &Trace) -> Vec<VariableId> {
    let mut representative: Vec<VariableId> =
        (0..trace.variables.len()).map(VariableId::from).collect();
    let mut ranges: Vec<(u32, u64, u64, usize)> = Vec::new();
    for (number, variable) in trace.variables.iter().enumerate() {
        if let Some(memory) = variable.memory {
            let end = memory.address.saturating_add(u64::from(memory.size));
            ranges.push((memory.generation, memory.address, end, number));
        }
    }
    ranges.sort_unstable();
    let mut current: Option<(u32, u64, VariableId)> = None;
    for (generation, start, end, number) in ranges {
        match &mut current {
            Some((same, reach, first)) if *same == generation && start < *reach => {
                representative[number] = *first;
                *reach = (*reach).max(end);
            }
            _ => current = Some((generation, end, VariableId::from(number))),
        }
    }
    representative
}
