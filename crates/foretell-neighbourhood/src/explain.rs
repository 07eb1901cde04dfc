//! One call for everything: [`explain()`] takes a trace and gives its bad and good neighbourhood, what
//! kind of bug they show, and synchronisation that repairs it.

use std::time::{Duration, Instant};

use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::validate::{Witness, validate};
use foretell_trace::{EventId, Trace, Value, VariableId};

use crate::engine::explore::{Found, Goal, Run, Search};
use crate::engine::inputs::SolverFactory;
use crate::engine::system::{State, System};
use crate::formula::{HbFormula, KnownOrder, NormalForm};
use crate::lines::{LineKey, LinePattern, Lines, by_line};
use crate::property::{Instrumented, Properties, instrument, is_region_flag};
use crate::succinct::{BadNeighbourhood, Generaliser, Limits, Work};
use crate::summary::{BugSummary, summarise};
use crate::synthesis::verify::waits_for_itself;
use crate::synthesis::{Budget, Synthesis, synthesise};
use crate::{exact, succinct};

/// What to compute, and how much work it may cost.
#[derive(Clone, Copy)]
pub struct Options {
    /// Algorithm 1 instead of Algorithm 2.
    pub exact: bool,
    /// What counts as bad.
    pub properties: Properties,
    /// Look for synchronisation.
    pub synthesis: bool,
    /// Work limits.
    pub limits: Limits,
    /// States that the verification of one plan, and the search for deadlocks, may visit.
    pub verification_states: u64,
    /// Plans that are verified at most.
    pub plans: usize,
    /// Decides conditions over free inputs.
    pub solver: SolverFactory,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            exact: false,
            properties: Properties::default(),
            synthesis: true,
            limits: Limits::default(),
            verification_states: 1_000_000,
            plans: 24,
            solver: default_solver,
        }
    }
}

/// The embedded solver, and Z3 for what that does not support.
fn default_solver(
    problem: foretell_solve::OrderProblem,
) -> Option<Box<dyn foretell_solve::OrderSolver>> {
    foretell_solve::solver(problem, &foretell_solve::Backend::Auto).ok()
}

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainError {
    /// The trace has no model.
    Build(BuildError),
    /// The fixed orders of the trace contradict each other.
    CyclicOrders,
}

impl std::fmt::Display for ExplainError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExplainError::Build(error) => write!(f, "the trace has no model: {error}"),
            ExplainError::CyclicOrders => f.write_str(
                "the fixed orders contradict each other: there is no interleaving; \
                 remove one of the orders",
            ),
        }
    }
}

impl std::error::Error for ExplainError {}

impl From<BuildError> for ExplainError {
    fn from(error: BuildError) -> Self {
        ExplainError::Build(error)
    }
}

/// What the neighbourhood of a trace is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There are good interleavings and no bad one.
    AllGood,
    /// There are bad interleavings and no good one.
    AllBad,
    /// Both: the order decides.
    Depends,
    /// No bad interleaving, but threads can wait for each other.
    Deadlock,
    /// No interleaving runs to its end, and none is bad.
    Infeasible,
    /// Not decided, and why.
    Unknown(String),
}

/// Time of each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// From the trace to the transition system.
    pub build: Duration,
    /// The bad and good neighbourhood.
    pub neighbourhood: Duration,
    /// Bug summaries.
    pub summary: Duration,
    /// Synchronisation and its verification.
    pub synthesis: Duration,
}

/// Sizes and costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Threads with events.
    pub threads: usize,
    /// Events.
    pub events: usize,
    /// Reads of shared variables (the paper's π-functions).
    pub pi_functions: usize,
    /// Average number of definitions a π-function chooses from.
    pub pi_choices: f64,
    /// What the neighbourhood cost.
    pub work: Work,
    /// Time of each phase.
    pub phases: Phases,
}

