//! The waiter looks at the flag, lets go of the lock, and waits: a notification in between is lost.
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;

fn program() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let theirs = shared.clone();
    let setter = thread::spawn(move || {
        *theirs.0.lock().unwrap() = true;
        theirs.1.notify_one();
    });
    let is_ready = *shared.0.lock().unwrap();
    if !is_ready {
        let guard = shared.0.lock().unwrap();
        drop(shared.1.wait(guard).unwrap());
    }
    setter.join().unwrap();
}

fn main() {
    shuttle::check_random(program, 10_000);
}
