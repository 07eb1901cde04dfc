//! Signal handlers of the program.
//!
//! A handler has to run with the turn, or what it does would be neither recorded nor known to the
//! scheduler: a semaphore that it posts wakes a thread only if the model hears of it. So the kernel
//! calls [`deliver`], which runs the program's handler
//! - at once where the thread runs the program's code, because then it has the turn;
//! - after it has got the turn, where the thread sleeps inside the runtime: its wait then looks
//!   again;
//! - at its next step, where the signal came in the middle of the runtime's work.
//!
//! The signals that end a program by its own fault go to the program as they are.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize};

use foretell_wire::outside::Cause;
use libc::{c_int, c_uint, c_void};

use super::files::changes_process;
use super::process::{FATAL, signals_matter};
use crate::channels;
use crate::local;
use crate::outside::{self, HANDLED};
use crate::real::{interpose, real};
use crate::scheduler;
use crate::sys;
use crate::thread::{Parked, Session, State, Thread};
use crate::turn::TurnCell;

/// One past the last signal.
const SIGNALS: usize = 65;

/// The program's handlers, and the flags with which they were installed.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static FLAGS: [AtomicI32; SIGNALS] = [const { AtomicI32::new(0) }; SIGNALS];

/// Functions of the program that wake nobody where they are handlers, as the pass says.
static QUIET: TurnCell<BTreeSet<usize>> = TurnCell::new(BTreeSet::new());

/// What the pass says of a module's functions, see `foretell_abi::Module::quiet`.
pub fn are_quiet(functions: impl Iterator<Item = usize>) {
    // SAFETY: who registers a module has the turn.
    unsafe { QUIET.get() }.extend(functions);
}

/// Whether the handler of this signal wakes nobody by what it does.
pub fn is_quiet(signal: c_int) -> bool {
    // SAFETY: callers have the turn.
    unsafe { QUIET.get() }.contains(&HANDLERS[signal as usize].load(SeqCst))
}

/// Whether a wait that this signal interrupts goes on after its handler, if the system can do that.
pub fn restarts(signal: c_int) -> bool {
    flags_of(signal) & libc::SA_RESTART != 0
}

type Simple = unsafe extern "C-unwind" fn(c_int);
type Informed = unsafe extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

fn flags_of(signal: c_int) -> c_int {
    FLAGS[signal as usize].load(SeqCst)
}

/// Calls the program's handler.
unsafe fn run(signal: c_int, information: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = HANDLERS[signal as usize].load(SeqCst);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return; // taken back while the signal was on its way
    }
    if let Some(mut session) = Session::begin() {
        channels::handles_signal(&mut session, signal);
    }
    // SAFETY: the program gave a function of the kind that its flags say.
    unsafe {
        if flags_of(signal) & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, Informed>(handler)(signal, information, context);
        } else {
            std::mem::transmute::<usize, Simple>(handler)(signal);
        }
    }
}

/// Runs the program's handler in a thread that is inside the runtime and has the turn.
unsafe fn run_with_turn(
    me: &mut Thread,
    signal: c_int,
    information: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // If the handler leaves by `longjmp`, the thread is outside the runtime and goes on there.
    me.leave();
    // SAFETY: the caller's promise.
    unsafe { run(signal, information, context) };
    me.enter();
    me.handled = true;
    if flags_of(signal) & libc::SA_RESTART == 0 {
        me.interrupted = true;
    }
}

