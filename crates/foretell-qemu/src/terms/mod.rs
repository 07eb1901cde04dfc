//! What was computed from what: expressions of the values that the program's own code writes and branches
//! on, from the p-code of its instructions.
//!
//! A thread's block is followed behind the emulation: when it accesses memory, and when its next block
//! begins, what it has executed since then is interpreted with the registers that it had at the begin of the
//! block and with what its loads found. Where a block begins, the registers are compared with QEMU's.
//!
//! Guaranteed: a value that is told as a constant does not depend on any read that is not held. What is not
//! followed (floating point, vectors, atomic instructions, functions of the C library, instructions that
//! SLEIGH does not know) makes what depends on it opaque, and an opaque value that is written, branched on
//! or used as an address, or that leaves the program's code, holds the reads that it depends on. What is
//! held is part of the access itself, as a condition on its address; a branch, and what is held when the
//! program's code is left, are events, which are made where no access has been made yet.
//! Missed: what the C library reads and writes by itself, as without expressions.

mod files;
mod lift;
mod operations;
mod registers;
mod value;

use std::ffi::c_uint;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use foretell_wire::Kind;

use crate::accesses::settle;
use crate::api::{Pointer, api};
use crate::cpu::{self, Machine, machine};
use crate::modules;
use crate::scheduler::{self, scheduler};
use crate::thread::Thread;
use crate::thread_of;
use files::files;
use lift::{Lifted, Operand};
use operations::Stop;
use registers::{OwnMemory, Registers};
use value::{Guards, Value};

static ON: AtomicBool = AtomicBool::new(false);

/// What is said where the registers, or what was written, are not what was followed.
const NOT_UNDERSTOOD: &str = "what was computed from what, where a signal came or an instruction does something else \
     than is known of it: what was computed before is held";

/// From now on expressions are recorded. The error says why not.
pub fn turn_on() -> Result<(), &'static str> {
    files().ok_or("SLEIGH does not know this processor's registers")?;
    ON.store(true, Relaxed);
    Ok(())
}

/// Whether expressions are recorded.
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// A block of the program's own code.
pub struct Block {
    begin: u64,
    instructions: Vec<Lifted>,
}

impl Block {
    fn end(&self) -> u64 {
        self.instructions.last().map_or(self.begin, |last| last.end)
    }
}

/// An access of the instruction that is being followed.
struct Seen {
    address: u64,
    size: u8,
    writes: bool,
    value: Value,
}

/// What is known of the values of a thread.
#[derive(Default)]
pub struct Terms {
    registers: Registers,
    temporaries: Registers,
    memory: OwnMemory,
    guards: Guards,
    block: Option<&'static Block>,
    /// The instruction that is followed next, and its operation.
    at: (usize, usize),
    seen: Vec<Seen>,
    /// What is known of the access that is being recorded: its address, and what it writes.
    access: Option<(Value, Option<Value>)>,
    /// The branch at the end of the block, and how it comes out.
    branch: Option<(Value, bool)>,
    /// It was left for a function of another file, which has not been entered yet.
    leaves: bool,
    /// Where the block goes, as far as that is known.
    goes_to: Option<u64>,
}

impl Terms {
    /// For a new thread, if expressions are recorded.
    pub fn new() -> Option<Box<Terms>> {
        is_on().then(Box::default)
    }

    /// Whether something else was written than was followed: then that is held, and nothing is said of it.
    fn contradicts(&mut self, bits: u64) -> bool {
        let written = self.access.as_ref().and_then(|(_, value)| value.as_ref());
        let Some(value) = written.filter(|value| value.bits.is_some_and(|known| known != bits))
        else {
            return false;
        };
        self.guards.hold(value);
        self.access = None;
        scheduler().gap_once(NOT_UNDERSTOOD);
        true
    }

