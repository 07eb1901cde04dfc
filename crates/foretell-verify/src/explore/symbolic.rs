//! The meaning of operations on values that depend on inputs.
//!
//! Whether an operation is defined is decided when it is executed, as for known values: a sum of
//! signed numbers that can leave its type has an outcome in which it does, a violation.

use super::machine::{Kind, Machine, Step, Stop};
use super::memory::{Base, Pointer, Value};
use super::terms::Symbol;
use crate::ir::{Arithmetic, Cast, Comparison, Flags, Place, Type};

impl Machine<'_> {
    fn refused<T>(&self, place: Place, what: &str) -> Step<T> {
        Err(Stop::Refused(place, what.into()))
    }

    /// A value as a term.
    fn term(&self, place: Place, value: &Value, bits: u32) -> Step<Symbol> {
        let term = match value {
            Value::Symbol(term) => *term,
            Value::Integer(number) => self.terms(|terms| terms.number(*number, bits)),
            Value::Pointer(Pointer { base: Base::Number, offset }) => {
                self.terms(|terms| terms.number(*offset as u64 as u128, bits))
            }
            _ => return self.refused(place, "a computation with an address and an input"),
        };
        match self.terms(|terms| terms.bits(term)) == bits {
            true => Ok(term),
            false => self.refused(place, "a computation with inputs of different widths"),
        }
    }

    /// Is the term not zero? Both are looked at.
    pub(super) fn decide_not_zero(&self, place: Place, term: Symbol) -> Step<bool> {
        let truth = self.terms(|terms| match terms.bits(term) {
            1 => term,
            bits => {
                let zero = terms.number(0, bits);
                terms.compare(Comparison::NotEqual, term, zero)
            }
        });
        self.decide(place, truth)
    }

    /// An operation of two integers of which one depends on inputs.
    pub(super) fn symbolic(
        &self,
        place: Place,
        operation: Arithmetic,
        bits: u32,
        a: &Value,
        b: &Value,
        flags: Flags,
    ) -> Step<Value> {
        let (a, b) = (self.term(place, a, bits)?, self.term(place, b, bits)?);
        if flags.exact || flags.disjoint {
            return self.refused(place, "a computation with a promise about inputs");
        }
        match operation {
            Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply => {
                if flags.no_signed_wrap && !self.fits(place, operation, bits, a, b, true)? {
                    return Err(Stop::Violated(Kind::Overflow, place));
                }
                if flags.no_unsigned_wrap && !self.fits(place, operation, bits, a, b, false)? {
                    return self.refused(
                        place,
                        "undefined: an operation whose result breaks its nsw, nuw or exact flag",
                    );
                }
            }
            Arithmetic::DivideUnsigned
            | Arithmetic::RemainderUnsigned
            | Arithmetic::DivideSigned
            | Arithmetic::RemainderSigned => {
                if !self.decide_not_zero(place, b)? {
                    return Err(Stop::Violated(Kind::Division, place));
                }
                let is_signed =
                    matches!(operation, Arithmetic::DivideSigned | Arithmetic::RemainderSigned);
                if is_signed
                    && self.is(place, b, u128::MAX)?
                    && self.is(place, a, 1 << (bits - 1))?
                {
                    return Err(Stop::Violated(Kind::Division, place));
                }
            }
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned => {
                if flags.no_signed_wrap || flags.no_unsigned_wrap {
                    return self.refused(place, "a shift with a promise about inputs");
                }
                let short = self.terms(|terms| {
                    let width = terms.number(bits.into(), bits);
                    let less = Comparison::Less { signed: false, or_equal: false, swapped: false };
                    terms.compare(less, b, width)
                });
                if !self.decide(place, short)? {
                    return self.refused(place, "undefined: a shift by more than the width");
                }
            }
            Arithmetic::And | Arithmetic::Or | Arithmetic::Xor => {}
        }
        Ok(Value::Symbol(self.terms(|terms| terms.compute(operation, a, b))))
    }

    fn is(&self, place: Place, term: Symbol, number: u128) -> Step<bool> {
        let equal = self.terms(|terms| {
            let number = terms.number(number, terms.bits(term));
            terms.compare(Comparison::Equal, term, number)
        });
        self.decide(place, equal)
    }

    /// Is the result of the operation the one that numbers without bounds have?
    fn fits(
        &self,
        place: Place,
        operation: Arithmetic,
        bits: u32,
        a: Symbol,
        b: Symbol,
        signed: bool,
    ) -> Step<bool> {
        if signed && self.terms(|terms| terms.stays_within(operation, a, b)) {
            return Ok(true);
        }
        let wide = if operation == Arithmetic::Multiply { 2 * bits } else { bits + 2 };
        if wide > 128 {
            return self.refused(place, "a computation with wide inputs that may leave their type");
        }
        let cast = if signed { Cast::SignExtend } else { Cast::ZeroExtend };
        let fits = self.terms(|terms| {
            let (wide_a, wide_b) = (terms.convert(cast, a, wide), terms.convert(cast, b, wide));
            let exact = terms.compute(operation, wide_a, wide_b);
            let result = terms.compute(operation, a, b);
            let result = terms.convert(cast, result, wide);
            terms.compare(Comparison::Equal, exact, result)
        });
        self.decide(place, fits)
    }

    /// A comparison of a term with something; `swapped` if the term stands on the right.
    pub(super) fn compare_symbols(
        &self,
        place: Place,
        comparison: Comparison,
        term: Symbol,
        other: &Value,
        swapped: bool,
    ) -> Step<Value> {
        let bits = self.terms(|terms| terms.bits(term));
        let other = self.term(place, other, bits)?;
        let (a, b) = if swapped { (other, term) } else { (term, other) };
        Ok(Value::Symbol(self.terms(|terms| terms.compare(comparison, a, b))))
    }

    /// A term of another type.
    pub(super) fn convert_symbol(
        &self,
        place: Place,
        cast: Cast,
        term: Symbol,
        to: &Type,
        flags: Flags,
    ) -> Step<Value> {
        let bits = match to {
            Type::Integer(bits) => *bits,
            Type::Pointer => 64,
            _ => {
                return self.refused(
                    place,
                    "a conversion of an input to something that is not an integer",
                );
            }
        };
        if flags.no_signed_wrap || flags.no_unsigned_wrap || flags.non_negative {
            return self.refused(place, "a conversion with a promise about inputs");
        }
        if cast == Cast::Same && self.terms(|terms| terms.bits(term)) != bits {
            return self.refused(place, "a conversion of an input to an address");
        }
        Ok(Value::Symbol(self.terms(|terms| terms.convert(cast, term, bits))))
    }
}
