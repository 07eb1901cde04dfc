//! The serialising scheduler: one thread at a time has the turn.
//!
//! Every hook and wrapper passes through [`crate::thread::Session::point`], which costs one
//! comparison while the thread may go on and ends in [`pause`] when it must ask. The state of the
//! threads, of the synchronisation objects and of the recorder belongs to whoever has the turn, so
//! none of it needs a lock. A turn is passed by writing the next thread's word and waking it.
//!
//! A thread gives the turn away when the policy says so, when it must wait for another
//! ([`block`]), around system calls that may block ([`leave`] and [`enter`]), and when it ends.
//! Locks, conditions, semaphores and barriers are modelled (crate::objects), nothing blocks in the
//! kernel while it has the turn; so when no thread can run this is known at once, and said.
//!
//! A thread that reads from a pipe or a socket waits here until there is something to read
//! ([`block_for_files`]) and does not leave: what other threads of the program put into a pipe is
//! there for it at the same point in every run. Only where nobody else can run is the real world
//! waited for.
//!
//! Time is virtual: it moves a little with every question and jumps to the earliest deadline when
//! only sleepers are left.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use foretell_wire::limits::{LONGEST_TURN, PATIENCE_AT_END, PATIENCE_OUTSIDE, POINTS_AT_END};
use foretell_wire::outside::Cause;
use foretell_wire::record::{self, Stands};
use foretell_wire::standing::{self, Awaited, Piece, Sentence};
use foretell_wire::{End, Kind};

use crate::channels;
use crate::clients;
use crate::fiber::{self, Then};
use crate::forced;
use crate::local;
use crate::objects::{self, Model};
use crate::outside;
use crate::pace;
use crate::path;
use crate::policy::{Choice, Policy, Threads};
use crate::recorder::{self, head, recorder};
use crate::sys;
use crate::thread::{Moment, Parked, State, Thread, Wait};
use crate::turn::{Turn, TurnCell};
use crate::watchdog;
use crate::wrappers::{signals, threads, time};

/// What the thread with the turn may touch.
pub struct Scheduler {
    /// All threads that are not over.
    pub threads: Vec<*mut Thread>,
    /// Threads that are over and wait to be joined.
    pub joinable: Vec<*mut Thread>,
    /// Who goes next.
    policy: Option<Box<dyn Policy>>,
    /// Threads ever created.
    created: u32,
    /// Virtual nanoseconds since the start.
    elapsed: u64,
    /// So much of them has passed for waits that ended by their time limits, or outside.
    waited: u64,
    /// What the program was shown last, in virtual nanoseconds since the start.
    shown: u64,
    /// All events so far, and questions.
    work: u64,
    /// How many scheduling points are still allowed.
    points: u64,
    /// How many of them are left to the other threads once one is about to end the process.
    points_at_end: u64,
    /// What the clocks say at the start.
    pub real_start: u64,
    /// As `real_start`, of the monotonic clock.
    pub monotonic_start: u64,
}

static SCHEDULER: TurnCell<Scheduler> = TurnCell::new(Scheduler {
    threads: Vec::new(),
    joinable: Vec::new(),
    policy: None,
    created: 0,
    elapsed: 0,
    waited: 0,
    shown: 0,
    work: 0,
    points: u64::MAX,
    points_at_end: POINTS_AT_END,
    real_start: 0,
    monotonic_start: 0,
});

/// Number of the thread that has the turn, plus 1; 0 when the turn lies free because all threads
/// that could run are in system calls.
static HOLDER: AtomicU32 = AtomicU32::new(0);
/// Who may take a free turn: a thread's number plus 1, or 0 for anybody.
static AWAITED: AtomicU32 = AtomicU32::new(0);

/// The scheduler.
///
/// # Safety
/// Only for the thread that has the turn.
pub unsafe fn scheduler() -> &'static mut Scheduler {
    // SAFETY: the caller's promise.
    unsafe { SCHEDULER.get() }
}

impl Scheduler {
    /// Whether there was never more than one thread.
    pub fn is_single(&self) -> bool {
        self.created <= 1
    }

    /// It is this time at least (virtual time).
    fn pass_until(&mut self, time: u64) {
        self.elapsed = self.elapsed.max(time);
        self.waited = self.waited.max(time);
    }

    /// Who has this has the turn.
    fn turn(&self) -> Turn {
        // SAFETY: see [`scheduler`].
        unsafe { Turn::held() }
    }
}

/// Ends the run after so many scheduling points.
pub fn limit_points(limit: u64) {
    // SAFETY: called before there is any thread.
    unsafe { scheduler() }.points = limit;
}

/// Makes the calling thread the main thread and gives it the turn.
pub fn start(policy: Box<dyn Policy>) {
    // SAFETY: called once, before there is any other thread.
    let scheduler = unsafe { scheduler() };
    scheduler.policy = Some(policy);
    // The same in every run of the same build, so that a replay sees the times of the recording.
    scheduler.real_start = sys::modified(b"/proc/self/exe\0") * 1_000_000_000;
    scheduler.monotonic_start = 1_000_000_000_000;
    let me = create(None);
    // SAFETY: fresh and never freed.
    let me = unsafe { &mut *me };
    // SAFETY: asks who we are.
    me.handle = unsafe { libc::pthread_self() };
    me.task = sys::task();
    HOLDER.store(me.number + 1, SeqCst);
    fiber::is_home(me);
    fiber::carries(me);
    local::set_current(me);
    took_turn(me);
    define_task(me);
    me.event([head(Kind::ThreadBegin, 0, 0)]);
    me.leave();
}

