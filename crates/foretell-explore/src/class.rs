//! A class of paths: all executions in which each thread takes the same choices, represented by the
//! trace of one of them.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::rc::Rc;

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_model::must_order::MustOrder;
use foretell_predict::goal::GoalBuilder;
use foretell_predict::influence::{influenced_reads, mentions};
use foretell_trace::format::binary;
use foretell_trace::{
    AwaitMark, EventId, ObjectId, Op, Operator, SyncOp, Term, TermId, Trace, Value,
};

use crate::part;

/// A class, with all that is needed to ask about it.
pub(crate) struct Class {
    pub trace: Trace,
    pub ctp: ConcurrentTraceProgram,
    pub order: MustOrder,
    paths: Rc<Paths>,
}

/// What the threads of a class did.
pub(crate) struct Paths {
    pub threads: Vec<ThreadPath>,
    /// The program came to its end by itself.
    ended: bool,
}

impl Deref for Class {
    type Target = Paths;

    fn deref(&self) -> &Paths {
        &self.paths
    }
}

/// A class while nothing is asked about it. There may be thousands, and what asking needs is much
/// larger than what was recorded: so the trace is kept as a file would be, and read again.
pub(crate) struct Kept {
    pub paths: Rc<Paths>,
    /// How many places it has at which a thread may do something else.
    pub choices: usize,
    trace: Box<[u8]>,
}

impl Kept {
    /// Keeps a class.
    pub fn new(class: &Class) -> Self {
        let mut bytes = Vec::new();
        binary::write(&class.trace, &mut bytes).expect("a vector takes everything");
        Self {
            paths: class.paths(),
            choices: class.choices().len(),
            trace: bytes.into_boxed_slice(),
        }
    }

    /// The class as it was.
    pub fn open(&self) -> Class {
        let trace = binary::read(&self.trace).expect("what was written can be read");
        let ctp = ConcurrentTraceProgram::build(&trace).expect("it was built before");
        let order = MustOrder::new(&trace).expect("it was made before");
        Class { trace, ctp, order, paths: Rc::clone(&self.paths) }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let events: usize = self.paths.threads.iter().map(|path| path.events.len()).sum();
        // A label of each event is in the identity, too.
        self.trace.len() + events * (size_of::<PathEvent>() + size_of::<Label>())
    }
}

/// What one thread did.
pub(crate) struct ThreadPath {
    /// Which thread, in every run.
    pub creation: Vec<u32>,
    /// Its steps and choices in order.
    pub events: Vec<PathEvent>,
    /// It came to its end; otherwise the run ended while it stood before another step.
    pub ended: bool,
}

/// An event of a thread as far as runs are compared.
pub(crate) struct PathEvent {
    /// Of the class's concurrent trace program.
    pub id: EventId,
    pub kind: Kind,
    /// Equal in two runs where the thread did the same.
    pub label: Label,
    /// Where in the code it happened and how it came out, whatever it was done to.
    pub place: Label,
    /// The address that was computed, or the value that a choice demands.
    pub value: Option<u64>,
    /// Another thread can have an influence on how a choice comes out.
    pub influenced: bool,
}

/// A signature by its number in [`Labels`].
pub(crate) type Label = u32;

/// The signatures of all classes, each once.
#[derive(Default)]
pub(crate) struct Labels {
    numbers: HashMap<Signature, Label>,
    /// The same in every process.
    digests: Vec<u64>,
}

impl Labels {
    fn of(&mut self, signature: Signature) -> Label {
        let next = Label::try_from(self.digests.len()).expect("fewer than 2^32 events");
        let digests = &mut self.digests;
        *self.numbers.entry(signature).or_insert_with_key(|signature| {
            digests.push(part::digest(signature));
            next
        })
    }

    /// A digest of the signature that is the same in every process.
    pub fn digest(&self, label: Label) -> u64 {
        self.digests[label as usize]
    }
}

