//! One primitive for each conjunct, by cost: fewest primitives, then fewest that force one order,
//! then most concurrency kept, then shortest regions.
//!
//! Conjuncts that differ only in the iterations of loops choose alike. Plans whose wait-notifies ask
//! for a cycle or whose locks are taken in conflicting orders are left out.

use std::collections::BTreeSet;

use super::lock::{self, HeldSections, PairLock};
use super::{Primitive, Region, barrier, shared_exclusive, wait_notify};
use crate::engine::system::System;
use crate::formula::{Atom, HbFormula, KnownOrder};
use crate::lines::{Lines, by_line};

/// A way to satisfy one conjunct, by the atoms' numbers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Lock(usize, usize),
    Wait(usize),
}

/// How many combinations of ways are considered.
const COMBINATIONS: usize = 3000;

/// Plans for the good neighbourhood (conjunctive form), cheapest first, at most `limit`.
pub(crate) fn plans(
    system: &System,
    sections: &HeldSections,
    good: &HbFormula,
    lines: &Lines,
    limit: usize,
) -> Vec<Vec<Primitive>> {
    let known = &system.known;
    let groups = group_clauses(good, lines, known);
    if groups.is_empty() || groups.iter().flatten().any(|clause| clause.is_empty()) {
        return Vec::new();
    }
    let ways: Vec<Vec<Way>> = groups.iter().map(|group| ways_of(known, group)).collect();
    let mut seen = BTreeSet::new();
    let mut plans: Vec<(Cost, Vec<Primitive>)> = Vec::new();
    let mut choice = vec![0; groups.len()];
    for _ in 0..COMBINATIONS {
        let mut locks: Vec<PairLock> = Vec::new();
        let mut waits: Vec<Atom> = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            for clause in group {
                match ways[number][choice[number]] {
                    Way::Lock(a, b) => locks.extend(lock::add(known, clause[a], clause[b])),
                    Way::Wait(at) => waits.push(clause[at]),
                }
            }
        }
        for plan in complete_plans(system, sections, lines, locks, waits) {
            if seen.insert(plan.clone())
                && !wait_notify::ordering_cycle(known, &plan)
                && !lock::lock_order_cycle(known, &plan)
            {
                plans.push((Cost::of(known, &plan), plan));
            }
        }
        // next combination
        let mut at = 0;
        while at < choice.len() {
            choice[at] += 1;
            if choice[at] < ways[at].len() {
                break;
            }
            choice[at] = 0;
            at += 1;
        }
        if at == choice.len() {
            break;
        }
    }
    plans.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    plans.truncate(limit);
    plans.into_iter().map(|(_, plan)| plan).collect()
}

