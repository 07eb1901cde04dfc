//! What a property asks for, as one formula: over the order of the events, which of them take
//! place, and the values of variables at certain moments.
//!
//! The formula has two readers. The encoder makes a question for the solver of it; the check of a
//! witness evaluates it on the states that the independent validator went through. Neither knows
//! the other.

use std::collections::HashMap;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_model::validate::{Run, Witness};
use foretell_trace::{EventId, Scope, Sort, SymbolId, Term, TermId, TermStore, Value, VariableId};

/// Stands in goals for the end of the prefix: what comes before it takes place.
pub const END: EventId = EventId(u32::MAX);

/// When a variable's value is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Just before this event. If it does not take place: when its thread has come to it (only for
    /// variables that no other thread changes).
    Before(EventId),
    /// At the end of the prefix.
    End,
}

/// A formula that holds of the prefixes in which something goes wrong.
#[derive(Clone, Debug)]
pub struct Goal {
    /// Owns the formula; leaves are `Before` (with [`END`]) and symbols.
    pub terms: TermStore,
    /// The formula.
    pub formula: TermId,
    /// What each symbol stands for.
    pub values: Vec<(Moment, VariableId)>,
}

impl Goal {
    /// Can the formula be seen to be false as it stands?
    pub fn is_impossible(&self) -> bool {
        self.terms.is_false(self.formula)
    }

    /// The goal that all of these are reached at once.
    pub(crate) fn all(goals: &[Goal]) -> Goal {
        let (mut terms, mut values) = (TermStore::default(), Vec::new());
        let mut symbols: HashMap<(Moment, VariableId), TermId> = HashMap::new();
        let mut parts = Vec::new();
        for goal in goals {
            let mut replace = |terms: &mut TermStore, leaf: TermId| match *goal.terms.term(leaf) {
                Term::Symbol(symbol) => {
                    let value = goal.values[symbol.index()];
                    *symbols.entry(value).or_insert_with(|| {
                        values.push(value);
                        terms.fresh_symbol(format!("{value:?}"), goal.terms.sort(leaf))
                    })
                }
                Term::Before(first, second) => terms.before(first, second),
                ref other => unreachable!("{other:?} in a goal"),
            };
            parts.push(terms.import(&goal.terms, goal.formula, &mut HashMap::new(), &mut replace));
        }
        let formula = terms.and(&parts);
        Goal { terms, formula, values }
    }

    /// The events that the formula orders or asks to take place.
    pub fn events(&self) -> Vec<EventId> {
        let mut events = Vec::new();
        for leaf in self.terms.leaves(self.formula) {
            if let Term::Before(first, second) = *self.terms.term(leaf) {
                events.extend([first, second].into_iter().filter(|&event| event != END));
            }
        }
        events
    }

    /// Does the goal hold where events have these places (`usize::MAX`: not at all) and variables
    /// these values? `None` when a value is not defined.
    pub fn evaluate(
        &self,
        place: impl Fn(EventId) -> usize,
        value: impl Fn(Moment, VariableId) -> Option<Value>,
    ) -> Option<bool> {
        self.terms.holds(self.formula, &|leaf: &Term| match leaf {
            Term::Before(first, second) => Some(Value::Bool(place(*first) < place(*second))),
            Term::Symbol(symbol) => {
                let (moment, variable) = self.values[symbol.index()];
                value(moment, variable)
            }
            _ => None,
        })
    }

    /// Does the goal hold of an accepted witness?
    pub fn holds(&self, witness: &Witness, run: &Run) -> Option<bool> {
        let mut places: HashMap<EventId, usize> = HashMap::new();
        places.extend(witness.order.iter().enumerate().map(|(place, &event)| (event, place)));
        let end = witness.order.len();
        let place = |event: EventId| match event {
            END => end,
            _ => places.get(&event).copied().unwrap_or(usize::MAX),
        };
        let steps = |moment: Moment| match moment {
            Moment::Before(event) => place(event).min(end),
            Moment::End => end,
        };
        // What becomes of the variables that the goal speaks of.
        let mut changes: HashMap<VariableId, Vec<(usize, &Value)>> = HashMap::new();
        for &(_, variable) in &self.values {
            changes.entry(variable).or_default();
        }
        for (step, changed) in run.changes.iter().enumerate() {
            for (variable, value) in changed {
                if let Some(changes) = changes.get_mut(variable) {
                    changes.push((step, value));
                }
            }
        }
        self.evaluate(place, |moment, variable| {
            let (steps, changes) = (steps(moment), &changes[&variable]);
            let before = changes.partition_point(|(step, _)| *step < steps);
            match before.checked_sub(1) {
                Some(last) => Some(changes[last].1.clone()),
                None => run.start.values.get(variable.index()).cloned(),
            }
        })
    }
}

/// Builds goals over the events of one CTP.
#[derive(Debug)]
pub struct GoalBuilder<'c> {
    ctp: &'c ConcurrentTraceProgram,
    /// The goal's terms.
    pub terms: TermStore,
    values: Vec<(Moment, VariableId)>,
    symbols: HashMap<(Moment, VariableId), TermId>,
}

impl<'c> GoalBuilder<'c> {
    /// A new goal.
    pub fn new(ctp: &'c ConcurrentTraceProgram) -> Self {
        Self { ctp, terms: TermStore::default(), values: Vec::new(), symbols: HashMap::new() }
    }

    /// The goal that the formula is.
    pub fn finish(self, formula: TermId) -> Goal {
        Goal { terms: self.terms, formula, values: self.values }
    }

