//! LLVM intrinsics that clang emits for C: copies, bit counts, overflow, lifetimes.

use super::Call;
use crate::explore::floats;
use crate::explore::machine::{Kind, Step, Stop};
use crate::explore::memory::{Base, Pointer, Value};
use crate::explore::promises::Use;
use crate::explore::state::{OWN, State};
use crate::ir::{Constant, FloatOperation, Operand, Type, mask, signed};

impl Call<'_, '_> {
    /// The length of a copy; others see the copy by what it accesses, which has to be known before.
    pub(in crate::explore) fn length(&self, state: &State) -> Step<usize> {
        match self.value(state, 2)? {
            Value::Integer(length) => Ok(usize::try_from(length).unwrap_or(usize::MAX)),
            _ => self.refuse("a copy whose length is not known or depends on inputs"),
        }
    }

    /// C asks for an address inside or right behind an object even where no byte is accessed (C17
    /// 7.24.1, 2); compilers take it for not null.
    pub(in crate::explore) fn valid(&self, state: &State, at: Pointer) -> Step<()> {
        let object = state.object(at.base).filter(|object| !object.dead);
        match object.is_some_and(|object| object.contains(at.offset, 0)) {
            true => Ok(()),
            false => {
                self.refuse("undefined: zero bytes at null, or at an address outside every object")
            }
        }
    }

