//! Each property on small traces: one in which it can be violated, and the nearest one in which it
//! cannot.

use foretell_predict::{FindingKind, Options, Prediction, Status, predict};
use foretell_testing::families::{self, BankVersion};
use foretell_trace::format::text;

fn ask(kind: FindingKind, declarations: &str, events: &str) -> Prediction {
    let content = format!("foretell-trace 1\nsymbolic\nobserved\n{declarations}\n{events}\n");
    let trace = text::read(&content).unwrap_or_else(|error| panic!("{error} in\n{content}"));
    let options = Options { properties: vec![kind], ..Options::default() };
    let prediction = predict(&trace, &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(prediction.internal_errors, Vec::<String>::new());
    for finding in &prediction.findings {
        assert_eq!(finding.status, Status::Predicted, "{}", finding.detail);
    }
    prediction
}

fn details(kind: FindingKind, declarations: &str, events: &str) -> Vec<String> {
    ask(kind, declarations, events).findings.into_iter().map(|finding| finding.detail).collect()
}

fn found(kind: FindingKind, declarations: &str, events: &str) -> usize {
    details(kind, declarations, events).len()
}

const TWO_LOCKS: &str = "thread T1, T2\nmutex a, b, gate";

#[test]
fn crossed_locks_deadlock() {
    let crossed = "T1 acquire a\nT1 acquire b\nT1 release b\nT1 release a\n\
                   T2 acquire b\nT2 acquire a\nT2 release a\nT2 release b";
    let prediction = ask(FindingKind::Deadlock, TWO_LOCKS, crossed);
    assert_eq!(prediction.findings.len(), 1);
    let schedule = prediction.findings[0].schedule.as_ref().expect("predicted");
    assert_eq!(schedule.order.len(), 2, "one lock each");
    assert_eq!(schedule.next.len(), 2, "and both want the other");
}

#[test]
fn a_thread_that_never_ran_is_not_seen() {
    let ask = |events: &str| ask(FindingKind::Assertion, "thread main, worker\nvar r = 0", events);
    let read = "main v = read r = 0\nmain assert (= v 0) true";
    let prediction = ask(&format!("main fork worker\n{read}"));
    assert_eq!(prediction.unseen, ["a thread was created and never ran before the run ended"]);
    let prediction = ask(&format!("main fork worker\n{read}\nmain join worker"));
    assert_eq!(prediction.unseen, Vec::<String>::new(), "it had nothing to do");
}

#[test]
fn a_gate_lock_or_a_common_order_or_a_join_prevents_the_deadlock() {
    let gated = "T1 acquire gate\nT1 acquire a\nT1 acquire b\nT1 release b\nT1 release a\nT1 release gate\n\
                 T2 acquire gate\nT2 acquire b\nT2 acquire a\nT2 release a\nT2 release b\nT2 release gate";
    assert_eq!(found(FindingKind::Deadlock, TWO_LOCKS, gated), 0);
    let ordered = "T1 acquire a\nT1 acquire b\nT1 release b\nT1 release a\n\
                   T2 acquire a\nT2 acquire b\nT2 release b\nT2 release a";
    assert_eq!(found(FindingKind::Deadlock, TWO_LOCKS, ordered), 0);
    let forked = "T1 acquire a\nT1 acquire b\nT1 release b\nT1 release a\nT1 fork T2\nT2 begin\n\
                  T2 acquire b\nT2 acquire a\nT2 release a\nT2 release b";
    assert_eq!(found(FindingKind::Deadlock, TWO_LOCKS, forked), 0);
}

#[test]
fn data_can_prevent_a_deadlock_that_locks_allow() {
    let declarations = "thread T1, T2\nmutex a, b\nvar done = 0";
    let guarded = "T1 acquire a\nT1 acquire b\nT1 release b\nT1 release a\nT1 write done = 1\n\
                   T2 d = read done = 1\nT2 branch (= d 1) true\n\
                   T2 acquire b\nT2 acquire a\nT2 release a\nT2 release b";
    assert_eq!(found(FindingKind::Deadlock, declarations, guarded), 0);
    let unguarded = guarded.replace("T2 branch (= d 1) true\n", "");
    assert_eq!(found(FindingKind::Deadlock, declarations, &unguarded), 1);
}

const CONDITION: &str = "thread T1, T2\nmutex m\ncond c\nvar ready = 0";

#[test]
fn a_signal_before_the_wait_is_lost() {
    let blind = "T1 acquire m\nT1 wait-begin c m\nT2 acquire m\nT2 signal c\nT2 release m\n\
                 T1 wait-end c m\nT1 release m";
    let told = details(FindingKind::Deadlock, CONDITION, blind);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("lost wake-up: T1 waits for `c`"), "{told:?}");
}

