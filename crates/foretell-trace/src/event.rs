//! The one event type: everything that a recorded run, a text trace or a CTRC file can say
//! happened.
//!
//! An event belongs to a thread, has an index in that thread, and may have a source site. Plain
//! program steps are reads, writes and branches of concrete values, each with a symbolic
//! expression where one is known. Abstract steps are guarded assignments (the papers' `⟨tid,
//! (assume(c), asgn)⟩`, 004 section 3.1) and transition predicates over primed variables (001
//! section 2.1).

use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::sync::SyncOp;

/// One step of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The thread that took the step.
    pub thread: ThreadId,
    /// How many events this thread had before.
    pub index: u32,
    /// Where in the source, when known.
    pub site: Option<SiteId>,
    /// What happened.
    pub op: Op,
}

/// What an event did.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// First event of a thread.
    ThreadBegin,
    /// Last event of a thread.
    ThreadEnd,
    /// Created the thread.
    Fork(ThreadId),
    /// Waited for the thread's end.
    Join(ThreadId),
    /// Read a location; terms name the result `ReadValue(thread, index)`.
    Read(Access),
    /// Wrote a location.
    Write(Access),
    /// Atomic read-modify-write in one step (exchange, fetch-and-add, compare-and-swap).
    ReadModifyWrite(Box<ReadModifyWrite>),
    /// A step on a synchronisation object; of a wait, its condition.
    Sync(ObjectId, SyncOp),
    /// A memory fence.
    Fence(MemoryOrder),
    /// A branch, switch or select: the path went on because `condition` evaluated to `outcome`.
    Branch(Condition),
    /// The program asserted `condition`; `outcome` says whether it held.
    Assert(Condition),
    /// The user marked the begin of a block that should be atomic.
    RegionBegin(Box<str>),
    /// The end of the innermost open block.
    RegionEnd,
    /// Entered a function.
    Call(Box<str>),
    /// Left the innermost function.
    Return,
    /// Memory came into being.
    Alloc {
        /// First address.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// Memory ceased to be.
    Free {
        /// First address.
        address: u64,
    },
    /// A value came from outside (a read, the clock, a random number).
    Input {
        /// Which source, e.g. `read`.
        source: Box<str>,
        /// What it gave.
        value: u64,
    },
    /// A mark in a loop that waits, as the compiler pass found it.
    Await(AwaitMark),
    /// `assume(guard)` and, in the same step, the parallel assignments.
    Guarded(Box<Guarded>),
    /// Any step whose values before (unprimed) and after (primed) satisfy the predicate.
    Transition(Box<Transition>),
}

/// A mark in a loop that waits. Of a round that is followed by another nothing is left, so that it can be
/// left out of any execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AwaitMark {
    /// A round begins.
    Round,
    /// The branch right before it left the round: with the other outcome it would have gone round
    /// again.
    Test,
    /// The branch right before it makes the loop go round again.
    Failed,
    /// The round is over, and another one follows.
    Again,
}

impl AwaitMark {
    /// The word of the text format.
    pub fn keyword(self) -> &'static str {
        match self {
            AwaitMark::Round => "await",
            AwaitMark::Test => "await-test",
            AwaitMark::Failed => "await-failed",
            AwaitMark::Again => "await-again",
        }
    }
}

/// A plain or atomic access of one location.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The location.
    pub variable: VariableId,
    /// The bits read or written; `None` where the format has no values (STD).
    pub value: Option<u64>,
    /// For a write: the value as an expression over this thread's earlier reads. Absent means that
    /// it does not depend on any (or that the trace has no terms, see
    /// [`crate::trace::Metadata::symbolic`]).
    pub term: Option<TermId>,
    /// The address as an expression, where it depends on earlier reads.
    pub address: Option<TermId>,
    /// `None` for a plain access.
    pub order: Option<MemoryOrder>,
}

/// An atomic read-modify-write.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadModifyWrite {
    /// The location.
    pub variable: VariableId,
    /// The bits read.
    pub old: Option<u64>,
    /// The bits written; equal to `old` where a compare-and-swap failed.
    pub new: Option<u64>,
    /// The value written, as an expression over this thread's reads (this one included).
    pub term: Option<TermId>,
    /// The address as an expression, where it depends on earlier reads.
    pub address: Option<TermId>,
    /// Memory order.
    pub order: MemoryOrder,
}

