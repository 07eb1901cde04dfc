//! Numbers that take few values, in the order encoding: one literal for each step of the ladder.
//!
//! With the sorted values `v0 < v1 < ...` there is a literal for "at least `v1`", "at least `v2`", and
//! so on, each implying the one below. A comparison with a constant is a literal, an equality two,
//! and addition propagates bounds; on the papers' counters this is five to ten times faster than
//! bits (solving.md). Bit-vectors are read as signed numbers.

use std::rc::Rc;

use foretell_trace::{Operator, ScalarSort, Sort, Value};

use crate::cnf::{Cnf, FALSE, Lit, TRUE};

/// A ladder has at most so many values.
pub(crate) const FEW: usize = 256;
/// An operation on ladders looks at so many pairs at most.
pub(crate) const PAIRS: usize = 1 << 13;

/// A number with few values.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// Sorted, at least one.
    pub(crate) values: Rc<[i128]>,
    /// `steps[i]`: at least `values[i + 1]`.
    pub(crate) steps: Rc<[Lit]>,
}

/// The number that a value is.
pub(crate) fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => Some(*value),
        Value::BitVec { width, bits } => {
            let shift = 64 - u32::from(*width);
            Some(i128::from(((bits << shift) as i64) >> shift))
        }
        _ => None,
    }
}

/// The value of the sort that a number is.
pub(crate) fn value(sort: Sort, number: i128) -> Option<Value> {
    match sort {
        Sort::Scalar(ScalarSort::Int) => Some(Value::Int(number)),
        Sort::Scalar(ScalarSort::BitVec(width)) => Some(Value::bit_vec(width, number as u64)),
        _ => None,
    }
}

impl Ladder {
    pub(crate) fn constant(value: i128) -> Self {
        Self { values: [value].into(), steps: [].into() }
    }

    /// A new number that has one of the values, which are sorted.
    pub(crate) fn fresh(cnf: &mut Cnf, values: Rc<[i128]>) -> Self {
        let steps: Rc<[Lit]> = values[1..].iter().map(|_| cnf.fresh()).collect();
        for pair in steps.windows(2) {
            cnf.clause(&[!pair[1], pair[0]]);
        }
        Self { values, steps }
    }

    /// The number is at least `bound`.
    pub(crate) fn at_least(&self, bound: i128) -> Lit {
        match self.values.partition_point(|&value| value < bound) {
            0 => TRUE,
            all if all == self.values.len() => FALSE,
            step => self.steps[step - 1],
        }
    }

    /// The number is more than `bound`.
    pub(crate) fn more_than(&self, bound: i128) -> Lit {
        bound.checked_add(1).map_or(FALSE, |next| self.at_least(next))
    }

    /// The literals that together say that the number is the value with this index.
    pub(crate) fn is(&self, index: usize) -> [Lit; 2] {
        let low = index.checked_sub(1).map_or(TRUE, |step| self.steps[step]);
        let high = self.steps.get(index).map_or(TRUE, |&step| !step);
        [low, high]
    }

    pub(crate) fn equals(&self, cnf: &mut Cnf, value: i128) -> Lit {
        match self.values.binary_search(&value) {
            Err(_) => FALSE,
            Ok(index) => {
                let [low, high] = self.is(index);
                cnf.and(low, high)
            }
        }
    }

    pub(crate) fn less(&self, cnf: &mut Cnf, other: &Ladder, or_equal: bool) -> Lit {
        // for every value: at least that implies that the other is more
        let mut parts = Vec::with_capacity(self.values.len());
        for (index, &value) in self.values.iter().enumerate() {
            let reached = self.is(index)[0];
            let beyond = if or_equal { other.at_least(value) } else { other.more_than(value) };
            parts.push(cnf.or(!reached, beyond));
        }
        cnf.and_all(&parts)
    }

    pub(crate) fn same(&self, cnf: &mut Cnf, other: &Ladder) -> Lit {
        match (&*self.values, &*other.values) {
            (_, [value]) => self.equals(cnf, *value),
            ([value], _) => other.equals(cnf, *value),
            _ => {
                let (up, down) = (self.less(cnf, other, true), other.less(cnf, self, true));
                cnf.and(up, down)
            }
        }
    }

    /// The guard implies that both are equal.
    pub(crate) fn same_if(&self, cnf: &mut Cnf, guard: &[Lit], other: &Ladder) {
        let mut bounds: Vec<i128> = self.values.iter().chain(&*other.values).copied().collect();
        bounds.sort_unstable();
        bounds.dedup();
        for &bound in &bounds {
            cnf.equal_if(guard, self.at_least(bound), other.at_least(bound));
        }
    }

    pub(crate) fn negate(&self) -> Option<Self> {
        let values: Option<Rc<[i128]>> =
            self.values.iter().rev().map(|value| value.checked_neg()).collect();
        Some(Self { values: values?, steps: self.steps.iter().rev().map(|&step| !step).collect() })
    }

    /// The number times a constant that is not zero.
    pub(crate) fn scale(&self, factor: i128) -> Option<Self> {
        let positive = if factor < 0 { self.negate()? } else { self.clone() };
        let size = factor.checked_abs()?;
        let values: Option<Rc<[i128]>> =
            positive.values.iter().map(|value| value.checked_mul(size)).collect();
        Some(Self { values: values?, ..positive })
    }

