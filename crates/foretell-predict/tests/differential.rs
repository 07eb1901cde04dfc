//! Random small traces: brute-force enumeration of all interleavings, the default solver and Z3
//! have to agree on every property and every pattern, for prefixes and for whole linearizations.
//!
//! `FORETELL_DIFFERENTIAL=N` sets the number of traces, `FORETELL_SEED=S` the first one. A
//! disagreement is shrunk and printed as a text trace.

use std::collections::HashMap;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::Locksets;
use foretell_model::must_order::MustOrder;
use foretell_model::testing::random_trace;
use foretell_model::validate::{Configuration, Witness, validate};
use foretell_predict::candidates::{Limits, candidates};
use foretell_predict::engine::{Engine, Setting, Verdict};
use foretell_predict::flag_section::add_flag_sections;
use foretell_predict::goal::{END, Goal, Moment};
use foretell_predict::question::{Instance, Question, Shape, Subject};
use foretell_predict::region::Regions;
use foretell_predict::{Backend, assertion, crash, deadlock, order, race};
use foretell_solve::Budget;
use foretell_solve::encode::Mode;
use foretell_trace::format::text;
use foretell_trace::{Event, EventId, Op, Sort, Term, TermId, ThreadId, Trace, Value, VariableId};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// All instances of all properties, filters off as far as they can be.
fn instances(trace: &Trace) -> Vec<Instance> {
    let Ok(order) = MustOrder::new(trace) else { return Vec::new() };
    let locks = Locksets::new(trace);
    let limits = Limits { instances: 1000, pairs: 1000 };
    let patterns = candidates(trace, &order, &locks, Regions::Inferred, limits);
    let mut instances: Vec<Instance> = patterns
        .candidates
        .into_iter()
        .flat_map(|candidate| candidate.instances)
        .map(|pattern| Instance {
            shape: Shape::Pattern(pattern.kind),
            events: vec![pattern.first, pattern.remote, pattern.second],
        })
        .collect();
    let questions: Vec<Question> = [
        assertion::questions(trace, 1000),
        crash::questions(trace, &order, 1000),
        deadlock::lock_cycles(trace, &order, &locks, 1000).questions,
        deadlock::stuck_questions(trace),
        race::questions(trace, &order, &locks, 1000),
        order::questions(trace, &order, 1000),
    ]
    .concat();
    instances.extend(questions.into_iter().flat_map(|question| question.instances));
    instances
}

/// What the monitor of a search remembers: the goal's events so far with the values before them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Memory {
    seen: Vec<(EventId, Vec<Value>)>,
    now: Vec<Value>,
}

/// Is there a feasible prefix (a whole linearization) with the goal? `None` when inputs are too
/// many to try.
fn brute_force(ctp: &ConcurrentTraceProgram, goal: &Goal, mode: Mode) -> Option<bool> {
    let mut variables: Vec<VariableId> =
        goal.values.iter().map(|&(_, variable)| variable).collect();
    variables.sort_unstable();
    variables.dedup();
    let mut events = goal.events();
    events.extend(goal.values.iter().filter_map(|&(moment, _)| match moment {
        Moment::Before(event) => Some(event),
        Moment::End => None,
    }));
    let total: usize = ctp.events.len();
    let mut interleavings = Interleavings::new(ctp);
    for (index, variable) in ctp.variables.iter().enumerate() {
        let wide = variable.sort.width().is_some_and(|width| width > 4);
        if wide {
            let width = variable.sort.width().expect("wide");
            let values = (0..4).map(|bits| Value::bit_vec(width, bits)).collect();
            if needs_domain(ctp, VariableId::from(index)) {
                return None;
            }
            interleavings = interleavings.domain(VariableId::from(index), values);
        }
    }
    let current = |at: &Configuration| -> Vec<Value> {
        variables.iter().map(|variable| at.values[variable.index()].clone()).collect()
    };
    let value_of = |values: &[Value], variable: VariableId| {
        values[variables.binary_search(&variable).expect("collected above")].clone()
    };
    // The first configuration is not given to `step`, so the memory starts when it is known.
    let start = Memory { seen: Vec::new(), now: Vec::new() };
    let initial: Vec<Value> = variables
        .iter()
        .map(|variable| ctp.variables[variable.index()].initial.clone())
        .collect::<Option<_>>()?;
    let found = interleavings.search(
        Memory { now: initial, ..start },
        |memory, event, at| {
            let mut next = memory.clone();
            if events.contains(&event) {
                next.seen.push((event, memory.now.clone()));
            }
            next.now = current(at);
            next
        },
        |memory, at| {
            let taken: usize = at.next.iter().map(|&next| next as usize).sum();
            if mode == Mode::Whole && taken < total {
                return false;
            }
            let place = |event: EventId| match event {
                END => usize::MAX - 1,
                _ => {
                    let place = memory.seen.iter().position(|(seen, _)| *seen == event);
                    place.unwrap_or(usize::MAX)
                }
            };
            let value = |moment: Moment, variable: VariableId| match moment {
                Moment::End => Some(value_of(&memory.now, variable)),
                Moment::Before(event) => {
                    let seen = memory.seen.iter().find(|(seen, _)| *seen == event);
                    let values = seen.map_or(&memory.now, |(_, values)| values);
                    Some(value_of(values, variable))
                }
            };
            goal.evaluate(place, value) == Some(true)
        },
    );
    Some(found.ok()?.is_some())
}

