//! The `foretell` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    foretell::main()
}
