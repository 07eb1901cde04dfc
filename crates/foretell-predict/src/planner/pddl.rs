//! The planning problem in standard PDDL, for any planner: grounded STRIPS with negative
//! preconditions, no parameters, no equality (003 section 4.3).
//!
//! | fact | means |
//! |---|---|
//! | `at-T-K` | thread T has done K of its actions |
//! | `is-C-V` | cell C has its value number V (the paper's `x_init`, `x_{i,m}`) |
//! | `free-L`, `readers-L-N` | nobody holds lock L exclusively; N hold it shared |
//! | `count-S-N` | semaphore S stands at N |
//! | `asleep-C-T`, `woken-C-T` | thread T waits on condition C; has been woken |
//! | `arrived-B-N` | N arrivals at barrier B |
//! | `started-T`, `ended-T` | thread T exists; is over |
//! | `goal-Q` | the goal's automaton is in state Q |
//! | `reached` | the goal |
//!
//! The action of event K of thread T is `ac-T-K` (both from 1, as the paper counts); where an event
//! can come about in several ways, `ac-T-K--1`, `ac-T-K--2`, ... Threads that meet at a barrier
//! must be as many as its parties, and a broadcast can have at most four waiters; anything else is
//! refused.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use crate::limits::MOST_WOKEN;

use foretell_trace::{EventId, LockMode, ObjectId, SyncOp};

use super::compiled_goal::CompiledGoal;
use super::machine::{ObjectState, Step};
use super::search::{Action, Segment};

/// A planning problem as two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pddl {
    /// The domain file.
    pub domain: String,
    /// The problem file.
    pub problem: String,
    events: HashMap<String, EventId>,
}

/// Something that PDDL of this kind cannot say, or a plan that does not belong to the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PddlError(pub String);

impl std::fmt::Display for PddlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PddlError {}

/// A grounded action.
#[derive(Clone, Debug, Default)]
struct Operator {
    needs: Vec<String>,
    needs_not: Vec<String>,
    makes: Vec<String>,
    ends: Vec<String>,
}

impl Operator {
    /// The only way.
    fn one(needs: &[String], makes: &[String], ends: &[String]) -> Vec<Self> {
        vec![Self {
            needs: needs.to_vec(),
            makes: makes.to_vec(),
            ends: ends.to_vec(),
            needs_not: Vec::new(),
        }]
    }

    fn moves(mut self, from: String, to: String) -> Self {
        if from != to {
            self.makes.push(to);
            self.ends.push(from.clone());
        }
        self.needs.push(from);
        self
    }
}

impl Pddl {
    pub(super) fn new(segment: &Segment<'_>, goal: &mut CompiledGoal) -> Result<Self, PddlError> {
        let writer = Writer::new(segment);
        let mut actions: Vec<(String, Operator)> = Vec::new();
        let mut events = HashMap::new();
        for action in segment.chains.iter().flatten() {
            let (thread, place) = segment.place(action.event);
            let (thread, place) = (thread as usize, place as usize);
            let mut variants = Vec::new();
            for (data_counts, goal_part) in writer.goal_parts(goal, action) {
                for mut operator in writer.synchronisation(thread, place, action)? {
                    operator = operator.moves(at(thread, place), at(thread, place + 1));
                    operator.needs.push(format!("started-{}", thread + 1));
                    writer.data(&mut operator, action, data_counts);
                    if segment.is_end(action.event) {
                        operator.makes.push(format!("ended-{}", thread + 1));
                    }
                    operator.needs.extend(goal_part.needs.iter().cloned());
                    operator.needs_not.extend(goal_part.needs_not.iter().cloned());
                    operator.makes.extend(goal_part.makes.iter().cloned());
                    operator.ends.extend(goal_part.ends.iter().cloned());
                    variants.push(operator);
                }
            }
            let name = segment.action_name(action.event);
            let several = variants.len() > 1;
            for (number, operator) in variants.into_iter().enumerate() {
                let name = if several { format!("{name}--{}", number + 1) } else { name.clone() };
                events.insert(name.clone(), action.event);
                actions.push((name, operator));
            }
        }
        let initial = writer.initial();
        Ok(Self {
            domain: domain_text(&actions, &initial),
            problem: problem_text(&initial),
            events,
        })
    }

    /// The events of a plan as planners write it: one action a line, in parentheses or not;
    /// comments begin with `;`.
    pub fn parse_plan(&self, text: &str) -> Result<Vec<EventId>, PddlError> {
        let mut events = Vec::new();
        for line in text.lines() {
            let line = line.split(';').next().unwrap_or_default().trim();
            let name = line.trim_matches(['(', ')']).trim().to_lowercase();
            if name.is_empty() {
                continue;
            }
            match self.events.get(&name) {
                Some(event) => events.push(*event),
                None => {
                    return Err(PddlError(format!(
                        "the plan has an action `{name}` that the problem does not have"
                    )));
                }
            }
        }
        Ok(events)
    }
}

