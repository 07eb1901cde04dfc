//! The expressions of a trace that is being made, from the runtime's shadows. A 1-bit value is a Boolean, everything else a
//! bit-vector.

use foretell_abi::{BinaryOp, CastOp};
use foretell_trace::{Operator, Sort, TermId, ThreadId, Value};
use foretell_wire::TERM_SHADOW;
use foretell_wire::record::{DefineAddress, DefineBinary, DefineCast, DefineSelect};

use crate::output::Output;

/// Terms that are known again, and reads of a thread whose terms are. A term that fell out is
/// written again: the reader of a trace takes equal terms for one. The tables stay small enough to
/// lie in the processor's caches, where a table of all terms would not.
const RECENT_TERMS: usize = 1 << 11;
const RECENT_READS: usize = 1 << 9;

/// Terms of a thread's reads, by the low bits of the index: index, width, and term.
struct RecentReads(Box<[(u32, u16, TermId)]>);

impl Default for RecentReads {
    fn default() -> Self {
        Self(vec![(0, 0, TermId(0)); RECENT_READS].into())
    }
}

/// A term that can come again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Constant(u16, u64),
    Apply(Operator, [u32; 3]),
}

impl Key {
    /// Where it is among the recent terms.
    fn way(self) -> usize {
        let mixed = match self {
            Key::Constant(width, bits) => bits ^ u64::from(width) << 48,
            Key::Apply(operator, [first, second, third]) => {
                let operator = match operator {
                    Operator::Extract { high, low } => u64::from(high) << 8 | u64::from(low),
                    Operator::ZeroExtend(by) | Operator::SignExtend(by) => u64::from(by) << 16,
                    _ => 0,
                };
                (u64::from(first) | u64::from(second) << 32)
                    ^ (u64::from(third) ^ operator).rotate_left(17)
            }
        };
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % RECENT_TERMS
    }
}

/// See the module's text.
pub struct Terms {
    made: u32,
    /// The runtime's terms by number: the file's term and its width.
    built: Vec<(u32, u8)>,
    recent: Box<[(Key, TermId)]>,
    /// By thread.
    reads: Vec<RecentReads>,
    /// The thread whose events come.
    pub thread: ThreadId,
}

impl Terms {
    pub fn new() -> Self {
        Self {
            made: 0,
            built: Vec::new(),
            // No constant has 255 bits.
            recent: vec![(Key::Constant(255, 0), TermId(0)); RECENT_TERMS].into(),
            reads: Vec::new(),
            thread: ThreadId(0),
        }
    }

    /// The next thread comes into being.
    pub fn add_thread(&mut self) {
        self.reads.push(RecentReads::default());
    }

    pub fn define_binary<O: Output>(
        &mut self,
        output: &mut O,
        op: BinaryOp,
        place: u64,
        record: DefineBinary,
    ) -> Option<()> {
        let DefineBinary { left, right, value } = record;
        let width = width_of(place & 0xff)?;
        let term = self.binary(output, op, width, left, right, value.unwrap_or(place >> 8))?;
        let width = if op.is_comparison() { 1 } else { width };
        self.built.push((term.0, width as u8));
        Some(())
    }

    pub fn define_cast<O: Output>(
        &mut self,
        output: &mut O,
        op: CastOp,
        place: u64,
        record: DefineCast,
    ) -> Option<()> {
        let (from, to) = (width_of(place & 0xff)?, width_of(place >> 8)?);
        let term = self.operand(output, record.shadow, from, 0)?;
        let term = self.cast(output, op, from, to, term);
        self.built.push((term.0, to as u8));
        Some(())
    }

    pub fn define_address<O: Output>(
        &mut self,
        output: &mut O,
        op: CastOp,
        place: u64,
        record: DefineAddress,
    ) -> Option<()> {
        let DefineAddress { index, base } = record;
        let term = self.address(output, op, width_of(place & 0xff)?, index, place >> 8, base)?;
        self.built.push((term.0, 64));
        Some(())
    }

    pub fn define_select<O: Output>(
        &mut self,
        output: &mut O,
        place: u64,
        record: DefineSelect,
    ) -> Option<()> {
        let DefineSelect { condition, then, otherwise, .. } = record;
        let width = width_of(place)?;
        let condition = self.operand(output, condition, 1, record.condition_value.into())?;
        let then = self.operand(output, then, width, record.then_value)?;
        let otherwise = self.operand(output, otherwise, width, record.otherwise_value)?;
        let term = self.apply(output, Operator::Ite, &[condition, then, otherwise]);
        self.built.push((term.0, width as u8));
        Some(())
    }

