//! A table like Table 1 of 003: on generated runs of the paper's sizes, how many access patterns
//! each engine makes a feasible run of, and what that costs a pattern.
//!
//! Times of foretell are of the wall clock, those of Fast Downward CPU time. Of long runs, patterns evenly
//! spaced over the candidates are taken. The solver and Fast Downward see a part of those.

use std::path::{Path, PathBuf};
use std::time::Instant;

use foretell_model::lockset::Locksets;
use foretell_model::must_order::MustOrder;
use foretell_predict::candidates::{Limits, candidates};
use foretell_predict::planner::{
    CompiledGoal, Engine, Outcome, Plan, PlanOptions, Planner, PlannerOptions, execute, predict,
};
use foretell_predict::region::Regions;
use foretell_predict::window::Checkpoints;
use foretell_predict::{AccessPattern, Model, Options, Status};
use foretell_testing::families::{Blocks, blocks};
use foretell_trace::{EventId, Trace};

use crate::measure::children_seconds;

/// Threads, variables, locks and events of the runs.
const RUNS: [(u32, u32, u32, usize); 6] = [
    (2, 18, 2, 350),
    (4, 24, 4, 420),
    (5, 112, 10, 600),
    (8, 200, 20, 3_000),
    (24, 500, 50, 20_000),
    (3, 503, 50, 63_000),
];

/// So many patterns of a run,
const PATTERNS: usize = 200;
/// so many of them for the solver,
const FOR_SOLVER: usize = 10;
/// and so many plans for Fast Downward.
const FOR_FAST_DOWNWARD: usize = 1;

/// Prints the table, or only the row of runs with so many events.
pub fn table(only: Option<&str>) -> Result<(), String> {
    let fast_downward = fast_downward();
    if fast_downward.is_none() {
        println!("SKIPPED: Fast Downward; scripts/planners.sh installs it from PyPI\n");
    }
    println!(
        "threads variables locks events candidates patterns | feasible: lockset planner both | \
         no plan, unknown | ms a pattern: lockset planner | solver (causal): of {FOR_SOLVER} \
         decided, agreeing, ms | Fast Downward ms, the planner's on the same"
    );
    for (threads, variables, locks, events) in RUNS {
        if only.is_some_and(|only| only != events.to_string()) {
            continue;
        }
        let trace = blocks(Blocks { threads, variables, locks, events, seed: 7 });
        let row = Row::measure(&trace, fast_downward.as_deref())?;
        println!("{threads} {variables} {locks} {} | {row}", trace.events.len());
    }
    Ok(())
}

#[derive(Default)]
struct Row {
    candidates: usize,
    patterns: usize,
    lockset: usize,
    planner: usize,
    both: usize,
    no_plan: usize,
    unknown: usize,
    lockset_seconds: f64,
    planner_seconds: f64,
    solver_decided: usize,
    solver_agrees: usize,
    solver_seconds: f64,
    asked: usize,
    fast_downward_seconds: f64,
    planner_on_the_same: f64,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = |seconds: f64, number: usize| 1e3 * seconds / number.max(1) as f64;
        write!(
            f,
            "{} {} | {} {} {} | {} {} | {:.2} {:.2} | {} {} {:.0} | ",
            self.candidates,
            self.patterns,
            self.lockset,
            self.planner,
            self.both,
            self.no_plan,
            self.unknown,
            each(self.lockset_seconds, self.patterns),
            each(self.planner_seconds, self.patterns),
            self.solver_decided,
            self.solver_agrees,
            each(self.solver_seconds, self.patterns.min(FOR_SOLVER)),
        )?;
        match self.asked {
            0 => f.write_str("-"),
            asked => write!(
                f,
                "{:.0} {:.3} (1 : {:.0})",
                each(self.fast_downward_seconds, asked),
                each(self.planner_on_the_same, asked),
                self.fast_downward_seconds / self.planner_on_the_same.max(1e-9)
            ),
        }
    }
}

