//! The order generator of 002 (chapter 5, figure 14): patterns by the strong order alone.
//!
//! It takes every two consecutive accesses of a variable by one thread (previous P and current C)
//! and every access R of another thread that makes an unserialisable pattern with them, and keeps
//! those where neither R comes before P nor C before R in the strong order
//! ([`MustOrder::strong`]). Mutexes order nothing, but P and C under a lock that R's thread
//! holds as well exclude it. Patterns of different remote threads are counted apart, as the
//! thesis does.
//!
//! Cheap and not exact: values and conditions are not looked at, so what comes out is to be tried by
//! execution; signals are taken as paired as they were.

use std::collections::HashMap;

use foretell_model::lockset::Locksets;
use foretell_model::must_order::{CyclicOrder, MustOrder};
use foretell_trace::{EventId, ThreadId, Trace};

use crate::access::{Accesses, Cell, Location};
use crate::candidates::{Candidates, Limits, classify};
use crate::region::LocalPair;

/// The patterns that the strong order leaves open.
pub fn order_candidates(
    trace: &Trace,
    locks: &Locksets,
    limits: Limits,
) -> Result<Candidates, CyclicOrder> {
    let strong = MustOrder::strong(trace)?;
    Ok(classify(trace, &strong, locks, limits, true, |accesses, found| {
        consecutive_pairs(trace, accesses, found);
        0 // no blocks
    }))
}

type Accessed = (EventId, Location, bool);

fn consecutive_pairs(trace: &Trace, accesses: &mut Accesses<'_>, found: &mut dyn FnMut(LocalPair)) {
    let mut previous: HashMap<(ThreadId, Cell), Vec<Accessed>> = HashMap::new();
    let mut here = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        accesses.of(id, &mut here);
        let location = accesses.location(id);
        for access in &here {
            let (thread, cell) = (event.thread, access.cell);
            let current = (id, location, access.writes);
            let known = previous.entry((thread, cell)).or_default();
            for &before in known.iter().filter(|before| before.0 != id) {
                found(LocalPair { thread, cell, first: before, second: current });
            }
        }
        for access in &here {
            let known = previous.entry((event.thread, access.cell)).or_default();
            known.retain(|before| before.0 == id);
            known.push((id, location, access.writes));
        }
    }
}
