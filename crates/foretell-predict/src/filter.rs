//! The filters of 002 (chapter 5, "Analysis"): heuristics about what the programmer meant. Each is the
//! user's choice, and what it leaves out is counted.
//!
//! - *Loop*: P and C are the same instruction, so the thread came round again.
//! - *Local distance*: so much lies between P and C that they are hardly meant to be atomic. The
//!   thesis counts instructions; a trace has events.
//! - *Known good*: the pattern took place in a run that the user calls correct.

use std::collections::HashSet;

use foretell_trace::{EventId, Site, Trace};

use crate::candidates::Candidate;
use crate::pattern::PatternKind;

/// Which patterns are left out.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// Those whose P and C are the same instruction.
    pub loops: bool,
    /// Those with more events of the thread between P and C than this.
    pub distance: Option<u32>,
    /// Those that took place in correct runs ([`crate::candidates::present_patterns`]).
    pub known_good: HashSet<(PatternKind, [Site; 3])>,
}

/// How many candidates each filter left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Loops.
    pub loops: usize,
    /// Too far apart.
    pub distant: usize,
    /// Seen in a correct run.
    pub known_good: usize,
}

impl Filtered {
    /// All of them.
    pub fn total(self) -> usize {
        self.loops + self.distant + self.known_good
    }
}

impl Filters {
    /// Leaves out what the filters say, and counts it.
    pub fn apply(&self, trace: &Trace, candidates: &mut Vec<Candidate>) -> Filtered {
        let mut filtered = Filtered::default();
        candidates.retain_mut(|candidate| {
            let [first, _, second] = candidate.kind.writes();
            if self.loops && candidate.locations[0] == candidate.locations[2] && first == second {
                filtered.loops += 1;
                return false;
            }
            let index = |event: EventId| trace.event(event).index;
            if let Some(most) = self.distance {
                candidate.instances.retain(|pattern| {
                    index(pattern.second).saturating_sub(index(pattern.first) + 1) <= most
                });
            }
            if candidate.instances.is_empty() {
                filtered.distant += 1;
                return false;
            }
            let known = sites(trace, candidate)
                .is_some_and(|sites| self.known_good.contains(&(candidate.kind, sites)));
            filtered.known_good += usize::from(known);
            !known
        });
        filtered
    }
}

fn sites(trace: &Trace, candidate: &Candidate) -> Option<[Site; 3]> {
    let pattern = candidate.instances.first()?;
    let site = |event: EventId| Some(trace.sites[trace.event(event).site?.index()].clone());
    Some([site(pattern.first)?, site(pattern.remote)?, site(pattern.second)?])
}
