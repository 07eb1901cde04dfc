//! Two locks, taken in opposite orders.
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

fn transfer(from: &Mutex<i32>, to: &Mutex<i32>, amount: i32) {
    let mut from = from.lock().unwrap();
    let mut to = to.lock().unwrap();
    *from -= amount;
    *to += amount;
}

fn program() {
    let accounts = Arc::new((Mutex::new(100), Mutex::new(100)));
    let theirs = accounts.clone();
    let other = thread::spawn(move || transfer(&theirs.0, &theirs.1, 10));
    transfer(&accounts.1, &accounts.0, 20);
    other.join().unwrap();
    assert_eq!(*accounts.0.lock().unwrap() + *accounts.1.lock().unwrap(), 200);
}

fn main() {
    shuttle::check_random(program, 10_000);
}
