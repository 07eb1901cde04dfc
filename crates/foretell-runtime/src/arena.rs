//! The program's heap while it is scheduled: every thread has memory of its own.
//!
//! A thread's memory lies in a range of addresses that its creation path alone decides, and what a
//! thread is given depends only on what it has allocated and freed itself: blocks that it frees go to
//! its own lists, whoever allocated them. So an object has the same address in every run in which its
//! thread did the same, however the threads were interleaved; programs that hash, compare or print
//! addresses do not leave their schedule for that.
//!
//! Misuse ends as it does with glibc, or more reliably: a block that is freed twice, or that is none,
//! ends the program by `abort`; the first words of a freed block are overwritten; the pages of a large
//! one are gone; and what was not given out yet cannot be accessed, but for what is left of the last step by which the
//! memory grew.
//!
//! What the C library allocates for itself stays in the C library's heap (it is allocated by whoever
//! needs it first, and would move everything after it), as does everything when no address space is
//! left.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8};

use crate::sys;
use crate::turn::TurnCell;

use foretell_wire::limits::MOST_KEPT_BLOCKS;

/// Where the memory of all threads begins: far from what the loader and the kernel use.
const BEGIN: u64 = 1 << 44;
/// So much address space for each thread.
const SLOT: u64 = 1 << 32;
/// Threads that `main` creates have a slot of their own below [`HASHED`]; others share those above.
const HASHED: u64 = 1 << 13;
const SLOTS: u64 = 1 << 14;
const END: u64 = BEGIN + SLOTS * SLOT;

/// Before each block.
#[repr(C)]
struct Head {
    /// Bytes that there is room for, and in the upper 16 bits what it is.
    room_and_state: u64,
    /// From the beginning of the memory that was carved out to the block.
    before: u32,
    /// How many bytes nobody asked for.
    unused: u32,
}

const HEAD: u64 = size_of::<Head>() as u64;
const STATE: u32 = 48;
const USED: u64 = 0xa110;
const FREE: u64 = 0xf4ee;

/// Blocks up to this size come in steps of 16 bytes, larger ones in a quarter of a power of two.
const FINE: u64 = 1024;
const CLASSES: usize = (FINE / 16) as usize + 4 * 22;
/// Blocks from this size on have pages of their own.
const LARGE: u64 = 128 << 10;
const PAGE: u64 = 4096;
/// A thread's memory grows by so much, about as glibc's does.
const STEP: u64 = 128 << 10;
const OPEN: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// The memory of one thread; lies at the beginning of its slot.
#[repr(C)]
struct Arena {
    /// What was never given out begins here; 0 before first use.
    next: u64,
    /// What cannot be accessed yet begins here.
    closed: u64,
    /// Freed blocks by class, the one freed last first.
    free: [u64; CLASSES],
    kept: [u32; CLASSES],
}

static LOCKED: AtomicBool = AtomicBool::new(false);
/// Which slots are mapped: 0 unknown, 1 yes, 2 no.
static SLOT_STATES: [AtomicU8; SLOTS as usize] = [const { AtomicU8::new(0) }; SLOTS as usize];
/// Freed blocks of [`LARGE`] size: slot of the thread that freed it, and block. Their own pages cannot
/// say so: they are gone.
static LARGE_FREE: TurnCell<Vec<(u64, u64, u64)>> = TurnCell::new(Vec::new());

