//! Thread-sensitive backward slicing (000 section 6): the events that a property can depend on.
//!
//! What goes is what can be put back without anybody noticing: an event that is always possible and
//! whose assignments nobody in the slice can see, and the sections of a lock that protects nothing
//! in the slice. In prefixes, what comes after a thread's last event in the slice goes as well. A
//! definition is seen by the uses of other threads, and by those uses of its own thread before which
//! it is not overwritten; assignments to variables that nobody needs go even where their event stays
//! (dead-variable removal).
//!
//! A solution of the slice becomes one of the whole by [`Slice::expand`], and each solution of the
//! whole is one of the slice with events left out. So answers are the same.

use std::collections::{BTreeSet, HashMap};

use foretell_trace::{EventId, ObjectId, Scope, Term, TermId, VariableId};

use crate::ctp::{Action, ConcurrentTraceProgram, CtpEvent, LockSection, Mode, Role};
use crate::validate::Witness;

/// What the property speaks of.
#[derive(Clone, Debug, Default)]
pub struct Criterion {
    /// Events whose order, values or execution it mentions.
    pub events: Vec<EventId>,
    /// Variables whose values at the end of a prefix it mentions.
    pub variables: Vec<VariableId>,
}

/// A smaller CTP that answers the same.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The CTP; its variables are those of the whole.
    pub ctp: ConcurrentTraceProgram,
    /// For each of its events, the event of the whole.
    pub kept: Vec<EventId>,
    mode: Mode,
}

/// The slice of a CTP. The property is one of whole linearizations or of prefixes.
pub fn slice(ctp: &ConcurrentTraceProgram, criterion: &Criterion, mode: Mode) -> Slice {
    let mut slicer = Slicer::new(ctp, mode);
    for &event in &criterion.events {
        slicer.keep(event);
        slicer.observe(event);
    }
    for &variable in &criterion.variables {
        slicer.need_everywhere(variable);
    }
    slicer.close();
    slicer.finish()
}

struct Slicer<'c> {
    ctp: &'c ConcurrentTraceProgram,
    mode: Mode,
    kept: Vec<bool>,
    /// Assignments that stay.
    needed: BTreeSet<(EventId, VariableId)>,
    /// By thread: how many of its events may have to take place.
    extent: Vec<usize>,
    /// Locks that protect something in the slice.
    locks: BTreeSet<ObjectId>,
    /// Locks that an event asks about: it may need someone to hold them.
    asked: BTreeSet<ObjectId>,
    /// Definitions of each variable by thread, as positions in program order.
    definitions: HashMap<VariableId, Vec<Vec<EventId>>>,
    queue: Vec<EventId>,
    /// Assignments that stay and whose values were not looked at yet. A list and no recursion: values follow
    /// from each other as often as a program calls itself.
    values: Vec<(EventId, VariableId)>,
}

impl<'c> Slicer<'c> {
    fn new(ctp: &'c ConcurrentTraceProgram, mode: Mode) -> Self {
        let mut definitions: HashMap<VariableId, Vec<Vec<EventId>>> = HashMap::new();
        for (thread, chain) in ctp.threads.iter().enumerate() {
            for &event in chain {
                for variable in ctp.event(event).action.defined() {
                    let threads = definitions
                        .entry(variable)
                        .or_insert_with(|| vec![Vec::new(); ctp.threads.len()]);
                    threads[thread].push(event);
                }
            }
        }
        let extent = match mode {
            Mode::Whole => ctp.threads.iter().map(Vec::len).collect(),
            Mode::Prefix => vec![0; ctp.threads.len()],
        };
        Self {
            ctp,
            mode,
            kept: vec![false; ctp.events.len()],
            needed: BTreeSet::new(),
            extent,
            locks: BTreeSet::new(),
            asked: BTreeSet::new(),
            definitions,
            queue: Vec::new(),
            values: Vec::new(),
        }
    }

    fn keep(&mut self, event: EventId) {
        if !std::mem::replace(&mut self.kept[event.index()], true) {
            self.queue.push(event);
            let described = self.ctp.event(event);
            let extent = &mut self.extent[described.thread.index()];
            *extent = (*extent).max(described.position as usize + 1);
        }
    }

    /// The property may speak of all values of the event.
    fn observe(&mut self, event: EventId) {
        match &self.ctp.event(event).action {
            Action::Assert { condition } => self.uses(event, *condition),
            action => {
                for variable in action.defined() {
                    self.need(event, variable);
                }
            }
        }
    }

