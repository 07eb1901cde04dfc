//! Temporary folders and files that replace others; what is left when a signal comes.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::common::{BANK, TORN, Workshop, end_of, is_running, signal, text, until};

/// Prints its process id, and does nothing for ever: every run of it ends by the time limit only.
const ENDLESS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile int x;
static void *work(void *a) { for (;;) x++; return a; }
int main(void) {
  FILE *f = fopen(getenv("PID_FILE"), "w");
  fprintf(f, "%d\n", (int)getpid());
  fclose(f);
  signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); signal(SIGHUP, SIG_IGN);
  pthread_t t;
  pthread_create(&t, 0, work, 0);
  pthread_join(t, 0);
  return 0;
}
"#;

/// The names of the folders that were used once, with the process id in them, can be taken by
/// another user beforehand: what lies there must not be used.
#[test]
fn temporary_folders_have_names_that_nobody_can_guess_and_are_private() {
    let shop = Workshop::new();
    let source = shop.file("torn.c", TORN).display().to_string();
    let mut command = shop.foretell(&["test", &source]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let mut seen = Vec::new();
    while child.try_wait().expect("waited for").is_none() {
        for path in shop.leftovers() {
            if let Ok(there) = path.metadata()
                && there.is_dir()
            {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                assert!(!name.contains(&child.id().to_string()), "{name} can be guessed");
                assert_eq!(there.permissions().mode() & 0o077, 0, "{name} is open to others");
                seen.push(name);
            }
        }
    }
    assert!(!seen.is_empty(), "there was a folder");
    assert_eq!(shop.leftovers(), [] as [std::path::PathBuf; 0]);
}

/// Whatever signal ends it, and whenever: no file is left, and the program under test is gone.
#[test]
fn a_signal_leaves_neither_files_nor_processes() {
    let shop = Workshop::new();
    let source = shop.file("endless.c", ENDLESS).display().to_string();
    let schedules = shop.path().join("schedules").display().to_string();
    let pid_file = shop.path().join("pid");
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let _ = std::fs::remove_file(&pid_file);
        let mut command =
            shop.foretell(&["test", "--run-limit", "1000", "--schedules", &schedules, &source]);
        command.env("PID_FILE", &pid_file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let mut program = None;
        until("the program", || {
            let content = std::fs::read_to_string(&pid_file).unwrap_or_default();
            program = content.trim_end().parse::<u32>().ok().filter(|_| content.ends_with('\n'));
            program.is_some()
        });
        signal(child.id(), number);
        let status = end_of(&mut child);
        // It says that it is incomplete, or it ends as the signal wants it.
        assert!(status.code() == Some(12) || status.signal() == Some(number), "{status}");
        until("the end of the program", || !is_running(program.expect("above")));
        assert_eq!(shop.leftovers(), [] as [std::path::PathBuf; 0], "signal {number}");
        assert!(!shop.path().join("schedules").exists(), "nothing was found");
    }
}

/// A compiler that is killed leaves its own files.
#[test]
fn a_signal_while_the_program_is_compiled_leaves_no_files() {
    let shop = Workshop::new();
    // The compiler waits for a line of this file, with a temporary file open.
    shop.file("slow.c", "int main(void) { return 0; }\n");
    let begun = shop.path().join("begun");
    let compiler = format!(
        "#!/bin/sh\nmktemp \"${{TMPDIR:-/tmp}}/slow-XXXXXX.o\" > /dev/null\ntouch {}\nexec sleep 100000\n",
        begun.display()
    );
    shop.script("bin/clang-22", &compiler);
    let path = format!("{}:{}", shop.path().join("bin").display(), env!("PATH"));
    for (command, number) in
        [("test", libc::SIGTERM), ("test", libc::SIGINT), ("verify", libc::SIGTERM)]
    {
        let _ = std::fs::remove_file(&begun);
        let mut command = shop.foretell(&[command, "slow.c"]);
        command.env("PATH", &path).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        until("the compiler", || begun.exists());
        signal(child.id(), number);
        assert_eq!(end_of(&mut child).code(), Some(12));
        assert_eq!(shop.leftovers(), [] as [std::path::PathBuf; 0]);
    }
}

/// A folder that cannot be written to, and files that may not grow: the finding is a finding all the same.
#[test]
fn what_cannot_be_written_costs_no_finding() {
    let shop = Workshop::new();
    let program = shop.build("torn", TORN);
    shop.file("bank.ft", BANK);
    shop.file("file", "no folder");
    let inside = "file/inside";
    for (words, code) in [
        (&["test", "--schedules", inside, &program][..], 10),
        (&["test", "--html", inside, "--schedules", "schedules", &program], 10),
        (&["predict", "--schedules", inside, "bank.ft"], 11),
        (&["predict", "--json", inside, "bank.ft"], 11),
        // Read before the work is begun.
        (&["test", "--suppressions", inside, &program], 2),
    ] {
        let output = shop.run(words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(
            error.contains(inside) || error.contains("cannot be written"),
            "{words:?}: {error}"
        );
        assert_eq!(!output.stdout.is_empty(), code != 2, "{words:?}");
    }
    // A limit on the size of files is an error of a write, and no signal that ends us.
    let mut command = shop.foretell(&["predict", "--html", "large.html", "bank.ft"]);
    // SAFETY: a plain system call.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            let limit = libc::rlimit { rlim_cur: 1000, rlim_max: 1000 };
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            Ok(())
        });
    }
    let output = crate::common::finish(command);
    assert_eq!(output.status.code(), Some(11), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("large.html"), "{}", text(&output.stderr));
    assert!(!shop.path().join("large.html").exists());
}

/// The partial file had a name that could be foretold, and a link of that name was followed.
#[test]
fn what_lies_under_the_name_of_a_partial_file_is_not_touched() {
    let shop = Workshop::new();
    let trace = shop.file("bank.ft", BANK).display().to_string();
    let victim = shop.file("victim", "precious");
    let out = shop.path().join("out");
    std::fs::create_dir(&out).expect("a folder");
    // The shell becomes foretell, so that the process id is known before.
    let script = format!(
        "ln -s {victim} {out}/.bank.ftrace.$$.partial && exec {foretell} trace convert {trace} -o \
         {out}/bank.ftrace",
        victim = victim.display(),
        out = out.display(),
        foretell = env!("CARGO_BIN_EXE_foretell"),
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]);
    let output = crate::common::finish(command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&victim).expect("there"), b"precious");
    assert!(out.join("bank.ftrace").is_file());
}

#[test]
fn fix_keeps_the_mode_of_the_file_and_follows_its_link() {
    let shop = Workshop::new();
    let program = shop.build("torn", TORN);
    let trace = shop.path().join("run.ftrace").display().to_string();
    let recorded = shop.run(&["record", "-o", &trace, "--", &program]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let source = shop.path().join("torn.c");
    let real = shop.path().join("real.c");
    std::fs::rename(&source, &real).expect("moved");
    symlink(&real, &source).expect("a link");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    let owner = real.metadata().expect("there").uid();
    let fixed = shop.run(&["fix", "--apply", &trace]);
    assert_eq!(fixed.status.code(), Some(11), "{}", text(&fixed.stderr));
    assert!(text(&fixed.stderr).contains("patched"), "{}", text(&fixed.stderr));
    assert!(source.symlink_metadata().expect("there").is_symlink());
    let there = real.metadata().expect("there");
    assert_eq!((there.mode() & 0o7777, there.uid()), (0o640, owner));
    assert_ne!(std::fs::read_to_string(&real).expect("there"), TORN);
}
