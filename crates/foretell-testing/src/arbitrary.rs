//! Random valid traces, for property tests.
//!
//! [`recorded`] simulates a run: threads are forked and joined, locks are held by one, reads return
//! what was written, terms evaluate to the values beside them. [`abstracted`] makes traces like
//! CTRC's: guarded assignments and transition predicates over variables of every sort. Both are
//! functions of a seed, so a failing test is repeated by its seed.

use std::collections::BTreeMap;

use foretell_trace::SyncOp;
use foretell_trace::event::{
    Access, AwaitMark, Condition, Event, Guarded, LockMode, LockStep, MemoryOrder, Op,
    ReadModifyWrite, Transition,
};
use foretell_trace::id::{EventId, ObjectId, SiteId, TermId, ThreadId, VariableId};
use foretell_trace::term::{
    ArrayValue, Operator, Rational, ScalarSort, Sort, Term, TermStore, Value,
};
use foretell_trace::trace::{
    ChannelKind, Indexer, MemoryRange, ObjectKind, Scope, Site, Trace, Unseen, Variable,
};

use crate::random::Random;

impl Random {
    /// Mostly small, sometimes any.
    fn value(&mut self) -> u64 {
        match self.below(4) {
            0 => self.bits(),
            1 => self.bits() % 1000,
            _ => self.bits() % 4,
        }
    }

    fn order(&mut self) -> MemoryOrder {
        [
            MemoryOrder::Relaxed,
            MemoryOrder::Acquire,
            MemoryOrder::Release,
            MemoryOrder::AcquireRelease,
            MemoryOrder::SequentiallyConsistent,
        ][self.below(5)]
    }

    /// A name that no other number gets; some are hard to write down.
    fn name(&mut self, prefix: &str, number: usize) -> String {
        let suffix = ["", "", "", "", ".next", " with space", "\"", "\\", "ü→\t", "(*)", "::<T>"]
            [self.below(11)];
        format!("{prefix}{number}{suffix}")
    }
}

/// A trace as the seed decides: recorded or abstracted, with about `size` events.
pub fn trace(seed: u64, size: usize) -> Trace {
    if seed.is_multiple_of(3) { abstracted(seed, size) } else { recorded(seed, size) }
}

/// What a thread of the simulated run is doing.
#[derive(Clone, Debug, PartialEq)]
enum Doing {
    Running,
    /// On a condition, having given the mutex back.
    Waiting {
        condition: ObjectId,
        mutex: ObjectId,
        woken: bool,
    },
    /// At a barrier; may leave when all have come.
    AtBarrier {
        barrier: ObjectId,
        released: bool,
    },
    Ended,
}

struct Simulated {
    doing: Doing,
    children: u32,
    begun: bool,
    joined: bool,
    regions: usize,
    calls: usize,
    /// Terms for what the thread has read.
    reads: Vec<TermId>,
}

/// How a lock is held: by whom and, for readers and recursive mutexes, how often.
type Holders = BTreeMap<ThreadId, (LockMode, u32)>;

struct Run {
    random: Random,
    trace: Trace,
    indexer: Indexer,
    threads: Vec<Simulated>,
    memory: Vec<u64>,
    locks: BTreeMap<ObjectId, Holders>,
    semaphores: BTreeMap<ObjectId, u32>,
    heap: Vec<u64>,
    read_values: BTreeMap<(ThreadId, u32), Value>,
}

