//! Binaries that nobody recompiled, as a user meets them: built by Debian's compilers, tested and replayed under QEMU.
//! What is found is what is expected of their instrumented builds (`examples/expected.json`). A few examples each time;
//! all of them, replayed a hundred times, with `FORETELL_BINARY_ALL=1 FORETELL_BINARY_REPLAYS=100` (`ci/nightly.sh`), or
//! those that are named (`FORETELL_BINARY_ALL=bank,two_stage`).

mod debugger;
mod lost_updates;
mod paths;
mod refused;
mod strangers;
mod terms;
mod timed;
mod unknown_library;
mod unseen;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A platform: the compiler, and how often programs for it are replayed.
#[derive(Clone, Copy)]
struct Platform {
    name: &'static str,
    compiler: &'static str,
    emulator: &'static str,
    /// Where its libraries are.
    prefix: &'static str,
}

const PLATFORMS: [Platform; 3] = [
    Platform { name: "x86-64", compiler: "gcc", emulator: "qemu-x86_64", prefix: "/" },
    Platform {
        name: "AArch64",
        compiler: "aarch64-linux-gnu-gcc",
        emulator: "qemu-aarch64",
        prefix: "/usr/aarch64-linux-gnu",
    },
    Platform {
        name: "ARM",
        compiler: "arm-linux-gnueabihf-gcc",
        emulator: "qemu-arm",
        prefix: "/usr/arm-linux-gnueabihf",
    },
];

