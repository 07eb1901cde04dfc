//! What each instruction does.

use super::arithmetic::arithmetic;
use super::{Checker, End, Result, mask, signed, unknown};
use crate::checker::memory::{Byte, Object, Value};
use crate::checker::{Doing, State};
use crate::ir::{
    Arithmetic, Cast, Change, Comparison, Flags, Manner, Op, Operand, Order, Place, Promises, Type,
};
use crate::limits::{CHECKED_BYTES, CHECKED_CALLS};

impl<'m> Checker<'m> {
    pub(in crate::checker) fn finish(
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

    pub(super) fn instruction(&self, state: &mut State, thread: usize, choice: u32) -> Result<()> {
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
                    _ => {
                        return unknown(place, "a computation with something that is not a number");
                    }
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

    /// Is a function called by its own type, as the source has it? It says so of calls by pointers and of
    /// casts of functions.
    fn is_called_by_type(&self, caller: u32, place: Place, callee: u32, by_pointer: bool) -> bool {
        let shapes = &self.module.shapes;
        let from = shapes.get(caller as usize);
        let by = from.and_then(|shape| shape.calls.get(&(place.line, place.column)));
        by.map_or(!by_pointer, |by| shapes.get(callee as usize).is_some_and(|to| to.kind == *by))
    }

    /// A lock is used.
    pub(in crate::checker) fn use_lock(&self, place: Place, at: (Object, i64)) -> Result<()> {
        self.used.borrow_mut().insert(at);
        let copied = self.copied.borrow();
        let is = |(object, from, to): &(Object, i64, i64)| {
            *object == at.0 && (*from..*to).contains(&at.1)
        };
        if copied.iter().any(is) { unknown(place, "a lock that was copied") } else { Ok(()) }
    }

    /// Bytes are copied.
    pub(in crate::checker) fn copy(
        &self,
        place: Place,
        at: (Object, i64),
        length: usize,
    ) -> Result<()> {
        let range = at.1..at.1 + length as i64;
        self.copied.borrow_mut().insert((at.0, range.start, range.end));
        let used = self.used.borrow();
        let is = |(object, offset): &(Object, i64)| *object == at.0 && range.contains(offset);
        if used.iter().any(is) { unknown(place, "a copy of a lock") } else { Ok(()) }
    }
}

/// A number as a pointer.
pub(super) fn pointer(value: Value) -> Value {
    match value {
        Value::Integer(number) => Value::Pointer(Object::Number, number as i64),
        other => other,
    }
}

/// A pointer that is a number, as a number.
pub(super) fn number(value: Value) -> Value {
    match value {
        Value::Pointer(Object::Number, number) => Value::Integer(number as u64 as u128),
        other => other,
    }
}
