//! Mutexes, spin locks, reader-writer locks, conditions, semaphores and barriers.

use std::sync::Arc;

use super::objects::MutexKind;
use super::{
    BARRIER, CONDITION, Call, EBUSY, EDEADLK, EPERM, ETIMEDOUT, MUTEX, RW_LOCK, SEMAPHORE,
    SPIN_LOCK, number,
};
use crate::certificate::Assumption;
use crate::explore::machine::Step;
use crate::explore::memory::{Pointer, Sync, Value};
use crate::explore::state::{State, Status};
use crate::ir::Type;

impl Call<'_, '_> {
    // ---- locks ----

    pub(super) fn mutex(&self, state: &mut State, name: &str, choice: u32) -> Step<Option<Value>> {
        let machine = self.machine;
        let at = self.pointer(state, 0)?;
        let owner = self.thread as u8;
        let code = match name {
            "pthread_mutex_init" => {
                let attributes = self.pointer(state, 1)?;
                let kind = match attributes {
                    Pointer::NULL => 0,
                    attributes => self.attribute(state, attributes)?,
                };
                machine.initialise_region(state, self.place, at, MUTEX, None)?;
                if let Some(object) = state.object_mut(at.base) {
                    object.store(at.offset as usize + 16, 4, &Value::Integer(kind));
                }
                0
            }
            "pthread_mutex_destroy" => {
                machine.mutex_kind(state, self.place, at)?;
                machine.destroy(state, self.place, at, MUTEX)?;
                0
            }
            "pthread_mutex_timedlock" if choice == 1 || machine.sync(state, at).is_some() => {
                if machine.mutex_kind(state, self.place, at)? != MutexKind::Normal {
                    return self.refuse("pthread_mutex_timedlock of a mutex of another kind");
                }
                ETIMEDOUT
            }
            "pthread_mutex_lock" | "pthread_mutex_trylock" | "pthread_mutex_timedlock" => {
                let kind = machine.mutex_kind(state, self.place, at)?;
                let tries = name.ends_with("trylock");
                let (taken, code) = match machine.sync(state, at) {
                    None => (Some(1), 0),
                    Some(Sync::Held { owner: other, count })
                        if other == owner && kind == MutexKind::Recursive =>
                    {
                        (Some(count + 1), 0)
                    }
                    Some(Sync::Held { owner: other, .. })
                        if other == owner && kind == MutexKind::ErrorChecking && !tries =>
                    {
                        (None, EDEADLK)
                    }
                    Some(Sync::Held { .. }) if tries => (None, EBUSY),
                    _ => return self.refuse("a lock that is not a mutex"),
                };
                if let Some(count) = taken {
                    machine.set_sync(state, at, MUTEX, Some(Sync::Held { owner, count }));
                }
                code
            }
            "pthread_mutex_unlock" => {
                let kind = machine.mutex_kind(state, self.place, at)?;
                match machine.sync(state, at) {
                    Some(Sync::Held { owner: other, count }) if other == owner => {
                        let left = (count > 1).then_some(Sync::Held { owner, count: count - 1 });
                        machine.set_sync(state, at, MUTEX, left);
                        0
                    }
                    _ if kind != MutexKind::Normal => EPERM,
                    _ => {
                        return self.refuse(
                            "undefined: a mutex is unlocked by a thread that does not hold it",
                        );
                    }
                }
            }
            _ => return self.refuse(format!("the function {name} has no meaning here")),
        };
        Ok(Some(number(code)))
    }