fn is_there(command: &str) -> bool {
    let mut command = Command::new(command);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Those that this machine can run.
fn platforms() -> Vec<Platform> {
    let (there, absent): (Vec<Platform>, Vec<Platform>) =
        PLATFORMS.iter().partition(|p| is_there(p.compiler) && is_there(p.emulator));
    for Platform { name, compiler, emulator, .. } in absent {
        println!("SKIPPED: binaries for {name}: there is no {compiler} or no {emulator}");
    }
    there
}

/// The platform with this number, if this machine can run it.
fn platform(number: usize) -> Option<Platform> {
    platforms().into_iter().find(|platform| platform.name == PLATFORMS[number].name)
}

/// How often a schedule is replayed; the nightly run asks for more.
fn replays() -> usize {
    std::env::var("FORETELL_BINARY_REPLAYS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

fn source_of(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name).join(format!("{name}.c")).canonicalize().expect("an example")
}

struct Workshop(TempDir);

impl Workshop {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        // No result may depend on how busy the machine is.
        let unhurried = "[test]\nrun-limit = 900\ntime-limit = 3600\n[replay]\nrun-limit = 900\n";
        std::fs::write(folder.path().join("foretell.toml"), unhurried).expect("written");
        Self(folder)
    }

    /// Builds a program; with these options more.
    fn build(&self, platform: Platform, source: &Path, options: &[&str]) -> PathBuf {
        let name = source.file_stem().expect("a name").to_string_lossy();
        let program = self.0.path().join(format!("{name}-{}", platform.name));
        let mut command = Command::new(platform.compiler);
        command.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).args(options);
        assert!(command.status().expect("a compiler").success(), "{command:?}");
        program
    }

    fn source(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    fn foretell(&self, words: &[&str], program: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command.current_dir(self.0.path()).args(words).arg("--").args(program);
        command.stdin(Stdio::null()).output().expect("foretell runs")
    }

    fn test(&self, program: &Path, arguments: &[String]) -> (Option<i32>, Value) {
        let words = ["--format", "json", "test", "--binary", "--schedules", "schedules"];
        let mut program = vec![program.to_str().expect("a path")];
        program.extend(arguments.iter().map(String::as_str));
        let output = self.foretell(&words, &program);
        let report = serde_json::from_slice(&output.stdout);
        let text = || String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", text())))
    }
}

/// What the instrumented build of an example is expected to do.
struct Example {
    name: String,
    arguments: Vec<String>,
    /// The effects of what is confirmed; none of a correct program.
    effects: Vec<String>,
}

/// Those examples in C that are asked for; where nobody asks, those with these names.
fn examples(correct: bool, few: &[&str]) -> Vec<Example> {
    let asked = std::env::var("FORETELL_BINARY_ALL").ok();
    let is_asked = |name: &str| match asked.as_deref() {
        None => few.contains(&name),
        Some(names) => names == "1" || names.split(',').any(|one| one == name),
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/expected.json");
    let text = std::fs::read_to_string(file).expect("what is expected");
    let expected: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let examples = expected.iter().filter_map(|expected| {
        let name = expected["name"].as_str()?.to_owned();
        let wanted = expected["source"].as_str()?.ends_with(".c")
            && (expected["test"]["exit"] != 10) == correct
            && is_asked(&name);
        let findings = expected["test"]["findings"].as_array()?.iter();
        let effects = findings.filter_map(|finding| finding["effect"].as_str()).map(str::to_owned);
        let (arguments, effects) = (words(&expected["arguments"]), effects.collect());
        wanted.then_some(Example { name, arguments, effects })
    });
    let examples: Vec<Example> = examples.collect();
    assert!(examples.len() >= few.len(), "{few:?} are examples");
    examples
}

/// The example is found on the platform with the effect that its instrumented build has, and happens
/// again each time; without debug information if it is to be `stripped`, and static if it is to be
/// `fixed`. Not so where only the output tells, on another path: whether that is right is then left to
/// the user, in words. Says whether it was found.
fn found(platform: Platform, example: &Example, stripped: bool, fixed: bool) -> bool {
    let Example { name, arguments, effects } = example;
    let at = format!("{name} on {}", platform.name);
    let workshop = Workshop::new();
    let mut options = vec![if stripped { "-s" } else { "-g" }, "-lm"];
    options.extend(fixed.then_some("-static"));
    let program = workshop.build(platform, &source_of(name), &options);
    let (exit, report) = workshop.test(&program, arguments);
    if exit == Some(12) && effects.iter().all(|effect| effect == "output") {
        let said = "a forced run did what no run without preemption does";
        assert!(report.to_string().contains(said), "{at}: {report}");
        return false;
    }
    assert_eq!(exit, Some(10), "{at}: {report}");
    let findings = report["findings"].as_array().expect("a list");
    let same_effect = |finding: &&Value| {
        let effect = finding["effect"].as_str().unwrap_or_default();
        finding["status"] == "confirmed" && effects.iter().any(|expected| expected == effect)
    };
    let finding = findings.iter().find(same_effect);
    let finding = finding.unwrap_or_else(|| panic!("{at}: none of {effects:?}: {report}"));
    if !stripped {
        let place = format!("{name}.c");
        assert!(report.to_string().contains(&place), "source positions: {report}");
    }
    let schedule = finding["schedule"].as_str();
    let schedule = schedule.unwrap_or_else(|| panic!("a schedule: {finding}"));
    let text = std::fs::read_to_string(workshop.0.path().join(schedule)).expect("a schedule");
    assert!(text.contains("\nrunner qemu\n"), "it says that it is of a binary: {text}");
    let mut words = vec![program.to_str().expect("a path")];
    words.extend(arguments.iter().map(String::as_str));
    for _ in 0..replays() {
        let replayed = workshop.foretell(&["replay", schedule], &words);
        assert_eq!(replayed.status.code(), Some(10), "{at}: {replayed:?}");
    }
    true
}

/// The examples are found on the platform; every second one without debug information.
fn all_found(number: usize) {
    let Some(platform) = platform(number) else { return };
    let examples = examples(false, &["bank", "abba_deadlock", "use_before_init"]);
    let found = examples.iter().enumerate().filter(|(at, example)| {
        let stripped = (at + number).is_multiple_of(2);
        found(platform, example, stripped, false)
    });
    let found = found.count();
    assert!(found >= examples.len().min(10), "{found} of {}", examples.len());
}

#[test]
fn bugs_are_found_on_x86_64_and_happen_again() {
    all_found(0);
}

#[test]
fn bugs_are_found_on_aarch64_and_happen_again() {
    all_found(1);
}

#[test]
fn bugs_are_found_on_arm_and_happen_again() {
    all_found(2);
}

/// Nothing is found in a correct program, and nobody says that everything was covered.
fn all_quiet(number: usize) {
    let Some(platform) = platform(number) else { return };
    for (at, example) in examples(true, &["ok_bank", "ok_refcount"]).iter().enumerate() {
        let workshop = Workshop::new();
        let options = [if (at + number).is_multiple_of(2) { "-s" } else { "-g" }, "-lm"];
        let program = workshop.build(platform, &source_of(&example.name), &options);
        let (exit, report) = workshop.test(&program, &example.arguments);
        let at = format!("{} on {}", example.name, platform.name);
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{at}");
        assert_eq!(exit, Some(12), "{at}: {report}");
    }
}

#[test]
fn correct_programs_stay_quiet_on_x86_64() {
    all_quiet(0);
}

#[test]
fn correct_programs_stay_quiet_on_aarch64() {
    all_quiet(1);
}

#[test]
fn correct_programs_stay_quiet_on_arm() {
    all_quiet(2);
}

#[test]
fn static_binaries_are_told_from_their_library_by_its_archive() {
    let example = &examples(false, &["bank"])[0];
    for platform in platforms() {
        assert!(found(platform, example, false, true), "{}", platform.name);
    }
}

#[test]
fn stripped_static_binaries_are_told_from_their_library_by_its_code() {
    let example = &examples(false, &["bank"])[0];
    for platform in platforms() {
        assert!(found(platform, example, true, true), "{}", platform.name);
    }
}

/// Each thread adds to a counter by atomic instructions, and waits for the other by one.
const ATOMICS: &str = r#"
#include <assert.h>
#include <pthread.h>
static int count; static char flag;
static void *add(void *x) {
  for (int i = 0; i < 3; i++) __atomic_fetch_add(&count, 5, __ATOMIC_SEQ_CST);
  int seen = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&count, &seen, seen + 1, 0, 5, 5)) {}
  __atomic_exchange_n(&flag, 1, 5);
  return x; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(count == 32 && flag == 1);
  return 0; }
