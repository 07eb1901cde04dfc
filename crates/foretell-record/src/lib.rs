//! The recorder outside the program: runs it under the runtime and turns what it did into a trace.
//!
//! The program keeps its standard streams, its exit status and its signals. It shares a ring of
//! memory with us (crate `foretell-wire`) from which what it tells is taken while it runs, so that
//! whatever ends it costs nothing that had happened. That goes into a file as it is (a log, which
//! [`read`] converts) or is converted at once, see [`Form`].

mod account;
mod convert;
mod debugger;
mod find;
mod forced;
mod hash;
mod layout;
mod log;
mod logger;
mod memory;
mod output;
mod outside;
mod path;
mod read;
mod ring;
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
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use foretell_guard::descendants::{self, Mark};
use foretell_guard::launch::Launch;
use foretell_guard::process::Owned;
use foretell_guard::{Keep, Replacement};
use foretell_trace::format::ReadError;
use foretell_trace::schedule::Step;
use foretell_wire::{End, environment, format_turns};

pub use convert::Crash;
pub use debugger::Debugger;
pub use find::{build_id, program as find_program, runtime_library};
pub use forced::Divergence;
pub use outside::{Cause, Outside};
pub use path::{BranchTaken, ExecutionPath, PathDifference};
pub use read::{convert, info, mended, read, read_log, read_opened};
pub use sync_only::{SyncOutcome, record_sync_only};

use forced::Comparison;
use log::About;
use outside::Noted;
use ring::{DAMAGED, Ring};
use signals::{Requests, SignalsPassOn};
use sink::Sink;

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
    /// Switches at random; the seed decides all.
    Random {
        /// The seed.
        seed: u64,
        /// Events of a turn, on average.
        mean: u32,
    },
}

impl Policy {
    /// What threads do once a schedule is done, unless the user says otherwise: the same each time.
    pub const AFTER: Policy = Policy::RoundRobin { quantum: QUANTUM };
}

/// Events of a turn where nobody says.
const QUANTUM: u32 = 20;

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPolicy(String);

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is none of free, round-robin[:EVENTS], random[:SEED[:EVENTS]] (EVENTS above 0)",
            self.0
        )
    }
}

impl std::error::Error for NoPolicy {}

impl FromStr for Policy {
    type Err = NoPolicy;

    /// `free` (or `os`), `round-robin[:QUANTUM]`, `random[:SEED[:MEAN]]`.
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
            _ => None,
        };
        let whole = words.next().is_none();
        policy.filter(|_| whole).ok_or_else(|| NoPolicy(text.into()))
    }
}

impl fmt::Display for Policy {
    /// As [`environment::POLICY`] wants it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Os => f.write_str("os"),
            Policy::RoundRobin { quantum } => write!(f, "round-robin:{quantum}"),
            Policy::Random { seed, mean } => write!(f, "random:{seed}:{mean}"),
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
    /// [`RunEnd::Diverged`]. Indices that a thread's steps leave out may be anything. What follows
    /// is the same each time if `policy` is: [`Policy::AFTER`] is the one to take.
    pub steps: Vec<Step>,
    /// A log of [`record_sync_only`] whose order and inputs the run shall follow.
    pub replay: Option<PathBuf>,
    /// The runtime library; found by itself when absent.
    pub library: Option<PathBuf>,
    /// End the program when it has done nothing visible for so long.
    pub hang_limit: Option<Duration>,
    /// End the program when it has run for so long.
    pub time_limit: Option<Duration>,
    /// End the program when so many bytes were recorded.
    pub size_limit: Option<u64>,
    /// End the program after so many scheduling points: a livelock.
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
    /// The events so far, while the program runs, for whoever wants to show them.
    pub events: Arc<AtomicU64>,
}

/// Files in the place of the standard streams. A program that is run this way is not the user's
/// foreground: signals to us are not passed on to it, and it ends with us.
#[derive(Clone, Debug)]
pub struct Capture {
    /// What it reads.
    pub stdin: PathBuf,
    /// Made anew.
    pub stdout: PathBuf,
    /// Made anew.
    pub stderr: PathBuf,
}

impl Capture {
    fn streams(&self) -> Result<[Option<File>; 3], RecordError> {
        let stream = |path: &PathBuf, file: io::Result<File>| {
            file.map(Some).map_err(|error| RecordError::Stream(path.clone(), error))
        };
        Ok([
            stream(&self.stdin, File::open(&self.stdin))?,
            stream(&self.stdout, File::create(&self.stdout))?,
            stream(&self.stderr, File::create(&self.stderr))?,
        ])
    }
}

