//! One thread at a time has the turn, as in `foretell-runtime`: all others wait in a callback of
//! QEMU's, or are in a system call that may block.
//!
//! The scheduler of `foretell-runtime` is not shared: it wraps the functions of the C library of the
//! process that it is in, and here that is QEMU's. What it decides is the same: threads, objects and
//! the ring belong to whoever has the turn, so nothing here takes a lock.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};

use foretell_wire::limits::{PATIENCE_AT_END, PATIENCE_FOR_CALL, POINTS_AT_END};
use foretell_wire::record;
use foretell_wire::standing::Sentence;
use foretell_wire::{End, Kind, STOPPED_STATUS, gap};

use crate::api::{Pointer, away};
use crate::branches;
use crate::calls::follow::Followed;
use crate::debugger;
use crate::futexes;
use crate::heap::Heap;
use crate::modules;
use crate::objects::Objects;
use crate::policy::{Choice, Policy};
use crate::ring::{Ring, futex_wait, futex_wake, head};
use crate::shadow::Shadow;
use crate::standing;
use crate::thread::{Handle, State, Thread, Wait};

/// What the thread with the turn may touch.
pub struct Scheduler {
    /// The way to the recorder.
    pub ring: Ring,
    /// Locks and the like.
    pub objects: Objects,
    /// What memory held when it was last seen.
    pub shadow: Shadow,
    /// What the program has allocated and freed.
    pub heap: Heap,
    /// All threads that are not over.
    pub threads: Vec<*mut Thread>,
    /// What the program calls its threads, with their numbers.
    pub handles: Vec<Handle>,
    /// Who goes next.
    pub policy: Policy,
    /// The log that is followed, if any.
    pub follows: Followed,
    created: u32,
    /// Virtual nanoseconds since the start.
    pub elapsed: u64,
    points: u64,
    points_at_end: u64,
    /// Sentences that were said already.
    said: Vec<&'static str>,
    /// Terms that the recorder was told of.
    pub terms: u32,
    /// In a child that was forked: nothing is recorded.
    is_child: bool,
}

struct Turned(UnsafeCell<Option<Scheduler>>);
// SAFETY: turns are passed on with sequentially consistent stores; one thread at a time has one.
unsafe impl Sync for Turned {}
static SCHEDULER: Turned = Turned(UnsafeCell::new(None));

/// Number of the thread that has the turn, plus 1; 0 when the turn lies free because all threads that
/// could run are in system calls.
static HOLDER: AtomicU32 = AtomicU32::new(0);
/// Who may take a free turn: a thread's number plus 1, or 0 for anybody.
static AWAITED: AtomicU32 = AtomicU32::new(0);
/// How often QEMU has thrown away its translated code.
pub static FLUSHES: AtomicU64 = AtomicU64::new(0);

/// How long the real world is waited for before the threads are looked at again, in nanoseconds.
const LOOK_AGAIN: u64 = 1_000_000;
/// The scheduler. Only for the thread that has the turn, and not while another reference is used.
#[allow(clippy::mut_from_ref)] // the turn makes it exclusive
pub fn scheduler() -> &'static mut Scheduler {
    // SAFETY: callers have the turn.
    unsafe { (*SCHEDULER.0.get()).as_mut().expect("the plugin was installed") }
}

/// Readies the scheduler, before there is any thread.
pub fn install(ring: Ring, policy: Policy, follows: Followed, points: u64) {
    let scheduler = Scheduler {
        ring,
        objects: Objects::default(),
        shadow: Shadow::default(),
        heap: Heap::default(),
        threads: Vec::new(),
        handles: Vec::new(),
        policy,
        follows,
        created: 0,
        elapsed: 0,
        points,
        points_at_end: POINTS_AT_END,
        said: Vec::new(),
        terms: 0,
        is_child: false,
    };
    // SAFETY: there is no other thread yet.
    unsafe { *SCHEDULER.0.get() = Some(scheduler) };
}

impl Scheduler {
    /// Says once what the trace lacks.
    pub fn gap_once(&mut self, what: &'static str) {
        self.lacks_once(gap::ANY, what);
    }

