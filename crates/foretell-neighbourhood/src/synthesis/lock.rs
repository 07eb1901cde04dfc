//! ADD.LOCK, MERGE.LOCKS, MERGE.LOCKS.DEADLOCKS, MULTITHREAD.LOCK, and the locks of loops.
//!
//! A lock between two threads is a pair of regions. TARA's merge takes the first region it meets
//! where two overlap, which leaves locks too short or an ABBA pair; here overlapping regions become
//! their union, on both sides, until no two locks overlap on both sides. The locks that different
//! iterations of a loop need are one lock around each iteration. Where a region begins or ends while
//! the program holds a lock of its own, the new lock can be taken before that one (`HeldSections`):
//! else one thread holds the old lock and wants the new, and another the other way round.

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_trace::{EventId, ObjectId, Term, Value, VariableId};

use std::collections::{BTreeSet, HashSet};

use super::{Primitive, Region};
use crate::engine::system::System;
use crate::formula::{Atom, KnownOrder};
use crate::lines::Lines;

/// A lock between two threads, smaller thread number first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairLock {
    /// Region of one thread.
    pub one: Region,
    /// Region of the other.
    pub two: Region,
}

/// ADD.LOCK: `hb(T₁[ℓ₁'], T₂[ℓ₂]) ∨ hb(T₂[ℓ₂'], T₁[ℓ₁])` with `ℓ₁ ≤ ℓ₁'` and `ℓ₂ ≤ ℓ₂'`.
pub fn add(known: &KnownOrder, a: Atom, b: Atom) -> Option<PairLock> {
    let region = |first: EventId, last: EventId| {
        let fits = known.thread(first) == known.thread(last)
            && known.position(first) <= known.position(last);
        fits.then(|| Region { thread: known.thread(first), first, last })
    };
    let one = region(b.after, a.before)?;
    let two = region(a.after, b.before)?;
    if one.thread == two.thread {
        return None;
    }
    Some(if one.thread < two.thread {
        PairLock { one, two }
    } else {
        PairLock { one: two, two: one }
    })
}

fn overlap(known: &KnownOrder, a: Region, b: Region) -> bool {
    a.thread == b.thread
        && known.position(a.first) <= known.position(b.last)
        && known.position(b.first) <= known.position(a.last)
}

fn union(known: &KnownOrder, a: Region, b: Region) -> Region {
    let first = if known.position(a.first) <= known.position(b.first) { a.first } else { b.first };
    let last = if known.position(a.last) >= known.position(b.last) { a.last } else { b.last };
    Region { thread: a.thread, first, last }
}

/// MERGE.LOCKS and MERGE.LOCKS.DEADLOCKS until neither applies.
pub(crate) fn merge(known: &KnownOrder, locks: &mut Vec<PairLock>) {
    locks.sort();
    locks.dedup();
    loop {
        let mut merged = None;
        'search: for (i, a) in locks.iter().enumerate() {
            for (j, b) in locks.iter().enumerate().skip(i + 1) {
                if overlap(known, a.one, b.one) && overlap(known, a.two, b.two) {
                    merged = Some((i, j));
                    break 'search;
                }
            }
        }
        let Some((i, j)) = merged else { return };
        let b = locks.remove(j);
        let a = locks.remove(i);
        locks.push(PairLock { one: union(known, a.one, b.one), two: union(known, a.two, b.two) });
        locks.sort();
        locks.dedup();
    }
}

/// Regions of one lock: overlapping ones of a thread become one, and so do adjacent ones of the
/// same iteration.
pub(crate) fn join_regions(
    known: &KnownOrder,
    lines: &Lines,
    mut regions: Vec<Region>,
) -> Vec<Region> {
    regions.sort_by_key(|region| (region.thread, known.position(region.first)));
    let mut joined: Vec<Region> = Vec::new();
    for region in regions {
        if let Some(last) = joined.last_mut()
            && last.thread == region.thread
        {
            let adjacent = known.position(region.first) == known.position(last.last) + 1
                && lines.iteration(region.first) == lines.iteration(last.last);
            if overlap(known, *last, region) || adjacent {
                *last = union(known, *last, region);
                continue;
            }
        }
        joined.push(region);
    }
    joined.sort();
    joined
}

