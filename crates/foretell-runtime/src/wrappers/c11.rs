//! Threads of C11: the same models under other names. (glibc's own call its POSIX functions
//! directly, out of our sight.)

use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};

use super::blocking::written;
use super::threads::{Routine, create};
use super::{condition, mutex, threads, time};
use crate::real::{interpose, real};
use crate::thread::Session;

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// POSIX's answer in C11's words.
fn translate(result: c_int) -> c_int {
    match result {
        0 => SUCCESS,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        libc::EBUSY => BUSY,
        _ => ERROR,
    }
}

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

interpose! {
    fn thrd_create(handle: *mut pthread_t, routine: Start, argument: *mut c_void) -> c_int {
        match Session::begin() {
            None => translate(crate::sync_only::c11_create(handle, routine, argument)),
            Some(session) => translate(create(
                session, handle, std::ptr::null(), Routine::C11(routine), argument)),
        }
    }

    fn thrd_join(handle: pthread_t, result: *mut c_int) -> c_int {
        let mut value: *mut c_void = std::ptr::null_mut();
        let joined = translate(threads::join_thread(handle, &mut value));
        if joined == SUCCESS && !result.is_null() {
            *result = value as usize as c_int;
            if let Some(mut session) = Session::begin() {
                written(&mut session, result as u64, size_of::<c_int>());
            }
        }
        joined
    }

    fn tss_create(
        key: *mut libc::pthread_key_t, destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int {
        translate(threads::key_create(key, destructor))
    }

    fn thrd_detach(handle: pthread_t) -> c_int {
        translate(threads::detach(handle))
    }

    fn thrd_yield() -> () {
        time::yield_now();
    }

    fn thrd_sleep(duration: *const timespec, remaining: *mut timespec) -> c_int {
        if time::sleep_for(duration, remaining) == 0 {
            return 0;
        }
        if *libc::__errno_location() == libc::EINTR { -1 } else { -2 }
    }

    fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int {
        let result = real!(mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int);
        if result == SUCCESS && let Some(session) = Session::begin() {
            crate::objects::forget(session.turn(), mutex as u64);
            mutex::object(session.turn(), mutex);
        }
        result
    }

    fn mtx_destroy(mutex: *mut pthread_mutex_t) -> () {
        mutex::destroy(mutex);
    }

    fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int {
        translate(mutex::lock_mutex(mutex))
    }

    fn mtx_trylock(mutex: *mut pthread_mutex_t) -> c_int {
        translate(mutex::try_lock(mutex))
    }

    fn mtx_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int {
        translate(mutex::timed_lock(mutex, until))
    }

    fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int {
        translate(mutex::unlock(mutex))
    }

    fn cnd_init(condition: *mut pthread_cond_t) -> c_int {
        translate(condition::initialise(condition, std::ptr::null()))
    }

    fn cnd_destroy(condition: *mut pthread_cond_t) -> () {
        condition::destroy(condition);
    }

    fn cnd_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
        translate(condition::wait_for(condition, mutex))
    }

    fn cnd_timedwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec,
    ) -> c_int {
        translate(condition::timed_wait(condition, mutex, until))
    }

    fn cnd_signal(condition: *mut pthread_cond_t) -> c_int {
        translate(condition::signal(condition))
    }

    fn cnd_broadcast(condition: *mut pthread_cond_t) -> c_int {
        translate(condition::broadcast(condition))
    }
}
