//! A prediction counts when the program has done it: forces predicted interleavings on the real
//! program and says what they do.
//!
//! [`run`] makes one controlled run, [`forced`] turns a schedule into turns and holds the run
//! against it, [`effect`] compares it with the recorded run and [`control`] with runs in which nothing
//! is forced, [`judge`] says what that means for the prediction. [`replay`] does it for one schedule
//! file, and [`session`] for everything that was predicted, from the recorded run and from every class of
//! paths that [`foretell_explore`] finds; there [`shrink`] says which turn was the decisive one and
//! [`torn`] which block it tore. [`bounded`] keeps time limits. Papers: the rescheduling phase of 003, the witness replay
//! of 000, the forced interleavings and the execution-path analysis of 002.
//!
//! What is guaranteed: a confirmed finding has happened in the real program. What can be missed: a
//! violation that needs other input, or a path that a limit left open, which is said; see [`program`] and [`effect`] for what
//! is held constant and what is compared.

mod beside;
pub mod bounded;
mod campaign;
pub mod canonical;
pub mod control;
mod cut;
pub mod effect;
mod exploring;
pub mod forced;
pub mod judge;
pub mod limits;
mod lost;
mod predictor;
pub mod program;
pub mod replay;
pub mod run;
pub mod session;
pub mod shrink;
pub mod stored;
mod straying;
pub mod torn;
