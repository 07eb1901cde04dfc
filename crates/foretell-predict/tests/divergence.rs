//! Past the recorded path: which reads can see something else, and the prefix that shows it.

use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::validate::{Witness, validate};
use foretell_predict::{Divergences, Feeds, Options, divergences};
use foretell_trace::format::text;
use foretell_trace::{EventId, Trace};

fn trace(head: &str, body: &str) -> Trace {
    let content = format!("foretell-trace 1\n{head}\n{body}\n");
    text::read(&content).unwrap_or_else(|error| panic!("{error} in\n{content}"))
}

fn ask(trace: &Trace) -> Divergences {
    let found = divergences(trace, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.internal_errors, Vec::<String>::new());
    found
}

fn names(trace: &Trace, events: &[EventId]) -> Vec<String> {
    events.iter().map(|&event| trace.event_name(event)).collect()
}

const TWO: &str = "thread T1, T2\nmutex m\nvar present = 0";

/// Each thread looks under the lock and lets it go; the first, which found nothing, inserts.
const CHECK_THEN_INSERT: &str = "\
    T1 acquire m\nT1 a = read present = 0\nT1 branch (= a 0) true\nT1 release m\n\
    T1 acquire m\nT1 write present = 1\nT1 release m\n\
    T2 acquire m\nT2 b = read present = 1\nT2 branch (= b 0) false\nT2 release m";

#[test]
fn two_threads_can_both_look_before_either_inserts() {
    let trace = trace("symbolic\nobserved", &format!("{TWO}\n{CHECK_THEN_INSERT}"));
    let found = ask(&trace);
    let first = &found.found[0];
    assert!(first.overlapping, "{found:#?}");
    assert_eq!(trace.event_name(first.event), "T2#1");
    assert_eq!(first.source, None, "it sees the initial value");
    assert!(matches!(first.feeds, Feeds::Branch(branch) if trace.event_name(branch) == "T2#2"));
    assert_eq!(
        names(&trace, &first.schedule.order),
        ["T1#0", "T1#1", "T1#2", "T1#3", "T2#0", "T2#1"],
        "the first has looked and given the lock back, then the second looks"
    );
    assert_eq!(names(&trace, &first.schedule.next), ["T1#4"], "the first waits for the lock");
    assert!(first.detail.contains("can see 0 instead of 1"), "{}", first.detail);
    // The plain one, in which the second runs first, is there as well, and nothing else.
    assert_eq!(found.found.len(), 2, "{found:#?}");
    assert_eq!(names(&trace, &found.found[1].schedule.order), ["T2#0", "T2#1"]);
}

#[test]
fn one_section_for_both_leaves_only_the_other_order() {
    let body = "T1 acquire m\nT1 a = read present = 0\nT1 branch (= a 0) true\n\
        T1 write present = 1\nT1 release m\n\
        T2 acquire m\nT2 b = read present = 1\nT2 branch (= b 0) false\nT2 release m";
    let trace = trace("symbolic\nobserved", &format!("{TWO}\n{body}"));
    let found = ask(&trace);
    assert_eq!(found.found.len(), 1, "{found:#?}");
    assert!(!found.found[0].overlapping);
    assert_eq!(names(&trace, &found.found[0].schedule.order), ["T2#0", "T2#1"]);
}

#[test]
fn a_value_that_decides_nothing_is_no_divergence() {
    let unused = "T1 write present = 1\nT2 b = read present = 1";
    let trace_unused = trace("symbolic\nobserved", &format!("{TWO}\n{unused}"));
    assert_eq!(ask(&trace_unused).found, []);
    let same_way = "T1 write present = 1\nT2 b = read present = 1\nT2 branch (< b 5) true";
    let trace_same_way = trace("symbolic\nobserved", &format!("{TWO}\n{same_way}"));
    let found = ask(&trace_same_way);
    assert_eq!(found.found, []);
    assert_eq!((found.impossible, found.undecided), (found.asked, 0));
}

