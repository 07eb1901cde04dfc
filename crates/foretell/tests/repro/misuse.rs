//! Locks and conditions that are used in a way that POSIX forbids: findings of their own, with both
//! places; never "the recorded trace makes no sense".

use serde_json::Value;

use crate::common::{Workshop, tested};

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static pthread_t t, u; static int x; static sem_t s;
static void join(void) { pthread_join(t, 0); }
"#;

#[track_caller]
fn is_misuse(name: &str, findings: &[&Value], words: &str) {
    let about = |finding: &&&Value| {
        let places = finding["accesses"].as_array().map_or(0, Vec::len);
        finding["detail"].as_str().is_some_and(|detail| detail.contains(words)) && places >= 1
    };
    assert!(findings.iter().any(|finding| about(&finding)), "{name}: {words} in {findings:#?}");
}

#[track_caller]
fn tried(cases: &[(&str, &str, &str)]) {
    let workshop = Workshop::new();
    for (name, code, words) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        assert_eq!(answer.code, Some(10), "{name}: {:#}\n{}", answer.report, answer.stderr);
        is_misuse(name, &answer.confirmed("misuse"), words);
    }
}

#[test]
fn the_programs_that_were_refused_are_findings() {
    for (program, words) in
        [("handoff.c", "unlocks"), ("ul.c", "unlocks"), ("dm.c", "after main has destroyed it")]
    {
        let answer = tested(&format!("world/{program}"), &[], &[]).ends_with(10);
        is_misuse(program, &answer.confirmed("misuse"), words);
    }
}

#[test]
fn a_lock_that_a_thread_takes_with_it_hangs_others() {
    let answer = tested("world/leak.c", &[], &[]).ends_with(10);
    assert!(!answer.confirmed("deadlock").is_empty(), "{:#}", answer.report);
    is_misuse("leak.c", &answer.confirmed("misuse"), "ends while it holds");
}

#[test]
fn a_lock_that_is_initialised_again_beside_a_thread_is_found() {
    let again = |what: &str| {
        format!(
            "static void *w(void *a) {{ pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return a; }}
            int main(void) {{ pthread_create(&t, 0, w, 0); {what} join(); return 0; }}"
        )
    };
    let late = again("pthread_mutex_destroy(&m); pthread_mutex_init(&m, 0);");
    let busy = again("if (pthread_mutex_destroy(&m) == EBUSY) abort(); pthread_mutex_init(&m, 0);");
    tried(&[("again_late", &late, "destroys `m`"), ("again_busy", &busy, "destroys `m`")]);
    // Who has to wait for the new one cannot have the old one.
    let workshop = Workshop::new();
    let ordered = "static void *w(void *a) { sem_wait(&s); pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return a; }
        int main(void) { sem_init(&s, 0, 0); pthread_create(&t, 0, w, 0); pthread_mutex_destroy(&m); pthread_mutex_init(&m, 0);
        sem_post(&s); join(); return 0; }";
    let block = "static void *w(void *a) { pthread_mutex_t *own = malloc(sizeof *own); pthread_mutex_init(own, 0); pthread_mutex_lock(own);
        pthread_mutex_unlock(own); pthread_mutex_destroy(own); free(own); return a; }
        int main(void) { pthread_create(&t, 0, w, 0); pthread_create(&u, 0, w, 0); join(); pthread_join(u, 0); return 0; }";
    for (name, code) in [("again_ordered", ordered), ("again_block", block)] {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        assert_eq!(answer.code, Some(0), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}

#[test]
fn what_the_recorded_run_does_wrong_is_found() {
    tried(&[
        ("unlocks_twice", "int main(void) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); pthread_mutex_unlock(&m); return 0; }",
            "which nobody holds"),
        ("never_locked", "void *w(void *a) { pthread_mutex_unlock(&n); return 0; }
            int main(void) { pthread_create(&t, 0, w, 0); join(); return 0; }", "which nobody holds"),
        ("destroyed_held", "int main(void) { pthread_mutex_lock(&m); pthread_mutex_destroy(&m); pthread_mutex_unlock(&m); return 0; }",
            "while main holds it"),
        ("waits_without", "void *w(void *a) { pthread_mutex_lock(&m); x = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m); return 0; }
            int main(void) { pthread_create(&t, 0, w, 0); while (!x) { pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); } join(); return 0; }",
            "which nobody holds"),
        ("condition_destroyed", "int main(void) { pthread_cond_destroy(&c); pthread_cond_signal(&c); return 0; }", "has destroyed it"),
        ("rwlock_destroyed", "int main(void) { pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER; pthread_rwlock_destroy(&r); pthread_rwlock_rdlock(&r);
            pthread_rwlock_unlock(&r); return 0; }", "has destroyed it"),
        ("semaphore_gone", "int main(void) { sem_init(&s, 0, 1); sem_wait(&s); sem_destroy(&s); sem_post(&s); return 0; }", "has destroyed it"),
        ("barrier_destroyed", "int main(void) { pthread_barrier_t b; pthread_barrier_init(&b, 0, 1); pthread_barrier_destroy(&b);
            pthread_barrier_wait(&b); return 0; }", "has destroyed it"),
        ("spin_lock_destroyed", "int main(void) { pthread_spinlock_t p; pthread_spin_init(&p, 0); pthread_spin_destroy(&p); pthread_spin_lock(&p);
            pthread_spin_unlock(&p); return 0; }", "has destroyed it"),
        ("ends_holding", "void *w(void *a) { pthread_mutex_lock(&n); return 0; }
            int main(void) { pthread_create(&t, 0, w, 0); join(); return 0; }", "ends while it holds"),
        ("hands_over", "void *w(void *a) { pthread_mutex_unlock(&m); return 0; }
            int main(void) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m); pthread_create(&t, 0, w, 0); join(); } return 0; }",
            "which main has locked"),
    ]);
}

