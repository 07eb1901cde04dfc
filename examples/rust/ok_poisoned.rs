//! A holder panics, which is caught; the other user of the poisoned lock goes on with what it protects.
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::thread;

static SUM: Mutex<u32> = Mutex::new(0);

fn main() {
    let other = thread::spawn(|| {
        let caught = panic::catch_unwind(|| {
            let mut sum = SUM.lock().unwrap_or_else(PoisonError::into_inner);
            *sum += 1;
            panic!("on purpose");
        });
        assert!(caught.is_err());
    });
    *SUM.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    other.join().unwrap();
    assert_eq!(*SUM.lock().unwrap_or_else(PoisonError::into_inner), 2);
}
