//! Starts programs under test.
//!
//! Between `fork` and `execve` a program under test gets its own signals, limits and addresses. `Command`
//! can do such things only by a real `fork`, which copies the page tables of all our memory: 5 ms with
//! 100 MiB, for each of hundreds of runs. So the child borrows our memory until it becomes the program
//! (`CLONE_VM | CLONE_VFORK`, as `posix_spawn` does), which takes 0.7 ms whatever our size is. It runs on
//! a stack of its own, calls nothing but system calls and `execvpe`, and no handler of ours runs in it.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use libc::{c_char, c_int, c_void};

use crate::descendants::Mark;

/// A program to start, and what is different for it.
#[derive(Debug)]
pub struct Launch<'c> {
    /// The program, its arguments and its variables; nothing else of the command counts.
    pub command: &'c Command,
    /// What the program is called in its own arguments, if that is not its path.
    pub called: Option<&'c OsStr>,
    /// Standard input, output and error; ours where absent.
    pub streams: &'c [Option<File>; 3],
    /// It is the leader of a process group of its own, and the whole group is killed with it.
    pub leads_group: bool,
    /// It is killed when the thread that started it ends.
    pub ends_with_us: bool,
    /// Its addresses are the same each time, where that is allowed.
    pub fixed_addresses: bool,
    /// What its descendants can be told by.
    pub mark: Mark,
    /// A file of ours that stays open in it.
    pub inherits: Option<c_int>,
    /// What signals do in it that do something else in us.
    pub signals: &'c [(c_int, libc::sigaction)],
    /// It is not run itself: it makes copies of itself by `fork`, see
    /// [`Owned::forked`](crate::process::Owned::forked).
    pub serves: bool,
}

/// Does something in a thread that lives as long as the process. A process that
/// [`ends_with_us`](Launch::ends_with_us) is killed when the thread that started it ends, and with it
/// every process that it makes for us.
pub fn in_lasting_thread<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    type Job = Box<dyn FnOnce() + Send>;
    static JOBS: Mutex<Option<Sender<Job>>> = Mutex::new(None);
    let (done, result) = channel();
    let job = move || {
        let _ = done.send(act()); // whoever asked waits
    };
    let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
    if jobs.is_none() {
        let (sender, receiver) = channel::<Job>();
        let thread = std::thread::Builder::new().name("launch".into());
        thread.spawn(move || receiver.into_iter().for_each(|job| job()))?;
        *jobs = Some(sender);
    }
    let gone = || io::Error::other("the thread that starts programs has ended");
    jobs.as_ref().ok_or_else(gone)?.send(Box::new(job)).map_err(|_| gone())?;
    drop(jobs);
    result.recv().map_err(|_| gone())?
}

/// The child's stack: it calls little.
const STACK: usize = 64 << 10;

impl Launch<'_> {
    /// Starts it; gives its number once it has become the program.
    pub(crate) fn start(&self) -> io::Result<i32> {
        let text = |text: &OsStr| CString::new(text.as_bytes());
        let file = text(self.command.get_program())?;
        let called = text(self.called.unwrap_or(self.command.get_program()))?;
        let arguments = self.command.get_args().map(text).collect::<Result<Vec<_>, _>>()?;
        let variables = self.variables();
        let variables = variables.iter().map(|text| CString::new(text.as_bytes()));
        let variables = variables.collect::<Result<Vec<_>, _>>()?;
        let pointers = |texts: &mut dyn Iterator<Item = &CString>| -> Vec<*const c_char> {
            texts.map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let streams = self.streams.each_ref().map(|file| file.as_ref().map(File::as_raw_fd));
        let mut child = Child {
            launch: self,
            file: file.as_ptr(),
            arguments: pointers(&mut std::iter::once(&called).chain(&arguments)),
            variables: pointers(&mut variables.iter()),
            streams,
            us: std::process::id() as i32,
            error: 0,
        };
        let mut stack: Vec<u128> = vec![0; STACK / size_of::<u128>()];
        // SAFETY: the child has its own stack, and everything that it reads lives until it has become
        // the program or ended: only then does `clone` return here. Signals are blocked meanwhile, so
        // that no handler runs in the child with our memory.
        let process = unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let top = stack.as_mut_ptr_range().end.cast::<c_void>();
            let process = libc::clone(become_program, top, flags, (&raw mut child).cast());
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            if process < 0 {
                return Err(error);
            }
            process
        };
        // SAFETY: the child wrote it before it ended.
        match unsafe { (&raw const child.error).read_volatile() } {
            0 => Ok(process),
            error => {
                // SAFETY: our own child.
                unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) };
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }

    /// Our variables with those that the command changes, `NAME=value`.
    fn variables(&self) -> Vec<OsString> {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => variables.insert(name.into(), value.into()),
                None => variables.remove(name),
            };
        }
        let joined = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            name
        };
        variables.into_iter().map(joined).collect()
    }
}

