//! Who runs next: the policies of `foretell-runtime`, and schedules that are forced.

use std::time::Instant;

use foretell_wire::{ANY, Expected, Kind, Turn, format_path, is_local};

use crate::thread::{State, Thread, Wait};

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    /// This thread, by its position; it can run.
    Run(usize),
    /// This thread, as soon as it is back from its system call.
    Await(usize),
    /// This thread, whose wait ends by its deadline now.
    TimeOut(usize),
    /// No thread can run.
    Nobody,
    /// The program cannot do what the schedule says.
    Diverged(String),
}

/// What decides once no schedule is left.
enum Base {
    /// Time slices by the clock.
    Os { began: Instant, start: Instant },
    /// Each in turn for so many events; with the flag, whoever has the turn goes on first.
    RoundRobin { quantum: u32, goes_on: bool },
    /// At random, so many events on average.
    Random { random: Random, mean: u32 },
    /// By random priorities that change a few times.
    Priorities {
        random: Random,
        initial: Vec<u64>,
        lowered: Vec<u32>,
        changes: Vec<u64>,
        events: u64,
    },
}

/// A schedule, and what comes after it.
pub struct Policy {
    turns: Vec<Turn>,
    done: usize,
    /// Threads that are over, and how many events they had.
    over: Vec<(Vec<u32>, u32)>,
    /// What is expected of each thread, by creation path, the next at the end.
    expected: Vec<(Vec<u32>, Vec<Expected>)>,
    /// The turn that is taken: the thread's number and the index at which it ends.
    turn: Option<(u32, u32)>,
    base: Base,
}

/// A time slice: at first short, so that the threads of a short run meet.
const SHORTEST: u128 = 100_000;
const LONGEST: u128 = 1_000_000;

impl Policy {
    /// The turns, and then what the text says (as in `foretell_wire::environment::POLICY`).
    pub fn new(mut turns: Vec<Turn>, base: &str) -> Option<Self> {
        let mut expected: Vec<(Vec<u32>, Vec<Expected>)> = Vec::new();
        for turn in &mut turns {
            let more = std::mem::take(&mut turn.expected);
            match expected.iter_mut().find(|(path, _)| *path == turn.path) {
                Some((_, all)) => all.extend(more),
                None => expected.push((turn.path.clone(), more)),
            }
        }
        for (_, all) in &mut expected {
            all.sort_by_key(|expected| std::cmp::Reverse(expected.index));
        }
        let base = base_of(base)?;
        Some(Self { turns, done: 0, over: Vec::new(), expected, turn: None, base })
    }

    /// Whether a schedule is left to follow.
    pub fn is_forced(&self) -> bool {
        self.done < self.turns.len()
    }

    /// Who goes next? `current` asks.
    pub fn choose(&mut self, threads: &[&Thread], current: usize) -> Choice {
        match self.next_turn(threads) {
            Ok(Some(position)) => self.take(threads[position], position),
            Ok(None) => {
                self.turn = None;
                self.base.choose(threads, current)
            }
            Err(reason) => self.diverged(&reason),
        }
    }

    /// The turn that comes next, past those that are done.
    fn next_turn(&mut self, threads: &[&Thread]) -> Result<Option<usize>, String> {
        while let Some(turn) = self.turns.get(self.done) {
            match threads.iter().position(|thread| thread.path == turn.path) {
                Some(position) if threads[position].index < turn.until => {
                    return Ok(Some(position));
                }
                Some(_) => {}
                None => match self.over.iter().find(|(path, _)| *path == turn.path) {
                    Some((_, events)) if *events >= turn.until => {}
                    Some((_, events)) => return Err(format!("ended after {events} events")),
                    None => return Err("has not been created".into()),
                },
            }
            self.done += 1;
        }
        Ok(None)
    }

    fn take(&mut self, thread: &Thread, position: usize) -> Choice {
        self.turn = Some((thread.number, self.turns[self.done].until));
        match thread.state {
            State::Runnable => Choice::Run(position),
            State::Blocked if thread.wait == Wait::Others => Choice::Run(position),
            State::External => Choice::Await(position),
            State::Blocked if thread.deadline.is_some() => Choice::TimeOut(position),
            State::Blocked | State::Finished => {
                let what = thread.wait.describe();
                self.diverged(&format!("waits at event {} for {what}", thread.index))
            }
        }
    }

