//! The encoder runs in the hot path of the program under test: it must not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use foretell_testing::arbitrary;
use foretell_trace::format::binary::{
    ChunkEncoder, ChunkSealer, Compression, MAX_STEP_BYTES, Name, Step,
};
use foretell_trace::{Op, ThreadId};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn events_and_chunks_are_written_without_allocating() {
    let trace = arbitrary::recorded(1, 20_000);
    let mut encoder = ChunkEncoder::new();
    let mut sealer = ChunkSealer::new(Compression::Lz4);
    let mut records: Vec<u8> = Vec::with_capacity(64 * 1024);
    let mut longest = 0;
    let mut chunks = 0;
    // The first round lets the sealer's buffer grow to the size of a chunk.
    for round in 0..2 {
        let before = allocations();
        for (sequence, event) in trace.events.iter().enumerate() {
            let start = records.len();
            encoder.event(sequence as u64, event, &mut records);
            let texts = match &event.op {
                Op::RegionBegin(text) | Op::Call(text) | Op::Input { source: text, .. } => {
                    text.len()
                }
                _ => 0,
            };
            longest = longest.max(records.len() - start - texts);
            let at = Step { sequence: 0, thread: ThreadId(0), index: 0, site: None };
            encoder.call(at, Name { key: 1, text: "function" }, &mut records);
            if records.capacity() - records.len() < 2 * MAX_STEP_BYTES {
                sealer.seal(&mut encoder, &mut records);
                chunks += 1;
            }
        }
        if round == 1 {
            assert_eq!(allocations() - before, 0);
        }
    }
    assert!(chunks > 4, "the buffer was sealed and used again");
    assert!(longest <= MAX_STEP_BYTES, "{longest}");
}
