//! Data races: two conflicting accesses that can be next at the same time, so that one directly
//! follows the other in a feasible prefix. Two atomic accesses never race.

use std::collections::HashMap;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::{Locksets, StateId};
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, Op, TermId, ThreadId, Trace};

use crate::access::{Accesses, Cell, Location};
use crate::apart::{Spans, during};
use crate::finding::{AccessInfo, Words};
use crate::goal::{Goal, GoalBuilder};
use crate::limits::PAIRED_ACCESSES;
use crate::property::{FindingKind, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::sample::Sample;
use crate::violation::Violation;

/// The property.
#[derive(Debug)]
pub struct Race;

impl Property for Race {
    /// Both can be next. Events: two accesses.
    type Shape = ();

    const TEXT: Text = Text {
        name: "race",
        headline: "data race",
        rule: "DataRace",
        description: "Two conflicting accesses can take place at the same time.",
    };
    const RANK: u8 = 6;
    const ORDERED: bool = true;

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        questions(search.trace, search.order, search.locks, search.instances)
    }

    fn goal(subject: &Subject<'_>, (): (), events: &[EventId]) -> Option<Goal> {
        let &[one, two] = events else { return None };
        Some(goal(subject.ctp, one, two))
    }

    fn is_excluded(subject: &Subject<'_>, (): (), events: &[EventId]) -> bool {
        matches!(*events, [one, two] if subject.exclusion.keeps_apart(one, two))
    }

    fn order(builder: &mut GoalBuilder<'_>, (): (), events: &[EventId]) -> Option<Vec<TermId>> {
        let &[one, two] = events else { return None };
        Some(vec![builder.next(one), builder.next(two)])
    }

    fn is_in(
        ctp: &ConcurrentTraceProgram,
        place: &dyn Fn(EventId) -> Option<usize>,
        (): (),
        events: &[EventId],
    ) -> bool {
        events.iter().all(|&event| {
            let Some(here) = ctp.event_of(event) else { return false };
            let described = ctp.event(here);
            let before = described.position.checked_sub(1);
            let before = before
                .map(|number| ctp.threads[described.thread.index()][number as usize])
                .map(|event| ctp.event(event).origin);
            place(event).is_none() && before.is_none_or(|before| place(before).is_some())
        })
    }

    fn describe(words: &Words<'_>, (): (), accesses: &[AccessInfo]) -> Option<String> {
        let [one, two] = accesses else { return None };
        Some(format!("data race: {} and {}", words.access(one), words.access(two)))
    }

    fn violation(_: &[AccessInfo], _marked: bool) -> Violation {
        Violation::Race
    }
}

/// Accesses that look the same to every filter but must-happens-before, in program order.
struct Group {
    thread: ThreadId,
    location: Location,
    writes: bool,
    atomic: bool,
    locks: StateId,
    events: Vec<EventId>,
}

/// Pairs of one pair of code locations with their distance, and how many more there are.
#[derive(Default)]
struct Open {
    pairs: Vec<(u32, [EventId; 2])>,
    unexamined: u64,
}

