//! Assertions (004 section 4.2, the property): an assertion that takes place and does not hold.

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_trace::{EventId, Op, Trace};

use crate::access::Accesses;
use crate::goal::{Goal, GoalBuilder, Moment};
use crate::question::{FindingKind, Instance, Question, Shape};
use crate::sample::by_location;

/// One question for each code location with an assertion that can depend on what was read, or that
/// failed in the run.
pub fn questions(trace: &Trace, limit: usize) -> Vec<Question> {
    let accesses = Accesses::new(trace);
    let events = trace.events.iter().enumerate().filter_map(|(position, event)| match event.op {
        Op::Assert(condition) if condition.term.is_some() || !condition.outcome => {
            Some(EventId::from(position))
        }
        _ => None,
    });
    let asked = events.map(|event| (accesses.location(event), event));
    let questions = by_location(asked, limit).into_iter().map(|(_, sample)| Question {
        kind: FindingKind::Assertion,
        instances: sample
            .kept
            .iter()
            .map(|&event| Instance { shape: Shape::Assertion, events: vec![event] })
            .collect(),
        rest: Vec::new(),
        unexamined: sample.dropped(),
    });
    questions.collect()
}

/// The assertion takes place and its condition is false there.
pub fn goal(ctp: &ConcurrentTraceProgram, event: EventId) -> Option<Goal> {
    let Action::Assert { condition } = ctp.event(event).action else { return None };
    let mut builder = GoalBuilder::new(ctp);
    let taken = builder.taken(event);
    let holds = builder.at(Moment::Before(event), condition, None);
    let fails = builder.terms.not(holds);
    let formula = builder.terms.and(&[taken, fails]);
    Some(builder.finish(formula))
}
