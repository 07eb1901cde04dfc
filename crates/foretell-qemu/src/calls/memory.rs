//! Allocation, and the functions that copy and compare memory.

use foretell_wire::Kind;
use foretell_wire::limits::MOST_NOTED_ZERO;
use foretell_wire::record::Alloc;

use super::{Call, Then};
use crate::accesses::touch;
use crate::api::Pointer;
use crate::cpu::{self, guest_base, peek, peek_word};
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
    ("valloc", |call| Then::RunAnd(allocated, [call.argument(0), 0])),
    ("pvalloc", |call| Then::RunAnd(allocated, [call.argument(0), 0])),
    ("posix_memalign", |call| {
        let kept = [call.argument(2), call.argument(0)];
        let at_return = |call: &mut Call<'_>, [size, slot]: [u64; 2], error: u64| {
            if error as i32 == 0 {
                allocated(call, [size, 0], peek_word(slot));
            }
        };
        Then::RunAnd(at_return, kept)
    }),
    ("realloc", |call| {
        let (block, size) = (call.argument(0), call.argument(1));
        reallocate(call, block, size)
    }),
    ("reallocarray", |call| {
        let (block, count, size) = (call.argument(0), call.argument(1), call.argument(2));
        reallocate(call, block, count.saturating_mul(size))
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
    if flags & ZEROED != 0 && size <= MOST_NOTED_ZERO {
        scheduler().shadow.see_bytes(block, &vec![0; size as usize]);
    }
    scheduler().heap.allocate(block, size);
    call.record(flags as u8, &Alloc { address: block, size });
}

/// What was there is freed, and comes back where there is no room for more.
fn reallocate(call: &mut Call<'_>, block: u64, size: u64) -> Then {
    if block != 0 {
        freed(call, block);
    }
    let at_return = |call: &mut Call<'_>, [size, before]: [u64; 2], block: u64| {
        let is_there =
            if block == 0 && size != 0 { scheduler().heap.freed_size(before) } else { None };
        match is_there {
            Some(size) => allocated(call, [size, 0], before),
            None => allocated(call, [size, 0], block),
        }
    };
    Then::RunAnd(at_return, [size, block])
}

/// How many bytes the C library asks for, for itself, where the function of this name allocates them.
pub fn asked_for(name: &str, cpu: Pointer) -> Option<u64> {
    match name {
        "malloc" | "valloc" | "pvalloc" => Some(cpu::argument(cpu, 0)),
        "calloc" => Some(cpu::argument(cpu, 0).saturating_mul(cpu::argument(cpu, 1))),
        "realloc" | "aligned_alloc" | "memalign" => Some(cpu::argument(cpu, 1)),
        _ => None,
    }
}

fn freed(call: &mut Call<'_>, block: u64) {
    call.point();
    scheduler().heap.free(block);
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
