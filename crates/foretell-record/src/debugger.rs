//! Running the program under gdb: the same run, which stops at the violating event.
//!
//! The runtime calls `foretell_violation_here` right after the last step of the schedule; gdb stops
//! there and shows the frame of the program that did the step. The variables that carry our wishes
//! are set for the program only: in gdb's own environment the runtime would be loaded into gdb.
//!
//! A binary runs in QEMU, which has a debugger's end of its own (`-g`): gdb is the second process then and
//! talks to it through a socket. QEMU's plugin stops the thread that did the last step.

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

/// Connects to QEMU, which makes its socket when it has read the program, unless it ends before.
const CONNECT: &str = "python exec(\"import os, time\\nwhile True:\\n  try:\\n    gdb.execute('target \
    remote SOCKET', to_string=True)\\n    break\\n  except gdb.error:\\n    if not \
    os.path.exists('/proc/PROCESS/maps') or not open('/proc/PROCESS/maps').read(): break\\n    time.sleep(0.05)\")";

/// What gdb is called where it knows all architectures, and the package of Debian that has it.
const MULTIARCH: &str = "gdb-multiarch";

impl Debugger {
    /// The gdb for a program of this machine's architecture, or of another one.
    pub(crate) fn of(&self, foreign: bool) -> &Path {
        let usual = self.program == Path::new("gdb");
        if foreign && usual { Path::new(MULTIARCH) } else { &self.program }
    }

    /// gdb beside the QEMU with this number, which listens at the socket and runs the program.
    pub(crate) fn beside(
        &self,
        program: &Path,
        prefix: Option<&str>,
        socket: &Path,
        process: u32,
    ) -> Command {
        let mut gdb = Command::new(self.of(prefix.is_some()));
        gdb.arg(if self.batch { "-batch" } else { "-quiet" });
        let mut give = |text: String| {
            gdb.arg("-ex").arg(text);
        };
        give(format!("set sysroot {}", prefix.unwrap_or("/")));
        let connect = CONNECT.replace("SOCKET", &socket.to_string_lossy());
        give(connect.replace("PROCESS", &process.to_string()));
        give("continue".into());
        for text in &self.commands {
            give(text.clone());
        }
        gdb.arg(program);
        gdb
    }

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
