//! Initialisation once, however many come.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

static VALUE: OnceLock<u32> = OnceLock::new();
static CALLS: AtomicU32 = AtomicU32::new(0);

fn value() -> u32 {
    *VALUE.get_or_init(|| {
        CALLS.fetch_add(1, Ordering::SeqCst);
        42
    })
}

fn main() {
    let threads = [thread::spawn(value), thread::spawn(value)];
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 42);
    }
    assert_eq!(CALLS.load(Ordering::SeqCst), 1);
}
