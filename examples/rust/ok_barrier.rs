//! Two threads meet at a barrier that the first of them makes.
use std::sync::{Barrier, LazyLock, Mutex};
use std::thread;

static MEETING: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));
static COME: Mutex<u32> = Mutex::new(0);

fn meet() {
    *COME.lock().unwrap() += 1;
    MEETING.wait();
    assert_eq!(*COME.lock().unwrap(), 2);
}

fn main() {
    let other = thread::spawn(meet);
    meet();
    other.join().unwrap();
}