/// What happened, where, to what, and how it came out.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Signature {
    operation: &'static str,
    place: Option<(Box<str>, u32, u32)>,
    object: Option<Box<str>>,
    outcome: Option<bool>,
    value: Option<u64>,
}

/// How an event depends on what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not at all: a step that takes place whenever it is enabled.
    Step,
    /// A choice without a step: a branch.
    Branch,
    /// An assertion, and whether it held.
    Assertion(bool),
    /// A branch that leaves a round of a loop that waits: otherwise the loop goes round again, of which
    /// nothing is left.
    Await,
    /// The branch by which a thread goes round for ever in a loop that waits.
    AwaitFailed,
    /// A step whose address was computed from what was read: a choice comes right before it.
    Addressed,
    /// A step that comes out one way or the other, by the state of an object: a try, or a wait with a
    /// time limit.
    Try,
}

impl Kind {
    /// Is it a step, which another thread can notice?
    pub fn is_step(self) -> bool {
        matches!(self, Kind::Step | Kind::Addressed | Kind::Try)
    }

    /// Is something decided by what the thread read before?
    pub fn decides(self) -> bool {
        match self {
            Kind::Branch | Kind::Addressed | Kind::Assertion(_) => true,
            Kind::Await | Kind::AwaitFailed => true,
            Kind::Step | Kind::Try => false,
        }
    }
}

impl Class {
    /// The class of a run; `ended` says that the program came to its end by itself. `None` where the
    /// trace has no concurrent trace program.
    pub fn new(trace: Trace, ended: bool, labels: &mut Labels) -> Option<Self> {
        let ctp = ConcurrentTraceProgram::build(&trace).ok()?;
        let order = MustOrder::new(&trace).ok()?;
        let builder = GoalBuilder::new(&ctp);
        let chains = trace.events_by_thread();
        let influenced = influenced_reads(&trace, &chains, &order);
        let influence = Influence { trace: &trace, chains: &chains, influenced: &influenced };
        let threads = ctp.threads.iter().enumerate();
        let threads = threads
            .map(|(thread, chain)| {
                let event = |(number, &id): (usize, &EventId)| {
                    let mut event = path_event(&influence, &ctp, &builder, id, labels);
                    let after = &chain[number + 1..];
                    event.kind = match event.kind {
                        Kind::Branch => awaiting(&trace, &ctp, after),
                        // Where it fails, the thread has not begun yet.
                        Kind::Try if awaiting(&trace, &ctp, after) == Kind::Await => Kind::Step,
                        kind => kind,
                    };
                    event
                };
                let events = chain.iter().enumerate().map(event).collect();
                let last = chain.last().map(|&id| &trace.event(ctp.event(id).origin).op);
                ThreadPath {
                    creation: trace.threads[thread].path.clone(),
                    events,
                    // The first thread ends with the program.
                    ended: matches!(last, Some(Op::ThreadEnd)) || (thread == 0 && ended),
                }
            })
            .collect();
        Some(Self { trace, ctp, order, paths: Rc::new(Paths { threads, ended }) })
    }

    /// What its threads did.
    pub fn paths(&self) -> Rc<Paths> {
        Rc::clone(&self.paths)
    }

    /// Calls that find something or do not, by what other threads did, which is not asked about.
    pub fn held_outcomes(&self) -> usize {
        let all = || (0..self.trace.events.len()).map(EventId::from);
        let thread = |event: EventId| self.trace.event(event).thread;
        let ordered = |one, two| self.order.before(one, two) || self.order.before(two, one);
        let held = |&event: &EventId| match self.trace.event(event).op {
            Op::Sync(channel, SyncOp::Poll { .. } | SyncOp::Receive { by_try: true, .. }) => {
                let mut others = all().filter(|&other| thread(other) != thread(event));
                others.any(|other| {
                    let op = &self.trace.event(other).op;
                    op.object() == Some(channel)
                        && matches!(op, Op::Sync(_, SyncOp::Send { .. } | SyncOp::Receive { .. }))
                        && !ordered(other, event)
                })
            }
            // A cancellation ended it.
            Op::Sync(_, SyncOp::WaitEnd { timed_out, timed, .. }) => timed_out && !timed,
            _ => false,
        };
        all().filter(held).count()
    }

