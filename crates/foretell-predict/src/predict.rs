//! From a trace to findings: candidates by cheap filters, then the exact question for each.

use std::collections::HashSet;
use std::time::Instant;

use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::Locksets;
use foretell_model::must_order::{CyclicOrder, MustOrder};
use foretell_model::validate::Witness;
use foretell_solve::SolveError;
use foretell_trace::{EventId, Op, Trace};

use crate::access::Accesses;
use crate::asking::{Answered, Asker, Way, in_windows};
use crate::candidates::{self, Candidate, Candidates, Limits};
use crate::causal::{self, NotReplayable};
use crate::engine::Verdict;
use crate::finding::{
    Finding, Prediction, PropertySummary, Statistics, Status, WitnessSchedule, access_info, detail,
    fingerprints,
};
use crate::flag_section::add_flag_sections;
use crate::goal::Goal;
use crate::options::{Model, Options};
use crate::pattern::AccessPattern;
use crate::progress::Phase;
use crate::question::{FindingKind, Instance, Question, Shape, Subject};
use crate::witness::context_switches;
use crate::{assertion, crash, deadlock, misuse, order, race};

/// Why a trace cannot be predicted from.
#[derive(Debug)]
pub enum PredictError {
    /// Its fixed orders contradict each other.
    Order(CyclicOrder),
    /// It has no CTP.
    Build(BuildError),
    /// The causal model needs values that are not there.
    Causal(NotReplayable),
    /// The solver cannot be used.
    Solver(SolveError),
}

impl std::fmt::Display for PredictError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PredictError::Order(error) => error.fmt(f),
            PredictError::Build(error) => error.fmt(f),
            PredictError::Causal(error) => error.fmt(f),
            PredictError::Solver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PredictError {}

impl From<CyclicOrder> for PredictError {
    fn from(error: CyclicOrder) -> Self {
        PredictError::Order(error)
    }
}

impl From<BuildError> for PredictError {
    fn from(error: BuildError) -> Self {
        PredictError::Build(error)
    }
}

impl From<NotReplayable> for PredictError {
    fn from(error: NotReplayable) -> Self {
        PredictError::Causal(error)
    }
}

impl From<SolveError> for PredictError {
    fn from(error: SolveError) -> Self {
        PredictError::Solver(error)
    }
}

/// What can go wrong in another interleaving of the trace's events?
pub fn predict(trace: &Trace, options: &Options) -> Result<Prediction, PredictError> {
    let started = Instant::now();
    let order = MustOrder::new(trace)?;
    let locks = Locksets::new(trace);
    let mut prediction = first_words(trace);
    options.progress.begin(Phase::Candidates, 0);
    let mut questions = collect(trace, &order, &locks, options, &mut prediction);
    prediction.statistics.candidate_time = started.elapsed();
    retain_part(&mut questions, options);
    options.progress.begin(Phase::Solving, questions.len());
    let solving = Instant::now();
    let chains = trace.events_by_thread();
    let whole = !in_windows(trace, options) && options.partition.is_none();
    let mut recorder = Recorder { trace, options, prediction, whole };
    if !questions.is_empty() {
        let prepare = |ctp| constrained(ctp, options.model);
        let mut asker = Asker::new(trace, &chains, &order, options, &prepare)?;
        for group in groups(&questions) {
            let ways: Vec<&[Instance]> =
                group.iter().map(|question| question.instances.as_slice()).collect();
            asker.ask(&ways, &mut |number, answer| {
                recorder.record(group[number], answer);
                options.progress.advance();
            })?;
        }
        recorder.prediction.statistics.solver = asker.cost;
        recorder.prediction.statistics.events_after_slicing = asker.longest;
    }
    recorder.summarise_empty();
    let mut prediction = recorder.prediction;
    prediction.statistics.solve_time = solving.elapsed();
    count_violations(&mut prediction);
    Ok(prediction)
}

/// Leaves the questions of this process, where several share them.
pub(crate) fn retain_part<Q>(questions: &mut Vec<Q>, options: &Options) {
    let Some((part, of)) = options.partition else { return };
    let mut number = 0;
    questions.retain(|_| {
        number += 1;
        (number - 1) % of.max(1) == part
    });
}

/// Threads that were created and did nothing before the run ended: what they would have done, no
/// interleaving of these events tells. One that was joined has ended, and had nothing to do.
fn never_ran(trace: &Trace) -> Option<String> {
    let mut waiting = vec![false; trace.threads.len()];
    for event in &trace.events {
        if let Op::Fork(thread) = event.op {
            waiting[thread.index()] = true;
        }
    }
    for event in &trace.events {
        waiting[event.thread.index()] = false;
        if let Op::Join(thread) = event.op {
            waiting[thread.index()] = false;
        }
    }
    match waiting.into_iter().filter(|&waits| waits).count() {
        0 => None,
        1 => Some("a thread was created and never ran before the run ended".into()),
        count => Some(format!("{count} threads were created and never ran before the run ended")),
    }
}

