//! Who waits for whom, and who races.

use super::memory::{Lock, Object, Value};
use super::step::{Checker, Result, unknown};
use super::{Doing, State};
use crate::certificate::Assumption;
use crate::ir::{Constant, Op, Operand, Place, Type};

/// An access that a thread is about to make.
struct Access {
    thread: usize,
    object: Object,
    offset: i64,
    length: i64,
    writes: bool,
    atomic: bool,
    /// The machine does it at once.
    whole: bool,
    place: Place,
}

impl Checker<'_> {
    fn has_ended(&self, state: &State, number: usize) -> bool {
        let thread = state.threads.get(number).and_then(Option::as_ref);
        thread.is_none_or(|thread| matches!(thread.doing, Doing::Ended(_)))
    }

    /// Where a deadlock is: all wait, or some that never go on whatever the others do.
    pub(super) fn stuck(&self, state: &State) -> Option<Place> {
        let running: Vec<usize> =
            (0..state.threads.len()).filter(|&number| !self.has_ended(state, number)).collect();
        let by_luck = |number: usize| {
            let thread = state.threads[number].as_ref();
            thread
                .is_some_and(|thread| matches!(thread.doing, Doing::Waits { signalled: false, .. }))
        };
        let all_wait =
            running.iter().all(|&number| by_luck(number) || self.choices(state, number) == 0);
        let never = running.iter().copied().find(|&number| {
            let mut at = number;
            for _ in 0..state.threads.len() {
                match self.waits_for(state, at) {
                    None => return false,
                    Some(next) if next == number || self.has_ended(state, next) => return true,
                    Some(next) => at = next,
                }
            }
            false
        });
        let stuck = never.or(running.first().copied().filter(|_| all_wait))?;
        Some(self.next(state, stuck).map(|next| next.place).unwrap_or_default())
    }

    /// The thread without which this one cannot go on.
    fn waits_for(&self, state: &State, number: usize) -> Option<usize> {
        if state.alone.is_some() || self.choices(state, number) > 0 {
            return None;
        }
        let lock = match &state.threads[number].as_ref()?.doing {
            Doing::Waits { mutex, .. } => *mutex,
            Doing::Runs => match self.call_at(state, number)? {
                ("pthread_join", (Object::Thread(other), _)) => return Some(other.into()),
                (
                    "pthread_mutex_lock"
                    | "pthread_spin_lock"
                    | "pthread_rwlock_rdlock"
                    | "pthread_rwlock_wrlock",
                    at,
                ) => at,
                _ => return None,
            },
            Doing::AtBarrier(_) | Doing::Leaves(_) | Doing::Ended(_) => return None,
        };
        match state.memory.locks.get(&lock) {
            Some(Lock::Held { owner, .. }) => Some((*owner).into()),
            _ => None,
        }
    }

    /// The function that a thread is about to call, and where its first argument points.
    fn call_at(&self, state: &State, number: usize) -> Option<(&str, (Object, i64))> {
        let Op::Call { callee, arguments, .. } = &self.next(state, number)?.op else { return None };
        let callee = self.operand(state, number, callee, &Type::Pointer);
        let Ok(Value::Pointer(Object::Function(id), 0)) = callee else { return None };
        let first = arguments.first()?;
        match self.operand(state, number, &first.value, &first.kind) {
            Ok(Value::Pointer(object, offset)) => Some((&self.function(id).name, (object, offset))),
            _ => None,
        }
    }

    /// Does a writer wait for a lock that readers hold?
    pub(super) fn writer_waits(&self, state: &State, at: (Object, i64)) -> bool {
        (0..state.threads.len())
            .any(|number| self.call_at(state, number) == Some(("pthread_rwlock_wrlock", at)))
    }

    /// Two threads are about to access the same memory, one writes, and not both are atomic: the proof
    /// has to say that it assumes sequential consistency, and for which lines.
    pub(super) fn note_races(&self, state: &State) -> Result<()> {
        if state.alone.is_some() {
            return Ok(());
        }
        let accesses: Vec<Access> =
            (0..state.threads.len()).flat_map(|number| self.accesses(state, number)).collect();
        for (index, a) in accesses.iter().enumerate() {
            for b in &accesses[..index] {
                let overlap = a.object == b.object
                    && a.offset < b.offset + b.length
                    && b.offset < a.offset + a.length;
                let races = a.thread != b.thread
                    && overlap
                    && (a.writes || b.writes)
                    && !(a.atomic && b.atomic);
                if !races {
                    continue;
                }
                for access in [a, b] {
                    let aligned = access.length > 0 && access.offset % access.length == 0;
                    if !access.whole || access.length > 8 || !aligned {
                        return unknown(access.place, "a race on an access in several pieces");
                    }
                }
                let line = |access: &Access| self.module.show_short(access.place);
                self.assume(Assumption::race(line(a), line(b)));
            }
        }
        Ok(())
    }

    /// What the next instruction of a thread accesses.
    fn accesses(&self, state: &State, number: usize) -> Vec<Access> {
        let runs = state.threads[number].as_ref().is_some_and(|t| t.doing == Doing::Runs);
        let Some(next) = self.next(state, number).filter(|_| runs) else { return Vec::new() };
        let access = |operand: &Operand, length: u64, writes, atomic, whole| {
            let address = self.operand(state, number, operand, &Type::Pointer);
            let Ok(Value::Pointer(object, offset)) = address else { return None };
            let length = length as i64;
            let place = next.place;
            Some(Access { thread: number, object, offset, length, writes, atomic, whole, place })
        };
        let size = |kind: &Type| kind.size().unwrap_or(0);
        match &next.op {
            Op::Load { kind, from, order, .. } => {
                access(from, size(kind), false, order.is_some(), true).into_iter().collect()
            }
            Op::Store { kind, to, order, .. } => {
                access(to, size(kind), true, order.is_some(), true).into_iter().collect()
            }
            Op::Modify { kind, at, .. } | Op::Exchange { kind, at, .. } => {
                access(at, size(kind), true, true, true).into_iter().collect()
            }
            Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } => {
                let name = &self.function(*id).name;
                let copies = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
                if !copies && !name.starts_with("llvm.memset") {
                    return Vec::new();
                }
                let length = self.operand(state, number, &arguments[2].value, &arguments[2].kind);
                let Ok(Value::Integer(length)) = length else { return Vec::new() };
                let written = access(&arguments[0].value, length as u64, true, false, false);
                let read = access(&arguments[1].value, length as u64, false, false, false);
                written.into_iter().chain(read.filter(|_| copies)).collect()
            }
            _ => Vec::new(),
        }
    }
}
