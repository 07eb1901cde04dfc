//! Functions that are not the program's: threads, locks, memory, output.
//!
//! A wait for a condition may end at any time; so signals matter only when deadlocks are looked for.

mod intrinsic;
mod locks;

use super::memory::{Byte, Lock, Object, Value};
use super::step::{Checker, End, Result, unknown};
use super::{Doing, State, Thread};
use crate::certificate::Assumption;
use crate::ir::{Argument, Instruction, Op, Place, Type};
use locks::LOCKS;

const EPERM: u128 = 1;

const EBUSY: u128 = 16;

const EDEADLK: u128 = 35;

type At = (Object, i64);

impl Checker<'_> {
    /// In how many ways can the thread go on? None if it has to wait.
    pub(super) fn choices(&self, state: &State, number: usize) -> u32 {
        let Some(thread) = &state.threads[number] else { return 0 };
        if state.alone.is_some_and(|(alone, _)| alone != number) {
            return 0;
        }
        match &thread.doing {
            Doing::Ended(_) | Doing::AtBarrier(_) => return 0,
            Doing::Waits { mutex, .. } => {
                return u32::from(!state.memory.locks.contains_key(mutex));
            }
            Doing::Leaves(_) => return 1,
            Doing::Runs => {}
        }
        let Some(next) = self.next(state, number) else { return 1 };
        let (callee, arguments) = match &next.op {
            Op::Exchange { weak: true, .. } => return 2,
            Op::Call { callee, arguments, .. } => (callee, arguments),
            _ => return 1,
        };
        let Ok(Value::Pointer(Object::Function(id), 0)) =
            self.operand(state, number, callee, &Type::Pointer)
        else {
            return 1;
        };
        let function = self.function(id);
        let first = arguments
            .first()
            .map(|argument| self.operand(state, number, &argument.value, &argument.kind));
        let Some(Ok(Value::Pointer(object, offset))) = first else { return 1 };
        let at = (object, offset);
        let lock = state.memory.locks.get(&at);
        let mine = matches!(lock, Some(Lock::Held { owner, .. }) if usize::from(*owner) == number);
        let waits = match &*function.name {
            "pthread_mutex_lock" => {
                lock.is_some() && !(mine && self.kind(state, at).is_some_and(|kind| kind != 0))
            }
            "pthread_spin_lock" => matches!(lock, Some(Lock::Held { .. })),
            "pthread_rwlock_rdlock" => matches!(lock, Some(Lock::Held { .. })) && !mine,
            "pthread_rwlock_wrlock" => lock.is_some() && !mine,
            "sem_wait" => lock == Some(&Lock::Semaphore(0)),
            "pthread_join" => match object {
                Object::Thread(other) if usize::from(other) != number => {
                    let other = state.threads.get(usize::from(other)).and_then(Option::as_ref);
                    other.is_some_and(|other| !matches!(other.doing, Doing::Ended(_)))
                }
                _ => false,
            },
            "pthread_cond_signal" if self.signals => {
                return self.waiting(state, at).len().max(1) as u32;
            }
            "pthread_barrier_wait" => {
                let others = self.at_barrier(state, at).len() as u32;
                return match lock {
                    Some(Lock::Barrier(count)) if others + 1 == *count => *count,
                    _ => 1,
                };
            }
            _ => false,
        };
        u32::from(!waits)
    }

    /// Threads that wait for a condition and have no signal.
    fn waiting(&self, state: &State, at: At) -> Vec<usize> {
        let waits = |number: &usize| {
            let thread = state.threads[*number].as_ref();
            thread.is_some_and(|thread| {
                matches!(thread.doing, Doing::Waits { condition, signalled: false, .. }
                    if condition == at)
            })
        };
        (0..state.threads.len()).filter(waits).collect()
    }

    fn at_barrier(&self, state: &State, at: At) -> Vec<usize> {
        let waits = |number: &usize| {
            let thread = state.threads[*number].as_ref();
            thread.is_some_and(|thread| thread.doing == Doing::AtBarrier(at))
        };
        (0..state.threads.len()).filter(waits).collect()
    }

    /// Goes on after waiting.
    pub(super) fn wake(&self, state: &mut State, number: usize) -> Result<()> {
        let next = self.next(state, number);
        let (result, place) =
            next.map_or((None, Place::default()), |next| (next.result, next.place));
        let Some(thread) = state.threads[number].as_mut() else { return Ok(()) };
        let code = match std::mem::replace(&mut thread.doing, Doing::Runs) {
            Doing::Waits { mutex, count, .. } => {
                if self.kind(state, mutex).is_none() {
                    return unknown(place, "a mutex that no longer exists");
                }
                let held = Lock::Held { owner: number as u8, count };
                state.memory.locks.insert(mutex, held);
                0
            }
            Doing::Leaves(code) => code,
            Doing::Runs | Doing::AtBarrier(_) | Doing::Ended(_) => {
                return unknown(place, "a thread that does not wait");
            }
        };
        self.finish(state, number, result, Value::Integer(code))
    }

    /// The thread ends.
    pub(super) fn end(&self, state: &mut State, number: usize, value: Value) -> Result<()> {
        let Some(thread) = state.threads[number].as_mut() else { return Ok(()) };
        thread.frames.clear();
        thread.doing = Doing::Ended(value);
        let detached = thread.detached;
        self.remove(
            state,
            &|object| matches!(object, Object::Local(owner, ..) if usize::from(*owner) == number),
        );
        if detached {
            self.bury(state, number);
        }
        Ok(())
    }

    /// Nobody can ask for the thread any more.
    fn bury(&self, state: &mut State, number: usize) {
        state.threads[number] = None;
        self.remove(state, &|object| *object == Object::Thread(number as u8));
    }

    pub(super) fn call(
        &self,
        state: &mut State,
        number: usize,
        instruction: &Instruction,
        name: &str,
        choice: u32,
    ) -> Result<()> {
        let Op::Call { arguments, .. } = &instruction.op else { return Ok(()) };
        let place = instruction.place;
        let call = Call { checker: self, thread: number, place, arguments };
        if let Some(value) = call.run(state, name, choice)? {
            self.finish(state, number, instruction.result, value)?;
        }
        Ok(())
    }
}

