//! Numbers: arithmetic, conversions, comparisons, and where C leaves them undefined.

use super::values::{as_kind, truth};
use super::{Kind, Machine, Step, Stop};
use crate::explore::memory::{Base, Pointer, Value};
use crate::explore::state::State;
use crate::ir::{Arithmetic, Cast, Change, Comparison, Flags, Place, Type, mask, signed};

impl<'m> Machine<'m> {
    // ---- arithmetic ----

    pub(super) fn arithmetic(
        &self,
        place: Place,
        operation: Arithmetic,
        bits: u32,
        a: u128,
        b: u128,
        flags: Flags,
    ) -> Step<u128> {
        let (a, b) = (mask(a, bits), mask(b, bits));
        let (sa, sb) = (signed(a, bits), signed(b, bits));
        let overflow = || Err(Stop::Violated(Kind::Overflow, place));
        let poison = || {
            self.refuse(
                place,
                "undefined: an operation whose result breaks its nsw, nuw or exact flag",
            )
        };
        let fits = |exact: Option<i128>| {
            exact.is_some_and(|exact| signed(mask(exact as u128, bits), bits) == exact)
        };
        let fits_unsigned =
            |exact: Option<u128>| exact.is_some_and(|exact| mask(exact, bits) == exact);
        let check = |signed: Option<i128>, unsigned: Option<u128>, result: u128| {
            if flags.no_signed_wrap && !fits(signed) {
                return overflow();
            }
            if flags.no_unsigned_wrap && !fits_unsigned(unsigned) {
                return poison();
            }
            Ok(mask(result, bits))
        };
        match operation {
            Arithmetic::Add => check(sa.checked_add(sb), a.checked_add(b), a.wrapping_add(b)),
            Arithmetic::Subtract => check(sa.checked_sub(sb), a.checked_sub(b), a.wrapping_sub(b)),
            Arithmetic::Multiply => check(sa.checked_mul(sb), a.checked_mul(b), a.wrapping_mul(b)),
            Arithmetic::DivideUnsigned | Arithmetic::RemainderUnsigned => {
                if b == 0 {
                    return Err(Stop::Violated(Kind::Division, place));
                }
                match operation {
                    Arithmetic::DivideUnsigned if flags.exact && a % b != 0 => poison(),
                    Arithmetic::DivideUnsigned => Ok(a / b),
                    _ => Ok(a % b),
                }
            }
            Arithmetic::DivideSigned | Arithmetic::RemainderSigned => {
                let smallest = signed(1 << (bits - 1), bits);
                if b == 0 || sa == smallest && sb == -1 {
                    return Err(Stop::Violated(Kind::Division, place));
                }
                match operation {
                    Arithmetic::DivideSigned if flags.exact && sa % sb != 0 => poison(),
                    Arithmetic::DivideSigned => Ok(mask((sa / sb) as u128, bits)),
                    _ => Ok(mask((sa % sb) as u128, bits)),
                }
            }
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned => {
                if b >= u128::from(bits) {
                    return self.refuse(place, "undefined: a shift by more than the width");
                }
                let by = b as u32;
                match operation {
                    Arithmetic::ShiftLeft => {
                        let result = mask(a << by, bits);
                        if flags.no_signed_wrap && signed(result, bits) >> by != sa {
                            return overflow();
                        }
                        if flags.no_unsigned_wrap && result >> by != a {
                            return poison();
                        }
                        Ok(result)
                    }
                    _ if flags.exact && mask(a, by) != 0 && by > 0 => poison(),
                    Arithmetic::ShiftRight => Ok(a >> by),
                    _ => Ok(mask((sa >> by) as u128, bits)),
                }
            }
            Arithmetic::And => Ok(a & b),
            Arithmetic::Or if flags.disjoint && a & b != 0 => poison(),
            Arithmetic::Or => Ok(a | b),
            Arithmetic::Xor => Ok(a ^ b),
        }
    }

    pub(super) fn change(
        &self,
        place: Place,
        change: Change,
        kind: &Type,
        old: &Value,
        operand: Value,
    ) -> Step<Value> {
        if change == Change::Exchange {
            return Ok(operand);
        }
        if let (Type::Integer(bits), Value::Integer(_) | Value::Symbol(_)) = (kind, old)
            && let Value::Integer(_) | Value::Symbol(_) = operand
            && let Change::Compute(operation) = change
            && (matches!(old, Value::Symbol(_)) || matches!(operand, Value::Symbol(_)))
        {
            return self.symbolic(place, operation, *bits, old, &operand, Flags::default());
        }
        let (Type::Integer(bits), Value::Integer(a), Value::Integer(b)) = (kind, old, operand)
        else {
            return self.refuse(place, "an atomic operation on an undefined value or an address");
        };
        let flags = Flags::default();
        Ok(Value::Integer(match change {
            Change::Exchange => b,
            Change::Compute(operation) => self.arithmetic(place, operation, *bits, *a, b, flags)?,
            Change::Nand => mask(!(a & b), *bits),
            Change::Extreme { greater, signed: as_signed } => {
                let less = match as_signed {
                    true => signed(*a, *bits) < signed(b, *bits),
                    false => mask(*a, *bits) < mask(b, *bits),
                };
                if less == greater { b } else { *a }
            }
        }))
    }