fn at(thread: usize, place: usize) -> String {
    format!("at-{}-{place}", thread + 1)
}

struct Writer<'a> {
    segment: &'a Segment<'a>,
    /// The values that each cell can have.
    values: Vec<Vec<u64>>,
    threads: usize,
    /// Highest count of each semaphore, highest number of arrivals at each barrier.
    highest: HashMap<u32, u32>,
}

impl<'a> Writer<'a> {
    fn new(segment: &'a Segment<'a>) -> Self {
        let start = segment.start();
        let mut values: Vec<Vec<u64>> = start.cells.iter().map(|&value| vec![value]).collect();
        let mut highest: HashMap<u32, u32> = HashMap::new();
        for (object, state) in start.objects.iter().enumerate() {
            if let ObjectState::Semaphore(count) = state {
                highest.insert(object as u32, *count);
            }
        }
        for action in segment.chains.iter().flatten() {
            for &(cell, value) in action.reads.iter().chain(&action.writes) {
                if !values[cell as usize].contains(&value) {
                    values[cell as usize].push(value);
                }
            }
            if let Step::Sync { object, op, .. } = segment.step(action.event)
                && matches!(op, SyncOp::SemaphorePost | SyncOp::BarrierArrive)
            {
                *highest.entry(object.0).or_default() += 1;
            }
        }
        Self { segment, values, threads: segment.chains.len(), highest }
    }

    fn is(&self, cell: u32, value: u64) -> String {
        let known = &self.values[cell as usize];
        let number = known.iter().position(|&other| other == value).expect("collected above");
        format!("is-{cell}-{number}")
    }

    fn data(&self, operator: &mut Operator, action: &Action, data_counts: bool) {
        if data_counts {
            let reads = action.reads.iter().map(|&(cell, value)| self.is(cell, value));
            operator.needs.extend(reads);
        }
        for &(cell, value) in &action.writes {
            operator.makes.push(self.is(cell, value));
            let others = self.values[cell as usize].iter().filter(|&&other| other != value);
            operator.ends.extend(others.map(|&other| self.is(cell, other)));
        }
    }

    /// The ways in which the synchronisation of an event can come about.
    fn synchronisation(
        &self,
        thread: usize,
        place: usize,
        action: &Action,
    ) -> Result<Vec<Operator>, PddlError> {
        let one = Operator::one;
        Ok(match self.segment.step(action.event) {
            Step::Sync { object, op, inner, timed_out } => {
                self.synchronised(thread, place, action, object, op, inner, timed_out)?
            }
            Step::Fork(child) => {
                let mut makes = vec![format!("started-{}", child + 1)];
                if self.segment.is_empty_thread(child) {
                    makes.push(format!("ended-{}", child + 1));
                }
                one(&[], &makes, &[])
            }
            Step::Join(child) => one(&[format!("ended-{}", child + 1)], &[], &[]),
            Step::Local | Step::Access { .. } | Step::Begin | Step::End => one(&[], &[], &[]),
        })
    }