    /// The sum, unless it takes too many values or pairs.
    pub(crate) fn plus(&self, cnf: &mut Cnf, other: &Ladder) -> Option<Self> {
        if let [shift] = *other.values {
            let values: Option<Rc<[i128]>> =
                self.values.iter().map(|value| value.checked_add(shift)).collect();
            return Some(Self { values: values?, steps: self.steps.clone() });
        }
        if self.values.len() == 1 {
            return other.plus(cnf, self);
        }
        let values = combine(&self.values, &other.values, i128::checked_add)?;
        let sum = Ladder::fresh(cnf, values);
        for (i, &a) in self.values.iter().enumerate() {
            for (j, &b) in other.values.iter().enumerate() {
                let ([low_a, high_a], [low_b, high_b]) = (self.is(i), other.is(j));
                cnf.clause(&[!low_a, !low_b, sum.at_least(a + b)]);
                cnf.clause(&[!high_a, !high_b, !sum.more_than(a + b)]);
            }
        }
        Some(sum)
    }

    /// Any operator, as the table of its results; `None` when it is too large or has gaps.
    pub(crate) fn table(
        cnf: &mut Cnf,
        operator: Operator,
        sort: Sort,
        arguments: &[(&Ladder, Sort)],
    ) -> Option<Self> {
        let results = results(operator, arguments.iter().map(|&(l, s)| (&*l.values, s)))?;
        let mut values = results.clone();
        values.sort_unstable();
        values.dedup();
        if values.len() > FEW {
            return None;
        }
        debug_assert!(value(sort, 0).is_some());
        let result = Ladder::fresh(cnf, values.into());
        let mut counter = vec![0usize; arguments.len()];
        for value in results {
            let mut clause = Vec::with_capacity(2 * arguments.len() + 1);
            for (&index, (argument, _)) in counter.iter().zip(arguments) {
                clause.extend(argument.is(index).map(|literal| !literal));
            }
            let bounds = [result.at_least(value), !result.more_than(value)];
            for bound in bounds {
                clause.push(bound);
                cnf.clause(&clause);
                clause.pop();
            }
            advance(&mut counter, arguments.iter().map(|(ladder, _)| ladder.values.len()));
        }
        Some(result)
    }

    /// Two's complement of so many bits; the values must fit.
    pub(crate) fn bits(&self, cnf: &mut Cnf, width: usize) -> Vec<Lit> {
        let bit = |value: i128, place: usize| value >> place.min(127) & 1 == 1;
        (0..width)
            .map(|place| {
                let first = bit(self.values[0], place);
                if self.values.iter().all(|&value| bit(value, place) == first) {
                    return Lit::from(first);
                }
                let literal = cnf.fresh();
                for (index, &value) in self.values.iter().enumerate() {
                    let [low, high] = self.is(index);
                    let literal = if bit(value, place) { literal } else { !literal };
                    cnf.clause(&[!low, !high, literal]);
                }
                literal
            })
            .collect()
    }

    /// So many bits hold every value.
    pub(crate) fn width(&self) -> usize {
        width(self.values[0]).max(width(self.values[self.values.len() - 1]))
    }
}

/// Bits that hold the number in two's complement.
pub(crate) fn width(number: i128) -> usize {
    let size = if number < 0 { !number } else { number };
    128 - size.leading_zeros() as usize + 1
}

fn advance(
    counter: &mut [usize],
    sizes: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
) {
    for (place, size) in counter.iter_mut().zip(sizes).rev() {
        *place += 1;
        if *place < size {
            return;
        }
        *place = 0;
    }
}

fn combine(
    a: &[i128],
    b: &[i128],
    operation: impl Fn(i128, i128) -> Option<i128>,
) -> Option<Rc<[i128]>> {
    if a.len() * b.len() > PAIRS {
        return None;
    }
    let values: Option<Vec<i128>> = a
        .iter()
        .flat_map(|&a| b.iter().map(move |&b| (a, b)))
        .map(|(a, b)| operation(a, b))
        .collect();
    let mut values = values?;
    values.sort_unstable();
    values.dedup();
    (values.len() <= FEW).then(|| values.into())
}

/// The operator's results on all combinations, the last argument changing fastest; `None` when
/// there are too many or one has no value.
pub(crate) fn results<'a>(
    operator: Operator,
    arguments: impl Iterator<Item = (&'a [i128], Sort)>,
) -> Option<Vec<i128>> {
    let mut columns: Vec<Vec<Value>> = Vec::new();
    let mut combinations = 1usize;
    for (numbers, sort) in arguments {
        let column: Option<Vec<Value>> = numbers.iter().map(|&n| value(sort, n)).collect();
        combinations = combinations.checked_mul(numbers.len()).filter(|&all| all <= PAIRS)?;
        columns.push(column?);
    }
    let mut counter = vec![0usize; columns.len()];
    let mut results = Vec::with_capacity(combinations);
    for _ in 0..combinations {
        let row: Vec<&Value> =
            counter.iter().zip(&columns).map(|(&i, column)| &column[i]).collect();
        results.push(number(&operator.evaluate(&row)?)?);
        advance(&mut counter, columns.iter().map(Vec::len));
    }
    Some(results)
}
