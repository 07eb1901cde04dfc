//! From a trace to a [`ConcurrentTraceProgram`] (004 section 3, 000 section 2): each operation
//! becomes one guarded assignment.
//!
//! | operation | guard | assignments |
//! |---|---|---|
//! | read | address = recorded; without terms: x = recorded | r := x |
//! | write | address = recorded | x := term or recorded value |
//! | read-modify-write | as read and write, in one step | r := x, x := term |
//! | branch | condition = outcome | |
//! | step on a synchronisation object | [`foretell_trace::sync::transition`] | |
//! | fork, join | true; t has ended | t := running |
//!
//! A signal may wake any waiter: a free input ([`Role::Choice`](crate::ctp::Role::Choice)) says which. Spurious wake-ups are not
//! modelled (a run that needs one is missed). Channels that are not counted have fixed orders instead (see
//! the module `channel`). Fences, calls, regions, allocations and inputs have no effect here.
//!
//! Without terms ([`foretell_trace::Metadata::symbolic`] is false) every read is guarded by its
//! recorded value, without values by the token of the write it saw (the maximal causal model's
//! reading of an event).

mod accesses;
mod error;
mod synchronise;
mod terms;

use std::collections::{HashMap, HashSet};

use foretell_trace::{
    EventId, LockMode, ObjectId, Op, Operator, Scope, Sort, Term, TermId, TermStore, ThreadId,
    Trace, Value, VariableId,
};

use crate::ctp::{Action, ConcurrentTraceProgram, CtpEvent, CtpVariable, LockSection};
use crate::layout::{ENDED, Layout, RUNNING, STATE_WIDTH};
use crate::replay::Replay;
pub use error::BuildError;

impl ConcurrentTraceProgram {
    /// The CTP of a whole trace.
    pub fn build(trace: &Trace) -> Result<Self, BuildError> {
        let everything: Vec<EventId> = (0..trace.events.len()).map(EventId::from).collect();
        Self::build_window(&Replay::new(trace)?, &everything)
    }

    /// The CTP of some of the events that come after the point that the replay has reached. They
    /// are given in recorded order, and those of each thread must be its next ones.
    ///
    /// The initial state is the replay's. What lies before the window has happened as recorded, so
    /// every linearization of the window continues a real run.
    pub fn build_window(start: &Replay, events: &[EventId]) -> Result<Self, BuildError> {
        let trace = start.trace();
        let mut next = start.next_index().to_vec();
        for &id in events {
            let event = trace.event(id);
            let next = &mut next[event.thread.index()];
            if event.index != *next {
                return Err(BuildError::NotNext { event: id });
            }
            *next += 1;
        }
        let mut translator = Translator::new(start);
        let mut ctp_events = Vec::with_capacity(events.len());
        let mut threads = vec![Vec::new(); trace.threads.len()];
        for (number, &origin) in events.iter().enumerate() {
            let action = translator.translate(origin, EventId::from(number))?;
            let thread = trace.event(origin).thread;
            let chain: &mut Vec<EventId> = &mut threads[thread.index()];
            let position = chain.len() as u32;
            chain.push(EventId::from(number));
            ctp_events.push(CtpEvent { thread, position, origin, action });
        }
        let first = events.first().copied().unwrap_or(EventId(0));
        let channel_orders = start.layout().channels.orders_from(first);
        let number_of = |origin: EventId| events.binary_search(&origin).ok().map(EventId::from);
        let orders = trace
            .orders
            .iter()
            .chain(&translator.orders)
            .chain(channel_orders)
            .filter_map(|&(before, after)| Some((number_of(before)?, number_of(after)?)))
            .collect();
        // A section cut by the window's border goes on to the border.
        let atomic_sections = trace
            .atomic_sections
            .iter()
            .filter_map(|&(first, last)| {
                let thread = trace.event(first).thread;
                let inside = threads[thread.index()]
                    .iter()
                    .copied()
                    .filter(|&event| (first..=last).contains(&ctp_events[event.index()].origin));
                let inside: Vec<EventId> = inside.collect();
                Some((*inside.first()?, *inside.last()?))
            })
            .collect();
        let precondition = match trace.precondition {
            Some(term) if start.is_at_start() => Some(translator.precondition(term)?),
            _ => None,
        };
        translator.settle_unused(&ctp_events, precondition);
        Ok(Self {
            orders,
            atomic_sections,
            precondition,
            sections: translator.sections,
            terms: translator.terms,
            variables: translator.variables,
            threads,
            events: ctp_events,
        })
    }
}

/// Guard and assignments of an event in the making.
#[derive(Default)]
struct Step {
    guards: Vec<TermId>,
    assignments: Vec<(VariableId, TermId)>,
}

