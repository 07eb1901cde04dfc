//! Who runs next: the scheduler's oracles.
//!
//! A policy is asked when the running thread comes to the index at which it had to ask again, and
//! when it cannot go on. It sees the threads and names one that can run. Between two questions a
//! thread runs on without any cost but one comparison.

use foretell_wire::base::{Base, Candidate, Chosen, Clock};
use foretell_wire::standing::Sentence;

use crate::sys;
use crate::thread::{State, Thread};

/// The threads as a policy sees them.
pub struct Threads<'a>(pub &'a [*mut Thread]);

impl Threads<'_> {
    /// How many there are, finished ones not counted.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A thread.
    pub fn get(&self, position: usize) -> &Thread {
        // SAFETY: the list holds live threads, and only the thread with the turn looks.
        unsafe { &*self.0[position] }
    }
}

/// An answer.
pub enum Choice {
    /// This thread, by its position; it is runnable.
    Run(usize),
    /// This thread, as soon as it is back from its system call or its files are ready.
    Await(usize),
    /// This thread, whose wait ends by its deadline now.
    TimeOut(usize),
    /// No thread can run.
    Nobody,
    /// The program cannot do what the schedule says.
    LeftSchedule(Sentence),
}

/// An oracle.
pub trait Policy {
    /// Who goes next? `current` asks; it is in the list unless it has finished.
    fn choose(&mut self, threads: &Threads, current: usize) -> Choice;

    /// The thread is about to run: at which index must it ask again?
    fn pause_at(&mut self, thread: &Thread) -> u32;

    /// Whether it decides by itself, and follows no schedule.
    fn is_free(&self) -> bool {
        true
    }

    /// The thread has had its last event.
    fn finished(&mut self, _thread: &Thread) {}
}

impl Policy for Base {
    fn choose(&mut self, threads: &Threads, current: usize) -> Choice {
        let candidate = |position: usize| {
            let thread = threads.get(position);
            Candidate {
                number: thread.number,
                index: thread.slots.index,
                can_run: thread.state == State::Runnable,
                deadline: thread.deadline.filter(|_| thread.state == State::Blocked),
            }
        };
        match Base::choose(self, threads.len(), candidate, current) {
            Chosen::Run(position) => Choice::Run(position),
            Chosen::TimeOut(position) => Choice::TimeOut(position),
            Chosen::Nobody => Choice::Nobody,
        }
    }

    fn pause_at(&mut self, thread: &Thread) -> u32 {
        Base::pause_at(self, thread.slots.index)
    }

    fn finished(&mut self, thread: &Thread) {
        Base::finished(self, thread.slots.index);
    }
}

/// Slices of 100 to 1000 microseconds on a 2-3 GHz machine.
const CLOCK: Clock = Clock { now: sys::ticks, shortest: 250_000, longest: 2_500_000, events: 1024 };

/// The policy that a text describes, as in `foretell_wire::environment::POLICY`.
pub fn parse(text: &str) -> Option<Box<dyn Policy>> {
    Some(Box::new(Base::parse(text, CLOCK)?))
}
