//! Two's complement arithmetic as gates. Words are literals, lowest bit first.

use crate::cnf::{Cnf, FALSE, Lit, TRUE};

/// The lowest bits of a number, which may be negative.
pub(crate) fn constant(value: i128, width: usize) -> Vec<Lit> {
    (0..width).map(|bit| Lit::from(value >> bit.min(127) & 1 == 1)).collect()
}

/// The number, if all bits are known.
pub(crate) fn known(bits: &[Lit]) -> Option<i128> {
    let mut value = 0i128;
    for (place, bit) in bits.iter().enumerate() {
        if bit.known()? {
            let last = place + 1 == bits.len();
            value = if last { value - (1 << place) } else { value + (1 << place) };
        }
    }
    Some(value)
}

/// Same value, more bits (or fewer, when the value fits).
pub(crate) fn sign_extend(bits: &[Lit], width: usize) -> Vec<Lit> {
    let sign = *bits.last().expect("words have at least one bit");
    (0..width).map(|place| bits.get(place).copied().unwrap_or(sign)).collect()
}

impl Cnf {
    pub(crate) fn add(&mut self, a: &[Lit], b: &[Lit], carry: Lit) -> Vec<Lit> {
        let mut carry = carry;
        let mut sum = Vec::with_capacity(a.len());
        for (&a, &b) in a.iter().zip(b) {
            let half = self.xor(a, b);
            sum.push(self.xor(half, carry));
            carry = self.majority(a, b, carry);
        }
        sum
    }

    pub(crate) fn sub(&mut self, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
        let b: Vec<Lit> = b.iter().map(|&bit| !bit).collect();
        self.add(a, &b, TRUE)
    }

    pub(crate) fn neg(&mut self, a: &[Lit]) -> Vec<Lit> {
        self.sub(&constant(0, a.len()), a)
    }

    pub(crate) fn mux(&mut self, condition: Lit, then: &[Lit], otherwise: &[Lit]) -> Vec<Lit> {
        then.iter().zip(otherwise).map(|(&a, &b)| self.ite(condition, a, b)).collect()
    }

    pub(crate) fn mul(&mut self, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
        // the factor with more known bits selects the summands
        let unknown = |word: &[Lit]| word.iter().filter(|bit| bit.known().is_none()).count();
        let (a, b) = if unknown(a) < unknown(b) { (b, a) } else { (a, b) };
        let mut sum = constant(0, a.len());
        for (place, &selected) in b.iter().enumerate() {
            if selected == FALSE {
                continue;
            }
            let summand: Vec<Lit> =
                a[..a.len() - place].iter().map(|&bit| self.and(bit, selected)).collect();
            let high = self.add(&sum[place..], &summand, FALSE);
            sum.splice(place.., high);
        }
        sum
    }

