//! The formula of a CTP: its solutions are the feasible linearizations (004 section 4.2, 000
//! section 4.2), or their prefixes (000 section 5). It knows no property; callers add theirs.
//!
//! Terms of the [`Cssa`] keep their ids in the problem, so a property is built from
//! [`Encoding::executed`], `Before` atoms, and the guards, assertions and definitions of the CSSA.
//!
//! - Program order is the chains; must-happens-before is the edges.
//! - Prefixes have one more event, *END*, in a chain of its own. What comes before it is executed;
//!   guards, π-functions and locks count for executed events only.
//! - A lock is not read and written. Two of its sections exclude each other: one's release comes
//!   before the other's acquire.
//! - No event of another thread comes between first and last of an atomic section.

use std::collections::HashMap;

use foretell_model::cssa::Cssa;
pub use foretell_model::ctp::Mode;
use foretell_model::ctp::{ConcurrentTraceProgram, LockSection};
use foretell_model::validate::Witness;
use foretell_trace::{EventId, LockMode, ObjectId, Term, TermId, TermStore, ThreadId, Value};

use crate::problem::{OrderProblem, Pi};
use crate::solver::Model;

/// Which values further formulas may speak of. A use that nothing speaks of needs no π-function.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'t> {
    /// Any value of the CSSA.
    Everything,
    /// These terms of the CSSA, besides guards and precondition.
    Terms(&'t [TermId]),
}

/// A CTP as a question to a solver.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// The question.
    pub problem: OrderProblem,
    /// In [`Mode::Prefix`]: the event that executed events come before.
    pub end: Option<EventId>,
    /// For each event of the CTP: is it executed?
    pub executed: Vec<TermId>,
}

/// The formula of the CTP.
pub fn encode(
    ctp: &ConcurrentTraceProgram,
    cssa: &Cssa,
    mode: Mode,
    observed: Observed,
) -> Encoding {
    let mut terms = cssa.terms.clone();
    let end = (mode == Mode::Prefix).then(|| EventId::from(ctp.events.len()));
    let executed: Vec<TermId> = (0..ctp.events.len())
        .map(|event| match end {
            None => terms.bool(true),
            Some(end) => terms.before(EventId::from(event), end),
        })
        .collect();
    let mut asserted: Vec<TermId> = cssa.precondition.into_iter().collect();
    for (event, &executed) in cssa.events.iter().zip(&executed) {
        asserted.push(terms.implies(executed, event.guard));
    }
    exclude_sections(ctp, &mut terms, &executed, &mut asserted);
    keep_sections_whole(ctp, &mut terms, &executed, &mut asserted);
    asserted.retain(|&formula| !terms.is_true(formula));
    let live = match observed {
        Observed::Everything => vec![true; cssa.pi_functions.len()],
        Observed::Terms(observed) => {
            let guards = cssa.events.iter().map(|event| event.guard);
            cssa.live(guards.chain(cssa.precondition).chain(observed.iter().copied()))
        }
    };
    let pis = cssa
        .pi_functions
        .iter()
        .zip(live)
        .filter(|(_, live)| *live)
        .map(|(pi, _)| Pi {
            event: pi.event,
            active: executed[pi.event.index()],
            symbol: pi.symbol,
            choices: pi.choices.iter().map(|choice| (choice.definition, choice.value)).collect(),
            interfering: pi.interfering.clone(),
        })
        .collect();
    let mut chains = ctp.threads.clone();
    chains.retain(|chain| !chain.is_empty());
    chains.extend(end.map(|end| vec![end]));
    let problem = OrderProblem {
        terms,
        chains,
        edges: cssa.edges.clone(),
        pis,
        asserted,
        names: names(ctp, end),
        deadline: None,
    };
    Encoding { problem, end, executed }
}

/// `thread.position` for each event, by number.
fn names(ctp: &ConcurrentTraceProgram, end: Option<EventId>) -> Vec<String> {
    let events = ctp.events.iter().map(|event| format!("t{}.{}", event.thread.0, event.position));
    events.chain(end.map(|_| "END".into())).collect()
}

