//! spin 0.9.2: a compare-and-swap of `Once` that failed was taken for one that succeeded, so that a thread
//! which came second initialised again (mended in 0.9.3).

use std::sync::atomic::{AtomicU32, Ordering};

static ONCE: spin::Once<()> = spin::Once::new();
static TIMES: AtomicU32 = AtomicU32::new(0);

fn initialise() {
    ONCE.call_once(|| _ = TIMES.fetch_add(1, Ordering::SeqCst));
}

fn main() {
    let other = std::thread::spawn(initialise);
    initialise();
    other.join().unwrap();
    assert_eq!(TIMES.load(Ordering::SeqCst), 1);
}
