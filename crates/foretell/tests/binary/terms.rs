//! What the instructions of binaries compute (`--symbolic`): held against what they did, and against programs of
//! which everything is known.

use std::fmt::Write as _;
use std::path::Path;

use foretell_truth::machine::{Constraint, Machine, Truth};
use foretell_truth::program::{Program, Shape};
use foretell_truth::random::Random;
use serde_json::Value;

use crate::{PLATFORMS, Platform, Workshop, platform};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A function of shared variables of all sizes, with whatever C has for integers.
fn computation(seed: u64) -> String {
    let mut random = Random::new(seed);
    let types = ["unsigned char", "short", "int", "unsigned", "long long", "unsigned long long"];
    let mut text = String::from("#include <pthread.h>\n#include <stdio.h>\n");
    for (at, kind) in types.iter().enumerate() {
        let value = random.below(1 << 20);
        writeln!(text, "static volatile {kind} v{at} = ({kind}){value}; static {kind} w{at};")
            .expect("text");
    }
    text += "static int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};\nstatic long long part(long long a, int b) { return a * 3 + b; }\n";
    text += "static void *work(void *unused) {\n";
    for step in 0..24 {
        let variable = |random: &mut Random| format!("v{}", random.below(6));
        let (a, b, c) = (variable(&mut random), variable(&mut random), random.below(29) + 1);
        let to = random.below(6);
        let kind = types[to];
        let expression = match random.below(14) {
            0 => format!("{a} + {b}"),
            1 => format!("{a} - {b} * {c}"),
            2 => format!("({a} & {b}) | {c}"),
            3 => format!("{a} ^ ({b} << {})", c % 7),
            4 => format!("(unsigned){a} >> {}", c % 9),
            5 => format!("{a} >> {}", c % 5),
            6 => format!("{a} / {c} + {b} % {c}"),
            7 => format!("{a} < {b} ? {a} : {c}"),
            8 => format!("-{a} + !{b} + ~{a}"),
            9 => format!("(signed char){a} * (unsigned short){b}"),
            10 => format!("table[{a} & 7] + w{}", random.below(6)),
            11 => format!("part({a}, (int){b})"),
            12 => format!("({a} == {b}) + ({a} <= {c}) + ((unsigned){b} > {c}u)"),
            _ => format!("(long long)((double){a} * 0.5) + {b}"),
        };
        match step % 3 {
            0 => writeln!(text, "  w{to} = ({kind})({expression});"),
            1 => writeln!(text, "  if ({expression}) v{to} = ({kind})({expression});"),
            _ => writeln!(text, "  v{to} = ({kind})({expression});"),
        }
        .expect("text");
    }
    text += "  return unused; }\nint main(void) {\n  pthread_t a, b;\n  pthread_create(&a, 0, work, 0); \
             pthread_create(&b, 0, work, 0);\n  pthread_join(a, 0); pthread_join(b, 0);\n  return 0; }\n";
    text
}

/// Every expression of a recording has the value that the processor computed: the validator, which shares no code
/// with the plugin, evaluates each. And there are such expressions.
fn terms_are_what_was_computed(platform_number: usize) {
    let Some(platform) = platform(platform_number) else { return };
    let programs = number("FORETELL_BINARY_PROGRAMS", 6);
    for seed in 0..programs {
        let workshop = Workshop::new();
        let source = workshop.source("computes.c", &computation(seed));
        let level = ["-O0", "-O1", "-O2", "-O3"][seed as usize % 4];
        let program = workshop.build(platform, &source, &["-g", level]).display().to_string();
        let words = ["record", "--binary", "--symbolic", "--schedule", "random:3:5", "-o"];
        let words = [&words[..], &["run.ftrace"]].concat();
        let recorded = workshop.foretell(&words, &[&program]);
        let at = format!("{} {level}, seed {seed}", platform.name);
        assert_eq!(recorded.status.code(), Some(0), "{at}: {recorded:?}");
        let (valid, said) = workshop.run(&["trace", "validate", "run.ftrace"]);
        assert_eq!(valid, Some(0), "{at}: {said}");
        let (_, text) = workshop.run(&["trace", "cat", "run.ftrace"]);
        assert!(!text.contains("\ngap "), "everything was followed or held: {at}: {text}");
        let is_write = |line: &&str| line.contains(" write w") || line.contains(" write v");
        let writes = text.lines().filter(is_write).count();
        let expressions = text.lines().filter(is_write).filter(|line| line.contains(":=")).count();
        assert!(expressions * 3 > writes, "{at}: {expressions} of {writes}: {text}");
        assert!(text.lines().any(|line| line.contains(" branch ")), "{at}");
    }
}

#[test]
fn expressions_have_the_values_that_x86_64_computed() {
    terms_are_what_was_computed(0);
}

#[test]
fn expressions_have_the_values_that_aarch64_computed() {
    terms_are_what_was_computed(1);
}

#[test]
fn expressions_have_the_values_that_arm_computed() {
    terms_are_what_was_computed(2);
}

