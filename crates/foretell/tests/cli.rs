//! The command line as a user meets it: output, exit codes, errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

#[path = "../../foretell-report/tests/common/schema.rs"]
mod schema;
use schema::faults;

fn foretell(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_foretell")).args(arguments).output().expect("foretell runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("errors are UTF-8")
}

/// A folder that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("foretell-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/traces")
        .join(name)
        .display()
        .to_string()
}

fn valid_json(output: &Output) -> Value {
    let object: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let schema: Value = serde_json::from_str(&stdout(&foretell(&["schema"]))).expect("JSON");
    let faults = faults(&schema, &object);
    assert!(faults.is_empty(), "{faults:#?}");
    object
}

#[test]
fn a_locked_bank_is_still_torn_and_loses_money() {
    let scratch = Scratch::new("bank");
    let schedules = scratch.path("schedules");
    let output = foretell(&["predict", &example("bank.ft"), "--schedules", &schedules]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(11), "{text}{}", stderr(&output));
    assert!(text.contains("predicted[atomicity]") && text.contains("RWW: "), "{text}");
    assert!(text.contains("assertion"), "{text}");
    assert!(text.contains("bank.c:12"), "{text}");
    assert!(!text.contains("\u{1b}["), "no colours when piped: {text}");
    let files: Vec<_> = std::fs::read_dir(&schedules).unwrap().map(|f| f.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let schedule = std::fs::read_to_string(&file).unwrap();
        foretell_trace::schedule::Schedule::parse(&schedule).expect("a schedule reads back");
    }
}

