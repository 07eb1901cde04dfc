//! Loops that poll under a lock, or try to take one: rounds that leave nothing behind are no paths of their own.

use crate::common::Workshop;

#[test]
fn polling_is_waiting() {
    let workshop = Workshop::new();
    for name in [
        "ok_back_off.c",
        "ok_counter.c",
        "ok_nanosleep.c",
        "ok_semaphore_try.c",
        "ok_sleep_for.cpp",
    ] {
        let source = crate::common::source(&format!("polling/{name}"));
        let answer = workshop.test(&source, &[], &[]).ends_with(0);
        assert_eq!(answer.report["exploration"]["covered"], true, "{name}: {:#}", answer.report);
    }
}

#[test]
fn who_polls_for_ever_hangs() {
    let workshop = Workshop::new();
    for name in ["poll_for_ever.c", "semaphore_for_ever.c", "trylock_loop_abba.c"] {
        let source = crate::common::source(&format!("polling/{name}"));
        let answer = workshop.test(&source, &[], &[]).ends_with(10);
        let hangs = |finding: &serde_json::Value| {
            finding["status"] == "confirmed" && finding["effect"] == "hang"
        };
        assert!(answer.findings().iter().any(hangs), "{name}: {:#}", answer.report);
    }
}
