//! Rounds of loops that wait, left out of a trace.
//!
//! `while (!flag);` goes round as often as the scheduler lets it. The compiler pass marks loops of which a
//! round that is followed by another leaves nothing behind ([`AwaitMark`]). Such a round can be left out of
//! any execution: what remains is an execution, and every thread ends it as before.
//!
//! A round may have taken locks, if it gave them back: without it they are free for longer, which keeps nobody
//! from going on. Where another thread could not take one of them by a try meanwhile, the round stays.
//!
//! Guaranteed: what is left out wrote nothing and decided nothing that is still referred to. Where that is
//! in doubt the round stays.

use std::collections::HashSet;

use crate::event::{AwaitMark, Op};
use crate::id::{EventId, ObjectId};
use crate::sync::SyncOp;
use crate::term::Term;
use crate::trace::Trace;

/// The trace without the rounds that led to another one. The last round of a thread that waits for ever
/// stays.
pub fn without_rounds(trace: Trace) -> Trace {
    let marked = |event: &crate::Event| event.op == Op::Await(AwaitMark::Again);
    // Symbols and terms about the order are not in what is recorded.
    if !trace.events.iter().any(marked) || !trace.terms.symbols().is_empty() {
        return trace;
    }
    let rounds = rounds(&trace);
    let mut left_out: HashSet<EventId> = rounds.iter().flatten().copied().collect();
    // What somebody still refers to has to stay, and so has what that refers to.
    loop {
        let needed = referred(&trace, &left_out);
        let kept = rounds.iter().filter(|round| round.iter().any(|event| needed.contains(event)));
        let before = left_out.len();
        for event in kept.flatten() {
            left_out.remove(event);
        }
        if left_out.len() == before {
            return match left_out.is_empty() {
                true => trace,
                false => trace.keeping(|event| !left_out.contains(&event)).0,
            };
        }
    }
}

/// Does a thread go round in a loop for ever?
pub fn waits_for_ever(trace: &Trace) -> bool {
    let chains = trace.events_by_thread();
    let mut last = chains.iter().filter_map(|chain| chain.last());
    last.any(|&event| trace.event(event).op == Op::Await(AwaitMark::Again))
}

/// The rounds that can be left out, from their first mark to their last.
fn rounds(trace: &Trace) -> Vec<Vec<EventId>> {
    let mut rounds = Vec::new();
    for chain in trace.events_by_thread() {
        let mut round: Option<Round> = None;
        for (position, &event) in chain.iter().enumerate() {
            match &trace.event(event).op {
                Op::Await(AwaitMark::Round) => round = Some(Round::new(event)),
                Op::Await(AwaitMark::Again) => {
                    if let Some(mut whole) = round.take()
                        && position + 1 < chain.len()
                        && whole.held.is_empty()
                        && whole.sections.iter().all(|&section| nobody_tried(trace, section))
                    {
                        whole.events.push(event);
                        rounds.push(whole.events);
                    }
                }
                op => round = round.and_then(|round| round.with(event, op)),
            }
        }
    }
    rounds
}

/// A round of a loop that waits, so far.
struct Round {
    events: Vec<EventId>,
    /// Locks that it has, and since when.
    held: Vec<(ObjectId, EventId)>,
    /// Where it had locks.
    sections: Vec<(EventId, EventId)>,
}

impl Round {
    fn new(begin: EventId) -> Self {
        Self { events: vec![begin], held: Vec::new(), sections: Vec::new() }
    }

    /// The round with a step more; `None` if that leaves something behind.
    fn with(mut self, event: EventId, op: &Op) -> Option<Self> {
        match op {
            Op::Sync(lock, SyncOp::Acquire(_)) => self.held.push((*lock, event)),
            Op::Sync(lock, SyncOp::Release(_)) => {
                let at = self.held.iter().rposition(|(held, _)| held == lock)?;
                let (_, since) = self.held.swap_remove(at);
                self.sections.push((since, event));
            }
            Op::Sync(_, SyncOp::AcquireFailed(step)) if step.by_try => {}
            op if leaves_nothing(op) => {}
            _ => return None,
        }
        self.events.push(event);
        Some(self)
    }
}

/// Did no other thread fail to take the lock while it was held from one event to the other?
fn nobody_tried(trace: &Trace, (since, until): (EventId, EventId)) -> bool {
    let lock = trace.event(since).op.object();
    let between = &trace.events[since.index() + 1..until.index()];
    !between.iter().any(|event| {
        event.op.object() == lock
            && matches!(event.op, Op::Sync(_, SyncOp::AcquireFailed(_)))
            && event.thread != trace.event(since).thread
    })
}

/// Can nobody tell that the step took place?
fn leaves_nothing(op: &Op) -> bool {
    match op {
        Op::Read(_) | Op::Branch(_) | Op::Call(_) | Op::Return | Op::Fence(_) | Op::Await(_) => {
            true
        }
        Op::ReadModifyWrite(step) => step.old.is_some() && step.old == step.new,
        _ => false,
    }
}

/// The events among these whose values events that stay refer to.
fn referred(trace: &Trace, left_out: &HashSet<EventId>) -> HashSet<EventId> {
    let chains = trace.events_by_thread();
    let mut referred = HashSet::new();
    let staying = (0..trace.events.len()).map(EventId::from).filter(|id| !left_out.contains(id));
    for term in staying.flat_map(|id| trace.event(id).op.terms()) {
        for leaf in trace.terms.leaves(term) {
            if let Term::ReadValue(thread, index) = *trace.terms.term(leaf)
                && let Some(&event) =
                    chains.get(thread.index()).and_then(|chain| chain.get(index as usize))
                && left_out.contains(&event)
            {
                referred.insert(event);
            }
        }
    }
    referred
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    fn shown(body: &str) -> Vec<String> {
        let trace = text::read(&format!(
            "foretell-trace 1\nsymbolic\nobserved\nthread main, other\nvar flag = 0\nvar data = 0\n{body}"
        ))
        .unwrap();
        let events = without_rounds(trace).events;
        let shown = |event: &crate::Event| format!("{}.{}", event.op.keyword(), event.index);
        events.iter().map(shown).collect()
    }

    #[test]
    fn rounds_that_led_to_another_are_left_out() {
        let body = "main await\nmain a = read flag = 0\nmain branch (= a 1) false\n\
                    main await-failed\nmain await-again\n\
                    other write flag = 1\n\
                    main await\nmain b = read flag = 1\nmain branch (= b 1) true\nmain await-test\n\
                    main write data = 2 := (+ b 1)\n";
        assert_eq!(
            shown(body),
            ["write.0", "await.0", "read.1", "branch.2", "await-test.3", "write.4"]
        );
    }

    #[test]
    fn a_thread_that_waits_for_ever_keeps_its_last_round() {
        let body = "main await\nmain a = read flag = 0\nmain branch (= a 1) false\n\
                    main await-failed\nmain await-again\n";
        assert_eq!(shown(body).len(), 5);
    }

    #[test]
    fn a_round_stays_whose_values_are_used_or_that_wrote() {
        let round = "main await\nmain a = read flag = 0\nmain branch (= a 1) false\n\
                     main await-again\n";
        assert_eq!(shown(&format!("{round}main write data = 1 := (+ a 1)\n")).len(), 5);
        assert_eq!(shown(&format!("{round}main write data = 1\n")).len(), 1);
        let wrote = "main await\nmain write data = 1\nmain await-again\nmain write data = 1\n";
        assert_eq!(shown(wrote).len(), 4);
    }
}
