//! The meaning of functions that are not the program's own: threads, locks, memory, output, and
//! SV-COMP's functions. A function that is not here is refused.
//!
//! POSIX leaves things open; a proof must hold for all of them. A wait for a condition may end at any
//! time, `pthread_cond_signal` wakes any one of those who wait, any thread may be the one to which a
//! barrier gives its special result. Creating a thread and allocating memory are assumed to succeed.

use std::sync::Arc;

use super::machine::{Kind, Machine, Step, Stop};
use super::memory::{Base, Object, Pointer, Sync, Value};
use super::promises::Use;
use super::state::{OWN, State, Status};
use super::texts::{is_comparison, is_output, is_text};
use crate::certificate::Assumption;
use crate::ir::{
    Argument, Cast, Constant, Copied, Flags, FloatOperation, FunctionId, Instruction, Op, Operand,
    Place, Type, mask, signed,
};
use crate::limits::LARGEST_ALLOCATION;
use crate::program::Visible;

const MUTEX: usize = 40;
const CONDITION: usize = 48;
const RW_LOCK: usize = 56;
const SEMAPHORE: usize = 32;
const BARRIER: usize = 32;
const SPIN_LOCK: usize = 4;
const ATTRIBUTES: usize = 56;
const ONCE: usize = 4;

/// What `pthread_once` leaves in its variable.
const ONCE_DONE: u128 = 2;

/// The smallest stack that a thread can be given.
const SMALLEST_STACK: u128 = 16384;

const EPERM: i32 = 1;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const EDEADLK: i32 = 35;
const ETIMEDOUT: i32 = 110;

/// How a mutex treats its owner; the numbers are those of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MutexKind {
    Normal,
    Recursive,
    ErrorChecking,
}

/// Functions that have our meaning even if the program defines them. What marks atomic sections cannot
/// have both meanings: it is refused if the program defines it.
pub(super) fn is_special(name: &str) -> bool {
    matches!(
        name,
        "reach_error" | "__VERIFIER_error" | "__VERIFIER_atomic_begin" | "__VERIFIER_atomic_end"
    )
}

/// Functions of the program that are one step, by their name.
pub(super) fn is_atomic(name: &str) -> bool {
    name.strip_prefix("__VERIFIER_atomic_").is_some_and(|rest| !matches!(rest, "begin" | "end"))
}

/// Functions that compilers know to have no effect that keeps a loop from being left out.
fn is_quiet(name: &str) -> bool {
    name.starts_with("llvm.")
        || matches!(name, "malloc" | "calloc" | "realloc" | "free")
        || is_text(name) && !is_output(name)
}

/// Functions that give an input.
pub(super) fn is_input(name: &str) -> bool {
    name.starts_with("__VERIFIER_nondet_") || matches!(name, "rand" | "random" | "time")
}

/// The width of an input by the name of its function, and whether it is signed.
pub(super) fn input_width(name: &str) -> Option<(u32, bool)> {
    match name {
        // from 0 to RAND_MAX
        "rand" | "random" => return Some((31, false)),
        // seconds since 1970
        "time" => return Some((62, false)),
        _ => {}
    }
    Some(match name.strip_prefix("__VERIFIER_nondet_")? {
        "bool" | "_Bool" => (1, false),
        "char" | "schar" | "s8" | "S8" => (8, true),
        "uchar" | "unsigned_char" | "u8" | "U8" => (8, false),
        "short" | "s16" | "S16" => (16, true),
        "ushort" | "unsigned_short" | "u16" | "U16" => (16, false),
        "int" | "s32" | "S32" => (32, true),
        "uint" | "unsigned" | "unsigned_int" | "u32" | "U32" => (32, false),
        "long" | "longlong" | "loff_t" | "off_t" | "ptrdiff_t" | "ssize_t" | "s64" | "S64" => {
            (64, true)
        }
        "ulong" | "ulonglong" | "unsigned_long" | "unsigned_long_long" | "size_t" | "u64"
        | "U64" => (64, false),
        "int128" => (128, true),
        "uint128" => (128, false),
        _ => return None,
    })
}

