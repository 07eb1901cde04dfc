//! Functions that are not the program's: threads, locks, memory, output.
//!
//! A wait for a condition may end at any time; so signals matter only when deadlocks are looked for.

use super::memory::{Byte, Lock, Object, Value};
use super::step::{Checker, End, Result, unknown};
use super::{Doing, State, Thread};
use crate::certificate::Assumption;
use crate::ir::{Argument, Instruction, Op, Operand, Place, Type};

const EPERM: u128 = 1;
const EBUSY: u128 = 16;
const EDEADLK: u128 = 35;

/// Kinds of mutexes, as the C library numbers them in the 17th byte.
const RECURSIVE: u128 = 1;
const ERROR_CHECKING: u128 = 2;

/// How functions of locks begin.
const LOCKS: [&str; 6] = [
    "pthread_mutex_",
    "pthread_cond_",
    "pthread_rwlock_",
    "pthread_spin_",
    "sem_",
    "pthread_barrier_",
];

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

    /// The kind of a mutex that is initialised.
    fn kind(&self, state: &State, (object, offset): At) -> Option<u128> {
        let bytes = state.memory.read(object, offset, 40)?;
        let zero =
            |(place, byte): (usize, &Byte)| (16..20).contains(&place) || *byte == Byte::Number(0);
        match state.memory.load(object, offset + 16, 4)? {
            Value::Integer(3) => Some(0),
            Value::Integer(kind @ 0..=2) => Some(kind),
            _ => None,
        }
        .filter(|_| bytes.iter().enumerate().all(zero))
    }

    fn is_zero(&self, state: &State, (object, offset): At, length: usize) -> bool {
        let bytes = state.memory.read(object, offset, length);
        bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == Byte::Number(0)))
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
                    return unknown(place, "a mutex that is gone");
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
                None => unknown(self.place, "the end of no atomic section"),
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

    fn lock(&self, state: &mut State, name: &str, choice: u32) -> Result<Option<Value>> {
        match name {
            _ if name.starts_with("pthread_mutex_") => self.mutex(state, name),
            _ if name.starts_with("pthread_cond_") => self.condition(state, name, choice),
            _ if name.starts_with("pthread_rwlock_") => self.reader_writer(state, name),
            _ if name.starts_with("pthread_spin_") => self.spin(state, name),
            _ if name.starts_with("sem_") => self.semaphore(state, name),
            _ if name.starts_with("pthread_barrier_") => self.barrier(state, name, choice),
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
            return unknown(self.place, "a thread of this function");
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
            return unknown(self.place, "a join of no thread");
        };
        let thread = state.threads.get(usize::from(other)).and_then(Option::as_ref);
        let Some(Thread { doing: Doing::Ended(value), detached: false, .. }) = thread else {
            return unknown(self.place, "a join of this thread");
        };
        let value = value.clone();
        let to = self.at(state, 1)?;
        if to != (Object::Number, 0) {
            self.checker.store(state, self.place, to, &Type::Pointer, &value)?;
        }
        self.checker.bury(state, usize::from(other));
        Ok(Some(Value::Integer(0)))
    }

    fn mutex(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let at = self.at(state, 0)?;
        let owner = self.thread as u8;
        if name == "pthread_mutex_init" {
            self.null(state, 1)?;
            return self.initialise(state, at, 40, None);
        }
        let Some(kind) = self.checker.kind(state, at) else {
            return unknown(self.place, "a mutex that is not initialised");
        };
        let lock = state.memory.locks.get(&at).cloned();
        let (now, code) = match (name, lock) {
            ("pthread_mutex_lock" | "pthread_mutex_trylock", None) => {
                (Some(Lock::Held { owner, count: 1 }), 0)
            }
            (
                "pthread_mutex_lock" | "pthread_mutex_trylock",
                Some(Lock::Held { owner: other, count }),
            ) if other == owner && kind == RECURSIVE => {
                (Some(Lock::Held { owner, count: count + 1 }), 0)
            }
            ("pthread_mutex_lock", Some(Lock::Held { owner: other, count }))
                if other == owner && kind == ERROR_CHECKING =>
            {
                (Some(Lock::Held { owner, count }), EDEADLK)
            }
            ("pthread_mutex_trylock", Some(lock)) => (Some(lock), EBUSY),
            ("pthread_mutex_unlock", Some(Lock::Held { owner: other, count }))
                if other == owner =>
            {
                ((count > 1).then(|| Lock::Held { owner, count: count - 1 }), 0)
            }
            ("pthread_mutex_unlock", lock) if kind != 0 => (lock, EPERM),
            ("pthread_mutex_destroy", None) => return self.destroy(state, at, 40),
            _ => return unknown(self.place, format!("this call of {name}")),
        };
        match now {
            Some(lock) => state.memory.locks.insert(at, lock),
            None => state.memory.locks.remove(&at),
        };
        Ok(Some(Value::Integer(code)))
    }

    fn initialise(
        &self,
        state: &mut State,
        at: At,
        length: usize,
        lock: Option<Lock>,
    ) -> Result<Option<Value>> {
        // a free spin lock may be initialised again
        let held = !matches!(state.memory.locks.get(&at), None | Some(Lock::Free));
        let waits = |thread: &Thread| matches!(thread.doing, Doing::Waits { condition, .. } if condition == at);
        let held = held || state.threads.iter().flatten().any(waits);
        if held || state.memory.write(at.0, at.1, &vec![Byte::Number(0); length]).is_none() {
            return unknown(self.place, "an initialisation here");
        }
        match lock {
            Some(lock) => state.memory.locks.insert(at, lock),
            None => state.memory.locks.remove(&at),
        };
        Ok(Some(Value::Integer(0)))
    }

    fn destroy(&self, state: &mut State, at: At, length: usize) -> Result<Option<Value>> {
        let waited_for = state
            .threads
            .iter()
            .flatten()
            .any(|thread| matches!(thread.doing, Doing::Waits { .. } | Doing::AtBarrier(_)));
        let bytes = vec![Byte::Undefined; length];
        if waited_for || state.memory.write(at.0, at.1, &bytes).is_none() {
            return unknown(self.place, "a destruction here");
        }
        state.memory.locks.remove(&at);
        Ok(Some(Value::Integer(0)))
    }

    fn condition(&self, state: &mut State, name: &str, choice: u32) -> Result<Option<Value>> {
        let at = self.at(state, 0)?;
        if name == "pthread_cond_init" {
            self.null(state, 1)?;
            return self.initialise(state, at, 48, None);
        }
        if !self.checker.is_zero(state, at, 48) {
            return unknown(self.place, "a condition that is not initialised");
        }
        match name {
            "pthread_cond_signal" | "pthread_cond_broadcast" => {
                let waiting = match self.checker.signals {
                    true => self.checker.waiting(state, at),
                    false => Vec::new(),
                };
                for (place, number) in waiting.into_iter().enumerate() {
                    let woken = name.ends_with("broadcast") || place == choice as usize;
                    if let Some(thread) = state.threads[number].as_mut().filter(|_| woken)
                        && let Doing::Waits { signalled, .. } = &mut thread.doing
                    {
                        *signalled = true;
                    }
                }
                Ok(Some(Value::Integer(0)))
            }
            "pthread_cond_destroy" => self.destroy(state, at, 48),
            "pthread_cond_wait" if state.alone.is_none() => {
                let mutex = self.at(state, 1)?;
                let count = match state.memory.locks.get(&mutex) {
                    Some(Lock::Held { owner, count: 1 }) if usize::from(*owner) == self.thread => 1,
                    _ => return unknown(self.place, "a wait without the mutex, or held twice"),
                };
                state.memory.locks.remove(&mutex);
                if self.checker.signals {
                    self.checker.assume(Assumption::WaitsNeedSignals);
                }
                if let Some(thread) = state.threads[self.thread].as_mut() {
                    let condition = at;
                    thread.doing = Doing::Waits { condition, mutex, count, signalled: false };
                }
                Ok(None)
            }
            _ => unknown(self.place, format!("this call of {name}")),
        }
    }

    fn reader_writer(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let at = self.at(state, 0)?;
        let owner = self.thread as u8;
        if name == "pthread_rwlock_init" {
            self.null(state, 1)?;
            return self.initialise(state, at, 56, None);
        }
        if !self.checker.is_zero(state, at, 56) {
            return unknown(self.place, "a lock that is not initialised");
        }
        let (now, code) = match (name, state.memory.locks.get(&at).cloned()) {
            ("pthread_rwlock_wrlock" | "pthread_rwlock_trywrlock", None) => {
                (Some(Lock::Held { owner, count: 1 }), 0)
            }
            ("pthread_rwlock_rdlock" | "pthread_rwlock_tryrdlock", None) => {
                (Some(Lock::Read(vec![owner])), 0)
            }
            ("pthread_rwlock_rdlock" | "pthread_rwlock_tryrdlock", Some(Lock::Read(mut by))) => {
                if self.checker.writer_waits(state, at) {
                    self.checker.assume(Assumption::ReadersFirst);
                }
                by.push(owner);
                by.sort_unstable();
                (Some(Lock::Read(by)), 0)
            }
            ("pthread_rwlock_tryrdlock" | "pthread_rwlock_trywrlock", lock) => (lock, EBUSY),
            ("pthread_rwlock_unlock", Some(Lock::Held { owner: other, .. })) if other == owner => {
                (None, 0)
            }
            ("pthread_rwlock_unlock", Some(Lock::Read(mut by))) if by.contains(&owner) => {
                if let Some(place) = by.iter().position(|reader| *reader == owner) {
                    by.remove(place);
                }
                ((!by.is_empty()).then_some(Lock::Read(by)), 0)
            }
            ("pthread_rwlock_destroy", None) => return self.destroy(state, at, 56),
            _ => return unknown(self.place, format!("this call of {name}")),
        };
        match now {
            Some(lock) => state.memory.locks.insert(at, lock),
            None => state.memory.locks.remove(&at),
        };
        Ok(Some(Value::Integer(code)))
    }

    fn spin(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let at = self.at(state, 0)?;
        let owner = self.thread as u8;
        let (now, code) = match (name, state.memory.locks.get(&at).cloned()) {
            ("pthread_spin_init", _) => return self.initialise(state, at, 4, Some(Lock::Free)),
            ("pthread_spin_lock" | "pthread_spin_trylock", Some(Lock::Free)) => {
                (Lock::Held { owner, count: 1 }, 0)
            }
            ("pthread_spin_trylock", Some(lock @ Lock::Held { .. })) => (lock, EBUSY),
            ("pthread_spin_unlock", Some(Lock::Held { owner: other, .. })) if other == owner => {
                (Lock::Free, 0)
            }
            ("pthread_spin_destroy", Some(Lock::Free)) => return self.destroy(state, at, 4),
            _ => return unknown(self.place, format!("this call of {name}")),
        };
        state.memory.locks.insert(at, now);
        Ok(Some(Value::Integer(code)))
    }

    fn semaphore(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let at = self.at(state, 0)?;
        let failed = Value::Integer(u128::from(u32::MAX));
        if name == "sem_init" {
            let (shared, count) = (self.integer(state, 1)?, self.integer(state, 2)?);
            if shared != 0 || count > i32::MAX as u128 {
                return unknown(self.place, "a semaphore like this");
            }
            return self.initialise(state, at, 32, Some(Lock::Semaphore(count as u32)));
        }
        let Some(Lock::Semaphore(count)) = state.memory.locks.get(&at).cloned() else {
            return unknown(self.place, "a semaphore that is not initialised");
        };
        let now = match (name, count) {
            ("sem_wait" | "sem_trywait", 1..) => count - 1,
            ("sem_trywait", 0) => return Ok(Some(failed)),
            ("sem_post", 0..1000) => count + 1,
            ("sem_getvalue", _) => {
                let to = self.at(state, 1)?;
                let count = Value::Integer(count.into());
                self.checker.store(state, self.place, to, &Type::Integer(32), &count)?;
                return Ok(Some(Value::Integer(0)));
            }
            ("sem_destroy", _) => return self.destroy(state, at, 32),
            _ => return unknown(self.place, format!("this call of {name}")),
        };
        state.memory.locks.insert(at, Lock::Semaphore(now));
        Ok(Some(Value::Integer(0)))
    }

    fn barrier(&self, state: &mut State, name: &str, choice: u32) -> Result<Option<Value>> {
        let at = self.at(state, 0)?;
        let special = u128::from(u32::MAX);
        match (name, state.memory.locks.get(&at).cloned()) {
            ("pthread_barrier_init", _) => {
                self.null(state, 1)?;
                let count = self.integer(state, 2)?;
                if !(1..=16).contains(&count) {
                    return unknown(self.place, "a barrier like this");
                }
                self.initialise(state, at, 32, Some(Lock::Barrier(count as u32)))
            }
            ("pthread_barrier_wait", Some(Lock::Barrier(count))) if state.alone.is_none() => {
                let others = self.checker.at_barrier(state, at);
                let last = others.len() as u32 + 1 == count;
                for (place, other) in others.into_iter().enumerate().filter(|_| last) {
                    let code = if choice as usize == place + 1 { special } else { 0 };
                    if let Some(thread) = state.threads[other].as_mut() {
                        thread.doing = Doing::Leaves(code);
                    }
                }
                if last {
                    return Ok(Some(Value::Integer(if choice == 0 { special } else { 0 })));
                }
                if let Some(thread) = state.threads[self.thread].as_mut() {
                    thread.doing = Doing::AtBarrier(at);
                }
                Ok(None)
            }
            ("pthread_barrier_destroy", Some(Lock::Barrier(_))) => self.destroy(state, at, 32),
            _ => unknown(self.place, format!("this call of {name}")),
        }
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

    fn intrinsic(&self, state: &mut State, name: &str) -> Result<Option<Value>> {
        let copies = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
        if name.starts_with("llvm.expect") {
            return self.value(state, 0).map(Some);
        }
        if name.starts_with("llvm.lifetime.") {
            let at = self.at(state, self.arguments.len().saturating_sub(1))?;
            let bytes = vec![Byte::Undefined; state.memory.size(at.0)];
            if state.memory.locks.keys().any(|(object, _)| *object == at.0) {
                return unknown(self.place, "a lock in a variable that begins or ends");
            }
            if state.memory.write(at.0, 0, &bytes).is_none() {
                return unknown(self.place, "a lifetime of nothing");
            }
            // what points to it points to nothing, but for its name
            if let (true, Some(Operand::Register(local))) = (
                name.starts_with("llvm.lifetime.end"),
                self.arguments.last().map(|argument| &argument.value),
            ) {
                let size = bytes.len();
                let padding = state.memory.padding(at.0);
                self.checker.remove(state, &|object| *object == at.0);
                state.memory.add(at.0, vec![Byte::Undefined; size]);
                state.memory.pad(at.0, padding.as_ref());
                self.checker.top(state, self.thread)?.registers[*local as usize] =
                    Value::Pointer(at.0, at.1);
            }
            return Ok(Some(Value::Undefined));
        }
        if !copies && !name.starts_with("llvm.memset") {
            return unknown(self.place, format!("the intrinsic {name}"));
        }
        let to = self.at(state, 0)?;
        let length = self.integer(state, 2)? as usize;
        // C asks for objects even then
        if length == 0 {
            return unknown(self.place, "a copy of no bytes");
        }
        let bytes = match copies {
            true => {
                let from = self.at(state, 1)?;
                if from.0 == to.0 && !name.starts_with("llvm.memmove") {
                    return unknown(self.place, "a copy inside an object");
                }
                let bytes = state.memory.read(from.0, from.1, length);
                let mut bytes = bytes.map(<[Byte]>::to_vec).ok_or(End::Violation(self.place))?;
                for (place, byte) in bytes.iter_mut().enumerate() {
                    // bits without a value have none elsewhere either
                    let partial =
                        |(object, at): At| state.memory.is_partial(object, at + place as i64);
                    if partial(from) && !partial(to) {
                        *byte = Byte::Undefined;
                    }
                }
                let is_constant = matches!(from.0, Object::Global(id)
                    if self.checker.module.globals[id as usize].constant);
                if !is_constant {
                    self.checker.copy(self.place, from, length)?;
                    self.checker.copy(self.place, to, length)?;
                }
                bytes
            }
            false => vec![Byte::Number(self.integer(state, 1)? as u8); length],
        };
        let constant = matches!(to.0, Object::Global(id)
            if self.checker.module.globals[id as usize].constant);
        let locked = state.memory.locks.keys().any(|(object, _)| *object == to.0);
        if locked {
            return unknown(self.place, "a copy over a lock");
        }
        match (constant, state.memory.write(to.0, to.1, &bytes)) {
            (false, Some(())) => Ok(Some(Value::Undefined)),
            _ => Err(End::Violation(self.place)),
        }
    }
}
