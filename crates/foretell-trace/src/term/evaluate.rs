//! Evaluation: what a term is worth when its leaves have values.

use super::value::{mask, signed};
use super::{Operator, Rational, Sort, Term, TermStore, Value};
use crate::id::TermId;
use std::collections::HashMap;

/// Gives leaves their values.
pub trait Environment {
    /// The value of a leaf (never [`Term::Constant`] or [`Term::Apply`]); `None` when it has none.
    fn leaf(&self, leaf: &Term) -> Option<Value>;
}

impl<F: Fn(&Term) -> Option<Value>> Environment for F {
    fn leaf(&self, leaf: &Term) -> Option<Value> {
        self(leaf)
    }
}

/// Why a term has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// The leaf has no value.
    Unknown(TermId),
    /// An integer or real left the range of 128 bits.
    Overflow(TermId),
    /// SMT-LIB leaves integer and real division by zero open.
    DivisionByZero(TermId),
}

impl TermStore {
    /// The value of `term`. Works with an explicit stack: depth is bounded by memory only.
    pub fn evaluate(
        &self,
        term: TermId,
        environment: &impl Environment,
    ) -> Result<Value, EvaluateError> {
        let mut values = HashMap::new();
        self.evaluate_further(term, environment, &mut values)
    }

    /// The same for many terms of an environment in which leaves keep their values: what was computed for
    /// others, and stands in `values`, is not computed again.
    pub fn evaluate_further(
        &self,
        term: TermId,
        environment: &impl Environment,
        values: &mut HashMap<TermId, Value>,
    ) -> Result<Value, EvaluateError> {
        let mut stack = vec![term];
        while let Some(&top) = stack.last() {
            if values.contains_key(&top) {
                stack.pop();
                continue;
            }
            let value = match self.term(top) {
                Term::Constant(value) => value.clone(),
                Term::Apply(operator, arguments) => {
                    let before = stack.len();
                    stack
                        .extend(arguments.iter().filter(|argument| !values.contains_key(argument)));
                    if stack.len() > before {
                        continue;
                    }
                    let arguments: Vec<&Value> =
                        arguments.iter().map(|argument| &values[argument]).collect();
                    apply(*operator, &arguments).map_err(|failure| match failure {
                        Failure::Overflow => EvaluateError::Overflow(top),
                        Failure::DivisionByZero => EvaluateError::DivisionByZero(top),
                    })?
                }
                leaf => environment.leaf(leaf).ok_or(EvaluateError::Unknown(top))?,
            };
            values.insert(top, value);
            stack.pop();
        }
        Ok(values.get(&term).expect("the loop ends when the root has a value").clone())
    }

    /// The value of every term, each computed once; `None` where it has none. Arrays that are not
    /// constants are left out: a chain of stores would take the square of its length.
    pub fn evaluate_all(&self, environment: &impl Environment) -> Vec<Option<Value>> {
        let mut values: Vec<Option<Value>> = Vec::with_capacity(self.len());
        for id in (0..self.len()).map(TermId::from) {
            let value = match self.term(id) {
                Term::Constant(value) => Some(value.clone()),
                Term::Apply(..) if matches!(self.sort(id), Sort::Array { .. }) => None,
                Term::Apply(operator, arguments) => {
                    // Arguments are older than the terms that use them.
                    let arguments: Option<Vec<&Value>> = arguments
                        .iter()
                        .map(|argument| values[argument.index()].as_ref())
                        .collect();
                    arguments.and_then(|arguments| apply(*operator, &arguments).ok())
                }
                leaf => environment.leaf(leaf),
            };
            values.push(value);
        }
        values
    }
}

impl Operator {
    /// The operator on values whose sorts fit; `None` when the result has no value (see
    /// [`EvaluateError`]).
    pub fn evaluate(self, arguments: &[&Value]) -> Option<Value> {
        apply(self, arguments).ok()
    }
}

pub(super) enum Failure {
    Overflow,
    DivisionByZero,
}

/// The operator on well-sorted values.
pub(super) fn apply(operator: Operator, arguments: &[&Value]) -> Result<Value, Failure> {
    use Operator::*;
    let truth = |index: usize| {
        arguments[index].as_bool().expect("sorts were checked when the term was built")
    };
    let all_truths = || (0..arguments.len()).map(truth);
    Ok(match operator {
        Not => Value::Bool(!truth(0)),
        And => Value::Bool(all_truths().all(|value| value)),
        Or => Value::Bool(all_truths().any(|value| value)),
        Xor => Value::Bool(truth(0) ^ truth(1)),
        Implies => Value::Bool(!truth(0) || truth(1)),
        Ite => arguments[if truth(0) { 1 } else { 2 }].clone(),
        Eq => Value::Bool(arguments[0] == arguments[1]),
        Add | Sub | Neg | Mul | IntDiv | Mod | Abs | RealDiv | ToReal | ToInt | Lt | Le => {
            arithmetic(operator, arguments)?
        }
        Select | Store => {
            let Value::Array(array) = arguments[0] else { unreachable!("sorts were checked") };
            match operator {
                Select => array.select(arguments[1]).clone(),
                _ => Value::Array(Box::new(
                    array.as_ref().clone().store(arguments[1].clone(), arguments[2].clone()),
                )),
            }
        }
        _ => bit_vector(operator, arguments),
    })
}

