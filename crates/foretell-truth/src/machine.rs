//! Runs a program under every schedule.
//!
//! A step is one access of shared memory or one operation on a synchronisation object; what follows it
//! and concerns nobody else belongs to it. Memory is sequentially consistent. A signal may wake any of
//! the waiters; nobody wakes by itself.

use std::collections::{BTreeSet, HashSet};

use crate::program::{ATOMICS, Condition, ELEMENTS, LOCALS, MUTEXES, Place, SEMAPHORES, Value};

/// Local variables of a function, the hidden one and its pointer included.
pub const FRAME: usize = LOCALS + 2;
/// A thread and the function that it calls.
const FRAMES: usize = 2;

/// A program for the machine: the instructions of `main` and of its threads.
#[derive(Clone, Debug)]
pub struct Code {
    /// Thread 0 is `main`.
    pub threads: Vec<Vec<Instruction>>,
    /// Initial values.
    pub globals: Vec<i32>,
}

/// An instruction and its line in C.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// 0 where C has none.
    pub line: u32,
    /// What it does.
    pub op: Op,
}

/// What an instruction does. Jumps go to an index in the thread's code.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "they are the statements of `program` one by one")]
pub enum Op {
    Load(usize, Place),
    Store(Place, Value),
    Assign(usize, Value),
    FetchAdd(usize, usize, Value),
    AtomicLoad(usize, usize),
    AtomicStore(usize, Value),
    CompareExchange(usize, usize, i32, Value),
    /// Expects what the local variable holds.
    CompareExchangeLocal(usize, usize, usize, i32),
    /// Waits until the variable has this value, and gives it another one, if any: to look again changes
    /// nothing.
    Await(usize, i32, Option<Value>),
    Lock(usize),
    /// Goes to the index if the mutex is taken.
    Try(usize, usize),
    Unlock(usize),
    ReadLock,
    WriteLock,
    ReadWriteUnlock,
    /// Releases mutex 0 and waits; a lock of it follows.
    CondWait,
    /// As `CondWait`, and may give up at any time: then the local variable is 1, otherwise 0.
    TimedWait(usize),
    /// Takes mutex 0 after a wait that may have given up.
    LockAgain(usize),
    Signal,
    Broadcast,
    Wait(usize),
    /// Goes to the index if the semaphore is 0.
    TryWait(usize, usize),
    Post(usize),
    /// Goes to the index unless the condition holds.
    Branch(Condition, usize),
    Jump(usize),
    Create(usize),
    Join(usize),
    Assert(Condition),
    /// Into a function: its local variables are 0.
    Enter,
    /// Prints all shared variables.
    Print,
    End,
}

/// What a thread did where it had a choice, in the order in which it came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The line in C.
    pub line: u32,
    /// 0 or 1 for a branch or a try, an index for an access of the array.
    pub outcome: i32,
}

/// Which executions count.
#[derive(Clone, Debug, Default)]
pub struct Constraint {
    /// Only those in which every thread keeps to these choices. A branch that is not listed depends on
    /// nothing that another thread can change.
    pub choices: Option<Vec<Vec<Choice>>>,
    /// Only those in which a thread that runs goes on as long as it can: every block is atomic then,
    /// whatever its borders are.
    pub without_preemption: bool,
}

/// Everything that a program can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Lines of assertions that can fail.
    pub failures: BTreeSet<u32>,
    /// Some execution gets stuck.
    pub deadlock: bool,
    /// What can be printed.
    pub outputs: BTreeSet<String>,
    /// Lines of two accesses, at least one of them a plain write, that can be next at the same time.
    pub races: BTreeSet<(u32, u32)>,
    /// How many states there are.
    pub states: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    NotCreated,
    Runs,
    /// Waits for a signal.
    Waits,
    /// Waits for a signal, and may give up.
    WaitsForLong,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    status: Status,
    next: usize,
    locals: [i32; FRAME * FRAMES],
    /// Which of them hold something that was read, or made of it: a branch on any other is no choice. Known
    /// under a constraint only.
    read: [bool; FRAME * FRAMES],
    /// Choices taken so far; counted under a constraint only.
    choices: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<Thread>,
    globals: Vec<i32>,
    atomics: [i32; ATOMICS],
    elements: [i32; ELEMENTS],
    pointer: i32,
    owners: [Option<u8>; MUTEXES],
    writer: Option<u8>,
    readers: u8,
    semaphores: [u32; SEMAPHORES],
    /// Who runs; known only where it matters.
    running: Option<usize>,
}

