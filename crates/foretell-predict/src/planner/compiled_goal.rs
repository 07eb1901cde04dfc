//! A goal with its events found in the trace: the automaton, and what it still asks for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use foretell_trace::{EventId, Trace};

use super::goal::{Atom, Automaton, Formula, GoalError, GoalState, Letter};
use crate::limits::{MOST_GOAL_STATES, MOST_NEXT};
use crate::pattern::AccessPattern;

/// A goal for runs of one trace.
#[derive(Clone, Debug)]
pub struct CompiledGoal {
    automaton: Automaton,
    formula: Formula,
    /// The events of the goal and the letter's bits that each sets.
    events: Vec<(EventId, Letter)>,
    /// The events of `next(...)` and their bits.
    next: Vec<(EventId, Letter)>,
    /// States from which the goal can still be reached, as far as looked at.
    hopeful: HashMap<GoalState, bool>,
    forbidden: HashMap<GoalState, Vec<EventId>>,
    stutters: bool,
    sequence: Option<Sequence>,
    /// What [`CompiledGoal::demands`] said, by state and events that are done.
    demanded: HashMap<(GoalState, u64), Option<Arc<[Demand]>>>,
}

/// A goal of the most frequent kind: some events in this order, others not before the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    pub steps: Vec<EventId>,
    pub forbidden: Vec<EventId>,
}

/// Something that a goal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// The event takes place.
    Done(EventId),
    /// Everything of its thread before the event takes place.
    Next(EventId),
}

impl Demand {
    pub(super) fn event(self) -> EventId {
        match self {
            Demand::Done(event) | Demand::Next(event) => event,
        }
    }
}

impl CompiledGoal {
    /// Compiles a formula; events are named by their labels or as `thread#index`.
    pub fn new(trace: &Trace, formula: &Formula) -> Result<Self, GoalError> {
        let mut names: HashMap<String, EventId> = HashMap::new();
        for name in formula.events() {
            let Some(event) = find(trace, name) else {
                let message = format!(
                    "there is no event `{name}` in the trace; use a label or THREAD#INDEX as \
                     `foretell trace cat` shows them"
                );
                return Err(GoalError { column: 1, message });
            };
            names.insert(name.into(), event);
        }
        Self::with_names(formula, &|name| names[name])
    }

    /// The goal that a three-access pattern takes place.
    pub fn of_pattern(pattern: &AccessPattern) -> Self {
        let formula = Formula::three_accesses("e1", "f", "e2");
        let event = |name: &str| match name {
            "e1" => pattern.first,
            "f" => pattern.remote,
            _ => pattern.second,
        };
        Self::with_names(&formula, &event).expect("the pattern is a small formula")
    }

    /// A formula over `0`, `1`, ... for the events of a list.
    pub(super) fn of_events(formula: &Formula, events: &[EventId]) -> Result<Self, GoalError> {
        let event = |name: &str| events[name.parse::<usize>().expect("names are numbers")];
        Self::with_names(formula, &event)
    }

    fn with_names(formula: &Formula, event: &dyn Fn(&str) -> EventId) -> Result<Self, GoalError> {
        let automaton = Automaton::new(formula)?;
        let mut goal = Self {
            events: Vec::new(),
            next: Vec::new(),
            hopeful: HashMap::new(),
            forbidden: HashMap::new(),
            stutters: true,
            sequence: formula.as_sequence().map(|(steps, forbidden)| Sequence {
                steps: steps.into_iter().map(event).collect(),
                forbidden: forbidden.into_iter().map(event).collect(),
            }),
            demanded: HashMap::new(),
            formula: formula.clone(),
            automaton,
        };
        for (bit, atom) in goal.automaton.atoms().iter().enumerate() {
            let (list, name) = match atom {
                Atom::Event(name) => (&mut goal.events, name),
                Atom::Next(name) => (&mut goal.next, name),
            };
            let id = event(name);
            match list.iter_mut().find(|(other, _)| *other == id) {
                Some((_, letter)) => *letter |= 1 << bit,
                None => list.push((id, 1 << bit)),
            }
        }
        if goal.next.len() > MOST_NEXT {
            let message = format!("a goal can have at most {MOST_NEXT} next(...)");
            return Err(GoalError { column: 1, message });
        }
        goal.explore()?;
        Ok(goal)
    }

