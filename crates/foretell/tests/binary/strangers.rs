//! Programs of which it is known what they can do, and on which foretell was wrong or silent once. Each on every
//! platform, linked dynamically, and statically without symbols.

use std::path::Path;

use serde_json::Value;

use crate::{Workshop, platforms};

/// How a program is linked.
const LINKED: [&[&str]; 2] = [&["-g"], &["-static", "-s"]];

/// What is said of the program, however it is linked.
pub fn of_each(name: &str, text: &str, check: impl Fn(&str, Option<i32>, &Value)) {
    for platform in platforms() {
        for options in LINKED {
            let workshop = Workshop::new();
            let source = workshop.source(name, text);
            let program = workshop.build(platform, &source, options);
            let (exit, report) = workshop.test(&program, &[]);
            let at = format!("{name} on {} {options:?}", platform.name);
            check(&at, exit, &report);
        }
    }
}

/// Something of the kind is confirmed, however the program is linked.
pub fn is_found(name: &str, text: &str, kind: &str) {
    of_each(name, text, |at, exit, report| {
        assert_eq!(exit, Some(10), "{at}: {report}");
        let findings = report["findings"].as_array().expect("a list");
        let of_kind = |finding: &Value| finding["status"] == "confirmed" && finding["kind"] == kind;
        assert!(findings.iter().any(of_kind), "{at}: {report}");
    });
}

/// Nothing is found in it, however it is linked, and its locks are recognised.
pub fn is_quiet(name: &str, text: &str) {
    of_each(name, text, |at, exit, report| {
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{at}");
        assert_eq!(exit, Some(12), "{at}: {report}");
        let said = report.to_string();
        assert!(!said.contains("library are not recognised"), "{at}: {said}");
    });
}

/// The locks of C11 have the same code: they are told by what they call.
const C11: &str = r#"
#include <assert.h>
#include <threads.h>
static mtx_t m; static int n;
static int add(void *unused) {
  mtx_lock(&m); int seen = n; GAP n = seen + 1; mtx_unlock(&m);
  return unused != 0; }
int main(void) {
  thrd_t a, b;
  mtx_init(&m, mtx_plain);
  thrd_create(&a, add, 0); thrd_create(&b, add, 0);
  thrd_join(a, 0); thrd_join(b, 0);
  assert(n == 2);
  return 0; }
"#;

#[test]
fn locks_of_c11_are_told_from_each_other() {
    is_found("torn.c", &C11.replace("GAP", "mtx_unlock(&m); mtx_lock(&m);"), "assertion");
    is_quiet("whole.c", &C11.replace("GAP", ""));
}

/// The recorded run itself uses what it has freed.
const FREED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static int *p;
static void *release(void *x) { free(p); return x; }
int main(void) {
  pthread_t a;
  p = malloc(40); p[8] = 3;
  pthread_create(&a, 0, release, 0);
  pthread_join(a, 0);
  p[8] = 5;
  return 0; }
"#;

#[test]
fn freed_memory_that_the_recorded_run_uses_is_found() {
    is_found("freed.c", FREED, "crash");
}

/// What was freed is used again: by the C library, which gives it to the program; by mappings; and by the
/// program itself where there was no room for more.
const USED_AGAIN: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n;
static void *work(void *x) {
  char *a = malloc(30); memset(a, 1, 30); free(a);
  char *text = strdup("a text of twenty-nine letters"); text[3] = 'x';
  pthread_mutex_lock(&m); n += strlen(text); pthread_mutex_unlock(&m);
  free(text);
  void *aligned = 0;
  if (!posix_memalign(&aligned, 64, 40)) { memset(aligned, 1, 40); free(aligned); }
  char *large = malloc(300000); large[5] = 1; free(large);
  char *map = mmap(0, 300000, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); map[21] = 2; munmap(map, 300000);
  int *list = malloc(8); list[1] = 4;
  volatile size_t most = -4096; assert(!realloc(list, most)); assert(list[1] == 4);
  list = realloc(list, 4000); list[900] = 4; assert(list[1] == 4);
  list = reallocarray(list, 2000, 4); list[1900] = 2; free(list);
  return x; }
