//! The questions about one class: can this choice come out differently in a way that no known class
//! covers?

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role, WOKEN};
use foretell_model::must_order::MustOrder;
use foretell_predict::engine::{Engine, Setting, Verdict};
use foretell_predict::goal::{END, Goal, GoalBuilder, Moment};
use foretell_solve::encode::Mode;
use foretell_solve::{Backend, SolveError};
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, Op, Scope, TermId, Value};

use crate::Limits;
use crate::class::{Class, Kind, PathEvent, ThreadPath, demanded};
use crate::part::Region;
use crate::pending::Model;

/// A place at which a thread may do something else: an event of the thread that is a choice, or the
/// end of what it did where its run was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    thread: usize,
    number: usize,
    cut: bool,
}

impl Choice {
    /// The thread is to go on where its run was cut off.
    pub fn is_cut(self) -> bool {
        self.cut
    }

    /// The thread that chooses.
    pub fn thread(self) -> usize {
        self.thread
    }

    /// Thread and number of its event, if it is one.
    pub fn place(self) -> Option<(usize, usize)> {
        (!self.cut).then_some((self.thread, self.number))
    }

    /// How many events the thread has before it, if it is a choice of this thread.
    pub fn of_thread(self, thread: usize) -> Option<usize> {
        (self.thread == thread).then_some(self.number)
    }
}

/// What came of a question.
pub(crate) enum Answer {
    /// A prefix, as events of the class's trace.
    Yes(Vec<EventId>),
    No,
    Unknown,
    /// The validator refused the solver's answer.
    Refused,
}

impl Class {
    /// The step that a try becomes when it comes out differently: it has to be taken while the state
    /// is the one that was asked for.
    pub fn other_outcome(&self, choice: Choice) -> Option<Step> {
        let event = self.threads[choice.thread].events.get(choice.number)?;
        let origin = self.ctp.event(event.id).origin;
        let operation = match self.trace.event(origin).op {
            Op::Acquire(step) if step.by_try => "acquire-failed",
            Op::AcquireFailed(_) => "acquire",
            Op::SemaphoreWait { by_try: true, .. } => "sem-wait-failed",
            Op::SemaphoreWaitFailed(_) => "sem-wait",
            Op::WaitEnd { timed: true, timed_out, .. } if timed_out => "wait-end",
            Op::WaitEnd { timed: true, .. } => "wait-timeout",
            _ => return None,
        };
        let mut step = Schedule::of_trace(&self.trace, [origin], []).steps.pop()?;
        step.operation = operation.into();
        Some(step)
    }

    /// Every place at which a thread may do something else.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (thread, path) in self.threads.iter().enumerate() {
            for (number, event) in path.events.iter().enumerate() {
                let asked = match event.kind {
                    Kind::Branch | Kind::Addressed | Kind::Try | Kind::Assertion(false) => true,
                    Kind::AwaitFailed => true,
                    // Another round is not asked for, unless it could leave something behind.
                    Kind::Await => !self.round_updates(thread, number).is_empty(),
                    // That it fails is a property, not a deviation: nothing comes after it.
                    Kind::Step | Kind::Assertion(true) => false,
                };
                if asked && event.influenced {
                    choices.push(Choice { thread, number, cut: false });
                }
            }
            if self.is_cut(thread) {
                choices.push(Choice { thread, number: path.events.len(), cut: true });
            }
        }
        choices
    }

    /// Was the question asked about the other class, of which everything is known? That is so where its
    /// thread has the same choices before this one, and all other threads do there all that they do here.
    pub fn was_asked_in(&self, choice: Choice, other: &Class) -> bool {
        self.threads.iter().enumerate().all(|(thread, path)| {
            let Some(theirs) = other.thread(&path.creation) else { return path.events.is_empty() };
            let same = path.agreement(&theirs.events);
            match thread == choice.thread {
                // There has to be something that was asked about.
                true => {
                    let kind = |events: &[PathEvent]| events.get(choice.number).map(|e| e.kind);
                    let round = kind(&path.events) == Some(Kind::Await);
                    same >= choice.number
                        && theirs.events.len() > choice.number
                        && (!round || kind(&theirs.events) == Some(Kind::Await))
                }
                false => same == path.events.len(),
            }
        })
    }

    /// Is it an address that is chosen?
    pub fn is_address(&self, choice: Choice) -> bool {
        let event = self.threads[choice.thread].events.get(choice.number);
        event.is_some_and(|event| event.kind == Kind::Addressed)
    }

    /// The event of the trace at which the thread chooses.
    pub fn chosen(&self, choice: Choice) -> Option<EventId> {
        let event = self.threads[choice.thread].events.get(choice.number)?;
        Some(self.ctp.event(event.id).origin)
    }
}

