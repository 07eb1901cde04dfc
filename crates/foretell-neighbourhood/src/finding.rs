//! Why a finding of the predictor can happen, and what to do about it.
//!
//! Each kind of finding becomes assertions over flags (`crate::property::Editor`): a torn block, a
//! failing assertion, a crash, a use before the definition or after the free. Then everything that
//! holds of assertions holds of it: formulas, summaries, verified synchronisation. Two kinds need
//! none of that. A data race has no bad order: the two steps can be next at the same time, and one
//! lock over both is the fix. A cycle of locks is one conjunction (every lock of the cycle is taken
//! before it is asked for), and the fix is one lock around, or one order.
//!
//! Long traces are cut: a window around the finding in which the recorded run leads to its start,
//! and in it only the events that the property can depend on. The largest window that is small enough to
//! be explored is taken; what it does not show is said to be unknown, never to be right.

use std::time::Instant;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_model::replay::Replay;
use foretell_predict::crash::{CrashShape, Fault};
use foretell_predict::property::Shape;
use foretell_predict::question::{Instance, Subject};
use foretell_predict::{Finding, FindingKind, crash};
use foretell_trace::{EventId, ObjectId, Op, SyncOp, Term, TermId, TermStore, Trace, VariableId};
use serde_json::{Value as Json, json};

use crate::engine::system::System;
use crate::explain::{
    ExplainError, Explanation, Options, Phases, Verdict, explain_program, frame_of, lines_of,
};
use crate::formula::{Atom, HbFormula, NormalForm};
use crate::limits::{LARGEST_WHOLE, MOST_INSTANCES};
use crate::property::{Editor, Instrumented, Watched, accesses, without_assertions};
use crate::succinct::{Limits, place_combinations};
use crate::summary::{BugKind, BugSummary};
use crate::synthesis::verify::{has_cycle, verify};
use crate::synthesis::{Primitive, Region, Synthesis, Verification};
use crate::text::Names;

/// The explanation of one finding.
#[derive(Clone, Debug)]
pub struct FindingExplanation {
    /// In source terms: what must not be. At least one clause.
    pub reasons: Vec<String>,
    /// In source terms: what to do about it, and whether that is verified.
    pub advice: Vec<String>,
    /// All that is known: formulas, summaries, synchronisation.
    pub explanation: Explanation,
    /// The part of the trace that was looked at, first and last event; `None`: all of it.
    pub window: Option<(EventId, EventId)>,
}

impl FindingExplanation {
    fn new(
        trace: &Trace,
        finding: &Finding,
        explanation: Explanation,
        window: Option<(EventId, EventId)>,
    ) -> Self {
        let names = Names::new(trace, &explanation);
        let (reasons, advice) =
            (reasons(finding, &explanation, &names), advice(&explanation, &names));
        Self { reasons, advice, explanation, window }
    }

    /// One sentence for people: the reasons, then the advice.
    pub fn sentence(&self) -> String {
        let clauses: Vec<&str> =
            self.reasons.iter().chain(&self.advice).map(String::as_str).collect();
        clauses.join("; ")
    }

    /// The `explanation` field of a finding.
    pub fn to_json(&self, trace: &Trace) -> Json {
        let mut json = crate::json::to_json(trace, &self.explanation);
        json["text"] = json!(self.sentence());
        json["window"] = match self.window {
            Some((first, last)) => json!([first.index(), last.index()]),
            None => Json::Null,
        };
        json
    }
}

/// Options for explaining findings: the work is bounded to a few seconds.
pub fn finding_options() -> Options {
    Options {
        limits: Limits { states_per_search: 100_000, steps: 1_000_000, disjuncts: 200 },
        verification_states: 200_000,
        plans: 12,
        ..Options::default()
    }
}

/// So many combinations of places are explored at most.
const EXPLORED: u64 = 4_000_000;

/// Events around a finding that a window has on each side, largest first.
const RADII: [usize; 5] = [2000, 400, 100, 20, 0];

