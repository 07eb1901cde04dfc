//! Allocation, and the functions that copy and compare memory.

use foretell_wire::Kind;

use super::{Call, Then};
use crate::accesses::touch;
use crate::cpu::{guest_base, peek};
use crate::scheduler::scheduler;

/// See `super::FUNCTIONS`.
pub const FUNCTIONS: &[(&str, super::Handler)] = &[
    ("malloc", |call| Then::RunAnd(allocated, [call.argument(0), 0])),
    ("calloc", |call| {
        let size = call.argument(0).saturating_mul(call.argument(1));
        Then::RunAnd(allocated, [size, ZEROED])
    }),
    ("aligned_alloc", |call| Then::RunAnd(allocated, [call.argument(1), 0])),
    ("memalign", |call| Then::RunAnd(allocated, [call.argument(1), 0])),
    ("realloc", |call| {
        let (block, size) = (call.argument(0), call.argument(1));
        if block != 0 {
            freed(call, block);
        }
        Then::RunAnd(allocated, [size, 0])
    }),
    ("free", |call| {
        let block = call.argument(0);
        if block != 0 {
            freed(call, block);
        }
        Then::Run
    }),
    ("memcpy", |call| copy(call)),
    ("memmove", |call| copy(call)),
    ("mempcpy", |call| copy(call)),
    ("memset", |call| {
        let value = u64::from(call.argument(1) as u8) * 0x0101_0101_0101_0101;
        let (begin, size) = (call.argument(0), call.argument(2));
        for (at, size) in pieces(begin, size) {
            let value = if size == 8 { value } else { value & ((1 << (8 * size)) - 1) };
            touch(call.me, call.place, 0, at, size, value, true);
        }
        finish(call)
    }),
    ("memcmp", |call| {
        let (one, other, size) = (call.argument(0), call.argument(1), call.argument(2));
        read(call, one, size);
        read(call, other, size);
        finish(call)
    }),
    ("strlen", |call| {
        let text = call.argument(0);
        read(call, text, length(text) + 1);
        finish(call)
    }),
    ("strcmp", |call| {
        let (one, other) = (call.argument(0), call.argument(1));
        let size = length(one).min(length(other)) + 1;
        read(call, one, size);
        read(call, other, size);
        finish(call)
    }),
    ("strcpy", |call| {
        let (target, source) = (call.argument(0), call.argument(1));
        moved(call, target, source, length(source) + 1)
    }),
];

/// Whether a name that begins so, with more after `_`, is an implementation of the function.
pub fn has_variants(name: &str) -> bool {
    ["memcpy", "memmove", "mempcpy", "memset", "memcmp", "strlen", "strcmp", "strcpy"]
        .contains(&name)
}

/// In what is kept of an allocation: it is zero.
const ZEROED: u64 = foretell_wire::ZEROED as u64;

fn allocated(call: &mut Call<'_>, [size, flags]: [u64; 2], block: u64) {
    if block == 0 {
        return;
    }
    if flags & ZEROED != 0 && size <= MOST_NOTED {
        scheduler().shadow.see_bytes(block, &vec![0; size as usize]);
    }
    call.event(Kind::Alloc, flags as u8, &[block, size]);
}

/// So much of a block is noted to be zero.
const MOST_NOTED: u64 = 1 << 20;

fn freed(call: &mut Call<'_>, block: u64) {
    call.point();
    call.event(Kind::Free, 0, &[block]);
    call.point();
}

/// The parts of a piece of memory that are one access each: aligned words, and single bytes.
fn pieces(begin: u64, size: u64) -> impl Iterator<Item = (u64, u8)> {
    let end = begin.saturating_add(size);
    let mut at = begin;
    std::iter::from_fn(move || {
        let piece = match () {
            () if at >= end => return None,
            () if at.is_multiple_of(8) && end - at >= 8 => 8,
            () => 1,
        };
        at += u64::from(piece);
        Some((at - u64::from(piece), piece))
    })
}

fn read(call: &mut Call<'_>, begin: u64, size: u64) {
    for (at, size) in pieces(begin, size) {
        touch(call.me, call.place, 0, at, size, peek(at, size), false);
    }
}

/// The copy is recorded before it is made: nobody else runs in between.
fn moved(call: &mut Call<'_>, target: u64, source: u64, size: u64) -> Then {
    read(call, source, size);
    for (at, size) in pieces(target, size) {
        let value = peek(source.wrapping_add(at - target), size);
        touch(call.me, call.place, 0, at, size, value, true);
    }
    finish(call)
}

fn copy(call: &mut Call<'_>) -> Then {
    let (target, source, size) = (call.argument(0), call.argument(1), call.argument(2));
    moved(call, target, source, size)
}

/// The function is still to be executed: a pause that is due comes when it returns.
fn finish(call: &mut Call<'_>) -> Then {
    match call.me.index >= call.me.pause_at {
        true => Then::RunAnd(|call, _, _| call.point(), [0; 2]),
        false => Then::Run,
    }
}

fn length(text: u64) -> u64 {
    // SAFETY: the program is about to read it up to its end.
    unsafe { libc::strlen((text + guest_base()) as *const libc::c_char) as u64 }
}
