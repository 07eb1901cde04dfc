//! Every program of `examples/verify` gets the right verdict by both refinements; proofs are checked
//! from their text, counterexamples by the interpreter.

use std::path::PathBuf;

use foretell_verify::proof::Proof;
use foretell_verify::{Options, Program, Refinement, Trouble, Verdict, text, verify};

fn read(name: &str) -> Program {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/verify").join(name);
    let source = std::fs::read_to_string(&file).expect("the example is there");
    text::parse(name, &source).expect("the example is a program")
}

/// `None` when there is no solver on this machine, said aloud.
fn verdict(program: &Program, refinement: Refinement) -> Option<Verdict> {
    let options = Options { refinement, ..Options::default() };
    match verify(program, &options) {
        Ok(report) => Some(report.verdict),
        Err(Trouble::NoSolver(why)) => {
            eprintln!("SKIPPED: {why}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

fn safe(name: &str) {
    let program = read(name);
    for refinement in [Refinement::Trace, Refinement::Neighbourhood] {
        match verdict(&program, refinement) {
            None => return,
            Some(Verdict::Proved(proof)) => {
                let proof = Proof::parse(&proof.print()).expect("the proof can be read");
                proof.check(&program).expect("the proof holds");
            }
            Some(other) => panic!("{name} is safe, not {other:?}"),
        }
    }
}

fn violated(name: &str) {
    let program = read(name);
    for refinement in [Refinement::Trace, Refinement::Neighbourhood] {
        match verdict(&program, refinement) {
            None => return,
            Some(Verdict::Violated(execution)) => {
                let last = execution.steps.last().expect("it has steps");
                assert!(program.is_error(last.edge));
            }
            Some(other) => panic!("{name} can go wrong, not {other:?}"),
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
    bank_without_lock "bank_bad.cmd" violated;
    counter "counter.cmd" safe;
    peterson "peterson.cmd" safe;
    peterson_swapped "peterson_bad.cmd" violated;
    ticket_lock "ticket.cmd" safe;
}