    /// The same, with what follows from it: one of [`gap`].
    pub fn lacks_once(&mut self, detail: u8, what: &'static str) {
        if !self.said.contains(&what) {
            self.said.push(what);
            self.ring.lacks(detail, what);
        }
    }

    /// Says once what was taken as it is.
    pub fn restriction_once(&mut self, what: &'static str) {
        if !self.said.contains(&what) {
            self.said.push(what);
            self.ring.restriction(what);
        }
    }

    /// Threads ever created; also the number of the next.
    pub fn created(&self) -> u32 {
        self.created
    }
}

/// A new thread, child of `parent`, or the main thread, which gets the turn.
pub fn create(parent: Option<&mut Thread>, cpu: Pointer) -> *mut Thread {
    let scheduler = scheduler();
    let path = match &parent {
        None => Vec::new(),
        Some(parent) => parent.path.iter().copied().chain([parent.children]).collect(),
    };
    let thread = Box::into_raw(Box::new(Thread::new(scheduler.created, path)));
    scheduler.created += 1;
    scheduler.threads.push(thread);
    // SAFETY: fresh, and never freed.
    let new = unsafe { &mut *thread };
    new.cpu = cpu;
    new.follows = scheduler.follows.cursor(&new.path);
    let bytes: Vec<u8> = new.path.iter().flat_map(|&part| u64::from(part).to_le_bytes()).collect();
    scheduler.ring.record(0, 0, &record::DefineThread { thread: new.number, path: bytes });
    match parent {
        Some(parent) => {
            parent.children += 1;
            let (place, routine) = parent.creates;
            new.routine = routine;
            new.clears = parent.creates_clearing;
            event(parent, Kind::Fork, 0, place, &[new.number.into()]);
        }
        None => {
            new.started = true;
            HOLDER.store(1, SeqCst);
            took_turn(new);
            event(new, Kind::ThreadBegin, 0, 0, &[]);
        }
    }
    thread
}

/// Appends an event of the thread, which has the turn.
pub fn event(me: &mut Thread, kind: Kind, detail: u8, place: u64, words: &[u64]) {
    let scheduler = scheduler();
    meet(scheduler, place);
    let mut record = [0; 6];
    record[0] = head(kind, detail, place);
    record[1..=words.len()].copy_from_slice(words);
    scheduler.ring.put(&record[..=words.len()]);
    count(me, kind, detail);
}

/// As [`event`], for a read or a write at a place that the recorder knows ([`meet`]).
#[inline(always)]
pub fn access(me: &mut Thread, kind: Kind, detail: u8, place: u64, address: u64, value: u64) {
    let scheduler = scheduler();
    scheduler.ring.put_access(head(kind, detail, place), address, value);
    count(me, kind, detail);
}

/// As [`access`], with the names of what is written and of the address.
pub fn access_with(
    me: &mut Thread,
    writes: bool,
    detail: u8,
    place: u64,
    address: u64,
    value: u64,
    names: u64,
) {
    let kind = if writes { Kind::WriteShadow } else { Kind::Read };
    let more = if writes { names } else { names >> 32 };
    let detail = detail | foretell_wire::access::MORE;
    scheduler().ring.put_access_with(head(kind, detail, place), address, value, more);
    count(me, kind, detail);
}

/// Announces a place that is new, and its module.
pub fn meet(scheduler: &mut Scheduler, place: u64) {
    if scheduler.ring.is_new_place(place) {
        modules::define(&mut scheduler.ring, place);
        scheduler.ring.record(0, place, &record::DefinePlace {});
    }
}

#[inline(always)]
fn count(me: &mut Thread, kind: Kind, detail: u8) {
    let scheduler = scheduler();
    me.index += 1;
    scheduler.ring.events += 1;
    if scheduler.policy.is_forced()
        && let Some(difference) = scheduler.policy.check(me, kind, detail)
    {
        stop(End::LeftSchedule, &difference);
    }
    if debugger::is_on() {
        me.is_shown = scheduler.policy.is_last_step(me);
        if me.is_shown {
            debugger::stop();
        }
    }
}

