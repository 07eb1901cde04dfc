//! Sync-only recording: threads run freely, and only the order of synchronisation is logged.
//!
//! Every thread has a log of its own (see `foretell_wire::sync_log`), every object counts its
//! operations by itself; a mutex keeps its counter in its own unused bytes, where it is protected
//! by the mutex. When nothing is recorded, the functions here call libc and no more.
//!
//! What a replay needs is which operation came when on each object and what came from outside. Data
//! races are not ordered: a racy run may go another way when it is replayed.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, compiler_fence};

use foretell_wire::format_path;
use foretell_wire::sync_log::{
    BLOCK_HEAD, BLOCK_WORDS, BLOCKS_NAME, FIRST_BLOCK, Kind, NAME_MARK, WINDOW_ENDING, block_head,
    entry, pair,
};
use libc::{
    c_int, c_uint, c_void, clockid_t, pthread_attr_t, pthread_barrier_t, pthread_cond_t,
    pthread_mutex_t, pthread_rwlock_t, pthread_t, sem_t, size_t, ssize_t, time_t, timespec,
    timeval,
};

use crate::local;
use crate::objects::hash;
use crate::real::real;
use crate::sys;
use crate::wrappers::blocking::is_prompt;
use crate::wrappers::threads::Routine;

/// A thread's log.
pub struct Log {
    next: *mut u64,
    end: *mut u64,
    /// The window begins as the block will that it becomes.
    window: *mut u64,
    /// The thread's number in the log.
    number: u32,
    /// Where a lock stands alone in its word, if it is the last entry of the window.
    single: *mut u64,
    /// Locks of the window that share a word with the one before.
    paired: usize,
    /// Words of the window that belong to the entries before them.
    continued: usize,
    children: u32,
    path: Vec<u32>,
    /// The routine of the initialisation that this thread came to.
    routine: Option<Initialise>,
    /// The initialisation was run by this thread.
    ran: bool,
}

/// Where the logs go, ends in NUL.
static DIRECTORY: DirectoryCell = DirectoryCell(std::cell::UnsafeCell::new(Vec::new()));
struct DirectoryCell(std::cell::UnsafeCell<Vec<u8>>);
// SAFETY: written once by `start`, before there is any other thread.
unsafe impl Sync for DirectoryCell {}
/// Recording stopped for lack of space.
static FAILED: AtomicBool = AtomicBool::new(false);
/// The file with the blocks.
static FILE: AtomicI32 = AtomicI32::new(-1);
/// How many blocks were given out, and how many threads there have been.
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU32 = AtomicU32::new(0);

/// A new file of this name where the logs go.
fn create_file(name: &str) -> i32 {
    // SAFETY: written before any thread was created.
    let mut path = unsafe { &*DIRECTORY.0.get() }.clone();
    path.extend_from_slice(format!("/{name}\0").as_bytes());
    sys::open(&path, libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC)
}

/// Begins to log, in the directory of that name.
pub fn start(directory: Option<String>) -> Result<(), String> {
    let directory = directory.ok_or("the directory of the logs is not named")?;
    // SAFETY: there is no other thread yet.
    unsafe { *DIRECTORY.0.get() = directory.into_bytes() };
    let file = create_file(BLOCKS_NAME);
    if file < 0 {
        return Err("cannot make the log".into());
    }
    FILE.store(file, Relaxed);
    let log = Log::open(Vec::new()).ok_or("cannot make the logs")?;
    local::set_sync_log(Box::into_raw(Box::new(log)));
    Ok(())
}

/// In a forked child: nothing is logged any more.
pub fn after_fork() {
    local::set_sync_log(std::ptr::null_mut());
}

impl Log {
    /// The log of the thread with this creation path.
    fn open(path: Vec<u32>) -> Option<Log> {
        let number = THREADS.fetch_add(1, Relaxed);
        let name = format!("{number}{NAME_MARK}{}{WINDOW_ENDING}", format_path(&path));
        let file = create_file(&name);
        let bytes = BLOCK_WORDS * 8;
        // SAFETY: a call on our own file.
        let sized =
            unsafe { sys::call(libc::SYS_ftruncate, [file as u64, bytes as u64, 0, 0, 0, 0]) == 0 };
        if file < 0 || !sized {
            return None;
        }
        let window = sys::map_file(file, bytes).cast::<u64>();
        sys::close(file);
        if window.is_null() {
            return None;
        }
        // SAFETY: the window is as long.
        let (next, end) = unsafe { (window.add(BLOCK_HEAD), window.add(BLOCK_WORDS)) };
        let single = std::ptr::null_mut();
        let (paired, continued, children) = (0, 0, 0);
        let (routine, ran) = (None, false);
        Some(Log {
            next,
            end,
            window,
            number,
            single,
            paired,
            continued,
            children,
            path,
            routine,
            ran,
        })
    }

