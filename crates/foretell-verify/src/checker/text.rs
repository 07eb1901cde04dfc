//! What the text of a program leaves open: the order of operands, and what output functions are given.
//!
//! Simpler than it could be: where two unsequenced operands may touch the same memory, there is no
//! answer for a program that gets there.

use std::collections::HashSet;

use super::State;
use super::memory::{Byte, Object, Value};
use super::step::{Checker, Result, unknown};
use crate::ir::syntax::Group;
use crate::ir::{Argument, Constant, Function, Instruction, Module, Op, Operand, Place, Type};

/// What an address is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// A variable of the function whose address goes nowhere.
    Own(u32),
    /// Another one of the function.
    Local(u32),
    Global(u32),
    Any,
}

impl Root {
    fn may_be(self, other: Root) -> bool {
        match (self, other) {
            (Root::Own(a), Root::Own(b)) => a == b,
            (Root::Own(_), _) | (_, Root::Own(_)) => false,
            (Root::Any, _) | (_, Root::Any) => true,
            _ => self == other,
        }
    }
}

/// What an instruction does to memory.
#[derive(Default)]
struct Deeds {
    reads: Vec<Root>,
    writes: Vec<Root>,
    /// Calls a function that may read and write what others can name.
    calls: bool,
}

impl Deeds {
    /// Does the order of the two matter?
    fn disturb(&self, other: &Deeds) -> bool {
        let named = |deeds: &Deeds| {
            deeds.reads.iter().chain(&deeds.writes).any(|root| !matches!(root, Root::Own(_)))
        };
        let meets = |a: &Deeds, b: &Deeds| {
            a.writes.iter().any(|a| b.reads.iter().chain(&b.writes).any(|b| a.may_be(*b)))
        };
        self.calls && (other.calls || named(other))
            || other.calls && named(self)
            || meets(self, other)
            || meets(other, self)
    }
}

/// For each function: instructions behind which the order of operands matters; block and place in it.
pub(super) fn unordered(module: &Module) -> Vec<HashSet<(u32, u32)>> {
    // functions that touch more than their own variables
    let mut touches: Vec<bool> =
        module.functions.iter().map(|f| !f.is_defined() && !f.name.starts_with("llvm.")).collect();
    let owned: Vec<HashSet<u32>> = module.functions.iter().map(|f| owned(module, f)).collect();
    loop {
        let mut changed = false;
        for (id, function) in module.functions.iter().enumerate() {
            let does = |instruction: &Instruction| {
                let deeds = deeds(module, function, &owned[id], instruction, &touches);
                let named = |root: &Root| !matches!(root, Root::Own(_));
                deeds.calls || deeds.reads.iter().chain(&deeds.writes).any(named)
            };
            let touched = function.blocks.iter().flat_map(|b| &b.instructions).any(does);
            if touched && !touches[id] {
                touches[id] = true;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let all = module.functions.iter().zip(&owned).enumerate();
    all.map(|(id, (function, owned))| {
        let groups = module.shapes.get(id).map_or(&[][..], |shape| &shape.groups);
        let mut found = HashSet::new();
        for group in groups {
            found.extend(in_group(module, function, owned, group, &touches));
        }
        found
    })
    .collect()
}

fn in_group(
    module: &Module,
    function: &Function,
    owned: &HashSet<u32>,
    group: &Group,
    touches: &[bool],
) -> Vec<(u32, u32)> {
    // where the instruction is, of which operand (none: of the whole), and what it does
    let mut parts: Vec<((u32, u32), Option<usize>, Deeds)> = Vec::new();
    for (block, body) in function.blocks.iter().enumerate() {
        for (at, instruction) in body.instructions.iter().enumerate() {
            let spot = (instruction.place.line, instruction.place.column);
            if spot.1 == 0 || !group.whole.contains(spot) {
                continue;
            }
            let operand = group.operands.iter().position(|range| range.contains(spot));
            let deeds = deeds(module, function, owned, instruction, touches);
            parts.push(((block as u32, at as u32), operand, deeds));
        }
    }
    let mut found = Vec::new();
    for (later, (at, operand, deeds)) in parts.iter().enumerate() {
        let open = parts[..later].iter().any(|(_, other, earlier)| match (operand, other) {
            (Some(a), Some(b)) => a != b && deeds.disturb(earlier),
            // the expression itself writes after the values of its operands, not after their effects; `x += f()`
            // reads x before or after the call
            (None, Some(other)) if group.writes => {
                let meets = |a: &Root| earlier.writes.iter().any(|b| a.may_be(*b));
                deeds.writes.iter().any(meets)
                    || *other > 0 && !deeds.reads.is_empty() && deeds.disturb(earlier)
            }
            _ => false,
        });
        if open {
            found.push(*at);
        }
    }
    found
}

/// Variables of the function whose addresses are only used to access them.
fn owned(module: &Module, function: &Function) -> HashSet<u32> {
    let instructions = || function.blocks.iter().flat_map(|block| &block.instructions);
    let mut owned: HashSet<u32> = instructions()
        .filter(|instruction| matches!(instruction.op, Op::Allocate { .. }))
        .filter_map(|instruction| instruction.result)
        .collect();
    for instruction in instructions() {
        let address = match &instruction.op {
            Op::Load { from, .. } => Some(from),
            Op::Store { to, .. } => Some(to),
            Op::Modify { at, .. } | Op::Exchange { at, .. } => Some(at),
            // whatever is computed from it may go anywhere
            _ => None,
        };
        let is_memory = intrinsic(module, &instruction.op).is_some();
        for operand in instruction.op.operands() {
            let used = address.is_some_and(|address| std::ptr::eq(address, operand));
            if let Operand::Register(register) = operand
                && !used
                && !is_memory
            {
                owned.remove(register);
            }
        }
    }
    owned
}

/// The name of an intrinsic that accesses memory and keeps no address.
fn intrinsic<'m>(module: &'m Module, op: &Op) -> Option<&'m str> {
    let Op::Call { callee: Operand::Constant(Constant::Function(id)), .. } = op else {
        return None;
    };
    let name = &*module.functions[*id as usize].name;
    let starts = ["llvm.lifetime.", "llvm.memset.", "llvm.memcpy.", "llvm.memmove."];
    starts.iter().any(|start| name.starts_with(start)).then_some(name)
}

fn root(function: &Function, owned: &HashSet<u32>, address: &Operand) -> Root {
    let register = match address {
        Operand::Constant(constant) => {
            let mut constant = constant;
            while let Constant::Behind(inner, _) = constant {
                constant = inner;
            }
            return match constant {
                Constant::Global(id) => Root::Global(*id),
                _ => Root::Any,
            };
        }
        Operand::Register(register) => *register,
    };
    if owned.contains(&register) {
        return Root::Own(register);
    }
    let mut all = function.blocks.iter().flat_map(|block| &block.instructions);
    match all.find(|instruction| instruction.result == Some(register)).map(|found| &found.op) {
        Some(Op::Allocate { .. }) => Root::Local(register),
        Some(Op::Address { base, .. }) => root(function, owned, base),
        _ => Root::Any,
    }
}

fn deeds(
    module: &Module,
    function: &Function,
    owned: &HashSet<u32>,
    instruction: &Instruction,
    touches: &[bool],
) -> Deeds {
    let root = |address: &Operand| root(function, owned, address);
    let mut deeds = Deeds::default();
    match &instruction.op {
        Op::Load { from, .. } => deeds.reads.push(root(from)),
        Op::Store { to, .. } => deeds.writes.push(root(to)),
        Op::Modify { at, .. } | Op::Exchange { at, .. } => deeds.writes.push(root(at)),
        Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } => {
            deeds.calls = touches[*id as usize];
            let name = intrinsic(module, &instruction.op).unwrap_or_default();
            if name.starts_with("llvm.mem") {
                deeds.writes.extend(arguments.first().map(|to| root(&to.value)));
            }
            if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
                deeds.reads.extend(arguments.get(1).map(|from| root(&from.value)));
            }
        }
        Op::Call { .. } => deeds.calls = true,
        _ => {}
    }
    deeds
}

