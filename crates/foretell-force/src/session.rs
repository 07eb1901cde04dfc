//! `foretell test`: record, predict, force each prediction, judge, and go on past the recorded path.
//!
//! Predictions are deduplicated by code locations, forced the most severe first, several at once.
//! A forced run that takes another path is a new recording: what can be predicted from it and was
//! not before is forced in turn, level by level up to a depth. Runs that took the same path in every
//! thread have the same concurrent trace program and are predicted from once.
//!
//! Other output is held against runs in which nothing is forced before it counts ([`crate::control`]).
//! What one part cannot do, because of a limit or a fault of ours, loses nothing that another found: it
//! is reported beside it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foretell_predict::finding::access_info;
use foretell_predict::progress::{Found, Phase};
use foretell_predict::region::Regions;
use foretell_predict::{
    Divergences, Finding, FindingKind, NOT_ASKED, PredictError, Prediction, Status,
    WitnessSchedule, divergences, predict,
};
use foretell_record::{Cause, Policy, RunEnd};
use foretell_solve::Budget;
use foretell_trace::schedule::Schedule;
use foretell_trace::validate::validate;
use foretell_trace::{EventId, Op, Trace};

use crate::beyond;
use crate::bounded::{Lost, bounded, guarded};
use crate::canonical;
use crate::control::{Controls, LONG_TURN};
use crate::effect::{Effect, compare, fatal};
use crate::forced::{Violation, forced_steps};
use crate::judge::{Outcome, Verdict, judge};
use crate::program::{InputDigest, Program};
use crate::run::{Limits, Run, RunError, Runner};
use crate::shrink::{Shrunk, shrink};

/// No thread is interrupted, unless it has more events than this in one go.
pub const UNINTERRUPTED: Policy = Policy::RoundRobin { quantum: LONG_TURN };
/// Members of a group (the same places, other threads) that are tried before it is given up.
const TRIES: usize = 3;
/// Scheduling points of a run at most: its events have to fit into memory.
pub const MOST_POINTS: u64 = 20_000_000;
/// Conflicts for a question about the recorded run: one that is harder takes the time of a hundred
/// runs.
const BUDGET: u64 = 100_000;
/// Conflicts for a question about a forced run.
const SMALL_BUDGET: u64 = 5_000;
/// Instances of a question about a forced run, and ways to leave its path.
const SMALL_INSTANCES: usize = 8;
/// Traces of one level that are predicted from.
const MOST_BASES: usize = 32;
/// A run that was begun has at least so long.
const SHORTEST_RUN: Duration = Duration::from_secs(1);
/// Of all runs, those that go on in other ways after a thread has left its path: one in so many.
const SHARE_OF_WAYS: usize = 4;

/// What to do, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to predict.
    pub predict: foretell_predict::Options,
    /// Who runs when while the program is recorded.
    pub base: Policy,
    /// What happens when a schedule is over.
    pub after: Policy,
    /// How often a forced run is predicted from in turn.
    pub depth: u32,
    /// Runs at the same time.
    pub jobs: usize,
    /// Runs in all.
    pub runs: usize,
    /// Ends a single run.
    pub run_time: Duration,
    /// No further run is begun after so long, and no question is asked after half of it.
    pub time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            predict: foretell_predict::Options {
                budget: Budget { conflicts: BUDGET },
                ..foretell_predict::Options::default()
            },
            base: UNINTERRUPTED,
            after: UNINTERRUPTED,
            depth: 2,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            runs: 500,
            run_time: Duration::from_secs(30),
            time: Duration::from_secs(300),
        }
    }
}

/// Why a program could not be tested.
#[derive(Debug)]
pub enum TestError {
    /// It could not be run.
    Run(RunError),
    /// Its trace makes no sense.
    Trace(String),
    /// Nothing can be predicted from its trace.
    Predict(PredictError),
    /// Its input cannot be read.
    Input(std::io::Error),
    /// Foretell contradicts itself.
    Internal(String),
    /// There was no time to predict anything.
    Late,
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestError::Run(error) => error.fmt(f),
            TestError::Trace(fault) => write!(f, "the recorded trace makes no sense: {fault}"),
            TestError::Predict(error) => error.fmt(f),
            TestError::Input(error) => write!(f, "cannot read the program's input: {error}"),
            TestError::Internal(why) => write!(f, "a fault of foretell: {why}"),
            TestError::Late => f.write_str(
                "the time limit ended before all questions about a run were answered (--time-limit)",
            ),
        }
    }
}

