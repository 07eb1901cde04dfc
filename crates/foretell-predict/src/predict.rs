//! From a trace to findings: candidates by cheap filters, then the exact question for each.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use foretell_model::assertions::Assertions;
use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::Locksets;
use foretell_model::must_order::{CyclicOrder, MustOrder};
use foretell_model::validate::Witness;
use foretell_solve::SolveError;
use foretell_solve::encode::Mode;
use foretell_trace::{EventId, Trace};

use crate::access::Accesses;
use crate::asking::{self, Answered, Asker, Way, in_windows};
use crate::causal::{self, NotReplayable};
use crate::engine::Verdict;
use crate::finding::{
    Finding, Prediction, PropertySummary, Statistics, Status, WitnessSchedule, access_info, detail,
    fingerprints,
};
use crate::flag_section::add_flag_sections;
use crate::goal::Goal;
use crate::influence::Fixed;
use crate::limits::{MOST_INSTANCES, MOST_KEPT};
use crate::options::{Model, Options};
use crate::progress::{Found, Phase};
use crate::property::{FindingKind, Search};
use crate::question::{Instance, Question, Subject};
use crate::rest::{self, Listener, Rest};
use crate::witness::context_switches;
use crate::{private, store_buffer, unseen, weak_order};

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
    let mut prediction = first_words(trace);
    options.progress.begin(Phase::Candidates, 0);
    let whole = trace;
    // How far apart two accesses are is counted in all events.
    let may_reduce = in_windows(trace, options) && options.filters.distance.is_none();
    let reduced = may_reduce.then(|| private::reduced(trace)).flatten();
    let trace = reduced.as_ref().map_or(whole, |reduced| &reduced.trace);
    let origin = reduced.as_ref().map(|reduced| reduced.origin.as_slice());
    let order = MustOrder::new(trace)?;
    let locks = Locksets::new(trace);
    let mut questions = collect(trace, &order, &locks, options, &mut prediction);
    prediction.statistics.candidate_time = started.elapsed();
    retain_part(&mut questions, options);
    options.progress.begin(Phase::Solving, questions.len());
    let solving = Instant::now();
    let chains = trace.events_by_thread();
    let all = options.partition.is_none();
    let unexamined = BTreeMap::new();
    let mut recorder = Recorder { trace: whole, origin, options, prediction, all, unexamined };
    let fixed = Fixed::new(trace, &chains, &order);
    let (settled, asked): (Vec<&Question>, Vec<&Question>) =
        questions.iter().partition(|question| is_settled(question, &fixed));
    for question in settled {
        recorder.decided(question, Rest::Impossible);
        options.progress.advance();
    }
    let (about_assertions, others): (Vec<&Question>, Vec<&Question>) =
        asked.into_iter().partition(|question| question.kind == FindingKind::Assertion);
    let fail = match options.mode {
        Mode::Prefix => Some(Assertions::EndTheirThread),
        // There, everything takes place.
        Mode::Whole => None,
    };
    for (questions, assertions) in [(others, Some(Assertions::Hold)), (about_assertions, fail)] {
        if questions.is_empty() {
            continue;
        }
        let prepare = |ctp: ConcurrentTraceProgram| match assertions {
            Some(assertions) => constrained(ctp.with_assertions(assertions), options.model),
            None => constrained(ctp, options.model),
        };
        let mut asker = Asker::new(trace, &chains, &order, options, &prepare)?;
        for group in groups(&questions) {
            recorder.ask(&mut asker, &group)?;
        }
        asking::add(&mut recorder.prediction.statistics.solver, asker.cost);
        let longest = &mut recorder.prediction.statistics.events_after_slicing;
        *longest = asker.longest.max(*longest);
    }
    recorder.count_unexamined();
    recorder.summarise_empty();
    let mut prediction = recorder.prediction;
    prediction.statistics.solve_time = solving.elapsed();
    count_violations(&mut prediction);
    Ok(prediction)
}

