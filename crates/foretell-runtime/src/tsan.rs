//! The hooks of `-fsanitize=thread`: concrete events from objects of gcc, clang and rustc that are
//! linked with this library instead of libtsan.
//!
//! A store's hook runs before the store, so its value is read back at the thread's next hook; as
//! nobody else has the turn in between, that value is exact. Atomic operations are done here.

use core::arch::naked_asm;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use foretell_wire::record::{self, ReadModifyWrite};
use foretell_wire::{Kind, access};
use libc::c_int;

use crate::recorder::head;
use crate::thread::{Session, peek, quickly_before};
use crate::wrappers::blocking::piece;

/// A plain read of up to 8 bytes is about to happen.
#[inline(always)]
unsafe fn note_read(session: &mut Session, address: u64, size: u8, place: u64) {
    session.me.looking = place;
    // SAFETY: the program reads it next.
    let value = unsafe { peek(address, size) };
    session.me.looking = 0;
    let head = head(Kind::Read, access::detail(size, 0), place);
    session.me.access::<false, 0>(head, address, value, []);
}

// The quickest case is a function of its own each: it needs no register but what it is given.

unsafe extern "C" fn read<const SIZE: u8>(address: u64, place: u64) {
    // SAFETY: the program reads it next.
    unsafe {
        if !quickly_before::<SIZE, true, false>(address, place) {
            read_after_store::<SIZE>(address, place);
        }
    }
}

unsafe extern "C" fn write<const SIZE: u8>(address: u64, place: u64) {
    // SAFETY: the program writes it next.
    unsafe {
        if !quickly_before::<SIZE, false, false>(address, place) {
            write_after_store::<SIZE>(address, place);
        }
    }
}

#[inline(never)]
unsafe extern "C" fn read_after_store<const SIZE: u8>(address: u64, place: u64) {
    // SAFETY: the program reads it next.
    unsafe {
        if !quickly_before::<SIZE, true, true>(address, place) {
            read_in_session::<SIZE>(address, place);
        }
    }
}

#[inline(never)]
unsafe extern "C" fn write_after_store<const SIZE: u8>(address: u64, place: u64) {
    // SAFETY: the program writes it next.
    unsafe {
        if !quickly_before::<SIZE, false, true>(address, place) {
            write_in_session::<SIZE>(address, place);
        }
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn read_in_session<const SIZE: u8>(address: u64, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.point();
        // SAFETY: the program reads it next.
        unsafe { note_read(&mut session, address, SIZE, place) };
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn write_in_session<const SIZE: u8>(address: u64, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.point();
        session.me.looking = place;
        // SAFETY: the program writes it next.
        unsafe { session.me.announce::<SIZE>(address, place) };
        session.me.looking = 0;
    }
}

/// A read and then a write of the same place, as in `x++`.
unsafe extern "C" fn read_write<const SIZE: u8>(address: u64, place: u64) {
    // SAFETY: the program reads and writes it next.
    unsafe {
        read::<SIZE>(address, place);
        write::<SIZE>(address, place);
    }
}

unsafe extern "C" fn read_pair(address: u64, place: u64) {
    // SAFETY: the program reads sixteen bytes next.
    unsafe { read_range(address, 16, place) };
}

unsafe extern "C" fn write_pair(address: u64, place: u64) {
    // SAFETY: the program writes sixteen bytes next.
    unsafe { write_range(address, 16, place) };
}

unsafe extern "C" fn read_write_pair(address: u64, place: u64) {
    // SAFETY: as above.
    unsafe {
        read_range(address, 16, place);
        write_range(address, 16, place);
    }
}

unsafe extern "C" fn read_range(address: u64, size: u64, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.point();
        let (mut at, end) = (address, address + size);
        while at < end {
            let size = piece(end - at);
            // SAFETY: the program reads it next.
            unsafe { note_read(&mut session, at, size, place) };
            at += u64::from(size);
        }
    }
}

/// A store of several words is about to happen: all but the last word would be recorded with the
/// value they have now, so the words are kept and read back together.
unsafe extern "C" fn write_range(address: u64, size: u64, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.point();
        session.me.announce_range(address, size, place);
    }
}

