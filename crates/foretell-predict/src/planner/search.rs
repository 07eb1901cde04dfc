//! The embedded planner: forward search over compact states with a relaxed-plan heuristic, after
//! FF (Hoffmann 2001): enforced hill climbing over helpful actions first, then best-first search
//! over all actions with a seen-set, which is complete for the segment.
//!
//! Threads are chains, so a relaxed plan (one in which no fact is ever lost) is one target place
//! for each thread. It is computed from the goal backwards and touches only what the goal needs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use foretell_trace::{EventId, ObjectId};

use super::compiled_goal::{CompiledGoal, Demand};
use super::goal::GoalState;
use super::machine::{Domain, ObjectState, State, Step};

/// A part of a run to be planned: the state at the cut and the events that may follow.
pub(super) struct Segment<'a> {
    domain: &'a Domain,
    start: State,
    /// The actions of each thread, in order. Events between them matter to no other thread and go
    /// along with the next action.
    pub(super) chains: Vec<Vec<Action>>,
    /// Where each goal event stands in its chain.
    goal_places: HashMap<EventId, (u32, u32)>,
    producers: HashMap<Fact, Vec<Producers>>,
    /// No plan needs a thread to go further than this.
    useful: Vec<u32>,
}

/// An event with its accesses of shared cells, which are numbered anew.
pub(super) struct Action {
    pub event: EventId,
    pub reads: Vec<(u32, u64)>,
    pub writes: Vec<(u32, u64)>,
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
            goal_places: HashMap::new(),
            producers: HashMap::new(),
            useful: Vec::new(),
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
                    writes: renumber(domain.writes(event)),
                };
                segment.register(place, &action);
                chain.push(action);
            }
            segment.chains.push(chain);
        }
        segment.useful = segment.cone();
        segment
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

    /// How often the thread holds the lock before its action at `place`.
    pub(super) fn depth_before(&self, thread: usize, place: usize, lock: ObjectId) -> u32 {
        let mut depth = match self.start.objects[lock.index()] {
            ObjectState::Lock { holder, count, .. } if holder == thread as u32 + 1 => count,
            _ => 0,
        };
        for action in &self.chains[thread][..place] {
            match self.step(action.event) {
                Step::Acquire(step) if step.lock == lock => depth += 1,
                Step::Release(step) if step.lock == lock => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        depth
    }

    /// How many arrivals at the barrier let the thread go on; `None` when that depends on the order
    /// in which threads come.
    pub(super) fn arrivals_needed(&self, thread: usize, place: usize, barrier: u32) -> Option<u32> {
        let arrivals = |chain: &[Action]| {
            let arrives =
                |action: &&Action| self.step(action.event) == Step::BarrierArrive(barrier);
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
            Step::Acquire(step) => facts.push(Fact::Acquired(step.lock)),
            Step::Release(step) => facts.push(Fact::Released(step.lock)),
            Step::WaitEnd { mutex, .. } => facts.push(Fact::Acquired(ObjectId(mutex))),
            Step::WaitBegin { mutex, .. } => facts.push(Fact::Released(ObjectId(mutex))),
            Step::Signal(condition) | Step::Broadcast(condition) => {
                facts.push(Fact::Signalled(condition));
            }
            Step::SemaphoreWait(semaphore) => facts.push(Fact::Taken(semaphore)),
            Step::SemaphorePost(semaphore) => facts.push(Fact::Posted(semaphore)),
            Step::BarrierArrive(barrier) => facts.push(Fact::Arrived(barrier)),
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
            Step::Acquire(step) => missing.push(Fact::Released(step.lock)),
            Step::AcquireFailed(step) => missing.push(Fact::Acquired(step.lock)),
            Step::SemaphoreWaitFailed(semaphore) => missing.push(Fact::Taken(semaphore)),
            Step::WaitEnd { condition, mutex, timed_out } => {
                let ObjectState::Condition { woken, .. } = state.objects[condition as usize] else {
                    return missing;
                };
                if !timed_out && woken >> thread & 1 == 0 {
                    missing.push(Fact::Signalled(condition));
                }
                if !matches!(state.objects[mutex as usize], ObjectState::Lock { holder: 0, .. }) {
                    missing.push(Fact::Released(ObjectId(mutex)));
                }
            }
            Step::SemaphoreWait(semaphore) => missing.push(Fact::Posted(semaphore)),
            Step::BarrierLeave(barrier) => missing.push(Fact::Arrived(barrier)),
            Step::Join(child) => missing.push(Fact::Ended(child)),
            _ => {}
        }
        missing
    }

    /// How far each thread may have to go for any plan: the closure over *all* producers.
    fn cone(&self) -> Vec<u32> {
        let mut useful = vec![0; self.chains.len()];
        let mut work: Vec<(u32, u32)> =
            self.goal_places.values().map(|&(thread, place)| (thread, place + 1)).collect();
        let mut seen = HashSet::new();
        while let Some((thread, target)) = work.pop() {
            let from = useful[thread as usize];
            for place in from..target {
                let action = &self.chains[thread as usize][place as usize];
                for fact in self.needs(thread, action) {
                    if seen.insert(fact) {
                        let producers = self.producers.get(&fact).into_iter().flatten();
                        work.extend(producers.filter_map(|producers| {
                            Some((producers.thread, producers.places.last()? + 1))
                        }));
                    }
                }
            }
            useful[thread as usize] = from.max(target);
        }
        useful
    }

    /// All that an action may need, in any state.
    fn needs(&self, thread: u32, action: &Action) -> Vec<Fact> {
        let mut needs = vec![Fact::Started(thread)];
        needs.extend(action.reads.iter().map(|&(cell, value)| Fact::Value(cell, value)));
        match self.domain.steps[action.event.index()] {
            Step::Acquire(step) => needs.push(Fact::Released(step.lock)),
            Step::AcquireFailed(step) => needs.push(Fact::Acquired(step.lock)),
            Step::SemaphoreWait(semaphore) => needs.push(Fact::Posted(semaphore)),
            Step::SemaphoreWaitFailed(semaphore) => needs.push(Fact::Taken(semaphore)),
            Step::WaitEnd { condition, mutex, .. } => {
                needs.extend([Fact::Signalled(condition), Fact::Released(ObjectId(mutex))]);
            }
            Step::BarrierLeave(barrier) => needs.push(Fact::Arrived(barrier)),
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
        let mut relaxed = Relaxed { targets: node.places.clone(), facts: HashSet::new() };
        let mut work = Vec::new();
        for demand in &demands {
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
    fn limits(&self, node: &Node, goal: &mut CompiledGoal) -> Vec<u32> {
        let mut limits: Vec<u32> = self.chains.iter().map(|chain| chain.len() as u32).collect();
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

    /// Looks for a plan; `budget` is in expanded nodes and goes down.
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
        const PLATEAU: usize = 2_000;
        let mut plan = Vec::new();
        let mut current = root.clone();
        loop {
            let mut nodes = vec![Node { reached: None, ..current }];
            let mut helpful = vec![best.helpful];
            let mut seen = HashSet::from([fingerprint(&nodes[0])]);
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

    /// Greedy best-first search over all actions; complete.
    fn best_first(&self, root: Node, goal: &mut CompiledGoal, budget: &mut u64) -> Found {
        let mut seen = HashSet::from([fingerprint(&root)]);
        let mut queue = BinaryHeap::from([(Reverse(0), Reverse(0))]);
        let mut nodes = vec![root];
        while let Some((_, Reverse(at))) = queue.pop() {
            let Some(left) = budget.checked_sub(1) else { return Found::Budget };
            *budget = left;
            let node = nodes[at].clone();
            let threads: Vec<u32> = (0..self.chains.len() as u32)
                .filter(|&thread| node.places[thread as usize] < self.useful[thread as usize])
                .collect();
            for next in self.successors(at, &node, &threads, goal) {
                if goal.accepts(next.goal) {
                    nodes.push(next);
                    return Found::Plan(self.path(&nodes, nodes.len() - 1));
                }
                if !seen.insert(fingerprint(&next)) {
                    continue;
                }
                if let Some(estimate) = self.estimate(&next, goal) {
                    nodes.push(next);
                    queue.push((Reverse(estimate.distance), Reverse(nodes.len() - 1)));
                }
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
    facts: HashSet<Fact>,
}

/// 128 bits that stand for a node in the seen-set.
fn fingerprint(node: &Node) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, &node.places, &node.goal, &node.state).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

/// Which cells and objects more than one thread uses in a segment.
struct Shared {
    /// Shared cells in order of their new numbers.
    cells: Vec<u32>,
    numbers: HashMap<u32, u32>,
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
        let mut uses: HashMap<u32, Use> = HashMap::new();
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
                match domain.steps[event.index()] {
                    Step::Acquire(step) | Step::AcquireFailed(step) | Step::Release(step) => {
                        let user = users[step.lock.index()].get_or_insert(thread);
                        objects[step.lock.index()] |= *user != thread;
                    }
                    // Waiting changes the mutex together with the condition.
                    Step::WaitBegin { mutex, .. } | Step::WaitEnd { mutex, .. } => {
                        objects[mutex as usize] = true;
                    }
                    _ => {}
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
            Step::Acquire(step) | Step::AcquireFailed(step) | Step::Release(step) => {
                self.objects[step.lock.index()]
            }
            _ => true,
        }
    }
}
