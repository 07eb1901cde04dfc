//! Steps on synchronisation objects as guarded assignments: the rules of
//! [`foretell_trace::sync::transition`], carried out on terms.

use foretell_trace::sync::Class;
use foretell_trace::sync::transition::{self, By, Machine, Slot, WrongObject};
use foretell_trace::{
    EventId, LockMode, ObjectId, ObjectKind, Operator, Scope, Sort, SyncOp, TermId, ThreadId,
    Value, VariableId,
};

use super::{BuildError, Step, Translator};
use crate::ctp::{CtpVariable, LockSection, Role};
use crate::layout::width_for;

impl Translator<'_> {
    pub(super) fn synchronise(
        &mut self,
        step: &mut Step,
        origin: EventId,
        number: EventId,
        object: ObjectId,
        op: &SyncOp,
    ) -> Result<(), BuildError> {
        let inner = match *op {
            SyncOp::Acquire(lock) => self.open_section(origin, number, object, lock.mode),
            SyncOp::WaitEnd { mutex, .. } => {
                self.open_section(origin, number, mutex, LockMode::Exclusive)
            }
            SyncOp::Release(lock) => self.close_section(origin, number, object, lock.mode)?,
            SyncOp::WaitBegin { mutex } => {
                self.close_section(origin, number, mutex, LockMode::Exclusive)?
            }
            _ => false,
        };
        let by = By {
            thread: self.trace.event(origin).thread,
            inner,
            timed: self.layout.timed.contains(&origin),
            timed_out: self.layout.timed_out.contains(&origin),
        };
        let mut terms = Terms { translator: self, step, origin, missing: false };
        let done = transition::step(&mut terms, by, object, op);
        if terms.missing {
            return Err(self.wrong_object(origin, object));
        }
        done.map_err(|WrongObject(object)| self.wrong_object(origin, object))
    }

    /// Whether the lock is one whose sections count.
    fn has_sections(&self, lock: ObjectId) -> bool {
        Class::Lock.has(self.trace.objects[lock.index()].kind)
            && !self.layout.channels.irregular.contains(&lock)
    }

    /// Returns whether the thread holds the lock already.
    fn open_section(
        &mut self,
        origin: EventId,
        number: EventId,
        lock: ObjectId,
        mode: LockMode,
    ) -> bool {
        if !self.has_sections(lock) {
            return false;
        }
        let thread = self.trace.event(origin).thread;
        let recursive = self.trace.objects[lock.index()].kind == ObjectKind::RecursiveMutex;
        let open = self.held.entry((thread, lock, mode)).or_default();
        if let Some(&outer) = open.last()
            && (recursive || mode == LockMode::Shared)
        {
            open.push(outer);
            return true;
        }
        open.push(self.sections.len());
        let acquire = Some(number);
        self.sections.push(LockSection { lock, thread, mode, acquire, release: None });
        false
    }

    /// Returns whether the thread still holds the lock.
    fn close_section(
        &mut self,
        origin: EventId,
        number: EventId,
        lock: ObjectId,
        mode: LockMode,
    ) -> Result<bool, BuildError> {
        if !self.has_sections(lock) {
            return Ok(false);
        }
        let thread = self.trace.event(origin).thread;
        let open = self.held.entry((thread, lock, mode)).or_default();
        let section = open.pop().ok_or(BuildError::ReleaseWithoutAcquire { event: origin })?;
        let inner = open.last() == Some(&section);
        if !inner {
            self.sections[section].release = Some(number);
        }
        Ok(inner)
    }
}

/// The state of the objects as variables of the CTP.
struct Terms<'a, 't> {
    translator: &'a mut Translator<'t>,
    step: &'a mut Step,
    origin: EventId,
    /// The thread has no part in the object, which its steps should have given it.
    missing: bool,
}

impl Terms<'_, '_> {
    fn variable_of(&mut self, slot: Slot) -> Option<VariableId> {
        let found = self.translator.layout.slot(slot);
        self.missing |= found.is_none();
        found
    }

    fn sort(&mut self, slot: Slot) -> Sort {
        match self.variable_of(slot) {
            Some(variable) => self.translator.variables[variable.index()].sort,
            None => Sort::BOOL,
        }
    }

    fn arithmetic(&mut self, operator: Operator, slot: Slot, number: u64) -> TermId {
        let (now, number) = (self.get(slot), self.constant(slot, number));
        match self.missing {
            true => now,
            false => self.translator.terms.build(operator, &[now, number]),
        }
    }

