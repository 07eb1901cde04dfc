//! Functions of the program: calls, arguments, returns, and threads that start and end.

use std::sync::Arc;

use super::execute::forget;
use super::{Machine, Step, Stop};
use crate::certificate::Assumption;
use crate::explore::library;
use crate::explore::memory::{Base, Object, Pointer, Value};
use crate::explore::promises::Use;
use crate::explore::state::{OWN, State, Status, Thread};
use crate::ir::{Argument, FunctionId, Op, Operand, Place, Promises, Register, Type};
use crate::limits::{DEEPEST_CALLS, MOST_THREADS};

impl<'m> Machine<'m> {
    /// Checks what the function and the call of it promise of its result.
    pub(super) fn check_result(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        value: &Value,
    ) -> Step<()> {
        let Some(running) = state.threads[thread].as_ref() else { return Ok(()) };
        let [.., caller, callee] = &running.frames[..] else { return Ok(()) };
        let block = &self.function(caller.function).blocks[caller.block as usize];
        let call = caller.at.checked_sub(1).map(|at| &block.instructions[at as usize].op);
        let function = self.function(callee.function);
        let of_call = match call {
            Some(Op::Call { promises, .. }) => *promises,
            _ => Promises::default(),
        };
        let what = format!("the result of {}", function.name);
        self.check_value(state, place, value, function.promises.and(of_call), &what)
    }

    /// Bytes of all locals of a thread.
    pub(super) fn stack(&self, state: &State, thread: usize) -> u128 {
        let frames = state.threads[thread].iter().flat_map(|thread| &thread.frames);
        frames.flat_map(|frame| &frame.locals).map(|local| local.size() as u128).sum()
    }

    /// Calls a function of the program; the caller goes on behind the call.
    pub(in crate::explore) fn enter(
        &self,
        state: &mut State,
        thread: usize,
        place: Place,
        id: FunctionId,
        values: Vec<Value>,
        result: Option<Register>,
    ) -> Step<()> {
        let depth = state.threads[thread].as_ref().map_or(0, |thread| thread.frames.len());
        if depth >= DEEPEST_CALLS {
            return self.refuse(place, format!("more than {DEEPEST_CALLS} nested calls"));
        }
        let mut frame = self.frame(id, &values, result);
        for (parameter, value) in self.function(id).parameters.iter().zip(&values) {
            let Some(kind) = &parameter.by_value else { continue };
            let (Value::Pointer(from), Some(size)) = (value, kind.size()) else {
                return self.refuse(place, "a copy of an undefined argument");
            };
            let offset = self.bounds(state, place, *from, size as usize, false)?;
            self.note_lock(state, place, *from, size as usize, Use::Copy)?;
            let copy = state.object(from.base).map(|object| object.slice(offset, size as usize));
            let mut copy = copy.unwrap_or_else(|| Object::undefined(size as usize));
            copy.name = Some((id, parameter.register));
            copy.align = kind.align().max(8) as u32;
            copy.plain = kind.is_declared();
            frame.registers[parameter.register as usize] =
                Value::Pointer(Pointer::to(Base::Local {
                    thread: thread as u8,
                    frame: depth as u16,
                    local: frame.locals.len() as u16,
                }));
            frame.locals.push(copy);
        }
        if library::is_atomic(&self.function(id).name) {
            self.begin_section(state, thread);
        }
        self.top(state, thread).at += 1;
        if let Some(thread) = state.threads[thread].as_mut() {
            Arc::make_mut(thread).frames.push(frame);
        }
        Ok(())
    }

