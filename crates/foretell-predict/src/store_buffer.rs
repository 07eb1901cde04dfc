//! Where the memory orders of a program allow more than interleavings.
//!
//! Everything here is about sequentially consistent executions. A processor also delays a store until
//! later loads of the same thread are done, unless the store is `seq_cst` or something that empties the
//! store buffer stands between them: a read-modify-write, a fence, a step of synchronisation. Others can
//! see that only if a circle closes (Shasha and Snir): from the load over conflicting accesses and the
//! order of other threads back to the store. Without such a circle the interleavings are all that there
//! is on processors that delay stores and nothing else (x86), and a race is reported where plain accesses
//! rely on a weak order. With one, it is said.

use std::collections::{BTreeSet, HashMap, HashSet};

use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, MemoryOrder, ObjectId, Op, ThreadId, Trace};

use crate::access::{Accesses, Cell};
use crate::finding::at_place;
use crate::limits::MOST_PAIRS;

/// What two events can conflict about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shared {
    Memory(Cell),
    Object(ObjectId),
}

/// The first store that may be seen after a later load of its thread, as a sentence.
pub(crate) fn delayed_store(trace: &Trace, order: &MustOrder) -> Option<String> {
    let is_weak_store = |op: &Op| matches!(op, Op::Write(access) if is_weak(access.order));
    if !trace.events.iter().any(|event| is_weak_store(&event.op)) {
        return None;
    }
    let conflicts = Conflicts::new(trace, order);
    let mut known = HashSet::new();
    for chain in &conflicts.chains {
        for (at, &store) in chain.iter().enumerate() {
            if !is_weak_store(&trace.event(store).op) {
                continue;
            }
            let later = &chain[at + 1..];
            let until = later.iter().position(|&event| empties_buffer(&trace.event(event).op));
            for &load in &later[..until.unwrap_or(later.len())] {
                let is_load =
                    matches!(&trace.event(load).op, Op::Read(access) if access.order.is_some());
                let pair = (trace.event(store).site, trace.event(load).site);
                if !is_load || pair.0.is_some() && !known.insert(pair) || known.len() > MOST_PAIRS {
                    continue;
                }
                if !conflicts.meet(store, load) && conflicts.circle(store, load) {
                    let place = |event| at_place(trace, event);
                    return Some(format!(
                        "the processor may delay the store{} until after the load{}: its memory order \
                         allows it, and only interleavings are looked at",
                        place(store),
                        place(load)
                    ));
                }
            }
        }
    }
    None
}

fn is_weak(order: Option<MemoryOrder>) -> bool {
    order.is_some_and(|order| order != MemoryOrder::SequentiallyConsistent)
}

fn empties_buffer(op: &Op) -> bool {
    match op {
        Op::Write(access) => access.order == Some(MemoryOrder::SequentiallyConsistent),
        Op::Fence(order) => *order == MemoryOrder::SequentiallyConsistent,
        Op::ReadModifyWrite(_) | Op::Fork(_) | Op::Join(_) | Op::ThreadEnd => true,
        op => op.object().is_some(),
    }
}

/// Who conflicts with whom, as far as atomic variables and synchronisation go.
struct Conflicts<'t> {
    trace: &'t Trace,
    order: &'t MustOrder,
    chains: Vec<Vec<EventId>>,
    /// What each event is about, and whether it changes it.
    about: HashMap<EventId, Vec<(Shared, bool)>>,
    /// The events about it.
    users: HashMap<Shared, Vec<(EventId, bool)>>,
}

