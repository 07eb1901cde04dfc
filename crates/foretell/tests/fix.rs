//! `foretell fix` on a real program: the patch compiles, and nothing is predicted of it any more.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn foretell(folder: &Path, arguments: &[&str]) -> Output {
    // Cargo leaves the plugin and the runtime beside the test.
    let test = std::env::current_exe().expect("path of the test");
    Command::new(env!("CARGO_BIN_EXE_foretell"))
        .args(arguments)
        .current_dir(folder)
        .env("FORETELL_LIB_DIR", test.parent().expect("directory"))
        .output()
        .expect("foretell runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Builds and records the program; what is predicted of it.
fn predicted(folder: &Path) -> (Option<i32>, String) {
    let built = foretell(folder, &["cc", "-g", "-pthread", "bank.c", "-o", "bank"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let ran = foretell(folder, &["record", "-o", "bank.ftrace", "--", "./bank"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let output = foretell(folder, &["predict", "bank.ftrace"]);
    (output.status.code(), text(&output.stdout))
}

#[test]
fn the_bank_is_repaired_by_a_patch_that_compiles_and_leaves_nothing_to_predict() {
    let folder: PathBuf =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fix-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bank/bank.c");
    std::fs::copy(source, folder.join("bank.c")).expect("the example");

    let (code, before) = predicted(&folder);
    assert_eq!(code, Some(11), "{before}");
    assert!(before.contains("the assertion of main"), "{before}");

    let diff = foretell(&folder, &["fix", "bank.ftrace"]);
    assert_eq!(diff.status.code(), Some(11), "{}", text(&diff.stderr));
    let shown = text(&diff.stdout);
    assert!(shown.starts_with("--- a/bank.c\n+++ b/bank.c\n@@ "), "{shown}");
    let unchanged = std::fs::read_to_string(folder.join("bank.c")).expect("the example");
    assert!(!unchanged.contains("foretell_lock"), "without --apply nothing changes");

    let applied = foretell(&folder, &["fix", "bank.ftrace", "--apply"]);
    assert_eq!(text(&applied.stdout), shown, "what is shown is what is applied");
    let patched = std::fs::read_to_string(folder.join("bank.c")).expect("the example");
    assert!(patched.contains("pthread_mutex_lock(&foretell_lock);"), "{patched}");

    let again = foretell(&folder, &["fix", "bank.ftrace", "--apply"]);
    assert_eq!(again.status.code(), Some(11), "the trace is the old one");
    assert!(text(&again.stderr).contains("already applied to bank.c"), "{}", text(&again.stderr));
    let twice = std::fs::read_to_string(folder.join("bank.c")).expect("the example");
    assert_eq!(twice, patched, "nothing is applied twice");

    let (_, after) = predicted(&folder);
    assert!(!after.contains("predicted;"), "{after}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// The region goes from one iteration of a loop to another: a lock inside the loop, around a critical
/// section that is there already, would change nothing.
#[test]
fn a_region_over_iterations_is_the_loop_and_verified_means_that_the_patched_program_was_tested() {
    let folder: PathBuf =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fix-loop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/repro/programs/fix/fix_noop_fib.c");
    let before = std::fs::read_to_string(source).expect("the program");
    std::fs::write(folder.join("fib.c"), &before).expect("a file");
    let tested = |file: &str| {
        let output = foretell(&folder, &["--format", "json", "test", file]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.code(), report)
    };
    let (code, report) = tested("fib.c");
    assert_eq!(code, Some(10), "{report:#}");
    let fix = &report["findings"][0]["fix"];
    assert_eq!(fix["verified"], true, "{fix:#}");
    let said = fix["text"].as_str().expect("words");
    assert!(said.contains("all iterations of the loop"), "{said}");

    // The patch as the report has it, applied line by line: added lines are all that it has.
    let diff = fix["diff"].as_str().expect("a diff");
    let patched = with_added_lines(&before, diff);
    assert_ne!(patched, before);
    std::fs::write(folder.join("patched.c"), &patched).expect("a file");
    let (_, report) = tested("patched.c");
    let failing = |finding: &&serde_json::Value| finding["effect"] == "assertion";
    let findings = report["findings"].as_array().expect("findings");
    assert_eq!(findings.iter().filter(failing).count(), 0, "{patched}\n{report:#}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// The text with the lines that a unified diff adds; a diff that removes lines is not understood.
fn with_added_lines(text: &str, diff: &str) -> String {
    let mut lines = text.lines();
    let mut result: Vec<&str> = Vec::new();
    for line in diff.lines().filter(|line| !line.starts_with("---") && !line.starts_with("+++")) {
        match line.split_at_checked(1) {
            Some(("+", added)) => result.push(added),
            Some((" ", kept)) => {
                // What stands between two hunks is kept too.
                loop {
                    let next = lines.next().expect("the line is in the text");
                    result.push(next);
                    if next == kept {
                        break;
                    }
                }
            }
            Some(("@", _)) => {}
            other => panic!("not understood: {other:?}"),
        }
    }
    result.extend(lines);
    result.join("\n") + "\n"
}
