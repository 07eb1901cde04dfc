//! crossbeam-deque 0.8.0: who steals several tasks one by one goes on reading the buffer that the owner has
//! replaced by a smaller one, and gets tasks that are done already (RUSTSEC-2021-0093, mended in 0.8.1).

use crossbeam_deque::Worker;

fn main() {
    let tasks = Worker::new_lifo();
    (0..65).for_each(|task| tasks.push(task));
    let stealer = tasks.stealer();
    let mut done: Vec<u32> = (0..32).filter_map(|_| tasks.pop()).collect();
    let thief = std::thread::spawn(move || {
        let stolen = Worker::new_lifo();
        let first = stealer.steal_batch_and_pop(&stolen).success();
        first.into_iter().chain(std::iter::from_fn(move || stolen.pop())).collect::<Vec<u32>>()
    });
    done.extend((0..31).filter_map(|_| tasks.pop()));
    tasks.push(65);
    done.extend(thief.join().unwrap());
    done.extend(std::iter::from_fn(|| tasks.pop()));
    assert_eq!(done.iter().filter(|task| **task == 65).count(), 1);
}
