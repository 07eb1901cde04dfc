//! Who runs next: the scheduler's oracles.
//!
//! A policy is asked when the running thread comes to the index at which it had to ask again, and
//! when it cannot go on. It sees the threads and names one that can run. Between two questions a
//! thread runs on without any cost but one comparison.

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

    /// The first runnable thread from `start` on, going round.
    pub fn runnable_from(&self, start: usize) -> Option<usize> {
        let count = self.len();
        (0..count)
            .map(|offset| (start + offset) % count)
            .find(|&position| self.get(position).state == State::Runnable)
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
    Diverged(String),
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

/// What every policy does when its own choice is empty.
fn fallback(threads: &Threads) -> Choice {
    let sleeping = (0..threads.len())
        .filter(|&position| threads.get(position).state == State::Blocked)
        .filter_map(|position| Some((threads.get(position).deadline?, position)))
        .min();
    match sleeping {
        Some((_, position)) => Choice::TimeOut(position),
        None => Choice::Nobody,
    }
}

/// As the operating system would: a thread runs until it blocks or its time slice, measured by the
/// real clock, is over. Slices begin short, so that the threads of a short run meet, and grow with
/// the run: to pass the turn costs some ten microseconds.
pub struct TimeSlices {
    /// When the run began, and the slice.
    start: u64,
    began: u64,
}

impl TimeSlices {
    /// The shortest and the longest slice: 100 and 1000 microseconds on a 2-3 GHz machine.
    const SHORTEST: u64 = 250_000;
    const LONGEST: u64 = 2_500_000;

    /// The run begins now.
    pub fn new() -> Self {
        let now = sys::ticks();
        Self { start: now, began: now }
    }
}

impl Policy for TimeSlices {
    fn choose(&mut self, threads: &Threads, current: usize) -> Choice {
        let now = sys::ticks();
        let stays = current < threads.len() && threads.get(current).state == State::Runnable;
        let slice = (now.wrapping_sub(self.start) / 64).clamp(Self::SHORTEST, Self::LONGEST);
        if stays && now.wrapping_sub(self.began) < slice {
            return Choice::Run(current);
        }
        self.began = now;
        match threads.runnable_from(current + 1) {
            Some(position) => Choice::Run(position),
            None => fallback(threads),
        }
    }

    fn pause_at(&mut self, thread: &Thread) -> u32 {
        thread.slots.index.saturating_add(1024)
    }
}

/// Every thread in turn for a fixed number of its events.
pub struct RoundRobin {
    /// Events a turn.
    pub quantum: u32,
    /// Whoever has the turn when it is asked for the first time keeps it, if it can.
    pub goes_on: bool,
}

impl Policy for RoundRobin {
    fn choose(&mut self, threads: &Threads, current: usize) -> Choice {
        let next = match std::mem::take(&mut self.goes_on) {
            true => current,
            false => current + 1,
        };
        match threads.runnable_from(next) {
            Some(position) => Choice::Run(position),
            None => fallback(threads),
        }
    }

    fn pause_at(&mut self, thread: &Thread) -> u32 {
        thread.slots.index.saturating_add(self.quantum)
    }
}

/// Switches at random points, to a random thread; the seed decides all.
pub struct Random {
    state: u64,
    mean: u32,
}

impl Random {
    /// A turn lasts `mean` events on average.
    pub fn new(seed: u64, mean: u32) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, mean: mean.max(1) }
    }

    /// The next number (xorshift with a multiplication, Marsaglia and Vigna).
    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

impl Policy for Random {
    fn choose(&mut self, threads: &Threads, _current: usize) -> Choice {
        let count = (0..threads.len()).filter(|&p| threads.get(p).state == State::Runnable).count();
        if count == 0 {
            return fallback(threads);
        }
        let mut left = self.next() % count as u64;
        for position in 0..threads.len() {
            if threads.get(position).state == State::Runnable {
                if left == 0 {
                    return Choice::Run(position);
                }
                left -= 1;
            }
        }
        Choice::Nobody
    }

