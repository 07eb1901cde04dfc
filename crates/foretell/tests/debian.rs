//! Debian's own binaries, as the packages have them: recorded, validated, predicted from, and made to do
//! again what they did under another schedule.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use foretell_force::program::Program;
use foretell_force::run::{Limits, Run, Runner};
use foretell_predict::{Options, predict};
use foretell_record::{Policy, RunEnd};
use foretell_trace::schedule::Schedule;
use foretell_trace::{EventId, validate};
use tempfile::TempDir;

const LIMITS: Limits = Limits { time: Duration::from_secs(900), points: u64::MAX };

fn is_there(command: &str) -> bool {
    let mut command = Command::new(command);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// What each event is, in the order of the run.
fn order(run: &Run) -> Vec<(u32, &'static str)> {
    run.trace.events.iter().map(|event| (event.thread.0, event.op.keyword())).collect()
}

/// The program compresses a file; what it makes ends in this.
fn compresses(command: &str, options: &[&str], ending: &str) {
    if !is_there(command) || !is_there("qemu-x86_64") {
        println!("SKIPPED: there is no {command} or no qemu-x86_64");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("text");
    let text: String = (0..100).map(|line| format!("line {line} of a text\n")).collect();
    std::fs::write(&file, text).expect("written");
    let words = options.iter().map(Into::into).chain([file.clone().into()]);
    let mut program = Program::new(command, words.collect());
    program.binary = true;
    program.writes = vec![Path::new(&format!("{}{ending}", file.display())).to_owned()];
    let runner = Runner::new(&program).expect("a runner");
    let policy = Policy::Random { seed: 5, mean: 30 };
    let first = runner.run(Vec::new(), policy, LIMITS).expect("a run");
    assert_eq!(first.end, RunEnd::Exit(0), "{command}");
    assert_eq!(validate::validate(&first.trace), [], "{command}");
    assert!(first.trace.threads.len() > 2, "{command} has threads");
    let events = (0..first.trace.events.len()).map(EventId::from);
    let schedule = Schedule::of_trace(&first.trace, events, []);
    let again = runner.run(schedule.steps, Policy::AFTER, LIMITS).expect("a run");
    assert_eq!(again.end, RunEnd::Exit(0), "{command}");
    assert!(order(&first) == order(&again), "{command}: another order");
    assert!(first.written.files == again.written.files, "{command}: another file");
    assert!(again.path.differences(&first.path).is_empty(), "{command}: another path");
    let free = runner.run(Vec::new(), Policy::AFTER, LIMITS).expect("a run");
    assert!(order(&first) != order(&free), "{command}: the schedule made no difference");
    // It takes minutes where nothing is optimised.
    if std::env::var_os("FORETELL_BINARY_ALL").is_some() {
        let prediction = predict(&first.trace, &Options::default()).expect("a prediction");
        assert_eq!(prediction.internal_errors, Vec::<String>::new(), "{command}");
    }
}

#[test]
fn pigz_follows_a_schedule() {
    compresses("pigz", &["-k", "-f", "-p2", "-b32"], ".gz");
}

#[test]
fn pbzip2_follows_a_schedule() {
    compresses("pbzip2", &["-k", "-f", "-q", "-p2", "-b1"], ".bz2");
}