    /// The ways in which a step on an object can come about.
    #[allow(clippy::too_many_arguments)] // the parts of a step
    fn synchronised(
        &self,
        thread: usize,
        place: usize,
        action: &Action,
        object: ObjectId,
        op: SyncOp,
        inner: bool,
        timed_out: bool,
    ) -> Result<Vec<Operator>, PddlError> {
        let object = object.0;
        let one = Operator::one;
        let free = |lock: u32| format!("free-{lock}");
        let readers = |lock: u32, count: usize| format!("readers-{lock}-{count}");
        let count = |semaphore: u32, count: u32| format!("count-{semaphore}-{count}");
        let asleep = |condition: u32, thread: usize| format!("asleep-{condition}-{}", thread + 1);
        let woken = |condition: u32, thread: usize| format!("woken-{condition}-{}", thread + 1);
        let highest = |object: u32| self.highest.get(&object).copied().unwrap_or(0);
        Ok(match op {
            SyncOp::Acquire(_) | SyncOp::Release(_) if inner => one(&[], &[], &[]),
            SyncOp::Acquire(step) if step.mode == LockMode::Shared => (0..self.threads)
                .map(|count| {
                    let from = readers(object, count);
                    let operator = Operator { needs: vec![free(object)], ..Operator::default() };
                    operator.moves(from, readers(object, count + 1))
                })
                .collect(),
            SyncOp::Release(step) if step.mode == LockMode::Shared => (1..=self.threads)
                .map(|count| {
                    let from = readers(object, count);
                    Operator::default().moves(from, readers(object, count - 1))
                })
                .collect(),
            SyncOp::Acquire(_) => one(&[free(object), readers(object, 0)], &[], &[free(object)]),
            SyncOp::Release(_) => one(&[], &[free(object)], &[]),
            SyncOp::AcquireFailed(step) => {
                let mut ways =
                    vec![Operator { needs_not: vec![free(object)], ..Operator::default() }];
                if step.mode == LockMode::Exclusive {
                    ways.push(Operator {
                        needs: vec![free(object)],
                        needs_not: vec![readers(object, 0)],
                        ..Operator::default()
                    });
                }
                ways
            }
            SyncOp::WaitBegin { mutex } => {
                // A wait that ends by its time limit is not in the queue.
                let sleeps = (!timed_out).then(|| asleep(object, thread));
                let makes: Vec<String> = [free(mutex.0)].into_iter().chain(sleeps).collect();
                one(&[], &makes, &[])
            }
            SyncOp::WaitEnd { mutex, timed_out, .. } => {
                let mut needs = vec![free(mutex.0)];
                if !timed_out {
                    needs.push(woken(object, thread));
                }
                let ends = [free(mutex.0), asleep(object, thread), woken(object, thread)];
                one(&needs, &[], &ends)
            }
            SyncOp::Signal => {
                let waiters = self.waiters(object);
                let wake = |&thread: &usize| {
                    Operator::default().moves(asleep(object, thread), woken(object, thread))
                };
                let nobody = Operator {
                    needs_not: waiters.iter().map(|&thread| asleep(object, thread)).collect(),
                    ..Operator::default()
                };
                waiters.iter().map(wake).chain([nobody]).collect()
            }
            SyncOp::Broadcast => {
                let waiters = self.waiters(object);
                if waiters.len() > MOST_WOKEN {
                    return Err(PddlError(format!(
                        "event {}: a broadcast to more than {MOST_WOKEN} threads cannot be \
                         written in PDDL without conditional effects",
                        action.event.0
                    )));
                }
                // One way for each set of threads that are asleep.
                (0..1u32 << waiters.len())
                    .map(|set| {
                        let mut way = Operator::default();
                        for (bit, &thread) in waiters.iter().enumerate() {
                            match set >> bit & 1 {
                                0 => way.needs_not.push(asleep(object, thread)),
                                _ => {
                                    way = way.moves(asleep(object, thread), woken(object, thread));
                                }
                            }
                        }
                        way
                    })
                    .collect()
            }
            SyncOp::SemaphoreWait { .. } => (1..=highest(object))
                .map(|n| Operator::default().moves(count(object, n), count(object, n - 1)))
                .collect(),
            SyncOp::SemaphoreWaitFailed => one(&[count(object, 0)], &[], &[]),
            SyncOp::SemaphorePost => (0..highest(object))
                .map(|n| Operator::default().moves(count(object, n), count(object, n + 1)))
                .collect(),
            SyncOp::BarrierArrive => {
                let arrived = |n: u32| format!("arrived-{object}-{n}");
                (0..highest(object))
                    .map(|n| {
                        // Counting facts stay: whoever waits for N arrivals is content with more.
                        let mut operator = Operator {
                            needs: vec![arrived(n)],
                            needs_not: vec![arrived(n + 1)],
                            ..Operator::default()
                        };
                        operator.makes.push(arrived(n + 1));
                        operator
                    })
                    .collect()
            }
            SyncOp::BarrierLeave => {
                let needed = self.segment.arrivals_needed(thread, place, object).ok_or_else(|| {
                    PddlError(format!(
                        "event {}: a barrier in use at the cut, or shared by more threads than its \
                         parties, cannot be written in PDDL",
                        action.event.0
                    ))
                })?;
                one(&[format!("arrived-{object}-{needed}")], &[], &[])
            }
            SyncOp::ReleaseFailed(_) | SyncOp::Destroy => one(&[], &[], &[]),
            SyncOp::Send { .. } | SyncOp::Receive { .. } | SyncOp::Poll { .. } => {
                unreachable!("the domain refuses channels")
            }
        })
    }

    /// The threads that may wait on the condition.
    fn waiters(&self, condition: u32) -> Vec<usize> {
        let waits = |action: &Action| match self.segment.step(action.event) {
            Step::Sync { object, op, .. } => op.mutex().is_some() && object.0 == condition,
            _ => false,
        };
        (0..self.threads).filter(|&thread| self.segment.chains[thread].iter().any(waits)).collect()
    }

