//! Terms: sorts, leaves, and values.
//!
//! What is asked of an event's terms is summed up once for every term of the store, from the leaves
//! up, so that terms which events share are looked at once.

use super::{Faults, Sound};
use crate::event::{Access, Condition, Event, Op};
use crate::id::{EventId, TermId, ThreadId, VariableId};
use crate::term::{Sort, Term, Value};
use crate::trace::{Scope, Trace};

/// Nothing, one thing, or several different things.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Which<T> {
    #[default]
    Nothing,
    One(T),
    Several,
}

impl<T: Copy + PartialEq> Which<T> {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Which::Nothing, which) | (which, Which::Nothing) => which,
            (Which::One(a), Which::One(b)) if a == b => self,
            _ => Which::Several,
        }
    }

    /// Something other than `only`?
    fn beyond(self, only: T) -> bool {
        match self {
            Which::Nothing => false,
            Which::One(one) => one != only,
            Which::Several => true,
        }
    }
}

/// What stands below a term.
#[derive(Clone, Copy, Default)]
struct Summary {
    /// Whose reads, and the latest index among them.
    reader: Which<ThreadId>,
    latest_read: Option<u32>,
    /// Whose locals.
    owner: Which<ThreadId>,
    /// A variable's value before or after the step.
    variable: bool,
    primed: bool,
    /// A leaf that refers to nothing.
    broken: Option<TermId>,
}

pub(super) struct Summaries<'t> {
    trace: &'t Trace,
    below: Vec<Summary>,
    /// What each term is worth with the recorded values of reads.
    values: Vec<Option<Value>>,
}

impl<'t> Summaries<'t> {
    pub(super) fn new(trace: &'t Trace, sound: &Sound) -> Self {
        let reads = Reads::new(trace, sound);
        let terms = &trace.terms;
        let mut below: Vec<Summary> = Vec::with_capacity(terms.len());
        for number in 0..terms.len() {
            let id = TermId::from(number);
            let broken = |fine: bool| if fine { None } else { Some(id) };
            let variable = |variable: VariableId| {
                let variable = trace.variables.get(variable.index());
                Summary {
                    owner: match variable.map(|variable| variable.scope) {
                        Some(Scope::Local(thread)) => Which::One(thread),
                        _ => Which::Nothing,
                    },
                    variable: true,
                    broken: broken(variable.is_some_and(|found| found.sort == terms.sort(id))),
                    ..Summary::default()
                }
            };
            below.push(match terms.term(id) {
                Term::Constant(_) => Summary::default(),
                Term::Variable(of) => variable(*of),
                Term::Primed(of) => Summary { primed: true, ..variable(*of) },
                Term::ReadValue(thread, index) => Summary {
                    reader: Which::One(*thread),
                    latest_read: Some(*index),
                    broken: broken(reads.sort(*thread, *index) == Some(terms.sort(id))),
                    ..Summary::default()
                },
                Term::Before(first, second) => {
                    let last = (*first).max(*second);
                    Summary {
                        broken: broken(last.index() < trace.events.len()),
                        ..Summary::default()
                    }
                }
                Term::Symbol(_) => Summary { broken: Some(id), ..Summary::default() },
                Term::Apply(_, arguments) => {
                    arguments.iter().fold(Summary::default(), |sum: Summary, argument| {
                        let part = below[argument.index()];
                        Summary {
                            reader: sum.reader.and(part.reader),
                            latest_read: sum.latest_read.max(part.latest_read),
                            owner: sum.owner.and(part.owner),
                            variable: sum.variable || part.variable,
                            primed: sum.primed || part.primed,
                            broken: sum.broken.or(part.broken),
                        }
                    })
                }
            });
        }
        let values = terms.evaluate_all(&|leaf: &Term| match leaf {
            Term::ReadValue(thread, index) => reads.value(*thread, *index),
            Term::Before(first, second) if trace.metadata.observed_order => {
                Some(Value::Bool(first < second))
            }
            _ => None,
        });
        Self { trace, below, values }
    }

    pub(super) fn step(&self, id: EventId, event: &Event, faults: &mut Faults<'_>) {
        let before = event.index.checked_sub(1);
        for term in event.op.terms() {
            let own = match event.op {
                Op::ReadModifyWrite(_) => Some(event.index), // its own read counts
                _ => before,
            };
            let primes = matches!(event.op, Op::Transition(_));
            self.leaves(id, event, term, own, primes, faults);
        }
        match &event.op {
            Op::Read(access) => self.access(id, access, faults),
            Op::Write(access) => {
                self.access(id, access, faults);
                self.written(id, access.variable, access.term, access.value, faults);
            }
            Op::ReadModifyWrite(step) => {
                self.address(id, step.variable, step.address, faults);
                self.written(id, step.variable, step.term, step.new, faults);
            }
            Op::Branch(condition) | Op::Assert(condition) => {
                self.condition(id, condition, faults);
            }
            Op::Guarded(step) => {
                self.truth(id, step.guard, "the guard", faults);
                for &(variable, term) in &step.assignments {
                    self.of_sort(id, variable, term, faults);
                }
            }
            Op::Transition(step) => self.truth(id, step.predicate, "the predicate", faults),
            _ => {}
        }
    }

