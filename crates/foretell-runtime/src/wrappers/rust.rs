//! The locks of Rust's standard library, which the pass takes out of the program's code (see `rust` in
//! foretell-instrument).
//!
//! The word of a lock in memory follows the model: code of the library that is not instrumented may use
//! the same lock, and finds it as it is. Where such code holds it, the model steps aside and the library's
//! own slow way waits, on a futex.
//!
//! A thread's token to go on after `park` is a semaphore in the trace. `park` is the library's own; which
//! thread's word it looked at is known by the futex it slept on, or by the token that is gone.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

use foretell_abi::rust_lock::{BYTE, READER_WRITER, SHARED, SUBTRACT, TRY};
use foretell_abi::{Order, Site};
use foretell_wire::{Kind, ObjectKind, access};
use libc::c_void;

use super::mutex::{self, Patience, unlocked};
use super::{barrier, condition, once, rwlock};
use crate::local;
use crate::objects::{self, Model, ReaderWriter};
use crate::outside;
use crate::recorder::head;
use crate::scheduler;
use crate::thread::Session;
use crate::turn::{Turn, TurnCell};

/// The word of a lock in memory.
#[derive(Clone, Copy)]
struct Word {
    address: u64,
    is_byte: bool,
}

impl Word {
    fn new(word: *const AtomicU32, flags: u32) -> Self {
        Self { address: word as u64, is_byte: flags & BYTE != 0 }
    }

    /// The word, by one of two ways to change it.
    fn change<T>(self, byte: impl FnOnce(&AtomicU8) -> T, word: impl FnOnce(&AtomicU32) -> T) -> T {
        // SAFETY: the program's lock.
        unsafe {
            match self.is_byte {
                true => byte(&*(self.address as *const AtomicU8)),
                false => word(&*(self.address as *const AtomicU32)),
            }
        }
    }

    fn load(self) -> u32 {
        self.change(|byte| byte.load(SeqCst).into(), |word| word.load(SeqCst))
    }

    fn add(self, value: u32) {
        self.change(
            |byte| _ = byte.fetch_add(value as u8, SeqCst),
            |word| _ = word.fetch_add(value, SeqCst),
        );
    }

    /// Gives what was there.
    fn subtract(self, value: u32) -> u32 {
        let byte = |byte: &AtomicU8| byte.fetch_sub(value as u8, SeqCst).into();
        self.change(byte, |word| word.fetch_sub(value, SeqCst))
    }

    fn swap(self, value: u32) -> u32 {
        self.change(|byte| byte.swap(value as u8, SeqCst).into(), |word| word.swap(value, SeqCst))
    }

    /// Gives what was there.
    fn compare_exchange(self, expected: u32, desired: u32) -> u32 {
        let byte = |byte: &AtomicU8| {
            let (Ok(old) | Err(old)) =
                byte.compare_exchange(expected as u8, desired as u8, SeqCst, SeqCst);
            old.into()
        };
        let word = |word: &AtomicU32| {
            let (Ok(old) | Err(old)) = word.compare_exchange(expected, desired, SeqCst, SeqCst);
            old
        };
        self.change(byte, word)
    }
}

/// The number of the lock at the word. A word at 0 is a lock that nobody has: one that the model knows as
/// taken was freed and made anew.
fn number(turn: Turn, word: Word, flags: u32) -> u32 {
    let address = word.address;
    // SAFETY: callers have the turn.
    let is_busy = unsafe { BUSY.get() }.contains(&address);
    let free = word.load() == 0 && !is_busy;
    let object = match flags & READER_WRITER {
        0 => objects::get(
            turn,
            address,
            |model| matches!(model, Model::Mutex(mutex) if mutex.owner.get().is_none() || !free),
            || unlocked(ObjectKind::Mutex),
        ),
        _ => objects::get(
            turn,
            address,
            |model| matches!(model, Model::ReaderWriter(lock) if lock.is_free(false) || !free),
            || Model::ReaderWriter(ReaderWriter::default()),
        ),
    };
    object.number
}

