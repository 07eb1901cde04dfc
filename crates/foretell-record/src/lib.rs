//! The recorder outside the program: runs it under the runtime and turns what it did into a trace.
//!
//! The program keeps its standard streams, its exit status and its signals. It shares a ring of
//! memory with us (crate `foretell-wire`) from which what it tells is taken while it runs, so that
//! whatever ends it costs nothing that had happened. That goes into a file as it is (a log, which
//! [`read`] converts) or is converted at once, see [`Form`].

mod account;
mod blocked;
mod clients;
mod convert;
mod debugger;
mod described;
mod emulator;
mod find;
mod forced;
mod layout;
pub mod limits;
mod log;
mod logger;
mod memory;
mod names;
mod output;
mod outside;
mod path;
mod process_end;
mod processor;
mod read;
mod recording;
mod ring;
mod server;
mod signals;
mod sink;
mod standstill;
mod symbols;
mod sync_only;
mod syscalls;
mod words;

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use foretell_trace::format::ReadError;
use foretell_trace::schedule::Step;

use crate::limits::SIZE_LIMIT;

pub use account::not_instrumented;
pub use blocked::{Awaited, Blocked, InSchedules, endless, standstill};
pub use clients::{Clients, LiveClients, Ready, Served, check_traffic};
pub use convert::Crash;
pub use debugger::Debugger;
pub use find::{build_id, program as find_program, runtime_library};
pub use forced::LeftSchedule;
pub use foretell_wire::limits::TABLE as PROGRAM_LIMITS;
pub use foretell_wire::standing::{Piece, Sentence};
pub use outside::{Cause, Outside};
pub use path::{BranchTaken, ExecutionPath, PathDifference};
pub use read::{convert, info, mended, read, read_log, read_opened};
pub use recording::{record, record_in_memory};
pub use server::ForkServer;
pub use sync_only::{SyncOutcome, record_sync_only};

/// The base schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// As the operating system runs it: time slices by the real clock.
    Os,
    /// Each thread in turn for so many of its events.
    RoundRobin {
        /// At least 1.
        quantum: u32,
    },
    /// As `RoundRobin`, but whoever took the last step of a schedule goes on first.
    GoesOn {
        /// At least 1.
        quantum: u32,
    },
    /// Switches at random; the seed decides all.
    Random {
        /// The seed.
        seed: u64,
        /// Events of a turn, on average.
        mean: u32,
    },
    /// By random priorities that change a few times; the seed decides all.
    Priorities {
        /// The seed.
        seed: u64,
        /// About so many events the run has.
        events: u32,
    },
}

impl Policy {
    /// What threads do once a schedule is done, unless the user says otherwise: the same each time.
    pub const AFTER: Policy = Policy::RoundRobin { quantum: QUANTUM };
}

/// Events of a turn where nobody says.
const QUANTUM: u32 = 20;

/// Events of a run where nobody says.
const RUN: u32 = 1_000;

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPolicy(String);

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is none of free, round-robin[:EVENTS], random[:SEED[:EVENTS]], \
             priorities[:SEED[:EVENTS]] (EVENTS above 0)",
            self.0
        )
    }
}

impl std::error::Error for NoPolicy {}

impl FromStr for Policy {
    type Err = NoPolicy;

    /// `free` (or `os`), `round-robin[:QUANTUM]`, `random[:SEED[:MEAN]]`, `priorities[:SEED[:EVENTS]]`.
    fn from_str(text: &str) -> Result<Self, NoPolicy> {
        let mut words = text.split(':');
        let kind = words.next();
        let mut number = |otherwise: u64| words.next().map_or(Ok(otherwise), str::parse::<u64>);
        let events = |number: u64| u32::try_from(number).ok().filter(|&events| events > 0);
        let policy = match kind {
            Some("free" | "os") => Some(Policy::Os),
            Some("round-robin") => number(QUANTUM.into())
                .ok()
                .and_then(events)
                .map(|quantum| Policy::RoundRobin { quantum }),
            Some("random") => match (number(0), number(QUANTUM.into())) {
                (Ok(seed), Ok(mean)) => events(mean).map(|mean| Policy::Random { seed, mean }),
                _ => None,
            },
            Some("priorities") => match (number(0), number(RUN.into())) {
                (Ok(seed), Ok(run)) => {
                    events(run).map(|events| Policy::Priorities { seed, events })
                }
                _ => None,
            },
            _ => None,
        };
        let whole = words.next().is_none();
        policy.filter(|_| whole).ok_or_else(|| NoPolicy(text.into()))
    }
}

impl fmt::Display for Policy {
    /// As [`foretell_wire::environment::POLICY`] wants it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Os => f.write_str("os"),
            Policy::RoundRobin { quantum } => write!(f, "round-robin:{quantum}"),
            Policy::GoesOn { quantum } => write!(f, "goes-on:{quantum}"),
            Policy::Random { seed, mean } => write!(f, "random:{seed}:{mean}"),
            Policy::Priorities { seed, events } => write!(f, "priorities:{seed}:{events}"),
        }
    }
}