/// Asks about one class.
pub(crate) struct Questions<'c> {
    asked: Asked<'c>,
    engine: Engine<'c>,
}

/// What is asked about.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'c> {
    class: &'c Class,
    ctp: &'c ConcurrentTraceProgram,
    order: &'c MustOrder,
    /// By thread: the event that it stands before, which does not take place.
    next: &'c [Option<EventId>],
}

impl<'c> Asked<'c> {
    /// A class, with the model in which its threads stand before something where there is one.
    pub fn new(class: &'c Class, model: Option<&'c Model>) -> Self {
        match model {
            Some(Model { ctp, order, next, .. }) => Self { class, ctp, order, next },
            None => Self { class, ctp: &class.ctp, order: &class.order, next: &[] },
        }
    }
}

impl<'c> Questions<'c> {
    /// Encodes the class once for all its questions.
    pub fn new(asked: Asked<'c>, choices: &[Choice], limits: &Limits) -> Result<Self, SolveError> {
        let goals: Vec<Goal> =
            choices.iter().filter_map(|&choice| goal(asked, choice, &[], &[], None)).collect();
        let setting = Setting {
            mode: Mode::Prefix,
            backend: &Backend::Embedded,
            budget: limits.budget,
            context_switches: None,
            deadline: limits.deadline,
            dump: None,
        };
        let engine = Engine::unsliced(asked.ctp, asked.order, goals.iter(), &setting)?;
        Ok(Self { asked, engine })
    }

    /// Can it come out differently in a way that none of the known classes covers?
    pub fn ask<'k>(
        &mut self,
        choice: Choice,
        known: impl Iterator<Item = &'k Class>,
        faults: &[u64],
        region: Option<&Region>,
    ) -> Answer {
        let known: Vec<&Class> =
            known.filter(|known| may_cover(self.asked.class, choice, known)).collect();
        let Some(goal) = goal(self.asked, choice, &known, faults, region) else {
            return Answer::No;
        };
        if goal.is_impossible() {
            return Answer::No;
        }
        match self.engine.ask(&[&goal]) {
            Verdict::Possible(_, witness) => {
                let origin = |&event: &EventId| self.asked.ctp.event(event).origin;
                Answer::Yes(witness.order.iter().map(origin).collect())
            }
            Verdict::Impossible { .. } => Answer::No,
            Verdict::Unknown(_) => Answer::Unknown,
            Verdict::Refused(_) => Answer::Refused,
        }
    }
}

/// Does the known class have the thread's choices up to the one in question, and another outcome of
/// that?
fn may_cover(class: &Class, choice: Choice, known: &Class) -> bool {
    let path = &class.threads[choice.thread];
    let Some(other) = known.thread(&path.creation) else { return false };
    let agrees = path.agrees_before(choice.number, other);
    let theirs = other.events.get(choice.number);
    let ours = path.events.get(choice.number);
    let label = |event: Option<&PathEvent>| event.map(|event| event.label);
    let kind = |event: Option<&PathEvent>| event.map(|event| event.kind);
    // A round that leaves something behind is asked for, and theirs leaves nothing.
    let other_round = kind(ours) == Some(Kind::Await) && kind(theirs) == Some(Kind::AwaitFailed);
    agrees && theirs.is_some() && label(theirs) != label(ours) && !other_round
}

