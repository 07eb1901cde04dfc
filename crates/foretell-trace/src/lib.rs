//! What a run did: events, symbolic terms, source sites, and the formats that carry them.
//!
//! This crate is the bottom of the stream *program → trace → model → formula → schedule → replay →
//! report*. It knows nothing of analysis.

pub mod event;
pub mod format;
pub mod id;
pub mod info;
mod irregular;
mod keeping;
mod names;
pub mod schedule;
pub mod sexpr;
pub mod sync;
pub mod term;
pub mod trace;
pub mod validate;
pub mod waiting;

pub use event::{
    Access, AwaitMark, Condition, Event, Guarded, LockMode, LockStep, MemoryOrder, Op,
    ReadModifyWrite, Transition,
};
pub use format::{Format, Position, ReadError, WriteError, read_path, write_path};
pub use id::{EventId, ObjectId, SiteId, SymbolId, TermId, ThreadId, VariableId};
pub use irregular::irregular_locks;
pub use sync::{SyncKind, SyncOp};
pub use term::{Operator, Rational, ScalarSort, Sort, Term, TermStore, Value};
pub use trace::{
    ChannelKind, Indexer, MemoryRange, Metadata, Object, ObjectKind, Scope, Site, Thread, Trace,
    Unseen, Variable,
};
