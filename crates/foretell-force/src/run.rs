//! One controlled run: the program under the scheduler, with its streams captured and its events
//! recorded.
//!
//! Every run gets the same arguments and the same standard input, and ends: by itself, by the time
//! limit, or by a budget of scheduling points (a livelock has no other end).

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foretell_guard::PrivateFolder;
use foretell_record::{
    Capture, Crash, Debugger, ExecutionPath, Outside, Policy, RecordError, RecordOptions, RunEnd,
    mended, record,
};
use foretell_trace::format::{self, ReadError};
use foretell_trace::schedule::Step;
use foretell_trace::{Op, Site, Trace};

use crate::program::Program;

/// So much of each stream and file is kept and compared.
const MOST_OUTPUT: u64 = 16 << 20;

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
    /// Where it died, if of a signal.
    pub crash: Option<Crash>,
    /// What it depended on that the scheduler does not control.
    pub outside: Vec<Outside>,
    /// How many steps of its schedule were taken.
    pub steps_taken: usize,
    /// Its events.
    pub trace: Trace,
    /// The branches that its threads took.
    pub path: ExecutionPath,
    /// What it wrote.
    pub written: Written,
    /// How long it took.
    pub time: Duration,
    /// So many runs were begun before it.
    pub before: usize,
}

impl Run {
    /// The place of the assertion that failed, if that ended the run.
    pub fn failed_assertion(&self) -> Option<Option<&Site>> {
        if self.end != RunEnd::Signal(libc::SIGABRT) {
            return None;
        }
        let failed = |event: &&foretell_trace::Event| matches!(event.op, Op::Assert(condition) if !condition.outcome);
        let event = self.trace.events.iter().rev().find(failed)?;
        Some(event.site.map(|site| &self.trace.sites[site.index()]))
    }

    /// How it ended, for people: `exit 0`, `signal 6 (SIGABRT) at bank.c:46`.
    pub fn ended(&self) -> String {
        match &self.end {
            RunEnd::Exit(status) => format!("exit {status}"),
            RunEnd::Signal(number) => {
                let site = match self.failed_assertion() {
                    Some(site) => site.cloned(),
                    None => self.crash.as_ref().map(|crash| crash.site.clone()),
                };
                let place = site.filter(|site| !site.file.is_empty());
                let place = place.map(|site| format!(" at {}:{}", site.file, site.line));
                format!("{}{}", signal_name(*number), place.unwrap_or_default())
            }
            RunEnd::Deadlock(who) => format!("deadlock: {who}"),
            RunEnd::Diverged(why) => {
                let why = self.trace.with_thread_names(&why.to_string());
                format!("left the schedule: {why}")
            }
            RunEnd::Refused(why) => format!("refused: {why}"),
            RunEnd::Hang => "ended by the time limit".into(),
            RunEnd::Stopped => "ended because foretell had to end".into(),
            RunEnd::Livelock(who) => format!("livelock: {who}"),
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
    /// What was recorded cannot be read.
    Trace(ReadError),
    /// A file of the run cannot be used.
    File(PathBuf, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Record(error) => error.fmt(f),
            RunError::Trace(error) => error.fmt(f),
            RunError::File(path, error) => write!(f, "{}: {error}", path.display()),
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
    runs: AtomicUsize,
    /// What the written files held before the first run.
    before: Vec<Option<Vec<u8>>>,
    /// Held by a run whose files others would overwrite.
    alone: Mutex<()>,
}

impl<'p> Runner<'p> {
    /// Readies a folder for what the runs leave.
    pub fn new(program: &'p Program) -> Result<Self, RunError> {
        let before = program.writes.iter().map(|path| content(path)).collect::<Result<_, _>>()?;
        let folder =
            PrivateFolder::new().map_err(|error| RunError::File(std::env::temp_dir(), error))?;
        Ok(Self { program, folder, runs: AtomicUsize::new(0), before, alone: Mutex::new(()) })
    }

    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// One run in gdb, on the user's terminal and without limits.
    pub fn debug(&self, steps: Vec<Step>, policy: Policy) -> Result<RunEnd, RunError> {
        let mut options =
            RecordOptions::new(&self.program.path, self.folder.path().join("gdb.ftrace"));
        options.arguments.clone_from(&self.program.arguments);
        options.policy = policy;
        options.steps = steps;
        options.debugger = Some(Debugger::default());
        record(&options).map(|outcome| outcome.end).map_err(RunError::Record)
    }

    /// One run: first the steps, then the policy.
    pub fn run(&self, steps: Vec<Step>, policy: Policy, limits: Limits) -> Result<Run, RunError> {
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
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let file = |what: &str| self.folder.path().join(format!("{number}.{what}"));
        let mut options = RecordOptions::new(&self.program.path, file("ftrace"));
        options.arguments.clone_from(&self.program.arguments);
        options.policy = policy;
        options.steps = steps;
        options.time_limit = Some(limits.time);
        options.path = true;
        options.point_limit = Some(limits.points);
        let stdin = self.program.stdin.clone().unwrap_or_else(|| "/dev/null".into());
        options.capture = Some(Capture { stdin, stdout: file("out"), stderr: file("err") });
        let started = Instant::now();
        let outcome = record(&options).map_err(RunError::Record)?;
        let time = started.elapsed();
        let mut trace = format::read_path(&options.output).map(mended).map_err(RunError::Trace)?;
        if let (Some(called), Some(word)) =
            (&self.program.called, trace.metadata.command.first_mut())
        {
            *word = called.to_string_lossy().into();
        }
        trace.name_threads_by_function();
        let written = Written {
            stdout: content(&file("out"))?.unwrap_or_default(),
            stderr: content(&file("err"))?.unwrap_or_default(),
            files: writes.iter().map(|path| content(path)).collect::<Result<_, _>>()?,
        };
        for what in ["ftrace", "out", "err"] {
            let _ = std::fs::remove_file(file(what)); // the folder goes away in the end
        }
        let mut crash = outcome.crash;
        if let Some(crash) = &mut crash {
            crash.site.file = below_here(&crash.site.file).into();
        }
        let end = match outcome.end {
            RunEnd::Deadlock(who) => RunEnd::Deadlock(trace.with_thread_names(&who)),
            RunEnd::Livelock(who) => RunEnd::Livelock(trace.with_thread_names(&who)),
            end => end,
        };
        Ok(Run {
            end,
            crash,
            outside: outcome.outside,
            steps_taken: outcome.steps_taken,
            trace,
            path: outcome.path,
            written,
            time,
            before: number,
        })
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
