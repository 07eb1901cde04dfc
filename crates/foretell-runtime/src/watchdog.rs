//! The turn is not held for ever: a thread that has it and comes to no event, because it is blocked
//! in a system call that is not wrapped or spins in code that is not instrumented, loses it. The
//! others go on, and it waits for the turn at its next event.
//!
//! Those who watch are the threads that wait for the turn: from time to time each looks at the
//! thread that has it. Being slow is not enough: the thread has to sleep in a system call, or to
//! have used processor time of its own.
//!
//! How the turn is taken depends on what the thread does.
//! - *Asleep in a system call*: it is marked, and if it is asleep still, it is expelled: whatever it
//!   does next, it sees that. If it woke in between, it removes the mark and keeps the turn.
//! - *Running*: a signal makes it give the turn away by itself. (A signal would cut some system
//!   calls short, so those who sleep get none.)
//!
//! A thread that was cancelled and lets itself be cancelled anywhere gets the same signal, and ends where
//! it is: it may never come to a call.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, fence};

use foretell_wire::limits::{SPINNING, SPINNING_BESIDE_SLEEPERS};
use foretell_wire::outside::Cause;
use libc::{c_int, c_void};

use crate::local;
use crate::outside;
use crate::real::real;
use crate::recorder::{self, recorder};
use crate::scheduler;
use crate::sys;
use crate::thread::{State, Thread, Wait};
use crate::wrappers::threads;

/// In [`Thread::expelled`]: it has its turn, if it asks for it.
const FREE: u8 = 0;
/// Somebody is about to take the turn from it.
const MARKED: u8 = 1;
/// It has no turn.
const EXPELLED: u8 = 2;

/// How long a thread sleeps before it looks after the one that has the turn.
pub static LOOK_AFTER: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The signal that makes a thread give its turn away.
const SIGNAL: c_int = 61;

/// The signal that makes a cancelled thread end.
const CANCEL: c_int = 60;

/// The thread that took the turn last.
static RUNNING: AtomicPtr<Thread> = AtomicPtr::new(std::ptr::null_mut());
/// How many turns there were.
static TURNS: AtomicU64 = AtomicU64::new(0);
/// [`SIGNAL`] and [`CANCEL`] have our handlers.
static READY: AtomicBool = AtomicBool::new(false);

/// What a waiting thread saw last.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    turns: u64,
    index: u32,
    /// The system call that the thread was in.
    call: Option<u64>,
    /// Its processor time when it was first seen like this.
    processor: u64,
}

/// The thread has the turn now.
#[inline(always)]
pub fn took_turn(me: &mut Thread) {
    RUNNING.store(me, Relaxed);
    TURNS.store(TURNS.load(Relaxed).wrapping_add(1), Relaxed);
}

/// A thread that waits for the turn looks at the one that has it. Says whether the turn is the
/// looker's now.
pub fn look(me: &mut Thread, last: &mut Look) -> bool {
    let holder = RUNNING.load(SeqCst);
    if holder.is_null() || std::ptr::eq(holder, me) {
        return false;
    }
    // SAFETY: the states of threads are never freed.
    let holder = unsafe { &mut *holder };
    if !scheduler::has_turn(holder) || holder.task == 0 {
        return false;
    }
    if holder.cancelled && holder.cancelled_anywhere {
        ask(holder, CANCEL, || true);
        return false;
    }
    // A loop that calls a hook in each round is in the runtime most of the time.
    const GLANCES: usize = 1000;
    if (0..GLANCES).all(|_| holder.is_busy()) {
        return false;
    }
    let call = outside::system_call(holder.task);
    let index = seen_index(holder);
    let processor = sys::clock(processor_clock(holder.task));
    let now = Look { turns: TURNS.load(SeqCst), index, call, processor };
    if (Look { processor: last.processor, ..now }) != *last {
        *last = now;
        return false;
    }
    match call {
        Some(call) if somebody_waits(me, true) => expel(me, holder, call),
        None if {
            let spent = processor.saturating_sub(last.processor);
            spent >= SPINNING && somebody_waits(me, false)
                || spent >= SPINNING_BESIDE_SLEEPERS && somebody_waits(me, true)
        } =>
        {
            *last = Look::default();
            ask(holder, SIGNAL, || seen_index(holder) == index);
            false
        }
        _ => false,
    }
}

