//! The decision procedures behind the neighbourhoods: explicit exploration of a concurrent trace
//! program, a cheap abstract run, and data-flow analysis of a run.
//!
//! Values are exact (integers, reals, arrays, bit-vectors), so no question about a closed program
//! needs a solver. Free inputs stay symbolic; only conditions over them are given to one.

pub(crate) mod abstract_run;
pub(crate) mod cover;
pub(crate) mod explore;
pub(crate) mod flow;
pub(crate) mod inputs;
pub(crate) mod symbolic;
pub(crate) mod system;
