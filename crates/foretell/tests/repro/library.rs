//! Calls whose outcome another order of the threads would change, although no access of memory shows it:
//! what the C library keeps, looks that do not wait, cancellation. Each program has an order in which its
//! assertion fails; it is found (10), or it is said that not everything was tried (12).

use crate::common::Workshop;

/// Two threads that run `f` and `g`; then `main` does `after`.
fn program(before: &str, f: &str, g: &str, after: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <assert.h>\n#include <fcntl.h>\n#include <poll.h>\n\
         #include <pthread.h>\n#include <semaphore.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include <unistd.h>\n\
         int p[2]; FILE *o; char name[] = \"keptXXXXXX\"; sem_t s; volatile int x;\n\
         void *f(void *_) {{ {f} return 0; }}\nvoid *g(void *_) {{ {g} return 0; }}\n\
         int main(void) {{ {before}\n  pthread_t a, b;\n\
           pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
           pthread_join(a, 0); pthread_join(b, 0);\n  {after}\n  return 0;\n}}\n"
    )
}

#[test]
fn what_another_order_changes_outside_of_memory_is_found_or_said() {
    let appends =
        |letter: &str| format!("FILE *o = fopen(name, \"a\"); fputs(\"{letter}\", o); fclose(o);");
    let (append_a, append_b) = (appends("a"), appends("b"));
    let programs = [
        (
            "environment",
            "",
            "setenv(\"K\", \"a\", 1);",
            "setenv(\"K\", \"b\", 1);",
            "assert(getenv(\"K\")[0] == 'b');",
        ),
        ("random", "", "srand(1);", "srand(2);", "int v = rand(); srand(2); assert(v == rand());"),
        (
            "stream",
            "o = tmpfile();",
            "fputc('a', o);",
            "fputc('b', o);",
            "rewind(o); assert(fgetc(o) == 'a');",
        ),
        (
            "appended",
            "close(mkstemp(name));",
            &append_a,
            &append_b,
            "FILE *r = fopen(name, \"r\"); int c = fgetc(r); fclose(r); unlink(name); assert(c == 'a');",
        ),
        (
            "polled",
            "pipe(p);",
            "write(p[1], \"x\", 1);",
            "struct pollfd q = {p[0], POLLIN}; assert(poll(&q, 1, 0) == 1);",
            "",
        ),
        (
            "read",
            "pipe(p); fcntl(p[0], F_SETFL, O_NONBLOCK);",
            "write(p[1], \"x\", 1);",
            "char c; assert(read(p[0], &c, 1) == 1);",
            "",
        ),
        ("tried", "sem_init(&s, 0, 0);", "sem_post(&s);", "assert(sem_trywait(&s) == 0);", ""),
        (
            "counted",
            "sem_init(&s, 0, 0);",
            "sem_post(&s);",
            "int v; sem_getvalue(&s, &v); assert(v == 1);",
            "",
        ),
        (
            "joined",
            "",
            "",
            "pthread_t t; pthread_create(&t, 0, f, 0); usleep(100); assert(pthread_tryjoin_np(t, 0) == 0);",
            "",
        ),
        (
            "written",
            "pipe(p);",
            "write(p[1], \"a\", 1);",
            "write(p[1], \"b\", 1);",
            "char c; read(p[0], &c, 1); assert(c == 'a');",
        ),
    ];
    let workshop = Workshop::new();
    let mut wrong = Vec::new();
    for (name, before, f, g, after) in programs {
        let built = workshop.build_text(name, &program(before, f, g, after));
        let answer = workshop.test(&built, &["--run-limit", "10"], &[]);
        if !matches!(answer.code, Some(10 | 12)) {
            wrong.push(format!("{name}: {:?}", answer.code));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn what_joins_order_in_the_library_is_understood() {
    let code = "#include <assert.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        FILE *o;\n\
        void *f(void *_) { setenv(\"K\", \"a\", 1); srand(7); fputs(\"abc\", o); return 0; }\n\
        int main(void) { pthread_t t; o = tmpfile(); pthread_create(&t, 0, f, 0); pthread_join(t, 0);\n\
          assert(getenv(\"K\")[0] == 'a'); rewind(o); assert(fgetc(o) == 'a'); rand(); return 0; }\n";
    let workshop = Workshop::new();
    let program = workshop.build_text("ordered", code);
    workshop.test(&program, &[], &[]).ends_with(0);
}

#[test]
fn a_thread_that_was_cancelled_before_it_waits_does_not_wait() {
    let waits = [
        ("semaphore", "sem_wait(&s);"),
        (
            "condition",
            "pthread_mutex_lock(&m); pthread_cleanup_push(give, &m); pthread_cond_wait(&c, &m); pthread_cleanup_pop(1);",
        ),
        ("time", "sleep(1000);"),
        ("pipe", "char b; read(p[0], &b, 1);"),
        ("join", "pthread_join(main_thread, 0);"),
    ];
    let workshop = Workshop::new();
    for (name, wait) in waits {
        let code = format!(
            "#include <assert.h>\n#include <pthread.h>\n#include <semaphore.h>\n#include <unistd.h>\n\
             sem_t s; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
             int p[2]; pthread_t main_thread;\n\
             void give(void *lock) {{ pthread_mutex_unlock(lock); }}\n\
             void *f(void *_) {{ {wait} return 0; }}\n\
             int main(void) {{ pthread_t t; void *r; pipe(p); main_thread = pthread_self(); sem_init(&s, 0, 0);\n\
             pthread_create(&t, 0, f, 0); pthread_cancel(t); pthread_join(t, &r);\n\
             assert(r == PTHREAD_CANCELED); return 0; }}\n"
        );
        let program = workshop.build_text(name, &code);
        let answer = workshop.test(&program, &["--runs", "20", "--run-limit", "10"], &[]);
        assert!(
            matches!(answer.code, Some(0 | 12)),
            "{name}: {:?} {:#}",
            answer.code,
            answer.report
        );
        assert!(answer.findings().is_empty(), "{name}: {:#}", answer.report);
    }
}

#[test]
fn that_a_thread_is_cancelled_anywhere_is_said() {
    for (name, body) in [("loop", "for (;;) x = 1;"), ("steps", "x = 1; x = 2;")] {
        let code = format!(
            "#include <assert.h>\n#include <pthread.h>\nvolatile int x;\n\
             void *f(void *_) {{ pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); {body} return 0; }}\n\
             int main(void) {{ pthread_t t; pthread_create(&t, 0, f, 0); pthread_cancel(t);\n\
             pthread_join(t, 0); assert(x != 1); return 0; }}\n"
        );
        let workshop = Workshop::new();
        let program = workshop.build_text(name, &code);
        let answer = workshop.test(&program, &["--run-limit", "10"], &[]);
        assert!(matches!(answer.code, Some(10 | 12)), "{name}: {:?}", answer.code);
    }
}

/// Code that another compiler made may answer by what was called before.
#[test]
fn what_unseen_code_keeps_is_said() {
    let library = "static int kept; int next(int k) { kept = kept * 10 + k; return kept; } int get(void) { return kept; }";
    let user = "#include <assert.h>\n#include <pthread.h>\nint next(int), get(void);\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        void *f(void *a) { pthread_mutex_lock(&m); next(a ? 1 : 2); pthread_mutex_unlock(&m); return 0; }\n\
        int main(void) { pthread_t t, u; pthread_create(&t, 0, f, &m); pthread_create(&u, 0, f, 0);\n\
        pthread_join(t, 0); pthread_join(u, 0); assert(get() == 12); return 0; }\n";
    is_said_as_not_instrumented(library, user);
    // That it calls back what is instrumented makes no difference.
    let library = "static int kept; int apply(int (*f)(int), int k) { kept = kept * 10 + f(k); return kept; }";
    let user = "#include <assert.h>\n#include <pthread.h>\nint apply(int (*)(int), int);\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int calls;\n\
        static int same(int k) { calls++; return k; }\n\
        void *f(void *a) { pthread_mutex_lock(&m); apply(same, a ? 1 : 2); pthread_mutex_unlock(&m); return 0; }\n\
        int main(void) { pthread_t t, u; pthread_create(&t, 0, f, &m); pthread_create(&u, 0, f, 0);\n\
        pthread_join(t, 0); pthread_join(u, 0); assert(apply(same, 0) == 120); return 0; }\n";
    is_said_as_not_instrumented(library, user);
}

/// The library in an object and as a shared one, compiled by another compiler.
fn is_said_as_not_instrumented(library: &str, user: &str) {
    let workshop = Workshop::new();
    let here = workshop.path();
    std::fs::write(here.join("kept.c"), library).expect("a file");
    std::fs::write(here.join("user.c"), user).expect("a file");
    let folder = here.display();
    let kinds = [
        (["-c", "-O1"].as_slice(), "kept.o", vec![format!("{folder}/kept.o")]),
        (
            ["-shared", "-fPIC"].as_slice(),
            "libkept.so",
            vec![format!("{folder}/libkept.so"), format!("-Wl,-rpath,{folder}")],
        ),
    ];
    for (options, made, linked) in kinds {
        let mut compiler = std::process::Command::new("cc");
        let compiler = compiler.args(options).args(["kept.c", "-o", made]).current_dir(here);
        assert!(compiler.status().is_ok_and(|status| status.success()), "{made}");
        let mut words = vec!["-O1"];
        words.extend(linked.iter().map(String::as_str));
        let program = workshop.build(&here.join("user.c"), &words);
        let answer = workshop.test(&program, &[], &[]);
        assert_eq!(answer.code, Some(12), "{made}: {:#}\n{}", answer.report, answer.stderr);
        let said = answer.report["unseen"].to_string();
        assert!(said.contains("code that is not instrumented"), "{made}: {said}");
    }
}

/// Of what compiled code wrote into the program's memory, a place is named.
#[test]
fn a_read_of_what_compiled_code_wrote_is_named() {
    let workshop = Workshop::new();
    let here = workshop.path();
    std::fs::write(here.join("bump.c"), "void bump(int *p) { *p += 1; }\n").expect("a file");
    let mut compiler = std::process::Command::new("cc");
    let compiler = compiler.args(["-c", "bump.c", "-o", "bump.o"]).current_dir(here);
    assert!(compiler.status().is_ok_and(|status| status.success()));
    let code = "#include <pthread.h>\nvoid bump(int *);\n\
        static int counter; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
        static void *w(void *z) { pthread_mutex_lock(&m); bump(&counter);\n\
        z = counter > 2 ? &m : 0;\npthread_mutex_unlock(&m); return z; }\n\
        int main(void) { pthread_t a, b; counter = 0; pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);\n\
        pthread_join(a, 0); pthread_join(b, 0); return 0; }\n";
    std::fs::write(here.join("user.c"), code).expect("a file");
    let object = here.join("bump.o");
    let program = workshop.build(&here.join("user.c"), &["-O1", object.to_str().expect("a path")]);
    let said = workshop.test(&program, &[], &[]).ends_with(12).report["unseen"].to_string();
    assert!(said.contains("not instrumented (first: `counter` at user.c:5)"), "{said}");
}

/// Strings and streams that the C++ library changes in compiled code.
#[test]
fn what_the_cpp_library_keeps_is_found_or_said() {
    let programs = [
        ("string", "std::string s;", "s += a;", "s != \"ba\""),
        ("stream", "std::ostringstream s;", "s << a;", "s.str() == \"ab\""),
    ];
    let workshop = Workshop::new();
    for (name, object, step, holds) in programs {
        let code = format!(
            "#include <cassert>\n#include <iostream>\n#include <mutex>\n#include <sstream>\n#include <string>\n#include <thread>\n\
             std::mutex m; int main() {{ {object} auto f = [&](const char *a) {{ std::lock_guard<std::mutex> l(m); {step} std::cout << \"done\\n\"; }};\n\
             std::thread t(f, \"a\"), u(f, \"b\"); t.join(); u.join(); assert({holds}); }}\n"
        );
        let source = workshop.path().join(name).with_extension("cpp");
        std::fs::write(&source, code).expect("a file");
        for level in ["-O0", "-O1", "-O2"] {
            let program = workshop.build(&source, &[level]);
            let answer = workshop.test(&program, &["--time-limit", "20"], &[]);
            let said = format!("{name} {level}: {:#}\n{}", answer.report, answer.stderr);
            assert!(matches!(answer.code, Some(10 | 12)), "{said}");
        }
    }
}

/// Code that is not instrumented goes by what functions return that it calls back.
#[test]
fn what_a_callback_returns_counts() {
    let workshop = Workshop::new();
    let here = workshop.path();
    let library = "int apply(int (*f)(int), int x) { return f(x) > 3 ? 1 : 2; }\n\
        int twice(int (*f)(int), int x) { return f(x) + f(x) > 9; }\n\
        long pair(struct pair { long a, b; } (*f)(void)) { return f().b; }\n";
    std::fs::write(here.join("calls.c"), library).expect("a file");
    let object = here.join("calls.o");
    let mut compiler = std::process::Command::new("cc");
    let compiler = compiler.args(["-c", "-O1", "calls.c", "-o"]).arg(&object).current_dir(here);
    assert!(compiler.status().is_ok_and(|status| status.success()));
    let cases = [
        ("qsort", "a[0] = 1, a[1] = 2; qsort(a, 2, sizeof *a, compare);", "a[0] == 1"),
        ("bsearch", "found = bsearch(a, a, 1, sizeof *a, compare);", "found"),
        ("apply", "a[0] = apply(plus, 0);", "a[0] == 2"),
        ("twice", "a[0] = twice(inner, 0);", "!a[0]"),
        ("pair", "a[0] = pair(both);", "a[0] == 0"),
    ];
    for (name, step, holds) in cases {
        let code = format!(
            "#include <assert.h>\n#include <pthread.h>\n#include <stdlib.h>\n\
             struct pair {{ long a, b; }};\n\
             int apply(int (*)(int), int), twice(int (*)(int), int); long pair(struct pair (*)(void));\n\
             static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int shared; static void *found; static int a[2];\n\
             static int get(void) {{ pthread_mutex_lock(&m); int s = shared; pthread_mutex_unlock(&m); return s; }}\n\
             static int compare(const void *x, const void *y) {{ int s = get(); return (*(const int *)x - *(const int *)y) * (1 - 2 * s) + (x == y) * s; }}\n\
             static int plus(int x) {{ return x + 5 * get(); }}\n\
             static int inner(int x) {{ return plus(x); }}\n\
             static struct pair both(void) {{ struct pair p = {{1, get()}}; return p; }}\n\
             static void *set(void *_) {{ pthread_mutex_lock(&m); shared = 1; pthread_mutex_unlock(&m); return _; }}\n\
             int main(void) {{ (void)compare, (void)plus, (void)inner, (void)both, (void)found;\n\
             pthread_t t; pthread_create(&t, 0, set, 0); {step} pthread_join(t, 0); assert({holds}); return 0; }}\n"
        );
        let source = here.join(name).with_extension("c");
        std::fs::write(&source, code).expect("a file");
        for level in ["-O0", "-O2"] {
            let program = workshop.build(&source, &[level, &object.display().to_string()]);
            let answer = workshop.test(&program, &["--time-limit", "20"], &[]);
            let said = format!("{name} {level}: {:#}\n{}", answer.report, answer.stderr);
            assert!(matches!(answer.code, Some(10 | 12)), "{said}");
        }
    }
}

/// What the C library keeps is looked at by one thread and changed by another later in the recorded run.
#[test]
fn state_that_another_thread_changes_later_is_said() {
    let head = "#define _GNU_SOURCE\n#include <assert.h>\n#include <dirent.h>\n#include <locale.h>\n#include <pthread.h>\n\
        #include <pwd.h>\n#include <search.h>\n#include <string.h>\n\
        static int compare(const void *a, const void *b) { return strcmp(a, b); }\n";
    let workshop = Workshop::new();
    for (name, shared, one, other, before) in [
        (
            "hash",
            "",
            "ENTRY e = {\"k\", 0}; assert(hsearch(e, FIND));",
            "hdestroy(); hcreate(4);",
            "hcreate(4); ENTRY e = {\"k\", 0}; hsearch(e, ENTER);",
        ),
        (
            "locale",
            "",
            "assert(!strcmp(setlocale(LC_NUMERIC, 0), \"C\"));",
            "setlocale(LC_NUMERIC, \"C.UTF-8\");",
            "",
        ),
        ("user", "", "struct passwd *u = getpwuid(0); assert(u->pw_uid == 0);", "getpwuid(1);", ""),
        (
            "tree",
            "static void *root;",
            "assert(tfind(\"k\", &root, compare));",
            "tdelete(\"k\", &root, compare);",
            "tsearch(\"k\", &root, compare);",
        ),
        (
            "directory",
            "static DIR *d;",
            "assert(readdir(d));",
            "readdir(d); readdir(d);",
            "d = opendir(\"/\");",
        ),
    ] {
        let code = format!(
            "{head}{shared}\nstatic void *one(void *a) {{ {one} return a; }}\n\
             static void *other(void *a) {{ {other} return a; }}\n\
             int main(void) {{ pthread_t s, t; {before} pthread_create(&s, 0, one, 0); pthread_create(&t, 0, other, 0);\n\
             pthread_join(s, 0); pthread_join(t, 0); return 0; }}\n"
        );
        let answer = workshop.test(&workshop.build_text(name, &code), &[], &[]);
        assert!(matches!(answer.code, Some(10..=12)), "{name}: {:#}", answer.report);
    }
}

#[test]
fn what_qsort_moves_is_seen() {
    let workshop = Workshop::new();
    let head = "#define _GNU_SOURCE\n#include <assert.h>\n#include <pthread.h>\n#include <stdlib.h>\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int a[3] = {3, 1, 2};\n\
        static int less(const void *x, const void *y) { return *(int *)x - *(int *)y; }\n\
        static int more(const void *x, const void *y, void *w) { return *(int *)w * (*(int *)x - *(int *)y); }\n\
        #define LOCK pthread_mutex_lock(&m)\n#define UNLOCK pthread_mutex_unlock(&m)\n";
    let end = "int main(void) { pthread_t x, y; pthread_create(&x, 0, u, 0); pthread_create(&y, 0, t, 0);\n\
        pthread_join(x, 0); pthread_join(y, 0); return 0; }\n";
    for (name, code, expected) in [
        (
            "race",
            "static void *t(void *p) { qsort(a, 3, sizeof *a, less); return p; }\n\
             static void *u(void *p) { int s = a[0] + a[1] + a[2]; assert(s == 6); return p; }",
            10,
        ),
        (
            "moved_value",
            "static void *t(void *p) { LOCK; qsort(a, 3, sizeof *a, less); int s = a[0]; UNLOCK; assert(s == 1); \
             return p; }\nstatic void *u(void *p) { LOCK; UNLOCK; LOCK; a[1] = 0; UNLOCK; LOCK; a[1] = 1; UNLOCK; return p; }",
            10,
        ),
        (
            "with",
            "static int way = -1;\n\
             static void *t(void *p) { LOCK; qsort_r(a, 3, sizeof *a, more, &way); int s = a[0]; UNLOCK;\n\
             assert(s != 4); return p; }\n\
             static void *u(void *p) { LOCK; a[2] = 4; UNLOCK; LOCK; a[2] = 2; UNLOCK; return p; }",
            10,
        ),
        (
            "guarded",
            "static void *t(void *p) { LOCK; qsort(a, 3, sizeof *a, less); assert(a[0] + a[1] + a[2] == 6); UNLOCK; \
             return p; }\nstatic void *u(void *p) { LOCK; int s = a[0] + a[1] + a[2]; UNLOCK; assert(s == 6); return p; }",
            0,
        ),
        (
            "own_array",
            "static void *t(void *p) { int b[4] = {4, 2, 3, 1}; qsort(b, 4, sizeof *b, less);\n\
             assert(b[0] == 1 && b[3] == 4); return p; }\nstatic void *u(void *p) { return t(p); }",
            0,
        ),
    ] {
        let source = workshop.path().join(name).with_extension("c");
        std::fs::write(&source, format!("{head}{code}\n{end}")).expect("a file");
        for level in ["-O0", "-O2"] {
            let program = workshop.build(&source, &[level]);
            let answer = workshop.test(&program, &[], &[]);
            assert_eq!(answer.code, Some(expected), "{name} {level}: {:#}", answer.report);
        }
    }
}
