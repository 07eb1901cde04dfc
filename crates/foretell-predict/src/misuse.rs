//! Locks and conditions that are used in a way that POSIX forbids.
//!
//! What the recorded run did (a lock given back by a thread that does not hold it, a thread that ends
//! while it holds one) and what another interleaving may do (a lock that is destroyed while somebody
//! holds it or before somebody uses it, a condition on which threads wait with different mutexes at the
//! same time) are questions of one form: one event takes place after another, and, where there is a
//! third, not after that. The model gives these steps no effect of their own, so the answer says only
//! that the order is possible, which is all that is asked.
//!
//! Objects that are initialised again are other objects; a thread that uses the new one and did not have to wait for
//! the destruction of the old one may be inside when that is destroyed. Semaphores, conditions, reader-writer locks and
//! barriers that were used after their destruction in the recorded run itself are not seen: they may
//! have been initialised by an assignment.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, ObjectId, ObjectKind, Op, SyncOp, ThreadId, Trace};

use crate::access::{Accesses, Location};
use crate::finding::{AccessInfo, Words};
use crate::goal::{Goal, GoalBuilder};
use crate::property::{FindingKind, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::violation::Violation;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Misuse {
    /// Events: the destruction and the use.
    UseAfterDestroy,
    /// Events: the acquire, the destruction, and the release where there is one.
    DestroyedWhileHeld,
    /// Events: the acquire by another thread, and the release.
    ReleasedByAnother,
    /// Events: what was done last to the lock, where there is such a thing, and the release.
    ReleasedUnheld,
    /// Events: the acquire and the end of the thread.
    EndedWhileHolding,
    /// Events: two begins of waits, and the end of the first where there is one.
    WaitedWithTwoMutexes,
}

impl Misuse {
    /// A word for fingerprints.
    pub fn name(self) -> &'static str {
        match self {
            Misuse::UseAfterDestroy => "use-after-destroy",
            Misuse::DestroyedWhileHeld => "destroyed-while-held",
            Misuse::ReleasedByAnother => "released-by-another",
            Misuse::ReleasedUnheld => "released-unheld",
            Misuse::EndedWhileHolding => "ended-while-holding",
            Misuse::WaitedWithTwoMutexes => "waited-with-two-mutexes",
        }
    }
}

/// The property.
#[derive(Debug)]
pub struct Misused;

impl Property for Misused {
    type Shape = Misuse;

    const TEXT: Text = Text {
        name: "misuse",
        headline: "misuse",
        rule: "Misuse",
        description: "A lock or condition is used in a way that POSIX forbids.",
    };
    const RANK: u8 = 3;
    // That nothing is misused is the rule, and not worth a line.
    const LISTED: bool = false;

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        questions(search.trace, search.order, search.instances)
    }

    fn goal(subject: &Subject<'_>, _: Misuse, events: &[EventId]) -> Option<Goal> {
        goal(subject.ctp, events)
    }

    fn describe(words: &Words<'_>, misuse: Misuse, accesses: &[AccessInfo]) -> Option<String> {
        Some(sentence(words, misuse, accesses))
    }

    fn fingerprint(misuse: Misuse) -> &'static str {
        misuse.name()
    }

    fn violation(_: &[AccessInfo], _marked: bool) -> Violation {
        Violation::Misuse
    }
}

/// A stay of a thread in a lock or on a condition.
#[derive(Clone, Copy)]
struct Stay {
    thread: ThreadId,
    begin: EventId,
    end: Option<EventId>,
    /// Of a wait: its mutex.
    mutex: Option<ObjectId>,
}

/// What happened to an object.
#[derive(Default)]
struct History {
    /// Who holds it now: indices of `stays`, the innermost last.
    open: BTreeMap<ThreadId, Vec<usize>>,
    stays: Vec<Stay>,
    uses: Vec<EventId>,
    destroyed: Vec<EventId>,
    last: Option<EventId>,
}

