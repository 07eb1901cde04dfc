//! A closed or full standard output or error changes the message, never the verdict; and no text from
//! outside reaches a terminal as a command.

use std::process::Command;

use crate::common::{BANK, TORN, Workshop, finish, text};

/// The exit code of the first command of a pipeline.
fn in_shell(shop: &Workshop, arguments: &str, rest: &str) -> Option<i32> {
    let foretell = env!("CARGO_BIN_EXE_foretell");
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{foretell} {arguments} {rest}; exit ${{PIPESTATUS[0]}}")])
        .current_dir(shop.path());
    for (name, value) in shop.foretell(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(command).status.code()
}

const WAYS: [&str; 8] = [
    "| true",
    "> /dev/full",
    "2> /dev/full",
    "> /dev/full 2> /dev/full",
    ">&-",
    "2>&-",
    ">&- 2>&-",
    "2>&1 | head -c 1",
];

#[test]
fn a_prediction_stays_one_whoever_listens() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    shop.file("broken.ft", "foretell-trace 1\nthread \n");
    for way in WAYS {
        assert_eq!(in_shell(&shop, "predict bank.ft", way), Some(11), "{way}");
        assert_eq!(in_shell(&shop, "--format json predict bank.ft", way), Some(11), "{way}");
        assert_eq!(in_shell(&shop, "explain bank.ft", way), Some(11), "{way}");
        assert_eq!(in_shell(&shop, "fix bank.ft", way), Some(11), "{way}");
        assert_eq!(in_shell(&shop, "predict broken.ft", way), Some(2), "{way}");
        assert_eq!(in_shell(&shop, "cc -static x.c", way), Some(2), "{way}");
    }
    // Without a verdict the output is all there is.
    assert_eq!(in_shell(&shop, "trace cat bank.ft", "> /dev/full"), Some(2));
    assert_eq!(in_shell(&shop, "trace cat bank.ft", "| true"), Some(0));
}

#[test]
fn a_confirmed_bug_stays_one_whoever_listens() {
    let shop = Workshop::new();
    shop.file("torn.c", TORN);
    for way in ["| true", "2> /dev/full", "> /dev/full"] {
        assert_eq!(in_shell(&shop, "test torn.c", way), Some(10), "{way}");
    }
}

/// Bytes that a terminal would obey.
fn is_harmless(bytes: &[u8]) -> bool {
    let text = text(bytes);
    !text.chars().any(foretell_guard::text::is_dangerous)
}

#[test]
fn no_escape_sequence_reaches_the_terminal() {
    let shop = Workshop::new();
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m";
    let trace = BANK.replace("bank.c", &format!("ba{evil}nk.c"));
    let names = trace.replace("deposit", &format!("\"dep{evil}osit\""));
    for (file, content) in [("a.ft", &trace), ("b.ft", &names)] {
        shop.file(file, content);
        for command in ["predict", "explain", "fix", "trace info", "trace validate", "report"] {
            let mut words: Vec<&str> = command.split(' ').collect();
            words.push(file);
            let output = shop.run(&words);
            assert!(is_harmless(&output.stdout), "{command}: {:?}", text(&output.stdout));
            assert!(is_harmless(&output.stderr), "{command}: {:?}", text(&output.stderr));
        }
        let output = shop.run(&["--format", "json", "predict", file]);
        assert!(is_harmless(&output.stdout), "{:?}", text(&output.stdout));
    }
    // Messages about files, results and schedules.
    let name = format!("none{evil}.ft");
    for command in ["predict", "explain", "fix", "report", "verify"] {
        let output = shop.run(&[command, &name]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(is_harmless(&output.stderr), "{command}: {:?}", text(&output.stderr));
    }
    let result =
        shop.file("result.json", format!("{{\"version\": 1, \"{evil}\": ")).display().to_string();
    assert!(is_harmless(&shop.run(&["report", &result]).stderr));
    let schedule = shop.file("s.schedule", format!("foretell-schedule 1\n{evil}\n"));
    let output = shop.run(&["replay", &schedule.display().to_string(), "--", "true"]);
    assert!(is_harmless(&output.stderr), "{:?}", text(&output.stderr));
}

#[test]
fn a_replay_shows_the_program_s_output_without_its_escape_sequences() {
    let shop = Workshop::new();
    let source = TORN.replace(
        "int main(void) {",
        "#include <stdio.h>\nint main(void) {\n  printf(\"\\033]0;evil\\007\"); fflush(stdout); fprintf(stderr, \"\\033[2J\");",
    );
    shop.file("torn.c", source);
    let tested = shop.run(&["test", "torn.c"]);
    assert_eq!(tested.status.code(), Some(10), "{}", text(&tested.stderr));
    assert!(is_harmless(&tested.stdout), "{:?}", text(&tested.stdout));
    let schedules = shop.path().join("foretell-schedules").read_dir().expect("schedules");
    let schedule =
        schedules.map(|entry| entry.expect("an entry").path()).find(|path| path.is_file());
    let schedule = schedule.expect("a schedule").display().to_string();
    let replayed = shop.run(&["replay", &schedule, "--", "torn.c"]);
    assert!(text(&replayed.stdout).contains("evil"), "{}", text(&replayed.stderr));
    assert!(is_harmless(&replayed.stdout), "{:?}", text(&replayed.stdout));
    assert!(is_harmless(&replayed.stderr), "{:?}", text(&replayed.stderr));
}

#[test]
fn the_page_names_its_scripts_by_hash() {
    let shop = Workshop::new();
    shop.file("bank.ft", BANK);
    shop.run(&["predict", "bank.ft", "--html", "report.html"]);
    let page = std::fs::read_to_string(shop.path().join("report.html")).expect("a page");
    assert!(page.contains("script-src 'sha256-") && !page.contains("nonce"), "{}", &page[..600]);
}
