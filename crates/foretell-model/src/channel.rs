//! What a channel (a pipe, a socket, an eventfd, a file, a signal) orders.
//!
//! What was done before a send is seen after the receive that returned it. Which interleavings keep
//! that true depends on who uses the channel and how:
//!
//! - **Paired**: one thread sends, one receives. The k-th byte received is the k-th sent, so each
//!   receive comes after the send of its last byte. A receive that took all there was, or a look that
//!   found nothing, comes before the next send: otherwise it would have come out differently.
//! - **Counted**: everything sent has the same content, so it does not matter who sent what. The channel
//!   is a number: a send adds to it, a receive needs its amount and takes it.
//! - **Recorded**: everything else. What is sent depends on who came first, comes from outside the
//!   program, or is a state rather than a queue. Sends, and receives and looks with the sends around
//!   them, stay in the order of the recorded run. This loses interleavings and invents none; which ones
//!   were lost is found by [`crate::kept`].
//!
//! A signal with a handler ([`ChannelKind::Interrupt`]) is recorded, and its receiver does nothing
//! between the send and the receive: the handler runs at once.

use std::collections::{BTreeSet, HashMap};

use foretell_trace::{
    ChannelKind, EventId, ObjectId, ObjectKind, Op, SyncOp, ThreadId, Trace, irregular_locks,
};

/// The channels of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    /// By object, for channels that are counted: no number of the channel is larger.
    pub counted: Vec<Option<u64>>,
    /// Locks that say nothing about who holds them, see [`irregular_locks`]: they keep their order.
    pub irregular: BTreeSet<ObjectId>,
    /// The orders that the other channels impose, sorted.
    pub orders: Vec<(EventId, EventId)>,
}

/// How a channel is understood; see the top of this file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// One sender, one receiver.
    Paired,
    /// A number that is never larger than this.
    Counted(u64),
    /// In recorded order.
    Recorded,
    /// The trace has no order to keep.
    Free,
}

/// The steps of one channel, in recorded order.
#[derive(Default)]
pub(crate) struct Uses {
    pub steps: Vec<EventId>,
}

/// The channels of a trace with their steps.
pub(crate) fn uses(trace: &Trace) -> impl Iterator<Item = (ObjectId, ChannelKind, Uses)> {
    let mut uses: Vec<Uses> = Vec::new();
    uses.resize_with(trace.objects.len(), Uses::default);
    for (position, event) in trace.events.iter().enumerate() {
        if let Op::Sync(
            channel,
            SyncOp::Send { .. } | SyncOp::Receive { .. } | SyncOp::Poll { .. },
        ) = event.op
        {
            uses[channel.index()].steps.push(EventId::from(position));
        }
    }
    uses.into_iter().enumerate().filter_map(|(object, uses)| match trace.objects[object].kind {
        ObjectKind::Channel(kind) => Some((ObjectId::from(object), kind, uses)),
        _ => None,
    })
}

impl Channels {
    pub(crate) fn new(trace: &Trace) -> Self {
        Self::without(trace, &BTreeSet::new())
    }

    /// As [`Channels::new`], where some channels order nothing.
    pub(crate) fn without(trace: &Trace, skipped: &BTreeSet<ObjectId>) -> Self {
        let mut channels = Self {
            counted: vec![None; trace.objects.len()],
            irregular: irregular_locks(trace),
            orders: Vec::new(),
        };
        channels.keep_irregular_locks(trace);
        for (channel, kind, uses) in uses(trace) {
            if skipped.contains(&channel) {
                continue;
            }
            match uses.treatment(trace, kind) {
                Treatment::Paired => uses.pair(trace, &mut channels.orders),
                Treatment::Counted(most) => channels.counted[channel.index()] = Some(most),
                Treatment::Recorded => uses.as_recorded(trace, kind, &mut channels.orders),
                Treatment::Free => {}
            }
        }
        channels.orders.sort_unstable();
        channels.orders.dedup();
        channels
    }