/// Turns events into actions, one after the other in recorded order.
struct Translator<'t> {
    trace: &'t Trace,
    layout: &'t Layout,
    replay: &'t Replay<'t>,
    terms: TermStore,
    variables: Vec<CtpVariable>,
    sections: Vec<LockSection>,
    /// Between events of the trace, for threads without begin or end events.
    orders: Vec<(EventId, EventId)>,
    /// Open sections of each thread and lock; the inner levels of a recursive mutex repeat the
    /// section.
    held: HashMap<(ThreadId, ObjectId, LockMode), Vec<usize>>,
    /// The variables of the window's reads.
    read_values: HashMap<(ThreadId, u32), VariableId>,
    /// The token that each variable has at this point of the recorded order.
    tokens: HashMap<VariableId, Value>,
    /// Terms of the trace that were translated, for each thread and for the precondition.
    caches: Vec<HashMap<TermId, TermId>>,
}

impl<'t> Translator<'t> {
    fn new(replay: &'t Replay<'t>) -> Self {
        let layout = replay.layout();
        let mut variables = layout.variables.clone();
        for (variable, value) in variables.iter_mut().zip(replay.state()) {
            variable.initial = value.clone();
        }
        let mut sections = Vec::new();
        let mut held = HashMap::new();
        for ((thread, lock, mode), depth) in replay.held().iter() {
            held.insert((thread, lock, mode), vec![sections.len(); depth as usize]);
            sections.push(LockSection { lock, thread, mode, acquire: None, release: None });
        }
        Self {
            trace: replay.trace(),
            layout,
            replay,
            terms: TermStore::default(),
            variables,
            sections,
            orders: Vec::new(),
            held,
            read_values: HashMap::new(),
            tokens: HashMap::new(),
            caches: vec![HashMap::new(); replay.trace().threads.len() + 1],
        }
    }

    /// A variable that nothing reads is no input: any initial value does.
    fn settle_unused(&mut self, events: &[CtpEvent], precondition: Option<TermId>) {
        if self.variables.iter().all(|variable| variable.initial.is_some()) {
            return;
        }
        let mut stack: Vec<TermId> = precondition.into_iter().collect();
        for event in events {
            match &event.action {
                Action::Guarded { guard, assignments } => {
                    stack.push(*guard);
                    stack.extend(assignments.iter().map(|&(_, value)| value));
                }
                Action::Transition { predicate: term, .. } | Action::Assert { condition: term } => {
                    stack.push(*term);
                }
            }
        }
        let mut seen = HashSet::new();
        let mut used = HashSet::new();
        while let Some(term) = stack.pop() {
            if seen.insert(term) {
                match self.terms.term(term) {
                    Term::Apply(_, arguments) => stack.extend(arguments.iter().copied()),
                    Term::Variable(variable) | Term::Primed(variable) => {
                        used.insert(*variable);
                    }
                    _ => {}
                }
            }
        }
        for (index, variable) in self.variables.iter_mut().enumerate() {
            if variable.initial.is_none() && !used.contains(&VariableId::from(index)) {
                variable.initial = Some(Value::zero(variable.sort));
            }
        }
    }

    fn precondition(&mut self, term: TermId) -> Result<TermId, BuildError> {
        self.import(term, EventId(0), None)
    }

    /// The action of the trace's event `origin`, which is event `number` of the CTP.
    fn translate(&mut self, origin: EventId, number: EventId) -> Result<Action, BuildError> {
        let trace = self.trace;
        let event = trace.event(origin);
        let thread = event.thread;
        let mut step = Step::default();
        match &event.op {
            Op::ThreadBegin => {
                let running = self.thread_state_is(thread, RUNNING);
                step.guards.push(running);
            }
            Op::ThreadEnd => self.set_thread_state(&mut step, thread, ENDED),
            Op::Fork(child) => {
                self.set_thread_state(&mut step, *child, RUNNING);
                if let Some(&first) = self.layout.chains[child.index()].first()
                    && !matches!(trace.event(first).op, Op::ThreadBegin)
                {
                    self.orders.push((origin, first));
                }
            }
            Op::Join(child) => self.join(&mut step, origin, *child),
            Op::Read(access) => self.read(&mut step, origin, access)?,
            Op::Write(access) => self.write(&mut step, origin, access)?,
            Op::ReadModifyWrite(rmw) => self.read_modify_write(&mut step, origin, rmw)?,
            Op::Sync(object, op) => self.synchronise(&mut step, origin, number, *object, op)?,
            Op::Branch(condition) => {
                if let Some(term) = condition.term {
                    let term = self.import_sorted(term, origin, Sort::BOOL)?;
                    let outcome = self.terms.bool(condition.outcome);
                    step.guards.push(self.equal(term, outcome));
                }
            }
            Op::Assert(condition) => {
                let condition = match condition.term {
                    Some(term) => self.import_sorted(term, origin, Sort::BOOL)?,
                    None => self.terms.bool(condition.outcome),
                };
                return Ok(Action::Assert { condition });
            }
            Op::Guarded(guarded) => {
                step.guards.push(self.import_sorted(guarded.guard, origin, Sort::BOOL)?);
                for &(variable, term) in &guarded.assignments {
                    let sort = trace.variables[variable.index()].sort;
                    let value = self.import_sorted(term, origin, sort)?;
                    self.assign(&mut step, origin, variable, value)?;
                }
            }
            Op::Transition(transition) => {
                let predicate = self.import_sorted(transition.predicate, origin, Sort::BOOL)?;
                let mut changed = Vec::new();
                for &variable in &transition.changed {
                    self.check_scope(origin, variable)?;
                    changed.extend(self.layout.cells(variable).iter().map(|cell| cell.variable));
                }
                return Ok(Action::Transition { predicate, changed });
            }
            Op::Fence(_)
            | Op::RegionBegin(_)
            | Op::RegionEnd
            | Op::Call(_)
            | Op::Return
            | Op::Await(_)
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Input { .. } => {}
        }
        let guard = self.terms.and(&step.guards);
        Ok(Action::Guarded { guard, assignments: step.assignments })
    }

