//! One controlled run: the program under the scheduler, with its streams captured and its events
//! recorded.
//!
//! Every run gets the same arguments and the same standard input, and ends: by itself, by the time
//! limit, or by a budget of scheduling points (a livelock has no other end). With a store
//! ([`crate::stored`]) a run that was made in an earlier session is not made again.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foretell_guard::PrivateFolder;
use foretell_record::{
    Blocked, Capture, Clients, Crash, Debugger, ExecutionPath, ForkServer, Form, LiveClients,
    Outside, Policy, RecordError, RecordOptions, RunEnd, Sentence, Served, Times, endless, record,
    record_in_memory, standstill,
};
use foretell_store::Store;
use foretell_trace::schedule::{CreationPath, Step};
use foretell_trace::waiting;
use foretell_trace::{Event, EventId, Op, Site, Trace};
use serde::{Deserialize, Serialize};

use crate::cut::cut_after_rounds;
use crate::limits::{MOST_CUT_EVENTS, MOST_CUTS, MOST_OUTPUT};
use crate::program::Program;
use crate::stored::StoredRuns;

/// What a run may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Ends the run after so long.
    pub time: Duration,
    /// Ends the run after so many scheduling points.
    pub points: u64,
}

/// What a run wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The files of [`Program::writes`]; absent where there is none.
    pub files: Vec<Option<Vec<u8>>>,
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it ended.
    pub end: RunEnd,
    /// Another exit status than 0 means that it failed ([`Program::is_test`]).
    pub is_test: bool,
    /// Where it died, if of a signal.
    pub crash: Option<Crash>,
    /// What it depended on that the scheduler does not control.
    pub outside: Vec<Outside>,
    /// How many steps of its schedule were taken.
    pub steps_taken: usize,
    /// Its events, without rounds of loops that wait.
    pub trace: Trace,
    /// What it would have been if a thread had not gone on after such a round.
    pub cuts: Vec<Trace>,
    /// The branches that its threads took.
    pub path: ExecutionPath,
    /// What it wrote.
    pub written: Written,
    /// How long it took.
    pub time: Duration,
    /// What its parts took.
    pub times: Times,
    /// So many runs were begun before it.
    pub before: usize,
}

impl Run {
    /// The assertion that failed, if that ended the run. A panic of Rust is one whatever came of it: the
    /// end of the thread may go unnoticed, or be noticed by whoever joins it.
    pub fn failed(&self) -> Option<EventId> {
        let aborted = self.end == RunEnd::Signal(libc::SIGABRT);
        let failed = |event: &Event| {
            matches!(event.op, Op::Assert(condition) if !condition.outcome)
                && (aborted || self.is_of_rust(event))
        };
        match aborted {
            true => self.trace.events.iter().rposition(failed),
            false => self.trace.events.iter().position(failed),
        }
        .map(EventId::from)
    }

    /// Whether the event's place is in a source file of Rust.
    fn is_of_rust(&self, event: &Event) -> bool {
        event.site.is_some_and(|site| self.trace.sites[site.index()].file.ends_with(".rs"))
    }

    /// The place of the assertion that failed, if that ended the run.
    pub fn failed_assertion(&self) -> Option<Option<&Site>> {
        let event = self.trace.event(self.failed()?);
        Some(event.site.map(|site| &self.trace.sites[site.index()]))
    }

    /// The sentence with the names of its threads.
    pub fn said(&self, sentence: &Sentence) -> String {
        sentence.said(|path| self.trace.name_of_thread(path))
    }

    /// The threads that could not go on, or did not come to an end.
    pub fn blocked(&self) -> Vec<BlockedThread> {
        let (RunEnd::Deadlock(threads) | RunEnd::Livelock(threads)) = &self.end else {
            return Vec::new();
        };
        let named = |path: &CreationPath| self.trace.name_of_thread(&path.0);
        threads.iter().map(|blocked| BlockedThread::of(blocked, named)).collect()
    }

    /// How it ended, for people: `exit 0`, `signal 6 (SIGABRT) at bank.c:46`.
    pub fn ended(&self) -> String {
        match &self.end {
            RunEnd::Exit(status) => match self.failed_assertion() {
                Some(Some(site)) => {
                    format!("exit {status}, panicked at {}:{}", site.file, site.line)
                }
                _ => format!("exit {status}"),
            },
            RunEnd::Signal(number) => {
                let site = match self.failed_assertion() {
                    Some(site) => site.cloned(),
                    None => self.crash.as_ref().map(|crash| crash.site.clone()),
                };
                let place = site.filter(|site| !site.file.is_empty());
                let place = place.map(|site| format!(" at {}:{}", site.file, site.line));
                format!("{}{}", signal_name(*number), place.unwrap_or_default())
            }
            RunEnd::Deadlock(threads) => format!("deadlock: {}", self.said(&standstill(threads))),
            RunEnd::LeftSchedule(why) => {
                format!("left the schedule: {}", self.said(&why.sentence()))
            }
            RunEnd::Refused(why) => format!("refused: {why}"),
            RunEnd::Hang => "ended by the time limit".into(),
            RunEnd::Stopped => "ended because foretell had to end".into(),
            RunEnd::Livelock(threads) => format!("livelock: {}", self.said(&endless(threads))),
        }
    }
}

