//! Work that may take too long or panic, kept away from what has been found so far.
//!
//! The work runs in a thread of its own. When its time is over nobody waits for it any longer: the
//! thread is left to itself, and whatever it would have found is lost, but nothing else is. The same
//! happens when foretell has to end, after a moment in which work that looks at
//! [`foretell_guard::stop`] can come to a close by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foretell_guard::stop;

/// How long work may take to come to a close when foretell has to end.
const CLOSE: Duration = Duration::from_secs(3);

/// How often it is looked whether foretell has to end.
const LOOK: Duration = Duration::from_millis(20);

/// The stack of the work, as large as that of a command.
const STACK: usize = 64 << 20;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The time was over.
    Late,
    /// It panicked: a bug of ours.
    Panicked(String),
}

impl Lost {
    /// What the panic said, if it was one.
    pub fn panic(self) -> Option<String> {
        match self {
            Lost::Late => None,
            Lost::Panicked(what) => Some(what),
        }
    }
}

/// Does the work, for so long at most.
pub fn bounded<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Lost> {
    let (sender, receiver) = channel();
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let taken = Arc::clone(&work);
    let thread = std::thread::Builder::new().name("bounded".into()).stack_size(STACK);
    let spawned = thread.spawn(move || {
        if let Some(work) = take(&taken) {
            // Nobody may be waiting any more.
            let _ = sender.send(guarded(work));
        }
    });
    if spawned.is_err() {
        // Better late than never: what the work has of limits of its own still holds.
        return take(&work).map_or(Err(Lost::Late), guarded);
    }
    let begin = Instant::now();
    let mut limit = limit;
    let mut ends = false;
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Lost::Panicked("a thread went away".into()));
            }
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(Lost::Late),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !ends && stop::is_over() {
            ends = true;
            limit = limit.min(begin.elapsed() + CLOSE);
        }
    }
}

/// Does the work here; a panic is a result like others.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Lost> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Lost::Panicked(text.unwrap_or_else(|| "a panic without words".into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_a_panic_and_no_end() {
        let long = Duration::from_secs(600);
        assert_eq!(bounded(long, || 7), Ok(7));
        assert_eq!(bounded(long, || -> u8 { panic!("oh") }), Err(Lost::Panicked("oh".into())));
        let (_keep, never) = channel::<()>();
        let waits = move || _ = never.recv();
        assert_eq!(bounded(Duration::from_millis(1), waits), Err(Lost::Late));
        assert_eq!(guarded(|| -> u8 { panic!("{}", 1) }), Err(Lost::Panicked("1".into())));
    }
}
