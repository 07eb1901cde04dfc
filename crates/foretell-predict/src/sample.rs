//! A bounded number of representatives, spread evenly over a stream of unknown length.

use std::collections::HashMap;
use std::hash::Hash;

/// Keeps at most `limit` of what it is given: all at first, then every second, every fourth, ...
#[derive(Clone, Debug)]
pub struct Sample<T> {
    /// What is kept, in the order given.
    pub kept: Vec<T>,
    seen: u64,
    stride: u64,
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), seen: 0, stride: 1 }
    }
}

impl<T> Sample<T> {
    /// Takes one more into account.
    pub fn add(&mut self, item: T, limit: usize) {
        if self.seen.is_multiple_of(self.stride) && self.kept.len() >= limit.max(2) {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
        if self.seen.is_multiple_of(self.stride) {
            self.kept.push(item);
        }
        self.seen += 1;
    }

    /// How many were not kept.
    pub fn dropped(&self) -> u64 {
        self.seen - self.kept.len() as u64
    }
}

/// Samples by key, in the order in which the keys come up.
pub fn by_location<K: Copy + Eq + Hash, T>(
    items: impl Iterator<Item = (K, T)>,
    limit: usize,
) -> Vec<(K, Sample<T>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut samples: Vec<(K, Sample<T>)> = Vec::new();
    for (key, item) in items {
        let place = *places.entry(key).or_insert_with(|| {
            samples.push((key, Sample::default()));
            samples.len() - 1
        });
        samples[place].1.add(item, limit);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn a_sample_is_bounded_and_spread() {
        let mut sample = Sample::default();
        for item in 0..1000 {
            sample.add(item, 8);
        }
        assert!(sample.kept.len() <= 8 && sample.kept.len() >= 4, "{:?}", sample.kept);
        let gaps: Vec<i32> = sample.kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|&gap| gap == gaps[0]), "{gaps:?}");
        assert_eq!(sample.dropped() + sample.kept.len() as u64, 1000);
    }
}