    #[inline(always)]
    fn put(&mut self, word: u64) {
        // SAFETY: `next` is below `end` between calls.
        unsafe {
            *self.next = word;
            self.next = self.next.add(1);
        }
        if self.next == self.end {
            self.write_out();
        }
    }

    /// Appends a lock, in the word of the one before if that has room.
    #[inline(always)]
    fn put_lock(&mut self, place: u32) {
        // SAFETY: there are words before the first entry. What `single` points to is a lock that
        // was put there since the window was empty.
        unsafe {
            let last = self.next.sub(1);
            if last == self.single
                && let Some(both) = pair(*last, place)
            {
                *last = both;
                self.single = std::ptr::null_mut();
                self.paired += 1;
                return;
            }
        }
        self.single = self.next;
        self.put(entry(Kind::Lock, place));
    }

    /// Makes the window a block of the log and empties it.
    #[cold]
    #[inline(never)]
    fn write_out(&mut self) {
        // SAFETY: both point into the window, which is as long as a block and zero from `next` on.
        unsafe {
            let words = self.next.offset_from(self.window) as usize;
            let entries = words + self.paired - BLOCK_HEAD - self.continued;
            *self.window = block_head(self.number, entries, 0);
            write_blocks(std::slice::from_raw_parts(self.window, BLOCK_WORDS));
            // A program may be killed at any time: the entries are gone before the window says that
            // it comes after the block.
            self.next = self.first();
            std::ptr::write_bytes(self.next, 0, words - BLOCK_HEAD);
        }
        self.wrote_block();
        self.single = std::ptr::null_mut();
        (self.paired, self.continued) = (0, 0);
    }

    /// Where the window's first entry is.
    fn first(&self) -> *mut u64 {
        // SAFETY: within the window.
        unsafe { self.window.add(BLOCK_HEAD) }
    }

    /// The window, which is empty, comes after one more block.
    fn wrote_block(&mut self) {
        compiler_fence(AcqRel);
        // SAFETY: the second word of the window.
        unsafe { *self.window.add(1) += 1 };
    }

    /// Makes an input that no window can hold a block of its own; the window is empty.
    fn write_large(&mut self, result: u64, bytes: &[u8]) {
        let words = BLOCK_HEAD + 2 + bytes.len().div_ceil(8);
        let blocks = words.div_ceil(BLOCK_WORDS);
        let mut whole = Vec::with_capacity(blocks * BLOCK_WORDS);
        // SAFETY: the second word of the window.
        let sequence = unsafe { *self.window.add(1) };
        whole.extend([block_head(self.number, 1, blocks - 1), sequence]);
        whole.extend([entry(Kind::Input, 8 + bytes.len() as u32), result]);
        whole.extend(bytes.chunks(8).map(word_of));
        whole.resize(blocks * BLOCK_WORDS, 0);
        write_blocks(&whole);
        self.wrote_block();
    }

    fn input(&mut self, result: u64, bytes: &[u8]) {
        // An input must not be torn by the end of the window: what is in a tail is whole.
        // SAFETY: both point into the window.
        let room = unsafe { self.end.offset_from(self.next) } as usize;
        let words = 2 + bytes.len().div_ceil(8);
        if room < words && self.next != self.first() {
            self.write_out();
        }
        if words > BLOCK_WORDS - BLOCK_HEAD {
            self.write_large(result, bytes);
            return;
        }
        self.continued += words - 1;
        self.put(entry(Kind::Input, 8 + bytes.len() as u32));
        self.put(result);
        for part in bytes.chunks(8) {
            self.put(word_of(part));
        }
    }
}

/// Up to eight bytes as a word.
fn word_of(part: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..part.len()].copy_from_slice(part);
    u64::from_le_bytes(word)
}

