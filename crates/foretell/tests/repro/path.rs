//! What is predicted from a recorded path, and what a forced run shows.

use crate::common::{Answer, Workshop, source, tested};

const HEAD: &str = "#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\n\
    #include <stdatomic.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #include <string.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
    #define LOCK pthread_mutex_lock(&m)\n#define UNLOCK pthread_mutex_unlock(&m)\n\
    static inline void two(void *(*f)(void *), void *(*g)(void *)) { pthread_t a, b;\n\
    pthread_create(&a, 0, f, (void *)1); pthread_create(&b, 0, g, (void *)2);\n\
    pthread_join(a, 0); pthread_join(b, 0); }\n";

/// What the program is, and its code.
type Case = (&'static str, &'static str);

/// Tests each program and looks at the answer.
#[track_caller]
fn each(cases: &[Case], look: impl Fn(&str, Answer)) {
    let workshop = Workshop::new();
    for (name, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        look(name, workshop.test(&program, &[], &[]));
    }
}

/// Tests each program; it must end with this code.
#[track_caller]
fn all_end_with(code: i32, cases: &[Case]) {
    each(cases, |name, answer| {
        assert_eq!(answer.code, Some(code), "{name}: {:#}\n{}", answer.report, answer.stderr);
    });
}

#[test]
fn one_more_line_of_log_is_lawful() {
    tested("world/fa.c", &[], &[]).ends_with(0);
}