/// The prefixes that are asked for.
///
/// `faults` are addresses at which the program is known to crash there: that is a failure, which no
/// step follows. `None`: none is of interest in the region.
fn goal(
    asked: Asked<'_>,
    choice: Choice,
    known: &[&Class],
    faults: &[u64],
    region: Option<&Region>,
) -> Option<Goal> {
    let class = asked.class;
    let mut builder = GoalBuilder::new(asked.ctp);
    let mut parts = Vec::new();
    for (thread, next) in asked.next.iter().enumerate() {
        let Some(next) = *next else { continue };
        parts.push(builder.terms.before(END, next));
        if choice.is_cut() && thread == choice.thread {
            parts.push(is_enabled(&mut builder, next));
        }
    }
    if let Some(region) = region {
        parts.extend(region.holds(&mut builder, class, choice)?);
    }
    for (thread, path) in class.threads.iter().enumerate() {
        let until = if thread == choice.thread { choice.number } else { path.events.len() };
        whole_steps(&mut builder, path, until, &mut parts);
    }
    let path = &class.threads[choice.thread];
    if let Some(before) = path.step_before(choice.number) {
        parts.push(builder.taken(before));
    }
    if let Some(next) = path.events[choice.number..].iter().find(|event| event.kind.is_step()) {
        parts.push(builder.terms.before(END, next.id));
    }
    if let Some(event) = path.events.get(choice.number) {
        let mut differs = match event.kind {
            Kind::Try => comes_out_differently(&mut builder, class, event.id),
            _ => {
                let same = as_in_class(&mut builder, event.id, event.kind);
                builder.terms.not(same)
            }
        };
        if matches!(event.kind, Kind::Await | Kind::AwaitFailed) {
            // A round that leaves something behind is not one that can be left out.
            let updates = class.round_updates(choice.thread, choice.number);
            let changes = changes(&mut builder, &updates);
            differs = match event.kind {
                Kind::Await => builder.terms.and(&[differs, changes]),
                _ => builder.terms.or(&[differs, changes]),
            };
        }
        parts.push(differs);
    }
    for known in known {
        let clause = not_covered(&mut builder, class, choice, known);
        parts.push(clause);
    }
    if let Some(event) = path.events.get(choice.number) {
        for &address in faults {
            parts.extend(is_other_than(&mut builder, event.id, address));
        }
    }
    let formula = builder.terms.and(&parts);
    Some(builder.finish(formula))
}

/// Who has taken a step has taken the choices after it as in the class. A step that a failing
/// assertion follows is not taken at all: the run would be over. Nor is the last one of a round that leads
/// to another: such rounds are left out.
fn whole_steps(
    builder: &mut GoalBuilder<'_>,
    path: &ThreadPath,
    until: usize,
    parts: &mut Vec<TermId>,
) {
    for (number, event) in path.events[..until].iter().enumerate() {
        if !event.kind.decides() {
            continue;
        }
        let Some(step) = path.step_before(number) else { continue };
        let taken = builder.taken(step);
        let part = match event.kind {
            Kind::Assertion(false) | Kind::AwaitFailed => builder.terms.not(taken),
            _ => {
                let same = as_in_class(builder, event.id, event.kind);
                builder.terms.implies(taken, same)
            }
        };
        parts.push(part);
    }
}

/// The event can take place at the end of the prefix.
fn is_enabled(builder: &mut GoalBuilder<'_>, event: EventId) -> TermId {
    let ctp = builder.ctp();
    let mut parts: Vec<TermId> = match ctp.event(event).action {
        Action::Guarded { guard, .. } => vec![builder.at(Moment::End, guard, None)],
        _ => Vec::new(),
    };
    let orders = ctp.orders.iter().filter(|&&(_, after)| after == event);
    parts.extend(orders.map(|&(before, _)| builder.taken(before)));
    builder.terms.and(&parts)
}

