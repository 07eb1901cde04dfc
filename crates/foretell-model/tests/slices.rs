//! A slice answers as the whole does.

use foretell_model::brute::Interleavings;
use foretell_model::ctp::{Action, ConcurrentTraceProgram, Mode};
use foretell_model::slice::{Criterion, slice};
use foretell_model::validate::{Witness, validate};
use foretell_testing::Random;
use foretell_testing::machine::random_trace;
use foretell_trace::{EventId, Value};

/// A run in which these events are executed in this order, the last one violating its assertion
/// if it is one and `violated` is set.
#[derive(Clone, Debug)]
struct Question {
    order: Vec<EventId>,
    violated: bool,
}

fn answer(ctp: &ConcurrentTraceProgram, question: &Question, mode: Mode) -> Option<Witness> {
    let all = Interleavings::new(ctp);
    let interpreter = all.interpreter();
    let last = question.order.len();
    let step = |&seen: &usize, event: EventId, at: &_| {
        if seen < last && question.order[seen] == event {
            let holds = match ctp.event(event).action {
                Action::Assert { condition } => {
                    interpreter.value(at, condition, &[]) != Ok(Value::Bool(false))
                }
                _ => false,
            };
            let ends = seen + 1 == last;
            return if ends && question.violated && holds { usize::MAX } else { seen + 1 };
        }
        if question.order[seen.min(last)..].contains(&event) { usize::MAX } else { seen }
    };
    all.search(0, step, |&seen, at| {
        seen == last && (mode == Mode::Prefix || interpreter.is_complete(at))
    })
    .expect("inputs are small")
}

#[test]
fn a_slice_answers_as_the_whole_does() {
    let (mut smaller, mut feasible, mut infeasible) = (0, 0, 0);
    for seed in 0..3000 {
        let whole = ConcurrentTraceProgram::build(&random_trace(seed)).expect("it ran");
        if whole.events.is_empty() {
            continue;
        }
        let mut random = Random::new(!seed);
        for mode in [Mode::Whole, Mode::Prefix] {
            let mut order: Vec<EventId> = Vec::new();
            for _ in 0..1 + random.below(3) {
                let event = EventId::from(random.below(whole.events.len()));
                if !order.contains(&event) {
                    order.push(event);
                }
            }
            let last = whole.event(*order.last().expect("at least one"));
            let violated = matches!(last.action, Action::Assert { .. }) && random.one_in(2);
            let question = Question { order, violated };
            let criterion = Criterion { events: question.order.clone(), variables: vec![] };
            let slice = slice(&whole, &criterion, mode);
            smaller += usize::from(slice.kept.len() < whole.events.len());
            let place = |event| EventId::from(slice.kept.binary_search(event).expect("kept"));
            let order = question.order.iter().map(place).collect();
            let sliced = answer(&slice.ctp, &Question { order, violated }, mode);
            let expected = answer(&whole, &question, mode);
            let context = || format!("seed {seed}, {mode:?}, {question:?}, kept {:?}", slice.kept);
            assert_eq!(sliced.is_some(), expected.is_some(), "{}", context());
            let Some(sliced) = sliced else {
                infeasible += 1;
                continue;
            };
            feasible += 1;
            let witness = slice.expand(&whole, &sliced).expect("a witness of the slice");
            let run = validate(&whole, &witness)
                .unwrap_or_else(|rejection| panic!("{}: {rejection}", context()));
            assert!(
                !violated || run.violated.contains(question.order.last().expect("at least one")),
                "{}",
                context()
            );
        }
    }
    assert!(
        smaller > 1000 && feasible > 1000 && infeasible > 500,
        "{smaller} {feasible} {infeasible}"
    );
}

/// What a solver says is no witness just because it has the shape of one.
#[test]
fn an_order_that_no_program_has_is_refused_and_not_believed() {
    let trace = foretell_trace::format::text::read(
        "foretell-trace 1\nobserved\nthread A, B\nvar x = 0\nA write x = 1\nA write x = 2\nB read x = 2\n",
    )
    .expect("a trace");
    let whole = ConcurrentTraceProgram::build(&trace).expect("a program");
    let criterion = Criterion {
        events: (0..whole.events.len()).map(EventId::from).collect(),
        variables: Vec::new(),
    };
    let slice = slice(&whole, &criterion, Mode::Prefix);
    let events: Vec<EventId> = (0..slice.kept.len()).map(EventId::from).collect();
    let witness = |order: Vec<EventId>| Witness { order, ..Witness::default() };
    assert!(slice.expand(&whole, &witness(events.clone())).is_some());
    let backwards: Vec<EventId> = events.iter().rev().copied().collect();
    let twice = [&events[..], &events[..1]].concat();
    let unknown = vec![EventId::from(events.len())];
    for order in [backwards, twice, unknown] {
        assert!(slice.expand(&whole, &witness(order.clone())).is_none(), "{order:?}");
    }
}
