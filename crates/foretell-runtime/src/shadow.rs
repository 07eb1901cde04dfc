//! Shadows: terms that are being built, and the shadows of local memory.
//!
//! A read's shadow is its index in the thread plus 1, so reads cost nothing to name. A built term's
//! shadow is [`TERM_SHADOW`] plus its number; the recorder outside interns equal ones. Local memory
//! keeps one shadow a byte with the byte's place in it, so that parts can be cut out and joined.

use foretell_abi::{BinaryOp, CastOp};
use foretell_wire::record::{DefineAddress, DefineBinary, DefineCast, DefineSelect, Record};
use foretell_wire::{Kind, TERM_SHADOW, WIDE_OPERAND};
use rustc_hash::FxHashMap;

use crate::recorder::{head, recorder};

/// The shadow that names what the event with this index read; 0 when the index is too large.
#[inline(always)]
pub fn of_read(index: u32) -> u32 {
    if index < TERM_SHADOW - 1 { index + 1 } else { 0 }
}

/// Builds a binary expression; of two constants there is none (the contract's composite expressions).
pub fn binary(
    op: u32,
    width: u32,
    left: u32,
    left_value: u64,
    right: u32,
    right_value: u64,
) -> u32 {
    if left | right == 0 {
        return 0;
    }
    // SAFETY: hooks are called by the thread that has the turn.
    let recorder = unsafe { recorder() };
    let shadow = recorder.next_term();
    if shadow != 0 {
        let value = if left == 0 { left_value } else { right_value };
        let width = u64::from(width);
        let mut record = DefineBinary { left, right, value: None };
        if value >> 32 == 0 {
            recorder.record(op as u8, width | value << 8, &record);
        } else {
            record.value = Some(value);
            let [operands] = record.words();
            recorder.put([
                head(Kind::DefineBinary, op as u8 | WIDE_OPERAND, width),
                operands,
                value,
            ]);
        }
    }
    shadow
}

/// Builds a conversion.
pub fn cast(op: u32, from: u32, to: u32, operand: u32) -> u32 {
    if operand == 0 {
        return 0;
    }
    // SAFETY: as above.
    let recorder = unsafe { recorder() };
    let shadow = recorder.next_term();
    if shadow != 0 {
        let widths = u64::from(from) | u64::from(to) << 8;
        recorder.record(op as u8, widths, &DefineCast { shadow: operand });
    }
    shadow
}

/// Builds an address with one index.
pub fn address(op: u32, width: u32, index: u32, scale: u32, base: u64) -> u32 {
    if index == 0 {
        return 0;
    }
    // SAFETY: as above.
    let recorder = unsafe { recorder() };
    let shadow = recorder.next_term();
    if shadow != 0 {
        let place = u64::from(width) | u64::from(scale) << 8;
        recorder.record(op as u8, place, &DefineAddress { index, base });
    }
    shadow
}

/// Builds a choice.
pub fn select(width: u32, condition: (u32, u32), then: (u32, u64), otherwise: (u32, u64)) -> u32 {
    if condition.0 | then.0 | otherwise.0 == 0 {
        return 0;
    }
    // SAFETY: as above.
    let recorder = unsafe { recorder() };
    let shadow = recorder.next_term();
    if shadow != 0 {
        let record = DefineSelect {
            condition: condition.0,
            then: then.0,
            otherwise: otherwise.0,
            condition_value: condition.1,
            then_value: then.1,
            otherwise_value: otherwise.1,
        };
        recorder.record(0, width.into(), &record);
    }
    shadow
}

/// One byte's shadow: byte `at` of an expression of `size` bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ByteShadow {
    shadow: u32,
    at: u8,
    size: u8,
}

/// The shadows of a thread's local memory, by address of the byte.
#[derive(Default)]
pub struct LocalShadows {
    bytes: FxHashMap<u64, ByteShadow>,
}

impl LocalShadows {
    /// How many bytes have a shadow.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Gives the bytes a shadow; 0 takes it away.
    pub fn store(&mut self, address: u64, size: u64, shadow: u32) {
        for at in 0..size {
            if shadow == 0 || size > 8 {
                self.bytes.remove(&(address + at));
            } else {
                let byte = ByteShadow { shadow, at: at as u8, size: size as u8 };
                self.bytes.insert(address + at, byte);
            }
        }
    }

    /// The shadow of the bytes, whose value is given; 0 when none has one.
    pub fn load(&mut self, address: u64, size: u32, value: u64) -> u32 {
        let byte = |at: u32| self.bytes.get(&(address + u64::from(at))).copied();
        let whole = |first: ByteShadow| {
            u32::from(first.size) == size
                && (0..size).all(|at| byte(at) == Some(ByteShadow { at: at as u8, ..first }))
        };
        match byte(0) {
            Some(first) if whole(first) => return first.shadow,
            _ if (0..size).all(|at| byte(at).is_none()) => return 0,
            _ => {}
        }
        // Byte by byte, from the highest: what has no shadow is a constant.
        let width = size * 8;
        let mut joined: Option<(u32, u32)> = None; // shadow of the low bits, and how many
        for at in 0..size {
            let concrete = value >> (8 * at) & 0xff;
            let part = byte(at).map_or(0, cut);
            joined = Some(match joined {
                None => (part, 8),
                Some((low, bits)) if low == 0 && part == 0 => (0, bits + 8),
                Some((low, bits)) => {
                    let low_value = value & ((1 << bits) - 1);
                    let wide = bits + 8;
                    let low = extended(low, bits, wide);
                    let high = extended(part, 8, wide);
                    let high = if high == 0 {
                        0
                    } else {
                        binary(BinaryOp::Shl as u32, wide, high, 0, 0, bits.into())
                    };
                    let or = BinaryOp::Or as u32;
                    (binary(or, wide, low, low_value, high, concrete << bits), wide)
                }
            });
        }
        joined.map_or(0, |(shadow, bits)| if bits == width { shadow } else { 0 })
    }

    /// Copies the shadows of bytes that are copied.
    pub fn copy(&mut self, destination: u64, source: u64, length: u64) {
        let found: Vec<(u64, Option<ByteShadow>)> =
            (0..length).map(|at| (at, self.bytes.get(&(source + at)).copied())).collect();
        for (at, byte) in found {
            match byte {
                Some(byte) => self.bytes.insert(destination + at, byte),
                None => self.bytes.remove(&(destination + at)),
            };
        }
    }
}

/// The byte of the expression as an expression of 8 bits.
fn cut(byte: ByteShadow) -> u32 {
    let width = u32::from(byte.size) * 8;
    let mut shadow = byte.shadow;
    if byte.at > 0 {
        shadow = binary(BinaryOp::LShr as u32, width, shadow, 0, 0, u64::from(byte.at) * 8);
    }
    if byte.size > 1 {
        shadow = cast(CastOp::Truncate as u32, width, 8, shadow);
    }
    shadow
}

fn extended(shadow: u32, from: u32, to: u32) -> u32 {
    if shadow == 0 { 0 } else { cast(CastOp::ZeroExtend as u32, from, to, shadow) }
}
