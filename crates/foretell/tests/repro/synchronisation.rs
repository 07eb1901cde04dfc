//! Order that comes from descriptors, signals and files: what was written before a send is seen after
//! the receive that returned it. Correct programs are clear, and what the order does not forbid is found.

use crate::common::{Workshop, tested};

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
static int p[2], q[2]; static volatile int x, y; static pthread_t t, u; static char b[8];
static void go(void *(*w)(void *)) { pthread_create(&t, 0, w, 0); }
static void both(void *(*v)(void *), void *(*w)(void *)) { pthread_create(&t, 0, v, 0); pthread_create(&u, 0, w, 0); }
"#;

/// What the program is and its code.
type Case = (&'static str, &'static str);

#[track_caller]
fn tried(cases: &[Case], expected: &[i32]) {
    let workshop = Workshop::new();
    let mut wrong = Vec::new();
    for (name, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        if !answer.code.is_some_and(|code| expected.contains(&code)) {
            wrong.push(format!("{name}: {:?} {:#}\n{}", answer.code, answer.report, answer.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn handing_over_by_a_descriptor_is_an_order() {
    for kind in ["p", "s", "e", "t"] {
        tested("world/pipesync.c", &[], &[kind]).ends_with(0);
    }
}

#[test]
fn handing_over_by_a_signal_or_a_file_is_an_order() {
    for kind in ["sigwait", "file"] {
        tested("world/othersync.c", &[], &[kind]).ends_with(0);
    }
    // Where a handler interrupts its thread is another matter, and said.
    let answer = tested("world/othersync.c", &[], &["sighandler"]).ends_with(12);
    assert!(answer.findings().is_empty(), "{:#}", answer.report);
}

#[test]
fn pipes_and_sockets_order_what_they_carry() {
    tried(
        &[
            ("both_ways", "void *w(void *a) { read(p[0], b, 1); assert(x == 1); y = 1; write(q[1], \"b\", 1); return 0; }
                int main(void) { pipe(p); pipe(q); go(w); x = 1; write(p[1], \"a\", 1); read(q[0], b + 1, 1); assert(y == 1);
                  pthread_join(t, 0); return 0; }"),
            ("parts", "void *w(void *a) { x = 1; write(p[1], \"ab\", 2); x = 2; write(p[1], \"cd\", 2); return 0; }
                int main(void) { pipe(p); go(w); char c[3]; for (int i = 0; i < 3; i++) read(p[0], c + i, 1);
                  assert(x == 2); pthread_join(t, 0); return 0; }"),
            ("vectors", "void *w(void *a) { x = 1; struct iovec v[2] = {{\"ab\", 2}, {\"c\", 1}}; writev(p[1], v, 2); return 0; }
                int main(void) { pipe(p); go(w); struct iovec v[2] = {{b, 1}, {b + 1, 2}}; readv(p[0], v, 2); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("messages", "void *w(void *a) { x = 1; send(p[1], \"abc\", 3, 0); return 0; }
                int main(void) { socketpair(AF_UNIX, SOCK_DGRAM, 0, p); go(w); recv(p[0], b, 8, 0); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("end_of_input", "void *w(void *a) { x = 1; close(p[1]); return 0; }
                int main(void) { pipe(p); go(w); assert(read(p[0], b, 1) == 0); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("shut_down", "void *w(void *a) { x = 1; shutdown(p[1], SHUT_WR); return 0; }
                int main(void) { socketpair(AF_UNIX, SOCK_STREAM, 0, p); go(w); assert(read(p[0], b, 1) == 0); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("copied", "void *w(void *a) { x = 1; int d = dup(p[1]); write(d, \"a\", 1); return 0; }
                int main(void) { pipe(p); go(w); int d = dup(p[0]); read(d, b, 1); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("named", "void *w(void *a) { struct sockaddr_un n = {AF_UNIX, \"here\"}; int s = socket(AF_UNIX, SOCK_STREAM, 0);
                  connect(s, (void *)&n, sizeof n); x = 1; write(s, \"a\", 1); return 0; }
                int main(void) { unlink(\"here\"); struct sockaddr_un n = {AF_UNIX, \"here\"}; int s = socket(AF_UNIX, SOCK_STREAM, 0);
                  bind(s, (void *)&n, sizeof n); listen(s, 1); go(w); int c = accept(s, 0, 0); read(c, b, 1); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("accepted", "struct sockaddr_in n; void *w(void *a) { x = 1; int s = socket(AF_INET, SOCK_STREAM, 0);
                  connect(s, (void *)&n, sizeof n); return 0; }
                int main(void) { int s = socket(AF_INET, SOCK_STREAM, 0); n.sin_family = AF_INET;
                  n.sin_addr.s_addr = htonl(INADDR_LOOPBACK); bind(s, (void *)&n, sizeof n); listen(s, 1); socklen_t l = sizeof n;
                  getsockname(s, (void *)&n, &l); go(w); accept(s, 0, 0); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("datagrams", "struct sockaddr_in n; void *w(void *a) { int s = socket(AF_INET, SOCK_DGRAM, 0); x = 1;
                  sendto(s, \"a\", 1, 0, (void *)&n, sizeof n); return 0; }
                int main(void) { int s = socket(AF_INET, SOCK_DGRAM, 0); n.sin_family = AF_INET;
                  n.sin_addr.s_addr = htonl(INADDR_LOOPBACK); bind(s, (void *)&n, sizeof n); socklen_t l = sizeof n;
                  getsockname(s, (void *)&n, &l); go(w); recvfrom(s, b, 8, 0, 0, 0); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("queue_of_work", "void *w(void *a) { int job; while (read(p[0], &job, 4) == 4 && job) { x += job; write(q[1], &job, 4); } return 0; }
                int main(void) { pipe(p); pipe(q); go(w); int sum = 0; for (int i = 1; i <= 3; i++) write(p[1], &i, 4);
                  for (int i = 0; i < 3; i++) { int done; read(q[0], &done, 4); sum += done; } assert(x == 6 && sum == 6);
                  int stop = 0; write(p[1], &stop, 4); pthread_join(t, 0); return 0; }"),
            ("two_tokens", "void *v(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                void *w(void *a) { y = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe(p); both(v, w); read(p[0], b, 1); read(p[0], b, 1); assert(x == 1 && y == 1);
                  pthread_join(t, 0); pthread_join(u, 0); return 0; }"),
        ],
        &[0],
    );
}

#[test]
fn looking_at_descriptors_is_an_order() {
    tried(
        &[
            ("polls", "void *w(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe(p); go(w); struct pollfd f = {p[0], POLLIN, 0}; poll(&f, 1, -1); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("selects", "void *w(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { socketpair(AF_UNIX, SOCK_STREAM, 0, p); go(w); fd_set s; FD_ZERO(&s); FD_SET(p[0], &s);
                  select(p[0] + 1, &s, 0, 0, 0); assert(x == 1); read(p[0], b, 1); pthread_join(t, 0); return 0; }"),
            ("epolls", "void *w(void *a) { x = 1; eventfd_write(p[1], 1); return 0; }
                int main(void) { p[0] = p[1] = eventfd(0, 0); int e = epoll_create1(0); struct epoll_event v = {EPOLLIN};
                  epoll_ctl(e, EPOLL_CTL_ADD, p[0], &v); go(w); epoll_wait(e, &v, 1, -1); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("peeks", "void *w(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { socketpair(AF_UNIX, SOCK_STREAM, 0, p); go(w); recv(p[0], b, 1, MSG_PEEK); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("tries", "void *w(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe2(p, O_NONBLOCK); go(w); while (read(p[0], b, 1) != 1) sched_yield(); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("semaphore", "void *v(void *a) { x = 1; eventfd_write(p[0], 1); return 0; }
                void *w(void *a) { y = 1; eventfd_write(p[0], 1); return 0; }
                int main(void) { p[0] = eventfd(0, EFD_SEMAPHORE); both(v, w); uint64_t n; eventfd_read(p[0], &n); eventfd_read(p[0], &n);
                  assert(x == 1 && y == 1); pthread_join(t, 0); pthread_join(u, 0); return 0; }"),
        ],
        &[0],
    );
}

/// How often a thread looked, and whether it found anything, depends on the order, which is not varied.
#[test]
fn looks_of_which_something_is_left_are_said() {
    tried(
        &[
            ("found", "void *w(void *a) { unlink(\"flag\"); return 0; }
                int main(void) { close(creat(\"flag\", 0600)); go(w); int seen = 0;
                  for (int i = 0; i < 2; i++) seen += !access(\"flag\", F_OK); assert(seen == 2); pthread_join(t, 0); return 0; }"),
            ("tried", "void *w(void *a) { close(creat(\"flag\", 0600)); return 0; }
                int main(void) { unlink(\"flag\"); go(w); int tries = 0;
                  while (access(\"flag\", F_OK)) { tries++; usleep(10); } assert(tries < 2); pthread_join(t, 0); return 0; }"),
            ("read_in_vain", "void *w(void *a) { write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe2(p, O_NONBLOCK); go(w); int tries = 0;
                  while (read(p[0], b, 1) != 1) { tries++; sched_yield(); } assert(tries > 0); pthread_join(t, 0); return 0; }"),
            ("read_twice", "void *w(void *a) { write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe2(p, O_NONBLOCK); go(w); int n = 0;
                  for (int i = 0; i < 2; i++) n += read(p[0], b, 1) == 1; assert(n == 0); pthread_join(t, 0); return 0; }"),
            ("until_stopped", "static volatile int stop; void *w(void *a) { close(creat(\"flag\", 0600)); stop = 1; return 0; }
                int main(void) { unlink(\"flag\"); go(w); int gone; do gone = access(\"flag\", F_OK); while (gone && !stop);
                  assert(gone || !stop); pthread_join(t, 0); return 0; }"),
        ],
        &[10, 12],
    );
}

/// A thread that looks for what never comes waits for the world outside, and does not fill the disk.
#[test]
fn a_file_that_is_there_for_a_moment_only_is_missed() {
    let workshop = Workshop::new();
    let code = "void *w(void *a) { close(creat(\"flag\", 0600)); unlink(\"flag\"); return 0; }
        int main(void) { unlink(\"flag\"); go(w); while (access(\"flag\", F_OK)) usleep(10); pthread_join(t, 0); return 0; }";
    let program = workshop.build_text("moment", &format!("{HEAD}{code}"));
    workshop.test(&program, &["--run-limit", "1", "--time-limit", "20"], &[]).ends_with(12);
}

#[test]
fn files_and_signals_are_an_order() {
    tried(
        &[
            ("gone", "void *w(void *a) { x = 1; unlink(\"flag\"); return 0; }
                int main(void) { close(creat(\"flag\", 0600)); go(w); while (!access(\"flag\", F_OK)) usleep(1000); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("content", "void *w(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { p[1] = open(\"data\", O_CREAT | O_TRUNC | O_RDWR, 0600); go(w);
                  while (pread(p[1], b, 1, 0) != 1) usleep(1000); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("renamed", "void *w(void *a) { x = 1; close(open(\"tmp\", O_CREAT | O_WRONLY, 0600)); rename(\"tmp\", \"flag\"); return 0; }
                int main(void) { unlink(\"flag\"); go(w); while (access(\"flag\", F_OK)) usleep(1000); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("opened", "void *w(void *a) { x = 1; close(creat(\"flag\", 0600)); return 0; }
                int main(void) { unlink(\"flag\"); go(w); int f; while ((f = open(\"flag\", O_RDONLY)) < 0) usleep(1000);
                  assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("made", "void *w(void *a) { x = 1; mkdir(\"dir\", 0700); return 0; }
                int main(void) { rmdir(\"dir\"); go(w); struct stat s; while (stat(\"dir\", &s)) usleep(1000); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("sent_to_the_process", "sigset_t s; void *w(void *a) { x = 1; kill(getpid(), SIGUSR1); return 0; }
                int main(void) { sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0); go(w); int n;
                  sigwait(&s, &n); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("awaited", "sigset_t s; pthread_t m; void *w(void *a) { x = 1; pthread_kill(m, SIGUSR1); return 0; }
                int main(void) { m = pthread_self(); sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0);
                  go(w); siginfo_t i; sigwaitinfo(&s, &i); assert(x == 1); pthread_join(t, 0); return 0; }"),
        ],
        &[0],
    );
}

#[test]
fn what_the_order_does_not_forbid_is_found() {
    tried(
        &[
            ("too_late", "void *w(void *a) { write(p[1], \"a\", 1); x = 1; return 0; }
                int main(void) { pipe(p); go(w); read(p[0], b, 1); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("one_of_two", "void *v(void *a) { x = 1; write(p[1], \"a\", 1); return 0; }
                void *w(void *a) { y = 1; write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe(p); both(v, w); read(p[0], b, 1); int seen = x; read(p[0], b, 1); assert(seen);
                  pthread_join(t, 0); pthread_join(u, 0); return 0; }"),
            ("one_event_of_two", "void *v(void *a) { x = 1; eventfd_write(p[0], 1); return 0; }
                void *w(void *a) { y = 1; eventfd_write(p[0], 1); return 0; }
                int main(void) { p[0] = eventfd(0, EFD_SEMAPHORE); both(v, w); uint64_t n; eventfd_read(p[0], &n); int seen = x;
                  eventfd_read(p[0], &n); assert(seen); pthread_join(t, 0); pthread_join(u, 0); return 0; }"),
            ("part_of_it", "void *w(void *a) { write(p[1], \"a\", 1); x = 1; write(p[1], \"b\", 1); return 0; }
                int main(void) { pipe(p); go(w); read(p[0], b, 1); int seen = x; read(p[0], b, 1); assert(seen);
                  pthread_join(t, 0); return 0; }"),
            ("locked_out", "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
                void *w(void *a) { pthread_mutex_lock(&m); x = 1; pthread_mutex_unlock(&m); write(p[1], \"a\", 1); return 0; }
                int main(void) { pipe(p); go(w); sched_yield(); pthread_mutex_lock(&m); read(p[0], b, 1); pthread_mutex_unlock(&m);
                  pthread_join(t, 0); return 0; }"),
            ("before_the_look", "void *w(void *a) { close(creat(\"flag\", 0600)); assert(x == 1); return 0; }
                int main(void) { unlink(\"flag\"); go(w); x = 1; while (access(\"flag\", F_OK)) usleep(1000);
                  pthread_join(t, 0); return 0; }"),
            ("flag_too_early", "void *w(void *a) { close(creat(\"flag\", 0600)); x = 1; return 0; }
                int main(void) { unlink(\"flag\"); go(w); while (access(\"flag\", F_OK)) usleep(1000); assert(x == 1);
                  pthread_join(t, 0); return 0; }"),
            ("signal_too_early", "sigset_t s; pthread_t m; void *w(void *a) { pthread_kill(m, SIGUSR1); x = 1; return 0; }
                int main(void) { m = pthread_self(); sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0);
                  go(w); int n; sigwait(&s, &n); assert(x == 1); pthread_join(t, 0); return 0; }"),
        ],
        &[10],
    );
}
