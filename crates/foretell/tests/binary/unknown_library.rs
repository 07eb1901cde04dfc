//! Static binaries without symbols whose C library is none that is here: locks are their atomic accesses and
//! futexes.

use std::path::PathBuf;

use serde_json::Value;

use crate::{PLATFORMS, Platform, Workshop, is_there, platforms};

const SAID: &str = "the functions of the program's C library are not recognised";

/// Locks in opposite orders.
const OPPOSITE: &str = r#"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void transfer(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first); pthread_mutex_lock(second);
  n++;
  pthread_mutex_unlock(second); pthread_mutex_unlock(first);
}
static void *one(void *x) { for (int i = 0; i < 8; i++) transfer(&a, &b); return x; }
static void *two(void *x) { for (int i = 0; i < 8; i++) transfer(&b, &a); return x; }
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, one, 0); pthread_create(&t, 0, two, 0);
  pthread_join(s, 0); pthread_join(t, 0);
  return n != 16;
}
"#;

/// Each update is two critical sections.
const LOST: &str = r#"
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static int get(void) { pthread_mutex_lock(&m); int x = n; pthread_mutex_unlock(&m); return x; }
static void set(int x) { pthread_mutex_lock(&m); n = x; pthread_mutex_unlock(&m); }
static void *work(void *x) { for (int i = 0; i < 8; i++) set(get() + 1); return x; }
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, work, 0); pthread_create(&t, 0, work, 0);
  pthread_join(s, 0); pthread_join(t, 0);
  assert(n == 16);
  return 0;
}
"#;

/// Each update is one.
const CORRECT: &str = r#"
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *work(void *x) { for (int i = 0; i < 8; i++) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); }; return x; }
int main(void) {
  pthread_t s, t;
  pthread_create(&s, 0, work, 0); pthread_create(&t, 0, work, 0);
  pthread_join(s, 0); pthread_join(t, 0);
  assert(n == 16);
  return 0;
}
"#;

/// A program linked with musl, if this machine has that.
fn with_musl(workshop: &Workshop, source: &str) -> Option<PathBuf> {
    let platform = Platform { compiler: "musl-gcc", ..PLATFORMS[0] };
    if !is_there(platform.compiler) || !is_there(platform.emulator) {
        println!("SKIPPED: binaries with musl: there is no musl-gcc or no {}", platform.emulator);
        return None;
    }
    let source = workshop.source("program.c", source);
    Some(workshop.build(platform, &source, &["-s", "-static"]))
}

/// What `foretell test` says, in so many runs.
fn tested(workshop: &Workshop, program: &str) -> (Option<i32>, Value) {
    let words = ["--format", "json", "test", "--binary", "--runs", "40"];
    let output = workshop.foretell(&words, &[program]);
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

#[test]
fn bugs_are_found_without_knowing_the_library() {
    for (source, effect) in [(OPPOSITE, "hang"), (LOST, "crash")] {
        let workshop = Workshop::new();
        let Some(program) = with_musl(&workshop, source) else { return };
        let program = program.display().to_string();
        let (exit, report) = tested(&workshop, &program);
        assert_eq!(exit, Some(10), "{effect}: {report}");
        assert!(report.to_string().contains(SAID), "{effect}: {report}");
        let findings = report["findings"].as_array().expect("a list");
        let finding = findings.iter().find(|finding| finding["effect"] == effect);
        let finding = finding.unwrap_or_else(|| panic!("{effect}: {report}"));
        let schedule = finding["schedule"].as_str().expect("a schedule");
        for _ in 0..crate::replays() {
            let replayed = workshop.foretell(&["replay", schedule], &[&program]);
            assert_eq!(replayed.status.code(), Some(10), "{effect}: {replayed:?}");
        }
    }
}

#[test]
fn correct_programs_stay_quiet_without_knowing_the_library() {
    let workshop = Workshop::new();
    let Some(program) = with_musl(&workshop, CORRECT) else { return };
    let program = program.display().to_string();
    for schedule in ["round-robin:1", "random:5:3", "random:6:20"] {
        let words = ["record", "--binary", "--schedule", schedule, "-o", "run.ftrace"];
        let recorded = workshop.foretell(&words, &[&program]);
        assert_eq!(recorded.status.code(), Some(0), "{schedule}: {recorded:?}");
        let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
        assert_eq!(valid, Some(0), "{schedule}: {said}");
    }
    let (exit, report) = tested(&workshop, &program);
    assert_eq!(exit, Some(12), "{report}");
    assert_eq!(report["findings"], Value::Array(Vec::new()), "{report}");
}

#[test]
fn a_program_without_any_library_is_recorded() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let source = workshop.source("alone.c", "void _start(void) { for (;;) {} }\n");
        let program = workshop.build(platform, &source, &["-s", "-static", "-nostdlib"]);
        let words = ["record", "--binary", "--time-limit", "2"];
        let recorded = workshop.foretell(&words, &[&program.display().to_string()]);
        assert_eq!(recorded.status.code(), Some(12), "{}: {recorded:?}", platform.name);
        let said = String::from_utf8_lossy(&recorded.stderr);
        assert!(said.contains(SAID), "{}: {said}", platform.name);
    }
}
