//! Expressions of a recording that contradict what was recorded.
//!
//! The recorder takes an expression for a value from its shadow. Where code that was not instrumented
//! changed the memory unnoticed, a shadow can be stale, and the expression contradicts the value. The
//! value is what happened: the expression is dropped, and what depends on it is taken as it was. That
//! is a gap of the trace, not a reason to refuse it.

use std::collections::BTreeSet;

use super::{Faults, references, terms};
use crate::event::Op;
use crate::id::EventId;
use crate::trace::Trace;

/// Drops the expressions of events that do not fit what the events did; says of how many events.
pub fn drop_stale_terms(trace: &mut Trace) -> usize {
    let stale: BTreeSet<EventId> = {
        let mut faults = Faults { trace, found: Vec::new() };
        let sound = references(trace, &mut faults);
        faults.found.clear(); // a fault of another kind
        let terms = terms::Summaries::new(trace, &sound);
        for (position, event) in trace.events.iter().enumerate() {
            if sound.0[position] {
                terms.step(EventId::from(position), event, &mut faults);
            }
        }
        faults.found.iter().filter_map(|fault| fault.event).collect()
    };
    for id in &stale {
        match &mut trace.events[id.index()].op {
            Op::Read(access) | Op::Write(access) => (access.term, access.address) = (None, None),
            Op::ReadModifyWrite(step) => (step.term, step.address) = (None, None),
            Op::Branch(condition) | Op::Assert(condition) => condition.term = None,
            _ => {}
        }
    }
    stale.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;
    use crate::validate::validate;

    const STALE: &str = "foretell-trace 1\nsymbolic\nobserved\nthread T\nvar x = 1\nvar y = 0\n\
        T r = read x = 1\n\
        T write y = 2 := (+ r 1)\n\
        T write y = 7 := (+ r 1)\n\
        T branch (= r 1) true\n\
        T branch (= r 1) false\n";

    #[test]
    fn only_what_contradicts_itself_is_dropped() {
        let mut trace = text::read(STALE).expect("a trace");
        assert_eq!(validate(&trace).len(), 2);
        assert_eq!(drop_stale_terms(&mut trace), 2);
        assert_eq!(validate(&trace), []);
        let has_term = |position: usize| !trace.events[position].op.terms().is_empty();
        assert_eq!([1, 2, 3, 4].map(has_term), [true, false, true, false]);
        assert_eq!(drop_stale_terms(&mut trace), 0);
    }
}
