//! What channels allow, against a queue that is carried out.
//!
//! Small random runs over one channel. All orders of their events are tried on a real queue of bytes:
//! an order is possible if every receive gets what it got in the recorded run and every look finds what
//! it found. The model must allow no other order, and all of them where it says that it is exact.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_testing::Random;
use foretell_trace::format::text;
use foretell_trace::{ChannelKind, EventId, Indexer, ObjectKind, Op, SyncOp, ThreadId, Trace};

/// What a receive took: the content of each unit.
type Taken = Vec<u64>;

/// Carries an event out; `None` when it would wait.
fn carry_out(op: &Op, queue: &mut VecDeque<u64>) -> Option<(Taken, bool)> {
    match *op {
        Op::Sync(_, SyncOp::Send { amount, content, .. }) => {
            queue.extend((0..amount).map(|_| content));
            Some((Vec::new(), false))
        }
        Op::Sync(_, SyncOp::Receive { amount, drained, .. }) => {
            let amount = amount as usize;
            // Who asks for more than there is gets what is there.
            if queue.len() < amount || (drained && queue.len() != amount) {
                return None;
            }
            Some((queue.drain(..amount).collect(), false))
        }
        Op::Sync(_, SyncOp::Poll { .. }) => Some((Vec::new(), !queue.is_empty())),
        _ => unreachable!("only channels are used"),
    }
}

struct Recorded {
    trace: Trace,
    outcomes: Vec<(Taken, bool)>,
}

/// A random run of up to `length` events. `alike`: all that is sent has the same content.
fn recorded(
    random: &mut Random,
    threads: u32,
    senders: u32,
    length: usize,
    alike: bool,
) -> Recorded {
    let mut trace = Trace::new();
    for thread in 0..threads {
        trace.add_thread(&format!("T{thread}"), vec![thread]);
    }
    trace.metadata.observed_order = true;
    let channel = trace.add_object("c", ObjectKind::Channel(ChannelKind::Queue));
    let mut indexer = Indexer::default();
    let mut queue = VecDeque::new();
    let mut outcomes = Vec::new();
    while trace.events.len() < length {
        let thread = random.below(threads as usize) as u32;
        let op = if thread < senders && (senders < threads || random.percent(70)) {
            let content = if alike { 0 } else { random.below(2) as u64 + 1 };
            Op::Sync(channel, SyncOp::Send { amount: 1 + random.below(2) as u64, content })
        } else if random.percent(30) {
            Op::Sync(channel, SyncOp::Poll { ready: !queue.is_empty() })
        } else if queue.is_empty() {
            continue;
        } else {
            let amount = 1 + random.below(queue.len().min(2)) as u64;
            let drained = amount as usize == queue.len() && random.percent(50);
            Op::Sync(channel, SyncOp::Receive { amount, drained, by_try: false })
        };
        outcomes.push(carry_out(&op, &mut queue).expect("the run is possible"));
        trace.push(indexer.event(ThreadId(thread), None, op));
    }
    Recorded { trace, outcomes }
}

/// All complete orders that the queue allows.
fn possible(run: &Recorded) -> BTreeSet<Vec<EventId>> {
    fn descend(
        run: &Recorded,
        chains: &[Vec<EventId>],
        next: &mut Vec<usize>,
        order: &mut Vec<EventId>,
        queue: &VecDeque<u64>,
        all: &mut BTreeSet<Vec<EventId>>,
    ) {
        if order.len() == run.trace.events.len() {
            all.insert(order.clone());
            return;
        }
        for thread in 0..chains.len() {
            let Some(&event) = chains[thread].get(next[thread]) else { continue };
            let mut queue = queue.clone();
            if carry_out(&run.trace.event(event).op, &mut queue).as_ref()
                == Some(&run.outcomes[event.index()])
            {
                next[thread] += 1;
                order.push(event);
                descend(run, chains, next, order, &queue, all);
                order.pop();
                next[thread] -= 1;
            }
        }
    }
    let chains = run.trace.events_by_thread();
    let mut all = BTreeSet::new();
    let mut next = vec![0; chains.len()];
    descend(run, &chains, &mut next, &mut Vec::new(), &VecDeque::new(), &mut all);
    all
}

