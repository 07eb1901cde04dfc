//! Each fault, in a trace that has nothing else wrong.

use super::*;
use crate::format::text;

fn faults(body: &str) -> Vec<String> {
    let source = format!(
        "foretell-trace 1
         symbolic
         observed
         thread main, T1, T2
         var x = 0
         var w : bv16 = 0 at 0x100 size 2
         var low : bv8 at 0x100 size 1
         mutex m
         recursive r
         rwlock l
         cond c
         sem s = 1
         barrier b 2
         {}",
        body.trim()
    );
    let trace = text::read(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    validate(&trace).iter().map(Fault::to_string).collect()
}

fn assert_fine(body: &str) {
    assert_eq!(faults(body), [""; 0], "{body}");
}

fn assert_fault(body: &str, expected: &str) {
    assert_eq!(faults(body), [expected], "{body}");
}

#[test]
fn a_run_that_can_be_has_no_faults() {
    assert_fine(
        "main begin
         main fork T1
         T1 begin
         T1 call f
         T1 region R
         T1 acquire m
         T1 old = read x = 0
         T1 write x = 1 := (+ old 1)
         T1 branch (= old 0) true
         T1 wait-begin c m
         main acquire m
         main signal c
         main release m
         T1 wait-end c m
         T1 release m
         T1 region-end
         T1 return
         T1 acquire r
         T1 acquire r
         T1 release r
         T1 release r
         T1 acquire.shared l
         main acquire.shared l
         main release.shared l
         T1 release.shared l
         T1 sem-wait s
         main sem-post s
         main barrier-arrive b
         T1 barrier-arrive b
         T1 barrier-leave b
         T1 barrier-arrive b
         main barrier-leave b
         main write w = 0x1234
         main byte = read low = 0x34
         main count = rmw x = 1 -> 2 := (+ count 1)
         T1 end
         main join T1
         main assert (= byte #x34) true
         main end",
    );
}

#[test]
fn threads_begin_act_and_end_in_order() {
    let begun = "main fork T1\nT1 begin\n";
    assert_fault(
        &format!("{begun}T1 end\nT1 read x @ a.c:7"),
        "event 3 (T1#2, a.c:7): comes after the end of its thread",
    );
    assert_fault(&format!("{begun}T1 begin"), "event 2 (T1#1): begins a thread that has begun");
    assert_fault("T1 begin\nmain fork T1", "event 1 (main#0): forks T1, which has begun already");
    assert_fault(
        "main fork T1\nmain fork T1",
        "event 1 (main#1): forks T1, which was forked before",
    );
    assert_fault(
        &format!("{begun}main join T1\nlate: T1 end"),
        "event late (T1#1): comes after main joined its thread",
    );
    assert_fault("T1 join T1", "event 0 (T1#0): joins itself");
}

#[test]
fn locks_have_one_holder_who_gives_them_back() {
    assert_fault("T1 acquire m\nT2 acquire m", "event 1 (T2#0): acquires m, which T1 holds");
    assert_fault(
        "T1 acquire m\nT1 acquire m",
        "event 1 (T1#1): acquires m, which it holds already",
    );
    assert_fault("T1 release m", "event 0 (T1#0): releases m, which it does not hold");
    assert_fault("T1 acquire.shared l\nT2 acquire l", "event 1 (T2#0): acquires l, which T1 holds");
    assert_fault("T1 acquire.shared m", "event 0 (T1#0): uses m as a reader, but it is a mutex");
    assert_fault("T1 acquire c", "event 0 (T1#0): uses c as a lock, but it is not one");
}

#[test]
fn waits_need_the_mutex() {
    assert_fault("T1 wait-begin c m", "event 0 (T1#0): waits on c without holding m");
    assert_fault("T1 wait-end c m", "event 0 (T1#0): ends a wait that has not begun");
    assert_fault(
        "T1 acquire m\nT1 wait-begin c m\nT1 read x",
        "event 2 (T1#2): acts while it waits on c",
    );
    assert_fault(
        "T1 acquire m\nT1 wait-begin c m\nT2 acquire m\nT1 wait-end c m",
        "event 3 (T1#2): wakes up with m, which T2 holds",
    );
    assert_fault("T1 signal m", "event 0 (T1#0): uses m as a condition, but it is not one");
}

#[test]
fn semaphores_and_barriers_hold_threads_back() {
    assert_fault("T1 sem-wait s\nT2 sem-wait s", "event 1 (T2#0): passes s, which is at zero");
    assert_fault(
        "T1 barrier-arrive b\nT1 barrier-leave b",
        "event 1 (T1#1): leaves b while 1 parties are missing",
    );
    assert_fault("T1 barrier-leave b", "event 0 (T1#0): leaves b without having arrived at it");
}

#[test]
fn calls_and_regions_are_nested() {
    assert_fault("T1 return", "event 0 (T1#0): returns, but no call is open");
    assert_fault("T1 region-end", "event 0 (T1#0): ends a region, but none is open");
}

#[test]
fn reads_return_what_was_written() {
    assert_fault(
        "T1 read x = 5",
        "event 0 (T1#0): reads 5 from x, but it held something else before",
    );
    assert_fault(
        "w1: T1 write x = 1\nT2 read x = 2\nT2 read x = 2",
        "event 1 (T2#0): reads 2 from x, but w1 wrote something else",
    );
    assert_fault(
        "T1 write w = 0x1234\nT1 read low = 0x12",
        "event 1 (T1#1): reads 18 from low, but T1#0 wrote something else",
    );
    assert_fault(
        "T1 rmw x = 1 -> 2",
        "event 0 (T1#0): reads 1 from x, but it held something else before",
    );
    assert_fine("gap \"libc was not seen\"\nT1 read x = 5");
}

#[test]
fn terms_speak_of_earlier_reads_and_give_the_recorded_values() {
    assert_fault(
        "T1 read x = 0\nT1 write x = 2 := (+ r0 1)",
        "event 1 (T1#1): writes 2 to x, but its term is 1",
    );
    assert_fault(
        "T1 read x = 0\nT1 branch (> r0 0) true",
        "event 1 (T1#1): was true, but its condition is false",
    );
    assert_fault(
        "T1 read x\nT2 branch (> (read T1 0) 0)",
        "event 1 (T2#0): has a term over what another thread read",
    );
    assert_fault(
        "T1 branch (> (as r1 int) 0)\nT1 read x",
        "event 0 (T1#0): has a term over what it has not read yet",
    );
    assert_fault(
        "T1 begin\nT1 branch (> (as r0 int) 0)",
        "event 1 (T1#1): has a term over what T1#0 read, which is no read of that sort",
    );
    assert_fault(
        "T1 read x\nT1 write w := (+ r0 1)",
        "event 1 (T1#1): gives w of sort (_ BitVec 16) a term of sort Int",
    );
    assert_fault(
        "T1 assign x := (+ x' 1)",
        "event 0 (T1#0): has a term over values after the step, but is no transition",
    );
    assert_fault(
        "T1 read w = 0 at #x0000000000000104",
        "event 0 (T1#0): accesses w at 0x100, but its address is 0x104",
    );
    assert_fault(
        "local a of T1\nT2 assume (> a$3 0)",
        "event 0 (T2#0): has a term over another thread's local",
    );
}

#[test]
fn orders_and_sections_agree_with_what_was_observed() {
    assert_fault(
        "a: T1 read x\nb: T2 read x\norder b < a",
        "event b (T2#0): must come before a but was observed after it",
    );
    assert_fault(
        "a: T1 read x\nb: T2 read x\nc1: T1 read x\natomic a c1",
        "event c1 (T1#1): ends the atomic section from a, which was interrupted",
    );
}

#[test]
fn dangling_references_are_faults_not_panics() {
    let mut trace = text::read("foretell-trace 1\nthread T\nvar x\nT read x\nT write x").unwrap();
    trace.events[0].thread = ThreadId(7);
    if let Op::Write(access) = &mut trace.events[1].op {
        access.variable = VariableId(9);
    }
    trace.orders.push((EventId(5), EventId(6)));
    trace.labels.insert(EventId(9), "l".into());
    let found: Vec<String> = validate(&trace).iter().map(Fault::to_string).collect();
    assert_eq!(
        found,
        [
            "label l: is the label of an event that does not exist",
            "order: is between events that do not exist",
            "event 0 (?#0): refers to a thread that does not exist",
            "event 1 (T#1): refers to a variable that does not exist",
        ]
    );
}

#[test]
fn without_an_observed_order_only_threads_are_checked() {
    let source = "foretell-trace 1\nthread T1, T2\nmutex m\nvar x = 0
         T1 acquire m\nT2 acquire m\nT2 read x = 7\nT1 release m\nT2 release m\nT2 release m";
    let found = validate(&text::read(source).unwrap());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].to_string(), "event 5 (T2#3): releases m, which it does not hold");
}