/// Regions of one lock whose source lines overlap become regions of the same lines: a lock stands in
/// the source, and one that some thread takes on line 5 and another on line 6 cannot be written.
pub(crate) fn same_code(system: &System, lines: &Lines, regions: &[Region]) -> Vec<Region> {
    let known = &system.known;
    let chain = |thread: usize| -> Vec<EventId> {
        let steps = system.threads[thread].iter();
        steps.flat_map(|&step| system.steps[step].events.iter().copied()).collect()
    };
    let chains: Vec<Vec<EventId>> = (0..system.threads.len()).map(chain).collect();
    let events = |region: &Region| {
        let own = &chains[region.thread];
        &own[known.position(region.first) as usize..=known.position(region.last) as usize]
    };
    let mut grown = regions.to_vec();
    for model in regions {
        let inside: BTreeSet<usize> =
            events(model).iter().filter_map(|&event| lines.code(event)).collect();
        let (Some(begin), Some(end)) = (lines.code(model.first), lines.code(model.last)) else {
            continue;
        };
        for region in &mut grown {
            let shares = |event| lines.code(event).is_some_and(|line| inside.contains(&line));
            if region == model || !shares(region.first) || !shares(region.last) {
                continue;
            }
            let own = &chains[region.thread];
            let of_model =
                |event: &&EventId| lines.code(**event).is_none_or(|l| inside.contains(&l));
            let before = &own[..=known.position(region.first) as usize];
            let first = match lines.code(region.first) == Some(begin) {
                true => Some(region.first),
                false => before
                    .iter()
                    .rev()
                    .take_while(of_model)
                    .copied()
                    .find(|&event| lines.code(event) == Some(begin)),
            };
            let after = &own[known.position(region.last) as usize..];
            let last = match lines.code(region.last) == Some(end) {
                true => Some(region.last),
                false => after
                    .iter()
                    .take_while(of_model)
                    .copied()
                    .find(|&event| lines.code(event) == Some(end)),
            };
            if let (Some(first), Some(last)) = (first, last) {
                *region = Region { thread: region.thread, first, last };
            }
        }
    }
    join_regions(known, lines, grown)
}

/// Pairs of regions with a lock between them, both ways round.
pub(crate) fn links(locks: &[PairLock]) -> HashSet<(Region, Region)> {
    locks.iter().flat_map(|lock| [(lock.one, lock.two), (lock.two, lock.one)]).collect()
}

/// MULTITHREAD.LOCK: locks between all pairs of some regions become one; what remains is one lock
/// for each pair.
pub(crate) fn multithread(locks: &[PairLock]) -> Vec<Primitive> {
    let mut left = locks.to_vec();
    let mut primitives = Vec::new();
    let links = links(locks);
    let linked = |a: Region, b: Region| links.contains(&(a, b));
    let mut nodes: Vec<Region> = locks.iter().flat_map(|lock| [lock.one, lock.two]).collect();
    nodes.sort();
    nodes.dedup();
    while let Some(&seed) = left.first() {
        let mut clique = vec![seed.one, seed.two];
        for &node in &nodes {
            let fits =
                clique.iter().all(|&member| member.thread != node.thread && linked(member, node));
            if fits {
                clique.push(node);
            }
        }
        left.retain(|lock| !clique.contains(&lock.one) || !clique.contains(&lock.two));
        clique.sort();
        primitives.push(Primitive::Lock { regions: clique });
    }
    primitives
}

/// One lock over all regions.
pub(crate) fn single(known: &KnownOrder, lines: &Lines, locks: &[PairLock]) -> Primitive {
    let regions = locks.iter().flat_map(|lock| [lock.one, lock.two]).collect();
    Primitive::Lock { regions: join_regions(known, lines, regions) }
}

/// Where threads hold the program's own locks.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldSections {
    /// From the event that takes the lock to the one that gives it back, or the thread's last.
    sections: Vec<(ObjectId, Region)>,
}