    /// This assignment stays, and (see `close`) what its value is made of.
    fn need(&mut self, event: EventId, variable: VariableId) {
        self.keep(event);
        if self.needed.insert((event, variable)) {
            self.values.push((event, variable));
        }
    }

    /// What the value of an assignment is made of stays as well.
    fn trace_back(&mut self, event: EventId, variable: VariableId) {
        if let Action::Guarded { assignments, .. } = &self.ctp.event(event).action {
            for &(_, value) in assignments.iter().filter(|(assigned, _)| *assigned == variable) {
                self.uses(event, value);
            }
        }
    }

    fn need_everywhere(&mut self, variable: VariableId) {
        match self.ctp.variables[variable.index()].role {
            Role::Lock(lock) | Role::Reader(lock, _) => {
                self.asked.insert(lock);
            }
            _ => {
                let definitions = self.definitions.get(&variable).into_iter().flatten().flatten();
                for event in definitions.copied().collect::<Vec<_>>() {
                    self.need(event, variable);
                }
            }
        }
    }

    /// The event uses the variables of the term: whatever they may be is needed.
    fn uses(&mut self, event: EventId, term: TermId) {
        for leaf in self.ctp.terms.leaves(term) {
            let (Term::Variable(variable) | Term::Primed(variable)) = *self.ctp.terms.term(leaf)
            else {
                continue;
            };
            if matches!(self.ctp.variables[variable.index()].role, Role::Lock(_) | Role::Reader(..))
            {
                continue; // see `close`
            }
            let user = self.ctp.event(event);
            let mut seen = Vec::new();
            for (thread, events) in
                self.definitions.get(&variable).into_iter().flatten().enumerate()
            {
                if thread == user.thread.index() {
                    let earlier = events.partition_point(|&definition| {
                        self.ctp.event(definition).position < user.position
                    });
                    seen.extend(earlier.checked_sub(1).map(|last| events[last]));
                } else if self.ctp.variables[variable.index()].scope == Scope::Shared {
                    seen.extend(events.iter().copied());
                }
            }
            for definition in seen {
                self.need(definition, variable);
            }
        }
    }

    /// Adds what is missing until nothing is.
    fn close(&mut self) {
        loop {
            loop {
                if let Some((event, variable)) = self.values.pop() {
                    self.trace_back(event, variable);
                } else if let Some(event) = self.queue.pop() {
                    self.process(event);
                } else {
                    break;
                }
            }
            self.keep_obstacles();
            self.keep_locks();
            if self.queue.is_empty() && self.values.is_empty() {
                return;
            }
        }
    }

    fn process(&mut self, event: EventId) {
        match self.ctp.event(event).action {
            Action::Guarded { guard, .. } => self.uses(event, guard),
            Action::Transition { predicate, ref changed } => {
                self.uses(event, predicate);
                // The predicate ties its variables together.
                for &variable in changed {
                    self.need(event, variable);
                }
            }
            Action::Assert { .. } => {}
        }
    }

    /// Within the extent, what may not be possible at any time stays: guards, fixed orders.
    fn keep_obstacles(&mut self) {
        let ctp = self.ctp;
        let within = |slicer: &Self, event: EventId| {
            let described = ctp.event(event);
            (described.position as usize) < slicer.extent[described.thread.index()]
        };
        for &(before, after) in &ctp.orders {
            if within(self, after) {
                self.keep(before);
                self.keep(after);
            }
        }
        // With its borders in place, what is put back inside an atomic section stays inside.
        for &(first, last) in &ctp.atomic_sections {
            let chain = &ctp.threads[ctp.event(first).thread.index()];
            let (from, to) = (ctp.event(first).position, ctp.event(last).position);
            let inside = &chain[from as usize..=to as usize];
            if inside.iter().any(|&event| self.kept[event.index()]) {
                self.keep(first);
                self.keep(last);
            }
        }
        for index in 0..ctp.events.len() {
            let event = EventId::from(index);
            if self.kept[index] || !within(self, event) {
                continue;
            }
            let guard = match ctp.event(event).action {
                Action::Guarded { guard, .. } => guard,
                Action::Transition { predicate, .. } => predicate,
                // Only one that may have no value is an obstacle.
                Action::Assert { condition } if may_be_undefined(ctp, condition) => condition,
                Action::Assert { .. } => continue,
            };
            let plain = |leaf: &TermId| match *ctp.terms.term(*leaf) {
                Term::Variable(variable) => !matches!(
                    ctp.variables[variable.index()].role,
                    Role::Lock(_) | Role::Reader(..)
                ),
                _ => true,
            };
            let leaves = ctp.terms.leaves(guard);
            let undefined = match &ctp.event(event).action {
                Action::Guarded { assignments, .. } => {
                    assignments.iter().any(|&(_, value)| may_be_undefined(ctp, value))
                }
                _ => false,
            };
            if leaves.iter().any(plain) || ctp.terms.is_false(guard) || undefined {
                self.keep(event);
                if undefined || matches!(ctp.event(event).action, Action::Assert { .. }) {
                    self.observe(event);
                }
            } else if !leaves.is_empty() && !self.is_section_step(event) {
                self.keep(event); // a failed try asks about the lock
            }
        }
    }

