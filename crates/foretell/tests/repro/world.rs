//! What is outside the scheduler: timers, signals, other processes, time, calls that are not wrapped.
//!
//! No deadlock is confirmed that something outside would end, no run hangs without a word, and what
//! was not controlled is said with its cause, thread and place.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Answer, Workshop, source, tested};

/// The causes of the report, with their subjects.
fn causes(answer: &Answer) -> Vec<(String, String)> {
    let all = answer.report["trace"]["outside"].as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    all.iter().map(|one| (text(&one["cause"]), text(&one["subject"]))).collect()
}

#[track_caller]
fn assert_cause(answer: &Answer, cause: &str, subject: &str) {
    let causes = causes(answer);
    let said = causes.iter().any(|(c, s)| c == cause && s == subject);
    assert!(said, "{cause} {subject} is not in {causes:?}\n{:#}", answer.report);
}

#[track_caller]
fn assert_nothing_found(answer: &Answer) {
    assert!(answer.findings().is_empty(), "{:#}", answer.report);
}

#[test]
fn no_deadlock_is_confirmed_that_something_outside_ends() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/falsedl.c"), &["-O1", "-w"]);
    for (way, cause, subject) in [
        ("alarm", "signal", "SIGALRM"),
        ("shared", "shared-object", "a semaphore"),
        ("mutex", "shared-object", "a mutex"),
        ("aio", "aio", "aio_read"),
    ] {
        let answer = workshop.test(&program, &[], &[way]).ends_with(12);
        assert_nothing_found(&answer);
        assert_cause(&answer, cause, subject);
        assert_eq!(answer.report["statistics"]["recorded_end"], "exit 0", "{way}");
    }
}

#[test]
fn a_timer_calls_its_function_in_a_thread_of_the_program() {
    let answer = tested("world/othersync.c", &["-w"], &["timer"]).ends_with(12);
    assert_nothing_found(&answer);
    assert_cause(&answer, "timer", "timer_create");
}

#[test]
fn queues_and_semaphores_of_the_kernel_are_understood_and_assembler_is_named() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/othersync.c"), &["-O1", "-w"]);
    for way in ["mq", "semop"] {
        workshop.test(&program, &[], &[way]).ends_with(0);
    }
    let answer = workshop.test(&program, &["--run-limit", "20"], &["asm"]);
    // What assembler orders is not seen: an order that it rules out may be predicted, not confirmed.
    assert!(matches!(answer.code, Some(11 | 12)), "{:?}\n{}", answer.code, answer.stderr);
    assert_cause(&answer, "spinning", "");
    let recorded = &answer.report["trace"]["outside"][0];
    assert!(recorded["file"].as_str().is_some_and(|file| file.ends_with("othersync.c")));
    assert_eq!(answer.report["statistics"]["recorded_end"], "exit 0");
}

#[test]
pub fn a_thread_blocked_in_a_call_that_is_not_wrapped_loses_the_turn() {
    let workshop = Workshop::new();
    // The system call itself, behind libc's back: nobody wraps it.
    let program = workshop.build_text(
        "raw",
        r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
int files[2];
static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}
void *writer(void *_) { call(SYS_write, files[1], (long)"x", 1); return 0; }
int main(void) {
  pthread_t thread; char byte; pipe(files);
  pthread_create(&thread, 0, writer, 0);
  call(SYS_read, files[0], (long)&byte, 1);
  pthread_join(thread, 0); puts("ok"); return 0;
}
"#,
    );
    let answer = workshop.test(&program, &[], &[]).ends_with(12);
    assert_cause(&answer, "blocked-call", "read");
    let outside = &answer.report["trace"]["outside"][0];
    assert_eq!(outside["thread"], "main");
    assert!(outside["line"].as_u64().is_some_and(|line| line > 5), "{outside}");
}

#[test]
fn a_hang_that_is_no_deadlock_names_what_it_waited_for() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "server",
        r#"
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
sem_t quit;
void stop(int signal) { sem_post(&quit); }
int main(void) { sem_init(&quit, 0, 0); signal(SIGTERM, stop); while (sem_wait(&quit)) {} puts("bye"); return 0; }
"#,
    );
    let answer = workshop.test(&program, &["--run-limit", "10"], &[]).ends_with(12);
    assert_nothing_found(&answer);
    assert_cause(&answer, "handler", "SIGTERM");
    assert_eq!(answer.report["trace"]["outside"][0]["awaited"], true);
}

#[test]
fn a_deadlock_is_still_a_deadlock_beside_handlers_and_ended_children() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "deadlock",
        r#"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t both;
