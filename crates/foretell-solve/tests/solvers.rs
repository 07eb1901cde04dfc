//! What all solvers promise, and what the default adds: Z3 where the embedded one has to pass.

use foretell_solve::{
    Answer, Backend, Budget, OrderProblem, OrderSolver, UnknownReason, minimal_core, solver,
};
use foretell_trace::term::ArrayValue;
use foretell_trace::{EventId, Operator, ScalarSort, Sort, TermId, Value};

fn threads(count: u32, length: u32) -> OrderProblem {
    let chains = (0..count).map(|t| (0..length).map(|e| EventId(t * length + e)).collect());
    OrderProblem { chains: chains.collect(), ..OrderProblem::default() }
}

fn start(problem: OrderProblem, backend: Backend) -> Box<dyn OrderSolver> {
    solver(problem, &backend).unwrap()
}

#[test]
fn the_minimal_core_of_a_cycle_is_the_cycle() {
    for backend in [Backend::Embedded, Backend::Z3] {
        let mut solver = start(threads(5, 3), backend);
        let terms = solver.terms();
        let mut all: Vec<TermId> = Vec::new();
        // a cycle through all threads, and a lot that does not matter
        for thread in 0..5 {
            all.push(terms.before(EventId(3 * thread + 2), EventId(3 * ((thread + 1) % 5))));
        }
        let cycle = all.clone();
        for thread in 0..4 {
            all.push(terms.before(EventId(3 * thread), EventId(3 * thread + 5)));
        }
        let mut core = minimal_core(&mut *solver, &[], &all, Budget::default()).unwrap();
        core.sort();
        let mut expected = cycle.clone();
        expected.sort();
        assert_eq!(core, expected);
        assert_eq!(minimal_core(&mut *solver, &[], &cycle[1..], Budget::default()), None);
        let core = minimal_core(&mut *solver, &cycle[..4], &cycle[4..], Budget::default());
        assert_eq!(core.unwrap(), cycle[4..]);
    }
}

#[test]
fn a_spent_budget_is_unknown() {
    let mut solver = start(threads(1, 1), Backend::Embedded);
    let terms = solver.terms();
    let [p, q] = ["p", "q"].map(|name| terms.fresh_symbol(name, Sort::bit_vec(64)));
    let product = terms.build(Operator::BvMul, &[p, q]);
    let value = terms.bit_vec(64, 2_654_435_761 * 3_266_489_917);
    let (one, big) = (terms.bit_vec(64, 1), terms.bit_vec(64, 1 << 32));
    let mut formulas = vec![terms.eq(product, value)];
    for factor in [p, q] {
        formulas.push(terms.build(Operator::BvUlt, &[one, factor]));
        formulas.push(terms.build(Operator::BvUlt, &[factor, big]));
    }
    match solver.check(&formulas, Budget { conflicts: 100 }) {
        Answer::Unknown(UnknownReason::Budget) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(solver.check(&formulas[1..], Budget::default()), Answer::Satisfiable(_)));
}

