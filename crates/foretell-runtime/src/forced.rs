//! Obeying a schedule: the turns that are to be taken, and what is to happen in them (003's
//! rescheduling, 000's replay of a witness).
//!
//! [`Forced`] is the policy: it gives the turns in their order and says when one cannot be taken.
//! [`check`] sees every event while there are turns left: the event must be the one that the
//! schedule has there, and it must not lie past the end of its turn, which can happen where several
//! events are one step of the machine (a copy of memory). The first difference ends the run. Source
//! lines are compared where the pass gave them; where there is only a program counter the recorder
//! outside compares, after the fact.

use std::ffi::CStr;

use foretell_wire::limits::MOST_WAKES;
use foretell_wire::standing::Sentence;
use foretell_wire::{ANY, End, Expected, Kind, Turn, is_local};

use crate::channels::ipc;
use crate::policy::{Choice, Policy, Threads};
use crate::recorder::recorder;
use crate::scheduler;
use crate::thread::{State, Thread, Wait};
use crate::turn::TurnCell;

/// Takes the turns of a schedule, exactly; then goes on with another policy.
pub struct Forced {
    turns: Vec<Turn>,
    done: usize,
    /// Threads that are over, and how many events they had.
    over: Vec<(Vec<u32>, u32)>,
    /// The thread that was last woken from a futex although nobody woke it, its event then, and how
    /// often in a row.
    woken: (u32, u32, u32),
    after: Box<dyn Policy>,
}

/// What [`check`] knows.
struct Checks {
    /// The turn that is taken: the thread's number and the index at which it ends.
    turn: Option<(u32, u32)>,
    /// It is the last one.
    last: bool,
    /// By thread: how many events it has had, and what is expected of it, the next at the end.
    threads: Vec<(u32, Vec<Expected>)>,
    /// Of threads that are not there yet.
    unborn: Vec<(Vec<u32>, Vec<Expected>)>,
}

static CHECKS: TurnCell<Checks> =
    TurnCell::new(Checks { turn: None, last: false, threads: Vec::new(), unborn: Vec::new() });

/// A debugger stops here (`foretell replay --gdb`): the thread has just done the last step of the
/// schedule.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn foretell_violation_here() {
    // Something that the compiler can neither leave out nor merge with another function.
    std::hint::black_box(&CHECKS);
}

impl Forced {
    /// The turns, and what comes after them.
    pub fn new(mut turns: Vec<Turn>, after: Box<dyn Policy>) -> Self {
        // SAFETY: there is no thread yet.
        let checks = unsafe { CHECKS.get() };
        for turn in &mut turns {
            let expected = std::mem::take(&mut turn.expected);
            match checks.unborn.iter_mut().find(|(path, _)| *path == turn.path) {
                Some((_, all)) => all.extend(expected),
                None => checks.unborn.push((turn.path.clone(), expected)),
            }
        }
        for (_, expected) in &mut checks.unborn {
            expected.sort_by_key(|expected| std::cmp::Reverse(expected.index));
        }
        Self { turns, done: 0, over: Vec::new(), woken: (0, 0, 0), after }
    }

    /// The turn that comes next, past those that are done.
    fn turn(&mut self, threads: &Threads) -> Result<Option<usize>, String> {
        while let Some(turn) = self.turns.get(self.done) {
            let wanted = (0..threads.len()).find(|&p| threads.get(p).path == turn.path);
            if let Some(position) = wanted {
                if threads.get(position).slots.index < turn.until {
                    return Ok(Some(position));
                }
            } else {
                match self.over.iter().find(|(path, _)| *path == turn.path) {
                    Some(&(_, events)) if events >= turn.until => {}
                    Some((_, events)) => return Err(format!("ended after {events} events")),
                    None => return Err("has not been created".into()),
                }
            }
            self.done += 1;
        }
        Ok(None)
    }

    /// May the thread, which sleeps on a futex, be woken for no reason once more?
    fn may_wake(&mut self, thread: &Thread) -> bool {
        let here = (thread.number, thread.slots.index);
        let times = match self.woken {
            (number, index, times) if (number, index) == here => times + 1,
            _ => 1,
        };
        self.woken = (here.0, here.1, times);
        times <= MOST_WAKES
    }

    fn diverged(&self, reason: Sentence) -> Choice {
        let Some(turn) = self.turns.get(self.done) else { return Choice::Nobody };
        let until = format!(" should run up to its event {} but ", turn.until);
        Choice::LeftSchedule(Sentence::default().thread(&turn.path).text(&until).then(reason))
    }
}

