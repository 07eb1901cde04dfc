//! What other threads can see of a step, and so where it ends.

use super::{Access, Machine, Step};
use crate::explore::library;
use crate::explore::memory::{Base, Value};
use crate::explore::state::{State, Status};
use crate::explore::texts;
use crate::ir::{Constant, FunctionId, Instruction, Op, Operand, Type};
use crate::limits::LONGEST_STEP;

impl<'m> Machine<'m> {
    /// Goes on while nobody can see it.
    pub(super) fn unseen(&self, state: &mut State, thread: usize) -> Step<()> {
        for _ in 0..LONGEST_STEP {
            if self.is_seen(state, thread) {
                break;
            }
            self.one(state, thread, 0)?;
        }
        Ok(())
    }

    /// Can somebody else see what the thread does next, or does it depend on somebody else?
    pub(super) fn is_seen(&self, state: &State, thread: usize) -> bool {
        let Some(running) = state.threads[thread].as_ref() else { return true };
        if running.status != Status::Runs {
            return true;
        }
        let Some(instruction) = self.next(state, thread) else { return true };
        if state.alone.is_some() && !matches!(instruction.op, Op::Return(_)) {
            // nobody else moves, so nobody sees it; only what can wait or has a choice is looked at,
            // and inputs, because whoever reads a counterexample wants to know them
            return self.choices(state, thread) != 1
                || self.takes_input(state, thread, instruction);
        }
        match &instruction.op {
            Op::Return(_) => running.frames.len() == 1,
            Op::Exchange { weak: true, .. } => true,
            Op::Call { callee, .. } => match self.callee(state, thread, callee) {
                Some(id) => {
                    let function = self.function(id);
                    match self.is_library(id) {
                        false if library::is_atomic(&function.name) => true,
                        false => false,
                        true if texts::is_text(&function.name) => {
                            self.call_is_seen(state, thread, &function.name, instruction)
                        }
                        true if function.name.starts_with("llvm.mem") => {
                            self.accesses_seen(state, thread, instruction)
                        }
                        true => self.call_is_seen(state, thread, &function.name, instruction),
                    }
                }
                None => true,
            },
            _ => self.accesses_seen(state, thread, instruction),
        }
    }

    pub(in crate::explore) fn accesses_seen(
        &self,
        state: &State,
        thread: usize,
        instruction: &Instruction,
    ) -> bool {
        let accesses = self.accesses(state, thread, instruction);
        accesses.iter().any(|access| self.is_shared(state, thread, access.at.base))
    }

    /// Can another thread come to the object?
    pub fn is_shared(&self, state: &State, thread: usize, base: Base) -> bool {
        // a thread that has ended sees nothing
        if state.running().count() < 2 {
            return false;
        }
        match (base, state.object(base)) {
            // a variable of the C library is a stream, which does not change
            (Base::Global(id), Some(object)) => {
                !object.constant && self.module.globals[id as usize].initial.is_some()
            }
            (Base::Local { thread: owner, .. }, Some(object)) if usize::from(owner) == thread => {
                !object.private && state.others_reach(thread, base)
            }
            (Base::Local { .. }, Some(_)) => true,
            (Base::Heap(_), Some(_)) => state.others_reach(thread, base),
            _ => false,
        }
    }

    /// The accesses of an instruction.
    pub fn accesses(&self, state: &State, thread: usize, instruction: &Instruction) -> Vec<Access> {
        let place = instruction.place;
        let access = |operand: &Operand, length: u64, write, atomic| {
            let value = self.operand(state, thread, operand, &Type::Pointer).ok()?;
            let Value::Pointer(at) = value else { return None };
            Some(Access { at, length: length as usize, write, atomic, place })
        };
        let size = |kind: &Type| kind.size().unwrap_or(0);
        match &instruction.op {
            Op::Load { kind, from, order, .. } => {
                access(from, size(kind), false, order.is_some()).into_iter().collect()
            }
            Op::Store { kind, to, order, .. } => {
                access(to, size(kind), true, order.is_some()).into_iter().collect()
            }
            Op::Modify { kind, at, .. } | Op::Exchange { kind, at, .. } => {
                access(at, size(kind), true, true).into_iter().collect()
            }
            Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } => {
                let name = &self.function(*id).name;
                if texts::is_text(name) {
                    let accesses = self.text_accesses(state, thread, name, arguments);
                    let access =
                        |(at, length, write)| Access { at, length, write, atomic: false, place };
                    return accesses.into_iter().map(access).collect();
                }
                let length = arguments
                    .get(2)
                    .map(|argument| self.operand(state, thread, &argument.value, &argument.kind));
                let length = match length {
                    Some(Ok(Value::Integer(length))) => length as u64,
                    _ => return Vec::new(),
                };
                let reads = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
                if !reads && !name.starts_with("llvm.memset") {
                    return Vec::new();
                }
                let written = access(&arguments[0].value, length, true, false);
                let read = reads.then(|| access(&arguments[1].value, length, false, false));
                written.into_iter().chain(read.flatten()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Two accesses in one expression that C does not order must not be of the same bytes.
    pub(super) fn check_unsequenced(
        &self,
        state: &State,
        thread: usize,
        later: &Instruction,
        function: FunctionId,
        (block, at): (usize, usize),
    ) -> Step<()> {
        let earlier = &self.function(function).blocks[block].instructions[at];
        let earlier = self.accesses(state, thread, earlier);
        for a in self.accesses(state, thread, later) {
            let overlaps = |b: &Access| {
                let end = |access: &Access| access.at.offset + access.length as i64;
                a.at.base == b.at.base && a.at.offset < end(b) && b.at.offset < end(&a)
            };
            if earlier.iter().any(|b| (a.write || b.write) && overlaps(b)) {
                let what =
                    "undefined: two accesses in one expression that C does not order (6.5, 2)";
                return self.refuse(later.place, what);
            }
        }
        Ok(())
    }
}