    // Threads

    fn thread_state_is(&mut self, thread: ThreadId, state: u64) -> TermId {
        self.equals_bits(self.layout.thread_states[thread.index()], state)
    }

    fn set_thread_state(&mut self, step: &mut Step, thread: ThreadId, state: u64) {
        let variable = self.layout.thread_states[thread.index()];
        let state = self.terms.bit_vec(STATE_WIDTH, state);
        step.assignments.push((variable, state));
    }

    fn join(&mut self, step: &mut Step, origin: EventId, child: ThreadId) {
        let Some(&last) = self.layout.chains[child.index()].last() else { return };
        if matches!(self.trace.event(last).op, Op::ThreadEnd) {
            let ended = self.thread_state_is(child, ENDED);
            step.guards.push(ended);
        } else {
            self.orders.push((last, origin));
        }
    }

    // Memory

    /// The value of a trace's variable: the concatenation of its cells.
    fn place(&mut self, variable: VariableId, primed: bool) -> TermId {
        let mut value = None;
        for cell in self.layout.cells(variable) {
            let sort = self.variables[cell.variable.index()].sort;
            let part = match primed {
                true => self.terms.primed(cell.variable, sort),
                false => self.terms.variable(cell.variable, sort),
            };
            value = Some(match value {
                None => part,
                Some(low) => self.terms.build(Operator::Concat, &[part, low]),
            });
        }
        value.expect("a variable has at least one cell")
    }

    fn assign(
        &mut self,
        step: &mut Step,
        origin: EventId,
        variable: VariableId,
        value: TermId,
    ) -> Result<(), BuildError> {
        self.check_scope(origin, variable)?;
        if !self.layout.is_split(variable) {
            step.assignments.push((variable, value));
            return Ok(());
        }
        for cell in self.layout.cells(variable) {
            let bits = Operator::Extract { high: cell.low + cell.width - 1, low: cell.low };
            let part = self.terms.build(bits, &[value]);
            step.assignments.push((cell.variable, part));
        }
        Ok(())
    }

    fn check_scope(&self, origin: EventId, variable: VariableId) -> Result<(), BuildError> {
        match self.variables[variable.index()].scope {
            Scope::Local(owner) if owner != self.trace.event(origin).thread => {
                let variable = self.variables[variable.index()].name.clone();
                Err(BuildError::ForeignLocal { event: origin, variable })
            }
            _ => Ok(()),
        }
    }

    // Helpers

    fn variable(&mut self, variable: VariableId) -> TermId {
        let sort = self.variables[variable.index()].sort;
        self.terms.variable(variable, sort)
    }

    fn equal(&mut self, left: TermId, right: TermId) -> TermId {
        let terms = &mut self.terms; // as a place, `self.terms.eq` would be `PartialEq::eq`
        terms.eq(left, right)
    }

    fn equals_bits(&mut self, variable: VariableId, bits: u64) -> TermId {
        let sort = self.variables[variable.index()].sort;
        let left = self.variable(variable);
        let right = Value::from_bits(sort, bits).expect("state variables are bit-vectors");
        let right = self.terms.constant(right);
        self.equal(left, right)
    }

    fn wrong_object(&self, event: EventId, object: ObjectId) -> BuildError {
        let object = self.trace.objects[object.index()].name.clone();
        BuildError::WrongObject { event, object }
    }
}
