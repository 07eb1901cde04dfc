//! Goals in, verdicts out: instruments a CTP, encodes it once, and asks a solver about one goal
//! after the other.
//!
//! Values that goals speak of are made visible by *ghosts*: variables that nobody reads, assigned
//! in the same step. They change nothing about which runs are feasible, and no event gets another
//! number, so a witness is a witness of the CTP as it was.
//!
//! A solution is believed only after [`foretell_model::validate`] has executed it on the CTP without
//! ghosts and the goal has been evaluated on the states that it went through.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use foretell_model::cssa::Cssa;
use foretell_model::ctp::{Action, ConcurrentTraceProgram, CtpVariable, Role};
use foretell_model::must_order::MustOrder;
use foretell_model::slice::{Criterion, Slice, slice};
use foretell_model::validate::{Witness, validate};
use foretell_solve::dump::Dumping;
use foretell_solve::encode::{Encoding, Mode, Observed, encode};
use foretell_solve::problem::{OrderProblem, Pi};
use foretell_solve::{
    Answer, Backend, Budget, OrderSolver, SolveError, Statistics, UnknownReason, solver,
};
use foretell_trace::{EventId, Scope, Term, TermId, TermStore, ThreadId, Trace, Value, VariableId};

use crate::context::ContextBound;
use crate::finding::Reason;
use crate::goal::{END, Goal, Moment};
use crate::witness::shrink;

/// How many of several goals are asked about by themselves first.
const CONES: usize = 4;
/// For each of them; what is not found with this is asked again.
const CONE_BUDGET: Budget = Budget { conflicts: 2_000 };

/// What is known about a goal.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It can be reached; the witness was validated and shrunk. The number says which goal of those
    /// asked about holds.
    Possible(usize, Witness),
    /// It cannot.
    Impossible {
        /// In no interleaving; otherwise only not within the bound on context switches.
        in_all_interleavings: bool,
    },
    /// It was not decided.
    Unknown(Reason),
    /// The solver's solution is none: a bug of ours.
    Refused(String),
}

/// A CTP, encoded for some goals.
pub struct Engine<'a> {
    ctp: &'a ConcurrentTraceProgram,
    order: &'a MustOrder,
    /// What of it the goals depend on, with ghosts.
    part: Part,
    cssa: Cssa,
    encoding: Encoding,
    solver: Box<dyn OrderSolver>,
    mode: Mode,
    /// Ghosts as terms of the problem.
    values: HashMap<(Moment, VariableId), TermId>,
    bound: Option<(ContextBound, u32)>,
    budget: Budget,
    /// The program that answers, where it is not the solver inside foretell.
    foreign: Option<String>,
}

/// The events that are encoded, under numbers of their own.
struct Part {
    ctp: ConcurrentTraceProgram,
    slice: Option<(Slice, HashMap<EventId, EventId>)>,
}

impl Part {
    fn everything(ctp: ConcurrentTraceProgram) -> Self {
        Self { ctp, slice: None }
    }

    fn slice(
        ctp: ConcurrentTraceProgram,
        goals: &[&Goal],
        needed: &[(Moment, VariableId)],
        mode: Mode,
    ) -> Self {
        let mut criterion = Criterion::default();
        for &(moment, variable) in needed {
            match moment {
                Moment::Before(event) => criterion.events.push(event),
                Moment::End => criterion.variables.push(variable),
            }
        }
        for goal in goals {
            criterion.events.extend(goal.events());
        }
        criterion.events.sort_unstable();
        criterion.events.dedup();
        let mut slice = slice(&ctp, &criterion, mode);
        let kept = slice.kept.iter().enumerate();
        let numbers = kept.map(|(new, &old)| (old, EventId::from(new))).collect();
        let sliced = std::mem::replace(&mut slice.ctp, ctp);
        Self { ctp: sliced, slice: Some((slice, numbers)) }
    }

    /// The number of an event that a goal speaks of.
    fn number(&self, event: EventId) -> EventId {
        match &self.slice {
            Some((_, numbers)) => numbers[&event],
            None => event,
        }
    }

    fn expand(&self, whole: &ConcurrentTraceProgram, witness: Witness) -> Option<Witness> {
        match &self.slice {
            Some((slice, _)) => slice.expand(whole, &witness),
            None => Some(witness),
        }
    }
}

