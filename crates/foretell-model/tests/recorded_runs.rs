//! What really ran is feasible in the model, in whole and from any point on.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::replay::Replay;
use foretell_model::validate::validate;
use foretell_testing::machine::random_trace;
use foretell_trace::{EventId, Op, SyncOp, Trace};

/// Is the recorded order (all events, by number) a feasible linearization?
fn accepts_recorded_order(ctp: &ConcurrentTraceProgram) -> bool {
    let events = ctp.events.len();
    let witness = Interleavings::new(ctp)
        .search(
            Some(0),
            |&next, event, _| next.filter(|&next| next == event.index()).map(|next| next + 1),
            |&next, _| next == Some(events),
        )
        .expect("inputs are small");
    match witness {
        None => false,
        Some(witness) => {
            validate(ctp, &witness).expect("brute force and validator agree");
            true
        }
    }
}

#[test]
fn the_recorded_order_is_feasible() {
    for seed in 0..3000 {
        let trace = random_trace(seed);
        let ctp = ConcurrentTraceProgram::build(&trace).expect("a recorded trace has a model");
        assert!(accepts_recorded_order(&ctp), "seed {seed}: {:#?}", trace.events);
    }
}

/// The complete feasible orders that start with the first `start` events as recorded, as trace
/// events; `None` when there are too many to list.
fn complete_orders(ctp: &ConcurrentTraceProgram, start: usize) -> Option<BTreeSet<Vec<EventId>>> {
    let mut orders = BTreeSet::new();
    let mut prefixes = 0;
    Interleavings::new(ctp)
        .visit(&mut |prefix| {
            prefixes += 1;
            let order = &prefix.witness.order;
            if order.len() <= start && order.iter().enumerate().any(|(at, e)| at != e.index()) {
                return ControlFlow::Continue(());
            }
            if prefix.complete && order[..start].iter().enumerate().all(|(at, e)| at == e.index()) {
                let origins = order[start..].iter().map(|&event| ctp.event(event).origin);
                orders.insert(origins.collect());
            }
            match prefixes < 20_000 {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .expect("inputs are small");
    (prefixes < 20_000).then_some(orders)
}

fn is_deterministic(trace: &Trace) -> bool {
    !trace.events.iter().any(|event| matches!(event.op, Op::Transition(_)))
}

#[test]
fn a_window_allows_what_the_whole_allows_after_the_recorded_start() {
    let mut compared = 0;
    for seed in 0..600 {
        let trace = random_trace(seed);
        if !is_deterministic(&trace) {
            continue;
        }
        let whole = ConcurrentTraceProgram::build(&trace).expect("a recorded trace has a model");
        let start = (trace.events.len() / 3 + (seed as usize % 3)).min(trace.events.len());
        let cuts_section = trace
            .atomic_sections
            .iter()
            .any(|&(first, last)| first.index() < start && start <= last.index());
        if cuts_section {
            continue;
        }
        let mut replay = Replay::new(&trace).expect("a recorded trace has a model");
        replay.advance_to(EventId::from(start)).expect("the order was observed");
        let rest: Vec<EventId> = (start..trace.events.len()).map(EventId::from).collect();
        let window = ConcurrentTraceProgram::build_window(&replay, &rest).expect("as the whole");
        assert!(accepts_recorded_order(&window), "seed {seed} from {start}");
        if let Some(expected) = complete_orders(&whole, start) {
            let found = complete_orders(&window, 0).expect("a part of the whole");
            assert!(found.is_subset(&expected), "seed {seed} from {start}");
            // The replay fixes which waiter an earlier signal woke; the whole leaves it open.
            let signals =
                |event: &foretell_trace::Event| matches!(event.op, Op::Sync(_, SyncOp::Signal));
            if !trace.events[..start].iter().any(signals) {
                assert_eq!(found, expected, "seed {seed} from {start}");
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} small enough");
}
