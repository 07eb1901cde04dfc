//! System calls that may block. What they give is an input of the program.
//!
//! Calls on pipes, sockets and terminals are made when the file is ready; until then the thread
//! waits under the scheduler, so that it goes on at the same point in every run if the program
//! itself makes the file ready. Around other calls the thread leaves the scheduler.

use foretell_wire::outside::Cause;
use foretell_wire::{End, Kind, access};
use libc::{c_int, c_uint, c_void, off_t, size_t, ssize_t};

use super::time::input;
use crate::channels;
use crate::clients;
use crate::hooks;
use crate::look;
use crate::outside;
use crate::real::{interpose, real};
use crate::recorder::head;
use crate::replay;
use crate::scheduler;
use crate::summaries;
use crate::sys;
use crate::thread::{Parked, Session, peek};

/// Runs `wait` outside the scheduler. A cancellation takes effect after it: in between, the thread
/// has no turn to run its clean-up handlers in.
pub fn outside<R>(mut session: Session, wait: impl FnOnce() -> R) -> (Session, R) {
    session.point();
    scheduler::leave(session.me);
    session.me.parked = Parked::Call;
    let result = super::threads::without_cancellation(wait);
    session.me.parked = Parked::No;
    // SAFETY: this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    scheduler::enter(session.me);
    let session = super::threads::cancellation_point(session);
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

/// Whether calls on the file fail rather than wait.
fn never_waits(file: c_int) -> bool {
    // SAFETY: any number may be asked about.
    let flags =
        unsafe { sys::call(libc::SYS_fcntl, [file as u64, libc::F_GETFL as u64, 0, 0, 0, 0]) };
    flags < 0 || flags & i64::from(libc::O_NONBLOCK) != 0
}

/// Waits until one of the files is ready, or until the deadline (virtual time). `Err`: the call is
/// to fail with this error.
fn await_files(
    mut session: Session,
    files: Vec<libc::pollfd>,
    deadline: Option<u64>,
) -> (Session, Result<bool, c_int>) {
    session.point();
    loop {
        if sys::poll(&mut files.clone(), 0) != 0 {
            return (session, Ok(true)); // or wrong in a way that the call itself will tell
        }
        if deadline.is_some_and(|at| at <= scheduler::now()) {
            return (session, Ok(false));
        }
        if scheduler::block_for_files(session.me, files.clone(), deadline) {
            continue;
        }
        if super::threads::is_cancelled(session.me) {
            return (super::threads::cancellation_point(session), Err(libc::EINTR));
        }
        if session.me.interrupted {
            return (session, Err(libc::EINTR));
        }
    }
}

/// Runs a call on the file when it is ready.
fn when_ready<R: From<i8>>(
    session: Session,
    file: c_int,
    events: i16,
    call: impl FnOnce() -> R,
) -> (Session, R) {
    when_ready_until(session, file, events, None, call)
}

/// Runs a call on the file when it is ready. At the deadline (virtual time) it fails instead.
pub fn when_ready_until<R: From<i8>>(
    session: Session,
    file: c_int,
    events: i16,
    deadline: Option<u64>,
    call: impl FnOnce() -> R,
) -> (Session, R) {
    if never_waits(file) {
        return (session, call());
    }
    let files = vec![libc::pollfd { fd: file, events, revents: 0 }];
    let (session, ready) = await_files(session, files, deadline);
    match ready {
        Ok(true) => (session, call()),
        Ok(false) => {
            super::fail(libc::ETIMEDOUT);
            (session, R::from(-1))
        }
        Err(error) => {
            super::fail(error);
            (session, R::from(-1))
        }
    }
}

/// Runs a call that sends the pieces, to an address where one is given. It may wait for room: outside
/// the scheduler if it may take more than one step. Then somebody may receive before it returns, so it
/// counts as sent before.
fn sending(
    mut session: Session,
    file: c_int,
    pieces: &[&[u8]],
    to: Option<&[u8]>,
    call: impl FnOnce() -> ssize_t,
) -> (Session, ssize_t) {
    let count: usize = pieces.iter().map(|piece| piece.len()).sum();
    clients::sends(file);
    channels::needs_readers(&mut session, file);
    if count <= libc::PIPE_BUF || never_waits(file) || is_prompt(file) {
        let (mut session, result) = when_ready(session, file, libc::POLLOUT, call);
        channels::sent(&mut session, file, pieces, result, to);
        clients::sent(&mut session, file, pieces, result);
        (session, result)
    } else {
        session.point();
        channels::sent(&mut session, file, pieces, count as ssize_t, to);
        let (mut session, result) = outside(session, call);
        clients::sent(&mut session, file, pieces, result);
        (session, result)
    }
}

/// The program's memory.
///
/// # Safety
/// As `write`.
unsafe fn bytes<'a>(buffer: *const c_void, count: size_t) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if buffer.is_null() || count == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(buffer.cast(), count) }
    }
}

