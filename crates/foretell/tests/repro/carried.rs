//! Ways on which a value that is there for a moment gets to a decision: through memory that moves, jumps, calls by
//! pointer, results of functions that mainly do something else, and states that no memory of the program has.

use crate::common::{Answer, Workshop};

const HEAD: &str = "#define _GNU_SOURCE\n#include <assert.h>\n#include <ctype.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <locale.h>\n\
    #include <malloc.h>\n#include <pthread.h>\n#include <setjmp.h>\n#include <signal.h>\n#include <stdatomic.h>\n#include <stdint.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <mqueue.h>\n#include <poll.h>\n#include <sys/epoll.h>\n#include <sys/eventfd.h>\n#include <sys/mman.h>\n#include <sys/msg.h>\n\
    #include <sys/resource.h>\n#include <sys/socket.h>\n#include <sys/syscall.h>\n#include <sys/uio.h>\n\
    #include <time.h>\n#include <unistd.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    static void two(void *(*f)(void *), void *(*g)(void *)) { pthread_t a, b;\n\
    pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
    pthread_join(a, 0); pthread_join(b, 0); }\n\
    #define THREAD(f) static void *f(void *_)\n";

fn tested(workshop: &Workshop, name: &str, code: &str) -> Answer {
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, format!("{HEAD}{code}\n")).expect("a file");
    workshop.test(&source, &[], &[])
}

/// `g` makes `bad` of the number `v`, which is 1 for a moment, by this code.
fn of_number(code: &str) -> String {
    format!(
        "static atomic_int x; static jmp_buf j; static sigjmp_buf k; static int (*by)(const char *) = atoi;\n\
         static long (*number)(const char *, char **, int) = strtol;\n\
         static int (*print)(char *, size_t, const char *, ...) = snprintf;\n\
         static void *(*resize)(void *, size_t) = realloc; static int (*magnitude)(int) = abs;\n\
         THREAD(f) {{ atomic_store(&x, 1); atomic_store(&x, 0); return 0; }}\n\
         THREAD(g) {{ int v = atomic_load(&x), bad = 0; {code} assert(!bad); return 0; }}\n\
         int main(void) {{ two(f, g); return 0; }}"
    )
}

/// `g` makes `bad` of the text `s`, which is "abcdefghijkl" for a moment and else "abc", by this code.
fn of_text(code: &str) -> String {
    format!(
        "static char s[32] = \"abc\"; static size_t (*length)(const char *) = strlen;\n\
         static int (*compare)(const char *, const char *) = strcmp; static char *(*copy)(char *, const char *) = strcpy;\n\
         static void put(const char *t) {{ pthread_mutex_lock(&m); strcpy(s, t); pthread_mutex_unlock(&m); }}\n\
         THREAD(f) {{ put(\"abcdefghijkl\"); put(\"abc\"); return 0; }}\n\
         THREAD(g) {{ int bad = 0; char t[32] = \"\"; (void)t; pthread_mutex_lock(&m); {code} pthread_mutex_unlock(&m);\n\
         if (bad) exit(1); return 0; }}\n\
         int main(void) {{ two(f, g); return 0; }}"
    )
}

