//! The variables of a CTP that do not depend on the window: memory, synchronisation objects,
//! threads.
//!
//! Memory ranges may overlap (a 4-byte write and a 1-byte read of the same place). Overlapping
//! variables are cut at every border that any of them has; each piece is a *cell*, a variable of its
//! own, and an access touches all cells in its range, lowest address first (little endian).
//!
//! Where a trace has no values (RAPID's STD), variables hold *tokens*: each write its own, so that a
//! read can demand to see the write it saw.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foretell_trace::sync::transition::Slot;
use foretell_trace::{
    EventId, LockMode, LockStep, ObjectId, ObjectKind, Op, Scope, Sort, SyncOp, ThreadId, Trace,
    Value, VariableId,
};

use crate::build::BuildError;
use crate::channel::Channels;
use crate::ctp::{CtpVariable, Role};

/// The token of the initial value; that of a write is its event's number + 1.
pub(crate) const INITIAL_TOKEN: Value = Value::Int(0);

/// The token of a write.
pub(crate) fn token(write: EventId) -> Value {
    Value::Int(i128::from(write.0) + 1)
}

/// States of a [`Role::ThreadState`] variable.
pub(crate) const NOT_STARTED: u64 = 0;
pub(crate) const RUNNING: u64 = 1;
pub(crate) const ENDED: u64 = 2;
/// Two bits hold each state of a thread and of a waiter.
pub(crate) const STATE_WIDTH: u16 = 2;

/// A piece of a variable's memory: bits `low` up to `low + width` of the variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub variable: VariableId,
    pub low: u16,
    pub width: u16,
}

/// The variables of one synchronisation object.
#[derive(Clone, Debug)]
pub(crate) enum ObjectLayout {
    Lock {
        holder: VariableId,
        readers: BTreeMap<ThreadId, VariableId>,
    },
    Semaphore(VariableId),
    /// For each thread that waits on it: not waiting (0), waiting (1), woken (2).
    Condition {
        waiters: BTreeMap<ThreadId, VariableId>,
    },
    Barrier(BarrierLayout),
    /// Where it is counted: what is in it.
    Channel(Option<VariableId>),
}

#[derive(Clone, Debug)]
pub(crate) struct BarrierLayout {
    pub arrived: VariableId,
    pub generation: VariableId,
    /// The generation in which each thread arrived last.
    pub arrived_in: BTreeMap<ThreadId, VariableId>,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Those of the trace first; `initial` is the value before the trace's first event.
    pub variables: Vec<CtpVariable>,
    /// Only for variables that overlap others.
    cells: HashMap<VariableId, Vec<Cell>>,
    /// By trace variable and cell: holds tokens.
    tokens: Vec<bool>,
    pub objects: Vec<ObjectLayout>,
    pub thread_states: Vec<VariableId>,
    pub chains: Vec<Vec<EventId>>,
    /// Condition waits that ended by their time limit, by their begin.
    pub timed_out: BTreeSet<EventId>,
    /// Begins of waits that had a time limit.
    pub timed: BTreeSet<EventId>,
    /// The end of each condition wait, by its begin.
    pub wait_end: HashMap<EventId, EventId>,
    /// Locks held before the first event: a release comes without an acquire.
    pub held: Vec<(ThreadId, ObjectId, LockMode)>,
    pub channels: Channels,
}

/// The fewest bits that hold the numbers up to `max`.
pub(crate) fn width_for(max: u64) -> u16 {
    (64 - max.leading_zeros()).max(1) as u16
}

impl Layout {
    pub fn new(trace: &Trace) -> Result<Self, BuildError> {
        let mut layout = Self {
            variables: trace
                .variables
                .iter()
                .map(|variable| CtpVariable {
                    name: variable.name.clone(),
                    sort: variable.sort,
                    scope: variable.scope,
                    initial: variable.initial.clone(),
                    role: Role::Data,
                })
                .collect(),
            cells: HashMap::new(),
            tokens: Vec::new(),
            objects: Vec::new(),
            thread_states: Vec::new(),
            chains: trace.events_by_thread(),
            timed_out: BTreeSet::new(),
            timed: BTreeSet::new(),
            wait_end: HashMap::new(),
            held: Vec::new(),
            channels: Channels::new(trace),
        };
        layout.find_tokens(trace);
        layout.cut_into_cells(trace)?;
        layout.find_initial_values(trace);
        let usage = layout.scan(trace)?;
        layout.add_objects(trace, &usage)?;
        layout.add_threads(trace, &usage);
        Ok(layout)
    }