/// Clauses that are one pattern by source line stand together.
fn group_clauses(good: &HbFormula, lines: &Lines, known: &KnownOrder) -> Vec<Vec<Vec<Atom>>> {
    let patterns = by_line(good, lines, |event| known.thread(event));
    let mut groups: Vec<Vec<Vec<Atom>>> = vec![Vec::new(); patterns.len()];
    for clause in good.clauses() {
        // atoms in the order of their lines, so that a way means the same for each clause
        let head = |event| lines.events(lines.line(event))[0];
        let mut sorted = clause.clone();
        sorted.sort_by_key(|atom| (head(atom.before), head(atom.after), *atom));
        let shape = |clause: &[Atom]| -> Vec<_> {
            clause.iter().map(|atom| (head(atom.before), head(atom.after))).collect()
        };
        let number = patterns.iter().position(|pattern| {
            let mut example = pattern.example.clone();
            example.sort_by_key(|atom| (head(atom.before), head(atom.after), *atom));
            shape(&example) == shape(&sorted)
        });
        if let Some(number) = number {
            groups[number].push(sorted);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

fn ways_of(known: &KnownOrder, group: &[Vec<Atom>]) -> Vec<Way> {
    let atoms = group[0].len();
    let mut ways = Vec::new();
    for a in 0..atoms {
        for b in a + 1..atoms {
            if group.iter().all(|clause| lock::add(known, clause[a], clause[b]).is_some()) {
                ways.push(Way::Lock(a, b));
            }
        }
    }
    ways.extend((0..atoms).map(Way::Wait));
    ways
}

/// The plans that one choice leads to: the merging rules applied, with and without one lock for
/// everything, and each with regions that begin and end outside the locks the program has.
fn complete_plans(
    system: &System,
    sections: &HeldSections,
    lines: &Lines,
    mut locks: Vec<PairLock>,
    waits: Vec<Atom>,
) -> Vec<Vec<Primitive>> {
    let known = &system.known;
    let mut rest: Vec<Primitive> = Vec::new();
    let mut waits: Vec<Atom> = BTreeSet::from_iter(waits).into_iter().collect();
    // ADD.BARRIER before ADD.WAITNOTIFY, as the paper does
    let mut at = 0;
    'barriers: while at < waits.len() {
        for other in at + 1..waits.len() {
            if let Some(primitive) = barrier::add(known, waits[at], waits[other]) {
                rest.push(primitive);
                waits.remove(other);
                waits.remove(at);
                continue 'barriers;
            }
        }
        at += 1;
    }
    rest.extend(waits.into_iter().map(wait_notify::add));
    wait_notify::without_implied(known, &mut rest);
    barrier::merge(known, &mut rest);
    locks.retain(|pair| !separated(known, &rest, pair));
    if locks.is_empty() {
        rest.sort();
        return vec![rest];
    }
    lock::merge(known, &mut locks);
    let mut variants = vec![vec![lock::single(known, lines, &locks)], lock::multithread(&locks)];
    variants.extend(shared_exclusive::add(&locks).map(|primitive| vec![primitive]));
    for primitive in variants.iter_mut().flatten() {
        if let Primitive::Lock { regions } = primitive {
            *regions = lock::same_code(system, lines, regions);
        }
    }
    let grown: Vec<Vec<Primitive>> = variants
        .iter()
        .map(|variant| {
            variant.iter().map(|primitive| sections.grow(system, lines, primitive)).collect()
        })
        .collect();
    for variant in grown {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    for variant in &mut variants {
        variant.extend(rest.iter().cloned());
        variant.sort();
    }
    variants
}

/// Do the wait-notifies already keep the two regions apart?
fn separated(known: &KnownOrder, rest: &[Primitive], pair: &PairLock) -> bool {
    let orders = wait_notify::orders(rest);
    known.follows(&orders, Atom::new(pair.one.last, pair.two.first))
        || known.follows(&orders, Atom::new(pair.two.last, pair.one.first))
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    primitives: usize,
    forced_orders: usize,
    excluded_pairs: u64,
    region_length: u64,
}

impl Cost {
    fn of(known: &KnownOrder, plan: &[Primitive]) -> Self {
        let length = |region: &Region| {
            u64::from(known.position(region.last) - known.position(region.first)) + 1
        };
        let mut cost =
            Self { primitives: plan.len(), forced_orders: 0, excluded_pairs: 0, region_length: 0 };
        for primitive in plan {
            let (regions, free) = match primitive {
                Primitive::WaitNotify { .. } | Primitive::Barrier { .. } => {
                    cost.forced_orders += 1;
                    continue;
                }
                Primitive::Lock { regions } => (regions.clone(), Vec::new()),
                Primitive::SharedExclusiveLock { shared, exclusive } => {
                    let all = shared.iter().chain(exclusive).copied().collect();
                    (all, shared.clone())
                }
            };
            cost.region_length += regions.iter().map(length).sum::<u64>();
            for (number, a) in regions.iter().enumerate() {
                for b in &regions[number + 1..] {
                    let together = free.contains(a) && free.contains(b);
                    if a.thread != b.thread && !together {
                        cost.excluded_pairs += length(a) * length(b);
                    }
                }
            }
        }
        cost
    }
}
