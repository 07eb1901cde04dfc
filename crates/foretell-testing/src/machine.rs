//! Random small traces for differential tests.
//!
//! A trace is made by running: a machine with plain memory and plain synchronisation objects takes
//! random steps that are possible where it stands and records them. So the recorded order is
//! feasible by construction, and the machine is a second, independent telling of what
//! [`foretell_model::build`] models.

mod shrink;

use std::collections::{BTreeMap, BTreeSet};

use foretell_trace::{
    ChannelKind, Condition, EventId, Guarded, Indexer, LockMode, LockStep, MemoryOrder,
    MemoryRange, ObjectId, ObjectKind, Op, Operator, ReadModifyWrite, Scope, Sort, SyncOp, TermId,
    ThreadId, Trace, Transition, Value, Variable, VariableId,
};

use crate::random::Random;
pub use shrink::shrink;
use shrink::{access, strip};

/// The longest trace that [`random_trace`] makes.
pub const MAX_EVENTS: usize = 14;

/// A trace of 2 to 4 threads and up to [`MAX_EVENTS`] events that really ran.
///
/// Uses mutexes of all kinds, reader-writer locks, semaphores, conditions, barriers, channels, fork and
/// join, overlapping memory, atomic read-modify-writes, guarded assignments, transition predicates,
/// branches and assertions; with terms, with values only, or with neither.
pub fn random_trace(seed: u64) -> Trace {
    let mut machine = Machine::new(seed);
    let events = 4 + machine.random.below(MAX_EVENTS - 3);
    for _ in 0..40 * events {
        if machine.trace.events.len() >= events {
            break;
        }
        machine.try_step();
    }
    match machine.trace.events.is_empty() {
        // No step was possible: a trace without events is no test.
        true => random_trace(seed ^ 0x5bd1_e995_0000_0000),
        false => machine.finish(),
    }
}

const VALUE: Sort = Sort::bit_vec(8);

/// What a thread of the machine does when it is not free to take any step.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    NotStarted,
    Running,
    Waiting { timed: bool },
    Woken,
    AtBarrier { generation: u64 },
    Ended,
}

struct Machine {
    random: Random,
    trace: Trace,
    indexer: Indexer,
    moods: Vec<Mood>,
    /// Reads of each thread so far: their term and their value.
    reads: Vec<Vec<(TermId, u64)>>,
    plain: Vec<VariableId>,
    overlapping: Vec<VariableId>,
    flag: VariableId,
    flag_value: bool,
    memory: BTreeMap<u64, u8>,
    values: BTreeMap<VariableId, u64>,
    mutex: ObjectId,
    mutex_kind: ObjectKind,
    rwlock: ObjectId,
    semaphore: ObjectId,
    condition: ObjectId,
    barrier: ObjectId,
    queue: ObjectId,
    /// What is in the queue, and what is sent: always the same, or not.
    queued: u64,
    alike: bool,
    holder: Option<usize>,
    depth: u32,
    writer: Option<usize>,
    readers: BTreeSet<usize>,
    count: u32,
    arrived: u64,
    generation: u64,
    forked: Vec<bool>,
    joined: Vec<bool>,
    with_begin_and_end: bool,
    /// The kinds of steps that this trace is about.
    palette: Vec<usize>,
}

/// How many kinds of steps [`Machine::try_step`] knows.
const KINDS: usize = 19;

const PARTIES: u32 = 2;

