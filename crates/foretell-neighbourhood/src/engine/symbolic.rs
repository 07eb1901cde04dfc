//! Terms in a normal form, so that equal values have equal ids.
//!
//! The exploration compares states by the ids of their values. Constants are folded by the term
//! store; here sums become sorted linear forms, comparisons have all variables on the left, and
//! arrays are chains of stores sorted by constant index. What has no constant value stays a term
//! over the inputs (initial values and choices of transition predicates).

use std::collections::{BTreeMap, HashMap};

use foretell_trace::{Operator, Rational, Sort, Term, TermId, TermStore, Value};

/// The term with its leaves replaced, in normal form.
pub(crate) fn evaluate(
    terms: &mut TermStore,
    term: TermId,
    leaf: &mut impl FnMut(&Term) -> Option<TermId>,
) -> TermId {
    let mut done: HashMap<TermId, TermId> = HashMap::new();
    let mut stack = vec![term];
    while let Some(&top) = stack.last() {
        if done.contains_key(&top) {
            stack.pop();
            continue;
        }
        let value = match terms.term(top) {
            Term::Constant(_) => top,
            Term::Apply(operator, arguments) => {
                let operator = *operator;
                let before = stack.len();
                stack.extend(arguments.iter().filter(|argument| !done.contains_key(argument)));
                if stack.len() > before {
                    continue;
                }
                let arguments: Vec<TermId> = arguments.iter().map(|part| done[part]).collect();
                apply(terms, operator, &arguments)
            }
            other => leaf(other).unwrap_or(top),
        };
        done.insert(top, value);
        stack.pop();
    }
    done[&term]
}

/// The operator applied to terms in normal form.
pub(crate) fn apply(terms: &mut TermStore, operator: Operator, arguments: &[TermId]) -> TermId {
    if arguments.iter().all(|&argument| terms.constant_value(argument).is_some()) {
        return terms.build(operator, arguments);
    }
    use Operator::*;
    let sort = terms.sort(arguments[0]);
    let number = sort == Sort::INT || sort == Sort::REAL;
    let normal = match operator {
        Add | Sub | Neg | Mul if number => {
            let sum = Linear::of_apply(terms, operator, arguments);
            sum.and_then(|sum| sum.build(terms, sort))
        }
        Eq | Lt | Le if number => compare(terms, operator, arguments, sort),
        Select => select(terms, arguments[0], arguments[1]),
        Store => store(terms, arguments),
        _ => None,
    };
    normal.unwrap_or_else(|| terms.build(operator, arguments))
}

/// `constant + Σ coefficient · term`.
#[derive(Default)]
struct Linear {
    parts: BTreeMap<TermId, Rational>,
    constant: Option<Rational>,
}

impl Linear {
    fn constant(&self) -> Rational {
        self.constant.unwrap_or(Rational::integer(0))
    }

    fn add_term(&mut self, terms: &TermStore, term: TermId, factor: Rational) -> Option<()> {
        match terms.term(term) {
            Term::Constant(Value::Int(value)) => {
                let value = Rational::integer(*value).checked_mul(factor)?;
                self.constant = Some(self.constant().checked_add(value)?);
            }
            Term::Constant(Value::Real(value)) => {
                self.constant = Some(self.constant().checked_add(value.checked_mul(factor)?)?);
            }
            Term::Apply(Operator::Add, parts) => {
                for &part in parts.clone().iter() {
                    self.add_term(terms, part, factor)?;
                }
            }
            Term::Apply(Operator::Mul, parts) if parts.len() == 2 => {
                match (constant_number(terms, parts[0]), constant_number(terms, parts[1])) {
                    (Some(value), _) => {
                        self.add_term(terms, parts[1], value.checked_mul(factor)?)?
                    }
                    (_, Some(value)) => {
                        self.add_term(terms, parts[0], value.checked_mul(factor)?)?
                    }
                    _ => self.add_part(term, factor)?,
                }
            }
            _ => self.add_part(term, factor)?,
        }
        Some(())
    }

    fn add_part(&mut self, term: TermId, factor: Rational) -> Option<()> {
        let zero = Rational::integer(0);
        let sum = self.parts.get(&term).copied().unwrap_or(zero).checked_add(factor)?;
        if sum == zero {
            self.parts.remove(&term);
        } else {
            self.parts.insert(term, sum);
        }
        Some(())
    }

