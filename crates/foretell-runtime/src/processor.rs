//! One processor for a run in which threads take turns.
//!
//! To wake a thread on another processor costs more than most turns last, above all in a virtual machine,
//! where that processor has gone to sleep meanwhile. So a run keeps to one processor. The program does not
//! notice: it is told the processors that it would have, programs that it starts have them, and one that
//! chooses processors itself gets what it chooses.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use libc::{c_int, c_void};

use crate::outside::tasks;
use crate::real::{interpose, real};
use crate::sys;

/// A set of processors, a bit each: as many as the kernel can have.
const WORDS: usize = 128;
type Set = [u64; WORDS];
const BYTES: u64 = size_of::<Set>() as u64;

/// What the program was started with, once it keeps to one processor.
static GIVEN: OnceLock<Set> = OnceLock::new();
/// It still does.
static KEPT: AtomicBool = AtomicBool::new(false);

/// From now on this thread, and those that it creates, run on this processor only. There is no other
/// thread yet.
pub fn keep_to(processor: u32) {
    let mut one: Set = [0; WORDS];
    let Some(word) = one.get_mut(processor as usize / 64) else { return };
    *word = 1 << (processor % 64);
    let mut given: Set = [0; WORDS];
    if get(0, &mut given) > 0 && set(0, &one) {
        KEPT.store(GIVEN.set(given).is_ok(), Relaxed);
    }
}

/// Calls something that starts another program, which has all processors.
pub fn with_all<R>(call: impl FnOnce() -> R) -> R {
    let mut kept: Set = [0; WORDS];
    let given = given().filter(|given| get(0, &mut kept) > 0 && set(0, given));
    let result = call();
    if given.is_some() {
        set(0, &kept);
    }
    result
}

/// What the program was started with, if it keeps to less.
fn given() -> Option<&'static Set> {
    GIVEN.get().filter(|_| KEPT.load(Relaxed))
}

/// The processors of a thread; gives how many bytes the kernel wrote.
fn get(thread: i32, to: &mut Set) -> i64 {
    let arguments = [thread as u64, BYTES, to.as_mut_ptr() as u64, 0, 0, 0];
    // SAFETY: the kernel writes at most so many bytes.
    unsafe { sys::call(libc::SYS_sched_getaffinity, arguments) }
}

fn set(thread: i32, to: &Set) -> bool {
    let arguments = [thread as u64, BYTES, to.as_ptr() as u64, 0, 0, 0];
    // SAFETY: the kernel only reads.
    unsafe { sys::call(libc::SYS_sched_setaffinity, arguments) == 0 }
}

/// The program asked which processors a thread of its has, and this is the answer: those that it was
/// started with.
unsafe fn told(result: c_int, size: usize, answer: *mut c_void) -> c_int {
    if let Some(given) = given().filter(|_| result == 0) {
        let bytes = size.min(BYTES as usize);
        // SAFETY: the program's set has so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(given.as_ptr().cast(), answer, bytes) };
    }
    result
}

/// The program chooses for itself: every thread has again what it was started with.
fn leave() {
    if let Some(given) = given() {
        KEPT.store(false, Relaxed);
        for task in tasks().unwrap_or_default() {
            set(task as i32, given);
        }
    }
}

/// Whether the number is that of this process or of one of its threads.
fn is_own(number: libc::pid_t) -> bool {
    number == 0 || tasks().is_some_and(|tasks| tasks.contains(&(number as u32)))
}

interpose! {
    fn sched_getaffinity(process: libc::pid_t, size: usize, to: *mut c_void) -> c_int {
        let result = real!(sched_getaffinity(
            process: libc::pid_t, size: usize, to: *mut c_void) -> c_int);
        if is_own(process) { told(result, size, to) } else { result }
    }

    fn pthread_getaffinity_np(thread: libc::pthread_t, size: usize, to: *mut c_void) -> c_int {
        let result = real!(pthread_getaffinity_np(
            thread: libc::pthread_t, size: usize, to: *mut c_void) -> c_int);
        told(result, size, to)
    }

    fn sched_setaffinity(process: libc::pid_t, size: usize, to: *const c_void) -> c_int {
        leave();
        real!(sched_setaffinity(process: libc::pid_t, size: usize, to: *const c_void) -> c_int)
    }

    fn pthread_setaffinity_np(thread: libc::pthread_t, size: usize, to: *const c_void) -> c_int {
        leave();
        real!(pthread_setaffinity_np(
            thread: libc::pthread_t, size: usize, to: *const c_void) -> c_int)
    }
}