/// Explains a finding of [`foretell_predict::predict`] on the same trace.
pub fn explain_finding(
    trace: &Trace,
    finding: &Finding,
    options: &Options,
) -> Result<FindingExplanation, ExplainError> {
    let started = Instant::now();
    let events: Vec<EventId> = finding.accesses.iter().map(|access| access.event).collect();
    let mut last = None;
    for (window, ctp) in Windows::new(trace, finding, &events) {
        let ctp = ctp?;
        let Some(question) = Question::of(trace, &ctp, finding, &events) else { continue };
        let (mut explanation, small) = question.answer(trace, &ctp, options, started)?;
        if explanation.verdict == Verdict::Depends
            && let Some(summary) = summary_of(finding, &events, &explanation)
        {
            explanation.summaries = vec![summary];
        }
        // 001 calls every read and write that are torn apart a data race; accesses under locks and
        // atomic ones are none, and predict looks for those that are.
        if finding.kind != FindingKind::Race {
            for summary in &mut explanation.summaries {
                if summary.kind == BugKind::DataRace {
                    summary.kind = BugKind::AtomicityViolation;
                }
            }
        }
        let shown =
            matches!(explanation.verdict, Verdict::Depends | Verdict::AllBad | Verdict::Deadlock);
        let found = FindingExplanation::new(trace, finding, explanation, window);
        if shown && small {
            return Ok(found);
        }
        if last.is_none() || shown {
            last = Some(found);
        }
    }
    match last {
        Some(found) => Ok(found),
        None => {
            let reason = "this kind of finding has no explanation".to_string();
            let explanation = frame_of(trace, Verdict::Unknown(reason), Phases::default());
            Ok(FindingExplanation::new(trace, finding, explanation, None))
        }
    }
}

/// The kinds of findings that are kinds of bugs.
fn summary_of(
    finding: &Finding,
    events: &[EventId],
    explanation: &Explanation,
) -> Option<BugSummary> {
    let (kind, first, second) = match (finding.kind, finding.accesses.as_slice(), events) {
        (FindingKind::Atomicity, _, &[first, remote, second]) => {
            (BugKind::AtomicityViolation, vec![first, second], vec![remote])
        }
        (FindingKind::Race, _, &[one, two]) => (BugKind::DataRace, vec![one], vec![two]),
        (FindingKind::Order, _, &[read, write]) => (BugKind::DefineUse, vec![read], vec![write]),
        (FindingKind::Crash, [_, other], &[access, free]) if other.op == "free" => {
            (BugKind::OrderViolation, vec![free], vec![access])
        }
        _ => return None,
    };
    let name = finding.accesses.first().and_then(|access| access.variable.as_deref());
    let variables = explanation.variables.iter().position(|other| Some(other.as_ref()) == name);
    Some(BugSummary {
        kind,
        first,
        second,
        variables: variables.into_iter().collect(),
        atoms: Vec::new(),
        count: 1,
    })
}

/// Windows of the trace with the finding in them, largest first.
struct Windows<'t> {
    trace: &'t Trace,
    borders: std::vec::IntoIter<Option<(EventId, EventId)>>,
}

impl<'t> Windows<'t> {
    fn new(trace: &'t Trace, finding: &Finding, events: &[EventId]) -> Self {
        let mut borders = Vec::new();
        if trace.events.len() <= LARGEST_WHOLE || !trace.metadata.observed_order {
            borders.push(None);
        }
        if trace.metadata.observed_order {
            let schedule = finding.schedule.as_ref();
            let involved = schedule.map_or(events.to_vec(), |schedule| {
                schedule.order.iter().chain(&schedule.next).chain(events).copied().collect()
            });
            let mut add = |events: &[EventId]| {
                let (Some(first), Some(last)) = (events.iter().min(), events.iter().max()) else {
                    return;
                };
                for radius in RADII {
                    let from = first.index().saturating_sub(radius);
                    let to = (last.index() + radius.max(50)).min(trace.events.len() - 1);
                    let window = Some((EventId::from(from), EventId::from(to)));
                    let whole = from == 0 && to == trace.events.len() - 1;
                    let known = whole && borders.contains(&None);
                    if !known && !borders.contains(&window) {
                        borders.push(window);
                    }
                }
            };
            add(&involved);
            add(events);
        }
        Self { trace, borders: borders.into_iter() }
    }
}