    /// Follows what was executed up to the instruction that ends at the place; `None` if there is none.
    fn come_to(&mut self, place: u64) -> Option<&'static Lifted> {
        let block = self.block?;
        let mut rest = block.instructions.iter().enumerate().skip(self.at.0);
        let (number, instruction) = rest.find(|(_, one)| one.end == place)?;
        self.follow(block, number);
        Some(instruction)
    }

    /// Everything that the thread has computed so far has to be what it was.
    fn hold_all(&mut self) {
        for (_, value) in self.registers.free() {
            self.guards.hold(value);
        }
        self.registers = Registers::default();
        self.memory.hold(&mut self.guards, 0..u64::MAX);
    }

    /// Follows what was executed of the block up to its instruction with this number.
    fn follow(&mut self, block: &'static Block, until: usize) {
        while self.at.0 < until {
            let stop = self.run(&block.instructions[self.at.0], true);
            debug_assert!(matches!(stop, Stop::End));
            self.next();
        }
    }

    fn next(&mut self) {
        self.at = (self.at.0 + 1, 0);
        self.seen.clear();
        self.temporaries = Registers::default();
    }

    /// What the instruction depends on has to be what it was, and what it makes is not followed.
    fn hold_inputs(&mut self, instruction: &Lifted) {
        if instruction.operands.is_empty() {
            return self.hold_all();
        }
        for (operand, _) in &instruction.operands {
            let value = self.registers.read(&mut self.guards, operand);
            self.guards.hold(&value);
        }
        let seen: Vec<Value> = self.seen.iter().map(|seen| seen.value.clone()).collect();
        for value in seen {
            self.guards.hold(&value);
        }
        for (operand, writes) in &instruction.operands {
            if *writes {
                let width = u8::try_from(operand.size * 8).unwrap_or(u8::MAX);
                self.registers.write(&mut self.guards, operand, Value::unknown(width));
            }
        }
    }

    /// The rest of the block was executed, and the thread is here now, if that is known.
    fn finish_block(&mut self, here: Option<u64>) {
        let Some(block) = self.block.take() else { return };
        let count = block.instructions.len();
        let middle = here.filter(|&here| !self.may_go_to(block, here));
        let middle = middle.and_then(|here| {
            let mut rest = block.instructions.iter().enumerate().skip(self.at.0);
            rest.find(|(_, one)| one.address == here).map(|(number, _)| number)
        });
        // An instruction that QEMU executes alone, with all other threads stopped, begins a block of its own.
        if let Some(number) = middle {
            self.follow(block, number);
            self.at = (0, 0);
            self.seen.clear();
            return;
        }
        self.follow(block, count);
        self.at = (0, 0);
        let goes_to = self.goes_to.take();
        let thumb = u64::from(machine() == Machine::Arm);
        if here.zip(goes_to).is_some_and(|(here, goes_to)| here != goes_to & !thumb) {
            // A signal, or something that is not understood.
            self.branch = None;
            self.hold_all();
        }
    }

    /// Whether the end of the block may lead there.
    fn may_go_to(&self, block: &Block, address: u64) -> bool {
        let Some(last) = block.instructions.last() else { return false };
        let Some(operations) = &last.operations else { return true };
        let mut indirect = false;
        let mut goes = address == last.end;
        for operation in operations {
            use libsla::OpCode as O;
            match operation.code {
                O::Branch | O::BranchConditional | O::Call => {
                    goes |= operation.inputs.first().is_some_and(|to| to.offset == address);
                }
                O::BranchIndirect | O::CallIndirect | O::Return => indirect = true,
                _ => {}
            }
        }
        goes || indirect
    }

    /// Takes the registers from QEMU. Where one is not what was expected, something was not followed.
    fn refresh(&mut self, cpu: Pointer, followed: bool) {
        let Some(files) = files() else { return };
        let flags = cpu::register(cpu, files.flags_number);
        let flag = |&(bit, operand): &(u32, Operand)| (operand, flags >> bit & 1);
        let general = files.general.iter().map(|&(number, operand)| {
            let bits = cpu::register(cpu, number);
            (operand, bits)
        });
        let general: Vec<(Operand, u64)> = general.collect();
        let strange = general.iter().any(|(operand, bits)| {
            let known = self.registers.read(&mut self.guards, operand);
            // Code that is not the program's calls it with other registers than it was left with.
            if !followed && known.bits.is_some_and(|known| known != *bits) {
                self.guards.hold(&known);
                self.registers.write(
                    &mut self.guards,
                    operand,
                    Value::constant(known.width, *bits),
                );
                return false;
            }
            known.bits.is_some_and(|known| known != *bits)
        });
        if strange {
            scheduler().gap_once(NOT_UNDERSTOOD);
            self.hold_all();
        }
        for (operand, bits) in general.into_iter().chain(files.flags.iter().map(flag)) {
            let known = self.registers.read(&mut self.guards, &operand);
            if known.bits == Some(bits) {
                continue;
            }
            // What was computed in a way that is not followed is known now.
            let width = operand.size as u8 * 8;
            let value = Value::opaque(&mut self.guards, width, Some(bits), &[known.term()]);
            self.registers.write(&mut self.guards, &operand, value);
        }
    }
}

