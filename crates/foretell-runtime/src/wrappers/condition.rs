//! Condition variables.

use std::cell::RefMut;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use foretell_wire::condition::Condition;
use foretell_wire::outside::Cause;
use foretell_wire::record;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{Kind, wait as detail};
use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

use super::mutex;
use super::time::deadline_of;
use crate::forced;
use crate::objects::{self, Model, Object};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::thread::{Session, Wait};
use crate::turn::Turn;

fn object(turn: Turn, condition: *const pthread_cond_t) -> &'static Object {
    object_at(turn, condition as u64)
}

/// The model of the condition at the address.
pub fn object_at(turn: Turn, address: u64) -> &'static Object {
    objects::get(turn, address, |model| matches!(model, Model::Condition(_)), Model::condition)
}

fn state(turn: Turn, number: u32) -> RefMut<'static, Condition> {
    match &objects::by_number(turn, number).model {
        Model::Condition(condition) => condition.borrow_mut(),
        _ => unreachable!("numbers of conditions name conditions"),
    }
}

/// glibc notes in a condition how it was made: bit 0, processes share it; bit 1, its deadlines are of the monotonic clock.
unsafe fn flags_of(condition: *const pthread_cond_t) -> u32 {
    const WORDS: usize = size_of::<pthread_cond_t>() / size_of::<u32>();
    /// In which word depends on the version: one that has both shows it. 0: not known yet.
    static WORD: AtomicUsize = AtomicUsize::new(0);
    let words = condition.cast::<u32>();
    let mut word = WORD.load(Relaxed);
    if word == 0 {
        // SAFETY: both are of plain words, and initialised by the functions that they are handed to.
        let (mut attributes, mut shown): (pthread_condattr_t, pthread_cond_t) =
            unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe {
            libc::pthread_condattr_init(&mut attributes);
            libc::pthread_condattr_setclock(&mut attributes, libc::CLOCK_MONOTONIC);
            libc::pthread_condattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
        }
        let (made, attributes) = (&raw mut shown, &raw const attributes);
        real!(pthread_cond_init @ c"GLIBC_2.3.2" (
            made: *mut pthread_cond_t, attributes: *const pthread_condattr_t) -> c_int);
        // SAFETY: as above.
        let shown = unsafe { made.cast::<[u32; WORDS]>().read() };
        word = shown.iter().position(|&word| word == 3).unwrap_or(9);
        WORD.store(word, Relaxed);
    }
    // SAFETY: the program uses it as a condition.
    unsafe { words.add(word).read() }
}

