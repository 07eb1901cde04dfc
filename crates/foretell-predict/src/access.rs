//! Which memory an event reads and writes, and where in the program it stands.
//!
//! Variables of a trace may overlap in memory (a copy of a whole structure and an access of one of
//! its members). Two accesses conflict if their own bytes overlap, so memory is cut into *cells* at
//! every border that a variable has there, and an access is one of each of its cells.

use std::collections::{BTreeSet, HashMap};

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

/// A piece of memory that every access has as a whole or not at all: a variable, or, where
/// variables overlap, a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u32);

impl Cell {
    /// Its number.
    pub(crate) fn number(self) -> usize {
        self.0 as usize
    }
}

/// An access of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// What is accessed.
    pub cell: Cell,
    /// It may change it.
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
    /// By variable: its memory.
    cells: Vec<Box<[Cell]>>,
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
        let (stand_ins, cells) = (stand_ins(trace), cells(trace));
        Self { trace, sites, stand_ins, cells, in_term: HashMap::new() }
    }

    /// Where the event stands in the program.
    pub fn location(&self, event: EventId) -> Location {
        match self.trace.event(event).site {
            Some(site) => Location::Source(self.sites[site.index()]),
            None => Location::Event(self.stand_ins.get(event.index()).copied().unwrap_or(event)),
        }
    }

    /// The shared memory that the event accesses; what it reads and writes comes twice.
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
        if self.trace.variables[variable.index()].scope != Scope::Shared {
            return;
        }
        for &cell in &self.cells[variable.index()] {
            let access = SharedAccess { cell, writes };
            if !out.contains(&access) {
                out.push(access);
            }
        }
    }

    fn add_term(&mut self, out: &mut Vec<SharedAccess>, term: TermId) {
        self.know_term(term);
        for variable in self.in_term[&term].clone() {
            self.add(out, variable, false);
        }
    }

    /// Finds the variables in a term. Terms of a loop grow with every round: each has those of its parts,
    /// which are known.
    fn know_term(&mut self, term: TermId) {
        let mut stack = vec![term];
        while let Some(&top) = stack.last() {
            let parts = match self.trace.terms.term(top) {
                Term::Apply(_, parts) => &parts[..],
                _ => &[],
            };
            let before = stack.len();
            if !self.in_term.contains_key(&top) {
                let unknown = parts.iter().filter(|part| !self.in_term.contains_key(part));
                stack.extend(unknown.copied());
            }
            if stack.len() > before {
                continue;
            }
            stack.pop();
            let mut variables: Vec<VariableId> = match self.trace.terms.term(top) {
                Term::Variable(variable) => vec![*variable],
                _ => parts.iter().flat_map(|part| self.in_term[part].iter().copied()).collect(),
            };
            variables.sort_unstable();
            variables.dedup();
            self.in_term.insert(top, variables.into());
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

/// The cells of each variable. A variable that overlaps no other is a cell by itself.
fn cells(trace: &Trace) -> Vec<Box<[Cell]>> {
    let mut cells: Vec<Box<[Cell]>> =
        (0..trace.variables.len()).map(|number| [Cell(number as u32)].into()).collect();
    let mut ranges: Vec<(u32, u64, u64, usize)> = Vec::new();
    for (number, variable) in trace.variables.iter().enumerate() {
        if let Some(memory) = variable.memory {
            let end = memory.address.saturating_add(u64::from(memory.size));
            ranges.push((memory.generation, memory.address, end, number));
        }
    }
    ranges.sort_unstable();
    let mut next = trace.variables.len() as u32;
    let mut cut = |group: &[(u32, u64, u64, usize)]| {
        let borders: BTreeSet<u64> =
            group.iter().flat_map(|&(_, start, end, _)| [start, end]).collect();
        let borders: Vec<u64> = borders.into_iter().collect();
        for &(_, start, end, number) in group.iter().filter(|_| group.len() > 1) {
            let from = borders.partition_point(|&border| border < start);
            let to = borders.partition_point(|&border| border < end);
            cells[number] = (from..to).map(|border| Cell(next + border as u32)).collect();
        }
        next += borders.len() as u32;
    };
    // Ranges that overlap, if only through others, are cut together.
    let (mut first, mut reach) = (0, 0);
    for (place, &(generation, start, end, _)) in ranges.iter().enumerate() {
        if place > first && (ranges[first].0 != generation || start >= reach) {
            cut(&ranges[first..place]);
            (first, reach) = (place, 0);
        }
        reach = reach.max(end);
    }
    cut(&ranges[first..]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    /// For each pair of variables (address and size), whether accesses of them conflict.
    fn conflicts(variables: &[(u64, u32)]) -> Vec<(usize, usize)> {
        let mut written = String::from("foretell-trace 1\nobserved\nthread main\n");
        for (number, (address, size)) in variables.iter().enumerate() {
            let width = 8 * size;
            written += &format!("var v{number} : bv{width} at {address:#x} size {size}\n");
        }
        let trace = text::read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        let cells = cells(&trace);
        let mut found = Vec::new();
        for one in 0..cells.len() {
            for two in one + 1..cells.len() {
                if cells[one].iter().any(|cell| cells[two].contains(cell)) {
                    found.push((one, two));
                }
            }
        }
        found
    }

    #[test]
    fn accesses_conflict_if_their_own_bytes_overlap() {
        assert_eq!(conflicts(&[(0x10, 8), (0x14, 2), (0x17, 1)]), [(0, 1), (0, 2)]);
        assert_eq!(conflicts(&[(0x10, 4), (0x12, 4), (0x14, 4)]), [(0, 1), (1, 2)]);
        assert_eq!(conflicts(&[(0x10, 4), (0x14, 4), (0x18, 8)]), []);
        assert_eq!(conflicts(&[(0x10, 4), (0x10, 4), (0x13, 1)]), [(0, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn random_variables_conflict_as_their_ranges_do() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let variables: Vec<(u64, u32)> =
                (0..random(7) + 1).map(|_| (0x100 + random(12), 1 << random(4))).collect();
            let mut expected = Vec::new();
            for one in 0..variables.len() {
                for two in one + 1..variables.len() {
                    let ((a, size), (b, other)) = (variables[one], variables[two]);
                    if a < b + u64::from(other) && b < a + u64::from(size) {
                        expected.push((one, two));
                    }
                }
            }
            assert_eq!(conflicts(&variables), expected, "{variables:?}");
        }
    }
}
