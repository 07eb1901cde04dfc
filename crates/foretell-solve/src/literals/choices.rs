//! π-functions: each choice a literal, and the value that the symbol has if it is taken.

use std::rc::Rc;

use foretell_trace::{EventId, Sort, SymbolId, Term, TermId, TermStore};

use super::values::number_of;
use super::{Encoder, Unsupported, Word};
use crate::cnf::{FALSE, Lit};
use crate::ladder::Ladder;
use crate::order::Read;
use crate::problem::Pi;

/// A π-function whose choices have literals.
pub(super) struct Choices {
    pub(super) pi: Pi,
    pub(super) literals: Vec<Lit>,
    /// By choice: the clauses that give the symbol its value are still to come
    /// ([`Encoder::refine`]).
    open: Vec<bool>,
}

pub(super) enum Pending {
    /// A formula that holds.
    Assert(TermId),
    /// The choices' values of a symbol.
    Link(usize, TermId, Vec<TermId>),
}

impl Encoder {
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

    /// Adds the constraints that came up on the way.
    pub(super) fn settle(&mut self, terms: &mut TermStore) -> Result<(), Unsupported> {
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
}
