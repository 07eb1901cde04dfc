//! The life of the process: forks, ends and fatal signals.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use foretell_wire::outside::Cause;
use foretell_wire::record;
use foretell_wire::{End, Kind, ObjectKind};
use libc::{c_char, c_int, c_uint, c_void, pid_t};

use super::time::input;
use super::{mutex, signals};
use crate::channels;
use crate::fiber;
use crate::local;
use crate::outside;
use crate::real::{Real, interpose, real};
use crate::recorder::recorder;
use crate::scheduler;
use crate::sys;
use crate::thread::Session;
use crate::turn::Turn;

/// The process that is recorded.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Modules of the pass report assertions themselves.
pub static PASS_REPORTS: AtomicBool = AtomicBool::new(false);

/// The signals that end a program by its own fault.
pub const FATAL: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP];

/// Remembers the process and watches for fatal signals.
pub fn initialise() {
    // Before those of the program: what its handlers do in the child is not recorded. The C library forks by itself, too
    // (`daemon`).
    // SAFETY: handlers that do what they may.
    unsafe { libc::pthread_atfork(None, Some(in_parent), Some(in_child)) };
    PROCESS.store(sys::process(), Relaxed);
    for signal in FATAL {
        // SAFETY: the handler does what handlers may; only default actions are replaced.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut old) != 0
                || old.sa_sigaction != libc::SIG_DFL
            {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = crash as *const () as usize;
            action.sa_flags =
                libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND | libc::SA_NODEFER;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Notes where the program dies and lets it die.
unsafe extern "C" fn crash(signal: c_int, information: *mut libc::siginfo_t, context: *mut c_void) {
    let current = local::current();
    if !current.is_null() && in_recorded_process() {
        // SAFETY: this thread's own state; the kernel's context.
        unsafe {
            let me = &mut *current;
            if scheduler::has_turn(me) {
                let mut looking = me.looking;
                if !me.is_inside() {
                    looking = 0;
                    me.enter();
                    me.settle();
                }
                let registers = &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
                let place = match looking {
                    0 => registers[libc::REG_RIP as usize] as u64,
                    place => place - 1, // a return address
                };
                // A signal that was sent has the number of its sender there.
                let address = match (*information).si_code {
                    1.. => (*information).si_addr() as u64,
                    _ => 0,
                };
                let signal = signal as u64;
                recorder().record(0, place, &record::Crash { signal, address });
                recorder().end(End::Crash, "");
            }
        }
    }
    // A fault comes again when we return; a signal that was sent must be sent again.
    // SAFETY: the handler is the default one by now.
    unsafe {
        if (*information).si_code <= 0 {
            let thread = sys::call(libc::SYS_gettid, [0; 6]) as u64;
            let process = u64::from(sys::process());
            sys::call(libc::SYS_tgkill, [process, thread, signal as u64, 0, 0, 0]);
        }
    }
}

/// False in a child that shares our memory (`vfork`) or has a copy of it.
pub fn in_recorded_process() -> bool {
    PROCESS.load(Relaxed) == sys::process()
}

/// The program is about to end in order: lets the other threads go first.
fn let_others_finish() {
    if in_recorded_process()
        && let Some(mut session) = Session::begin()
    {
        session.point();
        scheduler::await_others(session.me);
    }
}

type Main = unsafe extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// The program's `main`, as [`Main`].
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Stands in for `main`, because libc itself calls `exit` with what `main` returns.
unsafe extern "C-unwind" fn main_and_others(
    count: c_int,
    arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    // SAFETY: set by `__libc_start_main` to the program's `main`, which is called as libc would.
    let status = unsafe {
        let main = std::mem::transmute::<*mut c_void, Main>(MAIN.load(Relaxed));
        main(count, arguments, environment)
    };
    let_others_finish();
    status
}

/// The program ends now.
pub fn ending() {
    let_others_finish();
    if in_recorded_process()
        && let Some(mut session) = Session::begin()
    {
        for (what, count) in crate::hooks::pins() {
            if count > 0 {
                session.recorder().restriction(count, what);
            }
        }
        session.recorder().end(End::Exit, "");
    }
}

/// The program does something with signals, which belong to kernel threads.
pub fn signals_matter() {
    if let Some(session) = Session::begin() {
        fiber::give_up(session.me);
    }
}

/// Whether the program has a handler for the signal.
pub fn has_handler(signal: c_int) -> bool {
    let action: *const libc::sigaction = std::ptr::null();
    // SAFETY: asks only.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    let old: *mut libc::sigaction = &mut old;
    let asked = real!(sigaction(signal: c_int, action: *const libc::sigaction,
        old: *mut libc::sigaction) -> c_int);
    // SAFETY: filled by the call.
    asked == 0 && ![libc::SIG_DFL, libc::SIG_IGN].contains(&unsafe { (*old).sa_sigaction })
}

/// Notes which signals the thread blocks now.
fn note_mask() {
    if let Some(session) = Session::begin() {
        let (how, set): (c_int, *const c_void) = (libc::SIG_BLOCK, std::ptr::null());
        let mut mask = [0u64; 16];
        let old = mask.as_mut_ptr().cast::<c_void>();
        real!(pthread_sigmask(how: c_int, set: *const c_void, old: *mut c_void) -> c_int);
        session.me.mask = mask[0];
    }
}

/// The program does something for which it matters on which kernel thread it is.
pub fn go_home() {
    if let Some(session) = Session::begin() {
        fiber::go_home(session.me);
    }
}

/// Notes that a handler of the signal is about to interrupt a thread.
pub fn interrupts(session: &Session, signal: c_int) {
    outside::note(session.me.number, Cause::Interruption, signal as u64, "", session.place);
}

/// A task is about to begin by this function that is not recorded.
fn before_task(function: &str) {
    if in_recorded_process()
        && let Some(mut session) = Session::begin()
    {
        session.point();
        fiber::go_home(session.me);
        channels::forked(&mut session);
        outside::FORKED.store(true, Relaxed);
        outside::note(session.me.number, Cause::Process, 0, function, session.place);
    }
}

#[unsafe(link_section = "foretell_real")]
static REAL_VFORK: Real = Real::new(c"vfork");

/// A child is about to begin that borrows our memory and stack; gives the real function.
extern "C" fn before_vfork() -> *mut c_void {
    before_task("vfork");
    REAL_VFORK.address()
}

/// The child returns from here, too, and the parent once more: there must be no frame of ours then.
///
/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    core::arch::naked_asm!(
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "jmp rax",
        before = sym before_vfork,
    )
}

#[unsafe(link_section = "foretell_real")]
static REAL_CLONE: Real = Real::new(c"clone");

/// A task is about to begin that may be a thread or a process; gives the real function.
extern "C" fn before_clone() -> *mut c_void {
    before_task("clone");
    REAL_CLONE.address()
}

/// Arguments beyond the fourth are there only if the flags say so: they are handed on as they are.
///
/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clone() -> c_int {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_clone,
    )
}

/// Sends a signal to a process, which may be this one.
fn to_process(process: pid_t, signal: c_int, send: impl FnOnce() -> c_int) -> c_int {
    if let Some(mut session) = Session::begin() {
        fiber::go_home(session.me);
        // 0 stands for all processes of our group.
        let is_ours = process == 0 || u32::try_from(process) == Ok(sys::process());
        if (1..=64).contains(&signal) && is_ours {
            session.point();
            channels::signalled_process(&mut session, signal);
            if signals::could_end_process(signal) {
                outside::note_outcome(&session, "a signal that another thread did not block");
            }
            // SAFETY: the turn is ours.
            if has_handler(signal) && !unsafe { scheduler::scheduler() }.is_single() {
                interrupts(&session, signal);
            }
        }
    }
    let result = send();
    if let Some(mut session) = Session::begin() {
        session.point();
    }
    result
}

/// The lock of a stream.
fn lock_of(turn: Turn, stream: *mut libc::FILE) -> u32 {
    mutex::at(turn, stream as u64, ObjectKind::RecursiveMutex)
}

/// The program itself forks, not the C library.
static BY_PROGRAM: AtomicBool = AtomicBool::new(false);

extern "C" fn in_parent() {
    outside::FORKED.store(true, Relaxed);
    if !BY_PROGRAM.load(Relaxed)
        && let Some(session) = Session::begin()
    {
        outside::note(session.me.number, Cause::Process, 0, "fork by the C library", session.place);
    }
}

extern "C" fn in_child() {
    crate::allocator::after_fork();
    crate::arena::after_fork();
    crate::sync_only::after_fork();
    outside::after_fork();
    if let Some(mut session) = Session::begin() {
        session.recorder().stop();
        scheduler::after_fork(session.me);
    }
}

interpose! {
    fn fork() -> pid_t {
        // Handlers of `pthread_atfork` run inside and may lock: no session may be open.
        if let Some(mut session) = Session::begin() {
            session.point();
            fiber::go_home(session.me);
            channels::forked(&mut session);
        }
        BY_PROGRAM.store(true, Relaxed);
        let result = real!(fork() -> pid_t);
        BY_PROGRAM.store(false, Relaxed);
        if result != 0 && let Some(mut session) = Session::begin() {
            input(&mut session, "fork", result as u64);
            outside::note(session.me.number, Cause::Process, 0, "fork", session.place);
            session.point();
        }
        result
    }

    fn dlclose(library: *mut c_void) -> c_int {
        // Its instructions must not be told anything once it is gone.
        if let Some(mut session) = Session::begin() {
            session.recorder().forget_places(true);
        }
        let result = real!(dlclose(library: *mut c_void) -> c_int);
        if let Some(mut session) = Session::begin() {
            session.recorder().forget_places(false);
        }
        result
    }

    fn pthread_sigmask(how: c_int, set: *const c_void, old: *mut c_void) -> c_int {
        signals_matter();
        let result =
            real!(pthread_sigmask(how: c_int, set: *const c_void, old: *mut c_void) -> c_int);
        note_mask();
        result
    }

    fn sigprocmask(how: c_int, set: *const c_void, old: *mut c_void) -> c_int {
        signals_matter();
        let result = real!(sigprocmask(how: c_int, set: *const c_void, old: *mut c_void) -> c_int);
        note_mask();
        result
    }

    fn sigaltstack(stack: *const c_void, old: *mut c_void) -> c_int {
        signals_matter();
        real!(sigaltstack(stack: *const c_void, old: *mut c_void) -> c_int)
    }

    fn kill(process: pid_t, signal: c_int) -> c_int {
        to_process(process, signal, || real!(kill(process: pid_t, signal: c_int) -> c_int))
    }

    fn sigqueue(process: pid_t, signal: c_int, value: *mut c_void) -> c_int {
        to_process(process, signal, || {
            real!(sigqueue(process: pid_t, signal: c_int, value: *mut c_void) -> c_int)
        })
    }

    fn raise(signal: c_int) -> c_int {
        go_home();
        real!(raise(signal: c_int) -> c_int)
    }

    fn abort() -> () {
        go_home();
        real!(abort() -> ())
    }

    fn gettid() -> pid_t {
        go_home();
        sys::call(libc::SYS_gettid, [0; 6]) as pid_t
    }

    fn __libc_start_main(
        main: Main, count: c_int, arguments: *mut *mut c_char, first: *mut c_void,
        last: *mut c_void, loader: *mut c_void, stack: *mut c_void,
    ) -> c_int {
        MAIN.store(main as *mut c_void, Relaxed);
        let main: Main = main_and_others;
        real!(__libc_start_main(main: Main, count: c_int, arguments: *mut *mut c_char,
            first: *mut c_void, last: *mut c_void, loader: *mut c_void,
            stack: *mut c_void) -> c_int)
    }

    fn exit(status: c_int) -> () {
        let_others_finish();
        real!(exit(status: c_int) -> ())
    }

    fn _exit(status: c_int) -> () {
        ending();
        sys::exit(status)
    }

    fn _Exit(status: c_int) -> () {
        ending();
        sys::exit(status)
    }

    fn __assert_fail(
        assertion: *const c_char, file: *const c_char, line: c_uint, function: *const c_char,
    ) -> () {
        if !PASS_REPORTS.load(Relaxed) && let Some(mut session) = Session::begin() {
            session.event(Kind::Assert, 0, [0]);
            session.me.fails();
        }
        go_home();
        real!(__assert_fail(assertion: *const c_char, file: *const c_char, line: c_uint,
            function: *const c_char) -> ())
    }

    fn flockfile(stream: *mut libc::FILE) -> () {
        if let Some(mut session) = Session::begin() {
            let lock = lock_of(session.turn(), stream);
            mutex::acquire(&mut session, lock, mutex::Patience::Until(None));
            session.me.unpreemptible += 1;
        }
        real!(flockfile(stream: *mut libc::FILE) -> ());
    }

    fn ftrylockfile(stream: *mut libc::FILE) -> c_int {
        let result = real!(ftrylockfile(stream: *mut libc::FILE) -> c_int);
        if let Some(mut session) = Session::begin() {
            let lock = lock_of(session.turn(), stream);
            mutex::acquire(&mut session, lock, mutex::Patience::Try);
            session.me.unpreemptible += u32::from(result == 0);
        }
        result
    }

    fn funlockfile(stream: *mut libc::FILE) -> () {
        real!(funlockfile(stream: *mut libc::FILE) -> ());
        if let Some(mut session) = Session::begin() {
            session.me.unpreemptible = session.me.unpreemptible.saturating_sub(1);
            let lock = lock_of(session.turn(), stream);
            mutex::release(&mut session, lock);
        }
    }
}