    fn next_term(&mut self) -> TermId {
        self.made += 1;
        TermId(self.made - 1)
    }

    /// The term with this key. A `fresh` one is not looked for: there cannot be one yet.
    #[inline]
    fn intern<O: Output>(
        &mut self,
        key: Key,
        fresh: bool,
        output: &mut O,
        define: impl FnOnce(TermId, &mut O),
    ) -> TermId {
        let way = key.way();
        if !fresh {
            let (recent, term) = self.recent[way];
            if recent == key {
                return term;
            }
        }
        let id = self.next_term();
        define(id, output);
        self.recent[way] = (key, id);
        id
    }

    pub fn constant<O: Output>(&mut self, output: &mut O, width: u16, value: u64) -> TermId {
        let value = match width {
            1 => Value::Bool(value & 1 == 1),
            _ => Value::bit_vec(width, value),
        };
        let bits = match value {
            Value::Bool(value) => value.into(),
            Value::BitVec { bits, .. } => bits,
            _ => 0,
        };
        self.intern(Key::Constant(width, bits), false, output, |id, output| {
            output.constant(id, value)
        })
    }

    pub fn apply<O: Output>(
        &mut self,
        output: &mut O,
        operator: Operator,
        arguments: &[TermId],
    ) -> TermId {
        let mut parts = [u32::MAX; 3];
        for (part, argument) in parts.iter_mut().zip(arguments) {
            *part = argument.0;
        }
        // Nothing has been made of the newest term so far.
        let newest = self.made.wrapping_sub(1);
        let fresh = parts.contains(&newest) && self.made != 0;
        self.intern(Key::Apply(operator, parts), fresh, output, |id, output| {
            output.apply(id, operator, arguments);
        })
    }

    /// The term of a shadow; none for 0.
    pub fn optional<O: Output>(
        &mut self,
        output: &mut O,
        shadow: u32,
        width: u16,
    ) -> Option<Option<TermId>> {
        if shadow == 0 { Some(None) } else { self.operand(output, shadow, width, 0).map(Some) }
    }

    /// The term of a shadow, of this width; the constant for 0.
    pub fn operand<O: Output>(
        &mut self,
        output: &mut O,
        shadow: u32,
        width: u16,
        value: u64,
    ) -> Option<TermId> {
        if shadow == 0 {
            return Some(self.constant(output, width, value));
        }
        if shadow & TERM_SHADOW != 0 {
            let &(term, has) = self.built.get((shadow & !TERM_SHADOW) as usize)?;
            let (term, has) = (TermId(term), u16::from(has));
            return Some(match has.cmp(&width) {
                std::cmp::Ordering::Equal => term,
                std::cmp::Ordering::Less => self.cast(output, CastOp::ZeroExtend, has, width, term),
                std::cmp::Ordering::Greater => {
                    self.cast(output, CastOp::Truncate, has, width, term)
                }
            });
        }
        let index = shadow - 1;
        if width == 1 {
            let byte = self.operand(output, shadow, 8, 0)?;
            return Some(self.cast(output, CastOp::Truncate, 8, 1, byte));
        }
        let way = index as usize % RECENT_READS;
        let (recent, wide, term) = self.reads.get(self.thread.index())?.0[way];
        if (recent, wide) == (index, width) {
            return Some(term);
        }
        let id = self.next_term();
        let sort = Sort::bit_vec(width);
        output.read_value(id, self.thread, index, sort);
        self.reads.get_mut(self.thread.index())?.0[way] = (index, width, id);
        Some(id)
    }

    pub fn cast<O: Output>(
        &mut self,
        output: &mut O,
        op: CastOp,
        from: u16,
        to: u16,
        term: TermId,
    ) -> TermId {
        match op {
            _ if from == to => term,
            CastOp::Truncate if to == 1 => {
                let bit = self.apply(output, Operator::Extract { high: 0, low: 0 }, &[term]);
                let one = self.intern(Key::Constant(0, 1), false, output, |id, output| {
                    output.constant(id, Value::bit_vec(1, 1));
                });
                self.apply(output, Operator::Eq, &[bit, one])
            }
            CastOp::Truncate => {
                self.apply(output, Operator::Extract { high: to - 1, low: 0 }, &[term])
            }
            CastOp::ZeroExtend | CastOp::SignExtend if from == 1 => {
                let set = if op == CastOp::SignExtend { u64::MAX } else { 1 };
                let (set, clear) = (self.constant(output, to, set), self.constant(output, to, 0));
                self.apply(output, Operator::Ite, &[term, set, clear])
            }
            CastOp::ZeroExtend => self.apply(output, Operator::ZeroExtend(to - from), &[term]),
            CastOp::SignExtend => self.apply(output, Operator::SignExtend(to - from), &[term]),
        }
    }

