//! Locksets and acquisition histories (000 section 3, after Kahlon, Ivancic and Gupta): the
//! over-approximate test whether two threads can be at two places at the same time.
//!
//! Two places are *simultaneously reachable* only if the threads hold no lock in common, and there
//! are no locks `l`, `l'` such that the one holds `l` and has since acquired `l'` while the other
//! holds `l'` and has since acquired `l`. For nested locking and locks alone this is exact; in
//! general a "no" is certain and a "yes" is not. Readers of a reader-writer lock do not exclude
//! each other.
//!
//! One pass; the states of a thread between two lock steps are interned, so a million events of a
//! few critical sections cost a few states.

use std::collections::HashMap;

use foretell_trace::{EventId, LockMode, LockStep, ObjectId, Op, SyncOp, Trace, irregular_locks};

/// The locks that every thread holds at every event.
#[derive(Clone, Debug, Default)]
pub struct Locksets {
    /// For each event: how many lock steps its thread made up to and including it.
    step: Vec<u32>,
    /// For each thread: the states between its lock steps.
    states: Vec<Vec<StateId>>,
    interned: Interned,
}

/// Which state of held locks; equal ids are equal states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(u32);

/// A lock that is held, and what was acquired since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Held {
    lock: ObjectId,
    mode: LockMode,
    /// How often (recursive mutexes).
    count: u32,
    history: HistoryId,
}

/// An interned set of acquisitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct HistoryId(u32);

#[derive(Clone, Debug, Default)]
struct Interned {
    states: Vec<Box<[Held]>>,
    state_ids: HashMap<Box<[Held]>, StateId>,
    histories: Vec<Box<[(ObjectId, LockMode)]>>,
    history_ids: HashMap<Box<[(ObjectId, LockMode)]>, HistoryId>,
    /// A history and one more acquisition.
    grown: HashMap<(HistoryId, ObjectId, LockMode), HistoryId>,
}

impl Interned {
    fn state(&mut self, held: &[Held]) -> StateId {
        if let Some(&id) = self.state_ids.get(held) {
            return id;
        }
        let id = StateId(self.states.len() as u32);
        self.states.push(held.into());
        self.state_ids.insert(held.into(), id);
        id
    }

    fn history(&mut self, acquired: Box<[(ObjectId, LockMode)]>) -> HistoryId {
        if let Some(&id) = self.history_ids.get(&acquired) {
            return id;
        }
        let id = HistoryId(self.histories.len() as u32);
        self.histories.push(acquired.clone());
        self.history_ids.insert(acquired, id);
        id
    }

    fn grow(&mut self, history: HistoryId, lock: ObjectId, mode: LockMode) -> HistoryId {
        if let Some(&id) = self.grown.get(&(history, lock, mode)) {
            return id;
        }
        let mut acquired = self.histories[history.0 as usize].to_vec();
        if !acquired.contains(&(lock, mode)) {
            acquired.push((lock, mode));
            acquired.sort_unstable_by_key(|&(lock, mode)| (lock, mode == LockMode::Shared));
        }
        let id = self.history(acquired.into());
        self.grown.insert((history, lock, mode), id);
        id
    }
}

fn exclusive(a: LockMode, b: LockMode) -> bool {
    a == LockMode::Exclusive || b == LockMode::Exclusive
}

