//! TARA's own benchmarks (`data/ctrc` of the shared folder, `FORETELL_SHARED` or `../shared`): our
//! formulas beside what TARA answered and what the paper printed. Skipped, loudly, where the folder
//! is absent.

use std::path::PathBuf;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::testing::Random;
use foretell_model::validate::Interpreter;
use foretell_neighbourhood::{BugKind, HbFormula, Primitive, Verdict, Verification};
use foretell_trace::{EventId, Trace};
use serde_json::Value;

use crate::brute::{Class, free_inputs, random_run};
use crate::{ctrc, explained};

fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("FORETELL_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    // worktrees lie one level deeper
    let deeper = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared");
    let found = [path, deeper].into_iter().find(|path| path.join("data/expected.json").is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no shared folder; set FORETELL_SHARED to run TARA's benchmarks");
    }
    found
}

fn clauses(value: &Value) -> Vec<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().expect("a name").to_string();
    let list = |value: &Value| value.as_array().expect("a list").clone();
    list(value)
        .iter()
        .map(|clause| list(clause).iter().map(|atom| (text(&atom[0]), text(&atom[1]))).collect())
        .collect()
}

/// What the human expert of Table 3 said.
fn human(file: &str) -> &'static [BugKind] {
    use BugKind::*;
    match file {
        "reorder_2" | "define_use" | "em28xx" | "md" | "rtl8169-1" | "rtl8169-2" => &[DefineUse],
        "locks" | "loop" => &[DataRace],
        "2stage" => &[TwoStageAccess],
        "barrier_locks" => &[DataRace, OrderViolation],
        "read_write_lock" => &[AtomicityViolation],
        _ => &[OrderViolation],
    }
}

fn place_by_name(trace: &Trace) -> impl Fn(&str) -> EventId {
    let names: Vec<String> =
        (0..trace.events.len()).map(|event| trace.event_name(EventId::from(event))).collect();
    move |name| {
        let at = names.iter().position(|other| other == name);
        EventId::from(at.unwrap_or_else(|| panic!("no event {name}")))
    }
}

#[test]
fn beside_tables_1_2_and_3() {
    let Some(shared) = shared() else { return };
    let text = std::fs::read_to_string(shared.join("data/expected.json")).expect("readable");
    let expected: Value = serde_json::from_str(&text).expect("JSON");
    println!(
        "{:<16} {:>7} {:>5} | iterations ours/TARA/paper | size ours/TARA/paper | L/B/WN/RW ours, paper | bugs ours, human",
        "file", "thr/ev", "π"
    );
    for (file, answer) in expected["files"].as_object().expect("files") {
        let path = shared.join(format!("data/ctrc/{file}.ctrc"));
        let trace = ctrc(&std::fs::read_to_string(path).expect("a benchmark"));
        let explanation = explained(&trace);
        assert_eq!(explanation.verdict, Verdict::Depends, "{file}");

        // not larger than TARA's, in disjuncts and in atoms
        let theirs = clauses(&answer["phi_B"]);
        let their_atoms: usize = theirs.iter().map(Vec::len).sum();
        assert!(explanation.bad.clauses().len() <= theirs.len(), "{file}");
        assert!(explanation.bad.atom_count() <= their_atoms, "{file}");

        let kinds: Vec<BugKind> = {
            let mut kinds: Vec<BugKind> =
                explanation.summaries.iter().map(|summary| summary.kind).collect();
            kinds.dedup();
            kinds
        };
        assert_eq!(kinds, human(file), "{file}: bug kinds as the human of Table 3 says");

        let synthesis = explanation.synthesis.as_ref().expect("a fix");
        assert_eq!(synthesis.verification, Verification::Verified, "{file}");
        let count = |kind: fn(&Primitive) -> bool| {
            synthesis.primitives.iter().filter(|primitive| kind(primitive)).count()
        };
        let ours = [
            count(|p| matches!(p, Primitive::Lock { .. })),
            count(|p| matches!(p, Primitive::Barrier { .. })),
            count(|p| matches!(p, Primitive::WaitNotify { .. })),
            count(|p| matches!(p, Primitive::SharedExclusiveLock { .. })),
        ];
        let paper: u64 = answer["paper_table2_L_B_WN"]
            .as_array()
            .map_or(u64::MAX, |counts| counts.iter().filter_map(Value::as_u64).sum());
        assert!(
            ours.iter().sum::<usize>() as u64 <= paper,
            "{file}: more primitives than the paper"
        );
        let statistics = &explanation.statistics;
        println!(
            "{file:<16} {:>3}/{:<3} {:>3}/{:.1} | {}/{}/{} | {}/{:.1}, {}/{:.1}, {} | {ours:?} {} | {kinds:?}",
            statistics.threads,
            statistics.events,
            statistics.pi_functions,
            statistics.pi_choices,
            statistics.work.iterations,
            answer["iterations"],
            answer["paper_table1"]["iter_algo2"],
            explanation.bad.clauses().len(),
            explanation.bad.atom_count() as f64 / explanation.bad.clauses().len() as f64,
            theirs.len(),
            their_atoms as f64 / theirs.len() as f64,
            answer["paper_table1"]["size_algo2"],
            answer["paper_table2_L_B_WN"],
        );
        agree_on_random_runs(file, &trace, &explanation.bad, &theirs);
    }
}

/// Random runs by the independent interpreter: bad ones are in both formulas, good ones in neither.
fn agree_on_random_runs(
    file: &str,
    trace: &Trace,
    ours: &HbFormula,
    theirs: &[Vec<(String, String)>],
) {
    let ctp = ConcurrentTraceProgram::build(trace).expect("a model");
    let interpreter = Interpreter::new(&ctp);
    let mut inputs = free_inputs(&ctp);
    // arrays and relations of the precondition: only files whose zero inputs satisfy it
    if interpreter.start(&inputs).is_err() {
        for (variable, value) in &mut inputs {
            let _ = variable;
            if let foretell_trace::Value::Int(number) = value {
                *number = 1;
            }
        }
    }
    let Ok(start) = interpreter.start(&inputs) else { return };
    let event = place_by_name(trace);
    let mut random = Random::new(7);
    for _ in 0..300 {
        let run = random_run(&ctp, &interpreter, &start, |count| random.below(count));
        let Some((place, class)) = run else { continue };
        let mine = ours.contains(|event: EventId| place[event.index()]);
        let tara = theirs.iter().any(|clause| {
            clause.iter().all(|(a, b)| place[event(a).index()] < place[event(b).index()])
        });
        if class == Class::Bad {
            assert!(mine, "{file}: a bad run is not in our formula");
        }
        if class == Class::Good && start_is_the_only_input(&ctp) {
            assert!(!mine, "{file}: a good run is in our formula");
        }
        if class != Class::Infeasible && start_is_the_only_input(&ctp) {
            assert_eq!(mine, tara, "{file}: we and TARA differ on a feasible run");
        }
    }
}

/// No variable that matters starts with any value: locals without one are written first.
fn start_is_the_only_input(ctp: &ConcurrentTraceProgram) -> bool {
    ctp.variables.iter().all(|variable| {
        variable.initial.is_some() || variable.scope != foretell_trace::Scope::Shared
    })
}
