//! Arithmetic and comparisons.

use super::instruction::pointer;
use super::{Checker, End, Result, mask, signed, unknown};
use crate::checker::State;
use crate::checker::memory::{Object, Value};
use crate::ir::{Arithmetic, Comparison, Flags, Place, Type};

impl<'m> Checker<'m> {
    pub(super) fn compare(
        &self,
        state: &State,
        place: Place,
        comparison: Comparison,
        kind: &Type,
        a: Value,
        b: Value,
    ) -> Result<bool> {
        let bits = if let Type::Integer(bits) = kind { *bits } else { 64 };
        // two literals may be one, and one literal that is written twice may be two
        let merged = |object: Object| matches!(object, Object::Global(id) if self.module.globals[id as usize].mergeable);
        let (a, b) = match (pointer(a), pointer(b)) {
            (Value::Pointer(a, _), Value::Pointer(b, _)) if merged(a) && merged(b) => {
                return unknown(place, "a comparison of constants without a name");
            }
            (Value::Pointer(a, at), Value::Pointer(b, offset)) if a == b && a != Object::Gone => {
                (at as i128 as u128, offset as i128 as u128)
            }
            (Value::Pointer(a, at), Value::Pointer(b, offset)) => {
                // different objects have different addresses, and none of them is null
                let inside = |object: Object, at: i64| match object {
                    Object::Number => at == 0,
                    Object::Gone => false,
                    Object::Function(_) | Object::Thread(_) => true,
                    _ => at >= 0 && (at as usize) < state.memory.size(object),
                };
                return match comparison {
                    Comparison::Equal if inside(a, at) && inside(b, offset) => Ok(false),
                    Comparison::NotEqual if inside(a, at) && inside(b, offset) => Ok(true),
                    _ => unknown(place, "a comparison of addresses"),
                };
            }
            _ => return unknown(place, "a comparison"),
        };
        let (a, b) = (mask(a, bits), mask(b, bits));
        Ok(match comparison {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less { signed: as_signed, or_equal, swapped } => {
                let (a, b) = if swapped { (b, a) } else { (a, b) };
                let less = match as_signed {
                    true => signed(a, bits) < signed(b, bits),
                    false => a < b,
                };
                less || or_equal && a == b
            }
        })
    }
}

pub(super) fn arithmetic(
    place: Place,
    operation: Arithmetic,
    bits: u32,
    a: u128,
    b: u128,
    flags: Flags,
) -> Result<u128> {
    if bits > 64 || flags.no_unsigned_wrap || flags.exact || flags.disjoint {
        return unknown(place, "a computation of wide numbers, or with a promise");
    }
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let is_division = matches!(
        operation,
        Arithmetic::DivideUnsigned
            | Arithmetic::DivideSigned
            | Arithmetic::RemainderUnsigned
            | Arithmetic::RemainderSigned
    );
    if is_division && b == 0 {
        return Err(End::Violation(place));
    }
    let is_shift = matches!(
        operation,
        Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned
    );
    if is_shift && (b >= bits.into() || flags.no_signed_wrap) {
        return unknown(place, "a shift");
    }
    // numbers of 64 bits leave 128 bits in none of these
    let exact: i128 = match operation {
        Arithmetic::Add => sa + sb,
        Arithmetic::Subtract => sa - sb,
        Arithmetic::Multiply => sa * sb,
        Arithmetic::DivideSigned => sa / sb,
        Arithmetic::RemainderSigned => sa % sb,
        Arithmetic::DivideUnsigned => (a / b) as i128,
        Arithmetic::RemainderUnsigned => (a % b) as i128,
        Arithmetic::ShiftLeft => (a << b) as i128,
        Arithmetic::ShiftRight => (a >> b) as i128,
        Arithmetic::ShiftRightSigned => sa >> b,
        Arithmetic::And => (a & b) as i128,
        Arithmetic::Or => (a | b) as i128,
        Arithmetic::Xor => (a ^ b) as i128,
    };
    let result = mask(exact as u128, bits);
    let leaves = match operation {
        Arithmetic::DivideSigned => signed(result, bits) != exact,
        Arithmetic::RemainderSigned => sb == -1 && sa == -(1 << (bits - 1)),
        _ => flags.no_signed_wrap && signed(result, bits) != exact,
    };
    if leaves { Err(End::Violation(place)) } else { Ok(result) }
}
