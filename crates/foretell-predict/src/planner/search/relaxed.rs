//! The heuristic: a plan in which no fact is ever lost.

use foretell_trace::{EventId, SyncOp};
use rustc_hash::FxHashSet;

use super::persistent::waits_for;
use super::{Action, Fact, Node, Producers, Segment};
use crate::planner::compiled_goal::{CompiledGoal, Demand};
use crate::planner::machine::{ObjectState, State, Step};

/// A relaxed plan: its length and the threads that take part in it.
pub(super) struct Estimate {
    pub(super) distance: u32,
    pub(super) helpful: Vec<u32>,
}

impl Estimate {
    /// What making it took, in nodes: a long relaxed plan takes longer than a node.
    pub(super) fn cost(&self) -> u64 {
        u64::from(self.distance) / 16
    }
}

impl<'a> Segment<'a> {
    /// How many arrivals at the barrier let the thread go on; `None` when that depends on the order
    /// in which threads come.
    pub(in crate::planner) fn arrivals_needed(
        &self,
        thread: usize,
        place: usize,
        barrier: u32,
    ) -> Option<u32> {
        let arrivals = |chain: &[Action]| {
            let arrives = |action: &&Action| match self.step(action.event) {
                Step::Sync { object, op: SyncOp::BarrierArrive, .. } => object.0 == barrier,
                _ => false,
            };
            chain.iter().filter(arrives).count() as u32
        };
        let users = self.chains.iter().filter(|chain| arrivals(chain) > 0).count() as u32;
        let parties = self.domain.parties(barrier)?;
        let fresh =
            matches!(self.start.objects[barrier as usize], ObjectState::Barrier { arrived: 0, .. });
        (fresh && users <= parties).then(|| parties * arrivals(&self.chains[thread][..place]))
    }

    /// What the action needs that the state does not have; empty when it can take place.
    pub(super) fn missing(
        &self,
        state: &State,
        thread: u32,
        action: &Action,
        data_counts: bool,
    ) -> Vec<Fact> {
        let mut missing = Vec::new();
        if !state.threads[thread as usize].started {
            missing.push(Fact::Started(thread));
        }
        if data_counts {
            missing.extend(
                action
                    .reads
                    .iter()
                    .filter(|&&(cell, value)| state.cells[cell as usize] != value)
                    .map(|&(cell, value)| Fact::Value(cell, value)),
            );
        }
        if self.domain.synchronised(state, action.event) {
            return missing;
        }
        match self.domain.steps[action.event.index()] {
            // The thread's own earlier steps give it the lock.
            Step::Sync { op: SyncOp::Acquire(_), inner: true, .. } => {}
            Step::Sync { object, op: SyncOp::WaitEnd { mutex, timed_out, .. }, inner, .. } => {
                let ObjectState::Condition { woken, .. } = state.objects[object.index()] else {
                    return missing;
                };
                if !timed_out && woken >> thread & 1 == 0 {
                    missing.push(Fact::Signalled(object.0));
                }
                let free =
                    matches!(state.objects[mutex.index()], ObjectState::Lock { holder: 0, .. });
                if !free && !inner {
                    missing.push(Fact::Released(mutex));
                }
            }
            Step::Sync { object, op, .. } => missing.extend(waits_for(object, op)),
            Step::Join(child) => missing.push(Fact::Ended(child)),
            _ => {}
        }
        missing
    }

    /// How far each thread may have to go for any plan: the closure over *all* producers that do not
    /// lie behind an event that loses the goal or ends the run.
    pub(super) fn cone(&self, goal: &CompiledGoal) -> Vec<u32> {
        let mut caps: Vec<u32> = self.chains.iter().map(|chain| chain.len() as u32).collect();
        if goal.counts_steps() {
            return caps;
        }
        let last = goal.sequence().and_then(|sequence| sequence.steps.last().copied());
        let forbidden = goal.forbidden(goal.initial()).iter().map(|&event| (event, 0));
        for (event, more) in forbidden.chain(last.map(|event| (event, 1))) {
            if let Some(&(thread, place)) = self.goal_places.get(&event) {
                let cap = &mut caps[thread as usize];
                *cap = (place + more).min(*cap);
            }
        }
        let mut useful = vec![0; self.chains.len()];
        let mut work: Vec<(u32, u32)> = self
            .goal_places
            .values()
            .map(|&(thread, place)| (thread, (place + 1).min(caps[thread as usize])))
            .collect();
        let mut seen = FxHashSet::default();
        while let Some((thread, target)) = work.pop() {
            let from = useful[thread as usize];
            for place in from..target {
                let action = &self.chains[thread as usize][place as usize];
                for fact in self.needs(thread, action, Some(action.event) != last) {
                    if seen.insert(fact) {
                        let producers = self.producers.get(&fact).into_iter().flatten();
                        work.extend(producers.filter_map(|producers| {
                            let cap = caps[producers.thread as usize];
                            let below = producers.places.partition_point(|&place| place < cap);
                            Some((producers.thread, producers.places[below.checked_sub(1)?] + 1))
                        }));
                    }
                }
            }
            useful[thread as usize] = from.max(target);
        }
        useful
    }

