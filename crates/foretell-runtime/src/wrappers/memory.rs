//! Allocation, and the functions of libc that move memory.
//!
//! What the C library allocates for itself (the buffer of a stream, a locale, the list of loaded
//! libraries) is allocated by whoever needs it first, so it is no event: a schedule could not be
//! followed otherwise. The recorder is only told that there is new memory. There are no scheduling
//! points either: the library holds locks of its own. A `free` of the program is one, so that a
//! schedule can have another thread use the memory right after it.

use std::collections::BTreeMap;

use foretell_abi::{COPY_HELD, COPY_SYMBOLIC, Site};
use foretell_wire::limits::MOST_MAPPED;
use foretell_wire::record;
use foretell_wire::{Kind, ZEROED, access};
use libc::{c_char, c_int, c_void, size_t};

use super::blocking::{piece, written};
use super::rust_channel;
use crate::arena;
use crate::channels::{self, descriptors};
use crate::hooks;
use crate::local;
use crate::modules;
use crate::real::{interpose, real};
use crate::recorder::head;
use crate::sys;
use crate::thread::{Session, peek};
use crate::turn::TurnCell;

// glibc's own allocator: looking it up by name would need an allocator.
unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(alignment: size_t, size: size_t) -> *mut c_void;
}

/// Where this thread's memory lies; `None` if the C library is to allocate, for itself or because the
/// thread is none of ours.
fn own_memory() -> Option<u32> {
    let current = local::current();
    if current.is_null() || modules::is_libc(local::caller()) {
        return None;
    }
    // SAFETY: this thread's own state.
    Some(unsafe { (*current).slot })
}

/// A block of the program, zero if it says so.
unsafe fn allocate(alignment: size_t, size: size_t, zero: bool) -> *mut c_void {
    if let Some(slot) = own_memory() {
        let (block, is_zero) = arena::allocate(slot, alignment, size);
        if !block.is_null() {
            if zero && !is_zero {
                // SAFETY: the block has so many bytes. (Not `memset`, which is a wrapper of ours.)
                unsafe { zeroed(block, size) };
            }
            return block.cast();
        }
    }
    // SAFETY: the program's wish.
    unsafe {
        match (zero, alignment > HEAP_ALIGNMENT) {
            (true, _) => __libc_calloc(size, 1),
            (false, true) => __libc_memalign(alignment, size),
            (false, false) => __libc_malloc(size),
        }
    }
}

unsafe fn zeroed(block: *mut u8, size: size_t) {
    // SAFETY: the caller's promise; the instruction stores `rcx` bytes of `al` at `rdi`.
    unsafe {
        core::arch::asm!("rep stosb", inout("rcx") size => _, inout("rdi") block => _, in("al") 0u8,
            options(nostack, preserves_flags));
    }
}

/// What every block is aligned to.
const HEAP_ALIGNMENT: size_t = 16;

/// Gives a block back, wherever it is from.
unsafe fn give_back(block: *mut c_void) {
    if !arena::holds(block.cast()) {
        // SAFETY: the program's wish.
        return unsafe { __libc_free(block) };
    }
    let current = local::current();
    // SAFETY: this thread's own state.
    let slot = (!current.is_null()).then(|| unsafe { (*current).slot });
    if let Err(misuse) = arena::release(slot, block.cast()) {
        refuse(misuse);
    }
}

/// Ends the program as glibc would.
fn refuse(misuse: arena::Misuse) -> ! {
    let message: &[u8] = match misuse {
        arena::Misuse::Twice => b"free(): double free detected\n",
        arena::Misuse::None => b"free(): invalid pointer\n",
    };
    sys::write(2, message);
    super::process::go_home();
    real!(abort() -> ());
    sys::exit(libc::SIGABRT)
}

/// How many bytes of the block may be used: of ours, those that were asked for.
unsafe fn usable(block: *mut c_void) -> size_t {
    if block.is_null() {
        return 0;
    }
    if !arena::holds(block.cast()) {
        return real!(malloc_usable_size(block: *mut c_void) -> size_t);
    }
    arena::size(block.cast()).unwrap_or_else(|misuse| refuse(misuse))
}