#[test]
fn one_of_the_branches_of_a_loop_is_enough() {
    // Of four branches in each round only the third can go the other way.
    let round = "T2 branch (< b 5) true @ loop.c:11 f\nT2 branch (< b 6) true @ loop.c:12 f\n\
        T2 branch (= b 1) true @ loop.c:13 f\nT2 branch (< b 7) true @ loop.c:14 f\n";
    let body = format!("T1 write present = 1\nT2 b = read present = 1\n{}", round.repeat(16));
    let trace = trace("symbolic\nobserved", &format!("{TWO}\n{body}"));
    let found = ask(&trace);
    assert_eq!(found.found.len(), 1, "{found:#?}");
    assert!(found.found[0].detail.contains("loop.c:13"), "{}", found.found[0].detail);
    assert_eq!((found.left_out, found.undecided), (0, 0), "all of them were asked about");
}

#[test]
fn an_ordered_read_sees_what_it_saw() {
    let body = "T1 write present = 1\nT1 fork T2\nT2 begin\nT2 b = read present = 1\n\
                T2 branch (= b 1) true";
    let trace = trace("symbolic\nobserved", &format!("{TWO}\n{body}"));
    assert_eq!(ask(&trace).asked, 0, "must-happens-before leaves nothing to ask");
}

#[test]
fn a_read_can_see_a_write_that_came_later() {
    let body = "T2 b = read present = 0\nT2 branch (= b 0) true\nT1 write present = 1";
    let trace = trace("symbolic\nobserved", &format!("{TWO}\n{body}"));
    let found = ask(&trace);
    assert_eq!(found.found.len(), 1, "{found:#?}");
    assert_eq!(found.found[0].source, Some(EventId(2)));
    assert_eq!(names(&trace, &found.found[0].schedule.order), ["T1#0", "T2#0"]);
}

#[test]
fn two_reads_of_one_branch_are_cut_after_the_last() {
    let declarations = "thread T1, T2\nvar x = 0, y = 0";
    let body = "T1 write x = 1\nT2 a = read x = 1\nT2 b = read y = 0\n\
                T2 branch (= (+ a b) 1) true\nT1 write y = 1";
    let trace = trace("symbolic\nobserved", &format!("{declarations}\n{body}"));
    let found = ask(&trace);
    assert!(found.found.iter().all(|found| {
        let last = found.schedule.order.last().expect("a read is there");
        trace.event_name(*last) == "T2#1"
    }));
    let reads: Vec<String> =
        found.found.iter().map(|found| trace.event_name(found.event)).collect();
    assert!(reads.contains(&"T2#0".to_owned()) && reads.contains(&"T2#1".to_owned()), "{reads:?}");
}

#[test]
fn without_terms_each_read_before_a_branch_may_feed_it() {
    let body = CHECK_THEN_INSERT.replace("(= a 0) ", "").replace("(= b 0) ", "");
    let trace = trace("observed", &format!("{TWO}\n{body}"));
    let found = ask(&trace);
    assert_eq!(found.found.len(), 2, "{found:#?}");
    assert!(found.found[0].overlapping);
    assert_eq!(found.found[0].feeds, Feeds::Path);
    assert_eq!(
        names(&trace, &found.found[0].schedule.order),
        ["T1#0", "T1#1", "T1#2", "T1#3", "T2#0", "T2#1"]
    );
    assert_eq!(names(&trace, &found.found[1].schedule.order), ["T2#0", "T2#1"]);
}

