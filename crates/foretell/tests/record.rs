//! `foretell record` as a user meets it: its ways, its options, and what it survives.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("record-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Compiles a program with `foretell cc`; `None`, and a word, where that cannot be.
    fn build(&self, name: &str, source: &str) -> Option<String> {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).unwrap();
        let built = foretell(&["cc", "-O1", "-g", &file, "-o", &program, "-pthread"]);
        if stderr(&built).contains("foretell cc: error") {
            // The plugin and the runtime are libraries that `cargo test -p foretell` does not build.
            assert!(std::env::var_os("CI").is_none(), "CI builds all: {}", stderr(&built));
            eprintln!("SKIPPED: {}", stderr(&built));
            return None;
        }
        assert!(built.status.success(), "{}", stderr(&built));
        Some(program)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
    command.args(arguments);
    command
}

fn foretell(arguments: &[&str]) -> Output {
    command(arguments).output().expect("foretell runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}\n{}", stdout(output), stderr(output));
    })
}

/// Threads whose order shows in the result, and inputs that differ from run to run.
const ORDERED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long mixed;
static void *worker(void *argument) {
  for (int i = 0; i < 200; i++) {
    pthread_mutex_lock(&lock);
    mixed = mixed * 31 + (unsigned long)argument;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}
int main(void) {
  pthread_t threads[3];
  for (long i = 0; i < 3; i++)
    pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%lu %d %ld\n", mixed, (int)getpid(), now.tv_nsec);
  return 3;
}
"#;

#[test]
fn a_run_of_the_plain_program_is_followed_by_the_instrumented_one() {
    let scratch = Scratch::new("replay");
    let Some(instrumented) = scratch.build("ordered", ORDERED) else { return };
    let plain = scratch.path("plain");
    let built = Command::new("clang-22")
        .args(["-O1", &scratch.path("ordered.c"), "-o", &plain, "-pthread"])
        .output()
        .expect("foretell cc found it");
    assert!(built.status.success(), "{}", stderr(&built));
    let (log, trace) = (scratch.path("run.sync"), scratch.path("run.ftrace"));

    let logged = foretell(&["record", "--sync-only", "-o", &log, "--", &plain]);
    assert_eq!(logged.status.code(), Some(3), "{}", stderr(&logged));
    assert!(stderr(&logged).contains("of 4 threads"), "{}", stderr(&logged));

    let followed = foretell(&["record", "--replay", &log, "-o", &trace, "--", &instrumented]);
    assert_eq!(followed.status.code(), Some(3), "{}", stderr(&followed));
    assert_eq!(stdout(&followed), stdout(&logged), "the same order, the same inputs");
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));
    let info = stdout(&foretell(&["trace", "info", &trace]));
    assert!(info.contains("read") && info.contains("write"), "{info}");

    let object =
        json(&foretell(&["--format", "json", "record", "--sync-only", "-o", &log, "--", &plain]));
    assert_eq!(object["log"]["threads"], 4, "{object}");
    assert_eq!(object["end"]["status"], 3, "{object}");

    let refused = foretell(&["record", "--replay", &trace, "-o", &log, "--", &instrumented]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("is no log"), "{}", stderr(&refused));
}

#[test]
fn the_schedule_is_chosen_and_a_seed_gives_the_same_run_again() {
    let scratch = Scratch::new("schedule");
    let Some(program) = scratch.build("ordered", ORDERED) else { return };
    let run = |schedule: &str| {
        let trace = scratch.path("run.ftrace");
        let recorded = foretell(&["record", "--schedule", schedule, "-o", &trace, "--", &program]);
        assert_eq!(recorded.status.code(), Some(3), "{}", stderr(&recorded));
        let order = stdout(&recorded).split(' ').next().unwrap().to_owned();
        (order, stdout(&foretell(&["trace", "info", &trace])))
    };
    assert_eq!(run("random:7"), run("random:7"));
    assert_ne!(run("random:7").0, run("random:8").0);
    assert_eq!(run("round-robin"), run("round-robin"));
    run("os");
    for wrong in ["random:x", "os:1", "fair"] {
        let refused = foretell(&["record", "--schedule", wrong, "--", &program]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("random[:SEED"), "{}", stderr(&refused));
    }
}

