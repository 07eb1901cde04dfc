//! Counting instead of solving: what `counters` refutes no interleaving does, and a long loop of
//! increments under one lock costs no solver.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_predict::assertion;
use foretell_predict::counters::Counters;
use foretell_predict::{FindingKind, Options, predict};
use foretell_testing::Random;
use foretell_trace::format::text;
use foretell_trace::{EventId, Op, Trace};

/// Threads that add to a variable of eight bits, mostly under a lock, one after the other as recorded;
/// `main` asserts something of what it reads at the end, and threads of what they read.
fn adding(random: &mut Random) -> String {
    let locked = random.below(4) != 0;
    let threads = 2 + random.below(2);
    let mut value = [0u8, 3, 120, 250][random.below(4)];
    let mut text = String::from("foretell-trace 1\nsymbolic\nobserved\nthread main\n");
    for thread in 0..threads {
        let _ = writeln!(text, "thread t{thread}");
    }
    let _ = writeln!(text, "var x : bv8 = {value} at 0x1000 size 1\nmutex m\n\nmain begin");
    for thread in 0..threads {
        let _ = writeln!(text, "main fork t{thread}");
    }
    let condition = |random: &mut Random, read: &str, value: u8| -> (String, bool) {
        let bound = value.wrapping_add(random.below(3) as u8).wrapping_sub(1);
        match random.below(5) {
            0 => (format!("(= {read} #x{bound:02x})"), value == bound),
            1 => (format!("(bvule {read} #x{bound:02x})"), value <= bound),
            2 => (format!("(bvsle {read} #x{bound:02x})"), value as i8 <= bound as i8),
            3 => (format!("(bvslt #x{bound:02x} {read})"), (bound as i8) < value as i8),
            _ => (
                format!("(bvult ((_ zero_extend 8) {read}) #x{:04x})", u16::from(bound) + 4),
                u16::from(value) < u16::from(bound) + 4,
            ),
        }
    };
    for thread in 0..threads {
        let _ = writeln!(text, "t{thread} begin");
        for step in 0..1 + random.below(2) {
            let add = [1u8, 2, 255, 254][random.below(4)];
            if locked {
                let _ = writeln!(text, "t{thread} acquire m");
            }
            let read = format!("s{step}");
            let _ = writeln!(text, "t{thread} {read} = read x = {value}");
            if random.below(4) == 0 {
                let (holds, outcome) = condition(random, &read, value);
                let _ = writeln!(text, "t{thread} assert {holds} {outcome}");
            }
            value = value.wrapping_add(add);
            let _ = writeln!(text, "t{thread} write x = {value} := (bvadd {read} #x{add:02x})");
            if locked {
                let _ = writeln!(text, "t{thread} release m");
            }
        }
        let _ = writeln!(text, "t{thread} end");
    }
    for thread in 0..threads {
        if random.below(5) != 0 {
            let _ = writeln!(text, "main join t{thread}");
        }
    }
    let _ = writeln!(text, "main r = read x = {value}");
    let (holds, outcome) = condition(random, "r", value);
    let _ = writeln!(text, "main assert {holds} {outcome}");
    text
}

fn assertions(trace: &Trace) -> Vec<EventId> {
    let events = trace.events.iter().enumerate();
    events
        .filter(|(_, event)| matches!(event.op, Op::Assert(_)))
        .map(|(number, _)| EventId::from(number))
        .collect()
}

#[test]
fn what_counting_refutes_no_interleaving_does() {
    let mut random = Random::new(13);
    let (mut refuted, mut possible) = (0, 0);
    for _ in 0..150 {
        let written = adding(&mut random);
        let trace = text::read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        let ctp = ConcurrentTraceProgram::build(&trace).expect("a CTP");
        let order = MustOrder::new(&trace).expect("an order");
        let counters = Counters::new(&ctp, &order);
        for event in assertions(&trace) {
            let event = ctp.event_of(event).expect("it is modelled");
            let goal = assertion::goal(&ctp, event).expect("a goal");
            let mut fails = false;
            let mut left = 20_000;
            Interleavings::new(&ctp)
                .visit(&mut |prefix| {
                    fails |= prefix.violation && prefix.witness.order.last() == Some(&event);
                    left -= 1;
                    match fails || left == 0 {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                })
                .expect("no free inputs");
            let refutes = counters.refute(&goal);
            assert!(!(fails && refutes), "event {event:?} of\n{written}");
            refuted += usize::from(refutes);
            possible += usize::from(fails);
        }
    }
    assert!(refuted > 20 && possible > 20, "{refuted} refuted, {possible} possible");
}

/// Two threads that each add 1 to a counter so often under a lock; `main` asserts the sum.
fn loops(times: usize) -> String {
    let mut text = String::from("foretell-trace 1\nsymbolic\nobserved\nthread main, a, b\n");
    text.push_str(
        "var x : bv32 = 0 at 0x1000 size 4\nmutex m\n\nmain begin\nmain fork a\nmain fork b\n",
    );
    let mut value = 0;
    for thread in ["a", "b"] {
        let _ = writeln!(text, "{thread} begin");
        for step in 0..times {
            let _ =
                writeln!(text, "{thread} acquire m\n{thread} s{step} = read x = {value} @ l.c:7 f");
            value += 1;
            let _ = writeln!(
                text,
                "{thread} write x = {value} := (bvadd s{step} #x00000001) @ l.c:7 f\n{thread} release m"
            );
        }
        let _ = writeln!(text, "{thread} end\nmain join {thread}");
    }
    let _ = writeln!(text, "main r = read x = {value}\nmain assert (= r #x{value:08x}) true");
    text
}

#[test]
fn a_sum_of_many_increments_takes_no_search() {
    let trace = text::read(&loops(200)).expect("a trace");
    let properties = vec![FindingKind::Assertion];
    let options = Options { properties, ..Options::default() };
    let prediction = predict(&trace, &options).expect("an answer");
    assert!(prediction.findings.is_empty(), "{} findings", prediction.findings.len());
    assert_eq!(prediction.statistics.solver.checks, 0);
}