#[test]
fn a_number_is_followed_through_memory_that_moves_jumps_and_pointers() {
    let workshop = Workshop::new();
    for (name, code) in [
        ("grown", "int *p = malloc(4); *p = v; p = realloc(p, 4000); bad = *p; free(p);"),
        ("shrunk", "int *p = malloc(4000); *p = v; p = realloc(p, 4); bad = *p; free(p);"),
        ("in_place", "int *p = malloc(8); *p = v; p = realloc(p, 12); bad = *p; free(p);"),
        (
            "again",
            "int *p = 0; for (int i = 1; i < 5; i++) { p = realloc(p, i * 64); p[16 * i - 16] = v; } bad = p[32]; free(p);",
        ),
        ("array", "int *p = malloc(4); *p = v; p = reallocarray(p, 100, 4); bad = *p; free(p);"),
        (
            "resized_by_pointer",
            "int *p = malloc(4); *p = v; p = resize(p, 400); bad = *p; free(p);",
        ),
        ("jumped", "int r = setjmp(j); if (!r) longjmp(j, v + 1); bad = r != 1;"),
        (
            "jumped_with_mask",
            "int r = sigsetjmp(k, 1); if (!r) siglongjmp(k, v + 1); bad = r != 1;",
        ),
        ("by_pointer", "char t[8] = {(char)('0' + v)}; bad = by(t);"),
        ("number_by_pointer", "char t[8] = {(char)('0' + v)}; bad = number(t, 0, 10) != 0;"),
        ("printed_by_pointer", "char t[8]; print(t, 8, \"%d\", v); bad = t[0] != '0';"),
        ("magnitude_by_pointer", "bad = magnitude(-v);"),
    ] {
        let answer = tested(&workshop, name, &of_number(code)).ends_with(10);
        assert!(!answer.findings().is_empty(), "{name}");
    }
}

#[test]
fn a_text_is_followed_into_results_and_copies() {
    let workshop = Workshop::new();
    for (name, code) in [
        ("printed", "bad = printf(\"%s\\n\", s) != 4;"),
        ("put_out", "bad = fprintf(stderr, \"%s\\n\", s) != 4;"),
        ("length_by_pointer", "bad = length(s) != 3;"),
        ("compared_by_pointer", "bad = compare(s, \"abc\") != 0;"),
        ("copied_by_pointer", "copy(t, s); bad = t[3] != 0;"),
        ("copied", "strcpy(t, s); bad = t[3] != 0;"),
        ("duplicated", "char *p = strdup(s); bad = p[3] != 0; free(p);"),
        ("overrun", "char *p = malloc(8); strcpy(p, s); free(p);"),
        ("overrun_by_cat", "char *p = calloc(8, 1); strcat(p, s); free(p);"),
        ("overrun_by_format", "char *p = malloc(8); sprintf(p, \"%s\", s); free(p);"),
    ] {
        tested(&workshop, name, &of_text(code)).ends_with(10);
    }
}

