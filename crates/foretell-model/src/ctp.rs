//! The concurrent trace program (CTP): each event a guarded assignment, each thread a sequence,
//! no order between threads but what the guards force (004 and 000, Definition 1).
//!
//! A program step, a lock, a semaphore, a condition, a barrier, fork and join all become the same
//! three kinds of [`Action`] over variables; synchronisation uses auxiliary shared variables
//! ([`Role`]). Event ids in a CTP are its own, dense from 0; [`CtpEvent::origin`] leads back to the
//! trace.
//!
//! How each operation of a trace becomes an action is described in [`crate::build`].

use foretell_trace::{
    EventId, LockMode, ObjectId, Scope, Sort, TermId, TermStore, ThreadId, Value, VariableId,
};

/// The papers' `CTP_ρ`.
#[derive(Clone, Debug)]
pub struct ConcurrentTraceProgram {
    /// Owns every term below. Leaves are `Variable` and `Primed` only.
    pub terms: TermStore,
    /// Those of the trace first, under the same ids, then auxiliary ones.
    pub variables: Vec<CtpVariable>,
    /// The events of each thread in program order.
    pub threads: Vec<Vec<EventId>>,
    /// The events; `EventId` is the index.
    pub events: Vec<CtpEvent>,
    /// Pairs that every interleaving keeps in this order.
    pub orders: Vec<(EventId, EventId)>,
    /// First and last event of stretches of one thread that run without interruption.
    pub atomic_sections: Vec<(EventId, EventId)>,
    /// The stretches in which a thread holds a lock; together with fixed values of the lock
    /// variables they say all that acquire and release do.
    pub sections: Vec<LockSection>,
    /// Holds of the initial values.
    pub precondition: Option<TermId>,
}

/// Which runs of a CTP count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every event takes place.
    Whole,
    /// Each thread runs some first part of its events (000 section 5).
    Prefix,
}

/// From an acquire to its release by one thread; the inner steps of a recursive mutex open none.
/// Two sections of one lock exclude each other unless both are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSection {
    /// The lock.
    pub lock: ObjectId,
    /// The holder.
    pub thread: ThreadId,
    /// How it is held.
    pub mode: LockMode,
    /// The event that takes it (an acquire or the end of a condition wait); `None`: it is held
    /// from the start.
    pub acquire: Option<EventId>,
    /// The event that gives it back (a release or the begin of a condition wait); `None`: it is
    /// held to the end.
    pub release: Option<EventId>,
}

/// A variable of a CTP.
#[derive(Clone, Debug, PartialEq)]
pub struct CtpVariable {
    /// For people.
    pub name: Box<str>,
    /// The values it takes.
    pub sort: Sort,
    /// Who can see it.
    pub scope: Scope,
    /// Value before the first event; `None` is any value that the precondition allows.
    pub initial: Option<Value>,
    /// What it stands for.
    pub role: Role,
}

/// What a CTP variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A variable of the program.
    Data,
    /// The result of a read, local to its thread.
    ReadValue,
    /// Holder of a lock: 0 when free (or held by readers), else the thread's number + 1.
    Lock(ObjectId),
    /// Does this thread hold the reader-writer lock as a reader?
    Reader(ObjectId, ThreadId),
    /// Any other state of a synchronisation object.
    Synchronisation(ObjectId),
    /// How far a thread is: 0 not started, 1 running, 2 ended.
    ThreadState(ThreadId),
    /// Which of several waiters a signal wakes, or whether a wait with a time limit gives up: a free
    /// input, used by one event only.
    Choice(ObjectId),
}

/// An event of a CTP.
#[derive(Clone, Debug, PartialEq)]
pub struct CtpEvent {
    /// The thread.
    pub thread: ThreadId,
    /// Index in the thread's sequence.
    pub position: u32,
    /// The trace's event that it models.
    pub origin: EventId,
    /// What it does.
    pub action: Action,
}

/// What an event does to the state, in one step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Possible when the guard holds; then assigns in parallel.
    Guarded {
        /// Over unprimed variables.
        guard: TermId,
        /// New values, over unprimed variables.
        assignments: Vec<(VariableId, TermId)>,
    },
    /// Any change of the named variables that the predicate allows.
    Transition {
        /// Over unprimed and primed variables.
        predicate: TermId,
        /// The variables that may change.
        changed: Vec<VariableId>,
    },
    /// Always possible; the run is bad when the condition does not hold.
    Assert {
        /// Over unprimed variables.
        condition: TermId,
    },
}

impl Action {
    /// The variables that the action gives a new value.
    pub fn defined(&self) -> Vec<VariableId> {
        match self {
            Action::Guarded { assignments, .. } => {
                assignments.iter().map(|&(variable, _)| variable).collect()
            }
            Action::Transition { changed, .. } => changed.clone(),
            Action::Assert { .. } => Vec::new(),
        }
    }
}

impl ConcurrentTraceProgram {
    /// The event.
    pub fn event(&self, id: EventId) -> &CtpEvent {
        &self.events[id.index()]
    }

    /// The CTP event that models the trace's event, if the CTP has it.
    pub fn event_of(&self, origin: EventId) -> Option<EventId> {
        // Events are numbered in the trace's order, so their origins are sorted.
        self.events.binary_search_by_key(&origin, |event| event.origin).ok().map(EventId::from)
    }
}