    fn keep_irregular_locks(&mut self, trace: &Trace) {
        if self.irregular.is_empty() {
            return;
        }
        let mut last: HashMap<ObjectId, EventId> = HashMap::new();
        for (position, event) in trace.events.iter().enumerate() {
            let lock = match event.op {
                Op::Sync(_, SyncOp::WaitBegin { mutex, .. } | SyncOp::WaitEnd { mutex, .. }) => {
                    Some(mutex)
                }
                ref op => op.object(),
            };
            if let Some(lock) = lock {
                self.keep(lock, EventId::from(position), &mut last);
            }
        }
    }

    /// The next step of a lock.
    fn keep(&mut self, lock: ObjectId, step: EventId, last: &mut HashMap<ObjectId, EventId>) {
        if self.irregular.contains(&lock)
            && let Some(before) = last.insert(lock, step)
        {
            self.orders.push((before, step));
        }
    }

    /// The orders whose first event is not before this one.
    pub(crate) fn orders_from(&self, first: EventId) -> &[(EventId, EventId)] {
        &self.orders[self.orders.partition_point(|&(before, _)| before < first)..]
    }
}

impl Uses {
    pub(crate) fn treatment(&self, trace: &Trace, kind: ChannelKind) -> Treatment {
        match kind {
            ChannelKind::Queue if !trace.metadata.observed_order => {
                Treatment::Counted(self.largest(trace))
            }
            ChannelKind::Queue if self.adds_up(trace) && self.is_paired(trace) => Treatment::Paired,
            ChannelKind::Queue if self.adds_up(trace) && self.is_uniform(trace) => {
                Treatment::Counted(self.largest(trace))
            }
            _ if trace.metadata.observed_order => Treatment::Recorded,
            _ => Treatment::Free,
        }
    }

    /// No number of this channel is larger.
    fn largest(&self, trace: &Trace) -> u64 {
        let (mut sent, mut received) = (0u64, 0);
        for &step in &self.steps {
            match trace.event(step).op {
                Op::Sync(_, SyncOp::Send { amount, .. }) => sent = sent.saturating_add(amount),
                Op::Sync(_, SyncOp::Receive { amount, .. }) => received = received.max(amount),
                _ => {}
            }
        }
        sent.max(received)
    }

    /// Is everything explained by the sends of the trace: no receive got more than had been sent, and
    /// looks and receives that emptied the channel report the same amount?
    fn adds_up(&self, trace: &Trace) -> bool {
        let mut there: u64 = 0;
        for &step in &self.steps {
            match trace.event(step).op {
                Op::Sync(_, SyncOp::Send { amount, .. }) => match there.checked_add(amount) {
                    Some(sum) => there = sum,
                    None => return false,
                },
                Op::Sync(_, SyncOp::Receive { amount, drained, .. }) => {
                    match there.checked_sub(amount) {
                        Some(rest) if rest == 0 || !drained => there = rest,
                        _ => return false,
                    }
                }
                Op::Sync(_, SyncOp::Poll { ready, .. }) if ready != (there > 0) => return false,
                _ => {}
            }
        }
        true
    }

    fn one_thread(&self, trace: &Trace, is: impl Fn(&Op) -> bool) -> bool {
        let mut thread: Option<ThreadId> = None;
        self.steps
            .iter()
            .map(|&step| trace.event(step))
            .filter(|event| is(&event.op))
            .all(|event| *thread.get_or_insert(event.thread) == event.thread)
    }

    fn is_paired(&self, trace: &Trace) -> bool {
        let sends = |op: &Op| matches!(op, Op::Sync(_, SyncOp::Send { .. }));
        self.one_thread(trace, sends) && self.one_thread(trace, |op| !sends(op))
    }

