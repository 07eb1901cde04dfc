//! Every program of `examples/` under many policies: a run is the same run again, event by event and
//! address by address, where the environment, the folders and further arguments have other lengths; and
//! no run that is forced to follow the whole order of another one leaves it.
//!
//! `FORETELL_POLICIES` says how many policies (nightly 50); each recorded run is forced once.

use std::path::{Path, PathBuf};
use std::process::Command;

use foretell_trace::schedule::Schedule;
use foretell_trace::{Event, EventId, Op, Trace};
use serde_json::Value;

use crate::common::{Workshop, answer};

/// How many policies where nobody says: the rest is tried nightly.
const POLICIES: usize = 20;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Policies that decide everything by themselves, so that a run under one can be had again.
fn policy(number: usize) -> String {
    match number % 3 {
        0 => format!("random:{number}:{}", 1 + number * 7 % 40),
        1 => format!("round-robin:{}", 1 + number * 5 % 23),
        _ => format!("random:{}:{}", 1000 * number, 2 + number % 3),
    }
}

/// Where a run takes place.
struct Place {
    program: PathBuf,
    folder: PathBuf,
    /// What the environment has more.
    more: Option<String>,
    /// One more argument, which the program does not look at.
    argument: Option<String>,
}

impl Place {
    fn new(workshop: &Workshop, built: &Path, folder: &str, more: Option<String>) -> Self {
        let folder = workshop.path().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let program = folder.join(built.file_name().expect("a name"));
        // The same file, which is as old: virtual time begins when the program was built.
        if !program.exists() {
            std::fs::hard_link(built, &program).expect("a link");
        }
        Self { program, folder, more, argument: None }
    }

    fn foretell(&self, workshop: &Workshop, arguments: &[&str]) -> Command {
        let mut command = workshop.foretell();
        command.args(arguments).current_dir(&self.folder);
        if let Some(more) = &self.more {
            command.env("ONE_MORE_VARIABLE", more).env(format!("NAME_{more}"), "1");
        }
        command
    }

    /// The program and its arguments, after `--`.
    fn call(&self, command: &mut Command, program: &Path, arguments: &[String]) {
        command.arg("--").arg(program).args(arguments).args(&self.argument);
    }

    fn record(&self, workshop: &Workshop, policy: &str, arguments: &[String]) -> Trace {
        let file = self.folder.join("run.ftrace");
        let name = file.display().to_string();
        let mut command =
            self.foretell(workshop, &["record", "--compact", "--schedule", policy, "-o", &name]);
        // By the same name: the arguments that follow a longer name lie behind it.
        let called = Path::new(".").join(self.program.file_name().expect("a name"));
        self.call(&mut command, &called, arguments);
        let output = command.output().expect("foretell runs");
        foretell_trace::format::read_path(&file).unwrap_or_else(|error| {
            panic!("{policy}: {error}\n{}", String::from_utf8_lossy(&output.stderr))
        })
    }

    /// Forces the whole order of a run. What was otherwise, if anything.
    fn force(&self, workshop: &Workshop, run: &Trace, arguments: &[String]) -> Option<String> {
        let all = (0..run.events.len()).map(EventId::from);
        let schedule = Schedule::of_trace(run, all, []);
        let file = self.folder.join("whole.schedule");
        std::fs::write(&file, schedule.to_string()).expect("a file");
        let name = file.display().to_string();
        let mut command = self.foretell(workshop, &["--format", "json", "replay", &name]);
        self.call(&mut command, &self.program, arguments);
        let found = answer(&command.output().expect("foretell runs"));
        let replay = &found.report["replay"];
        let ended = replay["ended"].as_str().unwrap_or("not at all");
        let left = ended.contains("left the schedule") || replay["steps"] != replay["steps_taken"];
        left.then(|| format!("{ended}\n{:#}\n{}", found.report, found.stderr))
    }
}

/// The events as text, with all names, values and addresses.
fn lines(trace: &Trace) -> Vec<String> {
    let event = |event: &Event| {
        let thread = &trace.threads[event.thread.index()].path;
        let accessed = match &event.op {
            Op::Read(access) | Op::Write(access) => Some(access.variable),
            Op::ReadModifyWrite(step) => Some(step.variable),
            _ => None,
        };
        let variable = accessed.map(|id| &trace.variables[id.index()]);
        let memory = variable.map(|variable| (&variable.name, variable.memory));
        format!("{thread:?} {} {:?} {memory:?}", event.index, event.op)
    };
    trace.events.iter().map(event).collect()
}

/// Where two runs differ first.
fn difference(one: &Trace, other: &Trace) -> Option<String> {
    let (one, other) = (lines(one), lines(other));
    let pairs = one.iter().zip(&other).enumerate();
    if let Some((at, (a, b))) = { pairs }.find(|(_, (a, b))| a != b) {
        return Some(format!("event {at}:\n  {a}\n  {b}"));
    }
    let (a, b) = (one.len(), other.len());
    (a != b).then(|| format!("{a} and {b} events"))
}

#[test]
fn every_example_is_the_same_run_everywhere() {
    let policies = std::env::var("FORETELL_POLICIES").ok();
    let policies = policies.map_or(POLICIES, |n| n.parse().expect("FORETELL_POLICIES is a number"));
    let text = std::fs::read_to_string(examples().join("expected.json")).expect("expected.json");
    let all: Vec<Value> = serde_json::from_str(&text).expect("expected.json is a list");
    let (mut forced, mut left, mut other) = (0, Vec::new(), Vec::new());
    for (place, example) in all.iter().enumerate() {
        let text = |field: &str| example[field].as_str().expect("a text").to_owned();
        let name = text("name");
        let given = example["arguments"].as_array().into_iter().flatten();
        let arguments: Vec<String> =
            given.map(|word| word.as_str().expect("a word").to_owned()).collect();
        let workshop = Workshop::new();
        let source = examples().join(&name).join(text("source"));
        let code = std::fs::read_to_string(&source).expect("a source");
        let looks_at_nothing = code.contains("int main(void)") || code.contains("int main()");
        let built = workshop.build(&source, &["-O1"]);
        let here = Place::new(&workshop, &built, "a", None);
        for number in 0..policies {
            let policy = policy(number + place * 50);
            let more = "x".repeat(1 + (number * 13 + place * 5) % 200);
            let folder = format!("a-folder-with-{more}/{}", "y".repeat(1 + number % 40));
            let mut there = Place::new(&workshop, &built, &folder, Some(more.clone()));
            there.argument = looks_at_nothing.then_some(more);
            let run = here.record(&workshop, &policy, &arguments);
            let again = there.record(&workshop, &policy, &arguments);
            if let Some(difference) = difference(&run, &again) {
                other.push(format!("{name} under {policy}: {difference}"));
            }
            forced += 1;
            if let Some(why) = there.force(&workshop, &run, &arguments) {
                left.push(format!("{name} under {policy}: {why}"));
            }
        }
    }
    println!("{forced} forced runs, {} left their schedule", left.len());
    assert_eq!(left.len(), 0, "{}", left.join("\n"));
    assert_eq!(other.len(), 0, "{}", other.join("\n"));
}
