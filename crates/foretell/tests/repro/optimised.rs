//! The optimiser makes accesses that the source does not have: a load before the branch that guards it,
//! or before the loop in which it may be reached. They must not become races.

use crate::common::Workshop;

/// Two threads: `one` publishes, `other` uses what was published. Shared are `data`, `more`, `table`,
/// `flag` and the mutex `m`.
fn program(one: &str, other: &str) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
         static int data, more, table[4]; static atomic_int flag, sum; static int *_Atomic where;\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static int is_set(void) {{ return atomic_load_explicit(&flag, memory_order_acquire); }}\n\
         static void set(int value) {{ atomic_store_explicit(&flag, value, memory_order_release); }}\n\
         static void *one(void *a) {{ {one} return 0; }}\n\
         static void *other(void *a) {{ {other} return 0; }}\n\
         int main(void) {{ pthread_t t, u; (void)more, (void)table, (void)where, (void)&m, (void)sum;\n\
         pthread_create(&t, 0, one, 0); pthread_create(&u, 0, other, 0);\n\
         pthread_join(t, 0); pthread_join(u, 0); return 0; }}\n"
    )
}

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

fn check(cases: &[(&str, &str, &str)], expected: i32) {
    let workshop = Workshop::new();
    for (name, one, other) in cases {
        let source = workshop.path().join(name).with_extension("c");
        std::fs::write(&source, program(one, other)).expect("a file");
        for level in LEVELS {
            let program = workshop.build(&source, &[level]);
            let answer = workshop.test(&program, &[], &[]);
            let said = format!("{name} {level}: {:#}\n{}", answer.report, answer.stderr);
            assert_eq!(answer.code, Some(expected), "{said}");
        }
    }
}

#[test]
fn what_is_guarded_stays_behind_its_guard() {
    let cases = [
        ("assertion", "data = 11; set(1);", "if (is_set()) assert(data == 11);"),
        ("both", "data = 1; set(1);", "assert(!(is_set() && data != 1));"),
        ("chosen", "data = 7; set(1);", "int r = is_set() ? data : 7; assert(r == 7);"),
        (
            "two_values",
            "data = 1; more = 2; set(1);",
            "int r = is_set() ? data + more : 3; assert(r == 3);",
        ),
        (
            "in_a_loop",
            "data = 5; set(1);",
            "int r = 0; for (int i = 0; i < 3; i++) if (is_set()) r += data; assert(r % 5 == 0);",
        ),
        (
            "switch",
            "table[2] = 9; set(2);",
            "int r = 9; switch (is_set()) { case 2: r = table[2]; break; default: break; } assert(r == 9);",
        ),
        ("returned", "more = 4; set(1);", "if (!is_set()) return 0; if (more != 4) abort();"),
        (
            "pointer",
            "data = 3; atomic_store(&where, &data);",
            "int *p = atomic_load(&where); assert(p == 0 || *p == 3);",
        ),
        (
            "claimed",
            "if (atomic_exchange(&flag, 1) == 0) data = 1;",
            "if (atomic_exchange(&flag, 1) == 0) data = data + 2;",
        ),
        (
            "initialised_once",
            "pthread_mutex_lock(&m); if (!flag) { data = 6; set(1); } pthread_mutex_unlock(&m);",
            "if (!is_set()) { pthread_mutex_lock(&m); if (!flag) { data = 6; set(1); } \
             pthread_mutex_unlock(&m); } assert(data == 6);",
        ),
        (
            "lock_tried",
            "pthread_mutex_lock(&m); data = 2; pthread_mutex_unlock(&m);",
            "int r = 0; if (pthread_mutex_trylock(&m) == 0) { r = data; pthread_mutex_unlock(&m); } \
             assert(r == 0 || r == 2);",
        ),
    ];
    check(&cases, 0);
}

#[test]
fn what_is_not_guarded_is_still_found() {
    let cases = [
        ("before", "data = 11; set(1);", "int r = data; if (is_set()) assert(r == 11);"),
        ("too_early", "set(1); data = 11;", "if (is_set()) assert(data == 11);"),
        ("another", "data = 1; set(1); more = 1;", "if (is_set()) assert(data == 1 && more == 1);"),
    ];
    check(&cases, 10);
}
