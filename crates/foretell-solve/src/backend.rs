//! Which solver answers.

use foretell_trace::{TermId, TermStore};

use crate::embedded::Embedded;
use crate::problem::OrderProblem;
use crate::process::{SmtLibSolver, Z3, z3};
use crate::solver::{Answer, Budget, OrderSolver, SolveError, Statistics, UnknownReason};

/// The solvers there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The embedded one; what it does not support is asked of Z3, if the machine has it.
    #[default]
    Auto,
    /// CaDiCaL with the ordering theory.
    Embedded,
    /// Z3 from the PATH.
    Z3,
    /// A command that reads SMT-LIB 2.6 from its standard input.
    Command(String),
}

/// A solver for the problem.
pub fn solver(
    problem: OrderProblem,
    backend: &Backend,
) -> Result<Box<dyn OrderSolver>, SolveError> {
    Ok(match backend {
        Backend::Auto => Box::new(Auto::new(problem)?),
        Backend::Embedded => Box::new(Embedded::new(problem)?),
        Backend::Z3 => Box::new(z3(problem)?),
        Backend::Command(command) => Box::new(SmtLibSolver::command(problem, command)?),
    })
}

/// The embedded solver, and Z3 once something is not supported.
///
/// Both work on one term store, which is handed to and fro; it lives in `embedded` between calls.
struct Auto {
    embedded: Embedded,
    fallback: Fallback,
}

enum Fallback {
    Unneeded,
    /// How many of the asserted formulas it knows.
    Running(Box<SmtLibSolver>, usize),
    Missing,
}

impl Auto {
    fn new(problem: OrderProblem) -> Result<Self, SolveError> {
        Ok(Self { embedded: Embedded::new(problem)?, fallback: Fallback::Unneeded })
    }

    fn ask_fallback(&mut self, assumptions: &[TermId], budget: Budget) -> Option<Answer> {
        let problem = &mut self.embedded.problem;
        if matches!(self.fallback, Fallback::Unneeded) {
            self.fallback = match SmtLibSolver::command(problem.clone(), Z3) {
                Err(_) => Fallback::Missing,
                Ok(mut solver) => {
                    problem.terms = std::mem::take(solver.terms());
                    Fallback::Running(Box::new(solver), problem.asserted.len())
                }
            };
        }
        let Fallback::Running(solver, known) = &mut self.fallback else { return None };
        std::mem::swap(solver.terms(), &mut problem.terms);
        for &formula in &problem.asserted[*known..] {
            solver.assert(formula);
        }
        *known = problem.asserted.len();
        let answer = solver.check(assumptions, budget);
        std::mem::swap(solver.terms(), &mut problem.terms);
        Some(answer)
    }
}

impl OrderSolver for Auto {
    fn terms(&mut self) -> &mut TermStore {
        self.embedded.terms()
    }

    fn assert(&mut self, formula: TermId) {
        self.embedded.assert(formula);
    }

    fn check(&mut self, assumptions: &[TermId], budget: Budget) -> Answer {
        match self.embedded.check(assumptions, budget) {
            Answer::Unknown(UnknownReason::Unsupported(reason)) => self
                .ask_fallback(assumptions, budget)
                .unwrap_or(Answer::Unknown(UnknownReason::Unsupported(reason))),
            answer => answer,
        }
    }

    fn statistics(&self) -> Statistics {
        self.embedded.statistics()
    }
}
