//! Concurrent static single assignment (004 section 3.1, 000 section 4.1): every variable is
//! defined once, and every use of a shared variable is a π-function over the definitions that it
//! may see.

use foretell_trace::{EventId, TermId, TermStore, VariableId};

/// A CTP in CSSA form. Leaves of its terms are symbols only.
#[derive(Clone, Debug)]
pub struct Cssa {
    /// Owns every term below.
    pub terms: TermStore,
    /// One entry for each event of the CTP.
    pub events: Vec<CssaEvent>,
    /// The π-functions, by event.
    pub pi_functions: Vec<PiFunction>,
    /// The initial value of each variable: a constant or a symbol.
    pub initial: Vec<TermId>,
    /// Holds of the initial values.
    pub precondition: Option<TermId>,
}

/// An event in CSSA form.
#[derive(Clone, Debug, PartialEq)]
pub struct CssaEvent {
    /// Must hold for the event to take place (for an assertion: true).
    pub guard: TermId,
    /// For an assertion: what it demands.
    pub assertion: Option<TermId>,
    /// Definitions: shared variables and their new values.
    pub definitions: Vec<(VariableId, TermId)>,
}

/// `symbol ← π(v₁, …, vₗ)` at `event` (000 Definition 3).
#[derive(Clone, Debug, PartialEq)]
pub struct PiFunction {
    /// The event that uses the variable.
    pub event: EventId,
    /// The shared variable.
    pub variable: VariableId,
    /// The name that the use has now.
    pub symbol: TermId,
    /// The definitions it may see, pruned by must-happens-before and lock semantics.
    pub choices: Vec<PiChoice>,
    /// All other definitions of the variable that may come in between (choices included).
    pub interfering: Vec<EventId>,
}

/// One definition that a π-function may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiChoice {
    /// The defining event; `None` is the initial value.
    pub definition: Option<EventId>,
    /// The value it gives.
    pub value: TermId,
}
