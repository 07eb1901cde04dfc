//! Switching without the kernel: whoever has the turn takes over the next thread's stack.
//!
//! By futex a switch costs a wake-up, a sleep and the trip between processors. In fiber mode the
//! running kernel thread (the *carrier*) saves its registers, loads those of the next thread and its
//! thread pointer (`wrfsbase`), and goes on as that thread. The kernel thread that the next thread
//! was created with (its *home*) meanwhile sleeps on a stack of its own. A thread that must be on
//! its home (before a system call that blocks, before it ends, before a fork or a signal to itself)
//! goes there: its carrier parks, its home wakes and loads its registers.
//!
//! What a program can notice: signals and their masks belong to kernel threads, so the first handler
//! or mask that it sets ends fiber mode for good ([`give_up`]); names and processor times of kernel
//! threads are those of the carrier. So the mode must be asked for. Without the instruction
//! (`AT_HWCAP2`) it is futex mode whatever is asked for.

use core::arch::naked_asm;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use crate::scheduler;
use crate::sys;
use crate::thread::Thread;

/// Whether stacks are taken over.
static ON: AtomicBool = AtomicBool::new(false);
/// The thread whose home the kernel thread with the turn is.
static CARRIER: AtomicPtr<Thread> = AtomicPtr::new(std::ptr::null_mut());

/// Bytes of the stack on which a home sleeps; room for a signal handler, should one come.
const PARKING: usize = 64 << 10;

/// A thread's registers while it does not run.
#[repr(C)]
pub struct Context {
    /// Its stack pointer, all else lies there; 0 while it runs or sleeps in futex mode.
    stack: AtomicU64,
    /// Its thread pointer.
    pointer: u64,
    /// The upper end of the stack on which its home sleeps; 0 before there is one.
    parking: u64,
}

impl Context {
    /// Of a thread that has not begun.
    pub const fn new() -> Self {
        Self { stack: AtomicU64::new(0), pointer: 0, parking: 0 }
    }
}

/// What is to happen once a thread's registers are saved.
pub enum Then {
    /// Nothing: it had no turn.
    Nothing,
    /// The turn goes to this thread, on its home.
    Give(*mut Thread),
    /// The turn lies free.
    Free,
}

/// Asks for fiber mode.
pub fn turn_on() {
    const FSGSBASE: u64 = 2;
    // SAFETY: asks the kernel's table.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & FSGSBASE != 0 {
        ON.store(true, SeqCst);
    }
}

/// From now on threads stay at home.
pub fn give_up(me: &mut Thread) {
    if ON.swap(false, SeqCst) {
        go_home(me);
    }
}

/// The running kernel thread is the home of this thread, which has just begun.
pub fn is_home(me: &mut Thread) {
    // SAFETY: asks who we are: on x86-64 the handle is the thread pointer.
    me.context.pointer = unsafe { libc::pthread_self() };
}

/// In a forked child there are no other homes.
pub fn after_fork(me: &mut Thread) {
    ON.store(false, SeqCst);
    carries(me);
}

/// The thread has the turn and is on its home.
pub fn carries(me: &mut Thread) {
    CARRIER.store(me, SeqCst);
}

/// Takes over the stack of the next thread, if that can be; returns when this one runs again.
pub fn switch(me: &mut Thread, next: *mut Thread) -> bool {
    if !ON.load(SeqCst) {
        return false;
    }
    // SAFETY: a live thread, which does not run.
    let next = unsafe { &mut (*next).context };
    let stack = next.stack.swap(0, SeqCst);
    if stack == 0 {
        return false;
    }
    // SAFETY: what `park` or another switch saved, and nobody else has it.
    unsafe { exchange(&raw mut me.context, stack, next.pointer) };
    true
}

/// Saves the thread so that any kernel thread can take it over, and sleeps on the carrier's own
/// stack until the carrier's own thread is given the turn. Returns when `me` has the turn. False in
/// futex mode, when the thread has to sleep by itself.
/// `at_home`: it has no turn, and is on its home.
pub fn suspend(me: &mut Thread, then: Then, at_home: bool) -> bool {
    let home = if at_home { me as *mut Thread } else { CARRIER.load(SeqCst) };
    let away = !std::ptr::eq(home, me);
    if !away && !ON.load(SeqCst) {
        return false;
    }
    // SAFETY: states of threads are never freed; the parking stack belongs to this kernel thread.
    unsafe {
        if (*home).context.parking == 0 {
            let stack = sys::map(PARKING);
            if stack.is_null() {
                return false;
            }
            (*home).context.parking = stack as u64 + PARKING as u64;
        }
        park(&raw mut me.context, home, &then, (*home).context.parking);
    }
    true
}

/// Goes on on the kernel thread that this thread was created with.
pub fn go_home(me: &mut Thread) {
    if !std::ptr::eq(CARRIER.load(SeqCst), me) {
        let myself: *mut Thread = me;
        suspend(me, Then::Give(myself), false);
    }
}

/// Saves the registers that a function must keep, and gives the context's stack pointer its value.
macro_rules! save {
    () => {
        concat!(
            "push rbx\n push rbp\n push r12\n push r13\n push r14\n push r15\n sub rsp, 8\n",
            "stmxcsr [rsp]\n fnstcw [rsp + 4]\n"
        )
    };
}

/// The reverse of `save`.
macro_rules! load {
    () => {
        concat!(
            "ldmxcsr [rsp]\n fldcw [rsp + 4]\n add rsp, 8\n",
            "pop r15\n pop r14\n pop r13\n pop r12\n pop rbp\n pop rbx\n ret\n"
        )
    };
}

/// Saves the running thread into `from` and goes on with the one that was saved at `stack`.
#[unsafe(naked)]
unsafe extern "C" fn exchange(from: *mut Context, stack: u64, pointer: u64) {
    naked_asm!(save!(), "mov [rdi], rsp", "mov rsp, rsi", "wrfsbase rdx", load!(),)
}

/// Saves the running thread, goes to the stack `parking`, sleeps there, and goes on with `home`.
#[unsafe(naked)]
unsafe extern "C" fn park(from: *mut Context, home: *mut Thread, then: *const Then, parking: u64) {
    naked_asm!(
        save!(),
        "mov r8, rsp",
        "mov rsp, rcx",
        "mov rcx, r8",
        "call {sleep}",
        // The stack pointer of the home's thread and, in the second register, its thread pointer.
        "mov rsp, rax",
        "wrfsbase rdx",
        load!(),
        sleep = sym sleep,
    )
}

#[repr(C)]
struct Resumed {
    stack: u64,
    pointer: u64,
}

/// On the parking stack: lets go of the thread that was saved, then sleeps until the home's own
/// thread is to run here.
unsafe extern "C" fn sleep(
    from: *mut Context,
    home: *mut Thread,
    then: *const Then,
    stack: u64,
) -> Resumed {
    // SAFETY: `then` lies on the stack that was left and is read before anybody gets it; states of
    // threads are never freed.
    unsafe {
        let then = then.read();
        (*from).stack.store(stack, SeqCst);
        match then {
            Then::Nothing => {}
            Then::Give(next) => scheduler::give(next),
            Then::Free => scheduler::free_turn(),
        }
        let word = &(*home).word;
        loop {
            while word.load(SeqCst) == 0 {
                sys::futex_wait(word, 0, None, false);
            }
            word.store(0, SeqCst);
            let stack = (*home).context.stack.swap(0, SeqCst);
            if stack != 0 {
                CARRIER.store(home, SeqCst);
                return Resumed { stack, pointer: (*home).context.pointer };
            }
        }
    }
}
