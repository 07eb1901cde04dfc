//! The seat, reserved by a writer alone.
use std::sync::{Arc, RwLock};
use std::thread;

fn reserve(seats: &RwLock<u32>) -> bool {
    let mut seats = seats.write().unwrap();
    let is_left = *seats > 0;
    *seats -= u32::from(is_left);
    is_left
}

fn main() {
    let seats = Arc::new(RwLock::new(1));
    let theirs = seats.clone();
    let other = thread::spawn(move || reserve(&theirs));
    let here = reserve(&seats);
    let there = other.join().unwrap();
    assert!(here != there);
    assert_eq!(*seats.read().unwrap(), 0);
}
