//! What can go wrong in another interleaving of a trace.

pub mod access;
pub mod candidates;
pub mod generate;
pub mod pattern;
pub mod region;

pub use pattern::{AccessPattern, PatternKind};
