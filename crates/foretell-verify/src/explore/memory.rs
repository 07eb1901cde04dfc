//! Memory: objects of bytes, and pointers that know which object they point into.
//!
//! A byte is a number, a part of a pointer or of a value that depends on inputs, or undefined.
//! Addresses are not numbers: a computation that would depend on where an object lies is refused.
//! Undefined bytes can be copied, and are refused when something depends on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::terms::Symbol;
use crate::ir::{FunctionId, Padding, Register, TagId};

/// What a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// Nothing: a number as a pointer, null among them.
    Number,
    /// A global.
    Global(u32),
    /// Memory of `malloc`.
    Heap(u32),
    /// A local of a running function.
    Local {
        /// Whose stack.
        thread: u8,
        /// Which call, from the outermost.
        frame: u16,
        /// Which local.
        local: u16,
    },
    /// A function.
    Function(FunctionId),
    /// No address: a handle of a thread.
    Thread(u8),
    /// Memory, or a thread, that is no more.
    Ended,
}

/// A pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    /// What it points into.
    pub base: Base,
    /// Bytes from the beginning.
    pub offset: i64,
}

impl Pointer {
    /// The null pointer.
    pub const NULL: Pointer = Pointer { base: Base::Number, offset: 0 };

    /// To the beginning of something.
    pub fn to(base: Base) -> Self {
        Self { base, offset: 0 }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// An integer, as bits.
    Integer(u128),
    /// A pointer; in an integer type only if it is no number.
    Pointer(Pointer),
    /// An integer that depends on inputs.
    Symbol(Symbol),
    /// No value.
    Undefined,
    /// Bytes of which some are undefined or parts of pointers; they can only be copied.
    Bytes(Arc<Object>),
    /// Fields.
    Aggregate(Arc<[Value]>),
}

/// What the threads library keeps in a part of an object, while it is in use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// A mutex or spin lock that is held.
    Held {
        /// By whom.
        owner: u8,
        /// How often.
        count: u32,
    },
    /// A lock that is held by readers, each as often as it occurs.
    Read(Vec<u8>),
    /// A spin lock that was initialised and is free.
    Free,
    /// A semaphore.
    Semaphore(u32),
    /// A barrier.
    Barrier {
        /// Threads that it waits for.
        count: u32,
    },
}

/// A piece of memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Numbers, where they are defined.
    bytes: Vec<u8>,
    /// For each byte: [`UNDEFINED`], [`NUMBER`], or the part of a pointer or of a symbol from
    /// [`FRAGMENT`] on.
    states: Vec<u8>,
    /// Whole pointers by their first byte.
    pointers: BTreeMap<u32, Pointer>,
    /// Whole symbols by their first byte, with their length.
    symbols: BTreeMap<u32, (u32, Symbol)>,
    /// What the threads library keeps here: offset, length, content.
    sync: BTreeMap<u32, (u32, Sync)>,
    /// Cannot be written.
    pub constant: bool,
    /// A local that no other thread can ever reach.
    pub private: bool,
    /// A local outside the block that declares it.
    pub dead: bool,
    /// The local's name.
    pub name: Option<(FunctionId, Register)>,
    /// Its address is a multiple of this.
    pub align: u32,
    /// It is declared with a type without unions.
    pub plain: bool,
    /// A `const` variable: bytes that have a value are not written again.
    pub once: bool,
    /// If it is not plain: by which type bytes were written last; first byte, length, type.
    effective: BTreeMap<u32, (u32, TagId)>,
    /// What of it has no value, whatever is written there.
    pub padding: Option<Arc<Padding>>,
}

/// Addresses that `malloc` gives are multiples of this.
pub const MALLOC_ALIGN: u32 = 16;

const UNDEFINED: u8 = 0;
const NUMBER: u8 = 1;
const FRAGMENT: u8 = 2;

/// Bytes of the longest integer, but one.
const SYMBOL_BYTES: u32 = 15;