/// Everything about a trace's neighbourhood. Event ids are the trace's.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What the neighbourhood is like.
    pub verdict: Verdict,
    /// Bad interleavings, in disjunctive form.
    pub bad: HbFormula,
    /// Good interleavings, in conjunctive form: the complement.
    pub good: HbFormula,
    /// The bad neighbourhood contains bad interleavings only (else also infeasible ones).
    pub exact: bool,
    /// The bad neighbourhood, said once for all iterations of loops.
    pub by_line: Vec<LinePattern>,
    /// What kinds of bugs it shows.
    pub summaries: Vec<BugSummary>,
    /// Synchronisation that removes the bad neighbourhood.
    pub synthesis: Option<Synthesis>,
    /// A bad interleaving, up to its failure; accepted by the validator.
    pub witness: Option<BadRun>,
    /// Threads that wait for each other, by the event each cannot take.
    pub deadlock: Option<Vec<EventId>>,
    /// Events of one source line, by iteration.
    pub lines: Lines,
    /// Sizes and costs.
    pub statistics: Statistics,
    /// Program order and fixed orders of the trace's events.
    pub known: KnownOrder,
    /// Names of the variables that summaries mention.
    pub variables: Vec<Box<str>>,
}

/// A bad interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRun {
    /// The trace's events in order, up to the failure.
    pub events: Vec<EventId>,
    /// The assertion that fails, or the access before which a region was broken.
    pub failing: EventId,
    /// An atomic region was broken, not an assertion.
    pub region: bool,
}

/// Explains a trace.
pub fn explain(trace: &Trace, options: &Options) -> Result<Explanation, ExplainError> {
    let started = Instant::now();
    let plain = ConcurrentTraceProgram::build(trace)?;
    let instrumented = instrument(trace, plain, options.properties);
    explain_program(trace, &instrumented, options, trace.metadata.observed_order, started)
}

/// Lines of a program's events.
pub(crate) fn lines_of(trace: &Trace, system: &System, ctp: &ConcurrentTraceProgram) -> Lines {
    let keys: Vec<LineKey> = (0..ctp.events.len())
        .map(|event| line_key(trace, ctp.event(EventId::from(event)).origin))
        .collect();
    Lines::new(system, &keys)
}

/// Explains a program of (a part of) a trace whose assertions are the property; of a recorded one
/// the threads may leave their paths.
pub(crate) fn explain_program(
    trace: &Trace,
    instrumented: &Instrumented,
    options: &Options,
    recorded: bool,
    started: Instant,
) -> Result<Explanation, ExplainError> {
    let ctp = &instrumented.ctp;
    let new_system = || {
        let mut system = System::new(ctp, options.solver);
        if recorded {
            system.allow_leaving(ctp);
        }
        system
    };
    let mut system = new_system();
    if system.known.is_cyclic() {
        return Err(ExplainError::CyclicOrders);
    }
    let lines = lines_of(trace, &system, ctp);
    let mut phases = Phases { build: started.elapsed(), ..Phases::default() };

    let started = Instant::now();
    let found = match options.exact {
        true => exact::bad_neighbourhood(&mut system, &options.limits),
        false => succinct::bad_neighbourhood(&mut system, &lines, &options.limits),
    };
    let shown = |event: EventId| instrumented.shown[event.index()];
    let bad = HbFormula::new(
        NormalForm::Disjunctive,
        found.formula.map_events(shown).clauses().to_vec(),
        &system.known,
    );
    let (mut verdict, deadlock) = judge(&mut system, &found, options);
    let witness = match checked_witness(ctp, &mut system, &found) {
        Ok(witness) => witness,
        Err(reason) => {
            verdict = Verdict::Unknown(reason);
            None
        }
    };
    phases.neighbourhood = started.elapsed();

    let started = Instant::now();
    let summaries = summarise(&mut system, &bad, &lines);
    phases.summary = started.elapsed();

    let started = Instant::now();
    let mut synthesis = None;
    if options.synthesis && matches!(verdict, Verdict::Depends) {
        let good = bad.complement();
        let budget = Budget { states: options.verification_states, plans: options.plans };
        let mut weaker = || {
            let mut generaliser = Generaliser::new(&options.limits);
            let mut system = new_system();
            system.is_closed().then(|| generaliser.weakened(&mut system, &bad).complement())
        };
        synthesis = synthesise(ctp, &system, &good, &mut weaker, &lines, options.solver, budget);
    }
    phases.synthesis = started.elapsed();

    let origin = |event: EventId| ctp.event(event).origin;
    let statistics = statistics(&system, ctp, found.work, phases);
    let known = KnownOrder::new(&trace.events_by_thread(), &trace.orders);
    let bad =
        HbFormula::new(NormalForm::Disjunctive, bad.map_events(origin).clauses().to_vec(), &known);
    let origins = Lines::new_for_trace(trace, &lines, ctp);
    Ok(Explanation {
        verdict,
        good: bad.complement(),
        by_line: by_line(&bad, &origins, |event| known.thread(event)),
        bad,
        exact: options.exact && found.incomplete.is_none(),
        summaries: summaries.into_iter().map(|summary| summary_of_trace(summary, origin)).collect(),
        synthesis: synthesis.map(|synthesis| synthesis.of_trace(origin)),
        witness: witness.map(|(events, failing, region)| BadRun {
            events: origins_in_order(events.into_iter().map(origin)),
            failing: origin(failing),
            region,
        }),
        deadlock: deadlock.map(|events| events.into_iter().map(origin).collect()),
        lines: origins,
        statistics,
        known,
        variables: ctp.variables.iter().map(|variable| variable.name.clone()).collect(),
    })
}

