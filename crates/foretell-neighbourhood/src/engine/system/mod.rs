//! A concurrent trace program as a transition system that can be run step by step.
//!
//! A *step* is one event, or all events of an atomic section. A state has each thread's place and
//! each variable's value (a term over the inputs, nearly always a constant). Values that nobody
//! reads any more are forgotten, so that states which differ only in the past are one state.
//! Assignments that flow into no guard and no assertion are left out, and steps that touch nothing
//! another thread touches are taken at once ([`Step::visible`]).

mod initial;
mod program;
mod runs;
mod state;
mod steps;
mod transition;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use fixedbitset::FixedBitSet;
use foretell_model::ctp::{ConcurrentTraceProgram, Role};
use foretell_trace::{EventId, SymbolId, Term, TermId, TermStore, Value};
use rustc_hash::FxHashMap;

use self::initial::Input;
use self::program::{Accesses, Program};
pub(crate) use self::state::State;
pub(crate) use self::steps::{Step, StepId};
pub(crate) use self::transition::{Failure, Outcome, Taken};
use super::inputs::{Assignment, Inputs, SolverFactory};
use super::symbolic;
use crate::formula::{Atom, KnownOrder};

/// The transition system.
pub(crate) struct System {
    pub(crate) terms: TermStore,
    pub(crate) threads: Vec<Vec<StepId>>,
    pub(crate) steps: Vec<Step>,
    pub(crate) step_of: Vec<StepId>,
    pub(crate) known: KnownOrder,
    /// What each event reads and writes of the program's variables, for summaries and data flow.
    pub(crate) accesses: Vec<Accesses>,
    pub(crate) variable_count: usize,
    pub(crate) inputs: Inputs,
    factory: SolverFactory,
    programs: Vec<Program>,
    /// Steps that must have been taken before, by fixed orders.
    pub(crate) predecessors: Vec<Vec<StepId>>,
    initial: Vec<TermId>,
    condition: TermId,
    choices: HashMap<(EventId, usize), TermId>,
    /// What the input symbols stand for.
    pub(crate) input_names: Vec<(SymbolId, Input)>,
    /// By thread and place: variables that the thread reads before it writes them.
    live: Vec<Vec<FixedBitSet>>,
    /// By thread and place: what steps from there on read and write of shared variables.
    pub(crate) future_reads: Vec<Vec<FixedBitSet>>,
    pub(crate) future_writes: Vec<Vec<FixedBitSet>>,
    /// By step: what it does when it reads these values.
    cache: Vec<FxHashMap<Box<[TermId]>, Rc<Outcome>>>,
    /// By variable and thread: the steps that write it, in program order.
    pub(crate) writers: Vec<Vec<Vec<StepId>>>,
    /// By thread: the place after its last assertion.
    pub(crate) last_assertion: Vec<usize>,
    /// Room for a key, so that looking one up costs no allocation.
    key: Vec<TermId>,
}

impl System {
    /// The system of a program, with all inputs free that the program leaves free.
    pub(crate) fn new(ctp: &ConcurrentTraceProgram, factory: SolverFactory) -> Self {
        let mut terms = ctp.terms.clone();
        let mut programs = Vec::with_capacity(ctp.events.len());
        let mut accesses = Vec::with_capacity(ctp.events.len());
        for event in &ctp.events {
            let (program, access) = program::compile(&mut terms, &event.action);
            programs.push(program);
            accesses.push(access);
        }
        let count = ctp.variables.len();
        let relevant = program::relevant_variables(&terms, &programs, count);
        for program in &mut programs {
            if let Program::Guarded { assignments, chosen, .. } = program {
                assignments.retain(|&(variable, _)| relevant.contains(variable));
                chosen.retain(|&variable| relevant.contains(variable));
            }
        }
        let (threads, mut steps, step_of) = steps::make_steps(ctp);
        for step in &mut steps {
            let mut written = FixedBitSet::with_capacity(count);
            let mut reads = BTreeSet::new();
            for event in &step.events {
                let (event_reads, event_writes) =
                    program::effects(&terms, &programs[event.index()]);
                reads.extend(event_reads.into_iter().filter(|&v| !written.contains(v)));
                event_writes.iter().for_each(|&variable| written.insert(variable));
                step.asserts |= matches!(programs[event.index()], Program::Assert { .. });
            }
            step.reads = reads.into_iter().collect();
            step.writes = written.ones().collect();
        }
        steps::mark_shared(&mut steps, count, threads.len());
        let mut predecessors = vec![Vec::new(); steps.len()];
        for &(before, after) in &ctp.orders {
            let (a, b) = (step_of[before.index()], step_of[after.index()]);
            if a != b && steps[a].thread != steps[b].thread {
                predecessors[b].push(a);
                steps[a].visible = true;
                steps[b].visible = true;
            }
        }
        let mut system = Self {
            known: KnownOrder::new(&ctp.threads, &ctp.orders),
            terms,
            threads,
            steps,
            step_of,
            accesses,
            variable_count: count,
            inputs: Inputs::new(factory),
            factory,
            programs,
            predecessors,
            initial: Vec::new(),
            condition: TermId(0),
            choices: HashMap::new(),
            input_names: Vec::new(),
            live: Vec::new(),
            future_reads: Vec::new(),
            future_writes: Vec::new(),
            cache: Vec::new(),
            writers: Vec::new(),
            last_assertion: Vec::new(),
            key: Vec::new(),
        };
        system.cache = system.steps.iter().map(|_| FxHashMap::default()).collect();
        system.look_ahead();
        system.name_inputs(ctp);
        system
    }

