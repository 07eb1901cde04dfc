//! What a forced run did that the recorded one did not (the effects of 002's chapter on execution
//! paths, and what a user sees before that: assertion, crash, hang, output).
//!
//! Compared are the end of the run, the bytes of standard output and standard error, the files that
//! the user declared as written, and the branches of each thread. Not compared: files that were not
//! declared, what goes over a network, and time. Output that has the same lines in another order
//! counts as another path: which thread prints first is no bug by itself. Whether other lines are one,
//! [`crate::control`] decides.

use std::fmt;

use foretell_record::{Blocked, BranchTaken, PathDifference, RunEnd, standstill};
use foretell_trace::Site;
use foretell_trace::schedule::CreationPath;
use serde::{Deserialize, Serialize};

use crate::run::{Run, Written};

/// What changed, the worst first (closed list, the JSON contract's `effect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// An assertion failed.
    Assertion,
    /// The program died of a signal.
    Crash,
    /// No thread could go on, or all went on for ever.
    Hang,
    /// Other bytes, or another exit status.
    Output,
    /// A branch went another way.
    Path,
    /// Nothing.
    None,
}

impl Effect {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Assertion => "assertion",
            Effect::Crash => "crash",
            Effect::Hang => "hang",
            Effect::Output => "output",
            Effect::Path => "path",
            Effect::None => "none",
        }
    }

    /// It ends the program badly.
    pub fn is_fatal(self) -> bool {
        self <= Effect::Hang
    }

    /// The user sees that something is wrong.
    pub fn is_visible(self) -> bool {
        self <= Effect::Output
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The worst of it.
    pub effect: Effect,
    /// What that is.
    pub change: Change,
    /// The same as a sentence for people.
    pub sentence: String,
    /// Recorded (`-`) and forced (`+`) lines of output around the first difference.
    pub output: Option<String>,
    /// The first branch that went another way (the recorded run's way first).
    pub branch: Option<PathDifference>,
    /// The same as a sentence.
    pub other_path: Option<String>,
}

impl Difference {
    /// The run is different in this, and nothing else is known.
    pub fn new(effect: Effect, change: Change, forced: &Run) -> Self {
        let sentence = change.sentence(forced);
        Self { effect, change, sentence, output: None, branch: None, other_path: None }
    }
}

/// What is different: runs that went wrong alike have equal ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The assertion at this place failed.
    Assertion(Option<SourcePlace>),
    /// It died of this signal, at this place.
    Signal(i32, Option<SourcePlace>),
    /// It hung; who waits for what, wherever.
    Hang(Vec<Blocked>),
    /// The test failed with this exit status.
    TestFailed(i32),
    /// It ended with another exit status.
    Status {
        /// The recorded run's.
        before: i32,
        /// The forced run's.
        after: i32,
    },
    /// It ended well, unlike the recorded run.
    Better,
    /// The output.
    Output,
    /// The output, and nobody knows whether it may.
    UnclearOutput,
    /// The output, as it may in a correct run.
    LawfulOutput,
    /// The order of the lines of output.
    LinesOrder,
    /// The path of a thread: what it did in the recorded run and in the forced one.
    Path(CreationPath, Option<BranchTaken>, Option<BranchTaken>),
    /// Nothing.
    Nothing,
}

/// A line of the source, or a function where the line is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The file; may be empty.
    pub file: Box<str>,
    /// The line; 0 if it is not known.
    pub line: u32,
    /// The function, where the line is not known.
    pub function: Box<str>,
}

impl SourcePlace {
    fn of(site: &Site) -> Self {
        let Site { file, line, function, .. } = site.clone();
        let function = if line == 0 { function } else { "".into() };
        Self { file, line, function }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 if !self.function.is_empty() => write!(f, "in {}", self.function),
            _ => write!(f, "at {}:{}", self.file, self.line),
        }
    }
}

impl Change {
    fn path(branch: &PathDifference) -> Self {
        Change::Path(branch.thread.clone(), branch.first.clone(), branch.second.clone())
    }

