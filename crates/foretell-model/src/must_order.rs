//! Must-happens-before: pairs of events whose order no interleaving can change, by vector clocks
//! (000 section 6, "a simple must-happen-before analysis").
//!
//! `before(a, b)` means: in every feasible prefix in which `b` takes place, `a` took place before.
//! Program order, fork and join, the trace's own fixed orders, barriers, and semaphores and
//! conditions where only one event can have let the waiter go. Locks and data give no must-order.
//! What is not found here is left to the solver, so missing a pair costs time only.
//!
//! One pass; memory is one clock for each event that has a predecessor in another thread, not for
//! each event.

use std::collections::{BTreeSet, HashMap};

use foretell_trace::{EventId, ObjectId, ObjectKind, Op, SyncOp, ThreadId, Trace};

use crate::channel::Channels;

/// Must-happens-before of a trace.
#[derive(Clone, Debug)]
pub struct MustOrder {
    threads: usize,
    /// Thread and index of each event.
    place: Vec<(ThreadId, u32)>,
    /// Which clock holds for the event.
    segment: Vec<u32>,
    /// `threads` entries a clock: how many events of the thread come before.
    clocks: Vec<u32>,
}

/// The fixed orders of a trace contradict each other: no run has all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CyclicOrder {
    /// An event that can never take place.
    pub event: EventId,
}

impl std::fmt::Display for CyclicOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "event {} must come before itself; check the fixed orders, forks and joins",
            self.event.0
        )
    }
}

impl std::error::Error for CyclicOrder {}

impl MustOrder {
    /// Computes the order.
    pub fn new(trace: &Trace) -> Result<Self, CyclicOrder> {
        Self::without(trace, &BTreeSet::new())
    }

    /// As [`Self::new`], where some channels order nothing.
    pub(crate) fn without(
        trace: &Trace,
        channels: &BTreeSet<ObjectId>,
    ) -> Result<Self, CyclicOrder> {
        let chains = trace.events_by_thread();
        let edges = cross_edges(trace, &chains, channels);
        Self::from_edges(trace, &chains, edges)
    }

    /// The strong order of 002 (chapter 5, "Happen-before analysis"): program order, fork and
    /// join, barriers, and semaphores and conditions paired as they were in the run, because they
    /// are taken as signals. Mutexes only give a weak order, which is left out. Unlike [`Self::new`]
    /// it is a guess: another run may pair signals differently.
    pub fn strong(trace: &Trace) -> Result<Self, CyclicOrder> {
        let chains = trace.events_by_thread();
        let edges = strong_edges(trace, &chains);
        Self::from_edges(trace, &chains, edges)
    }

