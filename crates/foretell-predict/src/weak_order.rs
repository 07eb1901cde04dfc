//! Plain accesses that only atomic operations order which are too weak for it.
//!
//! In an interleaving, a flag that is written and read with `memory_order_relaxed` orders what comes before
//! the write and after the read like any other flag, so that no interleaving shows a race. In C11 it orders
//! nothing, and the accesses are a data race: compiler and processor may exchange them with the flag's. So
//! the trace is gone through with two clocks for each thread (Fidge and Mattern): one that follows every
//! atomic operation, and one that follows what C11 lets synchronise (releases, acquires, fences, release
//! sequences). What only the first one orders is said. To free memory is an access of all of it.

use std::collections::{BTreeMap, HashMap};

use foretell_trace::{EventId, MemoryOrder, ObjectId, Op, SyncOp, ThreadId, Trace};

use crate::access::{Accesses, Cell, SharedAccess};
use crate::crash::used_memory;
use crate::finding::at_place;

/// By thread: how many of its events are known to have come before.
type Clock = Vec<u32>;

fn join(clock: &mut Clock, other: &Clock) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

fn knows(clock: &Clock, thread: ThreadId, index: u32) -> bool {
    clock.get(thread.index()).is_some_and(|&known| known > index)
}

/// The clocks after some kinds of synchronisation.
#[derive(Default)]
struct Clocks {
    threads: Vec<Clock>,
    objects: HashMap<ObjectId, Clock>,
    /// What a read of the cell synchronises with.
    released: HashMap<Cell, Clock>,
    /// By thread: what it knew at its last release fence, and what an acquire fence will tell it.
    fenced: Vec<Clock>,
    pending: Vec<Clock>,
}

impl Clocks {
    fn new(threads: usize) -> Self {
        let none = vec![Clock::new(); threads];
        Self { threads: none.clone(), fenced: none.clone(), pending: none, ..Self::default() }
    }

    /// Whoever comes to the object later knows of this.
    fn meet(&mut self, thread: ThreadId, object: ObjectId) {
        let kept = self.objects.entry(object).or_default();
        let own = &mut self.threads[thread.index()];
        join(kept, own);
        own.clone_from(kept);
    }

    fn read(&mut self, thread: ThreadId, cell: Cell, acquires: bool) {
        let Some(released) = self.released.get(&cell) else { return };
        let at = thread.index();
        join(if acquires { &mut self.threads[at] } else { &mut self.pending[at] }, released);
    }

    /// `continues`: the release that the operation has read from still counts.
    fn write(&mut self, thread: ThreadId, cell: Cell, releases: bool, continues: bool) {
        let at = thread.index();
        let new = if releases { &self.threads[at] } else { &self.fenced[at] };
        let released = self.released.entry(cell).or_default();
        match continues {
            true => join(released, new),
            false => released.clone_from(new),
        }
    }

    fn fence(&mut self, thread: ThreadId, order: MemoryOrder) {
        let at = thread.index();
        if acquires(order) {
            join(&mut self.threads[at], &self.pending[at]);
        }
        if releases(order) {
            self.fenced[at].clone_from(&self.threads[at]);
        }
    }
}

fn acquires(order: MemoryOrder) -> bool {
    !matches!(order, MemoryOrder::Relaxed | MemoryOrder::Release)
}

fn releases(order: MemoryOrder) -> bool {
    !matches!(order, MemoryOrder::Relaxed | MemoryOrder::Acquire)
}

/// What the heap holds, and who used it last.
#[derive(Default)]
struct Blocks(BTreeMap<u64, Block>);

struct Block {
    size: u64,
    users: BTreeMap<ThreadId, EventId>,
}

impl Blocks {
    fn made(&mut self, address: u64, size: u64) {
        self.0.insert(address, Block { size, users: BTreeMap::new() });
    }

    fn used(&mut self, address: u64, thread: ThreadId, event: EventId) {
        if let Some((&start, block)) = self.0.range_mut(..=address).next_back()
            && address - start < block.size
        {
            block.users.insert(thread, event);
        }
    }