/// Lets QEMU call us at the block of the program, which is never freed: its instructions with their code,
/// and whether each can be followed.
pub fn watch(block: Pointer, thumb: bool, begin: u64, code: &[(u64, &[u8], bool)]) {
    let known = Block { begin, instructions: lift::lift(machine(), thumb, code) };
    let data = Box::into_raw(Box::new(known)).cast();
    (api().qemu_plugin_register_vcpu_tb_exec_cb)(block, on_block, 0, data);
}

/// Lets QEMU call us at a block that is not the program's.
pub fn watch_foreign(block: Pointer, begin: u64) {
    let on_foreign = if modules::is_stub(begin) { on_stub } else { on_foreign };
    (api().qemu_plugin_register_vcpu_tb_exec_cb)(block, on_foreign, 0, std::ptr::null_mut());
}

/// A block of the program begins.
extern "C" fn on_block(cpu: c_uint, data: Pointer) {
    let me = thread_of(cpu);
    // SAFETY: blocks are never freed.
    let block = unsafe { &*data.cast::<Block>() };
    me.in_code = true;
    if !me.started {
        crate::calls::begin_thread(me);
    }
    let followed = me.terms.as_ref().is_some_and(|terms| terms.block.is_some());
    if me.terms.as_ref().is_some_and(|terms| terms.leaves) {
        leave(me, true); // to a function of the program, as it turns out
    }
    finish(me, Some(block.begin));
    let Some(terms) = &mut me.terms else { return };
    terms.refresh(me.cpu, followed);
    flush(me);
    if let Some(terms) = &mut me.terms {
        (terms.block, terms.at) = (Some(block), (0, 0));
        terms.seen.clear();
    }
}

/// A block begins that is not the program's, and is no function that is recognised.
extern "C" fn on_foreign(cpu: c_uint, _data: Pointer) {
    let me = thread_of(cpu);
    if me.terms.as_ref().is_none_or(|terms| terms.block.is_none() && !terms.leaves) {
        return;
    }
    me.in_code = true;
    finish(me, None);
    leave(me, true);
}

/// The thread is on its way from the program to a function of another file.
extern "C" fn on_stub(cpu: c_uint, _data: Pointer) {
    let me = thread_of(cpu);
    if let Some(terms) = me.terms.as_mut().filter(|terms| terms.block.is_some()) {
        terms.leaves = true;
        me.in_code = true;
        finish(me, None);
    }
}

/// The block that the thread was in is over; what was branched on is told.
pub fn finish(me: &mut Thread, here: Option<u64>) {
    let Some(terms) = &mut me.terms else { return };
    let place = terms.block.map_or(0, Block::end);
    terms.finish_block(here);
    let Some((value, outcome)) = terms.branch.take() else { return };
    if value.term().is_none() {
        return;
    }
    flush(me);
    let Some(terms) = &mut me.terms else { return };
    let shadow = terms.guards.condition(&value);
    flush(me);
    if shadow != 0 {
        settle(me);
        scheduler::meet(scheduler(), place);
        let detail = u8::from(outcome);
        scheduler::access(me, Kind::Branch, detail, place, 0, shadow.into());
        scheduler::point(me);
    }
}

