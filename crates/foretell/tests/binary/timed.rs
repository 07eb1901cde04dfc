//! Functions with a time limit, those of C11, and those that glibc has for times of 64 bits on 32-bit ARM. A lock that
//! one function takes and another gives back is only modelled right if both are.

use serde_json::Value;

use crate::strangers::is_found;
use crate::{PLATFORMS, Workshop, platform};

/// Nothing is found in the program on the platform with this number within a few runs: what is modelled wrongly
/// shows in the first.
fn is_quiet(number: usize, name: &str, text: &str, options: &[&str]) {
    let Some(platform) = platform(number) else { return };
    let workshop = Workshop::new();
    let program = workshop.build(platform, &workshop.source(name, text), options);
    let words = ["--format", "json", "test", "--binary", "--runs", "8"];
    let output = workshop.foretell(&words, &[&program.display().to_string()]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let at = format!("{name} on {} {options:?}", platform.name);
    assert_eq!(report["findings"], Value::Array(Vec::new()), "{at}");
    assert_eq!(output.status.code(), Some(12), "{at}: {report}");
}

/// Every function of C11 that waits or has a time limit; nothing depends on what times out.
const C11: &str = r#"
#include <assert.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
static once_flag once = ONCE_FLAG_INIT; static mtx_t m; static cnd_t c; static int *made, ready, n;
static void make(void) { made = malloc(sizeof *made); *made = 7; }
static struct timespec later(void) { struct timespec t; timespec_get(&t, TIME_UTC); t.tv_sec += 5; return t; }
static int work(void *unused) {
  struct timespec t = later();
  call_once(&once, make); assert(*made == 7);
  if (mtx_timedlock(&m, &t) == thrd_success) { n++; mtx_unlock(&m); }
  mtx_lock(&m); ready = 1; cnd_signal(&c); mtx_unlock(&m);
  return unused != 0; }
int main(void) {
  thrd_t a; struct timespec t = later(), nap = {0, 1000};
  mtx_init(&m, mtx_timed); cnd_init(&c);
  thrd_create(&a, work, 0);
  call_once(&once, make); assert(*made == 7);
  thrd_yield(); thrd_sleep(&nap, 0);
  mtx_lock(&m);
  while (!ready) { int end = cnd_timedwait(&c, &m, &t); assert(end == thrd_success || end == thrd_timedout); }
  assert(n == 0 || n == 1);
  mtx_unlock(&m);
  thrd_join(a, 0);
  free(made);
  return 0; }
"#;

#[test]
fn functions_of_c11_with_a_time_limit_are_modelled() {
    for number in 0..PLATFORMS.len() {
        for options in [&["-g"][..], &["-static", "-s"]] {
            is_quiet(number, "c11.c", C11, options);
        }
    }
}

/// As [`C11`], of POSIX.
const POSIX: &str = r#"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER; static sem_t s; static int ready, n;
static struct timespec later(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += 5; return t; }
static void *work(void *x) {
  struct timespec t = later();
  if (pthread_mutex_timedlock(&m, &t)) pthread_mutex_lock(&m);
  ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);
  if (pthread_rwlock_timedwrlock(&rw, &t)) pthread_rwlock_wrlock(&rw);
  n = 1; pthread_rwlock_unlock(&rw);
  sem_post(&s);
  return x; }
int main(void) {
  pthread_t a; struct timespec t = later(), nap = {0, 1000};
  sem_init(&s, 0, 0);
  pthread_create(&a, 0, work, 0);
  pthread_mutex_lock(&m);
  while (!ready) { int end = pthread_cond_timedwait(&c, &m, &t); assert(!end || end == ETIMEDOUT); }
  pthread_mutex_unlock(&m);
  nanosleep(&nap, 0);
  while (sem_timedwait(&s, &t)) assert(errno == ETIMEDOUT);
  if (pthread_rwlock_timedrdlock(&rw, &t)) pthread_rwlock_rdlock(&rw);
  assert(n == 1);
  pthread_rwlock_unlock(&rw);
  pthread_join(a, 0);
  return 0; }
"#;

#[test]
fn functions_with_times_of_64_bits_are_modelled_on_arm() {
    const LONG: [&str; 2] = ["-D_TIME_BITS=64", "-D_FILE_OFFSET_BITS=64"];
    for (name, text) in [("c11.c", C11), ("posix.c", POSIX)] {
        is_quiet(2, name, text, &LONG);
        is_quiet(2, name, text, &[LONG[0], LONG[1], "-static", "-s"]);
    }
}

/// The wait may end without what was waited for.
const GIVES_UP: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, data;
static void *work(void *x) {
  pthread_mutex_lock(&m); data = 9; ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);
  return x; }
int main(void) {
  pthread_t a; struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t); t.tv_sec += 1;
  pthread_create(&a, 0, work, 0);
  pthread_mutex_lock(&m);
  if (!ready) pthread_cond_timedwait(&c, &m, &t);
  int seen = data;
  pthread_mutex_unlock(&m);
  assert(seen == 9);
  pthread_join(a, 0);
  return 0; }
"#;

#[test]
fn waits_with_a_time_limit_are_tried_to_give_up() {
    is_found("gives_up.c", GIVES_UP, "assertion");
}