    /// The last uses by each thread.
    fn freed(&mut self, address: u64) -> BTreeMap<ThreadId, EventId> {
        self.0.remove(&address).map(|block| block.users).unwrap_or_default()
    }
}

/// The memory order of an atomic access or a fence.
fn order_of(op: &Op) -> Option<MemoryOrder> {
    match op {
        Op::Read(access) | Op::Write(access) => access.order,
        Op::ReadModifyWrite(step) => Some(step.order),
        Op::Fence(order) => Some(*order),
        _ => None,
    }
}

/// Two accesses that only weak atomic operations order, as a sentence.
pub(crate) fn weakly_ordered(trace: &Trace) -> Option<String> {
    let is_weak = |order: MemoryOrder| order != MemoryOrder::SequentiallyConsistent;
    if !trace.events.iter().any(|event| order_of(&event.op).is_some_and(is_weak)) {
        return None;
    }
    let mut accesses = Accesses::new(trace);
    let count = trace.threads.len();
    let (mut all, mut c11) = (Clocks::new(count), Clocks::new(count));
    // By cell and thread: the last plain read and the last plain write.
    let mut last: HashMap<Cell, HashMap<ThreadId, [Option<EventId>; 2]>> = HashMap::new();
    let mut cells: Vec<SharedAccess> = Vec::new();
    let mut blocks = Blocks::default();
    for (id, event) in trace.events.iter().enumerate() {
        let (id, thread) = (EventId::from(id), event.thread);
        accesses.of(id, &mut cells);
        for clocks in [&mut all, &mut c11] {
            let own = &mut clocks.threads[thread.index()];
            own.resize(count.max(own.len()), 0);
            own[thread.index()] = event.index + 1;
        }
        let is_weak = |other: ThreadId, rival: EventId| {
            let index = trace.event(rival).index;
            let known = |clocks: &Clocks| knows(&clocks.threads[thread.index()], other, index);
            known(&all) && !known(&c11)
        };
        for address in used_memory(trace, &event.op).map(|(address, _)| address) {
            blocks.used(address, thread, id);
        }
        match &event.op {
            Op::Read(access) | Op::Write(access) if access.order.is_none() => {
                for access in &cells {
                    let before = last.entry(access.cell).or_default();
                    for (&other, events) in before.iter().filter(|(other, _)| **other != thread) {
                        let rivals = if access.writes { &events[..] } else { &events[1..] };
                        let mut rivals = rivals.iter().flatten().copied();
                        if let Some(rival) = rivals.find(|&rival| is_weak(other, rival)) {
                            return Some(sentence(trace, rival, id));
                        }
                    }
                    before.entry(thread).or_default()[usize::from(access.writes)] = Some(id);
                }
            }
            Op::Alloc { address, size } => blocks.made(*address, *size),
            Op::Free { address } => {
                let users = blocks.freed(*address);
                let rival = users.into_iter().find(|&(other, rival)| is_weak(other, rival));
                if let Some((_, rival)) = rival {
                    return Some(sentence(trace, rival, id));
                }
            }
            Op::Fork(child) => {
                for clocks in [&mut all, &mut c11] {
                    let own = clocks.threads[thread.index()].clone();
                    join(&mut clocks.threads[child.index()], &own);
                }
            }
            Op::Join(child) => {
                for clocks in [&mut all, &mut c11] {
                    let ended = clocks.threads[child.index()].clone();
                    join(&mut clocks.threads[thread.index()], &ended);
                }
            }
            op => {
                let mutex = match op {
                    Op::Sync(
                        _,
                        SyncOp::WaitBegin { mutex, .. } | SyncOp::WaitEnd { mutex, .. },
                    ) => Some(*mutex),
                    _ => None,
                };
                for object in op.object().into_iter().chain(mutex) {
                    all.meet(thread, object);
                    c11.meet(thread, object);
                }
                let Some(order) = order_of(op) else { continue };
                if let Op::Fence(order) = op {
                    c11.fence(thread, *order);
                }
                let reads = !matches!(op, Op::Write(_) | Op::Fence(_));
                let writes = !matches!(op, Op::Read(_) | Op::Fence(_));
                let mut memory: Vec<Cell> = cells.iter().map(|access| access.cell).collect();
                memory.sort_unstable();
                memory.dedup();
                for cell in memory {
                    if reads {
                        all.read(thread, cell, true);
                        c11.read(thread, cell, acquires(order));
                    }
                    if writes {
                        all.write(thread, cell, true, true);
                        c11.write(thread, cell, releases(order), reads);
                    }
                }
            }
        }
    }
    None
}

