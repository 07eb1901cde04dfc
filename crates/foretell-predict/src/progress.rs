//! How far a long piece of work has come, for whoever wants to show it. Counting costs an atomic
//! addition; nobody has to look.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::FindingKind;
use crate::limits::MOST_FOUND;

/// What is being done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing that takes long.
    #[default]
    Idle,
    /// The program runs and is recorded.
    Recording,
    /// The filters look for what could go wrong.
    Candidates,
    /// Questions are decided.
    Solving,
    /// Predictions are forced on the program.
    Forcing,
    /// Other paths are explored.
    Exploring,
    /// Why it goes wrong is worked out, and what repairs it.
    Explaining,
    /// All executions of a program are looked at.
    Verifying,
}

const PHASES: [Phase; 8] = [
    Phase::Idle,
    Phase::Recording,
    Phase::Candidates,
    Phase::Solving,
    Phase::Forcing,
    Phase::Exploring,
    Phase::Explaining,
    Phase::Verifying,
];

/// Something that was found, in short. The report says it better; this is for the case that there is
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// It happened in a run of the program.
    pub confirmed: bool,
    /// What it is.
    pub kind: FindingKind,
    /// Where, and who.
    pub about: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = if self.confirmed { "confirmed" } else { "predicted" };
        write!(f, "{status}[{}]: {}", self.kind, self.about)
    }
}

/// Shared by those who work and those who watch.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    phase: AtomicU8,
    done: Arc<AtomicU64>,
    total: AtomicU64,
    found: Mutex<Vec<Found>>,
    explored: Mutex<Option<Explored>>,
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Classes of paths that are known.
    pub classes: usize,
    /// Questions about them that are open.
    pub open: usize,
    /// Runs of the program.
    pub runs: usize,
}

impl Progress {
    /// Something begins that has so many parts; 0 where that is not known.
    pub fn begin(&self, phase: Phase, total: usize) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.total.store(total as u64, Ordering::Relaxed);
        self.0.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// One part is done.
    pub fn advance(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    /// The parts that are done, for those who count by themselves.
    pub fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.done)
    }

    /// Something was found.
    pub fn found(&self, what: Found) {
        let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < MOST_FOUND && !found.contains(&what) {
            found.push(what);
        }
    }

    /// An exploration has come so far.
    pub fn explored(&self, explored: Explored) {
        self.0.phase.store(Phase::Exploring as u8, Ordering::Relaxed);
        *self.0.explored.lock().unwrap_or_else(PoisonError::into_inner) = Some(explored);
    }

    /// How far the exploration is, if one goes on.
    pub fn exploration(&self) -> Option<Explored> {
        *self.0.explored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found so far.
    pub fn found_so_far(&self) -> Vec<Found> {
        self.0.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is being done, how many parts are done, and of how many.
    pub fn state(&self) -> (Phase, u64, u64) {
        let phase = usize::from(self.0.phase.load(Ordering::Relaxed));
        (
            PHASES.get(phase).copied().unwrap_or_default(),
            self.0.done.load(Ordering::Relaxed),
            self.0.total.load(Ordering::Relaxed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_watches_sees_what_is_done() {
        let work = Progress::default();
        let watched = work.clone();
        assert_eq!(watched.state(), (Phase::Idle, 0, 0));
        for phase in PHASES {
            work.begin(phase, 3);
            work.advance();
            assert_eq!(watched.state(), (phase, 1, 3));
            work.counter().store(2, Ordering::Relaxed);
            assert_eq!(watched.state(), (phase, 2, 3));
        }
    }
}
