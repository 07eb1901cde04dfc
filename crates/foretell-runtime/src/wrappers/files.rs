//! Names of files: that one appears or goes away is seen by whoever looks it up.

use foretell_wire::outside::Cause;
use libc::{c_char, c_int, c_uint, c_void};

use crate::channels;
use crate::look;
use crate::outside;
use crate::real::{interpose, real};
use crate::sys;
use crate::thread::Session;

/// What a path names now: nothing, a FIFO whose opening may wait, or something else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Fifo,
    Something,
}

fn find(directory: c_int, path: *const c_char) -> Found {
    // SAFETY: `status` is writable, the path is the program's.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let at = [directory as u64, path as u64, (&raw mut status) as u64, 0, 0, 0];
        match sys::call(libc::SYS_newfstatat, at) {
            0 if status.st_mode & libc::S_IFMT == libc::S_IFIFO => Found::Fifo,
            0 => Found::Something,
            _ => Found::Nothing,
        }
    }
}

/// Files of `/proc` that say something else in every run.
const VARYING: [&[u8]; 15] = [
    b"diskstats",
    b"interrupts",
    b"io",
    b"loadavg",
    b"meminfo",
    b"net",
    b"sched",
    b"schedstat",
    b"smaps",
    b"stat",
    b"statm",
    b"status",
    b"task",
    b"uptime",
    b"vmstat",
];

/// Says it where the program opens one of them.
fn note_varying(session: &Session, path: *const c_char) {
    // SAFETY: the program's text; a null pointer is none.
    let path = match path.is_null() {
        true => return,
        false => unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes(),
    };
    let Some(rest) = path.strip_prefix(b"/proc/") else { return };
    let mut parts = rest.split(|&byte| byte == b'/');
    let first = parts.next().unwrap_or_default();
    let of_process = first == b"self"
        || first == b"thread-self"
        || !first.is_empty() && first.iter().all(u8::is_ascii_digit);
    let name = if of_process { parts.next().unwrap_or_default() } else { first };
    if VARYING.contains(&name) {
        let text = String::from_utf8_lossy(path);
        outside::note(session.me.number, Cause::Varying, 0, &text, session.place);
    }
}

/// Opens a file by `call`.
fn opened(directory: c_int, path: *const c_char, flags: c_int, call: impl Fn() -> c_int) -> c_int {
    let Some(mut session) = Session::begin() else { return call() };
    let look = look::take(&mut session);
    session.point();
    if let Some(file) = super::random::opened(&mut session, path, false) {
        return file;
    }
    note_varying(&session, path);
    let before = find(directory, path);
    if before == Found::Fifo && flags & libc::O_NONBLOCK == 0 {
        return super::blocking::outside(session, call).1; // it waits for the other end
    }
    let name = channels::name_of(directory, path);
    // With `O_EXCL` a look at what is there changes what others see.
    let look = look.filter(|_| flags & (libc::O_CREAT | libc::O_TRUNC) == 0);
    let result = look::made(&mut session, look, name, |result| result < 0, call);
    channels::descriptors::came(&mut session, result);
    if result >= 0 && flags & libc::O_CREAT != 0 && before == Found::Nothing {
        channels::renamed(&mut session, name);
    } else {
        channels::looked_up(&mut session, name, result >= 0);
        look::done(&mut session, look.filter(|_| name.is_some()), result.into());
    }
    if result >= 0 && flags & libc::O_TRUNC != 0 && before == Found::Something {
        channels::changed(&mut session, result);
    }
    session.point();
    result
}

/// Looks a name up by `call`, which gives 0 if it is there.
fn looked_up(directory: c_int, path: *const c_char, call: impl Fn() -> c_int) -> c_int {
    let Some(mut session) = Session::begin() else { return call() };
    let look = look::take(&mut session);
    session.point();
    let name = channels::name_of(directory, path);
    let result = look::made(&mut session, look, name, |_| true, call);
    channels::looked_up(&mut session, name, result == 0);
    look::done(&mut session, look.filter(|_| name.is_some()), result.into());
    session.point();
    result
}