#[test]
fn a_number_that_goes_through_the_system_counts() {
    let workshop = Workshop::new();
    let pipe = "int p[2], r = 0; pipe(p);";
    let queue = format!("/foretell-{}", std::process::id());
    let seconds =
        "struct timespec s = {5 * v, 0}, then, now; clock_gettime(CLOCK_MONOTONIC, &then);";
    let passed = "clock_gettime(CLOCK_MONOTONIC, &now); bad = now.tv_sec - then.tv_sec >= 5;";
    for (name, code) in [
        ("vectors", format!("{pipe} struct iovec a = {{&v, 4}}, b = {{&r, 4}}; writev(p[1], &a, 1); readv(p[0], &b, 1); bad = r;")),
        ("by_number", format!("{pipe} syscall(SYS_write, p[1], &v, 4); syscall(SYS_read, p[0], &r, 4); bad = r;")),
        (
            "message",
            "int s[2], r = 0; socketpair(AF_UNIX, SOCK_DGRAM, 0, s); struct iovec a = {&v, 4}, b = {&r, 4};\n\
             struct msghdr h = {0}; h.msg_iov = &a; h.msg_iovlen = 1; sendmsg(s[0], &h, 0); h.msg_iov = &b;\n\
             recvmsg(s[1], &h, 0); bad = r;"
                .into(),
        ),
        (
            "queue",
            format!(
                "struct mq_attr a = {{.mq_maxmsg = 2, .mq_msgsize = 4}}; int r = 0;\n\
                 mqd_t q = mq_open(\"{queue}\", O_CREAT | O_RDWR, 0600, &a); mq_send(q, (char *)&v, 4, 0);\n\
                 mq_receive(q, (char *)&r, 4, 0); mq_close(q); mq_unlink(\"{queue}\"); bad = r;"
            ),
        ),
        (
            "old_queue",
            "int q = msgget(IPC_PRIVATE, 0600); struct { long kind; int v; } a = {1, v}, b; msgsnd(q, &a, 4, 0);\n\
             msgrcv(q, &b, 4, 1, 0); msgctl(q, IPC_RMID, 0); bad = b.v;"
                .into(),
        ),
        (
            "watched",
            format!(
                "{pipe} write(p[1], \"x\", 1); int e = epoll_create1(0); struct epoll_event a = {{EPOLLIN, {{.u32 = v}}}}, b;\n\
                 epoll_ctl(e, EPOLL_CTL_ADD, p[0], &a); epoll_wait(e, &b, 1, -1); bad = b.data.u32;"
            ),
        ),
        (
            "polled",
            format!(
                "{pipe} write(p[1], \"x\", 1); struct pollfd a = {{p[0], v ? POLLIN : POLLPRI, 0}}; bad = poll(&a, 1, 0);"
            ),
        ),
        ("slept", format!("{seconds} nanosleep(&s, 0); {passed}")),
        ("slept_by_clock", format!("{seconds} clock_nanosleep(CLOCK_MONOTONIC, 0, &s, 0); {passed}")),
        (
            "waited",
            format!(
                "static pthread_cond_t c = PTHREAD_COND_INITIALIZER; {seconds} struct timespec u; clock_gettime(CLOCK_REALTIME, &u);\n\
                 u.tv_sec += s.tv_sec; pthread_mutex_lock(&m); pthread_cond_timedwait(&c, &m, &u); pthread_mutex_unlock(&m); {passed}"
            ),
        ),
        ("seeded", "unsigned a = v, b = 1; bad = rand_r(&a) == rand_r(&b);".into()),
    ] {
        tested(&workshop, name, &of_number(&code)).ends_with(10);
    }
    for (name, code) in [
        (
            "reopened",
            "FILE *o = fopen(\"kept\", \"w\"); fprintf(o, \"%d\", v); fclose(o); o = fopen(\"kept\", \"r\"); bad = fgetc(o) != '0'; fclose(o);",
        ),
        (
            "rewound",
            "FILE *o = tmpfile(); fputc('0' + v, o); rewind(o); bad = fgetc(o) != '0'; fclose(o);",
        ),
        (
            "options",
            "char o[3] = {'-', (char)('a' + v), 0}; char *a[] = {\"p\", o, 0}; optind = 1; bad = getopt(2, a, \"ab\") != 'a';",
        ),
    ] {
        let answer = tested(&workshop, name, &of_number(code));
        assert!(
            matches!(answer.code, Some(10 | 12)),
            "{name}: {:?} {:#}",
            answer.code,
            answer.report
        );
    }
}

#[test]
fn an_event_counter_gives_all_that_there_is() {
    let workshop = Workshop::new();
    let counter = |flags: &str, must: &str| {
        format!(
            "static int e; THREAD(f) {{ eventfd_write(e, 1); return 0; }}\n\
             int main(void) {{ e = eventfd(0, {flags}); pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, f, 0);\n\
             eventfd_t v; eventfd_read(e, &v); pthread_join(a, 0); pthread_join(b, 0); assert({must}); return 0; }}"
        )
    };
    for (name, flags, must, codes) in [
        ("one", "0", "v == 1", &[10][..]),
        ("both", "0", "v == 2", &[10]),
        ("any", "0", "v == 1 || v == 2", &[0, 12]),
        ("semaphore", "EFD_SEMAPHORE", "v == 1", &[0]),
    ] {
        let answer = tested(&workshop, name, &counter(flags, must));
        assert!(codes.contains(&answer.code.expect("a code")), "{name}: {:#}", answer.report);
    }
}

