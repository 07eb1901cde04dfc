//! Goals in temporal logic as goals of the solver engine: formulas over the order of the events.
//!
//! An event takes place at most once, so a formula whose every `F` and `O` speaks of an event in its
//! body is about the order of named events only: `F(a & φ)` is "a takes place, and φ holds there",
//! `O b` at `a` is "b is before a". What is not of this kind (`U`, `S`, `X` and `Y` that count
//! single steps) is refused; the planner takes it.
//!
//! As in 003, the run stops with the goal, and a read there is free to see another value. So there
//! is one formula in which all events take place, and one for each read in which the read is next.

use std::collections::HashMap;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::{EventId, Op, TermId, Trace};

use super::compiled_goal::find;
use super::goal::{Formula, GoalError, Unary};
use crate::goal::{END, Goal, GoalBuilder};

/// The goal for the solver engine; `None` when the CTP (of a window) lacks an event of it.
pub fn order_goal(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    formula: &Formula,
) -> Result<Option<Goal>, GoalError> {
    let mut events = HashMap::new();
    for name in formula.events() {
        let Some(origin) = find(trace, name) else {
            return refuse(&format!("there is no event `{name}` in the trace"));
        };
        match ctp.event_of(origin) {
            Some(event) => events.insert(name.to_owned(), event),
            None => return Ok(None),
        };
    }
    let mut translator = Translator { builder: GoalBuilder::new(ctp), events, last: None };
    let mut ways = vec![translator.holds(formula, Moment::Start)?];
    let mut reads: Vec<EventId> = translator.events.values().copied().collect();
    reads.retain(|&event| {
        let op = &trace.event(ctp.event(event).origin).op;
        matches!(op, Op::Read(_) | Op::ReadModifyWrite(_))
    });
    reads.sort_unstable();
    reads.dedup();
    for read in reads {
        let Some(started) = translator.started(trace, read) else { continue };
        translator.last = Some(read);
        let holds = translator.holds(formula, Moment::Start)?;
        translator.last = None;
        let (next, fits) = (translator.builder.next(read), translator.builder.local_guard(read));
        ways.push(translator.builder.terms.and(&[holds, started, next, fits]));
    }
    let formula = translator.builder.terms.or(&ways);
    Ok(Some(translator.builder.finish(formula)))
}

fn refuse<T>(what: &str) -> Result<T, GoalError> {
    Err(GoalError { column: 1, message: what.to_owned() })
}

fn outside_of_the_fragment<T>(what: &str) -> Result<T, GoalError> {
    refuse(&format!("the solver engine does not support {what}; use --engine planner"))
}

/// The step of the run at which a formula is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The first one.
    Start,
    /// The one in which the event takes place.
    At(EventId),
}

struct Translator<'c> {
    builder: GoalBuilder<'c>,
    events: HashMap<String, EventId>,
    /// This event comes right after the end of the prefix.
    last: Option<EventId>,
}