/// Something was taken from a socket.
fn taken(session: &mut Session, socket: c_int, room: &[&[u8]], flags: c_int, result: ssize_t) {
    let asked: usize = room.iter().map(|piece| piece.len()).sum();
    let by_try = flags & libc::MSG_DONTWAIT != 0 || never_waits(socket);
    let keeps = flags & libc::MSG_PEEK != 0;
    if !keeps {
        clients::read(socket, room, result);
    }
    let asked = if flags & libc::MSG_WAITALL != 0 { result.max(0) as usize } else { asked };
    channels::received(session, socket, asked, &[], result, by_try, keeps);
}

/// Events for memory that was written by the system or a library.
pub fn written(session: &mut Session, address: u64, length: usize) {
    let place = session.place;
    let mut at = address;
    let end = address + length as u64;
    while at < end {
        let size = piece(end - at);
        // SAFETY: the memory was written just now.
        let value = unsafe { peek(at, size) };
        let head = head(Kind::Write, access::detail(size, 0), place);
        session.me.access::<false, 0>(head, at, value, []);
        at += u64::from(size);
    }
}

/// Events for the first bytes of these pieces of memory, which the system has written.
fn written_to(session: &mut Session, pieces: &[&[u8]], result: ssize_t) {
    let mut left = usize::try_from(result).unwrap_or(0);
    for piece in pieces {
        let length = piece.len().min(left);
        written(session, piece.as_ptr() as u64, length);
        left -= length;
    }
}

