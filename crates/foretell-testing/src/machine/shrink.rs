//! A smaller trace that still fails a test.

use std::cmp::Ordering;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::validate::Configuration;
use foretell_trace::{Access, EventId, MemoryOrder, Op, TermId, Trace, VariableId};

/// A smaller trace that still fails: events are taken away one by one as long as the rest could
/// have run in the recorded order and `fails` says so. An event that others of its thread follow
/// becomes a fence, which does nothing, so that the reads of these keep their names.
pub fn shrink(trace: &Trace, fails: &mut dyn FnMut(&Trace) -> bool) -> Trace {
    let mut smallest = trace.clone();
    let mut position = smallest.events.len();
    while position > 0 {
        position -= 1;
        let smaller = without(&smallest, position);
        if smaller != smallest && ran_as_recorded(&smaller) && fails(&smaller) {
            position = smaller.events.len(); // what was needed before may have lost its reason
            smallest = smaller;
        }
    }
    smallest
}

fn without(trace: &Trace, position: usize) -> Trace {
    let mut smaller = trace.clone();
    let gone = &trace.events[position];
    if trace.events[position + 1..].iter().any(|event| event.thread == gone.thread) {
        smaller.events[position].op = Op::Fence(MemoryOrder::Relaxed);
        return smaller;
    }
    smaller.events.remove(position);
    let renumber = |event: EventId| match event.index().cmp(&position) {
        Ordering::Less => Some(event),
        Ordering::Equal => None,
        Ordering::Greater => Some(EventId(event.0 - 1)),
    };
    let pairs = |pairs: &[(EventId, EventId)]| {
        pairs.iter().filter_map(|&(a, b)| Some((renumber(a)?, renumber(b)?))).collect()
    };
    smaller.orders = pairs(&trace.orders);
    smaller.atomic_sections = pairs(&trace.atomic_sections);
    smaller.labels = trace
        .labels
        .iter()
        .filter_map(|(&event, label)| Some((renumber(event)?, label.clone())))
        .collect();
    smaller
}

/// Is the recorded order feasible in the trace's own model?
fn ran_as_recorded(trace: &Trace) -> bool {
    let Ok(ctp) = ConcurrentTraceProgram::build(trace) else { return false };
    let step = |next: &Option<usize>, event: EventId, _: &Configuration| {
        next.filter(|&next| next == event.index()).map(|next| next + 1)
    };
    let found =
        Interleavings::new(&ctp).search(Some(0), step, |&next, _| next == Some(trace.events.len()));
    matches!(found, Ok(Some(_)))
}

pub(super) fn access(variable: VariableId, value: u64, term: Option<TermId>) -> Access {
    Access { variable, value: Some(value), term, address: None, order: None }
}

/// Takes away the terms, and the values unless they are kept.
pub(super) fn strip(op: &mut Op, keep_values: bool) {
    match op {
        Op::Read(access) | Op::Write(access) => {
            access.term = None;
            if !keep_values {
                access.value = None;
            }
        }
        Op::ReadModifyWrite(step) => {
            step.term = None;
            if !keep_values {
                (step.old, step.new) = (None, None);
            }
        }
        Op::Branch(condition) | Op::Assert(condition) => condition.term = None,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::random_trace;

    #[test]
    fn from_a_shrunk_trace_nothing_can_be_taken_away() {
        let writes = |trace: &Trace| {
            trace.events.iter().filter(|event| matches!(event.op, Op::Write(_))).count()
        };
        let seed = (0..).find(|&seed| writes(&random_trace(seed)) >= 3).expect("writes are common");
        let small = shrink(&random_trace(seed), &mut |trace| writes(trace) >= 2);
        assert_eq!(writes(&small), 2);
        for position in 0..small.events.len() {
            let smaller = without(&small, position);
            assert!(smaller == small || !ran_as_recorded(&smaller) || writes(&smaller) < 2);
        }
    }
}
