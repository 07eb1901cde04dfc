//! The SMT-LIB backend against real processes: Z3, and programs that are no solvers.

use foretell_solve::{
    Answer, Budget, OrderProblem, OrderSolver, Pi, SmtLibSolver, SolveError, UnknownReason, z3,
};
use foretell_trace::{EventId, Operator, Sort, TermId, TermStore, Value};

const A: EventId = EventId(0);
const B: EventId = EventId(1);
const C: EventId = EventId(2);

fn three_threads() -> OrderProblem {
    OrderProblem { chains: vec![vec![A], vec![B], vec![C]], ..OrderProblem::default() }
}

fn core(answer: Answer) -> Vec<TermId> {
    match answer {
        Answer::Unsatisfiable { core } => core,
        other => panic!("{other:?}"),
    }
}

#[test]
fn orders_are_total_and_cores_name_assumptions() {
    let mut solver = z3(three_threads()).unwrap();
    let terms = solver.terms();
    let (ab, bc, ca) = (terms.before(A, B), terms.before(B, C), terms.before(C, A));
    let free = terms.fresh_symbol("free", Sort::BOOL);
    let budget = Budget::default();
    let mut cycle = core(solver.check(&[free, ca, ab, bc], budget));
    cycle.sort();
    let mut expected = vec![ab, bc, ca];
    expected.sort();
    assert_eq!(cycle, expected);
    match solver.check(&[ca, bc], budget) {
        Answer::Satisfiable(model) => assert_eq!(model.order, [B, C, A]),
        other => panic!("{other:?}"),
    }
    let (ba, cb) = (solver.terms().before(B, A), solver.terms().before(C, B));
    solver.assert(ba);
    solver.assert(cb);
    match solver.check(&[], budget) {
        Answer::Satisfiable(model) => assert_eq!(model.order, [C, B, A]),
        other => panic!("{other:?}"),
    }
    let ac = solver.terms().before(A, C);
    assert_eq!(core(solver.check(&[ac], budget)), [ac]);
}

#[test]
fn a_later_formula_may_need_a_larger_logic() {
    let mut solver = z3(three_threads()).unwrap();
    let ab = solver.terms().before(A, B);
    solver.assert(ab);
    assert!(matches!(solver.check(&[], Budget::default()), Answer::Satisfiable(_)));
    let terms = solver.terms();
    let x = terms.fresh_symbol("x", Sort::bit_vec(8));
    let squared = terms.build(Operator::BvMul, &[x, x]);
    let expected = terms.bit_vec(8, 49);
    let formula = terms.eq(squared, expected);
    match solver.check(&[formula], Budget::default()) {
        Answer::Satisfiable(model) => {
            assert_eq!(model.holds(solver.terms(), formula), Some(true));
            assert_eq!(model.holds(solver.terms(), ab), Some(true));
        }
        other => panic!("{other:?}"),
    }
    let ba = solver.terms().before(B, A);
    assert_eq!(core(solver.check(&[formula, ba], Budget::default())), [ba]);
}

