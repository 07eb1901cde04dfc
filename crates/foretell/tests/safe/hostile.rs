//! Programs that do their worst while they are recorded. Whatever they do, the recording ends, foretell
//! does not crash, and what it says is true.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Workshop, end_of, finish, is_running, signal, text, until};

/// What every program begins with: threads with accesses, and how to find the shared memory.
const COMMON: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long x;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *a) {
  for (long i = 0; i < (long)a; i++) {
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
  }
  return 0;
}
static void both(long n) {
  pthread_t t, u;
  pthread_create(&t, 0, work, (void *)n);
  pthread_create(&u, 0, work, (void *)n);
  pthread_join(t, 0);
  pthread_join(u, 0);
}
/* Where the memory is that the recorder reads; 0 if there is none. */
static volatile unsigned char *ring(size_t *size) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long from = 0, to = 0;
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "memfd:foretell") && sscanf(line, "%lx-%lx", &from, &to) == 2) break;
  if (maps) fclose(maps);
  *size = to - from;
  return (volatile unsigned char *)from;
}
/* The recorder's own descriptor of it. */
static int descriptor(void) {
  char folder[64], path[400], name[400];
  snprintf(folder, sizeof folder, "/proc/%d/fd", (int)getppid());
  DIR *d = opendir(folder);
  struct dirent *e;
  while (d && (e = readdir(d))) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    ssize_t n = readlink(path, name, sizeof name - 1);
    if (n > 0 && (name[n] = 0, strstr(name, "memfd:foretell"))) return open(path, O_RDWR);
  }
  return -1;
}
"#;

/// Seconds that no program here needs.
const ENOUGH: &str = "60";

/// Records a program with this `main`; it has to end within the limit of the test.
fn recorded(shop: &Workshop, name: &str, main: &str, limit: &str) -> (Option<i32>, Value, String) {
    let program = shop.build(name, &format!("{COMMON}{main}"));
    let file = shop.path().join(format!("{name}.ftrace")).display().to_string();
    let mut command = shop.foretell(&["--format", "json", "record", "-o", &file]);
    command.args(["--time-limit", limit, "--on-recorder-death", "end", "--", &program]);
    let output = finish(command);
    let error = text(&output.stderr);
    assert!(!error.contains("internal error"), "{name}: {error}");
    // Not by a signal: the recorder itself survives whatever the program does.
    assert!(output.status.code().is_some(), "{name}: {:?} {error}", output.status);
    let object = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    if object["trace"].is_object() {
        let valid = shop.run(&["trace", "validate", &file]);
        assert_eq!(valid.status.code(), Some(0), "{name}: {}", text(&valid.stdout));
    }
    (output.status.code(), object, error)
}

#[track_caller]
fn lacks(object: &Value, what: &str) {
    let gaps = object["trace"]["gaps"].to_string();
    assert!(gaps.contains(what), "{object:#}");
}

/// Every byte of the header, all at once and one after the other, with values that look good.
#[test]
fn a_program_that_overwrites_the_ring_ends_the_recording_and_nothing_else() {
    let shop = Workshop::new();
    for (name, scribble) in [
        ("ones", "memset((void *)r, 0xff, 8192);"),
        ("zeros", "memset((void *)r, 0, 8192);"),
        ("all", "memset((void *)r, 0x5a, size);"),
        ("produced", "*(volatile unsigned *)(r + 32) += 1000000;"),
        ("numbers", "for (int i = 24; i < 512; i += 4) *(volatile unsigned *)(r + i) = 3;"),
        ("sizes", "for (int i = 64; i < 1024; i++) r[i] ^= 0x80;"),
    ] {
        let main = format!(
            "int main(void) {{ both(20000); size_t size; volatile unsigned char *r = ring(&size);\n\
             if (!r) return 9; {scribble} _Exit(4); }}"
        );
        let (code, object, error) = recorded(&shop, &format!("scribble-{name}"), &main, ENOUGH);
        // Without its cursor the program itself may crash.
        assert!(matches!(code, Some(4 | 12 | 139)), "{name}: {code:?} {error}");
        assert_ne!(object, Value::Null, "{name}: what was good is kept: {error}");
    }
}

#[test]
fn a_program_that_goes_on_with_a_damaged_ring_is_not_made_to_wait() {
    let shop = Workshop::new();
    let main = "static void *spoil(void *a) { size_t size; volatile unsigned char *r = ring(&size);\n\
         for (int i = 0; i < 200; i++) { *(volatile unsigned *)(r + 32) += 77; usleep(100); } return a; }\n\
         int main(void) { both(1000); pthread_t t; pthread_create(&t, 0, spoil, 0);\n\
         both(200000); pthread_join(t, 0); puts(\"over\"); _Exit(0); }";
    let (code, object, error) = recorded(&shop, "spoil", main, ENOUGH);
    assert!(matches!(code, Some(0 | 12)), "{code:?} {error}");
    lacks(&object, "overwrote the memory");
}

