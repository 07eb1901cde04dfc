//! Allocation, and the functions of libc that move memory.
//!
//! What the C library allocates for itself (the buffer of a stream, a locale, the list of loaded
//! libraries) is allocated by whoever needs it first, so it is no event: a schedule could not be
//! followed otherwise. The recorder is only told that there is new memory. There are no scheduling
//! points either: the library holds locks of its own. A `free` of the program is one, so that a
//! schedule can have another thread use the memory right after it.

use foretell_wire::{Kind, access};
use libc::{c_int, c_void, size_t};

use super::blocking::{piece, written};
use crate::local;
use crate::modules;
use crate::real::{interpose, real};
use crate::recorder::head;
use crate::thread::{Session, peek};

// glibc's own allocator: looking it up by name would need an allocator.
unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(alignment: size_t, size: size_t) -> *mut c_void;
    fn malloc_usable_size(block: *mut c_void) -> size_t;
}

/// The memory is zero.
const ZEROED: u8 = 1;

fn allocated(block: *mut c_void, size: size_t, detail: u8) {
    if !block.is_null()
        && let Some(mut session) = Session::begin()
    {
        if modules::is_libc(session.place) {
            session.recorder().put([head(Kind::Renew, 0, 0), block as u64, size as u64]);
        } else {
            session.event(Kind::Alloc, detail, [block as u64, size as u64]);
        }
    }
}

fn freed(block: *mut c_void) {
    if !block.is_null()
        && let Some(mut session) = Session::begin()
        && !modules::is_libc(session.place)
    {
        session.event(Kind::Free, 0, [block as u64]);
    }
}

unsafe fn aligned(alignment: size_t, size: size_t) -> *mut c_void {
    // SAFETY: the program's wish.
    let block = unsafe { __libc_memalign(alignment, size) };
    allocated(block, size, 0);
    block
}

/// Whether a call from libc's caller is to be seen as accesses: code of the pass reports its own.
fn is_seen() -> bool {
    !local::current().is_null() && !modules::reports_copies(local::caller())
}

/// Events for a copy that is about to happen.
unsafe fn copied(session: &mut Session, destination: u64, source: u64, length: u64) {
    let place = session.place;
    session.point();
    let (mut at, end) = (source, source + length);
    while at < end {
        let size = piece(end - at);
        // SAFETY: the program is about to read it.
        let value = unsafe { peek(at, size) };
        let head = head(Kind::Read, access::detail(size, 0), place);
        session.me.access::<false, 0>(head, at, value, []);
        at += u64::from(size);
    }
    let (mut at, end) = (destination, destination + length);
    while at < end {
        let size = piece(end - at);
        // SAFETY: as above, and it is about to write.
        let (value, old) = unsafe { (peek(at - destination + source, size), peek(at, size)) };
        let head = head(Kind::Write, access::detail(size, 0), place);
        session.me.access::<false, 1>(head, at, value, [old]);
        at += u64::from(size);
    }
}

/// Events for a fill that is about to happen.
unsafe fn filled(session: &mut Session, destination: u64, byte: u8, length: u64) {
    let place = session.place;
    session.point();
    let (mut at, end) = (destination, destination + length);
    while at < end {
        let size = piece(end - at);
        let value = u64::from_le_bytes([byte; 8]) >> (64 - 8 * u32::from(size));
        // SAFETY: the program is about to write it.
        let old = unsafe { peek(at, size) };
        let head = head(Kind::Write, access::detail(size, 0), place);
        session.me.access::<false, 1>(head, at, value, [old]);
        at += u64::from(size);
    }
}

interpose! {
    fn malloc(size: size_t) -> *mut c_void {
        let block = __libc_malloc(size);
        allocated(block, size, 0);
        block
    }

    fn calloc(count: size_t, size: size_t) -> *mut c_void {
        let block = __libc_calloc(count, size);
        allocated(block, count.wrapping_mul(size), ZEROED);
        block
    }

    fn realloc as resize(block: *mut c_void, size: size_t) -> *mut c_void {
        let before = if block.is_null() { 0 } else { malloc_usable_size(block) };
        if !block.is_null() && size != 0 {
            freed(block);
        }
        let moved = __libc_realloc(block, size);
        allocated(moved, size, 0);
        if !moved.is_null() && let Some(mut session) = Session::begin()
            && !modules::is_libc(session.place)
        {
            // What was there is there again, in new memory.
            written(&mut session, moved as u64, before.min(size));
        }
        moved
    }

    fn reallocarray(block: *mut c_void, count: size_t, size: size_t) -> *mut c_void {
        let Some(bytes) = count.checked_mul(size) else {
            super::fail(libc::ENOMEM);
            return std::ptr::null_mut();
        };
        resize(block, bytes)
    }

    fn free(block: *mut c_void) -> () {
        let caller = local::caller();
        freed(block);
        __libc_free(block);
        if !block.is_null() && !local::current().is_null() && !modules::is_libc(caller)
            && let Some(mut session) = Session::begin()
        {
            session.point();
        }
    }

    fn memalign(alignment: size_t, size: size_t) -> *mut c_void {
        aligned(alignment, size)
    }

    fn aligned_alloc(alignment: size_t, size: size_t) -> *mut c_void {
        aligned(alignment, size)
    }

    fn posix_memalign(block: *mut *mut c_void, alignment: size_t, size: size_t) -> c_int {
        if !alignment.is_power_of_two() || !alignment.is_multiple_of(8) {
            return libc::EINVAL;
        }
        let errno = *libc::__errno_location();
        let fresh = aligned(alignment, size);
        if fresh.is_null() {
            *libc::__errno_location() = errno;
            return libc::ENOMEM;
        }
        *block = fresh;
        0
    }

    fn valloc(size: size_t) -> *mut c_void {
        aligned(4096, size)
    }

    fn memcpy as copy(destination: *mut c_void, source: *const c_void, count: size_t) -> *mut c_void {
        if is_seen() && let Some(mut session) = Session::begin() {
            copied(&mut session, destination as u64, source as u64, count as u64);
        }
        real!(memcpy(destination: *mut c_void, source: *const c_void,
            count: size_t) -> *mut c_void)
    }

    fn memmove as move_memory(destination: *mut c_void, source: *const c_void, count: size_t) -> *mut c_void {
        if is_seen() && let Some(mut session) = Session::begin() {
            copied(&mut session, destination as u64, source as u64, count as u64);
        }
        real!(memmove(destination: *mut c_void, source: *const c_void,
            count: size_t) -> *mut c_void)
    }

    fn memset as fill(destination: *mut c_void, byte: c_int, count: size_t) -> *mut c_void {
        if is_seen() && let Some(mut session) = Session::begin() {
            filled(&mut session, destination as u64, byte as u8, count as u64);
        }
        real!(memset(destination: *mut c_void, byte: c_int, count: size_t) -> *mut c_void)
    }

    fn __tsan_memcpy(
        destination: *mut c_void, source: *const c_void, count: size_t,
    ) -> *mut c_void {
        copy(destination, source, count)
    }

    fn __tsan_memmove(
        destination: *mut c_void, source: *const c_void, count: size_t,
    ) -> *mut c_void {
        move_memory(destination, source, count)
    }

    fn __tsan_memset(destination: *mut c_void, byte: c_int, count: size_t) -> *mut c_void {
        fill(destination, byte, count)
    }
}
