//! Blocks that should be atomic, and the pairs of accesses in them (000 section 3).
//!
//! Marked by the program (`RegionBegin`, `RegionEnd`), or inferred: every call of a function other
//! than a thread's entry, and any two consecutive accesses of one variable by one thread outside
//! any call. A pair belongs to the innermost block that has both.
//!
//! Of all accesses at one code location in one block only the first (to begin a pair) and the last
//! (to end one) are taken, which makes the longest pair; so a loop of a million accesses costs what
//! its code locations cost.

use std::collections::HashMap;

use foretell_trace::{EventId, Op, ThreadId, Trace, VariableId};

use crate::access::{Accesses, Location};

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

/// Two accesses of one variable in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPair {
    /// The thread.
    pub thread: ThreadId,
    /// The variable.
    pub variable: VariableId,
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

#[derive(Debug, Default)]
struct Block {
    /// A marked region (not a call).
    marked: bool,
    /// Pairs in it are not reported: the entry of a thread, or a call while only marks count.
    silent: bool,
    variables: HashMap<VariableId, Vec<Occurrence>>,
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
    let mut previous: HashMap<(ThreadId, VariableId), Vec<Occurrence>> = HashMap::new();
    let mut here = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        let thread = event.thread;
        let stack = &mut stacks[thread.index()];
        match &event.op {
            Op::RegionBegin(_) => {
                stack.push(Block { marked: true, silent: !marked, ..Block::default() });
            }
            Op::Call(_) => {
                let silent = marked || entries[thread.index()] == Some(id);
                stack.push(Block { silent, ..Block::default() });
            }
            Op::RegionEnd | Op::Return => {
                let wanted = matches!(event.op, Op::RegionEnd);
                if let Some(at) = stack.iter().rposition(|block| block.marked == wanted) {
                    let block = stack.remove(at);
                    blocks += usize::from(!block.silent);
                    close(block, &mut stack[..at], thread, &mut found);
                }
            }
            _ => {
                accesses.of(id, &mut here);
                let location = accesses.location(id);
                let outside = !marked && stack.iter().all(|block| block.silent);
                for access in &here {
                    let occurrence =
                        Occurrence { location, writes: access.writes, first: id, last: id };
                    if outside {
                        let before = previous.entry((thread, access.variable)).or_default();
                        if before.iter().any(|before| before.last != id) {
                            for before in before.iter() {
                                found(pair(thread, access.variable, before, &occurrence));
                            }
                        }
                    } else if let Some(block) = stack.last_mut() {
                        let known = block.variables.entry(access.variable).or_default();
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
                        let before = previous.entry((thread, access.variable)).or_default();
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

fn pair(
    thread: ThreadId,
    variable: VariableId,
    first: &Occurrence,
    second: &Occurrence,
) -> LocalPair {
    LocalPair {
        thread,
        variable,
        first: (first.first, first.location, first.writes),
        second: (second.last, second.location, second.writes),
    }
}

/// Reports the block's own pairs and passes its accesses on to the block around it.
fn close(block: Block, around: &mut [Block], thread: ThreadId, found: &mut impl FnMut(LocalPair)) {
    for (&variable, occurrences) in &block.variables {
        if block.silent {
            break;
        }
        for first in occurrences {
            for second in occurrences.iter().filter(|second| first.first < second.last) {
                found(pair(thread, variable, first, second));
            }
        }
    }
    let Some(outer) = around.last_mut() else { return };
    if outer.silent && around.iter().all(|block| block.silent) {
        return;
    }
    let outer = around.last_mut().expect("seen above");
    for (variable, occurrences) in block.variables {
        let known = outer.variables.entry(variable).or_default();
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

/// The call that holds all other accesses of a thread is its entry, not a block.
fn entry_calls(trace: &Trace) -> Vec<Option<EventId>> {
    #[derive(Clone, Copy, Default)]
    struct State {
        entry: Option<EventId>,
        depth: u32,
        closed: bool,
        decided: bool,
    }
    let mut states = vec![State::default(); trace.threads.len()];
    for (position, event) in trace.events.iter().enumerate() {
        let state = &mut states[event.thread.index()];
        if state.decided {
            continue;
        }
        match event.op {
            Op::ThreadBegin | Op::ThreadEnd => {}
            Op::Call(_) if state.entry.is_none() => {
                state.entry = Some(EventId::from(position));
                state.depth = 1;
            }
            _ if state.entry.is_none() || state.closed => {
                // something before the first call or after its end: that call is no entry
                state.entry = None;
                state.decided = true;
            }
            Op::Call(_) => state.depth += 1,
            Op::Return => {
                state.depth = state.depth.saturating_sub(1);
                state.closed = state.depth == 0;
            }
            _ => {}
        }
    }
    states.into_iter().map(|state| state.entry).collect()
}
