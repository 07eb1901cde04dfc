//! Reader-writer locks. Readers come before waiting writers, as in glibc by default.

use foretell_wire::lock;
use foretell_wire::outside::Cause;
use foretell_wire::record;
use foretell_wire::sync_log::Kind as Logged;
use libc::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

use super::mutex::Patience;
use super::time::deadline_of;
use crate::channels;
use crate::objects::{self, Model, ReaderWriter};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::thread::{Session, Wait};
use crate::turn::Turn;

fn number(turn: Turn, rwlock: *const pthread_rwlock_t) -> u32 {
    let object = objects::get(
        turn,
        rwlock as u64,
        |model| matches!(model, Model::ReaderWriter(_)),
        || Model::ReaderWriter(ReaderWriter::default()),
    );
    // SAFETY: glibc's layout on x86-64: the eighth word says whether other processes may use it.
    object.shared.set(unsafe { rwlock.cast::<u32>().add(7).read() } != 0);
    object.number
}

/// Whether a writer that waits keeps new readers out, which is not modelled.
unsafe fn prefers_writers(rwlock: *const pthread_rwlock_t) -> bool {
    /// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
    const NONRECURSIVE: u32 = 2;
    // SAFETY: glibc's layout on x86-64: the thirteenth word is its kind.
    unsafe { rwlock.cast::<u32>().add(12).read() == NONRECURSIVE }
}

/// Whether the lock can be had now. One that other processes may use decides by itself, and is taken
/// by this.
fn can_be_had(turn: Turn, number: u32, shared: bool) -> bool {
    let object = objects::by_number(turn, number);
    if object.shared.get() {
        let rwlock = object.address as *mut pthread_rwlock_t;
        return 0
            == match shared {
                true => real!(pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t) -> c_int),
                false => real!(pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t) -> c_int),
            };
    }
    state(turn, number).is_free(shared)
}

/// The reader-writer lock behind an object's number.
pub fn state(turn: Turn, number: u32) -> &'static ReaderWriter {
    match &objects::by_number(turn, number).model {
        Model::ReaderWriter(rwlock) => rwlock,
        _ => unreachable!("numbers of reader-writer locks name reader-writer locks"),
    }
}

/// The entries of a log that fit a lock.
const LOCKS: [Logged; 2] = [Logged::ReaderWriter, Logged::ReaderWriterFailed];

/// Takes the lock as a reader or as the writer.
pub fn acquire(session: &mut Session, number: u32, shared: bool, patience: Patience) -> c_int {
    session.point();
    let (me, turn) = (session.me.number, session.turn());
    let rwlock = state(turn, number);
    let by_try = match patience {
        Patience::Until(None) => 0,
        Patience::Try | Patience::Until(Some(_)) => lock::BY_TRY,
    };
    let mode = if shared { lock::SHARED } else { 0 };
    let flags = by_try | mode;
    let failed = |session: &mut Session, flags: u32, error: c_int| {
        replay::pass(session.me);
        session.record(0, &record::AcquireFailed { object: number, flags });
        session.point();
        error
    };
    let mut patience = patience;
    loop {
        match replay::peek(session.me, &LOCKS) {
            Some((Logged::ReaderWriterFailed, error)) => {
                // When it failed is not in the log: an event only if it would fail now too.
                if !rwlock.is_free(shared) {
                    return failed(session, flags, error as c_int);
                }
                replay::pass(session.me);
                return error as c_int;
            }
            Some((_, place)) if !replay::is_due(number, place) => {
                scheduler::block(session.me, Wait::Object(number), None);
                continue;
            }
            Some(_) => patience = Patience::Until(None), // the log says that it will be had
            None => {}
        }
        if can_be_had(turn, number, shared) {
            break;
        }
        if rwlock.is_free(shared) {
            let (me, place) = (session.me.number, session.place);
            outside::note(me, Cause::SharedObject, 0, "a reader-writer lock", place);
            match patience {
                Patience::Try => return libc::EBUSY,
                Patience::Until(deadline) => {
                    if scheduler::block(session.me, Wait::Object(number), deadline) {
                        return libc::ETIMEDOUT;
                    }
                }
            }
            continue;
        }
        match patience {
            Patience::Try => return failed(session, flags, libc::EBUSY),
            Patience::Until(_) if rwlock.writer.get() == Some(me) => {
                return failed(session, mode, libc::EDEADLK);
            }
            Patience::Until(deadline) => {
                if scheduler::block(session.me, Wait::Object(number), deadline)
                    && !rwlock.is_free(shared)
                {
                    return failed(session, flags, libc::ETIMEDOUT);
                }
            }
        }
    }
    if shared {
        rwlock.readers.borrow_mut().push(me);
    } else {
        rwlock.writer.set(Some(me));
    }
    replay::done(session.me, number);
    session.record(0, &record::Acquire { object: number, flags });
    session.point();
    0
}

