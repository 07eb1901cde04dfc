//! Random small traces against brute force (must show 3 of the issue).

use std::fmt::Write;
use std::ops::ControlFlow;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_neighbourhood::synthesis::insert::with_primitives;
use foretell_neighbourhood::{Atom, Options, Verdict, Verification, explain};
use foretell_testing::Random;
use foretell_trace::{EventId, Trace};

use crate::brute::{Class, closed, interleavings};
use crate::ctrc;
use crate::ordered::{SecondOpinion, agree};

/// Two or three threads over two counters, with guards, assertions, and now and then an atomic
/// section or a fixed order.
fn random_text(seed: u64) -> String {
    let mut random = Random::new(seed);
    let threads = 2 + random.below(2);
    let mut text = String::from("global: x y\npre: (and (= x 0) (= y 0))\n");
    let mut labels: Vec<Vec<String>> = Vec::new();
    for thread in 0..threads {
        writeln!(text, "thread t{thread} {{ l }}:\ns{thread}: (= l. 0)").unwrap();
        let mut own = Vec::new();
        for event in 0..2 + random.below(if threads == 2 { 3 } else { 2 }) {
            let (v, w) = if random.one_in(2) { ("x", "y") } else { ("y", "x") };
            let c = random.below(3);
            let instruction = match random.below(10) {
                0 => format!("(= {v}. {c})"),
                1 | 2 => format!("(= l. {v})"),
                3 | 4 => format!("(= {v}. (+ l 1))"),
                5 => format!("(= {v}. (+ {v} 1))"),
                6 => format!("(= {v}. {w})"),
                7 => format!("assume(<= {v} {c})"),
                8 => format!("assert(<= {v} {c})"),
                _ => format!("assert(= {v} l)"),
            };
            let label = format!("e{thread}x{event}");
            writeln!(text, "{label}: {instruction}").unwrap();
            own.push(label);
        }
        labels.push(own);
    }
    if random.one_in(4) {
        writeln!(text, "atomic: [{} {}]", labels[0][0], labels[0][1]).unwrap();
    }
    if random.one_in(4) {
        writeln!(text, "order: {} < {}", labels[0][0], labels[1][1]).unwrap();
    }
    text
}

/// Every interleaving with its class, as places of the trace's events.
fn classified(trace: &Trace) -> Option<Vec<(Vec<usize>, Class)>> {
    let ctp = ConcurrentTraceProgram::build(trace).expect("a model");
    let mut all = Vec::new();
    interleavings(&ctp, 4000, &mut |place, class| all.push((place.to_vec(), class))).then_some(all)
}

/// Locals are set before they are used, so their free initial values do not matter.
fn traces() -> impl Iterator<Item = (u64, Trace, Vec<(Vec<usize>, Class)>)> {
    (0..160).filter_map(|seed| {
        let trace = ctrc(&random_text(seed));
        let all = classified(&trace)?;
        Some((seed, trace, all))
    })
}

#[test]
fn the_exact_formula_is_the_set_of_bad_interleavings() {
    let options = Options { exact: true, synthesis: false, ..Options::default() };
    let mut interesting = 0;
    for (seed, trace, all) in traces() {
        let explanation = explain(&trace, &options).expect("a model");
        assert!(explanation.exact, "seed {seed}");
        for (place, class) in &all {
            let inside = explanation.bad.contains(|event: EventId| place[event.index()]);
            assert_eq!(inside, *class == Class::Bad, "seed {seed}, {place:?} is {class:?}");
        }
        interesting += usize::from(explanation.verdict == Verdict::Depends);
    }
    assert!(interesting > 20, "only {interesting} traces have both kinds of interleavings");
}

#[test]
fn the_succinct_formula_covers_the_bad_and_leaves_out_the_good() {
    let options = Options { synthesis: false, ..Options::default() };
    for (seed, trace, all) in traces() {
        let explanation = explain(&trace, &options).expect("a model");
        let (mut any_bad, mut any_good) = (false, false);
        for (place, class) in &all {
            let place = |event: EventId| place[event.index()];
            let (bad, good) = (explanation.bad.contains(place), explanation.good.contains(place));
            assert_ne!(bad, good, "seed {seed}: the two formulas are complements");
            match class {
                Class::Bad => assert!(bad, "seed {seed}: a bad interleaving is missing"),
                Class::Good => assert!(good, "seed {seed}: a good interleaving is called bad"),
                Class::Infeasible => {}
            }
            any_bad |= *class == Class::Bad;
            any_good |= *class == Class::Good;
        }
        let expected = match (any_bad, any_good) {
            (true, true) => [Verdict::Depends, Verdict::Depends],
            (true, false) => [Verdict::AllBad, Verdict::AllBad],
            (false, true) => [Verdict::AllGood, Verdict::Deadlock],
            (false, false) => [Verdict::Infeasible, Verdict::Deadlock],
        };
        assert!(expected.contains(&explanation.verdict), "seed {seed}: {:?}", explanation.verdict);
        assert_eq!(explanation.witness.is_some(), any_bad, "seed {seed}");
    }
}

#[test]
fn a_verified_fix_removes_every_bad_interleaving_and_keeps_a_good_one() {
    let mut verified = 0;
    for (seed, trace, _) in traces() {
        let explanation = explain(&trace, &Options::default()).expect("a model");
        let Some(synthesis) = explanation.synthesis else { continue };
        if synthesis.verification != Verification::Verified {
            continue;
        }
        verified += 1;
        let ctp = closed(ConcurrentTraceProgram::build(&trace).expect("a model"));
        let repaired = with_primitives(&ctp, &synthesis.primitives);
        let mut complete = false;
        let all = Interleavings::new(&repaired);
        all.visit(&mut |prefix| {
            assert!(!prefix.violation, "seed {seed}: {:?}", prefix.witness.order);
            complete |= prefix.complete;
            if prefix.violation { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .expect("fixed inputs");
        assert!(complete, "seed {seed}: no good interleaving is left");
    }
    assert!(verified > 20, "only {verified} verified fixes");
}

/// The exploration and the order solver on random traces under random orders.
#[test]
fn the_engine_and_the_order_solver_agree() {
    for seed in 0..120 {
        let trace = ctrc(&random_text(seed));
        let mut opinion = SecondOpinion::new(&trace);
        let mut random = Random::new(seed);
        for number in 0..3 {
            let mut atoms = Vec::new();
            for _ in 0..number {
                let (a, b) = (random.below(trace.events.len()), random.below(trace.events.len()));
                if trace.events[a].thread != trace.events[b].thread {
                    atoms.push(Atom::new(EventId::from(a), EventId::from(b)));
                }
            }
            agree(&format!("seed {seed}"), &trace, &mut opinion, &atoms);
        }
    }
}
