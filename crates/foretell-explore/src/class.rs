//! A class of paths: all executions in which each thread takes the same choices, represented by the
//! trace of one of them.

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_model::must_order::MustOrder;
use foretell_predict::goal::GoalBuilder;
use foretell_trace::{EventId, Op, Operator, Term, TermId, Trace, Value};

/// A class.
pub(crate) struct Class {
    pub trace: Trace,
    pub ctp: ConcurrentTraceProgram,
    pub order: MustOrder,
    pub threads: Vec<ThreadPath>,
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
    pub signature: Signature,
}

/// What happened, where, to what, and how it came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    operation: &'static str,
    place: Option<(Box<str>, u32, u32)>,
    object: Option<Box<str>>,
    outcome: Option<bool>,
    /// The address that was computed, or the value that a choice demands.
    pub value: Option<u64>,
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
    /// A step whose address was computed from what was read: a choice comes right before it.
    Addressed,
    /// A step that comes out one way or the other, by the state of an object: a try.
    Try,
}

impl Kind {
    /// Is it a step, which another thread can notice?
    pub fn is_step(self) -> bool {
        matches!(self, Kind::Step | Kind::Addressed | Kind::Try)
    }

    /// Is something decided by what the thread read before?
    pub fn decides(self) -> bool {
        matches!(self, Kind::Branch | Kind::Addressed | Kind::Assertion(_))
    }
}

impl Class {
    /// The class of a run; `ended` says that the program came to its end by itself. `None` where the
    /// trace has no concurrent trace program.
    pub fn new(trace: Trace, ended: bool) -> Option<Self> {
        let ctp = ConcurrentTraceProgram::build(&trace).ok()?;
        let order = MustOrder::new(&trace).ok()?;
        let builder = GoalBuilder::new(&ctp);
        let threads = ctp.threads.iter().enumerate();
        let threads = threads
            .map(|(thread, chain)| {
                let events = chain.iter().map(|&id| path_event(&trace, &ctp, &builder, id));
                let last = chain.last().map(|&id| &trace.event(ctp.event(id).origin).op);
                ThreadPath {
                    creation: trace.threads[thread].path.clone(),
                    events: events.collect(),
                    // The first thread ends with the program.
                    ended: matches!(last, Some(Op::ThreadEnd)) || (thread == 0 && ended),
                }
            })
            .collect();
        Some(Self { trace, ctp, order, threads })
    }

    /// The thread with this creation path.
    pub fn thread(&self, creation: &[u32]) -> Option<&ThreadPath> {
        self.threads.iter().find(|thread| *thread.creation == *creation)
    }

    /// Did every thread do the same in both?
    pub fn is_same(&self, other: &Class) -> bool {
        let signatures = |path: &ThreadPath| -> Vec<Signature> {
            path.events.iter().map(|event| event.signature.clone()).collect()
        };
        self.threads.len() == other.threads.len()
            && self.threads.iter().all(|one| {
                other.thread(&one.creation).is_some_and(|two| signatures(one) == signatures(two))
            })
    }
}

impl ThreadPath {
    /// The last step before the event with this number: who has taken it has also taken all choices
    /// up to that event.
    pub fn step_before(&self, number: usize) -> Option<EventId> {
        self.events[..number].iter().rev().find(|event| event.kind.is_step()).map(|event| event.id)
    }

    /// The step of this thread that is no longer covered by the other run of it; `None` if all are.
    ///
    /// Where the difference is a choice, it is the step before the choice. The earlier step is always
    /// safe: it only makes a question be asked once more.
    pub fn first_uncovered(&self, other: Option<&ThreadPath>) -> Option<EventId> {
        let theirs = other.map_or(&[][..], |other| &other.events);
        for (number, event) in self.events.iter().enumerate() {
            let same = theirs.get(number).is_some_and(|their| their.signature == event.signature);
            if same {
                continue;
            }
            let here = match event.kind {
                Kind::Step | Kind::Try => Some(event.id),
                Kind::Branch | Kind::Assertion(_) | Kind::Addressed => self.step_before(number),
            };
            return here.or(Some(event.id));
        }
        None
    }

    /// Is everything before the event with this number the same in the other run of the thread?
    pub fn agrees_before(&self, number: usize, other: &ThreadPath) -> bool {
        other.events.len() >= number
            && self.events[..number]
                .iter()
                .zip(&other.events)
                .all(|(one, two)| one.signature == two.signature)
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

fn path_event(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    builder: &GoalBuilder<'_>,
    id: EventId,
) -> PathEvent {
    let event = trace.event(ctp.event(id).origin);
    let kind = match &event.op {
        Op::Branch(_) => Kind::Branch,
        Op::Assert(condition) => Kind::Assertion(condition.outcome),
        Op::AcquireFailed(_) | Op::SemaphoreWaitFailed(_) => Kind::Try,
        Op::Acquire(step) if step.by_try => Kind::Try,
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
    let object = event.op.object().map(|object| trace.objects[object.index()].name.clone());
    let signature = Signature {
        operation: event.op.keyword(),
        place: place.map(|site| (site.file.clone(), site.line, site.column)),
        // Any other address is the same wherever the choices are.
        value: match (kind, variable) {
            (Kind::Addressed, Some(variable)) => {
                trace.variables[variable.index()].memory.map(|memory| memory.address)
            }
            (Kind::Branch, _) => demanded(ctp, id).map(|(_, value)| value),
            _ => None,
        },
        object,
        outcome: match event.op {
            Op::Branch(condition) | Op::Assert(condition) => Some(condition.outcome),
            _ => None,
        },
    };
    PathEvent { id, kind, signature }
}
