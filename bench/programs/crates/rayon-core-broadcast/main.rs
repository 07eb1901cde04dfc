//! rayon-core 1.10.0: a thread of the pool that went to sleep did not look for jobs of a broadcast, and
//! slept over one (mended in 1.10.1).

fn main() {
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.broadcast(|_| ());
}