int main(void) {
  pthread_t a, b; char *line = malloc(4); size_t size = 4;
  pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0);
  FILE *file = fopen("/proc/self/maps", "r");
  if (getline(&line, &size, file) > 0) line[1] = 'z';
  fclose(file); free(line);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 58);
  return 0; }
"#;

#[test]
fn freed_memory_that_somebody_has_again_is_no_mistake() {
    is_quiet("again.c", USED_AGAIN);
}

/// gcc for AArch64 makes atomic operations calls of functions, which a static program shares with its C library.
const OPERATIONS: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int n; static atomic_llong wide; static atomic_char small;
static void *add(void *x) {
  atomic_fetch_sub(&wide, 7); atomic_fetch_or(&small, 2);
  int seen = atomic_exchange(&n, 0);
  seen += atomic_fetch_add(&n, seen + 1);
  return x; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(wide == -14 && small == 2);
  assert(n == 2);
  return 0; }
"#;

#[test]
fn atomic_operations_of_static_programs_are_events() {
    let torn = OPERATIONS.replace("atomic_exchange(&n, 0)", "atomic_fetch_add(&n, 0)");
    let torn = torn.replace("atomic_fetch_add(&n, seen + 1)", "atomic_exchange(&n, seen + 1)");
    is_found("torn.c", &torn, "assertion");
    for platform in platforms() {
        for options in [&["-g"][..], &["-static"], &["-static", "-s"]] {
            let workshop = Workshop::new();
            let source = workshop.source("whole.c", OPERATIONS);
            let program = workshop.build(platform, &source, options);
            let at = format!("{} {options:?}", platform.name);
            let text = recorded(&workshop, &program);
            // Four of each thread; nothing of the C library's own.
            let steps = text.lines().filter(|line| line.contains(" rmw.seq_cst ")).count();
            assert_eq!(steps, 8, "{at}: {text}");
        }
    }
}

/// What is done once comes before whoever comes later.
const ONCE: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static int *made; static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make(void) { made = malloc(sizeof *made); *made = 5; }
static void *work(void *x) { pthread_once(&once, make); assert(*made == 5); return x; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  free(made);
  return 0; }
"#;

#[test]
fn what_is_done_once_comes_first() {
    is_quiet("once.c", ONCE);
}

/// What keeps the threads in order is no event of a binary.
const PIPE: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int ends[2], data;
static void *work(void *x) { char sent = 1; data = 9; write(ends[1], &sent, 1); return x; }
int main(void) {
  pthread_t a; char got = 0;
  pipe(ends);
  pthread_create(&a, 0, work, 0);
  read(ends[0], &got, 1); assert(got == 1 && data == 9);
  pthread_join(a, 0);
  return 0; }
"#;

#[test]
fn races_that_no_run_shows_are_not_predicted() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("pipe.c", PIPE), &["-g"]);
        // A run that is forced to read before anybody has written waits for ever.
        let words = ["--format", "json", "test", "--binary", "--run-limit", "2"];
        let output = workshop.foretell(&words, &[&program.display().to_string()]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{}", platform.name);
        assert_eq!(output.status.code(), Some(12), "{}: {report}", platform.name);
    }
}

fn recorded(workshop: &Workshop, program: &Path) -> String {
    let program = program.display().to_string();
    let recorded = workshop.foretell(&["record", "--binary", "-o", "run.ftrace"], &[&program]);
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
    assert_eq!(valid, Some(0), "{said}");
    workshop.run(&["trace", "cat", "run.ftrace"]).1
}

#[test]
fn names_of_c_are_no_types_of_cpp() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let text = FREED.replace("release", "w");
        let program = workshop.build(platform, &workshop.source("short.c", &text), &[]);
        let text = recorded(&workshop, &program);
        assert!(text.contains(" call w @") && !text.contains("wchar_t"), "{text}");
    }
}
