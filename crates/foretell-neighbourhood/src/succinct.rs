//! Succinct sound over-approximations of the bad and the good neighbourhood (001 Algorithm 2).
//!
//! An interleaving is executed event by event until an assertion fails (bad), a guard does not
//! hold (infeasible) or the end is reached (good); with free inputs it is bad if some input makes
//! it bad, and good if some input completes it and under none does an assertion fail (whatever
//! other threads are blocked by then). The formula contains every bad interleaving and no good one.
//!
//! Each failing run gives `DF ∪ ADF`, which is then reduced to a minimal set that no good run
//! satisfies: first for all inputs at once; where that cannot be (the failure depends on the inputs),
//! for the inputs of the run, so that under them an assertion fails in every interleaving. These are
//! the two rounds of the paper in the opposite order, which saves the first where the second succeeds.

mod oracle;

use std::collections::HashSet;

use foretell_trace::EventId;

use crate::engine::cover::{Cover, Coverage};
use crate::engine::explore::{Found, Goal, Run, Search, events_of};
use crate::engine::flow;
use crate::engine::inputs::Assignment;
use crate::engine::system::{StepId, System};
use crate::formula::{Atom, HbFormula, NormalForm};
use crate::lines::Lines;
pub(crate) use oracle::Oracle;

/// How much work may be done. States and steps, not seconds: the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States visited by one search.
    pub states_per_search: u64,
    /// Steps of the search for all bad interleavings.
    pub steps: u64,
    /// Disjuncts.
    pub disjuncts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states_per_search: 2_000_000, steps: 20_000_000, disjuncts: 20_000 }
    }
}

/// What the computation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Failing runs that were generalised (the paper's iterations).
    pub iterations: usize,
    /// Questions "is there a good run under these constraints?".
    pub questions: u64,
    /// Of those, answered by a good run that was known.
    pub by_known_run: u64,
    /// Of those, answered by the abstract run.
    pub by_abstract_run: u64,
    /// Of those, answered by exploration.
    pub by_exploration: u64,
    /// States and steps that explorations visited.
    pub visited: u64,
    /// Questions about inputs that went to a solver.
    pub solver_calls: u64,
}

impl Work {
    fn add(&mut self, more: &Work) {
        self.questions += more.questions;
        self.by_known_run += more.by_known_run;
        self.by_abstract_run += more.by_abstract_run;
        self.by_exploration += more.by_exploration;
        self.visited += more.visited;
    }
}

/// The bad neighbourhood as far as it was computed.
#[derive(Clone, Debug)]
pub(crate) struct BadNeighbourhood {
    pub(crate) formula: HbFormula,
    /// Why bad interleavings may be missing.
    pub(crate) incomplete: Option<&'static str>,
    pub(crate) work: Work,
    /// One failing run.
    pub(crate) failing: Option<FailingRun>,
}

/// A failing run with the inputs that make it fail.
#[derive(Clone, Debug)]
pub(crate) struct FailingRun {
    /// Up to and including the assertion.
    pub(crate) run: Vec<EventId>,
    pub(crate) event: EventId,
    pub(crate) steps: Vec<StepId>,
    pub(crate) inputs: Assignment,
}

impl FailingRun {
    pub(crate) fn new(system: &mut System, run: &Run) -> Option<Self> {
        let event = run.failure.as_ref()?.event;
        let inputs = run_inputs(system, run);
        Some(Self { run: run_up_to(system, run, event), event, steps: run.steps.clone(), inputs })
    }
}

/// Makes a disjunct of a failing run.
pub(crate) struct Generaliser {
    good: Oracle,
    fixed: Oracle,
    limits: Limits,
    iterations: usize,
}

