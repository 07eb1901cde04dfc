//! Test programs of GoogleTest, Catch2 and doctest: which one it is, and its cases.
//!
//! A program is recognised by texts that only the framework has in it, and then asked for its cases as the
//! framework's own users ask. What gives no such list is a program like any other.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use foretell_guard::process;
use serde_json::Value;

use crate::commands::cases::Case;
use crate::commands::program::temporary;
use crate::exit::Failure;

/// How long a test program may take to list its cases, and how much it may print.
pub const LISTING: (Duration, usize) = (Duration::from_secs(30), 16 << 20);

/// A framework whose test programs are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// Version 1.10 and later.
    GoogleTest,
    /// Versions 2 and 3.
    Catch2,
    /// Version 2.
    Doctest,
}

/// What is in a test program: in its own code, or in the name of what it asks a shared library for.
const MARKS: [(&[u8], Framework); 5] = [
    (b"gtest_list_tests", Framework::GoogleTest),
    (b"_ZN7testing14InitGoogleTest", Framework::GoogleTest),
    (b"libgtest_main.so", Framework::GoogleTest),
    (b"list all/matching test cases", Framework::Catch2),
    (b"dt-list-test-cases", Framework::Doctest),
];

/// A larger file is not read.
const LARGEST: u64 = 1 << 30;

/// The framework that the program at this path was made with.
pub fn of(program: &Path) -> Option<Framework> {
    let mut file = File::open(program).ok()?;
    let is_file = file.metadata().ok()?.is_file();
    let mut begin = [0; 4];
    file.read_exact(&mut begin).ok().filter(|()| is_file && &begin == b"\x7fELF")?;
    let mut content = Vec::new();
    file.take(LARGEST).read_to_end(&mut content).ok()?;
    let has = |mark: &[u8]| content.windows(mark.len()).any(|window| window == mark);
    MARKS.iter().find(|(mark, _)| has(mark)).map(|&(_, framework)| framework)
}

/// The arguments that run the case of a name alone.
type Alone = fn(&str) -> Vec<String>;

/// The cases of a test program, each with the arguments that run it alone; `None` if the program gives no
/// list of them. Those that the framework itself would leave out are left out.
pub fn cases(framework: Framework, program: &Path) -> Result<Option<Vec<Case>>, Failure> {
    let (names, alone): (Option<Vec<String>>, Alone) = match framework {
        Framework::GoogleTest => (google_test(program)?, |name| {
            vec![format!("--gtest_filter={name}"), "--gtest_color=no".into()]
        }),
        Framework::Catch2 => catch2(program),
        Framework::Doctest => (doctest(program), |name| {
            vec![format!("--test-case={}", escaped(name, "\\,")), "--case-sensitive".into()]
        }),
    };
    let target = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let case = |name: String| Case {
        target: target.clone(),
        program: program.to_owned(),
        arguments: alone(&name).into_iter().map(OsString::from).collect(),
        name,
        ..Case::default()
    };
    Ok(names.map(|names| names.into_iter().map(case).collect()))
}

/// The name with a backslash before each character that the framework gives a meaning.
fn escaped(name: &str, special: &str) -> String {
    let escape = |c: char| special.contains(c).then_some('\\').into_iter().chain([c]);
    name.chars().flat_map(escape).collect()
}

/// What the program prints when it is given these arguments, whatever its exit status.
fn printed(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    // A part of the cases would be taken for all.
    command.args(arguments).env_remove("GTEST_TOTAL_SHARDS").env_remove("GTEST_FILTER");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let (time, most) = LISTING;
    let ran = process::run(&mut command, Some(time), most).ok()?;
    String::from_utf8(ran.output).ok()
}

/// GoogleTest writes its list as JSON, so that nothing that `main` prints can be taken for a case.
fn google_test(program: &Path) -> Result<Option<Vec<String>>, Failure> {
    let folder = temporary()?;
    let list = folder.path().join("list.json");
    let file = format!("--gtest_output=json:{}", list.display());
    printed(program, &["--gtest_list_tests", &file]);
    let text = std::fs::read(&list).unwrap_or_default();
    Ok(serde_json::from_slice(&text).ok().as_ref().and_then(google_tests_of))
}

