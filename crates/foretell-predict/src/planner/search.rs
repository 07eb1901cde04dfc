//! The embedded planner: forward search over compact states with a relaxed-plan heuristic, after
//! FF (Hoffmann 2001): enforced hill climbing over helpful actions first, then best-first search
//! over all actions with a seen-set, which is complete for the segment.
//!
//! The complete search leaves out actions by persistent sets (Godefroid 1996): where some threads'
//! next actions commute with all that the other threads can still do, only they are tried.
//!
//! Threads are chains, so a relaxed plan (one in which no fact is ever lost) is one target place
//! for each thread. It is computed from the goal backwards and touches only what the goal needs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::{Hash, Hasher};

use foretell_trace::sync::Class;
use foretell_trace::{EventId, ObjectId, SyncOp};
use rustc_hash::{FxHashMap, FxHashSet};

use super::compiled_goal::{CompiledGoal, Demand};
use super::goal::GoalState;
use super::machine::{Domain, ObjectState, State, Step};
use super::wide_hash::WideHasher;

/// A part of a run to be planned: the state at the cut and the events that may follow.
pub(super) struct Segment<'a> {
    domain: &'a Domain,
    start: State,
    /// The actions of each thread, in order. Events between them matter to no other thread and go
    /// along with the next action.
    pub(super) chains: Vec<Vec<Action>>,
    /// Where each goal event stands in its chain.
    goal_places: FxHashMap<EventId, (u32, u32)>,
    producers: FxHashMap<Fact, Vec<Producers>>,
    /// No plan needs a thread to go further than this.
    useful: Vec<u32>,
    futures: Futures,
    /// Every action is a step of the goal, so none may be left out.
    counts_steps: bool,
}

/// An event with its accesses of shared cells, which are numbered anew.
pub(super) struct Action {
    pub event: EventId,
    pub reads: Vec<(u32, u64)>,
    pub writes: Vec<(u32, u64)>,
    /// The goal's automaton can notice it.
    visible: bool,
}

/// What an action can need and another can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    Value(u32, u64),
    Acquired(ObjectId),
    Released(ObjectId),
    Signalled(u32),
    Posted(u32),
    Taken(u32),
    Arrived(u32),
    Started(u32),
    Ended(u32),
}

/// The places in one thread's chain that make a fact.
struct Producers {
    thread: u32,
    places: Vec<u32>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// These events reach the goal, in this order.
    Plan(Vec<EventId>),
    /// The segment has no plan.
    None,
    /// The budget was spent.
    Budget,
}

#[derive(Clone)]
struct Node {
    state: State,
    /// How many actions of each chain are done.
    places: Vec<u32>,
    goal: GoalState,
    /// The node before and the action from there.
    reached: Option<(usize, EventId)>,
}

/// A relaxed plan: its length and the threads that take part in it.
struct Estimate {
    distance: u32,
    helpful: Vec<u32>,
}

impl Estimate {
    /// What making it took, in nodes: a long relaxed plan takes longer than a node.
    fn cost(&self) -> u64 {
        u64::from(self.distance) / 16
    }
}

impl<'a> Segment<'a> {
    /// The events from the recorded run's state `start` on, up to (not including) `end`.
    pub(super) fn new(
        domain: &'a Domain,
        mut start: State,
        end: EventId,
        goal: &CompiledGoal,
        with_data: bool,
    ) -> Self {
        let events: Vec<Vec<EventId>> = domain
            .chains
            .iter()
            .zip(&start.positions)
            .map(|(chain, &position)| {
                let rest = &chain[position as usize..];
                rest[..rest.partition_point(|&event| event < end)].to_vec()
            })
            .collect();
        let shared = Shared::new(domain, &start, &events);
        start.cells = shared.cells.iter().map(|&cell| start.cells[cell as usize]).collect();
        let mut segment = Segment {
            domain,
            start,
            chains: Vec::new(),
            goal_places: FxHashMap::default(),
            producers: FxHashMap::default(),
            useful: Vec::new(),
            futures: Futures::default(),
            counts_steps: goal.counts_steps(),
        };
        for (thread, events) in events.iter().enumerate() {
            let mut chain = Vec::new();
            for &event in events {
                let is_goal = goal.mentions(event);
                if !is_goal && !goal.counts_steps() && !shared.matters(domain, event) {
                    continue;
                }
                let place = (thread as u32, chain.len() as u32);
                if is_goal {
                    segment.goal_places.insert(event, place);
                }
                let renumber = |cells: &[(u32, u64)]| -> Vec<(u32, u64)> {
                    let number = |cell: &u32| shared.numbers.get(cell).copied();
                    cells.iter().filter_map(|(cell, value)| Some((number(cell)?, *value))).collect()
                };
                let action = Action {
                    event,
                    reads: if with_data { renumber(domain.reads(event)) } else { Vec::new() },
                    writes: if with_data { renumber(domain.writes(event)) } else { Vec::new() },
                    visible: is_goal,
                };
                segment.register(place, &action);
                chain.push(action);
            }
            segment.chains.push(chain);
        }
        for event in goal.next_events() {
            if let Some(&(thread, place)) = segment.goal_places.get(&event)
                && let Some(before) = place.checked_sub(1)
            {
                segment.chains[thread as usize][before as usize].visible = true;
            }
        }
        segment.useful = segment.cone(goal);
        segment.futures = Futures::new(&segment);
        segment
    }

