//! Channels: what one thread puts into a descriptor and another takes out.
//!
//! A pipe, a connected socket and an eventfd are queues; what is in them is known by the kernel's own
//! identity of the object, not by the number of the descriptor, so that copies of it (`dup`) count as
//! the same. A file is a state: its name is there or not, its content is the last that was written.
//! Callers have the turn while they make the call and record it, so the order of the records is the
//! order in which the kernel saw the calls.
//!
//! Not seen: sockets whose other end is not known (it may be in another process), memory that is sent
//! without a copy (`splice`, `sendfile`), and what libc's streams write by themselves when their buffer
//! is full. What is received from there counts as coming from outside.

pub mod descriptors;
pub mod ipc;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use foretell_wire::limits::SENT_COMPARED;
use foretell_wire::outside::Cause;
use foretell_wire::record;
use foretell_wire::{Kind, ObjectKind, channel};
use libc::{c_int, c_void};

use crate::clients;
use crate::objects::{self, Model};
use crate::outside;
use crate::recorder::recorder;
use crate::scheduler;
use crate::sys;
use crate::thread::{Session, Wait};
use crate::turn::{Turn, TurnCell};
use crate::wrappers::kept;

/// What is known of descriptors.
#[derive(Default)]
struct Known {
    /// The two ends of a local socket, its own first, by inode.
    ends: Option<BTreeMap<u64, (u64, u64)>>,
    /// Local sockets that asked for a connection and were not accepted yet, by the name they asked.
    asking: Option<BTreeMap<u64, VecDeque<u64>>>,
    /// The files that an epoll looks at, by its descriptor.
    watched: Option<BTreeMap<c_int, Vec<c_int>>>,
    /// How many channels of each name there are.
    names: Option<BTreeMap<String, u32>>,
    /// What was sent so far, where its content is not compared.
    unique: u64,
    /// There are, or were, child processes.
    has_children: bool,
    /// Inodes of the pipes and pairs of sockets that the program made.
    private: Option<BTreeSet<u64>>,
    /// The signals that the program has sent to itself: bit 0 for signal 1.
    sent_to_process: u64,
    /// Channels of the files and names that were changed.
    changed: Option<BTreeSet<u32>>,
    /// How often each descriptor was closed.
    closed: Option<BTreeMap<c_int, u64>>,
    /// Numbers of eventfds that give one at a time.
    semaphores: Option<BTreeSet<u64>>,
    /// Numbers of all eventfds that the program made.
    events: Option<BTreeSet<u64>>,
    /// Files (device and inode) that were given something by functions for output, which is not held.
    printed: Option<BTreeSet<(u64, u64)>>,
    /// Addresses of variables that no memory of the program has.
    variables: Option<BTreeSet<u64>>,
    /// Files (device and inode) that are mapped so that what is stored goes into them.
    mapped: Option<BTreeSet<(u64, u64)>>,
}

static KNOWN: TurnCell<Known> = TurnCell::new(Known {
    ends: None,
    asking: None,
    watched: None,
    names: None,
    unique: 0,
    has_children: false,
    private: None,
    sent_to_process: 0,
    changed: None,
    closed: None,
    semaphores: None,
    events: None,
    printed: None,
    variables: None,
    mapped: None,
});

/// # Safety
/// Only for the thread that has the turn.
unsafe fn known() -> &'static mut Known {
    // SAFETY: the caller's promise.
    unsafe { KNOWN.get() }
}

/// What amounts are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Bytes.
    Stream,
    /// Messages.
    Datagram,
    /// The number in an eventfd.
    Counter,
}

/// The channels of a descriptor, by object number.
struct Ends {
    unit: Unit,
    receive: Option<u32>,
    send: Option<u32>,
}

