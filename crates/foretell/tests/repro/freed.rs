//! Memory that is used after it was freed by functions of the C library, and what is known of new memory.

use crate::common::{Answer, Workshop};

const HEAD: &str = "#include <fcntl.h>\n#include <pthread.h>\n#include <sched.h>\n#include <semaphore.h>\n\
    #include <stdatomic.h>\n#include <stdlib.h>\n#include <unistd.h>\n";

fn tested(workshop: &Workshop, name: &str, code: &str) -> Answer {
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, format!("{HEAD}{code}\n")).expect("a file");
    let program = workshop.build(&source, &["-O1"]);
    workshop.test(&program, &[], &[])
}

/// A worker that uses an object in a block, and `main`, which frees the block as soon as it is told to.
fn freed_early(member: &str, first: &str, worker: &str) -> String {
    format!(
        "struct o {{ {member}; atomic_int done; }};\n\
         static void *w(void *p) {{ struct o *o = p; {worker} return 0; }}\n\
         int main(void) {{ struct o *o = malloc(sizeof *o); o->done = 0; {first}\n\
         pthread_t t; pthread_create(&t, 0, w, o); while (!o->done) sched_yield();\n\
         free(o); pthread_join(t, 0); return 0; }}"
    )
}

#[test]
fn locks_in_freed_memory_are_found() {
    let workshop = Workshop::new();
    for (name, member, first, worker) in [
        (
            "unlock",
            "pthread_mutex_t m",
            "pthread_mutex_init(&o->m, 0);",
            "pthread_mutex_lock(&o->m); o->done = 1; pthread_mutex_unlock(&o->m);",
        ),
        (
            "signal",
            "pthread_cond_t c",
            "pthread_cond_init(&o->c, 0);",
            "o->done = 1; pthread_cond_signal(&o->c);",
        ),
        ("post", "sem_t s", "sem_init(&o->s, 0, 0);", "o->done = 1; sem_post(&o->s);"),
        (
            "rwlock",
            "pthread_rwlock_t r",
            "pthread_rwlock_init(&o->r, 0);",
            "pthread_rwlock_rdlock(&o->r); o->done = 1; pthread_rwlock_unlock(&o->r);",
        ),
        (
            "static_lock",
            "pthread_mutex_t m",
            "o->m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;",
            "pthread_mutex_lock(&o->m); o->done = 1; pthread_mutex_unlock(&o->m);",
        ),
    ] {
        let answer = tested(&workshop, name, &freed_early(member, first, worker)).ends_with(10);
        assert!(!answer.confirmed("crash").is_empty(), "{name}: {:#}", answer.report);
    }
}