#[test]
fn json_goes_to_standard_output_and_the_program_s_output_to_standard_error() {
    let scratch = Scratch::new("json");
    let Some(program) = scratch.build("ordered", ORDERED) else { return };
    let trace = scratch.path("run.ftrace");
    let record = |flags: &[&str]| {
        let mut words = vec!["--format", "json", "record", "-o", &trace];
        words.extend(flags);
        words.extend(["--", &program]);
        foretell(&words)
    };
    let symbolic = record(&[]);
    let object = json(&symbolic);
    assert_eq!(object["version"], 1);
    assert_eq!(object["trace"]["symbolic"], true, "{object}");
    assert_eq!(object["trace"]["threads"], 4, "{object}");
    assert_eq!(object["end"]["kind"], "exit", "{object}");
    assert!(stderr(&symbolic).split(' ').count() == 3, "{}", stderr(&symbolic));
    let terms = |trace: &str| {
        let info = stdout(&foretell(&["trace", "info", trace]));
        let line = info.lines().find(|line| line.contains("symbolic terms")).map(str::to_owned);
        line.and_then(|line| line.split(' ').next_back()?.parse::<u64>().ok()).unwrap_or(0)
    };
    assert!(terms(&trace) > 0);

    let concrete = json(&record(&["--concrete"]));
    assert_eq!(concrete["trace"]["symbolic"], false, "{concrete}");
    assert_eq!(terms(&trace), 0);

    let nothing = foretell(&["record", "--symbolic", "-o", &trace, "--", "true"]);
    assert_eq!(nothing.status.code(), Some(12), "{}", stderr(&nothing));
    assert!(stderr(&nothing).contains("foretell cc"), "{}", stderr(&nothing));
}

/// More events than the trace may have bytes, and a word at the end. With a word after the number,
/// the program waits for its standard input when it has come far.
const MANY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned values[1024];
int main(int count, char **words) {
  unsigned seed = 1;
  long rounds = count > 1 ? atol(words[1]) : 2000000;
  for (long i = 0; rounds < 0 || i < rounds; i++) {
    seed = seed * 1103515245u + 12345u;
    values[seed >> 22] = seed;
    if (i == 1500000) {
      puts("far");
      fflush(stdout);
    }
    if (i == 1700000 && count > 2)
      getchar();
  }
  puts("done");
  return 0;
}
"#;

#[test]
fn a_full_disk_costs_the_last_chunk_and_is_said() {
    let scratch = Scratch::new("full");
    let Some(program) = scratch.build("many", MANY) else { return };
    for form in [&[][..], &["--compact"]] {
        a_full_disk_is_survived(&scratch, &program, form);
    }
}

fn a_full_disk_is_survived(scratch: &Scratch, program: &str, form: &[&str]) {
    let trace = scratch.path("run.ftrace");
    let words = [&["record", "-o", &trace], form, &["--", program]].concat();
    let mut limited = command(&words);
    const LIMIT: u64 = 5 << 20; // room for the shared memory, not for the trace
    // SAFETY: one system call.
    unsafe {
        limited.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let recorded = limited.output().expect("foretell runs");
    assert_eq!(stdout(&recorded), "far\ndone\n", "the program does not notice");
    assert_eq!(recorded.status.code(), Some(12), "{}", stderr(&recorded));
    assert!(stderr(&recorded).contains("is not complete"), "{}", stderr(&recorded));
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));
    let text = stdout(&valid);
    assert!(text.contains("not seen: events after number"), "{text}");
    let bytes = std::fs::metadata(&trace).unwrap().len();
    assert!(bytes > LIMIT - (3 << 19), "no more than the last chunks are given up: {bytes}");
}

#[test]
fn a_killed_recorder_leaves_what_it_had_written_and_the_program_goes_on() {
    let scratch = Scratch::new("killed");
    let Some(program) = scratch.build("many", MANY) else { return };
    for (name, form) in [("log", &[][..]), ("trace", &["--compact"])] {
        a_killed_recorder_is_survived(&Scratch::new(&format!("killed-{name}")), &program, form);
    }
}

fn a_killed_recorder_is_survived(scratch: &Scratch, program: &str, form: &[&str]) {
    let trace = scratch.path("run.ftrace");
    let words = [&["record", "-o", &trace], form, &["--", program, "2200000", "wait"]].concat();
    let mut recorder = command(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("foretell runs");
    let mut output = std::io::BufReader::new(recorder.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line, "far\n");
    // It cannot be over before the recorder is killed: the program waits for the end of its input.
    let input = recorder.stdin.take();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    drop(input);
    line.clear();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line, "done\n", "the program goes on without its recorder");
    assert!(!Path::new(&trace).exists(), "no partial file under the final name");
    let left = std::fs::read_dir(&scratch.0)
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "partial"))
        .expect("the partial file stays");
    let valid = foretell(&["trace", "validate", &left.display().to_string()]);
    assert_eq!(valid.status.code(), Some(0), "{}{}", stdout(&valid), stderr(&valid));
    assert!(stdout(&valid).contains("not seen: "), "{}", stdout(&valid));
    let events: u64 = stdout(&valid)
        .split_once(" events, valid")
        .and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok())
        .expect("the number of events");
    assert!(events > 100_000, "what was in whole chunks is there: {events}");
}

