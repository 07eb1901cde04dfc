//! The branch predictor in front of the recording of execution paths (002, "Execution Path
//! Analysis": only mispredictions are stored).
//!
//! It predicts the whole next branch, place and outcome, from the branches before it, by three
//! tables: after the last branch alone, after about the last eight, and after about the last thirty.
//! The longest history that has been right before is believed. So the sequence of branches of a
//! thread can be had back from its mispredictions alone, whatever lies between two branches
//! (indirect calls, exceptions), by a second predictor that is told the same: the runtime and the
//! recorder use this one.

/// A branch: the address of its site, or in a binary of what follows it, and how it came out.
///
/// Outcomes are 0 and 1 for branches; for switches the number of the case, from 1, and 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Branch(u64);

impl Branch {
    /// A branch at this place. Outcomes beyond 32767 count as that.
    #[inline(always)]
    pub fn new(place: u64, outcome: u64) -> Branch {
        // Addresses of a program lie below 2^47.
        Branch(place << OUTCOME & MASK | outcome.min(OUTCOME_MASK))
    }

    /// The address of the place.
    pub fn place(self) -> u64 {
        self.0 >> OUTCOME
    }

    /// How it came out.
    pub fn outcome(self) -> u16 {
        (self.0 & OUTCOME_MASK) as u16
    }
}

/// Bits of an outcome.
const OUTCOME: u32 = 15;
const OUTCOME_MASK: u64 = (1 << OUTCOME) - 1;

/// What a branch takes; the two bits above are an entry's confidence.
const MASK: u64 = (1 << 62) - 1;
const CONFIDENCE: u32 = 62;

const SHORT: usize = 1 << 10;
const LONG: usize = 1 << 12;
/// The part of the history that the middle table sees.
const MIDDLE_HISTORY: u64 = (1 << 24) - 1;

/// See the module's text.
pub struct Predictor {
    last: u64,
    history: u64,
    short: [u64; SHORT],
    middle: [u64; LONG],
    long: [u64; LONG],
}

impl Predictor {
    /// One that knows nothing.
    pub fn new() -> Box<Predictor> {
        Box::new(Predictor {
            last: 0,
            history: 0,
            short: [0; SHORT],
            middle: [0; LONG],
            long: [0; LONG],
        })
    }

    /// Where the tables have what follows now.
    #[inline(always)]
    fn slots(&self) -> (usize, usize, usize) {
        let after = |history: u64, size: usize| {
            let mixed = (history ^ self.last.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 40) as usize % size
        };
        (
            after(0, SHORT),
            after(self.history & MIDDLE_HISTORY, LONG),
            after(self.history.wrapping_mul(0xd6e8_feb8_6659_fd93), LONG),
        )
    }

    /// The branch that should come next.
    #[inline(always)]
    pub fn predict(&self) -> Branch {
        let (short, middle, long) = self.slots();
        let is_sure = |entry: u64| entry >> CONFIDENCE >= 2;
        let entry = match (self.long[long], self.middle[middle]) {
            (entry, _) if is_sure(entry) => entry,
            (_, entry) if is_sure(entry) => entry,
            _ => self.short[short],
        };
        Branch(entry & MASK)
    }

    /// Learns which branch came.
    #[inline(always)]
    pub fn learn(&mut self, branch: Branch) {
        let (short, middle, long) = self.slots();
        for entry in [&mut self.short[short], &mut self.middle[middle], &mut self.long[long]] {
            let confidence = *entry >> CONFIDENCE;
            *entry = match (*entry & MASK == branch.0, confidence) {
                (true, _) => branch.0 | (confidence + 1).min(3) << CONFIDENCE,
                (false, 0) => branch.0 | 1 << CONFIDENCE,
                (false, _) => *entry - (1 << CONFIDENCE),
            };
        }
        self.last = branch.0;
        self.history = self.history << 2 ^ branch.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    }

    /// A branch came: had it been predicted?
    #[inline(always)]
    pub fn observe(&mut self, branch: Branch) -> bool {
        let right = self.predict() == branch;
        self.learn(branch);
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mispredictions of the sequence, which is had back from them.
    fn misses(branches: &[Branch]) -> usize {
        let mut predictor = Predictor::new();
        let missed: Vec<bool> = branches.iter().map(|&branch| !predictor.observe(branch)).collect();
        let mut again = Predictor::new();
        for (&branch, &missed) in branches.iter().zip(&missed) {
            let next = if missed { branch } else { again.predict() };
            assert_eq!(next, branch);
            again.learn(next);
        }
        missed.into_iter().filter(|&missed| missed).count()
    }

    #[test]
    fn loops_of_a_fixed_length_are_learnt() {
        let mut branches = Vec::new();
        for _ in 0..500 {
            branches.extend((0..16).map(|_| Branch::new(0x1000, 1)));
            branches.push(Branch::new(0x1000, 0));
            branches.push(Branch::new(0x2000, 1));
        }
        let missed = misses(&branches);
        assert!(branches.len() > 200 * missed, "{missed} of {}", branches.len());
    }

    #[test]
    fn a_branch_that_nobody_can_predict_is_kept() {
        let mut state = 1u64;
        let branches: Vec<Branch> = (0..10_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                Branch::new(0x7fff_f000, state >> 63)
            })
            .collect();
        let missed = misses(&branches);
        assert!((3000..7000).contains(&missed), "{missed}");
    }

    #[test]
    fn a_branch_is_what_was_put_in() {
        let branch = Branch::new(0x7fff_1234_5679, 70_000);
        assert_eq!((branch.place(), branch.outcome()), (0x7fff_1234_5679, 32_767));
    }
}
