//! Is there a run of a certain kind that respects a set of happens-before constraints?
//!
//! Depth-first search over states, each visited once. Where only the existence of a run counts,
//! persistent sets leave out orders of independent steps (Godefroid's partial-order reduction):
//! all final and all stuck states are still reached, and so is every failing assertion.

use std::rc::Rc;

use fixedbitset::FixedBitSet;
use foretell_trace::EventId;
use rustc_hash::FxHashSet;

use super::system::{Failure, State, StepId, System, Taken};
use crate::formula::Atom;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A complete run in which every guard and every assertion holds; or one up to a point where a
    /// thread leaves the recorded path, where that counts ([`System::allow_leaving`]).
    Good,
    /// A run up to an assertion that fails.
    Bad,
    /// A run that is complete and good, or that comes to a step whose guard does not hold: an
    /// interleaving that is not bad. (Closed systems only; no reduction.)
    NotBad,
    /// A run in which no assertion fails, where a thread whose guard does not hold gives up and the
    /// others go on (the question of the paper's first round; closed systems only).
    NotFailing,
    /// A state that is not final and in which no thread can go on.
    Stuck,
}

/// A run that was found.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) steps: Vec<StepId>,
    pub(crate) failure: Option<Failure>,
    pub(crate) state: Rc<State>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Run(Run),
    Nothing,
    /// The budget ran out, or a condition over inputs could not be decided.
    Unknown,
}

/// Steps that a set of constraints demands before each step.
#[derive(Clone, Debug)]
pub(crate) struct Constraints {
    before: Vec<Vec<StepId>>,
    impossible: bool,
}

impl Constraints {
    pub(crate) fn new(system: &System, atoms: &[Atom]) -> Self {
        let mut before = system.predecessors.clone();
        let mut impossible = false;
        for &atom in atoms {
            let (a, b) = system.step_atom(atom);
            if a == b || system.known.implies(atom) {
                impossible |= system.known.implies(atom.negated());
                continue;
            }
            before[b].push(a);
        }
        // a cycle has no run; the search would only find every run stuck
        impossible |= system.known.has_cycle(atoms);
        Self { before, impossible }
    }

    pub(crate) fn allow(&self, system: &System, state: &State, step: StepId) -> bool {
        self.before[step].iter().all(|&other| system.taken(state, other))
    }

    fn waits_for<'a>(
        &'a self,
        system: &'a System,
        state: &'a State,
        step: StepId,
    ) -> impl Iterator<Item = usize> + 'a {
        self.before[step]
            .iter()
            .filter(move |&&other| !system.taken(state, other))
            .map(move |&other| system.steps[other].thread)
    }
}

struct Node {
    state: Rc<State>,
    parent: u32,
    step: u32,
}

/// The search.
pub(crate) struct Search<'a> {
    system: &'a mut System,
    constraints: Constraints,
    goal: Goal,
    /// By thread: from this place on nothing matters for the goal.
    ends: Vec<usize>,
    nodes: Vec<Node>,
    /// States visited by this search.
    pub(crate) visited: u64,
}

const ROOT: u32 = u32::MAX;

impl<'a> Search<'a> {
    pub(crate) fn new(system: &'a mut System, atoms: &[Atom], goal: Goal) -> Self {
        let constraints = Constraints::new(system, atoms);
        let ends = match goal {
            Goal::Bad => relevant_ends(system, &constraints),
            _ => system.threads.iter().map(Vec::len).collect(),
        };
        Self { system, constraints, goal, ends, nodes: Vec::new(), visited: 0 }
    }

    fn is_enabled(&mut self, state: &State, step: StepId) -> bool {
        if self.goal == Goal::NotFailing {
            return true;
        }
        match self.system.is_blocked(state, step) {
            Some(blocked) => !blocked,
            None => {
                let taken = self.system.take(state, step);
                taken.next.is_some() || taken.failure.is_some()
            }
        }
    }

    /// Searches; gives up after `budget` states.
    pub(crate) fn run(&mut self, budget: u64) -> Found {
        let mut accept = |_: &System, _: &State| true;
        self.run_where(budget, &mut accept)
    }

