//! A program as a tree, and how a random one is made.

use crate::machine::{Constraint, Machine};
use crate::random::Random;
use crate::source::{Emitted, emit};

/// Plain shared integers `g0`, `g1`, ...
pub const GLOBALS: usize = 3;
/// Atomic shared integers `a0`, ...
pub const ATOMICS: usize = 1;
/// Elements of the shared array `arr`.
pub const ELEMENTS: usize = 2;
/// Mutexes `m0`, ...
pub const MUTEXES: usize = 2;
/// Semaphores `s0`, ..., initially 0.
pub const SEMAPHORES: usize = 1;
/// Functions that are called.
pub const FUNCTIONS: usize = 2;
/// Local variables `x`, `y` of each function.
pub const LOCALS: usize = 2;

/// A shared variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `gN`.
    Global(usize),
    /// `arr[local & 1]`.
    Element(usize),
    /// The shared pointer `p`, which points to an element of the array.
    Pointer,
    /// `*q`: what the function's own pointer points to.
    Target,
}

/// An expression over local variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A constant.
    Constant(i32),
    /// A local variable plus a constant.
    Local(usize, i32),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
}

/// `local OP constant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The local variable.
    pub local: usize,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub constant: i32,
}

impl Condition {
    /// Does it hold for this value of the local variable?
    pub fn holds(self, value: i32) -> bool {
        match self.comparison {
            Comparison::Equal => value == self.constant,
            Comparison::NotEqual => value != self.constant,
            Comparison::Less => value < self.constant,
        }
    }
}

/// A statement. Each makes at most one access of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `local = place;`
    Load(usize, Place),
    /// `place = value;`
    Store(Place, Value),
    /// `local = value;`
    Assign(usize, Value),
    /// `local = atomic_fetch_add(&aN, value);`
    FetchAdd(usize, usize, Value),
    /// `local = atomic_load(&aN);`
    AtomicLoad(usize, usize),
    /// `atomic_store(&aN, value);`
    AtomicStore(usize, Value),
    /// `expected = constant; local = atomic_compare_exchange_strong(&aN, &expected, value);`
    CompareExchange(usize, usize, i32, Value),
    /// `while (atomic_load(&aN) != constant);`
    SpinUntil(usize, i32),
    /// `do expected = constant; while (!atomic_compare_exchange_strong(&aN, &expected, value));`
    SpinTake(usize, i32, Value),
    /// `do { expected = atomic_load(&aN); local = expected; } while (!atomic_compare_exchange_strong(&aN,
    /// &expected, local + constant));`
    SpinAdd(usize, usize, i32),
    /// The body under the mutex.
    Locked(usize, Vec<Statement>),
    /// The body if `pthread_mutex_trylock` succeeds.
    Tried(usize, Vec<Statement>),
    /// The body if `pthread_mutex_timedlock` succeeds.
    TriedForLong(usize, Vec<Statement>),
    /// The body if `sem_timedwait` (or `sem_trywait`) succeeds.
    TriedSemaphore(bool, usize, Vec<Statement>),
    /// `p = &arr[constant];`
    Point(usize),
    /// `q = p;`
    Follow,
    /// The body under the read-write lock, as a writer or a reader.
    ReadWriteLocked(bool, Vec<Statement>),
    /// Waits under mutex 0 until `g0` is not 0.
    AwaitFlag,
    /// Waits under mutex 0 until `g0` is not 0, or until the time is over.
    AwaitFlagForLong,
    /// Sets `g0` under mutex 0 and wakes one waiter, or all.
    SetFlag(bool),
    /// `sem_wait`.
    Wait(usize),
    /// `sem_post`.
    Post(usize),
    /// `if (condition) ... else ...`
    If(Condition, Vec<Statement>, Vec<Statement>),
    /// The body so many times.
    Repeat(usize, Vec<Statement>),
    /// Calls a function by its number; it has local variables of its own.
    Call(usize),
    /// `assert(condition);`
    Assert(Condition),
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Initial values of the plain shared integers.
    pub globals: Vec<i32>,
    /// Bodies of the functions that are called.
    pub functions: Vec<Vec<Statement>>,
    /// Bodies of the threads that `main` creates.
    pub threads: Vec<Vec<Statement>>,
    /// What `main` does between creating and joining the threads.
    pub meanwhile: Vec<Statement>,
    /// What `main` does after joining them, before it prints all shared variables.
    pub finally: Vec<Statement>,
}

