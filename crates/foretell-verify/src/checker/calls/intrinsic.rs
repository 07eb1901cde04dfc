//! LLVM intrinsics that clang emits for C.

use super::{At, Call};
use crate::checker::State;
use crate::checker::memory::{Byte, Object, Value};
use crate::checker::step::{End, Result, unknown};
use crate::ir::Operand;

impl Call<'_, '_> {
    pub(super) fn intrinsic(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let copies = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
        if name.starts_with("llvm.expect") {
            return self.value(state, 0).map(Some);
        }
        if name.starts_with("llvm.lifetime.") {
            let at = self.at(state, self.arguments.len().saturating_sub(1))?;
            let bytes = vec![Byte::Undefined; state.memory.size(at.0)];
            if state.memory.locks.keys().any(|(object, _)| *object == at.0) {
                return unknown(self.place, "a lock in a variable that begins or ends");
            }
            if state.memory.write(at.0, 0, &bytes).is_none() {
                return unknown(self.place, "the lifetime of something that is not a variable");
            }
            // what points to it points to nothing, but for its name
            if let (true, Some(Operand::Register(local))) = (
                name.starts_with("llvm.lifetime.end"),
                self.arguments.last().map(|argument| &argument.value),
            ) {
                let size = bytes.len();
                let padding = state.memory.padding(at.0);
                self.checker.remove(state, &|object| *object == at.0);
                state.memory.add(at.0, vec![Byte::Undefined; size]);
                state.memory.pad(at.0, padding.as_ref());
                self.checker.top(state, self.thread)?.registers[*local as usize] =
                    Value::Pointer(at.0, at.1);
            }
            return Ok(Some(Value::Undefined));
        }
        if !copies && !name.starts_with("llvm.memset") {
            return unknown(self.place, format!("the intrinsic {name}"));
        }
        let to = self.at(state, 0)?;
        let length = self.integer(state, 2)? as usize;
        // C asks for objects even then
        if length == 0 {
            return unknown(self.place, "a copy of no bytes");
        }
        let bytes = match copies {
            true => {
                let from = self.at(state, 1)?;
                if from.0 == to.0 && !name.starts_with("llvm.memmove") {
                    return unknown(self.place, "a copy inside an object");
                }
                let bytes = state.memory.read(from.0, from.1, length);
                let mut bytes = bytes.map(<[Byte]>::to_vec).ok_or(End::Violation(self.place))?;
                for (place, byte) in bytes.iter_mut().enumerate() {
                    // bits without a value have none elsewhere either
                    let partial =
                        |(object, at): At| state.memory.is_partial(object, at + place as i64);
                    if partial(from) && !partial(to) {
                        *byte = Byte::Undefined;
                    }
                }
                let is_constant = matches!(from.0, Object::Global(id)
                    if self.checker.module.globals[id as usize].constant);
                if !is_constant {
                    self.checker.copy(self.place, from, length)?;
                    self.checker.copy(self.place, to, length)?;
                }
                bytes
            }
            false => vec![Byte::Number(self.integer(state, 1)? as u8); length],
        };
        let constant = matches!(to.0, Object::Global(id)
            if self.checker.module.globals[id as usize].constant);
        let locked = state.memory.locks.keys().any(|(object, _)| *object == to.0);
        if locked {
            return unknown(self.place, "a copy over a lock");
        }
        match (constant, state.memory.write(to.0, to.1, &bytes)) {
            (false, Some(())) => Ok(Some(Value::Undefined)),
            _ => Err(End::Violation(self.place)),
        }
    }
}
