//! Potential atomicity violations (000 section 3): triplets of accesses that form a pattern, and
//! the cheap filters before the exact question.
//!
//! Triplets with the same local thread and the same three code locations are one candidate; it has
//! instances. An instance is dropped when must-happens-before keeps the remote access out of the
//! pair, or when locksets and acquisition histories do; both are certain. A candidate with more
//! instances than the limit keeps those whose remote access is nearest and counts the others: these
//! are told to the user as not examined, never as safe.
//!
//! One pass over the trace; afterwards the work is in the number of different code locations.

use std::collections::{HashMap, HashSet};

use foretell_model::lockset::{Locksets, StateId};
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, Site, ThreadId, Trace};

use crate::access::{Accesses, Cell, Location};
use crate::apart::{Spans, during};
use crate::limits::MOST_LOCK_STATES;
use crate::pattern::{AccessPattern, PatternKind};
use crate::region::{LocalPair, Regions, local_pairs};
use crate::sample::Sample;

/// What to keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Instances of one candidate.
    pub instances: usize,
    /// Pairs with the same code locations, thread and locks that are tried.
    pub pairs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instances: 64, pairs: 16 }
    }
}

/// A candidate: one or more triplets with the same code locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The thread that should not be interrupted.
    pub thread: ThreadId,
    /// Which pattern.
    pub kind: PatternKind,
    /// Where: first, remote and second access.
    pub locations: [Location; 3],
    /// The triplets that passed all filters, nearest first.
    pub instances: Vec<AccessPattern>,
    /// How many more there are at least.
    pub unexamined: u64,
}

/// The candidates of a trace and how many each filter left (the columns of 000's Table 1).
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Those that passed all filters.
    pub candidates: Vec<Candidate>,
    /// Blocks that should be atomic.
    pub regions: usize,
    /// All patterns.
    pub original: usize,
    /// Left by must-happens-before.
    pub after_must_order: usize,
    /// Left by locksets and acquisition histories.
    pub after_locksets: usize,
}

type ClassKey = (ThreadId, Option<ThreadId>, [Location; 3], PatternKind);

#[derive(Default)]
struct Class {
    after_must_order: bool,
    instances: Vec<(u32, AccessPattern)>,
    unexamined: u64,
}

/// Local pairs that look the same to every filter but must-happens-before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PairKey {
    thread: ThreadId,
    cell: Cell,
    first: (Location, bool),
    second: (Location, bool),
    /// The lock states in between, interned.
    locks: u32,
}

/// Remote accesses that look the same to every filter but must-happens-before, in program order.
type RemoteGroups = HashMap<Cell, Vec<RemoteGroup>>;

struct RemoteGroup {
    thread: ThreadId,
    location: Location,
    writes: bool,
    locks: StateId,
    events: Vec<EventId>,
}

/// Finds the candidates of a trace.
pub fn candidates(
    trace: &Trace,
    order: &MustOrder,
    locks: &Locksets,
    regions: Regions,
    limits: Limits,
) -> Candidates {
    let pairs = |accesses: &mut Accesses<'_>, found: &mut dyn FnMut(LocalPair)| {
        local_pairs(trace, accesses, regions, found)
    };
    classify(trace, order, locks, limits, false, pairs)
}

/// Finds the candidates among pairs that `pairs` finds; it returns how many blocks they lie in.
/// `apart`: triplets with other remote threads are other candidates.
pub(crate) fn classify(
    trace: &Trace,
    order: &MustOrder,
    locks: &Locksets,
    limits: Limits,
    apart: bool,
    find_pairs: impl FnOnce(&mut Accesses<'_>, &mut dyn FnMut(LocalPair)) -> usize,
) -> Candidates {
    let mut accesses = Accesses::new(trace);
    let mut signatures: HashMap<Vec<StateId>, u32> = HashMap::new();
    let mut pairs: HashMap<PairKey, Pairs> = HashMap::new();
    let mut keys: Vec<PairKey> = Vec::new();
    let region_count = find_pairs(&mut accesses, &mut |pair: LocalPair| {
        let between = locks.between(trace, pair.first.0, pair.second.0, MOST_LOCK_STATES);
        let next = signatures.len() as u32;
        let key = PairKey {
            thread: pair.thread,
            cell: pair.cell,
            first: (pair.first.1, pair.first.2),
            second: (pair.second.1, pair.second.2),
            locks: *signatures.entry(between).or_insert(next),
        };
        let pairs = pairs.entry(key).or_insert_with(|| {
            keys.push(key);
            Pairs::default()
        });
        pairs.sample.add((pair.first.0, pair.second.0), limits.pairs);
        pairs.all.push((pair.first.0, pair.second.0));
    });
    let mut states: Vec<Vec<StateId>> = vec![Vec::new(); signatures.len()];
    for (signature, number) in signatures {
        states[number as usize] = signature;
    }
    let remotes = remote_groups(trace, &mut accesses, locks);
    let mut order_of_classes: Vec<ClassKey> = Vec::new();
    let mut classes: HashMap<ClassKey, Class> = HashMap::new();
    let filter = Filter { order, locks, limits };
    for key in keys {
        let pairs = &pairs[&key];
        for remote in remotes.get(&key.cell).into_iter().flatten() {
            if remote.thread == key.thread {
                continue;
            }
            let Some(kind) = PatternKind::of(key.first.1, remote.writes, key.second.1) else {
                continue;
            };
            let locations = [key.first.0, remote.location, key.second.0];
            let class_key = (key.thread, apart.then_some(remote.thread), locations, kind);
            let class = classes.entry(class_key).or_insert_with(|| {
                order_of_classes.push(class_key);
                Class::default()
            });
            filter.add(class, kind, pairs, &states[key.locks as usize], remote);
        }
    }
    let mut result = Candidates {
        regions: region_count,
        original: order_of_classes.len(),
        ..Candidates::default()
    };
    for key in order_of_classes {
        let mut class = classes.remove(&key).expect("every key has its class");
        result.after_must_order += usize::from(class.after_must_order);
        if class.instances.is_empty() {
            continue;
        }
        result.after_locksets += 1;
        class.instances.sort_unstable();
        // Found once for each cell that the three accesses share.
        class.instances.dedup();
        let dropped = class.instances.len().saturating_sub(limits.instances);
        class.instances.truncate(limits.instances);
        let (thread, _, locations, kind) = key;
        result.candidates.push(Candidate {
            thread,
            kind,
            locations,
            instances: class.instances.into_iter().map(|(_, pattern)| pattern).collect(),
            unexamined: class.unexamined + dropped as u64,
        });
    }
    result
}

/// Pairs of accesses with the same code locations, thread and locks.
#[derive(Default)]
struct Pairs {
    /// Some of them, spread evenly.
    sample: Sample<(EventId, EventId)>,
    all: Spans,
}

struct Filter<'a> {
    order: &'a MustOrder,
    locks: &'a Locksets,
    limits: Limits,
}

