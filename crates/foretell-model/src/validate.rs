//! The independent witness validator: a plain interpreter of a CTP.
//!
//! It shares no code with CSSA or any encoder. It runs the events in the witness's order, checks
//! program order, fixed orders, atomic sections, guards, chosen values and the precondition, and
//! says what the state was. What it does not accept is not shown to anyone.
//!
//! A prefix may end inside an atomic section; then only the section's thread can go on.

use std::collections::HashMap;

use foretell_trace::{EventId, Term, TermId, ThreadId, Value, VariableId};

use crate::ctp::{Action, ConcurrentTraceProgram};

/// An interleaving (or the first part of one) and the inputs that make it happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Witness {
    /// CTP events in the order they take place; each thread contributes a prefix of its events.
    pub order: Vec<EventId>,
    /// Initial values of variables that have no fixed one.
    pub initial: Vec<(VariableId, Value)>,
    /// Values chosen by transition predicates.
    pub choices: Vec<(EventId, VariableId, Value)>,
}

/// Why a witness is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A variable without fixed initial value has none in the witness either.
    NoInitialValue(VariableId),
    /// The witness gives a value of another sort, or not the fixed one.
    WrongInitialValue(VariableId),
    /// The precondition does not hold of the initial values.
    Precondition,
    /// An event cannot take place where the witness has it.
    Step {
        /// Its place in the order.
        step: usize,
        /// The event.
        event: EventId,
        /// Why.
        obstacle: Obstacle,
    },
}

/// Why an event cannot take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The CTP has no such event.
    NoSuchEvent,
    /// Its thread has another event to do first, or has done it already.
    ProgramOrder,
    /// This event has to come before.
    FixedOrder(EventId),
    /// This thread is in an atomic section.
    AtomicSection(ThreadId),
    /// The guard does not hold.
    Guard,
    /// A term has no value: it divides by zero or leaves 128 bits.
    Undefined(TermId),
    /// The predicate does not allow the chosen values, or a value is missing or of a wrong sort.
    Choice,
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rejection::NoInitialValue(variable) => {
                write!(f, "variable {variable:?} has no initial value")
            }
            Rejection::WrongInitialValue(variable) => {
                write!(f, "variable {variable:?} cannot have the given initial value")
            }
            Rejection::Precondition => f.write_str("the precondition does not hold"),
            Rejection::Step { step, event, obstacle } => {
                write!(f, "step {step}, event {event:?}: {obstacle}")
            }
        }
    }
}

impl std::error::Error for Rejection {}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::NoSuchEvent => f.write_str("there is no such event"),
            Obstacle::ProgramOrder => f.write_str("it is not the next event of its thread"),
            Obstacle::FixedOrder(event) => write!(f, "event {event:?} has to come before"),
            Obstacle::AtomicSection(thread) => {
                write!(f, "thread {thread:?} is in an atomic section")
            }
            Obstacle::Guard => f.write_str("the guard does not hold"),
            Obstacle::Undefined(term) => write!(f, "term {term:?} has no value"),
            Obstacle::Choice => f.write_str("the predicate does not allow the chosen values"),
        }
    }
}

/// Where a run stands: the value of every variable and the next event of every thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// By variable.
    pub values: Vec<Value>,
    /// By thread: how many of its events have taken place.
    pub next: Vec<u32>,
}

/// What an accepted witness did.
#[derive(Clone, Debug)]
pub struct Run {
    /// Before the first event.
    pub start: Configuration,
    /// After the last event.
    pub end: Configuration,
    /// What each event changed, in the witness's order.
    pub changes: Vec<Vec<(VariableId, Value)>>,
    /// Assertions that did not hold, in order.
    pub violated: Vec<EventId>,
    /// Next events of threads that could go on at the end.
    pub enabled: Vec<EventId>,
    /// Next events of threads that could not.
    pub blocked: Vec<EventId>,
    /// Next events for which that could not be decided (a transition predicate, an undefined term).
    pub undecided: Vec<EventId>,
}

impl Run {
    /// The values after the first `steps` events.
    pub fn values_after(&self, steps: usize) -> Vec<Value> {
        let mut values = self.start.values.clone();
        for (variable, value) in self.changes[..steps].iter().flatten() {
            values[variable.index()] = value.clone();
        }
        values
    }
}