/// Gives the lock back, as the writer or as a reader.
pub fn release(session: &mut Session, number: u32) -> c_int {
    let Some(shared) = state(session.turn(), number).give_back(session.me.number) else {
        return libc::EPERM;
    };
    let flags = if shared { lock::SHARED } else { 0 };
    session.record(0, &record::Release { object: number, flags });
    scheduler::wake(Wait::Object(number));
    session.point();
    0
}

fn until(clock: clockid_t, until: *const timespec) -> Patience {
    Patience::Until(Some(deadline_of(clock, until)))
}

interpose! {
    fn pthread_rwlock_init(
        rwlock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t,
    ) -> c_int {
        if let Some(session) = Session::begin() {
            objects::define(session.turn(), rwlock as u64, Model::ReaderWriter(ReaderWriter::default()));
        }
        real!(pthread_rwlock_init(
            rwlock: *mut pthread_rwlock_t, attributes: *const pthread_rwlockattr_t) -> c_int)
    }

    fn pthread_rwlock_destroy(rwlock: *mut pthread_rwlock_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            let number = number(session.turn(), rwlock);
            super::destroyed(&mut session, number);
            objects::bury(session.turn(), rwlock as u64);
        }
        real!(pthread_rwlock_destroy(rwlock: *mut pthread_rwlock_t) -> c_int)
    }

    fn pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_rdlock(rwlock),
            Some(mut session) => {
                if prefers_writers(rwlock) && !channels::alone() {
                    outside::note_outcome(&session, "pthread_rwlock_rdlock");
                }
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, true, Patience::Until(None))
            }
        }
    }

    fn pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_wrlock(rwlock),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, false, Patience::Until(None))
            }
        }
    }

    fn pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_tryrdlock(rwlock),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, true, Patience::Try)
            }
        }
    }

    fn pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_trywrlock(rwlock),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, false, Patience::Try)
            }
        }
    }

    fn pthread_rwlock_timedrdlock(
        rwlock: *mut pthread_rwlock_t, time: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_timedrdlock(rwlock, time),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, true, until(libc::CLOCK_REALTIME, time))
            }
        }
    }

    fn pthread_rwlock_timedwrlock(
        rwlock: *mut pthread_rwlock_t, time: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_timedwrlock(rwlock, time),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, false, until(libc::CLOCK_REALTIME, time))
            }
        }
    }

    fn pthread_rwlock_clockrdlock(
        rwlock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_clockrdlock(rwlock, clock, time),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, true, until(clock, time))
            }
        }
    }

    fn pthread_rwlock_clockwrlock(
        rwlock: *mut pthread_rwlock_t, clock: clockid_t, time: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::rwlock_clockwrlock(rwlock, clock, time),
            Some(mut session) => {
                let number = number(session.turn(), rwlock);
                acquire(&mut session, number, false, until(clock, time))
            }
        }
    }

    fn pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::rwlock_unlock(rwlock);
        };
        session.point();
        let number = number(session.turn(), rwlock);
        if objects::by_number(session.turn(), number).shared.get() {
            let unlocked = real!(pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int);
            if unlocked != 0 {
                return unlocked;
            }
        }
        release(&mut session, number)
    }
}
