//! What each instruction does: one arm for each of [`Op`]; what takes more than a few lines has a function of its own.

use super::calls::are_compatible;
use super::{Kind, LARGE, Machine, Step, Stop};
use crate::explore::floats;
use crate::explore::memory::{Base, Object, Pointer, Value};
use crate::explore::state::{Frame, State};
use crate::ir::{
    Arithmetic, Comparison, Constant, Instruction, Manner, Op, Operand, Order, Place, Register,
    Type, mask, signed,
};
use crate::limits::{LARGEST_ALLOCATION, MOST_LOCALS};

impl<'m> Machine<'m> {
    /// Writes the result of the instruction and goes to the next one.
    pub(in crate::explore) fn finish(
        &self,
        state: &mut State,
        thread: usize,
        result: Option<Register>,
        value: Value,
    ) {
        let frame = self.top(state, thread);
        if let Some(register) = result {
            frame.registers[register as usize] = value;
        }
        frame.at += 1;
    }

    fn jump(&self, state: &mut State, thread: usize, place: Place, target: u32) -> Step<()> {
        let (from, function) = {
            let frame = self.top(state, thread);
            (frame.block, frame.function)
        };
        let block = &self.function(function).blocks[target as usize];
        let mut values = Vec::new();
        for instruction in &block.instructions {
            let Op::Phi { kind, incoming } = &instruction.op else { break };
            let Some((value, _)) = incoming.iter().find(|(_, block)| *block == from) else {
                return self.refuse(place, "a block that is entered from an unknown block");
            };
            let value = self.operand(state, thread, value, kind);
            let value = value.or_else(|why| self.refuse(place, why))?;
            values.push((instruction.result, value));
        }
        let dead = self.lives[function as usize].before(target);
        let frame = self.top(state, thread);
        forget(frame, &dead.registers, &dead.locals);
        frame.block = target;
        frame.at = values.len() as u32;
        for (register, value) in values {
            if let Some(register) = register
                && !dead.registers.contains(&register)
            {
                frame.registers[register as usize] = value;
            }
        }
        Ok(())
    }

    pub(in crate::explore) fn note_loud(&self, loud: bool) {
        self.loud.set(self.loud.get() || loud);
    }

    fn note_order(&self, order: Option<Order>, place: Place) {
        if order == Some(Order::Weaker) && self.weaker.get().is_none() {
            self.weaker.set(Some(place));
        }
    }

