//! A reached state of the transition system.
//!
//! Searches remember states by the million and compare them on every step, so places and values are
//! kept as plain numbers: hashing and comparing are one pass over memory each.

use fixedbitset::{Block, FixedBitSet};
use foretell_trace::TermId;

/// Each thread's place, each variable's value, the condition on the inputs, and which threads gave up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// By thread: how many of its steps were taken.
    places: Box<[u32]>,
    /// By variable: the number of its value's term, or [`FORGOTTEN`].
    values: Box<[u32]>,
    condition: TermId,
    /// Empty until a thread gives up ([`System::take_or_skip`](super::System::take_or_skip)).
    given_up: FixedBitSet,
}

/// The value of a variable that nobody reads any more.
const FORGOTTEN: u32 = u32::MAX;

impl State {
    /// All threads are at their first step.
    pub(super) fn new(threads: usize, values: &[TermId], condition: TermId) -> Self {
        Self {
            places: vec![0; threads].into(),
            values: values.iter().map(|term| term.0).collect(),
            condition,
            given_up: FixedBitSet::new(),
        }
    }

    /// How many steps the thread has taken.
    pub(crate) fn place(&self, thread: usize) -> usize {
        self.places[thread] as usize
    }

    /// The thread has taken one more step.
    pub(super) fn advance(&mut self, thread: usize) {
        self.places[thread] += 1;
    }

    /// The variable's value; of no meaning where [`State::forget`] found that nobody reads it.
    pub(super) fn value(&self, variable: usize) -> TermId {
        TermId(self.values[variable])
    }

    pub(super) fn set_value(&mut self, variable: usize, value: TermId) {
        self.values[variable] = value.0;
    }

    /// What the run so far demands of the inputs.
    pub(super) fn condition(&self) -> TermId {
        self.condition
    }

    pub(super) fn set_condition(&mut self, condition: TermId) {
        self.condition = condition;
    }

    pub(super) fn has_given_up(&self, thread: usize) -> bool {
        self.given_up.contains(thread)
    }

    pub(super) fn give_up(&mut self, thread: usize) {
        // always of the same length: sets of different lengths are not equal
        self.given_up.grow(self.places.len());
        self.given_up.insert(thread);
    }

    /// Forgets the values that nobody reads. `live` has, by thread and place, the variables that the
    /// thread reads from there on; each set is as long as there are variables.
    pub(super) fn forget(&mut self, live: &[Vec<FixedBitSet>]) {
        for (block, values) in self.values.chunks_mut(Block::BITS as usize).enumerate() {
            let needed =
                |(rows, &place): (&Vec<FixedBitSet>, &u32)| rows[place as usize].as_slice()[block];
            let needed = live.iter().zip(&self.places).map(needed).fold(0, |all, more| all | more);
            for (bit, value) in values.iter_mut().enumerate() {
                if needed >> bit & 1 == 0 {
                    *value = FORGOTTEN;
                }
            }
        }
    }

    /// Replaces every value and the condition by what `change` makes of it.
    pub(super) fn replace_terms(&mut self, mut change: impl FnMut(TermId) -> TermId) {
        for value in self.values.iter_mut().filter(|value| **value != FORGOTTEN) {
            *value = change(TermId(*value)).0;
        }
        self.condition = change(self.condition);
    }
}
