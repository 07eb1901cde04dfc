//! Does a trace make sense? Each fault says which event of which thread, its source line, and what
//! is wrong, in one sentence. Time is linear in the trace.
//!
//! Checked for every trace: references, indices of threads, nesting of calls and regions, locks
//! given back by their holder, waits with the mutex held, sorts, terms over earlier reads of the
//! same thread, recorded values against their terms. Only where the order was observed
//! ([`crate::trace::Metadata::observed_order`]): forks before begins, joins after ends, locks held
//! by one, semaphores never below zero, barriers, reads against the last write.
//!
//! Not checked: whether a failed try could have succeeded (a recorder sees the failure after the
//! fact, when the lock may be free again), whether a wait was signalled (waits may end without),
//! and values where the trace states gaps (an unseen write explains any value).

mod mend;
mod synchronisation;
mod terms;
mod values;

use std::fmt;

pub use mend::drop_stale_terms;

use crate::event::{Event, Op};
use crate::id::{EventId, ObjectId, ThreadId, VariableId};
use crate::term::Sort;
use crate::trace::{Scope, Trace};

/// Something in a trace that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The event, unless the fault lies in the tables.
    pub event: Option<EventId>,
    /// The thread of the event.
    pub thread: Option<ThreadId>,
    /// The event as a person finds it: name, number, source line.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Fault {
    /// `event 12 (T1#3, bank.c:12): releases m, which T2 holds`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// What is wrong with the trace; nothing when it makes sense.
pub fn validate(trace: &Trace) -> Vec<Fault> {
    let mut faults = Faults { trace, found: Vec::new() };
    let sound = references(trace, &mut faults);
    tables(trace, &mut faults);
    let mut synchronisation = synchronisation::State::new(trace);
    let mut values = values::Memory::new(trace);
    let terms = terms::Summaries::new(trace, &sound);
    for (position, event) in trace.events.iter().enumerate() {
        if !sound.0[position] {
            continue;
        }
        let id = EventId::from(position);
        synchronisation.step(id, event, &mut faults);
        values.step(id, event, &mut faults);
        terms.step(id, event, &mut faults);
    }
    constraints(trace, &terms, &mut faults);
    // Faults of one event stand together.
    faults.found.sort_by_key(|fault| fault.event);
    faults.found
}

struct Faults<'t> {
    trace: &'t Trace,
    found: Vec<Fault>,
}

impl Faults<'_> {
    fn at(&mut self, id: EventId, message: impl Into<String>) {
        let event = self.trace.event(id);
        let thread = self.trace.threads.get(event.thread.index());
        let mut place = format!(
            "event {} ({}#{}",
            self.trace.labels.get(&id).map_or_else(|| id.0.to_string(), |label| label.to_string()),
            thread.map_or("?", |thread| &thread.name),
            event.index
        );
        if let Some(site) = event.site.and_then(|site| self.trace.sites.get(site.index())) {
            let file = if site.file.is_empty() { "line " } else { &*site.file };
            let colon = if site.file.is_empty() { "" } else { ":" };
            place.push_str(&format!(", {file}{colon}{}", site.line));
        }
        place.push(')');
        let thread = Some(event.thread);
        self.found.push(Fault { event: Some(id), thread, place, message: message.into() });
    }

    fn in_table(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.found.push(Fault {
            event: None,
            thread: None,
            place: place.into(),
            message: message.into(),
        });
    }

    fn thread(&self, id: ThreadId) -> &str {
        &self.trace.threads[id.index()].name
    }

    fn object(&self, id: ObjectId) -> &str {
        &self.trace.objects[id.index()].name
    }

    fn variable(&self, id: VariableId) -> &str {
        &self.trace.variables[id.index()].name
    }
}

/// Which events refer only to things that exist.
struct Sound(Vec<bool>);

fn references(trace: &Trace, faults: &mut Faults<'_>) -> Sound {
    let mut sound = Vec::with_capacity(trace.events.len());
    for (position, event) in trace.events.iter().enumerate() {
        let missing = missing_reference(trace, event);
        sound.push(missing.is_none());
        if let Some(what) = missing {
            faults.at(EventId::from(position), format!("refers to a {what} that does not exist"));
        }
    }
    Sound(sound)
}