fn sentence(trace: &Trace, one: EventId, other: EventId) -> String {
    let access = |event: EventId| {
        let what = match &trace.event(event).op {
            Op::Read(_) => "read",
            Op::Write(_) => "write",
            Op::ReadModifyWrite(_) => "read-modify-write",
            Op::Free { .. } => "free",
            _ => "step",
        };
        format!("the {what}{}", at_place(trace, event))
    };
    let name = match &trace.event(one).op {
        Op::Read(access) | Op::Write(access) => &*trace.variables[access.variable.index()].name,
        Op::ReadModifyWrite(step) => &*trace.variables[step.variable.index()].name,
        _ => "memory",
    };
    format!(
        "a data race on `{name}` that no interleaving shows: {} and {} are ordered only by atomic \
         operations with a memory order that is too weak for that",
        access(one),
        access(other)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(one: &str, other: &str) -> bool {
        let mut text = String::from(
            "foretell-trace 1\nthread main, a, b\nvar d = 0, f = 0\nmutex m\nmain fork a\nmain fork b\n",
        );
        for (thread, steps) in [("a", one), ("b", other)] {
            for step in steps.split("; ").filter(|step| !step.is_empty()) {
                text += &format!("{thread} {step}\n");
            }
        }
        text += "main join a\nmain join b\nmain read d\n";
        let trace = foretell_trace::format::text::read(&text);
        weakly_ordered(&trace.unwrap_or_else(|error| panic!("{error}\n{text}"))).is_some()
    }

    #[test]
    fn what_c11_lets_synchronise_orders_and_nothing_else() {
        let cases = [
            (false, "write d; write.release f", "read.acquire f; read d"),
            (false, "write d; write.seq_cst f", "read.seq_cst f; write d"),
            (true, "write d; write.relaxed f", "read.acquire f; read d"),
            (true, "write d; write.release f", "read.relaxed f; read d"),
            (true, "write d; write.relaxed f", "read.relaxed f; write d"),
            (true, "read d; write.relaxed f", "read.relaxed f; write d"),
            (false, "read d; write.relaxed f", "read.relaxed f; read d"),
            (
                false,
                "write d; fence release; write.relaxed f",
                "read.relaxed f; fence acquire; read d",
            ),
            (
                true,
                "write d; write.relaxed f; fence release",
                "read.relaxed f; fence acquire; read d",
            ),
            (
                true,
                "write d; fence release; write.relaxed f",
                "fence acquire; read.relaxed f; read d",
            ),
            (false, "write d; write.release f; rmw.relaxed f", "read.acquire f; read d"),
            (true, "write d; write.release f; write.relaxed f", "read.acquire f; read d"),
            (false, "write d; rmw.acq_rel f", "rmw.acq_rel f; read d"),
            (true, "write d; rmw.relaxed f", "rmw.relaxed f; read d"),
            (
                false,
                "acquire m; write d; release m; write.relaxed f",
                "read.relaxed f; acquire m; read d; release m",
            ),
            // Nothing orders them, which the interleavings show.
            (false, "write d; write.relaxed f", "read d; read.relaxed f"),
        ];
        for (expected, one, other) in cases {
            assert_eq!(said(one, other), expected, "{one} | {other}");
        }
    }
}
