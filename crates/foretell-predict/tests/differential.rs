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
use foretell_model::validate::Configuration;
use foretell_predict::candidates::{Limits, candidates};
use foretell_predict::crash::CrashShape;
use foretell_predict::engine::{Engine, Setting, Verdict};
use foretell_predict::flag_section::add_flag_sections;
use foretell_predict::goal::{END, Goal, Moment};
use foretell_predict::property::Shape;
use foretell_predict::question::{Instance, Question, Subject};
use foretell_predict::region::Regions;
use foretell_predict::{Backend, assertion, crash, deadlock, order, race};
use foretell_solve::Budget;
use foretell_solve::encode::Mode;
use foretell_testing::Random;
use foretell_testing::machine::{MAX_EVENTS, random_trace, shrink};
use foretell_trace::format::text;
use foretell_trace::{EventId, Term, Trace, Value, VariableId};

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
            shape: Shape::Atomicity(pattern.kind),
            events: vec![pattern.first, pattern.remote, pattern.second],
        })
        .collect();
    let questions: Vec<Question> = [
        assertion::questions(trace, 1000),
        crash::questions(trace, &order, 1000),
        deadlock::lock_cycles(trace, &order, &locks, 1000).questions,
        deadlock::stuck_questions(trace, &order),
        race::questions(trace, &order, &locks, 1000),
        order::questions(trace, &order, 1000),
    ]
    .concat();
    instances.extend(questions.into_iter().flat_map(|question| question.instances));
    instances
}

/// What the monitor of a search remembers of the past: no more than the goal asks for, or there
/// would be one state for each interleaving.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Memory {
    /// By pair that the goal orders: did the first of it come first?
    came_first: Vec<Option<bool>>,
    /// By value that the goal speaks of: what it was before its event.
    values: Vec<Option<Value>>,
    /// The same values now.
    now: Vec<Value>,
}

/// More states than this are not searched; the goal is counted as skipped.
const STATES: usize = 50_000;