    pub(super) fn intrinsic(&self, state: &mut State, name: &str) -> Step<Value> {
        let machine = self.machine;
        let family = name.split('.').next().unwrap_or_default();
        match family {
            "memcpy" | "memmove" => {
                let (to, from) = (self.pointer(state, 0)?, self.pointer(state, 1)?);
                let length = self.length(state)?;
                if length == 0 {
                    self.valid(state, from)?;
                    self.valid(state, to)?;
                    return Ok(Value::Undefined);
                }
                let source = machine.bounds(state, self.place, from, length, false)?;
                let target = machine.bounds(state, self.place, to, length, true)?;
                // an assignment of a structure to itself is a copy, too
                let overlaps = to.base == from.base
                    && (source != target || self.fields.is_none())
                    && source < target + length
                    && target < source + length;
                if overlaps && family == "memcpy" {
                    return self.refuse("undefined: a copy of memory that overlaps");
                }
                machine.note_lock(state, self.place, from, length, Use::Copy)?;
                let fields = self.fields.unwrap_or_default();
                machine.check_copy(state, self.place, (from, to), fields)?;
                let copy = state.object(from.base).map(|object| object.slice(source, length));
                if let (Some(copy), Some(object)) = (copy, state.object_mut(to.base)) {
                    object.paste(target, &copy);
                    for &(offset, length, tag) in fields {
                        if let Some(tag) = tag.filter(|_| !object.plain) {
                            object.set_effective(target + offset as usize, length as usize, tag);
                        }
                    }
                }
                Ok(Value::Undefined)
            }
            "memset" => {
                let to = self.pointer(state, 0)?;
                let byte = self.integer(state, 1)? as u8;
                let length = self.length(state)?;
                if length == 0 {
                    self.valid(state, to)?;
                } else {
                    let target = machine.bounds(state, self.place, to, length, true)?;
                    if let Some(object) = state.object_mut(to.base) {
                        object.fill(target, length, byte);
                    }
                }
                Ok(Value::Undefined)
            }
            "lifetime" => {
                let at = self.pointer(state, self.arguments.len().saturating_sub(1))?;
                let ends = name.starts_with("lifetime.end");
                let Some(object) = state.object(at.base).filter(|_| at.offset == 0) else {
                    return Ok(Value::Undefined);
                };
                // with `main`, the program ends
                let depth = machine.depth(state, self.thread);
                if ends && !(self.thread == 0 && depth == 1) {
                    machine.check_locks(object, self.place)?;
                }
                // nobody can ask for a private one any more
                let dies = ends && !object.private;
                let register = object.name.map(|(_, register)| register);
                if let Some(object) = state.object_mut(at.base) {
                    let size = object.size();
                    object.clear(0, size);
                    object.dead = dies;
                }
                // what points to it points to nothing, even if the variable comes to life again
                if dies {
                    state.forget(|base| *base == at.base);
                    if let Some(register) = register {
                        machine.top(state, self.thread).registers[register as usize] =
                            Value::Pointer(at);
                    }
                }
                Ok(Value::Undefined)
            }
            // all arguments in registers have been taken: the next lies in memory
            "va_start" => {
                let at = self.pointer(state, 0)?;
                let depth = machine.depth(state, self.thread);
                let function = machine.function(machine.top(state, self.thread).function);
                let copies = function.parameters.iter().filter(|p| p.by_value.is_some()).count();
                let (thread, frame) = (self.thread as u8, depth as u16 - 1);
                let base = Base::Local { thread, frame, local: copies as u16 };
                let field = |offset| Pointer { offset: at.offset + offset, ..at };
                let (word, place) = (Type::Integer(32), self.place);
                machine.store(state, place, field(0), &word, &Value::Integer(48))?;
                machine.store(state, place, field(4), &word, &Value::Integer(176))?;
                let memory = Value::Pointer(Pointer::to(base));
                machine.store(state, place, field(8), &Type::Pointer, &memory)?;
                machine.store(state, place, field(16), &Type::Pointer, &Value::Undefined)?;
                Ok(Value::Undefined)
            }
            "va_copy" => {
                let (to, from) = (self.pointer(state, 0)?, self.pointer(state, 1)?);
                let source = machine.bounds(state, self.place, from, 24, false)?;
                let target = machine.bounds(state, self.place, to, 24, true)?;
                let copy = state.object(from.base).map(|object| object.slice(source, 24));
                if let (Some(copy), Some(object)) = (copy, state.object_mut(to.base)) {
                    object.paste(target, &copy);
                }
                Ok(Value::Undefined)
            }
            "va_end" => Ok(Value::Undefined),
            "stacksave" => {
                let locals = machine.top(state, self.thread).locals.len();
                Ok(Value::Pointer(Pointer { base: Base::Number, offset: locals as i64 }))
            }
            "stackrestore" => {
                let saved = self.pointer(state, 0)?;
                let depth = state.threads[self.thread].as_ref().map_or(0, |t| t.frames.len());
                let frame = machine.top(state, self.thread);
                frame.locals.truncate(saved.offset as usize);
                let (owner, call) = (self.thread as u8, depth as u16 - 1);
                state.forget(|base| {
                    matches!(base, Base::Local { thread, frame, local }
                        if *thread == owner && *frame == call && i64::from(*local) >= saved.offset)
                });
                Ok(Value::Undefined)
            }
            "threadlocal" => match self.argument(0)?.value {
                Operand::Constant(Constant::Global(id)) => {
                    let before = &machine.module.globals[..id as usize];
                    let local = before.iter().filter(|global| global.thread_local).count() as u16;
                    let thread = self.thread as u8;
                    Ok(Value::Pointer(Pointer::to(Base::Local { thread, frame: OWN, local })))
                }
                _ => self.refuse("a thread-local variable that is not known"),
            },
            "expect" => self.value(state, 0),
            "fabs" | "fmuladd" => {
                let kind = &self.argument(0)?.kind;
                let float = |operation, values: &[u128]| {
                    let result = floats::compute(operation, kind, kind, values);
                    let Some(bits) = result else {
                        return self.refuse("floating point whose result is not defined");
                    };
                    Ok(bits)
                };
                let bits = |index| match self.value(state, index)? {
                    Value::Integer(bits) => Ok(bits),
                    _ => self.refuse("floating point with an unknown value"),
                };
                let first = bits(0)?;
                // x86-64 has no fused multiplication in its base: a product, then a sum
                Ok(Value::Integer(match family {
                    "fabs" => float(FloatOperation::Absolute, &[first])?,
                    _ => {
                        let product = float(FloatOperation::Multiply, &[first, bits(1)?])?;
                        float(FloatOperation::Add, &[product, bits(2)?])?
                    }
                }))
            }
            "abs" | "bswap" | "ctpop" | "ctlz" | "cttz" | "smax" | "smin" | "umax" | "umin" => {
                let Type::Integer(bits) = self.argument(0)?.kind else {
                    return self.refuse(format!("the intrinsic {name}"));
                };
                let a = self.integer(state, 0)?;
                let second = || self.integer(state, 1);
                let zero_is_undefined = || Ok(a == 0 && second()? != 0);
                let greater = |b: u128| match family.starts_with('s') {
                    true => signed(a, bits) > signed(b, bits),
                    false => a > b,
                };
                Ok(Value::Integer(match family {
                    "abs" if a == 1 << (bits - 1) && second()? != 0 => {
                        return Err(Stop::Violated(Kind::Overflow, self.place));
                    }
                    "abs" => mask(signed(a, bits).unsigned_abs(), bits),
                    "bswap" => a.swap_bytes() >> (128 - bits),
                    "ctpop" => a.count_ones().into(),
                    "ctlz" | "cttz" if zero_is_undefined()? => {
                        return self.refuse("undefined: the first bit of zero");
                    }
                    "ctlz" => (a.leading_zeros() - (128 - bits)).into(),
                    "cttz" => a.trailing_zeros().min(bits).into(),
                    _ => {
                        let b = second()?;
                        if greater(b) == family.ends_with("max") { a } else { b }
                    }
                }))
            }
            "trap" | "debugtrap" => Err(Stop::Violated(Kind::Abort, self.place)),
            "sadd" | "uadd" | "ssub" | "usub" | "smul" | "umul"
                if name.contains(".with.overflow.") =>
            {
                let Type::Integer(bits @ 1..=64) = self.argument(0)?.kind else {
                    return self.refuse(format!("the intrinsic {name}"));
                };
                let (a, b) = (self.integer(state, 0)?, self.integer(state, 1)?);
                let (a, b) = match family.starts_with('s') {
                    true => (signed(a, bits), signed(b, bits)),
                    false => (a as i128, b as i128),
                };
                let exact = match &family[1..] {
                    "add" => a.checked_add(b),
                    "sub" => a.checked_sub(b),
                    _ => a.checked_mul(b),
                };
                // a product of two words of 64 bits can leave 128 bits only if it is unsigned
                let Some(exact) = exact else {
                    return self.refuse("a product of more than 127 bits");
                };
                let result = mask(exact as u128, bits);
                let right = match family.starts_with('s') {
                    true => signed(result, bits) == exact,
                    false => exact >= 0 && result as i128 == exact,
                };
                let fields = [Value::Integer(result), Value::Integer((!right).into())];
                Ok(Value::Aggregate(fields.into()))
            }
            _ => self.refuse(format!("the intrinsic llvm.{name} has no meaning here")),
        }
    }
}