#[test]
fn a_checked_flag_keeps_the_wake_up() {
    let checked = "T1 acquire m\nT1 r = read ready = 0\nT1 branch (= r 0) true\nT1 wait-begin c m\n\
                   T2 acquire m\nT2 write ready = 1\nT2 signal c\nT2 release m\n\
                   T1 wait-end c m\nT1 release m";
    assert_eq!(found(FindingKind::Deadlock, CONDITION, checked), 0);
}

#[test]
fn crossed_semaphores_get_stuck() {
    let declarations = "thread T1, T2\nsem a = 1\nsem b = 1";
    let crossed = "T1 sem-wait a\nT1 sem-wait b\nT1 sem-post b\nT1 sem-post a\n\
                   T2 sem-wait b\nT2 sem-wait a\nT2 sem-post a\nT2 sem-post b";
    assert!(found(FindingKind::Deadlock, declarations, crossed) > 0);
    let ordered = "T1 sem-wait a\nT1 sem-wait b\nT1 sem-post b\nT1 sem-post a\n\
                   T2 sem-wait a\nT2 sem-wait b\nT2 sem-post b\nT2 sem-post a";
    assert_eq!(found(FindingKind::Deadlock, declarations, ordered), 0);
}

#[test]
fn plain_conflicting_accesses_race_unless_ordered_or_atomic() {
    let declarations = "thread T1, T2\nvar x = 0\nmutex m";
    let race = |events: &str| found(FindingKind::Race, declarations, events);
    assert_eq!(race("T1 write x = 1\nT2 write x = 2"), 1);
    assert_eq!(race("T1 read x = 0\nT2 read x = 0"), 0);
    assert_eq!(race("T1 write.release x = 1\nT2 read.acquire x = 1"), 0);
    assert_eq!(race("T1 write.release x = 1\nT2 read x = 1"), 1);
    assert_eq!(race("T1 write x = 1\nT1 fork T2\nT2 begin\nT2 write x = 2"), 0);
    let locked = "T1 acquire m\nT1 write x = 1\nT1 release m\n\
                  T2 acquire m\nT2 write x = 2\nT2 release m";
    assert_eq!(race(locked), 0);
}

#[test]
fn a_flag_that_is_checked_prevents_the_race_on_what_it_guards() {
    let declarations = "thread T1, T2\nvar x = 0, flag = 0";
    let guarded = "T1 write x = 1\nT1 write.release flag = 1\n\
                   T2 f = read.acquire flag = 1\nT2 branch (= f 1) true\nT2 read x = 1";
    assert_eq!(found(FindingKind::Race, declarations, guarded), 0);
    let unguarded = guarded.replace("T2 branch (= f 1) true\n", "");
    assert_eq!(found(FindingKind::Race, declarations, &unguarded), 1);
}

#[test]
fn a_use_can_come_before_the_definition() {
    let declarations = "thread T1, T2\nvar config = 0, out = 0";
    let order = |events: &str| found(FindingKind::Order, declarations, events);
    assert_eq!(order("T1 write config = 7\nT2 c = read config = 7\nT2 write out = 7 := c"), 1);
    let forked = "T1 write config = 7\nT1 fork T2\nT2 begin\nT2 c = read config = 7";
    assert_eq!(order(forked), 0, "fork orders them");
    let looked = "T1 write config = 7\nT2 c = read config = 7\nT2 branch (> c 0) true";
    assert_eq!(order(looked), 0, "looking is not using");
}

const POINTER: &str = "thread T1, T2\n\
    var p : bv64 = (_ bv4096 64) at 0x100 size 8\n\
    var cell : bv32 = (_ bv5 32) at 0x1000 size 4";

