//! Variables that are only ever added to, and what their reads can return.
//!
//! Where every write of a variable adds a constant to what its thread has just read, and one lock (or a
//! single atomic step) keeps the others out in between, the value is the initial one and the constants
//! of those writes that have taken place: their order does not matter. So a read returns something
//! between the least and the greatest such sum, and a condition that holds of all of them needs no
//! solver. For a solver this is a hard question: it amounts to counting, and clauses count badly.
//!
//! Guaranteed: what is refuted here holds in no interleaving. Linear in the events.

use std::collections::HashMap;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_model::must_order::MustOrder;
use foretell_trace::{
    EventId, LockMode, ObjectId, Operator, ScalarSort, Scope, Sort, Term, TermId, TermStore, Value,
    VariableId,
};

use crate::goal::{Goal, Moment};

/// The counters of a CTP.
#[derive(Debug)]
pub struct Counters<'c> {
    ctp: &'c ConcurrentTraceProgram,
    order: &'c MustOrder,
    counters: HashMap<VariableId, Counter>,
    /// The event that reads, and what it reads, for each result of a read.
    reads: HashMap<VariableId, (EventId, VariableId)>,
}

#[derive(Debug)]
struct Counter {
    initial: i128,
    /// By thread, in program order.
    steps: Vec<Vec<Step>>,
}

/// A write that adds.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Where its thread read what it adds to; the write itself, if it is one step.
    from: EventId,
    write: EventId,
    add: i128,
}

/// What is known of a term's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Bool(bool),
    /// An integer, or a bit-vector modulo its width, of this range.
    Range(i128, i128),
}

impl<'c> Counters<'c> {
    /// Finds them.
    pub fn new(ctp: &'c ConcurrentTraceProgram, order: &'c MustOrder) -> Self {
        let reads = reads(ctp);
        let mut writes: HashMap<VariableId, Option<Vec<Step>>> = HashMap::new();
        for (number, event) in ctp.events.iter().enumerate() {
            let write = EventId::from(number);
            for variable in event.action.defined() {
                let described = &ctp.variables[variable.index()];
                if described.scope != Scope::Shared || described.role != Role::Data {
                    continue;
                }
                let step = step(ctp, &reads, write, variable);
                let known = writes.entry(variable).or_insert_with(|| Some(Vec::new()));
                *known = known.take().zip(step).map(|(mut steps, step)| {
                    steps.push(step);
                    steps
                });
            }
        }
        let held = held_by_write(ctp, &writes);
        let counters = writes.into_iter().filter_map(|(variable, steps)| {
            let (steps, initial) = (steps?, ctp.variables[variable.index()].initial.as_ref()?);
            let counter = Counter { initial: integer(initial)?, steps: by_thread(ctp, &steps) };
            are_apart(&steps, &counter.steps, &held).then_some((variable, counter))
        });
        let counters = counters.collect();
        Self { ctp, order, counters, reads }
    }

    /// Does the goal hold in no interleaving, whatever its reads return?
    pub fn refute(&self, goal: &Goal) -> bool {
        let of_symbol = |symbol: usize| {
            let (moment, variable) = goal.values[symbol];
            self.value(moment, variable)
                .map_or(Known::Nothing, |(low, high)| Known::Range(low, high))
        };
        // Nothing is known of most goals; do not walk through their terms.
        if (0..goal.values.len()).all(|symbol| of_symbol(symbol) == Known::Nothing) {
            return false;
        }
        evaluate(&goal.terms, goal.formula, of_symbol) == Known::Bool(false)
    }

    /// The range of a read's result, where its thread has come to a later event.
    fn value(&self, moment: Moment, variable: VariableId) -> Option<(i128, i128)> {
        let Moment::Before(event) = moment else { return None };
        let &(read, counter) = self.reads.get(&variable)?;
        let (here, there) = (self.ctp.event(event), self.ctp.event(read));
        if here.thread != there.thread || here.position <= there.position {
            return None;
        }
        self.range(self.counters.get(&counter)?, read)
    }

