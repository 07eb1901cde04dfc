//! What the cheap filters leave of the papers' families (000 Table 1, columns orig-pavs, hb-pavs
//! and pavs).

use foretell_model::lockset::Locksets;
use foretell_model::must_order::MustOrder;
use foretell_predict::candidates::{Candidates, Limits, candidates};
use foretell_predict::region::Regions;
use foretell_testing::families::{self, BankVersion, Counters};
use foretell_trace::Trace;

fn of(trace: &Trace) -> Candidates {
    let order = MustOrder::new(trace).expect("no cycle");
    let locks = Locksets::new(trace);
    candidates(trace, &order, &locks, Regions::Automatic, Limits::default())
}

fn counts(trace: &Trace) -> [usize; 3] {
    let found = of(trace);
    [found.original, found.after_must_order, found.after_locksets]
}

#[test]
fn atom_programs_have_the_counts_of_the_table() {
    for fixed in [false, true] {
        assert_eq!(counts(&families::atom001(fixed)), [8, 2, 1]);
        assert_eq!(counts(&families::atom002(fixed)), [212, 34, 33]);
    }
}

#[test]
fn every_bank_has_twelve_patterns_a_thread_and_locksets_leave_four() {
    for version in [BankVersion::Violated, BankVersion::SomeViolated, BankVersion::NoneViolated] {
        for threads in [2, 4, 6, 8, 32] {
            let found = of(&families::bank(version, threads));
            let n = threads as usize;
            assert_eq!(found.regions, n);
            assert_eq!(
                [found.original, found.after_must_order, found.after_locksets],
                [12 * n, 4 * n, 4 * n],
                "{} with {threads} threads",
                version.name()
            );
        }
    }
}

#[test]
fn protected_counters_leave_only_the_forgotten_locks() {
    let wanted =
        Counters { threads: 4, counters: 8, events: 20_000, violations: 3, apart: 0, seed: 1 };
    let found = of(&families::counters(wanted));
    // two threads call each forgetful function once, and each can interrupt the other
    assert_eq!(found.after_locksets, 2 * 3);
    assert!(found.original > found.after_locksets);
    assert!(found.candidates.iter().all(|candidate| candidate.instances.len() == 1));
}
