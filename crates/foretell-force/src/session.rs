//! `foretell test`: record, predict, force each prediction, judge, and explore every other path.
//!
//! Predictions are deduplicated by code locations, forced the most severe first, several at once
//! (`campaign.rs`). Then [`foretell_explore`] asks of each choice of a thread whether it can come
//! out differently, runs what can, and every class of paths that it finds is predicted from like the
//! recorded run (`exploring.rs`).
//!
//! Other output is held against runs in which nothing is forced before it counts ([`crate::control`]).
//! What one part cannot do, because of a limit or a fault of ours, loses nothing that another found: it
//! is reported beside it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foretell_explore::{Doubt, Exploration, Part};
use foretell_predict::region::Regions;
use foretell_predict::{Finding, PredictError, Prediction, WitnessSchedule};
use foretell_record::{Policy, RunEnd};
use foretell_solve::Budget;
use foretell_store::Store;
use foretell_trace::schedule::Schedule;
use foretell_trace::validate::validate;
use foretell_trace::{EventId, Op, Trace};

use crate::campaign::Campaign;
use crate::control::LONG_TURN;
use crate::effect::Change;
use crate::exploring;
use crate::forced::{Violation, forced_steps};
use crate::judge::Verdict;
use crate::limits::{CONFLICTS, EVENTS_PER_SECOND, MOST_POINTS};
use crate::program::{InputDigest, Program};
use crate::run::{BlockedThread, EndKind, Limits, Run, RunError, Runner};

/// No thread is interrupted, unless it has more events than this in one go.
pub const UNINTERRUPTED: Policy = Policy::RoundRobin { quantum: LONG_TURN };
/// The recorded run has half of the time, and at least so long.
const SHORTEST_RECORDING: Duration = Duration::from_secs(5);
/// Which paths are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Those that the threads can take under any schedule.
    All,
    /// Those of the recorded run.
    Recorded,
}

/// What to do, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to predict.
    pub predict: foretell_predict::Options,
    /// Who runs when while the program is recorded.
    pub base: Policy,
    /// What happens when a schedule is over.
    pub after: Policy,
    /// Which paths are tested.
    pub paths: Paths,
    /// Runs at the same time.
    pub jobs: usize,
    /// Runs that are made in this session.
    pub runs: usize,
    /// Ends a single run.
    pub run_time: Duration,
    /// No further run is begun after so long, and no question is asked after half of it.
    pub time: Duration,
    /// Only this part of the exploration is done.
    pub part: Option<Part>,
    /// Where runs are kept, for a session that goes on later.
    pub store: Option<Arc<Store>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            predict: foretell_predict::Options {
                budget: Budget { conflicts: CONFLICTS },
                ..foretell_predict::Options::default()
            },
            base: UNINTERRUPTED,
            after: UNINTERRUPTED,
            paths: Paths::All,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            runs: usize::MAX,
            run_time: Duration::from_secs(30),
            time: Duration::from_secs(300),
            part: None,
            store: None,
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
    /// It did not follow the log that it was to begin with.
    Strayed(String),
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
            TestError::Strayed(why) => {
                write!(f, "the program does something else than the log of --from: {why}")
            }
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
    /// How the forced run ended, for people.
    pub ended: String,
    /// The same as data.
    pub end: EndKind,
    /// The threads that could not go on then.
    pub blocked: Vec<BlockedThread>,
    /// How it went wrong, if it did: runs that went wrong alike have equal ones.
    pub failure: Option<Change>,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Predictions at the same places with other threads, which were not forced.
    pub same_places: usize,
    /// Runs of the program before the one that showed it.
    pub runs_before: usize,
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

    /// It happened, and nobody can see it; or it is a race of a binary that could not be tried: a binary's races count
    /// by what comes of them only, and what its order is kept by (a pipe, a signal) may not be seen.
    pub fn is_folded(&self) -> bool {
        let not_tried = self.violation == Violation::MachineRace && self.verdict.is_open();
        (self.verdict.effect().is_some() || not_tried) && !self.counts()
    }

    /// It could not be tried, and the user has to hear about that.
    pub fn is_open(&self) -> bool {
        self.verdict.is_open() && !self.is_folded()
    }
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs of the program, the recorded one included.
    pub runs: usize,
    /// Runs that were made in this session; the others are from a store.
    pub runs_made: usize,
    /// Runs with a different partial order of their events.
    pub behaviours: usize,
    /// Predictions that the budget left untried.
    pub untried: usize,
    /// Questions about the recorded run that the time left unasked.
    pub unasked: usize,
    /// Questions about runs on other paths that were not decided.
    pub undecided: usize,
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
    /// What came of the exploration of other paths.
    pub exploration: Exploration,
    /// How much was done.
    pub counts: Counts,
    /// A limit or a signal ended it: there may be more to find in a session that goes on.
    pub was_ended: bool,
}

