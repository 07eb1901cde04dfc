//! Which of one thread's steps another thread's events can come between, by must-happens-before alone.
//!
//! Filters that look at some of many steps must not overlook the one that matters: of a thousand accesses that a
//! join puts in an order, one that comes before it may race.

use foretell_model::must_order::MustOrder;
use foretell_trace::EventId;

/// A step from one event to another of a thread; both may be the same.
pub(crate) type Span = (EventId, EventId);

/// Spans of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    spans: Vec<Span>,
    /// Neither begins nor ends go back.
    unordered: bool,
}

impl Spans {
    /// Takes one more.
    pub fn push(&mut self, span: Span) {
        let goes_back = |last: &Span| span.0 < last.0 || span.1 < last.1;
        self.unordered |= self.spans.last().is_some_and(goes_back);
        self.spans.push(span);
    }

    /// The first `most` spans during which one of the `others`, events of one other thread in program order, can take
    /// place; and whether there are more.
    pub fn open(&self, others: &[EventId], order: &MustOrder, most: usize) -> (Vec<Span>, bool) {
        let mut open = Vec::new();
        let mut at = 0;
        while let Some(&span) = self.spans.get(at) {
            let (from, to) = during(span, others, order);
            if from < to {
                if open.len() == most {
                    return (open, true);
                }
                open.push(span);
                at += 1;
                continue;
            }
            match others.get(from) {
                _ if self.unordered => at += 1,
                // All others come before, also before what follows.
                None => break,
                // What ends before the next of them is not open either.
                Some(&next) => {
                    let closed = |&(_, end): &Span| order.before(end, next);
                    at += self.spans[at..].partition_point(closed).max(1);
                }
            }
        }
        (open, false)
    }
}

/// Those of the events, of one thread in program order, that can take place during the span.
pub(crate) fn during((begin, end): Span, others: &[EventId], order: &MustOrder) -> (usize, usize) {
    // Both conditions are monotone along the other thread.
    let from = others.partition_point(|&event| order.before(event, begin));
    let to = others.partition_point(|&event| !order.before(end, event));
    (from, to)
}