struct Child<'l> {
    launch: &'l Launch<'l>,
    file: *const c_char,
    arguments: Vec<*const c_char>,
    variables: Vec<*const c_char>,
    streams: [Option<c_int>; 3],
    us: i32,
    /// Why it did not become the program.
    error: c_int,
}

extern "C" fn become_program(child: *mut c_void) -> c_int {
    // SAFETY: see `start`: nobody else touches it while this runs.
    let child = unsafe { &mut *child.cast::<Child<'_>>() };
    child.error = child.run();
    127
}

impl Child<'_> {
    /// Does not return if all goes well; otherwise the number of the error.
    fn run(&self) -> c_int {
        let launch = self.launch;
        // SAFETY: plain system calls on what lives here.
        unsafe {
            self.reset_signals();
            if launch.leads_group && libc::setpgid(0, 0) != 0 {
                return errno();
            }
            for (number, stream) in self.streams.into_iter().enumerate() {
                if let Some(stream) = stream
                    && libc::dup2(stream, number as c_int) < 0
                {
                    return errno();
                }
            }
            if launch.fixed_addresses {
                // Where it is not allowed the program runs all the same.
                libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
            launch.mark.put_on();
            if launch.ends_with_us {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return errno();
                }
                // We may have died before the call.
                if libc::getppid() != self.us {
                    return libc::ESRCH;
                }
            }
            if let Some(file) = launch.inherits
                && libc::fcntl(file, libc::F_SETFD, 0) != 0
            {
                return errno();
            }
            libc::execvpe(self.file, self.arguments.as_ptr(), self.variables.as_ptr());
            errno()
        }
    }

    /// As in a program that a shell starts: what is handled by us has its default again, and nothing is
    /// blocked.
    unsafe fn reset_signals(&self) {
        // SAFETY: plain system calls on what lives here.
        unsafe {
            for (signal, action) in self.launch.signals {
                libc::sigaction(*signal, action, std::ptr::null_mut());
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            for signal in 1..=libc::SIGRTMAX() {
                let read = libc::sigaction(signal, std::ptr::null(), &mut action) == 0;
                let handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
                // Rust's library ignores SIGPIPE in us.
                if read && handled || signal == libc::SIGPIPE {
                    let mut default: libc::sigaction = std::mem::zeroed();
                    default.sa_sigaction = libc::SIG_DFL;
                    libc::sigaction(signal, &default, std::ptr::null_mut());
                }
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        }
    }
}

fn errno() -> c_int {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;
    use crate::process::Owned;

    fn launch<'c>(command: &'c Command, streams: &'c [Option<File>; 3]) -> Launch<'c> {
        Launch {
            command,
            called: None,
            streams,
            leads_group: true,
            ends_with_us: true,
            fixed_addresses: true,
            mark: Mark::new(),
            inherits: None,
            signals: &[],
            serves: false,
        }
    }

    #[test]
    fn a_program_gets_its_arguments_variables_and_streams() {
        let mut output = tempfile::tempfile().unwrap();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo $0 $1 $NAME; cut -d' ' -f5 /proc/$$/stat; exit 3",
            "zero",
            "a b",
        ]);
        command.env("NAME", "value").env_remove("HOME");
        let streams = [None, Some(output.try_clone().unwrap()), None];
        let mut process = Owned::launch(&launch(&command, &streams)).unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(3));
        let mut text = String::new();
        output.rewind().unwrap();
        output.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("zero a b value\n{}\n", process.id()));
    }

    #[test]
    fn one_that_is_not_there_is_an_error_and_no_process() {
        let command = Command::new("/nowhere/at-all");
        let error = Owned::launch(&launch(&command, &[None, None, None])).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn signals_are_not_inherited() {
        let mut command = Command::new("sh");
        // Nothing is blocked, and SIGPIPE ends it.
        command.args(["-c", "grep -q '^SigBlk:.0*$' /proc/self/status && kill -PIPE $$; exit 1"]);
        use std::os::unix::process::ExitStatusExt;
        let mut process = Owned::launch(&launch(&command, &[None, None, None])).unwrap();
        assert_eq!(process.wait().unwrap().signal(), Some(libc::SIGPIPE));
    }
}
