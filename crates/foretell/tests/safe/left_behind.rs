//! Processes that a program leaves behind: children that left its process group, daemons, programs that
//! they became.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Workshop, end_of, is_running, signal, text, until};

/// Leaves processes behind in every way there is, each of which writes its number into a folder:
/// a child that left the group, a daemon (the grandchild of one that has ended), one that became
/// another program with an empty environment, and one that goes on to fork.
const LEAVES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
static volatile int x;
static void *work(void *a) { x++; return a; }
static void note(const char *name) {
  char path[4096], text[32];
  snprintf(path, sizeof path, "%s/%d", getenv("NUMBERS"), (int)getpid());
  int f = open(path, O_CREAT | O_WRONLY, 0600);
  int n = snprintf(text, sizeof text, "%s\n", name);
  if (f < 0 || write(f, text, n) != n) abort();
  close(f);
  for (int i = 0; i < 3; i++) close(i);
  for (int s = 1; s < 32; s++) signal(s, SIG_IGN);
}
static void wait_for_all(int count) {
  /* Everybody has said its number, so that nobody is missed. */
  char command[4096];
  snprintf(command, sizeof command, "test $(ls %s | wc -l) -ge %d", getenv("NUMBERS"), count);
  while (system(command)) usleep(1000);
}
int main(int c, char **v) {
  if (!fork()) { setsid(); note("left the group"); for (;;) sleep(1000); }
  if (!fork()) { setsid(); if (fork()) _exit(0); note("daemon"); for (;;) sleep(1000); }
  if (!fork()) {
    setsid();
    note("another program");
    char *words[] = {"sleep", "1000000", 0}, *none[] = {0};
    execve("/bin/sleep", words, none);
    _exit(9);
  }
  if (!fork()) {
    setsid();
    note("unmarked");
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_RTTIME, &limit);
    if (!fork()) { note("child of unmarked"); for (;;) sleep(1000); }
    for (;;) sleep(1000);
  }
  pthread_t t;
  pthread_create(&t, 0, work, 0);
  x++;
  pthread_join(t, 0);
  wait_for_all(5);
  if (c > 1 && !strcmp(v[1], "hang")) { note("itself"); for (;;) pause(); }
  return 0;
}
"#;

struct Numbers(PathBuf);

impl Numbers {
    fn new(shop: &Workshop, name: &str) -> Self {
        let folder = shop.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }

    fn all(&self) -> Vec<u32> {
        let entries = self.0.read_dir().expect("a folder");
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().parse().ok();
        entries.filter_map(|entry| name(entry.expect("an entry"))).collect()
    }

    /// Whatever foretell failed to end must not stay after the test.
    fn left(&self) -> Vec<String> {
        let left: Vec<u32> = self.all().into_iter().filter(|&number| is_running(number)).collect();
        let what = |number: &u32| {
            signal(*number, libc::SIGKILL);
            let name = std::fs::read_to_string(self.0.join(number.to_string()));
            name.unwrap_or_default().trim().to_owned()
        };
        left.iter().map(what).collect()
    }
}

fn environment(command: &mut std::process::Command, numbers: &Path) {
    command.env("NUMBERS", numbers).stdout(Stdio::piped()).stderr(Stdio::piped());
}

#[test]
fn nothing_is_left_behind_by_a_program_under_test() {
    let shop = Workshop::new();
    let program = shop.build("leaves", LEAVES);
    let numbers = Numbers::new(&shop, "numbers");
    let mut command = shop.foretell(&["test", "--runs", "6", "--jobs", "2", &program]);
    environment(&mut command, &numbers.0);
    let output = crate::common::finish(command);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 10 | 11 | 12)), "{code:?} {}", text(&output.stderr));
    assert!(numbers.all().len() >= 5, "they were there: {}", text(&output.stderr));
    assert_eq!(numbers.left(), [] as [&str; 0]);
}