/// Runs the witness.
pub fn validate(ctp: &ConcurrentTraceProgram, witness: &Witness) -> Result<Run, Rejection> {
    let interpreter = Interpreter::new(ctp);
    let start = interpreter.start(&witness.initial)?;
    let mut choices: HashMap<EventId, Vec<(VariableId, Value)>> = HashMap::new();
    for (event, variable, value) in &witness.choices {
        choices.entry(*event).or_default().push((*variable, value.clone()));
    }
    let mut at = start.clone();
    let mut changes = Vec::with_capacity(witness.order.len());
    let mut violated = Vec::new();
    for (step, &event) in witness.order.iter().enumerate() {
        let chosen = choices.get(&event).map_or(&[][..], Vec::as_slice);
        let effect = interpreter
            .step(&mut at, event, chosen)
            .map_err(|obstacle| Rejection::Step { step, event, obstacle })?;
        if effect.violation {
            violated.push(event);
        }
        changes.push(effect.changes);
    }
    let mut run = Run {
        start,
        end: at,
        changes,
        violated,
        enabled: Vec::new(),
        blocked: Vec::new(),
        undecided: Vec::new(),
    };
    for thread in 0..ctp.threads.len() {
        if let Some(event) = interpreter.next_event(&run.end, ThreadId::from(thread)) {
            match interpreter.is_enabled(&run.end, event) {
                Some(true) => run.enabled.push(event),
                Some(false) => run.blocked.push(event),
                None => run.undecided.push(event),
            }
        }
    }
    Ok(run)
}

/// What one event did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effect {
    /// Variables and their new values.
    pub changes: Vec<(VariableId, Value)>,
    /// It is an assertion and did not hold.
    pub violation: bool,
}

/// Executes the events of a CTP one by one.
#[derive(Clone, Debug)]
pub struct Interpreter<'c> {
    ctp: &'c ConcurrentTraceProgram,
    predecessors: HashMap<EventId, Vec<EventId>>,
    /// By thread: positions of first and last event of its atomic sections.
    sections: Vec<Vec<(u32, u32)>>,
}

impl<'c> Interpreter<'c> {
    /// For this CTP.
    pub fn new(ctp: &'c ConcurrentTraceProgram) -> Self {
        let mut predecessors: HashMap<EventId, Vec<EventId>> = HashMap::new();
        for &(before, after) in &ctp.orders {
            predecessors.entry(after).or_default().push(before);
        }
        let mut sections = vec![Vec::new(); ctp.threads.len()];
        for &(first, last) in &ctp.atomic_sections {
            let (first, last) = (ctp.event(first), ctp.event(last));
            sections[first.thread.index()].push((first.position, last.position));
        }
        Self { ctp, predecessors, sections }
    }

