//! Updates that are lost although no function is torn: what a thread has read is old when it writes.

use serde_json::Value;

use crate::{Workshop, platforms};

/// Updates a counter under a lock that does not exclude others, or does.
const COUNTER: &str = r#"
#include <pthread.h>
#include <assert.h>
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; static int n;
static void *inc(void *x) {
  pthread_rwlock_rdlock(&l);
  n = n + 1;
  pthread_rwlock_unlock(&l);
  return x;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, inc, 0); pthread_create(&b, 0, inc, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  pthread_rwlock_rdlock(&l);
  assert(n == 2);
  pthread_rwlock_unlock(&l);
  return 0;
}
"#;

#[test]
fn an_update_under_a_lock_for_readers_is_lost() {
    for platform in platforms() {
        for fixed in [false, true] {
            let workshop = Workshop::new();
            let options = ["-g", "-static"];
            let options = if fixed { &options[..] } else { &options[..1] };
            let program = workshop.build(platform, &workshop.source("bug.c", COUNTER), options);
            let (exit, report) = workshop.test(&program, &[]);
            assert_eq!(exit, Some(10), "{}: {report}", platform.name);
        }
        let workshop = Workshop::new();
        let right = COUNTER.replacen("pthread_rwlock_rdlock", "pthread_rwlock_wrlock", 1);
        let program = workshop.build(platform, &workshop.source("right.c", &right), &["-g"]);
        let (exit, report) = workshop.test(&program, &[]);
        assert_eq!(exit, Some(12), "{}: {report}", platform.name);
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{}", platform.name);
    }
}
