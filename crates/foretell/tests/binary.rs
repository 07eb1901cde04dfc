//! Binaries that nobody recompiled, as a user meets them: built by Debian's compilers, tested and
//! replayed under QEMU. What is found is known from the programs' own sources (`examples/`).

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
}

const PLATFORMS: [Platform; 3] = [
    Platform { name: "x86-64", compiler: "gcc", emulator: "qemu-x86_64" },
    Platform { name: "AArch64", compiler: "aarch64-linux-gnu-gcc", emulator: "qemu-aarch64" },
    Platform { name: "ARM", compiler: "arm-linux-gnueabihf-gcc", emulator: "qemu-arm" },
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
    for Platform { name, compiler, emulator } in absent {
        println!("SKIPPED: binaries for {name}: there is no {compiler} or no {emulator}");
    }
    there
}

/// How often a schedule is replayed; the nightly run asks for more.
fn replays() -> usize {
    std::env::var("FORETELL_BINARY_REPLAYS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

fn example(name: &str) -> PathBuf {
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

    fn test(&self, program: &Path) -> (Option<i32>, Value) {
        let words = ["--format", "json", "test", "--binary", "--schedules", "schedules"];
        let output = self.foretell(&words, &[&program.display().to_string()]);
        let report = serde_json::from_slice(&output.stdout);
        let text = || String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {}", text())))
    }
}

/// The kinds of the findings that were confirmed.
fn confirmed(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("a list");
    let confirmed = findings.iter().filter(|finding| finding["status"] == "confirmed");
    confirmed.filter_map(|finding| finding["kind"].as_str()).collect()
}

/// The example is found as its kind on the platform, and happens again each time. Without debug
/// information if it is to be `stripped`, and static if it is to be `fixed`.
fn found(platform: Platform, name: &str, kind: &str, stripped: bool, fixed: bool) {
    let workshop = Workshop::new();
    let mut options = vec![if stripped { "-s" } else { "-g" }];
    options.extend(fixed.then_some("-static"));
    let program = workshop.build(platform, &example(name), &options);
    let (exit, report) = workshop.test(&program);
    assert_eq!(exit, Some(10), "{name} on {}: {report}", platform.name);
    assert!(confirmed(&report).contains(&kind), "{name} on {}: {report}", platform.name);
    if !stripped {
        let place = format!("{name}.c");
        assert!(report.to_string().contains(&place), "source positions: {report}");
    }
    let findings = report["findings"].as_array().expect("a list");
    let finding = findings.iter().find(|finding| finding["kind"] == kind).expect("as above");
    let schedule = finding["schedule"].as_str();
    let schedule = schedule.unwrap_or_else(|| panic!("a schedule: {finding}")).to_owned();
    let text = std::fs::read_to_string(workshop.0.path().join(&schedule)).expect("a schedule");
    assert!(text.contains("\nrunner qemu\n"), "it says that it is of a binary: {text}");
    for _ in 0..replays() {
        let replayed = workshop.foretell(&["replay", &schedule], &[&program.display().to_string()]);
        assert_eq!(replayed.status.code(), Some(10), "{replayed:?}");
    }
}

/// Nothing is found in a correct program, and nobody says that everything was covered.
fn quiet(platform: Platform, name: &str, stripped: bool) {
    let workshop = Workshop::new();
    let options = [if stripped { "-s" } else { "-g" }];
    let program = workshop.build(platform, &example(name), &options);
    let (exit, report) = workshop.test(&program);
    assert_eq!(exit, Some(12), "{name} on {}: {report}", platform.name);
    assert_eq!(report["findings"], Value::Array(Vec::new()), "{name} on {}", platform.name);
}

#[test]
fn lost_updates_are_found_and_happen_again() {
    for (number, platform) in platforms().into_iter().enumerate() {
        found(platform, "bank", "assertion", number % 2 == 0, false);
    }
}

#[test]
fn deadlocks_are_found_and_happen_again() {
    for (number, platform) in platforms().into_iter().enumerate() {
        found(platform, "abba_deadlock", "deadlock", number % 2 == 1, false);
    }
}

#[test]
fn static_binaries_are_told_from_their_library_by_its_archive() {
    for platform in platforms() {
        found(platform, "bank", "assertion", false, true);
    }
}

#[test]
fn correct_programs_stay_quiet() {
    for (number, platform) in platforms().into_iter().enumerate() {
        quiet(platform, "ok_bank", number % 2 == 0);
        quiet(platform, "ok_refcount", number % 2 == 1);
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
            for schedule in ["round-robin:1", "round-robin:2", "random:5:2"] {
                let words = ["record", "--binary", "--schedule", schedule, "--time-limit", "900"];
                let recorded = workshop.foretell(&words, &[&program, what]);
                let code = recorded.status.code();
                assert_eq!(code, Some(status), "{} {what} {schedule}", platform.name);
                let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
                assert_eq!(valid, Some(0), "{} {what} {schedule}: {said}", platform.name);
            }
        }
    }
}

#[test]
fn what_is_not_there_is_said_before_anything_runs() {
    let workshop = Workshop::new();
    let script = workshop.source("script", "#!/bin/sh\necho ran\n");
    let words = ["record", "--binary"];
    let refused = |program: &Path, environment: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command.current_dir(workshop.0.path()).args(words).arg("--").arg(program);
        if let Some(path) = environment {
            command.env("PATH", path);
        }
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "nothing ran: {output:?}");
        assert!(!workshop.0.path().join("run.ftrace").exists(), "no file is left");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&script, None);
    assert!(said.contains("no executable for Linux"), "{said}");
    // The machine of an ELF file is in its bytes 18 and 19: this is for RISC-V.
    let own = std::env::current_exe().expect("this test");
    let mut foreign = std::fs::read(&own).expect("readable");
    foreign[18] = 0xf3;
    let path = workshop.0.path().join("foreign");
    std::fs::write(&path, foreign).expect("written");
    let said = refused(&path, None);
    assert!(said.contains("another architecture") && said.contains("AArch64"), "{said}");
    if let Some(&platform) = platforms().first() {
        let source = workshop.source("empty.c", "int main(void) { return 0; }\n");
        let said = refused(&workshop.build(platform, &source, &["-static", "-s"]), None);
        assert!(said.contains("stripped of its symbols"), "{said}");
    }
    let empty = workshop.0.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let said = refused(&own, Some(&empty));
    assert!(said.contains("qemu-user"), "the package is named: {said}");
    // One without plugins, as a statically linked QEMU is.
    let plain = empty.join("qemu-x86_64");
    std::fs::write(&plain, "#!/bin/sh\necho usage: qemu\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&plain, mode).expect("executable");
    let said = refused(&own, Some(&empty));
    assert!(said.contains("takes no plugins") && said.contains("7.2"), "{said}");
}

#[test]
fn a_binary_that_does_something_else_diverges() {
    let Some(&platform) = platforms().first() else { return };
    let workshop = Workshop::new();
    let source = std::fs::read_to_string(example("bank")).expect("readable");
    // Without a build id nobody can tell that it is another program.
    let options = ["-g", "-Wl,--build-id=none"];
    let program = workshop.build(platform, &workshop.source("bank.c", &source), &options);
    let (_, report) = workshop.test(&program);
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
