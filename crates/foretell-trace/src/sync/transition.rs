//! What steps on synchronisation objects do: for each, when it can take place and what it changes.
//!
//! | step | needs | does |
//! |---|---|---|
//! | acquire of a mutex | l = 0 | l := me |
//! | release | l = me | l := 0 |
//! | inner acquire/release of a recursive mutex | l = me | |
//! | read lock | l = 0 | reader(me) := true |
//! | write lock | l = 0, no reader | l := me |
//! | failed try | what keeps it from succeeding | |
//! | semaphore wait, failed wait, post | s > 0; s = 0; true | s := s - 1; none; s := s + 1 |
//! | begin of a condition wait | m = me | m := 0, w(me) := waiting |
//! | end of a condition wait | m = 0, w(me) = woken | m := me, w(me) := none |
//! | signal | | one w(t) that is waiting, if any := woken |
//! | broadcast | | every w(t) that is waiting := woken |
//! | barrier | arrive: true; leave: the generation has changed | count; the last one starts a new generation |
//! | counted channel: send | | c := c + amount |
//! | counted channel: receive | c >= amount; c = amount if it emptied the channel | c := c - amount |
//! | counted channel: look | c > 0, or c = 0 | |
//!
//! The rules are written once, over a [`Machine`] that says what numbers and truths are: terms, where a
//! formula is made of a trace (foretell-model's `build`), or plain values ([`Values`]), where a run is
//! carried out (its `replay`, and the planner).
//!
//! How deep a thread is in a lock depends on its own steps only, so it is not part of the state: whoever
//! goes through the steps of a thread knows it ([`Holds`]). A signal may wake any waiter and never blocks; one
//! that finds nobody is lost, as POSIX has it. Spurious wake-ups are not modelled. A wait that ended by its
//! time limit is not in the queue of the condition: signals pass it by. Refused releases and destructions
//! change nothing.

use std::collections::BTreeMap;

use super::{Class, SyncOp};
use crate::event::{LockMode, LockStep};
use crate::id::{ObjectId, ThreadId};
use crate::trace::ObjectKind;

/// The thread sleeps.
pub const WAITING: u64 = 1;
/// The thread was woken, and goes on as soon as it has the mutex.
pub const WOKEN: u64 = 2;

/// A number in the state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Who holds the lock: 0, or the thread's number + 1.
    Holder(ObjectId),
    /// Whether the thread holds the lock as a reader: 0 or 1.
    Reader(ObjectId, ThreadId),
    /// Whether the thread waits on the condition: 0, [`WAITING`] or [`WOKEN`].
    Waiter(ObjectId, ThreadId),
    /// What the semaphore is at, or what is in the channel.
    Count(ObjectId),
    /// How many have come to the barrier since it opened last.
    Arrived(ObjectId),
    /// How often the barrier has opened.
    Generation(ObjectId),
    /// How often the barrier had opened when the thread came to it last.
    ArrivedIn(ObjectId, ThreadId),
}

impl Slot {
    /// The object of which it is a part.
    pub fn object(self) -> ObjectId {
        match self {
            Slot::Holder(object)
            | Slot::Reader(object, _)
            | Slot::Waiter(object, _)
            | Slot::Count(object)
            | Slot::Arrived(object)
            | Slot::Generation(object)
            | Slot::ArrivedIn(object, _) => object,
        }
    }
}

/// What the rules are carried out on.
pub trait Machine {
    /// A number in a [`Slot`], or one that goes there.
    type Number: Copy;
    /// Whether something holds.
    type Truth: Copy;

    /// What the object is.
    fn kind(&self, object: ObjectId) -> ObjectKind;
    /// Whether the object has a state here. Of one that has none (a lock that others give back, a channel
    /// that is not counted) only the order of the steps counts, and that is somebody else's business.
    fn has_state(&self, object: ObjectId) -> bool;
    /// The threads that have a slot of their own in the object: readers, or waiters.
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId>;

