//! A concurrent trace program as a transition system that can be run step by step.
//!
//! A *step* is one event, or all events of an atomic section. A state has each thread's place and
//! each variable's value (a term over the inputs, nearly always a constant). Values that nobody
//! reads any more are forgotten, so that states which differ only in the past are one state.
//! Assignments that flow into no guard and no assertion are left out, and steps that touch nothing
//! another thread touches are taken at once ([`Step::visible`]).

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_trace::{EventId, Operator, SymbolId, Term, TermId, TermStore, Value, VariableId};

use super::inputs::{Assignment, Inputs, Satisfiable, SolverFactory};
use super::symbolic;
use crate::formula::{Atom, KnownOrder};

/// A set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    pub(crate) fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub(crate) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn union(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The smallest.
    pub(crate) fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|&number| self.contains(number))
    }
}

/// A fast hasher for state keys; they come from us, not from an attacker.
#[derive(Clone, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A map from state keys.
pub(crate) type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// The number of a step.
pub(crate) type StepId = usize;

/// One event, or the events of an atomic section.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) thread: usize,
    /// Index in the thread's steps.
    pub(crate) place: usize,
    pub(crate) events: Vec<EventId>,
    /// Variables whose value matters before the step, sorted.
    pub(crate) reads: Vec<usize>,
    /// Variables that change, sorted.
    pub(crate) writes: Vec<usize>,
    /// The same, restricted to variables that other threads touch.
    pub(crate) shared_reads: BitSet,
    pub(crate) shared_writes: BitSet,
    /// Another thread may notice when the step is taken, or it asserts something.
    pub(crate) visible: bool,
    pub(crate) asserts: bool,
    /// Where its guard does not hold the thread does something that was not recorded, rather than
    /// wait ([`System::allow_leaving`]).
    pub(crate) leaving: bool,
}

/// What an event does, in the form that is run.
#[derive(Clone, Debug)]
enum Program {
    Guarded { guard: TermId, assignments: Vec<(usize, TermId)>, chosen: Vec<usize> },
    Assert { condition: TermId },
}

/// A reached state: each thread's place, each variable's value, the condition on the inputs, and
/// (for [`System::take_or_skip`] only) one word for each thread that gave up.
pub(crate) type State = Box<[u32]>;

#[derive(Debug)]
enum Check {
    Assume(TermId),
    Assert(EventId, TermId),
}

/// What a step does when it reads certain values.
#[derive(Debug)]
pub(crate) struct Outcome {
    checks: Vec<Check>,
    pub(crate) writes: Vec<(usize, TermId)>,
}

/// What happened when a step was tried. Neither: the step is blocked.
pub(crate) struct Taken {
    /// The state after the step, where all its guards and assertions hold.
    pub(crate) next: Option<State>,
    /// An assertion can fail, and when.
    pub(crate) failure: Option<Failure>,
}

/// An assertion that can fail.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) event: EventId,
}

/// A value that nobody reads.
const FORGOTTEN: u32 = u32::MAX;

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
    live: Vec<Vec<BitSet>>,
    /// By thread and place: what steps from there on read and write of shared variables.
    pub(crate) future_reads: Vec<Vec<BitSet>>,
    pub(crate) future_writes: Vec<Vec<BitSet>>,
    /// By step: what it does when it reads these values.
    cache: Vec<KeyMap<Box<[u32]>, Rc<Outcome>>>,
    /// By variable and thread: the steps that write it, in program order.
    pub(crate) writers: Vec<Vec<Vec<StepId>>>,
    /// By thread: the place after its last assertion.
    pub(crate) last_assertion: Vec<usize>,
    /// Room for a key, so that looking one up costs no allocation.
    key: Vec<u32>,
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The initial value of a variable.
    Initial(usize),
    /// What a transition predicate chose.
    Choice(EventId, usize),
}

/// Variables that an event reads in its guard, reads at all, and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) guard: Vec<usize>,
    pub(crate) reads: Vec<usize>,
    pub(crate) writes: Vec<usize>,
}

fn variables_of(terms: &TermStore, term: TermId) -> Vec<usize> {
    let leaves = terms.leaves(term);
    let variable = |&leaf: &TermId| match terms.term(leaf) {
        Term::Variable(variable) => Some(variable.index()),
        _ => None,
    };
    leaves.iter().filter_map(variable).collect()
}

