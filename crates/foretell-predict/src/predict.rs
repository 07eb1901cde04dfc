//! From a trace to findings: candidates by cheap filters, then the exact question for each.

use std::collections::HashSet;
use std::time::Instant;

use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::Locksets;
use foretell_model::must_order::{CyclicOrder, MustOrder};
use foretell_model::validate::Witness;
use foretell_solve::encode::Mode;
use foretell_solve::{SolveError, Statistics as SolverStatistics};
use foretell_trace::{EventId, Trace};

use crate::access::Accesses;
use crate::candidates::{self, Limits};
use crate::causal::{self, NotReplayable};
use crate::engine::{Engine, Setting, Verdict};
use crate::finding::{
    Finding, Prediction, PropertySummary, Statistics, Status, WitnessSchedule, access_info, detail,
    fingerprints,
};
use crate::flag_section::add_flag_sections;
use crate::goal::Goal;
use crate::options::{Model, Options};
use crate::question::{FindingKind, Instance, Question, Shape, Subject};
use crate::window::{Checkpoints, around};
use crate::witness::context_switches;
use crate::{assertion, crash, deadlock, order, race};

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
    let mut questions = collect(trace, &order, &locks, options, &mut prediction);
    prediction.statistics.candidate_time = started.elapsed();
    if let Some((part, of)) = options.partition {
        let mut number = 0;
        questions.retain(|_| {
            number += 1;
            (number - 1) % of.max(1) == part
        });
    }
    let solving = Instant::now();
    let chains = trace.events_by_thread();
    let whole = trace.events.len() <= options.window.whole
        || options.mode == Mode::Whole
        || !trace.metadata.observed_order;
    let mut asker = Asker { trace, chains: &chains, order: &order, options, prediction, whole };
    match whole {
        true => asker.ask_in_whole_trace(&questions)?,
        false => asker.ask_in_windows(&questions)?,
    }
    let mut prediction = asker.prediction;
    prediction.statistics.solve_time = solving.elapsed();
    count_violations(&mut prediction);
    Ok(prediction)
}

