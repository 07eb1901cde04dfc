//! `foretell test`: the whole thing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foretell_explore::Part;
use foretell_force::bounded::bounded;
use foretell_force::forced::Violation;
use foretell_force::session::{Options, Session, TestError, Tested, UNINTERRUPTED, test};
use foretell_force::so_far::SoFar;
use foretell_guard::{say, stop};
use foretell_predict::progress::Phase;
use foretell_report::report::{self, Report};
use foretell_report::{shell_word, story};
use foretell_solve::Budget;
use foretell_trace::schedule::Schedule;

use crate::cli::{RunArguments, TestArguments, typed_options};
use crate::commands::cases::{self, Case, Plan};
use crate::commands::clients;
use crate::commands::explained::explained;
use crate::commands::frameworks;
use crate::commands::past::explained_by_its_run;
use crate::commands::predict::{filters, stopped};
use crate::commands::program::prepare;
use crate::commands::report::{check_suppressions, keep_verdict, print, suppress, write_files};
use crate::commands::resume::{Kept, Said, subject, to_go_on};
use crate::commands::schedules;
use crate::commands::trials::Trials;
use crate::crash::WHERE_TO_REPORT;
use crate::exit::{Exit, Failure};
use crate::late::Watch;
use crate::output::Output;
use crate::progress::Line;

/// Tests and prints: a test program case by case, anything else as it is.
pub fn run(arguments: &TestArguments, output: &mut Output) -> Result<Exit, Failure> {
    match cases_of(arguments)? {
        Some(cases) => run_cases(cases, arguments, output),
        None if arguments.list || arguments.filter.is_some() => Err(Failure::Input(
            "--list and --filter are for a test program of GoogleTest, Catch2 or doctest, given without \
             arguments"
                .into(),
        )),
        None => run_program(arguments, output),
    }
}

/// The cases of a test program that is given without arguments: with arguments its user has chosen.
fn cases_of(arguments: &TestArguments) -> Result<Option<Vec<Case>>, Failure> {
    let [program] = arguments.program.as_slice() else { return Ok(None) };
    let program = Path::new(program);
    match frameworks::of(program).filter(|_| !arguments.run.binary) {
        Some(framework) => frameworks::cases(framework, program),
        None => Ok(None),
    }
}

/// Options that are about all cases together, or that one case cannot have.
const OF_ALL_CASES: [&str; 7] =
    ["filter", "list", "partition", "format", "schedules", "json", "junit"];

fn run_cases(
    cases: Vec<Case>,
    arguments: &TestArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let outputs = &arguments.outputs;
    let for_one = [
        ("--html", outputs.html.is_some()),
        ("--sarif", outputs.sarif.is_some()),
        ("--perfetto", outputs.perfetto.is_some()),
        ("--text", outputs.text.is_some()),
        ("--write-baseline", outputs.write_baseline.is_some()),
        ("--resume", arguments.resume.is_some()),
    ];
    if let Some((option, _)) = for_one.iter().find(|(_, given)| *given) {
        return Err(Failure::Input(format!(
            "{option} is for one case: give the program with the arguments that run it, or show its saved \
             result with `foretell report`"
        )));
    }
    check_suppressions(outputs)?;
    let plan = Plan {
        filter: arguments.filter.as_deref(),
        list: arguments.list,
        partition: arguments.partition,
        junit: outputs.junit.as_deref(),
        json: outputs.json.as_deref(),
        results: arguments.schedules.clone(),
        schedules: arguments.schedules.clone(),
        options: typed_options("test", &OF_ALL_CASES),
    };
    cases::run(cases, &plan, output)
}

