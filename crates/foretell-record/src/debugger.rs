//! Running the program under gdb: the same run, which stops at the violating event.
//!
//! The runtime calls `foretell_violation_here` right after the last step of the schedule; gdb stops
//! there and shows the frame of the program that did the step. The variables that carry our wishes
//! are set for the program only: in gdb's own environment the runtime would be loaded into gdb.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How gdb is run.
#[derive(Clone, Debug)]
pub struct Debugger {
    /// The gdb to run.
    pub program: PathBuf,
    /// Commands to give it once the program has stopped.
    pub commands: Vec<String>,
    /// It ends after these commands, and asks nothing; else the user goes on.
    pub batch: bool,
}

impl Default for Debugger {
    /// gdb as the shell finds it, for the user to go on.
    fn default() -> Self {
        Self { program: "gdb".into(), commands: Vec::new(), batch: false }
    }
}

/// Goes up to the first frame outside the runtime.
const UP_TO_THE_PROGRAM: &str = "python exec(\"frame = gdb.newest_frame()\\nwhile frame and \
    'foretell_runtime' in (gdb.solib_name(frame.pc()) or ''): frame = frame.older()\\nif frame: \
    frame.select()\")";

impl Debugger {
    /// gdb with the program in it, which gets the arguments and variables of `command`.
    pub(crate) fn command(&self, program: &Path, command: &Command) -> Command {
        let mut gdb = Command::new(&self.program);
        gdb.arg(if self.batch { "-batch" } else { "-quiet" });
        let mut give = |text: OsString| {
            gdb.arg("-ex").arg(text);
        };
        // A shell in between would get the runtime, too.
        give("set startup-with-shell off".into());
        give("set breakpoint pending on".into());
        for (name, value) in command.get_envs() {
            let mut text = OsString::from("set environment ");
            text.push(name);
            text.push(" ");
            text.push(value.unwrap_or_default());
            give(text);
        }
        give("break foretell_violation_here".into());
        give("run".into());
        give(UP_TO_THE_PROGRAM.into());
        give("frame".into());
        for text in &self.commands {
            give(text.into());
        }
        gdb.arg("--args").arg(program).args(command.get_args());
        gdb
    }
}
