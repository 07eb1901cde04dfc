//! What the search found, for people and for whoever forces it: a counterexample step by step, and
//! what holds at each line when there is none.

use std::collections::{BTreeMap, BTreeSet};

use foretell_trace::schedule::CreationPath;

use super::inputs::Taken;
use super::machine::{Kind, Machine};
use super::memory::{Base, Pointer, Value};
use super::state::{State, Status};
use crate::counterexample::{Counterexample, Ending, Event};
use crate::ir::{Op, Operand, Place, Type, mask, signed};
use crate::program::Visible;

/// Different values of a variable that are listed; of more, the smallest and the greatest.
const LISTED: usize = 8;

/// Runs a path again and writes down what happens.
pub fn counterexample(
    machine: &Machine<'_>,
    path: &[Taken],
    kind: Kind,
    place: Place,
) -> Counterexample {
    let mut threads = vec![Some((CreationPath::default(), "main".to_owned()))];
    let mut children: BTreeMap<CreationPath, u32> = BTreeMap::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut events = Vec::new();
    let mut last = 0;
    // the atomic section that a thread is in began by a call, which takes a lock in the compiled program
    let mut by_call = false;
    if let Ok(mut state) = machine.first() {
        for taken in path {
            let thread = usize::from(taken.thread);
            last = thread;
            let who = threads.get(thread).cloned().flatten().unwrap_or_default();
            if let Some(event) = describe(machine, &state, thread, &who) {
                events.push(event);
            }
            let before = state.clone();
            by_call = match before.alone {
                Some(_) => by_call,
                None => begins_section(machine, &before, thread),
            };
            let alone = by_call;
            // the values of the inputs are given: nothing is left to decide
            let taken = Taken { decisions: [].into(), ..taken.clone() };
            let mut inside = Vec::new();
            let mut watch = |state: &State| {
                let accesses = machine
                    .next(state, thread)
                    .is_some_and(|instruction| machine.accesses_seen(state, thread, instruction));
                if state.alone.is_some() && accesses {
                    inside.extend(describe(machine, state, thread, &who));
                }
            };
            let next = machine.watched(&state, &taken, &mut watch);
            events.append(&mut inside);
            let Ok(next) = next else {
                // a bad access is not one that the compiled program makes and survives
                let bad = matches!(kind, Kind::Access(_) | Kind::Free(_));
                let accesses = [Visible::Read, Visible::Write, Visible::Modify];
                if let Some(event) = events.last_mut().filter(|_| bad)
                    && event.line == place.line
                    && accesses.contains(&event.does)
                {
                    event.does = Visible::No;
                }
                break;
            };
            state = next;
            if alone
                && state.alone.is_none()
                && let Some(event) = events.last().cloned()
            {
                // the whole section was one step, or its rest was
                events.push(Event { does: Visible::AtomicEnd, text: "".into(), ..event });
            }
            threads.resize(state.threads.len(), None);
            for place in 0..state.threads.len() {
                let new = before.threads.get(place).is_none_or(Option::is_none);
                match &state.threads[place] {
                    Some(created) if new => {
                        let number = children.entry(who.0.clone()).or_default();
                        let mut child = who.0.clone();
                        child.0.push(*number);
                        *number += 1;
                        let name = created.frames.first().map_or("thread".into(), |frame| {
                            machine.function(frame.function).name.to_string()
                        });
                        let count = names.entry(name.clone()).or_default();
                        *count += 1;
                        let name = match *count {
                            1 => name,
                            count => format!("{name}#{count}"),
                        };
                        threads[place] = Some((child, name));
                    }
                    Some(_) => {}
                    None => threads[place] = None,
                }
            }
        }
    }
    let (thread, name) = threads.get(last).cloned().flatten().unwrap_or_default();
    Counterexample {
        file: machine.module.files[0].to_string().into(),
        events,
        ending: match kind {
            Kind::Assertion | Kind::Error | Kind::Abort => Ending::Assertion,
            Kind::Overflow | Kind::Division | Kind::Index | Kind::Access(_) | Kind::Free(_) => {
                Ending::Fault
            }
            Kind::Deadlock | Kind::Circle => Ending::Deadlock,
        },
        specification: kind.specification(),
        thread,
        name: if matches!(kind, Kind::Deadlock | Kind::Circle) { "".into() } else { name.into() },
        violation: kind.show().into(),
        place: machine.module.show(place).into(),
        line: place.line,
    }
}

