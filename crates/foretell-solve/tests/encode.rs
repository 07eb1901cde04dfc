//! The formula of a CTP against brute force: on random traces, both must agree on which orders,
//! prefixes and violations are feasible, and the validator must accept every solution.

use foretell_model::brute::Interleavings;
use foretell_model::cssa::Cssa;
use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_model::must_order::MustOrder;
use foretell_model::validate::{Run, Witness, validate};
use foretell_solve::encode::{Encoding, Mode, Observed, encode};
use foretell_solve::{Answer, Backend, Budget, OrderSolver, solver};
use foretell_testing::Random;
use foretell_testing::machine::{random_trace, shrink};
use foretell_trace::format::text;
use foretell_trace::{EventId, TermId, Trace, Value};

/// What a run is asked to be.
#[derive(Clone, Debug, Default)]
struct Question {
    /// All of these are executed, the first of a pair before the second.
    orders: Vec<(EventId, EventId)>,
    /// Not executed (in prefixes only).
    missing: Vec<EventId>,
    /// An assertion that is executed and does not hold.
    violated: Option<EventId>,
}

impl Question {
    fn random(ctp: &ConcurrentTraceProgram, mode: Mode, random: &mut Random) -> Self {
        let events = ctp.events.len();
        let mut event = || EventId::from(random.below(events));
        let mut question = Self::default();
        for _ in 0..(event().0 % 4) {
            let (first, second) = (event(), event());
            if ctp.event(first).thread != ctp.event(second).thread {
                question.orders.push((first, second));
            }
        }
        if mode == Mode::Prefix && event().0 % 2 == 0 {
            question.missing.push(event());
        }
        let assertions: Vec<EventId> = (0..events)
            .map(EventId::from)
            .filter(|&event| matches!(ctp.event(event).action, Action::Assert { .. }))
            .collect();
        if !assertions.is_empty() && random.one_in(2) {
            question.violated = Some(assertions[random.below(assertions.len())]);
        }
        question
    }

    fn holds(&self, witness: &Witness, run: &Run) -> bool {
        let place = |event| witness.order.iter().position(|&other| other == event);
        let before = |(a, b)| place(a).zip(place(b)).is_some_and(|(a, b)| a < b);
        self.orders.iter().all(|&pair| before(pair))
            && self.missing.iter().all(|&event| place(event).is_none())
            && self.violated.is_none_or(|event| run.violated.contains(&event))
    }

    fn by_brute_force(&self, ctp: &ConcurrentTraceProgram, mode: Mode) -> Option<Witness> {
        let all = Interleavings::new(ctp);
        let interpreter = all.interpreter();
        // The monitor: no pair was executed the wrong way round; the violation was seen.
        let step = |&(good, seen): &(bool, bool), event: EventId, at: &_| {
            let wrong =
                self.orders.iter().any(|&(a, b)| b == event && !interpreter.is_executed(at, a));
            let now = self.violated == Some(event) && {
                let Action::Assert { condition } = ctp.event(event).action else { panic!() };
                interpreter.value(at, condition, &[]) == Ok(Value::Bool(false))
            };
            (good && !wrong, seen || now)
        };
        all.search((true, self.violated.is_none()), step, |&(good, seen), at| {
            let executed = |event| interpreter.is_executed(at, event);
            good && seen
                && (mode == Mode::Prefix || interpreter.is_complete(at))
                && self.orders.iter().all(|&(a, b)| executed(a) && executed(b))
                && !self.missing.iter().any(|&event| executed(event))
        })
        .expect("inputs are small")
    }

    fn formulas(
        &self,
        cssa: &Cssa,
        encoding: &Encoding,
        solver: &mut dyn OrderSolver,
    ) -> Vec<TermId> {
        let executed = |event: EventId| encoding.executed[event.index()];
        let terms = solver.terms();
        let mut formulas = Vec::new();
        for &(a, b) in &self.orders {
            formulas.extend([executed(a), executed(b), terms.before(a, b)]);
        }
        formulas.extend(self.missing.iter().map(|&event| terms.not(executed(event))));
        if let Some(event) = self.violated {
            let demand = cssa.events[event.index()].assertion.expect("it is an assertion");
            formulas.extend([executed(event), terms.not(demand)]);
        }
        formulas
    }
}