impl Policy for Forced {
    fn choose(&mut self, threads: &Threads, current: usize) -> Choice {
        // SAFETY: who asks has the turn.
        let checks = unsafe { CHECKS.get() };
        let position = match self.turn(threads) {
            Ok(Some(position)) => position,
            Ok(None) => {
                checks.turn = None;
                // SAFETY: as above.
                unsafe { recorder() }.set_checked(false);
                return self.after.choose(threads, current);
            }
            Err(reason) => return self.diverged(Sentence::from(&*reason)),
        };
        let thread = threads.get(position);
        checks.turn = Some((thread.number, self.turns[self.done].until));
        checks.last = self.done + 1 == self.turns.len();
        match thread.state {
            State::Runnable => Choice::Run(position),
            // The process ends while others could still run.
            State::Blocked if thread.wait == Wait::Others => Choice::Run(position),
            State::External => Choice::Await(position),
            State::Blocked if thread.wait == Wait::Files && thread.deadline.is_none() => {
                Choice::Await(position)
            }
            State::Blocked if thread.deadline.is_some() => Choice::TimeOut(position),
            // A futex may wake a thread for no reason; but one that goes back to sleep every time
            // waits for somebody else.
            State::Blocked if matches!(thread.wait, Wait::Futex(_)) && self.may_wake(thread) => {
                Choice::Run(position)
            }
            // Another process may be what it waits for.
            State::Blocked if matches!(thread.wait, Wait::Kernel(key) if !ipc::is_private(key)) => {
                Choice::Await(position)
            }
            State::Blocked | State::Finished => {
                let waits = format!("waits at event {} for ", thread.slots.index);
                self.diverged(Sentence::from(&*waits).then(scheduler::waits_for(thread)))
            }
        }
    }

    fn pause_at(&mut self, thread: &Thread) -> u32 {
        match self.turns.get(self.done) {
            Some(turn) if turn.path == thread.path => turn.until,
            Some(_) => thread.slots.index,
            None => self.after.pause_at(thread),
        }
    }

    fn is_free(&self) -> bool {
        self.done == self.turns.len()
    }

    fn finished(&mut self, thread: &Thread) {
        self.over.push((thread.path.clone(), thread.slots.index));
        self.after.finished(thread);
    }
}

/// A thread comes into being: what is expected of it?
pub fn born(path: &[u32]) {
    // SAFETY: the creator has the turn.
    let checks = unsafe { CHECKS.get() };
    let known = checks.unborn.iter().position(|(unborn, _)| unborn == path);
    let expected = known.map(|at| checks.unborn.swap_remove(at).1).unwrap_or_default();
    checks.threads.push((0, expected));
}

/// Does the schedule have this as the next event of the thread?
pub fn expects(thread: u32, keyword: &str) -> bool {
    // SAFETY: who asks has the turn.
    let checks = unsafe { CHECKS.get() };
    let Some((count, expected)) = checks.threads.get(thread as usize) else { return false };
    let next = expected.iter().rev().find(|expected| expected.index >= *count);
    next.is_some_and(|next| next.index == *count && next.keyword == keyword)
}

/// An event of the thread was recorded. Ends the run if it is not the one that the schedule has.
#[cold]
pub fn check(thread: u32, kind: Kind, detail: u8, place: u64) {
    // SAFETY: whoever records has the turn.
    let checks = unsafe { CHECKS.get() };
    let Some((count, expected)) = checks.threads.get_mut(thread as usize) else { return };
    let index = *count;
    *count += 1;
    let keyword = kind.keyword(detail);
    while expected.last().is_some_and(|next| next.index < index) {
        expected.pop();
    }
    let position = position_of(place);
    if let Some(next) = expected.last()
        && next.index == index
        && next.keyword != ANY
        && (next.keyword != keyword || !agree((next.line, next.column), position))
    {
        stop(
            thread,
            index,
            keyword,
            position,
            &format!(", not {}", shown(&next.keyword, (next.line, next.column))),
        );
    }
    let Some((number, until)) = checks.turn else { return };
    // What follows the last turn is free.
    let past = number != thread || index >= until && !checks.last;
    if past && !is_local(keyword) {
        let why = ", though its turn ends before: it belongs to the same instruction as the step before it";
        stop(thread, index, keyword, position, why);
    }
    if checks.last && number == thread && index + 1 == until {
        foretell_violation_here();
    }
}

/// Line and column of a place that is a site of the pass. Schedules do not name places in the language's
/// library.
fn position_of(place: u64) -> Option<(u32, u32)> {
    // SAFETY: callers have the turn; a place that was defined as a site is one for good.
    let site =
        unsafe { recorder().has_site(place).then(|| &*(place as *const foretell_abi::Site))? };
    // SAFETY: a constant of the instrumented module.
    let file = unsafe { CStr::from_ptr(site.file) };
    let of_library = file.to_str().is_ok_and(foretell_wire::is_of_library);
    (!of_library).then_some((site.line, site.column))
}

/// Whether what is known of both does not differ.
fn agree(expected: (u32, u32), found: Option<(u32, u32)>) -> bool {
    let Some(found) = found else { return true };
    let same = |a: u32, b: u32| a == 0 || b == 0 || a == b;
    same(expected.0, found.0) && same(expected.1, found.1)
}

fn shown(keyword: &str, (line, column): (u32, u32)) -> String {
    match line {
        0 => keyword.to_owned(),
        _ => format!("{keyword} at line {line}:{column}"),
    }
}

fn stop(thread: u32, index: u32, keyword: &str, position: Option<(u32, u32)>, why: &str) -> ! {
    // SAFETY: callers have the turn.
    unsafe { recorder() }.set_checked(false);
    let is = format!(" is {}{why}", shown(keyword, position.unwrap_or_default()));
    let event = Sentence::from(&*format!("event {index} of "));
    scheduler::stop(End::LeftSchedule, &event.thread(&scheduler::path_of(thread)).text(&is))
}