    fn from_edges(
        trace: &Trace,
        chains: &[Vec<EventId>],
        edges: Vec<(EventId, EventId)>,
    ) -> Result<Self, CyclicOrder> {
        let threads = chains.len();
        let mut incoming: HashMap<EventId, Vec<EventId>> = HashMap::new();
        for (first, second) in edges {
            if trace.event(first).thread != trace.event(second).thread {
                incoming.entry(second).or_default().push(first);
            } else if first >= second {
                return Err(CyclicOrder { event: second });
            }
        }
        let mut order = Self {
            threads,
            place: vec![(ThreadId(0), 0); trace.events.len()],
            segment: vec![u32::MAX; trace.events.len()],
            clocks: Vec::new(),
        };
        // Threads advance as far as their predecessors allow; an event that waits wakes its thread.
        let mut next = vec![0; threads];
        let mut waiting: HashMap<EventId, Vec<usize>> = HashMap::new();
        let mut ready: Vec<usize> = (0..threads).rev().collect();
        let mut clock = vec![0; threads];
        while let Some(thread) = ready.pop() {
            while let Some(&event) = chains[thread].get(next[thread]) {
                let sources = incoming.get(&event).map_or(&[][..], Vec::as_slice);
                if let Some(&missing) =
                    sources.iter().find(|source| order.segment[source.index()] == u32::MAX)
                {
                    waiting.entry(missing).or_default().push(thread);
                    break;
                }
                let position = next[thread];
                order.place[event.index()] = (ThreadId::from(thread), position as u32);
                order.segment[event.index()] = if position > 0 && sources.is_empty() {
                    order.segment[chains[thread][position - 1].index()]
                } else {
                    clock.fill(0);
                    if position > 0 {
                        let previous = order.segment[chains[thread][position - 1].index()];
                        clock.copy_from_slice(order.clock(previous));
                    }
                    for &source in sources {
                        let (from, index) = order.place[source.index()];
                        let seen = order.clock(order.segment[source.index()]);
                        clock.iter_mut().zip(seen).for_each(|(mine, &other)| {
                            *mine = (*mine).max(other);
                        });
                        clock[from.index()] = clock[from.index()].max(index + 1);
                    }
                    order.clocks.extend_from_slice(&clock);
                    (order.clocks.len() / threads - 1) as u32
                };
                next[thread] += 1;
                ready.extend(waiting.remove(&event).into_iter().flatten());
            }
        }
        match (0..threads).find(|&thread| next[thread] < chains[thread].len()) {
            Some(thread) => Err(CyclicOrder { event: chains[thread][next[thread]] }),
            None => Ok(order),
        }
    }

    fn clock(&self, segment: u32) -> &[u32] {
        &self.clocks[segment as usize * self.threads..][..self.threads]
    }

    /// Does `a` come before `b` in every run in which `b` takes place?
    pub fn before(&self, a: EventId, b: EventId) -> bool {
        let (a_thread, a_index) = self.place[a.index()];
        let (b_thread, b_index) = self.place[b.index()];
        if a_thread == b_thread {
            a_index < b_index
        } else {
            self.clock(self.segment[b.index()])[a_thread.index()] > a_index
        }
    }

    /// Is neither before the other?
    pub fn concurrent(&self, a: EventId, b: EventId) -> bool {
        a != b && !self.before(a, b) && !self.before(b, a)
    }

    /// How many events of `thread` (from its first) come before `event` in every run.
    pub fn count_before(&self, thread: ThreadId, event: EventId) -> u32 {
        let (own, index) = self.place[event.index()];
        if own == thread { index } else { self.clock(self.segment[event.index()])[thread.index()] }
    }
}

/// A thread's events come after its fork and before its join.
fn life_edge(op: &Op, id: EventId, chains: &[Vec<EventId>]) -> Option<(EventId, EventId)> {
    let chain = |child: ThreadId| chains.get(child.index());
    match *op {
        Op::Fork(child) => Some((id, *chain(child)?.first()?)),
        Op::Join(child) => Some((*chain(child)?.last()?, id)),
        _ => None,
    }
}

/// The certain orders between events of different threads, but for some channels.
fn cross_edges(
    trace: &Trace,
    chains: &[Vec<EventId>],
    skipped: &BTreeSet<ObjectId>,
) -> Vec<(EventId, EventId)> {
    let mut edges = trace.orders.clone();
    edges.extend(Channels::without(trace, skipped).orders);
    let mut uses: HashMap<ObjectId, ObjectUses> = HashMap::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        match event.op {
            Op::Fork(_) | Op::Join(_) => edges.extend(life_edge(&event.op, id, chains)),
            Op::Sync(object, SyncOp::SemaphorePost) => {
                uses.entry(object).or_default().enablers.push(id)
            }
            Op::Sync(object, SyncOp::SemaphoreWait { .. }) => {
                uses.entry(object).or_default().waiters.push(id)
            }
            Op::Sync(object, SyncOp::Signal | SyncOp::Broadcast) => {
                uses.entry(object).or_default().enablers.push(id);
            }
            Op::Sync(condition, SyncOp::WaitEnd { timed_out: false, .. }) => {
                uses.entry(condition).or_default().waiters.push(id);
            }
            Op::Sync(object, SyncOp::BarrierArrive) => {
                uses.entry(object).or_default().enablers.push(id)
            }
            Op::Sync(object, SyncOp::BarrierLeave) => {
                uses.entry(object).or_default().waiters.push(id)
            }
            _ => {}
        }
    }
    for (object, uses) in &uses {
        match trace.objects[object.index()].kind {
            ObjectKind::Semaphore { initial } => uses.semaphore(trace, initial, &mut edges),
            ObjectKind::Barrier { parties } => uses.barrier(trace, parties, &mut edges),
            _ => uses.condition(&mut edges),
        }
    }
    edges
}

