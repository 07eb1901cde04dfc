//! Asked at once, the questions about a trace have the answers that they have one by one.

use std::collections::{BTreeSet, HashSet};

use foretell_predict::{FindingKind, Options, Prediction, predict, predict_together};
use foretell_testing::machine::random_trace;

/// Traces that are tried.
const TRACES: u64 = 80;

/// For each kind, how many questions there were, and what came out.
fn answers(prediction: &Prediction) -> BTreeSet<(FindingKind, [usize; 4])> {
    let of_kind = prediction.properties.iter();
    of_kind
        .map(|kind| (kind.kind, [kind.questions, kind.predicted, kind.impossible, kind.unknown]))
        .collect()
}

#[test]
fn all_at_once_is_as_one_by_one() {
    let options = Options::default();
    let mut predicted = 0;
    for seed in 0..TRACES {
        let trace = random_trace(seed);
        let (Ok(one_by_one), Ok(at_once)) =
            (predict(&trace, &options), predict_together(&trace, &options, &HashSet::new()))
        else {
            continue;
        };
        assert_eq!(answers(&one_by_one), answers(&at_once), "seed {seed}");
        predicted += at_once.findings.len();
        // What is settled is not asked again; where somebody is stuck is known with the answer only.
        let settled: HashSet<String> =
            at_once.findings.iter().map(|finding| finding.group.clone()).collect();
        let rest = predict_together(&trace, &options, &settled).expect("it was predicted from");
        let again = rest.findings.iter().filter(|finding| settled.contains(&finding.group));
        for finding in again {
            assert_eq!(finding.kind, FindingKind::Deadlock, "seed {seed}: {}", finding.detail);
        }
    }
    assert!(predicted > TRACES as usize, "only {predicted} findings");
}
