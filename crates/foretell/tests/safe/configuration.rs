//! What a folder that one merely enters can make foretell do: nothing.

use std::os::unix::fs::{PermissionsExt, chown};

use serde_json::Value;

use crate::common::{BANK, Workshop, text};

#[test]
fn a_project_s_file_neither_runs_commands_nor_writes_files() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let victim = shop.file("victim", "precious").display().to_string();
    let mark = shop.path().join("ran");
    let evil = shop.script("evil", &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    for option in [
        format!("solver-cmd = \"{}\"", evil.display()),
        format!("pddl = \"p\"\nplanner-cmd = \"{}\"", evil.display()),
        format!("html = \"{victim}\""),
        format!("json = \"{victim}\""),
        format!("write-baseline = \"{victim}\""),
        "schedules = \"elsewhere\"".into(),
        "dump-smt2 = \"elsewhere\"".into(),
    ] {
        for table in ["predict", "profile.ci.predict"] {
            shop.file("foretell.toml", format!("[{table}]\n{option}\n"));
            for arguments in
                [&["predict", "bank.ft"][..], &["--profile", "ci", "predict", "bank.ft"]]
            {
                if table == "predict" && arguments.len() > 2 {
                    continue;
                }
                let output = shop.run(arguments);
                assert_eq!(output.status.code(), Some(2), "{option}: {}", text(&output.stderr));
                assert!(
                    text(&output.stderr).contains("may not set it"),
                    "{}",
                    text(&output.stderr)
                );
            }
        }
    }
    shop.file("foretell.toml", "[fix]\napply = true\n");
    assert_eq!(shop.run(&["fix", "bank.ft"]).status.code(), Some(2));
    shop.file("foretell.toml", "[test]\nwrites = [\"/etc/passwd\"]\n");
    assert_eq!(shop.run(&["test", "true"]).status.code(), Some(2));
    assert!(!mark.exists(), "nothing was run");
    assert_eq!(std::fs::read(&victim).expect("there"), b"precious");
    assert!(!shop.path().join("elsewhere").exists());
}

#[test]
fn the_user_s_own_file_may_and_the_report_says_what_was_used() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let report = shop.path().join("report.html");
    let own = shop.file(
        "home/.config/foretell/config.toml",
        format!("[predict]\nhtml = \"{}\"\nproperty = [\"deadlock\"]\n", report.display()),
    );
    let project = shop.file("foretell.toml", "[predict]\nproperty = [\"assertion\"]\n");
    let output = shop.run(&["--format", "json", "predict", "bank.ft"]);
    assert_eq!(output.status.code(), Some(11), "the project's file wins: {}", text(&output.stderr));
    assert!(report.is_file());
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let files: Vec<&str> = object["config"]["files"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(files, [project.to_str().unwrap(), own.to_str().unwrap()]);
    let shown = text(&shop.run(&["predict", "bank.ft"]).stdout);
    assert!(shown.contains(&format!("options from: {}", project.display())), "{shown}");
    let without = shop.run(&["--no-config", "--format", "json", "predict", "bank.ft"]);
    let object: Value = serde_json::from_slice(&without.stdout).expect("JSON");
    assert_eq!(object["config"], Value::Null);
    let elsewhere = shop.file("xdg/foretell/config.toml", "[predict]\nproperty = [\"race\"]\n");
    let mut command = shop.foretell(&["--format", "json", "config", "show"]);
    command.env("XDG_CONFIG_HOME", shop.path().join("xdg"));
    let object: Value =
        serde_json::from_slice(&crate::common::finish(command).stdout).expect("JSON");
    assert_eq!(object["config"]["files"][1], elsewhere.to_str().unwrap());
}

#[test]
fn what_is_not_a_file_is_refused_at_once() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let path = shop.path().join("foretell.toml");
    let refused = |what: &str| {
        let output = shop.run(&["predict", "bank.ft"]);
        assert_eq!(output.status.code(), Some(2), "{what}: {}", text(&output.stderr));
        std::fs::remove_file(&path).expect("removed");
    };
    let name = std::ffi::CString::new(path.to_str().expect("text")).expect("a name");
    // SAFETY: the name ends in NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    refused("a pipe");
    std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
    refused("a device");
    shop.file("foretell.toml", vec![b'#'; 2 << 20]);
    refused("a large file");
}

#[test]
fn a_file_of_another_owner_or_open_to_all_is_refused() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    let file = shop.file("foretell.toml", "[predict]\nproperty = [\"race\"]\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    let output = shop.run(&["predict", "bank.ft"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("everybody can write"), "{}", text(&output.stderr));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    if chown(&file, Some(12345), None).is_err() {
        eprintln!("SKIPPED: only root can give a file away");
        return;
    }
    for arguments in
        [&["predict", "bank.ft"][..], &["--config", "foretell.toml", "predict", "bank.ft"]]
    {
        let output = shop.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("another user"), "{}", text(&output.stderr));
    }
    let below = shop.path().join("below");
    std::fs::create_dir(&below).expect("a folder");
    let mut command = shop.foretell(&["predict", "../bank.ft"]);
    command.current_dir(&below);
    assert_eq!(crate::common::finish(command).status.code(), Some(2), "it lies above, too");
    assert_eq!(shop.run(&["--no-config", "predict", "bank.ft"]).status.code(), Some(11));
}