/// The size of the next access when a range is taken apart and so many bytes are left of it.
///
/// It does not depend on where the range lies: in another run, which may find the range elsewhere,
/// the same steps come.
pub fn piece(left: u64) -> u8 {
    [8, 4, 2].into_iter().find(|&size| left >= u64::from(size)).unwrap_or(1)
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
    fn read as read_from(file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::read(file, buffer, count);
        };
        let look = look::take(&mut session);
        if look.is_none() {
            channels::descriptors::used(&mut session, file);
        }
        // Plain files are read again: the log has only how much came.
        let plain = is_prompt(file);
        let logged = if plain { replay::input(session.me).map(|(result, _)| result) } else { None };
        if !plain && let Some(result) = replayed(&mut session, buffer, count) {
            input(&mut session, "read", result as u64);
            session.point();
            return result;
        }
        if !plain && super::random::is_source(file) {
            super::random::fill(&mut session, "read", buffer, count);
            return count as ssize_t;
        }
        let call = || real!(read(
            file: c_int, buffer: *mut c_void, count: size_t) -> ssize_t);
        let by_try = never_waits(file);
        // A loop that tries until something is there waits for it.
        let waits = by_try && !plain && look.is_some_and(|look| look.goes_round(-1));
        let (mut session, result) = match waits {
            true => {
                let files = vec![libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 }];
                let (session, _) = await_files(session, files, None);
                (session, call())
            }
            false => when_ready(session, file, libc::POLLIN, call),
        };
        let got = bytes(buffer, result.max(0) as usize);
        channels::received(&mut session, file, count, got, result, by_try, false);
        clients::read(file, &[got], result);
        look::done(&mut session, look.filter(|_| waits), result as i64);
        if logged.is_some_and(|logged| logged != result as u64) {
            let why = "a file that the program reads is not what it was";
            scheduler::stop(End::LeftSchedule, &why.into());
        }
        input(&mut session, "read", result as u64);
        written(&mut session, buffer as u64, result.max(0) as usize);
        session.point();
        result
    }

    fn pread64(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t) -> ssize_t {
        read_at(file, buffer, count, offset)
    }

    fn pread as read_at(file: c_int, buffer: *mut c_void, count: size_t, offset: off_t) -> ssize_t {
        let call = || real!(pread(file: c_int, buffer: *mut c_void, count: size_t,
            offset: off_t) -> ssize_t);
        let Some(mut session) = Session::begin() else { return call() };
        let look = look::take(&mut session);
        let content = channels::content_of(file);
        let result = look::made(&mut session, look, content, |result| result <= 0, || call() as i64);
        let result = result as ssize_t;
        channels::received(&mut session, file, count, &[], result, true, true);
        look::done(&mut session, look.filter(|_| content.is_some()), result as i64);
        input(&mut session, "pread", result as u64);
        written(&mut session, buffer as u64, result.max(0) as usize);
        session.point();
        result
    }

    fn pwrite as write_at(file: c_int, buffer: *const c_void, count: size_t, offset: off_t) -> ssize_t {
        let call = || real!(pwrite(file: c_int, buffer: *const c_void, count: size_t,
            offset: off_t) -> ssize_t);
        let Some(mut session) = Session::begin() else { return call() };
        session.point();
        let result = call();
        channels::changed(&mut session, file);
        input(&mut session, "pwrite", result as u64);
        session.point();
        result
    }

    fn pwrite64(file: c_int, buffer: *const c_void, count: size_t, offset: off_t) -> ssize_t {
        write_at(file, buffer, count, offset)
    }

    fn recv(socket: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
        let Some(session) = Session::begin() else {
            return real!(recv(socket: c_int, buffer: *mut c_void, count: size_t,
                flags: c_int) -> ssize_t);
        };
        let call = || real!(recv(
            socket: c_int, buffer: *mut c_void, count: size_t, flags: c_int) -> ssize_t);
        let (mut session, result) = receive(session, socket, flags, call);
        taken(&mut session, socket, &[bytes(buffer, count)], flags, result);
        input(&mut session, "recv", result as u64);
        written(&mut session, buffer as u64, result.max(0) as usize);
        session.point();
        result
    }

    fn write as write_to(file: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
        let Some(mut session) = Session::begin() else {
            return real!(write(file: c_int, buffer: *const c_void, count: size_t) -> ssize_t);
        };
        channels::descriptors::used(&mut session, file);
        let pieces = [bytes(buffer, count)];
        let (mut session, result) = sending(session, file, &pieces, None, || real!(write(
            file: c_int, buffer: *const c_void, count: size_t) -> ssize_t));
        input(&mut session, "write", result as u64);
        session.point();
        result
    }

    fn getrandom(buffer: *mut c_void, count: size_t, flags: c_uint) -> ssize_t {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::getrandom(buffer, count, flags);
        };
        if let Some(result) = replayed(&mut session, buffer, count) {
            input(&mut session, "getrandom", result as u64);
            session.point();
            return result;
        }
        super::random::fill(&mut session, "getrandom", buffer, count);
        count as ssize_t
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
        session.point();
        result
    }
}