impl std::error::Error for TestError {}

/// A prediction and what came of it.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The prediction.
    pub finding: Finding,
    /// The trace that it was predicted from, by its number in [`Session::bases`].
    pub base: usize,
    /// What goes wrong.
    pub violation: Violation,
    /// How to make it happen.
    pub schedule: Schedule,
    /// What came out.
    pub verdict: Verdict,
    /// How the forced run ended.
    pub ended: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Predictions at the same places with other threads, which were not forced.
    pub same_places: usize,
    /// What was found out about a run past the recorded path that went wrong.
    pub past: Option<Past>,
}

/// A run past the recorded path that went wrong: no prediction is about its events.
#[derive(Clone, Debug)]
pub struct Past {
    /// Its events.
    pub trace: Trace,
    /// So many of them were forced.
    pub steps: usize,
    /// The events of the finding, as far as they took place in this run too.
    pub accesses: Vec<EventId>,
    /// The first came before the second; in a run without the last forced turn it was the other way
    /// round, and that run did not go wrong.
    pub switch: Option<(EventId, EventId)>,
}

impl Tested {
    /// Is it a bug that the user has to hear about?
    pub fn counts(&self) -> bool {
        self.verdict.counts(self.violation)
    }

    /// It is what the recorded run itself did: nothing was predicted and nothing forced.
    pub fn is_recorded(&self) -> bool {
        self.finding.schedule.is_none() && self.past.is_none()
    }

    /// It happened, and nobody can see it.
    pub fn is_folded(&self) -> bool {
        self.verdict.effect().is_some() && !self.counts()
    }
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs of the program, the recorded one included.
    pub runs: usize,
    /// Runs with a different partial order of their events.
    pub behaviours: usize,
    /// Runs whose threads took a different path.
    pub paths: usize,
    /// Paths at the last level, from which nothing was predicted any more.
    pub frontier: usize,
    /// Predictions that the budget left untried.
    pub untried: usize,
    /// Questions about the recorded run that the time left unasked.
    pub unasked: usize,
    /// Ways to leave the path that the budget left untried.
    pub untried_paths: usize,
    /// Ways to leave the path that could not be forced.
    pub unforced_paths: usize,
    /// Runs that went on in another way after a thread had left its path.
    pub other_ways: usize,
    /// Questions about forced runs that were not decided.
    pub undecided_beyond: usize,
    /// Places where a thread may leave the path of a forced run that were not asked about or not
    /// decided.
    pub unasked_beyond: usize,
}

/// A prediction without an answer.
#[derive(Clone, Debug)]
pub struct Open {
    /// The prediction.
    pub finding: Finding,
    /// The trace that it is about, by its number in [`Session::bases`].
    pub base: usize,
}

/// Everything that a test found.
#[derive(Debug)]
pub struct Session {
    /// The recorded run.
    pub recorded: Run,
    /// What was predicted from it.
    pub prediction: Prediction,
    /// The traces that were predicted from; the first is the recorded one.
    pub bases: Vec<Trace>,
    /// What was forced, and what came of it.
    pub tested: Vec<Tested>,
    /// Predictions without an answer: not decided, or not tried.
    pub open: Vec<Open>,
    /// What was not seen or not done, one sentence each.
    pub unseen: Vec<String>,
    /// Faults of foretell, one sentence each. What was found in spite of them is as good as ever.
    pub errors: Vec<String>,
    /// What was not done about forced runs, one sentence each. (Paths past the recorded one are
    /// endless in general, so that this does not make a test incomplete; what a budget of the user
    /// cut off is in `unseen`, and does.)
    pub beyond: Vec<String>,
    /// How much was done.
    pub counts: Counts,
}

/// What a test comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// A bug happened.
    Confirmed,
    /// A prediction could not be forced.
    Predicted,
    /// Something was not decided or not seen.
    Incomplete,
    /// Nothing was found, and foretell itself failed somewhere.
    Failed,
    /// Nothing was found.
    NothingFound,
}

