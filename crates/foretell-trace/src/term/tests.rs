//! What is simplified as terms are built, and what is below them.

use super::{Operator, Sort, TermStore, Value};
use crate::id::{TermId, ThreadId};

/// The values that a thread read with its first and second events.
fn reads(terms: &mut TermStore) -> [TermId; 2] {
    [0, 1].map(|index| terms.read_value(ThreadId(0), index, Sort::bit_vec(32)))
}

#[test]
fn what_is_counted_up_again_and_again_stays_one_addition() {
    let mut terms = TermStore::default();
    let [x, _] = reads(&mut terms);
    let constant = |terms: &mut TermStore, bits| terms.constant(Value::bit_vec(32, bits));
    let (one, less) = (constant(&mut terms, 1), constant(&mut terms, u64::from(u32::MAX)));
    let mut sum = x;
    for _ in 0..5 {
        sum = terms.build(Operator::BvAdd, &[sum, one]);
    }
    let five = constant(&mut terms, 5);
    assert_eq!(sum, terms.build(Operator::BvAdd, &[five, x]));
    for _ in 0..5 {
        sum = terms.build(Operator::BvAdd, &[less, sum]);
    }
    assert_eq!(sum, x);
}

#[test]
fn leaves_are_those_below_whatever_is_between() {
    let mut terms = TermStore::default();
    let [x, y] = reads(&mut terms);
    let three = terms.constant(Value::bit_vec(32, 3));
    let mut deep = x;
    for _ in 0..1_000 {
        deep = terms.build(Operator::BvMul, &[deep, three]);
    }
    let both = terms.build(Operator::BvAdd, &[deep, y]);
    let square = terms.build(Operator::BvMul, &[both, deep]);
    assert_eq!(terms.leaves(three), []);
    assert_eq!(terms.leaves(deep), [x]);
    assert_eq!(terms.leaves(square), [x, y]);
}
