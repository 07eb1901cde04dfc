//! What stands between foretell and the outside world.
//!
//! - [`PrivateFolder`] and [`Replacement`]: temporary folders that nobody else can enter, and files
//!   that appear under their final name only when they are complete.
//! - [`stop`]: what happens on SIGINT, SIGTERM and SIGHUP.
//! - [`process`]: foreign processes (solvers, planners) with limits on time and output.
//! - [`launch`]: how programs under test are started.
//! - [`descendants`]: what programs under test leave behind.
//! - [`text`]: text from outside becomes text that a terminal can show safely.
//! - [`sha256`]: the hash by which files and programs are compared.
//! - [`say!`]: messages on standard error that can never end the process.

mod cleanup;
pub mod descendants;
mod folder;
pub mod launch;
pub mod process;
mod replace;
pub mod sha256;
pub mod stop;
pub mod text;

pub use folder::PrivateFolder;
pub use replace::{Keep, Replacement, replace_file};

use std::fmt;
use std::io::Write;

/// Ends the processes that are still running and removes the temporary files that are still there: for
/// the very end of the process. (Work that was given up because its time was over may have left both.)
pub fn end() {
    cleanup::everything();
}

/// Writes one line to standard error, made safe for a terminal. A standard error that is closed or
/// full is not our failure: `eprintln!` would panic there.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::say_line(::std::format_args!($($argument)*)) };
}

/// What [`say!`] calls.
pub fn say_line(line: fmt::Arguments<'_>) {
    let line = line.to_string();
    let mut safe = text::for_terminal(&line).into_owned();
    safe.push('\n');
    // There is nobody left to tell if this fails.
    let _ = std::io::stderr().write_all(safe.as_bytes());
}