fn allowed(trace: &Trace) -> BTreeSet<Vec<EventId>> {
    let ctp = ConcurrentTraceProgram::build(trace).expect("it has a model");
    let mut all = BTreeSet::new();
    Interleavings::new(&ctp)
        .visit(&mut |prefix| {
            if prefix.complete {
                all.insert(prefix.witness.order.clone());
            }
            ControlFlow::Continue(())
        })
        .expect("no free inputs");
    all
}

fn text(trace: &Trace) -> String {
    let mut text = Vec::new();
    text::write(trace, &mut text).expect("a vector takes everything");
    String::from_utf8_lossy(&text).into_owned()
}

fn cases(usual: usize) -> usize {
    std::env::var("FORETELL_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn compare(threads: u32, senders: u32, alike: bool, exact: bool) {
    let mut random = Random::new(7);
    let (mut orders, mut more) = (0, 0);
    for case in 0..cases(400) {
        let length = 3 + random.below(4);
        let run = recorded(&mut random, threads, senders, length, alike);
        let (possible, allowed) = (possible(&run), allowed(&run.trace));
        let text = || text(&run.trace);
        for order in &allowed {
            assert!(possible.contains(order), "case {case}: {order:?} in\n{}", text());
        }
        if exact {
            assert_eq!(possible, allowed, "case {case}:\n{}", text());
        }
        let must = MustOrder::new(&run.trace).expect("no cycle");
        for order in &possible {
            let place = |event: usize| order.iter().position(|at| at.index() == event);
            for (a, b) in (0..order.len()).flat_map(|a| (0..order.len()).map(move |b| (a, b))) {
                if exact && must.before(EventId::from(a), EventId::from(b)) {
                    assert!(place(a) < place(b), "case {case}: {order:?} in\n{}", text());
                }
            }
        }
        orders += allowed.len();
        more += usize::from(allowed.len() > 1);
    }
    assert!(orders > 0 && more > 0, "the runs leave something to choose");
}

#[test]
fn one_sender_and_one_receiver_are_exact() {
    compare(2, 1, false, true);
}

#[test]
fn equal_content_is_exact_whoever_sends_and_receives() {
    compare(3, 3, true, true);
    compare(3, 2, true, true);
}

#[test]
fn different_content_from_several_senders_allows_nothing_impossible() {
    compare(3, 3, false, false);
    compare(3, 2, false, false);
    compare(3, 1, false, false);
}

fn read(text: &str) -> Trace {
    let mut trace = text::read(&format!("foretell-trace 1\n{text}")).expect("a trace");
    trace.metadata.observed_order = true;
    trace
}

#[test]
fn what_comes_from_outside_keeps_its_order() {
    let trace =
        read("thread A\nthread B\nchannel c queue\nA send c 1\nB receive c 2\nA send c 1\n");
    assert_eq!(allowed(&trace).len(), 1, "the second byte came from elsewhere");
}

#[test]
fn a_state_is_seen_as_it_was_seen() {
    let trace = read(
        "thread A\nthread B\nchannel c state\nB poll-empty c\nA send c 1\nB poll c\nA send c 1\n",
    );
    assert_eq!(allowed(&trace).len(), 1);
    let unseen = read("thread A\nthread B\nchannel c state\nA send c 1\nB send c 1\n");
    assert_eq!(allowed(&unseen).len(), 2, "nobody looks");
}

#[test]
fn a_handler_runs_at_once() {
    let trace = read(
        "thread A\nthread B\nchannel c interrupt\nB alloc 0x10 1\nA send c 1\nB receive c 1\nB free 0x10\n",
    );
    assert_eq!(allowed(&trace).len(), 1);
}
