//! Values with what they were computed from.
//!
//! A node is an expression over what reads of its thread returned. Only what an event needs is told to the
//! recorder: most flags that an instruction computes, nobody looks at. What cannot be expressed is an
//! *opaque* node: it only knows what it depends on, and whoever needs it holds all of that at what it was.

use std::cell::Cell;
use std::rc::Rc;

use foretell_abi::{BinaryOp, CastOp};
use foretell_wire::limits::{DEEPEST_EXPRESSION, MOST_PARTS};
use foretell_wire::record::{DefineBinary, DefineCast, DefineSelect, Record};
use foretell_wire::{Kind, TERM_SHADOW, WIDE_OPERAND};

use crate::ring::head;
use crate::scheduler::scheduler;

/// An expression, or what a value depends on.
pub struct Node {
    kind: Kinds,
    /// In bits; 1 for what compares.
    width: u8,
    /// What it was; of an opaque node, if that is known.
    bits: Option<u64>,
    depth: u32,
    /// Something has made sure that it is what it was: from then on it is a constant.
    held: Cell<bool>,
    /// The recorder's name for it; 0 for none so far.
    shadow: Cell<u32>,
}

enum Kinds {
    /// What the event of this thread with this index has read.
    Read,
    /// As the recorder has been told.
    Told,
    Binary(BinaryOp, Value, Value),
    Cast(CastOp, Value),
    Opaque(Vec<Rc<Node>>),
}

impl Node {
    /// Whether it may still be another value.
    pub fn is_free(&self) -> bool {
        !self.held.get()
    }

    fn is_opaque(&self) -> bool {
        matches!(self.kind, Kinds::Opaque(_))
    }
}

/// What something holds: its width in bits, what it is where that is known, and what it was computed from.
#[derive(Clone)]
pub struct Value {
    pub width: u8,
    pub bits: Option<u64>,
    term: Option<Rc<Node>>,
}

fn masked(bits: u64, width: u8) -> u64 {
    if width >= 64 { bits } else { bits & ((1 << width) - 1) }
}

fn signed(bits: u64, width: u8) -> i64 {
    let unused = 64 - u32::from(width);
    ((bits << unused) as i64) >> unused
}

impl Value {
    /// A constant.
    pub fn constant(width: u8, bits: u64) -> Value {
        Value { width, bits: Some(masked(bits, width)), term: None }
    }

    /// What nothing is known of, but that it does not depend on any read that is not held.
    pub fn unknown(width: u8) -> Value {
        Value { width, bits: None, term: None }
    }

    /// What the event of the running thread with this index has read.
    pub fn of_read(index: u32, width: u8, bits: u64) -> Value {
        if index >= TERM_SHADOW - 1 {
            return Value::constant(width, bits);
        }
        let node = Node {
            kind: Kinds::Read,
            width,
            bits: Some(masked(bits, width)),
            depth: 0,
            held: Cell::new(false),
            shadow: Cell::new(index + 1),
        };
        Value { width, bits: node.bits, term: Some(Rc::new(node)) }
    }

    /// What it was computed from, as long as that may be something else.
    pub fn term(&self) -> Option<&Rc<Node>> {
        self.term.as_ref().filter(|node| node.is_free())
    }

    fn is_free(&self) -> bool {
        self.term().is_some()
    }

    fn depth(&self) -> u32 {
        self.term().map_or(0, |node| node.depth)
    }

    /// The node as a value.
    pub fn of_node(node: &Rc<Node>) -> Value {
        Value { width: node.width, bits: node.bits, term: Some(Rc::clone(node)) }
    }

    fn new(guards: &mut Guards, kind: Kinds, width: u8, bits: u64, depth: u32) -> Value {
        let node = Rc::new(Node {
            kind,
            width,
            bits: Some(bits),
            depth,
            held: Cell::new(false),
            shadow: Cell::new(0),
        });
        if depth < DEEPEST_EXPRESSION {
            return Value { width, bits: Some(bits), term: Some(node) };
        }
        let shadow = guards.shadow(&node);
        if shadow == 0 {
            return Value::constant(width, bits);
        }
        let told = Node {
            kind: Kinds::Told,
            width,
            bits: Some(bits),
            depth: 0,
            held: Cell::new(false),
            shadow: Cell::new(shadow),
        };
        Value { width, bits: Some(bits), term: Some(Rc::new(told)) }
    }