/// A random program as a binary: nothing is confirmed that it cannot do, and nobody says that everything is well.
fn is_true(platform: Platform, seed: u64) -> (bool, bool) {
    // With optimisation the compiler may change what programs with races can do.
    let optimised = !seed.is_multiple_of(3);
    let shape = Shape {
        branches: seed % 2 == 1,
        waiting: seed % 4 >= 2,
        indices: seed % 8 >= 4,
        spins: false,
        pointers: seed % 7 == 3,
        limits: false,
        race_free: optimised,
    };
    let (_, emitted) = Program::random(seed, shape);
    let truth: Truth =
        Machine::new(&emitted.code).explore(&Constraint::default(), usize::MAX).expect("no limit");
    let workshop = Workshop::new();
    let level = if optimised { ["-O1", "-O2", "-O3"][seed as usize % 3] } else { "-O0" };
    let source = workshop.source("p.c", &emitted.c);
    let program = workshop.build(platform, &source, &["-g", level]);
    let program = program.to_str().expect("a path");
    let at = format!("{} {level}, seed {seed}", platform.name);
    let words = ["--format", "json", "test", "--binary", "--symbolic", "--runs", "60"];
    let output = workshop.foretell(&words, &[program]);
    let said = || format!("{at}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said()));
    let mut found = false;
    for finding in report["findings"].as_array().into_iter().flatten() {
        if finding["status"] != "confirmed" {
            continue;
        }
        found = true;
        let ended = finding["forced"]["ended"].as_str().unwrap_or_default();
        match finding["effect"].as_str() {
            Some("assertion") => {
                let line = ended.rsplit(':').next().and_then(|line| line.parse().ok());
                let fails = line.is_some_and(|line: u32| truth.failures.contains(&line));
                assert!(fails, "{at}: it cannot fail there: {finding:#}");
            }
            Some("hang") => assert!(truth.deadlock, "{at}: no deadlock is possible: {finding:#}"),
            Some("crash") => panic!("{at}: no program here crashes: {finding:#}"),
            _ => assert!(
                !truth.failures.is_empty() || !truth.races.is_empty() || truth.outputs.len() > 1,
                "{at}: it always does the same: {finding:#}"
            ),
        }
    }
    let code = output.status.code();
    assert!(matches!(code, Some(10..=12)), "{}", said());
    let gaps = report.to_string();
    assert!(!gaps.contains("contradicted the recorded values"), "{at}: {report}");
    (found, !truth.failures.is_empty() || truth.deadlock)
}

#[test]
fn nothing_is_confirmed_in_binaries_that_cannot_be() {
    let programs = number("FORETELL_BINARY_PROGRAMS", 6);
    let first = number("FORETELL_TRUTH_SEED", 0);
    let (mut found, mut failing) = (0, 0);
    for seed in first..first + programs {
        let Some(platform) = platform(seed as usize % PLATFORMS.len()) else { continue };
        let (confirmed, fails) = is_true(platform, seed);
        found += u64::from(confirmed && fails);
        failing += u64::from(fails);
    }
    println!("{found} of {failing} programs that can fail were found");
}

/// What is predicted of another value, and not only tried: no run without forcing shows it.
const DEPENDS: &str = r#"
#include <assert.h>
#include <pthread.h>
static int price = 10, budget = 100, bought;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *raise(void *x) { pthread_mutex_lock(&lock); price = price * 5 + 7; pthread_mutex_unlock(&lock); return x; }
static void *buy(void *x) {
  pthread_mutex_lock(&lock); int seen = price; pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock); bought = budget - seen * 2; pthread_mutex_unlock(&lock);
  return x; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, buy, 0); pthread_create(&b, 0, raise, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(bought != 100 - 57 * 2);
  return 0; }
"#;

#[test]
fn a_failure_that_needs_another_value_is_predicted_from_expressions() {
    for number in 0..PLATFORMS.len() {
        let Some(platform) = platform(number) else { continue };
        let workshop = Workshop::new();
        let options = ["-g", "-O2"];
        let program = workshop.build(platform, &workshop.source("depends.c", DEPENDS), &options);
        let words = ["--format", "json", "test", "--binary", "--symbolic", "--schedules", "found"];
        let name = program.to_str().expect("a path");
        let tested = workshop.foretell(&words, &[name]);
        assert_eq!(tested.status.code(), Some(10), "{}: {tested:?}", platform.name);
        let report: Value = serde_json::from_slice(&tested.stdout).expect("a report");
        let findings = report["findings"].as_array().expect("a list").iter();
        let found = findings.filter(|finding| finding["effect"] == "assertion");
        let schedule = found.filter_map(|finding| finding["schedule"].as_str()).next();
        let schedule = schedule.unwrap_or_else(|| panic!("{}: {report:#}", platform.name));
        let text = std::fs::read_to_string(Path::new(workshop.0.path()).join(schedule));
        assert!(text.expect("a schedule").contains("\nrunner \"qemu-symbolic\"\n"));
        let replayed = workshop.foretell(&["replay", schedule], &[name]);
        assert_eq!(replayed.status.code(), Some(10), "{}: {replayed:?}", platform.name);
    }
}
