//! C programs get the right verdict by exploration, and what has no meaning is refused with its place.
//! The file is long because one table has every condition of C that is proved and whose negation is violated.

use std::path::{Path, PathBuf};

use foretell_verify::explore::search::{Options, Report, Verdict, explore};
use foretell_verify::ir::{Refusal, clang};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What is found; `None` where there is no clang, said aloud.
fn report(file: &Path, options: &Options) -> Option<Result<Report, Refusal>> {
    match clang::compile(file, clang::Options::default()) {
        Ok(module) => Some(Ok(explore(&module, options))),
        Err(refusal) if refusal.what.contains("cannot run") => {
            assert!(std::env::var_os("CI").is_none(), "CI has clang: {refusal}");
            eprintln!("SKIPPED: {refusal}");
            None
        }
        Err(refusal) => Some(Err(refusal)),
    }
}

/// In a word: `proved`, `violated`, `unknown`, `refused`, and why.
fn word(found: &Result<Report, Refusal>) -> (&'static str, String) {
    match found {
        Ok(Report { verdict: Verdict::Proved(_), .. }) => ("proved", String::new()),
        Ok(Report { verdict: Verdict::Violated(found), .. }) => {
            ("violated", format!("{}: {}", found.place, found.violation))
        }
        Ok(Report { verdict: Verdict::Unknown(why), .. }) => ("unknown", why.clone()),
        Err(refusal) => ("refused", refusal.to_string()),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .collect();
    files.sort();
    files
}

/// What the first comment of a program says: is it about deadlocks, and the verdict.
fn expected(file: &Path) -> (bool, &'static str) {
    let source = std::fs::read_to_string(file).expect("it can be read");
    let header = source.split("*/").next().unwrap_or_default();
    match header {
        _ if header.contains("Deadlock.") => (true, "violated"),
        _ if header.contains("No deadlock.") => (true, "proved"),
        _ if header.contains("Unsafe") => (false, "violated"),
        _ if header.contains("Safe") => (false, "proved"),
        _ => panic!("{} does not say what is expected", file.display()),
    }
}

/// Programs in the manner of SV-COMP's pthread family: no verdict is wrong, and few are missing.
#[test]
fn the_pthread_family_is_decided_but_for_a_few() {
    let files = files(&root().join("../../bench/programs/verify"));
    assert!(files.len() >= 58);
    let mut undecided = Vec::new();
    for file in &files {
        let (deadlocks, expected) = expected(file);
        let options = Options { deadlocks, states: 40_000, ..Options::default() };
        let Some(found) = report(file, &options) else { return };
        let (found, why) = word(&found);
        match found {
            "proved" | "violated" => assert_eq!(found, expected, "{}: {why}", file.display()),
            _ => undecided.push(format!("{}: {why}", file.display())),
        }
    }
    assert!(undecided.len() * 10 < files.len(), "{undecided:#?}");
}

/// The first comment of an example ends with its verdict.
#[test]
fn examples_have_the_verdict_that_they_say() {
    let files = files(&root().join("../../examples/verify"));
    assert!(files.len() >= 17);
    for file in files {
        let (deadlocks, expected) = expected(&file);
        let options = Options { deadlocks, ..Options::default() };
        let Some(found) = report(&file, &options) else { return };
        let (found, why) = word(&found);
        assert_eq!(found, expected, "{}: {why}", file.display());
    }
}

/// Each of these fails when it is compiled and run.
#[test]
fn what_fails_is_never_proved() {
    let refused = [
        "a64_constructor.c",
        "b_ctor.c",
        "b_dtor.c",
        "b_in_bitfield.c",
        "b_in_union.c",
        "c_atomic_nonatomic_mix.c",
        "c_computed_goto.c",
        "d_alias.c",
        "d_arg_order.c",
        "d_arg_order3.c",
        "d_arg_order5.c",
        "d_arg_order6.c",
        "d_arg_order7.c",
        "d_asm_add.c",
        "d_atexit.c",
        "d_cancel_point.c",
        "d_date.c",
        "d_key_destructor.c",
        "d_own_atomic.c",
        "d_pthread_t_reuse.c",
        "d_rw_writer_pref.c",
        "d_setjmp.c",
        "d_signal_handler.c",
        "d_string_tail.c",
        "d_weak_undefined.c",
    ];
    for file in files(&root().join("tests/never_proved")) {
        let Some(found) = report(&file, &Options::default()) else { return };
        let (found, why) = word(&found);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match refused.contains(&&*name) {
            true => assert!(matches!(found, "refused" | "unknown"), "{name}: {found} {why}"),
            false => assert_eq!(found, "violated", "{name}: {why}"),
        }
    }
}

/// Each of these is undefined in C in a way that unoptimised code does not show; beside them (`_ok`) are
/// some that look alike and are defined.
#[test]
fn what_is_undefined_is_never_proved() {
    let files = files(&root().join("tests/undefined"));
    assert!(files.len() >= 70);
    for file in files {
        let Some(found) = report(&file, &Options::default()) else { return };
        let (found, why) = word(&found);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.ends_with("_ok.c") {
            true => assert_eq!(found, "proved", "{name}: {why}"),
            false => assert_ne!(found, "proved", "{name}"),
        }
        // a refusal has its place
        assert!(found == "proved" || why.contains(&format!("{name}:")), "{name}: {why}");
    }
}

/// Each of these can come to a deadlock when it is compiled and run.
#[test]
fn what_deadlocks_is_never_proved() {
    let refused =
        ["barrier_reinit.c", "cond_recursive.c", "cond_reinit.c", "mutual_join.c", "sem_reinit.c"];
    let options = Options { deadlocks: true, ..Options::default() };
    for file in files(&root().join("tests/never_free_of_deadlock")) {
        let Some(found) = report(&file, &options) else { return };
        let (found, why) = word(&found);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let expected = if refused.contains(&&*name) { "unknown" } else { "violated" };
        assert_eq!(found, expected, "{name}: {why}");
    }
}

const HEADERS: &str = "#include <assert.h>\n#include <errno.h>\n#include <limits.h>\n#include <pthread.h>\n\
    #include <semaphore.h>\n#include <setjmp.h>\n#include <signal.h>\n#include <stdatomic.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n";

fn verdict_of(name: &str, code: &str, options: &Options) -> Option<(&'static str, String)> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, format!("{HEADERS}{code}\n"))
        .expect("the folder of tests can be written");
    Some(word(&report(&file, options)?))
}

/// Each is a body of `main` and globals before it; the condition holds of C as clang and gcc compile
/// it, so that its assertion is proved and the assertion of its negation is violated.
const CONDITIONS: &[(&str, &str, &str)] = &[
    ("unsigned_wrap", "", "unsigned u = 0; u--; COND(u == UINT_MAX)"),
    ("mixed_signs", "", "int i = -1; unsigned u = 1; COND(i > u)"),
    ("char_sum", "", "signed char a = 100, b = 100; int s = a + b; COND(s == 200)"),
    ("char_wraps", "", "signed char a = 100; a += 100; COND(a == -56)"),
    (
        "ushort_product",
        "",
        "unsigned short a = 40000; unsigned p = (unsigned)a * a; COND(p == 1600000000u)",
    ),
    ("long_shift", "", "unsigned long x = 1ul << 40; COND((unsigned)x == 0 && x >> 40 == 1)"),
    ("signed_right_shift", "", "int x = -8; COND(x >> 1 == -4)"),
    ("division", "", "int x = -7; COND(x / 2 == -3 && x % 2 == -1)"),
    ("bool_of_int", "", "_Bool b = 256; COND(b == 1)"),
    ("bool_increment", "", "_Bool b = 1; b++; COND(b == 1)"),
    ("ternary_converts", "", "int c = 1; long x = c ? -1 : 0u; COND(x == 4294967295l)"),
    ("double_sum", "", "double d = 0.1; d += 0.2; COND(d > 0.3 && d != 0.3 && d < 0.30000001)"),
    ("float_sum", "", "float f = 16777216.0f; f = f + 1; COND(f == 16777216.0f)"),
    (
        "float_truncates",
        "",
        "double d = -2.9; int i = d; unsigned char c = 200.7; COND(i == -2 && c == 200)",
    ),
    ("float_of_long", "", "long x = 9007199254740993l; COND((long)(double)x == 9007199254740992l)"),
    ("float_of_unsigned", "", "unsigned u = 4294967295u; float f = u; COND(f == 4294967296.0f)"),
    ("float_bits", "union u { float f; unsigned i; } u;", "u.f = 1.5f; COND(u.i == 0x3fc00000u)"),
    (
        "float_product",
        "double a = 1.5, b = 2.5, c = -0.25;",
        "COND(a * b + c == 3.5 && -c == 0.25)",
    ),
    ("string_length", "char s[8] = \"abc\";", "s[1] = 0; COND(strlen(s) == 1 && sizeof s == 8)"),
    (
        "string_order",
        "",
        "COND(strcmp(\"ab\", \"b\") < 0 && strcmp(\"b\", \"ab\") > 0 && strncmp(\"abc\", \"abd\", 2) == 0)",
    ),
    ("string_sign", "", "COND(strcmp(\"\\xff\", \"a\") > 0)"),
    (
        "string_copy",
        "char s[8];",
        "strcpy(s, \"ab\"); strcat(s, \"cd\"); COND(strcmp(s, \"abcd\") == 0 && s[5] == 0)",
    ),
    (
        "string_pads",
        "char s[4] = {9, 9, 9, 9};",
        "strncpy(s, \"ab\", 3); COND(s[2] == 0 && s[3] == 9)",
    ),
    (
        "bytes_order",
        "unsigned char a[2] = {1, 200}, b[2] = {1, 2};",
        "COND(memcmp(a, b, 2) > 0 && memcmp(a, b, 1) == 0)",
    ),
    ("string_number", "", "COND(atoi(\" -12x\") == -12 && atoi(\"x\") == 0)"),
    (
        "memory_grows",
        "",
        "int *p = malloc(4); *p = 7; p = realloc(p, 8); p[1] = 2; COND(p[0] == 7 && p[1] == 2)",
    ),
    (
        "specific",
        "pthread_key_t k, l;",
        "int x; pthread_key_create(&k, 0); pthread_key_create(&l, 0); pthread_setspecific(k, &x); COND(pthread_getspecific(k) == &x && !pthread_getspecific(l))",
    ),
    ("comma", "", "int x = (1, 2); COND(x == 2)"),
    (
        "switch_falls",
        "",
        "int x = 1, y = 0; switch (x) { case 1: y++; case 2: y++; break; default: y = 9; } COND(y == 2)",
    ),
    (
        "duff",
        "",
        "int n = 0, i = 2; switch (i) { do { case 3: n++; case 2: n++; } while (--i); } COND(n == 3)",
    ),
    ("goto_out", "", "int i; for (i = 0; ; i++) if (i == 5) goto out; out: COND(i == 5)"),
    (
        "nested_struct",
        "struct in { short a; int b; }; struct out { char c; struct in i[2]; } s;",
        "s.i[1].b = 7; struct out t = s; t.i[1].b++; COND(s.i[1].b == 7 && t.i[1].b == 8)",
    ),
    (
        "union_bytes",
        "union u { unsigned i; unsigned char c[4]; } u;",
        "u.i = 0x01020304; COND(u.c[0] == 4)",
    ),
    (
        "bit_fields",
        "struct { unsigned a : 3; int b : 5; unsigned c : 9; } s;",
        "s.a = 9; s.b = 15; s.b++; s.c = 511; COND(s.a == 1 && s.b == -16 && s.c == 511)",
    ),
    (
        "by_value",
        "struct big { long x[6]; }; long last(struct big b) { b.x[5]++; return b.x[5]; }",
        "struct big b = {{0, 0, 0, 0, 0, 4}}; long r = last(b); COND(r == 5 && b.x[5] == 4)",
    ),
    (
        "returns_struct",
        "struct p { char a; int b; }; struct p f(int x) { struct p p = {1, x}; return p; }",
        "COND(f(3).b == 3 && f(3).a == 1)",
    ),
    (
        "pair_in_registers",
        "struct p { long a; long b; }; struct p swap(struct p p) { struct p q = {p.b, p.a}; return q; }",
        "struct p p = {1, 2}; p = swap(p); COND(p.a == 2 && p.b == 1)",
    ),
    (
        "pointer_into_array",
        "int a[4] = {1, 2, 3, 4};",
        "int *p = a + 1; p += 2; *p = 9; COND(a[3] == 9 && p - a == 3)",
    ),
    (
        "pointer_to_pointer",
        "int x = 1, y = 2;",
        "int *p = &x, **q = &p; *q = &y; **q = 5; COND(y == 5 && x == 1)",
    ),
    ("char_through_int", "int x = 0;", "((unsigned char *)&x)[1] = 1; COND(x == 256)"),
    ("two_dimensions", "int m[2][3];", "m[1][2] = 5; COND(*(*(m + 1) + 2) == 5)"),
    ("negative_index", "int a[3] = {1, 2, 3};", "int *p = &a[2]; COND(p[-1] == 2)"),
    (
        "function_table",
        "int add(int a, int b) { return a + b; } int sub(int a, int b) { return a - b; } int (*t[])(int, int) = {add, sub};",
        "COND(t[1](5, 3) == 2)",
    ),
    (
        "recursion",
        "int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }",
        "COND(fib(9) == 34)",
    ),
    (
        "static_counts",
        "int next(void) { static int n = 3; return n++; }",
        "next(); COND(next() == 4)",
    ),
    ("designated", "int a[4] = {[2] = 5, 6};", "COND(a[0] == 0 && a[2] == 5 && a[3] == 6)"),
    (
        "compound_literal",
        "struct p { int a, b; };",
        "struct p *p = &(struct p){.b = 2}; COND(p->a == 0 && p->b == 2)",
    ),
    ("string", "char *s = \"ab\\377\";", "COND(s[2] == -1 && s[3] == 0)"),
    ("enum_values", "enum e { A = 3, B, C = -1 };", "enum e e = B; COND(e == 4 && C < 0)"),
    (
        "size_of",
        "",
        "COND(sizeof(int[3]) == 12 && sizeof(struct { char a; long b; }) == 16 && -1 < (long)sizeof 1)",
    ),
    ("sizeof_is_unsigned", "", "COND(!(-1 < sizeof 1))"),
    ("old_function", "long f(a, b) short a; long b; { return a * b; }", "COND(f(2, 3l) == 6)"),
    (
        "heap",
        "struct n { int v; struct n *next; };",
        "struct n *l = 0; for (int i = 0; i < 3; i++) { struct n *n = malloc(sizeof *n); n->v = i; n->next = l; l = n; } int s = 0; while (l) { struct n *d = l; s = 10 * s + l->v; l = l->next; free(d); } COND(s == 210)",
    ),
    ("zeroed", "", "int *p = calloc(4, sizeof *p); COND(p[3] == 0)"),
    (
        "copies",
        "struct p { char c; int *q; } a, b; int x;",
        "a.q = &x; memcpy(&b, &a, sizeof a); *b.q = 3; COND(x == 3)",
    ),
    (
        "variable_length",
        "",
        "int n = 3; for (int i = 0; i < 2; i++) { int v[n]; v[n - 1] = i; n += v[n - 1]; } COND(n == 4)",
    ),
    (
        "builtin_overflow",
        "",
        "int r; int o = __builtin_add_overflow(INT_MAX, 1, &r); COND(o && r == INT_MIN)",
    ),
    ("wide", "", "__int128 x = 1; x <<= 100; COND((long)(x >> 90) == 1024)"),
    ("bit_precise", "", "unsigned _BitInt(5) x = 31; x++; COND(x == 0)"),
    (
        "cleanup",
        "int n; void done(int *p) { n += *p; }",
        "{ __attribute__((cleanup(done))) int x = 5; } COND(n == 5)",
    ),
    (
        "typedef_shadows",
        "typedef char T;",
        "T t = 300; { int T = 300; COND2(T == 300 && t == 44) } COND(t == 44)",
    ),
    ("volatile_counts", "volatile int v;", "v++; v += 2; COND(v == 3)"),
    (
        "handle_in_struct",
        "struct t { pthread_t h; int r; } w; void *f(void *a) { ((struct t *)a)->r = 4; return a; }",
        "pthread_create(&w.h, 0, f, &w); void *r; pthread_join(w.h, &r); COND(r == &w && w.r == 4)",
    ),
    (
        "result_as_number",
        "void *f(void *a) { return (void *)((long)a * 2); }",
        "pthread_t t; void *r; pthread_create(&t, 0, f, (void *)21l); pthread_join(t, &r); COND((long)r == 42)",
    ),
    (
        "exit_value",
        "void *f(void *a) { pthread_exit((void *)7l); }",
        "pthread_t t; void *r; pthread_create(&t, 0, f, 0); pthread_join(t, &r); COND((long)r == 7)",
    ),
    (
        "checks_errors",
        "pthread_mutex_t m;",
        "pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK); pthread_mutex_init(&m, &a); int u = pthread_mutex_unlock(&m); pthread_mutex_lock(&m); int l = pthread_mutex_lock(&m); COND(u == 1 && l == 35)",
    ),
    (
        "recursive",
        "pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; int r; void *f(void *a) { r = pthread_mutex_trylock(&m); return 0; }",
        "pthread_t t; pthread_mutex_lock(&m); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); pthread_create(&t, 0, f, 0); pthread_join(t, 0); COND(r == 16)",
    ),
    (
        "readers",
        "pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;",
        "pthread_rwlock_rdlock(&l); int a = pthread_rwlock_tryrdlock(&l); int b = pthread_rwlock_trywrlock(&l); COND(a == 0 && b == 16)",
    ),
    (
        "semaphore_value",
        "sem_t s;",
        "sem_init(&s, 0, 2); sem_wait(&s); sem_post(&s); sem_post(&s); int v; sem_getvalue(&s, &v); COND(v == 3)",
    ),
    (
        "once_is_once",
        "pthread_once_t o = PTHREAD_ONCE_INIT; int n; void init(void) { n++; } void *f(void *p) { pthread_once(&o, init); return (void *)(long)n; }",
        "pthread_t t; void *r; pthread_create(&t, 0, f, 0); pthread_once(&o, init); pthread_join(t, &r); COND(n == 1 && (long)r == 1)",
    ),
    (
        "once_through_a_pointer",
        "struct s { int before; pthread_once_t o; } s = {7, PTHREAD_ONCE_INIT}; int n; void init(void) { n += 2; } int g(struct s *p) { return pthread_once(&p->o, init); }",
        "int a = g(&s), b = g(&s); COND(a == 0 && b == 0 && n == 2 && s.before == 7)",
    ),
    (
        "own_copies",
        "static __thread int x = 3; __thread int *p; int seen; void *f(void *a) { p = &x; *p += 1; seen = x; return 0; }",
        "pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); COND(seen == 4 && x == 3 && p == 0)",
    ),
    (
        "own_copy_is_shared",
        "_Thread_local int x; void *f(void *a) { *(int *)a = 9; return 0; }",
        "pthread_t t; pthread_create(&t, 0, f, &x); pthread_join(t, 0); COND(x == 9)",
    ),
    (
        "stack_size",
        "void *f(void *a) { return a; }",
        "pthread_t t; pthread_attr_t a; int d; pthread_attr_init(&a); int small = pthread_attr_setstacksize(&a, 1); int big = pthread_attr_setstacksize(&a, 65536); pthread_attr_getdetachstate(&a, &d); pthread_create(&t, &a, f, 0); pthread_join(t, 0); COND(small == EINVAL && big == 0 && d == PTHREAD_CREATE_JOINABLE)",
    ),
    (
        "kind_by_attributes",
        "",
        "pthread_mutex_t m; pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK); pthread_mutex_init(&m, &a); pthread_mutex_lock(&m); int again = pthread_mutex_lock(&m); COND(again == EDEADLK)",
    ),
    (
        "atomic_function",
        "int x; void __VERIFIER_atomic_twice(void) { x++; x--; } void *f(void *a) { __VERIFIER_atomic_twice(); return 0; }",
        "pthread_t t; pthread_create(&t, 0, f, 0); int seen = x; pthread_join(t, 0); COND(seen == 0)",
    ),
    (
        "compare_and_swap",
        "_Atomic int x = 3;",
        "int e = 4; _Bool a = atomic_compare_exchange_strong(&x, &e, 5); COND(!a && e == 3 && x == 3)",
    ),
    (
        "fetch_and_max",
        "_Atomic unsigned char x = 250;",
        "unsigned char old = atomic_fetch_add(&x, 10); COND(old == 250 && x == 4)",
    ),
    (
        "bits_counted",
        "",
        "unsigned x = 0x00f0; unsigned short h = 0x1234; unsigned long y = 0x1122334455667788; int n = -3; COND(__builtin_popcount(x) == 4 && __builtin_clz(x) == 24 && __builtin_ctz(x) == 4 && __builtin_ffs(x) == 5 && __builtin_bswap16(h) == 0x3412 && __builtin_bswap64(y) == 0x8877665544332211 && abs(n) == 3)",
    ),
    (
        "arguments_without_a_name",
        "#include <stdarg.h>\nlong sum(int n, ...) { va_list l; va_start(l, n); long s = 0; while (n--) s = 10 * s + va_arg(l, int); s += va_arg(l, double); va_end(l); return s; }",
        "long s = sum(3, 1, (char)2, 3, 0.5f); long t = sum(0, 7.25); COND(s == 123 && t == 7)",
    ),
    (
        "orders_that_do_not_matter",
        "int n; int get(void) { return n; } int twice(int x) { return 2 * x; } int set(int x) { n = x; return x; }",
        "int a = get() + get(), b = twice(1) - twice(2), c = set(4); int d = (set(5), get()); int e = set(6) && get(); COND(a == 0 && b == -2 && c == 4 && d == 5 && e)",
    ),
    (
        "own_meaning",
        "int calls; int __VERIFIER_nondet_int(void) { return ++calls; } void __VERIFIER_assume(int c) { calls += 10; }",
        "int a = __VERIFIER_nondet_int(); __VERIFIER_assume(0); COND(a == 1 && calls == 11)",
    ),
    (
        "sign_of_a_comparison",
        "char a[4] = \"a\", d[4] = \"d\"; char open[2] = {'x', 'y'};",
        "COND(strcmp(a, d) < 0 && strcmp(d, a) > 0 && strcmp(a, a) == 0 && strncmp(open, \"xyz\", 2) == 0 && memcmp(d, a, 1) > 0)",
    ),
    (
        "a_block_again",
        "int *p;",
        "int s = 0; for (int i = 0; i < 3; i++) { int x = i; p = &x; s += *p; } COND(s == 3)",
    ),
    (
        "counted_by_two",
        "_Atomic int n; void *f(void *a) { n++; n++; return 0; }",
        "pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, f, 0); pthread_join(a, 0); pthread_join(b, 0); COND(n == 4)",
    ),
    (
        "barrier",
        "pthread_barrier_t b; int x[2]; void *f(void *p) { x[0] = 1; pthread_barrier_wait(&b); return 0; }",
        "pthread_t t; pthread_barrier_init(&b, 0, 2); pthread_create(&t, 0, f, 0); pthread_barrier_wait(&b); COND(x[0] == 1)",
    ),
];

#[test]
fn conditions_of_c_are_proved_and_their_negations_are_violated() {
    for (name, globals, body) in CONDITIONS {
        for (negated, expected) in [(false, "proved"), (true, "violated")] {
            let body = body.replace("COND2(", "assert(").replace(") }", "); }");
            let at = body.rfind("COND(").expect("it has a condition");
            let (before, condition) = body.split_at(at);
            let condition = &condition["COND(".len()..condition.rfind(')').expect("it ends")];
            let condition = if negated { format!("!({condition})") } else { condition.to_owned() };
            let code =
                format!("{globals}\nint main(void) {{ {before} assert({condition}); return 0; }}");
            let name = format!("{name}_{negated}");
            let Some((found, why)) = verdict_of(&name, &code, &Options::default()) else { return };
            assert_eq!(found, expected, "{name}: {why}");
        }
    }
}

/// Undefined behaviour that a run shows is a violation.
#[test]
fn undefined_behaviour_is_found() {
    let cases = [
        ("overflow", "int x = INT_MAX; x++;", "signed overflow"),
        ("overflow_product", "int x = 65536; x *= x;", "signed overflow"),
        ("negation", "int x = INT_MIN; x = -x;", "signed overflow"),
        ("zero", "int x = 0; x = 1 / x;", "division"),
        ("smallest", "int x = INT_MIN, y = -1; x = x % y;", "division"),
        ("null", "int *p = 0; *p = 1;", "null pointer"),
        ("block", "int *p; { int x = 1; p = &x; } *p = 2;", "memory that no longer exists"),
        ("outside", "int a[2] = {0}; int i = 2; a[i] = 1;", "index outside"),
        ("far_outside", "int a[2] = {0}; int i = 7; a[i] = 1;", "index outside"),
        (
            "next_field",
            "struct { int a[2], b; } s = {{0}}; int i = 2; s.a[i] = 1;",
            "index outside",
        ),
        ("freed", "int *p = malloc(4); free(p); *p = 1;", "no longer exists"),
        (
            "freed_twice",
            "int *p = malloc(4); free(p); free(p);",
            "free of memory that no longer exists",
        ),
        ("constant", "char *s = \"a\"; *s = 'b';", "constant"),
        ("aborts", "abort();", "aborts"),
    ];
    for (name, body, expected) in cases {
        let code = format!("int main(void) {{ {body} return 0; }}");
        let Some((found, why)) = verdict_of(name, &code, &Options::default()) else { return };
        assert!(found == "violated" && why.contains(expected), "{name}: {found} {why}");
    }
}

/// What has no meaning is refused with the place: the third line behind the headers.
#[test]
fn what_has_no_meaning_is_refused_with_its_place() {
    let cases = [
        ("float", "long double d = 1;", "d = d + 1;", "long double"),
        ("not_a_number", "double z;", "z = z / z;", "floating point"),
        ("float_too_large", "double d = 1e20;", "int i = d;", "floating point"),
        (
            "input_as_float",
            "int __VERIFIER_nondet_int(void);",
            "double d = __VERIFIER_nondet_int();",
            "inputs",
        ),
        (
            "deleted_key",
            "pthread_key_t k;",
            "pthread_key_create(&k, 0); pthread_key_delete(k); pthread_getspecific(k);",
            "deleted",
        ),
        ("key_with_destructor", "pthread_key_t k;", "pthread_key_create(&k, free);", "destructor"),
        ("overlapping_strings", "char s[8] = \"abc\";", "strcpy(s + 1, s);", "overlaps"),
        ("assembly", "", "__asm__ volatile(\"nop\" ::: \"memory\");", "assembly"),
        ("unknown_call", "int g(void);", "g();", "g has no meaning"),
        ("jumps", "jmp_buf b;", "setjmp(b);", "setjmp"),
        ("handles_signal", "void h(int s) {}", "signal(SIGINT, h);", "signal"),
        ("uninitialised", "", "int x; if (x) return 1;", "undefined"),
        ("name_of_program", "", "if (argv[0][0] == 'a') return 1;", "undefined or not known"),
        ("compares_addresses", "int a, b;", "if (&a < &b) return 1;", "addresses"),
        ("address_as_number", "int a;", "long x = (long)&a; if (x & 1) return 1;", "number"),
        ("shift_too_far", "", "int n = 40; int x = 1 << n;", "shift"),
        ("foreign_unlock", "pthread_mutex_t m;", "pthread_mutex_unlock(&m);", "does not hold"),
        (
            "joined_twice",
            "pthread_t t; void *f(void *a) { return 0; }",
            "pthread_create(&t, 0, f, 0); pthread_join(t, 0); pthread_join(t, 0);",
            "join",
        ),
        (
            "attributes",
            "pthread_t t; void *f(void *a) { return 0; }",
            "pthread_attr_t a; pthread_create(&t, &a, f, 0);",
            "attributes",
        ),
        (
            "cancels",
            "pthread_t t; void *f(void *a) { return 0; }",
            "pthread_create(&t, 0, f, 0); pthread_cancel(t);",
            "pthread_cancel",
        ),
        ("bad_format", "int n;", "printf(\"%n\", &n);", "format"),
        (
            "mutex_without_value",
            "",
            "pthread_mutex_t m; pthread_mutex_lock(&m);",
            "not initialised",
        ),
        (
            "reads_a_lock",
            "pthread_mutex_t m;",
            "pthread_mutex_lock(&m); pthread_mutex_t n = m;",
            "in use",
        ),
        (
            "wrong_types",
            "int f(long a) { return 1; } int (*p)(int) = (int (*)(int))f;",
            "p(1);",
            "other types",
        ),
        (
            "detached_and_joined",
            "pthread_t t; void *f(void *a) { return 0; }",
            "pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setdetachstate(&a, 1); pthread_create(&t, &a, f, 0); pthread_join(t, 0);",
            "join",
        ),
        (
            "once_without_value",
            "void f(void) {}",
            "pthread_once_t o = 7; pthread_once(&o, f);",
            "not initialised",
        ),
        ("at_exit", "void f(void) {}", "atexit(f);", "atexit"),
    ];
    for (name, globals, body, expected) in cases {
        let code = format!("{globals}\nint main(int argc, char **argv) {{\n{body}\nreturn 0; }}");
        let Some((found, why)) = verdict_of(name, &code, &Options::default()) else { return };
        let line = HEADERS.lines().count() + 3;
        assert_eq!(found, "unknown", "{name}: {why}");
        assert!(why.contains(expected) && why.contains(&format!(".c:{line}:")), "{name}: {why}");
    }
    let whole = [
        ("constructor", "__attribute__((constructor)) void f(void) {}", "constructor"),
        ("destructor", "__attribute__((destructor)) void f(void) {}", "destructor"),
        ("alias", "int f(void) { return 1; } int g(void) __attribute__((alias(\"f\")));", "alias"),
        ("weak", "int f(void) __attribute__((weak)); int h(void) { return f ? 1 : 0; }", "weak"),
        ("module_assembly", "__asm__(\".globl zzz\");", "assembly"),
        ("unsequenced", "int f(int i) { return i++ + i++; }", "unsequenced"),
        ("no_c", "int f( {", "error"),
    ];
    for (name, globals, expected) in whole {
        let code = format!("{globals}\nint main(void) {{ return 0; }}");
        let Some((found, why)) = verdict_of(name, &code, &Options::default()) else { return };
        assert!(found == "refused" && why.contains(expected), "{name}: {found} {why}");
        let line = HEADERS.lines().count() + 1;
        let in_line = why.contains(&format!(".c:{line}:")) || name == "module_assembly";
        assert!(in_line, "{name} has no line: {why}");
    }
}

/// A weaker order may do more than was looked at: violations count, proofs do not.
#[test]
fn weaker_orders_are_never_proved() {
    let program = |order: &str, condition: &str| {
        format!(
            "_Atomic int x, y; int a, b;\n\
             void *f(void *p) {{ atomic_store_explicit(&x, 1, {order}); a = atomic_load_explicit(&y, {order}); return 0; }}\n\
             void *g(void *p) {{ atomic_store_explicit(&y, 1, {order}); b = atomic_load_explicit(&x, {order}); return 0; }}\n\
             int main(void) {{ pthread_t s, t; pthread_create(&s, 0, f, 0); pthread_create(&t, 0, g, 0);\n\
             pthread_join(s, 0); pthread_join(t, 0); assert({condition}); return 0; }}"
        )
    };
    let cases = [
        ("memory_order_seq_cst", "a == 1 || b == 1", "proved"),
        ("memory_order_relaxed", "a == 1 || b == 1", "unknown"),
        ("memory_order_relaxed", "a == 1", "violated"),
    ];
    for (number, (order, condition, expected)) in cases.into_iter().enumerate() {
        let name = format!("store_buffer_{number}");
        let code = program(order, condition);
        let Some((found, why)) = verdict_of(&name, &code, &Options::default()) else { return };
        assert_eq!(found, expected, "{order}, {condition}: {why}");
    }
}

#[test]
fn deadlocks_are_found_or_proved_absent() {
    let locks = |first: &str, second: &str| {
        format!(
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;\n\
             void *f(void *p) {{ pthread_mutex_lock(&m); pthread_mutex_lock(&n); pthread_mutex_unlock(&n); pthread_mutex_unlock(&m); return 0; }}\n\
             int main(void) {{ pthread_t t; pthread_create(&t, 0, f, 0);\n\
             pthread_mutex_lock(&{first}); pthread_mutex_lock(&{second}); pthread_mutex_unlock(&{second}); pthread_mutex_unlock(&{first});\n\
             pthread_join(t, 0); return 0; }}"
        )
    };
    let waits = |signal: &str| {
        format!(
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; int r;\n\
             void *f(void *p) {{ pthread_mutex_lock(&m); while (!r) pthread_cond_wait(&c, &m); pthread_mutex_unlock(&m); return 0; }}\n\
             int main(void) {{ pthread_t s, t; pthread_create(&s, 0, f, 0); pthread_create(&t, 0, f, 0);\n\
             pthread_mutex_lock(&m); r = 1; {signal}(&c); pthread_mutex_unlock(&m);\n\
             pthread_join(s, 0); pthread_join(t, 0); return 0; }}"
        )
    };
    let own = "pthread_mutex_t m; int main(void) { pthread_mutex_lock(&m); pthread_mutex_lock(&m); return 0; }";
    let cases = [
        ("opposite", locks("n", "m"), "violated"),
        ("same", locks("m", "n"), "proved"),
        ("one_signal", waits("pthread_cond_signal"), "violated"),
        ("broadcast", waits("pthread_cond_broadcast"), "proved"),
        ("own_lock", own.to_owned(), "violated"),
    ];
    let options = Options { deadlocks: true, ..Options::default() };
    for (name, code, expected) in cases {
        let Some((found, why)) = verdict_of(&format!("dead_{name}"), &code, &options) else {
            return;
        };
        assert_eq!(found, expected, "{name}: {why}");
        // without the property it is none
        let Some((found, why)) = verdict_of(&format!("live_{name}"), &code, &Options::default())
        else {
            return;
        };
        assert_eq!(found, "proved", "{name}: {why}");
    }
}

/// A sum of 6,000 terms was 5 GB once.
#[test]
fn a_long_expression_costs_memory_in_proportion() {
    let terms = vec!["x"; 6000].join(" + ");
    let code = format!(
        "unsigned x = 1;\nint main(void) {{ unsigned y = {terms}; assert(y == 6000); return 0; }}"
    );
    let Some((found, why)) = verdict_of("long_sum", &code, &Options::default()) else { return };
    assert_eq!(found, "proved", "{why}");
}

#[test]
fn a_spent_budget_is_unknown() {
    let file = root().join("../../examples/verify/lazy01_safe.c");
    let options = Options { states: 5, ..Options::default() };
    let Some(found) = report(&file, &options) else { return };
    let (found, why) = word(&found);
    assert!(found == "unknown" && why.contains("the budget is spent"), "{found} {why}");
}
