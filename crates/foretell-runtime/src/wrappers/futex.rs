//! Futexes that a program uses itself, through `syscall`: Rust's std and C++'s `atomic::wait` block
//! this way. The atomic accesses around them are events; the sleep itself is not.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use libc::{c_long, c_uint, c_void, timespec};

use super::blocking::outside;
use super::fail;
use super::time::{deadline_in, deadline_of};
use crate::real::{interpose, real};
use crate::scheduler;
use crate::thread::{Session, Wait};

/// Waits on the word under the scheduler.
unsafe fn wait(mut session: Session, word: u64, expected: u32, deadline: Option<u64>) -> c_long {
    session.point();
    // SAFETY: the program's word.
    let current = unsafe { &*(word as *const AtomicU32) }.load(SeqCst);
    if current != expected {
        return fail(libc::EAGAIN).into();
    }
    super::rust::parks_at(session.me.number, word);
    if scheduler::block(session.me, Wait::Futex(word), deadline) {
        return fail(libc::ETIMEDOUT).into();
    }
    0
}

interpose! {
    fn syscall(
        number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64,
    ) -> c_long {
        if number == libc::SYS_getrandom {
            return super::blocking::getrandom(a as *mut c_void, b as usize, c as c_uint) as c_long;
        }
        if number != libc::SYS_futex {
            super::process::go_home();
            return real!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64,
                f: u64) -> c_long);
        }
        let Some(mut session) = Session::begin() else {
            return real!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64,
                f: u64) -> c_long);
        };
        let limit = d as *const timespec;
        match b as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
            libc::FUTEX_WAIT => {
                let deadline = (!limit.is_null()).then(|| deadline_in(limit));
                wait(session, a, c as u32, deadline)
            }
            libc::FUTEX_WAIT_BITSET => {
                let real = b as i32 & libc::FUTEX_CLOCK_REALTIME != 0;
                let clock = if real { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
                let deadline = (!limit.is_null()).then(|| deadline_of(clock, limit));
                wait(session, a, c as u32, deadline)
            }
            libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
                session.point();
                let woken = scheduler::wake_some(Wait::Futex(a), c as u32);
                session.point();
                woken.into()
            }
            _ => outside(session, || real!(syscall(number: c_long, a: u64, b: u64, c: u64,
                d: u64, e: u64, f: u64) -> c_long)).1,
        }
    }
}
