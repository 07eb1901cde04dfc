//! The contract between the runtime inside a program (crate `foretell-runtime`) and the recorder
//! outside it (crate `foretell-record`).
//!
//! The two share a ring of chunks in a memory file that the recorder makes and the program
//! inherits. The runtime appends records of 64-bit words; the recorder turns them into a trace
//! while the program runs. As the memory is shared, everything the program wrote survives whatever
//! ends it, `kill -9` included. There is one writer at a time: whoever has the scheduler's turn.
//!
//! # Records
//! The first word holds the [`Kind`] in bits 0..8, `detail` in bits 8..16 and in bits 16..64 the
//! `place`: a site's address, a program counter, or a small number, as the kind says. The words
//! after it depend on the kind. A text is a word with its length in bytes and then the bytes, padded
//! with zeros to whole words.
//!
//! The records of what happens most often have a form of one word, see [`again`]: those whose kind
//! [`Kind::can_be_short`]. Their long form is `address, value` and, with [`access::MORE`], one word
//! more.
//!
//! A record whose kind is an event ([`Kind::is_event`]) is exactly one event of the thread that the
//! last [`Kind::Turn`] named, so both sides count a thread's events alike; the others define what
//! events refer to.

use std::sync::atomic::{AtomicU32, AtomicU64};

pub mod again;
pub mod base;
pub mod condition;
pub mod outside;
pub mod predictor;
pub mod server;
pub mod sync_log;
pub mod traffic;

/// The version of this contract. It stands where it always stood, so that libraries and recorders
/// of any age recognise each other; what else has changed, [`CONTRACT`] tells.
pub const VERSION: u32 = 3;
/// The version of records in files: a log has them word for word (`foretell-record`, module `log`).
/// To be increased whenever a record comes to mean something else, or a short form does; logs with
/// another number are refused.
pub const LOG_VERSION: u32 = 1;
/// A number made from the text of the contracts: both sides are built together, and a side of
/// another build that may understand something else is refused before it does harm.
pub const CONTRACT: u64 = {
    let mut number = fingerprint(0xcbf2_9ce4_8422_2325, include_bytes!("lib.rs"));
    number = fingerprint(number, include_bytes!("again.rs"));
    number = fingerprint(number, include_bytes!("outside.rs"));
    number = fingerprint(number, include_bytes!("sync_log.rs"));
    number = fingerprint(number, include_bytes!("predictor.rs"));
    number = fingerprint(number, include_bytes!("traffic.rs"));
    fingerprint(number, include_bytes!("../../foretell-abi/src/lib.rs"))
};
/// The symbol by which the runtime library shows its [`CONTRACT`].
pub const CONTRACT_SYMBOL: &str = "foretell_contract";