impl Checker<'_> {
    /// The characters of a text that ends; its bytes have to be known.
    pub(super) fn text(&self, state: &State, place: Place, value: &Value) -> Result<Vec<u8>> {
        let Value::Pointer(object, mut at) = *value else {
            return unknown(place, "a text that is not known");
        };
        let mut text = Vec::new();
        loop {
            match state.memory.read(object, at, 1) {
                Some([Byte::Number(0)]) => return Ok(text),
                Some([Byte::Number(byte)]) => text.push(*byte),
                _ => return unknown(place, "a text that is not known"),
            }
            at += 1;
        }
    }

    /// Has `printf` the arguments that its format asks for?
    pub(super) fn format(
        &self,
        state: &State,
        place: Place,
        format: &[u8],
        arguments: &[(&Argument, Value)],
    ) -> Result<()> {
        let format = String::from_utf8_lossy(format).into_owned();
        let mut arguments = arguments.iter();
        let mut parts = format.split('%');
        parts.next();
        while let Some(part) = parts.next() {
            // `%%`
            if part.is_empty() {
                parts.next();
                continue;
            }
            let part = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
            let wide = ["ll", "l", "z"].iter().find_map(|start| part.strip_prefix(start));
            let kind = wide.unwrap_or(part).chars().next();
            let fits = match (kind, arguments.next()) {
                (Some('d' | 'i' | 'u' | 'x'), Some((argument, Value::Integer(_)))) => {
                    argument.kind == Type::Integer(if wide.is_some() { 64 } else { 32 })
                }
                (Some('c'), Some((argument, Value::Integer(_)))) if wide.is_none() => {
                    argument.kind == Type::Integer(32)
                }
                (Some('s'), Some((_, value))) if wide.is_none() => {
                    self.text(state, place, value)?;
                    true
                }
                (Some('p'), Some((_, Value::Pointer(object, _)))) => *object != Object::Gone,
                _ => false,
            };
            if !fits {
                return unknown(place, "a format and arguments that are not known to fit");
            }
        }
        Ok(())
    }
}
