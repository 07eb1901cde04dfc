//! Deadlocks and lost wake-ups, as prefixes after which threads wait for ever.
//!
//! *Lock cycles*: each of some threads has come to an acquire of a lock that the next one holds.
//! Candidates are cycles of (held locks, wanted lock) with nothing held in common; a common lock is
//! a gate and makes a cycle impossible. Whatever the other threads do, these wait for ever.
//!
//! *Nobody can go on*: every thread has ended or waits, at a lock, semaphore, condition, barrier,
//! join or its own start. A thread that sleeps on a condition then sleeps for ever: a lost wake-up.
//! So does one that goes round in a loop that waits, if a round with fresh reads would go round again.
//! Only this strong form is reported, because another thread that could still run might leave its
//! recorded path and wake the sleeper.
//!
//! The file is long because both forms ask the same of the run: who holds what, who waits, who still comes.

use std::collections::{HashMap, HashSet};

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_model::lockset::{Locksets, StateId};
use foretell_model::must_order::MustOrder;
use foretell_trace::{
    AwaitMark, EventId, LockMode, LockStep, ObjectId, ObjectKind, Op, Scope, SyncOp, ThreadId,
    Trace,
};

use crate::access::{Accesses, Location};
use crate::apart::during;
use crate::finding::{AccessInfo, Words};
use crate::goal::{Goal, GoalBuilder, Moment};
use crate::limits::{LONGEST_CYCLE, MOST_CYCLE_INSTANCES, MOST_CYCLES, MOST_WISHES};
use crate::planner::goal::{Formula, Unary};
use crate::property::{FindingKind, Planned, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::sample::by_location;
use crate::violation::Violation;

/// How threads wait for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeadlockShape {
    /// Every thread waits for a lock that the next one holds. Events: the acquires.
    LockCycle,
    /// Nobody can go on, and at least one thread waits at one of the events.
    Stuck,
}

/// The property.
#[derive(Debug)]
pub struct Deadlock;

impl Property for Deadlock {
    type Shape = DeadlockShape;

    const TEXT: Text = Text {
        name: "deadlock",
        headline: "deadlock",
        rule: "Deadlock",
        description: "Threads can wait for each other, or for nobody.",
    };
    const RANK: u8 = 2;
    const PLANNED: Planned = Planned::Only("cycles of locks");

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        let limit = search.instances.min(MOST_CYCLE_INSTANCES);
        let cycles = lock_cycles(search.trace, search.order, search.locks, limit);
        let unseen = &mut search.prediction.unseen;
        if cycles.incomplete {
            unseen.push("not all cycles of locks were looked at".into());
        }
        let mut questions = cycles.questions;
        match search.trace.metadata.gaps.is_empty() {
            true => questions.extend(stuck_questions(search.trace, search.order)),
            false => unseen.push(
                "waits for ever (conditions, semaphores, barriers) are not looked for because the trace has gaps"
                    .into(),
            ),
        }
        questions
    }

    fn goal(subject: &Subject<'_>, _: DeadlockShape, events: &[EventId]) -> Option<Goal> {
        Some(cycle_goal(subject.ctp, events))
    }

    fn goal_at_end(subject: &Subject<'_>, instance: &Instance) -> Option<Goal> {
        stuck_goal(subject, instance)
    }

    fn is_about_end(shape: DeadlockShape) -> bool {
        shape == DeadlockShape::Stuck
    }

    fn plan(shape: DeadlockShape, events: usize) -> Option<Formula> {
        match (shape, events) {
            (DeadlockShape::LockCycle, 2..=4) => {
                let next = |number: usize| Formula::Next(number.to_string());
                let all = Formula::And((0..events).map(next).collect());
                Some(Formula::Unary(Unary::Finally, Box::new(all)))
            }
            _ => None,
        }
    }

    fn describe(
        words: &Words<'_>,
        shape: DeadlockShape,
        accesses: &[AccessInfo],
    ) -> Option<String> {
        match (shape, accesses) {
            (DeadlockShape::LockCycle, accesses) => {
                let waits = accesses.iter().map(|access| {
                    let lock = access.variable.as_deref().unwrap_or("a lock");
                    format!("{} waits for `{lock}`{}", words.thread(access), words.place(access))
                });
                Some(format!("deadlock: {}", waits.collect::<Vec<_>>().join(", ")))
            }
            (DeadlockShape::Stuck, [access, ..]) => {
                let object = access.variable.as_deref().unwrap_or("it");
                let what = if access.op == "wait" { "lost wake-up" } else { "deadlock" };
                let (thread, place) = (words.thread(access), words.place(access));
                Some(format!("{what}: {thread} waits for `{object}`{place} and nobody can go on"))
            }
            (DeadlockShape::Stuck, []) => None,
        }
    }

    fn fingerprint(shape: DeadlockShape) -> &'static str {
        match shape {
            DeadlockShape::LockCycle => "",
            DeadlockShape::Stuck => "stuck",
        }
    }

    fn violation(_: &[AccessInfo], _marked: bool) -> Violation {
        Violation::Deadlock
    }
}