fn arithmetic(operator: Operator, arguments: &[&Value]) -> Result<Value, Failure> {
    use Operator::*;
    let overflow = Failure::Overflow;
    if let Value::Int(first) = *arguments[0] {
        let rest = arguments[1..].iter().map(|argument| match argument {
            Value::Int(value) => *value,
            _ => unreachable!("sorts were checked"),
        });
        let second = rest.clone().next();
        let pair = || (first, second.expect("binary operator"));
        return Ok(match operator {
            Add => Value::Int(rest.clone().try_fold(first, i128::checked_add).ok_or(overflow)?),
            Sub => Value::Int(rest.clone().try_fold(first, i128::checked_sub).ok_or(overflow)?),
            Mul => Value::Int(rest.clone().try_fold(first, i128::checked_mul).ok_or(overflow)?),
            Neg => Value::Int(first.checked_neg().ok_or(overflow)?),
            Abs => Value::Int(first.checked_abs().ok_or(overflow)?),
            IntDiv | Mod => match pair() {
                (_, 0) => return Err(Failure::DivisionByZero),
                (a, b) if operator == IntDiv => {
                    Value::Int(a.checked_div_euclid(b).ok_or(overflow)?)
                }
                (a, b) => Value::Int(a.checked_rem_euclid(b).ok_or(overflow)?),
            },
            ToReal => Value::Real(Rational::integer(first)),
            Lt => Value::Bool(pair().0 < pair().1),
            Le => Value::Bool(pair().0 <= pair().1),
            _ => unreachable!("sorts were checked"),
        });
    }
    let real = |value: &Value| match value {
        Value::Real(value) => *value,
        _ => unreachable!("sorts were checked"),
    };
    let first = real(arguments[0]);
    let fold = |step: fn(Rational, Rational) -> Option<Rational>| {
        arguments[1..].iter().map(|value| real(value)).try_fold(first, step).map(Value::Real)
    };
    Ok(match operator {
        Add => fold(Rational::checked_add).ok_or(overflow)?,
        Sub => fold(|a, b| a.checked_add(b.checked_neg()?)).ok_or(overflow)?,
        Mul => fold(Rational::checked_mul).ok_or(overflow)?,
        RealDiv => match arguments[1..].iter().any(|value| real(value).numerator() == 0) {
            true => return Err(Failure::DivisionByZero),
            false => fold(Rational::checked_div).ok_or(overflow)?,
        },
        Neg => Value::Real(first.checked_neg().ok_or(overflow)?),
        Abs if first.numerator() >= 0 => Value::Real(first),
        Abs => Value::Real(first.checked_neg().ok_or(overflow)?),
        ToInt => Value::Int(first.floor()),
        Lt => Value::Bool(first < real(arguments[1])),
        Le => Value::Bool(first <= real(arguments[1])),
        _ => unreachable!("sorts were checked"),
    })
}

fn bit_vector(operator: Operator, arguments: &[&Value]) -> Value {
    use Operator::*;
    let bits = |index: usize| match arguments[index] {
        Value::BitVec { width, bits } => (*width, *bits),
        _ => unreachable!("sorts were checked"),
    };
    let (width, a) = bits(0);
    let vector = |bits: u64| Value::bit_vec(width, bits);
    match operator {
        BvNot => return vector(!a),
        BvNeg => return vector(a.wrapping_neg()),
        Extract { high, low } => return Value::bit_vec(high - low + 1, a >> low),
        ZeroExtend(by) => return Value::bit_vec(width + by, a),
        SignExtend(by) => return Value::bit_vec(width + by, signed(width, a) as u64),
        _ => {}
    }
    let (other_width, b) = bits(1);
    let (signed_a, signed_b) = (signed(width, a), signed(other_width, b));
    match operator {
        BvAnd => vector(a & b),
        BvOr => vector(a | b),
        BvXor => vector(a ^ b),
        BvAdd => vector(a.wrapping_add(b)),
        BvSub => vector(a.wrapping_sub(b)),
        BvMul => vector(a.wrapping_mul(b)),
        BvUdiv => vector(a.checked_div(b).unwrap_or(mask(width))),
        BvUrem => vector(a.checked_rem(b).unwrap_or(a)),
        BvSdiv if b == 0 => vector(if signed_a >= 0 { u64::MAX } else { 1 }),
        BvSdiv => vector(signed_a.wrapping_div(signed_b) as u64),
        BvSrem if b == 0 => vector(a),
        BvSrem => vector(signed_a.wrapping_rem(signed_b) as u64),
        BvShl if b >= u64::from(width) => vector(0),
        BvShl => vector(a << b),
        BvLshr if b >= u64::from(width) => vector(0),
        BvLshr => vector(a >> b),
        BvAshr => vector((signed_a >> b.min(63)) as u64),
        BvUlt => Value::Bool(a < b),
        BvUle => Value::Bool(a <= b),
        BvSlt => Value::Bool(signed_a < signed_b),
        BvSle => Value::Bool(signed_a <= signed_b),
        Concat => Value::bit_vec(width + other_width, (a << other_width) | b),
        _ => unreachable!("sorts were checked"),
    }
}