/// Writes whole blocks after those that are there; says once when that fails.
fn write_blocks(words: &[u64]) {
    let first = BLOCKS.fetch_add((words.len() / BLOCK_WORDS) as u64, Relaxed);
    let at = 8 * (FIRST_BLOCK as u64 + first * BLOCK_WORDS as u64);
    if !sys::write_at(FILE.load(Relaxed), words, at) && !FAILED.swap(true, Relaxed) {
        crate::scheduler::say("the log of synchronisation is cut off: no space left");
    }
}

/// Appends an entry if this thread logs; the number is only asked for then.
#[inline(always)]
fn note(kind: Kind, number: impl FnOnce() -> u32) {
    let log = local::sync_log();
    if !log.is_null() {
        // SAFETY: this thread's own log.
        let log = unsafe { &mut *log };
        match kind {
            Kind::Lock => log.put_lock(number()),
            _ => log.put(entry(kind, number())),
        }
    }
}

/// Logs an input and gives the result back.
#[inline(always)]
fn note_input(result: u64, bytes: &[u8]) {
    let log = local::sync_log();
    if !log.is_null() {
        // SAFETY: this thread's own log.
        unsafe { (*log).input(result, bytes) };
    }
}

/// The first bytes of a buffer that libc filled.
fn filled<'a>(buffer: *const c_void, length: ssize_t) -> &'a [u8] {
    if length <= 0 {
        return &[];
    }
    // SAFETY: libc filled so many bytes.
    unsafe { std::slice::from_raw_parts(buffer.cast(), length as usize) }
}