impl Generaliser {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            good: Oracle::new(Goal::Good, limits),
            fixed: Oracle::new(Goal::NotFailing, limits),
            limits: *limits,
            iterations: 0,
        }
    }

    fn disjunct(&mut self, system: &mut System, run: &Run) -> Vec<Atom> {
        self.iterations += 1;
        let failure = run.failure.as_ref().expect("a failing run");
        let events = run_up_to(system, run, failure.event);
        let atoms = flow::constraints(system, &events, failure.event);
        if self.good.excludes(system, &atoms) {
            return self.good.minimise(system, &atoms);
        }
        self.for_these_inputs(system, run, &atoms)
    }

    /// The round with fixed inputs. Where the inputs that the assertion depends on have no say in
    /// any guard, only those are fixed, and no good run may be left: a good run with other inputs
    /// would fail with these. Else all are fixed, and an assertion must fail in every interleaving.
    fn for_these_inputs(&mut self, system: &mut System, run: &Run, flow: &[Atom]) -> Vec<Atom> {
        let inputs = run_inputs(system, run);
        let failing = run.failure.as_ref().expect("a failing run").event;
        if let Some(decisive) = system.inputs_of_assertion_only(&run.steps, failing) {
            let mut some = inputs.clone();
            some.retain(|symbol, _| decisive.contains(symbol));
            let mut fixed = system.with_some_inputs(&some);
            let mut oracle = Oracle::new(Goal::Good, &self.limits);
            if oracle.excludes(&mut fixed, flow) {
                let atoms = oracle.minimise(&mut fixed, flow);
                self.fixed.work.add(&oracle.work);
                return atoms;
            }
        }
        let mut closed = system.with_inputs(&inputs);
        self.fixed.forget(); // runs of other inputs say nothing here
        self.fixed.minimise(&mut closed, flow)
    }

    fn work(&self) -> Work {
        let mut work = self.good.work;
        work.add(&self.fixed.work);
        work.iterations = self.iterations;
        work
    }
}

fn run_up_to(system: &System, run: &Run, failing: EventId) -> Vec<EventId> {
    let mut events = events_of(system, &run.steps);
    if let Some(end) = events.iter().position(|&event| event == failing) {
        events.truncate(end + 1);
    }
    events
}

/// Inputs that make the run fail as it did.
pub(crate) fn run_inputs(system: &mut System, run: &Run) -> Assignment {
    let failing = run.failure.as_ref().map(|failure| failure.event);
    let condition = system.run_condition(&run.steps, failing);
    system.inputs.solution(&system.terms, condition).unwrap_or_default()
}

/// Constraints under which every interleaving fails as the run does: dependent events of the run
/// keep their order, and what the run had not done comes after the failure (001 Algorithm 1, with
/// the order of independent events left open).
pub(crate) fn exact_constraints(
    system: &System,
    events: &[EventId],
    failing: EventId,
) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut done = vec![false; system.known.len()];
    for (at, &event) in events.iter().enumerate() {
        done[event.index()] = true;
        for &earlier in &events[..at] {
            let atom = Atom::new(earlier, event);
            if !system.known.implies(atom) && system.dependent(earlier, event) {
                atoms.push(atom);
            }
        }
    }
    // the rest of the failing step runs with it
    for &event in &system.steps[system.step_of[failing.index()]].events {
        done[event.index()] = true;
    }
    for steps in &system.threads {
        let next = steps
            .iter()
            .flat_map(|&step| system.steps[step].events.iter().copied())
            .find(|event| !done[event.index()]);
        if let Some(next) = next {
            let atom = Atom::new(failing, next);
            if !system.known.implies(atom) {
                atoms.push(atom);
            }
        }
    }
    system.known.simplify_conjunction(&atoms).unwrap_or(atoms)
}

/// How many combinations of places there are; decides how bad runs are enumerated.
pub(crate) fn place_combinations(system: &System) -> u64 {
    system.threads.iter().fold(1u64, |product, steps| {
        let visible = steps.iter().filter(|&&step| system.steps[step].visible).count() as u64;
        product.saturating_mul(visible + 1)
    })
}

/// Above this, bad runs are enumerated by excluding disjuncts with partial-order reduction.
const SMALL: u64 = 60_000;