unsafe extern "C" fn vptr_update(address: u64, _value: u64, place: u64) {
    // SAFETY: the program writes it next.
    unsafe { write::<8>(address, place) };
}

unsafe extern "C" fn function_entry(_call: u64, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.event_at(Kind::Call, 0, place, []);
    }
}

unsafe extern "C" fn function_exit(_unused: u64, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.event_at(Kind::Return, 0, place, []);
    }
}

unsafe extern "C" fn fence(order: c_int, place: u64) {
    if let Some(mut session) = Session::begin_hook() {
        session.event_at(Kind::Fence, order_code(order), place, []);
    }
    std::sync::atomic::fence(SeqCst);
}

/// The compiler's number of a memory order as `foretell_abi::Order` has it.
fn order_code(order: c_int) -> u8 {
    match order & 7 {
        0 => 1,
        1 | 2 => 2,
        3 => 3,
        4 => 4,
        _ => 5,
    }
}

/// Defines hooks whose last argument is the program counter, which the compiler does not pass: the
/// return address is put in the register of that argument.
macro_rules! hooks {
    ($($register:literal { $($name:ident => $body:path,)* })*) => {$($(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(missing_docs, clippy::missing_safety_doc)] // the compiler's own names
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                concat!("mov ", $register, ", qword ptr [rsp]"),
                "jmp {body}",
                body = sym $body,
            )
        }
    )*)*};
}

hooks! {
    "rsi" {
        __tsan_read1 => read::<1>,
        __tsan_read2 => read::<2>,
        __tsan_read4 => read::<4>,
        __tsan_read8 => read::<8>,
        __tsan_read16 => read_pair,
        __tsan_write1 => write::<1>,
        __tsan_write2 => write::<2>,
        __tsan_write4 => write::<4>,
        __tsan_write8 => write::<8>,
        __tsan_write16 => write_pair,
        __tsan_read_write1 => read_write::<1>,
        __tsan_read_write2 => read_write::<2>,
        __tsan_read_write4 => read_write::<4>,
        __tsan_read_write8 => read_write::<8>,
        __tsan_read_write16 => read_write_pair,
        __tsan_unaligned_read2 => read::<2>,
        __tsan_unaligned_read4 => read::<4>,
        __tsan_unaligned_read8 => read::<8>,
        __tsan_unaligned_read16 => read_pair,
        __tsan_unaligned_write2 => write::<2>,
        __tsan_unaligned_write4 => write::<4>,
        __tsan_unaligned_write8 => write::<8>,
        __tsan_unaligned_write16 => write_pair,
        __tsan_unaligned_read_write2 => read_write::<2>,
        __tsan_unaligned_read_write4 => read_write::<4>,
        __tsan_unaligned_read_write8 => read_write::<8>,
        __tsan_unaligned_read_write16 => read_write_pair,
        __tsan_volatile_read1 => read::<1>,
        __tsan_volatile_read2 => read::<2>,
        __tsan_volatile_read4 => read::<4>,
        __tsan_volatile_read8 => read::<8>,
        __tsan_volatile_read16 => read_pair,
        __tsan_volatile_write1 => write::<1>,
        __tsan_volatile_write2 => write::<2>,
        __tsan_volatile_write4 => write::<4>,
        __tsan_volatile_write8 => write::<8>,
        __tsan_volatile_write16 => write_pair,
        __tsan_unaligned_volatile_read2 => read::<2>,
        __tsan_unaligned_volatile_read4 => read::<4>,
        __tsan_unaligned_volatile_read8 => read::<8>,
        __tsan_unaligned_volatile_read16 => read_pair,
        __tsan_unaligned_volatile_write2 => write::<2>,
        __tsan_unaligned_volatile_write4 => write::<4>,
        __tsan_unaligned_volatile_write8 => write::<8>,
        __tsan_unaligned_volatile_write16 => write_pair,
        __tsan_vptr_read => read::<8>,
        __tsan_func_entry => function_entry,
        __tsan_func_exit => function_exit,
        __tsan_atomic_thread_fence => fence,
    }
    "rdx" {
        __tsan_read_range => read_range,
        __tsan_write_range => write_range,
        __tsan_vptr_update => vptr_update,
    }
}