/// FNV-1a.
fn digest(mut number: u64, bytes: &[u8]) -> u64 {
    for &byte in bytes {
        number = (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    number
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn key(words: &[u64]) -> u64 {
    words.iter().fold(SEED, |number, word| digest(number, &word.to_le_bytes()))
}

/// The channel with this key, which gets a name when it is first used. Keys are kept apart from the
/// addresses of other objects by their highest bit.
fn object(key: u64, kind: ObjectKind, name: &str) -> u32 {
    let address = key | 1 << 63;
    // SAFETY: callers have the turn.
    let turn = unsafe { Turn::held() };
    let fits = |model: &Model| matches!(model, Model::Channel(_));
    let make = || {
        // SAFETY: callers have the turn.
        let names = unsafe { known() }.names.get_or_insert_default();
        let number = names.entry(name.to_owned()).or_insert(0);
        *number += 1;
        let name = if *number == 1 { name.to_owned() } else { format!("{name} #{number}") };
        let record = record::DefineGlobal { address, size: 1, name: &*name };
        // SAFETY: as above.
        unsafe { recorder() }.record(0, 0, &record);
        Model::Channel(kind)
    };
    objects::get(turn, address, fits, make).number
}

/// A variable that no memory of the program has: its address, which no other has. It gets its name here.
pub fn variable(words: &[u64], name: &str) -> u64 {
    let address = (key(words) ^ key(&[sort::VARIABLE])) & !7 | 1 << 63;
    // SAFETY: callers have the turn.
    if unsafe { known() }.variables.get_or_insert_default().insert(address) {
        // SAFETY: as above.
        unsafe { recorder() }.record(0, 0, &record::DefineGlobal { address, size: 8, name });
    }
    address
}

/// Kinds of keys.
mod sort {
    pub const PIPE: u64 = 1;
    pub const SOCKET: u64 = 2;
    pub const ADDRESS: u64 = 3;
    pub const EVENT: u64 = 4;
    pub const HANGUP: u64 = 5;
    pub const LISTENER: u64 = 6;
    pub const SIGNAL: u64 = 7;
    pub const CONTENT: u64 = 8;
    pub const NAME: u64 = 9;
    pub const CHILDREN: u64 = 10;
    pub const MESSAGES: u64 = 11;
    pub const SEMAPHORES: u64 = 12;
    pub const LOCKS: u64 = 13;
    pub const MEETING: u64 = 14;
    pub const STREAM: u64 = 15;
    pub const LIBRARY: u64 = 16;
    pub const DESCRIPTOR: u64 = 17;
    pub const POSITION: u64 = 18;
    pub const CLIENT: u64 = 19;
    pub const VARIABLE: u64 = 20;
    pub const READERS: u64 = 21;
}

fn status(file: c_int) -> Option<libc::stat> {
    // SAFETY: `status` is writable; any number may be asked about.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let asked = sys::call(libc::SYS_fstat, [file as u64, (&raw mut status) as u64, 0, 0, 0, 0]);
        (asked == 0).then_some(status)
    }
}

fn option(socket: c_int, name: c_int) -> Option<c_int> {
    let (mut value, mut length) = (0 as c_int, size_of::<c_int>() as u32);
    // SAFETY: both are writable.
    let asked = unsafe {
        let value = &raw mut value as *mut c_void;
        libc::getsockopt(socket, libc::SOL_SOCKET, name, value, &mut length)
    };
    (asked == 0).then_some(value)
}

/// A socket's own address, or that of its peer.
pub fn address_of(socket: c_int, peer: bool) -> Option<Vec<u8>> {
    let mut bytes = [0u8; 128];
    let mut length = bytes.len() as u32;
    // SAFETY: both are writable.
    let asked = unsafe {
        let address = bytes.as_mut_ptr().cast();
        match peer {
            true => libc::getpeername(socket, address, &mut length),
            false => libc::getsockname(socket, address, &mut length),
        }
    };
    (asked == 0).then(|| bytes[..(length as usize).min(bytes.len())].to_vec())
}

/// The process that made the other end of a local socket.
pub fn peer_process(socket: c_int) -> Option<u32> {
    // SAFETY: a plain structure that the kernel fills.
    unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        let arguments = [
            socket as u64,
            libc::SOL_SOCKET as u64,
            libc::SO_PEERCRED as u64,
            (&raw mut peer) as u64,
            (&raw mut length) as u64,
            0,
        ];
        (sys::call(libc::SYS_getsockopt, arguments) == 0).then_some(peer.pid as u32)
    }
}

/// What an address of a listening or datagram socket is known by: the family and the port of an
/// internet address (any local address may stand for it), the name of a local one. `None` where it
/// has none.
fn address_key(address: &[u8]) -> Option<u64> {
    let family = c_int::from(u16::from_le_bytes([*address.first()?, *address.get(1)?]));
    match family {
        libc::AF_INET | libc::AF_INET6 => {
            let port = u64::from(u16::from_be_bytes([*address.get(2)?, *address.get(3)?]));
            (port != 0).then(|| key(&[1, port]))
        }
        libc::AF_UNIX => {
            let name = address.get(2..)?;
            let end = match name.first() {
                Some(0) => name.len(),
                _ => name.iter().position(|&byte| byte == 0).unwrap_or(name.len()),
            };
            (end > 0).then(|| digest(key(&[2]), &name[..end]))
        }
        _ => None,
    }
}

fn socket_ends(socket: c_int, inode: u64) -> Option<Ends> {
    let datagram = option(socket, libc::SO_TYPE)? == libc::SOCK_DGRAM;
    let unit = if datagram || option(socket, libc::SO_TYPE)? == libc::SOCK_SEQPACKET {
        Unit::Datagram
    } else {
        Unit::Stream
    };
    let queue = |key| object(key, ObjectKind::Queue, "socket");
    if let Some((own, other)) = ends_of(inode) {
        let (mine, other) = (key(&[sort::SOCKET, own]), key(&[sort::SOCKET, other]));
        return Some(Ends { unit, receive: Some(queue(mine)), send: Some(queue(other)) });
    }
    let (local, remote) = (address_of(socket, false), address_of(socket, true));
    if datagram {
        let by = |address: Option<Vec<u8>>| {
            let name = address_key(&address?)?;
            Some(queue(key(&[sort::ADDRESS, name])))
        };
        return Some(Ends { unit, receive: by(local), send: by(remote) });
    }
    let (local, remote) = (local?, remote?);
    address_key(&local)?;
    address_key(&remote)?;
    let between = |to: &[u8], from: &[u8]| digest(digest(key(&[sort::SOCKET]), to), from);
    let (receive, send) = (between(&local, &remote), between(&remote, &local));
    Some(Ends { unit, receive: Some(queue(receive)), send: Some(queue(send)) })
}

fn ends_of(inode: u64) -> Option<(u64, u64)> {
    // SAFETY: callers have the turn.
    unsafe { known() }.ends.as_ref()?.get(&inode).copied()
}

/// The descriptor is a new eventfd, which gives one at a time or all.
pub fn made_event(file: c_int, one_at_a_time: bool) {
    let _errno = Errno::keep();
    let Some(number) = event_number(file) else { return };
    // SAFETY: callers have the turn.
    let known = unsafe { known() };
    known.events.get_or_insert_default().insert(number);
    let semaphores = known.semaphores.get_or_insert_default();
    match one_at_a_time {
        true => semaphores.insert(number),
        false => semaphores.remove(&number), // the number of one that is gone
    };
}

fn is_semaphore(file: c_int) -> bool {
    // SAFETY: callers have the turn.
    let semaphores = unsafe { known() }.semaphores.as_ref();
    event_number(file).is_some_and(|number| semaphores.is_some_and(|all| all.contains(&number)))
}

/// The kernel's number of an eventfd.
fn event_number(file: c_int) -> Option<u64> {
    let content = sys::read_file(format!("/proc/self/fdinfo/{file}\0").as_bytes())?;
    let text = String::from_utf8(content).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    text.contains("eventfd-count:").then(|| field("eventfd-id:").unwrap_or(file as u64))
}

fn ends(file: c_int) -> Option<Ends> {
    let status = status(file)?;
    match status.st_mode & libc::S_IFMT {
        libc::S_IFIFO => {
            let key = key(&[sort::PIPE, status.st_dev, status.st_ino]);
            let pipe = object(key, ObjectKind::Queue, "pipe");
            Some(Ends { unit: Unit::Stream, receive: Some(pipe), send: Some(pipe) })
        }
        libc::S_IFSOCK => socket_ends(file, status.st_ino),
        0 => {
            let key = key(&[sort::EVENT, event_number(file)?]);
            let event = object(key, ObjectKind::Queue, "eventfd");
            Some(Ends { unit: Unit::Counter, receive: Some(event), send: Some(event) })
        }
        _ => None,
    }
}

/// Whether anybody else could ever have looked.
pub fn alone() -> bool {
    // SAFETY: callers have the turn.
    unsafe { crate::scheduler::scheduler() }.is_single()
}

/// The content of a plain file.
pub fn content_of(file: c_int) -> Option<u32> {
    let status = status(file)?;
    if alone() || status.st_mode & libc::S_IFMT != libc::S_IFREG {
        return None;
    }
    let key = key(&[sort::CONTENT, status.st_dev, status.st_ino]);
    // SAFETY: callers have the turn.
    let is_mapped = unsafe { known() }
        .mapped
        .as_ref()
        .is_some_and(|files| files.contains(&(status.st_dev, status.st_ino)));
    if is_mapped {
        // What is stored to memory is no change of the channel.
        outside::note(0, Cause::MappedFile, 0, "a descriptor", 0);
    }
    Some(object(key, ObjectKind::State, "content of a file"))
}

/// Keeps `errno` as the call left it, whatever is asked afterwards.
struct Errno(c_int);

impl Errno {
    fn keep() -> Self {
        // SAFETY: this thread's errno.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

fn send(session: &mut Session, channel: u32, amount: u64, content: u64) {
    scheduler::wake(Wait::Look(channel));
    session.record(0, &record::Send { channel, amount, content });
}

/// A file, or its name, is another one now.
fn change(session: &mut Session, channel: u32) {
    // SAFETY: callers have the turn.
    unsafe { known() }.changed.get_or_insert_default().insert(channel);
    send(session, channel, 1, 0);
}

fn poll(session: &mut Session, channel: u32, ready: bool) {
    session.event(Kind::Poll, ready.into(), [channel.into()]);
}

/// The program's pieces of memory.
///
/// # Safety
/// As `writev`.
pub unsafe fn pieces<'a>(vectors: *const libc::iovec, count: usize) -> Vec<&'a [u8]> {
    if vectors.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let vectors = std::slice::from_raw_parts(vectors, count.min(1024));
        let piece = |vector: &libc::iovec| -> &'a [u8] {
            match vector.iov_base.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(vector.iov_base.cast(), vector.iov_len),
            }
        };
        vectors.iter().map(piece).collect()
    }
}