    /// How many actions may be planned.
    pub(super) fn len(&self) -> usize {
        self.useful.iter().map(|&useful| useful as usize).sum()
    }

    /// The state at the cut; cells are numbered as in [`Action`].
    pub(super) fn start(&self) -> &State {
        &self.start
    }

    /// What an event does.
    pub(super) fn step(&self, event: EventId) -> Step {
        self.domain.steps[event.index()]
    }

    /// Is the thread over after this event?
    pub(super) fn is_end(&self, event: EventId) -> bool {
        self.domain.is_end(event)
    }

    /// Has the thread no events at all?
    pub(super) fn is_empty_thread(&self, thread: u32) -> bool {
        self.domain.chains[thread as usize].is_empty()
    }

    /// Chain and place of an action.
    pub(super) fn place(&self, event: EventId) -> (u32, u32) {
        let (thread, _) = self.domain.places[event.index()];
        let chain = &self.chains[thread as usize];
        (thread, chain.partition_point(|action| action.event < event) as u32)
    }

    /// Chain and place of one of the goal's events, if it lies in the segment.
    pub(super) fn goal_place(&self, event: EventId) -> Option<(u32, u32)> {
        self.goal_places.get(&event).copied()
    }

    /// The paper's name of the action: `ac-THREAD-INDEX`, both from 1.
    pub(super) fn action_name(&self, event: EventId) -> String {
        let (thread, index) = self.domain.places[event.index()];
        format!("ac-{}-{}", thread + 1, index + 1)
    }