fn google_tests_of(list: &Value) -> Option<Vec<String>> {
    let is_disabled = |name: &str| name.starts_with("DISABLED_") || name.contains("/DISABLED_");
    let mut names = Vec::new();
    for suite in list["testsuites"].as_array()? {
        let of = suite["name"].as_str()?;
        for test in suite["testsuite"].as_array()? {
            let name = test["name"].as_str()?;
            if !is_disabled(of) && !is_disabled(name) {
                names.push(format!("{of}.{name}"));
            }
        }
    }
    Some(names)
}

/// Version 2 has an option for names alone; version 3 has a quiet list. With either, a case that is not found
/// must not pass; one that is skipped passes.
fn catch2(program: &Path) -> (Option<Vec<String>>, Alone) {
    const SPECIAL: &str = "\\,[]\"~";
    let said = printed(program, &["--libidentify"]).unwrap_or_default();
    let version = said.lines().find_map(|line| line.strip_prefix("version:"));
    let version = version.map(str::trim_start).unwrap_or_default();
    let list: &[&str] = match version.split('.').next() {
        Some("2") => &["--list-test-names-only"],
        Some("3") => &["--list-tests", "--verbosity", "quiet"],
        _ => return (None, |_| Vec::new()),
    };
    let names = printed(program, list).map(|text| {
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        lines.map(|line| unquoted(line).to_owned()).collect()
    });
    match version.starts_with("2.") {
        true => (names, |name| vec![escaped(name, SPECIAL), "--warn=NoTests".into()]),
        false => (names, |name| {
            let options = ["--allow-running-no-tests", "--warn=UnmatchedTestSpec"];
            [escaped(name, SPECIAL)].into_iter().chain(options.map(String::from)).collect()
        }),
    }
}

/// Names that begin with `#` stand in quotation marks.
fn unquoted(line: &str) -> &str {
    line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(line)
}

/// doctest frames its list, and says how long it is.
fn doctest(program: &Path) -> Option<Vec<String>> {
    let arguments =
        ["--list-test-cases", "--no-intro=true", "--no-version=true", "--no-colors=true"];
    doctests_of(&printed(program, &arguments)?)
}

fn doctests_of(text: &str) -> Option<Vec<String>> {
    let (_, list) = text.split_once("[doctest] listing all test case names\n")?;
    let (list, end) =
        list.split_once("[doctest] unskipped test cases passing the current filters: ")?;
    let count: usize = end.lines().next()?.trim().parse().ok()?;
    let is_rule = |line: &&str| !line.is_empty() && line.chars().all(|c| c == '=');
    let names: Vec<String> =
        list.lines().filter(|line| !is_rule(line)).map(str::to_owned).collect();
    (names.len() == count).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_tests_are_left_out() {
        let list = serde_json::json!({"testsuites": [
            {"name": "A", "testsuite": [{"name": "One"}, {"name": "DISABLED_Two"}]},
            {"name": "All/DISABLED_B", "testsuite": [{"name": "Three/0"}]},
            {"name": "All/C", "testsuite": [{"name": "Four/0"}]},
        ]});
        assert_eq!(google_tests_of(&list), Some(vec!["A.One".into(), "All/C.Four/0".into()]));
    }

    #[test]
    fn a_list_that_is_not_whole_is_none() {
        let whole = "main says hello\n[doctest] listing all test case names\n=====\none\ntwo, three\n=====\n\
                     [doctest] unskipped test cases passing the current filters: 2\n";
        assert_eq!(doctests_of(whole), Some(vec!["one".into(), "two, three".into()]));
        assert_eq!(doctests_of(&whole.replace(": 2", ": 3")), None);
    }

    #[test]
    fn what_a_framework_gives_a_meaning_is_escaped() {
        assert_eq!(escaped("~a, [b]", "\\,[]\"~"), r"\~a\, \[b\]");
    }
}
