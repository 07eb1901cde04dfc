//! The embedded planner: forward search over compact states with a relaxed-plan heuristic, after
//! FF (Hoffmann 2001): enforced hill climbing over helpful actions first, then best-first search
//! over all actions with a seen-set, which is complete for the segment.
//!
//! The complete search leaves out actions by persistent sets (Godefroid 1996): where some threads'
//! next actions commute with all that the other threads can still do, only they are tried.
//!
//! Threads are chains, so a relaxed plan (one in which no fact is ever lost) is one target place
//! for each thread. It is computed from the goal backwards and touches only what the goal needs.

mod persistent;
mod relaxed;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::{Hash, Hasher};

use foretell_trace::{EventId, ObjectId, SyncOp};
use rustc_hash::{FxHashMap, FxHashSet};

use super::compiled_goal::CompiledGoal;
use super::goal::GoalState;
use super::machine::{Domain, ObjectState, State, Step};
use super::wide_hash::WideHasher;
use persistent::{Futures, Shared};
use relaxed::Estimate;

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

    fn is_enabled(&self, node: &Node, action: &Action) -> bool {
        let fits = |&(cell, value): &(u32, u64)| node.state.cells[cell as usize] == value;
        self.domain.enabled_but_for_data(&node.state, action.event) && action.reads.iter().all(fits)
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