    pub fn binary<O: Output>(
        &mut self,
        output: &mut O,
        op: BinaryOp,
        width: u16,
        left: u32,
        right: u32,
        value: u64,
    ) -> Option<TermId> {
        use BinaryOp as B;
        use Operator as O;
        let left = self.operand(output, left, width, value)?;
        let right = self.operand(output, right, width, value)?;
        if width == 1 {
            return Some(self.boolean(output, op, left, right));
        }
        let (operator, swapped, negated) = match op {
            B::Add => (O::BvAdd, false, false),
            B::Sub => (O::BvSub, false, false),
            B::Mul => (O::BvMul, false, false),
            B::UDiv => (O::BvUdiv, false, false),
            B::SDiv => (O::BvSdiv, false, false),
            B::URem => (O::BvUrem, false, false),
            B::SRem => (O::BvSrem, false, false),
            B::And => (O::BvAnd, false, false),
            B::Or => (O::BvOr, false, false),
            B::Xor => (O::BvXor, false, false),
            B::Shl => (O::BvShl, false, false),
            B::LShr => (O::BvLshr, false, false),
            B::AShr => (O::BvAshr, false, false),
            B::Eq => (O::Eq, false, false),
            B::Ne => (O::Eq, false, true),
            B::Ult => (O::BvUlt, false, false),
            B::Ule => (O::BvUle, false, false),
            B::Ugt => (O::BvUlt, true, false),
            B::Uge => (O::BvUle, true, false),
            B::Slt => (O::BvSlt, false, false),
            B::Sle => (O::BvSle, false, false),
            B::Sgt => (O::BvSlt, true, false),
            B::Sge => (O::BvSle, true, false),
        };
        let arguments = if swapped { [right, left] } else { [left, right] };
        let term = self.apply(output, operator, &arguments);
        Some(if negated { self.apply(output, O::Not, &[term]) } else { term })
    }

    /// An address: the base, and an index that is extended and scaled.
    pub fn address<O: Output>(
        &mut self,
        output: &mut O,
        op: CastOp,
        width: u16,
        index: u32,
        scale: u64,
        base: u64,
    ) -> Option<TermId> {
        let index = self.operand(output, index, width, 0)?;
        let mut offset = self.cast(output, op, width, 64, index);
        if scale != 1 {
            let scale = self.constant(output, 64, scale);
            offset = self.apply(output, Operator::BvMul, &[offset, scale]);
        }
        let base = self.constant(output, 64, base);
        Some(self.apply(output, Operator::BvAdd, &[base, offset]))
    }

    /// Operations on single bits. A set bit is 1 unsigned and -1 signed.
    fn boolean<O: Output>(
        &mut self,
        output: &mut O,
        op: BinaryOp,
        left: TermId,
        right: TermId,
    ) -> TermId {
        use BinaryOp as B;
        use Operator as O;
        match op {
            B::Add | B::Sub | B::Xor | B::Ne => self.apply(output, O::Xor, &[left, right]),
            B::And | B::Mul => self.apply(output, O::And, &[left, right]),
            B::Or => self.apply(output, O::Or, &[left, right]),
            B::Eq => self.apply(output, O::Eq, &[left, right]),
            // Division by a clear bit is undefined, and a remainder of one bit is zero.
            B::UDiv | B::SDiv | B::AShr => left,
            B::URem | B::SRem => self.constant(output, 1, 0),
            B::Shl | B::LShr | B::Ugt | B::Slt => {
                let not = self.apply(output, O::Not, &[right]);
                self.apply(output, O::And, &[left, not])
            }
            B::Ult | B::Sgt => {
                let not = self.apply(output, O::Not, &[left]);
                self.apply(output, O::And, &[not, right])
            }
            B::Ule | B::Sge => {
                let not = self.apply(output, O::Not, &[left]);
                self.apply(output, O::Or, &[not, right])
            }
            B::Uge | B::Sle => {
                let not = self.apply(output, O::Not, &[right]);
                self.apply(output, O::Or, &[left, not])
            }
        }
    }
}

/// A width in bits.
pub fn width_of(width: u64) -> Option<u16> {
    (1..=64).contains(&width).then_some(width as u16)
}
