//! Exit statuses that differ in another interleaving, where no branch of the program tells.

use crate::common::{Answer, Workshop};

const HEAD: &str = "#include <pthread.h>\n#include <semaphore.h>\n#include <stdlib.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    #define LOCK pthread_mutex_lock(&m)\n#define UNLOCK pthread_mutex_unlock(&m)\n\
    static void two(void *(*f)(void *), void *(*g)(void *)) { pthread_t a, b;\n\
    pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
    pthread_join(a, 0); pthread_join(b, 0); }\n";

fn tested(workshop: &Workshop, name: &str, level: &str, code: &str) -> Answer {
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, format!("{HEAD}{code}\n")).expect("a file");
    let program = workshop.build(&source, &[level]);
    workshop.test(&program, &[], &[])
}

/// Increments under a lock that is given back in between.
const LOST: &str = "static int x; static void *f(void *a) { LOCK; int y = x; UNLOCK; LOCK; x = y + 1; UNLOCK; \
    return a; }\n";
/// As it should be.
const KEPT: &str = "static int x; static void *f(void *a) { for (int i = 0; i < 20; i++) { LOCK; x++; UNLOCK; } \
    return a; }\n";

#[test]
fn another_exit_status_is_found() {
    let workshop = Workshop::new();
    for (name, code) in [
        ("compared", format!("{LOST}int main(void) {{ two(f, f); return x != 2; }}")),
        ("missing", format!("{LOST}int main(void) {{ two(f, f); return 2 - x; }}")),
        ("chosen", format!("{LOST}int main(void) {{ two(f, f); return x == 2 ? 0 : 3; }}")),
        ("called", format!("{LOST}int main(void) {{ two(f, f); exit(x != 2); }}")),
        (
            "helper",
            format!("{LOST}static int bad(void) {{ return x < 2; }} int main(void) {{ two(f, f); return bad(); }}"),
        ),
        (
            "torn_pair",
            "static int a, b, bad;\n\
             static void *w(void *p) { LOCK; a = 1; UNLOCK; LOCK; b = 1; UNLOCK; return p; }\n\
             static void *r(void *p) { LOCK; bad |= a != b; UNLOCK; return p; }\n\
             int main(void) { two(r, w); return bad; }"
                .into(),
        ),
        (
            "detached_half",
            "static int a = 1, b = 1; static sem_t s;\n\
             static void *w(void *p) { LOCK; a--; UNLOCK; sem_post(&s); LOCK; b++; UNLOCK; return p; }\n\
             int main(void) { sem_init(&s, 0, 0); pthread_t t; pthread_create(&t, 0, w, 0); sem_wait(&s);\n\
             LOCK; int r = a + b; UNLOCK; pthread_join(t, 0); return r == 2 ? 0 : 5; }"
                .into(),
        ),
        (
            "oversold",
            "static int stock = 1;\n\
             static void *buy(void *p) { LOCK; int s = stock; UNLOCK; LOCK; stock -= s > 0; UNLOCK; return p; }\n\
             int main(void) { two(buy, buy); return stock < 0 ? 2 : 0; }"
                .into(),
        ),
    ] {
        for level in ["-O0", "-O1", "-O2"] {
            let answer = tested(&workshop, name, level, &code);
            assert_eq!(answer.code, Some(10), "{name} {level}: {:#}", answer.report);
        }
    }
}

#[test]
fn an_exit_status_that_cannot_differ_is_covered() {
    let workshop = Workshop::new();
    for (name, code) in [
        ("kept", format!("{KEPT}int main(void) {{ two(f, f); return x != 40; }}")),
        ("atomic", "static _Atomic int x; static void *f(void *a) { for (int i = 0; i < 20; i++) x++; return a; }\n\
             int main(void) { two(f, f); return x == 40 ? 0 : 1; }".into()),
        ("sum", format!("{KEPT}static int y; static void *g(void *a) {{ LOCK; y += 2; x--; UNLOCK; return a; }}\n\
             int main(void) {{ two(f, g); return x + y != 21; }}")),
    ] {
        for level in ["-O0", "-O1", "-O2"] {
            let answer = tested(&workshop, name, level, &code);
            assert_eq!(answer.code, Some(0), "{name} {level}: {:#}\n{}", answer.report, answer.stderr);
        }
    }
}

#[test]
fn a_failure_after_a_try_may_be_lawful_and_is_said() {
    let workshop = Workshop::new();
    let code = "static int sum;\n\
        static void *t(void *p) { for (int i = 0; i < 2; i++)\n\
        if (pthread_mutex_trylock(&m) == 0) { sum++; UNLOCK; } return p; }\n\
        int main(void) { two(t, t); return sum == 4 ? 0 : 1; }";
    let answer = tested(&workshop, "dropped", "-O1", code).ends_with(12);
    let said = answer.report["unseen"].to_string();
    assert!(said.contains("exit status 1 instead of 0"), "{said}");
}

/// What a thread computed of what it saw goes on through something that is easily overlooked.
#[test]
fn values_are_followed_wherever_they_go() {
    let workshop = Workshop::new();
    for (name, thread, end) in [
        ("fetch_add", "atomic_fetch_add(&l, atomic_load(&x)); return 0;", "assert(l == 0);"),
        ("fetch_or", "atomic_fetch_or(&l, atomic_load(&x)); return 0;", "assert(l == 0);"),
        ("exchange", "atomic_exchange(&l, atomic_load(&x)); return 0;", "assert(l == 0);"),
        ("compound", "l += x; return 0;", "assert(l == 0);"),
        (
            "compare_exchange",
            "int e = 0; atomic_compare_exchange_strong(&l, &e, atomic_load(&x)); return 0;",
            "assert(l == 0);",
        ),
        ("returned", "return (void *)(long)atomic_load(&x);", "assert(!r);"),
        ("pthread_exit", "pthread_exit((void *)(long)atomic_load(&x));", "assert(!r);"),
        ("chosen", "return x ? \"a\" : 0;", "assert(!r);"),
        (
            "sscanf",
            "int v; char t[2] = {(char)('0' + x), 0}; sscanf(t, \"%d\", &v); l = v; return 0;",
            "assert(l == 0);",
        ),
        (
            "strdup",
            "char t[2] = {(char)('0' + x), 0}; char *d = strdup(t); l = d[0] - '0'; free(d); return 0;",
            "assert(l == 0);",
        ),
    ] {
        let code = format!(
            "#include <assert.h>\n#include <stdatomic.h>\n#include <stdio.h>\n#include <string.h>\n\
             static atomic_int x, l; static void *r;\n\
             static void *f(void *p) {{ atomic_store(&x, 1); atomic_store(&x, 0); return p; }}\n\
             static void *g(void *p) {{ {thread} }}\n\
             int main(void) {{ pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
             pthread_join(a, 0); pthread_join(b, &r); {end} return 0; }}"
        );
        for level in ["-O0", "-O1"] {
            let answer = tested(&workshop, name, level, &code).ends_with(10);
            assert!(
                !answer.confirmed("assertion").is_empty(),
                "{name} {level}: {:#}",
                answer.report
            );
        }
    }
}