/// The questions about misuse.
pub fn questions(trace: &Trace, order: &MustOrder, limit: usize) -> Vec<Question> {
    let mut found =
        Found { accesses: Accesses::new(trace), places: HashMap::new(), all: Vec::new(), limit };
    let mut objects: Vec<History> = Vec::new();
    objects.resize_with(trace.objects.len(), History::default);
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        step(trace, &mut objects, id, event.thread, &event.op, &mut found);
    }
    for history in &objects {
        destroyed(trace, order, history, &mut found);
        waits(order, history, &mut found);
    }
    initialised_again(trace, order, &objects, &mut found);
    found.all
}

fn step(
    trace: &Trace,
    objects: &mut [History],
    id: EventId,
    thread: ThreadId,
    op: &Op,
    found: &mut Found<'_>,
) {
    match *op {
        Op::Sync(lock, SyncOp::Acquire(_)) => {
            objects[lock.index()].enter(id, thread, None);
            objects[lock.index()].uses.push(id);
        }
        Op::Sync(lock, SyncOp::AcquireFailed(_)) => objects[lock.index()].uses.push(id),
        Op::Sync(lock, SyncOp::Release(_)) => {
            let history = &mut objects[lock.index()];
            if !history.leave(id, thread) {
                // Where the begin of the run is missing, it may have been taken before.
                if let Some((&owner, _)) = history.open.iter().find(|(_, open)| !open.is_empty()) {
                    let acquire = history.innermost(owner);
                    history.leave(id, owner);
                    found.add(Misuse::ReleasedByAnother, [acquire, Some(id)]);
                }
            }
            history.last = Some(id);
        }
        // These say that they were not held, and a program may ask them.
        Op::Sync(lock, SyncOp::ReleaseFailed(_))
            if matches!(
                trace.objects[lock.index()].kind,
                ObjectKind::ErrorCheckingMutex | ObjectKind::RecursiveMutex
            ) => {}
        Op::Sync(lock, SyncOp::ReleaseFailed(_)) => {
            let history = &objects[lock.index()];
            let owner = history.open.iter().find(|(_, open)| !open.is_empty());
            match owner.map(|(&owner, _)| history.innermost(owner)) {
                Some(acquire) => found.add(Misuse::ReleasedByAnother, [acquire, Some(id)]),
                None => found.add(Misuse::ReleasedUnheld, [history.last, Some(id)]),
            }
        }
        Op::Sync(condition, SyncOp::WaitBegin { mutex }) => {
            objects[mutex.index()].leave(id, thread);
            objects[condition.index()].enter(id, thread, Some(mutex));
            objects[condition.index()].uses.push(id);
        }
        Op::Sync(condition, SyncOp::WaitEnd { mutex, .. }) => {
            objects[condition.index()].leave(id, thread);
            objects[mutex.index()].enter(id, thread, None);
        }
        Op::Sync(
            object,
            SyncOp::Signal
            | SyncOp::Broadcast
            | SyncOp::SemaphoreWait { .. }
            | SyncOp::SemaphorePost
            | SyncOp::BarrierArrive,
        ) => objects[object.index()].uses.push(id),
        Op::Sync(object, SyncOp::Destroy) => {
            objects[object.index()].destroyed.push(id);
            objects[object.index()].last = Some(id);
        }
        Op::ThreadEnd => {
            for (object, history) in objects.iter().enumerate() {
                if is_lock(trace.objects[object].kind)
                    && history.open.get(&thread).is_some_and(|open| !open.is_empty())
                    && is_waited_for(trace, ObjectId::from(object))
                {
                    found.add(Misuse::EndedWhileHolding, [history.innermost(thread), Some(id)]);
                }
            }
        }
        _ => {}
    }
}

/// Does anybody take the lock other than by a try? One that is only tried may well be a mark that somebody has come.
fn is_waited_for(trace: &Trace, lock: ObjectId) -> bool {
    trace
        .events
        .iter()
        .any(|event| matches!(event.op, Op::Sync(taken, SyncOp::Acquire(step)) if taken == lock && !step.by_try))
}

fn is_lock(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Mutex
            | ObjectKind::RecursiveMutex
            | ObjectKind::ErrorCheckingMutex
            | ObjectKind::ReaderWriterLock
    )
}

