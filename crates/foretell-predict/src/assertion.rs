//! Assertions (004 section 4.2, the property): an assertion that takes place and does not hold.

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_trace::{EventId, Op, Trace};

use crate::access::Accesses;
use crate::finding::{AccessInfo, Words};
use crate::goal::{Goal, GoalBuilder, Moment};
use crate::influence::Fixed;
use crate::property::{FindingKind, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::sample::by_location;
use crate::violation::Violation;

/// The property.
#[derive(Debug)]
pub struct Assertion;

impl Property for Assertion {
    /// The assertion does not hold. Events: the assertion.
    type Shape = ();

    const TEXT: Text = Text {
        name: "assertion",
        headline: "assertion can fail",
        rule: "AssertionFailure",
        description: "An assertion can fail in another interleaving.",
    };
    const RANK: u8 = 1;

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        questions(search.trace, search.instances)
    }

    fn goal(subject: &Subject<'_>, (): (), events: &[EventId]) -> Option<Goal> {
        let &[event] = events else { return None };
        goal(subject.ctp, event)
    }

    fn is_well(fixed: &Fixed<'_>, (): (), event: EventId) -> bool {
        let Op::Assert(condition) = &fixed.trace.event(event).op else { return false };
        condition.outcome && condition.term.is_none_or(|term| fixed.is_fixed(term))
    }

    fn describe(words: &Words<'_>, (): (), accesses: &[AccessInfo]) -> Option<String> {
        let [assertion] = accesses else { return None };
        let (thread, place) = (words.thread(assertion), words.place(assertion));
        Some(format!("the assertion of {thread}{place} fails"))
    }

    fn violation(_: &[AccessInfo], _marked: bool) -> Violation {
        Violation::Assertion
    }
}

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
            .map(|&event| Instance { shape: Shape::Assertion(()), events: vec![event] })
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
