//! Inputs: a step of a thread may depend on values that nobody knows.
//!
//! A state stands for all states that its inputs can make of it: memory and registers hold terms
//! over the inputs ([`super::terms`]), and the *path* of the state is what is known about the inputs,
//! as a list of truth values that hold. It can always be satisfied.
//!
//! When an instruction needs the truth of a term, Z3 is asked whether the path allows both; a step
//! then has several outcomes. It is executed once for each of them: the list of [`Decision`]s taken
//! in front is followed, and the first open one adds its alternatives to the work
//! ([`Machine::outcomes`]). Where a number is needed (an index, a size), its few values are tried one
//! by one, and more than a few are refused.
//!
//! What is known about inputs that occur nowhere in the state any more, nor in anything that is
//! known about those that do, is forgotten, and inputs are numbered in the order in which they occur:
//! states that differ in nothing else are one ([`Machine::forget_inputs`]).
//!
//! *Guaranteed*: outcomes are neither lost nor added, because every answer is exact; an answer that
//! the solver does not give refuses the step.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foretell_solve::{Dialogue, Sexpr};

use super::machine::{Machine, Step, Stop};
use super::memory::Value;
use super::state::State;
use super::terms::{Assignment, Symbol, Terms};
use crate::ir::{Comparison, Place};
use crate::limits::{FEW_BITS, INPUT_RESOURCES, MOST_FACTS, MOST_VALUES, SOME_BITS};
use crate::solver::COMMAND;

/// What was decided about inputs in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// A truth value.
    Truth(bool),
    /// A truth value that the path leaves no choice about.
    Implied(bool),
    /// The value of a term.
    Number(u128),
    /// The only value of a term.
    OnlyNumber(u128),
}

/// What is done with inputs.
#[derive(Clone, Debug, Default)]
enum Mode {
    /// All values are looked at.
    #[default]
    Search,
    /// Decisions are followed, and nothing is asked.
    Follow,
    /// Inputs have these values, in their order.
    Given(Vec<u128>),
}

/// Truth values that hold, in ascending order.
type Facts = Box<[Symbol]>;

/// The inputs of the step that is being taken, and everything that was asked.
#[derive(Debug, Default)]
pub struct Inputs {
    pub(super) terms: Terms,
    solver: Solver,
    answers: HashMap<Facts, bool>,
    /// The values of the first term when the others hold.
    values: HashMap<(Symbol, Facts), Arc<[u128]>>,
    mode: Mode,
    /// What holds: that of the state, and what the step has decided.
    path: Vec<Symbol>,
    /// Inputs taken so far.
    taken: u32,
    /// Decisions of the step: some are given, others are added.
    decisions: Vec<Decision>,
    /// How many of them were used.
    at: usize,
    /// Other decisions that the step could take.
    open: Vec<Vec<Decision>>,
}

impl Inputs {
    fn begin(&mut self, state: &State, decisions: Vec<Decision>) {
        self.path = state.path.to_vec();
        self.taken = state.inputs;
        self.decisions = decisions;
        self.at = 0;
    }

    fn given(&mut self) -> Option<Decision> {
        let decision = self.decisions.get(self.at).copied();
        self.at += usize::from(decision.is_some());
        decision
    }

    fn add(&mut self, decision: Decision) {
        self.decisions.push(decision);
        self.at += 1;
    }

    fn hold(&mut self, truth: Symbol) {
        if !self.path.contains(&truth) {
            self.path.push(truth);
        }
    }

    /// Those that say something about the same inputs as the last one, directly or not.
    fn slice(&self, facts: &[Symbol]) -> Facts {
        let Some((&last, facts)) = facts.split_last() else { return [].into() };
        let mut inputs: BTreeSet<Symbol> = self.terms.inputs(last).iter().copied().collect();
        let mut slice = BTreeSet::from([last]);
        loop {
            let before = slice.len();
            for &fact in facts {
                let of_fact = self.terms.inputs(fact);
                if !slice.contains(&fact) && of_fact.iter().any(|input| inputs.contains(input)) {
                    slice.insert(fact);
                    inputs.extend(of_fact.iter());
                }
            }
            if slice.len() == before {
                return slice.into_iter().collect();
            }
        }
    }

    /// Can all of these hold? All but the last can.
    fn can_hold(&mut self, facts: &[Symbol]) -> Result<bool, String> {
        let slice = self.slice(facts);
        if let Some(&answer) = self.answers.get(&slice) {
            return Ok(answer);
        }
        let answer = match self.try_all(&slice, FEW_BITS) {
            Some(answer) => answer,
            None => match self.solver.model(&self.terms, &slice) {
                Ok(model) => model.is_some(),
                Err(why) => self.try_all(&slice, SOME_BITS).ok_or(why)?,
            },
        };
        self.answers.insert(slice, answer);
        Ok(answer)
    }

