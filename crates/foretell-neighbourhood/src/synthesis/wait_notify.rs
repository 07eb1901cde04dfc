//! ADD.WAITNOTIFY: `hb(T₁[ℓ₁], T₂[ℓ₂]) ∨ ψ` becomes `WaitNotify(T₂[ℓ₂], T₁[ℓ₁]) ∨ ψ`.

use super::Primitive;
use crate::engine::system::System;
use crate::formula::{Atom, KnownOrder};

/// The rule.
pub fn add(atom: Atom) -> Primitive {
    Primitive::WaitNotify { waiter: atom.after, notifier: atom.before }
}

/// Do the wait-notifies of a plan ask for a cycle over the events?
pub(crate) fn ordering_cycle(known: &KnownOrder, plan: &[Primitive]) -> bool {
    known.has_cycle(&orders(plan))
}

/// The orders that the wait-notifies of a plan force.
pub(crate) fn orders(plan: &[Primitive]) -> Vec<Atom> {
    plan.iter()
        .filter_map(|primitive| match primitive {
            Primitive::WaitNotify { waiter, notifier } => Some(Atom::new(*notifier, *waiter)),
            _ => None,
        })
        .collect()
}

/// The plan with one wait moved up in its thread, nearest first: a thread that waits with a lock in
/// hand, or after a promise that others wait for, may wait before it takes the one or gives the
/// other.
pub(crate) fn hoisted(system: &System, plan: &[Primitive]) -> Vec<Vec<Primitive>> {
    let mut plans = Vec::new();
    // all waits at once: to the nearest guard above, or to the start of the thread
    for to_start in [false, true] {
        let mut earlier = plan.to_vec();
        for primitive in &mut earlier {
            let Primitive::WaitNotify { waiter, .. } = primitive else { continue };
            let thread = &system.threads[system.known.thread(*waiter)];
            let place = system.steps[system.step_of[waiter.index()]].place;
            let guards = |step: &&usize| {
                let events = &system.steps[**step].events;
                events.iter().any(|event| !system.accesses[event.index()].guard.is_empty())
            };
            let guard = thread[..place].iter().rev().find(guards).filter(|_| !to_start);
            if let Some(&step) = guard.or(thread.first()) {
                *waiter = system.steps[step].events[0];
            }
        }
        without_implied(&system.known, &mut earlier);
        if !ordering_cycle(&system.known, &earlier) {
            plans.push(earlier);
        }
    }
    for (number, primitive) in plan.iter().enumerate() {
        let Primitive::WaitNotify { waiter, notifier } = primitive else { continue };
        let thread = &system.threads[system.known.thread(*waiter)];
        let place = system.steps[system.step_of[waiter.index()]].place;
        for &step in thread[..place].iter().rev().filter(|&&step| system.steps[step].visible) {
            let mut earlier = plan.to_vec();
            let waiter = system.steps[step].events[0];
            earlier[number] = Primitive::WaitNotify { waiter, notifier: *notifier };
            if !ordering_cycle(&system.known, &earlier) {
                plans.push(earlier);
            }
        }
    }
    plans
}

/// Without wait-notifies that follow from the others.
pub(crate) fn without_implied(known: &KnownOrder, plan: &mut Vec<Primitive>) {
    let mut at = 0;
    while at < plan.len() {
        let primitive = plan.remove(at);
        let implied = match &primitive {
            Primitive::WaitNotify { waiter, notifier } => {
                known.follows(&orders(plan), Atom::new(*notifier, *waiter))
            }
            _ => false,
        };
        if !implied {
            plan.insert(at, primitive);
            at += 1;
        }
    }
}