    fn diverged(&self, reason: &str) -> Choice {
        let Some(turn) = self.turns.get(self.done) else { return Choice::Nobody };
        let (path, until) = (format_path(&turn.path), turn.until);
        Choice::Diverged(format!("thread {path} should run up to its event {until} but {reason}"))
    }

    /// The thread is about to run: at which index must it ask again?
    pub fn pause_at(&mut self, thread: &Thread) -> u32 {
        match self.turns.get(self.done) {
            Some(turn) if turn.path == thread.path => turn.until,
            Some(_) => thread.index,
            None => self.base.pause_at(thread.index),
        }
    }

    /// The thread has had its last event.
    pub fn finished(&mut self, thread: &Thread) {
        self.over.push((thread.path.clone(), thread.index));
    }

    /// Does the schedule have this as the next event of the thread?
    pub fn expects(&self, thread: &Thread, keyword: &str) -> bool {
        let all = self.expected.iter().find(|(path, _)| *path == thread.path);
        let next =
            all.and_then(|(_, all)| all.iter().rev().find(|next| next.index >= thread.index));
        next.is_some_and(|next| next.index == thread.index && next.keyword == keyword)
    }

    /// An event of the thread was recorded; it is the last that `thread.index` counts. Says in what it
    /// differs from the schedule.
    pub fn check(&mut self, thread: &Thread, kind: Kind, detail: u8) -> Option<String> {
        let index = thread.index - 1;
        let keyword = kind.keyword(detail);
        let shown =
            || format!("event {index} of thread {} is {keyword}", format_path(&thread.path));
        let all = self.expected.iter_mut().find(|(path, _)| *path == thread.path);
        if let Some((_, all)) = all {
            while all.last().is_some_and(|next| next.index < index) {
                all.pop();
            }
            if let Some(next) = all.last()
                && next.index == index
                && next.keyword != ANY
                && next.keyword != keyword
            {
                return Some(format!("{}, not {}", shown(), next.keyword));
            }
        }
        let (number, until) = self.turn?;
        // What follows the last turn is free.
        let last = self.done + 1 == self.turns.len();
        let past = number != thread.number || index >= until && !last;
        (past && !is_local(keyword)).then(|| {
            let why = "it is one step of the machine with what came first";
            format!("{}, though its turn ends before: {why}", shown())
        })
    }
}

impl Base {
    fn choose(&mut self, threads: &[&Thread], current: usize) -> Choice {
        let can_run = |position: usize| threads[position].state == State::Runnable;
        let from = |start: usize| {
            (0..threads.len()).map(|offset| (start + offset) % threads.len()).find(|&p| can_run(p))
        };
        let chosen = match self {
            Base::Os { began, start } => {
                let slice = (start.elapsed().as_nanos() / 64).clamp(SHORTEST, LONGEST);
                let stays = current < threads.len() && can_run(current);
                if stays && began.elapsed().as_nanos() < slice {
                    return Choice::Run(current);
                }
                *began = Instant::now();
                from(current + 1)
            }
            Base::RoundRobin { goes_on, .. } => {
                let next = if std::mem::take(goes_on) { current } else { current + 1 };
                from(next)
            }
            Base::Random { random, .. } => {
                let able: Vec<usize> = (0..threads.len()).filter(|&p| can_run(p)).collect();
                match able.len() {
                    0 => None,
                    count => Some(able[(random.next() % count as u64) as usize]),
                }
            }
            Base::Priorities { random, initial, lowered, changes, events } => {
                *events = threads.iter().map(|thread| u64::from(thread.index)).sum();
                while changes.last().is_some_and(|&change| change <= *events) {
                    changes.pop();
                    if let Some(thread) = threads.get(current) {
                        lowered.retain(|&number| number != thread.number);
                        lowered.push(thread.number);
                    }
                }
                let mut priority = |number: u32| {
                    while initial.len() <= number as usize {
                        initial.push(random.next());
                    }
                    match lowered.iter().position(|&lowered| lowered == number) {
                        Some(place) => (false, (lowered.len() - place) as u64),
                        None => (true, initial[number as usize]),
                    }
                };
                (0..threads.len())
                    .filter(|&p| can_run(p))
                    .max_by_key(|&p| priority(threads[p].number))
            }
        };
        chosen.map_or_else(|| earliest(threads), Choice::Run)
    }

