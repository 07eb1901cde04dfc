//! A question: events in chains, π-functions, and formulas over `Before` atoms and symbols.

use std::time::Instant;

use foretell_trace::{EventId, TermId, TermStore};

/// What a solver is asked about.
///
/// A solution is a total order of the events (so `Before(a, b)` is the negation of `Before(b, a)`)
/// that extends `chains` and `edges`, and values of the symbols, such that every asserted formula
/// and every [`Pi`] holds.
#[derive(Clone, Debug, Default)]
pub struct OrderProblem {
    /// Owns every term below; leaves are `Before` and `Symbol` only.
    pub terms: TermStore,
    /// Every event is in exactly one chain; a chain is totally ordered.
    pub chains: Vec<Vec<EventId>>,
    /// Further pairs that always hold.
    pub edges: Vec<(EventId, EventId)>,
    /// Reads-from structure.
    pub pis: Vec<Pi>,
    /// Formulas that hold.
    pub asserted: Vec<TermId>,
    /// Names of the events, for dumps; may be empty.
    pub names: Vec<String>,
    /// The embedded solver gives up then, also while it writes clauses.
    pub deadline: Option<Instant>,
}

/// If `active` holds, then for some choice its definition comes before `event`, no event of
/// `interfering` lies between the two, and `symbol` has the choice's value. The initial value (a
/// choice without definition) demands that no event of `interfering` comes before `event`.
///
/// If `active` does not hold, the value of `symbol` is unspecified: a backend may restrict it to
/// values that the choices could give, so formulas may depend on it only where `active` holds.
#[derive(Clone, Debug)]
pub struct Pi {
    /// The reading event.
    pub event: EventId,
    /// When the constraint counts (true, or "the event is part of the prefix").
    pub active: TermId,
    /// The value seen.
    pub symbol: TermId,
    /// Where it may come from: a definition (`None` is the initial value) and the value it gives.
    pub choices: Vec<(Option<EventId>, TermId)>,
    /// All writes of the variable but the event's own, choices included.
    pub interfering: Vec<EventId>,
}