/// All bad interleavings as a disjunction of what `generalise` makes of each failing run: a disjunct
/// that holds of the run, and others that may come with it.
pub(crate) fn enumerate(
    system: &mut System,
    limits: &Limits,
    given: &[Vec<Atom>],
    mut generalise: impl FnMut(&mut System, &Run) -> Option<Vec<Vec<Atom>>>,
) -> (Option<&'static str>, u64) {
    if place_combinations(system) <= SMALL || system.threads.len() <= 2 {
        let nothing = vec![None; system.steps.len()];
        let mut cover = Cover::new(system);
        for atoms in given {
            cover.add(atoms, &nothing);
        }
        let coverage = cover.run(limits.steps, generalise);
        let incomplete = match coverage {
            Coverage::Complete => None,
            Coverage::Budget => Some("the search for bad interleavings used up its budget"),
            Coverage::Undecided => Some("a condition over the inputs was not decided"),
            Coverage::Stopped => Some("the formula grew beyond its budget"),
        };
        return (incomplete, cover.visited);
    }
    let mut disjuncts: Vec<Vec<Atom>> = given.to_vec();
    let mut visited = 0;
    let mut seen: HashSet<Vec<Atom>> = HashSet::new();
    let mut queue: Vec<Vec<Atom>> = vec![Vec::new()];
    while let Some(excluded) = queue.pop() {
        if visited > limits.steps {
            return (Some("the search for bad interleavings used up its budget"), visited);
        }
        let mut search = Search::new(system, &excluded, Goal::Bad);
        let found = search.run(limits.states_per_search);
        visited += search.visited;
        let run = match found {
            Found::Nothing => continue,
            Found::Unknown => {
                return (Some("the search for bad interleavings used up its budget"), visited);
            }
            Found::Run(run) => run,
        };
        let failing = run.failure.as_ref().expect("a failing run").event;
        let events = run_up_to(system, &run, failing);
        let mut place = vec![usize::MAX; system.known.len()];
        for (at, event) in events.iter().enumerate() {
            place[event.index()] = at;
        }
        let holds = |atom: &Atom| place[atom.before.index()] < place[atom.after.index()];
        let covering = disjuncts.iter().find(|atoms| atoms.iter().all(holds)).cloned();
        let disjunct = match covering {
            Some(disjunct) => disjunct,
            None => {
                let Some(new) = generalise(system, &run) else {
                    return (Some("the formula grew beyond its budget"), visited);
                };
                let first = new[0].clone();
                disjuncts.extend(new);
                first
            }
        };
        for atom in disjunct {
            let mut more = excluded.clone();
            more.push(atom.negated());
            if let Some(simple) = system.known.simplify_conjunction(&more)
                && seen.insert(simple.clone())
            {
                queue.push(simple);
            }
        }
    }
    (None, visited)
}

/// Algorithm 2.
pub(crate) fn bad_neighbourhood(
    system: &mut System,
    lines: &Lines,
    limits: &Limits,
) -> BadNeighbourhood {
    let mut generaliser = Generaliser::new(limits);
    let mut disjuncts: Vec<Vec<Atom>> = Vec::new();
    let mut failing = None;
    let (incomplete, visited) = enumerate(system, limits, &[], |system, run| {
        if disjuncts.len() >= limits.disjuncts || generaliser.work().visited > limits.steps {
            return None;
        }
        if disjuncts.is_empty() {
            generaliser.good.explore(system, &[], limits.states_per_search);
        }
        let atoms = generaliser.disjunct(system, run);
        if failing.is_none() {
            failing = FailingRun::new(system, run);
        }
        let mut new = vec![atoms];
        let others = generaliser.in_other_iterations(system, lines, &new[0], &disjuncts);
        new.extend(others);
        disjuncts.extend(new.iter().cloned());
        Some(new)
    });
    let plain = HbFormula::new(NormalForm::Disjunctive, disjuncts.clone(), &system.known);
    let mut formula = plain;
    if system.is_closed() || generaliser.fixed.work.questions == 0 {
        formula = generaliser.improve(system, formula, incomplete.is_none());
    }
    let mut work = generaliser.work();
    work.visited += visited;
    work.solver_calls = system.inputs.solver_calls;
    BadNeighbourhood { formula, incomplete, work, failing }
}

/// Formulas of at most so many disjuncts are tried with weaker ones.
const WEAKENED_DISJUNCTS: usize = 64;

