//! Waiting for an atomic variable of C++ to change: `wait` and `notify`, and what the library makes of them
//! (latches, barriers, semaphores, futures).
//!
//! The library's own way spins, counts waiters in tables and calls the kernel, all of which would be events.
//! Headers in `foretell-build/include/c++` replace it by these functions. A waiter looks at the variable under a
//! mutex, and sleeps; whoever notifies takes the mutex, too. So a notification that comes too early, or never,
//! is lost as it is in a run without foretell. Mutex and condition of a variable exist in the scheduler's model
//! only, by its address.

use foretell_wire::{Kind, ObjectKind, of_variable};
use libc::{c_int, c_void, clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

use super::condition::{notify_modelled, object_at, wait_modelled};
use super::mutex::{self, Patience};
use super::time::deadline_of;
use crate::objects;
use crate::real::{interpose, real};
use crate::thread::Session;
use crate::turn::Turn;

/// The mutex of the variable.
fn mutex_of(turn: Turn, address: *const c_void) -> u32 {
    mutex::at(turn, address as u64 | of_variable::MUTEX, ObjectKind::Mutex)
}

/// The condition that the variable has changed.
pub fn condition_of(turn: Turn, address: *const c_void) -> u32 {
    object_at(turn, address as u64 | of_variable::CONDITION).number
}

/// What all variables share where nothing is scheduled. Everybody is woken, and looks again.
struct Shared {
    mutex: std::cell::UnsafeCell<pthread_mutex_t>,
    changed: std::cell::UnsafeCell<pthread_cond_t>,
}

// SAFETY: both are made to be used by several threads.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    mutex: std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
    changed: std::cell::UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
};

/// Whether a thread has waited for the variable.
pub fn is_awaited(turn: Turn, address: u64) -> bool {
    objects::number_at(turn, address | of_variable::CONDITION).is_some()
}

/// Takes the variable's mutex; gives its number. Until [`end`] the thread does nothing that a log of
/// synchronisation has.
pub fn begin(session: &mut Session, address: *const c_void) -> u32 {
    session.me.unlogged = true;
    let lock = mutex_of(session.turn(), address);
    mutex::acquire(session, lock, Patience::Until(None));
    lock
}

/// Gives it back.
pub fn end(session: &mut Session, address: *const c_void) {
    let lock = mutex_of(session.turn(), address);
    mutex::release(session, lock);
    session.me.unlogged = false;
}

interpose! {
    fn foretell_waiting_begin(address: *const c_void) -> () {
        match Session::begin() {
            Some(mut session) => _ = begin(&mut session, address),
            None => {
                let mutex = SHARED.mutex.get();
                real!(pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int);
            }
        }
    }

    fn foretell_waiting_end(address: *const c_void) -> () {
        match Session::begin() {
            Some(mut session) => end(&mut session, address),
            None => {
                let mutex = SHARED.mutex.get();
                real!(pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int);
            }
        }
    }

    // Not 0: it was not woken before the time of the monotonic clock, if there is one.
    fn foretell_waiting_sleep(address: *const c_void, until: *const timespec) -> c_int {
        let clock = libc::CLOCK_MONOTONIC;
        if let Some(mut session) = Session::begin() {
            session.point();
            let deadline = (!until.is_null()).then(|| deadline_of(clock, until));
            let (condition, mutex) =
                (condition_of(session.turn(), address), mutex_of(session.turn(), address));
            return wait_modelled(session, condition, mutex, deadline);
        }
        let (changed, mutex) = (SHARED.changed.get(), SHARED.mutex.get());
        if until.is_null() {
            return real!(pthread_cond_wait @ c"GLIBC_2.3.2" (
                changed: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int);
        }
        real!(pthread_cond_clockwait(changed: *mut pthread_cond_t, mutex: *mut pthread_mutex_t,
            clock: clockid_t, until: *const timespec) -> c_int)
    }

    fn foretell_waiting_wake(address: *const c_void, all: c_int) -> () {
        match Session::begin() {
            Some(mut session) => {
                session.point();
                let kind = if all != 0 { Kind::Broadcast } else { Kind::Signal };
                let condition = condition_of(session.turn(), address);
                notify_modelled(&mut session, condition, kind);
            }
            None => {
                let changed = SHARED.changed.get();
                real!(pthread_cond_broadcast @ c"GLIBC_2.3.2" (changed: *mut pthread_cond_t) -> c_int);
            }
        }
    }
}
