//! Where a run stands: threads, objects, and the values of cells as bits.

use foretell_trace::sync::transition::{self, Slot};
use foretell_trace::{ObjectId, ObjectKind, ThreadId};

use super::Domain;

/// A state of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::planner) struct State {
    /// How many events each thread has done.
    pub positions: Vec<u32>,
    /// The value of each cell.
    pub cells: Vec<u64>,
    pub objects: Vec<ObjectState>,
    pub threads: Vec<ThreadState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::planner) struct ThreadState {
    pub started: bool,
    pub ended: bool,
    /// The barrier generation in which it arrived.
    pub arrived_in: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::planner) enum ObjectState {
    /// Holder is a thread's number + 1; `readers` has a bit for each thread.
    Lock {
        holder: u32,
        readers: u128,
    },
    /// The threads that sleep, and those that were woken and have not gone on.
    Condition {
        waiting: u128,
        woken: u128,
    },
    Semaphore(u32),
    Barrier {
        arrived: u32,
        generation: u32,
    },
}

/// The threads whose bits are set.
pub(super) fn bits(set: u128) -> impl Iterator<Item = u32> {
    (0..u128::BITS).filter(move |bit| set >> bit & 1 != 0)
}

fn put(set: &mut u128, thread: ThreadId, member: bool) {
    *set &= !(1 << thread.0);
    *set |= u128::from(member) << thread.0;
}

impl State {
    fn get(&self, slot: Slot) -> u64 {
        let bit = |set: u128, thread: ThreadId| set >> thread.0 & 1 != 0;
        match (slot, self.objects[slot.object().index()]) {
            (Slot::Holder(_), ObjectState::Lock { holder, .. }) => u64::from(holder),
            (Slot::Reader(_, thread), ObjectState::Lock { readers, .. }) => {
                u64::from(bit(readers, thread))
            }
            (Slot::Waiter(_, thread), ObjectState::Condition { waiting, woken }) => {
                match (bit(waiting, thread), bit(woken, thread)) {
                    (_, true) => transition::WOKEN,
                    (true, _) => transition::WAITING,
                    _ => 0,
                }
            }
            (Slot::Count(_), ObjectState::Semaphore(count)) => u64::from(count),
            (Slot::Arrived(_), ObjectState::Barrier { arrived, .. }) => u64::from(arrived),
            (Slot::Generation(_), ObjectState::Barrier { generation, .. }) => u64::from(generation),
            (Slot::ArrivedIn(_, thread), _) => u64::from(self.threads[thread.index()].arrived_in),
            _ => 0,
        }
    }

    fn set(&mut self, slot: Slot, number: u64) {
        let small = u32::try_from(number).unwrap_or(u32::MAX);
        match (slot, &mut self.objects[slot.object().index()]) {
            (Slot::Holder(_), ObjectState::Lock { holder, .. }) => *holder = small,
            (Slot::Reader(_, thread), ObjectState::Lock { readers, .. }) => {
                put(readers, thread, number != 0);
            }
            (Slot::Waiter(_, thread), ObjectState::Condition { waiting, woken }) => {
                put(waiting, thread, number == transition::WAITING);
                put(woken, thread, number == transition::WOKEN);
            }
            (Slot::Count(_), ObjectState::Semaphore(count)) => *count = small,
            (Slot::Arrived(_), ObjectState::Barrier { arrived, .. }) => *arrived = small,
            (Slot::Generation(_), ObjectState::Barrier { generation, .. }) => *generation = small,
            (Slot::ArrivedIn(_, thread), _) => self.threads[thread.index()].arrived_in = small,
            _ => {}
        }
    }

    /// The threads that read or wait; all others have nothing in the object.
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        match self.objects[object.index()] {
            ObjectState::Lock { readers: 0, .. } => Vec::new(),
            ObjectState::Lock { readers, .. } => bits(readers).map(ThreadId).collect(),
            ObjectState::Condition { waiting, woken } => {
                bits(waiting | woken).map(ThreadId).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Looks whether a step can take place, and changes nothing.
pub(super) struct Look<'a> {
    pub(super) domain: &'a Domain,
    pub(super) state: &'a State,
    pub(super) possible: bool,
}

impl transition::State for Look<'_> {
    fn kind(&self, object: ObjectId) -> ObjectKind {
        self.domain.kinds[object.index()]
    }
    fn has_state(&self, _: ObjectId) -> bool {
        true
    }
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        self.state.threads_at(object)
    }
    fn get(&self, slot: Slot) -> u64 {
        self.state.get(slot)
    }
    fn set(&mut self, _: Slot, _: u64) {}
    fn require(&mut self, holds: bool) {
        self.possible &= holds;
    }
    fn preferred(&self, _: ObjectId) -> Option<ThreadId> {
        None
    }
    fn gives_up(&self) -> bool {
        false
    }
}

/// Takes a step that is possible.
pub(super) struct Change<'a> {
    pub(super) domain: &'a Domain,
    pub(super) state: &'a mut State,
    pub(super) woken: Option<ThreadId>,
}

impl transition::State for Change<'_> {
    fn kind(&self, object: ObjectId) -> ObjectKind {
        self.domain.kinds[object.index()]
    }
    fn has_state(&self, _: ObjectId) -> bool {
        true
    }
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        self.state.threads_at(object)
    }
    fn get(&self, slot: Slot) -> u64 {
        self.state.get(slot)
    }
    fn set(&mut self, slot: Slot, number: u64) {
        self.state.set(slot, number);
    }
    fn require(&mut self, _: bool) {}
    fn preferred(&self, _: ObjectId) -> Option<ThreadId> {
        self.woken
    }
    /// Waits that gave up in the recorded run are not in the queue: see [`By::timed_out`].
    fn gives_up(&self) -> bool {
        false
    }
}
