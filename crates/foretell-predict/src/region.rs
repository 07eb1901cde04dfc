//! Blocks that should be atomic, and the pairs of accesses in them (000 section 3).
//!
//! Marked by the program (`RegionBegin`, `RegionEnd`), or inferred: every call of a function other
//! than a thread's entry, and any two consecutive accesses of one variable by one thread outside
//! any call. A pair belongs to the innermost block that has both.
//!
//! Nobody wrote the entry of a thread to be atomic: a thread that looks at something twice may see that
//! it has changed. In an entry, directly or in two of its calls, only a read counts with a write that depends on
//! it, because what is written there is out of date if somebody else writes in between (module `stale`).
//!
//! Where a thread starts others or waits for them (fork, join, barrier, condition, semaphore) it
//! wants them to run: an inferred block is cut in two there. A marked one is not.
//!
//! What Rust's library does inside its own locks, channels and threads belongs to no inferred block.
//!
//! Of all accesses at one code location in one block only the first (to begin a pair) and the last
//! (to end one) are taken, which makes the longest pair; so a loop of a million accesses costs what
//! its code locations cost.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_trace::{Event, EventId, Op, SyncOp, ThreadId, Trace};

use crate::access::{Accesses, Cell, Location};
use crate::stale::Flow;

/// Which blocks count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Regions {
    /// Marked ones if there are any, else inferred ones.
    #[default]
    Automatic,
    /// Marked ones only.
    Marked,
    /// Inferred ones only.
    Inferred,
}

/// Two accesses of one cell in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPair {
    /// The thread.
    pub thread: ThreadId,
    /// What both access.
    pub cell: Cell,
    /// First access, its location and whether it is taken as a write.
    pub first: (EventId, Location, bool),
    /// Second access.
    pub second: (EventId, Location, bool),
}

/// The accesses of one variable at one location as one kind, in one block.
#[derive(Clone, Copy, Debug)]
struct Occurrence {
    location: Location,
    writes: bool,
    first: EventId,
    last: EventId,
}

/// The last read of a cell in a thread's entry.
#[derive(Clone, Copy, Debug)]
struct Look {
    read: Occurrence,
    /// The call of the entry that it was made in; none if by the entry itself.
    call: Option<EventId>,
}

#[derive(Debug, Default)]
struct Block {
    /// A marked region (not a call).
    marked: bool,
    /// Pairs in it are not reported: the entry of a thread, or a call while only marks count.
    silent: bool,
    /// Its call.
    call: Option<EventId>,
    /// In an order of their own: what is predicted, and in which order, is the same each time.
    cells: BTreeMap<Cell, Vec<Occurrence>>,
}

impl Block {
    /// The same block, with nothing in it.
    fn after_a_cut(&self) -> Self {
        let Self { marked, silent, call, .. } = *self;
        Self { marked, silent, call, cells: BTreeMap::new() }
    }
}

/// Whether a thread starts others here or waits for what they do. (Taking a lock is neither: it
/// keeps others out.)
fn lets_others_run(op: &Op) -> bool {
    matches!(
        op,
        Op::Fork(_)
            | Op::Join(_)
            | Op::Sync(
                _,
                SyncOp::WaitBegin { .. }
                    | SyncOp::SemaphoreWait { .. }
                    | SyncOp::BarrierArrive
                    | SyncOp::Receive { .. }
                    | SyncOp::Poll { .. }
            )
    )
}

/// Where Rust's library makes locks, channels and threads of atomics. What it does there is right in every
/// order, and no block of the program's.
const MACHINERY: [&str; 4] = [
    "library/std/src/sync/",
    "library/std/src/sys/",
    "library/std/src/thread/",
    "library/alloc/src/sync.rs",
];

fn is_machinery(trace: &Trace, event: &Event) -> bool {
    let file = event.site.map(|site| &*trace.sites[site.index()].file);
    file.is_some_and(|file| MACHINERY.iter().any(|place| file.contains(place)))
}