    /// What is different in the forced run, for people.
    pub fn sentence(&self, forced: &Run) -> String {
        let taken = |branch: &Option<BranchTaken>| match branch {
            Some(branch) => branch.to_string(),
            None => "nothing more".into(),
        };
        match self {
            Change::Assertion(Some(place)) => format!("the assertion {place} failed"),
            Change::Assertion(None) => "the assertion failed".into(),
            Change::Signal(..) => format!("died: {}", forced.ended()),
            Change::Hang(threads) => format!("hung: {}", forced.said(&standstill(threads))),
            Change::TestFailed(status) => format!("the test failed: exit status {status}"),
            Change::Status { before, after } => format!("exit status {after} instead of {before}"),
            Change::Better => "the run ended well, unlike the recorded one".into(),
            Change::Output => "the output differs".into(),
            Change::UnclearOutput => "the output differs; whether it may is not known".into(),
            Change::LawfulOutput => "the output differs as it may in a correct run".into(),
            Change::LinesOrder => "the same lines are written in another order".into(),
            Change::Path(thread, recorded, forced_branch) => {
                let thread = forced.trace.name_of_thread(&thread.0);
                let (now, before) = (taken(forced_branch), taken(recorded));
                format!("thread {thread} took another path: {now} instead of {before}")
            }
            Change::Nothing => "nothing else changed".into(),
        }
    }
}

/// How the forced run differs from the recorded one.
pub fn compare(recorded: &Run, forced: &Run) -> Difference {
    let fatal = fatal(forced).filter(|end| Some(end) != self::fatal(recorded).as_ref());
    let output = output_difference(&recorded.written, &forced.written);
    let branch = recorded.path.differences(&forced.path).into_iter().next();
    let status = match (&recorded.end, &forced.end) {
        (RunEnd::Exit(before), RunEnd::Exit(after)) if before != after => {
            Some(Change::Status { before: *before, after: *after })
        }
        _ => None,
    };
    // A run that ends well after one that did not has lost nothing that it should have written.
    let better = self::fatal(recorded).is_some() && self::fatal(forced).is_none();
    let (effect, change) = if let Some((effect, change)) = fatal {
        (effect, change)
    } else if let Some(status) = status {
        (Effect::Output, status)
    } else if better {
        (Effect::Path, Change::Better)
    } else if recorded.written != forced.written {
        match same_lines(&recorded.written, &forced.written) {
            false => (Effect::Output, Change::Output),
            true => (Effect::Path, Change::LinesOrder),
        }
    } else if let Some(branch) = &branch {
        (Effect::Path, Change::path(branch))
    } else {
        (Effect::None, Change::Nothing)
    };
    let other_path = branch.as_ref().map(|branch| Change::path(branch).sentence(forced));
    Difference { output, branch, other_path, ..Difference::new(effect, change, forced) }
}

/// The end of a run that no user takes for a good one.
pub fn fatal(run: &Run) -> Option<(Effect, Change)> {
    match (&run.end, run.failed_assertion()) {
        (_, Some(site)) => Some((Effect::Assertion, Change::Assertion(site.map(SourcePlace::of)))),
        (RunEnd::Signal(signal), None) => {
            let place = run.crash.as_ref().map(|crash| SourcePlace::of(&crash.site));
            Some((Effect::Crash, Change::Signal(*signal, place)))
        }
        (RunEnd::Deadlock(threads), None) => {
            // Where they stand may differ.
            let threads = threads.iter().map(|thread| Blocked { event: 0, ..thread.clone() });
            Some((Effect::Hang, Change::Hang(threads.collect())))
        }
        (RunEnd::Exit(status), None) if run.is_test && *status != 0 => {
            Some((Effect::Assertion, Change::TestFailed(*status)))
        }
        _ => None,
    }
}

fn same_lines(one: &Written, other: &Written) -> bool {
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> = bytes.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        lines
    };
    sorted(&one.stdout) == sorted(&other.stdout)
        && sorted(&one.stderr) == sorted(&other.stderr)
        && one.files == other.files
}

