//! Accesses that cannot matter, left out of a long trace before anything is asked about it.
//!
//! Memory whose accesses forks and joins put in an order, wherever one of them writes, holds the same in every
//! interleaving, as long as what is written there depends on nothing else: memory of one thread alone, what was
//! prepared for a thread before it was made, what nobody writes once there are threads. Its reads and
//! writes, and branches that depend on nothing but it, take place as they did wherever the thread comes to
//! them, and say nothing to the others.
//!
//! What belongs together (memory that overlaps, a value and what it was computed from, a condition and the
//! values in it) stays together or is left out together, so that nothing that stays refers to something that does
//! not. Guaranteed: the answers to all questions are the same without what is left out. That memory is freed
//! counts as a write to it, and what is used after it was freed stays: that is what crashes are.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_trace::{EventId, Op, Term, TermId, ThreadId, Trace};

use crate::access::{Accesses, Cell, SharedAccess};

/// A trace without what cannot matter.
pub(crate) struct Reduced {
    /// The trace.
    pub trace: Trace,
    /// Which event of the whole trace each of its events is.
    pub origin: Vec<EventId>,
}

/// It is worth it if so many of the events are left out: one of this number.
const WORTH: usize = 8;

/// The trace without accesses that cannot matter; `None` if too few are.
pub(crate) fn reduced(trace: &Trace) -> Option<Reduced> {
    let is_plain = trace.metadata.observed_order
        && trace.orders.is_empty()
        && trace.atomic_sections.is_empty()
        && trace.labels.is_empty()
        && trace.precondition.is_none()
        && trace.terms.symbols().is_empty();
    if !is_plain {
        return None;
    }
    let mut groups = Groups::default();
    let mut accesses = Accesses::new(trace);
    let constants = join_terms(trace, &mut accesses, &mut groups)?;
    join_accesses(trace, &mut accesses, &constants, &mut groups)?;
    let awaited = awaited(trace);
    for &branch in &awaited {
        let terms = trace.event(branch).op.terms();
        terms.into_iter().for_each(|term| groups.keep(node_of_term(term)));
    }
    let mut here = Vec::new();
    let mut stays = vec![true; trace.events.len()];
    for (position, event) in trace.events.iter().enumerate() {
        stays[position] = match &event.op {
            Op::Read(_) | Op::Write(_) => {
                accesses.of(EventId::from(position), &mut here);
                here.first().is_none_or(|access| groups.stays(node_of_cell(access.cell)))
            }
            Op::Branch(condition) => match condition.term {
                _ if awaited.contains(&EventId::from(position)) => true,
                Some(term) if !constants[term.index()] => groups.stays(node_of_term(term)),
                _ => false,
            },
            _ => true,
        };
    }
    let left_out = stays.iter().filter(|&&stays| !stays).count();
    if left_out < stays.len().div_ceil(WORTH) {
        return None;
    }
    let (trace, origin) = trace.keeping(|event| stays[event.index()]);
    Some(Reduced { trace, origin })
}

/// The branches that marks in loops that wait are about: the one before each of them.
fn awaited(trace: &Trace) -> HashSet<EventId> {
    let mut last: HashMap<ThreadId, EventId> = HashMap::new();
    let mut awaited = HashSet::new();
    for (position, event) in trace.events.iter().enumerate() {
        match event.op {
            Op::Branch(_) => _ = last.insert(event.thread, EventId::from(position)),
            Op::Await(_) => awaited.extend(last.get(&event.thread)),
            _ => {}
        }
    }
    awaited
}

