//! Forcing as a user meets it: small programs, what `foretell test` says of them, and what
//! `foretell replay` does with the schedules.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use foretell_trace::schedule::Schedule;
use serde_json::Value;

#[path = "../../foretell-report/tests/common/schema.rs"]
mod schema;

/// A folder with programs, removed at the end of the test.
struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const HEAD: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdio.h>\n\
    #include <stdlib.h>\n#include \"foretell.h\"\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;\n\
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;\n\
    static void lock(void) { pthread_mutex_lock(&m); }\n\
    static void unlock(void) { pthread_mutex_unlock(&m); }\n";

/// `main` runs the two functions in threads, waits for them and does what `rest` says.
fn two_threads(body: &str, one: &str, other: &str, rest: &str) -> String {
    format!(
        "{HEAD}{body}\nint main(int count, char **words) {{ (void)count; (void)words;\n\
         pthread_t a, b;\n\
         pthread_create(&a, 0, {one}, 0); pthread_create(&b, 0, {other}, 0);\n\
         pthread_join(a, 0); pthread_join(b, 0);\n{rest}\nreturn 0; }}\n"
    )
}

/// No result may depend on how busy the machine is.
const UNHURRIED: &str = "[test]\nrun-limit = 900\ntime-limit = 3600\n[replay]\nrun-limit = 900\n";

/// Every access is locked, the deposit as a whole is not.
fn bank(rest: &str) -> String {
    let body = "static int balance = 100;\n\
        static int look(void) { lock(); int seen = balance; unlock(); return seen; }\n\
        static void put(int amount) { lock(); balance = amount; unlock(); }\n\
        static void deposit(int amount) { put(look() + amount); }\n\
        static void *alice(void *x) { deposit(10); return x; }\n\
        static void *bob(void *x) { deposit(20); return x; }";
    two_threads(body, "alice", "bob", rest)
}

impl Workshop {
    fn new(name: &str) -> Self {
        let name = format!("foretell-force-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("foretell.toml"), UNHURRIED).unwrap();
        Self(path)
    }

    fn foretell(&self, words: &[&str]) -> Output {
        self.foretell_reading(words, Stdio::null())
    }

    fn foretell_reading(&self, words: &[&str], input: impl Into<Stdio>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command.args(words).current_dir(&self.0).stdin(input);
        command.output().expect("foretell runs")
    }

    /// Builds the program; false where this machine cannot, which CI must.
    fn build(&self, name: &str, code: &str) -> bool {
        let source = format!("{name}.c");
        std::fs::write(self.0.join(&source), code).unwrap();
        let built = self.foretell(&["cc", "-O1", "-g", &source, "-o", name, "-pthread"]);
        let errors = text(&built.stderr);
        if errors.contains("foretell cc: error") {
            // The plugin and the runtime are libraries that `cargo test -p foretell` does not build.
            assert!(std::env::var_os("CI").is_none(), "CI builds all: {errors}");
            eprintln!("SKIPPED: {errors}");
            return false;
        }
        assert!(built.status.success(), "{errors}");
        true
    }

    /// Tests a program that was built: the exit code and the result.
    fn test(&self, words: &[&str]) -> (i32, Value) {
        let output = self.foretell(&[&["--format", "json", "test"], words].concat());
        self.result(&output)
    }

    fn result(&self, output: &Output) -> (i32, Value) {
        let code = output.status.code().unwrap_or(-1);
        let shown = text(&output.stderr);
        let object: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}, exit {code}: {shown}"));
        let schema: Value = serde_json::from_str(foretell_report::SCHEMA).unwrap();
        assert_eq!(schema::faults(&schema, &object), Vec::<String>::new());
        (code, object)
    }

    fn replay(&self, schedule: &str, words: &[&str]) -> (i32, Value) {
        let first = ["--format", "json", "replay", schedule, "--"];
        self.result(&self.foretell(&[&first, words].concat()))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit code, and kind, status and effect of each finding: `10: race confirmed none, ...`. Another
/// one of the same bug that says the same is left out.
fn told((code, result): &(i32, Value)) -> String {
    let mut told: Vec<String> = Vec::new();
    for finding in result["findings"].as_array().expect("findings") {
        let word = |name: &str| finding[name].as_str().unwrap_or("null").to_owned();
        let words = ["kind", "status", "effect"].map(word).join(" ");
        if finding["same_as"].is_null() || !told.contains(&words) {
            told.push(words);
        }
    }
    format!("{code}: {}", told.join(", "))
}

fn schedule_of<'r>(result: &'r Value, kind: &str) -> &'r str {
    let all = result["findings"].as_array().expect("findings");
    let found = all.iter().find(|finding| finding["kind"] == kind).expect("a finding of the kind");
    found["schedule"].as_str().expect("a schedule")
}