/// FNV-1a.
const fn fingerprint(mut number: u64, text: &[u8]) -> u64 {
    let mut at = 0;
    while at < text.len() {
        number = (number ^ text[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    number
}

/// First word of the ring.
pub const MAGIC: u64 = u64::from_le_bytes(*b"foretell");

/// Names of environment variables that carry the recorder's wishes to the runtime. The runtime
/// removes them, so that the program sees the environment it would have seen.
pub mod environment {
    /// What to do: `record` or `sync-only`. Absent: nothing.
    pub const MODE: &str = "FORETELL_MODE";
    /// Number of the file descriptor of the ring. What follows the ring in its file are the turns to
    /// take before the base schedule begins, see [`crate::parse_turns`].
    pub const RING: &str = "FORETELL_RING";
    /// Number of the file descriptor of a socket: the process is no run, it makes runs by `fork`, see
    /// [`crate::server`].
    pub const SERVER: &str = "FORETELL_SERVER";
    /// The processor that a server and the runs that it makes keep to.
    pub const PROCESSOR: &str = "FORETELL_PROCESSOR";
    /// The executable that is meant; other programs it starts are left alone.
    pub const EXECUTABLE: &str = "FORETELL_EXECUTABLE";
    /// The base schedule: `os`, `round-robin:QUANTUM`, `random:SEED:MEAN`.
    pub const POLICY: &str = "FORETELL_POLICY";
    /// The run is ended as a livelock after so many scheduling points.
    pub const POINTS: &str = "FORETELL_POINTS";
    /// `1`: execution paths are recorded, see [`crate::predictor`].
    pub const PATH: &str = "FORETELL_PATH";
    /// How threads are switched: `futex` or `fiber`.
    pub const SWITCH: &str = "FORETELL_SWITCH";
    /// Directory for the logs of `sync-only`.
    pub const LOG: &str = "FORETELL_LOG";
    /// `1`: no expressions, also where the program was compiled for them.
    pub const CONCRETE: &str = "FORETELL_CONCRETE";
    /// A log of `sync-only` whose order `record` shall follow.
    pub const REPLAY: &str = "FORETELL_REPLAY";
    /// A file to which what clients do is appended as it is seen, see [`crate::traffic::Seen`].
    pub const WATCH_CLIENTS: &str = "FORETELL_WATCH_CLIENTS";
    /// A script of what the clients do ([`crate::traffic::Script`]): there are no others.
    pub const CLIENTS: &str = "FORETELL_CLIENTS";
    /// The `LD_PRELOAD` that the user had set.
    pub const PRELOAD: &str = "FORETELL_PRELOAD";
    /// How the names of variables begin that have no meaning: they keep the environment's size.
    pub const FILLING: &str = "FORETELL_FILLING_";
}

/// Bytes of a chunk. The whole ring is kept small enough to stay in the processor's caches.
pub const CHUNK_BYTES: usize = 1 << 19;
/// Chunks in the ring.
pub const CHUNKS: usize = 8;
/// The longest text that a record carries; longer ones are cut.
pub const MAX_TEXT: usize = 4096;
/// The longest record, in bytes.
pub const MAX_RECORD: usize = 3 * (MAX_TEXT + 8) + 64;
/// Bytes that the header takes, a multiple of the page size.
pub const HEADER_BYTES: usize = 8192;
/// Bytes of the whole mapping.
pub const RING_BYTES: usize = HEADER_BYTES + CHUNKS * CHUNK_BYTES;
/// Longest message of the runtime, in bytes.
pub const MESSAGE_BYTES: usize = 4096;

/// In [`Header::attached`]: a program writes.
pub const ATTACHED: u32 = 1;
/// In [`Header::attached`]: a library of another build found itself in the program.
pub const OTHER_BUILD: u32 = 2;

/// The begin of the shared memory. The first three members are those of every version.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`ATTACHED`] once a process writes here; a second one (after `exec`) must not.
    pub attached: AtomicU32,
    /// [`CONTRACT`].
    pub contract: u64,
    /// Process id of the writer.
    pub writer: AtomicU32,
    /// Process id of the recorder: when it is gone, nobody makes room any more.
    pub recorder: AtomicU32,
    /// Chunks that were filled. The reader sleeps on it.
    pub produced: AtomicU32,
    /// Chunks that were read. The writer sleeps on it.
    pub consumed: AtomicU32,
    /// How the run ended, as [`End`].
    pub end: AtomicU32,
    /// Length of `message`.
    pub message_length: AtomicU32,
    /// Not 0: nothing was recorded any more after a signal handler that had interrupted the runtime
    /// left it by `longjmp`.
    pub left: AtomicU32,
    /// Grows as threads take turns; a hanging program's does not.
    pub turns: AtomicU64,
    /// `foretell_abi::Cursor`; in the writer's addresses.
    pub cursor: [AtomicU64; 3],
    /// Where the chunk begins that is being filled, in the writer's addresses; 0 while there is none.
    pub base: AtomicU64,
    /// Bytes of each full chunk that hold whole records.
    pub used: [AtomicU32; CHUNKS],
    /// Events up to the end of each chunk that is full.
    pub events: [AtomicU64; CHUNKS],
    /// Not 0 for a chunk that has records of a kind that [`Kind::is_notable`].
    pub notable: [AtomicU32; CHUNKS],
    /// Why the runtime ended the run, for people.
    pub message: [u8; MESSAGE_BYTES],
}

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
const _: () = assert!(size_of::<foretell_abi::Cursor>() == size_of::<[AtomicU64; 3]>());
const _: () = {
    use foretell_abi::record::*;
    assert!(Kind::DefineBinary as u64 == DEFINE_BINARY);
    assert!(Kind::DefineCast as u64 == DEFINE_CAST);
    assert!(Kind::DefineSelect as u64 == DEFINE_SELECT);
    assert!(Kind::DefineAddress as u64 == DEFINE_ADDRESS);
};

/// What the runtime says about the end of a run.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing: the program was killed, or runs `exec` or `_exit` behind our back.
    Unsaid = 0,
    /// The program exited.
    Exit = 1,
    /// No thread could run any more; the runtime ended the program.
    Deadlock = 2,
    /// The program did not do what the schedule says; the runtime ended it.
    Diverged = 3,
    /// The runtime could not go on (an operation it must refuse); it ended the program.
    Refused = 4,
    /// A fatal signal came.
    Crash = 5,
    /// More scheduling points than allowed; the runtime ended the program.
    Livelock = 6,
    /// The program is replaced by another one (`exec`).
    Replaced = 7,
    /// As `Livelock`, but a thread slept or was in a system call: nothing is known of it.
    Busy = 8,
}

impl End {
    /// From the number in the header.
    pub fn from_code(code: u32) -> Option<End> {
        Some(match code {
            0 => End::Unsaid,
            1 => End::Exit,
            2 => End::Deadlock,
            3 => End::Diverged,
            4 => End::Refused,
            5 => End::Crash,
            6 => End::Livelock,
            7 => End::Replaced,
            8 => End::Busy,
            _ => return None,
        })
    }
}

/// What the recording of a binary lacks whose C library is not recognised.
pub const UNKNOWN_LIBRARY: &str = "locks, conditions and joins, as the functions of the program's C library are not \
     recognised: all of its code is recorded, a lock is the atomic accesses that it is made of, and who waits is \
     seen by futexes; torn blocks and races are not looked for";

/// What the recording of a binary lacks whose mutexes or semaphores are left to its C library.
pub const REAL_MUTEXES: &str = "mutexes that are robust, or shared with other processes: torn blocks and races are not looked for";
/// See [`REAL_MUTEXES`].
pub const REAL_SEMAPHORES: &str =
    "semaphores that are shared with other processes: torn blocks and races are not looked for";

/// Sentences of which each means that some locks of the program are not seen.
pub const UNKNOWN_LOCKS: [&str; 3] = [UNKNOWN_LIBRARY, REAL_MUTEXES, REAL_SEMAPHORES];

/// What the recording of a binary lacks whose C library took for itself what the program had freed;
/// `foretell_trace::FREED_IN_USE` is the same sentence.
pub const FREED_IN_USE: &str = "which memory that the program had freed the C library has taken for itself: where the \
     recorded run itself uses freed memory is not looked for";

/// Status with which the runtime ends a program that cannot go on.
pub const STOPPED_STATUS: i32 = 86;

/// The words of a record after its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Those that are always there.
    pub words: &'static [&'static str],
    /// One that is there only with this bit in the detail.
    pub optional: Option<(u8, &'static str)>,
    /// Texts, which come last.
    pub texts: &'static [&'static str],
}

