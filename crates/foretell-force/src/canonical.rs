//! When two runs are the same: the canonical form of a run, as a number.
//!
//! [`order`] is the canonical form of the run's partial order (a Mazurkiewicz trace): every event
//! with the events that it conflicts with and that came last before it. Runs with the same form
//! differ in the order of independent events only.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use foretell_predict::access::{Accesses, Cell};
use foretell_trace::{EventId, ObjectId, Op, SyncOp, ThreadId, Trace};

/// The canonical form of the partial order of some events of the trace, in this order.
pub fn order(trace: &Trace, events: impl IntoIterator<Item = EventId>) -> u64 {
    let mut accesses = Accesses::new(trace);
    let mut here = Vec::new();
    let mut last_write: HashMap<Cell, EventId> = HashMap::new();
    let mut reads: HashMap<Cell, Vec<EventId>> = HashMap::new();
    let mut last_step: HashMap<ObjectId, EventId> = HashMap::new();
    let name = |id: EventId| {
        let event = trace.event(id);
        (&*trace.threads[event.thread.index()].path, event.index)
    };
    fold(trace, events, |id, hasher| {
        accesses.of(id, &mut here);
        for access in &here {
            last_write.get(&access.cell).map(|&write| name(write)).hash(hasher);
            if access.writes {
                let mut since: Vec<_> =
                    reads.remove(&access.cell).into_iter().flatten().map(name).collect();
                since.sort_unstable();
                since.hash(hasher);
            }
        }
        for access in &here {
            match access.writes {
                true => _ = last_write.insert(access.cell, id),
                false => reads.entry(access.cell).or_default().push(id),
            }
        }
        for object in objects(&trace.event(id).op) {
            last_step.insert(object, id).map(name).hash(hasher);
        }
    })
}

/// A number for every thread, made of its events one after the other; then one of all threads by
/// their creation paths.
fn fold(
    trace: &Trace,
    events: impl IntoIterator<Item = EventId>,
    mut more: impl FnMut(EventId, &mut DefaultHasher),
) -> u64 {
    let mut threads: Vec<DefaultHasher> = vec![DefaultHasher::new(); trace.threads.len()];
    for id in events {
        let event = trace.event(id);
        let hasher = &mut threads[event.thread.index()];
        event.op.keyword().hash(hasher);
        event.site.map(|site| &trace.sites[site.index()]).hash(hasher);
        more(id, hasher);
    }
    let mut all: Vec<(&[u32], u64)> = (0..trace.threads.len())
        .map(ThreadId::from)
        .map(|thread| (&*trace.threads[thread.index()].path, threads[thread.index()].finish()))
        .collect();
    all.sort_unstable();
    let mut hasher = DefaultHasher::new();
    all.hash(&mut hasher);
    hasher.finish()
}

/// The synchronisation objects of a step.
pub(crate) fn objects(op: &Op) -> Vec<ObjectId> {
    let mutex = match *op {
        Op::Sync(_, SyncOp::WaitBegin { mutex, .. } | SyncOp::WaitEnd { mutex, .. }) => Some(mutex),
        _ => None,
    };
    op.object().into_iter().chain(mutex).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    fn form(events: &str) -> u64 {
        let text = format!(
            "foretell-trace 1\nobserved\nthread main, worker\nvar x\nvar y\nmutex m\n{events}"
        );
        let trace = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        order(&trace, (0..trace.events.len()).map(EventId::from))
    }

    #[test]
    fn independent_events_may_change_places() {
        assert_eq!(form("main write x\nworker write y"), form("worker write y\nmain write x"));
        assert_eq!(form("main read x\nworker read x"), form("worker read x\nmain read x"));
    }

    #[test]
    fn conflicting_events_may_not() {
        for (one, other) in [
            ("main write x\nworker write x", "worker write x\nmain write x"),
            ("main write x\nworker read x", "worker read x\nmain write x"),
            (
                "main acquire m\nmain release m\nworker acquire m\nworker release m",
                "worker acquire m\nworker release m\nmain acquire m\nmain release m",
            ),
        ] {
            assert_ne!(form(one), form(other), "{one}");
        }
    }
}
