//! Failures of foretell itself. The C library is made to lie to it by a library in front: the n-th
//! thread cannot be started, or the clock cannot be read (which makes Rust's library panic), for many n,
//! so that foretell fails at many places. Whatever fails, the exit code is one of the table's, a panic is
//! reported with what was found before it, and a bug that was confirmed stays confirmed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{BANK, TORN, Workshop, finish, text};

/// Refuses the thread with the number in the environment; refuses to read the clock for the thread in which the
/// command is carried out, at the n-th call or once a file is there.
const REFUSES: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static atomic_int count, reads, failed;
static int does_the_work(void) {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return !strcmp(name, "command");
}
int clock_gettime(clockid_t clock, struct timespec *time) {
  const char *number = getenv("NO_CLOCK"), *file = getenv("NO_CLOCK_AFTER");
  if ((number || file) && does_the_work() &&
      !strcmp(program_invocation_short_name, "foretell")) {
    int now = ++reads;
    if ((number && now == atoi(number)) || (file && !access(file, F_OK) && !failed++)) {
      errno = EINVAL;
      return -1;
    }
  }
  return syscall(SYS_clock_gettime, clock, time);
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *p) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  const char *number = getenv("REFUSE");
  int from_here_on = number && number[0] == '+';
  if (number && !strcmp(program_invocation_short_name, "foretell")) {
    int now = ++count, wanted = atoi(number);
    if (from_here_on ? now >= wanted : now == wanted) return EAGAIN;
  }
  return real(t, a, f, p);
}
"#;

fn library(shop: &Workshop) -> PathBuf {
    let source = shop.file("refuses.c", REFUSES);
    let library = shop.path().join("librefuses.so");
    let mut compiler = Command::new("clang-22");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(finish(compiler).status.success());
    library
}

#[test]
fn a_thread_that_cannot_be_started_costs_no_finding() {
    let shop = Workshop::new();
    let library = library(&shop);
    let program = shop.build("torn", TORN);
    let mut confirmed = 0;
    // Whether it is one thread, or all from there on.
    for (sign, numbers) in [("", 1..=30), ("+", 1..=12)] {
        for number in numbers {
            let mut command = shop.foretell(&["test", "--jobs", "2", &program]);
            command.env("LD_PRELOAD", &library).env("REFUSE", format!("{sign}{number}"));
            let output = finish(command);
            let (said, error) = (text(&output.stdout), text(&output.stderr));
            let code = output.status.code();
            let about = format!("{sign}{number}: {code:?}\n{said}\n{error}");
            assert!(matches!(code, Some(0 | 1 | 2 | 10 | 11 | 12)), "{about}");
            assert_ne!(code, Some(0), "there is a bug: {about}");
            let found = said.contains("confirmed[") || error.contains("confirmed[");
            assert_eq!(code == Some(10), found, "{about}");
            if error.contains("internal error") {
                assert!(error.contains("please report it"), "{about}");
            }
            if code == Some(1) {
                assert!(error.contains("internal error"), "{about}");
            }
            if code == Some(2) {
                assert!(error.contains("foretell: "), "{about}");
            }
            confirmed += usize::from(code == Some(10));
            assert_eq!(shop.leftovers(), [] as [PathBuf; 0], "{about}");
        }
    }
    assert!(confirmed > 20, "most threads are not needed to confirm the bug: {confirmed}");
}

/// What a command with a fault said: standard output and error in one, and the exit code.
fn with_fault(
    shop: &Workshop,
    library: &Path,
    words: &[&str],
    fault: (&str, &str),
) -> (String, Option<i32>) {
    let mut command = shop.foretell(words);
    command.env("LD_PRELOAD", library).env(fault.0, fault.1).env("RUST_BACKTRACE", "0");
    let output = finish(command);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (said, output.status.code())
}

#[test]
fn a_panic_is_exit_code_1_with_what_was_found_and_where_to_report_it() {
    let shop = Workshop::new();
    let library = library(&shop);
    shop.file("bank.ft", BANK);
    let mut panics = 0;
    for number in 1..=40 {
        let fault = ("NO_CLOCK", &*number.to_string());
        let (said, code) = with_fault(&shop, &library, &["predict", "bank.ft"], fault);
        let failed = said.contains("internal error");
        assert_eq!(code, Some(if failed { 1 } else { 11 }), "{number}: {said}");
        assert!(said.contains("please report it to") || !failed, "{number}: {said}");
        panics += usize::from(failed && said.contains("found before the error"));
    }
    assert!(panics > 0, "something had been found before one of them");
}

#[test]
fn a_confirmed_bug_stays_one_when_foretell_fails_afterwards() {
    let shop = Workshop::new();
    let library = library(&shop);
    let program = shop.build("torn", TORN);
    // Schedules are written when the program has been tested, and before anything is printed.
    let schedules = shop.path().join("schedules").display().to_string();
    let words = ["test", "--schedules", &schedules, &program];
    let (said, code) = with_fault(&shop, &library, &words, ("NO_CLOCK_AFTER", &schedules));
    assert_eq!(code, Some(10), "{said}");
    assert!(said.contains("internal error") && said.contains("please report it to"), "{said}");
    assert!(said.contains("found before the error") && said.contains("confirmed["), "{said}");
    // Wherever it fails before.
    for number in 1..=40 {
        let words = ["test", "--jobs", "1", &program];
        let fault = ("NO_CLOCK", &*number.to_string());
        let (said, code) = with_fault(&shop, &library, &words, fault);
        let failed = said.contains("internal error");
        let confirmed = said.contains("confirmed[");
        let expected = if confirmed { Some(10) } else { Some(1) };
        assert_eq!(code, expected, "{number}: {said}");
        assert!(failed || confirmed, "{number}: {said}");
        assert_eq!(shop.leftovers(), [] as [PathBuf; 0], "{number}: {said}");
    }
}