/// The words of locks that are being taken or given back: model and word may differ for a moment, in which
/// other threads run.
static BUSY: TurnCell<Vec<u64>> = TurnCell::new(Vec::new());

/// A lock whose word will follow the model; ends while the thread has the turn.
struct Busy(u64);

impl Busy {
    fn new(address: u64) -> Self {
        // SAFETY: callers have the turn.
        unsafe { BUSY.get() }.push(address);
        Self(address)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // SAFETY: as above.
        let busy = unsafe { BUSY.get() };
        if let Some(at) = busy.iter().position(|&address| address == self.0) {
            busy.swap_remove(at);
        }
    }
}

/// A module was written in Rust.
pub static IS_RUST: AtomicBool = AtomicBool::new(false);

/// Whether the calling thread has the lock, as far as the model knows.
fn is_held(session: &Session, number: u32) -> bool {
    let me = session.me.number;
    match &objects::by_number(session.turn(), number).model {
        Model::Mutex(mutex) => mutex.owner.get() == Some(me),
        Model::ReaderWriter(lock) => {
            lock.writer.get() == Some(me) || lock.readers.borrow().contains(&me)
        }
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
    let word = Word::new(word, flags);
    let Some(mut session) = Session::begin_hook() else {
        return word.compare_exchange(expected, desired);
    };
    session.place = session.recorder().site(site);
    let number = number(session.turn(), word, flags);
    let _busy = Busy::new(word.address);
    let shared = flags & SHARED != 0;
    if shared && is_held(&session, number) {
        // A writer that waits keeps new readers out, also those that read already.
        outside::note_outcome(&session, "RwLock::read");
    }
    let patience = || if flags & TRY != 0 { Patience::Try } else { Patience::Until(None) };
    let result = match flags & READER_WRITER {
        0 => mutex::acquire(&mut session, number, patience()),
        _ => rwlock::acquire(&mut session, number, shared, patience()),
    };
    let (free, taken) = match (flags & READER_WRITER, shared) {
        (0, _) => (word.load() == 0, LOCKED),
        (_, true) => (word.load() < WRITER - READER, READER),
        (_, false) => (word.load() == 0, WRITER),
    };
    match result {
        0 if free => {
            word.add(taken);
            expected
        }
        // Code that is not seen has it.
        0 => {
            give_back(&mut session, number);
            word.load()
        }
        // A word that fits no lock which can be had.
        _ if flags & READER_WRITER == 0 => LOCKED,
        _ => WRITER,
    }
}

fn give_back(session: &mut Session, number: u32) {
    match &objects::by_number(session.turn(), number).model {
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
    let word = Word::new(word, flags);
    let session = Session::begin_hook();
    let busy = session.as_ref().map(|_| Busy::new(word.address));
    let old = match flags & (SUBTRACT | BYTE) {
        0 => word.swap(operand),
        // Where others wait by the means of the lock's own library, that gives it back.
        BYTE => word.compare_exchange(LOCKED, operand),
        _ => word.subtract(operand),
    };
    if let Some(mut session) = session {
        session.place = session.recorder().site(site);
        let held = objects::number_at(session.turn(), word.address);
        if let Some(number) = held.filter(|&number| is_held(&session, number)) {
            give_back(&mut session, number);
        }
        drop(busy);
    }
    old
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_place(site: *const Site) {
    if let Some(mut session) = Session::begin_hook() {
        let place = session.recorder().site(site);
        session.me.called_at = place;
        local::set_caller(place);
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
    let lock =
        objects::number_at(session.turn(), mutex as u64).filter(|&lock| is_held(&session, lock))?;
    session.point();
    // SAFETY: the program's mutex.
    let word = unsafe { &*mutex };
    let number = condition::object_at(session.turn(), condition as u64).number;
    let deadline = limit.map(|limit| scheduler::now().saturating_add(limit));
    word.store(0, SeqCst);
    let busy = Busy::new(mutex as u64);
    let result = condition::wait_modelled(session, number, lock, deadline);
    let _session = Session::begin();
    word.store(1, SeqCst);
    drop(busy);
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
        let number = condition::object_at(session.turn(), condition as u64).number;
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

/// What a closure can be called by, as the compiler lays it out.
#[repr(C)]
struct Methods {
    drop: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    size: usize,
    align: usize,
    call_once: unsafe extern "C-unwind" fn(*mut c_void, *const c_void),
    call: unsafe extern "C-unwind" fn(*mut c_void, *const c_void),
}

/// The routine of a `Once`, and where its word is.
struct Routine {
    closure: *mut c_void,
    methods: *const Methods,
    word: *const AtomicU32,
    place: u64,
}

/// The routine begins: the library has just written the word.
unsafe extern "C-unwind" fn begin_routine(routine: *mut c_void, state: *const c_void) {
    // SAFETY: the library calls the closure that it was given, see `__foretell_rust_once`.
    unsafe {
        let routine = &*routine.cast::<Routine>();
        written(routine.word, routine.place);
        ((*routine.methods).call)(routine.closure, state);
    }
}

static METHODS: Methods = Methods {
    drop: None,
    size: size_of::<Routine>(),
    align: align_of::<Routine>(),
    call_once: begin_routine,
    call: begin_routine,
};

/// The library has changed the word of a `Once`. Code that asks whether something was initialised reads it.
fn written(word: *const AtomicU32, place: u64) {
    if let Some(mut session) = Session::begin() {
        // SAFETY: the program's word.
        let value = unsafe { &*word }.load(SeqCst);
        let detail = access::detail(4, Order::Release as u8);
        session.me.access::<false, 0>(
            head(Kind::Write, detail, place),
            word as u64,
            value.into(),
            [],
        );
        session.point();
    }
}

/// The end of the routine, also by a panic.
struct Ended(*const AtomicU32, u64);

impl Drop for Ended {
    fn drop(&mut self) {
        written(self.0, self.1);
    }
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
    location: *const c_void,
) {
    let address = word as u64;
    let Some(mut session) = Session::begin() else {
        // SAFETY: the caller's promise.
        return unsafe { original(word, ignores_poison, closure, methods, location) };
    };
    if !once::begin(&mut session, address, None) {
        return;
    }
    let place = session.place;
    drop(session);
    let attempt = once::Attempt(address);
    let ended = Ended(word, place);
    let mut routine = Routine { closure, methods: methods.cast(), word, place };
    let (routine, ours) = (&raw mut routine, &raw const METHODS);
    // SAFETY: the caller's promise; the closure is another one that calls it.
    unsafe { original(word, ignores_poison, routine.cast(), ours.cast(), location) };
    drop(ended);
    if let Some(mut session) = Session::begin() {
        session.place = place;
        once::end(&mut session, address);
    }
    drop(attempt);
}

/// The words of threads that were unparked.
static TOKENS: TurnCell<Vec<u64>> = TurnCell::new(Vec::new());
/// The threads in `park`, with the futex that each slept on, 0 for none.
static PARKING: TurnCell<Vec<(u32, u64)>> = TurnCell::new(Vec::new());

/// A thread is about to sleep on a futex.
pub fn parks_at(thread: u32, word: u64) {
    // SAFETY: callers have the turn.
    let parking = unsafe { PARKING.get() };
    if let Some(entry) = parking.iter_mut().find(|(number, _)| *number == thread) {
        entry.1 = word;
    }
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_unpark(
    word: *const AtomicU32,
    operand: u32,
    site: *const Site,
) -> u32 {
    // SAFETY: the program's word.
    let native = unsafe { &*word };
    let Some(mut session) = Session::begin_hook() else { return native.swap(operand, SeqCst) };
    session.place = session.recorder().site(site);
    session.point();
    // SAFETY: a session has the turn.
    let tokens = unsafe { TOKENS.get() };
    if !tokens.contains(&(word as u64)) {
        tokens.push(word as u64);
    }
    let old = native.swap(operand, SeqCst);
    let (number, count) = objects::semaphore_at(session.turn(), word as u64);
    if count.get() == 0 {
        count.set(1);
        session.event(Kind::SemaphorePost, 0, [number.into()]);
    } else {
        // In another order it would have counted.
        outside::decided(&mut session, "unpark");
    }
    session.point();
    old
}

/// The library parks; the trace says whose token it took.
fn park(library: impl FnOnce()) {
    let Some(mut session) = Session::begin() else { return library() };
    session.point();
    let (me, place) = (session.me.number, session.place);
    // SAFETY: a session has the turn.
    let (tokens, parking) = unsafe { (TOKENS.get(), PARKING.get()) };
    let turn = session.turn();
    let token = |word| objects::semaphore_at(turn, word);
    let there: Vec<u64> = tokens.iter().copied().filter(|&word| token(word).1.get() > 0).collect();
    parking.push((me, 0));
    drop(session);
    library();
    let Some(mut session) = Session::begin() else { return };
    session.place = place;
    // SAFETY: a session has the turn.
    let parking = unsafe { PARKING.get() };
    let entry = parking.iter().position(|(number, _)| *number == me);
    let slept = entry.map_or(0, |entry| parking.swap_remove(entry).1);
    // SAFETY: words of threads that run, or of handles that the program still has.
    let gone = |word: &u64| unsafe { (*(*word as *const AtomicU32)).load(SeqCst) } == 0;
    let word = if slept != 0 { Some(slept) } else { there.into_iter().find(gone) };
    if let Some((number, count)) = word.map(token).filter(|(_, count)| count.get() > 0) {
        count.set(count.get() - 1);
        session.event(Kind::SemaphoreWait, 0, [number.into()]);
        session.point();
    }
}

/// `thread::park`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_park(original: unsafe extern "C-unwind" fn()) {
    // SAFETY: the caller's promise.
    park(|| unsafe { original() });
}

/// `Thread::park`.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_park_thread(
    original: unsafe extern "C-unwind" fn(*const c_void),
    thread: *const c_void,
) {
    // SAFETY: the caller's promise.
    park(|| unsafe { original(thread) });
}

/// How many words a `Barrier` has.
const BARRIER_WORDS: usize = 5;

/// Which word of a `Barrier` says for how many threads it is. (Between the others there may be anything.)
fn parties_at() -> Option<usize> {
    const MARK: usize = 0x5a5a_5a5a_5a5a_5a5a;
    let barrier = std::sync::Barrier::new(MARK);
    let words = (&raw const barrier).cast::<u64>();
    // SAFETY: words of the barrier.
    let word = |at: usize| unsafe { words.add(at).read_volatile() };
    let fits = size_of_val(&barrier) == BARRIER_WORDS * size_of::<u64>();
    (0..BARRIER_WORDS).find(|&at| fits && word(at) == MARK as u64)
}

/// `Barrier::wait`: whether this thread is the leader.
///
/// # Safety
/// Called by instrumented code as the library's function would be.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __foretell_rust_barrier(
    original: unsafe extern "C-unwind" fn(*const AtomicU64) -> bool,
    words: *const AtomicU64,
) -> bool {
    if let Some(mut session) = Session::begin() {
        session.point();
        // SAFETY: the program's barrier, which is so large.
        let parties = parties_at().map(|at| unsafe { (*words.add(at)).load(SeqCst) });
        if let Some(Ok(parties @ 1..)) = parties.map(u32::try_from) {
            let number = barrier::of(session.turn(), words as u64, parties);
            return barrier::meet(session, number);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { original(words) }
}