/// How much was sent to a channel; `None`: it was said that it may be full.
static SENT: TurnCell<BTreeMap<u32, Option<u64>>> = TurnCell::new(BTreeMap::new());

/// Where more was sent than a pipe, a socket or a counter has room for, another interleaving could find it full: then
/// who sends waits, or fails. That is not varied.
fn say_if_full(session: &Session, file: c_int, channel: u32, amount: u64) {
    // What the kernel needs for a message besides.
    const OF_A_MESSAGE: u64 = 1024;
    // SAFETY: callers have the turn.
    let so_far = unsafe { SENT.get() }.entry(channel).or_insert(Some(0));
    let Some(total) = so_far else { return };
    // SAFETY: it only asks.
    let pipe = unsafe { libc::fcntl(file, libc::F_GETPIPE_SZ) };
    let (room, cost) = match (u64::try_from(pipe), send_buffer(file)) {
        (Ok(pipe), _) => (pipe / 2, amount), // pages may be half full
        (_, Some(buffer)) => (buffer, amount + OF_A_MESSAGE),
        _ => (u64::MAX - 1, amount),
    };
    match total.checked_add(cost).filter(|sum| *sum <= room) {
        Some(sum) => *total = sum,
        None => {
            *so_far = None;
            outside::note_outcome(session, "a write to a pipe, socket or counter that may be full");
        }
    }
}