impl HeldSections {
    /// Of a program; events are the program's.
    pub(crate) fn new(ctp: &ConcurrentTraceProgram) -> Self {
        let lock_of = |variable: VariableId| match ctp.variables[variable.index()].role {
            Role::Lock(lock) | Role::Reader(lock, _) => Some(lock),
            _ => None,
        };
        let is_free = |term| match ctp.terms.term(term) {
            Term::Constant(value) => match value {
                Value::Bool(held) => !held,
                other => *other == Value::zero(ctp.terms.sort(term)),
            },
            _ => false,
        };
        let mut sections = Vec::new();
        for (thread, events) in ctp.threads.iter().enumerate() {
            let mut open: Vec<(ObjectId, EventId)> = Vec::new();
            for &event in events {
                let Action::Guarded { assignments, .. } = &ctp.event(event).action else {
                    continue;
                };
                for &(variable, value) in assignments {
                    let Some(lock) = lock_of(variable) else { continue };
                    let held = open.iter().position(|&(held, _)| held == lock);
                    match (held, is_free(value)) {
                        (Some(at), true) => {
                            let (lock, first) = open.remove(at);
                            sections.push((lock, Region { thread, first, last: event }));
                        }
                        (None, false) => open.push((lock, event)),
                        _ => {}
                    }
                }
            }
            let Some(&last) = events.last() else { continue };
            let unfinished = open.into_iter();
            sections.extend(unfinished.map(|(lock, first)| (lock, Region { thread, first, last })));
        }
        Self { sections }
    }

    /// The smallest region around this one at whose borders no lock is held that is taken or given
    /// back inside.
    fn around(&self, known: &KnownOrder, mut region: Region) -> Region {
        let inside = |event: EventId, section: &Region| {
            let place = known.position(event);
            section.thread == known.thread(event)
                && known.position(section.first) <= place
                && place <= known.position(section.last)
        };
        loop {
            let cut = self.sections.iter().find(|(_, section)| {
                let begins = inside(region.first, section) && section.first != region.first;
                let ends = inside(region.last, section) && section.last != region.last;
                begins != ends || begins && self.taken_within(known, region)
            });
            let wider = cut.map(|(_, section)| union(known, region, *section));
            match wider {
                Some(wider) if wider != region => region = wider,
                _ => return region,
            }
        }
    }

    /// Is a lock taken or given back strictly inside the region?
    fn taken_within(&self, known: &KnownOrder, region: Region) -> bool {
        let strictly = |event: EventId| {
            known.thread(event) == region.thread
                && known.position(region.first) < known.position(event)
                && known.position(event) < known.position(region.last)
        };
        self.sections.iter().any(|(_, section)| strictly(section.first) || strictly(section.last))
    }

    /// The primitive with every region grown.
    pub(crate) fn grow(&self, system: &System, lines: &Lines, primitive: &Primitive) -> Primitive {
        let known = &system.known;
        let grow = |regions: &[Region]| {
            let grown: Vec<Region> =
                regions.iter().map(|&region| self.around(known, region)).collect();
            same_code(system, lines, &grown)
        };
        match primitive {
            Primitive::Lock { regions } => Primitive::Lock { regions: grow(regions) },
            Primitive::SharedExclusiveLock { shared, exclusive } => {
                Primitive::SharedExclusiveLock { shared: grow(shared), exclusive: grow(exclusive) }
            }
            other => other.clone(),
        }
    }
}

/// Is there a cycle in "holds one while taking the other"? Locks taken at the same event are taken
/// in the order of the plan.
pub(crate) fn lock_order_cycle(known: &KnownOrder, plan: &[Primitive]) -> bool {
    let regions: Vec<Vec<Region>> = plan
        .iter()
        .map(|primitive| match primitive {
            Primitive::Lock { regions } => regions.clone(),
            Primitive::SharedExclusiveLock { shared, exclusive } => {
                shared.iter().chain(exclusive).copied().collect()
            }
            _ => Vec::new(),
        })
        .collect();
    let nested = |a: usize, b: usize| {
        regions[a].iter().any(|&outer| {
            regions[b].iter().any(|&inner| {
                let starts = (known.position(outer.first), a) < (known.position(inner.first), b);
                overlap(known, outer, inner) && starts
            })
        })
    };
    let count = plan.len();
    let mut reach: Vec<Vec<bool>> =
        (0..count).map(|a| (0..count).map(|b| a != b && nested(a, b)).collect()).collect();
    for middle in 0..count {
        let through = reach[middle].clone();
        for row in reach.iter_mut().filter(|row| row[middle]) {
            for (reached, further) in row.iter_mut().zip(&through) {
                *reached |= further;
            }
        }
    }
    (0..count).any(|a| reach[a][a])
}