/// The order of one recorded run, without its mutexes.
fn strong_edges(trace: &Trace, chains: &[Vec<EventId>]) -> Vec<(EventId, EventId)> {
    let mut edges = trace.orders.clone();
    edges.extend(Channels::new(trace).orders);
    let mut posts: HashMap<ObjectId, Vec<EventId>> = HashMap::new();
    let mut waits: HashMap<ObjectId, usize> = HashMap::new();
    let mut signals: HashMap<ObjectId, EventId> = HashMap::new();
    let mut asleep_since: HashMap<ThreadId, EventId> = HashMap::new();
    let mut arrived: HashMap<ObjectId, Vec<EventId>> = HashMap::new();
    let mut met: HashMap<(ObjectId, ThreadId), Vec<EventId>> = HashMap::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        match event.op {
            Op::Fork(_) | Op::Join(_) => edges.extend(life_edge(&event.op, id, chains)),
            Op::Sync(object, SyncOp::SemaphorePost) => posts.entry(object).or_default().push(id),
            Op::Sync(object, SyncOp::SemaphoreWait { .. }) => {
                let ObjectKind::Semaphore { initial } = trace.objects[object.index()].kind else {
                    continue;
                };
                let count = waits.entry(object).or_default();
                let post = count.checked_sub(initial as usize);
                let post = post.and_then(|post| posts.get(&object)?.get(post));
                edges.extend(post.map(|&post| (post, id)));
                *count += 1;
            }
            Op::Sync(object, SyncOp::Signal | SyncOp::Broadcast) => {
                signals.insert(object, id);
            }
            Op::Sync(_, SyncOp::WaitBegin { .. }) => {
                asleep_since.insert(event.thread, id);
            }
            Op::Sync(condition, SyncOp::WaitEnd { timed_out: false, .. }) => {
                let begin = asleep_since.remove(&event.thread);
                let signal = signals.get(&condition).filter(|&&signal| Some(signal) > begin);
                edges.extend(signal.map(|&signal| (signal, id)));
            }
            Op::Sync(object, SyncOp::BarrierArrive) => {
                let meeting = arrived.entry(object).or_default();
                meeting.push(id);
                let ObjectKind::Barrier { parties } = trace.objects[object.index()].kind else {
                    continue;
                };
                if meeting.len() == parties as usize {
                    let meeting = std::mem::take(meeting);
                    for &arrival in &meeting {
                        met.insert((object, trace.event(arrival).thread), meeting.clone());
                    }
                }
            }
            Op::Sync(object, SyncOp::BarrierLeave) => {
                let meeting = met.get(&(object, event.thread)).into_iter().flatten();
                edges.extend(meeting.map(|&arrival| (arrival, id)));
            }
            _ => {}
        }
    }
    edges
}

/// The events that may let somebody go, and those that were let go, in recorded order.
#[derive(Default)]
struct ObjectUses {
    enablers: Vec<EventId>,
    waiters: Vec<EventId>,
}