impl Session {
    /// What it comes to.
    pub fn conclusion(&self) -> Conclusion {
        let untried = |open: &Open| open.finding.status == Status::Predicted;
        if self.tested.iter().any(Tested::counts) {
            Conclusion::Confirmed
        } else if self.tested.iter().any(|tested| tested.verdict.is_open())
            || self.open.iter().any(untried)
        {
            Conclusion::Predicted
        } else if !self.errors.is_empty() {
            Conclusion::Failed
        } else if !self.open.is_empty() || !self.unseen.is_empty() {
            Conclusion::Incomplete
        } else {
            Conclusion::NothingFound
        }
    }
}

/// Records, predicts, forces and judges.
pub fn test(program: &Program, options: &Options) -> Result<Session, TestError> {
    let started = Instant::now();
    let digest = program.digest().map_err(TestError::Input)?;
    let runner = Runner::new(program).map_err(TestError::Run)?;
    let first = Limits { time: options.run_time, points: MOST_POINTS };
    let recorded = runner.run(Vec::new(), options.base.clone(), first).map_err(TestError::Run)?;
    if let RunEnd::Refused(why) = &recorded.end {
        return Err(TestError::Trace(format!("the program cannot be controlled: {why}")));
    }
    if let Some(fault) = validate(&recorded.trace).first() {
        return Err(TestError::Trace(fault.to_string()));
    }
    let limits = Limits {
        time: options.run_time,
        points: (100 * recorded.trace.events.len() as u64 + 500_000).min(MOST_POINTS),
    };
    let mut campaign = Campaign {
        options,
        digest,
        runner: &runner,
        recorded: &recorded,
        limits,
        started,
        controls: Controls::new(&runner, &recorded, &options.base, limits),
        ways_left_out: AtomicUsize::new(0),
        groups: HashSet::new(),
        prefixes: HashSet::new(),
        paths: HashSet::from([canonical::paths(&recorded.trace)]),
        orders: HashSet::from([canonical::order(&recorded.trace, all_events(&recorded.trace))]),
        tested: Vec::new(),
        open: Vec::new(),
        unseen: Vec::new(),
        beyond: Vec::new(),
        errors: Vec::new(),
        counts: Counts::default(),
    };
    let failed = campaign.failed_already();
    if let Some(failed) = &failed {
        campaign.found(failed);
    }
    let mut bases = vec![recorded.trace.clone()];
    let prediction = match campaign.predict(&bases[0], Effort::Full) {
        Ok(prediction) => prediction,
        Err(error @ TestError::Predict(_)) if failed.is_none() => return Err(error),
        Err(error) => {
            campaign.lost(error);
            Prediction::default()
        }
    };
    campaign.unseen.extend(prediction.unseen.iter().cloned());
    let mut jobs = campaign.jobs(0, &bases[0], &prediction);
    for level in 0..=options.depth {
        let mut traces = match guarded(|| campaign.force(&bases, std::mem::take(&mut jobs))) {
            Ok(traces) => traces,
            Err(lost) => {
                campaign.errors.extend(lost.panic());
                break;
            }
        };
        if level == options.depth {
            campaign.counts.frontier = traces.len();
            break;
        }
        if traces.len() > MOST_BASES {
            campaign.beyond.push(format!(
                "{} of the paths that forced runs took were not predicted from",
                traces.len() - MOST_BASES
            ));
            traces.truncate(MOST_BASES);
        }
        for trace in traces {
            if campaign.is_spent() {
                campaign.unseen.push("the budget ended before all paths were looked at".into());
                break;
            }
            match campaign.predict(&trace, Effort::Small) {
                Ok(deeper) => match guarded(|| campaign.jobs(bases.len(), &trace, &deeper)) {
                    Ok(found) => jobs.extend(found),
                    Err(lost) => campaign.errors.extend(lost.panic()),
                },
                Err(error) => campaign.lost(error),
            }
            bases.push(trace);
        }
        if jobs.is_empty() {
            break;
        }
    }
    let ways_left_out = campaign.ways_left_out.load(Ordering::Relaxed);
    let Campaign {
        mut tested,
        open,
        mut unseen,
        mut beyond,
        errors,
        mut counts,
        paths,
        orders,
        ..
    } = campaign;
    if let Some(failed) = failed {
        // Predicted from the run, too: the same failure once.
        tested.retain(|other| {
            other.finding.kind != failed.finding.kind || other.ended != failed.ended
        });
        tested.push(failed);
    }
    counts.runs = runner.runs();
    counts.paths = paths.len();
    counts.behaviours = orders.len();
    if counts.unasked > 0 {
        unseen.push(format!(
            "{} questions were not asked: half of the time limit was over (--time-limit)",
            counts.unasked
        ));
    }
    if counts.untried > 0 {
        unseen.push(format!("{} predictions were not tried: the budget is spent", counts.untried));
    }
    if counts.untried_paths > 0 {
        let untried = counts.untried_paths;
        unseen
            .push(format!("{untried} ways to leave the path were not tried: the budget is spent"));
    }
    unseen.extend(errors.iter().map(|error| format!("a fault of foretell: {error}")));
    if ways_left_out > 0 {
        beyond.push(format!(
            "{ways_left_out} further ways to go on after a thread had left its path were not tried"
        ));
    }
    if counts.undecided_beyond + counts.unasked_beyond > 0 {
        beyond.push(format!(
            "{} questions about forced runs were not decided and {} not asked: less effort is spent \
             on them than on the recorded run",
            counts.undecided_beyond, counts.unasked_beyond
        ));
    }
    let mut said = HashSet::new();
    unseen.retain(|sentence| said.insert(sentence.clone()));
    beyond.retain(|sentence| said.insert(sentence.clone()));
    tested.sort_by_key(|tested| (!tested.counts(), tested.violation));
    Ok(Session { recorded, prediction, bases, tested, open, unseen, errors, beyond, counts })
}