/// One question for each pair of code locations that locks and must-happens-before leave open.
pub fn questions(
    trace: &Trace,
    order: &MustOrder,
    locks: &Locksets,
    limit: usize,
) -> Vec<Question> {
    let groups = groups(trace, locks);
    let mut places: HashMap<[(Location, bool); 2], usize> = HashMap::new();
    let mut found: Vec<Open> = Vec::new();
    for groups in groups {
        for (number, one) in groups.iter().enumerate() {
            for two in &groups[number + 1..] {
                let conflict = (one.writes || two.writes) && !(one.atomic && two.atomic);
                if one.thread == two.thread || !conflict || !locks.compatible(one.locks, two.locks)
                {
                    continue;
                }
                let most = limit.max(PAIRED_ACCESSES);
                let mut sample = Sample::default();
                let mut spans = Spans::default();
                for &event in &one.events {
                    sample.add(event, most);
                    spans.push((event, event));
                }
                let (open, more) = match sample.dropped() {
                    0 => Default::default(),
                    _ => spans.open(&two.events, order, most),
                };
                let mut chosen = sample.kept;
                chosen.extend(open.into_iter().map(|(event, _)| event));
                chosen.sort_unstable();
                chosen.dedup();
                let mut more = u64::from(more);
                for &event in &chosen {
                    let (from, to) = during((event, event), &two.events, order);
                    if from >= to {
                        continue;
                    }
                    let mut key = [(one.location, one.writes), (two.location, two.writes)];
                    key.sort_unstable();
                    let place = *places.entry(key).or_insert_with(|| {
                        found.push(Open::default());
                        found.len() - 1
                    });
                    let near = &two.events[from..to];
                    let centre = near.partition_point(|&other| other < event);
                    let each = (limit / 2).max(1);
                    let chosen = centre.saturating_sub(each)..(centre + each).min(near.len());
                    let Open { pairs, unexamined } = &mut found[place];
                    *unexamined += (near.len() - chosen.len()) as u64 + std::mem::take(&mut more);
                    for &other in &near[chosen] {
                        let pair = [event.min(other), event.max(other)];
                        pairs.push((pair[1].0 - pair[0].0, pair));
                    }
                    if pairs.len() > 4 * limit.max(PAIRED_ACCESSES) {
                        nearest(pairs, unexamined, limit);
                    }
                }
            }
        }
    }
    let question = |Open { mut pairs, mut unexamined }: Open| {
        nearest(&mut pairs, &mut unexamined, limit);
        let instances = pairs
            .into_iter()
            .map(|(_, pair)| Instance { shape: Shape::Race(()), events: pair.to_vec() })
            .collect();
        Question { kind: FindingKind::Race, instances, rest: Vec::new(), unexamined }
    };
    found.into_iter().map(question).collect()
}

/// Keeps the pairs whose events are nearest to each other, each once, and counts the others.
fn nearest(pairs: &mut Vec<(u32, [EventId; 2])>, unexamined: &mut u64, limit: usize) {
    pairs.sort_unstable();
    pairs.dedup();
    *unexamined += pairs.len().saturating_sub(limit) as u64;
    pairs.truncate(limit);
}

fn groups(trace: &Trace, locks: &Locksets) -> Vec<Vec<Group>> {
    let mut accesses = Accesses::new(trace);
    let mut cells: HashMap<Cell, usize> = HashMap::new();
    let mut groups: Vec<Vec<Group>> = Vec::new();
    let mut places: HashMap<(usize, ThreadId, Location, bool, bool, StateId), usize> =
        HashMap::new();
    let mut here = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        let atomic = match &event.op {
            Op::Read(access) | Op::Write(access) => access.order.is_some(),
            Op::ReadModifyWrite(_) => true,
            _ => continue,
        };
        let id = EventId::from(position);
        accesses.of(id, &mut here);
        let writes = here.iter().any(|access| access.writes);
        let location = accesses.location(id);
        let state = locks.after(trace, id);
        let mut seen: Vec<Cell> = here.iter().map(|access| access.cell).collect();
        seen.sort_unstable();
        seen.dedup();
        for cell in seen {
            let cell = *cells.entry(cell).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            let key = (cell, event.thread, location, writes, atomic, state);
            let place = *places.entry(key).or_insert_with(|| {
                let events = Vec::new();
                let thread = event.thread;
                groups[cell].push(Group { thread, location, writes, atomic, locks: state, events });
                groups[cell].len() - 1
            });
            groups[cell][place].events.push(id);
        }
    }
    groups
}

/// Both threads have come to their access, and both accesses are of the recorded location.
pub fn goal(ctp: &ConcurrentTraceProgram, one: EventId, two: EventId) -> Goal {
    let mut builder = GoalBuilder::new(ctp);
    let parts =
        [builder.next(one), builder.next(two), builder.local_guard(one), builder.local_guard(two)];
    let formula = builder.terms.and(&parts);
    builder.finish(formula)
}
