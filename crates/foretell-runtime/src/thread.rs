//! What the runtime keeps about a thread, and the session that a hook or wrapper opens on it.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, compiler_fence};

use foretell_abi::{CallSlots, RECORDING};
use foretell_wire::record::Record;
use foretell_wire::sync_log::Cursor;
use foretell_wire::{Kind, TERM_SHADOW, access};

use crate::arena;
use crate::fiber::Context;
use crate::hooks;
use crate::local;
use crate::path::Path;
use crate::recorder::{self, Recorder, head, recorder};
use crate::replay;
use crate::scheduler;
use crate::shadow::LocalShadows;
use crate::stacks::Stack;
use crate::turn::Turn;
use crate::watchdog;
use crate::wrappers::blocking::piece;

/// A thread of the program. The fields up to `path` belong to the thread itself, those after it to
/// whoever has the turn.
#[repr(C)]
pub struct Thread {
    /// What instrumented code knows of it: the number of its events, shadows of arguments and
    /// results.
    pub slots: CallSlots,
    /// From this index on it must ask the scheduler before it goes on.
    pub pause_at: u32,
    /// At this index a store was announced, `pending` or `pending_range`: it may not have happened
    /// yet, and will be the event with this index.
    announced: u32,
    /// It is in a [`Session`], or else inside the runtime.
    busy: bool,
    /// Whether the turn was taken from it, see `watchdog`.
    pub expelled: AtomicU8,
    /// Where it sleeps inside the runtime: there a signal handler may run, see `wrappers::signals`.
    pub parked: Parked,
    /// Signals whose handlers have to run at its next step, one bit each.
    pub signals: u64,
    /// Those of them that no thread of the program sent.
    pub signals_from_outside: u64,
    /// While above 0 it may not be preempted: it holds a lock inside libc.
    pub unpreemptible: u32,
    /// Where it last called a function of Rust's standard library that tells of itself.
    pub called_at: u64,
    /// Scopes of Rust's threads.
    pub scopes: crate::wrappers::rust_scope::Scopes,
    /// So many handlers of panics are open: a panic is then no failure.
    pub handlers: u32,
    /// So many calls were open, and one more, when an assertion failed in it: until it has ended the
    /// process it is not preempted, or another failure could come first. 0 for none.
    fails: usize,
    /// While it is inside the runtime, where the access is that a hook is about to look at: if that
    /// faults, the program's would. 0 for none.
    pub looking: u64,
    /// A store that was announced.
    pub pending: PendingStore,
    /// Memory that was announced to be stored to: address, size (0 for none) and place.
    pub pending_range: (u64, u64, u64),
    /// Frames of the open calls, the innermost last.
    pub frames: Vec<u64>,
    /// Those of them that are of the language's library.
    pub library_frames: Vec<u64>,
    /// Shadows of local memory.
    pub local: LocalShadows,

    /// The branches it has taken, if they are recorded.
    pub branches: Option<Path>,

    /// Where it stands in the log that is followed.
    pub replay: Cursor,
    /// What it does now is in no log.
    pub unlogged: bool,

