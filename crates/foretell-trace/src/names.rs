//! Names to dense numbers, at the speed of a trace's lines: one arena for all names, one
//! open-addressing table.

use std::hash::{BuildHasher, RandomState};

/// Numbers byte strings in order of first appearance.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    arena: Vec<u8>,
    /// Where each name ends in the arena.
    ends: Vec<usize>,
    /// A power of two of slots; each 0 or, in the high half, bits of the hash, and, in the low
    /// half, 1 + the number.
    table: Vec<u64>,
    /// Random, so that no file can be made of names that collide.
    seed: u64,
}

impl Names {
    pub(crate) fn new() -> Self {
        let seed = RandomState::new().hash_one(0x666f_7265_7465_6c6c_u64);
        Self { arena: Vec::new(), ends: Vec::new(), table: vec![0; 64], seed }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.arena[start..self.ends[number]]
    }

    /// The number of the name, and whether it is new.
    #[inline]
    pub(crate) fn number(&mut self, name: &[u8]) -> (usize, bool) {
        let hash = hash(name, self.seed);
        let mask = self.table.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let entry = self.table[slot];
            if entry == 0 {
                return (self.insert(name, hash, slot), true);
            }
            if entry >> 32 == hash >> 32 {
                let number = (entry as u32 - 1) as usize;
                if self.get(number) == name {
                    return (number, false);
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, name: &[u8], hash: u64, slot: usize) -> usize {
        let number = self.ends.len();
        self.arena.extend_from_slice(name);
        self.ends.push(self.arena.len());
        self.table[slot] = (hash >> 32 << 32) | (number as u64 + 1);
        if self.ends.len() * 2 > self.table.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let mask = self.table.len() * 2 - 1;
        let mut table = vec![0; mask + 1];
        for number in 0..self.ends.len() {
            let hash = hash(self.get(number), self.seed);
            let mut slot = hash as usize & mask;
            while table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            table[slot] = (hash >> 32 << 32) | (number as u64 + 1);
        }
        self.table = table;
    }
}

/// Folded multiplication of eight bytes at a time (the idea of wyhash).
#[inline]
fn hash(name: &[u8], seed: u64) -> u64 {
    let mut state = seed ^ name.len() as u64;
    let mut rest = name;
    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        state = fold(state ^ u64::from_le_bytes(*word), 0x9e37_79b9_7f4a_7c15);
        rest = tail;
    }
    let last = match (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        (Some(head), Some(tail)) => {
            u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << 32
        }
        _ => match *rest {
            [] => 0,
            [a] => u64::from(a),
            [a, b] => u64::from(a) | u64::from(b) << 8,
            [a, b, c, ..] => u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16,
        },
    };
    fold(state ^ last, 0xa076_1d64_78bd_642f)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_in_order_of_first_appearance() {
        let mut names = Names::new();
        for round in 0..2 {
            for number in 0..5000 {
                let name = "x".repeat(number % 40) + &number.to_string();
                assert_eq!(names.number(name.as_bytes()), (number, round == 0));
                assert_eq!(names.get(number), name.as_bytes());
            }
        }
        assert_eq!(names.len(), 5000);
    }
}