/// The thread is about to execute code that is not the program's, or (`executed` is false) a function of
/// which only the arguments matter that were asked for.
pub fn leave(me: &mut Thread, executed: bool) {
    let Some((terms, files)) = me.terms.as_mut().zip(files()) else { return };
    terms.leaves = false;
    if executed {
        let stack = cpu::stack_pointer(me.cpu);
        terms.memory.forget_below(stack);
        let mut points_here = false;
        let general = files.general.iter();
        for (number, operand) in general.filter(|(_, one)| files.arguments.contains(&one.offset)) {
            points_here |= me.stack.contains(&cpu::register(me.cpu, *number));
            let value = terms.registers.read(&mut terms.guards, operand);
            terms.guards.hold(&value);
        }
        // Floating point and vectors, but not flags, of one byte.
        let known = |offset: u64| files.general.iter().any(|(_, one)| one.offset == offset);
        let others = terms.registers.free();
        let others = others.filter(|(at, value)| value.width > 8 && !known(*at));
        let others: Vec<Value> = others.map(|(_, value)| value.clone()).collect();
        for value in &others {
            terms.guards.hold(value);
        }
        // More arguments are on the stack.
        const ARGUMENTS: u64 = 64;
        let until = if points_here { u64::MAX } else { stack.saturating_add(ARGUMENTS) };
        terms.memory.hold(&mut terms.guards, stack..until);
    }
    terms.registers.keep(|offset| files.preserved.contains(&offset));
    flush(me);
}

/// A function that is recognised looks at this argument.
pub fn hold_argument(me: &mut Thread, number: usize) {
    let Some((terms, files)) = me.terms.as_mut().zip(files()) else { return };
    let Some(&offset) = files.arguments.get(number) else { return };
    let operand = files.general.iter().find(|(_, one)| one.offset == offset);
    if let Some((_, operand)) = operand {
        let value = terms.registers.read(&mut terms.guards, operand);
        terms.guards.hold(&value);
    }
}

/// What has to be held is told, by events of their own. Only where no access was made since the last event.
pub fn flush(me: &mut Thread) {
    loop {
        let Some(terms) = &mut me.terms else { return };
        let Some((shadow, width, bits)) = terms.guards.next() else { return };
        settle(me);
        scheduler::event(me, Kind::Pin, width, 0, &[shadow.into(), bits]);
        scheduler::point(me);
    }
}

/// The instruction that ends at the place accesses memory.
pub fn before_access(me: &mut Thread, place: u64, address: u64, size: u8, writes: bool) {
    let Some(terms) = &mut me.terms else { return };
    terms.access = None;
    if terms.block.is_none() {
        return;
    }
    let Some(instruction) = terms.come_to(place) else { return terms.hold_all() };
    if size > 8 || instruction.operations.is_none() {
        return terms.hold_inputs(instruction);
    }
    match terms.run(instruction, false) {
        Stop::Load(at) if !writes && at.bits.is_none_or(|bits| bits == address) => {
            terms.access = Some((at, None));
        }
        Stop::Store(at, value)
            if writes
                && at.bits.is_none_or(|bits| bits == address)
                && value.width == size.saturating_mul(8) =>
        {
            terms.access = Some((at, Some(value)));
        }
        Stop::Load(at) => terms.guards.hold(&at),
        Stop::Store(at, value) => {
            terms.guards.hold(&at);
            terms.guards.hold(&value);
        }
        Stop::End => terms.hold_inputs(instruction),
    }
}

/// The instruction that ends at the place does something atomic, which is not followed.
pub fn before_atomic(me: &mut Thread, place: u64) {
    let Some(terms) = &mut me.terms else { return };
    terms.access = None;
    match terms.come_to(place) {
        Some(instruction) => terms.hold_inputs(instruction),
        None => terms.hold_all(),
    }
}

/// The instruction that ends at the place has read and written memory in one step, which held `old` before, if
/// that is known. It will be the thread's next event.
pub fn before_exchange(me: &mut Thread, place: u64, address: u64, size: u8, old: Option<u64>) {
    let index = me.index;
    let Some(terms) = &mut me.terms else { return };
    terms.access = None;
    let Some(instruction) = terms.come_to(place) else { return terms.hold_all() };
    let is_it = |at: &Value| at.bits.is_none_or(|bits| bits == address);
    if let Some(old) = old
        && let Stop::Load(at) = terms.run(instruction, false)
        && is_it(&at)
    {
        let value = Value::of_read(index, size * 8, old);
        terms.seen.push(Seen { address, size, writes: false, value });
        if let Stop::Store(to, value) = terms.run(instruction, false)
            && is_it(&to)
            && value.width == size * 8
        {
            terms.access = Some((at, Some(value)));
            return;
        }
        terms.seen.clear();
    }
    terms.hold_inputs(instruction);
}