/// An explanation with nothing in it but the verdict.
pub(crate) fn frame_of(trace: &Trace, verdict: Verdict, phases: Phases) -> Explanation {
    let known = KnownOrder::new(&trace.events_by_thread(), &trace.orders);
    let bad = HbFormula::never();
    Explanation {
        verdict,
        good: bad.complement(),
        bad,
        exact: false,
        by_line: Vec::new(),
        summaries: Vec::new(),
        synthesis: None,
        witness: None,
        deadlock: None,
        lines: Lines::none(trace),
        statistics: Statistics {
            threads: trace.threads.len(),
            events: trace.events.len(),
            phases,
            ..Statistics::default()
        },
        known,
        variables: trace.variables.iter().map(|variable| variable.name.clone()).collect(),
    }
}

/// Each event once, although some have companions that watch a property.
fn origins_in_order(events: impl Iterator<Item = EventId>) -> Vec<EventId> {
    let mut kept: Vec<EventId> = Vec::new();
    for event in events {
        if kept.last() != Some(&event) {
            kept.push(event);
        }
    }
    kept
}

fn line_key(trace: &Trace, origin: EventId) -> LineKey {
    let site = trace.event(origin).site.map(|site| &trace.sites[site.index()]);
    let site = site.filter(|site| site.line > 0).map(|site| (site.file.clone(), site.line));
    let name = trace.labels.get(&origin).map(|label| label.to_string()).unwrap_or_default();
    let name = name.split('[').next().unwrap_or_default().trim();
    LineKey { site, stem: name.trim_end_matches(|c: char| c.is_ascii_digit()).into() }
}

fn summary_of_trace(summary: BugSummary, origin: impl Fn(EventId) -> EventId) -> BugSummary {
    let events = |events: Vec<EventId>| events.into_iter().map(&origin).collect();
    let atoms = summary
        .atoms
        .iter()
        .map(|atom| crate::formula::Atom::new(origin(atom.before), origin(atom.after)))
        .collect();
    BugSummary { first: events(summary.first), second: events(summary.second), atoms, ..summary }
}

