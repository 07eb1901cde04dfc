//! Is there an order of the events that satisfies a formula?
//!
//! [`problem`] says what a question is, [`solver`] what an answer is; the backends answer. Nothing
//! here knows what a bug is.

pub mod problem;
pub mod solver;
