//! Threads that wait for ever beside signal handlers: a signal from outside may always come, but only some
//! handlers do something about it.

use crate::common::Workshop;

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static sem_t s; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile sig_atomic_t flag; static int f, p[2]; static sigjmp_buf back;
static void *nothing(void *a) { return a; }
static void beside(void) { pthread_t t; pthread_create(&t, 0, nothing, 0); pthread_join(t, 0); }
static void restart(int n, void (*h)(int)) { signal(n, h); }
static void interrupt(int n, void (*h)(int)) { struct sigaction a = {.sa_handler = h}; sigaction(n, &a, 0); }
static void wait_for_semaphore(void) { sem_init(&s, 0, 0); beside(); while (sem_wait(&s) && !flag); }
static void wait_for_condition(void) { beside(); pthread_mutex_lock(&m); while (!flag) pthread_cond_wait(&c, &m); }
static void wait_for_futex(void) { beside(); while (!f) syscall(SYS_futex, &f, FUTEX_WAIT, 0, 0, 0, 0); }
"#;

fn tried(cases: &[(&str, &str)], expected: i32) {
    let workshop = Workshop::new();
    let mut wrong = Vec::new();
    for (name, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--run-limit", "1", "--time-limit", "60"], &[]);
        let deadlocks = answer.confirmed("deadlock").len();
        if answer.code != Some(expected) || (deadlocks > 0) != (expected == 10) {
            wrong.push(format!("{name}: {:?} {:#}\n{}", answer.code, answer.report, answer.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_handler_that_wakes_nobody_is_no_way_out_of_a_deadlock() {
    tried(
        &[
            ("flag", "void h(int n) { flag = 1; } int main(void) { restart(SIGINT, h); wait_for_semaphore(); return 0; }"),
            ("prints", "void h(int n) { printf(\"signal %d\\n\", n); fflush(stdout); }
                int main(void) { restart(SIGHUP, h); wait_for_condition(); return 0; }"),
            ("interrupts", "void h(int n) { flag = 1; write(2, \"x\", 1); } int main(void) { interrupt(SIGTERM, h); wait_for_condition(); return 0; }"),
            ("ends", "static void bye(void) { puts(\"bye\"); _exit(3); } void h(int n) { bye(); }
                int main(void) { restart(SIGINT, h); wait_for_semaphore(); return 0; }"),
            ("futex", "void h(int n) { flag = n; } int main(void) { restart(SIGUSR1, h); wait_for_futex(); return 0; }"),
            ("informed", "void h(int n, siginfo_t *i, void *u) { flag = i->si_code; }
                int main(void) { struct sigaction a = {.sa_sigaction = h, .sa_flags = SA_SIGINFO | SA_RESTART}; sigaction(SIGTERM, &a, 0);
                  wait_for_semaphore(); return 0; }"),
        ],
        10,
    );
}

#[test]
fn no_deadlock_is_said_that_a_handler_may_end() {
    tried(
        &[
            ("posts", "void h(int n) { sem_post(&s); } int main(void) { restart(SIGINT, h); wait_for_semaphore(); return 0; }"),
            ("posts_below", "static void g(void) { sem_post(&s); } void h(int n) { if (n) g(); }
                int main(void) { restart(SIGINT, h); wait_for_semaphore(); return 0; }"),
            ("signals", "void h(int n) { flag = 1; pthread_cond_signal(&c); } int main(void) { restart(SIGINT, h); wait_for_condition(); return 0; }"),
            ("interrupts", "void h(int n) { flag = 1; } int main(void) { interrupt(SIGINT, h); wait_for_semaphore(); return 0; }"),
            ("wakes", "void h(int n) { f = 1; syscall(SYS_futex, &f, FUTEX_WAKE, 1, 0, 0, 0); } int main(void) { restart(SIGINT, h); wait_for_futex(); return 0; }"),
            ("jumps", "void h(int n) { siglongjmp(back, 1); } int main(void) { restart(SIGINT, h); if (!sigsetjmp(back, 1)) wait_for_condition(); return 0; }"),
            ("by_pointer", "void (*volatile g)(void); static void post(void) { sem_post(&s); } void h(int n) { g(); }
                int main(void) { g = post; restart(SIGINT, h); wait_for_semaphore(); return 0; }"),
            ("writes", "void h(int n) { write(p[1], \"x\", 1); } int main(void) { char b; pipe(p); restart(SIGINT, h); beside(); read(p[0], &b, 1); return 0; }"),
            ("stores", "void h(int n) { flag = 1; } int main(void) { restart(SIGINT, h); beside(); while (!flag); return 0; }"),
        ],
        12,
    );
}
