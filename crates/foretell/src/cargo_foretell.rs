//! `cargo foretell`: cargo calls this with its own name for it first, and `foretell cargo` does the work.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let own = std::env::current_exe().unwrap_or_else(|_| "cargo-foretell".into());
    let mut typed = std::env::args_os().skip(1).peekable();
    typed.next_if(|first| first == "foretell");
    let error = Command::new(own.with_file_name("foretell")).arg("cargo").args(typed).exec();
    eprintln!("cargo-foretell: foretell is not beside it: {error}");
    ExitCode::from(2)
}
