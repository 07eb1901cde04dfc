//! `--as-written`: what the optimiser would remove is still there to be scheduled, at every level of
//! optimisation, and values are those that the source stores.

use std::process::Command;

use serde_json::Value;

use crate::common::{Workshop, answer};

/// A static pointer that is only ever null or one address: an optimiser makes it a Boolean, and the
/// dereference one of a variable that is always there.
const NULL_POINTER: &str = r#"
#include <pthread.h>
#include <stdio.h>
struct script { int length; };
static struct script one = {3};
static struct script *current;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int length;
static void *load(void *unused) {
  pthread_mutex_lock(&m);
  current = &one;
  pthread_mutex_unlock(&m);
  return unused;
}
static void *run(void *unused) {
  pthread_mutex_lock(&m);
  length = current->length;
  pthread_mutex_unlock(&m);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, load, 0);
  pthread_create(&b, 0, run, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  printf("%d\n", length);
}
"#;

/// A function pointer that is set late: an optimiser calls the one function that it can be.
const LATE_FUNCTION: &str = r#"
#include <pthread.h>
#include <stdio.h>
static int seen;
static void note(void) { seen++; }
static void (*handler)(void);
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *install(void *unused) {
  pthread_mutex_lock(&m);
  handler = note;
  pthread_mutex_unlock(&m);
  return unused;
}
static void *call(void *unused) {
  pthread_mutex_lock(&m);
  handler();
  pthread_mutex_unlock(&m);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, install, 0);
  pthread_create(&b, 0, call, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  printf("%d\n", seen);
}
"#;

/// A flag of two values: an optimiser stores one bit.
const FLAG: &str = r#"
#include <assert.h>
#include <pthread.h>
static int parsed;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *parse(void *unused) {
  pthread_mutex_lock(&m);
  parsed = 5;
  pthread_mutex_unlock(&m);
  return unused;
}
static void *use(void *unused) {
  pthread_mutex_lock(&m);
  int seen = parsed;
  pthread_mutex_unlock(&m);
  assert(seen == 5);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, parse, 0);
  pthread_create(&b, 0, use, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"#;

#[track_caller]
fn crashes_at_every_level(name: &str, code: &str) {
    let workshop = Workshop::new();
    let source = workshop.path().join(name).with_extension("c");
    std::fs::write(&source, code).expect("a file");
    for level in ["-O0", "-O1", "-O2"] {
        let program = workshop.build(&source, &["--as-written", level]);
        let answer = workshop.test(&program, &[], &[]).ends_with(10);
        assert!(!answer.confirmed("crash").is_empty(), "{level}: {:#}", answer.report);
    }
}

#[test]
fn a_null_pointer_that_an_optimiser_removes_is_found() {
    crashes_at_every_level("script", NULL_POINTER);
}

#[test]
fn a_call_of_a_function_that_is_not_set_yet_is_found() {
    crashes_at_every_level("handler", LATE_FUNCTION);
}

#[test]
fn a_source_file_is_tested_as_written() {
    let workshop = Workshop::new();
    for (name, code) in [("script.c", NULL_POINTER), ("handler.c", LATE_FUNCTION)] {
        std::fs::write(workshop.path().join(name), code).expect("a file");
        let mut command = workshop.foretell();
        let answer = tested(command.args(["--format", "json", "test", name]));
        assert!(!answer.confirmed("crash").is_empty(), "{name}: {:#}", answer.report);
    }
}

#[test]
fn values_are_those_of_the_source() {
    let workshop = Workshop::new();
    std::fs::write(workshop.path().join("flag.c"), FLAG).expect("a file");
    let mut command = workshop.foretell();
    let answer = tested(command.args(["--format", "json", "test", "flag.c"]));
    let written = |finding: &Value| -> Vec<Value> {
        let steps = finding["steps"].as_array().into_iter().flatten();
        let of_flag = steps.filter(|step| step["variable"] == "parsed" && step["op"] == "write");
        of_flag.map(|step| step["value"].clone()).collect()
    };
    let all: Vec<Value> = answer.findings().iter().flat_map(written).collect();
    assert!(all.iter().all(|value| value == 5), "{all:?} in {:#}", answer.report);
    let text = workshop.foretell().args(["test", "flag.c"]).output().expect("foretell runs");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("read parsed = 0 (was 5)"), "{text}");
}

