//! Traces for tests and benchmarks; no other crate's product code uses it.
//!
//! [`arbitrary`] makes traces that have everything a format can express, [`machine`] small ones that
//! really ran, and [`families`] the papers' benchmarks of any size. All are functions of a seed
//! ([`random`]), so whatever they show can be shown again.

pub mod arbitrary;
pub mod families;
pub mod machine;
pub mod random;

pub use random::Random;