impl Layout {
    /// How many words the record has before its texts.
    pub const fn fixed(&self, detail: u8) -> usize {
        let more = match self.optional {
            Some((flag, _)) => detail & flag != 0,
            None => false,
        };
        1 + self.words.len() + more as usize
    }
}

/// One row for each kind: its number in records, in brackets the words after the first, after a plus one that is there only with
/// this bit in the detail, and then the texts. `a_and_b` is two numbers of 32 bits in one word, the first in the lower half.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal ($($word:ident),*)
        $(+ $optional:ident [$flag:path])? $($text:ident),*;)*) => {
        /// The kinds of records.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $name = $code,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Kind] = &[$(Kind::$name),*];

            /// From the number in a record.
            pub fn from_code(code: u8) -> Option<Kind> {
                match code {
                    $($code => Some(Kind::$name),)*
                    _ => None,
                }
            }

            /// The words after the first.
            #[inline]
            pub const fn layout(self) -> Layout {
                match self {
                    $(Kind::$name => Layout {
                        words: &[$(stringify!($word)),*],
                        optional: kinds!(@optional $($flag, $optional)?),
                        texts: &[$(stringify!($text)),*],
                    },)*
                }
            }
        }
    };
    (@optional) => { None };
    (@optional $flag:path, $name:ident) => { Some(($flag, stringify!($name))) };
}

