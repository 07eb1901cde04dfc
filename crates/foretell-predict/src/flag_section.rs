//! Variables that are used as locks: `while (busy) wait(idle); busy = 1; ...; busy = 0`.
//!
//! That two threads are never inside at the same time follows from the values of the flag, but only
//! by induction over the whole run, which costs a solver time that grows exponentially with the
//! threads. So it is found here, and the sections are added to those of the real locks. They are
//! implied: no run is lost, and none is gained.
//!
//! A flag is a shared variable such that
//! 1. every definition assigns a constant: its initial value (*leave*) or another (*enter*);
//! 2. the definitions of each thread alternate, enter first;
//! 3. every definition lies in a section of one common lock, and in the section of an enter the
//!    thread has read the flag before, without another definition of its own in between, and goes
//!    on only if it was the initial value.
//!
//! Then the flag has its initial value whenever a thread enters, because nobody can define it
//! between that thread's read and its enter. By induction exactly one thread is between its enter
//! and its leave when the flag has another value, and none when it has the initial one.
//!
//! A semaphore that is 1 at first is a lock, too, if every thread waits and posts in turns, a wait
//! first: then it is 0 while a thread is between the two, and never more than 1.

use std::collections::{BTreeMap, BTreeSet};

use foretell_model::ctp::{Action, ConcurrentTraceProgram, LockSection, Role};
use foretell_trace::{
    EventId, LockMode, ObjectId, Operator, Term, TermId, ThreadId, Value, VariableId,
};

use crate::goal::is_shared_data;

/// The definitions of one variable in one thread: event and whether it enters.
type Definitions = BTreeMap<ThreadId, Vec<(EventId, bool)>>;

/// Adds the sections of all flags and semaphores to those of the locks.
pub fn add_flag_sections(ctp: &mut ConcurrentTraceProgram) {
    let mut added = Vec::new();
    let mut next_lock = u32::MAX;
    let flags = constant_definitions(ctp).into_iter().filter(|(flag, definitions)| {
        alternate(definitions) && is_guarded(ctp, *flag, definitions)
    });
    let semaphores = semaphore_steps(ctp).into_iter().filter(|(_, steps)| alternate(steps));
    let found: Vec<Definitions> = flags.chain(semaphores).map(|(_, steps)| steps).collect();
    for definitions in found.into_iter().filter(|definitions| definitions.len() > 1) {
        // Real objects are numbered from 0; these have no object.
        let lock = ObjectId(next_lock);
        next_lock -= 1;
        for (&thread, events) in &definitions {
            for pair in events.chunks(2) {
                added.push(LockSection {
                    lock,
                    thread,
                    mode: LockMode::Exclusive,
                    acquire: Some(pair[0].0),
                    release: pair.get(1).map(|&(leave, _)| leave),
                });
            }
        }
    }
    ctp.sections.extend(added);
}

/// The steps of semaphores that are 1 at first; a wait enters.
fn semaphore_steps(ctp: &ConcurrentTraceProgram) -> BTreeMap<VariableId, Definitions> {
    let mut found: BTreeMap<VariableId, Definitions> = BTreeMap::new();
    let mut other: BTreeSet<VariableId> = BTreeSet::new();
    for &event in ctp.threads.iter().flatten() {
        let described = ctp.event(event);
        let Action::Guarded { guard, assignments } = &described.action else {
            other.extend(described.action.defined());
            continue;
        };
        for &(variable, term) in assignments {
            match semaphore_step(ctp, variable, *guard, term) {
                Some(enters) => found
                    .entry(variable)
                    .or_default()
                    .entry(described.thread)
                    .or_default()
                    .push((event, enters)),
                None => _ = other.insert(variable),
            }
        }
    }
    found.retain(|variable, _| !other.contains(variable));
    found
}

/// Is the assignment a wait (true) or a post (false) of a semaphore that is 1 at first?
fn semaphore_step(
    ctp: &ConcurrentTraceProgram,
    variable: VariableId,
    guard: TermId,
    term: TermId,
) -> Option<bool> {
    let described = &ctp.variables[variable.index()];
    let Role::Synchronisation(_) = described.role else { return None };
    let width = described.sort.width()?;
    let [none, one] = [0, 1].map(|bits| Value::bit_vec(width, bits));
    if described.initial.as_ref() != Some(&one) {
        return None;
    }
    let with = |term: TermId, count: &Value| {
        let leaf = |leaf: &Term| match leaf {
            Term::Variable(other) if *other == variable => Some(count.clone()),
            _ => None,
        };
        ctp.terms.evaluate(term, &leaf).ok()
    };
    let possible_at_none = with(guard, &none);
    match (with(term, &none), with(term, &one)) {
        (_, Some(after)) if after == none && possible_at_none == Some(Value::Bool(false)) => {
            Some(true)
        }
        (Some(after), _) if after == one => Some(false),
        _ => None,
    }
}

