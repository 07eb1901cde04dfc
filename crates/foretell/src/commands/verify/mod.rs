//! `foretell verify`: a proof for all executions, or a counterexample.

mod c;
mod commands;

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use foretell_trace::format;

use crate::cli::VerifyArguments;
use crate::commands::explaining::come_to_a_close;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Verifies and prints.
pub fn run(arguments: &VerifyArguments, output: &mut Output) -> Result<Exit, Failure> {
    come_to_a_close(arguments.time_limit);
    let ending = arguments.program.extension().and_then(OsStr::to_str).unwrap_or_default();
    match ending {
        "c" => c::run(arguments, output),
        _ if OTHER_LANGUAGES.contains(&ending) => Err(Failure::Input(format!(
            "{}: verify reads C (.c) and guarded commands (.cmd), not .{ending}; `foretell test` takes \
             C, C++ and Rust",
            arguments.program.display()
        ))),
        _ => commands::run(arguments, output),
    }
}

/// Endings of what is neither C nor guarded commands.
const OTHER_LANGUAGES: [&str; 14] =
    ["cpp", "cc", "cxx", "c++", "C", "h", "hpp", "hh", "i", "ii", "rs", "go", "ll", "o"];

/// Writes a file of text; it is there as a whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    format::write_whole(path, |file| {
        file.write_all(text.as_bytes())
            .map_err(|error| format::WriteError::Io { path: path.to_owned(), error })
    })
    .map_err(|error| Failure::Input(error.to_string()))
}
