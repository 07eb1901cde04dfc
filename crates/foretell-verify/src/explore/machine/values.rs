//! The values of operands and of memory, with the checks that C demands at each access.

use super::{Kind, Machine, Step, Stop};
use crate::explore::memory::{Base, Pointer, Value};
use crate::explore::state::State;
use crate::ir::{Constant, Operand, Place, Type, mask};

impl<'m> Machine<'m> {
    // ---- values ----

    /// The value of an operand.
    pub fn operand(
        &self,
        state: &State,
        thread: usize,
        operand: &Operand,
        kind: &Type,
    ) -> Result<Value, String> {
        match operand {
            Operand::Register(register) => {
                let frame = state.threads[thread].as_ref().and_then(|thread| thread.frames.last());
                Ok(frame.map_or(Value::Undefined, |f| f.registers[*register as usize].clone()))
            }
            Operand::Constant(constant) => self.constant(constant, kind),
        }
    }

    pub(super) fn constant(&self, constant: &Constant, kind: &Type) -> Result<Value, String> {
        let pointer = |pointer| Ok(Value::Pointer(pointer));
        let value = match (constant, kind) {
            (Constant::Integer(bits), _) => Value::Integer(*bits),
            (Constant::Zero, Type::Pointer) => return pointer(Pointer::NULL),
            (Constant::Zero, Type::Integer(_) | Type::Float { .. }) => Value::Integer(0),
            (Constant::Zero, Type::Struct(fields)) => {
                let zero = fields.fields.iter().map(|kind| self.constant(&Constant::Zero, kind));
                Value::Aggregate(zero.collect::<Result<Vec<_>, _>>()?.into())
            }
            (Constant::Undefined, _) => Value::Undefined,
            (Constant::Global(id), _) if self.module.globals[*id as usize].thread_local => {
                return Err("the address of a thread-local variable in a constant".into());
            }
            (Constant::Global(id), _) => return pointer(Pointer::to(Base::Global(*id))),
            (Constant::Function(id), _) => return pointer(Pointer::to(Base::Function(*id))),
            (Constant::Behind(base, offset), _) => match self.constant(base, &Type::Pointer)? {
                Value::Pointer(base) => {
                    let offset = base.offset.wrapping_add(*offset);
                    if let Base::Global(id) = base.base
                        && let Some(size) = self.module.globals[id as usize].content.size()
                        && !(0..=size as i64).contains(&offset)
                    {
                        return Err("undefined: an address outside its variable".into());
                    }
                    Value::Pointer(Pointer { base: base.base, offset })
                }
                _ => return Err("an offset from something that is not an address".into()),
            },
            (Constant::Same(inner), _) => {
                let other =
                    if *kind == Type::Pointer { &Type::Integer(64) } else { &Type::Pointer };
                self.constant(inner, other)?
            }
            (Constant::Aggregate(parts), Type::Struct(_)) => {
                let parts = parts.iter().map(|(kind, part)| self.constant(part, kind));
                Value::Aggregate(parts.collect::<Result<Vec<_>, _>>()?.into())
            }
            (Constant::Refused(what), _) => return Err(what.to_string()),
            (_, kind) => return Err(format!("a constant of type {}", kind.show())),
        };
        Ok(as_kind(value, kind))
    }

    pub(super) fn refuse<T>(&self, place: Place, what: impl Into<String>) -> Step<T> {
        Err(Stop::Refused(place, what.into()))
    }

    /// An operand on which something depends.
    pub(in crate::explore) fn known(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
        kind: &Type,
    ) -> Step<Value> {
        match self.operand(state, thread, operand, kind) {
            Ok(Value::Undefined | Value::Bytes(_)) => {
                self.refuse(place, "something depends on a value that is undefined or not known")
            }
            Ok(value) => Ok(value),
            Err(why) => self.refuse(place, why),
        }
    }

    /// An integer on which something depends.
    pub(in crate::explore) fn integer(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
        bits: u32,
    ) -> Step<u128> {
        match self.known(state, thread, place, operand, &Type::Integer(bits))? {
            Value::Integer(number) => Ok(mask(number, bits)),
            Value::Symbol(term) => self.number_of(place, term),
            _ => self.refuse(place, "a computation with an address as a number"),
        }
    }

    /// A truth value on which something depends.
    pub(super) fn truth(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
    ) -> Step<bool> {
        let value = self.known(state, thread, place, operand, &Type::Integer(1))?;
        self.is_true(place, value)
    }

    /// Is the value not zero? If it depends on inputs, both are looked at.
    pub(in crate::explore) fn is_true(&self, place: Place, value: Value) -> Step<bool> {
        match value {
            Value::Integer(number) => Ok(number != 0),
            Value::Symbol(term) => self.decide_not_zero(place, term),
            _ => self.refuse(place, "a computation with an address as a number"),
        }
    }

