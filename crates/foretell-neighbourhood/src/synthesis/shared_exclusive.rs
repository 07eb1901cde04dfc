//! ADD.SHAREDEXCLUSIVELOCK: locks between each of some regions and each of others, where the first
//! need no lock among themselves, become one readers-writer lock.

use super::{Primitive, Region};
use crate::synthesis::lock::{PairLock, links};

/// The readers-writer lock that does what all these locks do, if there is one that lets at least
/// two threads run together.
pub(crate) fn add(locks: &[PairLock]) -> Option<Primitive> {
    let mut nodes: Vec<Region> = locks.iter().flat_map(|lock| [lock.one, lock.two]).collect();
    nodes.sort();
    nodes.dedup();
    let links = links(locks);
    let linked = |a: Region, b: Region| links.contains(&(a, b));
    let mut best: Option<(Vec<Region>, Vec<Region>)> = None;
    for &seed in &nodes {
        let mut shared = vec![seed];
        for &node in &nodes {
            if node != seed && shared.iter().all(|&member| !linked(member, node)) {
                shared.push(node);
            }
        }
        let exclusive: Vec<Region> =
            nodes.iter().copied().filter(|node| !shared.contains(node)).collect();
        let complete = shared.iter().all(|&s| exclusive.iter().all(|&x| linked(s, x)));
        let mut threads: Vec<usize> = shared.iter().map(|region| region.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        // readers are those with more to do: the longer regions share
        let length = |regions: &[Region]| {
            regions.iter().map(|r| r.last.0.abs_diff(r.first.0) + 1).sum::<u32>()
        };
        if complete && !exclusive.is_empty() && threads.len() >= 2 {
            let better = best.as_ref().is_none_or(|(old, _)| length(&shared) > length(old));
            if better {
                shared.sort();
                best = Some((shared, exclusive));
            }
        }
    }
    best.map(|(shared, exclusive)| Primitive::SharedExclusiveLock { shared, exclusive })
}