#[test]
fn a_failing_assertion_is_confirmed_and_explained() {
    let shop = Workshop::new("bank");
    if !shop.build("bank", &bank("assert(balance == 130);")) {
        return;
    }
    let tested = shop.test(&["./bank"]);
    assert_eq!(told(&tested), "10: assertion confirmed assertion, atomicity confirmed assertion");
    let result = tested.1;
    let first = &result["findings"][0];
    assert!(first["forced"]["ended"].as_str().unwrap().contains("SIGABRT"), "{first}");
    assert!(first["forced"]["stderr"].as_str().unwrap().contains("balance == 130"), "{first}");
    let why = first["explanation"]["text"].as_str().expect("why");
    assert!(why.starts_with("atomicity violation on `balance`"), "every access is locked: {why}");
    let command = first["replay"].as_str().expect("a command");
    assert!(
        command.starts_with("foretell replay ") && command.ends_with(" -- ./bank"),
        "{command}"
    );
}

#[test]
fn a_lost_update_shows_in_the_output() {
    let shop = Workshop::new("output");
    if !shop.build("bank", &bank("printf(\"%d\\n\", balance);")) {
        return;
    }
    let tested = shop.test(&["./bank"]);
    assert_eq!(told(&tested), "10: atomicity confirmed output");
    let result = &tested.1;
    let forced = &result["findings"][0]["forced"];
    let difference = forced["output_difference"].as_str().expect("a difference");
    assert!(difference.contains("-130\n+1"), "{difference}");
}

#[test]
fn a_lost_update_shows_in_a_declared_file() {
    let shop = Workshop::new("file");
    let rest = "FILE *out = fopen(\"balance.txt\", \"w\"); fprintf(out, \"%d\\n\", balance);\
                fclose(out);";
    if !shop.build("bank", &bank(rest)) {
        return;
    }
    let tested = shop.test(&["--writes", "balance.txt", "./bank"]);
    assert_eq!(told(&tested), "10: atomicity confirmed output");
    let tested = shop.test(&["./bank"]);
    assert_eq!(told(&tested), "0: ", "undeclared files are not compared");
    let result = &tested.1;
    assert_eq!(result["statistics"]["folded"], 1);
}

#[test]
fn correct_programs_end_with_nothing_found() {
    let shop = Workshop::new("correct");
    let whole = "static int balance = 100;\n\
        static void deposit(int amount) { lock(); balance += amount; unlock(); }\n\
        static void *alice(void *x) { deposit(10); return x; }\n\
        static void *bob(void *x) { deposit(20); return x; }";
    let handover = "static int ready;\n\
        static void *waiter(void *x) { lock(); while (!ready) pthread_cond_wait(&c, &m); unlock();\
        return x; }\n\
        static void *setter(void *x) { lock(); ready = 1; pthread_cond_signal(&c); unlock();\
        return x; }";
    // Who comes first is printed: the output of a correct program may depend on the order.
    let order = "static int first;\n\
        static int look(void) { lock(); int seen = first; unlock(); return seen; }\n\
        static void set(int to) { lock(); if (!first) first = to; unlock(); }\n\
        static void *one(void *x) { if (!look()) set(1); return x; }\n\
        static void *two(void *x) { if (!look()) set(2); return x; }";
    for (name, code) in [
        ("whole", two_threads(whole, "alice", "bob", "assert(balance == 130);")),
        ("handover", two_threads(handover, "waiter", "setter", "")),
        ("order", two_threads(order, "one", "two", "printf(\"%d\\n\", first);")),
    ] {
        if !shop.build(name, &code) {
            return;
        }
        let tested = shop.test(&[&format!("./{name}")]);
        assert_eq!(told(&tested), "0: ", "{name}: {}", tested.1);
    }
}

