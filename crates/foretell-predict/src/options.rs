//! What to look for, in which model, and how hard.

use std::path::PathBuf;
use std::time::Instant;

use foretell_solve::encode::Mode;
use foretell_solve::{Backend, Budget};

use crate::filter::Filters;
use crate::progress::Progress;
use crate::property::FindingKind;
use crate::region::Regions;

/// Everything that [`crate::predict`] can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to look for.
    pub properties: Vec<FindingKind>,
    /// Which interleavings count.
    pub model: Model,
    /// Whole linearizations or erroneous prefixes (000 section 5).
    pub mode: Mode,
    /// Who decides.
    pub backend: Backend,
    /// For each question.
    pub budget: Budget,
    /// Only interleavings with at most so many context switches (004 section 5).
    pub context_switches: Option<u32>,
    /// Blocks that should be atomic.
    pub regions: Regions,
    /// Which patterns are left out.
    pub filters: Filters,
    /// How much of a long trace is looked at for one question.
    pub window: Window,
    /// How many instances of one question are asked about.
    pub instances: usize,
    /// So many places where threads may leave the path of the run are reported at most.
    pub divergences: usize,
    /// Only part `.0` of `.1` of the questions (from 0), so that several processes can share them.
    pub partition: Option<(u32, u32)>,
    /// Write every question to the solver into this folder, as SMT-LIB.
    pub dump_smt2: Option<PathBuf>,
    /// So many questions about a long trace are asked at once.
    pub jobs: usize,
    /// No question is asked after it; those that are left have [`crate::Reason::NotAsked`] for a reason.
    pub deadline: Option<Instant>,
    /// Told how far the work has come.
    pub progress: Progress,
}

impl Options {
    /// Is the time over, or were we asked to end?
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || foretell_guard::stop::is_over()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            properties: FindingKind::asked().collect(),
            model: Model::Symbolic,
            mode: Mode::Prefix,
            backend: Backend::default(),
            budget: Budget::default(),
            context_switches: None,
            regions: Regions::Automatic,
            filters: Filters::default(),
            window: Window::default(),
            instances: 64,
            divergences: 32,
            partition: None,
            dump_smt2: None,
            jobs: 1,
            deadline: None,
            progress: Progress::default(),
        }
    }
}

/// Which interleavings are predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// The concurrent trace program: reads may return other values as long as the recorded path
    /// goes on.
    #[default]
    Symbolic,
    /// The maximal causal model: every read returns what it did.
    Causal,
}

/// How much of a long trace is encoded for one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// A trace with at most so many events is taken as a whole.
    pub whole: usize,
    /// So many recorded events before and after those of the question at first.
    pub first: usize,
    /// At most so many events in all.
    pub most: usize,
    /// What is open then is asked about in larger windows, up to the whole trace, as long as these have no
    /// more events together.
    pub further: usize,
    /// So many instances of a question are tried in a window of each size.
    pub instances: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { whole: 4096, first: 128, most: 2048, further: 1 << 24, instances: 8 }
    }
}
