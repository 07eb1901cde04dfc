//! The same with the next version of the library, whose locks are given back by a subtraction.
use parking_lot_0_13::Mutex;
use std::sync::Arc;
use std::thread;

fn main() {
    let balance = Arc::new(Mutex::new(100));
    let theirs = balance.clone();
    let other = thread::spawn(move || *theirs.lock() += 10);
    *balance.lock() += 20;
    other.join().unwrap();
    assert_eq!(*balance.lock(), 130);
}