    /// Visits all states once: which are hopeful, and does an event that the goal does not mention
    /// ever change the state?
    fn explore(&mut self) -> Result<(), GoalError> {
        let letters = self.letters();
        let mut order = vec![self.automaton.initial()];
        let mut edges: HashMap<GoalState, Vec<GoalState>> = HashMap::new();
        let mut at = 0;
        while at < order.len() {
            let state = order[at];
            at += 1;
            for &letter in &letters {
                let next = self.automaton.step(state, letter);
                self.stutters &= letter != 0 || next == state;
                edges.entry(next).or_default().push(state);
                if !order.contains(&next) {
                    order.push(next);
                }
            }
            if order.len() > MOST_GOAL_STATES {
                let message = "the goal's automaton is too large; make the goal simpler".into();
                return Err(GoalError { column: 1, message });
            }
        }
        let mut work: Vec<GoalState> =
            order.iter().copied().filter(|&state| self.automaton.accepts(state)).collect();
        self.hopeful = order.iter().map(|&state| (state, false)).collect();
        while let Some(state) = work.pop() {
            if !self.hopeful.insert(state, true).unwrap_or(false) {
                work.extend(edges.get(&state).into_iter().flatten());
            }
        }
        for &state in &order {
            let forbidden = self.always_fatal(state);
            self.forbidden.insert(state, forbidden);
        }
        Ok(())
    }

    /// The letters that a step can have.
    fn letters(&self) -> Vec<Letter> {
        let events = std::iter::once(0).chain(self.events.iter().map(|&(_, letter)| letter));
        let subsets = (0..1u32 << self.next.len()).map(|subset| {
            let chosen = self.next.iter().enumerate();
            chosen.filter(|(bit, _)| subset >> bit & 1 != 0).fold(0, |all, (_, next)| all | next.1)
        });
        let subsets: Vec<Letter> = subsets.collect();
        events.flat_map(|event| subsets.iter().map(move |subset| event | subset)).collect()
    }

    /// The events that lose the goal in this state and in every unfinished one after it.
    fn always_fatal(&mut self, state: GoalState) -> Vec<EventId> {
        let letters = self.letters();
        let mut reachable = vec![state];
        let mut at = 0;
        while at < reachable.len() {
            let from = reachable[at];
            at += 1;
            for &letter in &letters {
                let next = self.automaton.step(from, letter);
                if self.hopeful[&next]
                    && !self.automaton.accepts(next)
                    && !reachable.contains(&next)
                {
                    reachable.push(next);
                }
            }
        }
        let events = self.events.clone();
        let fatal = |goal: &mut Self, letter: Letter| {
            reachable.iter().all(|&from| {
                let next = goal.automaton.step(from, letter);
                !goal.hopeful[&next]
            })
        };
        events.into_iter().filter(|&(_, letter)| fatal(self, letter)).map(|(id, _)| id).collect()
    }

    /// The states in which the goal is open and can be reached; the initial one first.
    pub(super) fn states(&self) -> Vec<GoalState> {
        let open = |state: &GoalState| !self.is_hopeless(*state) && !self.accepts(*state);
        let mut states: Vec<GoalState> = self.hopeful.keys().copied().filter(open).collect();
        states.sort_unstable();
        states
    }

