//! Bytes, and what locks keep beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ir::Padding;

/// Something that an address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Object {
    /// Nothing: the offset is the number.
    Number,
    Global(u32),
    Heap(u32),
    /// A variable of a call: thread, depth of the call, number.
    Local(u8, u16, u16),
    Function(u32),
    /// No address: a handle of a thread.
    Thread(u8),
    /// What is no more.
    Gone,
}

/// A value of a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Undefined,
    Integer(u128),
    /// An object and an offset; never [`Object::Number`] in an integer.
    Pointer(Object, i64),
    Fields(Vec<Value>),
    /// Bytes that are neither one number nor one pointer: they can only be copied.
    Bytes(Vec<Byte>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Byte {
    Undefined,
    Number(u8),
    /// One of the eight bytes of a pointer.
    Part(Object, i64, u8),
}

/// What a lock, semaphore or barrier is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lock {
    Held {
        owner: u8,
        count: u32,
    },
    Read(Vec<u8>),
    Semaphore(u32),
    Barrier(u32),
    /// A spin lock that is free.
    Free,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    bytes: BTreeMap<Object, Vec<Byte>>,
    /// Bytes of variables that have no value, whatever is written there.
    padding: BTreeMap<Object, Arc<Padding>>,
    pub(super) locks: BTreeMap<(Object, i64), Lock>,
}

impl Memory {
    pub(super) fn add(&mut self, object: Object, bytes: Vec<Byte>) {
        self.bytes.insert(object, bytes);
    }

    pub(super) fn pad(&mut self, object: Object, padding: Option<&Arc<Padding>>) {
        if let Some(padding) = padding {
            self.padding.insert(object, Arc::clone(padding));
        }
    }

    pub(super) fn padding(&self, object: Object) -> Option<Arc<Padding>> {
        self.padding.get(&object).cloned()
    }

    /// Has the byte bits without a value?
    pub(super) fn is_partial(&self, object: Object, at: i64) -> bool {
        let padding = self.padding.get(&object);
        padding.is_some_and(|padding| padding.partial.iter().any(|byte| i64::from(*byte) == at))
    }

    /// Bytes of the variables of a thread.
    pub(super) fn stack(&self, thread: usize) -> usize {
        let mine = |object: &Object| matches!(object, Object::Local(owner, ..) if usize::from(*owner) == thread);
        self.bytes.iter().filter(|(object, _)| mine(object)).map(|(_, bytes)| bytes.len()).sum()
    }

    pub(super) fn has(&self, object: Object) -> bool {
        self.bytes.contains_key(&object)
    }

    fn range(&self, object: Object, offset: i64, length: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.get(&object)?.len()).then_some(start..end)
    }

    pub(super) fn size(&self, object: Object) -> usize {
        self.bytes.get(&object).map_or(0, Vec::len)
    }

    /// The bytes; none if they are not all there.
    pub(super) fn read(&self, object: Object, offset: i64, length: usize) -> Option<&[Byte]> {
        let range = self.range(object, offset, length)?;
        Some(&self.bytes[&object][range])
    }

    pub(super) fn write(&mut self, object: Object, offset: i64, new: &[Byte]) -> Option<()> {
        let range = self.range(object, offset, new.len())?;
        let bytes = self.bytes.get_mut(&object)?;
        bytes[range.clone()].copy_from_slice(new);
        if let Some(padding) = self.padding.get(&object) {
            for at in padding.whole.iter().map(|at| *at as usize).filter(|at| range.contains(at)) {
                bytes[at] = Byte::Undefined;
            }
        }
        Some(())
    }

    /// The value of some bytes.
    pub(super) fn load(&self, object: Object, offset: i64, length: usize) -> Option<Value> {
        let bytes = self.read(object, offset, length)?;
        let mut number = 0_u128;
        for (place, byte) in bytes.iter().enumerate().take(16) {
            if let Byte::Number(byte) = byte {
                number |= u128::from(*byte) << (8 * place);
            }
        }
        if length <= 16 && bytes.iter().all(|byte| matches!(byte, Byte::Number(_))) {
            return Some(Value::Integer(number));
        }
        if let (8, Byte::Part(object, offset, 0)) = (length, bytes[0]) {
            let part =
                |(place, byte): (usize, &Byte)| *byte == Byte::Part(object, offset, place as u8);
            if bytes.iter().enumerate().all(part) {
                return Some(Value::Pointer(object, offset));
            }
        }
        match bytes.iter().all(|byte| *byte == Byte::Undefined) {
            true => Some(Value::Undefined),
            false => Some(Value::Bytes(bytes.to_vec())),
        }
    }

    pub(super) fn store(
        &mut self,
        object: Object,
        offset: i64,
        length: usize,
        value: &Value,
    ) -> Option<()> {
        let bytes: Vec<Byte> = match value {
            Value::Integer(number) => {
                number.to_le_bytes()[..length.min(16)].iter().map(|b| Byte::Number(*b)).collect()
            }
            Value::Pointer(Object::Number, number) => {
                number.to_le_bytes()[..length.min(8)].iter().map(|b| Byte::Number(*b)).collect()
            }
            Value::Pointer(to, at) if length == 8 => {
                (0..8).map(|part| Byte::Part(*to, *at, part)).collect()
            }
            Value::Bytes(bytes) if bytes.len() == length => bytes.clone(),
            _ => vec![Byte::Undefined; length],
        };
        (bytes.len() == length).then_some(())?;
        self.write(object, offset, &bytes)
    }

    /// Removes objects; whatever points to them points to nothing.
    pub(super) fn remove(&mut self, is: &dyn Fn(&Object) -> bool) {
        self.bytes.retain(|object, _| !is(object));
        self.padding.retain(|object, _| !is(object));
        self.locks.retain(|(object, _), _| !is(object));
        for byte in self.bytes.values_mut().flatten() {
            if let Byte::Part(object, offset, _) = byte
                && is(object)
            {
                (*object, *offset) = (Object::Gone, 0);
            }
        }
    }

    /// The first number that no object of `malloc` has.
    pub(super) fn free_heap(&self) -> Object {
        let mut number = 0;
        while self.bytes.contains_key(&Object::Heap(number)) {
            number += 1;
        }
        Object::Heap(number)
    }
}

impl Value {
    /// What points to a removed object points to nothing.
    pub(super) fn remove(&mut self, is: &dyn Fn(&Object) -> bool) {
        match self {
            Value::Pointer(object, offset) if is(object) => {
                (*object, *offset) = (Object::Gone, 0);
            }
            Value::Fields(fields) => fields.iter_mut().for_each(|field| field.remove(is)),
            Value::Bytes(bytes) => {
                for byte in bytes {
                    if let Byte::Part(object, offset, _) = byte
                        && is(object)
                    {
                        (*object, *offset) = (Object::Gone, 0);
                    }
                }
            }
            Value::Pointer(..) | Value::Undefined | Value::Integer(_) => {}
        }
    }
}
