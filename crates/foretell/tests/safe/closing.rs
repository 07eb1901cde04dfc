//! A signal or the end of the time ends the work of a command, and not its report.

use std::io::Read;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::{BANK, TORN, Workshop, end_of, signal, text, until};
use crate::tools::solver;

/// Two threads with so many unordered updates each: with 12 there are hundreds of findings to explain,
/// with 60 more to predict than anybody waits for.
fn unordered(updates: u32) -> String {
    let mut trace = String::from(
        "foretell-trace 1\nsymbolic\nobserved\nthread main, a, b\nvar x = 0\n\
         main fork a\nmain fork b\n",
    );
    let mut value = 0;
    for thread in ["a", "b"] {
        for line in 1..=updates {
            trace += &format!("{thread} r{line} = read x = {value} @ {thread}.c:{line} f\n");
            value += 1;
            trace +=
                &format!("{thread} write x = {value} := (+ r{line} 1) @ {thread}.c:{line} f\n");
        }
    }
    trace
        + &format!(
            "main join a\nmain join b\nmain last = read x = {value} @ m.c:1 main\n\
             main assert (= last {value}) @ m.c:2 main\n"
        )
}

/// More states than anybody waits for.
const MANY_STATES: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
atomic_int x;
static void *work(void *p) { for (int i = 0; i < 1000; i++) { x += 3; x ^= i; } return p; }
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  return 0;
}
"#;

/// Runs for ever where it is told to.
fn torn_or_endless() -> String {
    TORN.replace(
        "int main(void) {",
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n\
         if (getenv(\"PID_FILE\")) { fclose(fopen(getenv(\"PID_FILE\"), \"w\"));\n\
         for (;;) __asm__ volatile(\"pause\"); }",
    )
}

/// The exit code and the object that a command printed.
#[track_caller]
fn ended(mut child: Child) -> (Option<i32>, Value, String) {
    // What a pipe has no room for would keep it from ending.
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let status = end_of(&mut child);
    let (output, error) = (stdout.join().expect("read"), text(&stderr.join().expect("read")));
    assert!(!error.contains("internal error"), "{error}");
    (status.code(), serde_json::from_slice(&output).unwrap_or(Value::Null), error)
}

/// Reads to the end, in a thread of its own.
fn read_all(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    let mut from = from.expect("a pipe");
    std::thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all).expect("to be read");
        all
    })
}