/// A torn update, as in the examples.
const TORN: &str = r#"
#include <assert.h>
#include <pthread.h>
static int balance = 100;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *deposit(void *amount) {
  pthread_mutex_lock(&lock);
  int seen = balance;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  balance = seen + (int)(long)amount;
  pthread_mutex_unlock(&lock);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, deposit, (void *)10);
  pthread_create(&b, 0, deposit, (void *)20);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(balance == 130);
  return 0;
}
"#;

#[test]
fn a_log_is_good_wherever_a_trace_is() {
    let scratch = Scratch::new("log");
    let Some(program) = scratch.build("torn", TORN) else { return };
    let (log, trace) = (scratch.path("log.ftrace"), scratch.path("trace.ftrace"));
    for (file, form) in [(&log, &[][..]), (&trace, &["--compact"])] {
        let mut words = vec!["--format", "json", "record", "--schedule", "round-robin", "-o", file];
        words.extend(form);
        words.extend(["--", &program]);
        let recorded = foretell(&words);
        let object = json(&recorded);
        let format = if form.is_empty() { "log" } else { "binary" };
        assert_eq!(object["trace"]["format"], format, "{object}");
        let bytes = std::fs::metadata(file).unwrap().len();
        assert_eq!(object["trace"]["bytes"], bytes, "{object}");
    }
    std::fs::remove_file(&program).unwrap();
    let schedules = scratch.path("schedules");
    for words in [
        &["trace", "info"][..],
        &["trace", "cat"],
        &["trace", "validate"],
        &["predict", "--schedules", &schedules],
        &["explain"],
        &["fix"],
    ] {
        let of = |file: &str| {
            let output = foretell(&[words, &[file]].concat());
            let said = stdout(&output).replace(file, "FILE");
            (said.replace("log format", "binary format"), output.status.code())
        };
        assert_eq!(of(&log), of(&trace), "{words:?}");
        assert!(!of(&log).0.is_empty(), "{words:?}");
    }
    let found = foretell(&["predict", "--schedules", &schedules, &log]);
    assert_eq!(found.status.code(), Some(11), "{}", stdout(&found));

    let converted = scratch.path("converted.ftrace");
    let done = foretell(&["trace", "convert", &log, "-o", &converted]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(std::fs::read(&converted).unwrap(), std::fs::read(&trace).unwrap());
    let refused = foretell(&["report", &log]);
    assert!(stderr(&refused).contains("this is a trace"), "{}", stderr(&refused));

    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    for words in [&["predict"][..], &["trace", "info"], &["trace", "convert", "-o", &converted]] {
        let refused = foretell(&[words, &[&log]].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(stderr(&refused).contains("the log is damaged"), "{}", stderr(&refused));
    }
    assert_eq!(std::fs::read(&converted).unwrap(), std::fs::read(&trace).unwrap(), "untouched");
}

#[test]
fn a_run_that_cannot_go_on_is_told_with_the_names_of_its_locks() {
    let scratch = Scratch::new("stuck");
    let source = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t known = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
  pthread_mutex_t *made = malloc(sizeof *made);
  pthread_mutex_init(made, NULL);
  pthread_mutex_lock(&known);
  pthread_mutex_lock(made);
  pthread_mutex_lock(made);
  return 0;
}
"#;
    let Some(program) = scratch.build("stuck", source) else { return };
    let trace = scratch.path("run.ftrace");
    let said = |form: &[&str]| {
        let output = foretell(&[&["record", "-o", &trace], form, &["--", &program]].concat());
        assert_eq!(output.status.code(), Some(12), "{}", stderr(&output));
        (stderr(&output), stdout(&foretell(&["trace", "validate", &trace])))
    };
    let (log, compact) = (said(&[]), said(&["--compact"]));
    assert_eq!(log, compact);
    assert!(log.0.contains("the program cannot go on"), "{}", log.0);
    assert!(!log.0.contains("0x"), "the block has a name: {}", log.0);
}

#[test]
fn a_killed_program_and_its_children_cost_no_event() {
    let scratch = Scratch::new("children");
    let source = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int shared;
static void *worker(void *argument) { shared = 42; return argument; }
int main(int count, char **words) {
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
  pthread_join(thread, NULL);
  if (count > 1 && !strcmp(words[1], "kill")) kill(getpid(), SIGKILL);
  pid_t child = fork();
  if (child == 0) {
    execlp("sh", "sh", "-c", "echo child; exit 4", NULL);
    _exit(9);
  }
  int status;
  waitpid(child, &status, 0);
  shared = WEXITSTATUS(status);
  return 0;
}
"#;
    let Some(program) = scratch.build("children", source) else { return };
    let trace = scratch.path("run.ftrace");
    let killed = foretell(&["record", "-o", &trace, "--", &program, "kill"]);
    assert_eq!(killed.status.code(), Some(128 + 9), "{}", stderr(&killed));
    let valid = stdout(&foretell(&["trace", "validate", &trace]));
    assert!(valid.contains("valid") && valid.contains("signal 9"), "{valid}");
    let text = stdout(&foretell(&["trace", "cat", &trace]));
    assert!(text.contains("= 42"), "what came before the kill is there:\n{text}");

    let forked = foretell(&["record", "-o", &trace, "--", &program]);
    assert_eq!(forked.status.code(), Some(0), "{}", stderr(&forked));
    assert_eq!(stdout(&forked), "child\n");
    let valid = stdout(&foretell(&["trace", "validate", &trace]));
    assert!(
        valid.contains("process that was not recorded"),
        "what children do is not seen, and said: {valid}"
    );
    assert!(stdout(&foretell(&["trace", "cat", &trace])).contains("= 4 "), "the parent goes on");
}

/// Two threads sift heaps of their own; `sift` is that of `bench/programs/heapsort.c`.
const HEAPS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
enum { LENGTH = 64 };
static inline void sift(int *heap, int at, int length) {
  for (int child; (child = 2 * at + 1) < length; at = child) {
    if (child + 1 < length && heap[child + 1] > heap[child])
      child++;
    if (heap[at] >= heap[child])
      return;
    int moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
  }
}
static void *worker(void *nothing) {
  int *heap = malloc(LENGTH * sizeof *heap);
  for (int i = 0; i < LENGTH; i++)
    heap[i] = i * 37 % LENGTH;
  for (int i = LENGTH / 2; i-- > 0;)
    sift(heap, i, LENGTH);
  free(heap);
  return nothing;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, worker, 0);
  pthread_create(&two, 0, worker, 0);
  pthread_join(one, 0);
  pthread_join(two, 0);
  return 0;
}
"#;