    /// The same system with every input fixed; inputs that are not named are zero.
    pub(crate) fn with_inputs(&self, assignment: &Assignment) -> Self {
        let mut all = assignment.clone();
        for (number, _) in self.input_names.iter().enumerate() {
            let symbol = self.input_names[number].0;
            all.entry(symbol).or_insert_with(|| Value::zero(self.terms.symbol(symbol).sort));
        }
        let mut closed = self.with_some_inputs(&all);
        closed.input_names.clear();
        closed
    }

    /// The same system with these inputs fixed.
    pub(crate) fn with_some_inputs(&self, assignment: &Assignment) -> Self {
        let mut terms = self.terms.clone();
        let fix = |term: TermId, terms: &mut TermStore| {
            let symbols = terms.leaves(term);
            let mut values = HashMap::new();
            for leaf in symbols {
                if let Term::Symbol(symbol) = *terms.term(leaf)
                    && let Some(value) = assignment.get(&symbol)
                {
                    values.insert(symbol, terms.constant(value.clone()));
                }
            }
            symbolic::evaluate(terms, term, &mut |leaf| match leaf {
                Term::Symbol(symbol) => values.get(symbol).copied(),
                _ => None,
            })
        };
        let initial = self.initial.iter().map(|&term| fix(term, &mut terms)).collect();
        let condition = fix(self.condition, &mut terms);
        let choices =
            self.choices.iter().map(|(&key, &term)| (key, fix(term, &mut terms))).collect();
        Self {
            terms,
            initial,
            condition,
            choices,
            input_names: self
                .input_names
                .iter()
                .filter(|(symbol, _)| !assignment.contains_key(symbol))
                .copied()
                .collect(),
            inputs: Inputs::new(self.factory),
            cache: self.steps.iter().map(|_| FxHashMap::default()).collect(),
            writers: self.writers.clone(),
            last_assertion: self.last_assertion.clone(),
            key: Vec::new(),
            threads: self.threads.clone(),
            steps: self.steps.clone(),
            step_of: self.step_of.clone(),
            known: self.known.clone(),
            accesses: self.accesses.clone(),
            variable_count: self.variable_count,
            factory: self.factory,
            programs: self.programs.clone(),
            predecessors: self.predecessors.clone(),
            live: self.live.clone(),
            future_reads: self.future_reads.clone(),
            future_writes: self.future_writes.clone(),
        }
    }

    /// The program is a recorded one: where a guard over its data does not hold, its thread takes
    /// another path than the recorded one. Such a run counts as good, for nothing bad is known of it.
    pub(crate) fn allow_leaving(&mut self, ctp: &ConcurrentTraceProgram) {
        for step in &mut self.steps {
            step.leaving = step.events.iter().any(|event| {
                let guard = &self.accesses[event.index()].guard;
                let data = |&variable: &usize| {
                    matches!(ctp.variables[variable].role, Role::Data | Role::ReadValue)
                };
                !guard.is_empty() && guard.iter().all(data)
            });
        }
    }

    /// Can a thread leave its path?
    pub(crate) fn has_leaving(&self) -> bool {
        self.steps.iter().any(|step| step.leaving)
    }

    /// Every input has a fixed value.
    pub(crate) fn is_closed(&self) -> bool {
        self.input_names.is_empty()
    }

    fn look_ahead(&mut self) {
        self.writers = vec![vec![Vec::new(); self.threads.len()]; self.variable_count];
        for &step in self.threads.iter().flatten() {
            for &variable in &self.steps[step].writes {
                self.writers[variable][self.steps[step].thread].push(step);
            }
        }
        for steps in &self.threads {
            let nothing = vec![FixedBitSet::with_capacity(self.variable_count); steps.len() + 1];
            let mut live = nothing.clone();
            let mut reads = nothing.clone();
            let mut writes = nothing;
            for place in (0..steps.len()).rev() {
                let step = &self.steps[steps[place]];
                live[place] = live[place + 1].clone();
                step.writes.iter().for_each(|&variable| live[place].remove(variable));
                step.reads.iter().for_each(|&variable| live[place].insert(variable));
                reads[place] = reads[place + 1].clone();
                reads[place].union_with(&step.shared_reads);
                writes[place] = writes[place + 1].clone();
                writes[place].union_with(&step.shared_writes);
            }
            let last = steps.iter().rposition(|&step| self.steps[step].asserts);
            self.last_assertion.push(last.map_or(0, |place| place + 1));
            self.live.push(live);
            self.future_reads.push(reads);
            self.future_writes.push(writes);
        }
    }

    /// The step that the thread would take next.
    pub(crate) fn next_step(&self, state: &State, thread: usize) -> Option<StepId> {
        self.threads[thread].get(state.place(thread)).copied()
    }

    /// Has the step been taken?
    pub(crate) fn taken(&self, state: &State, step: StepId) -> bool {
        let step = &self.steps[step];
        state.place(step.thread) > step.place
    }

    /// All threads are at their end.
    pub(crate) fn is_complete(&self, state: &State) -> bool {
        (0..self.threads.len()).all(|thread| state.place(thread) == self.threads[thread].len())
    }

    /// The steps' atom.
    pub(crate) fn step_atom(&self, atom: Atom) -> (StepId, StepId) {
        (self.step_of[atom.before.index()], self.step_of[atom.after.index()])
    }

    /// May the order of the two events matter: one writes what the other reads or writes?
    pub(crate) fn dependent(&self, a: EventId, b: EventId) -> bool {
        let (a, b) = (&self.accesses[a.index()], &self.accesses[b.index()]);
        let meets = |x: &[usize], y: &[usize]| x.iter().any(|variable| y.contains(variable));
        meets(&a.writes, &b.writes) || meets(&a.writes, &b.reads) || meets(&a.reads, &b.writes)
    }
}
