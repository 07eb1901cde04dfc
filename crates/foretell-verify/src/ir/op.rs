//! What an instruction does, as data: one variant for each instruction that has a meaning.

use std::sync::Arc;

use super::{Manner, Operand, Promises};
use super::{TagId, Type};

/// An operation of floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOperation {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// The other sign.
    Negate,
    /// Without its sign.
    Absolute,
    /// True when the operands are one of these; unordered if one is not a number.
    Compare {
        /// The first is less.
        less: bool,
        /// They are equal.
        equal: bool,
        /// The first is greater.
        greater: bool,
        /// One is not a number.
        unordered: bool,
    },
    /// The nearest number of an integer.
    FromInteger {
        /// Of a signed one.
        is_signed: bool,
    },
    /// The integer in the direction of zero.
    ToInteger {
        /// A signed one.
        is_signed: bool,
    },
    /// Of the other precision.
    Resize,
}

/// How an atomic operation orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sequentially consistent.
    Sequential,
    /// Anything weaker.
    Weaker,
}

/// An operation of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient of unsigned numbers.
    DivideUnsigned,
    /// Quotient of signed numbers, towards zero.
    DivideSigned,
    /// Remainder of unsigned numbers.
    RemainderUnsigned,
    /// Remainder of signed numbers, with the sign of the dividend.
    RemainderSigned,
    /// To the left.
    ShiftLeft,
    /// To the right, zeros come in.
    ShiftRight,
    /// To the right, the sign stays.
    ShiftRightSigned,
    /// Bits of both.
    And,
    /// Bits of any.
    Or,
    /// Bits of one.
    Xor,
}

/// What must hold of an operation, or its result has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The result is right as a signed number.
    pub no_signed_wrap: bool,
    /// The result is right as an unsigned number.
    pub no_unsigned_wrap: bool,
    /// Nothing is lost (quotients and shifts to the right).
    pub exact: bool,
    /// No bit is set in both (`or`).
    pub disjoint: bool,
    /// Not negative (`zext`).
    pub non_negative: bool,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less, as unsigned or signed numbers.
    Less {
        /// As signed numbers.
        signed: bool,
        /// Or equal.
        or_equal: bool,
        /// With the operands exchanged.
        swapped: bool,
    },
}

/// A change of type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    /// Upper bits go.
    Truncate,
    /// Zeros come in front.
    ZeroExtend,
    /// Copies of the sign come in front.
    SignExtend,
    /// Pointer to integer, integer to pointer, or nothing at all.
    Same,
}

/// An index of an address computation.
#[derive(Clone, Debug)]
pub struct Index {
    /// The index.
    pub value: Operand,
    /// Its width.
    pub bits: u32,
    /// Bytes from one element to the next.
    pub stride: u64,
    /// Elements of the array; absent for a plain pointer.
    pub length: Option<u64>,
}

/// What is read, changed and written in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The operand is written.
    Exchange,
    /// The result of an operation is written.
    Compute(Arithmetic),
    /// The complement of `and`.
    Nand,
    /// The greater or smaller one.
    Extreme {
        /// The greater.
        greater: bool,
        /// As signed numbers.
        signed: bool,
    },
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its type.
    pub kind: Type,
    /// Its value.
    pub value: Operand,
    /// A copy of so much memory is passed.
    pub by_value: Option<Type>,
    /// What is promised of it.
    pub promises: Promises,
}

/// A member that is copied with its structure: offset, length, type.
pub type Copied = (u64, u64, Option<TagId>);