fn missing_reference(trace: &Trace, event: &Event) -> Option<&'static str> {
    let thread = |id: ThreadId| id.index() >= trace.threads.len();
    let variable = |id: VariableId| id.index() >= trace.variables.len();
    let object = |id: ObjectId| id.index() >= trace.objects.len();
    if thread(event.thread) {
        return Some("thread");
    }
    if event.site.is_some_and(|site| site.index() >= trace.sites.len()) {
        return Some("source position");
    }
    if event.op.terms().iter().any(|term| term.index() >= trace.terms.len()) {
        return Some("term");
    }
    match &event.op {
        Op::Fork(other) | Op::Join(other) => thread(*other).then_some("thread"),
        Op::Read(access) | Op::Write(access) => variable(access.variable).then_some("variable"),
        Op::ReadModifyWrite(step) => variable(step.variable).then_some("variable"),
        Op::Guarded(step) => {
            let mut assigned = step.assignments.iter().map(|(variable, _)| *variable);
            assigned.any(variable).then_some("variable")
        }
        Op::Transition(step) => {
            step.changed.iter().any(|&changed| variable(changed)).then_some("variable")
        }
        Op::Sync(other, step) => {
            let missing = object(*other) || step.mutex().is_some_and(object);
            missing.then_some("synchronisation object")
        }
        _ => None,
    }
}

fn tables(trace: &Trace, faults: &mut Faults<'_>) {
    let mut paths = std::collections::HashMap::new();
    for thread in &trace.threads {
        if let Some(other) = paths.insert(&thread.path, &thread.name) {
            let message = format!("has the same creation path as {other}");
            faults.in_table(format!("thread {}", thread.name), message);
        }
    }
    for variable in &trace.variables {
        let place = || format!("variable {}", variable.name);
        if let Some(initial) = &variable.initial
            && initial.sort() != variable.sort
        {
            let (found, sort) = (initial.sort(), variable.sort);
            faults.in_table(place(), format!("has sort {sort} but starts with a value of {found}"));
        }
        if variable.memory.is_some_and(|memory| !(1..=8).contains(&memory.size)) {
            faults.in_table(place(), "does not have 1 to 8 bytes");
        }
        if let Scope::Local(thread) = variable.scope
            && thread.index() >= trace.threads.len()
        {
            faults.in_table(place(), "is local to a thread that does not exist");
        }
    }
    for &label in trace.labels.keys() {
        if label.index() >= trace.events.len() {
            let message = "is the label of an event that does not exist";
            faults.in_table(format!("label {}", trace.labels[&label]), message);
        }
    }
}

fn constraints(trace: &Trace, terms: &terms::Summaries<'_>, faults: &mut Faults<'_>) {
    let exists = |event: EventId| event.index() < trace.events.len();
    let observed = trace.metadata.observed_order;
    for &(first, second) in &trace.orders {
        if !exists(first) || !exists(second) {
            faults.in_table("order", "is between events that do not exist");
        } else if first == second {
            faults.at(first, "is ordered before itself");
        } else if observed && first > second {
            let second = trace.event_name(second);
            faults.at(first, format!("must come before {second} but was observed after it"));
        }
    }
    for &(first, last) in &trace.atomic_sections {
        if !exists(first) || !exists(last) {
            faults.in_table("atomic section", "is between events that do not exist");
            continue;
        }
        let (begin, end) = (trace.event(first), trace.event(last));
        if begin.thread != end.thread || first > last {
            faults.at(last, "ends an atomic section that begins later or in another thread");
        } else if observed && end.index.wrapping_sub(begin.index) != last.0 - first.0 {
            let begin = trace.event_name(first);
            faults.at(last, format!("ends the atomic section from {begin}, which was interrupted"));
        }
    }
    if let Some(precondition) = trace.precondition {
        if precondition.index() >= trace.terms.len() {
            faults.in_table("precondition", "is a term that does not exist");
        } else if trace.terms.sort(precondition) != Sort::BOOL {
            faults.in_table("precondition", "is not a truth value");
        } else if let Some(message) = terms.not_over_initial_values(precondition) {
            faults.in_table("precondition", message);
        }
    }
}

#[cfg(test)]
mod tests;