#[test]
fn indices_are_no_expressions_once_an_access_told_them() {
    let scratch = Scratch::new("heaps");
    let Some(program) = scratch.build("heaps", HEAPS) else { return };
    let trace = scratch.path("run.ftrace");
    let recorded = foretell(&["record", "--schedule", "round-robin", "-o", &trace, "--", &program]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    // Also says that every expression has the value that was recorded beside it.
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));

    let text = stdout(&foretell(&["trace", "cat", &trace]));
    let in_sift: Vec<&str> = text.lines().filter(|line| line.ends_with(" sift")).collect();
    let count = |what: &str| in_sift.iter().filter(|line| line.contains(what)).count();
    // Each level compares its number with the larger child, whose address depends on a choice, and
    // goes on or not. From there on it is known which child that was.
    let (levels, with_address) = (count("heaps.c:9:21 "), count(" at ("));
    assert!(levels > 60, "{text}");
    assert_eq!(count(" branch "), levels, "{text}");
    assert!(with_address > 60 && with_address <= levels, "{text}");
    let doubled = in_sift.iter().find(|line| line.contains("bvshl") || line.contains("%"));
    assert_eq!(doubled, None, "no index remembers the level above");
}

/// The index is used only where `wanted` is set, which it is not in the run.
const UNUSED_INDEX: &str = r#"
#include <assert.h>
#include <pthread.h>
static volatile int chosen, wanted, table[8];
static void *writer(void *nothing) {
  chosen = 5;
  chosen = 0;
  return nothing;
}
static void *reader(void *nothing) {
  int k = chosen;
  if (wanted)
    table[k] = 1;
  assert(2 * k + 1 < 8);
  return nothing;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, writer, 0);
  pthread_create(&two, 0, reader, 0);
  pthread_join(one, 0);
  pthread_join(two, 0);
  return 0;
}
"#;