/// For two sections of one lock of which one is exclusive: if both are entered, one is left before
/// the other is entered.
fn exclude_sections(
    ctp: &ConcurrentTraceProgram,
    terms: &mut TermStore,
    executed: &[TermId],
    asserted: &mut Vec<TermId>,
) {
    let mut by_lock: HashMap<ObjectId, Vec<&LockSection>> = HashMap::new();
    for section in &ctp.sections {
        by_lock.entry(section.lock).or_default().push(section);
    }
    let mut locks: Vec<_> = by_lock.into_iter().collect();
    locks.sort_unstable_by_key(|&(lock, _)| lock);
    for (_, sections) in locks {
        for (index, &one) in sections.iter().enumerate() {
            for &other in &sections[index + 1..] {
                if one.mode == LockMode::Shared && other.mode == LockMode::Shared {
                    continue;
                }
                if let Some(formula) = exclude(ctp, terms, executed, one, other) {
                    asserted.push(formula);
                }
            }
        }
    }
}

fn exclude(
    ctp: &ConcurrentTraceProgram,
    terms: &mut TermStore,
    executed: &[TermId],
    one: &LockSection,
    other: &LockSection,
) -> Option<TermId> {
    let position = |event: EventId| ctp.event(event).position;
    if one.thread == other.thread {
        // Program order decides; a thread that waits for itself never goes on.
        let (first, second) = match (one.acquire, other.acquire) {
            (Some(a), Some(b)) if position(b) < position(a) => (other, one),
            (_, None) => (other, one),
            _ => (one, other),
        };
        let entered = second.acquire?;
        let left = first.release.is_some_and(|release| position(release) < position(entered));
        return (!left).then(|| terms.not(executed[entered.index()]));
    }
    let mut way = |first: &LockSection, second: &LockSection| match (first.release, second.acquire)
    {
        (Some(release), Some(acquire)) => terms.before(release, acquire),
        _ => terms.bool(false),
    };
    let mut ways = vec![way(one, other), way(other, one)];
    for section in [one, other] {
        if let Some(acquire) = section.acquire {
            ways.push(terms.not(executed[acquire.index()]));
        }
    }
    Some(terms.or(&ways))
}

/// No executed event of another thread between first and last event of an atomic section.
fn keep_sections_whole(
    ctp: &ConcurrentTraceProgram,
    terms: &mut TermStore,
    executed: &[TermId],
    asserted: &mut Vec<TermId>,
) {
    for &(first, last) in &ctp.atomic_sections {
        if first == last {
            continue;
        }
        let thread: ThreadId = ctp.event(first).thread;
        for event in (0..ctp.events.len()).map(EventId::from) {
            if ctp.event(event).thread != thread {
                let skipped = terms.not(executed[event.index()]);
                let (earlier, later) = (terms.before(event, first), terms.before(last, event));
                asserted.push(terms.or(&[skipped, earlier, later]));
            }
        }
    }
}

impl Encoding {
    /// The witness that a solution is.
    pub fn decode(&self, ctp: &ConcurrentTraceProgram, cssa: &Cssa, model: &Model) -> Witness {
        let inside = model.order.iter().copied().take_while(|&event| Some(event) != self.end);
        let order: Vec<EventId> = inside.collect();
        let value = |symbol: TermId| match cssa.terms.term(symbol) {
            Term::Symbol(id) => model.values.get(id).cloned(),
            _ => cssa.terms.constant_value(symbol).cloned(),
        };
        // What the model leaves open does not matter, but the validator needs a value.
        let or_any = |symbol| value(symbol).unwrap_or_else(|| Value::zero(cssa.terms.sort(symbol)));
        let free = ctp.variables.iter().zip(&cssa.initial).enumerate();
        let initial = free
            .filter(|(_, (variable, _))| variable.initial.is_none())
            .map(|(index, (_, &symbol))| (index.into(), or_any(symbol)))
            .collect();
        let choices = cssa
            .choices
            .iter()
            .filter(|(event, ..)| order.contains(event))
            .map(|&(event, variable, symbol)| (event, variable, or_any(symbol)))
            .collect();
        Witness { order, initial, choices }
    }
}
