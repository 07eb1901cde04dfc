//! Findings that need no neighbourhood: data races and cycles of locks.

use std::time::Instant;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::{EventId, ObjectId, Op, SyncOp, Trace};

use super::EXPLORED;
use crate::engine::system::System;
use crate::explain::{Explanation, Options, Phases, Verdict, frame_of, lines_of};
use crate::formula::{Atom, HbFormula, NormalForm};
use crate::property::{Editor, without_assertions};
use crate::succinct::place_combinations;
use crate::synthesis::verify::{has_cycle, verify};
use crate::synthesis::{Primitive, Region, Synthesis, Verification};

/// A data race: one lock over both accesses.
pub(super) fn race(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    [one, two]: [EventId; 2],
    options: &Options,
) -> (Explanation, bool) {
    let started = Instant::now();
    let mut plain = ctp.clone();
    without_assertions(&mut plain, |_| false);
    let mut editor = Editor::new(plain);
    editor.must_not_meet(one, two);
    let sliced = editor.finish().sliced();
    let system = System::new(&sliced.ctp, options.solver);
    let origins = [ctp.event(one).origin, ctp.event(two).origin];
    let group = |origin: EventId| {
        let own = (0..sliced.ctp.events.len())
            .map(EventId::from)
            .filter(|&event| sliced.ctp.event(event).origin == origin);
        let own: Vec<EventId> = own.collect();
        Some(Region {
            thread: trace.event(origin).thread.index(),
            first: *own.first()?,
            last: *own.last()?,
        })
    };
    let mut explanation = frame_of(trace, Verdict::Depends, Phases::default());
    let small = place_combinations(&system) <= EXPLORED;
    if let (Some(a), Some(b)) = (group(origins[0]), group(origins[1]))
        && options.synthesis
    {
        let mut regions = vec![a, b];
        regions.sort();
        let plan = vec![Primitive::Lock { regions }];
        let sections = crate::synthesis::lock::HeldSections::new(&sliced.ctp);
        let lines = lines_of(trace, &system, &sliced.ctp);
        let grown = vec![sections.grow(&system, &lines, &plan[0])];
        let mut chosen = None;
        for plan in [plan, grown] {
            let verification = match small {
                true => {
                    let states = options.verification_states;
                    verify(&sliced.ctp, &system, &plan, options.solver, states)
                }
                false => Verification::Unverified("too many interleavings to explore".into()),
            };
            let done = verification == Verification::Verified;
            if done || chosen.is_none() {
                chosen = Some(Synthesis { primitives: plan, verification, plans_tried: 1 });
            }
            if done {
                break;
            }
        }
        explanation.synthesis =
            chosen.map(|synthesis| synthesis.of_trace(|event| sliced.ctp.event(event).origin));
    }
    explanation.statistics.phases.synthesis = started.elapsed();
    (explanation, small)
}

/// A cycle of locks: the conjunction that leads to it, and one lock around.
pub(super) fn lock_cycle(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    acquires: &[EventId],
    options: &Options,
) -> (Explanation, bool) {
    let started = Instant::now();
    let mut explanation = frame_of(trace, Verdict::Deadlock, Phases::default());
    let asked: Vec<EventId> = acquires.iter().map(|&event| ctp.event(event).origin).collect();
    explanation.deadlock = Some(asked.clone());
    let lock_of = |event: EventId| match trace.event(event).op {
        Op::Sync(lock, SyncOp::Acquire(step)) => Some((lock, step.mode)),
        _ => None,
    };
    // the lock that a thread asks for is held by another thread of the cycle since `outer`
    let mut atoms = Vec::new();
    let mut regions = Vec::new();
    for &inner in &asked {
        let Some((wanted, _)) = lock_of(inner) else { return (explanation, true) };
        for &other in asked.iter().filter(|&&other| other != inner) {
            if let Some(outer) = held_since(trace, other, wanted) {
                atoms.push(Atom::new(outer, inner));
                let thread = trace.event(outer).thread.index();
                regions.push(Region { thread, first: outer, last: other });
            }
        }
    }
    let known = &explanation.known;
    explanation.bad = HbFormula::new(NormalForm::Disjunctive, vec![atoms], known);
    explanation.good = explanation.bad.complement();
    regions.sort();
    regions.dedup();
    let mut small = true;
    if options.synthesis && regions.len() == asked.len() {
        let mut plain = ctp.clone();
        without_assertions(&mut plain, |_| false);
        let criterion =
            foretell_model::slice::Criterion { events: acquires.to_vec(), variables: Vec::new() };
        let slice =
            foretell_model::slice::slice(&plain, &criterion, foretell_model::ctp::Mode::Prefix);
        let system = System::new(&slice.ctp, options.solver);
        small = place_combinations(&system) <= EXPLORED;
        let of_slice = |origin: EventId| slice.ctp.event_of(origin);
        let plan: Option<Vec<Region>> = regions
            .iter()
            .map(|region| {
                Some(Region {
                    first: of_slice(region.first)?,
                    last: of_slice(region.last)?,
                    ..*region
                })
            })
            .collect();
        let verification = match plan {
            Some(regions) if small => {
                let plan = [Primitive::Lock { regions }];
                let states = options.verification_states;
                let left = has_cycle(&slice.ctp, &system, &plan, options.solver, states);
                match left {
                    Some(false) => Verification::Verified,
                    Some(true) => {
                        Verification::Unverified("threads can still wait for each other".into())
                    }
                    None => {
                        Verification::Unverified("the search for deadlocks was cut short".into())
                    }
                }
            }
            _ => Verification::Unverified("too many interleavings to explore".into()),
        };
        explanation.synthesis = Some(Synthesis {
            primitives: vec![Primitive::Lock { regions }],
            verification,
            plans_tried: 1,
        });
    }
    explanation.statistics.phases.synthesis = started.elapsed();
    (explanation, small)
}

/// The acquire since which the thread holds the lock when it comes to the event.
fn held_since(trace: &Trace, event: EventId, lock: ObjectId) -> Option<EventId> {
    let thread = trace.event(event).thread;
    let mut since = None;
    let mut depth = 0;
    for (number, other) in trace.events[..event.index()].iter().enumerate() {
        if other.thread != thread {
            continue;
        }
        let (taken, given) = match &other.op {
            Op::Sync(taken, SyncOp::Acquire(_)) => (*taken == lock, false),
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => (*mutex == lock, false),
            Op::Sync(released, SyncOp::Release(_)) => (false, *released == lock),
            Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => (false, *mutex == lock),
            _ => (false, false),
        };
        if taken {
            depth += 1;
            if depth == 1 {
                since = Some(EventId::from(number));
            }
        }
        if given && depth > 0 {
            depth -= 1;
        }
    }
    since.filter(|_| depth > 0)
}