/// The thread has the turn now.
fn took_turn(me: &mut Thread) {
    futexes::await_cleared();
    let scheduler = scheduler();
    me.state = State::Runnable;
    me.wait = Wait::None;
    me.deadline = None;
    me.back.store(false, SeqCst);
    me.turn_began = me.index;
    scheduler.ring.turn(me.number);
    me.pause_at = scheduler.policy.pause_at(me);
}

/// A thread that has just come into being waits for its first turn.
pub fn begin(me: &mut Thread) {
    me.started = true;
    wait_for_turn(me);
    event(me, Kind::ThreadBegin, 0, 0, &[]);
    if me.routine != 0 {
        // A place is told by the address after it.
        event(me, Kind::Call, 0, me.routine + 1, &[]);
    }
}

/// Sleeps until the turn is given to this thread.
fn wait_for_turn(me: &mut Thread) {
    let word = &me.word;
    let sleep = || {
        while word.load(SeqCst) == 0 {
            futex_wait(word, 0, None, false);
        }
    };
    if me.in_code {
        let before = FLUSHES.load(SeqCst);
        away(me.cpu, sleep);
        if FLUSHES.load(SeqCst) != before && me.at_begin {
            me.must_leave = true;
        } else if FLUSHES.load(SeqCst) != before {
            me.word.store(0, SeqCst);
            took_turn(me);
            stop(
                End::Refused,
                &"QEMU threw away its translated code while a thread waited inside it; the program \
                  has too much code for this QEMU to be controlled"
                    .into(),
            );
        }
    } else {
        sleep();
    }
    me.word.store(0, SeqCst);
    took_turn(me);
}

fn give(next: *mut Thread) {
    // SAFETY: threads are never freed.
    unsafe {
        HOLDER.store((*next).number + 1, SeqCst);
        (*next).word.store(1, SeqCst);
        futex_wake(&(*next).word, 1, false);
    }
}

enum Next {
    Thread(*mut Thread),
    Free,
}

/// Asks the policy. Ends the program when nobody can ever run again.
fn choose(me: *mut Thread) -> Next {
    let scheduler = scheduler();
    scheduler.elapsed += 1_000;
    spend_points(scheduler, me);
    let mut waited = 0;
    loop {
        // SAFETY: threads are never freed, and their state belongs to us; what others change is atomic.
        let threads: Vec<&mut Thread> =
            scheduler.threads.iter().map(|&thread| unsafe { &mut *thread }).collect();
        for thread in threads {
            let late = thread.deadline.is_some_and(|at| at <= scheduler.elapsed);
            if thread.back.load(SeqCst) {
                thread.state = State::Runnable;
            } else if thread.state == State::Blocked && late {
                thread.state = State::Runnable;
                thread.timed_out = true;
            }
        }
        // SAFETY: as above.
        let threads: Vec<&Thread> =
            scheduler.threads.iter().map(|&thread| unsafe { &*thread }).collect();
        if threads.is_empty() {
            return Next::Free;
        }
        let position = scheduler.threads.iter().position(|&thread| thread == me);
        let current = position.unwrap_or(threads.len() - 1);
        let ends = threads
            .iter()
            .position(|thread| thread.state == State::Blocked && thread.wait == Wait::Others);
        if let Some(ends) = ends
            && scheduler.points_at_end == 0
        {
            return Next::Thread(scheduler.threads[ends]);
        }
        let external = threads.iter().any(|thread| thread.state == State::External);
        match scheduler.policy.choose(&threads, current) {
            Choice::Run(position) => return Next::Thread(scheduler.threads[position]),
            // Somebody waits for the real world: time passes as it does there.
            Choice::TimeOut(_) if external && !scheduler.policy.is_forced() => {
                sleep(LOOK_AGAIN);
                scheduler.elapsed += LOOK_AGAIN;
            }
            Choice::TimeOut(position) => {
                let thread = scheduler.threads[position];
                // SAFETY: a live thread.
                let thread_state = unsafe { &mut *thread };
                let deadline = thread_state.deadline.unwrap_or(0);
                scheduler.elapsed = scheduler.elapsed.max(deadline);
                thread_state.state = State::Runnable;
                thread_state.timed_out = true;
                return Next::Thread(thread);
            }
            // Perhaps another thread is to wake it by a system call, which is no event.
            Choice::Await(position)
                if waited < PATIENCE_FOR_CALL
                    && scheduler.policy.helper(&threads, position).is_some() =>
            {
                waited += LOOK_AGAIN;
                sleep(LOOK_AGAIN);
            }
            Choice::Await(position) => {
                if let Some(helper) = scheduler.policy.helper(&threads, position) {
                    scheduler.policy.helps(threads[helper]);
                    return Next::Thread(scheduler.threads[helper]);
                }
                AWAITED.store(threads[position].number + 1, SeqCst);
                return Next::Free;
            }
            Choice::Nobody if external && ends.is_some() && waited < PATIENCE_AT_END => {
                waited += LOOK_AGAIN;
                sleep(LOOK_AGAIN);
            }
            Choice::Nobody => match ends {
                Some(ends) => return Next::Thread(scheduler.threads[ends]),
                None if external => {
                    AWAITED.store(0, SeqCst);
                    return Next::Free;
                }
                None => stop(End::Deadlock, &standing::standstill(scheduler)),
            },
            Choice::LeftSchedule(message) => stop(End::LeftSchedule, &message),
        }
    }
}

