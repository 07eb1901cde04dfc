//! A long trace is looked at in windows, which must not change what is found: however far apart the halves of
//! a violation are, and whatever the windows are.

use std::collections::BTreeSet;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::validate::{Witness, validate};
use foretell_predict::{FindingKind, Options, Prediction, Status, Window, predict};
use foretell_testing::families::{self, Counters};
use foretell_testing::machine::random_trace;
use foretell_trace::Trace;

/// Random traces that are tried; `FORETELL_DIFFERENTIAL=N` for others.
fn traces() -> u64 {
    std::env::var("FORETELL_DIFFERENTIAL").ok().and_then(|text| text.parse().ok()).unwrap_or(120)
}

fn predicted(trace: &Trace, options: &Options) -> Prediction {
    predict(trace, options).unwrap_or_else(|error| panic!("{error}"))
}

/// What was asked, what came out, and whether that holds for all interleavings.
fn answers(prediction: &Prediction) -> Vec<(FindingKind, [usize; 4], bool)> {
    let of_kind = prediction.properties.iter();
    of_kind
        .map(|kind| {
            let counts = [kind.questions, kind.predicted, kind.impossible, kind.unknown];
            (kind.kind, counts, kind.holds_in_all_interleavings)
        })
        .collect()
}

#[test]
fn windows_that_grow_to_the_whole_trace_answer_as_the_whole_trace() {
    let windows =
        Window { whole: 0, first: 1, most: 1, further: usize::MAX, instances: usize::MAX };
    let (mut compared, mut found) = (0, 0);
    for seed in 0..traces() {
        let trace = random_trace(seed);
        if !trace.metadata.observed_order {
            continue;
        }
        let options = Options { window: windows, ..Options::default() };
        // Steps that leave the next state open cannot stand before a window.
        let (Ok(whole), Ok(in_windows)) =
            (predict(&trace, &Options::default()), predict(&trace, &options))
        else {
            continue;
        };
        assert_eq!(answers(&whole), answers(&in_windows), "seed {seed}");
        compared += 1;
        found += in_windows.findings.len();
    }
    assert!(compared > 40 && found > 40, "only {compared} traces, {found} findings");
}

/// A trace whose violations have halves that are so many events apart.
fn far_apart(apart: usize) -> Trace {
    families::counters(Counters {
        threads: 4,
        counters: 8,
        events: 20_000,
        violations: 3,
        apart,
        seed: 7,
    })
}

/// The violations that are predicted, each checked in the whole trace by the validator.
fn violations(trace: &Trace, options: &Options) -> BTreeSet<String> {
    let ctp = ConcurrentTraceProgram::build(trace).unwrap_or_else(|error| panic!("{error}"));
    let prediction = predicted(trace, options);
    assert!(prediction.internal_errors.is_empty(), "{:?}", prediction.internal_errors);
    let findings = prediction.findings.into_iter();
    findings
        .filter(|finding| finding.status == Status::Predicted)
        .map(|finding| {
            let schedule = finding.schedule.expect("a schedule");
            let witness = Witness { order: schedule.events().collect(), ..Witness::default() };
            validate(&ctp, &witness).unwrap_or_else(|error| panic!("{error}"));
            finding.group
        })
        .collect()
}

#[test]
fn halves_of_a_violation_may_be_far_apart() {
    let options = Options { properties: vec![FindingKind::Atomicity], ..Options::default() };
    let near = violations(&far_apart(0), &options);
    assert_eq!(near.len(), 3, "{near:?}");
    for apart in [1_000, 4_000] {
        let trace = far_apart(apart);
        assert_eq!(violations(&trace, &options).len(), 3, "{apart} events apart");
        // Without larger windows they are missed, and that is said.
        let mut small = options.clone();
        small.window.further = 0;
        small.window.most = 512;
        let prediction = predicted(&trace, &small);
        let unknown = |status: &Status| matches!(status, Status::Unknown(_));
        assert!(prediction.findings.iter().all(|finding| unknown(&finding.status)));
        assert!(!prediction.properties[0].holds_in_all_interleavings);
    }
}

#[test]
fn the_answers_do_not_depend_on_how_many_questions_are_asked_at_once() {
    let mut found = 0;
    for seed in 0..traces() {
        let trace = random_trace(seed);
        // Not enough for every question, so that it matters who gets it.
        let window = Window { whole: 0, first: 1, most: 4, further: 400, instances: 3 };
        let one = Options { window, ..Options::default() };
        let several = Options { jobs: 3, ..one.clone() };
        let (Ok(one), Ok(several)) = (predict(&trace, &one), predict(&trace, &several)) else {
            continue;
        };
        assert_eq!(answers(&one), answers(&several), "seed {seed}");
        let told = |prediction: &Prediction| format!("{:?}", prediction.findings);
        assert_eq!(told(&one), told(&several), "seed {seed}");
        found += one.findings.len();
    }
    assert!(found > 40, "only {found} findings");
}
