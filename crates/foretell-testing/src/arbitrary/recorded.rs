//! Simulated runs: what a recorder would write.

use std::collections::BTreeMap;

use foretell_trace::SyncOp;
use foretell_trace::event::{
    Access, AwaitMark, Condition, LockMode, LockStep, MemoryOrder, Op, ReadModifyWrite,
};
use foretell_trace::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use foretell_trace::term::{Operator, Sort, Term, Value};
use foretell_trace::trace::{
    ChannelKind, Indexer, MemoryRange, ObjectKind, Scope, Site, Trace, Unseen, Variable,
};

use super::terms::random_term;
use crate::random::Random;

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