/// How the turn goes from one thread to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Each thread runs on its own kernel thread.
    Futex,
    /// One kernel thread takes over the stacks of all, which makes switches about fifty times
    /// cheaper. For programs that do not look at kernel threads: the first signal handler or mask
    /// that the program sets ends the mode, as do a debugger and processors without `wrfsbase`.
    Fiber,
}

/// What becomes of a program whose recorder died. (A captured program always ends with its recorder.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRecorderDeath {
    /// It goes on without being recorded.
    Continue,
    /// It is killed.
    End,
}

/// The form of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What the runtime told, word for word: costs the least while the program runs. [`read`] reads
    /// it, and [`convert`] makes a trace of it.
    Log,
    /// A binary trace: smaller, and whoever reads traces can read it.
    Trace,
}

/// What to record and how.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The program, looked up as a shell does, and its arguments.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The file to write.
    pub output: PathBuf,
    /// Its form. A run with `steps` or `path` is converted at once, whatever this says: each of its
    /// events is looked at anyway.
    pub form: Form,
    /// The base schedule.
    pub policy: Policy,
    /// Steps to take, exactly, before the base schedule begins (a forced run). An event that is
    /// another one than the step's, or a step that cannot be taken, ends the run as
    /// [`RunEnd::LeftSchedule`]. Indices that a thread's steps leave out may be anything. What follows
    /// is the same each time if `policy` is: [`Policy::AFTER`] is the one to take.
    pub steps: Vec<Step>,
    /// A log of [`record_sync_only`] whose order and inputs the run shall follow.
    pub replay: Option<PathBuf>,
    /// The program was not compiled for foretell: QEMU runs it, with our plugin.
    pub binary: bool,
    /// With [`RecordOptions::binary`]: say what was computed from what, as far as that is followed.
    pub terms: bool,
    /// The runtime library; found by itself when absent.
    pub library: Option<PathBuf>,
    /// End the program when it has done nothing visible for so long.
    pub hang_limit: Option<Duration>,
    /// End the program when it has run for so long.
    pub time_limit: Option<Duration>,
    /// End the program when so many bytes were recorded.
    pub size_limit: Option<u64>,
    /// End the program when it has recorded so many events.
    pub event_limit: Option<u64>,
    /// End the program after so many scheduling points: a livelock has no other end.
    pub point_limit: Option<u64>,
    /// What becomes of the program if we die before it.
    pub on_recorder_death: OnRecorderDeath,
    /// Also record which branches are taken, [`RecordOutcome::path`].
    pub path: bool,
    /// How the turn goes from one thread to the next.
    pub switching: Switching,
    /// Leave expressions out, also where the program was compiled for them.
    pub concrete: bool,
    /// The program's standard output goes to our standard error.
    pub output_to_error: bool,
    /// Run the program under gdb, which stops after the last of `steps`. The run's end is then
    /// gdb's, unless the runtime ended the run.
    pub debugger: Option<Debugger>,
    /// Where its standard streams are; ours when absent.
    pub capture: Option<Capture>,
    /// Who talks to it, if it is a server.
    pub clients: Option<Clients>,
    /// The events so far, while the program runs, for whoever wants to show them.
    pub events: Arc<AtomicU64>,
}

/// Files in the place of the standard streams. A program that is run this way is not the user's
/// foreground: signals to us are not passed on to it, and it ends with us.
#[derive(Clone, Debug)]
pub struct Capture {
    /// What it reads.
    pub stdin: PathBuf,
    /// Empty.
    pub stdout: Arc<File>,
    /// Empty.
    pub stderr: Arc<File>,
}

impl Capture {
    fn streams(&self) -> Result<[Option<File>; 3], RecordError> {
        let error = |error| RecordError::Stream(self.stdin.clone(), error);
        Ok([
            Some(File::open(&self.stdin).map_err(error)?),
            Some(self.stdout.try_clone().map_err(RecordError::Memory)?),
            Some(self.stderr.try_clone().map_err(RecordError::Memory)?),
        ])
    }
}

impl RecordOptions {
    /// Records `program` into the trace `output`, as the operating system runs it, without limits.
    pub fn new(program: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            output: output.into(),
            form: Form::Trace,
            policy: Policy::Os,
            steps: Vec::new(),
            replay: None,
            binary: false,
            terms: false,
            library: None,
            hang_limit: None,
            time_limit: None,
            size_limit: Some(SIZE_LIMIT),
            event_limit: None,
            point_limit: None,
            on_recorder_death: OnRecorderDeath::Continue,
            path: false,
            switching: Switching::Futex,
            concrete: false,
            output_to_error: false,
            debugger: None,
            capture: None,
            clients: None,
            events: Arc::default(),
        }
    }
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The program exited with this status.
    Exit(i32),
    /// It died of this signal.
    Signal(i32),
    /// No thread could run any more.
    Deadlock(Vec<Blocked>),
    /// Threads could run but went on for more scheduling points than allowed: a livelock, or a long
    /// run.
    Livelock(Vec<Blocked>),
    /// It did not follow the schedule; where and how.
    LeftSchedule(Box<LeftSchedule>),
    /// The runtime could not go on; why.
    Refused(String),
    /// It did nothing for too long, or ran too long; we ended it.
    Hang,
    /// We were asked to end (by a signal) and ended it.
    Stopped,
}