impl Object {
    /// Undefined memory.
    pub fn undefined(size: usize) -> Self {
        Self {
            bytes: vec![0; size],
            states: vec![UNDEFINED; size],
            pointers: BTreeMap::new(),
            symbols: BTreeMap::new(),
            sync: BTreeMap::new(),
            constant: false,
            private: false,
            dead: false,
            name: None,
            align: MALLOC_ALIGN,
            plain: false,
            once: false,
            effective: BTreeMap::new(),
            padding: None,
        }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Are these bytes in it?
    pub fn contains(&self, offset: i64, length: usize) -> bool {
        offset >= 0 && (offset as usize).checked_add(length).is_some_and(|end| end <= self.size())
    }

    /// The types by which these bytes were written last.
    pub fn effective(&self, offset: usize, length: usize) -> impl Iterator<Item = TagId> + '_ {
        let end = (offset + length) as u32;
        let entries = self.effective.range(..end);
        let overlaps = move |(at, (kept, _)): &(&u32, &(u32, TagId))| *at + kept > offset as u32;
        entries.filter(overlaps).map(|(_, &(_, tag))| tag)
    }

    /// These bytes were written by the type.
    pub fn set_effective(&mut self, offset: usize, length: usize, tag: TagId) {
        let (start, end) = (offset as u32, (offset + length) as u32);
        self.effective.retain(|&at, &mut (kept, _)| at >= end || at + kept <= start);
        self.effective.insert(start, (length as u32, tag));
    }

    /// Has one of these bytes a value?
    pub fn is_defined(&self, offset: usize, length: usize) -> bool {
        self.states[offset..offset + length].iter().any(|&state| state != UNDEFINED)
    }

    /// What the threads library keeps at the offset.
    pub fn sync(&self, offset: usize) -> Option<&Sync> {
        self.sync.get(&(offset as u32)).map(|(_, sync)| sync)
    }

    /// Keeps something of the threads library in these bytes, or nothing any more.
    pub fn set_sync(&mut self, offset: usize, length: usize, sync: Option<Sync>) {
        match sync {
            Some(sync) => self.sync.insert(offset as u32, (length as u32, sync)),
            None => self.sync.remove(&(offset as u32)),
        };
    }

    /// Does the threads library use some of these bytes? Then nobody else may touch them.
    pub fn is_sync(&self, offset: usize, length: usize) -> bool {
        let end = offset + length;
        self.sync
            .iter()
            .any(|(&at, (kept, _))| (at as usize) < end && at as usize + *kept as usize > offset)
    }

    /// Reads; the caller has checked the bounds.
    pub fn load(&self, offset: usize, length: usize, pointer: bool) -> Value {
        let states = &self.states[offset..offset + length];
        if states.iter().all(|&state| state == NUMBER) && length <= 16 {
            let bytes = self.bytes[offset..offset + length].iter().rev();
            let number = bytes.fold(0, |number, &byte| number << 8 | u128::from(byte));
            return match pointer {
                true => Value::Pointer(Pointer { base: Base::Number, offset: number as i64 }),
                false => Value::Integer(number),
            };
        }
        if length == 8
            && states[0] == FRAGMENT
            && let Some(pointer) = self.pointers.get(&(offset as u32))
        {
            return Value::Pointer(*pointer);
        }
        if let Some((kept, symbol)) = self.symbols.get(&(offset as u32))
            && *kept as usize == length
        {
            return Value::Symbol(*symbol);
        }
        match states.iter().all(|&state| state == UNDEFINED) {
            true => Value::Undefined,
            false => Value::Bytes(Arc::new(self.slice(offset, length))),
        }
    }

    /// Writes; the caller has checked the bounds.
    pub fn store(&mut self, offset: usize, length: usize, value: &Value) {
        match value {
            Value::Integer(number) => {
                self.clear(offset, length);
                for (at, byte) in number.to_le_bytes().iter().take(length).enumerate() {
                    self.bytes[offset + at] = *byte;
                    self.states[offset + at] = NUMBER;
                }
                self.blank(offset, length);
            }
            Value::Pointer(Pointer { base: Base::Number, offset: number }) => {
                self.store(offset, length, &Value::Integer(*number as u64 as u128));
            }
            Value::Pointer(pointer) => {
                self.clear(offset, length);
                if length == 8 {
                    self.pointers.insert(offset as u32, *pointer);
                    for part in 0..8 {
                        self.states[offset + part] = FRAGMENT + part as u8;
                    }
                }
            }
            Value::Symbol(symbol) => {
                self.clear(offset, length);
                self.symbols.insert(offset as u32, (length as u32, *symbol));
                for part in 0..length {
                    self.states[offset + part] = FRAGMENT + part as u8;
                }
            }
            Value::Bytes(bytes) if bytes.size() == length => self.paste(offset, bytes),
            Value::Bytes(_) | Value::Undefined | Value::Aggregate(_) => self.clear(offset, length),
        }
    }

