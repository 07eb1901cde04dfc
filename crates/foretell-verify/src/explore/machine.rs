//! The meaning of instructions: one thread takes a step.
//!
//! A *step* is one operation that other threads can see, and then what follows it unseen, up to the
//! next operation that they can. Unseen are computations and accesses of memory that no other thread
//! can come to ([`State::others_reach`]): they commute with everything that others do before this
//! thread is seen again, so no interleaving is lost. Every operation is otherwise a step of its own,
//! among them the end of a thread and the end of the program.
//!
//! What C or LLVM leaves undefined is a violation where a run of the program shows it (signed
//! overflow, division by zero, accesses outside objects) and a refusal elsewhere; it is never taken
//! for impossible. What only optimised code shows is in `promises` and `progress`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::inputs::Inputs;
use super::liveness::Lives;
use super::memory::{Base, Object, Pointer, Value};
use super::order::{Open, Orders, orders};
use super::promises::{Declared, Part, Seen, Use};
use super::state::{Frame, OWN, State, Status, Thread};
use crate::certificate::Assumption;
use crate::ir::{
    Argument, Arithmetic, Cast, Change, Comparison, Constant, Flags, Function, FunctionId,
    Instruction, Manner, Module, Op, Operand, Order, Place, Promises, Register, Type, files, mask,
    signed,
};
use crate::limits::{DEEPEST_CALLS, LARGEST_ALLOCATION, LONGEST_STEP, MOST_LOCALS, MOST_THREADS};

/// Why a step does not end in another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A property is violated.
    Violated(Kind, Place),
    /// It has no meaning here.
    Refused(Place, String),
    /// An assumption of the program does not hold: this execution is none.
    Pruned,
    /// The program is over.
    Over,
}

/// What is violated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An assertion fails.
    Assertion,
    /// `reach_error` is called.
    Error,
    /// The program calls `abort` or traps.
    Abort,
    /// Signed arithmetic leaves its type.
    Overflow,
    /// A division by zero, or of the smallest number by -1.
    Division,
    /// An index outside its array.
    Index,
    /// An access outside of every object; what is wrong with it.
    Access(&'static str),
    /// Nobody can go on.
    Deadlock,
    /// Some threads can never go on, whatever the others do.
    Circle,
}

impl Kind {
    /// What never happens, as SV-COMP writes its properties; it has none for a division by zero.
    pub fn specification(&self) -> &'static str {
        match self {
            Kind::Assertion | Kind::Error => "! call(reach_error())",
            Kind::Abort => "! call(abort())",
            Kind::Overflow => "! overflow",
            Kind::Division => "! division-by-zero",
            Kind::Access(what) if what.starts_with("memory is freed") => "valid-free",
            Kind::Index | Kind::Access(_) => "valid-deref",
            Kind::Deadlock | Kind::Circle => "! deadlock",
        }
    }

    /// In words.
    pub fn show(&self) -> String {
        match self {
            Kind::Assertion => "the assertion fails".into(),
            Kind::Error => "reach_error() is called".into(),
            Kind::Abort => "the program aborts".into(),
            Kind::Overflow => "signed overflow".into(),
            Kind::Division => "division by zero, or its result leaves the type".into(),
            Kind::Index => "index outside the array".into(),
            Kind::Access(what) => (*what).into(),
            Kind::Deadlock => "deadlock: no thread can go on".into(),
            Kind::Circle => {
                "deadlock: threads wait for one another for ever, while others can go on".into()
            }
        }
    }
}

/// Bytes of a local that counts: smaller ones never fill a stack, as few as there can be.
const LARGE: u64 = 1 << 10;

/// Executes instructions.
pub struct Machine<'m> {
    /// The program.
    pub module: &'m Module,
    lives: Vec<Lives>,
    /// Signals are kept until they are received: needed to see that nobody can go on.
    pub signals: bool,
    /// `abort` ends the execution and violates nothing.
    pub quiet_abort: bool,
    /// An atomic operation weaker than sequentially consistent was executed here.
    pub weaker: Cell<Option<Place>>,
    /// Something was executed here whose operands C evaluates in any order, and it matters.
    pub open_order: Cell<Option<Place>>,
    /// A pointer to what has ended was compared here.
    pub ended: Cell<Option<Place>>,
    orders: Vec<Orders>,
    /// String literals that the program names at several places: one object or several.
    ambiguous: HashSet<Base>,
    /// String literals that are the name of the source file.
    file_names: HashSet<u32>,
    /// What had to be assumed.
    pub assumed: RefCell<BTreeSet<Assumption>>,
    /// By which types declared objects were accessed, in whatever execution.
    pub(super) types: RefCell<HashMap<Declared, HashSet<Seen>>>,
    /// Parts of declared objects that were locks, and that were copied, in whatever execution.
    pub(super) locks: RefCell<HashSet<Part>>,
    pub(super) copies: RefCell<HashSet<Part>>,
    /// What declared objects hold.
    pub(super) contents: HashMap<Declared, &'m Type>,
    /// The step did something that others than threads of the program can see, or synchronises.
    pub(super) loud: Cell<bool>,
    /// The program asks for inputs.
    pub has_inputs: bool,
    /// Inputs and what was decided about them.
    pub(super) inputs: RefCell<Inputs>,
}

/// A result, or why there is none.
pub type Step<T> = Result<T, Stop>;

/// An access that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub at: Pointer,
    /// Bytes.
    pub length: usize,
    /// Writes.
    pub write: bool,
    /// Atomic.
    pub atomic: bool,
    /// In the source.
    pub place: Place,
}

impl<'m> Machine<'m> {
    /// A machine for a program.
    pub fn new(module: &'m Module, signals: bool) -> Self {
        let functions = || module.functions.iter();
        let lives: Vec<Lives> = functions().map(|f| Lives::of(module, f, HashMap::new())).collect();
        let orders = orders(module, &lives);
        let lives = functions().zip(&orders).map(|(f, o)| Lives::of(module, f, o.needed(f)));
        let lives = lives.collect();
        Self {
            module,
            orders,
            ambiguous: ambiguous(module),
            file_names: file_names(module),
            open_order: Cell::new(None),
            ended: Cell::new(None),
            lives,
            signals,
            quiet_abort: module.speaks_sv_comp(),
            weaker: Cell::new(None),
            assumed: RefCell::new(BTreeSet::new()),
            types: RefCell::default(),
            locks: RefCell::default(),
            copies: RefCell::default(),
            contents: contents(module),
            loud: Cell::new(false),
            has_inputs: module
                .functions
                .iter()
                .any(|f| !f.is_defined() && super::library::is_input(&f.name)),
            inputs: RefCell::default(),
        }
    }

