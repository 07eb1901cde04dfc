//! Threads that nobody joins. The recorded run lets everybody finish who can, and that the process
//! ends earlier is one of the interleavings that are predicted.

use crate::common::Workshop;

const HEAD: &str = "#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
    static volatile int x, y;\n\
    static inline void set(volatile int *p, int v)\n\
    { pthread_mutex_lock(&m); *p = v; pthread_mutex_unlock(&m); }\n\
    static inline int get(volatile int *p)\n\
    { pthread_mutex_lock(&m); int v = *p; pthread_mutex_unlock(&m); return v; }\n";

/// What the program is, its code, and the exit code of `foretell test`.
type Case = (&'static str, &'static str, i32);

#[track_caller]
fn tried(cases: &[Case]) {
    let workshop = Workshop::new();
    for (name, code, expected) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        assert_eq!(answer.code, Some(*expected), "{name}: {:#}\n{}", answer.report, answer.stderr);
        let unseen = answer.report["unseen"].to_string();
        assert!(!unseen.contains("never ran"), "{name}: {unseen}");
    }
}

#[test]
fn correct_programs_that_do_not_wait_for_their_threads_are_clear() {
    tried(&[
        (
            "returns",
            "void *w(void *a) { set(&x, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
            0,
        ),
        (
            "exits",
            "void *w(void *a) { set(&x, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); exit(0); }",
            0,
        ),
        (
            "exits_at_once",
            "void *w(void *a) { set(&x, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); _exit(0); }",
            0,
        ),
        (
            "detached",
            "void *w(void *a) { set(&x, get(&x) + 1); puts(\"w\"); return 0; }
            int main(void) { pthread_t t; for (int i = 0; i < 4; i++) {
              pthread_create(&t, 0, w, 0); pthread_detach(t); } puts(\"main\"); return 0; }",
            0,
        ),
        (
            "waits_for_ever",
            "void *w(void *a) { pthread_mutex_lock(&m); while (!x) pthread_cond_wait(&c, &m);
              pthread_mutex_unlock(&m); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
            0,
        ),
        (
            "sleeps",
            "void *w(void *a) { sleep(3); set(&x, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
            0,
        ),
        (
            "reads_nothing",
            "void *w(void *a) { int p[2]; char b; pipe(p); read(p[0], &b, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
            0,
        ),
    ]);
}

#[test]
fn assertions_of_threads_that_nobody_joins_are_found() {
    tried(&[
        (
            "fails_in_thread",
            "void *w(void *a) { assert(get(&x) != 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); set(&x, 1); set(&x, 2);
              return 0; }",
            10,
        ),
        (
            "fails_detached",
            "void *w(void *a) { set(&y, 1); assert(get(&x) == 0); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); pthread_detach(t);
              set(&x, 1); set(&x, 0); return 0; }",
            10,
        ),
        (
            "fails_between_threads",
            "void *w(void *a) { set(&x, 1); set(&x, 0); return 0; }
            void *v(void *a) { assert(!get(&x)); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); pthread_create(&t, 0, v, 0);
              exit(0); }",
            10,
        ),
        (
            "torn",
            "void *w(void *a) { set(&x, 1); set(&y, 1); return 0; }
            void *v(void *a) { int p = get(&x), q = get(&y); assert(p == q); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); pthread_create(&t, 0, v, 0);
              return 0; }",
            10,
        ),
    ]);
}

#[test]
fn what_an_early_end_breaks_is_found() {
    tried(&[
        (
            "handler",
            "void check(void) { assert(get(&x) == 1); }
            void *w(void *a) { set(&x, 1); return 0; }
            int main(void) { pthread_t t; atexit(check); pthread_create(&t, 0, w, 0); return 0; }",
            10,
        ),
        (
            "destructor",
            "__attribute__((destructor)) void check(void) { assert(get(&x) == get(&y)); }
            void *w(void *a) { set(&x, 1); set(&y, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
            10,
        ),
        (
            "freed_by_handler",
            "int *p; void gone(void) { pthread_mutex_lock(&m); int *q = p; p = 0;
              pthread_mutex_unlock(&m); free(q); }
            void *w(void *a) { pthread_mutex_lock(&m); *p = 1; pthread_mutex_unlock(&m); return 0; }
            int main(void) { pthread_t t; p = malloc(4); atexit(gone); pthread_create(&t, 0, w, 0);
              return 0; }",
            10,
        ),
    ]);
}

#[test]
fn threads_that_never_end_do_not_keep_the_recording_alive() {
    let workshop = Workshop::new();
    let endless: [(&str, &str); 3] = [
        (
            "counts",
            "_Atomic int n; void *w(void *a) { while (1) n++; return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
        ),
        (
            "ticks",
            "void *w(void *a) { while (1) sleep(1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); return 0; }",
        ),
        (
            "locks",
            "void *w(void *a) { while (1) set(&x, 1); return 0; }
            int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); exit(0); }",
        ),
    ];
    for (name, code) in endless {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]).ends_with(12);
        let unseen = answer.report["unseen"].to_string();
        assert!(unseen.contains("still running when the process ended"), "{name}: {unseen}");
    }
}