/// Which statements a random program may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Branches whose condition is read from shared memory, loops that wait, tries.
    pub branches: bool,
    /// Condition variables, semaphores, read-write locks.
    pub waiting: bool,
    /// Array elements with computed indices.
    pub indices: bool,
    /// Loops that wait for a shared variable to change.
    pub spins: bool,
    /// A pointer that threads share and follow.
    pub pointers: bool,
    /// Tries of semaphores, and waits with a time limit.
    pub limits: bool,
    /// No execution has a race, so that a compiler may not change what the program can do: variables
    /// are used under their mutex, or published by an atomic flag.
    pub race_free: bool,
}

/// No program is larger than this: all its states are enumerated.
const MOST_STATES: usize = 60_000;

impl Program {
    /// A random program with at most 60,000 states whose run without preemption passes, in C
    /// and compiled for the machine. Constants of final assertions are what such a run computes, so
    /// that an assertion is about an order that somebody may have relied on.
    pub fn random(seed: u64, shape: Shape) -> (Self, Emitted) {
        let mut random = Random::new(seed);
        loop {
            let mut maker =
                Maker { random: &mut random, shape, calls: false, read_write: false, held: None };
            let mut program = maker.program();
            if !program.fill_assertions() {
                continue;
            }
            let emitted = emit(&program);
            let machine = Machine::new(&emitted.code);
            let Some(truth) = machine.explore(&Constraint::default(), MOST_STATES) else {
                continue;
            };
            if !shape.race_free || truth.races.is_empty() {
                return (program, emitted);
            }
        }
    }

    /// Gives the final assertions the values of the run without preemption; false where that run
    /// fails or gets stuck.
    fn fill_assertions(&mut self) -> bool {
        let before = std::mem::take(&mut self.finally);
        for statement in before {
            if let Statement::Assert(mut condition) = statement {
                let emitted = emit(self);
                let Some(locals) = Machine::new(&emitted.code).run_without_preemption() else {
                    return false;
                };
                condition.comparison = Comparison::Equal;
                condition.constant = locals[condition.local];
                self.finally.push(Statement::Assert(condition));
            } else {
                self.finally.push(statement);
            }
        }
        Machine::new(&emit(self).code).run_without_preemption().is_some()
    }
}

struct Maker<'r> {
    random: &'r mut Random,
    shape: Shape,
    /// Functions may be called here; they call none themselves.
    calls: bool,
    /// The read-write lock is held here. It is never taken twice: what happens then depends on the C
    /// library.
    read_write: bool,
    /// The mutex that was taken last here.
    held: Option<usize>,
}

/// In a program without races, the plain shared integers with these numbers are used under the mutex of
/// the same number, and the next one is published by the first atomic integer.
const PUBLISHED: usize = MUTEXES;