    /// Creation path.
    pub path: Vec<u32>,
    /// Where its memory lies, see [`crate::arena`].
    pub slot: u32,
    /// Its stack, if it is one of ours.
    pub stack: Stack,
    /// The stack of the thread that it is joining.
    pub joined: Stack,
    /// Where it stands in its random numbers.
    pub random: u64,
    /// Its number in the trace.
    pub number: u32,
    /// How many threads it has created.
    pub children: u32,
    /// The handle it has in libc.
    pub handle: libc::pthread_t,
    /// Set to 1 when it is given the turn; it sleeps on it.
    pub word: AtomicU32,
    /// Its registers, while it does not run in fiber mode.
    pub context: Context,
    /// It came back from a blocking system call and would like the turn.
    pub back: AtomicBool,
    /// Its index when it last got the turn.
    pub turn_began: u32,
    /// Whether it can run.
    pub state: State,
    /// What it waits for, while blocked.
    pub wait: Wait,
    /// The files that it waits for, while it waits for files.
    pub files: Vec<libc::pollfd>,
    /// The loop that waits in which it is, see `spin`.
    pub spin: Option<crate::spin::Spin>,
    /// A look that was announced, see `look`.
    pub look: Option<crate::look::Look>,
    /// What it read there, while it waits for a change: address, size and value.
    pub watched: Vec<(u64, u8, u64)>,
    /// The locks that it could not take there.
    pub refused: Vec<u32>,
    /// The virtual time that it was shown last.
    pub shown_time: Option<u64>,
    /// A signal handler cut its wait short.
    pub interrupted: bool,
    /// A signal handler ran while it waited.
    pub handled: bool,
    /// Its number in the kernel.
    pub task: u32,
    /// When it began to wait.
    pub waits_since: Moment,
    /// At this index it asks the policy again; before that it may only be looked at, see `pace`.
    pub asks_at: u32,
    /// Its index when it was looked at last.
    pub looked_at: u32,
    /// It was looked at just now.
    pub looked: bool,
    /// So many events in a row it did nothing but look at the same memory.
    pub spun: u64,
    /// What it did in its last turn, to compare with the next.
    pub last_turn: u64,
    /// It asked to be cancelled anywhere.
    pub cancelled_anywhere: bool,
    /// Virtual time at which its wait ends anyway.
    pub deadline: Option<u64>,
    /// Its wait ended by its deadline.
    pub timed_out: bool,
    /// Nobody will join it.
    pub detached: bool,
    /// It was asked to cancel.
    pub cancelled: bool,
    /// The signals that it blocks, one bit each.
    pub mask: u64,
    /// Channels of signals that were sent to it and are blocked.
    pub pending_signals: Vec<u32>,
    /// Channels of signals whose handlers have run in it since it last had the turn.
    pub handled_signals: Vec<u32>,
    /// Rounds of thread-specific destructors seen while it ends.
    pub destructor_rounds: u32,
}

/// A store whose value is read back at the thread's next hook (the TSan ABI announces stores).
#[derive(Clone, Copy)]
pub struct PendingStore {
    /// Where.
    pub address: u64,
    /// What was there before.
    pub old: u64,
    /// Program counter.
    pub place: u64,
    /// Size and order as in `foretell_wire::access`; 0 for none.
    pub detail: u8,
}

/// No shadows anywhere.
pub const EMPTY_SLOTS: CallSlots = CallSlots {
    cursor: recorder::NOWHERE.0.get(),
    index: 0,
    entered: 0,
    shadow_mask: 0,
    path: 0,
    callee: 0,
    outside: 0,
    returned_by: 0,
    arguments: [0; foretell_abi::ARGUMENT_SLOTS],
    results: [0; foretell_abi::RESULT_SLOTS],
    local_shadows: 0,
    reserved: 0,
};

/// A point of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// All events so far.
    pub work: u64,
    /// Virtual time.
    pub time: u64,
    /// Real time, where it matters.
    pub real: u64,
}

/// Where a thread sleeps inside the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// Nowhere.
    No,
    /// It waits for the turn.
    Turn,
    /// It is in a system call that may block, outside the scheduler.
    Call,
}

/// Whether a thread can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can.
    Runnable,
    /// It waits for something that another thread must do, or for time to pass.
    Blocked,
    /// It is in a system call that may block; it has no turn.
    External,
    /// It is over.
    Finished,
}

/// What a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing.
    None,
    /// A lock, semaphore, condition or barrier.
    Object(u32),
    /// The end of a thread.
    Thread(u32),
    /// An initialisation (`pthread_once`, a C++ guard) at this address.
    Once(u64),
    /// A futex of the program at this address.
    Futex(u64),
    /// One of its files to be ready.
    Files,
    /// An object of the kernel that other processes may use, too: a message queue, a semaphore or a lock
    /// of a file, by its key in `channels::ipc`.
    Kernel(u64),
    /// Time.
    Time,
    /// A change of what it read in a loop that waits.
    Change,
    /// A change of the channel with this number, which it looks at in a loop that waits.
    Look(u32),
    /// Everybody else to finish: it is about to end the process.
    Others,
}