    /// The event takes place.
    pub fn taken(&mut self, event: EventId) -> TermId {
        self.terms.before(event, END)
    }

    /// The event's thread has come to it, and it does not take place.
    pub fn next(&mut self, event: EventId) -> TermId {
        let place = self.ctp.event(event);
        let waits = self.terms.before(END, event);
        match place.position.checked_sub(1) {
            None => waits,
            Some(before) => {
                let before = self.ctp.threads[place.thread.index()][before as usize];
                let came = self.taken(before);
                self.terms.and(&[came, waits])
            }
        }
    }

    /// The value of a variable.
    pub fn value(&mut self, moment: Moment, variable: VariableId) -> TermId {
        if let Some(&known) = self.symbols.get(&(moment, variable)) {
            return known;
        }
        let name = format!("{}@{moment:?}", self.ctp.variables[variable.index()].name);
        let sort = self.ctp.variables[variable.index()].sort;
        let symbol = self.terms.fresh_symbol(name, sort);
        debug_assert_eq!(self.terms.term(symbol), &Term::Symbol(SymbolId::from(self.values.len())));
        self.values.push((moment, variable));
        self.symbols.insert((moment, variable), symbol);
        symbol
    }

    /// A term of the CTP at a moment, with one variable's value replaced.
    pub fn at(
        &mut self,
        moment: Moment,
        term: TermId,
        replaced: Option<(VariableId, TermId)>,
    ) -> TermId {
        self.at_with(moment, term, &replaced.into_iter().collect())
    }

    /// A term of the CTP at a moment, with the values of some variables replaced.
    pub fn at_with(
        &mut self,
        moment: Moment,
        term: TermId,
        replaced: &HashMap<VariableId, TermId>,
    ) -> TermId {
        let ctp = self.ctp;
        let mut terms = std::mem::take(&mut self.terms);
        let mut cache: HashMap<TermId, TermId> = HashMap::new();
        for leaf in ctp.terms.leaves(term) {
            let Term::Variable(variable) = *ctp.terms.term(leaf) else { continue };
            let here = match replaced.get(&variable) {
                Some(&by) => by,
                None => {
                    std::mem::swap(&mut terms, &mut self.terms);
                    let value = self.value(moment, variable);
                    std::mem::swap(&mut terms, &mut self.terms);
                    value
                }
            };
            cache.insert(leaf, here);
        }
        let mut other = |_: &mut TermStore, _: TermId| -> TermId {
            unreachable!("guards and right-hand sides are over unprimed variables")
        };
        let at = terms.import(&ctp.terms, term, &mut cache, &mut other);
        self.terms = terms;
        at
    }

    /// The two terms differ.
    pub fn differ(&mut self, a: TermId, b: TermId) -> TermId {
        let same = self.terms.build(foretell_trace::Operator::Eq, &[a, b]);
        self.terms.not(same)
    }

    /// What of the event's guard depends on its own thread alone (for a plain access: that its
    /// address is the recorded one).
    pub fn local_guard(&mut self, event: EventId) -> TermId {
        let parts = self.local_parts(event);
        let parts: Vec<TermId> =
            parts.into_iter().map(|part| self.at(Moment::Before(event), part, None)).collect();
        self.terms.and(&parts)
    }

    /// The parts of the event's guard, as terms of the CTP, that depend on its own thread alone.
    pub fn local_parts(&self, event: EventId) -> Vec<TermId> {
        let ctp = self.ctp;
        let mut parts = self.guard_parts(event);
        parts.retain(|&part| {
            ctp.terms.leaves(part).iter().all(|&leaf| match ctp.terms.term(leaf) {
                Term::Variable(variable) => ctp.variables[variable.index()].scope != Scope::Shared,
                _ => false,
            })
        });
        parts
    }

    /// At the end of the prefix, nothing that the event's guard says of locks keeps it from taking place.
    pub fn lock_is_free(&mut self, event: EventId) -> TermId {
        let ctp = self.ctp;
        let mut parts = self.guard_parts(event);
        parts.retain(|&part| {
            ctp.terms.leaves(part).iter().all(|&leaf| match ctp.terms.term(leaf) {
                Term::Variable(variable) => {
                    let role = ctp.variables[variable.index()].role;
                    matches!(role, Role::Lock(_) | Role::Reader(..))
                }
                _ => true,
            })
        });
        let parts: Vec<TermId> =
            parts.into_iter().map(|part| self.at(Moment::End, part, None)).collect();
        self.terms.and(&parts)
    }

    /// The conjuncts of the event's guard, as terms of the CTP.
    fn guard_parts(&self, event: EventId) -> Vec<TermId> {
        let Action::Guarded { guard, .. } = self.ctp.event(event).action else { return Vec::new() };
        match self.ctp.terms.term(guard) {
            Term::Apply(foretell_trace::Operator::And, parts) => parts.to_vec(),
            _ => vec![guard],
        }
    }

    /// The CTP.
    pub fn ctp(&self) -> &'c ConcurrentTraceProgram {
        self.ctp
    }
}

/// Is it a variable of the program that several threads can see?
pub fn is_shared_data(ctp: &ConcurrentTraceProgram, variable: VariableId) -> bool {
    let variable = &ctp.variables[variable.index()];
    variable.scope == Scope::Shared && variable.role == Role::Data
}

/// Is the sort an array?
pub fn is_array(sort: Sort) -> bool {
    matches!(sort, Sort::Array { .. })
}