/// Is the variable a free input that the search would have to guess?
fn needs_domain(ctp: &ConcurrentTraceProgram, variable: VariableId) -> bool {
    let chosen = ctp.events.iter().any(|event| match &event.action {
        foretell_model::ctp::Action::Transition { changed, .. } => changed.contains(&variable),
        _ => false,
    });
    chosen || ctp.variables[variable.index()].initial.is_none()
}

/// The first disagreement about the trace, if there is one.
fn disagreement(trace: &Trace, with_z3: bool, asked: &mut Tally) -> Option<String> {
    let Ok(mut ctp) = ConcurrentTraceProgram::build(trace) else { return None };
    add_flag_sections(&mut ctp);
    let order = MustOrder::new(trace).ok()?;
    let chains = trace.events_by_thread();
    let subject = Subject::new(trace, &chains, &ctp);
    let goals: Vec<(Instance, Goal)> = instances(trace)
        .into_iter()
        .filter_map(|instance| subject.goal(&instance).map(|goal| (instance, goal)))
        .collect();
    if goals.is_empty() {
        return None;
    }
    let mut backends = vec![Backend::Embedded];
    if with_z3 {
        backends.push(Backend::Z3);
    }
    for mode in [Mode::Prefix, Mode::Whole] {
        let expected: Vec<Option<bool>> =
            goals.iter().map(|(_, goal)| brute_force(&ctp, goal, mode)).collect();
        for backend in &backends {
            let setting = Setting {
                mode,
                backend,
                budget: Budget::default(),
                context_switches: None,
                dump: None,
            };
            // Those about the state at the end make the others slow, so they go apart.
            for about_end in [false, true] {
                let chosen: Vec<usize> = (0..goals.len())
                    .filter(|&number| {
                        (goals[number].0.shape == Shape::Stuck) == about_end
                            && !(mode == Mode::Whole && about_end)
                    })
                    .collect();
                if chosen.is_empty() {
                    continue;
                }
                let of = chosen.iter().map(|&number| &goals[number].1);
                let mut engine = match Engine::new(&ctp, &order, of, &setting) {
                    Ok(engine) => engine,
                    Err(error) => return Some(format!("{backend:?}: {error}")),
                };
                for &number in &chosen {
                    let (instance, goal) = &goals[number];
                    let Some(expected) = expected[number] else { continue };
                    let got = match engine.ask(&[goal]) {
                        Verdict::Possible(..) => true,
                        Verdict::Impossible { .. } => false,
                        Verdict::Unknown(_) => {
                            asked.unknown += 1;
                            continue;
                        }
                        Verdict::Refused(why) => {
                            return Some(format!("{backend:?} {mode:?} {instance:?}: {why}"));
                        }
                    };
                    asked.count(instance.shape, expected);
                    if got != expected {
                        return Some(format!(
                            "{backend:?} {mode:?} says {got}, brute force {expected}: {instance:?}"
                        ));
                    }
                }
            }
        }
    }
    None
}

/// How often which answer was given.
#[derive(Default)]
struct Tally {
    counts: HashMap<String, [usize; 2]>,
    unknown: usize,
}

impl Tally {
    fn count(&mut self, shape: Shape, possible: bool) {
        let name = match shape {
            Shape::Pattern(kind) => kind.name().to_owned(),
            Shape::Fault(..) => "Fault".to_owned(),
            other => format!("{other:?}"),
        };
        self.counts.entry(name).or_default()[usize::from(possible)] += 1;
    }
}