/// What the formula and brute force disagree on, if anything.
fn disagreement(trace: &Trace, seed: u64, backend: &Backend) -> Result<Counts, String> {
    let ctp = ConcurrentTraceProgram::build(trace).expect("a recorded trace has a model");
    let order = MustOrder::new(trace).expect("a recorded trace has no cycles");
    let cssa = Cssa::build(&ctp, &order);
    let mut random = Random::new(!seed);
    let mut counts = Counts::default();
    for mode in [Mode::Whole, Mode::Prefix] {
        let assertions: Vec<TermId> =
            cssa.events.iter().filter_map(|event| event.assertion).collect();
        let observed = match random.one_in(2) {
            true => Observed::Everything,
            false => Observed::Terms(&assertions),
        };
        let encoding = encode(&ctp, &cssa, mode, observed);
        let mut solver = solver(encoding.problem.clone(), backend).expect("it can be started");
        for _ in 0..4 {
            let question = Question::random(&ctp, mode, &mut random);
            let expected = question.by_brute_force(&ctp, mode);
            let formulas = question.formulas(&cssa, &encoding, solver.as_mut());
            let complain = |what: String| Err(format!("{mode:?}, {question:?}: {what}"));
            match solver.check(&formulas, Budget::default()) {
                Answer::Satisfiable(model) => {
                    counts.feasible += 1;
                    let witness = encoding.decode(&ctp, &cssa, &model);
                    match validate(&ctp, &witness) {
                        Err(rejection) => return complain(format!("{rejection} in {witness:?}")),
                        Ok(run) if !question.holds(&witness, &run) => {
                            return complain(format!("{witness:?} is no answer"));
                        }
                        Ok(_) if expected.is_none() => {
                            return complain(format!("brute force misses {witness:?}"));
                        }
                        Ok(_) => {}
                    }
                }
                Answer::Unsatisfiable { .. } => {
                    counts.infeasible += 1;
                    if let Some(witness) = expected {
                        return complain(format!("the formula misses {witness:?}"));
                    }
                }
                Answer::Unknown(reason) => return complain(format!("{reason:?}")),
            }
        }
    }
    Ok(counts)
}

#[derive(Default)]
struct Counts {
    feasible: usize,
    infeasible: usize,
}

fn agree_on(seeds: std::ops::Range<u64>, backend: &Backend) {
    let mut counts = Counts::default();
    let questions = 8 * (seeds.end - seeds.start) as usize;
    for seed in seeds {
        match disagreement(&random_trace(seed), seed, backend) {
            Ok(more) => {
                counts.feasible += more.feasible;
                counts.infeasible += more.infeasible;
            }
            Err(_) => {
                let mut fails = |trace: &Trace| disagreement(trace, seed, backend).is_err();
                let small = shrink(&random_trace(seed), &mut fails);
                let what = disagreement(&small, seed, backend).err().expect("it still fails");
                let mut text = Vec::new();
                text::write(&small, &mut text).expect("memory accepts everything");
                panic!("seed {seed}: {what}\n{}", String::from_utf8_lossy(&text));
            }
        }
    }
    // A test in which one answer hardly occurs would show little.
    assert!(counts.feasible > questions / 8, "only {} feasible", counts.feasible);
    assert!(counts.infeasible > questions / 8, "only {} infeasible", counts.infeasible);
}

#[test]
fn the_embedded_solver_and_brute_force_agree() {
    agree_on(0..2500, &Backend::Embedded);
}

#[test]
fn z3_and_brute_force_agree() {
    agree_on(0..60, &Backend::Z3);
}
