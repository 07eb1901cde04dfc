//! System calls that may block: the thread leaves the scheduler while it is in one, and what the
//! call gives is an input of the program.

use foretell_wire::{End, Kind, access};
use libc::{c_int, c_uint, c_void, off_t, size_t, ssize_t};

use super::time::input;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::sys;
use crate::thread::{Session, peek};

/// Runs `wait` outside the scheduler.
pub fn outside<R>(mut session: Session, wait: impl FnOnce() -> R) -> (Session, R) {
    session.point();
    scheduler::leave(session.me);
    let result = wait();
    // SAFETY: this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    scheduler::enter(session.me);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    (session, result)
}

/// Whether calls on the file never wait: plain files and directories.
pub fn is_prompt(file: c_int) -> bool {
    // SAFETY: `status` is writable; any number may be asked about.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let asked = sys::call(libc::SYS_fstat, [file as u64, (&raw mut status) as u64, 0, 0, 0, 0]);
        asked == 0 && matches!(status.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR)
    }
}

/// Runs the call outside unless the file is prompt.
fn on_file<R>(session: Session, file: c_int, wait: impl FnOnce() -> R) -> (Session, R) {
    if is_prompt(file) { (session, wait()) } else { outside(session, wait) }
}

/// Events for memory that was written by the system or a library.
pub fn written(session: &mut Session, address: u64, length: usize) {
    let place = session.place;
    let mut at = address;
    let end = address + length as u64;
    while at < end {
        let size = piece(at, end);
        // SAFETY: the memory was written just now.
        let value = unsafe { peek(at, size) };
        session.event_at(Kind::WriteShadow, access::detail(size, 0), place, [at, value, 0]);
        at += u64::from(size);
    }
}

/// The size of the next access when a range is taken apart: as large as alignment and rest allow.
pub fn piece(at: u64, end: u64) -> u8 {
    let left = end - at;
    for size in [8, 4, 2] {
        if at.is_multiple_of(size) && left >= size {
            return size as u8;
        }
    }
    1
}

/// Gives the program what it got in the run whose log is followed.
fn replayed(session: &mut Session, buffer: *mut c_void, count: size_t) -> Option<ssize_t> {
    let (result, bytes) = replay::input(session.me)?;
    let length = bytes.len().min(count);
    // SAFETY: the program's buffer has room for `count` bytes.
    unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), length) };
    written(session, buffer as u64, length);
    Some(result as ssize_t)
}

interpose! {
    fn read(file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::read(file, buffer, count);
        };
        // Plain files are read again: the log has only how much came.
        let plain = is_prompt(file);
        let logged = if plain { replay::input(session.me).map(|(result, _)| result) } else { None };
        if !plain && let Some(result) = replayed(&mut session, buffer, count) {
            input(&mut session, "read", result as u64);
            return result;
        }
        let (mut session, result) = on_file(session, file, || real!(read(
            file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t));
        if logged.is_some_and(|logged| logged != result as u64) {
            scheduler::stop(End::Diverged, "a file that the program reads is not what it was");
        }
        input(&mut session, "read", result as u64);
        written(&mut session, buffer as u64, result.max(0) as usize);
        result
    }

    fn pread(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t) -> ssize_t {
        let result = real!(pread(file: c_int, buffer: *mut c_void, count: size_t,
            offset: off_t) -> ssize_t);
        if let Some(mut session) = Session::begin() {
            input(&mut session, "pread", result as u64);
            written(&mut session, buffer as u64, result.max(0) as usize);
        }
        result
    }

    fn recv(socket: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
        let Some(session) = Session::begin() else {
            return real!(recv(socket: c_int, buffer: *mut c_void, count: size_t,
                flags: c_int) -> ssize_t);
        };
        let (mut session, result) = outside(session, || real!(recv(
            socket: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t));
        input(&mut session, "recv", result as u64);
        written(&mut session, buffer as u64, result.max(0) as usize);
        result
    }

    fn write(file: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
        match Session::begin() {
            None => real!(write(file: c_int, buffer: *const c_void, count: size_t) -> ssize_t),
            Some(session) => on_file(session, file, || real!(write(
                file: c_int, buffer: *const c_void, count: size_t) -> ssize_t)).1,
        }
    }

    fn getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::getrandom(buffer, count, flags);
        };
        if let Some(result) = replayed(&mut session, buffer, count) {
            input(&mut session, "getrandom", result as u64);
            return result;
        }
        let result = real!(getrandom(
            buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t);
        input(&mut session, "getrandom", result as u64);
        written(&mut session, buffer as u64, result.max(0) as usize);
        result
    }

    fn getpid() -> libc::pid_t {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::getpid();
        };
        let result = match replay::input(session.me) {
            Some((result, _)) => result as libc::pid_t,
            None => real!(getpid() -> libc::pid_t),
        };
        input(&mut session, "getpid", result as u64);
        result
    }
}

