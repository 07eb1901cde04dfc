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
//! after it depend on the kind: the table in [`record`] has them, and makes their writers and readers. A text is a
//! word with its length in bytes and then the bytes, padded with zeros to whole words.
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
pub mod limits;
pub mod outside;
pub mod predictor;
pub mod record;
pub mod schedule;
pub mod server;
pub mod standing;
pub mod sync_log;
pub mod traffic;

pub use limits::MAX_TEXT;
pub use record::{
    BY_TRY, Kind, Layout, ObjectKind, TERM_SHADOW, WIDE_OPERAND, ZEROED, access, await_mark,
    channel, gap, instrumented, lock, measure, of_variable, wait,
};
pub use schedule::{ANY, Expected, Turn, format_path, format_turns, is_local, parse_turns};

/// The version of this contract. It stands where it always stood, so that libraries and recorders
/// of any age recognise each other; what else has changed, [`CONTRACT`] tells.
pub const VERSION: u32 = 3;
/// The version of records in files: a log has them word for word (`foretell-record`, module `log`).
/// To be increased whenever a record comes to mean something else, or a short form does; logs with
/// another number are refused.
pub const LOG_VERSION: u32 = 2;
/// A number made from the text of the contracts: both sides are built together, and a side of
/// another build that may understand something else is refused before it does harm.
pub const CONTRACT: u64 = {
    let mut number = fingerprint(0xcbf2_9ce4_8422_2325, include_bytes!("lib.rs"));
    number = fingerprint(number, include_bytes!("record.rs"));
    number = fingerprint(number, include_bytes!("record/details.rs"));
    number = fingerprint(number, include_bytes!("schedule.rs"));
    number = fingerprint(number, include_bytes!("standing.rs"));
    number = fingerprint(number, include_bytes!("again.rs"));
    number = fingerprint(number, include_bytes!("outside.rs"));
    number = fingerprint(number, include_bytes!("sync_log.rs"));
    number = fingerprint(number, include_bytes!("predictor.rs"));
    number = fingerprint(number, include_bytes!("traffic.rs"));
    number = fingerprint(number, include_bytes!("../../foretell-abi/src/summaries.rs"));
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
/// The longest record, in bytes.
pub const RECORD_BYTES: usize = 3 * (MAX_TEXT + 8) + 64;
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
    LeftSchedule = 3,
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
            3 => End::LeftSchedule,
            4 => End::Refused,
            5 => End::Crash,
            6 => End::Livelock,
            7 => End::Replaced,
            8 => End::Busy,
            _ => return None,
        })
    }
}

/// Status with which the runtime ends a program that cannot go on.
pub const STOPPED_STATUS: i32 = 86;

/// Whether the source file is one of the language's own library: Rust's was compiled in a folder of this
/// name, C++'s headers are in `include/c++` or `include/PLATFORM/c++`. What is done there belongs to the line
/// of the program that called it. (The compiler pass has the same rule.)
pub fn is_of_library(file: &str) -> bool {
    let in_headers = || file.split_once("/include/").is_some_and(|(_, rest)| rest.contains("c++/"));
    file.starts_with("/rustc/") || in_headers()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
