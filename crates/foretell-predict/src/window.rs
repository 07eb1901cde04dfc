//! Windows of a long trace.
//!
//! What lies before a window has happened as recorded, so the state at its start is known, and a
//! recorded prefix followed by another interleaving of the window is a feasible prefix: what a
//! window shows is real. What it does not show may still be possible with more events, so a proof
//! inside a window that is not the whole trace proves nothing and is told as `unknown`.

use std::sync::{Mutex, PoisonError};

use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::replay::Replay;
use foretell_trace::{EventId, Trace};

/// How many events lie between two kept states.
const EVERY: usize = 1 << 16;

/// States of the recorded run, kept so that a window anywhere is found quickly.
#[derive(Debug)]
pub struct Checkpoints<'t> {
    trace: &'t Trace,
    kept: Mutex<Vec<Replay<'t>>>,
}

impl<'t> Checkpoints<'t> {
    /// Nothing is replayed yet.
    pub fn new(trace: &'t Trace) -> Result<Self, BuildError> {
        Ok(Self { trace, kept: Mutex::new(vec![Replay::new(trace)?]) })
    }

    /// The CTP of the events from `from` up to and including `to`.
    pub fn window(&self, from: EventId, to: EventId) -> Result<ConcurrentTraceProgram, BuildError> {
        let mut start = self.before(from.index() / EVERY)?;
        start.advance_to(from)?;
        let last = to.index().min(self.trace.events.len() - 1);
        let events: Vec<EventId> = (from.index()..=last).map(EventId::from).collect();
        ConcurrentTraceProgram::build_window(&start, &events)
    }
}

impl<'t> Checkpoints<'t> {
    /// A copy of the state with this number; those before it are made where they are not there yet.
    fn before(&self, number: usize) -> Result<Replay<'t>, BuildError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.len() <= number {
            let mut next = kept[kept.len() - 1].clone();
            next.advance_to(EventId::from(kept.len() * EVERY))?;
            kept.push(next);
        }
        Ok(kept[number].clone())
    }
}

/// The borders of a window around some events, `radius` more on each side.
pub fn around(trace: &Trace, events: &[EventId], radius: usize) -> Option<(EventId, EventId)> {
    let first = events.iter().min()?.index().saturating_sub(radius);
    let last = (events.iter().max()?.index() + radius).min(trace.events.len() - 1);
    Some((EventId::from(first), EventId::from(last)))
}