/// Is the answer no without asking: does everything that could go wrong depend only on what is the same in all
/// interleavings, and did it go well in this one?
fn is_settled(question: &Question, fixed: &Fixed<'_>) -> bool {
    question.rest.is_empty() && question.instances.iter().all(|instance| fixed.is_well(instance))
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

/// What is known before anything is asked.
pub(crate) fn first_words(trace: &Trace) -> Prediction {
    let statistics = Statistics {
        threads: trace.threads.len(),
        events: trace.events.len(),
        shared_variables: shared_variables(trace),
        ..Statistics::default()
    };
    Prediction { unseen: unseen::sentences(trace), statistics, ..Prediction::default() }
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
    prediction.unseen.extend(store_buffer::delayed_store(trace, order));
    prediction.unseen.extend(weak_order::weakly_ordered(trace));
    let limit = options.instances.max(1);
    // Windows are about the nearest instances only.
    let all = if in_windows(trace, options) { limit } else { MOST_INSTANCES.max(limit) };
    let mut questions: Vec<Question> = Vec::new();
    let mut kinds = options.properties.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let (nearest, instances) = (all == limit, all);
    for kind in kinds {
        let mut search = Search {
            trace,
            order,
            locks,
            options,
            instances,
            nearest,
            prediction: &mut *prediction,
        };
        questions.extend(kind.questions(&mut search));
    }
    let mut kept = MOST_KEPT;
    for question in &mut questions {
        if question.instances.len() > limit {
            question.rest = question.instances.split_off(limit);
            let over = question.rest.len().saturating_sub(kept);
            question.unexamined += over as u64;
            question.rest.truncate(kept);
            kept -= question.rest.len();
        }
    }
    questions
}

/// For engines that ask about the first instances only: the others are counted.
pub(crate) fn first_instances(
    mut questions: Vec<Question>,
    prediction: &mut Prediction,
) -> Vec<Question> {
    let mut unexamined: BTreeMap<FindingKind, u64> = BTreeMap::new();
    for question in &mut questions {
        question.unexamined += std::mem::take(&mut question.rest).len() as u64;
        *unexamined.entry(question.kind).or_default() += question.unexamined;
    }
    say_unexamined(&unexamined, prediction);
    questions
}

fn say_unexamined(unexamined: &BTreeMap<FindingKind, u64>, prediction: &mut Prediction) {
    for (kind, count) in unexamined.iter().filter(|(_, count)| **count > 0) {
        prediction.unseen.push(format!(
            "{kind}: {count} further instances of the same code locations were not examined"
        ));
    }
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
            if *first.entry(access.cell).or_insert(event.thread) != event.thread {
                shared.insert(access.cell);
            }
        }
    }
    shared.len()
}

/// Which questions share an encoding: those about the state at the end have one of their own.
fn groups<'q>(questions: &[&'q Question]) -> Vec<Vec<&'q Question>> {
    let mut groups: Vec<Vec<&Question>> = Vec::new();
    let key = |question: &Question| {
        (question.kind, question.instances.first().map(|instance| instance.shape.is_about_end()))
    };
    for &question in questions {
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
        match self.shape.is_about_end() {
            // From the first place where somebody is stuck on.
            true => &self.events[..self.events.len().min(1)],
            false => &self.events,
        }
    }
}

/// Turns verdicts into findings.
pub(crate) struct Recorder<'a> {
    pub trace: &'a Trace,
    /// Which events of the trace those are that questions are about, where it was reduced.
    pub origin: Option<&'a [EventId]>,
    pub options: &'a Options,
    pub prediction: Prediction,
    /// All questions are asked.
    pub all: bool,
    /// Instances of questions that are not decided for all of them.
    pub unexamined: BTreeMap<FindingKind, u64>,
}

