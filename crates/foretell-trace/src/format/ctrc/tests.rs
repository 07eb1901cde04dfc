//! Faults of CTRC files, and traces that CTRC cannot carry.

use super::*;
use crate::format::text;

#[test]
fn faults_have_a_place_and_a_remedy() {
    let start = "global: x y b:bool\npre: (= x 0)\nthread t { l }:\n";
    for (body, expected) in [
        ("a: (= z. 1)", "4:7: `z.` is not declared; add it"),
        ("a: (= x. 1", "4:4: this parenthesis is never closed"),
        ("a: (+ x 1)", "4:4: expected bool, this is int"),
        ("a: (= x. b)", "4:4: `=` cannot be applied to (Int, Bool)"),
        ("a: assume(= x. 1)", "4:13: `x.` has a dot here; assume and assert speak"),
        ("a: havok(x) assert(= x 1)", "4:3: `havok` and `assert` in one instruction"),
        ("a: havok(z) (true)", "4:10: `z` is not declared"),
        ("a: (exists ((i Int)) (= i x))", "4:4: quantifiers are not handled; state it"),
        ("a: (forall ((i Int)) (= i x))", "4:4: quantifiers are not handled"),
        ("a: (f x)", "4:5: unknown function `f`"),
        ("a: (= x. 1) a: (= x. 2)", "4:13: the label `a` is given twice"),
        ("a (= x. 1)", "4:3: expected `:` here"),
        ("a: x", "4:4: expected a formula in parentheses here"),
        ("a: (= x. 1) order: a < c", "4:24: no instruction is called `c`"),
        ("a: (= x. 1) c: (= x. 2) atomic: [c a]", "4:34: the section ends before it begins"),
        ("a: (= x. 1) order: a b", "4:22: expected `<` here"),
        ("a: (= x. 1) atomic: [a a", "4:25: expected `]` here"),
        ("a: (= |x|. 1)", "4:7: `.` follows a closing bar; the dot goes inside"),
        ("a: (= |x 1)", "4:7: this `|` is never closed"),
        ("a: (= x. 1) thread t:", "4:20: thread `t` is given twice"),
        ("a: (= x. 1) }", "4:13: expected `atomic`, `order` or the end"),
        ("a: ()", "4:4: `()` is not a formula"),
        (
            "a: (= x. 1000000000000000000000000000000000000000)",
            "4:10: numbers of more than 128 bits",
        ),
    ] {
        let message = read(&format!("{start}{body}")).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{body}\n{message}");
    }
    for (whole, expected) in [
        ("", "1:1: expected `global`; a CTRC file begins with"),
        ("global: x", "1:10: expected `thread`; a trace has at least one"),
        ("global: x x thread t:", "1:11: `x` is declared twice"),
        ("global: x:bv99 thread t:", "1:11: unknown sort `bv99`; write int"),
        ("global: x:(Array Int) thread t:", "1:11: unknown sort `(Array Int)`"),
        ("global: x pre: (= x. 1) thread t:", "1:19: `x.` has a dot here; a precondition"),
    ] {
        let message = read(whole).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{whole}\n{message}");
    }
}

#[test]
fn what_ctrc_cannot_say_is_named() {
    for (body, expected) in [
        ("mutex m", "the synchronisation object `m`"),
        ("observed", "the observed order of events"),
        ("command \"a\"", "the command that was recorded"),
        ("var |a b|", "the variable name `a b`"),
        ("var order", "the variable name `order`"),
        ("var y at 0x10 size 4", "the address of `y`"),
        ("local l of T = 1", "the initial value of the local `l`"),
        ("T read x", "event T#0: a read"),
        ("T assert (= x 0) false", "event T#0: an assertion that failed"),
        ("l1: T assume (= x 0) @ a.c:3", "the source position of l1"),
        ("T assume (= x 0)\nT assert (= (as r9 int) 0)", "T#1: what a read returned"),
        ("local x of T\nT assert (= x$0 0)", "T#0: `x`, which is hidden"),
        ("T assume (= x 0)\nl: T fork T", "event l: a fork"),
    ] {
        let trace = text::read(&format!("foretell-trace 1\nsymbolic\nthread T\nvar x\n{body}"));
        let trace = trace.unwrap_or_else(|error| panic!("{error}\n{body}"));
        let message = write(&trace).unwrap_err().to_string();
        let whole = format!("the CTRC format cannot carry {expected}");
        assert!(message.starts_with(&whole), "{body}\n{message}");
    }
}

#[test]
fn a_transition_that_looks_like_an_assignment_stays_one() {
    let source =
        "foretell-trace 1\nsymbolic\nthread T path 0.0\nvar x\nT1: T transition (= x' 1)\n";
    let trace = text::read(source).unwrap();
    let written = write(&trace).unwrap();
    assert!(written.contains("havok(x) (= x. 1)"), "{written}");
    assert!(read(&written).unwrap().says_the_same_as(&trace));
}
