//! What a solution says that symbols and arrays are.

use std::collections::HashMap;

use foretell_trace::term::ArrayValue;
use foretell_trace::{Sort, SymbolId, Term, TermStore, Value};

use super::choices::Choices;
use super::{Encoder, Word};
use crate::bitblast;
use crate::cnf::{Cnf, Lit};
use crate::ladder::{self};

impl Encoder {
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
pub(super) fn number_of(cnf: &mut Cnf, word: &Word) -> i128 {
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