/// A thread of a run that could not go on, or did not come to an end (the JSON contract's `blocked`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedThread {
    /// The thread.
    pub thread: String,
    /// The index of its next event.
    pub event: u32,
    /// What it waits for: a name of [`foretell_record::Awaited`].
    pub waits_for: String,
    /// What people call that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The thread that holds it, or whose end it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

impl BlockedThread {
    /// With these names of threads.
    pub fn of(blocked: &Blocked, named: impl Fn(&CreationPath) -> String) -> Self {
        Self {
            thread: named(&blocked.thread),
            event: blocked.event,
            waits_for: blocked.on.name().into(),
            name: Some(blocked.name.clone()).filter(|name| !name.is_empty()),
            held_by: blocked.holder.as_ref().map(named),
        }
    }
}

/// How a run ended (closed list, the JSON contract's `end`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// With exit status 0.
    Success,
    /// With another exit status.
    Failure,
    /// It died of a signal.
    Signal,
    /// No thread could go on.
    Deadlock,
    /// Threads went on for more scheduling points than allowed.
    Livelock,
    /// It did not follow its schedule.
    LeftSchedule,
    /// It could not be controlled.
    Refused,
    /// The time limit ended it.
    TimeLimit,
    /// foretell had to end.
    Stopped,
    /// There was no run: it could not be started.
    NotRun,
}

impl From<&RunEnd> for EndKind {
    fn from(end: &RunEnd) -> Self {
        match end {
            RunEnd::Exit(0) => EndKind::Success,
            RunEnd::Exit(_) => EndKind::Failure,
            RunEnd::Signal(_) => EndKind::Signal,
            RunEnd::Deadlock(_) => EndKind::Deadlock,
            RunEnd::Livelock(_) => EndKind::Livelock,
            RunEnd::LeftSchedule(_) => EndKind::LeftSchedule,
            RunEnd::Refused(_) => EndKind::Refused,
            RunEnd::Hang => EndKind::TimeLimit,
            RunEnd::Stopped => EndKind::Stopped,
        }
    }
}

/// A signal as people know it.
fn signal_name(number: i32) -> String {
    let names = [
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGTERM, "SIGTERM"),
    ];
    match names.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => format!("signal {number} ({name})"),
        None => format!("signal {number}"),
    }
}

/// Why there was no run.
#[derive(Debug)]
pub enum RunError {
    /// It could not be recorded.
    Record(RecordError),
    /// A file of the run cannot be used.
    File(PathBuf, io::Error),
    /// The time for runs was over before it began.
    Late,
    /// A server ended before it was ready for clients, or they did not end.
    NotServed {
        /// How its run ended.
        end: RunEnd,
        /// What it wrote to standard error.
        said: Vec<u8>,
        /// It was ready for clients.
        was_ready: bool,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Record(error) => error.fmt(f),
            RunError::File(path, error) => write!(f, "{}: {error}", path.display()),
            RunError::NotServed { end, said, was_ready } => {
                let told = match end {
                    RunEnd::Hang => "had not ended when its time was over (--run-limit)".into(),
                    RunEnd::Exit(status) => format!("ended with status {status}"),
                    end => format!("ended ({end:?})"),
                };
                let when = match was_ready {
                    true => "while its clients were still running",
                    false => "and was never ready for its clients (--ready says when it is)",
                };
                write!(f, "the server {told} {when}")?;
                match String::from_utf8_lossy(said).lines().last() {
                    Some(line) => write!(f, "; it said: {line}"),
                    None => Ok(()),
                }
            }
            RunError::Late => {
                f.write_str("the time limit ended before the run began (--time-limit)")
            }
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a program again and again.
#[derive(Debug)]
pub struct Runner<'p> {
    /// The program.
    pub program: &'p Program,
    folder: PrivateFolder,
    /// Makes the runs.
    pub server: ForkServer,
    runs: AtomicUsize,
    /// What the written files held before the first run.
    before: Vec<Option<Vec<u8>>>,
    /// Held by a run whose files others would overwrite.
    alone: Mutex<()>,
    /// Runs that were made before, by whoever was at it then.
    stored: Option<StoredRuns>,
    /// Runs that were made now.
    made: AtomicUsize,
    /// No run begins after this moment, and those that have begun end soon after it.
    deadline: Option<Instant>,
    /// No run has more events.
    most_events: u64,
}

/// A run that was begun has at least so long.
pub const SHORTEST_RUN: Duration = Duration::from_secs(1);

impl<'p> Runner<'p> {
    /// Readies a folder for what the runs leave.
    pub fn new(program: &'p Program) -> Result<Self, RunError> {
        let before = program.writes.iter().map(|path| content(path)).collect::<Result<_, _>>()?;
        let folder =
            PrivateFolder::new().map_err(|error| RunError::File(std::env::temp_dir(), error))?;
        Ok(Self {
            program,
            folder,
            server: ForkServer::default(),
            runs: AtomicUsize::new(0),
            before,
            alone: Mutex::new(()),
            stored: None,
            made: AtomicUsize::new(0),
            deadline: None,
            most_events: u64::MAX,
        })
    }

