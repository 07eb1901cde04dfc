//! Proofs and counterexamples of small concurrent programs (001 section 5).
//!
//! [`verify()`] runs the loop of counterexample-guided abstraction refinement: an abstraction by
//! predicates ([`abstraction`]), a model checker for it ([`mod@check`]), a test whether an abstract
//! counterexample is real ([`path`]), and new predicates if it is not ([`refine`], by interpolating
//! the one trace or the whole neighbourhood of it). A proof is checked again from its file
//! ([`proof`]), a counterexample is run by an interpreter ([`run`]) and, for C, forced on the compiled
//! program ([`compiled`]).
//!
//! *Guaranteed*: "proved" means that every sequentially consistent execution over mathematical
//! integers is free of violations; the front ends say what they add to that ([`c`]). A
//! counterexample is an execution. *Can be missed*: nothing; what is not decided is unknown.

pub mod abstraction;
pub mod bounded;
pub mod c;
pub mod cegar;
pub mod check;
pub mod compiled;
pub mod horn;
pub mod path;
pub mod program;
pub mod proof;
pub mod refine;
pub mod run;
pub mod solver;
pub mod text;

pub use cegar::{Budget, Options, Refinement, Report, Statistics, Verdict, verify};
pub use program::Program;
pub use solver::Trouble;
