//! The consumer goes after the first message, and the producer does not reckon with that.
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let producer = thread::spawn(move || {
        for number in 0..2 {
            sender.send(number).unwrap();
        }
    });
    assert_eq!(receiver.recv(), Ok(0));
    drop(receiver);
    producer.join().unwrap();
}