    /// Can the thread, which the run did not bring to its end, go on at all? Not if it was never created.
    /// Nor where the program ended by itself, which lets everybody go on who can, and nobody does anything
    /// that could wake the thread.
    fn can_go_on(&self, thread: usize) -> bool {
        let events = || self.trace.events.iter();
        let Some(&last) = self.ctp.threads[thread].last() else {
            let forks = |op: &Op| matches!(op, Op::Fork(child) if child.index() == thread);
            return thread == 0 || events().any(|event| forks(&event.op));
        };
        let last = self.ctp.event(last).origin;
        let condition = match self.trace.event(last).op {
            Op::Sync(condition, SyncOp::WaitBegin { .. }) => Some(condition),
            _ => None,
        };
        let wakes = |op: &Op| match (condition, op) {
            (Some(condition), Op::Sync(other, SyncOp::Signal | SyncOp::Broadcast)) => {
                *other == condition
            }
            (Some(_), _) => false,
            (None, op) => may_wake(op),
        };
        let mut events = (0..self.trace.events.len()).map(EventId::from);
        !self.ended
            || events.any(|id| {
                let event = self.trace.event(id);
                event.thread.index() != thread && wakes(&event.op) && !self.order.before(id, last)
            })
    }

    /// The thread did not come to its end, and might go on. Of one that goes round in a loop it is asked
    /// whether it can leave it.
    pub fn is_cut(&self, thread: usize) -> bool {
        let path = &self.threads[thread];
        let chain = &self.ctp.threads[thread];
        let goes_round = path.events.iter().enumerate().any(|(number, event)| match event.kind {
            Kind::AwaitFailed => true,
            Kind::Try => {
                awaiting(&self.trace, &self.ctp, &chain[number + 1..]) == Kind::AwaitFailed
            }
            _ => false,
        });
        !path.ended && !goes_round && self.can_go_on(thread)
    }

    /// The locks that rounds of loops that wait take, and those that are only tried, by their names. A round that leads to
    /// another is never asked for: a try that would fail because of it is not either.
    pub fn polled_and_tried(&self) -> (HashSet<&str>, HashSet<&str>) {
        let (mut polled, mut tried) = (HashSet::new(), HashSet::new());
        let op = |id: EventId| &self.trace.event(id).op;
        let name = |lock: ObjectId| &*self.trace.objects[lock.index()].name;
        for chain in self.trace.events_by_thread() {
            let mut in_round = false;
            for (number, &id) in chain.iter().enumerate() {
                let decides = matches!(
                    chain.get(number + 1).map(|&next| op(next)),
                    Some(Op::Await(AwaitMark::Test | AwaitMark::Failed))
                );
                match op(id) {
                    Op::Await(AwaitMark::Round) => in_round = true,
                    Op::Await(_) => in_round = false,
                    Op::Sync(lock, SyncOp::Acquire(step) | SyncOp::AcquireFailed(step)) => {
                        if in_round {
                            polled.insert(name(*lock));
                        }
                        if step.by_try && !decides {
                            tried.insert(name(*lock));
                        }
                    }
                    _ => {}
                }
            }
        }
        (polled, tried)
    }

    /// The read-modify-writes in the round of a loop that waits that the event with this number leaves.
    pub fn round_updates(&self, thread: usize, number: usize) -> Vec<EventId> {
        let op = |id: EventId| &self.trace.event(self.ctp.event(id).origin).op;
        let before = self.threads[thread].events[..number].iter().rev().map(|event| event.id);
        let round = before.take_while(|&id| *op(id) != Op::Await(AwaitMark::Round));
        round.filter(|&id| matches!(op(id), Op::ReadModifyWrite(_))).collect()
    }