/// A term belongs to the memory of the reads in it. Says which terms have none.
fn join_terms(
    trace: &Trace,
    accesses: &mut Accesses<'_>,
    groups: &mut Groups,
) -> Option<Vec<bool>> {
    let chains = trace.events_by_thread();
    let mut constants = vec![false; trace.terms.len()];
    let mut here: Vec<SharedAccess> = Vec::new();
    for number in 0..trace.terms.len() {
        let term = TermId::from(number);
        let node = node_of_term(term);
        match trace.terms.term(term) {
            Term::Constant(_) => constants[number] = true,
            Term::ReadValue(thread, index) => {
                let chain = chains.get(thread.index());
                let event = chain.and_then(|chain| chain.get(*index as usize)).copied();
                let read = event.filter(|&event| matches!(trace.event(event).op, Op::Read(_)));
                here.clear();
                if let Some(read) = read {
                    accesses.of(read, &mut here);
                }
                match here.is_empty() {
                    true => groups.keep(node),
                    false => {
                        here.iter().for_each(|access| groups.join(node, node_of_cell(access.cell)))
                    }
                }
            }
            Term::Apply(_, arguments) => {
                if arguments.iter().any(|argument| argument.index() >= number) {
                    return None; // not in the order in which they were made
                }
                constants[number] = arguments.iter().all(|argument| constants[argument.index()]);
                for argument in arguments.iter().filter(|argument| !constants[argument.index()]) {
                    groups.join(node, node_of_term(*argument));
                }
            }
            Term::Variable(_) | Term::Primed(_) | Term::Before(..) | Term::Symbol(_) => {
                groups.keep(node);
            }
        }
    }
    Some(constants)
}

/// Joins what events say belongs together, and finds what has to stay. `None` where a step is not of a recorded
/// program.
fn join_accesses(
    trace: &Trace,
    accesses: &mut Accesses<'_>,
    constants: &[bool],
    groups: &mut Groups,
) -> Option<()> {
    let mut uses = Cells { clocks: Clocks::new(trace), used: HashMap::new() };
    let mut memory = Memory::default();
    let mut here: Vec<SharedAccess> = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        let terms = event.op.terms().into_iter().filter(|term| !constants[term.index()]);
        let variable = match &event.op {
            Op::Read(access) | Op::Write(access) => {
                accesses.of(id, &mut here);
                let Some(first) = here.first().map(|access| node_of_cell(access.cell)) else {
                    terms.for_each(|term| groups.keep(node_of_term(term)));
                    continue;
                };
                terms.for_each(|term| groups.join(first, node_of_term(term)));
                here.iter().for_each(|access| groups.join(first, node_of_cell(access.cell)));
                if access.order.is_some() {
                    groups.keep(first);
                }
                access.variable
            }
            Op::ReadModifyWrite(step) => {
                accesses.of(id, &mut here);
                terms.for_each(|term| groups.keep(node_of_term(term)));
                here.iter().for_each(|access| groups.keep(node_of_cell(access.cell)));
                step.variable
            }
            Op::Assert(_) => {
                terms.for_each(|term| groups.keep(node_of_term(term)));
                continue;
            }
            Op::Guarded(_) | Op::Transition(_) => return None,
            Op::Fork(child) => {
                uses.clocks.fork(event.thread, *child);
                continue;
            }
            Op::Join(child) => {
                uses.clocks.join(event.thread, *child);
                continue;
            }
            Op::Alloc { address, size } => {
                memory.allocated(*address, *size);
                continue;
            }
            Op::Free { address } => {
                for cell in memory.freed(*address) {
                    uses.access(cell, event.thread, true, groups);
                }
                continue;
            }
            _ => continue,
        };
        let place = trace.variables[variable.index()].memory;
        let is_gone = place.is_some_and(|place| memory.is_gone(place.address));
        for access in &here {
            if is_gone {
                groups.keep(node_of_cell(access.cell));
            }
            let is_new = uses.access(access.cell, event.thread, access.writes, groups);
            if let (true, Some(place)) = (is_new, place) {
                memory.uses(place.address, access.cell);
            }
        }
    }
    Some(())
}

/// What forks and joins put in an order, as vector clocks.
struct Clocks {
    /// For each thread: how much of each thread comes before what it does next.
    clocks: Vec<Vec<u32>>,
}

impl Clocks {
    fn new(trace: &Trace) -> Self {
        let count = trace.threads.len();
        let mut clocks = vec![vec![0; count]; count];
        (0..count).for_each(|thread| clocks[thread][thread] = 1);
        Self { clocks }
    }

    fn fork(&mut self, parent: ThreadId, child: ThreadId) {
        self.learn(child, parent);
        self.clocks[parent.index()][parent.index()] += 1;
    }

    /// All of the child comes before what the parent does next.
    fn join(&mut self, parent: ThreadId, child: ThreadId) {
        self.learn(parent, child);
    }