/// The slot of the thread with this creation path.
pub fn slot_of(path: &[u32]) -> u32 {
    match *path {
        [] => 0,
        [child] if u64::from(child) + 1 < HASHED => child + 1,
        _ => {
            let mix = |hash: u64, &child: &u32| {
                (hash ^ u64::from(child)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            };
            (HASHED + path.iter().fold(1, mix) % (SLOTS - HASHED)) as u32
        }
    }
}

/// Whether the address is in the memory of some thread.
#[inline]
pub fn holds(block: *mut u8) -> bool {
    (BEGIN..END).contains(&(block as u64))
}

/// The block's size is rounded up to the largest of its class.
fn rounded(size: u64) -> u64 {
    let size = size.max(1);
    let step = if size <= FINE { 16 } else { 1 << ((size - 1).ilog2() - 2) };
    size.next_multiple_of(step)
}

/// The class of a rounded size.
fn class(size: u64) -> Option<usize> {
    if size <= FINE {
        return Some((size / 16 - 1) as usize);
    }
    let log = (size - 1).ilog2();
    let quarter = (size - 1) >> (log - 2) & 3;
    let class = (FINE / 16) as usize + 4 * (log - FINE.ilog2()) as usize + quarter as usize;
    (class < CLASSES).then_some(class)
}

fn with_lock<R>(act: impl FnOnce() -> R) -> R {
    while LOCKED.swap(true, Acquire) {
        std::hint::spin_loop();
    }
    let result = act();
    LOCKED.store(false, Release);
    result
}

/// In a forked child: whoever held the lock may not be there any more.
pub fn after_fork() {
    LOCKED.store(false, Release);
}

/// The arena of a slot; `None` if there is no address space for it.
///
/// # Safety
/// Under the lock, and not while another reference to the same arena is used.
unsafe fn arena(slot: u64) -> Option<&'static mut Arena> {
    let state = &SLOT_STATES[slot as usize];
    let begin = BEGIN + slot * SLOT;
    if state.load(Relaxed) == 0 {
        let mapped = sys::map_at(begin, SLOT as usize, libc::PROT_NONE);
        if mapped {
            sys::protect(begin, STEP, OPEN);
        }
        state.store(if mapped { 1 } else { 2 }, Relaxed);
    }
    if state.load(Relaxed) == 2 {
        return None;
    }
    // SAFETY: the slot is mapped, zero at first, which is a valid arena; used under the lock.
    let arena = unsafe { &mut *(begin as *mut Arena) };
    if arena.next == 0 {
        arena.next = (begin + size_of::<Arena>() as u64).next_multiple_of(PAGE);
        arena.closed = begin + STEP;
    }
    Some(arena)
}

/// A block for the thread with this slot, and whether its bytes are known to be zero; null if there is
/// none. `alignment` is a power of two.
pub fn allocate(slot: u32, alignment: usize, size: usize) -> (*mut u8, bool) {
    let slot = u64::from(slot);
    let alignment = alignment as u64;
    let room =
        if alignment <= HEAD { size as u64 } else { (size as u64).saturating_add(alignment) };
    if room >= SLOT {
        return (null_mut(), false);
    }
    let room = rounded(room);
    let Some(class) = class(room) else { return (null_mut(), false) };
    with_lock(|| {
        // SAFETY: under the lock.
        let Some(arena) = (unsafe { arena(slot) }) else { return (null_mut(), false) };
        let (begin, zero) = match reused(arena, slot, class, room) {
            Some(found) => found,
            None => match fresh(arena, slot, room) {
                Some(begin) => (begin, true),
                None => return (null_mut(), false),
            },
        };
        let first = begin + HEAD;
        let block = first.next_multiple_of(alignment.max(HEAD));
        let left = room - (block - first);
        // SAFETY: the memory is ours, and there is room for a head before the block.
        unsafe {
            ((block - HEAD) as *mut Head).write(Head {
                room_and_state: left | USED << STATE,
                before: (block - begin) as u32,
                unused: (left - size as u64) as u32,
            });
        }
        (block as *mut u8, zero)
    })
}

/// Memory that was freed: where it begins, and whether it is zero.
fn reused(arena: &mut Arena, slot: u64, class: usize, room: u64) -> Option<(u64, bool)> {
    if room >= LARGE {
        // SAFETY: under the lock.
        let list = unsafe { LARGE_FREE.get() };
        let at = list.iter().rposition(|&(owner, size, _)| (owner, size) == (slot, room))?;
        let (_, _, begin) = list.swap_remove(at);
        sys::protect(begin, large_pages(room), OPEN);
        return Some((begin, true));
    }
    let begin = arena.free[class];
    if begin == 0 {
        return None;
    }
    // SAFETY: a freed block's memory holds the hidden link after its head.
    arena.free[class] = unsafe { ((begin + HEAD) as *const u64).read() } ^ begin >> 12;
    arena.kept[class] = arena.kept[class].saturating_sub(1);
    Some((begin, false))
}