/// Redundant disjuncts are looked for in formulas of at most so many.
const PRUNED_DISJUNCTS: usize = 40;

impl Generaliser {
    /// What is wrong in one iteration of a loop is mostly wrong in the others: the disjunct moved to
    /// other iterations, each thread's by one number, where that is quickly seen to be right.
    fn in_other_iterations(
        &mut self,
        system: &mut System,
        lines: &Lines,
        atoms: &[Atom],
        known: &[Vec<Atom>],
    ) -> Vec<Vec<Atom>> {
        let mut threads: Vec<usize> = atoms
            .iter()
            .flat_map(|atom| [atom.before, atom.after])
            .map(|event| system.known.thread(event))
            .collect();
        threads.sort_unstable();
        threads.dedup();
        let rounds = |thread: usize| {
            let of_thread = atoms
                .iter()
                .flat_map(|atom| [atom.before, atom.after])
                .filter(|&event| system.known.thread(event) == thread);
            of_thread.map(|event| lines.events(lines.line(event)).len()).min().unwrap_or(1)
        };
        let counts: Vec<usize> = threads.iter().map(|&thread| rounds(thread)).collect();
        if threads.len() != 2 || counts.iter().all(|&count| count < 2) || !system.is_closed() {
            return Vec::new();
        }
        let moved = |system: &System, shifts: [i64; 2]| -> Option<Vec<Atom>> {
            let event = |event: EventId| -> Option<EventId> {
                let shift = match system.known.thread(event) == threads[0] {
                    true => shifts[0],
                    false => shifts[1],
                };
                let of_line = lines.events(lines.line(event));
                let place = of_line.iter().position(|&other| other == event)?;
                let place = usize::try_from(place as i64 + shift).ok()?;
                of_line.get(place).copied()
            };
            let moved =
                atoms.iter().map(|atom| Some(Atom::new(event(atom.before)?, event(atom.after)?)));
            let moved: Vec<Atom> = moved.collect::<Option<_>>()?;
            system.known.simplify_conjunction(&moved).filter(|simple| simple.len() == atoms.len())
        };
        let seen: HashSet<&[Atom]> = known.iter().map(Vec::as_slice).collect();
        let mut new = Vec::new();
        let (one, two) = (counts[0] as i64, counts[1] as i64);
        for first in 1 - one..one {
            for second in 1 - two..two {
                if (first, second) == (0, 0) {
                    continue;
                }
                let Some(candidate) = moved(system, [first, second]) else { continue };
                if !seen.contains(candidate.as_slice())
                    && self.good.excludes_cheaply(system, &candidate)
                {
                    new.push(candidate);
                }
            }
        }
        new
    }

    /// The weakened formula where it has fewer disjuncts, without disjuncts that others cover.
    fn improve(&mut self, system: &mut System, formula: HbFormula, complete: bool) -> HbFormula {
        let mut best = formula;
        if (2..=WEAKENED_DISJUNCTS).contains(&best.clauses().len()) {
            let weaker = self.weakened(system, &best);
            if weaker.clauses().len() < best.clauses().len() {
                best = weaker;
            }
        }
        if complete && (2..=PRUNED_DISJUNCTS).contains(&best.clauses().len()) {
            let mut clauses = best.clauses().to_vec();
            let mut at = 0;
            while at < clauses.len() && clauses.len() > 1 {
                let clause = clauses.remove(at);
                let (missing, visited) = enumerate(system, &self.limits, &clauses, |_, _| None);
                self.good.work.visited += visited;
                if missing.is_some() {
                    clauses.insert(at, clause);
                    at += 1;
                }
            }
            best = HbFormula::new(NormalForm::Disjunctive, clauses, &system.known);
        }
        best
    }

    /// Every disjunct as weak as it can be.
    pub(crate) fn weakened(&mut self, system: &mut System, formula: &HbFormula) -> HbFormula {
        let clauses = formula
            .clauses()
            .iter()
            .map(|clause| {
                let weaker = self.good.weaken(system, clause);
                self.good.minimise(system, &weaker)
            })
            .collect();
        HbFormula::new(NormalForm::Disjunctive, clauses, &system.known)
    }
}
