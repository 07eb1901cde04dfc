//! States of a program: memory and threads.

use std::sync::Arc;

use super::memory::{Base, Object, Pointer, Value};
use super::terms::Symbol;
use crate::ir::{FunctionId, Register};

/// The place of a call that stands for a thread's own copies of thread-local variables.
pub const OWN: u16 = u16::MAX;

/// A state. Parts are shared with other states until they change.
#[derive(Clone, Debug)]
pub struct State {
    /// Variables of static lifetime.
    pub globals: Vec<Arc<Object>>,
    /// Memory of `malloc`; freed memory is absent.
    pub heap: Vec<Option<Arc<Object>>>,
    /// Threads; the first is that of `main`. A place is empty when its thread has ended and nobody
    /// can ask for it any more.
    pub threads: Vec<Option<Arc<Thread>>>,
    /// The thread that is inside an atomic section, and how deep.
    pub alone: Option<(u8, u32)>,
    /// Keys of `pthread_key_create` are numbered below this.
    pub keys: u8,
    /// A bit for each key that was deleted.
    pub deleted_keys: u64,
    /// Inputs are numbered below this.
    pub inputs: u32,
    /// What is known about inputs: these hold, and they can hold together.
    pub path: Arc<[Symbol]>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The calls it is in, the outermost first.
    pub frames: Vec<Frame>,
    /// What it is about to do beside its next instruction.
    pub status: Status,
    /// Nobody will join it.
    pub detached: bool,
    /// Its own copies of thread-local variables, in the order of the globals.
    pub own: Vec<Object>,
    /// What `pthread_setspecific` has set, by key; null is absent.
    pub specific: Vec<(u8, Value)>,
}

/// What a thread is about to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// To begin.
    Begins,
    /// Its next instruction.
    Runs,
    /// To wake up from waiting for a condition, and to take the mutex again.
    Waits {
        /// The condition.
        condition: Pointer,
        /// The mutex.
        mutex: Pointer,
        /// How often it held the mutex.
        count: u32,
        /// A signal was sent to it.
        signalled: bool,
        /// The wait ends by itself in time.
        timed: bool,
    },
    /// To leave a barrier; nobody can until all are there.
    AtBarrier(Pointer),
    /// To leave a barrier, with this result.
    Leaves(i32),
    /// It has created a thread: to write its handle, which the new thread may ask for earlier.
    Creates {
        /// Where the handle goes.
        handle: Pointer,
        /// The new thread; as a pointer, because it may end and be forgotten meanwhile.
        created: Pointer,
    },
    /// `main` has returned: to end the program.
    Exits,
    /// Nothing: it has ended with this result.
    Ended(Value),
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Of this function.
    pub function: FunctionId,
    /// The block
    pub block: u32,
    /// and the instruction that is next.
    pub at: u32,
    /// Values of the registers; undefined when nobody will read them.
    pub registers: Vec<Value>,
    /// Its locals.
    pub locals: Vec<Object>,
    /// Where the caller wants the result.
    pub result: Option<Register>,
}

impl State {
    /// The object; `None` if there is none.
    pub fn object(&self, base: Base) -> Option<&Object> {
        match base {
            Base::Global(id) => self.globals.get(id as usize).map(|object| &**object),
            Base::Heap(id) => self.heap.get(id as usize)?.as_deref(),
            Base::Local { thread, frame, local } => {
                let thread = self.threads.get(usize::from(thread))?.as_ref()?;
                match frame {
                    OWN => thread.own.get(usize::from(local)),
                    frame => thread.frames.get(usize::from(frame))?.locals.get(usize::from(local)),
                }
            }
            Base::Number | Base::Function(_) | Base::Thread(_) | Base::Ended => None,
        }
    }

    /// The object, to change it.
    pub fn object_mut(&mut self, base: Base) -> Option<&mut Object> {
        match base {
            Base::Global(id) => self.globals.get_mut(id as usize).map(Arc::make_mut),
            Base::Heap(id) => self.heap.get_mut(id as usize)?.as_mut().map(Arc::make_mut),
            Base::Local { thread, frame, local } => {
                let thread = self.threads.get_mut(usize::from(thread))?.as_mut()?;
                let thread = Arc::make_mut(thread);
                match frame {
                    OWN => thread.own.get_mut(usize::from(local)),
                    frame => {
                        let frame = thread.frames.get_mut(usize::from(frame))?;
                        frame.locals.get_mut(usize::from(local))
                    }
                }
            }
            Base::Number | Base::Function(_) | Base::Thread(_) | Base::Ended => None,
        }
    }