    fn learn(&mut self, who: ThreadId, from: ThreadId) {
        let known = self.clocks[from.index()].clone();
        for (own, other) in self.clocks[who.index()].iter_mut().zip(known) {
            *own = other.max(*own);
        }
    }

    /// When the thread is now.
    fn now(&self, thread: ThreadId) -> (ThreadId, u32) {
        (thread, self.clocks[thread.index()][thread.index()])
    }

    /// Does that come before what the thread does now, in every interleaving?
    fn is_before(&self, (other, time): (ThreadId, u32), thread: ThreadId) -> bool {
        self.clocks[thread.index()][other.index()] >= time
    }
}

/// How memory was used.
struct Cells {
    clocks: Clocks,
    used: HashMap<Cell, Used>,
}

#[derive(Default)]
struct Used {
    /// The last write.
    write: Option<(ThreadId, u32)>,
    /// The last read of each thread since then.
    reads: Vec<(ThreadId, u32)>,
}

impl Cells {
    /// Notes the access, and keeps the memory if nothing puts it in an order with those before. Says whether it
    /// is the first.
    fn access(&mut self, cell: Cell, thread: ThreadId, writes: bool, groups: &mut Groups) -> bool {
        let now = self.clocks.now(thread);
        let is_new = !self.used.contains_key(&cell);
        let used = self.used.entry(cell).or_default();
        let read = used.reads.iter().filter(|_| writes);
        let ordered =
            used.write.iter().chain(read).all(|&before| self.clocks.is_before(before, thread));
        if !ordered {
            groups.keep(node_of_cell(cell));
        }
        if writes {
            used.write = Some(now);
            used.reads.clear();
        } else {
            used.reads.retain(|(reader, _)| *reader != thread);
            used.reads.push(now);
        }
        is_new
    }
}

/// Blocks of memory.
#[derive(Default)]
struct Memory {
    /// Those that are there: their sizes, and what of them was accessed.
    blocks: BTreeMap<u64, (u64, Vec<Cell>)>,
    /// Those that are gone, and not there again: their ends.
    gone: BTreeMap<u64, u64>,
}

impl Memory {
    fn allocated(&mut self, address: u64, size: u64) {
        self.blocks.insert(address, (size, Vec::new()));
        let end = address.saturating_add(size.max(1));
        let over = self.gone.range(..end).rev().take_while(|&(_, &gone)| gone > address);
        for start in over.map(|(&start, _)| start).collect::<Vec<_>>() {
            self.gone.remove(&start);
        }
    }

    /// The block is freed; gives what of it was accessed.
    fn freed(&mut self, address: u64) -> Vec<Cell> {
        let Some((size, cells)) = self.blocks.remove(&address) else { return Vec::new() };
        self.gone.insert(address, address.saturating_add(size));
        cells
    }

    /// Memory at this address is accessed for the first time.
    fn uses(&mut self, address: u64, cell: Cell) {
        let block = self.blocks.range_mut(..=address).next_back();
        if let Some((start, (size, cells))) = block
            && address - start < *size
        {
            cells.push(cell);
        }
    }

    /// Does the address lie in memory that was freed?
    fn is_gone(&self, address: u64) -> bool {
        let block = self.gone.range(..=address).next_back();
        block.is_some_and(|(_, &end)| address < end)
    }
}

fn node_of_term(term: TermId) -> usize {
    2 * term.index()
}

fn node_of_cell(cell: Cell) -> usize {
    2 * cell.number() + 1
}

/// What belongs together (a union of sets), and which of it stays.
#[derive(Default)]
struct Groups {
    parents: Vec<u32>,
    kept: Vec<bool>,
}

impl Groups {
    fn root(&mut self, node: usize) -> usize {
        while self.parents.len() <= node {
            self.parents.push(self.parents.len() as u32);
            self.kept.push(false);
        }
        let mut node = node;
        while self.parents[node] as usize != node {
            let above = self.parents[self.parents[node] as usize];
            self.parents[node] = above;
            node = above as usize;
        }
        node
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[other] = one as u32;
        self.kept[one] |= self.kept[other];
    }

    fn keep(&mut self, node: usize) {
        let root = self.root(node);
        self.kept[root] = true;
    }

