//! Programs in Rust: the examples, and a package under `foretell cargo`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The examples and how `foretell test` must end on them.
const EXPECTED: [(&str, i32); 25] = [
    ("bank", 10),
    ("channel_order", 10),
    ("double_init", 10),
    ("dropped_receiver", 10),
    ("guarded_map", 10),
    ("last_user", 10),
    ("load_store", 10),
    ("lock_order", 10),
    ("lost_wakeup", 10),
    ("poisoned", 10),
    ("rwlock_upgrade", 10),
    ("scoped_sum", 10),
    ("spinlock", 10),
    ("ok_bank", 0),
    ("ok_barrier", 0),
    ("ok_bounded", 0),
    ("ok_caught", 0),
    ("ok_channel", 0),
    ("ok_condvar", 0),
    ("ok_counter", 0),
    ("ok_once", 0),
    ("ok_poisoned", 0),
    ("ok_rwlock", 0),
    ("ok_scope", 0),
    ("ok_spinlock", 0),
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rust")
}

/// A folder of its own below Cargo's folder for tests.
struct Workshop(PathBuf);

impl Workshop {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rust-{name}"));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn foretell(&self, words: &[&str]) -> Output {
        // Cargo leaves the plugin and the runtime beside the test.
        let test = std::env::current_exe().expect("path of the test");
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(words)
            .current_dir(&self.0)
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output()
            .expect("foretell runs")
    }

    /// The result of `foretell test` on a file, and the exit code.
    fn test(&self, words: &[&str]) -> (i32, Value) {
        let tested = self.foretell(&[&["--format", "json", "test"], words].concat());
        let report = serde_json::from_slice(&tested.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&tested.stderr)));
        (tested.status.code().unwrap_or(-1), report)
    }
}

