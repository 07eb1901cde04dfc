//! Is a torn block a lost update: does a thread overwrite what another one has written with a value that it
//! made of what was there before?
//!
//! A look, a write of another thread and a write in vain (002's pattern RWW) are no bug by themselves: two
//! threads may fill a cache with the same value. That the written value depends on what was read makes it
//! one. A read-modify-write does not count as the second write: it has seen what it overwrites.

use foretell_predict::{Finding, PatternKind};
use foretell_trace::{Event, EventId, Op, Term, TermId, ThreadId, Trace, VariableId};

use crate::limits::MOST_VALUES;

/// Is the finding, which is about this trace, a lost update?
pub fn is_lost_update(trace: &Trace, finding: &Finding) -> bool {
    let events = || finding.accesses.iter().map(|access| access.event);
    let pairs = events().flat_map(|read| events().map(move |write| (read, write)));
    let is_one = |(read, write): (EventId, EventId)| {
        let (first, second) = (trace.event(read), trace.event(write));
        let reads = matches!(first.op, Op::Read(_) | Op::ReadModifyWrite(_));
        let term = match &second.op {
            Op::Write(access) => access.term,
            _ => None,
        };
        let is_later = first.thread == second.thread && first.index < second.index;
        reads && is_later && term.is_some_and(|term| depends(trace, term, write, read))
    };
    finding.pattern == Some(PatternKind::Rww) && pairs.into_iter().any(is_one)
}

/// Is the value, as it is at the event, made of what the read returned? It may have gone through memory that
/// its thread wrote last, but not through what was read: who reads that again may see the other thread's write.
fn depends(trace: &Trace, term: TermId, at: EventId, read: EventId) -> bool {
    let contested = match &trace.event(read).op {
        Op::Read(access) => Some(access.variable),
        Op::ReadModifyWrite(step) => Some(step.variable),
        _ => None,
    };
    let mut values = vec![(term, at)];
    let mut looked = 0;
    while let Some((term, at)) = values.pop() {
        looked += 1;
        if looked > MOST_VALUES {
            return false;
        }
        for leaf in trace.terms.leaves(term) {
            let Term::ReadValue(thread, index) = *trace.terms.term(leaf) else { continue };
            let Some(source) = event_of(trace, thread, index, at) else { continue };
            if source == read {
                return true;
            }
            let Op::Read(access) = &trace.event(source).op else { continue };
            if Some(access.variable) != contested {
                values.extend(written(trace, access.variable, thread, source));
            }
        }
    }
    false
}

/// The thread's event with this number, before the other one.
fn event_of(trace: &Trace, thread: ThreadId, index: u32, before: EventId) -> Option<EventId> {
    let is_it = |event: &Event| event.thread == thread && event.index == index;
    trace.events[..before.index()].iter().rposition(is_it).map(EventId::from)
}

/// The value that the thread itself wrote last to the variable before the event, and where.
fn written(
    trace: &Trace,
    variable: VariableId,
    thread: ThreadId,
    before: EventId,
) -> Option<(TermId, EventId)> {
    let writes =
        |event: &Event| matches!(&event.op, Op::Write(access) if access.variable == variable);
    let place = trace.events[..before.index()].iter().rposition(writes)?;
    match &trace.events[place].op {
        Op::Write(access) if trace.events[place].thread == thread => {
            access.term.map(|term| (term, EventId::from(place)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_predict::finding::access_info;
    use foretell_predict::{FindingKind, Status};
    use foretell_trace::format::text;

    /// Whether the first, the last and the event between are one.
    fn is_lost(events: &str) -> bool {
        let text = format!(
            "foretell-trace 1\nsymbolic\nobserved\nthread main, worker\nvar x\nvar own\n{events}"
        );
        let trace = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        let all = (0..trace.events.len()).map(EventId::from);
        let of_x: Vec<_> = all
            .map(|event| access_info(&trace, event))
            .filter(|access| access.variable.as_deref() == Some("x"))
            .collect();
        let last = of_x.len() - 1;
        let between =
            of_x.iter().position(|access| access.thread == ThreadId(1)).expect("it writes");
        let finding = Finding {
            id: String::new(),
            group: String::new(),
            kind: FindingKind::Atomicity,
            pattern: Some(PatternKind::Rww),
            status: Status::Predicted,
            accesses: [0, between, last].map(|place| of_x[place].clone()).into(),
            detail: String::new(),
            schedule: None,
        };
        is_lost_update(&trace, &finding)
    }

    #[test]
    fn a_value_that_is_made_of_what_was_read_is_a_lost_update() {
        let other = "worker write x = 5";
        assert!(is_lost(&format!("main s = read x = 0\n{other}\nmain write x = 1 := (+ s 1)")));
        assert!(is_lost(&format!(
            "main s = read x = 0\nmain write own = 1 := (+ s 1)\n{other}\n\
             main t = read own = 1\nmain write x = 2 := (+ t 1)"
        )));
        assert!(!is_lost(&format!("main s = read x = 0\n{other}\nmain write x = 1")));
        assert!(!is_lost(&format!(
            "main s = read x = 0\nmain write x = 1 := (+ s 1)\n{other}\n\
             main t = read x = 5\nmain write x = 4 := (+ t (- 1))"
        )));
        assert!(!is_lost(&format!(
            "main s = read x = 0\n{other}\nmain t = read own = 0\nmain write x = 1 := (+ t 1)"
        )));
    }
}
