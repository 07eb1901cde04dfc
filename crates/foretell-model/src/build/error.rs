//! What in a trace has no meaning in the model.

use foretell_trace::{EventId, Sort, ThreadId};

/// Why a trace has no CTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A term mentions the result of something that is not an earlier read of this thread.
    UnknownRead {
        /// The event with the term.
        event: EventId,
        /// The reader.
        thread: ThreadId,
        /// The index that should be a read.
        index: u32,
    },
    /// A write has neither a value nor a term, or a read outside the window no value.
    MissingValue {
        /// The event.
        event: EventId,
    },
    /// A term's sort is not that of the variable it is assigned to or stands for.
    Sort {
        /// The event.
        event: EventId,
        /// The sort that fits.
        expected: Sort,
        /// The sort it has.
        found: Sort,
    },
    /// A term has a leaf that has no place in a trace.
    Leaf {
        /// The event.
        event: EventId,
    },
    /// A thread uses another thread's local variable.
    ForeignLocal {
        /// The event.
        event: EventId,
        /// The variable.
        variable: Box<str>,
    },
    /// An access has a symbolic address but its variable has no recorded one.
    NoAddress {
        /// The event.
        event: EventId,
    },
    /// A variable overlaps others but is not a bit-vector of its size.
    Overlap {
        /// The variable.
        variable: Box<str>,
    },
    /// The operation does not fit the kind of the object.
    WrongObject {
        /// The event.
        event: EventId,
        /// The object.
        object: Box<str>,
    },
    /// A barrier for nobody.
    EmptyBarrier {
        /// The barrier.
        object: Box<str>,
    },
    /// A lock is given back that the thread cannot hold.
    ReleaseWithoutAcquire {
        /// The event.
        event: EventId,
    },
    /// An event of a window is not the next one of its thread.
    NotNext {
        /// The event.
        event: EventId,
    },
    /// A transition predicate before the window leaves its state open.
    NotDeterministic {
        /// The event.
        event: EventId,
    },
    /// The trace has no observed order but needs one: for a window, or because it has no values.
    NotObserved,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::UnknownRead { event, thread, index } => write!(
                f,
                "event {event:?} mentions the result of {thread:?}#{index}, which is no earlier read of its thread"
            ),
            BuildError::MissingValue { event } => {
                write!(f, "event {event:?} has neither a value nor a term")
            }
            BuildError::Sort { event, expected, found } => {
                write!(f, "event {event:?} needs a term of sort {expected}, not {found}")
            }
            BuildError::Leaf { event } => {
                write!(f, "event {event:?} has a term with a leaf that cannot stand in a trace")
            }
            BuildError::ForeignLocal { event, variable } => {
                write!(f, "event {event:?} uses `{variable}`, which is local to another thread")
            }
            BuildError::NoAddress { event } => write!(
                f,
                "event {event:?} has a symbolic address but its variable has no recorded address"
            ),
            BuildError::Overlap { variable } => write!(
                f,
                "variable `{variable}` overlaps others but is not a bit-vector of its size"
            ),
            BuildError::WrongObject { event, object } => {
                write!(f, "event {event:?} does not fit the kind of `{object}`")
            }
            BuildError::EmptyBarrier { object } => write!(f, "barrier `{object}` has no parties"),
            BuildError::ReleaseWithoutAcquire { event } => {
                write!(f, "event {event:?} releases a lock that its thread cannot hold")
            }
            BuildError::NotNext { event } => {
                write!(f, "event {event:?} is not the next one of its thread in the window")
            }
            BuildError::NotDeterministic { event } => {
                write!(f, "event {event:?} leaves the state at the window's start open")
            }
            BuildError::NotObserved => {
                f.write_str("the trace has no observed order, which is needed here")
            }
        }
    }
}

impl std::error::Error for BuildError {}