    /// What depends on these in a way that is not followed.
    pub fn opaque(
        guards: &mut Guards,
        width: u8,
        bits: Option<u64>,
        parts: &[Option<&Rc<Node>>],
    ) -> Value {
        let mut all: Vec<Rc<Node>> = Vec::new();
        let mut add = |node: &Rc<Node>| {
            if node.is_free() && !all.iter().any(|other| Rc::ptr_eq(other, node)) {
                all.push(Rc::clone(node));
            }
        };
        for part in parts.iter().flatten() {
            match &part.kind {
                Kinds::Opaque(parts) if part.is_free() => parts.iter().for_each(&mut add),
                _ => add(part),
            }
        }
        if all.len() > MOST_PARTS {
            guards.nodes.append(&mut all);
        }
        if all.is_empty() {
            return Value { width, bits, term: None };
        }
        let node = Node {
            kind: Kinds::Opaque(all),
            width,
            bits,
            depth: 0,
            held: Cell::new(false),
            shadow: Cell::new(0),
        };
        Value { width, bits, term: Some(Rc::new(node)) }
    }

    /// Both have the same width. What compares has one bit.
    pub fn binary(guards: &mut Guards, op: BinaryOp, left: &Value, right: &Value) -> Value {
        let width = left.width;
        let result = if op.is_comparison() { 1 } else { width };
        let bits = left.bits.zip(right.bits).and_then(|(l, r)| evaluated(op, width, l, r));
        let (l, r) = (left.term(), right.term());
        let Some(bits) = bits.filter(|_| l.is_some() || r.is_some()) else {
            return Value::opaque(guards, result, bits, &[l, r]);
        };
        use BinaryOp as B;
        let same = l.zip(r).is_some_and(|(l, r)| Rc::ptr_eq(l, r));
        match op {
            B::Xor | B::Sub if same => return Value::constant(result, 0),
            B::And | B::Or if same => return left.clone(),
            B::Add | B::Xor | B::Or if l.is_none() && left.bits == Some(0) => return right.clone(),
            B::Add | B::Sub | B::Xor | B::Or | B::Shl | B::LShr | B::AShr
                if r.is_none() && right.bits == Some(0) =>
            {
                return left.clone();
            }
            B::And if r.is_none() && right.bits == Some(masked(u64::MAX, width)) => {
                return left.clone();
            }
            B::And | B::Mul if r.is_none() && right.bits == Some(0) => {
                return Value::constant(result, 0);
            }
            // Where the divisor is 0, processors and formulas differ.
            B::UDiv | B::SDiv | B::URem | B::SRem if r.is_some() => {
                return Value::opaque(guards, result, Some(bits), &[l, r]);
            }
            _ => {}
        }
        let depth = left.depth().max(right.depth()) + 1;
        Value::new(guards, Kinds::Binary(op, left.clone(), right.clone()), result, bits, depth)
    }

    /// In another width.
    pub fn cast(&self, guards: &mut Guards, op: CastOp, width: u8) -> Value {
        if width == self.width {
            return self.clone();
        }
        let bits = self.bits.map(|bits| match op {
            CastOp::SignExtend => masked(signed(bits, self.width) as u64, width),
            _ => masked(bits, width),
        });
        let term = self.term();
        let Some(bits) = bits.filter(|_| term.is_some()) else {
            return Value::opaque(guards, width, bits, &[term]);
        };
        // The low part of what was extended is that of what it was before.
        if op == CastOp::Truncate
            && let Some(Kinds::Cast(before, inner)) = term.map(|node| &node.kind)
            && inner.is_free()
        {
            match () {
                () if width <= inner.width => return inner.cast(guards, CastOp::Truncate, width),
                () if *before != CastOp::Truncate => return inner.cast(guards, *before, width),
                () => {}
            }
        }
        Value::new(guards, Kinds::Cast(op, self.clone()), width, bits, self.depth() + 1)
    }