    /// The state in which `main` begins.
    pub fn first(&self) -> Step<State> {
        let refuse = |what: String| Stop::Refused(Place::default(), what);
        let mut globals = Vec::new();
        for global in &self.module.globals {
            let size = match (global.content.size(), &global.initial) {
                (Some(size), _) => size,
                (None, None) => 0,
                (None, Some(_)) => {
                    let shown = global.content.show();
                    return Err(refuse(format!(
                        "the variable {}: {shown} has no size",
                        global.name
                    )));
                }
            };
            let mut object = Object::undefined(size as usize);
            object.padding = global.padding.clone();
            // what `__FILE__` says depends on how the file is compiled: nobody knows it
            let is_file = self.file_names.contains(&(globals.len() as u32));
            if let Some(initial) = global.initial.as_ref().filter(|_| !is_file) {
                self.initialise(&mut object, 0, &global.content, initial)
                    .map_err(|why| refuse(format!("the variable {}: {why}", global.name)))?;
            }
            object.constant = global.constant;
            object.align = global.align as u32;
            object.plain = global.content.is_declared();
            globals.push(Arc::new(object));
        }
        let Some(main) = self.module.function("main") else {
            return Err(refuse("there is no main".into()));
        };
        let function = self.function(main);
        if !function.is_defined() || function.variadic {
            return Err(refuse("there is no main".into()));
        }
        // a command line of the program's name only; what the name is, is not known
        let (mut arguments, mut heap) = (Vec::new(), Vec::new());
        let kinds: Vec<&Type> = function.parameters.iter().map(|p| &p.kind).collect();
        match kinds[..] {
            [] => {}
            [Type::Integer(32)] | [Type::Integer(32), Type::Pointer] => {
                let mut words = Object::undefined(16);
                words.store(0, 8, &Value::Pointer(Pointer::to(Base::Heap(1))));
                words.store(8, 8, &Value::Integer(0));
                heap = vec![Some(Arc::new(words)), Some(Arc::new(Object::undefined(1)))];
                arguments = vec![Value::Integer(1), Value::Pointer(Pointer::to(Base::Heap(0)))];
                self.assumed.borrow_mut().insert(Assumption::NoArguments);
            }
            _ => return Err(refuse("a main with other parameters than argc and argv".into())),
        }
        let mut state = State {
            globals,
            heap,
            keys: 0,
            deleted_keys: 0,
            threads: Vec::new(),
            alone: None,
            inputs: 0,
            path: [].into(),
        };
        let frame = self.frame(main, &arguments, None);
        let own = self.own(&state);
        let main = Thread {
            frames: vec![frame],
            status: Status::Runs,
            detached: false,
            own,
            specific: Vec::new(),
        };
        state.threads.push(Some(Arc::new(main)));
        self.unseen(&mut state, 0)?;
        Ok(state)
    }

    /// The first values of a thread's copies of thread-local variables.
    fn own(&self, state: &State) -> Vec<Object> {
        let all = self.module.globals.iter().zip(&state.globals);
        all.filter(|(global, _)| global.thread_local).map(|(_, first)| (**first).clone()).collect()
    }

    fn initialise(
        &self,
        object: &mut Object,
        at: usize,
        kind: &Type,
        constant: &Constant,
    ) -> Result<(), String> {
        let size = kind.size().ok_or_else(|| format!("{} has no size", kind.show()))? as usize;
        if at + size > object.size() {
            return Err("its first value is too long".into());
        }
        match (constant, kind) {
            (Constant::Zero, _) => object.fill(at, size, 0),
            (Constant::Undefined, _) => {}
            (Constant::Bytes(bytes), Type::Array(..)) => {
                for (place, byte) in bytes.iter().enumerate().take(size) {
                    object.store(at + place, 1, &Value::Integer((*byte).into()));
                }
            }
            (Constant::Aggregate(parts), Type::Array(_, element)) => {
                let stride = element.size().ok_or("an element without a size")? as usize;
                for (place, (kind, part)) in parts.iter().enumerate() {
                    self.initialise(object, at + place * stride, kind, part)?;
                }
            }
            (Constant::Aggregate(parts), Type::Struct(fields)) => {
                for (place, (kind, part)) in parts.iter().enumerate() {
                    let offset = fields.offset(place).ok_or("a field that is not there")? as usize;
                    self.initialise(object, at + offset, kind, part)?;
                }
            }
            (Constant::Refused(what), Type::Float { .. }) => {
                // nobody can look at it: values of this type are refused
                let _ = what;
            }
            _ => {
                let value = self.constant(constant, kind)?;
                object.store(at, size, &value);
            }
        }
        Ok(())
    }