    /// Tries all values of the inputs, if they are few.
    fn try_all(&self, facts: &[Symbol], most: u32) -> Option<bool> {
        let inputs: BTreeSet<Symbol> =
            facts.iter().flat_map(|&fact| self.terms.inputs(fact).to_vec()).collect();
        let bits: u32 = inputs.iter().map(|&input| self.terms.bits(input)).sum();
        if bits > most {
            return None;
        }
        let assignments = (0..1_u32 << bits).map(|mut rest| {
            let mut values = Assignment::new();
            for &input in &inputs {
                let bits = self.terms.bits(input);
                values.insert(input, u128::from(rest & ((1 << bits) - 1)));
                rest >>= bits;
            }
            values
        });
        Some(self.terms.first_that_holds(facts, assignments).is_some())
    }

    /// Decides a truth value; the step goes both ways if both are possible.
    fn decide(&mut self, truth: Symbol) -> Result<bool, String> {
        let negation = self.terms.not(truth);
        let fact = |holds: bool| if holds { truth } else { negation };
        match self.given() {
            Some(Decision::Truth(holds)) => {
                self.hold(fact(holds));
                return Ok(holds);
            }
            Some(Decision::Implied(holds)) => return Ok(holds),
            Some(_) => return Err("a step that cannot be taken again".into()),
            None if matches!(self.mode, Mode::Search) => {}
            None => return Err("a step that cannot be taken again".into()),
        }
        if self.path.len() > MOST_FACTS {
            return Err(format!(
                "it depends on inputs of which more than {MOST_FACTS} facts are known"
            ));
        }
        let mut possible = [false; 2];
        for holds in [false, true] {
            let mut facts = self.path.clone();
            facts.push(fact(holds));
            possible[usize::from(holds)] = self.can_hold(&facts)?;
        }
        let holds = match possible {
            [true, true] => {
                let mut other = self.decisions.clone();
                other.push(Decision::Truth(false));
                self.open.push(other);
                self.add(Decision::Truth(true));
                self.hold(truth);
                return Ok(true);
            }
            [false, true] => true,
            [true, false] => false,
            [false, false] => return Err("inputs that contradict each other".into()),
        };
        self.add(Decision::Implied(holds));
        Ok(holds)
    }

    /// Decides the value of a term; the step goes all ways.
    fn number(&mut self, term: Symbol) -> Result<u128, String> {
        match self.given() {
            Some(Decision::Number(value)) => {
                let fact = self.equals(term, value);
                self.hold(fact);
                return Ok(value);
            }
            Some(Decision::OnlyNumber(value)) => return Ok(value),
            Some(_) => return Err("a step that cannot be taken again".into()),
            None if matches!(self.mode, Mode::Search) => {}
            None => return Err("a step that cannot be taken again".into()),
        }
        let values = self.values_of(term)?;
        let Some(&first) = values.first() else {
            return Err("inputs that contradict each other".into());
        };
        for &value in values.iter().skip(1) {
            let mut other = self.decisions.clone();
            other.push(Decision::Number(value));
            self.open.push(other);
        }
        if values.len() == 1 {
            self.add(Decision::OnlyNumber(first));
        } else {
            self.add(Decision::Number(first));
            let fact = self.equals(term, first);
            self.hold(fact);
        }
        Ok(first)
    }

    /// All values that a term can have, if they are few.
    fn values_of(&mut self, term: Symbol) -> Result<Arc<[u128]>, String> {
        let mut facts = self.path.clone();
        let mut values = Vec::new();
        // something that is always true makes the slice the term's
        let about = self.terms.compare(Comparison::Equal, term, term);
        facts.push(about);
        let key = (term, self.slice(&facts));
        if let Some(values) = self.values.get(&key) {
            return Ok(values.clone());
        }
        let mut slice = key.1.to_vec();
        while let Some(model) = self.solver.model(&self.terms, &slice)? {
            if values.len() == MOST_VALUES {
                return Err(format!(
                    "it depends on an input, and has more than {MOST_VALUES} values here"
                ));
            }
            let value = self.terms.evaluate(&[term], &model)[0];
            let equal = self.equals(term, value);
            let other = self.terms.not(equal);
            slice.push(other);
            values.push(value);
        }
        values.sort_unstable();
        let values: Arc<[u128]> = values.into();
        self.values.insert(key, values.clone());
        Ok(values)
    }

    fn equals(&mut self, term: Symbol, value: u128) -> Symbol {
        let number = self.terms.number(value, self.terms.bits(term));
        self.terms.compare(Comparison::Equal, term, number)
    }
}

/// A step as it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// By whom.
    pub thread: u8,
    /// Which of its ways to go on.
    pub choice: u32,
    /// What was decided about inputs.
    pub decisions: Arc<[Decision]>,
}

