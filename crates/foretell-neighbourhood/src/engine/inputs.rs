//! Is there an input that satisfies a condition?
//!
//! Conditions over inputs (free initial values, choices of transition predicates) are decided in
//! four stages: the normal form folds contradictions away; bounds of one sum that leave no value are
//! a contradiction; small values and the constants of the condition are tried, which finds most
//! solutions; the rest goes to a solver of foretell-solve.
//! What none of them decides is unknown, and is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foretell_solve::problem::OrderProblem;
use foretell_solve::solver::{Answer, Budget, OrderSolver};
use foretell_trace::{
    Operator, Rational, ScalarSort, Sort, SymbolId, Term, TermId, TermStore, Value,
};

/// Gives a solver for a problem; `None` where there is none on this machine.
pub type SolverFactory = fn(OrderProblem) -> Option<Box<dyn OrderSolver>>;

/// A value for each input that matters.
pub(crate) type Assignment = BTreeMap<SymbolId, Value>;

/// Decides conditions and remembers the answers.
pub(crate) struct Inputs {
    factory: SolverFactory,
    known: HashMap<TermId, Option<Assignment>>,
    unknown: BTreeSet<TermId>,
    pub(crate) solver_calls: u64,
}

/// What is known about a condition.
pub(crate) enum Satisfiable {
    Yes,
    No,
    Unknown,
}

impl Inputs {
    pub(crate) fn new(factory: SolverFactory) -> Self {
        Self { factory, known: HashMap::new(), unknown: BTreeSet::new(), solver_calls: 0 }
    }

    /// Conditions that nobody could decide.
    pub(crate) fn undecided(&self) -> usize {
        self.unknown.len()
    }

    /// Is the condition satisfiable?
    pub(crate) fn check(&mut self, terms: &TermStore, condition: TermId) -> Satisfiable {
        if let Some(value) = terms.constant_value(condition) {
            return match value.as_bool() {
                Some(true) => Satisfiable::Yes,
                _ => Satisfiable::No,
            };
        }
        if !self.known.contains_key(&condition) && !self.unknown.contains(&condition) {
            self.decide(terms, condition);
        }
        match self.known.get(&condition) {
            Some(Some(_)) => Satisfiable::Yes,
            Some(None) => Satisfiable::No,
            None => Satisfiable::Unknown,
        }
    }

    /// A solution; `None` when there is none or none was found.
    pub(crate) fn solution(&mut self, terms: &TermStore, condition: TermId) -> Option<Assignment> {
        match self.check(terms, condition) {
            Satisfiable::Yes => {
                Some(self.known.get(&condition).cloned().flatten().unwrap_or_default())
            }
            _ => None,
        }
    }

    fn decide(&mut self, terms: &TermStore, condition: TermId) {
        if bounds_contradict(terms, condition) {
            self.known.insert(condition, None);
            return;
        }
        if let Some(found) = try_small_values(terms, condition) {
            self.known.insert(condition, Some(found));
            return;
        }
        self.solver_calls += 1;
        let problem = OrderProblem {
            terms: terms.clone(),
            asserted: vec![condition],
            ..OrderProblem::default()
        };
        let answer = (self.factory)(problem).map(|mut solver| solver.check(&[], Budget::default()));
        match answer {
            Some(Answer::Satisfiable(model)) => {
                let mut assignment: Assignment = model.values.into_iter().collect();
                for leaf in terms.leaves(condition) {
                    if let Term::Symbol(symbol) = *terms.term(leaf) {
                        let zero = Value::zero(terms.symbol(symbol).sort);
                        assignment.entry(symbol).or_insert(zero);
                    }
                }
                match holds(terms, condition, &assignment) {
                    Some(true) => drop(self.known.insert(condition, Some(assignment))),
                    _ => drop(self.unknown.insert(condition)),
                }
            }
            Some(Answer::Unsatisfiable { .. }) => drop(self.known.insert(condition, None)),
            Some(Answer::Unknown(_)) | None => drop(self.unknown.insert(condition)),
        }
    }
}

fn holds(terms: &TermStore, condition: TermId, assignment: &Assignment) -> Option<bool> {
    terms.holds(condition, &|leaf: &Term| match leaf {
        Term::Symbol(symbol) => assignment.get(symbol).cloned(),
        _ => None,
    })
}