#[test]
fn which_thread_a_barrier_names_is_varied() {
    let workshop = Workshop::new();
    let barrier = |code: &str| {
        format!(
            "static pthread_barrier_t b; static int who; static int serial(void) {{ \
             return pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD; }}\n{code}\n\
             int main(void) {{ pthread_barrier_init(&b, 0, 2); two(f, g); MUST; return 0; }}"
        )
    };
    let named = "THREAD(f) { if (serial()) who = 1; return 0; } THREAD(g) { if (serial()) who = 2; return 0; }";
    let rounds = "static atomic_int n; THREAD(f) { n += serial(); n += 2 * serial(); return 0; }\n\
                  THREAD(g) { n += serial(); n += 2 * serial(); return 0; }";
    for (name, threads, must, code) in [
        ("first", named, "assert(who == 2)", 10),
        ("second", named, "assert(who == 1)", 10),
        ("either", named, "assert(who == 1 || who == 2)", 0),
        ("rounds", rounds, "assert(n == 3)", 0),
        ("rounds_wrong", rounds, "assert(n != 3)", 10),
    ] {
        tested(&workshop, name, &barrier(threads).replace("MUST", must)).ends_with(code);
    }
}

/// What is not varied is said: 12 where the failure is not found.
#[test]
pub fn states_of_the_process_are_found_or_said() {
    let workshop = Workshop::new();
    let pending = "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0); \
                   pthread_t b; pthread_create(&b, 0, g, 0);";
    let signals = |look: &str| {
        format!(
            "THREAD(g) {{ kill(getpid(), SIGUSR1); return 0; }}\n\
             int main(void) {{ {pending} {look} pthread_join(b, 0); return 0; }}"
        )
    };
    let mapped = |look: &str| {
        format!(
            "static int fd; static _Atomic int *p, *q; THREAD(f) {{ *p = 1; *p = 0; return 0; }}\n\
             THREAD(g) {{ {look} return 0; }}\n\
             int main(void) {{ fd = memfd_create(\"x\", 0); ftruncate(fd, 4096); p = mmap(0, 4096, 3, MAP_SHARED, fd, 0);\n\
             q = mmap(0, 4096, 3, MAP_SHARED, fd, 0); two(f, g); return 0; }}"
        )
    };
    let process = |before: &str, f: &str, g: &str, after: &str| {
        format!(
            "static int fd[2], n; static pthread_t t; THREAD(f) {{ {f} return 0; }} THREAD(g) {{ {g} return 0; }}\n\
             int main(void) {{ pipe2(fd, O_NONBLOCK); n = open(\"/dev/null\", O_WRONLY); t = pthread_self(); {before} \
             two(f, g); {after} return 0; }}"
        )
    };
    let limits = "struct rlimit r; getrlimit(RLIMIT_NOFILE, &r); rlim_t o = r.rlim_cur; r.rlim_cur = 3; \
                  setrlimit(RLIMIT_NOFILE, &r); r.rlim_cur = o; setrlimit(RLIMIT_NOFILE, &r);";
    for (name, code) in [
        ("pending", signals("sigset_t p; sigpending(&p); assert(!sigismember(&p, SIGUSR1));")),
        ("timed", signals("struct timespec t = {0, 0}; assert(sigtimedwait(&s, 0, &t) < 0);")),
        (
            "two_signals",
            "THREAD(f) { kill(getpid(), SIGUSR2); return 0; } THREAD(g) { kill(getpid(), SIGUSR1); return 0; }\n\
             int main(void) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); sigaddset(&s, SIGUSR2);\n\
             pthread_sigmask(SIG_BLOCK, &s, 0); pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);\n\
             int i; sigwait(&s, &i); assert(i == SIGUSR2); sigwait(&s, &i); pthread_join(a, 0); pthread_join(b, 0); return 0; }"
                .into(),
        ),
        (
            "cancelled",
            "THREAD(g) { pthread_testcancel(); return 0; } int main(void) { pthread_t b; pthread_create(&b, 0, g, 0);\n\
             pthread_cancel(b); void *r; pthread_join(b, &r); assert(r == PTHREAD_CANCELED); return 0; }"
                .into(),
        ),
        ("mapped_twice", mapped("if (*q) exit(1);")),
        ("mapped_and_read", mapped("int v = 0; pread(fd, &v, 4, 0); if (v) exit(1);")),
        (
            "flags",
            process("", "fcntl(n, F_SETFL, O_APPEND); fcntl(n, F_SETFL, 0);", "assert(!(fcntl(n, F_GETFL) & O_APPEND));", ""),
        ),
        (
            "redirected",
            process("", "int s = dup(n); dup2(fd[1], n); dup2(s, n);", "write(n, \"x\", 1);", "char c; assert(read(fd[0], &c, 1) < 0);"),
        ),
        ("limited", process("", limits, "assert(open(\"/dev/null\", O_RDONLY) >= 0);", "")),
        (
            "named",
            process(
                "",
                "pthread_setname_np(t, \"bad\"); pthread_setname_np(t, \"good\");",
                "char b[16]; pthread_getname_np(t, b, 16); assert(strcmp(b, \"bad\"));",
                "",
            ),
        ),
        ("locale", process("", "setlocale(LC_ALL, \"C.UTF-8\"); setlocale(LC_ALL, \"C\");", "assert(MB_CUR_MAX == 1);", "")),
        ("priority", process("", "nice(3);", "assert(nice(0) == 0);", "")),
        (
            "handler",
            "static atomic_int k; static void h(int s) { k = 1; } static void i(int s) { k = 2; }\n\
             THREAD(f) { signal(SIGUSR1, i); return 0; } THREAD(g) { raise(SIGUSR1); return 0; }\n\
             int main(void) { signal(SIGUSR1, h); two(g, f); assert(k == 1); return 0; }"
                .into(),
        ),
        (
            "key",
            "static pthread_key_t k; static atomic_int n; static void d(void *p) { n++; }\n\
             THREAD(f) { pthread_setspecific(k, &k); return 0; } int main(void) { pthread_key_create(&k, d); pthread_t t;\n\
             pthread_create(&t, 0, f, 0); pthread_key_delete(k); pthread_join(t, 0); assert(n == 0); return 0; }"
                .into(),
        ),
        (
            "writers_first",
            "static pthread_rwlock_t l; THREAD(f) { pthread_rwlock_rdlock(&l); pthread_rwlock_rdlock(&l);\n\
             pthread_rwlock_unlock(&l); pthread_rwlock_unlock(&l); return 0; }\n\
             THREAD(g) { pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l); return 0; }\n\
             int main(void) { pthread_rwlockattr_t a; pthread_rwlockattr_init(&a);\n\
             pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);\n\
             pthread_rwlock_init(&l, &a); two(f, g); return 0; }"
                .into(),
        ),
        ("group", process("", "setpgid(0, 0);", "assert(getpgrp() != getpid());", "")),
    ] {
        let answer = tested(&workshop, name, &code);
        assert!(matches!(answer.code, Some(10 | 12)), "{name}: {:?} {:#}", answer.code, answer.report);
    }
}

