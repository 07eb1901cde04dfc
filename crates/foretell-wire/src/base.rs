//! Who runs next where no schedule says: the base schedules of the runtime and of the plugin for QEMU, and the
//! texts that name them ([`crate::environment::POLICY`]).
//!
//! It is asked when the running thread comes to the index at which it had to ask again, and when it cannot go
//! on. Between two questions a thread runs on without any cost but one comparison.

/// What is seen of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Counted from 0 in the order of creation.
    pub number: u32,
    /// How many events it has had.
    pub index: u32,
    /// It can run.
    pub can_run: bool,
    /// It cannot run before something happens, and at this moment at the latest.
    pub deadline: Option<u64>,
}

/// An answer: a thread by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// This one; it can run.
    Run(usize),
    /// This one, whose wait ends by its deadline now.
    TimeOut(usize),
    /// No thread can run.
    Nobody,
}

/// The real clock, for time slices.
#[derive(Clone, Copy)]
pub struct Clock {
    /// What it says.
    pub now: fn() -> u64,
    /// The shortest slice: so long that the threads of a short run meet.
    pub shortest: u64,
    /// The longest slice, which those of a long run have: to pass the turn costs some ten microseconds.
    pub longest: u64,
    /// After so many events it is looked at again.
    pub events: u32,
}

/// A base schedule.
pub enum Base {
    /// `os`: as the operating system would. A thread runs until it blocks or its time slice, measured by the
    /// real clock, is over.
    TimeSlices {
        /// The clock.
        clock: Clock,
        /// When the run began.
        start: u64,
        /// When the slice began.
        began: u64,
    },
    /// `round-robin:QUANTUM` and `goes-on:QUANTUM`: every thread in turn for a fixed number of its events.
    RoundRobin {
        /// Events a turn.
        quantum: u32,
        /// Whoever has the turn when it is asked for the first time keeps it, if it can.
        goes_on: bool,
    },
    /// `random:SEED:MEAN`: switches at random points, to a random thread; the seed decides all.
    Random {
        /// Where numbers come from.
        random: Random,
        /// Events of a turn, on average.
        mean: u32,
    },
    /// `priorities:SEED:EVENTS`
    Priorities(Priorities),
}

impl Base {
    /// The one that a text names; `None` where it names none.
    pub fn parse(text: &str, clock: Clock) -> Option<Base> {
        let mut parts = text.split(':');
        let kind = parts.next()?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let base = match kind {
            "os" => {
                let now = (clock.now)();
                Base::TimeSlices { clock, start: now, began: now }
            }
            "round-robin" | "goes-on" => {
                let quantum = u32::try_from(number()?).ok().filter(|&quantum| quantum > 0)?;
                Base::RoundRobin { quantum, goes_on: kind == "goes-on" }
            }
            "random" => {
                let random = Random::new(number()?);
                let mean = u32::try_from(number()?).ok()?.clamp(1, u32::MAX / 2);
                Base::Random { random, mean }
            }
            "priorities" => {
                let seed = number()?;
                Base::Priorities(Priorities::new(seed, u32::try_from(number()?).ok()?))
            }
            _ => return None,
        };
        parts.next().is_none().then_some(base)
    }

    /// Who goes next, of so many threads? `current` asks; it is one of them unless it has finished.
    pub fn choose(
        &mut self,
        count: usize,
        thread: impl Fn(usize) -> Candidate,
        current: usize,
    ) -> Chosen {
        let can_run = |&position: &usize| thread(position).can_run;
        let from = |start: usize| (0..count).map(|offset| (start + offset) % count).find(can_run);
        let chosen = match self {
            Base::TimeSlices { clock, start, began } => {
                let now = (clock.now)();
                let passed = now.wrapping_sub(*start) / 64;
                let slice = passed.clamp(clock.shortest, clock.longest);
                let stays = current < count && can_run(&current);
                if stays && now.wrapping_sub(*began) < slice {
                    return Chosen::Run(current);
                }
                *began = now;
                from(current + 1)
            }
            Base::RoundRobin { goes_on, .. } => {
                from(if std::mem::take(goes_on) { current } else { current + 1 })
            }
            Base::Random { random, .. } => match (0..count).filter(can_run).count() {
                0 => None,
                able => {
                    let which = (random.next() % able as u64) as usize;
                    (0..count).filter(can_run).nth(which)
                }
            },
            Base::Priorities(priorities) => priorities.choose(count, &thread, current),
        };
        chosen.map_or_else(|| earliest(count, thread), Chosen::Run)
    }

    /// A thread that has had so many events is about to run: at which index must it ask again?
    pub fn pause_at(&mut self, index: u32) -> u32 {
        let events = match self {
            Base::TimeSlices { clock, .. } => clock.events,
            Base::RoundRobin { quantum, .. } => *quantum,
            // Uniform in 1..=2*mean: the same mean as a coin at every point, without its long tail.
            Base::Random { random, mean } => 1 + (random.next() >> 32) as u32 % (2 * *mean),
            Base::Priorities(priorities) => priorities.next_change(),
        };
        index.saturating_add(events)
    }

