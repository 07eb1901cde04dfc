//! `kill -9` at any moment, SIGTERM, limits: the next session goes on.
//!
//! `FORETELL_KILLS` sets how often foretell is killed (`ci/nightly.sh`: 100).

use std::time::{Duration, Instant};

use crate::common::{READERS, Random, Said, Workshop, stderr};

fn store(folder: &std::path::Path) -> Vec<u8> {
    std::fs::read(folder.join("exploration.store")).expect("a store")
}

#[test]
fn killed_at_random_moments_and_resumed_it_finds_the_same() {
    let kills = std::env::var("FORETELL_KILLS").ok().and_then(|number| number.parse().ok());
    let workshop = Workshop::new(READERS);
    let begin = Instant::now();
    let whole = workshop.whole(&[]);
    let long = begin.elapsed();
    assert!(whole.covered && whole.classes > 10 && whole.code == 10, "{whole:?}");
    let kills = kills.unwrap_or(20);
    let mut random = Random(7);
    let mut killed = 0;
    let mut number = 0;
    while killed < kills {
        number += 1;
        let folder = format!("kept{number}");
        let words = ["test", "--resume", &folder, "--json", "resumed.json", "./p"];
        let mut kept = 0;
        loop {
            let mut child = workshop.start(&words);
            // A session that goes on has less to do, and is killed earlier.
            let moment = random.below(long.as_micros() as u64);
            std::thread::sleep(Duration::from_micros(moment / (1 + killed % 3)));
            if killed >= kills || child.try_wait().expect("a status").is_some() {
                let output = child.wait_with_output().expect("its output");
                let code = output.status.code().expect("it ended by itself");
                let said = Said::of(code, &workshop.json("resumed.json"));
                assert_eq!(said, whole, "{}", stderr(&output));
                break;
            }
            child.kill().expect("it can be killed");
            let output = child.wait_with_output().expect("its output");
            killed += 1;
            // It may have come to its end in between.
            assert!(matches!(output.status.code(), None | Some(10)), "{}", stderr(&output));
            if let Ok(bytes) = std::fs::read(workshop.path(&folder).join("exploration.store")) {
                let (records, _) = foretell_store::check(&bytes).expect("no damage");
                assert!(records >= kept, "{records} records, and {kept} before");
                kept = records;
            }
        }
    }
    println!("killed {killed} times in {number} explorations");
}

#[test]
fn every_run_that_was_kept_counts() {
    let workshop = Workshop::new(READERS);
    let number = |name: &str, what: &str| {
        workshop.json(name)["statistics"][what].as_u64().unwrap_or_else(|| panic!("{what}"))
    };
    let words = |json| ["test", "--resume", "kept", "--json", json, "--runs", "9", "./p"];
    let output = workshop.foretell(&words("first.json"));
    let made = number("first.json", "runs_made");
    assert!((9..20).contains(&made), "{made} runs: a few more than 9 may be under way");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = said.trim_end().lines().last().expect("a line").to_owned();
    assert!(last.starts_with("to go on: foretell test --resume kept "), "{said}");
    let whole = workshop.whole(&[]);
    let all = number("whole.json", "runs");
    let output = workshop.foretell(&["test", "--resume", "kept", "--json", "second.json", "./p"]);
    assert_eq!(
        Said::of(output.status.code().expect("a code"), &workshop.json("second.json")),
        whole
    );
    let more = number("second.json", "runs_made");
    assert!(made + more <= all + 4, "{made} and {more} runs instead of {all}");
    // Now it is finished, and says so at once.
    let before = store(&workshop.path("kept"));
    std::fs::remove_dir_all(workshop.path("foretell-schedules")).expect("schedules");
    let again = workshop.foretell(&["test", "--resume", "kept", "--json", "third.json", "./p"]);
    assert_eq!((&again.stdout, again.status), (&output.stdout, output.status));
    assert_eq!(workshop.json("third.json"), workshop.json("second.json"));
    assert!(store(&workshop.path("kept")) == before, "nothing was run");
    assert!(workshop.path("foretell-schedules").exists(), "schedules are there again");
}

#[test]
fn a_signal_ends_it_in_order_with_what_it_has() {
    let workshop = Workshop::new(READERS);
    // One run at a time: which order of events shows a bug first depends on it.
    let whole = workshop.whole(&["--jobs", "1"]);
    let words = ["test", "--resume", "kept", "--json", "ended.json", "--jobs", "1", "./p"];
    let child = workshop.start(&words);
    // Somewhere in the middle.
    while std::fs::metadata(workshop.path("kept/exploration.store"))
        .map_or(true, |file| file.len() < 20_000)
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: a plain system call.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let output = child.wait_with_output().expect("its output");
    let code = output.status.code().expect("it ended by itself");
    assert!(code == 12 || code == 10, "{code}: {}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.trim_end().lines().last().expect("a line");
    let command = last.strip_prefix("to go on: foretell ").expect(last);
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(workshop.json("ended.json")["exploration"]["go_on"], format!("foretell {command}"));
    let output = workshop.foretell(&words);
    let code = output.status.code().expect("a code");
    assert_eq!(Said::of(code, &workshop.json("ended.json")), whole, "{}", stderr(&output));
}

#[test]
fn without_a_folder_the_last_line_says_how_to_have_one() {
    let workshop = Workshop::new(READERS);
    let output = workshop.foretell(&["test", "--runs", "3", "./p"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.trim_end().lines().last().expect("a line");
    assert_eq!(last, "to go on: foretell test --resume foretell-runs --runs 3 ./p", "{said}");
}

#[test]
fn a_full_disk_loses_nothing_that_was_found() {
    // A disk of our own, in a name space of our own.
    let script = "mount -t tmpfs -o size=32k none kept || exit 99
        \"$0\" test --resume kept ./p
        echo $? >first.code
        mount -o remount,size=64m kept || exit 99
        exec \"$0\" test --resume kept --json after.json ./p";
    let workshop = Workshop::new(READERS);
    let whole = workshop.whole(&[]);
    std::fs::create_dir(workshop.path("kept")).expect("a folder");
    let foretell = workshop.command(&[]);
    let mut alone = std::process::Command::new("unshare");
    alone.args(["--map-root-user", "--mount", "sh", "-c", script]).arg(foretell.get_program());
    alone.current_dir(workshop.path(""));
    for (name, value) in foretell.get_envs() {
        alone.env(name, value.unwrap_or_default());
    }
    let output = match alone.output() {
        Ok(output) if output.status.code() != Some(99) && !stderr(&output).contains("unshare") => {
            output
        }
        _ => return println!("SKIPPED: this machine lets us have no file system of our own"),
    };
    let first = std::fs::read_to_string(workshop.path("first.code")).expect("an exit code");
    assert_eq!(first.trim(), whole.code.to_string(), "{}", stderr(&output));
    assert!(stderr(&output).contains("is not kept for another time"), "{}", stderr(&output));
    let code = output.status.code().expect("a code");
    assert_eq!(Said::of(code, &workshop.json("after.json")), whole, "{}", stderr(&output));
}
