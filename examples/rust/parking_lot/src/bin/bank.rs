//! The bank with the locks of parking_lot: a deposit is two steps that are locked and should be one.
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread;

fn deposit(balance: &Mutex<i32>, amount: i32) {
    let seen = *balance.lock();
    *balance.lock() = seen + amount;
}

fn main() {
    let balance = Arc::new(Mutex::new(100));
    let theirs = balance.clone();
    let other = thread::spawn(move || deposit(&theirs, 10));
    deposit(&balance, 20);
    other.join().unwrap();
    assert_eq!(*balance.lock(), 130);
}