    /// What every thread did; equal for runs of one class.
    pub fn identity(&self) -> Vec<(Vec<u32>, Vec<Label>)> {
        let path = |thread: &ThreadPath| {
            (thread.creation.clone(), thread.events.iter().map(|event| event.label).collect())
        };
        let mut threads: Vec<_> = self.threads.iter().map(path).collect();
        threads.sort_unstable();
        threads
    }
}

impl Class {
    /// The identity as a number that is the same in every process.
    pub fn digest(&self, labels: &Labels) -> u64 {
        let mut threads: Vec<(&[u32], Vec<u64>)> = Vec::new();
        for thread in &self.threads {
            let labels = thread.events.iter().map(|event| labels.digest(event.label));
            threads.push((&thread.creation, labels.collect()));
        }
        threads.sort_unstable();
        part::digest(&threads)
    }
}

impl ThreadPath {
    /// The last step before the event with this number: who has taken it has also taken all choices
    /// up to that event.
    pub fn step_before(&self, number: usize) -> Option<EventId> {
        self.events[..number].iter().rev().find(|event| event.kind.is_step()).map(|event| event.id)
    }

    /// The step of this thread that is no longer covered by another run of it with so many events in common;
    /// `None` if all are.
    ///
    /// Where the difference is a choice, it is the step before the choice. The earlier step is always
    /// safe: it only makes a question be asked once more.
    pub fn first_uncovered(&self, number: usize) -> Option<EventId> {
        let event = self.events.get(number)?;
        let here = match event.kind {
            Kind::Step | Kind::Try => Some(event.id),
            Kind::Branch
            | Kind::Await
            | Kind::AwaitFailed
            | Kind::Assertion(_)
            | Kind::Addressed => self.step_before(number),
        };
        here.or(Some(event.id))
    }

    /// How many first events are the same in the other run of the thread.
    pub fn agreement(&self, theirs: &[PathEvent]) -> usize {
        self.events.iter().zip(theirs).take_while(|(one, two)| one.label == two.label).count()
    }
}

/// The expression of which a branch or an address demands a constant, and the constant: `x == 5`, or a
/// value that code which is not seen was given, and that is therefore held.
pub(crate) fn demanded(ctp: &ConcurrentTraceProgram, event: EventId) -> Option<(TermId, u64)> {
    let parts = GoalBuilder::new(ctp).local_parts(event);
    parts.into_iter().find_map(|part| {
        let Term::Apply(Operator::Eq, sides) = ctp.terms.term(part) else { return None };
        let [one, two] = sides[..] else { return None };
        let constant = |term: TermId| match ctp.terms.term(term) {
            Term::Constant(Value::BitVec { bits, .. }) => Some(*bits),
            _ => None,
        };
        constant(one).map(|bits| (two, bits)).or(constant(two).map(|bits| (one, bits)))
    })
}

/// What kind of branch it is that these events of its thread follow.
fn awaiting(trace: &Trace, ctp: &ConcurrentTraceProgram, after: &[EventId]) -> Kind {
    let op = |id: &EventId| &trace.event(ctp.event(*id).origin).op;
    match after.first().map(op) {
        Some(Op::Await(AwaitMark::Test)) => Kind::Await,
        Some(Op::Await(AwaitMark::Failed)) => {
            // What went round and is still there wrote something.
            let marks = after.iter().filter(|id| matches!(op(id), Op::Await(_)));
            let last = after.last().is_some_and(|id| *op(id) == Op::Await(AwaitMark::Again));
            match last && marks.count() == 2 {
                true => Kind::AwaitFailed,
                false => Kind::Branch,
            }
        }
        _ => Kind::Branch,
    }
}

/// Which reads another thread can have an influence on.
struct Influence<'t> {
    trace: &'t Trace,
    chains: &'t [Vec<EventId>],
    influenced: &'t HashSet<EventId>,
}