/// The event of another run with the same thread and number, if it is of the same kind and place.
fn same_event(run: &Trace, event: EventId, other: &Trace) -> Option<EventId> {
    let here = run.event(event);
    let path = &run.threads[here.thread.index()].path;
    let thread = other.threads.iter().position(|thread| thread.path == *path)?;
    let site = |trace: &Trace, event: &foretell_trace::Event| {
        event.site.map(|site| trace.sites[site.index()].clone())
    };
    let found = other
        .events
        .iter()
        .position(|there| there.thread.index() == thread && there.index == here.index)?;
    let there = &other.events[found];
    let same = there.op.keyword() == here.op.keyword() && site(other, there) == site(run, here);
    same.then(|| EventId::from(found))
}

/// What was not asked about the places where a thread may leave the recorded path.
fn left_unasked(found: &Divergences) -> impl Iterator<Item = String> + use<> {
    let sentence = |count: usize, what: &str| {
        (count > 0).then(|| format!("{count} places where a thread may leave its path {what}"))
    };
    let left_out = sentence(found.left_out, "were not examined: there are too many");
    let undecided = sentence(found.undecided, "were not decided");
    let same = sentence(
        found.same_places,
        "were not examined: others at the same code locations (other iterations, other threads) \
         cannot leave it",
    );
    left_out.into_iter().chain(undecided).chain(same)
}

/// The result of work that was bounded, as one of the test.
fn result<T>(done: Result<Result<T, PredictError>, Lost>) -> Result<T, TestError> {
    match done {
        Ok(result) => result.map_err(TestError::Predict),
        Err(Lost::Late) => Err(TestError::Late),
        Err(Lost::Panicked(why)) => Err(TestError::Internal(why)),
    }
}

fn all_events(trace: &Trace) -> impl Iterator<Item = EventId> + use<> {
    (0..trace.events.len()).map(EventId::from)
}

/// Whether the torn blocks of the trace were marked by the user.
pub fn blocks_are_marked(trace: &Trace, regions: Regions) -> bool {
    match regions {
        Regions::Marked => true,
        Regions::Inferred => false,
        Regions::Automatic => {
            trace.events.iter().any(|event| matches!(event.op, Op::RegionBegin(_)))
        }
    }
}

/// The schedule file of a finding of the trace.
pub fn schedule_of(
    trace: &Trace,
    finding: &str,
    witness: &WitnessSchedule,
    violation: Violation,
    digest: InputDigest,
) -> Schedule {
    let mut schedule = witness.to_schedule(trace, finding);
    schedule.violation = Some(violation.name().into());
    schedule.input = Some(digest.to_string().into());
    schedule
}

/// A run of the schedule. One that goes on for ever is tried once more with other luck after the
/// schedule: threads that wait for each other in a loop need not be a livelock.
pub fn forced_run(
    runner: &Runner<'_>,
    schedule: &Schedule,
    violation: Violation,
    after: &Policy,
    limits: Limits,
) -> Result<Run, RunError> {
    let steps = forced_steps(schedule, violation);
    let run = runner.run(steps.clone(), after.clone(), limits)?;
    match run.end {
        RunEnd::Livelock(_) => runner.run(steps, Policy::Random { seed: 1, mean: 20 }, limits),
        _ => Ok(run),
    }
}