/// Says which task of the kernel the thread is.
pub fn define_task(me: &Thread) {
    // SAFETY: the thread has the turn.
    let recorder = unsafe { recorder() };
    recorder.record(0, 0, &record::Task { thread: me.number, task: me.task });
}

/// A new thread, child of `parent`; it is runnable and waits for its first turn.
pub fn create(parent: Option<&mut Thread>) -> *mut Thread {
    // SAFETY: the creator has the turn.
    let scheduler = unsafe { scheduler() };
    let mut scopes = Default::default();
    let path = match parent {
        None => Vec::new(),
        Some(parent) => {
            scopes = parent.scopes.of_child();
            let mut path = parent.path.clone();
            path.push(parent.children);
            path
        }
    };
    let mut thread = Thread::new(scheduler.created, path);
    thread.scopes = scopes;
    let thread = Box::into_raw(thread);
    scheduler.created += 1;
    scheduler.threads.push(thread);
    // SAFETY: as above; the thread is fresh.
    unsafe {
        let path = &(*thread).path;
        forced::born(path);
        let bytes: Vec<u8> = path.iter().flat_map(|&part| u64::from(part).to_le_bytes()).collect();
        recorder().record(0, 0, &record::DefineThread { thread: (*thread).number, path: bytes });
    }
    thread
}

/// Forgets a thread that could not be started.
pub fn discard(thread: *mut Thread) {
    // SAFETY: the creator has the turn.
    unsafe { scheduler() }.threads.retain(|&other| other != thread);
}

/// The thread has the turn now: readies it to run.
fn took_turn(me: &mut Thread) {
    // SAFETY: the caller has the turn.
    let scheduler = unsafe { scheduler() };
    me.state = State::Runnable;
    me.wait = Wait::None;
    me.deadline = None;
    me.back.store(false, SeqCst);
    me.turn_began = me.slots.index;
    watchdog::took_turn(me);
    // SAFETY: as above.
    let recorder = unsafe { recorder() };
    me.slots.cursor = recorder.cursor();
    recorder.turn(me);
    recorder.progress();
    // Before its first event a thread has not begun: what was sent to it then is noted at its next turn.
    if me.slots.index > 0 {
        for channel in std::mem::take(&mut me.handled_signals) {
            me.record(0, 0, &record::Receive { channel, amount: 1 });
        }
    }
    if let Some(policy) = &mut scheduler.policy {
        let asks_at = policy.pause_at(me).min(me.slots.index.saturating_add(LONGEST_TURN));
        me.pause_at = match policy.is_free() {
            true => pace::begin_turn(&scheduler.threads, me, asks_at),
            false => asks_at,
        };
    }
    if me.signals != 0 {
        me.pause_at = 0;
    }
}

/// Sleeps until the turn is given to this thread, which is on its home.
pub fn wait_for_turn(me: &mut Thread) {
    if fiber::suspend(me, Then::Nothing, true) {
        took_turn(me);
        return;
    }
    let mut seen = watchdog::Look::default();
    me.parked = Parked::Turn;
    while me.word.load(SeqCst) == 0 {
        sys::futex_wait(&me.word, 0, Some(&watchdog::LOOK_AFTER), false);
        if me.word.load(SeqCst) == 0 && watchdog::look(me, &mut seen) {
            match choose(me) {
                Next::Thread(next) if std::ptr::eq(next, me) => break,
                Next::Thread(next) => give(next),
                Next::Free => free_turn(),
            }
        }
    }
    me.parked = Parked::No;
    me.word.store(0, SeqCst);
    fiber::carries(me);
    took_turn(me);
}

/// The turn is taken from a thread that comes to no event, see `watchdog`.
pub fn seize(me: &Thread) {
    HOLDER.store(me.number + 1, SeqCst);
}

/// In a signal handler that interrupted [`wait_for_turn`]: waits for the turn before that does.
pub fn take_turn(me: &mut Thread) {
    if !come_back(me) {
        while me.word.load(SeqCst) == 0 {
            sys::futex_wait(&me.word, 0, None, false);
        }
        me.word.store(0, SeqCst);
    }
    fiber::carries(me);
    took_turn(me);
}

/// Lets the [`wait_for_turn`] that the handler interrupted have the turn.
pub fn keep_turn(me: &mut Thread) {
    me.parked = Parked::Turn;
    me.word.store(1, SeqCst);
}

/// Gives the turn to a thread that waits for it, on its home.
pub fn give(next: *mut Thread) {
    // SAFETY: the thread is alive: it is in the list. After the word is set it may end.
    unsafe {
        HOLDER.store((*next).number + 1, SeqCst);
        let word = &(*next).word;
        word.store(1, SeqCst);
        sys::futex_wake(word, 1, false);
    }
}

