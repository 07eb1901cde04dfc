//! Message queues, System V semaphores, locks of files: what they order is no bug, what they leave open
//! is found, and no run hangs in them. And what was not tried because a channel keeps its recorded order
//! is said.

use crate::common::Workshop;

const HEAD: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>
pthread_t t, u; int x, y, q; mqd_t m; char b[64]; struct msg { long k; char c[8]; };
static void go(void *(*f)(void *)) { pthread_create(&t, 0, f, 0); }
static void both(void *(*f)(void *), void *(*g)(void *)) { go(f); pthread_create(&u, 0, g, 0); }
static void joined(void) { pthread_join(t, 0); pthread_join(u, 0); }
static void set(int n) { q = semget(IPC_PRIVATE, n, 0600); assert(q >= 0); }
static void op(int n, int by) { struct sembuf s = {n, by, 0}; assert(!semop(q, &s, 1)); }
static void gone(void) { pthread_join(t, 0); semctl(q, 0, IPC_RMID); }
static void queue(void) { q = msgget(IPC_PRIVATE, 0600); assert(q >= 0); }
static void put(long k, const char *c) { struct msg g = {k, {c[0]}}; assert(!msgsnd(q, &g, 8, 0)); }
static void get(long k) { struct msg g; assert(msgrcv(q, &g, 8, k, 0) == 8); b[0] = g.c[0]; }
static void mq(int most) { struct mq_attr a = {.mq_maxmsg = most, .mq_msgsize = 8}; char n[32];
  sprintf(n, "/foretell-%d", getpid()); m = mq_open(n, O_CREAT | O_RDWR, 0600, &a); assert(m >= 0); mq_unlink(n); }
static int file(void) { return open("locked", O_CREAT | O_RDWR, 0600); }
"#;

/// A name and the code of a program.
type Case = (&'static str, &'static str);