    /// Like [`Search::run`]; a stuck state counts only if `accept` says so.
    pub(crate) fn run_where(
        &mut self,
        budget: u64,
        accept: &mut dyn FnMut(&System, &State) -> bool,
    ) -> Found {
        let undecided = self.system.inputs.undecided();
        if self.constraints.impossible && self.goal != Goal::Bad {
            return Found::Nothing;
        }
        let Some(initial) = self.system.initial_state() else { return Found::Nothing };
        let mut seen: FxHashSet<Rc<State>> = FxHashSet::default();
        self.nodes.push(Node { state: Rc::new(initial), parent: ROOT, step: 0 });
        let mut stack = vec![0u32];
        while let Some(at) = stack.pop() {
            self.visited += 1;
            if self.visited > budget {
                return Found::Unknown;
            }
            let state = Rc::clone(&self.nodes[at as usize].state);
            if self.goal == Goal::Bad && !self.assertion_ahead(&state) {
                continue;
            }
            if self.system.is_complete(&state) {
                if matches!(self.goal, Goal::Good | Goal::NotBad | Goal::NotFailing) {
                    return Found::Run(self.trace_back(at, None, None, state));
                }
                continue;
            }
            let (choices, can_move) = match self.choose(&state) {
                Choice::Steps(steps) => (steps, true),
                Choice::Hopeless => continue,
                Choice::Left => return Found::Run(self.trace_back(at, None, None, state)),
                Choice::Nothing => (Vec::new(), false),
            };
            if !can_move {
                if self.goal == Goal::Stuck && accept(self.system, &state) {
                    return Found::Run(self.trace_back(at, None, None, state));
                }
                continue;
            }
            for step in choices {
                let taken = self.attempt(&state, step);
                if taken.next.is_none() && taken.failure.is_none() {
                    if self.goal == Goal::NotBad {
                        return Found::Run(self.trace_back(at, None, None, state));
                    }
                    continue;
                }
                if let Some(failure) = taken.failure {
                    match self.goal {
                        Goal::Bad => {
                            return Found::Run(self.trace_back(
                                at,
                                Some(step),
                                Some(failure),
                                state,
                            ));
                        }
                        Goal::NotBad | Goal::NotFailing => continue,
                        Goal::Good | Goal::Stuck => {}
                    }
                }
                if let Some(next) = taken.next.map(Rc::new)
                    && seen.insert(Rc::clone(&next))
                {
                    stack.push(self.nodes.len() as u32);
                    self.nodes.push(Node { state: next, parent: at, step: step as u32 });
                }
            }
        }
        match self.system.inputs.undecided() > undecided {
            true => Found::Unknown,
            false => Found::Nothing,
        }
    }

    fn attempt(&mut self, state: &State, step: StepId) -> Taken {
        match self.goal {
            Goal::NotFailing => self.system.take_or_skip(state, step),
            _ => self.system.take(state, step),
        }
    }

    fn trace_back(
        &self,
        mut at: u32,
        last: Option<StepId>,
        failure: Option<Failure>,
        state: Rc<State>,
    ) -> Run {
        let mut steps: Vec<StepId> = last.into_iter().collect();
        while self.nodes[at as usize].parent != ROOT {
            steps.push(self.nodes[at as usize].step as usize);
            at = self.nodes[at as usize].parent;
        }
        steps.reverse();
        Run { steps, failure, state }
    }

    /// The steps to try in this state: a persistent set, or all where the goal needs all.
    fn choose(&mut self, state: &State) -> Choice {
        let threads = self.system.threads.len();
        // what each thread would do: None at its end or held back by the constraints
        let mut allowed = vec![false; threads];
        let mut next = vec![None; threads];
        for thread in 0..threads {
            next[thread] = match state.place(thread) < self.ends[thread] {
                true => self.system.next_step(state, thread),
                false => None,
            };
            allowed[thread] =
                next[thread].is_some_and(|step| self.constraints.allow(self.system, state, step));
        }
        if self.goal == Goal::NotBad {
            let steps: Vec<StepId> =
                (0..threads).filter(|&t| allowed[t]).filter_map(|t| next[t]).collect();
            // a hidden step can be taken at once: nobody notices when
            if let Some(&hidden) = steps.iter().find(|&&step| !self.system.steps[step].visible) {
                return Choice::Steps(vec![hidden]);
            }
            return if steps.is_empty() { Choice::Nothing } else { Choice::Steps(steps) };
        }
        let mut enabled = vec![false; threads];
        for thread in 0..threads {
            let Some(step) = next[thread].filter(|_| allowed[thread]) else { continue };
            enabled[thread] = self.is_enabled(state, step);
            if enabled[thread] && !self.system.steps[step].visible {
                return Choice::Steps(vec![step]);
            }
            if !enabled[thread] && self.goal == Goal::Good {
                if self.system.steps[step].leaving {
                    return Choice::Left;
                }
                if !self.may_change(state, step) {
                    return Choice::Hopeless;
                }
            }
        }
        let mut best: Option<(usize, Vec<usize>)> = None;
        for seed in (0..threads).filter(|&thread| enabled[thread]) {
            if best.as_ref().is_some_and(|(_, set)| set.contains(&seed)) {
                continue;
            }
            let set = self.persistent_set(state, seed, &next, &allowed);
            let count = set.iter().filter(|&&thread| enabled[thread]).count();
            if best.as_ref().is_none_or(|(fewest, _)| count < *fewest) {
                best = Some((count, set));
                if count == 1 {
                    break;
                }
            }
        }
        match best {
            Some((_, set)) => Choice::Steps(
                set.into_iter()
                    .filter(|&thread| enabled[thread])
                    .filter_map(|thread| next[thread])
                    .collect(),
            ),
            None => Choice::Nothing,
        }
    }