impl Filter<'_> {
    fn add(
        &self,
        class: &mut Class,
        kind: PatternKind,
        pairs: &Pairs,
        between: &[StateId],
        remote: &RemoteGroup,
    ) {
        let reachable = between.is_empty()
            || between.iter().any(|&state| self.locks.compatible(state, remote.locks));
        if class.after_must_order && !reachable {
            return;
        }
        let (open, more) = match pairs.sample.dropped() {
            0 => Default::default(),
            _ => pairs.all.open(&remote.events, self.order, self.limits.pairs.max(1)),
        };
        let mut chosen = pairs.sample.kept.clone();
        chosen.extend(open);
        chosen.sort_unstable();
        chosen.dedup();
        for (first, second) in chosen {
            let (from, to) = during((first, second), &remote.events, self.order);
            if from >= to {
                continue;
            }
            class.after_must_order = true;
            if !reachable {
                return;
            }
            let near = &remote.events[from..to];
            let limit = self.limits.instances.max(1);
            let centre = near.partition_point(|&event| event < first);
            let start = centre.saturating_sub(limit / 2).min(near.len().saturating_sub(limit));
            let end = (start + limit).min(near.len());
            class.unexamined += (near.len() - (end - start)) as u64;
            for &event in &near[start..end] {
                let span = event.0.max(second.0) - event.0.min(first.0);
                let pattern = AccessPattern { first, remote: event, second, kind };
                class.instances.push((span, pattern));
            }
            if class.instances.len() > 4 * limit {
                class.instances.sort_unstable();
                class.unexamined += (class.instances.len() - limit) as u64;
                class.instances.truncate(limit);
            }
        }
        if more {
            class.unexamined += pairs.sample.dropped();
        }
    }
}

fn remote_groups(trace: &Trace, accesses: &mut Accesses<'_>, locks: &Locksets) -> RemoteGroups {
    let mut places: HashMap<(Cell, ThreadId, Location, bool, StateId), usize> = HashMap::new();
    let mut groups: RemoteGroups = HashMap::new();
    let mut here = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        accesses.of(id, &mut here);
        if here.is_empty() {
            continue;
        }
        let location = accesses.location(id);
        let state = locks.after(trace, id);
        for access in &here {
            let groups = groups.entry(access.cell).or_default();
            let key = (access.cell, event.thread, location, access.writes, state);
            let place = *places.entry(key).or_insert_with(|| {
                groups.push(RemoteGroup {
                    thread: event.thread,
                    location,
                    writes: access.writes,
                    locks: state,
                    events: Vec::new(),
                });
                groups.len() - 1
            });
            groups[place].events.push(id);
        }
    }
    groups
}

/// The patterns that took place in the run itself, by source positions: what the user calls correct
/// (002 chapter 5). Accesses without a known position are left out.
pub fn present_patterns(trace: &Trace, regions: Regions) -> HashSet<(PatternKind, [Site; 3])> {
    let mut accesses = Accesses::new(trace);
    let remotes = remote_groups(trace, &mut accesses, &Locksets::new(trace));
    let mut found: HashMap<(PatternKind, [Location; 3]), [EventId; 3]> = HashMap::new();
    local_pairs(trace, &mut Accesses::new(trace), regions, |pair: LocalPair| {
        for remote in remotes.get(&pair.cell).into_iter().flatten() {
            let kind = PatternKind::of(pair.first.2, remote.writes, pair.second.2);
            let Some(kind) = kind.filter(|_| remote.thread != pair.thread) else { continue };
            let key = (kind, [pair.first.1, remote.location, pair.second.1]);
            if found.contains_key(&key) {
                continue;
            }
            let after = remote.events.partition_point(|&event| event < pair.first.0);
            if let Some(&event) = remote.events.get(after).filter(|&&event| event < pair.second.0) {
                found.insert(key, [pair.first.0, event, pair.second.0]);
            }
        }
    });
    let patterns = found.into_iter().filter_map(|((kind, _), events)| {
        let site = |event: EventId| Some(trace.sites[trace.event(event).site?.index()].clone());
        Some((kind, [site(events[0])?, site(events[1])?, site(events[2])?]))
    });
    patterns.collect()
}