/// Called by a constructor of every instrumented module, also before our own.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    if let Some(mut session) = Session::begin_hook() {
        // SAFETY: a session has the turn.
        unsafe { crate::modules::announce() };
        session.recorder().record(0, 0, &record::Instrumented {});
    }
}

/// A fence between a thread and its own signal handlers.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_order: c_int) {}

/// The atomic operations of one width.
macro_rules! atomics {
    ($module:ident, $type:ty, $atomic:ty, $size:literal,
        $load:ident, $store:ident, $strong:ident, $weak:ident, $value:ident,
        { $($name:ident => $operation:ident,)* }) => {
        mod $module {
            use super::*;

            unsafe fn location(address: u64) -> &'static $atomic {
                // SAFETY: the program does an atomic operation on it.
                unsafe { &*(address as *const $atomic) }
            }

            pub unsafe extern "C" fn load(address: u64, order: c_int, place: u64) -> $type {
                let session = Session::begin_hook();
                let Some(mut session) = session else {
                    // SAFETY: as the program asked.
                    return unsafe { location(address) }.load(SeqCst);
                };
                session.point();
                // SAFETY: as the program asked.
                let value = unsafe { location(address) }.load(SeqCst);
                let detail = access::detail($size, order_code(order));
                let head = head(Kind::Read, detail, place);
                session.me.access::<false, 0>(head, address, value.into(), []);
                session.point();
                value
            }

            pub unsafe extern "C" fn store(
                address: u64, value: $type, order: c_int, place: u64,
            ) {
                let Some(mut session) = Session::begin_hook() else {
                    // SAFETY: as the program asked.
                    return unsafe { location(address) }.store(value, SeqCst);
                };
                session.point();
                // SAFETY: as the program asked.
                let old = unsafe { location(address) }.swap(value, SeqCst);
                let detail = access::detail($size, order_code(order));
                let head = head(Kind::Write, detail, place);
                session.me.access::<false, 1>(head, address, value.into(), [old.into()]);
                session.point();
            }

            unsafe fn modify(
                address: u64, order: c_int, place: u64,
                change: impl FnOnce(&$atomic) -> $type,
            ) -> $type {
                let Some(mut session) = Session::begin_hook() else {
                    // SAFETY: as the program asked.
                    return change(unsafe { location(address) });
                };
                session.point();
                // SAFETY: as the program asked; nobody else has the turn.
                let (old, new) = unsafe {
                    let old = change(location(address));
                    (old, location(address).load(SeqCst))
                };
                let detail = access::detail($size, order_code(order));
                let (old_bits, new_bits) = (old.into(), new.into());
                session.recorder().meet(place);
                session.me.record(detail, place, &ReadModifyWrite {
                    address, old: old_bits, new: new_bits, shadow: 0, address_shadow: 0,
                });
                session.point();
                old
            }

            $(pub unsafe extern "C" fn $operation(
                address: u64, operand: $type, order: c_int, place: u64,
            ) -> $type {
                // SAFETY: as the program asked.
                unsafe {
                    modify(address, order, place, |place| place.$operation(operand, SeqCst))
                }
            })*

            pub unsafe extern "C" fn exchange_value(
                address: u64, expected: $type, desired: $type, order: c_int, _failure: c_int,
                place: u64,
            ) -> $type {
                let swap = |place: &$atomic| {
                    match place.compare_exchange(expected, desired, SeqCst, SeqCst) {
                        Ok(old) | Err(old) => old,
                    }
                };
                // SAFETY: as the program asked.
                unsafe { modify(address, order, place, swap) }
            }

            pub unsafe extern "C" fn exchange(
                address: u64, expected: *mut $type, desired: $type, order: c_int, failure: c_int,
                place: u64,
            ) -> c_int {
                // SAFETY: as the program asked.
                unsafe {
                    let wanted = *expected;
                    let old = exchange_value(address, wanted, desired, order, failure, place);
                    if old != wanted {
                        *expected = old;
                    }
                    (old == wanted).into()
                }
            }
        }
        hooks! {
            "rdx" { $load => $module::load, }
            "rcx" { $store => $module::store, $($name => $module::$operation,)* }
            "r9" {
                $strong => $module::exchange,
                $weak => $module::exchange,
                $value => $module::exchange_value,
            }
        }
    };
}