impl Machine<'_> {
    /// Everything that a step can lead to, and whether it goes there quietly (`progress`).
    pub fn outcomes(
        &self,
        state: &State,
        thread: usize,
        choice: u32,
    ) -> Vec<(Taken, bool, Step<State>)> {
        let mut outcomes = Vec::new();
        let mut open = vec![Vec::new()];
        while let Some(decisions) = open.pop() {
            self.inputs.borrow_mut().begin(state, decisions);
            let mut next = state.clone();
            let result = self.step(&mut next, thread, choice);
            let mut inputs = self.inputs.borrow_mut();
            open.append(&mut inputs.open);
            let decisions = std::mem::take(&mut inputs.decisions).into();
            let taken = Taken { thread: thread as u8, choice, decisions };
            outcomes.push((taken, !self.loud.get(), result.map(|()| inputs.end(next))));
        }
        outcomes
    }

    /// Takes a step again; what is known about the inputs is complete afterwards.
    pub fn again(&self, state: &State, taken: &Taken) -> Step<State> {
        self.inputs.borrow_mut().begin(state, taken.decisions.to_vec());
        let mut next = state.clone();
        self.step(&mut next, usize::from(taken.thread), taken.choice)?;
        Ok(self.inputs.borrow().end(next))
    }

    /// The same; `watch` sees every state before an instruction but the first.
    pub fn watched(
        &self,
        state: &State,
        taken: &Taken,
        watch: &mut dyn FnMut(&State),
    ) -> Step<State> {
        self.inputs.borrow_mut().begin(state, taken.decisions.to_vec());
        let mut next = state.clone();
        self.step_watched(&mut next, usize::from(taken.thread), taken.choice, watch)?;
        Ok(self.inputs.borrow().end(next))
    }

    /// Values of the inputs that make these steps possible, in the order in which they are taken.
    /// From here on the machine gives them to the program.
    pub fn fix_inputs(&self, path: &[Taken]) -> Result<(), String> {
        self.inputs.borrow_mut().mode = Mode::Follow;
        let mut state = self.first().map_err(|_| "the program does not begin")?;
        for taken in path {
            match self.again(&state, taken) {
                Ok(next) => state = next,
                // the violation itself
                Err(_) => break,
            }
        }
        let mut inputs = self.inputs.borrow_mut();
        let Inputs { solver, terms, path, .. } = &mut *inputs;
        let model = match path.is_empty() {
            true => Assignment::new(),
            false => solver.model(terms, path)?.ok_or("inputs that contradict each other")?,
        };
        let mut values = vec![0; inputs.taken as usize];
        for (symbol, value) in model {
            let number = inputs.terms.input_number(symbol);
            if let Some(place) = number.and_then(|number| values.get_mut(number as usize)) {
                *place = value;
            }
        }
        inputs.mode = Mode::Given(values);
        Ok(())
    }

    /// The value of the next input, if inputs are given.
    pub fn given_input(&self, state: &State) -> Option<u128> {
        match &self.inputs.borrow().mode {
            Mode::Given(values) => Some(values.get(state.inputs as usize).copied().unwrap_or(0)),
            Mode::Search | Mode::Follow => None,
        }
    }

    /// A new input.
    pub(super) fn take_input(&self, bits: u32) -> Value {
        let mut inputs = self.inputs.borrow_mut();
        let number = inputs.taken;
        inputs.taken += 1;
        if let Mode::Given(values) = &inputs.mode {
            return Value::Integer(values.get(number as usize).copied().unwrap_or(0));
        }
        Value::Symbol(inputs.terms.input(number, bits))
    }

    /// The truth of a term; the step is taken for each possible one.
    pub(super) fn decide(&self, place: Place, truth: Symbol) -> Step<bool> {
        let decided = self.inputs.borrow_mut().decide(truth);
        decided.map_err(|why| Stop::Refused(place, why))
    }

    /// The value of a term; the step is taken for each possible one.
    pub(super) fn number_of(&self, place: Place, term: Symbol) -> Step<u128> {
        let decided = self.inputs.borrow_mut().number(term);
        decided.map_err(|why| Stop::Refused(place, why))
    }

    /// Works on terms.
    pub(super) fn terms<T>(&self, work: impl FnOnce(&mut Terms) -> T) -> T {
        work(&mut self.inputs.borrow_mut().terms)
    }

    /// Numbers inputs in the order in which they occur, and forgets those that do not.
    pub fn forget_inputs(&self, state: &mut State) {
        if state.inputs == 0 {
            return;
        }
        let mut inputs = self.inputs.borrow_mut();
        let terms = &mut inputs.terms;
        let mut symbols = Vec::new();
        state.visit_symbols(&mut |symbol| symbols.push(symbol));
        let mut live: Vec<Symbol> = Vec::new();
        let add = |live: &mut Vec<Symbol>, of: &[Symbol]| {
            for input in of {
                if !live.contains(input) {
                    live.push(*input);
                }
            }
        };
        for &symbol in &symbols {
            add(&mut live, &terms.inputs(symbol));
        }
        let mut facts: Vec<Symbol> = Vec::new();
        loop {
            let before = facts.len();
            for &fact in state.path.iter() {
                let of_fact = terms.inputs(fact);
                if !facts.contains(&fact) && of_fact.iter().any(|input| live.contains(input)) {
                    facts.push(fact);
                    add(&mut live, &of_fact);
                }
            }
            if facts.len() == before {
                break;
            }
        }
        let numbers: HashMap<Symbol, u32> = live.iter().copied().zip(0..).collect();
        state.inputs = live.len() as u32;
        let all: Vec<Symbol> = symbols.iter().chain(&facts).copied().collect();
        let renamed = terms.renumber(&all, &numbers);
        let path: BTreeSet<Symbol> = facts.iter().map(|fact| renamed[fact]).collect();
        state.path = path.into_iter().collect();
        if symbols.iter().any(|symbol| renamed[symbol] != *symbol) {
            state.change_symbols(&mut |symbol| *symbol = renamed[symbol]);
        }
    }
}

