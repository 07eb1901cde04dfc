//! The book in `docs/`: its commands are run and their output is what the book says.
//!
//! In a block marked `console`, a line with `$ ` is a command. The lines after it are the beginnings
//! of the lines that it prints; `...` stands for any number of lines. All blocks of a page share a
//! folder that has `bank.c`, `bank.ft`, `lazy01.c` and `lazy01_safe.c` in it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command and the lines that should follow.
#[derive(Debug, Default)]
struct Step {
    command: String,
    expected: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            line => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { command: command.into(), expected: Vec::new() });
                }
                (None, Some(step)) => step.expected.push(line.trim_end().into()),
                (None, None) => panic!("a block begins with output: {line}"),
            },
        }
    }
    steps
}

/// Do the lines fit? `...` fits any number of them.
fn fits(expected: &[String], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=actual.len()).any(|skipped| fits(rest, &actual[skipped..]))
        }
        Some((line, rest)) => {
            actual.first().is_some_and(|first| first.starts_with(line.as_str()))
                && fits(rest, &actual[1..])
        }
    }
}

/// Runs the commands of a page; what does not fit.
fn run(page: &str, folder: &Path) -> Vec<String> {
    const MARK: &str = "--end-of-a-command--";
    let steps = steps(page);
    let mut script = String::new();
    for step in &steps {
        let command = &step.command;
        script += &format!("{{ {command}\n}} 2>&1; code=$?; echo; echo {MARK}; (exit $code)\n");
    }
    let foretell = Path::new(env!("CARGO_BIN_EXE_foretell"));
    let path = std::env::var("PATH").unwrap_or_default();
    // Cargo leaves the plugin and the runtime beside the test.
    let test = std::env::current_exe().unwrap();
    let output = Command::new("timeout")
        .args(["1800", "bash", "-c", &script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", foretell.parent().unwrap().display()))
        .env("FORETELL_LIB_DIR", test.parent().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("foretell cc: error: lib") {
        // The plugin and the runtime are libraries that `cargo test -p foretell` may not build.
        assert!(std::env::var_os("CI").is_none(), "CI builds all: {text}");
        eprintln!("SKIPPED: {text}");
        return Vec::new();
    }
    if text.contains("install z3") || text.contains("libforetell_instrument.so not found") {
        eprintln!("SKIPPED: {text}");
        return Vec::new();
    }
    let mut wrong = Vec::new();
    let mark = format!("\n{MARK}\n");
    let mut said = text.split(&mark);
    for step in steps {
        let actual = said.next().unwrap_or("(it was not run)").trim_end_matches('\n');
        let lines: Vec<&str> = if actual.is_empty() { vec![] } else { actual.lines().collect() };
        if !fits(&step.expected, &lines) {
            wrong.push(format!("$ {}\n{actual}\nshould be\n{:#?}", step.command, step.expected));
        }
    }
    wrong
}

#[test]
fn every_command_of_the_book_does_what_the_book_says() {
    let summary = std::fs::read_to_string(root().join("docs/src/SUMMARY.md")).unwrap();
    let mut wrong = Vec::new();
    let mut commands = 0;
    let pages = summary.lines().filter_map(|line| line.split("](").nth(1)?.strip_suffix(')'));
    for name in pages {
        let page = std::fs::read_to_string(root().join("docs/src").join(name)).expect(name);
        commands += steps(&page).len();
        let folder =
            std::env::temp_dir().join(format!("foretell-book-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = ["bank/bank.c", "traces/bank.ft", "verify/lazy01.c", "verify/lazy01_safe.c"];
        for file in files {
            let source = root().join("examples").join(file);
            std::fs::copy(&source, folder.join(source.file_name().unwrap())).unwrap();
        }
        wrong.extend(run(&page, &folder).into_iter().map(|fault| format!("{name}: {fault}")));
        let _ = std::fs::remove_dir_all(&folder);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(commands >= 20, "{commands} commands");
}

#[test]
fn the_book_has_the_exit_codes_of_the_program() {
    let page = std::fs::read_to_string(root().join("docs/src/exit-codes.md")).unwrap();
    let source = include_str!("../src/exit.rs");
    let rows: Vec<&str> =
        source.lines().filter(|line| line.trim().starts_with("(Exit::")).collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        let code = row.split(", ").nth(1).unwrap();
        let meaning = row.split('"').nth(1).unwrap();
        assert!(page.contains(&format!("| {code} | {meaning} |")), "{code} {meaning}");
    }
}

#[test]
fn every_link_and_picture_of_the_book_is_there() {
    let folder = root().join("docs/src");
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    for file in std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let name = file.file_name().unwrap().to_string_lossy();
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "{name}");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains(':') || target.contains(' ') {
                continue;
            }
            let (page, heading) = target.split_once('#').unwrap_or((target, ""));
            assert!(folder.join(page).exists(), "{name}: {target}");
            // As mdBook names headings.
            let named = |line: &str| line.trim_start_matches('#').trim().to_lowercase();
            let page = std::fs::read_to_string(folder.join(page)).unwrap_or_default();
            let mut headings = page.lines().filter(|line| line.starts_with('#'));
            let found = headings.any(|line| named(line).replace(' ', "-") == heading);
            assert!(heading.is_empty() || found, "{name}: {target}");
        }
    }
}

/// mdBook is not needed to read the book; where it is there, it must build.
#[test]
fn mdbook_builds_the_book() {
    let folder = std::env::temp_dir().join(format!("foretell-mdbook-{}", std::process::id()));
    let build = Command::new("mdbook")
        .args(["build", "--dest-dir"])
        .arg(&folder)
        .arg(root().join("docs"))
        .output();
    match build {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => eprintln!("SKIPPED: mdbook: {error}"),
    }
    let _ = std::fs::remove_dir_all(&folder);
}
