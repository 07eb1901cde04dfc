//! The engines behind one function: the solver (000, 004), the planner (003), Penelope's own scheme
//! of lock-valid runs (003 section 5 compares with it), and plan first, lock-valid run where there
//! is no plan.
//!
//! Guaranteed: what is reported as predicted was executed by the independent validator. A lock-valid
//! run was built without looking at data, so it is reported as unknown, with its schedule to be tried.

use std::time::Instant;

use foretell_model::assertions::Assertions;
use foretell_model::build::BuildError;
use foretell_model::ctp::{ConcurrentTraceProgram, Role};
use foretell_model::lockset::Locksets;
use foretell_model::must_order::MustOrder;
use foretell_model::validate::Interpreter;
use foretell_solve::encode::Mode;
use foretell_trace::{EventId, Op, Trace, Value, VariableId};

use super::goal::{Formula, GoalError};
use super::order_goal::order_goal;
use super::{CompiledGoal, Outcome, Plan, PlanOptions, Planner, Unplannable};
use crate::atomicity::pattern_questions;
use crate::candidates::Limits;
use crate::engine::{Engine as SolverEngine, Setting, Verdict};
use crate::finding::{Reason, access_info, detail, fingerprints};
use crate::orders::order_candidates;
use crate::predict::{
    collect, constrained, count_violations, first_instances, first_words, retain_part,
    solver_schedule, summary,
};
use crate::property::{Planned, Shape};
use crate::question::{Instance, Question};
use crate::window::{Checkpoints, around};
use crate::{Finding, FindingKind, Model, Options, PatternKind, PredictError, Prediction};
use crate::{Status, WitnessSchedule};

/// Who answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Formulas and a solver.
    #[default]
    Solver,
    /// Plans: precisely predictable runs.
    Planner,
    /// Lock-valid runs, to be tried by execution.
    Lockset,
    /// A plan, or else a lock-valid run.
    Combined,
    /// The order generator of 002 ([`crate::orders`]), with lock-valid runs to be tried.
    Orders,
}

impl Engine {
    const ALL: [(&str, Engine); 5] = [
        ("solver", Engine::Solver),
        ("planner", Engine::Planner),
        ("lockset", Engine::Lockset),
        ("combined", Engine::Combined),
        ("orders", Engine::Orders),
    ];
}