    /// Makes bytes undefined, and with them the rest of pointers and symbols that are cut.
    pub fn clear(&mut self, offset: usize, length: usize) {
        let cut: Vec<u32> = self
            .pointers
            .range((offset as u32).saturating_sub(7)..(offset + length) as u32)
            .map(|(&at, _)| at)
            .collect();
        for at in cut {
            self.pointers.remove(&at);
            let range = at as usize..at as usize + 8;
            self.states[range].fill(UNDEFINED);
        }
        let cut: Vec<(u32, u32)> = self
            .symbols
            .range((offset as u32).saturating_sub(SYMBOL_BYTES)..(offset + length) as u32)
            .map(|(&at, &(kept, _))| (at, at + kept))
            .filter(|&(_, end)| end as usize > offset)
            .collect();
        for (at, end) in cut {
            self.symbols.remove(&at);
            self.states[at as usize..end as usize].fill(UNDEFINED);
        }
        self.bytes[offset..offset + length].fill(0);
        self.states[offset..offset + length].fill(UNDEFINED);
        let end = (offset + length) as u32;
        self.effective.retain(|&at, &mut (kept, _)| at < offset as u32 || at + kept > end);
    }

    /// A copy of some bytes; pointers and symbols that are cut are undefined in it.
    pub fn slice(&self, offset: usize, length: usize) -> Object {
        let mut slice = Object::undefined(length);
        slice.bytes.copy_from_slice(&self.bytes[offset..offset + length]);
        slice.states.copy_from_slice(&self.states[offset..offset + length]);
        for state in slice.states.iter_mut() {
            if *state >= FRAGMENT {
                *state = UNDEFINED;
            }
        }
        for (&at, &pointer) in self.pointers.range(offset as u32..(offset + length) as u32) {
            let at = at as usize - offset;
            if at + 8 <= length {
                slice.store(at, 8, &Value::Pointer(pointer));
            }
        }
        for (&at, &(kept, symbol)) in self.symbols.range(offset as u32..(offset + length) as u32) {
            let at = at as usize - offset;
            if at + kept as usize <= length {
                slice.store(at, kept as usize, &Value::Symbol(symbol));
            }
        }
        for (&at, &(kept, tag)) in self.effective.range(offset as u32..(offset + length) as u32) {
            if (at + kept) as usize <= offset + length {
                slice.effective.insert(at - offset as u32, (kept, tag));
            }
        }
        slice.padding = self.padding.as_ref().map(|padding| {
            let part = |all: &[u32]| {
                let inside = all.iter().filter_map(|at| at.checked_sub(offset as u32));
                inside.filter(|at| (*at as usize) < length).collect()
            };
            Arc::new(Padding { whole: part(&padding.whole), partial: part(&padding.partial) })
        });
        slice
    }

    /// Writes a copy of other bytes.
    pub fn paste(&mut self, offset: usize, other: &Object) {
        self.clear(offset, other.size());
        self.bytes[offset..offset + other.size()].copy_from_slice(&other.bytes);
        self.states[offset..offset + other.size()].copy_from_slice(&other.states);
        for (&at, &pointer) in &other.pointers {
            self.pointers.insert(at + offset as u32, pointer);
        }
        for (&at, &symbol) in &other.symbols {
            self.symbols.insert(at + offset as u32, symbol);
        }
        if !self.plain {
            for (&at, &(kept, tag)) in &other.effective {
                self.set_effective(offset + at as usize, kept as usize, tag);
            }
        } else if let Some(padding) = &other.padding {
            // bits without a value keep none when they are copied to where all bits have one
            for &at in &padding.partial {
                if !self.is_partial(offset + at as usize, 1) {
                    self.forget_byte(offset + at as usize);
                }
            }
        }
        self.blank(offset, other.size());
    }

    /// Has one of these bytes bits without a value?
    pub fn is_partial(&self, offset: usize, length: usize) -> bool {
        let range = offset as u32..(offset + length) as u32;
        self.padding.as_ref().is_some_and(|p| p.partial.iter().any(|at| range.contains(at)))
    }

    /// A number becomes undefined.
    pub fn forget_byte(&mut self, offset: usize) {
        if self.states.get(offset) == Some(&NUMBER) {
            (self.bytes[offset], self.states[offset]) = (0, UNDEFINED);
        }
    }

