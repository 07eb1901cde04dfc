//! Records as a [`Trace`]: collected, events put in order, ids made dense.

use super::decode::{Record, TermDefinition};
use super::stream::Records;
use crate::event::{Access, Event, Op};
use crate::format::{Position, ReadError, limits};
use crate::id::{EventId, ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::term::{Operator, Sort, Term, TermStore};
use crate::trace::{Object, Scope, Site, Thread, Trace, Variable};
use std::collections::HashMap;

/// The most arguments that conjunctions and disjunctions may have together. The term store
/// flattens nested ones, which can grow with the square of the file.
const MAX_FLAT_ARGUMENTS: usize = 1 << 24;

/// Reads a file that is in memory or mapped into it.
pub fn read(file: &[u8]) -> Result<Trace, ReadError> {
    let mut builder = TraceBuilder::default();
    for record in Records::new(file)? {
        builder.add(record?)?;
    }
    builder.into_trace()
}

/// A trace that is made of records, in whichever order they come. What a recorder has in memory need
/// not become a file first: the trace is the one that the file would give.
#[derive(Default)]
pub struct TraceBuilder {
    trace: Trace,
    events: Vec<(u64, Event)>,
    threads: Vec<(u32, Thread)>,
    variables: Vec<(u32, Variable)>,
    objects: Vec<(u32, Object)>,
    sites: Vec<(u32, Site)>,
    terms: Vec<(u32, TermDefinition)>,
    precondition: Option<TermId>,
    orders: Vec<(u64, u64)>,
    atomic_sections: Vec<(u64, u64)>,
    labels: Vec<(u64, Box<str>)>,
    end: Option<u64>,
}

/// A reference to something that the file does not define.
struct Missing {
    kind: &'static str,
    id: u64,
}

/// From the recorder's ids to dense ones.
enum Ids {
    /// They are dense: `0..count`.
    Dense(u32),
    /// The recorder's ids in ascending order (some definitions were lost).
    Sparse(Vec<u32>),
}

impl Ids {
    fn get(&self, id: u32) -> Option<u32> {
        match self {
            Ids::Dense(count) => (id < *count).then_some(id),
            Ids::Sparse(ids) => ids.binary_search(&id).ok().map(|place| place as u32),
        }
    }
}

/// The maps of all kinds.
struct Maps {
    threads: Ids,
    variables: Ids,
    objects: Ids,
    sites: Ids,
    /// A term's id, or nothing where it or a part of it is missing.
    terms: Vec<Option<TermId>>,
    term_ids: Ids,
}

impl Maps {
    fn thread(&self, id: ThreadId) -> Result<ThreadId, Missing> {
        self.threads.get(id.0).map(ThreadId).ok_or(Missing { kind: "thread", id: id.0.into() })
    }

    fn variable(&self, id: VariableId) -> Result<VariableId, Missing> {
        let missing = Missing { kind: "variable", id: id.0.into() };
        self.variables.get(id.0).map(VariableId).ok_or(missing)
    }

    fn object(&self, id: ObjectId) -> Result<ObjectId, Missing> {
        self.objects.get(id.0).map(ObjectId).ok_or(Missing { kind: "object", id: id.0.into() })
    }

    fn site(&self, id: SiteId) -> Result<SiteId, Missing> {
        self.sites.get(id.0).map(SiteId).ok_or(Missing { kind: "site", id: id.0.into() })
    }

    fn term(&self, id: TermId) -> Result<TermId, Missing> {
        let missing = Missing { kind: "term", id: id.0.into() };
        self.term_ids.get(id.0).and_then(|place| self.terms[place as usize]).ok_or(missing)
    }

    /// Puts the dense ids into the event.
    fn rename(&self, event: &mut Event) -> Result<(), Missing> {
        event.thread = self.thread(event.thread)?;
        if let Some(site) = &mut event.site {
            *site = self.site(*site)?;
        }
        match &mut event.op {
            Op::Fork(thread) | Op::Join(thread) => *thread = self.thread(*thread)?,
            Op::Read(access) | Op::Write(access) => {
                let Access { variable, term, address, value: _, order: _ } = access;
                *variable = self.variable(*variable)?;
                for term in [term, address].into_iter().flatten() {
                    *term = self.term(*term)?;
                }
            }
            Op::ReadModifyWrite(update) => {
                update.variable = self.variable(update.variable)?;
                for term in [&mut update.term, &mut update.address].into_iter().flatten() {
                    *term = self.term(*term)?;
                }
            }
            Op::Sync(object, step) => {
                *object = self.object(*object)?;
                if let Some(other) = step.other_object_mut() {
                    *other = self.object(*other)?;
                }
            }
            Op::Branch(condition) | Op::Assert(condition) => {
                if let Some(term) = &mut condition.term {
                    *term = self.term(*term)?;
                }
            }
            Op::Guarded(guarded) => {
                guarded.guard = self.term(guarded.guard)?;
                for (variable, term) in &mut guarded.assignments {
                    *variable = self.variable(*variable)?;
                    *term = self.term(*term)?;
                }
            }
            Op::Transition(transition) => {
                transition.predicate = self.term(transition.predicate)?;
                for variable in &mut transition.changed {
                    *variable = self.variable(*variable)?;
                }
            }
            Op::ThreadBegin
            | Op::ThreadEnd
            | Op::Fence(_)
            | Op::RegionBegin(_)
            | Op::RegionEnd
            | Op::Call(_)
            | Op::Return
            | Op::Await(_)
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Input { .. } => {}
        }
        Ok(())
    }
}

impl TraceBuilder {
    /// Takes a record; fails when there are more events than fit into the memory that is allowed.
    pub fn add(&mut self, record: Record) -> Result<(), ReadError> {
        let metadata = &mut self.trace.metadata;
        match record {
            Record::Event(sequence, event) => {
                self.events.push((sequence, event));
                limits::check(self.events.len())?;
            }
            Record::Thread(id, thread) => {
                let mut known = self.threads.iter_mut().map(|(known, thread)| (*known, thread));
                match known.find(|(known, other)| *known == id.0 && other.path == thread.path) {
                    // It was given a name meanwhile.
                    Some((_, known)) => known.name = thread.name,
                    None => self.threads.push((id.0, thread)),
                }
            }
            Record::Variable(id, variable) => self.variables.push((id.0, variable)),
            Record::Object(id, object) => self.objects.push((id.0, object)),
            Record::Site(id, site) => self.sites.push((id.0, site)),
            Record::Term(id, term) => self.terms.push((id.0, term)),
            Record::Command(command) => metadata.command = command,
            Record::BuildId(build_id) => metadata.build_id = Some(build_id),
            Record::Properties(has) => {
                metadata.symbolic = has.symbolic;
                metadata.observed_order = has.observed_order;
                metadata.machine_code = has.machine_code;
                metadata.unseen = has.unseen;
            }
            Record::Gap(sentence) => metadata.gaps.push(sentence),
            Record::Restriction(sentence) => metadata.restrictions.push(sentence),
            Record::Precondition(term) => self.precondition = Some(term),
            Record::Order(first, second) => self.orders.push((first, second)),
            Record::AtomicSection(first, last) => self.atomic_sections.push((first, last)),
            Record::Label(event, label) => self.labels.push((event, label)),
            Record::End(events) => self.end = Some(events),
        }
        Ok(())
    }

    /// The trace: events in order, ids dense.
    pub fn into_trace(mut self) -> Result<Trace, ReadError> {
        let recorded = self.keep_prefix()?;
        let whole = self.end == Some(recorded) && self.events.len() as u64 == recorded;
        let (threads, thread_table) = dense("thread", self.threads)?;
        let (variables, variable_table) = dense("variable", self.variables)?;
        let (objects, object_table) = dense("object", self.objects)?;
        let (sites, site_table) = dense("site", self.sites)?;
        let (term_ids, definitions) = dense("term", self.terms)?;
        let mut maps = Maps { threads, variables, objects, sites, terms: Vec::new(), term_ids };
        let trace = &mut self.trace;
        build_terms(definitions, &mut maps, self.events.len() as u64, &mut trace.terms)?;
        trace.threads = thread_table;
        trace.variables = variable_table;
        trace.objects = object_table;
        trace.sites = site_table;
        for variable in &mut trace.variables {
            if let Scope::Local(thread) = variable.scope {
                variable.scope = match maps.thread(thread) {
                    Ok(thread) => Scope::Local(thread),
                    Err(missing) if whole => return Err(undefined("a local variable", &missing)),
                    Err(_) => Scope::Shared,
                };
            }
        }
        let mut kept = self.events.len();
        for (place, (_, event)) in self.events.iter_mut().enumerate() {
            if let Err(missing) = maps.rename(event) {
                if whole {
                    return Err(undefined(&format!("event {place}"), &missing));
                }
                let Missing { kind, id } = missing;
                trace.metadata.gaps.push(
                    format!(
                        "the events from number {place} on were left out: {kind} {id} is not \
                         defined in what was written"
                    )
                    .into(),
                );
                kept = place;
                break;
            }
        }
        self.events.truncate(kept);
        trace.events = self.events.into_iter().map(|(_, event)| event).collect();
        let event = |sequence: u64| match sequence {
            known if known < kept as u64 => Ok(Some(EventId(known as u32))),
            id if whole => {
                Err(undefined("an order, a section or a label", &Missing { kind: "event", id }))
            }
            _ => Ok(None),
        };
        if let Some(term) = self.precondition {
            match maps.term(term) {
                Ok(term) => trace.precondition = Some(term),
                Err(missing) if whole => return Err(undefined("the precondition", &missing)),
                Err(_) => trace.metadata.gaps.push("the precondition was left out".into()),
            }
        }
        for (first, second) in self.orders {
            if let (Some(first), Some(second)) = (event(first)?, event(second)?) {
                trace.orders.push((first, second));
            }
        }
        for (first, last) in self.atomic_sections {
            if let (Some(first), Some(last)) = (event(first)?, event(last)?) {
                trace.atomic_sections.push((first, last));
            }
        }
        for (sequence, label) in self.labels {
            if let Some(event) = event(sequence)? {
                trace.labels.insert(event, label);
            }
        }
        Ok(self.trace)
    }

    /// Sorts the events and drops those after the first sequence number that is missing; returns
    /// how many there were.
    fn keep_prefix(&mut self) -> Result<u64, ReadError> {
        if !self.events.is_sorted_by_key(|(sequence, _)| *sequence) {
            self.events.sort_by_key(|(sequence, _)| *sequence);
        }
        let recorded = self.events.len() as u64;
        let mut kept = 0;
        for (sequence, _) in &self.events {
            if *sequence < kept {
                let message = format!("two events have the sequence number {sequence}");
                return Err(ReadError::new(Position::None, message));
            }
            if *sequence > kept {
                break;
            }
            kept += 1;
        }
        if u32::try_from(kept).is_err() {
            let message = format!("{kept} events are more than foretell can number");
            return Err(ReadError::new(Position::None, message));
        }
        let gaps = &mut self.trace.metadata.gaps;
        if kept < recorded {
            let lost = recorded - kept;
            gaps.push(
                format!(
                    "event {kept} was not written, so the {lost} events after it were left out"
                )
                .into(),
            );
        } else if let Some(end) = self.end
            && end != recorded
        {
            gaps.push(format!("{recorded} of {end} events were written").into());
        }
        self.events.truncate(kept as usize);
        Ok(recorded)
    }
}

fn undefined(who: &str, missing: &Missing) -> ReadError {
    let Missing { kind, id } = missing;
    ReadError::new(Position::None, format!("{who} refers to {kind} {id}, which is not defined"))
}

/// Sorts definitions by id. The same definition may come twice (from two threads).
fn dense<T: PartialEq>(kind: &str, mut list: Vec<(u32, T)>) -> Result<(Ids, Vec<T>), ReadError> {
    list.sort_by_key(|(id, _)| *id);
    list.dedup();
    if let Some(pair) = list.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let message = format!("{kind} {} is defined twice, in different ways", pair[0].0);
        return Err(ReadError::new(Position::None, message));
    }
    let ids = match list.last() {
        Some(&(last, _)) if last as usize != list.len() - 1 => {
            Ids::Sparse(list.iter().map(|(id, _)| *id).collect())
        }
        _ => Ids::Dense(list.len() as u32),
    };
    Ok((ids, list.into_iter().map(|(_, definition)| definition).collect()))
}