impl std::str::FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Engine::ALL.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, engine)| engine).ok_or_else(|| {
            format!("unknown engine `{name}`; known are solver, planner, lockset, combined, orders")
        })
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = Engine::ALL.into_iter().find(|(_, engine)| engine == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// What to look for, and who looks.
#[derive(Clone, Debug, Default)]
pub struct PlannerOptions {
    /// Who answers.
    pub engine: Engine,
    /// Properties, blocks, instances and partition count for every engine; the rest is the solver's.
    pub common: Options,
    /// How many nodes the planner may expand for one pattern.
    pub budget: Option<u64>,
    /// Goals in the language of [`super::goal`]; where there are any, nothing else is looked for.
    pub goals: Vec<String>,
}

/// Why nothing can be predicted.
#[derive(Debug)]
pub enum EngineError {
    /// The trace or the solver.
    Predict(PredictError),
    /// The trace is not for the planner.
    Unplannable(Unplannable),
    /// A goal cannot be understood.
    Goal(GoalError),
}

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EngineError::Predict(error) => error.fmt(f),
            EngineError::Unplannable(error) => error.fmt(f),
            EngineError::Goal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EngineError {}

impl<E: Into<PredictError>> From<E> for EngineError {
    fn from(error: E) -> Self {
        EngineError::Predict(error.into())
    }
}

/// What can go wrong in another interleaving, by any of the engines.
pub fn predict(trace: &Trace, options: &PlannerOptions) -> Result<Prediction, EngineError> {
    let mut prediction = answered(trace, options)?;
    let all_interleavings = options.engine == Engine::Solver
        && options.common.model == Model::Symbolic
        && options.common.mode == Mode::Prefix;
    if !all_interleavings {
        // The question was about some interleavings only, so is the answer.
        for summary in &mut prediction.properties {
            summary.holds_in_all_interleavings = false;
        }
    }
    Ok(prediction)
}

fn answered(trace: &Trace, options: &PlannerOptions) -> Result<Prediction, EngineError> {
    if options.engine == Engine::Solver && options.goals.is_empty() {
        return Ok(crate::predict(trace, &options.common)?);
    }
    let started = Instant::now();
    let order = MustOrder::new(trace)?;
    let mut prediction = first_words(trace);
    let mut asked = Vec::new();
    for text in &options.goals {
        asked.push(asked_in_words(trace, text).map_err(EngineError::Goal)?);
    }
    if options.goals.is_empty() {
        let locks = Locksets::new(trace);
        let questions = match options.engine {
            Engine::Orders => order_questions(trace, &locks, &options.common, &mut prediction)?,
            _ => first_instances(
                collect(trace, &order, &locks, &options.common, &mut prediction),
                &mut prediction,
            ),
        };
        asked.extend(questions.into_iter().map(|question| Asked { question, goal: None }));
        if options.engine != Engine::Orders {
            drop_unsupported(&mut asked, &options.common.properties, &mut prediction);
        }
    }
    retain_part(&mut asked, &options.common);
    prediction.statistics.candidate_time = started.elapsed();
    let solving = Instant::now();
    if options.engine == Engine::Solver {
        let solver = Solver { trace, order: &order, options: &options.common };
        for (number, one) in asked.iter().enumerate() {
            if out_of_time(&options.common, asked.len() - number, &mut prediction) {
                break;
            }
            if let Err(error) = solver.answer(one, &mut prediction) {
                // A solver is killed when the time is over.
                match out_of_time(&options.common, asked.len() - number, &mut prediction) {
                    true => break,
                    false => return Err(error),
                }
            }
        }
    } else {
        let mut asker = Asker {
            trace,
            planner: Planner::new(trace).map_err(EngineError::Unplannable)?,
            checkpoints: Checkpoints::new(trace)?,
            options,
        };
        for (number, one) in asked.iter().enumerate() {
            if out_of_time(&options.common, asked.len() - number, &mut prediction) {
                break;
            }
            asker.answer(one, &mut prediction)?;
        }
    }
    prediction.statistics.solve_time = solving.elapsed();
    count_violations(&mut prediction);
    prediction.properties.sort_by_key(|summary| summary.kind);
    Ok(prediction)
}

/// Is the time over? Says how many questions are left then.
fn out_of_time(options: &Options, left: usize, prediction: &mut Prediction) -> bool {
    let late = options.is_late();
    if late {
        prediction
            .unseen
            .push(format!("{left} questions were not asked: the time limit was reached"));
    }
    late
}

/// What the order generator gives; it knows patterns only.
fn order_questions(
    trace: &Trace,
    locks: &Locksets,
    options: &Options,
    prediction: &mut Prediction,
) -> Result<Vec<Question>, EngineError> {
    let mut questions = Vec::new();
    let mut kinds = options.properties.clone();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        if kind == FindingKind::Atomicity {
            let limits = Limits { instances: options.instances.max(1), ..Limits::default() };
            let found = order_candidates(trace, locks, limits)?;
            questions = pattern_questions(trace, found, options, prediction);
            summary(prediction, kind);
        } else {
            prediction.unseen.push(format!(
                "{kind}: the order generator does not look for it; use --engine solver"
            ));
        }
    }
    Ok(questions)
}

/// A question, and the goal if it was given as text.
struct Asked {
    question: Question,
    goal: Option<(String, Formula)>,
}