/// What is known before anything is asked.
pub(crate) fn first_words(trace: &Trace) -> Prediction {
    let mut prediction = Prediction::default();
    prediction.unseen.extend(trace.metadata.gaps.iter().map(|gap| gap.to_string()));
    prediction.unseen.extend(never_ran(trace));
    prediction.statistics = Statistics {
        threads: trace.threads.len(),
        events: trace.events.len(),
        shared_variables: shared_variables(trace),
        ..Statistics::default()
    };
    prediction
}

/// The entry for a kind, made when it is first asked for.
pub(crate) fn summary(prediction: &mut Prediction, kind: FindingKind) -> &mut PropertySummary {
    let properties = &mut prediction.properties;
    let place = properties.iter().position(|summary| summary.kind == kind);
    let place = place.unwrap_or_else(|| {
        properties.push(PropertySummary {
            kind,
            questions: 0,
            predicted: 0,
            impossible: 0,
            unknown: 0,
            holds_in_all_interleavings: true,
        });
        properties.len() - 1
    });
    &mut properties[place]
}

/// Fills in the column of the atomicity violations.
pub(crate) fn count_violations(prediction: &mut Prediction) {
    let violations = prediction.findings.iter().filter(|finding| {
        finding.kind == FindingKind::Atomicity && finding.status == Status::Predicted
    });
    prediction.statistics.atomicity_violations = violations.count();
}

/// The CTP as the model wants it.
pub(crate) fn constrained(
    ctp: ConcurrentTraceProgram,
    model: Model,
) -> Result<ConcurrentTraceProgram, PredictError> {
    let mut ctp = match model {
        Model::Symbolic => ctp,
        Model::Causal => causal::constrain(&ctp)?,
    };
    add_flag_sections(&mut ctp);
    Ok(ctp)
}

/// The questions that the cheap filters leave.
pub(crate) fn collect(
    trace: &Trace,
    order: &MustOrder,
    locks: &Locksets,
    options: &Options,
    prediction: &mut Prediction,
) -> Vec<Question> {
    let limit = options.instances.max(1);
    let mut questions = Vec::new();
    let mut kinds = options.properties.clone();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let before = questions.len();
        match kind {
            FindingKind::Atomicity => {
                let limits = Limits { instances: limit, ..Limits::default() };
                let found = candidates::candidates(trace, order, locks, options.regions, limits);
                questions.extend(pattern_questions(trace, found, options, prediction));
            }
            FindingKind::Assertion => questions.extend(assertion::questions(trace, limit)),
            FindingKind::Crash => questions.extend(crash::questions(trace, order, limit)),
            FindingKind::Deadlock => {
                let cycles = deadlock::lock_cycles(trace, order, locks, limit);
                if cycles.incomplete {
                    prediction.unseen.push("not all cycles of locks were looked at".into());
                }
                questions.extend(cycles.questions);
                match trace.metadata.gaps.is_empty() {
                    true => questions.extend(deadlock::stuck_questions(trace)),
                    false => prediction.unseen.push(
                        "waits for ever (conditions, semaphores, barriers) are not looked for because the trace has gaps"
                            .into(),
                    ),
                }
            }
            FindingKind::Race => questions.extend(race::questions(trace, order, locks, limit)),
            FindingKind::Order => questions.extend(order::questions(trace, order, limit)),
            FindingKind::Misuse => questions.extend(misuse::questions(trace, order, limit)),
        }
        let unexamined: u64 =
            questions[before..].iter().map(|question: &Question| question.unexamined).sum();
        if unexamined > 0 {
            prediction.unseen.push(format!(
                "{kind}: {unexamined} further instances of the same code locations were not examined"
            ));
        }
    }
    questions
}

/// The questions about candidates that the user's filters leave, and the columns of the table.
pub(crate) fn pattern_questions(
    trace: &Trace,
    mut found: Candidates,
    options: &Options,
    prediction: &mut Prediction,
) -> Vec<Question> {
    let statistics = &mut prediction.statistics;
    statistics.regions = found.regions;
    statistics.original_patterns = found.original;
    statistics.after_must_order = found.after_must_order;
    statistics.after_locksets = found.after_locksets;
    statistics.filtered = options.filters.apply(trace, &mut found.candidates);
    if statistics.filtered.total() > 0 {
        summary(prediction, FindingKind::Atomicity).holds_in_all_interleavings = false;
    }
    let instance = |pattern: &AccessPattern| Instance {
        shape: Shape::Pattern(pattern.kind),
        events: vec![pattern.first, pattern.remote, pattern.second],
    };
    let question = |candidate: Candidate| Question {
        kind: FindingKind::Atomicity,
        unexamined: candidate.unexamined,
        instances: candidate.instances.iter().map(instance).collect(),
    };
    found.candidates.into_iter().map(question).collect()
}

