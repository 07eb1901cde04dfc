//! The planning engine (paper 003): a predicted run that violates atomicity is a plan.
//!
//! [`goal`] is the language of goals, `machine` what events need and do, `search` the embedded
//! planner, [`pddl`] the same problem for any other planner, [`external`] runs one. Plans are found
//! for a short segment between two cut points (003 Theorem 2) that grows until there is one. What
//! contradicts `necessary` order is refused without a search. `engines` is the way in for the
//! command line, `order_goal` hands goals to the solver.
//!
//! Guaranteed: a plan is a feasible run (003 Lemma 1). Missed: runs in which a read before the last
//! event returns another value than recorded; the solver engine finds those.

mod compiled_goal;
mod engines;
pub mod external;
pub mod goal;
mod machine;
mod necessary;
mod order_goal;
pub mod pddl;
mod search;
mod wide_hash;

use std::path::Path;

use crate::limits::{MOST_SNAPSHOTS, SNAPSHOT_EVENTS};

use foretell_trace::{EventId, Trace};

pub use compiled_goal::CompiledGoal;
pub use engines::{Engine, EngineError, PlannerOptions, execute, predict};
use external::{ExternalAnswer, ExternalError};
use machine::State;
pub use machine::{Domain, Unplannable};
use necessary::Necessary;
pub use order_goal::order_goal;
use pddl::{Pddl, PddlError};
use search::{Found, Segment};

/// How to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Every read before the goal returns what it returned in the recorded run. Without it, only
    /// synchronisation is respected, as Penelope's own scheme does; such a run must be tried.
    pub with_data: bool,
    /// How many nodes a search may expand, or do as much work.
    pub budget: u64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { with_data: true, budget: 20_000 }
    }
}

/// What planning gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A run that reaches the goal.
    Plan(Plan),
    /// There is none.
    NoPlan,
    /// The budget was spent.
    Unknown,
}

/// A run that reaches the goal with its last event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// All events, from the start of the recorded run.
    pub order: Vec<EventId>,
    /// How many of them are the recorded run's own first events.
    pub cut: usize,
    /// Events of the recorded run from here on were not looked at.
    pub end: usize,
    /// The actions that were planned; what other threads cannot notice goes along.
    pub actions: Vec<EventId>,
}

/// A planning problem for other planners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The files.
    pub text: Pddl,
    bounds: (usize, usize),
}

/// Finds plans for one trace.
pub struct Planner {
    domain: Domain,
    necessary: Option<Necessary>,
    /// States of the recorded run, one every so many events.
    snapshots: Vec<State>,
    every: usize,
}

/// A segment is first this long before and after the goal's events, then four times as long, ...
const FIRST_MARGIN: usize = 64;

impl Planner {
    /// Compiles a recorded run.
    pub fn new(trace: &Trace) -> Result<Self, Unplannable> {
        let domain = Domain::new(trace)?;
        let total = domain.steps.len();
        let every = SNAPSHOT_EVENTS.max(total.div_ceil(MOST_SNAPSHOTS));
        let mut state = domain.initial();
        let mut snapshots = vec![state.clone()];
        for from in (0..total.saturating_sub(every)).step_by(every) {
            domain.replay(&mut state, EventId::from(from), EventId::from(from + every));
            snapshots.push(state.clone());
        }
        let necessary = Necessary::new(&domain);
        Ok(Self { domain, necessary, snapshots, every })
    }

    /// Looks for a run that reaches the goal.
    pub fn plan(&self, goal: &CompiledGoal, options: &PlanOptions) -> Outcome {
        let refuses = |table: &Necessary| table.refuses(&self.domain, goal);
        if options.with_data && self.necessary.as_ref().is_some_and(refuses) {
            return Outcome::NoPlan;
        }
        let mut goal = goal.clone();
        let mut budget = options.budget;
        let segments = self.segments(&goal);
        for (number, &bounds) in segments.iter().enumerate() {
            let segment = self.segment(&goal, bounds, options.with_data);
            let is_last = number + 1 == segments.len();
            // A search that goes on far beyond the length of its segment is lost in it.
            let share = budget.min(if is_last { budget } else { 64 + 2 * segment.len() as u64 });
            let mut left = share;
            let found = segment.search(&mut goal, &mut left);
            budget -= share - left;
            match found {
                Found::Plan(actions) => {
                    let order = self.whole_run(bounds.0, &actions, &goal);
                    return Outcome::Plan(Plan { order, cut: bounds.0, end: bounds.1, actions });
                }
                Found::None => {}
                Found::Budget if is_last => return Outcome::Unknown,
                Found::Budget => {}
            }
        }
        Outcome::NoPlan
    }

