//! The last resort against work that does not come to its end within its time limit: a report of what was
//! found until then, and foretell ends. Every part of a test keeps the limit by itself; this is for the
//! parts that nobody thought of.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foretell_guard::say;

use crate::exit::Exit;
use crate::progress;

/// Reports what was found until now; `None` where there is nothing to report yet.
type Reports = Box<dyn FnMut() -> Option<Exit> + Send>;

/// What is being written when the time is over may still be finished: so long, and a twentieth of the limit.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether there is something to report, when the time is over.
const LOOK: Duration = Duration::from_millis(100);

/// Ends foretell after its deadline, unless it is dropped before.
pub struct Watch {
    _stop: Option<Sender<()>>,
    reports: Arc<Mutex<Option<Reports>>>,
}

impl Watch {
    /// For work that was begun then and may take so long. It gets some more; and where nothing was recorded
    /// yet, more than that: without it there is nothing to report.
    pub fn begin(started: Instant, limit: Duration) -> Self {
        let soon = limit.saturating_add(limit / 20).saturating_add(GRACE);
        let last = limit.saturating_add(limit / 4).saturating_add(Duration::from_secs(10));
        let (stop, stopped) = channel::<()>();
        let reports: Arc<Mutex<Option<Reports>>> = Arc::default();
        let reporting = Arc::clone(&reports);
        let watch = move || {
            let mut left = soon.saturating_sub(started.elapsed());
            while stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                // Whoever would report now waits until foretell ends.
                let mut reports = lock(&reporting);
                if let Some(exit) = reports.as_mut().and_then(|report| report()) {
                    foretell_guard::end();
                    std::process::exit(exit.code().into());
                }
                if started.elapsed() >= last {
                    end(limit);
                }
                left = LOOK;
            }
        };
        // Without a thread the limits of the parts have to do.
        let thread = std::thread::Builder::new().name("limit".into()).spawn(watch);
        Self { _stop: thread.is_ok().then_some(stop), reports }
    }

    /// From now on there may be something to report.
    pub fn reports_by(&self, report: impl FnMut() -> Option<Exit> + Send + 'static) {
        *lock(&self.reports) = Some(Box::new(report));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *lock(&self.reports) = None;
    }
}

fn lock(reports: &Mutex<Option<Reports>>) -> MutexGuard<'_, Option<Reports>> {
    reports.lock().unwrap_or_else(PoisonError::into_inner)
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