/// Threads that came back from a system call, or were interrupted, can run again.
fn welcome_back(scheduler: &mut Scheduler) {
    for &thread in &scheduler.threads {
        // SAFETY: live threads; their state belongs to us.
        unsafe {
            if (*thread).back.load(SeqCst) {
                (*thread).state = State::Runnable;
            }
        }
    }
}

/// Threads whose files are ready can run again. Waits for the first of them, at most `limit`
/// nanoseconds; says whether there is one.
fn welcome_readers(scheduler: &mut Scheduler, limit: u64) -> bool {
    let mut files: Vec<libc::pollfd> = Vec::new();
    let mut waiting = Vec::new();
    for &thread in &scheduler.threads {
        // SAFETY: as above.
        let waits = unsafe { &*thread };
        if waits.state == State::Blocked && waits.wait == Wait::Files {
            let first = files.len();
            files.extend(&waits.files);
            waiting.push((thread, first..files.len()));
        }
    }
    if waiting.is_empty() {
        return false;
    }
    if sys::poll(&mut files, limit) <= 0 {
        return false;
    }
    for (thread, its_files) in waiting {
        if files[its_files].iter().any(|file| file.revents != 0) {
            // SAFETY: as above.
            unsafe { (*thread).state = State::Runnable };
        }
    }
    true
}

/// Threads whose deadline has passed can run again.
fn wake_sleepers(scheduler: &mut Scheduler) {
    let now = scheduler.elapsed;
    for &thread in &scheduler.threads {
        // SAFETY: as above.
        unsafe {
            if (*thread).state == State::Blocked && (*thread).deadline.is_some_and(|at| at <= now) {
                (*thread).state = State::Runnable;
                (*thread).timed_out = true;
            }
        }
    }
}

/// The thread's events of this turn, and this question, are scheduling points. Ends the run when
/// there were too many.
fn spend_points(scheduler: &mut Scheduler, me: *mut Thread) {
    // SAFETY: the states of threads are never freed, and this one has the turn.
    let events = unsafe { (*me).slots.index.wrapping_sub((*me).turn_began) };
    let spent = 1 + u64::from(events);
    // SAFETY: as above.
    pace::note(&scheduler.threads, me, unsafe { recorder() });
    scheduler.work += spent;
    scheduler.points = scheduler.points.saturating_sub(spent);
    if who_ends(scheduler).is_some() {
        scheduler.points_at_end = scheduler.points_at_end.saturating_sub(spent);
    }
    if scheduler.points == 0 {
        let text = Sentence::from("the run did not end within its limit of scheduling points");
        say_where_threads_stand(scheduler);
        if !may_change_by_itself(scheduler) {
            stop(End::Livelock, &text);
        }
        for &thread in &scheduler.threads {
            // SAFETY: live threads.
            let thread = unsafe { &*thread };
            if thread.state == State::Runnable {
                outside::note(thread.number, Cause::BusyBesideSleepers, 0, "", 0);
            }
        }
        stop(End::Busy, &text);
    }
}

/// Whether something that is not in the hands of the threads that run may still change what they
/// wait for.
fn may_change_by_itself(scheduler: &Scheduler) -> bool {
    let waits = |thread: &Thread| match thread.state {
        State::External => true,
        State::Blocked => thread.deadline.is_some() || may_wait_for_others(thread),
        State::Runnable | State::Finished => false,
    };
    // SAFETY: live threads.
    scheduler.threads.iter().any(|&thread| waits(unsafe { &*thread }))
        || !outside::wakers(&scheduler.threads).is_empty()
}

/// Whether the thread waits for something that another process may do.
fn may_wait_for_others(thread: &Thread) -> bool {
    match thread.wait {
        Wait::Files => true,
        Wait::Kernel(key) => !channels::ipc::is_private(key),
        _ => false,
    }
}

/// Threads that wait for an object of the kernel can try again.
fn welcome_kernel_waiters(scheduler: &Scheduler) {
    for &thread in &scheduler.threads {
        // SAFETY: live threads; their state belongs to us.
        unsafe {
            if (*thread).state == State::Blocked && matches!((*thread).wait, Wait::Kernel(_)) {
                (*thread).state = State::Runnable;
            }
        }
    }
}

/// Whether somebody waits for what happens outside: then time must not be skipped.
fn real_time_passes(threads: &[*mut Thread], external: bool) -> bool {
    let reads_from_outside = |thread: &Thread| {
        thread.state == State::Blocked
            && thread.wait == Wait::Files
            && outside::come_from_outside(&thread.files)
    };
    // SAFETY: live threads.
    external
        || threads.iter().any(|&thread| reads_from_outside(unsafe { &*thread }))
        || outside::others_act()
}

/// Whether a thread is in a system call outside the scheduler.
fn has_external(threads: &[*mut Thread]) -> bool {
    // SAFETY: live threads.
    threads.iter().any(|&thread| unsafe { (*thread).state } == State::External)
}

/// Whether a thread waits for an object that other processes see: nobody says when it is free.
fn awaits_sharers(scheduler: &Scheduler) -> bool {
    scheduler.threads.iter().any(|&thread| {
        // SAFETY: live threads.
        let thread = unsafe { &*thread };
        matches!(thread.wait, Wait::Object(number) if thread.state == State::Blocked
            && objects::by_number(scheduler.turn(), number).shared.get())
    })
}

