//! Standard input that can be read once only: every run gets all of it.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{Answer, Workshop, answer};

const SUM: &str = "#include <assert.h>\n#include <stdio.h>\n\
    int main(void) { int k, s = 0; while (scanf(\"%d\", &k) == 1) s += k; assert(s == 6); return 0; }\n";

/// `foretell WORDS sum.c`, with a pipe as standard input that is open.
fn begun(workshop: &Workshop, words: &[&str]) -> Child {
    std::fs::write(workshop.path().join("sum.c"), SUM).expect("a file");
    let mut command = workshop.foretell();
    command.args(words).arg("sum.c");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("foretell runs")
}

/// What it says of input that is closed after it was written.
fn given(workshop: &Workshop, words: &[&str], input: &str) -> Answer {
    let mut child = begun(workshop, words);
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes()).expect("somebody reads");
    drop(pipe);
    answer(&child.wait_with_output().expect("an end"))
}

const TEST: [&str; 3] = ["--format", "json", "test"];

#[test]
fn every_run_gets_what_comes_through_a_pipe() {
    let workshop = Workshop::new();
    given(&workshop, &TEST, "1 2 3\n").ends_with(0);
    let failed = given(&workshop, &TEST, "1 2 4\n").ends_with(10);
    let schedule = failed.findings()[0]["schedule"].as_str().expect("a schedule");
    let replay = ["--format", "json", "replay", schedule, "--"];
    given(&workshop, &replay, "1 2 4\n").ends_with(10);
    let other = given(&workshop, &replay, "1 2 3\n").ends_with(2);
    assert!(other.stderr.contains("standard input"), "{}", other.stderr);
}

/// A document in a shell's script is a file without a name.
#[test]
fn every_run_gets_a_file_without_a_name() {
    let workshop = Workshop::new();
    let path = workshop.path().join("numbers");
    std::fs::write(&path, "1 2 3\n").expect("a file");
    std::fs::write(workshop.path().join("sum.c"), SUM).expect("a file");
    let file = std::fs::File::open(&path).expect("a file");
    std::fs::remove_file(&path).expect("its name");
    let output = workshop.foretell().args(TEST).arg("sum.c").stdin(file).output();
    answer(&output.expect("foretell runs")).ends_with(0);
}

#[test]
fn a_pipe_that_stays_open_is_not_waited_for_and_that_is_said() {
    let workshop = Workshop::new();
    let mut child = begun(&workshop, &TEST);
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"1 2 3\n").expect("somebody reads");
    // Open until foretell is over, and not for ever if it never is.
    let holder = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(20));
        drop(pipe);
    });
    let answer = answer(&child.wait_with_output().expect("an end")).ends_with(12);
    assert!(!holder.is_finished(), "foretell waited for the writer");
    let said = "standard input was not closed by its writer: every run gets the 6 bytes";
    assert!(answer.stderr.contains(said), "{}", answer.stderr);
    assert!(answer.report["unseen"].to_string().contains(said), "{:#}", answer.report);
}