/// The lines around the first difference, as a unified diff shows them.
fn output_difference(recorded: &Written, forced: &Written) -> Option<String> {
    let files = recorded.files.iter().zip(&forced.files);
    let files = files.map(|(one, other)| {
        (one.as_deref().unwrap_or_default(), other.as_deref().unwrap_or_default())
    });
    let streams = [(&*recorded.stdout, &*forced.stdout), (&*recorded.stderr, &*forced.stderr)];
    let (one, other) = streams.into_iter().chain(files).find(|(one, other)| one != other)?;
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (one, other) = (lines(one), lines(other));
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    let tail = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let shown = |sign: char, lines: &[String]| -> String {
        const MOST: usize = 10;
        let kept = &lines[..lines.len() - tail];
        let mut text: String =
            kept.iter().take(MOST).map(|line| format!("{sign}{line}\n")).collect();
        if kept.len() > MOST {
            text += &format!("{sign}... ({} more lines)\n", kept.len() - MOST);
        }
        text
    };
    Some(format!("@@ line {} @@\n{}{}", same + 1, shown('-', one), shown('+', other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_record::ExecutionPath;
    use foretell_trace::format::text;
    use std::time::Duration;

    fn run(end: RunEnd, stdout: &str, events: &str) -> Run {
        let text = format!("foretell-trace 1\nobserved\nthread main, worker\nvar x\n{events}");
        let written = Written { stdout: stdout.into(), ..Written::default() };
        let trace = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        let path = ExecutionPath::default();
        Run {
            end,
            is_test: false,
            crash: None,
            outside: Vec::new(),
            cuts: Vec::new(),
            steps_taken: 0,
            trace,
            path,
            written,
            time: Duration::ZERO,
            times: Default::default(),
            before: 0,
        }
    }

    #[test]
    fn the_worst_difference_is_the_effect() {
        let good = run(RunEnd::Exit(0), "a\nb\n", "main begin");
        let effect = |end: RunEnd, stdout: &str, events: &str| {
            compare(&good, &run(end, stdout, events)).effect
        };
        let events = "main begin";
        assert_eq!(effect(RunEnd::Exit(0), "a\nb\n", events), Effect::None);
        assert_eq!(effect(RunEnd::Exit(0), "b\na\n", events), Effect::Path, "another order");
        assert_eq!(effect(RunEnd::Exit(0), "a\nc\n", events), Effect::Output);
        assert_eq!(effect(RunEnd::Exit(3), "a\nb\n", events), Effect::Output);
        assert_eq!(effect(RunEnd::Deadlock(Vec::new()), "", events), Effect::Hang);
        assert_eq!(effect(RunEnd::Signal(libc::SIGSEGV), "", events), Effect::Crash);
        assert_eq!(effect(RunEnd::Signal(libc::SIGABRT), "", events), Effect::Crash);
        let failed = "main assert false @ a.c:9";
        assert_eq!(effect(RunEnd::Signal(libc::SIGABRT), "", failed), Effect::Assertion);
    }

    #[test]
    fn a_run_that_fails_as_the_recorded_one_did_has_no_effect() {
        let events = "main assert false @ a.c:9";
        let failed = || run(RunEnd::Signal(libc::SIGABRT), "", events);
        assert_eq!(compare(&failed(), &failed()).effect, Effect::None);
        let elsewhere = run(RunEnd::Signal(libc::SIGABRT), "", "main assert false @ a.c:8");
        assert_eq!(compare(&failed(), &elsewhere).effect, Effect::Assertion);
    }

    #[test]
    fn a_run_that_ends_well_after_one_that_failed_shows_nothing() {
        let failed = run(RunEnd::Signal(libc::SIGABRT), "", "main assert false @ a.c:9");
        let good = run(RunEnd::Exit(0), "fine\n", "main begin");
        assert_eq!(compare(&failed, &good).effect, Effect::Path);
    }

    #[test]
    fn the_changed_lines_of_the_output_are_shown() {
        let before = run(RunEnd::Exit(0), "start\nbalance: 130\nend\n", "main begin");
        let after = run(RunEnd::Exit(0), "start\nbalance: 110\nend\n", "main begin");
        let difference = compare(&before, &after);
        assert_eq!(
            difference.output.as_deref(),
            Some("@@ line 2 @@\n-balance: 130\n+balance: 110\n")
        );
    }
}
