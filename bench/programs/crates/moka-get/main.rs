//! moka 0.9.5: two threads that ask for an entry at the same time may both compute it (mended in 0.9.6).

use std::sync::atomic::{AtomicU32, Ordering};

static TIMES: AtomicU32 = AtomicU32::new(0);

fn main() {
    let cache = moka::sync::Cache::new(8);
    let theirs = cache.clone();
    let get = |cache: moka::sync::Cache<u32, u32>| {
        cache.get_with(1, || TIMES.fetch_add(1, Ordering::SeqCst))
    };
    let other = std::thread::spawn(move || get(theirs));
    get(cache);
    other.join().unwrap();
    assert_eq!(TIMES.load(Ordering::SeqCst), 1);
}
