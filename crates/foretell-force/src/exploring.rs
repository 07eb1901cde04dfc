//! The exploration of a program under the scheduler: its probes are forced, what ends badly is a
//! finding, and every class of paths that is found is predicted from.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use foretell_explore::{Doubt, Executed, Exploration, Limits, Probe, Program};
use foretell_predict::access::Accesses;
use foretell_predict::finding::{access_info, at_place};
use foretell_predict::progress::Explored;
use foretell_predict::{Finding, FindingKind, Prediction, Status};
use foretell_record::{Cause, Policy, RunEnd};
use foretell_trace::schedule::Schedule;
use foretell_trace::{EventId, ObjectId, ObjectKind, Op, SyncOp, Term, Trace};

use crate::beside::{Beside, Class};
use crate::campaign::{Campaign, named_by_its_effect};
use crate::canonical;
use crate::forced::Violation;
use crate::predictor::Predictor;
use crate::run::{Run, RunError};
use crate::session::{Paths, TestError, all_events};

/// Explores from the recorded run. `others` are runs that were made before: their classes are known at
/// once.
pub(crate) fn explore(
    campaign: &mut Campaign<'_>,
    recorded: &Run,
    others: Vec<Run>,
) -> Exploration {
    if campaign.is_outside() {
        // The order that the library makes is not seen, and would be contradicted.
        return Exploration { classes: 1, ..Exploration::default() };
    }
    let has_terms = recorded.trace.metadata.symbolic;
    if !has_terms && campaign.options.paths == Paths::Recorded {
        return Exploration {
            classes: 1,
            open: [(Doubt::NoTerms, 1)].into(),
            ..Exploration::default()
        };
    }
    let limits = Limits {
        budget: campaign.options.predict.budget,
        deadline: campaign.started.checked_add(campaign.options.time),
        part: campaign.options.part,
        ..Limits::default()
    };
    // Predictions that were forced may have left the recorded path.
    let others = others.into_iter().filter(|_| campaign.options.paths == Paths::All);
    let others = others.map(|run| executed(run, 0)).collect();
    let first = executed(recorded.clone(), 0);
    let (jobs, predictor) = (campaign.options.jobs, campaign.predictor());
    std::thread::scope(|scope| {
        let beside = Beside::new(scope, jobs, predictor);
        let mut exploring = Exploring { campaign, others, predictor, beside };
        match has_terms {
            true => {
                let mut exploration = foretell_explore::explore(first, &mut exploring, &limits);
                if recorded.trace.metadata.machine_code {
                    *exploration.open.entry(Doubt::MachineCode).or_default() += 1;
                }
                exploration
            }
            false => exploring.stray(&recorded.trace),
        }
    })
}

/// Of runs that a limit ended, the first is said.
const NO_END: &str = "a forced run did not end within its limits (--run-limit)";
/// So it is of those that end with another status, in a way that may be lawful.
const OTHER_STATUS: &str = "a forced run ended with exit status";

/// Events of a turn in a random walk, on average.
const WALK: u32 = 3;

pub(crate) struct Exploring<'c, 'a> {
    pub(crate) campaign: &'c mut Campaign<'a>,
    others: Vec<Executed>,
    predictor: Predictor<'a>,
    beside: Beside,
}

impl Program for Exploring<'_, '_> {
    fn at_once(&self) -> usize {
        self.campaign.options.jobs.max(1)
    }

    fn goes_on(&self) -> bool {
        !self.campaign.is_spent()
    }