    /// Does the event take, hold or give back the lock that its guard speaks of?
    fn is_section_step(&self, event: EventId) -> bool {
        let described = self.ctp.event(event);
        self.guarded_locks(event).into_iter().all(|lock| {
            self.ctp.sections.iter().any(|section| {
                let position = |id: EventId| self.ctp.event(id).position;
                section.lock == lock
                    && section.thread == described.thread
                    && section.acquire.is_none_or(|id| position(id) <= described.position)
                    && section.release.is_none_or(|id| described.position <= position(id))
            })
        }) && !self.asks_about_lock(event)
    }

    fn guarded_locks(&self, event: EventId) -> BTreeSet<ObjectId> {
        let Action::Guarded { guard, .. } = self.ctp.event(event).action else {
            return BTreeSet::new();
        };
        let leaves = self.ctp.terms.leaves(guard).into_iter();
        leaves
            .filter_map(|leaf| match *self.ctp.terms.term(leaf) {
                Term::Variable(variable) => match self.ctp.variables[variable.index()].role {
                    Role::Lock(lock) | Role::Reader(lock, _) => Some(lock),
                    _ => None,
                },
                _ => None,
            })
            .collect()
    }

    /// A failed try changes nothing and is no border of a section, but neither is an inner step of
    /// a recursive mutex; to keep one too many is safe.
    fn asks_about_lock(&self, event: EventId) -> bool {
        let border = |section: &LockSection| {
            section.acquire == Some(event) || section.release == Some(event)
        };
        !self.guarded_locks(event).is_empty() && !self.ctp.sections.iter().any(border)
    }

    /// A lock matters if a kept event lies in one of its sections, if an event asks about it, or if
    /// a section is open at an end. Then all its sections within the extent stay, and if an event asks
    /// about it, those beyond as well.
    fn keep_locks(&mut self) {
        let ctp = self.ctp;
        for index in 0..ctp.events.len() {
            let event = EventId::from(index);
            if self.kept[index] {
                self.locks.extend(self.guarded_locks(event));
                if self.asks_about_lock(event) {
                    self.asked.extend(self.guarded_locks(event));
                }
            }
        }
        self.locks.extend(&self.asked);
        let position = |event: EventId| ctp.event(event).position as usize;
        for section in &ctp.sections {
            let extent = self.extent[section.thread.index()];
            let first = section.acquire.map_or(0, position);
            if first >= extent && section.acquire.is_some() {
                continue;
            }
            let last = section.release.map(position);
            let chain = &ctp.threads[section.thread.index()];
            let inside = &chain[first..last.map_or(chain.len(), |last| last + 1)];
            let open = section.acquire.is_none() || section.release.is_none();
            if open || inside.iter().any(|&event| self.kept[event.index()]) {
                self.locks.insert(section.lock);
            }
        }
        for section in &ctp.sections {
            let entered = section
                .acquire
                .is_none_or(|acquire| position(acquire) < self.extent[section.thread.index()]);
            let matters = self.locks.contains(&section.lock) && entered;
            if matters || self.asked.contains(&section.lock) {
                for event in section.acquire.into_iter().chain(section.release) {
                    self.keep(event);
                    for variable in ctp.event(event).action.defined() {
                        let role = ctp.variables[variable.index()].role;
                        if matches!(role, Role::Lock(_) | Role::Reader(..)) {
                            self.need(event, variable);
                        }
                    }
                }
            }
        }
    }

