//! What can go wrong in another interleaving of a trace.
//!
//! [`predict()`] is the whole of it: cheap filters make [`question`]s of a trace (which code
//! locations could be involved in what), each question becomes a [`goal`] over a concurrent trace
//! program, and the [`engine`] decides it exactly, with a validated [`witness`] or a proof. What is
//! not decided is told as unknown.
//!
//! One file per property, and a table of them in [`property`]: [`atomicity`] (with [`candidates`] and
//! [`dependence`]), [`assertion`], [`crash`], [`deadlock`], [`race`], [`order`], [`misuse`]. [`divergence`] tells where threads may leave the
//! path of the run. [`planner`] is the second engine.

pub mod access;
mod apart;
mod asking;
pub mod assertion;
pub mod atomicity;
pub mod candidates;
pub mod causal;
pub mod context;
pub mod counters;
pub mod crash;
pub mod deadlock;
pub mod dependence;
pub mod divergence;
pub mod engine;
pub mod exclusion;
pub mod filter;
pub mod finding;
pub mod flag_section;
pub mod goal;
pub mod influence;
pub mod limits;
pub mod livelock;
pub mod misuse;
pub mod options;
pub mod order;
pub mod orders;
pub mod pattern;
pub mod planner;
mod predict;
mod private;
pub mod progress;
pub mod property;
pub mod question;
pub mod race;
pub mod region;
mod rest;
pub mod sample;
mod stale;
mod store_buffer;
mod together;
mod unseen;
pub mod violation;
mod weak_order;
pub mod window;
pub mod witness;

pub use divergence::{Divergence, Divergences, Feeds, divergences};
pub use filter::{Filtered, Filters};
pub use finding::{
    AccessInfo, Finding, Prediction, PropertySummary, Reason, Statistics, Status, WitnessSchedule,
};
pub use foretell_solve::Backend;
pub use options::{Model, Options, Window};
pub use pattern::{AccessPattern, PatternKind};
pub use predict::{PredictError, predict};
pub use property::FindingKind;
pub use together::predict_together;
pub use violation::Violation;