"#;

#[test]
fn atomic_instructions_are_one_event_with_what_they_replaced() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("atomics.c", ATOMICS), &["-g"]);
        let program = program.display().to_string();
        for schedule in ["round-robin:1", "random:7:2"] {
            let words = ["record", "--binary", "--schedule", schedule, "-o", "run.ftrace"];
            let recorded = workshop.foretell(&words, &[&program]);
            assert_eq!(recorded.status.code(), Some(0), "{}: {recorded:?}", platform.name);
            let words = ["trace", "validate", "run.ftrace"];
            assert_eq!(workshop.run(&words).0, Some(0), "{}", platform.name);
            let (exit, said) =
                workshop.run(&["trace", "convert", "--to", "text", "run.ftrace", "-o", "run.txt"]);
            assert_eq!(exit, Some(0), "{said}");
            let text = std::fs::read_to_string(workshop.0.path().join("run.txt")).expect("text");
            let steps = text.lines().filter(|line| line.contains(" rmw.seq_cst ")).count();
            // Six additions, two that compare, two that exchange; a compare that fails is a read.
            assert_eq!(steps, 10, "{}: {text}", platform.name);
            assert!(!text.contains("\ngap "), "{}: {text}", platform.name);
        }
    }
}

impl Workshop {
    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        let output = command.current_dir(self.0.path()).args(words).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    }
}

/// In the C library of x86-64 making a spin lock and freeing it are one function.
const SPINS: &str = r#"
#include <pthread.h>
#include <assert.h>
static pthread_spinlock_t lock; static long long n;
static void *work(void *x) { pthread_spin_lock(&lock); n = n * 3 + 1; pthread_spin_unlock(&lock); return x; }
int main(void) {
  pthread_spin_init(&lock, 0);
  pthread_t a, b;
  pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 4);
  return 0; }