/// No recording is larger than this unless somebody asks for it: it could not be predicted from.
const SIZE_LIMIT: u64 = 4 << 30;

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
            library: None,
            hang_limit: None,
            time_limit: None,
            size_limit: Some(SIZE_LIMIT),
            point_limit: None,
            on_recorder_death: OnRecorderDeath::Continue,
            path: false,
            switching: Switching::Futex,
            concrete: false,
            output_to_error: false,
            debugger: None,
            capture: None,
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
    /// No thread could run any more; who waits for what.
    Deadlock(String),
    /// Threads could run but went on for more scheduling points than allowed; who and where.
    Livelock(String),
    /// It did not follow the schedule; where and how.
    Diverged(Box<Divergence>),
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
}

/// Why there is no trace.
#[derive(Debug)]
pub enum RecordError {
    /// There is no such program.
    NoProgram(PathBuf),
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
    /// The log that a trace was to be made of cannot be read.
    Read(ReadError),
    /// The program ran but the runtime was never in it.
    NotAttached {
        /// The program.
        program: PathBuf,
        /// How it ended.
        end: RunEnd,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NoProgram(path) => {
                write!(f, "there is no program `{}`; give its path", path.display())
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

/// Runs the program and records it.
///
/// The file appears under its name when it is whole. A program that fails is no error: see
/// [`RecordOutcome::end`].
pub fn record(options: &RecordOptions) -> Result<RecordOutcome, RecordError> {
    let program = find::program(&options.program)
        .ok_or_else(|| RecordError::NoProgram(options.program.clone()))?;
    let ring = Ring::new().map_err(RecordError::Memory)?;
    let write_error = |error| RecordError::Write(options.output.clone(), error);
    let partial = Replacement::new(&options.output, Keep::Mode).map_err(write_error)?;
    // Removed when the run is over: it never takes the place of anything.
    let turns = match options.steps.as_slice() {
        [] => None,
        steps => {
            let path = options.output.with_extension("turns");
            let turns = Replacement::new(&path, Keep::Mode).map_err(write_error)?;
            let text = format_turns(&forced::turns(steps));
            turns.file().write_all(text.as_bytes()).map_err(write_error)?;
            Some(turns)
        }
    };
    // The path of the executable is among what the kernel puts on the stack.
    let mut command = Command::new(&program);
    command.args(&options.arguments);
    prepare(&mut command, options.library.as_deref(), &program, "record")?;
    command
        .env(environment::RING, ring.file().to_string())
        .env(environment::POLICY, options.policy.to_string());
    if let Some(turns) = &turns {
        command.env(environment::TURNS, turns.path());
    }
    if options.path {
        command.env(environment::PATH, "1");
    }
    // A user can ask for fibers in the environment, too.
    if options.debugger.is_some() {
        command.env(environment::SWITCH, "futex");
    } else if options.switching == Switching::Fiber {
        command.env(environment::SWITCH, "fiber");
    }
    if options.concrete {
        command.env(environment::CONCRETE, "1");
    }
    if let Some(limit) = options.point_limit {
        command.env(environment::POINTS, limit.to_string());
    }
    if let Some(log) = &options.replay {
        sync_only::check_log(log)?;
        command.env(environment::REPLAY, log);
    }
    match &options.debugger {
        // gdb has an environment of its own.
        Some(debugger) => command = debugger.command(&program, &command),
        None => layout::fix(&mut command, &options.program, &program),
    }
    let streams = streams(options)?;
    let captured = options.capture.is_some();
    // Signals are taken before the program is there, so that none is lost in between.
    let requests = Requests::new(captured, options.debugger.is_some());
    let passing = options.capture.is_none().then(SignalsPassOn::begin);
    let mut signals = SignalsPassOn::before();
    signals.push((libc::SIGXFSZ, signals::survive_full_files()));
    let launch = Launch {
        command: &command,
        called: options.debugger.is_none().then_some(options.program.as_os_str()),
        streams: &streams,
        leads_group: captured,
        ends_with_us: captured || options.on_recorder_death == OnRecorderDeath::End,
        // Programs sort and hash by addresses.
        fixed_addresses: true,
        mark: Mark::new(),
        inherits: Some(ring.file()),
        signals: &signals,
    };
    let about = About {
        executable: program.clone(),
        build_id: find::build_id(&program),
        command: std::iter::once(options.program.to_string_lossy().into_owned())
            .chain(options.arguments.iter().map(|word| word.to_string_lossy().into_owned()))
            .collect(),
    };
    let form = match options.form {
        Form::Log if options.steps.is_empty() && !options.path => Form::Log,
        _ => Form::Trace,
    };
    let file = partial.file().try_clone().map_err(write_error)?;
    let mut sink = Sink::new(form, file, about).map_err(write_error)?;
    if !options.steps.is_empty() {
        sink.compare(Comparison::new(options.steps.clone()));
    }
    let (status, ended) = run(&launch, &program, (passing, requests), &ring, &mut sink, options)?;

    let (said, message) = ring.end();
    let replaced_by = message.clone();
    let message = sink.with_names(&message);
    let diverged = |message: Option<String>, over: bool| {
        sink.schedule().and_then(|schedule| schedule.divergence(message, over))
    };
    let unscheduled = |reason: String| {
        RunEnd::Diverged(Box::new(Divergence { step: None, expected: None, found: None, reason }))
    };
    let own_end = match (said, status.code(), status.signal()) {
        _ if matches!(ended, Some(Ended::Late(_) | Ended::TooLarge(_))) => RunEnd::Hang,
        _ if matches!(ended, Some(Ended::Asked)) => RunEnd::Stopped,
        (End::Busy, ..) => RunEnd::Hang,
        (End::Deadlock, ..) if options.replay.is_some() => {
            unscheduled(format!("the log cannot be followed: {message}"))
        }
        (End::Deadlock, ..) => RunEnd::Deadlock(message.clone()),
        (End::Livelock, ..) => RunEnd::Livelock(message.clone()),
        (End::Diverged, ..) => unscheduled(message.clone()),
        (End::Refused, ..) => RunEnd::Refused(message.clone()),
        (_, Some(code), _) => RunEnd::Exit(code),
        (_, None, Some(signal)) => RunEnd::Signal(signal),
        (_, None, None) => RunEnd::Exit(-1),
    };
    let over = matches!(own_end, RunEnd::Exit(_)) && options.debugger.is_none();
    let end = match diverged((said == End::Diverged && ended.is_none()).then_some(message), over) {
        Some(divergence) => RunEnd::Diverged(Box::new(divergence)),
        None => own_end,
    };
    if ring.is_refused() {
        return Err(RecordError::OtherBuild(program));
    }
    if ring.is_damaged() {
        sink.gap(DAMAGED);
    } else if !ring.is_attached() {
        return Err(RecordError::NotAttached { program, end });
    }
    if ring.is_left() {
        sink.gap(
            "everything after a signal handler that had interrupted the recording left it by longjmp",
        );
    }
    if said == End::Replaced && ended.is_none() {
        sink.account().outside(Noted::of_process(Cause::Image, 0, replaced_by));
    }
    match ended {
        Some(Ended::TooLarge(limit)) => {
            sink.account().outside(Noted::of_process(Cause::SizeLimit, limit, String::new()));
        }
        Some(Ended::Late(asleep)) => {
            sink.account().was_ended_waiting();
            standstill::note(asleep, sink.account());
            sink.gap("the run was ended by its time limit");
        }
        Some(Ended::Asked) | None => {}
    }
    match &end {
        RunEnd::Hang => {}
        RunEnd::Stopped => sink.gap("the recording was ended by a signal before the program ended"),
        RunEnd::Signal(signal) => sink.gap(&format!(
            "the run ended by signal {signal}: nothing is known of what would have followed"
        )),
        RunEnd::Deadlock(who) => {
            sink.gap(&format!("the run itself came to a stand: {who}"));
        }
        RunEnd::Livelock(who) => sink.gap(&format!("the run was ended: {who}")),
        RunEnd::Exit(_) | RunEnd::Diverged(_) | RunEnd::Refused(_) => {}
    }
    let steps_taken = sink.schedule().map_or(0, Comparison::taken);
    let (summary, path) = sink.finish().map_err(write_error)?;
    partial.complete_without_sync().map_err(write_error)?;
    Ok(RecordOutcome {
        end,
        crash: summary.crash,
        events: summary.events,
        threads: summary.threads,
        bytes: summary.bytes,
        symbolic: summary.symbolic,
        instrumented: summary.instrumented,
        gaps: summary.gaps,
        outside: summary.outside,
        restrictions: summary.restrictions,
        lost: summary.lost,
        steps_taken,
        path,
    })
}

/// Where the options want the program's standard streams.
fn streams(options: &RecordOptions) -> Result<[Option<File>; 3], RecordError> {
    if let Some(capture) = &options.capture {
        return capture.streams();
    }
    let mut streams = [None, None, None];
    if options.output_to_error {
        let error = io::stderr().as_fd().try_clone_to_owned().map_err(RecordError::Memory)?;
        streams[1] = Some(error.into());
    }
    Ok(streams)
}

/// Puts the runtime into the program's environment.
fn prepare(
    command: &mut Command,
    library: Option<&Path>,
    program: &Path,
    mode: &str,
) -> Result<(), RecordError> {
    let library = match library {
        Some(path) => path.to_owned(),
        None => runtime_library().ok_or(RecordError::NoLibrary)?,
    };
    if !find::is_of_this_build(&library) {
        return Err(RecordError::OtherBuild(library));
    }
    // The loader splits the list at both.
    if library.to_str().is_none_or(|path| path.contains([':', ' '])) {
        return Err(RecordError::BadPath(library));
    }
    let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let mut preload = library.into_os_string();
    if !before.is_empty() {
        preload.push(":");
        preload.push(&before);
    }
    command
        .env("LD_PRELOAD", preload)
        .env(environment::PRELOAD, before)
        .env(environment::MODE, mode)
        .env(environment::EXECUTABLE, program);
    Ok(())
}

/// Why we ended the program.
enum Ended {
    /// It did nothing for too long, or ran too long; what its threads were doing.
    Late(Vec<standstill::Asleep>),
    /// The recording has reached this many bytes.
    TooLarge(u64),
    /// Somebody asked us to end.
    Asked,
}

/// Runs the program to its end and takes what it records. Says why it was ended, if it was.
fn run(
    launch: &Launch<'_>,
    program: &Path,
    (mut passing, mut requests): (Option<SignalsPassOn>, Requests),
    ring: &Ring,
    sink: &mut Sink,
    options: &RecordOptions,
) -> Result<(ExitStatus, Option<Ended>), RecordError> {
    let started = options.debugger.as_ref().map_or(program, |debugger| &debugger.program);
    let start_error = |error| RecordError::Start(started.to_owned(), error);
    let (captured, mark) = (options.capture.is_some(), launch.mark);
    let mut child = Owned::launch(launch).map_err(start_error)?;
    let process = child.id() as i32;
    if let Some(passing) = &mut passing {
        passing.pass_to(process);
    }
    thread::scope(|scope| {
        let (sender, ended) = mpsc::channel();
        let waiting = thread::Builder::new().name("end".into()).spawn_scoped(scope, move || {
            wait_for_end(process);
            if captured {
                // SAFETY: the leader was not waited for, so that the number is still the group's.
                unsafe { libc::kill(-process, libc::SIGKILL) };
            }
            let status = child.wait();
            if captured {
                descendants::end_those_of(mark);
            }
            let _ = sender.send(status); // the receiver waits for it
            ring.wake_reader();
        });
        waiting.map_err(start_error)?; // the program has ended: its owner was dropped
        let begin = Instant::now();
        let mut moved = (ring.progress(), begin);
        let mut why = None;
        let too_large = |sink: &Sink| options.size_limit.is_some_and(|limit| sink.bytes() > limit);
        let late = || options.time_limit.is_some_and(|limit| begin.elapsed() > limit);
        let status = loop {
            while let Some(chunk) = ring.full_chunk() {
                sink.chunk(&chunk);
                ring.release_chunk();
                options.events.store(sink.events(), Ordering::Relaxed);
                if why.is_none() && (late() || too_large(sink) || requests.must_end()) {
                    break; // a program that writes faster than we read is never done
                }
            }
            match ended.try_recv() {
                Ok(status) => break status.map_err(start_error)?,
                Err(_) => ring.wait(Duration::from_millis(20)),
            }
            descendants::reap();
            let now = Instant::now();
            let progress = ring.progress();
            if progress != moved.0 {
                moved = (progress, now);
            }
            let idle = options.hang_limit.is_some_and(|limit| now - moved.1 > limit);
            if why.is_none() && (idle || late() || too_large(sink) || requests.must_end()) {
                why = Some(match options.size_limit {
                    _ if requests.must_end() => Ended::Asked,
                    Some(limit) if too_large(sink) => Ended::TooLarge(limit),
                    _ => Ended::Late(standstill::asleep(process)),
                });
                // SAFETY: the child has not been waited for: its number is still its own.
                unsafe { libc::kill(process, libc::SIGKILL) };
            }
        };
        while let Some(chunk) = ring.full_chunk() {
            sink.chunk(&chunk);
            ring.release_chunk();
        }
        if let Some(rest) = ring.rest() {
            sink.rest(&rest);
        }
        if why.is_some() {
            // It did not come to end them itself.
            descendants::end_those_of(mark);
        }
        Ok((status, why))
    })
}

/// Waits until the child has ended, and leaves it to be waited for.
fn wait_for_end(process: i32) {
    // SAFETY: the structure is only written to.
    unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT;
        while libc::waitid(libc::P_PID, process as u32, &mut information, flags) != 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}
