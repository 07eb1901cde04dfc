//! Orders of channels that were kept although another one is possible.
//!
//! The model gives a receive what it got in the recorded run. Where two threads send different messages
//! into one queue, where two threads receive from it, where one call takes what was sent in parts, or
//! where a thread only looks whether something is there, another interleaving would give something else. The model leaves those interleavings out (see
//! the module `channel`). This finds out whether there are any, so that nobody takes "nothing found" for
//! an answer about them.
//!
//! A thread that looks again until it finds something gets there in every order, if a round in vain
//! leaves nothing behind: such looks are marked ([`AwaitMark::Test`] right after them), and what they
//! find is not a matter of timing. A look at a file, or at what the C library keeps, never waits, so
//! one that found what another thread had made could have come too early; looks at other channels that
//! found something may have been waits. A thread that receives again at the same place is taken for one
//! that reads a stream, in whatever parts it comes.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use foretell_trace::{AwaitMark, Event, EventId, ObjectId, Op, Site, SyncOp, ThreadId, Trace};

use crate::channel::{Treatment, Uses, uses};
use crate::must_order::MustOrder;

/// Two steps of a channel that could take place in the other order, with another result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptOrder {
    /// The channel.
    pub channel: ObjectId,
    /// The step that came first in the recorded run.
    pub first: EventId,
    /// The other one, of another thread.
    pub second: EventId,
}

/// Is the channel the name of a file, its content, or what the C library keeps between its calls? (The
/// names are the runtime's.)
fn never_waits(trace: &Trace, channel: ObjectId) -> bool {
    let name = &trace.objects[channel.index()].name;
    ["file ", "content of a file", "state of "].iter().any(|begin| name.starts_with(begin))
}

/// One kept order for each channel that has any.
pub fn kept_orders(trace: &Trace) -> Vec<KeptOrder> {
    let mut candidates: Vec<KeptOrder> = Vec::new();
    let known = Known { awaited: awaited(trace), repeated: repeated(trace) };
    for (channel, kind, uses) in uses(trace) {
        let mut pairs = Vec::new();
        match uses.treatment(trace, kind) {
            Treatment::Counted(_) | Treatment::Free => {}
            Treatment::Paired => uses.looks(trace, &known, &mut pairs),
            Treatment::Recorded => {
                uses.rivals(trace, |op| matches!(op, Op::Sync(_, SyncOp::Send { .. })), &mut pairs);
                uses.rivals(
                    trace,
                    |op| matches!(op, Op::Sync(_, SyncOp::Receive { .. })),
                    &mut pairs,
                );
                uses.looks(trace, &known, &mut pairs);
                if never_waits(trace, channel) {
                    uses.lucky_looks(trace, &known, &mut pairs);
                }
            }
        }
        let kept = |(first, second)| KeptOrder { channel, first, second };
        candidates.extend(pairs.into_iter().map(kept));
    }
    if candidates.is_empty() {
        return candidates;
    }
    // What else orders them, they do not owe to the channel.
    let channels: BTreeSet<ObjectId> = candidates.iter().map(|kept| kept.channel).collect();
    let Ok(order) = MustOrder::without(trace, &channels) else { return Vec::new() };
    candidates.retain(|kept| !order.before(kept.first, kept.second));
    candidates.dedup_by_key(|kept| kept.channel);
    candidates
}

/// What is known of the trace's looks and receives.
struct Known {
    awaited: BTreeSet<EventId>,
    repeated: Repeated,
}

/// The looks by which a loop that waits decided to go on: it looks again until it can.
fn awaited(trace: &Trace) -> BTreeSet<EventId> {
    let mut last: BTreeMap<ThreadId, EventId> = BTreeMap::new();
    let mut awaited = BTreeSet::new();
    for (at, event) in trace.events.iter().enumerate() {
        let before = last.insert(event.thread, EventId::from(at));
        let looks = |id: &EventId| {
            matches!(trace.event(*id).op, Op::Sync(_, SyncOp::Receive { .. } | SyncOp::Poll { .. }))
        };
        if event.op == Op::Await(AwaitMark::Test) {
            awaited.extend(before.filter(looks));
        }
    }
    awaited
}

/// By thread and place in the source: the last receive there. (A compiler may make two calls of one, which
/// have the same place.)
type Repeated = HashMap<(ThreadId, Option<Site>), EventId>;

fn place(trace: &Trace, event: &Event) -> (ThreadId, Option<Site>) {
    (event.thread, event.site.map(|site| trace.sites[site.index()].clone()))
}

fn repeated(trace: &Trace) -> Repeated {
    let events = trace.events.iter().enumerate();
    let receives = events.filter(|(_, event)| {
        matches!(event.op, Op::Sync(_, SyncOp::Receive { .. } | SyncOp::Poll { .. }))
    });
    receives.map(|(at, event)| (place(trace, event), EventId::from(at))).collect()
}

