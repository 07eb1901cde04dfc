//! New predicates from a spurious counterexample (001 sections 5.1 to 5.3).

use foretell_trace::TermId;

use crate::abstraction::Abstraction;
use crate::horn::{self, Clauses};
use crate::path::Choices;
use crate::program::{EdgeId, Program};
use crate::solver::{Solver, Trouble};

/// What a refinement gives.
pub enum Refined {
    /// Predicates that refute the counterexample, and how many other traces with it.
    Predicates {
        /// The predicates.
        predicates: Vec<TermId>,
        /// Sampled traces beside the counterexample.
        samples: usize,
    },
    /// A sampled trace is possible: a real counterexample.
    Feasible(Vec<EdgeId>, Choices),
}

/// Refines by the one trace: α₀ = true, αₙ = false, αᵢ₋₁ ∧ eᵢ → αᵢ′.
pub fn trace(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &Abstraction,
    counterexample: &[EdgeId],
) -> Result<Refined, Trouble> {
    let predicates = of_trace(program, solver, abstraction, counterexample)?;
    Ok(Refined::Predicates { predicates, samples: 0 })
}

fn of_trace(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &Abstraction,
    trace: &[EdgeId],
) -> Result<Vec<TermId>, Trouble> {
    let known: Vec<TermId> = abstraction.predicates.iter().map(|p| p.term).collect();
    let clauses = Clauses::of_trace(trace);
    let traces = [trace.to_vec()];
    if let Some(predicates) = horn::atoms(program, solver, &clauses, &traces, &known)? {
        return Ok(predicates);
    }
    Ok(horn::spacer(program, solver, trace)?.unwrap_or_default())
}

/// Refines by the neighbourhood.
pub fn neighbourhood(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &Abstraction,
    counterexample: &[EdgeId],
) -> Result<Refined, Trouble> {
    trace(program, solver, abstraction, counterexample)
}