    /// What is in the slot.
    fn get(&mut self, slot: Slot) -> Self::Number;
    /// A constant that fits into the slot.
    fn constant(&mut self, slot: Slot, number: u64) -> Self::Number;
    /// What is in the slot and `number`.
    fn sum(&mut self, slot: Slot, number: u64) -> Self::Number;
    /// What is in the slot without `number`.
    fn difference(&mut self, slot: Slot, number: u64) -> Self::Number;
    /// One of two numbers.
    fn select(&mut self, which: Self::Truth, yes: Self::Number, no: Self::Number) -> Self::Number;

    /// Is this number in the slot?
    fn is(&mut self, slot: Slot, number: u64) -> Self::Truth;
    /// Is at least this number in the slot?
    fn is_at_least(&mut self, slot: Slot, number: u64) -> Self::Truth;
    /// Is the same number in both?
    fn same(&mut self, one: Slot, other: Slot) -> Self::Truth;
    /// Not.
    fn not(&mut self, truth: Self::Truth) -> Self::Truth;
    /// All of them.
    fn all(&mut self, truths: &[Self::Truth]) -> Self::Truth;
    /// `truth`, unless `exception` holds. (A conjunction of many of these would list them all again.)
    fn unless(&mut self, exception: Self::Truth, truth: Self::Truth) -> Self::Truth;
    /// At least one of them.
    fn any(&mut self, truths: &[Self::Truth]) -> Self::Truth;
    /// Of the threads, which one a signal prefers. It may be one that does not sleep.
    fn preferred(&mut self, condition: ObjectId, among: &[ThreadId]) -> Vec<Self::Truth>;
    /// Whether a wait with a time limit gives up. It may do so at any time before a signal wakes it, so it
    /// is enough that it does so at once or never: whom signals wake after that, they can wake as well
    /// when it has given up earlier.
    fn gives_up(&mut self, condition: ObjectId) -> Self::Truth;

    /// The step can take place only if this holds.
    fn require(&mut self, truth: Self::Truth);
    /// Afterwards this is in the slot, which is not looked at again.
    fn set(&mut self, slot: Slot, number: Self::Number);
}

/// The thread of a step, and what of its own past and future the step depends on.
#[derive(Clone, Copy, Debug)]
pub struct By {
    /// The thread.
    pub thread: ThreadId,
    /// The lock is held by the thread already, or still: see [`Holds`].
    pub inner: bool,
    /// At the begin of a wait: it has a time limit.
    pub timed: bool,
    /// At the begin of a wait: in the recorded run it ended by its time limit.
    pub timed_out: bool,
}

/// A step that does not fit the kind of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongObject(pub ObjectId);

/// What the step needs and does.
pub fn step<M: Machine>(
    machine: &mut M,
    by: By,
    object: ObjectId,
    op: &SyncOp,
) -> Result<(), WrongObject> {
    if !op.kind().class().has(machine.kind(object)) {
        return Err(WrongObject(object));
    }
    if let Some(mutex) = op.mutex()
        && !Class::Lock.has(machine.kind(mutex))
    {
        return Err(WrongObject(mutex));
    }
    match *op {
        SyncOp::Acquire(lock) => acquire(machine, by, object, lock.mode),
        SyncOp::AcquireFailed(lock) => acquire_failed(machine, by, object, lock),
        SyncOp::Release(lock) => release(machine, by, object, lock.mode),
        SyncOp::WaitBegin { mutex } => {
            release(machine, by, mutex, LockMode::Exclusive);
            wait_begin(machine, by, object);
        }
        SyncOp::WaitEnd { mutex, timed_out, timed } => {
            acquire(machine, by, mutex, LockMode::Exclusive);
            if timed || !timed_out {
                let waiter = Slot::Waiter(object, by.thread);
                let woken = machine.is(waiter, if timed_out { 0 } else { WOKEN });
                machine.require(woken);
                put(machine, waiter, 0);
            }
        }
        SyncOp::Signal => signal(machine, by, object),
        SyncOp::Broadcast => {
            for thread in machine.threads_at(object) {
                let waiter = Slot::Waiter(object, thread);
                let asleep = machine.is(waiter, WAITING);
                wake(machine, waiter, asleep);
            }
        }
        SyncOp::SemaphoreWait { .. } => {
            let none = machine.is(Slot::Count(object), 0);
            let some = machine.not(none);
            machine.require(some);
            let fewer = machine.difference(Slot::Count(object), 1);
            machine.set(Slot::Count(object), fewer);
        }
        SyncOp::SemaphoreWaitFailed => {
            let none = machine.is(Slot::Count(object), 0);
            machine.require(none);
        }
        SyncOp::SemaphorePost => {
            let more = machine.sum(Slot::Count(object), 1);
            machine.set(Slot::Count(object), more);
        }
        SyncOp::BarrierArrive => barrier_arrive(machine, by, object),
        SyncOp::BarrierLeave => {
            let arrived_in = Slot::ArrivedIn(object, by.thread);
            let same = machine.same(Slot::Generation(object), arrived_in);
            let opened = machine.not(same);
            machine.require(opened);
        }
        SyncOp::Send { .. } | SyncOp::Receive { .. } | SyncOp::Poll { .. } => {
            if machine.has_state(object) {
                channel(machine, object, op);
            }
        }
        SyncOp::ReleaseFailed(_) | SyncOp::Destroy => {}
    }
    Ok(())
}

