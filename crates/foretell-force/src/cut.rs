//! Runs cut short after a round of a loop that waits.
//!
//! The begin of a round that then did not leave its loop may be part of what was forced; it is left out of
//! the trace. That the thread never went on after it is what the rest of the run shows as well.

use foretell_trace::waiting::without_rounds;
use foretell_trace::{AwaitMark, EventId, Op, Trace};

/// The runs that this one would have been if a thread had not gone on after a round: each is its begin, up
/// to the thread's next round, without other rounds. No more than `most`. Rounds of one access and one
/// branch are not among them: no prefix ends within one.
pub(crate) fn cut_after_rounds(trace: &Trace, most: usize) -> Vec<Trace> {
    let is = |event: EventId, mark: AwaitMark| trace.event(event).op == Op::Await(mark);
    let mut cuts = Vec::new();
    for chain in trace.events_by_thread() {
        let mut begin = 0;
        for (number, &event) in chain.iter().enumerate() {
            if is(event, AwaitMark::Round) {
                begin = number;
            }
            let (true, Some(next)) = (is(event, AwaitMark::Again), chain.get(number + 1)) else {
                continue;
            };
            let round = || chain[begin..number].iter().map(|&event| &trace.event(event).op);
            let noticed =
                |op: &&Op| matches!(op, Op::Read(_) | Op::ReadModifyWrite(_) | Op::Sync(..));
            let accesses = round().filter(noticed);
            let branches = round().filter(|op| matches!(op, Op::Branch(_)));
            if (accesses.count() > 1 || branches.count() > 1) && cuts.len() < most {
                let events = trace.events[..next.index()].to_vec();
                cuts.push(without_rounds(Trace { events, ..trace.clone() }));
            }
        }
    }
    cuts
}