/// What an instruction does.
#[derive(Clone, Debug)]
pub enum Op {
    /// Memory until the function returns.
    Allocate {
        /// Of this type
        content: Type,
        /// so many times.
        count: Operand,
        /// Width of the count.
        bits: u32,
        /// Its address is a multiple of this.
        align: u64,
        /// A `const` variable of one value: it is written once.
        constant: bool,
    },
    /// Reads memory.
    Load {
        /// What is read.
        kind: Type,
        /// Where.
        from: Operand,
        /// If it is atomic.
        order: Option<Order>,
        /// How.
        manner: Manner,
    },
    /// Writes memory.
    Store {
        /// What is written.
        kind: Type,
        /// Its value.
        value: Operand,
        /// Where.
        to: Operand,
        /// If it is atomic.
        order: Option<Order>,
        /// How.
        manner: Manner,
    },
    /// An operation of two integers.
    Binary {
        /// Which.
        operation: Arithmetic,
        /// Their width.
        bits: u32,
        /// The first.
        left: Operand,
        /// The second.
        right: Operand,
        /// What must hold.
        flags: Flags,
    },
    /// A truth value.
    Compare {
        /// Which.
        comparison: Comparison,
        /// Type of both.
        kind: Type,
        /// The first.
        left: Operand,
        /// The second.
        right: Operand,
    },
    /// A change of type.
    Convert {
        /// Which.
        cast: Cast,
        /// From this type
        from: Type,
        /// to that.
        to: Type,
        /// The value.
        value: Operand,
        /// What must hold.
        flags: Flags,
    },
    /// Floating point.
    Float {
        /// Which.
        operation: FloatOperation,
        /// Type of the operands.
        from: Type,
        /// Type of the result.
        to: Type,
        /// One or two.
        operands: Vec<Operand>,
    },
    /// An address.
    Address {
        /// From here
        base: Operand,
        /// so many bytes further,
        offset: i64,
        /// and further by these.
        indices: Vec<Index>,
        /// It stays within what `base` points into.
        inbounds: bool,
    },
    /// One of two values.
    Select {
        /// True for the first.
        condition: Operand,
        /// Type of both.
        kind: Type,
        /// The first.
        yes: Operand,
        /// The second.
        no: Operand,
    },
    /// The value that belongs to the block we come from.
    Phi {
        /// Type of all.
        kind: Type,
        /// Values and blocks.
        incoming: Vec<(Operand, u32)>,
    },
    /// A call.
    Call {
        /// What is called.
        callee: Operand,
        /// With these.
        arguments: Vec<Argument>,
        /// What it gives.
        result: Type,
        /// What is promised of that.
        promises: Promises,
        /// It is declared to have no effect.
        no_effect: bool,
        /// What a copy of a structure copies. None for any other call.
        fields: Option<Arc<[Copied]>>,
    },
    /// A field of an aggregate.
    Extract {
        /// Type of the aggregate.
        kind: Type,
        /// The aggregate.
        value: Operand,
        /// Which field.
        index: u32,
    },
    /// An aggregate with another field.
    Insert {
        /// Type of the aggregate.
        kind: Type,
        /// The aggregate.
        value: Operand,
        /// Type of the field.
        field_kind: Type,
        /// The field.
        field: Operand,
        /// Which field.
        index: u32,
    },
    /// Reads, changes and writes memory in one step; gives the old value.
    Modify {
        /// How.
        change: Change,
        /// What is changed.
        kind: Type,
        /// Where.
        at: Operand,
        /// By what.
        value: Operand,
        /// How others are ordered.
        order: Order,
        /// The address is a multiple of this.
        align: u64,
    },
    /// Writes if the old value is the expected one; gives the old value and whether it was.
    Exchange {
        /// What is changed.
        kind: Type,
        /// Where.
        at: Operand,
        /// The expected value.
        expected: Operand,
        /// The new one.
        new: Operand,
        /// How others are ordered.
        order: Order,
        /// May fail without a reason.
        weak: bool,
        /// The address is a multiple of this.
        align: u64,
    },
    /// Orders other accesses.
    Fence(Order),
    /// To another block.
    Jump(u32),
    /// To one of two blocks.
    Branch {
        /// True for the first.
        condition: Operand,
        /// The first.
        yes: u32,
        /// The second.
        no: u32,
    },
    /// To one of several blocks.
    Switch {
        /// The value that decides.
        value: Operand,
        /// Its width.
        bits: u32,
        /// The others.
        cases: Vec<(u128, u32)>,
        /// If no case fits.
        default: u32,
    },
    /// Back to the caller.
    Return(Option<(Type, Operand)>),
    /// Cannot be reached, says the compiler.
    Unreachable,
    /// Has no meaning here; what it is.
    Refused(Box<str>),
}

impl Op {
    /// All operands.
    pub fn operands(&self) -> Vec<&Operand> {
        match self {
            Op::Allocate { count, .. } => vec![count],
            Op::Load { from, .. } => vec![from],
            Op::Store { value, to, .. } => vec![value, to],
            Op::Binary { left, right, .. } | Op::Compare { left, right, .. } => vec![left, right],
            Op::Convert { value, .. } | Op::Extract { value, .. } => vec![value],
            Op::Address { base, indices, .. } => {
                [base].into_iter().chain(indices.iter().map(|index| &index.value)).collect()
            }
            Op::Float { operands, .. } => operands.iter().collect(),
            Op::Select { condition, yes, no, .. } => vec![condition, yes, no],
            Op::Phi { incoming, .. } => incoming.iter().map(|(value, _)| value).collect(),
            Op::Call { callee, arguments, .. } => {
                [callee].into_iter().chain(arguments.iter().map(|a| &a.value)).collect()
            }
            Op::Insert { value, field, .. } => vec![value, field],
            Op::Modify { at, value, .. } => vec![at, value],
            Op::Exchange { at, expected, new, .. } => vec![at, expected, new],
            Op::Branch { condition, .. } => vec![condition],
            Op::Switch { value, .. } => vec![value],
            Op::Return(Some((_, value))) => vec![value],
            Op::Fence(_) | Op::Jump(_) | Op::Return(None) | Op::Unreachable | Op::Refused(_) => {
                Vec::new()
            }
        }
    }

    /// The blocks it may jump to.
    pub fn targets(&self) -> Vec<u32> {
        match self {
            Op::Jump(to) => vec![*to],
            Op::Branch { yes, no, .. } => vec![*yes, *no],
            Op::Switch { cases, default, .. } => {
                cases.iter().map(|(_, to)| *to).chain([*default]).collect()
            }
            _ => Vec::new(),
        }
    }
}
