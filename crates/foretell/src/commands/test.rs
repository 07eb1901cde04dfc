//! `foretell test`: the whole thing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foretell_explore::Part;
use foretell_force::bounded::bounded;
use foretell_force::effect::Effect;
use foretell_force::forced::Violation;
use foretell_force::judge::Outcome;
use foretell_force::session::{
    Conclusion, Options, Session, TestError, Tested, UNINTERRUPTED, test,
};
use foretell_guard::{say, stop};
use foretell_predict::Prediction;
use foretell_predict::progress::Phase;
use foretell_report::report::{self, ForcedRun, Place, Report};
use foretell_report::{sha256, shell_word, story};
use foretell_solve::Budget;
use foretell_trace::schedule::Schedule;

use crate::cli::{RunArguments, TestArguments, typed_options};
use crate::commands::cases::{self, Case, Plan};
use crate::commands::clients;
use crate::commands::explained::explained;
use crate::commands::frameworks;
use crate::commands::past::{explained_by_its_run, in_its_own_run};
use crate::commands::predict::{filters, stopped};
use crate::commands::program::prepare;
use crate::commands::report::{
    check_suppressions, exit_of, keep_verdict, print, suppress, write_files,
};
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
        return shown(said.report, said.exit, arguments, output);
    }
    let mut options = options(arguments)?;
    options.store = kept.as_ref().map(|kept| Arc::clone(&kept.store));
    options.predict.progress.begin(Phase::Recording, 0);
    let line = Line::show(&options.predict.progress);
    let session = match test(&prepared.program, &options) {
        Ok(session) => session,
        Err(error @ TestError::Strayed(_)) => {
            say!("foretell: {error}");
            return Ok(Exit::Incomplete);
        }
        Err(error @ TestError::Internal(_)) => return Err(Failure::Internal(error.to_string())),
        Err(error) => return Err(Failure::Input(error.to_string())),
    };
    let mut paths = BTreeMap::new();
    let saved = session.tested.iter().filter(|tested| tested.is_open() || tested.counts());
    let qemu = if arguments.run.symbolic { Schedule::QEMU_SYMBOLIC } else { Schedule::QEMU };
    let runner = arguments.run.binary.then(|| qemu.into());
    let schedule = |tested: &Tested| Schedule { runner: runner.clone(), ..tested.schedule.clone() };
    let saved: Vec<(String, Schedule)> =
        saved.map(|tested| (tested.finding.id.clone(), schedule(tested))).collect();
    let schedules = saved.iter().map(|(id, schedule)| (id.as_str(), schedule.clone()));
    schedules::write(&arguments.schedules, schedules, &mut paths);
    options.predict.progress.begin(Phase::Explaining, 0);
    let mut trials = Trials::new(arguments, &options, started);
    let mut report = report(&session, &paths, &mut trials);
    drop((line, watch));
    for replay in report.findings.iter_mut().filter_map(|finding| finding.replay.as_mut()) {
        *replay = replay.replacen("replay", &format!("replay{}", same_runs(&arguments.run)), 1);
    }
    if let Some(explored) = &mut report.exploration {
        let is_over = session.is_finished() && stop::asked().is_none();
        explored.go_on = (!is_over).then(|| to_go_on(arguments.resume.as_deref()));
        explored.part = part(arguments, &session, &subject);
    }
    report.unseen.extend(stopped());
    for error in &session.errors {
        say!("foretell: internal error: {error}; {WHERE_TO_REPORT}");
    }
    let exit = match session.conclusion() {
        Conclusion::Confirmed => Exit::Confirmed,
        Conclusion::Predicted => Exit::Predicted,
        Conclusion::Incomplete => Exit::Incomplete,
        Conclusion::Failed => Exit::OurFailure,
        Conclusion::NothingFound if stop::asked().is_some() => Exit::Incomplete,
        Conclusion::NothingFound => Exit::NothingFound,
    };
    if let Some(kept) = &kept {
        if session.is_finished() && stop::asked().is_none() {
            kept.finish(&Said { exit, report: report.clone(), schedules: saved });
        }
        if let Some(failure) = kept.store.failure() {
            say!("foretell: {failure}");
        }
    }
    shown(report, exit, arguments, output)
}