    /// Arguments that the function just called does not name lie in memory one behind the other, each
    /// in eight bytes or a multiple, as x86-64 has it for those that do not fit into registers. They
    /// are the local behind the copies of parameters.
    pub(super) fn further_arguments(
        &self,
        state: &mut State,
        thread: usize,
        place: Place,
        id: FunctionId,
        arguments: &[Argument],
    ) -> Step<()> {
        let caller = state.threads[thread].as_ref().map_or(0, |t| t.frames.len()) - 2;
        let mut parts = Vec::new();
        for argument in arguments {
            let value = match &argument.value {
                Operand::Register(register) => {
                    let frames = state.threads[thread].as_ref().map(|thread| &thread.frames);
                    frames.map_or(Value::Undefined, |f| {
                        f[caller].registers[*register as usize].clone()
                    })
                }
                Operand::Constant(constant) => self
                    .constant(constant, &argument.kind)
                    .or_else(|why| self.refuse(place, why))?,
            };
            parts.push(match (&argument.by_value, &value) {
                (None, _) => {
                    let size = self.access_size(place, &argument.kind)?;
                    if size > 8 {
                        return self.refuse(place, "a further argument of more than 64 bits");
                    }
                    let mut part = Object::undefined(8);
                    part.store(0, size, &value);
                    part
                }
                (Some(kind), Value::Pointer(from)) if kind.size().is_some() => {
                    let size = kind.size().unwrap_or(0) as usize;
                    let offset = self.bounds(state, place, *from, size, false)?;
                    let mut part = Object::undefined(size.next_multiple_of(8));
                    if let Some(object) = state.object(from.base) {
                        part.paste(0, &object.slice(offset, size));
                    }
                    part
                }
                _ => return self.refuse(place, "a further argument that is not known"),
            });
        }
        let mut all = Object::undefined(parts.iter().map(Object::size).sum());
        let mut at = 0;
        for part in &parts {
            all.paste(at, part);
            at += part.size();
        }
        all.name = Some((id, 0));
        self.top(state, thread).locals.push(all);
        Ok(())
    }

    /// Returns from a function; from the first one, the thread ends, and with `main` the program.
    pub(super) fn leave(&self, state: &mut State, thread: usize, value: Value) -> Step<()> {
        let Some(running) = state.threads[thread].as_mut().map(Arc::make_mut) else {
            return Ok(());
        };
        if running.frames.len() == 1 {
            let others = state.running().any(|other| other != thread);
            let running = state.threads[thread].as_mut().map(Arc::make_mut);
            return match (thread, running) {
                // its variables are no more, and what others do until the program has ended counts
                (0, Some(running))
                    if others && running.frames[0].locals.iter().any(|l| !l.private) =>
                {
                    running.frames.clear();
                    running.status = Status::Exits;
                    state.forget(|base| {
                        matches!(base, Base::Local { thread: 0, frame, .. } if *frame != OWN)
                    });
                    Ok(())
                }
                (0, _) => Err(Stop::Over),
                _ => {
                    self.end(state, thread, value);
                    Ok(())
                }
            };
        }
        let Some(frame) = running.frames.pop() else { return Ok(()) };
        if library::is_atomic(&self.function(frame.function).name) {
            state.alone = state.alone.and_then(|(by, depth)| (depth > 1).then(|| (by, depth - 1)));
        }
        let depth = running.frames.len() as u16;
        let caller = running.frames.last_mut();
        if let (Some(register), Some(caller)) = (frame.result, caller) {
            caller.registers[register as usize] = value;
            // nobody may want it
            let at = caller.at - 1;
            if let Some(dead) = self.lives[caller.function as usize].behind(caller.block, at) {
                let registers = dead.registers.clone();
                forget(caller, &registers, &[]);
            }
        }
        if frame.locals.iter().any(|local| !local.private) {
            state.forget(|base| {
                matches!(base, Base::Local { thread: owner, frame, .. }
                    if usize::from(*owner) == thread && *frame == depth)
            });
        }
        Ok(())
    }

    /// Memory must not end while somebody holds a lock in it.
    pub(in crate::explore) fn check_locks(&self, object: &Object, place: Place) -> Step<()> {
        match object.has_locked() {
            true => self.refuse(place, "undefined: the memory of a lock ends while it is held"),
            false => Ok(()),
        }
    }