/// Threads that wait for an object that other processes see can look again if it is free now.
fn welcome_sharers(scheduler: &mut Scheduler) {
    for &thread in &scheduler.threads {
        // SAFETY: live threads; their state belongs to us.
        unsafe {
            if let Wait::Object(number) = (*thread).wait
                && (*thread).state == State::Blocked
                && objects::by_number(scheduler.turn(), number).shared.get()
                && objects::is_free(scheduler.turn(), number)
            {
                (*thread).state = State::Runnable;
            }
        }
    }
}

/// Threads that go round in a loop that waits can look again if what they read has changed.
fn welcome_spinners(scheduler: &mut Scheduler) {
    for &thread in &scheduler.threads {
        // SAFETY: live threads; their state belongs to us.
        unsafe {
            if (*thread).state == State::Blocked
                && (*thread).wait == Wait::Change
                && crate::spin::has_changed(scheduler.turn(), &*thread)
            {
                (*thread).state = State::Runnable;
            }
        }
    }
}

/// Threads that wait for a change of what they look at look again from time to time: not every way to change
/// a file is seen.
fn welcome_lookers(scheduler: &mut Scheduler) {
    for &thread in &scheduler.threads {
        // SAFETY: live threads; their state belongs to us.
        unsafe {
            let passed = scheduler.work.wrapping_sub((*thread).waits_since.work);
            if (*thread).state == State::Blocked
                && matches!((*thread).wait, Wait::Look(_))
                && passed > WORK_BETWEEN_LOOKS
            {
                (*thread).state = State::Runnable;
            }
        }
    }
}

/// How much the others do before a thread looks again, see [`welcome_lookers`].
const WORK_BETWEEN_LOOKS: u64 = 20_000;

/// A thread that waits for a change of what it looks at, if there is one.
fn looker(threads: &[*mut Thread]) -> Option<*mut Thread> {
    threads.iter().copied().find(|&thread| {
        // SAFETY: live threads.
        let thread = unsafe { &*thread };
        thread.state == State::Blocked && matches!(thread.wait, Wait::Look(_))
    })
}

/// Whether nobody outside can make ready what is waited for.
fn no_outside(threads: &[*mut Thread]) -> bool {
    let inside = |&thread: &*mut Thread| {
        // SAFETY: live threads.
        let thread = unsafe { &*thread };
        match thread.wait {
            Wait::Files => {
                thread.deadline.is_none()
                    && thread.files.iter().all(|file| channels::is_private(file.fd))
            }
            Wait::Kernel(key) => thread.deadline.is_none() && channels::ipc::is_private(key),
            _ => true,
        }
    };
    threads.iter().all(inside) && outside::wakers(threads).is_empty()
}

/// Who takes the turn next.
enum Next {
    Thread(*mut Thread),
    Free,
}

/// The thread that is about to end the process and waits for the others.
fn who_ends(scheduler: &Scheduler) -> Option<*mut Thread> {
    scheduler.threads.iter().copied().find(|&thread| {
        // SAFETY: live threads.
        let thread = unsafe { &*thread };
        thread.state == State::Blocked && thread.wait == Wait::Others
    })
}

