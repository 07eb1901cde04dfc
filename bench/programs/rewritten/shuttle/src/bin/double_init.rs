//! Initialisation behind a flag that two threads can both find unset.
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use shuttle::thread;

shuttle::lazy_static! {
    static ref READY: AtomicBool = AtomicBool::new(false);
    static ref OPENED: AtomicU32 = AtomicU32::new(0);
}

fn open() {
    if !READY.load(Ordering::Acquire) {
        OPENED.fetch_add(1, Ordering::SeqCst);
        READY.store(true, Ordering::Release);
    }
}

fn program() {
    let threads = [thread::spawn(open), thread::spawn(open)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(OPENED.load(Ordering::SeqCst), 1, "opened twice");
}

fn main() {
    shuttle::check_random(program, 10_000);
}