    /// The bits from `low` on.
    pub fn part(&self, guards: &mut Guards, low: u8, width: u8) -> Value {
        if low == 0 {
            return self.cast(guards, CastOp::Truncate, width);
        }
        let by = Value::constant(self.width, low.into());
        let shifted = Value::binary(guards, BinaryOp::LShr, self, &by);
        shifted.cast(guards, CastOp::Truncate, width)
    }

    /// With other bits from `low` on.
    pub fn with_part(&self, guards: &mut Guards, low: u8, part: &Value) -> Value {
        let hole = masked(u64::MAX, part.width) << low;
        let rest = Value::constant(self.width, !hole);
        let rest = Value::binary(guards, BinaryOp::And, self, &rest);
        let wide = part.cast(guards, CastOp::ZeroExtend, self.width);
        let by = Value::constant(self.width, low.into());
        let wide = Value::binary(guards, BinaryOp::Shl, &wide, &by);
        Value::binary(guards, BinaryOp::Or, &rest, &wide)
    }
}

/// As the processor has it; `None` for a division by zero.
fn evaluated(op: BinaryOp, width: u8, l: u64, r: u64) -> Option<u64> {
    use BinaryOp as B;
    let (sl, sr) = (signed(l, width), signed(r, width));
    let by = u32::try_from(r).ok().filter(|&by| by < u32::from(width));
    let bits = match op {
        B::Add => l.wrapping_add(r),
        B::Sub => l.wrapping_sub(r),
        B::Mul => l.wrapping_mul(r),
        B::UDiv => l.checked_div(r)?,
        B::SDiv => sl.checked_div(sr)? as u64,
        B::URem => l.checked_rem(r)?,
        B::SRem => sl.checked_rem(sr)? as u64,
        B::And => l & r,
        B::Or => l | r,
        B::Xor => l ^ r,
        B::Shl => by.map_or(0, |by| l << by),
        B::LShr => by.map_or(0, |by| l >> by),
        B::AShr => (sl >> by.unwrap_or(u32::from(width) - 1)) as u64,
        B::Eq => (l == r).into(),
        B::Ne => (l != r).into(),
        B::Ult => (l < r).into(),
        B::Ule => (l <= r).into(),
        B::Ugt => (l > r).into(),
        B::Uge => (l >= r).into(),
        B::Slt => (sl < sr).into(),
        B::Sle => (sl <= sr).into(),
        B::Sgt => (sl > sr).into(),
        B::Sge => (sl >= sr).into(),
    };
    Some(masked(bits, if op.is_comparison() { 1 } else { width }))
}

/// What the next event of the thread has to make sure of: that these are what they were.
#[derive(Default)]
pub struct Guards {
    nodes: Vec<Rc<Node>>,
}

impl Guards {
    /// The value has to be what it was.
    pub fn hold(&mut self, value: &Value) {
        self.nodes.extend(value.term().cloned());
    }

    /// What has to be held next, if anything; it counts as held. Its name, its width and what it was.
    pub fn next(&mut self) -> Option<(u32, u8, u64)> {
        while let Some(node) = self.nodes.pop() {
            let shadow = self.shadow(&node);
            node.held.set(true);
            if let Some(bits) = node.bits.filter(|_| shadow != 0) {
                return Some((shadow, node.width, bits));
            }
        }
        None
    }

    /// The recorder's name for the node; 0 for one that is a constant, once what is held then is.
    pub fn shadow(&mut self, node: &Rc<Node>) -> u32 {
        if !node.is_free() || node.shadow.get() != 0 {
            return if node.is_free() { node.shadow.get() } else { 0 };
        }
        let shadow = match &node.kind {
            Kinds::Read | Kinds::Told => node.shadow.get(),
            Kinds::Opaque(parts) => {
                self.nodes.extend(parts.iter().cloned());
                0
            }
            Kinds::Binary(op, left, right) => {
                let (l, r) = (self.of_value(left), self.of_value(right));
                let constant = if l == 0 { left.bits } else { right.bits };
                binary(*op, left.width, l, r, constant.unwrap_or(0))
            }
            Kinds::Cast(op, inner) => {
                let shadow = self.of_value(inner);
                cast(*op, inner.width, node.width, shadow)
            }
        };
        match shadow {
            0 => node.held.set(true),
            _ => node.shadow.set(shadow),
        }
        shadow
    }