/// How many events a thread that may be running has recorded.
fn seen_index(thread: &Thread) -> u32 {
    // SAFETY: the field is the thread's own, and may change.
    unsafe { (&raw const thread.slots.index).read_volatile() }
}

/// Whether somebody could go on without the thread that has the turn. The states of threads do not
/// change while it comes to no event. `timed`: also those who wait for time or files.
fn somebody_waits(me: &Thread, timed: bool) -> bool {
    let waits = |thread: &Thread| {
        thread.state == State::Runnable
            || thread.back.load(SeqCst)
            || timed
                && thread.state == State::Blocked
                && (thread.deadline.is_some() || thread.wait == Wait::Files)
    };
    // SAFETY: only looked at; whoever has the turn does nothing, and it is checked once more before
    // the turn is taken.
    waits(me)
        || unsafe { scheduler::scheduler() }.threads.iter().any(|&other| {
            // SAFETY: the states of threads are never freed.
            let other = unsafe { &*other };
            !scheduler::has_turn(other) && waits(other)
        })
}

/// The clock of a task's processor time, as the kernel numbers it.
fn processor_clock(task: u32) -> c_int {
    (!(task as c_int)) << 3 | 6
}

/// Takes the turn from a thread that sleeps in a system call.
fn expel(me: &mut Thread, holder: &mut Thread, call: u64) -> bool {
    holder.expelled.store(MARKED, SeqCst);
    let cursor = &raw mut holder.slots.cursor;
    // SAFETY: the field is read anew for each event; the thread sets it again when it runs.
    unsafe { cursor.write_volatile(recorder::NOWHERE.0.get()) };
    let asleep = !holder.is_busy()
        && scheduler::has_turn(holder)
        && outside::system_call(holder.task) == Some(call);
    let next = if asleep { EXPELLED } else { FREE };
    if holder.expelled.compare_exchange(MARKED, next, SeqCst, SeqCst).is_err() || !asleep {
        return false;
    }
    scheduler::seize(me);
    holder.state = State::External;
    outside::note(holder.number, Cause::BlockedCall, call, "", caller_of(holder.task));
    true
}

/// Where in the program a sleeping task made its call: the first return address on its stack that
/// lies in the executable.
fn caller_of(task: u32) -> u64 {
    let found = || {
        let text = sys::read_file(format!("/proc/self/task/{task}/syscall\0").as_bytes())?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let stack = text.split_whitespace().nth(7)?.strip_prefix("0x")?;
        program_address_on(u64::from_str_radix(stack, 16).ok()?)
    };
    found().unwrap_or(0)
}

/// The first word on the stack that lies in code of the program.
fn program_address_on(stack: u64) -> Option<u64> {
    let mut words = [0u64; 512];
    let ours = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
    let theirs = libc::iovec { iov_base: stack as *mut c_void, iov_len: size_of_val(&words) };
    let process = u64::from(sys::process());
    let (ours, theirs) = ((&raw const ours) as u64, (&raw const theirs) as u64);
    // SAFETY: the kernel copies what there is, into our own buffer.
    let copied = unsafe { sys::call(libc::SYS_process_vm_readv, [process, ours, 1, theirs, 1, 0]) };
    let count = usize::try_from(copied).ok()? / 8;
    words[..count].iter().copied().find(|&word| crate::modules::is_program_code(word))
}