/// Calls `found` for every pair, in the order in which the blocks end; returns how many blocks
/// there were.
pub fn local_pairs(
    trace: &Trace,
    accesses: &mut Accesses<'_>,
    regions: Regions,
    mut found: impl FnMut(LocalPair),
) -> usize {
    let marked = match regions {
        Regions::Marked => true,
        Regions::Inferred => false,
        Regions::Automatic => {
            trace.events.iter().any(|event| matches!(event.op, Op::RegionBegin(_)))
        }
    };
    let entries = entry_calls(trace);
    let mut blocks = 0;
    let mut stacks: Vec<Vec<Block>> = trace.threads.iter().map(|_| Vec::new()).collect();
    let mut previous: Vec<HashMap<Cell, Vec<Occurrence>>> =
        trace.threads.iter().map(|_| HashMap::new()).collect();
    let mut looks: Vec<HashMap<Cell, Look>> =
        trace.threads.iter().map(|_| HashMap::new()).collect();
    let mut flows: Vec<Flow<'_>> = trace.threads.iter().map(|_| Flow::new(trace)).collect();
    let mut here = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        let thread = event.thread;
        flows[thread.index()].step(event);
        let stack = &mut stacks[thread.index()];
        let previous = &mut previous[thread.index()];
        match &event.op {
            Op::RegionBegin(_) => {
                stack.push(Block { marked: true, silent: !marked, ..Block::default() });
            }
            Op::Call(_) => {
                let silent = marked || entries.contains(&id);
                stack.push(Block { silent, call: Some(id), ..Block::default() });
            }
            Op::RegionEnd | Op::Return => {
                let wanted = matches!(event.op, Op::RegionEnd);
                if let Some(at) = stack.iter().rposition(|block| block.marked == wanted) {
                    let block = stack.remove(at);
                    blocks += usize::from(!block.silent);
                    close(block, &mut stack[..at], thread, &mut found);
                }
            }
            op if !marked && lets_others_run(op) => {
                previous.clear();
                looks[thread.index()].clear();
                let open: Vec<Block> = stack.iter().map(Block::after_a_cut).collect();
                while let Some(block) = stack.pop() {
                    close(block, stack, thread, &mut found);
                }
                *stack = open;
            }
            _ if !marked && is_machinery(trace, event) => {}
            _ => {
                accesses.of(id, &mut here);
                let location = accesses.location(id);
                let outside = !marked && stack.iter().all(|block| block.silent);
                let in_entry = !marked && stack.first().is_some_and(|block| block.silent);
                if in_entry {
                    // The call of the entry that this is in.
                    let call = stack.iter().find(|block| !block.silent);
                    let call = call.and_then(|block| block.call);
                    let looks = &mut looks[thread.index()];
                    for access in here.iter().filter(|access| access.writes) {
                        let Some(look) = looks.remove(&access.cell) else { continue };
                        let depends = || flows[thread.index()].depends(look.read.last, id);
                        // Within one call, or in none, they are a pair anyway.
                        if look.read.last != id && look.call != call && depends() {
                            let write = Occurrence { location, writes: true, first: id, last: id };
                            found(pair(thread, access.cell, &look.read, &write));
                        }
                    }
                    for access in here.iter().filter(|access| !access.writes) {
                        let read = Occurrence { location, writes: false, first: id, last: id };
                        looks.insert(access.cell, Look { read, call });
                    }
                }
                for access in &here {
                    let occurrence =
                        Occurrence { location, writes: access.writes, first: id, last: id };
                    if outside {
                        let before = previous.entry(access.cell).or_default();
                        if before.iter().any(|before| before.last != id) {
                            let counts = |before: &&Occurrence| {
                                let depends = || flows[thread.index()].depends(before.last, id);
                                !in_entry || !before.writes && occurrence.writes && depends()
                            };
                            for before in before.iter().filter(counts) {
                                found(pair(thread, access.cell, before, &occurrence));
                            }
                        }
                    } else if let Some(block) = stack.last_mut() {
                        let known = block.cells.entry(access.cell).or_default();
                        match known.iter_mut().find(|known| {
                            known.location == location && known.writes == access.writes
                        }) {
                            Some(known) => known.last = id,
                            None => known.push(occurrence),
                        }
                    }
                }
                if outside {
                    for access in &here {
                        let before = previous.entry(access.cell).or_default();
                        before.retain(|before| before.last == id);
                        let writes = access.writes;
                        before.push(Occurrence { location, writes, first: id, last: id });
                    }
                }
            }
        }
    }
    for (thread, mut stack) in stacks.into_iter().enumerate() {
        while let Some(block) = stack.pop() {
            blocks += usize::from(!block.silent);
            close(block, &mut stack, ThreadId::from(thread), &mut found);
        }
    }
    blocks
}

