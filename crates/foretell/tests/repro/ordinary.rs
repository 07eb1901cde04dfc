//! Ordinary programs of strangers on which foretell was wrong.

use crate::common::{Answer, Workshop};

const HEAD: &str = "#define _GNU_SOURCE\n#include <assert.h>\n#include <errno.h>\n#include <pthread.h>\n#include <semaphore.h>\n\
    #include <signal.h>\n#include <stdatomic.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    #include <sys/socket.h>\n#include <time.h>\n#include <unistd.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    static void lock(void) { pthread_mutex_lock(&m); }\n\
    static void unlock(void) { pthread_mutex_unlock(&m); }\n\
    static pthread_t a, b;\n\
    #define THREAD(f) static void *f(void *_)\n\
    static inline int two(void *(*f)(void *), void *(*g)(void *)) {\n\
    pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
    pthread_join(a, 0); pthread_join(b, 0); (void)lock; (void)unlock; return 0; }\n";

fn tested(workshop: &Workshop, name: &str, code: &str) -> Answer {
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, format!("{HEAD}{code}\n")).expect("a file");
    workshop.test(&source, &[], &[])
}

fn all_end_with(code: i32, programs: &[(&str, &str)]) {
    let workshop = Workshop::new();
    for (name, program) in programs {
        eprintln!("{name}");
        tested(&workshop, name, program).ends_with(code);
    }
}

/// A thread that holds a lock joins one that needs it.
#[test]
fn a_join_under_a_lock_is_a_deadlock() {
    let joined = |object: &str, take: &str, give: &str| {
        format!(
            "{object}\nTHREAD(worker) {{ {take} {give} return 0; }}\n\
             THREAD(stopper) {{ {take} pthread_join(a, 0); {give} return 0; }}\n\
             int main(void) {{ pthread_create(&a, 0, worker, 0); pthread_create(&b, 0, stopper, 0);\n\
             pthread_join(b, 0); return 0; }}"
        )
    };
    let rw = "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;";
    let recursive = "static pthread_mutex_t l = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;";
    all_end_with(
        10,
        &[
            ("mutex", &joined("", "lock();", "unlock();")),
            ("rwlock", &joined(rw, "pthread_rwlock_wrlock(&l);", "pthread_rwlock_unlock(&l);")),
            (
                "recursive",
                &joined(recursive, "pthread_mutex_lock(&l);", "pthread_mutex_unlock(&l);"),
            ),
            (
                "on_a_branch",
                "static int stop; THREAD(worker) { lock(); if (stop) { unlock(); return 0; } unlock(); lock(); unlock(); return 0; }\n\
                 THREAD(stopper) { lock(); stop = 1; pthread_join(a, 0); unlock(); return 0; }\n\
                 int main(void) { pthread_create(&a, 0, worker, 0); pthread_create(&b, 0, stopper, 0);\n\
                 pthread_join(b, 0); return 0; }",
            ),
        ],
    );
    let shared = joined(rw, "pthread_rwlock_rdlock(&l);", "pthread_rwlock_unlock(&l);");
    all_end_with(
        0,
        &[
            ("ok_readers", &shared),
            (
                "ok_after",
                "THREAD(worker) { lock(); unlock(); return 0; }\n\
                 THREAD(stopper) { lock(); unlock(); pthread_join(a, 0); return 0; }\n\
                 int main(void) { pthread_create(&a, 0, worker, 0); pthread_create(&b, 0, stopper, 0);\n\
                 pthread_join(b, 0); return 0; }",
            ),
        ],
    );
}

/// glibc gives back one level of a recursive mutex.
#[test]
fn a_wait_with_a_recursive_mutex_gives_it_back_once() {
    let waits = |times: usize| {
        let (takes, gives) =
            ("pthread_mutex_lock(&l); ".repeat(times), "pthread_mutex_unlock(&l); ".repeat(times));
        format!(
            "static pthread_mutex_t l = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;\n\
             static pthread_cond_t c = PTHREAD_COND_INITIALIZER; static int ready;\n\
             THREAD(waits) {{ {takes} while (!ready) pthread_cond_wait(&c, &l); {gives} return 0; }}\n\
             THREAD(signals) {{ pthread_mutex_lock(&l); ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&l); return 0; }}\n\
             int main(void) {{ return two(signals, waits); }}"
        )
    };
    all_end_with(10, &[("twice", &waits(2)), ("three_times", &waits(3))]);
    all_end_with(0, &[("once", &waits(1))]);
}

