//! What each primitive means, as traces and the interleavings that they allow.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use foretell_model::brute::Interleavings;
use foretell_model::build::BuildError;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::replay::Replay;
use foretell_model::validate::{Obstacle, Rejection, Witness, validate};
use foretell_trace::format::text;
use foretell_trace::{EventId, ThreadId, Trace, Value, VariableId};

fn trace(body: &str) -> Trace {
    let text = format!("foretell-trace 1\n{body}");
    text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn model(body: &str) -> (Trace, ConcurrentTraceProgram) {
    let trace = trace(body);
    let ctp = ConcurrentTraceProgram::build(&trace).unwrap_or_else(|error| panic!("{error}"));
    (trace, ctp)
}

/// The feasible interleavings that nothing can be added to, each as the labels of its events.
/// One that ends before all events have taken place ends with `stuck`.
fn runs(body: &str) -> BTreeSet<String> {
    let (trace, ctp) = model(body);
    let mut runs = BTreeSet::new();
    let all = Interleavings::new(&ctp);
    all.visit(&mut |prefix| {
        let interpreter = all.interpreter();
        let can_go_on = (0..ctp.threads.len()).any(|thread| {
            interpreter
                .next_event(prefix.at, thread.into())
                .is_some_and(|event| interpreter.is_enabled(prefix.at, event) != Some(false))
        });
        if !can_go_on {
            let mut names: Vec<String> =
                prefix.witness.order.iter().map(|&event| trace.event_name(event)).collect();
            if !prefix.complete {
                names.push("stuck".into());
            }
            runs.insert(names.join(" "));
        }
        ControlFlow::Continue(())
    })
    .expect("inputs are small");
    runs
}

fn set(runs: &[&str]) -> BTreeSet<String> {
    runs.iter().map(|run| run.to_string()).collect()
}

#[test]
fn a_mutex_is_held_by_one_thread() {
    let runs = runs(
        "symbolic\nthread A, B\nmutex m\n\
         a1: A acquire m\na2: A release m\nb1: B acquire m\nb2: B release m\n",
    );
    assert_eq!(runs, set(&["a1 a2 b1 b2", "b1 b2 a1 a2"]));
}

#[test]
fn a_mutex_deadlocks_with_its_holder_and_a_recursive_one_does_not() {
    let body = "thread A, B\nKIND m\n\
                a1: A acquire m\na2: A acquire m\na3: A release m\nb1: B acquire m\na4: A release m\n";
    assert_eq!(runs(&body.replace("KIND", "mutex")), set(&["a1 stuck", "b1 stuck"]));
    let recursive = runs(&body.replace("KIND", "recursive"));
    assert_eq!(recursive, set(&["a1 a2 a3 a4 b1", "b1 stuck"]));
}

#[test]
fn a_try_fails_only_while_the_lock_is_held() {
    let runs = runs(
        "thread A, B\nmutex m\n\
         a1: A acquire m\nb1: B try-acquire-failed m\na2: A release m\n",
    );
    // Run first or last, the try would have succeeded.
    assert_eq!(runs, set(&["a1 a2 stuck", "a1 b1 a2"]));
}

#[test]
fn an_error_checking_mutex_refuses_its_holder() {
    let body = "thread A\nerrorcheck m\na1: A acquire m\na2: A acquire-failed m\na3: A release m\n";
    assert_eq!(runs(body), set(&["a1 a2 a3"]));
    let body = "thread A\nerrorcheck m\na1: A acquire m\na2: A release m\na3: A acquire-failed m\n";
    assert_eq!(runs(body), set(&["a1 a2 stuck"]));
}

#[test]
fn readers_share_and_a_writer_does_not() {
    let readers = "thread A, B\nrwlock l\n\
                   a1: A acquire.shared l\nb1: B acquire.shared l\n\
                   a2: A release.shared l\nb2: B release.shared l\n";
    assert_eq!(runs(readers).len(), 6);
    let writer = "thread A, B\nrwlock l\n\
                  a1: A acquire.shared l\na2: A release.shared l\n\
                  b1: B acquire l\nb2: B release l\n";
    assert_eq!(runs(writer), set(&["a1 a2 b1 b2", "b1 b2 a1 a2"]));
}

#[test]
fn a_semaphore_counts() {
    let runs = runs(
        "thread A, B\nsem s = 1\n\
         a1: A sem-wait s\na2: A sem-post s\nb1: B sem-wait s\nb2: B sem-wait-failed s\n",
    );
    // B's failed wait needs the count at zero after its own wait.
    assert_eq!(runs, set(&["a1 a2 b1 b2", "b1 b2 stuck"]));
}

#[test]
fn a_signal_that_nobody_waits_for_is_lost() {
    let runs = runs(
        "thread A, B\nmutex m\ncond c\n\
         a1: A acquire m\na2: A wait-begin c m\nb1: B signal c\na3: A wait-end c m\n",
    );
    assert_eq!(runs, set(&["a1 a2 b1 a3", "a1 b1 a2 stuck", "b1 a1 a2 stuck"]),);
}

const TWO_WAITERS: &str = "thread A, B, C\nmutex m, n\ncond c\n\
     a1: A acquire m\na2: A wait-begin c m\nb1: B acquire n\nb2: B wait-begin c n\n\
     c1: C WAKE c\na3: A wait-end c m\nb3: B wait-end c n\norder b2 < c1\norder a2 < c1\n";

#[test]
fn a_signal_wakes_any_one_waiter_and_a_broadcast_all() {
    let after_c1 = |run: &String| run.split_once("c1").expect("it comes").1.trim().to_string();
    let signal: BTreeSet<String> =
        runs(&TWO_WAITERS.replace("WAKE", "signal")).iter().map(after_c1).collect();
    assert_eq!(signal, set(&["a3 stuck", "b3 stuck"]));
    let broadcast: BTreeSet<String> =
        runs(&TWO_WAITERS.replace("WAKE", "broadcast")).iter().map(after_c1).collect();
    assert_eq!(broadcast, set(&["a3 b3", "b3 a3"]));
}

#[test]
fn who_comes_after_a_signal_cannot_take_it_from_who_waited() {
    let late = TWO_WAITERS.replace("WAKE", "signal").replace("order b2 < c1", "order c1 < b2");
    for run in runs(&late) {
        assert!(!run.contains("b3"), "{run}");
    }
}

#[test]
fn a_wait_that_timed_out_needs_no_signal_and_takes_none() {
    let runs = runs(
        "thread A, B, C\nmutex m, n\ncond c\n\
         a1: A acquire m\na2: A wait-begin c m\nb1: B acquire n\nb2: B wait-begin c n\n\
         c1: C signal c\nb3: B wait-end c n\na3: A wait-timeout c m\n\
         order a2 < b1\norder b2 < c1\n",
    );
    assert_eq!(
        runs,
        set(&[
            "a1 a2 b1 b2 c1 b3 a3",
            "a1 a2 b1 b2 c1 a3 b3",
            "a1 a2 b1 b2 a3 c1 b3",
            "a1 a2 b1 a3 b2 c1 b3",
            "a1 a2 a3 b1 b2 c1 b3",
        ])
    );
}

#[test]
fn a_barrier_lets_nobody_leave_before_all_came() {
    let once = "thread A, B\nbarrier x 2\n\
                a1: A barrier-arrive x\nb1: B barrier-arrive x\n\
                a2: A barrier-leave x\nb2: B barrier-leave x\n";
    assert_eq!(runs(once), set(&["a1 b1 a2 b2", "a1 b1 b2 a2", "b1 a1 a2 b2", "b1 a1 b2 a2"]));
    // A comes again before B has left: that is the next generation, and B may still leave.
    let twice = format!("{once}a3: A barrier-arrive x\na4: A barrier-leave x\n");
    let runs = runs(&twice);
    assert!(runs.contains("a1 b1 a2 a3 b2 stuck"), "{runs:?}");
    assert!(runs.iter().all(|run| !run.contains("a4")), "{runs:?}");
}

#[test]
fn a_thread_runs_between_fork_and_join() {
    let with_ends = "thread M, T\nm1: M fork T\nt1: T begin\nt2: T end\nm2: M join T\n";
    assert_eq!(runs(with_ends), set(&["m1 t1 t2 m2"]));
    let without = "thread M, T\nm1: M fork T\nt1: T call f\nt2: T return\nm2: M join T\n";
    assert_eq!(runs(without), set(&["m1 t1 t2 m2"]));
}

#[test]
fn a_branch_keeps_its_outcome_and_a_read_may_return_something_else() {
    let runs = runs(
        "symbolic\nobserved\nthread A, B\nvar x : bv8 = 0\n\
         a1: A write x = 1\na2: A write x = 2\nb1: B v = read x = 2\nb2: B branch (bvult 0 v) true\n",
    );
    // Reading 1 does as well, reading 0 does not.
    assert!(runs.contains("a1 b1 a2 b2"), "{runs:?}");
    assert!(runs.contains("b1 a1 a2 stuck"), "{runs:?}");
}

#[test]
fn without_terms_a_read_returns_what_it_returned() {
    let values = "observed\nthread A, B\nvar x : bv8 = 0\n\
                  a1: A write x = 1\na2: A write x = 1\nb1: B read x = 1\n";
    assert_eq!(runs(values), set(&["a1 a2 b1", "a1 b1 a2"]));
    // Without values it sees the write it saw.
    let nothing = "observed\nthread A, B\nvar x : bv8\n\
                   a1: A write x\na2: A write x\nb1: B read x\nb2: B write x\n";
    assert_eq!(runs(nothing), set(&["a1 a2 b1 b2"]));
}

#[test]
fn a_word_and_its_bytes_share_memory_little_endian() {
    let runs = runs(
        "symbolic\nobserved\nthread A, B\n\
         var word : bv32 = 0 at 0x100 size 4\nvar byte : bv8 at 0x101 size 1\n\
         a1: A write word = 0x11223344\nb1: B v = read byte = 0x33\n\
         b2: B branch (= v #x33) true\nb3: B write byte = 0xff\n\
         a2: A w = read word = 0x1122ff44\na3: A branch (= w #x1122ff44) true\n",
    );
    let complete: Vec<&String> = runs.iter().filter(|run| !run.ends_with("stuck")).collect();
    assert_eq!(complete, ["a1 b1 b2 b3 a2 a3"]);
}

#[test]
fn an_address_that_depends_on_data_stays_as_recorded() {
    let runs = runs(
        "symbolic\nobserved\nthread A, B\n\
         var p : bv64 = 512\nvar x : bv8 = 0 at 0x200 size 1\n\
         a1: A q = read p = 512\na2: A write x = 1 at q\nb1: B write p = 768\n",
    );
    assert_eq!(runs, set(&["a1 a2 b1", "a1 b1 a2", "b1 a1 stuck"]));
}

#[test]
fn a_read_modify_write_is_one_step() {
    let (_, ctp) = model(
        "symbolic\nobserved\nthread A, B\nvar x : bv8 = 0\n\
         a1: A rmw x = 0 -> 1 := (bvadd r0 1)\nb1: B rmw x = 1 -> 2 := (bvadd r0 1)\n",
    );
    let two = |at: &foretell_model::validate::Configuration| at.values[0] == Value::bit_vec(8, 2);
    let all = Interleavings::new(&ctp);
    let complete = |at: &_| all.interpreter().is_complete(at);
    assert!(all.reach(|at| complete(at) && !two(at)).unwrap().is_none());
    assert!(all.reach(|at| complete(at) && two(at)).unwrap().is_some());
}

/// 004 Fig. 1: ρ' = (t1–t4) t9 t10 t11 t12 t13 (t5–t8) exposes the error.
const FIGURE_1: &str = "symbolic\nthread T1, T2\nvar x = 0, y = 0\nlocal a of T1 = 0\n\
    local b of T2 = 0\nsem l = 1\n\
    t1: T1 assign a := x\nt2: T1 sem-wait l\nt3: T1 assign x := (+ 2 a)\nt4: T1 sem-post l\n\
    t5: T1 assign y := (+ 1 a)\nt6: T1 sem-wait l\nt7: T1 assign x := (+ 1 a)\nt8: T1 sem-post l\n\
    t9: T2 assign b := 0\nt10: T2 sem-wait l\nt11: T2 assume (> x b)\nt12: T2 assert (= y 1)\n\
    t13: T2 sem-post l\n";

#[test]
fn the_running_example_of_004_is_violated_by_its_permutation() {
    let (_, ctp) = model(FIGURE_1);
    let order: Vec<EventId> =
        [0, 1, 2, 3, 8, 9, 10, 11, 12, 4, 5, 6, 7].into_iter().map(EventId).collect();
    let run = validate(&ctp, &Witness { order, ..Witness::default() }).expect("feasible");
    assert_eq!(run.violated, [EventId(11)]);
    let recorded = Witness { order: (0..13).map(EventId).collect(), ..Witness::default() };
    assert_eq!(validate(&ctp, &recorded).expect("feasible").violated, []);
}

#[test]
fn the_validator_says_why_not() {
    let (_, ctp) = model(FIGURE_1);
    let obstacle = |order: &[u32]| {
        let order = order.iter().copied().map(EventId).collect();
        match validate(&ctp, &Witness { order, ..Witness::default() }) {
            Err(Rejection::Step { obstacle, .. }) => obstacle,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(obstacle(&[1]), Obstacle::ProgramOrder);
    assert_eq!(obstacle(&[0, 0]), Obstacle::ProgramOrder);
    assert_eq!(obstacle(&[0, 99]), Obstacle::NoSuchEvent);
    assert_eq!(obstacle(&[0, 1, 8, 9]), Obstacle::Guard);
    let (_, ctp) = model(
        "thread A, B\nvar x : bv4, y : bv4 = 0\npre (= x #x3)\n\
         a1: A transition (= y' x)\na2: A call f\nb1: B return\norder a1 < b1\natomic a1 a2\n",
    );
    let (x, y) = (VariableId(0), VariableId(1));
    let initial = |bits| vec![(x, Value::bit_vec(4, bits))];
    let choose = |bits| vec![(EventId(0), y, Value::bit_vec(4, bits))];
    let ask = |order: &[u32], initial, choices| {
        let order = order.iter().copied().map(EventId).collect();
        validate(&ctp, &Witness { order, initial, choices }).map(|run| run.end.values)
    };
    let step =
        |step, event, obstacle| Err(Rejection::Step { step, event: EventId(event), obstacle });
    assert_eq!(ask(&[], vec![], vec![]), Err(Rejection::NoInitialValue(x)));
    assert_eq!(ask(&[], initial(4), vec![]), Err(Rejection::Precondition));
    assert_eq!(ask(&[0], initial(3), vec![]), step(0, 0, Obstacle::Choice));
    assert_eq!(ask(&[0], initial(3), choose(2)), step(0, 0, Obstacle::Choice));
    assert_eq!(ask(&[2], initial(3), choose(3)), step(0, 2, Obstacle::FixedOrder(EventId(0))));
    let in_section = Obstacle::AtomicSection(ctp.event(EventId(0)).thread);
    assert_eq!(ask(&[0, 2], initial(3), choose(3)), step(1, 2, in_section));
    let values = ask(&[0, 1, 2], initial(3), choose(3)).expect("feasible");
    assert_eq!(values[1], Value::bit_vec(4, 3));
}

#[test]
fn a_run_tells_who_can_go_on() {
    let (_, ctp) = model(
        "thread A, B, C\nmutex m\nvar x = 0\n\
         A acquire m\nB acquire m\nC call f\nA release m\n",
    );
    let witness = Witness { order: vec![EventId(0)], ..Witness::default() };
    let run = validate(&ctp, &witness).expect("feasible");
    assert_eq!(run.enabled, [EventId(3), EventId(2)]);
    assert_eq!(run.blocked, [EventId(1)]);
}

#[test]
fn what_has_no_model_is_told() {
    let build = |body: &str| ConcurrentTraceProgram::build(&trace(body)).err();
    let event = EventId(0);
    assert!(matches!(
        build("symbolic\nthread A\nvar x : bv8\nA write x\n"),
        Some(BuildError::MissingValue { .. })
    ));
    assert!(matches!(build("thread A\nvar x : bv8\nA read x\n"), Some(BuildError::NotObserved)));
    let mut foreign = trace("thread A, B\nlocal x of A = 0\nA assign x := 1\n");
    foreign.events[0].thread = ThreadId(1);
    assert_eq!(
        ConcurrentTraceProgram::build(&foreign).err(),
        Some(BuildError::ForeignLocal { event, variable: "x".into() })
    );
    assert!(matches!(
        build("thread A, B\nmutex m\nA release m\nB release m\n"),
        Some(BuildError::ReleaseWithoutAcquire { event: EventId(1) })
    ));
    assert!(matches!(
        build("thread A\nvar x : bv16 at 16 size 2, y : int at 17 size 1\nA call f\n"),
        Some(BuildError::Overlap { .. })
    ));
    let observed = trace("observed\nthread A\nA call f\nA return\n");
    let start = Replay::new(&observed).expect("it has a model");
    assert_eq!(
        ConcurrentTraceProgram::build_window(&start, &[EventId(1)]).err(),
        Some(BuildError::NotNext { event: EventId(1) })
    );
    let mut unobserved = Replay::new(&observed).expect("it has a model");
    unobserved.advance_to(event).expect("nothing to do");
    let listed = trace("thread A\nA call f\n");
    let mut replay = Replay::new(&listed).expect("it has a model");
    assert_eq!(replay.advance_to(EventId(1)), Err(BuildError::NotObserved));
}