#[track_caller]
fn tried(cases: &[Case], expected: i32, said: &str) {
    let workshop = Workshop::new();
    let mut wrong = Vec::new();
    for (name, code) in cases {
        let program = workshop.build_text(name, &format!("{HEAD}{code}"));
        let answer = workshop.test(&program, &["--time-limit", "300"], &[]);
        let unseen = answer.report["unseen"].to_string();
        if answer.code != Some(expected) || !unseen.contains(said) {
            wrong.push(format!("{name}: {:?} {unseen} {}", answer.code, answer.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// That it is full orders threads, too; who would wait for ever with another order is not looked for.
#[test]
fn that_a_queue_may_be_full_is_said() {
    tried(
        &[
            ("mq_full", "void *w(void *a) { for (int i = 0; i < 3; i++) mq_send(m, \"a\", 2, 0); assert(y == 1); return 0; }
                int main(void) { mq(2); go(w); y = 1; for (int i = 0; i < 3; i++) mq_receive(m, b, 8, 0); pthread_join(t, 0); return 0; }"),
        ],
        12,
        "",
    );
}

#[test]
fn what_messages_semaphores_and_locks_order_is_no_bug() {
    tried(
        &[
            ("mq", "void *w(void *a) { x = 1; mq_send(m, \"a\", 2, 0); return 0; }
                int main(void) { mq(4); go(w); mq_receive(m, b, 8, 0); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("mq_to_and_fro", "mqd_t n; void *w(void *a) { mq_receive(m, b, 8, 0); x++; mq_send(n, \"a\", 2, 0); return 0; }
                int main(void) { mq(4); n = m; mq(4); x = 1; go(w); mq_send(m, \"a\", 2, 0); mq_receive(n, b, 8, 0); assert(x == 2);
                  pthread_join(t, 0); return 0; }"),
            ("mq_priority", "void *w(void *a) { mq_send(m, \"a\", 2, 0); x = 1; mq_send(m, \"b\", 2, 5); return 0; }
                int main(void) { mq(4); go(w); pthread_join(t, 0); mq_receive(m, b, 8, 0); assert(b[0] == 'b' && x == 1); return 0; }"),
            ("mq_time_limit", "int main(void) { mq(4); struct timespec s = {0, 0}; assert(mq_timedreceive(m, b, 8, 0, &s) == -1 && errno == ETIMEDOUT);
                  mq_send(m, \"a\", 2, 0); assert(mq_timedreceive(m, b, 8, 0, &s) == 2); return 0; }"),
            ("msg", "void *w(void *a) { x = 1; put(1, \"a\"); return 0; }
                int main(void) { queue(); go(w); get(0); assert(x == 1); pthread_join(t, 0); msgctl(q, IPC_RMID, 0); return 0; }"),
            ("msg_types", "void *w(void *a) { get(1); x++; put(2, \"a\"); return 0; }
                int main(void) { queue(); go(w); x = 1; put(1, \"a\"); get(2); assert(x == 2); pthread_join(t, 0); msgctl(q, IPC_RMID, 0); return 0; }"),
            ("semop", "void *w(void *a) { x = 1; op(0, 1); return 0; }
                int main(void) { set(1); go(w); op(0, -1); assert(x == 1); gone(); return 0; }"),
            ("semop_as_lock", "void *w(void *a) { op(0, -1); x++; op(0, 1); return 0; }
                int main(void) { set(1); semctl(q, 0, SETVAL, 1); both(w, w); w(0); joined(); assert(x == 3); semctl(q, 0, IPC_RMID); return 0; }"),
            ("semop_by_two", "void *v(void *a) { x = 1; op(0, 1); return 0; } void *w(void *a) { y = 1; op(0, 1); return 0; }
                int main(void) { set(1); both(v, w); op(0, -2); assert(x == 1 && y == 1); joined(); semctl(q, 0, IPC_RMID); return 0; }"),
            ("semctl_sets", "void *w(void *a) { op(0, -1); assert(x == 1); return 0; }
                int main(void) { set(1); go(w); x = 1; semctl(q, 0, SETVAL, 1); gone(); return 0; }"),
            ("semop_in_time", "int main(void) { set(1); struct sembuf s = {0, -1, 0}; struct timespec l = {1, 0};
                  assert(semtimedop(q, &s, 1, &l) == -1 && errno == EAGAIN); semctl(q, 0, IPC_RMID); return 0; }"),
            ("process_locks", "void *w(void *a) { return 0; }
                int main(void) { go(w); int f = file(); struct flock l = {.l_type = F_WRLCK}; assert(!fcntl(f, F_SETLKW, &l));
                  assert(!lockf(f, F_LOCK, 0)); assert(!lockf(f, F_ULOCK, 0)); pthread_join(t, 0); return 0; }"),
        ],
        0,
        "",
    );
    // That it need not have waited is not asked.
    tried(
        &[("semop_to_zero", "void *w(void *a) { x = 1; op(0, -1); return 0; }
                int main(void) { set(1); semctl(q, 0, SETVAL, 1); go(w); op(0, 0); assert(x == 1); gone(); return 0; }")],
        12,
        "",
    );
}

#[test]
fn what_messages_semaphores_and_locks_leave_open_is_found() {
    tried(
        &[
            ("mq_too_late", "void *w(void *a) { mq_send(m, \"a\", 2, 0); x = 1; return 0; }
                int main(void) { mq(4); go(w); mq_receive(m, b, 8, 0); assert(x == 1); pthread_join(t, 0); return 0; }"),
            ("msg_of_one", "void *v(void *a) { x = 1; put(1, \"a\"); return 0; } void *w(void *a) { y = 1; put(1, \"a\"); return 0; }
                int main(void) { queue(); both(v, w); get(0); int s = x; get(0); assert(s); joined(); return 0; }"),
            ("semop_too_late", "void *w(void *a) { op(0, 1); x = 1; return 0; }
                int main(void) { set(1); go(w); op(0, -1); assert(x == 1); gone(); return 0; }"),
            ("semop_deadlock", "void *w(void *a) { op(1, -1); op(0, -1); op(0, 1); op(1, 1); return 0; }
                int main(void) { set(2); semctl(q, 0, SETVAL, 1); semctl(q, 1, SETVAL, 1); go(w);
                  op(0, -1); op(1, -1); op(1, 1); op(0, 1); gone(); return 0; }"),
            // Locks of the process do not keep its own threads out.
            ("fcntl_between_threads", "int f; void *w(void *a) { struct flock l = {.l_type = F_WRLCK}; fcntl(f, F_SETLKW, &l); int s = x; x = s + 1;
                  l.l_type = F_UNLCK; fcntl(f, F_SETLK, &l); return 0; }
                int main(void) { f = file(); both(w, w); joined(); assert(x == 2); return 0; }"),
            ("lockf_between_threads", "int f; void *w(void *a) { lockf(f, F_LOCK, 0); int s = x; x = s + 1; lockf(f, F_ULOCK, 0); return 0; }
                int main(void) { f = file(); both(w, w); joined(); assert(x == 2); return 0; }"),
        ],
        10,
        "",
    );
}

#[test]
fn an_order_that_was_kept_is_said() {
    tried(
        &[
            ("two_senders", "void *v(void *a) { write(q, \"a\", 1); return 0; } void *w(void *a) { write(q, \"b\", 1); return 0; }
                int main(void) { int p[2]; pipe(p); q = p[1]; both(v, w); read(p[0], b, 1); int c = b[0]; read(p[0], b, 1); assert(c == 'a'); joined(); return 0; }"),
            ("first_of_two", "void *v(void *a) { mq_send(m, \"a\", 2, 0); return 0; } void *w(void *a) { mq_send(m, \"b\", 2, 0); return 0; }
                int main(void) { mq(4); both(v, w); mq_receive(m, b, 8, 0); assert(b[0] == 'a'); joined(); return 0; }"),
            ("two_receivers", "int p[2]; void *v(void *a) { char c; read(p[0], &c, 1); assert(c == 'a'); return 0; } void *w(void *a) { char c; read(p[0], &c, 1); return 0; }
                int main(void) { pipe(p); both(v, w); write(p[1], \"a\", 1); write(p[1], \"b\", 1); joined(); return 0; }"),
            ("in_parts", "void *v(void *a) { write(q, \"a\", 1); write(q, \"b\", 1); return 0; }
                int main(void) { int p[2]; pipe(p); q = p[1]; go(v); int n = read(p[0], b, 10); assert(n == 2); pthread_join(t, 0); return 0; }"),
            ("tries_once", "void *v(void *a) { write(q, \"a\", 1); return 0; }
                int main(void) { int p[2]; pipe2(p, O_NONBLOCK); q = p[1]; go(v); assert(read(p[0], b, 10) != 1); pthread_join(t, 0); return 0; }"),
            ("finds_once", "void *v(void *a) { write(q, \"a\", 1); return 0; }
                int main(void) { int p[2]; pipe2(p, O_NONBLOCK); q = p[1]; go(v); sched_yield(); assert(read(p[0], b, 10) == 1); pthread_join(t, 0); return 0; }"),
            ("looks_once", "void *v(void *a) { close(creat(\"flag\", 0600)); return 0; }
                int main(void) { unlink(\"flag\"); go(v); assert(access(\"flag\", F_OK)); pthread_join(t, 0); return 0; }"),
            ("flock", "void *w(void *a) { int f = file(); flock(f, LOCK_EX); x++; flock(f, LOCK_UN); close(f); return 0; }
                int main(void) { both(w, w); joined(); assert(x == 2); return 0; }"),
            ("flock_until_closed", "void *w(void *a) { int f = file(); flock(f, LOCK_EX); x++; sched_yield(); x++; close(f); return 0; }
                int main(void) { both(w, w); joined(); assert(x == 4); return 0; }"),
            ("file_description_locks", "void *w(void *a) { int f = file(); struct flock l = {.l_type = F_WRLCK}; fcntl(f, F_OFD_SETLKW, &l); x++; sched_yield(); x++;
                  l.l_type = F_UNLCK; fcntl(f, F_OFD_SETLK, &l); close(f); return 0; }
                int main(void) { both(w, w); joined(); assert(x == 4); return 0; }"),
            ("several_operations", "void l(void) { struct sembuf s[2] = {{0, 0, 0}, {0, 1, 0}}; semop(q, s, 2); }
                void *w(void *a) { l(); x++; op(0, -1); return 0; }
                int main(void) { set(1); go(w); w(0); pthread_join(t, 0); assert(x == 2); semctl(q, 0, IPC_RMID); return 0; }"),
        ],
        12,
        "were tried in their recorded order only",
    );
}

#[test]
fn an_order_that_something_else_keeps_is_not_said() {
    tried(
        &[
            ("joined_between", "void *v(void *a) { write(q, \"a\", 1); return 0; } void *w(void *a) { write(q, \"b\", 1); return 0; }
                int main(void) { int p[2]; pipe(p); q = p[1]; go(v); pthread_join(t, 0); go(w); read(p[0], b, 1); assert(b[0] == 'a');
                  pthread_join(t, 0); return 0; }"),
            ("nobody_reads", "void *v(void *a) { write(q, \"a\", 1); return 0; } void *w(void *a) { write(q, \"b\", 1); return 0; }
                int main(void) { int p[2]; pipe(p); q = p[1]; both(v, w); joined(); return 0; }"),
            ("reads_all", "void *v(void *a) { write(q, \"a\", 1); write(q, \"b\", 1); close(q); return 0; }
                int main(void) { int p[2], n = 0, c; pipe(p); q = p[1]; go(v); while ((c = read(p[0], b, 10)) > 0) n += c; assert(n == 2); pthread_join(t, 0); return 0; }"),
            ("same_file", "void *w(void *a) { char c[8]; int f = open(\"/etc/hostname\", O_RDONLY); read(f, c, 8); close(f); return 0; }
                int main(void) { both(w, w); joined(); return 0; }"),
        ],
        0,
        "",
    );
}

/// Who waits under a lock for what only a thread can send that waits for the lock waits for ever: nobody outside the
/// program can send it.
#[test]
fn a_wait_for_a_channel_under_a_lock_is_a_deadlock() {
    let workshop = Workshop::new();
    let head = "pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER; int e;\n\
        #define L pthread_mutex_lock(&l)\n#define U pthread_mutex_unlock(&l)\n";
    let cases = [
        (
            "event",
            "void *w(void *a) { L; U; eventfd_write(e, 1); return 0; }
            void *v(void *a) { eventfd_t c; L; eventfd_read(e, &c); U; return 0; }
            int main(void) { e = eventfd(0, 0); both(w, v); joined(); return 0; }",
        ),
        (
            "message",
            "void *w(void *a) { L; U; mq_send(m, \"x\", 1, 0); return 0; }
            void *v(void *a) { L; mq_receive(m, b, 64, 0); U; return 0; }
            int main(void) { mq(4); both(w, v); joined(); return 0; }",
        ),
    ];
    for (name, code) in cases {
        let source = workshop.path().join(name).with_extension("c");
        std::fs::write(&source, format!("{HEAD}{head}{code}\n")).expect("a file");
        let answer = workshop.test(&source, &["--time-limit", "20"], &[]).ends_with(10);
        let [deadlock] = answer.confirmed("deadlock")[..] else { panic!("{:#}", answer.report) };
        let detail = deadlock["detail"].as_str().expect("a sentence");
        assert!(detail.contains(&format!("{name}.c:")), "{detail}");
        workshop.replays(&answer, &source, 2);
    }
}