/// How to ask.
#[derive(Clone, Debug)]
pub struct Setting<'s> {
    /// Whole linearizations or prefixes.
    pub mode: Mode,
    /// Who answers.
    pub backend: &'s Backend,
    /// For each question.
    pub budget: Budget,
    /// At most so many context switches.
    pub context_switches: Option<u32>,
    /// No question is answered after it.
    pub deadline: Option<Instant>,
    /// Where to write the questions, if anywhere, and the trace that names their events.
    pub dump: Option<(&'s Path, &'s Trace)>,
}

impl<'a> Engine<'a> {
    /// Encodes what of the CTP these goals depend on.
    pub fn new<'g>(
        ctp: &'a ConcurrentTraceProgram,
        order: &'a MustOrder,
        goals: impl Iterator<Item = &'g Goal>,
        setting: &Setting<'_>,
    ) -> Result<Self, SolveError> {
        // What is left out would have to be put back without a context switch.
        Self::build(ctp, order, goals.collect(), setting, setting.context_switches.is_none())
    }

    /// Encodes the whole CTP, for these goals and later ones about any of its events and the same
    /// values.
    pub fn unsliced<'g>(
        ctp: &'a ConcurrentTraceProgram,
        order: &'a MustOrder,
        goals: impl Iterator<Item = &'g Goal>,
        setting: &Setting<'_>,
    ) -> Result<Self, SolveError> {
        Self::build(ctp, order, goals.collect(), setting, false)
    }

    fn build(
        ctp: &'a ConcurrentTraceProgram,
        order: &'a MustOrder,
        goals: Vec<&Goal>,
        setting: &Setting<'_>,
        sliced: bool,
    ) -> Result<Self, SolveError> {
        let mut needed: Vec<(Moment, VariableId)> =
            goals.iter().flat_map(|goal| goal.values.iter().copied()).collect();
        needed.sort_unstable();
        needed.dedup();
        let (instrumented, ghosts) = add_ghosts(ctp, &needed);
        let part = match sliced {
            true => Part::slice(instrumented, &goals, &needed, setting.mode),
            false => Part::everything(instrumented),
        };
        let cssa = Cssa::build(&part.ctp, order);
        let mut values: HashMap<(Moment, VariableId), TermId> = HashMap::new();
        for &(event, variable, ghost) in &ghosts {
            let definitions = &cssa.events[part.number(event).index()].definitions;
            let (_, value) = definitions
                .iter()
                .find(|(defined, _)| *defined == ghost)
                .expect("the event assigns its ghost");
            values.insert((Moment::Before(event), variable), *value);
        }
        let mut observed: Vec<TermId> = values.values().copied().collect();
        let at_end: Vec<VariableId> = needed
            .iter()
            .filter(|(moment, _)| *moment == Moment::End)
            .map(|&(_, variable)| variable)
            .collect();
        let definitions = definitions_of(&cssa, &at_end);
        observed.extend(definitions.values().flatten().map(|&(_, value)| value));
        let mut encoding = encode(&part.ctp, &cssa, setting.mode, Observed::Terms(&observed));
        for variable in at_end {
            let value = observe_end(&mut encoding, ctp, &cssa, variable, &definitions[&variable]);
            values.insert((Moment::End, variable), value);
        }
        let bound = setting.context_switches.map(|most| {
            let next = EventId::from(part.ctp.events.len() + usize::from(encoding.end.is_some()));
            let threads: Vec<Vec<EventId>> =
                part.ctp.threads.iter().filter(|chain| !chain.is_empty()).cloned().collect();
            (ContextBound::add(&mut encoding.problem, &threads, next, most), most)
        });
        encoding.problem.deadline = setting.deadline;
        let problem = std::mem::take(&mut encoding.problem);
        let solver = match setting.dump {
            None => solver(problem, setting.backend)?,
            Some((directory, trace)) => {
                let inner = solver(problem.clone(), setting.backend)?;
                let names = part.ctp.events.iter().map(|event| {
                    let origin = trace.event(event.origin);
                    let name = trace.event_name(event.origin);
                    match origin.site.map(|site| &trace.sites[site.index()]) {
                        Some(site) => {
                            format!("{name} {} {}:{}", origin.op.keyword(), site.file, site.line)
                        }
                        None => format!("{name} {}", origin.op.keyword()),
                    }
                });
                // A comment ends with its line.
                let names = names.map(|name| name.replace(char::is_control, " ")).collect();
                Box::new(Dumping::new(inner, OrderProblem { names, ..problem }, directory))
            }
        };
        Ok(Self {
            ctp,
            order,
            part,
            cssa,
            encoding,
            solver,
            mode: setting.mode,
            values,
            bound,
            budget: setting.budget,
            foreign: match setting.backend {
                Backend::Auto | Backend::Embedded => None,
                Backend::Z3 => Some("z3".into()),
                Backend::Command(command) => Some(command.clone()),
            },
        })
    }

    /// Can one of the goals be reached?
    pub fn ask(&mut self, goals: &[&Goal]) -> Verdict {
        let formulas: Vec<TermId> = goals.iter().map(|goal| self.formula(goal)).collect();
        let formula = self.solver.terms().or(&formulas);
        let Some((bound, most)) = self.bound.clone() else {
            for (goal, &formula) in goals.iter().zip(&formulas).take(CONES) {
                let Some(mut assumptions) = self.cone(goal) else { break };
                assumptions.push(formula);
                let answer = self.solver.check(&assumptions, CONE_BUDGET);
                if let Answer::Satisfiable(model) = answer {
                    return self.believe(goals, &model);
                }
            }
            return match self.solver.check(&[formula], self.budget) {
                Answer::Satisfiable(model) => self.believe(goals, &model),
                Answer::Unsatisfiable { .. } => Verdict::Impossible { in_all_interleavings: true },
                Answer::Unknown(reason) => Verdict::Unknown(reason_of(reason)),
            };
        };
        for switches in 0..=most {
            let [active, within] = bound.at_most(switches);
            match self.solver.check(&[formula, active, within], self.budget) {
                Answer::Satisfiable(model) => return self.believe(goals, &model),
                Answer::Unsatisfiable { core } if !bound.is_in(&core) => {
                    return Verdict::Impossible { in_all_interleavings: true };
                }
                Answer::Unsatisfiable { .. } => {}
                Answer::Unknown(reason) => return Verdict::Unknown(reason_of(reason)),
            }
        }
        // A core is not always the smallest one: try a proof that does without the bound.
        let answer = self.solver.check(&[formula], self.budget);
        let in_all_interleavings = matches!(answer, Answer::Unsatisfiable { .. });
        Verdict::Impossible { in_all_interleavings }
    }

    /// The terms of the problem, to make formulas of those of goals ([`Engine::formula`]).
    pub fn terms(&mut self) -> &mut TermStore {
        self.solver.terms()
    }

    /// Is the formula known to hold of nothing?
    pub fn is_impossible(&mut self, formula: TermId) -> bool {
        matches!(self.solver.check(&[formula], self.budget), Answer::Unsatisfiable { .. })
    }

    /// Can the formula, which says that all goals are reached, hold? The goals are made when there is
    /// a solution to check.
    pub fn ask_for(&mut self, formula: TermId, goals: impl FnOnce() -> Vec<Goal>) -> Verdict {
        match self.solver.check(&[formula], self.budget) {
            Answer::Satisfiable(model) => {
                let goals = goals();
                self.believe(&[&Goal::all(&goals)], &model)
            }
            Answer::Unsatisfiable { .. } => Verdict::Impossible { in_all_interleavings: true },
            Answer::Unknown(reason) => Verdict::Unknown(reason_of(reason)),
        }
    }

    /// Can one of the goals be reached? They are many, so none is tried by itself first. `formulas` are
    /// theirs, by [`Engine::formula`].
    pub(crate) fn ask_together(&mut self, goals: &[&Goal], formulas: &[TermId]) -> Verdict {
        let formula = self.solver.terms().or(formulas);
        match self.solver.check(&[formula], self.budget) {
            Answer::Satisfiable(model) => self.believe(goals, &model),
            Answer::Unsatisfiable { .. } => Verdict::Impossible { in_all_interleavings: true },
            Answer::Unknown(reason) => Verdict::Unknown(reason_of(reason)),
        }
    }

    /// That nothing takes place but what has to come before the goal's events, and the releases of
    /// locks that are held then: most of what can go
    /// wrong at all does so without the other threads, and this is found at once. `None` where the
    /// goal is about more than that.
    fn cone(&mut self, goal: &Goal) -> Option<Vec<TermId>> {
        let end = self.encoding.end?;
        if goal.values.iter().any(|(moment, _)| *moment == Moment::End) {
            return None;
        }
        let mut extent = vec![0; self.ctp.threads.len()];
        for event in goal.events() {
            let (thread, origin) = (self.ctp.event(event).thread, self.ctp.event(event).origin);
            for (other, extent) in extent.iter_mut().enumerate() {
                let other = ThreadId::from(other);
                let count = self.order.count_before(other, origin);
                *extent = (*extent).max(count + u32::from(other == thread));
            }
        }
        let (order, part) = (self.order, &self.part.ctp);
        let index = |event: EventId| {
            let described = self.ctp.event(event);
            order.count_before(described.thread, described.origin)
        };
        // Locks are given back, because another thread may need them.
        loop {
            let mut grown = false;
            for section in &self.ctp.sections {
                let extent = &mut extent[section.thread.index()];
                let Some(release) = section.release.map(index) else { continue };
                if section.acquire.is_none_or(|acquire| index(acquire) < *extent)
                    && *extent > 0
                    && release >= *extent
                {
                    *extent = release + 1;
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        let beyond = part.threads.iter().zip(extent).filter_map(|(chain, extent)| {
            chain.iter().copied().find(|&event| {
                let described = part.event(event);
                order.count_before(described.thread, described.origin) >= extent
            })
        });
        let terms = self.solver.terms();
        Some(beyond.map(|event| terms.before(end, event)).collect())
    }

    /// How many events were encoded.
    pub fn events(&self) -> usize {
        self.part.ctp.events.len()
    }

    /// What solving cost so far.
    pub fn statistics(&self) -> Statistics {
        self.solver.statistics()
    }

    /// The goal's formula over the terms of the problem.
    pub fn formula(&mut self, goal: &Goal) -> TermId {
        let Self { solver, values, encoding, part, .. } = self;
        let end = encoding.end;
        let mut replace = |terms: &mut TermStore, leaf: TermId| match *goal.terms.term(leaf) {
            Term::Symbol(symbol) => values[&goal.values[symbol.index()]],
            Term::Before(first, second) => match (end, first == END, second == END) {
                (_, false, false) => terms.before(part.number(first), part.number(second)),
                (None, first_is_end, _) => terms.bool(!first_is_end),
                (Some(end), true, _) => terms.before(end, part.number(second)),
                (Some(end), _, true) => terms.before(part.number(first), end),
            },
            ref other => unreachable!("{other:?} in a goal"),
        };
        solver.terms().import(&goal.terms, goal.formula, &mut HashMap::new(), &mut replace)
    }

    /// Executes the solution; what the validator refuses is never shown.
    fn believe(&self, goals: &[&Goal], model: &foretell_solve::Model) -> Verdict {
        let mut witness = self.encoding.decode(&self.part.ctp, &self.cssa, model);
        // Separators of the context bound are no events.
        witness.order.retain(|event| event.index() < self.part.ctp.events.len());
        let Some(witness) = self.part.expand(self.ctp, witness) else {
            return self.refuse("the threads' events are not in their order".into());
        };
        let run = match validate(self.ctp, &witness) {
            Ok(run) => run,
            Err(rejection) => return self.refuse(rejection.to_string()),
        };
        let holds = |goal: &&Goal| goal.holds(&witness, &run) == Some(true);
        match goals.iter().position(holds) {
            Some(number) => {
                let whole = self.mode == Mode::Whole;
                let shrunk = shrink(self.ctp, goals[number], witness, &run, whole);
                let shrunk = without_failures(self.ctp, goals[number], shrunk);
                Verdict::Possible(number, shrunk)
            }
            None => self.refuse("the goal does not hold of it".into()),
        }
    }

    /// A solution that is none: of our own solver it is a bug of ours, and another program may say
    /// what it likes.
    fn refuse(&self, why: String) -> Verdict {
        match &self.foreign {
            Some(command) => Verdict::Unknown(Reason::WrongSolution {
                solver: command.to_string(),
                why: why.to_string(),
            }),
            None => Verdict::Refused(format!("the validator refuses a solution: {why}")),
        }
    }
}

/// The witness without assertions that fail and that the goal does not ask for. Nothing of their
/// threads comes after them ([`foretell_model::assertions`]), so nothing depends on them.
fn without_failures(ctp: &ConcurrentTraceProgram, goal: &Goal, witness: Witness) -> Witness {
    let Ok(run) = validate(ctp, &witness) else { return witness };
    let asked = goal.events();
    let mut good = witness.clone();
    good.order.retain(|event| !run.violated.contains(event) || asked.contains(event));
    match validate(ctp, &good) {
        Ok(run) if goal.holds(&good, &run) == Some(true) => good,
        _ => witness,
    }
}

/// Why the solver gave up.
fn reason_of(reason: UnknownReason) -> Reason {
    match reason {
        UnknownReason::Late => Reason::NotAsked,
        UnknownReason::Budget => Reason::Budget,
        UnknownReason::Unsupported(what) => Reason::Unsupported(what),
    }
}

/// The CTP with a ghost for each value before an event: event, variable, ghost.
fn add_ghosts(
    ctp: &ConcurrentTraceProgram,
    needed: &[(Moment, VariableId)],
) -> (ConcurrentTraceProgram, Vec<(EventId, VariableId, VariableId)>) {
    let mut instrumented = ctp.clone();
    let mut ghosts = Vec::new();
    for &(moment, variable) in needed {
        let Moment::Before(event) = moment else { continue };
        let described = &ctp.variables[variable.index()];
        let ghost = VariableId::from(instrumented.variables.len());
        instrumented.variables.push(CtpVariable {
            name: format!("{}@{}", described.name, event.0).into(),
            sort: described.sort,
            scope: Scope::Shared,
            initial: Some(Value::zero(described.sort)),
            role: Role::Data,
        });
        let value = instrumented.terms.variable(variable, described.sort);
        let action = &mut instrumented.events[event.index()].action;
        if let Action::Assert { .. } = action {
            // The goals say what an assertion demands; here it only observes.
            let guard = instrumented.terms.bool(true);
            *action = Action::Guarded { guard, assignments: Vec::new() };
        }
        match action {
            Action::Guarded { assignments, .. } => assignments.push((ghost, value)),
            Action::Transition { predicate, changed } => {
                let after = instrumented.terms.primed(ghost, described.sort);
                let keeps = instrumented.terms.build(foretell_trace::Operator::Eq, &[after, value]);
                *predicate = instrumented.terms.and(&[*predicate, keeps]);
                changed.push(ghost);
            }
            Action::Assert { .. } => unreachable!("turned into an assignment above"),
        }
        ghosts.push((event, variable, ghost));
    }
    (instrumented, ghosts)
}

type Definitions = HashMap<VariableId, Vec<(EventId, TermId)>>;

/// The definitions of some variables.
fn definitions_of(cssa: &Cssa, variables: &[VariableId]) -> Definitions {
    let mut definitions: Definitions =
        variables.iter().map(|&variable| (variable, Vec::new())).collect();
    for (number, event) in cssa.events.iter().enumerate() {
        for (variable, value) in &event.definitions {
            if let Some(known) = definitions.get_mut(variable) {
                known.push((EventId::from(number), *value));
            }
        }
    }
    definitions
}

/// The value of a variable at the end of the prefix: a π-function of END. Definitions that do not
/// take place come after END and are not seen.
fn observe_end(
    encoding: &mut Encoding,
    ctp: &ConcurrentTraceProgram,
    cssa: &Cssa,
    variable: VariableId,
    definitions: &[(EventId, TermId)],
) -> TermId {
    let initial = cssa.initial[variable.index()];
    let Some(end) = encoding.end else { return initial };
    if definitions.is_empty() {
        return initial;
    }
    let described = &ctp.variables[variable.index()];
    let terms = &mut encoding.problem.terms;
    let symbol = terms.fresh_symbol(format!("{}@END", described.name), described.sort);
    let active = terms.bool(true);
    let mut choices = vec![(None, initial)];
    choices.extend(definitions.iter().map(|&(event, value)| (Some(event), value)));
    let interfering = definitions.iter().map(|&(event, _)| event).collect();
    encoding.problem.pis.push(Pi { event: end, active, symbol, choices, interfering });
    symbol
}
