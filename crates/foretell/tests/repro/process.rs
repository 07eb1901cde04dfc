//! What belongs to the process and not to a thread: descriptors, the working folder, memory that is mapped,
//! children, and signals.

use crate::common::{Answer, Workshop};

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int fd, x, p[2]; static pthread_t t, u, m; static sigset_t s; static volatile sig_atomic_t got;
static void both(void *(*v)(void *), void *(*w)(void *)) { pthread_create(&t, 0, v, 0); pthread_create(&u, 0, w, 0);
  pthread_join(t, 0); pthread_join(u, 0); }
static void block(int n) { sigemptyset(&s); sigaddset(&s, n); pthread_sigmask(SIG_BLOCK, &s, 0); }
static void flag(int n) { got = 1; }
"#;

fn answer(workshop: &Workshop, name: &str, code: &str) -> Answer {
    let program = workshop.build_text(name, &format!("{HEAD}{code}"));
    workshop.test(&program, &["--time-limit", "300"], &[])
}

/// Nothing is found, and all was looked at.
fn are_clear(cases: &[(&str, &str)]) {
    let workshop = Workshop::new();
    for (name, code) in cases {
        let answer = answer(&workshop, name, code);
        assert_eq!(answer.code, Some(0), "{name}: {:#}\n{}", answer.report, answer.stderr);
    }
}

/// Nothing is found, and this is said.
fn are_said(cases: &[(&str, &str, &str)]) {
    let workshop = Workshop::new();
    for (name, words, code) in cases {
        let answer = answer(&workshop, name, code);
        let unseen = answer.report["unseen"].to_string();
        assert_eq!(answer.code, Some(12), "{name}: {:#}\n{}", answer.report, answer.stderr);
        assert!(answer.findings().is_empty(), "{name}: {:#}", answer.report);
        assert!(unseen.contains(words), "{name}: {unseen}");
    }
}

