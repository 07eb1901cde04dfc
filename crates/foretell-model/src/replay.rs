//! The recorded run, carried out on plain values: the state at the start of a window.
//!
//! The record is trusted. A read sets its location to what it returned, so that what nobody
//! recorded (a write by an uninstrumented library) is made good at the next read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foretell_trace::sync::transition::{self, By, Holds, Slot, State, Values};
use foretell_trace::{
    EventId, ObjectId, ObjectKind, Op, SyncOp, Term, TermId, ThreadId, Trace, Value, VariableId,
};

use crate::build::BuildError;
use crate::layout::{ENDED, Layout, RUNNING, STATE_WIDTH, token};

/// A point in the recorded run. Clones are cheap enough to be kept as checkpoints.
#[derive(Clone, Debug)]
pub struct Replay<'t> {
    trace: &'t Trace,
    layout: Arc<Layout>,
    position: usize,
    state: Vec<Option<Value>>,
    next: Vec<u32>,
    held: Holds,
    /// The open condition wait of each thread.
    waiting: BTreeMap<ThreadId, EventId>,
    /// Results of reads whose value was not recorded.
    read_values: HashMap<(ThreadId, u32), Value>,
}

impl<'t> Replay<'t> {
    /// Before the first event.
    pub fn new(trace: &'t Trace) -> Result<Self, BuildError> {
        let layout = Layout::new(trace)?;
        let mut held = Holds::default();
        for &(thread, lock, mode) in &layout.held {
            held.hold(thread, lock, mode);
        }
        Ok(Self {
            trace,
            position: 0,
            state: layout.variables.iter().map(|variable| variable.initial.clone()).collect(),
            next: vec![0; trace.threads.len()],
            held,
            waiting: BTreeMap::new(),
            read_values: HashMap::new(),
            layout: Arc::new(layout),
        })
    }

    /// The trace.
    pub fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// How many events have taken place.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Carries on until `event` is the next one. Does nothing when that point has been passed.
    pub fn advance_to(&mut self, event: EventId) -> Result<(), BuildError> {
        if event.index() > self.position && !self.trace.metadata.observed_order {
            return Err(BuildError::NotObserved);
        }
        while self.position < event.index().min(self.trace.events.len()) {
            self.step()?;
        }
        Ok(())
    }

