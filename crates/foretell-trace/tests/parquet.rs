//! The Parquet export, read back with the reader of the `parquet` crate. Runs with
//! `cargo test -p foretell-trace --features parquet`.
#![cfg(feature = "parquet")]

use bytes::Bytes;
use foretell_testing::arbitrary;
use foretell_trace::format::parquet as export;
use foretell_trace::info::OpKind;
use foretell_trace::{Op, SyncOp, Trace};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use proptest::prelude::*;

fn rows(trace: &Trace) -> Vec<Row> {
    let mut file = Vec::new();
    export::write(trace, &mut file).expect("a vector takes everything");
    let reader = SerializedFileReader::new(Bytes::from(file)).expect("a Parquet file");
    reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect()
}

fn field<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(column, _)| *column == name).expect("a column").1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_event_is_a_row(seed: u64, size in 0usize..200) {
        let trace = arbitrary::trace(seed, size);
        let rows = rows(&trace);
        prop_assert_eq!(rows.len(), trace.events.len());
        for (place, (row, event)) in rows.iter().zip(&trace.events).enumerate() {
            let text = |text: &str| Field::Str(text.to_owned());
            prop_assert_eq!(field(row, "event"), &Field::ULong(place as u64));
            prop_assert_eq!(field(row, "thread"), &Field::UInt(event.thread.0));
            let name = &trace.threads[event.thread.index()].name;
            prop_assert_eq!(field(row, "thread_name"), &text(name));
            prop_assert_eq!(field(row, "index"), &Field::UInt(event.index));
            prop_assert_eq!(field(row, "op"), &text(OpKind::of(&event.op).name()));
            let (file, line) = match event.site.map(|site| &trace.sites[site.index()]) {
                None => (Field::Null, Field::Null),
                Some(site) => (
                    if site.file.is_empty() { Field::Null } else { text(&site.file) },
                    if site.line == 0 { Field::Null } else { Field::UInt(site.line) },
                ),
            };
            prop_assert_eq!(field(row, "file"), &file);
            prop_assert_eq!(field(row, "line"), &line);
            if let Op::Read(access) | Op::Write(access) = &event.op {
                let name = &trace.variables[access.variable.index()].name;
                prop_assert_eq!(field(row, "variable"), &text(name));
                let value = access.value.map_or(Field::Null, Field::ULong);
                prop_assert_eq!(field(row, "value"), &value);
            } else {
                prop_assert!(!matches!(field(row, "op"), Field::Str(op) if op == "read"));
            }
            if let Op::Sync(lock, SyncOp::Acquire(_)) = &event.op {
                let name = &trace.objects[lock.index()].name;
                prop_assert_eq!(field(row, "object"), &text(name));
            }
        }
    }
}

#[test]
fn terms_are_written_out_and_shared_ones_stay_short() {
    use foretell_trace::{Access, Event, Operator, Sort, ThreadId, VariableId};
    let mut trace = arbitrary::recorded(1, 0);
    trace.threads[0].name = "main".into();
    let read = trace.terms.read_value(ThreadId(0), 3, Sort::bit_vec(8));
    let one = trace.terms.bit_vec(8, 1);
    let mut sum = trace.terms.build(Operator::BvSub, &[read, one]);
    let push = |trace: &mut Trace, term| {
        let access = Access {
            variable: VariableId(0),
            value: None,
            term: Some(term),
            address: None,
            order: None,
        };
        let (thread, index) = (ThreadId(0), trace.events.len() as u32);
        trace.push(Event { thread, index, site: None, op: Op::Write(access) });
    };
    push(&mut trace, sum);
    for _ in 0..200 {
        sum = trace.terms.build(Operator::BvMul, &[sum, sum]); // 2^200 nodes as a tree
    }
    push(&mut trace, sum);
    let rows = rows(&trace);
    assert_eq!(field(&rows[0], "term"), &Field::Str("(bvsub (read main 3) #x01)".into()));
    let Field::Str(long) = field(&rows[1], "term") else { panic!("no term") };
    assert!(long.len() < 200_000, "{} bytes", long.len());
}
