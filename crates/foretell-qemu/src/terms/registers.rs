//! The registers of a thread, and its own memory, each with what its content was computed from.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::lift::Operand;
use super::value::{Guards, Node, Value};

/// Registers by their places in SLEIGH's space of registers. Parts of a register are found in it.
#[derive(Default)]
pub struct Registers {
    /// Each begins at this offset; they do not overlap.
    values: Vec<(u64, usize, Value)>,
}

fn bits(size: usize) -> u8 {
    u8::try_from(size * 8).unwrap_or(u8::MAX)
}

impl Registers {
    fn overlapping(&self, operand: &Operand) -> Vec<usize> {
        let (begin, end) = (operand.offset, operand.offset + operand.size as u64);
        let meets = |at: &usize| {
            let (offset, size, _) = self.values[*at];
            offset < end && begin < offset + size as u64
        };
        (0..self.values.len()).filter(meets).collect()
    }

    /// What it holds.
    pub fn read(&self, guards: &mut Guards, operand: &Operand) -> Value {
        let is_it = |(offset, size, _): &&(u64, usize, Value)| {
            (*offset, *size) == (operand.offset, operand.size)
        };
        if let Some((.., value)) = self.values.iter().find(is_it) {
            return value.clone();
        }
        let width = bits(operand.size);
        let found = self.overlapping(operand);
        if let &[at] = &found[..] {
            let (offset, size, value) = &self.values[at];
            let within = *offset <= operand.offset
                && operand.offset + operand.size as u64 <= offset + *size as u64;
            if within && *size <= 8 {
                let low = (operand.offset - offset) as u8 * 8;
                return value.part(guards, low, width);
            }
        }
        let parts: Vec<Option<&Rc<Node>>> =
            found.iter().map(|&at| self.values[at].2.term()).collect();
        Value::opaque(guards, width, None, &parts)
    }

    /// It holds this from now on.
    pub fn write(&mut self, guards: &mut Guards, operand: &Operand, value: Value) {
        let is_it = |(offset, size, _): &&mut (u64, usize, Value)| {
            (*offset, *size) == (operand.offset, operand.size)
        };
        if let Some((.., old)) = self.values.iter_mut().find(is_it) {
            *old = value;
            return;
        }
        let found = self.overlapping(operand);
        if let &[at] = &found[..] {
            let (offset, size, old) = &mut self.values[at];
            let within = *offset <= operand.offset
                && operand.offset + operand.size as u64 <= *offset + *size as u64;
            if within && *size <= 8 {
                let low = (operand.offset - *offset) as u8 * 8;
                *old = old.with_part(guards, low, &value);
                return;
            }
        }
        // What is only written in part depends on both.
        let end = operand.offset + operand.size as u64;
        for at in found.into_iter().rev() {
            let (offset, size, old) = self.values.swap_remove(at);
            if offset < operand.offset || end < offset + size as u64 {
                guards.hold(&old);
            }
        }
        self.values.push((operand.offset, operand.size, value));
    }

    /// All that may hold something else than they do, with their places.
    pub fn free(&self) -> impl Iterator<Item = (u64, &Value)> {
        let free = self.values.iter().filter(|(.., value)| value.term().is_some());
        free.map(|(offset, _, value)| (*offset, value))
    }

    /// Nothing is known of any but these.
    pub fn keep(&mut self, keeps: impl Fn(u64) -> bool) {
        self.values.retain(|(offset, ..)| keeps(*offset));
    }
}

/// What was written to memory that nobody else knows, byte by byte: of what it is which byte, and its value.
#[derive(Default)]
pub struct OwnMemory {
    bytes: FxHashMap<u64, (Rc<Node>, u8, u8)>,
}

impl OwnMemory {
    /// The program writes there.
    pub fn store(&mut self, address: u64, size: u8, value: Option<&Value>, bits: u64) {
        let node = value.and_then(Value::term);
        for (number, byte) in (0..size).zip(bits.to_le_bytes()) {
            let at = address.wrapping_add(number.into());
            match node {
                Some(node) => self.bytes.insert(at, (Rc::clone(node), number, byte)),
                None => self.bytes.remove(&at),
            };
        }
    }

    /// The program reads there, and finds this. What others have changed meanwhile is a constant.
    pub fn load(&mut self, guards: &mut Guards, address: u64, size: u8, bits: u64) -> Value {
        let width = size * 8;
        if self.bytes.is_empty() {
            return Value::constant(width, bits);
        }
        let mut nodes: Vec<Option<(Rc<Node>, u8)>> = Vec::new();
        for (number, found) in (0..size).zip(bits.to_le_bytes()) {
            let at = address.wrapping_add(number.into());
            let known = self.bytes.get(&at).filter(|(node, ..)| node.is_free()).cloned();
            if known.as_ref().is_some_and(|&(_, _, byte)| byte != found) {
                self.bytes.remove(&at);
            }
            let known = known.filter(|&(_, _, byte)| byte == found);
            nodes.push(known.map(|(node, number, _)| (node, number)));
        }
        let Some(Some((first, begin))) = nodes.first().cloned() else {
            return self.mixed(guards, width, bits, &nodes);
        };
        let whole = nodes.iter().zip(begin..).all(|(byte, number)| {
            byte.as_ref().is_some_and(|(node, at)| Rc::ptr_eq(node, &first) && *at == number)
        });
        let value = Value::of_node(&first);
        match whole && value.bits.is_some() && begin * 8 + width <= value.width {
            true => value.part(guards, begin * 8, width),
            false => self.mixed(guards, width, bits, &nodes),
        }
    }

    fn mixed(
        &self,
        guards: &mut Guards,
        width: u8,
        bits: u64,
        nodes: &[Option<(Rc<Node>, u8)>],
    ) -> Value {
        let parts: Vec<Option<&Rc<Node>>> =
            nodes.iter().map(|byte| byte.as_ref().map(|(node, _)| node)).collect();
        Value::opaque(guards, width, Some(bits), &parts)
    }

    /// Who does not tell what it does comes to this memory: it has to hold what it does.
    pub fn hold(&mut self, guards: &mut Guards, range: std::ops::Range<u64>) {
        let mut held: Vec<u64> =
            self.bytes.keys().copied().filter(|address| range.contains(address)).collect();
        held.sort_unstable();
        for address in held {
            if let Some((node, ..)) = self.bytes.remove(&address) {
                guards.hold(&Value::of_node(&node));
            }
        }
    }

    /// What lies below the stack pointer is gone.
    pub fn forget_below(&mut self, address: u64) {
        self.bytes.retain(|&at, _| at >= address);
    }
}
