//! Scoped threads that add to a sum in one step.
use std::sync::Mutex;
use std::thread;

fn main() {
    let sum = Mutex::new(0);
    thread::scope(|scope| {
        for part in [1, 2] {
            let sum = &sum;
            scope.spawn(move || *sum.lock().unwrap() += part);
        }
    });
    assert_eq!(*sum.lock().unwrap(), 3);
}
