//! Cores without anything superfluous.
//!
//! Deletion in blocks: drop a block; if the rest is still unsatisfiable its core replaces all, else
//! the block is halved. A solution that violates a single one of the assumptions shows that this one
//! is necessary, without asking for it again (Belov, Lynce and Marques-Silva's model rotation in its
//! simplest form).

use foretell_trace::TermId;

use crate::solver::{Answer, Budget, OrderSolver};

/// Assumptions that cannot hold together, none of which can be left out; `None` when all can hold or
/// it could not be decided. An undecided question on the way keeps its block, so then the core may be
/// larger than necessary. `always` is assumed in every question and not part of the result.
pub fn minimal_core(
    solver: &mut dyn OrderSolver,
    always: &[TermId],
    assumptions: &[TermId],
    budget: Budget,
) -> Option<Vec<TermId>> {
    let mut question: Vec<TermId> = always.iter().chain(assumptions).copied().collect();
    let mut open = match solver.check(&question, budget) {
        Answer::Unsatisfiable { core } => restricted(assumptions, &core),
        _ => return None,
    };
    let mut necessary: Vec<TermId> = Vec::new();
    let mut block = open.len().div_ceil(2).max(1);
    while !open.is_empty() {
        block = block.min(open.len());
        let rest = &open[block..];
        question.clear();
        question.extend(always.iter().chain(&necessary).chain(rest));
        match solver.check(&question, budget) {
            Answer::Unsatisfiable { core } => {
                open = restricted(rest, &core);
                block = open.len().div_ceil(2).max(1);
            }
            Answer::Satisfiable(model) => {
                let terms = solver.terms();
                let violated: Vec<usize> = (0..block)
                    .filter(|&place| model.holds(terms, open[place]) != Some(true))
                    .collect();
                if let [only] = violated[..] {
                    necessary.push(open.remove(only));
                    block = open.len().div_ceil(4).max(1);
                } else {
                    block /= 2;
                }
            }
            Answer::Unknown(_) if block == 1 => necessary.push(open.remove(0)),
            Answer::Unknown(_) => block /= 2,
        }
    }
    Some(necessary)
}

fn restricted(to: &[TermId], core: &[TermId]) -> Vec<TermId> {
    to.iter().copied().filter(|part| core.contains(part)).collect()
}
