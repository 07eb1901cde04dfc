//! Is there an order of the events that satisfies a formula?
//!
//! [`problem`] says what a question is, [`mod@solver`] what an answer is; the backends answer. Nothing
//! here knows what a bug is.

pub mod backend;
mod bitblast;
mod cnf;
pub mod core;
mod domain;
pub mod dump;
pub mod embedded;
pub mod encode;
mod ladder;
mod literals;
pub mod must;
mod order;
pub mod problem;
pub mod process;
pub mod reply;
pub mod smtlib;
pub mod solver;

pub use backend::{Backend, solver};
pub use core::minimal_core;
pub use embedded::Embedded;
pub use must::MustOrder;
pub use problem::{OrderProblem, Pi};
pub use process::{Dialogue, SmtLibSolver, z3};
pub use reply::{Sexpr, parse_value};
pub use solver::{Answer, Budget, Model, OrderSolver, SolveError, Statistics, UnknownReason};
