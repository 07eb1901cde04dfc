//! Arrays: `select` pushed down to fresh symbols for elements.

use foretell_trace::{Operator, Sort, SymbolId, Term, TermId, TermStore, Value};

use super::Encoder;
use super::choices::Pending;

impl Encoder {
    pub(super) fn link_element(
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
    pub(super) fn read(&mut self, terms: &mut TermStore, array: TermId, index: TermId) -> TermId {
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
}