atomics! { bits8, u8, AtomicU8, 1, __tsan_atomic8_load, __tsan_atomic8_store,
    __tsan_atomic8_compare_exchange_strong, __tsan_atomic8_compare_exchange_weak,
    __tsan_atomic8_compare_exchange_val, {
    __tsan_atomic8_exchange => swap,
    __tsan_atomic8_fetch_add => fetch_add,
    __tsan_atomic8_fetch_sub => fetch_sub,
    __tsan_atomic8_fetch_and => fetch_and,
    __tsan_atomic8_fetch_or => fetch_or,
    __tsan_atomic8_fetch_xor => fetch_xor,
    __tsan_atomic8_fetch_nand => fetch_nand,
} }
atomics! { bits16, u16, AtomicU16, 2, __tsan_atomic16_load, __tsan_atomic16_store,
    __tsan_atomic16_compare_exchange_strong, __tsan_atomic16_compare_exchange_weak,
    __tsan_atomic16_compare_exchange_val, {
    __tsan_atomic16_exchange => swap,
    __tsan_atomic16_fetch_add => fetch_add,
    __tsan_atomic16_fetch_sub => fetch_sub,
    __tsan_atomic16_fetch_and => fetch_and,
    __tsan_atomic16_fetch_or => fetch_or,
    __tsan_atomic16_fetch_xor => fetch_xor,
    __tsan_atomic16_fetch_nand => fetch_nand,
} }
atomics! { bits32, u32, AtomicU32, 4, __tsan_atomic32_load, __tsan_atomic32_store,
    __tsan_atomic32_compare_exchange_strong, __tsan_atomic32_compare_exchange_weak,
    __tsan_atomic32_compare_exchange_val, {
    __tsan_atomic32_exchange => swap,
    __tsan_atomic32_fetch_add => fetch_add,
    __tsan_atomic32_fetch_sub => fetch_sub,
    __tsan_atomic32_fetch_and => fetch_and,
    __tsan_atomic32_fetch_or => fetch_or,
    __tsan_atomic32_fetch_xor => fetch_xor,
    __tsan_atomic32_fetch_nand => fetch_nand,
} }
atomics! { bits64, u64, AtomicU64, 8, __tsan_atomic64_load, __tsan_atomic64_store,
    __tsan_atomic64_compare_exchange_strong, __tsan_atomic64_compare_exchange_weak,
    __tsan_atomic64_compare_exchange_val, {
    __tsan_atomic64_exchange => swap,
    __tsan_atomic64_fetch_add => fetch_add,
    __tsan_atomic64_fetch_sub => fetch_sub,
    __tsan_atomic64_fetch_and => fetch_and,
    __tsan_atomic64_fetch_or => fetch_or,
    __tsan_atomic64_fetch_xor => fetch_xor,
    __tsan_atomic64_fetch_nand => fetch_nand,
} }