type Window = (Option<(EventId, EventId)>, Result<ConcurrentTraceProgram, ExplainError>);

impl Iterator for Windows<'_> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let border = self.borders.next()?;
        let build = || match border {
            None => ConcurrentTraceProgram::build(self.trace),
            Some((from, to)) => {
                let mut start = Replay::new(self.trace)?;
                start.advance_to(from)?;
                let events: Vec<EventId> = (from.index()..=to.index()).map(EventId::from).collect();
                ConcurrentTraceProgram::build_window(&start, &events)
            }
        };
        Some((border, build().map_err(ExplainError::from)))
    }
}

/// The finding as a question about a program; events are the program's.
enum Question {
    /// A program whose assertions say it.
    Assertions(Box<Instrumented>),
    Race(EventId, EventId),
    LockCycle(Vec<EventId>),
    /// Threads wait for ever, and not only for locks.
    Stuck,
}

impl Question {
    fn of(
        trace: &Trace,
        ctp: &ConcurrentTraceProgram,
        finding: &Finding,
        events: &[EventId],
    ) -> Option<Self> {
        let here: Option<Vec<EventId>> = events.iter().map(|&event| ctp.event_of(event)).collect();
        let here = here?;
        let mut plain = ctp.clone();
        match finding.kind {
            FindingKind::Assertion => {
                without_assertions(&mut plain, |event| events.contains(&event));
                return Some(Question::Assertions(Box::new(Editor::new(plain).finish())));
            }
            _ => without_assertions(&mut plain, |_| false),
        }
        let mut editor = Editor::new(plain);
        match (finding.kind, here.as_slice()) {
            (FindingKind::Atomicity, &[first, remote, second]) => {
                for watched in torn_blocks(trace, ctp, [first, remote, second]) {
                    editor.watch(&watched);
                }
            }
            (FindingKind::Race, &[one, two]) => return Some(Question::Race(one, two)),
            (FindingKind::Deadlock | FindingKind::Livelock, acquires) => {
                let locks = finding.accesses.iter().all(|access| access.op == "acquire");
                return Some(match locks && acquires.len() > 1 {
                    true => Question::LockCycle(acquires.to_vec()),
                    false => Question::Stuck,
                });
            }
            (FindingKind::Order, &[read, write]) => {
                let (_, written) = accesses(ctp, write);
                let writes = (0..ctp.events.len()).map(EventId::from).filter(|&event| {
                    accesses(ctp, event).1.iter().any(|variable| written.contains(variable))
                });
                editor.must_follow_one(read, &writes.collect::<Vec<_>>());
            }
            (FindingKind::Crash, &[access, free]) => editor.must_not_follow(access, free),
            (FindingKind::Crash, &[event]) => {
                let (fault, term) = fault_of(trace, finding, events)?;
                let chains = trace.events_by_thread();
                let order = MustOrder::new(trace).ok()?;
                let subject = Subject::new(trace, &chains, ctp, &order);
                let goal = crash::fault_goal(&subject, event, fault, term)?;
                let bad = at_the_event(&mut editor.ctp.terms, ctp, &goal);
                let condition = editor.ctp.terms.not(bad);
                editor.must_hold(event, condition);
            }
            _ => return None,
        }
        Some(Question::Assertions(Box::new(editor.finish())))
    }

    /// The explanation, and whether the program was small enough to be explored.
    fn answer(
        &self,
        trace: &Trace,
        ctp: &ConcurrentTraceProgram,
        options: &Options,
        started: Instant,
    ) -> Result<(Explanation, bool), ExplainError> {
        match self {
            Question::Assertions(instrumented) => {
                let sliced = instrumented.sliced();
                let system = System::new(&sliced.ctp, options.solver);
                if place_combinations(&system) > EXPLORED {
                    let reason = "the part of the trace is too long to be explored".to_string();
                    let phases = Phases { build: started.elapsed(), ..Phases::default() };
                    return Ok((frame_of(trace, Verdict::Unknown(reason), phases), false));
                }
                Ok((explain_program(trace, &sliced, options, true, started)?, true))
            }
            Question::Race(one, two) => Ok(race(trace, ctp, [*one, *two], options)),
            Question::LockCycle(acquires) => Ok(lock_cycle(trace, ctp, acquires, options)),
            Question::Stuck => Ok((frame_of(trace, Verdict::Deadlock, Phases::default()), true)),
        }
    }
}