    /// Makes no run after this moment, whoever asks for it.
    pub fn until(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Ends each run that has recorded so many events.
    pub fn with_most_events(mut self, most: u64) -> Self {
        self.most_events = most;
        self
    }

    /// How long a run that begins now may take, if it may begin.
    fn time_for(&self, limits: Limits) -> Result<Limits, RunError> {
        let Some(deadline) = self.deadline else { return Ok(limits) };
        let left = deadline.checked_duration_since(Instant::now()).ok_or(RunError::Late)?;
        Ok(Limits { time: limits.time.min(left.max(SHORTEST_RUN)), ..limits })
    }

    /// Takes runs from a store where it has them, and keeps there those that are made.
    pub fn with_store(mut self, store: Option<Arc<Store>>) -> Self {
        self.stored = store.map(StoredRuns::new);
        self
    }

    /// How many runs there were, those that were made in an earlier session included.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// How many runs were made in this session.
    pub fn runs_made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// One run with live clients: gives what they did, and how those of them ended that did not end well.
    pub fn serve(&self, clients: LiveClients, limits: Limits) -> Result<Served, RunError> {
        let folder = self.folder.path();
        let file = || self.nameless().map_err(|error| RunError::File(folder.into(), error));
        let mut options = RecordOptions::new(&self.program.path, folder.join("live.ftrace"));
        options.arguments.clone_from(&self.program.arguments);
        options.form = Form::Log;
        options.time_limit = Some(limits.time);
        let stdin = self.program.stdin.clone().unwrap_or_else(|| "/dev/null".into());
        let (stdout, stderr) = (Arc::new(file()?), Arc::new(file()?));
        options.capture = Some(Capture { stdin, stdout, stderr: Arc::clone(&stderr) });
        options.clients = Some(Clients::Live(clients));
        let outcome = record(&options).map_err(RunError::Record)?;
        let end = outcome.end;
        let served = outcome.served.expect("it was to have clients");
        if served.was_ready && (served.is_over || end != RunEnd::Hang) {
            return Ok(served);
        }
        let said = self.written(&stderr)?;
        Err(RunError::NotServed { end, said, was_ready: served.was_ready })
    }

    /// One run in gdb, on the user's terminal and without limits.
    pub fn debug(&self, steps: Vec<Step>, policy: Policy) -> Result<RunEnd, RunError> {
        let mut options =
            RecordOptions::new(&self.program.path, self.folder.path().join("gdb.ftrace"));
        options.arguments.clone_from(&self.program.arguments);
        options.policy = policy;
        options.clients = self.program.traffic.clone().map(Clients::Played);
        options.steps = steps;
        options.binary = self.program.binary;
        options.terms = self.program.terms;
        options.debugger = Some(Debugger::default());
        record(&options).map(|outcome| outcome.end).map_err(RunError::Record)
    }

    /// One run: first the steps, then the policy.
    pub fn run(&self, steps: Vec<Step>, policy: Policy, limits: Limits) -> Result<Run, RunError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let stored = self.stored.as_ref();
        let named = stored.and_then(|runs| Some((runs, runs.key(&steps, &policy, limits)?)));
        let known = named.as_ref().and_then(|(runs, key)| runs.get(key, number));
        let is_test = self.program.is_test;
        if let Some(run) = known {
            return Ok(Run { is_test, ..run });
        }
        let limits = self.time_for(limits)?;
        self.made.fetch_add(1, Ordering::Relaxed);
        let run = self.make(number, steps, policy, limits)?;
        let run = match named {
            Some((runs, key)) => runs.put(&key, run),
            None => run,
        };
        Ok(Run { is_test, ..run })
    }