impl ObjectUses {
    /// A thread's k-th wait needs at least `k - initial` posts before it; with one posting thread
    /// these are its first ones.
    fn semaphore(&self, trace: &Trace, initial: u32, edges: &mut Vec<(EventId, EventId)>) {
        let thread = |event: &EventId| trace.event(*event).thread;
        let Some(poster) = self.enablers.first().map(thread) else { return };
        if self.enablers.iter().any(|post| thread(post) != poster) {
            return;
        }
        let mut waits: HashMap<ThreadId, usize> = HashMap::new();
        for wait in &self.waiters {
            let count = waits.entry(thread(wait)).or_default();
            *count += 1;
            if let Some(needed) = count.checked_sub(initial as usize).filter(|&needed| needed > 0)
                && let Some(&post) = self.enablers.get(needed - 1)
            {
                edges.push((post, *wait));
            }
        }
    }

    /// With as many threads as parties, a thread's k-th arrival belongs to the k-th meeting.
    fn barrier(&self, trace: &Trace, parties: u32, edges: &mut Vec<(EventId, EventId)>) {
        let mut arrivals: HashMap<ThreadId, Vec<EventId>> = HashMap::new();
        for &arrive in &self.enablers {
            arrivals.entry(trace.event(arrive).thread).or_default().push(arrive);
        }
        if arrivals.len() != parties as usize {
            return;
        }
        let mut leaves: HashMap<ThreadId, usize> = HashMap::new();
        for &leave in &self.waiters {
            let meeting = leaves.entry(trace.event(leave).thread).or_default();
            for arrivals in arrivals.values() {
                edges.extend(arrivals.get(*meeting).map(|&arrive| (arrive, leave)));
            }
            *meeting += 1;
        }
    }

