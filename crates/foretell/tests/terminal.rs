//! What somebody at a terminal sees: foretell behind a pseudo-terminal. Nothing here waits for a
//! moment: what is watched is held up until the terminal has shown what it should show.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;

/// Both ends of a terminal with so many columns: what shows on it, and what a program writes to.
/// `None`, and a word, where there are no terminals.
fn terminal(columns: u16) -> Option<(File, OwnedFd)> {
    let (mut screen, mut line) = (0, 0);
    let size = libc::winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: writes two descriptors, which nobody else has; the size is only read.
    unsafe {
        if libc::openpty(&mut screen, &mut line, null_mut(), null_mut(), &size) != 0 {
            eprintln!("SKIPPED: no pseudo-terminal: {}", std::io::Error::last_os_error());
            return None;
        }
        libc::fcntl(screen, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(line, libc::F_SETFD, libc::FD_CLOEXEC);
        Some((File::from_raw_fd(screen), OwnedFd::from_raw_fd(line)))
    }
}

/// Adds what shows on the screen to `seen`, up to a text or until nobody can write any more.
fn watch(screen: &mut File, seen: &mut String, wanted: Option<&str>) {
    // One byte after the other: a piece may end inside a letter.
    let mut bytes = std::mem::take(seen).into_bytes();
    let ends = |bytes: &[u8]| wanted.is_some_and(|wanted| bytes.ends_with(wanted.as_bytes()));
    let mut byte = [0];
    while !ends(&bytes) {
        match screen.read(&mut byte) {
            Ok(0) | Err(_) => break, // on a terminal, the last writer's end is an error
            Ok(_) => bytes.push(byte[0]),
        }
    }
    *seen = String::from_utf8_lossy(&bytes).into_owned();
}

/// Starts it; our own copy of its end of the terminal is gone then.
fn start(mut command: Command) -> Child {
    command.spawn().unwrap()
}

/// A folder of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("terminal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let bank = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/bank.ft");
        std::fs::copy(bank, folder.join("bank.ft")).unwrap();
        Self(folder)
    }

    fn foretell(&self, words: &[&str]) -> Command {
        // Cargo leaves the plugin and the runtime beside the test.
        let test = std::env::current_exe().unwrap();
        // Should foretell come to a stand, the test fails and does not hang.
        let mut command = Command::new("timeout");
        command.args(["300", env!("CARGO_BIN_EXE_foretell")]).args(words);
        command.current_dir(&self.0).env("FORETELL_LIB_DIR", test.parent().unwrap());
        command.env_remove("NO_COLOR");
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_recording_says_on_a_terminal_how_many_events_it_has() {
    let folder = Folder::new("record");
    // Many events, then it waits for a word.
    let source = "#include <pthread.h>\n#include <stdio.h>\n\
        static volatile int shared;\n\
        static void *count(void *x) { for (int i = 0; i < 60000; i++) shared++; return x; }\n\
        int main(void) {\n  pthread_t thread;\n\
        pthread_create(&thread, 0, count, 0);\n  pthread_join(thread, 0);\n\
        return getchar() != 'g';\n}\n";
    std::fs::write(folder.0.join("count.c"), source).unwrap();
    let mut built = folder.foretell(&["cc", "-O1", "-g", "count.c", "-o", "count", "-pthread"]);
    let built = built.output().unwrap();
    let errors = String::from_utf8_lossy(&built.stderr);
    if errors.contains("foretell cc: error") {
        // The plugin and the runtime are libraries that `cargo test -p foretell` does not build.
        assert!(std::env::var_os("CI").is_none(), "CI builds all: {errors}");
        eprintln!("SKIPPED: {errors}");
        return;
    }
    assert!(built.status.success(), "{errors}");

    let words = ["record", "-o", "count.ftrace", "--", "./count"];
    let Some((mut screen, line)) = terminal(100) else { return };
    let mut child = folder.foretell(&words);
    child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(line);
    let mut child = start(child);
    let mut seen = String::new();
    watch(&mut screen, &mut seen, Some(" events"));
    assert!(seen.contains("foretell: recording, "), "{seen}");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    watch(&mut screen, &mut seen, None);
    assert!(child.wait().unwrap().success(), "{seen}");
    // The line goes before anything else is said.
    let (_, last) = seen.rsplit_once("\x1b[K").unwrap();
    assert!(last.starts_with("foretell: recorded "), "{seen}");

    // Into a file, only what stays true is said.
    let mut child = folder.foretell(&words);
    child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = start(child);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let said = child.wait_with_output().unwrap().stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("foretell: recorded ") && !said.contains("recording"), "{said}");
}

#[test]
fn solving_says_on_a_terminal_how_many_questions_are_done() {
    let folder = Folder::new("solve");
    // A solver that thinks until it may stop.
    let solver = "while [ ! -e go ]; do sleep 0.1; done; echo unknown";
    std::fs::write(folder.0.join("solver.sh"), solver).unwrap();
    let Some((mut screen, line)) = terminal(100) else { return };
    let mut child = folder.foretell(&["predict", "bank.ft", "--solver-cmd", "sh solver.sh"]);
    child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(line);
    let mut child = start(child);
    let mut seen = String::new();
    watch(&mut screen, &mut seen, Some("foretell: solving 0 of "));
    std::fs::write(folder.0.join("go"), "").unwrap();
    watch(&mut screen, &mut seen, None);
    child.wait().unwrap();
    assert!(seen.contains("foretell: solving 0 of "), "{seen}");
}

/// What `foretell predict bank.ft` prints to a terminal.
fn on_a_terminal(folder: &Folder, columns: u16, variables: &[(&str, &str)]) -> Option<String> {
    let (mut screen, line) = terminal(columns)?;
    let mut command = folder.foretell(&["predict", "bank.ft"]);
    command.stdin(Stdio::null()).stdout(line).stderr(Stdio::null());
    command.envs(variables.iter().copied());
    let mut child = start(command);
    let mut seen = String::new();
    watch(&mut screen, &mut seen, None);
    assert_eq!(child.wait().unwrap().code(), Some(11));
    Some(seen.replace("\r\n", "\n"))
}

#[test]
fn a_terminal_gets_colours_and_its_own_width_and_a_pipe_plain_text() {
    let folder = Folder::new("look");
    let Some(coloured) = on_a_terminal(&folder, 100, &[]) else { return };
    assert!(coloured.contains("\x1b[31;1mpredicted[assertion]"), "{coloured}");
    let output = folder.foretell(&["predict", "bank.ft"]).output().unwrap();
    let piped = String::from_utf8(output.stdout).unwrap();
    assert!(!piped.contains('\x1b'));
    assert_eq!(on_a_terminal(&folder, 100, &[("NO_COLOR", "1")]).expect("as before"), piped);
    // A step that does not fit loses its place first; headlines and commands are never cut.
    let columns = |width| {
        let text = on_a_terminal(&folder, width, &[("NO_COLOR", "1")]).expect("as before");
        let widest = text.lines().filter(|line| line.starts_with("      ") || is_step(line));
        widest.map(|line| line.chars().count()).max().unwrap()
    };
    assert!(columns(60) <= 60 && columns(60) < columns(120) && columns(120) <= 120);
}

/// `    3 write ...`
fn is_step(line: &str) -> bool {
    let rest = line.trim_start();
    line.starts_with("  ") && rest.split(' ').next().is_some_and(|word| word.parse::<u8>().is_ok())
}
