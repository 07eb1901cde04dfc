//! Foreign processes with limits.
//!
//! What a solver or a planner prints is data from outside: it may be too much, or never end, or the
//! process may hang. Every process here is killed when its time is over, with all processes of its
//! group, and its output is read up to a limit.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::cleanup::Started;
use crate::descendants::{self, Mark};
use crate::launch::Launch;
use crate::{cleanup, stop};

/// A program under test, for which foretell waits. It is killed when foretell ends, and when the value
/// is dropped before it was waited for.
#[derive(Debug)]
pub struct Owned {
    started: Started,
    /// How it ended, once it was waited for: its number may then belong to another process.
    ended: Option<ExitStatus>,
}

impl Owned {
    /// Starts it.
    pub fn launch(launch: &Launch<'_>) -> io::Result<Self> {
        let Launch { leads_group, serves, .. } = *launch;
        let started = |&process: &i32| Started { process, leads_group, serves };
        let process = cleanup::start(|| launch.start(), started)?;
        Ok(Self { started: Started { process, leads_group, serves }, ended: None })
    }

    /// A child of ours that another child made for us (`CLONE_PARENT`); `fork` has it made and gives its
    /// number. It becomes the leader of a group of its own, and ends by itself when its parent has ended.
    pub fn forked(fork: impl FnOnce() -> io::Result<i32>) -> io::Result<Self> {
        let fork = || {
            let process = fork()?;
            // It does the same; whoever comes first. One that has ended already has done it.
            // SAFETY: our own child, which was not waited for.
            unsafe { libc::setpgid(process, process) };
            Ok(process)
        };
        let started = |&process: &i32| Started { process, leads_group: true, serves: false };
        let process = cleanup::start_elsewhere(fork, started)?;
        Ok(Self { started: started(&process), ended: None })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.started.process as u32
    }

    /// Kills it (and not its group).
    pub fn kill(&self) {
        if self.ended.is_none() {
            Started { leads_group: false, ..self.started }.kill();
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.look(0)? {
                return Ok(status);
            }
        }
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.look(libc::WNOHANG)
    }

    fn look(&mut self, flags: i32) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let mut status = 0;
        // SAFETY: the number lives here, and the child was not waited for.
        match unsafe { libc::waitpid(self.started.process, &mut status, flags) } {
            0 => Ok(None),
            process if process == self.started.process => {
                self.ended = Some(ExitStatus::from_raw(status));
                cleanup::forget_process(process);
                Ok(self.ended)
            }
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.started.kill();
            let _ = self.wait();
        }
    }
}

/// A process that is killed when the value is dropped, when a signal ends us, and when its deadline
/// has passed. It is the leader of a group of its own, and the whole group is killed with it, as are its
/// descendants that left the group.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    mark: Mark,
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
        let started = |child: &Child| {
            let process = child.id() as i32;
            Started { process, leads_group: true, serves: false }
        };
        let mark = Mark::new();
        let child = cleanup::start(|| mark.around(|| command.spawn()), started)?;
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
                    drop(state);
                    // One that left the group may hold the pipe that somebody reads.
                    descendants::end_those_of(mark);
                }
            }
        })?;
        Ok(Self { child, mark, state, watchdog: Some((sender, thread)) })
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
        descendants::end_those_of(self.mark);
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