/// Another size, which is not zero, for a block; what it held is kept.
unsafe fn reallocate(block: *mut c_void, size: size_t) -> *mut c_void {
    if block.is_null() {
        // SAFETY: the program's wish.
        return unsafe { allocate(HEAP_ALIGNMENT, size, false) };
    }
    if !arena::holds(block.cast()) {
        // SAFETY: as above.
        return unsafe { __libc_realloc(block, size) };
    }
    // SAFETY: as above.
    let before = unsafe { usable(block) };
    if size >= before / 2
        && arena::resize(block.cast(), size).unwrap_or_else(|misuse| refuse(misuse))
    {
        return block;
    }
    // SAFETY: as above.
    let moved = unsafe { allocate(HEAP_ALIGNMENT, size, false) };
    if !moved.is_null() {
        let kept = before.min(size);
        real!(memcpy(moved: *mut c_void, block: *mut c_void, kept: size_t) -> *mut c_void);
        // SAFETY: as above.
        unsafe { give_back(block) };
    }
    moved
}

/// Anonymous memory that the program mapped, by address.
static MAPPED: TurnCell<BTreeMap<u64, u64>> = TurnCell::new(BTreeMap::new());

fn allocated(block: *mut c_void, size: size_t, detail: u8) {
    if !block.is_null()
        && let Some(mut session) = Session::begin()
    {
        let (address, size) = (block as u64, size as u64);
        if modules::is_libc(session.place) {
            session.recorder().record(0, 0, &record::Renew { address, size });
            // SAFETY: a session has the turn.
            unsafe { OF_THE_LIBRARY.get() }.insert(address, size);
            channels::allocated_by_library(address);
        } else {
            session.record(detail, &record::Alloc { address, size });
        }
    }
}

/// Memory that the C library allocated and has not given to the program.
static OF_THE_LIBRARY: TurnCell<BTreeMap<u64, u64>> = TurnCell::new(BTreeMap::new());

/// A function of the C library gave this memory to the program, if it was its own.
pub fn given(session: &mut Session, address: u64, site: *const Site) {
    // SAFETY: a session has the turn.
    if let Some(size) = unsafe { OF_THE_LIBRARY.get() }.remove(&address) {
        session.place = session.recorder().site(site);
        session.record(0, &record::Alloc { address, size });
    }
}

fn freed(block: *mut c_void) {
    if !block.is_null()
        && let Some(mut session) = Session::begin()
    {
        // SAFETY: a session has the turn.
        unsafe { OF_THE_LIBRARY.get() }.remove(&(block as u64));
        if !modules::is_libc(session.place) && !rust_channel::frees(&session, block as u64) {
            session.event(Kind::Free, 0, [block as u64]);
        }
    }
}

unsafe fn aligned(alignment: size_t, size: size_t) -> *mut c_void {
    // SAFETY: the program's wish.
    let block = unsafe { allocate(alignment.max(HEAP_ALIGNMENT).next_power_of_two(), size, false) };
    allocated(block, size, 0);
    block
}

