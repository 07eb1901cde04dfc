//! What threads share in a descriptor besides what goes through it: that it is open, and the position in a file.
//!
//! A descriptor that is closed is gone, and its number may stand for another file soon: who uses it must come
//! before. Where two threads read from one descriptor of a file, each gets what the other has left.

use foretell_wire::ObjectKind;
use foretell_wire::outside::Cause;
use libc::c_int;

use super::{Errno, alone, content_of, key, known, object, poll, send, sort, status};
use crate::outside;
use crate::scheduler;
use crate::thread::Session;

/// The standard ones are closed by nobody who does not mean it.
const FIRST: c_int = 3;

/// The channel of a descriptor, as long as it is not closed.
fn descriptor(file: c_int) -> u32 {
    // SAFETY: callers have the turn.
    let closed = unsafe { known() }.closed.get_or_insert_default();
    let times = closed.get(&file).copied().unwrap_or(0);
    generation(file, times)
}

/// The same, of the one that had the number after so many others.
fn generation(file: c_int, others: u64) -> u32 {
    let key = key(&[sort::DESCRIPTOR, file as u64, others]);
    object(key, ObjectKind::State, &format!("state of descriptor {file}"))
}

/// The thread is about to use the descriptor, and may wait there.
pub fn used(session: &mut Session, file: c_int) {
    if file < FIRST || alone() {
        return;
    }
    session.point();
    let _errno = Errno::keep();
    // SAFETY: callers have the turn.
    let closed = unsafe { known() }.closed.get_or_insert_default();
    let times = closed.get(&file).copied().unwrap_or(0);
    // Where it is not open any more, in another order it would be the one that was closed.
    let channel = match status(file) {
        None if times > 0 => generation(file, times - 1),
        _ => generation(file, times),
    };
    poll(session, channel, true);
}

/// The thread is about to close the descriptor.
pub fn closes(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    if file < FIRST || alone() {
        return;
    }
    if status(file).is_none() {
        // In another order it might be open, and somebody else's.
        let what = "close of a descriptor that is not open";
        outside::note(session.me.number, Cause::Varying, 0, what, session.place);
        return;
    }
    if scheduler::is_awaited(file) {
        // Where the system had it already, the wait goes on; here it ends.
        outside::note_outcome(session, "a wait for a descriptor that is closed meanwhile");
    }
    let channel = descriptor(file);
    send(session, channel, 1, 0);
    // SAFETY: callers have the turn.
    *unsafe { known() }.closed.get_or_insert_default().entry(file).or_insert(0) += 1;
}

/// So many descriptors more may another interleaving have open at once.
const MARGIN: u64 = 64;

/// The thread was given a descriptor (or none, where it is negative). Where the table of descriptors is nearly full,
/// whether there is room for it is not varied.
pub fn came(session: &mut Session, file: c_int) {
    if alone() {
        return;
    }
    let _errno = Errno::keep();
    // SAFETY: a plain structure that the call fills.
    let room = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur
    };
    if u64::try_from(file).is_ok_and(|file| file + MARGIN >= room) {
        outside::note_outcome(session, "a descriptor where there may be no room for one");
    }
}

/// The thread is about to change what the descriptor stands for, or how it behaves.
pub fn changes(session: &mut Session, file: c_int) {
    if file >= 0 && !alone() {
        session.point();
        let channel = descriptor(file);
        send(session, channel, 1, 0);
    }
}

/// The thread looks how the descriptor behaves.
pub fn looks(session: &mut Session, file: c_int) {
    if file >= 0 && !alone() {
        session.point();
        let channel = descriptor(file);
        poll(session, channel, true);
    }
}

/// The file was mapped so that what is stored there goes into it. Where it is mapped twice, one variable has two
/// addresses, of which nothing is known.
pub fn mapped(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    let Some(status) = status(file) else { return };
    // SAFETY: callers have the turn.
    let files = unsafe { known() }.mapped.get_or_insert_default();
    if !files.insert((status.st_dev, status.st_ino)) {
        outside::note(session.me.number, Cause::MappedFile, 0, "mmap", session.place);
    }
}

/// What the thread got from the file depends on its position, which is another one now.
pub fn moved(session: &mut Session, file: c_int) {
    let _errno = Errno::keep();
    if content_of(file).is_none() {
        return;
    }
    let channel = object(
        key(&[sort::POSITION, descriptor(file).into()]),
        ObjectKind::State,
        &format!("state of the position of descriptor {file}"),
    );
    poll(session, channel, true);
    send(session, channel, 1, 0);
}
