//! Creation, end, joining, detaching and cancellation of threads.
//!
//! A thread's last event comes from a thread-specific destructor of ours that puts itself at the
//! end, so that destructors of the program are still part of the thread, however it ends: by
//! return, `pthread_exit` or cancellation.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use foretell_wire::Kind;
use foretell_wire::outside::Cause;
use foretell_wire::record;
use libc::{c_char, c_int, c_void, clockid_t, pthread_attr_t, pthread_t, timespec};

use super::blocking::written;
use super::time::deadline_of;
use crate::channels;
use crate::fiber;
use crate::local;
use crate::outside;
use crate::real::{interpose, real};
use crate::recorder::{head, recorder};
use crate::scheduler::{self, scheduler};
use crate::stacks;
use crate::sys;
use crate::thread::{Session, State, Thread, Wait};
use crate::turn::Turn;
use crate::watchdog;

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut c_int) -> c_int;
}

/// The key whose destructor ends our threads, plus 1; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);
/// glibc runs destructors so often.
const DESTRUCTOR_ROUNDS: u32 = 4;

/// Makes the key; called once.
pub fn initialise() {
    let mut key = 0;
    // SAFETY: `key` is writable.
    if unsafe { libc::pthread_key_create(&mut key, Some(end_of_thread)) } == 0 {
        KEY.store(key + 1, Relaxed);
        arm();
    }
}

/// Asks for [`end_of_thread`] in this thread.
fn arm() {
    if let Some(key) = KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: the key is ours; any value but null will do.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
    }
}

unsafe extern "C" fn end_of_thread(_value: *mut c_void) {
    let current = local::current();
    if current.is_null() {
        return;
    }
    // SAFETY: this thread's own state.
    let me = unsafe { &mut *current };
    me.destructor_rounds += 1;
    if me.destructor_rounds < DESTRUCTOR_ROUNDS {
        arm();
        return;
    }
    if let Some(mut session) = Session::begin() {
        session.point();
        super::mutex::owner_dies(&mut session);
        session.event_at(Kind::ThreadEnd, 0, 0, []);
        local::set_current(std::ptr::null_mut());
        scheduler::finish(session.me);
        std::mem::forget(session);
    }
}

/// The routine of a thread, in POSIX's or in C11's way.
#[derive(Clone, Copy)]
pub enum Routine {
    /// Returns a pointer.
    Posix(unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void),
    /// Returns a number.
    C11(unsafe extern "C-unwind" fn(*mut c_void) -> c_int),
}

impl Routine {
    /// Runs it.
    ///
    /// # Safety
    /// As the routine.
    pub unsafe fn run(self, argument: *mut c_void) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Routine::Posix(routine) => routine(argument),
                Routine::C11(routine) => routine(argument) as usize as *mut c_void,
            }
        }
    }
}

struct Start {
    routine: Routine,
    argument: *mut c_void,
    thread: *mut Thread,
}

unsafe extern "C-unwind" fn begin_of_thread(start: *mut c_void) -> *mut c_void {
    // SAFETY: made by `create` for this thread alone.
    let Start { routine, argument, thread } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    // SAFETY: states of threads are never freed.
    let me = unsafe { &mut *thread };
    fiber::is_home(me);
    me.task = sys::task();
    scheduler::wait_for_turn(me);
    local::set_current(me);
    arm();
    scheduler::define_task(me);
    if let Some((stack, size)) = sys::stack() {
        // It may have been another thread's, and libc has cleared what lies on it.
        // SAFETY: the thread has the turn.
        unsafe { recorder() }.record(0, 0, &record::Renew { address: stack, size });
    }
    me.event([head(Kind::ThreadBegin, 0, 0)]);
    me.leave();
    // SAFETY: what the program asked for.
    let result = unsafe { routine.run(argument) };
    super::rust_scope::routine_returned();
    result
}

