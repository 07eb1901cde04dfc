//! Stores that cannot be used are a clear error, and stay as they are.

use std::time::Duration;

use crate::common::{READERS, Said, Workshop, stderr};

const FEW: [&str; 4] = ["test", "--resume", "kept", "--runs"];

fn refused(workshop: &Workshop, words: &[&str], said: &str) {
    let file = workshop.path("kept/exploration.store");
    let before = std::fs::read(&file).expect("a store");
    let output = workshop.foretell(words);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(said), "{said:?} in {}", stderr(&output));
    assert!(std::fs::read(&file).expect("a store") == before, "untouched");
}

#[test]
fn another_program_another_input_and_other_options_are_refused() {
    let workshop = Workshop::new(READERS);
    workshop.foretell(&[&FEW[..], &["4", "./p"]].concat());
    let with = |words: &[&'static str]| [&["test", "--resume", "kept"], words].concat();
    refused(&workshop, &with(&["./p", "more"]), "the arguments was not given and is `more`");
    refused(&workshop, &with(&["--paths", "recorded", "./p"]), "--paths was `all`");
    refused(&workshop, &with(&["--budget", "77", "./p"]), "--budget was not given and is `77`");
    refused(&workshop, &with(&["--input", "p.c", "./p"]), "the digest of --input was not given");
    refused(&workshop, &with(&["--partition", "1/2", "./p"]), "--partition was not given");
    workshop.build(&READERS.replace("!= 5", "!= 6"));
    refused(&workshop, &with(&["./p"]), "the program's digest was");
}

#[test]
fn damage_is_an_error_and_a_torn_record_is_not() {
    let workshop = Workshop::new(READERS);
    let whole = workshop.whole(&[]);
    workshop.foretell(&[&FEW[..], &["8", "./p"]].concat());
    let file = workshop.path("kept/exploration.store");
    let bytes = std::fs::read(&file).expect("a store");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    std::fs::write(&file, &damaged).expect("written");
    refused(&workshop, &["test", "--resume", "kept", "./p"], "damaged at byte");
    std::fs::write(&file, b"something else").expect("written");
    refused(&workshop, &["test", "--resume", "kept", "./p"], "not a store of foretell");
    std::fs::write(&file, &bytes[..bytes.len() - 7]).expect("written");
    let output = workshop.foretell(&["test", "--resume", "kept", "--json", "torn.json", "./p"]);
    assert!(stderr(&output).contains("was not whole and is cut off"), "{}", stderr(&output));
    assert_eq!(Said::of(output.status.code().expect("a code"), &workshop.json("torn.json")), whole);
    // A folder that is a file.
    let output = workshop.foretell(&["test", "--resume", "p.c", "./p"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    let workshop = Workshop::new(READERS);
    let mut first = workshop.start(&["test", "--resume", "kept", "./p"]);
    let length =
        || std::fs::metadata(workshop.path("kept/exploration.store")).map(|file| file.len());
    // It writes once it has the lock.
    while length().unwrap_or(0) == 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    // It stands still with the store in its hands.
    // SAFETY: a plain system call.
    unsafe { libc::kill(first.id() as i32, libc::SIGSTOP) };
    let output = workshop.foretell(&["test", "--resume", "kept", "./p"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("another foretell is using it"), "{}", stderr(&output));
    first.kill().expect("it can be killed");
    first.wait().expect("it is gone");
    let output = workshop.foretell(&["test", "--resume", "kept", "--runs", "2", "./p"]);
    assert_ne!(output.status.code(), Some(2), "{}", stderr(&output));
}