/// Starts a command; without a time limit it gets a signal once it is at work.
#[track_caller]
fn cut_short(
    shop: &Workshop,
    words: &[&str],
    environment: &[(&str, &str)],
    at_work: impl Fn(u32) -> bool,
    number: Option<i32>,
) -> (Option<i32>, Value, String) {
    let mut command = shop.foretell(&["--format", "json"]);
    command.args(words).envs(environment.iter().copied());
    if number.is_none() {
        command.args(["--time-limit", "2"]);
    }
    let mut command = {
        // The program comes last.
        let program = environment.iter().find(|(name, _)| *name == "PROGRAM");
        if let Some((_, program)) = program {
            command.args(["--", program]);
        }
        command
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    if let Some(number) = number {
        until("its work", || at_work(child.id()));
        signal(child.id(), number);
    }
    let ended = ended(child);
    assert_eq!(shop.leftovers(), [] as [std::path::PathBuf; 0], "{words:?}");
    ended
}

/// Whether a process has a thread that does long work.
fn works(process: u32) -> bool {
    let tasks = std::path::Path::new("/proc").join(process.to_string()).join("task").read_dir();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .any(|task| name(task).is_ok_and(|name| name == "bounded\n"))
}

/// By the time limit, and by a signal.
const ENDS: [Option<i32>; 3] = [None, Some(libc::SIGINT), Some(libc::SIGTERM)];

#[test]
fn explain_and_fix_say_what_they_have() {
    let shop = Workshop::new();
    for number in ENDS {
        let updates = if number.is_some() { 12 } else { 60 };
        let trace = shop.file("trace.ft", unordered(updates)).display().to_string();
        for command in ["explain", "fix"] {
            let (code, object, error) = cut_short(&shop, &[command, &trace], &[], works, number);
            match number {
                // Something was found: it is being explained.
                Some(_) => assert_eq!(code, Some(11), "{command} {number:?}: {error}"),
                None => assert!(matches!(code, Some(11 | 12)), "{command}: {code:?} {error}"),
            }
            let unseen = object["unseen"].to_string();
            let why = if number.is_some() { "signal" } else { "time limit" };
            assert!(unseen.contains(why), "{command} {number:?}: {object:#} {error}");
        }
    }
}

#[test]
fn a_patch_that_may_be_incomplete_is_not_applied() {
    let shop = Workshop::new();
    let trace = shop.file("trace.ft", unordered(60)).display().to_string();
    let output = shop.run(&["fix", "--apply", "--time-limit", "1", &trace]);
    assert!(text(&output.stderr).contains("no file was changed"), "{}", text(&output.stderr));
}

#[test]
fn verify_says_that_it_does_not_know() {
    let shop = Workshop::new();
    let source = shop.file("many.c", MANY_STATES).display().to_string();
    for number in ENDS {
        let words = ["verify", "--states", "1000000000", &source];
        // Compiling is over when there are no children any more.
        let at_work = |process: u32| {
            let children = format!("/proc/{process}/task/{process}/children");
            let time = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let ticks =
                time.rsplit(')').next().and_then(|rest| rest.split(' ').nth(12)?.parse().ok());
            std::fs::read_to_string(children).is_ok_and(|list| list.trim().is_empty())
                && ticks.unwrap_or(0u64) > 50
        };
        let (code, object, error) = cut_short(&shop, &words, &[], at_work, number);
        assert_eq!(code, Some(12), "{number:?}: {error}");
        assert_eq!(object["verification"]["verdict"], "unknown", "{object:#}");
        let reason = object["verification"]["reason"].to_string();
        let why = if number.is_some() { "signal" } else { "time limit" };
        assert!(reason.contains(why), "{number:?}: {reason}");
    }
}

#[test]
fn verify_does_not_wait_for_a_solver_that_hangs() {
    let shop = Workshop::new();
    let mark = shop.path().join("asked");
    let hangs = solver(&format!("touch {}; sleep 100000", mark.display()));
    shop.script("bin/z3", &hangs);
    let path = format!("{}:{}", shop.path().join("bin").display(), env!("PATH"));
    let example = include_str!("../../../../fuzz/corpus/cmd/example1.cmd");
    let program = shop.file("example1.cmd", example).display().to_string();
    for number in ENDS {
        let _ = std::fs::remove_file(&mark);
        let words = ["verify", &program];
        let (code, object, error) =
            cut_short(&shop, &words, &[("PATH", &path)], |_| mark.exists(), number);
        assert_eq!(code, Some(12), "{number:?}: {error}");
        assert_eq!(object["verification"]["verdict"], "unknown", "{object:#} {error}");
    }
}

#[test]
fn a_replay_that_does_not_end_is_ended_and_judged_as_undecided() {
    let shop = Workshop::new();
    let program = shop.build("torn", &torn_or_endless());
    let tested = shop.run(&["test", &program]);
    assert_eq!(tested.status.code(), Some(10), "{}", text(&tested.stderr));
    let schedules = shop.path().join("foretell-schedules").read_dir().expect("schedules");
    let files = schedules.map(|entry| entry.expect("an entry").path());
    let schedule = files.filter(|path| path.is_file()).min().expect("a schedule");
    let schedule = schedule.display().to_string();
    let pid_file = shop.path().join("pid");
    let mark = pid_file.display().to_string();
    for number in ENDS {
        let _ = std::fs::remove_file(&pid_file);
        let words = ["replay", "--run-limit", "100000", &schedule];
        let environment = [("PID_FILE", &*mark), ("PROGRAM", &*program)];
        let (code, object, error) =
            cut_short(&shop, &words, &environment, |_| pid_file.exists(), number);
        assert_eq!(code, Some(12), "{number:?}: {error}");
        assert_eq!(object["replay"]["status"], "predicted", "{object:#} {error}");
    }
}

#[test]
fn a_goal_whose_solver_is_late_is_undecided() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let hangs = shop.script("hangs", &solver("sleep 100000")).display().to_string();
    // One that does not even greet.
    let silent = shop.script("silent", "#!/bin/sh\nsleep 100000\n").display().to_string();
    for solver in [&hangs, &silent] {
        for goal in [&["--goal", "order(bob#0, alice#1)"][..], &["--engine", "orders"], &[]] {
            let mut words = vec!["--format", "json", "predict", "bank.ft", "--time-limit", "1"];
            words.extend(["--solver-cmd", solver]);
            words.extend(goal);
            let output = shop.run(&words);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(12), "{solver} {goal:?}: {error}");
        }
    }
}
