//! Runs as a planning domain: what each recorded event needs and what it does, on concrete values.
//!
//! A predicted run is *precisely predictable* (003 Definition 2): every thread runs a prefix of
//! what it ran, locks are respected, and every read returns the value it returned in the recorded
//! run. So an event needs facts (a value in a cell, a free lock, a started thread) and makes facts;
//! nothing is symbolic. Where the trace has no values (STD), each write has a value of its own, so
//! that a read wants the very write it saw.

mod layout;
mod state;

use std::collections::{BTreeSet, HashMap};

use foretell_trace::sync::transition::{self, By, Holds, Values};
use foretell_trace::{EventId, ObjectId, ObjectKind, Op, SyncOp, ThreadId, Trace, VariableId};

use crate::limits::MOST_PLANNER_THREADS;
use layout::{Layout, bits_of};
use state::{Change, Look, bits};
pub(super) use state::{ObjectState, State, ThreadState};

/// A value that no access ever asks for: the content of a cell before anything is known of it.
const UNKNOWN: u64 = u64::MAX - 1;

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing that another thread could see.
    Local,
    /// Reads, then writes, cells: ranges in [`Domain::cells`].
    Access {
        reads: (u32, u32),
        writes: (u32, u32),
    },
    /// A step on a synchronisation object.
    Sync {
        object: ObjectId,
        op: SyncOp,
        /// See [`By::inner`].
        inner: bool,
        /// See [`By::timed_out`].
        timed_out: bool,
    },
    Fork(u32),
    Join(u32),
    Begin,
    End,
}

/// A trace that the planner cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplannable {
    /// Where.
    pub event: Option<EventId>,
    /// What it lacks, and what to do.
    pub message: String,
}

