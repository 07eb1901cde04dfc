//! Every program of `examples/verify` gets the right verdict by both refinements; proofs are checked
//! from their text, counterexamples by the interpreter.

use std::path::PathBuf;

use foretell_verify::bounded::{self, Bounded};
use foretell_verify::proof::{Proof, ProofError};
use foretell_verify::{
    Budget, Options, Program, Refinement, Report, Trouble, Verdict, text, verify,
};

fn read(name: &str) -> Program {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/verify").join(name);
    let source = std::fs::read_to_string(&file).expect("the example is there");
    let path = file.display().to_string();
    text::parse(&path, &source).expect("the example is a program")
}

/// The reports of both refinements; `None` when there is no solver on this machine, said aloud.
fn reports(program: &Program) -> Option<[Report; 2]> {
    let report = |refinement| {
        let options = Options { refinement, ..Options::default() };
        match verify(program, &options) {
            Ok(report) => Some(report),
            Err(Trouble::NoSolver(why)) => {
                eprintln!("SKIPPED: {why}");
                None
            }
            Err(other) => panic!("{other}"),
        }
    };
    Some([report(Refinement::Trace)?, report(Refinement::Neighbourhood)?])
}

fn safe(name: &str) {
    let program = read(name);
    for report in reports(&program).into_iter().flatten() {
        match report.verdict {
            Verdict::Proved(proof) => {
                let proof = Proof::parse(&proof.print()).expect("the proof can be read");
                proof.check(&program).expect("the proof holds");
            }
            other => panic!("{name} is safe, not {other:?}"),
        }
    }
}

fn violated(name: &str) {
    let program = read(name);
    for report in reports(&program).into_iter().flatten() {
        match report.verdict {
            Verdict::Violated(execution) => {
                let last = execution.steps.last().expect("it has steps");
                assert!(program.is_error(last.edge));
            }
            other => panic!("{name} can go wrong, not {other:?}"),
        }
    }
}

macro_rules! programs {
    ($($name:ident $file:literal $verdict:ident;)*) => {$(
        #[test]
        fn $name() {
            $verdict($file);
        }
    )*};
}

programs! {
    bank "bank.cmd" safe;
    bank_bad "bank_bad.cmd" violated;
    barrier "barrier.cmd" safe;
    dekker "dekker.cmd" safe;
    dekker_bad "dekker_bad.cmd" violated;
    example1 "example1.cmd" safe;
    example2 "example2.cmd" safe;
    example2_bad "example2_bad.cmd" violated;
    example2_flags "example2_flags.cmd" safe;
    example3 "example3.cmd" safe;
    lamport "lamport.cmd" safe;
    peterson "peterson.cmd" safe;
    published4 "published4.cmd" safe;
    peterson_bad "peterson_bad.cmd" violated;
    readers_writer "readers_writer.cmd" safe;
    readers_writer_bad "readers_writer_bad.cmd" violated;
    sem_handover "sem_handover.cmd" safe;
    spinlock "spinlock.cmd" safe;
    ticket "ticket.cmd" safe;
}

#[test]
fn the_neighbourhood_needs_a_quarter_fewer_iterations() {
    let mut totals = [0, 0];
    for name in ["bank.cmd", "example1.cmd", "example3.cmd", "readers_writer.cmd"] {
        let Some(reports) = reports(&read(name)) else { return };
        for (total, report) in totals.iter_mut().zip(reports) {
            *total += report.statistics.iterations;
        }
    }
    let [trace, neighbourhood] = totals;
    assert!(4 * neighbourhood <= 3 * trace, "{neighbourhood} iterations instead of {trace}");
}

#[test]
fn a_spent_budget_is_unknown_and_says_what_was_learned() {
    let program = read("lamport.cmd");
    let budget = Budget { iterations: 1, ..Budget::default() };
    let options = Options { budget, ..Options::default() };
    match verify(&program, &options) {
        Err(Trouble::NoSolver(why)) => eprintln!("SKIPPED: {why}"),
        Err(other) => panic!("{other}"),
        Ok(report) => {
            assert!(matches!(&report.verdict, Verdict::Unknown(why) if why.contains("budget")));
            assert!(!report.predicates.is_empty());
        }
    }
}

#[test]
fn a_proof_of_another_program_or_with_a_hole_is_refused() {
    let program = read("peterson.cmd");
    let Some([report, _]) = reports(&program) else { return };
    let Verdict::Proved(proof) = report.verdict else { panic!("it is safe") };
    assert_eq!(proof.check(&read("peterson_bad.cmd")), Err(ProofError::OtherProgram));
    for place in 0..proof.states.len() {
        let mut holed = proof.clone();
        holed.states.remove(place);
        assert!(holed.check(&program).is_err(), "state {place} is not needed");
    }
    assert!(Proof::parse("foretell-proof 2\n").is_err());
}

#[test]
fn what_is_outside_is_refused_with_its_line() {
    let refused = text::parse("x.cmd", "shared x = 0;\nthread a {\n  y := 1;\n}\n").unwrap_err();
    assert_eq!((refused.line, &*refused.file), (3, "x.cmd"));
    let refused = text::parse("x.cmd", "shared x = 0;\nthread a { x := x * x; }").unwrap_err();
    assert_eq!(refused.line, 2);
}

#[test]
fn bounded_checking_sees_what_lies_within_its_bound_only() {
    let program = read("dekker_bad.cmd");
    for (steps, expected) in [(3, Bounded::NoneWithin(3)), (9, Bounded::Violated)] {
        match bounded::check(&program, steps) {
            Ok(found) => assert_eq!(found, expected),
            Err(Trouble::NoSolver(why)) => eprintln!("SKIPPED: {why}"),
            Err(other) => panic!("{other}"),
        }
    }
}
