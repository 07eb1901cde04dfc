//! The maximal causal model as a restriction of the CTP (004 section 6): every program step sees
//! and writes the values it had in the run; synchronisation and assertions stay symbolic.
//!
//! What this model predicts is also predicted by the symbolic one; it misses what needs a read to
//! return something else.

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_model::validate::{Interpreter, Obstacle, Rejection};
use foretell_trace::{EventId, Operator, Term, TermId, Value, VariableId};

use crate::goal::is_shared_data;

/// The recorded order cannot be followed, so the values of the run are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReplayable {
    /// It cannot start.
    Start(Rejection),
    /// This event cannot take place where it was recorded.
    Step(EventId, Obstacle),
}

impl std::fmt::Display for NotReplayable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotReplayable::Start(rejection) => {
                write!(f, "the causal model needs the recorded values: {rejection}")
            }
            NotReplayable::Step(event, obstacle) => write!(
                f,
                "the causal model needs the recorded values, but event {} cannot take place in the recorded order: {obstacle}",
                event.0
            ),
        }
    }
}

impl std::error::Error for NotReplayable {}

/// The constrained model `CM_ρ` of a CTP whose events are numbered in recorded order.
pub fn constrain(ctp: &ConcurrentTraceProgram) -> Result<ConcurrentTraceProgram, NotReplayable> {
    let interpreter = Interpreter::new(ctp);
    let open = ctp.variables.iter().enumerate().filter(|(_, variable)| variable.initial.is_none());
    let initial: Vec<(VariableId, Value)> = open
        .map(|(number, variable)| (VariableId::from(number), Value::zero(variable.sort)))
        .collect();
    let mut at = interpreter.start(&initial).map_err(NotReplayable::Start)?;
    let mut constrained = ctp.clone();
    for number in 0..ctp.events.len() {
        let event = EventId::from(number);
        let before = at.values.clone();
        let effect = interpreter
            .step(&mut at, event, &[])
            .map_err(|obstacle| NotReplayable::Step(ctp.event(event).origin, obstacle))?;
        let Action::Guarded { guard, assignments } = &ctp.event(event).action else { continue };
        let right = assignments.iter().map(|&(_, term)| term);
        let mut seen: Vec<VariableId> =
            right.chain([*guard]).flat_map(|term| data_variables(ctp, term)).collect();
        seen.sort_unstable();
        seen.dedup();
        let writes_data = assignments.iter().any(|&(variable, _)| is_shared_data(ctp, variable));
        if seen.is_empty() && !writes_data {
            continue; // synchronisation, or the thread's own business
        }
        let terms = &mut constrained.terms;
        let mut parts = vec![*guard];
        for variable in seen {
            let now = terms.variable(variable, ctp.variables[variable.index()].sort);
            let recorded = terms.constant(before[variable.index()].clone());
            parts.push(terms.build(Operator::Eq, &[now, recorded]));
        }
        let guard = terms.and(&parts);
        let assignments = effect
            .changes
            .into_iter()
            .map(|(variable, value)| (variable, terms.constant(value)))
            .collect();
        constrained.events[number].action = Action::Guarded { guard, assignments };
    }
    Ok(constrained)
}

fn data_variables(ctp: &ConcurrentTraceProgram, term: TermId) -> Vec<VariableId> {
    let leaves = ctp.terms.leaves(term);
    let shared = |leaf: TermId| match *ctp.terms.term(leaf) {
        Term::Variable(variable) if is_shared_data(ctp, variable) => Some(variable),
        _ => None,
    };
    leaves.into_iter().filter_map(shared).collect()
}
