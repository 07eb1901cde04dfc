//! loop-N: two threads, N times `t = x; x = t + 1` each, and main asserts that all were counted.

use foretell_trace::{ThreadId, Trace};

use super::Program;

/// The trace of a serial run.
pub fn lost_update(iterations: u32) -> Trace {
    let mut program = Program::new("loop.c");
    let x = program.integer("x", 0);
    let workers: Vec<ThreadId> =
        (0..2).map(|worker| program.fork(&format!("worker{worker}"))).collect();
    for &worker in &workers {
        for _ in 0..iterations {
            program.at(10).add(worker, x, 1);
        }
        program.end(worker);
    }
    for worker in workers {
        program.join(worker);
    }
    let value = program.at(20).read(Program::MAIN, x);
    let complete = program.is(value, 2 * u64::from(iterations));
    program.at(21).assert(Program::MAIN, complete);
    program.finish()
}
