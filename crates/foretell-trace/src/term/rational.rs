//! Exact rationals, checked against overflow.

use std::cmp::Ordering;

/// A rational in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rational {
    numerator: i128,
    denominator: i128,
}

impl Rational {
    /// `numerator / denominator`; `None` for a zero denominator or on overflow.
    pub fn new(numerator: i128, denominator: i128) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let divisor = greatest_common_divisor(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i128::try_from(divisor).ok()?;
        let sign = if denominator < 0 { -1 } else { 1 };
        Some(Self {
            numerator: (numerator / divisor).checked_mul(sign)?,
            denominator: (denominator / divisor).checked_mul(sign)?,
        })
    }

    /// The integer as a rational.
    pub fn integer(value: i128) -> Self {
        Self { numerator: value, denominator: 1 }
    }

    /// Numerator in lowest terms.
    pub fn numerator(self) -> i128 {
        self.numerator
    }

    /// Denominator in lowest terms, positive.
    pub fn denominator(self) -> i128 {
        self.denominator
    }

    /// The largest integer that is not larger.
    pub fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    /// Sum, unless it overflows.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left.checked_add(right)?, self.denominator.checked_mul(other.denominator)?)
    }

    /// Negation, unless it overflows.
    pub fn checked_neg(self) -> Option<Self> {
        Some(Self { numerator: self.numerator.checked_neg()?, denominator: self.denominator })
    }

    /// Product, unless it overflows.
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        Self::new(
            self.numerator.checked_mul(other.numerator)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    /// Quotient, unless it overflows or divides by zero.
    pub fn checked_div(self, other: Self) -> Option<Self> {
        Self::new(
            self.numerator.checked_mul(other.denominator)?,
            self.denominator.checked_mul(other.numerator)?,
        )
    }
}

impl PartialOrd for Rational {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rational {
    /// Compares whole parts first, then the reciprocals of the fractions, so nothing overflows.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) =
            ((self.numerator, self.denominator), (other.numerator, other.denominator));
        let mut swapped = false;
        loop {
            let (whole_a, whole_b) = (a.0.div_euclid(a.1), b.0.div_euclid(b.1));
            let (rest_a, rest_b) = (a.0.rem_euclid(a.1), b.0.rem_euclid(b.1));
            let ordering = match whole_a.cmp(&whole_b) {
                Ordering::Equal => match (rest_a, rest_b) {
                    (0, 0) => Ordering::Equal,
                    (0, _) => Ordering::Less,
                    (_, 0) => Ordering::Greater,
                    _ => {
                        (a, b) = ((a.1, rest_a), (b.1, rest_b));
                        swapped = !swapped;
                        continue;
                    }
                },
                different => different,
            };
            return if swapped { ordering.reverse() } else { ordering };
        }
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}
