//! The locks of Rust's standard library, which the pass takes out of the program's code (see `rust` in
//! foretell-instrument).
//!
//! The word of a lock in memory follows the model: code of the library that is not instrumented may use
//! the same lock, and finds it as it is. Where such code holds it, the model steps aside and the library's
//! own slow way waits, on a futex.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use foretell_abi::Site;
use foretell_abi::rust_lock::{READER_WRITER, SHARED, TRY};
use foretell_wire::{Kind, ObjectKind};
use libc::c_void;

use super::mutex::{self, Patience, unlocked};
use super::{condition, once, rwlock};
use crate::local;
use crate::objects::{self, Model, ReaderWriter};
use crate::outside;
use crate::scheduler;
use crate::thread::Session;

/// The number of the lock at the word. A word at 0 is a lock that nobody has: one that the model knows as
/// taken was freed and made anew.
fn number(word: &AtomicU32, flags: u32) -> u32 {
    let free = word.load(Relaxed) == 0;
    let address = word.as_ptr() as u64;
    let object = match flags & READER_WRITER {
        0 => objects::get(
            address,
            |model| matches!(model, Model::Mutex(mutex) if mutex.owner.is_none() || !free),
            || unlocked(ObjectKind::Mutex),
        ),
        _ => objects::get(
            address,
            |model| matches!(model, Model::ReaderWriter(lock) if is_free(lock) || !free),
            || Model::ReaderWriter(ReaderWriter::default()),
        ),
    };
    object.number
}

fn is_free(lock: &ReaderWriter) -> bool {
    lock.writer.is_none() && lock.readers.is_empty()
}

/// Whether the calling thread has the lock, as far as the model knows.
fn is_held(session: &Session, number: u32) -> bool {
    let me = session.me.number;
    match &objects::by_number(number).model {
        Model::Mutex(mutex) => mutex.owner == Some(me),
        Model::ReaderWriter(lock) => lock.writer == Some(me) || lock.readers.contains(&me),
        _ => false,
    }
}

/// The word of a mutex that is locked.
const LOCKED: u32 = 1;
/// Of the words of reader-writer locks: one reader, and the writer.
const READER: u32 = 1;
const WRITER: u32 = (1 << 30) - 1;

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_acquire(
    word: *const AtomicU32,
    expected: u32,
    desired: u32,
    flags: u32,
    site: *const Site,
) -> u32 {
    // SAFETY: the program's lock.
    let word = unsafe { &*word };
    let Some(mut session) = Session::begin_hook() else {
        let (Ok(old) | Err(old)) = word.compare_exchange(expected, desired, Acquire, Relaxed);
        return old;
    };
    session.place = session.recorder().site(site);
    let number = number(word, flags);
    let shared = flags & SHARED != 0;
    let patience = || if flags & TRY != 0 { Patience::Try } else { Patience::Until(None) };
    let result = match flags & READER_WRITER {
        0 => mutex::acquire(&mut session, number, patience()),
        _ => rwlock::acquire(&mut session, number, shared, patience()),
    };
    let (free, taken) = match (flags & READER_WRITER, shared) {
        (0, _) => (word.load(SeqCst) == 0, LOCKED),
        (_, true) => (word.load(SeqCst) < WRITER - READER, READER),
        (_, false) => (word.load(SeqCst) == 0, WRITER),
    };
    match result {
        0 if free => {
            word.fetch_add(taken, SeqCst);
            expected
        }
        // Code that is not seen has it.
        0 => {
            give_back(&mut session, number);
            word.load(SeqCst)
        }
        // A word that fits no lock which can be had.
        _ if flags & READER_WRITER == 0 => LOCKED,
        _ => WRITER,
    }
}

