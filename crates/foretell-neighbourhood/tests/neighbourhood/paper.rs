//! The worked examples of paper 001 with the paper's answers.

use foretell_neighbourhood::{BugKind, Verdict, Verification};

use crate::{ctrc, explained, names, primitives};

/// Fig. 1: a withdrawal and a deposit.
const BANK: &str = "
global: x withdrawal deposit balance deposited withdrawn
pre: (and (= x balance) (= deposited 0) (= withdrawn 0) (> withdrawal 0) (> deposit 0))
thread withdraw { temp }:
W1: (= temp. balance)
W2: (= balance. (- temp withdrawal))
W3: (= withdrawn. 1)
thread deposit { temp }:
D1: (= temp. balance)
D2: (= balance. (+ temp deposit))
D3: (= deposited. 1)
thread checkresult:
C1: assume(and (= deposited 1) (= withdrawn 1))
C2: assert(= balance (- (+ x deposit) withdrawal))
";

#[test]
fn example_3_2_and_4_1_lost_update_of_a_balance() {
    let trace = ctrc(BANK);
    let explanation = explained(&trace);
    assert_eq!(explanation.verdict, Verdict::Depends);
    assert_eq!(
        explanation.bad.to_text(|event| trace.event_name(event)),
        "hb(W1,D2) ∧ hb(D1,W2)",
        "the over-approximation that Fig. 1 prints"
    );
    assert_eq!(explanation.good.to_text(|event| trace.event_name(event)), "hb(W2,D1) ∨ hb(D2,W1)");
    assert_eq!(primitives(&trace, &explanation), ["Lk(W1:W2, D1:D2)"]);
    assert_eq!(explanation.synthesis.unwrap().verification, Verification::Verified);
    let [summary] = explanation.summaries.as_slice() else { panic!("one bug") };
    assert_eq!(summary.kind, BugKind::DataRace);
    assert_eq!(names(&trace, &summary.first), ["W1", "W2"]);
    assert_eq!(names(&trace, &summary.second), ["D1", "D2"]);
}

/// Fig. 3(a): values are normalised by two threads.
const NORMALIZATION: &str = "
global: value1:real value2:real value3:real value4:real sum:real flag1 flag2
pre: (and (= value1 1) (= value2 2) (= value3 4) (= value4 8) (= sum 0) (= flag1 0) (= flag2 0))
thread firsthalf { temp:real localsum:real }:
F0: (= localsum. 0)
F1: (= localsum. (+ localsum value1))
F2: (= localsum. (+ localsum value2))
F3: (= temp. sum)
F4: (= sum. (+ temp localsum))
F5: (= value1. (/ value1 sum))
F6: (= value2. (/ value2 sum))
F7: (= flag1. 1)
thread secondhalf { temp:real localsum:real }:
S0: (= localsum. 0)
S1: (= localsum. (+ localsum value3))
S2: (= localsum. (+ localsum value4))
S3: (= temp. sum)
S4: (= sum. (+ temp localsum))
S5: (= value3. (/ value3 sum))
S6: (= value4. (/ value4 sum))
S7: (= flag2. 1)
thread checkresult:
C1: assume(and (= flag1 1) (= flag2 1))
C2: assert(= (+ value1 value2 value3 value4) 1)
";

#[test]
fn example_3_3_a_lock_and_a_barrier() {
    let trace = ctrc(NORMALIZATION);
    let explanation = explained(&trace);
    assert_eq!(primitives(&trace, &explanation), ["Lk(F3:F4, S3:S4)", "Barrier(F5, S5)"]);
    assert_eq!(explanation.synthesis.unwrap().verification, Verification::Verified);
}

/// Fig. 3(b): interrupt handlers.
const INTERRUPTS: &str = "
global: intrmask initdone workqueueitems interrupts
pre: (and (= intrmask 0) (= initdone 0) (= workqueueitems 0) (= interrupts 0))
thread interruptmaskset:
I1: (= intrmask. 1)
I2: (= initdone. 1)
thread first_irqhandler { temp }:
F1: assume(= intrmask 1)
F2: assert(= initdone 1)
F3: (= temp. workqueueitems)
F4: (= workqueueitems. (+ temp 1))
F5: (= interrupts. (+ interrupts 1))
thread second_irqhandler { temp }:
S1: assume(= intrmask 1)
S2: assert(= initdone 1)
S3: (= temp. workqueueitems)
S4: (= workqueueitems. (+ temp 1))
S5: (= interrupts. (+ interrupts 1))
thread checkworkqueue:
C1: assert(>= workqueueitems interrupts)
";

