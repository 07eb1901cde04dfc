//! A finding as assertions over flags, for which neighbourhoods are computed.

use std::time::Instant;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_predict::crash::{CrashShape, Fault};
use foretell_predict::property::Shape;
use foretell_predict::question::{Instance, Subject};
use foretell_predict::{Finding, FindingKind, crash};
use foretell_trace::{EventId, Term, TermId, TermStore, Trace, VariableId};

use super::EXPLORED;
use super::locks::{lock_cycle, race};
use crate::engine::system::System;
use crate::explain::{
    ExplainError, Explanation, Options, Phases, Verdict, explain_program, frame_of,
};
use crate::limits::MOST_INSTANCES;
use crate::property::{Editor, Instrumented, Watched, accesses, without_assertions};
use crate::succinct::place_combinations;

/// The finding as a question about a program; events are the program's.
pub(super) enum Question {
    /// A program whose assertions say it.
    Assertions(Box<Instrumented>),
    Race(EventId, EventId),
    LockCycle(Vec<EventId>),
    /// Threads wait for ever, and not only for locks.
    Stuck,
}

impl Question {
    pub(super) fn of(
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
    pub(super) fn answer(
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