"#;

#[test]
fn spin_locks_are_taken_and_given_back() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("spins.c", SPINS), &["-g"]);
        let (exit, report) = workshop.test(&program, &[]);
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{}", platform.name);
        assert_eq!(exit, Some(12), "{}: {report}", platform.name);
        let name = program.display().to_string();
        let recorded = workshop.foretell(&["record", "--binary", "-o", "run.ftrace"], &[&name]);
        assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
        let (_, text) = workshop.run(&["trace", "cat", "run.ftrace"]);
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!((count(" acquire "), count(" release ")), (2, 2), "{}: {text}", platform.name);
    }
}

/// One thread is stopped between its accesses while the other does what all others must be stopped for.
const EXCLUSIVE: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int x, y, handled;
static char bytes[64] __attribute__((aligned(64)));
static void handler(int number) { (void)number; handled = 1; }
static void *work(void *unused) { for (int i = 0; i < 20; i++) x = i; return unused; }
int main(int count, char **words) {
  pthread_t thread; int status = 0; char what = count > 1 ? words[1][0] : ' ';
  signal(SIGUSR1, handler);
  pthread_create(&thread, 0, work, 0);
  for (int i = 0; i < 4; i++) y = i;
  switch (what) {
  case 'f': { pid_t child = fork(); if (!child) _exit(7); waitpid(child, &status, 0);
    if (WEXITSTATUS(status) != 7) return 1; break; }
  case 'a':
#if defined __x86_64__
    __asm__ volatile("lock addl $1, %0" : "+m"(*(int *)(bytes + 61)));
#elif defined __aarch64__
    __asm__ volatile("1: ldxp x9, x10, [%0]\nstxp w11, x9, x10, [%0]\ncbnz w11, 1b"
                     :: "r"(bytes) : "x9", "x10", "x11", "memory");
#else
    __atomic_fetch_add((long long *)bytes, 1, 5);
#endif
    break;
  case 's': pthread_kill(thread, SIGUSR1); break;
  case 'e': exit(3);
  }
  for (int i = 0; i < 4; i++) y = i;
  pthread_join(thread, 0);
  return x == 19 && (what != 's' || handled) ? 0 : 2; }
"#;

#[test]
fn nothing_hangs_while_a_thread_is_stopped_inside_translated_code() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &workshop.source("stopped.c", EXCLUSIVE), &["-g"]);
        let program = program.display().to_string();
        for (what, status) in [("fork", 0), ("atomic", 0), ("signal", 0), ("exit", 3)] {
            for how in ["round-robin:1", "round-robin:2", "random:5:2", "random:5:2 --symbolic"] {
                let (schedule, symbolic) = how.split_once(' ').unwrap_or((how, ""));
                let mut words = vec!["record", "--binary", "--time-limit", "900"];
                words.extend(["--schedule", schedule]);
                words.extend((!symbolic.is_empty()).then_some(symbolic));
                let recorded = workshop.foretell(&words, &[&program, what]);
                let code = recorded.status.code();
                assert_eq!(code, Some(status), "{} {what} {how}", platform.name);
                let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
                assert_eq!(valid, Some(0), "{} {what} {how}: {said}", platform.name);
            }
        }
    }
}

/// One thread waits inside translated code while the other executes more code than QEMU has room for:
/// writes to its own stack, which are no events.
const MUCH_CODE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int done;
static unsigned page[1024];
static void *wait(void *unused) { while (!done) {} return unused; }
int main(void) {
  enum { PAGES = 4096 };
#if defined __x86_64__
  unsigned store = 0xf8244489, back = 0xc3;        /* mov %eax, -8(%rsp); ret */
#elif defined __aarch64__
  unsigned store = 0xf81f83e0, back = 0xd65f03c0;  /* stur x0, [sp, #-8]; ret */
#else
  unsigned store = 0xe50d0008, back = 0xe12fff1e;  /* str r0, [sp, #-8]; bx lr */
#endif
  int file = memfd_create("code", 0);
  for (int i = 0; i < 1024; i++) page[i] = store;
  for (int i = 0; i < PAGES; i++) write(file, page, sizeof page);
  page[0] = back;
  write(file, page, sizeof page);
  void *code = mmap(0, (PAGES + 1) * sizeof page, 7, MAP_PRIVATE, file, 0);
  pthread_t thread;
  pthread_create(&thread, 0, wait, 0);
  for (int i = 0; i < 100; i++) done = 0; /* the other one begins */
  ((void (*)(void))code)();
  done = 1;
  pthread_join(thread, 0);
  return 0; }