/// How a step ended.
enum Stepped {
    Goes(Vec<State>),
    Failed(u32),
    Printed(String),
    /// It leaves the choices that count.
    Outside,
}

/// Runs the code.
pub struct Machine<'c> {
    code: &'c Code,
}

impl<'c> Machine<'c> {
    /// For this code.
    pub fn new(code: &'c Code) -> Self {
        Self { code }
    }

    fn start(&self) -> State {
        let thread = |number: usize| Thread {
            status: if number == 0 { Status::Runs } else { Status::NotCreated },
            next: 0,
            locals: [0; FRAME * FRAMES],
            read: [false; FRAME * FRAMES],
            choices: 0,
        };
        State {
            threads: (0..self.code.threads.len()).map(thread).collect(),
            globals: self.code.globals.clone(),
            atomics: [0; ATOMICS],
            elements: [0; ELEMENTS],
            pointer: 0,
            owners: [None; MUTEXES],
            writer: None,
            readers: 0,
            semaphores: [0; SEMAPHORES],
            running: None,
        }
    }

    /// All executions, unless there are more states than allowed.
    pub fn explore(&self, constraint: &Constraint, most: usize) -> Option<Truth> {
        let mut truth = Truth::default();
        let start = self.start();
        let mut seen = HashSet::from([start.clone()]);
        let mut todo = vec![start];
        while let Some(state) = todo.pop() {
            let enabled: Vec<usize> =
                (0..state.threads.len()).filter(|&thread| self.enabled(&state, thread)).collect();
            self.races(&state, constraint, &mut truth.races);
            if enabled.is_empty() && state.threads[0].status != Status::Ended {
                truth.deadlock = true;
            }
            let moving = match state.running {
                Some(thread) if enabled.contains(&thread) => vec![thread],
                _ => enabled,
            };
            for thread in moving {
                match self.step(&state, thread, constraint) {
                    Stepped::Failed(line) => _ = truth.failures.insert(line),
                    Stepped::Printed(text) => _ = truth.outputs.insert(text),
                    Stepped::Outside => {}
                    Stepped::Goes(next) => {
                        for state in next {
                            if seen.insert(state.clone()) {
                                todo.push(state);
                            }
                        }
                    }
                }
            }
            if seen.len() > most {
                return None;
            }
        }
        truth.states = seen.len();
        Some(truth)
    }

    /// The local variables of `main` at its end in a run in which every thread goes on as long as it
    /// can; `None` where that run fails or gets stuck.
    pub fn run_without_preemption(&self) -> Option<[i32; FRAME * FRAMES]> {
        let mut state = self.start();
        let mut current = 0;
        loop {
            if !self.enabled(&state, current) {
                let count = state.threads.len();
                let others = (1..count).map(|distance| (current + distance) % count);
                current = others.into_iter().find(|&thread| self.enabled(&state, thread))?;
            }
            match self.step(&state, current, &Constraint::default()) {
                Stepped::Goes(next) => state = next.into_iter().next()?,
                Stepped::Printed(_) => return Some(state.threads[0].locals),
                Stepped::Failed(_) | Stepped::Outside => return None,
            }
        }
    }

    fn op(&self, state: &State, thread: usize) -> Instruction {
        self.code.threads[thread][state.threads[thread].next]
    }

    /// Can the thread take its next step?
    fn enabled(&self, state: &State, thread: usize) -> bool {
        match state.threads[thread].status {
            Status::Runs => {}
            Status::WaitsForLong => return true,
            Status::NotCreated | Status::Waits | Status::Ended => return false,
        }
        match self.op(state, thread).op {
            Op::Lock(mutex) => state.owners[mutex].is_none(),
            Op::LockAgain(_) => state.owners[0].is_none(),
            Op::ReadLock => state.writer.is_none(),
            Op::WriteLock => state.writer.is_none() && state.readers == 0,
            Op::Wait(semaphore) => state.semaphores[semaphore] > 0,
            Op::Await(atomic, value, _) => state.atomics[atomic] == value,
            Op::Join(other) => state.threads[other].status == Status::Ended,
            _ => true,
        }
    }

