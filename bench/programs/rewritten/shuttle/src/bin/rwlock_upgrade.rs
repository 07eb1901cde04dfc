//! A reader becomes a writer by letting go of the lock and taking it again: what it read is old.
use shuttle::sync::{Arc, RwLock};
use shuttle::thread;

fn reserve(seats: &RwLock<u32>) -> bool {
    let left = *seats.read().unwrap();
    if left == 0 {
        return false;
    }
    *seats.write().unwrap() -= 1;
    true
}

fn program() {
    let seats = Arc::new(RwLock::new(1));
    let theirs = seats.clone();
    let other = thread::spawn(move || reserve(&theirs));
    let here = reserve(&seats);
    let there = other.join().unwrap();
    assert!(here != there, "the last seat went to both");
}

fn main() {
    shuttle::check_random(program, 10_000);
}
