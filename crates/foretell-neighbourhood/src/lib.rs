//! Why an interleaving goes wrong, and which synchronisation repairs it (001 sections 2 to 4).
//!
//! [`explain()`] takes a trace and gives the bad and the good neighbourhood as happens-before formulas
//! ([`formula`]; exact by Algorithm 1, succinct by Algorithm 2), the kind of bug they show
//! ([`summary`]) and synchronisation that removes it, verified ([`synthesis`]); [`text`], [`json`]
//! and [`picture`] show it. [`explain_finding`] does the same for one finding of the predictor.
//!
//! Where an interleaving is bad is decided by exploring the concurrent trace program with exact values;
//! free inputs stay symbolic. What is not decided within the limits is reported as unknown.

mod engine;
mod exact;
pub mod explain;
pub mod finding;
pub mod formula;
pub mod frames;
pub mod json;
pub mod limits;
pub mod lines;
pub mod picture;
pub mod property;
pub mod succinct;
pub mod summary;
pub mod synthesis;
pub mod text;

pub use engine::inputs::SolverFactory;
pub use explain::{
    BadRun, ExplainError, Explanation, Options, Phases, Statistics, Verdict, explain,
};
pub use finding::{FindingExplanation, explain_finding, finding_options};
pub use formula::{Atom, HbFormula, KnownOrder, NormalForm};
pub use property::Properties;
pub use succinct::{Limits, Work};
pub use summary::{BugKind, BugSummary};
pub use synthesis::{Primitive, Region, Synthesis, Verification};
