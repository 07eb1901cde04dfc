//! internment 0.3.12: `ArcIntern::new` took up a value whose last user was about to free it
//! (RUSTSEC-2020-0017, mended in 0.4.0).

use internment::ArcIntern;

fn main() {
    let mine = ArcIntern::new(7u64);
    let other = std::thread::spawn(|| *ArcIntern::new(7u64));
    drop(mine);
    assert_eq!(other.join().unwrap(), 7);
}