/// How long the real world is waited for before the threads are looked at again, in nanoseconds.
const LOOK_AGAIN: u64 = 1_000_000;
/// Asks the policy. Ends the program when nobody can ever run again.
fn choose(me: *mut Thread) -> Next {
    // SAFETY: the caller has the turn.
    let scheduler = unsafe { scheduler() };
    scheduler.elapsed += 1_000;
    spend_points(scheduler, me);
    let mut waited = 0;
    let mut said = false;
    loop {
        // SAFETY: the states of threads are never freed, and this one has the turn.
        signals::run_pending(unsafe { &mut *me });
        welcome_back(scheduler);
        wake_sleepers(scheduler);
        welcome_sharers(scheduler);
        welcome_spinners(scheduler);
        welcome_lookers(scheduler);
        welcome_readers(scheduler, 0);
        let position = scheduler.threads.iter().position(|&thread| thread == me);
        let current = position.unwrap_or(scheduler.threads.len().saturating_sub(1));
        if scheduler.threads.is_empty() {
            return Next::Free;
        }
        let ends = who_ends(scheduler);
        if let Some(ends) = ends
            && scheduler.points_at_end == 0
        {
            return Next::Thread(ends);
        }
        let Some(policy) = &mut scheduler.policy else { return Next::Thread(me) };
        if policy.is_free()
            && let Some(deadline) = pace::deadline(&scheduler.threads, scheduler.work, || {
                real_time_passes(&scheduler.threads, has_external(&scheduler.threads))
            })
            && deadline > scheduler.elapsed
        {
            scheduler.pass_until(deadline);
            continue;
        }
        let any = |is: fn(&Thread) -> bool| {
            // SAFETY: live threads.
            scheduler.threads.iter().any(|&thread| is(unsafe { &*thread }))
        };
        let external = has_external(&scheduler.threads);
        let files = any(|thread| {
            thread.state == State::Blocked && matches!(thread.wait, Wait::Files | Wait::Kernel(_))
        });
        match policy.choose(&Threads(&scheduler.threads), current) {
            Choice::Run(position) => return Next::Thread(scheduler.threads[position]),
            Choice::TimeOut(_)
                if policy.is_free() && clients::when_idle(&scheduler.threads, true) => {}
            Choice::TimeOut(position) => {
                let thread = scheduler.threads[position];
                // SAFETY: a live thread.
                unsafe {
                    let deadline = (*thread).deadline.unwrap_or(0);
                    let left = deadline.saturating_sub(scheduler.elapsed);
                    if left > 0
                        && policy.is_free()
                        && real_time_passes(&scheduler.threads, external)
                    {
                        // Somebody waits for the real world: time passes as it does there.
                        let limit = left.min(LOOK_AGAIN);
                        let began = sys::clock(libc::CLOCK_MONOTONIC);
                        if !welcome_readers(scheduler, limit) {
                            let passed = sys::clock(libc::CLOCK_MONOTONIC).saturating_sub(began);
                            sys::sleep(limit.saturating_sub(passed));
                        }
                        let passed = sys::clock(libc::CLOCK_MONOTONIC).saturating_sub(began);
                        scheduler.pass_until(scheduler.elapsed + passed.min(left));
                        continue;
                    }
                    scheduler.pass_until(deadline);
                    (*thread).state = State::Runnable;
                    (*thread).timed_out = true;
                }
                return Next::Thread(thread);
            }
            Choice::Await(position) => {
                // SAFETY: a live thread.
                let thread = unsafe { &*scheduler.threads[position] };
                if thread.state == State::External {
                    AWAITED.store(thread.number + 1, SeqCst);
                    return Next::Free;
                }
                // What clients do is done at once: who waits for them in vain now will do so later.
                let played = clients::are_played() && thread.wait == Wait::Files && !external;
                let idle = !any(|thread| thread.state == State::Runnable);
                if played && idle && clients::when_idle(&scheduler.threads, false) {
                    continue;
                }
                if waited > PATIENCE_OUTSIDE || played {
                    let who = Sentence::default().thread(&thread.path);
                    stop(
                        End::LeftSchedule,
                        &who.text(" waits too long for ").then(waits_for(thread)),
                    );
                }
                waited += LOOK_AGAIN;
                if matches!(thread.wait, Wait::Kernel(_)) {
                    sys::sleep(LOOK_AGAIN);
                    welcome_kernel_waiters(scheduler);
                } else {
                    welcome_readers(scheduler, LOOK_AGAIN);
                }
            }
            Choice::Nobody if files && clients::when_idle(&scheduler.threads, false) => {}
            Choice::Nobody if files && ends.is_none() && !external && clients::was_told() => {
                clients::end(&scheduler.threads);
            }
            // What it waits for may come from outside: it looks, and the program goes on with what it sees.
            Choice::Nobody
                if ends.is_none()
                    && let Some(thread) = looker(&scheduler.threads) =>
            {
                sys::sleep(LOOK_AGAIN);
                // SAFETY: a live thread.
                unsafe {
                    (*thread).state = State::Runnable;
                    (*thread).timed_out = true;
                }
                return Next::Thread(thread);
            }
            Choice::Nobody if external && ends.is_some() && waited < PATIENCE_AT_END => {
                waited += LOOK_AGAIN;
                sys::sleep(LOOK_AGAIN);
            }
            // The end of the process does not depend on what comes from outside.
            Choice::Nobody if let Some(ends) = ends => return Next::Thread(ends),
            // Who only wanted to leave must not wait here: its call may be what the files wait for. One
            // of those that wait for them looks on.
            // SAFETY: the state of a live thread.
            Choice::Nobody if files && unsafe { (*me).state } == State::External => {
                let waiting = scheduler.threads.iter().copied().find(|&thread| {
                    // SAFETY: live threads.
                    let thread = unsafe { &*thread };
                    thread.state == State::Blocked
                        && matches!(thread.wait, Wait::Files | Wait::Kernel(_))
                });
                if let Some(thread) = waiting {
                    return Next::Thread(thread);
                }
            }
            Choice::Nobody if files && !external && no_outside(&scheduler.threads) => {
                stop(End::Deadlock, &deadlock(scheduler));
            }
            Choice::Nobody if files => {
                // The recorder outside ends the run if this takes too long.
                let began = sys::clock(libc::CLOCK_MONOTONIC);
                if !welcome_readers(scheduler, LOOK_AGAIN) {
                    let passed = sys::clock(libc::CLOCK_MONOTONIC).saturating_sub(began);
                    sys::sleep(LOOK_AGAIN.saturating_sub(passed));
                }
                welcome_kernel_waiters(scheduler);
            }
            Choice::Nobody if external && !awaits_sharers(scheduler) => {
                AWAITED.store(0, SeqCst);
                return Next::Free;
            }
            Choice::Nobody if external => sys::sleep(LOOK_AGAIN),
            Choice::Nobody => {
                let wakers = outside::wakers(&scheduler.threads);
                if wakers.is_empty() {
                    stop(End::Deadlock, &deadlock(scheduler));
                }
                if !said {
                    said = true;
                    // SAFETY: live threads.
                    let number = unsafe { (*scheduler.threads[current]).number };
                    wakers.iter().for_each(|waker| outside::note_awaited(number, waker));
                }
                // The recorder outside ends the run if this takes too long.
                sys::sleep(LOOK_AGAIN);
            }
            Choice::LeftSchedule(message) => stop(End::LeftSchedule, &message),
        }
    }
}

