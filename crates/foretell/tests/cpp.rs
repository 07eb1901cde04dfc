//! The programs in `examples/cpp/`: C++ as people write it today. Each is given to `foretell test` as it is;
//! `expected.json` says how that ends. Those whose name begins with `ok_` are correct.
//!
//! What a report says must be in the words of the program: no address, no mangled lambda and no line of the
//! standard library in its headlines, steps and repairs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cpp")
}

fn expected() -> Vec<Value> {
    let text = std::fs::read_to_string(examples().join("expected.json")).expect("expected.json");
    serde_json::from_str(&text).expect("a list")
}

/// What `foretell test` says of the program: exit code, text for people, and JSON.
fn tested(name: &str, options: &[&str]) -> (Option<i32>, String, Value) {
    let test = std::env::current_exe().expect("path of the test");
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cpp-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let json = folder.join("result.json");
    let output = Command::new(env!("CARGO_BIN_EXE_foretell"))
        .args(["test", "--jobs", "1", "--run-limit", "900", "--time-limit", "3600", "--json"])
        .arg(&json)
        .args(options)
        .arg(examples().join(name))
        .current_dir(&folder)
        // Cargo leaves the plugin and the runtime beside the test.
        .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
        .stdin(Stdio::null())
        .output()
        .expect("foretell runs");
    let report = std::fs::read(&json).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let _ = std::fs::remove_dir_all(&folder);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.code(), said, report.unwrap_or(Value::Null))
}

/// What is not in the words of the program.
fn foreign(text: &str) -> Option<String> {
    let word = |word: &str| {
        let digits = word.split("0x").nth(1).unwrap_or_default();
        let address = digits.chars().take_while(char::is_ascii_hexdigit).count() >= 5;
        let mangled =
            ["'lambda", "{lambda", "_ZN", "_M_", "_S_"].iter().any(|mark| word.contains(mark));
        let library = ["/include/c++/", "bits/", "stl_"].iter().any(|mark| word.contains(mark));
        address || mangled || library
    };
    text.split_whitespace().find(|part| word(part)).map(str::to_owned)
}

/// The report without what the program wrote itself, and without what is said about the machine: the branch
/// by which a run left the recorded one.
fn without_the_rest(said: &str) -> String {
    let mut told = String::new();
    let mut left_out = false;
    for line in said.lines() {
        let begins = line.strip_prefix("  ").unwrap_or(line);
        if !begins.starts_with(' ') {
            let others = ["first other branch", "its standard error", "output:", "replay:"];
            left_out = others.iter().any(|other| begins.starts_with(other));
        }
        if !left_out {
            told += line;
            told.push('\n');
        }
    }
    told
}

fn check(entry: &Value) -> Result<(), String> {
    let name = entry["name"].as_str().ok_or("a name")?;
    let words = entry["options"].as_array().into_iter().flatten();
    let options: Vec<&str> = words.filter_map(Value::as_str).collect();
    let (code, said, report) = tested(name, &options);
    let code = code.map(i64::from);
    if code != entry["exit"].as_i64() {
        return Err(format!("{name} ends with {code:?}, not {}\n{said}", entry["exit"]));
    }
    let findings = report["findings"].as_array().ok_or("findings")?;
    if let Some(effect) = entry["effect"].as_str() {
        let is = |finding: &&Value| finding["status"] == "confirmed" && finding["effect"] == effect;
        if !findings.iter().any(|finding| is(&finding)) {
            return Err(format!("{name}: no confirmed finding ends in {effect}\n{said}"));
        }
    }
    let mut headlines = said.lines().filter(|line| !line.starts_with(' ') && line.contains("]: "));
    if code == Some(10) && headlines.clone().next().is_none() {
        return Err(format!("{name}: no headline in\n{said}"));
    }
    if let Some(headline) = headlines.find(|line| line.contains("heap@")) {
        return Err(format!("{name}: memory without a name in `{headline}`"));
    }
    let told = without_the_rest(&said);
    if let Some(word) = foreign(&told) {
        return Err(format!("{name}: `{word}` in\n{said}"));
    }
    Ok(())
}

#[test]
fn every_program_has_its_expectation() {
    let programs: BTreeSet<String> = std::fs::read_dir(examples())
        .expect("examples/cpp/")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".cpp"))
        .collect();
    let entries: BTreeSet<String> =
        expected().iter().filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect();
    assert_eq!(programs, entries);
    let correct = entries.iter().filter(|name| name.starts_with("ok_")).count();
    assert!(correct >= 5 && entries.len() - correct >= 10, "{entries:?}");
}

#[test]
fn programs_are_judged_rightly_and_in_their_own_words() {
    let expected = expected();
    let faults = on_all_cores(&expected, |entry| check(entry).err());
    assert!(faults.is_empty(), "{} programs:\n{}", faults.len(), faults.join("\n\n"));
}

/// Builds a program of a folder beside this file with these options, and gives how `foretell test` ends and what it says.
fn built_and_tested(source: &Path, options: &[&str], scratch: &Path) -> (Option<i32>, String) {
    let test = std::env::current_exe().expect("path of the test");
    let foretell = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(words)
            .current_dir(scratch)
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .stdin(Stdio::null())
            .output()
            .expect("foretell runs")
    };
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let path = source.display().to_string();
    let words = ["c++", "--as-written", "-O1", "-g", "-pthread", &path, "-o", &name];
    let built = foretell(&[&words, options].concat());
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let tested = foretell(&["test", "--jobs", "1", "--time-limit", "600", &format!("./{name}")]);
    (tested.status.code(), String::from_utf8_lossy(&tested.stdout).into_owned())
}