#[test]
fn what_the_owner_of_a_robust_mutex_left_is_varied() {
    let workshop = Workshop::new();
    let robust = |f: &str, g: &str| {
        format!(
            "static pthread_mutex_t r; static int x; THREAD(f) {{ {f} return 0; }} THREAD(g) {{ {g} return 0; }}\n\
             int main(void) {{ pthread_mutexattr_t a; pthread_mutexattr_init(&a);\n\
             pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); pthread_mutex_init(&r, &a); two(g, f); return 0; }}"
        )
    };
    let dies = "pthread_mutex_lock(&r); x++;";
    let told = "int e = pthread_mutex_lock(&r);";
    for (name, f, g, codes) in [
        (
            "dead",
            dies,
            format!("{told} assert(e != EOWNERDEAD); pthread_mutex_unlock(&r);"),
            &[10][..],
        ),
        (
            "alive",
            dies,
            format!("{told} assert(e == EOWNERDEAD); pthread_mutex_unlock(&r);"),
            &[10][..],
        ),
        (
            "mended",
            dies,
            format!(
                "{told} if (e == EOWNERDEAD) {{ pthread_mutex_consistent(&r); x--; }} assert(x == 0); pthread_mutex_unlock(&r);"
            ),
            &[0, 12],
        ),
        (
            "lost",
            dies,
            format!(
                "{told} pthread_mutex_unlock(&r); int again = pthread_mutex_lock(&r); assert(again != ENOTRECOVERABLE);"
            ),
            &[10],
        ),
        (
            "handed_on",
            dies,
            format!(
                "{told} if (e == EOWNERDEAD) pthread_mutex_consistent(&r); x++; pthread_mutex_unlock(&r);"
            ),
            &[0, 12],
        ),
        ("tried", dies, "assert(pthread_mutex_trylock(&r) != EOWNERDEAD);".into(), &[10][..]),
    ] {
        let answer = tested(&workshop, name, &robust(f, &g));
        let code = answer.code.expect("a code");
        assert!(codes.contains(&code), "{name}: {code} {:#}", answer.report);
    }
}

