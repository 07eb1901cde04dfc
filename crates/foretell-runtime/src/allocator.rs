//! The runtime's own heap.
//!
//! Kept apart from the program's, so that recording changes no address the program sees and the
//! wrappers of `malloc` never meet themselves. Powers of two from 16 bytes to 64 KiB in free lists,
//! larger blocks straight from the kernel. A spinning lock guards it: it is used when threads, sync
//! objects and tables come into being, not in hot paths.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

const FIRST_CLASS: u32 = 4;
const LAST_CLASS: u32 = 16;
const CLASSES: usize = (LAST_CLASS - FIRST_CLASS + 1) as usize;
const REGION: usize = 1 << 20;

/// See the module's text.
pub struct Heap {
    locked: AtomicBool,
    state: UnsafeCell<State>,
}

struct State {
    free: [*mut u8; CLASSES],
    next: *mut u8,
    left: usize,
}

// SAFETY: `state` is only touched while `locked` is held.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    locked: AtomicBool::new(false),
    state: UnsafeCell::new(State {
        free: [std::ptr::null_mut(); CLASSES],
        next: std::ptr::null_mut(),
        left: 0,
    }),
};

/// The class that a layout belongs to; `None` for large blocks.
fn class(layout: Layout) -> Option<u32> {
    let size = layout.size().max(layout.align()).max(1 << FIRST_CLASS);
    let class = size.next_power_of_two().trailing_zeros();
    (class <= LAST_CLASS).then_some(class)
}

fn whole_pages(bytes: usize) -> usize {
    bytes.div_ceil(4096) * 4096
}

impl Heap {
    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: we hold the lock.
        let result = act(unsafe { &mut *self.state.get() });
        self.locked.store(false, Ordering::Release);
        result
    }

    /// In a forked child: the lock may have been held by a thread that is not there any more.
    pub fn after_fork(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

/// Makes the heap usable in a forked child.
pub fn after_fork() {
    HEAP.after_fork();
}

// SAFETY: blocks are disjoint: each comes from a free list or from fresh memory.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class(layout) else {
            return sys::map(whole_pages(layout.size()));
        };
        let size = 1 << class;
        self.with(|state| {
            let list = &mut state.free[(class - FIRST_CLASS) as usize];
            if !list.is_null() {
                let block = *list;
                // SAFETY: a free block's first word is the next free block.
                *list = unsafe { *block.cast::<*mut u8>() };
                return block;
            }
            // Blocks are carved from the end, so that sizes of powers of two stay aligned.
            let carve = |state: &State| {
                (state.next as usize + state.left).checked_sub(size).map(|at| at & !(size - 1))
            };
            let mut end = carve(state).unwrap_or(0);
            if end < state.next as usize || state.next.is_null() {
                state.next = sys::map(REGION);
                state.left = if state.next.is_null() { 0 } else { REGION };
                if state.left == 0 {
                    return std::ptr::null_mut();
                }
                end = carve(state).unwrap_or(0);
            }
            state.left = end - state.next as usize;
            end as *mut u8
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.alloc(layout) };
        // What comes straight from the kernel is zero; to write there would cost a fault a page.
        if !block.is_null() && class(layout).is_some() {
            // SAFETY: the block has this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(class) = class(layout) else {
            // SAFETY: the block was mapped with this size.
            unsafe {
                let bytes = whole_pages(layout.size()) as u64;
                sys::call(libc::SYS_munmap, [block as u64, bytes, 0, 0, 0, 0]);
            }
            return;
        };
        self.with(|state| {
            let list = &mut state.free[(class - FIRST_CLASS) as usize];
            // SAFETY: the block is ours again and holds at least a word.
            unsafe { *block.cast::<*mut u8>() = *list };
            *list = block;
        });
    }
}
