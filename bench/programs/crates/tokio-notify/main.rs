//! tokio 1.5.0: `Notify::notify_waiters` without a waiter loaded the state and stored it changed; what
//! `notify_one` stored between the two was lost (mended in 1.6.0).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::sync::Notify;

fn main() {
    let notify = Arc::new(Notify::new());
    let theirs = notify.clone();
    let other = std::thread::spawn(move || theirs.notify_waiters());
    notify.notify_one();
    other.join().unwrap();
    let notified = pin!(notify.notified());
    assert!(notified.poll(&mut Context::from_waker(Waker::noop())).is_ready());
}
