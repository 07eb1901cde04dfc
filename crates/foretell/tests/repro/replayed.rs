//! What was confirmed happens in every replay, also where a call that leaves nothing behind decided it.

use crate::common::Workshop;

const HEAD: &str = "#define _GNU_SOURCE\n#include <assert.h>\n#include <pthread.h>\n#include <signal.h>\n#include <time.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
    static void *w(void *);\n\
    static pthread_t start(void) { pthread_t t; pthread_create(&t, 0, w, 0); return t; }\n";

#[test]
fn a_look_that_fails_and_a_cancellation_are_steps_of_a_schedule() {
    let cases = [
        (
            "try_join",
            "assertion",
            "static void *w(void *z) { return 0; }\n\
             int main(void) { pthread_t p; p = start(); int r = pthread_tryjoin_np(p, 0);\n\
             if (r) pthread_join(p, 0); assert(r == 0); return 0; }\n",
        ),
        (
            "timed_join",
            "assertion",
            "static void *w(void *z) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return 0; }\n\
             int main(void) { pthread_mutex_lock(&m); pthread_t p; p = start(); struct timespec t = {0};\n\
             int r = pthread_timedjoin_np(p, 0, &t); pthread_mutex_unlock(&m);\n\
             if (r) pthread_join(p, 0); assert(r == 0); return 0; }\n",
        ),
        (
            "cancelled",
            "deadlock",
            "static void *w(void *z) { pthread_mutex_lock(&m); for (;;) pthread_cond_wait(&c, &m); return 0; }\n\
             int main(void) { pthread_t p; p = start(); pthread_cancel(p); pthread_join(p, 0);\n\
             pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return 0; }\n",
        ),
    ];
    let workshop = Workshop::new();
    for (name, kind, code) in cases {
        let source = workshop.path().join(name).with_extension("c");
        std::fs::write(&source, format!("{HEAD}{code}")).expect("a file");
        let answer = workshop.test(&source, &["--time-limit", "20"], &[]).ends_with(10);
        assert_eq!(answer.confirmed(kind).len(), 1, "{name}: {:#}", answer.report);
        workshop.replays(&answer, &source, 3);
    }
}
