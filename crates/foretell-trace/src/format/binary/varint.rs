//! Integers in as few bytes as they need: seven bits a byte, lowest first (LEB128), and signed
//! differences folded so that small ones of either sign are short (zigzag).

/// Appends the number in 1 to 10 bytes.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
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
