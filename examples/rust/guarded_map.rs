//! A cache that two workers both miss: the look and the insertion are locked one by one.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Default)]
struct Cache {
    entries: Mutex<BTreeMap<u32, u32>>,
    computed: Mutex<u32>,
}

impl Cache {
    fn get(&self, key: u32) -> u32 {
        if let Some(value) = self.entries.lock().unwrap().get(&key) {
            return *value;
        }
        *self.computed.lock().unwrap() += 1;
        let value = key * key;
        self.entries.lock().unwrap().insert(key, value);
        value
    }
}

fn main() {
    let cache = Arc::new(Cache::default());
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let cache = cache.clone();
            thread::spawn(move || cache.get(7))
        })
        .collect();
    for worker in workers {
        assert_eq!(worker.join().unwrap(), 49);
    }
    assert_eq!(*cache.computed.lock().unwrap(), 1, "computed twice");
}
