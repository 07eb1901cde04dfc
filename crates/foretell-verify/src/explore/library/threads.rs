//! Threads, their attributes, their own data, and what is done once.

use std::sync::Arc;

use super::{ATTRIBUTES, Call, EINVAL, ONCE, ONCE_DONE, SMALLEST_STACK, number};
use crate::certificate::Assumption;
use crate::explore::machine::Step;
use crate::explore::memory::{Base, Pointer, Sync, Value};
use crate::explore::state::{State, Status};
use crate::ir::Type;

impl Call<'_, '_> {
    /// Attributes that are absent, or say nothing.
    pub(super) fn plain(&self, state: &State, index: usize) -> Step<()> {
        match self.pointer(state, index)? {
            Pointer::NULL => Ok(()),
            attributes => match self.attribute(state, attributes)? {
                0 => Ok(()),
                _ => self.refuse("attributes that have no meaning here"),
            },
        }
    }

    /// What attributes say: the kind of a mutex, or whether a thread is detached.
    pub(super) fn attribute(&self, state: &State, at: Pointer) -> Step<u128> {
        let offset = self.machine.bounds(state, self.place, at, 4, false)?;
        match state.object(at.base).map(|object| object.load(offset, 4, false)) {
            Some(Value::Integer(kind @ 0..=3)) => Ok(kind),
            _ => self.refuse("attributes that are not initialised"),
        }
    }

    /// Attributes are kept as one number; settings that change nothing here are checked and
    /// forgotten.
    pub(super) fn attributes(&self, state: &mut State, name: &str) -> Step<i32> {
        let at = self.pointer(state, 0)?;
        let int = Type::Integer(32);
        let value = match name {
            "pthread_attr_init" => {
                let offset = self.machine.bounds(state, self.place, at, ATTRIBUTES, true)?;
                if let Some(object) = state.object_mut(at.base) {
                    object.clear(offset, ATTRIBUTES);
                }
                number(0)
            }
            _ if name.ends_with("attr_init") => number(0),
            _ if name.ends_with("attr_destroy") => Value::Undefined,
            "pthread_attr_setdetachstate" | "pthread_mutexattr_settype" => {
                self.attribute(state, at)?;
                let kind = self.integer(state, 1)?;
                if kind > if name.ends_with("type") { 3 } else { 1 } {
                    return Ok(EINVAL);
                }
                Value::Integer(kind)
            }
            "pthread_attr_getdetachstate" | "pthread_mutexattr_gettype" => {
                let kind = Value::Integer(self.attribute(state, at)?);
                let to = self.pointer(state, 1)?;
                self.machine.store(state, self.place, to, &int, &kind)?;
                return Ok(0);
            }
            "pthread_attr_setstacksize" => {
                self.attribute(state, at)?;
                return Ok(if self.integer(state, 1)? < SMALLEST_STACK { EINVAL } else { 0 });
            }
            // a wait may end at any time, whatever clock it looks at
            "pthread_condattr_setclock" => {
                self.attribute(state, at)?;
                return Ok(0);
            }
            // private to the process, no protocol, not robust: what is assumed anyway
            _ if name.ends_with("attr_setpshared")
                || name.ends_with("attr_setprotocol")
                || name.ends_with("attr_setrobust") =>
            {
                self.attribute(state, at)?;
                match self.integer(state, 1)? {
                    0 => return Ok(0),
                    _ => return self.refuse(format!("this call of {name}")),
                }
            }
            _ => return self.refuse(format!("the function {name} has no meaning here")),
        };
        self.machine.store(state, self.place, at, &int, &value)?;
        Ok(0)
    }

    /// The first thread that comes calls the function; others wait until it has returned. The call
    /// is executed again then, by a thread that holds the variable in the same call as before.
    pub(super) fn once(&self, state: &mut State) -> Step<Option<Value>> {
        let machine = self.machine;
        let at = self.pointer(state, 0)?;
        let offset = machine.region(state, self.place, at, ONCE)?;
        if let Some(Sync::Held { .. }) = machine.sync(state, at) {
            machine.set_sync(state, at, ONCE, None);
            let done = Value::Integer(ONCE_DONE);
            machine.store(state, self.place, at, &Type::Integer(32), &done)?;
            return Ok(Some(number(0)));
        }
        match state.object(at.base).map(|object| object.load(offset, 4, false)) {
            Some(Value::Integer(0)) => {}
            Some(Value::Integer(ONCE_DONE)) => return Ok(Some(number(0))),
            _ => return self.refuse("a pthread_once_t that is not initialised"),
        }
        let Pointer { base: Base::Function(id), offset: 0 } = self.pointer(state, 1)? else {
            return self.refuse("a function for pthread_once that is not known");
        };
        let function = machine.function(id);
        let fits = function.is_defined()
            && !function.variadic
            && function.parameters.is_empty()
            && function.result == Type::Void;
        if !fits || machine.is_library(id) {
            return self.refuse(format!("pthread_once with the function {}", function.name));
        }
        let count = machine.depth(state, self.thread) as u32;
        let owner = self.thread as u8;
        machine.set_sync(state, at, ONCE, Some(Sync::Held { owner, count }));
        machine.enter(state, self.thread, self.place, id, Vec::new(), None)?;
        if let Some(thread) = state.threads[self.thread].as_mut() {
            // the caller stays where it is
            let frames = &mut Arc::make_mut(thread).frames;
            let caller = frames.len() - 2;
            frames[caller].at -= 1;
        }
        Ok(None)
    }