kinds! {
    /// `address, value`, and more: the address's shadow; detail: [`access`].
    Read = 1 (address, value) + address_shadow [access::MORE];
    /// `address, value`, and more: the old value; concrete.
    Write = 2 (address, value) + old [access::MORE];
    /// `address, value`, and more, always: `shadow | address shadow << 32`.
    WriteShadow = 3 (address, value) + shadows [access::MORE];
    /// `address, old, new, shadow | address shadow << 32`.
    ReadModifyWrite = 4 (address, old, new, shadows);
    /// `object | flags << 32`, see [`lock`].
    Acquire = 5 (object_and_flags);
    /// As `Acquire`.
    AcquireFailed = 6 (object_and_flags);
    /// As `Acquire`.
    Release = 7 (object_and_flags);
    /// `condition | mutex << 32`.
    WaitBegin = 8 (condition_and_mutex);
    /// `condition | mutex << 32`; detail 1: timed out.
    WaitEnd = 9 (condition_and_mutex);
    /// `condition`.
    Signal = 10 (condition);
    /// `condition`.
    Broadcast = 11 (condition);
    /// `semaphore`.
    SemaphoreWait = 12 (semaphore);
    /// `semaphore`.
    SemaphoreWaitFailed = 13 (semaphore);
    /// `semaphore`.
    SemaphorePost = 14 (semaphore);
    /// `barrier`.
    BarrierArrive = 15 (barrier);
    /// `barrier`.
    BarrierLeave = 16 (barrier);
    /// No words; detail: memory order as in [`access`].
    Fence = 17 ();
    /// `0, shadow`; detail: outcome.
    Branch = 18 (zero, shadow);
    /// `shadow`; detail: bit 0 whether it held, bit 1 whether the expression is to be negated.
    Assert = 19 (shadow);
    /// `shadow, value`; detail: width. The expression had to have this value.
    Pin = 20 (shadow, value);
    /// Text.
    RegionBegin = 21 () name;
    /// No words.
    RegionEnd = 22 ();
    /// No words; the function is that of the place.
    Call = 23 ();
    /// No words.
    Return = 24 ();
    /// `address, size`.
    Alloc = 25 (address, size);
    /// `address`.
    Free = 26 (address);
    /// `value`, text: source.
    Input = 27 (value) source;
    /// No words.
    ThreadBegin = 28 ();
    /// No words.
    ThreadEnd = 29 ();
    /// `thread`.
    Fork = 30 (thread);
    /// `thread`.
    Join = 31 (thread);
    /// As `Acquire`.
    ReleaseFailed = 32 (object_and_flags);
    /// `channel, amount, content`.
    Send = 33 (channel, amount, content);
    /// `channel, amount`; detail: [`channel`].
    Receive = 34 (channel, amount);
    /// `channel`; detail: 1 if there was something, else 0.
    Poll = 35 (channel);
    /// `object`.
    Destroy = 36 (object);
    /// No words; detail: [`await_mark`]. A loop that waits.
    Await = 37 ();

    /// `thread`: the events that follow are this thread's.
    Turn = 64 (thread);
    /// `thread`, text: the creation path, eight bytes a step.
    DefineThread = 65 (thread) path;
    /// `object | kind << 32, address, initial count or parties`.
    DefineObject = 66 (object_and_kind, address, amount);
    /// `line | column << 32`, text: file, text: function. Place: the site's address.
    DefineSite = 67 (line_and_column) file, function;
    /// `left | right << 32`; detail: operator of `foretell-abi`; place: width in bits 0..8, from
    /// bit 8 the value of a concrete operand. With [`WIDE_OPERAND`] in the detail that value is a
    /// word of its own. Defines the next term, as do the two below and
    /// [`Kind::DefineAddress`].
    DefineBinary = 68 (operands) + value [WIDE_OPERAND];
    /// `shadow`; detail: operator; place: from | to << 8.
    DefineCast = 69 (shadow);
    /// `condition | then << 32, otherwise | condition value << 32, then value, otherwise value`;
    /// place: width.
    DefineSelect = 70 (condition_and_then, otherwise_and_condition_value, then_value, otherwise_value);
    /// `load address, first, end`, text: path of the file. An executable segment.
    DefineModule = 71 (load_address, first, end) file;
    /// `address, size`, text: name.
    DefineGlobal = 72 (address, size) name;
    /// `address`, text (bytes): what memory held before the first event.
    Image = 73 (address) bytes;
    /// `how often`, text: what the trace lacks; with the detail [`HELD_FIXED`], what was held at its
    /// recorded value.
    Gap = 74 (count) what;
    /// `signal, address`; place: program counter. The program is about to die of it.
    Crash = 75 (signal, address);
    /// No words; detail: bits of [`instrumented`]. An instrumented module was loaded.
    Instrumented = 76 ();
    /// No words: the first event at this program counter comes next.
    DefinePlace = 77 ();
    /// `index, base`: the address `base + extended(index) * scale`; detail: operator of
    /// `foretell-abi` that extends; place: width | scale << 8.
    DefineAddress = 78 (index, base);
    /// `address, size`: this memory is another one from now on: a new thread's stack and its
    /// thread-local variables.
    Renew = 79 (address, size);
    /// `outcome, branches predicted before`; place: the site. A branch that the predictor missed.
    Mispredicted = 80 (outcome, predicted_before);
    /// `thread, branches predicted since`. The thread takes no more branches.
    PathEnd = 81 (thread, predicted_since);
    /// `thread | flags << 32, number`, text; detail: [`outside::Cause`]; place: program counter or 0.
    Outside = 82 (thread_and_flags, number) text;
    /// `thread | task << 32`: the kernel's number of the thread.
    Task = 83 (thread_and_task);
    /// No words; detail 1: a function of the language's library is entered, which will return to the
    /// place; detail 0: the last of them is left.
    Library = 84 ();
    /// `size`, text: name, text: function, text: layout. Place: that of a `foretell_abi::Described`.
    DefineDescription = 85 (size) name, function, layout;
    /// `address`: what begins there is as described at the place.
    Describe = 86 (address);
    /// `thread`, text: what the program calls the thread.
    NameThread = 87 (thread) name;
}