impl Locksets {
    /// Computes the locksets of a trace.
    pub fn new(trace: &Trace) -> Self {
        let mut sets = Self {
            step: Vec::with_capacity(trace.events.len()),
            states: Vec::new(),
            interned: Interned::default(),
        };
        let empty = sets.interned.state(&[]);
        sets.states = vec![vec![empty]; trace.threads.len()];
        let mut held: Vec<Vec<Held>> = vec![Vec::new(); trace.threads.len()];
        let irregular = irregular_locks(trace);
        for event in &trace.events {
            let thread = event.thread.index();
            let held_here = &mut held[thread];
            match event.op {
                Op::Sync(
                    lock,
                    SyncOp::Acquire(LockStep { .. }) | SyncOp::Release(LockStep { .. }),
                )
                | Op::Sync(
                    _,
                    SyncOp::WaitBegin { mutex: lock, .. } | SyncOp::WaitEnd { mutex: lock, .. },
                ) if irregular.contains(&lock) => {}
                Op::Sync(lock, SyncOp::Acquire(LockStep { mode, .. })) => {
                    sets.acquire(held_here, lock, mode)
                }
                Op::Sync(lock, SyncOp::Release(LockStep { .. })) => release(held_here, lock, false),
                Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => release(held_here, mutex, true),
                Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => {
                    sets.acquire(held_here, mutex, LockMode::Exclusive)
                }
                _ => {}
            }
            if is_lock_step(&event.op) {
                let state = sets.interned.state(&held[thread]);
                sets.states[thread].push(state);
            }
            sets.step.push(sets.states[thread].len() as u32 - 1);
        }
        sets
    }

    fn acquire(&mut self, held: &mut Vec<Held>, lock: ObjectId, mode: LockMode) {
        if let Some(again) = held.iter_mut().find(|held| held.lock == lock) {
            again.count += 1;
            return;
        }
        for held in held.iter_mut() {
            held.history = self.interned.grow(held.history, lock, mode);
        }
        let history = self.interned.history(Box::default());
        held.push(Held { lock, mode, count: 1, history });
    }

    /// The state of held locks just after the event.
    pub fn after(&self, trace: &Trace, event: EventId) -> StateId {
        self.states[trace.event(event).thread.index()][self.step[event.index()] as usize]
    }

    /// The state of held locks just before the event.
    pub fn before(&self, trace: &Trace, event: EventId) -> StateId {
        let thread = trace.event(event).thread;
        let step = self.step[event.index()] as usize;
        let took_step = is_lock_step(&trace.event(event).op);
        self.states[thread.index()][step - usize::from(took_step)]
    }

    /// The locks of a state with their modes.
    pub fn locks(&self, state: StateId) -> impl Iterator<Item = (ObjectId, LockMode)> + '_ {
        self.interned.states[state.0 as usize].iter().map(|held| (held.lock, held.mode))
    }

    /// Can two threads hold these locks, with these histories, at the same time?
    pub fn compatible(&self, a: StateId, b: StateId) -> bool {
        let a = &self.interned.states[a.0 as usize];
        let b = &self.interned.states[b.0 as usize];
        let acquired = |held: &Held, lock: ObjectId, mode: LockMode| {
            self.interned.histories[held.history.0 as usize]
                .iter()
                .any(|&(other, other_mode)| other == lock && exclusive(mode, other_mode))
        };
        !a.iter().any(|mine| {
            b.iter().any(|other| {
                (mine.lock == other.lock && exclusive(mine.mode, other.mode))
                    || (acquired(mine, other.lock, other.mode)
                        && acquired(other, mine.lock, mine.mode))
            })
        })
    }

    /// The different states of held locks just after `first` up to just before `second`, both of
    /// one thread in this order. Empty when there are more than `limit` steps in between.
    pub fn between(
        &self,
        trace: &Trace,
        first: EventId,
        second: EventId,
        limit: usize,
    ) -> Vec<StateId> {
        let thread = trace.event(first).thread;
        let from = self.step[first.index()] as usize;
        let took_step = is_lock_step(&trace.event(second).op);
        let to = (self.step[second.index()] as usize - usize::from(took_step)).max(from);
        if to - from >= limit {
            return Vec::new();
        }
        let mut states = self.states[thread.index()][from..=to].to_vec();
        states.sort_unstable();
        states.dedup();
        states
    }
}

fn is_lock_step(op: &Op) -> bool {
    matches!(
        op,
        Op::Sync(
            _,
            SyncOp::Acquire(_)
                | SyncOp::Release(_)
                | SyncOp::WaitBegin { .. }
                | SyncOp::WaitEnd { .. }
        )
    )
}

