//! Instructions.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::memory::{Byte, Memory, Object, Value};
use super::text::unordered;
use super::{Doing, Frame, State, Thread};
use crate::certificate::Assumption;
use crate::ir::{
    Arithmetic, Cast, Change, Comparison, Constant, Flags, Function, Instruction, Manner, Module,
    Op, Operand, Order, Place, Promises, TagId, Type,
};
use crate::limits::{CHECKED_BYTES, CHECKED_CALLS, CHECKED_INSTRUCTIONS};

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
        unknown(place, "a loop that nobody sees")
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

    pub(super) fn operand(
        &self,
        state: &State,
        thread: usize,
        operand: &Operand,
        kind: &Type,
    ) -> Result<Value> {
        match operand {
            Operand::Register(register) => {
                let frame = state.threads[thread].as_ref().and_then(|t| t.frames.last());
                Ok(frame.map_or(Value::Undefined, |f| f.registers[*register as usize].clone()))
            }
            Operand::Constant(constant) => self.constant(Place::default(), constant, kind),
        }
    }

    fn constant(&self, place: Place, constant: &Constant, kind: &Type) -> Result<Value> {
        Ok(match (constant, kind) {
            (Constant::Integer(number), Type::Integer(bits)) => {
                Value::Integer(mask(*number, *bits))
            }
            (Constant::Integer(number), Type::Pointer) => {
                Value::Pointer(Object::Number, *number as i64)
            }
            (Constant::Zero, Type::Integer(_)) => Value::Integer(0),
            (Constant::Zero, Type::Pointer) => Value::Pointer(Object::Number, 0),
            (Constant::Undefined, _) => Value::Undefined,
            (Constant::Global(id), _) => Value::Pointer(Object::Global(*id), 0),
            (Constant::Function(id), _) => Value::Pointer(Object::Function(*id), 0),
            (Constant::Behind(base, further), _) => {
                match self.constant(place, base, &Type::Pointer)? {
                    Value::Pointer(object @ Object::Global(id), at)
                        if self.module.globals[id as usize]
                            .content
                            .size()
                            .is_some_and(|size| (0..=size as i64).contains(&(at + further))) =>
                    {
                        Value::Pointer(object, at + further)
                    }
                    _ => return unknown(place, "a constant"),
                }
            }
            (Constant::Same(inner), Type::Pointer) => {
                pointer(self.constant(place, inner, &Type::Integer(64))?)
            }
            (Constant::Same(inner), _) => number(self.constant(place, inner, &Type::Pointer)?),
            _ => return unknown(place, "a constant"),
        })
    }

    pub(super) fn integer(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
        bits: u32,
    ) -> Result<u128> {
        match self.operand(state, thread, operand, &Type::Integer(bits))? {
            Value::Integer(number) => Ok(mask(number, bits)),
            _ => unknown(place, "a number that is not known"),
        }
    }

    pub(super) fn address(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
    ) -> Result<(Object, i64)> {
        match self.operand(state, thread, operand, &Type::Pointer)? {
            Value::Pointer(object, offset) => Ok((object, offset)),
            _ => unknown(place, "an address that is not known"),
        }
    }

    /// Checks that bytes may be accessed.
    fn check(
        &self,
        state: &State,
        place: Place,
        (object, offset): (Object, i64),
        length: usize,
        writes: bool,
    ) -> Result<()> {
        match object {
            Object::Global(id) if !state.memory.has(object) => {
                let name = &self.module.globals[id as usize].name;
                return unknown(place, format!("the variable {name}"));
            }
            Object::Function(_) | Object::Thread(_) => return unknown(place, "an odd access"),
            Object::Global(id) if writes && self.module.globals[id as usize].constant => {
                return Err(End::Violation(place));
            }
            _ => {}
        }
        if state.memory.read(object, offset, length).is_none() {
            return Err(End::Violation(place));
        }
        let end = offset + length as i64;
        let in_use = |&(of, at): &(Object, i64)| of == object && at < end && offset < at + 4;
        match state.memory.locks.keys().any(in_use) {
            true => unknown(place, "an access of a lock"),
            false => Ok(()),
        }
    }

    fn load(&self, state: &State, place: Place, at: (Object, i64), kind: &Type) -> Result<Value> {
        if let Object::Global(id) = at.0
            && matches!(&*self.module.globals[id as usize].name, "stdout" | "stderr")
        {
            return Ok(Value::Pointer(at.0, 0));
        }
        let length = self.length(place, kind)?;
        self.check(state, place, at, length, false)?;
        let value = state.memory.load(at.0, at.1, length).unwrap_or(Value::Undefined);
        Ok(if *kind == Type::Pointer { pointer(value) } else { value })
    }

    pub(super) fn store(
        &self,
        state: &mut State,
        place: Place,
        at: (Object, i64),
        kind: &Type,
        value: &Value,
    ) -> Result<()> {
        let length = self.length(place, kind)?;
        self.check(state, place, at, length, true)?;
        match state.memory.store(at.0, at.1, length, value) {
            Some(()) => Ok(()),
            None => unknown(place, "a write"),
        }
    }

    /// Checks alignment, and the type of an access: all accesses of a variable, in all states, have to
    /// agree about what is where. Memory of `malloc` may change its type; that is not looked at here.
    fn manner(
        &self,
        state: &State,
        place: Place,
        (object, offset): (Object, i64),
        kind: &Type,
        manner: &Manner,
    ) -> Result<()> {
        if manner.align > 1 && offset % manner.align as i64 != 0 {
            return unknown(place, "an access that is not aligned");
        }
        let variable = match object {
            Object::Global(id) => (None, id),
            Object::Local(thread, depth, number) => {
                let running = state.threads[usize::from(thread)].as_ref();
                let frame = running.and_then(|thread| thread.frames.get(usize::from(depth)));
                (frame.map(|frame| frame.function), number.into())
            }
            _ => return Ok(()),
        };
        let (Some(tag), Some(length)) = (manner.tag, kind.size()) else { return Ok(()) };
        let content = match variable {
            (None, id) => Some(&self.module.globals[id as usize].content),
            (Some(function), number) => {
                let entry = &self.function(function).blocks[0].instructions;
                let mut locals = entry.iter().filter_map(|instruction| match &instruction.op {
                    Op::Allocate { content, .. } => Some(content),
                    _ => None,
                });
                locals.nth(number as usize - 1)
            }
        };
        let is_character = content.and_then(|kind| leaf(kind, offset)) == Some(&Type::Integer(8));
        if is_character && length > 1 && !manner.character {
            return unknown(place, "an access of characters by another type");
        }
        let access = (offset, offset + length as i64, tag);
        let mut types = self.types.borrow_mut();
        let known = types.entry(variable).or_default();
        if known.contains(&access) {
            return Ok(());
        }
        let agrees = known.iter().all(|(start, end, other)| {
            *end <= access.0 || access.1 <= *start || self.module.aliases.may_alias(tag, *other)
        });
        known.insert(access);
        if agrees { Ok(()) } else { unknown(place, "an access by another type") }
    }

    fn length(&self, place: Place, kind: &Type) -> Result<usize> {
        match kind {
            Type::Pointer => Ok(8),
            Type::Integer(bits @ (8 | 16 | 32 | 64 | 128)) => Ok(*bits as usize / 8),
            _ => unknown(place, format!("an access of type {}", kind.show())),
        }
    }

    pub(super) fn top<'s>(&self, state: &'s mut State, thread: usize) -> Result<&'s mut Frame> {
        let frame = state.threads[thread].as_mut().and_then(|thread| thread.frames.last_mut());
        frame.map_or_else(|| unknown(Place::default(), "a thread without a call"), Ok)
    }

    pub(super) fn finish(
        &self,
        state: &mut State,
        thread: usize,
        result: Option<u32>,
        value: Value,
    ) -> Result<()> {
        let frame = self.top(state, thread)?;
        if let Some(register) = result {
            frame.registers[register as usize] = value;
        }
        frame.at += 1;
        Ok(())
    }

    fn jump(&self, state: &mut State, thread: usize, target: u32) -> Result<()> {
        let frame = self.top(state, thread)?;
        let (from, function) = (frame.block, frame.function);
        let mut values = Vec::new();
        for instruction in &self.function(function).blocks[target as usize].instructions {
            let Op::Phi { kind, incoming } = &instruction.op else { break };
            let Some((value, _)) = incoming.iter().find(|(_, block)| *block == from) else {
                return unknown(instruction.place, "a jump");
            };
            values.push((instruction.result, self.operand(state, thread, value, kind)?));
        }
        let frame = self.top(state, thread)?;
        (frame.block, frame.at) = (target, values.len() as u32);
        for (register, value) in values {
            if let Some(register) = register {
                frame.registers[register as usize] = value;
            }
        }
        Ok(())
    }

    fn sequential(&self, order: Order, place: Place) -> Result<()> {
        match order {
            Order::Sequential => Ok(()),
            Order::Weaker => unknown(place, "an atomic operation of a weaker order"),
        }
    }

    fn instruction(&self, state: &mut State, thread: usize, choice: u32) -> Result<()> {
        if state.threads[thread].as_ref().is_some_and(|thread| thread.doing != Doing::Runs) {
            return self.wake(state, thread);
        }
        let Some(instruction) = self.next(state, thread) else {
            return unknown(Place::default(), "a function that does not end");
        };
        let place = instruction.place;
        let frame = state.threads[thread].as_ref().and_then(|thread| thread.frames.last());
        let (caller, spot) = frame.map_or((0, (0, 0)), |f| (f.function, (f.block, f.at)));
        if self.unordered[caller as usize].contains(&spot) {
            return unknown(place, "C leaves open which operand is evaluated first");
        }
        let value = match &instruction.op {
            Op::Allocate { content, count, bits, .. } => {
                let count = self.integer(state, thread, place, count, *bits)? as u64;
                let size = content.size().and_then(|size| size.checked_mul(count));
                let Some(size) = size.filter(|size| *size <= CHECKED_BYTES) else {
                    return unknown(place, "a variable of this size");
                };
                let depth = state.threads[thread].as_ref().map_or(0, |t| t.frames.len() - 1);
                let frame = self.top(state, thread)?;
                frame.locals += 1;
                let object = Object::Local(thread as u8, depth as u16, frame.locals as u16);
                state.memory.add(object, vec![Byte::Undefined; size as usize]);
                let padding =
                    instruction.result.and_then(|r| self.function(caller).padding.get(&r));
                state.memory.pad(object, padding);
                if state.memory.stack(thread) as u64 > CHECKED_BYTES {
                    return unknown(place, "a stack of this size");
                }
                Value::Pointer(object, 0)
            }
            Op::Load { kind, from, order, manner } => {
                order.map_or(Ok(()), |order| self.sequential(order, place))?;
                let at = self.address(state, thread, place, from)?;
                let value = self.load(state, place, at, kind)?;
                self.manner(state, place, at, kind, manner)?;
                if manner.character && state.memory.is_partial(at.0, at.1) {
                    return unknown(place, "a byte with bits that have no value");
                }
                match (&value, manner.below) {
                    (Value::Integer(number), Some(below)) if *number >= below => {
                        return unknown(place, "a truth value that is neither 0 nor 1");
                    }
                    _ => value,
                }
            }
            Op::Store { kind, value, to, order, manner } => {
                order.map_or(Ok(()), |order| self.sequential(order, place))?;
                let at = self.address(state, thread, place, to)?;
                let value = self.operand(state, thread, value, kind)?;
                self.store(state, place, at, kind, &value)?;
                self.manner(state, place, at, kind, manner)?;
                Value::Undefined
            }
            Op::Binary { operation, bits, left, right, flags } => {
                let kind = Type::Integer(*bits);
                let a = self.operand(state, thread, left, &kind)?;
                let b = self.operand(state, thread, right, &kind)?;
                match (a, b) {
                    (Value::Integer(a), Value::Integer(b)) => {
                        Value::Integer(arithmetic(place, *operation, *bits, a, b, *flags)?)
                    }
                    (Value::Pointer(a, at), Value::Pointer(b, from))
                        if a == b && a != Object::Gone && *operation == Arithmetic::Subtract =>
                    {
                        Value::Integer(mask((at - from) as u128, *bits))
                    }
                    _ => return unknown(place, "a computation with what is no number"),
                }
            }
            Op::Compare { comparison, kind, left, right } => {
                let a = self.operand(state, thread, left, kind)?;
                let b = self.operand(state, thread, right, kind)?;
                Value::Integer(self.compare(state, place, *comparison, kind, a, b)?.into())
            }
            Op::Convert { cast, from, to, value, flags } => {
                let value = self.operand(state, thread, value, from)?;
                if *flags != Flags::default() {
                    return unknown(place, "a conversion with a promise");
                }
                match (cast, from, to, value) {
                    (Cast::Same, _, Type::Pointer, value) => pointer(value),
                    (Cast::Same, _, Type::Integer(bits), value) => match number(value) {
                        Value::Integer(number) => Value::Integer(mask(number, *bits)),
                        value => value,
                    },
                    (_, Type::Integer(from), Type::Integer(to), Value::Integer(number)) => {
                        let wide = match cast {
                            Cast::SignExtend => signed(number, *from) as u128,
                            _ => mask(number, *from),
                        };
                        Value::Integer(mask(wide, *to))
                    }
                    (_, _, _, Value::Undefined) => Value::Undefined,
                    _ => return unknown(place, "a conversion"),
                }
            }
            Op::Address { base, offset, indices, inbounds } => {
                let (object, at) = self.address(state, thread, place, base)?;
                let mut sum = i128::from(at) + i128::from(*offset);
                for index in indices {
                    let value = self.integer(state, thread, place, &index.value, index.bits)?;
                    let value = signed(value, index.bits);
                    if index.length.is_some_and(|length| value < 0 || value > length.into()) {
                        return Err(End::Violation(place));
                    }
                    if index.length.is_some_and(|length| value == length.into()) {
                        return unknown(place, "the address behind an array");
                    }
                    sum += value * i128::from(index.stride);
                }
                if object == Object::Number && sum != i128::from(at) {
                    return unknown(place, "a computation with a null pointer");
                }
                let size = state.memory.size(object) as i128;
                if *inbounds && state.memory.has(object) && !(0..=size).contains(&sum) {
                    return unknown(place, "an address outside its variable");
                }
                match i64::try_from(sum) {
                    Ok(sum) => Value::Pointer(object, sum),
                    Err(_) => return unknown(place, "an address"),
                }
            }
            Op::Select { condition, kind, yes, no } => {
                let truth = self.integer(state, thread, place, condition, 1)?;
                self.operand(state, thread, if truth == 1 { yes } else { no }, kind)?
            }
            Op::Call { callee, arguments, result, promises, no_effect, .. } => {
                let (Object::Function(id), 0) = self.address(state, thread, place, callee)? else {
                    return Err(End::Violation(place));
                };
                let function = self.function(id);
                let special = match &*function.name {
                    "__VERIFIER_assert" => false,
                    name => name.starts_with("__VERIFIER_") || name == "reach_error",
                };
                if function.is_defined() && special && &*function.name != "reach_error" {
                    return unknown(place, format!("the program defines {} itself", function.name));
                }
                if !function.is_defined() || special {
                    return self.call(state, thread, instruction, &function.name, choice);
                }
                let by_pointer = matches!(callee, Operand::Register(_));
                if !self.is_called_by_type(caller, place, id, by_pointer) {
                    return unknown(place, "a call by another type than that of the function");
                }
                let depth = state.threads[thread].as_ref().map_or(0, |t| t.frames.len());
                let fits = !function.variadic
                    && function.result == *result
                    && function.parameters.len() == arguments.len()
                    && function.parameters.iter().zip(arguments).all(|(parameter, argument)| {
                        parameter.kind == argument.kind
                            && parameter.by_value.is_none()
                            && argument.by_value.is_none()
                    });
                if !fits || depth >= CHECKED_CALLS {
                    return unknown(place, format!("this call of {}", function.name));
                }
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.operand(state, thread, &argument.value, &argument.kind)?);
                }
                // what is promised of a call is checked by the explorer only: here it may promise that
                // arguments have a value, and nothing else
                let plain = |promises: Promises| {
                    Promises { defined: false, ..promises } == Promises::default()
                };
                let parameters = function.parameters.iter().map(|parameter| parameter.promises);
                let all = parameters.chain(arguments.iter().map(|argument| argument.promises));
                if !all.chain([*promises, function.promises]).all(plain)
                    || *no_effect
                    || function.no_effect
                    || values
                        .iter()
                        .any(|value| matches!(value, Value::Undefined | Value::Bytes(_)))
                {
                    return unknown(place, format!("what a call of {} promises", function.name));
                }
                self.top(state, thread)?.at += 1;
                let frame = self.frame(id, &values, instruction.result);
                if let Some(thread) = state.threads[thread].as_mut() {
                    thread.frames.push(frame);
                }
                return Ok(());
            }
            Op::Extract { kind, value, index } => {
                match self.operand(state, thread, value, kind)? {
                    Value::Fields(mut fields) if (*index as usize) < fields.len() => {
                        fields.swap_remove(*index as usize)
                    }
                    _ => return unknown(place, "a field"),
                }
            }
            Op::Modify { change, kind, at, value, order, align } => {
                self.sequential(*order, place)?;
                let at = self.address(state, thread, place, at)?;
                let manner = Manner { align: *align, ..Manner::default() };
                self.manner(state, place, at, kind, &manner)?;
                let old = self.load(state, place, at, kind)?;
                let operand = self.operand(state, thread, value, kind)?;
                let new = match (change, kind, &old, &operand) {
                    (Change::Exchange, ..) => operand,
                    (
                        Change::Compute(operation),
                        Type::Integer(bits),
                        Value::Integer(a),
                        Value::Integer(b),
                    ) => Value::Integer(arithmetic(
                        place,
                        *operation,
                        *bits,
                        *a,
                        *b,
                        Flags::default(),
                    )?),
                    _ => return unknown(place, "an atomic operation"),
                };
                self.store(state, place, at, kind, &new)?;
                old
            }
            Op::Exchange { kind, at, expected, new, order, weak, align } => {
                self.sequential(*order, place)?;
                let at = self.address(state, thread, place, at)?;
                let manner = Manner { align: *align, ..Manner::default() };
                self.manner(state, place, at, kind, &manner)?;
                let old = self.load(state, place, at, kind)?;
                let expected = self.operand(state, thread, expected, kind)?;
                let same = Comparison::Equal;
                let same = self.compare(state, place, same, kind, old.clone(), expected)?;
                let writes = same && !(*weak && choice == 1);
                if writes {
                    let new = self.operand(state, thread, new, kind)?;
                    self.store(state, place, at, kind, &new)?;
                }
                Value::Fields(vec![old, Value::Integer(writes.into())])
            }
            Op::Fence(order) => {
                self.sequential(*order, place)?;
                Value::Undefined
            }
            Op::Jump(target) => return self.jump(state, thread, *target),
            Op::Branch { condition, yes, no } => {
                let truth = self.integer(state, thread, place, condition, 1)?;
                return self.jump(state, thread, if truth == 1 { *yes } else { *no });
            }
            Op::Switch { value, bits, cases, default } => {
                let value = self.integer(state, thread, place, value, *bits)?;
                let case = cases.iter().find(|(case, _)| mask(*case, *bits) == value);
                return self.jump(state, thread, case.map_or(*default, |(_, to)| *to));
            }
            Op::Return(value) => {
                let value = match value {
                    Some((kind, value)) => self.operand(state, thread, value, kind)?,
                    None => Value::Undefined,
                };
                // a thread's result need not have one
                let depth = state.threads[thread].as_ref().map_or(0, |t| t.frames.len());
                let is_thread = thread > 0 && depth == 1;
                if self.function(caller).result != Type::Void
                    && value == Value::Undefined
                    && !is_thread
                {
                    return unknown(place, "a result that has no value");
                }
                return self.give_back(state, thread, value);
            }
            Op::Float { .. }
            | Op::Insert { .. }
            | Op::Phi { .. }
            | Op::Unreachable
            | Op::Refused(_) => {
                return unknown(place, "an instruction");
            }
        };
        self.finish(state, thread, instruction.result, value)
    }

    /// Returns from a call; from the first one the thread ends, and with `main` the program.
    fn give_back(&self, state: &mut State, number: usize, value: Value) -> Result<()> {
        let depth = state.threads[number].as_ref().map_or(0, |thread| thread.frames.len());
        if depth <= 1 {
            return if number == 0 { Err(End::Over) } else { self.end(state, number, value) };
        }
        let Some(thread) = state.threads[number].as_mut() else { return Ok(()) };
        let result = thread.frames.pop().and_then(|frame| frame.result);
        if let (Some(register), Some(caller)) = (result, thread.frames.last_mut()) {
            caller.registers[register as usize] = value;
        }
        let gone = depth as u16 - 1;
        let place = self.next(state, number).map(|next| next.place).unwrap_or_default();
        let ends = |object: &Object| {
            matches!(object, Object::Local(owner, call, _)
                if usize::from(*owner) == number && *call == gone)
        };
        if state.memory.locks.keys().any(|(object, _)| ends(object)) {
            return unknown(place, "a lock in a variable that ends");
        }
        self.remove(state, &|object| {
            matches!(object, Object::Local(owner, call, _)
                if usize::from(*owner) == number && *call == gone)
        });
        Ok(())
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

    /// Is a function called by its own type, as the source has it? It says so of calls by pointers and of
    /// casts of functions.
    fn is_called_by_type(&self, caller: u32, place: Place, callee: u32, by_pointer: bool) -> bool {
        let shapes = &self.module.shapes;
        let from = shapes.get(caller as usize);
        let by = from.and_then(|shape| shape.calls.get(&(place.line, place.column)));
        by.map_or(!by_pointer, |by| shapes.get(callee as usize).is_some_and(|to| to.kind == *by))
    }

    /// A lock is used.
    pub(super) fn use_lock(&self, place: Place, at: (Object, i64)) -> Result<()> {
        self.used.borrow_mut().insert(at);
        let copied = self.copied.borrow();
        let is = |(object, from, to): &(Object, i64, i64)| {
            *object == at.0 && (*from..*to).contains(&at.1)
        };
        if copied.iter().any(is) { unknown(place, "a lock that was copied") } else { Ok(()) }
    }

    /// Bytes are copied.
    pub(super) fn copy(&self, place: Place, at: (Object, i64), length: usize) -> Result<()> {
        let range = at.1..at.1 + length as i64;
        self.copied.borrow_mut().insert((at.0, range.start, range.end));
        let used = self.used.borrow();
        let is = |(object, offset): &(Object, i64)| *object == at.0 && range.contains(offset);
        if used.iter().any(is) { unknown(place, "a copy of a lock") } else { Ok(()) }
    }

    fn compare(
        &self,
        state: &State,
        place: Place,
        comparison: Comparison,
        kind: &Type,
        a: Value,
        b: Value,
    ) -> Result<bool> {
        let bits = if let Type::Integer(bits) = kind { *bits } else { 64 };
        // two literals may be one, and one literal that is written twice may be two
        let merged = |object: Object| matches!(object, Object::Global(id) if self.module.globals[id as usize].mergeable);
        let (a, b) = match (pointer(a), pointer(b)) {
            (Value::Pointer(a, _), Value::Pointer(b, _)) if merged(a) && merged(b) => {
                return unknown(place, "a comparison of constants without a name");
            }
            (Value::Pointer(a, at), Value::Pointer(b, offset)) if a == b && a != Object::Gone => {
                (at as i128 as u128, offset as i128 as u128)
            }
            (Value::Pointer(a, at), Value::Pointer(b, offset)) => {
                // different objects have different addresses, and none of them is null
                let inside = |object: Object, at: i64| match object {
                    Object::Number => at == 0,
                    Object::Gone => false,
                    Object::Function(_) | Object::Thread(_) => true,
                    _ => at >= 0 && (at as usize) < state.memory.size(object),
                };
                return match comparison {
                    Comparison::Equal if inside(a, at) && inside(b, offset) => Ok(false),
                    Comparison::NotEqual if inside(a, at) && inside(b, offset) => Ok(true),
                    _ => unknown(place, "a comparison of addresses"),
                };
            }
            _ => return unknown(place, "a comparison"),
        };
        let (a, b) = (mask(a, bits), mask(b, bits));
        Ok(match comparison {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less { signed: as_signed, or_equal, swapped } => {
                let (a, b) = if swapped { (b, a) } else { (a, b) };
                let less = match as_signed {
                    true => signed(a, bits) < signed(b, bits),
                    false => a < b,
                };
                less || or_equal && a == b
            }
        })
    }
}