#[test]
fn correct_programs_with_the_same_functions_are_covered() {
    let workshop = Workshop::new();
    for (name, code) in [
        (
            "growing_list",
            "static int *v, n; THREAD(f) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m);\n\
             v = realloc(v, (n + 1) * sizeof *v); v[n++] = i; pthread_mutex_unlock(&m); } return 0; }\n\
             int main(void) { two(f, f); int s = 0; for (int i = 0; i < n; i++) s += v[i]; assert(s == 6); free(v); return 0; }",
        ),
        (
            "usable",
            "THREAD(f) { char *p = malloc(10); memset(p, 1, malloc_usable_size(p)); free(p); return 0; }\n\
             int main(void) { two(f, f); return 0; }",
        ),
        (
            "stream_lock",
            "static int n; THREAD(f) { flockfile(stdout); n++; funlockfile(stdout); return 0; }\n\
             int main(void) { two(f, f); assert(n == 2); return 0; }",
        ),
        (
            "own_jumps",
            "static int n; THREAD(f) { jmp_buf j; volatile int k = 0; if (setjmp(j) < 2) { k++; longjmp(j, k + 1); }\n\
             pthread_mutex_lock(&m); n += k; pthread_mutex_unlock(&m); return 0; }\n\
             int main(void) { two(f, f); assert(n == 2); return 0; }",
        ),
        (
            "pure_functions",
            "static int n; THREAD(f) { int v = abs(-2) + toupper('a') - 'A'; pthread_mutex_lock(&m); n += v;\n\
             pthread_mutex_unlock(&m); return 0; } int main(void) { two(f, f); assert(n == 4); return 0; }",
        ),
        (
            "named_threads",
            "static int n; THREAD(f) { pthread_setname_np(pthread_self(), \"worker\"); pthread_mutex_lock(&m); n++;\n\
             pthread_mutex_unlock(&m); return 0; } int main(void) { two(f, f); assert(n == 2); return 0; }",
        ),
        (
            "mark_by_lock",
            "static atomic_int n; THREAD(f) { if (pthread_mutex_trylock(&m) == 0) n++; return 0; }\n\
             int main(void) { two(f, f); assert(n == 1); return 0; }",
        ),
        (
            "called_by_pointer",
            "static int n; static int (*by)(const char *) = atoi; THREAD(f) { int v = by(\"7\"); pthread_mutex_lock(&m);\n\
             n += v; pthread_mutex_unlock(&m); return 0; } int main(void) { two(f, f); assert(n == 14); return 0; }",
        ),
    ] {
        tested(&workshop, name, code).ends_with(0);
    }
}

