//! What has to hold for a step to come out in another way, as a goal of the solver.

use std::collections::HashSet;
use std::hash::Hash;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, CtpVariable, Role};
use foretell_trace::{EventId, ObjectId, Op, Scope, Sort, TermId, Trace, Value, VariableId};

use super::Feeds;
use crate::asking::Way;
use crate::goal::{Goal, GoalBuilder, Moment};
use crate::question::Subject;

/// How a step comes to see something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Relation {
    /// It comes before the other event while the other's thread stands as near to it as locks let.
    BothBefore,
    /// It comes before all that the other event's thread need not have done.
    First,
    /// It comes before the other event.
    Before,
    /// It comes after the other event.
    After,
    /// Nothing more is asked.
    Anyhow,
}

/// One way to make a step see something else.
#[derive(Clone, Debug)]
pub(super) struct OtherWay {
    pub(super) event: EventId,
    /// The last step of the prefix.
    pub(super) until: EventId,
    pub(super) feeds: Feeds,
    pub(super) relation: Relation,
    /// What the relation is about.
    pub(super) other: Option<EventId>,
    /// The write (or acquire) that the step saw in the run or sees now.
    pub(super) write: Option<EventId>,
    /// All of them, and what is fed.
    pub(super) events: Vec<EventId>,
}

/// Reads demand nothing themselves; the thread's next event demands that they saw what they saw in
/// the run. The last assignment of such a read says whether it did.
pub(super) fn delay(trace: &Trace, mut ctp: ConcurrentTraceProgram) -> ConcurrentTraceProgram {
    for chain in ctp.threads.clone() {
        let mut demand: Option<TermId> = None;
        for event in chain {
            let delayed = matches!(trace.event(ctp.event(event).origin).op, Op::Read(_));
            let variable = VariableId::from(ctp.variables.len());
            let described = &mut ctp.events[event.index()];
            let (thread, terms) = (described.thread, &mut ctp.terms);
            if let Action::Assert { .. } = described.action {
                // Nothing is asked about assertions here, but a thread may not come to one by
                // another path.
                let guard = terms.bool(true);
                described.action = Action::Guarded { guard, assignments: Vec::new() };
            }
            let before = demand.take();
            match &mut described.action {
                Action::Guarded { guard, assignments } => {
                    if delayed && !terms.is_true(*guard) {
                        assignments.push((variable, *guard));
                        *guard = terms.bool(true);
                        demand = Some(terms.variable(variable, Sort::BOOL));
                        ctp.variables.push(CtpVariable {
                            name: format!("as recorded@{}", event.0).into(),
                            sort: Sort::BOOL,
                            scope: Scope::Local(thread),
                            initial: Some(Value::Bool(true)),
                            role: Role::ReadValue,
                        });
                    }
                    *guard = terms.and(&[*guard, before.unwrap_or(*guard)]);
                }
                Action::Transition { predicate, .. } => {
                    *predicate = terms.and(&[*predicate, before.unwrap_or(*predicate)]);
                }
                Action::Assert { .. } => unreachable!("turned into a guarded step above"),
            }
        }
    }
    ctp
}

impl Way for OtherWay {
    fn goal(&self, subject: &Subject<'_>) -> Option<Goal> {
        let ctp = subject.ctp;
        let in_ctp = |event: EventId| ctp.event_of(event);
        let (event, until) = (in_ctp(self.event)?, in_ctp(self.until)?);
        let mut builder = GoalBuilder::new(ctp);
        let mut parts = Vec::new();
        match self.feeds {
            Feeds::Itself => {
                let Action::Guarded { guard, .. } = ctp.event(event).action else { return None };
                let comes_out = builder.at(Moment::End, guard, None);
                parts.push(builder.next(event));
                parts.push(builder.terms.not(comes_out));
            }
            Feeds::Unrecorded => parts.push(builder.taken(until)),
            Feeds::Path => {
                let Action::Guarded { assignments, .. } = &ctp.event(event).action else {
                    return None;
                };
                let &(_, as_recorded) = assignments.last()?;
                let seen = builder.at(Moment::Before(event), as_recorded, None);
                parts.push(builder.taken(until));
                parts.push(builder.terms.not(seen));
            }
            Feeds::Branch(fed) | Feeds::Address(fed) => {
                let Action::Guarded { assignments, .. } = &ctp.event(until).action else {
                    return None;
                };
                let result = assignments
                    .iter()
                    .find(|(variable, _)| ctp.variables[variable.index()].role == Role::ReadValue);
                let &(result, value) = result?;
                let here = Moment::Before(until);
                let value = builder.at(here, value, None);
                let demands = builder.local_parts(in_ctp(fed)?);
                let demands: Vec<TermId> = demands
                    .into_iter()
                    .map(|part| builder.at(here, part, Some((result, value))))
                    .collect();
                let same = builder.terms.and(&demands);
                parts.push(builder.taken(until));
                parts.push(builder.terms.not(same));
            }
        }
        if let Some(other) = self.other {
            let other = in_ctp(other)?;
            parts.push(match self.relation {
                Relation::After => builder.terms.before(other, event),
                _ => builder.terms.before(event, other),
            });
            if self.relation == Relation::BothBefore {
                let done = stands_before(ctp, event, other)?;
                parts.push(builder.terms.before(done, event));
                parts.push(builder.terms.before(until, other));
            }
        }
        let formula = builder.terms.and(&parts);
        let goal = builder.finish(formula);
        (!goal.is_impossible()).then_some(goal)
    }

    fn window(&self) -> &[EventId] {
        &self.events
    }
}

/// The last event that the other's thread can have done when it stands before the other event, or
/// before the first lock around it that the event's thread holds as well. `None`: it has none.
fn stands_before(ctp: &ConcurrentTraceProgram, event: EventId, other: EventId) -> Option<EventId> {
    let around = |event: EventId| {
        let here = ctp.event(event);
        let position = |event: EventId| ctp.event(event).position;
        ctp.sections.iter().filter(move |section| {
            section.thread == here.thread
                && section.acquire.is_some_and(|acquire| position(acquire) <= here.position)
                && section.release.is_none_or(|release| here.position <= position(release))
        })
    };
    let held: HashSet<ObjectId> = around(event).map(|section| section.lock).collect();
    let common = around(other).filter(|section| held.contains(&section.lock));
    let border = common.filter_map(|section| section.acquire);
    let described = ctp.event(other);
    let first = border.map(|acquire| ctp.event(acquire).position).min();
    let position = first.unwrap_or(described.position).checked_sub(1)?;
    Some(ctp.threads[described.thread.index()][position as usize])
}
