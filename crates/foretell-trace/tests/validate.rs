//! Runs that happened have no faults, and validation is linear in the trace.

use foretell_testing::arbitrary;
use foretell_trace::format::{ctrc, text};
use foretell_trace::validate::validate;

#[test]
fn simulated_runs_have_no_faults() {
    for seed in 0..200 {
        let trace = arbitrary::trace(seed, 300);
        let faults = validate(&trace);
        assert!(faults.is_empty(), "seed {seed}: {}", faults[0]);
    }
}

#[test]
fn ctrc_files_have_no_faults() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ctrc");
    for directory in [directory.clone(), directory.join("loops"), directory.join("corner")] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            if let Ok(trace) = ctrc::read(&std::fs::read_to_string(&path).unwrap()) {
                let faults = validate(&trace);
                assert!(faults.is_empty(), "{}: {}", path.display(), faults[0]);
            }
        }
    }
}

/// A term that grows with every event: looked at anew for each event this would take hours.
#[test]
fn terms_that_grow_along_the_trace_are_looked_at_once() {
    let mut source =
        String::from("foretell-trace 1\nsymbolic\nobserved\nthread T\nvar x : bv64 = 0\n");
    source.push_str("T read x = 0\ndefine %0 := (read T 0)\n");
    for index in 1..100_000 {
        source.push_str(&format!("define %{index} := (bvadd %{} (read T 0))\n", index - 1));
        source.push_str(&format!("T write x = 0 := %{index}\n"));
    }
    let trace = text::read(&source).unwrap();
    assert!(validate(&trace).is_empty());
}
