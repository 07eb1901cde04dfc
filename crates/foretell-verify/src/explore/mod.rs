//! Exact exploration: every reachable state of a program with finitely many is visited.
//!
//! A state has bytes of memory with provenance ([`memory`]), calls and registers
//! ([`state`]), instructions as LLVM defines them ([`machine`]), the threads library as POSIX does
//! ([`library`]). What depends on inputs is a term ([`terms`], [`inputs`]). What C leaves undefined and
//! unoptimised code does not show is refused (`promises`, `progress`). The search ([`search`]) is
//! breadth first, so that a counterexample is short.
//!
//! *Guaranteed*: if the search ends without a violation and without a refusal, no sequentially
//! consistent execution violates a property. *Can be missed*: nothing; if anything is not visited, the
//! verdict is unknown.

mod floats;
pub mod inputs;
pub mod library;
pub mod liveness;
pub mod machine;
pub mod memory;
pub mod order;
mod progress;
mod promises;
pub mod search;
pub mod shown;
pub mod state;
mod symbolic;
pub mod terms;
mod texts;
