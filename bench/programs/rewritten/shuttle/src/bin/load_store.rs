//! A counter that is loaded and stored instead of added to.
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;

shuttle::lazy_static! {
    static ref COUNTER: AtomicU32 = AtomicU32::new(0);
}

fn count() {
    let seen = COUNTER.load(Ordering::SeqCst);
    COUNTER.store(seen + 1, Ordering::SeqCst);
}

fn program() {
    let threads = [thread::spawn(count), thread::spawn(count)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(COUNTER.load(Ordering::SeqCst), 2);
}

fn main() {
    shuttle::check_random(program, 10_000);
}
