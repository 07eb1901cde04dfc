//! indexer-N (004 section 7, after Flanagan and Godefroid): N threads put four messages each into
//! one hash table by compare-and-swap, moving on when an entry is taken.
//!
//! With fewer than 12 threads no two share an entry. The assertion says that a particular entry
//! was free when its owner came: it can fail exactly when another thread wants that entry too.

use foretell_trace::{ThreadId, Trace, VariableId};

use super::Program;

const MESSAGES: u64 = 4;

/// 128 entries as in the paper; more for more threads than those would hold.
fn table_size(threads: u32) -> u64 {
    if u64::from(threads) * MESSAGES <= 128 { 128 } else { 512 }
}

fn message(thread: u32, number: u64) -> u64 {
    (number + 1) * 11 + u64::from(thread)
}

/// The first entry that two threads want.
pub fn first_collision(threads: u32) -> Option<u64> {
    let size = table_size(threads);
    let mut wanted = std::collections::HashMap::new();
    for thread in 0..threads {
        for number in 0..MESSAGES {
            let entry = message(thread, number) * 7 % size;
            if wanted.insert(entry, thread).is_some_and(|other| other != thread) {
                return Some(entry);
            }
        }
    }
    None
}

/// A serial run that asserts that `entry` was free when the first thread came to it.
pub fn indexer(threads: u32, entry: u64) -> Trace {
    let mut program = Program::new("indexer.c");
    let size = table_size(threads);
    let table: Vec<VariableId> =
        (0..size).map(|entry| program.integer(&format!("table[{entry}]"), 0)).collect();
    let workers: Vec<ThreadId> =
        (0..threads).map(|worker| program.fork(&format!("worker{worker}"))).collect();
    let mut asserted = false;
    for (number, &worker) in workers.iter().enumerate() {
        for sent in 0..MESSAGES {
            let value = message(number as u32, sent);
            let mut place = value * 7 % size;
            loop {
                let seen = program.at(10).claim(worker, table[place as usize], value);
                let free = program.is(seen, 0);
                if place == entry && !asserted {
                    asserted = true;
                    program.at(11).assert(worker, free);
                }
                if program.at(12).branch(worker, free) {
                    break;
                }
                place = (place + 1) % size;
            }
        }
        program.end(worker);
    }
    for worker in workers {
        program.join(worker);
    }
    program.finish()
}

#[cfg(test)]
mod tests {
    use super::first_collision;

    #[test]
    fn collisions_begin_with_twelve_threads() {
        assert_eq!(first_collision(11), None);
        assert!(first_collision(12).is_some());
    }
}
