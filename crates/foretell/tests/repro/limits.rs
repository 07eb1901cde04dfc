//! Programs without an end, and long ones: a time limit holds for what comes after the recording, too, so
//! that a recording ends where more could not be looked at. There is always a report.

use std::process::Command;
use std::time::Instant;

use crate::common::Workshop;

#[test]
fn a_run_without_an_end_is_ended_and_reported() {
    let cases = [
        ("stores", "_Atomic int x; void *f(void *a) { for (;;) x++; return 0; } int main(void) { go(f); for (;;) x += 2; }"),
        ("locks", "int x; void *f(void *a) { for (;;) { pthread_mutex_lock(&m); x++; pthread_mutex_unlock(&m); } return 0; }
            int main(void) { go(f); f(0); }"),
        ("handler", "volatile int n; void h(int s) { for (;;) n++; } void *f(void *a) { return 0; }
            int main(void) { signal(SIGUSR1, h); go(f); raise(SIGUSR1); return 0; }"),
        ("blocks", "void *volatile p; void *f(void *a) { for (;;) { p = malloc(16); free(p); } return 0; }
            int main(void) { go(f); pthread_join(t, 0); return 0; }"),
        ("meetings", "pthread_barrier_t b; int x; void *f(void *a) { for (int i = 0;; i++) { pthread_barrier_wait(&b); if (a) x = i; } return 0; }
            int main(void) { pthread_barrier_init(&b, 0, 2); go(f); f(&x); }"),
    ];
    let workshop = Workshop::new();
    for (name, code) in cases {
        let head = "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\nstatic pthread_t t;\n\
            static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
            static void go(void *(*f)(void *)) { pthread_create(&t, 0, f, 0); }\n";
        let program = workshop.build_text(name, &format!("{head}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "3"], &[]);
        assert_eq!(answer.code, Some(12), "{name}: {:#}\n{}", answer.report, answer.stderr);
        let unseen = answer.report["unseen"].to_string();
        // A slow machine does not get that far in the time.
        let said = unseen.contains("the run was ended after 60000 events")
            || unseen.contains("the run was ended by its time limit");
        assert!(said, "{name}: {unseen} {}", answer.stderr);
    }
}

/// A forced run that goes on and on is one open question, not the end of everything.
#[test]
fn a_forced_run_without_an_end_leaves_a_report() {
    let workshop = Workshop::new();
    let rounds = [("silent", "n++;"), ("with_locks", "L; n += step; U;")];
    for (name, round) in rounds {
        let code = format!(
            "#include <pthread.h>\n#define L pthread_mutex_lock(&m)\n#define U pthread_mutex_unlock(&m)\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int step = 1;\n\
             void *p(void *a) {{ L; step = 2; U; return 0; }}\n\
             void *q(void *a) {{ L; int s = step; U; unsigned i = 0; volatile unsigned n = 0;\n\
             while (i != 7) {{ i += s; {round} }} return 0; }}\n\
             int main(void) {{ pthread_t a, b; pthread_create(&a, 0, q, 0); pthread_create(&b, 0, p, 0);\n\
             pthread_join(a, 0); pthread_join(b, 0); return 0; }}\n"
        );
        let program = workshop.build_text(name, &code);
        let answer = workshop.test(&program, &["--time-limit", "30", "--run-limit", "2"], &[]);
        assert!(
            matches!(answer.code, Some(10 | 12)),
            "{name}: {:?} {}",
            answer.code,
            answer.stderr
        );
        let classes = &answer.report["exploration"]["classes"];
        assert!(classes.as_u64() >= Some(1), "{name}: {:#} {}", answer.report, answer.stderr);
        if name == "silent" {
            let unseen = answer.report["unseen"].to_string();
            assert!(unseen.contains("thread q was at"), "{unseen}");
            assert!(unseen.contains("silent.c:7 or after it"), "{unseen}");
        }
    }
}

/// The stack of the first thread is the user's to limit; foretell works on one of its own.
#[test]
fn a_small_stack_is_enough() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "small",
        "#include <assert.h>\n#include <pthread.h>\nint x; void *f(void *a) { int s = x; x = s + 1; return 0; }\n\
         int main(void) { pthread_t t, u; pthread_create(&t, 0, f, 0); pthread_create(&u, 0, f, 0);\n\
         pthread_join(t, 0); pthread_join(u, 0); assert(x == 2); return 0; }\n",
    );
    let foretell = workshop.foretell();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -s 128; exec \"$0\" \"$@\""]).arg(foretell.get_program());
    limited.args(["test", "--jobs", "1"]).arg(program).current_dir(workshop.path());
    limited.envs(foretell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(10), "{said}");
}

/// What foretell computes follows from what a program computed, as deep as that called itself.
#[test]
fn a_deep_recursion_leaves_a_report() {
    let workshop = Workshop::new();
    for depth in [2_000, 20_000] {
        let code = format!(
            "#include <pthread.h>\n#include <stdatomic.h>\nstatic atomic_int n;\n\
             static int rec(int d) {{ n++; return d ? rec(d - 1) + 1 : 0; }}\n\
             static void *w(void *z) {{ return rec({depth}) == {depth} ? 0 : z; }}\n\
             int main(void) {{ pthread_t a, b; pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);\n\
             pthread_join(a, 0); pthread_join(b, 0); return 0; }}\n"
        );
        let source = workshop.path().join("deep.c");
        std::fs::write(&source, code).expect("a file");
        let answer = workshop.test(&source, &["--time-limit", "5"], &[]);
        assert!(
            matches!(answer.code, Some(0 | 12)),
            "{depth}: {:?} {}",
            answer.code,
            answer.stderr
        );
        assert!(answer.report["exploration"].is_object(), "{depth}: {}", answer.stderr);
    }
}

/// A run that is as long as a stack is deep does not cost the report of how it ended.
#[test]
fn a_stack_that_overflows_is_reported_in_time_and_replayed() {
    let workshop = Workshop::new();
    let source = workshop.path().join("overflow.c");
    let code = "#include <pthread.h>\n#include <stdatomic.h>\nstatic atomic_long depth = 3;\n\
        __attribute__((noinline)) static long rec(long n) { volatile char pad[64]; pad[0] = n;\n\
        return n <= 0 ? pad[0] : rec(n - 1) + pad[0]; }\n\
        static void *writer(void *z) { depth = 100000000; depth = 4; return 0; }\n\
        static void *reader(void *z) { return rec(depth) == 99 ? &depth : 0; }\n\
        int main(void) { pthread_t p, q; pthread_create(&p, 0, writer, 0); pthread_create(&q, 0, reader, 0);\n\
        pthread_join(p, 0); pthread_join(q, 0); return 0; }\n";
    std::fs::write(&source, code).expect("a file");
    let started = Instant::now();
    let answer = workshop.test(&source, &["--time-limit", "10"], &[]).ends_with(10);
    // A second or two over it; the rest is for a busy machine.
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert_eq!(answer.confirmed("crash").len(), 1, "{:#}", answer.report);
    workshop.replays(&answer, &source, 2);
}