    /// What has no value gets none by being written.
    fn blank(&mut self, offset: usize, length: usize) {
        let Some(padding) = self.padding.clone() else { return };
        let range = offset as u32..(offset + length) as u32;
        for &at in padding.whole.iter().filter(|at| range.contains(at)) {
            self.forget_byte(at as usize);
        }
    }

    /// A byte that is looked at by itself.
    pub fn load_byte(&self, offset: usize) -> Value {
        match self.is_partial(offset, 1) {
            true => Value::Undefined,
            false => self.load(offset, 1, false),
        }
    }

    /// Makes all bytes one number.
    pub fn fill(&mut self, offset: usize, length: usize, byte: u8) {
        self.clear(offset, length);
        self.bytes[offset..offset + length].fill(byte);
        self.states[offset..offset + length].fill(NUMBER);
        self.blank(offset, length);
    }

    /// The pointers in it.
    pub fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        self.pointers.values()
    }

    /// The pointers in it, to change them.
    pub fn pointers_mut(&mut self) -> impl Iterator<Item = &mut Pointer> {
        self.pointers.values_mut()
    }

    /// The symbols in it.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.symbols.values().map(|&(_, symbol)| symbol)
    }

    /// The symbols in it, to change them.
    pub fn symbols_mut(&mut self) -> impl Iterator<Item = &mut Symbol> {
        self.symbols.values_mut().map(|(_, symbol)| symbol)
    }

    /// Does the thread hold a lock here?
    pub fn is_held_by(&self, thread: u8) -> bool {
        self.sync.values().any(|(_, sync)| match sync {
            Sync::Held { owner, .. } => *owner == thread,
            Sync::Read(readers) => readers.contains(&thread),
            Sync::Free | Sync::Semaphore(_) | Sync::Barrier { .. } => false,
        })
    }

    /// Is a lock in it held?
    pub fn has_locked(&self) -> bool {
        self.sync.values().any(|(_, sync)| matches!(sync, Sync::Held { .. } | Sync::Read(_)))
    }

    /// Is anything of the threads library in it?
    pub fn has_sync(&self) -> bool {
        !self.sync.is_empty()
    }
}

impl Value {
    /// Does it hold a pointer for which this is true?
    pub fn any_pointer(&self, is: &mut dyn FnMut(&Pointer) -> bool) -> bool {
        match self {
            Value::Pointer(pointer) => is(pointer),
            Value::Bytes(bytes) => bytes.pointers().any(is),
            Value::Aggregate(fields) => fields.iter().any(|field| field.any_pointer(is)),
            Value::Integer(_) | Value::Symbol(_) | Value::Undefined => false,
        }
    }

    /// Changes every pointer in it.
    pub fn change_pointers(&mut self, change: &mut dyn FnMut(&mut Pointer)) {
        match self {
            Value::Pointer(pointer) => change(pointer),
            Value::Bytes(bytes) => Arc::make_mut(bytes).pointers_mut().for_each(change),
            Value::Aggregate(fields) => {
                *fields = fields
                    .iter()
                    .map(|field| {
                        let mut field = field.clone();
                        field.change_pointers(change);
                        field
                    })
                    .collect();
            }
            Value::Integer(_) | Value::Symbol(_) | Value::Undefined => {}
        }
    }

    /// Looks at every symbol in it.
    pub fn visit_symbols(&self, visit: &mut dyn FnMut(Symbol)) {
        match self {
            Value::Symbol(symbol) => visit(*symbol),
            Value::Bytes(bytes) => bytes.symbols().for_each(visit),
            Value::Aggregate(fields) => fields.iter().for_each(|field| field.visit_symbols(visit)),
            Value::Integer(_) | Value::Pointer(_) | Value::Undefined => {}
        }
    }

    /// Changes every symbol in it.
    pub fn change_symbols(&mut self, change: &mut dyn FnMut(&mut Symbol)) {
        match self {
            Value::Symbol(symbol) => change(symbol),
            Value::Bytes(bytes) => Arc::make_mut(bytes).symbols_mut().for_each(change),
            Value::Aggregate(fields) => {
                *fields = fields
                    .iter()
                    .map(|field| {
                        let mut field = field.clone();
                        field.change_symbols(change);
                        field
                    })
                    .collect();
            }
            Value::Integer(_) | Value::Pointer(_) | Value::Undefined => {}
        }
    }
}