type Begin = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// Creates a thread under the scheduler.
pub unsafe fn create(
    mut session: Session,
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    session.point();
    if crate::modules::is_openmp(session.place) {
        outside::note(session.me.number, Cause::Library, 0, "OpenMP", 0);
    }
    let thread = scheduler::create(Some(session.me));
    let mut detached = 0;
    // SAFETY: the program's attributes, our state.
    unsafe {
        if !attributes.is_null() {
            pthread_attr_getdetachstate(attributes, &mut detached);
        }
        (*thread).detached = detached == libc::PTHREAD_CREATE_DETACHED;
        (*thread).mask = session.me.mask;
    }
    session.me.children += 1; // also if it fails: the name was given away
    let start = Box::into_raw(Box::new(Start { routine, argument, thread })).cast::<c_void>();
    let begin: Begin = begin_of_thread;
    // SAFETY: as above.
    let placed = unsafe { stacks::place((*thread).slot, attributes) };
    let (stack, attributes) = match &placed {
        Some((stack, placed)) => (*stack, std::ptr::from_ref(placed)),
        None => (stacks::Stack::default(), attributes),
    };
    let was_single = is_single();
    let result = real!(pthread_create(handle: *mut pthread_t, attributes: *const pthread_attr_t,
        begin: Begin, start: *mut c_void) -> c_int);
    if result != 0 {
        scheduler::discard(thread);
        stack.release();
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(start.cast::<Start>()) });
        return result;
    }
    // SAFETY: the new thread waits for its first turn and does not look at this before.
    let number = unsafe {
        (*thread).handle = *handle;
        (*thread).stack = stack;
        (*thread).number
    };
    written(&mut session, handle as u64, size_of::<pthread_t>());
    if was_single && !is_single() {
        written(&mut session, &raw const __libc_single_threaded as u64, 1);
    }
    session.event(Kind::Fork, 0, [number.into()]);
    session.point();
    0
}

unsafe extern "C" {
    /// Whether the process has one thread only; the C library's own, and C++ code looks at it.
    static __libc_single_threaded: u8;
}

fn is_single() -> bool {
    // SAFETY: a byte of the C library, which it writes when a thread is created: we have the turn.
    unsafe { (&raw const __libc_single_threaded).read_volatile() != 0 }
}

/// The thread behind a handle, if it is ours and not yet joined.
fn find(turn: Turn, handle: pthread_t) -> Option<*mut Thread> {
    find_by(turn, |thread| thread.handle == handle)
}

/// The state of a thread is never freed. It may be the caller's own, so nobody gets a reference to it.
fn find_by(_turn: Turn, is_it: impl Fn(&Thread) -> bool) -> Option<*mut Thread> {
    // SAFETY: the token says that the thread has the turn.
    let scheduler = unsafe { scheduler() };
    let mut all = scheduler.threads.iter().chain(&scheduler.joinable).copied();
    // SAFETY: states of threads are never freed.
    all.find(|&thread| is_it(unsafe { &*thread }))
}

/// Sends a signal to a thread: what the sender did comes before the handler, or the wait that takes it.
fn to_thread(
    signal: c_int,
    is_it: impl Fn(&Thread) -> bool,
    send: impl FnOnce() -> c_int,
) -> c_int {
    if let Some(mut session) = Session::begin() {
        fiber::go_home(session.me);
        session.point();
        if (1..=64).contains(&signal)
            && let Some(target) = find_by(session.turn(), is_it)
            // SAFETY: states of threads are never freed.
            && let (number, mask) = unsafe { ((*target).number, (*target).mask) }
            && number != session.me.number
        {
            if mask >> (signal - 1) & 1 != 0 {
                let channel = channels::signalled(&mut session, number, signal, false);
                // SAFETY: another thread's, which waits for the turn.
                unsafe { (*target).pending_signals.push(channel) };
            } else if super::process::has_handler(signal) {
                let channel = channels::signalled(&mut session, number, signal, true);
                // SAFETY: another thread's, which waits for the turn.
                unsafe { (*target).handled_signals.push(channel) };
                super::process::interrupts(&session, signal);
            }
            let result = send();
            session.point();
            return result;
        }
    }
    send()
}