impl<'m> Machine<'m> {
    /// Can others see the call, or does it end the execution for them?
    pub(super) fn call_is_seen(
        &self,
        state: &State,
        thread: usize,
        name: &str,
        instruction: &Instruction,
    ) -> bool {
        let Op::Call { arguments, .. } = &instruction.op else { return true };
        match name {
            _ if is_text(name) => self.text_is_seen(state, thread, name, arguments),
            "malloc" | "calloc" | "putchar" | "fflush" | "setbuf" | "srand" | "srandom"
            | "usleep" | "sleep" | "nanosleep" | "sched_yield" | "pthread_yield"
            | "pthread_self" | "pthread_equal" | "__assert_fail" | "reach_error"
            | "__VERIFIER_error" => false,
            "abort" => self.quiet_abort,
            "__VERIFIER_assume" | "assume_abort_if_not" => {
                // a failed assumption ends the execution for all: they may do something before; with
                // inputs it is always a step, so that a path has the same steps when they are known
                let holds = arguments
                    .first()
                    .map(|argument| self.operand(state, thread, &argument.value, &argument.kind));
                self.has_inputs || !matches!(holds, Some(Ok(Value::Integer(1..))))
            }
            name => !name.starts_with("llvm."),
        }
    }

    /// Does the instruction ask for an input?
    pub(super) fn takes_input(
        &self,
        state: &State,
        thread: usize,
        instruction: &Instruction,
    ) -> bool {
        let Op::Call { callee, .. } = &instruction.op else { return false };
        let callee = self.callee(state, thread, callee).map(|id| self.function(id));
        callee.is_some_and(|function| !function.is_defined() && is_input(&function.name))
    }

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
    fn joins(&self, state: &State, thread: usize) -> Option<usize> {
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
    fn writer_waits(&self, state: &State, at: Pointer) -> bool {
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
    pub(super) fn depth(&self, state: &State, thread: usize) -> usize {
        state.threads[thread].as_ref().map_or(0, |thread| thread.frames.len())
    }

    /// Is the thread in a call of `pthread_once`?
    fn is_in_once(&self, state: &State, thread: usize) -> bool {
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
    fn waiting(&self, state: &State, at: Pointer) -> Vec<usize> {
        let waits = |index: &usize| {
            state.threads[*index].as_ref().is_some_and(|thread| {
                matches!(thread.status, Status::Waits { condition, signalled: false, .. }
                    if condition == at)
            })
        };
        (0..state.threads.len()).filter(waits).collect()
    }

    fn at_barrier(&self, state: &State, at: Pointer) -> Vec<usize> {
        let waits = |index: &usize| {
            let thread = state.threads[*index].as_ref();
            thread.is_some_and(|thread| thread.status == Status::AtBarrier(at))
        };
        (0..state.threads.len()).filter(waits).collect()
    }

    fn sync(&self, state: &State, at: Pointer) -> Option<Sync> {
        let object = state.object(at.base)?;
        object.sync(usize::try_from(at.offset).ok()?).cloned()
    }

    /// What a run of the compiled program shows of a call that may be no step of a lock: who holds a mutex
    /// already, or does not hold it, is only told so; `pthread_once` is taken, and given back by who took it.
    pub(super) fn shows(
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

    fn set_sync(&self, state: &mut State, at: Pointer, length: usize, sync: Option<Sync>) {
        if let Some(object) = state.object_mut(at.base) {
            object.set_sync(at.offset as usize, length, sync);
        }
    }

    /// Checks that a lock or the like lies there as a whole, and nothing else of the kind.
    fn region(&self, state: &State, place: Place, at: Pointer, length: usize) -> Step<usize> {
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

    fn mutex_kind(&self, state: &State, place: Place, at: Pointer) -> Step<MutexKind> {
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
    fn zero_initialised(
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
    fn initialise_region(
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
    fn destroy(&self, state: &mut State, place: Place, at: Pointer, length: usize) -> Step<()> {
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

    /// Does a thread wait for the condition?
    fn is_waited_for(&self, state: &State, at: Pointer) -> bool {
        state.threads.iter().flatten().any(
            |thread| matches!(thread.status, Status::Waits { condition, .. } if condition == at),
        )
    }

    fn status(&self, state: &mut State, thread: usize, status: Status) {
        if let Some(thread) = state.threads[thread].as_mut() {
            Arc::make_mut(thread).status = status;
        }
    }

    /// May another thread look at the memory soon, as far as functions tell what they speak of?
    fn is_asked_for(&self, state: &State, thread: usize, base: Base) -> bool {
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
    pub(super) fn wake(&self, state: &mut State, thread: usize, choice: u32) -> Step<()> {
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

    /// Executes a call of a function that is not the program's own.
    pub(super) fn library(
        &self,
        state: &mut State,
        thread: usize,
        id: FunctionId,
        instruction: &'m Instruction,
        choice: u32,
    ) -> Step<()> {
        let Op::Call { arguments, result: kind, fields, .. } = &instruction.op else {
            return Ok(());
        };
        let fields = fields.as_deref();
        let call = Call { machine: self, thread, place: instruction.place, arguments, fields };
        let name = &*self.function(id).name;
        self.note_loud(!is_quiet(name));
        let known_kind = match name {
            _ if name.starts_with("llvm.") => true,
            _ => !matches!(kind, Type::Float { .. } | Type::Refused(_) | Type::Struct(_)),
        };
        if !known_kind {
            return call.refuse(format!("a call of {name} with a result of type {}", kind.show()));
        }
        // otherwise it has moved the thread by itself
        if let Some(value) = call.run(state, name, kind, choice)? {
            self.finish(state, thread, instruction.result, value);
        }
        Ok(())
    }
}

/// A call of a library function.
pub(super) struct Call<'a, 'm> {
    pub(super) machine: &'a Machine<'m>,
    pub(super) thread: usize,
    pub(super) place: Place,
    pub(super) arguments: &'a [Argument],
    /// What a copy of a structure copies.
    fields: Option<&'a [Copied]>,
}

fn number(code: i32) -> Value {
    Value::Integer(code as u32 as u128)
}

impl Call<'_, '_> {
    pub(super) fn refuse<T>(&self, what: impl Into<String>) -> Step<T> {
        Err(Stop::Refused(self.place, what.into()))
    }

    pub(super) fn argument(&self, index: usize) -> Step<&Argument> {
        match self.arguments.get(index) {
            Some(argument) => Ok(argument),
            None => self.refuse("a call with too few arguments"),
        }
    }

    pub(super) fn pointer(&self, state: &State, index: usize) -> Step<Pointer> {
        let argument = self.argument(index)?;
        if argument.kind != Type::Pointer {
            return self.refuse("a call with other types");
        }
        self.machine.pointer(state, self.thread, self.place, &argument.value)
    }

    pub(super) fn integer(&self, state: &State, index: usize) -> Step<u128> {
        let argument = self.argument(index)?;
        let Type::Integer(bits) = argument.kind else {
            return self.refuse("a call with other types");
        };
        self.machine.integer(state, self.thread, self.place, &argument.value, bits)
    }

    fn value(&self, state: &State, index: usize) -> Step<Value> {
        let argument = self.argument(index)?;
        let value = self.machine.operand(state, self.thread, &argument.value, &argument.kind);
        value.or_else(|why| self.refuse(why))
    }

    /// Attributes that are absent, or say nothing.
    fn plain(&self, state: &State, index: usize) -> Step<()> {
        match self.pointer(state, index)? {
            Pointer::NULL => Ok(()),
            attributes => match self.attribute(state, attributes)? {
                0 => Ok(()),
                _ => self.refuse("attributes that have no meaning here"),
            },
        }
    }

    /// What attributes say: the kind of a mutex, or whether a thread is detached.
    fn attribute(&self, state: &State, at: Pointer) -> Step<u128> {
        let offset = self.machine.bounds(state, self.place, at, 4, false)?;
        match state.object(at.base).map(|object| object.load(offset, 4, false)) {
            Some(Value::Integer(kind @ 0..=3)) => Ok(kind),
            _ => self.refuse("attributes that are not initialised"),
        }
    }

    /// Attributes are kept as one number; settings that change nothing here are checked and
    /// forgotten.
    fn attributes(&self, state: &mut State, name: &str) -> Step<i32> {
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
    fn once(&self, state: &mut State) -> Step<Option<Value>> {
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

    pub(super) fn assume(&self, what: Assumption) {
        self.machine.assumed.borrow_mut().insert(what);
    }

    /// What the call gives; nothing if the thread does not simply go on behind it.
    fn run(&self, state: &mut State, name: &str, kind: &Type, choice: u32) -> Step<Option<Value>> {
        let code = |code: i32| Ok(Some(number(code)));
        if let Some(intrinsic) = name.strip_prefix("llvm.") {
            return self.intrinsic(state, intrinsic).map(Some);
        }
        if name.ends_with("attr_init") || name.contains("attr_") && name.starts_with("pthread_") {
            return self.attributes(state, name).map(|code| Some(number(code)));
        }
        if name.starts_with("pthread_mutex") {
            return self.mutex(state, name, choice);
        }
        if name.starts_with("pthread_cond_") {
            return self.condition(state, name, choice);
        }
        if name.starts_with("pthread_rwlock_") || name.starts_with("pthread_spin_") {
            return self.lock(state, name).map(|code| Some(number(code)));
        }
        if name.starts_with("sem_") {
            return self.semaphore(state, name, choice).map(|code| Some(number(code)));
        }
        if name.starts_with("pthread_barrier_") {
            return self.barrier(state, name, choice);
        }
        match name {
            "__assert_fail" => Err(Stop::Violated(Kind::Assertion, self.place)),
            "reach_error" | "__VERIFIER_error" => Err(Stop::Violated(Kind::Error, self.place)),
            "abort" if self.machine.quiet_abort => {
                self.assume(Assumption::QuietAbort);
                Err(Stop::Pruned)
            }
            "abort" => Err(Stop::Violated(Kind::Abort, self.place)),
            "exit" | "_exit" | "_Exit" | "quick_exit" => Err(Stop::Over),
            "__VERIFIER_assume" | "assume_abort_if_not" => {
                let argument = self.argument(0)?;
                let (value, kind) = (&argument.value, &argument.kind);
                let value = self.machine.known(state, self.thread, self.place, value, kind)?;
                match self.machine.is_true(self.place, value)? {
                    false => Err(Stop::Pruned),
                    true => Ok(Some(Value::Undefined)),
                }
            }
            "__VERIFIER_atomic_begin" | "__VERIFIER_atomic_end"
                if self
                    .machine
                    .module
                    .function(name)
                    .is_some_and(|id| self.machine.function(id).is_defined()) =>
            {
                self.refuse(format!("the program defines {name} itself"))
            }
            "__VERIFIER_atomic_begin" => {
                self.machine.begin_section(state, self.thread);
                Ok(Some(Value::Undefined))
            }
            "__VERIFIER_atomic_end" => {
                let Some((_, depth)) = state.alone else {
                    return self.refuse("the end of an atomic section that has not begun");
                };
                state.alone = (depth > 1).then_some((self.thread as u8, depth - 1));
                Ok(Some(Value::Undefined))
            }
            "time" if self.pointer(state, 0)? != Pointer::NULL => {
                self.refuse("time with an argument that is not null")
            }
            _ if is_input(name) => match (input_width(name), kind) {
                (Some((width, signed)), Type::Integer(bits)) => {
                    self.assume(Assumption::Inputs);
                    let input = self.machine.take_input(width);
                    let cast = match (*bits < width, signed) {
                        (true, _) => Cast::Truncate,
                        (false, true) => Cast::SignExtend,
                        (false, false) => Cast::ZeroExtend,
                    };
                    let (from, flags) = (Type::Integer(width), Flags::default());
                    let value =
                        self.machine.convert(self.place, cast, &from, kind, input, flags)?;
                    Ok(Some(value))
                }
                _ => self.refuse(format!("{name} has no meaning here")),
            },
            "pthread_once" => self.once(state),
            "pthread_create" => self.create(state),
            "pthread_join" => self.join(state),
            "pthread_detach" => {
                let Value::Pointer(Pointer { base: Base::Thread(other), .. }) =
                    self.value(state, 0)?
                else {
                    return self.refuse("undefined: a thread is detached that is none");
                };
                let other = usize::from(other);
                let Some(detached) = state.threads[other].as_mut().map(Arc::make_mut) else {
                    return self.refuse("undefined: a thread is detached that is none");
                };
                if detached.detached {
                    return self.refuse("undefined: a thread is detached twice");
                }
                detached.detached = true;
                if matches!(detached.status, Status::Ended(_)) {
                    self.machine.remove(state, other);
                }
                code(0)
            }
            "pthread_exit" => {
                let value = self.value(state, 0)?;
                if self.machine.is_in_once(state, self.thread) {
                    return self.refuse("a thread that ends inside pthread_once");
                }
                if state.alone.is_some() {
                    return self.refuse("a thread that ends inside an atomic section");
                }
                self.machine.end(state, self.thread, value);
                Ok(None)
            }
            "pthread_self" => {
                Ok(Some(Value::Pointer(Pointer::to(Base::Thread(self.thread as u8)))))
            }
            "pthread_equal" => match (self.value(state, 0)?, self.value(state, 1)?) {
                (
                    Value::Pointer(Pointer { base: Base::Thread(a), .. }),
                    Value::Pointer(Pointer { base: Base::Thread(b), .. }),
                ) => code((a == b).into()),
                // a handle that was never set is no thread's
                (
                    Value::Pointer(Pointer { base: Base::Thread(_), .. }),
                    Value::Integer(0) | Value::Pointer(Pointer::NULL),
                )
                | (
                    Value::Integer(0) | Value::Pointer(Pointer::NULL),
                    Value::Pointer(Pointer { base: Base::Thread(_), .. }),
                ) => code(0),
                _ => self.refuse("a comparison of threads that are none"),
            },
            "sched_yield" | "pthread_yield" | "nanosleep" => code(0),
            "usleep" | "sleep" => {
                self.integer(state, 0)?;
                code(0)
            }
            "malloc" | "calloc" => self.allocate(state, name),
            "realloc" => self.reallocate(state),
            "free" => self.free(state),
            "putchar" | "fflush" | "srand" | "srandom" => Ok(Some(Value::Undefined)),
            // without a buffer: one that the program gives would be written by the library
            "setbuf" if self.pointer(state, 1)? == Pointer::NULL => Ok(Some(Value::Undefined)),
            _ if is_text(name) => self.text(state, name, kind, choice),
            _ if name.starts_with("pthread_key_") || name.ends_with("etspecific") => {
                self.specific(state, name)
            }
            _ => self.refuse(format!("the function {name} has no meaning here")),
        }
    }

    // ---- threads ----

    fn create(&self, state: &mut State) -> Step<Option<Value>> {
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

    fn join(&self, state: &mut State) -> Step<Option<Value>> {
        let Value::Pointer(Pointer { base: Base::Thread(other), .. }) = self.value(state, 0)?
        else {
            return self.refuse("undefined: a thread is joined that is none, or joined already");
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

    // ---- locks ----

    fn mutex(&self, state: &mut State, name: &str, choice: u32) -> Step<Option<Value>> {
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
                    _ => return self.refuse("a lock that is no mutex"),
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

    fn condition(&self, state: &mut State, name: &str, choice: u32) -> Step<Option<Value>> {
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
    fn lock(&self, state: &mut State, name: &str) -> Step<i32> {
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
                return self.refuse("undefined: a lock is taken by its writer again");
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
                    return self.refuse(
                        "undefined: a lock is given back by a thread that does not hold it",
                    );
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

    fn semaphore(&self, state: &mut State, name: &str, choice: u32) -> Step<i32> {
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

    fn barrier(&self, state: &mut State, name: &str, choice: u32) -> Step<Option<Value>> {
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

    // ---- memory and output ----

    fn allocate(&self, state: &mut State, name: &str) -> Step<Option<Value>> {
        let mut size = self.integer(state, 0)?;
        if name == "calloc" {
            size = size.saturating_mul(self.integer(state, 1)?);
        }
        if size == 0 || size > LARGEST_ALLOCATION.into() {
            return self.refuse(format!("an allocation of {size} bytes"));
        }
        self.assume(Assumption::MemoryIsAllocated);
        let mut object = Object::undefined(size as usize);
        if name == "calloc" {
            object.fill(0, size as usize, 0);
        }
        Ok(Some(self.new_memory(state, object)))
    }

    /// The old memory is no more, even where the C library would have left it in its place.
    fn reallocate(&self, state: &mut State) -> Step<Option<Value>> {
        let old = self.pointer(state, 0)?;
        let size = self.integer(state, 1)?;
        if size == 0 || size > LARGEST_ALLOCATION.into() {
            return self.refuse(format!("an allocation of {size} bytes"));
        }
        self.assume(Assumption::MemoryIsAllocated);
        let mut object = Object::undefined(size as usize);
        match old {
            Pointer::NULL => {}
            Pointer { base: base @ Base::Heap(_), offset: 0 } => {
                if let Some(before) = state.object(base) {
                    if before.has_sync() {
                        return self.refuse("realloc of memory with a lock in it");
                    }
                    object.paste(0, &before.slice(0, before.size().min(size as usize)));
                }
                self.free(state)?;
            }
            // what free says of it
            _ => return self.free(state),
        }
        Ok(Some(self.new_memory(state, object)))
    }

    fn new_memory(&self, state: &mut State, object: Object) -> Value {
        let object = Some(Arc::new(object));
        let free = state.heap.iter().position(Option::is_none);
        let at = free.unwrap_or(state.heap.len());
        match free {
            Some(at) => state.heap[at] = object,
            None => state.heap.push(object),
        }
        Value::Pointer(Pointer::to(Base::Heap(at as u32)))
    }

    /// Values that each thread has for itself under a key.
    fn specific(&self, state: &mut State, name: &str) -> Step<Option<Value>> {
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

    fn free(&self, state: &mut State) -> Step<Option<Value>> {
        match self.pointer(state, 0)? {
            Pointer::NULL => {}
            Pointer { base: Base::Heap(id), offset: 0 } => {
                if let Some(object) = &state.heap[id as usize] {
                    self.machine.check_locks(object, self.place)?;
                }
                state.heap[id as usize] = None;
                state.forget(|base| *base == Base::Heap(id));
            }
            Pointer { base: Base::Ended, .. } => {
                let what = "memory is freed that is no more";
                return Err(Stop::Violated(Kind::Access(what), self.place));
            }
            _ => {
                let what = "memory is freed that malloc did not give";
                return Err(Stop::Violated(Kind::Access(what), self.place));
            }
        }
        Ok(Some(Value::Undefined))
    }

    /// The length of a copy; others see the copy by what it accesses, which has to be known before.
    pub(super) fn length(&self, state: &State) -> Step<usize> {
        match self.value(state, 2)? {
            Value::Integer(length) => Ok(usize::try_from(length).unwrap_or(usize::MAX)),
            _ => self.refuse("a copy whose length is not known or depends on inputs"),
        }
    }

    /// C asks for an address inside or right behind an object even where no byte is accessed (C17
    /// 7.24.1, 2); compilers take it for not null.
    pub(super) fn valid(&self, state: &State, at: Pointer) -> Step<()> {
        let object = state.object(at.base).filter(|object| !object.dead);
        match object.is_some_and(|object| object.contains(at.offset, 0)) {
            true => Ok(()),
            false => self.refuse("undefined: no bytes of null or of what is no object"),
        }
    }

    fn intrinsic(&self, state: &mut State, name: &str) -> Step<Value> {
        let machine = self.machine;
        let family = name.split('.').next().unwrap_or_default();
        match family {
            "memcpy" | "memmove" => {
                let (to, from) = (self.pointer(state, 0)?, self.pointer(state, 1)?);
                let length = self.length(state)?;
                if length == 0 {
                    self.valid(state, from)?;
                    self.valid(state, to)?;
                    return Ok(Value::Undefined);
                }
                let source = machine.bounds(state, self.place, from, length, false)?;
                let target = machine.bounds(state, self.place, to, length, true)?;
                // an assignment of a structure to itself is a copy, too
                let overlaps = to.base == from.base
                    && (source != target || self.fields.is_none())
                    && source < target + length
                    && target < source + length;
                if overlaps && family == "memcpy" {
                    return self.refuse("undefined: a copy of memory that overlaps");
                }
                machine.note_lock(state, self.place, from, length, Use::Copy)?;
                let fields = self.fields.unwrap_or_default();
                machine.check_copy(state, self.place, (from, to), fields)?;
                let copy = state.object(from.base).map(|object| object.slice(source, length));
                if let (Some(copy), Some(object)) = (copy, state.object_mut(to.base)) {
                    object.paste(target, &copy);
                    for &(offset, length, tag) in fields {
                        if let Some(tag) = tag.filter(|_| !object.plain) {
                            object.set_effective(target + offset as usize, length as usize, tag);
                        }
                    }
                }
                Ok(Value::Undefined)
            }
            "memset" => {
                let to = self.pointer(state, 0)?;
                let byte = self.integer(state, 1)? as u8;
                let length = self.length(state)?;
                if length == 0 {
                    self.valid(state, to)?;
                } else {
                    let target = machine.bounds(state, self.place, to, length, true)?;
                    if let Some(object) = state.object_mut(to.base) {
                        object.fill(target, length, byte);
                    }
                }
                Ok(Value::Undefined)
            }
            "lifetime" => {
                let at = self.pointer(state, self.arguments.len().saturating_sub(1))?;
                let ends = name.starts_with("lifetime.end");
                let Some(object) = state.object(at.base).filter(|_| at.offset == 0) else {
                    return Ok(Value::Undefined);
                };
                // with `main`, the program ends
                let depth = machine.depth(state, self.thread);
                if ends && !(self.thread == 0 && depth == 1) {
                    machine.check_locks(object, self.place)?;
                }
                // nobody can ask for a private one any more
                let dies = ends && !object.private;
                let register = object.name.map(|(_, register)| register);
                if let Some(object) = state.object_mut(at.base) {
                    let size = object.size();
                    object.clear(0, size);
                    object.dead = dies;
                }
                // what points to it points to nothing, even if the variable comes to life again
                if dies {
                    state.forget(|base| *base == at.base);
                    if let Some(register) = register {
                        machine.top(state, self.thread).registers[register as usize] =
                            Value::Pointer(at);
                    }
                }
                Ok(Value::Undefined)
            }
            // all arguments in registers have been taken: the next lies in memory
            "va_start" => {
                let at = self.pointer(state, 0)?;
                let depth = machine.depth(state, self.thread);
                let function = machine.function(machine.top(state, self.thread).function);
                let copies = function.parameters.iter().filter(|p| p.by_value.is_some()).count();
                let (thread, frame) = (self.thread as u8, depth as u16 - 1);
                let base = Base::Local { thread, frame, local: copies as u16 };
                let field = |offset| Pointer { offset: at.offset + offset, ..at };
                let (word, place) = (Type::Integer(32), self.place);
                machine.store(state, place, field(0), &word, &Value::Integer(48))?;
                machine.store(state, place, field(4), &word, &Value::Integer(176))?;
                let memory = Value::Pointer(Pointer::to(base));
                machine.store(state, place, field(8), &Type::Pointer, &memory)?;
                machine.store(state, place, field(16), &Type::Pointer, &Value::Undefined)?;
                Ok(Value::Undefined)
            }
            "va_copy" => {
                let (to, from) = (self.pointer(state, 0)?, self.pointer(state, 1)?);
                let source = machine.bounds(state, self.place, from, 24, false)?;
                let target = machine.bounds(state, self.place, to, 24, true)?;
                let copy = state.object(from.base).map(|object| object.slice(source, 24));
                if let (Some(copy), Some(object)) = (copy, state.object_mut(to.base)) {
                    object.paste(target, &copy);
                }
                Ok(Value::Undefined)
            }
            "va_end" => Ok(Value::Undefined),
            "stacksave" => {
                let locals = machine.top(state, self.thread).locals.len();
                Ok(Value::Pointer(Pointer { base: Base::Number, offset: locals as i64 }))
            }
            "stackrestore" => {
                let saved = self.pointer(state, 0)?;
                let depth = state.threads[self.thread].as_ref().map_or(0, |t| t.frames.len());
                let frame = machine.top(state, self.thread);
                frame.locals.truncate(saved.offset as usize);
                let (owner, call) = (self.thread as u8, depth as u16 - 1);
                state.forget(|base| {
                    matches!(base, Base::Local { thread, frame, local }
                        if *thread == owner && *frame == call && i64::from(*local) >= saved.offset)
                });
                Ok(Value::Undefined)
            }
            "threadlocal" => match self.argument(0)?.value {
                Operand::Constant(Constant::Global(id)) => {
                    let before = &machine.module.globals[..id as usize];
                    let local = before.iter().filter(|global| global.thread_local).count() as u16;
                    let thread = self.thread as u8;
                    Ok(Value::Pointer(Pointer::to(Base::Local { thread, frame: OWN, local })))
                }
                _ => self.refuse("a thread-local variable that is not known"),
            },
            "expect" => self.value(state, 0),
            "fabs" | "fmuladd" => {
                let kind = &self.argument(0)?.kind;
                let float = |operation, values: &[u128]| {
                    let result = super::floats::compute(operation, kind, kind, values);
                    let Some(bits) = result else {
                        return self.refuse("floating point without a result that is defined");
                    };
                    Ok(bits)
                };
                let bits = |index| match self.value(state, index)? {
                    Value::Integer(bits) => Ok(bits),
                    _ => self.refuse("floating point of what is not known"),
                };
                let first = bits(0)?;
                // x86-64 has no fused multiplication in its base: a product, then a sum
                Ok(Value::Integer(match family {
                    "fabs" => float(FloatOperation::Absolute, &[first])?,
                    _ => {
                        let product = float(FloatOperation::Multiply, &[first, bits(1)?])?;
                        float(FloatOperation::Add, &[product, bits(2)?])?
                    }
                }))
            }
            "abs" | "bswap" | "ctpop" | "ctlz" | "cttz" | "smax" | "smin" | "umax" | "umin" => {
                let Type::Integer(bits) = self.argument(0)?.kind else {
                    return self.refuse(format!("the intrinsic {name}"));
                };
                let a = self.integer(state, 0)?;
                let second = || self.integer(state, 1);
                let zero_is_undefined = || Ok(a == 0 && second()? != 0);
                let greater = |b: u128| match family.starts_with('s') {
                    true => signed(a, bits) > signed(b, bits),
                    false => a > b,
                };
                Ok(Value::Integer(match family {
                    "abs" if a == 1 << (bits - 1) && second()? != 0 => {
                        return Err(Stop::Violated(Kind::Overflow, self.place));
                    }
                    "abs" => mask(signed(a, bits).unsigned_abs(), bits),
                    "bswap" => a.swap_bytes() >> (128 - bits),
                    "ctpop" => a.count_ones().into(),
                    "ctlz" | "cttz" if zero_is_undefined()? => {
                        return self.refuse("undefined: the first bit of zero");
                    }
                    "ctlz" => (a.leading_zeros() - (128 - bits)).into(),
                    "cttz" => a.trailing_zeros().min(bits).into(),
                    _ => {
                        let b = second()?;
                        if greater(b) == family.ends_with("max") { a } else { b }
                    }
                }))
            }
            "trap" | "debugtrap" => Err(Stop::Violated(Kind::Abort, self.place)),
            "sadd" | "uadd" | "ssub" | "usub" | "smul" | "umul"
                if name.contains(".with.overflow.") =>
            {
                let Type::Integer(bits @ 1..=64) = self.argument(0)?.kind else {
                    return self.refuse(format!("the intrinsic {name}"));
                };
                let (a, b) = (self.integer(state, 0)?, self.integer(state, 1)?);
                let (a, b) = match family.starts_with('s') {
                    true => (signed(a, bits), signed(b, bits)),
                    false => (a as i128, b as i128),
                };
                let exact = match &family[1..] {
                    "add" => a.checked_add(b),
                    "sub" => a.checked_sub(b),
                    _ => a.checked_mul(b),
                };
                // a product of two words of 64 bits can leave 128 bits only if it is unsigned
                let Some(exact) = exact else {
                    return self.refuse("a product of more than 127 bits");
                };
                let result = mask(exact as u128, bits);
                let right = match family.starts_with('s') {
                    true => signed(result, bits) == exact,
                    false => exact >= 0 && result as i128 == exact,
                };
                let fields = [Value::Integer(result), Value::Integer((!right).into())];
                Ok(Value::Aggregate(fields.into()))
            }
            _ => self.refuse(format!("the intrinsic llvm.{name} has no meaning here")),
        }
    }
}