/// Runs a call that takes from a socket.
fn receive(
    session: Session,
    socket: c_int,
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> (Session, ssize_t) {
    if flags & libc::MSG_DONTWAIT != 0 {
        return (session, call());
    }
    if flags & libc::MSG_WAITALL != 0 {
        return outside(session, call); // one look does not tell whether all is there
    }
    when_ready(session, socket, libc::POLLIN, call)
}

/// Wrappers for calls on a file: their result is an input.
macro_rules! wait_for {
    ($(fn $name:ident($file:ident : c_int $(, $argument:ident : $type:ty)* $(,)?) -> $result:ty
        : $session:ident, $call:ident => $run:expr;)*) => {
        interpose! {$(
            fn $name($file: c_int $(, $argument: $type)*) -> $result {
                let Some($session) = Session::begin() else {
                    return real!($name($file: c_int $(, $argument: $type)*) -> $result);
                };
                let $call = || real!($name($file: c_int $(, $argument: $type)*) -> $result);
                let (mut session, result) = $run;
                input(&mut session, stringify!($name), result as u64);
                session.point();
                result
            }
        )*}
    };
}

/// Runs a call that accepts a connection.
fn accepting(session: Session, socket: c_int, call: impl FnOnce() -> c_int) -> (Session, c_int) {
    let (mut session, result) = when_ready(session, socket, libc::POLLIN, call);
    channels::accepted(&mut session, socket, result, never_waits(socket));
    channels::descriptors::came(&mut session, result);
    clients::accepted(&mut session, socket, result);
    (session, result)
}

/// Runs a call that takes from a socket, and notes what it took.
fn taking(
    session: Session,
    socket: c_int,
    room: &[&[u8]],
    flags: c_int,
    call: impl FnOnce() -> ssize_t,
) -> (Session, ssize_t) {
    let (mut session, result) = receive(session, socket, flags, call);
    taken(&mut session, socket, room, flags, result);
    written_to(&mut session, room, result);
    (session, result)
}

/// The pieces of a message.
unsafe fn pieces_of<'a>(message: *const c_void) -> Vec<&'a [u8]> {
    if message.is_null() {
        return Vec::new();
    }
    // SAFETY: the program's message.
    unsafe {
        let message = &*message.cast::<libc::msghdr>();
        channels::pieces(message.msg_iov, message.msg_iovlen)
    }
}

/// How much room the pieces have.
fn room(pieces: &[&[u8]]) -> size_t {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// The address that a message goes to, if it has one.
unsafe fn address_in<'a>(message: *const c_void) -> Option<&'a [u8]> {
    if message.is_null() {
        return None;
    }
    // SAFETY: the program's message.
    unsafe {
        let message = &*message.cast::<libc::msghdr>();
        let length = message.msg_namelen as usize;
        (!message.msg_name.is_null() && length > 0).then(|| bytes(message.msg_name, length))
    }
}

/// What is sent to somebody who may act on it had to be what it was.
fn held_pieces(session: &mut Session, file: c_int, pieces: &[&[u8]]) {
    if !summaries::is_looked_at(file) {
        for piece in pieces {
            hooks::held(session, piece.as_ptr() as u64, piece.len() as u64);
        }
    }
}

wait_for! {
    fn accept(file: c_int, address: *mut c_void, length: *mut c_uint) -> c_int
        : session, call => accepting(session, file, call);
    fn accept4(file: c_int, address: *mut c_void, length: *mut c_uint, flags: c_int) -> c_int
        : session, call => accepting(session, file, call);
    fn readv(file: c_int, vectors: *const libc::iovec, count: c_int) -> ssize_t
        : session, call => {
            let (mut session, result) = when_ready(session, file, libc::POLLIN, call);
            let pieces = channels::pieces(vectors, count.max(0) as usize);
            let first = pieces.first().copied().unwrap_or_default();
            let waits = never_waits(file);
            channels::received(&mut session, file, room(&pieces), first, result, waits, false);
            clients::read(file, &pieces, result);
            written_to(&mut session, &pieces, result);
            (session, result)
        };
    fn recvmsg(file: c_int, message: *mut c_void, flags: c_int) -> ssize_t
        : session, call => taking(session, file, &pieces_of(message), flags, call);
    fn recvfrom(
        file: c_int, buffer: *mut c_void, count: size_t, flags: c_int, address: *mut c_void,
        length: *mut c_uint,
    ) -> ssize_t
        : session, call => taking(session, file, &[bytes(buffer, count)], flags, call);
    fn writev(file: c_int, vectors: *const libc::iovec, count: c_int) -> ssize_t
        : session, call => {
            let mut session = session;
            let pieces = channels::pieces(vectors, count.max(0) as usize);
            hooks::held(&mut session, vectors as u64, size_of_val(&pieces[..]) as u64);
            held_pieces(&mut session, file, &pieces);
            sending(session, file, &pieces, None, call)
        };
    fn send(file: c_int, buffer: *const c_void, count: size_t, flags: c_int) -> ssize_t
        : session, call => sending(session, file, &[bytes(buffer, count)], None, call);
    fn sendto(
        file: c_int, buffer: *const c_void, count: size_t, flags: c_int, address: *const c_void,
        length: c_uint,
    ) -> ssize_t
        : session, call => {
            let mut session = session;
            let to = (!address.is_null()).then(|| bytes(address, length as usize));
            to_name(&mut session, to);
            sending(session, file, &[bytes(buffer, count)], to, call)
        };
    fn sendmsg(file: c_int, message: *const c_void, flags: c_int) -> ssize_t
        : session, call => {
            let mut session = session;
            let pieces = pieces_of(message);
            hooks::held(&mut session, message as u64, size_of::<libc::msghdr>() as u64);
            held_pieces(&mut session, file, &pieces);
            let to = address_in(message);
            to_name(&mut session, to);
            sending(session, file, &pieces, to, call)
        };
    fn connect(file: c_int, address: *const c_void, length: c_uint) -> c_int
        : session, call => {
            let mut session = session;
            session.point();
            channels::connecting(&mut session, file, bytes(address, length as usize));
            outside(session, call)
        };
}

/// A message to a name fails where nobody has that name yet.
fn to_name(session: &mut Session, name: Option<&[u8]>) {
    if name.is_some() {
        session.point();
        channels::names_used(session);
    }
}

interpose! {
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, sockets: *mut c_int) -> c_int {
        let result = real!(socketpair(
            domain: c_int, kind: c_int, protocol: c_int, sockets: *mut c_int) -> c_int);
        if result == 0 && let Some(mut session) = Session::begin() {
            channels::made(&[*sockets, *sockets.add(1)]);
            channels::descriptors::came(&mut session, *sockets.add(1));
            channels::paired(*sockets, *sockets.add(1));
            written(&mut session, sockets as u64, 2 * size_of::<c_int>());
        }
        result
    }

    fn pipe(files: *mut c_int) -> c_int {
        let result = real!(pipe(files: *mut c_int) -> c_int);
        if result == 0 && let Some(mut session) = Session::begin() {
            channels::made(&[*files, *files.add(1)]);
            channels::descriptors::came(&mut session, *files.add(1));
            written(&mut session, files as u64, 2 * size_of::<c_int>());
        }
        result
    }

    fn pipe2(files: *mut c_int, flags: c_int) -> c_int {
        let result = real!(pipe2(files: *mut c_int, flags: c_int) -> c_int);
        if result == 0 && let Some(mut session) = Session::begin() {
            channels::made(&[*files, *files.add(1)]);
            channels::descriptors::came(&mut session, *files.add(1));
            written(&mut session, files as u64, 2 * size_of::<c_int>());
        }
        result
    }

    fn eventfd_write(file: c_int, value: u64) -> c_int {
        let value = &raw const value;
        let written = write_to(file, value.cast(), size_of::<u64>());
        if written == size_of::<u64>() as ssize_t { 0 } else { -1 }
    }

    fn eventfd_read(file: c_int, value: *mut u64) -> c_int {
        let read = read_from(file, value.cast(), size_of::<u64>());
        if read == size_of::<u64>() as ssize_t { 0 } else { -1 }
    }

    fn close(file: c_int) -> c_int {
        let Some(mut session) = Session::begin() else { return real!(close(file: c_int) -> c_int) };
        session.point();
        channels::closing(&mut session, file);
        channels::descriptors::closes(&mut session, file);
        clients::closes(&mut session, file, true);
        let result = real!(close(file: c_int) -> c_int);
        session.point();
        result
    }

    fn setsockopt(
        socket: c_int, level: c_int, name: c_int, value: *const c_void, length: c_uint,
    ) -> c_int {
        // That the time is over first is not varied.
        let limits = level == libc::SOL_SOCKET
            && (name == libc::SO_RCVTIMEO || name == libc::SO_SNDTIMEO);
        if limits && let Some(session) = Session::begin() {
            outside::note_outcome(&session, "what waits for a socket with a time limit");
        }
        real!(setsockopt(socket: c_int, level: c_int, name: c_int, value: *const c_void,
            length: c_uint) -> c_int)
    }

    fn shutdown(socket: c_int, how: c_int) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(shutdown(socket: c_int, how: c_int) -> c_int);
        };
        session.point();
        if how != libc::SHUT_RD {
            channels::closing(&mut session, socket);
            clients::closes(&mut session, socket, false);
        }
        let result = real!(shutdown(socket: c_int, how: c_int) -> c_int);
        session.point();
        result
    }

    fn bind(socket: c_int, address: *const c_void, length: c_uint) -> c_int {
        let other = Session::begin().and_then(|_session| {
            clients::bound(socket, bytes(address, length as usize))
        });
        let address = other.as_ref().map_or(address, |other| other.as_ptr().cast());
        real!(bind(socket: c_int, address: *const c_void, length: c_uint) -> c_int)
    }

    fn listen(socket: c_int, room: c_int) -> c_int {
        let result = real!(listen(socket: c_int, room: c_int) -> c_int);
        if result == 0 && let Some(mut session) = Session::begin() {
            clients::listening(&mut session, socket, room);
        }
        result
    }

    fn getsockname(socket: c_int, address: *mut c_void, length: *mut c_uint) -> c_int {
        let result = real!(getsockname(
            socket: c_int, address: *mut c_void, length: *mut c_uint) -> c_int);
        if result == 0 && *length >= 4 && let Some(_session) = Session::begin() {
            clients::named(socket, std::slice::from_raw_parts_mut(address.cast(), 4));
        }
        result
    }

    fn epoll_ctl(poll: c_int, operation: c_int, file: c_int, event: *mut c_void) -> c_int {
        let result = real!(epoll_ctl(
            poll: c_int, operation: c_int, file: c_int, event: *mut c_void) -> c_int);
        if result == 0 && operation != libc::EPOLL_CTL_MOD && let Some(_session) = Session::begin() {
            channels::watches(poll, file, operation == libc::EPOLL_CTL_ADD);
        }
        result
    }
}

