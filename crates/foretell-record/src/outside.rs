//! What a run depended on that the scheduler does not control (`foretell_wire::outside`), with
//! names in place of numbers, and as sentences.

use std::fmt;

use foretell_trace::Site;
use foretell_wire::outside::AWAITED;
pub use foretell_wire::outside::Cause;
use foretell_wire::record;

use crate::names;
use crate::syscalls;
use crate::words::text;

/// One cause, at one place, in one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// What it was.
    pub cause: Cause,
    /// The thread's creation path: `main`, else `0.1`; empty if it is about none.
    pub thread: String,
    /// The function or system call, the signal, or what else the cause is about; may be empty.
    pub subject: String,
    /// Where in the program, if that is known.
    pub site: Option<Site>,
    /// Nobody could run, and this could still have woken a thread.
    pub awaited: bool,
    /// How often.
    pub times: u64,
}

/// A `foretell_wire::Kind::Outside` as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Noted {
    pub cause: Cause,
    pub thread: u32,
    pub awaited: bool,
    pub number: u64,
    pub text: String,
    /// Program counter, or 0.
    pub place: u64,
}

impl Noted {
    /// About no thread.
    pub fn of_process(cause: Cause, number: u64, text: String) -> Noted {
        Noted { cause, thread: u32::MAX, awaited: false, number, text, place: 0 }
    }

    /// As the record says.
    pub fn of(detail: u8, place: u64, record: record::Outside<Vec<u8>>) -> Option<Noted> {
        let record::Outside { thread, flags, number, text: what } = record;
        let (cause, awaited) = (Cause::from_code(detail)?, flags & AWAITED != 0);
        Some(Noted { cause, thread, awaited, number, text: text(what), place })
    }

    /// With names.
    pub fn named(&self, thread: String, site: Option<Site>, times: u64) -> Outside {
        let subject = match self.cause {
            Cause::BlockedCall | Cause::StillInCall => syscalls::name(self.number),
            Cause::PassedCall if self.text.is_empty() => syscalls::name(self.number),
            Cause::Signal | Cause::Handler | Cause::Interruption => signal(self.number),
            Cause::Alarm => match self.number {
                0 => "ITIMER_REAL".into(),
                1 => "ITIMER_VIRTUAL".into(),
                _ => "ITIMER_PROF".into(),
            },
            Cause::Task | Cause::SizeLimit => self.number.to_string(),
            Cause::Foreign => match self.text.split_once('\t') {
                Some((name, file)) => format!("{} ({file})", names::function(name)),
                None => self.text.clone(),
            },
            Cause::Process if self.text.is_empty() => self.number.to_string(),
            _ => self.text.clone(),
        };
        Outside { cause: self.cause, thread, subject, site, awaited: self.awaited, times }
    }
}

/// A signal as people know it.
fn signal(number: u64) -> String {
    const NAMES: [&str; 32] = [
        "",
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    match NAMES.get(number as usize) {
        Some(name) if !name.is_empty() => (*name).into(),
        _ => format!("signal {number}"),
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outside { thread, subject, .. } = self;
        if self.awaited {
            f.write_str("no thread could run, and this could still have woken one: ")?;
        }
        match self.cause {
            Cause::BlockedCall => write!(
                f,
                "thread {thread} was blocked in {subject}, which is not controlled: the other \
                 threads went on without it"
            ),
            Cause::Spinning => write!(
                f,
                "thread {thread} ran for long without an event: the other threads went on beside it"
            ),
            Cause::PassedCall => write!(
                f,
                "{subject} in thread {thread} was made outside the scheduler: what it waits for and \
                 whom it wakes is not seen"
            ),
            Cause::Signal => write!(
                f,
                "{subject} arrived in thread {thread} from a timer or another process: when is not \
                 controlled"
            ),
            Cause::Handler => write!(f, "a handler of {subject} is installed"),
            Cause::Alarm => write!(f, "an interval timer ({subject}) is running"),
            Cause::Timer => f.write_str("a POSIX timer: when it fires is not controlled"),
            Cause::AsynchronousIo => {
                f.write_str("asynchronous input or output: when it is complete is not controlled")
            }
            Cause::Process if self.awaited => write!(f, "child process {subject} is alive"),
            Cause::Process => write!(f, "{subject} started a process that was not recorded"),
            Cause::SharedObject => write!(
                f,
                "{subject} is shared with other processes, and what they do with it is not seen"
            ),
            Cause::Task if self.awaited => {
                write!(f, "task {subject} of the process is not controlled")
            }
            Cause::Task => {
                write!(
                    f,
                    "a thread that was not created by pthread_create ({subject}) was not seen"
                )
            }
            Cause::Image => write!(
                f,
                "the program was replaced by {subject} (exec): nothing of what it did then was seen"
            ),
            Cause::AsynchronousCancellation => write!(
                f,
                "thread {thread} was cancelled asynchronously: that it ends anywhere but at a call \
                 was not tried"
            ),
            Cause::Library => write!(
                f,
                "{subject} synchronises the threads by its own means, which are not seen: nothing \
                 was predicted"
            ),
            Cause::StillInCall => {
                write!(f, "when the run was ended, thread {thread} was in {subject}")
            }
            Cause::SizeLimit => write!(
                f,
                "the recording reached its limit of {subject} bytes; what followed was not recorded"
            ),
            Cause::HeldOutcome => {
                write!(f, "how {subject} comes out")
            }
            Cause::Varying => write!(
                f,
                "what {subject} gives in thread {thread} differs from run to run and is not replayed"
            ),
            Cause::Interruption => write!(
                f,
                "thread {thread} sent {subject}: where it interrupts the thread that handles it is not varied"
            ),
            Cause::Assembler => {
                write!(f, "{subject} by inline assembly in thread {thread} is not seen")
            }
            Cause::Foreign => write!(
                f,
                "{subject} is not instrumented: what it reads and writes, and what it changes of the \
                 process, in thread {thread}, is not seen"
            ),
            Cause::MappedFile => write!(
                f,
                "a file that is mapped into memory is also accessed by {subject}: what is written in \
                 one way is not seen in the other"
            ),
            Cause::PrintedFile => write!(
                f,
                "thread {thread} reads a file that functions for output have written: other output is \
                 not followed there"
            ),
            Cause::BusyBesideSleepers => {
                write!(f, "thread {thread} was still busy when the scheduling points were used up")
            }
        }?;
        if let Some(site) = self.site.as_ref().filter(|site| site.line > 0) {
            write!(f, ", at {}:{}", site.file, site.line)?;
        }
        match self.times {
            0 | 1 => Ok(()),
            times => write!(f, " ({times} times)"),
        }
    }
}