fn pair(thread: ThreadId, cell: Cell, first: &Occurrence, second: &Occurrence) -> LocalPair {
    LocalPair {
        thread,
        cell,
        first: (first.first, first.location, first.writes),
        second: (second.last, second.location, second.writes),
    }
}

/// Reports the block's own pairs and passes its accesses on to the block around it.
fn close(block: Block, around: &mut [Block], thread: ThreadId, found: &mut impl FnMut(LocalPair)) {
    for (&cell, occurrences) in &block.cells {
        if block.silent {
            break;
        }
        for first in occurrences {
            for second in occurrences.iter().filter(|second| first.first < second.last) {
                found(pair(thread, cell, first, second));
            }
        }
    }
    let Some(outer) = around.last_mut() else { return };
    if outer.silent && around.iter().all(|block| block.silent) {
        return;
    }
    let outer = around.last_mut().expect("seen above");
    for (cell, occurrences) in block.cells {
        let known = outer.cells.entry(cell).or_default();
        for occurrence in occurrences {
            match known.iter_mut().find(|known| {
                known.location == occurrence.location && known.writes == occurrence.writes
            }) {
                Some(known) => known.last = occurrence.last,
                None => known.push(occurrence),
            }
        }
    }
}

/// The calls that are a thread's entry rather than blocks: `main`, the function that a thread was
/// started with, and what the C++ library puts between the two.
///
/// A recorded thread begins with its entry, which goes on to the thread's end but for static
/// constructors before and destructors behind. In a trace without the threads' beginnings a call is
/// an entry if it holds all other accesses of its thread. What is called back again and again by
/// code that was not instrumented has no entry.
fn entry_calls(trace: &Trace) -> HashSet<EventId> {
    let mut threads = vec![Entry::default(); trace.threads.len()];
    for (position, event) in trace.events.iter().enumerate() {
        threads[event.thread.index()].step(EventId::from(position), &event.op);
    }
    threads.into_iter().flat_map(Entry::calls).collect()
}

/// What is known about the entry of one thread.
#[derive(Clone, Debug, Default)]
struct Entry<'a> {
    /// The thread's beginning was recorded.
    begun: bool,
    /// Calls that are not in another one, by function.
    outermost: Vec<(EventId, &'a str)>,
    /// Calls of the C++ library's way to the thread's function, and that function.
    library: Vec<EventId>,
    /// For each open call, whether it belongs to that way.
    open: Vec<bool>,
    /// Something else happened outside of all calls.
    accesses_outside: bool,
}

impl<'a> Entry<'a> {
    fn step(&mut self, id: EventId, op: &'a Op) {
        match op {
            Op::ThreadBegin => self.begun = true,
            Op::Call(function) => {
                let in_library = self.open.last().copied();
                match in_library {
                    None => self.outermost.push((id, function)),
                    Some(true) => self.library.push(id),
                    Some(false) => {}
                }
                let on_the_way = in_library.unwrap_or(true) && starts_threads(function);
                self.open.push(on_the_way);
            }
            Op::Return => drop(self.open.pop()),
            Op::ThreadEnd | Op::Alloc { .. } | Op::Free { .. } | Op::Input { .. } => {}
            _ => self.accesses_outside |= self.open.is_empty(),
        }
    }

    fn calls(self) -> Vec<EventId> {
        let (first, again) = match self.outermost.as_slice() {
            [] => return Vec::new(),
            [(first, function), rest @ ..] => {
                (*first, rest.iter().any(|(_, other)| other == function))
            }
        };
        let mut calls = self.library;
        match self.outermost.iter().find(|(_, function)| *function == "main") {
            Some((main, _)) => calls.push(*main),
            None if self.begun && !again => calls.push(first),
            None if self.outermost.len() == 1 && !self.accesses_outside => calls.push(first),
            None => return Vec::new(),
        }
        calls
    }
}

/// Whether the C++ library has the function between a new thread and the function that it was given.
fn starts_threads(function: &str) -> bool {
    const PARTS: [&str; 4] =
        ["std::thread::_State_impl<", "std::thread::_Invoker<", "std::__invoke", "std::__async_"];
    PARTS.iter().any(|part| function.contains(part)) && !function.contains("::~")
}