/// A run of a simulated program with about `size` events and up to five threads; half of the runs
/// have terms.
pub fn recorded(seed: u64, size: usize) -> Trace {
    let mut random = Random::new(seed);
    let mut trace = Trace::new();
    trace.metadata.observed_order = true;
    trace.metadata.symbolic = random.percent(50);
    trace.metadata.machine_code = seed % 5 == 4;
    let unseen = [1, 2, 4].map(|bit| (seed / 5) & bit != 0 && seed % 5 == 4);
    trace.metadata.unseen = Unseen::from_flags(unseen);
    if random.percent(70) {
        trace.metadata.command = vec!["./prog".into(), "--fast".into(), "a b".into()];
        trace.metadata.build_id = Some(format!("{:016x}", random.bits()).into());
    }
    if random.percent(20) {
        trace.metadata.gaps.push("libm.so was not instrumented".into());
    }
    if random.percent(20) {
        trace.metadata.restrictions.push("expressions held at their recorded value".into());
    }
    for number in 0..random.below(12) {
        let line = random.below(2000) as u32;
        trace.add_site(Site {
            file: ["main.c", "src/lib.rs", ""][random.below(3)].into(),
            line,
            column: if line == 0 { 0 } else { random.below(90) as u32 },
            function: if random.percent(20) { "".into() } else { random.name("f", number).into() },
        });
    }
    let mut memory = Vec::new();
    let mut address = 0x5600_0000;
    for number in 0..1 + random.below(8) {
        let size = [1u8, 2, 4, 8][random.below(4)];
        let sort = Sort::bit_vec(u16::from(size) * 8);
        address += 8 * (1 + random.bits() % 3);
        let value = random.value() & (u64::MAX >> (64 - 8 * u32::from(size)));
        memory.push(value);
        let initial = random.percent(60).then(|| Value::bit_vec(u16::from(size) * 8, value));
        let name = random.name("x", number).into();
        let generation = random.below(2) as u32;
        let memory = Some(MemoryRange { address, size, generation });
        trace.add_variable(Variable { name, sort, scope: Scope::Shared, memory, initial });
    }
    let mut semaphores = BTreeMap::new();
    for number in 0..random.below(8) {
        let initial = random.below(3) as u32;
        let kind = match random.below(8) {
            0 | 1 => ObjectKind::Mutex,
            2 => ObjectKind::RecursiveMutex,
            3 => ObjectKind::ReaderWriterLock,
            4 => ObjectKind::Condition,
            5 => ObjectKind::Semaphore { initial },
            6 => ObjectKind::Channel(
                [ChannelKind::Queue, ChannelKind::State, ChannelKind::Interrupt][random.below(3)],
            ),
            _ => ObjectKind::Barrier { parties: 1 + random.below(2) as u32 },
        };
        let object = trace.add_object(&random.name("m", number), kind);
        let address = u64::MAX / (number as u64 + 1);
        trace.objects[object.index()].address = address.is_multiple_of(2).then_some(address);
        if let ObjectKind::Semaphore { initial } = kind {
            semaphores.insert(object, initial);
        }
    }
    let mut run = Run {
        random,
        trace,
        indexer: Indexer::default(),
        threads: Vec::new(),
        memory,
        locks: BTreeMap::new(),
        semaphores,
        heap: Vec::new(),
        read_values: BTreeMap::new(),
    };
    run.add_thread("main", Vec::new());
    let mut attempts = 0;
    while run.trace.events.len() < size && attempts < 50 * size {
        attempts += 1;
        run.step();
    }
    run.trace
}

impl Run {
    fn add_thread(&mut self, name: &str, path: Vec<u32>) -> ThreadId {
        self.threads.push(Simulated {
            doing: Doing::Running,
            children: 0,
            begun: false,
            joined: false,
            regions: 0,
            calls: 0,
            reads: Vec::new(),
        });
        self.trace.add_thread(name, path)
    }

    fn emit(&mut self, thread: ThreadId, op: Op) {
        let sites = self.trace.sites.len();
        let site = (sites > 0 && self.random.percent(90))
            .then(|| SiteId::from(self.random.below(sites.max(1))));
        let event = self.indexer.event(thread, site, op);
        self.trace.push(event);
    }