impl Thread {
    /// A thread that waits for its first turn.
    pub fn new(number: u32, path: Vec<u32>) -> Box<Thread> {
        Box::new(Thread {
            // SAFETY: threads are made by the one that has the turn.
            slots: CallSlots {
                cursor: unsafe { recorder() }.cursor(),
                shadow_mask: hooks::shadow_mask(),
                path: Path::is_on().into(),
                // What a thread's function returns goes to whoever joins it.
                outside: usize::from(number != 0),
                ..EMPTY_SLOTS
            },
            pause_at: 0,
            announced: u32::MAX,
            busy: true,
            expelled: AtomicU8::new(0),
            parked: Parked::No,
            signals: 0,
            signals_from_outside: 0,
            unpreemptible: 0,
            called_at: 0,
            scopes: Default::default(),
            handlers: 0,
            fails: 0,
            looking: 0,
            pending: PendingStore { address: 0, old: 0, place: 0, detail: 0 },
            pending_range: (0, 0, 0),
            frames: Vec::new(),
            library_frames: Vec::new(),
            local: LocalShadows::default(),
            branches: Path::new(),
            replay: replay::cursor(&path),
            unlogged: false,
            slot: arena::slot_of(&path),
            path,
            stack: Stack::default(),
            joined: Stack::default(),
            random: 0,
            number,
            children: 0,
            handle: 0,
            word: AtomicU32::new(0),
            context: Context::new(),
            back: AtomicBool::new(false),
            turn_began: 0,
            state: State::Runnable,
            wait: Wait::None,
            files: Vec::new(),
            spin: None,
            look: None,
            watched: Vec::new(),
            refused: Vec::new(),
            shown_time: None,
            interrupted: false,
            handled: false,
            task: 0,
            waits_since: Moment::default(),
            asks_at: 0,
            looked_at: 0,
            looked: false,
            spun: 0,
            last_turn: 0,
            cancelled_anywhere: false,
            deadline: None,
            timed_out: false,
            detached: false,
            cancelled: false,
            mask: 0,
            pending_signals: Vec::new(),
            handled_signals: Vec::new(),
            destructor_rounds: 0,
        })
    }

    /// The function that it was told to call, if an expression for the result would be taken.
    pub fn asks_for_result(&self) -> Option<usize> {
        Some(self.slots.callee).filter(|&callee| callee != 0)
    }

    /// Leaves an expression for the result of the function that was called.
    pub fn leave_result(&mut self, callee: usize, shadow: u32) {
        self.slots.results[0] = shadow;
        self.slots.returned_by = callee;
    }

    /// An assertion failed in it.
    pub fn fails(&mut self) {
        self.fails = self.frames.len() + 1;
    }

    /// Whether it may be preempted. A thread in which an assertion failed may not, unless it has left the
    /// function that was about to end the process (by `longjmp`, say).
    pub fn may_pause(&mut self) -> bool {
        if self.frames.len() + 1 < self.fails {
            self.fails = 0;
        }
        self.unpreemptible == 0 && self.fails == 0
    }

    /// Whether it is inside the runtime, or records: then a signal handler that arrives must not.
    #[inline(always)]
    pub fn is_inside(&self) -> bool {
        self.busy || self.expelled.load(Relaxed) != 0 || self.slots.entered != self.slots.index
    }

    /// Whether it works inside the runtime, or records.
    pub fn is_busy(&self) -> bool {
        // SAFETY: our own fields; the thread itself may be changing them.
        unsafe {
            (&raw const self.busy).read_volatile()
                || (&raw const self.slots.entered).read_volatile()
                    != (&raw const self.slots.index).read_volatile()
        }
    }

    /// It goes into the runtime.
    #[inline(always)]
    pub fn enter(&mut self) {
        self.busy = true;
        compiler_fence(SeqCst);
    }

    /// It begins to record events until its index is `after`. Says whether it may: not if a signal
    /// handler has recorded since the index was seen to be `before`. (Two numbers that each change
    /// once are cheaper than a mark that is set and taken back.)
    #[inline(always)]
    fn begin(&mut self, before: u32, after: u32) -> bool {
        self.slots.entered = after;
        compiler_fence(SeqCst);
        // SAFETY: our own field; a signal handler may have changed it.
        let index = unsafe { (&raw const self.slots.index).read_volatile() };
        if index != before {
            self.slots.entered = index;
        }
        index == before
    }

