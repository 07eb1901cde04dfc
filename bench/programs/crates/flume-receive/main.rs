//! flume 0.10.14: a receiving future that finds no message and then that the senders have gone loses what
//! the last of them sent in between (mended in 0.11.0).

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn main() {
    let (sender, receiver) = flume::unbounded::<u32>();
    let mut context = Context::from_waker(Waker::noop());
    let mut received = pin!(receiver.recv_async());
    assert!(received.as_mut().poll(&mut context).is_pending());
    let other = std::thread::spawn(move || sender.send(1).unwrap());
    let polled = received.as_mut().poll(&mut context);
    assert!(!matches!(polled, Poll::Ready(Err(_))), "the message was lost");
    other.join().unwrap();
}