fn asked_in_words(trace: &Trace, text: &str) -> Result<Asked, GoalError> {
    let formula = Formula::parse(text)?;
    let goal = CompiledGoal::new(trace, &formula)?;
    let sequence = goal.sequence();
    let kind = match sequence {
        Some(sequence) if sequence.steps.len() == 1 => FindingKind::Order,
        None if goal.next_events().next().is_some() => FindingKind::Deadlock,
        _ => FindingKind::Atomicity,
    };
    let writes = |event: EventId| match &trace.event(event).op {
        Op::Read(_) => Some(false),
        Op::Write(_) | Op::ReadModifyWrite(_) => Some(true),
        _ => None,
    };
    let pattern =
        sequence.and_then(|sequence| match (&sequence.steps[..], &sequence.forbidden[..]) {
            (&[first, remote], &[second]) => {
                let kind = PatternKind::of(writes(first)?, writes(remote)?, writes(second)?)?;
                Some((Shape::Atomicity(kind), vec![first, remote, second]))
            }
            _ => None,
        });
    let (shape, events) = pattern.unwrap_or_else(|| {
        let events = formula.events().into_iter();
        let find = |name| super::compiled_goal::find(trace, name);
        (Shape::Goal, events.filter_map(find).collect())
    });
    let instances = vec![Instance { shape, events }];
    let question = Question { kind, instances, rest: Vec::new(), unexamined: 0 };
    Ok(Asked { question, goal: Some((text.to_owned(), formula)) })
}

/// Leaves out what a plan cannot say, and says so.
fn drop_unsupported(asked: &mut Vec<Asked>, kinds: &[FindingKind], prediction: &mut Prediction) {
    asked.retain(|asked| asked.question.instances.iter().all(|i| plan_goal(i).is_some()));
    for &kind in kinds {
        match kind.planned() {
            Planned::Yes => {
                summary(prediction, kind);
            }
            Planned::Only(what) => {
                summary(prediction, kind).holds_in_all_interleavings = false;
                prediction
                    .unseen
                    .push(format!("{kind}: the planner looks at {what} only; use --engine solver"));
            }
            Planned::No => {
                prediction
                    .unseen
                    .push(format!("{kind}: the planner does not look for it; use --engine solver"));
            }
        }
    }
}

/// The instance as a formula over `0`, `1`, ..., its events.
fn plan_goal(instance: &Instance) -> Option<Formula> {
    instance.shape.plan(instance.events.len())
}

/// Adds what came out to the prediction.
fn record(
    trace: &Trace,
    asked: &Asked,
    answer: Option<(Status, &Instance, Option<WitnessSchedule>)>,
    prediction: &mut Prediction,
) {
    let question = &asked.question;
    let summary = summary(prediction, question.kind);
    summary.questions += 1;
    let Some((status, instance, schedule)) = answer else {
        summary.impossible += 1;
        summary.holds_in_all_interleavings &= question.unexamined == 0;
        return;
    };
    summary.holds_in_all_interleavings = false;
    match status {
        Status::Predicted => summary.predicted += 1,
        Status::Unknown(_) => summary.unknown += 1,
    }
    let (id, group) = fingerprints(trace, question.kind, instance);
    let detail = match (&asked.goal, instance.shape) {
        (Some((text, _)), Shape::Goal) => format!("the goal `{text}` can be reached"),
        _ => detail(trace, instance),
    };
    prediction.findings.push(Finding {
        id,
        group,
        kind: question.kind,
        pattern: instance.shape.pattern(),
        status,
        accesses: instance.events.iter().map(|&event| access_info(trace, event)).collect(),
        detail,
        schedule,
    });
}

struct Asker<'a> {
    trace: &'a Trace,
    planner: Planner,
    checkpoints: Checkpoints<'a>,
    options: &'a PlannerOptions,
}

