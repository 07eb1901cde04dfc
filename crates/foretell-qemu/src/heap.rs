//! The blocks that the program has allocated and freed. What it has freed it may no longer access, unless
//! somebody else has it since: the C library, which gives much of what it allocates to the program (`strdup`,
//! `readdir`), or a mapping. That is no event, as whoever comes first needs it; where it happens, the recording
//! says so.

use std::collections::BTreeMap;

use foretell_wire::gap;
use foretell_wire::record::Renew;
use rustc_hash::FxHashMap;

use crate::scheduler::scheduler;

/// See the module's text.
#[derive(Default)]
pub struct Heap {
    /// Sizes of blocks.
    blocks: FxHashMap<u64, u64>,
    /// Begins and ends of what was freed and not allocated again.
    freed: BTreeMap<u64, u64>,
}

impl Heap {
    /// The program has a new block.
    pub fn allocate(&mut self, block: u64, size: u64) {
        self.blocks.insert(block, size);
        self.take(block, size);
    }

    /// The program frees a block.
    pub fn free(&mut self, block: u64) {
        if let Some(size) = self.blocks.remove(&block) {
            self.freed.insert(block, block.saturating_add(size));
        }
    }

    /// The size of a block that was freed and not allocated again.
    pub fn freed_size(&self, block: u64) -> Option<u64> {
        self.freed.get(&block).map(|end| end - block)
    }

    /// Somebody has this memory. Says whether the program had freed some of it.
    fn take(&mut self, begin: u64, size: u64) -> bool {
        let end = begin.saturating_add(size.max(1));
        let before = self.freed.range(..end).rev().take_while(|(_, freed_to)| **freed_to > begin);
        let taken: Vec<u64> = before.map(|(&freed, _)| freed).collect();
        for freed in &taken {
            self.freed.remove(freed);
        }
        !taken.is_empty()
    }
}

/// Somebody else than the program has this memory: what lies there is something new.
pub fn taken_by_others(begin: u64, size: u64) {
    if begin == 0 {
        return;
    }
    scheduler().ring.record(0, 0, &Renew { address: begin, size });
    if scheduler().heap.take(begin, size) {
        scheduler().lacks_once(
            gap::FREED_IN_USE,
            "which memory that the program had freed the C library has taken for itself: where the recorded run itself \
             uses freed memory is not looked for",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_is_taken_once() {
        let mut heap = Heap::default();
        heap.allocate(1_000, 100);
        heap.allocate(1_200, 100);
        heap.free(500);
        assert!(!heap.take(1_000, 100), "it is the program's");
        heap.free(1_000);
        heap.free(1_200);
        assert_eq!((heap.freed_size(500), heap.freed_size(1_000)), (None, Some(100)));
        assert!(!heap.take(1_100, 100), "between both");
        assert!(heap.take(1_090, 120), "of both");
        assert!(!heap.take(1_000, 300));
        heap.allocate(1_000, 10);
        heap.free(1_000);
        heap.allocate(1_004, 2);
        assert!(!heap.take(1_000, 10), "the program has it again");
    }
}