    pub(in crate::explore) fn convert(
        &self,
        place: Place,
        cast: Cast,
        from: &Type,
        to: &Type,
        value: Value,
        flags: Flags,
    ) -> Step<Value> {
        if let Value::Symbol(term) = value {
            return self.convert_symbol(place, cast, term, to, flags);
        }
        if cast == Cast::Same {
            return Ok(match value {
                Value::Integer(number) => as_kind(Value::Integer(number), to),
                other => as_kind(other, to),
            });
        }
        let (Type::Integer(from), Type::Integer(to)) = (from, to) else {
            return self.refuse(place, "a conversion of something that is not an integer");
        };
        let number = match value {
            Value::Integer(number) => mask(number, *from),
            Value::Pointer(_) => {
                return self.refuse(place, "a computation with an address as a number");
            }
            Value::Undefined => return Ok(Value::Undefined),
            _ => return self.refuse(place, "a conversion of a value that is partly undefined"),
        };
        let result = match cast {
            Cast::Truncate => {
                let result = mask(number, *to);
                let lost = flags.no_unsigned_wrap && result != number
                    || flags.no_signed_wrap && signed(result, *to) != signed(number, *from);
                if lost {
                    return self.refuse(place, "undefined: a conversion that loses bits");
                }
                result
            }
            Cast::ZeroExtend if flags.non_negative && signed(number, *from) < 0 => {
                return self.refuse(place, "undefined: a conversion of a negative number");
            }
            Cast::ZeroExtend | Cast::Same => number,
            Cast::SignExtend => mask(signed(number, *from) as u128, *to),
        };
        Ok(Value::Integer(result))
    }

    pub(super) fn compare(
        &self,
        state: &State,
        place: Place,
        comparison: Comparison,
        kind: &Type,
        a: Value,
        b: Value,
    ) -> Step<Value> {
        let bits = match kind {
            Type::Integer(bits) => *bits,
            _ => 64,
        };
        let (a, b) = match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => {
                return Ok(truth(compare_numbers(comparison, bits, a, b)));
            }
            (Value::Symbol(a), b) => return self.compare_symbols(place, comparison, a, &b, false),
            (a, Value::Symbol(b)) => return self.compare_symbols(place, comparison, b, &a, true),
            (Value::Pointer(a), Value::Pointer(b)) => (a, b),
            // a handle or an address in an integer, beside a number
            (Value::Pointer(a), Value::Integer(b)) => {
                (a, Pointer { base: Base::Number, offset: b as i64 })
            }
            (Value::Integer(a), Value::Pointer(b)) => {
                (Pointer { base: Base::Number, offset: a as i64 }, b)
            }
            _ => return self.refuse(place, "a comparison of an undefined value"),
        };
        // a pointer has no value any more when what it points to has ended (C17 6.2.4, 2)
        let ended = |pointer: Pointer| {
            pointer.base == Base::Ended
                || state.object(pointer.base).is_some_and(|object| object.dead)
        };
        // its bits are not those of null, but no compiler has to keep them: it is looked at what happens
        // then, and nothing is proved
        let null = |pointer: Pointer| pointer == Pointer::NULL;
        if let Comparison::Equal | Comparison::NotEqual = comparison
            && (null(a) && ended(b) || null(b) && ended(a))
        {
            self.ended.set(self.ended.get().or(Some(place)));
            return Ok(truth(comparison == Comparison::NotEqual));
        }
        if ended(a) || ended(b) {
            return self.refuse(
                place,
                "undefined: a comparison of a pointer to an object whose lifetime has ended",
            );
        }
        if a.base == b.base {
            if self.ambiguous.contains(&a.base) {
                let what = "a comparison of addresses of string literals that may or may not be one object";
                return self.refuse(place, what);
            }
            let (a, b) = (a.offset as u64, b.offset as u64);
            return Ok(truth(compare_numbers(comparison, 64, a.into(), b.into())));
        }
        let equal = match comparison {
            Comparison::Equal => true,
            Comparison::NotEqual => false,
            Comparison::Less { .. } => {
                return self.refuse(place, "a comparison of addresses of two variables");
            }
        };
        // what a program cannot name may share its memory with another: the linker merges strings
        let merged = |pointer: Pointer| match pointer.base {
            Base::Global(id) => self.module.globals[id as usize].mergeable,
            base => state.object(base).and_then(|object| object.name).is_some_and(|(id, local)| {
                let name = &self.function(id).registers[local as usize];
                let shape = self.module.shapes.get(id as usize);
                name.starts_with(".compoundliteral")
                    && shape.is_some_and(|shape| shape.literals.iter().any(|l| l.constant))
            }),
        };
        if merged(a) && merged(b) {
            return self.refuse(place, "a comparison of addresses of constants without a name");
        }
        // different variables have different addresses, as long as both are inside their variable
        let inside = |pointer: Pointer| match pointer.base {
            Base::Number => pointer.offset == 0,
            Base::Function(_) | Base::Thread(_) => true,
            base => state
                .object(base)
                .is_some_and(|object| (0..object.size() as i64).contains(&pointer.offset)),
        };
        match inside(a) && inside(b) {
            true => Ok(truth(!equal)),
            false => self.refuse(place, "a comparison that depends on where variables lie"),
        }
    }
}

pub(in crate::explore) fn compare_numbers(
    comparison: Comparison,
    bits: u32,
    a: u128,
    b: u128,
) -> bool {
    let (a, b) = (mask(a, bits), mask(b, bits));
    match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less { signed: as_signed, or_equal, swapped } => {
            let (a, b) = if swapped { (b, a) } else { (a, b) };
            match as_signed {
                true => {
                    let (a, b) = (signed(a, bits), signed(b, bits));
                    a < b || or_equal && a == b
                }
                false => a < b || or_equal && a == b,
            }
        }
    }
}