struct Call<'a, 'm> {
    checker: &'a Checker<'m>,
    thread: usize,
    place: Place,
    arguments: &'a [Argument],
}

impl Call<'_, '_> {
    fn value(&self, state: &State, index: usize) -> Result<Value> {
        match self.arguments.get(index) {
            Some(argument) => {
                self.checker.operand(state, self.thread, &argument.value, &argument.kind)
            }
            None => unknown(self.place, "a call with too few arguments"),
        }
    }

    fn at(&self, state: &State, index: usize) -> Result<At> {
        match self.value(state, index)? {
            Value::Pointer(object, offset) => Ok((object, offset)),
            _ => unknown(self.place, "an address that is not known"),
        }
    }

    fn integer(&self, state: &State, index: usize) -> Result<u128> {
        match self.value(state, index)? {
            Value::Integer(number) => Ok(number),
            _ => unknown(self.place, "a number that is not known"),
        }
    }

    fn null(&self, state: &State, index: usize) -> Result<()> {
        match self.at(state, index)? {
            (Object::Number, 0) => Ok(()),
            _ => unknown(self.place, "attributes"),
        }
    }

    /// What the call gives; nothing if the thread does not simply go on.
    fn run(&self, state: &mut State, name: &str, choice: u32) -> Result<Option<Value>> {
        let done = |code: u128| Ok(Some(Value::Integer(code)));
        match name {
            "__assert_fail" | "reach_error" | "__VERIFIER_error" => Err(End::Violation(self.place)),
            "abort" if self.checker.module.speaks_sv_comp() => {
                self.checker.assume(Assumption::QuietAbort);
                Err(End::Over)
            }
            "abort" => Err(End::Violation(self.place)),
            "exit" | "_exit" | "_Exit" => Err(End::Over),
            "__VERIFIER_assume" | "assume_abort_if_not" => match self.integer(state, 0)? {
                0 => Err(End::Over),
                _ => done(0),
            },
            "__VERIFIER_atomic_begin" => {
                self.checker.assume(Assumption::AtomicSections);
                let depth = state.alone.map_or(0, |(_, depth)| depth);
                state.alone = Some((self.thread, depth + 1));
                done(0)
            }
            "__VERIFIER_atomic_end" => match state.alone {
                Some((_, depth)) => {
                    state.alone = (depth > 1).then(|| (self.thread, depth - 1));
                    done(0)
                }
                None => unknown(self.place, "the end of an atomic section that has not begun"),
            },
            // what is printed is not looked at
            "printf" | "puts" => {
                let text = self.checker.text(state, self.place, &self.value(state, 0)?)?;
                let mut arguments = Vec::new();
                for (index, argument) in self.arguments.iter().enumerate().skip(1) {
                    arguments.push((argument, self.value(state, index)?));
                }
                if name == "printf" {
                    self.checker.format(state, self.place, &text, &arguments)?;
                }
                Ok(Some(Value::Undefined))
            }
            "putchar" | "fflush" => Ok(Some(Value::Undefined)),
            "usleep" | "sleep" | "sched_yield" => done(0),
            "malloc" | "calloc" => self.allocate(state, name),
            "free" => self.free(state),
            "pthread_self" => Ok(Some(Value::Pointer(Object::Thread(self.thread as u8), 0))),
            "pthread_equal" => match (self.at(state, 0)?, self.at(state, 1)?) {
                ((Object::Thread(a), _), (Object::Thread(b), _)) => done((a == b).into()),
                _ => unknown(self.place, "a comparison of threads"),
            },
            "pthread_create" => self.create(state),
            "pthread_join" => self.join(state),
            "pthread_exit" => {
                let value = self.value(state, 0)?;
                if state.alone.is_some() {
                    return unknown(self.place, "an end inside an atomic section");
                }
                self.checker.end(state, self.thread, value)?;
                Ok(None)
            }
            _ if name.starts_with("llvm.") => self.intrinsic(state, name),
            _ if LOCKS.iter().any(|start| name.starts_with(start)) => {
                self.checker.use_lock(self.place, self.at(state, 0)?)?;
                self.lock(state, name, choice)
            }
            _ => unknown(self.place, format!("the function {name}")),
        }
    }

