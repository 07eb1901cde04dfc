//! Atomic regions as the property.

use foretell_neighbourhood::{Options, Properties, Verdict, explain};
use foretell_trace::{Access, Indexer, Op, Scope, Sort, Trace, Value, Variable, VariableId};

fn access(variable: VariableId, value: u64) -> Access {
    Access { variable, value: Some(value), term: None, address: None, order: None }
}

/// One thread reads twice in a region, another writes.
fn trace() -> Trace {
    let mut trace = Trace::new();
    trace.metadata.symbolic = true;
    trace.metadata.observed_order = true;
    let sort = Sort::bit_vec(8);
    let x = trace.add_variable(Variable {
        name: "x".into(),
        sort,
        scope: Scope::Shared,
        memory: None,
        initial: Some(Value::zero(sort)),
    });
    let reader = trace.add_thread("reader", vec![]);
    let writer = trace.add_thread("writer", vec![0]);
    let mut indexer = Indexer::default();
    for op in [
        Op::RegionBegin("twice".into()),
        Op::Read(access(x, 0)),
        Op::Read(access(x, 0)),
        Op::RegionEnd,
    ] {
        let event = indexer.event(reader, None, op);
        trace.push(event);
    }
    let event = indexer.event(writer, None, Op::Write(access(x, 1)));
    trace.push(event);
    trace
}

#[test]
fn a_write_between_two_reads_breaks_the_region() {
    let trace = trace();
    let explanation = explain(&trace, &Options::default()).expect("a model");
    assert_eq!(explanation.verdict, Verdict::Depends);
    assert_eq!(
        explanation.bad.to_text(|event| trace.event_name(event)),
        "hb(reader#1,writer#0) ∧ hb(writer#0,reader#2)"
    );
    assert!(explanation.witness.expect("a bad run").region);
}

#[test]
fn regions_can_be_left_out() {
    let options = Options {
        properties: Properties { assertions: true, regions: false },
        ..Options::default()
    };
    let explanation = explain(&trace(), &options).expect("a model");
    assert_eq!(explanation.verdict, Verdict::AllGood);
}
