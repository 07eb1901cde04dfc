//! Reports for tests: a real prediction from a small trace, filled with what forced runs add.
#![allow(dead_code, reason = "each test uses a part")]

pub mod schema;

use std::collections::BTreeMap;

use foretell_report::Report;
use foretell_report::report::{
    BlockedThread, Edge, Effect, EndKind, EventName, Explanation, Fix, ForcedRun, Formula, Place,
    Status,
};
use foretell_trace::format::text;

/// Two deposits, each under the lock for the read and again for the write.
pub const BANK: &str = include_str!("../../../../examples/traces/bank.ft");

/// What is predicted from a text trace.
pub fn predicted(trace: &str) -> Report {
    let trace = text::read(trace).expect("the trace is well-formed");
    let prediction =
        foretell_predict::predict(&trace, &foretell_predict::Options::default()).unwrap();
    let paths =
        prediction.findings.iter().filter(|finding| finding.schedule.is_some()).map(|finding| {
            (finding.id.clone(), format!("schedules/{}.schedule", finding.id).into())
        });
    let paths: BTreeMap<_, _> = paths.collect();
    let mut report = Report::from_prediction(&trace, "bank.ft", &prediction, &paths);
    report.statistics.candidate_seconds = 0.25;
    report.statistics.solve_seconds = 0.5;
    report
}

/// As after `foretell test`: the first finding is confirmed, explained and repaired.
pub fn tested(trace: &str) -> Report {
    let mut report = predicted(trace);
    let source = [
        (8, "static int balance = 100;"),
        (9, ""),
        (10, "static void deposit(int amount) {"),
        (11, "  pthread_mutex_lock(&m);"),
        (12, "  int seen = balance;"),
        (13, "  pthread_mutex_unlock(&m);"),
        (14, ""),
        (15, "  pthread_mutex_lock(&m);"),
        (16, "  balance = seen + amount;"),
        (17, "  pthread_mutex_unlock(&m);"),
        (18, "}"),
        (33, "  pthread_join(second, NULL);"),
        (34, "  assert(balance == 130);"),
    ];
    let lines = source.into_iter().map(|(line, text)| (line, text.to_owned())).collect();
    report.sources.insert("bank.c".into(), lines);
    foretell_report::fingerprint::assign(&mut report);
    let name = |name: &str, thread: &str, line: u32| EventName {
        name: name.into(),
        thread: thread.into(),
        event: None,
        file: Some("bank.c".into()),
        line: Some(line),
    };
    let edge = Edge { before: name("bob#2", "bob", 12), after: name("alice#5", "alice", 16) };
    let second = Edge { before: name("alice#2", "alice", 12), after: name("bob#5", "bob", 16) };
    let finding = &mut report.findings[0];
    finding.status = Status::Confirmed;
    finding.effect = Some(Effect::Assertion);
    finding.forced = Some(ForcedRun {
        ended: "signal 6 (SIGABRT)".into(),
        end: Some(EndKind::Signal),
        blocked: vec![BlockedThread {
            thread: "alice".into(),
            event: 4,
            waits_for: "mutex".into(),
            name: Some("m".into()),
            held_by: Some("bob".into()),
        }],
        ended_before_branch: false,
        runs: Some(3),
        runs_before: Some(1),
        first_differing_branch: Some(Place {
            file: Some("bank.c".into()),
            line: Some(34),
            function: Some("main".into()),
            text: Some("the assertion was true".into()),
        }),
        output_difference: Some("-balance: 130\n+balance: 120\n".into()),
        stderr: Some("bank: bank.c:34: Assertion `balance == 130' failed.\n".into()),
    });
    finding.explanation = Some(Explanation {
        text: "the other deposit comes between the read and the write".into(),
        formula: Some(Formula {
            text: "hb(bob#2,alice#5) ∧ hb(alice#2,bob#5)".into(),
            clauses: vec![vec![edge.clone(), second]],
        }),
        edge: Some(edge),
    });
    finding.fix = Some(Fix {
        text: "hold `m` over lines 12-16".into(),
        diff: Some(
            "--- bank.c\n+++ bank.c\n@@ -11,7 +11,4 @@\n   pthread_mutex_lock(&m);\n   int seen = \
             balance;\n-  pthread_mutex_unlock(&m);\n-\n-  pthread_mutex_lock(&m);\n   balance = \
             seen + amount;\n   pthread_mutex_unlock(&m);\n"
                .into(),
        ),
        verified: true,
        on_trace: true,
        reason: None,
    });
    report
}