impl Machine {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut trace = Trace::new();
        let threads = 2 + random.below(3);
        for thread in 0..threads {
            let path = if thread == 0 { vec![] } else { vec![thread as u32 - 1] };
            trace.add_thread(&format!("T{thread}"), path);
        }
        let variable = |name: &str, memory: Option<MemoryRange>, sort| Variable {
            name: name.into(),
            sort,
            scope: Scope::Shared,
            memory,
            initial: Some(Value::zero(sort)),
        };
        let place = |address, size| Some(MemoryRange { address, size, generation: 0 });
        let x = trace.add_variable(variable("x", None, VALUE));
        let y = trace.add_variable(variable("y", None, VALUE));
        let word = trace.add_variable(variable("word", place(16, 2), Sort::bit_vec(16)));
        let byte = trace.add_variable(variable("byte", place(17, 1), VALUE));
        let flag = trace.add_variable(variable("flag", None, Sort::BOOL));
        let mut flag_value = false;
        if random.one_in(2) {
            trace.variables[flag.index()].initial = None; // a free input
            flag_value = random.one_in(2);
        }
        let mutex_kind = [
            ObjectKind::Mutex,
            ObjectKind::RecursiveMutex,
            ObjectKind::ErrorCheckingMutex,
            ObjectKind::Mutex,
        ][random.below(4)];
        let mutex = trace.add_object("m", mutex_kind);
        let rwlock = trace.add_object("rw", ObjectKind::ReaderWriterLock);
        let count = random.below(3) as u32;
        let semaphore = trace.add_object("s", ObjectKind::Semaphore { initial: count });
        let condition = trace.add_object("c", ObjectKind::Condition);
        let barrier = trace.add_object("b", ObjectKind::Barrier { parties: PARTIES });
        let queue = trace.add_object("q", ObjectKind::Channel(ChannelKind::Queue));
        trace.metadata.observed_order = true;
        trace.metadata.symbolic = !random.one_in(4);
        let forks = random.one_in(3);
        let forked: Vec<bool> = (0..threads).map(|thread| forks && thread > 0).collect();
        let first = |&forked: &bool| if forked { Mood::NotStarted } else { Mood::Running };
        // Few kinds of steps in one trace make it likelier that they meet.
        let palette = (0..4 + random.below(5)).map(|_| random.below(KINDS)).collect();
        Self {
            moods: forked.iter().map(first).collect(),
            reads: vec![Vec::new(); threads],
            plain: vec![x, y],
            overlapping: vec![word, byte],
            flag,
            flag_value,
            memory: BTreeMap::new(),
            values: BTreeMap::new(),
            mutex,
            mutex_kind,
            rwlock,
            semaphore,
            condition,
            barrier,
            queue,
            queued: 0,
            alike: random.one_in(2),
            holder: None,
            depth: 0,
            writer: None,
            readers: BTreeSet::new(),
            count,
            arrived: 0,
            generation: 0,
            joined: vec![false; threads],
            forked,
            with_begin_and_end: random.one_in(2),
            palette,
            indexer: Indexer::default(),
            random,
            trace,
        }
    }

    fn push(&mut self, thread: usize, op: Op) -> EventId {
        let event = self.indexer.event(ThreadId::from(thread), None, op);
        self.trace.push(event)
    }

    fn next_index(&self, thread: usize) -> u32 {
        let of_thread = |event: &&foretell_trace::Event| event.thread.index() == thread;
        self.trace.events.iter().filter(of_thread).count() as u32
    }

    fn load(&self, variable: VariableId) -> u64 {
        match self.trace.variables[variable.index()].memory {
            None => self.values.get(&variable).copied().unwrap_or(0),
            Some(range) => (0..u64::from(range.size))
                .map(|offset| {
                    let byte = self.memory.get(&(range.address + offset)).copied().unwrap_or(0);
                    u64::from(byte) << (8 * offset)
                })
                .sum(),
        }
    }

    fn store(&mut self, variable: VariableId, value: u64) {
        match self.trace.variables[variable.index()].memory {
            None => {
                self.values.insert(variable, value);
            }
            Some(range) => {
                for offset in 0..u64::from(range.size) {
                    self.memory.insert(range.address + offset, (value >> (8 * offset)) as u8);
                }
            }
        }
    }

    /// An expression over the thread's reads, and its value.
    fn expression(&mut self, thread: usize, sort: Sort) -> (TermId, u64) {
        let width = sort.width().expect("only bit-vectors");
        let constant = self.random.below(4) as u64;
        let terms = &mut self.trace.terms;
        let constant_term = terms.bit_vec(width, constant);
        let fitting: Vec<(TermId, u64)> = self.reads[thread]
            .iter()
            .copied()
            .filter(|&(term, _)| terms.sort(term) == sort)
            .collect();
        if fitting.is_empty() || self.random.one_in(3) {
            return (constant_term, constant);
        }
        let (read, value) = fitting[self.random.below(fitting.len())];
        let (other, other_value) = fitting[self.random.below(fitting.len())];
        let mask = u64::MAX >> (64 - width);
        match self.random.below(3) {
            0 => (terms.build(Operator::BvAdd, &[read, constant_term]), (value + constant) & mask),
            1 => (terms.build(Operator::BvAdd, &[read, other]), (value + other_value) & mask),
            _ => (read, value),
        }
    }

    /// A comparison of an expression with a constant, and whether it holds.
    fn comparison(&mut self, thread: usize) -> (TermId, bool) {
        let (term, value) = self.expression(thread, VALUE);
        let constant = self.random.below(4) as u64;
        let terms = &mut self.trace.terms;
        let right = terms.bit_vec(8, constant);
        match self.random.below(2) {
            0 => (terms.eq(term, right), value == constant),
            _ => (terms.build(Operator::BvUlt, &[term, right]), value < constant),
        }
    }

    fn some_variable(&mut self) -> VariableId {
        let pool = if self.random.one_in(4) { &self.overlapping } else { &self.plain };
        pool[self.random.below(pool.len())]
    }

    /// A random step of a random thread, if it is possible.
    fn try_step(&mut self) {
        let thread = self.random.below(self.moods.len());
        match self.moods[thread] {
            Mood::Ended => return,
            Mood::NotStarted if self.moods[0] != Mood::Running => return,
            Mood::NotStarted => {
                self.push(0, Op::Fork(ThreadId::from(thread)));
                self.moods[thread] = Mood::Running;
                if self.with_begin_and_end {
                    self.push(thread, Op::ThreadBegin);
                }
                return;
            }
            Mood::Waiting { timed: false } => return,
            Mood::Waiting { timed: true } | Mood::Woken => {
                if self.holder.is_none() {
                    let timed_out = self.moods[thread] != Mood::Woken;
                    let (condition, mutex) = (self.condition, self.mutex);
                    // Whoever gave up has given up when it began to wait.
                    let timed = timed_out || self.random.one_in(2);
                    self.push(
                        thread,
                        Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out, timed }),
                    );
                    self.holder = Some(thread);
                    self.depth = 1;
                    self.moods[thread] = Mood::Running;
                }
                return;
            }
            Mood::AtBarrier { generation } => {
                if self.generation > generation {
                    self.push(thread, Op::Sync(self.barrier, SyncOp::BarrierLeave));
                    self.moods[thread] = Mood::Running;
                }
                return;
            }
            Mood::Running => {}
        }
        let kind = self.palette[self.random.below(self.palette.len())];
        match kind {
            0 | 1 => self.read(thread),
            2 | 3 => self.write(thread),
            4 => self.read_modify_write(thread),
            5 => {
                let (term, outcome) = self.comparison(thread);
                self.push(thread, Op::Branch(Condition { term: Some(term), outcome }));
            }
            6 => {
                let (term, outcome) = self.comparison(thread);
                self.push(thread, Op::Assert(Condition { term: Some(term), outcome }));
            }
            7 | 8 => self.mutex(thread),
            9 => self.rwlock(thread),
            10 | 11 => self.semaphore(thread),
            12 | 13 => self.condition(thread),
            14 => {
                self.push(thread, Op::Sync(self.barrier, SyncOp::BarrierArrive));
                self.moods[thread] = Mood::AtBarrier { generation: self.generation };
                self.arrived += 1;
                if self.arrived == u64::from(PARTIES) {
                    self.arrived = 0;
                    self.generation += 1;
                }
            }
            18 => self.queue(thread),
            15 => self.guarded(thread),
            16 => self.transition(thread),
            _ => self.end_or_join(thread),
        }
    }

    fn read(&mut self, thread: usize) {
        let variable = self.some_variable();
        let value = self.load(variable);
        let index = self.next_index(thread);
        let sort = self.trace.variables[variable.index()].sort;
        let term = self.trace.terms.read_value(ThreadId::from(thread), index, sort);
        self.reads[thread].push((term, value));
        self.push(thread, Op::Read(access(variable, value, None)));
    }

    fn write(&mut self, thread: usize) {
        let variable = self.some_variable();
        let sort = self.trace.variables[variable.index()].sort;
        let (term, value) = self.expression(thread, sort);
        self.store(variable, value);
        let term = (!self.trace.terms.leaves(term).is_empty()).then_some(term);
        self.push(thread, Op::Write(access(variable, value, term)));
    }

    fn read_modify_write(&mut self, thread: usize) {
        let variable = self.some_variable();
        let old = self.load(variable);
        let sort = self.trace.variables[variable.index()].sort;
        let width = sort.width().expect("only bit-vectors");
        let index = self.next_index(thread);
        let result = self.trace.terms.read_value(ThreadId::from(thread), index, sort);
        let one = self.trace.terms.bit_vec(width, 1);
        let term = self.trace.terms.build(Operator::BvAdd, &[result, one]);
        let new = (old + 1) & (u64::MAX >> (64 - width));
        self.store(variable, new);
        self.reads[thread].push((result, old));
        let step = ReadModifyWrite {
            variable,
            old: Some(old),
            new: Some(new),
            term: Some(term),
            address: None,
            order: MemoryOrder::SequentiallyConsistent,
        };
        self.push(thread, Op::ReadModifyWrite(Box::new(step)));
    }

    fn mutex(&mut self, thread: usize) {
        let step = |by_try| LockStep { mode: LockMode::Exclusive, by_try };
        let op = match self.holder {
            None => {
                self.holder = Some(thread);
                self.depth = 1;
                Op::Sync(self.mutex, SyncOp::Acquire(step(self.random.one_in(2))))
            }
            Some(holder) if holder != thread => {
                Op::Sync(self.mutex, SyncOp::AcquireFailed(step(true)))
            }
            Some(_) if self.random.one_in(2) => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.holder = None;
                }
                Op::Sync(self.mutex, SyncOp::Release(step(false)))
            }
            Some(_) => match self.mutex_kind {
                ObjectKind::RecursiveMutex => {
                    self.depth += 1;
                    Op::Sync(self.mutex, SyncOp::Acquire(step(false)))
                }
                ObjectKind::ErrorCheckingMutex => {
                    Op::Sync(self.mutex, SyncOp::AcquireFailed(step(false)))
                }
                _ => Op::Sync(self.mutex, SyncOp::AcquireFailed(step(true))),
            },
        };
        self.push(thread, op);
    }

    fn rwlock(&mut self, thread: usize) {
        let mode = [LockMode::Exclusive, LockMode::Shared][self.random.below(2)];
        let step = |mode, by_try| LockStep { mode, by_try };
        let op = if self.writer == Some(thread) {
            self.writer = None;
            Op::Sync(self.rwlock, SyncOp::Release(step(LockMode::Exclusive, false)))
        } else if self.readers.contains(&thread) {
            self.readers.remove(&thread);
            Op::Sync(self.rwlock, SyncOp::Release(step(LockMode::Shared, false)))
        } else if self.writer.is_some() {
            Op::Sync(self.rwlock, SyncOp::AcquireFailed(step(mode, true)))
        } else if mode == LockMode::Shared {
            self.readers.insert(thread);
            Op::Sync(self.rwlock, SyncOp::Acquire(step(mode, false)))
        } else if self.readers.is_empty() {
            self.writer = Some(thread);
            Op::Sync(self.rwlock, SyncOp::Acquire(step(mode, false)))
        } else {
            Op::Sync(self.rwlock, SyncOp::AcquireFailed(step(mode, true)))
        };
        self.push(thread, op);
    }

    fn semaphore(&mut self, thread: usize) {
        let op = if self.random.one_in(2) {
            self.count += 1;
            Op::Sync(self.semaphore, SyncOp::SemaphorePost)
        } else if self.count > 0 {
            self.count -= 1;
            Op::Sync(self.semaphore, SyncOp::SemaphoreWait { by_try: self.random.one_in(2) })
        } else {
            Op::Sync(self.semaphore, SyncOp::SemaphoreWaitFailed)
        };
        self.push(thread, op);
    }

    fn queue(&mut self, thread: usize) {
        let channel = self.queue;
        let op = if self.random.one_in(2) {
            let amount = 1 + self.random.below(2) as u64;
            let content = if self.alike { 0 } else { 1 + self.random.below(2) as u64 };
            self.queued += amount;
            Op::Sync(channel, SyncOp::Send { amount, content })
        } else if self.queued == 0 || self.random.one_in(4) {
            Op::Sync(channel, SyncOp::Poll { ready: self.queued > 0 })
        } else {
            let amount = 1 + self.random.below(self.queued as usize) as u64;
            self.queued -= amount;
            let drained = self.queued == 0 && self.random.one_in(2);
            Op::Sync(channel, SyncOp::Receive { amount, drained, by_try: self.random.one_in(4) })
        };
        self.push(thread, op);
    }

    fn condition(&mut self, thread: usize) {
        let (condition, mutex) = (self.condition, self.mutex);
        if self.holder == Some(thread) && self.depth == 1 && self.random.one_in(2) {
            self.push(thread, Op::Sync(condition, SyncOp::WaitBegin { mutex }));
            self.holder = None;
            self.depth = 0;
            self.moods[thread] = Mood::Waiting { timed: self.random.one_in(5) };
            return;
        }
        if self.holder.is_none() && self.random.one_in(3) {
            self.mutex(thread); // without the mutex nobody would ever wait
            return;
        }
        let asleep = |mood: &Mood| *mood == Mood::Waiting { timed: false };
        let sleepers: Vec<usize> =
            (0..self.moods.len()).filter(|&other| asleep(&self.moods[other])).collect();
        if self.random.one_in(3) {
            self.push(thread, Op::Sync(condition, SyncOp::Broadcast));
            for sleeper in sleepers {
                self.moods[sleeper] = Mood::Woken;
            }
        } else {
            self.push(thread, Op::Sync(condition, SyncOp::Signal));
            if !sleepers.is_empty() {
                let woken = sleepers[self.random.below(sleepers.len())];
                self.moods[woken] = Mood::Woken;
            }
        }
    }

    /// `if x < c (and y = d) { x := x + 1, y := x }` in one step.
    fn guarded(&mut self, thread: usize) {
        if !self.trace.metadata.symbolic {
            return; // such events have terms by nature
        }
        let (x, y) = (self.plain[0], self.plain[1]);
        let (x_value, y_value) = (self.load(x), self.load(y));
        let terms = &mut self.trace.terms;
        let (x_term, y_term) = (terms.variable(x, VALUE), terms.variable(y, VALUE));
        let limit = terms.bit_vec(8, x_value + self.random.below(3) as u64);
        let mut guard = vec![terms.build(Operator::BvUle, &[x_term, limit])];
        if self.random.one_in(2) {
            let seen = terms.bit_vec(8, y_value);
            guard.push(terms.eq(y_term, seen));
        }
        let guard = terms.and(&guard);
        let one = terms.bit_vec(8, 1);
        let more = terms.build(Operator::BvAdd, &[x_term, one]);
        let assignments = vec![(x, more), (y, x_term)];
        self.store(x, (x_value + 1) & 0xff);
        self.store(y, x_value);
        self.push(thread, Op::Guarded(Box::new(Guarded { guard, assignments })));
    }

    /// `flag or flag'`: one of the two values is true.
    fn transition(&mut self, thread: usize) {
        if !self.trace.metadata.symbolic {
            return;
        }
        let terms = &mut self.trace.terms;
        let before = terms.variable(self.flag, Sort::BOOL);
        let after = terms.primed(self.flag, Sort::BOOL);
        let predicate = terms.or(&[before, after]);
        self.flag_value = !self.flag_value || self.random.one_in(2);
        let changed = vec![self.flag];
        self.push(thread, Op::Transition(Box::new(Transition { predicate, changed })));
    }

    fn end_or_join(&mut self, thread: usize) {
        let ended = (0..self.moods.len())
            .find(|&other| self.forked[other] && self.moods[other] == Mood::Ended);
        match ended {
            Some(child) if !self.joined[child] && child != thread => {
                self.joined[child] = true;
                self.push(thread, Op::Join(ThreadId::from(child)));
            }
            _ if self.forked[thread] => {
                self.moods[thread] = Mood::Ended;
                if self.with_begin_and_end {
                    self.push(thread, Op::ThreadEnd);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Trace {
        let events = self.trace.events.len();
        if self.random.one_in(4) && events > 2 {
            let first = self.random.below(events - 1);
            let second = first + 1 + self.random.below(events - first - 1);
            self.trace.orders.push((EventId::from(first), EventId::from(second)));
        }
        let thread = |position: usize| self.trace.events[position].thread;
        let stretches: Vec<usize> =
            (1..events).filter(|&event| thread(event - 1) == thread(event)).collect();
        if self.random.one_in(3) && !stretches.is_empty() {
            let last = stretches[self.random.below(stretches.len())];
            self.trace.atomic_sections.push((EventId::from(last - 1), EventId::from(last)));
        }
        if !self.trace.metadata.symbolic {
            let values = self.random.one_in(2);
            for event in &mut self.trace.events {
                strip(&mut event.op, values);
            }
        }
        self.trace
    }
}
