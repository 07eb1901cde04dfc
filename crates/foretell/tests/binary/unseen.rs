//! What threads do that is no event of a binary's recording: it is said, and nothing is made of it that is not so.

use serde_json::Value;

use crate::strangers::{is_quiet, of_each};
use crate::{Workshop, platforms};

/// Robust mutexes are the C library's own, and so is who waits with one.
const ROBUST: &str = r#"
#include <pthread.h>
static pthread_mutex_t m; static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static int ready;
static void *work(void *x) {
  pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);
  return x; }
int main(void) {
  pthread_t a; pthread_mutexattr_t how;
  pthread_mutexattr_init(&how); pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&m, &how);
  pthread_create(&a, 0, work, 0);
  pthread_mutex_lock(&m);
  while (!ready) pthread_cond_wait(&c, &m);
  pthread_mutex_unlock(&m);
  pthread_join(a, 0);
  return 0; }
"#;

#[test]
fn waits_with_a_mutex_that_is_not_modelled_are_the_librarys_own() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("robust.c", ROBUST), &["-g"]);
        let words = ["--format", "json", "test", "--binary", "--run-limit", "5", "--runs", "4"];
        let output = workshop.foretell(&words, &[&program.display().to_string()]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{}", platform.name);
        assert!(report.to_string().contains("mutexes that are robust"), "{report}");
    }
}

/// What is freed after a join is freed after all that the thread did, also where the join does not wait.
const TRY_JOIN: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int *p, sum;
static void *work(void *x) { for (int i = 0; i < 3; i++) sum += p[i]; return x; }
int main(void) {
  pthread_t a; void *result;
  p = calloc(3, sizeof *p);
  pthread_create(&a, 0, work, &sum);
  while (pthread_tryjoin_np(a, &result) == EBUSY) usleep(10);
  free(p);
  assert(sum == 0 && result == &sum);
  return 0; }
"#;

#[test]
fn joins_that_do_not_wait_are_joins() {
    is_quiet("try_join.c", TRY_JOIN);
}

/// A process is started, and a signal is sent and handled.
const OTHERS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int handled; static pthread_t first;
static void handler(int number) { handled = number; }
static void *work(void *x) { pthread_kill(first, SIGUSR1); return x; }
int main(void) {
  pthread_t a; int status;
  first = pthread_self();
  signal(SIGUSR1, handler);
  pthread_create(&a, 0, work, 0);
  pid_t child = fork();
  if (!child) _exit(0);
  while (waitpid(child, &status, 0) < 0) {}
  pthread_join(a, 0);
  return 0; }
"#;

#[test]
fn processes_and_interruptions_are_said() {
    of_each("others.c", OTHERS, |at, exit, report| {
        assert_eq!(exit, Some(12), "{at}: {report}");
        let said = report.to_string();
        for what in ["processes do that the program starts", "where signals interrupt"] {
            assert!(said.contains(what), "{at}: {said}");
        }
    });
}

/// A race only for who does not know that the accesses are atomic ones in the source.
const PUBLISHED: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
static atomic_int ready, seen;
static void *work(void *x) { atomic_store_explicit(&ready, 1, memory_order_relaxed); return x; }
int main(void) {
  pthread_t a;
  pthread_create(&a, 0, work, 0);
  atomic_store_explicit(&seen, atomic_load_explicit(&ready, memory_order_relaxed), memory_order_relaxed);
  pthread_join(a, 0);
  return 0; }
"#;

#[test]
fn races_that_nobody_had_the_time_to_try_are_not_predicted() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("published.c", PUBLISHED), &["-g"]);
        let words = ["--format", "json", "test", "--binary", "--runs", "1"];
        let output = workshop.foretell(&words, &[&program.display().to_string()]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{}", platform.name);
        assert_eq!(output.status.code(), Some(12), "{}: {report}", platform.name);
    }
}

/// The recorded run itself loses an update: each thread waits in the kernel between its read and its write.
const ACROSS_A_PIPE: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int ends[2], n;
static void *work(void *x) { char sent = 1; int seen = n; write(ends[1], &sent, 1); n = seen + 1; return x; }
int main(void) {
  pthread_t a, b; char got;
  pipe(ends);
  pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0);
  read(ends[0], &got, 1); read(ends[0], &got, 1);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 2);
  return 0; }
"#;

#[test]
fn runs_in_which_threads_wake_each_other_by_system_calls_happen_again() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let source = workshop.source("pipe.c", ACROSS_A_PIPE);
        let program = workshop.build(platform, &source, &["-g"]).display().to_string();
        let words = ["--format", "json", "test", "--binary", "--run-limit", "5", "--runs", "4"];
        let output = workshop.foretell(&words, &[&program]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let findings = report["findings"].as_array().expect("a list").iter();
        let confirmed = findings.filter(|finding| finding["status"] == "confirmed");
        let schedules: Vec<&str> =
            confirmed.filter_map(|finding| finding["schedule"].as_str()).collect();
        assert!(!schedules.is_empty(), "{}: {report}", platform.name);
        for schedule in schedules {
            let replayed = workshop.foretell(&["replay", schedule], &[&program]);
            assert_eq!(replayed.status.code(), Some(10), "{}: {replayed:?}", platform.name);
        }
    }
}
