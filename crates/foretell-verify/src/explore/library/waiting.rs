//! Who can go on: what a call waits for, in how many ways it can go, and what a thread does that was woken.

use std::sync::Arc;

use super::objects::MutexKind;
use super::{ETIMEDOUT, MUTEX, number};
use crate::certificate::Assumption;
use crate::explore::machine::{Machine, Step, Stop};
use crate::explore::memory::{Base, Pointer, Sync, Value};
use crate::explore::state::{State, Status};
use crate::explore::texts::is_comparison;
use crate::ir::{Argument, Constant, FunctionId, Op, Operand, Place, Type};

impl<'m> Machine<'m> {
    /// In how many ways can the thread take its next step? None if it has to wait.
    pub fn choices(&self, state: &State, thread: usize) -> u32 {
        if state.alone.is_some_and(|(alone, _)| usize::from(alone) != thread) {
            return 0;
        }
        let Some(running) = state.threads.get(thread).and_then(Option::as_ref) else { return 0 };
        match &running.status {
            Status::Ended(_) | Status::AtBarrier(_) => return 0,
            Status::Begins | Status::Leaves(_) | Status::Exits | Status::Creates { .. } => {
                return 1;
            }
            Status::Waits { mutex, timed, .. } => {
                let free = match self.sync(state, *mutex) {
                    Some(sync) => sync == Sync::Free,
                    None => true,
                };
                return if free { 1 + u32::from(*timed) } else { 0 };
            }
            Status::Runs => {}
        }
        let Some(instruction) = self.next(state, thread) else { return 1 };
        match &instruction.op {
            Op::Exchange { weak: true, .. } => 2,
            Op::Call { callee, arguments, .. } => {
                let callee = self.callee(state, thread, callee);
                match callee.filter(|id| self.is_library(*id)) {
                    Some(id) => {
                        self.call_choices(state, thread, &self.function(id).name, arguments)
                    }
                    None => 1,
                }
            }
            _ => 1,
        }
    }

    /// Can the thread go on without luck? A wait may end without a signal, but need not.
    pub fn can_go_on(&self, state: &State, thread: usize) -> bool {
        let waits = state.threads[thread].as_ref().is_some_and(|running| {
            matches!(running.status, Status::Waits { signalled: false, timed: false, .. })
        });
        !waits && self.choices(state, thread) > 0
    }

    /// A thread that waits for a lock or for the end of a thread, in a circle of such threads or for
    /// one that has ended: whatever the others do, it never goes on.
    pub fn never_goes_on(&self, state: &State) -> Option<usize> {
        let all = 0..state.threads.len();
        all.clone().find(|&thread| {
            let mut at = thread;
            for _ in all.clone() {
                match self.waits_for(state, at) {
                    None => return false,
                    Some(next) if next == thread => return true,
                    Some(next) => at = next,
                }
                let ended = match &state.threads[at] {
                    Some(thread) => matches!(thread.status, Status::Ended(_)),
                    None => true,
                };
                if ended {
                    return true;
                }
            }
            false
        })
    }

    /// The thread that this one is about to join, or waits to join.
    pub(super) fn joins(&self, state: &State, thread: usize) -> Option<usize> {
        let running = state.threads[thread].as_ref()?;
        let Op::Call { callee, arguments, .. } = &self.next(state, thread)?.op else { return None };
        let name = &self.function(self.callee(state, thread, callee)?).name;
        if running.status != Status::Runs || &**name != "pthread_join" {
            return None;
        }
        let argument = arguments.first()?;
        match self.operand(state, thread, &argument.value, &argument.kind) {
            Ok(Value::Pointer(Pointer { base: Base::Thread(other), .. })) => Some(other.into()),
            _ => None,
        }
    }

