//! What no interleaving of a trace's events tells: it is said with every prediction.

use foretell_model::kept::{KeptOrder, kept_orders};
use foretell_trace::{ChannelKind, EventId, ObjectKind, Op, SyncOp, Trace};

use crate::finding::at_place;

/// One sentence each.
pub fn sentences(trace: &Trace) -> Vec<String> {
    let gaps = trace.metadata.gaps.iter().map(ToString::to_string);
    let kept = kept_orders(trace);
    let kept = kept.iter().map(|kept| kept_order(trace, kept));
    gaps.chain(never_ran(trace)).chain(kept).collect()
}

/// Threads that were created and did nothing before the run ended: what they would have done, no
/// interleaving of these events tells. One that was joined has ended, and had nothing to do.
fn never_ran(trace: &Trace) -> Option<String> {
    let mut waiting = vec![false; trace.threads.len()];
    for event in &trace.events {
        if let Op::Fork(thread) = event.op {
            waiting[thread.index()] = true;
        }
    }
    for event in &trace.events {
        waiting[event.thread.index()] = false;
        if let Op::Join(thread) = event.op {
            waiting[thread.index()] = false;
        }
    }
    match waiting.into_iter().filter(|&waits| waits).count() {
        0 => None,
        1 => Some("a thread was created and never ran before the run ended".into()),
        count => Some(format!("{count} threads were created and never ran before the run ended")),
    }
}

/// What was not looked at because a channel keeps its recorded order.
fn kept_order(trace: &Trace, kept: &KeptOrder) -> String {
    let channel = &trace.objects[kept.channel.index()];
    let is_state = channel.kind == ObjectKind::Channel(ChannelKind::State);
    let step = |event: EventId| {
        let thread = &trace.threads[trace.event(event).thread.index()].name;
        let verb = match (&trace.event(event).op, is_state) {
            (Op::Sync(_, SyncOp::Send { .. }), true) => "changes it",
            (Op::Sync(_, SyncOp::Send { .. }), false) => "sends to it",
            (Op::Sync(_, SyncOp::Receive { .. }), true) => "uses it",
            (Op::Sync(_, SyncOp::Receive { .. }), false) => "receives from it",
            _ => "looks at it",
        };
        format!("{thread} {verb}{}", at_place(trace, event))
    };
    format!(
        "operations on {} were tried in their recorded order only: {} before {}",
        channel.name,
        step(kept.first),
        step(kept.second)
    )
}