/// The verdict; for a deadlock the events that the threads are stuck at.
fn judge(
    system: &mut System,
    found: &BadNeighbourhood,
    options: &Options,
) -> (Verdict, Option<Vec<EventId>>) {
    let limit = options.verification_states;
    let good = Search::new(system, &[], Goal::Good).run(limit);
    if let Some(reason) = found.incomplete {
        return (Verdict::Unknown(reason.to_string()), None);
    }
    let any_bad = !found.formula.clauses().is_empty();
    match (any_bad, good) {
        (true, Found::Run(_)) => (Verdict::Depends, None),
        (true, Found::Nothing) => (Verdict::AllBad, None),
        (_, Found::Unknown) => {
            (Verdict::Unknown("the search for a good interleaving was cut short".into()), None)
        }
        (false, good) => {
            let mut circular = |system: &System, state: &State| {
                (0..system.threads.len()).any(|thread| waits_for_itself(system, state, thread))
            };
            let stuck = Search::new(system, &[], Goal::Stuck).run_where(limit, &mut circular);
            match (stuck, good) {
                (Found::Run(Run { state, .. }), _) => {
                    let events = (0..system.threads.len())
                        .filter(|&thread| waits_for_itself(system, &state, thread))
                        .filter_map(|thread| system.next_step(&state, thread))
                        .map(|step| system.steps[step].events[0])
                        .collect();
                    (Verdict::Deadlock, Some(events))
                }
                (Found::Unknown, _) => {
                    (Verdict::Unknown("the search for deadlocks was cut short".into()), None)
                }
                (_, Found::Run(_)) => (Verdict::AllGood, None),
                _ => (Verdict::Infeasible, None),
            }
        }
    }
}

type CheckedRun = (Vec<EventId>, EventId, bool);

/// The failing run, if the independent validator accepts it.
fn checked_witness(
    ctp: &ConcurrentTraceProgram,
    system: &mut System,
    found: &BadNeighbourhood,
) -> Result<Option<CheckedRun>, String> {
    let Some(failing) = &found.failing else { return Ok(None) };
    let (events, event) = (failing.run.clone(), failing.event);
    let inputs = &failing.inputs;
    let mut closed = system.with_inputs(inputs);
    let value = |term, terms: &foretell_trace::TermStore| terms.constant_value(term).cloned();
    let initial: Vec<(VariableId, Value)> = ctp
        .variables
        .iter()
        .enumerate()
        .filter(|(_, variable)| variable.initial.is_none())
        .map(|(number, variable)| {
            let known = value(closed.initial_value(number), &closed.terms);
            (VariableId::from(number), known.unwrap_or_else(|| Value::zero(variable.sort)))
        })
        .collect();
    let choices = closed.chosen_values(&failing.steps, ctp);
    let witness = Witness { order: events.clone(), initial, choices };
    match validate(ctp, &witness) {
        Ok(run) if run.violated.contains(&event) => {
            Ok(Some((events, event, is_region_flag(ctp, event))))
        }
        Ok(_) => Err("the validator does not see the failure of the witness".to_string()),
        Err(rejection) => Err(format!("the validator does not accept the witness: {rejection}")),
    }
}

fn statistics(
    system: &System,
    ctp: &ConcurrentTraceProgram,
    work: Work,
    phases: Phases,
) -> Statistics {
    let shared = |variable: usize| ctp.variables[variable].scope == foretell_trace::Scope::Shared;
    let (mut pi_functions, mut choices) = (0usize, 0usize);
    for (event, accesses) in system.accesses.iter().enumerate() {
        for &variable in accesses.reads.iter().filter(|&&variable| shared(variable)) {
            pi_functions += 1;
            let thread = system.known.thread(EventId::from(event));
            choices += 1 + system
                .accesses
                .iter()
                .enumerate()
                .filter(|(other, accesses)| {
                    accesses.writes.contains(&variable)
                        && system.known.thread(EventId::from(*other)) != thread
                })
                .count();
        }
    }
    Statistics {
        threads: ctp.threads.iter().filter(|events| !events.is_empty()).count(),
        events: ctp.events.len(),
        pi_functions,
        pi_choices: if pi_functions == 0 { 0.0 } else { choices as f64 / pi_functions as f64 },
        work,
        phases,
    }
}
