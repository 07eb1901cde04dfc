//! The questions about one class: can this choice come out differently in a way that no known class
//! covers?

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_model::must_order::MustOrder;
use foretell_predict::counters::Counters;
use foretell_predict::engine::{Engine, Setting, Verdict};
use foretell_predict::flag_section::add_flag_sections;
use foretell_predict::goal::{END, Goal, GoalBuilder, Moment};
use foretell_solve::encode::Mode;
use foretell_solve::{Backend, SolveError};
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::sync::transition::WOKEN;
use foretell_trace::{EventId, Op, Scope, SyncOp, TermId, Value};

use crate::class::{Class, Kind, Label, PathEvent, Paths, ThreadPath, demanded};
use crate::part::Region;
use crate::pending::Model;
use crate::{Limits, Open};

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

/// A place in the code at which threads choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    cut: bool,
    event: Option<Label>,
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
            Op::Sync(_, SyncOp::Acquire(step)) if step.by_try => "acquire-failed",
            Op::Sync(_, SyncOp::AcquireFailed(_)) => "acquire",
            Op::Sync(_, SyncOp::SemaphoreWait { by_try: true, .. }) => "sem-wait-failed",
            Op::Sync(_, SyncOp::SemaphoreWaitFailed) => "sem-wait",
            Op::Sync(_, SyncOp::WaitEnd { timed: true, timed_out, .. }) if timed_out => "wait-end",
            Op::Sync(_, SyncOp::WaitEnd { timed: true, .. }) => "wait-timeout",
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
    pub fn was_asked_in(&self, choice: Choice, shared: &Shared) -> bool {
        self.threads.iter().enumerate().all(|(thread, path)| {
            let (theirs, same) = shared.thread(thread);
            let Some(theirs) = theirs else { return path.events.is_empty() };
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

impl Paths {
    /// The place in the code at which the thread chooses, and how it came out; where its run was cut off,
    /// that of what it did last.
    pub fn place(&self, choice: Choice) -> Place {
        let events = &self.threads[choice.thread].events;
        let event = match choice.cut {
            true => events.last(),
            false => events.get(choice.number),
        };
        Place { cut: choice.cut, event: event.map(|event| event.place) }
    }
}

/// What a class has in common with another one.
pub(crate) struct Shared {
    other: Rc<Paths>,
    /// For each thread of the class: which it is in the other, and how many first events are the same.
    threads: Vec<(Option<usize>, usize)>,
}

impl Shared {
    pub fn new(class: &Paths, other: &Rc<Paths>) -> Self {
        let threads = class.threads.iter().map(|path| {
            let mut theirs = other.threads.iter();
            let there = theirs.position(|theirs| theirs.creation == path.creation);
            let same = |there: usize| path.agreement(&other.threads[there].events);
            (there, there.map_or(0, same))
        });
        Self { threads: threads.collect(), other: Rc::clone(other) }
    }

    /// What the thread did in the other class, and how many first events are the same.
    fn thread(&self, thread: usize) -> (Option<&ThreadPath>, usize) {
        let (there, same) = self.threads[thread];
        (there.map(|there| &self.other.threads[there]), same)
    }
}

/// Asks about one class.
///
/// What all its questions have in common is in the solver once: that who has taken a step has taken the
/// choices after it as in the class ([`whole_steps`]), as one term for each choice of a thread, which holds
/// for that choice and all before it. A question takes of each thread the last of these terms, of the thread
/// that chooses the last one before its choice, and adds what is its own: where the thread stands, that it
/// comes out differently, and a clause for each known class.
pub(crate) struct Questions<'c> {
    asked: Asked<'c>,
    engine: Engine<'c>,
    /// For each thread: numbers of choices, and that these and all before them come out as in the class.
    common: Vec<Vec<(usize, TermId)>>,
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

    /// Leaves out what can only come out as it did, whatever classes are known.
    pub fn retain_possible(self, open: &mut VecDeque<Open>) {
        let mut ctp = self.ctp.clone();
        add_flag_sections(&mut ctp);
        let counters = Counters::new(&ctp, self.order);
        open.retain(|open| {
            goal(self, open.choice, &[], &[], None).is_some_and(|goal| !counters.refute(&goal))
        });
    }
}

impl<'c> Questions<'c> {
    /// Encodes the class once for all its questions.
    pub fn new(asked: Asked<'c>, choices: &[Choice], limits: &Limits) -> Result<Self, SolveError> {
        let common: Vec<Vec<(usize, Goal)>> =
            asked.class.threads.iter().map(|path| whole_steps(asked, path)).collect();
        let own: Vec<Goal> =
            choices.iter().filter_map(|&choice| goal(asked, choice, &[], &[], None)).collect();
        let setting = Setting {
            mode: Mode::Prefix,
            backend: &Backend::Embedded,
            budget: limits.budget,
            context_switches: None,
            deadline: limits.deadline,
            dump: None,
        };
        let all = common.iter().flatten().map(|(_, goal)| goal).chain(&own);
        let mut engine = Engine::unsliced(asked.ctp, asked.order, all, &setting)?;
        let common = common
            .into_iter()
            .map(|of_thread| {
                let mut so_far = engine.terms().bool(true);
                let together = |(number, goal): (usize, Goal)| {
                    let here = engine.formula(&goal);
                    so_far = engine.terms().and(&[so_far, here]);
                    (number, so_far)
                };
                of_thread.into_iter().map(together).collect()
            })
            .collect();
        Ok(Self { asked, engine, common })
    }

    /// Do all of these come out as they did wherever no known class covers it? Asked at once: at the end of
    /// an exploration nearly all answers are no. (False: ask one by one.) It is the same formulas that
    /// [`Questions::ask`] asks about, also of threads that were cut off: so it says no to each of them.
    pub fn is_settled<'f>(
        &mut self,
        choices: impl Iterator<Item = (Choice, &'f [u64])>,
        known: &[Shared],
        region: Option<&Region>,
    ) -> bool {
        let mut formulas = Vec::new();
        for (choice, faults) in choices {
            formulas.extend(self.formula(choice, known, faults, region));
        }
        let any = self.engine.terms().or(&formulas);
        formulas.is_empty() || self.engine.is_impossible(any)
    }

    /// Can it come out differently in a way that none of the known classes covers?
    pub fn ask(
        &mut self,
        choice: Choice,
        known: &[Shared],
        faults: &[u64],
        region: Option<&Region>,
    ) -> Answer {
        let asked = self.asked;
        let Some(formula) = self.formula(choice, known, faults, region) else {
            return Answer::No;
        };
        let whole = || {
            let threads = asked.class.threads.iter().enumerate();
            let mut goals: Vec<Goal> = threads
                .flat_map(|(thread, path)| {
                    let until = choice.of_thread(thread).unwrap_or(usize::MAX);
                    let before = whole_steps(asked, path).into_iter();
                    before.take_while(move |(number, _)| *number < until).map(|(_, goal)| goal)
                })
                .collect();
            goals.extend(goal(asked, choice, known, faults, region));
            goals
        };
        match self.engine.ask_for(formula, whole) {
            Verdict::Possible(_, witness) => {
                let origin = |&event: &EventId| asked.ctp.event(event).origin;
                Answer::Yes(witness.order.iter().map(origin).collect())
            }
            Verdict::Impossible { .. } => Answer::No,
            Verdict::Unknown(_) => Answer::Unknown,
            Verdict::Refused(_) => Answer::Refused,
        }
    }

    /// The prefixes that are asked for; `None` if there cannot be any.
    fn formula(
        &mut self,
        choice: Choice,
        known: &[Shared],
        faults: &[u64],
        region: Option<&Region>,
    ) -> Option<TermId> {
        let goal = goal(self.asked, choice, known, faults, region)?;
        if goal.is_impossible() {
            return None;
        }
        let mut parts = vec![self.engine.formula(&goal)];
        for (thread, common) in self.common.iter().enumerate() {
            let until = choice.of_thread(thread).unwrap_or(usize::MAX);
            let before = common.partition_point(|(number, _)| *number < until);
            parts.extend(before.checked_sub(1).map(|last| common[last].1));
        }
        Some(self.engine.terms().and(&parts))
    }
}

/// Does the known class have the thread's choices up to the one in question, and another outcome of
/// that?
fn may_cover(class: &Class, choice: Choice, known: &Shared) -> bool {
    let path = &class.threads[choice.thread];
    let (Some(other), same) = known.thread(choice.thread) else { return false };
    let agrees = same >= choice.number;
    let theirs = other.events.get(choice.number);
    let ours = path.events.get(choice.number);
    let label = |event: Option<&PathEvent>| event.map(|event| event.label);
    let kind = |event: Option<&PathEvent>| event.map(|event| event.kind);
    // A round that leaves something behind is asked for, and theirs leaves nothing.
    let other_round = kind(ours) == Some(Kind::Await) && kind(theirs) == Some(Kind::AwaitFailed);
    agrees && theirs.is_some() && label(theirs) != label(ours) && !other_round
}

/// What is asked for besides whole steps: the thread stands before the choice, which comes out differently,
/// and no known class covers it.
///
/// `faults` are addresses at which the program is known to crash there: that is a failure, which no
/// step follows. `None`: none is of interest in the region.
fn goal(
    asked: Asked<'_>,
    choice: Choice,
    known: &[Shared],
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
    let known = known.iter().filter(|known| may_cover(class, choice, known));
    for reasons in strongest(known.map(|known| Reasons::new(class, choice, known))) {
        parts.push(reasons.clause(&mut builder, path.events.get(choice.number)));
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
///
/// For each choice of the thread, by its number.
fn whole_steps(asked: Asked<'_>, path: &ThreadPath) -> Vec<(usize, Goal)> {
    let mut goals = Vec::new();
    for (number, event) in path.events.iter().enumerate() {
        if !event.kind.decides() {
            continue;
        }
        let Some(step) = path.step_before(number) else { continue };
        let mut builder = GoalBuilder::new(asked.ctp);
        let taken = builder.taken(step);
        let part = match event.kind {
            Kind::Assertion(false) | Kind::AwaitFailed => builder.terms.not(taken),
            _ => {
                let same = as_in_class(&mut builder, event.id, event.kind);
                builder.terms.implies(taken, same)
            }
        };
        goals.push((number, builder.finish(part)));
    }
    goals
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
    let Op::Sync(_, SyncOp::WaitEnd { timed_out, .. }) =
        class.trace.event(ctp.event(event).origin).op
    else {
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

/// Why a known class does not cover a prefix: the outcome is another one than its, or a thread has taken a
/// step that it does not take there.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Reasons {
    /// For each thread, that step; `None` if there is none.
    steps: Vec<Option<EventId>>,
    /// What the choice demands there, if it demands a constant and another one than here.
    value: Option<u64>,
}

impl Reasons {
    fn new(class: &Class, choice: Choice, known: &Shared) -> Self {
        let step = |(thread, path): (usize, &ThreadPath)| match thread == choice.thread {
            true => None,
            false => path.first_uncovered(known.thread(thread).1),
        };
        let path = &class.threads[choice.thread];
        let ours = path.events.get(choice.number);
        let theirs = known.thread(choice.thread).0;
        let theirs = theirs.and_then(|path| path.events.get(choice.number));
        let value = ours
            .zip(theirs)
            .and_then(|(ours, theirs)| theirs.value.filter(|_| theirs.value != ours.value));
        Self { steps: class.threads.iter().enumerate().map(step).collect(), value }
    }

    /// Does the other's clause follow from this one's? Who has taken a step has taken those before it.
    fn implies(&self, other: &Self) -> bool {
        let mut steps = self.steps.iter().zip(&other.steps);
        (self.value.is_none() || self.value == other.value)
            && steps.all(|(this, other)| this.is_none() || (other.is_some() && this >= other))
    }

    fn clause(&self, builder: &mut GoalBuilder<'_>, event: Option<&PathEvent>) -> TermId {
        let steps = self.steps.iter().flatten();
        let mut literals: Vec<TermId> = steps.map(|&step| builder.taken(step)).collect();
        if let (Some(event), Some(value)) = (event, self.value) {
            literals.extend(is_other_than(builder, event.id, value));
        }
        builder.terms.or(&literals)
    }
}

/// Those that the others follow from: the classes that have most in common with the one that is asked about.
/// There are few, however many classes are known.
fn strongest(all: impl Iterator<Item = Reasons>) -> Vec<Reasons> {
    let mut known = HashSet::new();
    let mut different: Vec<Reasons> = all.filter(|reasons| known.insert(reasons.clone())).collect();
    // What follows from another comes after it.
    let place = |step: &Option<EventId>| step.map_or(u64::MAX >> 16, |step| u64::from(step.0));
    different.sort_by_key(|reasons| {
        let sum: u64 = reasons.steps.iter().map(place).sum();
        (std::cmp::Reverse(sum), reasons.value.is_some())
    });
    let mut strongest: Vec<Reasons> = Vec::new();
    for reasons in different {
        if !strongest.iter().any(|known| known.implies(&reasons)) {
            strongest.push(reasons);
        }
    }
    strongest
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
