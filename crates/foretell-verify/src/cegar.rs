//! The loop: abstract, check, test the counterexample, refine.

use std::time::{Duration, Instant};

use foretell_guard::stop;
use foretell_trace::TermId;

use crate::abstraction::{Abstraction, PREDICATES};
use crate::check::{Found, Reduction, search};
use crate::path::feasible;
use crate::program::Program;
use crate::proof::Proof;
use crate::refine::{Refined, neighbourhood, trace};
use crate::run::{Execution, run};
use crate::solver::{Solver, Trouble};

/// Where new predicates come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refinement {
    /// The one abstract counterexample.
    Trace,
    /// The bad neighbourhood of the abstract counterexample (001 section 5.2).
    Neighbourhood,
}

/// How much work a verdict may cost; never seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Refinements.
    pub iterations: usize,
    /// Abstract states of one search.
    pub states: usize,
    /// Questions to the solver.
    pub questions: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { iterations: 100, states: 50_000, questions: 200_000 }
    }
}

/// How to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where new predicates come from.
    pub refinement: Refinement,
    /// Boolean instead of Cartesian abstraction.
    pub boolean: bool,
    /// Partial-order reduction.
    pub reduction: bool,
    /// Limits.
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            refinement: Refinement::Neighbourhood,
            boolean: false,
            reduction: true,
            budget: Budget::default(),
        }
    }
}

/// What is known about a program.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// No execution violates a property.
    Proved(Box<Proof>),
    /// This one does.
    Violated(Execution),
    /// Not decided, and why.
    Unknown(String),
}

/// What it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Searches of the abstract program: one more than refinements, as the paper counts.
    pub iterations: usize,
    /// Predicates at the end.
    pub predicates: usize,
    /// Abstract states of the last search.
    pub states: usize,
    /// Spurious traces that were refuted together with the counterexamples.
    pub samples: usize,
    /// Questions to the solver.
    pub questions: u64,
    /// Time of abstraction and search.
    pub search: Duration,
    /// Time of refinement.
    pub refinement: Duration,
}

/// A verdict with its cost and the predicates that were found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// What it cost.
    pub statistics: Statistics,
    /// What was learned, in the words of the program.
    pub predicates: Vec<String>,
}

/// Decides a program of small edges.
pub fn verify(program: &Program, options: &Options) -> Result<Report, Trouble> {
    let joined = program.in_large_blocks();
    let mut solver = Solver::start(options.budget.questions)?;
    let mut state = Loop {
        abstraction: Abstraction::new(&joined, options.boolean),
        reduction: Reduction::new(&joined, options.reduction),
        joined,
        statistics: Statistics::default(),
    };
    let verdict = match state.run(program, &mut solver, options) {
        Ok(verdict) => verdict,
        Err(Trouble::Budget(what)) => Verdict::Unknown(format!("the budget is spent: {what}")),
        // A solver is killed when foretell has to end.
        Err(Trouble::Failed(why)) => Verdict::Unknown(stop::why().unwrap_or(why)),
        Err(trouble @ Trouble::NoSolver(_)) => return Err(trouble),
    };
    state.statistics.questions = solver.questions;
    state.statistics.predicates = state.abstraction.predicates.len();
    let predicates =
        state.abstraction.predicates.iter().map(|p| state.joined.show(p.term)).collect();
    Ok(Report { verdict, statistics: state.statistics, predicates })
}

struct Loop {
    joined: Program,
    abstraction: Abstraction,
    reduction: Reduction,
    statistics: Statistics,
}

impl Loop {
    fn run(
        &mut self,
        program: &Program,
        solver: &mut Solver,
        options: &Options,
    ) -> Result<Verdict, Trouble> {
        loop {
            if let Some(why) = stop::why() {
                return Ok(Verdict::Unknown(why));
            }
            if self.statistics.iterations > options.budget.iterations {
                let refinements = options.budget.iterations;
                return Ok(Verdict::Unknown(format!(
                    "the budget is spent: {refinements} refinements"
                )));
            }
            self.statistics.iterations += 1;
            let started = Instant::now();
            let found = search(
                &mut self.joined,
                &self.reduction,
                &mut self.abstraction,
                solver,
                options.budget.states,
            )?;
            self.statistics.search += started.elapsed();
            let counterexample = match found {
                Found::Counterexample(path) => path,
                Found::TooMany => {
                    let states = options.budget.states;
                    return Ok(Verdict::Unknown(format!(
                        "the budget is spent: {states} abstract states"
                    )));
                }
                Found::Invariant(states) => {
                    self.statistics.states = states.len();
                    let predicates: Vec<TermId> =
                        self.abstraction.predicates.iter().map(|p| p.term).collect();
                    let proof = Proof::new(&self.joined, &predicates, states, options.reduction);
                    return Ok(Verdict::Proved(Box::new(proof)));
                }
            };
            if let Some(choices) = feasible(&mut self.joined, solver, &counterexample)? {
                return Ok(match run(program, &self.joined, &counterexample, &choices) {
                    Ok(execution) => Verdict::Violated(execution),
                    Err(why) => Verdict::Unknown(format!("the interpreter refuses: {why}")),
                });
            }
            let started = Instant::now();
            let before = self.abstraction.predicates.len();
            let refined = match options.refinement {
                Refinement::Trace => {
                    trace(&mut self.joined, solver, &self.abstraction, &counterexample)?
                }
                Refinement::Neighbourhood => neighbourhood(
                    &mut self.joined,
                    solver,
                    &mut self.abstraction,
                    &self.reduction,
                    &counterexample,
                )?,
            };
            self.statistics.refinement += started.elapsed();
            let predicates = match refined {
                Refined::Predicates { predicates, samples } => {
                    self.statistics.samples += samples;
                    predicates
                }
                Refined::Feasible(path, choices) => {
                    return Ok(match run(program, &self.joined, &path, &choices) {
                        Ok(execution) => Verdict::Violated(execution),
                        Err(why) => Verdict::Unknown(format!("the interpreter refuses: {why}")),
                    });
                }
            };
            for predicate in predicates {
                self.abstraction.add(&mut self.joined, predicate);
            }
            if self.abstraction.predicates.len() == before {
                let why = match before {
                    PREDICATES => format!("the budget is spent: {PREDICATES} predicates"),
                    _ => "no predicate was found that refutes a spurious counterexample".into(),
                };
                return Ok(Verdict::Unknown(why));
            }
        }
    }
}
