//! What programs in C promise to compilers, and what clang's unoptimised code does not show.
//!
//! A program that breaks such a promise has no meaning: optimised, it may do anything. None of it is a
//! violation, because no run of the unoptimised program shows it; it is refused with its place.
//!
//! - *Effective types* (C17 6.5, 6 and 7). The IR says by which type each access is made ([`Manner`]).
//!   A declared object has one type at each offset, for ever: all accesses of it, in whatever
//!   execution, have to agree with each other and with the declaration, so what was seen is kept in the
//!   machine and not in states. Memory of `malloc` and objects with unions in them have at each byte
//!   the type that was written last, which is part of the state; a read has to agree with it. A copy
//!   (`memcpy`) carries it along. Copied from a declared object, bytes have no type: that is more than
//!   C allows, and no compiler can tell.
//! - *Alignment*: an address is a multiple of what its type asks for, by where its object begins and not
//!   by luck.
//! - *`restrict`*: a call is accepted if nothing but the parameter itself leads the callee to what the
//!   parameter points to, and no other thread comes to it. Overlaps that nobody would see are refused,
//!   too. Pointers that are `restrict` and no parameters are refused by the reader.
//! - `nonnull`, `returns_nonnull`, `static` in the brackets of a parameter, arguments without a value.
//! - `const`, `pure` and `malloc` of functions with a body, and `noescape` of their parameters, are refused:
//!   they may lie, and would have to be proved.

use std::collections::BTreeSet;

use super::machine::{Machine, Step, Stop};
use super::memory::{Base, Object, Pointer, Value};
use super::state::{OWN, State};
use crate::ir::{
    Argument, Constant, Copied, FunctionId, GlobalId, Manner, Op, Operand, Place, Promises, TagId,
    Type,
};

/// A declared object, in every execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Declared {
    Global(GlobalId),
    /// A thread's own one.
    Own(u16),
    Local(FunctionId, u32),
}

/// By which type bytes of a declared object were accessed: offset, length, type.
pub(super) type Seen = (u32, u32, TagId);

/// A part of a declared object: from where to where.
pub(super) type Part = (Declared, u32, u32);

/// What happens to a part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The threads library uses it.
    Lock,
    /// It is read to be copied.
    Copy,
}

const WRONG_TYPE: &str =
    "undefined: an access by another type than that of the object (C17 6.5, 7)";