/// What is known before anything is asked.
pub(crate) fn first_words(trace: &Trace) -> Prediction {
    let mut prediction = Prediction::default();
    prediction.unseen.extend(trace.metadata.gaps.iter().map(|gap| gap.to_string()));
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
                let statistics = &mut prediction.statistics;
                statistics.regions = found.regions;
                statistics.original_patterns = found.original;
                statistics.after_must_order = found.after_must_order;
                statistics.after_locksets = found.after_locksets;
                questions.extend(found.candidates.into_iter().map(|candidate| {
                    Question {
                        kind,
                        unexamined: candidate.unexamined,
                        instances: candidate
                            .instances
                            .iter()
                            .map(|pattern| Instance {
                                shape: Shape::Pattern(pattern.kind),
                                events: vec![pattern.first, pattern.remote, pattern.second],
                            })
                            .collect(),
                    }
                }));
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

struct Asker<'a> {
    trace: &'a Trace,
    chains: &'a [Vec<EventId>],
    order: &'a MustOrder,
    options: &'a Options,
    prediction: Prediction,
    whole: bool,
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

impl Asker<'_> {
    fn setting(&self) -> Setting<'_> {
        Setting {
            mode: self.options.mode,
            backend: &self.options.backend,
            budget: self.options.budget,
            context_switches: self.options.context_switches,
            dump: self.options.dump_smt2.as_deref().map(|directory| (directory, self.trace)),
        }
    }

    fn model(&self, ctp: ConcurrentTraceProgram) -> Result<ConcurrentTraceProgram, PredictError> {
        constrained(ctp, self.options.model)
    }

    fn ask_in_whole_trace(&mut self, questions: &[Question]) -> Result<(), PredictError> {
        if questions.is_empty() {
            self.summarise_empty();
            return Ok(());
        }
        let ctp = self.model(ConcurrentTraceProgram::build(self.trace)?)?;
        let subject = Subject::new(self.trace, self.chains, &ctp);
        for group in groups(questions) {
            let goals: Vec<Vec<(usize, Goal)>> =
                group.iter().map(|question| goals(&subject, question)).collect();
            let all = goals.iter().flatten().map(|(_, goal)| goal);
            let mut engine = Engine::new(&ctp, self.order, all, &self.setting())?;
            self.note_length(engine.events());
            for (question, goals) in group.iter().zip(&goals) {
                let verdict = match goals.is_empty() {
                    true => Verdict::Impossible { in_all_interleavings: true },
                    false => {
                        let asked: Vec<&Goal> = goals.iter().map(|(_, goal)| goal).collect();
                        engine.ask(&asked)
                    }
                };
                let numbers: Vec<usize> = goals.iter().map(|&(number, _)| number).collect();
                self.record(&ctp, question, &numbers, verdict, 0);
            }
            self.note_cost(engine.statistics());
        }
        self.summarise_empty();
        Ok(())
    }

    fn ask_in_windows(&mut self, questions: &[Question]) -> Result<(), PredictError> {
        let mut checkpoints = Checkpoints::new(self.trace)?;
        for question in questions {
            self.ask_in_growing_window(&mut checkpoints, question)?;
        }
        self.summarise_empty();
        Ok(())
    }

    /// Tries the nearest instances in small windows first; windows grow as long as they have to.
    fn ask_in_growing_window(
        &mut self,
        checkpoints: &mut Checkpoints<'_>,
        question: &Question,
    ) -> Result<(), PredictError> {
        let limits = self.options.window;
        let mut radius = limits.first.max(1);
        let mut reason = String::new();
        loop {
            let mut fits = false;
            for (number, instance) in question.instances.iter().enumerate().take(limits.instances) {
                let about = instance.events.iter().take(window_events(instance));
                let about: Vec<EventId> = about.copied().collect();
                let Some((from, to)) = around(self.trace, &about, radius) else { continue };
                if to.index() - from.index() >= limits.most {
                    continue;
                }
                fits = true;
                let ctp = self.model(checkpoints.window(from, to)?)?;
                let subject = Subject::new(self.trace, self.chains, &ctp);
                let Some(goal) = subject.goal(instance) else { continue };
                let mut engine =
                    Engine::new(&ctp, self.order, std::iter::once(&goal), &self.setting())?;
                self.note_length(engine.events());
                let verdict = engine.ask(&[&goal]);
                self.note_cost(engine.statistics());
                match verdict {
                    Verdict::Possible(..) | Verdict::Refused(_) => {
                        self.record(&ctp, question, &[number], verdict, from.index());
                        return Ok(());
                    }
                    Verdict::Unknown(why) => reason = why,
                    Verdict::Impossible { .. } => {}
                }
            }
            if !fits {
                break;
            }
            radius *= 4;
        }
        if reason.is_empty() {
            reason = format!("bounded window: not possible within {} events", limits.most);
        }
        let none = ConcurrentTraceProgram::build_window(
            &foretell_model::replay::Replay::new(self.trace)?,
            &[],
        )?;
        self.record(&none, question, &[], Verdict::Unknown(reason), 0);
        Ok(())
    }

    fn note_length(&mut self, events: usize) {
        let longest = &mut self.prediction.statistics.events_after_slicing;
        *longest = (*longest).max(events);
    }

    fn note_cost(&mut self, cost: SolverStatistics) {
        let total = &mut self.prediction.statistics.solver;
        total.checks += cost.checks;
        total.conflicts += cost.conflicts;
        total.decisions += cost.decisions;
        total.cycles += cost.cycles;
        total.order_propagations += cost.order_propagations;
    }

    /// Kinds that nothing was asked about hold trivially.
    fn summarise_empty(&mut self) {
        for &kind in &self.options.properties {
            self.summary(kind);
        }
        self.prediction.properties.sort_by_key(|summary| summary.kind);
    }

    fn summary(&mut self, kind: FindingKind) -> &mut PropertySummary {
        summary(&mut self.prediction, kind)
    }

    /// Turns a verdict into a finding. `numbers` are the instances that the goals came from,
    /// `recorded` the events before the window.
    fn record(
        &mut self,
        ctp: &ConcurrentTraceProgram,
        question: &Question,
        numbers: &[usize],
        verdict: Verdict,
        recorded: usize,
    ) {
        let whole = self.whole && self.options.partition.is_none();
        let summary = self.summary(question.kind);
        summary.questions += 1;
        let (status, instance, schedule) = match verdict {
            Verdict::Possible(number, witness) => {
                summary.predicted += 1;
                summary.holds_in_all_interleavings = false;
                let instance = &question.instances[numbers[number]];
                let schedule = solver_schedule(ctp, instance, &witness, recorded);
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

/// A window for somebody who is stuck reaches from the first such event on.
fn window_events(instance: &Instance) -> usize {
    if instance.shape == Shape::Stuck { 1 } else { instance.events.len() }
}

/// The goals that the CTP can express, with the numbers of their instances.
fn goals(subject: &Subject<'_>, question: &Question) -> Vec<(usize, Goal)> {
    let instances = question.instances.iter().enumerate();
    instances.filter_map(|(number, instance)| Some((number, subject.goal(instance)?))).collect()
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