/// Splits a transition predicate in assignments `v' = t` and what remains of it.
fn split_transition(
    terms: &mut TermStore,
    predicate: TermId,
    changed: &[VariableId],
) -> (TermId, Vec<(usize, TermId)>, Vec<usize>) {
    let conjuncts: Vec<TermId> = match terms.term(predicate) {
        Term::Apply(Operator::And, parts) => parts.to_vec(),
        _ => vec![predicate],
    };
    let mut assignments: Vec<(usize, TermId)> = Vec::new();
    let mut rest = Vec::new();
    for &conjunct in &conjuncts {
        let mut assigned = None;
        let sides = match terms.term(conjunct) {
            Term::Apply(Operator::Eq, sides) => Some((sides[0], sides[1])),
            _ => None,
        };
        for (target, value) in sides.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
            if let Term::Primed(variable) = *terms.term(target) {
                // `v' = w'` where w is chosen: v takes what w gets
                let chosen = |&leaf: &TermId| match terms.term(leaf) {
                    Term::Primed(other) => {
                        *other != variable
                            && changed.contains(other)
                            && !mentioned_as_target(terms, &conjuncts, *other)
                    }
                    _ => true,
                };
                let plain = terms.leaves(value).iter().all(chosen);
                let free = !assignments.iter().any(|&(other, _)| other == variable.index());
                if plain && free && changed.contains(&variable) {
                    assigned = Some((variable.index(), value));
                    break;
                }
            }
        }
        match assigned {
            Some(assignment) => assignments.push(assignment),
            None => rest.push(conjunct),
        }
    }
    let chosen = changed
        .iter()
        .map(|variable| variable.index())
        .filter(|variable| !assignments.iter().any(|&(other, _)| other == *variable))
        .collect();
    (terms.and(&rest), assignments, chosen)
}

/// Is there a conjunct `v' = t` with a term that has no primed variables?
fn mentioned_as_target(terms: &TermStore, conjuncts: &[TermId], variable: VariableId) -> bool {
    conjuncts.iter().any(|&conjunct| match terms.term(conjunct) {
        Term::Apply(Operator::Eq, sides) => {
            let primed = |side: TermId| *terms.term(side) == Term::Primed(variable);
            let plain = |side: TermId| {
                terms.leaves(side).iter().all(|&leaf| !matches!(terms.term(leaf), Term::Primed(_)))
            };
            primed(sides[0]) && plain(sides[1]) || primed(sides[1]) && plain(sides[0])
        }
        _ => false,
    })
}