/// The block of the finding and the same source lines wherever they run: in other threads, in
/// other iterations. The nearest instances first.
fn torn_blocks(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    [first, remote, second]: [EventId; 3],
) -> Vec<Watched> {
    let site = |event: EventId| trace.event(ctp.event(event).origin).site;
    let variables = |event: EventId| {
        let (reads, writes) = accesses(ctp, event);
        reads.into_iter().chain(writes).collect::<Vec<VariableId>>()
    };
    let (Some(at_first), Some(at_remote), Some(at_second)) =
        (site(first), site(remote), site(second))
    else {
        return vec![Watched { first, second, intruders: vec![remote] }];
    };
    let place = |event: EventId| ctp.event(event).origin.index();
    let near = |event: EventId| {
        [first, remote, second].iter().map(|&own| place(own).abs_diff(place(event))).min()
    };
    let mut pairs: Vec<(EventId, EventId)> = Vec::new();
    for events in &ctp.threads {
        let mut open: Option<EventId> = None;
        for &event in events {
            if let Some(begin) = open
                && site(event) == Some(at_second)
            {
                pairs.push((begin, event));
                open = None;
            }
            if site(event) == Some(at_first) {
                open = Some(event);
            }
        }
    }
    pairs.retain(|&pair| pair != (first, second));
    pairs.sort_by_key(|&(begin, _)| near(begin));
    pairs.insert(0, (first, second));
    let mut remotes: Vec<EventId> = (0..ctp.events.len())
        .map(EventId::from)
        .filter(|&event| site(event) == Some(at_remote))
        .collect();
    remotes.sort_by_key(|&event| (event != remote, near(event)));
    // where the intruder is itself part of such a block, all of that block is looked at
    pairs.truncate(MOST_INSTANCES);
    if at_remote == at_first || at_remote == at_second {
        let of_pair = |event: EventId| pairs.iter().any(|&(a, b)| a == event || b == event);
        remotes.retain(|&event| event == remote || of_pair(event));
    }
    let mut watched: Vec<Watched> = Vec::new();
    for (begin, end) in pairs {
        let of_block = variables(begin);
        if !meets(&of_block, &variables(end)) {
            continue;
        }
        let thread = ctp.event(begin).thread;
        let intruders = remotes.iter().copied().filter(|&other| {
            ctp.event(other).thread != thread && meets(&of_block, &variables(other))
        });
        let intruders: Vec<EventId> = intruders.take(MOST_INSTANCES).collect();
        if !intruders.is_empty() {
            watched.push(Watched { first: begin, second: end, intruders });
        }
    }
    watched
}

fn meets(a: &[VariableId], b: &[VariableId]) -> bool {
    a.iter().any(|variable| b.contains(variable))
}

/// What kind of crash a finding is.
fn fault_of(trace: &Trace, finding: &Finding, events: &[EventId]) -> Option<(Fault, TermId)> {
    let order = MustOrder::new(trace).ok()?;
    let questions = crash::questions(trace, &order, usize::MAX);
    let fault = |instance: &Instance| match instance.shape {
        Shape::Crash(CrashShape::Fault(fault, term)) if instance.events == events => {
            let (id, _) =
                foretell_predict::finding::fingerprints(trace, FindingKind::Crash, instance);
            (id == finding.id).then_some((fault, term))
        }
        _ => None,
    };
    questions.iter().flat_map(|question| &question.instances).find_map(fault)
}

