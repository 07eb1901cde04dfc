//! Any other planner: a command that reads the two PDDL files and leaves a plan.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::limits::{MOST_PLANNER_OUTPUT, PLANNER_SECONDS};

use foretell_guard::process::{self, Killed};
use foretell_guard::{Keep, replace_file};
use foretell_trace::EventId;

use super::pddl::{Pddl, PddlError};

/// What another planner said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalAnswer {
    /// The actions of its plan.
    Plan(Vec<EventId>),
    /// It left no plan; how it ended.
    NoPlan(String),
}

/// Why another planner could not be asked.
#[derive(Debug)]
pub enum ExternalError {
    /// The command could not be run, or a file not written.
    Run(PathBuf, std::io::Error),
    /// Its plan cannot be read.
    Plan(PddlError),
}

impl std::fmt::Display for ExternalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExternalError::Run(path, error) => write!(f, "{}: {error}", path.display()),
            ExternalError::Plan(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExternalError {}

impl Pddl {
    /// Writes `domain.pddl` and `problem.pddl`.
    pub fn write_to(&self, directory: &Path) -> Result<(), ExternalError> {
        std::fs::create_dir_all(directory)
            .map_err(|error| ExternalError::Run(directory.to_owned(), error))?;
        for (name, text) in [("domain.pddl", &self.domain), ("problem.pddl", &self.problem)] {
            let path = directory.join(name);
            replace_file(&path, text.as_bytes(), Keep::Mode)
                .map_err(|error| ExternalError::Run(path, error))?;
        }
        Ok(())
    }

    /// Runs `command` through the shell in `directory`, which gets the files. `{domain}`,
    /// `{problem}` and `{plan}` in it stand for their paths; without `{plan}` the plan is read from
    /// the command's output, without any of them the two paths are appended.
    pub fn ask(&self, command: &str, directory: &Path) -> Result<ExternalAnswer, ExternalError> {
        self.write_to(directory)?;
        let plan_path = directory.join("plan");
        let _ = std::fs::remove_file(&plan_path); // that of an earlier question, if any
        let mut line = command.to_owned();
        if !line.contains('{') {
            line.push_str(" {domain} {problem}");
        }
        let reads_file = line.contains("{plan}");
        for (mark, name) in
            [("{domain}", "domain.pddl"), ("{problem}", "problem.pddl"), ("{plan}", "plan")]
        {
            line = line.replace(mark, name);
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(directory).stderr(Stdio::null());
        let ran = process::run(
            &mut shell,
            Some(Duration::from_secs(PLANNER_SECONDS)),
            MOST_PLANNER_OUTPUT,
        )
        .map_err(|error| ExternalError::Run(PathBuf::from("sh"), error))?;
        let text = match reads_file {
            true => plan_in(&plan_path).unwrap_or_default(),
            false => actions_in(&String::from_utf8_lossy(&ran.output)),
        };
        match ran.killed {
            Some(Killed::Time) => {
                let how = format!("it was killed: no answer within {PLANNER_SECONDS} s");
                return Ok(ExternalAnswer::NoPlan(how));
            }
            Some(Killed::Output) => {
                let how =
                    format!("it was killed: it printed more than {MOST_PLANNER_OUTPUT} bytes");
                return Ok(ExternalAnswer::NoPlan(how));
            }
            None => {}
        }
        let events = self.parse_plan(&text).map_err(ExternalError::Plan)?;
        Ok(match events.is_empty() {
            true => ExternalAnswer::NoPlan(ran.status.to_string()),
            false => ExternalAnswer::Plan(events),
        })
    }
}

/// The text of the file that a planner left; nothing if it is too large to be a plan.
fn plan_in(path: &Path) -> Option<String> {
    let mut text = String::new();
    let mut file = File::open(path).ok().filter(|file| {
        let metadata = file.metadata();
        metadata.is_ok_and(|there| there.is_file() && there.len() <= MOST_PLANNER_OUTPUT as u64)
    })?;
    file.by_ref().take(MOST_PLANNER_OUTPUT as u64).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The lines of a planner's output that are nothing but an action.
fn actions_in(output: &str) -> String {
    let is_action = |line: &&str| {
        let line = line.trim().trim_matches(['(', ')']);
        line.starts_with("ac-") && !line.contains(' ')
    };
    output.lines().filter(is_action).collect::<Vec<_>>().join("\n")
}