/// x + y = 2^40 and x - y = 6 has an integer solution beyond the first widths; 2x + 4y = 1 has none
/// at any width.
#[test]
fn integers_without_bounds_are_widened_then_left_to_z3() {
    for (backend, decides) in [(Backend::Embedded, false), (Backend::Auto, true)] {
        let mut solver = start(threads(2, 2), backend);
        let terms = solver.terms();
        let [x, y] = ["x", "y"].map(|name| terms.fresh_symbol(name, Sort::INT));
        let (sum, difference) =
            (terms.build(Operator::Add, &[x, y]), terms.build(Operator::Sub, &[x, y]));
        let (large, six) = (terms.int(1 << 40), terms.int(6));
        let formulas = [terms.eq(sum, large), terms.eq(difference, six)];
        match solver.check(&formulas, Budget::default()) {
            Answer::Satisfiable(model) => {
                for formula in formulas {
                    assert_eq!(model.holds(solver.terms(), formula), Some(true));
                }
            }
            other => panic!("{other:?}"),
        }
        let terms = solver.terms();
        let [two, four, one] = [2, 4, 1].map(|value| terms.int(value));
        let (a, b) =
            (terms.build(Operator::Mul, &[two, x]), terms.build(Operator::Mul, &[four, y]));
        let even = terms.build(Operator::Add, &[a, b]);
        let odd = terms.eq(even, one);
        let ordered = terms.before(EventId(0), EventId(2));
        match solver.check(&[ordered, odd], Budget::default()) {
            Answer::Unsatisfiable { core } if decides => assert_eq!(core, [odd]),
            Answer::Unknown(UnknownReason::Unsupported(_)) if !decides => {}
            other => panic!("{other:?}"),
        }
        // a contradiction of the order needs no integers
        let back = solver.terms().before(EventId(2), EventId(0));
        match solver.check(&[back, ordered, formulas[0]], Budget::default()) {
            Answer::Unsatisfiable { core } => assert!(!core.contains(&formulas[0])),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_not_supported_is_unknown_or_asked_of_z3() {
    for (backend, decides) in [(Backend::Embedded, false), (Backend::Auto, true)] {
        let mut solver = start(threads(2, 2), backend);
        let terms = solver.terms();
        let x = terms.fresh_symbol("x", Sort::REAL);
        let double = terms.build(Operator::Add, &[x, x]);
        let third = terms.constant(Value::Real(foretell_trace::Rational::new(1, 3).unwrap()));
        let formula = terms.eq(double, third);
        solver.assert(formula);
        for _ in 0..2 {
            let ordered = solver.terms().before(EventId(1), EventId(2));
            match solver.check(&[ordered], Budget::default()) {
                Answer::Satisfiable(model) if decides => {
                    assert_eq!(model.holds(solver.terms(), formula), Some(true));
                    assert_eq!(model.holds(solver.terms(), ordered), Some(true));
                }
                Answer::Unknown(UnknownReason::Unsupported(_)) if !decides => {}
                other => panic!("{other:?}"),
            }
            let later = solver.terms().before(EventId(0), EventId(3));
            solver.assert(later);
        }
    }
}

/// Two threads store into one array; a third read at an index that is one or the other.
#[test]
fn arrays_are_read_through_stores() {
    let sort = Sort::Array { index: ScalarSort::BitVec(8), element: ScalarSort::BitVec(8) };
    for backend in [Backend::Embedded, Backend::Z3] {
        let mut problem = threads(3, 1);
        let [first, second, read] = [EventId(0), EventId(1), EventId(2)];
        let terms = &mut problem.terms;
        let array = |value| {
            let default = Value::bit_vec(8, value);
            Value::Array(Box::new(ArrayValue::constant(ScalarSort::BitVec(8), default)))
        };
        let initial = terms.constant(array(7));
        let [before_first, before_second, seen] =
            ["a0", "a1", "a2"].map(|name| terms.fresh_symbol(name, sort));
        let [i, j] = ["i", "j"].map(|name| terms.fresh_symbol(name, Sort::bit_vec(8)));
        let [one, two] = [1, 2].map(|value| terms.bit_vec(8, value));
        let after_first = terms.build(Operator::Store, &[before_first, i, one]);
        let after_second = terms.build(Operator::Store, &[before_second, j, two]);
        let active = terms.bool(true);
        let writes = [(first, after_first), (second, after_second)];
        for (event, symbol) in [(first, before_first), (second, before_second), (read, seen)] {
            let others = writes.iter().filter(|write| write.0 != event);
            let mut choices: Vec<(Option<EventId>, TermId)> =
                others.clone().map(|&(write, value)| (Some(write), value)).collect();
            choices.push((None, initial));
            problem.pis.push(foretell_solve::Pi {
                event,
                active,
                symbol,
                choices,
                interfering: others.map(|write| write.0).collect(),
            });
        }
        let mut solver = start(problem, backend);
        let terms = solver.terms();
        let [at_i, at_j] = [i, j].map(|index| terms.build(Operator::Select, &[seen, index]));
        let seven = terms.bit_vec(8, 7);
        let both = [terms.eq(at_i, one), terms.eq(at_j, two)];
        let overwritten = terms.eq(at_i, two);
        let untouched = terms.eq(at_j, seven);
        let same = terms.eq(i, j);
        let different = terms.not(same);
        let late = [terms.before(first, read), terms.before(second, read)];
        let mut satisfiable = |parts: &[TermId]| match solver.check(parts, Budget::default()) {
            Answer::Satisfiable(model) => {
                for &part in parts {
                    assert_eq!(model.holds(solver.terms(), part), Some(true));
                }
                true
            }
            Answer::Unsatisfiable { .. } => false,
            Answer::Unknown(reason) => panic!("{reason:?}"),
        };
        assert!(satisfiable(&both));
        assert!(!satisfiable(&[both[0], both[1], same]));
        assert!(satisfiable(&[overwritten, same]));
        assert!(!satisfiable(&[overwritten, different]));
        assert!(satisfiable(&[untouched, different]));
        assert!(!satisfiable(&[untouched, late[0], late[1]]));
    }
}

#[test]
fn an_order_that_cannot_be_is_unsatisfiable_for_all() {
    for backend in [Backend::Auto, Backend::Embedded, Backend::Z3] {
        let mut problem = threads(2, 2);
        problem.edges = vec![(EventId(1), EventId(2)), (EventId(3), EventId(0))];
        let mut solver = start(problem, backend);
        match solver.check(&[], Budget::default()) {
            Answer::Unsatisfiable { core } => assert!(core.is_empty()),
            other => panic!("{other:?}"),
        }
    }
}