impl Translator<'_> {
    fn event(&self, name: &str) -> EventId {
        self.events[name]
    }

    fn before(&mut self, first: EventId, second: EventId) -> TermId {
        let at = |event: EventId| if self.last == Some(event) { END } else { event };
        let (first, second) = (at(first), at(second));
        self.builder.terms.before(first, second)
    }

    fn taken(&mut self, event: EventId) -> TermId {
        match self.last == Some(event) {
            true => self.builder.terms.bool(true),
            false => self.builder.taken(event),
        }
    }

    /// What lets the event's thread run when the event is its first; `None` when nothing does.
    fn started(&mut self, trace: &Trace, event: EventId) -> Option<TermId> {
        let ctp = self.builder.ctp();
        let thread = ctp.event(event).thread;
        let fork = trace.events.iter().position(|event| event.op == Op::Fork(thread));
        let first = ctp.events.first().map(|event| event.origin);
        match fork.map(EventId::from) {
            Some(fork) if ctp.event(event).position == 0 => match ctp.event_of(fork) {
                Some(fork) => Some(self.builder.taken(fork)),
                None => (Some(fork) < first).then(|| self.builder.terms.bool(true)),
            },
            _ => Some(self.builder.terms.bool(true)),
        }
    }

    fn holds(&mut self, formula: &Formula, at: Moment) -> Result<TermId, GoalError> {
        Ok(match (formula, at) {
            (Formula::Constant(truth), _) => self.builder.terms.bool(*truth),
            (Formula::Event(name), Moment::At(event)) => {
                let same = self.event(name) == event;
                self.builder.terms.bool(same)
            }
            (Formula::Next(name), Moment::At(event)) => {
                let next = self.event(name);
                self.next_at(next, event)
            }
            (Formula::Event(name) | Formula::Next(name), Moment::Start) => {
                return outside_of_the_fragment(&format!("`{name}` outside of F"));
            }
            (Formula::Not(inner), _) => {
                let inner = self.holds(inner, at)?;
                self.builder.terms.not(inner)
            }
            (Formula::And(parts), _) => {
                let parts = self.all(parts, at)?;
                self.builder.terms.and(&parts)
            }
            (Formula::Or(parts), _) => {
                let parts = self.all(parts, at)?;
                self.builder.terms.or(&parts)
            }
            (Formula::Unary(Unary::Finally, body), _) => self.finally(body, at, false)?,
            (Formula::Unary(Unary::Globally, body), _) => {
                let broken = self.finally(&negation(body), at, false)?;
                self.builder.terms.not(broken)
            }
            (Formula::Unary(Unary::Once, body), Moment::At(event)) => {
                self.once(body, event, false)?
            }
            (Formula::Unary(Unary::Historically, body), Moment::At(event)) => {
                let broken = self.once(&negation(body), event, false)?;
                self.builder.terms.not(broken)
            }
            (Formula::Unary(Unary::Next, inner), Moment::At(_)) => match &**inner {
                Formula::Unary(Unary::Finally, body) => self.finally(body, at, true)?,
                _ => return outside_of_the_fragment("X before anything but F"),
            },
            (Formula::Unary(Unary::Yesterday, inner), Moment::At(event)) => match &**inner {
                Formula::Unary(Unary::Once, body) => self.once(body, event, true)?,
                _ => return outside_of_the_fragment("Y before anything but O"),
            },
            (Formula::Unary(..), Moment::Start) => {
                return outside_of_the_fragment("X, Y, O and H outside of F");
            }
            (Formula::Until(..) | Formula::Since(..), _) => {
                return outside_of_the_fragment("U and S");
            }
        })
    }

    fn all(&mut self, parts: &[Formula], at: Moment) -> Result<Vec<TermId>, GoalError> {
        parts.iter().map(|part| self.holds(part, at)).collect()
    }

    /// After the step of `event`, `next` is the next event of its thread.
    fn next_at(&mut self, next: EventId, event: EventId) -> TermId {
        if next == event {
            return self.builder.terms.bool(false);
        }
        let waits = self.before(event, next);
        match self.predecessor(next) {
            Some(before) if before != event => {
                let came = self.before(before, event);
                self.builder.terms.and(&[came, waits])
            }
            _ => waits,
        }
    }

    fn predecessor(&self, event: EventId) -> Option<EventId> {
        let ctp = self.builder.ctp();
        let place = ctp.event(event);
        let before = place.position.checked_sub(1)?;
        Some(ctp.threads[place.thread.index()][before as usize])
    }

    /// The body holds at this moment (unless `strictly`) or a later one.
    fn finally(&mut self, body: &Formula, at: Moment, strictly: bool) -> Result<TermId, GoalError> {
        if let Formula::Or(parts) = body {
            let parts: Result<Vec<TermId>, GoalError> =
                parts.iter().map(|part| self.finally(part, at, strictly)).collect();
            return Ok(self.builder.terms.or(&parts?));
        }
        let Some(event) = conjuncts(body).iter().find_map(|part| self.named(part)) else {
            return self.all_next(body, at);
        };
        let taken = self.taken(event);
        let later = match at {
            Moment::Start => self.builder.terms.bool(true),
            Moment::At(before) if before == event => self.builder.terms.bool(!strictly),
            Moment::At(before) => self.before(before, event),
        };
        let holds = self.holds(body, Moment::At(event))?;
        Ok(self.builder.terms.and(&[taken, later, holds]))
    }

    /// The body held at the event's step (unless `strictly`) or before.
    fn once(
        &mut self,
        body: &Formula,
        event: EventId,
        strictly: bool,
    ) -> Result<TermId, GoalError> {
        if let Formula::Or(parts) = body {
            let parts: Result<Vec<TermId>, GoalError> =
                parts.iter().map(|part| self.once(part, event, strictly)).collect();
            return Ok(self.builder.terms.or(&parts?));
        }
        let Some(earlier) = conjuncts(body).iter().find_map(|part| self.named(part)) else {
            return outside_of_the_fragment("O without an event in its body");
        };
        let order = match earlier == event {
            true => self.builder.terms.bool(!strictly),
            false => self.before(earlier, event),
        };
        let held = self.holds(body, Moment::At(earlier))?;
        Ok(self.builder.terms.and(&[order, held]))
    }

    /// Some time, all these events are the next ones of their threads: what each thread does before
    /// has taken place, and before the events of the others.
    fn all_next(&mut self, body: &Formula, at: Moment) -> Result<TermId, GoalError> {
        let mut events = Vec::new();
        for part in conjuncts(body) {
            match part {
                Formula::Next(name) => events.push(self.event(name)),
                _ => return outside_of_the_fragment("F without an event in its body"),
            }
        }
        let came: Vec<EventId> = events.iter().filter_map(|&e| self.predecessor(e)).collect();
        if at != Moment::Start || came.is_empty() {
            return outside_of_the_fragment("this place for F(next(...))");
        }
        let mut parts = Vec::new();
        for before in came {
            parts.push(self.taken(before));
            for &event in &events {
                parts.push(match before == event {
                    true => self.builder.terms.bool(false),
                    false => self.before(before, event),
                });
            }
        }
        Ok(self.builder.terms.and(&parts))
    }

    fn named(&self, part: &Formula) -> Option<EventId> {
        match part {
            Formula::Event(name) => Some(self.event(name)),
            _ => None,
        }
    }
}

/// The parts of a conjunction.
fn conjuncts(formula: &Formula) -> Vec<&Formula> {
    match formula {
        Formula::And(parts) => parts.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// The negation, with `!` pushed to the atoms so that a body shows its events.
fn negation(formula: &Formula) -> Formula {
    match formula {
        Formula::Not(inner) => (**inner).clone(),
        Formula::And(parts) => Formula::Or(parts.iter().map(negation).collect()),
        Formula::Or(parts) => Formula::And(parts.iter().map(negation).collect()),
        other => Formula::Not(Box::new(other.clone())),
    }
}
