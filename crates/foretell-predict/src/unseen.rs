//! What no interleaving of a trace's events tells: it is said with every prediction.

use foretell_model::kept::{KeptOrder, kept_orders};
use foretell_trace::{EventId, Op, Trace};

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
    let step = |event: EventId| {
        let event = trace.event(event);
        let verb = match event.op {
            Op::Send { .. } => "sends to",
            Op::Receive { .. } => "receives from",
            _ => "looks at",
        };
        let thread = &trace.threads[event.thread.index()].name;
        let at = event.site.map(|site| &trace.sites[site.index()]);
        let at = at.filter(|site| site.line > 0);
        let at = at.map_or(String::new(), |site| format!(" at {}:{}", site.file, site.line));
        (format!("{thread} {verb}"), at)
    };
    let name = &trace.objects[kept.channel.index()].name;
    let ((first, first_at), (second, second_at)) = (step(kept.first), step(kept.second));
    format!(
        "steps on a channel were only tried in their recorded order: {first} {name}{first_at} before \
         {second} it{second_at}"
    )
}
