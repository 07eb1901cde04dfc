//! How many interleavings a CTP stands for.
//!
//! Counted are the orders of the events that several threads can tell apart: what touches only
//! variables of one thread follows the event before it at once. Interleavings that lead to the same
//! configuration are counted together, so the cost is that of the configurations, not of the
//! interleavings. An assertion that fails ends its interleaving, which counts as one.

use rustc_hash::{FxHashMap, FxHashSet};

use foretell_trace::{EventId, Term, ThreadId, Value, VariableId};

use crate::ctp::{Action, ConcurrentTraceProgram, CtpVariable};
use crate::validate::{Configuration, Interpreter, Obstacle};

/// A configuration with more values than this counts as several.
const VALUES: usize = 1_000;

/// The number of interleavings in which every event takes place. `configurations` is how many may be
/// looked at, and what is left of that afterwards; large ones count for more. `None`: there are more, or a value matters that is not
/// known before the first event.
pub fn interleavings(ctp: &ConcurrentTraceProgram, configurations: &mut usize) -> Option<f64> {
    let counter = Counter::new(ctp);
    let threads = || (0..ctp.threads.len()).map(ThreadId::from);
    // Nobody looks at a value that is not known.
    let unknown = (0..ctp.variables.len()).map(VariableId::from).filter_map(|variable| {
        let CtpVariable { sort, initial: None, .. } = ctp.variables[variable.index()] else {
            return None;
        };
        Some((variable, Value::from_bits(sort, 0)?))
    });
    let mut start = counter.interpreter.start(&unknown.collect::<Vec<_>>()).ok()?;
    for thread in threads() {
        // An event that nobody can disturb and that cannot take place never will.
        match counter.advance(&mut start, thread)? {
            Reached::Goes => {}
            Reached::Failed => return Some(1.0),
            Reached::Elsewhere => return Some(0.0),
        }
    }
    let weight = 1 + ctp.variables.len() / VALUES;
    let mut total = 0.0;
    // Ways to each configuration after the same number of steps.
    let mut layer: FxHashMap<Configuration, f64> = FxHashMap::from_iter([(start, 1.0)]);
    while !layer.is_empty() {
        *configurations = configurations.checked_sub(layer.len() * weight)?;
        let mut next: FxHashMap<Configuration, f64> = FxHashMap::default();
        for (at, ways) in layer {
            if counter.interpreter.is_complete(&at) {
                total += ways;
                continue;
            }
            for thread in threads() {
                let mut after = at.clone();
                match counter.step(&mut after, thread)? {
                    Reached::Goes => *next.entry(after).or_default() += ways,
                    Reached::Failed => total += ways,
                    Reached::Elsewhere => {}
                }
            }
        }
        layer = next;
    }
    Some(total)
}

/// Where a thread's step led.
enum Reached {
    Goes,
    /// An assertion failed.
    Failed,
    /// Nowhere: it is not possible, or the thread takes another path after it.
    Elsewhere,
}

struct Counter<'c> {
    interpreter: Interpreter<'c>,
    is_local: FxHashSet<EventId>,
    /// By event: for each variable that it reads and whose first value is not known, who writes it.
    needs: FxHashMap<EventId, Vec<Vec<EventId>>>,
}

impl<'c> Counter<'c> {
    fn new(ctp: &'c ConcurrentTraceProgram) -> Self {
        let mut writers: FxHashMap<VariableId, Vec<EventId>> = FxHashMap::default();
        for (number, event) in ctp.events.iter().enumerate() {
            for variable in event.action.defined() {
                writers.entry(variable).or_default().push(EventId::from(number));
            }
        }
        let mut needs: FxHashMap<EventId, Vec<Vec<EventId>>> = FxHashMap::default();
        for (number, event) in ctp.events.iter().enumerate() {
            for variable in read(ctp, &event.action) {
                if ctp.variables[variable.index()].initial.is_none() {
                    let writers = writers.get(&variable).cloned().unwrap_or_default();
                    needs.entry(EventId::from(number)).or_default().push(writers);
                }
            }
        }
        Self { interpreter: Interpreter::new(ctp), is_local: local_events(ctp), needs }
    }