impl History {
    fn enter(&mut self, begin: EventId, thread: ThreadId, mutex: Option<ObjectId>) {
        self.open.entry(thread).or_default().push(self.stays.len());
        self.stays.push(Stay { thread, begin, end: None, mutex });
    }

    /// Says whether the thread was there.
    fn leave(&mut self, end: EventId, thread: ThreadId) -> bool {
        let Some(stay) = self.open.get_mut(&thread).and_then(Vec::pop) else { return false };
        self.stays[stay].end = Some(end);
        true
    }

    fn innermost(&self, thread: ThreadId) -> Option<EventId> {
        let stay = *self.open.get(&thread)?.last()?;
        Some(self.stays[stay].begin)
    }
}

/// What an object's destruction may hit.
fn destroyed(trace: &Trace, order: &MustOrder, history: &History, found: &mut Found<'_>) {
    for &destroy in &history.destroyed {
        // If any use of a thread at a place can come late, its last one can.
        let mut seen = HashSet::new();
        for &used in history.uses.iter().rev() {
            if !seen.insert((trace.event(used).thread, found.accesses.location(used))) {
                continue;
            }
            let own = trace.event(used).thread == trace.event(destroy).thread;
            if if own { destroy < used } else { !order.before(used, destroy) } {
                found.add(Misuse::UseAfterDestroy, [Some(destroy), Some(used)]);
            }
        }
        seen.clear();
        for stay in history.stays.iter().rev() {
            if !seen.insert((stay.thread, found.accesses.location(stay.begin))) {
                continue;
            }
            let own = stay.thread == trace.event(destroy).thread;
            let inside = match own {
                true => stay.begin < destroy && stay.end.is_none_or(|end| destroy < end),
                false => {
                    !order.before(destroy, stay.begin)
                        && stay.end.is_none_or(|end| !order.before(end, destroy))
                }
            };
            if inside {
                found.add_three(Misuse::DestroyedWhileHeld, [stay.begin, destroy], stay.end);
            }
        }
    }
}

/// Who holds a lock that was initialised again may have it from before the destruction, if nothing makes it wait.
fn initialised_again(trace: &Trace, order: &MustOrder, objects: &[History], found: &mut Found<'_>) {
    let mut at: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, object) in trace.objects.iter().enumerate() {
        if let Some(address) = object.address {
            at.entry(address).or_default().push(number);
        }
    }
    at.retain(|_, numbers| numbers.len() > 1);
    if at.is_empty() {
        return;
    }
    // What lies in a block that was allocated meanwhile is an object of another block.
    let is_new = |address: u64, from: EventId, to: EventId| {
        trace.events[from.index()..to.index()].iter().any(|event| match event.op {
            Op::Alloc { address: block, size } => address.wrapping_sub(block) < size,
            _ => false,
        })
    };
    for (&address, numbers) in &at {
        for (position, &old) in numbers.iter().enumerate() {
            let stays = numbers[position + 1..].iter().flat_map(|&new| &objects[new].stays);
            for stay in stays {
                for &destroy in &objects[old].destroyed {
                    let own = stay.thread == trace.event(destroy).thread;
                    let ordered = own || order.before(destroy, stay.begin) || stay.begin < destroy;
                    if !ordered && !is_new(address, destroy, stay.begin) {
                        found.add_three(
                            Misuse::DestroyedWhileHeld,
                            [stay.begin, destroy],
                            stay.end,
                        );
                    }
                }
            }
        }
    }
}

/// Waits on one condition with different mutexes.
fn waits(order: &MustOrder, history: &History, found: &mut Found<'_>) {
    let first = history.stays.iter().find_map(|stay| stay.mutex);
    if history.stays.iter().all(|stay| stay.mutex == first) {
        return;
    }
    for one in history.stays.iter().filter(|stay| stay.mutex.is_some()) {
        for other in history.stays.iter().filter(|stay| stay.mutex.is_some()) {
            let together = one.thread != other.thread
                && one.mutex != other.mutex
                && !order.before(other.begin, one.begin)
                && one.end.is_none_or(|end| !order.before(end, other.begin));
            if together {
                let events = [one.begin, other.begin];
                found.add_three(Misuse::WaitedWithTwoMutexes, events, one.end);
            }
        }
    }
}