void handler(int signal) {}
void *other(void *_) { pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return 0; }
int main(void) {
  signal(SIGUSR1, handler);
  if (!fork()) _exit(0);
  wait(0);
  pthread_t thread; pthread_barrier_init(&both, 0, 2);
  pthread_create(&thread, 0, other, 0);
  pthread_mutex_lock(&a); pthread_barrier_wait(&both); pthread_mutex_lock(&b);
  pthread_join(thread, 0); return 0;
}
"#,
    );
    let answer = workshop.test(&program, &[], &[]).ends_with(10);
    assert_eq!(answer.confirmed("deadlock").len(), 1, "{:#}", answer.report);
}

#[test]
fn a_sleeper_beside_spinning_threads_is_woken_at_once() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/busytime.c"), &["-O1", "-w"]);
    let trace = workshop.path().join("busy.ftrace");
    let output = workshop
        .foretell()
        .args(["record", "--schedule", "round-robin:10000", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .arg("6")
        .output()
        .expect("foretell runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done 1\n");
    let bytes = std::fs::metadata(&trace).expect("a trace").len();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

#[test]
fn a_recording_ends_at_its_size_limit() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "endless",
        "#include <stdlib.h>\nvolatile int *x; int main(void) { x = malloc(4); for (;;) ++*x; }",
    );
    let output = workshop
        .foretell()
        .args(["--format", "json", "record", "--size-limit", "2", "-o", "end.ftrace", "--"])
        .arg(&program)
        .output()
        .expect("foretell runs");
    assert_eq!(output.status.code(), Some(12), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("limit of 2097152 bytes"), "{said}");
    let bytes = std::fs::metadata(workshop.path().join("end.ftrace")).expect("a file").len();
    assert!(bytes < 64 << 20, "{bytes} bytes");
}

#[test]
fn housekeeping_runs_as_often_as_its_timer_says() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/idle.c"), &["-O1", "-w"]);
    let mut child = workshop
        .foretell()
        .args(["record", "-o", "idle.ftrace", "--"])
        .arg(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("foretell runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::sleep(std::time::Duration::from_secs(2));
    stdin.write_all(b"hello").expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ticks: u32 = text.trim().rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    // A slow machine gives fewer, or takes longer to end; a thousand times as many is the fault.
    assert!(ticks < 200, "{text}");
}

#[test]
fn a_program_that_is_replaced_is_not_seen_to_the_end() {
    let answer = tested("world/execs.c", &[], &[]).ends_with(12);
    assert_cause(&answer, "exec", "/proc/self/exe");
}

#[test]
fn asynchronous_cancellation_and_many_threads_are_understood() {
    tested("world/asynccancel.c", &[], &[]).ends_with(0);
    let workshop = Workshop::new();
    let text = std::fs::read_to_string(source("world/pe.c")).expect("a source");
    let many = text.replace("t[4]", "t[26]").replace("i<4", "i<26");
    let program = workshop.build_text("pe", &many);
    workshop.test(&program, &[], &[]).ends_with(0);
}

#[test]
fn a_thread_that_is_cancelled_anywhere_ends_in_a_loop_without_calls() {
    let workshop = Workshop::new();
    let program = workshop.build_text(
        "loops",
        r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile unsigned n;
static void *stores(void *a) { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); for (unsigned k = 0;;) { k = k * 3 + 1; n = k; } return a; }
static void *computes(void *a) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); for (unsigned k = 1;;) { __asm__ volatile("" : "+r"(k)); k = k * 3 + 1; } return a; }
int main(int count, char **arguments) {
  pthread_t thread; void *result; pthread_create(&thread, 0, count > 1 ? computes : stores, 0);
  usleep(1000); pthread_cancel(thread); pthread_join(thread, &result); puts(result == PTHREAD_CANCELED ? "cancelled" : "returned"); return 0; }
"#,
    );
    for words in [&[][..], &["x"]] {
        let mut command = workshop.foretell();
        command
            .args(["record", "--time-limit", "120", "-o", "c.ftrace", "--"])
            .arg(&program)
            .args(words);
        let output = command.output().expect("foretell runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "cancelled\n", "{said}");
        assert!(said.contains("cancelled asynchronously"), "{said}");
    }
}

#[test]
pub fn openmp_is_seen() {
    // What three threads count without a lock is lost.
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/omp.c"), &["-O1", "-fopenmp"]);
    workshop.test(&program, &["--runs", "20"], &[]).ends_with(10);
}

#[test]
pub fn openmp_of_a_library_runs_and_is_said() {
    let library = std::path::Path::new("/usr/lib/llvm-22/lib/libomp.so");
    if !library.exists() {
        eprintln!("SKIPPED: libomp-22-dev is not installed");
        return;
    }
    let answer = tested("world/omp.c", &["-fopenmp=libomp"], &[]).ends_with(12);
    assert_nothing_found(&answer);
    assert_cause(&answer, "library", "OpenMP");
}
