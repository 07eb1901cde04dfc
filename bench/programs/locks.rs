//! A storm of locks around almost nothing: two threads, one mutex.

use std::sync::Mutex;

static SUMS: Mutex<(u64, u64)> = Mutex::new((0, 0));

fn work(rounds: u64) {
    for _ in 0..rounds {
        let mut sums = SUMS.lock().unwrap();
        sums.0 += 1;
        sums.1 += 2;
    }
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(Ok(100_000), |word| word.parse());
    let rounds = rounds.expect("a number of rounds");
    let other = std::thread::spawn(move || work(rounds));
    work(rounds);
    other.join().unwrap();
    println!("{:?}", SUMS.lock().unwrap());
}