#[test]
fn a_torn_block_counts_when_the_user_marked_it() {
    let shop = Workshop::new("marked");
    let body = "static int x; static volatile int sink;\n\
        static int look(void) { lock(); int seen = x; unlock(); return seen; }\n\
        static void both(void) { FORETELL_ATOMIC_BEGIN(\"both\"); sink = look() + look();\
        FORETELL_ATOMIC_END(); }\n\
        static void *twice(void *a) { both(); return a; }\n\
        static void *set(void *a) { lock(); x = 1; unlock(); return a; }";
    if !shop.build("marked", &two_threads(body, "twice", "set", "")) {
        return;
    }
    let tested = shop.test(&["./marked"]);
    assert_eq!(told(&tested), "10: atomicity confirmed none");
    let tested = shop.test(&["--regions", "inferred", "./marked"]);
    assert_eq!(told(&tested), "0: ", "nobody can see it");
    let result = &tested.1;
    assert_eq!(result["statistics"]["folded"], 1, "but it is counted");
}

#[test]
fn deadlocks_and_lost_wakeups_are_confirmed_as_hangs() {
    let shop = Workshop::new("hang");
    let cycle = "static void *one(void *x) { lock(); pthread_mutex_lock(&n);\
        pthread_mutex_unlock(&n); unlock(); return x; }\n\
        static void *two(void *x) { pthread_mutex_lock(&n); lock(); unlock();\
        pthread_mutex_unlock(&n); return x; }";
    let lost = "static int ready;\n\
        static void *waiter(void *x) { lock(); int seen = ready; unlock();\
        if (!seen) { lock(); pthread_cond_wait(&c, &m); unlock(); } return x; }\n\
        static void *setter(void *x) { lock(); ready = 1; pthread_cond_signal(&c); unlock();\
        return x; }";
    for (name, body, threads) in
        [("cycle", cycle, ["one", "two"]), ("lost", lost, ["waiter", "setter"])]
    {
        if !shop.build(name, &two_threads(body, threads[0], threads[1], "")) {
            return;
        }
        let program = format!("./{name}");
        let tested = shop.test(&[&program]);
        assert_eq!(told(&tested), "10: deadlock confirmed hang", "{name}");
        let result = &tested.1;
        let (code, again) = shop.replay(schedule_of(result, "deadlock"), &[&program]);
        assert_eq!((code, &again["replay"]["effect"]), (10, &Value::from("hang")), "{name}");
        let ended = result["findings"][0]["forced"]["ended"].as_str().unwrap();
        assert!(ended.contains(&format!("thread {} waits for", threads[0])), "{ended}");
        let schedule = shop.0.join(schedule_of(result, "deadlock"));
        let schedule = std::fs::read_to_string(schedule).unwrap();
        assert!(schedule.contains(&format!("\nthread 0.0 \"{}\"\n", threads[0])), "{schedule}");
    }
}

#[test]
fn a_run_past_the_recorded_path_that_does_not_end_leaves_the_question_open() {
    let shop = Workshop::new("livelock");
    let body = "static int go, stop;\n\
        static int seen(int *what) { lock(); int value = *what; unlock(); return value; }\n\
        static void *one(void *x) { if (seen(&go)) while (!seen(&stop)) { } return x; }\n\
        static void *two(void *x) { lock(); go = 1; unlock(); return x; }";
    if !shop.build("livelock", &two_threads(body, "one", "two", "")) {
        return;
    }
    let tested = shop.test(&["./livelock"]);
    assert_eq!(told(&tested), "12: ");
    assert_eq!(tested.1["exploration"]["reasons"][0]["reason"], "the run is too long");
}

#[test]
fn a_second_insertion_past_the_recorded_path_is_found() {
    let shop = Workshop::new("insert");
    let body = "static int there, inserted;\n\
        static int look(void) { lock(); int seen = there; unlock(); return seen; }\n\
        static void insert(void) { lock(); there = 1; inserted++; unlock(); }\n\
        static void *work(void *x) { if (!look()) insert(); return x; }";
    if !shop.build("insert", &two_threads(body, "work", "work", "assert(inserted == 1);")) {
        return;
    }
    let tested = shop.test(&["./insert"]);
    assert_eq!(told(&tested), "10: assertion confirmed assertion");
    let result = &tested.1;
    let (code, again) = shop.replay(schedule_of(result, "assertion"), &["./insert"]);
    assert_eq!((code, &again["replay"]["effect"]), (10, &Value::from("assertion")));
}

