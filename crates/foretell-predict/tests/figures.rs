//! Every figure of the two papers (000: Trace-Based Symbolic Analysis for Atomicity Violations,
//! 004: Symbolic Predictive Analysis for Concurrent Programs), each as a text trace with what the
//! papers say about it.

use foretell_predict::{
    Backend, FindingKind, Model, Options, PatternKind, Prediction, Status, predict,
};
use foretell_solve::encode::Mode;
use foretell_trace::Trace;
use foretell_trace::format::text;

const BACKENDS: [Backend; 2] = [Backend::Embedded, Backend::Z3];

fn figure(name: &str) -> Trace {
    let path = format!("{}/tests/figures/{name}.ft", env!("CARGO_MANIFEST_DIR"));
    let content = std::fs::read_to_string(&path).expect("the figure is there");
    text::read(&content).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn options(kind: FindingKind) -> Options {
    Options { properties: vec![kind], ..Options::default() }
}

/// Asks all backends, which have to agree, and gives the answer of one.
fn ask(name: &str, options: Options) -> Prediction {
    let trace = figure(name);
    let mut answers = BACKENDS.map(|backend| {
        let options = Options { backend: backend.clone(), ..options.clone() };
        let prediction =
            predict(&trace, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(prediction.internal_errors, Vec::<String>::new(), "{name} {backend:?}");
        for finding in &prediction.findings {
            assert_eq!(finding.status, Status::Predicted, "{name} {backend:?}");
        }
        prediction
    });
    let counts = answers.each_ref().map(|answer| answer.findings.len());
    assert_eq!(counts[0], counts[1], "{name}: the backends disagree");
    std::mem::take(&mut answers[0])
}

fn found(name: &str, options: Options) -> usize {
    ask(name, options).findings.len()
}

/// The labels of the figure's events in the order of the witness.
fn witness(name: &str, prediction: &Prediction) -> Vec<String> {
    let trace = figure(name);
    let schedule = prediction.findings[0].schedule.as_ref().expect("predicted");
    let labelled = schedule.events().filter(|event| trace.labels.contains_key(event));
    labelled.map(|event| trace.event_name(event)).collect()
}

#[test]
fn figure_1_of_000_has_no_violation() {
    for name in ["atomicity-1a", "atomicity-3a", "atomicity-1b"] {
        let prediction = ask(name, options(FindingKind::Atomicity));
        assert_eq!(prediction.findings, [], "{name}");
        assert!(prediction.statistics.original_patterns > 0, "{name}: nothing was asked");
        assert!(prediction.properties[0].holds_in_all_interleavings, "{name}");
    }
}

#[test]
fn figure_1_of_000_without_its_protection_has_one_and_the_causal_model_misses_it() {
    for (name, pattern, order) in [
        ("atomicity-1a-modified", PatternKind::Rww, &["t1", "t3", "t4", "t5", "t2"][..]),
        ("atomicity-1b-modified", PatternKind::Wwr, &["t1", "t5", "t2"]),
    ] {
        let prediction = ask(name, options(FindingKind::Atomicity));
        assert_eq!(prediction.findings.len(), 1, "{name}");
        assert_eq!(prediction.findings[0].pattern, Some(pattern), "{name}");
        assert_eq!(witness(name, &prediction), order, "{name}");
        let causal = Options { model: Model::Causal, ..options(FindingKind::Atomicity) };
        assert_eq!(found(name, causal), 0, "{name}");
        let whole = Options { mode: Mode::Whole, ..options(FindingKind::Atomicity) };
        assert_eq!(found(name, whole), 1, "{name}");
    }
}

#[test]
fn figure_6_of_000_is_found_only_with_prefixes() {
    let prefix = ask("atomicity-6", options(FindingKind::Atomicity));
    assert_eq!(prefix.findings.len(), 1);
    assert_eq!(prefix.findings[0].pattern, Some(PatternKind::Wwr));
    assert_eq!(witness("atomicity-6", &prefix), ["t1", "t5", "t2"]);
    let whole = Options { mode: Mode::Whole, ..options(FindingKind::Atomicity) };
    assert_eq!(found("atomicity-6", whole), 0);
}

#[test]
fn figure_1_of_004_needs_two_context_switches_and_the_causal_model_misses_it() {
    for mode in [Mode::Prefix, Mode::Whole] {
        let bounded = |switches| Options {
            mode,
            context_switches: Some(switches),
            ..options(FindingKind::Assertion)
        };
        assert_eq!(found("assertion-1", bounded(1)), 0, "{mode:?}");
        assert_eq!(found("assertion-1", bounded(2)), 1, "{mode:?}");
        let free = Options { mode, ..options(FindingKind::Assertion) };
        assert_eq!(found("assertion-1", free.clone()), 1, "{mode:?}");
        let causal = Options { model: Model::Causal, ..free };
        assert_eq!(found("assertion-1", causal), 0, "{mode:?}");
    }
}

#[test]
fn the_modified_figure_of_004_is_found_by_both_models() {
    for model in [Model::Symbolic, Model::Causal] {
        let options = Options { model, ..options(FindingKind::Assertion) };
        assert_eq!(found("assertion-1-modified", options), 1, "{model:?}");
    }
}

#[test]
fn a_bound_that_no_proof_needs_is_lifted() {
    let bounded = Options { context_switches: Some(1), ..options(FindingKind::Atomicity) };
    let prediction = ask("atomicity-1a", bounded);
    assert!(prediction.properties[0].holds_in_all_interleavings);
    let bounded = Options { context_switches: Some(1), ..options(FindingKind::Assertion) };
    let prediction = ask("assertion-1", bounded);
    assert!(!prediction.properties[0].holds_in_all_interleavings, "two switches break it");
}
