//! What events do, in the form that is run.
//!
//! A transition predicate is split into the assignments that it determines, the variables whose new
//! value it leaves open (inputs of the program), and a guard.

use fixedbitset::FixedBitSet;
use foretell_model::ctp::Action;
use foretell_trace::{Operator, Term, TermId, TermStore, VariableId};

/// What an event does, in the form that is run.
#[derive(Clone, Debug)]
pub(super) enum Program {
    Guarded { guard: TermId, assignments: Vec<(usize, TermId)>, chosen: Vec<usize> },
    Assert { condition: TermId },
}

/// Variables that an event reads in its guard, reads at all, and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) guard: Vec<usize>,
    pub(crate) reads: Vec<usize>,
    pub(crate) writes: Vec<usize>,
}

fn variables_of(terms: &TermStore, term: TermId) -> Vec<usize> {
    let leaves = terms.leaves(term);
    let variable = |&leaf: &TermId| match terms.term(leaf) {
        Term::Variable(variable) => Some(variable.index()),
        _ => None,
    };
    leaves.iter().filter_map(variable).collect()
}

/// Splits a transition predicate in assignments `v' = t` and what remains of it.
fn split_transition(
    terms: &mut TermStore,
    predicate: TermId,
    changed: &[VariableId],
) -> (TermId, Vec<(usize, TermId)>, Vec<usize>) {
    let conjuncts: Vec<TermId> = match terms.term(predicate) {
        Term::Apply(Operator::And, parts) => parts.to_vec(),
        _ => vec![predicate],
    };
    let mut assignments: Vec<(usize, TermId)> = Vec::new();
    let mut rest = Vec::new();
    for &conjunct in &conjuncts {
        let mut assigned = None;
        let sides = match terms.term(conjunct) {
            Term::Apply(Operator::Eq, sides) => Some((sides[0], sides[1])),
            _ => None,
        };
        for (target, value) in sides.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
            if let Term::Primed(variable) = *terms.term(target) {
                // `v' = w'` where w is chosen: v takes what w gets
                let chosen = |&leaf: &TermId| match terms.term(leaf) {
                    Term::Primed(other) => {
                        *other != variable
                            && changed.contains(other)
                            && !mentioned_as_target(terms, &conjuncts, *other)
                    }
                    _ => true,
                };
                let plain = terms.leaves(value).iter().all(chosen);
                let free = !assignments.iter().any(|&(other, _)| other == variable.index());
                if plain && free && changed.contains(&variable) {
                    assigned = Some((variable.index(), value));
                    break;
                }
            }
        }
        match assigned {
            Some(assignment) => assignments.push(assignment),
            None => rest.push(conjunct),
        }
    }
    let chosen = changed
        .iter()
        .map(|variable| variable.index())
        .filter(|variable| !assignments.iter().any(|&(other, _)| other == *variable))
        .collect();
    (terms.and(&rest), assignments, chosen)
}

/// Is there a conjunct `v' = t` with a term that has no primed variables?
fn mentioned_as_target(terms: &TermStore, conjuncts: &[TermId], variable: VariableId) -> bool {
    conjuncts.iter().any(|&conjunct| match terms.term(conjunct) {
        Term::Apply(Operator::Eq, sides) => {
            let primed = |side: TermId| *terms.term(side) == Term::Primed(variable);
            let plain = |side: TermId| {
                terms.leaves(side).iter().all(|&leaf| !matches!(terms.term(leaf), Term::Primed(_)))
            };
            primed(sides[0]) && plain(sides[1]) || primed(sides[1]) && plain(sides[0])
        }
        _ => false,
    })
}

pub(super) fn compile(terms: &mut TermStore, action: &Action) -> (Program, Accesses) {
    let program = match action {
        Action::Assert { condition } => Program::Assert { condition: *condition },
        Action::Guarded { guard, assignments } => Program::Guarded {
            guard: *guard,
            assignments: assignments.iter().map(|&(v, value)| (v.index(), value)).collect(),
            chosen: Vec::new(),
        },
        Action::Transition { predicate, changed } => {
            let (guard, assignments, chosen) = split_transition(terms, *predicate, changed);
            Program::Guarded { guard, assignments, chosen }
        }
    };
    let guard = match &program {
        Program::Guarded { guard, .. } => variables_of(terms, *guard),
        Program::Assert { .. } => Vec::new(),
    };
    let (reads, writes) = effects(terms, &program);
    (program, Accesses { guard, reads, writes })
}

pub(super) fn effects(terms: &TermStore, program: &Program) -> (Vec<usize>, Vec<usize>) {
    match program {
        Program::Assert { condition } => (variables_of(terms, *condition), Vec::new()),
        Program::Guarded { guard, assignments, chosen } => {
            let mut reads = variables_of(terms, *guard);
            for &(_, value) in assignments {
                reads.extend(variables_of(terms, value));
            }
            reads.sort_unstable();
            reads.dedup();
            let mut writes: Vec<usize> = assignments
                .iter()
                .map(|&(variable, _)| variable)
                .chain(chosen.iter().copied())
                .collect();
            writes.sort_unstable();
            writes.dedup();
            (reads, writes)
        }
    }
}

/// Variables that flow into a guard or an assertion.
pub(super) fn relevant_variables(
    terms: &TermStore,
    programs: &[Program],
    count: usize,
) -> FixedBitSet {
    let mut flows: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut queue = Vec::new();
    for program in programs {
        match program {
            Program::Assert { condition } => queue.extend(variables_of(terms, *condition)),
            Program::Guarded { guard, assignments, .. } => {
                queue.extend(variables_of(terms, *guard));
                for &leaf in &terms.leaves(*guard) {
                    if let Term::Primed(variable) = terms.term(leaf) {
                        queue.push(variable.index());
                    }
                }
                for &(variable, value) in assignments {
                    flows[variable].extend(variables_of(terms, value));
                }
            }
        }
    }
    let mut relevant = FixedBitSet::with_capacity(count);
    while let Some(variable) = queue.pop() {
        if !relevant.contains(variable) {
            relevant.insert(variable);
            queue.extend(flows[variable].iter().copied());
        }
    }
    relevant
}