/// A time limit of so many milliseconds in virtual time; none if negative.
fn milliseconds(limit: c_int) -> Option<u64> {
    u64::try_from(limit).ok().map(|limit| scheduler::now().saturating_add(limit * 1_000_000))
}

/// As [`milliseconds`], of a `timespec`; none if null.
fn limit_of(limit: *const libc::timespec) -> Option<u64> {
    (!limit.is_null()).then(|| super::time::deadline_in(limit))
}

/// Waits for the files and then runs the call, which must not wait any more.
fn look(
    session: Session,
    source: &str,
    files: Vec<libc::pollfd>,
    deadline: Option<u64>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let (mut session, ready) = await_files(session, files.clone(), deadline);
    let result = match ready {
        Ok(_) => {
            // Looked at before the call, which may take the readiness away (edge-triggered).
            channels::looked(&mut session, &files);
            let result = call();
            if result > 0 && deadline.is_some() {
                outside::note_outcome(&session, source); // it could have come too early
            }
            result
        }
        Err(error) => super::fail(error),
    };
    input(&mut session, source, result as u64);
    session.point();
    result
}

/// The files of `select`'s sets.
unsafe fn files_of_sets(count: c_int, sets: [(*const libc::fd_set, i16); 3]) -> Vec<libc::pollfd> {
    let mut files = Vec::new();
    for fd in 0..count.clamp(0, libc::FD_SETSIZE as c_int) {
        let mut events = 0;
        for (set, event) in sets {
            // SAFETY: the program's sets, below the limit that it gave.
            if !set.is_null() && unsafe { libc::FD_ISSET(fd, set) } {
                events |= event;
            }
        }
        if events != 0 {
            files.push(libc::pollfd { fd, events, revents: 0 });
        }
    }
    files
}

