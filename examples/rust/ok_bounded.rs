//! A pipeline of channels with room for one message each.
use std::sync::mpsc;
use std::thread;

fn main() {
    let (numbers, doubles) = mpsc::sync_channel(1);
    let (doubled, results) = mpsc::sync_channel(1);
    let counter = thread::spawn(move || (0..3).for_each(|number| numbers.send(number).unwrap()));
    let doubler =
        thread::spawn(move || doubles.iter().for_each(|number| doubled.send(2 * number).unwrap()));
    for expected in [0, 2, 4] {
        assert_eq!(results.recv(), Ok(expected));
    }
    assert!(results.recv().is_err());
    counter.join().unwrap();
    doubler.join().unwrap();
}
