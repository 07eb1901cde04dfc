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

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use foretell_trace::term::ArrayValue;
use foretell_trace::{
    EventId, Operator, ScalarSort, Sort, SymbolId, Term, TermId, TermStore, Value,
};

use crate::bitblast;
use crate::cnf::{Cnf, FALSE, Lit};
use crate::domain::{Domain, Domains};
use crate::ladder::{self, Ladder};
use crate::order::{OrderTheory, Read};
use crate::problem::Pi;

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

/// A π-function whose choices have literals.
struct Choices {
    pi: Pi,
    literals: Vec<Lit>,
    /// By choice: the clauses that give the symbol its value are still to come
    /// ([`Encoder::refine`]).
    open: Vec<bool>,
}

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

enum Pending {
    /// A formula that holds.
    Assert(TermId),
    /// The choices' values of a symbol.
    Link(usize, TermId, Vec<TermId>),
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

    /// The reads-from structure of a π-function (see [`crate::order`]), and the values it gives.
    pub(crate) fn add_pi(&mut self, terms: &mut TermStore, pi: &Pi) -> Result<(), Unsupported> {
        let active = self.literal(terms, pi.active)?;
        if active == FALSE {
            return Ok(());
        }
        let theory = Rc::clone(&self.theory);
        let number = |event: EventId| {
            theory.borrow().must().require(event).map_err(|error| error.to_string())
        };
        let event = number(pi.event)?;
        let mut writes = Vec::with_capacity(pi.interfering.len());
        for &write in &pi.interfering {
            writes.push(number(write)?);
        }
        writes.sort_unstable();
        writes.dedup();
        let mut literals = Vec::with_capacity(pi.choices.len());
        let mut choices = Vec::with_capacity(pi.choices.len());
        let earlier = |definition: &Option<EventId>| definition.is_none_or(|d| d < pi.event);
        let recorded = pi.choices.iter().map(|choice| choice.0).filter(earlier).max();
        for &(definition, _) in &pi.choices {
            let likely = recorded == Some(definition);
            let definition = definition.map(number).transpose()?;
            let possible = {
                let theory = theory.borrow();
                let must = theory.must();
                let hidden = |write: u32| {
                    Some(write) != definition
                        && must.reaches(write, event)
                        && definition.is_none_or(|definition| must.reaches(definition, write))
                };
                definition.is_none_or(|d| d != event && !must.reaches(event, d))
                    && !writes.iter().any(|&write| hidden(write))
            };
            if !possible {
                literals.push(FALSE);
                continue;
            }
            let literal = self.likely(likely);
            self.cnf.clause(&[!literal, active]);
            if let Some(definition) = definition {
                let before = self.pair(definition, event);
                self.cnf.clause(&[!literal, before]);
            }
            literals.push(literal);
            choices.push((definition, literal));
        }
        let mut some = literals.clone();
        some.push(!active);
        self.cnf.clause(&some);
        let group = theory.borrow_mut().group(&writes);
        for &write in &writes {
            self.pair(event, write);
        }
        for definition in choices.iter().filter_map(|choice| choice.0) {
            if self.paired.insert((group, definition)) {
                for &write in &writes {
                    self.pair(definition, write);
                }
            }
        }
        let observed: Vec<Lit> = choices.iter().map(|choice| choice.1).collect();
        theory.borrow_mut().add_read(Read { event, choices, group });
        for literal in observed {
            self.observe(literal);
        }
        let number = self.choices.len();
        let open = vec![false; literals.len()];
        self.choices.push(Choices { pi: pi.clone(), literals, open });
        match (terms.term(pi.symbol), terms.sort(pi.symbol)) {
            (Term::Symbol(symbol), Sort::Array { .. }) => {
                let symbol = *symbol;
                self.array_pis.entry(symbol).or_default().push(number);
                for (index, element) in self.elements.get(&symbol).cloned().unwrap_or_default() {
                    self.link_element(terms, number, index, element);
                }
            }
            (_, Sort::Array { .. }) => {
                return Err(String::from(
                    "an array that is read into something else than a symbol",
                ));
            }
            _ => {
                match self.lazy {
                    true => self.postpone(terms, number)?,
                    false => {
                        let values = pi.choices.iter().map(|choice| choice.1).collect();
                        self.link(terms, number, pi.symbol, values)?;
                    }
                }
                if let (Term::Symbol(symbol), Word::Ladder(ladder)) =
                    (terms.term(pi.symbol), self.words[&pi.symbol].clone())
                {
                    self.count(*symbol, event, active, &ladder);
                }
            }
        }
        self.settle(terms)
    }

