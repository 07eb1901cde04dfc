//! The meaning of instructions: one thread takes a step.
//!
//! A *step* is one operation that other threads can see, and then what follows it unseen, up to the
//! next operation that they can. Unseen are computations and accesses of memory that no other thread
//! can reach ([`State::others_reach`]): they commute with everything that others do before this thread
//! is seen again, so no interleaving is lost. Every operation is otherwise a step of its own, among
//! them the end of a thread and the end of the program.
//!
//! What C or LLVM leaves undefined is a violation where a run of the program shows it (signed
//! overflow, division by zero, accesses outside objects) and a refusal elsewhere; it is never taken
//! for impossible. What only optimised code shows is in `promises` and `progress`.

mod arithmetic;
mod begin;
mod calls;
mod execute;
mod seen;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::inputs::Inputs;
use super::liveness::Lives;
use super::memory::{Base, Pointer, Value};
use super::order::{Open, Orders, orders};
use super::promises::{Declared, Part, Seen};
use super::state::{Frame, State, Status};
use crate::certificate::Assumption;
use crate::ir::{
    Constant, Function, FunctionId, Instruction, Module, Op, Operand, Place, Register, Type, files,
};
use crate::limits::LONGEST_STEP;
pub(super) use arithmetic::compare_numbers;
use execute::forget;

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
    /// Memory is freed that cannot be; why.
    Free(&'static str),
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
            Kind::Free(_) => "valid-free",
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
            Kind::Access(what) | Kind::Free(what) => (*what).into(),
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

    pub(super) fn top<'s>(&self, state: &'s mut State, thread: usize) -> &'s mut Frame {
        let thread = state.threads[thread].as_mut().map(Arc::make_mut);
        thread.and_then(|thread| thread.frames.last_mut()).expect("a running thread has a frame")
    }
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
