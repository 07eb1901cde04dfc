//! Small programs on which foretell was once wrong, and programs with the same causes.
//!
//! Each is built and tested as a user would, by the `foretell` binary, and judged by the exit code
//! and the JSON report. One module for each kind of cause; `programs/` has the sources that are too
//! long to stand in a test.

#[allow(dead_code, reason = "the modules come one by one")]
mod common;

mod as_written;
mod carried;
mod causes;
mod clocks;
mod end;
mod entry;
mod every_example;
mod freed;
mod handlers;
mod input;
mod ipc;
mod kernel;
mod lawful;
mod library;
mod limits;
mod memory_order;
mod misuse;
mod optimised;
mod ordinary;
mod path;
mod polling;
mod posix;
mod process;
mod replayed;
mod same_run;
mod status;
mod synchronisation;
mod traps;
mod varying;
mod world;