/// A thread that holds locks and wants another, at one code location.
struct Wish {
    thread: ThreadId,
    held: StateId,
    lock: ObjectId,
    mode: LockMode,
    /// In program order.
    events: Vec<EventId>,
    /// There are no more.
    all: bool,
}

/// What was found, and whether the search was cut short.
#[derive(Debug, Default)]
pub struct LockCycles {
    /// One question for each cycle of code locations.
    pub questions: Vec<Question>,
    /// There are more cycles than were looked at.
    pub incomplete: bool,
}

/// The lock that a blocking step wants.
fn wanted(op: &Op) -> Option<(ObjectId, LockMode)> {
    match *op {
        Op::Sync(lock, SyncOp::Acquire(LockStep { mode, by_try: false })) => Some((lock, mode)),
        Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => Some((mutex, LockMode::Exclusive)),
        _ => None,
    }
}

/// Cycles of locks.
pub fn lock_cycles(trace: &Trace, order: &MustOrder, locks: &Locksets, limit: usize) -> LockCycles {
    let accesses = Accesses::new(trace);
    type Key = (ThreadId, StateId, ObjectId, LockMode, Location);
    let wishes = trace.events.iter().enumerate().filter_map(|(position, event)| {
        let id = EventId::from(position);
        let (lock, mode) = wanted(&event.op)?;
        let held = locks.before(trace, id);
        let mut holds = locks.locks(held).peekable();
        holds.peek()?;
        if holds.any(|(other, _)| other == lock) {
            return None; // again, by the holder
        }
        let key: Key = (event.thread, held, lock, mode, accesses.location(id));
        Some((key, id))
    });
    let wishes: Vec<Wish> = by_location(wishes, MOST_WISHES)
        .into_iter()
        .map(|((thread, held, lock, mode, _), sample)| Wish {
            thread,
            held,
            lock,
            mode,
            all: sample.dropped() == 0,
            events: sample.kept,
        })
        .collect();
    // Who holds what somebody wants.
    let mut holders: HashMap<ObjectId, Vec<(usize, LockMode)>> = HashMap::new();
    for (number, wish) in wishes.iter().enumerate() {
        for (lock, mode) in locks.locks(wish.held) {
            holders.entry(lock).or_default().push((number, mode));
        }
    }
    let mut search = CycleSearch {
        wishes: &wishes,
        holders: &holders,
        locks,
        cycles: Vec::new(),
        visited: 0,
        incomplete: false,
    };
    for start in 0..wishes.len() {
        search.extend(&mut vec![start]);
    }
    let mut places: HashMap<Vec<Location>, usize> = HashMap::new();
    let mut questions: Vec<Question> = Vec::new();
    for cycle in &search.cycles {
        let (found, all) = instances(&wishes, cycle, order, limit);
        search.incomplete |= !all;
        for events in found {
            let mut key: Vec<Location> =
                events.iter().map(|&event| accesses.location(event)).collect();
            key.sort_unstable();
            let place = *places.entry(key).or_insert_with(|| {
                questions.push(Question {
                    kind: FindingKind::Deadlock,
                    instances: Vec::new(),
                    rest: Vec::new(),
                    unexamined: 0,
                });
                questions.len() - 1
            });
            let question = &mut questions[place];
            if question.instances.len() < limit {
                question
                    .instances
                    .push(Instance { shape: Shape::Deadlock(DeadlockShape::LockCycle), events });
            } else {
                question.unexamined += 1;
            }
        }
    }
    LockCycles { questions, incomplete: search.incomplete }
}

