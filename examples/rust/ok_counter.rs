//! The counter, added to.
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

static COUNTER: AtomicU32 = AtomicU32::new(0);

fn count() {
    COUNTER.fetch_add(1, Ordering::SeqCst);
}

fn main() {
    let threads = [thread::spawn(count), thread::spawn(count)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(COUNTER.load(Ordering::SeqCst), 2);
}