/// The trace without one event, if nothing refers to it and the rest still ran.
fn without(trace: &Trace, gone: EventId) -> Option<Trace> {
    let removed = trace.event(gone);
    let (thread, index) = (removed.thread, removed.index);
    let mut smaller = trace.clone();
    let refers = |term: TermId| {
        trace.terms.leaves(term).iter().any(|&leaf| {
            matches!(trace.terms.term(leaf), Term::ReadValue(t, i) if *t == thread && *i == index)
        })
    };
    let mut sorts: HashMap<(ThreadId, u32), Sort> = HashMap::new();
    for id in (0..trace.terms.len()).map(TermId::from) {
        if let Term::ReadValue(thread, index) = *trace.terms.term(id) {
            sorts.insert((thread, index), trace.terms.sort(id));
        }
    }
    let mut cache = HashMap::new();
    let mut events: Vec<Event> = Vec::new();
    for (position, event) in trace.events.iter().enumerate() {
        if position == gone.index() {
            continue;
        }
        let mut event = event.clone();
        if event.thread == thread && event.index > index {
            event.index -= 1;
        }
        for term in terms_of(&mut event.op) {
            if refers(*term) {
                return None;
            }
            *term = smaller.terms.substitute(*term, &mut cache, &mut |terms, leaf| match *leaf {
                Term::ReadValue(t, i) if t == thread && i > index => {
                    Some(terms.read_value(t, i - 1, sorts[&(t, i)]))
                }
                _ => None,
            });
        }
        events.push(event);
    }
    smaller.events = events;
    let shift = |event: EventId| EventId(event.0 - u32::from(event > gone));
    smaller.orders.retain(|&(a, b)| a != gone && b != gone);
    smaller.orders.iter_mut().for_each(|(a, b)| (*a, *b) = (shift(*a), shift(*b)));
    smaller.atomic_sections.retain(|&(a, b)| a != gone && b != gone);
    smaller.atomic_sections.iter_mut().for_each(|(a, b)| (*a, *b) = (shift(*a), shift(*b)));
    smaller.labels.clear();
    let ctp = ConcurrentTraceProgram::build(&smaller).ok()?;
    let order = (0..ctp.events.len()).map(EventId::from).collect();
    validate(&ctp, &Witness { order, ..Witness::default() }).ok()?;
    Some(smaller)
}

fn terms_of(op: &mut Op) -> Vec<&mut TermId> {
    match op {
        Op::Read(access) | Op::Write(access) => {
            access.term.iter_mut().chain(access.address.iter_mut()).collect()
        }
        Op::ReadModifyWrite(step) => step.term.iter_mut().chain(step.address.iter_mut()).collect(),
        Op::Branch(condition) | Op::Assert(condition) => condition.term.iter_mut().collect(),
        Op::Guarded(guarded) => {
            let right = guarded.assignments.iter_mut().map(|(_, term)| term);
            right.chain([&mut guarded.guard]).collect()
        }
        Op::Transition(transition) => vec![&mut transition.predicate],
        _ => Vec::new(),
    }
}

/// Leaves out events as long as the disagreement stays.
fn shrunk(mut trace: Trace, with_z3: bool) -> (Trace, String) {
    let mut why = disagreement(&trace, with_z3, &mut Tally::default()).expect("it disagrees");
    'again: loop {
        for position in (0..trace.events.len()).rev() {
            if let Some(smaller) = without(&trace, EventId::from(position))
                && let Some(still) = disagreement(&smaller, with_z3, &mut Tally::default())
            {
                (trace, why) = (smaller, still);
                continue 'again;
            }
        }
        return (trace, why);
    }
}

#[test]
fn brute_force_and_all_solvers_agree_on_random_traces() {
    let first = number("FORETELL_SEED", 0);
    let traces = number("FORETELL_DIFFERENTIAL", 150);
    let mut asked = Tally::default();
    for seed in first..first + traces {
        let trace = random_trace(seed);
        let with_z3 = seed % 10 == 0;
        if disagreement(&trace, with_z3, &mut asked).is_some() {
            let (small, why) = shrunk(trace, with_z3);
            let mut out = Vec::new();
            text::write(&small, &mut out).expect("writing to memory");
            panic!("seed {seed}: {why}\n{}", String::from_utf8_lossy(&out));
        }
    }
    let mut counts: Vec<_> = asked.counts.iter().collect();
    counts.sort_unstable();
    println!("impossible and possible: {counts:?}, unknown {}", asked.unknown);
    let answers: usize = counts.iter().map(|(_, [no, yes])| no + yes).sum();
    assert!(answers > traces as usize, "hardly anything was asked");
    assert!(asked.unknown * 50 < answers.max(1), "too much was not decided: {}", asked.unknown);
}