/// Does the thread begin an atomic section?
fn begins_section(machine: &Machine<'_>, state: &State, thread: usize) -> bool {
    let next = machine.next(state, thread).map(|instruction| &instruction.op);
    matches!(next, Some(Op::Call { callee, .. })
    if machine.callee(state, thread, callee).is_some_and(|id| {
        &*machine.function(id).name == "__VERIFIER_atomic_begin"
    }))
}

/// What the thread is about to do where others see it.
fn describe(
    machine: &Machine<'_>,
    state: &State,
    thread: usize,
    who: &(CreationPath, String),
) -> Option<Event> {
    let running = state.threads[thread].as_ref()?;
    let instruction = machine.next(state, thread)?;
    let name_of = |operand: &Operand| match machine.operand(state, thread, operand, &Type::Pointer)
    {
        Ok(Value::Pointer(pointer)) => name(machine, state, pointer),
        _ => "?".into(),
    };
    let global_of =
        |operand: &Operand| match machine.operand(state, thread, operand, &Type::Pointer) {
            Ok(Value::Pointer(Pointer { base: Base::Global(id), .. })) => {
                Some(machine.module.globals[id as usize].name.clone())
            }
            _ => None,
        };
    let shown = |operand: &Operand, kind: &Type| {
        let value = machine.operand(state, thread, operand, kind).unwrap_or(Value::Undefined);
        show_value(machine, state, &value, kind)
    };
    let old = |operand: &Operand, kind: &Type| {
        let Ok(Value::Pointer(at)) = machine.operand(state, thread, operand, &Type::Pointer) else {
            return "?".to_owned();
        };
        let size = kind.size().unwrap_or(0) as usize;
        match state.object(at.base) {
            Some(object) if object.contains(at.offset, size) && size > 0 => {
                let value = object.load(at.offset as usize, size, *kind == Type::Pointer);
                show_value(machine, state, &value, kind)
            }
            _ => "?".into(),
        }
    };
    let mut variable = None;
    let mut input = None;
    let (does, text) = match (&running.status, &instruction.op) {
        (Status::Begins | Status::Creates { .. }, _) => (Visible::No, String::new()),
        (Status::Waits { condition, .. }, _) => {
            let condition = name(machine, state, *condition);
            (Visible::WaitEnd, format!("wakes up from waiting for {condition}"))
        }
        (Status::Leaves(_) | Status::AtBarrier(_), _) => {
            (Visible::BarrierLeave, "leaves the barrier".into())
        }
        (_, Op::Load { kind, from, .. }) => {
            variable = global_of(from);
            (Visible::Read, format!("reads {} = {}", name_of(from), old(from, kind)))
        }
        (_, Op::Store { kind, value, to, .. }) => {
            variable = global_of(to);
            (Visible::Write, format!("writes {} = {}", name_of(to), shown(value, kind)))
        }
        (_, Op::Modify { kind, at, .. } | Op::Exchange { kind, at, .. }) => {
            variable = global_of(at);
            (Visible::Modify, format!("changes {}, which is {}", name_of(at), old(at, kind)))
        }
        (_, Op::Return(_)) => (Visible::End, "ends".into()),
        (_, Op::Call { callee, arguments, .. }) => {
            let id = machine.callee(state, thread, callee)?;
            let function = &*machine.function(id).name;
            let first = arguments.first().map(|argument| name_of(&argument.value));
            let first = first.unwrap_or_default();
            let object = arguments.first().map(|argument| &argument.value);
            let object =
                object.and_then(|o| machine.operand(state, thread, o, &Type::Pointer).ok());
            let shows = match object {
                Some(Value::Pointer(at)) => {
                    machine.shows(state, thread, instruction.place, function, at)
                }
                _ => None,
            };
            let does = match function {
                _ if let Some(shows) = shows => shows,
                _ if !machine.accesses(state, thread, instruction).is_empty() => Visible::Copy,
                "pthread_create" => Visible::Fork,
                "pthread_join" => Visible::Join,
                "pthread_mutex_lock"
                | "pthread_spin_lock"
                | "pthread_rwlock_rdlock"
                | "pthread_rwlock_wrlock" => Visible::Lock,
                "pthread_mutex_trylock"
                | "pthread_mutex_timedlock"
                | "pthread_spin_trylock"
                | "pthread_rwlock_tryrdlock"
                | "pthread_rwlock_trywrlock" => Visible::TryLock,
                "pthread_mutex_unlock" | "pthread_spin_unlock" | "pthread_rwlock_unlock" => {
                    Visible::Unlock
                }
                "pthread_cond_wait" | "pthread_cond_timedwait" => Visible::WaitBegin,
                "pthread_cond_signal" | "pthread_cond_broadcast" => Visible::Signal,
                "sem_wait" | "sem_trywait" | "sem_timedwait" => Visible::SemaphoreWait,
                "sem_post" => Visible::SemaphorePost,
                "pthread_barrier_wait" => Visible::BarrierArrive,
                "pthread_exit" => Visible::End,
                _ if super::library::is_input(function) => {
                    let width = super::library::input_width(function);
                    input = machine.given_input(state).map(|value| match width {
                        Some((bits, true)) => signed(value, bits) as u64,
                        _ => value as u64,
                    });
                    Visible::Input
                }
                _ => Visible::No,
            };
            let text = match does {
                Visible::Fork => {
                    let function = arguments.get(2).map(|argument| name_of(&argument.value));
                    format!("creates {}", function.unwrap_or_default())
                }
                Visible::Join => format!("joins {first}"),
                Visible::Input => format!("{function}() = {}", input.unwrap_or(0) as i64),
                Visible::Copy => {
                    let called = function.strip_prefix("llvm.").unwrap_or(function);
                    format!("{}({first})", called.split('.').next().unwrap_or(called))
                }
                _ => format!("{function}({first})"),
            };
            (does, text)
        }
        _ => (Visible::No, String::new()),
    };
    Some(Event {
        thread: who.0.clone(),
        name: who.1.as_str().into(),
        does,
        variable,
        line: instruction.place.line,
        place: machine.module.show(instruction.place).into(),
        text: text.into(),
        input,
    })
}