    pub(super) fn function(&self, id: FunctionId) -> &'m Function {
        &self.module.functions[id as usize]
    }

    fn frame(&self, function: FunctionId, arguments: &[Value], result: Option<Register>) -> Frame {
        let body = self.function(function);
        let mut registers = vec![Value::Undefined; body.registers.len()];
        for (parameter, value) in body.parameters.iter().zip(arguments) {
            registers[parameter.register as usize] = value.clone();
        }
        Frame { function, block: 0, at: 0, registers, locals: Vec::new(), result }
    }

    /// The instruction that the thread is about to execute.
    pub fn next(&self, state: &State, thread: usize) -> Option<&'m Instruction> {
        let thread = state.threads.get(thread)?.as_ref()?;
        let frame = thread.frames.last()?;
        let block = &self.function(frame.function).blocks[frame.block as usize];
        block.instructions.get(frame.at as usize)
    }

    /// Takes a step of a thread that can go on ([`Machine::choices`]).
    pub fn step(&self, state: &mut State, thread: usize, choice: u32) -> Step<()> {
        self.loud.set(false);
        self.one(state, thread, choice)?;
        self.unseen(state, thread)
    }

    /// The same; `watch` sees every state before an instruction but the first.
    pub(super) fn step_watched(
        &self,
        state: &mut State,
        thread: usize,
        choice: u32,
        watch: &mut dyn FnMut(&State),
    ) -> Step<()> {
        self.one(state, thread, choice)?;
        for _ in 0..LONGEST_STEP {
            if self.is_seen(state, thread) {
                break;
            }
            watch(state);
            self.one(state, thread, 0)?;
        }
        Ok(())
    }

    /// Goes on while nobody can see it.
    fn unseen(&self, state: &mut State, thread: usize) -> Step<()> {
        for _ in 0..LONGEST_STEP {
            if self.is_seen(state, thread) {
                break;
            }
            self.one(state, thread, 0)?;
        }
        Ok(())
    }

    /// Can somebody else see what the thread does next, or does it depend on somebody else?
    fn is_seen(&self, state: &State, thread: usize) -> bool {
        let Some(running) = state.threads[thread].as_ref() else { return true };
        if running.status != Status::Runs {
            return true;
        }
        let Some(instruction) = self.next(state, thread) else { return true };
        if state.alone.is_some() && !matches!(instruction.op, Op::Return(_)) {
            // nobody else moves, so nobody sees it; only what can wait or has a choice is looked at,
            // and inputs, because whoever reads a counterexample wants to know them
            return self.choices(state, thread) != 1
                || self.takes_input(state, thread, instruction);
        }
        match &instruction.op {
            Op::Return(_) => running.frames.len() == 1,
            Op::Exchange { weak: true, .. } => true,
            Op::Call { callee, .. } => match self.callee(state, thread, callee) {
                Some(id) => {
                    let function = self.function(id);
                    match self.is_library(id) {
                        false if super::library::is_atomic(&function.name) => true,
                        false => false,
                        true if super::texts::is_text(&function.name) => {
                            self.call_is_seen(state, thread, &function.name, instruction)
                        }
                        true if function.name.starts_with("llvm.mem") => {
                            self.accesses_seen(state, thread, instruction)
                        }
                        true => self.call_is_seen(state, thread, &function.name, instruction),
                    }
                }
                None => true,
            },
            _ => self.accesses_seen(state, thread, instruction),
        }
    }

    pub(super) fn accesses_seen(
        &self,
        state: &State,
        thread: usize,
        instruction: &Instruction,
    ) -> bool {
        let accesses = self.accesses(state, thread, instruction);
        accesses.iter().any(|access| self.is_shared(state, thread, access.at.base))
    }

    /// Can another thread come to the object?
    pub fn is_shared(&self, state: &State, thread: usize, base: Base) -> bool {
        // a thread that has ended sees nothing
        if state.running().count() < 2 {
            return false;
        }
        match (base, state.object(base)) {
            // a variable of the C library is a stream, which does not change
            (Base::Global(id), Some(object)) => {
                !object.constant && self.module.globals[id as usize].initial.is_some()
            }
            (Base::Local { thread: owner, .. }, Some(object)) if usize::from(owner) == thread => {
                !object.private && state.others_reach(thread, base)
            }
            (Base::Local { .. }, Some(_)) => true,
            (Base::Heap(_), Some(_)) => state.others_reach(thread, base),
            _ => false,
        }
    }

    /// The accesses of an instruction.
    pub fn accesses(&self, state: &State, thread: usize, instruction: &Instruction) -> Vec<Access> {
        let place = instruction.place;
        let access = |operand: &Operand, length: u64, write, atomic| {
            let value = self.operand(state, thread, operand, &Type::Pointer).ok()?;
            let Value::Pointer(at) = value else { return None };
            Some(Access { at, length: length as usize, write, atomic, place })
        };
        let size = |kind: &Type| kind.size().unwrap_or(0);
        match &instruction.op {
            Op::Load { kind, from, order, .. } => {
                access(from, size(kind), false, order.is_some()).into_iter().collect()
            }
            Op::Store { kind, to, order, .. } => {
                access(to, size(kind), true, order.is_some()).into_iter().collect()
            }
            Op::Modify { kind, at, .. } | Op::Exchange { kind, at, .. } => {
                access(at, size(kind), true, true).into_iter().collect()
            }
            Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } => {
                let name = &self.function(*id).name;
                if super::texts::is_text(name) {
                    let accesses = self.text_accesses(state, thread, name, arguments);
                    let access =
                        |(at, length, write)| Access { at, length, write, atomic: false, place };
                    return accesses.into_iter().map(access).collect();
                }
                let length = arguments
                    .get(2)
                    .map(|argument| self.operand(state, thread, &argument.value, &argument.kind));
                let length = match length {
                    Some(Ok(Value::Integer(length))) => length as u64,
                    _ => return Vec::new(),
                };
                let reads = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
                if !reads && !name.starts_with("llvm.memset") {
                    return Vec::new();
                }
                let written = access(&arguments[0].value, length, true, false);
                let read = reads.then(|| access(&arguments[1].value, length, false, false));
                written.into_iter().chain(read.flatten()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Is the function ours to give a meaning to?
    pub(super) fn is_library(&self, id: FunctionId) -> bool {
        let function = self.function(id);
        !function.is_defined() || super::library::is_special(&function.name)
    }

    pub(super) fn callee(
        &self,
        state: &State,
        thread: usize,
        callee: &Operand,
    ) -> Option<FunctionId> {
        match self.operand(state, thread, callee, &Type::Pointer) {
            Ok(Value::Pointer(Pointer { base: Base::Function(id), offset: 0 })) => Some(id),
            _ => None,
        }
    }

    // ---- values ----

    /// The value of an operand.
    pub fn operand(
        &self,
        state: &State,
        thread: usize,
        operand: &Operand,
        kind: &Type,
    ) -> Result<Value, String> {
        match operand {
            Operand::Register(register) => {
                let frame = state.threads[thread].as_ref().and_then(|thread| thread.frames.last());
                Ok(frame.map_or(Value::Undefined, |f| f.registers[*register as usize].clone()))
            }
            Operand::Constant(constant) => self.constant(constant, kind),
        }
    }

    fn constant(&self, constant: &Constant, kind: &Type) -> Result<Value, String> {
        let pointer = |pointer| Ok(Value::Pointer(pointer));
        let value = match (constant, kind) {
            (Constant::Integer(bits), _) => Value::Integer(*bits),
            (Constant::Zero, Type::Pointer) => return pointer(Pointer::NULL),
            (Constant::Zero, Type::Integer(_) | Type::Float { .. }) => Value::Integer(0),
            (Constant::Zero, Type::Struct(fields)) => {
                let zero = fields.fields.iter().map(|kind| self.constant(&Constant::Zero, kind));
                Value::Aggregate(zero.collect::<Result<Vec<_>, _>>()?.into())
            }
            (Constant::Undefined, _) => Value::Undefined,
            (Constant::Global(id), _) if self.module.globals[*id as usize].thread_local => {
                return Err("the address of a thread-local variable in a constant".into());
            }
            (Constant::Global(id), _) => return pointer(Pointer::to(Base::Global(*id))),
            (Constant::Function(id), _) => return pointer(Pointer::to(Base::Function(*id))),
            (Constant::Behind(base, offset), _) => match self.constant(base, &Type::Pointer)? {
                Value::Pointer(base) => {
                    let offset = base.offset.wrapping_add(*offset);
                    if let Base::Global(id) = base.base
                        && let Some(size) = self.module.globals[id as usize].content.size()
                        && !(0..=size as i64).contains(&offset)
                    {
                        return Err("undefined: an address outside its variable".into());
                    }
                    Value::Pointer(Pointer { base: base.base, offset })
                }
                _ => return Err("an address behind no address".into()),
            },
            (Constant::Same(inner), _) => {
                let other =
                    if *kind == Type::Pointer { &Type::Integer(64) } else { &Type::Pointer };
                self.constant(inner, other)?
            }
            (Constant::Aggregate(parts), Type::Struct(_)) => {
                let parts = parts.iter().map(|(kind, part)| self.constant(part, kind));
                Value::Aggregate(parts.collect::<Result<Vec<_>, _>>()?.into())
            }
            (Constant::Refused(what), _) => return Err(what.to_string()),
            (_, kind) => return Err(format!("a constant of type {}", kind.show())),
        };
        Ok(as_kind(value, kind))
    }

    fn refuse<T>(&self, place: Place, what: impl Into<String>) -> Step<T> {
        Err(Stop::Refused(place, what.into()))
    }

    /// An operand on which something depends.
    pub(super) fn known(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
        kind: &Type,
    ) -> Step<Value> {
        match self.operand(state, thread, operand, kind) {
            Ok(Value::Undefined | Value::Bytes(_)) => {
                self.refuse(place, "something depends on a value that is undefined or not known")
            }
            Ok(value) => Ok(value),
            Err(why) => self.refuse(place, why),
        }
    }

    /// An integer on which something depends.
    pub(super) fn integer(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
        bits: u32,
    ) -> Step<u128> {
        match self.known(state, thread, place, operand, &Type::Integer(bits))? {
            Value::Integer(number) => Ok(mask(number, bits)),
            Value::Symbol(term) => self.number_of(place, term),
            _ => self.refuse(place, "a computation with an address as a number"),
        }
    }

    /// A truth value on which something depends.
    fn truth(&self, state: &State, thread: usize, place: Place, operand: &Operand) -> Step<bool> {
        let value = self.known(state, thread, place, operand, &Type::Integer(1))?;
        self.is_true(place, value)
    }

    /// Is the value not zero? If it depends on inputs, both are looked at.
    pub(super) fn is_true(&self, place: Place, value: Value) -> Step<bool> {
        match value {
            Value::Integer(number) => Ok(number != 0),
            Value::Symbol(term) => self.decide_not_zero(place, term),
            _ => self.refuse(place, "a computation with an address as a number"),
        }
    }

    pub(super) fn pointer(
        &self,
        state: &State,
        thread: usize,
        place: Place,
        operand: &Operand,
    ) -> Step<Pointer> {
        match self.known(state, thread, place, operand, &Type::Pointer)? {
            Value::Pointer(pointer) => Ok(pointer),
            _ => self.refuse(place, "an address that is none"),
        }
    }

    /// Checks an access and gives its offset.
    pub(super) fn bounds(
        &self,
        state: &State,
        place: Place,
        at: Pointer,
        length: usize,
        write: bool,
    ) -> Step<usize> {
        let bad = |what| Err(Stop::Violated(Kind::Access(what), place));
        match at.base {
            Base::Number if at.offset == 0 => return bad("an access through a null pointer"),
            Base::Number => return bad("an access through a number as a pointer"),
            Base::Ended => return bad("an access of memory that is no more"),
            Base::Function(_) | Base::Thread(_) => {
                return self.refuse(place, "an access of what is no variable");
            }
            Base::Global(id) if self.module.globals[id as usize].initial.is_none() => {
                let name = &self.module.globals[id as usize].name;
                return self.refuse(place, format!("the variable {name} is defined elsewhere"));
            }
            Base::Global(_) | Base::Heap(_) | Base::Local { .. } => {}
        }
        let Some(object) = state.object(at.base).filter(|object| !object.dead) else {
            return bad("an access of memory that is no more");
        };
        if !object.contains(at.offset, length) {
            return bad("an access outside the variable");
        }
        if write && object.constant {
            return bad("a write to a constant");
        }
        if write && object.once && object.is_defined(at.offset as usize, length) {
            return self.refuse(place, "undefined: a write to a variable that is const");
        }
        if object.is_sync(at.offset as usize, length) {
            return self.refuse(place, "an access of a lock or semaphore that is in use");
        }
        if !write && self.is_used_as_lock(at, object, length) {
            return self.refuse(place, "an access of a lock, whose content is the C library's");
        }
        Ok(at.offset as usize)
    }

    fn load(&self, state: &State, place: Place, at: Pointer, kind: &Type) -> Step<Value> {
        if let Base::Global(id) = at.base
            && at.offset == 0
            && matches!(&*self.module.globals[id as usize].name, "stdout" | "stderr")
        {
            // a stream is only handed to the library
            return Ok(Value::Pointer(at));
        }
        if let Type::Struct(fields) = kind {
            let mut values = Vec::new();
            for (index, kind) in fields.fields.iter().enumerate() {
                let offset = at.offset + fields.offset(index).unwrap_or(0) as i64;
                values.push(self.load(state, place, Pointer { offset, ..at }, kind)?);
            }
            return Ok(Value::Aggregate(values.into()));
        }
        let size = self.access_size(place, kind)?;
        let offset = self.bounds(state, place, at, size, false)?;
        let object = state.object(at.base);
        Ok(object.map_or(Value::Undefined, |object| {
            as_kind(object.load(offset, size, *kind == Type::Pointer), kind)
        }))
    }

    pub(super) fn store(
        &self,
        state: &mut State,
        place: Place,
        at: Pointer,
        kind: &Type,
        value: &Value,
    ) -> Step<()> {
        if let Type::Struct(fields) = kind {
            for (index, kind) in fields.fields.iter().enumerate() {
                let offset = at.offset + fields.offset(index).unwrap_or(0) as i64;
                let field = match value {
                    Value::Aggregate(values) => values.get(index),
                    _ => None,
                };
                let field = field.unwrap_or(&Value::Undefined);
                self.store(state, place, Pointer { offset, ..at }, kind, field)?;
            }
            return Ok(());
        }
        let size = self.access_size(place, kind)?;
        let offset = self.bounds(state, place, at, size, true)?;
        if let Some(object) = state.object_mut(at.base) {
            object.store(offset, size, value);
        }
        Ok(())
    }

    /// Bytes of a type that can be read and written.
    fn access_size(&self, place: Place, kind: &Type) -> Step<usize> {
        match kind {
            Type::Pointer => Ok(8),
            Type::Float { size: size @ (4 | 8), .. } => Ok(*size as usize),
            Type::Integer(bits) if bits % 8 == 0 && bits.div_ceil(8).is_power_of_two() => {
                Ok(*bits as usize / 8)
            }
            other => self.refuse(place, format!("an access of type {}", other.show())),
        }
    }

    // ---- instructions ----

    /// Executes one instruction, or what the status of the thread says.
    fn one(&self, state: &mut State, thread: usize, choice: u32) -> Step<()> {
        if state.threads[thread].as_ref().is_some_and(|thread| thread.status != Status::Runs) {
            return self.wake(state, thread, choice);
        }
        let Some(instruction) = self.next(state, thread) else {
            return self.refuse(Place::default(), "a function that does not end");
        };
        let (block, at, function) = {
            let frame = self.top(state, thread);
            (frame.block, frame.at, frame.function)
        };
        let depth = state.threads[thread].as_ref().map_or(0, |thread| thread.frames.len());
        let beside = state.alone.is_none() && state.running().nth(1).is_some();
        let orders = &self.orders[function as usize];
        for &earlier in orders.beside(block, at) {
            self.check_unsequenced(state, thread, instruction, function, earlier)?;
        }
        match orders.open(block, at) {
            Open::Beside if !beside => {}
            Open::Beside | Open::Always if self.open_order.get().is_none() => {
                self.open_order.set(Some(instruction.place));
            }
            _ => {}
        }
        self.execute(state, thread, instruction, choice)?;
        // registers and locals that nobody needs any more, of the frame that executed it
        let jumped = matches!(instruction.op, Op::Jump(_) | Op::Branch { .. } | Op::Switch { .. });
        if let Some(running) = state.threads[thread].as_mut()
            && !jumped
            && let Some(dead) = self.lives[function as usize].behind(block, at)
            && (!dead.registers.is_empty() || !dead.locals.is_empty())
            && let frames = &mut Arc::make_mut(running).frames
            && let called = frames.len() > depth
            && let Some(frame) = frames.get_mut(depth - 1)
            && frame.function == function
            // a call that is to be executed again needs its arguments
            && !(called && frame.at == at)
        {
            forget(frame, &dead.registers, &dead.locals);
        }
        Ok(())
    }

    /// Two accesses in one expression that C does not order must not be of the same bytes.
    fn check_unsequenced(
        &self,
        state: &State,
        thread: usize,
        later: &Instruction,
        function: FunctionId,
        (block, at): (usize, usize),
    ) -> Step<()> {
        let earlier = &self.function(function).blocks[block].instructions[at];
        let earlier = self.accesses(state, thread, earlier);
        for a in self.accesses(state, thread, later) {
            let overlaps = |b: &Access| {
                let end = |access: &Access| access.at.offset + access.length as i64;
                a.at.base == b.at.base && a.at.offset < end(b) && b.at.offset < end(&a)
            };
            if earlier.iter().any(|b| (a.write || b.write) && overlaps(b)) {
                let what =
                    "undefined: two accesses in one expression that C does not order (6.5, 2)";
                return self.refuse(later.place, what);
            }
        }
        Ok(())
    }

    pub(super) fn top<'s>(&self, state: &'s mut State, thread: usize) -> &'s mut Frame {
        let thread = state.threads[thread].as_mut().map(Arc::make_mut);
        thread.and_then(|thread| thread.frames.last_mut()).expect("a running thread has a frame")
    }

    /// Writes the result of the instruction and goes to the next one.
    pub(super) fn finish(
        &self,
        state: &mut State,
        thread: usize,
        result: Option<Register>,
        value: Value,
    ) {
        let frame = self.top(state, thread);
        if let Some(register) = result {
            frame.registers[register as usize] = value;
        }
        frame.at += 1;
    }

    fn jump(&self, state: &mut State, thread: usize, place: Place, target: u32) -> Step<()> {
        let (from, function) = {
            let frame = self.top(state, thread);
            (frame.block, frame.function)
        };
        let block = &self.function(function).blocks[target as usize];
        let mut values = Vec::new();
        for instruction in &block.instructions {
            let Op::Phi { kind, incoming } = &instruction.op else { break };
            let Some((value, _)) = incoming.iter().find(|(_, block)| *block == from) else {
                return self.refuse(place, "a block that comes from nowhere");
            };
            let value = self.operand(state, thread, value, kind);
            let value = value.or_else(|why| self.refuse(place, why))?;
            values.push((instruction.result, value));
        }
        let dead = self.lives[function as usize].before(target);
        let frame = self.top(state, thread);
        forget(frame, &dead.registers, &dead.locals);
        frame.block = target;
        frame.at = values.len() as u32;
        for (register, value) in values {
            if let Some(register) = register
                && !dead.registers.contains(&register)
            {
                frame.registers[register as usize] = value;
            }
        }
        Ok(())
    }

    pub(super) fn note_loud(&self, loud: bool) {
        self.loud.set(self.loud.get() || loud);
    }

    fn note_order(&self, order: Option<Order>, place: Place) {
        if order == Some(Order::Weaker) && self.weaker.get().is_none() {
            self.weaker.set(Some(place));
        }
    }

    fn execute(
        &self,
        state: &mut State,
        thread: usize,
        instruction: &'m Instruction,
        choice: u32,
    ) -> Step<()> {
        let place = instruction.place;
        let value = match &instruction.op {
            Op::Allocate { content, count: elements, bits, align, constant } => {
                let count = self.integer(state, thread, place, elements, *bits)?;
                if count == 0 {
                    return self.refuse(place, "undefined: an array without elements");
                }
                let size = content.size().and_then(|size| u128::from(size).checked_mul(count));
                let Some(size) = size.filter(|size| *size <= LARGEST_ALLOCATION.into()) else {
                    return self.refuse(place, format!("a local of type {}", content.show()));
                };
                let frames = state.threads[thread].as_ref().map_or(0, |t| t.frames.len());
                if size > LARGE.into()
                    && self.stack(state, thread) + size > LARGEST_ALLOCATION.into()
                {
                    return self
                        .refuse(place, format!("more than {LARGEST_ALLOCATION} bytes of locals"));
                }
                let frame = self.top(state, thread);
                if frame.locals.len() >= MOST_LOCALS {
                    return self.refuse(place, format!("more than {MOST_LOCALS} locals in a call"));
                }
                let mut object = Object::undefined(size as usize);
                let register = instruction.result.unwrap_or_default();
                object.private = self.lives[frame.function as usize].private[register as usize];
                object.name = Some((frame.function, register));
                object.align = *align as u32;
                // memory of `alloca` has no declared type
                let one = *elements == Operand::Constant(Constant::Integer(1));
                object.plain = content.is_declared() && (one || *content != Type::Integer(8));
                object.once = *constant;
                object.padding = self.function(frame.function).padding.get(&register).cloned();
                frame.locals.push(object);
                let local = frame.locals.len() - 1;
                Value::Pointer(Pointer::to(Base::Local {
                    thread: thread as u8,
                    frame: (frames - 1) as u16,
                    local: local as u16,
                }))
            }
            Op::Load { kind, from, order, manner } => {
                self.note_order(*order, place);
                self.note_loud(order.is_some() || manner.volatile);
                let at = self.pointer(state, thread, place, from)?;
                let value = self.load(state, place, at, kind)?;
                self.check_manner(state, place, at, kind, manner, false)?;
                let size = kind.size().unwrap_or(0) as usize;
                if manner.character
                    && state
                        .object(at.base)
                        .is_some_and(|object| object.is_partial(at.offset as usize, size))
                {
                    return self.refuse(place, "bits beside a bit-field, which have no value");
                }
                if let Some(below) = manner.below
                    && matches!(value, Value::Integer(_) | Value::Symbol(_))
                {
                    let less = Comparison::Less { signed: false, or_equal: false, swapped: false };
                    let limit = Value::Integer(below);
                    let fits = self.compare(state, place, less, kind, value.clone(), limit)?;
                    if !self.is_true(place, fits)? {
                        return self
                            .refuse(place, "undefined: a truth value that is neither 0 nor 1");
                    }
                }
                value
            }
            Op::Store { kind, value, to, order, manner } => {
                self.note_order(*order, place);
                self.note_loud(order.is_some() || manner.volatile);
                let at = self.pointer(state, thread, place, to)?;
                let value = self.operand(state, thread, value, kind);
                let value = value.or_else(|why| self.refuse(place, why))?;
                self.store(state, place, at, kind, &value)?;
                self.check_manner(state, place, at, kind, manner, true)?;
                if let (Some(tag), Some(size)) = (manner.tag, kind.size())
                    && let Some(object) = state.object_mut(at.base).filter(|o| !o.plain)
                {
                    object.set_effective(at.offset as usize, size as usize, tag);
                    // a write of a member leaves open what lies between members (C17 6.2.6.1, 6)
                    for padding in self.module.aliases.padding(tag) {
                        if let Ok(byte) = usize::try_from(at.offset + padding) {
                            object.forget_byte(byte);
                        }
                    }
                }
                Value::Undefined
            }
            Op::Binary { operation, bits, left, right, flags } => {
                let kind = Type::Integer(*bits);
                let a = self.known(state, thread, place, left, &kind)?;
                let b = self.known(state, thread, place, right, &kind)?;
                match (a, b, operation) {
                    (Value::Integer(a), Value::Integer(b), _) => {
                        Value::Integer(self.arithmetic(place, *operation, *bits, a, b, *flags)?)
                    }
                    (
                        a @ (Value::Integer(_) | Value::Symbol(_)),
                        b @ (Value::Integer(_) | Value::Symbol(_)),
                        _,
                    ) => self.symbolic(place, *operation, *bits, &a, &b, *flags)?,
                    (Value::Pointer(a), Value::Pointer(b), Arithmetic::Subtract)
                        if a.base == b.base
                            && !state.object(a.base).is_some_and(|object| object.dead)
                            && !self.ambiguous.contains(&a.base)
                            && matches!(
                                a.base,
                                Base::Global(_) | Base::Heap(_) | Base::Local { .. }
                            ) =>
                    {
                        Value::Integer(mask(a.offset.wrapping_sub(b.offset) as u128, *bits))
                    }
                    _ => return self.refuse(place, "a computation with an address as a number"),
                }
            }
            Op::Compare { comparison, kind, left, right } => {
                let a = self.known(state, thread, place, left, kind)?;
                let b = self.known(state, thread, place, right, kind)?;
                self.compare(state, place, *comparison, kind, a, b)?
            }
            Op::Convert { cast, from, to, value, flags } => {
                let value = self.operand(state, thread, value, from);
                let value = value.or_else(|why| self.refuse(place, why))?;
                self.convert(place, *cast, from, to, value, *flags)?
            }
            Op::Address { base, offset, indices, inbounds } => {
                let base = self.pointer(state, thread, place, base)?;
                let mut sum = i128::from(base.offset) + i128::from(*offset);
                // the address behind the last element may be computed, but not used
                let function = self.top(state, thread).function as usize;
                let used =
                    instruction.result.is_some_and(|r| self.lives[function].accessed[r as usize]);
                for index in indices {
                    let number = self.integer(state, thread, place, &index.value, index.bits)?;
                    let number = signed(number, index.bits);
                    let last = |n: u64| i128::from(n) - i128::from(used);
                    if index.length.is_some_and(|n| number < 0 || number > last(n)) {
                        return Err(Stop::Violated(Kind::Index, place));
                    }
                    let step = number.checked_mul(index.stride.into());
                    let moved = step.and_then(|step| sum.checked_add(step));
                    let Some(moved) = moved else {
                        return self.refuse(place, "an address far away");
                    };
                    sum = moved;
                }
                let Ok(offset) = i64::try_from(sum) else {
                    return self.refuse(place, "an address far away");
                };
                let inside = state
                    .object(base.base)
                    .is_none_or(|object| (0..=object.size() as i64).contains(&offset));
                if *inbounds && !inside {
                    return self.refuse(place, "undefined: an address outside its variable");
                }
                if *inbounds
                    && matches!(base.base, Base::Number | Base::Ended)
                    && offset != base.offset
                {
                    return self.refuse(
                        place,
                        "undefined: a computation with null or a pointer to nothing",
                    );
                }
                if matches!(base.base, Base::Thread(_) | Base::Function(_)) && offset != 0 {
                    return self
                        .refuse(place, "a computation with what is no address of a variable");
                }
                Value::Pointer(Pointer { base: base.base, offset })
            }
            Op::Float { operation, from, to, operands } => {
                let mut values = Vec::new();
                for operand in operands {
                    match self.known(state, thread, place, operand, from)? {
                        Value::Integer(bits) => values.push(bits),
                        _ => return self.refuse(place, "floating point that depends on inputs"),
                    }
                }
                match super::floats::compute(*operation, from, to, &values) {
                    Some(bits) => Value::Integer(bits),
                    None => {
                        return self
                            .refuse(place, "floating point without a result that is defined");
                    }
                }
            }
            Op::Select { condition, kind, yes, no } => {
                let truth = self.truth(state, thread, place, condition)?;
                let chosen = if truth { yes } else { no };
                let value = self.operand(state, thread, chosen, kind);
                value.or_else(|why| self.refuse(place, why))?
            }
            Op::Phi { .. } => return self.refuse(place, "a phi that is not first in its block"),
            Op::Call { callee, arguments, result, no_effect, .. } => {
                let callee = self.known(state, thread, place, callee, &Type::Pointer)?;
                if matches!(callee, Value::Symbol(_)) {
                    return self.refuse(place, "a call through a pointer that depends on inputs");
                }
                let Value::Pointer(Pointer { base: Base::Function(id), offset: 0 }) = callee else {
                    let what = "a call through a pointer to no function";
                    return Err(Stop::Violated(Kind::Access(what), place));
                };
                if self.is_library(id) {
                    return self.library(state, thread, id, instruction, choice);
                }
                let function = self.function(id);
                let more = arguments.len().checked_sub(function.parameters.len());
                let fits = function.result == *result
                    && more.is_some_and(|more| more == 0 || function.variadic)
                    && function.parameters.iter().zip(arguments).all(|(parameter, argument)| {
                        parameter.kind == argument.kind && parameter.by_value == argument.by_value
                    });
                let caller = self.top(state, thread).function as usize;
                let spot = (place.line, place.column);
                let called = self.module.shapes.get(caller).and_then(|s| s.calls.get(&spot));
                let declared = self.module.shapes.get(id as usize).map(|shape| &shape.kind);
                let is_other = called.zip(declared).is_some_and(|(a, b)| !are_compatible(a, b));
                if !fits || is_other {
                    let name = &function.name;
                    return self.refuse(place, format!("a call of {name} with other types"));
                }
                let mut values = Vec::new();
                for argument in arguments {
                    let value = self.operand(state, thread, &argument.value, &argument.kind);
                    values.push(value.or_else(|why| self.refuse(place, why))?);
                }
                self.check_call(state, thread, place, id, arguments, &values)?;
                if *no_effect {
                    let what = "through a pointer with the attribute const or pure";
                    return self.refuse(place, format!("a call of {} {what}", function.name));
                }
                self.enter(state, thread, place, id, values, instruction.result)?;
                if function.variadic {
                    let further = &arguments[function.parameters.len()..];
                    self.further_arguments(state, thread, place, id, further)?;
                }
                return Ok(());
            }
            Op::Extract { kind, value, index } => {
                let value = self.operand(state, thread, value, kind);
                match value.or_else(|why| self.refuse(place, why))? {
                    Value::Aggregate(fields) if (*index as usize) < fields.len() => {
                        fields[*index as usize].clone()
                    }
                    _ => return self.refuse(place, "a field of an undefined value"),
                }
            }
            Op::Insert { kind, value, field_kind, field, index } => {
                let Type::Struct(fields) = kind else {
                    return self.refuse(place, "a field of what has none");
                };
                let value = self.operand(state, thread, value, kind);
                let mut parts: Vec<Value> = match value {
                    Ok(Value::Aggregate(parts)) => parts.to_vec(),
                    Ok(Value::Undefined) | Err(_) => vec![Value::Undefined; fields.fields.len()],
                    Ok(_) => return self.refuse(place, "a field of what has none"),
                };
                let field = self.operand(state, thread, field, field_kind);
                let Some(part) = parts.get_mut(*index as usize) else {
                    return self.refuse(place, "a field that is not there");
                };
                *part = field.or_else(|why| self.refuse(place, why))?;
                Value::Aggregate(parts.into())
            }
            Op::Modify { change, kind, at, value, order, align } => {
                self.note_order(Some(*order), place);
                self.note_loud(true);
                let at = self.pointer(state, thread, place, at)?;
                let old = self.load(state, place, at, kind)?;
                let manner = Manner { align: *align, ..Manner::default() };
                self.check_manner(state, place, at, kind, &manner, true)?;
                let operand = self.operand(state, thread, value, kind);
                let operand = operand.or_else(|why| self.refuse(place, why))?;
                let new = self.change(place, *change, kind, &old, operand)?;
                self.store(state, place, at, kind, &new)?;
                old
            }
            Op::Exchange { kind, at, expected, new, order, weak, align } => {
                self.note_order(Some(*order), place);
                self.note_loud(true);
                let at = self.pointer(state, thread, place, at)?;
                let old = self.load(state, place, at, kind)?;
                let manner = Manner { align: *align, ..Manner::default() };
                self.check_manner(state, place, at, kind, &manner, true)?;
                let expected = self.known(state, thread, place, expected, kind)?;
                if matches!(old, Value::Undefined | Value::Bytes(_)) {
                    return self.refuse(place, "something depends on an undefined value");
                }
                let same =
                    self.compare(state, place, Comparison::Equal, kind, old.clone(), expected)?;
                let same = self.is_true(place, same)?;
                let writes = same && !(*weak && choice == 1);
                if writes {
                    let new = self.operand(state, thread, new, kind);
                    let new = new.or_else(|why| self.refuse(place, why))?;
                    self.store(state, place, at, kind, &new)?;
                }
                Value::Aggregate([old, Value::Integer(writes.into())].into())
            }
            Op::Fence(order) => {
                self.note_order(Some(*order), place);
                self.note_loud(true);
                Value::Undefined
            }
            Op::Jump(target) => return self.jump(state, thread, place, *target),
            Op::Branch { condition, yes, no } => {
                let truth = self.truth(state, thread, place, condition)?;
                return self.jump(state, thread, place, if truth { *yes } else { *no });
            }
            Op::Switch { value, bits, cases, default } => {
                let kind = Type::Integer(*bits);
                let value = self.known(state, thread, place, value, &kind)?;
                let mut target = *default;
                for (case, to) in cases {
                    let case = Value::Integer(*case);
                    let is = Comparison::Equal;
                    let is = self.compare(state, place, is, &kind, value.clone(), case)?;
                    if self.is_true(place, is)? {
                        target = *to;
                        break;
                    }
                }
                return self.jump(state, thread, place, target);
            }
            Op::Return(value) => {
                let value = match value {
                    Some((kind, value)) => {
                        let value = self.operand(state, thread, value, kind);
                        value.or_else(|why| self.refuse(place, why))?
                    }
                    None => Value::Undefined,
                };
                self.check_result(state, thread, place, &value)?;
                let first = state.threads[thread].as_ref().is_some_and(|t| t.frames.len() == 1);
                if !(first && thread == 0) {
                    for local in &self.top(state, thread).locals {
                        self.check_locks(local, place)?;
                    }
                }
                if first && thread == 0 && matches!(value, Value::Undefined | Value::Bytes(_)) {
                    let main = self.top(state, thread).function;
                    if self.function(main).result != Type::Void {
                        return self.refuse(place, "undefined: main returns what has no value");
                    }
                }
                return self.leave(state, thread, value);
            }
            Op::Unreachable => {
                return self.refuse(place, "undefined: what the compiler takes for unreachable");
            }
            Op::Refused(what) => return self.refuse(place, what.to_string()),
        };
        self.finish(state, thread, instruction.result, value);
        Ok(())
    }

    /// Checks what the function and the call of it promise of its result.
    fn check_result(&self, state: &State, thread: usize, place: Place, value: &Value) -> Step<()> {
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
    fn stack(&self, state: &State, thread: usize) -> u128 {
        let frames = state.threads[thread].iter().flat_map(|thread| &thread.frames);
        frames.flat_map(|frame| &frame.locals).map(|local| local.size() as u128).sum()
    }

    /// Calls a function of the program; the caller goes on behind the call.
    pub(super) fn enter(
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
            return self
                .refuse(place, format!("more than {DEEPEST_CALLS} calls inside each other"));
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
        if super::library::is_atomic(&self.function(id).name) {
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
    fn further_arguments(
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
    fn leave(&self, state: &mut State, thread: usize, value: Value) -> Step<()> {
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
        if super::library::is_atomic(&self.function(frame.function).name) {
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
    pub(super) fn check_locks(&self, object: &Object, place: Place) -> Step<()> {
        match object.has_locked() {
            true => self.refuse(place, "undefined: the memory of a lock ends while it is held"),
            false => Ok(()),
        }
    }

    /// From here on nobody else moves until the section ends.
    pub(super) fn begin_section(&self, state: &mut State, thread: usize) {
        self.assumed.borrow_mut().insert(Assumption::AtomicSections);
        let depth = state.alone.map_or(0, |(_, depth)| depth);
        state.alone = Some((thread as u8, depth + 1));
    }

    /// The thread has ended.
    pub(super) fn end(&self, state: &mut State, thread: usize, value: Value) {
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
    pub(super) fn remove(&self, state: &mut State, thread: usize) {
        state.threads[thread] = None;
        state.forget(|base| *base == Base::Thread(thread as u8));
    }

    /// A new thread; its place.
    pub(super) fn start(
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
        if !fits || self.is_library(id) || super::library::is_atomic(&function.name) {
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

    // ---- arithmetic ----

    fn arithmetic(
        &self,
        place: Place,
        operation: Arithmetic,
        bits: u32,
        a: u128,
        b: u128,
        flags: Flags,
    ) -> Step<u128> {
        let (a, b) = (mask(a, bits), mask(b, bits));
        let (sa, sb) = (signed(a, bits), signed(b, bits));
        let overflow = || Err(Stop::Violated(Kind::Overflow, place));
        let poison = || self.refuse(place, "undefined: an operation whose promise does not hold");
        let fits = |exact: Option<i128>| {
            exact.is_some_and(|exact| signed(mask(exact as u128, bits), bits) == exact)
        };
        let fits_unsigned =
            |exact: Option<u128>| exact.is_some_and(|exact| mask(exact, bits) == exact);
        let check = |signed: Option<i128>, unsigned: Option<u128>, result: u128| {
            if flags.no_signed_wrap && !fits(signed) {
                return overflow();
            }
            if flags.no_unsigned_wrap && !fits_unsigned(unsigned) {
                return poison();
            }
            Ok(mask(result, bits))
        };
        match operation {
            Arithmetic::Add => check(sa.checked_add(sb), a.checked_add(b), a.wrapping_add(b)),
            Arithmetic::Subtract => check(sa.checked_sub(sb), a.checked_sub(b), a.wrapping_sub(b)),
            Arithmetic::Multiply => check(sa.checked_mul(sb), a.checked_mul(b), a.wrapping_mul(b)),
            Arithmetic::DivideUnsigned | Arithmetic::RemainderUnsigned => {
                if b == 0 {
                    return Err(Stop::Violated(Kind::Division, place));
                }
                match operation {
                    Arithmetic::DivideUnsigned if flags.exact && a % b != 0 => poison(),
                    Arithmetic::DivideUnsigned => Ok(a / b),
                    _ => Ok(a % b),
                }
            }
            Arithmetic::DivideSigned | Arithmetic::RemainderSigned => {
                let smallest = signed(1 << (bits - 1), bits);
                if b == 0 || sa == smallest && sb == -1 {
                    return Err(Stop::Violated(Kind::Division, place));
                }
                match operation {
                    Arithmetic::DivideSigned if flags.exact && sa % sb != 0 => poison(),
                    Arithmetic::DivideSigned => Ok(mask((sa / sb) as u128, bits)),
                    _ => Ok(mask((sa % sb) as u128, bits)),
                }
            }
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned => {
                if b >= u128::from(bits) {
                    return self.refuse(place, "undefined: a shift by more than the width");
                }
                let by = b as u32;
                match operation {
                    Arithmetic::ShiftLeft => {
                        let result = mask(a << by, bits);
                        if flags.no_signed_wrap && signed(result, bits) >> by != sa {
                            return overflow();
                        }
                        if flags.no_unsigned_wrap && result >> by != a {
                            return poison();
                        }
                        Ok(result)
                    }
                    _ if flags.exact && mask(a, by) != 0 && by > 0 => poison(),
                    Arithmetic::ShiftRight => Ok(a >> by),
                    _ => Ok(mask((sa >> by) as u128, bits)),
                }
            }
            Arithmetic::And => Ok(a & b),
            Arithmetic::Or if flags.disjoint && a & b != 0 => poison(),
            Arithmetic::Or => Ok(a | b),
            Arithmetic::Xor => Ok(a ^ b),
        }
    }

    fn change(
        &self,
        place: Place,
        change: Change,
        kind: &Type,
        old: &Value,
        operand: Value,
    ) -> Step<Value> {
        if change == Change::Exchange {
            return Ok(operand);
        }
        if let (Type::Integer(bits), Value::Integer(_) | Value::Symbol(_)) = (kind, old)
            && let Value::Integer(_) | Value::Symbol(_) = operand
            && let Change::Compute(operation) = change
            && (matches!(old, Value::Symbol(_)) || matches!(operand, Value::Symbol(_)))
        {
            return self.symbolic(place, operation, *bits, old, &operand, Flags::default());
        }
        let (Type::Integer(bits), Value::Integer(a), Value::Integer(b)) = (kind, old, operand)
        else {
            return self.refuse(place, "an atomic operation on an undefined value or an address");
        };
        let flags = Flags::default();
        Ok(Value::Integer(match change {
            Change::Exchange => b,
            Change::Compute(operation) => self.arithmetic(place, operation, *bits, *a, b, flags)?,
            Change::Nand => mask(!(a & b), *bits),
            Change::Extreme { greater, signed: as_signed } => {
                let less = match as_signed {
                    true => signed(*a, *bits) < signed(b, *bits),
                    false => mask(*a, *bits) < mask(b, *bits),
                };
                if less == greater { b } else { *a }
            }
        }))
    }

    pub(super) fn convert(
        &self,
        place: Place,
        cast: Cast,
        from: &Type,
        to: &Type,
        value: Value,
        flags: Flags,
    ) -> Step<Value> {
        if let Value::Symbol(term) = value {
            return self.convert_symbol(place, cast, term, to, flags);
        }
        if cast == Cast::Same {
            return Ok(match value {
                Value::Integer(number) => as_kind(Value::Integer(number), to),
                other => as_kind(other, to),
            });
        }
        let (Type::Integer(from), Type::Integer(to)) = (from, to) else {
            return self.refuse(place, "a conversion of what is no integer");
        };
        let number = match value {
            Value::Integer(number) => mask(number, *from),
            Value::Pointer(_) => {
                return self.refuse(place, "a computation with an address as a number");
            }
            Value::Undefined => return Ok(Value::Undefined),
            _ => return self.refuse(place, "a conversion of a value that is partly undefined"),
        };
        let result = match cast {
            Cast::Truncate => {
                let result = mask(number, *to);
                let lost = flags.no_unsigned_wrap && result != number
                    || flags.no_signed_wrap && signed(result, *to) != signed(number, *from);
                if lost {
                    return self.refuse(place, "undefined: a conversion that loses bits");
                }
                result
            }
            Cast::ZeroExtend if flags.non_negative && signed(number, *from) < 0 => {
                return self.refuse(place, "undefined: a conversion of a negative number");
            }
            Cast::ZeroExtend | Cast::Same => number,
            Cast::SignExtend => mask(signed(number, *from) as u128, *to),
        };
        Ok(Value::Integer(result))
    }

    fn compare(
        &self,
        state: &State,
        place: Place,
        comparison: Comparison,
        kind: &Type,
        a: Value,
        b: Value,
    ) -> Step<Value> {
        let bits = match kind {
            Type::Integer(bits) => *bits,
            _ => 64,
        };
        let (a, b) = match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => {
                return Ok(truth(compare_numbers(comparison, bits, a, b)));
            }
            (Value::Symbol(a), b) => return self.compare_symbols(place, comparison, a, &b, false),
            (a, Value::Symbol(b)) => return self.compare_symbols(place, comparison, b, &a, true),
            (Value::Pointer(a), Value::Pointer(b)) => (a, b),
            // a handle or an address in an integer, beside a number
            (Value::Pointer(a), Value::Integer(b)) => {
                (a, Pointer { base: Base::Number, offset: b as i64 })
            }
            (Value::Integer(a), Value::Pointer(b)) => {
                (Pointer { base: Base::Number, offset: a as i64 }, b)
            }
            _ => return self.refuse(place, "a comparison of an undefined value"),
        };
        // a pointer has no value any more when what it points to has ended (C17 6.2.4, 2)
        let ended = |pointer: Pointer| {
            pointer.base == Base::Ended
                || state.object(pointer.base).is_some_and(|object| object.dead)
        };
        // its bits are not those of null, but no compiler has to keep them: it is looked at what happens
        // then, and nothing is proved
        let null = |pointer: Pointer| pointer == Pointer::NULL;
        if let Comparison::Equal | Comparison::NotEqual = comparison
            && (null(a) && ended(b) || null(b) && ended(a))
        {
            self.ended.set(self.ended.get().or(Some(place)));
            return Ok(truth(comparison == Comparison::NotEqual));
        }
        if ended(a) || ended(b) {
            return self.refuse(place, "undefined: a comparison of a pointer to what has ended");
        }
        if a.base == b.base {
            if self.ambiguous.contains(&a.base) {
                let what = "a comparison of addresses of string literals that may be one or not";
                return self.refuse(place, what);
            }
            let (a, b) = (a.offset as u64, b.offset as u64);
            return Ok(truth(compare_numbers(comparison, 64, a.into(), b.into())));
        }
        let equal = match comparison {
            Comparison::Equal => true,
            Comparison::NotEqual => false,
            Comparison::Less { .. } => {
                return self.refuse(place, "a comparison of addresses of two variables");
            }
        };
        // what a program cannot name may share its memory with another: the linker merges strings
        let merged = |pointer: Pointer| match pointer.base {
            Base::Global(id) => self.module.globals[id as usize].mergeable,
            base => state.object(base).and_then(|object| object.name).is_some_and(|(id, local)| {
                let name = &self.function(id).registers[local as usize];
                let shape = self.module.shapes.get(id as usize);
                name.starts_with(".compoundliteral")
                    && shape.is_some_and(|shape| shape.literals.iter().any(|l| l.constant))
            }),
        };
        if merged(a) && merged(b) {
            return self.refuse(place, "a comparison of addresses of constants without a name");
        }
        // different variables have different addresses, as long as both are inside their variable
        let inside = |pointer: Pointer| match pointer.base {
            Base::Number => pointer.offset == 0,
            Base::Function(_) | Base::Thread(_) => true,
            base => state
                .object(base)
                .is_some_and(|object| (0..object.size() as i64).contains(&pointer.offset)),
        };
        match inside(a) && inside(b) {
            true => Ok(truth(!equal)),
            false => self.refuse(place, "a comparison that depends on where variables lie"),
        }
    }
}

/// May a function of one type be called by the other? One without a prototype fits whatever the IR
/// fits.
fn are_compatible(a: &str, b: &str) -> bool {
    let parts = |kind: &str| kind.split_once(" (").map(|(r, p)| (r.to_owned(), p.to_owned()));
    let (Some((result, a_rest)), Some((other, b_rest))) = (parts(a), parts(b)) else {
        return a == b;
    };
    result == other && (a_rest == b_rest || a_rest == ")" || b_rest == ")")
}

/// String literals that several places of the program name.
fn ambiguous(module: &Module) -> HashSet<Base> {
    let mut uses = vec![0; module.globals.len()];
    let mut open: Vec<&Constant> =
        module.globals.iter().filter_map(|global| global.initial.as_ref()).collect();
    let blocks = module.functions.iter().flat_map(|function| &function.blocks);
    for instruction in blocks.flat_map(|block| &block.instructions) {
        open.extend(instruction.op.operands().into_iter().filter_map(|operand| match operand {
            Operand::Constant(constant) => Some(constant),
            Operand::Register(_) => None,
        }));
    }
    while let Some(constant) = open.pop() {
        match constant {
            Constant::Global(id) => uses[*id as usize] += 1,
            Constant::Behind(inner, _) | Constant::Same(inner) => open.push(inner),
            Constant::Aggregate(parts) => open.extend(parts.iter().map(|(_, part)| part)),
            _ => {}
        }
    }
    let all = module.globals.iter().zip(uses).enumerate();
    all.filter(|(_, (global, uses))| global.mergeable && *uses > 1)
        .map(|(id, _)| Base::Global(id as u32))
        .collect()
}

/// String literals that stand for the name of the source file.
fn file_names(module: &Module) -> HashSet<u32> {
    let all = module.globals.iter().enumerate().filter(|(_, global)| {
        global.mergeable
            && matches!(&global.initial, Some(Constant::Bytes(bytes))
                if bytes.strip_suffix(&[0]) == Some(files::FILE_TEXT.as_bytes()))
    });
    all.map(|(id, _)| id as u32).collect()
}

/// What declared objects of a program hold.
fn contents(module: &Module) -> HashMap<Declared, &Type> {
    let mut contents = HashMap::new();
    let mut own = 0;
    for (id, global) in module.globals.iter().enumerate() {
        contents.insert(Declared::Global(id as u32), &global.content);
        if global.thread_local {
            contents.insert(Declared::Own(own), &global.content);
            own += 1;
        }
    }
    for (id, function) in module.functions.iter().enumerate() {
        for parameter in &function.parameters {
            if let Some(kind) = &parameter.by_value {
                contents.insert(Declared::Local(id as u32, parameter.register), kind);
            }
        }
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            if let (Op::Allocate { content, .. }, Some(register)) =
                (&instruction.op, instruction.result)
            {
                contents.insert(Declared::Local(id as u32, register), content);
            }
        }
    }
    contents
}

fn truth(holds: bool) -> Value {
    Value::Integer(holds.into())
}

pub(super) fn compare_numbers(comparison: Comparison, bits: u32, a: u128, b: u128) -> bool {
    let (a, b) = (mask(a, bits), mask(b, bits));
    match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less { signed: as_signed, or_equal, swapped } => {
            let (a, b) = if swapped { (b, a) } else { (a, b) };
            match as_signed {
                true => {
                    let (a, b) = (signed(a, bits), signed(b, bits));
                    a < b || or_equal && a == b
                }
                false => a < b || or_equal && a == b,
            }
        }
    }
}

/// A number as a pointer or a pointer that is a number, as the type wants it.
fn as_kind(value: Value, kind: &Type) -> Value {
    match (value, kind) {
        (Value::Integer(number), Type::Pointer) => {
            Value::Pointer(Pointer { base: Base::Number, offset: number as i64 })
        }
        (Value::Pointer(Pointer { base: Base::Number, offset }), Type::Integer(bits)) => {
            Value::Integer(mask(offset as u64 as u128, *bits))
        }
        (Value::Integer(number), Type::Integer(bits)) => Value::Integer(mask(number, *bits)),
        (value, _) => value,
    }
}

fn forget(frame: &mut Frame, registers: &[Register], locals: &[u16]) {
    for &register in registers {
        frame.registers[register as usize] = Value::Undefined;
    }
    for &local in locals {
        if let Some(local) = frame.locals.get_mut(usize::from(local)) {
            let size = local.size();
            local.clear(0, size);
        }
    }
}
