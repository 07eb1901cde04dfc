//! An answer, and the trait that all backends implement.

use std::collections::HashMap;

use foretell_trace::{EventId, SymbolId, Term, TermId, TermStore, Value};

/// A solver that keeps what it learned from question to question.
pub trait OrderSolver {
    /// The terms of the problem; new formulas for [`OrderSolver::assert`] and
    /// [`OrderSolver::check`] are built here.
    fn terms(&mut self) -> &mut TermStore;

    /// The formula holds from now on.
    fn assert(&mut self, formula: TermId);

    /// Is there a solution in which all assumptions hold as well?
    fn check(&mut self, assumptions: &[TermId], budget: Budget) -> Answer;

    /// What it cost so far.
    fn statistics(&self) -> Statistics;
}

/// How much work an answer may cost. Never seconds: the same question gives the same answer on
/// every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Conflicts (for an SMT-LIB process: its resource limit is derived from it).
    pub conflicts: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { conflicts: 1_000_000 }
    }
}

/// What a solver says.
#[derive(Clone, Debug)]
pub enum Answer {
    /// There is a solution.
    Satisfiable(Model),
    /// There is none; the core is a subset of the assumptions that is enough for that.
    Unsatisfiable {
        /// Assumptions that cannot hold together.
        core: Vec<TermId>,
    },
    /// It could not be decided.
    Unknown(UnknownReason),
}

/// Why a question was not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// The budget is spent.
    Budget,
    /// The time is over ([`crate::problem::OrderProblem::deadline`]), or the user ended the run.
    Late,
    /// The backend does not support a construct, or the solver process said something else.
    Unsupported(String),
}

/// A solution.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// All events in a total order.
    pub order: Vec<EventId>,
    /// The symbols' values; a missing symbol may have any value.
    pub values: HashMap<SymbolId, Value>,
}

/// A question that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SolveError {
    /// The event is in two chains.
    TwoChains(EventId),
    /// The event is in no chain.
    NoChain(EventId),
    /// A leaf that is neither `Before` nor a symbol.
    Leaf(String),
    /// The solver's process cannot be started.
    Start {
        /// What was run.
        command: String,
        /// What the system said.
        reason: String,
    },
    /// The process does not answer like an SMT-LIB solver.
    NoSolver {
        /// What was run.
        command: String,
        /// What it said or how it ended.
        reason: String,
    },
}

impl std::fmt::Display for SolveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SolveError::TwoChains(event) => write!(f, "event {event:?} is in two chains"),
            SolveError::NoChain(event) => write!(f, "event {event:?} is in no chain"),
            SolveError::Leaf(leaf) => {
                write!(f, "{leaf} in a formula; only `Before` and symbols have a meaning here")
            }
            SolveError::Start { command, reason } => {
                write!(f, "cannot start the solver `{command}`: {reason}")
            }
            SolveError::NoSolver { command, reason } => {
                write!(f, "`{command}` does not answer like an SMT-LIB solver: {reason}")
            }
        }
    }
}

impl std::error::Error for SolveError {}

/// What solving cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of [`OrderSolver::check`].
    pub checks: u64,
    /// Conflicts in the SAT search.
    pub conflicts: u64,
    /// Decisions in the SAT search.
    pub decisions: u64,
    /// Cycles that the order theory found.
    pub cycles: u64,
    /// Literals that the order theory propagated.
    pub order_propagations: u64,
}

impl Model {
    /// Does the formula hold in this solution?
    pub fn holds(&self, terms: &TermStore, formula: TermId) -> Option<bool> {
        let mut place = HashMap::new();
        for (position, &event) in self.order.iter().enumerate() {
            place.insert(event, position);
        }
        terms.holds(formula, &|leaf: &Term| match leaf {
            Term::Before(a, b) => Some(Value::Bool(place.get(a)? < place.get(b)?)),
            Term::Symbol(symbol) => self.values.get(symbol).cloned(),
            _ => None,
        })
    }
}