/// Tests one program and prints.
fn run_program(arguments: &TestArguments, output: &mut Output) -> Result<Exit, Failure> {
    let started = Instant::now();
    // A signal ends the search, not the report.
    stop::come_to_a_close_first();
    // The session keeps the limit by itself; this ends what it waits for, like a compiler that hangs.
    let limit = Duration::from_secs(arguments.time_limit).saturating_add(SHORTEST * 5);
    if let Some(deadline) = started.checked_add(limit) {
        stop::set_deadline(deadline);
    }
    let watch = Watch::begin(started, Duration::from_secs(arguments.time_limit));
    check_suppressions(&arguments.outputs)?;
    let mut prepared = prepare(&arguments.program, &arguments.run)?;
    prepared.program.follows.clone_from(&arguments.from);
    let with_traffic;
    let arguments = match arguments.clients.client.as_slice() {
        [] => arguments,
        _ => {
            let file = clients::serve(arguments, &prepared.program)?;
            prepared.program.traffic = Some(file.clone());
            with_traffic = TestArguments {
                run: RunArguments { traffic: Some(file), ..arguments.run.clone() },
                ..arguments.clone()
            };
            &with_traffic
        }
    };
    let subject = match (&arguments.resume, arguments.partition) {
        (None, None) => Vec::new(),
        _ => subject(arguments, &prepared.program)?,
    };
    let kept = Kept::open(arguments, &subject)?;
    if let Some(said) = kept.as_ref().and_then(Kept::said) {
        said.write_schedules(&arguments.schedules);
        return shown(said.report, arguments, output);
    }
    let mut options = options(arguments)?;
    options.store = kept.as_ref().map(|kept| Arc::clone(&kept.store));
    options.predict.progress.begin(Phase::Recording, 0);
    watch.reports_by(late(&options.so_far, arguments, output));
    let line = Line::show(&options.predict.progress);
    let session = match test(&prepared.program, &options) {
        Ok(session) => Arc::new(session),
        Err(error @ TestError::Strayed(_)) => {
            say!("foretell: {error}");
            return Ok(Exit::Incomplete);
        }
        Err(error @ TestError::Internal(_)) => return Err(Failure::Internal(error.to_string())),
        Err(error) => return Err(Failure::Input(error.to_string())),
    };
    options.so_far.finish(Arc::clone(&session));
    options.predict.progress.begin(Phase::Explaining, 0);
    let mut trials = Trials::new(arguments, &options, started);
    let (mut report, saved) = assembled(&session, arguments);
    explain(&session, &mut report, &mut trials);
    report.respell();
    drop((line, watch));
    spell_replays(&mut report, &arguments.run);
    if let Some(explored) = &mut report.exploration {
        let is_over = session.is_finished() && stop::asked().is_none();
        explored.go_on = (!is_over).then(|| to_go_on(arguments.resume.as_deref()));
        explored.part = part(arguments, &session, &subject);
    }
    report.unseen.extend(stopped());
    for error in &session.errors {
        say!("foretell: internal error: {error}; {WHERE_TO_REPORT}");
    }
    if let Some(kept) = &kept {
        if session.is_finished() && stop::asked().is_none() {
            kept.finish(&Said { report: report.clone(), schedules: saved });
        }
        if let Some(failure) = kept.store.failure() {
            say!("foretell: {failure}");
        }
    }
    shown(report, arguments, output)
}

/// Writes the schedules of the findings, and assembles the report.
fn assembled(session: &Session, arguments: &TestArguments) -> (Report, Vec<(String, Schedule)>) {
    let mut paths = BTreeMap::new();
    let saved = session.tested.iter().filter(|tested| tested.is_open() || tested.counts());
    let qemu = if arguments.run.symbolic { Schedule::QEMU_SYMBOLIC } else { Schedule::QEMU };
    let runner = arguments.run.binary.then(|| qemu.into());
    let schedule = |tested: &Tested| Schedule { runner: runner.clone(), ..tested.schedule.clone() };
    let saved: Vec<(String, Schedule)> =
        saved.map(|tested| (tested.finding.id.clone(), schedule(tested))).collect();
    let schedules = saved.iter().map(|(id, schedule)| (id.as_str(), schedule.clone()));
    schedules::write(&arguments.schedules, schedules, &mut paths);
    (Report::from_session(session, &paths), saved)
}

/// Reports what was found so far when the time is over; see [`Watch`].
fn late(
    so_far: &SoFar,
    arguments: &TestArguments,
    output: &Output,
) -> impl FnMut() -> Option<Exit> + Send + 'static {
    let (so_far, arguments) = (so_far.clone(), arguments.clone());
    let (format, config) = (output.format(), output.config().to_vec());
    move || {
        let session = so_far.take()?;
        let (mut report, _) = assembled(&session, &arguments);
        report.respell();
        spell_replays(&mut report, &arguments.run);
        if let Some(explored) = &mut report.exploration {
            explored.go_on = Some(to_go_on(arguments.resume.as_deref()));
        }
        let beside = Output::beside(format, config.clone()).map_err(Failure::from);
        let done = beside.and_then(|mut output| {
            let exit = shown(report, &arguments, &mut output);
            output.close().map_or(exit, |error| Err(error.into()))
        });
        match done {
            Ok(exit) => Some(exit),
            Err(Failure::Input(why) | Failure::Internal(why)) => {
                say!("foretell: {why}");
                None
            }
        }
    }
}