/// Memory that was never used.
fn fresh(arena: &mut Arena, slot: u64, room: u64) -> Option<u64> {
    let end = BEGIN + (slot + 1) * SLOT;
    let (begin, size) = match room >= LARGE {
        true => (arena.next.next_multiple_of(PAGE), large_pages(room)),
        false => (arena.next, HEAD + room),
    };
    if begin + size > end {
        return None;
    }
    arena.next = begin + size;
    if arena.next > arena.closed {
        let closed = arena.next.next_multiple_of(STEP);
        sys::protect(arena.closed, closed - arena.closed, OPEN);
        arena.closed = closed;
    }
    Some(begin)
}

fn large_pages(room: u64) -> u64 {
    (HEAD + room).next_multiple_of(PAGE)
}

/// What is wrong with a block that is to be freed or resized.
pub enum Misuse {
    /// It is free already.
    Twice,
    /// There is no such block.
    None,
}

/// The head of a block in use.
fn head(block: *mut u8) -> Result<Head, Misuse> {
    let at = block as u64;
    let slot = (at - BEGIN) / SLOT;
    if !at.is_multiple_of(HEAD) || SLOT_STATES[slot as usize].load(Relaxed) != 1 {
        return Err(Misuse::None);
    }
    // SAFETY: the slot is mapped, and begins with an arena.
    if at >= unsafe { (*((BEGIN + slot * SLOT) as *const Arena)).closed } {
        return Err(Misuse::None);
    }
    // SAFETY: the slot is mapped so far, and its first page is no block.
    let head = unsafe { ((at - HEAD) as *const Head).read() };
    let before = u64::from(head.before);
    match head.room_and_state >> STATE {
        USED if before >= HEAD && before <= at - BEGIN => Ok(head),
        FREE => Err(Misuse::Twice),
        _ => Err(Misuse::None),
    }
}

impl Head {
    fn room(&self) -> u64 {
        self.room_and_state & ((1 << STATE) - 1)
    }
}

/// How many bytes of a block in use were asked for.
pub fn size(block: *mut u8) -> Result<usize, Misuse> {
    head(block).map(|head| (head.room() - u64::from(head.unused)) as usize)
}

/// Another size for a block, if there is room for it where it lies.
pub fn resize(block: *mut u8, size: usize) -> Result<bool, Misuse> {
    with_lock(|| {
        let head = head(block)?;
        let Some(unused) = head.room().checked_sub(size as u64) else { return Ok(false) };
        // SAFETY: the head of a block in use, which the caller owns.
        unsafe {
            (*((block as u64 - HEAD) as *mut Head)).unused = unused as u32;
        }
        Ok(true)
    })
}