    /// The CTP.
    pub fn ctp(&self) -> &'c ConcurrentTraceProgram {
        self.ctp
    }

    /// The first configuration, with values for the variables that have no fixed one.
    pub fn start(&self, initial: &[(VariableId, Value)]) -> Result<Configuration, Rejection> {
        let given: HashMap<VariableId, &Value> =
            initial.iter().map(|(variable, value)| (*variable, value)).collect();
        let mut values = Vec::with_capacity(self.ctp.variables.len());
        for (index, variable) in self.ctp.variables.iter().enumerate() {
            let id = VariableId::from(index);
            let value = match (&variable.initial, given.get(&id)) {
                (Some(fixed), Some(&given)) if fixed != given => {
                    return Err(Rejection::WrongInitialValue(id));
                }
                (Some(fixed), _) => fixed,
                (None, Some(&given)) => given,
                (None, None) => return Err(Rejection::NoInitialValue(id)),
            };
            if value.sort() != variable.sort {
                return Err(Rejection::WrongInitialValue(id));
            }
            values.push(value.clone());
        }
        let start = Configuration { values, next: vec![0; self.ctp.threads.len()] };
        match self.ctp.precondition {
            Some(term) if self.truth(&start, term) != Ok(true) => Err(Rejection::Precondition),
            _ => Ok(start),
        }
    }

    /// The event that the thread would do next.
    pub fn next_event(&self, at: &Configuration, thread: ThreadId) -> Option<EventId> {
        let next = at.next[thread.index()] as usize;
        self.ctp.threads[thread.index()].get(next).copied()
    }

    /// Has the event taken place?
    pub fn is_executed(&self, at: &Configuration, event: EventId) -> bool {
        let event = self.ctp.event(event);
        event.position < at.next[event.thread.index()]
    }

    /// Have all events taken place?
    pub fn is_complete(&self, at: &Configuration) -> bool {
        let chains = self.ctp.threads.iter().zip(&at.next);
        chains.into_iter().all(|(chain, &next)| chain.len() == next as usize)
    }

    /// Can the event be the next one? `None` when a transition predicate or an undefined term
    /// leaves it open.
    pub fn is_enabled(&self, at: &Configuration, event: EventId) -> Option<bool> {
        if self.obstacle(at, event).is_some() {
            return Some(false);
        }
        match &self.ctp.event(event).action {
            Action::Assert { .. } => Some(true),
            Action::Guarded { guard, .. } => self.truth(at, *guard).ok(),
            Action::Transition { predicate, .. } => {
                // Decided only if the values before the step are enough to tell.
                let mut terms = self.ctp.terms.clone();
                let mut cache = HashMap::new();
                let rest =
                    terms.substitute(*predicate, &mut cache, &mut |terms, leaf| match leaf {
                        Term::Variable(variable) => {
                            Some(terms.constant(at.values[variable.index()].clone()))
                        }
                        _ => None,
                    });
                terms.constant_value(rest)?.as_bool()
            }
        }
    }

    /// Takes the event as the next one; on an obstacle nothing changes.
    pub fn step(
        &self,
        at: &mut Configuration,
        event: EventId,
        chosen: &[(VariableId, Value)],
    ) -> Result<Effect, Obstacle> {
        if event.index() >= self.ctp.events.len() {
            return Err(Obstacle::NoSuchEvent);
        }
        if let Some(obstacle) = self.obstacle(at, event) {
            return Err(obstacle);
        }
        let mut effect = Effect::default();
        match &self.ctp.event(event).action {
            Action::Assert { condition } => effect.violation = !self.truth(at, *condition)?,
            Action::Guarded { guard, assignments } => {
                if !self.truth(at, *guard)? {
                    return Err(Obstacle::Guard);
                }
                for &(variable, term) in assignments {
                    effect.changes.push((variable, self.value(at, term, &[])?));
                }
            }
            Action::Transition { predicate, changed } => {
                for &variable in changed {
                    let sort = self.ctp.variables[variable.index()].sort;
                    let value = chosen.iter().find(|(chosen, _)| *chosen == variable);
                    let (_, value) = value.ok_or(Obstacle::Choice)?;
                    if value.sort() != sort {
                        return Err(Obstacle::Choice);
                    }
                    effect.changes.push((variable, value.clone()));
                }
                let holds = self.value(at, *predicate, &effect.changes)?;
                if holds.as_bool() != Some(true) {
                    return Err(Obstacle::Choice);
                }
            }
        }
        for (variable, value) in &effect.changes {
            at.values[variable.index()] = value.clone();
        }
        at.next[self.ctp.event(event).thread.index()] += 1;
        Ok(effect)
    }

    /// What keeps the event from being next, apart from its own action.
    fn obstacle(&self, at: &Configuration, event: EventId) -> Option<Obstacle> {
        let thread = self.ctp.event(event).thread;
        if self.ctp.event(event).position != at.next[thread.index()] {
            return Some(Obstacle::ProgramOrder);
        }
        let predecessors = self.predecessors.get(&event).map_or(&[][..], Vec::as_slice);
        if let Some(&missing) = predecessors.iter().find(|&&before| !self.is_executed(at, before)) {
            return Some(Obstacle::FixedOrder(missing));
        }
        for (other, sections) in self.sections.iter().enumerate() {
            let next = at.next[other];
            let inside = sections.iter().any(|&(first, last)| first < next && next <= last);
            if inside && other != thread.index() {
                return Some(Obstacle::AtomicSection(ThreadId::from(other)));
            }
        }
        None
    }

    fn truth(&self, at: &Configuration, term: TermId) -> Result<bool, Obstacle> {
        self.value(at, term, &[])?.as_bool().ok_or(Obstacle::Undefined(term))
    }

    /// The value of a term; `primed` gives the values after the step.
    pub fn value(
        &self,
        at: &Configuration,
        term: TermId,
        primed: &[(VariableId, Value)],
    ) -> Result<Value, Obstacle> {
        let leaf = |leaf: &Term| match leaf {
            Term::Variable(variable) => at.values.get(variable.index()).cloned(),
            Term::Primed(variable) => {
                // A variable that the step may not change keeps its value.
                let new = primed.iter().find(|(changed, _)| changed == variable);
                new.map(|(_, value)| value).or_else(|| at.values.get(variable.index())).cloned()
            }
            _ => None,
        };
        self.ctp.terms.evaluate(term, &leaf).map_err(|_| Obstacle::Undefined(term))
    }
}
