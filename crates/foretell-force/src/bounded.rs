//! Work that may take too long or panic, kept away from what has been found so far.
//!
//! The work runs in a thread of its own. When its time is over nobody waits for it any longer: the
//! thread is left to itself, and whatever it would have found is lost, but nothing else is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The time was over.
    Late,
    /// It panicked: a bug of ours.
    Panicked(String),
}

/// Does the work, for so long at most.
pub fn bounded<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Lost> {
    let (sender, receiver) = channel();
    let spawned = std::thread::Builder::new().name("bounded".into()).spawn(move || {
        // Nobody may be waiting any more.
        let _ = sender.send(guarded(work));
    });
    if let Err(error) = spawned {
        return Err(Lost::Panicked(format!("no thread could be started: {error}")));
    }
    match receiver.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(Lost::Late),
        Err(RecvTimeoutError::Disconnected) => Err(Lost::Panicked("a thread went away".into())),
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