    pub(super) fn execute(
        &self,
        state: &mut State,
        thread: usize,
        instruction: &'m Instruction,
        choice: u32,
    ) -> Step<()> {
        let place = instruction.place;
        let value = match &instruction.op {
            Op::Allocate { content, count: elements, bits, align, constant } => {
                let count = self.integer(state, thread, place, elements, *bits)?;
                if count == 0 {
                    return self.refuse(place, "undefined: an array without elements");
                }
                let size = content.size().and_then(|size| u128::from(size).checked_mul(count));
                let Some(size) = size.filter(|size| *size <= LARGEST_ALLOCATION.into()) else {
                    return self.refuse(place, format!("a local of type {}", content.show()));
                };
                let frames = state.threads[thread].as_ref().map_or(0, |t| t.frames.len());
                if size > LARGE.into()
                    && self.stack(state, thread) + size > LARGEST_ALLOCATION.into()
                {
                    return self
                        .refuse(place, format!("more than {LARGEST_ALLOCATION} bytes of locals"));
                }
                let frame = self.top(state, thread);
                if frame.locals.len() >= MOST_LOCALS {
                    return self.refuse(place, format!("more than {MOST_LOCALS} locals in a call"));
                }
                let mut object = Object::undefined(size as usize);
                let register = instruction.result.unwrap_or_default();
                object.private = self.lives[frame.function as usize].private[register as usize];
                object.name = Some((frame.function, register));
                object.align = *align as u32;
                // memory of `alloca` has no declared type
                let one = *elements == Operand::Constant(Constant::Integer(1));
                object.plain = content.is_declared() && (one || *content != Type::Integer(8));
                object.once = *constant;
                object.padding = self.function(frame.function).padding.get(&register).cloned();
                frame.locals.push(object);
                let local = frame.locals.len() - 1;
                Value::Pointer(Pointer::to(Base::Local {
                    thread: thread as u8,
                    frame: (frames - 1) as u16,
                    local: local as u16,
                }))
            }
            Op::Load { kind, from, order, manner } => {
                self.note_order(*order, place);
                self.note_loud(order.is_some() || manner.volatile);
                let at = self.pointer(state, thread, place, from)?;
                let value = self.load(state, place, at, kind)?;
                self.check_manner(state, place, at, kind, manner, false)?;
                let size = kind.size().unwrap_or(0) as usize;
                if manner.character
                    && state
                        .object(at.base)
                        .is_some_and(|object| object.is_partial(at.offset as usize, size))
                {
                    return self.refuse(place, "bits beside a bit-field, which have no value");
                }
                if let Some(below) = manner.below
                    && matches!(value, Value::Integer(_) | Value::Symbol(_))
                {
                    let less = Comparison::Less { signed: false, or_equal: false, swapped: false };
                    let limit = Value::Integer(below);
                    let fits = self.compare(state, place, less, kind, value.clone(), limit)?;
                    if !self.is_true(place, fits)? {
                        return self
                            .refuse(place, "undefined: a truth value that is neither 0 nor 1");
                    }
                }
                value
            }
            Op::Store { kind, value, to, order, manner } => {
                self.note_order(*order, place);
                self.note_loud(order.is_some() || manner.volatile);
                let at = self.pointer(state, thread, place, to)?;
                let value = self.operand(state, thread, value, kind);
                let value = value.or_else(|why| self.refuse(place, why))?;
                self.store(state, place, at, kind, &value)?;
                self.check_manner(state, place, at, kind, manner, true)?;
                if let (Some(tag), Some(size)) = (manner.tag, kind.size())
                    && let Some(object) = state.object_mut(at.base).filter(|o| !o.plain)
                {
                    object.set_effective(at.offset as usize, size as usize, tag);
                    // a write of a member leaves open what lies between members (C17 6.2.6.1, 6)
                    for padding in self.module.aliases.padding(tag) {
                        if let Ok(byte) = usize::try_from(at.offset + padding) {
                            object.forget_byte(byte);
                        }
                    }
                }
                Value::Undefined
            }
            Op::Binary { operation, bits, left, right, flags } => {
                let kind = Type::Integer(*bits);
                let a = self.known(state, thread, place, left, &kind)?;
                let b = self.known(state, thread, place, right, &kind)?;
                match (a, b, operation) {
                    (Value::Integer(a), Value::Integer(b), _) => {
                        Value::Integer(self.arithmetic(place, *operation, *bits, a, b, *flags)?)
                    }
                    (
                        a @ (Value::Integer(_) | Value::Symbol(_)),
                        b @ (Value::Integer(_) | Value::Symbol(_)),
                        _,
                    ) => self.symbolic(place, *operation, *bits, &a, &b, *flags)?,
                    (Value::Pointer(a), Value::Pointer(b), Arithmetic::Subtract)
                        if a.base == b.base
                            && !state.object(a.base).is_some_and(|object| object.dead)
                            && !self.ambiguous.contains(&a.base)
                            && matches!(
                                a.base,
                                Base::Global(_) | Base::Heap(_) | Base::Local { .. }
                            ) =>
                    {
                        Value::Integer(mask(a.offset.wrapping_sub(b.offset) as u128, *bits))
                    }
                    _ => return self.refuse(place, "a computation with an address as a number"),
                }
            }
            Op::Compare { comparison, kind, left, right } => {
                let a = self.known(state, thread, place, left, kind)?;
                let b = self.known(state, thread, place, right, kind)?;
                self.compare(state, place, *comparison, kind, a, b)?
            }
            Op::Convert { cast, from, to, value, flags } => {
                let value = self.operand(state, thread, value, from);
                let value = value.or_else(|why| self.refuse(place, why))?;
                self.convert(place, *cast, from, to, value, *flags)?
            }
            Op::Address { base, offset, indices, inbounds } => {
                let base = self.pointer(state, thread, place, base)?;
                let mut sum = i128::from(base.offset) + i128::from(*offset);
                // the address behind the last element may be computed, but not used
                let function = self.top(state, thread).function as usize;
                let used =
                    instruction.result.is_some_and(|r| self.lives[function].accessed[r as usize]);
                for index in indices {
                    let number = self.integer(state, thread, place, &index.value, index.bits)?;
                    let number = signed(number, index.bits);
                    let last = |n: u64| i128::from(n) - i128::from(used);
                    if index.length.is_some_and(|n| number < 0 || number > last(n)) {
                        return Err(Stop::Violated(Kind::Index, place));
                    }
                    let step = number.checked_mul(index.stride.into());
                    let moved = step.and_then(|step| sum.checked_add(step));
                    let Some(moved) = moved else {
                        return self.refuse(place, "an address that is too far outside its object");
                    };
                    sum = moved;
                }
                let Ok(offset) = i64::try_from(sum) else {
                    return self.refuse(place, "an address that is too far outside its object");
                };
                let inside = state
                    .object(base.base)
                    .is_none_or(|object| (0..=object.size() as i64).contains(&offset));
                if *inbounds && !inside {
                    return self.refuse(place, "undefined: an address outside its variable");
                }
                if *inbounds
                    && matches!(base.base, Base::Number | Base::Ended)
                    && offset != base.offset
                {
                    return self.refuse(
                        place,
                        "undefined: a computation with null or a pointer to nothing",
                    );
                }
                if matches!(base.base, Base::Thread(_) | Base::Function(_)) && offset != 0 {
                    return self.refuse(
                        place,
                        "a computation with something that is not the address of a variable",
                    );
                }
                Value::Pointer(Pointer { base: base.base, offset })
            }
            Op::Float { operation, from, to, operands } => {
                let mut values = Vec::new();
                for operand in operands {
                    match self.known(state, thread, place, operand, from)? {
                        Value::Integer(bits) => values.push(bits),
                        _ => return self.refuse(place, "floating point that depends on inputs"),
                    }
                }
                match floats::compute(*operation, from, to, &values) {
                    Some(bits) => Value::Integer(bits),
                    None => {
                        return self.refuse(place, "floating point whose result is not defined");
                    }
                }
            }
            Op::Select { condition, kind, yes, no } => {
                let truth = self.truth(state, thread, place, condition)?;
                let chosen = if truth { yes } else { no };
                let value = self.operand(state, thread, chosen, kind);
                value.or_else(|why| self.refuse(place, why))?
            }
            Op::Phi { .. } => return self.refuse(place, "a phi that is not first in its block"),
            Op::Call { callee, arguments, result, no_effect, .. } => {
                let callee = self.known(state, thread, place, callee, &Type::Pointer)?;
                if matches!(callee, Value::Symbol(_)) {
                    return self.refuse(place, "a call through a pointer that depends on inputs");
                }
                let Value::Pointer(Pointer { base: Base::Function(id), offset: 0 }) = callee else {
                    let what = "a call through a pointer to no function";
                    return Err(Stop::Violated(Kind::Access(what), place));
                };
                if self.is_library(id) {
                    return self.library(state, thread, id, instruction, choice);
                }
                let function = self.function(id);
                let more = arguments.len().checked_sub(function.parameters.len());
                let fits = function.result == *result
                    && more.is_some_and(|more| more == 0 || function.variadic)
                    && function.parameters.iter().zip(arguments).all(|(parameter, argument)| {
                        parameter.kind == argument.kind && parameter.by_value == argument.by_value
                    });
                let caller = self.top(state, thread).function as usize;
                let spot = (place.line, place.column);
                let called = self.module.shapes.get(caller).and_then(|s| s.calls.get(&spot));
                let declared = self.module.shapes.get(id as usize).map(|shape| &shape.kind);
                let is_other = called.zip(declared).is_some_and(|(a, b)| !are_compatible(a, b));
                if !fits || is_other {
                    let name = &function.name;
                    return self.refuse(place, format!("a call of {name} with other types"));
                }
                let mut values = Vec::new();
                for argument in arguments {
                    let value = self.operand(state, thread, &argument.value, &argument.kind);
                    values.push(value.or_else(|why| self.refuse(place, why))?);
                }
                self.check_call(state, thread, place, id, arguments, &values)?;
                if *no_effect {
                    let what = "through a pointer with the attribute const or pure";
                    return self.refuse(place, format!("a call of {} {what}", function.name));
                }
                self.enter(state, thread, place, id, values, instruction.result)?;
                if function.variadic {
                    let further = &arguments[function.parameters.len()..];
                    self.further_arguments(state, thread, place, id, further)?;
                }
                return Ok(());
            }
            Op::Extract { kind, value, index } => {
                let value = self.operand(state, thread, value, kind);
                match value.or_else(|why| self.refuse(place, why))? {
                    Value::Aggregate(fields) if (*index as usize) < fields.len() => {
                        fields[*index as usize].clone()
                    }
                    _ => return self.refuse(place, "a field of an undefined value"),
                }
            }
            Op::Insert { kind, value, field_kind, field, index } => {
                let Type::Struct(fields) = kind else {
                    return self.refuse(place, "a field of something that has no fields");
                };
                let value = self.operand(state, thread, value, kind);
                let mut parts: Vec<Value> = match value {
                    Ok(Value::Aggregate(parts)) => parts.to_vec(),
                    Ok(Value::Undefined) | Err(_) => vec![Value::Undefined; fields.fields.len()],
                    Ok(_) => return self.refuse(place, "a field of something that has no fields"),
                };
                let field = self.operand(state, thread, field, field_kind);
                let Some(part) = parts.get_mut(*index as usize) else {
                    return self.refuse(place, "a field that does not exist");
                };
                *part = field.or_else(|why| self.refuse(place, why))?;
                Value::Aggregate(parts.into())
            }
            Op::Modify { change, kind, at, value, order, align } => {
                self.note_order(Some(*order), place);
                self.note_loud(true);
                let at = self.pointer(state, thread, place, at)?;
                let old = self.load(state, place, at, kind)?;
                let manner = Manner { align: *align, ..Manner::default() };
                self.check_manner(state, place, at, kind, &manner, true)?;
                let operand = self.operand(state, thread, value, kind);
                let operand = operand.or_else(|why| self.refuse(place, why))?;
                let new = self.change(place, *change, kind, &old, operand)?;
                self.store(state, place, at, kind, &new)?;
                old
            }
            Op::Exchange { kind, at, expected, new, order, weak, align } => {
                self.note_order(Some(*order), place);
                self.note_loud(true);
                let at = self.pointer(state, thread, place, at)?;
                let old = self.load(state, place, at, kind)?;
                let manner = Manner { align: *align, ..Manner::default() };
                self.check_manner(state, place, at, kind, &manner, true)?;
                let expected = self.known(state, thread, place, expected, kind)?;
                if matches!(old, Value::Undefined | Value::Bytes(_)) {
                    return self.refuse(place, "something depends on an undefined value");
                }
                let same =
                    self.compare(state, place, Comparison::Equal, kind, old.clone(), expected)?;
                let same = self.is_true(place, same)?;
                let writes = same && !(*weak && choice == 1);
                if writes {
                    let new = self.operand(state, thread, new, kind);
                    let new = new.or_else(|why| self.refuse(place, why))?;
                    self.store(state, place, at, kind, &new)?;
                }
                Value::Aggregate([old, Value::Integer(writes.into())].into())
            }
            Op::Fence(order) => {
                self.note_order(Some(*order), place);
                self.note_loud(true);
                Value::Undefined
            }
            Op::Jump(target) => return self.jump(state, thread, place, *target),
            Op::Branch { condition, yes, no } => {
                let truth = self.truth(state, thread, place, condition)?;
                return self.jump(state, thread, place, if truth { *yes } else { *no });
            }
            Op::Switch { value, bits, cases, default } => {
                let kind = Type::Integer(*bits);
                let value = self.known(state, thread, place, value, &kind)?;
                let mut target = *default;
                for (case, to) in cases {
                    let case = Value::Integer(*case);
                    let is = Comparison::Equal;
                    let is = self.compare(state, place, is, &kind, value.clone(), case)?;
                    if self.is_true(place, is)? {
                        target = *to;
                        break;
                    }
                }
                return self.jump(state, thread, place, target);
            }
            Op::Return(value) => {
                let value = match value {
                    Some((kind, value)) => {
                        let value = self.operand(state, thread, value, kind);
                        value.or_else(|why| self.refuse(place, why))?
                    }
                    None => Value::Undefined,
                };
                self.check_result(state, thread, place, &value)?;
                let first = state.threads[thread].as_ref().is_some_and(|t| t.frames.len() == 1);
                if !(first && thread == 0) {
                    for local in &self.top(state, thread).locals {
                        self.check_locks(local, place)?;
                    }
                }
                if first && thread == 0 && matches!(value, Value::Undefined | Value::Bytes(_)) {
                    let main = self.top(state, thread).function;
                    if self.function(main).result != Type::Void {
                        return self.refuse(place, "undefined: main returns an undefined value");
                    }
                }
                return self.leave(state, thread, value);
            }
            Op::Unreachable => {
                return self
                    .refuse(place, "undefined: code that the compiler assumes to be unreachable");
            }
            Op::Refused(what) => return self.refuse(place, what.to_string()),
        };
        self.finish(state, thread, instruction.result, value);
        Ok(())
    }
}

pub(super) fn forget(frame: &mut Frame, registers: &[Register], locals: &[u16]) {
    for &register in registers {
        frame.registers[register as usize] = Value::Undefined;
    }
    for &local in locals {
        if let Some(local) = frame.locals.get_mut(usize::from(local)) {
            let size = local.size();
            local.clear(0, size);
        }
    }
}
