//! Proofs and counterexamples of small concurrent programs.
//!
//! C is read as the LLVM IR that clang makes of it ([`ir`]) and explored state by state
//! ([`mod@explore`]); a [`counterexample`] is forced on the compiled program ([`compiled`]), and a
//! proof is checked by an independent interpreter ([`checker`]).
//!
//! Guarded commands are verified by counterexample-guided abstraction refinement (001 section 5):
//! [`verify()`] runs the loop of an abstraction by predicates ([`abstraction`]), a model checker for
//! it ([`mod@check`]), a test whether an abstract counterexample is real ([`path`]), and new
//! predicates if it is not ([`refine`], by interpolating the one trace or its whole neighbourhood). A
//! proof is checked again from its file ([`proof`]), a counterexample is run by an interpreter
//! ([`run`]).
//!
//! *Guaranteed*: "proved" means that every sequentially consistent execution is free of violations.
//! A counterexample is an execution. *Can be missed*: nothing; what is not decided is unknown, and
//! what is not explicitly given a meaning is refused.

pub mod abstraction;
pub mod bounded;
pub mod cegar;
pub mod certificate;
pub mod check;
pub mod checker;
pub mod compiled;
pub mod counterexample;
pub mod explore;
pub mod horn;
pub mod ir;
pub mod limits;
pub mod path;
pub mod program;
pub mod proof;
pub mod refine;
pub mod run;
pub mod solver;
pub mod text;
pub mod witness;

pub use cegar::{Budget, Options, Refinement, Report, Statistics, Verdict, verify};
pub use program::Program;
pub use solver::Trouble;