struct CycleSearch<'a> {
    wishes: &'a [Wish],
    holders: &'a HashMap<ObjectId, Vec<(usize, LockMode)>>,
    locks: &'a Locksets,
    cycles: Vec<Vec<usize>>,
    visited: usize,
    incomplete: bool,
}

impl CycleSearch<'_> {
    /// Extends a path of wishes, each wanting what the next holds; the first is the smallest.
    fn extend(&mut self, path: &mut Vec<usize>) {
        self.visited += 1;
        if self.visited > 64 * MOST_CYCLES || self.cycles.len() >= MOST_CYCLES {
            self.incomplete = true;
            return;
        }
        let wish = &self.wishes[*path.last().expect("starts with one")];
        let holders = self.holders;
        for &(next, mode) in holders.get(&wish.lock).into_iter().flatten() {
            if mode == LockMode::Shared && wish.mode == LockMode::Shared {
                continue;
            }
            if next == path[0] && path.len() > 1 {
                self.cycles.push(path.clone());
                continue;
            }
            let other = &self.wishes[next];
            let fits = next > path[0]
                && path.iter().all(|&number| {
                    let earlier = &self.wishes[number];
                    earlier.thread != other.thread
                        && self.locks.compatible(earlier.held, other.held)
                });
            if fits && path.len() >= LONGEST_CYCLE {
                self.incomplete = true;
            } else if fits {
                path.push(next);
                self.extend(path);
                path.pop();
            }
        }
    }
}

/// Events for the wishes of a cycle, none of which must come before another; and whether these are all.
fn instances(
    wishes: &[Wish],
    cycle: &[usize],
    order: &MustOrder,
    limit: usize,
) -> (Vec<Vec<EventId>>, bool) {
    let mut partial: Vec<Vec<EventId>> = vec![Vec::new()];
    let mut all = cycle.iter().all(|&number| wishes[number].all);
    for (place, &number) in cycle.iter().enumerate() {
        let events = &wishes[number].events;
        let mut longer = Vec::new();
        for chosen in &partial {
            let (mut from, mut to) = (0, events.len());
            for &other in chosen {
                let (first, last) = during((other, other), events, order);
                (from, to) = (from.max(first), to.min(last));
            }
            for &event in events.get(from..to).unwrap_or_default() {
                // Most of the first fit to none of the others.
                if place > 0 && longer.len() >= 4 * limit {
                    all = false;
                    break;
                }
                let mut chosen = chosen.clone();
                chosen.push(event);
                longer.push(chosen);
            }
        }
        partial = longer;
    }
    let spread = |events: &Vec<EventId>| {
        let positions = || events.iter().map(|event| event.0);
        positions().max().unwrap_or(0) - positions().min().unwrap_or(0)
    };
    partial.sort_by_key(spread);
    all &= partial.len() <= limit;
    partial.truncate(limit);
    (partial, all)
}

/// Every thread of the cycle has come to its acquire.
pub fn cycle_goal(ctp: &ConcurrentTraceProgram, acquires: &[EventId]) -> Goal {
    let mut builder = GoalBuilder::new(ctp);
    let parts: Vec<_> = acquires.iter().map(|&acquire| builder.next(acquire)).collect();
    let formula = builder.terms.and(&parts);
    builder.finish(formula)
}

/// Can the step wait (rather than fail or go on)?
fn may_wait(op: &Op) -> bool {
    matches!(
        op,
        Op::Sync(
            _,
            SyncOp::Acquire(LockStep { by_try: false, .. })
                | SyncOp::WaitEnd { .. }
                | SyncOp::SemaphoreWait { by_try: false, .. }
                | SyncOp::BarrierLeave
                | SyncOp::Receive { by_try: false, .. }
        ) | Op::Join(_)
            | Op::ThreadBegin
    )
}