#[test]
fn what_the_cxx_library_makes_of_a_text_counts() {
    let workshop = Workshop::new();
    let head = "#include <cassert>\n#include <functional>\n#include <iomanip>\n#include <mutex>\n#include <sstream>\n#include <stdexcept>\n#include <string>\n#include <thread>\n\
                std::mutex m; std::string s = \"0\";\n\
                void put(const std::string &t) { std::lock_guard l(m); s = t; }\n";
    for (name, code) in [
        (
            "converted",
            "int get() { std::lock_guard l(m); return std::stoi(s); }\n\
             void f() { int v = get(); put(std::to_string(v + 1)); }\n\
             int main() { std::thread a(f), b(f); a.join(); b.join(); assert(get() == 2); }",
        ),
        (
            "put_together",
            "int main() { std::thread a([] { put(\"1\"); put(\"0\"); }), b([] { std::ostringstream o;\n\
             { std::lock_guard l(m); o << s; } assert(o.str() == \"0\"); }); a.join(); b.join(); }",
        ),
        (
            "widened",
            "int main() { std::thread a([] { put(\"1\"); put(\"0\"); }), b([] { std::ostringstream o; int w;\n\
             { std::lock_guard l(m); w = s[0] - '0'; } o << std::setw(w + 1) << \"\"; assert(o.str().size() == 1); }); a.join(); b.join(); }",
        ),
        (
            "thrown",
            "int main() { std::thread a([] { put(\"1\"); put(\"0\"); }), b([] { std::string t; { std::lock_guard l(m); t = s; }\n\
             try { throw std::runtime_error(t); } catch (std::exception &e) { assert(e.what()[0] == '0'); } }); a.join(); b.join(); }",
        ),
        (
            "hashed",
            "int main() { auto h = std::hash<std::string>()(s); std::thread a([] { put(\"1\"); put(\"0\"); });\n\
             std::thread b([h] { std::lock_guard l(m); assert(std::hash<std::string>()(s) == h); }); a.join(); b.join(); }",
        ),
    ] {
        let source = workshop.path().join(name).with_extension("cpp");
        std::fs::write(&source, format!("{head}{code}\n")).expect("a file");
        workshop.test(&source, &[], &[]).ends_with(10);
    }
}

/// `std::lock` holds some of the mutexes for a moment; who only tries one of them then may notice that.
#[test]
fn mutexes_that_are_taken_together_are_one_path() {
    let workshop = Workshop::new();
    let head = "#include <cassert>\n#include <mutex>\n#include <thread>\nstd::mutex a, b, c; int x, y; bool missed;\n";
    for (name, code, expected) in [
        (
            "both",
            "void f() { std::scoped_lock l(a, b); x++; y++; } void g() { std::scoped_lock l(b, a); x++; y++; }\n\
             int main() { std::thread s(f), t(g); s.join(); t.join(); assert(x == 2 && y == 2); }",
            &[0][..],
        ),
        (
            "three",
            "void f() { std::scoped_lock l(a, b, c); x++; } void g() { std::lock(c, a, b); x++; a.unlock(); b.unlock(); c.unlock(); }\n\
             int main() { std::thread s(f), t(g); s.join(); t.join(); assert(x == 2); }",
            &[0],
        ),
        (
            "beside_one",
            "void f() { std::scoped_lock l(a, b); x++; } void g() { std::lock_guard k(b); std::lock_guard l(a); x++; }\n\
             int main() { std::thread s(f), t(g); s.join(); t.join(); assert(x == 2); }",
            &[0],
        ),
        (
            "torn",
            "int get() { std::scoped_lock l(a, b); return x; }\n\
             void put(int v) { std::unique_lock p(b, std::defer_lock), q(a, std::defer_lock); std::lock(p, q); x = v; }\n\
             void f() { int v = get(); put(v + 1); }\n\
             int main() { std::thread s(f), t(f); s.join(); t.join(); assert(x == 2); }",
            &[10],
        ),
        (
            "tried",
            "void f() { std::scoped_lock l(a, b); x++; }\n\
             void g() { std::lock_guard l(b); if (a.try_lock()) { x++; a.unlock(); } else missed = true; }\n\
             int main() { std::thread s(f), t(g); s.join(); t.join(); assert(!missed); }",
            &[10, 12],
        ),
    ] {
        let source = workshop.path().join(name).with_extension("cpp");
        std::fs::write(&source, format!("{head}{code}\n")).expect("a file");
        let answer = workshop.test(&source, &[], &[]);
        let code = answer.code.expect("an exit code");
        assert!(expected.contains(&code), "{name}: {code} {:#}", answer.report);
    }
}