impl Inputs {
    fn end(&self, mut state: State) -> State {
        state.inputs = self.taken;
        if *self.path != *state.path {
            state.path = self.path.clone().into();
        }
        state
    }
}

/// A solver process for questions about bit vectors, started when it is first needed.
#[derive(Default)]
pub(super) struct Solver {
    dialogue: Option<Dialogue>,
    defined: BTreeSet<Symbol>,
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver").field("defined", &self.defined.len()).finish_non_exhaustive()
    }
}

impl Solver {
    /// Values of inputs for which all of these hold; none if there are none.
    pub(super) fn model(
        &mut self,
        terms: &Terms,
        facts: &[Symbol],
    ) -> Result<Option<Assignment>, String> {
        let answer = self.ask(terms, facts);
        if answer.is_err() {
            // after an error the process may know anything
            *self = Self::default();
        }
        answer
    }

    fn ask(&mut self, terms: &Terms, facts: &[Symbol]) -> Result<Option<Assignment>, String> {
        let mut text = String::new();
        let dialogue = match &mut self.dialogue {
            Some(dialogue) => dialogue,
            None => {
                let started = Dialogue::start(COMMAND).map_err(|error| {
                    format!("it depends on inputs, and {error}; scripts/setup.sh installs z3")
                })?;
                text.push_str(&format!(
                    "(set-option :rlimit {INPUT_RESOURCES})\n(set-logic QF_BV)\n"
                ));
                self.dialogue.insert(started)
            }
        };
        text.push_str(&terms.define(facts, &mut self.defined));
        text.push_str("(push)\n");
        for fact in facts {
            text.push_str(&format!("(assert (= t{} #b1))\n", fact.0));
        }
        text.push_str("(check-sat)\n");
        let replies = dialogue.exchange(&text)?;
        let answer = match replies.first().and_then(Sexpr::atom) {
            Some("unsat") => None,
            Some("sat") => {
                let inputs: BTreeSet<Symbol> =
                    facts.iter().flat_map(|&fact| terms.inputs(fact).to_vec()).collect();
                Some(values(dialogue, &inputs)?)
            }
            other => {
                let said = other.unwrap_or("nothing");
                return Err(format!("it depends on inputs, and the solver says {said}"));
            }
        };
        dialogue.exchange("(pop)\n")?;
        // a wrong answer must not become a counterexample
        if let Some(model) = &answer
            && terms.evaluate(facts, model).iter().any(|&value| value != 1)
        {
            return Err("the solver's values do not satisfy the question".into());
        }
        Ok(answer)
    }
}

fn values(dialogue: &mut Dialogue, inputs: &BTreeSet<Symbol>) -> Result<Assignment, String> {
    let mut values = Assignment::new();
    if inputs.is_empty() {
        return Ok(values);
    }
    let names: Vec<String> = inputs.iter().map(|input| format!("t{}", input.0)).collect();
    let replies = dialogue.exchange(&format!("(get-value ({}))\n", names.join(" ")))?;
    let pairs = replies.first().and_then(Sexpr::list).unwrap_or_default();
    for (pair, &input) in pairs.iter().zip(inputs) {
        let text = pair.list().and_then(|pair| pair.get(1)?.atom()).unwrap_or_default();
        let value = match (text.strip_prefix("#x"), text.strip_prefix("#b")) {
            (Some(digits), _) => u128::from_str_radix(digits, 16),
            (_, Some(digits)) => u128::from_str_radix(digits, 2),
            _ => return Err("the solver's answer is not a value".into()),
        };
        values.insert(input, value.map_err(|error| format!("the solver's value: {error}"))?);
    }
    Ok(values)
}
