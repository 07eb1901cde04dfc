//! The last resort against work that does not come to its end within its time limit: no report is better
//! than one that the user waits for in vain. Every part of a test keeps the limit by itself; this is for
//! the parts that nobody thought of.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use foretell_guard::say;

use crate::exit::Exit;
use crate::progress;

/// Ends foretell after its deadline, unless it is dropped before.
pub struct Watch {
    _stop: Option<Sender<()>>,
}

impl Watch {
    /// For work that was begun then and may take so long. It gets some more: what is being written when the time
    /// is over may still be finished.
    pub fn begin(started: Instant, limit: Duration) -> Self {
        let most = limit.saturating_add(limit / 4).saturating_add(Duration::from_secs(10));
        let (stop, stopped) = channel::<()>();
        let watch = move || {
            let left = most.saturating_sub(started.elapsed());
            if stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                end(limit);
            }
        };
        // Without a thread the limits of the parts have to do.
        let thread = std::thread::Builder::new().name("limit".into()).spawn(watch);
        Self { _stop: thread.is_ok().then_some(stop) }
    }
}

/// Says what was found so far and ends the process.
fn end(limit: Duration) -> ! {
    let found = progress::found_so_far();
    say!(
        "foretell: the time limit of {} s is over and there is no report yet: there will be none",
        limit.as_secs()
    );
    found.iter().for_each(|found| say!("foretell:   found: {found}"));
    let exit = match found.iter().map(|found| found.confirmed).max() {
        Some(true) => Exit::Confirmed,
        Some(false) => Exit::Predicted,
        None => Exit::Incomplete,
    };
    foretell_guard::end();
    std::process::exit(exit.code().into())
}