    /// The formula as it was given.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// The trace's events that the goal speaks of.
    pub fn events(&self) -> impl Iterator<Item = EventId> + '_ {
        self.events.iter().chain(&self.next).map(|&(event, _)| event)
    }

    /// The events of `next(...)`.
    pub(super) fn next_events(&self) -> impl Iterator<Item = EventId> + '_ {
        self.next.iter().map(|&(event, _)| event)
    }

    /// The goal as a sequence, if it is one.
    pub(super) fn sequence(&self) -> Option<&Sequence> {
        self.sequence.as_ref()
    }

    pub(super) fn mentions(&self, event: EventId) -> bool {
        self.events().any(|other| other == event)
    }

    /// Does it matter how many other events lie in between?
    pub(super) fn counts_steps(&self) -> bool {
        !self.stutters
    }

    pub(super) fn initial(&self) -> GoalState {
        self.automaton.initial()
    }

    pub(super) fn accepts(&self, state: GoalState) -> bool {
        self.automaton.accepts(state)
    }

    /// Can the goal no longer be reached?
    pub(super) fn is_hopeless(&self, state: GoalState) -> bool {
        !self.hopeful.get(&state).copied().unwrap_or(true)
    }

    /// The events that must not take place any more before the goal is reached.
    pub(super) fn forbidden(&self, state: GoalState) -> &[EventId] {
        self.forbidden.get(&state).map_or(&[], Vec::as_slice)
    }

    /// The letter of a step.
    pub(super) fn letter(&self, event: EventId, is_next: &dyn Fn(EventId) -> bool) -> Letter {
        let happens = self.events.iter().filter(|(other, _)| *other == event);
        let next = self.next.iter().filter(|(other, _)| is_next(*other));
        happens.chain(next).fold(0, |letter, (_, bits)| letter | bits)
    }

    /// The automaton's state after an event; `is_next` tells whether an event is next in its thread
    /// afterwards.
    pub(super) fn step(
        &mut self,
        state: GoalState,
        event: EventId,
        is_next: &dyn Fn(EventId) -> bool,
    ) -> GoalState {
        let letter = self.letter(event, is_next);
        self.automaton.step(state, letter)
    }

    /// The shortest list of things that would reach the goal, each event at most once; `None` when
    /// events that are done already make it impossible.
    pub(super) fn demands(
        &mut self,
        state: GoalState,
        done: &dyn Fn(EventId) -> bool,
    ) -> Option<Arc<[Demand]>> {
        let known = self.events.iter().zip(0..).filter(|((event, _), _)| done(*event));
        let key = (state, known.fold(0, |bits, (_, bit)| bits | 1u64 << bit));
        if let Some(known) = self.demanded.get(&key) {
            return known.clone();
        }
        let demands: Option<Arc<[Demand]>> = self.shortest(state, done).map(Arc::from);
        self.demanded.insert(key, demands.clone());
        demands
    }

    fn shortest(
        &mut self,
        state: GoalState,
        done: &dyn Fn(EventId) -> bool,
    ) -> Option<Vec<Demand>> {
        let mut moves: Vec<(Letter, Vec<Demand>)> = self
            .events
            .iter()
            .filter(|&&(event, _)| !done(event))
            .map(|&(event, letter)| (letter, vec![Demand::Done(event)]))
            .collect();
        for subset in 1..1u32 << self.next.len() {
            let chosen: Vec<(EventId, Letter)> = self
                .next
                .iter()
                .enumerate()
                .filter(|(bit, _)| subset >> bit & 1 != 0)
                .map(|(_, next)| *next)
                .collect();
            let letter = chosen.iter().fold(0, |letter, (_, bits)| letter | bits);
            moves.push((letter, chosen.iter().map(|&(event, _)| Demand::Next(event)).collect()));
        }
        let mut seen = HashSet::from([state]);
        let mut queue: VecDeque<(GoalState, Vec<Demand>)> = VecDeque::from([(state, Vec::new())]);
        while let Some((at, demands)) = queue.pop_front() {
            for (letter, asked) in &moves {
                if asked.iter().any(|demand| demands.contains(demand)) {
                    continue;
                }
                let next = self.automaton.step(at, *letter);
                let mut demands = demands.clone();
                demands.extend(asked);
                if self.automaton.accepts(next) {
                    return Some(demands);
                }
                if !self.is_hopeless(next) && seen.insert(next) {
                    queue.push_back((next, demands));
                }
            }
        }
        None
    }
}

/// The event with this label, or with this thread and index.
pub(super) fn find(trace: &Trace, name: &str) -> Option<EventId> {
    if let Some((&event, _)) = trace.labels.iter().find(|(_, label)| label.as_ref() == name) {
        return Some(event);
    }
    let (thread, index) = name.rsplit_once('#')?;
    let index: u32 = index.parse().ok()?;
    let thread = trace.threads.iter().position(|other| other.name.as_ref() == thread)?;
    let place = |event: &foretell_trace::Event| (event.thread.index(), event.index);
    let found = trace.events.iter().position(|event| place(event) == (thread, index))?;
    Some(EventId::from(found))
}
