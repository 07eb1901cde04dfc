//! Instructions.

mod arithmetic;
mod instruction;
mod values;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::memory::{Byte, Memory, Object, Value};
use super::text::unordered;
use super::{Doing, Frame, State, Thread};
use crate::certificate::Assumption;
use crate::ir::{Constant, Function, Instruction, Module, Op, Operand, Place, TagId, Type};
use crate::limits::CHECKED_INSTRUCTIONS;

/// Why a step does not lead to a state.
pub(super) enum End {
    /// The program is over, or the environment does not do this.
    Over,
    Violation(Place),
    /// Nothing is said about it here.
    Unknown(Place, String),
}

pub(super) type Result<T> = std::result::Result<T, End>;

pub(super) fn mask(value: u128, bits: u32) -> u128 {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

pub(super) fn signed(value: u128, bits: u32) -> i128 {
    (value << (128 - bits)) as i128 >> (128 - bits)
}

pub(super) fn unknown<T>(place: Place, what: impl Into<String>) -> Result<T> {
    Err(End::Unknown(place, what.into()))
}

pub(super) struct Checker<'m> {
    pub(super) module: &'m Module,
    uses: Vec<Uses>,
    /// For each function, instructions of operands that C evaluates in any order, and it matters.
    unordered: Vec<HashSet<(u32, u32)>>,
    /// Signals are kept until they are received: needed to see that nobody can go on.
    pub(super) signals: bool,
    /// What had to be assumed.
    pub(super) assumed: RefCell<BTreeSet<Assumption>>,
    /// By which types variables were accessed, in all states.
    types: RefCell<HashMap<Variable, Accesses>>,
    /// Where locks were, in all states.
    used: RefCell<HashSet<(Object, i64)>>,
    /// What was copied, from and to, in all states: object, first byte, end.
    copied: RefCell<HashSet<(Object, i64, i64)>>,
}

/// A global, or one of a function.
type Variable = (Option<u32>, u32);

/// From, to, type.
type Accesses = HashSet<(i64, i64, TagId)>;

/// What is known about the registers of a function.
struct Uses {
    /// A variable whose address is only used to read and write it.
    plain: Vec<bool>,
    /// The block that defines it is not the only one that uses it.
    far: Vec<bool>,
    /// For each block: the last instruction that uses the register.
    last: Vec<Vec<Option<u32>>>,
}

impl Uses {
    fn of(function: &Function) -> Self {
        let count = function.registers.len();
        let mut uses = Uses {
            plain: vec![false; count],
            far: vec![true; count],
            last: vec![vec![None; count]; function.blocks.len()],
        };
        let mut defined = vec![None; count];
        for (block, body) in function.blocks.iter().enumerate() {
            for instruction in &body.instructions {
                if let Some(register) = instruction.result {
                    defined[register as usize] = Some(block);
                    uses.far[register as usize] = false;
                    uses.plain[register as usize] = matches!(instruction.op, Op::Allocate { .. });
                }
            }
        }
        for (block, body) in function.blocks.iter().enumerate() {
            for (at, instruction) in body.instructions.iter().enumerate() {
                let address = match &instruction.op {
                    Op::Load { from, .. } => Some(from),
                    Op::Store { to, .. } => Some(to),
                    _ => None,
                };
                for operand in instruction.op.operands() {
                    let Operand::Register(register) = operand else { continue };
                    let register = *register as usize;
                    uses.last[block][register] = Some(at as u32);
                    // the value of a phi is needed where the jump to it is
                    uses.far[register] |= defined[register] != Some(block)
                        || matches!(instruction.op, Op::Phi { .. });
                    if !address.is_some_and(|address| std::ptr::eq(address, operand)) {
                        uses.plain[register] = false;
                    }
                }
            }
        }
        uses
    }
}

impl<'m> Checker<'m> {
    pub(super) fn new(module: &'m Module, signals: bool) -> Self {
        let uses = module.functions.iter().map(Uses::of).collect();
        Self {
            module,
            uses,
            unordered: unordered(module),
            signals,
            assumed: RefCell::default(),
            types: RefCell::default(),
            used: RefCell::default(),
            copied: RefCell::default(),
        }
    }

    pub(super) fn assume(&self, what: Assumption) {
        self.assumed.borrow_mut().insert(what);
    }

