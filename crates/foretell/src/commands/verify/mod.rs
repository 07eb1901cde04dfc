//! `foretell verify`: a proof for all executions, or a counterexample.

mod c;
mod commands;

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
    match arguments.program.extension().is_some_and(|ending| ending == "c") {
        true => c::run(arguments, output),
        false => commands::run(arguments, output),
    }
}

/// Writes a file of text; it is there as a whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    format::write_whole(path, |file| {
        file.write_all(text.as_bytes())
            .map_err(|error| format::WriteError::Io { path: path.to_owned(), error })
    })
    .map_err(|error| Failure::Input(error.to_string()))
}
