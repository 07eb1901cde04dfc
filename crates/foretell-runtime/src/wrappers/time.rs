//! Clocks and sleeping: virtual time under the scheduler.
//!
//! What a clock gives is an input of the program. Virtual time begins when the executable was
//! built, so that every run of it sees the same times; it moves with the scheduler and jumps when
//! only sleepers are left, so a run takes no longer than its work. Processor time and the counter of
//! cycles are virtual, too: what was used is what has passed.

use std::collections::BTreeSet;

use foretell_wire::outside::Cause;
use foretell_wire::record;
use libc::{c_int, c_uint, c_void, clockid_t, time_t, timespec, timeval};

use super::blocking::written;
use super::fail;
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler::{self, scheduler};
use crate::sys;
use crate::thread::{Session, Wait};
use crate::turn::TurnCell;

const SECOND: u64 = 1_000_000_000;

/// An event for a value that came from outside.
pub fn input(session: &mut Session, source: &str, value: u64) {
    session.record(0, &record::Input { value, source });
}

/// Where virtual time began on this clock; `None` for clocks that stay real.
fn start_of(clock: clockid_t) -> Option<u64> {
    // SAFETY: callers have the turn.
    let scheduler = unsafe { scheduler() };
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
            Some(scheduler.real_start)
        }
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => Some(scheduler.monotonic_start),
        libc::CLOCK_REALTIME_ALARM => Some(scheduler.real_start),
        libc::CLOCK_BOOTTIME_ALARM => Some(scheduler.monotonic_start),
        // Processor time, also by the names that `clock_getcpuclockid` gives.
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => Some(0),
        ..0 => Some(0),
        _ => None,
    }
}

fn nanoseconds(time: &timespec) -> u64 {
    (time.tv_sec.max(0) as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec.max(0) as u64)
}

/// The point in virtual time that the program's point in time is.
pub fn deadline_of(clock: clockid_t, until: *const timespec) -> u64 {
    // SAFETY: the program passes a point in time.
    let until = nanoseconds(unsafe { &*until });
    until.saturating_sub(start_of(clock).unwrap_or_else(|| sys::clock(clock)))
}

/// The point in virtual time that is so long from now.
pub fn deadline_in(duration: *const timespec) -> u64 {
    // SAFETY: the program passes a duration.
    scheduler::now().saturating_add(nanoseconds(unsafe { &*duration }))
}

/// Sleeps until the virtual time. Gives how much was left when a signal handler cut it short.
fn sleep_until(mut session: Session, deadline: u64) -> Option<u64> {
    session.point();
    scheduler::block(session.me, Wait::Time, Some(deadline));
    let left = session.me.handled.then(|| deadline.saturating_sub(scheduler::now()));
    super::threads::act_on_cancellation(session);
    left
}

fn sleep_some(session: Session, duration: u64) -> Option<u64> {
    let deadline = scheduler::now().saturating_add(duration);
    sleep_until(session, deadline)
}

/// Tells the program how much was left of a sleep.
unsafe fn tell_left(left: u64, remaining: *mut timespec) {
    if !remaining.is_null() {
        // SAFETY: the program's own.
        unsafe {
            (*remaining).tv_sec = (left / SECOND) as time_t;
            (*remaining).tv_nsec = (left % SECOND) as i64;
        }
    }
}

fn time_of(session: &mut Session, clock: clockid_t, source: &str) -> u64 {
    // SAFETY: a session has the turn.
    let comparisons = unsafe { COMPARED.get() };
    if comparisons.readers.insert(session.me.number) {
        comparisons.say();
    }
    if let Some((result, bytes)) = replay::input(session.me) {
        let time = logged_time(result, &bytes, source);
        input(session, source, time);
        return time;
    }
    let time = match start_of(clock) {
        Some(start) => start + scheduler::shown_time(session.me),
        None => sys::clock(clock),
    };
    input(session, source, time);
    time
}

