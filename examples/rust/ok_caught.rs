//! A worker that comes too late panics, which the program expects and handles.
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let closed = Arc::new(AtomicBool::new(false));
    let theirs = closed.clone();
    let worker = thread::spawn(move || {
        let work = || assert!(!theirs.load(Ordering::SeqCst), "closed");
        panic::catch_unwind(work).is_ok()
    });
    closed.store(true, Ordering::SeqCst);
    worker.join().unwrap();
}
