//! Orders weaker than `seq_cst`: where a processor that delays stores can do more than interleave, it is
//! said and the exit code is 12; where it cannot, all behaviours are covered.

use crate::common::Workshop;

/// Two threads, and what `main` does after them.
fn program(shared: &str, one: &str, other: &str, after: &str) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n\
         #define st(p, v, o) atomic_store_explicit(p, v, memory_order_##o)\n\
         #define ld(p, o) atomic_load_explicit(p, memory_order_##o)\n\
         {shared}\nstatic void *one(void *a) {{ {one} return 0; }}\n\
         static void *other(void *a) {{ {other} return 0; }}\n\
         int main(void) {{ pthread_t t, u;\n\
         pthread_create(&t, 0, one, 0); pthread_create(&u, 0, other, 0);\n\
         pthread_join(t, 0); pthread_join(u, 0); {after} return 0; }}\n"
    )
}

#[test]
fn a_delayed_store_is_said_where_others_can_see_it() {
    const SAID: &str = "the processor may delay the store";
    let cases = [
        (
            "buffering",
            12,
            "st(&x, 1, release); if (!ld(&y, acquire)) in++;",
            "st(&y, 1, release); if (!ld(&x, acquire)) in++;",
        ),
        (
            "one_is_strong",
            12,
            "st(&x, 1, relaxed); if (!ld(&y, relaxed)) in++;",
            "st(&y, 1, seq_cst); if (!ld(&x, seq_cst)) in++;",
        ),
        (
            "weak_fences",
            12,
            "st(&x, 1, relaxed); atomic_thread_fence(memory_order_acq_rel); if (!ld(&y, relaxed)) in++;",
            "st(&y, 1, relaxed); atomic_thread_fence(memory_order_acq_rel); if (!ld(&x, relaxed)) in++;",
        ),
        (
            "last_write",
            12,
            "st(&x, 1, release); if (!ld(&y, acquire)) in++;",
            "st(&y, 1, release); st(&x, 2, release);",
        ),
        (
            "strong",
            0,
            "st(&x, 1, seq_cst); if (!ld(&y, seq_cst)) in++;",
            "st(&y, 1, seq_cst); if (!ld(&x, seq_cst)) in++;",
        ),
        (
            "fences",
            0,
            "st(&x, 1, relaxed); atomic_thread_fence(memory_order_seq_cst); if (!ld(&y, relaxed)) in++;",
            "st(&y, 1, relaxed); atomic_thread_fence(memory_order_seq_cst); if (!ld(&x, relaxed)) in++;",
        ),
        (
            "exchanged",
            0,
            "atomic_exchange_explicit(&x, 1, memory_order_acq_rel); if (!ld(&y, acquire)) in++;",
            "atomic_exchange_explicit(&y, 1, memory_order_acq_rel); if (!ld(&x, acquire)) in++;",
        ),
        (
            "message",
            0,
            "st(&x, 1, relaxed); st(&y, 1, release);",
            "if (ld(&y, acquire)) assert(ld(&x, relaxed) == 1);",
        ),
        (
            "locked_between",
            0,
            "st(&x, 1, release); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); if (!ld(&y, acquire)) in++;",
            "st(&y, 1, release); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); if (!ld(&x, acquire)) in++;",
        ),
        (
            "spin_lock",
            0,
            "while (atomic_exchange_explicit(&x, 1, memory_order_acquire)); n++; st(&x, 0, release);",
            "while (atomic_exchange_explicit(&x, 1, memory_order_acquire)); n++; st(&x, 0, release);",
        ),
        (
            "ticket_lock",
            0,
            "int t = atomic_fetch_add_explicit(&x, 1, memory_order_relaxed); while (ld(&y, acquire) != t); n++; st(&y, t + 1, release);",
            "int t = atomic_fetch_add_explicit(&x, 1, memory_order_relaxed); while (ld(&y, acquire) != t); n++; st(&y, t + 1, release);",
        ),
    ];
    let workshop = Workshop::new();
    for (name, expected, one, other) in cases {
        let shared =
            "static atomic_int x, y, in; int n; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
        let code = program(shared, one, other, "assert((in <= 1) & (x >= 0));");
        let program = workshop.build_text(name, &code);
        let answer = workshop.test(&program, &[], &[]);
        let said = answer.report["unseen"].to_string();
        assert_eq!(answer.code, Some(expected), "{name}: {:#}\n{}", answer.report, answer.stderr);
        assert_eq!(said.contains(SAID), expected == 12, "{name}: {said}");
    }
}

/// Plain accesses that only weak atomic operations order are a data race in C11, which no interleaving
/// shows.
#[test]
fn what_is_ordered_too_weakly_is_said() {
    const SAID: &str = "a data race on `d` that no interleaving shows";
    let until = |order: &str| format!("while (!ld(&f, {order})); assert(d == 7);");
    let lock = |take: &str, give: &str| {
        format!(
            "while (atomic_exchange_explicit(&f, 1, memory_order_{take})); d++; st(&f, 0, {give});"
        )
    };
    let cases = [
        ("relaxed", 12, "d = 7; st(&f, 1, relaxed);".to_owned(), until("relaxed")),
        ("release_only", 12, "d = 7; st(&f, 1, release);".into(), until("relaxed")),
        ("acquire_only", 12, "d = 7; st(&f, 1, relaxed);".into(), until("acquire")),
        ("both", 0, "d = 7; st(&f, 1, release);".into(), until("acquire")),
        ("strong", 0, "d = 7; st(&f, 1, seq_cst);".into(), until("seq_cst")),
        ("relaxed_lock", 12, lock("relaxed", "relaxed"), lock("relaxed", "relaxed")),
        ("lock", 0, lock("acquire", "release"), lock("acquire", "release")),
        (
            "fences",
            0,
            "d = 7; atomic_thread_fence(memory_order_release); st(&f, 1, relaxed);".into(),
            "while (!ld(&f, relaxed)); atomic_thread_fence(memory_order_acquire); assert(d == 7);"
                .into(),
        ),
        (
            "guarded",
            12,
            "d = 7; st(&f, 1, relaxed);".into(),
            "if (ld(&f, relaxed)) { int r = d; assert(r == 7); }".into(),
        ),
    ];
    let workshop = Workshop::new();
    for (name, expected, one, other) in cases {
        let code = program("static atomic_int f; int d;", &one, &other, "return d < 0;");
        let source = workshop.path().join(name).with_extension("c");
        std::fs::write(&source, code).expect("a file");
        for level in ["-O0", "-O1"] {
            let program = workshop.build(&source, &[level]);
            let answer = workshop.test(&program, &[], &[]);
            let said = answer.report["unseen"].to_string();
            let all = format!("{name} {level}: {:#}\n{}", answer.report, answer.stderr);
            assert_eq!(answer.code, Some(expected), "{all}");
            assert_eq!(said.contains(SAID), expected == 12, "{name} {level}: {said}");
        }
    }
}