impl<'t> Conflicts<'t> {
    fn new(trace: &'t Trace, order: &'t MustOrder) -> Self {
        let mut accesses = Accesses::new(trace);
        let mut cells = Vec::new();
        let mut atomic = BTreeSet::new();
        for (id, event) in trace.events.iter().enumerate() {
            let order = match &event.op {
                Op::Read(access) | Op::Write(access) => access.order,
                Op::ReadModifyWrite(step) => Some(step.order),
                _ => None,
            };
            if order.is_some() {
                accesses.of(EventId::from(id), &mut cells);
                atomic.extend(cells.iter().map(|access| access.cell));
            }
        }
        let (mut about, mut users) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        for (id, event) in trace.events.iter().enumerate() {
            let id = EventId::from(id);
            accesses.of(id, &mut cells);
            let memory = cells.iter().filter(|access| atomic.contains(&access.cell));
            let mut shared: Vec<(Shared, bool)> =
                memory.map(|access| (Shared::Memory(access.cell), access.writes)).collect();
            shared.extend(event.op.object().map(|object| (Shared::Object(object), true)));
            for &(what, changes) in &shared {
                users.entry(what).or_default().push((id, changes));
            }
            if !shared.is_empty() {
                about.insert(id, shared);
            }
        }
        Self { trace, order, chains: trace.events_by_thread(), about, users }
    }

    /// Are both about the same?
    fn meet(&self, one: EventId, other: EventId) -> bool {
        let of = |event| self.about.get(&event).map_or(&[][..], Vec::as_slice);
        of(one).iter().any(|(what, _)| of(other).iter().any(|(same, _)| same == what))
    }

    /// The events of other threads that conflict with it and may come after it.
    fn after(&self, event: EventId) -> impl Iterator<Item = EventId> {
        let about = self.about.get(&event).map_or(&[][..], Vec::as_slice);
        let thread = self.trace.event(event).thread;
        about.iter().flat_map(move |&(what, changes)| {
            let users = self.users.get(&what).map_or(&[][..], Vec::as_slice);
            let conflicting = users.iter().filter(move |(_, other)| changes || *other);
            let others = conflicting.map(|&(other, _)| other);
            others.filter(move |&other| {
                self.trace.event(other).thread != thread && !self.order.before(other, event)
            })
        })
    }

