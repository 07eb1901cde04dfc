//! A long run: threads that increment lock-protected counters, and here and there forget the lock.

use std::collections::VecDeque;

use foretell_trace::{Op, Trace};

use super::Program;
use crate::random::Random;

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Worker threads.
    pub threads: u32,
    /// Counters, each with a mutex.
    pub counters: u32,
    /// At least so many events.
    pub events: usize,
    /// Functions that increment without the lock, each on a counter of its own and each called
    /// once by two threads, far apart from the next.
    pub violations: u32,
    /// So many events lie between the calls of these two threads.
    pub apart: usize,
    /// Chooses who runs next.
    pub seed: u64,
}

/// The trace: every forgetful function is one violation of its own code location.
pub fn counters(wanted: Counters) -> Trace {
    let mut program = Program::new("counters.c");
    let counters: Vec<_> = (0..wanted.counters)
        .map(|number| {
            let counter = program.integer(&format!("counter{number}"), 0);
            (counter, program.mutex(&format!("lock{number}")))
        })
        .collect();
    let forgotten: Vec<_> =
        (0..wanted.violations).map(|number| program.integer(&format!("hits{number}"), 0)).collect();
    let workers: Vec<_> =
        (0..wanted.threads).map(|number| program.at(5).fork(&format!("worker{number}"))).collect();
    for &worker in &workers {
        program.at(10).push(worker, Op::Call("worker".into()));
    }
    let mut random = Random::new(wanted.seed);
    let stride = wanted.events / (wanted.violations as usize + 1);
    let mut due = 0;
    // Which function, by whom, and when.
    let mut second_calls = VecDeque::new();
    let hit = |program: &mut Program, thread, number: usize| {
        let line = 100 + 10 * number as u32;
        program.at(line).push(thread, Op::Call(format!("hit{number}").into()));
        program.at(line + 1).add(thread, forgotten[number], 1);
        program.at(line + 2).push(thread, Op::Return);
    };
    while program.len() < wanted.events {
        let worker = workers[random.below(workers.len())];
        if let Some(&(number, thread, when)) = second_calls.front()
            && program.len() >= when
        {
            second_calls.pop_front();
            hit(&mut program, thread, number);
            continue;
        }
        if due < forgotten.len() && program.len() > stride * (due + 1) {
            let other = workers[(worker.index() % workers.len()).max(1) - 1];
            let [one, two] = match other == worker {
                true => [workers[1], workers[0]],
                false => [worker, other],
            };
            hit(&mut program, one, due);
            second_calls.push_back((due, two, program.len() + wanted.apart));
            due += 1;
            continue;
        }
        let (counter, lock) = counters[random.below(counters.len())];
        program.at(20).push(worker, Op::Call("increment".into()));
        program.at(21).lock(worker, lock);
        let value = program.at(22).read(worker, counter);
        let sum = program.plus(value, 1);
        program.at(23).write(worker, counter, sum);
        program.at(24).unlock(worker, lock);
        program.at(25).push(worker, Op::Return);
    }
    for (number, thread, _) in second_calls {
        hit(&mut program, thread, number);
    }
    for &worker in &workers {
        program.at(30).push(worker, Op::Return);
        program.end(worker);
    }
    for &worker in &workers {
        program.at(6).join(worker);
    }
    program.finish()
}
