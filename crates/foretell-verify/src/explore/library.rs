//! The meaning of functions that are not the program's own: threads, locks, memory, output, and
//! SV-COMP's functions. A function that is not here is refused.
//!
//! POSIX leaves things open; a proof must hold for all of them. A wait for a condition may end at any
//! time, `pthread_cond_signal` wakes any one of those who wait, any thread may be the one to which a
//! barrier gives its special result. Creating a thread and allocating memory are assumed to succeed.

mod heap;
mod intrinsics;
mod locks;
mod objects;
mod threads;
mod waiting;

use std::sync::Arc;

use super::machine::{Kind, Machine, Step, Stop};
use super::memory::{Base, Pointer, Value};
use super::state::{State, Status};
use super::texts::{is_output, is_text};
use crate::certificate::Assumption;
use crate::ir::{Argument, Cast, Copied, Flags, FunctionId, Instruction, Op, Place, Type};

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
            return self.refuse("a call whose arguments have other types than expected");
        }
        self.machine.pointer(state, self.thread, self.place, &argument.value)
    }

    pub(super) fn integer(&self, state: &State, index: usize) -> Step<u128> {
        let argument = self.argument(index)?;
        let Type::Integer(bits) = argument.kind else {
            return self.refuse("a call whose arguments have other types than expected");
        };
        self.machine.integer(state, self.thread, self.place, &argument.value, bits)
    }

    fn value(&self, state: &State, index: usize) -> Step<Value> {
        let argument = self.argument(index)?;
        let value = self.machine.operand(state, self.thread, &argument.value, &argument.kind);
        value.or_else(|why| self.refuse(why))
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
                    return self.refuse("undefined: something is detached that is not a thread");
                };
                let other = usize::from(other);
                let Some(detached) = state.threads[other].as_mut().map(Arc::make_mut) else {
                    return self.refuse("undefined: something is detached that is not a thread");
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
                _ => self.refuse("a comparison of something that is not a thread"),
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
}
