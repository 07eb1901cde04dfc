//! The library inside the program under test.
//!
//! It is linked with or preloaded into the program and does nothing until `foretell record` asks
//! through the environment. Then
//!
//! - the `scheduler` lets one thread run at a time, as a `policy` says or a schedule that is
//!   `forced`;
//! - the `wrappers` model libc's synchronisation and note inputs;
//! - the `hooks` of our LLVM pass and those of the `tsan` ABI report accesses;
//! - every thread has an `arena` and one of the `stacks` at addresses of its own, the same in every
//!   run;
//! - `outside` knows what the scheduler does not control, and the `watchdog` takes the turn from
//!   threads that are blocked or spin there; `foreign` knows whose a function is that is not instrumented;
//! - `path` records which branches were taken;
//! - the `recorder` appends what happens to memory shared with the process that records;
//! - `replay` makes the scheduler follow a log of sync-only recording;
//! - a `server` makes runs by `fork` instead of being one;
//! - or, in `sync_only` mode, threads run freely and only the order of synchronisation is logged.
//!
//! Invariants: no allocation, lock or system call in the path of an access; never a panic across
//! the border; `errno` and signals stay as they would have been; what belongs
//! to the turn (threads, objects, recorder) is touched by the thread that has it only.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("foretell-runtime knows Linux with glibc on x86-64 only");

mod allocator;
mod arena;
mod channels;
mod clients;
mod contract;
mod fiber;
mod forced;
mod foreign;
mod hooks;
mod local;
mod look;
mod modules;
mod objects;
mod outside;
mod pace;
mod path;
mod policy;
mod processor;
mod real;
mod recorder;
mod replay;
mod scheduler;
mod server;
mod shadow;
mod spin;
mod stacks;
mod start;
mod summaries;
mod sync_only;
mod sys;
mod thread;
mod tsan;
mod turn;
mod watchdog;
mod wrappers;