fn put<M: Machine>(machine: &mut M, slot: Slot, number: u64) {
    let number = machine.constant(slot, number);
    machine.set(slot, number);
}

fn me(by: By) -> u64 {
    u64::from(by.thread.0) + 1
}

fn is_recursive<M: Machine>(machine: &M, lock: ObjectId) -> bool {
    machine.kind(lock) == ObjectKind::RecursiveMutex
}

fn acquire<M: Machine>(machine: &mut M, by: By, lock: ObjectId, mode: LockMode) {
    if !machine.has_state(lock) {
        return;
    }
    if by.inner && is_recursive(machine, lock) {
        let mine = machine.is(Slot::Holder(lock), me(by));
        return machine.require(mine);
    }
    if by.inner && mode == LockMode::Shared {
        return;
    }
    let free = machine.is(Slot::Holder(lock), 0);
    machine.require(free);
    match mode {
        LockMode::Exclusive => {
            for reader in machine.threads_at(lock) {
                let unread = machine.is(Slot::Reader(lock, reader), 0);
                machine.require(unread);
            }
            put(machine, Slot::Holder(lock), me(by));
        }
        LockMode::Shared => put(machine, Slot::Reader(lock, by.thread), 1),
    }
}

fn release<M: Machine>(machine: &mut M, by: By, lock: ObjectId, mode: LockMode) {
    if !machine.has_state(lock) {
        return;
    }
    let (slot, held) = match mode {
        LockMode::Exclusive => (Slot::Holder(lock), me(by)),
        LockMode::Shared => (Slot::Reader(lock, by.thread), 1),
    };
    let mine = machine.is(slot, held);
    machine.require(mine);
    if !by.inner {
        put(machine, slot, 0);
    }
}

fn acquire_failed<M: Machine>(machine: &mut M, by: By, lock: ObjectId, step: LockStep) {
    if !machine.has_state(lock) {
        return;
    }
    let mine = machine.is(Slot::Holder(lock), me(by));
    if !step.by_try {
        return machine.require(mine); // EDEADLK
    }
    let free = machine.is(Slot::Holder(lock), 0);
    let mut obstacles = vec![machine.not(free)];
    if step.mode == LockMode::Exclusive {
        for reader in machine.threads_at(lock) {
            obstacles.push(machine.is(Slot::Reader(lock, reader), 1));
        }
    }
    let taken = machine.any(&obstacles);
    machine.require(taken);
    if is_recursive(machine, lock) {
        let others = machine.not(mine);
        machine.require(others);
    }
}

fn wait_begin<M: Machine>(machine: &mut M, by: By, condition: ObjectId) {
    let waiter = Slot::Waiter(condition, by.thread);
    if !by.timed {
        if !by.timed_out {
            put(machine, waiter, WAITING);
        }
        return;
    }
    let asleep = machine.constant(waiter, WAITING);
    let gives_up = machine.gives_up(condition);
    let none = machine.constant(waiter, 0);
    let state = machine.select(gives_up, none, asleep);
    machine.set(waiter, state);
}