/// A comparison with a clock matters where one thread looked at a clock and another one waited for time to pass: in
/// another interleaving the clock may show that.
static COMPARED: TurnCell<Comparisons> = TurnCell::new(Comparisons {
    readers: BTreeSet::new(),
    waiters: BTreeSet::new(),
    waiting: Vec::new(),
});

struct Comparisons {
    /// Threads that looked at a clock.
    readers: BTreeSet<u32>,
    /// Threads that waited until a time.
    waiters: BTreeSet<u32>,
    /// Comparisons that do not matter yet, with their threads.
    waiting: Vec<(u32, String)>,
}

impl Comparisons {
    /// Says which comparisons were not varied.
    fn say(&mut self) {
        let differs = |waiter: &u32| self.readers.iter().any(|reader| reader != waiter);
        if self.waiters.iter().any(differs) {
            for (thread, text) in self.waiting.drain(..) {
                outside::note(thread, Cause::HeldOutcome, 0, &text, 0);
            }
        }
    }
}

/// The thread compares with what a clock showed.
pub fn compared(thread: u32, text: String) {
    // SAFETY: callers have the turn.
    let comparisons = unsafe { COMPARED.get() };
    comparisons.waiting.push((thread, text));
    comparisons.say();
}

/// The thread waited until a time.
pub fn waited_for(thread: u32) {
    // SAFETY: callers have the turn.
    let comparisons = unsafe { COMPARED.get() };
    if comparisons.waiters.insert(thread) {
        comparisons.say();
    }
}

/// What the counter of cycles shows: some that a processor of today could.
pub fn cycles(session: &mut Session) -> u64 {
    time_of(session, libc::CLOCK_MONOTONIC, "rdtsc").wrapping_mul(3)
}

/// Nanoseconds as the C library's pair.
fn pair(nanoseconds: u64) -> timeval {
    let tv_usec = (nanoseconds % SECOND / 1_000) as i64;
    timeval { tv_sec: (nanoseconds / SECOND) as time_t, tv_usec }
}

/// The time that a log has, in nanoseconds: as the function gave it.
fn logged_time(result: u64, bytes: &[u8], source: &str) -> u64 {
    let word = |at: usize| {
        let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
        part.map_or(0, u64::from_le_bytes)
    };
    match source {
        "time" => result.wrapping_mul(SECOND),
        "gettimeofday" => word(0).wrapping_mul(SECOND).wrapping_add(word(8).wrapping_mul(1_000)),
        _ => word(0).wrapping_mul(SECOND).wrapping_add(word(8)),
    }
}