/// The questions so far, one for each pair of code locations.
struct Found<'t> {
    accesses: Accesses<'t>,
    places: HashMap<(Misuse, Vec<Location>), usize>,
    all: Vec<Question>,
    limit: usize,
}

impl Found<'_> {
    fn add(&mut self, misuse: Misuse, events: [Option<EventId>; 2]) {
        self.push(misuse, events.into_iter().flatten().collect());
    }

    fn add_three(&mut self, misuse: Misuse, events: [EventId; 2], third: Option<EventId>) {
        self.push(misuse, events.into_iter().chain(third).collect());
    }

    fn push(&mut self, misuse: Misuse, events: Vec<EventId>) {
        let key = events.iter().take(2).map(|&event| self.accesses.location(event)).collect();
        let place = *self.places.entry((misuse, key)).or_insert_with(|| {
            self.all.push(Question {
                kind: FindingKind::Misuse,
                instances: Vec::new(),
                rest: Vec::new(),
                unexamined: 0,
            });
            self.all.len() - 1
        });
        let question = &mut self.all[place];
        if question.instances.len() < self.limit {
            question.instances.push(Instance { shape: Shape::Misuse(misuse), events });
        } else {
            question.unexamined += 1;
        }
    }
}

/// The events take place in this order, and the third, if there is one, not before the second.
pub fn goal(ctp: &ConcurrentTraceProgram, events: &[EventId]) -> Option<Goal> {
    let mut builder = GoalBuilder::new(ctp);
    let mut parts = Vec::new();
    match *events {
        [only] => parts.push(builder.taken(only)),
        [first, second] | [first, second, _] => {
            parts.push(builder.terms.before(first, second));
            parts.push(builder.taken(second));
        }
        _ => return None,
    }
    if let [_, second, third] = *events {
        let over = builder.terms.before(third, second);
        parts.push(builder.terms.not(over));
    }
    let formula = builder.terms.and(&parts);
    Some(builder.finish(formula))
}

/// What is done wrong with a lock or a condition.
fn sentence(words: &Words<'_>, misuse: Misuse, infos: &[AccessInfo]) -> String {
    let thread = |info: &AccessInfo| words.thread(info).to_owned();
    let object = infos.iter().find_map(|info| info.variable.as_deref()).unwrap_or("it");
    match (misuse, infos) {
        (Misuse::UseAfterDestroy, [destroy, used, ..]) => format!(
            "{} uses `{object}`{} after {} has destroyed it{}",
            thread(used),
            words.place(used),
            thread(destroy),
            words.place(destroy)
        ),
        (Misuse::DestroyedWhileHeld, [acquire, destroy, ..]) => format!(
            "{} destroys `{object}`{} while {} holds it, taken{}",
            thread(destroy),
            words.place(destroy),
            thread(acquire),
            words.place(acquire)
        ),
        (Misuse::ReleasedByAnother, [acquire, release]) => format!(
            "{} unlocks `{object}`{}, which {} has locked{}",
            thread(release),
            words.place(release),
            thread(acquire),
            words.place(acquire)
        ),
        (Misuse::ReleasedUnheld, [before, release]) => format!(
            "{} unlocks `{object}`{}, which nobody holds since the {}{}",
            thread(release),
            words.place(release),
            before.op,
            words.place(before)
        ),
        (Misuse::ReleasedUnheld, [release]) => {
            format!(
                "{} unlocks `{object}`{}, which nobody holds",
                thread(release),
                words.place(release)
            )
        }
        (Misuse::EndedWhileHolding, [acquire, _]) => format!(
            "{} ends while it holds `{object}`, locked{}",
            thread(acquire),
            words.place(acquire)
        ),
        (Misuse::WaitedWithTwoMutexes, [one, other, ..]) => format!(
            "{} waits on `{object}`{} with another mutex than {}{}",
            thread(other),
            words.place(other),
            thread(one),
            words.place(one)
        ),
        _ => format!("`{object}` is misused"),
    }
}