    fn pause_at(&mut self, thread: &Thread) -> u32 {
        // Uniform in 1..=2*mean: the same mean as a coin at every point, without its long tail.
        let gap = 1 + (self.next() >> 32) as u32 % (2 * self.mean);
        thread.slots.index.saturating_add(gap)
    }
}

/// Random priorities: who can run and has the highest runs, and at a few random points of the run the one
/// that runs gets the lowest (PCT). Finds what needs few preemptions, wherever they are; the seed decides
/// all.
pub struct Priorities {
    random: Random,
    /// By thread; higher than that of any change.
    initial: Vec<u64>,
    /// Threads whose priority was lowered, the lowest last.
    lowered: Vec<u32>,
    /// Events of the run after which the priority of the running thread is lowered, the next at the end.
    changes: Vec<u64>,
    /// Events of threads that are over.
    over: u64,
    /// Events of all threads when it was last asked.
    events: u64,
}

impl Priorities {
    /// How often a priority changes.
    const CHANGES: usize = 2;

    /// For a run of about so many events.
    pub fn new(seed: u64, events: u32) -> Self {
        let mut random = Random::new(seed, 1);
        let events = u64::from(events.max(1));
        let mut changes: Vec<u64> = (0..Self::CHANGES).map(|_| random.next() % events).collect();
        changes.sort_unstable_by(|one, two| two.cmp(one));
        let (initial, lowered) = (Vec::new(), Vec::new());
        Self { random, initial, lowered, changes, over: 0, events: 0 }
    }

    fn priority(&mut self, thread: u32) -> (bool, u64) {
        while self.initial.len() <= thread as usize {
            let priority = self.random.next();
            self.initial.push(priority);
        }
        match self.lowered.iter().position(|&lowered| lowered == thread) {
            Some(lowered) => (false, (self.lowered.len() - lowered) as u64),
            None => (true, self.initial[thread as usize]),
        }
    }
}

impl Policy for Priorities {
    fn choose(&mut self, threads: &Threads, current: usize) -> Choice {
        let events = (0..threads.len()).map(|p| u64::from(threads.get(p).slots.index));
        self.events = self.over + events.sum::<u64>();
        while self.changes.last().is_some_and(|&change| change <= self.events) {
            self.changes.pop();
            if current < threads.len() {
                let number = threads.get(current).number;
                self.lowered.retain(|&lowered| lowered != number);
                self.lowered.push(number);
            }
        }
        let can_run = |&position: &usize| threads.get(position).state == State::Runnable;
        let highest = (0..threads.len())
            .filter(can_run)
            .max_by_key(|&position| self.priority(threads.get(position).number));
        highest.map_or_else(|| fallback(threads), Choice::Run)
    }

    fn pause_at(&mut self, thread: &Thread) -> u32 {
        // A thread that comes into being may have a higher priority.
        const OFTEN: u64 = 8;
        let change = self.changes.last().map_or(OFTEN, |change| change.saturating_sub(self.events));
        thread.slots.index.saturating_add(change.clamp(1, OFTEN) as u32)
    }

    fn finished(&mut self, thread: &Thread) {
        self.over += u64::from(thread.slots.index);
    }
}

/// The policy that a text describes, as in `foretell_wire::environment::POLICY`.
pub fn parse(text: &str) -> Option<Box<dyn Policy>> {
    let mut parts = text.split(':');
    let policy: Box<dyn Policy> = match parts.next()? {
        "os" => Box::new(TimeSlices::new()),
        kind @ ("round-robin" | "goes-on") => {
            let quantum = parts.next()?.parse().ok()?;
            if quantum == 0 {
                return None;
            }
            Box::new(RoundRobin { quantum, goes_on: kind == "goes-on" })
        }
        "priorities" => {
            Box::new(Priorities::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        }
        "random" => Box::new(Random::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)),
        _ => return None,
    };
    parts.next().is_none().then_some(policy)
}