    /// Is what a receive returns the same whoever sent it? Parts of messages are not.
    fn is_uniform(&self, trace: &Trace) -> bool {
        let mut first = None;
        let sends = self.steps.iter().all(|&step| match trace.event(step).op {
            Op::Sync(_, SyncOp::Send { content: 0, .. }) => *first.get_or_insert((0, 1)) == (0, 1),
            Op::Sync(_, SyncOp::Send { content, amount, .. }) => {
                *first.get_or_insert((content, amount)) == (content, amount)
            }
            _ => true,
        });
        let unit = first.map_or(1, |(_, unit)| unit).max(1);
        sends
            && self.steps.iter().all(|&step| match trace.event(step).op {
                Op::Sync(_, SyncOp::Receive { amount, .. }) => amount.is_multiple_of(unit),
                _ => true,
            })
    }

    fn pair(&self, trace: &Trace, orders: &mut Vec<(EventId, EventId)>) {
        let mut sends = Vec::new();
        // An event counter may be given almost 2^64 at once.
        let mut sum: u128 = 0;
        for &step in &self.steps {
            if let Op::Sync(_, SyncOp::Send { amount, .. }) = trace.event(step).op {
                sum += u128::from(amount);
                sends.push((sum, step));
            }
        }
        // The send that puts the n-th byte in.
        let sender = |byte: u128| {
            let place = sends.partition_point(|&(sum, _)| sum < byte);
            sends.get(place).map(|&(_, send)| send)
        };
        let mut taken: u128 = 0;
        for &step in &self.steps {
            let (needed, emptied) = match trace.event(step).op {
                Op::Sync(_, SyncOp::Send { .. }) => continue,
                Op::Sync(_, SyncOp::Receive { amount, drained, .. }) => {
                    taken += u128::from(amount);
                    (taken, drained)
                }
                Op::Sync(_, SyncOp::Poll { ready, .. }) => (taken + u128::from(ready), !ready),
                _ => continue,
            };
            if needed > 0 {
                orders.extend(sender(needed).map(|send| (send, step)));
            }
            if emptied {
                orders.extend(sender(taken + 1).map(|send| (step, send)));
            }
        }
    }

    fn as_recorded(&self, trace: &Trace, kind: ChannelKind, orders: &mut Vec<(EventId, EventId)>) {
        let takes = |op: &Op| matches!(op, Op::Sync(_, SyncOp::Receive { .. }));
        let sends = |op: &Op| matches!(op, Op::Sync(_, SyncOp::Send { .. }));
        // What nobody looks at afterwards need not stay in order.
        let Some(last) = self.steps.iter().rposition(|&step| !sends(&trace.event(step).op)) else {
            return;
        };
        let mut change: Option<EventId> = None;
        let mut looks: Vec<EventId> = Vec::new();
        for (place, &step) in self.steps.iter().enumerate() {
            let op = &trace.event(step).op;
            if sends(op) || takes(op) {
                orders.extend(looks.iter().map(|&look| (look, step)));
                if looks.is_empty() || takes(op) {
                    orders.extend(change.map(|change| (change, step)));
                }
                if place <= last {
                    looks.clear();
                    change = Some(step);
                }
            } else {
                orders.extend(change.map(|change| (change, step)));
                looks.push(step);
            }
            if kind == ChannelKind::Interrupt && takes(op) {
                self.interrupt(trace, place, orders);
            }
        }
    }

    /// The receiver stands still from the send to the receive.
    fn interrupt(&self, trace: &Trace, place: usize, orders: &mut Vec<(EventId, EventId)>) {
        let receive = self.steps[place];
        let thread = trace.event(receive).thread;
        let before = (0..receive.index())
            .rev()
            .map(EventId::from)
            .find(|&event| trace.event(event).thread == thread);
        let send = self.steps[..place]
            .iter()
            .rev()
            .find(|&&step| matches!(trace.event(step).op, Op::Sync(_, SyncOp::Send { .. })));
        if let (Some(before), Some(&send)) = (before, send)
            && before < send
        {
            orders.push((before, send));
        }
    }
}
