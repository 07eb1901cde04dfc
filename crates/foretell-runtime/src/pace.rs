//! How virtual time keeps pace with what threads do, so that sleepers get their turn beside threads
//! that never block.
//!
//! Time jumps to the next deadline when nobody can run (`scheduler`). Two more rules:
//! - *Spinners*: when all threads that can run only look at the same memory again and again, time
//!   jumps, too. Nobody but a sleeper can change what they wait for.
//! - *Work*: a thread that merely sleeps is woken when the others have done as much as they might in
//!   that time ([`WORK_OF_A_MICROSECOND`], and never before [`LEAST_WORK`]). This is much less than a
//!   processor does, as recorded work is slow, and enough that watchdogs of a program do not fire.
//!
//! Waits for an event with a time limit are not cut short by work: their time is measured against
//! other things than that.

use foretell_wire::again::Short;
use foretell_wire::limits::LONGEST_LOOP;
use foretell_wire::{Kind, measure};

use crate::recorder::Recorder;
use crate::sys;
use crate::thread::{State, Thread, Wait};

/// Events of other threads that make a microsecond of a sleep.
const WORK_OF_A_MICROSECOND: u64 = 1;
/// Events of other threads that the shortest sleep lasts.
const LEAST_WORK: u64 = 100_000;
/// Events in a row without anything new after which a thread spins. That a loop would have given up
/// soon does no harm: time passes at any moment.
const SPINS: u64 = 500;
/// While somebody sleeps, a thread is looked at after so many events.
const LOOK_AFTER: u32 = 256;
/// A turn counts as so many events, at least: some threads yield whenever they have looked.
const LEAST_OF_A_TURN: u64 = 64;
/// Records that are compared.
const COMPARED: usize = 48;
/// The deadline to which time jumps though threads can run, if it does. `real`: somebody waits for the
/// outside, so that the time has to be over there, too.
pub fn deadline(threads: &[*mut Thread], work: u64, real: impl FnOnce() -> bool) -> Option<u64> {
    let thread = sleeper_to_wake(threads, work)?;
    let deadline = thread.deadline?;
    let left = || {
        let passed = sys::clock(libc::CLOCK_MONOTONIC).saturating_sub(thread.waits_since.real);
        deadline.saturating_sub(thread.waits_since.time) > passed
    };
    (!(real() && left())).then_some(deadline)
}

fn sleeper_to_wake(threads: &[*mut Thread], work: u64) -> Option<&Thread> {
    // SAFETY: live threads; the caller has the turn.
    let all = || threads.iter().map(|&thread| unsafe { &*thread });
    let waiting = || all().filter(|thread| thread.state == State::Blocked);
    let mut runnable = all().filter(|thread| thread.state == State::Runnable).peekable();
    if runnable.peek().is_some() && runnable.all(|thread| thread.spun >= SPINS) {
        return waiting().filter(|thread| thread.deadline.is_some()).min_by_key(|t| t.deadline);
    }
    let slept = |thread: &&Thread| {
        let before = thread.waits_since;
        let duration = thread.deadline.map_or(0, |at| at.saturating_sub(before.time));
        let enough = (duration / 1_000).saturating_mul(WORK_OF_A_MICROSECOND).max(LEAST_WORK);
        thread.wait == Wait::Time && work.saturating_sub(before.work) >= enough
    };
    waiting().filter(slept).min_by_key(|thread| thread.deadline)
}

fn somebody_sleeps(threads: &[*mut Thread]) -> bool {
    // SAFETY: live threads; the caller has the turn.
    let sleeps = |&thread: &*mut Thread| unsafe {
        (*thread).state == State::Blocked && (*thread).deadline.is_some()
    };
    threads.iter().any(sleeps)
}

/// The turn of the thread begins; it will ask at `asks_at`. Gives the index up to which it may run.
pub fn begin_turn(threads: &[*mut Thread], me: &mut Thread, asks_at: u32) -> u32 {
    me.asks_at = asks_at;
    me.looked_at = me.slots.index;
    match somebody_sleeps(threads) {
        true => asks_at.min(me.slots.index.saturating_add(LOOK_AFTER)),
        false => asks_at,
    }
}

/// The thread has come to the index that [`begin_turn`] or this gave. Gives the next one if it need
/// not ask yet.
pub fn look(threads: &[*mut Thread], me: &mut Thread, recorder: &mut Recorder) -> Option<u32> {
    if me.slots.index >= me.asks_at {
        return None;
    }
    note(threads, me, recorder);
    if me.spun >= SPINS {
        me.looked = true;
        return None;
    }
    Some(me.asks_at.min(me.slots.index.saturating_add(LOOK_AFTER)))
}

/// Notes whether the thread did anything new since it was looked at. `threads` are all of them.
pub fn note(threads: &[*mut Thread], me: *mut Thread, recorder: &mut Recorder) {
    // SAFETY: the states of threads are never freed, and this one has the turn.
    let looked = unsafe { std::mem::take(&mut (*me).looked) };
    if looked || !somebody_sleeps(threads) {
        return; // known already, or nobody asks
    }
    // SAFETY: as above.
    let events = unsafe {
        let events = (*me).slots.index.wrapping_sub((*me).looked_at);
        (*me).looked_at = (*me).slots.index;
        u64::from(events)
    };
    let shape = Shape::of(recorder.words_of_turn(), recorder);
    recorder.forget_words_of_turn();
    // SAFETY: as above.
    unsafe {
        let same = (*me).last_turn == shape.whole;
        (*me).last_turn = shape.whole;
        if shape.repeats || same {
            (*me).spun += events.max(LEAST_OF_A_TURN);
        } else {
            // It may have changed what others look at.
            threads.iter().for_each(|&thread| (*thread).spun = 0);
            (*me).spun = 0;
        }
    }
}

/// What the records of a turn look like, whatever their shadows are.
struct Shape {
    /// All of them; 0 if they are not known.
    whole: u64,
    /// The last ones are a loop.
    repeats: bool,
}

impl Shape {
    fn of(words: &[u64], recorder: &Recorder) -> Shape {
        let mut last = [0; COMPARED];
        let (mut count, mut at) = (0, 0);
        let mut whole: u64 = 1;
        while at < words.len()
            && let Some((kind, _, length)) = measure(&words[at..])
        {
            let record = &words[at..at + length];
            at += length;
            if let Some(mark) = mark(kind, record, recorder) {
                last[count % COMPARED] = mark;
                count += 1;
                whole = (whole ^ mark).wrapping_mul(0x0100_0000_01b3);
            }
        }
        last.rotate_left(count % COMPARED);
        let is_loop = |period: usize| last[period..].iter().zip(&last).all(|(a, b)| a == b);
        let repeats = count >= COMPARED && (1..=LONGEST_LOOP).any(is_loop);
        Shape { whole, repeats }
    }
}

/// What is compared of a record; none of what only defines something.
fn mark(kind: Kind, record: &[u64], recorder: &Recorder) -> Option<u64> {
    let mix = |a: u64, b: u64| (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if let Some(short) = Short::from_word(record[0]) {
        let (head, address) = recorder.long(short)?;
        let is_branch = head as u8 == Kind::Branch as u8;
        let value = short.value().unwrap_or_else(|| record[1]);
        return Some(mix(mix(head, address), if is_branch { 0 } else { value }));
    }
    match kind {
        Kind::Branch | Kind::Assert => Some(record[0]),
        _ if kind.is_event() => Some(record.iter().fold(0, |all, &word| mix(all, word))),
        _ => None,
    }
}