/// What a recording gave.
#[derive(Clone, Debug)]
pub struct RecordOutcome {
    /// How the run ended.
    pub end: RunEnd,
    /// Where it died, if of a fatal signal that the runtime saw.
    pub crash: Option<Crash>,
    /// Events in the trace.
    pub events: u64,
    /// Threads in the trace.
    pub threads: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// Writes and conditions carry expressions.
    pub symbolic: bool,
    /// The program has instrumented modules; without any, only synchronisation was seen.
    pub instrumented: bool,
    /// What the trace lacks, also said in the trace. That uninstrumented code wrote what was read is
    /// found when records are converted: of a log, only the trace made of it says that.
    pub gaps: Vec<String>,
    /// What the run depended on that the scheduler does not control; each is also said among the
    /// gaps.
    pub outside: Vec<Outside>,
    /// What was held at its recorded value; see [`foretell_trace::Metadata::restrictions`].
    pub restrictions: Vec<String>,
    /// Events were lost because the trace could not be written; why. Also among the gaps.
    pub lost: Option<String>,
    /// How many of [`RecordOptions::steps`] were taken.
    pub steps_taken: usize,
    /// The branches of the program, if [`RecordOptions::path`] asked for them.
    pub path: ExecutionPath,
    /// What it took.
    pub times: Times,
    /// A fork server made the run.
    pub forked: bool,
    /// What came of its live clients, if it had some.
    pub served: Option<Served>,
}

/// What the parts of a run took, by the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Until the process was there.
    pub start: Duration,
    /// Until it had ended, and everything that it left behind.
    pub run: Duration,
    /// Its records to events, also while it ran.
    pub convert: Duration,
}

/// Why there is no trace.
#[derive(Debug)]
pub enum RecordError {
    /// There is no such program.
    NoProgram(PathBuf),
    /// The program cannot be run by QEMU; why.
    Emulator(PathBuf, String),
    /// The runtime library is not where it should be.
    NoLibrary,
    /// The runtime library, or one that the program brings with it, is of another build than we.
    OtherBuild(PathBuf),
    /// A path that cannot be passed to the program in its environment.
    BadPath(PathBuf),
    /// The log to follow cannot be read; why.
    BadLog(PathBuf, String),
    /// The program could not be started.
    Start(PathBuf, io::Error),
    /// A file could not take the place of a standard stream.
    Stream(PathBuf, io::Error),
    /// The memory that is shared with the program could not be made.
    Memory(io::Error),
    /// The trace could not be written.
    Write(PathBuf, io::Error),
    /// The clients of a server could not be started, or followed.
    Clients(io::Error),
    /// The log that a trace was to be made of cannot be read.
    Read(ReadError),
    /// The program ran but the runtime was never in it.
    NotAttached {
        /// The program.
        program: PathBuf,
        /// How it ended.
        end: RunEnd,
        /// QEMU was to run it.
        binary: bool,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NoProgram(path) => {
                write!(f, "there is no program `{}`; give its path", path.display())
            }
            RecordError::Emulator(path, why) => {
                write!(f, "cannot run the binary `{}`: {why}", path.display())
            }
            RecordError::Clients(error) => {
                write!(f, "the clients of the program cannot be run: {error}")
            }
            RecordError::NoLibrary => write!(
                f,
                "libforetell_runtime.so is neither beside the foretell command nor in \
                 ../lib/foretell; install it there"
            ),
            RecordError::OtherBuild(path) => write!(
                f,
                "`{}` has a libforetell_runtime.so of another build than this foretell; install \
                 both together, and link the program again if it brings its own",
                path.display()
            ),
            RecordError::BadPath(path) => {
                write!(f, "the path `{}` has a colon, a space or is not UTF-8", path.display())
            }
            RecordError::BadLog(path, reason) => {
                write!(f, "cannot follow the log `{}`: {reason}", path.display())
            }
            RecordError::Start(path, error) => {
                write!(f, "cannot start `{}`: {error}", path.display())
            }
            RecordError::Stream(path, error) => {
                write!(f, "cannot open `{}` for the program: {error}", path.display())
            }
            RecordError::Memory(error) => {
                write!(f, "cannot make shared memory: {error}; see `ulimit -a` for limits")
            }
            RecordError::Write(path, error) => {
                write!(f, "cannot write `{}`: {error}", path.display())
            }
            RecordError::Read(error) => error.fmt(f),
            RecordError::NotAttached { program, binary: true, .. } => write!(
                f,
                "QEMU did not run `{}` with the plugin; what it said stands above",
                program.display()
            ),
            RecordError::NotAttached { program, .. } => write!(
                f,
                "`{}` ran without the runtime: it is statically linked, set-user-id, or a script \
                 (record the program that the script starts)",
                program.display()
            ),
        }
    }
}

impl std::error::Error for RecordError {}