/// The recorded run sells the last piece once. A second sale needs both threads between their look
/// and their first change, and the change that the second thread's look would see is a later one.
#[test]
fn a_second_sale_that_needs_one_more_interruption_is_found() {
    let shop = Workshop::new("sale");
    let body = "static int stock = 1, reserved;\n\
        static int available(void) { lock(); int n = stock - reserved; unlock(); return n; }\n\
        static void reserve(void) { lock(); reserved++; unlock(); }\n\
        static void ship(void) { lock(); reserved--; stock--; unlock(); }\n\
        static void *clerk(void *x) { if (available() >= 1) { reserve(); ship(); } return x; }";
    if !shop.build("sale", &two_threads(body, "clerk", "clerk", "assert(stock >= 0);")) {
        return;
    }
    let tested = shop.test(&["./sale"]);
    assert_eq!(told(&tested), "10: assertion confirmed assertion");
    let result = &tested.1;
    assert_eq!(result["exploration"]["covered"], true, "{result}");
    let found = &result["findings"][0];
    let why = found["explanation"]["text"].as_str().expect("why");
    assert!(why.contains("atomicity violation on `"), "{why}");
    let fix = found["fix"]["text"].as_str().expect("a fix");
    assert!(fix.starts_with("hold one mutex in `clerk` from its call of `available`"), "{fix}");
    let story = found["timeline"]["steps"].as_array().expect("the order in which it happened");
    assert!(story.len() >= 4, "{found}");
    let said = text(&shop.foretell(&["test", "./sale"]).stdout);
    assert!(said.contains("all behaviours of this input were covered"), "{said}");
    let (code, again) = shop.replay(schedule_of(result, "assertion"), &["./sale"]);
    assert_eq!((code, &again["replay"]["effect"]), (10, &Value::from("assertion")));
}

#[test]
fn what_a_budget_leaves_out_makes_a_test_incomplete() {
    let shop = Workshop::new("budget");
    let body = "static int seen[2];\n\
        static int look(void) { lock(); int n = seen[0]; unlock(); return n; }\n\
        static void set(void) { lock(); seen[0] = 1; unlock(); }\n\
        static void *work(void *x) { if (look()) lock(), unlock(); else set(); return x; }";
    if !shop.build("budget", &two_threads(body, "work", "work", "")) {
        return;
    }
    assert_eq!(shop.test(&["./budget"]).0, 0);
    let (code, result) = shop.test(&["--runs", "1", "./budget"]);
    let explored = &result["exploration"];
    assert_eq!((code, &explored["covered"]), (12, &Value::from(false)), "{explored}");
    assert!(explored["open"].as_u64() > Some(0), "{explored}");
    let (code, result) = shop.test(&["--paths", "recorded", "./budget"]);
    assert_eq!(code, 12, "the path can be left: {}", result["exploration"]);
    let said = result["exploration"]["reasons"].to_string();
    assert!(said.contains("only the recorded path was asked for"), "{said}");
}

#[test]
fn what_the_time_leaves_out_is_said_and_makes_a_test_incomplete() {
    let shop = Workshop::new("time");
    if !shop.build("bank", &bank("assert(balance == 130);")) {
        return;
    }
    let (code, result) = shop.test(&["--time-limit", "0", "./bank"]);
    let unseen = result["unseen"].to_string();
    assert_eq!((code, result["findings"].as_array().map(Vec::len)), (12, Some(0)), "{unseen}");
    assert!(unseen.contains("time limit"), "{unseen}");
    assert_eq!(result["statistics"]["runs"], 1);
}

#[test]
fn a_race_counts_whatever_comes_of_it() {
    let shop = Workshop::new("race");
    let body = "static volatile int x;\n\
        static void *set(void *a) { x = 1; return a; }";
    if !shop.build("race", &two_threads(body, "set", "set", "")) {
        return;
    }
    let tested = shop.test(&["./race"]);
    assert_eq!(told(&tested), "10: race confirmed none");
}