/// Predictions at the same places; one of them is forced.
struct Job {
    base: usize,
    violation: Violation,
    /// The most promising first; all have a schedule.
    members: Vec<Finding>,
}

/// What came of a job.
struct Forced {
    tested: Tested,
    /// The run of the schedule itself.
    run: Option<Run>,
    /// The canonical forms of the runs that went on in other ways.
    orders: Vec<u64>,
}

/// How hard to predict.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    Full,
    Small,
}

struct Campaign<'a> {
    options: &'a Options,
    digest: InputDigest,
    runner: &'a Runner<'a>,
    recorded: &'a Run,
    limits: Limits,
    started: Instant,
    controls: Controls<'a>,
    ways_left_out: AtomicUsize,
    groups: HashSet<String>,
    prefixes: HashSet<(u64, bool)>,
    paths: HashSet<u64>,
    orders: HashSet<u64>,
    tested: Vec<Tested>,
    open: Vec<Open>,
    unseen: Vec<String>,
    beyond: Vec<String>,
    errors: Vec<String>,
    counts: Counts,
}

impl Campaign<'_> {
    /// Keeps that something could not be done.
    fn lost(&mut self, error: TestError) {
        match error {
            TestError::Internal(why) => self.errors.push(why),
            error => self.unseen.push(error.to_string()),
        }
    }

    /// What a run may cost now: none goes on when the time is over.
    fn limits(&self) -> Limits {
        let left = self.options.time.saturating_sub(self.started.elapsed());
        Limits { time: self.limits.time.min(left.max(SHORTEST_RUN)), ..self.limits }
    }

    fn is_spent(&self) -> bool {
        self.runner.runs() >= self.options.runs
            || self.started.elapsed() >= self.options.time
            || foretell_guard::stop::asked().is_some()
    }

    /// What can be predicted from a trace; from forced runs with less effort, as there are many.
    fn predict(&self, trace: &Trace, effort: Effort) -> Result<Prediction, TestError> {
        if self.recorded.outside.iter().any(|outside| outside.cause == Cause::Library) {
            // What is ordered by means that are not seen would be predicted in any order.
            let unseen = trace.metadata.gaps.iter().map(ToString::to_string).collect();
            return Ok(Prediction { unseen, ..Prediction::default() });
        }
        let mut options = self.options.predict.clone();
        // Half of the time is for runs.
        let time = self.options.time;
        let (asking, leaving) = match effort {
            Effort::Full => (time / 2, time * 2 / 3),
            Effort::Small => (time, time),
        };
        if effort == Effort::Small {
            options.budget.conflicts = options.budget.conflicts.min(SMALL_BUDGET);
            options.instances = options.instances.min(SMALL_INSTANCES);
            options.divergences = options.divergences.min(SMALL_INSTANCES);
        }
        // A single question may take longer than what was left when it was asked.
        let left =
            |limit: Duration| (limit + (time - limit) / 4).saturating_sub(self.started.elapsed());
        options.deadline = self.started.checked_add(asking);
        let (this, asked) = (trace.clone(), options.clone());
        let mut prediction = result(bounded(left(asking), move || predict(&this, &asked)))?;
        options.deadline = self.started.checked_add(leaving);
        let this = trace.clone();
        match result(bounded(left(leaving), move || divergences(&this, &options))) {
            Ok(found) => prediction.divergences = found,
            Err(TestError::Internal(why)) => prediction.internal_errors.push(why),
            Err(why) => prediction.unseen.push(why.to_string()),
        }
        Ok(prediction)
    }

    /// What is new in what can be predicted from a trace, the most severe first. What is not decided
    /// stays open.
    fn jobs(&mut self, base: usize, trace: &Trace, prediction: &Prediction) -> Vec<Job> {
        let refused = &prediction.divergences.internal_errors;
        self.errors.extend(prediction.internal_errors.iter().chain(refused).cloned());
        let marked = blocks_are_marked(trace, self.options.predict.regions);
        let mut jobs: Vec<Job> = Vec::new();
        for finding in &prediction.findings {
            if finding.schedule.is_none() {
                match (base, &finding.status) {
                    (0, Status::Unknown(why)) if why == NOT_ASKED => self.counts.unasked += 1,
                    (0, _) => self.open.push(Open { finding: finding.clone(), base }),
                    _ => self.counts.undecided_beyond += 1,
                }
                continue;
            }
            let known = jobs.iter_mut().find(|job| job.members[0].group == finding.group);
            if let Some(job) = known {
                job.members.push(finding.clone());
            } else if self.groups.insert(finding.group.clone()) {
                let violation = Violation::of(finding, marked);
                jobs.push(Job { base, violation, members: vec![finding.clone()] });
            }
        }
        jobs.sort_by_key(|job| job.violation);
        jobs.extend(self.other_paths(base, trace, &prediction.divergences));
        jobs
    }

    /// Prefixes after which a thread may leave its path. Those that are causally the same as one
    /// before are left out.
    fn other_paths(&mut self, base: usize, trace: &Trace, found: &Divergences) -> Vec<Job> {
        match base {
            0 => self.unseen.extend(left_unasked(found)),
            _ => self.counts.unasked_beyond += found.left_out + found.undecided + found.same_places,
        }
        let mut jobs = Vec::new();
        for divergence in found.found.iter().cloned() {
            let prefix = canonical::order(trace, divergence.schedule.events());
            if !self.prefixes.insert((prefix, divergence.overlapping)) {
                continue;
            }
            let events = std::iter::once(divergence.event).chain(divergence.source);
            let finding = Finding {
                group: divergence.id.clone(),
                id: divergence.id,
                kind: FindingKind::Order,
                pattern: None,
                status: Status::Predicted,
                accesses: events.map(|event| access_info(trace, event)).collect(),
                detail: divergence.detail,
                schedule: Some(divergence.schedule),
            };
            jobs.push(Job { base, violation: Violation::OtherPath, members: vec![finding] });
        }
        jobs
    }

    /// Forces, several at once; gives the traces of runs that took a path nobody took before.
    fn force(&mut self, bases: &[Trace], jobs: Vec<Job>) -> Vec<Trace> {
        self.options.predict.progress.begin(Phase::Forcing, jobs.len());
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let (this, queue) = (&*self, &jobs);
        // Which of them may go on in other ways does not depend on who is first.
        let share = (this.options.runs / SHARE_OF_WAYS).saturating_sub(this.counts.other_ways);
        let first_path = queue.iter().position(|job| job.violation == Violation::OtherPath);
        let allowed = first_path.unwrap_or(0) + share / beyond::MOST_WAYS;
        std::thread::scope(|scope| {
            let work = || {
                while let Some((number, job)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    queue.get(number).map(|job| (number, job))
                } {
                    let forced =
                        || guarded(|| this.force_one(&bases[job.base], job, number < allowed));
                    let result = (!this.is_spent()).then(forced);
                    results.lock().unwrap_or_else(|e| e.into_inner()).push((number, result));
                    this.options.predict.progress.advance();
                }
            };
            // This thread works, too, so that it is done even if no other can be started.
            for _ in 1..this.options.jobs.clamp(1, jobs.len().max(1)) {
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
        results.sort_by_key(|&(number, _)| number);
        let mut traces = Vec::new();
        for (number, result) in results {
            let job = &jobs[number];
            let Forced { tested, run, orders } = match result {
                Some(Ok(forced)) => forced,
                not_forced => {
                    if let Some(Err(Lost::Panicked(why))) = not_forced {
                        self.errors.push(why);
                    }
                    match job.violation {
                        Violation::OtherPath => self.counts.untried_paths += 1,
                        _ => {
                            self.counts.untried += 1;
                            let finding = job.members[0].clone();
                            self.open.push(Open { finding, base: job.base });
                        }
                    }
                    continue;
                }
            };
            if tested.counts() {
                self.found(&tested);
            }
            match tested.violation {
                Violation::OtherPath => {
                    if let Outcome::NotForced(why) = &tested.verdict.outcome {
                        self.not_left(job.base, why);
                    }
                    self.tested.extend(self.seen_beyond(tested));
                }
                _ => self.tested.push(tested),
            }
            self.counts.other_ways += orders.len();
            self.orders.extend(orders);
            let Some(run) = run else { continue };
            self.orders.insert(canonical::order(&run.trace, all_events(&run.trace)));
            let ended = matches!(run.end, RunEnd::Exit(_));
            if ended && self.paths.insert(canonical::paths(&run.trace)) {
                traces.push(run.trace);
            }
        }
        traces
    }

    /// Keeps in short that a bug was found, for the case that there will be no report.
    fn found(&self, tested: &Tested) {
        let Finding { kind, detail, .. } = &tested.finding;
        let found = Found { confirmed: true, kind: *kind, about: detail.clone() };
        self.options.predict.progress.found(found);
    }

    /// A way to leave the path could not be forced.
    fn not_left(&mut self, base: usize, why: &str) {
        self.counts.unforced_paths += 1;
        let sentence = format!("a thread may leave its path, which could not be forced: {why}");
        match base {
            0 => self.unseen.push(sentence),
            _ => self.beyond.push(sentence),
        }
    }

    /// Forces a member of the group; when the program does not do it, the next one. `allowed`: a
    /// thread that leaves its path may go on in other ways.
    fn force_one(&self, base: &Trace, job: &Job, allowed: bool) -> Forced {
        let mut result = None;
        for finding in job.members.iter().take(TRIES) {
            let (tested, run) = self.force_finding(base, job, finding);
            let happened = tested.verdict.effect().is_some();
            // One that could not be tried says more than one that is refuted.
            let open = |known: &(Tested, Option<Run>)| known.0.verdict.is_open();
            if happened || !result.as_ref().is_some_and(open) {
                result = Some((tested, run));
            }
            if happened || self.is_spent() {
                break;
            }
        }
        let (mut tested, run) = result.expect("a job has a member");
        let mut orders = Vec::new();
        if job.violation == Violation::OtherPath
            && let Some(run) = &run
        {
            let bad = match tested.counts() {
                true => Some(run.clone()),
                false => self.go_on_otherwise(&mut tested, run, allowed, &mut orders),
            };
            if let Some(bad) = bad {
                self.shrink(&mut tested, base, bad);
            }
        }
        Forced { tested, run, orders }
    }

    /// A thread has left its path and nothing came of it: goes on in other ways until something
    /// does. Only what ends a program badly counts: other output may be as good as the recorded one
    /// when threads take short turns.
    fn go_on_otherwise(
        &self,
        tested: &mut Tested,
        first: &Run,
        allowed: bool,
        orders: &mut Vec<u64>,
    ) -> Option<Run> {
        if !matches!(first.end, RunEnd::Exit(_)) {
            return None;
        }
        let ways = beyond::ways(&first.trace, first.steps_taken);
        for (number, way) in ways.iter().enumerate() {
            if !allowed || self.is_spent() {
                self.ways_left_out.fetch_add(ways.len() - number, Ordering::Relaxed);
                break;
            }
            let after = way.after.as_ref().unwrap_or(&self.options.after);
            let Ok(run) = self.runner.run(way.steps.clone(), after.clone(), self.limits()) else {
                continue;
            };
            orders.push(canonical::order(&run.trace, all_events(&run.trace)));
            let difference = compare(self.recorded, &run);
            let ends = matches!(run.end, RunEnd::Signal(_) | RunEnd::Deadlock(_));
            if ends && difference.effect <= Effect::Hang {
                let outcome = Outcome::Confirmed(difference.effect);
                tested.verdict = Verdict { outcome, difference };
                tested.ended = run.ended();
                tested.stderr = String::from_utf8_lossy(&run.written.stderr).into_owned();
                return Some(run);
            }
        }
        None
    }

    /// Finds the decisive turn of a run that went wrong; the schedule ends with it.
    fn shrink(&self, tested: &mut Tested, base: &Trace, bad: Run) {
        let wanted = tested.verdict.difference.clone();
        let wrong = |run: &Run| {
            let difference = compare(self.recorded, run);
            // Who hangs where may be told in other words.
            difference.effect == wanted.effect
                && (difference.effect == Effect::Hang || difference.sentence == wanted.sentence)
        };
        // The whole of a run that never ends is no help.
        if matches!(bad.end, RunEnd::Livelock(_)) {
            return;
        }
        let order = all_events(&bad.trace);
        let whole = Schedule::of_trace(&bad.trace, order, []);
        let (steps, trace) = (whole.steps.len(), bad.trace.clone());
        let limits = self.limits();
        // Without time to shrink it, the whole run is shown.
        let found = (!self.is_spent())
            .then(|| shrink(self.runner, bad, &self.options.after, limits, wrong))
            .flatten();
        let (trace, steps, switch) = match found {
            Some(Shrunk { steps, bad, switch }) => (bad.trace, steps, switch),
            None => (trace, steps, None),
        };
        let there = tested.finding.accesses.iter().map(|access| access.event);
        let accesses = there.filter_map(|event| same_event(base, event, &trace)).collect();
        let past = Past { trace, steps, accesses, switch };
        tested.schedule.steps =
            Schedule::of_trace(&past.trace, (0..past.steps).map(EventId::from), []).steps;
        tested.schedule.next.clear();
        tested.past = Some(past);
    }

    fn force_finding(&self, base: &Trace, job: &Job, finding: &Finding) -> (Tested, Option<Run>) {
        let violation = job.violation;
        let witness = finding.schedule.as_ref().expect("members have schedules");
        let schedule = schedule_of(base, &finding.id, witness, violation, self.digest);
        let run = forced_run(self.runner, &schedule, violation, &self.options.after, self.limits());
        let (verdict, ended, stderr, run) = match run {
            Ok(run) => {
                let mut verdict = judge(&schedule, violation, self.recorded, &run);
                self.controls.apply(&mut verdict, &run);
                let stderr = String::from_utf8_lossy(&run.written.stderr).into_owned();
                (verdict, run.ended(), stderr, Some(run))
            }
            Err(error) => {
                let difference = compare(self.recorded, self.recorded);
                let outcome = Outcome::NotForced(error.to_string());
                (Verdict { outcome, difference }, error.to_string(), String::new(), None)
            }
        };
        let tested = Tested {
            finding: finding.clone(),
            base: job.base,
            violation,
            schedule,
            verdict,
            ended,
            stderr,
            same_places: job.members.len() - 1,
            past: None,
        };
        (tested, run)
    }

    /// Leaving the path is no bug by itself: only what the user sees then, and what no other finding
    /// shows.
    fn seen_beyond(&self, mut tested: Tested) -> Option<Tested> {
        let difference = &tested.verdict.difference;
        let known = |other: &Tested| {
            other.counts()
                && other.verdict.difference.effect == difference.effect
                && other.verdict.difference.sentence == difference.sentence
        };
        if !tested.counts() || self.tested.iter().any(known) {
            return None;
        }
        tested.finding.kind = match difference.effect {
            Effect::Assertion => FindingKind::Assertion,
            Effect::Crash => FindingKind::Crash,
            Effect::Hang => FindingKind::Deadlock,
            Effect::Output | Effect::Path | Effect::None => FindingKind::Atomicity,
        };
        tested.finding.detail = format!("{}; {}", tested.finding.detail, difference.sentence);
        Some(tested)
    }

    /// The recorded run itself may be a bad one.
    fn failed_already(&self) -> Option<Tested> {
        let (effect, sentence) = fatal(self.recorded)?;
        let (kind, violation) = match effect {
            Effect::Assertion => (FindingKind::Assertion, Violation::Assertion),
            Effect::Crash => (FindingKind::Crash, Violation::Fault),
            _ => (FindingKind::Deadlock, Violation::Deadlock),
        };
        let trace = &self.recorded.trace;
        let id = format!("{:08x}-recorded", crc32fast::hash(sentence.as_bytes()));
        let mut schedule = Schedule::of_trace(trace, all_events(trace), []);
        schedule.finding = Some(id.as_str().into());
        schedule.violation = Some(violation.name().into());
        schedule.input = Some(self.digest.to_string().into());
        let mut difference = compare(self.recorded, self.recorded);
        difference.effect = effect;
        difference.sentence.clone_from(&sentence);
        Some(Tested {
            finding: Finding {
                group: id.clone(),
                id,
                kind,
                pattern: None,
                status: Status::Predicted,
                accesses: Vec::new(),
                detail: format!("the recorded run itself went wrong: {sentence}"),
                schedule: None,
            },
            base: 0,
            violation,
            schedule,
            verdict: Verdict { outcome: Outcome::Confirmed(effect), difference },
            ended: self.recorded.ended(),
            stderr: String::from_utf8_lossy(&self.recorded.written.stderr).into_owned(),
            same_places: 0,
            past: None,
        })
    }
}