/// The clock of the condition's deadlines.
unsafe fn clock_of(condition: *const pthread_cond_t) -> clockid_t {
    // SAFETY: as above.
    let flags = unsafe { flags_of(condition) };
    if flags & 2 != 0 { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
}

/// Whether other processes may use the condition.
unsafe fn is_shared(condition: *const pthread_cond_t) -> bool {
    // SAFETY: as above.
    let says_so = unsafe { flags_of(condition) & 1 != 0 };
    says_so && outside::is_shared_memory(condition as u64)
}

/// Waits outside the scheduler, where the condition or its mutex is shared with other processes or
/// the mutex is robust. What is recorded is that the mutex was given back and taken again.
unsafe fn wait_really(
    mut session: Session,
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: Option<u64>,
) -> c_int {
    let turn = session.turn();
    object(turn, condition).shared.set(true);
    let (me, place) = (session.me.number, session.place);
    outside::note(me, Cause::SharedObject, 0, "a condition variable", place);
    let lock = mutex::object(turn, mutex).number;
    let held = mutex::state(turn, lock);
    let ours = held.owner.get() == Some(me);
    if ours {
        held.give_back();
        session.event(Kind::Release, 0, [lock.into()]);
        scheduler::wake(Wait::Object(lock));
    }
    let left = deadline.map(|at| at.saturating_sub(scheduler::now()));
    let (mut session, result) = super::blocking::outside(session, || match left {
        None => real!(pthread_cond_wait @ c"GLIBC_2.3.2" (
            condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int),
        Some(left) => {
            let clock = libc::CLOCK_MONOTONIC;
            let until = crate::sys::clock(clock).saturating_add(left);
            let until = timespec {
                tv_sec: (until / 1_000_000_000) as i64,
                tv_nsec: (until % 1_000_000_000) as i64,
            };
            let until: *const timespec = &until;
            real!(pthread_cond_clockwait(condition: *mut pthread_cond_t,
                mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int)
        }
    });
    if ours {
        held.take(me);
        session.event(Kind::Acquire, 0, [lock.into()]);
    }
    session.point();
    result
}

/// Later than any deadline of the program.
const END_OF_TIME: u64 = u64::MAX / 2;

/// Waits: gives the mutex back, sleeps, takes the mutex again.
unsafe fn wait(
    mut session: Session,
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: Option<u64>,
) -> c_int {
    session.point();
    let (me, turn) = (session.me.number, session.turn());
    let lock = mutex::object(turn, mutex).number;
    // SAFETY: the program uses them as what they are.
    unsafe {
        if is_shared(condition) || !mutex::modelled(mutex) {
            return wait_really(session, condition, mutex, deadline);
        }
    }
    if mutex::state(turn, lock).owner.get() != Some(me) {
        session.event(Kind::ReleaseFailed, 0, [lock.into()]);
        if mutex::state(turn, lock).kind != foretell_wire::ObjectKind::Mutex {
            return libc::EPERM;
        }
        // glibc waits all the same, and gives the mutex to the thread afterwards.
        mutex::acquire(&mut session, lock, mutex::Patience::Until(None));
    }
    let number = object(turn, condition).number;
    wait_modelled(session, number, lock, deadline)
}

/// Waits for a condition with a mutex that the thread has, both by number.
pub fn wait_modelled(mut session: Session, number: u32, lock: u32, deadline: Option<u64>) -> c_int {
    let (me, turn) = (session.me.number, session.turn());
    let timed = if deadline.is_some() { detail::TIMED } else { 0 };
    session.record(0, &record::WaitBegin { condition: number, mutex: lock });
    let held = mutex::state(turn, lock);
    // Only once: who has a recursive mutex several times sleeps with it, in glibc, too.
    held.give_back();
    scheduler::wake(Wait::Object(lock));
    state(turn, number).arrive(me);
    let logged = replay::peek(session.me, &[Logged::Wait]).map(|(_, late)| late == 1);
    if logged.is_some() {
        replay::pass(session.me);
    }
    // A wake-up without a signal is allowed, and not told apart in the log: when nothing else can
    // run, it was one. The trace then says that the wait ended by itself.
    let deadline = if logged.is_some() { Some(END_OF_TIME) } else { deadline };
    let mut timed_out = logged == Some(true);
    // A schedule in which it times out lets it give up at once, and its turn says when it goes on.
    let gives_up = timed != 0 && logged.is_none() && forced::expects(me, "wait-timeout");
    timed_out |= gives_up;
    if timed_out {
        state(turn, number).give_up(me);
    }
    if gives_up {
        scheduler::pass_until(deadline.unwrap_or(0));
        session.point();
    }
    while !timed_out {
        let late = scheduler::block(session.me, Wait::Object(number), deadline);
        if state(turn, number).take(me) {
            break;
        }
        if late || super::threads::is_cancelled(session.me) {
            state(turn, number).give_up(me);
            timed_out = true; // a wait that a cancellation ends needs no signal either
            break;
        }
    }
    while held.owner.get().is_some_and(|owner| owner != me)
        || !replay::may(session.me, lock, &[Logged::Lock])
    {
        scheduler::block(session.me, Wait::Object(lock), None);
    }
    held.take(me);
    replay::done(session.me, lock);
    let late = if timed_out { detail::TIMED_OUT } else { 0 };
    session.record(late | timed, &record::WaitEnd { condition: number, mutex: lock });
    session.point();
    super::threads::act_on_cancellation(session);
    if logged.unwrap_or(timed_out) { libc::ETIMEDOUT } else { 0 }
}

/// Wakes waiters.
fn notify(session: &mut Session, condition: *const pthread_cond_t, kind: Kind) -> c_int {
    session.point();
    // SAFETY: the program uses it as a condition.
    let shared = unsafe { is_shared(condition) };
    let number = {
        let object = object(session.turn(), condition);
        object.shared.set(object.shared.get() || shared);
        object.number
    };
    if objects::by_number(session.turn(), number).shared.get() {
        let condition = condition.cast_mut();
        match kind {
            Kind::Broadcast => real!(pthread_cond_broadcast @ c"GLIBC_2.3.2" (
                condition: *mut pthread_cond_t) -> c_int),
            _ => real!(pthread_cond_signal @ c"GLIBC_2.3.2" (
                condition: *mut pthread_cond_t) -> c_int),
        };
    }
    notify_modelled(session, number, kind);
    0
}

/// How many threads wait for the condition with this number.
pub fn sleepers(turn: Turn, number: u32) -> u32 {
    state(turn, number).sleepers()
}

/// Wakes waiters of the condition with this number.
pub fn notify_modelled(session: &mut Session, number: u32, kind: Kind) {
    match kind {
        Kind::Broadcast => state(session.turn(), number).broadcast(),
        _ => state(session.turn(), number).signal(),
    }
    session.event(kind, 0, [number.into()]);
    scheduler::wake(Wait::Object(number));
    session.point();
}

interpose! {
    fn pthread_cond_init as initialise(
        condition: *mut pthread_cond_t, attributes: *const pthread_condattr_t,
    ) -> c_int {
        if let Some(session) = Session::begin() {
            objects::define(session.turn(), condition as u64, Model::condition());
        }
        real!(pthread_cond_init @ c"GLIBC_2.3.2" (
            condition: *mut pthread_cond_t, attributes: *const pthread_condattr_t) -> c_int)
    }

    fn pthread_cond_destroy as destroy(condition: *mut pthread_cond_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            let number = object(session.turn(), condition).number;
            super::destroyed(&mut session, number);
            objects::bury(session.turn(), condition as u64);
            return 0;
        }
        real!(pthread_cond_destroy @ c"GLIBC_2.3.2" (condition: *mut pthread_cond_t) -> c_int)
    }

    fn pthread_cond_wait as wait_for(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t,
    ) -> c_int {
        match Session::begin() {
            Some(session) => wait(session, condition, mutex, None),
            None => crate::sync_only::cond_wait(condition, mutex),
        }
    }

    fn pthread_cond_timedwait as timed_wait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec,
    ) -> c_int {
        match Session::begin() {
            Some(session) => {
                let deadline = deadline_of(clock_of(condition), until);
                wait(session, condition, mutex, Some(deadline))
            }
            None => crate::sync_only::cond_timedwait(condition, mutex, until),
        }
    }

    fn pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec,
    ) -> c_int {
        match Session::begin() {
            Some(session) => {
                wait(session, condition, mutex, Some(deadline_of(clock, until)))
            }
            None => crate::sync_only::cond_clockwait(condition, mutex, clock, until),
        }
    }

    fn pthread_cond_signal as signal(condition: *mut pthread_cond_t) -> c_int {
        match Session::begin() {
            Some(mut session) => notify(&mut session, condition, Kind::Signal),
            None => crate::sync_only::cond_signal(condition),
        }
    }

    fn pthread_cond_broadcast as broadcast(condition: *mut pthread_cond_t) -> c_int {
        match Session::begin() {
            Some(mut session) => notify(&mut session, condition, Kind::Broadcast),
            None => crate::sync_only::cond_broadcast(condition),
        }
    }
}
