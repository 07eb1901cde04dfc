//! The bank, repaired: a deposit is one step.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let balance = Arc::new(Mutex::new(100));
    let threads: Vec<_> = [10, 20]
        .into_iter()
        .map(|amount| {
            let balance = balance.clone();
            thread::spawn(move || *balance.lock().unwrap() += amount)
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*balance.lock().unwrap(), 130);
}