impl std::fmt::Display for Unplannable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.event {
            Some(event) => write!(f, "event {}: {}", event.0, self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Unplannable {}

/// A whole trace, compiled.
#[derive(Clone, Debug)]
pub struct Domain {
    /// What each event does.
    pub(super) steps: Vec<Step>,
    /// Thread and index in the thread of each event.
    pub(super) places: Vec<(u32, u32)>,
    /// The events of each thread.
    pub(super) chains: Vec<Vec<EventId>>,
    /// Cells and the values they must have or get; [`Step::Access`] refers to ranges.
    pub(super) cells: Vec<(u32, u64)>,
    kinds: Vec<ObjectKind>,
    initial_cells: Vec<u64>,
    /// Threads that have a fork event start only then.
    forked: Vec<bool>,
    /// The event with which each thread ends: its end event, or else its last one.
    ends: Vec<Option<EventId>>,
}

impl Domain {
    /// Compiles a recorded run.
    pub fn new(trace: &Trace) -> Result<Self, Unplannable> {
        let refuse = |event: Option<EventId>, message: &str| {
            Err(Unplannable { event, message: format!("{message}; use --engine solver") })
        };
        if !trace.metadata.observed_order {
            return refuse(None, "the planner needs a recorded order of the events");
        }
        if trace.threads.len() > MOST_PLANNER_THREADS {
            let most = format!("the planner supports at most {MOST_PLANNER_THREADS} threads");
            return refuse(None, &most);
        }
        if !trace.orders.is_empty() || !trace.atomic_sections.is_empty() {
            return refuse(None, "the planner does not support fixed orders or atomic sections");
        }
        if !foretell_trace::irregular_locks(trace).is_empty() {
            return refuse(None, "the planner does not support locks that another thread releases");
        }
        let layout = Layout::new(trace);
        let mut domain = Domain {
            steps: Vec::with_capacity(trace.events.len()),
            places: Vec::with_capacity(trace.events.len()),
            chains: trace.events_by_thread(),
            cells: Vec::new(),
            kinds: trace.objects.iter().map(|object| object.kind).collect(),
            initial_cells: vec![UNKNOWN; layout.cell_count],
            forked: vec![false; trace.threads.len()],
            ends: Vec::new(),
        };
        for (variable, description) in trace.variables.iter().enumerate() {
            if let Some(bits) = description.initial.as_ref().and_then(bits_of) {
                for (cell, value) in layout.split(VariableId::from(variable), Some(bits), 0) {
                    domain.initial_cells[cell as usize] = value;
                }
            }
        }
        let mut current = domain.initial_cells.clone();
        let mut holds = Holds::default();
        let timed_out = timed_out_waits(trace);
        for (position, event) in trace.events.iter().enumerate() {
            let id = EventId::from(position);
            let token = u64::from(id.0) + 1;
            let step = match &event.op {
                Op::Read(access) => {
                    let reads = layout.split(access.variable, access.value, token);
                    domain.access(&layout, access.variable, &mut current, reads, Vec::new())
                }
                Op::Write(access) => {
                    let writes = layout.split(access.variable, access.value, token);
                    domain.access(&layout, access.variable, &mut current, Vec::new(), writes)
                }
                Op::ReadModifyWrite(rmw) => {
                    let reads = layout.split(rmw.variable, rmw.old, token);
                    let writes = layout.split(rmw.variable, rmw.new, token);
                    domain.access(&layout, rmw.variable, &mut current, reads, writes)
                }
                Op::Fork(thread) => {
                    domain.forked[thread.index()] = true;
                    Step::Fork(thread.0)
                }
                Op::Join(thread) => Step::Join(thread.0),
                Op::ThreadBegin => Step::Begin,
                Op::ThreadEnd => Step::End,
                Op::Guarded(_) | Op::Transition(_) => {
                    return refuse(Some(id), "the planner needs concrete reads and writes");
                }
                Op::Sync(_, SyncOp::Send { .. } | SyncOp::Receive { .. } | SyncOp::Poll { .. }) => {
                    return refuse(Some(id), "the planner does not support channels");
                }
                Op::Sync(object, op)
                    if !matches!(op, SyncOp::ReleaseFailed(_) | SyncOp::Destroy) =>
                {
                    let inner = holds.step(event.thread, *object, op);
                    let timed_out = timed_out.contains(&id);
                    Step::Sync { object: *object, op: *op, inner, timed_out }
                }
                Op::Sync(..)
                | Op::Fence(_)
                | Op::Branch(_)
                | Op::Assert(_)
                | Op::RegionBegin(_)
                | Op::RegionEnd
                | Op::Call(_)
                | Op::Return
                | Op::Await(_)
                | Op::Alloc { .. }
                | Op::Free { .. }
                | Op::Input { .. } => Step::Local,
            };
            domain.steps.push(step);
            domain.places.push((event.thread.0, event.index));
        }
        let end = |chain: &Vec<EventId>| {
            let is_end = |event: &&EventId| domain.steps[event.index()] == Step::End;
            chain.iter().find(is_end).or(chain.last()).copied()
        };
        domain.ends = domain.chains.iter().map(end).collect();
        Ok(domain)
    }

    /// Records an access. A cell that is read before anything was written had that value at the
    /// start; where the trace has no value, the read wants what is there.
    fn access(
        &mut self,
        layout: &Layout,
        variable: VariableId,
        current: &mut [u64],
        mut reads: Vec<(u32, u64)>,
        writes: Vec<(u32, u64)>,
    ) -> Step {
        for (cell, value) in &mut reads {
            let now = &mut current[*cell as usize];
            if *now == UNKNOWN {
                let known = if layout.by_writer[variable.index()] { 0 } else { *value };
                (self.initial_cells[*cell as usize], *now) = (known, known);
            }
            if layout.by_writer[variable.index()] {
                *value = *now;
            }
        }
        for (cell, value) in &writes {
            current[*cell as usize] = *value;
        }
        let mut range = |cells: &[(u32, u64)]| {
            let start = self.cells.len() as u32;
            self.cells.extend_from_slice(cells);
            (start, self.cells.len() as u32)
        };
        Step::Access { reads: range(&reads), writes: range(&writes) }
    }

    /// The state before the first event.
    pub(super) fn initial(&self) -> State {
        State {
            positions: vec![0; self.chains.len()],
            cells: self.initial_cells.clone(),
            objects: self
                .kinds
                .iter()
                .map(|kind| match kind {
                    ObjectKind::Condition => ObjectState::Condition { waiting: 0, woken: 0 },
                    ObjectKind::Semaphore { initial } => ObjectState::Semaphore(*initial),
                    ObjectKind::Barrier { .. } => {
                        ObjectState::Barrier { arrived: 0, generation: 0 }
                    }
                    _ => ObjectState::Lock { holder: 0, readers: 0 },
                })
                .collect(),
            threads: self
                .forked
                .iter()
                .zip(&self.ends)
                .map(|(forked, end)| ThreadState {
                    started: !forked,
                    ended: !forked && end.is_none(),
                    arrived_in: 0,
                })
                .collect(),
        }
    }

    /// How many threads meet at the barrier.
    pub(super) fn parties(&self, barrier: u32) -> Option<u32> {
        match self.kinds[barrier as usize] {
            ObjectKind::Barrier { parties } => Some(parties),
            _ => None,
        }
    }

    /// The event with which the thread ends.
    pub(super) fn end_of(&self, thread: u32) -> Option<EventId> {
        self.ends[thread as usize]
    }

    /// What the cell holds at the start.
    pub(super) fn initially(&self, cell: u32) -> u64 {
        self.initial_cells[cell as usize]
    }

    /// Is the thread over after this event?
    pub(super) fn is_end(&self, event: EventId) -> bool {
        self.ends[self.places[event.index()].0 as usize] == Some(event)
    }

    fn range(&self, range: (u32, u32)) -> &[(u32, u64)] {
        &self.cells[range.0 as usize..range.1 as usize]
    }

    /// The cells and values that the event reads.
    pub(super) fn reads(&self, event: EventId) -> &[(u32, u64)] {
        match self.steps[event.index()] {
            Step::Access { reads, .. } => self.range(reads),
            _ => &[],
        }
    }

    /// The cells and values that the event writes.
    pub(super) fn writes(&self, event: EventId) -> &[(u32, u64)] {
        match self.steps[event.index()] {
            Step::Access { writes, .. } => self.range(writes),
            _ => &[],
        }
    }

    /// Can the event take place in the state, whatever the values in the cells?
    pub(super) fn enabled_but_for_data(&self, state: &State, event: EventId) -> bool {
        let (thread, _) = self.places[event.index()];
        let own = state.threads[thread as usize];
        own.started && !own.ended && self.synchronised(state, event)
    }

    /// Do the synchronisation objects let the event take place?
    pub(super) fn synchronised(&self, state: &State, event: EventId) -> bool {
        match self.steps[event.index()] {
            Step::Sync { object, op, inner, timed_out } => {
                let by = self.by(event, inner, timed_out);
                let mut look = Values(Look { domain: self, state, possible: true });
                transition::step(&mut look, by, object, &op).is_ok() && look.0.possible
            }
            Step::Join(child) => state.threads[child as usize].ended,
            _ => true,
        }
    }

    fn by(&self, event: EventId, inner: bool, timed_out: bool) -> By {
        let thread = ThreadId(self.places[event.index()].0);
        By { thread, inner, timed: false, timed_out }
    }

    /// The waiters that a signal may wake in this state; one `None` when there is nothing to choose.
    pub(super) fn choices(&self, state: &State, event: EventId) -> Vec<Option<u32>> {
        if let Step::Sync { object, op: SyncOp::Signal, .. } = self.steps[event.index()]
            && let ObjectState::Condition { waiting, .. } = state.objects[object.index()]
            && waiting != 0
        {
            return bits(waiting).map(Some).collect();
        }
        vec![None]
    }

    /// The event takes place, but for what it writes to cells; `woken` is the waiter that a signal
    /// wakes.
    pub(super) fn apply_but_for_data(&self, state: &mut State, event: EventId, woken: Option<u32>) {
        let (thread, index) = self.places[event.index()];
        state.positions[thread as usize] = index + 1;
        state.threads[thread as usize].ended |= self.is_end(event);
        match self.steps[event.index()] {
            Step::Sync { object, op, inner, timed_out } => {
                let by = self.by(event, inner, timed_out);
                let woken = woken.map(ThreadId);
                let mut change = Values(Change { domain: self, state, woken });
                // A step that does not fit its object is never possible.
                let _ = transition::step(&mut change, by, object, &op);
            }
            Step::Fork(child) => {
                let child = child as usize;
                state.threads[child].started = true;
                state.threads[child].ended = self.ends[child].is_none();
            }
            Step::Local | Step::End | Step::Access { .. } | Step::Begin | Step::Join(_) => {}
        }
    }

    /// The state after the recorded run's events before `cut`, coming from an earlier state of that
    /// run.
    pub(super) fn replay(&self, state: &mut State, from: EventId, cut: EventId) {
        for position in from.index()..cut.index() {
            let event = EventId::from(position);
            let woken = self.recorded_choice(state, event);
            self.apply_but_for_data(state, event, woken);
            for &(cell, value) in self.writes(event) {
                state.cells[cell as usize] = value;
            }
        }
    }

    /// The waiter that the recorded signal woke: the one of those asleep that went on first.
    fn recorded_choice(&self, state: &State, event: EventId) -> Option<u32> {
        if !matches!(self.steps[event.index()], Step::Sync { op: SyncOp::Signal, .. }) {
            return None;
        }
        let woke = |thread: u32| {
            let chain = &self.chains[thread as usize];
            chain[state.positions[thread as usize] as usize..]
                .iter()
                .find(|later| {
                    matches!(
                        self.steps[later.index()],
                        Step::Sync { op: SyncOp::WaitEnd { .. }, .. }
                    )
                })
                .copied()
        };
        let choices = self.choices(state, event).into_iter().flatten();
        choices.min_by_key(|&thread| woke(thread).map_or(u32::MAX, |at| at.0))
    }
}

/// The begins of waits that ended by their time limit.
fn timed_out_waits(trace: &Trace) -> BTreeSet<EventId> {
    let mut begun = HashMap::new();
    let mut timed_out = BTreeSet::new();
    for (position, event) in trace.events.iter().enumerate() {
        match event.op {
            Op::Sync(_, SyncOp::WaitBegin { .. }) => {
                begun.insert(event.thread, EventId::from(position));
            }
            Op::Sync(_, SyncOp::WaitEnd { timed_out: true, .. }) => {
                timed_out.extend(begun.remove(&event.thread));
            }
            _ => {}
        }
    }
    timed_out
}
