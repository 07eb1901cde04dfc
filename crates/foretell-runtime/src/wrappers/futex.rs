//! Futexes that a program uses itself, through `syscall`: Rust's std and C++'s `atomic::wait` block
//! this way. The atomic accesses around them are events; the sleep itself is not.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use foretell_wire::outside::Cause;
use libc::{c_int, c_long, c_uint, c_void, timespec};

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

/// System calls that order nothing, wake nobody and change nothing that a thread of the program looks at.
const HARMLESS: [c_long; 29] = [
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getcpu,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_setattr,
    libc::SYS_sched_yield,
    libc::SYS_membarrier,
    libc::SYS_madvise,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_memfd_create,
    libc::SYS_pidfd_open,
    libc::SYS_prctl,
    libc::SYS_arch_prctl,
    libc::SYS_capget,
    libc::SYS_uname,
    libc::SYS_sysinfo,
];

/// Notes that a system call is made behind the back of libc, whose functions are known.
fn pass(session: &Session, number: c_long) {
    let me = session.me.number;
    crate::outside::note(me, Cause::PassedCall, number as u64, "", session.place);
}

interpose! {
    fn syscall(
        number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64,
    ) -> c_long {
        match number {
            libc::SYS_getrandom => {
                let buffer = a as *mut c_void;
                return super::blocking::getrandom(buffer, b as usize, c as c_uint) as c_long;
            }
            libc::SYS_read => {
                return super::blocking::read_from(a as c_int, b as *mut c_void, c as usize) as c_long;
            }
            libc::SYS_write => {
                if !crate::summaries::is_looked_at(a as c_int)
                    && let Some(mut session) = Session::begin()
                {
                    crate::hooks::held(&mut session, b, c);
                }
                return super::blocking::write_to(a as c_int, b as *const c_void, c as usize) as c_long;
            }
            libc::SYS_kill => return super::process::kill(a as c_int, b as c_int).into(),
            libc::SYS_tgkill => {
                return super::threads::tgkill(a as c_int, b as c_int, c as c_int).into();
            }
            _ => {}
        }
        let Some(mut session) = Session::begin() else {
            return real!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64,
                f: u64) -> c_long);
        };
        if number != libc::SYS_futex {
            crate::fiber::go_home(session.me);
            if !HARMLESS.contains(&number) {
                pass(&session, number);
            }
            drop(session);
            return real!(syscall(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64,
                f: u64) -> c_long);
        }
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
            _ => {
                pass(&session, number);
                outside(session, || real!(syscall(number: c_long, a: u64, b: u64, c: u64,
                    d: u64, e: u64, f: u64) -> c_long)).1
            }
        }
    }
}