/// Variables of which every definition is a constant, with their definitions.
fn constant_definitions(ctp: &ConcurrentTraceProgram) -> BTreeMap<VariableId, Definitions> {
    let mut found: BTreeMap<VariableId, Definitions> = BTreeMap::new();
    let mut other: BTreeSet<VariableId> = BTreeSet::new();
    for chain in &ctp.threads {
        for &event in chain {
            match &ctp.event(event).action {
                Action::Guarded { assignments, .. } => {
                    for &(variable, term) in assignments {
                        let initial = ctp.variables[variable.index()].initial.as_ref();
                        match (ctp.terms.constant_value(term), initial) {
                            (Some(value), Some(initial)) if is_shared_data(ctp, variable) => {
                                let thread = ctp.event(event).thread;
                                let definitions = found.entry(variable).or_default();
                                definitions
                                    .entry(thread)
                                    .or_default()
                                    .push((event, value != initial));
                            }
                            _ => {
                                other.insert(variable);
                            }
                        }
                    }
                }
                Action::Transition { changed, .. } => other.extend(changed),
                Action::Assert { .. } => {}
            }
        }
    }
    found.retain(|variable, _| !other.contains(variable));
    found
}

fn alternate(definitions: &Definitions) -> bool {
    definitions.values().all(|events| {
        events.iter().enumerate().all(|(place, &(_, enter))| enter == (place % 2 == 0))
    })
}

/// Does a common lock keep everybody out between the read and the enter?
fn is_guarded(ctp: &ConcurrentTraceProgram, flag: VariableId, definitions: &Definitions) -> bool {
    let mut common: Option<BTreeSet<ObjectId>> = None;
    for &(event, _) in definitions.values().flatten() {
        let here: BTreeSet<ObjectId> =
            sections_at(ctp, event).map(|section| section.lock).collect();
        common = Some(match common {
            None => here,
            Some(common) => common.intersection(&here).copied().collect(),
        });
    }
    common.into_iter().flatten().any(|lock| {
        let enters = definitions.values().flatten().filter(|(_, enter)| *enter);
        enters.into_iter().all(|&(enter, _)| {
            let section = sections_at(ctp, enter).find(|section| section.lock == lock);
            section.is_some_and(|section| is_checked(ctp, flag, enter, section))
        })
    })
}

/// The exclusive sections that the event lies in.
fn sections_at(ctp: &ConcurrentTraceProgram, event: EventId) -> impl Iterator<Item = &LockSection> {
    let here = ctp.event(event);
    let position = |event: EventId| ctp.event(event).position;
    ctp.sections.iter().filter(move |section| {
        section.thread == here.thread
            && section.mode == LockMode::Exclusive
            && section.acquire.is_none_or(|acquire| position(acquire) <= here.position)
            && section.release.is_none_or(|release| here.position <= position(release))
    })
}

/// Has the thread, in this section, read the flag and gone on only because it was free?
fn is_checked(
    ctp: &ConcurrentTraceProgram,
    flag: VariableId,
    enter: EventId,
    section: &LockSection,
) -> bool {
    let chain = &ctp.threads[section.thread.index()];
    let start = section.acquire.map_or(0, |acquire| ctp.event(acquire).position as usize);
    let until = ctp.event(enter).position as usize;
    let initial = ctp.variables[flag.index()].initial.as_ref();
    // Locals that hold what was read in this section.
    let mut read: BTreeSet<VariableId> = BTreeSet::new();
    let mut checked = false;
    for &event in &chain[start..=until] {
        let Action::Guarded { guard, assignments } = &ctp.event(event).action else { return false };
        checked |=
            demands(ctp, *guard, initial, |variable| variable == flag || read.contains(&variable));
        if event == enter {
            break;
        }
        for &(variable, term) in assignments {
            if variable == flag {
                read.clear();
                checked = false;
            } else if *ctp.terms.term(term) == Term::Variable(flag) {
                read.insert(variable);
            } else {
                read.remove(&variable);
            }
        }
    }
    checked
}

/// Does the guard hold only if one of the variables has the value?
fn demands(
    ctp: &ConcurrentTraceProgram,
    guard: TermId,
    value: Option<&Value>,
    is_flag: impl Fn(VariableId) -> bool,
) -> bool {
    let parts = match ctp.terms.term(guard) {
        Term::Apply(Operator::And, parts) => parts.to_vec(),
        _ => vec![guard],
    };
    let flag = |term: TermId| matches!(*ctp.terms.term(term), Term::Variable(v) if is_flag(v));
    parts.into_iter().any(|part| match ctp.terms.term(part) {
        Term::Apply(Operator::Eq, sides) => {
            let constant = |term: TermId| ctp.terms.constant_value(term);
            (flag(sides[0]) && constant(sides[1]) == value && value.is_some())
                || (flag(sides[1]) && constant(sides[0]) == value && value.is_some())
        }
        Term::Apply(Operator::Not, inner) => flag(inner[0]) && value == Some(&Value::Bool(false)),
        Term::Variable(variable) => is_flag(*variable) && value == Some(&Value::Bool(true)),
        _ => false,
    })
}