#[test]
fn an_access_on_another_way_takes_no_expression_away() {
    let scratch = Scratch::new("unused");
    let Some(program) = scratch.build("unused", UNUSED_INDEX) else { return };
    let trace = scratch.path("run.ftrace");
    let recorded = foretell(&["record", "--schedule", "round-robin", "-o", &trace, "--", &program]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));
    let schedules = scratch.path("schedules");
    let predicted = foretell(&["predict", &trace, "--format", "json", "--schedules", &schedules]);
    let report = json(&predicted);
    let findings = report["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| finding["kind"] == "assertion"), "{report}");
}

/// Indices of all kinds; each is used once, so that none is known before.
const INDEXED: &str = r#"
static volatile int negative = -2, flag = 7;
static volatile unsigned far = 3;
static volatile long wide = 1;
static volatile signed char narrow = 2;
static volatile int table[8];
static volatile char bytes[8];
static volatile struct { int pad; short cells[8]; } rows[4];
int main(void) {
  table[4 + negative] = 1;
  table[far] = 2;
  table[wide] = 3;
  table[narrow] = 4;
  bytes[flag > 5] = 5;
  rows[1].cells[far] = 6;
  rows[far].cells[narrow] = 7;
  return 0;
}
"#;

#[test]
fn addresses_have_the_value_of_their_expression_whatever_the_index() {
    let scratch = Scratch::new("indexed");
    let Some(program) = scratch.build("indexed", INDEXED) else { return };
    let trace = scratch.path("run.ftrace");
    let recorded = foretell(&["record", "-o", &trace, "--", &program]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));
    let text = stdout(&foretell(&["trace", "cat", &trace]));
    let addresses: Vec<&str> =
        text.lines().filter_map(|line| line.split(" at (bvadd").nth(1)).collect();
    assert_eq!(addresses.len(), 7, "{text}");
    let parts = [
        "((_ sign_extend 32) ",
        "((_ zero_extend 32) ",
        "(bvmul #x0000000000000004 r",
        "((_ sign_extend 56) ",
        "(ite (bvslt ",
        "((_ zero_extend 32) ",
        "((_ sign_extend 56) ",
    ];
    for (address, part) in addresses.into_iter().zip(parts) {
        assert!(address.contains(part), "{part} in {address}");
    }
}

/// Records a program and says what the trace lacks; every read must have found what was written last,
/// and every expression must have its value.
fn recorded_well(program: &str, trace: &str) -> String {
    let recorded = foretell(&["record", "-o", trace, "--", program]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let valid = foretell(&["trace", "validate", trace]);
    assert_eq!(valid.status.code(), Some(0), "{}{}", stdout(&valid), stderr(&valid));
    stdout(&foretell(&["trace", "cat", trace]))
}

/// The same lines access memory of every width near and far, and values that need one word or two.
const WIDTHS: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
enum { FAR = 1 << 21, ROUNDS = 500 };
static char *memory;
static uint64_t sum;
#define ROUND(type, value) { \
  volatile type *place = (volatile type *)(memory + far + near); \
  *place = (type)(value); \
  sum += (uint64_t)*place; \
}
static void *worker(void *nothing) {
  for (uint64_t i = 0; i < ROUNDS; i++) {
    uint64_t far = i * 7919 % 8 * FAR, near = i % 64 * 8;
    ROUND(uint8_t, i) ROUND(int16_t, -i) ROUND(uint32_t, i * 0x9e3779b9u)
    ROUND(int64_t, -(int64_t)i) ROUND(uintptr_t, memory + i)
  }
  return nothing;
}
int main(void) {
  pthread_t thread;
  memory = calloc(9, FAR);
  pthread_create(&thread, 0, worker, 0);
  pthread_join(thread, 0);
  return sum == 0;
}
"#;

#[test]
fn accesses_of_every_width_near_and_far_are_what_they_were() {
    let scratch = Scratch::new("widths");
    let Some(program) = scratch.build("widths", WIDTHS) else { return };
    let text = recorded_well(&program, &scratch.path("run.ftrace"));
    let worker: Vec<&str> = text.lines().filter(|line| line.ends_with(" worker")).collect();
    let count = |what: &str| worker.iter().filter(|line| line.contains(what)).count();
    // Each round writes five places and reads them again, besides `memory` and `sum`.
    let heap = |what: &str| {
        worker.iter().filter(|line| line.contains(what) && line.contains("heap@")).count()
    };
    assert_eq!((heap(" write "), heap(" read ")), (2500, 2500), "{} events", worker.len());
    assert!(count(" write ") >= 3000, "also `sum`");
    assert!(!text.contains("wrote unseen"), "{text}");
}