    fn finish(self) -> Slice {
        let whole = self.ctp;
        let kept: Vec<EventId> =
            (0..whole.events.len()).filter(|&index| self.kept[index]).map(EventId::from).collect();
        let number: HashMap<EventId, EventId> =
            kept.iter().enumerate().map(|(new, &old)| (old, EventId::from(new))).collect();
        let mut threads = vec![Vec::new(); whole.threads.len()];
        let mut events = Vec::with_capacity(kept.len());
        for &old in &kept {
            let event = whole.event(old);
            let chain: &mut Vec<EventId> = &mut threads[event.thread.index()];
            let position = chain.len() as u32;
            chain.push(number[&old]);
            let action = match &event.action {
                Action::Guarded { guard, assignments } => Action::Guarded {
                    guard: *guard,
                    assignments: assignments
                        .iter()
                        .filter(|(variable, _)| self.needed.contains(&(old, *variable)))
                        .copied()
                        .collect(),
                },
                other => other.clone(),
            };
            events.push(CtpEvent { position, action, ..event.clone() });
        }
        let renumber = |event: Option<EventId>| event.and_then(|event| number.get(&event).copied());
        let orders = whole
            .orders
            .iter()
            .filter_map(|&(before, after)| Some((*number.get(&before)?, *number.get(&after)?)))
            .collect();
        let atomic_sections = whole
            .atomic_sections
            .iter()
            .filter_map(|&(first, last)| {
                let chain = &whole.threads[whole.event(first).thread.index()];
                let positions = whole.event(first).position..=whole.event(last).position;
                let inside =
                    chain.iter().filter(|&&event| positions.contains(&whole.event(event).position));
                let inside: Vec<EventId> =
                    inside.filter_map(|event| number.get(event).copied()).collect();
                Some((*inside.first()?, *inside.last()?))
            })
            .collect();
        let sections = whole
            .sections
            .iter()
            .filter(|section| match section.acquire {
                Some(acquire) => self.kept[acquire.index()],
                None => self.locks.contains(&section.lock),
            })
            .map(|section| LockSection {
                acquire: renumber(section.acquire),
                release: renumber(section.release),
                ..*section
            })
            .collect();
        let ctp = ConcurrentTraceProgram {
            terms: whole.terms.clone(),
            variables: whole.variables.clone(),
            threads,
            events,
            orders,
            atomic_sections,
            sections,
            precondition: whole.precondition,
        };
        Slice { ctp, kept, mode: self.mode }
    }
}

fn may_be_undefined(ctp: &ConcurrentTraceProgram, term: TermId) -> bool {
    use foretell_trace::Operator::{IntDiv, Mod, RealDiv};
    let mut stack = vec![term];
    let mut seen = BTreeSet::new();
    while let Some(term) = stack.pop() {
        if let Term::Apply(operator, arguments) = ctp.terms.term(term)
            && seen.insert(term)
        {
            if matches!(operator, IntDiv | Mod | RealDiv) {
                return true;
            }
            stack.extend(arguments.iter().copied());
        }
    }
    false
}

impl Slice {
    /// The whole's witness for a witness of the slice: each event that was left out comes right
    /// before the next one of its thread, or, in whole linearizations, at the end. `None` for what is
    /// no witness: a solver may say anything, also that a thread's events come in another order.
    pub fn expand(&self, whole: &ConcurrentTraceProgram, witness: &Witness) -> Option<Witness> {
        let mut next = vec![0; whole.threads.len()];
        let mut order = Vec::with_capacity(whole.events.len());
        for &event in &witness.order {
            let event = *self.kept.get(event.index())?;
            let described = whole.event(event);
            let chain = &whole.threads[described.thread.index()];
            let next = &mut next[described.thread.index()];
            let after = described.position as usize + 1;
            if after <= *next {
                return None;
            }
            order.extend_from_slice(chain.get(*next..after)?);
            *next = after;
        }
        if self.mode == Mode::Whole {
            for (chain, &next) in whole.threads.iter().zip(&next) {
                order.extend_from_slice(&chain[next..]);
            }
        }
        let choices = witness
            .choices
            .iter()
            .map(|(event, variable, value)| {
                Some((*self.kept.get(event.index())?, *variable, value.clone()))
            })
            .collect::<Option<_>>()?;
        Some(Witness { order, initial: witness.initial.clone(), choices })
    }
}