    fn of_value(&mut self, value: &Value) -> u32 {
        value.term().cloned().map_or(0, |node| self.shadow(&node))
    }

    /// The name of the address of an access that is made only if everything is what it was; 0 where
    /// nothing has to be.
    pub fn address(&mut self, value: Option<&Value>, address: u64) -> u32 {
        let mut wide = 0;
        if let Some(node) = value.and_then(Value::term).cloned() {
            let shadow = self.shadow(&node);
            wide = cast(CastOp::ZeroExtend, node.width, 64, shadow);
            // The event itself holds it from now on.
            if !node.is_opaque() {
                node.held.set(true);
            }
        }
        let mut all = 0;
        while let Some((shadow, width, bits)) = self.next() {
            let holds = binary(BinaryOp::Eq, width, shadow, 0, bits);
            all = if all == 0 { holds } else { binary(BinaryOp::And, 1, all, holds, 0) };
        }
        if all == 0 {
            return wide;
        }
        // Elsewhere is any other address.
        let shadow = next_term();
        if shadow != 0 {
            let record = DefineSelect {
                condition: all,
                then: wide,
                otherwise: 0,
                condition_value: 0,
                then_value: address,
                otherwise_value: address ^ (1 << 20),
            };
            scheduler().ring.record(0, 64, &record);
        }
        shadow
    }

    /// The name of what is written; 0 for a constant.
    pub fn written(&mut self, value: Option<&Value>) -> u32 {
        value.map_or(0, |value| self.of_value(value))
    }

    /// The name of whether a byte is not zero, one bit; 0 for a constant.
    pub fn condition(&mut self, value: &Value) -> u32 {
        let zero = Value::constant(value.width, 0);
        let condition = Value::binary(self, BinaryOp::Ne, value, &zero);
        self.of_value(&condition)
    }
}

/// The name of what an event of the running thread leaves that reads and writes in one step: what it wrote if it
/// reads what it did, else what it reads.
pub fn unchanged_unless(index: u32, width: u8, old: u64, new: u64) -> u32 {
    if index >= TERM_SHADOW - 1 {
        return 0;
    }
    let read = index + 1;
    let same = binary(BinaryOp::Eq, width, read, 0, old);
    let shadow = next_term();
    if shadow != 0 {
        let record = DefineSelect {
            condition: same,
            then: 0,
            otherwise: read,
            condition_value: 0,
            then_value: new,
            otherwise_value: 0,
        };
        scheduler().ring.record(0, width.into(), &record);
    }
    shadow
}

/// The name of the term that is defined next; 0 if there are no more names.
fn next_term() -> u32 {
    let terms = &mut scheduler().terms;
    if *terms >= TERM_SHADOW - 1 {
        return 0;
    }
    *terms += 1;
    TERM_SHADOW | (*terms - 1)
}

/// Tells the recorder of an expression. An operand without a name is the constant.
fn binary(op: BinaryOp, width: u8, left: u32, right: u32, constant: u64) -> u32 {
    if left | right == 0 {
        return 0;
    }
    let shadow = next_term();
    if shadow != 0 {
        let mut record = DefineBinary { left, right, value: None };
        let ring = &mut scheduler().ring;
        let width = u64::from(width);
        match constant >> 32 {
            0 => ring.record(op as u8, width | constant << 8, &record),
            _ => {
                record.value = Some(constant);
                let [operands] = record.words();
                let head = head(Kind::DefineBinary, op as u8 | WIDE_OPERAND, width);
                ring.put(&[head, operands, constant]);
            }
        }
    }
    shadow
}

/// As [`binary`], for another width.
fn cast(op: CastOp, from: u8, to: u8, operand: u32) -> u32 {
    if operand == 0 || from == to {
        return operand;
    }
    let shadow = next_term();
    if shadow != 0 {
        let widths = u64::from(from) | u64::from(to) << 8;
        scheduler().ring.record(op as u8, widths, &DefineCast { shadow: operand });
    }
    shadow
}
