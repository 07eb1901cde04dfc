//! What a clock shows is held at what it showed. Where a program compares it and another thread waits for time to pass,
//! another interleaving could show something else: that is said.

use crate::common::Workshop;

const HEAD: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <sys/time.h>\n#include <time.h>\n#include <unistd.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n, slow; static struct timespec start;\n\
    static void get(struct timespec *t) { clock_gettime(CLOCK_REALTIME, t); }\n\
    static int late(struct timespec *a, struct timespec *b) { return b->tv_nsec - a->tv_nsec > 3000000; }\n\
    static double now(void) { struct timeval v; gettimeofday(&v, 0); return v.tv_sec + v.tv_usec * 1e-6; }\n";

/// A thread does one thing while it has the lock; `main` does something before and after it has it.
fn tested(name: &str, level: &str, thread: &str, before: &str, after: &str) -> Option<i32> {
    let code = format!(
        "{HEAD}static void *w(void *z) {{ pthread_mutex_lock(&m); {thread} pthread_mutex_unlock(&m); return z; }}\n\
         int main(void) {{ pthread_t t; struct timespec a, b; double x; time_t s; (void)a, (void)b, (void)x, (void)s;\n\
         pthread_create(&t, 0, w, 0); {before} pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m);\n\
         {after} pthread_join(t, 0); assert(!slow); return 0; }}\n"
    );
    let workshop = Workshop::new();
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, code).expect("a file");
    let program = workshop.build(&source, &[level, "-Wno-unused-function"]);
    let answer = workshop.test(&program, &[], &[]);
    assert!(answer.findings().is_empty(), "{name} {level}: {:#}", answer.report);
    let said =
        answer.report["trace"]["restrictions"].to_string().contains("a comparison with a clock");
    assert_eq!(said, answer.code == Some(12), "{name} {level}: {:#}", answer.report);
    answer.code
}

#[test]
fn what_a_clock_decides_is_said() {
    let difference = "clock_gettime(CLOCK_MONOTONIC, &b);\n\
        if ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 3) slow = 1;";
    let first = "clock_gettime(CLOCK_MONOTONIC, &a);";
    let sleeps = "usleep(5000);";
    let cases = [
        ("difference", sleeps, first, difference),
        ("helper", sleeps, "x = now();", "if (now() - x > 0.003) slow = 1;"),
        ("seconds", "sleep(3);", "s = time(0);", "if (difftime(time(0), s) > 2) slow = 1;"),
        ("by_pointer", sleeps, "get(&a);", "get(&b); slow = late(&a, &b);"),
        (
            "global",
            sleeps,
            "get(&start);",
            "get(&b); while (late(&start, &b)) { slow = 1; break; }",
        ),
    ];
    for (name, thread, before, after) in cases {
        for level in ["-O0", "-O2"] {
            assert_eq!(tested(name, level, thread, before, after), Some(12), "{name} {level}");
        }
    }
}

#[test]
fn a_clock_that_decides_nothing_is_an_input() {
    let first = "clock_gettime(CLOCK_MONOTONIC, &a);";
    let cases = [
        // Nobody else lets time pass.
        ("no_sleeper", "n++;", first, "get(&b); slow = b.tv_sec - a.tv_sec == 12345;"),
        (
            "own_sleep",
            "n++;",
            "get(&a); usleep(5000);",
            "get(&b); slow = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 5;",
        ),
        (
            "printed",
            "usleep(5000);",
            first,
            "clock_gettime(CLOCK_MONOTONIC, &b); long ns = b.tv_nsec - a.tv_nsec; s = b.tv_sec - a.tv_sec;\n\
             if (ns < 0) { s--; ns += 1000000000; } printf(\"%ld.%09ld\\n\", (long)s, ns);",
        ),
        ("seed", "usleep(5000);", "srand(time(0));", ""),
    ];
    for (name, thread, before, after) in cases {
        for level in ["-O0", "-O2"] {
            assert_eq!(tested(name, level, thread, before, after), Some(0), "{name} {level}");
        }
    }
}