/// Do the conjuncts bound one number (any left side of a normal comparison) to an empty range?
fn bounds_contradict(terms: &TermStore, condition: TermId) -> bool {
    #[derive(Default)]
    struct Range {
        low: Option<(Rational, bool)>, // and: strictly above
        high: Option<(Rational, bool)>,
        not: Vec<Rational>,
    }
    let Term::Apply(Operator::And, conjuncts) = terms.term(condition) else { return false };
    let mut ranges: HashMap<TermId, Range> = HashMap::new();
    let number = |term: TermId| match terms.constant_value(term) {
        Some(Value::Int(value)) => Some(Rational::integer(*value)),
        Some(Value::Real(value)) => Some(*value),
        _ => None,
    };
    for &conjunct in conjuncts.iter() {
        let (literal, positive) = match terms.term(conjunct) {
            Term::Apply(Operator::Not, parts) => (parts[0], false),
            _ => (conjunct, true),
        };
        let Term::Apply(operator, sides) = terms.term(literal) else { continue };
        let (left, bound) = match (sides.len(), number(sides[0]), sides.get(1).map(|&s| number(s)))
        {
            (2, None, Some(Some(bound))) => (sides[0], bound),
            (2, Some(bound), Some(None)) if *operator == Operator::Eq => (sides[1], bound),
            _ => continue,
        };
        let range = ranges.entry(left).or_default();
        let raise = |old: Option<(Rational, bool)>, new| old.map_or(new, |old| old.max(new));
        let lower = |old: Option<(Rational, bool)>, new: (Rational, bool)| match old {
            Some(old) if (old.0, !old.1) <= (new.0, !new.1) => old,
            _ => new,
        };
        match (operator, positive) {
            (Operator::Eq, true) => {
                range.low = Some(raise(range.low, (bound, false)));
                range.high = Some(lower(range.high, (bound, false)));
            }
            (Operator::Eq, false) => range.not.push(bound),
            (Operator::Le, true) => range.high = Some(lower(range.high, (bound, false))),
            (Operator::Lt, true) => range.high = Some(lower(range.high, (bound, true))),
            (Operator::Le, false) => range.low = Some(raise(range.low, (bound, true))),
            (Operator::Lt, false) => range.low = Some(raise(range.low, (bound, false))),
            _ => {}
        }
    }
    ranges.into_values().any(|range| match (range.low, range.high) {
        (Some((low, above)), Some((high, below))) => {
            low > high || low == high && (above || below || range.not.contains(&low))
        }
        _ => false,
    })
}

/// How many assignments are tried before a solver is asked.
const TRIES: usize = 400;

/// Local search over the constants of the condition and their neighbours.
fn try_small_values(terms: &TermStore, condition: TermId) -> Option<Assignment> {
    let mut numbers = BTreeSet::from([0, 1, -1]);
    let mut stack = vec![condition];
    let mut seen = BTreeSet::new();
    let mut symbols = BTreeSet::new();
    while let Some(term) = stack.pop() {
        if !seen.insert(term) {
            continue;
        }
        match terms.term(term) {
            Term::Constant(Value::Int(value)) => {
                numbers.extend([value.saturating_sub(1), *value, value.saturating_add(1)]);
            }
            Term::Constant(Value::BitVec { bits, .. }) => {
                numbers.extend([i128::from(*bits), i128::from(bits.wrapping_add(1))]);
            }
            Term::Apply(_, arguments) => stack.extend(arguments.iter().copied()),
            Term::Symbol(symbol) => drop(symbols.insert(*symbol)),
            _ => {}
        }
    }
    let candidates = |sort: Sort| -> Vec<Value> {
        match sort {
            Sort::Scalar(ScalarSort::Bool) => vec![Value::Bool(false), Value::Bool(true)],
            Sort::Scalar(ScalarSort::Int) => numbers.iter().map(|&n| Value::Int(n)).collect(),
            Sort::Scalar(ScalarSort::Real) => {
                numbers.iter().map(|&n| Value::Real(Rational::integer(n))).collect()
            }
            Sort::Scalar(ScalarSort::BitVec(width)) => {
                numbers.iter().map(|&n| Value::bit_vec(width, n as u64)).collect()
            }
            array => vec![Value::zero(array)],
        }
    };
    let conjuncts: Vec<TermId> = match terms.term(condition) {
        Term::Apply(Operator::And, parts) => parts.to_vec(),
        _ => vec![condition],
    };
    let mut assignment: Assignment =
        symbols.iter().map(|&s| (s, Value::zero(terms.symbol(s).sort))).collect();
    let score = |assignment: &Assignment| {
        conjuncts.iter().filter(|&&part| holds(terms, part, assignment) == Some(true)).count()
    };
    let mut best = score(&assignment);
    let mut tries = 0;
    while best < conjuncts.len() {
        let mut improved = false;
        for &symbol in &symbols {
            for value in candidates(terms.symbol(symbol).sort) {
                tries += 1;
                if tries > TRIES {
                    return None;
                }
                let old = assignment.insert(symbol, value)?;
                let now = score(&assignment);
                if now > best {
                    best = now;
                    improved = true;
                } else {
                    assignment.insert(symbol, old);
                }
            }
        }
        if !improved {
            return None;
        }
    }
    Some(assignment)
}