    /// The thread that has to do something before this one can go on.
    fn waits_for(&self, state: &State, thread: usize) -> Option<usize> {
        if state.alone.is_some() || self.choices(state, thread) > 0 {
            return None;
        }
        let waiting = state.threads[thread].as_ref()?;
        let at = match &waiting.status {
            Status::Waits { mutex, .. } => *mutex,
            Status::Runs => {
                let Op::Call { callee, arguments, .. } = &self.next(state, thread)?.op else {
                    return None;
                };
                let name = &self.function(self.callee(state, thread, callee)?).name;
                let argument = arguments.first()?;
                let value = self.operand(state, thread, &argument.value, &argument.kind);
                let Ok(Value::Pointer(at)) = value else { return None };
                match (&**name, at.base) {
                    ("pthread_join", Base::Thread(other)) => return Some(other.into()),
                    (
                        "pthread_mutex_lock"
                        | "pthread_spin_lock"
                        | "pthread_rwlock_rdlock"
                        | "pthread_rwlock_wrlock",
                        _,
                    ) => at,
                    _ => return None,
                }
            }
            _ => return None,
        };
        match self.sync(state, at) {
            Some(Sync::Held { owner, .. }) => Some(owner.into()),
            _ => None,
        }
    }

    /// Does a thread want to write what others read?
    pub(super) fn writer_waits(&self, state: &State, at: Pointer) -> bool {
        state.running().any(|thread| {
            let next = self.next(state, thread).map(|instruction| &instruction.op);
            let Some(Op::Call { callee, arguments, .. }) = next else { return false };
            let callee = self.callee(state, thread, callee);
            let is_writer =
                callee.is_some_and(|id| &*self.function(id).name == "pthread_rwlock_wrlock");
            is_writer
                && arguments.first().is_some_and(|argument| {
                    self.operand(state, thread, &argument.value, &argument.kind)
                        == Ok(Value::Pointer(at))
                })
        })
    }

    fn call_choices(
        &self,
        state: &State,
        thread: usize,
        name: &str,
        arguments: &[Argument],
    ) -> u32 {
        let value = |index: usize| {
            let argument = arguments.get(index)?;
            self.operand(state, thread, &argument.value, &argument.kind).ok()
        };
        let first = || match value(0)? {
            Value::Pointer(pointer) => Some(pointer),
            _ => None,
        };
        // what is wrong with a call is said when it is executed
        let Some(at) = first() else { return 1 };
        let sync = self.sync(state, at);
        let waits = match name {
            "pthread_mutex_lock" => match sync {
                Some(Sync::Held { owner, .. }) if usize::from(owner) == thread => {
                    let again =
                        self.mutex_kind(state, Place::default(), at) == Ok(MutexKind::Normal);
                    if again {
                        self.assumed.borrow_mut().insert(Assumption::LockedAgain);
                    }
                    again
                }
                Some(Sync::Held { .. }) => true,
                _ => false,
            },
            "pthread_spin_lock" => matches!(sync, Some(Sync::Held { .. })),
            "pthread_rwlock_rdlock" => {
                matches!(sync, Some(Sync::Held { owner, .. }) if usize::from(owner) != thread)
            }
            "pthread_rwlock_wrlock" => match sync {
                Some(Sync::Held { owner, .. }) => usize::from(owner) != thread,
                Some(Sync::Read(_)) => true,
                _ => false,
            },
            "sem_wait" => sync == Some(Sync::Semaphore(0)),
            "pthread_once" => matches!(sync, Some(Sync::Held { owner, count })
                if usize::from(owner) != thread || count as usize != self.depth(state, thread)),
            "pthread_join" => match at.base {
                Base::Thread(other) if usize::from(other) != thread => {
                    let number = usize::from(other);
                    let other = state.threads.get(number).and_then(Option::as_ref);
                    other.is_some_and(|other| !matches!(other.status, Status::Ended(_)))
                        && self.joins(state, number) != Some(thread)
                }
                _ => false,
            },
            _ => false,
        };
        match name {
            _ if waits => 0,
            // it may give up at any time, and takes what is free if it does not
            "pthread_mutex_timedlock" => 1 + u32::from(sync.is_none()),
            "sem_timedwait" => 1 + u32::from(sync != Some(Sync::Semaphore(0))),
            _ if is_comparison(name) => {
                1 + u32::from(self.result_is_open(state, thread, name, arguments))
            }
            "pthread_cond_signal" if self.signals => self.waiting(state, at).len().max(1) as u32,
            "pthread_barrier_wait" => match sync {
                Some(Sync::Barrier { count })
                    if self.at_barrier(state, at).len() + 1 == count as usize =>
                {
                    count
                }
                _ => 1,
            },
            _ => 1,
        }
    }

