//! A holder panics when it comes second, and the lock is poisoned for everybody else.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let queue = Arc::new(Mutex::new(vec![1]));
    let theirs = queue.clone();
    let taker = thread::spawn(move || theirs.lock().unwrap().pop().expect("an element"));
    let taken = queue.lock().unwrap().pop();
    let other = taker.join();
    assert!(taken.is_none() || other.is_err());
}