/// Gives a lock back; a wait gives it back entirely. One that is not held was taken before the
/// trace began.
fn release(held: &mut Vec<Held>, lock: ObjectId, entirely: bool) {
    if let Some(position) = held.iter().position(|held| held.lock == lock) {
        held[position].count -= 1;
        if entirely || held[position].count == 0 {
            held.remove(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::{Indexer, ObjectKind, ThreadId};

    /// `"0+a 0+b 0-b 1+b"`: thread, acquire or release (`r` reads), lock. Returns the last event of
    /// each thread too.
    fn trace(text: &str) -> (Trace, Vec<EventId>) {
        let mut trace = Trace::new();
        let mut indexer = Indexer::default();
        for thread in 0..2 {
            trace.add_thread(&format!("T{thread}"), vec![thread]);
        }
        for lock in ["a", "b", "g"] {
            trace.add_object(lock, ObjectKind::ReaderWriterLock);
        }
        let mut last = vec![EventId(0); 2];
        for word in text.split_whitespace() {
            let [thread, step, lock] = word.as_bytes() else { panic!("three letters: {word}") };
            let thread = ThreadId(u32::from(thread - b'0'));
            let lock = ObjectId(
                ["a", "b", "g"].iter().position(|l| l.as_bytes()[0] == *lock).unwrap() as u32,
            );
            let mode = if *step == b'r' { LockMode::Shared } else { LockMode::Exclusive };
            let step_of = LockStep { mode, by_try: false };
            let op = if *step == b'-' {
                Op::Sync(lock, SyncOp::Release(step_of))
            } else {
                Op::Sync(lock, SyncOp::Acquire(step_of))
            };
            last[thread.index()] = trace.push(indexer.event(thread, None, op));
        }
        (trace, last)
    }

    fn compatible(text: &str) -> bool {
        let (trace, last) = trace(text);
        let sets = Locksets::new(&trace);
        sets.compatible(sets.after(&trace, last[0]), sets.after(&trace, last[1]))
    }

    #[test]
    fn a_common_lock_excludes() {
        assert!(!compatible("0+a 1+a"));
        assert!(compatible("0+a 1+b"));
        assert!(compatible("0+a 0-a 1+a"));
    }

    #[test]
    fn readers_share() {
        assert!(compatible("0ra 1ra"));
        assert!(!compatible("0ra 1+a"));
    }

    #[test]
    fn crossed_acquisition_histories_exclude() {
        // each holds one lock and went through the other since
        assert!(!compatible("0+a 0+b 0-b 1+b 1+a 1-a"));
        // here the first went through b before it took a
        assert!(compatible("0+b 0-b 0+a 1+b 1+a 1-a"));
    }

    #[test]
    fn recursive_holds_end_with_the_last_release() {
        assert!(!compatible("0+a 0+a 0-a 1+a"));
        assert!(compatible("0+a 0+a 0-a 0-a 1+a"));
    }

    #[test]
    fn a_gap_between_two_critical_sections_lets_the_remote_in() {
        let (trace, last) = trace("0+a 0-a 0+a 0-a 1+a");
        let sets = Locksets::new(&trace);
        let remote = sets.after(&trace, last[1]);
        let reachable = |first: u32, second: u32| {
            let between = sets.between(&trace, EventId(first), EventId(second), 64);
            between.iter().any(|&state| sets.compatible(state, remote))
        };
        assert!(reachable(0, 2), "released in between");
        assert!(!reachable(0, 1), "held all the time");
    }

    #[test]
    fn before_and_after_differ_at_a_lock_step_only() {
        let (trace, _) = trace("0+a 0+b");
        let sets = Locksets::new(&trace);
        let locks = |state| sets.locks(state).map(|(lock, _)| lock.0).collect::<Vec<_>>();
        assert_eq!(locks(sets.before(&trace, EventId(1))), [0]);
        assert_eq!(locks(sets.after(&trace, EventId(1))), [0, 1]);
    }
}