/// Changes what the names stand for by `call`. If it can, the first one was there when it is `taken`.
fn renamed(names: &[*const c_char], taken: bool, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut session) = Session::begin() else { return call() };
    session.point();
    let names: Vec<Option<u32>> =
        names.iter().map(|&name| channels::name_of(libc::AT_FDCWD, name)).collect();
    let result = call();
    if result == 0 && taken {
        channels::looked_up(&mut session, names[0], true);
    }
    for name in names {
        match result {
            0 => channels::renamed(&mut session, name),
            _ => channels::looked_up(&mut session, name, false),
        }
    }
    session.point();
    result
}

macro_rules! opens {
    ($($name:ident, $at:ident;)*) => {
        interpose! {$(
            fn $name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
                opened(libc::AT_FDCWD, path, flags,
                    || real!($name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int))
            }

            fn $at(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
                opened(directory, path, flags, || real!($at(
                    directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int))
            }
        )*}
    };
}

opens! {
    open, openat;
    open64, openat64;
}

macro_rules! examines {
    ($($name:ident;)*) => {
        interpose! {$(
            fn $name(path: *const c_char, status: *mut c_void) -> c_int {
                looked_up(libc::AT_FDCWD, path,
                    || real!($name(path: *const c_char, status: *mut c_void) -> c_int))
            }
        )*}
    };
}

examines! {
    stat;
    stat64;
    lstat;
    lstat64;
}

/// Opens a stream by `call`.
fn opened_stream(
    path: *const c_char,
    mode: *const c_char,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let Some(mut session) = Session::begin() else { return call() };
    session.point();
    if let Some(file) = super::random::opened(&mut session, path, true) {
        drop(session); // libc allocates
        // SAFETY: our own file; the program's mode.
        return unsafe { libc::fdopen(file, mode) }.cast();
    }
    note_varying(&session, path);
    let before = find(libc::AT_FDCWD, path);
    let name = channels::name_of(libc::AT_FDCWD, path);
    drop(session); // as above
    let result = call();
    if let Some(mut session) = Session::begin() {
        if !result.is_null() && before == Found::Nothing {
            channels::renamed(&mut session, name);
        } else {
            channels::looked_up(&mut session, name, !result.is_null());
        }
        session.point();
    }
    result
}

macro_rules! streams {
    ($($name:ident;)*) => {
        interpose! {$(
            fn $name(path: *const c_char, mode: *const c_char) -> *mut c_void {
                opened_stream(path, mode,
                    || real!($name(path: *const c_char, mode: *const c_char) -> *mut c_void))
            }
        )*}
    };
}

streams! {
    fopen;
    fopen64;
}

interpose! {
    fn creat(path: *const c_char, mode: c_uint) -> c_int {
        opened(libc::AT_FDCWD, path, libc::O_CREAT | libc::O_TRUNC,
            || real!(creat(path: *const c_char, mode: c_uint) -> c_int))
    }

    fn access(path: *const c_char, mode: c_int) -> c_int {
        looked_up(libc::AT_FDCWD, path, || real!(access(path: *const c_char, mode: c_int) -> c_int))
    }

    fn faccessat(directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
        looked_up(directory, path, || real!(faccessat(
            directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int))
    }

    fn fstatat(directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int {
        looked_up(directory, path, || real!(fstatat(
            directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int))
    }

    fn rename(from: *const c_char, to: *const c_char) -> c_int {
        renamed(&[from, to], true, || real!(rename(from: *const c_char, to: *const c_char) -> c_int))
    }

    fn link(from: *const c_char, to: *const c_char) -> c_int {
        renamed(&[to], false, || real!(link(from: *const c_char, to: *const c_char) -> c_int))
    }

    fn symlink(from: *const c_char, to: *const c_char) -> c_int {
        renamed(&[to], false, || real!(symlink(from: *const c_char, to: *const c_char) -> c_int))
    }

    fn unlink(path: *const c_char) -> c_int {
        renamed(&[path], true, || real!(unlink(path: *const c_char) -> c_int))
    }

    fn remove(path: *const c_char) -> c_int {
        renamed(&[path], true, || real!(remove(path: *const c_char) -> c_int))
    }

    fn mkdir(path: *const c_char, mode: c_uint) -> c_int {
        renamed(&[path], false, || real!(mkdir(path: *const c_char, mode: c_uint) -> c_int))
    }

    fn rmdir(path: *const c_char) -> c_int {
        renamed(&[path], true, || real!(rmdir(path: *const c_char) -> c_int))
    }

    fn ftruncate(file: c_int, length: libc::off_t) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(ftruncate(file: c_int, length: libc::off_t) -> c_int);
        };
        session.point();
        let result = real!(ftruncate(file: c_int, length: libc::off_t) -> c_int);
        channels::changed(&mut session, file);
        session.point();
        result
    }

    fn fsync(file: c_int) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(fsync(file: c_int) -> c_int);
        };
        session.point();
        let result = real!(fsync(file: c_int) -> c_int);
        channels::changed(&mut session, file);
        session.point();
        result
    }

    fn fstat(file: c_int, status: *mut c_void) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(fstat(file: c_int, status: *mut c_void) -> c_int);
        };
        session.point();
        let result = real!(fstat(file: c_int, status: *mut c_void) -> c_int);
        channels::examined(&mut session, file);
        session.point();
        result
    }
}