#[test]
fn a_pointer_can_be_null_when_it_is_used() {
    let events = "T2 q = read p = 4096\nT2 read cell = 5 at q\nT1 write p = 0";
    let told = details(FindingKind::Crash, POINTER, events);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("T2 uses a null pointer"), "{told:?}");
    let checked = "T2 q = read p = 4096\nT2 branch (not (= q (_ bv0 64))) true\n\
                   T2 read cell = 5 at q\nT1 write p = 0";
    assert_eq!(found(FindingKind::Crash, POINTER, checked), 0, "tested and used is one value");
    let read_again = "T2 q = read p = 4096\nT2 branch (not (= q (_ bv0 64))) true\n\
                      T2 again = read p = 4096\nT2 read cell = 5 at again\nT1 write p = 0";
    assert_eq!(found(FindingKind::Crash, POINTER, read_again), 1, "another value than was tested");
}

#[test]
fn an_index_can_leave_its_block() {
    let declarations = "thread T1, T2\n\
        var i : bv64 = (_ bv0 64) at 0x100 size 8\n\
        var cell : bv32 at 0x1000 size 4";
    let events = "T2 alloc 0x1000 8\nT2 n = read i = 0\n\
                  T2 write cell = 1 at (bvadd (_ bv4096 64) n)\nT1 write i = 8";
    let told = details(FindingKind::Crash, declarations, events);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("leaves the bounds"), "{told:?}");
    let inside = events.replace("write i = 8", "write i = 4");
    assert_eq!(found(FindingKind::Crash, declarations, &inside), 0);
}

#[test]
fn a_block_can_be_freed_before_it_is_used() {
    let declarations = "thread T1, T2\nvar cell : bv32 = (_ bv0 32) at 0x1000 size 4";
    let events = "T1 alloc 0x1000 8\nT1 fork T2\nT2 begin\nT2 write cell = 1\nT1 free 0x1000";
    assert_eq!(found(FindingKind::Crash, declarations, events), 1);
    let joined = "T1 alloc 0x1000 8\nT1 fork T2\nT2 begin\nT2 write cell = 1\nT2 end\n\
                  T1 join T2\nT1 free 0x1000";
    assert_eq!(found(FindingKind::Crash, declarations, joined), 0);
}

#[test]
fn a_divisor_can_be_zero() {
    let declarations = "thread T1, T2\nvar d : bv32 = (_ bv2 32), out : bv32 = (_ bv0 32)";
    let events = "T2 n = read d = 2\nT2 write out = 4 := (bvudiv (_ bv8 32) n)\nT1 write d = 0";
    assert_eq!(found(FindingKind::Crash, declarations, events), 1);
    let never = events.replace("write d = 0", "write d = 1");
    assert_eq!(found(FindingKind::Crash, declarations, &never), 0);
}

#[test]
fn equal_writes_are_independent_but_a_lost_update_is_not() {
    let declarations = "thread T1, T2\nvar x = 0";
    let atomicity = |events: &str| found(FindingKind::Atomicity, declarations, events);
    let same = "T1 region r\nT1 write x = 5\nT1 write x = 5\nT1 region-end\nT2 write x = 5";
    assert_eq!(atomicity(same), 0, "x = 5 against x = 5");
    let other = same.replace("T2 write x = 5", "T2 write x = 6");
    assert_eq!(atomicity(&other), 1);
    let update = "T1 region r\nT1 a = read x = 0\nT1 write x = 1 := (+ a 1)\nT1 region-end\n\
                  T2 b = read x = 1\nT2 write x = 2 := (+ b 1)";
    assert_eq!(atomicity(update), 1, "both write 1, and one increment is lost");
}

#[test]
fn other_elements_of_an_array_are_independent() {
    let declarations =
        "thread T1, T2\nvar a : (Array int int) = (array (Array int int) 0)\nvar i = 1";
    let events = |index: &str| {
        format!(
            "T1 region r\nT1 assign a := (store a 0 1)\nT1 assign a := (store a 0 2)\n\
             T1 region-end\nT2 assign a := (store a {index} 7)"
        )
    };
    assert_eq!(found(FindingKind::Atomicity, declarations, &events("0")), 1);
    assert_eq!(found(FindingKind::Atomicity, declarations, &events("1")), 0);
    assert_eq!(found(FindingKind::Atomicity, declarations, &events("i")), 0, "i is 1");
}