#[test]
fn a_run_that_is_longer_on_another_path_is_no_livelock() {
    all_end_with(
        12,
        &[(
            "long_way",
            "atomic_int flag, work; void *f(void *a) { flag = 1; return 0; }
            void *g(void *a) { if (!flag) for (int i = 0; i < 700000; i++) work++; return 0; }
            int main() { two(f, g); puts(\"done\"); return 0; }",
        )],
    );
}

#[test]
fn what_a_correct_run_may_print_is_no_effect() {
    all_end_with(
        0,
        &[
            (
                "busy",
                "int n; void *f(void *a) { if (pthread_mutex_trylock(&m)) { puts(\"busy\"); LOCK; }
                n++; UNLOCK; return 0; }
                int main() { two(f, f); printf(\"%d\\n\", n); return 0; }",
            ),
            (
                "order_of_lines",
                "int n; void *f(void *a) { LOCK; n++; printf(\"thread %ld\\n\", (long)a); UNLOCK;
                LOCK; n++; UNLOCK; return 0; } int main() { two(f, f); return 0; }",
            ),
            (
                "address",
                "int n; void *f(void *a) { LOCK; void *p = malloc(8); printf(\"%p\\n\", p); n++;
                UNLOCK; LOCK; n++; UNLOCK; free(p); return 0; } int main() { two(f, f); return 0; }",
            ),
            (
                "thread_id",
                "int n; void *f(void *a) { LOCK; printf(\"id %lu\\n\", (unsigned long)pthread_self());
                n++; UNLOCK; LOCK; n++; UNLOCK; return 0; } int main() { two(f, f); return 0; }",
            ),
            (
                "retry",
                "atomic_int n; void *f(void *a) { int old = n;
                while (!atomic_compare_exchange_strong(&n, &old, old + 1)) puts(\"retry\");
                return 0; } int main() { two(f, f); printf(\"%d\\n\", n); return 0; }",
            ),
            (
                "empty_queue",
                "int full; void *p(void *a) { LOCK; full = 1; pthread_cond_signal(&c); UNLOCK;
                return 0; } void *q(void *a) { LOCK; while (!full) { puts(\"empty\");
                pthread_cond_wait(&c, &m); } full = 0; UNLOCK; return 0; }
                int main() { two(p, q); puts(\"done\"); return 0; }",
            ),
            (
                "who_is_first",
                "int first; void *f(void *a) { LOCK; int seen = first; UNLOCK; if (!seen) { LOCK;
                if (!first) first = (long)a; UNLOCK; } return 0; }
                int main() { two(f, f); printf(\"first %d\\n\", first); return 0; }",
            ),
            (
                "who_is_first_by_status",
                "int first; void *f(void *a) { LOCK; if (!first) first = (long)a; UNLOCK; return 0; }
                int main() { two(f, f); return first; }",
            ),
            (
                "slow_path",
                "atomic_int taken; int n; void *f(void *a) { int free = 0;
                if (atomic_compare_exchange_strong(&taken, &free, 1)) puts(\"fast\");
                else { puts(\"slow\"); } LOCK; n++; UNLOCK; return 0; }
                int main() { two(f, f); printf(\"%d\\n\", n); return 0; }",
            ),
            (
                "progress",
                "int n; void *f(void *a) { for (int i = 0; i < 2; i++) { LOCK; n++;
                if (n == 2) puts(\"half\"); UNLOCK; } return 0; }
                int main() { two(f, f); printf(\"%d\\n\", n); return 0; }",
            ),
        ],
    );
}

#[test]
fn what_no_correct_run_prints_is_an_effect() {
    const LOOK: &str = "int n; int look(void) { LOCK; int v = n; UNLOCK; return v; }
        void set(int v) { LOCK; n = v; UNLOCK; } void add(void) { set(look() + 1); }
        void *f(void *a) { add(); return 0; } int main() { two(f, f);";
    let ends = [
        ("number", "printf(\"%d\\n\", n); return 0; }"),
        ("word", "puts(n == 2 ? \"fine\" : \"lost\"); return 0; }"),
        ("status", "return n == 2 ? 0 : 3; }"),
        ("number_after_log", "puts(\"log\"); printf(\"n=%d of 2\\n\", n); return 0; }"),
        ("error_stream", "fprintf(stderr, \"%d\\n\", n); return 0; }"),
    ];
    let workshop = Workshop::new();
    for (name, end) in ends {
        let program = workshop.build_text(name, &format!("{HEAD}{LOOK}{end}"));
        let answer = workshop.test(&program, &[], &[]);
        let found = answer.confirmed("atomicity");
        let output = found.iter().any(|finding| finding["effect"] == "output");
        // With short turns for everybody the program says so by itself: nothing can be concluded.
        let by_itself = name == "word" && answer.code == Some(0);
        assert!(output || by_itself, "{name}: {:#}", answer.report);
    }
}

#[test]
fn a_printed_address_is_no_effect_of_a_race() {
    let answer = tested("world/sp2.c", &[], &[]).ends_with(10);
    let [race] = answer.findings() else { panic!("{:#}", answer.report) };
    assert_eq!((&race["kind"], &race["effect"]), (&"race".into(), &"none".into()));
}

#[test]
fn accesses_of_different_bytes_do_not_conflict() {
    tested("world/bytes.c", &[], &["x"]).ends_with(0);
    const HALVES: &str = "struct s { int a; short b; char c, d; } *s;
        int main() { s = malloc(sizeof *s); struct s i = {1, 2, 3, 4}; memcpy(s, &i, sizeof i);
        two(f, g); return s->a + s->b > 90; }";
    let pairs = [
        ("c_and_d", "s->c = 5;", "s->d = 6;"),
        ("b_and_c", "s->b = 5;", "s->c = 6;"),
        ("a_and_b", "s->a++;", "s->b++;"),
        ("a_and_d", "s->a++;", "s->d = 1;"),
        ("read_and_write", "if (s->c == 9) puts(\"odd\");", "s->d = 1;"),
        ("locked_and_not", "LOCK; s->b++; UNLOCK;", "if (s->d & 8) puts(\"odd\");"),
        (
            "copy_of_half",
            "char t[4]; memcpy(t, &s->b, 4); if (t[0] == 9) puts(\"odd\");",
            "s->a = 7;",
        ),
        ("one_byte_each", "((char *)s)[0] = 1;", "((char *)s)[1] = 2;"),
        ("set_of_half", "memset(s, 0, 4);", "s->b = 3;"),
        ("wide_and_narrow", "*(int *)s = 3;", "((char *)s)[4] = 2;"),
    ];
    let workshop = Workshop::new();
    let decl = "struct s; ";
    for (name, one, other) in pairs {
        let (fields, rest) = HALVES.split_at(HALVES.find("int main").expect("a main function"));
        let code = format!(
            "{HEAD}{decl}{fields}void *f(void *x) {{ {one} return 0; }}
             void *g(void *x) {{ {other} return 0; }} {rest}"
        );
        let answer = workshop.test(&workshop.build_text(name, &code), &[], &[]);
        assert_eq!(answer.code, Some(0), "{name}: {:#}", answer.report);
    }
    // And where they overlap they do.
    for (name, one, other) in [
        ("overlap_wide", "memset(s, 0, 6);", "s->b = 3;"),
        ("overlap_byte", "s->b = 3;", "((char *)s)[5] = 2;"),
    ] {
        let (fields, rest) = HALVES.split_at(HALVES.find("int main").expect("a main function"));
        let code = format!(
            "{HEAD}{decl}{fields}void *f(void *x) {{ {one} return 0; }}
             void *g(void *x) {{ {other} return 0; }} {rest}"
        );
        let answer = workshop.test(&workshop.build_text(name, &code), &[], &[]);
        let races = answer.confirmed("race");
        // One bug, also where it is seen on two paths.
        let is_first = |race: &&&serde_json::Value| race.get("same_as").is_none();
        assert_eq!(races.iter().filter(is_first).count(), 1, "{name}: {:#}", answer.report);
    }
}

#[test]
fn nothing_is_predicted_behind_an_assertion_that_would_have_failed() {
    // What is wrong behind the assertion needs what makes the assertion fail.
    let cases = [
        ("null", "static int v; int *_Atomic p = &v; atomic_int off;
          void *f(void *a) { int *q = p; assert(q); *q = 1; return 0; }
          void *g(void *a) { p = 0; return 0; } int main() { two(f, g); return 0; }", "crash"),
        ("division", "atomic_int d = 1; void *f(void *a) { int v = d; assert(v); return (void *)(long)(8 / v); }
          void *g(void *a) { d = 0; return 0; } int main() { two(f, g); return 0; }", "crash"),
        ("second_assertion", "atomic_int d = 1; void *f(void *a) { int v = d; assert(v != 0);
          LOCK; UNLOCK; assert(v + 1 == 2); return 0; } void *g(void *a) { d = 0; return 0; }
          int main() { two(f, g); return 0; }", "second"),
        ("race", "atomic_int d = 1; int x; void *f(void *a) { int v = d; assert(v); if (v < 5) x = 1; return 0; }
          void *g(void *a) { d = 0; return 0; } int main() { two(f, g); return 0; }", "race"),
        ("index", "atomic_int i; int arr[2]; int *p; void *f(void *a) { int v = i; assert(v < 2); p[v] = 1; return 0; }
          void *g(void *a) { i = 7; return 0; } int main() { p = malloc(8); two(f, g); return 0; }", "crash"),
    ];
    let workshop = Workshop::new();
    for (name, code, unwanted) in cases {
        let answer = workshop.test(&workshop.build_text(name, &format!("{HEAD}{code}")), &[], &[]);
        assert_eq!(answer.code, Some(10), "{name}: {:#}", answer.report);
        assert_eq!(answer.confirmed("assertion").len(), 1, "{name}: {:#}", answer.report);
        let told = |finding: &serde_json::Value| finding["kind"] == unwanted;
        assert!(!answer.findings().iter().any(told), "{name}: {:#}", answer.report);
    }
}

#[test]
fn all_instances_of_a_code_location_count() {
    for iterations in ["-DN=10", "-DN=200"] {
        tested("world/loopN.c", &[iterations], &[]).ends_with(0);
    }
}

#[test]
fn loops_are_decided_for_all_iterations() {
    all_end_with(
        0,
        &[
            (
                "semaphore",
                "sem_t s; int x; void *f(void *a) { for (int i = 0; i < 20; i++) { sem_wait(&s); x++;
                sem_post(&s); } return 0; }
                int main() { sem_init(&s, 0, 1); two(f, f); return x != 40; }",
            ),
            (
                "two_locks",
                "pthread_mutex_t n = PTHREAD_MUTEX_INITIALIZER; int x, y;
                void *f(void *a) { for (int i = 0; i < 15; i++) { LOCK; x++; UNLOCK;
                pthread_mutex_lock(&n); y++; pthread_mutex_unlock(&n); } return 0; }
                int main() { two(f, f); return x + y != 60; }",
            ),
            (
                "read_write_lock",
                "pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER; int x, sum;
                void *f(void *a) { for (int i = 0; i < 12; i++) { pthread_rwlock_wrlock(&r); x++;
                pthread_rwlock_unlock(&r); } return 0; }
                int main() { two(f, f); return x != 24; }",
            ),
            (
                "atomics",
                "atomic_int x; void *f(void *a) { for (int i = 0; i < 10; i++) x++; return 0; }
                int main() { two(f, f); return x != 20; }",
            ),
            (
                "turns",
                "int turn, x; void *g(long me) { for (int i = 0; i < 4; i++) { LOCK;
                while (turn != me) pthread_cond_wait(&c, &m); x++; turn = !me;
                pthread_cond_broadcast(&c); UNLOCK; } return 0; }
                void *f(void *a) { return g((long)a - 1); } int main() { two(f, f); return x != 8; }",
            ),
            (
                "array",
                "int x[3]; void *f(void *a) { for (int i = 0; i < 30; i++) { LOCK; x[i % 3]++; UNLOCK; }
                return 0; } int main() { two(f, f); return x[0] + x[1] + x[2] != 60; }",
            ),
        ],
    );
}

#[test]
fn a_lost_update_in_a_late_iteration_is_found() {
    all_end_with(
        10,
        &[
            (
                "asserted",
                "int x; int get(void) { LOCK; int v = x; UNLOCK; return v; }
                void set(int v) { LOCK; x = v; UNLOCK; } void add(int i) { set(get() + i); }
                void *f(void *a) { for (int i = 1; i < 15; i++) add(i); return 0; }
                int main() { two(f, f); assert(x == 210); return 0; }",
            ),
            (
                "last_iteration",
                "int x; void *f(void *a) { for (int i = 0; i < 12; i++) { LOCK; if (i == 11) UNLOCK;
                x++; if (i != 11) UNLOCK; } return 0; }
                int main() { two(f, f); return 0; }",
            ),
        ],
    );
}

#[test]
fn many_threads_that_only_exit_are_clear() {
    let workshop = Workshop::new();
    let code = std::fs::read_to_string(source("world/pe.c")).expect("a source");
    let program = workshop.build_text("pe26", &code.replace('4', "26"));
    workshop.test(&program, &[], &[]).ends_with(0);
}

#[test]
fn what_was_found_before_the_time_was_over_is_reported() {
    for limit in ["3", "8", "20"] {
        let workshop = Workshop::new();
        let program = workshop.build(&source("past/panic_assemble.c"), &["-O1"]);
        let answer = workshop.test(&program, &["--time-limit", limit], &[]);
        // On a busy machine there may be no time for anything.
        assert!(matches!(answer.code, Some(10..=12)), "{limit}: {}", answer.stderr);
        assert!(answer.report.is_object(), "{limit}: {}", answer.stderr);
    }
}

#[test]
fn branches_that_come_out_differently_are_found_whatever_the_reason() {
    for name in ["a", "e", "g", "h", "k", "l", "m"] {
        tested(&format!("past/{name}.c"), &[], &[]).ends_with(10);
    }
}

#[test]
fn a_stack_without_locks_and_a_cache_that_two_workers_miss_fail_in_few_runs() {
    let workshop = Workshop::new();
    for (name, runs) in [("aba", "40"), ("pool", "150")] {
        let program = workshop.build(&source(&format!("cpp/{name}.cpp")), &["-O1", "-std=c++20"]);
        workshop.test(&program, &["--runs", runs], &[]).ends_with(10);
    }
}

#[test]
fn values_are_followed_to_the_branch() {
    const MAIN: &str = "void *u(void *a) { x = 1; return 0; }
        int main() { two(t, u); assert(!bad); return 0; }";
    let threads = [
        ("by_global", "int own; void *t(void *a) { own = x; if (own == 1) bad = 1; return 0; }"),
        ("by_sum", "int own; void *t(void *a) { own = x + 4; if (own > 4) bad = 1; return 0; }"),
        (
            "by_two_steps",
            "int one, other; void *t(void *a) { one = x; other = one * 2; if (other) bad = 1;
             return 0; }",
        ),
        (
            "by_heap",
            "void *t(void *a) { int *p = malloc(4); *p = x; if (*p) bad = 1; free(p); return 0; }",
        ),
        (
            "by_array",
            "int own[4]; void *t(void *a) { own[2] = x; if (own[2] != 0) bad = 1; return 0; }",
        ),
        (
            "by_structure",
            "struct { char pad; short v; } own; void *t(void *a) { own.v = x; if (own.v) bad = 1;
             return 0; }",
        ),
        ("by_atomic", "atomic_int own; void *t(void *a) { own = x; if (own) bad = 1; return 0; }"),
        (
            "under_lock",
            "int own; void *t(void *a) { LOCK; own = x; UNLOCK; LOCK; if (own) bad = 1; UNLOCK;
             return 0; }",
        ),
    ];
    let workshop = Workshop::new();
    for (name, thread) in threads {
        let code = format!("{HEAD}atomic_int x, bad; {thread}\n{MAIN}");
        let answer = workshop.test(&workshop.build_text(name, &code), &[], &[]);
        assert_eq!(answer.code, Some(10), "{name}: {:#}", answer.report);
    }
}

#[test]
fn every_write_of_another_thread_counts() {
    all_end_with(
        10,
        &[
            (
                "second_of_three",
                "atomic_int x, bad; void *t(void *a) { if (x == 3) bad = 1; return 0; }
                void *u(void *a) { x = 5; x = 3; x = 5; return 0; }
                int main() { two(t, u); assert(!bad); return 0; }",
            ),
            (
                "in_a_loop",
                "atomic_int x, bad; void *t(void *a) { if (x == 7) bad = 1; return 0; }
                void *u(void *a) { for (int i = 0; i < 12; i++) x = i; return 0; }
                int main() { two(t, u); assert(!bad); return 0; }",
            ),
            (
                "four_writers",
                "atomic_int x, bad; void *t(void *a) { if (x == 4) bad = 1; return 0; }
                void *w(void *a) { x = (int)(long)a; return 0; }
                int main() { pthread_t r, t4[4]; pthread_create(&r, 0, t, 0);
                for (long i = 1; i <= 4; i++) pthread_create(&t4[i - 1], 0, w, (void *)i);
                pthread_join(r, 0); for (int i = 0; i < 4; i++) pthread_join(t4[i], 0);
                assert(!bad); return 0; }",
            ),
        ],
    );
}

/// A run that was forced onto another path may itself use what was freed, and not crash.
#[test]
fn use_after_free_on_another_path_is_found() {
    let programs = [
        ("flag", "int k = 1, *p; void *f(void *a) { L; int c = k; U; if (c) *p = 5; return 0; }
            int main(void) { pthread_t t; p = malloc(4); pthread_create(&t, 0, f, 0); L; k = 0; U; free(p); pthread_join(t, 0); return 0; }"),
        ("pointer", "_Atomic(int *) g; void *f(void *a) { int *q = g; if (q) *q = 5; return 0; }
            int main(void) { pthread_t t; int *p = malloc(4); *p = 1; g = p; pthread_create(&t, 0, f, 0); g = 0; free(p); pthread_join(t, 0); return 0; }"),
        ("list", "struct n { int v; struct n *next; } *h;
            void *r(void *a) { L; struct n *x = h; U; if (x) { L; int v = x->v; U; if (v > 100) abort(); } return 0; }
            void *d(void *a) { L; struct n *x = h; h = 0; U; L; free(x); U; return 0; }
            int main(void) { pthread_t t, u; h = calloc(1, sizeof *h); pthread_create(&u, 0, d, 0); pthread_create(&t, 0, r, 0); pthread_join(t, 0); pthread_join(u, 0); return 0; }"),
        ("grown", "int *v, size = 1;
            void *r(void *a) { L; int *p = v, s = size; U; if (s == 1) { L; p[0]++; U; } return 0; }
            void *g(void *a) { L; size = 2; int *q = malloc(8), *o = v; q[0] = v[0]; v = q; U; L; free(o); U; return 0; }
            int main(void) { pthread_t t, u; v = calloc(1, 4); pthread_create(&u, 0, g, 0); pthread_create(&t, 0, r, 0); pthread_join(t, 0); pthread_join(u, 0); return 0; }"),
    ];
    let workshop = Workshop::new();
    for (name, code) in programs {
        let head = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
            #define L pthread_mutex_lock(&m)\n#define U pthread_mutex_unlock(&m)\n\
            static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n";
        let program = workshop.build_text(name, &format!("{head}{code}"));
        let answer = workshop.test(&program, &[], &[]);
        assert_eq!(answer.code, Some(10), "{name}: {:#}\n{}", answer.report, answer.stderr);
        let kinds = answer.report["findings"].to_string();
        assert!(kinds.contains("has freed the block"), "{name}: {kinds}");
    }
}

/// A bad end that its schedule does not lead to again is not confirmed.
#[test]
fn what_cannot_be_forced_again_is_not_confirmed() {
    let code = "#include <pthread.h>\n#include <stdatomic.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
        #include <linux/futex.h>\natomic_int f;\n\
        void *w(void *a) { while (f == 0) syscall(SYS_futex, &f, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0); return 0; }\n\
        int main(void) { pthread_t a, b; pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0); f = 1;\n\
        syscall(SYS_futex, &f, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";
    let workshop = Workshop::new();
    let program = workshop.build_text("futex", code);
    let answer = workshop.test(&program, &["--time-limit", "20"], &[]);
    assert_ne!(answer.code, Some(0), "{:#}", answer.report);
    for finding in answer.report["findings"].as_array().into_iter().flatten() {
        if finding["status"] == "confirmed" {
            let schedule = finding["schedule"].as_str().expect("a schedule");
            let mut replay = workshop.foretell();
            let replayed = replay.args(["replay", schedule, "--"]).arg(&program).output();
            let replayed = replayed.expect("foretell runs");
            assert_eq!(replayed.status.code(), Some(10), "{finding:#}");
        }
    }
}