#[test]
fn a_bad_recorded_run_is_itself_a_finding() {
    let shop = Workshop::new("bad");
    let body = "static void *nothing(void *x) { return x; }";
    if !shop.build("bad", &two_threads(body, "nothing", "nothing", "assert(count > 1);")) {
        return;
    }
    let tested = shop.test(&["./bad"]);
    assert_eq!(told(&tested), "10: assertion confirmed assertion");
    let result = &tested.1;
    let (code, _) = shop.replay(schedule_of(result, "assertion"), &["./bad"]);
    assert_eq!(code, 10);
    assert_eq!(shop.test(&["./bad", "argument"]).0, 0);
    let said = text(&shop.foretell(&["test", "./bad"]).stdout);
    assert!(said.contains("confirmed: the assertion failed in the recorded run"), "{said}");
    assert!(!said.contains("forced run"), "{said}");
}

#[test]
fn how_the_recorded_run_ended_is_said_with_its_place_below_the_working_folder() {
    let shop = Workshop::new("ended");
    let body = "static void *nothing(void *x) { return x; }";
    let rest = "if (count > 1) { int *volatile nowhere = 0; *nowhere = 1; } return 3;";
    if !shop.build("ended", &two_threads(body, "nothing", "nothing", rest)) {
        return;
    }
    let tested = shop.foretell(&["test", "./ended"]);
    let said = text(&tested.stdout);
    assert_eq!(tested.status.code(), Some(0), "{said}");
    assert!(said.contains("the recorded run ended with exit 3"), "{said}");
    let said = text(&shop.foretell(&["test", "./ended", "crash"]).stdout);
    assert!(said.contains("died: signal 11 (SIGSEGV) at ended.c:"), "{said}");
}

#[test]
fn a_trace_is_not_taken_for_a_result() {
    let shop = Workshop::new("trace");
    if !shop.build("bank", &bank("")) {
        return;
    }
    assert!(shop.foretell(&["record", "-o", "bank.ftrace", "--", "./bank"]).status.success());
    let refused = shop.foretell(&["report", "bank.ftrace"]);
    assert_eq!(refused.status.code(), Some(2));
    let errors = text(&refused.stderr);
    assert!(errors.contains("this is a trace, and a result is expected"), "{errors}");
}

#[test]
fn every_run_reads_the_same_standard_input_and_replays_ask_for_it() {
    let shop = Workshop::new("stdin");
    let code =
        bank("int wanted; if (scanf(\"%d\", &wanted) != 1) return 3; assert(balance == wanted);");
    if !shop.build("bank", &code) {
        return;
    }
    let number = |number: &str| {
        std::fs::write(shop.0.join("number"), number).unwrap();
        std::fs::File::open(shop.0.join("number")).unwrap()
    };
    let words = ["--format", "json", "test", "./bank"];
    let (code, result) = shop.result(&shop.foretell_reading(&words, number("130")));
    assert_eq!(code, 10, "{result}");
    let words = ["replay", schedule_of(&result, "assertion"), "--", "./bank"];
    let again = shop.foretell_reading(&words, number("130"));
    assert_eq!(again.status.code(), Some(10), "{}", text(&again.stderr));
    for other in [shop.foretell_reading(&words, number("131")), shop.foretell(&words)] {
        assert_eq!(other.status.code(), Some(2));
        assert!(text(&other.stderr).contains("standard input"), "{}", text(&other.stderr));
    }
}