interpose! {
    fn nanosleep as sleep_for(duration: *const timespec, remaining: *mut timespec) -> c_int {
        match Session::begin() {
            None => real!(nanosleep(
                duration: *const timespec, remaining: *mut timespec) -> c_int),
            Some(_) if (*duration).tv_nsec as u64 >= SECOND || (*duration).tv_sec < 0 => {
                fail(libc::EINVAL)
            }
            Some(session) => {
                let Some(left) = sleep_some(session, nanoseconds(&*duration)) else { return 0 };
                tell_left(left, remaining);
                fail(libc::EINTR)
            }
        }
    }

    fn clock_nanosleep(
        clock: clockid_t, flags: c_int, time: *const timespec, remaining: *mut timespec,
    ) -> c_int {
        match Session::begin() {
            None => real!(clock_nanosleep(clock: clockid_t, flags: c_int,
                time: *const timespec, remaining: *mut timespec) -> c_int),
            Some(session) => {
                if flags & libc::TIMER_ABSTIME != 0 {
                    let deadline = deadline_of(clock, time);
                    return sleep_until(session, deadline).map_or(0, |_| libc::EINTR);
                }
                let Some(left) = sleep_some(session, nanoseconds(&*time)) else { return 0 };
                tell_left(left, remaining);
                libc::EINTR
            }
        }
    }

    fn usleep(duration: c_uint) -> c_int {
        match Session::begin() {
            None => real!(usleep(duration: c_uint) -> c_int),
            Some(session) => {
                match sleep_some(session, u64::from(duration) * 1_000) {
                    None => 0,
                    Some(_) => fail(libc::EINTR),
                }
            }
        }
    }

    fn sleep(seconds: c_uint) -> c_uint {
        match Session::begin() {
            None => real!(sleep(seconds: c_uint) -> c_uint),
            Some(session) => {
                let left = sleep_some(session, u64::from(seconds) * SECOND);
                left.unwrap_or(0).div_ceil(SECOND) as c_uint
            }
        }
    }

    fn sched_yield as yield_now() -> c_int {
        match Session::begin() {
            None => real!(sched_yield() -> c_int),
            Some(session) => {
                scheduler::yield_turn(session.me);
                0
            }
        }
    }

    fn pthread_yield() -> c_int {
        yield_now()
    }

    fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::clock_gettime(clock, time);
        };
        let now = time_of(&mut session, clock, "clock_gettime");
        (*time).tv_sec = (now / SECOND) as time_t;
        (*time).tv_nsec = (now % SECOND) as i64;
        written(&mut session, time as u64, size_of::<timespec>());
        session.point();
        0
    }

    fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::gettimeofday(time, zone);
        };
        if !time.is_null() {
            let now = time_of(&mut session, libc::CLOCK_REALTIME, "gettimeofday");
            *time = pair(now);
            written(&mut session, time as u64, size_of::<timeval>());
            session.point();
        }
        0
    }

    fn time(result: *mut time_t) -> time_t {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::time(result);
        };
        let now = (time_of(&mut session, libc::CLOCK_REALTIME, "time") / SECOND) as time_t;
        if !result.is_null() {
            *result = now;
            written(&mut session, result as u64, size_of::<time_t>());
        }
        session.point();
        now
    }

    fn clock() -> libc::clock_t {
        let Some(mut session) = Session::begin() else {
            return real!(clock() -> libc::clock_t);
        };
        let now = time_of(&mut session, libc::CLOCK_PROCESS_CPUTIME_ID, "clock");
        session.point();
        (now / 1_000) as libc::clock_t
    }

    fn times(buffer: *mut libc::tms) -> libc::clock_t {
        let Some(mut session) = Session::begin() else {
            return real!(times(buffer: *mut libc::tms) -> libc::clock_t);
        };
        let now = time_of(&mut session, libc::CLOCK_PROCESS_CPUTIME_ID, "times");
        session.point();
        let ticks = (now / (SECOND / 100)) as libc::clock_t;
        if !buffer.is_null() {
            *buffer = libc::tms { tms_utime: ticks, tms_stime: 0, tms_cutime: 0, tms_cstime: 0 };
        }
        ticks
    }

    fn getrusage(who: c_int, usage: *mut libc::rusage) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(getrusage(who: c_int, usage: *mut libc::rusage) -> c_int);
        };
        let result = real!(getrusage(who: c_int, usage: *mut libc::rusage) -> c_int);
        let now = time_of(&mut session, libc::CLOCK_PROCESS_CPUTIME_ID, "getrusage");
        session.point();
        if result == 0 {
            // What it used of memory, faults and switches is ours as much as the program's.
            *usage = std::mem::zeroed();
            if who != libc::RUSAGE_CHILDREN {
                (*usage).ru_utime = pair(now);
            }
        }
        result
    }

    fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
        const UTC: c_int = 1;
        let session = Session::begin().filter(|_| base == UTC);
        let Some(mut session) = session else {
            return real!(timespec_get(time: *mut timespec, base: c_int) -> c_int);
        };
        let now = time_of(&mut session, libc::CLOCK_REALTIME, "timespec_get");
        session.point();
        (*time).tv_sec = (now / SECOND) as time_t;
        (*time).tv_nsec = (now % SECOND) as i64;
        base
    }

    fn sched_getcpu() -> c_int {
        match Session::begin() {
            None => real!(sched_getcpu() -> c_int),
            Some(_) => 0, // one thread runs at a time: one processor would do
        }
    }
}