/// Reading a page of a file that has become shorter is a fatal signal. The seals keep the file's size, so
/// that every page of the mapping is always there: holes read as zeros, which is damage like other damage.
#[test]
fn the_ring_cannot_be_truncated_and_holes_are_damage() {
    let shop = Workshop::new();
    let main = "int main(void) { both(1000); int f = descriptor(); if (f < 0) return 9;\n\
         if (ftruncate(f, 0) == 0) return 8; if (ftruncate(f, 1 << 30) == 0) return 7;\n\
         both(100000); return 0; }";
    let (code, _, error) = recorded(&shop, "truncate", main, ENOUGH);
    assert_eq!(code, Some(0), "it is sealed: {error}");
    let main = "int main(void) { both(20000); int f = descriptor(); if (f < 0) return 9;\n\
         int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;\n\
         if (fallocate(f, how, 0, 1 << 22)) return 8; _Exit(4); }";
    let (code, object, error) = recorded(&shop, "holes", main, ENOUGH);
    // Without its cursor the program itself may crash.
    assert!(matches!(code, Some(4 | 12 | 139)), "{code:?} {error}");
    lacks(&object, "overwrote the memory");
}

#[test]
fn programs_that_misbehave_are_recorded_or_refused_and_always_end() {
    let shop = Workshop::new();
    for (name, main, expected) in [
        (
            "closes",
            "int main(void) { for (int i = 3; i < 1024; i++) close(i); both(50000); return 0; }",
            0,
        ),
        (
            "closes-all",
            "int main(void) { for (int i = 0; i < 1024; i++) close(i); both(50000); return 0; }",
            0,
        ),
        (
            "forks",
            "int main(void) { for (int i = 0; i < 40; i++) if (!fork()) { both(10); _exit(0); }\n\
             while (wait(0) > 0 || errno == EINTR); both(100); return 0; }",
            0,
        ),
        (
            "executes",
            "int main(void) { both(100); execl(\"/bin/true\", \"true\", (char *)0); return 9; }",
            0,
        ),
        ("kills-itself", "int main(void) { both(100); kill(getpid(), SIGKILL); return 0; }", 137),
        ("segfaults", "int main(void) { both(100); *(volatile int *)8 = 1; return 0; }", 139),
        (
            "recurses",
            "static int f(volatile char *p) { volatile char b[4096]; b[0] = p[0]; return f(b) + b[0]; }\n\
             int main(void) { both(100); volatile char c = 0; return f(&c); }",
            139,
        ),
        (
            "no-files",
            "int main(void) { struct rlimit l = {1 << 20, 1 << 20}; setrlimit(RLIMIT_FSIZE, &l);\n\
             both(1000); return 0; }",
            0,
        ),
        (
            "leaves-children",
            "int main(void) { if (!fork()) { setsid(); usleep(1000); _exit(0); } both(100); return 0; }",
            0,
        ),
        (
            "exits-in-a-thread",
            "static void *q(void *a) { _exit(5); return a; }\n\
             int main(void) { pthread_t t; pthread_create(&t, 0, q, 0); for (;;) pause(); }",
            5,
        ),
        (
            "signals",
            "static void h(int s) { (void)s; }\n\
             int main(void) { signal(SIGUSR1, h); for (int i = 0; i < 200; i++) { raise(SIGUSR1); both(3); } return 0; }",
            0,
        ),
        (
            "unmaps",
            "int main(void) { both(100); size_t size; volatile unsigned char *r = ring(&size);\n\
             munmap((void *)r, size); both(100); return 0; }",
            139,
        ),
    ] {
        let (code, _, error) = recorded(&shop, name, main, ENOUGH);
        assert_eq!(code, Some(expected), "{name}: {error}");
    }
}

#[test]
fn a_program_that_prints_escape_sequences_and_fills_its_output_is_tested() {
    let shop = Workshop::new();
    let source = format!(
        "{COMMON}int main(void) {{ for (int i = 0; i < 3000000; i++) puts(\"\\033]0;x\\007\");\n\
         both(3); return 0; }}"
    );
    shop.file("noisy.c", source);
    let output = shop.run(&["test", "--runs", "3", "noisy.c"]);
    assert!(matches!(output.status.code(), Some(0 | 10 | 11 | 12)), "{}", text(&output.stderr));
    let dangerous = foretell_guard::text::is_dangerous;
    assert!(!text(&output.stdout).contains(dangerous), "{:?}", text(&output.stdout));
}

