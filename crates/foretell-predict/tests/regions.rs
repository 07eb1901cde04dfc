//! Which calls count as blocks that should be atomic (ARCHITECTURE's contract on atomic regions).

use foretell_predict::access::Accesses;
use foretell_predict::finding::access_info;
use foretell_predict::region::{Regions, local_pairs};

/// The pairs of accesses in blocks, as `variable: first-second` by line of the trace's events.
fn pairs(events: &str) -> Vec<String> {
    let declarations = "observed\nthread main, T1 path 0.0\nvar x\nsem s = 0\n";
    pairs_in(&format!("foretell-trace 1\n{declarations}{events}"))
}

/// As [`pairs`], of a trace that says what was computed from what.
fn pairs_with_terms(events: &str) -> Vec<String> {
    let declarations = "symbolic\nobserved\nthread main, T1 path 0.0\nvar x = 0\nvar y = 0\n";
    pairs_in(&format!("foretell-trace 1\n{declarations}{events}"))
}

/// As [`pairs`], of a whole trace.
fn pairs_in(text: &str) -> Vec<String> {
    let trace = foretell_trace::format::text::read(text).unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    local_pairs(&trace, &mut Accesses::new(&trace), Regions::Automatic, |pair| {
        let variable = access_info(&trace, pair.first.0).variable.expect("an access");
        found.push(format!("{variable}: {}-{}", pair.first.0.0, pair.second.0.0));
    });
    found
}

#[test]
fn a_call_is_a_block_and_the_entry_of_its_thread_is_none() {
    let inner = "T1 call deposit\nT1 read x @ a.c:1\nT1 write x @ a.c:2\nT1 return\n";
    let entry = format!("T1 begin\nT1 call worker\n{inner}T1 return\nT1 end");
    assert_eq!(pairs(&entry), ["x: 3-4"]);
    // the same without the beginning: the call that holds everything
    assert_eq!(pairs(&format!("T1 call worker\n{inner}T1 return")), ["x: 2-3"]);
    // without an entry, the call is the block
    assert_eq!(pairs(&format!("T1 read x @ a.c:9\n{inner}")).len(), 1);
}

#[test]
fn accesses_in_two_calls_of_an_entry_are_a_pair_only_if_the_write_depends_on_the_read() {
    let events = "T1 begin
        T1 call worker
        T1 call get\nT1 a = read x = 0 @ a.c:1\nT1 return
        T1 call put\nT1 write x = 1 @ a.c:2\nT1 return
        T1 return";
    assert_eq!(pairs_with_terms(events), [""; 0]);
    let depends = events.replace("write x = 1", "write x = 1 := (+ a 1)");
    assert_eq!(pairs_with_terms(&depends), ["x: 3-6"]);
    // without terms it may depend
    assert_eq!(
        pairs(&events.replace(" a = read x = 0", " read x").replace(" = 1", "")),
        ["x: 3-6"]
    );
    let in_a_function = events.replace("T1 begin", "T1 begin\nT1 call start");
    let pairs = pairs_with_terms(&in_a_function);
    assert_eq!(pairs.len(), 1, "now `worker` is a function as any other");
}

#[test]
fn directly_in_an_entry_only_a_write_counts_that_depends_on_a_read() {
    let entry = |body: &str| {
        let events = format!("T1 begin\nT1 call worker\n{body}T1 return\nT1 end");
        pairs_with_terms(&events)
    };
    let twice = "T1 a = read x = 0 @ a.c:1\nT1 b = read x = 0 @ a.c:2\n";
    assert_eq!(entry(twice), [""; 0], "it may change between two looks");
    let update = "T1 a = read x = 0 @ a.c:1\nT1 write x = 1 := (+ a 1) @ a.c:2\n";
    assert_eq!(entry(update), ["x: 2-3"]);
    let unrelated = "T1 a = read x = 0 @ a.c:1\nT1 write x = 5 @ a.c:2\n";
    assert_eq!(entry(unrelated), [""; 0]);
    let checked = "T1 a = read x = 0 @ a.c:1\nT1 branch (= a 0) true\nT1 write x = 5 @ a.c:2\n";
    assert_eq!(entry(checked), ["x: 2-4"]);
    let through_memory = "T1 a = read x = 0 @ a.c:1\nT1 write y = 0 := a @ a.c:2\n\
        T1 b = read y = 0 @ a.c:3\nT1 write x = 1 := (+ b 1) @ a.c:4\n";
    assert!(entry(through_memory).contains(&"x: 2-5".to_owned()), "{:?}", entry(through_memory));
    // Outside of all calls nothing is known, and any two accesses count.
    assert_eq!(pairs("T1 read x @ a.c:1\nT1 read x @ a.c:2\n"), ["x: 0-1"]);
}

#[test]
fn main_is_an_entry_behind_static_constructors() {
    let events = "main begin
        main call _GLOBAL__sub_I_cache.cc\nmain write x = 1 @ a.cc:1\nmain return
        main call main
        main call get\nmain read x = 1 @ a.cc:2\nmain return
        main call put\nmain write x = 2 @ a.cc:3\nmain return
        main return";
    assert_eq!(pairs_with_terms(events), [""; 0]);
}

#[test]
fn what_the_library_puts_before_a_threads_function_is_entry_as_well() {
    let run = "|std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::$_0>>>::_M_run()|";
    let events = format!(
        "T1 begin
        T1 call {run}
        T1 call |void std::__invoke_impl<void, main::$_0>(std::__invoke_other, main::$_0&&)|
        T1 call |main::$_0::operator()() const|
        T1 call get\nT1 read x = 0 @ a.cc:2\nT1 return
        T1 call put\nT1 write x = 1 @ a.cc:3\nT1 return
        T1 return\nT1 return\nT1 return
        T1 call |{}::~_State_impl()|\nT1 return
        T1 end",
        run.trim_matches('|').trim_end_matches("::_M_run()")
    );
    assert_eq!(pairs_with_terms(&events), [""; 0]);
}

#[test]
fn a_callback_of_foreign_code_is_a_block_each_time() {
    let callback = "T1 call on_event\nT1 read x @ a.c:1\nT1 write x @ a.c:2\nT1 return\n";
    assert_eq!(pairs(&format!("T1 begin\n{callback}{callback}")).len(), 2);
}

#[test]
fn consecutive_accesses_outside_any_call_are_pairs() {
    let events = "T1 begin\nT1 call worker\nT1 read x @ a.c:1\nT1 write x @ a.c:2\nT1 return";
    assert_eq!(pairs(events), ["x: 2-3"]);
}

#[test]
fn a_block_is_cut_where_its_thread_waits_for_others() {
    for wait in ["main fork T1", "main join T1", "main sem-wait s"] {
        let events = format!("main read x @ a.c:1\n{wait}\nmain write x @ a.c:2");
        assert_eq!(pairs(&events), [""; 0], "outside any call, {wait}");
        let call = format!(
            "main read x @ a.c:8\nmain call f\nmain read x @ a.c:1\nmain write x @ a.c:2
            {wait}\nmain write x @ a.c:3\nmain return"
        );
        assert_eq!(pairs(&call), ["x: 2-3"], "in a call, {wait}");
        let marked = call.replace("call f", "region f").replace("return", "region-end");
        assert_eq!(pairs(&marked).len(), 3, "marked, {wait}");
    }
}