impl Kind {
    /// Whether the record is an event of its thread.
    pub fn is_event(self) -> bool {
        (self as u8) < Kind::Turn as u8
    }

    /// Whether the record has a short form, see [`again`].
    pub fn can_be_short(self) -> bool {
        matches!(self, Kind::Read | Kind::Write | Kind::WriteShadow | Kind::Branch)
    }

    /// Whether the recorder outside wants to see the record at once, and not only who reads the
    /// trace: there are few of them.
    pub fn is_notable(self) -> bool {
        use Kind::*;
        matches!(
            self,
            DefineThread | DefineModule | DefinePlace | Gap | Crash | Instrumented | Outside | Task
        )
    }

    /// The word that traces and schedules have for an event with this detail; empty for what is
    /// none.
    pub fn keyword(self, detail: u8) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write | Kind::WriteShadow => "write",
            Kind::ReadModifyWrite => "rmw",
            Kind::Acquire => "acquire",
            Kind::AcquireFailed => "acquire-failed",
            Kind::Release => "release",
            Kind::ReleaseFailed => "release-failed",
            Kind::WaitBegin => "wait-begin",
            Kind::WaitEnd if detail & wait::TIMED_OUT != 0 => "wait-timeout",
            Kind::WaitEnd => "wait-end",
            Kind::Signal => "signal",
            Kind::Broadcast => "broadcast",
            Kind::SemaphoreWait => "sem-wait",
            Kind::SemaphoreWaitFailed => "sem-wait-failed",
            Kind::SemaphorePost => "sem-post",
            Kind::BarrierArrive => "barrier-arrive",
            Kind::BarrierLeave => "barrier-leave",
            Kind::Send => "send",
            Kind::Receive => "receive",
            Kind::Poll if detail == 1 => "poll",
            Kind::Poll => "poll-empty",
            Kind::Destroy => "destroy",
            Kind::Fence => "fence",
            Kind::Branch | Kind::Pin => "branch",
            Kind::Assert => "assert",
            Kind::RegionBegin => "region",
            Kind::RegionEnd => "region-end",
            Kind::Call => "call",
            Kind::Return => "return",
            Kind::Await if detail == await_mark::ROUND => "await",
            Kind::Await if detail == await_mark::TEST => "await-test",
            Kind::Await if detail == await_mark::FAILED => "await-failed",
            Kind::Await => "await-again",
            Kind::Alloc => "alloc",
            Kind::Free => "free",
            Kind::Input => "input",
            Kind::ThreadBegin => "begin",
            Kind::ThreadEnd => "end",
            Kind::Fork => "fork",
            Kind::Join => "join",
            _ => "",
        }
    }
}