/// The events for which `select` looks.
const SET_EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];

interpose! {
    fn poll(files: *mut libc::pollfd, count: libc::nfds_t, limit: c_int) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(poll(files: *mut libc::pollfd, count: libc::nfds_t,
                limit: c_int) -> c_int);
        };
        let list = list_of(files, count);
        let limit = milliseconds(limit);
        let now: c_int = 0;
        look(session, "poll", list, limit, || real!(poll(
            files: *mut libc::pollfd, count: libc::nfds_t, now: c_int) -> c_int))
    }

    fn ppoll(
        files: *mut libc::pollfd, count: libc::nfds_t, limit: *const libc::timespec,
        mask: *const c_void,
    ) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(ppoll(files: *mut libc::pollfd, count: libc::nfds_t,
                limit: *const libc::timespec, mask: *const c_void) -> c_int);
        };
        if !mask.is_null() {
            // Which signals may come is the point of it: only the kernel can do that at once.
            let (mut session, result) = outside(session, || real!(ppoll(files: *mut libc::pollfd,
                count: libc::nfds_t, limit: *const libc::timespec, mask: *const c_void) -> c_int));
            input(&mut session, "ppoll", result as u64);
            session.point();
            return result;
        }
        let list = list_of(files, count);
        let limit = limit_of(limit);
        let now: c_int = 0;
        look(session, "ppoll", list, limit, || real!(poll(
            files: *mut libc::pollfd, count: libc::nfds_t, now: c_int) -> c_int))
    }

    fn select(
        count: c_int, reads: *mut libc::fd_set, writes: *mut libc::fd_set,
        errors: *mut libc::fd_set, limit: *mut libc::timeval,
    ) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(select(count: c_int, reads: *mut libc::fd_set, writes: *mut libc::fd_set,
                errors: *mut libc::fd_set, limit: *mut libc::timeval) -> c_int);
        };
        let [read, write, error] = SET_EVENTS;
        let files = files_of_sets(count, [(reads, read), (writes, write), (errors, error)]);
        let deadline = (!limit.is_null()).then(|| {
            let time = &*limit;
            let limit = (time.tv_sec.max(0) as u64).saturating_mul(1_000_000_000)
                .saturating_add(time.tv_usec.max(0) as u64 * 1_000);
            scheduler::now().saturating_add(limit)
        });
        let mut now = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let now: *mut libc::timeval = &mut now;
        look(session, "select", files, deadline, || real!(select(
            count: c_int, reads: *mut libc::fd_set, writes: *mut libc::fd_set,
            errors: *mut libc::fd_set, now: *mut libc::timeval) -> c_int))
    }

    fn pselect(
        count: c_int, reads: *mut libc::fd_set, writes: *mut libc::fd_set,
        errors: *mut libc::fd_set, limit: *const libc::timespec, mask: *const c_void,
    ) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(pselect(count: c_int, reads: *mut libc::fd_set,
                writes: *mut libc::fd_set, errors: *mut libc::fd_set,
                limit: *const libc::timespec, mask: *const c_void) -> c_int);
        };
        let (mut session, result) = outside(session, || real!(pselect(count: c_int,
            reads: *mut libc::fd_set, writes: *mut libc::fd_set, errors: *mut libc::fd_set,
            limit: *const libc::timespec, mask: *const c_void) -> c_int));
        input(&mut session, "pselect", result as u64);
        session.point();
        result
    }

    fn epoll_wait(poll: c_int, events: *mut c_void, count: c_int, limit: c_int) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(epoll_wait(poll: c_int, events: *mut c_void, count: c_int,
                limit: c_int) -> c_int);
        };
        let files = vec![libc::pollfd { fd: poll, events: libc::POLLIN, revents: 0 }];
        let limit = milliseconds(limit);
        let now: c_int = 0;
        let result = look(session, "epoll_wait", files, limit, || real!(epoll_wait(
            poll: c_int, events: *mut c_void, count: c_int, now: c_int) -> c_int));
        if let Some(mut session) = Session::begin() {
            let length = result.max(0) as usize * size_of::<libc::epoll_event>();
            written(&mut session, events as u64, length);
        }
        result
    }
}

