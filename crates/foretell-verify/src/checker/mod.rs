//! An independent checker of proofs of C programs, to be read in an hour.
//!
//! It shares the data types of programs ([`crate::ir`]) with the explorer and nothing else: it has
//! memory, instructions, threads and a search of its own, as simple as possible. There is only one
//! reduction: while a single thread runs, and inside an atomic section, its steps are one. Otherwise
//! every access of memory that is not a plain local variable is a step, and so is every call of a
//! function that is not the program's.
//!
//! A proof ([`Certificate`]) claims, for a line and a function, which values global variables have when
//! a thread is about to execute that line. The checker computes the states that the program can reach,
//! and accepts the proof if
//!
//! - it names this program, its compiler and the properties that are asked for;
//! - no state violates one of its properties;
//! - it says something of every place at which a thread is about to access a global variable or to
//!   call the threads library, and no state contradicts what it says there;
//! - it names every assumption that the checker had to make, each pair of lines that race among them.
//!
//! What the checker does not know it does not accept: the answer is then [`Answer::NotChecked`].
//!
//! `memory.rs`: bytes. `step.rs`: instructions. `calls.rs`: threads and locks. `text.rs`: operands without an
//! order, formats. `waits.rs`: who waits for whom, and who races.

mod calls;
mod memory;
mod step;
mod text;
mod waits;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::certificate::{Certificate, Property};
use crate::ir::{Constant, Module, Op, Operand, Type};
use crate::limits::CHECKED_STATES;
use memory::{Memory, Object, Value};
use step::{Checker, End};

/// What the checker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The claims hold and no property is violated; states looked at.
    Holds(usize),
    /// Something is wrong with the proof; what.
    Rejected(String),
    /// It cannot say; why.
    NotChecked(String),
}