/// Is there a feasible prefix with the goal, and a whole linearization? `None` when inputs or states
/// are too many to try.
fn brute_force(ctp: &ConcurrentTraceProgram, goal: &Goal) -> Option<[bool; 2]> {
    let pairs: Vec<(EventId, EventId)> = goal
        .terms
        .leaves(goal.formula)
        .into_iter()
        .filter_map(|leaf| match *goal.terms.term(leaf) {
            Term::Before(first, second) if first != END && second != END => Some((first, second)),
            _ => None,
        })
        .collect();
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
    let initial = goal.values.iter().map(|(_, variable)| {
        let described = &ctp.variables[variable.index()];
        described.initial.clone()
    });
    let start = Memory {
        came_first: vec![None; pairs.len()],
        values: vec![None; goal.values.len()],
        now: initial.collect::<Option<_>>()?,
    };
    let taken = |event: EventId, at: &Configuration| {
        let described = ctp.event(event);
        at.next[described.thread.index()] > described.position
    };
    let (mut states, mut in_prefix) = (0, false);
    let found = interleavings.search(
        start,
        |memory, event, at| {
            let mut next = memory.clone();
            for (first, came) in pairs.iter().zip(&mut next.came_first) {
                if came.is_none() && (event == first.0 || event == first.1) {
                    *came = Some(event == first.0);
                }
            }
            for (number, (moment, variable)) in goal.values.iter().enumerate() {
                if *moment == Moment::Before(event) {
                    next.values[number] = Some(memory.now[number].clone());
                }
                next.now[number] = at.values[variable.index()].clone();
            }
            next
        },
        |memory, at| {
            states += 1;
            let done: usize = at.next.iter().map(|&next| next as usize).sum();
            let holds = goal.terms.holds(goal.formula, &|leaf: &Term| match *leaf {
                Term::Before(event, END) => Some(Value::Bool(taken(event, at))),
                Term::Before(END, event) => Some(Value::Bool(!taken(event, at))),
                Term::Before(first, second) => {
                    let pair = pairs.iter().position(|&pair| pair == (first, second))?;
                    Some(Value::Bool(memory.came_first[pair] == Some(true)))
                }
                Term::Symbol(symbol) => {
                    let then = memory.values[symbol.index()].clone();
                    Some(then.unwrap_or_else(|| memory.now[symbol.index()].clone()))
                }
                _ => None,
            });
            in_prefix |= holds == Some(true);
            states > STATES || (holds == Some(true) && done == total)
        },
    );
    let found = found.ok()?.is_some();
    (states <= STATES).then_some([in_prefix, found])
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
    let subject = Subject::new(trace, &chains, &ctp, &order);
    let goals: Vec<(Instance, Goal)> = instances(trace)
        .into_iter()
        .filter_map(|instance| subject.unfiltered_goal(&instance).map(|goal| (instance, goal)))
        .collect();
    if goals.is_empty() {
        return None;
    }
    let mut backends = vec![Backend::Embedded];
    if with_z3 {
        backends.push(Backend::Z3);
    }
    let expected: Vec<Option<[bool; 2]>> =
        goals.iter().map(|(_, goal)| brute_force(&ctp, goal)).collect();
    for (number_of_mode, mode) in [Mode::Prefix, Mode::Whole].into_iter().enumerate() {
        for backend in &backends {
            let setting = Setting {
                mode,
                backend,
                budget: Budget::default(),
                context_switches: None,
                deadline: None,
                dump: None,
            };
            // Those about the state at the end make the others slow, so they go apart.
            for about_end in [false, true] {
                let chosen: Vec<usize> = (0..goals.len())
                    .filter(|&number| {
                        goals[number].0.shape.is_about_end() == about_end
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
                    let Some(expected) = expected[number].map(|both| both[number_of_mode]) else {
                        asked.skipped += 1;
                        continue;
                    };
                    if expected && subject.is_excluded(instance) {
                        return Some(format!("{instance:?} is excluded but possible"));
                    }
                    if expected && subject.counters.refute(goal) {
                        return Some(format!("{instance:?} is refuted by counting but possible"));
                    }
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
    /// Not decided by a solver.
    unknown: usize,
    /// Not decided by brute force.
    skipped: usize,
}

impl Tally {
    fn count(&mut self, shape: Shape, possible: bool) {
        let name = match shape {
            Shape::Atomicity(kind) => kind.name().to_owned(),
            Shape::Crash(CrashShape::Fault(..)) => "Fault".to_owned(),
            Shape::Crash(other) => format!("{other:?}"),
            Shape::Deadlock(other) => format!("{other:?}"),
            Shape::Assertion(()) => "Assertion".to_owned(),
            Shape::Race(()) => "Race".to_owned(),
            Shape::Order(()) => "Order".to_owned(),
            other => format!("{other:?}"),
        };
        self.counts.entry(name).or_default()[usize::from(possible)] += 1;
    }
}

/// A trace that really ran, of what [`random_trace`] does seldom: nested locks, divisors that may
/// be zero, and a block that is freed.
fn nested_locks(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let threads = 2 + random.below(2);
    // Each thread's steps; `{d}` and `{q}` are replaced by what the divisor is then.
    let mut programs: Vec<Vec<String>> = Vec::new();
    for thread in 0..threads {
        let mut program = Vec::new();
        for block in 0..1 + random.below(2) {
            let outer = random.below(3);
            let inner = (outer + 1 + random.below(2)) % 3;
            let nested = random.percent(70);
            program.push(format!("acquire m{outer}"));
            if nested {
                program.push(format!("acquire m{inner}"));
            }
            match random.below(5) {
                0 => program.push(format!("write d = {}", random.below(3))),
                1 => {
                    program.push(format!("n{block} = read d = {{d}}"));
                    let eight = "(_ bv8 32)";
                    program.push(format!("write out = {{q}} := (bvudiv {eight} n{block})"));
                }
                2 => {
                    program.push(format!("n{block} = read d = {{d}}"));
                    program.push(format!("assert (= n{block} (_ bv2 32)) {{two}}"));
                }
                3 => program.push("write cell = 1".into()),
                _ => {}
            }
            if nested {
                program.push(format!("release m{inner}"));
            }
            program.push(format!("release m{outer}"));
        }
        if thread == 0 && random.one_in(3) {
            program.push("free 0x1000".into());
        }
        programs.push(program);
    }
    let names: Vec<String> = (0..threads).map(|thread| format!("T{thread}")).collect();
    let mut text = format!(
        "foretell-trace 1\nsymbolic\nobserved\nthread {}\nmutex m0, m1, m2\n\
         var d : bv32 = (_ bv2 32), out : bv32 = (_ bv0 32)\n\
         var cell : bv32 = (_ bv0 32) at 0x1000 size 4\nT0 alloc 0x1000 8\n",
        names.join(", ")
    );
    let mut next = vec![0; threads];
    let (mut holder, mut divisor, mut freed) = ([None; 3], 2, false);
    let mut events = 1;
    for _ in 0..200 {
        let thread = random.below(threads);
        let Some(step) = programs[thread].get(next[thread]) else { continue };
        let words: Vec<&str> = step.split(' ').collect();
        let lock = || words[1][1..].parse::<usize>().expect("m and a digit");
        match words[0] {
            "acquire" if holder[lock()].is_some() => continue,
            "acquire" => holder[lock()] = Some(thread),
            "release" => holder[lock()] = None,
            "free" => freed = true,
            "write" if words[1] == "cell" && freed => break,
            "write" if words[1] == "out" && divisor == 0 => break,
            "write" if words[1] == "d" => divisor = words[3].parse().expect("a digit"),
            _ => {}
        }
        let quotient = 8u32.checked_div(divisor).unwrap_or(0);
        let step = step.replace("{d}", &divisor.to_string());
        let step = step.replace("{q}", &quotient.to_string());
        let step = step.replace("{two}", &(divisor == 2).to_string());
        text.push_str(&format!("T{thread} {step}\n"));
        next[thread] += 1;
        events += 1;
        if events == MAX_EVENTS {
            break;
        }
    }
    text::read(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn brute_force_and_all_solvers_agree_on_random_traces() {
    let first = number("FORETELL_SEED", 0);
    let traces = number("FORETELL_DIFFERENTIAL", 2_000);
    let mut asked = Tally::default();
    for seed in first..first + traces {
        let trace = if seed % 4 == 3 { nested_locks(seed) } else { random_trace(seed) };
        // Two of forty, so that both kinds take part.
        let with_z3 = matches!(seed % 40, 0 | 3);
        if disagreement(&trace, with_z3, &mut asked).is_some() {
            let mut still =
                |trace: &Trace| disagreement(trace, with_z3, &mut Tally::default()).is_some();
            let small = shrink(&trace, &mut still);
            let why = disagreement(&small, with_z3, &mut Tally::default()).expect("it disagrees");
            let mut out = Vec::new();
            text::write(&small, &mut out).expect("writing to memory");
            panic!("seed {seed}: {why}\n{}", String::from_utf8_lossy(&out));
        }
    }
    let mut counts: Vec<_> = asked.counts.iter().collect();
    counts.sort_unstable();
    println!(
        "impossible and possible: {counts:?}, unknown {}, too large for brute force {}",
        asked.unknown, asked.skipped
    );
    for name in ["Assertion", "LockCycle", "Stuck", "Race", "Order", "Fault"] {
        assert!(traces < 1000 || asked.counts.contains_key(name), "nothing was asked about {name}");
    }
    let answers: usize = counts.iter().map(|(_, [no, yes])| no + yes).sum();
    assert!(answers > traces as usize, "hardly anything was asked");
    assert!(asked.unknown * 50 < answers.max(1), "too much was not decided: {}", asked.unknown);
    assert!(asked.skipped * 20 < answers.max(1), "too much was skipped: {}", asked.skipped);
}
