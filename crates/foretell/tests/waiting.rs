//! Loops that wait: correct ones end with all behaviours covered, and a thread that goes round for ever is
//! a livelock. A loop that only looks like one that waits is an ordinary loop.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const HEAD: &str = "#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
";

/// Two threads that run `work`, and what `main` does after they ended.
fn two(declarations: &str, work: &str, finally: &str) -> String {
    format!(
        "{HEAD}{declarations}
static void *run(void *unused) {{ {work} return unused; }}
int main(void) {{
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  {finally}
  return 0;
}}
"
    )
}

/// A thread that runs `work` beside what `main` does.
fn beside(declarations: &str, work: &str, main: &str) -> String {
    format!(
        "{HEAD}{declarations}
static void *run(void *unused) {{ {work} return unused; }}
int main(void) {{
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  {main}
  pthread_join(thread, 0);
  return 0;
}}
"
    )
}

struct Tested {
    code: Option<i32>,
    report: Value,
    said: String,
}

fn test(name: &str, program: &str, level: &str) -> Tested {
    test_within(&[], name, program, level)
}

fn test_within(limits: &[&str], name: &str, program: &str, level: &str) -> Tested {
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("waiting-{}-{name}{level}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("p.c"), program).expect("a file");
    let libraries = std::env::current_exe().expect("path of the test");
    let foretell = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(words)
            .current_dir(&folder)
            // Cargo leaves the plugin and the runtime beside the test.
            .env("FORETELL_LIB_DIR", libraries.parent().expect("a folder"))
            .stdin(Stdio::null())
            .output()
            .expect("foretell runs")
    };
    let built = foretell(&["cc", level, "-g", "-w", "-pthread", "p.c", "-o", "p"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = foretell(&[&["--format", "json", "test", "--jobs", "1"], limits, &["./p"]].concat());
    let said = format!(
        "{name} {level}: {}\n{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    let report = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("{said}"));
    let _ = std::fs::remove_dir_all(&folder);
    Tested { code: run.status.code(), report, said }
}

fn is_covered(name: &str, program: &str) {
    for level in ["-O0", "-O1"] {
        let tested = test(name, program, level);
        assert_eq!(tested.code, Some(0), "{}", tested.said);
        assert_eq!(tested.report["exploration"]["covered"], true, "{}", tested.said);
    }
}

fn is_livelock(name: &str, program: &str) {
    for level in ["-O0", "-O1"] {
        let tested = test(name, program, level);
        assert_eq!(tested.code, Some(10), "{}", tested.said);
        let findings = tested.report["findings"].as_array().expect("findings");
        let livelock =
            |finding: &Value| finding["kind"] == "livelock" && finding["status"] == "confirmed";
        assert!(findings.iter().any(livelock), "{}", tested.said);
    }
}

#[test]
fn a_flag_that_is_waited_for() {
    let declarations = "static atomic_int flag; static int data;";
    let work = "data = 5; atomic_store(&flag, 1);";
    is_covered(
        "flag",
        &beside(declarations, work, "while (!atomic_load(&flag)); assert(data == 5);"),
    );
    let main = "while (!atomic_load(&flag)) sched_yield(); assert(data == 5);";
    is_covered("yield", &beside(declarations, work, main));
}

#[test]
fn locks_that_spin() {
    let ticket = "static atomic_int next, serving; static int counter;";
    let work = "int mine = atomic_fetch_add(&next, 1); while (atomic_load(&serving) != mine);
                counter++; atomic_fetch_add(&serving, 1);";
    is_covered("ticket", &two(ticket, work, "assert(counter == 2);"));
    let swap = "static atomic_int taken; static int counter;
                static void lock(void) { for (;;) { int free = 0;
                  if (atomic_compare_exchange_strong(&taken, &free, 1)) return; } }";
    let work = "lock(); counter++; atomic_store(&taken, 0);";
    is_covered("swap", &two(swap, work, "assert(counter == 2);"));
    let flag = "static atomic_flag taken = ATOMIC_FLAG_INIT; static int counter;";
    let work = "while (atomic_flag_test_and_set(&taken)); counter++; atomic_flag_clear(&taken);";
    is_covered("flag-lock", &two(flag, work, "assert(counter == 2);"));
}

#[test]
fn a_switch_that_decides() {
    let declarations = "static atomic_int state; static int value;
        static int wait(void) { for (;;) switch (atomic_load(&state)) {
          case 0: return -1; case 1: sched_yield(); break; case 2: return value;
          case 3: __builtin_trap(); default: return -2; } }";
    let work = "int fresh = 0; if (atomic_compare_exchange_strong(&state, &fresh, 1)) {
                value = 7; atomic_store(&state, 2); } else assert(wait() == 7);";
    is_covered("switch", &two(declarations, work, "assert(value == 7);"));
}

#[test]
fn a_retry_that_reads_twice() {
    let declarations = "static atomic_int sum;";
    let work = "int seen; do { seen = atomic_load(&sum); }
                while (!atomic_compare_exchange_strong(&sum, &(int){seen}, seen + 1));";
    is_covered("retry", &two(declarations, work, "assert(atomic_load(&sum) == 2);"));
}

#[test]
fn a_thread_that_waits_for_ever() {
    let declarations = "static atomic_int one, two;";
    let work = "atomic_store(&one, 1); while (atomic_load(&two)); atomic_store(&one, 0);";
    let main = "atomic_store(&two, 1); while (atomic_load(&one)); atomic_store(&two, 0);";
    is_livelock("both", &beside(declarations, work, main));
    // The value is there, but not for long.
    let work = "atomic_store(&one, 1); atomic_store(&one, 0);";
    is_livelock("missed", &beside(declarations, work, "while (!atomic_load(&one));"));
}

#[test]
fn a_loop_that_counts_is_no_waiting() {
    // It gives up: to leave a round out would be wrong.
    let declarations = "static atomic_int flag;";
    let main = "int rounds = 0; while (!atomic_load(&flag) && rounds < 3) rounds++;
                assert(rounds < 3);";
    let program = beside(declarations, "atomic_store(&flag, 1);", main);
    for level in ["-O0", "-O1"] {
        let tested = test("counts", &program, level);
        assert_eq!(tested.code, Some(10), "{}", tested.said);
    }
    // It reads what races, in rounds that do not leave only.
    let declarations = "static atomic_int flag; static int data; static volatile int sink;";
    let main = "while (!atomic_load(&flag)) sink = data;";
    let program = beside(declarations, "data = 1; atomic_store(&flag, 1);", main);
    // Its paths have no end.
    let tested = test_within(&["--runs", "5"], "races", &program, "-O0");
    assert_eq!(tested.code, Some(10), "{}", tested.said);
}
