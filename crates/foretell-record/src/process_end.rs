//! The end of a child process that is left to be waited for.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The end of a process, which is left to be waited for.
pub struct ProcessEnd {
    process: i32,
    /// Ready when it has ended; absent on old kernels.
    file: Option<OwnedFd>,
}

impl ProcessEnd {
    /// That of a child that was not waited for.
    pub fn of(process: i32) -> Self {
        // SAFETY: a child that was not waited for; the file is ours.
        let file = unsafe {
            let file = libc::syscall(libc::SYS_pidfd_open, process, 0) as i32;
            (file >= 0).then(|| OwnedFd::from_raw_fd(file))
        };
        Self { process, file }
    }

    /// Whether it has ended.
    pub fn is_reached(&self) -> bool {
        has_ended(self.process)
    }

    /// Sleeps until then, at most so long.
    pub fn wait(&self, most: Duration) {
        let Some(file) = &self.file else { return std::thread::sleep(Duration::from_millis(1)) };
        let mut file = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, which lives here.
        unsafe { libc::poll(&mut file, 1, most.as_millis() as i32) };
    }
}

/// Whether a child that was not waited for has ended.
pub fn has_ended(process: i32) -> bool {
    // SAFETY: the structure is only written to.
    unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        match libc::waitid(libc::P_PID, process as u32, &mut information, flags) {
            0 => information.si_pid() != 0,
            // Nobody else waits for it: there is no such child.
            _ => io::Error::last_os_error().kind() != io::ErrorKind::Interrupted,
        }
    }
}
