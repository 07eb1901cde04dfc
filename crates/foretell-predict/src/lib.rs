//! What can go wrong in another interleaving of a trace.

pub mod pattern;

pub use pattern::{AccessPattern, PatternKind};