impl Asker<'_> {
    fn answer(&mut self, asked: &Asked, prediction: &mut Prediction) -> Result<(), EngineError> {
        let instances = &asked.question.instances;
        let tried = &instances[..instances.len().min(self.options.common.window.instances.max(1))];
        let mut undecided = (tried.len() < instances.len())
            .then_some(Reason::SomeInstances { tried: tried.len(), of: instances.len() });
        if !matches!(self.options.engine, Engine::Lockset | Engine::Orders) {
            for instance in tried {
                let Some(goal) = self.goal(asked, instance)? else { continue };
                match self.planner.plan(&goal, &self.plan_options(true)) {
                    Outcome::NoPlan => {}
                    Outcome::Unknown => {
                        undecided = Some(Reason::PlannerBudget);
                    }
                    Outcome::Plan(plan) => match execute(self.trace, &mut self.checkpoints, &plan)?
                    {
                        Ok(Executed::ThroughAFailedAssertion) => {
                            undecided = Some(Reason::FailedAssertion);
                        }
                        Ok(Executed::Well) => {
                            let schedule = self.schedule(&plan, &goal);
                            let answer = (Status::Predicted, instance, Some(schedule));
                            record(self.trace, asked, Some(answer), prediction);
                            return Ok(());
                        }
                        Err(why) => {
                            let about = detail(self.trace, instance);
                            prediction
                                .internal_errors
                                .push(format!("{about}: the validator refuses a plan: {why}"));
                            undecided = Some(Reason::Refused);
                        }
                    },
                }
            }
        }
        if self.options.engine != Engine::Planner {
            for instance in tried {
                let Some(goal) = self.goal(asked, instance)? else { continue };
                match self.planner.plan(&goal, &self.plan_options(false)) {
                    Outcome::NoPlan => {}
                    Outcome::Unknown => {
                        undecided = Some(Reason::PlannerBudget);
                    }
                    Outcome::Plan(plan) => {
                        let why = match self.options.engine {
                            Engine::Orders => Reason::OrderOnly,
                            _ => Reason::LocksOnly,
                        };
                        let schedule = self.schedule(&plan, &goal);
                        let answer = (Status::Unknown(why), instance, Some(schedule));
                        record(self.trace, asked, Some(answer), prediction);
                        return Ok(());
                    }
                }
            }
        }
        let unknown = undecided.map(|why| (Status::Unknown(why), &instances[0], None));
        record(self.trace, asked, unknown, prediction);
        Ok(())
    }

    fn plan_options(&self, with_data: bool) -> PlanOptions {
        let default = PlanOptions::default();
        PlanOptions { with_data, budget: self.options.budget.unwrap_or(default.budget) }
    }

    fn goal(
        &self,
        asked: &Asked,
        instance: &Instance,
    ) -> Result<Option<CompiledGoal>, EngineError> {
        let goal = match &asked.goal {
            Some((_, formula)) => CompiledGoal::new(self.trace, formula),
            None => {
                let Some(formula) = plan_goal(instance) else { return Ok(None) };
                CompiledGoal::of_events(&formula, &instance.events)
            }
        };
        goal.map(Some).map_err(EngineError::Goal)
    }

    fn schedule(&self, plan: &Plan, goal: &CompiledGoal) -> WitnessSchedule {
        let order = plan.order[plan.cut..].to_vec();
        let thread = |event: EventId| self.trace.event(event).thread;
        let context_switches =
            order.windows(2).filter(|pair| thread(pair[0]) != thread(pair[1])).count();
        WitnessSchedule {
            recorded: plan.cut,
            order,
            next: goal.next_events().collect(),
            context_switches,
        }
    }
}

/// How a plan that can be executed goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// To its end.
    Well,
    /// The program would have ended at an assertion.
    ThroughAFailedAssertion,
}

/// Executes a plan with the interpreter of [`foretell_model::validate`]; `Err` says what is in the
/// way. The last event may be a read that sees another value: then its thread must be running and
/// have come to it.
pub fn execute(
    trace: &Trace,
    checkpoints: &mut Checkpoints<'_>,
    plan: &Plan,
) -> Result<Result<Executed, String>, BuildError> {
    let (cut, end) = (EventId::from(plan.cut), EventId::from(plan.end.max(1) - 1));
    let ctp = checkpoints.window(cut, end)?;
    if let Err(why) = step_through(trace, &ctp, plan) {
        return Ok(Err(why));
    }
    let ctp = ctp.with_assertions(Assertions::Hold);
    Ok(Ok(match step_through(trace, &ctp, plan) {
        Ok(()) => Executed::Well,
        Err(_) => Executed::ThroughAFailedAssertion,
    }))
}