    /// All that an action may need, in any state.
    fn needs(&self, thread: u32, action: &Action, data_counts: bool) -> Vec<Fact> {
        let mut needs = vec![Fact::Started(thread)];
        if data_counts {
            needs.extend(action.reads.iter().map(|&(cell, value)| Fact::Value(cell, value)));
        }
        match self.domain.steps[action.event.index()] {
            Step::Sync { object, op: SyncOp::WaitEnd { mutex, .. }, .. } => {
                needs.extend([Fact::Signalled(object.0), Fact::Released(mutex)]);
            }
            Step::Sync { object, op, .. } => needs.extend(waits_for(object, op)),
            Step::Join(child) => needs.push(Fact::Ended(child)),
            _ => {}
        }
        needs
    }

    /// The relaxed plan from a node: `None` when even that does not exist.
    pub(super) fn estimate(&self, node: &Node, goal: &mut CompiledGoal) -> Option<Estimate> {
        let done = |event: EventId| match self.goal_places.get(&event) {
            Some(&(thread, place)) => node.places[thread as usize] > place,
            None => true, // before the cut or after the end: cannot be had here
        };
        let demands = goal.demands(node.goal, &done)?;
        let limits = self.limits(node, goal);
        let mut relaxed = Relaxed { targets: node.places.clone(), facts: FxHashSet::default() };
        let mut work = Vec::new();
        for demand in demands.iter() {
            let (thread, place) = *self.goal_places.get(&demand.event())?;
            let target = match demand {
                Demand::Done(_) => place + 1,
                Demand::Next(_) if node.places[thread as usize] > place => return None,
                Demand::Next(_) => place,
            };
            work.push((thread, target));
        }
        let free = match demands.last() {
            Some(Demand::Done(event)) => Some(*event),
            _ => None,
        };
        while let Some((thread, target)) = work.pop() {
            if target > limits[thread as usize] {
                return None;
            }
            while relaxed.targets[thread as usize] < target {
                let place = relaxed.targets[thread as usize];
                relaxed.targets[thread as usize] += 1;
                let action = &self.chains[thread as usize][place as usize];
                for fact in self.missing(&node.state, thread, action, Some(action.event) != free) {
                    self.provide(fact, (thread, place), node, &limits, &mut relaxed, &mut work)?;
                }
                for &(cell, value) in &action.writes {
                    relaxed.facts.insert(Fact::Value(cell, value));
                }
            }
        }
        let steps = relaxed.targets.iter().zip(&node.places).map(|(target, place)| target - place);
        Some(Estimate {
            distance: steps.clone().sum(),
            helpful: steps.zip(0..).filter(|(steps, _)| *steps > 0).map(|(_, t)| t).collect(),
        })
    }

    /// Adds the cheapest producer of a fact to the relaxed plan; `None` when there is none.
    fn provide(
        &self,
        fact: Fact,
        (consumer, at): (u32, u32),
        node: &Node,
        limits: &[u32],
        relaxed: &mut Relaxed,
        work: &mut Vec<(u32, u32)>,
    ) -> Option<()> {
        if !relaxed.facts.insert(fact) {
            return Some(());
        }
        let producers = self.producers.get(&fact)?;
        let next = |producers: &Producers| {
            let from = node.places[producers.thread as usize];
            let first = producers.places.partition_point(|&place| place < from);
            let place = *producers.places.get(first)?;
            (place < limits[producers.thread as usize]).then_some((producers.thread, place + 1))
        };
        let own = producers.iter().find(|producers| producers.thread == consumer);
        if own.and_then(next).is_some_and(|(_, target)| target <= at) {
            return Some(()); // by the thread itself, on the way
        }
        let others = producers.iter().filter(|producers| producers.thread != consumer);
        // A barrier wants everybody, a lock held by several readers all of them.
        let everybody = match fact {
            Fact::Arrived(_) => true,
            Fact::Released(lock) => {
                matches!(node.state.objects[lock.index()], ObjectState::Lock { readers: 1.., .. })
            }
            _ => false,
        };
        if everybody {
            let before = work.len();
            work.extend(others.filter_map(next));
            return (work.len() > before).then_some(());
        }
        let holder = match fact {
            Fact::Released(lock) => match node.state.objects[lock.index()] {
                ObjectState::Lock { holder, .. } => holder.checked_sub(1),
                _ => None,
            },
            _ => None,
        };
        let chosen = others
            .filter(|producers| holder.is_none_or(|holder| holder == producers.thread))
            .filter_map(next)
            .min_by_key(|&(thread, target)| {
                target.saturating_sub(relaxed.targets[thread as usize])
            })?;
        work.push(chosen);
        Some(())
    }

    /// How far each thread can go without making the goal impossible.
    pub(super) fn limits(&self, node: &Node, goal: &CompiledGoal) -> Vec<u32> {
        let mut limits = self.useful.clone();
        for event in goal.forbidden(node.goal) {
            if let Some(&(thread, place)) = self.goal_places.get(event)
                && place >= node.places[thread as usize]
            {
                let limit = &mut limits[thread as usize];
                *limit = place.min(*limit);
            }
        }
        limits
    }
}

struct Relaxed {
    targets: Vec<u32>,
    facts: FxHashSet<Fact>,
}