    fn leaves(
        &self,
        id: EventId,
        event: &Event,
        term: TermId,
        latest: Option<u32>,
        primes: bool,
        faults: &mut Faults<'_>,
    ) {
        let below = self.below[term.index()];
        if let Some(leaf) = below.broken {
            let what = match self.trace.terms.term(leaf) {
                Term::ReadValue(thread, index) => {
                    let thread = self.trace.threads.get(thread.index());
                    let name = thread.map_or("?", |thread| &*thread.name);
                    format!("what {name}#{index} read, which is no read of that sort")
                }
                Term::Before(..) => "an event that does not exist".into(),
                Term::Symbol(_) => "a symbol, which has no meaning in a trace".into(),
                _ => "a variable that does not exist or has another sort".into(),
            };
            faults.at(id, format!("has a term over {what}"));
            return;
        }
        if below.reader.beyond(event.thread) {
            faults.at(id, "has a term over what another thread read");
        } else if below.latest_read > latest {
            faults.at(id, "has a term over what it has not read yet");
        }
        if below.owner.beyond(event.thread) {
            faults.at(id, "has a term over another thread's local");
        }
        if below.primed && !primes {
            faults.at(id, "has a term over values after the step, but is no transition");
        }
    }

    /// Why the term does not speak of initial values alone.
    pub(super) fn not_over_initial_values(&self, term: TermId) -> Option<&'static str> {
        let below = self.below[term.index()];
        if below.broken.is_some() {
            Some("refers to something that does not exist")
        } else if below.primed || below.reader != Which::Nothing {
            Some("speaks of other values than the initial ones")
        } else {
            None
        }
    }

    fn access(&self, id: EventId, access: &Access, faults: &mut Faults<'_>) {
        self.address(id, access.variable, access.address, faults);
    }

    fn address(
        &self,
        id: EventId,
        variable: VariableId,
        address: Option<TermId>,
        faults: &mut Faults<'_>,
    ) {
        let range = self.trace.variables[variable.index()].memory;
        let value = address.and_then(|term| self.values[term.index()].as_ref());
        let value = match value {
            Some(Value::BitVec { bits, .. }) => Some(*bits),
            Some(Value::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        if let (Some(range), Some(value)) = (range, value)
            && range.address != value
        {
            let name = faults.variable(variable).to_owned();
            let place = range.address;
            faults.at(id, format!("accesses {name} at {place:#x}, but its address is {value:#x}"));
        }
    }

    fn of_sort(
        &self,
        id: EventId,
        variable: VariableId,
        term: TermId,
        faults: &mut Faults<'_>,
    ) -> bool {
        let (sort, found) =
            (self.trace.variables[variable.index()].sort, self.trace.terms.sort(term));
        if sort != found {
            let name = faults.variable(variable).to_owned();
            faults.at(id, format!("gives {name} of sort {sort} a term of sort {found}"));
        }
        sort == found
    }

    fn written(
        &self,
        id: EventId,
        variable: VariableId,
        term: Option<TermId>,
        bits: Option<u64>,
        faults: &mut Faults<'_>,
    ) {
        let Some(term) = term else { return };
        if !self.of_sort(id, variable, term, faults) {
            return;
        }
        let recorded = bits.and_then(|bits| Value::from_bits(self.trace.terms.sort(term), bits));
        if let (Some(bits), Some(recorded), Some(value)) =
            (bits, recorded, &self.values[term.index()])
            && recorded != *value
        {
            let name = faults.variable(variable).to_owned();
            let value = crate::sexpr::print_value(value);
            faults.at(id, format!("writes {bits} to {name}, but its term is {value}"));
        }
    }

    fn truth(&self, id: EventId, term: TermId, what: &str, faults: &mut Faults<'_>) {
        if self.trace.terms.sort(term) != Sort::BOOL {
            faults.at(id, format!("{what} is not a truth value"));
        }
    }

    fn condition(&self, id: EventId, condition: &Condition, faults: &mut Faults<'_>) {
        let Some(term) = condition.term else { return };
        self.truth(id, term, "the condition", faults);
        // An outcome in a trace that nobody observed (CTRC) is what should be, not what was.
        if self.trace.metadata.observed_order
            && let Some(Value::Bool(value)) = self.values[term.index()]
            && value != condition.outcome
        {
            let outcome = condition.outcome;
            faults.at(id, format!("was {outcome}, but its condition is {value}"));
        }
    }
}

/// What the events of each thread read.
struct Reads<'t> {
    trace: &'t Trace,
    events: Vec<Vec<EventId>>,
    sound: &'t Sound,
}

impl<'t> Reads<'t> {
    fn new(trace: &'t Trace, sound: &'t Sound) -> Self {
        let mut events = vec![Vec::new(); trace.threads.len()];
        for (position, event) in trace.events.iter().enumerate() {
            if let Some(chain) = events.get_mut(event.thread.index()) {
                chain.push(EventId::from(position));
            }
        }
        Self { trace, events, sound }
    }

    fn read(&self, thread: ThreadId, index: u32) -> Option<(VariableId, Option<u64>)> {
        let event = *self.events.get(thread.index())?.get(index as usize)?;
        if !self.sound.0[event.index()] {
            return None;
        }
        match &self.trace.event(event).op {
            Op::Read(access) => Some((access.variable, access.value)),
            Op::ReadModifyWrite(step) => Some((step.variable, step.old)),
            _ => None,
        }
    }

    fn sort(&self, thread: ThreadId, index: u32) -> Option<Sort> {
        let (variable, _) = self.read(thread, index)?;
        Some(self.trace.variables[variable.index()].sort)
    }

    fn value(&self, thread: ThreadId, index: u32) -> Option<Value> {
        let (variable, bits) = self.read(thread, index)?;
        Value::from_bits(self.trace.variables[variable.index()].sort, bits?)
    }
}