/// What is wrong with which of them, looked at by as many threads as there are cores.
fn on_all_cores<T: Sync>(all: &[T], check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let waiting = Mutex::new(all.iter());
    let wrong = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(one) = waiting.lock().expect("no panic").next() else { return };
            if let Some(fault) = check(one) {
                wrong.lock().expect("no panic").push(fault);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| _ = scope.spawn(work)));
    wrong.into_inner().expect("no panic")
}

/// The programs of a folder beside this file.
fn programs_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(folder).expect("the programs");
    let mut programs: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    programs.sort();
    programs
}

/// One of so many of the programs each time; all of them with `FORETELL_CPP_ALL` (`ci/nightly.sh`).
fn some_of(programs: Vec<PathBuf>, many: usize) -> Vec<PathBuf> {
    let many = if std::env::var_os("FORETELL_CPP_ALL").is_some() { 1 } else { many };
    programs.into_iter().step_by(many).collect()
}

fn fresh_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Small correct programs, one for each thing of the standard library that the book says is seen: all behaviours
/// are covered, also as C++17, whose headers leave strings to the library.
#[test]
fn what_the_book_says_is_seen_is_covered() {
    let book = std::fs::read_to_string(examples().join("../../docs/src/cpp.md")).expect("the book");
    let scratch = fresh_folder("cpp-rows");
    let mut wrong = Vec::new();
    for path in programs_in("cpp_rows") {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(book.contains(&format!("`std::{name}`")), "{name} is not in the book");
        // Stop tokens and the like are of C++20.
        let standards: &[&str] = match name.as_str() {
            "string" => &["-std=c++17", "-std=c++20"],
            _ => &["-std=c++20"],
        };
        for standard in standards {
            let (code, said) = built_and_tested(&path, &[standard], &scratch);
            if code != Some(0) {
                wrong.push(format!("{name} {standard}: {code:?}\n{said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// With libc++ the same is seen, the same is found, and nothing is found in correct programs.
#[test]
fn programs_with_libcxx_are_judged_like_the_others() {
    let scratch = fresh_folder("cpp-libcxx");
    let options = ["-stdlib=libc++", "-std=c++20"];
    // How threads meet at the state of `std::cout` is no race, though libc++ has that in its headers.
    let used = ["printed_cout_ok", "shared_mutex_ok", "shared_mutex_bug", "timed_mutex_bug"];
    let is_of_these =
        |path: &PathBuf| used.iter().any(|name| path.ends_with(format!("{name}.cpp")));
    let programs = programs_in("cpp_rows").into_iter().chain(programs_in("cpp_lost"));
    let used = programs_in("cpp_used").into_iter().filter(is_of_these);
    let programs = some_of(programs.chain(used).collect(), 4);
    let wrong = on_all_cores(&programs, |path| {
        let is_wrong = path.parent().is_some_and(|folder| folder.ends_with("cpp_lost"))
            || path.display().to_string().ends_with("_bug.cpp");
        let right = if is_wrong { 10 } else { 0 };
        let (code, said) = built_and_tested(path, &options, &scratch);
        (code != Some(right))
            .then(|| format!("{} ends with {code:?}, not {right}\n{said}", path.display()))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Small programs that wait for what the standard library makes of atomics, and go wrong.
#[test]
fn what_is_lost_between_waits_and_notifications_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cpp_lost");
    let test = std::env::current_exe().expect("path of the test");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpp-lost");
    _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch).expect("a folder");
    for entry in std::fs::read_dir(folder).expect("the programs") {
        let path = entry.expect("an entry").path();
        let tested = Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(["test", "--time-limit", "600"])
            .arg(&path)
            .arg("-std=c++20")
            .current_dir(&scratch)
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .output()
            .expect("foretell runs");
        let said = String::from_utf8_lossy(&tested.stdout).into_owned();
        assert_eq!(tested.status.code(), Some(10), "{}: {said}", path.display());
    }
}

/// A small program for each of what C and C++ programs use beside: those whose name ends in `_ok` are correct, and
/// all their behaviours are covered; in those that end in `_bug` another order goes wrong.
#[test]
fn what_programs_use_beside_is_judged_rightly() {
    let book = std::fs::read_to_string(examples().join("../../docs/src/cpp.md")).expect("the book");
    let test = std::env::current_exe().expect("path of the test");
    let scratch = fresh_folder("cpp-used");
    let wrong = on_all_cores(&some_of(programs_in("cpp_used"), 2), |path| {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (name, kind) = stem.rsplit_once('_').expect("a name that says what to expect");
        let right = if kind == "ok" { 0 } else { 10 };
        assert!(book.contains(&format!("`{name}`")), "{name} is not in the book");
        let tested = Command::new(env!("CARGO_BIN_EXE_foretell"))
            .args(["test", "--jobs", "1", "--time-limit", "600"])
            .args(if kind == "bug" { ["--runs", "200"].as_slice() } else { &[] })
            .arg(path)
            .current_dir(&scratch)
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            .stdin(Stdio::null())
            .output()
            .expect("foretell runs");
        let said = String::from_utf8_lossy(&tested.stdout).into_owned();
        let code = tested.status.code();
        (code != Some(right)).then(|| format!("{stem} ends with {code:?}\n{said}"))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