/// A program that ignores everything is ended by the limit and by signals.
const STUBBORN: &str = "int main(void) { for (int s = 1; s < 32; s++) signal(s, SIG_IGN);\n\
     printf(\"%d\\n\", (int)getpid()); fflush(stdout); for (;;) { both(100); } }";

#[test]
fn the_time_limit_always_ends_a_recording() {
    let shop = Workshop::new();
    let scribbles = "size_t size; volatile unsigned char *r = ring(&size);\n\
         memset((void *)(r + 24), 0xff, 64); sleep(1);";
    let scribbler = STUBBORN.replace("both(100);", scribbles);
    for (name, main) in [("stubborn", STUBBORN), ("scribbler", &scribbler)] {
        let (code, object, error) = recorded(&shop, name, main, "2");
        assert_eq!(code, Some(12), "{name}: {error}");
        assert_eq!(object["end"]["kind"], "hang", "{name}: {object:#}");
    }
}

#[test]
fn a_second_signal_ends_a_recording_whatever_the_program_does() {
    let shop = Workshop::new();
    let program = shop.build("stubborn", &format!("{COMMON}{STUBBORN}"));
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let file = shop.path().join("run.ftrace");
        let mut command = shop.foretell(&["record", "--on-recorder-death", "end", "-o"]);
        command.arg(&file).arg("--").arg(&program);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let process: u32 = lines.next().expect("a line").expect("text").parse().expect("a number");
        signal(child.id(), number);
        signal(child.id(), libc::SIGTERM);
        // Both may have been one: signals do not queue.
        std::thread::sleep(std::time::Duration::from_millis(100));
        signal(child.id(), libc::SIGTERM);
        assert_eq!(end_of(&mut child).code(), Some(12), "signal {number}");
        until("the end of the program", || !is_running(process));
        assert!(file.is_file(), "what there was is kept");
        let left = shop.path().read_dir().expect("a folder");
        let hidden = left.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with('.')
        });
        assert_eq!(hidden.count(), 0, "no partial file is left");
    }
}

/// Stops a program named `orphan` before the runtime in it begins: of two preloaded libraries the last
/// one is initialised first.
const LATE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_for_it(void) {
  const char *file = getenv("WAIT_FOR");
  if (!file || strcmp(program_invocation_short_name, "orphan")) return;
  if (write(1, "early\n", 6) != 6) abort();
  while (access(file, F_OK)) usleep(1000);
}
"#;

/// The recorder is killed while the program runs, and before the runtime in it has begun (it then took
/// whoever adopted the program for the recorder, and waited for it for ever).
#[test]
fn a_program_whose_recorder_dies_goes_on_or_ends_as_the_option_says() {
    let shop = Workshop::new();
    let source = shop.file("late.c", LATE);
    let library = shop.path().join("liblate.so");
    let mut compiler = Command::new("clang-22");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(finish(compiler).status.success());
    let main = "int main(int c, char **v) { (void)c; printf(\"%d\\n\", (int)getpid()); fflush(stdout);\n\
         while (access(v[1], F_OK)) usleep(1000);\n\
         both(400000); puts(\"over\"); return 0; }";
    let program = shop.build("orphan", &format!("{COMMON}{main}"));
    let cases = [("continue", false), ("continue", true), ("end", false)];
    for (number, (option, early)) in cases.into_iter().enumerate() {
        let go = shop.path().join(format!("go-{number}"));
        let file = shop.path().join("orphan.ftrace").display().to_string();
        let mut command = shop.foretell(&["record", "-o", &file, "--on-recorder-death", option]);
        command.arg("--").arg(&program).arg(&go);
        if early {
            command.env("LD_PRELOAD", &library).env("WAIT_FOR", &go);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = || lines.next().map(|line| line.expect("text")).unwrap_or_default();
        let mut process = match early {
            true => {
                assert_eq!(line(), "early");
                None
            }
            false => Some(line()),
        };
        child.kill().expect("killed");
        child.wait().expect("waited for");
        if option == "end" {
            let process = process.expect("it is not early").parse().expect("a number");
            until("the end of the program", || !is_running(process));
            continue;
        }
        std::fs::write(&go, "").expect("a file");
        if early {
            process = Some(line());
        }
        let process: u32 = process.expect("known by now").parse().expect("a number");
        // The pipe is closed when the program ends; a program that hangs is killed.
        let (sender, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            let _ = ended.recv_timeout(crate::common::LONG);
            if is_running(process) {
                signal(process, libc::SIGKILL);
            }
        });
        assert_eq!(line(), "over", "it hangs");
        until("the end of the program", || !is_running(process));
        drop(sender);
    }
}
