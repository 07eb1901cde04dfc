//! Two producers, and a consumer that takes the first message for the first producer's.
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let second = sender.clone();
    let threads = [
        thread::spawn(move || sender.send(1).unwrap()),
        thread::spawn(move || second.send(2).unwrap()),
    ];
    assert_eq!(receiver.recv().unwrap(), 1);
    assert_eq!(receiver.recv().unwrap(), 2);
    for thread in threads {
        thread.join().unwrap();
    }
}
