//! Atomic accesses of 16 bytes. No access of the trace is that wide, so each of them is made under a lock of its own
//! that goes with the object, as libatomic makes them on processors without such an instruction: what is read and
//! written then is one step for others.

use foretell_wire::ObjectKind;

use super::mutex::{self, Patience};
use crate::thread::Session;

/// The access begins; no log of synchronisation has it.
pub fn begin(session: &mut Session, object: u64) {
    session.me.unlogged = true;
    let lock = mutex::at(session.turn(), object, ObjectKind::Mutex);
    mutex::acquire(session, lock, Patience::Until(None));
}

/// The access is over, and what it read and wrote is recorded.
pub fn end(session: &mut Session, object: u64) {
    let lock = mutex::at(session.turn(), object, ObjectKind::Mutex);
    mutex::release(session, lock);
    session.me.unlogged = false;
}