/// A goal about one event as a condition on the state before it.
fn at_the_event(
    terms: &mut TermStore,
    ctp: &ConcurrentTraceProgram,
    goal: &foretell_predict::goal::Goal,
) -> TermId {
    let mut cache = std::collections::HashMap::new();
    for leaf in goal.terms.leaves(goal.formula) {
        let here = match *goal.terms.term(leaf) {
            Term::Symbol(symbol) => {
                let (_, variable) = goal.values[symbol.index()];
                terms.variable(variable, ctp.variables[variable.index()].sort)
            }
            // the event is next: what comes before it in its thread has taken place
            _ => terms.bool(true),
        };
        cache.insert(leaf, here);
    }
    let mut other = |terms: &mut TermStore, _: TermId| terms.bool(true);
    terms.import(&goal.terms, goal.formula, &mut cache, &mut other)
}

/// A data race: one lock over both accesses.
fn race(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    [one, two]: [EventId; 2],
    options: &Options,
) -> (Explanation, bool) {
    let started = Instant::now();
    let mut plain = ctp.clone();
    without_assertions(&mut plain, |_| false);
    let mut editor = Editor::new(plain);
    editor.must_not_meet(one, two);
    let sliced = editor.finish().sliced();
    let system = System::new(&sliced.ctp, options.solver);
    let origins = [ctp.event(one).origin, ctp.event(two).origin];
    let group = |origin: EventId| {
        let own = (0..sliced.ctp.events.len())
            .map(EventId::from)
            .filter(|&event| sliced.ctp.event(event).origin == origin);
        let own: Vec<EventId> = own.collect();
        Some(Region {
            thread: trace.event(origin).thread.index(),
            first: *own.first()?,
            last: *own.last()?,
        })
    };
    let mut explanation = frame_of(trace, Verdict::Depends, Phases::default());
    let small = place_combinations(&system) <= EXPLORED;
    if let (Some(a), Some(b)) = (group(origins[0]), group(origins[1]))
        && options.synthesis
    {
        let mut regions = vec![a, b];
        regions.sort();
        let plan = vec![Primitive::Lock { regions }];
        let sections = crate::synthesis::lock::HeldSections::new(&sliced.ctp);
        let lines = lines_of(trace, &system, &sliced.ctp);
        let grown = vec![sections.grow(&system, &lines, &plan[0])];
        let mut chosen = None;
        for plan in [plan, grown] {
            let verification = match small {
                true => {
                    let states = options.verification_states;
                    verify(&sliced.ctp, &system, &plan, options.solver, states)
                }
                false => Verification::Unverified("too many interleavings to explore".into()),
            };
            let done = verification == Verification::Verified;
            if done || chosen.is_none() {
                chosen = Some(Synthesis { primitives: plan, verification, plans_tried: 1 });
            }
            if done {
                break;
            }
        }
        explanation.synthesis =
            chosen.map(|synthesis| synthesis.of_trace(|event| sliced.ctp.event(event).origin));
    }
    explanation.statistics.phases.synthesis = started.elapsed();
    (explanation, small)
}