    /// Nobody wakes without a signal; with a single one it is that.
    fn condition(&self, edges: &mut Vec<(EventId, EventId)>) {
        if let [only] = self.enablers[..] {
            edges.extend(self.waiters.iter().map(|&waiter| (only, waiter)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::Indexer;

    struct Builder {
        trace: Trace,
        indexer: Indexer,
    }

    impl Builder {
        fn new(threads: u32) -> Self {
            let mut trace = Trace::new();
            for thread in 0..threads {
                trace.add_thread(&format!("T{thread}"), vec![thread]);
            }
            Self { trace, indexer: Indexer::default() }
        }

        fn push(&mut self, thread: u32, op: Op) -> EventId {
            let event = self.indexer.event(ThreadId(thread), None, op);
            self.trace.push(event)
        }

        fn order(&self) -> MustOrder {
            MustOrder::new(&self.trace).expect("no cycle")
        }
    }

    #[test]
    fn fork_and_join_order_a_child_with_its_parent_only() {
        let mut b = Builder::new(3);
        let before = b.push(0, Op::Return);
        b.push(0, Op::Fork(ThreadId(1)));
        let between = b.push(0, Op::Fork(ThreadId(2)));
        let one = b.push(1, Op::Return);
        let two = b.push(2, Op::Return);
        b.push(0, Op::Join(ThreadId(1)));
        let after = b.push(0, Op::Return);
        let order = b.order();
        assert!(order.before(before, one) && order.before(before, two));
        assert!(order.before(one, after) && !order.before(two, after));
        assert!(order.concurrent(one, two) && order.concurrent(between, one));
        assert!(order.before(between, two));
    }

    #[test]
    fn a_semaphore_with_one_poster_orders_the_nth_wait_after_the_nth_post() {
        let mut b = Builder::new(2);
        let semaphore = b.trace.add_object("s", ObjectKind::Semaphore { initial: 1 });
        let first_post = b.push(0, Op::Sync(semaphore, SyncOp::SemaphorePost));
        let first_wait = b.push(1, Op::Sync(semaphore, SyncOp::SemaphoreWait { by_try: false }));
        let second_wait = b.push(1, Op::Sync(semaphore, SyncOp::SemaphoreWait { by_try: false }));
        let order = b.order();
        assert!(order.concurrent(first_post, first_wait));
        assert!(order.before(first_post, second_wait));
    }

    #[test]
    fn a_barrier_orders_all_arrivals_before_all_leaves() {
        let mut b = Builder::new(3);
        let barrier = b.trace.add_object("b", ObjectKind::Barrier { parties: 3 });
        let arrivals: Vec<_> =
            (0..3).map(|t| b.push(t, Op::Sync(barrier, SyncOp::BarrierArrive))).collect();
        let leaves: Vec<_> =
            (0..3).map(|t| b.push(t, Op::Sync(barrier, SyncOp::BarrierLeave))).collect();
        let order = b.order();
        for &arrive in &arrivals {
            for &leave in &leaves {
                assert!(order.before(arrive, leave));
            }
        }
        assert!(order.concurrent(leaves[0], leaves[1]));
    }

    #[test]
    fn a_barrier_with_more_threads_than_parties_orders_nothing() {
        let mut b = Builder::new(3);
        let barrier = b.trace.add_object("b", ObjectKind::Barrier { parties: 2 });
        let arrive = b.push(0, Op::Sync(barrier, SyncOp::BarrierArrive));
        b.push(1, Op::Sync(barrier, SyncOp::BarrierArrive));
        let leave = b.push(1, Op::Sync(barrier, SyncOp::BarrierLeave));
        b.push(2, Op::Sync(barrier, SyncOp::BarrierArrive));
        assert!(b.order().concurrent(arrive, leave));
    }

    #[test]
    fn the_only_signal_comes_before_the_wake_up() {
        let mut b = Builder::new(3);
        let mutex = b.trace.add_object("m", ObjectKind::Mutex);
        let condition = b.trace.add_object("c", ObjectKind::Condition);
        let begin = b.push(1, Op::Sync(condition, SyncOp::WaitBegin { mutex }));
        let signal = b.push(0, Op::Sync(condition, SyncOp::Signal));
        let end = b.push(
            1,
            Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out: false, timed: false }),
        );
        assert!(b.order().before(signal, end));
        assert!(b.order().concurrent(begin, signal), "a signal may be lost");
        b.push(2, Op::Sync(condition, SyncOp::Broadcast));
        assert!(b.order().concurrent(signal, end), "either may have woken the waiter");
    }

    #[test]
    fn the_strong_order_pairs_signals_as_they_were_and_leaves_mutexes_out() {
        let mut b = Builder::new(3);
        let semaphore = b.trace.add_object("s", ObjectKind::Semaphore { initial: 0 });
        let mutex = b.trace.add_object("m", ObjectKind::Mutex);
        let lock =
            |by_try| foretell_trace::LockStep { mode: foretell_trace::LockMode::Exclusive, by_try };
        b.push(0, Op::Sync(mutex, SyncOp::Acquire(lock(false))));
        let released = b.push(0, Op::Sync(mutex, SyncOp::Release(lock(false))));
        let taken = b.push(1, Op::Sync(mutex, SyncOp::Acquire(lock(false))));
        let one = b.push(0, Op::Sync(semaphore, SyncOp::SemaphorePost));
        let two = b.push(1, Op::Sync(semaphore, SyncOp::SemaphorePost));
        let first = b.push(2, Op::Sync(semaphore, SyncOp::SemaphoreWait { by_try: false }));
        let order = MustOrder::strong(&b.trace).expect("no cycle");
        assert!(order.before(one, first), "as it was");
        assert!(b.order().concurrent(one, first), "but either post may have been the one");
        assert!(order.concurrent(two, first));
        assert!(order.concurrent(released, taken), "a mutex gives a weak order");
    }

    #[test]
    fn fixed_orders_may_point_back_in_the_listing_but_not_contradict_each_other() {
        let mut b = Builder::new(2);
        let one = b.push(0, Op::Return);
        let two = b.push(1, Op::Return);
        b.trace.orders = vec![(two, one)];
        assert!(b.order().before(two, one));
        b.trace.orders.push((one, two));
        assert!(MustOrder::new(&b.trace).is_err());
    }
}
