//! The text format by example.

use super::*;
use crate::event::{Condition, Op};
use crate::id::{EventId, ThreadId, VariableId};
use crate::term::{Sort, Value};
use crate::trace::Trace;

fn printed(trace: &Trace) -> String {
    let mut bytes = Vec::new();
    write(trace, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads the text after the header line.
fn parse(body: &str) -> Trace {
    read(&format!("foretell-trace 1\n{body}")).unwrap_or_else(|error| panic!("{error}\n{body}"))
}

fn refused(body: &str) -> String {
    read(&format!("foretell-trace 1\n{body}")).unwrap_err().to_string()
}

fn assert_round_trip(trace: &Trace) {
    let text = printed(trace);
    let back = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(back.says_the_same_as(trace), "{text}\n{}", printed(&back));
    assert_eq!(printed(&back), text);
}

/// The example of the module's header.
const BANK: &str = "
symbolic
observed
thread main, T1, T2
var balance = 100, y : bv32 = 5, flags : (Array int bool)
var count : bv32 = 0 at 0x1000 size 4 generation 2
local a of T1 : bool
mutex m
cond c
sem s = 1
barrier b 2
pre (> balance 0)

main fork T1
T1 acquire m
T1 old = read balance = 100 @ bank.c:12:5 deposit
T1 branch (> old 0) true
w1: T1 write balance = 101 := (+ r1 1) @ bank.c:13:5 deposit
T1 release m
T1 assert (= old 100)
T2 assign balance := (+ balance 1), y := 3
T2 assume (> balance 0) assign y := 4
T2 transition (> balance' balance) changes balance
order w1 < T2#0
atomic T1#0 T1#4
";

#[test]
fn the_header_example_means_what_it_says() {
    let mut trace = parse(BANK);
    assert!(trace.metadata.symbolic && trace.metadata.observed_order);
    let paths: Vec<&[u32]> = trace.threads.iter().map(|thread| &*thread.path).collect();
    assert_eq!(paths, [&[] as &[u32], &[0], &[1]]);
    assert_eq!(trace.variables[0].initial, Some(Value::Int(100)));
    assert_eq!(trace.variables[1].initial, Some(Value::bit_vec(32, 5)));
    assert_eq!(trace.variables[3].memory.unwrap().generation, 2);
    let thread = ThreadId(1);
    let old = trace.terms.read_value(thread, 1, Sort::INT);
    let one = trace.terms.int(1);
    let sum = trace.terms.build(crate::Operator::Add, &[old, one]);
    let zero = trace.terms.int(0);
    let positive = trace.terms.build(crate::Operator::Lt, &[zero, old]);
    assert_eq!(trace.events[3].op, Op::Branch(Condition { term: Some(positive), outcome: true }));
    let Op::Write(write) = &trace.events[4].op else { panic!() };
    assert_eq!((write.value, write.term), (Some(101), Some(sum)));
    assert_eq!(trace.event_name(EventId(4)), "w1");
    assert_eq!(trace.sites[1].line, 13);
    assert_eq!(trace.orders, [(EventId(4), EventId(7))]);
    assert_eq!(trace.atomic_sections, [(EventId(1), EventId(5))]);
    let Op::Transition(transition) = &trace.events[9].op else { panic!() };
    assert_eq!(transition.changed, [VariableId(0)]);
    assert_round_trip(&trace);
}

#[test]
fn every_operation_round_trips() {
    let trace = parse(
        "command \"./bank\" \"-n 3\" \"\"
         build-id 0f3a
         gap \"libfoo.so was not instrumented\"
         restriction \"expressions held at their recorded value (2 times)\"
         thread main, T1 path 0.7.1
         var x, x, |a b|, |r1|, f : bool, q : real = (/ 1.0 3.0)
         var arr : (Array int bv8) = (array (Array int bv8) 0 (1 5) ((- 2) 7))
         local x of T1
         mutex m
         recursive m
         errorcheck e
         rwlock l
         cond c
         sem s = 2
         barrier b 3
         symbol k : bv8
         main begin
         main end
         main fork T1
         main join T1
         T1 read x
         T1 read.acquire |a b| = -1 at (+ r0 4)
         T1 write.seq_cst f = true := (= (read 0) (as (read main 7) int))
         main rmw x$0 = 1 -> 2 := (+ r4 1)
         main rmw.relaxed x$1
         main acquire m$0
         main try-acquire m$1
         main acquire-failed e
         main try-acquire-failed m$0
         main acquire.shared l
         main try-acquire.shared l
         main release.shared l
         main release m$1
         main wait-begin c m$0
         main wait-end c m$0
         main wait-timeout c m$0
         main signal c
         main broadcast c
         main sem-wait s
         main sem-wait-failed s
         main sem-post s
         main barrier-arrive b
         main barrier-leave b
         main fence acq_rel
         main branch true
         main branch (= (select arr 1) #x05) false
         main assert f
         main assert (before e0 e7) false
         main assert (= (symbol 0) 255)
         main region |a region|
         main call f
         main return
         main region-end
         main alloc 0xdeadbeef 16
         main free 0xdeadbeef
         main input read = 18446744073709551615
         T1 assume true
         T1 assume (> x 0) assign x := (ite f 1 2), q := 2
         T1 assign arr := (store arr 3 (bvadd (select arr 1) 1))
         T1 transition (= (+ x' x) x$0) changes x$1 x
         |odd label|: T1 transition (> |a b|' 3) @ |my file.c|:3 |operator new|
         T1 end @ ||:0
         order |odd label| < e3",
    );
    assert_eq!(trace.sites[0].file.as_ref(), "my file.c");
    let text = printed(&trace);
    let lines = text.lines().skip_while(|line| !line.is_empty()).skip(1);
    for (line, event) in lines.zip(&trace.events) {
        let keyword = event.op.keyword();
        let assigns = keyword == "assume" && line.contains(" assign ");
        assert!(
            line.contains(&format!(" {keyword}")) || line.contains("try-") || assigns,
            "{line}"
        );
    }
    assert_round_trip(&trace);
}

#[test]
fn large_terms_that_are_used_twice_are_defined_once() {
    let mut body = String::from("symbolic\nthread T\nvar x\n");
    let mut previous = String::from("1");
    for index in 0..200 {
        body.push_str(&format!(
            "T read x\ndefine %s{index} := (+ {previous} (read T {}))\n",
            2 * index
        ));
        body.push_str(&format!("T write x := %s{index}\n"));
        previous = format!("%s{index}");
    }
    let trace = parse(&body);
    let text = printed(&trace);
    assert!(text.len() < 40_000, "{} bytes", text.len());
    assert!(text.contains("define %0 := "));
    assert_round_trip(&trace);
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let depth = 100_000;
    let body =
        format!("thread T\nvar x\nT assert (= 0 {}x{})\n", "(- ".repeat(depth), ")".repeat(depth));
    assert_round_trip(&parse(&body));
    assert!(refused(&format!("thread T\nT assert {}", "(".repeat(depth))).contains("never closed"));
}

#[test]
fn a_conjunction_of_conjunctions_cannot_fill_the_memory() {
    let mut body = String::from("thread T\nvar a : bool\ndefine %0 := a\n");
    for index in 1..30_000 {
        body.push_str(&format!(
            "var b{index} : bool\ndefine %{index} := (and %{} b{index})\n",
            index - 1
        ));
    }
    assert!(refused(&body).contains("too large"));
}

#[test]
fn faults_have_a_place_and_a_remedy() {
    let start = "thread T1\nvar x = 0, y : bv8\nmutex m\n";
    for (body, expected) in [
        ("T2 read x", "5:1: unknown thread `T2`; a line is a declaration or"),
        ("T1 read z", "5:9: unknown variable `z`; declare it before: `var z`"),
        ("T1 acquire n", "5:12: unknown object `n`; declare it before: `mutex n`"),
        ("T1 frobnicate x", "5:4: unknown operation `frobnicate`; operations are"),
        ("T1 write x = 1 := (+ r0 1)", "5:22: event 0 of the thread is not a read before"),
        ("T1 assert (+ x 1)", "5:11: expected bool, this is int"),
        ("T1 assert (< y 1)", "5:11: `<` cannot be applied to"),
        ("T1 assert (= x 1", "5:11: this parenthesis is never closed"),
        ("T1 read x = 1 2", "5:15: `2` is unexpected here"),
        ("T1 read", "5:8: expected a variable here"),
        ("T1 write x = 1.5", "5:14: `1.5` is not a value of 64 bits; write a number"),
        ("var z : bv65", "5:9: unknown sort `bv65`; write int, bool, real, bv1 to bv64"),
        ("order a < b", "5:7: unknown event `a`; name an event above by its label"),
        ("T1 assert (before e0 e9)", "5:22: there is no event e9"),
        ("T1 assert (forall ((i Int)) true)", "5:11: quantifiers are not handled"),
        ("var x\nT1 read x", "6:9: there are several variables called `x`; write `x$N`"),
        ("T1 read x @ bank.c", "5:13: not a source position; write `FILE:LINE`"),
        ("T1 a = write x", "5:8: only reads have a result to name"),
    ] {
        let message = refused(&format!("{start}{body}"));
        assert!(message.starts_with(expected), "{body}\n{message}");
    }
    assert!(read("").unwrap_err().to_string().starts_with("1:1: the text is empty"));
    assert!(read("foretell-trace 2").unwrap_err().to_string().contains("version `2` is not known"));
    assert!(read("T1 read x").unwrap_err().to_string().contains("first line is"));
}

#[test]
fn words_with_a_meaning_are_quoted() {
    for keyword in DECLARATIONS {
        assert!(word(keyword).starts_with('|'), "{keyword}");
    }
    assert_eq!(word("account.balance"), "account.balance");
    assert_eq!(word("0x55d0c8"), "0x55d0c8");
    assert_eq!(word("operator new"), "|operator new|");
    assert_eq!(word("r12"), "|r12|");
    assert_eq!(word("a|b\n"), "|a\\|b\\n|");
    assert_eq!(word(""), "||");
}