/// A record's kind, its detail and how many words it has; `None` when the words do not begin with
/// a whole record. The kind of a short form only its table knows: it is told as [`Kind::Read`].
pub fn measure(words: &[u64]) -> Option<(Kind, u8, usize)> {
    let &head = words.first()?;
    if let Some(short) = again::Short::from_word(head) {
        return (short.words() <= words.len()).then_some((Kind::Read, 0, short.words()));
    }
    let (kind, detail) = (Kind::from_code(head as u8)?, (head >> 8) as u8);
    let layout = kind.layout();
    let mut length = layout.fixed(detail);
    for _ in layout.texts {
        let bytes = usize::try_from(*words.get(length)?).ok()?;
        length = length.checked_add(1 + bytes.div_ceil(8))?;
    }
    (length <= words.len()).then_some((kind, detail, length))
}

/// Whether the source file is one of the language's own library: Rust's was compiled in a folder of this
/// name, C++'s headers are in `include/c++` or `include/PLATFORM/c++`. What is done there belongs to the line
/// of the program that called it. (The compiler pass has the same rule.)
pub fn is_of_library(file: &str) -> bool {
    let in_headers = || file.split_once("/include/").is_some_and(|(_, rest)| rest.contains("c++/"));
    file.starts_with("/rustc/") || in_headers()
}

/// Whether other threads cannot tell when a step with this word happens: a turn need not end after
/// it, and a thread may take it after the end of its turn.
pub fn is_local(keyword: &str) -> bool {
    matches!(
        keyword,
        "branch"
            | "assert"
            | "region"
            | "region-end"
            | "call"
            | "return"
            | "alloc"
            | "begin"
            | "fence"
            | "input"
            | "await"
            | "await-test"
            | "await-failed"
            | "await-again"
    )
}

/// The detail of [`Kind::WaitEnd`].
pub mod wait {
    /// No signal ended it.
    pub const TIMED_OUT: u8 = 1;
    /// It had a time limit.
    pub const TIMED: u8 = 2;
}

/// The detail of [`Kind::SemaphoreWait`]: it would have failed rather than waited for ever.
pub const BY_TRY: u8 = 1;

/// In the address of an object that exists in the scheduler's model only: it belongs to the variable there, for
/// which threads wait.
pub mod of_variable {
    /// The mutex under which they look at it.
    pub const MUTEX: u64 = 1 << 63;
    /// The condition that it has changed.
    pub const CONDITION: u64 = 1 << 62;
    /// Either.
    pub const ANY: u64 = MUTEX | CONDITION;
}

/// Detail of [`Kind::Alloc`]: the memory is zero.
pub const ZEROED: u8 = 1;

/// The details of [`Kind::Await`].
pub mod await_mark {
    /// A round begins.
    pub const ROUND: u8 = 0;
    /// The branch right before it leaves the round, which with the other outcome goes round again.
    pub const TEST: u8 = 1;
    /// The branch right before it makes the loop go round again.
    pub const FAILED: u8 = 2;
    /// The round is over, and another one follows: nothing is left of it.
    pub const AGAIN: u8 = 3;
}