    /// What the read can return if it takes place.
    fn range(&self, counter: &Counter, read: EventId) -> Option<(i128, i128)> {
        let origin = |event: EventId| self.ctp.event(event).origin;
        let (mut low, mut high) = (counter.initial, counter.initial);
        for steps in &counter.steps {
            let done = steps.partition_point(|s| self.order.before(origin(s.write), origin(read)));
            for (place, step) in steps.iter().enumerate() {
                if place >= done {
                    if step.write == read || self.order.before(origin(read), origin(step.write)) {
                        break; // and so are those that follow it
                    }
                    low = low.checked_add(step.add.min(0))?;
                    high = high.checked_add(step.add.max(0))?;
                } else {
                    low = low.checked_add(step.add)?;
                    high = high.checked_add(step.add)?;
                }
            }
        }
        Some((low, high))
    }
}

/// The reads whose results are variables of their threads.
fn reads(ctp: &ConcurrentTraceProgram) -> HashMap<VariableId, (EventId, VariableId)> {
    let mut reads: HashMap<VariableId, Option<(EventId, VariableId)>> = HashMap::new();
    for (number, event) in ctp.events.iter().enumerate() {
        for variable in event.action.defined() {
            if ctp.variables[variable.index()].role != Role::ReadValue {
                continue;
            }
            let read = match &event.action {
                Action::Guarded { assignments, .. } => {
                    let value = assignments.iter().find(|(assigned, _)| *assigned == variable);
                    value.and_then(|&(_, value)| match *ctp.terms.term(value) {
                        Term::Variable(of) => Some((EventId::from(number), of)),
                        _ => None,
                    })
                }
                _ => None,
            };
            // One that is assigned twice is none.
            reads.entry(variable).and_modify(|known| *known = None).or_insert(read);
        }
    }
    reads.into_iter().filter_map(|(variable, read)| Some((variable, read?))).collect()
}

/// The event as a step of the variable, if it adds a constant to what its thread read of it.
fn step(
    ctp: &ConcurrentTraceProgram,
    reads: &HashMap<VariableId, (EventId, VariableId)>,
    write: EventId,
    variable: VariableId,
) -> Option<Step> {
    let Action::Guarded { assignments, .. } = &ctp.event(write).action else { return None };
    let mut values = assignments.iter().filter(|(assigned, _)| *assigned == variable);
    let (Some(&(_, value)), None) = (values.next(), values.next()) else { return None };
    let (of, add) = sum(&ctp.terms, value)?;
    if of == variable {
        return Some(Step { from: write, write, add });
    }
    let &(read, from) = reads.get(&of)?;
    let (first, second) = (ctp.event(read), ctp.event(write));
    (from == variable && first.thread == second.thread && first.position < second.position)
        .then_some(Step { from: read, write, add })
}

/// The term as a variable and a constant that is added to it.
fn sum(terms: &TermStore, term: TermId) -> Option<(VariableId, i128)> {
    match terms.term(term) {
        Term::Variable(variable) => Some((*variable, 0)),
        Term::Apply(Operator::Add | Operator::BvAdd, arguments) => {
            let mut found = None;
            let mut add = 0i128;
            for &argument in arguments {
                match terms.constant_value(argument) {
                    Some(constant) => add = add.checked_add(signed_constant(constant)?)?,
                    None if found.is_none() => found = Some(sum(terms, argument)?),
                    None => return None,
                }
            }
            let (variable, more) = found?;
            Some((variable, add.checked_add(more)?))
        }
        Term::Apply(Operator::Sub | Operator::BvSub, arguments) => {
            let [left, right] = **arguments else { return None };
            let (variable, add) = sum(terms, left)?;
            let less = signed_constant(terms.constant_value(right)?)?;
            Some((variable, add.checked_sub(less)?))
        }
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i128> {
    match *value {
        Value::Int(value) => Some(value),
        Value::BitVec { bits, .. } => Some(bits.into()),
        _ => None,
    }
}

/// As [`integer`], but the upper half of the bit-vectors are small negative numbers.
fn signed_constant(value: &Value) -> Option<i128> {
    let number = integer(value)?;
    match *value {
        Value::BitVec { width, .. } if number >> (width - 1) & 1 != 0 => {
            Some(number - modulus(width))
        }
        _ => Some(number),
    }
}

fn by_thread(ctp: &ConcurrentTraceProgram, steps: &[Step]) -> Vec<Vec<Step>> {
    let mut threads = vec![Vec::new(); ctp.threads.len()];
    for &step in steps {
        threads[ctp.event(step.write).thread.index()].push(step);
    }
    for steps in &mut threads {
        steps.sort_unstable_by_key(|step| ctp.event(step.write).position);
    }
    threads
}

/// The locks that are held, for writing, from the read to the write of each step.
fn held_by_write(
    ctp: &ConcurrentTraceProgram,
    writes: &HashMap<VariableId, Option<Vec<Step>>>,
) -> HashMap<EventId, Vec<ObjectId>> {
    let position = |event: EventId| ctp.event(event).position;
    // The steps of each thread by the place where they begin.
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); ctp.threads.len()];
    for step in writes.values().flatten().flatten() {
        steps[ctp.event(step.write).thread.index()].push(*step);
    }
    for steps in &mut steps {
        steps.sort_unstable_by_key(|step| position(step.from));
    }
    let mut held: HashMap<EventId, Vec<ObjectId>> = HashMap::new();
    for section in ctp.sections.iter().filter(|section| section.mode == LockMode::Exclusive) {
        let steps = &steps[section.thread.index()];
        let begin = section.acquire.map_or(0, |acquire| position(acquire) + 1);
        let end = section.release.map_or(u32::MAX, position);
        let first = steps.partition_point(|step| position(step.from) < begin);
        for step in steps[first..].iter().take_while(|step| position(step.from) < end) {
            if position(step.write) < end {
                held.entry(step.write).or_default().push(section.lock);
            }
        }
    }
    held
}