    fn pause_at(&mut self, index: u32) -> u32 {
        let events = match self {
            Base::Os { .. } => 256,
            Base::RoundRobin { quantum, .. } => *quantum,
            // Uniform in 1..=2*mean.
            Base::Random { random, mean } => 1 + (random.next() >> 32) as u32 % (2 * *mean),
            Base::Priorities { changes, events, .. } => {
                let change = changes.last().map_or(8, |change| change.saturating_sub(*events));
                change.clamp(1, 8) as u32
            }
        };
        index.saturating_add(events)
    }
}

/// Nobody can run: the one whose deadline is next.
fn earliest(threads: &[&Thread]) -> Choice {
    let sleeping = (0..threads.len())
        .filter(|&position| threads[position].state == State::Blocked)
        .filter_map(|position| Some((threads[position].deadline?, position)))
        .min();
    sleeping.map_or(Choice::Nobody, |(_, position)| Choice::TimeOut(position))
}

fn base_of(text: &str) -> Option<Base> {
    let mut parts = text.split(':');
    let kind = parts.next()?;
    let mut number = || parts.next()?.parse::<u64>().ok();
    let base = match kind {
        "os" => Base::Os { began: Instant::now(), start: Instant::now() },
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
            let mut random = Random::new(number()?);
            let run = number()?.max(1);
            let mut changes: Vec<u64> = (0..2).map(|_| random.next() % run).collect();
            changes.sort_unstable_by(|one, two| two.cmp(one));
            let (initial, lowered) = (Vec::new(), Vec::new());
            Base::Priorities { random, initial, lowered, changes, events: 0 }
        }
        _ => return None,
    };
    parts.next().is_none().then_some(base)
}

/// Numbers that a seed decides (xorshift with a multiplication, Marsaglia and Vigna).
struct Random(u64);

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

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(number: u32, path: &[u32], index: u32) -> Thread {
        let mut thread = Thread::new(number, path.to_vec());
        thread.index = index;
        thread
    }

    #[test]
    fn a_schedule_is_followed_and_what_differs_is_said() {
        let expected = Expected { index: 3, keyword: "read".into(), line: 0, column: 0 };
        let turns =
            vec![Turn { expected: vec![expected], ..Turn::new(vec![], 4) }, Turn::new(vec![0], 2)];
        let mut policy = Policy::new(turns, "round-robin:5").expect("a policy");
        let (mut main, mut worker) = (thread(0, &[], 3), thread(1, &[0], 1));
        assert_eq!(policy.choose(&[&main, &worker], 1), Choice::Run(0));
        assert_eq!(policy.pause_at(&main), 4);
        assert!(policy.expects(&main, "read"));
        main.index = 4;
        assert_eq!(policy.check(&main, Kind::Read, 0), None);
        assert_eq!(policy.choose(&[&main, &worker], 0), Choice::Run(1));
        main.index = 5;
        let wrong = policy.check(&main, Kind::Write, 0).expect("not its turn");
        assert!(wrong.contains("its turn ends before"), "{wrong}");
        worker.index = 2;
        assert_eq!(policy.choose(&[&main, &worker], 1), Choice::Run(0), "each in turn");
        assert_eq!(policy.pause_at(&main), 10);
    }

    #[test]
    fn what_cannot_be_followed_diverges() {
        let mut policy = Policy::new(vec![Turn::new(vec![1], 2)], "os").expect("a policy");
        let main = thread(0, &[], 0);
        let Choice::Diverged(why) = policy.choose(&[&main], 0) else { panic!("no such thread") };
        assert!(why.contains("has not been created"), "{why}");
        policy.finished(&thread(1, &[1], 1));
        let Choice::Diverged(why) = policy.choose(&[&main], 0) else { panic!("it is over") };
        assert!(why.contains("ended after 1 events"), "{why}");
        let expected = Expected { index: 0, keyword: "write".into(), line: 0, column: 0 };
        let turns = vec![Turn { expected: vec![expected], ..Turn::new(vec![], 1) }];
        let mut policy = Policy::new(turns, "os").expect("a policy");
        let wrong = policy.check(&thread(0, &[], 1), Kind::Read, 0).expect("another event");
        assert!(wrong.ends_with("is read, not write"), "{wrong}");
    }

    #[test]
    fn texts_that_name_no_policy_are_refused() {
        for text in ["", "os:1", "round-robin", "round-robin:0", "random:1", "priorities:x:1"] {
            assert!(Policy::new(Vec::new(), text).is_none(), "{text}");
        }
        for text in ["os", "goes-on:3", "random:7:20", "priorities:1:100"] {
            assert!(Policy::new(Vec::new(), text).is_some(), "{text}");
        }
    }
}
