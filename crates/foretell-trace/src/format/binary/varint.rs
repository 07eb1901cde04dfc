//! Integers in as few bytes as they need: seven bits a byte, lowest first (LEB128), and signed
//! differences folded so that small ones of either sign are short (zigzag).

/// Appends the number in 1 to 10 bytes. The buffer grows by 8 bytes at least while this is done.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, value: u64) {
    if value >> 56 != 0 {
        return put_long(out, value);
    }
    let (bytes, length) = spread(value);
    let end = out.len() + length;
    // Eight bytes at once, then those that do not count are taken back: no loop, no branches.
    out.extend_from_slice(&bytes.to_le_bytes());
    out.truncate(end);
}

/// The bytes of a number below 2^56, and how many there are: seven bits in each byte.
#[inline]
fn spread(value: u64) -> (u64, usize) {
    let halves = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
    let quarters = (halves & 0x0000_3fff_0000_3fff) | (halves & 0x0fff_c000_0fff_c000) << 2;
    let bytes = (quarters & 0x007f_007f_007f_007f) | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    let length = (64 - (value | 1).leading_zeros()).div_ceil(7);
    let more = 0x0080_8080_8080_8080 & ((1 << (8 * (length - 1))) - 1);
    (bytes | more, length as usize)
}

#[cold]
fn put_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Room for the longest record that has a few numbers and no text.
pub(super) const SHORT: usize = 64;

/// A short record that is put together in place, at the end of a buffer: room for it is made once,
/// not for each of its numbers.
pub(super) struct Short<'a> {
    bytes: &'a mut [u8; SHORT],
    length: usize,
}

impl<'a> Short<'a> {
    /// Fills the last [`SHORT`] bytes of the buffer from their beginning.
    #[inline]
    pub(super) fn at_end(buffer: &'a mut [u8]) -> Option<Self> {
        Some(Self { bytes: buffer.last_chunk_mut()?, length: 0 })
    }

    /// How many bytes are filled.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Appends a byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// Appends the number as [`put`] does.
    #[inline]
    pub(super) fn put(&mut self, value: u64) {
        if value < 0x80 {
            return self.byte(value as u8); // most are, and always the same ones
        }
        if value >> 56 != 0 {
            return self.put_long(value);
        }
        let (bytes, length) = spread(value);
        if let Some(place) = self.bytes.get_mut(self.length..self.length + 8) {
            place.copy_from_slice(&bytes.to_le_bytes());
            self.length += length;
        }
    }

    #[cold]
    fn put_long(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }
}

/// Appends a number of up to 128 bits in 1 to 19 bytes.
pub(super) fn put_wide(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
#[inline]
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// [`zigzag`] for 128 bits.
pub(super) fn zigzag_wide(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

/// The inverse of [`zigzag_wide`].
pub(super) fn unzigzag_wide(value: u128) -> i128 {
    (value >> 1) as i128 ^ -((value & 1) as i128)
}

/// The step from `from` to `to`, for 32-bit numbers; every pair has one.
#[inline]
pub(super) fn step(from: u32, to: u32) -> u64 {
    zigzag(i64::from(to.wrapping_sub(from) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_same_bytes_at_once_and_one_by_one() {
        let edges = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in edges.chain([u64::MAX, 0x0123_4567_89ab_cdef, 0x00fe_dcba_9876_5432]) {
            let (mut fast, mut slow) = (vec![7], vec![7]);
            put(&mut fast, value);
            put_long(&mut slow, value);
            assert_eq!(fast, slow, "{value:#x}");
            let mut buffer = [0; SHORT];
            let mut short = Short { bytes: &mut buffer, length: 0 };
            short.byte(7);
            short.put(value);
            let length = short.length();
            assert_eq!(&buffer[..length], slow, "{value:#x}");
        }
    }
}