fn give_back(session: &mut Session, number: u32) {
    match &objects::by_number(number).model {
        Model::Mutex(_) => mutex::release(session, number),
        _ => rwlock::release(session, number),
    };
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_release(
    word: *const AtomicU32,
    operand: u32,
    flags: u32,
    site: *const Site,
) -> u32 {
    // SAFETY: the program's lock.
    let word = unsafe { &*word };
    let session = Session::begin_hook();
    let old = match flags & READER_WRITER {
        0 => word.swap(operand, SeqCst),
        _ => word.fetch_sub(operand, SeqCst),
    };
    if let Some(mut session) = session {
        session.place = session.recorder().site(site);
        let held = objects::number_at(word.as_ptr() as u64);
        if let Some(number) = held.filter(|&number| is_held(&session, number)) {
            give_back(&mut session, number);
        }
    }
    old
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_initialised(
    word: *const AtomicU32,
    site: *const Site,
) -> u32 {
    if let Some(mut session) = Session::begin_hook() {
        session.place = session.recorder().site(site);
        once::comes_after(&mut session, word as u64);
    }
    // SAFETY: the program's word.
    unsafe { &*word }.load(Acquire)
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_place(site: *const Site) {
    if let Some(mut session) = Session::begin_hook() {
        local::set_caller(session.recorder().site(site));
    }
}

type Wait = unsafe extern "C-unwind" fn(*const AtomicU32, *const AtomicU32);
type WaitTimeout =
    unsafe extern "C-unwind" fn(*const AtomicU32, *const AtomicU32, u64, u32) -> bool;
type Notify = unsafe extern "C-unwind" fn(*const AtomicU32);
type Once =
    unsafe extern "C-unwind" fn(*const AtomicU32, bool, *mut c_void, *const c_void, *const c_void);

/// Waits for a condition with a mutex that the model says the thread has; gives the time-out, or `None`
/// where the library itself must wait.
unsafe fn wait(
    condition: *const AtomicU32,
    mutex: *const AtomicU32,
    limit: Option<u64>,
) -> Option<bool> {
    let mut session = Session::begin()?;
    let lock = objects::number_at(mutex as u64).filter(|&lock| is_held(&session, lock))?;
    session.point();
    // SAFETY: the program's mutex.
    let word = unsafe { &*mutex };
    let number = condition::object_at(condition as u64).number;
    let deadline = limit.map(|limit| scheduler::now().saturating_add(limit));
    if deadline.is_some() {
        outside::note_outcome(&session, "Condvar::wait_timeout");
    }
    word.store(0, SeqCst);
    let result = condition::wait_modelled(session, number, lock, deadline);
    word.store(1, SeqCst);
    Some(result == libc::ETIMEDOUT)
}

/// `Condvar::wait`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_wait(
    original: Wait,
    condition: *const AtomicU32,
    mutex: *const AtomicU32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if wait(condition, mutex, None).is_none() {
            original(condition, mutex);
        }
    }
}

/// `Condvar::wait_timeout`: whether it was woken.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_wait_timeout(
    original: WaitTimeout,
    condition: *const AtomicU32,
    mutex: *const AtomicU32,
    seconds: u64,
    nanoseconds: u32,
) -> bool {
    let limit = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.into());
    // SAFETY: the caller's promise.
    unsafe {
        match wait(condition, mutex, Some(limit)) {
            Some(timed_out) => !timed_out,
            None => original(condition, mutex, seconds, nanoseconds),
        }
    }
}

/// Wakes waiters of the model, and those that wait in the library.
unsafe fn notify(original: Notify, condition: *const AtomicU32, kind: Kind) {
    if let Some(mut session) = Session::begin() {
        session.point();
        let number = condition::object_at(condition as u64).number;
        condition::notify_modelled(&mut session, number, kind);
    }
    // SAFETY: as the program asked.
    unsafe { original(condition) }
}

/// `Condvar::notify_one`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_notify_one(
    original: Notify,
    condition: *const AtomicU32,
) {
    // SAFETY: the caller's promise.
    unsafe { notify(original, condition, Kind::Signal) }
}

/// `Condvar::notify_all`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_notify_all(
    original: Notify,
    condition: *const AtomicU32,
) {
    // SAFETY: the caller's promise.
    unsafe { notify(original, condition, Kind::Broadcast) }
}

/// `Once::call`: behind `Once`, `OnceLock` and `LazyLock`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_once(
    original: Once,
    word: *const AtomicU32,
    ignores_poison: bool,
    closure: *mut c_void,
    methods: *const c_void,
    place: *const c_void,
) {
    let address = word as u64;
    if let Some(mut session) = Session::begin()
        && !once::begin(&mut session, address, None)
    {
        return;
    }
    let attempt = once::Attempt(address);
    // SAFETY: the caller's promise.
    unsafe { original(word, ignores_poison, closure, methods, place) };
    if let Some(mut session) = Session::begin() {
        once::end(&mut session, address);
    }
    drop(attempt);
}