/// The name of what a pointer points to.
fn name(machine: &Machine<'_>, state: &State, pointer: Pointer) -> String {
    match pointer.base {
        Base::Number => format!("{:#x}", pointer.offset),
        Base::Global(id) => {
            let global = &machine.module.globals[id as usize];
            format!("{}{}", global.name, part(&global.content, pointer.offset))
        }
        Base::Heap(id) => format!("malloc#{id}+{}", pointer.offset),
        Base::Local { .. } => {
            let named = state.object(pointer.base).and_then(|object| object.name);
            named.map_or("a local".into(), |(function, register)| {
                let function = machine.function(function);
                let register = &function.registers[register as usize];
                let register = register.strip_suffix(".addr").unwrap_or(register);
                match pointer.offset {
                    0 => format!("{}.{register}", function.name),
                    offset => format!("{}.{register}+{offset}", function.name),
                }
            })
        }
        Base::Function(id) => machine.function(id).name.to_string(),
        Base::Thread(thread) => format!("thread {thread}"),
        Base::Ended => "memory that no longer exists".into(),
    }
}

/// Which part of a variable: `[2]`, or bytes from its beginning.
fn part(kind: &Type, offset: i64) -> String {
    match kind {
        Type::Array(_, element) => match element.size() {
            Some(size) if size > 0 && offset >= 0 => {
                let (index, rest) = (offset / size as i64, offset % size as i64);
                format!("[{index}]{}", part(element, rest))
            }
            _ => format!("+{offset}"),
        },
        _ if offset == 0 => String::new(),
        _ => format!("+{offset}"),
    }
}

fn show_value(machine: &Machine<'_>, state: &State, value: &Value, kind: &Type) -> String {
    match (value, kind) {
        (Value::Integer(number), Type::Integer(bits)) => {
            signed(mask(*number, *bits), *bits).to_string()
        }
        (Value::Integer(number), _) => number.to_string(),
        (Value::Pointer(Pointer::NULL), _) => "null".into(),
        (Value::Pointer(pointer), _) => format!("&{}", name(machine, state, *pointer)),
        (Value::Undefined, _) => "undefined".into(),
        (Value::Symbol(_), _) => "an input".into(),
        (Value::Bytes(_) | Value::Aggregate(_), _) => "?".into(),
    }
}

