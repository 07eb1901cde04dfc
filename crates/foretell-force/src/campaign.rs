//! Predicting from traces and forcing what is predicted.
//!
//! Predictions are deduplicated by code locations and forced the most severe first, several at once.
//! What was predicted at places that are known already is not forced again, unless it is an end that
//! nobody has seen yet: a failing assertion, a crash, a deadlock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use foretell_predict::finding::access_info;
use foretell_predict::progress::{Found, Phase};
use foretell_predict::{Finding, FindingKind, Prediction, Reason, Status, predict};
use foretell_record::{Cause, RunEnd};
use foretell_trace::schedule::Schedule;
use foretell_trace::waiting::waits_for_ever;
use foretell_trace::{EventId, Trace};

use crate::bounded::{Lost, guarded};
use crate::canonical;
use crate::control::{self, Controls};
use crate::effect::{Difference, Effect, compare, fatal};
use crate::forced::Violation;
use crate::judge::{Outcome, Verdict, judge};
use crate::lost;
use crate::predictor::Predictor;
use crate::program::InputDigest;
use crate::run::{EndKind, Limits, Run, Runner};
use crate::session::{
    Counts, Open, Options, Past, TestError, Tested, all_events, blocks_are_marked, forced_run,
    schedule_of,
};
use crate::shrink::{NotRepeated, Shrunk, same_event, shrink};

/// Members of a group (the same places, other threads) that are tried before it is given up.
const TRIES: usize = 3;

/// Predictions at the same places; one of them is forced.
pub(crate) struct Job {
    /// By its number in [`Campaign::bases`].
    pub base: usize,
    pub violation: Violation,
    /// The most promising first; all have a schedule.
    pub members: Vec<Finding>,
}

/// What came of a job.
struct Forced {
    tested: Tested,
    /// The run of the schedule itself.
    run: Option<Run>,
}

/// A test while it goes on.
pub(crate) struct Campaign<'a> {
    pub options: &'a Options,
    pub digest: InputDigest,
    pub runner: &'a Runner<'a>,
    pub recorded: &'a Run,
    pub limits: Limits,
    pub started: Instant,
    pub controls: Controls<'a>,
    /// Places of predictions that were forced, and what goes wrong there.
    groups: HashMap<String, Violation>,
    /// Canonical forms of the runs.
    pub orders: HashSet<u64>,
    /// Traces that findings are about.
    pub bases: Vec<Trace>,
    pub tested: Vec<Tested>,
    pub open: Vec<Open>,
    pub unseen: Vec<String>,
    /// That of a run nobody knows whether it went wrong.
    said_unclear: bool,
    pub errors: Vec<String>,
    pub counts: Counts,
}