/// The program's list of files.
unsafe fn list_of(files: *const libc::pollfd, count: libc::nfds_t) -> Vec<libc::pollfd> {
    if files.is_null() {
        return Vec::new();
    }
    // SAFETY: the program passes so many.
    unsafe { std::slice::from_raw_parts(files, count as usize) }.to_vec()
}

/// Wrappers for calls that wake or wait for others by means that are not modelled: they are made
/// outside the scheduler, and that is said.
macro_rules! pass_through {
    ($(fn $name:ident($($argument:ident : $type:ty),* $(,)?) -> $result:ty;)*) => {
        interpose! {$(
            fn $name($($argument: $type),*) -> $result {
                let Some(session) = Session::begin() else {
                    return real!($name($($argument: $type),*) -> $result);
                };
                let (me, place) = (session.me.number, session.place);
                outside::note(me, Cause::PassedCall, 0, stringify!($name), place);
                let (mut session, result) =
                    outside(session, || real!($name($($argument: $type),*) -> $result));
                input(&mut session, stringify!($name), result as u64);
                session.point();
                result
            }
        )*}
    };
}

pass_through! {
    fn aio_suspend(
        requests: *const *const c_void, count: c_int, limit: *const libc::timespec,
    ) -> c_int;
}

/// Wrappers for calls that only need to leave the scheduler: their result is an input. What else is
/// to be noted afterwards follows the signature.
macro_rules! leave_for {
    ($(fn $name:ident($($argument:ident : $type:ty),* $(,)?) -> $result:ty
        $(, |$then:ident, $value:ident| $note:expr)?;)*) => {
        interpose! {$(
            fn $name($($argument: $type),*) -> $result {
                let Some(session) = Session::begin() else {
                    return real!($name($($argument: $type),*) -> $result);
                };
                let (mut session, result) =
                    outside(session, || real!($name($($argument: $type),*) -> $result));
                $(
                    let ($then, $value) = (&mut session, result);
                    $note;
                )?
                input(&mut session, stringify!($name), result as u64);
                session.point();
                result
            }
        )*}
    };
}