#[test]
fn nothing_is_left_behind_when_a_signal_or_a_limit_ends_a_test_or_a_recording() {
    let shop = Workshop::new();
    let program = shop.build("leaves", LEAVES);
    let file = shop.path().join("run.ftrace").display().to_string();
    let test = ["test", "--run-limit", "100000", "--schedules", "none"];
    let record = ["record", "-o", &file, "--on-recorder-death", "end"];
    let limited = ["record", "-o", &file, "--on-recorder-death", "end", "--time-limit", "20"];
    for (name, words, number) in [
        ("test-int", &test[..], Some(libc::SIGINT)),
        ("test-term", &test[..], Some(libc::SIGTERM)),
        ("test-hup", &test[..], Some(libc::SIGHUP)),
        ("record-term", &record[..], Some(libc::SIGTERM)),
        ("record-limit", &limited[..], None),
    ] {
        let numbers = Numbers::new(&shop, name);
        let mut command = shop.foretell(words);
        command.arg("--").arg(&program).arg("hang");
        environment(&mut command, &numbers.0);
        let mut child = command.spawn().expect("it starts");
        until("all of them", || numbers.all().len() >= 6);
        if let Some(number) = number {
            signal(child.id(), number);
            // The program of a recording decides by itself what the first one means.
            if words[0] == "record" {
                std::thread::sleep(std::time::Duration::from_millis(100));
                signal(child.id(), number);
            }
        }
        let code = end_of(&mut child).code();
        // The first signal may have ended the program before the second one ends the recording.
        let by_signal = name == "record-term" && code == Some(128 + libc::SIGTERM);
        assert!(code == Some(12) || by_signal, "{name}: {code:?}");
        assert_eq!(numbers.left(), [] as [&str; 0], "{name}");
    }
}

/// A program that is only recorded may start a daemon, which is its user's.
#[test]
fn a_daemon_that_a_recorded_program_starts_goes_on() {
    let shop = Workshop::new();
    let program = shop.build("leaves", LEAVES);
    let file = shop.path().join("run.ftrace").display().to_string();
    let numbers = Numbers::new(&shop, "numbers");
    let mut command = shop.foretell(&["record", "-o", &file, "--", &program]);
    environment(&mut command, &numbers.0);
    let output = crate::common::finish(command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(numbers.left().len(), 5, "{}", text(&output.stderr));
}

/// Ends in its first run; every other one hangs when its threads are done.
const HANGS_LATER: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int x;
static void *work(void *a) { int seen = x; x = seen + 1; return a; }
int main(void) {
  char path[4096];
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  snprintf(path, sizeof path, "%s/first", getenv("NUMBERS"));
  if (open(path, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0) {
    snprintf(path, sizeof path, "%s/%d", getenv("NUMBERS"), (int)getpid());
    if (open(path, O_CREAT | O_WRONLY, 0600) < 0) abort();
    for (;;) pause();
  }
  return 0;
}
"#;

/// The processes that run the program, be it as fork server.
fn running(program: &str) -> Vec<u32> {
    let processes = Path::new("/proc").read_dir().expect("/proc").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let runs = |number: &u32| {
        let executable = std::fs::read_link(format!("/proc/{number}/exe"));
        executable.is_ok_and(|path| path == Path::new(program)) && is_running(*number)
    };
    numbers.filter(runs).collect()
}

#[test]
fn the_fork_server_and_its_runs_end_with_foretell_however_it_ends() {
    let shop = Workshop::new();
    let program = shop.build("later", HANGS_LATER);
    let program = std::fs::canonicalize(program).expect("it was built").display().to_string();
    for (name, number) in [("killed", libc::SIGKILL), ("interrupted", libc::SIGINT)] {
        let numbers = Numbers::new(&shop, name);
        let mut command =
            shop.foretell(&["test", "--run-limit", "100000", "--jobs", "1", &program]);
        environment(&mut command, &numbers.0);
        let mut child = command.spawn().expect("it starts");
        until("a run that hangs", || !numbers.all().is_empty());
        let there = running(&program);
        assert!(there.len() >= 2, "the server and a run: {there:?}");
        signal(child.id(), number);
        end_of(&mut child);
        until("their end", || running(&program).is_empty());
    }
}