    /// Threads that have not ended.
    pub fn running(&self) -> impl Iterator<Item = usize> + '_ {
        self.threads.iter().enumerate().filter_map(|(index, thread)| {
            let thread = thread.as_ref()?;
            (!matches!(thread.status, Status::Ended(_))).then_some(index)
        })
    }

    /// Does somebody who is no more, or was there before, hold a lock under this number?
    pub fn holds_lock(&self, thread: usize) -> bool {
        let memory = self.globals.iter().chain(self.heap.iter().flatten());
        let threads = self.threads.iter().flatten();
        let locals = threads.flat_map(|thread| {
            thread.own.iter().chain(thread.frames.iter().flat_map(|frame| &frame.locals))
        });
        memory.map(|object| &**object).chain(locals).any(|object| object.is_held_by(thread as u8))
    }

    /// Can a thread other than this one, now or later without its help, come to the object?
    pub fn others_reach(&self, thread: usize, target: Base) -> bool {
        let mut queue: Vec<Base> = Vec::new();
        let mut seen: Vec<Base> = Vec::new();
        let mut found = false;
        let mut look = |pointer: &Pointer, queue: &mut Vec<Base>| {
            found |= pointer.base == target;
            if matches!(pointer.base, Base::Heap(_) | Base::Local { .. })
                && !seen.contains(&pointer.base)
            {
                seen.push(pointer.base);
                queue.push(pointer.base);
            }
            found
        };
        for object in &self.globals {
            for pointer in object.pointers() {
                look(pointer, &mut queue);
            }
        }
        for (index, other) in self.threads.iter().enumerate() {
            if let Some(other) = other
                && index != thread
            {
                other.any_pointer(&mut |pointer| {
                    look(pointer, &mut queue);
                    false
                });
            }
        }
        while let Some(base) = queue.pop() {
            for pointer in self.object(base).into_iter().flat_map(Object::pointers) {
                look(pointer, &mut queue);
            }
        }
        let mut nothing = Vec::new();
        look(&Pointer::NULL, &mut nothing)
    }

    /// Whatever points to something for which this is true points to nothing from now on.
    pub fn forget(&mut self, is: impl Fn(&Base) -> bool) {
        self.change_pointers(
            &mut |pointer| {
                if is(&pointer.base) {
                    *pointer = Pointer::to(Base::Ended);
                }
            },
            &|pointer| is(&pointer.base),
        );
    }

    /// Changes pointers; only parts that have one of which `wanted` is true are touched.
    fn change_pointers(
        &mut self,
        change: &mut dyn FnMut(&mut Pointer),
        wanted: &dyn Fn(&Pointer) -> bool,
    ) {
        let heap = self.heap.iter_mut().flatten();
        for object in self.globals.iter_mut().chain(heap) {
            if object.pointers().any(wanted) {
                Arc::make_mut(object).pointers_mut().for_each(&mut *change);
            }
        }
        for thread in self.threads.iter_mut().flatten() {
            if thread.any_pointer(&mut |pointer| wanted(pointer)) {
                Arc::make_mut(thread).change_pointers(change);
            }
        }
    }

    /// Looks at every value that depends on inputs, in an order that only the state decides.
    pub fn visit_symbols(&self, visit: &mut dyn FnMut(Symbol)) {
        for object in self.globals.iter().chain(self.heap.iter().flatten()) {
            object.symbols().for_each(&mut *visit);
        }
        for thread in self.threads.iter().flatten() {
            if let Status::Ended(value) = &thread.status {
                value.visit_symbols(visit);
            }
            thread.own.iter().flat_map(Object::symbols).for_each(&mut *visit);
            thread.specific.iter().for_each(|(_, value)| value.visit_symbols(visit));
            for frame in &thread.frames {
                frame.registers.iter().for_each(|value| value.visit_symbols(visit));
                frame.locals.iter().flat_map(Object::symbols).for_each(&mut *visit);
            }
        }
    }

    /// Changes every value that depends on inputs.
    pub fn change_symbols(&mut self, change: &mut dyn FnMut(&mut Symbol)) {
        for object in self.globals.iter_mut().chain(self.heap.iter_mut().flatten()) {
            if object.symbols().next().is_some() {
                Arc::make_mut(object).symbols_mut().for_each(&mut *change);
            }
        }
        for thread in self.threads.iter_mut().flatten() {
            let thread = Arc::make_mut(thread);
            if let Status::Ended(value) = &mut thread.status {
                value.change_symbols(change);
            }
            for (_, value) in &mut thread.specific {
                value.change_symbols(change);
            }
            for own in &mut thread.own {
                own.symbols_mut().for_each(&mut *change);
            }
            for frame in &mut thread.frames {
                frame.registers.iter_mut().for_each(|value| value.change_symbols(change));
                for local in &mut frame.locals {
                    local.symbols_mut().for_each(&mut *change);
                }
            }
        }
    }

    /// The same state with memory of `malloc` numbered in the order in which it is come to, and
    /// without what nobody can come to: states that differ in nothing else are one.
    pub fn canonical(mut self) -> Self {
        if self.heap.is_empty() {
            return self;
        }
        let mut order: Vec<u32> = Vec::new();
        let mut visit = |pointer: &Pointer| {
            if let Base::Heap(id) = pointer.base
                && !order.contains(&id)
            {
                order.push(id);
            }
        };
        for object in &self.globals {
            object.pointers().for_each(&mut visit);
        }
        for thread in self.threads.iter().flatten() {
            thread.any_pointer(&mut |pointer| {
                visit(pointer);
                false
            });
        }
        let mut at = 0;
        while at < order.len() {
            let object = self.heap[order[at] as usize].clone();
            for pointer in object.iter().flat_map(|object| object.pointers()) {
                if let Base::Heap(id) = pointer.base
                    && !order.contains(&id)
                {
                    order.push(id);
                }
            }
            at += 1;
        }
        let same = order.iter().enumerate().all(|(new, &old)| new as u32 == old);
        if same && order.len() == self.heap.len() {
            return self;
        }
        self.heap = order.iter().map(|&old| self.heap[old as usize].clone()).collect();
        self.change_pointers(
            &mut |pointer| {
                if let Base::Heap(old) = pointer.base
                    && let Some(new) = order.iter().position(|&id| id == old)
                {
                    pointer.base = Base::Heap(new as u32);
                }
            },
            &|pointer| matches!(pointer.base, Base::Heap(_)),
        );
        self
    }
}