    pub(in crate::explore) fn pointer(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
    ) -> Step<Pointer> {
        match self.known(state, thread, place, operand, &Type::Pointer)? {
            Value::Pointer(pointer) => Ok(pointer),
            _ => self.refuse(place, "something that is not an address"),
        }
    }

    /// Checks an access and gives its offset.
    pub(in crate::explore) fn bounds(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        length: usize,
        write: bool,
    ) -> Step<usize> {
        let bad = |what| Err(Stop::Violated(Kind::Access(what), place));
        match at.base {
            Base::Number if at.offset == 0 => return bad("an access through a null pointer"),
            Base::Number => return bad("an access through a number as a pointer"),
            Base::Ended => return bad("an access of memory that no longer exists"),
            Base::Function(_) | Base::Thread(_) => {
                return self.refuse(place, "an access of something that is not a variable");
            }
            Base::Global(id) if self.module.globals[id as usize].initial.is_none() => {
                let name = &self.module.globals[id as usize].name;
                return self.refuse(place, format!("the variable {name} is defined elsewhere"));
            }
            Base::Global(_) | Base::Heap(_) | Base::Local { .. } => {}
        }
        let Some(object) = state.object(at.base).filter(|object| !object.dead) else {
            return bad("an access of memory that no longer exists");
        };
        if !object.contains(at.offset, length) {
            return bad("an access outside the variable");
        }
        if write && object.constant {
            return bad("a write to a constant");
        }
        if write && object.once && object.is_defined(at.offset as usize, length) {
            return self.refuse(place, "undefined: a write to a variable that is const");
        }
        if object.is_sync(at.offset as usize, length) {
            return self.refuse(place, "an access of a lock or semaphore that is in use");
        }
        if !write && self.is_used_as_lock(at, object, length) {
            return self.refuse(place, "an access of a lock, whose content is the C library's");
        }
        Ok(at.offset as usize)
    }

    pub(super) fn load(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        kind: &Type,
    ) -> Step<Value> {
        if let Base::Global(id) = at.base
            && at.offset == 0
            && matches!(&*self.module.globals[id as usize].name, "stdout" | "stderr")
        {
            // a stream is only handed to the library
            return Ok(Value::Pointer(at));
        }
        if let Type::Struct(fields) = kind {
            let mut values = Vec::new();
            for (index, kind) in fields.fields.iter().enumerate() {
                let offset = at.offset + fields.offset(index).unwrap_or(0) as i64;
                values.push(self.load(state, place, Pointer { offset, ..at }, kind)?);
            }
            return Ok(Value::Aggregate(values.into()));
        }
        let size = self.access_size(place, kind)?;
        let offset = self.bounds(state, place, at, size, false)?;
        let object = state.object(at.base);
        Ok(object.map_or(Value::Undefined, |object| {
            as_kind(object.load(offset, size, *kind == Type::Pointer), kind)
        }))
    }

    pub(in crate::explore) fn store(
        &self,
        state: &mut State,
        place: Place,
        at: Pointer,
        kind: &Type,
        value: &Value,
    ) -> Step<()> {
        if let Type::Struct(fields) = kind {
            for (index, kind) in fields.fields.iter().enumerate() {
                let offset = at.offset + fields.offset(index).unwrap_or(0) as i64;
                let field = match value {
                    Value::Aggregate(values) => values.get(index),
                    _ => None,
                };
                let field = field.unwrap_or(&Value::Undefined);
                self.store(state, place, Pointer { offset, ..at }, kind, field)?;
            }
            return Ok(());
        }
        let size = self.access_size(place, kind)?;
        let offset = self.bounds(state, place, at, size, true)?;
        if let Some(object) = state.object_mut(at.base) {
            object.store(offset, size, value);
        }
        Ok(())
    }

    /// Bytes of a type that can be read and written.
    pub(super) fn access_size(&self, place: Place, kind: &Type) -> Step<usize> {
        match kind {
            Type::Pointer => Ok(8),
            Type::Float { size: size @ (4 | 8), .. } => Ok(*size as usize),
            Type::Integer(bits) if bits % 8 == 0 && bits.div_ceil(8).is_power_of_two() => {
                Ok(*bits as usize / 8)
            }
            other => self.refuse(place, format!("an access of type {}", other.show())),
        }
    }
}

pub(super) fn truth(holds: bool) -> Value {
    Value::Integer(holds.into())
}

/// A number as a pointer or a pointer that is a number, as the type wants it.
pub(super) fn as_kind(value: Value, kind: &Type) -> Value {
    match (value, kind) {
        (Value::Integer(number), Type::Pointer) => {
            Value::Pointer(Pointer { base: Base::Number, offset: number as i64 })
        }
        (Value::Pointer(Pointer { base: Base::Number, offset }), Type::Integer(bits)) => {
            Value::Integer(mask(offset as u64 as u128, *bits))
        }
        (Value::Integer(number), Type::Integer(bits)) => Value::Integer(mask(number, *bits)),
        (value, _) => value,
    }
}