leave_for! {
    fn wait(status: *mut c_int) -> libc::pid_t, |session, result| child_ended(session, result);
    fn waitpid(process: libc::pid_t, status: *mut c_int, options: c_int) -> libc::pid_t,
        |session, result| child_ended(session, result);
    fn sigwait(signals: *const c_void, signal: *mut c_int) -> c_int,
        |session, result| if result == 0 { got_signal(session, "sigwait", signals, *signal) };
    fn sigwaitinfo(signals: *const c_void, information: *mut c_void) -> c_int,
        |session, result| if result > 0 { got_signal(session, "sigwaitinfo", signals, result) };
    fn sigtimedwait(
        signals: *const c_void, information: *mut c_void, limit: *const c_void,
    ) -> c_int,
        |session, result| {
            if result > 0 {
                outside::note_outcome(session, "sigtimedwait");
                channels::waited_for_signal(session, result);
            } else {
                outside::decided(session, "sigtimedwait");
            }
        };
    fn sigsuspend(mask: *const c_void) -> c_int,
        |session, _result| channels::let_signals_in(session);
    fn pause() -> c_int;
    fn tcdrain(file: c_int) -> c_int;
}

/// A wait for one of these signals gave this one. Which of several comes first is not varied.
unsafe fn got_signal(session: &mut Session, function: &str, signals: *const c_void, signal: c_int) {
    // SAFETY: the set that the program waited for.
    let is_awaited = |&other: &c_int| unsafe { libc::sigismember(signals.cast(), other) == 1 };
    if (1..=libc::SIGRTMAX()).filter(is_awaited).count() > 1 {
        outside::note_outcome(session, function);
    }
    channels::waited_for_signal(session, signal);
}

interpose! {
    fn sigpending(signals: *mut libc::sigset_t) -> c_int {
        if !channels::alone() && let Some(mut session) = Session::begin() {
            outside::decided(&mut session, "sigpending");
        }
        real!(sigpending(signals: *mut libc::sigset_t) -> c_int)
    }
}

/// A wait for a child process came back.
fn child_ended(session: &mut Session, result: libc::pid_t) {
    if result > 0 {
        channels::heard_of_children(session);
    }
}

unsafe extern "C" {
    /// glibc: whether the stream has bytes that were read but not yet taken.
    fn __freadable(stream: *mut libc::FILE) -> c_int;
}

/// Before libc reads for a stream: waits under the scheduler until its file has something, unless
/// the stream still has.
unsafe fn await_stream(stream: *mut libc::FILE) {
    let Some(session) = Session::begin() else { return };
    if session.me.unpreemptible > 0 {
        return; // it holds a stream's lock, for which others would wait inside libc
    }
    // SAFETY: the program's stream. glibc's layout: flags, then read pointer and read end.
    unsafe {
        let words = stream.cast::<usize>();
        let (next, end) = (words.add(1).read(), words.add(2).read());
        let file = libc::fileno(stream);
        if next < end || file < 0 || __freadable(stream) == 0 || is_prompt(file) {
            return;
        }
        let files = vec![libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 }];
        // What went wrong the call itself will find out.
        let _ = await_files(session, files, None);
    }
}

/// Wrappers for libc's streams: the first read of a call waits under the scheduler.
macro_rules! stream {
    ($(fn $name:ident($($argument:ident : $type:ty),*) -> $result:ty, $stream:expr;)*) => {
        interpose! {$(
            fn $name($($argument: $type),*) -> $result {
                await_stream($stream);
                real!($name($($argument: $type),*) -> $result)
            }
        )*}
    };
}

unsafe extern "C" {
    static stdin: *mut libc::FILE;
}

stream! {
    fn fgets(buffer: *mut libc::c_char, count: c_int, stream: *mut libc::FILE)
        -> *mut libc::c_char, stream;
    fn fread(buffer: *mut c_void, size: size_t, count: size_t, stream: *mut libc::FILE)
        -> size_t, stream;
    fn fgetc(stream: *mut libc::FILE) -> c_int, stream;
    fn getc(stream: *mut libc::FILE) -> c_int, stream;
    fn getchar() -> c_int, stdin;
    fn getline(line: *mut *mut libc::c_char, room: *mut size_t, stream: *mut libc::FILE)
        -> ssize_t, stream;
    fn getdelim(
        line: *mut *mut libc::c_char, room: *mut size_t, end: c_int, stream: *mut libc::FILE
    ) -> ssize_t, stream;
}