/// The detail of [`Kind::Instrumented`].
pub mod instrumented {
    /// What the module computes is told.
    pub const SYMBOLIC: u8 = 1;
    /// It is a binary that nobody compiled for recording.
    pub const MACHINE_CODE: u8 = 2;
}

/// The detail of a [`Kind::Gap`] record that tells of a restriction rather than of a gap.
pub const HELD_FIXED: u8 = 1;

/// In the detail of [`Kind::DefineBinary`], see there.
pub const WIDE_OPERAND: u8 = 1 << 7;

/// The detail of accesses: size in bits 0..4, memory order in bits 4..7 (0: plain, else as
/// `foretell_abi::Order`), and one flag.
pub mod access {
    /// One word more follows; which one, the kind tells.
    pub const MORE: u8 = 1 << 7;

    /// Packs size and order.
    pub fn detail(size: u8, order: u8) -> u8 {
        size | order << 4
    }

    /// The size in bytes.
    pub fn size(detail: u8) -> u8 {
        detail & 15
    }

    /// The order's number.
    pub fn order(detail: u8) -> u8 {
        detail >> 4 & 7
    }
}

/// The flags of lock steps.
pub mod lock {
    /// Held by any number of readers.
    pub const SHARED: u32 = 1;
    /// By an operation that fails rather than waits for ever.
    pub const BY_TRY: u32 = 2;
}

/// The detail of [`Kind::Receive`].
pub mod channel {
    /// More would have been taken.
    pub const DRAINED: u8 = 1;
    /// It would have failed rather than waited.
    pub const BY_TRY: u8 = 2;
}

/// The kinds of synchronisation objects.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A mutex that deadlocks on a second lock by its holder.
    Mutex = 0,
    /// A counting mutex.
    RecursiveMutex = 1,
    /// A mutex that refuses a second lock by its holder.
    ErrorCheckingMutex = 2,
    /// A reader-writer lock.
    ReaderWriterLock = 3,
    /// A condition variable.
    Condition = 4,
    /// A semaphore.
    Semaphore = 5,
    /// A barrier.
    Barrier = 6,
    /// A pipe, a socket or an eventfd.
    Queue = 7,
    /// A file, or a signal that is pending.
    State = 8,
    /// A signal with a handler.
    Interrupt = 9,
}

impl ObjectKind {
    /// From the number in a record.
    pub fn from_code(code: u32) -> Option<ObjectKind> {
        use ObjectKind::*;
        [
            Mutex,
            RecursiveMutex,
            ErrorCheckingMutex,
            ReaderWriterLock,
            Condition,
            Semaphore,
            Barrier,
            Queue,
            State,
            Interrupt,
        ]
        .into_iter()
        .find(|&kind| kind as u32 == code)
    }
}

/// Shadows with this bit name a built term by its number; those without name what the read with
/// index `shadow - 1` of the same thread returned. 0 is concrete.
pub const TERM_SHADOW: u32 = foretell_abi::record::TERM_SHADOW;

/// One turn of a schedule: the thread runs all its events with an index below `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Creation path.
    pub path: Vec<u32>,
    /// One past the index of its last event in this turn.
    pub until: u32,
    /// What events of the turn are to be, where that is known; by index.
    pub expected: Vec<Expected>,
}

impl Turn {
    /// A turn of which nothing more is known.
    pub fn new(path: Vec<u32>, until: u32) -> Self {
        Self { path, until, expected: Vec::new() }
    }
}

/// What an event of a schedule is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its index in its thread.
    pub index: u32,
    /// As [`Kind::keyword`]; [`ANY`] stands for every one.
    pub keyword: String,
    /// Line and column in the source; 0 where unknown.
    pub line: u32,
    /// As `line`.
    pub column: u32,
}

/// The word for any event.
pub const ANY: &str = "any";

/// Writes turns, one a line: `0.1 42` (the creation path, `-` for the main thread, and `until`),
/// each followed by a line ` 17 read 12 5` (index, word, line, column) for what is expected in it.
pub fn format_turns(turns: &[Turn]) -> String {
    let mut text = String::new();
    for turn in turns {
        text.push_str(&format!("{} {}\n", format_path(&turn.path), turn.until));
        for Expected { index, keyword, line, column } in &turn.expected {
            text.push_str(&format!(" {index} {keyword} {line} {column}\n"));
        }
    }
    text
}

