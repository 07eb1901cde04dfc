//! Futexes that a program uses itself, through `syscall`: Rust's std and C++'s `atomic::wait` block
//! this way. The look at the word by which the system decides whether the thread sleeps is an event like the atomic
//! accesses around it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use foretell_wire::Kind;
use foretell_wire::outside::Cause;
use libc::{c_int, c_long, c_uint, c_void, timespec};

use super::condition::{self, notify_modelled, wait_modelled};
use super::rust::IS_RUST;
use super::time::{deadline_in, deadline_of};
use super::{blocking, fail, waiting};
use crate::hooks;
use crate::modules;
use crate::outside;
use crate::real::{interpose, real};
use crate::scheduler;
use crate::thread::{Session, Wait};

/// Waits on the word: the system looks at it and lets the thread sleep in one step, which no wake comes between. So
/// both are made under a mutex that goes with the word, and the sleep is a wait for a condition. The mutex and the
/// condition exist in the scheduler's model only.
unsafe fn wait(mut session: Session, word: u64, expected: u32, deadline: Option<u64>) -> c_long {
    session.point();
    // SAFETY: the program's word.
    let value = || unsafe { &*(word as *const AtomicU32) }.load(SeqCst);
    if !is_seen(&session) {
        if value() != expected {
            return fail(libc::EAGAIN).into();
        }
        super::rust::parks_at(session.me.number, word);
        if scheduler::block(session.me, Wait::Futex(word), deadline) {
            return fail(libc::ETIMEDOUT).into();
        }
        return 0;
    }
    let address = word as *const c_void;
    let mutex = waiting::begin(&mut session, address);
    let current = value();
    hooks::compared(&mut session, word, current, expected);
    session.point();
    let late = if current == expected {
        let condition = waiting::condition_of(session.turn(), address);
        let slept = wait_modelled(session, condition, mutex, deadline);
        let Some(again) = Session::begin() else { return 0 };
        session = again;
        slept == libc::ETIMEDOUT
    } else {
        false
    };
    waiting::end(&mut session, address);
    match late {
        _ if current != expected => fail(libc::EAGAIN).into(),
        true => fail(libc::ETIMEDOUT).into(),
        false => 0,
    }
}

/// Wakes up to `limit` threads that wait on the word; says how many.
fn wake(mut session: Session, word: u64, limit: u32) -> u32 {
    session.point();
    let woken = scheduler::wake_some(Wait::Futex(word), limit);
    let limit = limit - woken;
    if limit == 0 || !is_seen(&session) && !waiting::is_awaited(session.turn(), word) {
        session.point();
        return woken;
    }
    let address = word as *const c_void;
    waiting::begin(&mut session, address);
    let condition = waiting::condition_of(session.turn(), address);
    let sleepers = condition::sleepers(session.turn(), condition);
    if limit >= MANY || limit >= sleepers && limit > 1 {
        notify_modelled(&mut session, condition, Kind::Broadcast);
    } else {
        for _ in 0..limit {
            notify_modelled(&mut session, condition, Kind::Signal);
        }
    }
    waiting::end(&mut session, address);
    woken + sleepers.min(limit)
}

/// Whether code that is instrumented makes the call: then what changes the word is in the trace, too. (Who calls for
/// a program in Rust is the standard library, as a rule.)
fn is_seen(session: &Session) -> bool {
    modules::is_program_code(session.place) && !IS_RUST.load(Relaxed)
}

/// Who wakes so many wakes all.
const MANY: u32 = 64;

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
    outside::note(me, Cause::PassedCall, number as u64, "", session.place);
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
                    hooks::held(&mut session, b, c);
                }
                return super::blocking::write_to(a as c_int, b as *const c_void, c as usize) as c_long;
            }
            libc::SYS_kill => return super::process::kill(a as c_int, b as c_int).into(),
            libc::SYS_tgkill => {
                return super::threads::tgkill(a as c_int, b as c_int, c as c_int).into();
            }
            _ => {}
        }
        let Some(session) = Session::begin() else {
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
                wake(session, a, c as u32).into()
            }
            _ => {
                pass(&session, number);
                blocking::outside(session, || real!(syscall(number: c_long, a: u64, b: u64, c: u64,
                    d: u64, e: u64, f: u64) -> c_long)).1
            }
        }
    }
}