#[test]
fn without_terms_nobody_goes_on_after_a_read_of_something_else() {
    // T3's write comes after T2's read: if that sees 0, nobody knows what T2 writes to `y` or when.
    let declarations = "thread T1, T2, T3\nvar x = 0, y = 0";
    let body = "T1 write x = 1\nT2 read x = 1\nT2 branch true\nT2 write y = 1\n\
                T3 read y = 1\nT3 branch true";
    let trace = trace("observed", &format!("{declarations}\n{body}"));
    let found = ask(&trace);
    assert!(!found.found.is_empty());
    for found in &found.found {
        let order = names(&trace, &found.schedule.order);
        let sees_other = order.iter().position(|name| name == "T2#0");
        let written = order.iter().position(|name| name == "T1#0");
        if let Some(read) = sees_other
            && written.is_none_or(|write| read < write)
        {
            assert!(!order.contains(&"T2#1".to_owned()), "{order:?}");
        }
    }
}

#[test]
fn a_try_can_come_out_differently() {
    let declarations = "thread T1, T2\nmutex m";
    let failed = "T1 acquire m\nT2 acquire-failed m\nT1 release m";
    let trace_failed = trace("observed", &format!("{declarations}\n{failed}"));
    let found = ask(&trace_failed);
    assert_eq!(found.found.len(), 1, "{found:#?}");
    assert_eq!(found.found[0].feeds, Feeds::Itself);
    assert_eq!(names(&trace_failed, &found.found[0].schedule.next), ["T2#0"]);
}

#[test]
fn a_condition_over_shared_variables_is_a_read() {
    let declarations = "thread T1, T2\nvar x = 0";
    let body = "T1 assign x := 1\nT2 assume (= x 1)";
    let trace = trace("symbolic\nobserved", &format!("{declarations}\n{body}"));
    let found = ask(&trace);
    assert_eq!(found.found.len(), 1, "{found:#?}");
    assert_eq!(names(&trace, &found.found[0].schedule.next), ["T2#0"]);
    assert!(found.found[0].schedule.order.is_empty());
}

#[test]
fn where_no_access_is_recorded_locks_can_be_taken_in_another_order() {
    let declarations = "thread T1, T2\nmutex m";
    let body = "T1 acquire m\nT1 release m\nT1 acquire m\nT1 release m\nT2 acquire m\nT2 release m";
    let trace = trace("observed", &format!("{declarations}\n{body}"));
    let found = ask(&trace);
    assert_eq!(found.found.len(), 1, "{found:#?}");
    assert_eq!(found.found[0].feeds, Feeds::Unrecorded);
    assert_eq!(names(&trace, &found.found[0].schedule.order), ["T1#0", "T1#1", "T2#0"]);
    assert_eq!(names(&trace, &found.found[0].schedule.next), ["T1#2"]);
}

#[test]
fn what_is_found_in_a_window_continues_the_recorded_run() -> Result<(), BuildError> {
    let mut body = String::new();
    for round in 0..200 {
        body.push_str(&format!("T1 write warm = {round}\nT2 read warm = {round}\n"));
    }
    let declarations = TWO.replace("var ", "var warm = 0, ");
    let content = format!("{declarations}\n{body}{CHECK_THEN_INSERT}");
    let trace = trace("symbolic\nobserved", &content);
    let mut options = Options::default();
    options.window.whole = 64;
    options.window.first = 4;
    let found = divergences(&trace, &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(found.found[0].overlapping, "{found:#?}");
    assert!(found.found[0].schedule.recorded > 0);
    let ctp = ConcurrentTraceProgram::build(&trace)?;
    for found in &found.found {
        let order = found.schedule.events().collect();
        let witness = Witness { order, ..Witness::default() };
        validate(&ctp, &witness).unwrap_or_else(|error| panic!("{error}"));
    }
    Ok(())
}

#[test]
fn what_is_left_out_is_told() {
    let trace = trace("symbolic\nobserved", &format!("{TWO}\n{CHECK_THEN_INSERT}"));
    let few = Options { divergences: 1, ..Options::default() };
    let found = divergences(&trace, &few).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.found.len(), 1);
    assert!(found.unseen.iter().any(|told| told.contains("not reported")), "{:?}", found.unseen);
    let none = Options { divergences: 0, ..Options::default() };
    let found = divergences(&trace, &none).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((found.found.len(), found.asked), (0, 0));
}