impl Machine<'_> {
    fn undefined<T>(&self, place: Place, what: impl Into<String>) -> Step<T> {
        Err(Stop::Refused(place, what.into()))
    }

    /// Is the address a multiple of it, wherever its object lies?
    fn is_aligned(&self, state: &State, at: Pointer, align: u64) -> bool {
        let object = state.object(at.base);
        align <= 1
            || object.is_none_or(|object| {
                u64::from(object.align) >= align && at.offset.rem_euclid(align as i64) == 0
            })
    }

    /// Checks the manner of an access that is inside its object.
    pub(super) fn check_manner(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        kind: &Type,
        manner: &Manner,
        write: bool,
    ) -> Step<()> {
        if !self.is_aligned(state, at, manner.align) {
            return self.undefined(place, "undefined: an access that is not aligned for its type");
        }
        let (Some(tag), Some(length)) = (manner.tag, kind.size()) else { return Ok(()) };
        self.check_type(state, place, at, length as usize, Some(kind), tag, write)
    }

    /// Checks the type of an access; `kind` is how the value is represented, if it is one.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn check_type(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        length: usize,
        kind: Option<&Type>,
        tag: TagId,
        write: bool,
    ) -> Step<()> {
        let Some(object) = state.object(at.base) else { return Ok(()) };
        let aliases = &self.module.aliases;
        let offset = at.offset as u32;
        let Some(declared) = declared(at.base, object).filter(|_| object.plain) else {
            let agrees = write
                || object
                    .effective(offset as usize, length)
                    .all(|other| aliases.may_alias(tag, other));
            return if agrees { Ok(()) } else { self.undefined(place, WRONG_TYPE) };
        };
        let access: Seen = (offset, length as u32, tag);
        let mut types = self.types.borrow_mut();
        let seen = types.entry(declared).or_default();
        if seen.contains(&access) {
            return Ok(());
        }
        let overlaps =
            |other: &Seen| other.0 < offset + length as u32 && offset < other.0 + other.1;
        let agrees = seen
            .iter()
            .filter(|other| overlaps(other))
            .all(|other| aliases.may_alias(tag, other.2));
        let as_declared = match (kind, self.contents.get(&declared)) {
            (Some(kind), Some(content)) => {
                let size = content.size().unwrap_or(0).max(1);
                let leaf = content.leaf(u64::from(offset) % size);
                leaf.is_none_or(|leaf| {
                    let whole = has_members(content) || leaf.size() == kind.size();
                    whole && is_same_class(leaf, kind)
                })
            }
            _ => true,
        };
        if !agrees || !as_declared {
            return self.undefined(place, WRONG_TYPE);
        }
        seen.insert(access);
        Ok(())
    }

    /// Checks the copy of a structure, member by member.
    pub(super) fn check_copy(
        &self,
        state: &State,
        place: Place,
        (from, to): (Pointer, Pointer),
        fields: &[Copied],
    ) -> Step<()> {
        for &(offset, length, tag) in fields {
            let Some(tag) = tag else { continue };
            for (start, write) in [(from, false), (to, true)] {
                let at = Pointer { offset: start.offset + offset as i64, ..start };
                self.check_type(state, place, at, length as usize, None, tag, write)?;
            }
        }
        Ok(())
    }

    /// Checks what a function of the program, and the call of it, promise.
    pub(super) fn check_call(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        id: FunctionId,
        arguments: &[Argument],
        values: &[Value],
    ) -> Step<()> {
        let function = self.function(id);
        let name = &function.name;
        if function.no_effect {
            let what = "has the attribute const or pure, which is not checked";
            return self.undefined(place, format!("a call of {name}, which {what}"));
        }
        if function.promises.alone {
            let what = "has the attribute malloc, which is not checked";
            return self.undefined(place, format!("a call of {name}, which {what}"));
        }
        if function.parameters.iter().any(|parameter| parameter.promises.unchecked) {
            let what = "has an attribute of a parameter that is not checked";
            return self.undefined(place, format!("a call of {name}, which {what}"));
        }
        for (index, value) in values.iter().enumerate() {
            let of_parameter = function.parameters.get(index).map(|p| p.promises);
            let of_argument = arguments.get(index).map(|argument| argument.promises);
            let promises = of_parameter.unwrap_or_default().and(of_argument.unwrap_or_default());
            self.check_value(state, place, value, promises, &format!("an argument of {name}"))?;
            if let Value::Pointer(pointer) = value
                && promises.alone
                && function.parameters.get(index).is_some_and(|p| p.by_value.is_none())
                && self.is_reached_otherwise(state, thread, id, values, index, *pointer)
            {
                return self.undefined(
                    place,
                    format!(
                        "a call of {name}: what its restrict parameter points to may be \
                         reached in another way"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Checks what is promised of a value by itself.
    pub(super) fn check_value(
        &self,
        state: &State,
        place: Place,
        value: &Value,
        promises: Promises,
        what: &str,
    ) -> Step<()> {
        if promises.defined && matches!(value, Value::Undefined | Value::Bytes(_)) {
            return self.undefined(place, format!("undefined: {what} has no value"));
        }
        let Value::Pointer(pointer) = value else { return Ok(()) };
        if promises.not_null && *pointer == Pointer::NULL {
            return self.undefined(place, format!("undefined: {what} is null, declared nonnull"));
        }
        let size = promises.bytes as usize;
        if size > 0 && self.bounds(state, place, *pointer, size, false).is_err() {
            return self.undefined(
                place,
                format!("undefined: {what} points to fewer bytes than are declared"),
            );
        }
        if !self.is_aligned(state, *pointer, promises.align) {
            return self.undefined(place, format!("undefined: {what} is not aligned"));
        }
        Ok(())
    }

    /// Can the callee, or another thread, come to what the argument points to without it?
    fn is_reached_otherwise(
        &self,
        state: &State,
        thread: usize,
        callee: FunctionId,
        values: &[Value],
        index: usize,
        pointer: Pointer,
    ) -> bool {
        let target = pointer.base;
        let Some(object) = state.object(target).filter(|object| !object.constant) else {
            return false;
        };
        if self.is_shared(state, thread, target) {
            return true;
        }
        let mentioned = self.mentioned(callee);
        if matches!(target, Base::Global(id) if mentioned.contains(&id)) {
            return true;
        }
        let mut found = Vec::new();
        let mut look = |pointer: &Pointer| {
            found.push(pointer.base);
            false
        };
        for (other, value) in values.iter().enumerate() {
            if other != index {
                value.any_pointer(&mut look);
            }
        }
        for &id in &mentioned {
            found.push(Base::Global(id));
        }
        if let Some(running) = state.threads[thread].as_ref() {
            let own = (0..running.own.len() as u16).map(|local| Base::Local {
                thread: thread as u8,
                frame: OWN,
                local,
            });
            found.extend(own);
            for (_, value) in &running.specific {
                value.any_pointer(&mut |pointer| {
                    found.push(pointer.base);
                    false
                });
            }
        }
        // what is read through the parameter is not based on it
        found.extend(object.pointers().map(|pointer| pointer.base));
        let mut seen = BTreeSet::new();
        while let Some(base) = found.pop() {
            if base == target {
                return true;
            }
            if seen.insert(base)
                && let Some(object) = state.object(base)
            {
                found.extend(object.pointers().map(|pointer| pointer.base));
            }
        }
        false
    }

    /// Bytes are used as a lock, or copied: nobody may use a lock of which there is a copy.
    pub(super) fn note_lock(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        length: usize,
        use_of: Use,
    ) -> Step<()> {
        let Some(declared) = state.object(at.base).and_then(|object| declared(at.base, object))
        else {
            return Ok(());
        };
        let part = (declared, at.offset as u32, at.offset as u32 + length as u32);
        let (locks, copies) = (&mut *self.locks.borrow_mut(), &mut *self.copies.borrow_mut());
        let (mine, others) = match use_of {
            Use::Lock => (locks, copies),
            Use::Copy => (copies, locks),
        };
        if !mine.insert(part) {
            return Ok(());
        }
        let overlaps = |other: &Part| other.0 == declared && other.1 < part.2 && part.1 < other.2;
        match others.iter().any(overlaps) {
            true => self.undefined(place, "undefined: a lock is used that has been copied"),
            false => Ok(()),
        }
    }

    /// Has the threads library used some of these bytes?
    pub(super) fn is_used_as_lock(&self, at: Pointer, object: &Object, length: usize) -> bool {
        // its types are unions
        if object.plain || self.locks.borrow().is_empty() {
            return false;
        }
        let Some(declared) = declared(at.base, object) else { return false };
        let (from, to) = (at.offset as u32, at.offset as u32 + length as u32);
        self.locks.borrow().iter().any(|lock| lock.0 == declared && lock.1 < to && from < lock.2)
    }

    /// Globals that a function, and what it may call, speaks of.
    pub(super) fn mentioned(&self, id: FunctionId) -> BTreeSet<GlobalId> {
        let mut globals = BTreeSet::new();
        let mut functions = BTreeSet::from([id]);
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let mut called = BTreeSet::new();
            for block in &self.function(id).blocks {
                for instruction in &block.instructions {
                    if let Op::Call { callee: Operand::Register(_), .. } = instruction.op {
                        called.extend(0..self.module.functions.len() as FunctionId);
                    }
                    for operand in instruction.op.operands() {
                        if let Operand::Constant(constant) = operand {
                            mentions(constant, &mut globals, &mut called);
                        }
                    }
                }
            }
            open.extend(called.into_iter().filter(|id| functions.insert(*id)));
        }
        globals
    }
}

/// What lies there, if it is declared.
fn declared(base: Base, object: &Object) -> Option<Declared> {
    match base {
        Base::Global(id) => Some(Declared::Global(id)),
        Base::Local { frame: OWN, local, .. } => Some(Declared::Own(local)),
        Base::Local { .. } => object.name.map(|(function, local)| Declared::Local(function, local)),
        _ => None,
    }
}

/// The storage of bit-fields has other widths than its accesses.
fn has_members(content: &Type) -> bool {
    match content {
        Type::Array(_, element) => has_members(element),
        Type::Struct(_) => true,
        _ => false,
    }
}

/// Could a value of the declared type be represented like this?
fn is_same_class(declared: &Type, access: &Type) -> bool {
    match (declared, access) {
        (Type::Float { .. }, _) | (_, Type::Float { .. }) | (Type::Pointer, _) => {
            declared == access
        }
        (_, Type::Pointer) => false,
        _ => true,
    }
}

fn mentions(
    constant: &Constant,
    globals: &mut BTreeSet<GlobalId>,
    functions: &mut BTreeSet<FunctionId>,
) {
    match constant {
        Constant::Global(id) => {
            globals.insert(*id);
        }
        Constant::Function(id) => {
            functions.insert(*id);
        }
        Constant::Behind(inner, _) | Constant::Same(inner) => mentions(inner, globals, functions),
        Constant::Aggregate(parts) => {
            parts.iter().for_each(|(_, part)| mentions(part, globals, functions));
        }
        _ => {}
    }
}