impl Uses {
    /// Neighbouring steps of this sort by different threads, as far as somebody notices.
    fn rivals(&self, trace: &Trace, is: impl Fn(&Op) -> bool, pairs: &mut Vec<(EventId, EventId)>) {
        let op = |step: EventId| &trace.event(step).op;
        let notices = |step: &&EventId| !matches!(op(**step), Op::Sync(_, SyncOp::Send { .. }));
        let Some(&last) = self.steps.iter().rfind(notices) else { return };
        let steps: Vec<EventId> = self.steps.iter().copied().filter(|&s| is(op(s))).collect();
        for pair in steps.windows(2) {
            let by_two = trace.event(pair[0]).thread != trace.event(pair[1]).thread;
            if by_two && pair[0] < last {
                pairs.push((pair[0], pair[1]));
            }
        }
    }

    /// Looks that nobody repeats, and receives of what may not have been there yet or all there, with the
    /// sends that they came before or after.
    fn looks(&self, trace: &Trace, known: &Known, pairs: &mut Vec<(EventId, EventId)>) {
        let again = |step: EventId| {
            let last = known.repeated.get(&place(trace, trace.event(step)));
            last.is_some_and(|&last| last > step)
        };
        let mut sent: Option<EventId> = None;
        // What is in the channel: the sends, and how much of each is left.
        let mut there: VecDeque<(EventId, u64)> = VecDeque::new();
        for (place, &step) in self.steps.iter().enumerate() {
            let event = trace.event(step);
            let awaited = known.awaited.contains(&step);
            let found_no_more = match event.op {
                Op::Sync(_, SyncOp::Send { amount, .. }) => {
                    sent = Some(step);
                    there.push_back((step, amount));
                    continue;
                }
                Op::Sync(_, SyncOp::Receive { drained, by_try, amount, .. }) => {
                    if by_try && !awaited {
                        pairs.extend(sent.map(|send| (send, step)));
                    }
                    let parts = take(&mut there, amount);
                    let in_parts = parts.len() > 1 && (drained || !self.is_number(trace));
                    if in_parts && !again(step) {
                        pairs.extend(parts.last().map(|&send| (send, step)));
                    }
                    drained && !again(step)
                }
                Op::Sync(_, SyncOp::Poll { ready, .. }) => !ready,
                _ => continue,
            };
            if found_no_more {
                let next = self.steps[place..].iter().find(|&&next| {
                    let next = trace.event(next);
                    matches!(next.op, Op::Sync(_, SyncOp::Send { .. }))
                        && next.thread != event.thread
                });
                pairs.extend(next.map(|&send| (step, send)));
            }
        }
        pairs.retain(|&(a, b)| trace.event(a).thread != trace.event(b).thread);
    }

    /// Looks at a state, which never wait, with the changes by other threads just before and after. Who waits
    /// for the change before gets there in every order.
    fn lucky_looks(&self, trace: &Trace, known: &Known, pairs: &mut Vec<(EventId, EventId)>) {
        let is_change =
            |step: EventId| matches!(trace.event(step).op, Op::Sync(_, SyncOp::Send { .. }));
        for (place, &step) in self.steps.iter().enumerate() {
            if !matches!(trace.event(step).op, Op::Sync(_, SyncOp::Poll { .. })) {
                continue;
            }
            let thread = trace.event(step).thread;
            let by_others = |other: &EventId| trace.event(*other).thread != thread;
            let before = self.steps[..place].iter().rfind(|&&other| is_change(other));
            let before = before.filter(|_| !known.awaited.contains(&step));
            pairs.extend(before.filter(|other| by_others(other)).map(|&change| (change, step)));
            // What the thread itself changes after its look, another one may have changed before it.
            let mut after = self.steps[place..].iter();
            let after = after.find(|&other| is_change(*other) && by_others(other));
            pairs.extend(after.map(|&change| (step, change)));
        }
    }

    /// Whether only the amount counts: a receive gets all that it needs or nothing.
    fn is_number(&self, trace: &Trace) -> bool {
        self.steps.iter().all(|&step| match trace.event(step).op {
            Op::Sync(_, SyncOp::Send { content, .. }) => content == 0,
            _ => true,
        })
    }
}

/// Takes so much from the oldest sends; gives those that it came from.
fn take(there: &mut VecDeque<(EventId, u64)>, mut amount: u64) -> Vec<EventId> {
    let mut parts = Vec::new();
    while amount > 0
        && let Some((send, left)) = there.front_mut()
    {
        parts.push(*send);
        let part = amount.min(*left);
        amount -= part;
        *left -= part;
        if *left == 0 {
            there.pop_front();
        }
    }
    parts
}
