//! Programs for the causes of wrong answers that have no module of their own, some ten for each, judged by
//! hand: what each can do is plain from its text.

use crate::common::Workshop;

const HEAD: &str = "#define _GNU_SOURCE\n#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\n\
    #include <stdatomic.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    #include <stdint.h>\n#include <unistd.h>\n#include <time.h>\n#include <errno.h>\n\
    #include <signal.h>\n#include <sys/wait.h>\n#include <sys/mman.h>\n#include <spawn.h>\n\
    #include <fcntl.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, m2 = PTHREAD_MUTEX_INITIALIZER;\n\
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n#define L pthread_mutex_lock(&m)\n\
    #define U pthread_mutex_unlock(&m)\n";

/// Two threads that `main` joins, what it does before and after, and what is shared.
fn two(shared: &str, before: &str, one: &str, other: &str, after: &str) -> String {
    format!(
        "{shared}\nstatic void *one(void *a) {{ {one} return 0; }}\n\
         static void *other(void *a) {{ {other} return 0; }}\n\
         int main(void) {{ pthread_t t1, t2; {before} pthread_create(&t1, 0, one, 0);\n\
         pthread_create(&t2, 0, other, 0); pthread_join(t1, 0); pthread_join(t2, 0); {after} return 0; }}\n"
    )
}

/// A thread, and what `main` does with it.
fn single(shared: &str, body: &str, main: &str) -> String {
    format!(
        "{shared}\nstatic void *f(void *a) {{ {body} return 0; }}\n\
         int main(void) {{ pthread_t t; {main} }}\n"
    )
}

fn check(cases: &[(&str, i32, String)]) {
    let workshop = Workshop::new();
    for (name, expected, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &[], &[]);
        let said = format!("{name}: {:#}\n{}", answer.report, answer.stderr);
        assert_eq!(answer.code, Some(*expected), "{said}");
    }
}

/// Conflicts are of bytes.
#[test]
fn bytes() {
    let cases = [
        (
            "neighbours",
            0,
            two(
                "static struct { char a, b; } s;",
                "",
                "s.a = 1;",
                "s.b = 2;",
                "assert(s.a == 1 && s.b == 2);",
            ),
        ),
        (
            "halves",
            0,
            two(
                "static char buf[8];",
                "",
                "memcpy(buf, \"abcd\", 4);",
                "memcpy(buf + 4, \"efgh\", 4);",
                "assert(!memcmp(buf, \"abcdefgh\", 8));",
            ),
        ),
        (
            "copy_over_one",
            10,
            two(
                "static char buf[8];",
                "",
                "memcpy(buf, \"abcd\", 4);",
                "buf[3] = 1;",
                "assert(buf[3] == 1);",
            ),
        ),
        (
            "bits_under_a_lock",
            0,
            two(
                "static struct { unsigned x : 4, y : 4; } s;",
                "",
                "L; s.x |= 1; U;",
                "L; s.y |= 1; U;",
                "assert(s.x && s.y);",
            ),
        ),
        (
            "bits",
            10,
            two(
                "static struct { unsigned x : 4, y : 4; } s;",
                "",
                "s.x = 1;",
                "s.y = 1;",
                "assert(s.x && s.y);",
            ),
        ),
        (
            "words_in_a_word",
            0,
            two(
                "static union { uint32_t w; uint16_t h[2]; } un;",
                "uint32_t w = un.w; assert(w == 0);",
                "un.h[0] = 1;",
                "un.h[1] = 2;",
                "assert(un.w == 0x00020001);",
            ),
        ),
        (
            "word_over_halves",
            10,
            two(
                "static union { uint32_t w; uint16_t h[2]; } un;",
                "",
                "un.w = 0;",
                "un.h[1] = 2;",
                "assert(un.h[1] == 2);",
            ),
        ),
        (
            "shares_of_an_array",
            0,
            two(
                "static short a8[8];",
                "",
                "for (int i = 0; i < 4; i++) a8[i] = i;",
                "for (int i = 4; i < 8; i++) a8[i] = i;",
                "int s = 0; for (int i = 0; i < 8; i++) s += a8[i]; assert(s == 28);",
            ),
        ),
        (
            "array_and_next",
            0,
            two(
                "static struct { char p[3]; char q; } s1;",
                "",
                "memset(s1.p, 1, 3);",
                "s1.q = 7;",
                "assert(s1.q == 7 && s1.p[2] == 1);",
            ),
        ),
        (
            "whole_over_member",
            10,
            two(
                "static struct { char p[3]; char q; } s1;",
                "",
                "memset(&s1, 1, 4);",
                "s1.q = 7;",
                "assert(s1.q == 7);",
            ),
        ),
        (
            "atomic_bytes",
            0,
            two(
                "static _Atomic char x[2];",
                "",
                "atomic_fetch_add(&x[0], 1);",
                "atomic_fetch_add(&x[1], 1);",
                "struct { char a, b; } both; memcpy(&both, (void *)x, 2); assert(both.a == 1 && both.b == 1);",
            ),
        ),
    ];
    check(&cases);
}

