//! Persistent sets: some threads whose next actions commute with all that the others can still do.

use foretell_trace::sync::Class;
use foretell_trace::{EventId, ObjectId, SyncOp};
use rustc_hash::FxHashMap;

use super::{Action, Fact, Node, Producers, Segment};
use crate::planner::compiled_goal::CompiledGoal;
use crate::planner::machine::{Domain, ObjectState, State, Step};

impl<'a> Segment<'a> {
    /// Threads whose next actions are enough to try: a persistent set of which the goal notices
    /// nothing, or all that can go on.
    ///
    /// Of a plan, the first action that belongs to the set can come first, since it commutes with
    /// those before it; and if there is none, an action of the set can be put in front.
    pub(super) fn persistent(&self, node: &Node, goal: &CompiledGoal) -> Vec<u32> {
        let limits = self.limits(node, goal);
        let next = |thread: u32| {
            let place = node.places[thread as usize];
            (place < limits[thread as usize]).then(|| &self.chains[thread as usize][place as usize])
        };
        let open: Vec<u32> =
            (0..self.chains.len() as u32).filter(|&thread| next(thread).is_some()).collect();
        if self.counts_steps {
            return open;
        }
        let mut best: Option<Vec<u32>> = None;
        for &first in &open {
            if !next(first).is_some_and(|action| self.is_enabled(node, action)) {
                continue;
            }
            let most = best.as_ref().map_or(open.len(), Vec::len);
            if let Some(set) = self.closure(first, node, &next, &open, most) {
                if set.len() == 1 {
                    return set;
                }
                best = Some(set);
            }
        }
        best.unwrap_or(open)
    }

    /// The smallest persistent set with this thread; `None` when it has `most` threads or the goal
    /// would notice an action of it.
    fn closure<'s>(
        &'s self,
        first: u32,
        node: &Node,
        next: &dyn Fn(u32) -> Option<&'s Action>,
        open: &[u32],
        most: usize,
    ) -> Option<Vec<u32>> {
        let mut set = vec![first];
        let mut at = 0;
        while let Some(&thread) = set.get(at) {
            at += 1;
            let Some(action) = next(thread) else { continue };
            let enabled = self.is_enabled(node, action);
            if enabled && action.visible {
                return None;
            }
            let needed: Vec<u32> = match enabled {
                true => open
                    .iter()
                    .copied()
                    .filter(|&other| other != thread && self.depends(node, action, other))
                    .collect(),
                false => self.enablers(node, thread, action),
            };
            for other in needed {
                if next(other).is_some() && !set.contains(&other) {
                    set.push(other);
                }
            }
            if set.len() >= most {
                return None;
            }
        }
        Some(set)
    }

    /// Can something that the other thread may still do not be swapped with the action?
    fn depends(&self, node: &Node, action: &Action, other: u32) -> bool {
        let from = node.places[other as usize];
        let futures = &self.futures;
        let later = |uses: &Uses, number: u32| uses.last(other, number) > from;
        action.reads.iter().any(|&(cell, _)| later(&futures.writes, cell))
            || action.writes.iter().any(|&(cell, _)| later(&futures.accesses, cell))
            || match self.step(action.event) {
                Step::Sync { object, op: SyncOp::Acquire(_), .. } => {
                    later(&futures.takes, object.0)
                }
                // Only who found the lock taken notices that it is given back earlier.
                Step::Sync { object, op: SyncOp::Release(_), .. } => {
                    futures.tried[object.index()] && later(&futures.objects, object.0)
                }
                Step::Sync { object, op, .. } => {
                    let mutex = op.mutex().is_some_and(|mutex| later(&futures.objects, mutex.0));
                    later(&futures.objects, object.0) || mutex
                }
                Step::Local
                | Step::Access { .. }
                | Step::Fork(_)
                | Step::Join(_)
                | Step::Begin
                | Step::End => false,
            }
    }

    /// Threads of which one has to go on before the action can take place.
    fn enablers(&self, node: &Node, thread: u32, action: &Action) -> Vec<u32> {
        let Some(&fact) = self.missing(&node.state, thread, action, true).first() else {
            return (0..self.chains.len() as u32).collect();
        };
        let producers = self.producers.get(&fact).into_iter().flatten();
        let later = |producers: &&Producers| {
            let last = producers.places.last().copied().unwrap_or(0);
            producers.thread != thread && last >= node.places[producers.thread as usize]
        };
        producers.filter(later).map(|producers| producers.thread).collect()
    }
}

/// For each thread and thing, one more than the last place in the thread that uses it; 0 for none.
#[derive(Default)]
struct Uses {
    width: usize,
    last: Vec<u32>,
}

impl Uses {
    pub(super) fn new(threads: usize, width: usize) -> Self {
        Self { width, last: vec![0; threads * width] }
    }

    fn note(&mut self, thread: usize, number: u32, place: usize) {
        self.last[thread * self.width + number as usize] = place as u32 + 1;
    }

    fn last(&self, thread: u32, number: u32) -> u32 {
        self.last[thread as usize * self.width + number as usize]
    }
}

/// What threads may still do.
#[derive(Default)]
pub(super) struct Futures {
    /// Writes of cells.
    writes: Uses,
    /// Reads and writes of cells.
    accesses: Uses,
    /// Acquires of locks, those that failed and those after waiting included.
    takes: Uses,
    /// Everything done with objects.
    objects: Uses,
    /// Somebody found the lock taken.
    tried: Vec<bool>,
}

