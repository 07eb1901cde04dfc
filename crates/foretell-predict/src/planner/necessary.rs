//! What must have taken place before an event in every precisely predictable run, computed once for
//! a trace: program order, fork and join, and the writes that a read needs because no others make
//! its value. A goal that contradicts it has no plan, and that is known without a search.
//!
//! Guaranteed: what is said to be necessary is. Missed: what follows from locks and from writes that
//! must not come in between; that is left to the search.

use foretell_trace::EventId;
use rustc_hash::FxHashMap;

use crate::limits::MOST_NECESSARY;

use super::compiled_goal::CompiledGoal;
use super::machine::{Domain, Step};

/// For each event and thread: so many events of the thread come before it in every run.
pub(super) struct Necessary {
    threads: usize,
    rows: Vec<u32>,
}

impl Necessary {
    /// One pass over the recorded run.
    pub(super) fn new(domain: &Domain) -> Option<Self> {
        let threads = domain.chains.len();
        let total = domain.steps.len();
        if total.checked_mul(threads)? > MOST_NECESSARY {
            return None;
        }
        let mut firsts: FxHashMap<(u32, u64), Vec<(u32, EventId)>> = FxHashMap::default();
        for position in 0..total {
            let event = EventId::from(position);
            let (thread, _) = domain.places[position];
            for &written in domain.writes(event) {
                let firsts = firsts.entry(written).or_default();
                if firsts.iter().all(|&(other, _)| other != thread) {
                    firsts.push((thread, event));
                }
            }
        }
        let mut table = Self { threads, rows: Vec::with_capacity(total * threads) };
        let mut forks: Vec<Option<EventId>> = vec![None; threads];
        let mut row = vec![0; threads];
        for position in 0..total {
            let event = EventId::from(position);
            let (thread, index) = domain.places[position];
            row.fill(0);
            if let Some(before) = index.checked_sub(1) {
                let before = domain.chains[thread as usize][before as usize];
                row.copy_from_slice(table.row(before));
            } else if let Some(fork) = forks[thread as usize] {
                table.join(&mut row, domain, fork);
            }
            row[thread as usize] = index;
            match domain.steps[position] {
                Step::Fork(child) => forks[child as usize] = forks[child as usize].or(Some(event)),
                Step::Join(child) => {
                    if let Some(end) = domain.end_of(child).filter(|&end| end < event) {
                        table.join(&mut row, domain, end);
                    }
                }
                _ => {}
            }
            for &(cell, value) in domain.reads(event) {
                if domain.initially(cell) != value
                    && let Some(firsts) = firsts.get(&(cell, value))
                {
                    table.join_one_of(&mut row, domain, event, firsts);
                }
            }
            table.rows.extend_from_slice(&row);
        }
        Some(table)
    }

    fn row(&self, event: EventId) -> &[u32] {
        &self.rows[event.index() * self.threads..][..self.threads]
    }

    /// The other event has to take place, with all that it needs.
    fn join(&self, row: &mut [u32], domain: &Domain, other: EventId) {
        for (mine, theirs) in row.iter_mut().zip(self.row(other)) {
            *mine = (*mine).max(*theirs);
        }
        let (thread, index) = domain.places[other.index()];
        row[thread as usize] = row[thread as usize].max(index + 1);
    }

    /// One of these has to take place before the event: what all of them need is needed. Nothing is
    /// known of those that were recorded later.
    fn join_one_of(
        &self,
        row: &mut [u32],
        domain: &Domain,
        event: EventId,
        producers: &[(u32, EventId)],
    ) {
        let (own, _) = domain.places[event.index()];
        let others = || producers.iter().filter(|&&(thread, _)| thread != own);
        let by_itself = producers.iter().any(|&(thread, first)| thread == own && first < event);
        if by_itself || others().any(|&(_, first)| first > event) {
            return;
        }
        let mut common: Option<Vec<u32>> = None;
        for &(_, first) in others() {
            let mut needs = vec![0; self.threads];
            self.join(&mut needs, domain, first);
            match &mut common {
                None => common = Some(needs),
                Some(common) => {
                    common.iter_mut().zip(needs).for_each(|(all, one)| *all = one.min(*all));
                }
            }
        }
        for (mine, needed) in row.iter_mut().zip(common.into_iter().flatten()) {
            *mine = (*mine).max(needed);
        }
    }

    /// Does the goal contradict what is necessary?
    pub(super) fn refuses(&self, domain: &Domain, goal: &CompiledGoal) -> bool {
        let Some(sequence) = goal.sequence() else { return false };
        let needs = |event: EventId, other: EventId| {
            let (thread, index) = domain.places[other.index()];
            self.row(event)[thread as usize] > index
        };
        let Some((&last, before)) = sequence.steps.split_last() else { return false };
        // The last event may see another value, so what counts is what its thread did before.
        let (thread, index) = domain.places[last.index()];
        let came = index.checked_sub(1).map(|at| domain.chains[thread as usize][at as usize]);
        sequence.forbidden.iter().any(|&event| {
            before.iter().chain(&came).any(|&step| step == event || needs(step, event))
        }) || before.iter().enumerate().any(|(at, &step)| {
            sequence.steps[at + 1..].iter().any(|&later| later == step || needs(step, later))
        })
    }
}
