//! Functions of the C library that read and write the program's memory: each of the table in `foretell-abi` is
//! called on memory that two threads write. Where the order of the threads decides, the other order is found;
//! where it does not, all behaviours are covered and everything was seen.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use foretell_abi::summaries::SUMMARIES;

/// Functions that another row stands for: the same function by another name, or one that other tests have.
const ELSEWHERE: [&str; 13] = [
    "__isoc23_strtol",
    "__isoc23_strtoll",
    "__isoc23_strtoul",
    "__isoc23_strtoull",
    "__snprintf_chk",
    "__sprintf_chk",
    "__strcat_chk",
    "__strcpy_chk",
    "__strncat_chk",
    "__strncpy_chk",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "_ZNSt6thread4joinEv",
    "_ZNSt6thread6detachEv",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libc/functions.c")
}

fn foretell(folder: &Path, words: &[&str]) -> Output {
    // Cargo leaves the plugin and the runtime beside the test.
    let test = std::env::current_exe().expect("path of the test");
    Command::new(env!("CARGO_BIN_EXE_foretell"))
        .args(words)
        .current_dir(folder)
        .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
        .output()
        .expect("foretell runs")
}

/// The rows of the program.
fn rows() -> Vec<String> {
    let text = std::fs::read_to_string(source()).expect("the program");
    let starts = ["  READS(", "  WRITES(", "  TIMES(", "  CASE("];
    let name = |line: &str| {
        let rest = starts.iter().find_map(|start| line.strip_prefix(start))?;
        rest.split(',').next().map(str::to_owned)
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn every_function_of_the_table_has_a_row() {
    let rows = rows();
    for summary in SUMMARIES {
        let has = rows.iter().any(|row| row == summary.name) || ELSEWHERE.contains(&summary.name);
        assert!(has, "{} has no row in {}", summary.name, source().display());
    }
}

#[test]
fn what_functions_read_and_write_is_seen() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = source().display().to_string();
    let built = foretell(
        &folder,
        &[
            "cc",
            "--as-written",
            "-O1",
            "-g",
            "-fno-builtin",
            "-pthread",
            &source,
            "-o",
            "functions",
        ],
    );
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut wrong = Vec::new();
    for row in rows() {
        for (ordered, expected) in [(false, 10), (true, 0)] {
            let mut words = vec!["test", "--jobs", "1", "./functions", row.as_str()];
            words.extend(ordered.then_some("ordered"));
            let tested = foretell(&folder, &words);
            let said = String::from_utf8_lossy(&tested.stdout).into_owned();
            let recorded = said.contains("the recorded run itself");
            if tested.status.code() != Some(expected) || recorded {
                let last = said.lines().rev().take(6).collect::<Vec<_>>().join(" | ");
                wrong.push(format!(
                    "{row} (ordered: {ordered}): {:?}: {last}",
                    tested.status.code()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
