//! The recorded run, carried out on plain values: the state at the start of a window.
//!
//! The record is trusted. A read sets its location to what it returned, so that what nobody
//! recorded (a write by an uninstrumented library) is made good at the next read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foretell_trace::{
    EventId, LockMode, ObjectId, Op, Term, TermId, ThreadId, Trace, Value, VariableId,
};

use crate::build::BuildError;
use crate::layout::{ENDED, Layout, ObjectLayout, RUNNING, STATE_WIDTH, WAITING, WOKEN, token};

/// A point in the recorded run. Clones are cheap enough to be kept as checkpoints.
#[derive(Clone, Debug)]
pub struct Replay<'t> {
    trace: &'t Trace,
    layout: Arc<Layout>,
    position: usize,
    state: Vec<Option<Value>>,
    next: Vec<u32>,
    held: BTreeMap<(ThreadId, ObjectId, LockMode), u32>,
    /// The open condition wait of each thread.
    waiting: BTreeMap<ThreadId, EventId>,
    /// Results of reads whose value was not recorded.
    read_values: HashMap<(ThreadId, u32), Value>,
}

impl<'t> Replay<'t> {
    /// Before the first event.
    pub fn new(trace: &'t Trace) -> Result<Self, BuildError> {
        let layout = Layout::new(trace)?;
        let mut held = BTreeMap::new();
        for &(thread, lock, mode) in &layout.held {
            *held.entry((thread, lock, mode)).or_insert(0) += 1;
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

    pub(crate) fn held(&self) -> &BTreeMap<(ThreadId, ObjectId, LockMode), u32> {
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
            Op::Acquire(step) => self.acquire(thread, step.lock, step.mode),
            Op::Release(step) => self.release(thread, step.lock, step.mode),
            Op::WaitBegin { condition, mutex } => {
                self.release(thread, *mutex, LockMode::Exclusive);
                self.waiting.insert(thread, id);
                if !self.layout.timed_out.contains(&id) {
                    self.set_waiter(*condition, thread, WAITING);
                }
            }
            Op::WaitEnd { condition, mutex, .. } => {
                self.acquire(thread, *mutex, LockMode::Exclusive);
                self.waiting.remove(&thread);
                self.set_waiter(*condition, thread, 0);
            }
            Op::Signal(condition) => {
                // Of those asleep, the one whose wait ends first: some wait ended by this signal,
                // or none of them ever did.
                let sleepers = self.sleepers(*condition).into_iter();
                let woken = sleepers.min_by_key(|sleeper| {
                    let begin = self.waiting.get(sleeper);
                    let end = begin.and_then(|begin| self.layout.wait_end.get(begin));
                    end.copied().unwrap_or(EventId(u32::MAX))
                });
                if let Some(woken) = woken {
                    self.set_waiter(*condition, woken, WOKEN);
                }
            }
            Op::Broadcast(condition) => {
                for sleeper in self.sleepers(*condition) {
                    self.set_waiter(*condition, sleeper, WOKEN);
                }
            }
            Op::SemaphoreWait { semaphore, .. } => {
                self.count(*semaphore, |count| count.wrapping_sub(1))
            }
            Op::SemaphorePost(semaphore) => self.count(*semaphore, |count| count.wrapping_add(1)),
            Op::Send { channel, amount, .. } => {
                self.count_channel(*channel, |count| count.wrapping_add(*amount));
            }
            Op::Receive { channel, amount, .. } => {
                self.count_channel(*channel, |count| count.wrapping_sub(*amount));
            }
            Op::BarrierArrive(barrier) => self.arrive(*barrier, thread),
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

    fn set_bits(&mut self, variable: VariableId, bits: u64) {
        let sort = self.layout.variables[variable.index()].sort;
        self.state[variable.index()] = Value::from_bits(sort, bits);
    }

    fn bits(&self, variable: VariableId) -> u64 {
        match self.state[variable.index()] {
            Some(Value::BitVec { bits, .. }) => bits,
            _ => 0,
        }
    }

    fn set_thread_state(&mut self, thread: ThreadId, state: u64) {
        let variable = self.layout.thread_states[thread.index()];
        self.state[variable.index()] = Some(Value::bit_vec(STATE_WIDTH, state));
    }

    fn set_lock(&mut self, thread: ThreadId, lock: ObjectId, mode: LockMode, held: bool) {
        let ObjectLayout::Lock { holder, readers, .. } = &self.layout.objects[lock.index()] else {
            return; // told by `build_window`
        };
        match mode {
            LockMode::Exclusive => {
                let (holder, me) = (*holder, u64::from(thread.0) + 1);
                self.set_bits(holder, if held { me } else { 0 });
            }
            LockMode::Shared => {
                if let Some(&reader) = readers.get(&thread) {
                    self.state[reader.index()] = Some(Value::Bool(held));
                }
            }
        }
    }

    fn acquire(&mut self, thread: ThreadId, lock: ObjectId, mode: LockMode) {
        if self.layout.channels.irregular.contains(&lock) {
            return;
        }
        *self.held.entry((thread, lock, mode)).or_insert(0) += 1;
        self.set_lock(thread, lock, mode, true);
    }

    fn release(&mut self, thread: ThreadId, lock: ObjectId, mode: LockMode) {
        if self.layout.channels.irregular.contains(&lock) {
            return;
        }
        let depth = self.held.entry((thread, lock, mode)).or_insert(1);
        *depth = depth.saturating_sub(1);
        if *depth == 0 {
            self.held.remove(&(thread, lock, mode));
            self.set_lock(thread, lock, mode, false);
        }
    }

    fn waiters(&self, condition: ObjectId) -> &[(ThreadId, VariableId)] {
        match &self.layout.objects[condition.index()] {
            ObjectLayout::Condition { waiters } => waiters,
            _ => &[],
        }
    }

    fn sleepers(&self, condition: ObjectId) -> Vec<ThreadId> {
        let waiters = self.waiters(condition).iter();
        waiters
            .filter(|&&(_, variable)| self.bits(variable) == WAITING)
            .map(|&(thread, _)| thread)
            .collect()
    }

    fn set_waiter(&mut self, condition: ObjectId, thread: ThreadId, state: u64) {
        let waiter = self.waiters(condition).iter().find(|(waiter, _)| *waiter == thread);
        if let Some(&(_, variable)) = waiter {
            self.set_bits(variable, state);
        }
    }

    fn count(&mut self, semaphore: ObjectId, change: impl Fn(u64) -> u64) {
        if let ObjectLayout::Semaphore { count, .. } = self.layout.objects[semaphore.index()] {
            self.set_bits(count, change(self.bits(count)));
        }
    }

    fn count_channel(&mut self, channel: ObjectId, change: impl Fn(u64) -> u64) {
        if let ObjectLayout::Channel(Some((count, _))) = self.layout.objects[channel.index()] {
            self.set_bits(count, change(self.bits(count)));
        }
    }

    fn arrive(&mut self, barrier: ObjectId, thread: ThreadId) {
        let layout = Arc::clone(&self.layout);
        if let ObjectLayout::Barrier(barrier) = &layout.objects[barrier.index()] {
            let (arrived, generation) =
                (self.bits(barrier.arrived) + 1, self.bits(barrier.generation));
            self.set_bits(barrier.arrived_in[&thread], generation);
            let complete = arrived == barrier.parties;
            self.set_bits(barrier.arrived, if complete { 0 } else { arrived });
            self.set_bits(barrier.generation, generation + u64::from(complete));
        }
    }
}