/// How a join went.
pub enum Joined {
    /// The thread is over; libc's join will not wait.
    Over,
    /// libc must say what is to be said.
    Unknown,
    /// It did not end in time.
    Late,
}

/// Waits for the end of the thread: until the deadline if there is one, not at all if `tries`.
pub fn wait_for_end(
    session: &mut Session,
    handle: pthread_t,
    deadline: Option<u64>,
    tries: bool,
) -> Joined {
    session.point();
    let Some(pointer) = find(session.turn(), handle) else { return Joined::Unknown };
    // SAFETY: states of threads are never freed.
    let (number, detached) = unsafe { ((*pointer).number, (*pointer).detached) };
    if number == session.me.number || detached {
        return Joined::Unknown;
    }
    // Others change the state while we are blocked, so it is read anew each time.
    // SAFETY: states of threads are never freed; we have the turn whenever we look.
    let is_over = || unsafe { (*pointer).state } == State::Finished;
    while !is_over() {
        if tries {
            return Joined::Late;
        }
        let late = scheduler::block(session.me, Wait::Thread(number), deadline);
        if !is_over() && (late || is_cancelled(session.me)) {
            return Joined::Late;
        }
    }
    // SAFETY: the session has the turn.
    unsafe { scheduler() }.joinable.retain(|&other| other != pointer);
    // SAFETY: as above.
    session.me.joined = unsafe { std::mem::take(&mut (*pointer).stack) };
    session.event(Kind::Join, 0, [number.into()]);
    session.point();
    Joined::Over
}

/// Whether the thread was asked to cancel and lets itself be cancelled now.
pub fn is_cancelled(me: &Thread) -> bool {
    if !me.cancelled {
        return false;
    }
    let before = set_cancel_state(PTHREAD_CANCEL_DISABLE);
    set_cancel_state(before);
    before != PTHREAD_CANCEL_DISABLE
}

/// Sets whether libc lets this thread be cancelled; gives what it was.
fn set_cancel_state(state: c_int) -> c_int {
    let mut before = 0;
    let old: *mut c_int = &mut before;
    real!(pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int);
    before
}

/// Runs `call` while this thread cannot be cancelled.
pub fn without_cancellation<R>(call: impl FnOnce() -> R) -> R {
    let before = set_cancel_state(PTHREAD_CANCEL_DISABLE);
    let result = call();
    set_cancel_state(before);
    result
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;
const PTHREAD_CANCEL_DEFERRED: c_int = 0;
const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;

/// If the thread was asked to cancel, libc acts on it now: this may not return.
pub fn act_on_cancellation(session: Session) {
    let cancelled = session.me.cancelled;
    drop(session);
    if cancelled {
        real!(pthread_testcancel() -> ());
    }
}

/// As [`act_on_cancellation`], for those who go on when the thread does not let itself be cancelled
/// now.
pub fn cancellation_point(session: Session) -> Session {
    let place = session.place;
    let me: *mut Thread = session.me;
    act_on_cancellation(session);
    // SAFETY: this thread's own state; nobody else opens a session on it.
    let me = unsafe { &mut *me };
    me.enter();
    Session { me, place }
}

unsafe fn join(
    handle: pthread_t,
    result: *mut *mut c_void,
    deadline: Option<u64>,
    tries: bool,
    otherwise: c_int,
    session: Session,
) -> c_int {
    let mut session = session;
    match wait_for_end(&mut session, handle, deadline, tries) {
        Joined::Late if is_cancelled(session.me) => {
            act_on_cancellation(session);
            otherwise
        }
        Joined::Late => {
            outside::decided(&mut session, "pthread_tryjoin_np");
            otherwise
        }
        Joined::Over => {
            if tries || deadline.is_some() {
                outside::note_outcome(&session, "pthread_tryjoin_np");
            }
            let stack = std::mem::take(&mut session.me.joined);
            let joined = real!(pthread_join(handle: pthread_t, result: *mut *mut c_void) -> c_int);
            stack.release(); // now the thread is over for the kernel, too
            joined
        }
        Joined::Unknown => {
            super::blocking::outside(
                session,
                || real!(pthread_join(handle: pthread_t, result: *mut *mut c_void) -> c_int),
            )
            .1
        }
    }
}

/// Joins a thread; that its result was written is not yet recorded.
///
/// # Safety
/// As `pthread_join`.
pub unsafe fn join_thread(handle: pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        match Session::begin() {
            None => crate::sync_only::thread_join(handle, result),
            Some(session) => join(handle, result, None, false, libc::EINTR, session),
        }
    }
}