    /// The thread's next event, and what follows it at once. `None`: that depends on an input.
    fn step(&self, at: &mut Configuration, thread: ThreadId) -> Option<Reached> {
        let Some(event) = self.interpreter.next_event(at, thread) else {
            return Some(Reached::Elsewhere);
        };
        match self.take(at, event)? {
            Reached::Goes => self.advance(at, thread),
            reached => Some(reached),
        }
    }

    /// The thread's local events from here on.
    fn advance(&self, at: &mut Configuration, thread: ThreadId) -> Option<Reached> {
        while let Some(event) = self.interpreter.next_event(at, thread)
            && self.is_local.contains(&event)
        {
            match self.take(at, event)? {
                Reached::Goes => {}
                reached => return Some(reached),
            }
        }
        Some(Reached::Goes)
    }

    fn take(&self, at: &mut Configuration, event: EventId) -> Option<Reached> {
        let is_executed = |writer: &EventId| self.interpreter.is_executed(at, *writer);
        let mut needs = self.needs.get(&event).into_iter().flatten();
        let is_known = needs.all(|writers| writers.iter().any(is_executed));
        match self.interpreter.step(at, event, &[]) {
            Err(Obstacle::ProgramOrder | Obstacle::FixedOrder(_) | Obstacle::AtomicSection(_)) => {
                Some(Reached::Elsewhere)
            }
            _ if !is_known => None,
            Ok(effect) if effect.violation => Some(Reached::Failed),
            Ok(_) => Some(Reached::Goes),
            Err(Obstacle::Choice) => None,
            Err(_) => Some(Reached::Elsewhere),
        }
    }
}

/// The events that touch only variables that no other thread touches, and that wait for nobody.
fn local_events(ctp: &ConcurrentTraceProgram) -> FxHashSet<EventId> {
    let touched: Vec<Vec<VariableId>> =
        ctp.events.iter().map(|event| touched(ctp, &event.action)).collect();
    let mut owner: Vec<Option<ThreadId>> = vec![None; ctp.variables.len()];
    let mut is_shared = vec![false; ctp.variables.len()];
    for (event, variables) in ctp.events.iter().zip(&touched) {
        for variable in variables {
            let owner = owner[variable.index()].get_or_insert(event.thread);
            is_shared[variable.index()] |= *owner != event.thread;
        }
    }
    let ordered: FxHashSet<EventId> =
        ctp.orders.iter().flat_map(|&(before, after)| [before, after]).collect();
    let all =
        touched.iter().enumerate().map(|(event, variables)| (EventId::from(event), variables));
    all.filter(|(event, variables)| {
        !ordered.contains(event) && variables.iter().all(|variable| !is_shared[variable.index()])
    })
    .map(|(event, _)| event)
    .collect()
}

/// What the action reads and changes.
fn touched(ctp: &ConcurrentTraceProgram, action: &Action) -> Vec<VariableId> {
    let mut variables = read(ctp, action);
    variables.extend(action.defined());
    variables
}

fn read(ctp: &ConcurrentTraceProgram, action: &Action) -> Vec<VariableId> {
    let terms = match action {
        Action::Guarded { guard, assignments } => {
            let values = assignments.iter().map(|&(_, term)| term);
            values.chain([*guard]).collect()
        }
        Action::Transition { predicate, .. } => vec![*predicate],
        Action::Assert { condition } => vec![*condition],
    };
    let leaves = terms.into_iter().flat_map(|term| ctp.terms.leaves(term));
    let variable = |leaf| match *ctp.terms.term(leaf) {
        Term::Variable(variable) | Term::Primed(variable) => Some(variable),
        _ => None,
    };
    leaves.filter_map(variable).collect()
}