#[track_caller]
fn tested(command: &mut Command) -> crate::common::Answer {
    answer(&command.output().expect("foretell runs")).ends_with(10)
}

/// Two loads whose values meet; `w` only writes `one`, on a line of its own.
const TWO_LOADS: &str = r#"
#include <pthread.h>
static int which, one, two, seen;
static void *reads(void *unused) {
  int value;
  if (which)
    value = two;
  else
    value = one;
  seen = value;
  return unused;
}
static void *writes(void *unused) {
  one = 1;
  return unused;
}
int main(int count, char **words) {
  (void)words;
  which = count > 1;
  pthread_t a, b;
  pthread_create(&a, 0, reads, 0);
  pthread_create(&b, 0, writes, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"#;

#[test]
fn an_access_keeps_its_line() {
    let workshop = Workshop::new();
    let source = workshop.path().join("two.c");
    std::fs::write(&source, TWO_LOADS).expect("a file");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let program = workshop.build(&source, &["--as-written", level]);
        let answer = workshop.test(&program, &[], &[]).ends_with(10);
        let races = answer.confirmed("race");
        let lines = |race: &Value| -> Vec<u64> {
            let accesses = race["accesses"].as_array().into_iter().flatten();
            accesses.filter_map(|access| access["line"].as_u64()).collect()
        };
        let all: Vec<Vec<u64>> = races.iter().map(|race| lines(race)).collect();
        assert!(!all.is_empty(), "{level}: {:#}", answer.report);
        assert!(all.iter().flatten().all(|line| [9, 14].contains(line)), "{level}: {all:?}");
    }
}

/// A static atomic that is stored once: an optimiser knows its value wherever it is not null.
const ATOMIC_POINTER: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
static int value = 3;
static _Atomic(int *) pointer;
static void *sets(void *unused) { atomic_store(&pointer, &value); return unused; }
static void *uses(void *unused) { int *p = atomic_load(&pointer); *p = 4; return unused; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, sets, 0);
  pthread_create(&b, 0, uses, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"#;

/// Both threads take the lock by Peterson's algorithm; clang alone removes `turn`.
const PETERSON: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int wants[2], turn;
static int inside;
static void *enters(void *number) {
  int me = number != 0;
  atomic_store(&wants[me], 1);
  atomic_store(&turn, !me);
  while (atomic_load(&wants[!me]) && atomic_load(&turn) == !me)
    ;
  inside++;
  assert(inside == 1);
  inside--;
  atomic_store(&wants[me], 0);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, enters, 0);
  pthread_create(&b, 0, enters, (void *)1);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"#;

#[test]
fn atomic_accesses_are_kept() {
    crashes_at_every_level("atomic", ATOMIC_POINTER);
    let workshop = Workshop::new();
    let source = workshop.path().join("peterson.c");
    std::fs::write(&source, PETERSON).expect("a file");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let program = workshop.build(&source, &["--as-written", level]);
        let answer = workshop.test(&program, &[], &[]);
        assert!(answer.code != Some(10), "{level}: {:#}", answer.report);
    }
}

#[test]
fn the_same_source_is_the_same_program() {
    let workshop = Workshop::new();
    let source = workshop.path().join("many.cpp");
    let code = r#"
#include <map>
#include <mutex>
#include <string>
#include <thread>
static std::map<std::string, int> counts;
static std::mutex mutex;
static void add(const std::string &name) {
  std::lock_guard<std::mutex> hold(mutex);
  counts[name + "!"]++;
}
int main() {
  std::thread one([] { add("a"); }), other([] { add("b"); });
  one.join();
  other.join();
}
"#;
    std::fs::write(&source, code).expect("a file");
    let build = || {
        let program = workshop.build(&source, &["--as-written", "-O1", "-std=c++20"]);
        std::fs::read(program).expect("the program")
    };
    let first = build();
    assert!((0..3).all(|_| build() == first), "builds of one source differ");
}
