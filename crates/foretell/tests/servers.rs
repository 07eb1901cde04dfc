//! Servers and their clients (`foretell test --client`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn foretell() -> Command {
    Command::new(env!("CARGO_BIN_EXE_foretell"))
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/server")
}

/// The example's server and client, built; `None` where something is missing.
fn built() -> Option<TempDir> {
    if !Path::new("/usr/include/event2/event.h").exists()
        || !Path::new("/usr/bin/clang-22").exists()
    {
        println!("SKIPPED: there is no libevent-dev or no clang-22");
        return None;
    }
    let folder = TempDir::new().expect("a folder");
    let built = |command: &mut Command, name: &str, rest: &[&str]| {
        let source = sources().join(format!("{name}.c"));
        let file = folder.path().join(name);
        let status = command.args(["-g", "-O1", "-o"]).arg(file).arg(source).args(rest).status();
        assert!(status.expect("a compiler").success(), "{name}");
    };
    built(foretell().arg("cc"), "server", &["-levent", "-pthread"]);
    built(&mut Command::new("clang-22"), "client", &[]);
    Some(folder)
}

fn run(folder: &TempDir, words: &[&str]) -> Output {
    foretell().current_dir(folder.path()).args(words).output().expect("foretell runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Ports that nothing else here uses, one for each test.
const PORTS: [&str; 3] = ["27411", "27412", "27413"];

#[test]
fn a_lost_update_of_two_clients_is_confirmed_and_replayed_without_them() {
    let Some(folder) = built() else { return };
    let port = PORTS[0];
    let client = |line: &str| format!("./client {port} '{line}'");
    let (one, other) = (client("add hits 1"), client("add hits 2"));
    let words =
        ["test", "--time-limit", "60", "--client", &one, "--client", &other, "./server", port];
    let tested = run(&folder, &words);
    let said = text(&tested.stdout);
    assert_eq!(tested.status.code(), Some(10), "{said}{}", text(&tested.stderr));
    assert!(
        said.contains("confirmed[atomicity]: atomicity violation on `items[0].value`"),
        "{said}"
    );
    assert!(said.contains("hits: 3"), "{said}");
    let line = said.lines().find_map(|line| line.trim().strip_prefix("replay: foretell "));
    let line = line.expect("how to replay it").to_owned();
    assert!(line.contains("--traffic foretell-schedules/clients.traffic"), "{line}");
    for _ in 0..10 {
        let replayed = run(&folder, &line.split(' ').collect::<Vec<_>>());
        let said = text(&replayed.stdout);
        assert_eq!(replayed.status.code(), Some(10), "{said}{}", text(&replayed.stderr));
        assert!(said.contains("it happened again"), "{said}");
    }
}

/// The same requests one after the other, by one client: the second comes after the answer to the first in
/// every run, so nothing can be lost.
#[test]
fn what_a_client_sends_after_an_answer_never_comes_before_it() {
    let Some(folder) = built() else { return };
    let port = PORTS[1];
    let one_after_the_other =
        format!("./client {port} 'add hits 1' && ./client {port} 'add hits 2' 'get hits'");
    let words = ["test", "--time-limit", "60", "--client", &one_after_the_other, "./server", port];
    let tested = run(&folder, &words);
    let said = text(&tested.stdout);
    assert_eq!(tested.status.code(), Some(12), "{said}");
    assert!(!said.contains("[atomicity]"), "{said}{}", text(&tested.stderr));
    assert!(said.contains("later arrival was not tried"), "{said}");
    let traffic = folder.path().join("foretell-schedules/clients.traffic");
    let traffic = std::fs::read_to_string(traffic).expect("what the clients did");
    // The second connection is asked for when the server has answered on the first and closed it.
    let second = traffic.lines().find(|line| line.starts_with("connect 0 1 ")).expect("a second");
    assert!(second.contains(" 0:"), "{traffic}");
    // The run with the script does what the one with clients did.
    let words = ["record", "--traffic", "foretell-schedules/clients.traffic", "--schedule"];
    let words = words.into_iter().chain(["round-robin:7", "--", "./server", port]);
    let recorded = run(&folder, &words.collect::<Vec<_>>());
    let said = text(&recorded.stdout);
    assert_eq!(recorded.status.code(), Some(0), "{said}{}", text(&recorded.stderr));
    let answers = ["connection 0 got: 1", "connection 1 got: 3", "connection 1 got: 3", "hits: 3"];
    assert_eq!(said.lines().collect::<Vec<_>>(), answers);
}

#[test]
fn what_cannot_be_is_said() {
    let Some(folder) = built() else { return };
    let port = PORTS[2];
    std::fs::write(folder.path().join("no.traffic"), "nothing\n").expect("written");
    let server = ["./server", port];
    let cases: [(&[&str], &str); 5] = [
        (&["--client", "true"], "no client connected to the server"),
        (
            &["--run-limit", "2", "--client", "true", "--ready", "1"],
            "was never ready for its clients",
        ),
        (&["--client", "true", "--stop", "NOTHING"], "is none of HUP, INT"),
        (&["--traffic", "no.traffic"], "no.traffic: line 1 does not say what a client does"),
        (&["--traffic", "absent.traffic"], "absent.traffic: No such file"),
    ];
    for (options, expected) in cases {
        let words = ["test"].iter().chain(options).chain(&server).copied().collect::<Vec<_>>();
        let tested = run(&folder, &words);
        let said = text(&tested.stderr);
        assert_eq!(tested.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(expected), "{options:?}: {said}");
    }
}
