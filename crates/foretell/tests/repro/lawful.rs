//! What a correct program may write, and what only its author can judge: nothing of it is confirmed.

use crate::common::{Answer, Workshop};

const HEAD: &str = "#define _GNU_SOURCE\n#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    #define LOCK pthread_mutex_lock(&m)\n#define UNLOCK pthread_mutex_unlock(&m)\n\
    static void two(void *(*f)(void *), void *(*g)(void *)) { pthread_t a, b;\n\
    pthread_create(&a, 0, f, (void *)1); pthread_create(&b, 0, g, (void *)2);\n\
    pthread_join(a, 0); pthread_join(b, 0); }\n";

/// The answers about programs that are built of these.
fn answers(cases: &[(&'static str, &str)], look: impl Fn(&str, Answer)) {
    let workshop = Workshop::new();
    for (name, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        look(name, workshop.test(&program, &[], &[]));
    }
}

#[test]
fn what_differs_from_run_to_run_is_no_effect() {
    let cases = [
        ("time", "int n; void *f(void *a) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); LOCK; n++;
            printf(\"[%ld.%09ld] %d\\n\", t.tv_sec, t.tv_nsec, n); UNLOCK; LOCK; n++; UNLOCK; return 0; }
            int main() { two(f, f); return n != 4; }"),
        ("temporary_name", "int n; void *f(void *a) { char s[] = \"/tmp/lawfulXXXXXX\"; int d = mkstemp(s); LOCK; n++; puts(s); UNLOCK;
            unlink(s); close(d); return 0; } int main() { two(f, f); return n != 2; }"),
        ("processor_time", "int n; void *f(void *a) { LOCK; n++; UNLOCK; return 0; } int main() { clock_t c = clock(); two(f, f);
            printf(\"%ld us, %d\\n\", (long)(clock() - c), n); return 0; }"),
        ("ids", "int n; void *f(void *a) { LOCK; n++; UNLOCK; fprintf(stderr, \"%d %d\\n\", getpid(), gettid()); return 0; }
            int main() { two(f, f); return n != 2; }"),
        ("shares", "int next, did[3]; int take(void) { LOCK; int k = next < 4 ? next++ : -1; UNLOCK; return k; }
            void *f(void *a) { while (take() >= 0) did[(long)a]++; return 0; }
            int main() { two(f, f); printf(\"%d and %d\\n\", did[1], did[2]); return did[1] + did[2] != 4; }"),
        ("who_wins", "const char *w; const char *look(void) { LOCK; const char *v = w; UNLOCK; return v; }
            void claim(const char *v) { LOCK; if (!w) w = v; UNLOCK; }
            void *f(void *a) { if (!look()) claim(a == (void *)1 ? \"red\" : \"blue\"); return 0; } int main() { two(f, f); puts(w); return 0; }"),
        ("sum_of_floats", "float s; void add(float v) { LOCK; s += v; UNLOCK; } void *f(void *a) { add(1e8f); add(-1e8f); return 0; }
            void *g(void *a) { add(1); add(1); return 0; } int main() { two(f, g); printf(\"%f\\n\", s); return 0; }"),
        ("percent", "atomic_int n; void *f(void *a) { for (int i = 0; i < 2; i++) { int d = ++n; printf(\"%d%%\\n\", d * 25); } return 0; }
            int main() { two(f, f); return 0; }"),
    ];
    answers(&cases, |name, answer| assert_eq!(answer.code, Some(0), "{name}: {:#}", answer.report));
}

/// A count of retries and a count that lost an update look alike. Where it comes of another path, it is said.
#[test]
fn output_that_only_the_author_can_judge_is_said() {
    let cases = [
        ("retries", "atomic_int v, retries; int get(void) { return v; }
            void add(void) { int o = get(); while (!atomic_compare_exchange_strong(&v, &o, o + 1)) retries++; }
            void *f(void *a) { add(); return 0; } int main() { two(f, f); printf(\"%d after %d retries\\n\", v, retries); return v != 2; }"),
        ("hits", "int c, hits, misses; int look(void) { LOCK; int v = c; if (v) hits++; else misses++; UNLOCK; return v; }
            void put(int v) { LOCK; c = v; UNLOCK; } void *f(void *a) { if (!look()) put(7); return 0; }
            int main() { two(f, f); printf(\"hits %d misses %d\\n\", hits, misses); return c != 7; }"),
        ("dropped", "int q, n, dropped, got; int put(int v) { LOCK; int ok = n < 1; if (ok) { q = v; n = 1; } UNLOCK; return ok; }
            int get(void) { LOCK; int v = n ? q : 0; n = 0; UNLOCK; return v; }
            void *f(void *a) { for (int i = 1; i < 3; i++) if (!put(i)) dropped++; return 0; }
            void *g(void *a) { for (int i = 0; i < 2; i++) if (get()) got++; return 0; }
            int main() { two(f, g); printf(\"dropped %d got %d left %d\\n\", dropped, got, n); return dropped + got + n != 2; }"),
        ("peak", "int in, most; void enter(void) { LOCK; in++; most = in > most ? in : most; UNLOCK; }
            void leave(void) { LOCK; in--; UNLOCK; } void job(void) { enter(); leave(); }
            void *f(void *a) { job(); return 0; } int main() { two(f, f); printf(\"peak %d\\n\", most); return 0; }"),
        ("gauge", "int open_; void add(int d) { LOCK; open_ += d; UNLOCK; } void session(void) { add(1); add(-1); }
            void *f(void *a) { session(); return 0; }
            void *g(void *a) { LOCK; int n = open_; UNLOCK; printf(\"open: %d\\n\", n); return 0; } int main() { two(f, g); return 0; }"),
        ("twice", "int x, y; int get(int *p) { LOCK; int v = *p; UNLOCK; return v; } void set(int *p, int v) { LOCK; *p = v; UNLOCK; }
            void *f(void *a) { if (!get(&x)) { set(&x, 1); LOCK; y++; UNLOCK; } return 0; }
            int main() { two(f, f); printf(\"%d\\n\", y); return 0; }"),
    ];
    answers(&cases, |name, answer| {
        let unseen = answer.report["unseen"].to_string();
        assert!(answer.findings().is_empty(), "{name}: {:#}", answer.report);
        assert_eq!(answer.code, Some(12), "{name}: {:#}", answer.report);
        assert!(unseen.contains("what no run without preemption does"), "{name}: {unseen}");
    });
}

#[test]
fn a_lost_update_is_none_of_them_whatever_path_follows() {
    let cases = [(
        "lost",
        "int n; int get(void) { LOCK; int v = n; UNLOCK; return v; } void set(int v) { LOCK; n = v; UNLOCK; }
        void *f(void *a) { set(get() + 1); return 0; }
        int main() { two(f, f); if (n < 2) puts(\"few\"); printf(\"%d\\n\", n); return 0; }",
    )];
    answers(&cases, |name, answer| {
        assert_eq!(answer.confirmed("atomicity").len(), 1, "{name}: {:#}", answer.report);
    });
}