impl System {
    /// The system of a program, with all inputs free that the program leaves free.
    pub(crate) fn new(ctp: &ConcurrentTraceProgram, factory: SolverFactory) -> Self {
        let mut terms = ctp.terms.clone();
        let mut programs = Vec::with_capacity(ctp.events.len());
        let mut accesses = Vec::with_capacity(ctp.events.len());
        for event in &ctp.events {
            let (program, access) = compile(&mut terms, &event.action);
            programs.push(program);
            accesses.push(access);
        }
        let count = ctp.variables.len();
        let relevant = relevant_variables(&terms, &programs, count);
        for program in &mut programs {
            if let Program::Guarded { assignments, chosen, .. } = program {
                assignments.retain(|&(variable, _)| relevant.contains(variable));
                chosen.retain(|&variable| relevant.contains(variable));
            }
        }
        let (threads, mut steps, step_of) = make_steps(ctp);
        for step in &mut steps {
            let mut written = BitSet::default();
            let mut reads = BTreeSet::new();
            for event in &step.events {
                let (event_reads, event_writes) = effects(&terms, &programs[event.index()]);
                reads.extend(event_reads.into_iter().filter(|&v| !written.contains(v)));
                event_writes.iter().for_each(|&variable| written.insert(variable));
                step.asserts |= matches!(programs[event.index()], Program::Assert { .. });
            }
            step.reads = reads.into_iter().collect();
            step.writes = written.iter().collect();
        }
        mark_shared(&mut steps, count, threads.len());
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
        system.cache = system.steps.iter().map(|_| KeyMap::default()).collect();
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
            cache: self.steps.iter().map(|_| KeyMap::default()).collect(),
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
            let mut live = vec![BitSet::default(); steps.len() + 1];
            let mut reads = vec![BitSet::default(); steps.len() + 1];
            let mut writes = vec![BitSet::default(); steps.len() + 1];
            for place in (0..steps.len()).rev() {
                let step = &self.steps[steps[place]];
                live[place] = live[place + 1].clone();
                step.writes.iter().for_each(|&variable| live[place].remove(variable));
                step.reads.iter().for_each(|&variable| live[place].insert(variable));
                reads[place] = reads[place + 1].clone();
                reads[place].union(&step.shared_reads);
                writes[place] = writes[place + 1].clone();
                writes[place].union(&step.shared_writes);
            }
            let last = steps.iter().rposition(|&step| self.steps[step].asserts);
            self.last_assertion.push(last.map_or(0, |place| place + 1));
            self.live.push(live);
            self.future_reads.push(reads);
            self.future_writes.push(writes);
        }
    }

    /// Gives initial values and choices their terms; what the precondition says of single
    /// variables is put in place, the rest stays a condition.
    fn name_inputs(&mut self, ctp: &ConcurrentTraceProgram) {
        let mut bindings: HashMap<usize, TermId> = HashMap::new();
        for (number, variable) in ctp.variables.iter().enumerate() {
            let term = match &variable.initial {
                Some(value) => self.terms.constant(value.clone()),
                None => {
                    let symbol = self.terms.fresh_symbol(variable.name.clone(), variable.sort);
                    if let Term::Symbol(id) = *self.terms.term(symbol) {
                        self.input_names.push((id, Input::Initial(number)));
                    }
                    symbol
                }
            };
            bindings.insert(number, term);
        }
        self.initial = (0..ctp.variables.len()).map(|number| bindings[&number]).collect();
        self.condition = self.terms.bool(true);
        if let Some(precondition) = ctp.precondition {
            let initial = self.initial.clone();
            let condition =
                symbolic::evaluate(&mut self.terms, precondition, &mut |leaf| match leaf {
                    Term::Variable(variable) => Some(initial[variable.index()]),
                    _ => None,
                });
            self.condition = condition;
            self.absorb_condition();
        }
        for event in 0..self.programs.len() {
            if let Program::Guarded { chosen, .. } = self.programs[event].clone() {
                for variable in chosen {
                    let name = format!("{}@{event}", ctp.variables[variable].name);
                    let symbol = self.terms.fresh_symbol(name, ctp.variables[variable].sort);
                    let event = EventId::from(event);
                    self.choices.insert((event, variable), symbol);
                    if let Term::Symbol(id) = *self.terms.term(symbol) {
                        self.input_names.push((id, Input::Choice(event, variable)));
                    }
                }
            }
        }
        // an input that no state contains is none
        let mut used = BTreeSet::new();
        let mut live = BitSet::default();
        self.live.iter().for_each(|rows| live.union(&rows[0]));
        let kept = self.initial.iter().enumerate().filter(|(v, _)| live.contains(*v));
        for term in
            kept.map(|(_, &t)| t).chain([self.condition]).chain(self.choices.values().copied())
        {
            used.extend(self.terms.leaves(term));
        }
        let terms = &self.terms;
        self.input_names.retain(|(symbol, _)| {
            used.iter().any(|&leaf| *terms.term(leaf) == Term::Symbol(*symbol))
        });
    }

    /// Equalities of the precondition become values.
    fn absorb_condition(&mut self) {
        loop {
            let conjuncts: Vec<TermId> = match self.terms.term(self.condition) {
                Term::Apply(Operator::And, parts) => parts.to_vec(),
                _ => vec![self.condition],
            };
            let Some((symbol, value, used)) =
                conjuncts.iter().find_map(|&part| self.as_binding(part))
            else {
                return;
            };
            let rest: Vec<TermId> =
                conjuncts.iter().copied().filter(|&part| part != used).collect();
            let rest = self.terms.and(&rest);
            let replace = |terms: &mut TermStore, term: TermId| {
                symbolic::evaluate(terms, term, &mut |leaf| match leaf {
                    Term::Symbol(id) if *id == symbol => Some(value),
                    _ => None,
                })
            };
            self.condition = replace(&mut self.terms, rest);
            for at in 0..self.initial.len() {
                self.initial[at] = replace(&mut self.terms, self.initial[at]);
            }
        }
    }

    /// `symbol = value` from a conjunct: `s`, `¬s`, `s = t`, or `select(s, c) = t` as the array
    /// `store(fresh, c, t)`.
    fn as_binding(&mut self, conjunct: TermId) -> Option<(SymbolId, TermId, TermId)> {
        match self.terms.term(conjunct).clone() {
            Term::Symbol(symbol) => Some((symbol, self.terms.bool(true), conjunct)),
            Term::Apply(Operator::Not, parts) => match *self.terms.term(parts[0]) {
                Term::Symbol(symbol) => Some((symbol, self.terms.bool(false), conjunct)),
                _ => None,
            },
            Term::Apply(Operator::Eq, sides) => {
                for (left, right) in [(sides[0], sides[1]), (sides[1], sides[0])] {
                    let occurs = |store: &TermStore, symbol| {
                        store
                            .leaves(right)
                            .iter()
                            .any(|&leaf| *store.term(leaf) == Term::Symbol(symbol))
                    };
                    match self.terms.term(left).clone() {
                        Term::Symbol(symbol) if !occurs(&self.terms, symbol) => {
                            return Some((symbol, right, conjunct));
                        }
                        Term::Apply(Operator::Select, parts)
                            if self.terms.constant_value(parts[1]).is_some() =>
                        {
                            let Term::Symbol(symbol) = *self.terms.term(parts[0]) else { continue };
                            if occurs(&self.terms, symbol) {
                                continue;
                            }
                            let old = self.terms.symbol(symbol).clone();
                            let fresh = self.terms.fresh_symbol(old.name, old.sort);
                            if let Term::Symbol(id) = *self.terms.term(fresh)
                                && let Some((_, input)) =
                                    self.input_names.iter().find(|(name, _)| *name == symbol)
                            {
                                let input = *input;
                                self.input_names.push((id, input));
                            }
                            let array = symbolic::apply(
                                &mut self.terms,
                                Operator::Store,
                                &[fresh, parts[1], right],
                            );
                            return Some((symbol, array, conjunct));
                        }
                        _ => {}
                    }
                }
                self.linear_binding(conjunct, &sides)
            }
            _ => None,
        }
    }

    /// `s + rest = c` over integers or reals as `s = c - rest`.
    fn linear_binding(
        &mut self,
        conjunct: TermId,
        sides: &[TermId],
    ) -> Option<(SymbolId, TermId, TermId)> {
        for (sum, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let Term::Apply(Operator::Add, parts) = self.terms.term(sum).clone() else { continue };
            for (at, &part) in parts.iter().enumerate() {
                let Term::Symbol(symbol) = *self.terms.term(part) else { continue };
                let rest: Vec<TermId> =
                    parts.iter().enumerate().filter(|&(i, _)| i != at).map(|(_, &p)| p).collect();
                let mentions = rest.iter().chain([&other]).any(|&term| {
                    let leaves = self.terms.leaves(term);
                    leaves.iter().any(|&leaf| *self.terms.term(leaf) == Term::Symbol(symbol))
                });
                if mentions {
                    continue;
                }
                let mut arguments = vec![other];
                arguments.extend(rest);
                let value = symbolic::apply(&mut self.terms, Operator::Sub, &arguments);
                return Some((symbol, value, conjunct));
            }
        }
        None
    }

    fn place_count(&self) -> usize {
        self.threads.len()
    }

    /// The thread's place in the state.
    pub(crate) fn place(state: &State, thread: usize) -> usize {
        state[thread] as usize
    }

    /// The step that the thread would take next.
    pub(crate) fn next_step(&self, state: &State, thread: usize) -> Option<StepId> {
        self.threads[thread].get(state[thread] as usize).copied()
    }

    /// Has the step been taken?
    pub(crate) fn taken(&self, state: &State, step: StepId) -> bool {
        let step = &self.steps[step];
        state[step.thread] as usize > step.place
    }

    /// All threads are at their end.
    pub(crate) fn is_complete(&self, state: &State) -> bool {
        (0..self.threads.len()).all(|thread| state[thread] as usize == self.threads[thread].len())
    }

    /// The first state; `None` when no input satisfies the precondition.
    pub(crate) fn initial_state(&mut self) -> Option<State> {
        if let Satisfiable::No = self.inputs.check(&self.terms, self.condition) {
            return None;
        }
        let mut state = vec![0u32; self.place_count()];
        state.extend(self.initial.iter().map(|term| term.0));
        state.push(self.condition.0);
        state.extend(vec![0; self.place_count()]);
        self.forget(&mut state);
        Some(state.into())
    }

    fn forget(&self, state: &mut [u32]) {
        let threads = self.place_count();
        for word in 0..self.variable_count.div_ceil(64) {
            let mut live = 0;
            for (thread, rows) in self.live.iter().enumerate() {
                live |= rows[state[thread] as usize].word(word);
            }
            let mut dead = !live;
            if (word + 1) * 64 > self.variable_count {
                dead &= (1u64 << (self.variable_count % 64)) - 1;
            }
            while dead != 0 {
                let variable = word * 64 + dead.trailing_zeros() as usize;
                dead &= dead - 1;
                state[threads + variable] = FORGOTTEN;
            }
        }
    }

    fn outcome(&mut self, state: &State, step: StepId) -> Rc<Outcome> {
        let threads = self.place_count();
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend(self.steps[step].reads.iter().map(|&variable| state[threads + variable]));
        let outcome = self.outcome_for(step, &key);
        self.key = key;
        outcome
    }

    /// What the step writes when it reads these values, in the order of [`Step::reads`]; `None`
    /// when a guard or an assertion certainly does not hold.
    pub(crate) fn passing_writes(&mut self, step: StepId, reads: &[u32]) -> Option<Rc<Outcome>> {
        let outcome = self.outcome_for(step, reads);
        let fails = outcome.checks.iter().any(|check| match *check {
            Check::Assume(condition) | Check::Assert(_, condition) => {
                self.terms.is_false(condition)
            }
        });
        (!fails).then_some(outcome)
    }

    /// The initial value of a variable.
    pub(crate) fn initial_value(&self, variable: usize) -> TermId {
        self.initial[variable]
    }

    fn outcome_for(&mut self, step: StepId, key: &[u32]) -> Rc<Outcome> {
        if let Some(outcome) = self.cache[step].get(key) {
            return Rc::clone(outcome);
        }
        let mut values: HashMap<usize, TermId> = self.steps[step]
            .reads
            .iter()
            .zip(key.iter())
            .map(|(&variable, &value)| (variable, TermId(value)))
            .collect();
        let mut outcome = Outcome { checks: Vec::new(), writes: Vec::new() };
        let mut changed = BTreeSet::new();
        for event in self.steps[step].events.clone() {
            let program = self.programs[event.index()].clone();
            let choices = &self.choices;
            let mut read = |leaf: &Term| match leaf {
                Term::Variable(variable) => values.get(&variable.index()).copied(),
                Term::Primed(variable) => choices
                    .get(&(event, variable.index()))
                    .or_else(|| values.get(&variable.index()))
                    .copied(),
                _ => None,
            };
            match program {
                Program::Assert { condition } => {
                    let holds = symbolic::evaluate(&mut self.terms, condition, &mut read);
                    if !self.terms.is_true(holds) {
                        outcome.checks.push(Check::Assert(event, holds));
                    }
                }
                Program::Guarded { guard, assignments, chosen } => {
                    let new: Vec<(usize, TermId)> = assignments
                        .iter()
                        .map(|&(variable, value)| {
                            (variable, symbolic::evaluate(&mut self.terms, value, &mut read))
                        })
                        .collect();
                    let holds = {
                        let mut read_guard = |leaf: &Term| match leaf {
                            Term::Primed(variable) => new
                                .iter()
                                .find(|(assigned, _)| *assigned == variable.index())
                                .map(|&(_, value)| value)
                                .or_else(|| read(leaf)),
                            _ => read(leaf),
                        };
                        symbolic::evaluate(&mut self.terms, guard, &mut read_guard)
                    };
                    if !self.terms.is_true(holds) {
                        outcome.checks.push(Check::Assume(holds));
                    }
                    for (variable, value) in new {
                        values.insert(variable, value);
                        changed.insert(variable);
                    }
                    for variable in chosen {
                        values.insert(variable, self.choices[&(event, variable)]);
                        changed.insert(variable);
                    }
                    if self.terms.is_false(holds) {
                        break;
                    }
                }
            }
        }
        outcome.writes =
            changed.into_iter().map(|variable| (variable, values[&variable])).collect();
        let outcome = Rc::new(outcome);
        self.cache[step].insert(key.into(), Rc::clone(&outcome));
        outcome
    }

    /// Tries the next step of its thread.
    pub(crate) fn take(&mut self, state: &State, step: StepId) -> Taken {
        let outcome = self.outcome(state, step);
        let threads = self.place_count();
        let mut path = TermId(state[threads + self.variable_count]);
        let mut failure = None;
        let mut learnt = Vec::new();
        for check in &outcome.checks {
            let (condition, assertion) = match *check {
                Check::Assume(condition) => (condition, None),
                Check::Assert(event, condition) => (condition, Some(event)),
            };
            if let Some(event) = assertion {
                let negated = self.terms.not(condition);
                let fails = self.terms.and(&[path, negated]);
                if failure.is_none()
                    && let Satisfiable::Yes = self.inputs.check(&self.terms, fails)
                {
                    failure = Some(Failure { event });
                }
            }
            path = self.terms.and(&[path, condition]);
            if let Satisfiable::No = self.inputs.check(&self.terms, path) {
                return Taken { next: None, failure };
            }
            learnt.push(condition);
        }
        let mut next = state.to_vec();
        next[self.steps[step].thread] += 1;
        for &(variable, value) in &outcome.writes {
            next[threads + variable] = value.0;
        }
        next[threads + self.variable_count] = path.0;
        self.forget(&mut next);
        if !learnt.is_empty() {
            self.use_equalities(&mut next, &learnt);
        }
        Taken { next: Some(next.into()), failure }
    }

    /// Does a guard of the step certainly not hold? (Before any of its assertions fails.)
    pub(crate) fn is_blocked(&mut self, state: &State, step: StepId) -> Option<bool> {
        let outcome = self.outcome(state, step);
        match outcome.checks.first() {
            None => Some(false),
            Some(Check::Assume(condition)) if self.terms.is_false(*condition) => Some(true),
            Some(Check::Assert(_, condition)) if self.terms.is_false(*condition) => Some(false),
            Some(_) => None,
        }
    }

    /// Like [`System::take`], but a thread whose guard does not hold gives up: the step and all
    /// later ones of the thread pass without effect.
    pub(crate) fn take_or_skip(&mut self, state: &State, step: StepId) -> Taken {
        let thread = self.steps[step].thread;
        let flag = self.place_count() + self.variable_count + 1 + thread;
        let taken = match state[flag] {
            0 => self.take(state, step),
            _ => Taken { next: None, failure: None },
        };
        if taken.next.is_some() || taken.failure.is_some() {
            return taken;
        }
        let mut next = state.to_vec();
        next[thread] += 1;
        next[flag] = 1;
        self.forget(&mut next);
        Taken { next: Some(next.into()), failure: None }
    }

    /// An assumed `input = constant` replaces the input wherever the state has it.
    fn use_equalities(&mut self, state: &mut [u32], learnt: &[TermId]) {
        let threads = self.place_count();
        let mut queue = learnt.to_vec();
        while let Some(condition) = queue.pop() {
            let binding = match self.terms.term(condition).clone() {
                Term::Apply(Operator::And, parts) => {
                    queue.extend(parts.iter().copied());
                    None
                }
                Term::Symbol(symbol) => Some((symbol, self.terms.bool(true))),
                Term::Apply(Operator::Not, parts) => match *self.terms.term(parts[0]) {
                    Term::Symbol(symbol) => Some((symbol, self.terms.bool(false))),
                    _ => None,
                },
                Term::Apply(Operator::Eq, sides) => {
                    let pick = |a: TermId, b: TermId| match *self.terms.term(a) {
                        Term::Symbol(symbol) if self.terms.constant_value(b).is_some() => {
                            Some((symbol, b))
                        }
                        _ => None,
                    };
                    pick(sides[0], sides[1]).or_else(|| pick(sides[1], sides[0]))
                }
                _ => None,
            };
            let Some((symbol, value)) = binding else { continue };
            for value_or_path in &mut state[threads..=threads + self.variable_count] {
                let term = TermId(*value_or_path);
                if term.0 != FORGOTTEN && self.terms.constant_value(term).is_none() {
                    let new = symbolic::evaluate(&mut self.terms, term, &mut |leaf| match leaf {
                        Term::Symbol(id) if *id == symbol => Some(value),
                        _ => None,
                    });
                    *value_or_path = new.0;
                }
            }
        }
    }

    /// All conditions that a run demands of the inputs, without replacing any of them.
    pub(crate) fn run_condition(&mut self, run: &[StepId], failure: Option<EventId>) -> TermId {
        let mut state: Vec<u32> = vec![0; self.place_count()];
        state.extend(self.initial.iter().map(|term| term.0));
        let mut path = self.condition;
        state.push(path.0);
        state.extend(vec![0; self.place_count()]);
        let threads = self.place_count();
        for &step in run {
            let boxed: State = state.clone().into();
            let outcome = self.outcome(&boxed, step);
            for check in &outcome.checks {
                match *check {
                    Check::Assert(event, condition) if Some(event) == failure => {
                        let negated = self.terms.not(condition);
                        return self.terms.and(&[path, negated]);
                    }
                    Check::Assert(_, condition) | Check::Assume(condition) => {
                        path = self.terms.and(&[path, condition]);
                    }
                }
            }
            state[self.steps[step].thread] += 1;
            for &(variable, value) in &outcome.writes {
                state[threads + variable] = value.0;
            }
        }
        path
    }

    /// The inputs that the failing assertion of a run depends on, if they have no say in any guard
    /// (nor in what the precondition asks of other inputs): then an interleaving that some inputs
    /// complete is also completed with these inputs changed.
    pub(crate) fn inputs_of_assertion_only(
        &mut self,
        run: &[StepId],
        failing: EventId,
    ) -> Option<BTreeSet<SymbolId>> {
        let all = self.run_condition(run, Some(failing));
        let path = self.run_condition(&run[..run.len() - 1], None);
        let conjuncts = |terms: &TermStore, term: TermId| match terms.term(term) {
            Term::Apply(Operator::And, parts) => parts.to_vec(),
            _ => vec![term],
        };
        let symbols = |terms: &TermStore, term: TermId| -> BTreeSet<SymbolId> {
            let leaves = terms.leaves(term);
            let symbol = |&leaf: &TermId| match *terms.term(leaf) {
                Term::Symbol(symbol) => Some(symbol),
                _ => None,
            };
            leaves.iter().filter_map(symbol).collect()
        };
        let before = conjuncts(&self.terms, path);
        let mut inputs = BTreeSet::new();
        for part in conjuncts(&self.terms, all) {
            if !before.contains(&part) {
                inputs.extend(symbols(&self.terms, part));
            }
        }
        for part in conjuncts(&self.terms, self.condition) {
            let mentioned = symbols(&self.terms, part);
            if !mentioned.is_disjoint(&inputs) && !mentioned.is_subset(&inputs) {
                return None;
            }
        }
        // variables that the inputs flow into
        let mut tainted = BitSet::default();
        for (variable, &term) in self.initial.iter().enumerate() {
            if !symbols(&self.terms, term).is_disjoint(&inputs) {
                tainted.insert(variable);
            }
        }
        for (&(_, variable), &term) in &self.choices {
            if !symbols(&self.terms, term).is_disjoint(&inputs) {
                tainted.insert(variable);
            }
        }
        loop {
            let before = tainted.clone();
            for accesses in &self.accesses {
                if accesses.reads.iter().any(|&variable| tainted.contains(variable)) {
                    accesses.writes.iter().for_each(|&variable| tainted.insert(variable));
                }
            }
            if tainted == before {
                break;
            }
        }
        let decides =
            |accesses: &Accesses| accesses.guard.iter().any(|&variable| tainted.contains(variable));
        (!inputs.is_empty() && !self.accesses.iter().any(decides)).then_some(inputs)
    }

    /// What transition predicates chose in a run of a closed system.
    pub(crate) fn chosen_values(
        &mut self,
        run: &[StepId],
        ctp: &ConcurrentTraceProgram,
    ) -> Vec<(EventId, VariableId, Value)> {
        let mut chosen = Vec::new();
        let Some(mut state) = self.initial_state() else { return chosen };
        for &step in run {
            let outcome = self.outcome(&state, step);
            for &event in &self.steps[step].events {
                let Action::Transition { changed, .. } = &ctp.event(event).action else { continue };
                for &variable in changed {
                    let written = outcome.writes.iter().find(|(v, _)| *v == variable.index());
                    let value = written.and_then(|&(_, term)| self.terms.constant_value(term));
                    let zero = || Value::zero(ctp.variables[variable.index()].sort);
                    chosen.push((event, variable, value.cloned().unwrap_or_else(zero)));
                }
            }
            match self.take(&state, step).next {
                Some(next) => state = next,
                None => break,
            }
        }
        chosen
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

fn compile(terms: &mut TermStore, action: &Action) -> (Program, Accesses) {
    let program = match action {
        Action::Assert { condition } => Program::Assert { condition: *condition },
        Action::Guarded { guard, assignments } => Program::Guarded {
            guard: *guard,
            assignments: assignments.iter().map(|&(v, value)| (v.index(), value)).collect(),
            chosen: Vec::new(),
        },
        Action::Transition { predicate, changed } => {
            let (guard, assignments, chosen) = split_transition(terms, *predicate, changed);
            Program::Guarded { guard, assignments, chosen }
        }
    };
    let guard = match &program {
        Program::Guarded { guard, .. } => variables_of(terms, *guard),
        Program::Assert { .. } => Vec::new(),
    };
    let (reads, writes) = effects(terms, &program);
    (program, Accesses { guard, reads, writes })
}

fn effects(terms: &TermStore, program: &Program) -> (Vec<usize>, Vec<usize>) {
    match program {
        Program::Assert { condition } => (variables_of(terms, *condition), Vec::new()),
        Program::Guarded { guard, assignments, chosen } => {
            let mut reads = variables_of(terms, *guard);
            for &(_, value) in assignments {
                reads.extend(variables_of(terms, value));
            }
            reads.sort_unstable();
            reads.dedup();
            let mut writes: Vec<usize> = assignments
                .iter()
                .map(|&(variable, _)| variable)
                .chain(chosen.iter().copied())
                .collect();
            writes.sort_unstable();
            writes.dedup();
            (reads, writes)
        }
    }
}

/// Variables that flow into a guard or an assertion.
fn relevant_variables(terms: &TermStore, programs: &[Program], count: usize) -> BitSet {
    let mut flows: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut queue = Vec::new();
    for program in programs {
        match program {
            Program::Assert { condition } => queue.extend(variables_of(terms, *condition)),
            Program::Guarded { guard, assignments, .. } => {
                queue.extend(variables_of(terms, *guard));
                for &leaf in &terms.leaves(*guard) {
                    if let Term::Primed(variable) = terms.term(leaf) {
                        queue.push(variable.index());
                    }
                }
                for &(variable, value) in assignments {
                    flows[variable].extend(variables_of(terms, value));
                }
            }
        }
    }
    let mut relevant = BitSet::default();
    while let Some(variable) = queue.pop() {
        if !relevant.contains(variable) {
            relevant.insert(variable);
            queue.extend(flows[variable].iter().copied());
        }
    }
    relevant
}

fn make_steps(ctp: &ConcurrentTraceProgram) -> (Vec<Vec<StepId>>, Vec<Step>, Vec<StepId>) {
    let mut joined = vec![false; ctp.events.len()]; // with the next event of its thread
    for &(first, last) in &ctp.atomic_sections {
        let (first, last) = (&ctp.events[first.index()], &ctp.events[last.index()]);
        if first.thread == last.thread {
            let events = &ctp.threads[first.thread.index()];
            for place in first.position..last.position {
                joined[events[place as usize].index()] = true;
            }
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut step_of = vec![0; ctp.events.len()];
    let mut threads = Vec::new();
    for (thread, events) in ctp.threads.iter().enumerate() {
        let mut own: Vec<StepId> = Vec::new();
        let mut open = false;
        for &event in events {
            if !open {
                own.push(steps.len());
                steps.push(Step {
                    thread,
                    place: own.len() - 1,
                    events: Vec::new(),
                    reads: Vec::new(),
                    writes: Vec::new(),
                    shared_reads: BitSet::default(),
                    shared_writes: BitSet::default(),
                    visible: false,
                    asserts: false,
                    leaving: false,
                });
            }
            let step = steps.len() - 1;
            steps[step].events.push(event);
            step_of[event.index()] = step;
            open = joined[event.index()];
        }
        threads.push(own);
    }
    (threads, steps, step_of)
}

fn mark_shared(steps: &mut [Step], variables: usize, threads: usize) {
    let mut readers = vec![BitSet::default(); variables];
    let mut writers = vec![BitSet::default(); variables];
    for step in steps.iter() {
        step.reads.iter().for_each(|&variable| readers[variable].insert(step.thread));
        step.writes.iter().for_each(|&variable| writers[variable].insert(step.thread));
    }
    let conflict = |variable: usize| {
        (0..threads).any(|writer| {
            writers[variable].contains(writer)
                && (0..threads).any(|other| {
                    other != writer
                        && (readers[variable].contains(other) || writers[variable].contains(other))
                })
        })
    };
    let shared: Vec<bool> = (0..variables).map(conflict).collect();
    for step in steps.iter_mut() {
        for &variable in step.reads.iter().filter(|&&variable| shared[variable]) {
            step.shared_reads.insert(variable);
        }
        for &variable in step.writes.iter().filter(|&&variable| shared[variable]) {
            step.shared_writes.insert(variable);
        }
        let noticed = step.reads.iter().chain(&step.writes).any(|&variable| shared[variable]);
        step.visible = noticed || step.asserts;
    }
}