impl Row {
    fn measure(trace: &Trace, fast_downward: Option<&str>) -> Result<Row, String> {
        let order = MustOrder::new(trace).map_err(|error| error.to_string())?;
        let locksets = Locksets::new(trace);
        let limits = Limits { instances: 1, ..Limits::default() };
        let found = candidates(trace, &order, &locksets, Regions::default(), limits).candidates;
        let step = found.len().div_ceil(PATTERNS).max(1);
        let chosen: Vec<AccessPattern> =
            found.iter().step_by(step).map(|candidate| candidate.instances[0]).collect();
        let planner = Planner::new(trace).map_err(|error| error.to_string())?;
        let mut checkpoints = Checkpoints::new(trace).map_err(|error| error.to_string())?;
        let mut row = Row { candidates: found.len(), patterns: chosen.len(), ..Row::default() };
        let with_data = PlanOptions::default();
        let without_data = PlanOptions { with_data: false, ..with_data };
        let mut solved: Vec<(Option<bool>, &AccessPattern)> = Vec::new();
        let mut plans = Vec::new();
        for pattern in &chosen {
            let goal = CompiledGoal::of_pattern(pattern);
            let start = Instant::now();
            let outcome = planner.plan(&goal, &with_data);
            let seconds = start.elapsed().as_secs_f64();
            let middle = Instant::now();
            let lock_valid = planner.plan(&goal, &without_data);
            row.planner_seconds += seconds;
            row.lockset_seconds += middle.elapsed().as_secs_f64();
            let mut runs = |plan: &Plan| -> Result<bool, String> {
                let run = execute(trace, &mut checkpoints, plan);
                Ok(run.map_err(|error| error.to_string())?.is_ok())
            };
            let tried = match &lock_valid {
                Outcome::Plan(plan) => runs(plan)?,
                Outcome::NoPlan | Outcome::Unknown => false,
            };
            let planned = match &outcome {
                Outcome::Plan(plan) if !runs(plan)? => {
                    return Err(format!("the validator refuses the plan of {pattern:?}"));
                }
                Outcome::Plan(_) => {
                    plans.push((pattern, seconds));
                    Some(true)
                }
                Outcome::NoPlan => Some(false),
                Outcome::Unknown => None,
            };
            row.lockset += usize::from(tried);
            row.planner += usize::from(planned == Some(true));
            row.both += usize::from(tried || planned == Some(true));
            row.no_plan += usize::from(planned == Some(false));
            row.unknown += usize::from(planned.is_none());
            solved.push((planned, pattern));
        }
        let every = solved.len().div_ceil(FOR_SOLVER).max(1);
        for (planned, pattern) in solved.into_iter().step_by(every) {
            row.ask_solver(trace, pattern, planned)?;
        }
        if let Some(command) = fast_downward {
            for (pattern, seconds) in plans.into_iter().take(FOR_FAST_DOWNWARD) {
                row.ask_fast_downward(&planner, pattern, seconds, command)?;
            }
        }
        Ok(row)
    }

    fn ask_solver(
        &mut self,
        trace: &Trace,
        pattern: &AccessPattern,
        planned: Option<bool>,
    ) -> Result<(), String> {
        let name = |event: EventId| {
            let event = trace.event(event);
            format!("{}#{}", trace.threads[event.thread.index()].name, event.index)
        };
        let [first, remote, second] = [pattern.first, pattern.remote, pattern.second].map(name);
        let options = PlannerOptions {
            engine: Engine::Solver,
            common: Options { model: Model::Causal, ..Options::default() },
            goals: vec![format!("three({first}, {remote}, {second})")],
            ..PlannerOptions::default()
        };
        let start = Instant::now();
        let prediction = predict(trace, &options).map_err(|error| error.to_string())?;
        self.solver_seconds += start.elapsed().as_secs_f64();
        let solved = match prediction.findings.first().map(|finding| &finding.status) {
            None => Some(false),
            Some(Status::Predicted) => Some(true),
            Some(Status::Unknown(_)) => None,
        };
        self.solver_decided += usize::from(solved.is_some());
        let agree = solved.is_some() && solved == planned;
        self.solver_agrees += usize::from(agree);
        match (solved, planned) {
            (Some(solved), Some(planned)) if solved != planned => {
                Err(format!("solver and planner disagree about {pattern:?}"))
            }
            _ => Ok(()),
        }
    }

    fn ask_fast_downward(
        &mut self,
        planner: &Planner,
        pattern: &AccessPattern,
        seconds: f64,
        command: &str,
    ) -> Result<(), String> {
        let goal = CompiledGoal::of_pattern(pattern);
        let options = PlanOptions::default();
        let Ok(problem) = planner.pddl(&goal, &options) else { return Ok(()) };
        let directory = crate::scratch()?.join("planner");
        let start = children_seconds()?;
        let answer = planner
            .ask(&problem, &goal, &options, command, &directory)
            .map_err(|error| error.to_string())?;
        let taken = children_seconds()? - start;
        answer.map_err(|why| format!("Fast Downward on {pattern:?}: {why}"))?;
        self.asked += 1;
        self.fast_downward_seconds += taken;
        self.planner_on_the_same += seconds;
        Ok(())
    }
}

/// The command of the Fast Downward that `scripts/planners.sh` installs.
fn fast_downward() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let bin: PathBuf = root.join("target/planners/bin");
    let find = "import importlib.util as u; \
                print(u.find_spec(\"up_fast_downward\").submodule_search_locations[0])";
    bin.join("python").exists().then(|| {
        format!(
            "PATH={}:$PATH; python $(python -c '{find}')/downward/fast-downward.py --plan-file \
             {{plan}} {{domain}} {{problem}} --search 'lazy_greedy([ff()], preferred=[ff()])'",
            bin.display()
        )
    })
}