impl Influence<'_> {
    /// Can others have an influence on the choice at this event?
    fn reaches(&self, op: &Op) -> bool {
        let term = match op {
            Op::Branch(condition) | Op::Assert(condition) => condition.term,
            Op::Read(access) | Op::Write(access) => access.address,
            Op::ReadModifyWrite(step) => step.address,
            _ => return true,
        };
        term.is_some_and(|term| mentions(self.trace, self.chains, term, self.influenced))
    }
}

fn path_event(
    influence: &Influence<'_>,
    ctp: &ConcurrentTraceProgram,
    builder: &GoalBuilder<'_>,
    id: EventId,
    labels: &mut Labels,
) -> PathEvent {
    let trace = influence.trace;
    let event = trace.event(ctp.event(id).origin);
    let kind = match &event.op {
        Op::Branch(_) => Kind::Branch,
        Op::Assert(condition) => Kind::Assertion(condition.outcome),
        Op::Sync(_, SyncOp::AcquireFailed(_) | SyncOp::SemaphoreWaitFailed) => Kind::Try,
        Op::Sync(lock, SyncOp::Acquire(step)) if step.by_try => Kind::Try,
        Op::Sync(
            _,
            SyncOp::SemaphoreWait { by_try: true, .. } | SyncOp::WaitEnd { timed: true, .. },
        ) => Kind::Try,
        _ => match ctp.event(id).action {
            Action::Guarded { .. } => {
                let parts = builder.local_parts(id);
                match parts.iter().any(|&part| !ctp.terms.leaves(part).is_empty()) {
                    true => Kind::Addressed,
                    false => Kind::Step,
                }
            }
            _ => Kind::Step,
        },
    };
    let place = event.site.map(|site| &trace.sites[site.index()]);
    let variable = match &event.op {
        Op::Read(access) | Op::Write(access) => Some(access.variable),
        Op::ReadModifyWrite(step) => Some(step.variable),
        _ => None,
    };
    // Any other address is the same wherever the choices are.
    let value = match (kind, variable) {
        (Kind::Addressed, Some(variable)) => {
            trace.variables[variable.index()].memory.map(|memory| memory.address)
        }
        (Kind::Branch, _) => demanded(ctp, id).map(|(_, value)| value),
        _ => None,
    };
    let here = Signature {
        operation: event.op.keyword(),
        place: place.map(|site| (site.file.clone(), site.line, site.column)),
        object: None,
        outcome: match event.op {
            Op::Branch(condition) | Op::Assert(condition) => Some(condition.outcome),
            _ => None,
        },
        value: None,
    };
    let object = event.op.object().map(|object| trace.objects[object.index()].name.clone());
    let label = labels.of(Signature { object, value, ..here.clone() });
    let place = labels.of(here);
    let influenced = match kind {
        // What its address or guard is made of is not always in the operation's own term.
        Kind::Addressed if !has_address_term(&event.op) => true,
        _ => influence.reaches(&event.op),
    };
    PathEvent { id, kind, label, place, value, influenced }
}

/// May a thread that waits be able to go on after it?
fn may_wake(op: &Op) -> bool {
    matches!(
        op,
        Op::Write(_)
            | Op::ReadModifyWrite(_)
            | Op::Sync(
                _,
                SyncOp::Release(_)
                    | SyncOp::WaitBegin { .. }
                    | SyncOp::Signal
                    | SyncOp::Broadcast
                    | SyncOp::SemaphorePost
                    | SyncOp::BarrierArrive
                    | SyncOp::Send { .. }
                    | SyncOp::Receive { .. }
            )
            | Op::ThreadEnd
    )
}

/// Does the operation say what its address was computed from?
fn has_address_term(op: &Op) -> bool {
    match op {
        Op::Read(access) | Op::Write(access) => access.address.is_some(),
        Op::ReadModifyWrite(step) => step.address.is_some(),
        _ => false,
    }
}
