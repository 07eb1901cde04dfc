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
