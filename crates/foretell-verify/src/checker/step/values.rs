//! The values of operands and of memory, and accesses that C forbids.

use super::instruction::{number, pointer};
use super::{Checker, End, Result, mask, unknown};
use crate::checker::State;
use crate::checker::memory::{Object, Value};
use crate::ir::{Constant, Manner, Op, Operand, Place, Type};

impl<'m> Checker<'m> {
    pub(in crate::checker) fn operand(
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

    pub(super) fn constant(&self, place: Place, constant: &Constant, kind: &Type) -> Result<Value> {
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

    pub(in crate::checker) fn integer(
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

    pub(in crate::checker) fn address(
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
            Object::Function(_) | Object::Thread(_) => {
                return unknown(place, "an access of a function or a thread");
            }
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

    pub(super) fn load(
        &self,
        state: &State,
        place: Place,
        at: (Object, i64),
        kind: &Type,
    ) -> Result<Value> {
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

    pub(in crate::checker) fn store(
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
    pub(super) fn manner(
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
