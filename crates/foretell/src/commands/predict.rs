//! `foretell predict`: what could go wrong in another interleaving.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foretell_explore::Doubt;
use foretell_force::forced::Violation;
use foretell_force::program::InputDigest;
use foretell_force::session::{blocks_are_marked, schedule_of};
use foretell_guard::{say, stop};
use foretell_predict::candidates::present_patterns;
use foretell_predict::planner::{self, PlannerOptions};
use foretell_predict::region::Regions;
use foretell_predict::{Backend, Filters, Model, Options, Prediction, divergences};
use foretell_report::Report;
use foretell_solve::Budget;
use foretell_solve::encode::Mode;
use foretell_trace::Trace;
use foretell_trace::validate::validate;

use crate::cli::{FilterArguments, ModelName, PredictArguments, SolverName};
use crate::commands::{pddl, report, schedules};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Predicts and prints.
pub fn run(arguments: &PredictArguments, output: &mut Output) -> Result<Exit, Failure> {
    // A signal ends the questions, not the report.
    stop::come_to_a_close_first();
    let started = Instant::now();
    report::check_suppressions(&arguments.outputs)?;
    let mut trace = foretell_record::read(&arguments.trace)?;
    if let Some(fault) = validate(&trace).first() {
        return Err(Failure::Input(format!(
            "{}: {fault}; `foretell trace validate` lists all faults",
            arguments.trace.display()
        )));
    }
    if let Some(directory) = &arguments.dump_smt2 {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::Input(format!("{}: {error}", directory.display())))?;
    }
    // Goals name threads as the trace does.
    if arguments.goal.is_empty() {
        trace.name_threads_by_function();
    }
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.trace.display());
    let options = PlannerOptions {
        engine: arguments.engine,
        common: options(arguments)?,
        budget: arguments.budget,
        goals: arguments.goal.clone(),
    };
    let time = arguments.time_limit.map(Duration::from_secs);
    if let Some(deadline) = time.and_then(|time| started.checked_add(time)) {
        stop::set_deadline(deadline);
    }
    let line = Line::show(&options.common.progress);
    let mut prediction =
        planner::predict(&trace, &options).map_err(|error| Failure::Input(in_file(&error)))?;
    match divergences(&trace, &options.common) {
        Ok(found) => prediction.divergences = found,
        // A solver is killed when the time is over.
        Err(_) if stop::is_over() => {
            prediction.unseen.push("places where a thread may leave its path".into());
        }
        Err(error) => return Err(Failure::Input(in_file(&error))),
    }
    drop(line);
    if let Some(directory) = &arguments.pddl {
        let problems = pddl::problems(&trace, &prediction, &arguments.goal)
            .map_err(|error| Failure::Input(in_file(&error)))?;
        let told = pddl::write(&trace, &problems, directory, arguments.planner_cmd.as_deref())?;
        told.iter().for_each(|line| say!("foretell: {line}"));
    }
    let schedules = {
        let regions = arguments.regions.into();
        write_schedules(&trace, &prediction, regions, &arguments.schedules)
    };
    let file = arguments.trace.display().to_string();
    let mut report = Report::from_prediction(&trace, &file, &prediction, &schedules);
    report.unseen.extend(stopped());
    if trace.metadata.machine_code {
        report.unseen.push(Doubt::MachineCode.to_string());
    }
    report.config.files = output.config().to_vec();
    report::suppress(&mut report, &arguments.outputs)?;
    report::print(&report, output)?;
    let written = report::write_files(&report, &arguments.outputs);
    let refused = &prediction.divergences.internal_errors;
    if let Some(error) = prediction.internal_errors.iter().chain(refused).next() {
        return Err(Failure::Internal(format!("the validator refused a solver's answer: {error}")));
    }
    report::keep_verdict(report.conclusion().into(), written)
}

/// What a report says when a signal cut the work short.
pub fn stopped() -> Option<String> {
    stop::asked().map(|signal| {
        format!("everything that was left when signal {signal} asked foretell to end")
    })
}

/// The filters, with the patterns of the runs that are called correct.
pub fn filters(arguments: &FilterArguments, regions: Regions) -> Result<Filters, Failure> {
    let mut filters = Filters {
        loops: arguments.no_loops,
        distance: arguments.max_distance,
        ..Filters::default()
    };
    for path in &arguments.known_good {
        let trace = foretell_record::read(path)?;
        filters.known_good.extend(present_patterns(&trace, regions));
    }
    Ok(filters)
}

/// How many questions are asked at once. Those that are written to files are numbered in their order.
fn jobs(arguments: &PredictArguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    match arguments.dump_smt2 {
        Some(_) => 1,
        None => arguments.jobs.unwrap_or_else(cores),
    }
}

fn options(arguments: &PredictArguments) -> Result<Options, Failure> {
    let mut options = Options {
        filters: filters(&arguments.filters, arguments.regions.into())?,
        model: match arguments.model {
            ModelName::Symbolic => Model::Symbolic,
            ModelName::Causal => Model::Causal,
        },
        mode: if arguments.whole { Mode::Whole } else { Mode::Prefix },
        backend: match (&arguments.solver_cmd, arguments.solver) {
            (Some(command), _) => Backend::Command(command.clone()),
            (None, SolverName::Embedded) => Backend::Embedded,
            (None, SolverName::Z3) => Backend::Z3,
        },
        context_switches: arguments.context_switches,
        regions: arguments.regions.into(),
        divergences: arguments.divergences,
        partition: arguments.partition,
        jobs: jobs(arguments),
        dump_smt2: arguments.dump_smt2.clone(),
        ..Options::default()
    };
    if !arguments.property.is_empty() {
        options.properties.clone_from(&arguments.property);
    }
    if let Some(conflicts) = arguments.budget {
        options.budget = Budget { conflicts };
    }
    if let Some(events) = arguments.window {
        options.window.whole = events;
    }
    Ok(options)
}

/// Writes a schedule file for each prediction, and in a folder of its own for each place where a
/// thread can leave its path; the paths, by the ids.
fn write_schedules(
    trace: &Trace,
    prediction: &Prediction,
    regions: Regions,
    directory: &Path,
) -> BTreeMap<String, PathBuf> {
    let mut paths = BTreeMap::new();
    // A trace does not say what the program read; its arguments it does.
    let arguments: Vec<&str> = trace.metadata.command.iter().skip(1).map(AsRef::as_ref).collect();
    let digest = InputDigest::of_arguments(&arguments);
    let schedule =
        |id: &str, witness, violation| schedule_of(trace, id, witness, violation, digest);
    let marked = blocks_are_marked(trace, regions);
    let findings = prediction.findings.iter().filter_map(|finding| {
        let violation = Violation::of(finding, marked);
        Some((&*finding.id, schedule(&finding.id, finding.schedule.as_ref()?, violation)))
    });
    schedules::write(directory, findings, &mut paths);
    let divergences = prediction
        .divergences
        .found
        .iter()
        .map(|found| (&*found.id, schedule(&found.id, &found.schedule, Violation::OtherPath)));
    schedules::write(&directory.join("divergences"), divergences, &mut paths);
    paths
}