/// Can the step wait for something that no lock cycle shows?
fn waits_beyond_locks(op: &Op) -> bool {
    may_wait(op) && !matches!(op, Op::Sync(_, SyncOp::Acquire(_)) | Op::ThreadBegin)
}

/// Locks that are held for longer than any lock cycle shows.
#[derive(Default)]
struct HeldLong {
    /// Those that some thread still holds when it ends.
    abandoned: HashSet<ObjectId>,
    /// Joins by a thread that holds a lock.
    joins: HashSet<EventId>,
}

fn held_long(trace: &Trace) -> HeldLong {
    let mut held: HashMap<ThreadId, HashMap<ObjectId, i64>> = HashMap::new();
    let mut long = HeldLong::default();
    for (position, event) in trace.events.iter().enumerate() {
        let mut change = |lock, by| {
            *held.entry(event.thread).or_default().entry(lock).or_insert(0) += by;
        };
        match event.op {
            Op::Sync(lock, SyncOp::Acquire(_)) => change(lock, 1),
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => change(mutex, 1),
            Op::Sync(lock, SyncOp::Release(_)) => change(lock, -1),
            Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => change(mutex, -1),
            Op::ThreadEnd => {
                let held = held.remove(&event.thread).unwrap_or_default();
                let held = held.into_iter().filter(|&(_, depth)| depth > 0);
                long.abandoned.extend(held.map(|(lock, _)| lock));
            }
            Op::Join(_) => {
                let mut held = held.get(&event.thread).into_iter().flat_map(HashMap::values);
                if held.any(|&depth| depth > 0) {
                    long.joins.insert(EventId::from(position));
                }
            }
            _ => {}
        }
    }
    long
}

/// One question for each code location at which a thread may wait for ever: semaphores, locks that a
/// thread took with it when it ended,
/// conditions, barriers and joins. (A join alone is never the cause: it is asked about where the thread that joins
/// has a lock, which the other one may wait for.)
pub fn stuck_questions(trace: &Trace, order: &MustOrder) -> Vec<Question> {
    let accesses = Accesses::new(trace);
    let (never_empty, held_long) = (never_empty(trace, order), held_long(trace));
    let events = trace.events.iter().enumerate().filter_map(|(position, event)| {
        let asked = match &event.op {
            Op::Join(_) => held_long.joins.contains(&EventId::from(position)),
            Op::Sync(semaphore, SyncOp::SemaphoreWait { by_try }) => {
                !by_try && !never_empty.contains(semaphore)
            }
            Op::Sync(lock, SyncOp::Acquire(step)) => {
                !step.by_try && held_long.abandoned.contains(lock)
            }
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) if needs_no_signal(&event.op) => {
                held_long.abandoned.contains(mutex)
            }
            Op::Await(AwaitMark::Round) => true,
            op => waits_beyond_locks(op),
        };
        let id = EventId::from(position);
        asked.then(|| (accesses.location(id), id))
    });
    let mut places: HashMap<Location, usize> = HashMap::new();
    let mut questions: Vec<Question> = Vec::new();
    for (location, event) in events {
        let place = *places.entry(location).or_insert_with(|| {
            let instance =
                Instance { shape: Shape::Deadlock(DeadlockShape::Stuck), events: Vec::new() };
            questions.push(Question {
                kind: FindingKind::Deadlock,
                instances: vec![instance],
                rest: Vec::new(),
                unexamined: 0,
            });
            questions.len() - 1
        });
        questions[place].instances[0].events.push(event);
    }
    questions
}

