//! A 128-bit hash of a search node, which stands for the node where the search asks whether it was
//! there before. 64 bits would be too few for that: with 10^8 nodes two would meet.

use std::hash::Hasher;

/// Multiplies and folds each word into two halves.
#[derive(Clone, Copy)]
pub(super) struct WideHasher {
    low: u64,
    high: u64,
}

impl Default for WideHasher {
    fn default() -> Self {
        Self { low: 0x243f_6a88_85a3_08d3, high: 0x1319_8a2e_0370_7344 }
    }
}

impl WideHasher {
    /// All 128 bits.
    pub(super) fn wide(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.finish())
    }
}

fn fold(state: u64, word: u64, factor: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(factor);
    (product as u64 ^ (product >> 64) as u64).rotate_left(23)
}

impl Hasher for WideHasher {
    fn write_u64(&mut self, word: u64) {
        self.low = fold(self.low, word, 0x9e37_79b9_7f4a_7c15);
        self.high = fold(self.high.wrapping_add(word), self.low, 0xd1b5_4a32_d192_ed03);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u128(&mut self, word: u128) {
        self.write_u64(word as u64);
        self.write_u64((word >> 64) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn finish(&self) -> u64 {
        self.low ^ self.high.rotate_left(32)
    }
}
