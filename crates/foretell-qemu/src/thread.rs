//! A thread of the program, as the scheduler sees it.

use std::sync::atomic::{AtomicBool, AtomicU32};

use foretell_wire::sync_log::Cursor;

use crate::accesses::Pending;
use crate::api::Pointer;
use crate::branches::Path;
use crate::calls::Frame;
use crate::terms::Terms;

/// Whether a thread can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can.
    Runnable,
    /// It waits for another one.
    Blocked,
    /// It is in a system call.
    External,
    /// It is over.
    Finished,
}

/// What a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing.
    None,
    /// An object, by number.
    Object(u32),
    /// The end of a thread, by number.
    Thread(u32),
    /// The futex at this address.
    Futex(u64),
    /// Time to pass.
    Time,
    /// The other threads, to end the process.
    Others,
}

impl Wait {
    /// For people, as far as it is known without the scheduler's state.
    pub fn describe(self) -> &'static str {
        match self {
            Wait::None => "nothing",
            Wait::Object(_) => "a lock, a condition, a semaphore or a barrier",
            Wait::Thread(_) => "the end of a thread",
            Wait::Futex(_) => "a futex",
            Wait::Time => "time to pass",
            Wait::Others => "the other threads, to end the process",
        }
    }
}

/// A thread of the program.
pub struct Thread {
    /// Counted from 0 in the order of creation.
    pub number: u32,
    /// Creation path.
    pub path: Vec<u32>,
    /// How many threads it has created.
    pub children: u32,
    /// How many events it has had.
    pub index: u32,
    /// It has to ask at this index whether it may go on.
    pub pause_at: u32,
    /// Its index when it got the turn.
    pub turn_began: u32,
    /// Whether it can run.
    pub state: State,
    /// What it waits for.
    pub wait: Wait,
    /// When the wait ends by itself, in virtual time.
    pub deadline: Option<u64>,
    /// Its deadline ended its wait.
    pub timed_out: bool,
    /// 1: the turn was given to it.
    pub word: AtomicU32,
    /// It is back from a system call.
    pub back: AtomicBool,
    /// It has had a turn.
    pub started: bool,
    /// It has to pause at the next place where it can.
    pub owes_pause: bool,
    /// It has just done the last step of the schedule, and a debugger wants to see that.
    pub is_shown: bool,
    /// It is at the begin of a block of code, which it may leave and begin again.
    pub at_begin: bool,
    /// The code that it waited in is no more.
    pub must_leave: bool,
    /// A function that it has entered once, when it waited there and had to leave its code.
    pub entered: bool,
    /// QEMU's virtual CPU.
    pub cpu: Pointer,
    /// It is in translated code, so that QEMU must be told when it waits.
    pub in_code: bool,
    /// The function that it is in may block without giving the turn away.
    pub keeps_turn: bool,
    /// Its stack, as far as that is known.
    pub stack: std::ops::Range<u64>,
    /// From here on others may know addresses of its stack.
    pub open_from: u64,
    /// Functions that it has to be stopped at the return of.
    pub frames: Vec<Frame>,
    /// What it has done of an atomic access.
    pub pending: Pending,
    /// Where the function returns to that it creates a thread by, and what that thread will execute.
    pub creates: (u64, u64),
    /// The function that it executes.
    pub routine: u64,
    /// The index at which the thread called a function that is recognised, while it is in there.
    pub called_at: Option<u32>,
    /// What is cleared at the end of the thread that it creates, and at its own; see `futexes`.
    pub creates_clearing: u64,
    /// See `creates_clearing`.
    pub clears: u64,
    /// A futex that was changed for the time of a system call, and what it holds.
    pub changed: Option<(u64, u64)>,
    /// The log that it follows, if any.
    pub follows: Cursor,
    /// Its branches, if they are recorded.
    pub branches: Option<Path>,
    /// What its values were computed from, if that is recorded.
    pub terms: Option<Box<Terms>>,
}

/// What a program knows a thread by.
#[derive(Clone, Copy)]
pub struct Handle {
    /// What `pthread_create` gave.
    pub value: u64,
    /// The thread's number.
    pub number: u32,
    /// What the kernel clears when the thread is over; 0 for nothing.
    pub clears: u64,
}

impl Thread {
    /// A thread that waits for its first turn.
    pub fn new(number: u32, path: Vec<u32>) -> Self {
        Self {
            number,
            path,
            children: 0,
            index: 0,
            pause_at: 0,
            turn_began: 0,
            state: State::Runnable,
            wait: Wait::None,
            deadline: None,
            timed_out: false,
            word: AtomicU32::new(0),
            back: AtomicBool::new(false),
            started: false,
            owes_pause: false,
            is_shown: false,
            at_begin: false,
            must_leave: false,
            entered: false,
            cpu: std::ptr::null_mut(),
            in_code: false,
            keeps_turn: false,
            stack: 0..0,
            open_from: 0,
            frames: Vec::new(),
            pending: Pending::None,
            creates: (0, 0),
            routine: 0,
            called_at: None,
            creates_clearing: 0,
            clears: 0,
            changed: None,
            follows: Cursor::default(),
            branches: Path::new(),
            terms: Terms::new(),
        }
    }
}