/// Semaphores that nobody can wait for for ever: who takes one puts it back before it can wait for
/// anything else, and there is one from the beginning, or a post that nothing can keep from coming.
/// (`pthread_once` looks like that: the first thread posts, the others wait and post again.) Where all
/// have ended or wait, all that were taken are back. A solver would have to count them.
fn never_empty(trace: &Trace, order: &MustOrder) -> HashSet<ObjectId> {
    let chains = trace.events_by_thread();
    let op = |event: EventId| &trace.event(event).op;
    let mut known: HashSet<ObjectId> = HashSet::new();
    let mut taken_for_long: HashSet<ObjectId> = HashSet::new();
    let mut sure: HashSet<ObjectId> = HashSet::new();
    for (number, object) in trace.objects.iter().enumerate() {
        if let ObjectKind::Semaphore { initial: 1.. } = object.kind {
            sure.insert(ObjectId::from(number));
        }
    }
    for chain in &chains {
        let mut held: Option<ObjectId> = None;
        for &event in chain {
            match *op(event) {
                Op::Sync(semaphore, SyncOp::SemaphoreWait { .. }) => {
                    known.insert(semaphore);
                    taken_for_long.extend(held.replace(semaphore));
                }
                Op::Sync(semaphore, SyncOp::SemaphorePost) if held == Some(semaphore) => {
                    held = None
                }
                Op::Sync(semaphore, SyncOp::SemaphorePost)
                    if comes_always(trace, &chains, order, event) =>
                {
                    sure.insert(semaphore);
                }
                ref op if may_wait(op) => taken_for_long.extend(held.take()),
                _ => {}
            }
        }
        taken_for_long.extend(held);
    }
    // A wait that fails takes nothing, but another one that succeeds in its place would.
    for event in &trace.events {
        if let Op::Sync(semaphore, SyncOp::SemaphoreWaitFailed) = event.op {
            taken_for_long.insert(semaphore);
        }
    }
    known.retain(|semaphore| sure.contains(semaphore) && !taken_for_long.contains(semaphore));
    known
}

/// Nothing that has to come before the event can wait.
fn comes_always(trace: &Trace, chains: &[Vec<EventId>], order: &MustOrder, event: EventId) -> bool {
    chains.iter().enumerate().all(|(thread, chain)| {
        let before = order.count_before(ThreadId::from(thread), event) as usize;
        let waits = |event: &EventId| match &trace.event(*event).op {
            Op::ThreadBegin => false,
            op => may_wait(op),
        };
        !chain[..before.min(chain.len())].iter().any(waits)
    })
}

/// Every thread has ended or waits, and one waits at one of the instance's events.
pub fn stuck_goal(subject: &Subject<'_>, instance: &Instance) -> Option<Goal> {
    let ctp = subject.ctp;
    let mut builder = GoalBuilder::new(ctp);
    let mut parts = Vec::new();
    let mut here = Vec::new();
    let end = ctp.events.iter().map(|event| event.origin).max();
    for (chain, all) in ctp.threads.iter().zip(subject.chains) {
        // What a thread does behind a window, or behind the end of a run that was cut short, is not known: it can go on.
        let has_ended = |last: &EventId| subject.trace.event(*last).op == Op::ThreadEnd;
        let goes_on = all.last().copied() > end
            || subject.trace.metadata.cut && !all.last().is_some_and(has_ended);
        let mut states = match chain.last() {
            Some(&last) if !goes_on => vec![builder.taken(last)],
            Some(_) => Vec::new(),
            None if !goes_on => continue,
            None => return None,
        };
        for &event in chain {
            let origin = ctp.event(event).origin;
            let waits = match &subject.trace.event(origin).op {
                Op::Await(AwaitMark::Round) => goes_round(&mut builder, subject.trace, event),
                op if may_wait(op) => Some(waits_at(&mut builder, event, needs_no_signal(op))?),
                _ => None,
            };
            let Some(waits) = waits else { continue };
            states.push(waits);
            if instance.events.binary_search(&origin).is_ok() {
                here.push(waits);
            }
        }
        parts.push(builder.terms.or(&states));
    }
    parts.push(builder.terms.or(&here));
    let formula = builder.terms.and(&parts);
    Some(builder.finish(formula))
}