#[test]
fn what_another_interleaving_does_wrong_is_found() {
    tried(&[
        ("destroyed_too_early", "void *w(void *a) { pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); return 0; }
            int main(void) { pthread_create(&t, 0, w, 0); sched_yield(); sched_yield(); pthread_mutex_destroy(&m); join(); return 0; }",
            "destroy"),
        ("semaphore_destroyed", "void *w(void *a) { sem_post(&s); return 0; }
            int main(void) { sem_init(&s, 0, 1); pthread_create(&t, 0, w, 0); sched_yield(); sem_wait(&s); sem_destroy(&s); join();
              return 0; }", "after main has destroyed it"),
        ("two_mutexes", "int a, b; void *v(void *p) { pthread_mutex_lock(&m); while (!a) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); return 0; }
            void *w(void *p) { pthread_mutex_lock(&n); while (!b) pthread_cond_wait(&c, &n); pthread_mutex_unlock(&n); return 0; }
            int main(void) { pthread_create(&t, 0, v, 0); pthread_create(&u, 0, w, 0); sched_yield(); sched_yield();
              pthread_mutex_lock(&m); pthread_mutex_lock(&n); a = b = 1; pthread_cond_broadcast(&c); pthread_mutex_unlock(&n);
              pthread_mutex_unlock(&m); join(); pthread_join(u, 0); return 0; }", "with another mutex"),
    ]);
}

#[test]
fn correct_use_is_none() {
    let workshop = Workshop::new();
    let correct: [(&str, &str); 10] = [
        ("destroyed_after_join", "void *w(void *a) { pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); return 0; }
            int main(void) { pthread_create(&t, 0, w, 0); join(); pthread_mutex_destroy(&m); return 0; }"),
        ("initialised_again", "int main(void) { pthread_mutex_destroy(&m); pthread_mutex_init(&m, 0); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return 0; }"),
        ("assigned_again", "int main(void) { pthread_mutex_destroy(&m); m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m);
            pthread_mutex_unlock(&m); return 0; }"),
        ("recursive", "pthread_mutex_t r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; void *w(void *a) { pthread_mutex_lock(&r); pthread_mutex_lock(&r);
            pthread_mutex_unlock(&r); pthread_mutex_unlock(&r); return 0; }
            int main(void) { pthread_create(&t, 0, w, 0); w(0); join(); return 0; }"),
        ("semaphore_destroyed_after", "void *w(void *a) { sem_post(&s); return 0; }
            int main(void) { sem_init(&s, 0, 0); pthread_create(&t, 0, w, 0); sem_wait(&s); sem_destroy(&s); join(); return 0; }"),
        ("main_ends_holding", "int main(void) { pthread_mutex_lock(&m); return 0; }"),
        ("no_thread", "void *w(void *a) { return 0; }
            int main(void) { pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, (size_t)1 << 60);
              if (pthread_create(&t, &a, w, 0)) x = 1; pthread_create(&t, 0, w, 0); join(); return 0; }"),
        ("objects_again", "int main(void) { for (int i = 0; i < 2; i++) { sem_init(&s, 0, 1); sem_wait(&s); sem_destroy(&s); pthread_cond_signal(&c); pthread_cond_destroy(&c);
            c = (pthread_cond_t)PTHREAD_COND_INITIALIZER; pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER; pthread_rwlock_wrlock(&r); pthread_rwlock_unlock(&r);
            pthread_rwlock_destroy(&r); pthread_spinlock_t p; pthread_spin_init(&p, 0); pthread_spin_lock(&p); pthread_spin_unlock(&p); pthread_spin_destroy(&p);
            pthread_barrier_t b; pthread_barrier_init(&b, 0, 1); pthread_barrier_wait(&b); pthread_barrier_destroy(&b); } return 0; }"),
        ("no_memory_no_semaphore", "#include <assert.h>\n#include <sys/mman.h>\nvoid *w(void *a) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return 0; }
            int main(void) { assert(mmap(0, 1ul << 60, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED); assert(mmap(0, 4096, 3, MAP_PRIVATE, 99, 0) == MAP_FAILED);
              assert(sem_open(\"/no-such-semaphore\", 0) == SEM_FAILED); pthread_create(&t, 0, w, 0); w(0); join(); return x != 2; }"),
        ("many_threads", "void *w(void *a) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); return 0; }
            int main(void) { for (int i = 0; i < 300; i++) { pthread_create(&t, 0, w, 0); join(); } return 0; }"),
    ];
    for (name, code) in correct {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        assert_eq!(answer.code, Some(0), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}

#[test]
fn an_error_checking_mutex_may_be_asked() {
    let workshop = Workshop::new();
    for kind in ["ERRORCHECK", "RECURSIVE"] {
        let program = workshop.build_text(
            kind,
            &format!(
                "#define _GNU_SOURCE\n#include <assert.h>\n#include <errno.h>\n#include <pthread.h>\n\
                 pthread_mutex_t m;\nvoid *g(void *p) {{ assert(pthread_mutex_unlock(&m) == EPERM); return p; }}\n\
                 int main(void) {{ pthread_mutexattr_t a; pthread_mutexattr_init(&a);\n\
                 pthread_mutexattr_settype(&a, PTHREAD_MUTEX_{kind}); pthread_mutex_init(&m, &a);\n\
                 pthread_t t; pthread_create(&t, 0, g, 0); pthread_join(t, 0); return 0; }}\n"
            ),
        );
        workshop.test(&program, &[], &[]).ends_with(0);
    }
}