    fn create(&self, state: &mut State) -> Result<Option<Value>> {
        let handle = self.at(state, 0)?;
        self.null(state, 1)?;
        let (Object::Function(id), 0) = self.at(state, 2)? else {
            return unknown(self.place, "a thread without a function");
        };
        let function = self.checker.function(id);
        let fits = function.is_defined()
            && !function.variadic
            && function.parameters.len() <= 1
            && function.parameters.iter().all(|parameter| parameter.kind == Type::Pointer);
        if !fits {
            return unknown(
                self.place,
                "a thread whose function has parameters or a form that is not handled",
            );
        }
        let argument = self.value(state, 3)?;
        self.checker.assume(Assumption::ThreadsAreCreated);
        // a new thread does not own what an ended one has left locked
        let owns = |number: u8, lock: &Lock| match lock {
            Lock::Held { owner, .. } => *owner == number,
            Lock::Read(by) => by.contains(&number),
            Lock::Semaphore(_) | Lock::Barrier(_) | Lock::Free => false,
        };
        let free = (0..state.threads.len()).find(|&number| {
            state.threads[number].is_none()
                && !state.memory.locks.values().any(|lock| owns(number as u8, lock))
        });
        let number = free.unwrap_or(state.threads.len());
        let thread: Thread = self.checker.thread(id, &[argument]);
        match free {
            Some(place) => state.threads[place] = Some(thread),
            None if number < 16 => state.threads.push(Some(thread)),
            None => return unknown(self.place, "more than 16 threads"),
        }
        let value = Value::Pointer(Object::Thread(number as u8), 0);
        self.checker.store(state, self.place, handle, &Type::Integer(64), &value)?;
        // what nobody sees of it may happen at once
        self.checker.run(state, number)?;
        Ok(Some(Value::Integer(0)))
    }

    fn join(&self, state: &mut State) -> Result<Option<Value>> {
        let (Object::Thread(other), _) = self.at(state, 0)? else {
            return unknown(self.place, "a join of something that is not a thread");
        };
        let thread = state.threads.get(usize::from(other)).and_then(Option::as_ref);
        let Some(Thread { doing: Doing::Ended(value), detached: false, .. }) = thread else {
            return unknown(self.place, "a join of a thread that has not ended, or is detached");
        };
        let value = value.clone();
        let to = self.at(state, 1)?;
        if to != (Object::Number, 0) {
            self.checker.store(state, self.place, to, &Type::Pointer, &value)?;
        }
        self.checker.bury(state, usize::from(other));
        Ok(Some(Value::Integer(0)))
    }

    fn allocate(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let mut size = self.integer(state, 0)?;
        let mut byte = Byte::Undefined;
        if name == "calloc" {
            size = size.saturating_mul(self.integer(state, 1)?);
            byte = Byte::Number(0);
        }
        if !(1..=4096).contains(&size) {
            return unknown(self.place, "an allocation of this size");
        }
        self.checker.assume(Assumption::MemoryIsAllocated);
        let object = state.memory.free_heap();
        state.memory.add(object, vec![byte; size as usize]);
        Ok(Some(Value::Pointer(object, 0)))
    }

    fn free(&self, state: &mut State) -> Result<Option<Value>> {
        match self.at(state, 0)? {
            (Object::Number, 0) => {}
            (object @ Object::Heap(_), 0) => self.checker.remove(state, &|other| *other == object),
            _ => return Err(End::Violation(self.place)),
        }
        Ok(Some(Value::Undefined))
    }
}
