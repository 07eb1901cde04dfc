//! Divisions that trap in another interleaving, and those that never do. The value changes and no branch tells.

use crate::common::{Answer, Workshop};

const HEAD: &str = "#include <limits.h>\n#include <pthread.h>\n#include <stdio.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    #define LOCK pthread_mutex_lock(&m)\n#define UNLOCK pthread_mutex_unlock(&m)\n\
    static void two(void *(*f)(void *), void *(*g)(void *)) { pthread_t a, b;\n\
    pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
    pthread_join(a, 0); pthread_join(b, 0); }\n";

/// A thread that divides, and one that stores afterwards in the recorded run.
fn divides(types: &str, first: &str, stored: &str, quotient: &str) -> String {
    format!(
        "{HEAD}static {types} n = {first}, kept;\n\
         static void *f(void *a) {{ LOCK; {types} d = n; UNLOCK; kept = {quotient}; return a; }}\n\
         static void *g(void *a) {{ LOCK; n = {stored}; UNLOCK; return a; }}\n\
         int main(void) {{ two(f, g); printf(\"%ld\\n\", (long)kept); return 0; }}\n"
    )
}

/// As written: an optimiser makes what it likes of a division by zero.
fn tested(workshop: &Workshop, name: &str, code: &str) -> Answer {
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, code).expect("a file");
    let program = workshop.build(&source, &["--as-written", "-O1"]);
    workshop.test(&program, &[], &[])
}

#[test]
fn a_division_that_traps_is_found() {
    let workshop = Workshop::new();
    for (name, types, first, stored, quotient) in [
        ("by_zero", "int", "4", "0", "100 / d"),
        ("rest", "int", "4", "0", "100 % d"),
        ("unsigned", "unsigned", "4", "0", "100 / d"),
        ("long", "long", "4", "0", "100 / d"),
        ("short", "short", "4", "0", "(short)(100 / d)"),
        ("difference", "int", "4", "7", "100 / (d - 7)"),
        ("least", "int", "-5", "INT_MIN", "d / (d < 0 ? -1 : 1)"),
        ("minus_one", "int", "3", "-1", "INT_MIN / d"),
        ("least_rest", "long", "3", "-1", "LONG_MIN % d"),
        ("both", "int", "3", "0", "(d - INT_MAX) / d"),
    ] {
        let code = divides(types, first, stored, quotient);
        let answer = tested(&workshop, name, &code).ends_with(10);
        assert!(!answer.confirmed("crash").is_empty(), "{name}: {:#}", answer.report);
    }
}

#[test]
fn a_division_that_never_traps_is_no_finding() {
    let workshop = Workshop::new();
    for (name, types, first, stored, quotient) in [
        ("other", "int", "4", "5", "100 / d"),
        ("checked", "int", "4", "0", "d ? 100 / d : 0"),
        ("constant", "int", "4", "0", "d / 3"),
        ("unsigned", "unsigned", "4", "0xffffffffu", "0x80000000u / d"),
        ("least_by_two", "int", "4", "2", "INT_MIN / d"),
    ] {
        let code = divides(types, first, stored, quotient);
        let answer = tested(&workshop, name, &code);
        assert!(answer.findings().is_empty(), "{name}: {:#}", answer.report);
        assert_eq!(answer.code, Some(0), "{name}: {:#}", answer.report);
    }
}
