//! Executables whose C library nobody recognises: static ones without symbols that were linked with
//! another library than the one that is here. All of their code is recorded as the program's own; locks are
//! then what they are made of, atomic accesses, and who waits is seen by the system call for it, `futex`.
//!
//! A thread that waits is blocked in the scheduler, so that a deadlock is one. QEMU makes every system call
//! that it has begun: when the thread has been woken, the memory is changed for as long as the call takes,
//! which the kernel answers at once, as if the memory had changed just before.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use foretell_wire::gap;

use crate::accesses;
use crate::api::Id;
use crate::cpu::{Machine, machine, peek, poke};
use crate::scheduler::{self, scheduler};
use crate::thread::{Thread, Wait};
use crate::thread_of;

static ON: AtomicBool = AtomicBool::new(false);

/// From now on threads wait by their futexes.
pub fn turn_on() {
    ON.store(true, Relaxed);
    scheduler().ring.lacks(
        gap::UNKNOWN_LIBRARY,
        "locks, conditions and joins, as the functions of the program's C library are not recognised: all of its code \
         is recorded, a lock is the atomic accesses that it is made of, and who waits is seen by futexes; torn blocks \
         and races are not looked for",
    );
}

/// Whether threads wait by their futexes.
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Bytes of a futex.
const SIZE: u8 = 4;

/// A thread is about to call `futex` with these arguments. Says whether the call may wait in the kernel.
pub fn call(me: &mut Thread, [address, operation, value, other, second]: [u64; 5]) -> bool {
    match operation as i32 & libc::FUTEX_CMD_MASK {
        // Until then, or for ever.
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if other == 0 => {
            wait(me, address, value);
            false
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
            scheduler::wake_some(Wait::Futex(address), value as u32);
            false
        }
        // Those that should wait somewhere else try again and find that out by themselves.
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE => {
            scheduler::wake(Wait::Futex(address));
            false
        }
        libc::FUTEX_WAKE_OP => {
            scheduler().gap_once("what the kernel writes by the futex operation FUTEX_WAKE_OP");
            scheduler::wake(Wait::Futex(address));
            scheduler::wake(Wait::Futex(second));
            false
        }
        operation => super::system::is_wait(operation as u64),
    }
}

fn wait(me: &mut Thread, address: u64, value: u64) {
    if peek(address, SIZE) != value & u64::from(u32::MAX) {
        return; // so the kernel says
    }
    scheduler::block(me, Wait::Futex(address), None);
    let now = peek(address, SIZE);
    if now == value & u64::from(u32::MAX) {
        me.changed = Some((address, now));
        poke(address, SIZE, !now);
    }
}

/// The thread is back from the call.
pub fn returned(me: &mut Thread) {
    if let Some((address, value)) = me.changed.take() {
        poke(address, SIZE, value);
    }
}

/// A thread is about to be created by `clone` with these arguments: what the kernel clears at its end.
pub fn cleared_at_end(arguments: [u64; 5]) -> u64 {
    const CLEARS: u64 = libc::CLONE_CHILD_CLEARTID as u64;
    let [flags, .., fourth, fifth] = arguments;
    match machine() {
        _ if flags & CLEARS == 0 => 0,
        Machine::X86 => fourth,
        Machine::Arm64 | Machine::Arm => fifth,
    }
}

/// What QEMU is about to clear, because a thread has ended; 0 for nothing.
static CLEARING: AtomicU64 = AtomicU64::new(0);

/// A thread is over, and QEMU clears its memory next.
pub extern "C" fn on_end(_id: Id, cpu: u32) {
    let me = thread_of(cpu);
    if !is_on() {
        return;
    }
    if me.clears != 0 {
        scheduler::meet(scheduler(), 0);
        accesses::touch(me, 0, 0, me.clears, SIZE, 0, true);
        scheduler::wake(Wait::Futex(me.clears));
        CLEARING.store(me.clears, SeqCst);
    }
    scheduler::finish(me);
}

/// Waits until nothing is left of a thread that has ended, before another one runs.
pub fn await_cleared() {
    let address = CLEARING.swap(0, SeqCst);
    while address != 0 && peek(address, SIZE) != 0 {
        std::thread::yield_now();
    }
}