fn bytes_of<T>(value: &T) -> &[u8] {
    // SAFETY: only used for plain structs of numbers.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Counters of objects that have no room for their own: by address.
struct Counter {
    address: AtomicU64,
    count: AtomicU32,
}
const COUNTERS: usize = 1 << 16;
static TABLE: [Counter; COUNTERS] =
    [const { Counter { address: AtomicU64::new(0), count: AtomicU32::new(0) } }; COUNTERS];

/// The next place in the order of the object.
fn next_place(address: u64) -> u32 {
    let mut slot = hash(address) % COUNTERS;
    for _ in 0..COUNTERS {
        let counter = &TABLE[slot];
        let owner = counter.address.load(Acquire);
        if owner == address
            || (owner == 0 && counter.address.compare_exchange(0, address, AcqRel, Acquire).is_ok())
            || counter.address.load(Acquire) == address
        {
            return counter.count.fetch_add(1, AcqRel);
        }
        slot = (slot + 1) % COUNTERS;
    }
    0
}

/// The next place in the order of a mutex that this thread holds.
#[inline(always)]
fn mutex_place(mutex: *mut pthread_mutex_t) -> u32 {
    // SAFETY: glibc's layout: the kind is the fifth word; the seventh is part of a list that only
    // robust mutexes use. The mutex is held, so nobody else counts.
    unsafe {
        let words = mutex.cast::<u32>();
        if words.add(4).read() & 16 != 0 {
            return next_place(mutex as u64);
        }
        let counter = words.add(6);
        let place = counter.read();
        counter.write(place.wrapping_add(1));
        place
    }
}

/// Logs how a lock of a mutex went.
#[inline(always)]
fn mutex_locked(mutex: *mut pthread_mutex_t, result: c_int) -> c_int {
    if result == 0 {
        note(Kind::Lock, || mutex_place(mutex));
    } else {
        note(Kind::LockFailed, || result as u32);
    }
    result
}

fn spin_locked(lock: *mut c_int, result: c_int) -> c_int {
    if result == 0 {
        note(Kind::Lock, || next_place(lock as u64));
    } else {
        note(Kind::LockFailed, || result as u32);
    }
    result
}

fn rwlock_locked(rwlock: *mut pthread_rwlock_t, result: c_int) -> c_int {
    if result == 0 {
        note(Kind::ReaderWriter, || next_place(rwlock as u64));
    } else {
        note(Kind::ReaderWriterFailed, || result as u32);
    }
    result
}

fn semaphore_taken(semaphore: *mut sem_t, result: c_int) -> c_int {
    if result == 0 {
        note(Kind::SemaphoreWait, || next_place(semaphore as u64));
    } else {
        // SAFETY: this thread's errno.
        note(Kind::SemaphoreFailed, || unsafe { *libc::__errno_location() } as u32);
    }
    result
}

fn waited(mutex: *mut pthread_mutex_t, result: c_int) -> c_int {
    note(Kind::Wait, || (result == libc::ETIMEDOUT).into());
    note(Kind::Lock, || mutex_place(mutex));
    result
}

/// Functions that call libc and then log how it went.
macro_rules! logged {
    ($(fn $name:ident = $real:ident $(@ $version:literal)?
        ($first:ident : $first_type:ty $(, $argument:ident : $type:ty)*) -> $result:ty
        => |$outcome:ident| $log:expr;)*) => {$(
        /// As libc's function.
        ///
        /// # Safety
        /// As libc's function.
        #[inline(always)]
        pub unsafe fn $name($first: $first_type $(, $argument: $type)*) -> $result {
            let $outcome = real!($real $(@ $version)?
                ($first: $first_type $(, $argument: $type)*) -> $result);
            $log
        }
    )*};
}

/// As `pthread_mutex_lock`, for threads without a scheduler: what is called most, and short.
///
/// # Safety
/// As libc's function.
pub unsafe extern "C-unwind" fn lock_freely(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { mutex_lock(mutex) }
}

/// As `pthread_mutex_unlock`, for threads without a scheduler.
///
/// # Safety
/// As libc's function.
pub unsafe extern "C-unwind" fn unlock_freely(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { mutex_unlock(mutex) }
}

logged! {
    fn mutex_lock = pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int
        => |result| mutex_locked(mutex, result);
    fn mutex_trylock = pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int
        => |result| mutex_locked(mutex, result);
    fn mutex_unlock = pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int
        => |result| result;
    fn mutex_timedlock = pthread_mutex_timedlock(
        mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int
        => |result| mutex_locked(mutex, result);
    fn mutex_clocklock = pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int
        => |result| mutex_locked(mutex, result);
    fn spin_lock = pthread_spin_lock(lock: *mut c_int) -> c_int
        => |result| spin_locked(lock, result);
    fn spin_trylock = pthread_spin_trylock(lock: *mut c_int) -> c_int
        => |result| spin_locked(lock, result);
    fn spin_unlock = pthread_spin_unlock(lock: *mut c_int) -> c_int => |result| result;
    fn cond_wait = pthread_cond_wait @ c"GLIBC_2.3.2" (
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int
        => |result| waited(mutex, result);
    fn cond_timedwait = pthread_cond_timedwait @ c"GLIBC_2.3.2" (
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec)
        -> c_int
        => |result| waited(mutex, result);
    fn cond_clockwait = pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec) -> c_int
        => |result| waited(mutex, result);
    fn cond_signal = pthread_cond_signal @ c"GLIBC_2.3.2" (
        condition: *mut pthread_cond_t) -> c_int => |result| result;
    fn cond_broadcast = pthread_cond_broadcast @ c"GLIBC_2.3.2" (
        condition: *mut pthread_cond_t) -> c_int => |result| result;
    fn sem_wait = sem_wait(semaphore: *mut sem_t) -> c_int
        => |result| semaphore_taken(semaphore, result);
    fn sem_timedwait = sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int
        => |result| semaphore_taken(semaphore, result);
    fn sem_clockwait = sem_clockwait(
        semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int
        => |result| semaphore_taken(semaphore, result);
    fn sem_trywait = sem_trywait(semaphore: *mut sem_t) -> c_int
        => |result| semaphore_taken(semaphore, result);
    fn rwlock_rdlock = pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_wrlock = pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_tryrdlock = pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_trywrlock = pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_timedrdlock = pthread_rwlock_timedrdlock(
        rwlock: *mut pthread_rwlock_t, until: *const timespec) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_timedwrlock = pthread_rwlock_timedwrlock(
        rwlock: *mut pthread_rwlock_t, until: *const timespec) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_clockrdlock = pthread_rwlock_clockrdlock(
        rwlock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_clockwrlock = pthread_rwlock_clockwrlock(
        rwlock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int
        => |result| rwlock_locked(rwlock, result);
    fn rwlock_unlock = pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int
        => |result| result;
    fn barrier_wait = pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int
        => |result| {
            note(Kind::Barrier, || (result == libc::PTHREAD_BARRIER_SERIAL_THREAD).into());
            result
        };
    fn thread_join = pthread_join(handle: pthread_t, result: *mut *mut c_void) -> c_int
        => |joined| joined;
    fn clock_gettime = clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int
        => |result| {
            if result == 0 {
                // SAFETY: libc filled it.
                note_input(0, bytes_of(unsafe { &*time }));
            }
            result
        };
    fn gettimeofday = gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int
        => |result| {
            if result == 0 && !time.is_null() {
                // SAFETY: libc filled it.
                note_input(0, bytes_of(unsafe { &*time }));
            }
            result
        };
    fn time = time(result: *mut time_t) -> time_t
        => |now| {
            note_input(now as u64, &[]);
            now
        };
    fn read = read(file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t
        => |result| {
            let kept = if local::sync_log().is_null() || is_prompt(file) { 0 } else { result };
            let bytes = filled(buffer, kept);
            note_input(result as u64, bytes);
            result
        };
    fn getrandom = getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t
        => |result| {
            let bytes = filled(buffer, result);
            note_input(result as u64, bytes);
            result
        };
}

/// As `getpid`.
pub fn getpid() -> libc::pid_t {
    let process = real!(getpid() -> libc::pid_t);
    note_input(process as u64, &[]);
    process
}

/// As `sem_post`. The place is taken before the post, so that whoever it wakes comes later.
///
/// # Safety
/// As libc's function.
pub unsafe fn sem_post(semaphore: *mut sem_t) -> c_int {
    note(Kind::SemaphorePost, || next_place(semaphore as u64));
    real!(sem_post(semaphore: *mut sem_t) -> c_int)
}

type Initialise = unsafe extern "C-unwind" fn();

/// As `pthread_once`.
///
/// # Safety
/// As libc's function.
pub unsafe fn once(control: *mut c_int, routine: Initialise) -> c_int {
    let log = local::sync_log();
    if log.is_null() {
        return real!(pthread_once(control: *mut c_int, routine: Initialise) -> c_int);
    }
    // SAFETY: this thread's own log. An initialisation may come to another one.
    let outer = unsafe { ((*log).routine.replace(routine), std::mem::take(&mut (*log).ran)) };
    let routine: Initialise = run_routine;
    let result = real!(pthread_once(control: *mut c_int, routine: Initialise) -> c_int);
    // SAFETY: as above.
    let ran = unsafe {
        (*log).routine = outer.0;
        std::mem::replace(&mut (*log).ran, outer.1)
    };
    if !ran {
        note(Kind::Once, || 0);
    }
    result
}

unsafe extern "C-unwind" fn run_routine() {
    // Before what the routine does: a replay comes to them in this order.
    note(Kind::Once, || 1);
    let log = local::sync_log();
    // SAFETY: this thread's own log; the program gave the routine to be called.
    unsafe {
        (*log).ran = true;
        if let Some(routine) = (*log).routine {
            routine();
        }
    }
}

type Begin = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// As `pthread_create`; the new thread logs too.
///
/// # Safety
/// As libc's function.
pub unsafe fn thread_create(
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Begin,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { create(handle, attributes, Routine::Posix(routine), argument) }
}

/// As `thrd_create`, but with POSIX's results.
///
/// # Safety
/// As libc's function.
pub unsafe fn c11_create(
    handle: *mut pthread_t,
    routine: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { create(handle, std::ptr::null(), Routine::C11(routine), argument) }
}

struct Start {
    routine: Routine,
    argument: *mut c_void,
    path: Option<Vec<u32>>,
}

unsafe fn create(
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    let log = local::sync_log();
    let path = (!log.is_null()).then(|| {
        // SAFETY: this thread's own log.
        let log = unsafe { &mut *log };
        let mut path = log.path.clone();
        path.push(log.children);
        log.children += 1;
        path
    });
    let plain = match routine {
        Routine::Posix(plain) if path.is_none() => Some(plain),
        _ => None,
    };
    if let Some(plain) = plain {
        return real!(pthread_create(handle: *mut pthread_t, attributes: *const pthread_attr_t,
            plain: Begin, argument: *mut c_void) -> c_int);
    }
    let start = Box::into_raw(Box::new(Start { routine, argument, path })).cast::<c_void>();
    let begin: Begin = begin;
    let result = real!(pthread_create(handle: *mut pthread_t, attributes: *const pthread_attr_t,
        begin: Begin, start: *mut c_void) -> c_int);
    if result != 0 {
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(start.cast::<Start>()) });
    }
    result
}

unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: made by `create` for this thread alone.
    let Start { routine, argument, path } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    if let Some(log) = path.and_then(Log::open) {
        local::set_sync_log(Box::into_raw(Box::new(log)));
    }
    // SAFETY: what the program asked for.
    unsafe { routine.run(argument) }
}
