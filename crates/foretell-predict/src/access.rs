//! Which variables an event reads and writes, and where in the program it stands.

use std::collections::HashMap;

use foretell_trace::{EventId, Op, Scope, Site, SiteId, Term, TermId, Trace, VariableId};

/// The code location of an event. Events without a site stand for themselves, or, where many threads
/// take the same steps, for that step of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// A source position, by its number among the different ones.
    Source(u32),
    /// No source is known; of many threads that take the same steps, the event of the first.
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
    /// By event, where some have no site: the one that it is told apart by.
    stand_ins: Vec<EventId>,
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
        let (stand_ins, representative) = (stand_ins(trace), representatives(trace));
        Self { trace, sites, stand_ins, representative, in_term: HashMap::new() }
    }

    /// Where the event stands in the program.
    pub fn location(&self, event: EventId) -> Location {
        match self.trace.event(event).site {
            Some(site) => Location::Source(self.sites[site.index()]),
            None => Location::Event(self.stand_ins.get(event.index()).copied().unwrap_or(event)),
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

/// From so many threads on, those that take the same steps are one program. Without code locations
/// every pair of them would be a question of its own; fewer threads are told apart, because a reader
/// wants to see each.
const ALIKE: usize = 16;

/// What a thread does in a step: operation, what it is about, and where.
type Step<'t> = (&'t str, usize, Option<SiteId>);

/// For events without a site: the event at the same place of the first thread that takes the same
/// steps. Empty where every event has a site or stands for itself.
fn stand_ins(trace: &Trace) -> Vec<EventId> {
    if trace.threads.len() < ALIKE || trace.events.iter().all(|event| event.site.is_some()) {
        return Vec::new();
    }
    let chains = trace.events_by_thread();
    let mut programs: HashMap<Vec<Step<'_>>, Vec<usize>> = HashMap::new();
    for (thread, chain) in chains.iter().enumerate() {
        let steps = chain.iter().map(|&event| {
            let event = trace.event(event);
            (event.op.keyword(), subject(&event.op), event.site)
        });
        programs.entry(steps.collect()).or_default().push(thread);
    }
    let mut stand_ins: Vec<EventId> = (0..trace.events.len()).map(EventId::from).collect();
    for threads in programs.values().filter(|threads| threads.len() >= ALIKE) {
        for &thread in threads {
            for (&event, &first) in chains[thread].iter().zip(&chains[threads[0]]) {
                stand_ins[event.index()] = first;
            }
        }
    }
    stand_ins
}

/// What the step is about, as a number.
fn subject(op: &Op) -> usize {
    match op {
        Op::Read(access) | Op::Write(access) => access.variable.index(),
        Op::ReadModifyWrite(step) => step.variable.index(),
        _ => op.object().map_or(usize::MAX, |object| object.index()),
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