fn wake<M: Machine>(machine: &mut M, waiter: Slot, wakes: M::Truth) {
    let (now, woken) = (machine.get(waiter), machine.constant(waiter, WOKEN));
    let state = machine.select(wakes, woken, now);
    machine.set(waiter, state);
}

fn signal<M: Machine>(machine: &mut M, by: By, condition: ObjectId) {
    let mut waiters = machine.threads_at(condition);
    waiters.retain(|&thread| thread != by.thread); // it is not asleep
    let preferred = machine.preferred(condition, &waiters);
    let mut asleep = Vec::with_capacity(waiters.len());
    for &waiter in &waiters {
        asleep.push(machine.is(Slot::Waiter(condition, waiter), WAITING));
    }
    // A signal never blocks: if the preferred thread is not asleep, the first that is wakes up.
    let mut chosen = Vec::with_capacity(waiters.len());
    for (&asleep, preferred) in asleep.iter().zip(preferred) {
        chosen.push(machine.all(&[asleep, preferred]));
    }
    // Nobody is chosen and none of the earlier ones is asleep.
    let somebody = machine.any(&chosen);
    let mut none_before = machine.not(somebody);
    let mut wakes = Vec::with_capacity(waiters.len());
    for (&asleep, chosen) in asleep.iter().zip(chosen) {
        let first = machine.all(&[asleep, none_before]);
        none_before = machine.unless(asleep, none_before);
        wakes.push(machine.any(&[chosen, first]));
    }
    for (waiter, wakes) in waiters.into_iter().zip(wakes) {
        wake(machine, Slot::Waiter(condition, waiter), wakes);
    }
}

fn barrier_arrive<M: Machine>(machine: &mut M, by: By, barrier: ObjectId) {
    let ObjectKind::Barrier { parties } = machine.kind(barrier) else { return };
    let (arrived, generation) = (Slot::Arrived(barrier), Slot::Generation(barrier));
    let last = machine.is(arrived, u64::from(parties).saturating_sub(1));
    let (more, none) = (machine.sum(arrived, 1), machine.constant(arrived, 0));
    let (now, following) = (machine.get(generation), machine.sum(generation, 1));
    let (count, opened) = (machine.select(last, none, more), machine.select(last, following, now));
    machine.set(arrived, count);
    machine.set(generation, opened);
    machine.set(Slot::ArrivedIn(barrier, by.thread), now);
}

fn channel<M: Machine>(machine: &mut M, channel: ObjectId, op: &SyncOp) {
    let count = Slot::Count(channel);
    match *op {
        SyncOp::Send { amount, .. } => {
            let more = machine.sum(count, amount);
            machine.set(count, more);
        }
        SyncOp::Receive { amount, drained, .. } => {
            let there = match drained {
                true => machine.is(count, amount),
                false => machine.is_at_least(count, amount),
            };
            machine.require(there);
            let rest = machine.difference(count, amount);
            machine.set(count, rest);
        }
        SyncOp::Poll { ready } => {
            let empty = machine.is(count, 0);
            let found = if ready { machine.not(empty) } else { empty };
            machine.require(found);
        }
        _ => {}
    }
}

/// A state of plain numbers, for [`Values`].
pub trait State {
    /// What the object is.
    fn kind(&self, object: ObjectId) -> ObjectKind;
    /// See [`Machine::has_state`].
    fn has_state(&self, object: ObjectId) -> bool;
    /// See [`Machine::threads_at`].
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId>;
    /// What is in the slot.
    fn get(&self, slot: Slot) -> u64;
    /// Puts a number there.
    fn set(&mut self, slot: Slot, number: u64);
    /// The step can take place only if this holds.
    fn require(&mut self, holds: bool);
    /// See [`Machine::preferred`].
    fn preferred(&self, condition: ObjectId) -> Option<ThreadId>;
    /// The wait that begins gives up: see [`Machine::gives_up`].
    fn gives_up(&self) -> bool;
}