/// Lets the turn lie free for a thread that comes back from a system call; looks once more in case
/// one came back just now.
pub fn free_turn() {
    // SAFETY: we still have the turn. The list is copied: whoever takes the turn may change it.
    let threads = unsafe { scheduler() }.threads.clone();
    let awaited = AWAITED.load(SeqCst);
    HOLDER.store(0, SeqCst);
    for thread in threads {
        // SAFETY: the states of threads are never freed.
        let (number, back) = unsafe { ((*thread).number, (*thread).back.load(SeqCst)) };
        if back && (awaited == 0 || awaited == number + 1) {
            if HOLDER.compare_exchange(0, number + 1, SeqCst, SeqCst).is_ok() {
                give(thread);
            }
            return;
        }
    }
}

/// Lets the policy's choice run; returns when this thread has the turn again.
fn pass_turn(me: &mut Thread) {
    match choose(me) {
        Next::Thread(next) if std::ptr::eq(next, me) => took_turn(me),
        Next::Thread(next) => {
            // SAFETY: a live thread.
            HOLDER.store(unsafe { (*next).number } + 1, SeqCst);
            if fiber::switch(me, next) || fiber::suspend(me, Then::Give(next), false) {
                took_turn(me);
            } else {
                give(next);
                wait_for_turn(me);
            }
        }
        Next::Free => {
            if fiber::suspend(me, Then::Free, false) {
                took_turn(me);
            } else {
                free_turn();
                wait_for_turn(me);
            }
        }
    }
}

/// The running thread must ask whether it may go on.
#[cold]
#[inline(never)]
pub fn pause(me: &mut Thread) {
    if !me.may_pause() {
        me.pause_at = me.slots.index.saturating_add(1);
        return;
    }
    // SAFETY: we have the turn.
    let (scheduler, recorder) = unsafe { (scheduler(), recorder()) };
    if me.signals == 0
        && scheduler.policy.as_ref().is_some_and(|policy| policy.is_free())
        && let Some(next) = pace::look(&scheduler.threads, me, recorder)
    {
        me.pause_at = next;
        return;
    }
    if me.slots.index > u32::MAX - 2 * LONGEST_TURN {
        recorder.gap(1, "everything after a thread's four billionth event");
        recorder.stop();
    }
    pass_turn(me);
}

/// The running thread lets others go first, if there are any.
pub fn yield_turn(me: &mut Thread) {
    if me.may_pause() {
        me.asks_at = me.slots.index;
        me.pause_at = me.slots.index;
        pause(me);
    }
}

/// It is this time at least (virtual time): a wait has ended by its time limit.
pub fn pass_until(time: u64) {
    // SAFETY: callers have the turn.
    unsafe { scheduler() }.pass_until(time);
}

/// The running thread waits until another one wakes it, or until the deadline (virtual time).
/// Says whether the deadline ended the wait. One that was cancelled before does not wait where it could be
/// cancelled: nobody would wake it.
pub fn block(me: &mut Thread, wait: Wait, deadline: Option<u64>) -> bool {
    // SAFETY: the caller has the turn.
    let scheduler = unsafe { scheduler() };
    if is_cancellable(scheduler.turn(), wait) && threads::is_cancelled(me) {
        (me.timed_out, me.interrupted, me.handled) = (false, false, false);
        return false;
    }
    me.state = State::Blocked;
    me.wait = wait;
    me.deadline = deadline;
    me.timed_out = false;
    me.interrupted = false;
    me.handled = false;
    me.waits_since = Moment {
        work: scheduler.work,
        time: scheduler.elapsed,
        real: if deadline.is_some() { sys::clock(libc::CLOCK_MONOTONIC) } else { 0 },
    };
    pass_turn(me);
    if me.timed_out {
        time::waited_for(me.number);
    }
    me.timed_out
}

/// Whether a cancellation ends the wait: for a lock or a barrier it does not.
fn is_cancellable(turn: Turn, wait: Wait) -> bool {
    match wait {
        Wait::Object(number) => match objects::by_number(turn, number).model {
            Model::Semaphore(_) => !objects::is_free(turn, number),
            Model::Condition(_) => true,
            _ => false,
        },
        Wait::Thread(_) | Wait::Time | Wait::Files | Wait::Kernel(_) => true,
        _ => false,
    }
}

/// The running thread is about to end the process. Everybody else who can run goes first, so that what
/// they do is recorded: that the process ends earlier is one of the other interleavings.
pub fn await_others(me: &mut Thread) {
    // SAFETY: the caller has the turn.
    let alone = || unsafe { scheduler() }.threads.len() == 1;
    // SAFETY: as above.
    let left = || unsafe { scheduler() }.points_at_end;
    if alone() || left() == 0 {
        return;
    }
    block(me, Wait::Others, None);
    if left() == 0 && !alone() {
        // SAFETY: as above.
        unsafe { recorder() }.gap(1, "threads that were still running when the process ended");
    }
}