    /// What the goal's automaton makes of an event: the ways, and whether reads must fit in each.
    fn goal_parts(&self, goal: &mut CompiledGoal, action: &Action) -> Vec<(bool, Operator)> {
        let (thread, place) = self.segment.place(action.event);
        let state_fact = |number: usize| format!("goal-{number}");
        let next: Vec<(EventId, (u32, u32))> = goal
            .next_events()
            .filter_map(|event| Some((event, self.segment.goal_place(event)?)))
            .collect();
        // `next(e)` of this thread is known here; of another thread it is a fact.
        let foreign: Vec<(EventId, (u32, u32))> =
            next.iter().copied().filter(|(_, (other, _))| *other != thread).collect();
        let mut ways = Vec::new();
        let states = goal.states();
        for set in 0..1u32 << foreign.len() {
            let holds = |event: EventId| match foreign.iter().position(|(other, _)| *other == event)
            {
                Some(bit) => set >> bit & 1 != 0,
                None => next.iter().any(|&(other, (_, at))| other == event && at == place + 1),
            };
            let mut condition = Operator::default();
            for (bit, &(_, (other, at_place))) in foreign.iter().enumerate() {
                let fact = at(other as usize, at_place as usize);
                match set >> bit & 1 {
                    0 => condition.needs_not.push(fact),
                    _ => condition.needs.push(fact),
                }
            }
            let steps: Vec<_> =
                states.iter().map(|&from| (from, goal.step(from, action.event, &holds))).collect();
            if steps.iter().all(|(from, to)| from == to) {
                ways.push((true, condition));
                continue;
            }
            for (number, (_, to)) in steps.iter().enumerate() {
                let mut way = condition.clone();
                if goal.accepts(*to) {
                    way.needs.push(state_fact(number));
                    way.makes.push("reached".into());
                    ways.push((false, way));
                } else if let Some(target) = states.iter().position(|state| state == to) {
                    ways.push((true, way.moves(state_fact(number), state_fact(target))));
                }
            }
        }
        ways
    }

    fn initial(&self) -> BTreeSet<String> {
        let start = self.segment.start();
        let mut facts = BTreeSet::from(["goal-0".to_owned()]);
        for thread in 0..self.threads {
            facts.insert(at(thread, 0));
            let state = start.threads[thread];
            for (holds, name) in [(state.started, "started"), (state.ended, "ended")] {
                if holds {
                    facts.insert(format!("{name}-{}", thread + 1));
                }
            }
        }
        for (cell, &value) in start.cells.iter().enumerate() {
            facts.insert(self.is(cell as u32, value));
        }
        for (object, state) in start.objects.iter().enumerate() {
            match *state {
                ObjectState::Lock { holder, readers, .. } => {
                    if holder == 0 {
                        facts.insert(format!("free-{object}"));
                    }
                    facts.insert(format!("readers-{object}-{}", readers.count_ones()));
                }
                ObjectState::Semaphore(count) => {
                    facts.insert(format!("count-{object}-{count}"));
                }
                ObjectState::Condition { waiting, woken } => {
                    let there = waiting | woken;
                    for thread in (0..self.threads).filter(|thread| there >> thread & 1 != 0) {
                        let name = if woken >> thread & 1 != 0 { "woken" } else { "asleep" };
                        facts.insert(format!("{name}-{object}-{}", thread + 1));
                    }
                }
                ObjectState::Barrier { .. } => {
                    facts.insert(format!("arrived-{object}-0"));
                }
            }
        }
        facts
    }
}

fn domain_text(actions: &[(String, Operator)], initial: &BTreeSet<String>) -> String {
    let mut facts = initial.clone();
    facts.insert("reached".into());
    for (_, operator) in actions {
        let Operator { needs, needs_not, makes, ends } = operator;
        facts.extend([needs, needs_not, makes, ends].into_iter().flatten().cloned());
    }
    let mut text = String::from(
        "(define (domain run)\n  (:requirements :strips :negative-preconditions)\n  (:predicates\n",
    );
    for fact in &facts {
        let _ = writeln!(text, "    ({fact})");
    }
    text.push_str("  )\n");
    let positive =
        |facts: &[String]| facts.iter().map(|fact| format!(" ({fact})")).collect::<String>();
    let negative =
        |facts: &[String]| facts.iter().map(|fact| format!(" (not ({fact}))")).collect::<String>();
    for (name, operator) in actions {
        let _ = writeln!(text, "  (:action {name}\n    :parameters ()");
        let (needs, not) = (positive(&operator.needs), negative(&operator.needs_not));
        let _ = writeln!(text, "    :precondition (and{needs}{not})");
        let (makes, ends) = (positive(&operator.makes), negative(&operator.ends));
        let _ = writeln!(text, "    :effect (and{makes}{ends}))");
    }
    text.push_str(")\n");
    text
}

fn problem_text(initial: &BTreeSet<String>) -> String {
    let mut text = String::from("(define (problem violate)\n  (:domain run)\n  (:init\n");
    for fact in initial {
        let _ = writeln!(text, "    ({fact})");
    }
    text.push_str("  )\n  (:goal (and (reached)))\n)\n");
    text
}
