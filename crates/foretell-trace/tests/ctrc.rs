//! CTRC files: ours, the corners of the format, the loop families, and TARA's own benchmarks where
//! they lie.

use std::path::{Path, PathBuf};

use foretell_trace::format::{ctrc, text};
use foretell_trace::info::OpKind;
use foretell_trace::{Op, Sort, Trace, Value, read_path};

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{error}"));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ctrc"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {}", directory.display());
    files
}

fn ours(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ctrc").join(directory)
}

fn load(name: &str) -> Trace {
    read_path(&ours(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Written as CTRC and as text, it comes back the same.
fn assert_round_trips(trace: &Trace, name: &str) {
    let written = ctrc::write(trace).unwrap_or_else(|error| panic!("{name}: {error}"));
    let back = ctrc::read(&written).unwrap_or_else(|error| panic!("{name}: {error}\n{written}"));
    assert!(back.says_the_same_as(trace), "{name}\n{written}");
    let mut bytes = Vec::new();
    text::write(trace, &mut bytes).unwrap();
    let written = String::from_utf8(bytes).unwrap();
    let back = text::read(&written).unwrap_or_else(|error| panic!("{name}: {error}\n{written}"));
    assert!(back.says_the_same_as(trace), "{name}\n{written}");
}

#[test]
fn our_files_and_the_loops_are_read_and_come_back_the_same() {
    let all = [files(&ours("")), files(&ours("loops"))].concat();
    assert!(all.len() >= 20);
    for path in all {
        let trace = read_path(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_round_trips(&trace, &path.display().to_string());
    }
}

#[test]
fn each_corner_is_handled_or_refused_with_its_place() {
    let refused = [
        ("atomic_cross", "8:13: an atomic section from `a1` to `b1`, which is in another thread"),
        ("badchar", "1:10: expected `thread`"),
        ("undeclared", "4:9: `z.` is not declared; add it under `global:`"),
    ];
    for path in files(&ours("corner")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        match (read_path(&path), refused.iter().find(|(corner, _)| *corner == name)) {
            (Ok(trace), None) => assert_round_trips(&trace, name),
            (Err(error), Some((_, message))) => {
                let place = format!("{name}.ctrc:{message}");
                assert!(error.to_string().contains(&place), "{error}");
            }
            (Ok(_), Some(_)) => panic!("{name} should be refused"),
            (Err(error), None) => panic!("{error}"),
        }
    }
}

#[test]
fn taras_benchmarks_are_read() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("FORETELL_SHARED").map_or(workspace, PathBuf::from);
    let directory = shared.join("data/ctrc");
    if !directory.is_dir() {
        eprintln!("SKIPPED: {} is absent (set FORETELL_SHARED)", directory.display());
        return;
    }
    for path in files(&directory) {
        let trace = read_path(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_round_trips(&trace, &path.display().to_string());
    }
}

/// The names of the operations of a file's events.
fn kinds(trace: &Trace) -> Vec<&'static str> {
    trace.events.iter().map(|event| OpKind::of(&event.op).name()).collect()
}

#[test]
fn instructions_become_guarded_assignments_or_transitions() {
    let trace = load("steps.ctrc");
    let shapes: Vec<(bool, Vec<u32>)> = trace
        .events
        .iter()
        .filter_map(|event| match &event.op {
            Op::Guarded(step) => Some((
                trace.terms.is_true(step.guard),
                step.assignments.iter().map(|(variable, _)| variable.0).collect(),
            )),
            _ => None,
        })
        .collect();
    let expected = [
        (false, vec![]),
        (false, vec![]),
        (true, vec![2]),
        (false, vec![2]),
        (false, vec![0, 1]),
        (true, vec![0]),
        (true, vec![3]),
        (true, vec![3, 4]),
        (true, vec![3]),
    ];
    assert_eq!(shapes, expected);
    assert_eq!(kinds(&trace)[9..], ["assert"; 3]);
    assert_eq!(kinds(&load("havoc.ctrc")), ["transition"; 11]);
    let changed: Vec<usize> = load("havoc.ctrc")
        .events
        .iter()
        .map(|event| match &event.op {
            Op::Transition(step) => step.changed.len(),
            _ => 0,
        })
        .collect();
    assert_eq!(changed, [1, 2, 3, 1, 1, 1, 2, 2, 1, 1, 1]);
}

#[test]
fn labels_lines_sections_and_orders_are_kept() {
    let trace = load("sections.ctrc");
    let name = |id| trace.event_name(id);
    let pairs = |pairs: &[(_, _)]| -> Vec<String> {
        pairs.iter().map(|&(first, second)| format!("{} {}", name(first), name(second))).collect()
    };
    assert_eq!(pairs(&trace.atomic_sections), ["a1[3] a2[3]", "b1[3] b2[4]", "b3 b3"]);
    assert_eq!(pairs(&trace.orders), ["a3 b3", "a4 b1[3]"]);
    let lines: Vec<Option<u32>> = trace
        .events
        .iter()
        .map(|event| event.site.map(|site| trace.sites[site.index()].line))
        .collect();
    assert_eq!(lines, [Some(3), Some(3), None, None, Some(3), Some(4), None, None]);
    assert!(trace.metadata.symbolic && !trace.metadata.observed_order);
}

#[test]
fn initial_values_come_from_the_precondition() {
    let trace = load("sorts.ctrc");
    let initial: Vec<Option<&Value>> =
        trace.variables.iter().take(10).map(|variable| variable.initial.as_ref()).collect();
    assert_eq!(initial[0], Some(&Value::Int(-5)));
    assert_eq!(initial[1], Some(&Value::Bool(true)));
    assert_eq!(initial[4], Some(&Value::bit_vec(32, 7)));
    assert_eq!(initial[7], Some(&Value::zero(trace.variables[7].sort)));
    assert_eq!(initial[8], None);
    assert_eq!(trace.variables[2].sort, Sort::REAL);
    assert!(trace.variables.iter().skip(10).all(|local| local.initial.is_none()));
    let trace = load("corner/uninit_local.ctrc");
    assert_eq!(trace.variables[1].initial, None);
}