    /// The problem in PDDL: of the segment in which the embedded planner finds a plan, else of the
    /// whole run.
    pub fn pddl(&self, goal: &CompiledGoal, options: &PlanOptions) -> Result<Problem, PddlError> {
        let bounds = match self.plan(goal, options) {
            Outcome::Plan(plan) => (plan.cut, plan.end),
            Outcome::NoPlan | Outcome::Unknown => (0, self.domain.steps.len()),
        };
        let segment = self.segment(goal, bounds, options.with_data);
        let text = Pddl::new(&segment, &mut goal.clone())?;
        Ok(Problem { text, bounds })
    }

    /// Lets another planner solve the problem. Its plan is checked: what is no run that reaches the
    /// goal is no plan.
    pub fn ask(
        &self,
        problem: &Problem,
        goal: &CompiledGoal,
        options: &PlanOptions,
        command: &str,
        directory: &Path,
    ) -> Result<Result<Plan, String>, ExternalError> {
        Ok(match problem.text.ask(command, directory)? {
            ExternalAnswer::NoPlan(how) => Err(format!("the planner left no plan ({how})")),
            ExternalAnswer::Plan(actions) => {
                let (cut, end) = problem.bounds;
                let segment = self.segment(goal, problem.bounds, options.with_data);
                match segment.is_plan(&actions, &mut goal.clone()) {
                    true => {
                        let order = self.whole_run(cut, &actions, goal);
                        Ok(Plan { order, cut, end, actions })
                    }
                    false => Err("the planner's plan does not reach the goal".into()),
                }
            }
        })
    }

    /// The paper's names of the actions: `Ac1,2` is the second event of the first thread.
    pub fn names(&self, actions: &[EventId]) -> Vec<String> {
        let name = |event: &EventId| {
            let (thread, index) = self.domain.places[event.index()];
            format!("Ac{},{}", thread + 1, index + 1)
        };
        actions.iter().map(name).collect()
    }

    /// The cut points (003 Theorem 2): the events before the first bound run as recorded, those
    /// from the second on stay out. The last segment is the whole run.
    fn segments(&self, goal: &CompiledGoal) -> Vec<(usize, usize)> {
        let total = self.domain.steps.len();
        let first = goal.events().map(EventId::index).min().unwrap_or(0);
        let last = goal.events().map(EventId::index).max().unwrap_or(total);
        let mut segments = Vec::new();
        let mut margin = FIRST_MARGIN;
        while !goal.counts_steps() && (margin < first || last + margin < total) {
            segments.push((first.saturating_sub(margin), total.min(last + margin)));
            margin *= 4;
        }
        segments.push((0, total));
        segments
    }

    fn segment(&self, goal: &CompiledGoal, bounds: (usize, usize), with_data: bool) -> Segment<'_> {
        let (cut, end) = (EventId::from(bounds.0), EventId::from(bounds.1));
        let number = (bounds.0 / self.every).min(self.snapshots.len() - 1);
        let mut start = self.snapshots[number].clone();
        self.domain.replay(&mut start, EventId::from(number * self.every), cut);
        Segment::new(&self.domain, start, end, goal, with_data)
    }

    /// The recorded run up to the cut, then the actions, each with the events of its thread before
    /// it that were left out of the plan.
    fn whole_run(&self, cut: usize, actions: &[EventId], goal: &CompiledGoal) -> Vec<EventId> {
        let mut order: Vec<EventId> = (0..cut).map(EventId::from).collect();
        let mut done = vec![0; self.domain.chains.len()];
        for event in &order {
            done[self.domain.places[event.index()].0 as usize] += 1;
        }
        let mut advance = |order: &mut Vec<EventId>, event: EventId, including: bool| {
            let (thread, index) = self.domain.places[event.index()];
            let until = index as usize + usize::from(including);
            let from = done[thread as usize];
            if until > from {
                order.extend(&self.domain.chains[thread as usize][from..until]);
                done[thread as usize] = until;
            }
        };
        for &event in actions {
            advance(&mut order, event, true);
        }
        for event in goal.next_events() {
            advance(&mut order, event, false);
        }
        order
    }
}
