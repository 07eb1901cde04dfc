//! How large a trace may become in memory.
//!
//! A compressed file can be a thousandth of what is in it. Where events are streamed that does no
//! harm; where they are collected, the limit set here ends the reading with an error.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Position, ReadError};
use crate::event::Event;

static MOST_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);

/// From now on the events of a trace that is read may take so many bytes of memory.
pub fn set_memory(bytes: u64) {
    MOST_BYTES.store(bytes, Ordering::Relaxed);
}

/// May there be so many events?
pub(crate) fn check(events: usize) -> Result<(), ReadError> {
    let most = MOST_BYTES.load(Ordering::Relaxed);
    let bytes = (events as u64).saturating_mul(size_of::<Event>() as u64);
    if bytes <= most {
        return Ok(());
    }
    let message = format!("more than {} MiB of events", most >> 20);
    Err(ReadError::new(Position::None, message)
        .help("raise --max-memory if the machine has it, or cut the trace"))
}