/// How much a socket has room for.
fn send_buffer(file: c_int) -> Option<u64> {
    let (mut size, mut length): (c_int, libc::socklen_t) = (0, size_of::<c_int>() as _);
    // SAFETY: the call fills what is ours.
    let result = unsafe {
        libc::getsockopt(
            file,
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            (&raw mut size).cast(),
            &mut length,
        )
    };
    (result == 0).then(|| u64::try_from(size).ok()).flatten()
}

/// The pieces were sent, `result` bytes of them; to `address` where one was given.
pub fn sent(
    session: &mut Session,
    file: c_int,
    pieces: &[&[u8]],
    result: isize,
    to: Option<&[u8]>,
) {
    let _errno = Errno::keep();
    let Ok(result) = usize::try_from(result) else { return };
    if let Some(content) = content_of(file) {
        change(session, content);
        return;
    }
    let Some(ends) = ends(file) else { return };
    let channel = match to.and_then(address_key) {
        Some(name) => Some(object(key(&[sort::ADDRESS, name]), ObjectKind::Queue, "socket")),
        None => ends.send,
    };
    let Some(channel) = channel else { return };
    let mut left = result.min(SENT_COMPARED);
    let mut content = digest(SEED, &result.to_le_bytes());
    for piece in pieces {
        let piece = &piece[..piece.len().min(left)];
        content = digest(content, piece);
        left -= piece.len();
    }
    let content = match ends.unit {
        Unit::Counter => 0,
        _ if result > SENT_COMPARED => unique(),
        _ => content.max(1),
    };
    let amount = match ends.unit {
        Unit::Stream => result as u64,
        Unit::Datagram => 1,
        Unit::Counter => counter(pieces),
    };
    if amount > 0 {
        let needed = if ends.unit == Unit::Counter { amount } else { result as u64 };
        say_if_full(session, file, channel, needed);
        send(session, channel, amount, content);
    }
}

/// A number that no other content has.
fn unique() -> u64 {
    // SAFETY: callers have the turn.
    let known = unsafe { known() };
    known.unique += 1;
    known.unique | 1 << 63
}