    pub(super) fn condition(
        &self,
        state: &mut State,
        name: &str,
        choice: u32,
    ) -> Step<Option<Value>> {
        let machine = self.machine;
        let at = self.pointer(state, 0)?;
        match name {
            "pthread_cond_init" => {
                self.plain(state, 1)?;
                machine.initialise_region(state, self.place, at, CONDITION, None)?;
            }
            "pthread_cond_destroy" => machine.destroy(state, self.place, at, CONDITION)?,
            "pthread_cond_signal" | "pthread_cond_broadcast" => {
                machine.zero_initialised(state, self.place, at, CONDITION, "a condition")?;
                let waiting = if machine.signals { machine.waiting(state, at) } else { Vec::new() };
                for (place, thread) in waiting.into_iter().enumerate() {
                    if name.ends_with("signal") && place != choice as usize {
                        continue;
                    }
                    if let Some(thread) = state.threads[thread].as_mut()
                        && let Status::Waits { signalled, .. } = &mut Arc::make_mut(thread).status
                    {
                        *signalled = true;
                    }
                }
            }
            "pthread_cond_wait" | "pthread_cond_timedwait" => {
                machine.zero_initialised(state, self.place, at, CONDITION, "a condition")?;
                let mutex = self.pointer(state, 1)?;
                machine.mutex_kind(state, self.place, mutex)?;
                let count = match machine.sync(state, mutex) {
                    Some(Sync::Held { owner, count: 1 }) if usize::from(owner) == self.thread => 1,
                    // the C library gives it back once and goes on holding it
                    Some(Sync::Held { owner, .. }) if usize::from(owner) == self.thread => {
                        return self.refuse("a wait with a mutex that is held more than once");
                    }
                    _ => return self.refuse("undefined: a wait without the mutex"),
                };
                if state.alone.is_some() {
                    return self.refuse("a wait inside an atomic section");
                }
                let with_another = state.threads.iter().flatten().any(|thread| {
                    matches!(thread.status, Status::Waits { condition, mutex: other, .. }
                        if condition == at && other != mutex)
                });
                if with_another {
                    return self.refuse("undefined: waits for a condition with two mutexes");
                }
                machine.set_sync(state, mutex, MUTEX, None);
                let timed = name.ends_with("timedwait");
                if machine.signals {
                    self.assume(Assumption::WaitsNeedSignals);
                }
                let condition = at;
                let status = Status::Waits { condition, mutex, count, signalled: false, timed };
                machine.status(state, self.thread, status);
                return Ok(None);
            }
            _ => return self.refuse(format!("the function {name} has no meaning here")),
        }
        Ok(Some(number(0)))
    }

    /// Locks for readers and writers, and spin locks.
    pub(super) fn lock(&self, state: &mut State, name: &str) -> Step<i32> {
        let machine = self.machine;
        let at = self.pointer(state, 0)?;
        let owner = self.thread as u8;
        let held = Sync::Held { owner, count: 1 };
        if name.starts_with("pthread_rwlock_") && !matches!(name, "pthread_rwlock_init") {
            machine.zero_initialised(state, self.place, at, RW_LOCK, "a lock")?;
        }
        let sync = machine.sync(state, at);
        let mine = matches!(&sync, Some(Sync::Held { owner: other, .. }) if *other == owner);
        match (name, sync) {
            ("pthread_rwlock_init", _) => {
                self.plain(state, 1)?;
                machine.initialise_region(state, self.place, at, RW_LOCK, None)?;
            }
            ("pthread_rwlock_destroy", _) => machine.destroy(state, self.place, at, RW_LOCK)?,
            ("pthread_rwlock_rdlock" | "pthread_rwlock_wrlock", _) if mine => {
                return self.refuse(
                    "undefined: a lock is acquired again by the thread that holds it for writing",
                );
            }
            ("pthread_rwlock_rdlock" | "pthread_rwlock_tryrdlock", None) => {
                machine.set_sync(state, at, RW_LOCK, Some(Sync::Read(vec![owner])));
            }
            (
                "pthread_rwlock_rdlock" | "pthread_rwlock_tryrdlock",
                Some(Sync::Read(mut readers)),
            ) => {
                if machine.writer_waits(state, at) {
                    self.assume(Assumption::ReadersFirst);
                }
                readers.push(owner);
                readers.sort_unstable();
                if readers.len() > 64 {
                    return self.refuse("a lock that is held by more than 64 readers");
                }
                machine.set_sync(state, at, RW_LOCK, Some(Sync::Read(readers)));
            }
            ("pthread_rwlock_wrlock" | "pthread_rwlock_trywrlock", None) => {
                machine.set_sync(state, at, RW_LOCK, Some(held));
            }
            ("pthread_rwlock_tryrdlock" | "pthread_rwlock_trywrlock", Some(_)) => return Ok(EBUSY),
            ("pthread_rwlock_unlock", Some(Sync::Held { .. })) if mine => {
                machine.set_sync(state, at, RW_LOCK, None);
            }
            ("pthread_rwlock_unlock", Some(Sync::Read(mut readers))) => {
                let Some(place) = readers.iter().position(|&reader| reader == owner) else {
                    return self
                        .refuse("undefined: a lock is released by a thread that does not hold it");
                };
                readers.remove(place);
                let left = (!readers.is_empty()).then_some(Sync::Read(readers));
                machine.set_sync(state, at, RW_LOCK, left);
            }
            ("pthread_spin_init", _) => {
                machine.initialise_region(state, self.place, at, SPIN_LOCK, Some(Sync::Free))?;
            }
            ("pthread_spin_destroy", Some(Sync::Free)) => {
                machine.destroy(state, self.place, at, SPIN_LOCK)?;
            }
            ("pthread_spin_lock" | "pthread_spin_trylock", Some(Sync::Free)) => {
                machine.set_sync(state, at, SPIN_LOCK, Some(held));
            }
            ("pthread_spin_trylock", Some(Sync::Held { .. })) => return Ok(EBUSY),
            ("pthread_spin_unlock", Some(Sync::Held { .. })) if mine => {
                machine.set_sync(state, at, SPIN_LOCK, Some(Sync::Free));
            }
            _ => {
                return self
                    .refuse(format!("undefined, or without a meaning here: this call of {name}"));
            }
        }
        Ok(0)
    }