    pub(crate) fn bits_equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let same: Vec<Lit> = a.iter().zip(b).map(|(&a, &b)| !self.xor(a, b)).collect();
        self.and_all(&same)
    }

    /// Unsigned `a < b`, or `a <= b` when `or_equal`.
    pub(crate) fn unsigned_less(&mut self, a: &[Lit], b: &[Lit], or_equal: bool) -> Lit {
        let mut less = Lit::from(or_equal);
        for (&a, &b) in a.iter().zip(b) {
            // the higher bit decides, or what the lower bits say
            less = self.majority(!a, b, less);
        }
        less
    }

    /// Signed `a < b`, or `a <= b` when `or_equal`.
    pub(crate) fn signed_less(&mut self, a: &[Lit], b: &[Lit], or_equal: bool) -> Lit {
        let flip = |word: &[Lit]| {
            let mut word = word.to_vec();
            if let Some(sign) = word.last_mut() {
                *sign = !*sign;
            }
            word
        };
        self.unsigned_less(&flip(a), &flip(b), or_equal)
    }

    /// Quotient and remainder; division by zero gives all ones and `a`, as SMT-LIB has it.
    pub(crate) fn unsigned_divide(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
        let width = a.len();
        let mut divisor = b.to_vec();
        divisor.push(FALSE);
        let mut quotient = vec![FALSE; width];
        let mut remainder = vec![FALSE; width + 1];
        for place in (0..width).rev() {
            remainder.pop();
            remainder.insert(0, a[place]);
            let fits = self.unsigned_less(&divisor, &remainder, true);
            let smaller = self.sub(&remainder, &divisor);
            remainder = self.mux(fits, &smaller, &remainder);
            quotient[place] = fits;
        }
        remainder.pop();
        (quotient, remainder)
    }

    fn negate_if(&mut self, condition: Lit, a: &[Lit]) -> Vec<Lit> {
        let negative = self.neg(a);
        self.mux(condition, &negative, a)
    }

    /// Quotient rounded to zero, and the remainder with the sign of `a`.
    pub(crate) fn signed_divide(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
        let (sign_a, sign_b) = (a[a.len() - 1], b[b.len() - 1]);
        let (size_a, size_b) = (self.negate_if(sign_a, a), self.negate_if(sign_b, b));
        let (quotient, remainder) = self.unsigned_divide(&size_a, &size_b);
        let differ = self.xor(sign_a, sign_b);
        (self.negate_if(differ, &quotient), self.negate_if(sign_a, &remainder))
    }

    /// `a` shifted by the unsigned number `by`, bits that come in are `fill`.
    pub(crate) fn shift(&mut self, a: &[Lit], by: &[Lit], left: bool, fill: Lit) -> Vec<Lit> {
        let width = a.len();
        let mut word = a.to_vec();
        let mut too_far = FALSE;
        for (stage, &selected) in by.iter().enumerate() {
            let Some(distance) = 1usize.checked_shl(stage as u32).filter(|&d| d < width) else {
                too_far = self.or(too_far, selected);
                continue;
            };
            let moved: Vec<Lit> = (0..width)
                .map(|place| {
                    let from =
                        if left { place.checked_sub(distance) } else { Some(place + distance) };
                    from.and_then(|from| word.get(from)).copied().unwrap_or(fill)
                })
                .collect();
            word = self.mux(selected, &moved, &word);
        }
        self.mux(too_far, &vec![fill; width], &word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cadical_sys::Status;

    /// The circuit's value for constants must be computed by folding alone.
    fn number(bits: &[Lit]) -> i128 {
        known(bits).expect("constants fold")
    }

    #[test]
    fn circuits_fold_on_constants() {
        let mut cnf = Cnf::new();
        for a in -8i128..8 {
            for b in -8i128..8 {
                let (x, y) = (constant(a, 4), constant(b, 4));
                let wrap = |value: i128| (value + 8).rem_euclid(16) - 8;
                let unsigned = |value: i128| value.rem_euclid(16);
                assert_eq!(number(&cnf.add(&x, &y, FALSE)), wrap(a + b));
                assert_eq!(number(&cnf.sub(&x, &y)), wrap(a - b));
                assert_eq!(number(&cnf.mul(&x, &y)), wrap(a * b));
                assert_eq!(cnf.signed_less(&x, &y, false), Lit::from(a < b));
                assert_eq!(cnf.signed_less(&x, &y, true), Lit::from(a <= b));
                let less = unsigned(a) < unsigned(b);
                assert_eq!(cnf.unsigned_less(&x, &y, false), Lit::from(less));
                let (quotient, remainder) = cnf.unsigned_divide(&x, &y);
                let (q, r) = match unsigned(b) {
                    0 => (15, unsigned(a)),
                    b => (unsigned(a) / b, unsigned(a) % b),
                };
                assert_eq!((number(&quotient), number(&remainder)), (wrap(q), wrap(r)));
                let (quotient, remainder) = cnf.signed_divide(&x, &y);
                let (q, r) = match b {
                    0 => (if a < 0 { 1 } else { -1 }, a),
                    b => (a / b, a % b),
                };
                assert_eq!((number(&quotient), number(&remainder)), (wrap(q), wrap(r)));
                let by = unsigned(b);
                let left = cnf.shift(&x, &y, true, FALSE);
                assert_eq!(number(&left), if by < 4 { wrap(a << by) } else { 0 });
                let right = cnf.shift(&x, &y, false, x[3]);
                assert_eq!(number(&right), a >> by);
            }
        }
    }

    #[test]
    fn a_product_is_factored() {
        let mut cnf = Cnf::new();
        let [p, q]: [Vec<Lit>; 2] = std::array::from_fn(|_| (0..12).map(|_| cnf.fresh()).collect());
        let product = cnf.mul(&p, &q);
        let right = cnf.bits_equal(&product, &constant(7 * 13 * 17, 12));
        let large = cnf.unsigned_less(&constant(13, 12), &p, false);
        let small = cnf.unsigned_less(&p, &constant(80, 12), false);
        for literal in [right, large, small] {
            cnf.clause(&[literal]);
        }
        assert_eq!(cnf.sat.solve(), Status::SATISFIABLE);
        let mut value = |word: &[Lit]| {
            word.iter().rev().fold(0, |n, b| 2 * n + u64::from(cnf.sat.val(b.0) > 0))
        };
        assert_eq!(value(&p) * value(&q) % 4096, 7 * 13 * 17);
    }
}