#[test]
fn locks_that_are_freed_when_nobody_needs_them_are_no_finding() {
    let workshop = Workshop::new();
    for (name, code) in [
        (
            "posted_last",
            freed_early("int x", "", "o->x = 1; o->done = 1;"),
        ),
        (
            "counted",
            "struct o { pthread_mutex_t m; int refs; };\n\
             static void drop(struct o *o) { pthread_mutex_lock(&o->m); int last = --o->refs == 0;\n\
             pthread_mutex_unlock(&o->m); if (last) { pthread_mutex_destroy(&o->m); free(o); } }\n\
             static void *w(void *p) { drop(p); return 0; }\n\
             int main(void) { struct o *o = malloc(sizeof *o); pthread_mutex_init(&o->m, 0); o->refs = 2;\n\
             pthread_t t; pthread_create(&t, 0, w, o); drop(o); pthread_join(t, 0); return 0; }"
                .into(),
        ),
        (
            "joined",
            "static void *w(void *p) { pthread_mutex_lock(p); pthread_mutex_unlock(p); return 0; }\n\
             int main(void) { for (int i = 0; i < 2; i++) { pthread_mutex_t *m = calloc(1, sizeof *m);\n\
             pthread_t t; pthread_create(&t, 0, w, m); pthread_mutex_lock(m); pthread_mutex_unlock(m);\n\
             pthread_join(t, 0); free(m); } return 0; }"
                .into(),
        ),
    ] {
        let answer = tested(&workshop, name, &code);
        assert_eq!(answer.code, Some(0), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}

#[test]
fn memory_of_calloc_is_zero() {
    let workshop = Workshop::new();
    let code = "struct o { int r; atomic_int done; };\n\
        static void *w(void *p) { struct o *o = p; o->r = 5; o->done = 1; return 0; }\n\
        int main(void) { struct o *o = calloc(1, sizeof *o); pthread_t t; pthread_create(&t, 0, w, o);\n\
        while (!o->done) sched_yield(); int r = o->r; free(o); pthread_join(t, 0); return r != 5; }";
    tested(&workshop, "calloc", code).ends_with(0);
}

#[test]
fn output_of_freed_memory_is_found() {
    let workshop = Workshop::new();
    for (name, shown) in [
        ("write", "if (write(fd, x, 4) != 4) abort();"),
        ("pwrite", "if (pwrite(fd, x, 4, 0) != 4) abort();"),
        ("send", "send(fd, x, 4, 0);"),
        ("fwrite", "fwrite(x, 1, 4, stderr);"),
    ] {
        let code = format!(
            "#include <stdio.h>\n#include <sys/socket.h>\n\
             static char *b; static int fd; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
             static void *w(void *p) {{ pthread_mutex_lock(&m); char *x = b; pthread_mutex_unlock(&m);\n\
             if (x) {{ {shown} }} return p; }}\n\
             static void *f(void *p) {{ pthread_mutex_lock(&m); char *x = b; b = 0; pthread_mutex_unlock(&m);\n\
             free(x); return p; }}\n\
             int main(void) {{ fd = open(\"/dev/null\", O_WRONLY); b = calloc(1, 4); pthread_t a, c;\n\
             pthread_create(&a, 0, w, 0); pthread_create(&c, 0, f, 0);\n\
             pthread_join(a, 0); pthread_join(c, 0); return 0; }}"
        );
        let answer = tested(&workshop, name, &code).ends_with(10);
        assert!(!answer.confirmed("crash").is_empty(), "{name}: {:#}", answer.report);
    }
}

#[test]
fn a_block_that_is_overrun_in_another_interleaving_is_found() {
    let workshop = Workshop::new();
    let head = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        #define LOCK pthread_mutex_lock(&m)\n#define UNLOCK pthread_mutex_unlock(&m)\n";
    let end = "pthread_t x, y; pthread_create(&x, 0, r, 0); pthread_create(&y, 0, w, 0);\n\
        pthread_join(x, 0); pthread_join(y, 0); free(b); return 0; }";
    for (name, code, expected) in [
        (
            "checked_before",
            "static int n = 3; static char *b;\n\
             static void *r(void *p) { LOCK; int room = n < 4; UNLOCK; if (room) { LOCK; b[n++] = 1; UNLOCK; } return p; }\n\
             static void *w(void *p) { return r(p); }\nint main(void) { b = malloc(4);",
            10,
        ),
        (
            "one_more",
            "static int n = 20; static char *b;\n\
             static void *w(void *p) { LOCK; n += 4; UNLOCK; return p; }\n\
             static void *r(void *p) { LOCK; int i = n; UNLOCK; b[i] = 1; return p; }\nint main(void) { b = malloc(24);",
            10,
        ),
        (
            "behind_a_full_block",
            "static int n = 3; static int *b;\n\
             static void *w(void *p) { LOCK; n++; UNLOCK; return p; }\n\
             static void *r(void *p) { LOCK; int i = n; UNLOCK; return b[i] ? p : 0; }\nint main(void) { b = calloc(4, 4);",
            10,
        ),
        (
            "half_outside",
            "static int n = 4; static char *b;\n\
             static void *w(void *p) { LOCK; n = 6; UNLOCK; return p; }\n\
             static void *r(void *p) { LOCK; int i = n; UNLOCK; *(int *)(b + i) = 1; return p; }\n\
             int main(void) { b = malloc(8);",
            10,
        ),
        (
            "within",
            "static int n = 20; static char *b;\n\
             static void *w(void *p) { LOCK; n += 3; UNLOCK; return p; }\n\
             static void *r(void *p) { LOCK; int i = n; UNLOCK; b[i] = 1; return p; }\nint main(void) { b = malloc(24);",
            0,
        ),
        (
            "grown",
            "static int n = 2, room = 2; static char *b;\n\
             static void *r(void *p) { LOCK; if (n == room) b = realloc(b, room *= 2); b[n++] = 1; UNLOCK; return p; }\n\
             static void *w(void *p) { return r(p); }\nint main(void) { b = malloc(2);",
            0,
        ),
    ] {
        let answer = tested(&workshop, name, &format!("{head}{code} {end}"));
        assert_eq!(answer.code, Some(expected), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}