/// The number that is written to or read from an eventfd.
fn counter(pieces: &[&[u8]]) -> u64 {
    let bytes = pieces.first().and_then(|piece| piece.first_chunk::<8>());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A call that takes from a descriptor gave `result`; it had asked for `asked` bytes and got those in
/// `got`. `by_try`: it would not have waited. `keeps`: it took nothing away.
pub fn received(
    session: &mut Session,
    file: c_int,
    asked: usize,
    got: &[u8],
    result: isize,
    by_try: bool,
    keeps: bool,
) {
    let errno = Errno::keep();
    if let Some(content) = content_of(file) {
        note_printed(session, file);
        poll(session, content, true);
        if !keeps {
            descriptors::moved(session, file);
        }
        return;
    }
    let Some(ends) = ends(file) else {
        if result > 0 {
            received_from_kernel(session, file, got);
        }
        return;
    };
    let Some(channel) = ends.receive else { return };
    if result < 0 {
        if errno.0 == libc::EAGAIN {
            poll(session, channel, false);
        }
        return;
    }
    if result == 0 && asked > 0 && ends.unit == Unit::Stream {
        let closed =
            object(key(&[sort::HANGUP, channel.into()]), ObjectKind::State, "end of input");
        poll(session, closed, true);
        return;
    }
    if keeps {
        poll(session, channel, true);
        return;
    }
    let (amount, drained) = match ends.unit {
        Unit::Stream => (result as u64, (result as usize) < asked),
        Unit::Datagram => (1, false),
        // A semaphore gives one at a time, any other all that there is.
        Unit::Counter => (counter(&[got]), !is_semaphore(file)),
    };
    let detail =
        if drained { channel::DRAINED } else { 0 } | if by_try { channel::BY_TRY } else { 0 };
    if amount > 0 {
        heard_of_children(session);
        session.record(detail, &record::Receive { channel, amount });
    }
}

/// Something was read from a file that the kernel itself writes to: signals that were sent, or news of files.
fn received_from_kernel(session: &mut Session, file: c_int, got: &[u8]) {
    if status(file).is_none_or(|status| status.st_mode & libc::S_IFMT != 0) {
        return;
    }
    let information = sys::read_file(format!("/proc/self/fdinfo/{file}\0").as_bytes());
    let text = String::from_utf8(information.unwrap_or_default()).unwrap_or_default();
    if text.contains("sigmask:") {
        for signal in got.chunks_exact(size_of::<libc::signalfd_siginfo>()) {
            let number = signal.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
            waited_for_signal(session, number.unwrap_or_default() as c_int);
        }
    } else if text.contains("inotify") || text.contains("fanotify") {
        // It is news of some of them.
        // SAFETY: callers have the turn.
        for channel in unsafe { known() }.changed.clone().into_iter().flatten() {
            poll(session, channel, true);
        }
        outside::note(session.me.number, Cause::PassedCall, 0, "inotify", session.place);
    } else if text
        .lines()
        .any(|line| line.strip_prefix("it_interval:").is_some_and(|pair| pair.trim() != "(0, 0)"))
    {
        // Who reads later is told of several at once.
        outside::note_outcome(session, "a read of a timer that fires again and again");
    }
}

/// Somebody looked whether the files are ready to be read, without waiting any more.
pub fn looked(session: &mut Session, files: &[libc::pollfd]) {
    let _errno = Errno::keep();
    let mut now = files.to_vec();
    for file in &mut now {
        file.revents = 0;
    }
    sys::poll(&mut now, 0);
    for file in now.iter().filter(|file| file.events & libc::POLLIN != 0) {
        // SAFETY: callers have the turn.
        let watched = unsafe { known() }.watched.as_ref().and_then(|all| all.get(&file.fd));
        if let Some(watched) = watched.cloned() {
            let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            looked(session, &watched.into_iter().map(poll).collect::<Vec<_>>());
            continue;
        }
        let Some(Ends { receive: Some(channel), .. }) = ends(file.fd) else { continue };
        if file.revents & libc::POLLIN != 0 || file.revents == 0 {
            poll(session, channel, file.revents != 0);
        }
        if file.revents & libc::POLLHUP != 0 {
            let key = key(&[sort::HANGUP, channel.into()]);
            poll(session, object(key, ObjectKind::State, "end of input"), true);
        }
    }
}

/// An epoll looks at a file, or does so no more.
pub fn watches(poll: c_int, file: c_int, more: bool) {
    // SAFETY: callers have the turn.
    let watched = unsafe { known() }.watched.get_or_insert_default().entry(poll).or_default();
    watched.retain(|&other| other != file);
    if more {
        watched.push(file);
    }
}

/// A descriptor is about to be closed, or its sending half shut: who reads the other end comes to the
/// end of its input.
pub fn closing(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    // SAFETY: callers have the turn.
    if let Some(watched) = &mut unsafe { known() }.watched {
        watched.remove(&file);
    }
    ipc::closing(session, file);
    if let Some(Ends { unit: Unit::Stream, receive: Some(channel), .. }) = ends(file)
        && !alone()
    {
        let gone = readers(channel);
        send(session, gone, 1, 0);
    }
    // SAFETY: any number may be asked about.
    let flags =
        unsafe { sys::call(libc::SYS_fcntl, [file as u64, libc::F_GETFL as u64, 0, 0, 0, 0]) };
    if flags < 0 || flags as c_int & libc::O_ACCMODE == libc::O_RDONLY {
        return; // nothing was written
    }
    if let Some(content) = content_of(file) {
        send(session, content, 1, 0);
        return;
    }
    let Some(Ends { unit: Unit::Stream, send: Some(channel), .. }) = ends(file) else { return };
    let closed = object(key(&[sort::HANGUP, channel.into()]), ObjectKind::State, "end of input");
    send(session, closed, 1, 0);
}

/// The thread is about to write, which fails, or ends the program, where nobody is left to read.
pub fn needs_readers(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    if alone() {
        return;
    }
    if let Some(Ends { unit: Unit::Stream, send: Some(channel), .. }) = ends(file) {
        let readers = readers(channel);
        poll(session, readers, true);
    }
}

fn readers(channel: u32) -> u32 {
    object(key(&[sort::READERS, channel.into()]), ObjectKind::State, "state of the reading end")
}

/// The program made the descriptors, and has both ends.
pub fn made(files: &[c_int]) {
    let _errno = Errno::keep();
    // SAFETY: callers have the turn.
    let private = unsafe { known() }.private.get_or_insert_default();
    private.extend(files.iter().filter_map(|&file| Some(status(file)?.st_ino)));
}

/// Whether only threads of the program can make the descriptor ready: a pipe, a pair of sockets or an eventfd
/// that it made, or a message queue that nobody else has open, while it never had a child process that may have
/// the other end.
pub fn is_private(file: c_int) -> bool {
    // SAFETY: callers have the turn.
    let known = unsafe { known() };
    let Some(status) = status(file) else { return false };
    let contains = |set: &Option<BTreeSet<u64>>, number: u64| {
        set.as_ref().is_some_and(|set| set.contains(&number))
    };
    !known.has_children
        && !sys::has_child()
        && match status.st_mode & libc::S_IFMT {
            0 => event_number(file).is_some_and(|number| contains(&known.events, number)),
            libc::S_IFREG => ipc::is_unreachable(file, &status),
            _ => contains(&known.private, status.st_ino),
        }
}

/// The two sockets are each other's ends.
pub fn paired(one: c_int, other: c_int) {
    let _errno = Errno::keep();
    let (Some(one), Some(other)) = (status(one), status(other)) else { return };
    // SAFETY: callers have the turn.
    let ends = unsafe { known() }.ends.get_or_insert_default();
    ends.insert(one.st_ino, (one.st_ino, other.st_ino));
    ends.insert(other.st_ino, (other.st_ino, one.st_ino));
}

/// The end that `accept` will give for the socket with this inode: what is written before that is for it.
fn accepted_end(asking: u64) -> u64 {
    !asking
}

fn listener(name: u64) -> u32 {
    object(key(&[sort::LISTENER, name]), ObjectKind::Queue, "connections")
}

/// The socket is about to ask for a connection with the address.
pub fn connecting(session: &mut Session, socket: c_int, address: &[u8]) {
    let _errno = Errno::keep();
    let (Some(name), Some(status)) = (address_key(address), status(socket)) else { return };
    if option(socket, libc::SO_TYPE) == Some(libc::SOCK_DGRAM) {
        return;
    }
    // SAFETY: callers have the turn.
    let asking = unsafe { known() }.asking.get_or_insert_default();
    asking.entry(name).or_default().push_back(status.st_ino);
    if option(socket, libc::SO_DOMAIN) == Some(libc::AF_UNIX) {
        let inode = status.st_ino;
        // SAFETY: as above.
        let ends = unsafe { known() }.ends.get_or_insert_default();
        ends.insert(inode, (inode, accepted_end(inode)));
    }
    send(session, listener(name), 1, unique());
}

/// `accept` gave this socket.
pub fn accepted(session: &mut Session, listening: c_int, socket: c_int, by_try: bool) {
    let _errno = Errno::keep();
    let Some(name) = address_of(listening, false).as_deref().and_then(address_key) else { return };
    let channel = listener(name);
    if socket < 0 {
        poll(session, channel, false);
        return;
    }
    let detail = if by_try { channel::BY_TRY } else { 0 };
    session.record(detail, &record::Receive { channel, amount: 1 });
    // SAFETY: callers have the turn.
    let asking = unsafe { known() }.asking.get_or_insert_default();
    let first = asking.get_mut(&name).and_then(VecDeque::pop_front);
    let local = option(socket, libc::SO_DOMAIN) == Some(libc::AF_UNIX);
    if let (Some(peer), Some(status), true) = (first, status(socket), local) {
        // SAFETY: as above.
        let ends = unsafe { known() }.ends.get_or_insert_default();
        ends.insert(status.st_ino, (accepted_end(peer), peer));
    }
}

// Clients

fn answers(client: u32) -> u32 {
    let (name, kind) = clients::name_of(client);
    object(key(&[sort::CLIENT, client.into()]), kind, &name)
}

/// A client that acts on the answers of several connections got one.
pub fn told_client(session: &mut Session, client: u32) {
    let channel = answers(client);
    send(session, channel, 1, 0);
}

/// Such a client acts.
pub fn heard_as_client(session: &mut Session, client: u32) {
    let channel = answers(client);
    poll(session, channel, true);
}

// Signals

/// The channel of a signal to a thread: pending until it is waited for, or handled at once.
fn signal(thread: u32, number: c_int, handled: bool) -> u32 {
    let (kind, how) = match handled {
        true => (ObjectKind::Interrupt, 1),
        false => (ObjectKind::State, 0),
    };
    let key = key(&[sort::SIGNAL, thread.into(), number as u64, how]);
    object(key, kind, &format!("signal {number}"))
}

/// The signal is sent to the thread; gives its channel.
pub fn signalled(session: &mut Session, thread: u32, number: c_int, handled: bool) -> u32 {
    let channel = signal(thread, number, handled);
    send(session, channel, 1, 0);
    channel
}

/// The signal is sent to whichever thread of the process waits for it.
pub fn signalled_process(session: &mut Session, number: c_int) {
    // SAFETY: callers have the turn.
    unsafe { known() }.sent_to_process |= 1 << (number - 1);
    let channel = signal(ANYBODY, number, false);
    send(session, channel, 1, 0);
}

/// A handler for the signal is about to run: if the signal was sent to the process, what its sender did comes
/// before.
pub fn handles_signal(session: &mut Session, number: c_int) {
    // SAFETY: callers have the turn.
    let was_sent = unsafe { known() }.sent_to_process >> (number - 1) & 1 != 0;
    if was_sent {
        let channel = signal(ANYBODY, number, false);
        poll(session, channel, true);
    }
}

/// Stands for the process as the receiver of a signal.
const ANYBODY: u32 = u32::MAX;

/// The thread waited for a signal and got this one.
pub fn waited_for_signal(session: &mut Session, number: c_int) {
    for thread in [session.me.number, ANYBODY] {
        let channel = signal(thread, number, false);
        poll(session, channel, true);
    }
    session.me.pending_signals.clear();
}

/// The thread waited for any signal, and its mask let some through: it may have been each that was
/// pending.
pub fn let_signals_in(session: &mut Session) {
    for channel in std::mem::take(&mut session.me.pending_signals) {
        poll(session, channel, true);
    }
}

// Barriers that other processes use, too

fn meeting(address: u64) -> u32 {
    object(key(&[sort::MEETING, address]), ObjectKind::State, "shared barrier")
}

/// The thread came to the barrier.
pub fn came_to(session: &mut Session, barrier: u64) {
    let channel = meeting(barrier);
    send(session, channel, 1, 0);
}

/// The barrier let the thread go, after all who had come.
pub fn left(session: &mut Session, barrier: u64) {
    let channel = meeting(barrier);
    poll(session, channel, true);
}

// Processes

fn children() -> u32 {
    object(key(&[sort::CHILDREN]), ObjectKind::State, "child processes")
}

/// A child process begins: what it does comes after.
pub fn forked(session: &mut Session) {
    // SAFETY: callers have the turn.
    unsafe { known() }.has_children = true;
    let channel = children();
    send(session, channel, 1, 0);
}

/// A child process has ended, or something came that a child may have sent.
pub fn heard_of_children(session: &mut Session) {
    // SAFETY: callers have the turn.
    if unsafe { known() }.has_children {
        let channel = children();
        poll(session, channel, true);
    }
}

// Names of files

/// The channel of a name in a directory.
pub fn name_of(directory: c_int, path: *const libc::c_char) -> Option<u32> {
    if path.is_null() || alone() {
        return None;
    }
    // SAFETY: the program's text.
    let path = unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes();
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let (folder, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (&b"/"[..], &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b"."[..], path),
    };
    let folder = [folder, b"\0"].concat();
    // SAFETY: `status` is writable, the text ends in NUL.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let at = [directory as u64, folder.as_ptr() as u64, (&raw mut status) as u64, 0, 0, 0];
        (sys::call(libc::SYS_newfstatat, at) == 0).then_some(status)?
    };
    let key = digest(key(&[sort::NAME, status.st_dev, status.st_ino]), name);
    let shown = format!("file {}", String::from_utf8_lossy(name));
    Some(object(key, ObjectKind::State, &shown))
}