    // ---- threads ----

    pub(super) fn create(&self, state: &mut State) -> Step<Option<Value>> {
        let handle = self.pointer(state, 0)?;
        let detached = match self.pointer(state, 1)? {
            Pointer::NULL => false,
            attributes => self.attribute(state, attributes)? == 1,
        };
        let Pointer { base: Base::Function(id), offset: 0 } = self.pointer(state, 2)? else {
            return self.refuse("a thread whose function is not known");
        };
        let argument = self.value(state, 3)?;
        self.assume(Assumption::ThreadsAreCreated);
        self.machine.bounds(state, self.place, handle, 8, true)?;
        let created = self.machine.start(state, self.place, id, argument)?;
        if let Some(thread) = state.threads[created].as_mut().filter(|_| detached) {
            Arc::make_mut(thread).detached = true;
        }
        let value = Value::Pointer(Pointer::to(Base::Thread(created as u8)));
        if self.machine.is_asked_for(state, self.thread, handle.base) {
            let created = Pointer::to(Base::Thread(created as u8));
            self.machine.status(state, self.thread, Status::Creates { handle, created });
            return Ok(None);
        }
        self.machine.store(state, self.place, handle, &Type::Integer(64), &value)?;
        Ok(Some(number(0)))
    }

    pub(super) fn join(&self, state: &mut State) -> Step<Option<Value>> {
        let Value::Pointer(Pointer { base: Base::Thread(other), .. }) = self.value(state, 0)?
        else {
            return self.refuse(
                "undefined: something is joined that is not a thread, or has been joined already",
            );
        };
        let other = usize::from(other);
        let ended = state.threads.get(other).and_then(Option::as_ref);
        let value = match ended.map(|thread| (&thread.status, thread.detached)) {
            Some((Status::Ended(value), false)) => value.clone(),
            // POSIX: it waits for ever, or says EDEADLK
            Some((_, false))
                if other != self.thread
                    && self.machine.joins(state, other) == Some(self.thread) =>
            {
                return self.refuse("two threads join each other");
            }
            _ => return self.refuse("undefined: a thread joins itself or one that is detached"),
        };
        let to = self.pointer(state, 1)?;
        if to != Pointer::NULL {
            self.machine.store(state, self.place, to, &Type::Pointer, &value)?;
        }
        self.machine.remove(state, other);
        Ok(Some(number(0)))
    }

    /// Values that each thread has for itself under a key.
    pub(super) fn specific(&self, state: &mut State, name: &str) -> Step<Option<Value>> {
        let key = |state: &State| match self.integer(state, 0) {
            Ok(key) if key < state.keys.into() && state.deleted_keys >> key & 1 == 0 => {
                Ok(key as u8)
            }
            Ok(_) => self.refuse("undefined: a key that was not created, or was deleted"),
            Err(why) => Err(why),
        };
        match name {
            "pthread_key_create" => {
                if self.pointer(state, 1)? != Pointer::NULL {
                    return self.refuse("a key with a destructor");
                }
                let to = self.pointer(state, 0)?;
                let new = Value::Integer(state.keys.into());
                self.machine.store(state, self.place, to, &Type::Integer(32), &new)?;
                if state.keys == 64 {
                    return self.refuse("more than 64 keys");
                }
                state.keys += 1;
            }
            "pthread_key_delete" => state.deleted_keys |= 1 << key(state)?,
            "pthread_setspecific" => {
                let (key, value) = (key(state)?, self.value(state, 1)?);
                if let Some(thread) = state.threads[self.thread].as_mut() {
                    let specific = &mut Arc::make_mut(thread).specific;
                    specific.retain(|(other, _)| *other != key);
                    if value != Value::Pointer(Pointer::NULL) {
                        specific.push((key, value));
                    }
                    specific.sort_unstable_by_key(|(key, _)| *key);
                }
            }
            "pthread_getspecific" => {
                let key = key(state)?;
                let own = state.threads[self.thread].as_ref();
                let found = own.and_then(|t| t.specific.iter().find(|(other, _)| *other == key));
                let found = found.map(|(_, value)| value.clone());
                return Ok(Some(found.unwrap_or(Value::Pointer(Pointer::NULL))));
            }
            _ => return self.refuse(format!("the function {name} has no meaning here")),
        }
        Ok(Some(number(0)))
    }
}