/// Two threads that book under a flag; `check` is what they do with the flag before they set it.
fn booking(check: &str) -> String {
    let book = |thread: &str, old: u32| {
        format!(
            "{thread} acquire m\n{thread} f = read busy = 0\n{check}{thread} write busy = 1\n\
             {thread} release m\n{thread} region r\n{thread} v = read x = {old}\n\
             {thread} write x = {} := (+ v 1)\n{thread} region-end\n\
             {thread} acquire m\n{thread} write busy = 0\n{thread} release m\n",
            old + 1
        )
        .replace("THREAD", thread)
    };
    book("T1", 0) + &book("T2", 1)
}

#[test]
fn a_flag_is_a_lock_only_if_it_is_checked() {
    let declarations = "thread T1, T2\nvar x = 0, busy = 0\nmutex m";
    let atomicity = |check: &str| found(FindingKind::Atomicity, declarations, &booking(check));
    assert_eq!(atomicity("THREAD branch (= f 0) true\n"), 0);
    assert_eq!(atomicity(""), 2, "each can interrupt the other");
    assert_eq!(atomicity("THREAD branch (< f 2) true\n"), 2, "checked for something else");
}

#[test]
fn what_a_flag_excludes_needs_no_formula() {
    for threads in [2, 8, 32] {
        let trace = families::bank(BankVersion::NoneViolated, threads);
        let options = Options { properties: vec![FindingKind::Atomicity], ..Options::default() };
        let prediction = predict(&trace, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(prediction.findings.len(), 0);
        assert_eq!(prediction.statistics.after_locksets, 4 * threads as usize, "locks do not tell");
        assert!(prediction.properties[0].holds_in_all_interleavings);
        assert_eq!(prediction.statistics.solver.checks, 0, "{threads} threads");
    }
}

#[test]
fn many_threads_that_do_the_same_are_one_program() {
    let threads: Vec<String> = (0..200).map(|thread| format!("T{thread}")).collect();
    let events: String = (0..200)
        .map(|thread| format!("T{thread} read x = {thread}\nT{thread} write x = {}\n", thread + 1))
        .collect();
    let declarations = format!("thread {}\nvar x = 0", threads.join(", "));
    let prediction = ask(FindingKind::Race, &declarations, &events);
    assert_eq!(prediction.properties[0].questions, 2, "read and write, write and write");
    assert_eq!(prediction.findings.len(), 2);
}

/// The first thread takes the step again and again, once of them while the second one runs.
fn among_many(often: usize, step: &str, worker: &str) -> String {
    let many = format!("{step}\n").repeat(often);
    format!("{many}T1 fork T2\nT2 begin\n{step}\n{worker}\nT2 end\nT1 join T2\n{many}")
}

#[test]
fn one_of_many_accesses_that_a_join_puts_in_an_order_may_race() {
    let declarations = "thread T1, T2\nvar x = 0";
    let racing = among_many(2_501, "T1 write x = 1 @ a.c:1", "T2 read x = 1 @ b.c:2");
    assert_eq!(found(FindingKind::Race, declarations, &racing), 1);
    let writes = "T1 write x = 1 @ a.c:1\n".repeat(5_001);
    let ordered = format!("{writes}T1 fork T2\nT2 begin\nT2 read x = 1 @ b.c:2");
    assert_eq!(found(FindingKind::Race, declarations, &ordered), 0);
}

#[test]
fn one_of_many_blocks_that_a_join_puts_in_an_order_may_be_torn() {
    let declarations = "thread T1, T2\nvar x = 0";
    let block = "T1 region b\nT1 read x @ a.c:1\nT1 write x = 1 @ a.c:2\nT1 region-end";
    let torn = among_many(1_201, block, "T2 write x = 2 @ b.c:2");
    assert!(found(FindingKind::Atomicity, declarations, &torn) > 0);
}

#[test]
fn one_of_many_nested_locks_that_a_join_puts_in_an_order_may_deadlock() {
    let nested =
        "T1 acquire a @ a.c:1\nT1 acquire b @ a.c:2\nT1 release b @ a.c:3\nT1 release a @ a.c:4";
    let crossed =
        "T2 acquire b @ b.c:1\nT2 acquire a @ b.c:2\nT2 release a @ b.c:3\nT2 release b @ b.c:4";
    for often in [51, 1_501] {
        let prediction = ask(FindingKind::Deadlock, TWO_LOCKS, &among_many(often, nested, crossed));
        assert_eq!(prediction.findings.len(), 1, "{:?}", prediction.unseen);
    }
}
