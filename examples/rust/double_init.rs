//! Initialisation behind a flag that two threads can both find unset.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

static READY: AtomicBool = AtomicBool::new(false);
static OPENED: AtomicU32 = AtomicU32::new(0);

fn open() {
    if !READY.load(Ordering::Acquire) {
        OPENED.fetch_add(1, Ordering::SeqCst);
        READY.store(true, Ordering::Release);
    }
}

fn main() {
    let threads = [thread::spawn(open), thread::spawn(open)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(OPENED.load(Ordering::SeqCst), 1, "opened twice");
}