#[test]
fn example_3_4_two_waits_and_a_lock() {
    let trace = ctrc(INTERRUPTS);
    let explanation = explained(&trace);
    assert_eq!(
        primitives(&trace, &explanation),
        ["Lk(F3:F4, S3:S4)", "WaitNotify(F2, I2)", "WaitNotify(S2, I2)"]
    );
    assert_eq!(explanation.synthesis.unwrap().verification, Verification::Verified);
}

#[test]
fn example_4_2_use_before_definition() {
    let trace = ctrc(
        "global: registered hw\n\
         pre: (and (= registered 0) (= hw 0))\n\
         thread pci:\nP1: (= registered. 1)\nP2: (= hw. 7)\n\
         thread network:\nN1: assume(= registered 1)\nN2: assert(> hw 0)\n",
    );
    let explanation = explained(&trace);
    assert_eq!(explanation.bad.to_text(|event| trace.event_name(event)), "hb(N2,P2)");
    let [summary] = explanation.summaries.as_slice() else { panic!("one bug") };
    assert_eq!(summary.kind, BugKind::DefineUse);
    assert_eq!(names(&trace, &summary.first), ["N2"]);
    assert_eq!(names(&trace, &summary.second), ["P2"]);
}

#[test]
fn example_4_3_two_stage_access() {
    let trace = ctrc(
        "global: pagetable:(Array Int Int) memory:(Array Int Int)\n\
         pre: (and (= (select pagetable 1) 5) (= (select memory 5) 10) (= (select memory 20) 0))\n\
         thread pagetableaccess { loc data page }:\n\
         P1: (= page. 1)\nP2: (= loc. (select pagetable page))\n\
         P3: (= data. (select memory loc))\nP4: assert(= data 10)\n\
         thread datamove { page newloc loc }:\n\
         D1: (and (= page. 1) (= newloc. 20))\nD2: (= loc. (select pagetable page))\n\
         D3: (= pagetable. (store pagetable page newloc))\n\
         D4: (= memory. (store memory newloc (select memory loc)))\n",
    );
    let explanation = explained(&trace);
    assert_eq!(explanation.bad.to_text(|event| trace.event_name(event)), "hb(P3,D4) ∧ hb(D3,P2)");
    let [summary] = explanation.summaries.as_slice() else { panic!("one bug") };
    assert_eq!(summary.kind, BugKind::TwoStageAccess);
    assert_eq!(names(&trace, &summary.first), ["D3", "D4"]);
    assert_eq!(names(&trace, &summary.second), ["P2", "P3"]);
}

#[test]
fn the_text_names_threads_and_source_lines() {
    let trace = ctrc(
        "global: file open\npre: (and (= file 1) (= open 0))\n\
         thread loader { f }:\nl1 [14]: (= f. file)\nl2 [16]: (= open. f)\nl3 [18]: assert(= file f)\n\
         thread closer:\nc1 [9]: (= file. 0)\n",
    );
    let explanation = explained(&trace);
    let text = foretell_neighbourhood::text::render(&trace, &explanation);
    assert!(
        text.contains(
            "line 9 of thread `closer` must not come between lines 14 and 18 of `loader`"
        ),
        "{text}"
    );
    assert!(
        text.contains("hold one mutex over lines 14-18 of `loader` and line 9 of `closer`"),
        "{text}"
    );
    let json = foretell_neighbourhood::json::to_json(&trace, &explanation);
    assert_eq!(json["verdict"], "depends");
    assert_eq!(json["fix"]["verified"], true);
    let picture = foretell_neighbourhood::picture::svg(&trace, &explanation);
    assert!(picture.starts_with("<svg ") && picture.contains("l1[14] before c1[9]"), "{picture}");
}