/// `A` writes 1, `B` writes 2, `C` reads; it sees 1 exactly if `B` is not between.
#[test]
fn a_read_sees_the_last_write() {
    let mut terms = TermStore::default();
    let seen = terms.fresh_symbol("seen", Sort::INT);
    let [zero, one, two] = [0, 1, 2].map(|value| terms.int(value));
    let active = terms.bool(true);
    let pi = Pi {
        event: C,
        active,
        symbol: seen,
        choices: vec![(None, zero), (Some(A), one), (Some(B), two)],
        interfering: vec![A, B],
    };
    let problem = OrderProblem { terms, pis: vec![pi], ..three_threads() };
    let mut solver = z3(problem).unwrap();
    let terms = solver.terms();
    let sees = [zero, one, two].map(|value| terms.eq(seen, value));
    let (ab, bc, ca) = (terms.before(A, B), terms.before(B, C), terms.before(C, A));
    let sat = |answer: Answer| matches!(answer, Answer::Satisfiable(_));
    let budget = Budget::default();
    assert!(sat(solver.check(&[sees[0]], budget)));
    assert!(sat(solver.check(&[sees[2], ab, bc], budget)));
    assert!(!sat(solver.check(&[sees[1], ab, bc], budget)));
    assert!(!sat(solver.check(&[sees[0], bc], budget)));
    assert!(!sat(solver.check(&[sees[1], ca], budget)));
    match solver.check(&[sees[2]], budget) {
        Answer::Satisfiable(model) => {
            let foretell_trace::Term::Symbol(id) = *solver.terms().term(seen) else { panic!() };
            assert_eq!(model.values[&id], Value::Int(2));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_of_all_sorts_come_back() {
    use foretell_trace::ScalarSort::{Int, Real};
    let mut solver = z3(three_threads()).unwrap();
    let terms = solver.terms();
    let third = Value::Real(foretell_trace::Rational::new(-1, 3).unwrap());
    let array = foretell_trace::term::ArrayValue::constant(Int, third.clone())
        .store(Value::Int(-7), Value::Real(foretell_trace::Rational::integer(5)));
    let values = [
        Value::Bool(true),
        Value::Int(-170_141_183_460_469_231_731_687_303_715_884_105_727),
        third,
        Value::bit_vec(64, u64::MAX),
        Value::bit_vec(5, 3),
        Value::Array(Box::new(array)),
    ];
    assert_eq!(values[5].sort(), Sort::Array { index: Int, element: Real });
    let mut formulas = Vec::new();
    for value in &values {
        let symbol = terms.fresh_symbol("a |strange\\ name", value.sort());
        let constant = terms.constant(value.clone());
        formulas.push(terms.eq(symbol, constant));
    }
    match solver.check(&formulas, Budget::default()) {
        Answer::Satisfiable(model) => {
            for formula in formulas {
                assert_eq!(model.holds(solver.terms(), formula), Some(true));
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_spent_budget_is_unknown() {
    let mut solver = z3(three_threads()).unwrap();
    let terms = solver.terms();
    // a product of two primes: hard without a budget
    let [p, q] = ["p", "q"].map(|name| terms.fresh_symbol(name, Sort::bit_vec(64)));
    let product = terms.build(Operator::BvMul, &[p, q]);
    let value = terms.bit_vec(64, 4_294_967_291 * 4_294_967_279);
    let one = terms.bit_vec(64, 1);
    let big = terms.bit_vec(64, 1 << 32);
    let mut formulas = vec![terms.eq(product, value)];
    for factor in [p, q] {
        formulas.push(terms.build(Operator::BvUlt, &[one, factor]));
        formulas.push(terms.build(Operator::BvUlt, &[factor, big]));
    }
    match solver.check(&formulas, Budget { conflicts: 10 }) {
        Answer::Unknown(UnknownReason::Budget) => {}
        other => panic!("{other:?}"),
    }
    // and it is usable afterwards
    let ab = solver.terms().before(A, B);
    assert!(matches!(solver.check(&[ab], Budget::default()), Answer::Satisfiable(_)));
}

#[test]
fn programs_that_are_no_solvers_are_told_apart() {
    let start = |command| match SmtLibSolver::command(three_threads(), command) {
        Err(error) => error,
        Ok(_) => panic!("{command} passed for a solver"),
    };
    assert!(matches!(start("/nonexistent/solver -x"), SolveError::Start { .. }));
    assert!(matches!(start(""), SolveError::Start { .. }));
    for command in ["true", "false", "cat", "yes", "echo (((", "head -c 100000 /dev/zero"] {
        let error = start(command);
        assert!(matches!(error, SolveError::NoSolver { .. }), "{command}: {error}");
    }
}

#[test]
fn a_solver_that_dies_is_unknown_and_started_again() {
    // says who it is, then quits at the first question
    let directory = std::env::temp_dir().join(format!("foretell-solver-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let script = directory.join("dying.sh");
    std::fs::write(
        &script,
        "while read line; do case $line in\n\
         '(get-info :name)') echo '(:name \"dying\")';;\n\
         '(echo '*) line=${line#*\\\"}; echo \"${line%%\\\"*}\";;\n\
         '(check-sat'*) exit 3;;\n\
         esac; done\n",
    )
    .unwrap();
    let mut solver =
        SmtLibSolver::command(three_threads(), &format!("sh {}", script.display())).unwrap();
    for _ in 0..2 {
        match solver.check(&[], Budget::default()) {
            Answer::Unknown(UnknownReason::Unsupported(reason)) => {
                assert!(reason.contains("ended: exit status: 3"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn a_question_about_an_unknown_event_is_refused() {
    let mut solver = z3(three_threads()).unwrap();
    let strange = solver.terms().before(A, EventId(77));
    match solver.check(&[strange], Budget::default()) {
        Answer::Unknown(UnknownReason::Unsupported(reason)) => {
            assert_eq!(reason, "event e77 is in no chain");
        }
        other => panic!("{other:?}"),
    }
    let two = OrderProblem { chains: vec![vec![A], vec![A]], ..OrderProblem::default() };
    assert!(matches!(z3(two), Err(SolveError::TwoChains(A))));
}
