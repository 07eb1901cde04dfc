//! Small traces on which TARA errs, and corners of the format.

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_neighbourhood::synthesis::insert::with_primitives;
use foretell_neighbourhood::{BugKind, Explanation, Primitive, Verdict, Verification};
use foretell_trace::Trace;
use std::ops::ControlFlow;

use crate::{data, explained, names, primitives};

/// The fix is verified, and brute force over the repaired program agrees: nothing bad, something
/// good.
fn fixed(trace: &Trace, explanation: &Explanation) {
    let synthesis = explanation.synthesis.as_ref().expect("a fix");
    assert_eq!(synthesis.verification, Verification::Verified);
    let ctp = crate::brute::closed(ConcurrentTraceProgram::build(trace).expect("a model"));
    let repaired = with_primitives(&ctp, &synthesis.primitives);
    let all = Interleavings::new(&repaired);
    let mut complete = false;
    all.visit(&mut |prefix| {
        assert!(!prefix.violation, "{:?}", prefix.witness.order);
        complete |= prefix.complete;
        ControlFlow::Continue(())
    })
    .expect("fixed inputs");
    assert!(complete, "no good interleaving is left");
}

#[test]
fn merge2_overlapping_locks_become_one_over_both() {
    let trace = data("merge2");
    let explanation = explained(&trace);
    assert_eq!(primitives(&trace, &explanation), ["Lk(a1:a4, b1:b4)"]);
    fixed(&trace, &explanation);
}

#[test]
fn merge3_no_abba_pair_survives() {
    let trace = data("merge3");
    let explanation = explained(&trace);
    let synthesis = explanation.synthesis.as_ref().expect("a fix");
    assert_eq!(synthesis.primitives.len(), 1, "one lock cannot deadlock with another");
    fixed(&trace, &explanation);
}

#[test]
fn wn_cycle_never_asks_for_both_orders() {
    let trace = data("wn_cycle");
    let explanation = explained(&trace);
    let synthesis = explanation.synthesis.as_ref().expect("a fix");
    for primitive in &synthesis.primitives {
        if let Primitive::WaitNotify { waiter, notifier } = primitive {
            let back = Primitive::WaitNotify { waiter: *notifier, notifier: *waiter };
            assert!(!synthesis.primitives.contains(&back));
        }
    }
    fixed(&trace, &explanation);
}

#[test]
fn a_deadlock_is_not_all_good() {
    let trace = data("deadlock");
    let explanation = explained(&trace);
    assert_eq!(explanation.verdict, Verdict::Deadlock);
    let stuck = explanation.deadlock.expect("where the threads wait");
    assert_eq!(names(&trace, &stuck), ["a3", "b3"]);
}

#[test]
fn the_define_use_pair_is_the_read_and_the_write() {
    let trace = data("du_wrongpair");
    let [summary] = &explained(&trace).summaries[..] else { panic!("one bug") };
    assert_eq!(summary.kind, BugKind::DefineUse);
    assert_eq!(names(&trace, &summary.first), ["r1"]);
    assert_eq!(names(&trace, &summary.second), ["w2"]);
}

#[test]
fn a_fix_leaves_a_good_interleaving() {
    for name in ["wn_block", "wn_block2"] {
        let trace = data(name);
        let explanation = explained(&trace);
        assert_eq!(primitives(&trace, &explanation), ["WaitNotify(b2, a2)"], "{name}");
        assert_eq!(explanation.synthesis.unwrap().verification, Verification::Verified);
    }
}

#[test]
fn free_inputs_and_choices_can_be_to_blame() {
    for (name, bad) in [
        ("havok", "hb(a1,b1)"),
        ("twoloc", "hb(a1,b1)"),
        ("nondet_nohavok", "hb(a1,b1)"),
        ("uninit_local", "hb(a1,b1)"),
    ] {
        let trace = data(name);
        let explanation = explained(&trace);
        assert_eq!(explanation.verdict, Verdict::Depends, "{name}");
        assert_eq!(explanation.bad.to_text(|event| trace.event_name(event)), bad, "{name}");
        assert!(explanation.witness.is_some(), "{name}: the validator accepts the failing run");
    }
}

#[test]
fn a_loop_is_said_once_and_locked_once() {
    let trace = data("loop_own_8");
    let explanation = explained(&trace);
    assert_eq!(explanation.bad.clauses().len(), 128, "2x² disjuncts");
    assert_eq!(explanation.by_line.len(), 2, "said once for each thread");
    assert!(explanation.by_line.iter().all(|pattern| pattern.count == 64));
    assert_eq!(explanation.summaries.len(), 2);
    let synthesis = explanation.synthesis.as_ref().expect("a fix");
    assert_eq!(synthesis.verification, Verification::Verified);
    let [Primitive::Lock { regions }] = &synthesis.primitives[..] else {
        panic!("one lock: {:?}", synthesis.primitives)
    };
    assert_eq!(regions.len(), 16, "around each iteration");
    let first: Vec<String> = regions.iter().map(|region| trace.event_name(region.first)).collect();
    assert!(first.iter().all(|name| name.starts_with("aw") || name.starts_with("bw")), "{first:?}");
    let text = foretell_neighbourhood::text::render(&trace, &explanation);
    assert!(text.contains("by source line, 2 patterns for 128 disjuncts"), "{text}");
}

#[test]
fn fixed_orders_are_respected() {
    let trace = data("loop_lock_4");
    let explanation = explained(&trace);
    assert_eq!(explanation.bad.clauses().len(), 8, "2x disjuncts, as the paper's loop-4");
}