/// Memory that was allocated again is not freed.
#[test]
fn a_block_that_is_replaced_under_a_lock_is_no_freed_one() {
    let replaced = |how: &str| {
        format!(
            "static int *v; THREAD(reads) {{ lock(); int k = v[0]; unlock(); assert(k == 1); return 0; }}\n\
             THREAD(replaces) {{ lock(); {how} unlock(); return 0; }}\n\
             int main(void) {{ v = malloc(8); v[0] = 1; two(reads, replaces); free(v); return 0; }}"
        )
    };
    all_end_with(
        0,
        &[
            ("grown_in_place", &replaced("v = realloc(v, 16);")),
            ("grown", &replaced("v = realloc(v, 16000); v[3000] = 2;")),
            ("freed_and_allocated", &replaced("free(v); v = malloc(8); v[0] = 1;")),
            ("allocated_and_freed", &replaced("int *o = v; v = malloc(8); v[0] = 1; free(o);")),
        ],
    );
    all_end_with(
        10,
        &[
            (
                "stale",
                "static int *v; THREAD(reads) { lock(); int *p = v; unlock(); lock(); int k = p[0]; unlock(); return (void *)(long)k; }\n\
                 THREAD(replaces) { lock(); free(v); v = calloc(1, 800); unlock(); return 0; }\n\
                 int main(void) { v = malloc(8); v[0] = 1; two(reads, replaces); free(v); return 0; }",
            ),
            (
                "far_behind",
                "static char *buffer; static int length;\n\
                 THREAD(uses) { lock(); int n = length; unlock(); lock(); buffer[n - 1] = 'x'; unlock(); return 0; }\n\
                 THREAD(shrinks) { lock(); free(buffer); buffer = malloc(4); length = 4; unlock(); return 0; }\n\
                 int main(void) { length = 1 << 20; buffer = malloc(length); return two(uses, shrinks); }",
            ),
        ],
    );
}

/// What is written is of no consequence; where it is read from is.
#[test]
fn output_of_what_is_not_there_is_a_crash() {
    let shows = |how: &str| {
        format!(
            "static const char *s = \"one\"; static FILE *out; THREAD(shows) {{ lock(); {how} unlock(); return 0; }}\n\
             THREAD(takes) {{ lock(); s = 0; unlock(); lock(); s = \"two\"; unlock(); return 0; }}\n\
             int main(void) {{ out = stdout; return two(shows, takes); }}"
        )
    };
    all_end_with(
        10,
        &[
            ("puts", &shows("puts(s);")),
            ("fputs", &shows("fputs(s, out);")),
            (
                "printf_freed",
                "static char *_Atomic s; THREAD(drops) { free(atomic_exchange(&s, 0)); return 0; }\n\
                 THREAD(prints) { char *p = s; if (p) printf(\"name: %s\\n\", p); return 0; }\n\
                 int main(void) { s = strdup(\"hello\"); return two(prints, drops); }",
            ),
        ],
    );
    all_end_with(0, &[("ok_puts", &shows("if (s) puts(s);"))]);
}

/// What a function of the C library reads is where the pointer leads that it is given.
#[test]
fn a_text_that_is_replaced_under_a_lock_is_no_freed_one() {
    let used = |under_lock: bool, how: &str| {
        let (take, give) = match under_lock {
            true => ("lock(); char *s = name;", "unlock();"),
            false => ("lock(); char *s = name; unlock();", ""),
        };
        format!(
            "static char *name; static int res; static char other[8];\n\
             THREAD(replaces) {{ char *c = malloc(4); memcpy(c, \"345\", 4); lock(); char *o = name; name = c; unlock();\n\
             free(o); return 0; }}\n\
             THREAD(uses) {{ {take} {how} {give} (void)res; (void)other; return 0; }}\n\
             int main(void) {{ name = strdup(\"12\"); two(uses, replaces); free(name); return 0; }}"
        )
    };
    let uses = [
        ("strlen", "res = (int)strlen(s);"),
        ("strcmp", "res = strcmp(s, \"x\");"),
        ("atoi", "res = atoi(s);"),
        ("puts", "puts(s);"),
        ("printf", "printf(\"%s\\n\", s);"),
        ("strdup", "free(strdup(s));"),
        ("write", "if (write(1, s, 2) != 2) abort();"),
        ("snprintf", "snprintf(other, sizeof other, \"%s\", s);"),
    ];
    let workshop = Workshop::new();
    for (name, how) in uses {
        eprintln!("{name}");
        tested(&workshop, &format!("ok_{name}"), &used(true, how)).ends_with(0);
        // Some read in several steps of one call, between which no schedule can be forced: that is predicted.
        let stale = tested(&workshop, &format!("stale_{name}"), &used(false, how));
        assert!(matches!(stale.code, Some(10 | 11)), "{:#}", stale.report);
    }
}

