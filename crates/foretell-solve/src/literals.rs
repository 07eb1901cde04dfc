//! Terms to literals.
//!
//! Booleans are literals, numbers with few values are [ladders](crate::ladder), the others bits:
//! bit-vectors at their width, integers at the width that their bounds need, and every operation on
//! integers at a width that holds all its results, so nothing overflows. Only an integer without
//! bounds is cut to [`Encoder::new`]'s width, and all that is demanded of it depends on the literal
//! [`Encoder::narrow`]: without that literal in its core, a proof does not rely on the cut.
//!
//! Arrays are read, never compared: `select` is pushed through `store`, `ite` and the π-functions
//! down to a fresh element symbol for each array symbol and index term, and equal indices have equal
//! elements.
//!
//! Not supported: reals, equality of arrays, division of integers by something that may be zero.

mod arrays;
mod choices;
mod operators;
mod values;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use foretell_trace::{
    EventId, Operator, ScalarSort, Sort, SymbolId, Term, TermId, TermStore, Value,
};

use crate::cnf::{Cnf, Lit};
use crate::domain::{Domain, Domains};
use crate::ladder::{self, Ladder};
use crate::order::OrderTheory;
use crate::problem::Pi;
use choices::{Choices, Pending};

/// Integers never grow beyond this many bits.
const WIDEST: usize = 120;

/// What a term is as literals.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    Truth(Lit),
    Ladder(Ladder),
    Bits(Rc<[Lit]>),
}

/// What cannot be encoded.
pub(crate) type Unsupported = String;

/// From so many choices of all π-functions on, a choice gets the clauses of its value only when a
/// solution makes it. In a loop, each read can see each write of the other threads, and each such
/// pair would cost clauses for all bits of the value: a cubic number, of which few are ever needed.
pub(crate) const EAGER_CHOICES: usize = 4096;

/// Writes terms as clauses.
pub(crate) struct Encoder {
    pub(crate) cnf: Cnf,
    pub(crate) theory: Rc<RefCell<OrderTheory>>,
    domains: Domains,
    words: HashMap<TermId, Word>,
    bits: HashMap<TermId, Rc<[Lit]>>,
    /// Terms above an integer that was cut.
    cut: HashSet<TermId>,
    width: usize,
    /// Integers without bounds fit.
    pub(crate) narrow: Lit,
    choices: Vec<Choices>,
    /// Values of choices are added by [`Encoder::refine`].
    lazy: bool,
    /// Groups of writes and the definitions that have literals with all of them.
    paired: HashSet<(usize, u32)>,
    /// Array symbol to its π-functions.
    array_pis: HashMap<SymbolId, Vec<usize>>,
    elements: HashMap<SymbolId, Vec<(TermId, TermId)>>,
    selects: HashMap<TermId, TermId>,
    /// Constraints that came up while terms were encoded.
    pending: Vec<Pending>,
}

impl Encoder {
    pub(crate) fn new(
        cnf: Cnf,
        theory: Rc<RefCell<OrderTheory>>,
        terms: &TermStore,
        pis: &[Pi],
        width: usize,
        eager_choices: usize,
    ) -> Self {
        let domains = Domains::new(terms, pis, theory.borrow().must());
        let lazy = pis.iter().map(|pi| pi.choices.len()).sum::<usize>() > eager_choices;
        let mut cnf = cnf;
        let narrow = cnf.fresh();
        Self {
            cnf,
            theory,
            domains,
            words: HashMap::new(),
            bits: HashMap::new(),
            cut: HashSet::new(),
            width,
            narrow,
            choices: Vec::new(),
            lazy,
            paired: HashSet::new(),
            array_pis: HashMap::new(),
            elements: HashMap::new(),
            selects: HashMap::new(),
            pending: Vec::new(),
        }
    }

    /// Was any integer cut?
    pub(crate) fn is_cut(&self) -> bool {
        !self.cut.is_empty()
    }

    /// The literal of "the first event comes before the second".
    pub(crate) fn before(&mut self, first: EventId, second: EventId) -> Result<Lit, Unsupported> {
        let number = |event| self.theory.borrow().must().require(event);
        let (first, second) = match (number(first), number(second)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
        };
        Ok(self.pair(first, second))
    }

    fn pair(&mut self, first: u32, second: u32) -> Lit {
        if let Some(known) = self.theory.borrow().before(first, second) {
            return known;
        }
        let recorded = {
            let theory = self.theory.borrow();
            let events = theory.must().events();
            events[first as usize] < events[second as usize]
        };
        let literal = self.likely(recorded);
        self.theory.borrow_mut().add_pair(literal, first, second);
        self.observe(literal);
        literal
    }

    /// A literal that the search tries with this value first. Variables start as true, and events are
    /// numbered as recorded: the search starts from the recorded run, which violates little.
    fn likely(&mut self, value: bool) -> Lit {
        let variable = self.cnf.fresh();
        if value { variable } else { !variable }
    }

    fn observe(&mut self, literal: Lit) {
        self.cnf.sat.add_observed_var(literal.0.abs());
    }