impl Recorder<'_> {
    /// Asks the questions, which share an encoding, until each is decided for all its instances.
    fn ask(&mut self, asker: &mut Asker<'_>, group: &[&Question]) -> Result<(), PredictError> {
        let ways: Vec<&[Instance]> =
            group.iter().map(|question| question.instances.as_slice()).collect();
        let mut again: Vec<&Question> = Vec::new();
        asker.ask(&ways, &mut |number, answer| {
            let question = group[number];
            match answer.verdict {
                Verdict::Impossible { in_all_interleavings: true } if !question.rest.is_empty() => {
                    again.push(question);
                }
                _ => self.record(question, &question.instances, answer),
            }
            self.options.progress.advance();
        })?;
        let options = self.options;
        rest::ask(asker, &again, options, self)
    }

    /// The instance in the events of the whole trace.
    fn in_trace(&self, mut instance: Instance) -> Instance {
        if let Some(origin) = self.origin {
            instance.events.iter_mut().for_each(|event| *event = origin[event.index()]);
        }
        instance
    }

    /// The schedule in the events of the whole trace; what was left out of it stands where it can.
    fn schedule_in_trace(&self, mut schedule: WitnessSchedule) -> WitnessSchedule {
        if let Some(origin) = self.origin {
            let events = schedule.order.iter_mut().chain(&mut schedule.next);
            events.for_each(|event| *event = origin[event.index()]);
            let first = origin.get(schedule.recorded).map(|event| event.index());
            schedule.recorded = match schedule.recorded {
                0 => 0,
                _ => first.unwrap_or(self.trace.events.len()),
            };
        }
        schedule
    }

    /// Says what was not examined.
    pub fn count_unexamined(&mut self) {
        say_unexamined(&self.unexamined, &mut self.prediction);
    }

    /// Kinds that nothing was asked about hold trivially.
    pub fn summarise_empty(&mut self) {
        for &kind in self.options.properties.iter().filter(|kind| kind.is_listed()) {
            summary(&mut self.prediction, kind);
        }
        self.prediction.properties.sort_by_key(|summary| summary.kind);
    }

    /// Keeps the answer to a question about these instances.
    pub fn record(&mut self, question: &Question, instances: &[Instance], answer: Answered<'_>) {
        let all = self.all;
        let summary = summary(&mut self.prediction, question.kind);
        summary.questions += 1;
        let (status, instance, schedule) = match answer.verdict {
            Verdict::Possible(number, witness) => {
                summary.predicted += 1;
                summary.holds_in_all_interleavings = false;
                let instance = &instances[answer.ways[number]];
                let schedule = solver_schedule(answer.ctp, instance, &witness, answer.recorded);
                (Status::Predicted, instance, Some(schedule))
            }
            Verdict::Impossible { in_all_interleavings } => {
                summary.impossible += 1;
                summary.holds_in_all_interleavings &=
                    in_all_interleavings && all && question.unexamined == 0;
                let left = question.unexamined + question.rest.len() as u64;
                *self.unexamined.entry(question.kind).or_default() += left;
                return;
            }
            Verdict::Unknown(reason) => {
                summary.unknown += 1;
                summary.holds_in_all_interleavings = false;
                (Status::Unknown(reason), &instances[0], None)
            }
            Verdict::Refused(why) => {
                summary.holds_in_all_interleavings = false;
                let about = detail(self.trace, &self.in_trace(instances[0].clone()));
                self.prediction.internal_errors.push(format!("{about}: {why}"));
                return;
            }
        };
        let shown = self.in_trace(instance_as_shown(instance, schedule.as_ref()));
        let schedule = schedule.map(|schedule| self.schedule_in_trace(schedule));
        if status == Status::Predicted {
            let about = detail(self.trace, &shown);
            self.options.progress.found(Found { confirmed: false, kind: question.kind, about });
        }
        let (id, group) = fingerprints(self.trace, question.kind, &shown);
        self.prediction.findings.push(Finding {
            id,
            group,
            kind: question.kind,
            pattern: instance.shape.pattern(),
            status,
            accesses: shown.events.iter().map(|&event| access_info(self.trace, event)).collect(),
            detail: detail(self.trace, &shown),
            schedule,
        });
    }
}

impl rest::Listener for Recorder<'_> {
    fn answered(&mut self, question: &Question, instances: &[Instance], answer: Answered<'_>) {
        self.record(question, instances, answer);
    }

    fn decided(&mut self, question: &Question, rest: Rest) {
        let undecided = match rest {
            Rest::Impossible => 0,
            Rest::Undecided(count) => count,
        };
        let all = self.all;
        let summary = summary(&mut self.prediction, question.kind);
        summary.questions += 1;
        summary.impossible += 1;
        summary.holds_in_all_interleavings &= all && question.unexamined == 0 && undecided == 0;
        *self.unexamined.entry(question.kind).or_default() += question.unexamined + undecided;
    }
}

/// Of somebody who is stuck: only the place where that is.
fn instance_as_shown(instance: &Instance, schedule: Option<&WitnessSchedule>) -> Instance {
    let mut shown = instance.clone();
    if shown.shape.is_about_end() {
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
