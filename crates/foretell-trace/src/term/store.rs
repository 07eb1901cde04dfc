//! The store that owns terms, checks their sorts and folds constants.

use std::collections::HashMap;

use super::{Environment, Operator, ScalarSort, Sort, Term, Value, evaluate};
use crate::id::{EventId, SymbolId, TermId, ThreadId, VariableId};

/// Owns terms. Ids of one store stay valid in its clones, and in a store that only grew.
#[derive(Clone, Debug, Default)]
pub struct TermStore {
    nodes: Vec<(Term, Sort)>,
    /// By term. Without it, to look at all steps of a long computation would take its length squared.
    below: Vec<Below>,
    ids: HashMap<Term, TermId>,
    symbols: Vec<Symbol>,
}

/// The leaves below a term that are not constants, where there is at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    None,
    One(TermId),
    Several,
}

/// A free symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// For people and for SMT-LIB.
    pub name: Box<str>,
    /// The values it takes.
    pub sort: Sort,
}

/// An operator that does not fit its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortError {
    /// What was applied.
    pub operator: Operator,
    /// To what.
    pub arguments: Vec<Sort>,
}

impl std::fmt::Display for SortError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` cannot be applied to ({})", self.operator.smtlib_name(), {
            let sorts: Vec<String> = self.arguments.iter().map(Sort::to_string).collect();
            sorts.join(", ")
        })
    }
}

impl std::error::Error for SortError {}

impl std::fmt::Display for ScalarSort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScalarSort::Bool => f.write_str("Bool"),
            ScalarSort::Int => f.write_str("Int"),
            ScalarSort::Real => f.write_str("Real"),
            ScalarSort::BitVec(width) => write!(f, "(_ BitVec {width})"),
        }
    }
}

impl std::fmt::Display for Sort {
    /// As SMT-LIB writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sort::Scalar(scalar) => scalar.fmt(f),
            Sort::Array { index, element } => write!(f, "(Array {index} {element})"),
        }
    }
}

impl PartialEq for TermStore {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.symbols == other.symbols
    }
}

impl TermStore {
    /// How many terms there are; ids are the numbers below.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// No terms yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The term.
    pub fn term(&self, id: TermId) -> &Term {
        &self.nodes[id.index()].0
    }

    /// The term's sort.
    pub fn sort(&self, id: TermId) -> Sort {
        self.nodes[id.index()].1
    }

    /// The constant, if the term is one.
    pub fn constant_value(&self, id: TermId) -> Option<&Value> {
        match self.term(id) {
            Term::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Is the term the constant true?
    pub fn is_true(&self, id: TermId) -> bool {
        self.constant_value(id) == Some(&Value::Bool(true))
    }

    /// Is the term the constant false?
    pub fn is_false(&self, id: TermId) -> bool {
        self.constant_value(id) == Some(&Value::Bool(false))
    }

    fn intern(&mut self, term: Term, sort: Sort) -> TermId {
        if let Some(&id) = self.ids.get(&term) {
            debug_assert_eq!(self.sort(id), sort, "one leaf, two sorts: {term:?}");
            return id;
        }
        let id = TermId::from(self.nodes.len());
        self.ids.insert(term.clone(), id);
        self.below.push(self.below(id, &term));
        self.nodes.push((term, sort));
        id
    }

    fn below(&self, id: TermId, term: &Term) -> Below {
        let Term::Apply(_, arguments) = term else {
            return if matches!(term, Term::Constant(_)) { Below::None } else { Below::One(id) };
        };
        let arguments = arguments.iter().map(|argument| self.below[argument.index()]);
        let join = |one, two| match (one, two) {
            (Below::None, other) | (other, Below::None) => other,
            (one, two) if one == two => one,
            _ => Below::Several,
        };
        arguments.fold(Below::None, join)
    }

    /// The id of an equal term, when there is one.
    pub fn find(&self, term: &Term) -> Option<TermId> {
        self.ids.get(term).copied()
    }

    /// A constant.
    pub fn constant(&mut self, value: Value) -> TermId {
        let sort = value.sort();
        self.intern(Term::Constant(value), sort)
    }

    /// True or false.
    pub fn bool(&mut self, value: bool) -> TermId {
        self.constant(Value::Bool(value))
    }

    /// An integer constant.
    pub fn int(&mut self, value: i128) -> TermId {
        self.constant(Value::Int(value))
    }

    /// A bit-vector constant.
    pub fn bit_vec(&mut self, width: u16, bits: u64) -> TermId {
        self.constant(Value::bit_vec(width, bits))
    }

    /// A variable's value before the step.
    pub fn variable(&mut self, variable: VariableId, sort: Sort) -> TermId {
        self.intern(Term::Variable(variable), sort)
    }

    /// A variable's value after the step.
    pub fn primed(&mut self, variable: VariableId, sort: Sort) -> TermId {
        self.intern(Term::Primed(variable), sort)
    }

    /// What a read returned.
    pub fn read_value(&mut self, thread: ThreadId, index: u32, sort: Sort) -> TermId {
        self.intern(Term::ReadValue(thread, index), sort)
    }

    /// `first` comes before `second`. An event does not come before itself.
    pub fn before(&mut self, first: EventId, second: EventId) -> TermId {
        if first == second {
            return self.bool(false);
        }
        self.intern(Term::Before(first, second), Sort::BOOL)
    }

    /// A symbol that no term has yet.
    pub fn fresh_symbol(&mut self, name: impl Into<Box<str>>, sort: Sort) -> TermId {
        let symbol = SymbolId::from(self.symbols.len());
        self.symbols.push(Symbol { name: name.into(), sort });
        self.intern(Term::Symbol(symbol), sort)
    }

    /// The symbol's name and sort.
    pub fn symbol(&self, symbol: SymbolId) -> &Symbol {
        &self.symbols[symbol.index()]
    }

    /// The symbols in the order of their numbers.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// How many symbols there are.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// Negation.
    pub fn not(&mut self, term: TermId) -> TermId {
        self.build(Operator::Not, &[term])
    }

    /// Conjunction; true when empty.
    pub fn and(&mut self, terms: &[TermId]) -> TermId {
        self.build(Operator::And, terms)
    }

    /// Disjunction; false when empty.
    pub fn or(&mut self, terms: &[TermId]) -> TermId {
        self.build(Operator::Or, terms)
    }

    /// Implication.
    pub fn implies(&mut self, premise: TermId, conclusion: TermId) -> TermId {
        let negated = self.not(premise);
        self.or(&[negated, conclusion])
    }

    /// Equality.
    pub fn eq(&mut self, left: TermId, right: TermId) -> TermId {
        self.build(Operator::Eq, &[left, right])
    }

    /// Choice.
    pub fn ite(&mut self, condition: TermId, then: TermId, otherwise: TermId) -> TermId {
        self.build(Operator::Ite, &[condition, then, otherwise])
    }

    /// Like [`TermStore::apply`], for callers that know the sorts fit.
    ///
    /// # Panics
    /// When they do not.
    pub fn build(&mut self, operator: Operator, arguments: &[TermId]) -> TermId {
        match self.apply(operator, arguments) {
            Ok(term) => term,
            Err(error) => panic!("{error}"),
        }
    }

    /// The operator applied to the arguments, simplified: constants are folded and added up, neutral
    /// elements dropped, and-or lists flattened and freed of duplicates.
    pub fn apply(&mut self, operator: Operator, arguments: &[TermId]) -> Result<TermId, SortError> {
        let sort = self.result_sort(operator, arguments)?;
        if matches!(operator, Operator::And | Operator::Or) {
            return Ok(self.and_or(operator, arguments));
        }
        if let Some(simple) = self.simplify(operator, arguments) {
            return Ok(simple);
        }
        let constants: Option<Vec<&Value>> =
            arguments.iter().map(|&argument| self.constant_value(argument)).collect();
        if let Some(constants) = constants
            && let Ok(value) = evaluate::apply(operator, &constants)
        {
            return Ok(self.constant(value));
        }
        let mut arguments: Box<[TermId]> = arguments.into();
        if matches!(
            operator,
            Operator::Eq
                | Operator::BvAdd
                | Operator::BvMul
                | Operator::BvAnd
                | Operator::BvOr
                | Operator::BvXor
        ) {
            arguments.sort_unstable(); // symmetric: one id for both orders
        }
        Ok(self.intern(Term::Apply(operator, arguments), sort))
    }

    fn and_or(&mut self, operator: Operator, arguments: &[TermId]) -> TermId {
        let neutral = operator == Operator::And;
        let mut flat = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            match self.term(argument) {
                Term::Constant(Value::Bool(value)) if *value == neutral => {}
                Term::Constant(Value::Bool(_)) => return self.bool(!neutral),
                Term::Apply(inner, parts) if *inner == operator => {
                    flat.extend(parts.iter().copied())
                }
                _ => flat.push(argument),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        for &argument in &flat {
            if let Term::Apply(Operator::Not, parts) = self.term(argument)
                && flat.binary_search(&parts[0]).is_ok()
            {
                return self.bool(!neutral);
            }
        }
        match flat.as_slice() {
            [] => self.bool(neutral),
            [only] => *only,
            _ => self.intern(Term::Apply(operator, flat.into()), Sort::BOOL),
        }
    }

    fn simplify(&mut self, operator: Operator, arguments: &[TermId]) -> Option<TermId> {
        use Operator::*;
        match (operator, arguments) {
            (Not, &[term]) => match self.term(term) {
                Term::Apply(Not, inner) => Some(inner[0]),
                _ => None,
            },
            (Implies, &[premise, conclusion]) => Some(self.implies(premise, conclusion)),
            (Eq, &[a, b]) if a == b => Some(self.bool(true)),
            (Eq, &[a, b]) if self.sort(a) == Sort::BOOL => {
                let (constant, other) = match (self.constant_value(a), self.constant_value(b)) {
                    (Some(value), _) => (value.as_bool()?, b),
                    (_, Some(value)) => (value.as_bool()?, a),
                    _ => return None,
                };
                Some(if constant { other } else { self.not(other) })
            }
            (Ite, &[condition, then, otherwise]) => match self.constant_value(condition) {
                Some(Value::Bool(true)) => Some(then),
                Some(_) => Some(otherwise),
                None if then == otherwise => Some(then),
                None if self.is_true(then) && self.is_false(otherwise) => Some(condition),
                None if self.is_false(then) && self.is_true(otherwise) => Some(self.not(condition)),
                None => None,
            },
            (Add | Mul, _) if self.sort(arguments[0]) == Sort::INT => {
                let neutral = Value::Int(i128::from(operator == Mul));
                let kept: Vec<TermId> = arguments
                    .iter()
                    .copied()
                    .filter(|&argument| self.constant_value(argument) != Some(&neutral))
                    .collect();
                match kept.as_slice() {
                    [] => Some(self.constant(neutral)),
                    [only] => Some(*only),
                    _ if kept.len() < arguments.len() => Some(self.build(operator, &kept)),
                    _ => None,
                }
            }
            (BvAdd | BvOr | BvXor, &[a, b]) => match (self.zero_bits(a), self.zero_bits(b)) {
                (true, _) => Some(b),
                (_, true) => Some(a),
                _ if operator == BvAdd => self.joined_constants(a, b),
                _ => None,
            },
            (BvSub | BvShl | BvLshr | BvAshr, &[a, b]) if self.zero_bits(b) => Some(a),
            (ZeroExtend(0) | SignExtend(0), &[a]) => Some(a),
            (Extract { high, low: 0 }, &[a]) if self.sort(a).width() == Some(high + 1) => Some(a),
            _ => None,
        }
    }

    /// `(x + 1) + 1` is `x + 2`: what is counted up or down again and again stays one addition.
    fn joined_constants(&mut self, a: TermId, b: TermId) -> Option<TermId> {
        let is_constant = |term: TermId| self.constant_value(term).is_some();
        let (sum, constant) = match (is_constant(a), is_constant(b)) {
            (false, true) => (a, b),
            (true, false) => (b, a),
            _ => return None,
        };
        let Term::Apply(Operator::BvAdd, parts) = self.term(sum) else { return None };
        let (rest, other) = match parts[..] {
            [rest, other] if is_constant(other) => (rest, other),
            [other, rest] if is_constant(other) => (rest, other),
            _ => return None,
        };
        let joined = self.build(Operator::BvAdd, &[constant, other]);
        Some(self.build(Operator::BvAdd, &[rest, joined]))
    }

    fn zero_bits(&self, term: TermId) -> bool {
        matches!(self.constant_value(term), Some(Value::BitVec { bits: 0, .. }))
    }

    fn result_sort(&self, operator: Operator, arguments: &[TermId]) -> Result<Sort, SortError> {
        use Operator::*;
        let sorts: Vec<Sort> = arguments.iter().map(|&argument| self.sort(argument)).collect();
        let all = |sort: Sort| sorts.iter().all(|&other| other == sort);
        let number = |sort: Sort| sort == Sort::INT || sort == Sort::REAL;
        let sort = match (operator, sorts.as_slice()) {
            (Not, &[Sort::BOOL]) => Some(Sort::BOOL),
            (And | Or, _) if all(Sort::BOOL) => Some(Sort::BOOL),
            (Xor | Implies, &[Sort::BOOL, Sort::BOOL]) => Some(Sort::BOOL),
            (Ite, &[Sort::BOOL, then, otherwise]) if then == otherwise => Some(then),
            (Eq, &[a, b]) if a == b => Some(Sort::BOOL),
            (Add | Sub | Mul, &[first, _, ..]) if number(first) && all(first) => Some(first),
            (Neg | Abs, &[sort]) if number(sort) => Some(sort),
            (IntDiv | Mod, &[Sort::INT, Sort::INT]) => Some(Sort::INT),
            (RealDiv, &[Sort::REAL, Sort::REAL]) => Some(Sort::REAL),
            (ToReal, &[Sort::INT]) => Some(Sort::REAL),
            (ToInt, &[Sort::REAL]) => Some(Sort::INT),
            (Lt | Le, &[a, b]) if number(a) && a == b => Some(Sort::BOOL),
            (BvNot | BvNeg, &[sort]) if sort.width().is_some() => Some(sort),
            (BvUlt | BvUle | BvSlt | BvSle, &[a, b]) if a == b && a.width().is_some() => {
                Some(Sort::BOOL)
            }
            (
                BvAnd | BvOr | BvXor | BvAdd | BvSub | BvMul | BvUdiv | BvUrem | BvSdiv | BvSrem
                | BvShl | BvLshr | BvAshr,
                &[a, b],
            ) if a == b && a.width().is_some() => Some(a),
            (Concat, &[a, b]) => match (a.width(), b.width()) {
                (Some(a), Some(b)) if a + b <= 64 => Some(Sort::bit_vec(a + b)),
                _ => None,
            },
            (Extract { high, low }, &[sort]) => match sort.width() {
                Some(width) if low <= high && high < width => Some(Sort::bit_vec(high - low + 1)),
                _ => None,
            },
            (ZeroExtend(by) | SignExtend(by), &[sort]) => match sort.width() {
                Some(width) if width.checked_add(by).is_some_and(|sum| sum <= 64) => {
                    Some(Sort::bit_vec(width + by))
                }
                _ => None,
            },
            (Select, &[Sort::Array { index, element }, at]) if at == index.into() => {
                Some(element.into())
            }
            (Store, &[array @ Sort::Array { index, element }, at, value])
                if at == index.into() && value == element.into() =>
            {
                Some(array)
            }
            _ => None,
        };
        sort.ok_or(SortError { operator, arguments: sorts })
    }

    /// The term with leaves replaced where `replace` gives another; the rest is rebuilt and
    /// simplified. `cache` keeps what was done and can be reused for further terms with the same
    /// replacement.
    pub fn substitute(
        &mut self,
        term: TermId,
        cache: &mut HashMap<TermId, TermId>,
        replace: &mut impl FnMut(&mut TermStore, &Term) -> Option<TermId>,
    ) -> TermId {
        let mut stack = vec![term];
        while let Some(&top) = stack.last() {
            if cache.contains_key(&top) {
                stack.pop();
                continue;
            }
            let replaced = match self.term(top).clone() {
                Term::Constant(_) => top,
                Term::Apply(operator, arguments) => {
                    let before = stack.len();
                    stack.extend(arguments.iter().filter(|argument| !cache.contains_key(argument)));
                    if stack.len() > before {
                        continue;
                    }
                    let arguments: Vec<TermId> =
                        arguments.iter().map(|argument| cache[argument]).collect();
                    self.build(operator, &arguments)
                }
                leaf => replace(self, &leaf).unwrap_or(top),
            };
            cache.insert(top, replaced);
            stack.pop();
        }
        cache[&term]
    }

    /// A copy of another store's term, with each leaf (an id of that store) replaced by what
    /// `replace` makes of it here. `cache` keeps what was copied and can be reused for further terms of the same store with
    /// the same replacement.
    ///
    /// # Panics
    /// When `replace` gives a leaf another sort that does not fit where it stands.
    pub fn import(
        &mut self,
        from: &TermStore,
        term: TermId,
        cache: &mut HashMap<TermId, TermId>,
        replace: &mut impl FnMut(&mut TermStore, TermId) -> TermId,
    ) -> TermId {
        let mut stack = vec![term];
        while let Some(&top) = stack.last() {
            if cache.contains_key(&top) {
                stack.pop();
                continue;
            }
            let copy = match from.term(top) {
                Term::Constant(value) => self.constant(value.clone()),
                Term::Apply(operator, arguments) => {
                    let before = stack.len();
                    stack.extend(arguments.iter().filter(|argument| !cache.contains_key(argument)));
                    if stack.len() > before {
                        continue;
                    }
                    let arguments: Vec<TermId> =
                        arguments.iter().map(|argument| cache[argument]).collect();
                    self.build(*operator, &arguments)
                }
                _ => replace(self, top),
            };
            cache.insert(top, copy);
            stack.pop();
        }
        cache[&term]
    }

    /// The distinct leaves below `term` that are not constants.
    pub fn leaves(&self, term: TermId) -> Vec<TermId> {
        let mut seen = std::collections::HashSet::new();
        let mut stack = vec![term];
        let mut leaves = Vec::new();
        while let Some(top) = stack.pop() {
            let top = match self.below[top.index()] {
                Below::None => continue,
                Below::One(leaf) => leaf,
                Below::Several => top,
            };
            if !seen.insert(top) {
                continue;
            }
            match self.term(top) {
                Term::Apply(_, arguments) => stack.extend(arguments.iter().copied()),
                _ => leaves.push(top),
            }
        }
        leaves.sort_unstable();
        leaves
    }

    /// The variables whose value after the step is part of `term`, by number.
    pub fn primed_variables(&self, term: TermId) -> Vec<VariableId> {
        let leaves = self.leaves(term).into_iter();
        let mut primed: Vec<VariableId> = leaves
            .filter_map(|leaf| match self.term(leaf) {
                Term::Primed(variable) => Some(*variable),
                _ => None,
            })
            .collect();
        primed.sort_unstable();
        primed
    }

    /// Does the term hold in the environment? `None` when it has no value there.
    pub fn holds(&self, term: TermId, environment: &impl Environment) -> Option<bool> {
        self.evaluate(term, environment).ok()?.as_bool()
    }
}
