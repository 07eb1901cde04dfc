//! The order generator and the filters of 002: its figure 6 and the programs of its table 4.

use foretell_predict::candidates::present_patterns;
use foretell_predict::planner::{Engine, PlannerOptions, predict};
use foretell_predict::region::Regions;
use foretell_predict::{Filters, FindingKind, Options, Prediction, Reason, Status};
use foretell_trace::Trace;
use foretell_trace::format::text;

fn trace(declarations: &str, events: &str) -> Trace {
    let content = format!("foretell-trace 1\nobserved\n{declarations}\n{events}\n");
    text::read(&content).unwrap_or_else(|error| panic!("{error} in\n{content}"))
}

fn ask_with(engine: Engine, trace: &Trace, filters: Filters) -> Prediction {
    let properties = vec![FindingKind::Atomicity];
    let common = Options { properties, filters, ..Options::default() };
    let options = PlannerOptions { engine, common, ..PlannerOptions::default() };
    predict(trace, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn generated(trace: &Trace) -> Prediction {
    let prediction = ask_with(Engine::Orders, trace, Filters::default());
    assert_eq!(prediction.internal_errors, Vec::<String>::new());
    for finding in &prediction.findings {
        let Status::Unknown(why) = &finding.status else { panic!("nothing is proved here") };
        assert!(matches!(why, Reason::OrderOnly), "{why}");
        assert!(finding.schedule.is_some(), "a lock-valid run is there to be tried");
    }
    prediction
}

/// A critical section of one access.
fn section(thread: &str, access: &str, line: u32) -> String {
    format!(
        "{thread} acquire m @ e.c:{line}:1 work\n{thread} {access} @ e.c:{line}:5 work\n\
         {thread} release m @ e.c:{line}:9 work\n"
    )
}

/// Figure 6 in the order of figure 7; the events 5, 8, 10 and 12, 14 are the accesses.
fn figure_6() -> Trace {
    let body = [
        "T1 fork T2\nT1 fork T3\nT2 begin\nT3 begin\nT3 barrier-arrive b\n".to_owned(),
        section("T2", "read x = 0", 37),
        "T2 barrier-arrive b\nT2 barrier-leave b\n".to_owned(),
        section("T2", "write x = 1", 44),
        section("T2", "read x = 1", 48),
        "T3 barrier-leave b\n".to_owned(),
        section("T3", "write x = 2", 44),
        section("T3", "read x = 2", 48),
    ];
    trace("thread T1, T2, T3\nmutex m\nbarrier b 2\nvar x = 0", &body.concat())
}

#[test]
fn figure_6_has_the_three_patterns_of_figure_13() {
    let prediction = generated(&figure_6());
    let mut found: Vec<String> = prediction
        .findings
        .iter()
        .map(|finding| {
            let threads = finding.accesses.iter().map(|access| access.thread.0 + 1);
            let threads: Vec<String> = threads.map(|thread| thread.to_string()).collect();
            format!("{} {}", finding.pattern.expect("a pattern").name(), threads.join(""))
        })
        .collect();
    found.sort_unstable();
    // {5, 12, 8}, {8, 12, 10} and {12, 8, 14}; the read 5 is before the barrier and no remote.
    assert_eq!(found, ["RWW 232", "WWR 232", "WWR 323"]);
}

#[test]
fn banking_has_twelve_patterns_with_four_threads() {
    let mut body = String::new();
    for thread in 1..=4 {
        let name = format!("T{thread}");
        body += &section(&name, &format!("read balance = {}", thread - 1), 10);
        body += &section(&name, &format!("write balance = {thread}"), 11);
    }
    let trace = trace("thread T1, T2, T3, T4\nmutex m\nvar balance = 0", &body);
    assert_eq!(generated(&trace).findings.len(), 12, "table 4");
}

#[test]
fn load_script_has_one_pattern() {
    let body = [
        section("T1", "write script = 1", 3),
        section("T1", "read script = 1", 9),
        section("T2", "write script = 0", 22),
    ];
    let trace = trace("thread T1, T2\nmutex m\nvar script = 0", &body.concat());
    let prediction = generated(&trace);
    assert_eq!(prediction.findings.len(), 1, "table 4");
}

#[test]
fn work_distribution_under_one_lock_has_none() {
    let mut body = String::new();
    for thread in 1..=4 {
        body += &format!(
            "T{thread} acquire m\nT{thread} read id = {}\nT{thread} write id = {thread}\n\
             T{thread} release m\n",
            thread - 1
        );
    }
    let trace = trace("thread T1, T2, T3, T4\nmutex m\nvar id = 0", &body);
    assert_eq!(generated(&trace).findings.len(), 0, "FFT in table 4");
}

/// Two workers take from a queue in a loop, as Barnes and Pbzip do.
fn queue() -> Trace {
    let mut body = String::new();
    for (number, thread) in ["T1", "T2", "T1", "T2"].into_iter().enumerate() {
        body += &format!(
            "{thread} acquire m\n{thread} read head = {number} @ q.c:5:1 take\n\
             {thread} write head = {} @ q.c:6:1 take\n{thread} release m\n",
            number + 1
        );
    }
    trace("thread T1, T2\nmutex m\nvar head = 0", &body)
}

#[test]
fn a_loop_is_the_same_instruction_twice() {
    // From the write of one round to the read of the next; a filter of loops leaves it, because
    // these are two instructions.
    let all = generated(&queue());
    assert!(!all.findings.is_empty());
    let reads = "T1 read x = 0 @ l.c:3:1 spin\nT2 write x = 1 @ l.c:9:1 set\n\
                 T1 read x = 1 @ l.c:3:1 spin";
    let spin = trace("thread T1, T2\nvar x = 0", reads);
    assert_eq!(generated(&spin).findings.len(), 1);
    let filters = Filters { loops: true, ..Filters::default() };
    let prediction = ask_with(Engine::Orders, &spin, filters);
    assert_eq!(prediction.findings.len(), 0);
    assert_eq!(prediction.statistics.filtered.loops, 1);
    assert!(!prediction.properties[0].holds_in_all_interleavings);
}

#[test]
fn a_read_and_a_write_at_one_place_are_two_instructions() {
    let body = "T1 read x = 0 @ i.c:3:1 add\nT1 write x = 1 @ i.c:3:1 add\n\
                T2 write x = 5 @ i.c:9:1 set";
    let increment = trace("thread T1, T2\nvar x = 0", body);
    let filters = Filters { loops: true, ..Filters::default() };
    let prediction = ask_with(Engine::Solver, &increment, filters);
    assert_eq!((prediction.findings.len(), prediction.statistics.filtered.loops), (1, 0));
}

#[test]
fn what_is_far_apart_is_left_out_and_counted() {
    let body = "T1 read x = 0\nT1 read y = 0\nT1 read y = 0\nT1 write x = 1\nT2 write x = 5";
    let far = trace("thread T1, T2\nvar x = 0, y = 0", body);
    for (most, found) in [(None, 1), (Some(2), 1), (Some(1), 0)] {
        for engine in [Engine::Solver, Engine::Orders] {
            let filters = Filters { distance: most, ..Filters::default() };
            let prediction = ask_with(engine, &far, filters);
            assert_eq!(prediction.findings.len(), found, "{engine} {most:?}");
            assert_eq!(prediction.statistics.filtered.distant, 1 - found);
        }
    }
}

#[test]
fn what_took_place_in_a_correct_run_is_left_out_and_counted() {
    let serial =
        "T1 read x = 0 @ a.c:1:1 f\nT1 write x = 1 @ a.c:2:1 f\nT2 write x = 5 @ a.c:3:1 g";
    let torn = "T1 read x = 0 @ a.c:1:1 f\nT2 write x = 5 @ a.c:3:1 g\nT1 write x = 1 @ a.c:2:1 f";
    let declarations = "thread T1, T2\nvar x = 0";
    let (serial, torn) = (trace(declarations, serial), trace(declarations, torn));
    assert!(present_patterns(&serial, Regions::Automatic).is_empty());
    let known_good = present_patterns(&torn, Regions::Automatic);
    assert_eq!(known_good.len(), 1);
    assert_eq!(ask_with(Engine::Solver, &serial, Filters::default()).findings.len(), 1);
    let filters = Filters { known_good, ..Filters::default() };
    let prediction = ask_with(Engine::Solver, &serial, filters);
    assert_eq!(prediction.findings.len(), 0);
    assert_eq!(prediction.statistics.filtered.known_good, 1);
}

#[test]
fn every_engine_answers_its_part_of_the_questions() {
    let trace = figure_6();
    for engine in [Engine::Solver, Engine::Planner, Engine::Lockset, Engine::Orders] {
        let asked = |partition| {
            let properties = vec![FindingKind::Atomicity];
            let common = Options { properties, partition, ..Options::default() };
            let options = PlannerOptions { engine, common, ..PlannerOptions::default() };
            let prediction = predict(&trace, &options).unwrap_or_else(|error| panic!("{error}"));
            prediction.properties.first().map_or(0, |summary| summary.questions)
        };
        let parts = [asked(Some((0, 2))), asked(Some((1, 2)))];
        assert_eq!(parts[0] + parts[1], asked(None), "{engine}");
        assert!(parts[0] > 0 && parts[1] > 0, "{engine}");
    }
}