    /// Pairs of conflicting accesses that are next in this state.
    fn races(&self, state: &State, constraint: &Constraint, races: &mut BTreeSet<(u32, u32)>) {
        // The location, whether it is written, and the line.
        let plain = |thread: usize| {
            if state.threads[thread].status != Status::Runs {
                return None;
            }
            let Instruction { line, op } = self.op(state, thread);
            let (place, write) = match op {
                Op::Load(_, place) => (place, false),
                Op::Store(place, _) => (place, true),
                _ => return None,
            };
            let location = match place {
                Place::Global(number) => (0, number),
                Place::Element(local) => (1, element(&state.threads[thread], local)),
                Place::Pointer => (2, 0),
                Place::Target => unreachable!("the machine has elements for it"),
            };
            // Who stands before an access has chosen its index.
            if let (Some(choices), (1, index)) = (&constraint.choices, location)
                && let Some(choice) = choices[thread].get(state.threads[thread].choices)
                && choice.line == line
                && choice.outcome != index as i32
            {
                return None;
            }
            Some((location, write, line))
        };
        let next: Vec<_> = (0..state.threads.len()).filter_map(plain).collect();
        for (number, one) in next.iter().enumerate() {
            for other in &next[number + 1..] {
                if one.0 == other.0 && (one.1 || other.1) {
                    races.insert((one.2.min(other.2), one.2.max(other.2)));
                }
            }
        }
    }