impl Maker<'_> {
    fn program(&mut self) -> Program {
        let globals = (0..GLOBALS).map(|_| self.random.between(0, 1)).collect();
        // Their callers may hold the read-write lock.
        self.read_write = true;
        let functions = (0..FUNCTIONS).map(|_| self.body(1, 1, 3)).collect();
        (self.calls, self.read_write) = (true, false);
        let threads =
            (0..2 + usize::from(self.random.percent(25))).map(|_| self.body(2, 2, 4)).collect();
        let meanwhile = if self.random.percent(25) { self.body(1, 1, 2) } else { Vec::new() };
        let mut finally = Vec::new();
        for local in 0..1 + self.random.below(2) {
            finally.push(match self.random.percent(30) {
                true => Statement::AtomicLoad(local, self.random.below(ATOMICS)),
                false => Statement::Load(local, Place::Global(self.random.below(GLOBALS))),
            });
            let comparison = Comparison::Equal;
            let condition = Condition { local, comparison, constant: 0 };
            finally.push(Statement::Assert(condition));
        }
        if self.random.percent(40) {
            finally.clear();
        }
        Program { globals, functions, threads, meanwhile, finally }
    }

    /// Statements, nested at most so deep.
    fn body(&mut self, depth: usize, least: i32, most: i32) -> Vec<Statement> {
        let mut body = Vec::new();
        for _ in 0..self.random.between(least, most) {
            match self.shape.race_free && self.held.is_none() && self.random.percent(35) {
                true => self.publication(&mut body),
                false => body.push(self.statement(depth)),
            }
        }
        body
    }

    /// Statements under a mutex.
    fn body_under(&mut self, mutex: usize, depth: usize, most: i32) -> Vec<Statement> {
        let before = self.held.replace(mutex);
        let body = self.body(depth, 1, most);
        self.held = before;
        body
    }

    /// Publishes a variable, or uses it if it was published.
    fn publication(&mut self, body: &mut Vec<Statement>) {
        let place = Place::Global(PUBLISHED);
        if self.random.percent(35) {
            body.push(Statement::Store(place, self.value()));
            body.push(Statement::AtomicStore(0, Value::Constant(1)));
            return;
        }
        let (flag, local) = (self.random.below(LOCALS), self.random.below(LOCALS));
        let condition = Condition { local, comparison: Comparison::NotEqual, constant: 0 };
        let mut guarded = vec![Statement::Load(local, place)];
        match self.random.below(3) {
            0 => guarded.push(Statement::Assert(condition)),
            1 => guarded.push(Statement::Store(place, self.value())),
            _ => {}
        }
        let is_set = Condition { local: flag, comparison: Comparison::Equal, constant: 1 };
        body.push(Statement::AtomicLoad(flag, 0));
        body.push(Statement::If(is_set, guarded, Vec::new()));
    }

    fn branch(&mut self, depth: usize) -> Statement {
        let otherwise =
            if self.random.percent(40) { self.body(depth - 1, 1, 2) } else { Vec::new() };
        Statement::If(self.condition(), self.body(depth - 1, 1, 2), otherwise)
    }

    fn statement(&mut self, depth: usize) -> Statement {
        if self.shape.branches && depth > 0 && self.random.percent(20) {
            return self.branch(depth);
        }
        if self.shape.spins && self.random.percent(15) {
            return self.spin();
        }
        if self.shape.pointers && self.random.percent(20) {
            return self.pointer();
        }
        if self.shape.limits && depth > 0 && self.random.percent(15) {
            return self.limited(depth);
        }
        let kind = self.random.below(100);
        let local = self.random.below(LOCALS);
        let nested = depth > 0;
        if self.shape.race_free && self.held.is_none() && kind <= 35 {
            return Statement::AtomicLoad(local, self.random.below(ATOMICS));
        }
        match kind {
            0..=17 => Statement::Load(local, self.place()),
            18..=35 => Statement::Store(self.place(), self.value()),
            36..=38 => Statement::Assign(local, self.value()),
            39..=43 => Statement::FetchAdd(local, self.random.below(ATOMICS), self.value()),
            44..=47 => Statement::AtomicLoad(local, self.random.below(ATOMICS)),
            48..=50 => Statement::AtomicStore(self.random.below(ATOMICS), self.value()),
            51..=52 if self.shape.branches => Statement::CompareExchange(
                local,
                self.random.below(ATOMICS),
                self.random.between(0, 1),
                self.value(),
            ),
            53..=67 if nested => {
                let mutex = self.random.below(MUTEXES);
                Statement::Locked(mutex, self.body_under(mutex, depth - 1, 3))
            }
            68..=69 if nested && self.shape.branches => {
                let mutex = self.random.below(MUTEXES);
                Statement::Tried(mutex, self.body_under(mutex, depth - 1, 2))
            }
            70..=72 if nested && self.shape.waiting && !self.read_write => {
                self.read_write = true;
                let body = self.body(depth - 1, 1, 2);
                self.read_write = false;
                Statement::ReadWriteLocked(self.random.percent(50), body)
            }
            73 if nested && self.shape.waiting && self.shape.branches => Statement::AwaitFlag,
            74..=75 if nested && self.shape.waiting => Statement::SetFlag(self.random.percent(50)),
            76..=77 if nested && self.shape.waiting => {
                Statement::Wait(self.random.below(SEMAPHORES))
            }
            78..=81 if nested && self.shape.waiting => {
                Statement::Post(self.random.below(SEMAPHORES))
            }
            82..=88 if nested && self.shape.branches => self.branch(depth),
            89..=90 if nested => Statement::Repeat(2, self.body(depth - 1, 1, 2)),
            91..=96 if nested && self.calls => Statement::Call(self.random.below(FUNCTIONS)),
            97..=99 => Statement::Assert(Condition {
                comparison: Comparison::NotEqual,
                constant: self.random.between(2, 3),
                ..self.condition()
            }),
            _ if self.shape.race_free => Statement::Assign(local, self.value()),
            _ => Statement::Load(local, self.place()),
        }
    }

    fn pointer(&mut self) -> Statement {
        match self.random.below(4) {
            0 => Statement::Point(self.random.below(ELEMENTS)),
            1 => Statement::Follow,
            2 => Statement::Load(self.random.below(LOCALS), Place::Target),
            _ => Statement::Store(Place::Target, self.value()),
        }
    }

    fn limited(&mut self, depth: usize) -> Statement {
        let semaphore = self.random.below(SEMAPHORES);
        match self.random.below(6) {
            0 => {
                let mutex = self.random.below(MUTEXES);
                Statement::TriedForLong(mutex, self.body_under(mutex, depth - 1, 2))
            }
            1 => Statement::TriedSemaphore(
                self.random.percent(50),
                semaphore,
                self.body(depth - 1, 1, 2),
            ),
            2 => Statement::Post(semaphore),
            3 => Statement::SetFlag(self.random.percent(50)),
            _ => Statement::AwaitFlagForLong,
        }
    }

    fn spin(&mut self) -> Statement {
        let (local, atomic) = (self.random.below(LOCALS), self.random.below(ATOMICS));
        match self.random.below(5) {
            0..=1 => Statement::SpinUntil(atomic, self.random.between(0, 2)),
            2..=3 => Statement::SpinTake(atomic, self.random.between(0, 1), self.value()),
            _ => Statement::SpinAdd(local, atomic, 1),
        }
    }

    fn place(&mut self) -> Place {
        if let (true, Some(mutex)) = (self.shape.race_free, self.held) {
            return Place::Global(mutex);
        }
        match self.shape.indices && self.random.percent(25) {
            true => Place::Element(self.random.below(LOCALS)),
            false => Place::Global(self.random.below(GLOBALS)),
        }
    }

    fn value(&mut self) -> Value {
        match self.random.percent(35) {
            true => Value::Constant(self.random.between(0, 3)),
            false => Value::Local(self.random.below(LOCALS), self.random.between(0, 2)),
        }
    }

    fn condition(&mut self) -> Condition {
        let comparisons = [Comparison::Equal, Comparison::NotEqual, Comparison::Less];
        Condition {
            local: self.random.below(LOCALS),
            comparison: *self.random.pick(&comparisons),
            constant: self.random.between(0, 2),
        }
    }
}