#[test]
fn json_fits_the_published_schema() {
    let scratch = Scratch::new("json");
    let schedules = scratch.path("s");
    let bank = example("bank.ft");
    for arguments in [
        vec!["--format", "json", "predict", &bank, "--schedules", &schedules],
        vec!["--format", "json", "predict", &bank, "--schedules", &schedules, "--model", "causal"],
        vec!["--format", "json", "trace", "info", &bank],
        vec!["--format", "json", "trace", "validate", &bank],
        vec!["--format", "json", "doctor"],
    ] {
        let object = valid_json(&foretell(&arguments));
        assert_eq!(object["version"], 1);
    }
    let predicted =
        valid_json(&foretell(&["--format", "json", "predict", &bank, "--schedules", &schedules]));
    let kinds: Vec<&str> = predicted["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"atomicity") && kinds.contains(&"assertion"), "{kinds:?}");
}

#[test]
fn a_correct_program_ends_with_0_and_says_for_how_much_that_holds() {
    let scratch = Scratch::new("correct");
    let text = std::fs::read_to_string(example("bank.ft")).unwrap();
    // Hold the lock from the read to the write.
    let held: String = text
        .lines()
        .filter(|line| !line.contains("bank.c:13") && !line.contains("bank.c:15"))
        .fold(String::new(), |all, line| all + line + "\n");
    let file = scratch.file("held.ft", held.as_bytes());
    let output = foretell(&["predict", &file, "--schedules", &scratch.path("s")]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    assert!(text.contains("holds in all interleavings"), "{text}");
    assert!(!Path::new(&scratch.path("s")).exists(), "no schedules, no folder");
}

#[test]
fn every_engine_goals_pddl_and_smt2_dumps_work_from_the_command_line() {
    let scratch = Scratch::new("engines");
    let (bank, schedules) = (example("bank.ft"), scratch.path("s"));
    let predict = |engine: &str| {
        let output = foretell(&["predict", &bank, "--engine", engine, "--schedules", &schedules]);
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let (code, text) = predict("solver");
    assert_eq!(code, Some(11), "{text}");
    // Bob's recorded read saw Alice's write, so no run in which it sees the same tears her block:
    // the planner has nothing and says that it did not look at everything.
    let (code, text) = predict("planner");
    assert_eq!(code, Some(12), "{text}");
    assert!(!text.contains("all interleavings"), "{text}");
    // A lock-valid run exists, and is not sold as a prediction.
    let (code, text) = predict("combined");
    assert_eq!(code, Some(12), "{text}");
    assert!(text.contains("undecided"), "{text}");
    let pddl = scratch.path("pddl");
    let goal = "F(alice#2 & X F alice#5)";
    let output = foretell(&[
        "predict",
        &bank,
        "--engine",
        "planner",
        "--goal",
        goal,
        "--pddl",
        &pddl,
        "--schedules",
        &schedules,
    ]);
    assert_eq!(output.status.code(), Some(11), "{}{}", stdout(&output), stderr(&output));
    let domain = std::fs::read_to_string(Path::new(&pddl).join("goal-1/domain.pddl")).unwrap();
    assert!(domain.contains("(:action ac-2-3"), "{domain}");
    let unknown = foretell(&["predict", &bank, "--goal", "F(nobody)", "--schedules", &schedules]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("nobody"), "{}", stderr(&unknown));
    let dumps = scratch.path("smt2");
    let output = foretell(&[
        "predict",
        &bank,
        "--property",
        "assertion",
        "--dump-smt2",
        &dumps,
        "--schedules",
        &schedules,
    ]);
    assert_eq!(output.status.code(), Some(11), "{}", stderr(&output));
    let question = std::fs::read_to_string(Path::new(&dumps).join("question-1.smt2")).unwrap();
    assert!(question.contains("(check-sat)") && question.contains("alice"), "{question}");
    // The question is one: Z3 finds the same answer.
    let z3 = Command::new("z3").arg(Path::new(&dumps).join("question-1.smt2")).output();
    match z3 {
        Ok(answer) => assert!(stdout(&answer).starts_with("sat"), "{}", stdout(&answer)),
        Err(error) => eprintln!("SKIPPED: z3: {error}"),
    }
}

#[test]
fn explain_gives_the_formula_the_bug_and_a_verified_fix() {
    let scratch = Scratch::new("explain");
    let picture = scratch.path("bank.svg");
    let output = foretell(&["explain", &example("bank.ctrc"), "--svg", &picture]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(11), "{text}{}", stderr(&output));
    // 001 Fig. 1 and Example 3.2.
    assert!(text.contains("hb(d1[22],w2[13])") && text.contains("hb(w1[12],d2[23])"), "{text}");
    assert!(text.contains("verified"), "{text}");
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    let object = valid_json(&foretell(&["--format", "json", "explain", &example("bank.ctrc")]));
    assert_eq!(object["explanation"]["verdict"], "depends");
}

/// Not everything that a binary does is seen.
#[test]
fn a_trace_of_a_binary_is_never_all_clear() {
    let scratch = Scratch::new("binary-trace");
    for (name, head, code) in [("source.ft", "", 0), ("binary.ft", "machine-code\n", 12)] {
        let file = scratch.path(name);
        let text = format!(
            "foretell-trace 1\n{head}thread main\nvar x : bv32 = 0\nmain begin\nmain write x = 1\nmain end\n"
        );
        std::fs::write(&file, text).expect("a file");
        let predicted = foretell(&["predict", &file]);
        assert_eq!(predicted.status.code(), Some(code), "{name}: {}", stderr(&predicted));
    }
}

#[test]
fn a_program_is_built_recorded_and_predicted_from() {
    let scratch = Scratch::new("record");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bank/bank.c");
    let (program, trace) = (scratch.path("bank"), scratch.path("bank.ftrace"));
    let built =
        foretell(&["cc", "-O1", "-g", &source.display().to_string(), "-o", &program, "-pthread"]);
    if stderr(&built).contains("foretell cc: error") {
        // The plugin and the runtime are libraries that `cargo test -p foretell` does not build.
        assert!(std::env::var_os("CI").is_none(), "CI builds all: {}", stderr(&built));
        eprintln!("SKIPPED: {}", stderr(&built));
        return;
    }
    assert_eq!(built.status.code(), Some(0), "{}", stderr(&built));
    let recorded = foretell(&["record", "-o", &trace, "--", &program]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    assert_eq!(stdout(&recorded), "balance: 130\n");
    let valid = foretell(&["trace", "validate", &trace]);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));
    let object = valid_json(&foretell(&["--format", "json", "trace", "validate", &trace]));
    assert_eq!(object["valid"], true);
    let recorded = foretell(&["--format", "json", "record", "-o", &trace, "--", &program]);
    assert_eq!(valid_json(&recorded)["end"]["status"], 0);
    let predicted = foretell(&["predict", &trace, "--schedules", &scratch.path("s")]);
    let text = stdout(&predicted);
    assert_eq!(predicted.status.code(), Some(11), "{text}{}", stderr(&predicted));
    assert!(text.contains("predicted[atomicity]: ") && text.contains("`balance`"), "{text}");
    assert!(text.contains("predicted[assertion]: "), "{text}");
}

#[test]
fn traces_convert_and_convert_back() {
    let scratch = Scratch::new("convert");
    let binary = scratch.path("bank.ftrace");
    let back = scratch.path("back.ft");
    let first = foretell(&["trace", "convert", &example("bank.ft"), "-o", &binary]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let second = foretell(&["trace", "convert", &binary, "-o", &back]);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    let cat = |file: &str| stdout(&foretell(&["trace", "cat", file]));
    assert_eq!(cat(&example("bank.ft")), cat(&back));
}

#[test]
fn bad_input_is_told_with_place_and_advice_and_exit_code_2() {
    let scratch = Scratch::new("bad");
    let binary = scratch.path("bank.ftrace");
    foretell(&["trace", "convert", &example("bank.ft"), "-o", &binary]);
    let mut flipped = std::fs::read(&binary).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let twice = "foretell-trace 1\nobserved\nthread A, B\nmutex m\nA acquire m\nB acquire m\n";
    for (name, content, expected) in [
        ("empty.ft", &b""[..], "empty"),
        ("garbage", b"\x00\x01\x02hello", "not a trace"),
        ("broken.ft", b"foretell-trace 1\nthread A\nA raed x\n", ":3:"),
        ("broken.ctrc", b"global: x\nthread t:\n a1: (= x. (+ x\n", ":3"),
        ("broken.std", b"T0|r(V1)|12\nT0|what|7\n", ":2"),
        ("flipped.ftrace", &flipped, "byte"),
        ("deep.ctrc", format!("global: x\npre: {}", "(".repeat(100_000)).as_bytes(), ":2"),
    ] {
        let file = scratch.file(name, content);
        for command in [vec!["trace", "info"], vec!["trace", "cat"], vec!["predict"]] {
            let output = foretell(&[command.as_slice(), &[file.as_str()]].concat());
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?} {name}: {message}");
            assert!(message.contains(expected), "{command:?} {name}: {message}");
            assert!(
                message.starts_with("foretell: ") && !message.contains("panicked"),
                "{message}"
            );
        }
    }
    let file = scratch.file("twice.ft", twice.as_bytes());
    let output = foretell(&["trace", "validate", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains('B'), "{}", stdout(&output));
    let missing = foretell(&["predict", &scratch.path("nowhere.ft")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("nowhere.ft"), "{}", stderr(&missing));
}

#[test]
fn a_format_that_cannot_carry_the_trace_refuses_and_leaves_no_file() {
    let scratch = Scratch::new("carry");
    let target = scratch.path("bank.ctrc");
    let output = foretell(&["trace", "convert", &example("bank.ft"), "-o", &target]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot carry"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left behind");
}

/// As many philosophers as a table has; each takes the left fork first.
#[test]
fn a_ring_of_any_length_is_a_deadlock() {
    let scratch = Scratch::new("ring");
    for seats in [2, 5, 9] {
        let mut text = String::new();
        for seat in 1..=seats {
            text += &format!("T0|fork(T{seat})|1\n");
        }
        for seat in 1..=seats {
            let right = seat % seats + 1;
            for step in [format!("acq(L{seat})"), format!("acq(L{right})")] {
                text += &format!("T{seat}|{step}|{}\n", 10 * seat);
            }
            for step in [format!("rel(L{right})"), format!("rel(L{seat})")] {
                text += &format!("T{seat}|{step}|{}\n", 10 * seat + 1);
            }
        }
        let file = scratch.file("ring.std", text.as_bytes());
        let schedules = scratch.path("s");
        let output =
            foretell(&["predict", &file, "--property", "deadlock", "--schedules", &schedules]);
        assert_eq!(output.status.code(), Some(11), "{seats}: {}", stdout(&output));
    }
}

#[test]
fn a_pipe_or_device_is_never_replaced_by_a_file() {
    let scratch = Scratch::new("fifo");
    let pipe = scratch.path("pipe.ftrace");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let output = foretell(&["trace", "convert", &example("bank.ft"), "-o", &pipe]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not a regular file"), "{}", stderr(&output));
    let recorded = foretell(&["record", "-o", &pipe, "--", "true"]);
    assert_eq!(recorded.status.code(), Some(2), "{}", stderr(&recorded));
    assert!(!std::fs::metadata(&pipe).unwrap().is_file());
}

#[test]
fn usage_errors_end_with_2_and_help_names_every_exit_code() {
    assert_eq!(foretell(&["preditc"]).status.code(), Some(2));
    assert_eq!(foretell(&["predict"]).status.code(), Some(2));
    let partition = foretell(&["predict", &example("bank.ft"), "--partition", "3/2"]);
    assert_eq!(partition.status.code(), Some(2));
    let help = foretell(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let text = stdout(&help).split_whitespace().collect::<Vec<_>>().join(" ");
    for code in ["0 nothing found", "10 a", "11 predicted", "12 incomplete", "2 usage", "1 our own"]
    {
        assert!(text.contains(code), "{code}: {text}");
    }
    assert!(stdout(&foretell(&["--version"])).starts_with("foretell 0."));
    assert!(stdout(&foretell(&["completions", "bash"])).contains("_foretell"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new("pipe");
    let mut text = String::from("foretell-trace 1\nthread A\nvar x\n");
    for number in 0..20_000 {
        text += &format!("A write x = {number}\n");
    }
    let file = scratch.file("long.ft", text.as_bytes());
    let line = format!(
        "{} trace cat {file} | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_foretell")
    );
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "foretell-trace 1\n");
}

#[test]
fn a_saved_result_is_shown_again_in_every_format() {
    let scratch = Scratch::new("report");
    let (bank, schedules) = (example("bank.ft"), scratch.path("s"));
    let result = scratch.path("result.json");
    let predicted = foretell(&["predict", &bank, "--schedules", &schedules, "--json", &result]);
    assert_eq!(predicted.status.code(), Some(11), "{}", stderr(&predicted));
    let again = foretell(&["report", &result]);
    assert_eq!(again.status.code(), Some(11), "{}", stderr(&again));
    assert_eq!(stdout(&again), stdout(&predicted), "the result is all there is to know");
    let files = ["html", "sarif", "junit", "perfetto", "text"];
    let mut arguments = vec!["report".to_owned(), result.clone()];
    for name in files {
        arguments.extend([format!("--{name}"), scratch.path(name)]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let written = foretell(&arguments);
    assert_eq!(stdout(&written), "", "files were asked for, so nothing is printed");
    for (name, begin) in files.iter().zip(["<!doctype html>", "{", "<?xml", "\n", "predicted["]) {
        let bytes = std::fs::read(scratch.path(name)).unwrap();
        assert!(bytes.starts_with(begin.as_bytes()), "{name}");
    }
    let text = std::fs::read_to_string(scratch.path("text")).unwrap();
    assert_eq!(text, stdout(&predicted));
    let nowhere = scratch.path("no/such/folder.html");
    let failed = foretell(&["report", &result, "--html", &nowhere]);
    assert_eq!(failed.status.code(), Some(2), "{}", stderr(&failed));
    for (content, told) in [("{", "not a result"), ("{\"version\": 7}", "version 7")] {
        let broken = scratch.file("broken.json", content.as_bytes());
        let output = foretell(&["report", &broken]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
}

#[test]
fn a_baseline_makes_only_new_findings_fail() {
    let scratch = Scratch::new("baseline");
    let (bank, schedules) = (example("bank.ft"), scratch.path("s"));
    let baseline = scratch.path("baseline.toml");
    let predict =
        |more: &[&str]| foretell(&[&["predict", &bank, "--schedules", &schedules], more].concat());
    let first = predict(&["--write-baseline", &baseline]);
    assert_eq!(first.status.code(), Some(11), "{}", stderr(&first));
    let known = predict(&["--suppressions", &baseline]);
    assert_eq!(known.status.code(), Some(0), "{}{}", stdout(&known), stderr(&known));
    assert!(stdout(&known).contains("suppressed: atomicity violation"), "{}", stdout(&known));
    assert!(stdout(&known).contains("nothing found; 3 suppressed"), "{}", stdout(&known));
    // Only one of them is known: the other fails the run, and an old entry is named.
    let text = std::fs::read_to_string(&baseline).unwrap();
    let entries: Vec<&str> = text.split("[[suppress]]").collect();
    assert_eq!(entries.len(), 3, "two kinds of findings: {text}");
    let stale = "\nfingerprint = \"0123456789abcdef\"\nreason = \"gone\"\n";
    let some = ["[[suppress]]", entries[1], "[[suppress]]", stale].concat();
    let some = scratch.file("some.toml", some.as_bytes());
    let new = predict(&["--suppressions", &some]);
    assert_eq!(new.status.code(), Some(11), "{}", stderr(&new));
    assert!(stdout(&new).contains("stale suppression"), "{}", stdout(&new));
    let broken = scratch.file("broken.toml", b"[[suppress]]\nfingerprint = 3\n");
    let output = predict(&["--suppressions", &broken]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("broken.toml:2:15: "), "{}", stderr(&output));
}

#[test]
fn the_configuration_is_used_flags_win_and_show_says_where_values_come_from() {
    let scratch = Scratch::new("config");
    scratch.file("bank.ft", &std::fs::read(example("bank.ft")).unwrap());
    scratch.file(
        "foretell.toml",
        b"[predict]\nproperty = [\"deadlock\", \"race\"]\nsuppressions = \"known.toml\"\n\
          [profile.ci.predict]\nproperty = \"assertion\"\nwhole = true\n",
    );
    // Paths are relative to the file: without this one nothing below is found.
    scratch.file("known.toml", b"");
    std::fs::create_dir_all(scratch.0.join("below")).unwrap();
    let here = |folder: &str, arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(arguments)
            .current_dir(scratch.0.join(folder))
            .output()
            .unwrap()
    };
    let nothing = here("", &["predict", "bank.ft"]);
    assert_eq!(nothing.status.code(), Some(0), "{}{}", stdout(&nothing), stderr(&nothing));
    let profile = here("below", &["--profile", "ci", "predict", "../bank.ft"]);
    assert_eq!(profile.status.code(), Some(11), "{}", stderr(&profile));
    let typed = here("", &["predict", "bank.ft", "--property", "atomicity"]);
    assert!(stdout(&typed).contains("predicted[atomicity]"), "{}", stdout(&typed));
    assert!(!stdout(&typed).contains("race"), "a flag replaces the list: {}", stdout(&typed));
    let show = stdout(&here("below", &["config", "show", "--profile", "ci"]));
    let line = |key: &str| {
        let predict = show.split("\n[predict]\n").nth(1).unwrap();
        predict.lines().find(|line| line.starts_with(key)).unwrap().to_owned()
    };
    assert!(
        line("property ").contains("assertion") && line("property ").contains("profile.ci.predict")
    );
    assert!(line("suppressions ").contains("[predict]") && line("engine ").ends_with("default"));
    let object = valid_json(&here("", &["config", "show", "--format", "json"]));
    assert!(object["config"]["file"].as_str().unwrap().ends_with("foretell.toml"));
    for (content, told) in [
        ("[predict]\nproprety = 1\n", "proprety: no such option"),
        ("[predcit]\n", "no such command"),
        ("[predict]\nwhole = 1\n", "true or false"),
        ("[predict]\nengine = \"magic\"\n", "magic"),
        ("[predict]\n[predict\n", "foretell.toml:2:9: "),
    ] {
        scratch.file("foretell.toml", content.as_bytes());
        let output = here("", &["predict", "bank.ft"]);
        assert_eq!(output.status.code(), Some(2), "{content}");
        assert!(stderr(&output).contains(told), "{content}: {}", stderr(&output));
    }
    let unknown = here("", &["--profile", "nightly", "predict", "bank.ft"]);
    assert_eq!(unknown.status.code(), Some(2));
}