    /// It leaves the runtime.
    #[inline(always)]
    pub fn leave(&mut self) {
        self.slots.entered = self.slots.index;
        self.allow();
        compiler_fence(SeqCst);
        self.busy = false;
    }

    /// It leaves the runtime without the turn.
    pub fn stays_out(&mut self) {
        self.slots.entered = self.slots.index;
        compiler_fence(SeqCst);
        self.busy = false;
    }

    /// Lets instrumented code append as many events as need no question to the scheduler.
    #[inline(always)]
    fn allow(&self) {
        let index = self.slots.index;
        let silent = self.announced == index || index >= LAST_SHADOWED;
        let left = self.pause_at.saturating_sub(index.saturating_add(1));
        // SAFETY: the thread has the turn.
        unsafe { recorder() }.allow(if silent { 0 } else { left });
    }

    /// Appends an event of this thread.
    #[inline(always)]
    pub fn event<const N: usize>(&mut self, words: [u64; N]) {
        // SAFETY: events are recorded by the thread that has the turn.
        unsafe { recorder() }.put(words);
        self.slots.index = self.slots.index.wrapping_add(1);
    }

    /// Appends an event of this thread, see [`Recorder::record`].
    #[inline(always)]
    pub fn record<const N: usize, R: Record<N>>(&mut self, detail: u8, place: u64, record: &R) {
        // SAFETY: events are recorded by the thread that has the turn.
        unsafe { recorder() }.record(detail, place, record);
        self.slots.index = self.slots.index.wrapping_add(1);
    }

    /// Appends an access of this thread, see [`Recorder::put_again`].
    #[inline(always)]
    pub fn access<const SITE: bool, const N: usize>(
        &mut self,
        head: u64,
        address: u64,
        value: u64,
        more: [u64; N],
    ) {
        // SAFETY: events are recorded by the thread that has the turn.
        unsafe { recorder() }.put_again::<SITE, N>(head, address, value, more);
        self.slots.index = self.slots.index.wrapping_add(1);
    }

    /// Keeps a store that is about to happen until the next hook.
    ///
    /// # Safety
    /// The program must be about to write there.
    #[inline(always)]
    pub unsafe fn announce<const SIZE: u8>(&mut self, address: u64, place: u64) {
        // SAFETY: the caller's promise.
        let old = unsafe { peek(address, SIZE) };
        self.pending = PendingStore { address, old, place, detail: access::detail(SIZE, 0) };
        self.announced = self.slots.index;
        // SAFETY: the thread has the turn.
        unsafe { recorder() }.allow(0);
    }

    /// Keeps a store of several words that is about to happen until the next hook.
    pub fn announce_range(&mut self, address: u64, size: u64, place: u64) {
        self.pending.detail = 0;
        self.pending_range = (address, size, place);
        self.announced = self.slots.index;
    }

    /// Records the store that was announced last, now that it has happened.
    #[inline(always)]
    pub fn settle(&mut self) {
        if self.announced == self.slots.index {
            self.settle_pending();
        }
    }

    /// The record of the store that was announced, if it is a single one and its record can be
    /// appended at once; says whether. The event is not counted yet.
    #[inline(always)]
    fn settle_quickly(&mut self) -> bool {
        let PendingStore { address, old, place, detail } = self.pending;
        // SAFETY: the program wrote there just now; the thread has the turn.
        unsafe {
            let value = match access::size(detail) {
                4 => peek(address, 4),
                8 => peek(address, 8),
                1 => peek(address, 1),
                2 => peek(address, 2),
                _ => return false,
            };
            recorder().try_again(head(Kind::Write, detail, place), address, value, [old])
        }
    }