/// A step on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockStep {
    /// Exclusive for mutexes and writers, shared for readers.
    pub mode: LockMode,
    /// By an operation that fails rather than waits for ever: a try, or one with a time limit.
    pub by_try: bool,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// By one thread.
    Exclusive,
    /// By any number of readers.
    Shared,
}

/// Memory orders of C11 and Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryOrder {
    /// `memory_order_relaxed`
    Relaxed,
    /// `memory_order_acquire` (and consume)
    Acquire,
    /// `memory_order_release`
    Release,
    /// `memory_order_acq_rel`
    AcquireRelease,
    /// `memory_order_seq_cst`
    SequentiallyConsistent,
}

/// A condition and how it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// A Boolean expression over this thread's reads or variables; absent where it depends on none.
    pub term: Option<TermId>,
    /// What it evaluated to.
    pub outcome: bool,
}

/// A guarded assignment; all right-hand sides are evaluated before any variable changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarded {
    /// Must hold for the step to be possible.
    pub guard: TermId,
    /// Variables and their new values.
    pub assignments: Vec<(VariableId, TermId)>,
}

/// A transition predicate.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// Over unprimed and primed variables.
    pub predicate: TermId,
    /// The variables that may change: those primed in the predicate and those that are havocked.
    pub changed: Vec<VariableId>,
}

impl Op {
    /// The synchronisation object that the step is about; of a wait, its condition.
    pub fn object(&self) -> Option<ObjectId> {
        match *self {
            Op::Sync(object, _) => Some(object),
            _ => None,
        }
    }

    /// The word of the text format for this kind of step.
    pub fn keyword(&self) -> &'static str {
        match self {
            Op::ThreadBegin => "begin",
            Op::ThreadEnd => "end",
            Op::Fork(_) => "fork",
            Op::Join(_) => "join",
            Op::Read(_) => "read",
            Op::Write(_) => "write",
            Op::ReadModifyWrite(_) => "rmw",
            Op::Sync(_, step) => step.keyword(),
            Op::Fence(_) => "fence",
            Op::Branch(_) => "branch",
            Op::Assert(_) => "assert",
            Op::RegionBegin(_) => "region",
            Op::RegionEnd => "region-end",
            Op::Call(_) => "call",
            Op::Return => "return",
            Op::Alloc { .. } => "alloc",
            Op::Free { .. } => "free",
            Op::Input { .. } => "input",
            Op::Await(mark) => mark.keyword(),
            Op::Guarded(_) => "assume",
            Op::Transition(_) => "transition",
        }
    }

    /// The terms that the event has, in a fixed order.
    pub fn terms(&self) -> Vec<TermId> {
        match self {
            Op::Read(access) | Op::Write(access) => {
                access.term.into_iter().chain(access.address).collect()
            }
            Op::ReadModifyWrite(step) => step.term.into_iter().chain(step.address).collect(),
            Op::Branch(condition) | Op::Assert(condition) => condition.term.into_iter().collect(),
            Op::Guarded(guarded) => {
                let values = guarded.assignments.iter().map(|&(_, term)| term);
                std::iter::once(guarded.guard).chain(values).collect()
            }
            Op::Transition(transition) => vec![transition.predicate],
            _ => Vec::new(),
        }
    }

    /// The event's terms, to be replaced; the same order as [`Op::terms`].
    pub fn terms_mut(&mut self) -> Vec<&mut TermId> {
        match self {
            Op::Read(access) | Op::Write(access) => {
                access.term.iter_mut().chain(&mut access.address).collect()
            }
            Op::ReadModifyWrite(step) => step.term.iter_mut().chain(&mut step.address).collect(),
            Op::Branch(condition) | Op::Assert(condition) => condition.term.iter_mut().collect(),
            Op::Guarded(guarded) => {
                let values = guarded.assignments.iter_mut().map(|(_, term)| term);
                std::iter::once(&mut guarded.guard).chain(values).collect()
            }
            Op::Transition(transition) => vec![&mut transition.predicate],
            _ => Vec::new(),
        }
    }
}