#[test]
fn another_build_another_input_and_an_edited_schedule_are_refused() {
    let shop = Workshop::new("refused");
    if !shop.build("bank", &bank("assert(balance == 130);")) {
        return;
    }
    let (_, result) = shop.test(&["./bank"]);
    let schedule = schedule_of(&result, "assertion");
    let refused = |schedule: &str, words: &[&str], expected: &str| {
        let output = shop.foretell(&[&["replay", schedule, "--"], words].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    };
    refused(schedule, &["./bank", "argument"], "the arguments");
    refused(schedule, &["./nothing-here"], "no program");
    assert!(shop.build("other", &bank("assert(balance == 131 - 1);puts(\"\");")));
    refused(schedule, &["./other"], "build id");
    let content = std::fs::read_to_string(shop.0.join(schedule)).unwrap();
    std::fs::write(shop.0.join("edited"), content.replacen(" acquire ", " release ", 1)).unwrap();
    refused("edited", &["./bank"], "was changed");
    std::fs::write(shop.0.join("cut"), &content[..content.len() / 2]).unwrap();
    refused("cut", &["./bank"], "cut");
    refused("absent", &["./bank"], "absent");
}

#[test]
fn a_step_that_the_program_does_not_take_is_named() {
    let shop = Workshop::new("diverges");
    if !shop.build("bank", &bank("assert(balance == 130);")) {
        return;
    }
    let (_, result) = shop.test(&["./bank"]);
    let content = std::fs::read_to_string(shop.0.join(schedule_of(&result, "assertion"))).unwrap();
    let mut schedule = Schedule::parse(&content).unwrap();
    let read = schedule.steps.iter().position(|step| &*step.operation == "read").expect("a read");
    schedule.steps[read].operation = "write".into();
    std::fs::write(shop.0.join("wrong"), schedule.to_string()).unwrap();
    let (code, result) = shop.replay("wrong", &["./bank"]);
    let reason = result["replay"]["reason"].as_str().expect("a reason");
    assert_eq!((code, &result["replay"]["status"]), (12, &Value::from("predicted")), "{reason}");
    assert!(reason.contains(&format!("step {} should be write", read + 1)), "{reason}");
    assert!(reason.contains("but was read") && reason.contains("bank.c:"), "{reason}");
}

#[test]
fn gdb_stops_at_the_violating_event() {
    let shop = Workshop::new("gdb");
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no gdb on this machine");
        return;
    }
    if !shop.build("bank", &bank("printf(\"%d\\n\", balance);")) {
        return;
    }
    let (_, result) = shop.test(&["./bank"]);
    std::fs::write(shop.0.join("commands"), "echo stopped\\n\nbacktrace\nkill\nquit\n").unwrap();
    let words = ["replay", "--gdb", schedule_of(&result, "atomicity"), "--", "./bank"];
    let commands = std::fs::File::open(shop.0.join("commands")).unwrap();
    let output = shop.foretell_reading(&words, commands);
    let output = text(&output.stdout) + &text(&output.stderr);
    if output.contains("ptrace: Operation not permitted") {
        eprintln!("SKIPPED: this machine lets nobody trace processes");
        return;
    }
    let after = output.split("stopped").nth(1).unwrap_or_default();
    assert!(after.contains("put ") && after.contains("deposit "), "{output}");
}

/// How often a schedule is replayed: the nightly run says more.
fn replays(usually: usize) -> usize {
    std::env::var("FORETELL_REPLAYS").ok().and_then(|n| n.parse().ok()).unwrap_or(usually)
}

/// Replays a schedule again and again while two threads keep the cores busy.
fn all_alike(shop: &Workshop, schedule: &str, program: &str, times: usize) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::black_box((0..1000).sum::<u64>());
                }
            });
        }
        let outcome = || {
            let (code, result) = shop.replay(schedule, &[program]);
            (code, result["replay"].clone())
        };
        let first = outcome();
        let differs = (1..times).map(|_| outcome()).find(|other| *other != first);
        done.store(true, Ordering::Relaxed);
        assert_eq!(first.0, 10, "{}", first.1);
        assert_eq!(differs, None, "first came {first:?}");
    });
}

#[test]
fn replays_of_an_assertion_are_all_alike_under_load() {
    let shop = Workshop::new("alike");
    if !shop.build("bank", &bank("assert(balance == 130);")) {
        return;
    }
    let (_, result) = shop.test(&["./bank"]);
    all_alike(&shop, schedule_of(&result, "assertion"), "./bank", replays(100));
}

#[test]
fn the_replay_command_has_the_options_of_the_test() {
    let shop = Workshop::new("options");
    if !shop.build("bank", &bank("assert(balance == 130);")) {
        return;
    }
    let (_, result) = shop.test(&["--after", "round-robin:3", "./bank"]);
    let command = result["findings"][0]["replay"].as_str().expect("a command");
    assert!(command.starts_with("foretell replay --after round-robin:3 "), "{command}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(shop.foretell(&words).status.code(), Some(10), "{command}");
}

#[test]
fn an_unknown_option_is_not_taken_for_a_program() {
    let refused = Workshop::new("unknown").foretell(&["test", "--bogus", "bank.c"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("there is no option `--bogus`"));
}