    /// Clauses that follow from the others but are far to find: a counter that is read before some
    /// definition has no part of that definition, nor of those behind it.
    fn count(&mut self, symbol: SymbolId, event: u32, active: Lit, ladder: &Ladder) {
        let bounds: Vec<(u32, i128, i128)> = {
            let theory = self.theory.borrow();
            self.domains.counted_before(symbol, event, theory.must())
        };
        for (definition, low, high) in bounds {
            let before = self.pair(event, definition);
            self.cnf.clause(&[!before, !active, ladder.at_least(low)]);
            self.cnf.clause(&[!before, !active, !ladder.more_than(high)]);
        }
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

    /// Adds the constraints that came up on the way.
    fn settle(&mut self, terms: &mut TermStore) -> Result<(), Unsupported> {
        while let Some(next) = self.pending.pop() {
            match next {
                Pending::Assert(formula) => self.assert(terms, formula)?,
                Pending::Link(number, symbol, values) => {
                    self.link(terms, number, symbol, values)?;
                }
            }
        }
        Ok(())
    }

    /// Each choice of the π-function gives the symbol its value.
    fn link(
        &mut self,
        terms: &mut TermStore,
        number: usize,
        symbol: TermId,
        values: Vec<TermId>,
    ) -> Result<(), Unsupported> {
        self.encode(terms, symbol)?;
        for (choice, value) in values.into_iter().enumerate() {
            let literal = self.choices[number].literals[choice];
            if literal == FALSE {
                continue;
            }
            self.encode(terms, value)?;
            self.link_choice(literal, symbol, value);
        }
        Ok(())
    }

    /// The literal implies that the symbol has the value; both have words.
    fn link_choice(&mut self, literal: Lit, symbol: TermId, value: TermId) {
        let mut guard = vec![literal];
        if self.cut.contains(&symbol) || self.cut.contains(&value) {
            guard.push(self.narrow);
        }
        match (self.words[&symbol].clone(), self.words[&value].clone()) {
            (Word::Truth(a), Word::Truth(b)) => self.cnf.equal_if(&guard, a, b),
            (Word::Ladder(a), Word::Ladder(b)) => a.same_if(&mut self.cnf, &guard, &b),
            _ => {
                let (a, b) = self.same_width(symbol, value);
                for (a, b) in a.into_iter().zip(b) {
                    self.cnf.equal_if(&guard, a, b);
                }
            }
        }
    }

    /// Leaves the values of the π-function's choices to [`Self::refine`].
    fn postpone(&mut self, terms: &mut TermStore, number: usize) -> Result<(), Unsupported> {
        self.encode(terms, self.choices[number].pi.symbol)?;
        for choice in 0..self.choices[number].literals.len() {
            if self.choices[number].literals[choice] != FALSE {
                self.encode(terms, self.choices[number].pi.choices[choice].1)?;
                self.choices[number].open[choice] = true;
            }
        }
        Ok(())
    }

    /// Adds the values of the choices that the SAT solver's solution makes, where they were left
    /// out and the solution contradicts one of them. False if the solution is one.
    pub(crate) fn refine(&mut self) -> bool {
        let mut made: Vec<(usize, usize)> = Vec::new();
        for (number, choices) in self.choices.iter().enumerate() {
            for (choice, &literal) in choices.literals.iter().enumerate() {
                if choices.open[choice] && self.cnf.holds(literal) {
                    made.push((number, choice));
                }
            }
        }
        let contradicted = made.iter().any(|&(number, choice)| {
            let pi = &self.choices[number].pi;
            let [symbol, value] = [pi.symbol, pi.choices[choice].1]
                .map(|term| number_of(&mut self.cnf, &self.words[&term]));
            symbol != value
        });
        if !contradicted {
            return false;
        }
        for (number, choice) in made {
            let pi = &self.choices[number].pi;
            let (symbol, value) = (pi.symbol, pi.choices[choice].1);
            self.choices[number].open[choice] = false;
            self.link_choice(self.choices[number].literals[choice], symbol, value);
        }
        true
    }

    fn link_element(
        &mut self,
        terms: &mut TermStore,
        number: usize,
        index: TermId,
        element: TermId,
    ) {
        let values: Vec<TermId> = self.choices[number]
            .pi
            .choices
            .clone()
            .iter()
            .map(|c| self.read(terms, c.1, index))
            .collect();
        self.pending.push(Pending::Link(number, element, values));
    }

    /// The element of an array as a term without arrays.
    fn read(&mut self, terms: &mut TermStore, array: TermId, index: TermId) -> TermId {
        // outermost first: what is read if no store below matches
        let mut layers: Vec<(TermId, TermId)> = Vec::new();
        let mut array = array;
        let mut element = loop {
            match terms.term(array).clone() {
                Term::Apply(Operator::Store, parts) => {
                    let same = terms.eq(index, parts[1]);
                    if terms.is_true(same) {
                        break parts[2];
                    }
                    if !terms.is_false(same) {
                        layers.push((same, parts[2]));
                    }
                    array = parts[0];
                }
                Term::Apply(Operator::Ite, parts) => {
                    let [then, otherwise] =
                        [parts[1], parts[2]].map(|a| self.read(terms, a, index));
                    break terms.ite(parts[0], then, otherwise);
                }
                Term::Constant(Value::Array(values)) => {
                    let mut element = terms.constant(values.default_element().clone());
                    let entries: Vec<(Value, Value)> =
                        values.entries().map(|(i, e)| (i.clone(), e.clone())).collect();
                    for (place, value) in entries {
                        let (place, value) = (terms.constant(place), terms.constant(value));
                        let same = terms.eq(index, place);
                        element = terms.ite(same, value, element);
                    }
                    break element;
                }
                Term::Symbol(symbol) => break self.element(terms, symbol, index),
                _ => unreachable!("arrays are symbols, constants, stores and choices"),
            }
        };
        for (same, value) in layers.into_iter().rev() {
            element = terms.ite(same, value, element);
        }
        element
    }

    /// The symbol for an array symbol's element at the index.
    fn element(&mut self, terms: &mut TermStore, array: SymbolId, index: TermId) -> TermId {
        let known = self.elements.get(&array).cloned().unwrap_or_default();
        if let Some(&(_, element)) = known.iter().find(|&&(other, _)| other == index) {
            return element;
        }
        let Sort::Array { element: sort, .. } = terms.symbol(array).sort else {
            unreachable!("only arrays are read")
        };
        let name = format!("{}[{}]", terms.symbol(array).name, index.0);
        let element = terms.fresh_symbol(name, sort.into());
        self.elements.entry(array).or_default().push((index, element));
        for (other, value) in known {
            let same_index = terms.eq(index, other);
            let same_value = terms.eq(element, value);
            let consistent = terms.implies(same_index, same_value);
            if !terms.is_true(consistent) {
                self.pending.push(Pending::Assert(consistent));
            }
        }
        for number in self.array_pis.get(&array).cloned().unwrap_or_default() {
            self.link_element(terms, number, index, element);
        }
        element
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

    /// Both numbers as bits of one width.
    fn same_width(&mut self, a: TermId, b: TermId) -> (Vec<Lit>, Vec<Lit>) {
        let width = |word: &Word| match word {
            Word::Ladder(ladder) => ladder.width(),
            Word::Bits(bits) => bits.len(),
            Word::Truth(_) => unreachable!("Booleans have no bits"),
        };
        let width = width(&self.words[&a]).max(width(&self.words[&b]));
        let mut extended = |term: TermId| match self.words[&term].clone() {
            Word::Ladder(ladder) => ladder.bits(&mut self.cnf, width),
            Word::Bits(bits) => bitblast::sign_extend(&bits, width),
            Word::Truth(_) => unreachable!("Booleans have no bits"),
        };
        (extended(a), extended(b))
    }

    fn apply(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        sort: Sort,
        arguments: &[TermId],
    ) -> Result<Word, Unsupported> {
        use Operator::*;
        let truths = |encoder: &Self| -> Vec<Lit> {
            arguments.iter().map(|&part| encoder.truth(part)).collect()
        };
        let compared = arguments.first().map(|&part| terms.sort(part));
        let word = match operator {
            Not => Word::Truth(!self.truth(arguments[0])),
            And => {
                let parts = truths(self);
                Word::Truth(self.cnf.and_all(&parts))
            }
            Or => {
                let parts = truths(self);
                Word::Truth(self.cnf.or_all(&parts))
            }
            Xor => Word::Truth(self.cnf.xor(self.truth(arguments[0]), self.truth(arguments[1]))),
            Implies => {
                Word::Truth(self.cnf.or(!self.truth(arguments[0]), self.truth(arguments[1])))
            }
            Eq if compared == Some(Sort::BOOL) => {
                Word::Truth(!self.cnf.xor(self.truth(arguments[0]), self.truth(arguments[1])))
            }
            Ite if sort == Sort::BOOL => {
                let [condition, then, otherwise] = truths(self)[..] else { unreachable!("sorted") };
                Word::Truth(self.cnf.ite(condition, then, otherwise))
            }
            _ => match self.on_ladders(terms, operator, sort, arguments) {
                Some(word) => word,
                None if sort == Sort::BOOL => self.compare(terms, operator, arguments)?,
                None if sort.width().is_some() => {
                    Word::Bits(self.bit_vector(terms, operator, arguments).into())
                }
                None => Word::Bits(self.integer(terms, operator, arguments)?.into()),
            },
        };
        Ok(word)
    }

    /// The operator where all numbers are ladders, if that stays small.
    fn on_ladders(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        sort: Sort,
        arguments: &[TermId],
    ) -> Option<Word> {
        use Operator::*;
        let mut ladders = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            match &self.words[&argument] {
                Word::Ladder(ladder) => ladders.push(ladder.clone()),
                Word::Truth(_) if operator == Ite => {}
                _ => return None,
            }
        }
        let cnf = &mut self.cnf;
        let natural = |ladder: &Ladder| ladder.values[0] >= 0;
        // a sum of bit-vectors that cannot wrap around
        let fits = |ladder: Ladder| {
            let (low, high) = (ladder.values[0], *ladder.values.last()?);
            let inside = Domain::full(sort).bounds().is_none_or(|(a, b)| a <= low && high <= b);
            inside.then_some(ladder)
        };
        if sort == Sort::BOOL {
            let [a, b] = ladders.as_slice() else { return None };
            let (strict, fitting) = match operator {
                Eq => return Some(Word::Truth(a.same(cnf, b))),
                Lt | BvSlt => (true, true),
                Le | BvSle => (false, true),
                BvUlt => (true, natural(a) && natural(b)),
                BvUle => (false, natural(a) && natural(b)),
                _ => return None,
            };
            return fitting.then(|| Word::Truth(a.less(cnf, b, !strict)));
        }
        let sum = |cnf: &mut Cnf, negate: bool| {
            let mut sum = ladders[0].clone();
            for next in &ladders[1..] {
                let next = if negate { next.negate()? } else { next.clone() };
                sum = sum.plus(cnf, &next)?;
            }
            fits(sum)
        };
        let simple = match operator {
            Ite => {
                let condition = match &self.words[&arguments[0]] {
                    Word::Truth(literal) => *literal,
                    _ => return None,
                };
                let [then, otherwise] = ladders.as_slice() else { return None };
                let mut values: Vec<i128> =
                    then.values.iter().chain(&*otherwise.values).copied().collect();
                values.sort_unstable();
                values.dedup();
                if values.len() > ladder::FEW {
                    return None;
                }
                let steps = values[1..]
                    .iter()
                    .map(|&v| cnf.ite(condition, then.at_least(v), otherwise.at_least(v)));
                let steps = steps.collect();
                Some(Ladder { steps, values: values.into() })
            }
            Add | BvAdd => sum(cnf, false),
            Sub | BvSub => sum(cnf, true),
            Neg | BvNeg => ladders[0].negate().and_then(fits),
            SignExtend(_) => Some(ladders[0].clone()),
            ZeroExtend(_) if natural(&ladders[0]) => Some(ladders[0].clone()),
            Mul | BvMul => match ladders.as_slice() {
                [a, b] => match (&*a.values, &*b.values) {
                    (_, [factor]) if *factor != 0 => a.scale(*factor).and_then(fits),
                    ([factor], _) if *factor != 0 => b.scale(*factor).and_then(fits),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let ladder = match simple {
            Some(ladder) => ladder,
            None if operator == Ite => return None,
            None => {
                let sorts = arguments.iter().map(|&argument| terms.sort(argument));
                let arguments: Vec<(&Ladder, Sort)> = ladders.iter().zip(sorts).collect();
                Ladder::table(cnf, operator, sort, &arguments)?
            }
        };
        Some(Word::Ladder(ladder))
    }

    fn compare(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<Word, Unsupported> {
        use Operator::*;
        let [a, b] = arguments else { return Err(format!("`{}`", operator.smtlib_name())) };
        let (a, b) = match terms.sort(*a).width() {
            Some(_) => (self.bits_of(terms, *a).to_vec(), self.bits_of(terms, *b).to_vec()),
            None => self.same_width(*a, *b),
        };
        let cnf = &mut self.cnf;
        Ok(Word::Truth(match operator {
            Eq => cnf.bits_equal(&a, &b),
            Lt | BvSlt => cnf.signed_less(&a, &b, false),
            Le | BvSle => cnf.signed_less(&a, &b, true),
            BvUlt => cnf.unsigned_less(&a, &b, false),
            BvUle => cnf.unsigned_less(&a, &b, true),
            _ => return Err(format!("`{}`", operator.smtlib_name())),
        }))
    }

    fn bit_vector(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        arguments: &[TermId],
    ) -> Vec<Lit> {
        use Operator::*;
        if operator == Ite {
            let condition = self.truth(arguments[0]);
            let then = self.bits_of(terms, arguments[1]);
            let otherwise = self.bits_of(terms, arguments[2]);
            return self.cnf.mux(condition, &then, &otherwise);
        }
        let words: Vec<Rc<[Lit]>> =
            arguments.iter().map(|&argument| self.bits_of(terms, argument)).collect();
        let a = &words[0];
        let cnf = &mut self.cnf;
        let b = words.get(1).unwrap_or(a);
        let mut each = |gate: fn(&mut Cnf, Lit, Lit) -> Lit| -> Vec<Lit> {
            a.iter().zip(&**b).map(|(&a, &b)| gate(cnf, a, b)).collect()
        };
        match operator {
            BvAnd => return each(Cnf::and),
            BvOr => return each(Cnf::or),
            BvXor => return each(Cnf::xor),
            _ => {}
        }
        match operator {
            BvNot => a.iter().map(|&bit| !bit).collect(),
            BvNeg => cnf.neg(a),
            BvAdd => cnf.add(a, b, FALSE),
            BvSub => cnf.sub(a, b),
            BvMul => cnf.mul(a, b),
            BvUdiv => cnf.unsigned_divide(a, b).0,
            BvUrem => cnf.unsigned_divide(a, b).1,
            BvSdiv => cnf.signed_divide(a, b).0,
            BvSrem => cnf.signed_divide(a, b).1,
            BvShl => cnf.shift(a, b, true, FALSE),
            BvLshr => cnf.shift(a, b, false, FALSE),
            BvAshr => cnf.shift(a, b, false, a[a.len() - 1]),
            Concat => b.iter().chain(&**a).copied().collect(),
            Extract { high, low } => a[usize::from(low)..=usize::from(high)].to_vec(),
            ZeroExtend(by) => a.iter().copied().chain((0..by).map(|_| FALSE)).collect(),
            SignExtend(by) => bitblast::sign_extend(a, a.len() + usize::from(by)),
            other => unreachable!("{other:?} gives no bit-vector"),
        }
    }

    fn integer(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<Vec<Lit>, Unsupported> {
        use Operator::*;
        if operator == Ite {
            let condition = self.truth(arguments[0]);
            let (then, otherwise) = self.same_width(arguments[1], arguments[2]);
            return Ok(self.cnf.mux(condition, &then, &otherwise));
        }
        if !matches!(operator, Add | Sub | Mul | Neg | Abs | IntDiv | Mod) {
            return Err(format!("`{}`", operator.smtlib_name()));
        }
        let words: Vec<Rc<[Lit]>> =
            arguments.iter().map(|&argument| self.bits_of(terms, argument)).collect();
        let mut result = words[0].to_vec();
        if matches!(operator, Neg | Abs) {
            let wide = bitblast::sign_extend(&result, result.len() + 1);
            let negative = self.cnf.neg(&wide);
            return Ok(match operator {
                Neg => negative,
                _ => self.cnf.mux(wide[wide.len() - 1], &negative, &wide),
            });
        }
        for word in &words[1..] {
            let width = match operator {
                Mul => result.len() + word.len(),
                _ => result.len().max(word.len()) + 1,
            };
            if width > WIDEST {
                return Err(format!("integers of more than {WIDEST} bits"));
            }
            let a = bitblast::sign_extend(&result, width);
            let b = bitblast::sign_extend(word, width);
            result = match operator {
                Add => self.cnf.add(&a, &b, FALSE),
                Sub => self.cnf.sub(&a, &b),
                Mul => self.cnf.mul(&a, &b),
                _ => {
                    let Some(divisor) = bitblast::known(&b).filter(|&divisor| divisor != 0) else {
                        return Err(String::from("division of integers by a variable"));
                    };
                    self.euclid(&a, &b, divisor, operator == Mod)
                }
            };
        }
        Ok(result)
    }

    /// Division with a remainder that is not negative.
    fn euclid(&mut self, a: &[Lit], b: &[Lit], divisor: i128, remainder: bool) -> Vec<Lit> {
        let width = a.len();
        let (quotient, rest) = self.cnf.signed_divide(a, b);
        let negative = rest[width - 1];
        let (word, step) = match remainder {
            true => (rest, divisor.abs()),
            false => (quotient, -divisor.signum()),
        };
        let corrected = self.cnf.add(&word, &bitblast::constant(step, width), FALSE);
        self.cnf.mux(negative, &corrected, &word)
    }

    /// The symbols' values in the assignment that the SAT solver found.
    pub(crate) fn values(&mut self, terms: &TermStore) -> HashMap<SymbolId, Value> {
        let mut values = HashMap::new();
        for (&term, word) in &self.words {
            let Term::Symbol(symbol) = terms.term(term) else { continue };
            let value = match word {
                Word::Truth(literal) => Some(Value::Bool(self.cnf.holds(*literal))),
                Word::Ladder(_) | Word::Bits(_) => {
                    ladder::value(terms.sort(term), number_of(&mut self.cnf, word))
                }
            };
            if let Some(value) = value {
                values.insert(*symbol, value);
            }
        }
        values
    }

    /// Values of the array symbols: what was read of them, then what the π-functions gave them, in
    /// the order of events.
    pub(crate) fn array_values(
        &mut self,
        terms: &TermStore,
        order: &[u32],
        values: &mut HashMap<SymbolId, Value>,
    ) {
        for (&array, elements) in &self.elements {
            let Sort::Array { index, element } = terms.symbol(array).sort else { continue };
            let mut value = ArrayValue::constant(index, Value::zero(element.into()));
            for &(place, element) in elements {
                let environment = |leaf: &Term| environment(leaf, values, terms);
                if let (Ok(place), Ok(element)) =
                    (terms.evaluate(place, &environment), terms.evaluate(element, &environment))
                {
                    value = value.store(place, element);
                }
            }
            values.insert(array, Value::Array(Box::new(value)));
        }
        if self.array_pis.is_empty() {
            return;
        }
        let mut at: HashMap<u32, Vec<(SymbolId, usize)>> = HashMap::new();
        for (&array, pis) in &self.array_pis {
            for &number in pis {
                let event = self.choices[number].pi.event;
                if let Ok(event) = self.theory.borrow().must().require(event) {
                    at.entry(event).or_default().push((array, number));
                }
            }
        }
        for event in order {
            for &(array, number) in at.get(event).into_iter().flatten() {
                let Choices { pi, literals, .. } = &self.choices[number];
                let chosen = literals.iter().position(|&literal| self.cnf.holds(literal));
                if let Some(chosen) = chosen {
                    let environment = |leaf: &Term| environment(leaf, values, terms);
                    if let Ok(value) = terms.evaluate(pi.choices[chosen].1, &environment) {
                        values.insert(array, value);
                    }
                }
            }
        }
    }
}

/// What the word is in the SAT solver's solution.
fn number_of(cnf: &mut Cnf, word: &Word) -> i128 {
    match word {
        Word::Truth(literal) => i128::from(cnf.holds(*literal)),
        Word::Ladder(ladder) => {
            let steps = ladder.steps.iter().take_while(|&&step| cnf.holds(step)).count();
            ladder.values[steps]
        }
        Word::Bits(bits) => {
            let bits: Vec<Lit> = bits.iter().map(|&bit| Lit::from(cnf.holds(bit))).collect();
            bitblast::known(&bits).expect("all bits have values")
        }
    }
}

fn environment(leaf: &Term, values: &HashMap<SymbolId, Value>, terms: &TermStore) -> Option<Value> {
    match leaf {
        Term::Symbol(symbol) => {
            let value = values.get(symbol).cloned();
            Some(value.unwrap_or_else(|| Value::zero(terms.symbol(*symbol).sort)))
        }
        _ => None,
    }
}
