//! Whoever finds itself alone takes the value out; another user may come or go in between.
use std::sync::Arc;
use std::thread;

fn finish(value: Arc<String>) -> Option<String> {
    match Arc::strong_count(&value) {
        1 => Some(Arc::try_unwrap(value).expect("the last user")),
        _ => None,
    }
}

fn main() {
    let value = Arc::new(String::from("result"));
    let theirs = value.clone();
    let other = thread::spawn(move || finish(theirs));
    let here = finish(value);
    let there = other.join().unwrap();
    assert!(here.is_some() || there.is_some(), "nobody took it");
}