impl Futures {
    pub(super) fn new(segment: &Segment<'_>) -> Self {
        let threads = segment.chains.len();
        let cells = segment.start.cells.len();
        let objects = segment.start.objects.len();
        let mut futures = Futures {
            writes: Uses::new(threads, cells),
            accesses: Uses::new(threads, cells),
            takes: Uses::new(threads, objects),
            objects: Uses::new(threads, objects),
            tried: vec![false; objects],
        };
        for (thread, chain) in segment.chains.iter().enumerate() {
            let useful = &chain[..segment.useful[thread] as usize];
            for (place, action) in useful.iter().enumerate() {
                for &(cell, _) in &action.writes {
                    futures.writes.note(thread, cell, place);
                }
                for &(cell, _) in action.reads.iter().chain(&action.writes) {
                    futures.accesses.note(thread, cell, place);
                }
                match segment.step(action.event) {
                    Step::Sync { object, op, .. } => {
                        futures.objects.note(thread, object.0, place);
                        if let Some(mutex) = op.mutex() {
                            futures.objects.note(thread, mutex.0, place);
                        }
                        match op {
                            SyncOp::Acquire(_) => futures.takes.note(thread, object.0, place),
                            SyncOp::AcquireFailed(_) => {
                                futures.tried[object.index()] = true;
                                futures.takes.note(thread, object.0, place);
                            }
                            SyncOp::WaitEnd { mutex, .. } => {
                                futures.takes.note(thread, mutex.0, place);
                            }
                            _ => {}
                        }
                    }
                    Step::Local
                    | Step::Access { .. }
                    | Step::Fork(_)
                    | Step::Join(_)
                    | Step::Begin
                    | Step::End => {}
                }
            }
        }
        futures
    }
}

/// What a step that other threads can hold up waits for; the end of a wait needs two things.
pub(super) fn waits_for(object: ObjectId, op: SyncOp) -> Option<Fact> {
    match op {
        SyncOp::Acquire(_) => Some(Fact::Released(object)),
        SyncOp::AcquireFailed(_) => Some(Fact::Acquired(object)),
        SyncOp::SemaphoreWait { .. } => Some(Fact::Posted(object.0)),
        SyncOp::SemaphoreWaitFailed => Some(Fact::Taken(object.0)),
        SyncOp::BarrierLeave => Some(Fact::Arrived(object.0)),
        _ => None,
    }
}

/// Which cells and objects more than one thread uses in a segment.
pub(super) struct Shared {
    /// Shared cells in order of their new numbers.
    pub(super) cells: Vec<u32>,
    pub(super) numbers: FxHashMap<u32, u32>,
    objects: Vec<bool>,
}

impl Shared {
    pub(super) fn new(domain: &Domain, start: &State, events: &[Vec<EventId>]) -> Self {
        #[derive(Clone, Copy)]
        struct Use {
            thread: u32,
            several: bool,
            written: bool,
        }
        let mut uses: FxHashMap<u32, Use> = FxHashMap::default();
        let mut users: Vec<Option<u32>> = vec![None; start.objects.len()];
        let mut objects = vec![false; start.objects.len()];
        for (index, object) in start.objects.iter().enumerate() {
            match *object {
                ObjectState::Lock { holder, readers, .. } => {
                    users[index] = holder.checked_sub(1);
                    objects[index] = readers > 0;
                }
                _ => objects[index] = true,
            }
        }
        for (thread, events) in events.iter().enumerate() {
            let thread = thread as u32;
            for &event in events {
                let accesses = domain.reads(event).iter().map(|&(cell, _)| (cell, false));
                let writes = domain.writes(event).iter().map(|&(cell, _)| (cell, true));
                for (cell, write) in accesses.chain(writes) {
                    let entry =
                        uses.entry(cell).or_insert(Use { thread, several: false, written: false });
                    entry.several |= entry.thread != thread;
                    entry.written |= write;
                }
                if let Step::Sync { object, op, .. } = domain.steps[event.index()] {
                    match op.mutex() {
                        // Waiting changes the mutex together with the condition.
                        Some(mutex) => objects[mutex.index()] = true,
                        None if op.kind().class() == Class::Lock => {
                            let user = users[object.index()].get_or_insert(thread);
                            objects[object.index()] |= *user != thread;
                        }
                        None => {}
                    }
                }
            }
        }
        let shared = uses.into_iter().filter(|(_, usage)| usage.several && usage.written);
        let mut cells: Vec<u32> = shared.map(|(cell, _)| cell).collect();
        cells.sort_unstable();
        let numbers = cells.iter().zip(0..).map(|(&cell, number)| (cell, number)).collect();
        Self { cells, numbers, objects }
    }

    /// Could another thread notice the event, or keep it from happening?
    pub(super) fn matters(&self, domain: &Domain, event: EventId) -> bool {
        match domain.steps[event.index()] {
            _ if domain.is_end(event) => true,
            Step::Local | Step::Begin => false,
            Step::Access { .. } => domain
                .reads(event)
                .iter()
                .chain(domain.writes(event))
                .any(|(cell, _)| self.numbers.contains_key(cell)),
            Step::Sync { object, op, .. } if op.kind().class() == Class::Lock => {
                self.objects[object.index()]
            }
            _ => true,
        }
    }
}