impl<'a> Campaign<'a> {
    /// About a recorded run.
    pub fn new(
        options: &'a Options,
        digest: InputDigest,
        runner: &'a Runner<'a>,
        recorded: &'a Run,
        limits: Limits,
        started: Instant,
    ) -> Self {
        Self {
            options,
            digest,
            runner,
            recorded,
            limits,
            started,
            controls: Controls::new(runner, recorded, &options.base, limits),
            groups: HashMap::new(),
            orders: HashSet::from([canonical::order(&recorded.trace, all_events(&recorded.trace))]),
            bases: vec![recorded.trace.clone()],
            tested: Vec::new(),
            open: Vec::new(),
            unseen: Vec::new(),
            said_unclear: false,
            errors: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The number of a trace that findings are about.
    pub fn base(&mut self, class: usize, trace: &Trace) -> usize {
        if class == 0 {
            return 0;
        }
        if self.bases.last() != Some(trace) {
            self.bases.push(trace.clone());
        }
        self.bases.len() - 1
    }

    /// Keeps that something could not be done.
    pub fn lost(&mut self, error: TestError) {
        match error {
            TestError::Internal(why) => self.errors.push(why),
            error => self.unseen.push(error.to_string()),
        }
    }

    pub fn is_spent(&self) -> bool {
        self.runner.runs_made() >= self.options.runs || self.is_late()
    }

    /// Is the time over, or has foretell to end?
    pub fn is_late(&self) -> bool {
        self.started.elapsed() >= self.options.time || foretell_guard::stop::is_over()
    }

    /// What can be predicted from a trace.
    pub fn predict(&self, trace: &Trace) -> Result<Prediction, TestError> {
        self.predictor().predict(&Arc::new(trace.clone()), predict)
    }

    /// Who predicts, also beside this campaign.
    pub fn predictor(&self) -> Predictor<'a> {
        Predictor { options: self.options, started: self.started, is_outside: self.is_outside() }
    }

    /// Is something ordered by a library that is not seen?
    pub fn is_outside(&self) -> bool {
        self.recorded.outside.iter().any(|outside| outside.cause == Cause::Library)
    }

    /// What is new in what can be predicted from a trace, the most severe first. What is not decided
    /// stays open.
    pub fn jobs(&mut self, class: usize, trace: &Trace, prediction: &Prediction) -> Vec<Job> {
        self.errors.extend(prediction.internal_errors.iter().cloned());
        let marked = blocks_are_marked(trace, self.options.predict.regions);
        let unseen = trace.metadata.unseen.locks;
        let mut jobs: Vec<Job> = Vec::new();
        for finding in &prediction.findings {
            if finding.schedule.is_none() {
                match (class, &finding.status) {
                    (0, Status::Unknown(Reason::NotAsked)) => self.counts.unasked += 1,
                    (0, _) => self.open.push(Open { finding: finding.clone(), base: 0 }),
                    _ => self.counts.undecided += 1,
                }
                continue;
            }
            let known = jobs.iter_mut().find(|job| job.members[0].group == finding.group);
            if let Some(job) = known {
                job.members.push(finding.clone());
                continue;
            }
            let violation = match Violation::of(finding, marked) {
                Violation::Race if self.runner.program.binary => Violation::MachineRace,
                violation => violation,
            };
            // What is done under a lock looks like what is not.
            if unseen && matches!(violation, Violation::MachineRace | Violation::InferredBlock) {
                continue;
            }
            let new = self.groups.insert(finding.group.clone(), violation).is_none();
            if new || (is_an_end(violation) && !self.was_confirmed(&finding.group)) {
                let base = self.base(class, trace);
                jobs.push(Job { base, violation, members: vec![finding.clone()] });
            }
        }
        // A race alone shows nothing: what goes wrong by it is more.
        let is_race = |job: &Job| matches!(job.violation, Violation::Race | Violation::MachineRace);
        jobs.sort_by_key(|job| (is_race(job), job.violation));
        jobs
    }

    /// Places at which nothing that is predicted would be forced again.
    pub fn settled(&self) -> HashSet<String> {
        let groups = self.groups.iter();
        let settled = groups
            .filter(|(group, violation)| !is_an_end(**violation) || self.was_confirmed(group));
        settled.map(|(group, _)| group.clone()).collect()
    }

    fn was_confirmed(&self, group: &str) -> bool {
        let mut tested = self.tested.iter();
        tested.any(|tested| tested.finding.group == group && tested.verdict.effect().is_some())
    }

    /// Forces, several at once; gives the runs that came to their end.
    pub fn force(&mut self, jobs: Vec<Job>) -> Vec<Run> {
        self.options.predict.progress.begin(Phase::Forcing, jobs.len());
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let (this, queue) = (&*self, &jobs);
        std::thread::scope(|scope| {
            let work = || {
                while let Some((number, job)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    queue.get(number).map(|job| (number, job))
                } {
                    let forced = || guarded(|| this.force_one(&this.bases[job.base], job));
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
        let mut runs = Vec::new();
        for (number, result) in results {
            let job = &jobs[number];
            let Forced { tested, run } = match result {
                Some(Ok(forced)) => forced,
                not_forced => {
                    if let Some(Err(Lost::Panicked(why))) = not_forced {
                        self.errors.push(why);
                    }
                    self.counts.untried += 1;
                    // A binary's races count by what comes of them only.
                    if job.violation != Violation::MachineRace {
                        self.open.push(Open { finding: job.members[0].clone(), base: job.base });
                    }
                    continue;
                }
            };
            let otherwise = tested.verdict.ended_otherwise();
            let about = otherwise.then(|| tested.clone());
            self.add(tested);
            let Some(run) = run else { continue };
            if let Some(tested) = about.filter(|tested| !self.is_known(tested)) {
                self.add_other_end(tested, &run);
            }
            self.orders.insert(canonical::order(&run.trace, all_events(&run.trace)));
            if matches!(run.end, RunEnd::Exit(_)) {
                runs.push(run);
            }
        }
        runs
    }

    /// Keeps what came of a prediction.
    pub fn add(&mut self, tested: Tested) {
        if tested.counts() {
            self.found(&tested);
        } else if tested.verdict.is_unclear {
            self.unclear(&tested.verdict.difference);
        }
        self.tested.push(tested);
    }

    /// Says what was not seen, unless a sentence with this begin was said before.
    pub fn say_once(&mut self, begin: &str, rest: &str) {
        if !self.unseen.iter().any(|said| said.starts_with(begin)) {
            self.unseen.push(format!("{begin}{rest}"));
        }
    }

    /// Says that a run wrote, or ended with, what may be lawful or not; the first of them stands for all.
    pub fn unclear(&mut self, difference: &Difference) {
        let lines = difference.output.as_deref().unwrap_or_default();
        let line = lines.lines().find_map(|line| line.strip_prefix('+'));
        let what = line.map_or_else(|| difference.sentence.clone(), |line| format!("`{line}`"));
        if !std::mem::replace(&mut self.said_unclear, true) {
            self.unseen.push(format!(
                "a forced run did what no run without preemption does ({what}), and whether that is wrong is not known: if it is, assert what must hold, \
                 or mark the block that must be atomic (foretell.h)"
            ));
        }
    }

    /// Keeps a bad end that nobody predicted, of a run that was to show something else.
    fn add_other_end(&mut self, mut tested: Tested, run: &Run) {
        self.bases.push(run.trace.clone());
        tested.base = self.bases.len() - 1;
        let verdict = &mut tested.verdict;
        verdict.outcome = Outcome::Confirmed(verdict.difference.effect);
        tested.violation = Violation::OtherPath;
        let id = format!("{:08x}-other", crc32fast::hash(verdict.difference.sentence.as_bytes()));
        tested.schedule.finding = Some(id.as_str().into());
        tested.schedule.violation = Some(Violation::OtherPath.name().into());
        let failed = run.failed().map(|event| access_info(&run.trace, event));
        tested.finding = Finding {
            group: id.clone(),
            id,
            accesses: failed.into_iter().collect(),
            detail: format!("in a run that was to show that {}", tested.finding.detail),
            pattern: None,
            schedule: None,
            ..tested.finding
        };
        self.shrink(&mut tested, &run.trace, run.clone());
        self.add(named_by_its_effect(tested, &run.trace));
    }

    /// Keeps in short that a bug was found, for the case that there will be no report.
    pub fn found(&self, tested: &Tested) {
        let Finding { kind, detail, .. } = &tested.finding;
        let found = Found { confirmed: true, kind: *kind, about: detail.clone() };
        self.options.predict.progress.found(found);
        self.options.so_far.found(tested, &self.bases[tested.base]);
    }

    /// Does a part of the work; a panic in it loses nothing else.
    pub fn without_panic<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match guarded(|| work(self)) {
            Ok(result) => Some(result),
            Err(lost) => {
                self.errors.extend(lost.panic());
                None
            }
        }
    }

    /// Forces a member of the group; when the program does not do it, the next one.
    fn force_one(&self, base: &Trace, job: &Job) -> Forced {
        let mut result: Option<Forced> = None;
        for finding in job.members.iter().take(TRIES) {
            let (mut tested, run) = self.force_finding(base, job, finding);
            tested.same_places = job.members.len() - 1;
            let happened = tested.verdict.effect().is_some();
            // One that could not be tried says more than one that is refuted.
            let open = |known: &Forced| known.tested.verdict.is_open();
            if happened || !result.as_ref().is_some_and(open) {
                result = Some(Forced { tested, run });
            }
            if happened || self.is_spent() {
                break;
            }
        }
        result.expect("a job has a member")
    }

    /// Finds the decisive turn of a run that went wrong; the schedule ends with it.
    pub fn shrink(&self, tested: &mut Tested, base: &Trace, bad: Run) {
        let wanted = tested.verdict.difference.clone();
        let wrong = |run: &Run| {
            let difference = compare(self.recorded, run);
            difference.effect == wanted.effect
                && match difference.effect {
                    // Who hangs where may differ.
                    Effect::Hang => true,
                    // Output that only differs from the recorded run's may be lawful.
                    Effect::Output => {
                        difference.change == wanted.change && self.controls.is_strong_evidence(run)
                    }
                    _ => difference.change == wanted.change,
                }
        };
        // The whole of a run that never ends is no help.
        if matches!(bad.end, RunEnd::Livelock(_)) {
            return;
        }
        let order = all_events(&bad.trace);
        let whole = Schedule::of_trace(&bad.trace, order, []);
        let (steps, trace) = (whole.steps.len(), bad.trace.clone());
        let limits = self.limits;
        // Without time to shrink it, the whole run is shown.
        let found = (!self.is_spent())
            .then(|| shrink(self.runner, bad, &self.options.after, limits, wrong))
            .flatten();
        let (trace, steps, switch) = match found {
            Some(Ok(Shrunk { steps, bad, switch })) => {
                // What is shown is what the schedule leads to.
                tested.verdict.difference = compare(self.recorded, &bad);
                (tested.ended, tested.end) = (bad.ended(), (&bad.end).into());
                tested.blocked = bad.blocked();
                tested.failure = fatal(&bad).map(|(_, change)| change);
                tested.end = (&bad.end).into();
                tested.stderr = String::from_utf8_lossy(&bad.written.stderr).into_owned();
                (bad.trace, steps, switch)
            }
            // What decided it is not seen: nobody could make it happen again.
            Some(Err(NotRepeated)) => {
                let why = "the run ended otherwise when its schedule was forced";
                tested.verdict.outcome = Outcome::NotForced(why.into());
                (trace, steps, None)
            }
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
        let run = forced_run(self.runner, &schedule, violation, &self.options.after, self.limits);
        match run {
            Ok(run) => (self.judged(finding, job.base, violation, schedule, &run), Some(run)),
            Err(error) => {
                let difference = compare(self.recorded, self.recorded);
                let outcome = Outcome::NotForced(error.to_string());
                let tested = Tested {
                    finding: finding.clone(),
                    base: job.base,
                    violation,
                    schedule,
                    verdict: Verdict::new(outcome, difference),
                    ended: error.to_string(),
                    end: EndKind::NotRun,
                    blocked: Vec::new(),
                    failure: None,
                    stderr: String::new(),
                    same_places: 0,
                    runs_before: self.runner.runs(),
                    past: None,
                };
                (tested, None)
            }
        }
    }

    /// What a run of the schedule says about the prediction.
    pub fn judged(
        &self,
        finding: &Finding,
        base: usize,
        violation: Violation,
        schedule: Schedule,
        run: &Run,
    ) -> Tested {
        let mut verdict = judge(&schedule, violation, self.recorded, run);
        let cause = match violation {
            _ if lost::is_lost_update(&self.bases[base], finding) => control::Cause::LostUpdate,
            Violation::InferredBlock | Violation::OtherPath => control::Cause::Unmarked,
            _ => control::Cause::Undefined,
        };
        self.controls.apply(&mut verdict, run, cause);
        let mut finding = finding.clone();
        if finding.kind == FindingKind::Deadlock
            && verdict.effect() == Some(Effect::Hang)
            && waits_for_ever(&run.trace)
        {
            finding.kind = FindingKind::Livelock;
        }
        Tested {
            finding,
            base,
            violation,
            schedule,
            verdict,
            ended: run.ended(),
            end: (&run.end).into(),
            blocked: run.blocked(),
            failure: fatal(run).map(|(_, change)| change),
            stderr: String::from_utf8_lossy(&run.written.stderr).into_owned(),
            same_places: 0,
            runs_before: run.before,
            past: None,
        }
    }

    /// Was a bad end like this found before?
    pub fn is_known(&self, tested: &Tested) -> bool {
        let difference = &tested.verdict.difference;
        self.tested.iter().any(|other| {
            other.counts()
                && other.verdict.difference.effect == difference.effect
                && other.verdict.difference.change == difference.change
        })
    }

    /// The recorded run itself may be a bad one.
    pub fn failed_already(&self) -> Option<Tested> {
        let (effect, change) = fatal(self.recorded)?;
        let sentence = change.sentence(self.recorded);
        let (kind, violation) = match effect {
            // Its exit status says so; no assertion is seen to fail.
            Effect::Assertion if self.recorded.failed().is_none() => {
                (FindingKind::Assertion, Violation::OtherPath)
            }
            Effect::Assertion => (FindingKind::Assertion, Violation::Assertion),
            Effect::Crash => (FindingKind::Crash, Violation::Fault),
            _ if waits_for_ever(&self.recorded.trace) => {
                (FindingKind::Livelock, Violation::Deadlock)
            }
            _ => (FindingKind::Deadlock, Violation::Deadlock),
        };
        let trace = &self.recorded.trace;
        // Of several programs in one folder each has a schedule file of its own.
        let files: BTreeSet<&str> = trace.sites.iter().map(|site| &*site.file).collect();
        let what: Vec<&str> = [&*sentence].into_iter().chain(files).collect();
        let id = format!("{:08x}-recorded", crc32fast::hash(what.join("\n").as_bytes()));
        let mut schedule = Schedule::of_trace(trace, all_events(trace), []);
        schedule.finding = Some(id.as_str().into());
        schedule.violation = Some(violation.name().into());
        schedule.input = Some(self.digest.to_string().into());
        let mut difference = compare(self.recorded, self.recorded);
        difference.effect = effect;
        difference.change = change;
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
            verdict: Verdict::new(Outcome::Confirmed(effect), difference),
            ended: self.recorded.ended(),
            end: (&self.recorded.end).into(),
            blocked: self.recorded.blocked(),
            failure: fatal(self.recorded).map(|(_, change)| change),
            stderr: String::from_utf8_lossy(&self.recorded.written.stderr).into_owned(),
            same_places: 0,
            runs_before: 0,
            past: None,
        })
    }
}

/// Does it end the program?
fn is_an_end(violation: Violation) -> bool {
    matches!(violation, Violation::Assertion | Violation::Fault | Violation::Deadlock)
}

/// Leaving the path is no bug by itself: the finding is what came of it.
pub(crate) fn named_by_its_effect(mut tested: Tested, run: &Trace) -> Tested {
    let difference = &tested.verdict.difference;
    tested.finding.kind = match difference.effect {
        Effect::Assertion => FindingKind::Assertion,
        Effect::Crash => FindingKind::Crash,
        Effect::Hang if waits_for_ever(run) => FindingKind::Livelock,
        Effect::Hang => FindingKind::Deadlock,
        Effect::Output | Effect::Path | Effect::None => FindingKind::Atomicity,
    };
    tested.finding.detail = format!("{}; {}", tested.finding.detail, difference.sentence);
    tested
}
