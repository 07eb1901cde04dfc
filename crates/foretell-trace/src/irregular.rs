//! Locks that are released by a thread that does not hold them.
//!
//! POSIX forbids it, and glibc does it: such a mutex works like a binary semaphore. It is a finding of
//! its own (misuse). What such a lock excludes is not what a lock excludes, so nothing is concluded from
//! it but the order in which it was used.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Op;
use crate::id::{ObjectId, ThreadId};
use crate::sync::SyncOp;
use crate::trace::Trace;

/// The locks of an observed run that were given back by a thread that did not hold them while another
/// one did. (A release without any acquire is that of a lock that was held before the first event.)
pub fn irregular_locks(trace: &Trace) -> BTreeSet<ObjectId> {
    let mut irregular = BTreeSet::new();
    if !trace.metadata.observed_order {
        return irregular;
    }
    let mut held: BTreeMap<ObjectId, BTreeMap<ThreadId, u32>> = BTreeMap::new();
    for event in &trace.events {
        match event.op {
            Op::Sync(lock, SyncOp::Acquire(_)) => {
                *held.entry(lock).or_default().entry(event.thread).or_insert(0) += 1;
            }
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => {
                *held.entry(mutex).or_default().entry(event.thread).or_insert(0) += 1;
            }
            Op::Sync(lock, SyncOp::Release(_)) => {
                release(&mut held, lock, event.thread, &mut irregular)
            }
            Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => {
                release(&mut held, mutex, event.thread, &mut irregular);
            }
            _ => {}
        }
    }
    irregular
}

fn release(
    held: &mut BTreeMap<ObjectId, BTreeMap<ThreadId, u32>>,
    lock: ObjectId,
    thread: ThreadId,
    irregular: &mut BTreeSet<ObjectId>,
) {
    let holders = held.entry(lock).or_default();
    if let Some(depth) = holders.get_mut(&thread) {
        *depth -= 1;
        if *depth == 0 {
            holders.remove(&thread);
        }
    } else if !holders.is_empty() {
        holders.clear();
        irregular.insert(lock);
    }
}