/// What holds of the global variables wherever a thread stands: the reachable states, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of states.
    pub states: usize,
    /// For each line and thread function: the values of each global.
    pub lines: Vec<Held>,
}

/// What holds where a thread is about to execute a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// `file:line`
    pub place: String,
    /// The function in which a thread stands there.
    pub function: String,
    /// Variables and what their values are, as text.
    pub values: Vec<(String, String)>,
}

impl Summary {
    /// Of all reachable states.
    pub fn of(machine: &Machine<'_>, states: &[State]) -> Self {
        let cells = cells(machine);
        let mut found: BTreeMap<(Place, u32), Vec<Values>> = BTreeMap::new();
        for state in states {
            for thread in state.running() {
                let Some(instruction) = machine.next(state, thread) else { continue };
                let function = state.threads[thread]
                    .as_ref()
                    .and_then(|thread| thread.frames.last())
                    .map_or(0, |frame| frame.function);
                let line = Place { column: 0, ..instruction.place };
                let all = found
                    .entry((line, function))
                    .or_insert_with(|| vec![Values::default(); cells.len()]);
                for (values, cell) in all.iter_mut().zip(&cells) {
                    let object = &state.globals[cell.global];
                    match object.load(cell.offset, cell.bits as usize / 8, false) {
                        Value::Integer(number) => values.add(signed(number, cell.bits)),
                        Value::Symbol(_) => values.input = true,
                        _ => values.other = true,
                    }
                }
            }
        }
        let lines = found.into_iter().map(|((place, function), values)| Held {
            place: machine.module.show_short(place),
            function: machine.function(function).name.to_string(),
            values: cells
                .iter()
                .zip(values)
                .map(|(cell, values)| (cell.name.clone(), values.show()))
                .collect(),
        });
        Self { states: states.len(), lines: lines.collect() }
    }

    /// As text.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for held in &self.lines {
            let values: Vec<String> =
                held.values.iter().map(|(name, values)| format!("{name} in {values}")).collect();
            text.push_str(&format!(
                "at {} in {}: {}\n",
                held.place,
                held.function,
                values.join("; ")
            ));
        }
        text
    }
}

/// An integer in a global.
struct Cell {
    name: String,
    global: usize,
    offset: usize,
    bits: u32,
}

/// Integers and arrays of a few integers.
fn cells(machine: &Machine<'_>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (global, variable) in machine.module.globals.iter().enumerate() {
        if variable.constant || variable.thread_local || variable.initial.is_none() {
            continue;
        }
        let (count, kind) = match &variable.content {
            Type::Array(count @ 1..=16, element) => (*count as usize, &**element),
            other => (1, other),
        };
        let Type::Integer(bits @ (8 | 16 | 32 | 64)) = kind else { continue };
        for index in 0..count {
            let offset = index * *bits as usize / 8;
            let name = format!("{}{}", variable.name, part(&variable.content, offset as i64));
            cells.push(Cell { name, global, offset, bits: *bits });
        }
    }
    cells
}

#[derive(Clone, Debug, Default)]
struct Values {
    listed: BTreeSet<i128>,
    range: Option<(i128, i128)>,
    /// It depends on inputs.
    input: bool,
    other: bool,
}

impl Values {
    fn add(&mut self, value: i128) {
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));
        if self.listed.len() <= LISTED {
            self.listed.insert(value);
        }
    }

    fn show(&self) -> String {
        let other = match (self.input, self.other) {
            (true, _) => " or what inputs make it",
            (false, true) => " or no number",
            (false, false) => "",
        };
        match self.range {
            None if self.input => "what inputs make it".into(),
            None => "no number".into(),
            Some((low, high)) if self.listed.len() > LISTED => format!("{low}..{high}{other}"),
            Some(_) => {
                let values: Vec<String> = self.listed.iter().map(ToString::to_string).collect();
                format!("{{{}}}{other}", values.join(", "))
            }
        }
    }
}