/// Suppresses, prints and writes.
fn shown(
    mut report: Report,
    exit: Exit,
    arguments: &TestArguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    report.config.files = output.config().to_vec();
    suppress(&mut report, &arguments.outputs)?;
    story::fold(&mut report);
    print(&report, output)?;
    let written = write_files(&report, &arguments.outputs);
    if report.findings.iter().any(|finding| finding.suppressed.is_some()) {
        return keep_verdict(exit_of(&report), written);
    }
    keep_verdict(exit, written)
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

/// A digest of a set of classes.
pub fn class_digest(classes: impl Iterator<Item = String>) -> String {
    let classes: BTreeSet<String> = classes.collect();
    let text: String = classes.into_iter().collect();
    sha256::hex(text.as_bytes())[..16].to_owned()
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

/// The result as data. What nobody can see is counted and left out.
fn report(session: &Session, schedules: &BTreeMap<String, PathBuf>, trials: &mut Trials) -> Report {
    let of_base = |base: usize| {
        let shown = session.tested.iter().filter(move |tested| tested.base == base);
        let open = session.open.iter().filter(move |open| open.base == base);
        shown
            .filter(|tested| !tested.is_folded() && in_its_own_run(tested).is_none())
            .map(|tested| tested.finding.clone())
            .chain(open.map(|open| open.finding.clone()))
    };
    let mut prediction = session.prediction.clone();
    prediction.unseen.clone_from(&session.unseen);
    prediction.findings = of_base(0).collect();
    let mut report = Report::from_prediction(&session.bases[0], "", &prediction, schedules);
    for (base, trace) in session.bases.iter().enumerate().skip(1) {
        let prediction = Prediction { findings: of_base(base).collect(), ..Prediction::default() };
        if prediction.findings.is_empty() {
            continue;
        }
        report.absorb(Report::from_prediction(trace, "", &prediction, schedules));
    }
    for (trace, finding) in session.tested.iter().filter_map(in_its_own_run) {
        let prediction = Prediction { findings: vec![finding], ..Prediction::default() };
        report.absorb(Report::from_prediction(trace, "", &prediction, schedules));
    }
    for finding in &mut report.findings {
        // A question that is open here stays open where the same happened on another path, unseen.
        let mut seen = session.tested.iter().filter(|tested| !tested.is_folded());
        if let Some(tested) = seen.find(|tested| tested.finding.id == finding.id) {
            judged(finding, tested);
        }
    }
    explain(session, &mut report, trials);
    report.exploration = Some(exploration(session));
    report.trace.outside = session.recorded.outside.iter().map(outside).collect();
    report.respell();
    let place = |finding: &report::Finding| {
        session.tested.iter().position(|tested| tested.finding.id == finding.id)
    };
    report.findings.sort_by_key(|finding| place(finding).unwrap_or(usize::MAX));
    let counts = &session.counts;
    let of = |is: fn(&Tested) -> bool| session.tested.iter().filter(|tested| is(tested)).count();
    report.statistics.test = Some(report::TestStatistics {
        recorded_end: session.recorded.ended(),
        runs: counts.runs,
        runs_made: counts.runs_made,
        behaviours: counts.behaviours,
        paths: session.exploration.classes,
        forced: session.tested.len(),
        confirmed: of(Tested::counts),
        refuted: of(|tested| tested.verdict.is_refuted()),
        open: of(Tested::is_open) + counts.untried,
        folded: of(Tested::is_folded),
        untried: counts.untried,
        branches: session.recorded.path.branches(),
        branches_stored: session.recorded.path.mispredictions(),
    });
    report
}

/// How much was covered, for the report.
fn exploration(session: &Session) -> report::Exploration {
    let explored = &session.exploration;
    let reason = |(doubt, &questions): (&foretell_explore::Doubt, &usize)| report::OpenQuestions {
        reason: doubt.to_string(),
        questions,
    };
    let mut reasons: Vec<report::OpenQuestions> = explored.open.iter().map(reason).collect();
    if session.counts.undecided > 0 {
        reasons.push(report::OpenQuestions {
            reason: "the solver did not decide whether something goes wrong on another path".into(),
            questions: session.counts.undecided,
        });
    }
    report::Exploration {
        covered: session.is_covered(),
        classes: explored.classes,
        interleavings: explored.interleavings.filter(|_| session.is_covered()),
        questions: explored.asked,
        walks: explored.walks,
        open: reasons.iter().map(|open| open.questions).sum(),
        reasons,
        digest: (!explored.digests.is_empty())
            .then(|| class_digest(explored.digests.iter().map(|class| format!("{class:016x}")))),
        ..report::Exploration::default()
    }
}

/// What the recorded run depended on, for the report.
fn outside(outside: &foretell_record::Outside) -> report::Outside {
    let site = outside.site.as_ref().filter(|site| site.line > 0);
    report::Outside {
        cause: outside.cause.name().into(),
        thread: outside.thread.clone(),
        subject: outside.subject.clone(),
        file: site.map(|site| site.file.to_string()),
        line: site.map(|site| site.line),
        awaited: outside.awaited,
        times: outside.times,
    }
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

fn judged(finding: &mut report::Finding, tested: &Tested) {
    let difference = &tested.verdict.difference;
    (finding.status, finding.reason) = match &tested.verdict.outcome {
        _ if tested.is_recorded() => {
            (report::Status::Confirmed, Some("in the recorded run".to_owned()))
        }
        Outcome::Confirmed(_) | Outcome::Benign => (report::Status::Confirmed, None),
        Outcome::Refuted(why) => (report::Status::Refuted, Some(why.clone())),
        Outcome::NotForced(why) => (report::Status::Predicted, Some(why.clone())),
    };
    finding.effect = tested.verdict.effect().map(|effect| match effect {
        Effect::Assertion => report::Effect::Assertion,
        Effect::Crash => report::Effect::Crash,
        Effect::Hang => report::Effect::Hang,
        Effect::Output => report::Effect::Output,
        Effect::Path => report::Effect::Path,
        Effect::None => report::Effect::None,
    });
    let branch = difference.branch.as_ref();
    finding.forced = Some(ForcedRun {
        ended: tested.ended.clone(),
        runs: None,
        runs_before: Some(tested.runs_before),
        first_differing_branch: branch.map(|branch| {
            let taken = branch.second.as_ref().or(branch.first.as_ref());
            let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Place {
                file: taken.and_then(|taken| known(&taken.site.file)),
                line: taken.map(|taken| taken.site.line).filter(|&line| line > 0),
                function: taken.and_then(|taken| known(&taken.site.function)),
                text: difference.other_path.clone(),
            }
        }),
        output_difference: difference.output.clone(),
        stderr: Some(tested.stderr.clone()).filter(|text| !text.is_empty()),
    });
}