"#;

#[test]
fn translated_code_that_is_thrown_away_under_a_thread_is_noticed() {
    // It takes a while to make so much of it.
    let all = std::env::var_os("FORETELL_BINARY_ALL").is_some();
    for platform in platforms().into_iter().take(if all { 3 } else { 1 }) {
        let workshop = Workshop::new();
        let options = ["-g", "-marm"];
        let options = if platform.name == "ARM" { &options[..] } else { &options[..1] };
        let source = workshop.source("much.c", MUCH_CODE);
        let program = workshop.build(platform, &source, options).display().to_string();
        let words = ["record", "--binary", "--schedule", "round-robin:7", "--time-limit", "900"];
        let recorded = workshop.foretell(&words, &[&program]);
        let said = String::from_utf8_lossy(&recorded.stderr);
        assert!(said.contains("threw away its translated code"), "{}: {recorded:?}", platform.name);
        assert_ne!(recorded.status.code(), Some(0), "{}: {recorded:?}", platform.name);
        let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
        assert_eq!(valid, Some(0), "{}: {said}", platform.name);
    }
}

/// No signal but one ends it, and it does nothing more.
const HANGS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void *work(void *unused) { for (;;) __asm__ volatile(""); return unused; }
int main(void) {
  pthread_t thread; sigset_t all;
  sigfillset(&all); sigprocmask(SIG_SETMASK, &all, 0);
  pthread_create(&thread, 0, work, 0);
  for (;;) pause(); }
"#;

#[test]
fn a_qemu_that_hangs_is_ended_for_good() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let source = workshop.source("hangs.c", HANGS);
        let program = workshop.build(platform, &source, &["-g"]).display().to_string();
        let recorded = workshop.foretell(&["record", "--binary", "--time-limit", "3"], &[&program]);
        assert_eq!(recorded.status.code(), Some(12), "{}: {recorded:?}", platform.name);
        let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
        assert_eq!(valid, Some(0), "{}: {said}", platform.name);
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let left = processes.filter_map(|process| {
            let words = std::fs::read(process.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&words).contains(&program).then_some(process.path())
        });
        assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "{}", platform.name);
    }
}

#[test]
fn a_binary_that_does_something_else_diverges() {
    let Some(&platform) = platforms().first() else { return };
    let workshop = Workshop::new();
    let source = std::fs::read_to_string(source_of("bank")).expect("readable");
    // Without a build id nobody can tell that it is another program.
    let options = ["-g", "-Wl,--build-id=none"];
    let program = workshop.build(platform, &workshop.source("bank.c", &source), &options);
    let (_, report) = workshop.test(&program, &[]);
    let findings = report["findings"].as_array().expect("a list");
    let schedule = findings.iter().find_map(|finding| finding["schedule"].as_str());
    let schedule = schedule.unwrap_or_else(|| panic!("a bug: {report}")).to_owned();
    let other =
        source.replace("balance = amount;", "*(volatile int *)&balance = 0; balance = amount;");
    workshop.build(platform, &workshop.source("bank.c", &other), &options);
    let replayed = workshop.foretell(&["replay", &schedule], &[&program.display().to_string()]);
    assert_eq!(replayed.status.code(), Some(12), "{replayed:?}");
    let said = String::from_utf8_lossy(&replayed.stdout);
    assert!(said.contains("left the schedule"), "{said}");
}