/// Wrappers for calls that only need to leave the scheduler: their result is an input.
macro_rules! leave_for {
    ($(fn $name:ident($($argument:ident : $type:ty),* $(,)?) -> $result:ty;)*) => {
        interpose! {$(
            fn $name($($argument: $type),*) -> $result {
                let Some(session) = Session::begin() else {
                    return real!($name($($argument: $type),*) -> $result);
                };
                let (mut session, result) =
                    outside(session, || real!($name($($argument: $type),*) -> $result));
                input(&mut session, stringify!($name), result as u64);
                result
            }
        )*}
    };
}

leave_for! {
    fn accept(socket: c_int, address: *mut c_void, length: *mut c_uint) -> c_int;
    fn accept4(socket: c_int, address: *mut c_void, length: *mut c_uint, flags: c_int) -> c_int;
    fn connect(socket: c_int, address: *const c_void, length: c_uint) -> c_int;
    fn send(socket: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t;
    fn sendmsg(socket: c_int, message: *const c_void, flags: c_int) -> ssize_t;
    fn recvmsg(socket: c_int, message: *mut c_void, flags: c_int) -> ssize_t;
    fn recvfrom(
        socket: c_int, buffer: *mut c_void, count: size_t, flags: c_int, address: *mut c_void,
        length: *mut c_uint,
    ) -> ssize_t;
    fn poll(files: *mut c_void, count: libc::nfds_t, limit: c_int) -> c_int;
    fn ppoll(
        files: *mut c_void, count: libc::nfds_t, limit: *const c_void, mask: *const c_void,
    ) -> c_int;
    fn select(
        count: c_int, reads: *mut c_void, writes: *mut c_void, errors: *mut c_void,
        limit: *mut c_void,
    ) -> c_int;
    fn pselect(
        count: c_int, reads: *mut c_void, writes: *mut c_void, errors: *mut c_void,
        limit: *const c_void, mask: *const c_void,
    ) -> c_int;
    fn epoll_wait(poll: c_int, events: *mut c_void, count: c_int, limit: c_int) -> c_int;
    fn wait(status: *mut c_int) -> libc::pid_t;
    fn waitpid(process: libc::pid_t, status: *mut c_int, options: c_int) -> libc::pid_t;
    fn sigwait(signals: *const c_void, signal: *mut c_int) -> c_int;
    fn sigwaitinfo(signals: *const c_void, information: *mut c_void) -> c_int;
    fn sigtimedwait(
        signals: *const c_void, information: *mut c_void, limit: *const c_void,
    ) -> c_int;
    fn sigsuspend(mask: *const c_void) -> c_int;
    fn pause() -> c_int;
    fn flock(file: c_int, operation: c_int) -> c_int;
    fn msgrcv(
        queue: c_int, message: *mut c_void, size: size_t, kind: libc::c_long, flags: c_int,
    ) -> ssize_t;
    fn readv(file: c_int, vectors: *const c_void, count: c_int) -> ssize_t;
    fn writev(file: c_int, vectors: *const c_void, count: c_int) -> ssize_t;
    fn system(command: *const libc::c_char) -> c_int;
    fn tcdrain(file: c_int) -> c_int;
}