    fn stays(&mut self, node: usize) -> bool {
        let root = self.root(node);
        self.kept[root]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    fn kept(body: &str) -> Option<Vec<usize>> {
        let text = format!(
            "foretell-trace 1\nsymbolic\nobserved\nthread main, other\n\
             var shared = 0\nvar own = 0\nvar other_own = 0\nmain fork other\n{body}"
        );
        let trace = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        let reduced = reduced(&trace)?;
        Some(reduced.origin.iter().map(|event| event.index()).collect())
    }

    #[test]
    fn what_one_thread_computes_for_itself_is_left_out() {
        let body = "main a = read own = 0\nmain write own = 1 := (+ a 1)\nmain b = read own = 1\n\
                    main branch (= b 1) true\nmain write shared = 1\nother c = read shared = 1\n";
        assert_eq!(kept(body), Some(vec![0, 5, 6]));
    }

    #[test]
    fn what_was_written_before_there_were_threads_is_left_out_unless_it_is_written_again() {
        let text = "foretell-trace 1\nsymbolic\nobserved\nthread main, other\nvar table = 0\nvar x = 0\n\
                    main write table = 7\nmain fork other\nmain a = read table = 7\n\
                    other b = read table = 7\nother write x = 1\nmain c = read x = 1\n";
        let kept = |text: &str| {
            let trace = text::read(text).unwrap_or_else(|error| panic!("{error}"));
            reduced(&trace).map(|reduced| reduced.origin.len())
        };
        assert_eq!(kept(text), Some(3));
        assert_eq!(kept(&format!("{text}main write table = 8\n")), None);
        // A thread that nobody forked may run from the start.
        let third = text.replace("main, other", "main, other, third");
        assert_eq!(kept(&format!("{third}third d = read table = 7\n")), None);
    }

    #[test]
    fn of_branches_in_a_trace_that_waits_only_those_stay_that_a_mark_is_about() {
        let body = "main a = read own = 0\nmain write own = 1 := (+ a 1)\nmain b = read own = 1\n\
                    main branch (= b 1) true\nmain write shared = 1\nother await\n\
                    other c = read other_own = 0\nother branch (= c 0) true\nother await-test\n";
        assert_eq!(kept(body), Some(vec![0, 6, 7, 8, 9]));
    }

    #[test]
    fn what_depends_on_shared_memory_stays() {
        let body = "other write shared = 5\nmain a = read shared = 5\nmain write own = 6 := (+ a 1)\n\
                    main b = read own = 6\nmain branch (= b 6) true\n\
                    other c = read other_own = 0\nother write other_own = 1 := (+ c 1)\n";
        assert_eq!(kept(body), Some(vec![0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn what_is_asserted_or_written_to_shared_memory_stays() {
        let body = "main a = read own = 0\nmain write shared = 1 := (+ a 1)\nother b = read shared = 1\n\
                    other c = read other_own = 0\nother assert (= c 0) true\n";
        assert_eq!(kept(body), None);
    }

    #[test]
    fn what_a_thread_gets_before_it_is_made_and_leaves_to_who_joins_it_is_left_out() {
        let text = "foretell-trace 1\nsymbolic\nobserved\nthread main, other, third\nvar a = 0\nvar x = 0\n\
                    main fork third\nmain write a = 7\nmain fork other\nother r = read a = 7\n\
                    other write a = 8 := (+ r 1)\nother write x = 1\nother end\nmain join other\n\
                    main s = read a = 8\nmain write a = 9\nthird t = read x = 1\n";
        let kept = |text: &str| {
            let trace = text::read(text).unwrap_or_else(|error| panic!("{error}"));
            reduced(&trace).map(|reduced| reduced.origin.len())
        };
        assert_eq!(kept(text), Some(6));
        assert_eq!(kept(&format!("{text}third u = read a = 9\n")), None);
    }

    /// What is left is a trace that makes sense. That predictions are the same, `tests/windows.rs` checks.
    #[test]
    fn what_is_left_of_random_traces_makes_sense() {
        let mut left_out = 0;
        for seed in 0..300 {
            let trace = foretell_testing::machine::random_trace(seed);
            let Some(reduced) = reduced(&trace) else { continue };
            let faults = foretell_trace::validate::validate(&reduced.trace);
            assert_eq!(faults, [], "seed {seed}");
            left_out += trace.events.len() - reduced.trace.events.len();
        }
        assert!(left_out > 100, "only {left_out} events were left out");
    }
}