/// A creation path for people and files: `-` for the main thread, else `0.1`.
pub fn format_path(path: &[u32]) -> String {
    if path.is_empty() {
        return "-".into();
    }
    path.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Says of a run in which no thread can run who waits for what: threads by their creation paths.
pub fn format_standstill<'a>(waits: impl IntoIterator<Item = (&'a [u32], String)>) -> String {
    let mut text = String::from("no thread can run");
    for (path, what) in waits {
        text.push_str(&format!("; thread {} waits for {what}", format_path(path)));
    }
    text
}

/// Reads what [`format_turns`] wrote. The error is the number of the offending line, from 1.
pub fn parse_turns(text: &str) -> Result<Vec<Turn>, usize> {
    let mut turns: Vec<Turn> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let understood = match line.strip_prefix(' ') {
            Some(words) => parse_expected(words)
                .zip(turns.last_mut())
                .map(|(expected, turn)| turn.expected.push(expected)),
            None => parse_turn(line).map(|turn| turns.push(turn)),
        };
        understood.ok_or(number + 1)?;
    }
    Ok(turns)
}

fn parse_turn(line: &str) -> Option<Turn> {
    let (path, until) = line.split_once(' ')?;
    let path = match path {
        "-" => Vec::new(),
        path => path.split('.').map(str::parse).collect::<Result<_, _>>().ok()?,
    };
    Some(Turn::new(path, until.parse().ok()?))
}

fn parse_expected(words: &str) -> Option<Expected> {
    let mut words = words.split(' ');
    let expected = Expected {
        index: words.next()?.parse().ok()?,
        keyword: words.next()?.to_owned(),
        line: words.next()?.parse().ok()?,
        column: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_its_layout_says() {
        for &kind in Kind::ALL {
            let layout = kind.layout();
            let flag = layout.optional.map_or(0, |(flag, _)| flag);
            for detail in [0, flag] {
                let mut words = vec![u64::from(kind as u8) | u64::from(detail) << 8];
                words.resize(layout.fixed(detail), 0);
                for length in 0..layout.texts.len() as u64 {
                    words.push(9 * length);
                    words.resize(words.len() + (9 * length).div_ceil(8) as usize, 0);
                }
                assert_eq!(measure(&words), Some((kind, detail, words.len())), "{kind:?}");
                assert_eq!(measure(&words[..words.len() - 1]), None, "{kind:?}");
            }
        }
    }

    #[test]
    fn the_library_is_known_by_its_folders() {
        for file in [
            "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/stl_tree.h",
            "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
            "/usr/lib/llvm-22/include/c++/v1/map",
            "/rustc/1234/library/std/src/thread/mod.rs",
        ] {
            assert!(is_of_library(file), "{file}");
        }
        for file in
            ["pool.cpp", "/home/me/include/map.h", "/home/me/c++/include/map.h", "c++/pool.cpp"]
        {
            assert!(!is_of_library(file), "{file}");
        }
    }

    #[test]
    fn turns_survive_their_text() {
        let expected = Expected { index: 5, keyword: "rmw".into(), line: 12, column: 0 };
        let turns = vec![
            Turn { expected: vec![expected], ..Turn::new(vec![], 7) },
            Turn::new(vec![0, 12], u32::MAX),
        ];
        assert_eq!(parse_turns(&format_turns(&turns)), Ok(turns));
        assert_eq!(parse_turns("- 1\n0.x 2\n"), Err(2));
        assert_eq!(parse_turns("-\n"), Err(1));
        assert_eq!(parse_turns(" 1 read 0 0\n- 2\n"), Err(1), "of no turn");
        assert_eq!(parse_turns("- 2\n 1 read 0\n"), Err(2));
    }

    #[test]
    fn events_are_told_from_definitions() {
        for code in 0..=u8::MAX {
            if let Some(kind) = Kind::from_code(code) {
                assert_eq!(kind.is_event(), code < 64);
                assert_eq!(kind as u8, code);
            }
        }
    }
}