fn step_through(trace: &Trace, ctp: &ConcurrentTraceProgram, plan: &Plan) -> Result<(), String> {
    let interpreter = Interpreter::new(ctp);
    let open = ctp.variables.iter().enumerate().filter(|(_, variable)| variable.initial.is_none());
    let initial: Vec<(VariableId, Value)> = open
        .map(|(number, variable)| (VariableId::from(number), Value::zero(variable.sort)))
        .collect();
    let mut at = interpreter.start(&initial).map_err(|rejection| rejection.to_string())?;
    let order = &plan.order[plan.cut..];
    for (number, &origin) in order.iter().enumerate() {
        let Some(event) = ctp.event_of(origin) else { continue };
        let Err(obstacle) = interpreter.step(&mut at, event, &[]) else { continue };
        let thread = ctp.event(event).thread;
        let state = ctp.variables.iter().position(|v| v.role == Role::ThreadState(thread));
        let runs =
            state.is_none_or(|state| matches!(at.values[state], Value::BitVec { bits: 1, .. }));
        let reads = matches!(trace.event(origin).op, Op::Read(_) | Op::ReadModifyWrite(_));
        let is_last = number + 1 == order.len();
        let came = interpreter.next_event(&at, thread) == Some(event);
        if !(is_last && reads && came && runs) {
            return Err(format!("event {}: {obstacle}", origin.0));
        }
    }
    Ok(())
}

/// Goals given as text, by the solver.
struct Solver<'a> {
    trace: &'a Trace,
    order: &'a MustOrder,
    options: &'a Options,
}

impl Solver<'_> {
    /// Asks in the whole trace if it is short, else in windows that grow.
    fn answer(&self, asked: &Asked, prediction: &mut Prediction) -> Result<(), EngineError> {
        let Some((_, formula)) = &asked.goal else { return Ok(()) };
        let instance = &asked.question.instances[0];
        let limits = self.options.window;
        let total = self.trace.events.len();
        let checkpoints = Checkpoints::new(self.trace)?;
        let mut radius = limits.first.max(1);
        let mut reason = Reason::Window(limits.most);
        loop {
            let whole = total <= limits.whole || !self.trace.metadata.observed_order;
            let bounds = match whole {
                true => None,
                false => around(self.trace, &instance.events, radius)
                    .filter(|(from, to)| to.index() - from.index() < limits.most),
            };
            let ctp = match bounds {
                _ if whole => ConcurrentTraceProgram::build(self.trace)?,
                Some((from, to)) => checkpoints.window(from, to)?,
                None => break,
            };
            // Nothing takes place after an assertion that fails.
            let ctp = ctp.with_assertions(Assertions::Hold);
            let ctp = constrained(ctp, self.options.model)?;
            let goal = order_goal(self.trace, &ctp, formula).map_err(EngineError::Goal)?;
            if let Some(goal) = goal {
                let setting = Setting {
                    mode: self.options.mode,
                    backend: &self.options.backend,
                    budget: self.options.budget,
                    context_switches: self.options.context_switches,
                    deadline: self.options.deadline,
                    dump: self
                        .options
                        .dump_smt2
                        .as_deref()
                        .map(|directory| (directory, self.trace)),
                };
                let mut engine =
                    SolverEngine::new(&ctp, self.order, std::iter::once(&goal), &setting)?;
                match engine.ask(&[&goal]) {
                    Verdict::Possible(_, witness) => {
                        let recorded = bounds.map_or(0, |(from, _)| from.index());
                        let schedule = solver_schedule(&ctp, instance, &witness, recorded);
                        let answer = (Status::Predicted, instance, Some(schedule));
                        record(self.trace, asked, Some(answer), prediction);
                        return Ok(());
                    }
                    Verdict::Impossible { .. } if whole => {
                        record(self.trace, asked, None, prediction);
                        return Ok(());
                    }
                    Verdict::Impossible { .. } => {}
                    Verdict::Unknown(why) => reason = why,
                    Verdict::Refused(why) => {
                        prediction.internal_errors.push(why);
                        reason = Reason::Refused;
                    }
                }
            }
            if whole {
                break;
            }
            radius *= 4;
        }
        record(self.trace, asked, Some((Status::Unknown(reason), instance, None)), prediction);
        Ok(())
    }
}
