//! Mutexes and the like as bytes of memory: what they hold, how they are initialised and destroyed.

use super::MUTEX;
use crate::explore::machine::{Machine, Step, Stop};
use crate::explore::memory::{Pointer, Sync, Value};
use crate::explore::promises::Use;
use crate::explore::state::State;
use crate::ir::Place;
use crate::program::Visible;

/// How a mutex treats its owner; the numbers are those of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MutexKind {
    Normal,
    Recursive,
    ErrorChecking,
}

impl<'m> Machine<'m> {
    pub(super) fn sync(&self, state: &State, at: Pointer) -> Option<Sync> {
        let object = state.object(at.base)?;
        object.sync(usize::try_from(at.offset).ok()?).cloned()
    }

    /// What a run of the compiled program shows of a call that may not change a lock: a thread that holds a
    /// mutex already, or does not hold it, only gets an error number; `pthread_once` is taken, and released
    /// by the thread that took it.
    pub(in crate::explore) fn shows(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        name: &str,
        at: Pointer,
    ) -> Option<Visible> {
        let sync = self.sync(state, at);
        let mine = matches!(sync, Some(Sync::Held { owner, .. }) if usize::from(owner) == thread);
        let checks =
            || self.mutex_kind(state, place, at).is_ok_and(|k| k == MutexKind::ErrorChecking);
        match name {
            "pthread_mutex_lock" if mine && checks() => Some(Visible::No),
            "pthread_mutex_unlock" if !mine => Some(Visible::No),
            "pthread_once" if sync.is_none() && self.is_zero(state, at, 0, 4) => {
                Some(Visible::Lock)
            }
            "pthread_once" => Some(Visible::Unlock),
            _ => None,
        }
    }

    pub(super) fn set_sync(
        &self,
        state: &mut State,
        at: Pointer,
        length: usize,
        sync: Option<Sync>,
    ) {
        if let Some(object) = state.object_mut(at.base) {
            object.set_sync(at.offset as usize, length, sync);
        }
    }

    /// Checks that a lock or the like lies there as a whole, and nothing else of the kind.
    pub(super) fn region(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        length: usize,
    ) -> Step<usize> {
        let offset = match state.object(at.base) {
            Some(object) if at.offset >= 0 && object.sync(at.offset as usize).is_some() => {
                at.offset as usize
            }
            _ => self.bounds(state, place, at, length, true)?,
        };
        self.note_lock(state, place, at, length, Use::Lock)?;
        Ok(offset)
    }

    fn is_zero(&self, state: &State, at: Pointer, offset: usize, length: usize) -> bool {
        let offset = at.offset as usize + offset;
        state.object(at.base).is_some_and(|object| {
            (0..length).all(|byte| object.load(offset + byte, 1, false) == Value::Integer(0))
        })
    }

    pub(super) fn mutex_kind(&self, state: &State, place: Place, at: Pointer) -> Step<MutexKind> {
        let offset = self.region(state, place, at, MUTEX)?;
        let kind = state.object(at.base).map(|object| object.load(offset + 16, 4, false));
        let zero = self.is_zero(state, at, 0, 16) && self.is_zero(state, at, 20, 20);
        match kind {
            Some(Value::Integer(0 | 3)) if zero => Ok(MutexKind::Normal),
            Some(Value::Integer(1)) if zero => Ok(MutexKind::Recursive),
            Some(Value::Integer(2)) if zero => Ok(MutexKind::ErrorChecking),
            _ => Err(Stop::Refused(
                place,
                "a mutex that is not initialised, or of a kind that is not known".into(),
            )),
        }
    }

    /// A lock or condition whose initialiser is all zeros.
    pub(super) fn zero_initialised(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        length: usize,
        what: &str,
    ) -> Step<()> {
        self.region(state, place, at, length)?;
        match self.is_zero(state, at, 0, length) {
            true => Ok(()),
            false => Err(Stop::Refused(place, format!("{what} that is not initialised"))),
        }
    }

    /// Writes what an initialiser writes.
    pub(super) fn initialise_region(
        &self,
        state: &mut State,
        place: Place,
        at: Pointer,
        length: usize,
        sync: Option<Sync>,
    ) -> Step<()> {
        if self
            .sync(state, at)
            .is_some_and(|sync| matches!(sync, Sync::Held { .. } | Sync::Read(_)))
        {
            return Err(Stop::Refused(
                place,
                "undefined: a lock is initialised while it is held".into(),
            ));
        }
        let in_use = match self.sync(state, at) {
            Some(Sync::Semaphore(_) | Sync::Barrier { .. }) => true,
            _ => self.is_waited_for(state, at),
        };
        if in_use {
            return Err(Stop::Refused(
                place,
                "undefined: something is initialised again while threads may wait for it".into(),
            ));
        }
        self.set_sync(state, at, length, None);
        let offset = self.bounds(state, place, at, length, true)?;
        if let Some(object) = state.object_mut(at.base) {
            object.fill(offset, length, 0);
        }
        self.set_sync(state, at, length, sync);
        Ok(())
    }

    /// Whoever uses it afterwards is refused.
    pub(super) fn destroy(
        &self,
        state: &mut State,
        place: Place,
        at: Pointer,
        length: usize,
    ) -> Step<()> {
        self.region(state, place, at, length)?;
        let in_use = match self.sync(state, at) {
            Some(Sync::Held { .. } | Sync::Read(_)) => true,
            Some(Sync::Barrier { .. }) => !self.at_barrier(state, at).is_empty(),
            _ => self.is_waited_for(state, at),
        };
        if in_use {
            return Err(Stop::Refused(
                place,
                "undefined: something is destroyed while it is in use".into(),
            ));
        }
        self.set_sync(state, at, length, None);
        if let Some(object) = state.object_mut(at.base) {
            object.clear(at.offset as usize, length);
        }
        Ok(())
    }
}
