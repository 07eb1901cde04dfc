//! A taker that comes too early panics while it holds the lock, which is then poisoned for everybody else.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let queue = Arc::new(Mutex::new(Vec::new()));
    let theirs = queue.clone();
    let taker = thread::spawn(move || theirs.lock().unwrap().pop().expect("an element"));
    queue.lock().unwrap().push(1);
    assert_eq!(taker.join().unwrap(), 1);
}