/// Replays are made as the runs of this test.
fn spell_replays(report: &mut Report, run: &RunArguments) {
    for replay in report.findings.iter_mut().filter_map(|finding| finding.replay.as_mut()) {
        *replay = replay.replacen("replay", &format!("replay{}", same_runs(run)), 1);
    }
}

/// Suppresses, prints and writes.
fn shown(
    mut report: Report,
    arguments: &TestArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    report.config.files = output.config().to_vec();
    suppress(&mut report, &arguments.outputs)?;
    story::fold(&mut report);
    print(&report, output)?;
    let written = write_files(&report, &arguments.outputs);
    keep_verdict(report.conclusion().into(), written)
}

/// What joining this part with others takes, if it is one.
fn part(
    arguments: &TestArguments,
    session: &Session,
    subject: &[(&str, String)],
) -> Option<report::Part> {
    let (number, of) = arguments.partition?;
    let explored = &session.exploration;
    Some(report::Part {
        number: number + 1,
        of,
        subject: subject.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        classes: explored.digests.iter().map(|class| format!("{class:016x}")).collect(),
    })
}

/// Explanations have at least so long, whatever the time limit is.
const SHORTEST: Duration = Duration::from_secs(1);

/// The options with which a replay runs the program as the test did.
fn same_runs(run: &RunArguments) -> String {
    let mut words = String::new();
    if run.is_test {
        words += " --is-test";
    }
    if let Some(after) = &run.after {
        words += &format!(" --after {after}");
    }
    if let Some(file) = &run.traffic {
        words += &format!(" --traffic {}", shell_word(&file.display().to_string()));
    }
    for (option, files) in [("--input", &run.input), ("--writes", &run.writes)] {
        for file in files {
            words += &format!(" {option} {}", shell_word(&file.display().to_string()));
        }
    }
    words
}

fn options(arguments: &TestArguments) -> Result<Options, Failure> {
    let mut options = Options {
        after: arguments.run.after.clone().unwrap_or(UNINTERRUPTED),
        paths: arguments.paths.into(),
        runs: arguments.runs.unwrap_or(usize::MAX),
        run_time: Duration::from_secs(arguments.run.run_limit),
        time: Duration::from_secs(arguments.time_limit),
        part: arguments.partition.map(|(number, of)| Part { number, of }),
        ..Options::default()
    };
    if let Some(jobs) = arguments.jobs {
        options.jobs = jobs;
    }
    options.predict.regions = arguments.regions.into();
    if !arguments.property.is_empty() {
        options.predict.properties.clone_from(&arguments.property);
    }
    if let Some(conflicts) = arguments.budget {
        options.predict.budget = Budget { conflicts };
    }
    options.predict.filters = filters(&arguments.filters, options.predict.regions)?;
    Ok(options)
}

/// Explains the first findings that count, as far as they are about the events of a run and as the
/// time goes. A finding without an explanation is a finding all the same.
fn explain(session: &Session, report: &mut Report, trials: &mut Trials) {
    const EXPLAINED: usize = 8;
    let started = Instant::now();
    let about_events = |tested: &&Tested| {
        let predicted = tested.violation != Violation::OtherPath;
        tested.counts()
            && (predicted || tested.past.is_some())
            && !tested.finding.accesses.is_empty()
    };
    for tested in session.tested.iter().filter(about_events).take(EXPLAINED) {
        if stop::asked().is_some() {
            break;
        }
        let known = report.findings.iter_mut().find(|finding| finding.id == tested.finding.id);
        if let Some(finding) = known {
            let left = trials.time_left().max(SHORTEST.saturating_sub(started.elapsed()));
            let explained = match tested.past.clone() {
                Some(past) => bounded(left, move || explained_by_its_run(&past)),
                None => {
                    let (trace, finding) =
                        (session.bases[tested.base].clone(), tested.finding.clone());
                    bounded(left, move || explained(&trace, &finding))
                }
            };
            let explained = explained.unwrap_or_default();
            finding.explanation = explained.explanation;
            finding.fix = explained.repair.map(|mut repair| {
                trials.check(tested, session, &mut repair);
                repair.fix
            });
        }
    }
}