#[test]
pub fn descriptors_of_others_are_said_and_own_ones_are_clear() {
    are_said(&[
        ("closed_meanwhile", "state of descriptor", "void *f(void *a) { assert(write(fd, \"x\", 1) == 1); return 0; }
            void *g(void *a) { close(fd); return 0; } int main(void) { fd = open(\"/dev/null\", O_WRONLY); both(f, g); return 0; }"),
        ("closed_twice", "a descriptor that is not open", "void *f(void *a) { close(fd); close(fd); return 0; }
            void *g(void *a) { int d = open(\"/dev/null\", O_WRONLY); assert(write(d, \"x\", 1) == 1); return 0; }
            int main(void) { fd = open(\"/dev/null\", O_RDONLY); both(f, g); return 0; }"),
        ("one_position", "the position of descriptor", "void *f(void *a) { char c; lseek(fd, 0, SEEK_SET); read(fd, &c, 1); assert(c == 'a'); return 0; }
            void *g(void *a) { char c; lseek(fd, 2, SEEK_SET); read(fd, &c, 1); assert(c == 'c'); return 0; }
            int main(void) { fd = open(\"abcd\", O_RDWR | O_CREAT | O_TRUNC, 0600); write(fd, \"abcd\", 4); both(f, g); return 0; }"),
    ]);
    are_clear(&[
        ("own_files", "void *f(void *a) { char c; int d = open(\"/etc/hostname\", O_RDONLY); lseek(d, 0, SEEK_SET); assert(read(d, &c, 1) == 1);
            close(d); return 0; } int main(void) { both(f, f); return 0; }"),
        ("closed_at_last", "void *f(void *a) { assert(write(fd, \"x\", 1) == 1); return 0; }
            int main(void) { fd = open(\"/dev/null\", O_WRONLY); both(f, f); close(fd); return 0; }"),
        ("handed_over", "sem_t h; void *f(void *a) { sem_wait(&h); char c; read(p[0], &c, 1); close(p[0]); return 0; }
            int main(void) { sem_init(&h, 0, 0); pthread_create(&t, 0, f, 0); pipe(p); write(p[1], \"x\", 1); sem_post(&h);
            pthread_join(t, 0); close(p[1]); return 0; }"),
    ]);
}

#[test]
pub fn state_of_the_process_is_said() {
    are_said(&[
        ("working_folder", "chdir", "void *f(void *a) { assert(access(\"here\", F_OK) == 0); return 0; } void *g(void *a) { chdir(\"/\"); return 0; }
            int main(void) { close(creat(\"here\", 0600)); both(f, g); return 0; }"),
        ("mask", "umask", "void *f(void *a) { umask(umask(077)); return 0; } int main(void) { both(f, f); return 0; }"),
        ("words", "strtok", "void *f(void *a) { char b[] = \"a b\"; strtok(b, \" \"); char *r = strtok(0, \" \"); assert(r && *r == 'b'); return 0; }
            int main(void) { both(f, f); return 0; }"),
        ("news", "inotify", "void *f(void *a) { x = 1; close(creat(\"d/new\", 0600)); return 0; }
            int main(void) { mkdir(\"d\", 0700); unlink(\"d/new\"); int i = inotify_init(); inotify_add_watch(i, \"d\", IN_CREATE);
            pthread_create(&t, 0, f, 0); char b[400]; read(i, b, 400); assert(x == 1); pthread_join(t, 0); return 0; }"),
    ]);
}

#[test]
pub fn tasks_by_other_ways_are_said() {
    are_said(&[
        ("vfork", "vfork started a process", "void *f(void *a) { return 0; } int main(void) { pthread_create(&t, 0, f, 0); pid_t c = vfork();
            if (!c) { execl(\"/bin/true\", \"true\", (char *)0); _exit(1); } waitpid(c, 0, 0); pthread_join(t, 0); return 0; }"),
        ("clone", "clone started a process", "int f(void *a) { return 0; } int main(void) { char *k = malloc(65536);
            waitpid(clone(f, k + 65536, CLONE_VM | SIGCHLD, 0), 0, 0); return 0; }"),
        ("fork_itself", "fork in thread", "void *f(void *a) { return 0; } int main(void) { pthread_create(&t, 0, f, 0); long c = syscall(SYS_fork);
            if (!c) _exit(0); waitpid(c, 0, 0); pthread_join(t, 0); return 0; }"),
    ]);
    are_clear(&[("calls_itself", "void *f(void *a) { x = 1; syscall(SYS_write, p[1], \"a\", 1); return 0; }
        int main(void) { pipe(p); pthread_create(&t, 0, f, 0); char c; syscall(SYS_read, p[0], &c, 1); assert(x == 1); pthread_join(t, 0); return 0; }")]);
}

#[test]
pub fn memory_that_is_unmapped_is_gone() {
    let workshop = Workshop::new();
    let unmapped = "int *_Atomic q; void *f(void *a) { int *r = q; if (r) *r = 1; return 0; }
        void *g(void *a) { int *r = q; q = 0; munmap(r, 4096); return 0; }
        int main(void) { q = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); both(f, g); return 0; }";
    let found = answer(&workshop, "unmapped", unmapped).ends_with(10);
    assert!(!found.confirmed("crash").is_empty(), "{:#}", found.report);
    are_clear(&[("mapped", "pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER; int *q;
        void *f(void *a) { pthread_mutex_lock(&l); q[3]++; pthread_mutex_unlock(&l); return 0; }
        int main(void) { q = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); both(f, f); assert(q[3] == 2); munmap(q, 8192); return 0; }")]);
}

#[test]
pub fn signals_are_an_order_whoever_sends_them() {
    are_clear(&[
        ("by_descriptor", "void *f(void *a) { x = 1; kill(getpid(), SIGUSR1); return 0; } int main(void) { block(SIGUSR1); fd = signalfd(-1, &s, 0);
            pthread_create(&t, 0, f, 0); struct signalfd_siginfo i; read(fd, &i, sizeof i); assert(x == 1); pthread_join(t, 0); return 0; }"),
        ("queued", "void *f(void *a) { x = 1; pthread_sigqueue(m, SIGUSR2, (union sigval){.sival_int = 5}); return 0; }
            int main(void) { m = pthread_self(); block(SIGUSR2); pthread_create(&t, 0, f, 0); siginfo_t i; sigwaitinfo(&s, &i);
            assert(x == 1 && i.si_value.sival_int == 5); pthread_join(t, 0); return 0; }"),
        ("queued_for_all", "void *f(void *a) { x = 1; sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1}); return 0; }
            int main(void) { block(SIGRTMIN); pthread_create(&t, 0, f, 0); int n; sigwait(&s, &n); assert(x == 1); pthread_join(t, 0); return 0; }"),
    ]);
}

/// The handler could have run before or after any other step of its thread.
#[test]
pub fn where_a_handler_interrupts_is_said() {
    are_said(&[
        ("between", "is not varied", "void h(int n) { x++; } void *f(void *a) { pthread_kill(m, SIGUSR1); return 0; } int main(void) { m = pthread_self();
            signal(SIGUSR1, h); pthread_create(&t, 0, f, 0); int v = x; v += 10; x = v; pthread_join(t, 0); return x != 11; }"),
        ("before_pause", "is not varied", "void *f(void *a) { pthread_kill(m, SIGUSR1); return 0; } int main(void) { m = pthread_self();
            signal(SIGUSR1, flag); pthread_create(&t, 0, f, 0); pause(); pthread_join(t, 0); return 0; }"),
        ("of_the_process", "is not varied", "void *f(void *a) { block(SIGUSR1); x = 3; kill(getpid(), SIGUSR1); return 0; } int main(void) {
            signal(SIGUSR1, flag); pthread_create(&t, 0, f, 0); while (!got) sched_yield(); assert(x == 3); pthread_join(t, 0); return 0; }"),
    ]);
}
