//! Concrete values of every sort.

use std::collections::BTreeMap;

use super::{Rational, ScalarSort, Sort};

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// An integer. Arithmetic is checked: what leaves 128 bits is an error, never a wrong value.
    Int(i128),
    /// A rational.
    Real(Rational),
    /// A bit-vector; bits above the width are zero.
    BitVec {
        /// 1 to 64.
        width: u16,
        /// The bits.
        bits: u64,
    },
    /// An array.
    Array(Box<ArrayValue>),
}

/// An array: a default and the places that differ from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrayValue {
    index: ScalarSort,
    default: Value,
    entries: BTreeMap<Value, Value>,
}

impl ArrayValue {
    /// The array that has `default` everywhere.
    pub fn constant(index: ScalarSort, default: Value) -> Self {
        Self { index, default, entries: BTreeMap::new() }
    }

    /// The element at `index`.
    pub fn select(&self, index: &Value) -> &Value {
        self.entries.get(index).unwrap_or(&self.default)
    }

    /// The same array with `element` at `index`.
    pub fn store(mut self, index: Value, element: Value) -> Self {
        if element == self.default {
            self.entries.remove(&index);
        } else {
            self.entries.insert(index, element);
        }
        self
    }

    /// The element at every place that has no entry.
    pub fn default_element(&self) -> &Value {
        &self.default
    }

    /// The places that differ from the default, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.entries.iter()
    }
}

impl Value {
    /// A bit-vector; excess bits are cut off.
    pub fn bit_vec(width: u16, bits: u64) -> Value {
        Value::BitVec { width, bits: bits & mask(width) }
    }

    /// The sort.
    pub fn sort(&self) -> Sort {
        match self {
            Value::Bool(_) => Sort::BOOL,
            Value::Int(_) => Sort::INT,
            Value::Real(_) => Sort::REAL,
            Value::BitVec { width, .. } => Sort::bit_vec(*width),
            Value::Array(array) => {
                let Sort::Scalar(element) = array.default.sort() else {
                    unreachable!("elements of arrays are scalars")
                };
                Sort::Array { index: array.index, element }
            }
        }
    }

    /// A value of the sort: false, zero, or an array of those.
    pub fn zero(sort: Sort) -> Value {
        match sort {
            Sort::Scalar(ScalarSort::Bool) => Value::Bool(false),
            Sort::Scalar(ScalarSort::Int) => Value::Int(0),
            Sort::Scalar(ScalarSort::Real) => Value::Real(Rational::integer(0)),
            Sort::Scalar(ScalarSort::BitVec(width)) => Value::bit_vec(width, 0),
            Sort::Array { index, element } => {
                Value::Array(Box::new(ArrayValue::constant(index, Value::zero(element.into()))))
            }
        }
    }

    /// Recorded bits as a value of the sort: two's complement for integers, non-zero is true.
    /// `None` for sorts that do not fit in 64 bits.
    pub fn from_bits(sort: Sort, bits: u64) -> Option<Value> {
        match sort {
            Sort::Scalar(ScalarSort::Bool) => Some(Value::Bool(bits != 0)),
            Sort::Scalar(ScalarSort::Int) => Some(Value::Int(i128::from(bits as i64))),
            Sort::Scalar(ScalarSort::BitVec(width)) => Some(Value::bit_vec(width, bits)),
            Sort::Scalar(ScalarSort::Real) | Sort::Array { .. } => None,
        }
    }

    /// The truth value, for Booleans.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// The lowest `width` bits set.
pub(super) fn mask(width: u16) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// The bits read as a two's complement number of that width.
pub(super) fn signed(width: u16, bits: u64) -> i64 {
    let shift = 64 - u32::from(width);
    ((bits << shift) as i64) >> shift
}
