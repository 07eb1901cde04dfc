//! Symbolic expressions, hash-consed: equal expressions have equal ids.
//!
//! One term type serves all of foretell: the values that a recorder attaches to writes and
//! branches, CTRC's s-expressions, and the formulas that go to a solver. Sorts are Booleans,
//! unbounded integers and reals (CTRC), bit-vectors of up to 64 bits (C and Rust), and arrays of
//! those. Constants are folded as terms are built; evaluation and folding share one function, so
//! they cannot disagree.

mod evaluate;
mod rational;
mod store;
#[cfg(test)]
mod tests;
mod value;

pub use evaluate::{Environment, EvaluateError};
pub use rational::Rational;
pub use store::{SortError, Symbol, TermStore};
pub use value::{ArrayValue, Value};

use crate::id::{EventId, SymbolId, TermId, ThreadId, VariableId};

/// The sorts of scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScalarSort {
    /// Truth values.
    Bool,
    /// Unbounded integers.
    Int,
    /// Rationals, exact.
    Real,
    /// Bit-vectors of 1 to 64 bits.
    BitVec(u16),
}

/// The sorts of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// A scalar.
    Scalar(ScalarSort),
    /// A total map from index to element.
    Array {
        /// Sort of indices.
        index: ScalarSort,
        /// Sort of elements.
        element: ScalarSort,
    },
}

impl Sort {
    /// Truth values.
    pub const BOOL: Sort = Sort::Scalar(ScalarSort::Bool);
    /// Unbounded integers.
    pub const INT: Sort = Sort::Scalar(ScalarSort::Int);
    /// Rationals.
    pub const REAL: Sort = Sort::Scalar(ScalarSort::Real);

    /// Bit-vectors of `width` bits.
    pub const fn bit_vec(width: u16) -> Sort {
        Sort::Scalar(ScalarSort::BitVec(width))
    }

    /// The width, for bit-vectors.
    pub fn width(self) -> Option<u16> {
        match self {
            Sort::Scalar(ScalarSort::BitVec(width)) => Some(width),
            _ => None,
        }
    }
}

impl From<ScalarSort> for Sort {
    fn from(sort: ScalarSort) -> Self {
        Sort::Scalar(sort)
    }
}

/// A term: a leaf or an operator applied to smaller terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A constant.
    Constant(Value),
    /// A variable's value before the step it stands in.
    Variable(VariableId),
    /// A variable's value after the step it stands in.
    Primed(VariableId),
    /// What the read with this index in this thread returned.
    ReadValue(ThreadId, u32),
    /// The first event comes before the second.
    Before(EventId, EventId),
    /// A free symbol that an analysis introduced.
    Symbol(SymbolId),
    /// An operator and its arguments.
    Apply(Operator, Box<[TermId]>),
}

/// The operators; names and meaning are those of SMT-LIB 2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // SMT-LIB's own names
pub enum Operator {
    Not,
    And,
    Or,
    Xor,
    Implies,
    Ite,
    Eq,
    // integers and reals
    Add,
    Sub,
    Neg,
    Mul,
    /// Integer division, rounding so that the remainder is not negative.
    IntDiv,
    Mod,
    Abs,
    RealDiv,
    ToReal,
    ToInt,
    Lt,
    Le,
    // bit-vectors
    BvNot,
    BvNeg,
    BvAnd,
    BvOr,
    BvXor,
    BvAdd,
    BvSub,
    BvMul,
    BvUdiv,
    BvUrem,
    BvSdiv,
    BvSrem,
    BvShl,
    BvLshr,
    BvAshr,
    BvUlt,
    BvUle,
    BvSlt,
    BvSle,
    Concat,
    /// Bits `high` down to `low`.
    Extract {
        high: u16,
        low: u16,
    },
    /// By this many bits.
    ZeroExtend(u16),
    /// By this many bits.
    SignExtend(u16),
    // arrays
    Select,
    Store,
}

impl Operator {
    /// The name in SMT-LIB; indexed operators give the part before the indices.
    pub fn smtlib_name(self) -> &'static str {
        use Operator::*;
        match self {
            Not => "not",
            And => "and",
            Or => "or",
            Xor => "xor",
            Implies => "=>",
            Ite => "ite",
            Eq => "=",
            Add => "+",
            Sub | Neg => "-",
            Mul => "*",
            IntDiv => "div",
            Mod => "mod",
            Abs => "abs",
            RealDiv => "/",
            ToReal => "to_real",
            ToInt => "to_int",
            Lt => "<",
            Le => "<=",
            BvNot => "bvnot",
            BvNeg => "bvneg",
            BvAnd => "bvand",
            BvOr => "bvor",
            BvXor => "bvxor",
            BvAdd => "bvadd",
            BvSub => "bvsub",
            BvMul => "bvmul",
            BvUdiv => "bvudiv",
            BvUrem => "bvurem",
            BvSdiv => "bvsdiv",
            BvSrem => "bvsrem",
            BvShl => "bvshl",
            BvLshr => "bvlshr",
            BvAshr => "bvashr",
            BvUlt => "bvult",
            BvUle => "bvule",
            BvSlt => "bvslt",
            BvSle => "bvsle",
            Concat => "concat",
            Extract { .. } => "extract",
            ZeroExtend(_) => "zero_extend",
            SignExtend(_) => "sign_extend",
            Select => "select",
            Store => "store",
        }
    }
}
