//! The π-functions of traces, against the papers and against what pruning promises.

use foretell_model::cssa::{Cssa, PiFunction};
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_trace::Trace;
use foretell_trace::format::text;

fn cssa(body: &str) -> (Trace, ConcurrentTraceProgram, Cssa) {
    let text = format!("foretell-trace 1\n{body}");
    let trace = text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let ctp = ConcurrentTraceProgram::build(&trace).unwrap_or_else(|error| panic!("{error}"));
    let order = MustOrder::new(&trace).unwrap_or_else(|error| panic!("{error}"));
    let cssa = Cssa::build(&ctp, &order);
    (trace, ctp, cssa)
}

/// `user: x <- definition definition ...`, one line for each π-function.
fn show(trace: &Trace, ctp: &ConcurrentTraceProgram, cssa: &Cssa) -> Vec<String> {
    let line = |pi: &PiFunction| {
        let name = |event| trace.event_name(ctp.event(event).origin);
        let seen: Vec<String> = pi
            .choices
            .iter()
            .map(|choice| choice.definition.map_or_else(|| "initial".into(), name))
            .collect();
        let variable = &ctp.variables[pi.variable.index()].name;
        format!("{}: {variable} <- {}", name(pi.event), seen.join(" "))
    };
    cssa.pi_functions.iter().map(line).collect()
}

fn pi_functions(body: &str) -> Vec<String> {
    let (trace, ctp, cssa) = cssa(body);
    show(&trace, &ctp, &cssa)
}

#[test]
fn the_running_example_of_004_has_the_pi_functions_of_its_figure_3() {
    let found = pi_functions(
        "symbolic\nthread T1, T2\nvar x = 0, y = 0\nlocal a of T1 = 0\nlocal b of T2 = 0\nsem l = 1\n\
         t1: T1 assign a := x\nt2: T1 sem-wait l\nt3: T1 assign x := (+ 2 a)\nt4: T1 sem-post l\n\
         t5: T1 assign y := (+ 1 a)\nt6: T1 sem-wait l\nt7: T1 assign x := (+ 1 a)\n\
         t8: T1 sem-post l\nt9: T2 assign b := 0\nt10: T2 sem-wait l\nt11: T2 assume (> x b)\n\
         t12: T2 assert (= y 1)\nt13: T2 sem-post l\n",
    );
    // π1 and those of definitions that must come first are certain and leave no function behind.
    assert_eq!(
        found,
        [
            "t2: l <- initial t10 t13",
            "t4: l <- t2 t10 t13",
            "t6: l <- t4 t10 t13",
            "t8: l <- t6 t10 t13",
            "t10: l <- initial t2 t4 t6 t8",
            // x2 is 1 and passes the guard; x0 is 0 and cannot.
            "t11: x <- t3 t7",
            "t12: y <- initial t5",
            "t13: l <- t2 t4 t6 t8 t10",
        ]
    );
}

#[test]
fn must_happens_before_hides_definitions() {
    let found = pi_functions(
        "symbolic\nthread M, T\nvar x = 0\nlocal a of M = 0, b of T = 0\n\
         m1: M assign x := 1\nm2: M fork T\nt1: T begin\nt2: T assign b := x\n\
         t3: T assign x := 2\nt4: T end\nm3: M join T\nm4: M assign a := x\nm5: M assert (= a 2)\n",
    );
    // The child sees m1, the parent t3; threads' states are certain, too.
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn only_the_last_definition_of_a_section_is_seen_by_another() {
    let found = pi_functions(
        "symbolic\nthread A, B\nmutex m\nvar x = 0\nlocal b of B = 0\n\
         a1: A acquire m\na2: A assign x := 1\na3: A assign x := 2\na4: A release m\n\
         b1: B acquire m\nb2: B assign b := x\nb3: B assign x := 7\nb4: B assign b := x\n\
         b5: B release m\nb6: B assign b := x\n",
    );
    // Inside its section B sees its own write; locks have no function.
    assert_eq!(found, ["b2: x <- initial a3", "b6: x <- a2 a3 b3"]);
}

#[test]
fn a_read_with_a_recorded_value_sees_only_writes_of_that_value() {
    let body = "observed\nthread A, B\nvar x : bv8 = 0\n\
                a1: A write x = 1\na2: A write x = 2\na3: A write x = 1\nb1: B read x = 1\n";
    let (trace, ctp, cssa) = cssa(body);
    assert_eq!(show(&trace, &ctp, &cssa), ["b1: x <- a1 a3"]);
    // Nothing but order is left: the value is in place and the guard is true.
    let pi = &cssa.pi_functions[0];
    assert!(pi.required && cssa.terms.constant_value(pi.symbol).is_some());
    assert_eq!(pi.interfering.len(), 3);
    assert!(cssa.terms.is_true(cssa.events[pi.event.index()].guard));
}

#[test]
fn an_event_has_a_pi_function_for_each_shared_variable_it_uses() {
    let mut found = pi_functions(
        "symbolic\nthread A, B\nvar x = 0, y = 0\n\
         a1: A assign x := 1\na2: A assign y := 1\nb1: B assume (< (+ x y) 5) assign x := (+ x y)\n",
    );
    found.sort();
    assert_eq!(found, ["b1: x <- initial a1", "b1: y <- initial a2"]);
}

#[test]
fn a_pi_function_that_nothing_asks_for_is_not_live() {
    let (_, _, cssa) = cssa(
        "symbolic\nobserved\nthread A, B\nvar x : bv8 = 0\n\
         a1: A write x = 1\nb1: B read x = 1\nb2: B v = read x = 1\nb3: B branch (= v #x01) true\n",
    );
    let guards: Vec<_> = cssa.events.iter().map(|event| event.guard).collect();
    assert_eq!(cssa.live(guards), [false, true]);
}