/// What the kernel calls in the place of the program's handler.
unsafe extern "C-unwind" fn deliver(
    signal: c_int,
    information: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: this thread's errno and state; the kernel's information.
    unsafe {
        let errno = *libc::__errno_location();
        let current = local::current();
        if current.is_null() {
            run(signal, information, context);
        } else {
            let me = &mut *current;
            match me.parked {
                _ if !me.is_busy() => {
                    note_arrival(me, signal, &*information);
                    run(signal, information, context);
                }
                Parked::Turn => {
                    me.parked = Parked::No;
                    scheduler::take_turn(me);
                    note_arrival(me, signal, &*information);
                    run_with_turn(me, signal, information, context);
                    scheduler::keep_turn(me);
                }
                Parked::Call => {
                    me.parked = Parked::No;
                    scheduler::enter(me);
                    note_arrival(me, signal, &*information);
                    run_with_turn(me, signal, information, context);
                    scheduler::leave(me);
                    me.parked = Parked::Call;
                }
                Parked::No => {
                    me.signals |= 1 << (signal - 1);
                    if !is_from_program(&*information) {
                        me.signals_from_outside |= 1 << (signal - 1);
                    }
                    me.pause_at = 0;
                }
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// Whether a thread of the program sent the signal.
fn is_from_program(information: &libc::siginfo_t) -> bool {
    // SAFETY: the fields of a signal that was sent.
    let sender = unsafe { information.si_pid() } as u32;
    information.si_code <= 0
        && information.si_code != libc::SI_TIMER
        && (sender == sys::process() || sender == 0)
}

/// A signal that came from a timer, the kernel or another process comes at another time in another
/// run.
fn note_arrival(me: &mut Thread, signal: c_int, information: &libc::siginfo_t) {
    if is_from_program(information) || me.expelled.load(SeqCst) != 0 {
        return;
    }
    let outside = me.is_busy();
    if !outside {
        me.enter();
    }
    outside::note(me.number, Cause::Signal, signal as u64, "", 0);
    if !outside {
        me.leave();
    }
}

/// Runs the handlers of signals that came in the middle of the runtime's work. The thread has the
/// turn; if it waits for something, it looks again.
pub fn run_pending(me: &mut Thread) {
    while me.signals != 0 {
        let signal = me.signals.trailing_zeros() as c_int + 1;
        me.signals &= me.signals - 1;
        let bit = 1 << (signal - 1);
        if me.signals_from_outside & bit != 0 {
            me.signals_from_outside &= !bit;
            outside::note(me.number, Cause::Signal, signal as u64, "", 0);
        }
        let before = (me.state, me.wait, me.deadline);
        me.state = State::Runnable;
        if flags_of(signal) & libc::SA_SIGINFO != 0 {
            // What the kernel told besides the number is gone.
            outside::note(me.number, Cause::Signal, signal as u64, "", 0);
        }
        // SAFETY: plain structures.
        unsafe {
            let mut information: libc::siginfo_t = std::mem::zeroed();
            information.si_signo = signal;
            let mut context: libc::ucontext_t = std::mem::zeroed();
            run_with_turn(me, signal, &mut information, (&raw mut context).cast());
        }
        if before.0 != State::Blocked {
            (me.state, me.wait, me.deadline) = before;
        }
    }
}

/// The signals that some thread did not block when it ended: bit 0 for signal 1.
static OPEN_AT_END: AtomicU64 = AtomicU64::new(0);

/// The calling thread has had its last event. While the C library still takes it down, no signal may come to it: in
/// another run it would be gone already.
pub fn thread_ends() {
    let (mut mask, all) = (0u64, u64::MAX);
    // SAFETY: the kernel's mask has 64 bits.
    let changed = unsafe {
        let (all, mask) = ((&raw const all) as u64, (&raw mut mask) as u64);
        let how = libc::SIG_SETMASK as u64;
        sys::call(libc::SYS_rt_sigprocmask, [how, all, mask, size_of::<u64>() as u64, 0, 0])
    };
    if changed == 0 {
        OPEN_AT_END.fetch_or(!mask, Relaxed);
    }
}

/// Signals that do nothing by default.
const HARMLESS: [c_int; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

/// Whether a signal to the process would have ended it while a thread that has ended was alive.
pub fn could_end_process(signal: c_int) -> bool {
    // SAFETY: asks only.
    let is_default = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
    };
    is_default && !HARMLESS.contains(&signal) && OPEN_AT_END.load(Relaxed) >> (signal - 1) & 1 != 0
}

/// The signals that a running timer may send: bit 0 for signal 1.
static ARMED: AtomicU64 = AtomicU64::new(0);

/// A timer was set that sends the signal. Where a handler waits for it, when it comes is not varied, also where it
/// did not come in this run.
fn armed(signal: c_int) {
    ARMED.fetch_or(1 << (signal - 1), Relaxed);
    say_if_handled(signal);
}

fn say_if_handled(signal: c_int) {
    let bit = 1 << (signal - 1);
    if (ARMED.load(Relaxed) & HANDLED.load(Relaxed)) & bit != 0
        && let Some(session) = Session::begin()
    {
        outside::note_outcome(&session, "the arrival of a timer's signal");
    }
}

/// The signal of an interval timer.
fn signal_of(timer: c_int) -> c_int {
    match timer {
        libc::ITIMER_VIRTUAL => libc::SIGVTALRM,
        libc::ITIMER_PROF => libc::SIGPROF,
        _ => libc::SIGALRM,
    }
}

interpose! {
    fn alarm(seconds: c_uint) -> c_uint {
        if seconds > 0 {
            armed(libc::SIGALRM);
        }
        real!(alarm(seconds: c_uint) -> c_uint)
    }

    fn ualarm(first: libc::useconds_t, interval: libc::useconds_t) -> libc::useconds_t {
        if first > 0 {
            armed(libc::SIGALRM);
        }
        real!(ualarm(first: libc::useconds_t, interval: libc::useconds_t) -> libc::useconds_t)
    }

    fn setitimer(
        which: c_int, time: *const libc::itimerval, old: *mut libc::itimerval,
    ) -> c_int {
        if !time.is_null() && ((*time).it_value.tv_sec != 0 || (*time).it_value.tv_usec != 0) {
            armed(signal_of(which));
        }
        real!(setitimer(which: c_int, time: *const libc::itimerval, old: *mut libc::itimerval)
            -> c_int)
    }
}

/// Installs a handler of the runtime's own.
///
/// # Safety
/// The handler must be one.
pub unsafe fn install(signal: c_int, action: *const libc::sigaction) {
    let none: *mut libc::sigaction = std::ptr::null_mut();
    real!(sigaction(signal: c_int, action: *const libc::sigaction,
        none: *mut libc::sigaction) -> c_int);
}

/// Whether the handler of this signal is to be called by [`deliver`].
fn is_ours(signal: c_int) -> bool {
    (1..SIGNALS as c_int).contains(&signal)
        && !FATAL.contains(&signal)
        && !local::current().is_null()
}

interpose! {
    fn sigaction as set_action(
        signal: c_int, action: *const libc::sigaction, old: *mut libc::sigaction,
    ) -> c_int {
        if !action.is_null() {
            signals_matter();
        }
        if !is_ours(signal) {
            return real!(sigaction(signal: c_int, action: *const libc::sigaction,
                old: *mut libc::sigaction) -> c_int);
        }
        let at = signal as usize;
        let before = (HANDLERS[at].load(SeqCst), FLAGS[at].load(SeqCst));
        let mut given = action;
        let mut ours = (!action.is_null()).then(|| *action);
        if let Some(ours) = &mut ours {
            HANDLERS[at].store(ours.sa_sigaction, SeqCst);
            FLAGS[at].store(ours.sa_flags, SeqCst);
            if ![libc::SIG_DFL, libc::SIG_IGN].contains(&ours.sa_sigaction) {
                ours.sa_sigaction = deliver as *const () as usize;
                ours.sa_flags |= libc::SA_SIGINFO;
                given = ours;
            }
        }
        let result = real!(sigaction(signal: c_int, given: *const libc::sigaction,
            old: *mut libc::sigaction) -> c_int);
        if result != 0 {
            HANDLERS[at].store(before.0, SeqCst);
            FLAGS[at].store(before.1, SeqCst);
        } else if !action.is_null() {
            let now = HANDLERS[at].load(SeqCst);
            let handles = |handler| ![libc::SIG_DFL, libc::SIG_IGN].contains(&handler);
            if now != before.0 && (handles(now) || handles(before.0)) {
                // Which handler a signal meets is not varied.
                changes_process("sigaction");
            }
            let bit = 1u64 << (signal - 1);
            if std::ptr::eq(given, action) {
                HANDLED.fetch_and(!bit, Relaxed);
            } else {
                HANDLED.fetch_or(bit, Relaxed);
                say_if_handled(signal);
            }
        }
        if result == 0 && !old.is_null() && (*old).sa_sigaction == deliver as *const () as usize {
            (*old).sa_sigaction = before.0;
            (*old).sa_flags = before.1;
        }
        result
    }

    fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
        if !is_ours(signal) || handler == libc::SIG_ERR {
            signals_matter();
            return real!(signal(signal: c_int, handler: libc::sighandler_t)
                -> libc::sighandler_t);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaddset(&mut action.sa_mask, signal);
        let mut old: libc::sigaction = std::mem::zeroed();
        match set_action(signal, &action, &mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}
