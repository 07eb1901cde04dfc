//! Findings of the predictor, each kind: why, in source terms, and a fix that is verified.

use foretell_neighbourhood::{FindingExplanation, Verification, explain_finding, finding_options};
use foretell_predict::{FindingKind, Options, Status, predict};
use foretell_trace::Trace;

fn text(text: &str) -> Trace {
    foretell_trace::format::text::read(text).expect("valid text")
}

/// The first prediction of the kind, explained.
fn explained(trace: &Trace, kind: FindingKind) -> FindingExplanation {
    let mut options = Options { properties: vec![kind], ..Options::default() };
    options.window.whole = 200;
    let prediction = predict(trace, &options).expect("a trace with a model");
    let finding = prediction.findings.iter().find(|finding| finding.status == Status::Predicted);
    explain_finding(trace, finding.expect("a finding"), &finding_options()).expect("a model")
}

fn is_verified(found: &FindingExplanation) -> bool {
    let synthesis = found.explanation.synthesis.as_ref().expect("a fix");
    synthesis.verification == Verification::Verified
}

/// A deposit reads under a lock, lets go, and writes under the lock, each in a function of its own.
const BANK: &str = r#"foretell-trace 1
symbolic
observed
thread main path 0
thread |0| path 0.0
thread |1| path 0.1
var balance : bv32 = 100
mutex lock

