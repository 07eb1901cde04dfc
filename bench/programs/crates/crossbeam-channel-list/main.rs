//! crossbeam-channel 0.5.14: the receiver of an unbounded channel that goes while the first message is sent
//! frees a block that the channel frees once more (RUSTSEC-2025-0024, mended in 0.5.15).

fn main() {
    let (sender, receiver) = crossbeam_channel::unbounded::<Box<u32>>();
    let another = sender.clone();
    let first = std::thread::spawn(move || _ = sender.send(Box::new(1)));
    let second = std::thread::spawn(move || _ = another.send(Box::new(2)));
    drop(receiver);
    first.join().unwrap();
    second.join().unwrap();
}