/// The access is not recorded: nobody else knows the memory, or it never changes.
pub fn unrecorded(me: &mut Thread, address: u64, size: u8, bits: u64, writes: bool) {
    let Some(terms) = &mut me.terms else { return };
    let end = address.wrapping_add(size.into());
    if writes && terms.contradicts(bits) {
        terms.hold_all();
    }
    match terms.access.take() {
        Some((at, value)) => {
            // Which memory it is depends on it.
            terms.guards.hold(&at);
            let value = match writes {
                true => value,
                false => Some(terms.memory.load(&mut terms.guards, address, size, bits)),
            };
            if writes {
                terms.memory.store(address, size, value.as_ref(), bits);
            }
            if let Some(value) = value {
                terms.seen.push(Seen { address, size, writes, value });
            }
        }
        None if writes => terms.memory.store(address, size, None, bits),
        None => terms.memory.hold(&mut terms.guards, address..end),
    }
}

/// The names of what is written, which is this, and of the address of an access that is about to be
/// recorded.
pub fn of_access(me: &mut Thread, address: u64, bits: u64) -> u64 {
    let Some(terms) = &mut me.terms else { return 0 };
    if terms.contradicts(bits) {
        terms.hold_all();
    }
    let access = terms.access.clone();
    let (at, value) = access.map_or((None, None), |(at, value)| (Some(at), value));
    let written = terms.guards.written(value.as_ref());
    let address = terms.guards.address(at.as_ref(), address);
    u64::from(written) | u64::from(address) << 32
}

/// As [`of_access`], for what is read and written in one step. Where it is not followed, something else that was
/// read would not be changed.
pub fn of_exchange(me: &mut Thread, address: u64, size: u8, old: u64, new: u64) -> u64 {
    let index = me.index;
    let names = of_access(me, address, new);
    let Some(terms) = &mut me.terms else { return names };
    if terms.access.is_some() {
        return names;
    }
    names | u64::from(value::unchanged_unless(index, size * 8, old, new))
}

/// What was read and written in one step was recorded, as the event with this index.
pub fn exchanged(me: &mut Thread, index: u32, address: u64, size: u8, old: u64) {
    let Some(terms) = &mut me.terms else { return };
    match terms.access.take() {
        Some((_, value)) => {
            terms.seen.extend(value.map(|value| Seen { address, size, writes: true, value }))
        }
        None => terms.guards.hold(&Value::of_read(index, size * 8, old)),
    }
}

/// The access was recorded, as the event with this index.
pub fn recorded(me: &mut Thread, index: u32, address: u64, size: u8, bits: u64, writes: bool) {
    let Some(terms) = &mut me.terms else { return };
    let read = Value::of_read(index, size * 8, bits);
    match terms.access.take() {
        Some((_, value)) => {
            let value = if writes { value.unwrap_or(read) } else { read };
            terms.seen.push(Seen { address, size, writes, value });
        }
        // Nobody follows what was read.
        None if !writes => terms.guards.hold(&read),
        None => {}
    }
}

/// A thread's memory that was its own becomes known to others.
pub fn opened(thread: &mut Thread, range: std::ops::Range<u64>) {
    if let Some(terms) = &mut thread.terms {
        terms.memory.hold(&mut terms.guards, range);
    }
}

/// What is known of the access that is being recorded, while another one is.
pub fn aside(me: &mut Thread) -> Option<(Value, Option<Value>)> {
    me.terms.as_mut().and_then(|terms| terms.access.take())
}

/// After [`aside`].
pub fn back(me: &mut Thread, access: Option<(Value, Option<Value>)>) {
    if let Some(terms) = &mut me.terms {
        terms.access = access;
    }
}
