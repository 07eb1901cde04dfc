//! Two deposits, each of two steps that are locked and should be one: a lost update under correct locking.
use loom::sync::{Arc, Mutex};
use loom::thread;

fn read(balance: &Mutex<i32>) -> i32 {
    *balance.lock().unwrap()
}

fn write(balance: &Mutex<i32>, amount: i32) {
    *balance.lock().unwrap() = amount;
}

fn deposit(balance: &Mutex<i32>, amount: i32) {
    let seen = read(balance);
    write(balance, seen + amount);
}

fn program() {
    let balance = Arc::new(Mutex::new(100));
    let threads: Vec<_> = [10, 20]
        .into_iter()
        .map(|amount| {
            let balance = balance.clone();
            thread::spawn(move || deposit(&balance, amount))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(read(&balance), 130);
}

fn main() {
    loom::model(program);
}
