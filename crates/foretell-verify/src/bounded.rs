//! Plain bounded checking, for comparison: the program is unrolled for so many steps, and one formula
//! has all interleavings at once. Whatever lies beyond the bound is not seen.

use std::collections::HashMap;

use foretell_trace::{Operator, Sort, Term, TermId, VariableId};

use crate::abstraction::initial_facts;
use crate::program::Program;
use crate::solver::{Answer, Solver, Trouble};

/// What bounded checking can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// A violation within the bound.
    Violated,
    /// None within the bound; nothing is said about longer executions.
    NoneWithin(usize),
}

/// Looks for a violation within so many steps of joined edges.
pub fn check(program: &Program, steps: usize) -> Result<Bounded, Trouble> {
    let mut program = program.in_large_blocks();
    let mut solver = Solver::start(u64::MAX)?;
    let mut facts = Vec::new();
    let mut state = Moment::new(&mut program);
    let mut first: Vec<TermId> = initial_facts(&mut program);
    for (thread, location) in program.first_control().into_iter().enumerate() {
        let there = program.terms.int(location as i128);
        first.push(program.terms.build(Operator::Eq, &[state.places[thread], there]));
    }
    for fact in first {
        facts.push(state.instance(&mut program, fact, &mut HashMap::new()));
    }
    let mut violated = Vec::new();
    for _ in 0..steps {
        let next = Moment::new(&mut program);
        let step = state.step(&mut program, &next);
        facts.push(step);
        for thread in 0..program.threads.len() {
            let error = program.terms.int(program.threads[thread].error as i128);
            violated.push(program.terms.build(Operator::Eq, &[next.places[thread], error]));
        }
        state = next;
    }
    facts.push(program.terms.or(&violated));
    Ok(match solver.check(&program.terms, &facts, &[])? {
        Answer::Satisfiable(_) => Bounded::Violated,
        Answer::Unsatisfiable(_) => Bounded::NoneWithin(steps),
    })
}

/// The state before a step: symbols for locations and values.
struct Moment {
    places: Vec<TermId>,
    values: Vec<TermId>,
}

impl Moment {
    fn new(program: &mut Program) -> Self {
        let mut symbols = |count: usize| -> Vec<TermId> {
            (0..count).map(|_| program.terms.fresh_symbol("at", Sort::INT)).collect()
        };
        let places = symbols(program.threads.len());
        let mut symbols = |count: usize| -> Vec<TermId> {
            (0..count).map(|_| program.terms.fresh_symbol("value", Sort::INT)).collect()
        };
        let values = symbols(program.variables.len());
        Self { places, values }
    }

    /// A term over this state; inputs are those of `inputs`, or new ones.
    fn instance(
        &self,
        program: &mut Program,
        term: TermId,
        inputs: &mut HashMap<TermId, TermId>,
    ) -> TermId {
        program.terms.substitute(term, &mut HashMap::new(), &mut |terms, leaf| match leaf {
            Term::Variable(variable) => Some(self.values[variable.index()]),
            Term::Symbol(_) => {
                let own = terms.find(leaf)?;
                // locations are symbols of our own and stay
                if self.places.contains(&own) {
                    return None;
                }
                let fresh = inputs.get(&own).copied();
                Some(fresh.unwrap_or_else(|| {
                    let fresh = terms.fresh_symbol("choice", Sort::INT);
                    inputs.insert(own, fresh);
                    fresh
                }))
            }
            _ => None,
        })
    }

    /// Some edge leads to the next state, or nothing happens any more.
    fn step(&self, program: &mut Program, next: &Moment) -> TermId {
        let equal = |program: &mut Program, a: TermId, b: TermId| {
            program.terms.build(Operator::Eq, &[a, b])
        };
        let mut ways = Vec::new();
        for edge in (0..program.edges.len()).map(Some).chain([None]) {
            let mut parts = Vec::new();
            let mut assigned: HashMap<VariableId, TermId> = HashMap::new();
            let mut moved: HashMap<usize, usize> = HashMap::new();
            if let Some(edge) = edge {
                let edge = program.edges[edge].clone();
                let mut inputs = HashMap::new();
                let from = program.terms.int(edge.from as i128);
                parts.push(equal(program, self.places[edge.thread], from));
                parts.push(self.instance(program, edge.guard, &mut inputs));
                for &(variable, value) in &edge.assignments {
                    assigned.insert(variable, self.instance(program, value, &mut inputs));
                }
                moved.insert(edge.thread, edge.to);
                if let Some(started) = edge.starts {
                    moved.insert(started, program.threads[started].entry);
                }
                if let Some(other) = edge.awaits {
                    let exit = program.terms.int(program.threads[other].exit as i128);
                    parts.push(equal(program, self.places[other], exit));
                }
                for other in (0..program.threads.len()).filter(|&other| other != edge.thread) {
                    for location in 0..program.threads[other].locations {
                        if program.threads[other].atomic[location] {
                            let there = program.terms.int(location as i128);
                            let there = equal(program, self.places[other], there);
                            parts.push(program.terms.not(there));
                        }
                    }
                }
            }
            for thread in 0..program.threads.len() {
                let to = match moved.get(&thread) {
                    Some(&to) => program.terms.int(to as i128),
                    None => self.places[thread],
                };
                parts.push(equal(program, next.places[thread], to));
            }
            for (index, &before) in self.values.iter().enumerate() {
                let value = assigned.get(&VariableId::from(index)).copied().unwrap_or(before);
                parts.push(equal(program, next.values[index], value));
            }
            ways.push(program.terms.and(&parts));
        }
        program.terms.or(&ways)
    }
}
