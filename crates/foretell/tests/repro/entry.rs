//! The entry of a thread is no block: that something changes between two looks of a thread is lawful,
//! whatever it prints then. An update that gets lost there is not.

use crate::common::Workshop;

const HEAD: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_t t, u; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int x, y;
#define INLINE static inline __attribute__((always_inline))
INLINE int get(int *p) { pthread_mutex_lock(&m); int v = *p; pthread_mutex_unlock(&m); return v; }
INLINE void set(int *p, int v) { pthread_mutex_lock(&m); *p = v; pthread_mutex_unlock(&m); }
static void both(void *(*f)(void *), void *(*g)(void *)) { pthread_create(&t, 0, f, 0); pthread_create(&u, 0, g, 0);
  pthread_join(t, 0); pthread_join(u, 0); }
void *one(void *a) { set(&x, 1); return 0; }
"#;

#[track_caller]
fn tried(cases: &[(&str, &str)], expected: i32) {
    let workshop = Workshop::new();
    for (name, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        assert_eq!(answer.code, Some(expected), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}

#[test]
fn what_changes_between_two_looks_is_lawful() {
    tried(
        &[
            (
                "looks_twice",
                "void *w(void *a) { printf(\"start %d\\n\", get(&x)); printf(\"end %d\\n\", get(&x)); return 0; }
                int main(void) { both(w, one); return 0; }",
            ),
            (
                "sets_and_looks",
                "void *w(void *a) { set(&x, 2); printf(\"is %d\\n\", get(&x)); return 0; }
                int main(void) { both(w, one); return 0; }",
            ),
            (
                "looks_and_sets",
                "void *w(void *a) { printf(\"was %d\\n\", get(&x)); set(&x, 5); return 0; }
                int main(void) { both(w, one); printf(\"%d\\n\", x); return 0; }",
            ),
        ],
        0,
    );
}

#[test]
fn a_write_that_is_out_of_date_is_found() {
    tried(
        &[
            (
                "lost_update",
                "void *w(void *a) { int s = get(&x); set(&x, s + 1); return 0; }
                int main(void) { both(w, w); printf(\"%d\\n\", x); return 0; }",
            ),
            (
                "check_then_act",
                "void *w(void *a) { if (!get(&x)) { set(&x, 1); set(&y, get(&y) + 1); } return 0; }
                int main(void) { both(w, w); printf(\"%d\\n\", y); return y != 1; }",
            ),
        ],
        10,
    );
}