/// An execution ends at the assertion that fails in it.
#[test]
fn assertions() {
    let cases = [
        (
            "between_sections",
            10,
            two(
                "static int x, y;",
                "",
                "L; x = 1; U; L; assert(x == 1); U; L; y = 1; U;",
                "L; x = 2; U; L; assert(y == 0 || x == 2); U;",
                "",
            ),
        ),
        (
            "under_the_lock",
            0,
            two(
                "static int x;",
                "",
                "L; x++; assert(x <= 2); U;",
                "L; x++; assert(x <= 2); U;",
                "assert(x == 2);",
            ),
        ),
        (
            "never_fails",
            0,
            two(
                "static int x, d;",
                "",
                "L; assert(d == 0); x = 1; U;",
                "L; if (x) x = 2; U;",
                "assert(x == 1 || x == 2);",
            ),
        ),
        ("own_value", 10, two("static atomic_int x;", "", "x = 1; assert(x == 1);", "x = 2;", "")),
        (
            "guards_the_rest",
            0,
            two(
                "static atomic_int x, y;",
                "",
                "int s = x; assert(s == 0 || s == 2); if (s == 1) y = 1;",
                "x = 2;",
                "assert(y == 0);",
            ),
        ),
        (
            "value_between",
            10,
            two(
                "static atomic_int x, y;",
                "",
                "int s = x; assert(s != 1); if (s == 2) y = 1;",
                "x = 1; x = 2;",
                "",
            ),
        ),
        (
            "impossible_branch",
            0,
            two(
                "static atomic_int x;",
                "",
                "int s = x; assert(s >= 0); if (s < 0) abort();",
                "x = 5;",
                "",
            ),
        ),
        (
            "pointer_is_set",
            0,
            two(
                "static int *p, q;",
                "p = malloc(4); *p = 0;",
                "assert(p != 0); L; *p = 1; U;",
                "L; q = *p; U;",
                "assert(q == 0 || q == 1); free(p);",
            ),
        ),
    ];
    check(&cases);
}

/// Threads that nobody joins: the end of the program is a step like others.
#[test]
fn not_joined() {
    let cases = [
        (
            "detached",
            0,
            single(
                "static int x;",
                "L; x++; U;",
                "pthread_create(&t,0,f,0); pthread_detach(t); L; x++; U; return 0;",
            ),
        ),
        (
            "race_with_main",
            10,
            single("static int x;", "x++;", "pthread_create(&t,0,f,0); x++; return 0;"),
        ),
        (
            "too_early",
            10,
            single(
                "static int ready;",
                "L; assert(ready); U;",
                "pthread_create(&t,0,f,0); L; ready = 1; U; return 0;",
            ),
        ),
        (
            "variable_of_main",
            10,
            single(
                "static int *p;",
                "assert(*p == 3);",
                "int v = 3; p = &v; pthread_create(&t,0,f,0); L; v = 4; U; pthread_exit(0);",
            ),
        ),
        (
            "main_exits_alone",
            0,
            single(
                "static int v;",
                "assert(v == 3);",
                "v = 3; pthread_create(&t,0,f,0); pthread_exit(0);",
            ),
        ),
        (
            "freed_before_use",
            10,
            single(
                "static int *p;",
                "free(p); p = 0;",
                "p = malloc(4); pthread_create(&t,0,f,0); *p = 1; return 0;",
            ),
        ),
        (
            "waited_for",
            0,
            single(
                "static int done;",
                "L; done = 1; pthread_cond_signal(&c); U;",
                "pthread_create(&t,0,f,0); pthread_detach(t); L; while (!done) pthread_cond_wait(&c,&m); U; return 0;",
            ),
        ),
        (
            "waited_for_in_vain",
            10,
            single(
                "static int done;",
                "L; if (!done) pthread_cond_signal(&c); done = 1; U;",
                "pthread_create(&t,0,f,0); L; if (done) { U; abort(); } pthread_cond_wait(&c,&m); U; return 0;",
            ),
        ),
        ("never_ends", 0, single("", "for (;;) pause();", "pthread_create(&t,0,f,0); return 0;")),
        (
            "at_exit",
            10,
            single(
                "static int closed; static void bye(void) { L; closed = 1; U; usleep(10); }",
                "L; assert(!closed); U;",
                "atexit(bye); pthread_create(&t,0,f,0); return 0;",
            ),
        ),
    ];
    check(&cases);
}