/// Wrappers for calls that only give a descriptor.
macro_rules! gives_descriptor {
    ($(fn $name:ident($($argument:ident : $type:ty),*);)*) => {
        interpose! {$(
            fn $name($($argument: $type),*) -> c_int {
                let file = real!($name($($argument: $type),*) -> c_int);
                if let Some(mut session) = Session::begin() {
                    channels::descriptors::came(&mut session, file);
                }
                file
            }
        )*}
    };
}

gives_descriptor! {
    fn dup(file: c_int);
    fn epoll_create(size: c_int);
    fn epoll_create1(flags: c_int);
    fn memfd_create(name: *const c_char, flags: c_uint);
    fn socket(domain: c_int, kind: c_int, protocol: c_int);
    fn timerfd_create(clock: c_int, flags: c_int);
}

interpose! {
    fn eventfd(value: c_uint, flags: c_int) -> c_int {
        let file = real!(eventfd(value: c_uint, flags: c_int) -> c_int);
        if file >= 0 && let Some(mut session) = Session::begin() {
            channels::descriptors::came(&mut session, file);
            channels::made_event(file, flags & libc::EFD_SEMAPHORE != 0);
        }
        file
    }

    fn dup2(file: c_int, to: c_int) -> c_int {
        if let Some(mut session) = Session::begin() {
            channels::descriptors::changes(&mut session, to);
        }
        real!(dup2(file: c_int, to: c_int) -> c_int)
    }

    fn dup3(file: c_int, to: c_int, flags: c_int) -> c_int {
        if let Some(mut session) = Session::begin() {
            channels::descriptors::changes(&mut session, to);
        }
        real!(dup3(file: c_int, to: c_int, flags: c_int) -> c_int)
    }
}

/// Notes that a thread changes what belongs to the whole process, beside other threads.
pub fn changes_process(function: &str) {
    if let Some(session) = Session::begin()
        // SAFETY: the turn is ours.
        && !unsafe { crate::scheduler::scheduler() }.is_single()
    {
        outside::note(session.me.number, Cause::PassedCall, 0, function, session.place);
    }
}

interpose! {
    fn lseek(file: c_int, offset: libc::off_t, whence: c_int) -> libc::off_t {
        let call = || real!(lseek(file: c_int, offset: libc::off_t, whence: c_int) -> libc::off_t);
        let Some(mut session) = Session::begin() else { return call() };
        session.point();
        let result = call();
        channels::descriptors::moved(&mut session, file);
        session.point();
        result
    }

    fn chdir(path: *const c_char) -> c_int {
        changes_process("chdir");
        real!(chdir(path: *const c_char) -> c_int)
    }

    fn fchdir(file: c_int) -> c_int {
        changes_process("fchdir");
        real!(fchdir(file: c_int) -> c_int)
    }

    fn umask(mode: libc::mode_t) -> libc::mode_t {
        changes_process("umask");
        real!(umask(mode: libc::mode_t) -> libc::mode_t)
    }
}