    /// One step, with what follows it up to the next step.
    fn step(&self, state: &State, thread: usize, constraint: &Constraint) -> Stepped {
        let mut state = state.clone();
        state.running = constraint.without_preemption.then_some(thread);
        if state.threads[thread].status == Status::WaitsForLong {
            let own = &mut state.threads[thread];
            own.status = Status::Runs;
            if let Op::TimedWait(local) = self.code.threads[thread][own.next - 1].op {
                own.locals[local] = 1;
            }
            return Stepped::Goes(vec![state]);
        }
        let mut woken: Vec<usize> = Vec::new();
        let mut first = true;
        loop {
            let Instruction { line, op } = self.op(&state, thread);
            if !first && is_shared(op) {
                break;
            }
            first = false;
            let State { threads, globals, atomics, elements, pointer, owners, semaphores, .. } =
                &mut state;
            let own = &mut threads[thread];
            own.next += 1;
            let mut chosen = None;
            if constraint.choices.is_some() {
                own.note(op);
            }
            match op {
                Op::Load(local, place) => {
                    own.locals[local] = match place {
                        Place::Global(number) => globals[number],
                        Place::Element(index) => {
                            let index = element(own, index);
                            chosen = Some(index as i32);
                            elements[index]
                        }
                        Place::Pointer | Place::Target => *pointer,
                    };
                }
                Op::Store(place, value) => {
                    let value = evaluate(own, value);
                    match place {
                        Place::Global(number) => globals[number] = value,
                        Place::Element(index) => {
                            let index = element(own, index);
                            chosen = Some(index as i32);
                            elements[index] = value;
                        }
                        Place::Pointer | Place::Target => *pointer = value,
                    }
                }
                Op::Assign(local, value) => own.locals[local] = evaluate(own, value),
                Op::FetchAdd(local, atomic, value) => {
                    let more = evaluate(own, value);
                    own.locals[local] = atomics[atomic];
                    atomics[atomic] += more;
                }
                Op::AtomicLoad(local, atomic) => own.locals[local] = atomics[atomic],
                Op::AtomicStore(atomic, value) => atomics[atomic] = evaluate(own, value),
                Op::CompareExchange(local, atomic, expected, value) => {
                    let succeeds = atomics[atomic] == expected;
                    if succeeds {
                        atomics[atomic] = evaluate(own, value);
                    }
                    own.locals[local] = i32::from(succeeds);
                }
                Op::CompareExchangeLocal(local, atomic, expected, constant) => {
                    let expected = own.locals[expected];
                    let succeeds = atomics[atomic] == expected;
                    if succeeds {
                        atomics[atomic] = expected + constant;
                    }
                    own.locals[local] = i32::from(succeeds);
                }
                Op::Await(atomic, _, value) => {
                    if let Some(value) = value {
                        atomics[atomic] = evaluate(own, value);
                    }
                }
                Op::Lock(mutex) => owners[mutex] = Some(thread as u8),
                Op::Try(mutex, otherwise) => {
                    let free = owners[mutex].is_none();
                    match free {
                        true => owners[mutex] = Some(thread as u8),
                        false => own.next = otherwise,
                    }
                    chosen = Some(i32::from(free));
                }
                Op::Unlock(mutex) => owners[mutex] = None,
                Op::ReadLock => state.readers += 1,
                Op::WriteLock => state.writer = Some(thread as u8),
                Op::ReadWriteUnlock => match state.writer {
                    Some(_) => state.writer = None,
                    None => state.readers -= 1,
                },
                Op::CondWait => {
                    owners[0] = None;
                    own.status = Status::Waits;
                    break;
                }
                Op::TimedWait(local) => {
                    owners[0] = None;
                    own.locals[local] = 0;
                    own.status = Status::WaitsForLong;
                    break;
                }
                Op::LockAgain(local) => {
                    owners[0] = Some(thread as u8);
                    chosen = Some(own.locals[local]);
                }
                Op::Signal | Op::Broadcast => {
                    let waits = |&other: &usize| {
                        matches!(threads[other].status, Status::Waits | Status::WaitsForLong)
                    };
                    woken = (0..threads.len()).filter(waits).collect();
                    if matches!(op, Op::Broadcast) {
                        for other in woken.drain(..) {
                            threads[other].status = Status::Runs;
                        }
                    }
                }
                Op::Wait(semaphore) => semaphores[semaphore] -= 1,
                Op::TryWait(semaphore, otherwise) => {
                    let there = semaphores[semaphore] > 0;
                    match there {
                        true => semaphores[semaphore] -= 1,
                        false => own.next = otherwise,
                    }
                    chosen = Some(i32::from(there));
                }
                Op::Post(semaphore) => semaphores[semaphore] += 1,
                Op::Branch(condition, otherwise) => {
                    let holds = condition.holds(own.locals[condition.local]);
                    if !holds {
                        own.next = otherwise;
                    }
                    chosen = own.read[condition.local].then_some(i32::from(holds));
                }
                Op::Jump(target) => own.next = target,
                Op::Create(other) => threads[other].status = Status::Runs,
                Op::Join(_) => {}
                Op::Assert(condition) => {
                    if !condition.holds(own.locals[condition.local]) {
                        return Stepped::Failed(line);
                    }
                }
                Op::Enter => own.locals[FRAME..].fill(0),
                Op::Print => {
                    let all = globals.iter().chain(atomics.iter()).chain(elements.iter());
                    let all: Vec<String> = all.map(i32::to_string).collect();
                    return Stepped::Printed(all.join(" ") + "\n");
                }
                Op::End => {
                    own.status = Status::Ended;
                    break;
                }
            }
            if let (Some(choices), Some(outcome)) = (&constraint.choices, chosen) {
                let own = &mut state.threads[thread];
                match choices[thread].get(own.choices) {
                    Some(choice) if choice.line == line => {
                        if choice.outcome != outcome {
                            return Stepped::Outside;
                        }
                        own.choices += 1;
                    }
                    // Concrete, or past the end of what was recorded.
                    _ => {}
                }
            }
        }
        if woken.is_empty() {
            return Stepped::Goes(vec![state]);
        }
        let wakes = |other: usize| {
            let mut state = state.clone();
            state.threads[other].status = Status::Runs;
            state
        };
        Stepped::Goes(woken.into_iter().map(wakes).collect())
    }
}

/// Can another thread notice it, or hinder it?
fn is_shared(op: Op) -> bool {
    !matches!(op, Op::Assign(..) | Op::Branch(..) | Op::Jump(_) | Op::Assert(_) | Op::Enter)
}

impl Thread {
    /// Notes which local holds something that was read after the operation.
    fn note(&mut self, op: Op) {
        match op {
            Op::Load(local, _)
            | Op::FetchAdd(local, ..)
            | Op::AtomicLoad(local, _)
            | Op::CompareExchange(local, ..)
            | Op::CompareExchangeLocal(local, ..) => self.read[local] = true,
            Op::Assign(local, value) => {
                self.read[local] = match value {
                    Value::Constant(_) => false,
                    Value::Local(other, _) => self.read[other],
                };
            }
            Op::TimedWait(local) => self.read[local] = false,
            Op::Enter => self.read[FRAME..].fill(false),
            _ => {}
        }
    }
}

fn element(thread: &Thread, local: usize) -> usize {
    (thread.locals[local] & (ELEMENTS as i32 - 1)) as usize
}

fn evaluate(thread: &Thread, value: Value) -> i32 {
    match value {
        Value::Constant(constant) => constant,
        Value::Local(local, constant) => thread.locals[local] + constant,
    }
}