    /// How many arrivals at the barrier let the thread go on; `None` when that depends on the order
    /// in which threads come.
    pub(super) fn arrivals_needed(&self, thread: usize, place: usize, barrier: u32) -> Option<u32> {
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

    fn register(&mut self, (thread, place): (u32, u32), action: &Action) {
        let mut facts: Vec<Fact> =
            action.writes.iter().map(|&(cell, value)| Fact::Value(cell, value)).collect();
        match self.domain.steps[action.event.index()] {
            Step::Sync { object, op, .. } => facts.extend(match op {
                SyncOp::Acquire(_) => Some(Fact::Acquired(object)),
                SyncOp::Release(_) => Some(Fact::Released(object)),
                SyncOp::WaitEnd { mutex, .. } => Some(Fact::Acquired(mutex)),
                SyncOp::WaitBegin { mutex } => Some(Fact::Released(mutex)),
                SyncOp::Signal | SyncOp::Broadcast => Some(Fact::Signalled(object.0)),
                SyncOp::SemaphoreWait { .. } => Some(Fact::Taken(object.0)),
                SyncOp::SemaphorePost => Some(Fact::Posted(object.0)),
                SyncOp::BarrierArrive => Some(Fact::Arrived(object.0)),
                _ => None,
            }),
            Step::Fork(child) => {
                facts.push(Fact::Started(child));
                if self.is_empty_thread(child) {
                    facts.push(Fact::Ended(child));
                }
            }
            _ => {}
        }
        if self.domain.is_end(action.event) {
            facts.push(Fact::Ended(thread));
        }
        for fact in facts {
            let producers = self.producers.entry(fact).or_default();
            match producers.last_mut() {
                Some(last) if last.thread == thread => last.places.push(place),
                _ => producers.push(Producers { thread, places: vec![place] }),
            }
        }
    }

    /// What the action needs that the state does not have; empty when it can take place.
    fn missing(&self, state: &State, thread: u32, action: &Action, data_counts: bool) -> Vec<Fact> {
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
    fn cone(&self, goal: &CompiledGoal) -> Vec<u32> {
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
    fn estimate(&self, node: &Node, goal: &mut CompiledGoal) -> Option<Estimate> {
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
    fn limits(&self, node: &Node, goal: &CompiledGoal) -> Vec<u32> {
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

    fn is_enabled(&self, node: &Node, action: &Action) -> bool {
        let fits = |&(cell, value): &(u32, u64)| node.state.cells[cell as usize] == value;
        self.domain.enabled_but_for_data(&node.state, action.event) && action.reads.iter().all(fits)
    }

    /// Threads whose next actions are enough to try: a persistent set of which the goal notices
    /// nothing, or all that can go on.
    ///
    /// Of a plan, the first action that belongs to the set can come first, since it commutes with
    /// those before it; and if there is none, an action of the set can be put in front.
    fn persistent(&self, node: &Node, goal: &CompiledGoal) -> Vec<u32> {
        let limits = self.limits(node, goal);
        let next = |thread: u32| {
            let place = node.places[thread as usize];
            (place < limits[thread as usize]).then(|| &self.chains[thread as usize][place as usize])
        };
        let open: Vec<u32> =
            (0..self.chains.len() as u32).filter(|&thread| next(thread).is_some()).collect();
        if self.counts_steps {
            return open;
        }
        let mut best: Option<Vec<u32>> = None;
        for &first in &open {
            if !next(first).is_some_and(|action| self.is_enabled(node, action)) {
                continue;
            }
            let most = best.as_ref().map_or(open.len(), Vec::len);
            if let Some(set) = self.closure(first, node, &next, &open, most) {
                if set.len() == 1 {
                    return set;
                }
                best = Some(set);
            }
        }
        best.unwrap_or(open)
    }

    /// The smallest persistent set with this thread; `None` when it has `most` threads or the goal
    /// would notice an action of it.
    fn closure<'s>(
        &'s self,
        first: u32,
        node: &Node,
        next: &dyn Fn(u32) -> Option<&'s Action>,
        open: &[u32],
        most: usize,
    ) -> Option<Vec<u32>> {
        let mut set = vec![first];
        let mut at = 0;
        while let Some(&thread) = set.get(at) {
            at += 1;
            let Some(action) = next(thread) else { continue };
            let enabled = self.is_enabled(node, action);
            if enabled && action.visible {
                return None;
            }
            let needed: Vec<u32> = match enabled {
                true => open
                    .iter()
                    .copied()
                    .filter(|&other| other != thread && self.depends(node, action, other))
                    .collect(),
                false => self.enablers(node, thread, action),
            };
            for other in needed {
                if next(other).is_some() && !set.contains(&other) {
                    set.push(other);
                }
            }
            if set.len() >= most {
                return None;
            }
        }
        Some(set)
    }

    /// Can something that the other thread may still do not be swapped with the action?
    fn depends(&self, node: &Node, action: &Action, other: u32) -> bool {
        let from = node.places[other as usize];
        let futures = &self.futures;
        let later = |uses: &Uses, number: u32| uses.last(other, number) > from;
        action.reads.iter().any(|&(cell, _)| later(&futures.writes, cell))
            || action.writes.iter().any(|&(cell, _)| later(&futures.accesses, cell))
            || match self.step(action.event) {
                Step::Sync { object, op: SyncOp::Acquire(_), .. } => {
                    later(&futures.takes, object.0)
                }
                // Only who found the lock taken notices that it is given back earlier.
                Step::Sync { object, op: SyncOp::Release(_), .. } => {
                    futures.tried[object.index()] && later(&futures.objects, object.0)
                }
                Step::Sync { object, op, .. } => {
                    let mutex = op.mutex().is_some_and(|mutex| later(&futures.objects, mutex.0));
                    later(&futures.objects, object.0) || mutex
                }
                Step::Local
                | Step::Access { .. }
                | Step::Fork(_)
                | Step::Join(_)
                | Step::Begin
                | Step::End => false,
            }
    }

    /// Threads of which one has to go on before the action can take place.
    fn enablers(&self, node: &Node, thread: u32, action: &Action) -> Vec<u32> {
        let Some(&fact) = self.missing(&node.state, thread, action, true).first() else {
            return (0..self.chains.len() as u32).collect();
        };
        let producers = self.producers.get(&fact).into_iter().flatten();
        let later = |producers: &&Producers| {
            let last = producers.places.last().copied().unwrap_or(0);
            producers.thread != thread && last >= node.places[producers.thread as usize]
        };
        producers.filter(later).map(|producers| producers.thread).collect()
    }

    /// The nodes one action further, of the given threads.
    fn successors(
        &self,
        from: usize,
        node: &Node,
        threads: &[u32],
        goal: &mut CompiledGoal,
    ) -> Vec<Node> {
        let mut nodes = Vec::new();
        for &thread in threads {
            let place = node.places[thread as usize];
            let Some(action) = self.chains[thread as usize].get(place as usize) else { continue };
            if !self.domain.enabled_but_for_data(&node.state, action.event) {
                continue;
            }
            let mut places = node.places.clone();
            places[thread as usize] += 1;
            let next_in_thread = |event: EventId| match self.goal_places.get(&event) {
                Some(&(thread, place)) => places[thread as usize] == place,
                None => false,
            };
            let reached = goal.step(node.goal, action.event, &next_in_thread);
            if goal.is_hopeless(reached) {
                continue;
            }
            // The event that completes the pattern is the point of divergence: a read there may
            // see another value.
            let fits = goal.accepts(reached)
                || action
                    .reads
                    .iter()
                    .all(|&(cell, value)| node.state.cells[cell as usize] == value);
            if !fits {
                continue;
            }
            for woken in self.domain.choices(&node.state, action.event) {
                let mut state = node.state.clone();
                self.domain.apply_but_for_data(&mut state, action.event, woken);
                for &(cell, value) in &action.writes {
                    state.cells[cell as usize] = value;
                }
                nodes.push(Node {
                    state,
                    places: places.clone(),
                    goal: reached,
                    reached: Some((from, action.event)),
                });
            }
        }
        nodes
    }

    /// Do the actions, in this order, reach the goal with the last one?
    pub(super) fn is_plan(&self, actions: &[EventId], goal: &mut CompiledGoal) -> bool {
        let mut nodes = vec![self.root(goal)];
        for &event in actions {
            let (thread, _) = self.domain.places[event.index()];
            let successors = |node: &Node, goal: &mut CompiledGoal| {
                self.successors(0, node, &[thread], goal).into_iter()
            };
            // A signal has one successor for each waiter: follow them all.
            nodes = nodes.iter().flat_map(|node| successors(node, goal)).collect();
            nodes.retain(|node| node.reached.is_some_and(|(_, reached)| reached == event));
        }
        nodes.iter().any(|node| goal.accepts(node.goal))
    }

    fn root(&self, goal: &CompiledGoal) -> Node {
        Node {
            state: self.start.clone(),
            places: vec![0; self.chains.len()],
            goal: goal.initial(),
            reached: None,
        }
    }

    /// Looks for a plan; `budget` is in expanded nodes, or as much work, and goes down.
    pub(super) fn search(&self, goal: &mut CompiledGoal, budget: &mut u64) -> Found {
        let root = self.root(goal);
        let Some(estimate) = self.estimate(&root, goal) else { return Found::None };
        match self.climb(&root, estimate, goal, budget) {
            Some(plan) => Found::Plan(plan),
            None => self.best_first(root, goal, budget),
        }
    }

    /// Enforced hill climbing: breadth-first over helpful actions to the next better node.
    fn climb(
        &self,
        root: &Node,
        mut best: Estimate,
        goal: &mut CompiledGoal,
        budget: &mut u64,
    ) -> Option<Vec<EventId>> {
        /// A plateau wider than this is left to the complete search.
        const PLATEAU: usize = 200;
        let mut plan = Vec::new();
        let mut current = root.clone();
        loop {
            let mut nodes = vec![Node { reached: None, ..current }];
            let mut helpful = vec![best.helpful];
            let mut seen = FxHashSet::default();
            seen.insert(fingerprint(&nodes[0]));
            let mut queue = VecDeque::from([0]);
            let mut better = None;
            'plateau: while let Some(at) = queue.pop_front() {
                *budget = budget.checked_sub(1)?;
                if nodes.len() > PLATEAU {
                    return None;
                }
                let node = nodes[at].clone();
                for next in self.successors(at, &node, &helpful[at], goal) {
                    if goal.accepts(next.goal) {
                        nodes.push(next);
                        plan.extend(self.path(&nodes, nodes.len() - 1));
                        return Some(plan);
                    }
                    if !seen.insert(fingerprint(&next)) {
                        continue;
                    }
                    let Some(estimate) = self.estimate(&next, goal) else { continue };
                    *budget = budget.checked_sub(estimate.cost())?;
                    nodes.push(next);
                    if estimate.distance < best.distance {
                        better = Some((nodes.len() - 1, estimate));
                        break 'plateau;
                    }
                    helpful.push(estimate.helpful);
                    queue.push_back(nodes.len() - 1);
                }
            }
            let (at, estimate) = better?;
            plan.extend(self.path(&nodes, at));
            current = nodes.swap_remove(at);
            best = estimate;
        }
    }

    /// Greedy best-first search over persistent sets; complete.
    fn best_first(&self, root: Node, goal: &mut CompiledGoal, budget: &mut u64) -> Found {
        let mut seen = FxHashSet::default();
        seen.insert(fingerprint(&root));
        let mut queue = BinaryHeap::from([(Reverse(0), Reverse(0))]);
        let mut nodes = vec![root];
        while let Some((_, Reverse(first))) = queue.pop() {
            let mut at = first;
            loop {
                let Some(left) = budget.checked_sub(1) else { return Found::Budget };
                *budget = left;
                let node = Node { reached: None, ..nodes[at].clone() };
                nodes[at].state = State::default(); // only the way back is needed from now on
                let threads = self.persistent(&node, goal);
                let mut found = self.successors(at, &node, &threads, goal);
                if let Some(end) = found.iter().position(|next| goal.accepts(next.goal)) {
                    nodes.push(found.swap_remove(end));
                    return Found::Plan(self.path(&nodes, nodes.len() - 1));
                }
                found.retain(|next| seen.insert(fingerprint(next)));
                if found.len() == 1 {
                    // Nothing to choose, so nothing to estimate.
                    nodes.append(&mut found);
                    at = nodes.len() - 1;
                    continue;
                }
                for next in found {
                    if let Some(estimate) = self.estimate(&next, goal) {
                        *budget = budget.saturating_sub(estimate.cost());
                        nodes.push(next);
                        queue.push((Reverse(estimate.distance), Reverse(nodes.len() - 1)));
                    }
                }
                break;
            }
        }
        Found::None
    }

    fn path(&self, nodes: &[Node], mut at: usize) -> Vec<EventId> {
        let mut path = Vec::new();
        while let Some((before, event)) = nodes[at].reached {
            path.push(event);
            at = before;
        }
        path.reverse();
        path
    }
}

struct Relaxed {
    targets: Vec<u32>,
    facts: FxHashSet<Fact>,
}

/// For each thread and thing, one more than the last place in the thread that uses it; 0 for none.
#[derive(Default)]
struct Uses {
    width: usize,
    last: Vec<u32>,
}

impl Uses {
    fn new(threads: usize, width: usize) -> Self {
        Self { width, last: vec![0; threads * width] }
    }

    fn note(&mut self, thread: usize, number: u32, place: usize) {
        self.last[thread * self.width + number as usize] = place as u32 + 1;
    }

    fn last(&self, thread: u32, number: u32) -> u32 {
        self.last[thread as usize * self.width + number as usize]
    }
}

/// What threads may still do.
#[derive(Default)]
struct Futures {
    /// Writes of cells.
    writes: Uses,
    /// Reads and writes of cells.
    accesses: Uses,
    /// Acquires of locks, those that failed and those after waiting included.
    takes: Uses,
    /// Everything done with objects.
    objects: Uses,
    /// Somebody found the lock taken.
    tried: Vec<bool>,
}

impl Futures {
    fn new(segment: &Segment<'_>) -> Self {
        let threads = segment.chains.len();
        let cells = segment.start.cells.len();
        let objects = segment.start.objects.len();
        let mut futures = Futures {
            writes: Uses::new(threads, cells),
            accesses: Uses::new(threads, cells),
            takes: Uses::new(threads, objects),
            objects: Uses::new(threads, objects),
            tried: vec![false; objects],
        };
        for (thread, chain) in segment.chains.iter().enumerate() {
            let useful = &chain[..segment.useful[thread] as usize];
            for (place, action) in useful.iter().enumerate() {
                for &(cell, _) in &action.writes {
                    futures.writes.note(thread, cell, place);
                }
                for &(cell, _) in action.reads.iter().chain(&action.writes) {
                    futures.accesses.note(thread, cell, place);
                }
                match segment.step(action.event) {
                    Step::Sync { object, op, .. } => {
                        futures.objects.note(thread, object.0, place);
                        if let Some(mutex) = op.mutex() {
                            futures.objects.note(thread, mutex.0, place);
                        }
                        match op {
                            SyncOp::Acquire(_) => futures.takes.note(thread, object.0, place),
                            SyncOp::AcquireFailed(_) => {
                                futures.tried[object.index()] = true;
                                futures.takes.note(thread, object.0, place);
                            }
                            SyncOp::WaitEnd { mutex, .. } => {
                                futures.takes.note(thread, mutex.0, place);
                            }
                            _ => {}
                        }
                    }
                    Step::Local
                    | Step::Access { .. }
                    | Step::Fork(_)
                    | Step::Join(_)
                    | Step::Begin
                    | Step::End => {}
                }
            }
        }
        futures
    }
}

/// What a step that other threads can hold up waits for; the end of a wait needs two things.
fn waits_for(object: ObjectId, op: SyncOp) -> Option<Fact> {
    match op {
        SyncOp::Acquire(_) => Some(Fact::Released(object)),
        SyncOp::AcquireFailed(_) => Some(Fact::Acquired(object)),
        SyncOp::SemaphoreWait { .. } => Some(Fact::Posted(object.0)),
        SyncOp::SemaphoreWaitFailed => Some(Fact::Taken(object.0)),
        SyncOp::BarrierLeave => Some(Fact::Arrived(object.0)),
        _ => None,
    }
}

/// 128 bits that stand for a node in the seen-set. Locks and semaphores follow from the places of
/// the threads, so they are left out.
fn fingerprint(node: &Node) -> u128 {
    let mut hasher = WideHasher::default();
    (&node.places, &node.goal, &node.state.cells).hash(&mut hasher);
    for thread in &node.state.threads {
        hasher.write_u32(thread.arrived_in);
    }
    for object in &node.state.objects {
        if let ObjectState::Condition { .. } | ObjectState::Barrier { .. } = object {
            object.hash(&mut hasher);
        }
    }
    hasher.wide()
}

/// Which cells and objects more than one thread uses in a segment.
struct Shared {
    /// Shared cells in order of their new numbers.
    cells: Vec<u32>,
    numbers: FxHashMap<u32, u32>,
    objects: Vec<bool>,
}

impl Shared {
    fn new(domain: &Domain, start: &State, events: &[Vec<EventId>]) -> Self {
        #[derive(Clone, Copy)]
        struct Use {
            thread: u32,
            several: bool,
            written: bool,
        }
        let mut uses: FxHashMap<u32, Use> = FxHashMap::default();
        let mut users: Vec<Option<u32>> = vec![None; start.objects.len()];
        let mut objects = vec![false; start.objects.len()];
        for (index, object) in start.objects.iter().enumerate() {
            match *object {
                ObjectState::Lock { holder, readers, .. } => {
                    users[index] = holder.checked_sub(1);
                    objects[index] = readers > 0;
                }
                _ => objects[index] = true,
            }
        }
        for (thread, events) in events.iter().enumerate() {
            let thread = thread as u32;
            for &event in events {
                let accesses = domain.reads(event).iter().map(|&(cell, _)| (cell, false));
                let writes = domain.writes(event).iter().map(|&(cell, _)| (cell, true));
                for (cell, write) in accesses.chain(writes) {
                    let entry =
                        uses.entry(cell).or_insert(Use { thread, several: false, written: false });
                    entry.several |= entry.thread != thread;
                    entry.written |= write;
                }
                if let Step::Sync { object, op, .. } = domain.steps[event.index()] {
                    match op.mutex() {
                        // Waiting changes the mutex together with the condition.
                        Some(mutex) => objects[mutex.index()] = true,
                        None if op.kind().class() == Class::Lock => {
                            let user = users[object.index()].get_or_insert(thread);
                            objects[object.index()] |= *user != thread;
                        }
                        None => {}
                    }
                }
            }
        }
        let shared = uses.into_iter().filter(|(_, usage)| usage.several && usage.written);
        let mut cells: Vec<u32> = shared.map(|(cell, _)| cell).collect();
        cells.sort_unstable();
        let numbers = cells.iter().zip(0..).map(|(&cell, number)| (cell, number)).collect();
        Self { cells, numbers, objects }
    }

    /// Could another thread notice the event, or keep it from happening?
    fn matters(&self, domain: &Domain, event: EventId) -> bool {
        match domain.steps[event.index()] {
            _ if domain.is_end(event) => true,
            Step::Local | Step::Begin => false,
            Step::Access { .. } => domain
                .reads(event)
                .iter()
                .chain(domain.writes(event))
                .any(|(cell, _)| self.numbers.contains_key(cell)),
            Step::Sync { object, op, .. } if op.kind().class() == Class::Lock => {
                self.objects[object.index()]
            }
            _ => true,
        }
    }
}