    fn execute(&mut self, class: &Trace, probes: Vec<Probe>) -> Vec<Result<Executed, Doubt>> {
        if self.campaign.options.paths == Paths::Recorded {
            return probes.iter().map(|_| Err(Doubt::Declined)).collect();
        }
        let campaign = &*self.campaign;
        let run = |probe: &Probe| {
            // What a thread does next that has just decided otherwise is most unlike what is known.
            let after = match campaign.options.after {
                Policy::RoundRobin { quantum } => Policy::GoesOn { quantum },
                ref after => after.clone(),
            };
            campaign.runner.run(probe.steps.clone(), after, campaign.limits)
        };
        let runs: Vec<Result<Run, RunError>> = std::thread::scope(|scope| {
            let begin = |probe| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, move || run(probe));
                (probe, thread)
            };
            let begun: Vec<_> = probes.iter().map(begin).collect();
            let join = |(probe, thread): (_, std::io::Result<ScopedJoinHandle<'_, _>>)| {
                // Where no thread can be started, one run comes after the other.
                let Ok(thread) = thread else { return run(probe) };
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            begun.into_iter().map(join).collect()
        });
        let mut results = Vec::new();
        for (probe, run) in probes.into_iter().zip(runs) {
            results.push(match run {
                Ok(run) => self.learn(class, &probe, run),
                Err(error) => Err(self.not_run(&error)),
            });
        }
        results
    }

    fn found(&mut self, number: usize, class: &Trace, ended: bool) -> Vec<Executed> {
        if number == 0 {
            return std::mem::take(&mut self.others);
        }
        let mut trace = class.clone();
        if !ended {
            // What would have followed is asked for by the exploration. That threads wait for ever before it is looked for.
            trace.metadata.gaps.clear();
            trace.metadata.cut = true;
        }
        let class = Class { number, trace: Arc::new(trace), ended };
        match self.beside.take(class, self.campaign.settled()) {
            Ok(()) => self.predicted(false),
            Err(class) => {
                let settled = self.campaign.settled();
                let prediction = self.predictor.predict_class(&class.trace, settled);
                self.force(&class, prediction)
            }
        }
    }

    fn found_late(&mut self) -> Vec<Executed> {
        self.predicted(true)
    }

    fn walk(&mut self, number: u64) -> Option<Result<Executed, Doubt>> {
        let campaign = &*self.campaign;
        if campaign.options.paths == Paths::Recorded {
            return None;
        }
        // Switches everywhere, and few switches anywhere, by turns.
        let seed = number / 2 + 1;
        let recorded = &campaign.recorded.trace;
        let policy = match number % 2 {
            0 => Policy::Priorities { seed, events: recorded.events.len() as u32 },
            _ => Policy::Random { seed, mean: WALK },
        };
        let run = campaign.runner.run(Vec::new(), policy, campaign.limits);
        let run = match run {
            Ok(run) => run,
            Err(error) => return Some(Err(self.not_run(&error))),
        };
        let recorded = self.campaign.recorded.trace.clone();
        // A walk is the schedule of its own run.
        let steps = Schedule::of_trace(&run.trace, all_events(&run.trace), []).steps;
        let probe = Probe { class: 0, prefix: Vec::new(), choice: None, steps };
        Some(self.learn(&recorded, &probe, run))
    }

    fn progress(&mut self, classes: usize, open: usize) {
        let runs = self.campaign.runner.runs();
        self.campaign.options.predict.progress.explored(Explored { classes, open, runs });
    }
}

impl Exploring<'_, '_> {
    /// Runs of what was predicted meanwhile; `last`: of all that is still being predicted.
    fn predicted(&mut self, last: bool) -> Vec<Executed> {
        let mut runs = Vec::new();
        while let Some((class, prediction)) = self.beside.next(last) {
            runs.extend(self.force(&class, prediction));
        }
        runs
    }

    /// Forces what was predicted from a class and is new.
    fn force(&mut self, class: &Class, prediction: Result<Prediction, TestError>) -> Vec<Executed> {
        let campaign = &mut *self.campaign;
        let runs = match prediction {
            Ok(prediction) => {
                // What would have followed a bad end is asked for by the exploration.
                let unseen = prediction.unseen.iter().filter(|_| class.ended);
                campaign.unseen.extend(unseen.cloned());
                let jobs = campaign.jobs(class.number, &class.trace, &prediction);
                campaign.force(jobs)
            }
            Err(error) => {
                campaign.lost(error);
                Vec::new()
            }
        };
        runs.into_iter().map(|run| executed(run, 0)).collect()
    }

    /// A run that could not be made, unless there was no time left for it: says so.
    fn not_run(&mut self, error: &RunError) -> Doubt {
        if self.campaign.is_spent() {
            return Doubt::Limit;
        }
        self.campaign.unseen.push(error.to_string());
        Doubt::NoRun
    }