/// Does nothing come between the read and the write of a step that changes the variable?
fn are_apart(
    steps: &[Step],
    threads: &[Vec<Step>],
    held: &HashMap<EventId, Vec<ObjectId>>,
) -> bool {
    // Of the own thread: no other write after the read.
    let own = threads.iter().flat_map(|steps| steps.windows(2));
    if own.into_iter().any(|pair| pair[1].from < pair[0].write) {
        return false;
    }
    if steps.iter().all(|step| step.from == step.write)
        || threads.iter().filter(|steps| !steps.is_empty()).count() < 2
    {
        return true;
    }
    let locks = |step: &Step| held.get(&step.write).map_or(&[][..], Vec::as_slice);
    let Some(first) = steps.first() else { return true };
    locks(first).iter().any(|lock| steps.iter().all(|step| locks(step).contains(lock)))
}

const fn modulus(width: u16) -> i128 {
    1 << width
}

/// The same range of bit-vectors as numbers from `least` on that are fewer than the modulus; `None` if
/// it does not fit there.
fn shifted((low, high): (i128, i128), width: u16, least: i128) -> Option<(i128, i128)> {
    let begin = (low - least).rem_euclid(modulus(width)) + least;
    let end = begin.checked_add(high.checked_sub(low)?)?;
    (end < least + modulus(width)).then_some((begin, end))
}

/// The term's value, as far as it is known. Terms are numbered after their arguments.
fn evaluate(terms: &TermStore, term: TermId, symbol: impl Fn(usize) -> Known) -> Known {
    let mut needed = vec![term];
    let mut all: Vec<TermId> = Vec::new();
    let mut seen = std::collections::HashSet::from([term]);
    while let Some(term) = needed.pop() {
        all.push(term);
        if let Term::Apply(_, arguments) = terms.term(term) {
            needed.extend(arguments.iter().filter(|&&argument| seen.insert(argument)));
        }
    }
    all.sort_unstable();
    let mut known: HashMap<TermId, Known> = HashMap::new();
    for &term in &all {
        let value = match terms.term(term) {
            Term::Constant(Value::Bool(value)) => Known::Bool(*value),
            Term::Constant(value) => {
                integer(value).map_or(Known::Nothing, |value| Known::Range(value, value))
            }
            Term::Symbol(id) => symbol(id.index()),
            Term::Apply(operator, arguments) => {
                let values: Vec<Known> = arguments.iter().map(|argument| known[argument]).collect();
                let sort = arguments.first().map(|&argument| terms.sort(argument));
                applied(*operator, &values, sort).unwrap_or(Known::Nothing)
            }
            _ => Known::Nothing,
        };
        known.insert(term, value);
    }
    known[&term]
}

