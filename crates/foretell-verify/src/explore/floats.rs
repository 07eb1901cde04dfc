//! Floating point of single and double precision, as IEEE 754 and x86-64 have it. A value is its bits.
//!
//! What C or the machine leaves open has no result and is refused: the bits of a NaN, and a conversion
//! to an integer that cannot hold the value.

use crate::ir::{FloatOperation, Type, mask, signed};

enum Number {
    Single(f32),
    Double(f64),
}

fn number(bits: u128, kind: &Type) -> Option<Number> {
    match kind {
        Type::Float { size: 4, .. } => Some(Number::Single(f32::from_bits(bits as u32))),
        Type::Float { size: 8, .. } => Some(Number::Double(f64::from_bits(bits as u64))),
        _ => None,
    }
}

fn bits(number: Number) -> Option<u128> {
    match number {
        Number::Single(value) => (!value.is_nan()).then(|| value.to_bits().into()),
        Number::Double(value) => (!value.is_nan()).then(|| value.to_bits().into()),
    }
}

/// The result, as bits; none if nothing says what it is.
pub(super) fn compute(
    operation: FloatOperation,
    from: &Type,
    to: &Type,
    operands: &[u128],
) -> Option<u128> {
    match operation {
        FloatOperation::FromInteger { is_signed } => {
            let Type::Integer(width @ 1..=64) = *from else { return None };
            let value = mask(*operands.first()?, width);
            let value = if is_signed { signed(value, width) } else { value as i128 };
            match to {
                Type::Float { size: 4, .. } => bits(Number::Single(value as f32)),
                Type::Float { size: 8, .. } => bits(Number::Double(value as f64)),
                _ => None,
            }
        }
        FloatOperation::ToInteger { is_signed } => {
            let Type::Integer(width @ 1..=64) = *to else { return None };
            let value = match number(*operands.first()?, from)? {
                Number::Single(value) => f64::from(value),
                Number::Double(value) => value,
            }
            .trunc();
            let (low, high) = match is_signed {
                true => (-(2f64.powi(width as i32 - 1)), 2f64.powi(width as i32 - 1)),
                false => (0.0, 2f64.powi(width as i32)),
            };
            (value >= low && value < high).then(|| mask(value as i128 as u128, width))
        }
        FloatOperation::Resize => match (number(*operands.first()?, from)?, to) {
            (Number::Single(value), Type::Float { size: 8, .. }) => {
                bits(Number::Double(value.into()))
            }
            (Number::Double(value), Type::Float { size: 4, .. }) => {
                bits(Number::Single(value as f32))
            }
            _ => None,
        },
        FloatOperation::Compare { less, equal, greater, unordered } => {
            let (a, b) = (number(*operands.first()?, from)?, number(*operands.get(1)?, from)?);
            let order = match (a, b) {
                (Number::Single(a), Number::Single(b)) => a.partial_cmp(&b),
                (Number::Double(a), Number::Double(b)) => a.partial_cmp(&b),
                _ => return None,
            };
            Some(u128::from(match order {
                Some(std::cmp::Ordering::Less) => less,
                Some(std::cmp::Ordering::Equal) => equal,
                Some(std::cmp::Ordering::Greater) => greater,
                None => unordered,
            }))
        }
        FloatOperation::Negate => match number(*operands.first()?, from)? {
            Number::Single(value) => bits(Number::Single(-value)),
            Number::Double(value) => bits(Number::Double(-value)),
        },
        FloatOperation::Absolute => match number(*operands.first()?, from)? {
            Number::Single(value) => bits(Number::Single(value.abs())),
            Number::Double(value) => bits(Number::Double(value.abs())),
        },
        FloatOperation::Add
        | FloatOperation::Subtract
        | FloatOperation::Multiply
        | FloatOperation::Divide => {
            match (number(*operands.first()?, from)?, number(*operands.get(1)?, from)?) {
                (Number::Single(a), Number::Single(b)) => bits(Number::Single(match operation {
                    FloatOperation::Add => a + b,
                    FloatOperation::Subtract => a - b,
                    FloatOperation::Multiply => a * b,
                    _ => a / b,
                })),
                (Number::Double(a), Number::Double(b)) => bits(Number::Double(match operation {
                    FloatOperation::Add => a + b,
                    FloatOperation::Subtract => a - b,
                    FloatOperation::Multiply => a * b,
                    _ => a / b,
                })),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compute;
    use crate::ir::{FloatOperation, Type};

    #[test]
    fn what_nothing_defines_has_no_result() {
        let double = Type::Float { size: 8, name: "double" };
        let (zero, huge) = (0f64.to_bits().into(), 1e30f64.to_bits().into());
        assert_eq!(compute(FloatOperation::Divide, &double, &double, &[zero, zero]), None);
        let to_int = FloatOperation::ToInteger { is_signed: true };
        assert_eq!(compute(to_int, &double, &Type::Integer(32), &[huge]), None);
        let minus = (-2.9f64).to_bits().into();
        let bits = compute(to_int, &double, &Type::Integer(32), &[minus]);
        assert_eq!(bits, Some(0xffff_fffe));
        let unsigned = FloatOperation::ToInteger { is_signed: false };
        assert_eq!(compute(unsigned, &double, &Type::Integer(8), &[minus]), None);
    }
}