    fn of_apply(terms: &TermStore, operator: Operator, arguments: &[TermId]) -> Option<Self> {
        let mut sum = Self::default();
        let (one, minus) = (Rational::integer(1), Rational::integer(-1));
        match operator {
            Operator::Mul => {
                let mut factor = one;
                let mut rest = None;
                for &argument in arguments {
                    match constant_number(terms, argument) {
                        Some(value) => factor = factor.checked_mul(value)?,
                        None if rest.is_none() => rest = Some(argument),
                        None => return None,
                    }
                }
                sum.add_term(terms, rest?, factor)?;
            }
            Operator::Neg => sum.add_term(terms, arguments[0], minus)?,
            _ => {
                for (number, &argument) in arguments.iter().enumerate() {
                    let negative = operator == Operator::Sub && number > 0;
                    sum.add_term(terms, argument, if negative { minus } else { one })?;
                }
            }
        }
        Some(sum)
    }

    fn build(&self, terms: &mut TermStore, sort: Sort) -> Option<TermId> {
        let mut parts = Vec::with_capacity(self.parts.len() + 1);
        for (&term, &factor) in &self.parts {
            parts.push(if factor == Rational::integer(1) {
                term
            } else {
                let factor = number_term(terms, factor, sort)?;
                terms.build(Operator::Mul, &[factor, term])
            });
        }
        if self.constant() != Rational::integer(0) || parts.is_empty() {
            parts.push(number_term(terms, self.constant(), sort)?);
        }
        Some(if parts.len() == 1 { parts[0] } else { terms.build(Operator::Add, &parts) })
    }
}

fn constant_number(terms: &TermStore, term: TermId) -> Option<Rational> {
    match terms.constant_value(term)? {
        Value::Int(value) => Some(Rational::integer(*value)),
        Value::Real(value) => Some(*value),
        _ => None,
    }
}

fn number_term(terms: &mut TermStore, value: Rational, sort: Sort) -> Option<TermId> {
    Some(match sort {
        Sort::INT if value.denominator() == 1 => terms.int(value.numerator()),
        Sort::REAL => terms.constant(Value::Real(value)),
        _ => return None,
    })
}

/// `left ⋈ right` as `Σ aᵢ·tᵢ ⋈ constant` with a positive first coefficient.
fn compare(
    terms: &mut TermStore,
    operator: Operator,
    arguments: &[TermId],
    sort: Sort,
) -> Option<TermId> {
    let mut sum = Linear::of_apply(terms, Operator::Sub, arguments)?;
    let bound = sum.constant().checked_neg()?;
    sum.constant = None;
    let Some(&first) = sum.parts.values().next() else {
        let zero = Rational::integer(0);
        let holds = match operator {
            Operator::Eq => zero == bound,
            Operator::Lt => zero < bound,
            _ => zero <= bound,
        };
        return Some(terms.bool(holds));
    };
    if let Some(whole) = whole_number(terms, operator, &sum, bound) {
        return Some(whole);
    }
    let flip = first < Rational::integer(0);
    if flip {
        for factor in sum.parts.values_mut() {
            *factor = factor.checked_neg()?;
        }
    }
    let left = sum.build(terms, sort)?;
    let bound = if flip { bound.checked_neg()? } else { bound };
    let mut number = |value: Rational| number_term(terms, value, sort);
    // only `≤ bound` and its negation remain, so that opposite conditions cancel
    let one = Rational::integer(1);
    let (limit, strict, negated) = match (operator, flip) {
        (Operator::Eq, _) => {
            let bound = number(bound)?;
            return Some(terms.build(Operator::Eq, &[left, bound]));
        }
        (Operator::Le, false) => (bound, false, false), // s ≤ b
        (Operator::Lt, false) if sort == Sort::INT => {
            (bound.checked_add(one.checked_neg()?)?, false, false)
        }
        (Operator::Lt, false) => (bound, true, false), // s < b
        (Operator::Lt, true) => (bound, false, true),  // s > b  =  ¬(s ≤ b)
        (_, _) if sort == Sort::INT => {
            (bound.checked_add(one.checked_neg()?)?, false, true) // s ≥ b = ¬(s ≤ b−1)
        }
        (_, _) => (bound, true, true), // s ≥ b = ¬(s < b)
    };
    let limit = number(limit)?;
    let operator = if strict { Operator::Lt } else { Operator::Le };
    let term = terms.build(operator, &[left, limit]);
    Some(if negated { terms.not(term) } else { term })
}

