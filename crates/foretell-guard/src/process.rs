//! Foreign processes with limits.
//!
//! What a solver or a planner prints is data from outside: it may be too much, or never end, or the
//! process may hang. Every process here is killed when its time is over, with all processes of its
//! group, and its output is read up to a limit.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::cleanup::Started;
use crate::{cleanup, stop};

/// A program under test, for which foretell waits. It is killed when foretell ends, and when the value
/// is dropped before it was waited for.
#[derive(Debug)]
pub struct Owned {
    child: Child,
    started: Started,
    /// It was waited for: its number may belong to another one.
    gone: bool,
}

impl Owned {
    /// Starts the command. `leads_group`: it is the leader of a group of its own, and the whole group
    /// is killed with it.
    pub fn start(command: &mut Command, leads_group: bool) -> io::Result<Self> {
        if leads_group {
            command.process_group(0);
        }
        let started = |child: &Child| Started { process: child.id() as i32, leads_group };
        let child = cleanup::start(|| command.spawn(), started)?;
        Ok(Self { started: started(&child), child, gone: false })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it (and not its group).
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.forget();
        Ok(status)
    }

    fn forget(&mut self) {
        self.gone = true;
        cleanup::forget_process(self.started.process);
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.forget();
        }
        Ok(status)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.gone {
            self.started.kill();
            let _ = self.wait();
        }
    }
}

/// A process that is killed when the value is dropped, when a signal ends us, and when its deadline
/// has passed. It is the leader of a group of its own, and the whole group is killed with it.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    state: Arc<Mutex<State>>,
    watchdog: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug, Default)]
struct State {
    deadline: Option<Instant>,
    /// The deadline passed and the process was killed.
    expired: bool,
    /// The process was waited for: its number may belong to another one.
    gone: bool,
}

impl Guarded {
    /// Starts the command.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0);
        let started = |child: &Child| Started { process: child.id() as i32, leads_group: true };
        let child = cleanup::start(|| command.spawn(), started)?;
        let state = Arc::new(Mutex::new(State::default()));
        let (group, watched) = (-(child.id() as i32), Arc::clone(&state));
        let (sender, ended) = channel::<()>();
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            while ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                let mut state = watched.lock().unwrap_or_else(PoisonError::into_inner);
                let late = state.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                if (late || stop::is_over()) && !state.gone {
                    state.expired = true;
                    // SAFETY: not waited for yet, so that the number is still its own.
                    unsafe { libc::kill(group, libc::SIGKILL) };
                }
            }
        })?;
        Ok(Self { child, state, watchdog: Some((sender, thread)) })
    }

    /// The process, to take its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// From now on it has so much time; `None` for no limit.
    pub fn allow(&self, time: Option<Duration>) {
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        self.state.lock().unwrap_or_else(PoisonError::into_inner).deadline = deadline;
    }

    /// Was it killed because its time was over?
    pub fn is_expired(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).expired
    }

    /// Waits for its end, and then kills what is left of its group.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let group = -(self.child.id() as i32);
        // The group keeps its number as long as its leader is not waited for.
        // SAFETY: the structure is only written to.
        unsafe {
            let mut information: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOWAIT;
            while libc::waitid(libc::P_PID, self.child.id(), &mut information, flags) != 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.gone {
            // SAFETY: as above.
            unsafe { libc::kill(group, libc::SIGKILL) };
            state.gone = true;
        }
        drop(state);
        let status = self.child.wait();
        cleanup::forget_process(self.child.id() as i32);
        status
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let gone = self.state.lock().unwrap_or_else(PoisonError::into_inner).gone;
        if !gone {
            // SAFETY: not waited for yet.
            unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
            let _ = self.wait();
        }
        if let Some((sender, thread)) = self.watchdog.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// What a process printed, and how it ended.
#[derive(Debug)]
pub struct Finished {
    /// Its standard output, cut at the limit.
    pub output: Vec<u8>,
    /// How it ended.
    pub status: ExitStatus,
    /// Why it was killed, if it was.
    pub killed: Option<Killed>,
}

/// Why a process was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// Its time was over, or ours.
    Time,
    /// It printed more than allowed.
    Output,
}

/// Runs a command to its end with nothing to read, and keeps what it prints. It is killed when it
/// takes longer than `time` or prints more than `most` bytes.
pub fn run(command: &mut Command, time: Option<Duration>, most: usize) -> io::Result<Finished> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = Guarded::start(command)?;
    process.allow(time);
    let mut output = Vec::new();
    let mut too_much = false;
    if let Some(stdout) = process.child().stdout.take() {
        let read = stdout.take(most as u64 + 1).read_to_end(&mut output);
        read?;
        too_much = output.len() > most;
        output.truncate(most);
    }
    if too_much {
        // SAFETY: not waited for yet.
        unsafe { libc::kill(-(process.child().id() as i32), libc::SIGKILL) };
    }
    let status = process.wait()?;
    let killed = match (process.is_expired(), too_much) {
        (true, _) => Some(Killed::Time),
        (false, true) => Some(Killed::Output),
        (false, false) => None,
    };
    Ok(Finished { output, status, killed })
}

/// Runs a command to its end, like [`Command::status`]. It is killed when foretell has to end.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    Guarded::start(command)?.wait()
}

/// Runs a command to its end and gives what it printed, like [`Command::output`]. It is killed when
/// foretell has to end.
pub fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Guarded::start(command)?;
    let errors = process.child().stderr.take();
    let errors = std::thread::Builder::new().name("errors".into()).spawn(move || {
        let mut bytes = Vec::new();
        errors.map_or(Ok(0), |mut errors| errors.read_to_end(&mut bytes)).map(|_| bytes)
    })?;
    let mut stdout = Vec::new();
    if let Some(mut stream) = process.child().stdout.take() {
        stream.read_to_end(&mut stdout)?;
    }
    let status = process.wait()?;
    let stderr = errors.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok(Output { status, stdout, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_ordinary_process_is_left_alone() {
        let finished = run(&mut shell("echo hello; exit 3"), None, 100).unwrap();
        assert_eq!(finished.output, b"hello\n");
        assert_eq!((finished.status.code(), finished.killed), (Some(3), None));
    }

    #[test]
    fn output_and_status_are_those_of_the_command() {
        let printed = output(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!((&*printed.stdout, &*printed.stderr), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(printed.status.code(), Some(3));
        assert_eq!(status(&mut shell("exit 4")).unwrap().code(), Some(4));
    }

    #[test]
    fn one_that_prints_for_ever_is_ended_by_the_limit_on_output() {
        let finished = run(&mut shell("while :; do echo y; done"), None, 1000).unwrap();
        assert_eq!((finished.output.len(), finished.killed), (1000, Some(Killed::Output)));
    }

    #[test]
    fn one_that_hangs_is_ended_with_its_children() {
        // The child of the shell keeps the pipe open: nothing ends before it, too, is killed.
        let time = Some(Duration::from_millis(100));
        let finished = run(&mut shell("sleep 1000 & sleep 1000"), time, 1000).unwrap();
        assert_eq!(finished.killed, Some(Killed::Time));
    }
}