impl Thread {
    fn any_pointer(&self, is: &mut dyn FnMut(&Pointer) -> bool) -> bool {
        let in_status = match &self.status {
            Status::Waits { condition, mutex, .. } => is(condition) || is(mutex),
            Status::Creates { handle, created } => is(handle) || is(created),
            Status::AtBarrier(barrier) => is(barrier),
            Status::Ended(value) => value.any_pointer(is),
            Status::Begins | Status::Runs | Status::Leaves(_) | Status::Exits => false,
        };
        in_status
            || self.specific.iter().any(|(_, value)| value.any_pointer(is))
            || self.own.iter().any(|own| own.pointers().any(&mut *is))
            || self.frames.iter().any(|frame| {
                frame.registers.iter().any(|value| value.any_pointer(is))
                    || frame.locals.iter().any(|local| local.pointers().any(&mut *is))
            })
    }

    fn change_pointers(&mut self, change: &mut dyn FnMut(&mut Pointer)) {
        match &mut self.status {
            Status::Waits { condition, mutex, .. } => {
                change(condition);
                change(mutex);
            }
            Status::Creates { handle, created } => {
                change(handle);
                change(created);
            }
            Status::AtBarrier(barrier) => change(barrier),
            Status::Ended(value) => value.change_pointers(change),
            Status::Begins | Status::Runs | Status::Leaves(_) | Status::Exits => {}
        }
        for (_, value) in &mut self.specific {
            value.change_pointers(change);
        }
        for own in &mut self.own {
            own.pointers_mut().for_each(&mut *change);
        }
        for frame in &mut self.frames {
            for value in &mut frame.registers {
                value.change_pointers(change);
            }
            for local in &mut frame.locals {
                local.pointers_mut().for_each(&mut *change);
            }
        }
    }
}