    /// The formula holds.
    pub(crate) fn assert(
        &mut self,
        terms: &mut TermStore,
        formula: TermId,
    ) -> Result<(), Unsupported> {
        let parts = match terms.term(formula) {
            Term::Apply(Operator::And, parts) => parts.to_vec(),
            _ => vec![formula],
        };
        for part in parts {
            let choices = match terms.term(part) {
                Term::Apply(Operator::Or, choices) => choices.to_vec(),
                _ => vec![part],
            };
            let mut clause = Vec::with_capacity(choices.len() + 1);
            for &choice in &choices {
                clause.push(self.literal(terms, choice)?);
            }
            if choices.iter().any(|choice| self.cut.contains(choice)) {
                clause.push(!self.narrow);
            }
            self.cnf.clause(&clause);
        }
        self.settle(terms)
    }

    /// A literal that implies the formula, to be assumed.
    pub(crate) fn assumption(
        &mut self,
        terms: &mut TermStore,
        formula: TermId,
    ) -> Result<Lit, Unsupported> {
        let literal = self.literal(terms, formula)?;
        self.settle(terms)?;
        if !self.cut.contains(&formula) {
            return Ok(literal);
        }
        let assumed = self.cnf.fresh();
        self.cnf.clause(&[!assumed, !self.narrow, literal]);
        Ok(assumed)
    }

    /// The literal of a Boolean term.
    fn literal(&mut self, terms: &mut TermStore, term: TermId) -> Result<Lit, Unsupported> {
        self.encode(terms, term)?;
        Ok(self.truth(term))
    }

    fn truth(&self, term: TermId) -> Lit {
        match &self.words[&term] {
            Word::Truth(literal) => *literal,
            other => unreachable!("{other:?} where sorts promise a Boolean"),
        }
    }

    /// Gives the term a word, bottom up with a stack of its own.
    fn encode(&mut self, terms: &mut TermStore, root: TermId) -> Result<(), Unsupported> {
        let mut stack = vec![root];
        while let Some(&top) = stack.last() {
            if self.words.contains_key(&top) {
                stack.pop();
                continue;
            }
            if let Term::Apply(operator, arguments) = terms.term(top).clone() {
                if operator == Operator::Select {
                    let element = match self.selects.get(&top) {
                        Some(&element) => element,
                        None => {
                            let element = self.read(terms, arguments[0], arguments[1]);
                            self.selects.insert(top, element);
                            element
                        }
                    };
                    match self.words.get(&element).cloned() {
                        None => stack.push(element),
                        Some(word) => self.keep(top, word, &[element]),
                    }
                    continue;
                }
                if arguments.iter().any(|&part| matches!(terms.sort(part), Sort::Array { .. })) {
                    return Err(format!("`{}` of arrays", operator.smtlib_name()));
                }
                let before = stack.len();
                stack.extend(arguments.iter().filter(|part| !self.words.contains_key(part)));
                if stack.len() > before {
                    continue;
                }
                let word = self.apply(terms, operator, terms.sort(top), &arguments)?;
                self.keep(top, word, &arguments);
            } else {
                let word = self.leaf(terms, top)?;
                self.words.insert(top, word);
            }
            stack.pop();
        }
        Ok(())
    }

    fn keep(&mut self, term: TermId, word: Word, below: &[TermId]) {
        if below.iter().any(|part| self.cut.contains(part)) {
            self.cut.insert(term);
        }
        self.words.insert(term, word);
    }

    fn leaf(&mut self, terms: &TermStore, leaf: TermId) -> Result<Word, Unsupported> {
        let sort = terms.sort(leaf);
        if !matches!(sort, Sort::Scalar(ScalarSort::Bool | ScalarSort::Int | ScalarSort::BitVec(_)))
        {
            return Err(format!("values of sort {sort}"));
        }
        Ok(match terms.term(leaf) {
            Term::Constant(Value::Bool(value)) => Word::Truth(Lit::from(*value)),
            Term::Constant(value) => {
                let number = ladder::number(value).expect("numbers are all that is left");
                Word::Ladder(Ladder::constant(number))
            }
            Term::Before(first, second) => Word::Truth(self.before(*first, *second)?),
            Term::Symbol(_) if sort == Sort::BOOL => Word::Truth(self.cnf.fresh()),
            Term::Symbol(_) => match self.domains.of(terms, leaf) {
                Domain::Few(values) => Word::Ladder(Ladder::fresh(&mut self.cnf, values)),
                Domain::Range(low, high) => {
                    let width = match sort.width() {
                        Some(width) => usize::from(width),
                        None => ladder::width(low).max(ladder::width(high)),
                    };
                    Word::Bits((0..width).map(|_| self.cnf.fresh()).collect())
                }
                Domain::Any => {
                    self.cut.insert(leaf);
                    Word::Bits((0..self.width).map(|_| self.cnf.fresh()).collect())
                }
            },
            other => return Err(format!("{other:?} in a formula")),
        })
    }

    /// The number as bits: a bit-vector at its width, an integer at the width it needs.
    fn bits_of(&mut self, terms: &TermStore, term: TermId) -> Rc<[Lit]> {
        if let Some(bits) = self.bits.get(&term) {
            return Rc::clone(bits);
        }
        let bits: Rc<[Lit]> = match self.words[&term].clone() {
            Word::Bits(bits) => bits,
            Word::Ladder(ladder) => {
                let width = terms.sort(term).width().map_or(ladder.width(), usize::from);
                ladder.bits(&mut self.cnf, width).into()
            }
            Word::Truth(_) => unreachable!("Booleans have no bits"),
        };
        self.bits.insert(term, Rc::clone(&bits));
        bits
    }
}