/// The state at the end of the prefix lets the try come out as it did not in the class.
fn comes_out_differently(builder: &mut GoalBuilder<'_>, class: &Class, event: EventId) -> TermId {
    let ctp = builder.ctp();
    let Action::Guarded { guard, assignments } = &ctp.event(event).action else {
        unreachable!("a try is a guarded step")
    };
    let same = builder.at(Moment::End, *guard, None);
    let other = builder.terms.not(same);
    let Op::WaitEnd { timed_out, .. } = class.trace.event(ctp.event(event).origin).op else {
        return other;
    };
    // Either way it needs its mutex; the rest of its guard is whether a signal woke it, and that it can
    // give up before one does was its own choice.
    let free = builder.lock_is_free(event);
    let waiter = assignments.iter().map(|&(variable, _)| variable);
    let waiter = waiter
        .filter(|variable| matches!(ctp.variables[variable.index()].role, Role::Synchronisation(_)))
        .map(|variable| builder.value(Moment::End, variable))
        .next();
    let Some(waiter) = waiter else { return other };
    let Some(width) = builder.terms.sort(waiter).width() else { return other };
    let state = builder.terms.bit_vec(width, if timed_out { WOKEN } else { 0 });
    let differs = builder.differ(waiter, state);
    let ended = builder.terms.not(differs);
    builder.terms.and(&[free, ended])
}

/// One of the read-modify-writes leaves something else behind than it found.
fn changes(builder: &mut GoalBuilder<'_>, updates: &[EventId]) -> TermId {
    let ctp = builder.ctp();
    let mut changes = Vec::new();
    for &update in updates {
        let Action::Guarded { assignments, .. } = &ctp.event(update).action else { continue };
        for &(variable, value) in assignments {
            if ctp.variables[variable.index()].scope == Scope::Shared {
                let before = builder.value(Moment::Before(update), variable);
                let after = builder.at(Moment::Before(update), value, None);
                changes.push(builder.differ(before, after));
            }
        }
    }
    builder.terms.or(&changes)
}

/// The choice comes out as in the class; of an assertion: it comes out as it did.
fn as_in_class(builder: &mut GoalBuilder<'_>, event: EventId, kind: Kind) -> TermId {
    match (kind, &builder.ctp().event(event).action) {
        (Kind::Assertion(held), Action::Assert { condition }) => {
            let holds = builder.at(Moment::Before(event), *condition, None);
            match held {
                true => holds,
                false => builder.terms.not(holds),
            }
        }
        _ => builder.local_guard(event),
    }
}

/// The known class does not cover the prefix: the outcome is another one than its, or a thread has
/// taken a step that it does not take there.
fn not_covered(
    builder: &mut GoalBuilder<'_>,
    class: &Class,
    choice: Choice,
    known: &Class,
) -> TermId {
    let mut literals = Vec::new();
    for (thread, path) in class.threads.iter().enumerate() {
        if thread == choice.thread {
            continue;
        }
        if let Some(step) = path.first_uncovered(known.thread(&path.creation)) {
            literals.push(builder.taken(step));
        }
    }
    let path = &class.threads[choice.thread];
    if let (Some(event), Some(other)) =
        (path.events.get(choice.number), known.thread(&path.creation))
        && let Some(theirs) = other.events.get(choice.number)
        && let Some(value) = theirs.value
        && theirs.value != event.value
    {
        literals.extend(is_other_than(builder, event.id, value));
    }
    builder.terms.or(&literals)
}

/// What the choice demands to be a certain constant is not this one. `None` where the choice is not of
/// that form.
fn is_other_than(builder: &mut GoalBuilder<'_>, event: EventId, value: u64) -> Option<TermId> {
    let (demanded, _) = demanded(builder.ctp(), event)?;
    let sort = builder.ctp().terms.sort(demanded);
    let demanded = builder.at(Moment::Before(event), demanded, None);
    let value = builder.terms.constant(Value::from_bits(sort, value)?);
    Some(builder.differ(demanded, value))
}