    #[inline(never)]
    fn settle_pending(&mut self) {
        self.announced = u32::MAX;
        let PendingStore { address, old, place, detail } = self.pending;
        if detail != 0 {
            // SAFETY: the program wrote there just now.
            let value = unsafe { peek(address, access::size(detail)) };
            self.access::<false, 1>(head(Kind::Write, detail, place), address, value, [old]);
            return;
        }
        let (mut at, size, place) = self.pending_range;
        let end = at + size;
        while at < end {
            let size = piece(end - at);
            // SAFETY: the program wrote there just now.
            let value = unsafe { peek(at, size) };
            let head = head(Kind::Write, access::detail(size, 0), place);
            self.access::<false, 0>(head, at, value, []);
            at += u64::from(size);
        }
    }
}

/// From about here on the index of a read is no shadow any more, see `shadow::of_read`.
const LAST_SHADOWED: u32 = TERM_SHADOW - (1 << 20);

/// Below this nothing is mapped.
pub const NULL_PAGE: u64 = 4096;

/// The bytes at the address as a number.
///
/// # Safety
/// They must be readable.
#[inline(always)]
pub unsafe fn peek(address: u64, size: u8) -> u64 {
    if address < NULL_PAGE {
        return 0; // the program will fault there by itself
    }
    // SAFETY: the caller's promise; any alignment will do.
    unsafe {
        match size {
            1 => (address as *const u8).read_volatile().into(),
            2 => (address as *const u16).read_unaligned().into(),
            4 => (address as *const u32).read_unaligned().into(),
            8 => (address as *const u64).read_unaligned(),
            _ => {
                let mut bytes = [0; 8];
                for (i, byte) in bytes.iter_mut().enumerate().take(size.into()) {
                    *byte = (address as *const u8).add(i).read_volatile();
                }
                u64::from_le_bytes(bytes)
            }
        }
    }
}

/// Does something with this thread if nothing stands in the way of recording an event without a
/// [`Session`]: it is ours, no signal handler that interrupted the runtime, and need not ask the
/// scheduler. With `settle` there is an announced store, else there is none.
#[inline(always)]
fn at_once(settle: bool, record: impl FnOnce(&mut Thread) -> bool) -> bool {
    let current = local::current();
    if current.is_null() {
        return false;
    }
    // SAFETY: `current` is this thread's own state and lives as long as the thread.
    let me = unsafe { &mut *current };
    // An announced store is an event, too, before which no other thread is to be let in.
    if me.is_inside()
        || (me.announced == me.slots.index) != settle
        || me.slots.index.wrapping_add(1) >= me.pause_at
    {
        return false;
    }
    record(me)
}

/// What almost all hooks do, without the cost of a [`Session`]: `note` appends to the recorder what
/// can be appended at once and says whether it did. Gives the shadow of a read with the event's
/// index; 0 when something stands in the way. Then nothing has happened, and a session has to do it.
///
/// # Safety
/// For hooks that the program calls after what they record.
#[inline(always)]
pub unsafe fn quickly(note: impl FnOnce(&mut Recorder) -> bool) -> u32 {
    let mut shadow = 0;
    at_once(false, |me| {
        let before = me.slots.index;
        let after = before.wrapping_add(1);
        if !me.begin(before, after) {
            return false;
        }
        // SAFETY: a thread that runs has the turn.
        if !note(unsafe { recorder() }) {
            me.slots.entered = before;
            return false;
        }
        compiler_fence(SeqCst);
        me.slots.index = after;
        me.allow();
        shadow = after;
        true
    });
    shadow
}

/// The same for hooks that the program calls before its access, which is a read if `READ`: it first
/// `SETTLE`s the store that was announced before. Says whether it did what it should.
///
/// # Safety
/// The program must be about to do the access.
#[inline(always)]
pub unsafe fn quickly_before<const SIZE: u8, const READ: bool, const SETTLE: bool>(
    address: u64,
    place: u64,
) -> bool {
    if address < NULL_PAGE {
        return false;
    }
    at_once(SETTLE, |me| {
        let begin = me.slots.index;
        let mut index = begin;
        if !me.begin(begin, begin.wrapping_add(if READ && !SETTLE { 1 } else { 2 })) {
            return false;
        }
        me.looking = place;
        if SETTLE {
            if !me.settle_quickly() {
                me.slots.entered = begin;
                return false;
            }
            index = index.wrapping_add(1);
        }
        // SAFETY: the caller's promise; a thread that runs has the turn.
        unsafe {
            if !READ {
                me.slots.index = index;
                me.announce::<SIZE>(address, place);
                compiler_fence(SeqCst);
                me.slots.entered = index;
                return true;
            }
            let value = peek(address, SIZE);
            let head = head(Kind::Read, access::detail(SIZE, 0), place);
            if !recorder().try_again(head, address, value, []) {
                me.slots.index = index;
                me.slots.entered = index;
                return false;
            }
        }
        compiler_fence(SeqCst);
        me.slots.index = index.wrapping_add(1);
        true
    })
}

