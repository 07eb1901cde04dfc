//! ADD.LOCK, MERGE.LOCKS, MERGE.LOCKS.DEADLOCKS, MULTITHREAD.LOCK, and the locks of loops.
//!
//! A lock between two threads is a pair of regions. TARA's merge takes the first region it meets
//! where two overlap, which leaves locks too short or an ABBA pair; here overlapping regions become
//! their union, on both sides, until no two locks overlap on both sides. The locks that different
//! iterations of a loop need are one lock around each iteration.

use foretell_trace::EventId;

use super::{Primitive, Region};
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

/// MULTITHREAD.LOCK: locks between all pairs of some regions become one; what remains is one lock
/// for each pair.
pub(crate) fn multithread(locks: &[PairLock]) -> Vec<Primitive> {
    let mut left = locks.to_vec();
    let mut primitives = Vec::new();
    while let Some(&seed) = left.first() {
        let mut clique = vec![seed.one, seed.two];
        let linked = |a: Region, b: Region| {
            locks
                .iter()
                .any(|lock| (lock.one, lock.two) == (a, b) || (lock.one, lock.two) == (b, a))
        };
        let nodes: Vec<Region> = locks.iter().flat_map(|lock| [lock.one, lock.two]).collect();
        for node in nodes {
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
