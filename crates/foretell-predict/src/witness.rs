//! Fewer events and fewer context switches, the same violation.
//!
//! Two runs that order conflicting steps alike (same variable, one writes) go through the same
//! values. So a witness can be cut to the events that its goal needs and what these depend on, and
//! what is left can be put in any order that keeps the conflicts: the one chosen stays with a thread
//! as long as it can. The result is validated again, and if it is refused the original is kept.

use std::collections::{BTreeSet, HashMap};

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_model::validate::{Run, Witness, validate};
use foretell_trace::{EventId, Scope, Term, VariableId};

use crate::goal::{END, Goal, Moment};

/// How often the thread changes.
pub fn context_switches(ctp: &ConcurrentTraceProgram, order: &[EventId]) -> usize {
    order.windows(2).filter(|pair| ctp.event(pair[0]).thread != ctp.event(pair[1]).thread).count()
}

/// The witness with what its goal does not need left out (unless all events have to take place) and
/// with fewer context switches.
pub fn shrink(
    ctp: &ConcurrentTraceProgram,
    goal: &Goal,
    witness: Witness,
    run: &Run,
    whole: bool,
) -> Witness {
    debug_assert_eq!(run.changes.len(), witness.order.len());
    let mut conflicts = Conflicts::new(ctp, &witness.order);
    conflicts.keep_order(goal);
    let about_end = goal.values.iter().any(|(moment, _)| *moment == Moment::End);
    let mut candidates = Vec::new();
    if !whole && !about_end {
        candidates.push(conflicts.schedule(ctp, conflicts.needed(goal)));
    }
    candidates.push(conflicts.schedule(ctp, vec![true; witness.order.len()]));
    for order in candidates {
        let choices =
            witness.choices.iter().filter(|(event, ..)| order.contains(event)).cloned().collect();
        let shrunk = Witness { order, initial: witness.initial.clone(), choices };
        let fewer = shrunk.order.len() < witness.order.len()
            || context_switches(ctp, &shrunk.order) <= context_switches(ctp, &witness.order);
        if fewer
            && let Ok(run) = validate(ctp, &shrunk)
            && goal.holds(&shrunk, &run) == Some(true)
        {
            return shrunk;
        }
    }
    witness
}

/// The order of conflicting steps of one run: by place in the run, the places that have to come
/// before.
struct Conflicts<'o> {
    order: &'o [EventId],
    before: Vec<Vec<usize>>,
}

impl<'o> Conflicts<'o> {
    fn new(ctp: &ConcurrentTraceProgram, order: &'o [EventId]) -> Self {
        let mut last_of_thread: HashMap<usize, usize> = HashMap::new();
        let mut last_write: HashMap<VariableId, usize> = HashMap::new();
        let mut reads_since: HashMap<VariableId, Vec<usize>> = HashMap::new();
        let places: HashMap<EventId, usize> =
            order.iter().enumerate().map(|(place, &event)| (event, place)).collect();
        let mut fixed: HashMap<EventId, Vec<EventId>> = HashMap::new();
        for &(first, second) in &ctp.orders {
            fixed.entry(second).or_default().push(first);
        }
        let mut before: Vec<Vec<usize>> = Vec::with_capacity(order.len());
        for (place, &event) in order.iter().enumerate() {
            let mut needs = Vec::new();
            needs.extend(last_of_thread.insert(ctp.event(event).thread.index(), place));
            let fixed = fixed.get(&event).into_iter().flatten();
            needs.extend(fixed.filter_map(|first| places.get(first).copied()));
            let (reads, writes) = shared_uses(ctp, event);
            for variable in reads {
                needs.extend(last_write.get(&variable));
                reads_since.entry(variable).or_default().push(place);
            }
            for variable in writes {
                needs.extend(last_write.insert(variable, place));
                needs.extend(reads_since.remove(&variable).unwrap_or_default());
            }
            needs.retain(|&other| other != place);
            needs.sort_unstable();
            needs.dedup();
            before.push(needs);
        }
        // An atomic section stays in one piece: whoever conflicts with a part waits for the whole.
        for &(first, last) in &ctp.atomic_sections {
            let (Some(&from), Some(&to)) = (places.get(&first), places.get(&last)) else {
                continue;
            };
            for place in (0..order.len()).filter(|place| !(from..=to).contains(place)) {
                if place < from && !before[from].contains(&place) {
                    before[from].push(place);
                } else if place > to && !before[place].contains(&to) {
                    before[place].push(to);
                }
            }
        }
        Self { order, before }
    }

