//! atom001 and atom002 (000 section 6): two bug patterns of the Apache web server, and versions
//! with a fix that only data shows.
//!
//! atom001: a thread tests a pointer and uses it, another clears it (RWR). atom002: a thread
//! appends to a log buffer field by field, another does the same (33 times RWW). In both the other
//! thread also has one access in a common critical section, which locksets rule out, and main
//! initialises and resets, which must-happens-before rules out. The fixed versions make the other
//! thread look at a flag first that is set at the end of the block.

use foretell_trace::{Op, ThreadId, Trace, VariableId};

use super::Program;

/// Potential violations 8, after must-happens-before 2, after locksets 1, real 1 (fixed: 0).
pub fn atom001(fixed: bool) -> Trace {
    let mut program = Program::new("atom001.c");
    let pointer = program.integer("entry", 0);
    let lock = program.mutex("entry_lock");
    let done = program.integer("done", 0);
    let one = program.constant(1);
    for line in 10..13 {
        program.at(line).write(Program::MAIN, pointer, one);
    }
    let user = program.fork("user");
    let cleaner = program.fork("cleaner");

    program.at(20).push(user, Op::RegionBegin("use".into()));
    program.at(21).lock(user, lock);
    let tested = program.at(22).read(user, pointer);
    let valid = program.is(tested, 1);
    program.branch(user, valid);
    program.at(23).read(user, pointer);
    program.at(24).unlock(user, lock);
    program.at(25).push(user, Op::RegionEnd);
    program.at(26).write(user, done, one);
    program.end(user);

    if fixed {
        wait_for(&mut program, cleaner, done);
    }
    let zero = program.constant(0);
    program.at(31).write(cleaner, pointer, zero);
    let two = program.constant(2);
    program.at(32).lock(cleaner, lock);
    program.at(33).write(cleaner, pointer, two);
    program.at(34).unlock(cleaner, lock);
    program.end(cleaner);

    program.join(user);
    program.join(cleaner);
    for line in 40..43 {
        program.at(line).write(Program::MAIN, pointer, zero);
    }
    program.finish()
}

/// Potential violations 212, after must-happens-before 34, after locksets 33, real 33 (fixed: 0).
pub fn atom002(fixed: bool) -> Trace {
    const FIELDS: u32 = 34;
    let mut program = Program::new("atom002.c");
    let fields: Vec<VariableId> =
        (0..FIELDS).map(|field| program.integer(&format!("buffer.{field}"), 0)).collect();
    let lock = program.mutex("buffer_lock");
    let done = program.integer("done", 0);
    let zero = program.constant(0);
    // 178 writes of main: five of each field and eight more.
    for number in 0..178 {
        let field = fields[(number % FIELDS) as usize];
        program.at(1000 + number).write(Program::MAIN, field, zero);
    }
    let one = program.constant(1);
    let writer = program.fork("writer");
    let other = program.fork("other");
    program.at(20).push(writer, Op::RegionBegin("append".into()));
    append(&mut program, writer, &fields, 100, 1, lock);
    program.at(21).push(writer, Op::RegionEnd);
    program.at(22).write(writer, done, one);
    program.end(writer);
    if fixed {
        wait_for(&mut program, other, done);
    }
    append(&mut program, other, &fields, 300, 2, lock);
    program.end(other);
    program.join(writer);
    program.join(other);
    program.finish()
}

/// Adds to every field; the last one in one critical section.
fn append(
    program: &mut Program,
    thread: ThreadId,
    fields: &[VariableId],
    line: u32,
    amount: u64,
    lock: foretell_trace::ObjectId,
) {
    for (number, &field) in fields.iter().enumerate() {
        let line = line + 2 * number as u32;
        let last = number + 1 == fields.len();
        if last {
            program.at(line).lock(thread, lock);
        }
        let value = program.at(line).read(thread, field);
        let sum = program.plus(value, amount);
        program.at(line + 1).write(thread, field, sum);
        if last {
            program.at(line).unlock(thread, lock);
        }
    }
}

/// `while (!done) ;`, which the run passed at once.
fn wait_for(program: &mut Program, thread: ThreadId, flag: VariableId) {
    let value = program.at(30).read(thread, flag);
    let set = program.is(value, 1);
    program.branch(thread, set);
}
