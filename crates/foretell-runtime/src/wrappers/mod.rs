//! The functions that stand in front of libc's: one file per family.
//!
//! Under the scheduler they are modelled by the runtime's own state (crate::objects), so that
//! nothing blocks in the kernel while a thread has the turn. Otherwise they call what the program
//! would have called.

pub(crate) mod barrier;
pub(crate) mod blocking;
pub(crate) mod c11;
pub(crate) mod condition;
pub(crate) mod exec;
pub(crate) mod files;
pub(crate) mod futex;
pub(crate) mod ipc;
pub(crate) mod kept;
pub(crate) mod memory;
pub(crate) mod mutex;
pub(crate) mod notify;
pub(crate) mod once;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod rust;
pub(crate) mod rust_channel;
pub(crate) mod rust_scope;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
pub(crate) mod signals;
pub(crate) mod sort;
pub(crate) mod threads;
pub(crate) mod time;
pub(crate) mod waiting;
pub(crate) mod wide_atomic;

use foretell_wire::Kind;
use libc::c_int;

use crate::thread::Session;

/// The object with this number is destroyed.
pub fn destroyed(session: &mut Session, number: u32) {
    session.point();
    session.event(Kind::Destroy, 0, [number.into()]);
    session.point();
}

/// Sets `errno` and gives -1.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = error };
    -1
}
