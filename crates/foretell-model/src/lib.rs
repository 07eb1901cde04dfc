//! The model of a trace: what every other interleaving of its events may do.
//!
//! [`ctp`] turns a trace into guarded assignments (004 and 000, section 2), [`cssa`] renames them
//! so that each use names the definitions it may see, [`validate`] is the independent interpreter
//! that accepts or rejects a witness. Nothing here knows a solver.

pub mod cssa;
pub mod ctp;
pub mod lockset;
pub mod must_order;
pub mod validate;