/// Builds a term, which is no event, without the cost of a [`Session`].
#[inline(always)]
pub fn built(build: impl FnOnce() -> u32) -> u32 {
    let current = local::current();
    if current.is_null() {
        return 0;
    }
    // SAFETY: `current` is this thread's own state and lives as long as the thread.
    let me = unsafe { &mut *current };
    if me.is_inside() {
        return 0;
    }
    me.slots.entered = RECORDING;
    compiler_fence(SeqCst);
    let shadow = build();
    me.allow();
    compiler_fence(SeqCst);
    me.slots.entered = me.slots.index;
    shadow
}

/// This thread inside the runtime: it has the turn, and signal handlers keep out.
pub struct Session {
    /// The thread.
    pub me: &'static mut Thread,
    /// Where the wrapper was called from.
    pub place: u64,
}

impl Session {
    /// Opens a session. `None`: the runtime is off, the thread is none of ours, or a signal handler
    /// interrupted the runtime; the caller then does what the program asked for and no more.
    #[inline(always)]
    pub fn begin() -> Option<Session> {
        let current = local::current();
        if current.is_null() {
            return None;
        }
        // SAFETY: `current` is this thread's own state and lives as long as the thread.
        let me = unsafe { &mut *current };
        if me.is_inside() && !watchdog::readmit(me) {
            return None;
        }
        me.enter();
        me.looking = 0;
        me.settle();
        Some(Session { me, place: local::caller() })
    }

    /// As [`Session::begin`], for hooks: as the runtime is not instrumented, only a signal handler
    /// can be why one comes while the thread is inside the runtime. That is counted.
    #[inline(always)]
    pub fn begin_hook() -> Option<Session> {
        let session = Session::begin();
        if session.is_none() && !local::current().is_null() {
            recorder::SKIPPED.fetch_add(1, Relaxed);
        }
        session
    }

    /// A scheduling point: another thread may run before this one goes on.
    #[inline(always)]
    pub fn point(&mut self) {
        if self.me.slots.index >= self.me.pause_at {
            scheduler::pause(self.me);
        }
    }

    /// Appends an event, at the place that called the wrapper.
    pub fn event<const N: usize>(&mut self, kind: Kind, detail: u8, words: [u64; N]) {
        self.event_at(kind, detail, self.place, words);
    }

    /// Appends an event with its fields.
    #[inline(always)]
    pub fn record<const N: usize, R: Record<N>>(&mut self, detail: u8, record: &R) {
        let place = self.place;
        self.recorder().meet(place);
        self.me.record(detail, place, record);
    }

    /// Appends an event.
    #[inline(always)]
    pub fn event_at<const N: usize>(
        &mut self,
        kind: Kind,
        detail: u8,
        place: u64,
        words: [u64; N],
    ) {
        const { assert!(N <= 1, "records of several words have fields: `Session::record`") };
        self.recorder().meet(place);
        match words.as_slice() {
            [] => self.me.event([head(kind, detail, place)]),
            &[a, ..] => self.me.event([head(kind, detail, place), a]),
        }
    }

    /// That the thread has the turn.
    #[inline(always)]
    pub fn turn(&self) -> Turn {
        // SAFETY: a session has it.
        unsafe { Turn::held() }
    }

    /// The recorder.
    #[inline(always)]
    pub fn recorder(&mut self) -> &mut Recorder {
        // SAFETY: a session has the turn.
        unsafe { recorder() }
    }
}

impl Drop for Session {
    #[inline(always)]
    fn drop(&mut self) {
        self.me.leave();
    }
}