/// What a type has at an offset; none if that is not known.
fn leaf(kind: &Type, offset: i64) -> Option<&Type> {
    match kind {
        Type::Array(_, element) => leaf(element, offset.checked_rem(element.size()? as i64)?),
        Type::Struct(fields) => {
            let mut starts =
                (0..fields.fields.len()).filter_map(|n| Some((n, fields.offset(n)? as i64)));
            let (last, start) = starts.rfind(|(_, start)| *start <= offset)?;
            leaf(fields.fields.get(last)?, offset - start)
        }
        _ => Some(kind),
    }
}

/// A number as a pointer.
fn pointer(value: Value) -> Value {
    match value {
        Value::Integer(number) => Value::Pointer(Object::Number, number as i64),
        other => other,
    }
}

/// A pointer that is a number, as a number.
fn number(value: Value) -> Value {
    match value {
        Value::Pointer(Object::Number, number) => Value::Integer(number as u64 as u128),
        other => other,
    }
}

fn arithmetic(
    place: Place,
    operation: Arithmetic,
    bits: u32,
    a: u128,
    b: u128,
    flags: Flags,
) -> Result<u128> {
    if bits > 64 || flags.no_unsigned_wrap || flags.exact || flags.disjoint {
        return unknown(place, "a computation of wide numbers, or with a promise");
    }
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let is_division = matches!(
        operation,
        Arithmetic::DivideUnsigned
            | Arithmetic::DivideSigned
            | Arithmetic::RemainderUnsigned
            | Arithmetic::RemainderSigned
    );
    if is_division && b == 0 {
        return Err(End::Violation(place));
    }
    let is_shift = matches!(
        operation,
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned
    );
    if is_shift && (b >= bits.into() || flags.no_signed_wrap) {
        return unknown(place, "a shift");
    }
    // numbers of 64 bits leave 128 bits in none of these
    let exact: i128 = match operation {
        Arithmetic::Add => sa + sb,
        Arithmetic::Subtract => sa - sb,
        Arithmetic::Multiply => sa * sb,
        Arithmetic::DivideSigned => sa / sb,
        Arithmetic::RemainderSigned => sa % sb,
        Arithmetic::DivideUnsigned => (a / b) as i128,
        Arithmetic::RemainderUnsigned => (a % b) as i128,
        Arithmetic::ShiftLeft => (a << b) as i128,
        Arithmetic::ShiftRight => (a >> b) as i128,
        Arithmetic::ShiftRightSigned => sa >> b,
        Arithmetic::And => (a & b) as i128,
        Arithmetic::Or => (a | b) as i128,
        Arithmetic::Xor => (a ^ b) as i128,
    };
    let result = mask(exact as u128, bits);
    let leaves = match operation {
        Arithmetic::DivideSigned => signed(result, bits) != exact,
        Arithmetic::RemainderSigned => sb == -1 && sa == -(1 << (bits - 1)),
        _ => flags.no_signed_wrap && signed(result, bits) != exact,
    };
    if leaves { Err(End::Violation(place)) } else { Ok(result) }
}
