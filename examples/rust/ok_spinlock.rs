//! The same, repaired: to look and to take is one step.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

static LOCKED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicU32 = AtomicU32::new(0);

fn work() {
    while LOCKED.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        thread::yield_now();
    }
    assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0);
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    LOCKED.store(false, Ordering::Release);
}

fn main() {
    let other = thread::spawn(work);
    work();
    other.join().unwrap();
}