/// The thread has lost its turn and comes to an event: waits for the turn. False when it has not
/// lost it: it is inside the runtime.
#[cold]
#[inline(never)]
pub fn readmit(me: &mut Thread) -> bool {
    if me.is_busy() || me.expelled.load(SeqCst) == FREE {
        return false;
    }
    me.enter();
    if me.expelled.compare_exchange(MARKED, FREE, SeqCst, SeqCst).is_err() {
        scheduler::enter(me);
        me.expelled.store(FREE, SeqCst);
    }
    // SAFETY: the thread has the turn.
    me.slots.cursor = unsafe { recorder() }.cursor();
    true
}

/// Asks a thread by a signal to give its turn away ([`SIGNAL`]), or to end where it is ([`CANCEL`]). Most of the
/// time it may be inside the runtime, where it must not. `still`: whether it is to be asked again.
fn ask(holder: &Thread, signal: c_int, still: impl Fn() -> bool) {
    const TRIES: usize = 500;
    const BETWEEN: u64 = 10_000;
    for _ in 0..TRIES {
        if !scheduler::has_turn(holder) || holder.state == State::Finished || !still() {
            break;
        }
        send(holder, signal);
        sys::sleep(BETWEEN);
    }
}

/// A thread that lets itself be cancelled anywhere was cancelled. If it goes on without the turn, nobody looks
/// at it any more: it is asked to end at once.
pub fn cancelled(thread: &Thread) {
    fence(SeqCst);
    if thread.expelled.load(SeqCst) == EXPELLED {
        send(thread, CANCEL);
    }
}

/// Sends one of our signals to a thread of the program.
fn send(thread: &Thread, signal: c_int) {
    if !READY.swap(true, SeqCst) {
        let handlers = [(SIGNAL, leave as *const () as usize), (CANCEL, end as *const () as usize)];
        for (signal, handler) in handlers {
            // SAFETY: handlers that do what they may where the thread is outside the runtime.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                crate::wrappers::signals::install(signal, &action);
            }
        }
    }
    let process = u64::from(sys::process());
    // SAFETY: a signal that has a handler.
    unsafe {
        sys::call(libc::SYS_tgkill, [process, thread.task.into(), signal as u64, 0, 0, 0]);
    }
}

/// Runs in a thread that was cancelled and lets itself be cancelled anywhere: it ends, unless it is inside
/// the runtime.
unsafe extern "C-unwind" fn end(_signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    let current = local::current();
    if current.is_null() {
        return;
    }
    // SAFETY: this thread's own state.
    let me = unsafe { &mut *current };
    if !me.is_busy() && me.expelled.load(SeqCst) == EXPELLED && readmit(me) {
        me.leave();
    }
    if !me.is_inside() && scheduler::has_turn(me) && threads::is_cancelled(me) {
        real!(pthread_testcancel() -> ());
    }
}

/// Runs in the thread that has the turn and no event: it goes on without.
unsafe extern "C" fn leave(
    _signal: c_int,
    _information: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let current = local::current();
    if current.is_null() {
        return;
    }
    // SAFETY: this thread's own state; the kernel's context.
    unsafe {
        let me = &mut *current;
        if me.is_inside() || !scheduler::has_turn(me) {
            return;
        }
        me.enter();
        let registers = &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let mut place = registers[libc::REG_RIP as usize] as u64 + 1; // as a return address
        if !crate::modules::is_program_code(place) {
            let stack = registers[libc::REG_RSP as usize] as u64;
            place = program_address_on(stack).unwrap_or(place);
        }
        outside::note(me.number, Cause::Spinning, 0, "", place);
        me.slots.cursor = recorder::NOWHERE.0.get();
        scheduler::leave(me);
        me.expelled.store(EXPELLED, SeqCst);
        me.stays_out();
        // Whoever got the turn may have cancelled it before it counted as expelled.
        fence(SeqCst);
        if (&raw const me.cancelled).read_volatile() && me.cancelled_anywhere {
            send(me, CANCEL);
        }
    }
}