/// The thread's events of this turn, and this question, are scheduling points.
fn spend_points(scheduler: &mut Scheduler, me: *mut Thread) {
    // SAFETY: threads are never freed, and this one has the turn.
    let me = unsafe { &*me };
    let spent = 1 + u64::from(me.index - me.turn_began);
    scheduler.points = scheduler.points.saturating_sub(spent);
    // SAFETY: live threads.
    let ends = |thread: &*mut Thread| unsafe { (**thread).wait == Wait::Others };
    if scheduler.threads.iter().any(ends) {
        scheduler.points_at_end = scheduler.points_at_end.saturating_sub(spent);
    }
    if scheduler.points > 0 {
        return;
    }
    let text = Sentence::from("the run did not end within its limit of scheduling points");
    let mut by_itself = false;
    for &thread in &scheduler.threads {
        // SAFETY: live threads.
        let thread = unsafe { &*thread };
        scheduler.ring.record(0, 0, &standing::stands(&scheduler.objects, thread));
        by_itself |= thread.state == State::External || thread.deadline.is_some();
    }
    stop(if by_itself { End::Busy } else { End::Livelock }, &text)
}

fn sleep(nanoseconds: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(nanoseconds));
}

/// Lets the turn lie free for a thread that comes back from a system call.
fn free_turn() {
    // The list is copied: whoever takes the turn may change it.
    let threads = scheduler().threads.clone();
    let awaited = AWAITED.load(SeqCst);
    HOLDER.store(0, SeqCst);
    for thread in threads {
        // SAFETY: threads are never freed.
        let (number, back) = unsafe { ((*thread).number, (*thread).back.load(SeqCst)) };
        if back && (awaited == 0 || awaited == number + 1) {
            if HOLDER.compare_exchange(0, number + 1, SeqCst, SeqCst).is_ok() {
                give(thread);
            }
            return;
        }
    }
}

fn pass_turn(me: &mut Thread) {
    match choose(me) {
        Next::Thread(next) if std::ptr::eq(next, me) => return took_turn(me),
        Next::Thread(next) => give(next),
        Next::Free => free_turn(),
    }
    wait_for_turn(me);
}

/// A scheduling point: the thread asks whether it may go on, if it has to.
#[inline(always)]
pub fn point(me: &mut Thread) {
    if me.index >= me.pause_at {
        pause(me);
    }
}

/// The thread lets others go first, if the policy says so.
#[cold]
pub fn pause(me: &mut Thread) {
    me.owes_pause = false;
    if me.is_shown {
        return; // the debugger has to stop this thread before others go on
    }
    if me.index == u32::MAX - 1 {
        stop(End::Refused, &"a thread has more than four billion events".into());
    }
    pass_turn(me);
}

/// The thread lets others go first.
pub fn yield_turn(me: &mut Thread) {
    pass_turn(me);
}