/// A copy of a text in memory of the program. (In the C library's own `strdup` nobody could tell the
/// block from those that the library has for itself.)
unsafe fn copied_text(text: *const c_char, most: size_t) -> *mut c_char {
    let length = real!(strnlen(text: *const c_char, most: size_t) -> size_t);
    // SAFETY: the program's wish.
    let block = unsafe { allocate(HEAP_ALIGNMENT, length + 1, false) };
    if block.is_null() {
        super::fail(libc::ENOMEM);
        return std::ptr::null_mut();
    }
    allocated(block, length + 1, 0);
    real!(memcpy(block: *mut c_void, text: *const c_char, length: size_t) -> *mut c_void);
    // SAFETY: the block has room for the end of the text.
    unsafe { *block.cast::<u8>().add(length) = 0 };
    if let Some(mut session) = Session::begin()
        && !modules::is_libc(session.place)
    {
        let (to, from, place) = (block as u64, text as u64, session.place);
        let flags = COPY_SYMBOLIC | COPY_HELD;
        // The end of a text that is cut short is none of the original.
        let is_cut = length == most;
        let copied = if is_cut { length } else { length + 1 };
        hooks::copy::<false>(&mut session, place, to, from, copied as u64, flags);
        if is_cut {
            written(&mut session, to + length as u64, 1);
        }
    }
    block.cast()
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
        let block = allocate(HEAP_ALIGNMENT, size, false);
        allocated(block, size, 0);
        block
    }

    fn calloc(count: size_t, size: size_t) -> *mut c_void {
        let Some(bytes) = count.checked_mul(size) else {
            super::fail(libc::ENOMEM);
            return std::ptr::null_mut();
        };
        let block = allocate(HEAP_ALIGNMENT, bytes, true);
        allocated(block, bytes, ZEROED);
        block
    }

    fn realloc as resize(block: *mut c_void, size: size_t) -> *mut c_void {
        if size == 0 && !block.is_null() {
            release(block);
            return std::ptr::null_mut();
        }
        let before = usable(block);
        let moved = reallocate(block, size);
        if block.is_null() || modules::is_libc(local::caller()) {
            allocated(moved, size, 0);
        } else if !moved.is_null() && let Some(mut session) = Session::begin() {
            let kept = before.min(size) as u64;
            hooks::resized(&mut session, block as u64, moved as u64, size as u64, kept);
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

    // `operator new` and `operator delete` of C++: those of its library would call the ones above from a
    // place that is not the program's.
    fn _Znwm as make(size: size_t) -> *mut c_void {
        let block = allocate(HEAP_ALIGNMENT, size.max(1), false);
        if block.is_null() {
            return real!(_Znwm(size: size_t) -> *mut c_void);
        }
        allocated(block, size.max(1), 0);
        block
    }

    fn _Znam(size: size_t) -> *mut c_void {
        make(size)
    }

    fn _ZdlPv(block: *mut c_void) -> () {
        release(block);
    }

    fn _ZdlPvm(block: *mut c_void, _size: size_t) -> () {
        release(block);
    }

    fn _ZdaPv(block: *mut c_void) -> () {
        release(block);
    }

    fn _ZdaPvm(block: *mut c_void, _size: size_t) -> () {
        release(block);
    }

    fn free as release(block: *mut c_void) -> () {
        let caller = local::caller();
        freed(block);
        give_back(block);
        if !block.is_null() && !local::current().is_null() && !modules::is_libc(caller)
            && let Some(mut session) = Session::begin()
        {
            session.point();
        }
    }

    fn mmap(
        address: *mut c_void, size: size_t, protection: c_int, flags: c_int, file: c_int,
        offset: libc::off_t,
    ) -> *mut c_void {
        let block = real!(mmap(address: *mut c_void, size: size_t, protection: c_int,
            flags: c_int, file: c_int, offset: libc::off_t) -> *mut c_void);
        let is_new = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_FIXED == 0;
        if is_new && block != libc::MAP_FAILED && size <= MOST_MAPPED
            && let Some(mut session) = Session::begin()
            && !modules::is_libc(session.place)
        {
            MAPPED.get().insert(block as u64, size as u64);
            let (address, size) = (block as u64, size as u64);
            session.record(ZEROED, &record::Alloc { address, size });
        }
        let is_shared = flags & libc::MAP_SHARED != 0 && flags & libc::MAP_ANONYMOUS == 0;
        if is_shared && block != libc::MAP_FAILED && let Some(mut session) = Session::begin() {
            descriptors::mapped(&mut session, file);
        }
        block
    }

    fn munmap(block: *mut c_void, size: size_t) -> c_int {
        let mut session = Session::begin();
        let mapped = session.as_ref().and_then(|_| MAPPED.get().get(&(block as u64)).copied());
        if let (Some(session), Some(mapped)) = (&mut session, mapped)
            && size as u64 >= mapped
        {
            MAPPED.get().remove(&(block as u64));
            session.event(Kind::Free, 0, [block as u64]);
        }
        let result = real!(munmap(block: *mut c_void, size: size_t) -> c_int);
        if let (Some(mut session), Some(_)) = (session, mapped) {
            session.point();
        }
        result
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

    fn pvalloc(size: size_t) -> *mut c_void {
        aligned(4096, size.next_multiple_of(4096))
    }

    fn malloc_usable_size(block: *mut c_void) -> size_t {
        usable(block)
    }

    fn strdup as duplicate(text: *const c_char) -> *mut c_char {
        copied_text(text, usize::MAX)
    }

    fn __strdup(text: *const c_char) -> *mut c_char {
        duplicate(text)
    }

    fn strndup as duplicate_part(text: *const c_char, most: size_t) -> *mut c_char {
        copied_text(text, most)
    }

    fn __strndup(text: *const c_char, most: size_t) -> *mut c_char {
        duplicate_part(text, most)
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