/// The running thread waits until one of the files is ready, or until the deadline. Says whether it
/// may have come: not at the deadline, nor when a signal handler or a cancellation cut the wait
/// short.
pub fn block_for_files(me: &mut Thread, files: Vec<libc::pollfd>, deadline: Option<u64>) -> bool {
    me.files = files;
    let late = block(me, Wait::Files, deadline);
    !late && !me.interrupted && !me.cancelled
}

/// Whether a thread waits for this file.
pub fn is_awaited(file: libc::c_int) -> bool {
    // SAFETY: the caller has the turn; live threads.
    let mut threads = unsafe { scheduler() }.threads.iter().map(|&thread| unsafe { &*thread });
    threads.any(|thread| {
        thread.state == State::Blocked
            && thread.wait == Wait::Files
            && thread.files.iter().any(|awaited| awaited.fd == file)
    })
}

/// Wakes all threads that wait for this. They try again when they get the turn.
pub fn wake(wait: Wait) {
    wake_some(wait, u32::MAX);
}

/// Wakes up to `limit` threads that wait for this; says how many.
pub fn wake_some(wait: Wait, limit: u32) -> u32 {
    let mut woken = 0;
    // SAFETY: the caller has the turn.
    for &thread in &unsafe { scheduler() }.threads {
        // SAFETY: live threads, and their state belongs to us.
        unsafe {
            if woken < limit && (*thread).state == State::Blocked && (*thread).wait == wait {
                (*thread).state = State::Runnable;
                woken += 1;
            }
        }
    }
    woken
}

/// The running thread goes into a system call that may block: others run meanwhile.
pub fn leave(me: &mut Thread) {
    fiber::go_home(me);
    me.state = State::External;
    match choose(me) {
        Next::Thread(next) if !std::ptr::eq(next, me) => give(next),
        _ => free_turn(),
    }
}

/// The thread would like the turn. Says whether it has it: it lay free.
fn come_back(me: &mut Thread) -> bool {
    me.back.store(true, SeqCst);
    let awaited = AWAITED.load(SeqCst);
    let free = (awaited == 0 || awaited == me.number + 1)
        && HOLDER.compare_exchange(0, me.number + 1, SeqCst, SeqCst).is_ok();
    if !free {
        return false;
    }
    let awaited = AWAITED.load(SeqCst);
    if awaited != 0 && awaited != me.number + 1 {
        // The turn was freed for another one in between.
        free_turn();
        return false;
    }
    true
}

/// The thread is back from its system call and waits for the turn.
pub fn enter(me: &mut Thread) {
    if come_back(me) {
        fiber::carries(me);
        took_turn(me);
    } else {
        wait_for_turn(me);
    }
}

/// Control arrived in the function with this frame, whose call is open. If the thread counts as inside
/// the runtime, a signal handler interrupted it there and left by `longjmp`: what it was about to record
/// may be half written. Recording ends, the program goes on.
pub fn jumped_out(frame: u64) {
    let current = local::current();
    if current.is_null() {
        return;
    }
    // SAFETY: this thread's own state.
    let me = unsafe { &mut *current };
    // The functions that a handler called there have no open call.
    if !me.is_inside() || !me.frames.contains(&frame) {
        return;
    }
    me.enter();
    if !has_turn(me) {
        if me.state == State::External {
            enter(me);
        } else {
            me.state = State::Runnable;
            wait_for_turn(me);
        }
    }
    // SAFETY: the thread has the turn.
    unsafe { recorder() }.leave();
    me.leave();
}

/// The running thread is over: the turn goes on without it.
pub fn finish(me: &mut Thread) {
    fiber::go_home(me);
    // SAFETY: we have the turn.
    let scheduler = unsafe { scheduler() };
    me.state = State::Finished;
    // SAFETY: as above.
    path::end_of(unsafe { recorder() }, me.number, &mut me.branches);
    if let Some(policy) = &mut scheduler.policy {
        policy.finished(me);
    }
    let pointer: *mut Thread = me;
    scheduler.threads.retain(|&thread| thread != pointer);
    if !me.detached {
        scheduler.joinable.push(pointer);
    }
    outside::finished(me.task);
    signals::thread_ends();
    wake(Wait::Thread(me.number));
    match choose(pointer) {
        Next::Thread(next) => give(next),
        Next::Free => free_turn(),
    }
}

/// The virtual time since the start, in nanoseconds. Asking takes a microsecond.
pub fn now() -> u64 {
    // SAFETY: the caller has the turn.
    let scheduler = unsafe { scheduler() };
    scheduler.elapsed += 1_000;
    scheduler.elapsed
}

