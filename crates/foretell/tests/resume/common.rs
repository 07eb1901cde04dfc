//! Programs to explore, and the `foretell` binary.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// Four readers of a flag, each of which decides by it, and a bug that only one order of two of them and the
/// writer shows: dozens of classes.
pub const READERS: &str = include_str!("../../../../scripts/cluster.c");

/// A folder of one test, removed at its end, with a program that was built from this text.
pub struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Workshop {
    /// With the program `./p`.
    pub fn new(text: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("resume-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let workshop = Self(path);
        workshop.build(text);
        workshop
    }

    /// Another program in the same place.
    pub fn build(&self, text: &str) {
        std::fs::write(self.path("p.c"), text).expect("a file");
        let built = self.foretell(&["cc", "-O1", "-g", "-pthread", "-o", "p", "p.c"]);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }

    /// A file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command, in the folder.
    pub fn command(&self, words: &[&str]) -> Command {
        let test = std::env::current_exe().expect("path of the test");
        let mut command = Command::new(env!("CARGO_BIN_EXE_foretell"));
        command
            .args(words)
            .current_dir(&self.0)
            // Cargo leaves the plugin and the runtime beside the test.
            .env("FORETELL_LIB_DIR", test.parent().expect("a folder"))
            // What a foretell that is killed leaves goes with the folder.
            .env("TMPDIR", &self.0)
            .stdin(Stdio::null());
        command
    }

    /// Runs it.
    pub fn foretell(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("foretell runs")
    }

    /// Starts it.
    pub fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("foretell starts")
    }

    /// A result that was saved.
    pub fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.path(name)).expect("a result");
        serde_json::from_str(&text).expect("JSON")
    }

    /// What a whole test says, as far as it has to be the same however it came about.
    pub fn whole(&self, options: &[&str]) -> Said {
        let words = [&["test", "--json", "whole.json"], options, &["./p"]].concat();
        let output = self.foretell(&words);
        let code = output.status.code().expect("an exit code");
        assert!(code != 1 && code != 2, "{}", String::from_utf8_lossy(&output.stderr));
        Said::of(code, &self.json("whole.json"))
    }
}

/// Exit code, number and digest of the classes, whether all was covered, and the findings by kind and
/// fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub code: i32,
    pub classes: u64,
    pub digest: String,
    pub covered: bool,
    pub findings: Vec<(String, String, String)>,
    /// Kind, status and end of the forced run of those that are not shown as another one.
    shown: Vec<(String, String, String)>,
}

impl Said {
    pub fn of(code: i32, report: &Value) -> Self {
        let explored = &report["exploration"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = report["findings"].as_array().expect("findings").iter();
        let mut findings: Vec<_> = findings
            .map(|found| {
                (text(&found["kind"]), text(&found["status"]), text(&found["fingerprint"]))
            })
            .collect();
        findings.sort();
        findings.dedup();
        let shown = report["findings"].as_array().expect("findings").iter();
        let shown = shown.filter(|found| found["same_as"].is_null());
        let mut shown: Vec<_> = shown
            .map(|found| {
                (text(&found["kind"]), text(&found["status"]), text(&found["forced"]["ended"]))
            })
            .collect();
        shown.sort();
        shown.dedup();
        Self {
            code,
            classes: explored["classes"].as_u64().expect("classes"),
            digest: text(&explored["digest"]),
            covered: explored["covered"] == true,
            findings,
            shown,
        }
    }

    /// The same, where runs are cut short: that makes classes that a longer one covers, and whether such a run
    /// could be followed further, so that all is known to be covered, depends on where it was cut.
    pub fn without_cover(&self) -> Self {
        Self { classes: 0, digest: String::new(), covered: false, ..self.clone() }
    }

    /// The same, whichever order of events a bug was first shown by.
    pub fn bugs(&self) -> Self {
        Self { findings: Vec::new(), ..self.clone() }
    }
}

/// What it wrote to standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end.max(1)
    }
}