/// A handler that accesses memory, too, interrupts a program that does nothing else.
const INTERRUPTED: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
enum { ROUNDS = 100000 };
static volatile int numbers[64], handled[64];
static volatile int calls;
static void handler(int signal) {
  for (int i = 0; i < 64; i++)
    handled[i] = handled[i] + signal;
  calls = calls + 1;
}
static void *worker(void *nothing) {
  for (int i = 0; i < ROUNDS; i++)
    if (numbers[i % 64] < i)
      numbers[i % 64] = numbers[(i + 1) % 64] + i;
  return nothing;
}
int main(void) {
  struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  pthread_t thread;
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &often, 0);
  pthread_create(&thread, 0, worker, 0);
  worker(0);
  pthread_join(thread, 0);
  setitimer(ITIMER_REAL, &never, 0);
  return 0;
}
"#;

#[test]
fn a_handler_that_interrupts_recording_spoils_nothing() {
    let scratch = Scratch::new("interrupted");
    let Some(program) = scratch.build("interrupted", INTERRUPTED) else { return };
    let text = recorded_well(&program, &scratch.path("run.ftrace"));
    assert!(text.lines().filter(|line| line.ends_with(" worker")).count() > 200_000);
}

/// Two libraries that are loaded and unloaded in turn, so that they take each other's place.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  for (int round = 0; round < 6; round++) {
    void *library = dlopen(words[1 + round % (count - 1)], RTLD_NOW);
    int (*work)(int) = library ? (int (*)(int))dlsym(library, "work") : NULL;
    if (!work || work(300) != 300)
      return 1;
    dlclose(library);
  }
  return 0;
}
"#;
const GUEST: &str = r#"
static volatile int done;
int work(int rounds) {
  done = 0;
  for (int i = 0; i < rounds; i++)
    done = done + 1;
  return done;
}
"#;

#[test]
fn libraries_come_and_go() {
    let scratch = Scratch::new("libraries");
    let Some(program) = scratch.build("host", HOST) else { return };
    let guests = ["first", "second"].map(|name| {
        let (file, library) = (scratch.path(&format!("{name}.c")), scratch.path(name));
        std::fs::write(&file, GUEST).unwrap();
        let built = ["cc", "-O1", "-g", "-shared", "-fPIC", &file, "-o", &library];
        let built = foretell(&built);
        assert!(built.status.success(), "{}", stderr(&built));
        library
    });
    let trace = scratch.path("run.ftrace");
    let [first, second] = &guests;
    let recorded = foretell(&["record", "-o", &trace, "--", &program, first, second]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}{}", stdout(&valid), stderr(&valid));
    let text = stdout(&foretell(&["trace", "cat", &trace]));
    let sites: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("site ")).collect();
    let site = |line: &str| {
        let (_, site) = line.split_once(" @ ")?;
        match site.strip_prefix('$') {
            Some(number) => sites.get(number.parse::<usize>().ok()?).map(|&site| site.to_owned()),
            None => Some(site.to_owned()),
        }
    };
    let writes: Vec<String> =
        text.lines().filter(|line| line.contains(" write ")).filter_map(site).collect();
    for file in ["first.c:", "second.c:"] {
        let count = writes.iter().filter(|site| site.contains(file)).count();
        assert_eq!(count, 3 * 301, "each library ran three times");
    }
}

/// Threads whose stacks libc uses again, each with a variable of its own.
const OWN: &str = r#"
#include <pthread.h>
static __thread int own = 7;
static int sum;
static void *worker(void *nothing) {
  own += 1;
  sum += own;
  return nothing;
}
int main(void) {
  for (int i = 0; i < 5; i++) {
    pthread_t thread;
    pthread_create(&thread, 0, worker, 0);
    pthread_join(thread, 0);
  }
  return sum != 40;
}
"#;

#[test]
fn thread_local_variables_are_new_for_each_thread() {
    let scratch = Scratch::new("own");
    let Some(program) = scratch.build("own", OWN) else { return };
    let text = recorded_well(&program, &scratch.path("run.ftrace"));
    assert!(!text.contains("wrote unseen"), "{text}");
}