/// The virtual time that the program is shown. It would be another in every interleaving if it had every step that was
/// taken; so of those it has whole milliseconds. Who asks again is shown a later time.
pub fn shown_time(me: &mut Thread) -> u64 {
    let now = now();
    // SAFETY: the caller has the turn.
    let scheduler = unsafe { scheduler() };
    let coarse = now / MILLISECOND * MILLISECOND;
    let mut time = coarse.max(scheduler.waited).max(scheduler.shown);
    if me.shown_time == Some(time) {
        time += 1_000;
    }
    scheduler.shown = time;
    me.shown_time = Some(time);
    time
}

const MILLISECOND: u64 = 1_000_000;

/// In a forked child there is only this thread. It goes on under the scheduler, unrecorded.
pub fn after_fork(me: &mut Thread) {
    // SAFETY: the only thread.
    let scheduler = unsafe { scheduler() };
    me.slots.cursor = recorder::NOWHERE.0.get(); // the other one is shared with the parent
    fiber::after_fork(me);
    clients::after_fork();
    scheduler.threads.clear();
    scheduler.threads.push(me);
    scheduler.joinable.clear();
}

/// Ends the program: it cannot go on under the scheduler.
pub fn stop(end: End, why: &Sentence) -> ! {
    // SAFETY: the caller has the turn.
    let recorder = unsafe { recorder() };
    if !recorder.is_on() {
        say(&why.to_string());
    }
    if end == End::LeftSchedule {
        recorder.why_it_left(why);
    }
    recorder.end(end, &why.to_string());
    sys::exit(foretell_wire::STOPPED_STATUS)
}

/// Ends the program: some of its threads can never go on.
pub fn stop_in_deadlock() -> ! {
    // SAFETY: the caller has the turn.
    stop(End::Deadlock, &deadlock(unsafe { scheduler() }))
}

/// A line on standard error.
pub fn say(message: &str) {
    sys::write(2, format!("foretell: {message}\n").as_bytes());
}

/// Tells the recorder where every thread is and what it waits for.
fn say_where_threads_stand(scheduler: &Scheduler) {
    for &thread in &scheduler.threads {
        // SAFETY: live threads, and the caller has the turn.
        unsafe { stands(&*thread).iter().for_each(|stands| recorder().record(0, 0, stands)) };
    }
}

/// Who waits for what; the recorder has it as data.
fn deadlock(scheduler: &Scheduler) -> Sentence {
    say_where_threads_stand(scheduler);
    // SAFETY: live threads.
    let threads = scheduler.threads.iter().map(|&thread| unsafe { &*thread });
    standing::standstill(threads.map(|thread| (&*thread.path, waits_for(thread))))
}

/// Where the thread is and what it waits for: more than one record if these are several files.
fn stands(thread: &Thread) -> Vec<Stands> {
    let stands = |on: Awaited, subject: u64| {
        vec![Stands::new(thread.number, thread.slots.index, on, subject)]
    };
    match thread.wait {
        _ if thread.state == State::Runnable => stands(Awaited::Nothing, 0),
        Wait::None => stands(Awaited::Nothing, 0),
        Wait::Object(object) => {
            // SAFETY: only who has the turn looks at other threads.
            let turn = unsafe { Turn::held() };
            vec![objects::awaited(turn, object, thread.number, thread.slots.index)]
        }
        Wait::Thread(number) => stands(Awaited::Thread, number.into()),
        Wait::Once(address) => stands(Awaited::Once, address),
        Wait::Futex(address) => stands(Awaited::Futex, address),
        Wait::Files => {
            let file = |file: i32| Stands {
                subject: file as u64,
                ..Stands::new(thread.number, thread.slots.index, Awaited::File, 0)
            };
            thread.files.iter().map(|waited| file(waited.fd)).collect()
        }
        Wait::Kernel(_) => stands(Awaited::Kernel, 0),
        Wait::Time => stands(Awaited::Time, 0),
        Wait::Change => stands(Awaited::Change, 0),
        Wait::Look(_) => stands(Awaited::FileChange, 0),
        Wait::Others => stands(Awaited::Others, 0),
    }
}

/// What the thread waits for, for people.
pub fn waits_for(thread: &Thread) -> Sentence {
    let all = stands(thread);
    let Some(first) = all.first() else { return Sentence::from("nothing") };
    let on = first.on().unwrap_or(Awaited::Nothing);
    let name = match on {
        Awaited::File => {
            let files: Vec<String> = all.iter().map(|file| file.subject.to_string()).collect();
            Piece::Text(files.join(", "))
        }
        _ => Piece::Address(objects::without_marks(on, first.subject)),
    };
    let holder = first.holder().map(path_of);
    standing::awaited(on, name, holder.as_deref(), first.came())
}

/// The creation path of the thread with this number.
pub fn path_of(number: u32) -> Vec<u32> {
    // SAFETY: the caller has the turn.
    let scheduler = unsafe { scheduler() };
    // SAFETY: the states of threads are never freed.
    let all = scheduler.threads.iter().chain(&scheduler.joinable).map(|&t| unsafe { &*t });
    all.into_iter()
        .find(|thread| thread.number == number)
        .map(|t| t.path.clone())
        .unwrap_or_default()
}

/// Whether the thread has the turn; for signal handlers, which run at any time.
pub fn has_turn(me: &Thread) -> bool {
    HOLDER.load(SeqCst) == me.number + 1
}