/// Variables that more than one thread accesses.
fn shared_variables(trace: &Trace) -> usize {
    let mut accesses = Accesses::new(trace);
    let mut first = std::collections::HashMap::new();
    let mut shared = HashSet::new();
    let mut here = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        accesses.of(EventId::from(position), &mut here);
        for access in &here {
            if *first.entry(access.variable).or_insert(event.thread) != event.thread {
                shared.insert(access.variable);
            }
        }
    }
    shared.len()
}

/// Which questions share an encoding: those about the state at the end have one of their own.
fn groups(questions: &[Question]) -> Vec<Vec<&Question>> {
    let mut groups: Vec<Vec<&Question>> = Vec::new();
    let key = |question: &Question| {
        (question.kind, question.instances.first().map(|instance| instance.shape == Shape::Stuck))
    };
    for question in questions {
        match groups.last_mut().filter(|group| key(group[0]) == key(question)) {
            Some(group) => group.push(question),
            None => groups.push(vec![question]),
        }
    }
    groups
}

impl Way for Instance {
    fn goal(&self, subject: &Subject<'_>) -> Option<Goal> {
        subject.goal(self)
    }

    fn window(&self) -> &[EventId] {
        match self.shape {
            // From the first place where somebody is stuck on.
            Shape::Stuck => &self.events[..self.events.len().min(1)],
            _ => &self.events,
        }
    }
}

/// Turns verdicts into findings.
struct Recorder<'a> {
    trace: &'a Trace,
    options: &'a Options,
    prediction: Prediction,
    /// The answers are about the whole trace, and all questions are asked.
    whole: bool,
}

impl Recorder<'_> {
    /// Kinds that nothing was asked about hold trivially.
    fn summarise_empty(&mut self) {
        for &kind in &self.options.properties {
            summary(&mut self.prediction, kind);
        }
        self.prediction.properties.sort_by_key(|summary| summary.kind);
    }

    fn record(&mut self, question: &Question, answer: Answered<'_>) {
        let whole = self.whole;
        let summary = summary(&mut self.prediction, question.kind);
        summary.questions += 1;
        let (status, instance, schedule) = match answer.verdict {
            Verdict::Possible(number, witness) => {
                summary.predicted += 1;
                summary.holds_in_all_interleavings = false;
                let instance = &question.instances[answer.ways[number]];
                let schedule = solver_schedule(answer.ctp, instance, &witness, answer.recorded);
                (Status::Predicted, instance, Some(schedule))
            }
            Verdict::Impossible { in_all_interleavings } => {
                summary.impossible += 1;
                summary.holds_in_all_interleavings &=
                    in_all_interleavings && whole && question.unexamined == 0;
                return;
            }
            Verdict::Unknown(reason) => {
                summary.unknown += 1;
                summary.holds_in_all_interleavings = false;
                (Status::Unknown(reason), &question.instances[0], None)
            }
            Verdict::Refused(why) => {
                summary.holds_in_all_interleavings = false;
                let about = detail(self.trace, &question.instances[0]);
                self.prediction.internal_errors.push(format!("{about}: {why}"));
                return;
            }
        };
        let shown = instance_as_shown(instance, schedule.as_ref());
        let (id, group) = fingerprints(self.trace, question.kind, &shown);
        self.prediction.findings.push(Finding {
            id,
            group,
            kind: question.kind,
            pattern: match instance.shape {
                Shape::Pattern(kind) => Some(kind),
                _ => None,
            },
            status,
            accesses: shown.events.iter().map(|&event| access_info(self.trace, event)).collect(),
            detail: detail(self.trace, &shown),
            schedule,
        });
    }
}

/// Of somebody who is stuck: only the place where that is.
fn instance_as_shown(instance: &Instance, schedule: Option<&WitnessSchedule>) -> Instance {
    let mut shown = instance.clone();
    if shown.shape == Shape::Stuck {
        match schedule {
            Some(schedule) => shown.events.retain(|event| schedule.next.contains(event)),
            None => shown.events.truncate(1),
        }
    }
    shown
}

/// The witness as events of the trace.
pub(crate) fn solver_schedule(
    ctp: &ConcurrentTraceProgram,
    instance: &Instance,
    witness: &Witness,
    recorded: usize,
) -> WitnessSchedule {
    let origin = |&event: &EventId| ctp.event(event).origin;
    let taken: HashSet<EventId> = witness.order.iter().map(origin).collect();
    let mut done = vec![0; ctp.threads.len()];
    for &event in &witness.order {
        done[ctp.event(event).thread.index()] += 1;
    }
    let standing = |event: &EventId| {
        !taken.contains(event)
            && ctp.event_of(*event).is_some_and(|event| {
                let event = ctp.event(event);
                done[event.thread.index()] == event.position as usize
            })
    };
    WitnessSchedule {
        recorded,
        order: witness.order.iter().map(origin).collect(),
        next: instance.events.iter().copied().filter(standing).collect(),
        context_switches: context_switches(ctp, &witness.order),
    }
}