    /// The pieces of a variable: itself, when it overlaps no other.
    pub fn cells(&self, variable: VariableId) -> Vec<Cell> {
        match self.cells.get(&variable) {
            Some(cells) => cells.clone(),
            None => {
                let width = self.variables[variable.index()].sort.width().unwrap_or(0);
                vec![Cell { variable, low: 0, width }]
            }
        }
    }

    /// The variable that holds a part of an object's state.
    pub fn slot(&self, slot: Slot) -> Option<VariableId> {
        let layout = |object: ObjectId| &self.objects[object.index()];
        match slot {
            Slot::Holder(object) => match layout(object) {
                ObjectLayout::Lock { holder, .. } => Some(*holder),
                _ => None,
            },
            Slot::Reader(object, thread) => match layout(object) {
                ObjectLayout::Lock { readers, .. } => readers.get(&thread).copied(),
                _ => None,
            },
            Slot::Waiter(object, thread) => match layout(object) {
                ObjectLayout::Condition { waiters } => waiters.get(&thread).copied(),
                _ => None,
            },
            Slot::Count(object) => match *layout(object) {
                ObjectLayout::Semaphore(count) => Some(count),
                ObjectLayout::Channel(count) => count,
                _ => None,
            },
            Slot::Arrived(object) => self.barrier(object).map(|barrier| barrier.arrived),
            Slot::Generation(object) => self.barrier(object).map(|barrier| barrier.generation),
            Slot::ArrivedIn(object, thread) => {
                self.barrier(object)?.arrived_in.get(&thread).copied()
            }
        }
    }

    fn barrier(&self, object: ObjectId) -> Option<&BarrierLayout> {
        match &self.objects[object.index()] {
            ObjectLayout::Barrier(barrier) => Some(barrier),
            _ => None,
        }
    }

    /// Of a lock that other threads give back, and of a channel that is not counted, only the order of the
    /// steps counts.
    pub fn has_state(&self, object: ObjectId) -> bool {
        !self.channels.irregular.contains(&object)
            && !matches!(self.objects[object.index()], ObjectLayout::Channel(None))
    }