/// Frees a block, for the thread with this slot; `None` for a thread that has none.
pub fn release(slot: Option<u32>, block: *mut u8) -> Result<(), Misuse> {
    with_lock(|| {
        let head = head(block)?;
        let before = u64::from(head.before);
        let begin = block as u64 - before;
        let room = head.room() + before - HEAD;
        let owner = (begin - BEGIN) / SLOT;
        let mut keeper = slot.map_or(owner, u64::from);
        let Some(class) = class(room) else { return Err(Misuse::None) };
        if room >= LARGE {
            // SAFETY: under the lock.
            unsafe { LARGE_FREE.get() }.push((keeper, room, begin));
            sys::discard(begin, large_pages(room));
            sys::protect(begin, large_pages(room), libc::PROT_NONE);
            return Ok(());
        }
        // SAFETY: as above.
        if unsafe { arena(keeper) }
            .is_none_or(|arena| keeper != owner && arena.kept[class] >= MOST_KEPT_BLOCKS)
        {
            keeper = owner;
        }
        // SAFETY: as above.
        let Some(arena) = (unsafe { arena(keeper) }) else { return Err(Misuse::None) };
        // As glibc does, the link is hidden: who follows a pointer in a freed block goes astray.
        // SAFETY: the memory is ours again and holds at least a head and two words.
        unsafe {
            ((block as u64 - HEAD) as *mut u64).write(FREE << STATE);
            (begin as *mut u64).write(FREE << STATE);
            let words = (begin + HEAD) as *mut u64;
            words.write(arena.free[class] ^ begin >> 12);
            words.add(1).write(FREE << STATE);
        }
        arena.free[class] = begin;
        arena.kept[class] += 1;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_rounded_to_them() {
        let mut last = 0;
        for size in (1..5000).chain((5000..3_000_000).step_by(997)) {
            let room = rounded(size);
            assert!(room >= size && room <= size + size / 4 + 16, "{size} {room}");
            assert_eq!(rounded(room), room, "{size}");
            let class = class(room).expect("a class");
            assert!(class >= last, "{size}");
            last = class;
        }
    }

    #[test]
    fn a_class_has_one_size() {
        let mut sizes = std::collections::BTreeMap::new();
        for size in 1..200_000 {
            let room = rounded(size);
            assert_eq!(*sizes.entry(class(room)).or_insert(room), room, "{size}");
        }
    }

    #[test]
    fn main_and_its_children_have_slots_of_their_own() {
        let mut slots: Vec<u32> = (0..8190).map(|child| slot_of(&[child])).collect();
        slots.push(slot_of(&[]));
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 8191);
        for path in [&[3, 1][..], &[8191][..], &[0, 0, 0][..]] {
            let slot = u64::from(slot_of(path));
            assert!((HASHED..SLOTS).contains(&slot), "{path:?}");
        }
    }

    /// One test, because all use the same memory.
    #[test]
    fn what_a_thread_gets_depends_on_what_it_did() {
        let get = |slot: u32, size: usize| allocate(slot, 16, size).0;
        let free = |slot: u32, block: *mut u8| assert!(release(Some(slot), block).is_ok());
        let (mine, other) = (slot_of(&[100]), slot_of(&[101]));
        let first = get(mine, 40);
        let theirs = get(other, 40);
        assert!(holds(first) && holds(theirs));
        assert_eq!(get(mine, 40) as u64 - first as u64, 64, "others are not in between");
        // What the other thread frees is the other's.
        free(other, first);
        assert_ne!(get(mine, 40), first);
        assert_eq!(get(other, 40), first);
        assert!(matches!(size(first), Ok(40)));
        assert!(matches!(resize(first, 48), Ok(true)) && matches!(size(first), Ok(48)));
        assert!(matches!(resize(first, 49), Ok(false)) && matches!(size(first), Ok(48)));
        free(mine, first);
        assert!(matches!(release(Some(mine), first), Err(Misuse::Twice)));
        assert!(matches!(release(Some(mine), first.wrapping_add(16)), Err(Misuse::None)));
        assert!(matches!(release(Some(mine), first.wrapping_add(1)), Err(Misuse::None)));
        // Freed memory does not look as before.
        // SAFETY: the memory is still mapped.
        assert_ne!(unsafe { (first as *const u64).read() }, 0);

        for alignment in [16, 64, 4096, 1 << 20] {
            for size in [1, 100, 5000, 300_000] {
                let (block, _) = allocate(mine, alignment, size);
                assert!((block as usize).is_multiple_of(alignment), "{alignment} {size}");
                // SAFETY: the block is ours.
                unsafe { block.write_bytes(7, size) };
                assert!(matches!(super::size(block), Ok(asked) if asked == size));
                free(mine, block);
                let (again, zero) = allocate(mine, alignment, size);
                assert_eq!(again, block, "{alignment} {size}");
                if zero {
                    // SAFETY: as above.
                    assert_eq!(unsafe { block.add(size - 1).read() }, 0);
                }
                free(mine, block);
            }
        }
        assert!(allocate(mine, 16, 1 << 33).0.is_null());
    }
}