    pub(super) fn function(&self, id: u32) -> &'m Function {
        &self.module.functions[id as usize]
    }

    pub(super) fn first(&self) -> Result<State> {
        let nowhere = Place::default();
        let mut memory = Memory::default();
        for (id, global) in self.module.globals.iter().enumerate() {
            let Some(initial) = &global.initial else { continue };
            if global.thread_local {
                return unknown(nowhere, "a thread-local variable");
            }
            let Some(size) = global.content.size() else {
                return unknown(nowhere, "a variable without a size");
            };
            let object = Object::Global(id as u32);
            memory.add(object, vec![Byte::Undefined; size as usize]);
            memory.pad(object, global.padding.as_ref());
            self.initialise(&mut memory, object, 0, &global.content, initial)?;
        }
        let main = self.module.function("main").filter(|&id| self.function(id).is_defined());
        let Some(main) = main else { return unknown(nowhere, "no main") };
        let mut state = State { memory, threads: Vec::new(), alone: None };
        // a command line of the program's name only
        let parameters = self.function(main).parameters.len();
        let mut arguments = Vec::new();
        if parameters > 0 {
            self.assume(Assumption::NoArguments);
            arguments = vec![Value::Integer(1), Value::Undefined];
        }
        state.threads.push(Some(self.thread(main, &arguments)));
        self.run(&mut state, 0)?;
        self.forget(&mut state);
        Ok(state)
    }

    pub(super) fn thread(&self, function: u32, arguments: &[Value]) -> Thread {
        let frame = self.frame(function, arguments, None);
        Thread { frames: vec![frame], detached: false, doing: Doing::Runs }
    }

    fn frame(&self, function: u32, arguments: &[Value], result: Option<u32>) -> Frame {
        let body = self.function(function);
        let mut registers = vec![Value::Undefined; body.registers.len()];
        for (parameter, value) in body.parameters.iter().zip(arguments) {
            registers[parameter.register as usize] = value.clone();
        }
        Frame { function, block: 0, at: 0, registers, locals: 0, result }
    }

    fn initialise(
        &self,
        memory: &mut Memory,
        object: Object,
        at: i64,
        kind: &Type,
        constant: &Constant,
    ) -> Result<()> {
        let nowhere = Place::default();
        let size = kind.size().unwrap_or(0) as usize;
        let stored = match (constant, kind) {
            (Constant::Undefined, _) => Some(()),
            (Constant::Zero, _) => memory.write(object, at, &vec![Byte::Number(0); size]),
            (Constant::Bytes(bytes), _) => {
                let bytes: Vec<Byte> = bytes.iter().map(|byte| Byte::Number(*byte)).collect();
                memory.write(object, at, &bytes)
            }
            (Constant::Aggregate(parts), _) => {
                for (place, (part_kind, part)) in parts.iter().enumerate() {
                    let offset = match kind {
                        Type::Array(_, element) => element.size().map(|size| size * place as u64),
                        Type::Struct(fields) => fields.offset(place),
                        _ => None,
                    };
                    let Some(offset) = offset else { return unknown(nowhere, "an initialiser") };
                    self.initialise(memory, object, at + offset as i64, part_kind, part)?;
                }
                Some(())
            }
            _ => {
                let value = self.constant(nowhere, constant, kind)?;
                memory.store(object, at, size, &value)
            }
        };
        stored.map_or_else(|| unknown(nowhere, "an initialiser"), Ok)
    }

    /// The instruction that comes next.
    pub(super) fn next(&self, state: &State, thread: usize) -> Option<&'m Instruction> {
        let frame = state.threads.get(thread)?.as_ref()?.frames.last()?;
        let block = &self.function(frame.function).blocks[frame.block as usize];
        block.instructions.get(frame.at as usize)
    }

    /// Takes a step, and then what nobody else can see.
    pub(super) fn step(&self, state: &mut State, thread: usize, choice: u32) -> Result<()> {
        self.instruction(state, thread, choice)?;
        self.run(state, thread)
    }

    pub(super) fn run(&self, state: &mut State, thread: usize) -> Result<()> {
        for _ in 0..CHECKED_INSTRUCTIONS {
            if self.is_step(state, thread) {
                return Ok(());
            }
            self.instruction(state, thread, 0)?;
        }
        let place = self.next(state, thread).map(|next| next.place).unwrap_or_default();
        unknown(place, "a loop of steps that no other thread can see")
    }

    /// Is what the thread does next a step of its own?
    fn is_step(&self, state: &State, number: usize) -> bool {
        let Some(thread) = state.threads[number].as_ref() else { return true };
        let Some(frame) = thread.frames.last().filter(|_| thread.doing == Doing::Runs) else {
            return true;
        };
        let Some(instruction) = self.next(state, number) else { return true };
        let running = |thread: &&Option<Thread>| {
            thread.as_ref().is_some_and(|thread| !matches!(thread.doing, Doing::Ended(_)))
        };
        let alone = state.alone.is_some() || state.threads.iter().filter(running).count() < 2;
        let access = |operand: &Operand| match operand {
            Operand::Register(register) => {
                !alone && !self.uses[frame.function as usize].plain[*register as usize]
            }
            Operand::Constant(_) => !alone,
        };
        match &instruction.op {
            Op::Load { from, .. } => access(from),
            Op::Store { to, .. } => access(to),
            Op::Modify { .. } => !alone,
            Op::Exchange { weak, .. } => *weak || !alone,
            Op::Return(_) => thread.frames.len() == 1,
            Op::Call { callee, .. } => match self.operand(state, number, callee, &Type::Pointer) {
                Ok(Value::Pointer(Object::Function(id), 0)) if self.function(id).is_defined() => {
                    false
                }
                Ok(Value::Pointer(Object::Function(id), 0))
                    if self.function(id).name.starts_with("llvm.") =>
                {
                    !alone
                }
                _ => state.alone.is_none() || self.choices(state, number) != 1,
            },
            _ => false,
        }
    }

    /// Forgets registers that are not used any more.
    pub(super) fn forget(&self, state: &mut State) {
        for frame in state.threads.iter_mut().flatten().flat_map(|thread| &mut thread.frames) {
            let uses = &self.uses[frame.function as usize];
            let last = &uses.last[frame.block as usize];
            for (register, value) in frame.registers.iter_mut().enumerate() {
                if !uses.far[register] && last[register].is_none_or(|last| last < frame.at) {
                    *value = Value::Undefined;
                }
            }
        }
    }

    pub(super) fn top<'s>(&self, state: &'s mut State, thread: usize) -> Result<&'s mut Frame> {
        let frame = state.threads[thread].as_mut().and_then(|thread| thread.frames.last_mut());
        frame.map_or_else(|| unknown(Place::default(), "a thread without a call"), Ok)
    }

    /// Objects are no more.
    pub(super) fn remove(&self, state: &mut State, is: &dyn Fn(&Object) -> bool) {
        state.memory.remove(is);
        for thread in state.threads.iter_mut().flatten() {
            if let Doing::Ended(value) = &mut thread.doing {
                value.remove(is);
            }
            for value in thread.frames.iter_mut().flat_map(|frame| &mut frame.registers) {
                value.remove(is);
            }
        }
    }
}