    /// Is there an assertion that may still be reached?
    fn assertion_ahead(&self, state: &State) -> bool {
        (0..self.system.threads.len())
            .any(|thread| state.place(thread) < self.system.last_assertion[thread])
    }

    /// Can another thread still change what the blocked step reads?
    fn may_change(&self, state: &State, step: StepId) -> bool {
        let own = self.system.steps[step].thread;
        let reads = &self.system.steps[step].shared_reads;
        (0..self.system.threads.len()).filter(|&thread| thread != own).any(|thread| {
            !reads.is_disjoint(&self.system.future_writes[thread][state.place(thread)])
        })
    }

    /// The threads that must be considered together with `seed`: closed under "a step still to
    /// come of the other thread depends on the next step of this one".
    fn persistent_set(
        &self,
        state: &State,
        seed: usize,
        next: &[Option<StepId>],
        allowed: &[bool],
    ) -> Vec<usize> {
        let system = &self.system;
        let mut members = vec![seed];
        let mut inside = vec![false; next.len()];
        inside[seed] = true;
        let mut at = 0;
        while at < members.len() {
            let thread = members[at];
            at += 1;
            let Some(step) = next[thread] else { continue };
            if !allowed[thread] {
                for other in self.constraints.waits_for(system, state, step) {
                    if !inside[other] {
                        inside[other] = true;
                        members.push(other);
                    }
                }
            }
            let this = &system.steps[step];
            for other in 0..next.len() {
                if inside[other] || next[other].is_none() {
                    continue;
                }
                let place = state.place(other);
                let reads = &system.future_reads[other][place];
                let writes = &system.future_writes[other][place];
                if !this.shared_writes.is_disjoint(reads)
                    || !this.shared_writes.is_disjoint(writes)
                    || !this.shared_reads.is_disjoint(writes)
                {
                    inside[other] = true;
                    members.push(other);
                }
            }
        }
        members
    }
}

/// How far each thread must run for every assertion to be able to fail: up to its last assertion, its
/// last write of what a guard or assertion on the way reads, and what has to come before those.
fn relevant_ends(system: &System, constraints: &Constraints) -> Vec<usize> {
    let mut ends = system.last_assertion.clone();
    let mut done = vec![0; ends.len()];
    let mut reads = FixedBitSet::with_capacity(system.variable_count);
    loop {
        let mut wanted = ends.clone();
        for thread in 0..ends.len() {
            for &step in &system.threads[thread][done[thread]..ends[thread]] {
                reads.union_with(&system.steps[step].shared_reads);
                for &before in &constraints.before[step] {
                    let before = &system.steps[before];
                    wanted[before.thread] = wanted[before.thread].max(before.place + 1);
                }
            }
            done[thread] = ends[thread];
        }
        for (thread, steps) in system.threads.iter().enumerate() {
            let last = steps
                .iter()
                .rposition(|&step| !system.steps[step].shared_writes.is_disjoint(&reads));
            wanted[thread] = wanted[thread].max(last.map_or(0, |place| place + 1));
        }
        if wanted == ends {
            return ends;
        }
        ends = wanted;
    }
}

enum Choice {
    Steps(Vec<StepId>),
    /// Nobody can move.
    Nothing,
    /// The goal cannot be reached from here.
    Hopeless,
    /// A thread takes another path than the recorded one.
    Left,
}

/// The events of a run in order.
pub(crate) fn events_of(system: &System, steps: &[StepId]) -> Vec<EventId> {
    steps.iter().flat_map(|&step| system.steps[step].events.iter().copied()).collect()
}