#[test]
fn what_operator_delete_frees_is_what_the_pointer_leads_to() {
    let workshop = Workshop::new();
    let source = workshop.path().join("moved.cpp");
    let code = "#include <cassert>\n#include <mutex>\n#include <string>\n#include <thread>\n\
        std::mutex m; std::string s = \"first value long enough for the heap ...\";\n\
        int main() {\n\
        std::thread t([] { std::string c; { std::lock_guard<std::mutex> g(m); c.swap(s); } assert(c.size() >= 10); });\n\
        std::thread u([] { std::string n(60, 'z'); std::lock_guard<std::mutex> g(m); s = std::move(n); });\n\
        t.join(); u.join(); }\n";
    std::fs::write(&source, code).expect("a file");
    workshop.test(&source, &[], &[]).ends_with(0);
}

/// That nobody reads any more is not varied, and said.
#[test]
fn a_pipe_that_is_closed_beside_its_writer_is_said() {
    let pipe = |reads: &str, writes: &str| {
        format!(
            "static int fd[2]; THREAD(reads) {{ char c; (void)c; {reads} close(fd[0]); return 0; }}\n\
             THREAD(writes) {{ {writes} close(fd[1]); return 0; }}\n\
             int main(void) {{ if (pipe(fd)) return 0; return two(writes, reads); }}"
        )
    };
    let writes = "if (write(fd[1], \"x\", 1) != 1) abort();";
    all_end_with(12, &[("closed", &pipe("", writes))]);
    all_end_with(
        0,
        &[("ok_read_to_the_end", &pipe("while (read(fd[0], &c, 1) == 1) continue;", writes))],
    );
}

/// Clocks show the same in every interleaving.
#[test]
fn time_limits_make_no_paths_of_their_own() {
    let timed = |object: &str, how: &str| {
        format!(
            "{object} static int v = 1, got; static struct timespec t;\n\
             THREAD(writes) {{ lock(); v = 2; unlock(); return 0; }}\n\
             THREAD(reads) {{ clock_gettime(CLOCK_REALTIME, &t); t.tv_sec++; {how} return 0; }}\n\
             int main(void) {{ return two(writes, reads); }}"
        )
    };
    all_end_with(
        0,
        &[
            (
                "timedlock",
                &timed("", "if (pthread_mutex_timedlock(&m, &t) == 0) { got = v; unlock(); }"),
            ),
            (
                "timedrdlock",
                "static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; static int v = 1, got;\n\
                 THREAD(writes) { pthread_rwlock_wrlock(&l); v = 2; pthread_rwlock_unlock(&l); return 0; }\n\
                 THREAD(reads) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec++;\n\
                 if (pthread_rwlock_timedrdlock(&l, &t) == 0) { got = v; pthread_rwlock_unlock(&l); } return 0; }\n\
                 int main(void) { return two(writes, reads); }",
            ),
            (
                "monotonic",
                "static pthread_cond_t c; static int ready;\n\
                 THREAD(sets) { lock(); ready = 1; pthread_cond_signal(&c); unlock(); return 0; }\n\
                 int main(void) { pthread_condattr_t attributes; pthread_condattr_init(&attributes);\n\
                 pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); pthread_cond_init(&c, &attributes);\n\
                 pthread_create(&a, 0, sets, 0); struct timespec t, n; clock_gettime(CLOCK_MONOTONIC, &t); t.tv_sec += 2; lock();\n\
                 while (!ready) if (pthread_cond_timedwait(&c, &m, &t) == ETIMEDOUT) {\n\
                 clock_gettime(CLOCK_MONOTONIC, &n); assert(n.tv_sec >= t.tv_sec); break; }\n\
                 unlock(); pthread_join(a, 0); (void)two; return 0; }",
            ),
        ],
    );
    // What the clock shows beside another thread that sleeps is held.
    all_end_with(
        12,
        &[(
            "slept",
            "static long passed(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }\n\
                 THREAD(sleeps) { long before = passed(); usleep(300); long after = passed();\n\
                 assert(after - before >= 300000); assert(passed() > after); return 0; }\n\
                 int main(void) { return two(sleeps, sleeps); }",
        )],
    );
}
