//! The concurrent trace program (CTP): each event a guarded assignment, each thread a sequence,
//! no order between threads but what the guards force (004 section 2, 000 Definition 1).
//!
//! A program step, a lock, a semaphore, a condition, a barrier, fork and join all become the same
//! three kinds of [`Action`] over variables; synchronisation uses auxiliary shared variables
//! ([`Role`]). Event ids in a CTP are its own, dense from 0; [`CtpEvent::origin`] leads back to the
//! trace.

use foretell_trace::{
    EventId, ObjectId, Scope, Sort, TermId, TermStore, ThreadId, Value, VariableId,
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
    /// Holds of the initial values.
    pub precondition: Option<TermId>,
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
    /// Holder of a lock: 0 when free, else the thread's number + 1.
    Lock(ObjectId),
    /// Any other state of a synchronisation object.
    Synchronisation(ObjectId),
    /// How far a thread is: 0 not started, 1 running, 2 ended.
    ThreadState(ThreadId),
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
