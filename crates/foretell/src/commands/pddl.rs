//! `foretell predict --pddl`: findings and goals as planning problems for other planners.

use std::path::Path;

use foretell_predict::planner::external::ExternalError;
use foretell_predict::planner::goal::{Formula, GoalError};
use foretell_predict::planner::{CompiledGoal, PlanOptions, Planner, Unplannable};
use foretell_predict::{AccessPattern, Prediction};
use foretell_trace::Trace;

use crate::exit::Failure;

/// A goal and the name of its folder.
pub struct NamedGoal {
    name: String,
    goal: CompiledGoal,
}

/// The goals of the atomicity findings, by their ids, and those given as text.
pub fn problems(
    trace: &Trace,
    prediction: &Prediction,
    goals: &[String],
) -> Result<Vec<NamedGoal>, GoalError> {
    let mut problems = Vec::new();
    for (number, text) in goals.iter().enumerate() {
        let goal = CompiledGoal::new(trace, &Formula::parse(text)?)?;
        problems.push(NamedGoal { name: format!("goal-{}", number + 1), goal });
    }
    for finding in &prediction.findings {
        if let (Some(kind), [first, remote, second]) = (finding.pattern, &finding.accesses[..]) {
            let (first, remote, second) = (first.event, remote.event, second.event);
            let goal = CompiledGoal::of_pattern(&AccessPattern { first, remote, second, kind });
            problems.push(NamedGoal { name: finding.id.clone(), goal });
        }
    }
    Ok(problems)
}

/// Writes each problem into a folder of its own and, if there is a command, asks it for a plan.
/// Gives one line for each problem.
pub fn write(
    trace: &Trace,
    problems: &[NamedGoal],
    directory: &Path,
    command: Option<&str>,
) -> Result<Vec<String>, Failure> {
    let planner =
        Planner::new(trace).map_err(|error: Unplannable| Failure::Input(error.to_string()))?;
    let failed = |error: ExternalError| Failure::Input(error.to_string());
    let options = PlanOptions::default();
    let mut told = Vec::new();
    for NamedGoal { name, goal } in problems {
        let folder = directory.join(name);
        let problem = match planner.pddl(goal, &options) {
            Ok(problem) => problem,
            Err(error) => {
                told.push(format!("{name}: no PDDL: {error}"));
                continue;
            }
        };
        problem.text.write_to(&folder).map_err(failed)?;
        let Some(command) = command else {
            told.push(format!("{name}: {}", folder.display()));
            continue;
        };
        told.push(
            match planner.ask(&problem, goal, &options, command, &folder).map_err(failed)? {
                Ok(plan) => format!("{name}: plan {}", planner.names(&plan.actions).join(" ")),
                Err(reason) => format!("{name}: {reason}"),
            },
        );
    }
    Ok(told)
}