interpose! {
    // `std::thread::join`, which is also called by its address; the handle becomes zero.
    fn _ZNSt6thread4joinEv(thread: *mut c_void) -> () {
        real!(_ZNSt6thread4joinEv(thread: *mut c_void) -> ());
        if let Some(mut session) = Session::begin() {
            written(&mut session, thread as u64, size_of::<pthread_t>());
        }
    }

    fn pthread_create(
        handle: *mut pthread_t, attributes: *const pthread_attr_t, routine: Begin,
        argument: *mut c_void,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::thread_create(handle, attributes, routine, argument),
            Some(session) => {
                create(session, handle, attributes, Routine::Posix(routine), argument)
            }
        }
    }

    fn pthread_join(handle: pthread_t, result: *mut *mut c_void) -> c_int {
        let joined = join_thread(handle, result);
        if joined == 0 && !result.is_null() && let Some(mut session) = Session::begin() {
            written(&mut session, result as u64, size_of::<*mut c_void>());
        }
        joined
    }

    fn pthread_tryjoin_np(handle: pthread_t, result: *mut *mut c_void) -> c_int {
        match Session::begin() {
            None => real!(pthread_tryjoin_np(
                handle: pthread_t, result: *mut *mut c_void) -> c_int),
            Some(session) => join(handle, result, None, true, libc::EBUSY, session),
        }
    }

    fn pthread_timedjoin_np(
        handle: pthread_t, result: *mut *mut c_void, until: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => real!(pthread_timedjoin_np(handle: pthread_t, result: *mut *mut c_void,
                until: *const timespec) -> c_int),
            Some(session) => {
                let deadline = deadline_of(libc::CLOCK_REALTIME, until);
                join(handle, result, Some(deadline), false, libc::ETIMEDOUT, session)
            }
        }
    }

    fn pthread_clockjoin_np(
        handle: pthread_t, result: *mut *mut c_void, clock: clockid_t, until: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => real!(pthread_clockjoin_np(handle: pthread_t, result: *mut *mut c_void,
                clock: clockid_t, until: *const timespec) -> c_int),
            Some(session) => {
                let deadline = deadline_of(clock, until);
                join(handle, result, Some(deadline), false, libc::ETIMEDOUT, session)
            }
        }
    }

    fn pthread_key_create as key_create(
        key: *mut libc::pthread_key_t, destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int {
        let result = real!(pthread_key_create(key: *mut libc::pthread_key_t,
            destructor: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int);
        // Rust's library makes its keys when it first needs one, and nobody else sees them.
        let seen = result == 0 && !super::rust::IS_RUST.load(Relaxed);
        if seen && let Some(mut session) = Session::begin() {
            session.point();
            written(&mut session, key as u64, size_of::<libc::pthread_key_t>());
            session.point();
        }
        result
    }

    fn pthread_detach as detach(handle: pthread_t) -> c_int {
        if let Some(session) = Session::begin()
            && let Some(thread) = find(session.turn(), handle)
        {
            (*thread).detached = true;
            scheduler().joinable.retain(|&other| other != thread);
        }
        real!(pthread_detach(handle: pthread_t) -> c_int)
    }

    fn pthread_setname_np(handle: pthread_t, name: *const c_char) -> c_int {
        if let Some(session) = Session::begin()
            && let Some(thread) = find(session.turn(), handle)
            && !name.is_null()
        {
            let name = std::ffi::CStr::from_ptr(name).to_bytes().to_vec();
            recorder().record(0, 0, &record::NameThread { thread: (*thread).number, name });
        }
        real!(pthread_setname_np(handle: pthread_t, name: *const c_char) -> c_int)
    }

    fn pthread_cancel(handle: pthread_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            session.point();
            if let Some(thread) = find(session.turn(), handle) {
                (*thread).cancelled = true;
                // Whether it comes in time, and where the thread ends, depends on how far that is.
                outside::decided(&mut session, "pthread_cancel");
                if (*thread).cancelled_anywhere {
                    let cause = Cause::AsynchronousCancellation;
                    outside::note((*thread).number, cause, 0, "", session.place);
                }
                let waits_for_lock = match (*thread).wait {
                    Wait::Object(number) => matches!(
                        crate::objects::by_number(session.turn(), number).model,
                        crate::objects::Model::Mutex(_)
                            | crate::objects::Model::ReaderWriter(_)
                            | crate::objects::Model::Barrier(_)
                    ),
                    _ => false,
                };
                if (*thread).state == State::Blocked && !waits_for_lock {
                    (*thread).state = State::Runnable;
                }
            }
        }
        let result = real!(pthread_cancel(handle: pthread_t) -> c_int);
        if let Some(session) = Session::begin()
            && let Some(thread) = find(session.turn(), handle)
            && (*thread).cancelled_anywhere
        {
            watchdog::cancelled(&*thread);
        }
        result
    }

    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int);
        };
        // For libc the type stays deferred: a thread that ended anywhere could hold the turn. It ends
        // at its next call, which is one of the points where it may.
        if kind != PTHREAD_CANCEL_DEFERRED && kind != PTHREAD_CANCEL_ASYNCHRONOUS {
            return libc::EINVAL;
        }
        if !old.is_null() {
            *old = session.me.cancelled_anywhere.into();
        }
        session.me.cancelled_anywhere = kind == PTHREAD_CANCEL_ASYNCHRONOUS;
        if session.me.cancelled_anywhere {
            if session.me.cancelled {
                let (me, cause) = (session.me.number, Cause::AsynchronousCancellation);
                outside::note(me, cause, 0, "", session.place);
            }
            act_on_cancellation(session);
        }
        0
    }

    fn pthread_kill(handle: pthread_t, signal: c_int) -> c_int {
        to_thread(signal, |thread| thread.handle == handle, || {
            real!(pthread_kill(handle: pthread_t, signal: c_int) -> c_int)
        })
    }

    fn pthread_sigqueue(handle: pthread_t, signal: c_int, value: *mut c_void) -> c_int {
        to_thread(signal, |thread| thread.handle == handle, || {
            real!(pthread_sigqueue(handle: pthread_t, signal: c_int, value: *mut c_void) -> c_int)
        })
    }

    fn tgkill(process: libc::pid_t, task: libc::pid_t, signal: c_int) -> c_int {
        to_thread(signal, |thread| thread.task == task as u32, || {
            real!(tgkill(process: libc::pid_t, task: libc::pid_t, signal: c_int) -> c_int)
        })
    }

    fn pthread_testcancel() -> () {
        // A loop around it has no events: others must get their turn all the same.
        if let Some(session) = Session::begin() {
            scheduler::yield_turn(session.me);
        }
        real!(pthread_testcancel() -> ())
    }
}
