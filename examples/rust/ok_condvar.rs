//! Waiting as it should be: in a loop, with the lock held.
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

fn main() {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let theirs = shared.clone();
    let setter = thread::spawn(move || {
        *theirs.0.lock().unwrap() = 7;
        theirs.1.notify_one();
    });
    let mut value = shared.0.lock().unwrap();
    while *value == 0 {
        value = shared.1.wait(value).unwrap();
    }
    assert_eq!(*value, 7);
    drop(value);
    setter.join().unwrap();
}
