//! Threads, locks, conditions, semaphores, barriers, and nesting.

use std::collections::{BTreeSet, HashMap};

use super::Faults;
use crate::event::{Event, LockMode, Op};
use crate::id::{EventId, ObjectId, ThreadId};
use crate::irregular::irregular_locks;
use crate::sync::SyncOp;
use crate::trace::{ObjectKind, Trace};

#[derive(Clone, Default)]
struct ThreadState {
    events: u32,
    forked: bool,
    ended: bool,
    joined_by: Option<ThreadId>,
    calls: u32,
    regions: u32,
    /// Condition, mutex, and how often the mutex was held.
    waiting: Option<(ObjectId, ObjectId, u32)>,
}

/// Who holds a lock. By thread, so that a thread can be checked where no order was observed.
#[derive(Clone, Default)]
struct Lock {
    exclusive: HashMap<ThreadId, u32>,
    shared: HashMap<ThreadId, u32>,
}

#[derive(Clone, Default)]
struct Barrier {
    arrivals: u64,
    /// The number of a thread's arrival that it has not left yet.
    inside: HashMap<ThreadId, u64>,
}

pub(super) struct State<'t> {
    trace: &'t Trace,
    observed: bool,
    /// Locks whose holder is not known from their steps.
    irregular: BTreeSet<ObjectId>,
    threads: Vec<ThreadState>,
    locks: Vec<Lock>,
    semaphores: Vec<i64>,
    barriers: Vec<Barrier>,
}

/// Gives one hold back; false when there is none.
fn drop_hold(holders: &mut HashMap<ThreadId, u32>, thread: ThreadId) -> bool {
    let Some(depth) = holders.get_mut(&thread) else { return false };
    *depth -= 1;
    if *depth == 0 {
        holders.remove(&thread);
    }
    true
}

