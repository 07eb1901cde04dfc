//! Building a program and asking the `foretell` binary about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// A folder of one test, removed at its end.
pub struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What `foretell test` said.
pub struct Answer {
    /// The exit code of foretell.
    pub code: Option<i32>,
    /// The JSON report; `Null` where there is none.
    pub report: Value,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// Fails the test, with everything that was said, unless the exit code is the expected one.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{:#}\n{}", self.report, self.stderr);
        self
    }

    /// The findings of the report.
    pub fn findings(&self) -> &[Value] {
        self.report["findings"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The confirmed findings of one kind.
    pub fn confirmed(&self, kind: &str) -> Vec<&Value> {
        let is = |finding: &&Value| finding["kind"] == kind && finding["status"] == "confirmed";
        self.findings().iter().filter(is).collect()
    }
}

impl Workshop {
    /// An empty folder.
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("repro-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The `foretell` binary in this folder, not yet started.
    pub fn foretell(&self) -> Command {
        let test = std::env::current_exe().expect("path of the test");
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        // Cargo leaves the plugin and the runtime beside the test.
        command.env("FORETELL_LIB_DIR", test.parent().expect("a folder"));
        command.current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Builds with `foretell cc` or `foretell c++`; gives the program's path.
    #[track_caller]
    pub fn build(&self, source: &Path, options: &[&str]) -> PathBuf {
        let compiler = if source.extension().is_some_and(|e| e == "c") { "cc" } else { "c++" };
        let program = self.0.join(source.file_stem().expect("a name"));
        let output = self
            .foretell()
            .args([compiler, "-g", "-pthread"])
            .args(options)
            .arg(source)
            .arg("-o")
            .arg(&program)
            .arg("-lm")
            .output()
            .expect("foretell runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    }

    /// Writes C source text and builds it at `-O1`.
    #[track_caller]
    pub fn build_text(&self, name: &str, code: &str) -> PathBuf {
        let source = self.0.join(name).with_extension("c");
        std::fs::write(&source, code).expect("a file");
        self.build(&source, &["-O1"])
    }

    /// `foretell test` of a program that was built. The limits only end what hangs: what is found
    /// must not depend on how busy the machine is.
    pub fn test(&self, program: &Path, options: &[&str], arguments: &[&str]) -> Answer {
        let output = self
            .foretell()
            .args(["--format", "json", "test", "--jobs", "2"])
            .args(options)
            .arg(program)
            .args(arguments)
            .output()
            .expect("foretell runs");
        answer(&output)
    }
}

/// The answer in what the command printed.
pub fn answer(output: &Output) -> Answer {
    Answer {
        code: output.status.code(),
        report: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A source in `programs/`.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/repro/programs").join(name)
}

/// Builds a source of `programs/` at `-O1` with further options and tests it.
#[track_caller]
pub fn tested(name: &str, options: &[&str], arguments: &[&str]) -> Answer {
    let workshop = Workshop::new();
    let mut all = vec!["-O1"];
    all.extend(options);
    let program = workshop.build(&source(name), &all);
    workshop.test(&program, &[], arguments)
}

impl Workshop {
    /// Replays every confirmed finding so often; the exit code of each replay must be 10.
    #[track_caller]
    pub fn replays(&self, answer: &Answer, program: &Path, times: usize) {
        for finding in answer.findings().iter().filter(|finding| finding["status"] == "confirmed") {
            let schedule = finding["schedule"].as_str().expect("a schedule");
            for time in 1..=times {
                let mut replay = self.foretell();
                let replay = replay.args(["replay", schedule, "--"]).arg(program).output();
                let replay = replay.expect("foretell runs");
                let said = String::from_utf8_lossy(&replay.stdout);
                assert_eq!(replay.status.code(), Some(10), "time {time} of {finding:#}: {said}");
            }
        }
    }
}
