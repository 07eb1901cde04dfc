//! Random values and terms of a given sort.

use foretell_trace::id::TermId;
use foretell_trace::term::{ArrayValue, Operator, Rational, ScalarSort, Sort, TermStore, Value};

use crate::random::Random;

/// A value of the sort.
pub fn random_value(random: &mut Random, sort: Sort) -> Value {
    match sort {
        Sort::Scalar(ScalarSort::Bool) => Value::Bool(random.percent(50)),
        Sort::Scalar(ScalarSort::Int) => Value::Int(if random.percent(90) {
            i128::from(random.value() as i64)
        } else {
            i128::from(random.bits()) << 64 | i128::from(random.bits())
        }),
        Sort::Scalar(ScalarSort::Real) => {
            let numerator = i128::from(random.value() as i64);
            let denominator = 1 + i128::from(random.bits() % 9);
            Value::Real(
                Rational::new(numerator, denominator).unwrap_or(Rational::integer(numerator)),
            )
        }
        Sort::Scalar(ScalarSort::BitVec(width)) => Value::bit_vec(width, random.value()),
        Sort::Array { index, element } => {
            let default = random_value(random, element.into());
            let mut array = ArrayValue::constant(index, default);
            for _ in 0..random.below(3) {
                let at = random_value(random, index.into());
                array = array.store(at, random_value(random, element.into()));
            }
            Value::Array(Box::new(array))
        }
    }
}

/// A term of the sort over some of the leaves, at most `depth` operators deep.
pub fn random_term(
    random: &mut Random,
    terms: &mut TermStore,
    sort: Sort,
    leaves: &[TermId],
    depth: usize,
) -> TermId {
    use Operator::*;
    let fitting: Vec<TermId> =
        leaves.iter().copied().filter(|&leaf| terms.sort(leaf) == sort).collect();
    if depth == 0 || random.percent(25) {
        return match random.pick(&fitting) {
            Some(&leaf) if random.percent(80) => leaf,
            _ => {
                let value = random_value(random, sort);
                terms.constant(value)
            }
        };
    }
    let depth = depth - 1;
    if random.percent(10) {
        let condition = random_term(random, terms, Sort::BOOL, leaves, depth);
        let then = random_term(random, terms, sort, leaves, depth);
        let otherwise = random_term(random, terms, sort, leaves, depth);
        return terms.ite(condition, then, otherwise);
    }
    let (operator, arguments): (Operator, Vec<Sort>) = match sort {
        Sort::BOOL => {
            // Compare what the leaves offer.
            let compared = random.pick(leaves).map_or(Sort::INT, |&leaf| terms.sort(leaf));
            match (random.below(8), compared) {
                (0, _) => (Not, vec![Sort::BOOL]),
                (1, _) => (And, vec![Sort::BOOL; 2 + random.below(2)]),
                (2, _) => (Or, vec![Sort::BOOL; 2 + random.below(2)]),
                (3, _) => (Xor, vec![Sort::BOOL; 2]),
                (4, _) => (Eq, vec![compared; 2]),
                (_, Sort::INT | Sort::REAL) => ([Lt, Le][random.below(2)], vec![compared; 2]),
                (_, Sort::Scalar(ScalarSort::BitVec(_))) => {
                    ([BvUlt, BvUle, BvSlt, BvSle][random.below(4)], vec![compared; 2])
                }
                _ => (Eq, vec![compared; 2]),
            }
        }
        Sort::INT => match random.below(8) {
            0 => (Neg, vec![sort]),
            1 => (Abs, vec![sort]),
            2 => (ToInt, vec![Sort::REAL]),
            3 => ([IntDiv, Mod][random.below(2)], vec![sort; 2]),
            _ => ([Add, Sub, Mul][random.below(3)], vec![sort; 2 + random.below(2)]),
        },
        Sort::REAL => match random.below(5) {
            0 => (Neg, vec![sort]),
            1 => (ToReal, vec![Sort::INT]),
            2 => (RealDiv, vec![sort; 2]),
            _ => ([Add, Sub, Mul][random.below(3)], vec![sort; 2]),
        },
        Sort::Scalar(ScalarSort::BitVec(width)) => {
            let part = 1 + random.below(usize::from(width)) as u16;
            match random.below(10) {
                0 => ([BvNot, BvNeg][random.below(2)], vec![sort]),
                1 if part < width => {
                    (Concat, vec![Sort::bit_vec(width - part), Sort::bit_vec(part)])
                }
                2 => (ZeroExtend(width - part), vec![Sort::bit_vec(part)]),
                3 => (SignExtend(width - part), vec![Sort::bit_vec(part)]),
                4 | 5 => {
                    // Cut what the leaves offer to size.
                    let wide = random
                        .pick(leaves)
                        .and_then(|&leaf| terms.sort(leaf).width())
                        .unwrap_or(64)
                        .max(width);
                    let low = random.below(usize::from(wide - width) + 1) as u16;
                    (Extract { high: low + width - 1, low }, vec![Sort::bit_vec(wide)])
                }
                _ => {
                    let operators = [
                        BvAnd, BvOr, BvXor, BvAdd, BvSub, BvMul, BvUdiv, BvUrem, BvSdiv, BvSrem,
                        BvShl, BvLshr, BvAshr,
                    ];
                    (operators[random.below(operators.len())], vec![sort; 2])
                }
            }
        }
        Sort::Array { index, element } => (Store, vec![sort, index.into(), element.into()]),
    };
    if let Some(&array) = random.pick(leaves)
        && let Sort::Array { index, element } = terms.sort(array)
        && Sort::from(element) == sort
    {
        let at = random_term(random, terms, index.into(), leaves, depth);
        return terms.build(Select, &[array, at]);
    }
    let arguments: Vec<TermId> = arguments
        .into_iter()
        .map(|argument| random_term(random, terms, argument, leaves, depth))
        .collect();
    terms.build(operator, &arguments)
}
