//! Who runs next: schedules that are forced, and the base schedules behind them (`foretell_wire::base`).

use std::sync::OnceLock;
use std::time::Instant;

use foretell_wire::base::{Base, Candidate, Chosen, Clock};
use foretell_wire::standing::Sentence;
use foretell_wire::{ANY, Expected, Kind, Turn, is_local};

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
    LeftSchedule(Sentence),
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
    /// A thread that was woken from a futex for no reason, and how many events it had had.
    woken: Option<(u32, u32)>,
    /// Threads that went on up to their next event while another one was awaited, and how many they had had.
    helped: Vec<(u32, u32)>,
    base: Base,
}

/// Slices of 100 to 1000 microseconds.
const CLOCK: Clock = Clock { now: nanoseconds, shortest: 100_000, longest: 1_000_000, events: 256 };

/// Since this was first asked.
fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A thread as a base schedule sees it.
fn candidate(thread: &Thread) -> Candidate {
    Candidate {
        number: thread.number,
        index: thread.index,
        can_run: thread.state == State::Runnable,
        deadline: thread.deadline.filter(|_| thread.state == State::Blocked),
    }
}

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
        let base = Base::parse(base, CLOCK)?;
        let (over, helped) = (Vec::new(), Vec::new());
        Some(Self { turns, done: 0, over, expected, turn: None, woken: None, helped, base })
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
                let thread = |position: usize| candidate(threads[position]);
                match self.base.choose(threads.len(), thread, current) {
                    Chosen::Run(position) => Choice::Run(position),
                    Chosen::TimeOut(position) => Choice::TimeOut(position),
                    Chosen::Nobody => Choice::Nobody,
                }
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
            // Such a wait may end for no reason. That it began is no event, so that it may end before
            // what ended it then; but not again and again.
            State::Blocked
                if matches!(thread.wait, Wait::Futex(_))
                    && self.woken != Some((thread.number, thread.index)) =>
            {
                self.woken = Some((thread.number, thread.index));
                Choice::Run(position)
            }
            State::Blocked | State::Finished => {
                let what = thread.wait.describe();
                self.diverged(&format!("waits at event {} for {what}", thread.index))
            }
        }
    }

    /// Who may go on up to its next event while this thread is in a system call? In the run that the schedule is
    /// of, a thread may have come to a system call of its own that wakes this one (it writes to a pipe); that it did
    /// is no event. One that comes to an event instead leaves the schedule.
    pub fn helper(&self, threads: &[&Thread], awaited: usize) -> Option<usize> {
        let may = |(position, thread): (usize, &&Thread)| {
            let fresh = !self.helped.contains(&(thread.number, thread.index));
            // One that has not begun, or is in a function that is recognised, comes to an event next.
            let at_event = thread.index == 0 || thread.called_at == Some(thread.index);
            position != awaited && thread.state == State::Runnable && !at_event && fresh
        };
        threads.iter().enumerate().position(may)
    }

    /// The thread goes on, see [`Policy::helper`].
    pub fn helps(&mut self, thread: &Thread) {
        self.helped.push((thread.number, thread.index));
    }

    fn diverged(&self, reason: &str) -> Choice {
        let Some(turn) = self.turns.get(self.done) else { return Choice::Nobody };
        let should = format!(" should run up to its event {} but {reason}", turn.until);
        Choice::LeftSchedule(Sentence::default().thread(&turn.path).text(&should))
    }

    /// The thread is about to run: at which index must it ask again?
    pub fn pause_at(&mut self, thread: &Thread) -> u32 {
        match self.turns.get(self.done) {
            Some(turn) if turn.path == thread.path => turn.until,
            Some(_) => thread.index,
            None => self.base.pause_at(thread.index),
        }
    }

    /// Whether the thread has just done the last step of the schedule.
    pub fn is_last_step(&self, thread: &Thread) -> bool {
        let is_last = self.done + 1 == self.turns.len();
        let at_end = |turn: &Turn| turn.until == thread.index && turn.path == thread.path;
        is_last && self.turns.get(self.done).is_some_and(at_end)
    }

    /// The thread has had its last event.
    pub fn finished(&mut self, thread: &Thread) {
        self.over.push((thread.path.clone(), thread.index));
        self.base.finished(thread.index);
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
    pub fn check(&mut self, thread: &Thread, kind: Kind, detail: u8) -> Option<Sentence> {
        let index = thread.index - 1;
        let keyword = kind.keyword(detail);
        let shown = || {
            let event = Sentence::from(&*format!("event {index} of "));
            event.thread(&thread.path).text(&format!(" is {keyword}"))
        };
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
                return Some(shown().text(&format!(", not {}", next.keyword)));
            }
        }
        let (number, until) = self.turn?;
        // What follows the last turn is free.
        let last = self.done + 1 == self.turns.len();
        let past = number != thread.number || index >= until && !last;
        (past && !is_local(keyword)).then(|| {
            let why = "it belongs to the same instruction as the step before it";
            shown().text(", though its turn ends before: ").text(why)
        })
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
        let wrong = policy.check(&main, Kind::Write, 0).expect("not its turn").to_string();
        assert!(wrong.contains("its turn ends before"), "{wrong}");
        assert!(!policy.is_last_step(&worker));
        worker.index = 2;
        assert!(policy.is_last_step(&worker) && !policy.is_last_step(&main));
        assert_eq!(policy.choose(&[&main, &worker], 1), Choice::Run(0), "each in turn");
        assert_eq!(policy.pause_at(&main), 10);
    }

    #[test]
    fn what_cannot_be_followed_diverges() {
        let mut policy = Policy::new(vec![Turn::new(vec![1], 2)], "os").expect("a policy");
        let main = thread(0, &[], 0);
        let Choice::LeftSchedule(why) = policy.choose(&[&main], 0) else {
            panic!("no such thread")
        };
        assert!(why.to_string().contains("has not been created"), "{why}");
        policy.finished(&thread(1, &[1], 1));
        let Choice::LeftSchedule(why) = policy.choose(&[&main], 0) else { panic!("it is over") };
        assert!(why.to_string().contains("ended after 1 events"), "{why}");
        let expected = Expected { index: 0, keyword: "write".into(), line: 0, column: 0 };
        let turns = vec![Turn { expected: vec![expected], ..Turn::new(vec![], 1) }];
        let mut policy = Policy::new(turns, "os").expect("a policy");
        let wrong = policy.check(&thread(0, &[], 1), Kind::Read, 0).expect("another event");
        assert!(wrong.to_string().ends_with("is read, not write"), "{wrong}");
    }
}