impl Session {
    /// Was everything that the program can do with its input looked at and decided?
    pub fn is_covered(&self) -> bool {
        self.open.is_empty()
            && self.unseen.is_empty()
            && self.errors.is_empty()
            && self.exploration.is_complete()
            && self.counts.undecided == 0
    }

    /// Would a session that goes on find nothing more?
    pub fn is_finished(&self) -> bool {
        self.errors.is_empty() && (self.is_covered() || !self.was_ended)
    }
}

/// Records, predicts, forces and judges.
pub fn test(program: &Program, options: &Options) -> Result<Session, TestError> {
    let started = Instant::now();
    let digest = program.digest().map_err(TestError::Input)?;
    let runner = Runner::new(program)
        .map_err(TestError::Run)?
        .with_store(options.store.clone())
        .with_most_events(EVENTS_PER_SECOND.saturating_mul(options.time.as_secs().max(1)));
    let time = options.run_time.min((options.time / 2).max(SHORTEST_RECORDING));
    let first = Limits { time, points: MOST_POINTS };
    // The recorded run is made in any case: without it there is nothing to report.
    let recorded = runner.run(Vec::new(), options.base.clone(), first).map_err(TestError::Run)?;
    let runner = runner.until(started.checked_add(options.time));
    if let RunEnd::Refused(why) = &recorded.end {
        return Err(TestError::Trace(format!("the program cannot be controlled: {why}")));
    }
    if let RunEnd::LeftSchedule(why) = &recorded.end {
        return Err(TestError::Strayed(why.to_string()));
    }
    if let Some(fault) = validate(&recorded.trace).first() {
        return Err(TestError::Trace(fault.to_string()));
    }
    let limits = Limits {
        time: options.run_time,
        points: (100 * recorded.trace.events.len() as u64 + 500_000).min(MOST_POINTS),
    };
    let mut campaign = Campaign::new(options, digest, &runner, &recorded, limits, started);
    let failed = campaign.failed_already();
    if let Some(failed) = &failed {
        campaign.found(failed);
    }
    let prediction = match campaign.predict(&recorded.trace) {
        Ok(prediction) => prediction,
        Err(error @ TestError::Predict(_)) if failed.is_none() => return Err(error),
        Err(error) => {
            campaign.lost(error);
            let unseen = recorded.trace.metadata.gaps.iter().map(ToString::to_string).collect();
            Prediction { unseen, ..Prediction::default() }
        }
    };
    campaign.unseen.extend(prediction.unseen.iter().cloned());
    let jobs = campaign.jobs(0, &recorded.trace, &prediction);
    let others = campaign.without_panic(|campaign| campaign.force(jobs)).unwrap_or_default();
    let one_class = Exploration { classes: 1, ..Exploration::default() };
    let exploration = match campaign.is_late() {
        // Even to look what there is to ask takes its time.
        true => Exploration { open: [(Doubt::Limit, 1)].into(), ..one_class },
        false => campaign
            .without_panic(|campaign| exploring::explore(campaign, &recorded, others))
            .unwrap_or(one_class),
    };
    let is_spent = campaign.is_spent();
    let Campaign { mut tested, open, mut unseen, errors, mut counts, orders, bases, .. } = campaign;
    if let Some(failed) = failed {
        // Predicted from the run, too: the same failure once.
        tested.retain(|other| {
            other.finding.kind != failed.finding.kind || other.failure != failed.failure
        });
        tested.push(failed);
    }
    // What is not decided may be for want of time, too, once no question is asked any more.
    let was_ended = is_spent
        || [Doubt::Limit, Doubt::NoEnd].iter().any(|doubt| exploration.open.contains_key(doubt))
        || started.elapsed() >= options.time / 2;
    (counts.runs, counts.runs_made) = (runner.runs(), runner.runs_made());
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
    if program.traffic.is_some() {
        unseen.push(
            "in every run the clients sent their requests as early as possible; later arrival was not tried"
                .into(),
        );
    }
    unseen.extend(errors.iter().map(|error| format!("a fault of foretell: {error}")));
    // What several runs have, each so and so often, is said once.
    let mut said = HashSet::new();
    unseen.retain(|sentence| {
        said.insert(sentence.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned())
    });
    tested.sort_by_key(|tested| (!tested.counts(), tested.violation));
    Ok(Session {
        recorded,
        prediction,
        bases,
        tested,
        open,
        unseen,
        errors,
        exploration,
        counts,
        was_ended,
    })
}

/// All events of a trace in their order.
pub(crate) fn all_events(trace: &Trace) -> impl Iterator<Item = EventId> + use<> {
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