    fn make(
        &self,
        number: usize,
        steps: Vec<Step>,
        policy: Policy,
        limits: Limits,
    ) -> Result<Run, RunError> {
        let writes = &self.program.writes;
        let _alone = match writes.is_empty() {
            true => None,
            false => Some(self.alone.lock().unwrap_or_else(|poisoned| poisoned.into_inner())),
        };
        for (path, before) in writes.iter().zip(&self.before) {
            let restored = match before {
                Some(bytes) => std::fs::write(path, bytes),
                None if path.exists() => std::fs::remove_file(path),
                None => Ok(()),
            };
            restored.map_err(|error| RunError::File(path.clone(), error))?;
        }
        let file =
            || self.nameless().map_err(|error| RunError::File(self.folder.path().into(), error));
        let (stdout, stderr) = (Arc::new(file()?), Arc::new(file()?));
        let mut options = RecordOptions::new(&self.program.path, "");
        options.arguments.clone_from(&self.program.arguments);
        options.binary = self.program.binary;
        options.terms = self.program.terms;
        options.policy = policy;
        options.clients = self.program.traffic.clone().map(Clients::Played);
        options.steps = steps;
        options.time_limit = Some(limits.time);
        options.path = true;
        options.replay = self.program.follows.clone().filter(|_| number == 0);
        options.point_limit = Some(limits.points);
        options.event_limit = Some(self.most_events);
        let stdin = self.program.stdin.clone().unwrap_or_else(|| "/dev/null".into());
        options.capture =
            Some(Capture { stdin, stdout: Arc::clone(&stdout), stderr: Arc::clone(&stderr) });
        let started = Instant::now();
        let (outcome, mut trace) =
            record_in_memory(&options, &self.server).map_err(RunError::Record)?;
        let time = started.elapsed();
        if let (Some(called), Some(word)) =
            (&self.program.called, trace.metadata.command.first_mut())
        {
            *word = called.to_string_lossy().into();
        }
        trace.name_threads_by_function();
        let most = MOST_CUT_EVENTS / trace.events.len().max(1);
        let cuts = cut_after_rounds(&trace, most.min(MOST_CUTS));
        let trace = waiting::without_rounds(trace);
        let written = Written {
            stdout: self.written(&stdout)?,
            stderr: self.written(&stderr)?,
            files: writes.iter().map(|path| content(path)).collect::<Result<_, _>>()?,
        };
        let mut crash = outcome.crash;
        if let Some(crash) = &mut crash {
            crash.site.file = below_here(&crash.site.file).into();
        }
        Ok(Run {
            end: outcome.end,
            is_test: self.program.is_test,
            crash,
            outside: outcome.outside,
            steps_taken: outcome.steps_taken,
            trace,
            cuts,
            path: outcome.path,
            written,
            time,
            times: outcome.times,
            before: number,
        })
    }
}

impl Runner<'_> {
    /// A file that no folder has: made and gone in no time, even a thousand times a second.
    fn nameless(&self) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true);
        let flags = libc::O_TMPFILE;
        options.custom_flags(flags).mode(0o600).open(self.folder.path()).or_else(|_| {
            // Not every file system can.
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.path().join(format!("{number}.output"));
            let file = options.custom_flags(0).create_new(true).open(&path)?;
            std::fs::remove_file(path)?;
            Ok(file)
        })
    }

    /// What a run wrote there.
    fn written(&self, mut file: &File) -> Result<Vec<u8>, RunError> {
        let mut bytes = Vec::new();
        let read = file.rewind().and_then(|()| file.take(MOST_OUTPUT).read_to_end(&mut bytes));
        read.map_err(|error| RunError::File(self.folder.path().into(), error))?;
        Ok(bytes)
    }
}

/// The file as the compiler was given it, where it lies below the working folder: the tables of the
/// debugger have whole paths only.
fn below_here(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    Path::new(file).strip_prefix(here).map_or(file.to_owned(), |path| path.display().to_string())
}

/// The begin of a file; `None` when there is none.
fn content(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MOST_OUTPUT).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::File(path.to_owned(), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_run_begins_when_the_time_is_over() {
        let program = Program::new("/bin/true", Vec::new());
        let limits = Limits { time: Duration::from_secs(30), points: 1 };
        let now = Instant::now();
        let runner = Runner::new(&program).expect("a folder").until(Some(now));
        let run = runner.run(Vec::new(), Policy::RoundRobin { quantum: 1 }, limits);
        assert!(matches!(run, Err(RunError::Late)), "{run:?}");
        assert_eq!(runner.runs_made(), 0);
        let soon = Runner { deadline: now.checked_add(Duration::from_secs(20)), ..runner };
        assert!(soon.time_for(limits).is_ok_and(|limits| limits.time <= Duration::from_secs(20)));
    }
}
