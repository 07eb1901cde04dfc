//! What can go wrong in another interleaving of a trace.

pub mod access;
pub mod assertion;
pub mod candidates;
pub mod crash;
pub mod deadlock;
pub mod dependence;
pub mod generate;
pub mod goal;
pub mod order;
pub mod pattern;
pub mod question;
pub mod race;
pub mod planner;
pub mod region;
pub mod sample;

pub use pattern::{AccessPattern, PatternKind};