/// Carries out steps on plain numbers.
#[derive(Clone, Copy, Debug)]
pub struct Values<S>(pub S);

impl<S: State> Machine for Values<S> {
    type Number = u64;
    type Truth = bool;

    fn kind(&self, object: ObjectId) -> ObjectKind {
        self.0.kind(object)
    }
    fn has_state(&self, object: ObjectId) -> bool {
        self.0.has_state(object)
    }
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        self.0.threads_at(object)
    }
    fn get(&mut self, slot: Slot) -> u64 {
        self.0.get(slot)
    }
    fn constant(&mut self, _: Slot, number: u64) -> u64 {
        number
    }
    fn sum(&mut self, slot: Slot, number: u64) -> u64 {
        self.0.get(slot).wrapping_add(number)
    }
    fn difference(&mut self, slot: Slot, number: u64) -> u64 {
        self.0.get(slot).wrapping_sub(number)
    }
    fn select(&mut self, which: bool, yes: u64, no: u64) -> u64 {
        if which { yes } else { no }
    }
    fn is(&mut self, slot: Slot, number: u64) -> bool {
        self.0.get(slot) == number
    }
    fn is_at_least(&mut self, slot: Slot, number: u64) -> bool {
        self.0.get(slot) >= number
    }
    fn same(&mut self, one: Slot, other: Slot) -> bool {
        self.0.get(one) == self.0.get(other)
    }
    fn not(&mut self, truth: bool) -> bool {
        !truth
    }
    fn all(&mut self, truths: &[bool]) -> bool {
        truths.iter().all(|&truth| truth)
    }
    fn unless(&mut self, exception: bool, truth: bool) -> bool {
        truth && !exception
    }
    fn any(&mut self, truths: &[bool]) -> bool {
        truths.iter().any(|&truth| truth)
    }
    fn preferred(&mut self, condition: ObjectId, among: &[ThreadId]) -> Vec<bool> {
        let preferred = self.0.preferred(condition);
        among.iter().map(|&thread| Some(thread) == preferred).collect()
    }
    fn gives_up(&mut self, _: ObjectId) -> bool {
        self.0.gives_up()
    }
    fn require(&mut self, truth: bool) {
        self.0.require(truth);
    }
    fn set(&mut self, slot: Slot, number: u64) {
        self.0.set(slot, number);
    }
}

/// How often each thread holds each lock, as it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds(BTreeMap<(ThreadId, ObjectId, LockMode), u32>);

impl Holds {
    /// The thread holds the lock before its first step.
    pub fn hold(&mut self, thread: ThreadId, lock: ObjectId, mode: LockMode) {
        *self.0.entry((thread, lock, mode)).or_insert(0) += 1;
    }

    /// The thread takes the step; returns [`By::inner`]. A release of what is not held counts as that of
    /// the outermost level.
    pub fn step(&mut self, thread: ThreadId, object: ObjectId, op: &SyncOp) -> bool {
        let (lock, mode, takes) = match *op {
            SyncOp::Acquire(step) => (object, step.mode, true),
            SyncOp::Release(step) => (object, step.mode, false),
            SyncOp::WaitBegin { mutex } => (mutex, LockMode::Exclusive, false),
            SyncOp::WaitEnd { mutex, .. } => (mutex, LockMode::Exclusive, true),
            _ => return false,
        };
        let key = (thread, lock, mode);
        let depth = self.0.get(&key).copied().unwrap_or(0);
        match (takes, depth) {
            (true, _) => self.0.insert(key, depth + 1),
            (false, 0 | 1) => self.0.remove(&key),
            (false, _) => self.0.insert(key, depth - 1),
        };
        if takes { depth > 0 } else { depth > 1 }
    }

    /// Who holds what, and how often.
    pub fn iter(&self) -> impl Iterator<Item = ((ThreadId, ObjectId, LockMode), u32)> + '_ {
        self.0.iter().map(|(&held, &depth)| (held, depth))
    }
}