    /// The value of a variable of the trace, if it is known (and no token).
    pub fn value(&self, variable: VariableId) -> Option<Value> {
        if self.layout.holds_tokens(variable) { None } else { self.get(variable) }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn state(&self) -> &[Option<Value>] {
        &self.state
    }

    /// How many events each thread has had.
    pub fn next_index(&self) -> &[u32] {
        &self.next
    }

    pub(crate) fn held(&self) -> &Holds {
        &self.held
    }

    pub(crate) fn is_at_start(&self) -> bool {
        self.position == 0
    }

    /// What an earlier read returned.
    pub(crate) fn read_value(&self, thread: ThreadId, index: u32) -> Option<Value> {
        let event = *self.layout.chains[thread.index()].get(index as usize)?;
        let (variable, bits) = match &self.trace.event(event).op {
            Op::Read(access) => (access.variable, access.value),
            Op::ReadModifyWrite(step) => (step.variable, step.old),
            _ => return None,
        };
        let sort = self.trace.variables[variable.index()].sort;
        bits.and_then(|bits| Value::from_bits(sort, bits))
            .or_else(|| self.read_values.get(&(thread, index)).cloned())
    }

    fn step(&mut self) -> Result<(), BuildError> {
        let id = EventId::from(self.position);
        let trace = self.trace;
        let event = trace.event(id);
        let thread = event.thread;
        match &event.op {
            Op::ThreadEnd => self.set_thread_state(thread, ENDED),
            Op::Fork(child) => self.set_thread_state(*child, RUNNING),
            Op::Read(access) => self.read(id, access.variable, access.value),
            Op::Write(access) => self.write(id, access.variable, access.value, access.term),
            Op::ReadModifyWrite(step) => {
                self.read(id, step.variable, step.old);
                self.next[thread.index()] += 1; // its own result is known to its term
                self.write(id, step.variable, step.new, step.term);
                self.next[thread.index()] -= 1;
            }
            Op::Sync(object, op) => self.synchronise(id, *object, op),
            Op::Guarded(step) => {
                let values: Vec<Option<Value>> =
                    step.assignments.iter().map(|&(_, term)| self.evaluate(thread, term)).collect();
                for (&(variable, _), value) in step.assignments.iter().zip(values) {
                    self.set(variable, value);
                }
            }
            Op::Transition(_) => return Err(BuildError::NotDeterministic { event: id }),
            _ => {}
        }
        self.next[thread.index()] += 1;
        self.position += 1;
        Ok(())
    }

    fn read(&mut self, id: EventId, variable: VariableId, bits: Option<u64>) {
        if self.layout.holds_tokens(variable) {
            return;
        }
        let sort = self.trace.variables[variable.index()].sort;
        match bits.and_then(|bits| Value::from_bits(sort, bits)) {
            Some(value) => self.set(variable, Some(value)),
            None => {
                if let Some(value) = self.get(variable) {
                    let event = self.trace.event(id);
                    self.read_values.insert((event.thread, event.index), value);
                }
            }
        }
    }

    fn write(
        &mut self,
        id: EventId,
        variable: VariableId,
        bits: Option<u64>,
        term: Option<TermId>,
    ) {
        if self.layout.holds_tokens(variable) {
            for cell in self.layout.cells(variable) {
                self.state[cell.variable.index()] = Some(token(id));
            }
            return;
        }
        let sort = self.trace.variables[variable.index()].sort;
        let recorded = bits.and_then(|bits| Value::from_bits(sort, bits));
        let thread = self.trace.event(id).thread;
        let value = recorded.or_else(|| self.evaluate(thread, term?));
        self.set(variable, value);
    }

    /// The value of a variable, put together from its cells.
    fn get(&self, variable: VariableId) -> Option<Value> {
        if !self.layout.is_split(variable) {
            return self.state[variable.index()].clone();
        }
        let (mut width, mut bits) = (0, 0);
        for cell in self.layout.cells(variable) {
            let Some(Value::BitVec { bits: part, .. }) = self.state[cell.variable.index()] else {
                return None;
            };
            bits |= part << cell.low;
            width += cell.width;
        }
        Some(Value::bit_vec(width, bits))
    }

    fn set(&mut self, variable: VariableId, value: Option<Value>) {
        if !self.layout.is_split(variable) {
            self.state[variable.index()] = value;
            return;
        }
        for cell in self.layout.cells(variable) {
            self.state[cell.variable.index()] = match value {
                Some(Value::BitVec { bits, .. }) => {
                    Some(Value::bit_vec(cell.width, bits >> cell.low))
                }
                _ => None,
            };
        }
    }

    fn evaluate(&self, thread: ThreadId, term: TermId) -> Option<Value> {
        let leaf = |leaf: &Term| match *leaf {
            Term::Variable(variable) => self.get(variable),
            Term::ReadValue(reader, index) if reader == thread => self.read_value(reader, index),
            _ => None,
        };
        self.trace.terms.evaluate(term, &leaf).ok()
    }

    fn set_thread_state(&mut self, thread: ThreadId, state: u64) {
        let variable = self.layout.thread_states[thread.index()];
        self.state[variable.index()] = Some(Value::bit_vec(STATE_WIDTH, state));
    }

    fn synchronise(&mut self, id: EventId, object: ObjectId, op: &SyncOp) {
        let thread = self.trace.event(id).thread;
        let counts = |lock: ObjectId| !self.layout.channels.irregular.contains(&lock);
        let by = By {
            thread,
            inner: counts(op.mutex().unwrap_or(object)) && self.held.step(thread, object, op),
            timed: self.layout.timed.contains(&id),
            timed_out: self.layout.timed_out.contains(&id),
        };
        match op {
            SyncOp::WaitBegin { .. } => self.waiting.insert(thread, id),
            SyncOp::WaitEnd { .. } => self.waiting.remove(&thread),
            _ => None,
        };
        let layout = Arc::clone(&self.layout);
        let run = Recorded { replay: self, layout: &layout, gives_up: by.timed_out };
        // A step that does not fit its object is reported by `build_window`.
        let _ = transition::step(&mut Values(run), by, object, op);
    }
}

/// The state of the objects, changed as recorded.
struct Recorded<'a, 't> {
    replay: &'a mut Replay<'t>,
    layout: &'a Layout,
    gives_up: bool,
}

impl State for Recorded<'_, '_> {
    fn kind(&self, object: ObjectId) -> ObjectKind {
        self.replay.trace.objects[object.index()].kind
    }
    fn has_state(&self, object: ObjectId) -> bool {
        self.layout.has_state(object)
    }
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        self.layout.threads_at(object)
    }
    fn get(&self, slot: Slot) -> u64 {
        let variable = self.layout.slot(slot);
        match variable.map(|variable| &self.replay.state[variable.index()]) {
            Some(Some(Value::BitVec { bits, .. })) => *bits,
            Some(Some(Value::Bool(truth))) => u64::from(*truth),
            _ => 0,
        }
    }
    fn set(&mut self, slot: Slot, number: u64) {
        if let Some(variable) = self.layout.slot(slot) {
            let sort = self.layout.variables[variable.index()].sort;
            self.replay.state[variable.index()] = Value::from_bits(sort, number);
        }
    }
    fn require(&mut self, _: bool) {} // it happened
    /// Of those asleep, the one whose wait ends first: some wait ended by this signal, or none of them
    /// ever did.
    fn preferred(&self, condition: ObjectId) -> Option<ThreadId> {
        let threads = self.layout.threads_at(condition).into_iter();
        let asleep = threads
            .filter(|&thread| self.get(Slot::Waiter(condition, thread)) == transition::WAITING);
        asleep.min_by_key(|sleeper| {
            let begin = self.replay.waiting.get(sleeper);
            let end = begin.and_then(|begin| self.layout.wait_end.get(begin));
            end.copied().unwrap_or(EventId(u32::MAX))
        })
    }
    fn gives_up(&self) -> bool {
        self.gives_up
    }
}