/// What another program does is not seen, and said.
#[test]
fn other_programs() {
    let cases = [
        (
            "exec_of_a_child",
            12,
            single(
                "",
                "",
                "if (fork() == 0) { execl(\"/bin/true\",\"true\",(char*)0); _exit(1); } wait(0); pthread_create(&t,0,f,0); pthread_join(t,0); return 0;",
            ),
        ),
        (
            "system",
            12,
            single(
                "static int x;",
                "L; x++; U;",
                "system(\"true\"); pthread_create(&t,0,f,0); L; x++; U; pthread_join(t,0); return 0;",
            ),
        ),
        (
            "spawn",
            12,
            single(
                "static int x;",
                "L; x++; U;",
                "pid_t p; char *v[] = {\"true\",0}; posix_spawn(&p,\"/bin/true\",0,0,v,environ); waitpid(p,0,0); pthread_create(&t,0,f,0); pthread_join(t,0); return 0;",
            ),
        ),
        (
            "popen",
            12,
            single(
                "",
                "",
                "FILE *p = popen(\"echo 1\",\"r\"); int v = 0; if (fscanf(p,\"%d\",&v) != 1) v = 0; pclose(p); pthread_create(&t,0,f,0); pthread_join(t,0); return 0;",
            ),
        ),
        (
            "exec",
            12,
            single(
                "",
                "",
                "pthread_create(&t,0,f,0); pthread_join(t,0); execl(\"/bin/true\",\"true\",(char*)0); return 1;",
            ),
        ),
        (
            "system_and_a_race",
            10,
            single(
                "static int x;",
                "x++;",
                "system(\"true\"); pthread_create(&t,0,f,0); x++; pthread_join(t,0); assert(x == 2); return 0;",
            ),
        ),
    ];
    check(&cases);
}

/// Misuse is found; calls that fail leave the trace valid; many threads one after the other.
#[test]
fn misuse_and_failures() {
    let cases = [
        (
            "held_by_the_dead",
            10,
            single(
                "",
                "pthread_mutex_lock(&m2);",
                "pthread_create(&t,0,f,0); pthread_join(t,0); pthread_mutex_lock(&m2); return 0;",
            ),
        ),
        (
            "unlocked_by_another",
            10,
            single(
                "",
                "pthread_mutex_unlock(&m);",
                "pthread_mutex_lock(&m); pthread_create(&t,0,f,0); pthread_join(t,0); return 0;",
            ),
        ),
        ("destroyed_while_held", 10, two("", "", "L; pthread_mutex_destroy(&m); ", "", "")),
        ("unlocked_twice", 10, two("", "", "L; U; U;", "L; U;", "")),
        (
            "destroyed_after_join",
            0,
            single(
                "",
                "int r = pthread_mutex_trylock(&m); if (!r) U;",
                "pthread_create(&t,0,f,0); pthread_join(t,0); pthread_mutex_destroy(&m); return 0;",
            ),
        ),
        (
            "create_fails",
            0,
            single(
                "static pthread_t q; static pthread_attr_t at; static void *f2(void *a){return a;}",
                "int e = pthread_create(&q,&at,f2,0); assert(e);",
                "pthread_attr_init(&at); pthread_attr_setstacksize(&at, 1UL<<46); pthread_create(&t,0,f,0); pthread_join(t,0); return 0;",
            ),
        ),
        (
            "mmap_fails",
            0,
            single(
                "",
                "void *p = mmap(0, (size_t)1 << 60, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0); assert(p == MAP_FAILED);",
                "pthread_create(&t,0,f,0); pthread_join(t,0); return 0;",
            ),
        ),
        (
            "one_after_the_other",
            0,
            single(
                "static int x;",
                "x++;",
                "for (int i = 0; i < 300; i++) { pthread_create(&t,0,f,0); pthread_join(t,0); } assert(x == 300); return 0;",
            ),
        ),
        (
            "ten_rounds",
            0,
            two(
                "static int x;",
                "",
                "for (int i = 0; i < 10; i++) { L; x++; U; }",
                "for (int i = 0; i < 10; i++) { L; x++; U; }",
                "assert(x == 20);",
            ),
        ),
        (
            "two_hundred_rounds",
            0,
            two(
                "static int x;",
                "",
                "for (int i = 0; i < 200; i++) { L; x++; U; }",
                "for (int i = 0; i < 200; i++) { L; x++; U; }",
                "assert(x == 400);",
            ),
        ),
    ];
    check(&cases);
}