/// A cycle of locks: the conjunction that leads to it, and one lock around.
fn lock_cycle(
    trace: &Trace,
    ctp: &ConcurrentTraceProgram,
    acquires: &[EventId],
    options: &Options,
) -> (Explanation, bool) {
    let started = Instant::now();
    let mut explanation = frame_of(trace, Verdict::Deadlock, Phases::default());
    let asked: Vec<EventId> = acquires.iter().map(|&event| ctp.event(event).origin).collect();
    explanation.deadlock = Some(asked.clone());
    let lock_of = |event: EventId| match trace.event(event).op {
        Op::Sync(lock, SyncOp::Acquire(step)) => Some((lock, step.mode)),
        _ => None,
    };
    // the lock that a thread asks for is held by another thread of the cycle since `outer`
    let mut atoms = Vec::new();
    let mut regions = Vec::new();
    for &inner in &asked {
        let Some((wanted, _)) = lock_of(inner) else { return (explanation, true) };
        for &other in asked.iter().filter(|&&other| other != inner) {
            if let Some(outer) = held_since(trace, other, wanted) {
                atoms.push(Atom::new(outer, inner));
                let thread = trace.event(outer).thread.index();
                regions.push(Region { thread, first: outer, last: other });
            }
        }
    }
    let known = &explanation.known;
    explanation.bad = HbFormula::new(NormalForm::Disjunctive, vec![atoms], known);
    explanation.good = explanation.bad.complement();
    regions.sort();
    regions.dedup();
    let mut small = true;
    if options.synthesis && regions.len() == asked.len() {
        let mut plain = ctp.clone();
        without_assertions(&mut plain, |_| false);
        let criterion =
            foretell_model::slice::Criterion { events: acquires.to_vec(), variables: Vec::new() };
        let slice =
            foretell_model::slice::slice(&plain, &criterion, foretell_model::ctp::Mode::Prefix);
        let system = System::new(&slice.ctp, options.solver);
        small = place_combinations(&system) <= EXPLORED;
        let of_slice = |origin: EventId| slice.ctp.event_of(origin);
        let plan: Option<Vec<Region>> = regions
            .iter()
            .map(|region| {
                Some(Region {
                    first: of_slice(region.first)?,
                    last: of_slice(region.last)?,
                    ..*region
                })
            })
            .collect();
        let verification = match plan {
            Some(regions) if small => {
                let plan = [Primitive::Lock { regions }];
                let states = options.verification_states;
                let left = has_cycle(&slice.ctp, &system, &plan, options.solver, states);
                match left {
                    Some(false) => Verification::Verified,
                    Some(true) => {
                        Verification::Unverified("threads can still wait for each other".into())
                    }
                    None => {
                        Verification::Unverified("the search for deadlocks was cut short".into())
                    }
                }
            }
            _ => Verification::Unverified("too many interleavings to explore".into()),
        };
        explanation.synthesis = Some(Synthesis {
            primitives: vec![Primitive::Lock { regions }],
            verification,
            plans_tried: 1,
        });
    }
    explanation.statistics.phases.synthesis = started.elapsed();
    (explanation, small)
}

/// The acquire since which the thread holds the lock when it comes to the event.
fn held_since(trace: &Trace, event: EventId, lock: ObjectId) -> Option<EventId> {
    let thread = trace.event(event).thread;
    let mut since = None;
    let mut depth = 0;
    for (number, other) in trace.events[..event.index()].iter().enumerate() {
        if other.thread != thread {
            continue;
        }
        let (taken, given) = match &other.op {
            Op::Sync(taken, SyncOp::Acquire(_)) => (*taken == lock, false),
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => (*mutex == lock, false),
            Op::Sync(released, SyncOp::Release(_)) => (false, *released == lock),
            Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => (false, *mutex == lock),
            _ => (false, false),
        };
        if taken {
            depth += 1;
            if depth == 1 {
                since = Some(EventId::from(number));
            }
        }
        if given && depth > 0 {
            depth -= 1;
        }
    }
    since.filter(|_| depth > 0)
}

fn reasons(finding: &Finding, explanation: &Explanation, names: &Names<'_>) -> Vec<String> {
    let reason = match &explanation.verdict {
        Verdict::Unknown(reason) => {
            format!("{}; why was not worked out: {reason}", finding.detail)
        }
        Verdict::Deadlock if explanation.bad.clauses().is_empty() => {
            names.stuck(finding.accesses.iter().map(|access| access.event))
        }
        Verdict::Deadlock => names.lock_cycle(),
        Verdict::AllBad => format!("{}; in this trace in every order", finding.detail),
        Verdict::AllGood | Verdict::Infeasible => {
            format!("{}; the part of the trace that was explored does not show it", finding.detail)
        }
        Verdict::Depends => {
            return explanation.summaries.iter().map(|summary| names.summary(summary)).collect();
        }
    };
    vec![reason]
}

fn advice(explanation: &Explanation, names: &Names<'_>) -> Vec<String> {
    let Some(synthesis) = &explanation.synthesis else { return Vec::new() };
    let mut advice: Vec<String> =
        synthesis.primitives.iter().map(|primitive| names.primitive(primitive)).collect();
    if let Verification::Unverified(reason) = &synthesis.verification {
        advice.push(format!("this fix is not verified: {reason}"));
    }
    advice
}
