//! bank-av, bank-sav and bank-nav (000 section 6): N threads book on four shared figures, each by a
//! read and a write that lie in critical sections of their own.
//!
//! Nothing is held in between, so every figure has a violation in every thread (av). The fixes
//! guard a part (sav) or all (nav) of the bookings by a flag and a condition variable, which
//! locksets do not see: after them four remain in all versions.

use std::ops::Range;

use foretell_trace::{ObjectId, Op, SyncOp, ThreadId, Trace, VariableId};

use super::Program;

/// How much of the program is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankVersion {
    /// Nothing: four violations a thread.
    Violated,
    /// Half: two violations a thread.
    SomeViolated,
    /// All: none.
    NoneViolated,
}

impl BankVersion {
    /// As the paper's table has it.
    pub fn name(self) -> &'static str {
        match self {
            BankVersion::Violated => "bank-av",
            BankVersion::SomeViolated => "bank-sav",
            BankVersion::NoneViolated => "bank-nav",
        }
    }

    /// How many violations each thread has.
    pub fn violations_per_thread(self) -> usize {
        match self {
            BankVersion::Violated => 4,
            BankVersion::SomeViolated => 2,
            BankVersion::NoneViolated => 0,
        }
    }
}

const FIGURES: [&str; 4] = ["checking", "savings", "fees", "volume"];

struct Bank {
    program: Program,
    figures: Vec<(VariableId, ObjectId)>,
    books: ObjectId,
    busy: VariableId,
    busy_lock: ObjectId,
    idle: ObjectId,
}

/// The trace of a run of `threads` workers, one after the other but for those that find the flag
/// set and wait.
pub fn bank(version: BankVersion, threads: u32) -> Trace {
    let mut program = Program::new("bank.c");
    let figures =
        FIGURES.map(|name| (program.integer(name, 0), program.mutex(&format!("{name}_lock"))));
    let mut bank = Bank {
        books: program.mutex("books"),
        busy: program.integer("busy", 0),
        busy_lock: program.mutex("busy_lock"),
        idle: program.condition("idle"),
        figures: figures.to_vec(),
        program,
    };
    bank.main_writes(10);
    let workers: Vec<ThreadId> =
        (0..threads).map(|worker| bank.program.fork(&format!("worker{worker}"))).collect();
    let guarded = FIGURES.len() - version.violations_per_thread();
    for (number, pair) in workers.chunks(2).enumerate() {
        let amounts = [2 * number as u64 + 1, 2 * number as u64 + 2];
        match *pair {
            // The second of two finds the flag set, waits, and is woken by the first.
            [one, two] if guarded > 0 => {
                bank.enter(one);
                bank.begin_wait(two);
                bank.region(one, amounts[0], guarded);
                bank.wake(two);
                bank.region(two, amounts[1], guarded);
            }
            _ => {
                for (&worker, amount) in pair.iter().zip(amounts) {
                    if guarded > 0 {
                        bank.enter(worker);
                    }
                    bank.region(worker, amount, guarded);
                }
            }
        }
        for &worker in pair {
            bank.program.end(worker);
        }
    }
    for worker in workers {
        bank.program.join(worker);
    }
    bank.main_writes(20);
    bank.program.finish()
}

impl Bank {
    /// Main sets all figures to zero, before and after the workers.
    fn main_writes(&mut self, line: u32) {
        for (number, &(figure, _)) in self.figures.iter().enumerate() {
            let zero = self.program.constant(0);
            self.program.at(line + number as u32).write(Program::MAIN, figure, zero);
        }
    }

    /// `while (busy) wait(idle); busy = 1`, found free at once.
    fn enter(&mut self, thread: ThreadId) {
        self.program.at(30).lock(thread, self.busy_lock);
        self.claim(thread);
    }

    fn claim(&mut self, thread: ThreadId) {
        let busy = self.program.at(31).read(thread, self.busy);
        let free = self.program.is(busy, 0);
        self.program.branch(thread, free);
        let one = self.program.constant(1);
        self.program.at(33).write(thread, self.busy, one);
        self.program.at(34).unlock(thread, self.busy_lock);
    }

    /// The same, found busy: the thread begins to wait.
    fn begin_wait(&mut self, thread: ThreadId) {
        self.program.at(30).lock(thread, self.busy_lock);
        let busy = self.program.at(31).read(thread, self.busy);
        let free = self.program.is(busy, 0);
        self.program.branch(thread, free);
        let (condition, mutex) = (self.idle, self.busy_lock);
        self.program.at(32).push(thread, Op::Sync(condition, SyncOp::WaitBegin { mutex }));
    }

    /// The end of the wait; the flag is free now.
    fn wake(&mut self, thread: ThreadId) {
        let (condition, mutex) = (self.idle, self.busy_lock);
        let wake = Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out: false, timed: false });
        self.program.at(32).push(thread, wake);
        self.claim(thread);
    }

    /// `busy = 0; signal(idle)`.
    fn leave(&mut self, thread: ThreadId) {
        self.program.at(70).lock(thread, self.busy_lock);
        let zero = self.program.constant(0);
        self.program.at(71).write(thread, self.busy, zero);
        self.program.at(72).push(thread, Op::Sync(self.idle, SyncOp::Signal));
        self.program.at(73).unlock(thread, self.busy_lock);
    }

    /// The block that should be atomic; the flag is given back after the guarded figures.
    fn region(&mut self, thread: ThreadId, amount: u64, guarded: usize) {
        self.program.at(40).push(thread, Op::RegionBegin("booking".into()));
        self.book(thread, 0..guarded, amount);
        if guarded > 0 {
            self.leave(thread);
        }
        self.book(thread, guarded..FIGURES.len(), amount);
        self.program.at(74).push(thread, Op::RegionEnd);
    }

    fn book(&mut self, thread: ThreadId, figures: Range<usize>, amount: u64) {
        for number in figures {
            let (figure, lock) = self.figures[number];
            let line = 50 + 4 * number as u32;
            self.program.at(line).lock(thread, self.books);
            self.program.lock(thread, lock);
            let value = self.program.at(line + 1).read(thread, figure);
            self.program.unlock(thread, lock);
            self.program.unlock(thread, self.books);
            let sum = self.program.plus(value, amount);
            self.program.at(line + 2).lock(thread, lock);
            self.program.at(line + 3).write(thread, figure, sum);
            self.program.unlock(thread, lock);
        }
    }
}