/// The name came to stand for another file, or for none.
pub fn renamed(session: &mut Session, name: Option<u32>) {
    if let Some(channel) = name {
        change(session, channel);
    }
}

// What the C library keeps

/// Streams by their address: how many lay there before, and whether the last one is closed.
static STREAMS: TurnCell<BTreeMap<u64, (u64, bool)>> = TurnCell::new(BTreeMap::new());

/// The C library has allocated memory for itself there: a stream that was closed there is not the next one.
pub fn allocated_by_library(address: u64) {
    // SAFETY: callers have the turn.
    if let Some((before, is_closed)) = unsafe { STREAMS.get() }.get_mut(&address)
        && std::mem::take(is_closed)
    {
        *before += 1;
    }
}

/// What the pass calls it (`foretell-instrument`, `library`).
const ENVIRONMENT: &[u8] = b"the environment";
const NAMES_OF_SOCKETS: &[u8] = b"the names of sockets";

/// The C library is about to look at, or change, what it keeps between its calls (`foretell_abi::LOOKS`):
/// a stream, or what the name says. Standard streams are none: what order their lines have is lawful.
pub fn library_state(session: &mut Session, stream: u64, name: &[u8], effect: u32) {
    let _errno = Errno::keep();
    match stream {
        0 if name == ENVIRONMENT => kept::environment_used(session),
        0 => {}
        stream => kept::stream_used(session, stream, effect & foretell_abi::ENDS != 0),
    }
    let (channel, file) = match stream {
        0 => {
            let shown = format!("state of {}", String::from_utf8_lossy(name));
            (object(digest(key(&[sort::LIBRARY]), name), ObjectKind::State, &shown), -1)
        }
        stream => {
            // SAFETY: the program hands it to the library next.
            let file = unsafe { libc::fileno(stream as *mut libc::FILE) };
            if (0..=2).contains(&file) {
                return;
            }
            // SAFETY: callers have the turn.
            let (before, is_closed) = unsafe { STREAMS.get() }.entry(stream).or_default();
            let key = key(&[sort::STREAM, stream, *before]);
            *is_closed |= effect & foretell_abi::ENDS != 0;
            (object(key, ObjectKind::State, "state of a stream"), file)
        }
    };
    if effect & (foretell_abi::LOOKS | foretell_abi::ENDS) != 0 {
        poll(session, channel, true);
    }
    if effect & foretell_abi::LOOKS != 0 {
        examined(session, file);
    } else if effect & foretell_abi::VARIES != 0
        && let Some(status) = status(file)
    {
        // SAFETY: callers have the turn.
        let printed = unsafe { known() }.printed.get_or_insert_default();
        printed.insert((status.st_dev, status.st_ino));
    }
    if effect & foretell_abi::CHANGES != 0 {
        send(session, channel, 1, 0);
    }
    // SAFETY: as above.
    if effect & foretell_abi::FLUSHES != 0
        && stream != 0
        && unsafe { __fwritable(stream as *mut libc::FILE) } != 0
    {
        changed(session, file);
    }
}

