//! Two producers and a consumer that takes what comes, in any order, until nobody can send any more.
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let second = sender.clone();
    let threads = [
        thread::spawn(move || sender.send(1).unwrap()),
        thread::spawn(move || second.send(2).unwrap()),
    ];
    let sum: i32 = receiver.iter().sum();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(sum, 3);
}
