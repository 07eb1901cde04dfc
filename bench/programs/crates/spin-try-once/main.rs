//! spin 0.9.7: who waits in `Once::try_call_once` for another that initialises took it for impossible that
//! the other fails (RUSTSEC-2023-0031, mended in 0.9.8).

static ONCE: spin::Once<u32> = spin::Once::new();

fn main() {
    let other = std::thread::spawn(|| ONCE.try_call_once(|| Err(())).copied());
    let mine = ONCE.try_call_once(|| Ok::<u32, ()>(1)).copied();
    let theirs = other.join().unwrap();
    assert_eq!(mine, Ok(1));
    assert!(theirs.is_err() || theirs == Ok(1));
}
