//! Data-flow analysis of a failing run (001 section 2.3, `DF` and `ADF` of Algorithm 2).
//!
//! `DF` holds which write each read that matters took its value from, back from the failing
//! assertion through data and through the guards passed on the way. `ADF` keeps every other write
//! of the same variable out of the way: before the source or after the reader, as in the run.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use foretell_trace::EventId;

use super::system::System;
use crate::formula::Atom;

/// How much further away a guard counts than data.
const GUARD: u32 = 3;

/// The happens-before constraints that make the failing assertion read what it read in the run.
/// `events` is the run up to and including the assertion. What explains least comes first: guards
/// before data, far from the assertion before near.
pub(crate) fn constraints(system: &System, events: &[EventId], failing: EventId) -> Vec<Atom> {
    let mut place: HashMap<EventId, usize> = HashMap::new();
    let mut last_write: HashMap<usize, EventId> = HashMap::new();
    let mut source: HashMap<(EventId, usize), Option<EventId>> = HashMap::new();
    for (at, &event) in events.iter().enumerate() {
        place.insert(event, at);
        let accesses = &system.accesses[event.index()];
        for &variable in &accesses.reads {
            source.insert((event, variable), last_write.get(&variable).copied());
        }
        for &variable in &accesses.writes {
            last_write.insert(variable, event);
        }
        if event == failing {
            break;
        }
    }
    let thread = |event: EventId| system.known.thread(event);
    let position = |event: EventId| system.known.position(event);
    // the events whose guard must hold for the event to be reached, by thread
    let mut guards: HashMap<usize, Vec<EventId>> = HashMap::new();
    for &event in events {
        if !system.accesses[event.index()].guard.is_empty() {
            guards.entry(thread(event)).or_default().push(event);
        }
    }
    let mut flow: BTreeMap<(usize, Option<EventId>, EventId), u32> = BTreeMap::new();
    let mut reached = BTreeSet::from([failing]);
    let mut queue = VecDeque::from([(failing, 0)]);
    while let Some((event, distance)) = queue.pop_front() {
        let mut need = |variable: usize, reader: EventId, distance: u32| {
            let from = source.get(&(reader, variable)).copied().flatten();
            let known = flow.entry((variable, from, reader)).or_insert(distance);
            *known = distance.min(*known);
            if let Some(write) = from
                && reached.insert(write)
            {
                queue.push_back((write, distance + 1));
            }
        };
        for &variable in &system.accesses[event.index()].reads {
            need(variable, event, distance);
        }
        for &guard in guards.get(&thread(event)).into_iter().flatten() {
            if position(guard) < position(event) {
                for &variable in &system.accesses[guard.index()].guard {
                    need(variable, guard, distance + GUARD);
                }
            }
        }
    }
    let mut writers: HashMap<usize, Vec<EventId>> = HashMap::new();
    for (number, accesses) in system.accesses.iter().enumerate() {
        for &variable in &accesses.writes {
            writers.entry(variable).or_default().push(EventId::from(number));
        }
    }
    let mut atoms: BTreeMap<Atom, u32> = BTreeMap::new();
    let mut add = |before: EventId, after: EventId, distance: u32| {
        let atom = Atom::new(before, after);
        if before != after && !system.known.implies(atom) {
            let known = atoms.entry(atom).or_insert(distance);
            *known = distance.min(*known);
        }
    };
    for (&(variable, from, reader), &distance) in &flow {
        if let Some(write) = from {
            add(write, reader, distance);
        }
        for &other in writers.get(&variable).into_iter().flatten() {
            if Some(other) == from || other == reader {
                continue;
            }
            let at = place.get(&other).copied().unwrap_or(usize::MAX);
            if at > place[&reader] {
                add(reader, other, distance);
            } else if let Some(write) = from {
                add(other, write, distance);
            }
        }
    }
    let mut sorted: Vec<(u32, Atom)> =
        atoms.into_iter().map(|(atom, distance)| (distance, atom)).collect();
    sorted.sort_by(|a, b| b.cmp(a));
    sorted.into_iter().map(|(_, atom)| atom).collect()
}
