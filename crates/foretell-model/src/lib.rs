//! The model of a trace: what every other interleaving of its events may do.
//!
//! [`build`] turns a trace into the guarded assignments of a [`ctp`] (004 section 3, 000 section 2),
//! [`replay`] gives the state at the start of a window, [`cssa`] renames the variables so that each
//! use names the definitions it may see, [`assertions`] ends runs at an assertion that fails,
//! [`validate`] is the independent interpreter that accepts or rejects a witness, [`brute`] tries every
//! interleaving of a small one, [`must_order`] and [`lockset`] are the cheap analyses that come first,
//! [`kept`] finds what the model of channels leaves out, [`count`] counts interleavings.
//! Nothing here knows a solver.

pub mod assertions;
pub mod brute;
pub mod build;
mod channel;
pub mod count;
pub mod cssa;
pub mod ctp;
pub mod kept;
mod layout;
pub mod lockset;
pub mod must_order;
pub mod replay;
pub mod slice;
pub mod validate;
