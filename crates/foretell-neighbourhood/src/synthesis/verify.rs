//! Is a fix right? The program with the primitives in it is explored.
//!
//! A stuck state counts against the fix when a thread that is held by a new primitive waits, through
//! whatever others wait for, for itself, or for nobody who could ever let it go on. A thread that
//! waits for one that has left the recorded path (its guard cannot hold any more) is not a deadlock:
//! there the program does something the trace does not show.

use foretell_model::ctp::ConcurrentTraceProgram;

use super::insert::insert;
use super::{Primitive, Verification};
use crate::engine::explore::{Found, Goal, Search};
use crate::engine::inputs::SolverFactory;
use crate::engine::system::{State, System};

/// The plan can deadlock.
pub(crate) fn deadlock() -> Verification {
    Verification::Unverified("it can deadlock".to_string())
}

/// Explores the program with the plan in it.
pub(crate) fn verify(
    ctp: &ConcurrentTraceProgram,
    original: &System,
    plan: &[Primitive],
    factory: SolverFactory,
    states: u64,
) -> Verification {
    let inserted = insert(ctp, original, plan);
    let mut system = System::new(&inserted.ctp, factory);
    let unverified = |reason: &str| Verification::Unverified(reason.to_string());
    match Search::new(&mut system, &[], Goal::Good).run(states) {
        Found::Run(_) => {}
        Found::Nothing => return unverified("no good interleaving is left"),
        Found::Unknown => return unverified("the search for a good interleaving was cut short"),
    }
    match Search::new(&mut system, &[], Goal::Bad).run(states) {
        Found::Nothing => {}
        Found::Run(_) => return unverified("a bad interleaving is left"),
        Found::Unknown => return unverified("the search for bad interleavings was cut short"),
    }
    let mut is_deadlock =
        |system: &System, state: &State| waits_in_vain(system, state, &inserted.added);
    match Search::new(&mut system, &[], Goal::Stuck).run_where(states, &mut is_deadlock) {
        Found::Nothing => Verification::Verified,
        Found::Run(_) => deadlock(),
        Found::Unknown => unverified("the search for deadlocks was cut short"),
    }
}

/// Can threads wait for each other with the plan in the program? `None`: not decided.
pub(crate) fn has_cycle(
    ctp: &ConcurrentTraceProgram,
    original: &System,
    plan: &[Primitive],
    factory: SolverFactory,
    states: u64,
) -> Option<bool> {
    let inserted = insert(ctp, original, plan);
    let mut system = System::new(&inserted.ctp, factory);
    let mut circular = |system: &System, state: &State| {
        (0..system.threads.len()).any(|thread| waits_for_itself(system, state, thread))
    };
    match Search::new(&mut system, &[], Goal::Stuck).run_where(states, &mut circular) {
        Found::Nothing => Some(false),
        Found::Run(_) => Some(true),
        Found::Unknown => None,
    }
}

/// Threads that could let the blocked thread go on: they still write what its step reads, or have
/// to come before it.
pub(crate) fn waits_for(system: &System, state: &State, thread: usize) -> Vec<usize> {
    let Some(step) = system.next_step(state, thread) else { return Vec::new() };
    let reads = &system.steps[step].shared_reads;
    (0..system.threads.len())
        .filter(|&other| {
            let writes = &system.future_writes[other][state.place(other)];
            let ordered = system.predecessors[step].iter().any(|&before| {
                system.steps[before].thread == other && !system.taken(state, before)
            });
            other != thread && (!reads.is_disjoint(writes) || ordered)
        })
        .collect()
}

/// Does the thread wait for itself?
pub(crate) fn waits_for_itself(system: &System, state: &State, thread: usize) -> bool {
    let mut seen = vec![false; system.threads.len()];
    let mut stack = waits_for(system, state, thread);
    while let Some(other) = stack.pop() {
        if other == thread {
            return true;
        }
        if !std::mem::replace(&mut seen[other], true) {
            stack.extend(waits_for(system, state, other));
        }
    }
    false
}

fn waits_in_vain(system: &System, state: &State, added: &[bool]) -> bool {
    (0..system.threads.len()).any(|thread| {
        let Some(step) = system.next_step(state, thread) else { return false };
        let held = system.steps[step].events.iter().any(|event| added[event.index()]);
        held && (waits_for_itself(system, state, thread)
            || waits_for(system, state, thread).is_empty())
    })
}
