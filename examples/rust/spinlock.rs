//! A lock of one's own that is looked at and then taken: two threads can both find it free.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

static LOCKED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicU32 = AtomicU32::new(0);

fn work() {
    while LOCKED.load(Ordering::Acquire) {
        thread::yield_now();
    }
    LOCKED.store(true, Ordering::Release);
    assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0);
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    LOCKED.store(false, Ordering::Release);
}

fn main() {
    let other = thread::spawn(work);
    work();
    other.join().unwrap();
}