/// Builds the terms in ascending order of their ids, so that arguments come first. A term that
/// refers to something that is missing becomes `None`.
fn build_terms(
    definitions: Vec<TermDefinition>,
    maps: &mut Maps,
    events: u64,
    store: &mut TermStore,
) -> Result<(), ReadError> {
    let mut leaf_sorts = HashMap::new();
    let mut flat_arguments = 0;
    for definition in definitions {
        let place = maps.terms.len();
        let fault =
            |message: String| ReadError::new(Position::None, format!("term {place}: {message}"));
        // The store takes it for granted that a leaf has one sort.
        let mut one_sort = |leaf: Term, sort: Sort| {
            let known = *leaf_sorts.entry(leaf).or_insert(sort);
            if known == sort { Ok(()) } else { Err(fault(format!("is both {known} and {sort}"))) }
        };
        let term = match definition {
            TermDefinition::Constant(value) => Some(store.constant(value)),
            TermDefinition::Variable(variable, sort) => match maps.variable(variable) {
                Ok(variable) => {
                    one_sort(Term::Variable(variable), sort)?;
                    Some(store.variable(variable, sort))
                }
                Err(_) => None,
            },
            TermDefinition::Primed(variable, sort) => match maps.variable(variable) {
                Ok(variable) => {
                    one_sort(Term::Primed(variable), sort)?;
                    Some(store.primed(variable, sort))
                }
                Err(_) => None,
            },
            TermDefinition::ReadValue(thread, index, sort) => match maps.thread(thread) {
                Ok(thread) => {
                    one_sort(Term::ReadValue(thread, index), sort)?;
                    Some(store.read_value(thread, index, sort))
                }
                Err(_) => None,
            },
            TermDefinition::Before(first, second) => (first < events && second < events)
                .then(|| store.before(EventId(first as u32), EventId(second as u32))),
            TermDefinition::Symbol(name, sort) => Some(store.fresh_symbol(name, sort)),
            TermDefinition::Apply(operator, arguments) => {
                let arguments: Result<Vec<TermId>, Missing> =
                    arguments.iter().map(|&argument| maps.term(argument)).collect();
                match arguments {
                    Ok(arguments) => {
                        let term = store
                            .apply(operator, &arguments)
                            .map_err(|error| fault(error.to_string()))?;
                        if matches!(operator, Operator::And | Operator::Or)
                            && let Term::Apply(_, parts) = store.term(term)
                        {
                            flat_arguments += parts.len();
                        }
                        Some(term)
                    }
                    Err(_) => None,
                }
            }
        };
        if flat_arguments > MAX_FLAT_ARGUMENTS {
            return Err(fault("conjunctions and disjunctions are too large".into()));
        }
        maps.terms.push(term);
    }
    Ok(())
}