    /// One step of some thread; none where the drawn thread or operation cannot go on.
    fn step(&mut self) {
        let thread = ThreadId::from(self.random.below(self.threads.len()));
        let simulated = &mut self.threads[thread.index()];
        match simulated.doing.clone() {
            Doing::Ended => {}
            _ if !simulated.begun => {
                simulated.begun = true;
                self.emit(thread, Op::ThreadBegin);
            }
            Doing::Running => {
                if let Some(op) = self.operation(thread) {
                    self.emit(thread, op);
                }
            }
            Doing::Waiting { condition, mutex, woken } => {
                let timed_out = self.random.percent(10);
                let timed = self.random.percent(50);
                if (woken || timed_out) && !self.locks.contains_key(&mutex) {
                    self.locks.insert(mutex, Holders::from([(thread, (LockMode::Exclusive, 1))]));
                    self.threads[thread.index()].doing = Doing::Running;
                    self.emit(
                        thread,
                        Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out, timed }),
                    );
                }
            }
            Doing::AtBarrier { barrier, released } => {
                if released {
                    simulated.doing = Doing::Running;
                    self.emit(thread, Op::Sync(barrier, SyncOp::BarrierLeave));
                }
            }
        }
    }

    /// Another thread is running, so that this one may sleep or end without ending the run.
    fn others_run(&self, thread: ThreadId) -> bool {
        let running = |(other, simulated): (usize, &Simulated)| {
            other != thread.index() && simulated.doing == Doing::Running
        };
        self.threads.iter().enumerate().any(running)
    }

    fn operation(&mut self, thread: ThreadId) -> Option<Op> {
        match self.random.below(22) {
            0 => self.thread_operation(thread),
            1..=4 => Some(self.read(thread)),
            5..=7 => Some(self.write(thread)),
            8 => Some(self.update(thread)),
            9..=13 => self.object_operation(thread),
            14 if self.random.percent(30) => {
                let marks =
                    [AwaitMark::Round, AwaitMark::Test, AwaitMark::Failed, AwaitMark::Again];
                self.random.pick(&marks).map(|mark| Op::Await(*mark))
            }
            14 => Some(Op::Fence(self.random.order())),
            15..=16 => {
                let (term, outcome) = self.condition(thread);
                let condition = Condition { term, outcome };
                Some(if self.random.percent(80) {
                    Op::Branch(condition)
                } else {
                    Op::Assert(condition)
                })
            }
            17 => {
                let number = self.random.below(3);
                let name = self.random.name("region", number).into();
                self.threads[thread.index()].regions += 1;
                Some(Op::RegionBegin(name))
            }
            18 => {
                let simulated = &mut self.threads[thread.index()];
                simulated.regions = simulated.regions.checked_sub(1)?;
                Some(Op::RegionEnd)
            }
            19 => {
                let simulated = &mut self.threads[thread.index()];
                if simulated.calls > 0 && self.random.percent(50) {
                    simulated.calls -= 1;
                    return Some(Op::Return);
                }
                simulated.calls += 1;
                let number = self.random.below(5);
                Some(Op::Call(self.random.name("call", number).into()))
            }
            20 => {
                if !self.heap.is_empty() && self.random.percent(50) {
                    let at = self.random.below(self.heap.len());
                    return Some(Op::Free { address: self.heap.swap_remove(at) });
                }
                let address = 0x7f00_0000_0000 + 64 * (self.random.bits() % 1024);
                if self.heap.contains(&address) {
                    return None;
                }
                self.heap.push(address);
                Some(Op::Alloc { address, size: 1 + self.random.bits() % 64 })
            }
            _ => {
                let source = ["read", "clock_gettime", "getrandom"][self.random.below(3)].into();
                Some(Op::Input { source, value: self.random.value() })
            }
        }
    }

    fn thread_operation(&mut self, thread: ThreadId) -> Option<Op> {
        match self.random.below(3) {
            0 if self.threads.len() < 5 => {
                let simulated = &mut self.threads[thread.index()];
                let mut path = self.trace.threads[thread.index()].path.clone();
                path.push(simulated.children);
                simulated.children += 1;
                let number = self.threads.len();
                let name = self.random.name("T", number);
                Some(Op::Fork(self.add_thread(&name, path)))
            }
            1 => {
                let holds = self.locks.values().any(|holders| holders.contains_key(&thread));
                if !self.others_run(thread) {
                    return None;
                }
                let simulated = &mut self.threads[thread.index()];
                if holds || simulated.regions + simulated.calls > 0 || self.random.percent(70) {
                    return None;
                }
                simulated.doing = Doing::Ended;
                Some(Op::ThreadEnd)
            }
            _ => {
                let child = ThreadId::from(self.random.below(self.threads.len()));
                let simulated = &mut self.threads[child.index()];
                if child == thread || simulated.doing != Doing::Ended || simulated.joined {
                    return None;
                }
                simulated.joined = true;
                Some(Op::Join(child))
            }
        }
    }

    fn draw_variable(&mut self) -> (VariableId, u16) {
        let variable = VariableId::from(self.random.below(self.trace.variables.len()));
        let width = self.trace.variables[variable.index()].sort.width().unwrap_or(64);
        (variable, width)
    }

    /// The address as an expression over an earlier read that comes out right.
    fn address(&mut self, thread: ThreadId, variable: VariableId) -> Option<TermId> {
        if !self.trace.metadata.symbolic || self.random.percent(85) {
            return None;
        }
        let read = *self.random.pick(&self.threads[thread.index()].reads)?;
        let range = self.trace.variables[variable.index()].memory?;
        let offset = match self.evaluate(read)? {
            Value::BitVec { bits, .. } => bits,
            _ => return None,
        };
        let terms = &mut self.trace.terms;
        let width = terms.sort(read).width()?;
        let wide = terms.build(Operator::ZeroExtend(64 - width), &[read]);
        let base = terms.bit_vec(64, range.address.wrapping_sub(offset));
        Some(terms.build(Operator::BvAdd, &[base, wide]))
    }

    fn evaluate(&self, term: TermId) -> Option<Value> {
        let leaf = |leaf: &Term| match leaf {
            Term::ReadValue(thread, index) => self.read_values.get(&(*thread, *index)).cloned(),
            _ => None,
        };
        self.trace.terms.evaluate(term, &leaf).ok()
    }

    /// Remembers what the thread's next event reads.
    fn remember_read(&mut self, thread: ThreadId, width: u16, value: u64) {
        if !self.trace.metadata.symbolic {
            return;
        }
        let index = self.trace.events.iter().filter(|event| event.thread == thread).count() as u32;
        let term = self.trace.terms.read_value(thread, index, Sort::bit_vec(width));
        self.threads[thread.index()].reads.push(term);
        self.read_values.insert((thread, index), Value::bit_vec(width, value));
    }

    fn atomic_order(&mut self) -> Option<MemoryOrder> {
        self.random.percent(20).then(|| self.random.order())
    }

    fn read(&mut self, thread: ThreadId) -> Op {
        let (variable, width) = self.draw_variable();
        let value = self.memory[variable.index()];
        let address = self.address(thread, variable);
        self.remember_read(thread, width, value);
        let order = self.atomic_order();
        Op::Read(Access { variable, value: Some(value), term: None, address, order })
    }

    /// A value to write and, in runs with terms, mostly an expression for it.
    fn expression(&mut self, thread: ThreadId, width: u16) -> (u64, Option<TermId>) {
        let leaves = self.threads[thread.index()].reads.clone();
        if !leaves.is_empty() && self.random.percent(80) {
            let term = random_term(
                &mut self.random,
                &mut self.trace.terms,
                Sort::bit_vec(width),
                &leaves,
                3,
            );
            if let Some(Value::BitVec { bits, .. }) = self.evaluate(term) {
                return (bits, Some(term));
            }
        }
        (self.random.value() & (u64::MAX >> (64 - u32::from(width))), None)
    }

    fn write(&mut self, thread: ThreadId) -> Op {
        let (variable, width) = self.draw_variable();
        let (value, term) = self.expression(thread, width);
        let address = self.address(thread, variable);
        self.memory[variable.index()] = value;
        let order = self.atomic_order();
        Op::Write(Access { variable, value: Some(value), term, address, order })
    }

    fn update(&mut self, thread: ThreadId) -> Op {
        let (variable, width) = self.draw_variable();
        let old = self.memory[variable.index()];
        let address = self.address(thread, variable);
        self.remember_read(thread, width, old);
        let (new, term) = self.expression(thread, width);
        self.memory[variable.index()] = new;
        Op::ReadModifyWrite(Box::new(ReadModifyWrite {
            variable,
            old: Some(old),
            new: Some(new),
            term,
            address,
            order: self.random.order(),
        }))
    }

    fn condition(&mut self, thread: ThreadId) -> (Option<TermId>, bool) {
        let leaves = self.threads[thread.index()].reads.clone();
        if !leaves.is_empty() {
            let term = random_term(&mut self.random, &mut self.trace.terms, Sort::BOOL, &leaves, 3);
            if let Some(outcome) = self.evaluate(term).and_then(|value| value.as_bool()) {
                return (Some(term), outcome);
            }
        }
        (None, self.random.percent(70))
    }

    fn object_operation(&mut self, thread: ThreadId) -> Option<Op> {
        if self.trace.objects.is_empty() {
            return None;
        }
        let object = ObjectId::from(self.random.below(self.trace.objects.len()));
        match self.trace.objects[object.index()].kind {
            ObjectKind::Condition => self.condition_operation(thread, object),
            ObjectKind::Semaphore { .. } => {
                let count = self.semaphores.get_mut(&object)?;
                if self.random.percent(50) {
                    *count += 1;
                    Some(Op::Sync(object, SyncOp::SemaphorePost))
                } else if *count > 0 {
                    *count -= 1;
                    Some(Op::Sync(
                        object,
                        SyncOp::SemaphoreWait { by_try: self.random.percent(30) },
                    ))
                } else {
                    Some(Op::Sync(object, SyncOp::SemaphoreWaitFailed))
                }
            }
            ObjectKind::Channel(_) => Some(match self.random.below(4) {
                0 => Op::Sync(object, SyncOp::Poll { ready: self.random.percent(50) }),
                1 => Op::Sync(
                    object,
                    SyncOp::Receive {
                        amount: self.random.value(),
                        drained: self.random.percent(50),
                        by_try: self.random.percent(50),
                    },
                ),
                _ => {
                    let content = if self.random.percent(30) { 0 } else { self.random.value() };
                    Op::Sync(object, SyncOp::Send { amount: self.random.value(), content })
                }
            }),
            ObjectKind::Barrier { .. } if !self.others_run(thread) => None,
            ObjectKind::Barrier { parties } => {
                let waiting = Doing::AtBarrier { barrier: object, released: false };
                self.threads[thread.index()].doing = waiting.clone();
                let here = self.threads.iter().filter(|other| other.doing == waiting).count();
                if here as u32 == parties {
                    for other in self.threads.iter_mut().filter(|other| other.doing == waiting) {
                        other.doing = Doing::AtBarrier { barrier: object, released: true };
                    }
                }
                Some(Op::Sync(object, SyncOp::BarrierArrive))
            }
            kind => self.lock_operation(thread, object, kind),
        }
    }

    fn condition_operation(&mut self, thread: ThreadId, condition: ObjectId) -> Option<Op> {
        let waits = |doing: &Doing| matches!(doing, Doing::Waiting { condition: on, woken: false, .. } if *on == condition);
        let waiters: Vec<usize> =
            (0..self.threads.len()).filter(|&other| waits(&self.threads[other].doing)).collect();
        match self.random.below(3) {
            0 if self.others_run(thread) => {
                let (&mutex, _) = self.locks.iter().find(|(lock, holders)| {
                    self.trace.objects[lock.index()].kind == ObjectKind::Mutex
                        && holders.contains_key(&thread)
                })?;
                self.locks.remove(&mutex);
                self.threads[thread.index()].doing =
                    Doing::Waiting { condition, mutex, woken: false };
                Some(Op::Sync(condition, SyncOp::WaitBegin { mutex }))
            }
            1 => {
                if let Some(&waiter) = self.random.pick(&waiters) {
                    self.wake(waiter);
                }
                Some(Op::Sync(condition, SyncOp::Signal))
            }
            _ => {
                for waiter in waiters {
                    self.wake(waiter);
                }
                Some(Op::Sync(condition, SyncOp::Broadcast))
            }
        }
    }

    fn wake(&mut self, waiter: usize) {
        if let Doing::Waiting { woken, .. } = &mut self.threads[waiter].doing {
            *woken = true;
        }
    }

    fn lock_operation(&mut self, thread: ThreadId, lock: ObjectId, kind: ObjectKind) -> Option<Op> {
        let mode = if kind == ObjectKind::ReaderWriterLock && self.random.percent(60) {
            LockMode::Shared
        } else {
            LockMode::Exclusive
        };
        let by_try = self.random.percent(15);
        let holders = self.locks.entry(lock).or_default();
        let op = if let Some((mode, count)) = holders.get_mut(&thread) {
            let mode = *mode;
            if kind == ObjectKind::RecursiveMutex && self.random.percent(40) {
                *count += 1;
                Some(Op::Sync(lock, SyncOp::Acquire(LockStep { mode, by_try })))
            } else {
                *count -= 1;
                if *count == 0 {
                    holders.remove(&thread);
                }
                Some(Op::Sync(lock, SyncOp::Release(LockStep { mode, by_try: false })))
            }
        } else {
            let free = holders.is_empty()
                || (mode == LockMode::Shared
                    && holders.values().all(|(held, _)| *held == LockMode::Shared));
            if free {
                holders.insert(thread, (mode, 1));
                Some(Op::Sync(lock, SyncOp::Acquire(LockStep { mode, by_try })))
            } else {
                by_try.then_some(Op::Sync(lock, SyncOp::AcquireFailed(LockStep { mode, by_try })))
            }
        };
        if holders.is_empty() {
            self.locks.remove(&lock);
        }
        op
    }
}