    pub(super) fn semaphore(&self, state: &mut State, name: &str, choice: u32) -> Step<i32> {
        let machine = self.machine;
        let at = self.pointer(state, 0)?;
        if name == "sem_init" {
            if self.integer(state, 1)? != 0 {
                return self.refuse("a semaphore that is shared between processes");
            }
            let value = self.integer(state, 2)?;
            if value > i32::MAX as u128 {
                return Ok(-1);
            }
            let sync = Some(Sync::Semaphore(value as u32));
            machine.initialise_region(state, self.place, at, SEMAPHORE, sync)?;
            return Ok(0);
        }
        machine.region(state, self.place, at, SEMAPHORE)?;
        let Some(Sync::Semaphore(value)) = machine.sync(state, at) else {
            return self.refuse("a semaphore that is not initialised");
        };
        let set = |state: &mut State, value| {
            machine.set_sync(state, at, SEMAPHORE, Some(Sync::Semaphore(value)));
        };
        match (name, value) {
            ("sem_timedwait", _) if choice == 1 || value == 0 => return Ok(-1),
            ("sem_wait" | "sem_trywait" | "sem_timedwait", 1..) => set(state, value - 1),
            ("sem_trywait", 0) => return Ok(-1),
            ("sem_post", _) if value < i32::MAX as u32 => set(state, value + 1),
            ("sem_post", _) => return Ok(-1),
            ("sem_getvalue", _) => {
                let to = self.pointer(state, 1)?;
                let value = Value::Integer(value.into());
                machine.store(state, self.place, to, &Type::Integer(32), &value)?;
            }
            ("sem_destroy", _) => machine.destroy(state, self.place, at, SEMAPHORE)?,
            _ => return self.refuse(format!("the function {name} has no meaning here")),
        }
        Ok(0)
    }

    pub(super) fn barrier(
        &self,
        state: &mut State,
        name: &str,
        choice: u32,
    ) -> Step<Option<Value>> {
        let machine = self.machine;
        let at = self.pointer(state, 0)?;
        match name {
            "pthread_barrier_init" => {
                self.plain(state, 1)?;
                let count = self.integer(state, 2)?;
                if !(1..=64).contains(&count) {
                    return self.refuse("a barrier for no thread, or for very many");
                }
                let sync = Some(Sync::Barrier { count: count as u32 });
                machine.initialise_region(state, self.place, at, BARRIER, sync)?;
                return Ok(Some(number(0)));
            }
            "pthread_barrier_destroy" | "pthread_barrier_wait" => {}
            _ => return self.refuse(format!("the function {name} has no meaning here")),
        }
        machine.region(state, self.place, at, BARRIER)?;
        let Some(Sync::Barrier { count }) = machine.sync(state, at) else {
            return self.refuse("a barrier that is not initialised");
        };
        if name == "pthread_barrier_destroy" {
            machine.destroy(state, self.place, at, BARRIER)?;
            return Ok(Some(number(0)));
        }
        if state.alone.is_some() {
            return self.refuse("a wait inside an atomic section");
        }
        let waiting = machine.at_barrier(state, at);
        if waiting.len() + 1 < count as usize {
            machine.status(state, self.thread, Status::AtBarrier(at));
            return Ok(None);
        }
        for (place, &other) in waiting.iter().enumerate() {
            let special = choice as usize == place + 1;
            machine.status(state, other, Status::Leaves(if special { -1 } else { 0 }));
        }
        Ok(Some(number(if choice == 0 { -1 } else { 0 })))
    }
}
