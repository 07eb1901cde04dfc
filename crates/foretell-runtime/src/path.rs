//! Recording execution paths (002, "Execution Path Analysis"): every branch of instrumented code,
//! behind a predictor, so that only mispredictions are sent.
//!
//! The hooks here are called for all branches and switches, also those that depend on no read; they
//! record no events. Branches of code that is not instrumented are not seen, nor those of a signal
//! handler that interrupts the runtime.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use foretell_abi::Site;
use foretell_wire::predictor::{Branch, Predictor};
use foretell_wire::record;

use crate::local;
use crate::recorder::{Recorder, recorder};
use crate::scheduler::scheduler;

/// Whether paths are recorded.
static ON: AtomicBool = AtomicBool::new(false);

/// From now on threads get a path.
pub fn turn_on() {
    ON.store(true, Relaxed);
}

/// A thread's path.
pub struct Path {
    predictor: Box<Predictor>,
    /// Branches since the last one that was not predicted.
    predicted: u64,
}

impl Path {
    /// Whether paths are recorded.
    pub fn is_on() -> bool {
        ON.load(Relaxed)
    }

    /// A path for a new thread, if paths are recorded.
    pub fn new() -> Option<Path> {
        Path::is_on().then(|| Path { predictor: Predictor::new(), predicted: 0 })
    }

    #[inline(always)]
    fn branch(&mut self, site: *const Site, outcome: u64) {
        if self.predictor.observe(Branch::new(site as u64, outcome)) {
            self.predicted += 1;
        } else {
            self.mispredicted(site, outcome);
        }
    }

    #[cold]
    fn mispredicted(&mut self, site: *const Site, outcome: u64) {
        // SAFETY: a thread of ours that runs has the turn.
        let recorder = unsafe { recorder() };
        let place = recorder.site(site);
        let predicted_before = self.predicted;
        recorder.record(0, place, &record::Mispredicted { outcome, predicted_before });
        self.predicted = 0;
    }
}

/// A branch of this thread, unless it is inside the runtime or has no path.
#[inline(always)]
unsafe fn note(site: *const Site, outcome: impl FnOnce() -> u64) {
    let current = local::current();
    if current.is_null() {
        return;
    }
    // SAFETY: this thread's own state.
    let me = unsafe { &mut *current };
    if me.branches.is_none() || me.is_inside() {
        return;
    }
    me.enter();
    if let Some(path) = &mut me.branches {
        path.branch(site, outcome());
    }
    me.leave();
}

#[unsafe(no_mangle)]
#[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_path(outcome: u32, site: *const Site) {
    // SAFETY: as the contract says.
    unsafe { note(site, || outcome.into()) };
}

#[unsafe(no_mangle)]
#[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_path_switch(
    value: u64,
    cases: *const u64,
    count: u64,
    site: *const Site,
) {
    // SAFETY: the pass passes an array of so many cases.
    unsafe {
        note(site, || {
            let cases = std::slice::from_raw_parts(cases, count as usize);
            cases.iter().position(|&case| case == value).map_or(0, |case| case as u64 + 1)
        });
    }
}

/// The run is about to end: says how far all threads have come.
pub fn end(recorder: &mut Recorder) {
    // SAFETY: the caller has the turn; the states of threads are never freed.
    unsafe {
        for &thread in &scheduler().threads {
            end_of(recorder, (*thread).number, &mut (*thread).branches);
        }
    }
}

/// The thread has no more branches.
pub fn end_of(recorder: &mut Recorder, thread: u32, path: &mut Option<Path>) {
    if let Some(path) = path.take() {
        let predicted_since = path.predicted;
        recorder.record(0, 0, &record::PathEnd { thread, predicted_since });
    }
}
