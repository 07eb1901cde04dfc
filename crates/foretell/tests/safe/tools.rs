//! Solvers, planners and files that lie, hang, or never end.

use std::process::Stdio;

use serde_json::Value;

use crate::common::{BANK, Workshop, end_of, finish, signal, text};

/// A solver in shell: greets as one, and answers questions as `answers` says.
pub fn solver(answers: &str) -> String {
    format!(
        r#"#!/bin/sh
while read -r line; do
  case "$line" in
    *get-info*:name*) echo '(:name "liar")' ;;
    *check-sat-assuming*) {answers} ;;
    *get-value*)
      # Every value is what it is asked for, with the same number: the order is nonsense.
      printf '('
      for word in $(printf '%s' "$line" | tr '()' '  '); do
        [ "$word" = get-value ] || {{ n=$((n-1)); printf '(%s %s) ' "$word" "(- 0 $((0-n)))"; }}
      done
      echo ')' ;;
    *get-unsat-assumptions*) echo '(a99999 nonsense)' ;;
    *echo*) printf '%s\n' "$line" | sed 's/(echo \(.*\))/\1/' ;;
  esac
done
"#
    )
}

#[test]
fn a_solver_that_lies_decides_nothing() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    for (name, answers) in [
        ("sat", "echo sat"),
        ("garbage", "echo '(((('; exit 0"),
        ("noise", "yes '(x' | head -c 3000000"),
        ("deep", "head -c 3000000 /dev/zero | tr '\\0' '('"),
        ("dies", "exit 3"),
    ] {
        let path = shop.script(name, &solver(answers)).display().to_string();
        let output = shop.run(&["--format", "json", "predict", "bank.ft", "--solver-cmd", &path]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(12), "{name}: {error}");
        assert!(
            !error.contains("panicked") && !error.contains("internal error"),
            "{name}: {error}"
        );
        let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let findings = object["findings"].as_array().expect("findings");
        assert!(findings.iter().all(|finding| finding["status"] == "unknown"), "{object:#}");
    }
}

#[test]
fn a_solver_that_hangs_is_ended_by_the_time_limit_and_the_rest_is_reported() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let path = shop.script("hangs", &solver("sleep 100000")).display().to_string();
    let words =
        ["--format", "json", "predict", "bank.ft", "--time-limit", "1", "--solver-cmd", &path];
    let output = shop.run(&words);
    assert_eq!(output.status.code(), Some(12), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(!object["findings"].as_array().expect("findings").is_empty());
}

#[test]
fn a_signal_ends_the_questions_and_not_the_report() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let mark = shop.path().join("asked");
    let answers = format!("touch {}; sleep 100000", mark.display());
    let path = shop.script("hangs", &solver(&answers)).display().to_string();
    let mut command =
        shop.foretell(&["--format", "json", "predict", "bank.ft", "--solver-cmd", &path]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    crate::common::until("a question", || mark.exists());
    signal(child.id(), libc::SIGTERM);
    assert_eq!(end_of(&mut child).code(), Some(12));
    let output = child.wait_with_output().expect("output");
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let unseen = object["unseen"].to_string();
    assert!(unseen.contains("signal 15"), "{object:#}");
}

#[test]
fn a_planner_that_prints_for_ever_or_leaves_nonsense_is_ended_or_refused() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let ask = |command: &str| {
        shop.run(&["predict", "bank.ft", "--pddl", "problems", "--planner-cmd", command])
    };
    let output = ask("yes ac-1-1 #");
    assert_eq!(output.status.code(), Some(11), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("it printed more than"), "{}", text(&output.stderr));
    let output = ask("echo ac-1-1; echo ac-1-1 #");
    assert!(text(&output.stderr).contains("does not reach the goal"), "{}", text(&output.stderr));
    // A plan file that is no file.
    let output = ask("ln -sf /dev/zero {plan}");
    assert!(text(&output.stderr).contains("left no plan"), "{}", text(&output.stderr));
}

/// A process that left the group holds the pipe that is read.
#[test]
fn a_tool_that_leaves_a_daemon_behind_is_not_waited_for() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let number = shop.path().join("number");
    let daemon = format!("setsid sh -c 'echo $$ > {}; exec sleep 100000' & wait", number.display());
    let silent = shop.script("silent", &format!("#!/bin/sh\n{daemon}\n")).display().to_string();
    let asked = shop.script("asked", &solver(&daemon)).display().to_string();
    let planner = format!("{daemon} #");
    for (option, tool) in
        [("--planner-cmd", &planner), ("--solver-cmd", &silent), ("--solver-cmd", &asked)]
    {
        let _ = std::fs::remove_file(&number);
        let mut words = vec!["predict", "bank.ft", "--time-limit", "3", option, tool];
        if option == "--planner-cmd" {
            words.extend(["--pddl", "problems"]);
        }
        let output = shop.run(&words);
        let error = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(11 | 12)), "{tool}: {error}");
        let number = std::fs::read_to_string(&number).expect("it was there");
        let number = number.trim().parse().expect("a number");
        assert!(!crate::common::is_running(number), "{tool}: {error}");
    }
}

#[test]
fn a_planner_that_hangs_is_ended_by_the_time_limit() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let words = [
        "predict",
        "bank.ft",
        "--time-limit",
        "2",
        "--pddl",
        "problems",
        "--planner-cmd",
        "sleep 100000 #",
    ];
    let output = shop.run(&words);
    assert!([Some(11), Some(12)].contains(&output.status.code()), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("it was killed"), "{}", text(&output.stderr));
}

/// A small file that is a large trace.
#[test]
fn a_compressed_file_cannot_take_all_memory() {
    let shop = Workshop::new();
    let script = "yes 'T0|w(V1)|12' | head -n 3000000 | gzip -c > bomb.std.gz";
    let made =
        std::process::Command::new("sh").args(["-c", script]).current_dir(shop.path()).status();
    assert!(made.expect("gzip").success());
    assert!(shop.path().join("bomb.std.gz").metadata().expect("there").len() < 1 << 20);
    let mut command = shop.foretell(&["--max-memory", "64", "predict", "bomb.std.gz"]);
    command.env("RUST_BACKTRACE", "0");
    let output = finish(command);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("more than 64 MiB"), "{}", text(&output.stderr));
    // Counting needs no memory.
    let output = shop.run(&["--max-memory", "64", "trace", "info", "bomb.std.gz"]);
    assert!(text(&output.stdout).contains("3000000 events"), "{}", text(&output.stderr));
}
