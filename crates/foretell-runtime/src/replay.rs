//! Following a sync-only log under the scheduler: the second of the two steps of 002.
//!
//! Each operation on a synchronisation object waits until its place in the object's recorded order
//! has come, results of tries and timed waits are those of the log, and inputs are fed back. A
//! thread that is past the end of its log goes on freely. A run without data races does again what
//! it did; a racy one may diverge, which is said.

use foretell_wire::End;
use foretell_wire::sync_log::{self, Cursor, Kind, Places, ThreadLog};

use crate::scheduler;
use crate::thread::{Thread, Wait};
use crate::turn::TurnCell;

/// The logs of threads that have not begun yet; none when nothing is followed.
static LOGS: TurnCell<Vec<ThreadLog>> = TurnCell::new(Vec::new());
static PLACES: TurnCell<Places> = TurnCell::new(Places::new());

/// Reads the log.
pub fn load(content: &[u8]) -> Result<(), String> {
    let words: Vec<u64> = content
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect();
    let threads =
        sync_log::parse(&words).map_err(|at| format!("the log makes no sense at word {at}"))?;
    // SAFETY: called before there is any thread.
    unsafe { *LOGS.get() = threads };
    Ok(())
}

/// The log of a thread that begins; empty when there is none.
pub fn cursor(path: &[u32]) -> Cursor {
    // SAFETY: callers have the turn.
    Cursor::new(unsafe { LOGS.get() }, path)
}

/// The thread's next entry, which must be of one of these kinds; `None` past the end of the log.
pub fn peek(me: &Thread, kinds: &[Kind]) -> Option<(Kind, u32)> {
    if me.unlogged {
        return None;
    }
    let (kind, number) = me.replay.next()?;
    if !kinds.contains(&kind) {
        scheduler::stop(End::LeftSchedule, &me.replay.strays(&me.path, kinds[0], me.slots.index));
    }
    Some((kind, number))
}

/// Passes the entry.
pub fn pass(me: &mut Thread) {
    me.replay.pass();
}

/// Whether the operation with this place in the object's order may happen now.
pub fn is_due(object: u32, place: u32) -> bool {
    // SAFETY: callers have the turn.
    unsafe { PLACES.get() }.is_due(object, place)
}

/// Waits until the thread's next operation on the object is due; for operations that need nothing
/// else.
pub fn await_place(me: &mut Thread, object: u32, kind: Kind) {
    while let Some((_, place)) = peek(me, &[kind])
        && !is_due(object, place)
    {
        scheduler::block(me, Wait::Object(object), None);
    }
}

/// Whether the thread's next operation of this kind on the object may happen: it is due, or the
/// log is over.
pub fn may(me: &Thread, object: u32, kinds: &[Kind]) -> bool {
    peek(me, kinds).is_none_or(|(_, place)| is_due(object, place))
}

/// The operation has happened: the next one on the object is due.
pub fn done(me: &mut Thread, object: u32) {
    if !me.unlogged && me.replay.next().is_some() {
        pass(me);
        // SAFETY: callers have the turn.
        unsafe { PLACES.get() }.done(object);
        scheduler::wake(Wait::Object(object));
    }
}

/// The input that the thread got here: the result, and bytes.
pub fn input(me: &mut Thread) -> Option<(u64, Vec<u8>)> {
    let (_, length) = peek(me, &[Kind::Input])?;
    let mut bytes = me.replay.input(length);
    let rest = bytes.split_off(bytes.len().min(8));
    let mut result = [0; 8];
    result[..bytes.len()].copy_from_slice(&bytes);
    Some((u64::from_le_bytes(result), rest))
}