    /// From here on nobody else moves until the section ends.
    pub(in crate::explore) fn begin_section(&self, state: &mut State, thread: usize) {
        self.assumed.borrow_mut().insert(Assumption::AtomicSections);
        let depth = state.alone.map_or(0, |(_, depth)| depth);
        state.alone = Some((thread as u8, depth + 1));
    }

    /// The thread has ended.
    pub(in crate::explore) fn end(&self, state: &mut State, thread: usize, value: Value) {
        let Some(running) = state.threads[thread].as_mut().map(Arc::make_mut) else { return };
        running.frames.clear();
        running.own.clear();
        running.specific.clear();
        running.status = Status::Ended(value);
        let detached = running.detached;
        state.forget(
            |base| matches!(base, Base::Local { thread: owner, .. } if usize::from(*owner) == thread),
        );
        if detached {
            self.remove(state, thread);
        }
    }

    /// Nobody can ask for the thread any more.
    pub(in crate::explore) fn remove(&self, state: &mut State, thread: usize) {
        state.threads[thread] = None;
        state.forget(|base| *base == Base::Thread(thread as u8));
    }

    /// A new thread; its place.
    pub(in crate::explore) fn start(
        &self,
        state: &mut State,
        place: Place,
        id: FunctionId,
        argument: Value,
    ) -> Step<usize> {
        let function = self.function(id);
        let fits = function.is_defined()
            && !function.variadic
            && function.parameters.len() <= 1
            && function.parameters.iter().all(|p| p.kind == Type::Pointer && p.by_value.is_none())
            && matches!(function.result, Type::Pointer | Type::Void);
        if !fits || self.is_library(id) || library::is_atomic(&function.name) {
            return self.refuse(place, format!("a thread whose function is {}", function.name));
        }
        let shape = self.module.shapes.get(id as usize);
        if shape.is_some_and(|shape| shape.kind != "void *(void *)") {
            self.assumed.borrow_mut().insert(Assumption::StartFunctions);
        }
        // a new thread does not own what an ended one has left locked
        let free = (0..state.threads.len())
            .find(|&place| state.threads[place].is_none() && !state.holds_lock(place));
        let at = free.unwrap_or(state.threads.len());
        if at >= MOST_THREADS {
            return self.refuse(place, format!("more than {MOST_THREADS} threads at a time"));
        }
        let arguments = vec![argument; function.parameters.len()];
        let others_promise = function.no_effect
            || function.promises != Promises::default()
            || function.parameters.iter().any(|p| p.promises.alone);
        if others_promise {
            let what = "restrict, or with an attribute that is not checked";
            return self
                .refuse(place, format!("a thread whose function is {}: {what}", function.name));
        }
        for (parameter, value) in function.parameters.iter().zip(&arguments) {
            // the argument of a thread that asks for none need not have a value
            let promises = Promises { defined: false, ..parameter.promises };
            self.check_value(state, place, value, promises, "the argument of a thread")?;
        }
        let frame = self.frame(id, &arguments, None);
        let own = self.own(state);
        let thread = Thread {
            frames: vec![frame],
            status: Status::Runs,
            detached: false,
            own,
            specific: Vec::new(),
        };
        match free {
            Some(at) => state.threads[at] = Some(Arc::new(thread)),
            None => state.threads.push(Some(Arc::new(thread))),
        }
        // what nobody sees of it is done at once, unless it ends there: then that is its own step
        let before = state.clone();
        if self.unseen(state, at).is_err() {
            *state = before;
            if let Some(thread) = state.threads[at].as_mut() {
                Arc::make_mut(thread).status = Status::Begins;
            }
        }
        Ok(at)
    }
}

/// May a function of one type be called by the other? One without a prototype fits whatever the IR
/// fits.
pub(super) fn are_compatible(a: &str, b: &str) -> bool {
    let parts = |kind: &str| kind.split_once(" (").map(|(r, p)| (r.to_owned(), p.to_owned()));
    let (Some((result, a_rest)), Some((other, b_rest))) = (parts(a), parts(b)) else {
        return a == b;
    };
    result == other && (a_rest == b_rest || a_rest == ")" || b_rest == ")")
}
