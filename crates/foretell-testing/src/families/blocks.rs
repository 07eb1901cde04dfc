//! Runs of the shapes in Table 1 of 003: threads that run blocks over variables, each variable with
//! its lock. Most blocks hold the lock throughout; some give it back and take it again in between
//! (lock-valid violations), some forget it, some hand data over with a flag (so that what a thread
//! does next depends on what it read).

use std::collections::VecDeque;

use foretell_trace::{Op, Trace};

use super::Program;
use crate::random::Random;

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Worker threads.
    pub threads: u32,
    /// Shared variables.
    pub variables: u32,
    /// Locks; variable `v` belongs to lock `v % locks`.
    pub locks: u32,
    /// About so many events.
    pub events: usize,
    /// Chooses blocks and who runs next.
    pub seed: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Begin,
    End,
    Lock(usize),
    Unlock(usize),
    Read(usize),
    /// Read, and branch on what was read.
    Test(usize),
    Write(usize, u64),
}

/// Different values that variables take; few, so that several writes can explain a read.
const VALUES: usize = 4;
/// Copies of the code, so that a block has a place in the source of its own.
const COPIES: usize = 8;

/// The trace.
pub fn blocks(wanted: Blocks) -> Trace {
    let mut program = Program::new("blocks.c");
    let variables: Vec<_> =
        (0..wanted.variables).map(|number| program.integer(&format!("v{number}"), 0)).collect();
    let locks: Vec<_> =
        (0..wanted.locks).map(|number| program.mutex(&format!("l{number}"))).collect();
    let workers: Vec<_> =
        (0..wanted.threads).map(|number| program.at(1).fork(&format!("worker{number}"))).collect();
    let mut random = Random::new(wanted.seed);
    let mut held: Vec<Option<usize>> = vec![None; locks.len()];
    let mut scripts: Vec<VecDeque<(u32, Step)>> = vec![VecDeque::new(); workers.len()];
    let (mut worker, mut burst) = (0, 0);
    loop {
        let full = program.len() + 4 * workers.len() >= wanted.events;
        if full && scripts.iter().all(VecDeque::is_empty) {
            break;
        }
        if burst == 0 {
            (worker, burst) = (random.below(workers.len()), 1 + random.below(10));
        }
        burst -= 1;
        if scripts[worker].is_empty() && !full {
            scripts[worker] = script(&mut random, variables.len(), locks.len());
        }
        let Some(&(line, step)) = scripts[worker].front() else { continue };
        let thread = workers[worker];
        program.at(line);
        match step {
            Step::Lock(lock) if held[lock].is_some() => {
                burst = 0; // somebody else goes on
                continue;
            }
            Step::Lock(lock) => {
                held[lock] = Some(worker);
                program.lock(thread, locks[lock]);
            }
            Step::Unlock(lock) => {
                held[lock] = None;
                program.unlock(thread, locks[lock]);
            }
            Step::Begin => program.push(thread, Op::RegionBegin("block".into())),
            Step::End => program.push(thread, Op::RegionEnd),
            Step::Read(variable) => {
                program.read(thread, variables[variable]);
            }
            Step::Test(variable) => {
                let value = program.read(thread, variables[variable]);
                let condition = program.is(value, 1);
                program.branch(thread, condition);
            }
            Step::Write(variable, value) => {
                let value = program.constant(value);
                program.write(thread, variables[variable], value);
            }
        }
        scripts[worker].pop_front();
    }
    for &worker in &workers {
        program.at(2).end(worker);
    }
    for &worker in &workers {
        program.at(3).join(worker);
    }
    program.finish()
}

/// The steps of one block and their lines.
fn script(random: &mut Random, variables: usize, locks: usize) -> VecDeque<(u32, Step)> {
    let variable = random.below(variables);
    let lock = variable % locks;
    let value = random.below(VALUES) as u64;
    let mut steps = vec![Step::Begin];
    let kind = random.below(10);
    match kind {
        0..6 => {
            steps.push(Step::Lock(lock));
            for _ in 0..1 + random.below(4) {
                let neighbour = (variable + locks * random.below(3)) % variables;
                let neighbour = if neighbour % locks == lock { neighbour } else { variable };
                steps.extend([Step::Read(neighbour), Step::Write(neighbour, value)]);
            }
            steps.push(Step::Unlock(lock));
        }
        6..8 => steps.extend([
            Step::Lock(lock),
            Step::Read(variable),
            Step::Unlock(lock),
            Step::Lock(lock),
            Step::Write(variable, value),
            Step::Unlock(lock),
        ]),
        8 => steps.extend([Step::Read(variable), Step::Write(variable, value)]),
        _ => steps.extend([
            Step::Lock(lock),
            Step::Test(variable),
            Step::Unlock(lock),
            Step::Read((variable + 1) % variables),
            Step::Lock(lock),
            Step::Write(variable, 1),
            Step::Unlock(lock),
        ]),
    }
    steps.push(Step::End);
    let first_line = 100 * (1 + kind + 10 * random.below(COPIES)) as u32;
    steps.into_iter().enumerate().map(|(at, step)| (first_line + at as u32, step)).collect()
}
