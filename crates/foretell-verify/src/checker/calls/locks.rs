//! Mutexes, and everything else that threads wait for.

use super::{At, Call, EBUSY, EDEADLK, EPERM};
use crate::certificate::Assumption;
use crate::checker::memory::{Byte, Lock, Value};
use crate::checker::step::{Checker, Result, unknown};
use crate::checker::{Doing, State, Thread};
use crate::ir::Type;

/// Kinds of mutexes, as the C library numbers them in the 17th byte.
const RECURSIVE: u128 = 1;

const ERROR_CHECKING: u128 = 2;

/// How functions of locks begin.
pub(super) const LOCKS: [&str; 6] = [
    "pthread_mutex_",
    "pthread_cond_",
    "pthread_rwlock_",
    "pthread_spin_",
    "sem_",
    "pthread_barrier_",
];

impl Checker<'_> {
    /// The kind of a mutex that is initialised.
    pub(super) fn kind(&self, state: &State, (object, offset): At) -> Option<u128> {
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
}

impl Call<'_, '_> {
    pub(super) fn lock(&self, state: &mut State, name: &str, choice: u32) -> Result<Option<Value>> {
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
                return unknown(self.place, "a semaphore that is shared or starts too high");
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
                    return unknown(self.place, "a barrier for no thread, or for more than 16");
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
}
