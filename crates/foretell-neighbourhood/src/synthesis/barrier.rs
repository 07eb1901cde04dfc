//! ADD.BARRIER and MULTITHREAD.BARRIER.
//!
//! Two conjuncts `hb(T₁[ℓ₁-1], T₂[ℓ₂]) ∨ ψ` and `hb(T₂[ℓ₂-1], T₁[ℓ₁]) ∨ ψ` become
//! `Barrier(T₁[ℓ₁], T₂[ℓ₂]) ∨ ψ`. An event further up than `ℓ-1` is as good: the barrier orders it
//! too. Barriers of all pairs among `n+1` threads become one.

use super::Primitive;
use crate::formula::{Atom, KnownOrder};

/// The barrier that gives both orders, if they are a pattern for one.
pub fn add(known: &KnownOrder, one: Atom, two: Atom) -> Option<Primitive> {
    let same_threads = known.thread(one.before) == known.thread(two.after)
        && known.thread(two.before) == known.thread(one.after)
        && known.thread(one.before) != known.thread(one.after);
    let earlier = |a, b| known.position(a) < known.position(b);
    if !same_threads || !earlier(one.before, two.after) || !earlier(two.before, one.after) {
        return None;
    }
    let mut events = vec![two.after, one.after];
    events.sort();
    Some(Primitive::Barrier { events })
}

/// Joins barriers whose events all meet in pairs.
pub(crate) fn merge(known: &KnownOrder, plan: &mut Vec<Primitive>) {
    loop {
        let meets = |a, b, plan: &[Primitive]| {
            plan.iter().any(|primitive| match primitive {
                Primitive::Barrier { events } => events.contains(&a) && events.contains(&b),
                _ => false,
            })
        };
        let mut joined = None;
        'search: for (at, primitive) in plan.iter().enumerate() {
            let Primitive::Barrier { events } = primitive else { continue };
            for other in plan.iter() {
                let Primitive::Barrier { events: more } = other else { continue };
                for &event in more {
                    let new_thread = events.iter().all(|&e| known.thread(e) != known.thread(event));
                    if new_thread && events.iter().all(|&e| meets(e, event, plan)) {
                        joined = Some((at, event));
                        break 'search;
                    }
                }
            }
        }
        let Some((at, event)) = joined else { return };
        let Primitive::Barrier { events } = &plan[at] else { return };
        let mut events = events.clone();
        events.push(event);
        events.sort();
        plan.retain(|primitive| match primitive {
            Primitive::Barrier { events: smaller } => {
                !smaller.iter().all(|event| events.contains(event))
            }
            _ => true,
        });
        plan.push(Primitive::Barrier { events });
    }
}