impl<'t> State<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let semaphores = trace.objects.iter().map(|object| match object.kind {
            ObjectKind::Semaphore { initial } => i64::from(initial),
            _ => 0,
        });
        Self {
            trace,
            observed: trace.metadata.observed_order,
            irregular: irregular_locks(trace),
            threads: vec![ThreadState::default(); trace.threads.len()],
            locks: vec![Lock::default(); trace.objects.len()],
            semaphores: semaphores.collect(),
            barriers: vec![Barrier::default(); trace.objects.len()],
        }
    }

    fn kind(&self, object: ObjectId) -> ObjectKind {
        self.trace.objects[object.index()].kind
    }

    pub(super) fn step(&mut self, id: EventId, event: &Event, faults: &mut Faults<'_>) {
        let thread = event.thread;
        let state = &mut self.threads[thread.index()];
        if event.index != state.events {
            faults.at(id, format!("has index {} where {} is next", event.index, state.events));
        }
        let first = state.events == 0;
        state.events = event.index.saturating_add(1);
        if state.ended {
            faults.at(id, "comes after the end of its thread");
        }
        if self.observed
            && let Some(joiner) = state.joined_by.take()
        {
            let joiner = faults.thread(joiner).to_owned();
            faults.at(id, format!("comes after {joiner} joined its thread"));
        }
        if let Some((condition, ..)) = state.waiting
            && !matches!(event.op, Op::Sync(_, SyncOp::WaitEnd { .. }))
        {
            let condition = faults.object(condition).to_owned();
            faults.at(id, format!("acts while it waits on {condition}"));
            state.waiting = None;
        }
        match &event.op {
            Op::ThreadBegin if !first => faults.at(id, "begins a thread that has begun"),
            Op::ThreadEnd => state.ended = true,
            Op::Fork(child) => self.fork(id, thread, *child, faults),
            Op::Join(other) => self.join(id, thread, *other, faults),
            Op::Sync(lock, SyncOp::Acquire(step)) => {
                self.acquire(id, thread, *lock, step.mode, faults)
            }
            Op::Sync(lock, SyncOp::AcquireFailed(step) | SyncOp::ReleaseFailed(step)) => {
                self.check_lock(id, *lock, step.mode, faults);
            }
            Op::Sync(lock, SyncOp::Release(step)) => {
                self.release(id, thread, *lock, step.mode, faults)
            }
            Op::Sync(condition, SyncOp::WaitBegin { mutex }) => {
                self.wait_begin(id, thread, *condition, *mutex, faults);
            }
            Op::Sync(condition, SyncOp::WaitEnd { mutex, .. }) => {
                self.wait_end(id, thread, *condition, *mutex, faults);
            }
            Op::Sync(condition, SyncOp::Signal | SyncOp::Broadcast) => {
                self.check_condition(id, *condition, faults);
            }
            Op::Sync(
                object,
                step @ (SyncOp::SemaphoreWait { .. }
                | SyncOp::SemaphorePost
                | SyncOp::SemaphoreWaitFailed),
            ) => {
                self.semaphore(id, *object, step, faults);
            }
            Op::Sync(object, step @ (SyncOp::BarrierArrive | SyncOp::BarrierLeave)) => {
                self.barrier(id, thread, *object, step, faults);
            }
            Op::Sync(
                channel,
                SyncOp::Send { .. } | SyncOp::Receive { .. } | SyncOp::Poll { .. },
            ) => {
                self.check_channel(id, *channel, faults);
            }
            Op::RegionBegin(_) => state.regions += 1,
            Op::RegionEnd => match state.regions.checked_sub(1) {
                Some(rest) => state.regions = rest,
                None => faults.at(id, "ends a region, but none is open"),
            },
            Op::Call(_) => state.calls += 1,
            Op::Return => match state.calls.checked_sub(1) {
                Some(rest) => state.calls = rest,
                None => faults.at(id, "returns, but no call is open"),
            },
            _ => {}
        }
    }

    fn fork(&mut self, id: EventId, thread: ThreadId, child: ThreadId, faults: &mut Faults<'_>) {
        let name = faults.thread(child).to_owned();
        let observed = self.observed;
        let state = &mut self.threads[child.index()];
        if child == thread {
            faults.at(id, "forks itself");
        } else if state.forked {
            faults.at(id, format!("forks {name}, which was forked before"));
        } else if observed && state.events > 0 {
            faults.at(id, format!("forks {name}, which has begun already"));
        }
        state.forked = true;
    }

    fn join(&mut self, id: EventId, thread: ThreadId, other: ThreadId, faults: &mut Faults<'_>) {
        if other == thread {
            faults.at(id, "joins itself");
            return;
        }
        // A thread without an end event has ended if nothing of it follows.
        self.threads[other.index()].joined_by = Some(thread);
    }

    fn check_lock(
        &self,
        id: EventId,
        object: ObjectId,
        mode: LockMode,
        faults: &mut Faults<'_>,
    ) -> bool {
        let name = faults.object(object).to_owned();
        match (self.kind(object), mode) {
            (ObjectKind::ReaderWriterLock, _) => true,
            (
                ObjectKind::Mutex | ObjectKind::RecursiveMutex | ObjectKind::ErrorCheckingMutex,
                LockMode::Exclusive,
            ) => true,
            (
                ObjectKind::Mutex | ObjectKind::RecursiveMutex | ObjectKind::ErrorCheckingMutex,
                LockMode::Shared,
            ) => {
                faults.at(id, format!("uses {name} as a reader, but it is a mutex"));
                false
            }
            _ => {
                faults.at(id, format!("uses {name} as a lock, but it is not one"));
                false
            }
        }
    }

    fn acquire(
        &mut self,
        id: EventId,
        thread: ThreadId,
        object: ObjectId,
        mode: LockMode,
        faults: &mut Faults<'_>,
    ) {
        if !self.check_lock(id, object, mode, faults) || self.irregular.contains(&object) {
            return;
        }
        let recursive = self.kind(object) == ObjectKind::RecursiveMutex;
        let name = faults.object(object).to_owned();
        let lock = &mut self.locks[object.index()];
        if lock.exclusive.contains_key(&thread) && !recursive {
            faults.at(id, format!("acquires {name}, which it holds already"));
        }
        if self.observed {
            let mut conflicting = lock.exclusive.keys().find(|&&holder| holder != thread);
            if mode == LockMode::Exclusive {
                conflicting = conflicting.or_else(|| lock.shared.keys().next());
            }
            if let Some(&holder) = conflicting {
                let holder = faults.thread(holder).to_owned();
                faults.at(id, format!("acquires {name}, which {holder} holds"));
            }
        }
        let holders = match mode {
            LockMode::Exclusive => &mut lock.exclusive,
            LockMode::Shared => &mut lock.shared,
        };
        *holders.entry(thread).or_insert(0) += 1;
    }

    fn release(
        &mut self,
        id: EventId,
        thread: ThreadId,
        object: ObjectId,
        mode: LockMode,
        faults: &mut Faults<'_>,
    ) {
        if !self.check_lock(id, object, mode, faults) || self.irregular.contains(&object) {
            return;
        }
        let lock = &mut self.locks[object.index()];
        let holders = match mode {
            LockMode::Exclusive => &mut lock.exclusive,
            LockMode::Shared => &mut lock.shared,
        };
        if !drop_hold(holders, thread) {
            let name = faults.object(object).to_owned();
            match lock.exclusive.keys().chain(lock.shared.keys()).next() {
                Some(&holder) if self.observed && holder != thread => {
                    let holder = faults.thread(holder).to_owned();
                    faults.at(id, format!("releases {name}, which {holder} holds"));
                }
                _ => faults.at(id, format!("releases {name}, which it does not hold")),
            }
        }
    }

    fn check_condition(&self, id: EventId, condition: ObjectId, faults: &mut Faults<'_>) {
        if self.kind(condition) != ObjectKind::Condition {
            let name = faults.object(condition).to_owned();
            faults.at(id, format!("uses {name} as a condition, but it is not one"));
        }
    }

    fn wait_begin(
        &mut self,
        id: EventId,
        thread: ThreadId,
        condition: ObjectId,
        mutex: ObjectId,
        faults: &mut Faults<'_>,
    ) {
        self.check_condition(id, condition, faults);
        let held = self.locks[mutex.index()].exclusive.remove(&thread);
        if held.is_none() && !self.irregular.contains(&mutex) {
            let (condition, mutex) = (faults.object(condition), faults.object(mutex));
            faults.at(id, format!("waits on {condition} without holding {mutex}"));
        }
        self.threads[thread.index()].waiting = Some((condition, mutex, held.unwrap_or(1)));
    }

    fn wait_end(
        &mut self,
        id: EventId,
        thread: ThreadId,
        condition: ObjectId,
        mutex: ObjectId,
        faults: &mut Faults<'_>,
    ) {
        let depth = match self.threads[thread.index()].waiting.take() {
            Some((begun, given, depth)) if (begun, given) == (condition, mutex) => depth,
            Some(_) => {
                faults.at(id, "ends a wait on another condition or mutex than it began");
                1
            }
            None => {
                faults.at(id, "ends a wait that has not begun");
                1
            }
        };
        let lock = &mut self.locks[mutex.index()];
        if self.observed
            && !self.irregular.contains(&mutex)
            && let Some(&holder) = lock.exclusive.keys().find(|&&holder| holder != thread)
        {
            let (holder, mutex) = (faults.thread(holder), faults.object(mutex));
            let message = format!("wakes up with {mutex}, which {holder} holds");
            faults.at(id, message);
        }
        lock.exclusive.insert(thread, depth);
    }

    fn semaphore(&mut self, id: EventId, object: ObjectId, op: &SyncOp, faults: &mut Faults<'_>) {
        let name = faults.object(object).to_owned();
        if !matches!(self.kind(object), ObjectKind::Semaphore { .. }) {
            faults.at(id, format!("uses {name} as a semaphore, but it is not one"));
            return;
        }
        let count = &mut self.semaphores[object.index()];
        match op {
            SyncOp::SemaphorePost => *count += 1,
            SyncOp::SemaphoreWait { .. } if *count == 0 && self.observed => {
                faults.at(id, format!("passes {name}, which is at zero"));
            }
            SyncOp::SemaphoreWait { .. } => *count -= 1,
            _ => {}
        }
    }

    /// What a channel gives may come from outside, so that its amounts need not add up.
    fn check_channel(&self, id: EventId, channel: ObjectId, faults: &mut Faults<'_>) {
        if !matches!(self.kind(channel), ObjectKind::Channel(_)) {
            let name = faults.object(channel).to_owned();
            faults.at(id, format!("uses {name} as a channel, but it is not one"));
        }
    }

    fn barrier(
        &mut self,
        id: EventId,
        thread: ThreadId,
        object: ObjectId,
        op: &SyncOp,
        faults: &mut Faults<'_>,
    ) {
        let name = faults.object(object).to_owned();
        let ObjectKind::Barrier { parties } = self.kind(object) else {
            faults.at(id, format!("uses {name} as a barrier, but it is not one"));
            return;
        };
        if parties == 0 {
            faults.at(id, format!("uses {name}, a barrier without parties"));
            return;
        }
        let barrier = &mut self.barriers[object.index()];
        if matches!(op, SyncOp::BarrierArrive) {
            let number = barrier.arrivals;
            barrier.arrivals += 1;
            if barrier.inside.insert(thread, number).is_some() {
                faults.at(id, format!("arrives at {name}, which it has not left"));
            }
            return;
        }
        match barrier.inside.remove(&thread) {
            None => faults.at(id, format!("leaves {name} without having arrived at it")),
            Some(number) => {
                let needed = (number / u64::from(parties) + 1) * u64::from(parties);
                if self.observed && barrier.arrivals < needed {
                    let missing = needed - barrier.arrivals;
                    faults.at(id, format!("leaves {name} while {missing} parties are missing"));
                }
            }
        }
    }
}