    /// The goal's events stay in the order that the run has them in.
    fn keep_order(&mut self, goal: &Goal) {
        let named = self.named(goal);
        let places: Vec<usize> = (0..named.len()).filter(|&place| named[place]).collect();
        for pair in places.windows(2) {
            self.before[pair[1]].push(pair[0]);
        }
    }

    /// By place: is it an event that the goal wants to take place?
    fn named(&self, goal: &Goal) -> Vec<bool> {
        let named: BTreeSet<EventId> = goal
            .terms
            .leaves(goal.formula)
            .into_iter()
            .filter_map(|leaf| match *goal.terms.term(leaf) {
                Term::Before(first, _) if first != END => Some(first),
                _ => None,
            })
            .collect();
        self.order.iter().map(|event| named.contains(event)).collect()
    }

    /// The places that the goal's events depend on.
    fn needed(&self, goal: &Goal) -> Vec<bool> {
        let mut needed = self.named(goal);
        for place in (0..self.order.len()).rev() {
            if needed[place] {
                for &other in &self.before[place] {
                    needed[other] = true;
                }
            }
        }
        needed
    }

    /// An order of the kept places that changes the thread only when it has to, and then prefers
    /// the thread that can go on longest.
    fn schedule(&self, ctp: &ConcurrentTraceProgram, kept: Vec<bool>) -> Vec<EventId> {
        let thread = |place: usize| ctp.event(self.order[place]).thread.index();
        let mut queues: Vec<Vec<usize>> = vec![Vec::new(); ctp.threads.len()];
        for place in (0..self.order.len()).filter(|&place| kept[place]) {
            queues[thread(place)].push(place);
        }
        let mut next = vec![0; queues.len()];
        let mut done = vec![false; self.order.len()];
        let mut result = Vec::new();
        let ready = |place: usize, done: &[bool]| {
            self.before[place].iter().all(|&other| done[other] || !kept[other])
        };
        loop {
            let stretch = |thread: usize, done: &mut Vec<bool>| {
                let queue = &queues[thread][next[thread]..];
                let length = queue
                    .iter()
                    .take_while(|&&place| {
                        let ready = ready(place, done);
                        done[place] |= ready;
                        ready
                    })
                    .count();
                queue[..length].iter().for_each(|&place| done[place] = false);
                length
            };
            let best = (0..queues.len())
                .map(|thread| (stretch(thread, &mut done), thread))
                .max_by_key(|&(length, thread)| (length, std::cmp::Reverse(thread)));
            let Some((length, thread)) = best.filter(|&(length, _)| length > 0) else { break };
            for &place in &queues[thread][next[thread]..next[thread] + length] {
                done[place] = true;
                result.push(self.order[place]);
            }
            next[thread] += length;
        }
        result
    }
}

/// The shared variables that the event reads and writes, synchronisation included.
fn shared_uses(
    ctp: &ConcurrentTraceProgram,
    event: EventId,
) -> (BTreeSet<VariableId>, BTreeSet<VariableId>) {
    let (terms, writes) = match &ctp.event(event).action {
        Action::Guarded { guard, assignments } => {
            let right = assignments.iter().map(|&(_, term)| term);
            let written = assignments.iter().map(|&(variable, _)| variable);
            (right.chain([*guard]).collect(), written.collect())
        }
        Action::Transition { predicate, changed } => (vec![*predicate], changed.clone()),
        Action::Assert { condition } => (vec![*condition], Vec::new()),
    };
    let shared = |variable: &VariableId| ctp.variables[variable.index()].scope == Scope::Shared;
    let leaves = terms.into_iter().flat_map(|term| ctp.terms.leaves(term));
    let reads = leaves.filter_map(|leaf| match *ctp.terms.term(leaf) {
        Term::Variable(variable) => Some(variable),
        _ => None,
    });
    (reads.filter(shared).collect(), writes.into_iter().filter(shared).collect())
}
