//! The independent witness validator: a plain interpreter of a CTP.
//!
//! It shares no code with CSSA or any encoder. It runs the events in the witness's order, checks
//! program order, fixed orders, atomic sections and guards, and says what the state was. What it
//! does not accept is not shown to anyone.

use foretell_trace::{EventId, Value, VariableId};

/// An interleaving (or the first part of one) and the inputs that make it happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Witness {
    /// CTP events in the order they take place; each thread contributes a prefix of its events.
    pub order: Vec<EventId>,
    /// Initial values of variables that have no fixed one.
    pub initial: Vec<(VariableId, Value)>,
    /// Values chosen by transition predicates.
    pub choices: Vec<(EventId, VariableId, Value)>,
}
