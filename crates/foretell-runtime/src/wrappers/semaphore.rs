//! Semaphores.

use std::collections::BTreeMap;

use foretell_wire::outside::Cause;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{BY_TRY, Kind};
use libc::{c_char, c_int, c_uint, clockid_t, sem_t, timespec};

use super::fail;
use super::time::{deadline_of, input};
use crate::look;
use crate::objects::{self, Model, Object};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::thread::{Session, Wait};
use crate::turn::{Turn, TurnCell};

/// The model; a semaphore that was initialised unseen has the count that glibc keeps in it.
fn object(turn: Turn, semaphore: *const sem_t) -> &'static Object {
    let object = objects::get(
        turn,
        semaphore as u64,
        |model| matches!(model, Model::Semaphore(_)),
        // SAFETY: glibc's layout on 64-bit machines: the count is the first word.
        || Model::semaphore(unsafe { semaphore.cast::<u32>().read() }),
    );
    // SAFETY: the same layout: the third word says whether other processes may use it.
    object.shared.set(unsafe { semaphore.cast::<u32>().add(2).read() } != 0);
    object
}

/// `SEM_VALUE_MAX`.
const SEMAPHORE_MAX: u32 = i32::MAX as u32;
/// So many posts more may another interleaving make before a wait.
const MARGIN: u32 = 1 << 20;
/// Whether a post fails because of that is not varied.
const FULL: &str = "a post of a semaphore that may have its largest value";

/// How often each named semaphore is open: the C library gives the same address again.
static OPEN: TurnCell<BTreeMap<u64, u32>> = TurnCell::new(BTreeMap::new());

/// Who posted what a wait has got.
enum Post {
    /// A thread of this process.
    Ours,
    /// Another process.
    Foreign,
}

/// Decrements if that is possible now. A semaphore that other processes may use decides by itself;
/// the model counts the posts of this process that were not taken yet.
fn take(turn: Turn, number: u32, semaphore: *mut sem_t) -> Option<Post> {
    let shared = objects::by_number(turn, number).shared.get();
    if shared && real!(sem_trywait(semaphore: *mut sem_t) -> c_int) != 0 {
        return None;
    }
    let count = objects::semaphore(turn, number);
    match count.get() {
        0 if shared => Some(Post::Foreign),
        0 => None,
        there => {
            count.set(there - 1);
            Some(Post::Ours)
        }
    }
}

/// Records that a wait has got what it waited for.
fn took(session: &mut Session, number: u32, post: &Post, by_try: bool) {
    match post {
        Post::Ours => {
            let detail = if by_try { BY_TRY } else { 0 };
            session.event(Kind::SemaphoreWait, detail, [number.into()]);
        }
        Post::Foreign => {
            let (me, place) = (session.me.number, session.place);
            outside::note(me, Cause::SharedObject, 0, "a semaphore", place);
            input(session, "sem_wait", 0);
        }
    }
}

/// Records that a wait failed because there was nothing.
fn found_nothing(session: &mut Session, number: u32) {
    if objects::semaphore(session.turn(), number).get() == 0 {
        session.event(Kind::SemaphoreWaitFailed, 0, [number.into()]);
        session.point();
    }
}

/// Decrements, waiting until the deadline if need be.
fn wait(mut session: Session, semaphore: *mut sem_t, deadline: Option<u64>) -> c_int {
    session.point();
    let turn = session.turn();
    let number = object(turn, semaphore).number;
    let logged = replay::peek(session.me, &WAITS);
    if let Some((Logged::SemaphoreFailed, error)) = logged {
        return failed_as_logged(session, number, error);
    }
    let by_try = deadline.is_some();
    let deadline = if logged.is_some() { None } else { deadline };
    let post = loop {
        if replay::may(session.me, number, &WAITS)
            && let Some(post) = take(turn, number, semaphore)
        {
            break post;
        }
        let late = scheduler::block(session.me, Wait::Object(number), deadline);
        let empty = !objects::is_free(turn, number);
        if empty && super::threads::is_cancelled(session.me) {
            super::threads::act_on_cancellation(session);
            return fail(libc::EINTR);
        }
        let interrupted = session.me.interrupted;
        if empty && (late || interrupted) {
            found_nothing(&mut session, number);
            return fail(if interrupted { libc::EINTR } else { libc::ETIMEDOUT });
        }
    };
    replay::done(session.me, number);
    took(&mut session, number, &post, by_try);
    session.point();
    0
}

/// The entries of a log that fit a wait.
const WAITS: [Logged; 2] = [Logged::SemaphoreWait, Logged::SemaphoreFailed];

