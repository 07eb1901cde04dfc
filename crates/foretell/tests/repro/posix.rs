//! The rows of `docs/src/posix.md`, each shown by a small correct program: what is understood hides nothing
//! (all of its paths may be more than are explored), what is passed through is said with its cause, and nothing is found in any of them.

use crate::common::{Workshop, source};

/// The program, what it prints, and the cause that has to be said; none where it is understood.
const ROWS: [(&str, &str, Option<&str>); 37] = [
    ("recursive", "ok\n", None),
    ("inherit", "ok\n", None),
    ("pshared", "ok\n", None),
    ("robust", "ok\n", None),
    ("named", "ok\n", None),
    ("raise", "ok\n", None),
    ("sleep", "ok\n", None),
    ("execfails", "ok\n", None),
    ("cancel", "ok\n", Some("asynchronous-cancellation")),
    ("itimer", "ok\n", Some("signal")),
    ("timer", "ok\n", Some("timer")),
    ("fork", "ok\n", Some("process")),
    ("spawn", "ok\n", Some("process")),
    ("system", "ok\n", Some("process")),
    ("popen", "ok\n", Some("process")),
    ("execl", "a b c d e f\n", Some("exec")),
    ("flock", "ok\n", None),
    ("ofd", "ok\n", None),
    ("fcntl", "ok\n", None),
    ("lockf", "ok\n", None),
    ("semop", "ok\n", None),
    ("msg", "ok\n", None),
    ("mq", "ok\n", None),
    ("mqnotify", "ok\n", Some("passed-call")),
    ("futex", "ok\n", None),
    ("spin", "ok\n", None),
    ("once", "ok\n", None),
    ("condition", "ok\n", None),
    ("barrier", "ok\n", None),
    ("rwlock", "ok\n", None),
    ("sharedrwlock", "ok\n", None),
    ("sharedcondition", "ok\n", None),
    ("sharedbarrier", "ok\n", None),
    ("foreigncondition", "ok\n", Some("shared-object")),
    ("foreignbarrier", "ok\n", Some("shared-object")),
    ("aio", "ok\n", Some("aio")),
    ("notify", "ok\n", Some("timer")),
];

#[test]
fn every_row_of_the_table_is_as_it_says() {
    let workshop = Workshop::new();
    let program = workshop.build(&source("world/posix.c"), &["-O1", "-w"]);
    let mut wrong = Vec::new();
    for (row, prints, cause) in ROWS {
        // A loop around a wait has paths without end.
        let answer = workshop.test(&program, &["--runs", "30"], &[row]);
        let outside = answer.report["trace"]["outside"].as_array().cloned().unwrap_or_default();
        let said = |cause: &str| outside.iter().any(|one| one["cause"] == cause);
        let as_it_says = match cause {
            Some(cause) => answer.code == Some(12) && said(cause),
            None => {
                let seen = answer.report["unseen"].as_array().is_some_and(Vec::is_empty);
                answer.code == Some(0) || answer.code == Some(12) && seen && outside.is_empty()
            }
        };
        if !as_it_says || !answer.findings().is_empty() {
            wrong.push(format!("{row}: {:?} {outside:?} {}", answer.code, answer.report["unseen"]));
        }
        let output = workshop
            .foretell()
            .args(["record", "-o", "row.ftrace", "--"])
            .arg(&program)
            .arg(row)
            .output()
            .expect("foretell runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if printed != prints {
            wrong.push(format!("{row}: printed {printed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