    /// Judges a run, which is a finding if it ended badly.
    fn learn(&mut self, class: &Trace, probe: &Probe, run: Run) -> Result<Executed, Doubt> {
        let campaign = &mut *self.campaign;
        campaign.orders.insert(canonical::order(&run.trace, all_events(&run.trace)));
        let finding = finding(class, probe);
        let schedule = Schedule {
            steps: probe.steps.clone(),
            finding: Some(finding.id.as_str().into()),
            violation: Some(Violation::OtherPath.name().into()),
            input: Some(campaign.digest.to_string().into()),
            ..Schedule::of_trace(class, [], [])
        };
        let mut tested = campaign.judged(&finding, 0, Violation::OtherPath, schedule, &run);
        let tries = tries(&run.trace);
        let is_bad = || {
            tested.verdict.difference.effect.is_fatal()
                || campaign.controls.is_strong_evidence(&run)
        };
        let is_finding = tested.counts() && is_bad();
        if is_finding && !campaign.is_known(&tested) {
            if tries && !tested.verdict.difference.effect.is_fatal() {
                // To go on without what it tried for may be lawful. What it prints then is its own affair; that
                // it fails is said.
                if !matches!(run.end, RunEnd::Exit(0)) {
                    campaign.unclear(&tested.verdict.difference);
                }
            } else {
                tested.base = campaign.base(probe.class, class);
                campaign.shrink(&mut tested, class, run.clone());
                campaign.add(named_by_its_effect(tested, &run.trace));
            }
        } else if tested.verdict.is_unclear && !tries && is_bad() {
            campaign.unclear(&tested.verdict.difference);
        }
        if matches!(run.end, RunEnd::Hang) {
            campaign.say_once(NO_END, &run.stood_at());
        }
        if let RunEnd::Exit(status @ 1..) = run.end
            && matches!(campaign.recorded.end, RunEnd::Exit(0))
            && !is_finding
        {
            let rest = format!(
                " {status}, as a run without preemption does, too: if that is a failure, say so (--is-test)"
            );
            campaign.say_once(OTHER_STATUS, &rest);
        }
        match run.end {
            RunEnd::Hang | RunEnd::Stopped => Err(Doubt::NoEnd),
            RunEnd::Refused(_) if campaign.is_spent() => Err(Doubt::Limit),
            RunEnd::Refused(_) => Err(Doubt::NoRun),
            RunEnd::Livelock(_) => Err(Doubt::LongRun),
            _ => Ok(executed(run, probe.steps.len())),
        }
    }
}

/// Does a thread try for something that it may go on without?
fn tries(run: &Trace) -> bool {
    run.events.iter().any(|event| match event.op {
        Op::Sync(_, SyncOp::AcquireFailed(_)) => true,
        Op::Sync(semaphore, SyncOp::SemaphoreWaitFailed) => !is_claim(run, semaphore),
        Op::Sync(_, SyncOp::Acquire(step)) => step.by_try,
        Op::Sync(semaphore, SyncOp::SemaphoreWait { by_try }) => {
            by_try && !is_claim(run, semaphore)
        }
        Op::Sync(_, SyncOp::WaitEnd { timed, .. }) => timed,
        _ => false,
    })
}

/// Does the semaphore only say who came first (`pthread_once`)? Whoever comes later does not go on
/// without what the first has done.
fn is_claim(trace: &Trace, semaphore: ObjectId) -> bool {
    let posts =
        |event: &foretell_trace::Event| event.op == Op::Sync(semaphore, SyncOp::SemaphorePost);
    trace.objects[semaphore.index()].kind == ObjectKind::Semaphore { initial: 1 }
        && !trace.events.iter().any(posts)
}

/// The run as the exploration sees it.
fn executed(run: Run, forced: usize) -> Executed {
    Executed {
        followed: run.steps_taken >= forced && !matches!(run.end, RunEnd::LeftSchedule(_)),
        ended: matches!(run.end, RunEnd::Exit(_)),
        // `abort` is no access.
        fault: run
            .crash
            .as_ref()
            .filter(|crash| crash.signal != libc::SIGABRT)
            .map(|crash| crash.address),
        cuts: run.cuts,
        held: run.outside.iter().filter(|one| one.cause == Cause::HeldOutcome).count(),
        trace: run.trace,
    }
}