/// The thread has come to the begin of a round of a loop that waits, and with what it would read at the
/// end of the prefix it would come there again, having changed nothing. `None` where the round has no
/// such way.
fn goes_round(
    builder: &mut GoalBuilder<'_>,
    trace: &Trace,
    round: EventId,
) -> Option<foretell_trace::TermId> {
    let ctp = builder.ctp();
    let place = ctp.event(round);
    let chain = &ctp.threads[place.thread.index()][place.position as usize + 1..];
    let op = |event: EventId| &trace.event(ctp.event(event).origin).op;
    // What the round has read so far, and what has to hold for it to have come so far.
    let mut known = HashMap::new();
    let mut so_far = Vec::new();
    let mut ways = Vec::new();
    for (number, &event) in chain.iter().enumerate() {
        let mark = chain.get(number + 1).map(|&next| op(next));
        match op(event) {
            Op::Read(_) | Op::ReadModifyWrite(_) | Op::Branch(_) => {}
            // Who cannot take a lock stands there; the round gives back what it takes.
            Op::Sync(_, SyncOp::Acquire(_) | SyncOp::AcquireFailed(_)) => {
                let Action::Guarded { guard, .. } = ctp.event(event).action else { break };
                let comes_out = builder.at(Moment::End, guard, None);
                let goes_round = match mark {
                    Some(Op::Await(AwaitMark::Test)) => Some(builder.terms.not(comes_out)),
                    Some(Op::Await(AwaitMark::Failed)) => Some(comes_out),
                    _ => None,
                };
                if let Some(goes_round) = goes_round {
                    let way: Vec<_> = so_far.iter().copied().chain([goes_round]).collect();
                    ways.push(builder.terms.and(&way));
                }
                so_far.push(comes_out);
                continue;
            }
            Op::Sync(_, SyncOp::Release(_)) => continue,
            Op::Await(AwaitMark::Test | AwaitMark::Failed)
            | Op::Call(_)
            | Op::Return
            | Op::Fence(_) => continue,
            _ => break,
        }
        let Action::Guarded { assignments, .. } = &ctp.event(event).action else { break };
        let parts = builder.local_parts(event);
        let parts: Vec<_> =
            parts.iter().map(|&part| builder.at_with(Moment::End, part, &known)).collect();
        let holds = builder.terms.and(&parts);
        match mark {
            Some(Op::Await(AwaitMark::Test)) => {
                let fails = builder.terms.not(holds);
                let way: Vec<_> = so_far.iter().copied().chain([fails]).collect();
                ways.push(builder.terms.and(&way));
            }
            Some(Op::Await(AwaitMark::Failed)) => {
                let way: Vec<_> = so_far.iter().copied().chain([holds]).collect();
                ways.push(builder.terms.and(&way));
                break;
            }
            _ => {}
        }
        so_far.push(holds);
        let mut read = Vec::new();
        for &(variable, value) in assignments {
            let value = builder.at_with(Moment::End, value, &known);
            if ctp.variables[variable.index()].scope == Scope::Shared {
                let before = builder.value(Moment::End, variable);
                let changed = builder.differ(value, before);
                so_far.push(builder.terms.not(changed));
            } else {
                read.push((variable, value));
            }
        }
        known.extend(read);
    }
    if ways.is_empty() {
        return None;
    }
    let next = builder.next(round);
    let again = builder.terms.or(&ways);
    Some(builder.terms.and(&[next, again]))
}

/// Does the thread go on without a signal once it has its mutex?
fn needs_no_signal(op: &Op) -> bool {
    matches!(
        op,
        Op::Sync(_, SyncOp::WaitEnd { timed: true, .. } | SyncOp::WaitEnd { timed_out: true, .. })
    )
}

/// The thread has come to the event, and the state at the end of the prefix does not let it go on;
/// `for_its_lock`: no lock does.
fn waits_at(
    builder: &mut GoalBuilder<'_>,
    event: EventId,
    for_its_lock: bool,
) -> Option<foretell_trace::TermId> {
    let ctp = builder.ctp();
    let Action::Guarded { guard, .. } = ctp.event(event).action else { return None };
    let next = builder.next(event);
    let possible = match for_its_lock {
        true => builder.lock_is_free(event),
        false => builder.at(Moment::End, guard, None),
    };
    let mut obstacles = vec![builder.terms.not(possible)];
    for &(before, after) in &ctp.orders {
        if after == event {
            let taken = builder.taken(before);
            obstacles.push(builder.terms.not(taken));
        }
    }
    let kept = builder.terms.or(&obstacles);
    Some(builder.terms.and(&[next, kept]))
}