/// A trace of guarded assignments and transitions with about `size` events, thread after thread,
/// with a precondition, orders, sections and labels.
pub fn abstracted(seed: u64, size: usize) -> Trace {
    let mut random = Random::new(seed);
    let mut trace = Trace::new();
    trace.metadata.symbolic = true;
    for number in 0..1 + random.below(3) {
        let name = random.name("t", number);
        trace.add_thread(&name, vec![number as u32]);
    }
    let scalars = [
        ScalarSort::Int,
        ScalarSort::Int,
        ScalarSort::Bool,
        ScalarSort::Real,
        ScalarSort::BitVec(32),
    ];
    for number in 0..1 + random.below(6) {
        let sort = if random.percent(15) {
            Sort::Array { index: scalars[random.below(5)], element: scalars[random.below(5)] }
        } else {
            Sort::Scalar(scalars[random.below(5)])
        };
        let scope = if random.percent(30) {
            Scope::Local(ThreadId::from(random.below(trace.threads.len())))
        } else {
            Scope::Shared
        };
        let initial = random.percent(50).then(|| random_value(&mut random, sort));
        let name = random.name("v", number).into();
        trace.add_variable(Variable { name, sort, scope, memory: None, initial });
    }
    let sorts: Vec<Sort> = trace.variables.iter().map(|variable| variable.sort).collect();
    let unprimed: Vec<TermId> = sorts
        .iter()
        .enumerate()
        .map(|(id, &sort)| trace.terms.variable(VariableId::from(id), sort))
        .collect();
    if random.percent(60) {
        let term = random_term(&mut random, &mut trace.terms, Sort::BOOL, &unprimed, 3);
        trace.precondition = Some(term);
    }
    for thread in 0..trace.threads.len() {
        let thread = ThreadId::from(thread);
        let sees = |variable: &VariableId| {
            let scope = trace.variables[variable.index()].scope;
            scope == Scope::Shared || scope == Scope::Local(thread)
        };
        let visible: Vec<VariableId> =
            (0..sorts.len()).map(VariableId::from).filter(sees).collect();
        let before: Vec<TermId> = visible.iter().map(|id| unprimed[id.index()]).collect();
        let count = size / trace.threads.len();
        let first = trace.events.len();
        for index in 0..count as u32 {
            let mut targets = visible.clone();
            targets.retain(|_| random.percent(40));
            let terms = &mut trace.terms;
            let op = if random.percent(75) {
                let guard = random_term(&mut random, terms, Sort::BOOL, &before, 2);
                let assignments = targets
                    .iter()
                    .map(|&target| {
                        let sort = sorts[target.index()];
                        (target, random_term(&mut random, terms, sort, &before, 2))
                    })
                    .collect();
                Op::Guarded(Box::new(Guarded { guard, assignments }))
            } else {
                let mut leaves = before.clone();
                leaves.extend(targets.iter().map(|&id| terms.primed(id, sorts[id.index()])));
                let predicate = random_term(&mut random, terms, Sort::BOOL, &leaves, 3);
                Op::Transition(Box::new(Transition { predicate, changed: targets }))
            };
            let event = trace.push(Event { thread, index, site: None, op });
            if random.percent(30) {
                trace.labels.insert(event, random.name("e", event.index()).into());
            }
        }
        if count >= 2 && random.percent(50) {
            let begin = first + random.below(count - 1);
            let end = begin + 1 + random.below(first + count - begin - 1);
            trace.atomic_sections.push((EventId::from(begin), EventId::from(end)));
        }
    }
    for _ in 0..random.below(4) {
        if trace.events.len() >= 2 {
            let first = random.below(trace.events.len() - 1);
            let second = first + 1 + random.below(trace.events.len() - first - 1);
            trace.orders.push((EventId::from(first), EventId::from(second)));
        }
    }
    trace
}