    /// Can the load come before something that comes before the store, by way of other threads?
    fn circle(&self, store: EventId, load: EventId) -> bool {
        let own = self.trace.event(store).thread;
        let mut closes: HashSet<EventId> = HashSet::new();
        for event in self.after(store).filter(|&event| !self.order.before(store, event)) {
            closes.insert(event);
        }
        // By thread, from where on its events are known to be reachable.
        let mut reached: HashMap<ThreadId, usize> = HashMap::new();
        let mut open: Vec<EventId> = self.after(load).collect();
        while let Some(event) = open.pop() {
            let (thread, from) = (self.trace.event(event).thread, self.trace.event(event).index);
            let chain = &self.chains[thread.index()];
            let until = reached.get(&thread).copied().unwrap_or(chain.len());
            if thread == own || from as usize >= until {
                continue;
            }
            for &next in &chain[from as usize..until] {
                if closes.contains(&next) {
                    return true;
                }
                open.extend(self.after(next));
            }
            reached.insert(thread, from as usize);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// A store; `seq_cst` or `release`.
        Store {
            variable: usize,
            value: u8,
            strong: bool,
        },
        Load {
            variable: usize,
        },
        Add {
            variable: usize,
        },
        Fence,
    }

    const VARIABLES: usize = 3;

    /// A machine with store buffers; without them the executions are the interleavings.
    #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
    struct Machine {
        memory: [u8; VARIABLES],
        at: Vec<usize>,
        seen: Vec<Vec<u8>>,
        buffers: Vec<Vec<(usize, u8)>>,
    }

    fn ends(program: &[Vec<Step>], buffers: bool) -> BTreeSet<Machine> {
        let count = program.len();
        let first = Machine {
            at: vec![0; count],
            seen: vec![Vec::new(); count],
            buffers: vec![Vec::new(); count],
            ..Machine::default()
        };
        let (mut open, mut known) = (vec![first], HashSet::new());
        let mut ends = BTreeSet::new();
        while let Some(machine) = open.pop() {
            if !known.insert(machine.clone()) {
                continue;
            }
            let mut is_end = true;
            for (thread, steps) in program.iter().enumerate() {
                if let Some(&(variable, value)) = machine.buffers[thread].first() {
                    let mut next = machine.clone();
                    next.buffers[thread].remove(0);
                    next.memory[variable] = value;
                    open.push(next);
                    is_end = false;
                }
                let Some(&step) = steps.get(machine.at[thread]) else { continue };
                is_end = false;
                let mut next = machine.clone();
                next.at[thread] += 1;
                let is_empty = machine.buffers[thread].is_empty();
                match step {
                    Step::Store { variable, value, strong: false } if buffers => {
                        next.buffers[thread].push((variable, value));
                    }
                    Step::Load { variable } => {
                        let own = machine.buffers[thread].iter().rev();
                        let own = own.clone().find(|(stored, _)| *stored == variable);
                        let value = own.map_or(machine.memory[variable], |&(_, value)| value);
                        next.seen[thread].push(value);
                    }
                    _ if !is_empty => continue,
                    Step::Store { variable, value, .. } => next.memory[variable] = value,
                    Step::Add { variable } => {
                        next.seen[thread].push(machine.memory[variable]);
                        next.memory[variable] += 1;
                    }
                    Step::Fence => {}
                }
                open.push(next);
            }
            if is_end {
                ends.insert(machine);
            }
        }
        ends
    }

    fn said(program: &[Vec<Step>]) -> bool {
        let mut text = String::from("foretell-trace 1\nthread main\nvar x0 = 0, x1 = 0, x2 = 0\n");
        for thread in 0..program.len() {
            _ = writeln!(text, "thread t{thread}");
        }
        for thread in 0..program.len() {
            _ = writeln!(text, "main fork t{thread}");
        }
        for (thread, steps) in program.iter().enumerate() {
            for step in steps {
                _ = match step {
                    Step::Store { variable, value, strong } => {
                        let order = if *strong { "seq_cst" } else { "release" };
                        writeln!(text, "t{thread} write.{order} x{variable} = {value}")
                    }
                    Step::Load { variable } => writeln!(text, "t{thread} read.acquire x{variable}"),
                    Step::Add { variable } => writeln!(text, "t{thread} rmw x{variable}"),
                    Step::Fence => writeln!(text, "t{thread} fence seq_cst"),
                };
            }
        }
        for thread in 0..program.len() {
            _ = writeln!(text, "main join t{thread}");
        }
        for variable in 0..VARIABLES {
            _ = writeln!(text, "main read x{variable}");
        }
        let trace = foretell_trace::format::text::read(&text);
        let trace = trace.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let order = MustOrder::new(&trace).expect("an order");
        delayed_store(&trace, &order).is_some()
    }

    /// Where store buffers add an end, it is said; where it is said although they add none, the circle is
    /// longer than what the values show.
    #[test]
    fn what_store_buffers_add_is_said() {
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        let (mut added, mut in_vain, mut quiet) = (0, 0, 0);
        for _ in 0..1_000 {
            let mut value = 0;
            let program: Vec<Vec<Step>> = (0..2 + below(2))
                .map(|_| {
                    let mut step = || {
                        let variable = below(VARIABLES as u64) as usize;
                        value += 10;
                        match below(10) {
                            0..=3 => Step::Store { variable, value, strong: below(4) == 0 },
                            4..=7 => Step::Load { variable },
                            8 => Step::Add { variable },
                            _ => Step::Fence,
                        }
                    };
                    (0..3).map(|_| step()).collect()
                })
                .collect();
            let differ = ends(&program, true) != ends(&program, false);
            match (differ, said(&program)) {
                (true, false) => panic!("{program:?} has more ends with store buffers"),
                (true, true) => added += 1,
                (false, true) => in_vain += 1,
                (false, false) => quiet += 1,
            }
        }
        assert!(added > 50 && quiet > 400 && in_vain < added, "{added} {in_vain} {quiet}");
    }
}