    /// A free input of this step.
    fn choice(&mut self, condition: ObjectId, what: &str, sort: Sort) -> TermId {
        let translator = &mut *self.translator;
        let event = translator.trace.event(self.origin);
        let thread = &translator.trace.threads[event.thread.index()].name;
        let variable = VariableId::from(translator.variables.len());
        translator.variables.push(CtpVariable {
            name: format!("{thread}#{}:{what}", event.index).into(),
            sort,
            scope: Scope::Local(event.thread),
            initial: None,
            role: Role::Choice(condition),
        });
        translator.terms.variable(variable, sort)
    }
}

impl Machine for Terms<'_, '_> {
    type Number = TermId;
    type Truth = TermId;

    fn kind(&self, object: ObjectId) -> ObjectKind {
        self.translator.trace.objects[object.index()].kind
    }
    fn has_state(&self, object: ObjectId) -> bool {
        self.translator.layout.has_state(object)
    }
    fn threads_at(&self, object: ObjectId) -> Vec<ThreadId> {
        self.translator.layout.threads_at(object)
    }

    fn get(&mut self, slot: Slot) -> TermId {
        match self.variable_of(slot) {
            Some(variable) => self.translator.variable(variable),
            None => self.translator.terms.bool(false),
        }
    }
    fn constant(&mut self, slot: Slot, number: u64) -> TermId {
        let sort = self.sort(slot);
        let value = Value::from_bits(sort, number).unwrap_or_else(|| Value::zero(sort));
        self.translator.terms.constant(value)
    }
    fn sum(&mut self, slot: Slot, number: u64) -> TermId {
        self.arithmetic(Operator::BvAdd, slot, number)
    }
    fn difference(&mut self, slot: Slot, number: u64) -> TermId {
        self.arithmetic(Operator::BvSub, slot, number)
    }
    fn select(&mut self, which: TermId, yes: TermId, no: TermId) -> TermId {
        self.translator.terms.ite(which, yes, no)
    }

    fn is(&mut self, slot: Slot, number: u64) -> TermId {
        let now = self.get(slot);
        // Readers are Boolean: there the variable itself says it.
        if self.sort(slot) == Sort::BOOL {
            return if number == 0 { self.translator.terms.not(now) } else { now };
        }
        let number = self.constant(slot, number);
        self.translator.equal(now, number)
    }
    fn is_at_least(&mut self, slot: Slot, number: u64) -> TermId {
        let (now, number) = (self.get(slot), self.constant(slot, number));
        self.translator.terms.build(Operator::BvUle, &[number, now])
    }
    fn same(&mut self, one: Slot, other: Slot) -> TermId {
        let (one, other) = (self.get(one), self.get(other));
        match self.missing {
            true => one,
            false => self.translator.equal(one, other),
        }
    }
    fn not(&mut self, truth: TermId) -> TermId {
        self.translator.terms.not(truth)
    }
    fn all(&mut self, truths: &[TermId]) -> TermId {
        self.translator.terms.and(truths)
    }
    fn unless(&mut self, exception: TermId, truth: TermId) -> TermId {
        let no = self.translator.terms.bool(false);
        self.translator.terms.ite(exception, no, truth)
    }
    fn any(&mut self, truths: &[TermId]) -> TermId {
        self.translator.terms.or(truths)
    }
    fn preferred(&mut self, condition: ObjectId, among: &[ThreadId]) -> Vec<TermId> {
        if among.len() < 2 {
            let yes = self.translator.terms.bool(true);
            return vec![yes; among.len()];
        }
        let width = width_for(among.len() as u64 - 1);
        let choice = self.choice(condition, "wakes", Sort::bit_vec(width));
        let mut named = Vec::with_capacity(among.len());
        for number in 0..among.len() as u64 {
            let number = self.translator.terms.bit_vec(width, number);
            named.push(self.translator.equal(choice, number));
        }
        named
    }
    fn gives_up(&mut self, condition: ObjectId) -> TermId {
        self.choice(condition, "gives-up", Sort::BOOL)
    }

    fn require(&mut self, truth: TermId) {
        self.step.guards.push(truth);
    }
    fn set(&mut self, slot: Slot, number: TermId) {
        if let Some(variable) = self.variable_of(slot) {
            self.step.assignments.push((variable, number));
        }
    }
}