main begin
main fork |0| @ bank.c:41 main
main fork |1| @ bank.c:42 main
|0| begin
|0| call alice @ bank.c:29 alice
|0| call deposit @ bank.c:24 deposit
|0| call read_balance @ bank.c:11 read_balance
|0| acquire lock @ bank.c:12 read_balance
|0| read balance = 100 @ bank.c:13 read_balance
|0| release lock @ bank.c:14 read_balance
|0| return
|0| call write_balance @ bank.c:18 write_balance
|0| acquire lock @ bank.c:19 write_balance
|0| write balance = 110 := (bvadd r5 #x0000000a) @ bank.c:20 write_balance
|0| release lock @ bank.c:21 write_balance
|0| return
|0| return
|0| return
|0| end
|1| begin
|1| call bob @ bank.c:34 bob
|1| call deposit @ bank.c:24 deposit
|1| call read_balance @ bank.c:11 read_balance
|1| acquire lock @ bank.c:12 read_balance
|1| read balance = 110 @ bank.c:13 read_balance
|1| release lock @ bank.c:14 read_balance
|1| return
|1| call write_balance @ bank.c:18 write_balance
|1| acquire lock @ bank.c:19 write_balance
|1| write balance = 130 := (bvadd r5 #x00000014) @ bank.c:20 write_balance
|1| release lock @ bank.c:21 write_balance
|1| return
|1| return
|1| return
|1| end
main join |0| @ bank.c:43 main
main join |1| @ bank.c:44 main
main read balance = 130 @ bank.c:46 main
main assert (= r5 #x00000082) true @ bank.c:46 main
"#;

#[test]
fn a_torn_block_gets_one_lock_around_its_calls_not_inside_the_programs_lock() {
    let found = explained(&text(BANK), FindingKind::Atomicity);
    assert_eq!(
        found.sentence(),
        "atomicity violation on `balance`: line 20 of thread `bob` must not come between lines 13 \
         and 20 of `alice`; hold one mutex in `deposit` from its call of `read_balance` to its \
         call of `write_balance`, in `alice` and `bob`"
    );
    assert!(is_verified(&found));
}

#[test]
fn an_assertion_gets_the_same_lock() {
    let found = explained(&text(BANK), FindingKind::Assertion);
    assert!(
        found.sentence().contains("hold one mutex in `deposit` from its call"),
        "{}",
        found.sentence()
    );
    assert!(is_verified(&found));
}

/// A trace of two threads from declarations and events.
fn trace(declarations: &str, events: &str) -> Trace {
    text(&format!("foretell-trace 1\nsymbolic\nobserved\n{declarations}\n{events}\n"))
}

#[test]
fn a_race_gets_one_lock_over_both_accesses() {
    let found = explained(
        &trace(
            "thread T1, T2\nvar x = 0",
            "T1 write x = 1 @ a.c:7 one\nT2 write x = 2 @ a.c:17 two",
        ),
        FindingKind::Race,
    );
    assert_eq!(
        found.sentence(),
        "data race on `x`: line 7 of thread `T1` and line 17 of `T2` can run at the same time; \
         hold one mutex over line 7 of `T1` and line 17 of `T2`"
    );
    assert!(is_verified(&found));
}

const CROSSED: &str = "T1 acquire a @ a.c:1 one\nT1 acquire b @ a.c:2 one\nT1 release b @ a.c:3 one\n\
                       T1 release a @ a.c:4 one\nT2 acquire b @ a.c:11 two\nT2 acquire a @ a.c:12 two\n\
                       T2 release a @ a.c:13 two\nT2 release b @ a.c:14 two";

#[test]
fn crossed_locks_are_one_conjunction_and_get_one_lock_around() {
    let trace = trace("thread T1, T2\nmutex a, b", CROSSED);
    let found = explained(&trace, FindingKind::Deadlock);
    assert_eq!(
        found.sentence(),
        "deadlock: line 2 of thread `T1` waits for `b`, line 12 of thread `T2` waits for `a`, each \
         while it holds what another waits for; take `b` and `a` in one order everywhere; hold one \
         mutex over lines 1-2 of `T1` and lines 11-12 of `T2`"
    );
    assert!(is_verified(&found));
    let bad = found.explanation.bad.to_text(|event| trace.event_name(event));
    assert_eq!(bad, "hb(T1#0,T2#1) ∧ hb(T2#0,T1#1)");
}

#[test]
fn a_lost_wake_up_is_told_as_such() {
    let trace = trace(
        "thread T1, T2\nmutex m\ncond c",
        "T1 acquire m @ a.c:1 one\nT1 wait-begin c m @ a.c:2 one\nT2 acquire m @ a.c:11 two\n\
         T2 signal c @ a.c:12 two\nT2 release m @ a.c:13 two\nT1 wait-end c m @ a.c:2 one\n\
         T1 release m @ a.c:3 one",
    );
    let found = explained(&trace, FindingKind::Deadlock);
    assert!(
        found.sentence().starts_with("line 2 of thread `T1` waits for `c`"),
        "{}",
        found.sentence()
    );
    assert!(found.explanation.synthesis.is_none(), "no lock and no order repairs it");
}

#[test]
fn a_use_before_the_definition_gets_a_wait() {
    let found = explained(
        &trace(
            "thread T1, T2\nvar config = 0, out = 0",
            "T1 write config = 7 @ a.c:5 init\nT2 c = read config = 7 @ a.c:15 use\n\
             T2 write out = 7 := c",
        ),
        FindingKind::Order,
    );
    assert_eq!(
        found.sentence(),
        "use before definition on `config`: line 15 of thread `T2` uses `config` before line 5 of \
         `T1` defines it; make line 15 of `T2` wait until line 5 of `T1` has run (wait-notify)"
    );
    assert!(is_verified(&found));
}

#[test]
fn a_use_after_the_free_gets_a_wait() {
    let found = explained(
        &trace(
            "thread T1, T2\nvar cell = 0 at 0x1000 size 4",
            "T1 alloc 0x1000 8 @ a.c:1 main\nT1 fork T2 @ a.c:2 main\nT2 begin\n\
             T2 write cell = 1 @ a.c:12 worker\nT1 free 0x1000 @ a.c:3 main",
        ),
        FindingKind::Crash,
    );
    assert!(
        found
            .sentence()
            .ends_with("make line 3 of `T1` wait until line 12 of `T2` has run (wait-notify)"),
        "{}",
        found.sentence()
    );
    assert!(is_verified(&found));
}

#[test]
fn a_null_pointer_names_the_write_that_makes_it_null() {
    let found = explained(
        &trace(
            "thread T1, T2\nvar p : bv64 = (_ bv4096 64) at 0x100 size 8\n\
             var cell : bv32 = (_ bv5 32) at 0x1000 size 4",
            "T2 q = read p = 4096 @ a.c:12 use\nT2 branch (not (= q (_ bv0 64))) true @ a.c:12 use\n\
             T2 again = read p = 4096 @ a.c:13 use\nT2 read cell = 5 at again @ a.c:13 use\n\
             T1 write p = 0 @ a.c:3 close",
        ),
        FindingKind::Crash,
    );
    assert_eq!(
        found.sentence(),
        "atomicity violation on `p`: line 3 of thread `T1` must not come between lines 12 and 13 \
         of `T2`; hold one mutex over line 3 of `T1` and lines 12-13 of `T2`"
    );
    assert!(is_verified(&found));
}

/// Two threads that add to a counter a thousand times each: the slice and the window make the
/// explanation as cheap as for one round.
#[test]
fn a_long_loop_is_explained_by_what_lies_around_the_finding() {
    use std::fmt::Write;
    let mut events = String::new();
    for round in 0..1000 {
        for thread in ["T1", "T2"] {
            let (before, index) = (2 * round + u32::from(thread == "T2"), 2 * round);
            writeln!(events, "{thread} read x = {before} @ a.c:5 add").unwrap();
            writeln!(events, "{thread} write x = {} := (+ r{index} 1) @ a.c:6 add", before + 1)
                .unwrap();
        }
    }
    let found = explained(&trace("thread T1, T2\nvar x = 0", &events), FindingKind::Atomicity);
    assert!(
        found.sentence().ends_with("hold one mutex over lines 5-6 of `T1` and `T2`"),
        "{}",
        found.sentence()
    );
    assert!(is_verified(&found));
    assert!(found.explanation.statistics.events < 100, "only what matters was looked at");
}