    /// Calls that the thread is in.
    pub(in crate::explore) fn depth(&self, state: &State, thread: usize) -> usize {
        state.threads[thread].as_ref().map_or(0, |thread| thread.frames.len())
    }

    /// Is the thread in a call of `pthread_once`?
    pub(super) fn is_in_once(&self, state: &State, thread: usize) -> bool {
        let Some(thread) = state.threads[thread].as_ref() else { return false };
        thread.frames.iter().any(|frame| {
            let block = &self.function(frame.function).blocks[frame.block as usize];
            let next = block.instructions.get(frame.at as usize).map(|next| &next.op);
            let Some(Op::Call { callee, .. }) = next else { return false };
            let Operand::Constant(Constant::Function(id)) = callee else { return false };
            &*self.function(*id).name == "pthread_once"
        })
    }

    /// Threads that wait for a condition and have no signal.
    pub(super) fn waiting(&self, state: &State, at: Pointer) -> Vec<usize> {
        let waits = |index: &usize| {
            state.threads[*index].as_ref().is_some_and(|thread| {
                matches!(thread.status, Status::Waits { condition, signalled: false, .. }
                    if condition == at)
            })
        };
        (0..state.threads.len()).filter(waits).collect()
    }

    pub(super) fn at_barrier(&self, state: &State, at: Pointer) -> Vec<usize> {
        let waits = |index: &usize| {
            let thread = state.threads[*index].as_ref();
            thread.is_some_and(|thread| thread.status == Status::AtBarrier(at))
        };
        (0..state.threads.len()).filter(waits).collect()
    }

    /// Does a thread wait for the condition?
    pub(super) fn is_waited_for(&self, state: &State, at: Pointer) -> bool {
        state.threads.iter().flatten().any(
            |thread| matches!(thread.status, Status::Waits { condition, .. } if condition == at),
        )
    }

    pub(super) fn status(&self, state: &mut State, thread: usize, status: Status) {
        if let Some(thread) = state.threads[thread].as_mut() {
            Arc::make_mut(thread).status = status;
        }
    }

    /// May another thread look at the memory soon, as far as functions tell what they speak of?
    pub(super) fn is_asked_for(&self, state: &State, thread: usize, base: Base) -> bool {
        if !self.is_shared(state, thread, base) {
            return false;
        }
        let Base::Global(id) = base else { return true };
        let speaks = |function: FunctionId| self.mentioned(function).contains(&id);
        let others = state.threads.iter().enumerate().filter(|(other, _)| *other != thread);
        let frames = others.filter_map(|(_, other)| other.as_ref()).flat_map(|t| &t.frames);
        frames.map(|frame| frame.function).any(speaks)
            || state
                .globals
                .iter()
                .chain(state.heap.iter().flatten())
                .any(|object| object.pointers().any(|pointer| pointer.base == base))
    }

    /// Goes on after waiting.
    pub(in crate::explore) fn wake(
        &self,
        state: &mut State,
        thread: usize,
        choice: u32,
    ) -> Step<()> {
        let status = state.threads[thread].as_ref().map(|thread| thread.status.clone());
        let result = self.next(state, thread).and_then(|instruction| instruction.result);
        let place = self.next(state, thread).map(|i| i.place).unwrap_or_default();
        self.status(state, thread, Status::Runs);
        self.note_loud(true);
        match status {
            Some(Status::Waits { mutex, count, timed, .. }) => {
                // it may have been destroyed meanwhile
                self.mutex_kind(state, place, mutex)?;
                let owner = thread as u8;
                self.set_sync(state, mutex, MUTEX, Some(Sync::Held { owner, count }));
                let code = if timed && choice == 1 { ETIMEDOUT } else { 0 };
                self.finish(state, thread, result, number(code));
            }
            Some(Status::Leaves(code)) => self.finish(state, thread, result, number(code)),
            Some(Status::Exits) => return Err(Stop::Over),
            Some(Status::Creates { handle, created }) => {
                let value = Value::Pointer(created);
                self.store(state, place, handle, &Type::Integer(64), &value)?;
                self.finish(state, thread, result, number(0));
            }
            Some(Status::Begins | Status::Runs | Status::AtBarrier(_) | Status::Ended(_))
            | None => {}
        }
        Ok(())
    }
}