    /// A thread with so many events has had its last one.
    pub fn finished(&mut self, index: u32) {
        if let Base::Priorities(priorities) = self {
            priorities.over += u64::from(index);
        }
    }
}

/// Nobody can run: the one whose deadline is next.
fn earliest(count: usize, thread: impl Fn(usize) -> Candidate) -> Chosen {
    let sleeping = (0..count).filter_map(|position| Some((thread(position).deadline?, position)));
    sleeping.min().map_or(Chosen::Nobody, |(_, position)| Chosen::TimeOut(position))
}

/// Numbers that a seed decides (xorshift with a multiplication, Marsaglia and Vigna).
pub struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
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
    fn new(seed: u64, events: u32) -> Self {
        let mut random = Random::new(seed);
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

    fn choose(
        &mut self,
        count: usize,
        thread: &impl Fn(usize) -> Candidate,
        current: usize,
    ) -> Option<usize> {
        let events = (0..count).map(|position| u64::from(thread(position).index));
        self.events = self.over + events.sum::<u64>();
        while self.changes.last().is_some_and(|&change| change <= self.events) {
            self.changes.pop();
            if current < count {
                let number = thread(current).number;
                self.lowered.retain(|&lowered| lowered != number);
                self.lowered.push(number);
            }
        }
        let able = (0..count).map(thread).enumerate().filter(|(_, thread)| thread.can_run);
        able.max_by_key(|(_, thread)| self.priority(thread.number)).map(|(position, _)| position)
    }

    /// Events until it has to be asked again.
    fn next_change(&self) -> u32 {
        // A thread that comes into being may have a higher priority.
        const OFTEN: u64 = 8;
        let change = self.changes.last().map_or(OFTEN, |change| change.saturating_sub(self.events));
        change.clamp(1, OFTEN) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock { now: || 0, shortest: 10, longest: 20, events: 100 };

    fn base(text: &str) -> Base {
        Base::parse(text, CLOCK).unwrap_or_else(|| panic!("`{text}` names one"))
    }

    /// Threads of which these can run.
    fn threads(able: &[bool]) -> impl Fn(usize) -> Candidate + '_ {
        |position| Candidate {
            number: position as u32,
            index: 10,
            can_run: able[position],
            deadline: (!able[position]).then_some(100 - position as u64),
        }
    }

    #[test]
    fn each_in_turn_past_those_that_cannot_run() {
        let mut base = base("round-robin:5");
        assert_eq!(base.choose(3, threads(&[true, false, true]), 0), Chosen::Run(2));
        assert_eq!(base.choose(3, threads(&[true, false, true]), 2), Chosen::Run(0));
        assert_eq!(base.pause_at(7), 12);
    }

    #[test]
    fn whoever_goes_on_does_so_once() {
        let mut base = base("goes-on:5");
        assert_eq!(base.choose(2, threads(&[true, true]), 1), Chosen::Run(1));
        assert_eq!(base.choose(2, threads(&[true, true]), 1), Chosen::Run(0));
    }

    #[test]
    fn a_slice_is_kept_until_it_is_over() {
        let mut base = base("os");
        assert_eq!(base.choose(2, threads(&[true, true]), 0), Chosen::Run(0));
        if let Base::TimeSlices { began, .. } = &mut base {
            *began = began.wrapping_sub(10);
        }
        assert_eq!(base.choose(2, threads(&[true, true]), 0), Chosen::Run(1));
    }

    #[test]
    fn nobody_can_run_but_whose_time_comes() {
        for text in ["os", "round-robin:1", "random:1:2", "priorities:1:9"] {
            let chosen = base(text).choose(2, threads(&[false, false]), 0);
            assert_eq!(chosen, Chosen::TimeOut(1), "{text}");
            let stuck = |_| Candidate { number: 0, index: 0, can_run: false, deadline: None };
            assert_eq!(base(text).choose(2, stuck, 0), Chosen::Nobody, "{text}");
        }
    }

    #[test]
    fn a_seed_decides_all() {
        for text in ["random:3:4", "priorities:3:40"] {
            let run = || {
                let mut base = base(text);
                let able = [true; 4];
                let step = |_| (base.choose(4, threads(&able), 0), base.pause_at(0));
                (0..20).map(step).collect::<Vec<_>>()
            };
            assert_eq!(run(), run(), "{text}");
            assert!(run().iter().all(|&(_, events)| (1..=8).contains(&events)), "{text}");
        }
    }

    #[test]
    fn texts_that_name_none_are_refused() {
        for text in ["", "os:1", "round-robin", "round-robin:0", "random:1", "priorities:x:1"] {
            assert!(Base::parse(text, CLOCK).is_none(), "{text}");
        }
    }
}