/// Every instance of a code location counts.
#[test]
fn instances() {
    let cases = [
        (
            "the_eighth_round",
            10,
            two(
                "static int x;",
                "",
                "for (int i = 0; i < 10; i++) { L; x++; U; }",
                "for (int i = 0; i < 10; i++) { if (i == 7) { x++; } else { L; x++; U; } }",
                "",
            ),
        ),
        (
            "ring",
            0,
            two(
                "static int x, q[4];",
                "",
                "for (int i = 0; i < 20; i++) { L; q[x++ % 4] = i; U; }",
                "for (int i = 0; i < 20; i++) { L; q[x++ % 4] = i; U; }",
                "assert(x == 40);",
            ),
        ),
        (
            "torn_in_every_round",
            10,
            two(
                "static int x;",
                "",
                "for (int i = 0; i < 3; i++) { L; int s = x; U; L; x = s + 1; U; }",
                "for (int i = 0; i < 3; i++) { L; x++; U; }",
                "assert(x == 6);",
            ),
        ),
    ];
    check(&cases);
}

/// Time passes when nobody else can run.
#[test]
fn time() {
    let cases = [
        (
            "spins_until_stopped",
            0,
            two("static atomic_int stop;", "", "sleep(1); stop = 1;", "while (!stop) ;", ""),
        ),
        (
            "yields_until_stopped",
            0,
            two(
                "#include <sched.h>\nstatic atomic_int stop;",
                "",
                "sleep(1); stop = 1;",
                "while (!stop) sched_yield();",
                "",
            ),
        ),
        (
            "sleep_is_no_order",
            10,
            two("static atomic_int x;", "", "sleep(1); assert(x == 1);", "x = 1;", ""),
        ),
        (
            "timed_wait",
            0,
            two(
                "static int r;",
                "",
                "L; struct timespec d; clock_gettime(CLOCK_REALTIME,&d); d.tv_sec += 5; while (!r) if (pthread_cond_timedwait(&c,&m,&d) == ETIMEDOUT) break; U;",
                "L; r = 1; pthread_cond_signal(&c); U;",
                "",
            ),
        ),
        (
            "timed_out",
            10,
            two(
                "static int r;",
                "",
                "L; struct timespec d; clock_gettime(CLOCK_REALTIME,&d); d.tv_sec += 5; while (!r) if (pthread_cond_timedwait(&c,&m,&d) == ETIMEDOUT) break; assert(r); U;",
                "L; r = 1; pthread_cond_signal(&c); U;",
                "",
            ),
        ),
    ];
    check(&cases);
}

/// Ways in which threads end, and kinds of mutexes.
#[test]
fn ends() {
    let cases = [
        ("exits", 0, two("static int x;", "", "L; x++; U; pthread_exit((void*)1);", "L; x++; U;", "assert(x == 2);")),
        ("cancelled_with_the_lock", 10, "static int x;\nstatic void *f(void *a) { pthread_mutex_lock(&m); x = 1; while (1) pthread_cond_wait(&c, &m); return 0; }\nint main(void) { pthread_t t; pthread_create(&t,0,f,0); pthread_cancel(t); void *r; pthread_join(t,&r); L; U; return 0; }".into()),
        ("inherits_priority", 0, "static int x; static pthread_mutex_t pi;\nstatic void *f(void *a) { pthread_mutex_lock(&pi); x++; pthread_mutex_unlock(&pi); return 0; }\nint main(void) { pthread_mutexattr_t at; pthread_mutexattr_init(&at); pthread_mutexattr_setprotocol(&at, PTHREAD_PRIO_INHERIT); pthread_mutex_init(&pi,&at); pthread_t t,u; pthread_create(&t,0,f,0); pthread_create(&u,0,f,0); pthread_join(t,0); pthread_join(u,0); assert(x == 2); return 0; }".into()),
    ];
    check(&cases);
}