/// The log of a run on the target, which is plain QEMU here, by the recorder for targets.
fn log_of_target(workshop: &Workshop, platform: Platform, program: &Path) -> Vec<u64> {
    let source = "../foretell-record/recorder/foretell_sync.c";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let options = ["-shared", "-fPIC", "-ldl", "-Wall", "-Wextra", "-Werror"];
    let recorder = workshop.build(platform, &source, &options);
    let mut command = Command::new(platform.emulator);
    command.current_dir(workshop.0.path()).args(["-L", platform.prefix, "-E"]);
    command.arg(format!("LD_PRELOAD={}", recorder.display())).arg(program);
    // Nobody holds the threads back on the target: a run in which the bug shows is no run to begin with.
    let went_well = (0..20).any(|_| command.status().expect("QEMU").success());
    assert!(went_well, "{command:?}");
    let log = std::fs::read(workshop.0.path().join("run.sync")).expect("a log");
    log.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("words"))).collect()
}

/// Who takes the lock, in the order of the recording.
fn acquires(workshop: &Workshop, program: &str, log: &str) -> Vec<String> {
    let words = ["record", "--binary", "--replay", log, "-o", "run.ftrace"];
    let recorded = workshop.foretell(&words, &[program]);
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    assert_eq!(workshop.run(&["trace", "validate", "run.ftrace"]).0, Some(0));
    let (_, text) = workshop.run(&["trace", "cat", "run.ftrace"]);
    let acquires = text.lines().filter(|line| line.contains(" acquire "));
    acquires.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn a_test_begins_with_the_run_that_a_target_logged() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let path = workshop.build(platform, &source_of("bank"), &["-g"]);
        let program = path.display().to_string();
        let log = log_of_target(&workshop, platform, &path);
        // The threads' paths have one part each: 1, number, 2, two entries; the main thread has none.
        let thread = |number| log.windows(3).position(|words| words == [1, number, 2]);
        let (first, second) = (thread(0).expect("alice"), thread(1).expect("bob"));
        let as_it_was = acquires(&workshop, &program, "run.sync");
        assert_eq!(as_it_was.len(), 4, "{as_it_was:?}");
        // The other way round each thread takes the lock where the other one did.
        let mut turned = log.clone();
        for entry in 3..5 {
            turned.swap(first + entry, second + entry);
        }
        let bytes: Vec<u8> = turned.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(workshop.0.path().join("turned.sync"), bytes).expect("written");
        let other_way = acquires(&workshop, &program, "turned.sync");
        let other = |name: &String| as_it_was.iter().find(|other| *other != name).cloned();
        let expected: Vec<String> = as_it_was.iter().filter_map(other).collect();
        assert_eq!(other_way, expected, "{}", platform.name);
        let words = ["test", "--binary", "--from", "turned.sync"];
        let tested = workshop.foretell(&words, &[&program]);
        assert_eq!(tested.status.code(), Some(10), "{}: {tested:?}", platform.name);
        // Another program does something else.
        let barrier = workshop.build(platform, &source_of("ok_barrier"), &["-g"]);
        let strays = workshop.foretell(&words, &[&barrier.display().to_string()]);
        assert_eq!(strays.status.code(), Some(12), "{}: {strays:?}", platform.name);
        let said = String::from_utf8_lossy(&strays.stderr);
        assert!(said.contains("something else than the log"), "{said}");
    }
}

#[test]
fn how_branches_come_out_is_compared() {
    for platform in platforms() {
        let workshop = Workshop::new();
        let program = workshop.build(platform, &source_of("bank"), &["-g"]);
        let (_, report) = workshop.test(&program, &[]);
        // The assertion is the one branch of the program that can come out differently.
        let text = report.to_string();
        assert!(text.contains("took another path"), "{}: {report}", platform.name);
        let branches = report["statistics"]["branches"].as_u64();
        assert!(branches.is_some_and(|count| count > 0), "{}: {report}", platform.name);
    }
}