/// A stream whose buffer is memory of the program is used. What is in there changes unseen.
pub fn buffer_used(session: &mut Session, buffer: u64) {
    let fits = |model: &Model| matches!(model, Model::Channel(_));
    let make = || Model::Channel(ObjectKind::State);
    let channel = objects::get(session.turn(), buffer, fits, make).number;
    poll(session, channel, true);
}

/// Somebody uses the name of a socket.
pub fn names_used(session: &mut Session) {
    library_state(session, 0, NAMES_OF_SOCKETS, foretell_abi::LOOKS);
}

/// Code that is not seen was called: it may look at what it keeps between its calls, and change it. `object`:
/// what it keeps belongs to this object; 0: to all such code together.
pub fn foreign_state(session: &mut Session, at: u64) {
    if alone() {
        return;
    }
    let _errno = Errno::keep();
    let channel = match at {
        0 => {
            let name = "code that is not instrumented";
            let key = digest(key(&[sort::LIBRARY]), name.as_bytes());
            object(key, ObjectKind::State, &format!("state of {name}"))
        }
        at => {
            let shown = "state of an object of a library";
            object(key(&[sort::STREAM, at]), ObjectKind::State, shown)
        }
    };
    poll(session, channel, true);
    send(session, channel, 1, 0);
}

unsafe extern "C" {
    /// glibc: whether the stream can be written to.
    fn __fwritable(stream: *mut libc::FILE) -> c_int;
}

/// The content of an open file was changed by something else than a write.
pub fn changed(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    if let Some(content) = content_of(file) {
        change(session, content);
    }
}

/// Somebody looks at a file that functions for output have written: what they were given was not held.
fn note_printed(session: &Session, file: c_int) {
    // SAFETY: callers have the turn.
    let printed = unsafe { known() }.printed.as_ref();
    let is_printed = |status: libc::stat| {
        printed.is_some_and(|files| files.contains(&(status.st_dev, status.st_ino)))
    };
    if status(file).is_some_and(is_printed) {
        outside::note(session.me.number, Cause::PrintedFile, 0, "", session.place);
    }
}

/// Somebody looked at an open file: its size, its times.
pub fn examined(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    note_printed(session, file);
    if let Some(content) = content_of(file) {
        poll(session, content, true);
    }
}

/// Somebody looked whether there is a file of this name.
pub fn looked_up(session: &mut Session, name: Option<u32>, found: bool) {
    if let Some(channel) = name {
        poll(session, channel, found);
    }
}
