//! Interleavings are counted as brute force enumerates them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use foretell_model::brute::Interleavings;
use foretell_model::count::interleavings;
use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_testing::machine::random_trace;
use foretell_trace::format::text;
use foretell_trace::{EventId, Term, ThreadId, VariableId};

/// Larger random traces are left out.
const MOST_PREFIXES: usize = 20_000;
const ENOUGH: usize = 1_000_000;

fn counted(body: &str) -> Option<f64> {
    let trace = text::read(&format!("foretell-trace 1\nsymbolic\n{body}")).expect("a trace");
    let ctp = ConcurrentTraceProgram::build(&trace).expect("a model");
    interleavings(&ctp, &mut ENOUGH.clone())
}

#[test]
fn a_lock_leaves_one_order_for_each_order_of_its_sections() {
    let section = |thread: &str| {
        format!("{thread} acquire m\n{thread} read x\n{thread} write x = 1\n{thread} release m\n")
    };
    let body = ["A", "B", "C", "D"].map(section).concat();
    assert_eq!(counted(&format!("thread A, B, C, D\nvar x = 0\nmutex m\n{body}")), Some(24.0));
}

#[test]
fn what_one_thread_alone_touches_adds_nothing() {
    let body = "thread A, B\nvar x = 0\nvar own = 0\nA write x = 1\nB write x = 2\n";
    assert_eq!(counted(body), Some(2.0));
    assert_eq!(
        counted(&format!("{body}A write own = 1\nA read own\nA write own = 2\n")),
        Some(2.0)
    );
}

#[test]
fn a_limit_is_no_number() {
    let thread = |name: &str| format!("{name} write x\n").repeat(10);
    let body = ["A", "B", "C", "D"].map(thread).concat();
    let trace = text::read(&format!("foretell-trace 1\nthread A, B, C, D\nvar x\n{body}"));
    let ctp = ConcurrentTraceProgram::build(&trace.expect("a trace")).expect("a model");
    assert_eq!(interleavings(&ctp, &mut 1_000), None);
    // 40! / 10!^4, up to the last digits of a float.
    let all = interleavings(&ctp, &mut ENOUGH.clone()).expect("enough");
    assert!((all / 4_705_360_871_073_570_227_520.0 - 1.0).abs() < 1e-9, "{all}");
}

/// Events that touch only variables of their own thread, and are in no fixed order. `None`: what an event does
/// is an input.
fn local(ctp: &ConcurrentTraceProgram) -> Option<BTreeSet<EventId>> {
    let mut threads: BTreeMap<VariableId, BTreeSet<ThreadId>> = BTreeMap::new();
    let mut variables: Vec<BTreeSet<VariableId>> = Vec::new();
    for event in &ctp.events {
        let mut terms = Vec::new();
        let mut own = BTreeSet::new();
        match &event.action {
            Action::Guarded { guard, assignments } => {
                terms.push(*guard);
                for (variable, term) in assignments {
                    own.insert(*variable);
                    terms.push(*term);
                }
            }
            Action::Assert { condition } => terms.push(*condition),
            Action::Transition { .. } => return None,
        }
        for term in terms {
            for leaf in ctp.terms.leaves(term) {
                if let Term::Variable(variable) = ctp.terms.term(leaf) {
                    own.insert(*variable);
                }
            }
        }
        for variable in &own {
            threads.entry(*variable).or_default().insert(event.thread);
        }
        variables.push(own);
    }
    let in_order = |event| ctp.orders.iter().any(|&(one, other)| one == event || other == event);
    let events = (0..ctp.events.len()).map(EventId::from);
    let is_local = |event: &EventId| {
        !in_order(*event) && variables[event.index()].iter().all(|own| threads[own].len() == 1)
    };
    Some(events.filter(is_local).collect())
}

/// Do local events come as early as they can, and those of the start by thread?
fn is_canonical(
    ctp: &ConcurrentTraceProgram,
    local: &BTreeSet<EventId>,
    order: &[EventId],
) -> bool {
    let mut next = vec![0; ctp.threads.len()];
    let mut made = Vec::new();
    let follow = |thread: usize, next: &mut Vec<usize>, made: &mut Vec<EventId>| {
        while let Some(event) = ctp.threads[thread].get(next[thread]) {
            if !local.contains(event) {
                break;
            }
            next[thread] += 1;
            made.push(*event);
        }
    };
    for thread in 0..ctp.threads.len() {
        follow(thread, &mut next, &mut made);
    }
    while made.len() < order.len() {
        let event = order[made.len()];
        let thread = ctp.event(event).thread.index();
        if ctp.threads[thread].get(next[thread]) != Some(&event) {
            return false;
        }
        next[thread] += 1;
        made.push(event);
        follow(thread, &mut next, &mut made);
    }
    // After an assertion that fails nothing follows.
    made[..order.len()] == *order
}

#[test]
fn random_traces_have_as_many_as_brute_force_finds() {
    let cases = std::env::var("FORETELL_PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let (mut compared, mut many) = (0, 0);
    for seed in 0..cases.unwrap_or(300) {
        let trace = random_trace(seed);
        let Ok(ctp) = ConcurrentTraceProgram::build(&trace) else { continue };
        let Some(local) = local(&ctp) else { continue };
        let mut prefixes = 0;
        // Whatever the inputs are.
        let mut found = BTreeSet::new();
        let mut failed: Option<Vec<EventId>> = None;
        let visited = Interleavings::new(&ctp).visit(&mut |prefix| {
            prefixes += 1;
            let order = &prefix.witness.order;
            // What follows a failure is visited right after it.
            if failed.as_ref().is_some_and(|failed| order.starts_with(failed)) {
                return ControlFlow::Continue(());
            }
            if prefix.violation {
                failed = Some(order.clone());
            }
            if (prefix.violation || prefix.complete) && is_canonical(&ctp, &local, order) {
                found.insert(order.clone());
            }
            if prefixes > MOST_PREFIXES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let counted = interleavings(&ctp, &mut ENOUGH.clone());
        if visited.is_err() || prefixes > MOST_PREFIXES {
            continue;
        }
        // Which of several waiters a signal wakes is an input, which is not counted.
        let Some(counted) = counted else { continue };
        assert_eq!(counted, found.len() as f64, "seed {seed}");
        compared += 1;
        many += i32::from(found.len() > 1);
    }
    assert!(compared > 50 && many > 20, "{compared} compared, {many} of them with several");
}