#[test]
fn every_example_ends_as_expected() {
    let workshop = Workshop::new("examples");
    let mut wrong = Vec::new();
    for (name, expected) in EXPECTED {
        let source = examples().join(format!("{name}.rs")).display().to_string();
        let (code, report) = workshop.test(&["--time-limit", "120", "--runs", "60", &source]);
        let covered = report["exploration"]["covered"] == true;
        if code != expected || (expected == 0 && !covered) {
            wrong.push(format!("{name}: {code}, {report:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_is_in_the_table() {
    let files = std::fs::read_dir(examples()).expect("the examples");
    let names = files.map(|file| file.expect("an entry").path());
    let mut names: Vec<String> = names
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    let mut expected = EXPECTED.map(|(name, _)| name.to_owned()).to_vec();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn a_panic_is_a_failure_at_its_place_and_replays() {
    let workshop = Workshop::new("panic");
    let source = examples().join("bank.rs").display().to_string();
    let (code, report) = workshop.test(&["--schedules", "schedules", &source]);
    assert_eq!(code, 10);
    let finding = &report["findings"][0];
    assert_eq!(
        (finding["kind"].as_str(), finding["effect"].as_str()),
        (Some("assertion"), Some("assertion"))
    );
    let ended = finding["forced"]["ended"].as_str().unwrap_or_default();
    assert!(
        ended.starts_with("exit 101, panicked at ") && ended.ends_with("bank.rs:30"),
        "{ended}"
    );
    for word in ["{closure#", "{shim", "/rustc/", "library/", "_RNv", "spawn_unchecked"] {
        let headline = finding["detail"].as_str().unwrap_or_default();
        assert!(!headline.contains(word), "{headline}");
    }
    let schedule = std::fs::read_dir(workshop.0.join("schedules")).expect("schedules").next();
    let schedule = schedule.expect("a schedule").expect("an entry").path().display().to_string();
    for _ in 0..20 {
        let replayed = workshop.foretell(&["replay", &schedule, "--", &source]);
        assert_eq!(
            replayed.status.code(),
            Some(10),
            "{}",
            String::from_utf8_lossy(&replayed.stdout)
        );
    }
}

/// Makes a package of the folder, with these files below `src`.
fn package(workshop: &Workshop, files: &[(&str, String)]) {
    let manifest =
        "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    std::fs::write(workshop.0.join("Cargo.toml"), manifest).expect("written");
    for (name, text) in files {
        let path = workshop.0.join("src").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
}

#[test]
fn programs_run_alone_and_their_traces_make_sense() {
    let workshop = Workshop::new("alone");
    let correct: Vec<&str> =
        EXPECTED.iter().filter(|(_, code)| *code == 0).map(|(name, _)| *name).collect();
    let files: Vec<(String, String)> = correct
        .iter()
        .map(|name| {
            let text = std::fs::read_to_string(examples().join(format!("{name}.rs")));
            (format!("bin/{name}.rs"), text.expect("an example"))
        })
        .collect();
    let files: Vec<(&str, String)> =
        files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    package(&workshop, &files);
    let built = workshop.foretell(&["cargo", "build", "--offline"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for name in correct {
        let mut found = std::fs::read_dir(workshop.0.join("target/foretell")).expect("a folder");
        let program = found.find_map(|entry| {
            let program = entry.expect("an entry").path().join("debug").join(name);
            program.is_file().then_some(program)
        });
        let program = program.expect("the program was built");
        for _ in 0..20 {
            let status = Command::new(&program).status().expect("it starts");
            assert!(status.success(), "{name} by itself: {status}");
        }
        let program = program.display().to_string();
        let recorded = workshop.foretell(&["record", "-o", "trace.ftrace", "--", &program]);
        assert_eq!(recorded.status.code(), Some(0), "{name}");
        let checked = workshop.foretell(&["trace", "validate", "trace.ftrace"]);
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stdout));
    }
}

const PACKAGE: &str = r#"
use std::sync::Mutex;

/// Adds in two steps.
pub fn add(sum: &Mutex<u32>, part: u32) {
    let before = *sum.lock().unwrap();
    *sum.lock().unwrap() = before + part;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn both(add: fn(&Mutex<u32>, u32)) -> u32 {
        let sum = Arc::new(Mutex::new(0));
        let theirs = sum.clone();
        let other = std::thread::spawn(move || add(&theirs, 1));
        add(&sum, 2);
        other.join().unwrap();
        let sum = *sum.lock().unwrap();
        sum
    }

    #[test]
    fn two_steps() {
        assert_eq!(both(add), 3);
    }

    #[test]
    fn one_step() {
        assert_eq!(both(|sum, part| *sum.lock().unwrap() += part), 3);
    }

    #[test]
    fn scoped() {
        let sum = Mutex::new(0);
        std::thread::scope(|scope| _ = scope.spawn(|| *sum.lock().unwrap() += 1));
        assert_eq!(sum.into_inner().unwrap(), 1);
    }

    #[test]
    #[ignore]
    fn ignored() {
        panic!();
    }
}
"#;

#[test]
fn each_test_of_a_package_is_a_program_of_its_own() {
    let workshop = Workshop::new("package");
    package(&workshop, &[("lib.rs", PACKAGE.to_owned())]);
    let listed = workshop.foretell(&["cargo", "test", "--list", "--", "--lib", "--offline"]);
    let listed_text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert_eq!(
        listed_text, "sums: tests::one_step\nsums: tests::scoped\nsums: tests::two_steps\n",
        "{said}"
    );
    let words = ["--format", "json", "cargo", "test", "--junit", "all.xml", "--"];
    let tested = workshop.foretell(&[words.as_slice(), &["--lib", "--offline"]].concat());
    let result: Value = serde_json::from_slice(&tested.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&tested.stderr)));
    assert_eq!(tested.status.code(), Some(10), "{result:#}");
    let codes: Vec<(Option<&str>, Option<i64>)> = result["tests"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|test| (test["name"].as_str(), test["exit"].as_i64()))
        .collect();
    assert_eq!(codes.len(), 3, "{result:#}");
    assert!(matches!(codes[0], (Some("tests::one_step"), Some(0 | 12))), "{result:#}");
    // The end of a scope waits for its threads; the harness has compiled what tells it, too.
    assert!(matches!(codes[1], (Some("tests::scoped"), Some(0 | 12))), "{result:#}");
    assert_eq!(codes[2], (Some("tests::two_steps"), Some(10)), "{result:#}");
    let junit = std::fs::read_to_string(workshop.0.join("all.xml")).expect("written");
    assert!(junit.contains("tests=\"3\" failures=\"1\""), "{junit}");
    let failed = junit.split("<testcase").find(|case| case.contains("<failure"));
    assert!(failed.is_some_and(|case| case.contains("\"tests::two_steps\"")), "{junit}");
    let none = workshop.foretell(&["cargo", "test", "nowhere", "--", "--lib", "--offline"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(2), "{said}");
    assert!(said.contains("no test has `nowhere` in its name"), "{said}");
}

#[test]
fn locks_of_parking_lot_are_locks() {
    let package = examples().join("parking_lot");
    let fetched = Command::new("cargo").args(["fetch", "--locked"]).current_dir(&package).output();
    if !fetched.is_ok_and(|fetched| fetched.status.success()) {
        println!("SKIPPED: parking_lot cannot be fetched");
        return;
    }
    let workshop = Workshop::new("parking_lot");
    std::fs::create_dir_all(workshop.0.join("src/bin")).expect("a folder");
    for file in
        ["Cargo.toml", "Cargo.lock", "src/bin/bank.rs", "src/bin/ok_bank.rs", "src/bin/ok_newer.rs"]
    {
        std::fs::copy(package.join(file), workshop.0.join(file)).expect("copied");
    }
    let built = workshop.foretell(&["cargo", "build", "--locked", "--offline"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let programs = workshop.0.join("target/foretell/x86_64-unknown-linux-gnu/debug");
    for (name, expected, covered) in
        [("bank", 10, None), ("ok_bank", 0, Some(true)), ("ok_newer", 0, Some(true))]
    {
        let program = programs.join(name).display().to_string();
        let (code, report) = workshop.test(&["--time-limit", "120", "--runs", "60", &program]);
        assert_eq!(code, expected, "{name}: {report:#}");
        let is_covered = report["exploration"]["covered"].as_bool();
        assert!(covered.is_none() || is_covered == covered, "{name}: {report:#}");
    }
}

const MARKED: &str = r#"
use std::sync::Mutex;

static FROM: Mutex<i32> = Mutex::new(1);
static TO: Mutex<i32> = Mutex::new(0);

#[foretell::atomic]
fn transfer(amount: i32) -> Option<i32> {
    let left = FROM.lock().unwrap().checked_sub(amount)?;
    *FROM.lock().unwrap() = left;
    *TO.lock().unwrap() += amount;
    Some(left)
}

fn main() {
    let other = std::thread::spawn(|| transfer(1));
    let mine = foretell::atomic_block! { "mine"; transfer(1) };
    println!("{mine:?} {:?}", other.join().unwrap());
}
"#;

#[test]
fn marked_regions_are_recorded_and_torn_and_nothing_otherwise() {
    let workshop = Workshop::new("marked");
    let mark = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foretell-atomic");
    package(&workshop, &[("main.rs", MARKED.to_owned())]);
    let manifest = workshop.0.join("Cargo.toml");
    let mut text = std::fs::read_to_string(&manifest).expect("written");
    text += "[dependencies.foretell]\npackage = \"foretell-atomic\"\n";
    text += &format!("path = {:?}\n", mark.display().to_string());
    std::fs::write(&manifest, text).expect("written");
    let built = workshop.foretell(&["cargo", "build", "--offline"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let programs = workshop.0.join("target/foretell/x86_64-unknown-linux-gnu/debug");
    let program = programs.join("sums").display().to_string();
    let (code, report) = workshop.test(&["--time-limit", "60", &program]);
    assert_eq!(code, 10, "{report:#}");
    assert_eq!(report["findings"][0]["kind"], "atomicity", "{report:#}");
    workshop.foretell(&["record", "-o", "marked.ftrace", "--", &program]);
    let events = workshop.foretell(&["trace", "cat", "marked.ftrace"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    for (region, times) in [(" region transfer @", 2), (" region mine @", 1), (" region-end @", 3)]
    {
        assert_eq!(events.matches(region).count(), times, "{region}: {events}");
    }
    let plain = Command::new("cargo")
        .args(["build", "--offline"])
        .current_dir(&workshop.0)
        .env("CARGO_TARGET_DIR", workshop.0.join("plain"))
        .output()
        .expect("cargo runs");
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    let bytes = std::fs::read(workshop.0.join("plain/debug/sums")).expect("the program");
    let is_mark = |part: &[u8]| part == b"__foretell";
    assert!(!bytes.windows(b"__foretell".len()).any(is_mark));
}

#[test]
fn bugs_of_published_crates_are_confirmed_and_gone_where_they_are_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let test = std::env::current_exe().expect("path of the test");
    let foretell = Path::new(env!("CARGO_BIN_EXE_foretell"));
    let tested = Command::new(folder.join("scripts/crates.sh"))
        .args(["tokio-notify", "flume-receive"])
        .env("FORETELL_BIN", foretell.parent().expect("a folder"))
        .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("the script runs");
    let rows = String::from_utf8_lossy(&tested.stdout).into_owned();
    let said = String::from_utf8_lossy(&tested.stderr).into_owned();
    if said.contains("SKIPPED") {
        println!("SKIPPED: crates cannot be fetched: {said}");
        return;
    }
    assert!(tested.status.success(), "{rows}{said}");
    assert_eq!(rows.lines().count(), 5, "{rows}");
}

#[test]
fn a_package_that_does_not_compile_is_bad_input() {
    let workshop = Workshop::new("broken");
    std::fs::write(workshop.0.join("broken.rs"), "fn main() { let x: u32 = \"\"; }")
        .expect("written");
    let tested = workshop.foretell(&["test", "broken.rs"]);
    let said = String::from_utf8_lossy(&tested.stderr).into_owned();
    assert_eq!(tested.status.code(), Some(2), "{said}");
    assert!(said.contains("broken.rs was not compiled"), "{said}");
}