/// What a probe is about: what a thread saw, who wrote it, and what it decides by it.
fn finding(class: &Trace, probe: &Probe) -> Finding {
    let look = probe.choice.and_then(|choice| look(class, choice)).or(probe.choice);
    let source = look.and_then(|look| seen_write(class, &probe.prefix, look));
    let stopped = || stopped_at(class, probe);
    let detail = match (look, probe.choice) {
        (Some(look), Some(choice)) => decided(class, look, source, choice),
        _ => match stopped() {
            Some(event) => format!(
                "{}, which was stopped in another run{}, goes on",
                class.threads[class.event(event).thread.index()].name,
                at_place(class, event).replacen(" at ", " after ", 1)
            ),
            None => "the threads take turns in another order".to_owned(),
        },
    };
    let look = look.or_else(stopped);
    let id = format!(
        "{:08x}-{}-{}",
        crc32fast::hash(detail.as_bytes()),
        probe.class,
        probe.prefix.len()
    );
    Finding {
        group: id.clone(),
        id,
        kind: FindingKind::Order,
        pattern: None,
        status: Status::Predicted,
        accesses: look.into_iter().chain(source).map(|event| access_info(class, event)).collect(),
        detail,
        schedule: None,
    }
}

/// The last event with a place in the source of the thread that is to go on, by which the finding is known;
/// none in a random walk.
fn stopped_at(class: &Trace, probe: &Probe) -> Option<EventId> {
    let step = probe.steps.last().filter(|_| !probe.prefix.is_empty());
    let path = &step?.thread.0;
    let thread = class.threads.iter().position(|thread| thread.path == *path)?;
    let is_it = |event: &foretell_trace::Event| {
        let site = event.site.map(|site| &class.sites[site.index()]);
        event.thread.index() == thread && site.is_some_and(|site| site.line > 0)
    };
    class.events.iter().rposition(is_it).map(EventId::from)
}

/// The last read that a choice depends on.
fn look(class: &Trace, choice: EventId) -> Option<EventId> {
    let event = class.event(choice);
    let term = match &event.op {
        Op::Branch(condition) | Op::Assert(condition) => condition.term,
        Op::Read(access) | Op::Write(access) => access.address,
        Op::ReadModifyWrite(step) => step.address,
        _ => None,
    }?;
    let leaves = class.terms.leaves(term);
    let reads = leaves.into_iter().filter_map(|leaf| match *class.terms.term(leaf) {
        Term::ReadValue(thread, index) => Some((thread, index)),
        _ => None,
    });
    let (thread, index) = reads.max_by_key(|&(_, index)| index)?;
    let is_it = |event: &foretell_trace::Event| event.thread == thread && event.index == index;
    class.events.iter().position(is_it).map(EventId::from)
}

/// The last write before the read, in the order of the prefix, of what it reads.
fn seen_write(class: &Trace, prefix: &[EventId], read: EventId) -> Option<EventId> {
    let mut accesses = Accesses::new(class);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    accesses.of(read, &mut here);
    let until = prefix.iter().position(|&event| event == read).unwrap_or(prefix.len());
    prefix[..until].iter().rev().copied().find(|&event| {
        accesses.of(event, &mut there);
        there.iter().any(|write| write.writes && here.iter().any(|read| read.cell == write.cell))
    })
}

/// ``client#1 reads `done` at a.c:7 after server#1 wrote it at a.c:12, and takes the other way at a.c:8``.
fn decided(class: &Trace, look: EventId, source: Option<EventId>, choice: EventId) -> String {
    let place = |event: EventId| at_place(class, event);
    let who = |event: EventId| &class.threads[class.event(event).thread.index()].name;
    let what = |event: EventId| {
        let info = access_info(class, event);
        info.variable.map(|name| format!(" `{name}`")).unwrap_or_default()
    };
    let mut text = match class.event(look).op {
        Op::Read(_) | Op::ReadModifyWrite(_) => {
            format!("{} reads{}{}", who(look), what(look), place(look))
        }
        _ => format!("{} comes to its step{}", who(look), place(look)),
    };
    if let Some(write) = source.filter(|&write| who(write) != who(look)) {
        text += &format!(" after {} wrote it{}", who(write), place(write));
    }
    match (look == choice, &class.event(choice).op) {
        (true, _) => text + ", which comes out differently",
        (false, Op::Branch(_)) => text + &format!(" and takes the other way{}", place(choice)),
        (false, _) => text + &format!(" and goes to another place in memory{}", place(choice)),
    }
}