    /// The readers of a lock, the waiters of a condition.
    pub fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        match &self.objects[object.index()] {
            ObjectLayout::Lock { readers: threads, .. }
            | ObjectLayout::Condition { waiters: threads } => threads.keys().copied().collect(),
            _ => Vec::new(),
        }
    }

    pub fn is_split(&self, variable: VariableId) -> bool {
        self.cells.contains_key(&variable)
    }

    pub fn holds_tokens(&self, variable: VariableId) -> bool {
        self.tokens.get(variable.index()).copied().unwrap_or(false)
    }

    fn add(
        &mut self,
        name: String,
        sort: Sort,
        scope: Scope,
        initial: Option<Value>,
        role: Role,
    ) -> VariableId {
        self.variables.push(CtpVariable { name: name.into(), sort, scope, initial, role });
        VariableId::from(self.variables.len() - 1)
    }

    fn find_tokens(&mut self, trace: &Trace) {
        self.tokens = vec![false; trace.variables.len()];
        if trace.metadata.symbolic {
            return;
        }
        for event in &trace.events {
            match &event.op {
                Op::Read(access) | Op::Write(access) if access.value.is_none() => {
                    self.tokens[access.variable.index()] = true;
                }
                Op::ReadModifyWrite(step) if step.old.is_none() || step.new.is_none() => {
                    self.tokens[step.variable.index()] = true;
                }
                _ => {}
            }
        }
    }

    fn cut_into_cells(&mut self, trace: &Trace) -> Result<(), BuildError> {
        let mut ranges: Vec<(u32, u64, u64, VariableId)> = trace
            .variables
            .iter()
            .enumerate()
            .filter_map(|(index, variable)| {
                let memory = variable.memory?;
                let end = memory.address.checked_add(u64::from(memory.size))?;
                Some((memory.generation, memory.address, end, VariableId::from(index)))
            })
            .collect();
        ranges.sort_unstable();
        let mut group: Vec<(u64, u64, VariableId)> = Vec::new();
        let mut border = (0, 0);
        for (generation, start, end, variable) in ranges {
            if !(group.is_empty() || generation == border.0 && start < border.1) {
                self.cut_group(trace, &group)?;
                group.clear();
            }
            border = match group.is_empty() {
                true => (generation, end),
                false => (generation, border.1.max(end)),
            };
            group.push((start, end, variable));
        }
        self.cut_group(trace, &group)?;
        for (index, tokens) in self.tokens.clone().into_iter().enumerate() {
            if tokens && !self.is_split(VariableId::from(index)) {
                self.variables[index].sort = Sort::INT;
                self.variables[index].initial = Some(INITIAL_TOKEN);
            }
        }
        Ok(())
    }

    fn cut_group(
        &mut self,
        trace: &Trace,
        group: &[(u64, u64, VariableId)],
    ) -> Result<(), BuildError> {
        if group.len() < 2 {
            return Ok(());
        }
        let tokens = group.iter().any(|&(.., variable)| self.holds_tokens(variable));
        let borders: BTreeSet<u64> =
            group.iter().flat_map(|&(start, end, _)| [start, end]).collect();
        let borders: Vec<u64> = borders.into_iter().collect();
        let mut cell_at = BTreeMap::new();
        for pair in borders.windows(2) {
            let bits = u16::try_from(8 * (pair[1] - pair[0])).unwrap_or(u16::MAX);
            let Some(&(start, _, owner)) =
                group.iter().find(|&&(start, end, _)| start <= pair[0] && pair[1] <= end)
            else {
                continue;
            };
            let name = format!("{}+{}", trace.variables[owner.index()].name, pair[0] - start);
            let (sort, initial) = match tokens {
                true => (Sort::INT, Some(INITIAL_TOKEN)),
                false => (Sort::bit_vec(bits), None),
            };
            let cell = self.add(name, sort, Scope::Shared, initial, Role::Data);
            self.tokens.resize(self.variables.len(), false);
            self.tokens[cell.index()] = tokens;
            cell_at.insert(pair[0], (cell, bits));
        }
        for &(start, end, variable) in group {
            let described = &trace.variables[variable.index()];
            let bits = u16::try_from(8 * (end - start)).unwrap_or(u16::MAX);
            if !tokens && described.sort.width() != Some(bits) {
                return Err(BuildError::Overlap { variable: described.name.clone() });
            }
            let cells: Vec<Cell> = cell_at
                .range(start..end)
                .map(|(&at, &(cell, width))| Cell {
                    variable: cell,
                    low: (8 * (at - start)) as u16,
                    width,
                })
                .collect();
            if let (false, Some(Value::BitVec { bits, .. })) = (tokens, &described.initial) {
                for cell in &cells {
                    self.variables[cell.variable.index()].initial =
                        Some(Value::bit_vec(cell.width, bits >> cell.low));
                }
            }
            self.tokens[variable.index()] = tokens;
            self.cells.insert(variable, cells);
        }
        Ok(())
    }

    /// In an observed run, the first access gives the initial value if it is a read.
    fn find_initial_values(&mut self, trace: &Trace) {
        if !trace.metadata.observed_order {
            return;
        }
        let mut known: Vec<bool> =
            self.variables.iter().map(|variable| variable.initial.is_some()).collect();
        let mut see = |layout: &mut Self, variable: VariableId, read: Option<u64>| {
            for cell in layout.cells(variable) {
                let index = cell.variable.index();
                if !known[index] {
                    known[index] = true;
                    let sort = layout.variables[index].sort;
                    layout.variables[index].initial =
                        read.and_then(|bits| Value::from_bits(sort, bits >> cell.low));
                }
            }
        };
        for event in &trace.events {
            match &event.op {
                Op::Read(access) => see(self, access.variable, access.value),
                Op::Write(access) => see(self, access.variable, None),
                Op::ReadModifyWrite(step) => see(self, step.variable, step.old),
                Op::Guarded(step) => {
                    for &(variable, _) in &step.assignments {
                        see(self, variable, None);
                    }
                }
                Op::Transition(step) => {
                    for &variable in &step.changed {
                        see(self, variable, None);
                    }
                }
                _ => {}
            }
        }
    }

    fn scan(&mut self, trace: &Trace) -> Result<Usage, BuildError> {
        let mut usage = Usage {
            posts: vec![0; trace.objects.len()],
            arrivals: vec![0; trace.objects.len()],
            threads_at: vec![BTreeSet::new(); trace.objects.len()],
            forked: BTreeSet::new(),
        };
        let mut depth: HashMap<(ThreadId, ObjectId, LockMode), u32> = HashMap::new();
        let mut waiting: HashMap<ThreadId, (EventId, ObjectId)> = HashMap::new();
        let mut take = |layout: &mut Self, event, thread, lock, mode, acquire: bool| {
            if layout.channels.irregular.contains(&lock) {
                return Ok(());
            }
            let depth = depth.entry((thread, lock, mode)).or_insert(0);
            match (acquire, *depth) {
                (true, _) => *depth += 1,
                (false, 0) => {
                    let exclusive = mode == LockMode::Exclusive;
                    let clash = layout.held.iter().any(|&(_, other, other_mode)| {
                        other == lock && (exclusive || other_mode == LockMode::Exclusive)
                    });
                    if clash {
                        return Err(BuildError::ReleaseWithoutAcquire { event });
                    }
                    layout.held.push((thread, lock, mode));
                }
                (false, _) => *depth -= 1,
            }
            Ok(())
        };
        for (position, event) in trace.events.iter().enumerate() {
            let id = EventId::from(position);
            let thread = event.thread;
            match &event.op {
                Op::Fork(child) => {
                    usage.forked.insert(*child);
                }
                Op::Sync(lock, SyncOp::Acquire(LockStep { mode, .. })) => {
                    take(self, id, thread, *lock, *mode, true)?;
                    if *mode == LockMode::Shared {
                        usage.threads_at[lock.index()].insert(thread);
                    }
                }
                Op::Sync(lock, SyncOp::Release(LockStep { mode, .. })) => {
                    take(self, id, thread, *lock, *mode, false)?;
                    if *mode == LockMode::Shared {
                        usage.threads_at[lock.index()].insert(thread);
                    }
                }
                Op::Sync(condition, SyncOp::WaitBegin { mutex }) => {
                    take(self, id, thread, *mutex, LockMode::Exclusive, false)?;
                    waiting.insert(thread, (id, *condition));
                }
                Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out, timed }) => {
                    take(self, id, thread, *mutex, LockMode::Exclusive, true)?;
                    if *timed || !timed_out {
                        usage.threads_at[condition.index()].insert(thread);
                    }
                    if let Some((begin, _)) = waiting.remove(&thread) {
                        self.wait_end.insert(begin, id);
                        if *timed {
                            self.timed.insert(begin);
                        }
                        if *timed_out {
                            self.timed_out.insert(begin);
                        }
                    }
                }
                Op::Sync(semaphore, SyncOp::SemaphorePost) => usage.posts[semaphore.index()] += 1,
                Op::Sync(barrier, SyncOp::BarrierArrive) => {
                    usage.arrivals[barrier.index()] += 1;
                    usage.threads_at[barrier.index()].insert(thread);
                }
                Op::Sync(barrier, SyncOp::BarrierLeave) => {
                    usage.threads_at[barrier.index()].insert(thread);
                }
                _ => {}
            }
        }
        for (thread, (_, condition)) in waiting {
            usage.threads_at[condition.index()].insert(thread);
        }
        Ok(usage)
    }

    fn add_objects(&mut self, trace: &Trace, usage: &Usage) -> Result<(), BuildError> {
        let holder_width = width_for(trace.threads.len() as u64);
        for (index, object) in trace.objects.iter().enumerate() {
            let id = ObjectId::from(index);
            let name = &object.name;
            let threads = &usage.threads_at[index];
            let layout = match object.kind {
                ObjectKind::Mutex
                | ObjectKind::RecursiveMutex
                | ObjectKind::ErrorCheckingMutex
                | ObjectKind::ReaderWriterLock => {
                    let held_by = |mode| {
                        let held = self.held.iter();
                        held.filter(move |held| held.1 == id && held.2 == mode).map(|held| held.0)
                    };
                    let holder = held_by(LockMode::Exclusive).next();
                    let first_readers: BTreeSet<ThreadId> = held_by(LockMode::Shared).collect();
                    let holder = holder.map_or(0, |thread| u64::from(thread.0) + 1);
                    let holder = self.add(
                        name.to_string(),
                        Sort::bit_vec(holder_width),
                        Scope::Shared,
                        Some(Value::bit_vec(holder_width, holder)),
                        Role::Lock(id),
                    );
                    let readers = threads
                        .iter()
                        .map(|&thread| {
                            let variable = self.add(
                                format!("{name}:reader:{}", trace.threads[thread.index()].name),
                                Sort::BOOL,
                                Scope::Shared,
                                Some(Value::Bool(first_readers.contains(&thread))),
                                Role::Reader(id, thread),
                            );
                            (thread, variable)
                        })
                        .collect();
                    ObjectLayout::Lock { holder, readers }
                }
                ObjectKind::Semaphore { initial } => {
                    let initial = u64::from(initial);
                    let width = width_for(initial + usage.posts[index]);
                    let count = self.add(
                        name.to_string(),
                        Sort::bit_vec(width),
                        Scope::Shared,
                        Some(Value::bit_vec(width, initial)),
                        Role::Synchronisation(id),
                    );
                    ObjectLayout::Semaphore(count)
                }
                ObjectKind::Condition => {
                    let waiters = threads
                        .iter()
                        .map(|&thread| {
                            let variable = self.add(
                                format!("{name}:waiter:{}", trace.threads[thread.index()].name),
                                Sort::bit_vec(STATE_WIDTH),
                                Scope::Shared,
                                Some(Value::bit_vec(STATE_WIDTH, 0)),
                                Role::Synchronisation(id),
                            );
                            (thread, variable)
                        })
                        .collect();
                    ObjectLayout::Condition { waiters }
                }
                ObjectKind::Barrier { parties } => {
                    if parties == 0 {
                        return Err(BuildError::EmptyBarrier { object: name.clone() });
                    }
                    let parties = u64::from(parties);
                    let arrived_width = width_for(parties);
                    let generation_width = width_for(usage.arrivals[index] / parties);
                    let mut counter = |part: &str, width, scope| {
                        self.add(
                            format!("{name}:{part}"),
                            Sort::bit_vec(width),
                            scope,
                            Some(Value::bit_vec(width, 0)),
                            Role::Synchronisation(id),
                        )
                    };
                    let arrived = counter("arrived", arrived_width, Scope::Shared);
                    let generation = counter("generation", generation_width, Scope::Shared);
                    let arrived_in = threads
                        .iter()
                        .map(|&thread| {
                            let part = format!("in:{}", trace.threads[thread.index()].name);
                            (thread, counter(&part, generation_width, Scope::Local(thread)))
                        })
                        .collect();
                    ObjectLayout::Barrier(BarrierLayout { arrived, generation, arrived_in })
                }
                ObjectKind::Channel(_) => {
                    let counted = self.channels.counted[index].map(|total| {
                        let width = width_for(total);
                        self.add(
                            name.to_string(),
                            Sort::bit_vec(width),
                            Scope::Shared,
                            Some(Value::bit_vec(width, 0)),
                            Role::Synchronisation(id),
                        )
                    });
                    ObjectLayout::Channel(counted)
                }
            };
            self.objects.push(layout);
        }
        Ok(())
    }

    fn add_threads(&mut self, trace: &Trace, usage: &Usage) {
        for (index, thread) in trace.threads.iter().enumerate() {
            let id = ThreadId::from(index);
            let state = if usage.forked.contains(&id) { NOT_STARTED } else { RUNNING };
            let variable = self.add(
                format!("thread:{}", thread.name),
                Sort::bit_vec(STATE_WIDTH),
                Scope::Shared,
                Some(Value::bit_vec(STATE_WIDTH, state)),
                Role::ThreadState(id),
            );
            self.thread_states.push(variable);
        }
    }
}

/// How a trace uses its objects.
struct Usage {
    posts: Vec<u64>,
    arrivals: Vec<u64>,
    /// Readers of a lock, waiters of a condition, threads that meet at a barrier.
    threads_at: Vec<BTreeSet<ThreadId>>,
    forked: BTreeSet<ThreadId>,
}