/// The thread waits until another one wakes it, or until the deadline. Says whether the deadline ended
/// the wait.
pub fn block(me: &mut Thread, wait: Wait, deadline: Option<u64>) -> bool {
    me.state = State::Blocked;
    me.wait = wait;
    me.deadline = deadline;
    me.timed_out = false;
    pass_turn(me);
    me.timed_out
}

/// Wakes all threads that wait for this. They try again when they get the turn.
pub fn wake(wait: Wait) {
    wake_some(wait, u32::MAX);
}

/// As [`wake`], so many of them.
pub fn wake_some(wait: Wait, most: u32) {
    let mut left = most;
    for &thread in &scheduler().threads {
        // SAFETY: live threads, and their state belongs to us.
        let thread = unsafe { &mut *thread };
        if thread.state == State::Blocked && thread.wait == wait && left > 0 {
            thread.state = State::Runnable;
            left -= 1;
        }
    }
}

/// The thread goes into a system call that may block: others run meanwhile.
pub fn leave(me: &mut Thread) {
    me.state = State::External;
    match choose(me) {
        Next::Thread(next) if !std::ptr::eq(next, me) => give(next),
        _ => free_turn(),
    }
}

/// The thread is back from its system call and waits for the turn.
pub fn enter(me: &mut Thread) {
    me.back.store(true, SeqCst);
    let may = |awaited: u32| awaited == 0 || awaited == me.number + 1;
    let free = may(AWAITED.load(SeqCst))
        && HOLDER.compare_exchange(0, me.number + 1, SeqCst, SeqCst).is_ok();
    if !free {
        return wait_for_turn(me);
    }
    if may(AWAITED.load(SeqCst)) {
        return took_turn(me);
    }
    // The turn was freed for another one in between.
    free_turn();
    wait_for_turn(me);
}

/// The thread is about to end the process. Everybody else who can run goes first, so that what they do
/// is recorded.
pub fn await_others(me: &mut Thread) {
    if scheduler().threads.len() > 1 && scheduler().points_at_end > 0 {
        block(me, Wait::Others, None);
    }
}

/// The thread is over: the turn goes on without it.
pub fn finish(me: &mut Thread) {
    event(me, Kind::ThreadEnd, 0, 0, &[]);
    let scheduler = scheduler();
    me.state = State::Finished;
    branches::end_of(&mut scheduler.ring, me);
    scheduler.policy.finished(me);
    let pointer: *mut Thread = me;
    scheduler.threads.retain(|&thread| thread != pointer);
    wake(Wait::Thread(me.number));
    match choose(pointer) {
        Next::Thread(next) => give(next),
        Next::Free => free_turn(),
    }
}

/// Whether a thread with this number is not over.
pub fn is_alive(number: u32) -> bool {
    // SAFETY: live threads.
    scheduler().threads.iter().any(|&thread| unsafe { (*thread).number } == number)
}

/// In a forked child there is only this thread. It goes on under the scheduler, unrecorded.
pub fn after_fork(me: &mut Thread) {
    let scheduler = scheduler();
    scheduler.ring.stop();
    scheduler.is_child = true;
    // A schedule is of the parent.
    scheduler.policy = Policy::new(Vec::new(), "round-robin:1000000").expect("it is one");
    scheduler.points = u64::MAX;
    scheduler.threads.clear();
    scheduler.threads.push(me);
}

/// Says how the run ends, and how far all threads have come.
pub fn end(how: End, message: &str) {
    let scheduler = scheduler();
    for &thread in &scheduler.threads {
        // SAFETY: live threads, and their state belongs to us.
        branches::end_of(&mut scheduler.ring, unsafe { &mut *thread });
    }
    scheduler.ring.end(how, message);
}

/// Ends the program: it cannot go on under the scheduler.
pub fn stop(how: End, why: &Sentence) -> ! {
    if scheduler().is_child {
        eprintln!("foretell: {why}");
    }
    if how == End::LeftSchedule {
        scheduler().ring.why_it_left(why);
    }
    end(how, &why.to_string());
    // SAFETY: ends the process at once; nothing of QEMU's needs to be cleaned up.
    unsafe { libc::_exit(STOPPED_STATUS) }
}