/// A state.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    memory: Memory,
    threads: Vec<Option<Thread>>,
    /// The thread that is in an atomic section, and how deep.
    alone: Option<(usize, u32)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Thread {
    frames: Vec<Frame>,
    detached: bool,
    doing: Doing,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Doing {
    /// Its next instruction.
    Runs,
    /// Waits for a condition; holds the mutex so many times when it wakes up.
    Waits { condition: (Object, i64), mutex: (Object, i64), count: u32, signalled: bool },
    /// Stands at a barrier.
    AtBarrier((Object, i64)),
    /// Leaves a barrier with this result.
    Leaves(u128),
    /// Has ended with this result.
    Ended(Value),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Frame {
    function: u32,
    block: u32,
    at: u32,
    registers: Vec<Value>,
    locals: u32,
    result: Option<u32>,
}

/// What may be claimed about a variable.
struct Claim {
    listed: Vec<i128>,
    range: Option<(i128, i128)>,
    no_number: bool,
}

/// Checks a proof of these properties.
pub fn check(module: &Module, proof: &Certificate, asked: &BTreeSet<Property>) -> Answer {
    if let Err(why) = proof.fits(module) {
        return Answer::Rejected(why);
    }
    if let Some(missing) = asked.difference(&proof.properties).next() {
        let proved: Vec<&str> = proof.properties.iter().map(|property| property.name()).collect();
        return Answer::Rejected(format!(
            "the property {} was asked for, but the proof is for {}: check it with --property {1}",
            missing.name(),
            proved.join(",")
        ));
    }
    let claims = match read_claims(&proof.claims) {
        Ok(claims) => claims,
        Err(why) => return Answer::Rejected(why),
    };
    let deadlocks = proof.properties.contains(&Property::Deadlock);
    let assertions = proof.properties.contains(&Property::Assertion);
    let checker = Checker::new(module, deadlocks);
    let not_checked =
        |place, what: String| Answer::NotChecked(format!("{}: {what}", module.show(place)));
    let first = match checker.first() {
        Ok(state) => state,
        Err(End::Unknown(place, what)) => return not_checked(place, what),
        Err(End::Violation(_)) if assertions => {
            return Answer::Rejected("the program fails at its beginning".into());
        }
        Err(_) => return Answer::Holds(0),
    };
    let first = Arc::new(first);
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(state) = open.pop() {
        if let Some(why) = foretell_guard::stop::why() {
            return Answer::NotChecked(why);
        }
        if let Some(wrong) = contradicts(&checker, &claims, &state) {
            return Answer::Rejected(wrong);
        }
        if let Some((alone, _)) = state.alone
            && checker.choices(&state, alone) == 0
        {
            return Answer::NotChecked("a thread waits inside an atomic section".into());
        }
        if let Err(End::Unknown(place, what)) = checker.note_races(&state) {
            return not_checked(place, what);
        }
        if deadlocks && let Some(place) = checker.stuck(&state) {
            return Answer::Rejected(format!("{}: a deadlock", module.show(place)));
        }
        for thread in 0..state.threads.len() {
            for choice in 0..checker.choices(&state, thread) {
                let mut next = State::clone(&state);
                match checker.step(&mut next, thread, choice) {
                    Ok(()) => {
                        checker.forget(&mut next);
                        let next = Arc::new(next);
                        if seen.insert(next.clone()) {
                            open.push(next);
                        }
                    }
                    Err(End::Over) => {}
                    Err(End::Violation(_)) if !assertions => {}
                    Err(End::Violation(place)) => {
                        let place = module.show(place);
                        return Answer::Rejected(format!("{place}: a property is violated"));
                    }
                    Err(End::Unknown(place, what)) => return not_checked(place, what),
                }
                if seen.len() > CHECKED_STATES {
                    return Answer::NotChecked(format!("more than {CHECKED_STATES} states"));
                }
            }
        }
    }
    let assumed = checker.assumed.borrow();
    match assumed.difference(&proof.assumptions).next() {
        Some(missing) => {
            Answer::Rejected(format!("the proof does not say what it assumes: {missing}"))
        }
        None => Answer::Holds(seen.len()),
    }
}

type Claims = BTreeMap<(String, String), Vec<(String, Claim)>>;

/// Reads lines like `at a.c:25 in worker: data in {0, 1}; total in 0..9 or no number`.
fn read_claims(text: &str) -> Result<Claims, String> {
    let mut claims = Claims::new();
    for line in text.lines() {
        let bad = || format!("this line of the proof says nothing: {line}");
        let rest = line.strip_prefix("at ").ok_or_else(bad)?;
        let (place, rest) = rest.split_once(" in ").ok_or_else(bad)?;
        let (function, values) = rest.split_once(':').ok_or_else(bad)?;
        let of_line = claims.entry((place.into(), function.into())).or_default();
        for value in values.split(';').map(str::trim).filter(|value| !value.is_empty()) {
            let (name, set) = value.split_once(" in ").ok_or_else(bad)?;
            let (set, no_number) = match set.strip_suffix(" or no number") {
                Some(set) => (set, true),
                None => (set, set == "no number"),
            };
            // nothing is claimed of what depends on inputs
            if set.ends_with("what inputs make it") {
                continue;
            }
            let number = |text: &str| text.trim().parse::<i128>().map_err(|_| bad());
            let mut claim = Claim { listed: Vec::new(), range: None, no_number };
            match (
                set.strip_prefix('{').and_then(|set| set.strip_suffix('}')),
                set.split_once(".."),
            ) {
                (Some(listed), _) => {
                    claim.listed = listed.split(',').map(number).collect::<Result<_, _>>()?;
                }
                (None, Some((low, high))) => claim.range = Some((number(low)?, number(high)?)),
                (None, None) if set == "no number" => {}
                (None, None) => return Err(bad()),
            }
            of_line.push((name.to_owned(), claim));
        }
    }
    Ok(claims)
}

/// What a state contradicts.
fn contradicts(checker: &Checker<'_>, claims: &Claims, state: &State) -> Option<String> {
    let module = checker.module;
    for (number, thread) in state.threads.iter().enumerate() {
        let Some(frame) = thread.as_ref().and_then(|thread| thread.frames.last()) else { continue };
        let Some(instruction) = checker.next(state, number) else { continue };
        // a proof speaks of places where a thread is about to do what others can see
        let global = |operand: &Operand| {
            let value = checker.operand(state, number, operand, &Type::Pointer);
            matches!(value, Ok(Value::Pointer(Object::Global(id), _))
                if !module.globals[id as usize].constant)
        };
        let is_seen = match &instruction.op {
            Op::Load { from, .. } => global(from),
            Op::Store { to, .. } => global(to),
            Op::Modify { at, .. } | Op::Exchange { at, .. } => global(at),
            Op::Call { callee: Operand::Constant(Constant::Function(id)), .. } => {
                let name = &*module.functions[*id as usize].name;
                let unseen = matches!(name, "pthread_self" | "pthread_equal");
                let of_threads = name.starts_with("pthread_") || name.starts_with("sem_");
                of_threads && !unseen || name == "__VERIFIER_atomic_begin"
            }
            Op::Return(_) => true,
            _ => false,
        };
        if !is_seen {
            continue;
        }
        let place = module.show_short(instruction.place);
        let function = module.functions[frame.function as usize].name.to_string();
        let Some(of_line) = claims.get(&(place.clone(), function)) else {
            return Some(format!("the proof says nothing of {place}, where a thread can be"));
        };
        for (name, claim) in of_line {
            let Some(value) = variable(module, state, name) else {
                return Some(format!("{place}: there is no variable {name} to speak of"));
            };
            let holds = match value {
                Some(value) => {
                    claim.listed.contains(&value)
                        || claim.range.is_some_and(|(low, high)| (low..=high).contains(&value))
                }
                None => claim.no_number,
            };
            if !holds {
                let value = value.map_or("no number".into(), |value| value.to_string());
                return Some(format!("{place}: {name} can be {value}"));
            }
        }
    }
    None
}

/// The value of a global or of an element of a global array; outside: no such variable, inside: no
/// number.
fn variable(module: &Module, state: &State, name: &str) -> Option<Option<i128>> {
    let (base, index) = match name.strip_suffix(']').and_then(|name| name.rsplit_once('[')) {
        Some((base, index)) => (base, index.parse::<u64>().ok()?),
        None => (name, 0),
    };
    let id = module.globals.iter().position(|global| &*global.name == base)?;
    let kind = match &module.globals[id].content {
        Type::Array(length, element) if index < *length => element,
        other if index == 0 => other,
        _ => return None,
    };
    let Type::Integer(bits) = kind else { return None };
    let size = u64::from(bits / 8);
    let value = state.memory.load(Object::Global(id as u32), (index * size) as i64, size as usize);
    Some(match value {
        Some(Value::Integer(number)) => Some(step::signed(number, *bits)),
        _ => None,
    })
}