/// A value of the sort.
pub fn random_value(random: &mut Random, sort: Sort) -> Value {
    match sort {
        Sort::Scalar(ScalarSort::Bool) => Value::Bool(random.percent(50)),
        Sort::Scalar(ScalarSort::Int) => Value::Int(if random.percent(90) {
            i128::from(random.value() as i64)
        } else {
            i128::from(random.bits()) << 64 | i128::from(random.bits())
        }),
        Sort::Scalar(ScalarSort::Real) => {
            let numerator = i128::from(random.value() as i64);
            let denominator = 1 + i128::from(random.bits() % 9);
            Value::Real(
                Rational::new(numerator, denominator).unwrap_or(Rational::integer(numerator)),
            )
        }
        Sort::Scalar(ScalarSort::BitVec(width)) => Value::bit_vec(width, random.value()),
        Sort::Array { index, element } => {
            let default = random_value(random, element.into());
            let mut array = ArrayValue::constant(index, default);
            for _ in 0..random.below(3) {
                let at = random_value(random, index.into());
                array = array.store(at, random_value(random, element.into()));
            }
            Value::Array(Box::new(array))
        }
    }
}

/// A term of the sort over some of the leaves, at most `depth` operators deep.
pub fn random_term(
    random: &mut Random,
    terms: &mut TermStore,
    sort: Sort,
    leaves: &[TermId],
    depth: usize,
) -> TermId {
    use Operator::*;
    let fitting: Vec<TermId> =
        leaves.iter().copied().filter(|&leaf| terms.sort(leaf) == sort).collect();
    if depth == 0 || random.percent(25) {
        return match random.pick(&fitting) {
            Some(&leaf) if random.percent(80) => leaf,
            _ => {
                let value = random_value(random, sort);
                terms.constant(value)
            }
        };
    }
    let depth = depth - 1;
    if random.percent(10) {
        let condition = random_term(random, terms, Sort::BOOL, leaves, depth);
        let then = random_term(random, terms, sort, leaves, depth);
        let otherwise = random_term(random, terms, sort, leaves, depth);
        return terms.ite(condition, then, otherwise);
    }
    let (operator, arguments): (Operator, Vec<Sort>) = match sort {
        Sort::BOOL => {
            // Compare what the leaves offer.
            let compared = random.pick(leaves).map_or(Sort::INT, |&leaf| terms.sort(leaf));
            match (random.below(8), compared) {
                (0, _) => (Not, vec![Sort::BOOL]),
                (1, _) => (And, vec![Sort::BOOL; 2 + random.below(2)]),
                (2, _) => (Or, vec![Sort::BOOL; 2 + random.below(2)]),
                (3, _) => (Xor, vec![Sort::BOOL; 2]),
                (4, _) => (Eq, vec![compared; 2]),
                (_, Sort::INT | Sort::REAL) => ([Lt, Le][random.below(2)], vec![compared; 2]),
                (_, Sort::Scalar(ScalarSort::BitVec(_))) => {
                    ([BvUlt, BvUle, BvSlt, BvSle][random.below(4)], vec![compared; 2])
                }
                _ => (Eq, vec![compared; 2]),
            }
        }
        Sort::INT => match random.below(8) {
            0 => (Neg, vec![sort]),
            1 => (Abs, vec![sort]),
            2 => (ToInt, vec![Sort::REAL]),
            3 => ([IntDiv, Mod][random.below(2)], vec![sort; 2]),
            _ => ([Add, Sub, Mul][random.below(3)], vec![sort; 2 + random.below(2)]),
        },
        Sort::REAL => match random.below(5) {
            0 => (Neg, vec![sort]),
            1 => (ToReal, vec![Sort::INT]),
            2 => (RealDiv, vec![sort; 2]),
            _ => ([Add, Sub, Mul][random.below(3)], vec![sort; 2]),
        },
        Sort::Scalar(ScalarSort::BitVec(width)) => {
            let part = 1 + random.below(usize::from(width)) as u16;
            match random.below(10) {
                0 => ([BvNot, BvNeg][random.below(2)], vec![sort]),
                1 if part < width => {
                    (Concat, vec![Sort::bit_vec(width - part), Sort::bit_vec(part)])
                }
                2 => (ZeroExtend(width - part), vec![Sort::bit_vec(part)]),
                3 => (SignExtend(width - part), vec![Sort::bit_vec(part)]),
                4 | 5 => {
                    // Cut what the leaves offer to size.
                    let wide = random
                        .pick(leaves)
                        .and_then(|&leaf| terms.sort(leaf).width())
                        .unwrap_or(64)
                        .max(width);
                    let low = random.below(usize::from(wide - width) + 1) as u16;
                    (Extract { high: low + width - 1, low }, vec![Sort::bit_vec(wide)])
                }
                _ => {
                    let operators = [
                        BvAnd, BvOr, BvXor, BvAdd, BvSub, BvMul, BvUdiv, BvUrem, BvSdiv, BvSrem,
                        BvShl, BvLshr, BvAshr,
                    ];
                    (operators[random.below(operators.len())], vec![sort; 2])
                }
            }
        }
        Sort::Array { index, element } => (Store, vec![sort, index.into(), element.into()]),
    };
    if let Some(&array) = random.pick(leaves)
        && let Sort::Array { index, element } = terms.sort(array)
        && Sort::from(element) == sort
    {
        let at = random_term(random, terms, index.into(), leaves, depth);
        return terms.build(Select, &[array, at]);
    }
    let arguments: Vec<TermId> = arguments
        .into_iter()
        .map(|argument| random_term(random, terms, argument, leaves, depth))
        .collect();
    terms.build(operator, &arguments)
}
