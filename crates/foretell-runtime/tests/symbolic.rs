//! Programs compiled with our pass: the trace carries expressions, and they evaluate to what the
//! program computed.

mod common;

use common::{build_with, options, pass_flags, recorded};
use foretell_record::{Policy, RunEnd};
use foretell_trace::term::EvaluateError;
use foretell_trace::{Op, Term, Trace, Value};

/// Every expression has the value that was recorded, when the reads return what they returned.
fn expressions_hold(trace: &Trace) -> usize {
    let mut values = std::collections::HashMap::new();
    for event in &trace.events {
        let value = match &event.op {
            Op::Read(access) => access.value,
            Op::ReadModifyWrite(update) => update.old,
            _ => None,
        };
        if let Some(value) = value {
            values.insert((event.thread, event.index), value);
        }
    }
    let environment = |leaf: &Term| match leaf {
        Term::ReadValue(thread, index) => {
            let bits = *values.get(&(*thread, *index))?;
            Some(bits)
        }
        _ => None,
    };
    let evaluate = |term| -> Result<Value, EvaluateError> {
        trace.terms.evaluate(term, &|leaf: &Term| {
            let bits = environment(leaf)?;
            let sort = (0..trace.terms.len())
                .map(foretell_trace::TermId::from)
                .find(|&id| trace.terms.term(id) == leaf)
                .and_then(|id| trace.terms.sort(id).width())?;
            Some(Value::bit_vec(sort, bits))
        })
    };
    let mut checked = 0;
    for event in &trace.events {
        let (term, expected) = match &event.op {
            Op::Write(access) => (access.term, access.value),
            Op::ReadModifyWrite(update) => (update.term, update.new),
            Op::Branch(condition) | Op::Assert(condition) => {
                (condition.term, Some(condition.outcome.into()))
            }
            _ => continue,
        };
        let (Some(term), Some(expected)) = (term, expected) else { continue };
        let value = match evaluate(term) {
            Ok(Value::Bool(value)) => value.into(),
            Ok(Value::BitVec { bits, .. }) => bits,
            other => panic!("{event:?}: {other:?}"),
        };
        assert_eq!(value, expected, "{event:?}");
        checked += 1;
    }
    checked
}

#[test]
fn writes_branches_and_assertions_carry_expressions_at_every_level() {
    for level in ["-O0", "-O1", "-O2"] {
        let Some(flags) = pass_flags(level) else { return };
        let flags = flags.each_ref().map(String::as_str);
        let program = build_with("clang-22", "bank", &flags).expect("built");
        let mut ends = std::collections::BTreeSet::new();
        let mut options = options(&program, &[]);
        for seed in 0..32 {
            options.policy = Policy::Random { seed, mean: 4 };
            let (outcome, trace) = recorded(&options);
            assert!(outcome.symbolic, "{level}");
            let checked = expressions_hold(&trace);
            assert!(checked >= 8, "{level}: {checked} expressions");
            let balance = trace.variables.iter().position(|v| &*v.name == "balance").unwrap();
            assert_eq!(trace.variables[balance].initial, Some(Value::bit_vec(32, 100)), "{level}");
            let assertion = trace.events.iter().find_map(|event| match &event.op {
                Op::Assert(condition) => Some(condition),
                _ => None,
            });
            let assertion = assertion.expect("the assertion is an event");
            assert!(assertion.term.is_some());
            assert_eq!(assertion.outcome, outcome.end == RunEnd::Exit(0), "{level}");
            ends.insert(format!("{:?}", outcome.end));
        }
        assert_eq!(ends.len(), 2, "{level}: some schedules lose an update: {ends:?}");
    }
}

#[test]
fn calls_reads_and_branches_have_sites() {
    let Some(flags) = pass_flags("-O0") else { return };
    let flags = flags.each_ref().map(String::as_str);
    let program = build_with("clang-22", "bank", &flags).expect("built");
    let (_, trace) = recorded(&options(&program, &[]));
    let calls: Vec<&str> = trace
        .events
        .iter()
        .filter_map(|event| match &event.op {
            Op::Call(function) => Some(&**function),
            _ => None,
        })
        .collect();
    assert_eq!(calls.iter().filter(|name| **name == "withdraw").count(), 2, "{calls:?}");
    assert!(calls.contains(&"less") && calls.contains(&"main"), "{calls:?}");
    for event in &trace.events {
        if let Op::Read(_) | Op::Branch(_) = event.op {
            let site = &trace.sites[event.site.expect("a site").index()];
            assert!(site.file.ends_with("bank.c") && site.line > 0, "{event:?}: {site:?}");
        }
    }
}

#[test]
fn cplusplus_with_exceptions_statics_and_futures_is_recorded() {
    for level in ["-O0", "-O2"] {
        let Some(flags) = pass_flags(level) else { return };
        let flags = flags.each_ref().map(String::as_str);
        let program = build_with("clang++-22", "cache.cpp", &flags).expect("built");
        let mut options = options(&program, &[]);
        for seed in 0..6 {
            options.policy = Policy::Random { seed, mean: 5 };
            let (outcome, trace) = recorded(&options);
            assert_eq!(outcome.end, RunEnd::Exit(0), "{level}, seed {seed}");
            assert_eq!(trace.threads.len(), 6);
            expressions_hold(&trace);
        }
    }
}