/// A wait that failed in the run whose log is followed.
fn failed_as_logged(mut session: Session, number: u32, error: u32) -> c_int {
    replay::pass(session.me);
    found_nothing(&mut session, number);
    fail(error as c_int)
}

interpose! {
    fn sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
        let result = real!(sem_init(
            semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int);
        if result == 0 && let Some(session) = Session::begin() {
            objects::define(session.turn(), semaphore as u64, Model::semaphore(value));
        }
        result
    }

    fn sem_destroy(semaphore: *mut sem_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            if let Some(number) = objects::number_at(session.turn(), semaphore as u64) {
                super::destroyed(&mut session, number);
            }
            objects::bury(session.turn(), semaphore as u64);
        }
        real!(sem_destroy(semaphore: *mut sem_t) -> c_int)
    }

    fn sem_open(
        name: *const c_char, flags: c_int, mode: libc::mode_t, value: c_uint,
    ) -> *mut sem_t {
        let semaphore = real!(sem_open(name: *const c_char, flags: c_int, mode: libc::mode_t,
            value: c_uint) -> *mut sem_t);
        if semaphore != libc::SEM_FAILED && let Some(_session) = Session::begin() {
            *OPEN.get().entry(semaphore as u64).or_insert(0) += 1;
        }
        semaphore
    }

    fn sem_close(semaphore: *mut sem_t) -> c_int {
        if let Some(mut session) = Session::begin()
            && let Some(times) = OPEN.get().get_mut(&(semaphore as u64))
        {
            *times -= 1;
            if *times == 0 {
                // It is gone, as a destroyed one.
                OPEN.get().remove(&(semaphore as u64));
                let number = object(session.turn(), semaphore).number;
                super::destroyed(&mut session, number);
                objects::bury(session.turn(), semaphore as u64);
            }
        }
        real!(sem_close(semaphore: *mut sem_t) -> c_int)
    }

    fn sem_wait(semaphore: *mut sem_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::sem_wait(semaphore),
            Some(session) => wait(session, semaphore, None),
        }
    }

    fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int {
        match Session::begin() {
            None => crate::sync_only::sem_timedwait(semaphore, until),
            Some(session) => {
                wait(session, semaphore, Some(deadline_of(libc::CLOCK_REALTIME, until)))
            }
        }
    }

    fn sem_clockwait(
        semaphore: *mut sem_t, clock: clockid_t, until: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::sem_clockwait(semaphore, clock, until),
            Some(session) => wait(session, semaphore, Some(deadline_of(clock, until))),
        }
    }

    fn sem_trywait(semaphore: *mut sem_t) -> c_int {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::sem_trywait(semaphore);
        };
        // Where a loop tries again and again, it waits.
        let look = look::take(&mut session);
        let waits = look.is_some_and(|look| look.goes_round(-1) && !look.goes_round(0));
        if waits || replay::peek(session.me, &WAITS).is_some() {
            return wait(session, semaphore, None);
        }
        session.point();
        let number = object(session.turn(), semaphore).number;
        let Some(post) = take(session.turn(), number, semaphore) else {
            found_nothing(&mut session, number);
            return fail(libc::EAGAIN);
        };
        took(&mut session, number, &post, true);
        session.point();
        0
    }

    fn sem_post(semaphore: *mut sem_t) -> c_int {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::sem_post(semaphore);
        };
        session.point();
        let (number, shared) = {
            let object = object(session.turn(), semaphore);
            (object.number, object.shared.get())
        };
        replay::await_place(session.me, number, Logged::SemaphorePost);
        if shared && real!(sem_post(semaphore: *mut sem_t) -> c_int) != 0 {
            return -1;
        }
        let count = objects::semaphore(session.turn(), number);
        if count.get() >= SEMAPHORE_MAX {
            outside::decided(&mut session, FULL);
            return fail(libc::EOVERFLOW);
        }
        if count.get() >= SEMAPHORE_MAX - MARGIN {
            outside::note_outcome(&session, FULL);
        }
        count.set(count.get() + 1);
        replay::done(session.me, number);
        session.event(Kind::SemaphorePost, 0, [number.into()]);
        scheduler::wake(Wait::Object(number));
        session.point();
        0
    }

    fn sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int {
        match Session::begin() {
            None => real!(sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int),
            Some(mut session) => {
                session.point();
                let object = object(session.turn(), semaphore);
                if object.shared.get() {
                    return real!(sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int);
                }
                *value = objects::semaphore(session.turn(), object.number).get() as c_int;
                session.recorder().gap(1, "a look at the count of a semaphore");
                0
            }
        }
    }
}