/// `to_real(t) = b` as a statement about the integer `t`.
fn whole_number(
    terms: &mut TermStore,
    operator: Operator,
    sum: &Linear,
    bound: Rational,
) -> Option<TermId> {
    let (&term, &factor) = sum.parts.iter().next().filter(|_| sum.parts.len() == 1)?;
    let Term::Apply(Operator::ToReal, inner) = terms.term(term) else { return None };
    if operator != Operator::Eq {
        return None;
    }
    let inner = inner[0];
    let bound = bound.checked_div(factor)?;
    if bound.denominator() != 1 {
        return Some(terms.bool(false));
    }
    let value = terms.int(bound.numerator());
    Some(terms.build(Operator::Eq, &[inner, value]))
}

fn select(terms: &mut TermStore, array: TermId, index: TermId) -> Option<TermId> {
    let mut array = array;
    while let Term::Apply(Operator::Store, parts) = terms.term(array) {
        if parts[1] == index {
            return Some(parts[2]);
        }
        if terms.constant_value(parts[1]).is_none() || terms.constant_value(index).is_none() {
            break;
        }
        array = parts[0];
    }
    Some(terms.build(Operator::Select, &[array, index]))
}

fn store(terms: &mut TermStore, arguments: &[TermId]) -> Option<TermId> {
    let [array, index, element] = *arguments else { return None };
    if let Term::Apply(Operator::Store, parts) = terms.term(array) {
        let [inner, place, old] = [parts[0], parts[1], parts[2]];
        if place == index {
            return store(terms, &[inner, index, element]);
        }
        let constants = (terms.constant_value(place), terms.constant_value(index));
        if let (Some(outer), Some(new)) = constants
            && new < outer
        {
            let below = store(terms, &[inner, index, element])?;
            return Some(terms.build(Operator::Store, &[below, place, old]));
        }
    }
    Some(terms.build(Operator::Store, &[array, index, element]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_any_order_are_one_term() {
        let mut terms = TermStore::default();
        let [x, y, z] = ["x", "y", "z"].map(|name| terms.fresh_symbol(name, Sort::INT));
        let xy = apply(&mut terms, Operator::Add, &[x, y]);
        let left = apply(&mut terms, Operator::Sub, &[xy, z]);
        let xz = apply(&mut terms, Operator::Sub, &[x, z]);
        let right = apply(&mut terms, Operator::Add, &[xz, y]);
        assert_eq!(left, right);
        let equal = apply(&mut terms, Operator::Eq, &[left, right]);
        assert!(terms.is_true(equal));
        let equal = apply(&mut terms, Operator::Eq, &[xy, left]);
        let zero = terms.int(0);
        let z_is_zero = apply(&mut terms, Operator::Eq, &[z, zero]);
        assert_eq!(equal, z_is_zero, "x + y = x + y - z is z = 0");
    }

    #[test]
    fn opposite_comparisons_are_negations() {
        let mut terms = TermStore::default();
        let x = terms.fresh_symbol("x", Sort::INT);
        let five = terms.int(5);
        let less = apply(&mut terms, Operator::Lt, &[x, five]);
        let at_least = apply(&mut terms, Operator::Le, &[five, x]);
        let negated = terms.not(less);
        assert_eq!(at_least, negated);
    }

    #[test]
    fn stores_at_constant_places_commute() {
        let mut terms = TermStore::default();
        let sort = Sort::Array {
            index: foretell_trace::ScalarSort::Int,
            element: foretell_trace::ScalarSort::Int,
        };
        let array = terms.fresh_symbol("a", sort);
        let [one, two, seven] = [1, 2, 7].map(|value| terms.int(value));
        let first = apply(&mut terms, Operator::Store, &[array, one, seven]);
        let left = apply(&mut terms, Operator::Store, &[first, two, seven]);
        let second = apply(&mut terms, Operator::Store, &[array, two, seven]);
        let right = apply(&mut terms, Operator::Store, &[second, one, seven]);
        assert_eq!(left, right);
        assert_eq!(apply(&mut terms, Operator::Select, &[left, one]), seven);
    }
}