/// An operator on values of which something is known; `sort` is that of the first argument.
fn applied(operator: Operator, values: &[Known], sort: Option<Sort>) -> Option<Known> {
    let width = sort.and_then(Sort::width);
    let truth = |value: &Known| match value {
        Known::Bool(value) => Some(*value),
        _ => None,
    };
    let range = |place: usize| match values.get(place) {
        Some(&Known::Range(low, high)) => Some((low, high)),
        _ => None,
    };
    // Both sides of a comparison, as numbers from `least` on.
    let sides = |least: i128| match width {
        Some(width) => Some((shifted(range(0)?, width, least)?, shifted(range(1)?, width, least)?)),
        None => Some((range(0)?, range(1)?)),
    };
    let less = |sides: Option<((i128, i128), (i128, i128))>, or_equal: bool| {
        let ((low, high), (other_low, other_high)) = sides?;
        let more = i128::from(or_equal);
        if high < other_low + more {
            Some(Known::Bool(true))
        } else if low >= other_high + more {
            Some(Known::Bool(false))
        } else {
            None
        }
    };
    let half = width.map_or(0, |width| -modulus(width - 1));
    match operator {
        Operator::Not => Some(Known::Bool(!truth(&values[0])?)),
        Operator::And if values.contains(&Known::Bool(false)) => Some(Known::Bool(false)),
        Operator::Or if values.contains(&Known::Bool(true)) => Some(Known::Bool(true)),
        Operator::And => {
            values.iter().all(|value| truth(value) == Some(true)).then_some(Known::Bool(true))
        }
        Operator::Or => {
            values.iter().all(|value| truth(value) == Some(false)).then_some(Known::Bool(false))
        }
        Operator::Implies => match values {
            [Known::Bool(false), _] | [_, Known::Bool(true)] => Some(Known::Bool(true)),
            [Known::Bool(true), Known::Bool(false)] => Some(Known::Bool(false)),
            _ => None,
        },
        Operator::Ite => match values {
            [Known::Bool(true), then, _] => Some(*then),
            [Known::Bool(false), _, otherwise] => Some(*otherwise),
            _ => None,
        },
        Operator::Eq if values.len() == 2 => {
            if let (Some(left), Some(right)) = (truth(&values[0]), truth(&values[1])) {
                return Some(Known::Bool(left == right));
            }
            let ((low, high), (other_low, other_high)) = (range(0)?, range(1)?);
            let (least, most) = (low.checked_sub(other_high)?, high.checked_sub(other_low)?);
            let zero = match width {
                Some(width) => -(-least).div_euclid(modulus(width)) * modulus(width),
                None => 0,
            };
            if least == most && zero == least {
                Some(Known::Bool(true))
            } else if zero < least || zero > most {
                Some(Known::Bool(false))
            } else {
                None
            }
        }
        Operator::Add | Operator::BvAdd => {
            let mut sum = (0i128, 0i128);
            for place in 0..values.len() {
                let (low, high) = range(place)?;
                sum = (sum.0.checked_add(low)?, sum.1.checked_add(high)?);
            }
            Some(Known::Range(sum.0, sum.1))
        }
        Operator::Sub | Operator::BvSub if values.len() == 2 => {
            let ((low, high), (other_low, other_high)) = (range(0)?, range(1)?);
            Some(Known::Range(low.checked_sub(other_high)?, high.checked_sub(other_low)?))
        }
        Operator::Neg | Operator::BvNeg => {
            let (low, high) = range(0)?;
            Some(Known::Range(high.checked_neg()?, low.checked_neg()?))
        }
        Operator::ZeroExtend(_) => {
            let (low, high) = shifted(range(0)?, width?, 0)?;
            Some(Known::Range(low, high))
        }
        Operator::SignExtend(_) => {
            let (low, high) = shifted(range(0)?, width?, half)?;
            Some(Known::Range(low, high))
        }
        // The same number, modulo less.
        Operator::Extract { low: 0, .. } => Some(values[0]),
        Operator::Lt if sort == Some(Sort::Scalar(ScalarSort::Int)) => less(sides(0), false),
        Operator::Le if sort == Some(Sort::Scalar(ScalarSort::Int)) => less(sides(0), true),
        Operator::BvUlt => less(sides(0), false),
        Operator::BvUle => less(sides(0), true),
        Operator::BvSlt => less(sides(half), false),
        Operator::BvSle => less(sides(half), true),
        _ => None,
    }
}
