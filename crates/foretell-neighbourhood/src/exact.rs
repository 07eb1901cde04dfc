//! The exact bad neighbourhood (001 Algorithm 1).
//!
//! The paper collects one total assignment of the happens-before atoms after another. Here each
//! failing run first gives constraints under which every interleaving fails as the run does; they
//! are then reduced as long as every interleaving that satisfies them is bad. The disjunction is
//! exactly the set of bad interleavings, with far fewer disjuncts than runs.

use crate::engine::explore::{Goal, events_of};
use crate::engine::system::System;
use crate::formula::{Atom, HbFormula, NormalForm};
use crate::succinct::{
    BadNeighbourhood, FailingRun, Limits, Oracle, enumerate, exact_constraints, run_inputs,
};

/// Algorithm 1. The result is exact unless `incomplete` says otherwise.
pub(crate) fn bad_neighbourhood(system: &mut System, limits: &Limits) -> BadNeighbourhood {
    let mut disjuncts: Vec<Vec<Atom>> = Vec::new();
    let mut failing = None;
    let mut oracle = Oracle::new(Goal::NotBad, limits);
    let mut closed: Option<System> =
        if system.is_closed() { Some(system.with_inputs(&Default::default())) } else { None };
    let (incomplete, visited) = enumerate(system, limits, &[], |system, run| {
        if disjuncts.len() >= limits.disjuncts {
            return None;
        }
        let event = run.failure.as_ref().expect("a failing run").event;
        let mut events = events_of(system, &run.steps);
        let end = events.iter().position(|&other| other == event)?;
        events.truncate(end + 1);
        let atoms = exact_constraints(system, &events, event);
        let atoms = match &mut closed {
            Some(closed) => oracle.minimise(closed, &atoms),
            None => {
                let inputs = run_inputs(system, run);
                let mut closed = system.with_inputs(&inputs);
                let mut oracle = Oracle::new(Goal::NotBad, limits);
                oracle.minimise(&mut closed, &atoms)
            }
        };
        if failing.is_none() {
            failing = FailingRun::new(system, run);
        }
        disjuncts.push(atoms.clone());
        Some(vec![atoms])
    });
    let mut work = oracle.work;
    work.iterations = disjuncts.len();
    work.visited += visited;
    work.solver_calls = system.inputs.solver_calls;
    let formula = HbFormula::new(NormalForm::Disjunctive, disjuncts, &system.known);
    BadNeighbourhood { formula, incomplete, work, failing }
}
