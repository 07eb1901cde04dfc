//! Use before definition: in the run every read of a variable came after its first write, which
//! another thread made; in another interleaving a read comes first and sees something else.
//!
//! A read whose value its thread then branches on is left out: looking whether something is ready
//! is not using it. Only variables with one writing thread are asked about, so a counter that
//! everybody changes is no definition.

use std::collections::{HashMap, HashSet};

use foretell_model::ctp::Action;
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, Op, Term, ThreadId, Trace, Value, VariableId};

use crate::access::{Accesses, Location};
use crate::finding::{AccessInfo, Words};
use crate::goal::{Goal, GoalBuilder, Moment, is_shared_data};
use crate::planner::goal::Formula;
use crate::property::{FindingKind, Planned, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::sample::by_location;
use crate::violation::Violation;

/// The property.
#[derive(Debug)]
pub struct Order;

impl Property for Order {
    /// The read comes before every write of its variable. Events: the read and the first write.
    type Shape = ();

    const TEXT: Text = Text {
        name: "order",
        headline: "order violation",
        rule: "OrderViolation",
        description: "A use can come before its definition or after its end.",
    };
    const RANK: u8 = 4;
    const PLANNED: Planned = Planned::Yes;

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        questions(search.trace, search.order, search.instances)
    }

    fn goal(subject: &Subject<'_>, (): (), events: &[EventId]) -> Option<Goal> {
        let &[read, _] = events else { return None };
        goal(subject, read)
    }

    fn plan((): (), events: usize) -> Option<Formula> {
        (events == 2).then(|| Formula::parse("order(0, 1)").ok())?
    }

    fn describe(words: &Words<'_>, (): (), accesses: &[AccessInfo]) -> Option<String> {
        let [read, write] = accesses else { return None };
        let (read, write) = (words.access(read), words.access(write));
        Some(format!("{read} can come before {write}, its definition"))
    }

    fn violation(_: &[AccessInfo], _marked: bool) -> Violation {
        Violation::Order
    }
}

#[derive(Default)]
struct History {
    first_write: Option<EventId>,
    writer: Option<ThreadId>,
    /// Read before the first write, or written by several threads.
    out: bool,
    /// The first read of each thread.
    reads: Vec<(ThreadId, EventId)>,
}

/// One question for each pair of code locations (read and definition).
pub fn questions(trace: &Trace, order: &MustOrder, limit: usize) -> Vec<Question> {
    if !trace.metadata.symbolic || !trace.metadata.observed_order {
        return Vec::new(); // without terms nobody knows what a thread looks at
    }
    let mut histories: HashMap<VariableId, History> = HashMap::new();
    let mut tested: HashSet<(ThreadId, u32)> = HashSet::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        match &event.op {
            Op::Read(access) if access.order.is_none() => {
                let history = histories.entry(access.variable).or_default();
                history.out |= history.first_write.is_none();
                if history.reads.iter().all(|&(thread, _)| thread != event.thread) {
                    history.reads.push((event.thread, id));
                }
            }
            Op::Write(access) if access.order.is_none() => {
                let history = histories.entry(access.variable).or_default();
                history.first_write.get_or_insert(id);
                history.out |= *history.writer.get_or_insert(event.thread) != event.thread;
            }
            Op::Read(access) | Op::Write(access) => {
                histories.entry(access.variable).or_default().out = true;
            }
            Op::ReadModifyWrite(step) => {
                histories.entry(step.variable).or_default().out = true;
            }
            Op::Branch(condition) => {
                for leaf in condition.term.iter().flat_map(|&term| trace.terms.leaves(term)) {
                    if let Term::ReadValue(thread, index) = trace.terms.term(leaf) {
                        tested.insert((*thread, *index));
                    }
                }
            }
            _ => {}
        }
    }
    let accesses = Accesses::new(trace);
    let mut found: Vec<([Location; 2], [EventId; 2])> = Vec::new();
    for history in histories.values().filter(|history| !history.out) {
        let Some(definition) = history.first_write else { continue };
        for &(thread, read) in &history.reads {
            let index = trace.event(read).index;
            if Some(thread) != history.writer
                && !tested.contains(&(thread, index))
                && !order.before(definition, read)
            {
                let locations = [accesses.location(read), accesses.location(definition)];
                found.push((locations, [read, definition]));
            }
        }
    }
    found.sort_unstable_by_key(|&(_, events)| events);
    let questions = by_location(found.into_iter(), limit).into_iter().map(|(_, sample)| Question {
        kind: FindingKind::Order,
        instances: sample
            .kept
            .iter()
            .map(|events| Instance { shape: Shape::Order(()), events: events.to_vec() })
            .collect(),
        rest: Vec::new(),
        unexamined: sample.dropped(),
    });
    questions.collect()
}

/// The read takes place before every write of its variable and sees another value than in the run.
pub fn goal(subject: &Subject<'_>, read: EventId) -> Option<Goal> {
    let ctp = subject.ctp;
    let Op::Read(access) = &subject.trace.event(ctp.event(read).origin).op else { return None };
    let variable = access.variable;
    if !is_shared_data(ctp, variable) {
        return None;
    }
    let recorded = Value::from_bits(ctp.variables[variable.index()].sort, access.value?)?;
    let mut builder = GoalBuilder::new(ctp);
    let mut parts = vec![builder.taken(read)];
    for (number, event) in ctp.events.iter().enumerate() {
        if let Action::Guarded { assignments, .. } = &event.action
            && assignments.iter().any(|&(written, _)| written == variable)
        {
            parts.push(builder.terms.before(read, EventId::from(number)));
        }
    }
    let seen = builder.value(Moment::Before(read), variable);
    let recorded = builder.terms.constant(recorded);
    parts.push(builder.differ(seen, recorded));
    let formula = builder.terms.and(&parts);
    Some(builder.finish(formula))
}
